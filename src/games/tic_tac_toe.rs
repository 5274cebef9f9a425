//! Tic-tac-toe: by turns both put their mark on a free field of nine, player A an X, player B an O.
//! Whoever has three in a row wins; a full board without such a row is a draw.
//!
//! The fields are named as they are numbered on the empty board: 1 to 3 above, 7 to 9 below.

use super::{CHOOSE_MOVE, Game, Move, Win};

/// The fields.
pub const FIELDS: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];

const ROWS: [&str; 8] = ["123", "456", "789", "147", "258", "369", "159", "357"];

/// The game.
pub static GAME: Game = Game {
    game_type: "tic_tac_toe",
    at_once: false,
    legal,
    turns: 9,
    draws: None,
    winner,
    position,
    messages: &CHOOSE_MOVE,
};

/// The row that is among some fields, if any: `123` among `15283`.
pub fn row(fields: &str) -> Option<&'static str> {
    let is_filled = |row: &&str| row.chars().all(|field| fields.contains(field));
    ROWS.into_iter().find(is_filled)
}

/// Who has taken a field, if anybody.
fn owner(moves: &[Move], field: &str) -> Option<usize> {
    let taken = moves.iter().find(|it| it.text == field);
    taken.map(|it| it.seat)
}

/// The row that a seat has filled, if any.
fn row_of(moves: &[Move], seat: usize) -> Option<&'static str> {
    let own = moves.iter().filter(|it| it.seat == seat);
    row(&own.map(|it| &*it.text).collect::<String>())
}

fn legal(moves: &[Move]) -> Vec<&'static str> {
    if row_of(moves, 0).or(row_of(moves, 1)).is_some() {
        return Vec::new();
    }
    let is_free = |field: &&str| owner(moves, field).is_none();
    FIELDS.into_iter().filter(is_free).collect()
}

fn winner(players: &[String; 2], moves: &[Move], _: u32) -> Win {
    for (seat, name) in players.iter().enumerate() {
        if let Some(row) = row_of(moves, seat) {
            let fields: Vec<String> = row.chars().map(String::from).collect();
            let reason = format!("{name} has three in a row: {}", fields.join(", "));
            return (Some(seat), reason);
        }
    }
    (
        None,
        "the board is full, and nobody has three in a row".into(),
    )
}

/// Three lines, as `X 2 3`: a free field is shown by its number.
fn position(moves: &[Move]) -> String {
    let shown = FIELDS.map(|field| match owner(moves, field) {
        Some(0) => "X",
        Some(_) => "O",
        None => field,
    });
    let lines: Vec<String> = shown.chunks(3).map(|line| line.join(" ")).collect();
    lines.join("\n")
}
