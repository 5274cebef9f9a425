//! UTC timestamps: how they are written, how they are read, and the one place that asks the wall
//! clock. Messages have whole seconds, log lines milliseconds too. Deadlines never use the wall
//! clock: those are measured with `Instant`.

use super::object::{Fault, FaultKind, Reader, Wire};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;
use time::{
    OffsetDateTime, PrimitiveDateTime, format_description::BorrowedFormatItem,
    macros::format_description,
};

/// A moment in UTC, written as `2025-01-15T10:30:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(OffsetDateTime);

const WRITTEN: &[BorrowedFormatItem] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
/// As our own logs have it.
const EXACT: &[BorrowedFormatItem] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
/// With or without hyphens, or hyphens and colons, and fractions.
const READ: &[BorrowedFormatItem] = format_description!(
    version = 2,
    "[first [[year]-[month]-[day]T[hour]:[minute]:[second]] \
        [[year][month][day]T[hour]:[minute]:[second]] \
        [[year][month][day]T[hour][minute][second]]][optional [.[subsecond]]]"
);

impl Timestamp {
    /// The wall clock, in whole seconds.
    pub fn now() -> Timestamp {
        let now = OffsetDateTime::now_utc();
        Timestamp(now.replace_nanosecond(0).unwrap_or(now))
    }

    /// The wall clock with milliseconds, for logs.
    pub fn to_the_millisecond() -> String {
        OffsetDateTime::now_utc().format(EXACT).unwrap_or_default()
    }

    /// Reads the tolerated forms; `None` for another offset than UTC, no zone, or nonsense.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let bare = text
            .strip_suffix('Z')
            .or_else(|| text.strip_suffix("+00:00"))?;
        if bare.starts_with(['+', '-']) {
            return None; // `time` knows years with a sign
        }
        let time = PrimitiveDateTime::parse(bare, READ).ok()?;
        Some(Timestamp(time.assume_utc()))
    }

    /// This moment and so much more; stays put where the calendar ends.
    pub fn plus(self, more: Duration) -> Timestamp {
        let more = time::Duration::try_from(more).unwrap_or(time::Duration::ZERO);
        Timestamp(self.0.checked_add(more).unwrap_or(self.0))
    }

    /// How far apart two moments are, in either direction.
    pub fn distance(self, other: Timestamp) -> Duration {
        (self.0 - other.0).unsigned_abs()
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.format(WRITTEN).map_err(|_| std::fmt::Error)?)
    }
}

impl Wire for Timestamp {
    fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
        let text = value.as_str().or_else(|| reader.wrong(value, "a string"))?;
        let expected = "a UTC time like \"2025-01-15T10:30:00Z\"";
        Timestamp::parse(text).or_else(|| {
            reader.note(Fault {
                kind: FaultKind::Time,
                ..Fault::new(value, expected)
            })
        })
    }
    fn schema() -> Value {
        json!({"type": "string", "format": "date-time"})
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Timestamp::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no UTC time")))
    }
}
