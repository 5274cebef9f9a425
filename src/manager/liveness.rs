//! Whether a referee counts: a pure function of what was last heard of it.

use std::time::Duration;

/// What was last heard of a referee.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// It refused the connection, or broke it: until it answers.
    pub unreachable: bool,
    /// It answered an assignment with an error, this one: until it registers again or reports.
    pub refused: Option<String>,
    /// It has not reported in its time: until it registers again or reports.
    pub overdue: bool,
}

/// Whether matches can be given to a referee, and stay with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Liveness {
    /// It answers, or has not been asked yet.
    Alive,
    /// Nobody is there; it counts again when it answers.
    Lost,
    /// It wants no matches; it counts again when it registers again or reports.
    Refusing,
    /// It answers, but has not reported in the time its queue can take at most: asked only if nobody else is left.
    Overdue,
}

/// Whether a referee counts of which that was heard.
pub fn liveness(heard: &Heard) -> Liveness {
    match heard {
        Heard {
            refused: Some(_), ..
        } => Liveness::Refusing,
        Heard {
            unreachable: true, ..
        } => Liveness::Lost,
        Heard { overdue: true, .. } => Liveness::Overdue,
        _ => Liveness::Alive,
    }
}

/// Those that get matches: whoever is alive; if nobody is, those that are overdue.
pub fn present(referees: &[(String, Liveness)]) -> Vec<String> {
    let those = |wanted| {
        referees
            .iter()
            .filter(move |(_, how)| *how == wanted)
            .map(|(id, _)| id.clone())
    };
    let alive: Vec<String> = those(Liveness::Alive).collect();
    if alive.is_empty() {
        those(Liveness::Overdue).collect()
    } else {
        alive
    }
}

/// How long so many matches can take at most, played so many at once.
pub fn patience(matches: usize, at_once: u32, per_match: Duration) -> Duration {
    let batches = matches.div_ceil(at_once.max(1) as usize);
    per_match.saturating_mul(u32::try_from(batches).unwrap_or(u32::MAX))
}
