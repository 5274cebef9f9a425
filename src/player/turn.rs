//! What a player knows when it must choose: its turn, with every match that it has played so far.
//!
//! A `choose` is a function from a `Turn` to even or odd, or in other games to one of its legal
//! moves. Whoever writes one can try it on `Turn::sample()`, without a league. Finished examples
//! stand in `src/extras/strategies.rs`.

use crate::games::{self, even_odd, mix};
use crate::object;
use crate::protocol::{Ending, GameResult, Parity, Tally};
use std::sync::Arc;
use std::time::{Duration, Instant};

object! {
    /// A match that this player has played, as its history keeps it.
    Past { match_id: String, conversation_id: String, opponent_id: String, result: GameResult, }
}

/// What a player has won, drawn and lost in some matches.
pub fn record(player_id: &str, matches: &[Past]) -> Tally {
    let mut record = Tally::default();
    for past in matches {
        match past.result.status {
            Ending::Draw => record.draws += 1,
            _ if past.result.winner_player_id.as_deref() == Some(player_id) => record.wins += 1,
            _ => record.losses += 1,
        }
    }
    record
}

/// What a player knows when it must choose.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Turn {
    pub player_id: String,
    pub opponent_id: String,
    pub match_id: String,
    pub round_id: u32,
    pub game_type: String,
    /// Counts the moves of the match from 1; always 1 in Even/Odd.
    pub move_number: u32,
    /// How the match stands, for people to read.
    pub position: String,
    /// What may be chosen.
    pub legal_moves: Vec<String>,
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

    /// What a player has chosen in our matches, oldest first; a match in which it failed to choose
    /// is left out.
    pub fn choices_of<'a>(&'a self, player_id: &'a str) -> impl Iterator<Item = Parity> + 'a {
        let choice = move |past: &Past| *past.result.choices.get(player_id)?;
        self.history.iter().filter_map(choice)
    }

    /// What a player has played in our matches, oldest first, whatever the game: its choices too.
    pub fn moves_of(&self, player_id: &str) -> Vec<String> {
        let results = self.history.iter().map(|past| &past.result);
        let made = results.flat_map(|it| games::made(&it.choices, &it.moves));
        let own = made.filter(|(id, _)| *id == player_id);
        own.map(|(_, text)| text).collect()
    }

    /// Even or odd, each as likely. With a seed the choice is the same in every run, whatever else
    /// happens meanwhile.
    pub fn random(&self) -> Parity {
        match self.roll(2) {
            0 => Parity::Even,
            _ => Parity::Odd,
        }
    }

    /// One of some moves, each as likely, and with a seed the same in every run.
    pub fn one_of(&self, moves: &[String]) -> String {
        let chosen = moves.get(self.roll(moves.len()));
        chosen.cloned().unwrap_or_default()
    }

    /// A number below `sides`, each as likely.
    fn roll(&self, sides: usize) -> usize {
        let number = match self.seed {
            Some(seed) => {
                let own = mix(seed, &[&self.player_id, &self.match_id]);
                let later = u64::from(self.move_number.saturating_sub(1));
                fastrand::Rng::with_seed(own.wrapping_add(later)).u64(..)
            }
            None => fastrand::u64(..),
        };
        number as usize % sides.max(1)
    }

    /// A turn to try a `choose` with: P01 must choose against P02 in round 2. In round 1 they met
    /// already: P01 chose even, P02 odd, and P01 won with a 4.
    pub fn sample() -> Turn {
        let [us, them] = ["P01", "P02"].map(String::from);
        let players = [us.clone(), them.clone()];
        let outcome = games::judge(players, [Parity::Even, Parity::Odd], 4);
        let past = Past {
            match_id: "R1M1".into(),
            conversation_id: "conv-r1m1-0123abcd".into(),
            opponent_id: them.clone(),
            result: outcome.for_players(),
        };
        Turn {
            player_id: us,
            opponent_id: them,
            match_id: "R2M1".into(),
            round_id: 2,
            game_type: even_odd::GAME.game_type.into(),
            move_number: 1,
            position: (even_odd::GAME.position)(&[]),
            legal_moves: [Parity::Even, Parity::Odd].map(|it| it.to_string()).into(),
            standings: Some(Tally {
                wins: 1,
                ..Tally::default()
            }),
            history: Arc::new(vec![past]),
            seed: None,
            deadline: Instant::now() + Duration::from_secs(30),
        }
    }
}
