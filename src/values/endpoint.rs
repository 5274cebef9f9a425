//! The URL under which an agent can be called. Two spellings of one address are equal: `localhost`
//! is 127.0.0.1, and a missing port is the default of the scheme. `https` is legal only in a build
//! with that feature.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use ureq::http::Uri;

/// A parsed and normalised URL.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    scheme: String,
    /// In lower case.
    pub host: String,
    /// The port, or the default of the scheme.
    pub port: u16,
    path: String,
}

impl Endpoint {
    /// Parses a URL. An error says what is legal.
    pub fn parse(url: &str) -> Result<Endpoint, &'static str> {
        let legal = "an absolute URL like http://localhost:8101/mcp";
        let uri: Uri = url.parse().map_err(|_| legal)?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let default_port = match scheme {
            "http" => 80,
            "https" if cfg!(feature = "https") => 443,
            "https" => return Err("an http URL: this build has no https (feature `https`)"),
            _ => return Err(legal),
        };

        let host = uri.host().unwrap_or_default();
        let authority = uri.authority().map(|authority| authority.as_str());
        let port = match authority.and_then(|authority| authority.strip_prefix(host)) {
            Some("") => default_port,
            Some(rest) => rest.strip_prefix(':').map_or(0, parse_port),
            None => 0, // there is a user name before the host
        };
        let (Some(path), 1.., true) = (uri.path_and_query(), port, is_host(host)) else {
            return Err(legal);
        };

        let host = match host.to_ascii_lowercase().as_str() {
            "localhost" => "127.0.0.1".into(),
            host => host.to_string(),
        };

        Ok(Endpoint {
            scheme: scheme.into(),
            host,
            port,
            path: path.to_string(),
        })
    }

    /// Returns true if two URLs name the same address.
    pub fn is_same_address(one: &str, other: &str) -> bool {
        let one = Endpoint::parse(one);
        one.is_ok() && one == Endpoint::parse(other)
    }

    /// Returns the same URL with an address in the place of its host.
    pub fn with_host(self, address: IpAddr) -> Endpoint {
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        Endpoint { host, ..self }
    }

    /// Returns the host if it is an address, not a name.
    pub fn address(&self) -> Option<IpAddr> {
        let host = self.host.trim_matches(['[', ']']);
        Some(host.parse::<IpAddr>().ok()?.to_canonical())
    }

    /// Returns true if the host is this machine: a loopback address, or the unspecified one.
    pub fn is_loopback(&self) -> bool {
        self.address()
            .is_some_and(|address| address.is_loopback() || address.is_unspecified())
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}://{}:{}{}",
            self.scheme, self.host, self.port, self.path
        )
    }
}

/// Returns true if a text is a host name, an address, or an IPv6 address in brackets. The URL
/// parser accepts more, for example an empty host.
fn is_host(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let address = rest.strip_suffix(']').unwrap_or_default();
        return address.parse::<Ipv6Addr>().is_ok();
    }

    let mut chars = text.chars();
    let is_name = chars.all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let is_address = text.parse::<Ipv4Addr>().is_ok();
    !text.is_empty() && is_name && (is_address || !ends_in_number(text))
}

/// Returns true for the short spellings of addresses, for example `127.1` and `0x7f000001`. The
/// system resolves them as addresses, so they would be loopback addresses that do not look like it.
fn ends_in_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    last.starts_with("0x") || !last.is_empty() && last.chars().all(|c| c.is_ascii_digit())
}

/// Returns the port, or 0 if the text is not one.
fn parse_port(text: &str) -> u16 {
    let is_digits = text.chars().all(|c| c.is_ascii_digit()); // `parse` takes a sign too
    text.parse().ok().filter(|_| is_digits).unwrap_or_default()
}
