//! How words stand on a terminal: how wide a text is, and tables in columns as wide as they need.
//! Others' names are shown in these tables, in whatever script they are written. So a column is
//! measured by what its words take on the screen, and not by their letters.

use league::program::terminal::sanitize;
use league::protocol::Standing;
use serde_json::Value;

/// So many rows of a league's table are shown while the league is played.
pub const LEADERS: usize = 16;

/// How many columns a text takes: a wide character, as those of Chinese or Japanese, takes two.
pub fn width(text: &str) -> usize {
    let columns = |c: char| match u32::from(c) {
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xff01..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    };
    text.chars().map(columns).sum()
}

/// A text with spaces behind it, so many columns wide.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A table: under its heads, which commas part, rows of others' words, in columns as wide as they
/// need. Numbers stand to the right, and so many columns behind the first, which are words, to the
/// left.
pub fn columns(heads: &str, words: usize, rows: impl Iterator<Item = Value>) -> String {
    let text = |cell: &Value| cell.as_str().map_or(cell.to_string(), sanitize);
    let cells = |row: Value| row.as_array().into_iter().flatten().map(text).collect();
    let heads = heads.split(',').map(String::from).collect();
    let rows: Vec<Vec<String>> = [heads].into_iter().chain(rows.map(cells)).collect();
    let widest = |n: usize| rows.iter().map(|row| width(&row[n])).max().unwrap_or(0);
    let widest: Vec<usize> = (0..rows[0].len()).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(n, cell)| {
            let space = " ".repeat(widest[n] - width(cell));
            if (1..=words).contains(&n) {
                format!("{cell}{space}")
            } else {
                format!("{space}{cell}")
            }
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The heads of a league's table.
pub const HEADS: &str = "Rank,Id,Player,Played,Wins,Draws,Losses,Points";

/// What stands under these heads.
pub fn cells(row: &Standing) -> Vec<Value> {
    vec![
        row.rank.into(),
        row.player_id.clone().into(),
        row.display_name.clone().into(),
        row.played.into(),
        row.wins.into(),
        row.draws.into(),
        row.losses.into(),
        row.points.into(),
    ]
}

/// The first rows of a league's table, so many at most, as people read it.
pub fn grid(table: &[Standing], most: usize) -> String {
    let rows = table.iter().take(most).map(cells);
    columns(HEADS, 2, rows.map(Value::from))
}
