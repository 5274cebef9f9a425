//! Finished examples of a `choose`, for `league play NAME`.
//!
//! A strategy is a function from a `Turn` to one of its legal moves. Here are those of Even/Odd and
//! those that play any game; `strategies/tic_tac_toe.rs` has others. To add one to the examples,
//! write it and name it in the table `ALL`.

mod tic_tac_toe;

pub use league::player::turn::{PastMatch, Turn};

use league::protocol::Parity;

/// A strategy: from what is known to a move.
pub type Strategy = fn(&Turn) -> String;

/// The examples: which game each plays, and its name.
static ALL: &[(&str, &str, Strategy)] = &[
    ("any", "random", |turn| one_of(turn, &turn.legal_moves)),
    ("even_odd", "even", |_| Parity::Even.to_string()),
    ("even_odd", "odd", |_| Parity::Odd.to_string()),
    ("even_odd", "alternate", alternate),
    ("even_odd", "contrary", contrary),
    ("even_odd", "frequency", frequency),
    ("even_odd", "pattern", pattern),
    ("tic_tac_toe", "blocks", tic_tac_toe::blocks),
    ("tic_tac_toe", "perfect", tic_tac_toe::perfect),
];

/// The strategy of that name, if it plays a game.
pub fn named(game_type: &str, name: &str) -> Option<Strategy> {
    let mut all = ALL.iter().filter(|it| plays(it.0, game_type));
    all.find(|it| it.1 == name).map(|it| it.2)
}

/// The names of the strategies of a game.
pub fn names(game_type: &str) -> Vec<&'static str> {
    let own = ALL.iter().filter(|it| plays(it.0, game_type));
    own.map(|it| it.1).collect()
}

/// The names of all strategies.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|it| it.1)
}

fn plays(own: &str, game_type: &str) -> bool {
    own == "any" || own == game_type
}

/// One of some moves, each as likely.
fn one_of(turn: &Turn, moves: &[String]) -> String {
    moves[turn.random_index(moves.len())].clone()
}

fn opposite(parity: Parity) -> Parity {
    match parity {
        Parity::Even => Parity::Odd,
        Parity::Odd => Parity::Even,
    }
}

/// Chooses otherwise than the opponent will, as far as that is known; else at random.
///
/// The number is a fair coin, so nobody can guess it better than another; but with 3/1/0 scoring
/// two *different* choices are worth 3 points to one of both, 1.5 to each on average, and two equal
/// ones are a draw, worth 1.0. So it pays to differ from somebody who can be predicted. Nothing
/// beats `random`: whatever the other chooses, a coin chooses the same in half of the matches, and
/// in the other half the drawn number is as likely its own parity as the other's. So against a coin
/// every strategy gets what a coin gets, 1.25 points a match. Who chooses so that nobody can
/// predict it gives nobody more.
fn differ(turn: &Turn, predicted: Option<Parity>) -> String {
    let chosen = predicted.map_or_else(|| turn.random(), opposite);
    chosen.to_string()
}

/// What somebody tends to choose, if anything, where each choice weighs `fading` of the one after
/// it.
fn tendency(choices: impl Iterator<Item = Parity>, fading: f64) -> Option<Parity> {
    let weigh = |sum: f64, choice| sum * fading + if choice == Parity::Even { 1.0 } else { -1.0 };
    match choices.fold(0.0, weigh) {
        sum if sum > 0.5 => Some(Parity::Even),
        sum if sum < -0.5 => Some(Parity::Odd),
        _ => None,
    }
}

/// The opposite of our last choice.
fn alternate(turn: &Turn) -> String {
    let last = turn.choices_of(&turn.player_id).last();
    opposite(last.unwrap_or(Parity::Odd)).to_string()
}

/// Predicts a biased opponent. A new one, of whom nothing is known, is taken for one like all
/// others.
fn contrary(turn: &Turn) -> String {
    let mut own = turn.choices_of(&turn.opponent_id).peekable();
    if own.peek().is_some() {
        return differ(turn, tendency(own, 1.0));
    }
    let choice = |past: &PastMatch| *past.result.choices.get(&past.opponent_id)?;
    let all = turn.history.iter().filter_map(choice);
    differ(turn, tendency(all, 1.0))
}

/// Counts what the opponent chose against us, the newest most; so it also follows somebody who
/// changes.
fn frequency(turn: &Turn) -> String {
    differ(turn, tendency(turn.choices_of(&turn.opponent_id), 0.9))
}

/// Looks where the last matches against this opponent have happened before, choices of both and the
/// longest stretch first, and predicts what it chose next then.
fn pattern(turn: &Turn) -> String {
    let both = |past: &PastMatch| {
        let choice = |id| past.result.choices.get(id).copied().flatten();
        Some((choice(&turn.player_id)?, choice(&turn.opponent_id)?))
    };
    let seen: Vec<(Parity, Parity)> = turn.history.iter().filter_map(both).collect();
    let lengths = 1..=LONGEST_PATTERN.min(seen.len());
    let next = lengths.rev().find_map(|length| {
        let (before, last) = (&seen[..seen.len() - 1], &seen[seen.len() - length..]);
        let mut stretches = before.windows(length);
        let at = stretches.rposition(|stretch| stretch == last)?;
        Some(seen[at + length].1)
    });
    differ(turn, next)
}

/// How many matches back `pattern` looks for the same.
const LONGEST_PATTERN: usize = 4;
