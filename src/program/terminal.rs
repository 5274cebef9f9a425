//! Words for the person at the terminal: what of others' words is shown, and one line that shows
//! how far something is.
//!
//! That line stays until the next line is printed, on whichever stream, and is wiped then; so
//! printing a line and wiping is one act, under one lock. It is for terminals only.

use crate::net::sync::lock;
use crate::wire::masked;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::mem;
use std::sync::Mutex;

/// Whether a line stands on the terminal that the next one wipes.
static PROGRESS: Mutex<bool> = Mutex::new(false);

/// Others' words as they can be shown: nothing in them moves the cursor or turns the text around,
/// or is a token.
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

/// Prints in the place of the line that shows how far something is; `stays` says whether this is
/// such a line too. A terminal that is gone stops nothing.
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
#[derive(Debug, Clone, Copy, Default)]
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
