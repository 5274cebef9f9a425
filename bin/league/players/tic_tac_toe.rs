//! Strategies for tic-tac-toe: one looks one move ahead; the other looks to the end and cannot be
//! beaten.
//!
//! They read the position to see which squares each player has taken: it shows a free square by its
//! number.

use league::games::tic_tac_toe::{LINES, SQUARES};
use league::player::turn::Turn;

/// Returns one of some moves, each with the same chance.
fn random_move(turn: &Turn, moves: &[String]) -> String {
    moves[turn.random_index(moves.len())].clone()
}

/// Returns true if some squares contain a whole line.
fn has_line(squares: &str) -> bool {
    LINES
        .iter()
        .any(|line| line.split(' ').all(|square| squares.contains(square)))
}

/// Returns the squares with a mark, as `159`.
fn squares_with(turn: &Turn, mark: &str) -> String {
    let mut squares = String::new();
    for (square, shown) in SQUARES.iter().zip(turn.position.split_whitespace()) {
        if shown == mark {
            squares += square;
        }
    }

    squares
}

/// Returns our squares and those of the opponent. X moves first.
fn squares_of_both(turn: &Turn) -> [String; 2] {
    let marks = if turn.move_number.is_multiple_of(2) {
        ["O", "X"]
    } else {
        ["X", "O"]
    };
    marks.map(|mark| squares_with(turn, mark))
}

/// Returns the free squares.
fn free(one: &str, other: &str) -> Vec<&'static str> {
    let mut squares = SQUARES.to_vec();
    squares.retain(|square| !one.contains(square) && !other.contains(square));
    squares
}

/// Completes its own line, else blocks one of the opponent, else moves at random.
pub fn blocks(turn: &Turn) -> String {
    let [own, theirs] = squares_of_both(turn);
    for squares in [&own, &theirs] {
        for square in free(&own, &theirs) {
            if has_line(&format!("{squares}{square}")) {
                return square.into();
            }
        }
    }

    random_move(turn, &turn.legal_moves)
}

/// Looks to the end of the game, and plays one of the best moves at random.
pub fn perfect(turn: &Turn) -> String {
    if turn.move_number == 1 {
        return random_move(turn, &turn.legal_moves); // on an empty board all moves lead to a draw
    }

    let [own, theirs] = squares_of_both(turn);
    let mut best_value = -1;
    let mut best = Vec::new();
    for square in free(&own, &theirs) {
        let value = -outcome(&theirs, &format!("{own}{square}"));
        if value > best_value {
            best_value = value;
            best.clear();
        }
        if value == best_value {
            best.push(square.to_string());
        }
    }

    random_move(turn, &best)
}

/// Returns the outcome for the player to move, if both play as well as they can: 1 if it wins, 0
/// for a draw, -1 if the opponent wins.
fn outcome(own: &str, theirs: &str) -> i32 {
    if has_line(theirs) {
        return -1;
    }

    let mut best = None;
    for square in free(own, theirs) {
        let value = -outcome(theirs, &format!("{own}{square}"));
        if value == 1 {
            return 1; // no move is better
        }
        best = best.max(Some(value));
    }

    best.unwrap_or(0) // a full board is a draw
}
