//! Whether a referee counts (R6): a pure function of what was given to it, what was last heard of it, and now.

use std::time::Duration;

/// What was last heard of a referee.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Heard {
    /// It refused the connection, or broke it.
    pub unreachable: bool,
    /// It answered an assignment with an error, when it had registered so often.
    pub refused: Option<u32>,
}

/// Whether matches can be given to a referee, and stay with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Liveness {
    /// It answers, or has not been asked yet.
    Alive,
    /// Nobody is there; it counts again when it answers.
    Lost,
    /// It wants no matches; it counts again when it registers again.
    Refusing,
    /// It answers, but has not reported in the time its queue can take at most: asked only if nobody else is left.
    Overdue,
}

/// Whether a referee counts that has registered `registrations` times and must have reported by `due`; `due` and
/// `now` are counted from the same moment.
pub fn liveness(heard: Heard, registrations: u32, due: Option<Duration>, now: Duration) -> Liveness {
    match heard {
        Heard { refused: Some(then), .. } if then == registrations => Liveness::Refusing,
        Heard { unreachable: true, .. } => Liveness::Lost,
        _ if due.is_some_and(|due| now > due) => Liveness::Overdue,
        _ => Liveness::Alive,
    }
}

/// How long so many matches can take at most, played so many at once.
pub fn patience(matches: usize, at_once: u32, per_match: Duration) -> Duration {
    let batches = matches.div_ceil(at_once.max(1) as usize);
    per_match.saturating_mul(u32::try_from(batches).unwrap_or(u32::MAX))
}
