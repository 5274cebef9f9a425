//! Who meets whom, and when: a round robin by the circle method, and how a league starts with it.
//!
//! A meeting is the ids of player A and player B. `one_round` is the idea, `round_robin` repeats and turns the rounds,
//! `matches_of` numbers the meetings as matches.

use crate::manager::league::{Event, League, Match};
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

    /// Starts with these rounds, or says what is missing. Nothing is new where the league has started already.
    pub fn start(
        &self,
        seed: Option<u64>,
        rounds: Vec<Vec<[String; 2]>>,
    ) -> Result<Option<Event>, String> {
        match self.lacks() {
            Some(lacks) => Err(lacks),
            None => Ok((!self.started).then_some(Event::Started { seed, rounds })),
        }
    }

    /// The matches with the players so far, as they would be if the league started now.
    pub fn preview(&self) -> Vec<Match> {
        matches_of(&self.pairings())
    }

    /// Everybody meets everybody.
    pub fn pairings(&self) -> Vec<Vec<[String; 2]>> {
        round_robin(&self.player_ids(), self.rules.cycles)
    }

    /// The ids of the players, in their order.
    pub fn player_ids(&self) -> Vec<String> {
        let players = self.members(Kind::Player).into_iter();
        players.map(|player| player.id.clone()).collect()
    }
}

/// The matches of all rounds, numbered within each: `R1M1`, `R1M2`, …
pub fn matches_of(rounds: &[Vec<[String; 2]>]) -> Vec<Match> {
    let mut matches = Vec::new();
    for (round, pairs) in (1..).zip(rounds) {
        for (number, players) in (1..).zip(pairs) {
            matches.push(Match {
                id: format!("R{round}M{number}"),
                round,
                players: players.clone(),
                assignment: None,
                recorded: None,
                voided: Vec::new(),
            });
        }
    }
    matches
}

/// The rounds of a league: every pair meets once, or `cycles` times, the roles swapped each time.
///
/// An even number of players needs N-1 rounds, an odd number N: then one player rests in each round.
/// Everybody is A and B equally often, but for one match where the number of matches is odd.
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

/// The players but the last sit in a circle of `ring` seats and move on by one each round. The last player,
/// or the empty seat, meets whoever stands at the top; the others meet the one at the same distance from it.
/// Each is A at one distance to the left and B at the same distance to the right: so the roles balance.
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
