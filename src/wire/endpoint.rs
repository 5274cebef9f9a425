//! Where an agent can be called: one absolute `http` URL. Pure.

use std::net::{IpAddr, Ipv6Addr};

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
        let (scheme, rest) = url.split_once("://").ok_or(legal)?;
        let scheme = scheme.to_ascii_lowercase();
        let default_port = match scheme.as_str() {
            "http" => 80,
            "https" if cfg!(feature = "https") => 443,
            "https" => return Err("an http URL: this build has no https (feature `https`)"),
            _ => return Err(legal),
        };
        let (authority, path) = rest
            .find('/')
            .map_or((rest, "/"), |slash| rest.split_at(slash));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let number = port.parse().ok().filter(|_| !port.starts_with('+')); // parse takes a sign too
                (host, number.ok_or(legal)?)
            }
            _ => (authority, default_port),
        };
        let host = match host.to_ascii_lowercase().as_str() {
            "localhost" => "127.0.0.1".to_string(),
            host => host.to_string(),
        };
        let good_path = path.chars().all(|c| c.is_ascii_graphic() && c != '#');
        if !is_host(&host) || !good_path || port == 0 {
            return Err(legal);
        }
        Ok(Endpoint {
            scheme,
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

/// Whether a text can be the host of a URL: a name, an address, or an IPv6 address in brackets.
fn is_host(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    match text.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.is_some_and(|it| it.parse::<Ipv6Addr>().is_ok()),
        None => !text.is_empty() && text.chars().all(plain),
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
