//! The schedule: who plays whom, which referee gets which match, and what is recorded for a player
//! that the operator removed.
//!
//! The rounds are made by the circle method when the league starts. The round loop (`rounds.rs`)
//! asks for assignments whenever something has changed. These are decisions of the league: they
//! read the state and return an event.

use super::league::{Event, League, MatchAssignment, Member, Recorded};
use crate::games;
use crate::protocol::AgentKind;
use crate::values::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

impl League {
    /// Returns a sentence about the agents that the league needs to start; `None` if it needs no
    /// more.
    pub fn missing_to_start(&self) -> Option<String> {
        let players = self.count(AgentKind::Player);
        let referees = self.count(AgentKind::Referee);
        let needed = self.config.league.participants.min_players as usize;
        if self.started || players >= needed && referees > 0 {
            return None;
        }

        Some(format!(
            "{players} of at least {needed} players and {referees} of at least 1 referee have registered"
        ))
    }

    /// Returns the start of the league with these rounds, unless something is lacking or it has
    /// started already.
    pub fn start_event(&self, seed: Option<u64>, rounds: Vec<Vec<[String; 2]>>) -> Option<Event> {
        let may_start = !self.started && self.missing_to_start().is_none();
        may_start.then_some(Event::Started { seed, rounds })
    }

    /// Returns the rounds in which every player meets every other player.
    pub fn pairings(&self) -> Vec<Vec<[String; 2]>> {
        round_robin(&self.ids(AgentKind::Player), self.config.cycles())
    }

    /// Assigns the unfinished matches of a round to the `available` referees, by their capacity. A
    /// match that has one of them already keeps it, unless it is `unannounced`. `new_token` makes a
    /// match token for a player.
    pub fn assign_open_matches(
        &self,
        round: u32,
        available: &[String],
        unannounced: &BTreeSet<String>,
        mut new_token: impl FnMut(&str) -> String,
    ) -> Option<Event> {
        // Count the matches that each referee has already.
        let mut load = Vec::new();
        for id in available {
            let matches = self.open_matches_of(id).count() as u32;
            load.push((self.members.get(id)?, matches));
        }

        let mut assignments = Vec::new();
        for the_match in self.open_matches(round) {
            let has_referee = available.iter().any(|id| the_match.referee() == Some(id));
            if has_referee && !unannounced.contains(&the_match.id) {
                continue;
            }

            // Choose the referee with the least load for its capacity, this match included:
            // 1/2 is less than 2/3, since 1 * 3 is less than 2 * 2.
            let (referee, matches) = load.iter_mut().min_by(|(a, of_a), (b, of_b)| {
                let load_of_a = (*of_a + 1) * b.capacity();
                let load_of_b = (*of_b + 1) * a.capacity();
                load_of_a.cmp(&load_of_b)
            })?;
            *matches += 1;

            let tokens =
                (the_match.players.each_ref()).map(|player| match referee.meta.uses_match_tokens {
                    Some(true) => new_token(player),
                    _ => String::new(),
                });
            assignments.push(MatchAssignment {
                match_id: the_match.id.clone(),
                referee_id: referee.id.clone(),
                tokens,
            });
        }
        (!assignments.is_empty()).then_some(Event::Assigned { assignments })
    }

    /// Returns the longest time that a referee's open matches can take; zero if it has none.
    pub fn time_limit(&self, referee: &Member) -> Duration {
        let matches = self.open_matches_of(&referee.id).count() as u32;
        let turns = games::find(&self.config.league.game_type).map_or(1, |game| game.max_turns);
        self.config.match_limit(turns) * matches.div_ceil(referee.capacity())
    }

    /// Returns the result of the next match of a round in which a removed player plays. The match
    /// is not played: the other player wins, or neither if both were removed.
    pub fn walkover(&self, round: u32, at: Timestamp) -> Option<Event> {
        let game = games::find(&self.config.league.game_type)?;
        for the_match in self.open_matches(round) {
            let failures = the_match.players.each_ref().map(|player| {
                let is_removed = self.removed.contains(player);
                is_removed.then(|| "left by order of the operator".to_string())
            });
            if failures == [None, None] {
                continue;
            }

            let outcome = game.forfeit(&the_match.players, &[], &failures);
            return Some(Event::Recorded(Recorded {
                match_id: the_match.id.clone(),
                referee_id: AgentKind::Manager.to_string(),
                result: games::match_result(&outcome, &self.config.league.scoring),
                at,
            }));
        }
        None
    }
}

/// Returns the rounds of a league by the circle method: every pair meets once, or `cycles` times.
///
/// All players but the last sit in a ring that turns by one seat in each round. The player at the
/// top meets the last player, or rests if their number is odd; the others meet the player at the
/// same distance from the top. Each player has both roles equally often, except for one match if
/// the number of matches is odd. In every second cycle the roles are swapped.
pub fn round_robin(players: &[String], cycles: u32) -> Vec<Vec<[String; 2]>> {
    let seats = players.len() + players.len() % 2;
    let ring = seats.saturating_sub(1);
    let mut rounds = Vec::new();
    for cycle in 0..cycles {
        for round in 0..ring {
            let mut pairs = Vec::new();
            for distance in 0..=ring / 2 {
                let left = (round + distance) % ring;
                let right = match distance {
                    0 => ring,
                    _ => (round + ring - distance) % ring,
                };
                if right >= players.len() {
                    continue; // The seat of the last player is empty.
                }

                let is_reversed = (cycle % 2 == 1) != (distance == 0 && round % 2 == 1);
                let (a, b) = if is_reversed {
                    (right, left)
                } else {
                    (left, right)
                };
                pairs.push([players[a].clone(), players[b].clone()]);
            }
            rounds.push(pairs);
        }
    }
    rounds
}
