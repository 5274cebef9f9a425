//! What a player knows when it must choose: its turn, with every match that it has played so far.
//!
//! A `choose` is a function from a `Turn` to even or odd. Whoever writes one can try it on `Turn::sample()`, without a
//! league. Finished examples stand in `src/extras/strategies.rs`.

use crate::games::mix;
use crate::object;
use crate::protocol::{Ending, GameResult, Parity, Tally};
use std::sync::Arc;
use std::time::{Duration, Instant};

object! {
    /// A match that this player has played, as its history keeps it.
    Past { match_id: String, conversation_id: String, opponent_id: String, result: GameResult, }
}

/// What a player knows when it must choose.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Turn {
    pub player_id: String,
    pub opponent_id: String,
    pub match_id: String,
    pub round_id: u32,
    /// Our wins, draws and losses in the league, if the referee told them.
    pub standings: Option<Tally>,
    /// Every match of ours so far, oldest first.
    pub history: Arc<Vec<Past>>,
    /// What makes random choices repeatable (`--seed`).
    pub seed: Option<u64>,
    /// When the answer must be out.
    pub deadline: Instant,
}

impl Turn {
    /// How long there is still to think.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// What a player has chosen in our matches, oldest first; a match in which it failed to choose is left out.
    pub fn choices_of<'a>(&'a self, player_id: &'a str) -> impl Iterator<Item = Parity> + 'a {
        let choice = move |past: &Past| *past.result.choices.get(player_id)?;
        self.history.iter().filter_map(choice)
    }

    /// Even or odd, each as likely. With a seed the choice is the same in every run, whatever else happens meanwhile.
    pub fn random(&self) -> Parity {
        let is_even = match self.seed {
            Some(seed) => {
                let own = mix(seed, &[&self.player_id, &self.match_id]);
                fastrand::Rng::with_seed(own).bool()
            }
            None => fastrand::bool(),
        };
        if is_even { Parity::Even } else { Parity::Odd }
    }

    /// A turn to try a `choose` with: P01 must choose against P02 in round 2. In round 1 they met already: P01 chose
    /// even, P02 odd, and P01 won with a 4.
    pub fn sample() -> Turn {
        let [us, them] = ["P01", "P02"].map(String::from);
        let choices = [
            (us.clone(), Some(Parity::Even)),
            (them.clone(), Some(Parity::Odd)),
        ];
        let past = Past {
            match_id: "R1M1".into(),
            conversation_id: "conv-r1m1-0123abcd".into(),
            opponent_id: them.clone(),
            result: GameResult {
                status: Ending::Win,
                winner_player_id: Some(us.clone()),
                drawn_number: Some(4),
                number_parity: Some(Parity::Even),
                choices: choices.into(),
                moves: None,
                reason: Some("P01 chose even, number was 4 (even)".into()),
            },
        };
        Turn {
            player_id: us,
            opponent_id: them,
            match_id: "R2M1".into(),
            round_id: 2,
            standings: Some(Tally {
                wins: 1,
                losses: 0,
                draws: 0,
            }),
            history: Arc::new(vec![past]),
            seed: None,
            deadline: Instant::now() + Duration::from_secs(30),
        }
    }
}
