//! Tables for spreadsheets: whatever a cell says, it is a text or a number there. Pure.

use crate::program::terminal::shown;

/// A whole file: with the mark by which spreadsheets know UTF-8, and a line for the heads and for each row.
pub fn csv(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let heads = heads.iter().map(|head| head.trim().to_string()).collect();
    let line = |cells: Vec<String>| {
        cells
            .iter()
            .map(|text| cell(&shown(text)))
            .collect::<Vec<_>>()
            .join(",")
            + "\r\n"
    };
    let lines = [heads].into_iter().chain(rows).map(line);
    format!("\u{feff}{}", lines.collect::<String>())
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
