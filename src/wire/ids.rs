//! Texts and numbers with bounds: names, versions, URLs, tokens, time limits. Each is checked where
//! it is read. Pure.

use super::endpoint::Endpoint;
use super::object::{Reader, Wire, cut, whole};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

/// A token: whose it is can be read, what it is cannot be guessed.
pub fn token(id: &str, secret: &str) -> String {
    format!("tok-{}-{secret}", id.to_ascii_lowercase())
}

/// Compares without telling by its time how much was right.
pub fn equal(one: &str, other: &str) -> bool {
    let differences = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |seen, (a, b)| seen | (a ^ b));
    one.len() == other.len() && differences == 0
}

/// `tok-p01-0123…` becomes `tok-p01-***`, wherever it stands in the text.
pub fn masked(text: &str) -> Cow<'_, str> {
    if !text.contains("tok-") {
        return text.into();
    }
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    let mut parts = text.split("tok-");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (id, rest) = part.split_once('-').unwrap_or((part, ""));
        let length = rest.find(is_end).unwrap_or(rest.len());
        out += "tok-";
        if length < 8 || id.contains(is_end) {
            out += part;
        } else {
            out += &format!("{id}-***{}", &rest[length..]);
        }
    }
    out.into()
}

/// How many characters of a peer's text are shown or passed on.
pub const SHOWN: usize = 200;

/// A peer's text as it is shown and passed on: cut, and without tokens, which it may have echoed.
pub fn quotable(text: &str) -> String {
    cut(&masked(text), SHOWN)
}

/// Seconds as a person writes them: `30`, `0.5`.
pub fn seconds(time: Duration) -> String {
    format!("{}", (time.as_secs_f64() * 100.0).round() / 100.0)
}

/// Declares texts that must look like something.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident $expected:literal, $good:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name(pub String);
        impl $name {
            /// What is legal.
            pub const EXPECTED: &str = $expected;
            /// Whether a text is.
            pub fn is_good(text: &str) -> bool {
                $good(text)
            }
        }
        impl Wire for $name {
            fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
                let text = String::read_in(value, reader)?;
                if $name::is_good(&text) { Some($name(text)) } else { reader.wrong(value, $expected) }
            }
            fn schema() -> Value {
                json!({"type": "string", "description": $expected})
            }
        }
    )*};
}
texts! {
    /// What a person calls an agent.
    DisplayName "1 to 50 characters", |text: &str| (1..=50).contains(&text.chars().count());
    /// A version of an agent.
    Version "MAJOR.MINOR.PATCH, like 1.0.0", is_version;
    /// Where an agent can be called.
    Url "an absolute URL like http://localhost:8101/mcp", |text: &str| Endpoint::parse(text).is_ok();
    /// A name that can be a part of a path.
    Plain "letters, digits, _ and -", is_plain;
}

/// Whether a name from outside can be a part of a path: letters, digits, `_` and `-`.
fn is_plain(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(good)
}

/// Whether a text is MAJOR.MINOR.PATCH.
fn is_version(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(number)
}

/// A whole number from `LEAST` to `MOST`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Within<const LEAST: u32, const MOST: u32>(pub u32);

impl<const LEAST: u32, const MOST: u32> Within<LEAST, MOST> {
    /// Whether a number is within.
    pub fn is_good(number: u32) -> bool {
        (LEAST..=MOST).contains(&number)
    }
}

impl<const LEAST: u32, const MOST: u32> Wire for Within<LEAST, MOST> {
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
        let number = whole(value).filter(|number| Self::is_good(*number));
        number
            .map(Within)
            .or_else(|| reader.wrong(value, &format!("{LEAST} to {MOST}")))
    }
    fn schema() -> Value {
        json!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

/// A time limit or a delay: seconds, also in fractions.
impl Wire for Duration {
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Duration> {
        let seconds = f64::read_in(value, reader)?;
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        if time.is_zero() || time > Duration::from_secs(86_400) {
            return reader.wrong(value, "more than 0 seconds, at most 86400");
        }
        Some(time)
    }
    fn schema() -> Value {
        json!({"type": "number"})
    }
}
