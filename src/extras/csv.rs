//! The tables of a league's document for spreadsheets: whatever a cell says, it is a text or a number there. Pure.

use crate::manager::document::{LeagueView, MatchView};
use crate::manager::standings::HEADS;
use crate::program::terminal::shown;
use serde_json::{Value, json};

/// A whole file: with the mark by which spreadsheets know UTF-8, and a line for the heads and for each row.
pub fn csv(heads: &str, rows: impl IntoIterator<Item = Vec<Value>>) -> String {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), String::from)
            .replace("null", "")
    };
    let line = |cells: Vec<Value>| {
        cells
            .iter()
            .map(|it| cell(&shown(&text(it))))
            .collect::<Vec<_>>()
            .join(",")
            + "\r\n"
    };
    format!(
        "\u{feff}{heads}\r\n{}",
        rows.into_iter().map(line).collect::<String>()
    )
}

/// A cell. One that a spreadsheet would calculate is made text by an apostrophe; numbers stay numbers.
fn cell(text: &str) -> String {
    let begins = text
        .trim_start()
        .starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let text = if begins && text.parse::<i32>().is_err() {
        format!("'{text}")
    } else {
        text.into()
    };
    if text.contains(['"', ',', ';', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// A line per match that was played.
pub fn results(view: &LeagueView) -> String {
    let name = |id: &str| {
        view.agents
            .iter()
            .find(|it| it.id == id)
            .map(|it| it.display_name.clone())
    };
    let row = |round: u32, it: &MatchView| {
        let (a, b) = (&it.player_A_id, &it.player_B_id);
        let choice = |id| it.choices.as_ref().and_then(|all| *all.get(id)?);
        let points = |id| it.score.as_ref().and_then(|all| all.get(id));
        let cells = json!([
            it.match_id,
            round,
            a,
            name(a),
            b,
            name(b),
            it.ending,
            it.winner,
            it.drawn_number,
            choice(a),
            choice(b),
            points(a),
            points(b),
            it.referee_id,
            it.reason
        ]);
        cells.as_array().cloned().unwrap_or_default()
    };
    let played = view
        .rounds
        .iter()
        .flat_map(|it| it.matches.iter().map(move |game| (it.round_id, game)));
    let heads = "Match,Round,Player A,Name A,Player B,Name B,Ending,Winner,Number,Choice A,Choice B,Points A,Points B,\
                 Referee,Reason";
    csv(
        heads,
        played
            .filter(|(_, game)| game.ending.is_some())
            .map(|(round, game)| row(round, game)),
    )
}

/// The table.
pub fn standings(view: &LeagueView) -> String {
    let technical = |id: &str| {
        view.agents
            .iter()
            .find(|it| it.id == id)
            .and_then(|it| it.technical_losses)
    };
    let row = |it: &crate::protocol::Standing| {
        let cells = json!([
            it.rank,
            it.player_id,
            it.display_name,
            it.played,
            it.wins,
            it.draws,
            it.losses,
            it.points,
            technical(&it.player_id)
        ]);
        cells.as_array().cloned().unwrap_or_default()
    };
    csv(
        &[&HEADS.map(str::trim)[..], &["Technical losses"]]
            .concat()
            .join(","),
        view.standings.iter().map(row),
    )
}
