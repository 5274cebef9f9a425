//! How a league starts: what it lacks to do so, and who meets whom. When it starts is no business of this file: either
//! the operator says so (`handlers.rs`), or as many have registered as were awaited (`src/manager.rs`). The rounds in
//! which everybody meets everybody are made in `schedule.rs`.

use crate::manager::league::{Event, League};
use crate::manager::schedule::round_robin;
use crate::protocol::Kind;

impl League {
    /// What a league that has not started lacks to do so.
    pub fn lacks(&self) -> Option<String> {
        let players = self.members(Kind::Player).len();
        let referees = self.members(Kind::Referee).len();
        let needed = self.rules.min_players.max(2);
        if self.started || players >= needed && referees > 0 {
            return None;
        }
        Some(format!(
            "{players} of at least {needed} players and {referees} of at least 1 referee have registered"
        ))
    }

    /// Starts with these rounds, if nothing is lacking and the league has not started already.
    pub fn start(&self, seed: Option<u64>, rounds: Vec<Vec<[String; 2]>>) -> Option<Event> {
        let may_start = !self.started && self.lacks().is_none();
        may_start.then_some(Event::Started { seed, rounds })
    }

    /// Everybody meets everybody.
    pub fn pairings(&self) -> Vec<Vec<[String; 2]>> {
        round_robin(&self.ids(Kind::Player), self.rules.cycles)
    }
}
