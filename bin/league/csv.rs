//! The tables of a league's document for spreadsheets: whatever a cell says, it is a text or a
//! number there. A name may look like a formula, and a spreadsheet must not calculate it. Pure.

use crate::columns::{HEADS, cells};
use crate::view::{LeagueView, MatchView};
use crate::worth;
use league::games;
use league::program::terminal::sanitize;
use league::protocol::Standing;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A whole file: with the mark by which spreadsheets know UTF-8, and a line for the heads and for
/// each row.
pub fn csv(heads: &str, rows: impl Iterator<Item = Value>) -> String {
    let line = |row: Value| {
        let cells: Vec<String> = row.as_array().into_iter().flatten().map(cell).collect();
        cells.join(",") + "\r\n"
    };
    let lines: String = rows.map(line).collect();
    format!("\u{feff}{heads}\r\n{lines}")
}

/// A cell. A text that a spreadsheet would calculate gets an apostrophe; numbers stay numbers.
fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => sanitize(text),
        number => return number.to_string(),
    };
    let signs = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let is_sum = text.trim_start().starts_with(signs) && text.parse::<i32>().is_err();
    let text = format!("{}{text}", if is_sum { "'" } else { "" });
    match text.contains(['"', ',', ';', '\'']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// The columns of the results.
const RESULTS: &str = "Match,Round,Recorded at,Player A,Name A,Player B,Name B,Ending,Winner,Number,\
    Choice A,Choice B,Points A,Points B,Expected A,Expected B,Referee,Reason,Moves";

/// A line for each match that was played.
pub fn results(view: &LeagueView) -> String {
    let name = |id: &str| {
        let agent = view.agents.iter().find(|agent| agent.id == id);
        agent.map(|agent| agent.display_name.clone())
    };
    let worth = worth::by_pair(&view.league.game_type, &view.league.scoring);
    let by_turns = games::find(&view.league.game_type).is_some_and(|game| !game.simultaneous);
    let row = |round: u32, game: &MatchView| {
        let (a, b) = (&game.player_A_id, &game.player_B_id);
        let moves = game.played();
        let own = |seat| moves.iter().find(|made| made.seat == seat && !by_turns);
        let choice = |seat| own(seat).map(|made| &made.text);
        let points = |id| game.score.as_ref()?.get(id);
        let [expected_a, expected_b] =
            worth::of_match(&worth, game.drawn_number, &moves).map_or([None; 2], |it| it.map(Some));
        json!([
            game.match_id,
            round,
            game.recorded_at,
            a,
            name(a),
            b,
            name(b),
            game.ending,
            game.winner,
            game.drawn_number,
            choice(0),
            choice(1),
            points(a),
            points(b),
            expected_a,
            expected_b,
            game.referee_id,
            game.reason,
            by_turns.then(|| worth::key(&moves))
        ])
    };
    let rows = view.rounds.iter().flat_map(|round| {
        let played = round.matches.iter().filter(|game| game.ending.is_some());
        played.map(|game| row(round.round_id, game))
    });
    csv(RESULTS, rows)
}

/// The table. `expected`: by player, what its choices were worth before the draws.
pub fn standings(view: &LeagueView, expected: &BTreeMap<String, f64>) -> String {
    let row = |row: &Standing| {
        let agent = view.agents.iter().find(|agent| agent.id == row.player_id);
        let mut cells = cells(row);
        cells.push(json!(expected.get(&row.player_id)));
        cells.push(json!(agent.and_then(|agent| agent.technical_losses)));
        Value::from(cells)
    };
    let heads = format!("{HEADS},Expected points,Technical losses");
    csv(&heads, view.standings.iter().map(row))
}
