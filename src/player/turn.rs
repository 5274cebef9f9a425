//! What `choose` is given: the turn, with every match that the player has played.
//!
//! A `choose` is a function from a `Turn` to even or odd, or in other games to one of its legal
//! moves. It can be tried on `Turn::sample()`, without a league.

use crate::games::{alternating, even_odd};
use crate::protocol::{GameResult, Parity, Record, ResultStatus};
use crate::values::derive_seed;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A match that this player has played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastMatch {
    pub match_id: String,
    pub round_id: u32,
    pub game_type: String,
    pub opponent_id: String,
    pub result: GameResult,
}

/// Returns how often a player has won, drawn and lost in some matches.
pub fn record(player_id: &str, matches: &[PastMatch]) -> Record {
    let mut record = Record::default();

    for past in matches {
        if past.result.status == ResultStatus::Draw {
            record.draws += 1;
        } else if past.result.winner_player_id.as_deref() == Some(player_id) {
            record.wins += 1;
        } else {
            record.losses += 1;
        }
    }

    record
}

/// The knowledge of a player when it must choose.
#[derive(Debug, Clone)]
pub struct Turn {
    pub player_id: String,
    pub opponent_id: String,
    pub match_id: String,
    pub conversation_id: String,
    pub round_id: u32,
    pub game_type: String,
    /// Counts the moves of the match from 1; always 1 in Even/Odd.
    pub move_number: u32,
    /// The position, for people to read.
    pub position: String,
    /// The moves that may be chosen.
    pub legal_moves: Vec<String>,
    /// Our wins, draws and losses in the league, if the referee sent them.
    pub standings: Option<Record>,
    /// All our matches so far, oldest first.
    pub history: Arc<Vec<PastMatch>>,
    /// True if the league manager itself has announced this match.
    pub is_announced: bool,
    /// The seed of repeatable random choices (`--seed`).
    pub seed: Option<u64>,
    /// The time until which the answer must be sent.
    pub deadline: Instant,
}

impl Turn {
    /// Returns the time that is left to think.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns what a player has chosen in our matches of Even/Odd, oldest first.
    pub fn choices_of<'a>(&'a self, player_id: &'a str) -> impl Iterator<Item = Parity> + 'a {
        let matches = self.history.iter();
        matches.filter_map(|past| *past.result.choices.get(player_id)?)
    }

    /// Returns even or odd, each with the same probability. With a seed the choice is the same in
    /// every run.
    pub fn random(&self) -> Parity {
        [Parity::Even, Parity::Odd][self.random_index(2)]
    }

    /// Returns a random index below `length`, as for one of the legal moves.
    pub fn random_index(&self, length: usize) -> usize {
        let number = match self.seed {
            None => fastrand::u64(..),
            Some(seed) => {
                let seed = derive_seed(seed, &[&self.player_id, &self.match_id]);
                let later = u64::from(self.move_number.saturating_sub(1));
                fastrand::Rng::with_seed(seed.wrapping_add(later)).u64(..)
            }
        };

        number as usize % length
    }

    /// Returns a turn to try a `choose` with: P01 must choose against P02 in round 2. In round 1
    /// P01 chose even, P02 odd, and P01 won with a 4.
    pub fn sample() -> Turn {
        let players = ["P01".into(), "P02".into()];
        let past = PastMatch {
            match_id: "R1M1".into(),
            round_id: 1,
            game_type: "even_odd".into(),
            opponent_id: "P02".into(),
            result: even_odd::GAME.judge(&players, &alternating(&["even", "odd"]), Some(4)),
        };

        Turn {
            player_id: "P01".into(),
            opponent_id: "P02".into(),
            match_id: "R2M1".into(),
            conversation_id: "conv-r2m1-0123abcd".into(),
            round_id: 2,
            game_type: "even_odd".into(),
            move_number: 1,
            position: (even_odd::GAME.position)(&[]),
            legal_moves: vec!["even".into(), "odd".into()],
            standings: Some(record("P01", std::slice::from_ref(&past))),
            history: Arc::new(vec![past]),
            is_announced: true,
            seed: None,
            deadline: Instant::now() + Duration::from_secs(30),
        }
    }
}
