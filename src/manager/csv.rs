//! Tables for spreadsheets: whatever a cell says, it is a text or a number there. Pure.

use crate::program::terminal::shown;

/// A whole file: with the mark by which spreadsheets know UTF-8.
pub fn table(head: &str, rows: impl Iterator<Item = String>) -> String {
    format!("\u{feff}{head}{}", rows.collect::<String>())
}

/// A line of CSV. A cell that a spreadsheet would calculate is made text by an apostrophe; numbers stay numbers.
pub fn line(cells: &[&str]) -> String {
    let cell = |text: &&str| {
        let text = shown(text);
        let formula =
            text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) && text.parse::<i32>().is_err();
        let text = if formula { format!("'{text}") } else { text };
        if text.contains(['"', ',', ';', '\'']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\r\n"
}
