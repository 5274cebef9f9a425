//! Finished examples of a `choose`, which a player can be told to use (`--strategy`).
//!
//! A strategy is a function from a `Turn` to one of its legal moves. Here are those of Even/Odd and those that play any
//! game; `strategies/tic_tac_toe.rs` has others. To add one to the examples, write it and name it in the table of its
//! game.

pub mod tic_tac_toe;

pub use crate::player::{Past, Turn};

use crate::games::{self, even_odd};
use crate::protocol::Parity;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A strategy: from what is known to a move.
pub type Strategy = fn(&Turn) -> String;

/// Strategies by name.
pub type Table = [(&'static str, Strategy)];

/// The strategies of any game.
///
/// In Even/Odd `random` is a fair coin, and nothing beats it: whatever the other chooses, a coin chooses the same in half
/// of the matches, and in the other half the drawn number is as likely its own parity as the other's. So against a coin
/// every strategy gets what a coin gets, 1.25 points a match with 3/1/0, and against a second coin this is all there is.
/// To get more one must play somebody who can be predicted. Who chooses so that nobody can predict it gives nobody more.
pub static ANY: &Table = &[("random", random)];

/// The strategies of Even/Odd.
pub static EVEN_ODD: &Table = &[
    ("even", |_| Parity::Even.to_string()),
    ("odd", |_| Parity::Odd.to_string()),
    ("alternate", |turn| alternate(turn).to_string()),
    ("contrary", |turn| contrary(turn).to_string()),
    ("frequency", |turn| frequency(turn).to_string()),
    ("pattern", |turn| pattern(turn).to_string()),
];

/// The games that have strategies of their own.
static OWN: &[(&games::Game, &Table)] = &[
    (&even_odd::GAME, EVEN_ODD),
    (&games::tic_tac_toe::GAME, tic_tac_toe::ALL),
];

/// Which strategies play a game: those of its own, and those of any.
fn table(game_type: &str) -> impl Iterator<Item = &'static (&'static str, Strategy)> {
    let own = OWN.iter().find(|(game, _)| game.game_type == game_type);
    let own = own.map_or(&[][..], |(_, table)| table);
    ANY.iter().chain(own)
}

/// The strategy of that name, if it plays a game.
pub fn named(game_type: &str, name: &str) -> Option<Strategy> {
    let found = table(game_type).find(|(known, _)| *known == name);
    found.map(|(_, strategy)| *strategy)
}

/// The names of the strategies of a game.
pub fn names(game_type: &str) -> Vec<&'static str> {
    table(game_type).map(|(name, _)| *name).collect()
}

/// The names of all strategies.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    let own = OWN.iter().flat_map(|(_, table)| table.iter());
    ANY.iter().chain(own).map(|(name, _)| *name)
}

/// Any legal move, each as likely.
fn random(turn: &Turn) -> String {
    turn.one_of(&turn.legal_moves)
}

fn opposite(parity: Parity) -> Parity {
    if parity == Parity::Even {
        Parity::Odd
    } else {
        Parity::Even
    }
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
        let choice = past.result.choices.get(&past.opponent_id);
        if let Some(Some(parity)) = choice.copied() {
            *seen.entry(parity).or_default() += 1;
        }
    }
    match seen[&Parity::Even].cmp(&seen[&Parity::Odd]) {
        Ordering::Greater => Parity::Odd,
        Ordering::Less => Parity::Even,
        Ordering::Equal => turn.random(),
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
        _ => turn.random(),
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
    next.map_or_else(|| turn.random(), opposite)
}

/// How many matches back `pattern` looks for the same.
const LONGEST_PATTERN: usize = 4;
