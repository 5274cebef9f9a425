//! Tables as texts: for a terminal, in columns as wide as they need, and for spreadsheets, as CSV.
//! Pure.
//!
//! In a spreadsheet, a name of a player that looks like a formula must not be calculated.

use crate::show::expected_points::{PairValues, expected_in_match, pair_name, pair_values_in};
use crate::show::view::{LeagueView, MatchView};
use league::games::{self, Move};
use league::program::terminal::{pad, sanitize, width};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The heads of a league's table, see `standings`.
const STANDING_HEADS: &str = "Rank,Id,Player,Played,Wins,Draws,Losses,Points,Expected points,\
    Technical losses";
/// The heads of the results, see `result_row`.
const RESULT_HEADS: &str = "Match,Round,Recorded at,Player A,Name A,Player B,Name B,Ending,Winner,\
    Number,Choice A,Choice B,Points A,Points B,Expected A,Expected B,Referee,Reason,Moves";

/// Returns a table for a terminal. `heads` has commas between them. Numbers are aligned to the
/// right, and `text_columns` columns after the first to the left.
pub fn columns(heads: &str, text_columns: usize, rows: impl Iterator<Item = Value>) -> String {
    let mut table: Vec<Vec<String>> = vec![heads.split(',').map(String::from).collect()];
    for row in rows {
        let cells = row.as_array().into_iter().flatten();
        table.push(cells.map(terminal_cell).collect());
    }

    let mut widths = vec![0; table[0].len()];
    for row in &table {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(cell));
        }
    }

    let mut lines = Vec::new();
    for mut row in table {
        for (column, cell) in row.iter_mut().enumerate() {
            if (1..=text_columns).contains(&column) {
                *cell = pad(cell, widths[column]);
            } else {
                *cell = format!("{cell:>0$}", widths[column]);
            }
        }
        lines.push(row.join("  "));
    }

    lines.join("\n")
}

fn terminal_cell(cell: &Value) -> String {
    cell.as_str().map_or(cell.to_string(), sanitize)
}

/// Returns a file with a table for spreadsheets. It begins with the mark by which they know UTF-8.
pub fn csv(heads: &str, rows: impl Iterator<Item = Value>) -> String {
    let mut text = format!("\u{feff}{heads}\r\n");
    for row in rows {
        let cells = row.as_array().into_iter().flatten();
        let cells: Vec<String> = cells.map(csv_cell).collect();
        text += &(cells.join(",") + "\r\n");
    }

    text
}

/// Returns a cell. A text that a spreadsheet would calculate gets an apostrophe; numbers stay
/// numbers.
fn csv_cell(value: &Value) -> String {
    let mut text = match value {
        Value::Null => return String::new(),
        Value::String(text) => sanitize(text),
        number => return number.to_string(),
    };

    let signs = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    if text.trim_start().starts_with(signs) && text.parse::<i32>().is_err() {
        text.insert(0, '\'');
    }

    if text.contains(['"', ',', ';', '\'']) {
        text = format!("\"{}\"", text.replace('"', "\"\""));
    }

    text
}

/// Returns the results of a league as CSV, a line for each match that was played.
pub fn results(view: &LeagueView) -> String {
    let values = pair_values_in(view);
    let mut rows = Vec::new();
    for round in &view.rounds {
        for the_match in &round.matches {
            if the_match.ending.is_some() {
                rows.push(result_row(view, round.round_id, the_match, &values));
            }
        }
    }

    csv(RESULT_HEADS, rows.into_iter())
}

fn result_row(
    view: &LeagueView,
    round_id: u32,
    the_match: &MatchView,
    values: &PairValues,
) -> Value {
    let (a, b) = (&the_match.player_A_id, &the_match.player_B_id);

    // In a game by turns the players have no single choices.
    let game = games::find(&view.league.game_type);
    let moves = the_match.played();
    let (choices, sequence) = if game.is_some_and(|game| !game.simultaneous) {
        ([None; 2], Some(pair_name(&moves)))
    } else {
        ([0, 1].map(|seat| choice(&moves, seat)), None)
    };
    let expected = expected_in_match(the_match, values);
    let score = the_match.score.as_ref();

    json!([
        the_match.match_id,
        round_id,
        the_match.recorded_at,
        a,
        display_name(view, a),
        b,
        display_name(view, b),
        the_match.ending,
        the_match.winner,
        the_match.drawn_number,
        choices[0],
        choices[1],
        score.and_then(|score| score.get(a)),
        score.and_then(|score| score.get(b)),
        expected.map(|both| both[0]),
        expected.map(|both| both[1]),
        the_match.referee_id,
        the_match.reason,
        sequence
    ])
}

fn choice(moves: &[Move], seat: usize) -> Option<&str> {
    let choice = moves.iter().find(|played| played.seat == seat)?;
    Some(&choice.text)
}

fn display_name<'a>(view: &'a LeagueView, id: &str) -> Option<&'a str> {
    let agent = view.agents.iter().find(|agent| agent.id == id)?;
    Some(&agent.display_name)
}

/// Returns the table of a league as CSV, with the expected points by player.
pub fn standings(view: &LeagueView, expected: &BTreeMap<String, f64>) -> String {
    let mut rows = Vec::new();
    for (row, rank) in view.standings.iter().zip(&view.ranks) {
        let agent = view.agents.iter().find(|agent| agent.id == row.player_id);

        rows.push(json!([
            rank,
            row.player_id,
            row.display_name,
            row.played,
            row.wins,
            row.draws,
            row.losses,
            row.points,
            expected.get(&row.player_id),
            agent.and_then(|agent| agent.technical_losses)
        ]));
    }

    csv(STANDING_HEADS, rows.into_iter())
}
