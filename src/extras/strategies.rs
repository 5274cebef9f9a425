//! What a strategy knows when it must choose, and finished examples that a player can be told to use (`--strategy`).
//!
//! A strategy is a function from a `Turn` to even or odd. To add one to the examples, write it and name it in `ALL`.

use crate::games::mix;
use crate::object;
use crate::protocol::{Ending, GameResult, Parity, Tally};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

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
    /// Our record in the league, if the referee told it.
    pub standings: Option<Tally>,
    /// Every match of ours so far, oldest first.
    pub history: Arc<Vec<Past>>,
    /// The example that `--strategy` names, else `random`.
    pub strategy: String,
    /// Makes random choices repeatable.
    pub seed: Option<u64>,
    /// When the answer must be out.
    pub deadline: Instant,
}

impl Turn {
    /// How long there is still to think.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Plays the example that `--strategy` names, else `random`.
    pub fn example(&self) -> Parity {
        named(&self.strategy).unwrap_or(random)(self)
    }

    /// A turn to try a strategy with: P01 chooses against P02 in round 2. In round 1 they met already: P01 chose even,
    /// P02 odd, and P01 won with a 4.
    pub fn sample() -> Turn {
        let [us, them] = ["P01", "P02"].map(String::from);
        let choices = [(us.clone(), Parity::Even), (them.clone(), Parity::Odd)];
        let result = GameResult {
            status: Ending::Win,
            winner_player_id: Some(us.clone()),
            drawn_number: Some(4),
            number_parity: Some(Parity::Even),
            choices: choices
                .into_iter()
                .map(|(player_id, parity)| (player_id, Some(parity)))
                .collect(),
            moves: None,
            reason: Some("P01 chose even, number was 4 (even)".into()),
        };
        let (match_id, conversation_id) = ("R1M1".into(), "conv-r1m1-0123abcd".into());
        let past = Past {
            match_id,
            conversation_id,
            opponent_id: them.clone(),
            result,
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
            strategy: "random".into(),
            seed: None,
            deadline: Instant::now() + Duration::from_secs(30),
        }
    }

    /// What somebody has chosen in our matches, oldest first.
    pub fn choices_of<'a>(&'a self, player_id: &'a str) -> impl Iterator<Item = Parity> + 'a {
        self.history
            .iter()
            .filter_map(move |past| *past.result.choices.get(player_id)?)
    }
}

/// A strategy: from what is known to a choice.
pub type Strategy = fn(&Turn) -> Parity;

/// All strategies by name.
pub const ALL: &[(&str, Strategy)] = &[
    ("random", random),
    ("even", |_| Parity::Even),
    ("odd", |_| Parity::Odd),
    ("alternate", alternate),
    ("contrary", contrary),
    ("frequency", frequency),
    ("pattern", pattern),
    ("coin", coin),
];

/// The strategy of that name.
pub fn named(name: &str) -> Option<Strategy> {
    ALL.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, strategy)| *strategy)
}

fn opposite(parity: Parity) -> Parity {
    if parity == Parity::Even {
        Parity::Odd
    } else {
        Parity::Even
    }
}

/// Either, as likely. With a seed: the same in every run, whatever else happens meanwhile.
fn random(turn: &Turn) -> Parity {
    let even = match turn.seed {
        Some(seed) => {
            fastrand::Rng::with_seed(mix(seed, &[&turn.player_id, &turn.match_id])).bool()
        }
        None => fastrand::bool(),
    };
    if even { Parity::Even } else { Parity::Odd }
}

/// The opposite of our last choice.
fn alternate(turn: &Turn) -> Parity {
    turn.choices_of(&turn.player_id)
        .last()
        .map_or(Parity::Even, opposite)
}

/// Predicts a biased opponent and picks the opposite. The number is a fair coin, so nobody can guess it better
/// than another; but with 3/1/0 scoring two *different* choices are worth 3 points to one of both, 1.5 to each on
/// average, and two equal ones are a draw, worth 1.0. So it pays to differ.
fn contrary(turn: &Turn) -> Parity {
    let mut seen = BTreeMap::from([(Parity::Even, 0), (Parity::Odd, 0)]);
    let known = turn.choices_of(&turn.opponent_id).next().is_some();
    for past in turn
        .history
        .iter()
        .filter(|past| !known || past.opponent_id == turn.opponent_id)
    {
        // Nothing is known of a new opponent: take it for one like all others.
        if let Some(parity) = past
            .result
            .choices
            .get(&past.opponent_id)
            .copied()
            .flatten()
        {
            *seen.entry(parity).or_default() += 1;
        }
    }
    match seen[&Parity::Even].cmp(&seen[&Parity::Odd]) {
        std::cmp::Ordering::Greater => Parity::Odd,
        std::cmp::Ordering::Less => Parity::Even,
        std::cmp::Ordering::Equal => random(turn),
    }
}

/// Counts what the opponent chose against us, the newest most: each choice weighs nine tenths of the one after it. Then
/// the opposite of what it favours; so it also follows somebody who changes.
fn frequency(turn: &Turn) -> Parity {
    let weigh =
        |sum: f64, choice: Parity| sum * 0.9 + if choice == Parity::Even { 1.0 } else { -1.0 };
    match turn.choices_of(&turn.opponent_id).fold(0.0, weigh) {
        sum if sum > 0.5 => Parity::Odd,
        sum if sum < -0.5 => Parity::Even,
        _ => random(turn),
    }
}

/// Looks where the last matches against this opponent have happened before, choices of both and the longest stretch
/// first, and takes the opposite of what it chose next then.
fn pattern(turn: &Turn) -> Parity {
    let chosen = |past: &Past| {
        let choice = |id| past.result.choices.get(id).copied().flatten();
        Some((choice(&turn.player_id)?, choice(&turn.opponent_id)?))
    };
    let with_it = turn
        .history
        .iter()
        .filter(|past| past.opponent_id == turn.opponent_id);
    let seen: Vec<(Parity, Parity)> = with_it.filter_map(chosen).collect();
    let next = (1..=LONGEST_PATTERN.min(seen.len()))
        .rev()
        .find_map(|length| {
            let (before, last) = (&seen[..seen.len() - 1], &seen[seen.len() - length..]);
            let at = before
                .windows(length)
                .rposition(|stretch| stretch == last)?;
            Some(seen[at + length].1)
        });
    next.map_or_else(|| random(turn), opposite)
}

/// How many matches back `pattern` looks for the same.
const LONGEST_PATTERN: usize = 4;

/// A fair coin, and why nothing beats it: whatever the other chooses, a coin chooses the same in half of the matches, and
/// in the other half the drawn number is as likely its own parity as the other's. So against a coin every strategy gets
/// what a coin gets, 1.25 points a match with 3/1/0, and against a second coin this is all there is. To get more one
/// must play somebody who can be predicted. Who chooses so that nobody can predict it gives nobody more.
fn coin(turn: &Turn) -> Parity {
    random(turn)
}
