//! Even/Odd: both players choose even or odd at the same time, then a number is drawn. A player
//! wins if it chose the number's parity and its opponent did not; otherwise the match is a draw.
//! Read next: `referee/match_play.rs`, which plays it.

use super::{Game, Move, MoveMessages, Win};
use crate::protocol::Parity;
use std::ops::RangeInclusive;

/// The numbers from which one is drawn.
pub const NUMBERS: RangeInclusive<u32> = 1..=10;

/// The game.
pub static GAME: Game = Game {
    game_type: "even_odd",
    display_name: "Even/Odd",
    simultaneous: true,
    max_turns: 1,
    number_range: Some(NUMBERS),
    legal_moves,
    winner,
    position,
    messages: MoveMessages::Parity,
};

fn position(_: &[Move]) -> String {
    let (first, last) = (NUMBERS.start(), NUMBERS.end());
    format!("A number from {first} to {last} will be drawn: even or odd?")
}

fn legal_moves(moves: &[Move]) -> Vec<&'static str> {
    if moves.len() == 2 {
        return Vec::new();
    }

    vec!["even", "odd"]
}

fn winner(players: &[String; 2], moves: &[Move], number: u32) -> Win {
    let drawn = parity(number).as_str();
    let correct: Vec<&Move> = moves.iter().filter(|played| played.text == drawn).collect();

    // Exactly one player was right: it wins.
    if let [played] = correct[..] {
        let player = &players[played.seat];
        return Win {
            seat: Some(played.seat),
            reason: format!("{player} chose {drawn}, number was {number} ({drawn})"),
        };
    }

    // Both or neither were right: a draw.
    let choice = &moves[0].text;
    let result = if correct.is_empty() {
        "incorrect"
    } else {
        "correct"
    };
    Win {
        seat: None,
        reason: format!("Both chose {choice}, number was {number} ({drawn}) - both {result}"),
    }
}

/// Returns the parity of a number.
pub fn parity(number: u32) -> Parity {
    if number.is_multiple_of(2) {
        Parity::Even
    } else {
        Parity::Odd
    }
}
