//! What a game is, and which games there are.
//!
//! The referee and the manager ask a `Game` which moves are legal and who has won; they do not need
//! to know which game it is. To add a game, write one file like `games/even_odd.rs` (read that one
//! next), add it to `GAMES` and to `config/games/games_registry.json`, which describes the games
//! for other programs. `games/outcome.rs` has the result of a match, its points, and the check of a
//! reported one.

pub mod even_odd;
pub mod outcome;
pub mod tic_tac_toe;

pub use even_odd::parity;
pub use outcome::{
    Scoring, TieBreak, alternating, game_result, match_result, moves_by_seat, points, result_status,
};

use crate::protocol::{
    ChooseMoveResponse, ChooseParityResponse, ErrorCode, GameResult, ProtocolError, ResultStatus,
};
use crate::values::{derive_seed, quoted_list, truncate};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::RangeInclusive;

/// All games that can be played.
pub static GAMES: &[&Game] = &[&even_odd::GAME, &tic_tac_toe::GAME];

/// Returns the names of all games.
pub fn names() -> Vec<&'static str> {
    GAMES.iter().map(|game| game.game_type).collect()
}

/// Returns the game of that name.
pub fn find(game_type: &str) -> Option<&'static Game> {
    GAMES
        .iter()
        .find(|game| game.game_type == game_type)
        .copied()
}

/// A game for two players.
pub struct Game {
    /// Its name in messages and files.
    pub game_type: &'static str,
    /// Its name for people.
    pub display_name: &'static str,
    /// True if both players move at the same time. Otherwise they take turns, player A first.
    pub simultaneous: bool,
    /// Maximum number of times that a match asks for moves, from which the manager computes the time
    /// limit of a match.
    ///
    /// It does not end the game, `legal_moves` does: so a 3 does not turn Even/Odd into a best of
    /// three. That is a game of its own, with its rules in `legal_moves` and `winner`. To let each
    /// pair meet more often, change `cycles` in the league file.
    pub max_turns: u32,
    /// The numbers from which one is drawn after the last move, if the game draws one.
    pub number_range: Option<RangeInclusive<u32>>,
    /// Returns the moves that are legal after these moves, or none if the game is over.
    pub legal_moves: fn(moves: &[Move]) -> Vec<&'static str>,
    /// Returns the winner of a game that is over. `number` is 0 if the game draws none.
    pub winner: fn(players: &[String; 2], moves: &[Move], number: u32) -> Win,
    /// Describes the position after these moves, for people.
    pub position: fn(moves: &[Move]) -> String,
    /// The messages that ask for a move and answer with it.
    pub messages: MoveMessages,
}

/// The messages that ask for a move and answer with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MoveMessages {
    /// CHOOSE_PARITY_CALL and CHOOSE_PARITY_RESPONSE, only for Even/Odd. A result has the moves in
    /// `choices`.
    Parity,
    /// CHOOSE_MOVE_CALL and CHOOSE_MOVE_RESPONSE, for every other game. A result has the moves in
    /// `moves`.
    Move,
}

impl MoveMessages {
    /// Returns the method of the question, and the `message_type` of the answer.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            MoveMessages::Parity => ("choose_parity", ChooseParityResponse::NAME),
            MoveMessages::Move => ("choose_move", ChooseMoveResponse::NAME),
        }
    }

    /// Returns the field of the answer that contains the move.
    pub fn field(self) -> &'static str {
        match self {
            MoveMessages::Parity => "parity_choice",
            MoveMessages::Move => "move",
        }
    }
}

/// A move that was played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The player: 0 is player A, 1 is player B.
    pub seat: usize,
    /// The move, one of the legal ones.
    pub text: String,
}

/// The winner of a game.
pub struct Win {
    /// The winner's seat, or `None` for a draw.
    pub seat: Option<usize>,
    /// The explanation that the players read.
    pub reason: String,
}

impl Game {
    /// Returns the seats that must move now; none if the game is over.
    pub fn players_to_move(&self, moves: &[Move]) -> Vec<usize> {
        if (self.legal_moves)(moves).is_empty() {
            return Vec::new();
        }
        if !self.simultaneous {
            return vec![moves.len() % 2];
        }

        // A player that has moved waits for its opponent.
        let counts = [0, 1].map(|seat| moves.iter().filter(|played| played.seat == seat).count());
        let mut seats = vec![0, 1];
        seats.retain(|seat| counts[*seat] <= counts[1 - *seat]);
        seats
    }

    /// Checks a move that was received: it must be one of the legal moves.
    pub fn parse_move(
        &self,
        moves: &[Move],
        received: &Value,
    ) -> Result<&'static str, ProtocolError> {
        parse_choice(&(self.legal_moves)(moves), self.messages.field(), received)
    }

    /// Draws a number, if the game draws one. With a seed it depends on the seed and the match id
    /// only, so that neither the order of the matches nor the referee changes it.
    pub fn draw(&self, seed: Option<u64>, match_id: &str) -> Option<u32> {
        let range = self.number_range.clone()?;
        let mut random = match seed {
            Some(seed) => fastrand::Rng::with_seed(derive_seed(seed, &["draw", match_id])),
            None => fastrand::Rng::new(),
        };
        Some(random.u32(range))
    }

    /// Returns the result of a game that is over. It begins with the choices or moves of both
    /// players (`result_without_winner`), and adds who has won.
    pub fn judge(&self, players: &[String; 2], moves: &[Move], number: Option<u32>) -> GameResult {
        let win = (self.winner)(players, moves, number.unwrap_or_default());
        GameResult {
            status: match win.seat {
                Some(_) => ResultStatus::Win,
                None => ResultStatus::Draw,
            },
            winner_player_id: win.seat.map(|seat| players[seat].clone()),
            drawn_number: number,
            number_parity: number.map(parity),
            reason: Some(win.reason),
            ..self.result_without_winner(players, moves)
        }
    }
}

/// Returns the legal move that was received in a field, or the error E004 (`InvalidChoice`) with
/// all legal moves.
pub fn parse_choice<'a>(
    legal: &[&'a str],
    field: &str,
    received: &Value,
) -> Result<&'a str, ProtocolError> {
    for text in legal {
        if received.as_str() == Some(text) {
            return Ok(text);
        }
    }

    let quoted = truncate(&received.to_string(), 60);
    let problem = format!("got {quoted}, must be {}", quoted_list(legal));
    let choice = received.as_str().map_or(quoted, |text| truncate(text, 60));
    Err(
        ProtocolError::field(ErrorCode::InvalidChoice, field, problem)
            .with_context("invalid_choice", choice)
            .with_context("valid_choices", legal),
    )
}
