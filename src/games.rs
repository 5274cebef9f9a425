//! What a game is, and which games there are. Pure.
//!
//! Referee and manager ask a `Game` what is legal and who has won, and never which game it is. A
//! player knows one game by its name: Even/Odd, which has messages of its own. A new game is one
//! file like `games/even_odd.rs` (read that one next), a `pub mod` and a place in `GAMES` here, and
//! an entry in `config/games/games_registry.json`. What a match is worth in points is in
//! `games/scoring.rs` and `games/outcome.rs`.

pub mod chance;
pub mod even_odd;
pub mod messages;
pub mod outcome;
pub mod replay;
pub mod scoring;
pub mod tic_tac_toe;

pub use chance::mix;
pub use even_odd::{judge, parity};
pub use messages::{CHOOSE_MOVE, Messages};
pub use outcome::{Outcome, forfeit};
pub use replay::{made, moves, reported};

use crate::protocol::{Code, Ending, Refusal};
use crate::wire::cut;
use serde_json::Value;
use std::ops::RangeInclusive;

/// All games that can be played.
pub static GAMES: &[&Game] = &[&even_odd::GAME, &tic_tac_toe::GAME];

/// Their names.
pub fn all() -> impl Iterator<Item = &'static str> {
    GAMES.iter().map(|it| it.game_type)
}

/// The game of that name.
pub fn named(game_type: &str) -> Option<&'static Game> {
    GAMES.iter().copied().find(|it| it.game_type == game_type)
}

/// A move that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Move {
    /// Who made it: 0 is player A, 1 is player B.
    pub seat: usize,
    /// What was played, as the game names it.
    pub text: String,
}

/// Which seat has won, if any, and why in words.
pub type Win = (Option<usize>, String);

/// A game for two players.
pub struct Game {
    /// Its name in messages and files.
    pub game_type: &'static str,
    /// Whether both choose once, at the same time; else they move by turns, player A first.
    pub at_once: bool,
    /// What may be played after these moves; nothing when the game is over.
    pub legal: fn(moves: &[Move]) -> Vec<&'static str>,
    /// How often a match asks for moves at most; once where both choose at once.
    pub turns: u32,
    /// From which numbers one is drawn when all moves are made; nothing in most games.
    pub draws: Option<RangeInclusive<u32>>,
    /// Who has won a game that is over; `drawn` is 0 where no number is drawn.
    pub winner: fn(players: &[String; 2], moves: &[Move], drawn: u32) -> Win,
    /// How it stands after these moves, as a text that a person can read.
    pub position: fn(moves: &[Move]) -> String,
    /// The messages that ask for a move and bring it.
    pub messages: &'static Messages,
}

impl Game {
    /// The seats that are to move now: both, one, or none when the game is over.
    pub fn asked(&self, moves: &[Move]) -> Vec<usize> {
        if (self.legal)(moves).is_empty() {
            return Vec::new();
        }
        if !self.at_once {
            return vec![moves.len() % 2];
        }
        let has_moved = |seat| moves.iter().any(|it| it.seat == seat);
        (0..2).filter(|seat| !has_moved(*seat)).collect()
    }

    /// Judges a move as it came: exactly one of the legal ones, else the code E004
    /// (`protocol/codes.rs`).
    pub fn check(&self, moves: &[Move], came: &Value) -> Result<&'static str, Refusal> {
        one_of(&(self.legal)(moves), self.messages.field, came)
    }

    /// The outcome of a game that was played to its end.
    pub fn judge(&self, players: [String; 2], moves: Vec<Move>, number: Option<u32>) -> Outcome {
        let (winner, reason) = (self.winner)(&players, &moves, number.unwrap_or_default());
        Outcome {
            ending: winner.map_or(Ending::Draw, |_| Ending::Win),
            players,
            moves,
            number,
            winner,
            reason,
        }
    }
}

/// The legal move that came in a field, else E004 with all that are legal.
pub fn one_of<'a>(legal: &[&'a str], field: &str, came: &Value) -> Result<&'a str, Refusal> {
    let found = legal.iter().find(|text| came.as_str() == Some(**text));
    found.copied().ok_or_else(|| {
        let shown = cut(&came.to_string(), 60);
        let problem = format!("got {shown}, must be {}", either(legal));
        Refusal::field(Code::E004, field, problem)
            .with(
                "invalid_choice",
                came.as_str().map_or(shown, |it| cut(it, 60)),
            )
            .with("valid_choices", legal)
    })
}

/// `"1" or "2" or "3"`.
pub fn either(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    quoted.join(" or ")
}
