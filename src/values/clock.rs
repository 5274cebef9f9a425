//! The clocks: those of the system, or in a test the time that it has set for its thread.

use std::cell::Cell;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

thread_local! {
    /// The clocks at the moment from which a test counts, and the time that has passed since.
    static SET: Cell<Option<(Instant, OffsetDateTime, Duration)>> = const { Cell::new(None) };
}

/// Lets so much time have passed on this thread, whose clocks stand still from now on: since the
/// first call, at half past ten on 15 January 2025.
pub fn set(passed: Duration) {
    let (instant, utc) = match SET.get() {
        Some((instant, utc, _)) => (instant, utc),
        None => (
            Instant::now(),
            time::macros::datetime!(2025-01-15 10:30 UTC),
        ),
    };
    SET.set(Some((instant, utc, passed)));
}

/// Returns the clock that never jumps.
pub fn now() -> Instant {
    SET.get()
        .map_or_else(Instant::now, |(instant, _, passed)| instant + passed)
}

/// Returns the wall clock.
pub fn now_utc() -> OffsetDateTime {
    SET.get()
        .map_or_else(OffsetDateTime::now_utc, |(_, utc, passed)| utc + passed)
}
