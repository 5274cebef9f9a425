//! Strategies for tic-tac-toe: one that looks one move ahead, and one that looks to the end and
//! cannot be beaten.
//!
//! They read from the position which fields each side has taken: a free field is shown there by its
//! number.

use super::Turn;
use league::games::tic_tac_toe::{LINES, SQUARES as FIELDS};

/// The row that is among some fields, if any.
fn row(fields: &str) -> Option<&'static str> {
    let is_filled = |line: &&str| line.split(' ').all(|field| fields.contains(field));
    LINES.into_iter().find(is_filled)
}

/// The fields that we have taken, as `159`, and those of the opponent. X begins.
fn taken(turn: &Turn) -> [String; 2] {
    let marks = match turn.move_number % 2 {
        0 => ["O", "X"],
        _ => ["X", "O"],
    };
    marks.map(|mark| {
        let shown = FIELDS.into_iter().zip(turn.position.split_whitespace());
        let own = shown.filter(|(_, shown)| *shown == mark);
        own.map(|(field, _)| field).collect()
    })
}

/// Every free field, and what one side has with it.
fn moves(own: &str, other: &str) -> impl Iterator<Item = (&'static str, String)> {
    let is_free = move |field: &&str| !own.contains(*field) && !other.contains(*field);
    let free = FIELDS.into_iter().filter(is_free);
    free.map(move |field| (field, own.to_string() + field))
}

/// Fills a row of its own, else blocks one of the opponent's, else moves at random.
pub fn blocks(turn: &Turn) -> String {
    let [us, them] = taken(turn);
    let mut both = moves(&us, &them).chain(moves(&them, &us));
    match both.find(|(_, taken)| row(taken).is_some()) {
        Some((field, _)) => field.into(),
        None => super::one_of(turn, &turn.legal_moves),
    }
}

/// Looks to the end of the game, and moves at random among the moves that are as good as any.
pub fn perfect(turn: &Turn) -> String {
    if turn.move_number == 1 {
        return super::one_of(turn, &turn.legal_moves); // on an empty board every move is good for a draw
    }
    let [us, them] = taken(turn);
    let worth = |(field, with): (&'static str, String)| (-worth(&them, &with), field);
    let values: Vec<(i32, &str)> = moves(&us, &them).map(worth).collect();
    let best = values.iter().map(|(value, _)| *value).max();
    let good = values.iter().filter(|(value, _)| Some(*value) == best);
    super::one_of(
        turn,
        &good.map(|(_, field)| field.to_string()).collect::<Vec<_>>(),
    )
}

/// What the fields of both sides are worth to the one whose turn it is, if both play as well as
/// they can: 1 if it wins, 0 if nobody does, -1 if the other wins.
fn worth(own: &str, other: &str) -> i32 {
    if row(other).is_some() {
        return -1;
    }
    let mut best = None;
    for (_, with) in moves(own, other) {
        let value = -worth(other, &with);
        if value == 1 {
            return 1; // there is nothing better
        }
        best = best.max(Some(value));
    }
    best.unwrap_or(0) // a full board is a draw
}
