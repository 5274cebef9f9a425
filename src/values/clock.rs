//! The clocks: those of the system, or in a test the times that it has set for its thread. Where time
//! is simulated, no thread is started, nothing is logged, and no problem is printed.

use std::cell::Cell;
use std::time::Instant;
use time::OffsetDateTime;

thread_local! {
    static SET: Cell<Option<(Instant, OffsetDateTime)>> = const { Cell::new(None) };
}

/// Sets both clocks of this thread. They stand still until they are set again.
pub fn set(instant: Instant, utc: OffsetDateTime) {
    SET.set(Some((instant, utc)));
}

/// Returns true if the clocks of this thread are set: a whole league is simulated.
pub fn is_simulated() -> bool {
    SET.get().is_some()
}

/// Returns the clock that never jumps.
pub fn now() -> Instant {
    SET.get().map_or_else(Instant::now, |(instant, _)| instant)
}

/// Returns the wall clock.
pub fn now_utc() -> OffsetDateTime {
    SET.get()
        .map_or_else(OffsetDateTime::now_utc, |(_, utc)| utc)
}
