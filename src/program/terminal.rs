//! Words for the person at the terminal.

use std::io::Write;

/// A name as it can be shown: nothing in it moves the cursor or turns the text around.
pub fn shown(name: &str) -> String {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    name.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// A line on standard output. A terminal that is gone stops nothing.
pub fn say(words: &str) {
    let _ = writeln!(std::io::stdout(), "{words}");
}

/// A line on standard error, for what somebody should do something about.
pub fn complain(words: &str) {
    let _ = writeln!(std::io::stderr(), "{}", shown(words));
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
}

/// `1 point`, `2 points`.
pub fn counted(number: impl Into<i64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
