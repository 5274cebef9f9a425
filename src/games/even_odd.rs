//! Even/Odd: both players choose even or odd at the same time, then a number is drawn. Whoever
//! alone has named its parity wins; if both have, or neither, the match is a draw.
//!
//! The protocol has messages for this game alone, so the game brings its own pair of a call and an
//! answer (`even_odd/messages.rs`); every other game uses the pair in `games/messages.rs`. Read
//! next: `net/retry.rs`, what can go wrong when a player is asked.

mod messages;

use super::{Game, Move, Outcome, Win, moves};
use crate::protocol::Parity;
use std::ops::RangeInclusive;

/// The numbers that can be drawn.
pub const NUMBERS: RangeInclusive<u32> = 1..=10;

/// The game.
pub static GAME: Game = Game {
    game_type: "even_odd",
    at_once: true,
    legal: |moves| match moves.len() {
        2 => vec![],
        _ => vec!["even", "odd"],
    },
    turns: 1,
    draws: Some(NUMBERS),
    winner,
    position: |_| {
        let (least, most) = (NUMBERS.start(), NUMBERS.end());
        format!("A number from {least} to {most} will be drawn: even or odd?")
    },
    messages: &messages::CHOOSE_PARITY,
};

/// Whether a number is even or odd.
pub fn parity(number: u32) -> Parity {
    if number.is_multiple_of(2) {
        Parity::Even
    } else {
        Parity::Odd
    }
}

/// Judges a match in which both have chosen.
pub fn judge(players: [String; 2], choices: [Parity; 2], number: u32) -> Outcome {
    let texts = choices.map(Parity::word);
    GAME.judge(players, moves(&texts), Some(number))
}

fn winner(players: &[String; 2], moves: &[Move], number: u32) -> Win {
    let drawn = parity(number).word();
    let right: Vec<&Move> = moves.iter().filter(|it| it.text == drawn).collect();
    let both = |choice: &str, how: &str| {
        format!("Both chose {choice}, number was {number} ({drawn}) - both {how}")
    };
    match right[..] {
        [one] => {
            let name = &players[one.seat];
            let reason = format!("{name} chose {drawn}, number was {number} ({drawn})");
            (Some(one.seat), reason)
        }
        [] => (None, both(&moves[0].text, "incorrect")),
        _ => (None, both(drawn, "correct")),
    }
}
