//! Where an agent can be called: one absolute `http` URL. Two spellings of one address are equal
//! `Endpoint`s: `localhost` is 127.0.0.1, and a missing port is that of the scheme. `https` is
//! legal only in a build with that feature. Pure.

use std::net::{IpAddr, Ipv6Addr};
use ureq::http::Uri;

/// A URL taken apart and normalised, so that two spellings of one address compare equal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    scheme: String,
    /// Lower case; `localhost` is taken as 127.0.0.1 without asking anybody.
    pub host: String,
    /// The port, or the default of the scheme.
    pub port: u16,
    path: String,
}

impl Endpoint {
    /// Takes a URL apart; an error says what is legal. `https` only in a build that has it.
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
        let authority = uri.authority().map(|it| it.as_str());
        let port = match authority.and_then(|it| it.strip_prefix(host)) {
            Some("") => default_port,
            Some(rest) => rest.strip_prefix(':').map_or(0, number),
            None => 0, // a user's name stands before the host
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

    /// Whether two URLs name the same address. Something that is no URL is nobody's address.
    pub fn same(one: &str, other: &str) -> bool {
        matches!((Endpoint::parse(one), Endpoint::parse(other)), (Ok(one), Ok(other)) if one == other)
    }

    /// Whether it names the very machine that looks.
    pub fn is_loopback(&self) -> bool {
        let host = self.host.trim_matches(['[', ']']);
        host.parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
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

/// Whether a text can be the host of a URL: a name, an address, or an IPv6 address in brackets. The
/// library takes more, nothing at all among it.
fn is_host(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    match text.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.is_some_and(|it| it.parse::<Ipv6Addr>().is_ok()),
        None => !text.is_empty() && text.chars().all(is_plain),
    }
}

/// A port in digits; 0 where it is none.
fn number(text: &str) -> u16 {
    let is_digits = text.chars().all(|c| c.is_ascii_digit()); // `parse` takes a sign too
    text.parse().ok().filter(|_| is_digits).unwrap_or_default()
}
