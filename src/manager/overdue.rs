//! The referees that must report: until when, and what the league says while it waits for them.
//!
//! A referee that has received its matches gets a deadline, the longest time that they can take. A
//! referee that lets it pass is overdue, and the round loop (`rounds.rs`) gives its matches to
//! another one.

use super::league::League;
use super::notifier::Notifier;
use super::recipient::RefereeState;
use crate::games;
use crate::protocol::AgentKind;
use crate::values::Timestamp;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Time without any event after which the league says which referees it waits for.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// A moment to come, for the clock and as text.
pub struct FutureTime {
    instant: Instant,
    /// The moment as text.
    pub timestamp: Timestamp,
}

impl FutureTime {
    /// Returns the moment after this time.
    pub fn after(time: Duration) -> FutureTime {
        FutureTime {
            instant: Instant::now() + time,
            timestamp: Timestamp::now().plus(time),
        }
    }

    /// Returns true if the moment is in the past.
    pub fn has_passed(&self) -> bool {
        Instant::now() >= self.instant
    }
}

/// The deadlines of the referees that have open matches.
#[derive(Default)]
pub struct ReportDeadlines {
    by_referee: BTreeMap<String, FutureTime>,
    /// The number of events at the last update, and the time at which it last changed.
    events: u64,
    last_event: Option<Instant>,
}

impl ReportDeadlines {
    /// Forgets all deadlines, because the referees have got other matches.
    pub fn clear(&mut self) {
        self.by_referee.clear();
    }

    /// Sets a deadline for each referee that has received its matches, and marks the referees that
    /// are overdue. More matches give a referee more time.
    pub fn update(&mut self, league: &League, notifier: &Notifier) {
        if self.events != league.version {
            self.events = league.version;
            self.last_event = Some(Instant::now());
        }

        let config = &league.config;
        let turns = games::find(&config.league.game_type).map_or(1, |game| game.max_turns);
        let match_limit = config.match_limit(turns);
        let round = league.open_round().unwrap_or(0);
        let published = notifier.published().referees;
        let is_announced = published.announcement == league.announcement_version;

        for referee in league.members(AgentKind::Referee) {
            let id = &referee.id;
            let matches = league.open_matches_of(id, round).count() as u32;
            let state = notifier.status(id).referee;

            if matches == 0 || matches!(state, RefereeState::Lost | RefereeState::Refusing) {
                self.by_referee.remove(id);
            } else if let Some(deadline) = self.by_referee.get(id) {
                if deadline.has_passed() {
                    let until = deadline.timestamp.time_of_day();
                    let problem = format!("has not reported all its matches by {until}");
                    notifier.record_overdue(id, problem);
                    self.by_referee.remove(id);
                }
            } else if is_announced && notifier.has_received(id) {
                let batches = matches.div_ceil(referee.capacity());
                let deadline = FutureTime::after(match_limit * batches);
                self.by_referee.insert(id.clone(), deadline);
                self.last_event = Some(Instant::now());
            }
        }
    }

    /// Returns the reports that the league waits for, if nothing has happened for a while.
    pub fn describe_awaited_reports(&self, league: &League) -> Option<String> {
        let idle = self.last_event?.elapsed();
        if self.by_referee.is_empty() || idle < IDLE_TIMEOUT {
            return None;
        }

        let round = league.open_round()?;
        let mut referees = Vec::new();
        for (id, deadline) in &self.by_referee {
            let mut matches = Vec::new();
            for the_match in league.open_matches_of(id, round) {
                let [a, b] = (the_match.players.each_ref()).map(|id| league.name_and_id(id));
                matches.push(format!("{} of {a} and {b}", the_match.id));
            }

            let (referee, matches) = (league.name_and_id(id), matches.join(", "));
            let until = deadline.timestamp.time_of_day();
            referees.push(format!("{referee} to report {matches} (until {until})"));
        }
        Some(format!("waiting for {}", referees.join(" and ")))
    }
}
