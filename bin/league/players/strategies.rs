//! Finished examples of a `choose`, for `league play NAME`.
//!
//! A strategy is a function from a `Turn` to one of its legal moves. This file has those for
//! Even/Odd and those that play any game; `tic_tac_toe.rs` has others. To add a
//! strategy, write it and add a row to the table `EXAMPLES`.

pub use league::player::turn::{PastMatch, Turn};

use crate::players::tic_tac_toe;
use league::protocol::Parity;

/// A strategy: returns a move.
pub type Strategy = fn(&Turn) -> String;

/// A row of the table of strategies.
struct Example {
    /// The game that it plays, or `ANY_GAME`.
    game_type: &'static str,
    name: &'static str,
    choose: Strategy,
}

const ANY_GAME: &str = "any";

/// Returns a row of the table.
const fn example(game_type: &'static str, name: &'static str, choose: Strategy) -> Example {
    Example {
        game_type,
        name,
        choose,
    }
}

static EXAMPLES: &[Example] = &[
    example(ANY_GAME, "random", random),
    example("even_odd", "even", |_| Parity::Even.to_string()),
    example("even_odd", "odd", |_| Parity::Odd.to_string()),
    example("even_odd", "alternate", alternate),
    example("even_odd", "contrary", contrary),
    example("even_odd", "frequency", frequency),
    example("even_odd", "pattern", pattern),
    example("tic_tac_toe", "blocks", tic_tac_toe::blocks),
    example("tic_tac_toe", "perfect", tic_tac_toe::perfect),
];

/// Maximum number of matches that `pattern` compares.
const MAX_PATTERN: usize = 4;

impl Example {
    fn plays(&self, game_type: &str) -> bool {
        self.game_type == ANY_GAME || self.game_type == game_type
    }
}

/// Returns the strategy of that name, if it plays a game.
pub fn find(game_type: &str, name: &str) -> Option<Strategy> {
    let mut examples = EXAMPLES.iter();
    let example = examples.find(|example| example.name == name && example.plays(game_type));
    example.map(|example| example.choose)
}

/// Returns the names of the strategies that play a game.
pub fn names(game_type: &str) -> Vec<&'static str> {
    let examples = EXAMPLES.iter().filter(|example| example.plays(game_type));
    examples.map(|example| example.name).collect()
}

/// Returns the names of all strategies.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|example| example.name)
}

fn opposite(parity: Parity) -> Parity {
    match parity {
        Parity::Even => Parity::Odd,
        Parity::Odd => Parity::Even,
    }
}

/// Returns the opposite of the opponent's predicted choice, or a random choice without a
/// prediction.
///
/// The number is a fair coin, so no player can guess it better than another. With 3/1/0 scoring two
/// *different* choices are worth 3 points to one of the players, 1.5 to each on average; two equal
/// choices are a draw, worth 1.0. So it pays to differ from an opponent that can be predicted.
/// Nothing beats `random`: a coin chooses the same as its opponent in half of the matches, and in
/// the other half the drawn number decides between them. So against a coin every strategy gets 1.25
/// points a match, as the coin does. A player that cannot be predicted gives no opponent more than
/// that.
fn differ(turn: &Turn, predicted: Option<Parity>) -> String {
    let choice = predicted.map_or_else(|| turn.random(), opposite);
    choice.to_string()
}

/// Returns the parity that most of some choices have, or none if they are balanced. Each choice has
/// `fading` times the weight of the next one.
fn tendency(choices: impl Iterator<Item = Parity>, fading: f64) -> Option<Parity> {
    let mut sum = 0.0;
    for choice in choices {
        sum *= fading;
        sum += if choice == Parity::Even { 1.0 } else { -1.0 };
    }

    if sum > 0.5 {
        Some(Parity::Even)
    } else if sum < -0.5 {
        Some(Parity::Odd)
    } else {
        None
    }
}

/// Plays any legal move.
fn random(turn: &Turn) -> String {
    turn.legal_moves[turn.random_index(turn.legal_moves.len())].clone()
}

/// Plays the opposite of its own last choice.
fn alternate(turn: &Turn) -> String {
    let last = turn.choices_of(&turn.player_id).last();
    opposite(last.unwrap_or(Parity::Odd)).to_string()
}

/// Predicts that the opponent repeats its most frequent choice. A new opponent is predicted by the
/// choices of all others.
fn contrary(turn: &Turn) -> String {
    let mut choices = turn.choices_of(&turn.opponent_id).peekable();
    if choices.peek().is_some() {
        return differ(turn, tendency(choices, 1.0));
    }

    let all = turn.history.iter();
    let others = all.filter_map(|past| choice(past, &past.opponent_id));
    differ(turn, tendency(others, 1.0))
}

/// Predicts the most frequent choice of the opponent in the last matches, so it also follows an
/// opponent that changes.
fn frequency(turn: &Turn) -> String {
    differ(turn, tendency(turn.choices_of(&turn.opponent_id), 0.9))
}

/// Searches the history for the choices of the last matches against this opponent, the longest
/// sequence first, and predicts the choice that came next then.
fn pattern(turn: &Turn) -> String {
    let mut rounds = Vec::new();
    for past in turn.history.iter() {
        if let Some(own) = choice(past, &turn.player_id)
            && let Some(theirs) = choice(past, &turn.opponent_id)
        {
            rounds.push([own, theirs]);
        }
    }

    for length in (1..=MAX_PATTERN.min(rounds.len())).rev() {
        let last = &rounds[rounds.len() - length..];
        let mut earlier = rounds[..rounds.len() - 1].windows(length);
        if let Some(start) = earlier.rposition(|sequence| sequence == last) {
            let [_, next] = rounds[start + length];
            return differ(turn, Some(next));
        }
    }

    differ(turn, None)
}

/// Returns the choice of a player in a past match.
fn choice(past: &PastMatch, player_id: &str) -> Option<Parity> {
    past.result.choices.get(player_id).copied().flatten()
}
