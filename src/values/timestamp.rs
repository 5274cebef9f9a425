//! UTC timestamps. Messages have whole seconds, log lines also milliseconds. Deadlines are measured
//! with `Instant`, never with timestamps.

use super::clock;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use time::{
    OffsetDateTime, PrimitiveDateTime, UtcOffset, format_description::BorrowedFormatItem,
    macros::format_description,
};

/// A moment in UTC, written as `2025-01-15T10:30:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "DateTime", into = "DateTime")]
pub struct Timestamp(OffsetDateTime);

/// A timestamp as text; the JSON schema calls its format `date-time`.
#[derive(Serialize, Deserialize)]
#[serde(rename = "date-time")]
struct DateTime(String);

const FORMAT: &[BorrowedFormatItem] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
const LOG_FORMAT: &[BorrowedFormatItem] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
const TIME_OF_DAY: &[BorrowedFormatItem] = format_description!("[hour]:[minute]:[second]");
/// Without `Z`: hyphens and colons, or only one of both, may be left out; fractions are allowed.
const ACCEPTED_FORMATS: &[BorrowedFormatItem] = format_description!(
    version = 2,
    "[first [[year]-[month]-[day]T[hour]:[minute]:[second]] \
        [[year][month][day]T[hour]:[minute]:[second]] \
        [[year][month][day]T[hour][minute][second]]][optional [.[subsecond]]]"
);

impl Timestamp {
    /// Returns the wall clock in whole seconds.
    pub fn now() -> Timestamp {
        let now = clock::now_utc();
        Timestamp(now.replace_nanosecond(0).unwrap_or(now))
    }

    /// Returns the wall clock with milliseconds, for logs.
    pub fn now_with_millis() -> String {
        let now = clock::now_utc();
        now.format(LOG_FORMAT).unwrap_or_default()
    }

    /// Parses the accepted formats. Returns `None` for another offset than UTC, for no offset, and
    /// for anything else.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let local = text
            .strip_suffix('Z')
            .or_else(|| text.strip_suffix("+00:00"))?;
        if local.starts_with(['+', '-']) {
            return None; // `time` accepts years with a sign
        }

        let time = PrimitiveDateTime::parse(local, ACCEPTED_FORMATS).ok()?;
        Some(Timestamp(time.assume_utc()))
    }

    /// Returns the local time of day for people: `14:03:05`, or `14:03:05 UTC` where the local time
    /// is UTC or not known.
    pub fn time_of_day(self) -> String {
        let offset = UtcOffset::local_offset_at(self.0).unwrap_or(UtcOffset::UTC);
        let zone = if offset.is_utc() { " UTC" } else { "" };
        let time = self.0.to_offset(offset).format(TIME_OF_DAY);
        time.unwrap_or_default() + zone
    }

    /// Returns the moment that is so much later, or the same one where the calendar ends.
    pub fn plus(self, duration: Duration) -> Timestamp {
        let duration = time::Duration::try_from(duration).unwrap_or_default();
        Timestamp(self.0.checked_add(duration).unwrap_or(self.0))
    }

    /// Returns the time between two moments, in either direction.
    pub fn abs_diff(self, other: Timestamp) -> Duration {
        (self.0 - other.0).unsigned_abs()
    }
}

/// A moment on both clocks: the one that never jumps, and the one that people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    instant: Instant,
    /// The moment for people.
    pub timestamp: Timestamp,
}

impl Moment {
    /// Returns the present.
    pub fn now() -> Moment {
        Moment {
            instant: clock::now(),
            timestamp: Timestamp::now(),
        }
    }

    /// Returns the moment that is so much later.
    pub fn plus(self, time: Duration) -> Moment {
        Moment {
            instant: self.instant + time,
            timestamp: self.timestamp.plus(time),
        }
    }

    /// Returns the time from `now` to this moment; zero if it is in the past.
    pub fn time_left(self, now: Moment) -> Duration {
        self.instant.saturating_duration_since(now.instant)
    }

    /// Returns true if the moment is not in the future.
    pub fn has_passed(self, now: Moment) -> bool {
        self.instant <= now.instant
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.format(FORMAT).map_err(|_| std::fmt::Error)?)
    }
}

impl TryFrom<DateTime> for Timestamp {
    type Error = String;

    fn try_from(DateTime(text): DateTime) -> Result<Timestamp, String> {
        Timestamp::parse(&text).ok_or(format!("{text:?} is not a UTC time"))
    }
}

impl From<Timestamp> for DateTime {
    fn from(timestamp: Timestamp) -> DateTime {
        DateTime(timestamp.to_string())
    }
}
