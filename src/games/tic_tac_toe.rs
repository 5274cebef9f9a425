//! Tic-tac-toe: the players take turns to mark a free square of nine, player A with X, player B
//! with O. The first with three in a row wins; a full board without such a row is a draw.
//!
//! The squares are numbered from the top left: 1 to 3, 4 to 6, 7 to 9.

use super::{Game, Move, MoveMessages, Win};

/// The squares.
pub const SQUARES: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
/// The lines that win.
pub const LINES: [&str; 8] = [
    "1 2 3", "4 5 6", "7 8 9", "1 4 7", "2 5 8", "3 6 9", "1 5 9", "3 5 7",
];

/// The game.
pub static GAME: Game = Game {
    game_type: "tic_tac_toe",
    display_name: "Tic-tac-toe",
    simultaneous: false,
    max_turns: 9,
    number_range: None,
    legal_moves,
    winner,
    position,
    messages: MoveMessages::Move,
};

/// Returns the seat that has marked a square.
fn owner(moves: &[Move], square: &str) -> Option<usize> {
    let played = moves.iter().find(|played| played.text == square)?;
    Some(played.seat)
}

/// Returns the line that a player has filled.
fn filled_line(moves: &[Move], seat: usize) -> Option<&'static str> {
    LINES.into_iter().find(|line| {
        let mut squares = line.split(' ');
        squares.all(|square| owner(moves, square) == Some(seat))
    })
}

fn legal_moves(moves: &[Move]) -> Vec<&'static str> {
    let mut squares = SQUARES.to_vec();
    squares.retain(|square| owner(moves, square).is_none());
    if filled_line(moves, 0).is_some() || filled_line(moves, 1).is_some() {
        squares.clear();
    }
    squares
}

fn winner(players: &[String; 2], moves: &[Move], _: u32) -> Win {
    for (seat, player) in players.iter().enumerate() {
        if let Some(line) = filled_line(moves, seat) {
            return Win {
                seat: Some(seat),
                reason: format!("{player} has three in a row: {}", line.replace(' ', ", ")),
            };
        }
    }

    Win {
        seat: None,
        reason: "the board is full, and no player has three in a row".into(),
    }
}

/// Returns three lines like `X 2 3`, where a free square is shown by its number.
fn position(moves: &[Move]) -> String {
    let marks = SQUARES.map(|square| match owner(moves, square) {
        Some(0) => "X",
        Some(_) => "O",
        None => square,
    });
    let lines: Vec<String> = marks.chunks(3).map(|line| line.join(" ")).collect();
    lines.join("\n")
}
