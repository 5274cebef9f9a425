//! Words for the person at the terminal: how wide they are, what of them is shown, and one line that shows how far
//! something is.
//!
//! That line stays until the next line is printed, on whichever stream, and is wiped then; so printing a line and
//! wiping is one act, under one lock. Colour and that line are for terminals only; elsewhere the lines are plain.

use crate::net::sync::lock;
use crate::wire::masked;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::mem;
use std::sync::Mutex;

/// Whether a line stands on the terminal that the next one wipes.
static PROGRESS: Mutex<bool> = Mutex::new(false);

/// Others' words as they can be shown: nothing in them moves the cursor or turns the text around, or is a token.
pub fn shown(words: &str) -> String {
    let harmful = |c: char| match c {
        '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => true,
        c => c.is_control(),
    };
    masked(words)
        .chars()
        .map(|c| if harmful(c) { '\u{fffd}' } else { c })
        .collect()
}

/// How many columns a text takes: a wide character two, one that is drawn over another none.
pub fn width(text: &str) -> usize {
    let columns = |c: char| match u32::from(c) {
        0x300..=0x36f
        | 0x483..=0x489
        | 0x591..=0x5bd
        | 0x610..=0x61a
        | 0x64b..=0x65f
        | 0xe31
        | 0xe34..=0xe3a => 0,
        0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f => {
            0
        }
        0x1100..=0x115f | 0x231a..=0x231b | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xac00..=0xd7a3 => {
            2
        }
        0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff01..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f => 2,
        0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff | 0x1fa70..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    };
    text.chars().map(columns).sum()
}

/// A text with spaces behind it, so many columns wide.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A table: under its heads rows of others' words, in columns as wide as they need. Numbers stand to the right, and so
/// many columns behind the first, which are words, to the left.
pub fn columns(heads: &[&str], words: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let heads = heads.iter().map(|head| head.to_string()).collect();
    let shown = |cells: Vec<String>| cells.iter().map(|cell| shown(cell)).collect::<Vec<_>>();
    let rows: Vec<_> = [heads].into_iter().chain(rows).map(shown).collect();
    let widest = |n: usize| {
        rows.iter()
            .filter_map(|row| row.get(n))
            .map(|cell| width(cell))
            .max()
            .unwrap_or(0)
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(n, cell)| {
            let space = " ".repeat(widest(n) - width(cell));
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

/// Bold on a terminal, unless `NO_COLOR` is set.
pub fn bold(words: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    if plain || !stdout().is_terminal() {
        words.into()
    } else {
        format!("\x1b[1m{words}\x1b[0m")
    }
}

/// Prints in the place of the line that shows how far something is; `stays` says whether this is such a line too. A
/// terminal that is gone stops nothing.
fn print(mut to: impl Write, words: &str, stays: bool) {
    let mut progress = lock(&PROGRESS);
    if mem::replace(&mut *progress, stays) {
        let _ = write!(stdout(), "\r\x1b[K");
        let _ = stdout().flush();
    }
    let _ = write!(to, "{words}");
    let _ = to.flush();
}

/// A line on standard output.
pub fn say(words: &str) {
    print(stdout(), &format!("{words}\n"), false);
}

/// A line on standard error, for what somebody should do something about.
pub fn complain(words: &str) {
    print(stderr(), &format!("{}\n", shown(words)), false);
}

/// The terminal of a program that may have been told to be quiet.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Prints nothing.
    pub quiet: bool,
}

impl Terminal {
    /// A line, unless it is quiet.
    pub fn say(&self, words: &str) {
        if !self.quiet {
            say(words);
        }
    }

    /// On a terminal, a line that stays until the next one: how far something is.
    pub fn progress(&self, words: &str) {
        if !self.quiet && stdout().is_terminal() {
            print(stdout(), words, true);
        }
    }
}

/// `1 point`, `2 points`.
pub fn counted(number: impl Into<i64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
