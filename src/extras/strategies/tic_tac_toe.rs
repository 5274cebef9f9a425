//! Strategies for tic-tac-toe: one that looks one move ahead, and one that looks to the end and cannot be beaten.
//!
//! They read the board from the position, in which a free field is shown by its number, as in `X 2 3`.

use super::{Strategy, Turn};

/// All of them by name.
pub static ALL: &[(&str, Strategy)] = &[("blocks", blocks), ("perfect", perfect)];

const ROWS: [[usize; 3]; 8] = [
    [0, 1, 2],
    [3, 4, 5],
    [6, 7, 8],
    [0, 3, 6],
    [1, 4, 7],
    [2, 5, 8],
    [0, 4, 8],
    [2, 4, 6],
];

/// Nine fields: `X`, `O`, or free.
type Board = [Option<char>; 9];

/// The board of a turn.
fn board(turn: &Turn) -> Board {
    let mut board = [None; 9];
    for (field, shown) in board.iter_mut().zip(turn.position.split_whitespace()) {
        *field = shown.chars().next().filter(|mark| "XO".contains(*mark));
    }
    board
}

/// Whose turn it is, and who the other is. X begins.
fn marks(turn: &Turn) -> [char; 2] {
    if turn.move_number.is_multiple_of(2) {
        ['O', 'X']
    } else {
        ['X', 'O']
    }
}

fn has_row(board: &Board, mark: char) -> bool {
    let is_filled = |row: &[usize; 3]| row.iter().all(|field| board[*field] == Some(mark));
    ROWS.iter().any(is_filled)
}

/// The free fields of a board.
fn free(board: &Board) -> impl Iterator<Item = usize> {
    let board = *board;
    (0..9).filter(move |field| board[*field].is_none())
}

/// The same board with one more mark.
fn with(board: &Board, field: usize, mark: char) -> Board {
    let mut next = *board;
    next[field] = Some(mark);
    next
}

/// How a field is named.
fn name(field: usize) -> String {
    (field + 1).to_string()
}

/// Fills a row of its own, else blocks one of the opponent's, else moves at random.
fn blocks(turn: &Turn) -> String {
    let board = board(turn);
    for mark in marks(turn) {
        if let Some(field) = free(&board).find(|field| has_row(&with(&board, *field, mark), mark)) {
            return name(field);
        }
    }
    turn.one_of(&turn.legal_moves)
}

/// Looks to the end of the game, and moves at random among the moves that are as good as any.
fn perfect(turn: &Turn) -> String {
    let (board, [us, them]) = (board(turn), marks(turn));
    if free(&board).count() == 9 {
        return turn.one_of(&turn.legal_moves); // on an empty board every move is good for a draw
    }
    let values = free(&board).map(|field| (field, -worth(&with(&board, field, us), them, us)));
    let values: Vec<(usize, i32)> = values.collect();
    let best = values.iter().map(|(_, value)| *value).max();
    let good = values.iter().filter(|(_, value)| Some(*value) == best);
    let good: Vec<String> = good.map(|(field, _)| name(*field)).collect();
    turn.one_of(&good)
}

/// What a board is worth to the one whose turn it is, if both play as well as they can: 1 if it wins, 0 if nobody does,
/// -1 if the other wins.
fn worth(board: &Board, us: char, them: char) -> i32 {
    if has_row(board, them) {
        return -1;
    }
    let mut best = None;
    for field in free(board) {
        let value = -worth(&with(board, field, us), them, us);
        if value == 1 {
            return 1; // there is nothing better
        }
        best = best.max(Some(value));
    }
    best.unwrap_or(0) // a full board is a draw
}
