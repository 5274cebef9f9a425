//! How a league starts: what it lacks to do so, and who meets whom, in a round robin by the circle
//! method. When it starts is no business of this file: either the operator says so (`handlers.rs`),
//! or as many have registered as were awaited (`src/manager.rs`).
//!
//! A meeting is the ids of player A and player B. `one_round` is the idea; `round_robin` repeats
//! and turns the rounds.

use crate::manager::league::{Event, League};
use crate::protocol::Kind;

impl League {
    /// What a league that has not started lacks to do so.
    pub fn lacks(&self) -> Option<String> {
        let players = self.members(Kind::Player).len();
        let referees = self.members(Kind::Referee).len();
        let needed = self.config.league.participants.min_players.0 as usize;
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
        round_robin(&self.ids(Kind::Player), self.config.cycles())
    }
}

/// The rounds of a league: every pair meets once, or `cycles` times, the roles swapped each time.
///
/// An even number of players needs N-1 rounds, an odd number N: then one player rests in each
/// round. Everybody is A and B equally often, but for one match where the number of matches is odd.
pub fn round_robin(players: &[String], cycles: u32) -> Vec<Vec<[String; 2]>> {
    let seats = players.len() + players.len() % 2; // the last seat is empty when the number is odd
    let mut rounds = Vec::new();
    for cycle in 0..cycles {
        for round in 0..seats.saturating_sub(1) {
            let mut pairs = one_round(players, seats - 1, round);
            if !cycle.is_multiple_of(2) {
                pairs.iter_mut().for_each(|pair| pair.reverse());
            }
            rounds.push(pairs);
        }
    }
    rounds
}

/// The players but the last sit in a circle of `ring` seats and move on by one each round. The last
/// player, or the empty seat, meets whoever stands at the top; the others meet the one at the same
/// distance from it. Each is A at one distance to the left and B at the same distance to the right:
/// so the roles balance.
fn one_round(players: &[String], ring: usize, round: usize) -> Vec<[String; 2]> {
    let last = players.get(ring).map(|last| {
        let top = &players[round];
        if round.is_multiple_of(2) {
            [top, last]
        } else {
            [last, top]
        }
    });
    let others = (1..=ring / 2).map(|distance| {
        let left = &players[(round + distance) % ring];
        let right = &players[(round + ring - distance) % ring];
        [left, right]
    });
    last.into_iter()
        .chain(others)
        .map(|pair| pair.map(String::clone))
        .collect()
}
