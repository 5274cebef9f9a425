//! The values of which messages and files are made: timestamps, endpoints, texts, and the values of
//! the two players of a match. This file has the texts: which names are legal, how tokens are made,
//! compared and redacted, and how much of a peer's text is shown.

pub mod clock;
mod endpoint;
mod timestamp;

pub use endpoint::Endpoint;
pub use timestamp::{Moment, Timestamp};

use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of characters of a peer's text that are shown or passed on.
pub const MAX_QUOTED_CHARS: usize = 200;

/// Checks the name under which people know an agent. An error says what is legal.
pub fn check_display_name(text: &str) -> Result<(), &'static str> {
    let is_legal = (1..=50).contains(&text.chars().count()) && text != "NAME";
    is_legal
        .then_some(())
        .ok_or("1 to 50 characters, and not NAME")
}

/// Checks the version of an agent. An error says what is legal.
pub fn check_version(text: &str) -> Result<(), &'static str> {
    let parts: Vec<&str> = text.split('.').collect();
    let is_legal = parts.len() == 3 && parts.into_iter().all(is_number);
    is_legal
        .then_some(())
        .ok_or("MAJOR.MINOR.PATCH, like 1.0.0")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks an identifier, which may be a part of a path. An error says what is legal.
pub fn check_identifier(text: &str) -> Result<(), &'static str> {
    let mut chars = text.chars();
    let is_legal = !text.is_empty() && chars.all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    is_legal.then_some(()).ok_or("letters, digits, _ and -")
}

/// Checks the URL of an agent. An error says what is legal.
pub fn check_url(text: &str) -> Result<(), &'static str> {
    Endpoint::parse(text).map(|_| ())
}

/// Makes the token of an agent from its id and a random secret: `tok-p01-0123…`.
pub fn token(id: &str, secret: &str) -> String {
    format!("tok-{}-{secret}", id.to_ascii_lowercase())
}

/// Returns a seed that depends on a seed and some texts (FNV-1a), the same on every machine.
pub fn derive_seed(seed: u64, parts: &[&str]) -> u64 {
    let mut bytes = seed.to_le_bytes().to_vec();
    for part in parts {
        bytes.extend(part.as_bytes());
        bytes.push(0);
    }

    let mut hash: u64 = 14_695_981_039_346_656_037;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    hash
}

/// Compares two secrets in a time that does not depend on how many characters are equal.
pub fn constant_time_eq(one: &str, other: &str) -> bool {
    let mut diff = 0;
    for (a, b) in one.bytes().zip(other.bytes()) {
        diff |= a ^ b;
    }
    one.len() == other.len() && diff == 0
}

/// Replaces every token in a text: `tok-p01-0123…` becomes `tok-p01-***`, and the 32 hex digits of
/// a key `***`.
pub fn redact_tokens(text: &str) -> Cow<'_, str> {
    if text.len() < 32 && !text.contains("tok-") {
        return text.into();
    }

    let mut redacted = String::new();
    let [mut start, mut id] = [""; 2];
    for piece in text.split_inclusive(is_separator) {
        let (word, separator) = piece.split_at(piece.trim_end_matches(is_separator).len());
        let is_token = start.ends_with("tok-") && id.ends_with('-') && word.len() >= 8;
        let is_key = word.len() == 32 && u128::from_str_radix(word, 16).is_ok();
        redacted += if is_token || is_key { "***" } else { word };
        redacted += separator;
        [start, id] = [id, piece];
    }
    redacted.into()
}

fn is_separator(c: char) -> bool {
    !c.is_ascii_alphanumeric()
}

/// Returns the first `max` characters of a text, and an ellipsis if there are more.
pub fn truncate(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// Returns `"1" or "2" or "3"`.
pub fn quoted_list(texts: &[&str]) -> String {
    format!("\"{}\"", texts.join("\" or \""))
}

/// Prepares a peer's text for being shown: without tokens, and truncated.
pub fn redact_and_truncate(text: &str) -> String {
    truncate(&redact_tokens(text), MAX_QUOTED_CHARS)
}

/// Returns the address of a caller for a sentence. Those that came under a foreign host name,
/// through a tunnel or a proxy, count as the unspecified address.
pub fn peer_text(peer: IpAddr) -> String {
    if peer.is_unspecified() {
        return "a foreign Host name (a tunnel or a proxy)".into();
    }

    peer.to_string()
}

/// Formats a duration in seconds with at most two decimals: `30`, `0.5`.
pub fn format_seconds(time: Duration) -> String {
    let seconds = (time.as_secs_f64() * 100.0).round() / 100.0;
    seconds.to_string()
}

/// The values of the players of a match, sorted by player id: an object in JSON. A league keeps two
/// of them for each match, and a `BTreeMap` takes 300 bytes for two entries. Copies share the
/// values.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, T>")]
pub struct ByPlayer<T>(Arc<[(String, T)]>);

impl<T> ByPlayer<T> {
    /// Returns the value of a player.
    pub fn get(&self, player_id: &str) -> Option<&T> {
        let (_, value) = self.iter().find(|(id, _)| *id == player_id)?;
        Some(value)
    }

    /// Returns the ids of the players and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.0.iter().map(|(id, value)| (id, value))
    }
}

impl<T> From<BTreeMap<String, T>> for ByPlayer<T> {
    fn from(values: BTreeMap<String, T>) -> ByPlayer<T> {
        ByPlayer(values.into_iter().collect())
    }
}

impl<T> FromIterator<(String, T)> for ByPlayer<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(values: I) -> ByPlayer<T> {
        BTreeMap::from_iter(values).into()
    }
}

impl<T: Serialize> Serialize for ByPlayer<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<T: fmt::Debug> fmt::Debug for ByPlayer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
