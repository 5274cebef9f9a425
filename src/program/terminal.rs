//! Lines for the person at the terminal.

use crate::values::redact_tokens;
use std::io::{Write, stderr, stdout};

/// Returns a text of somebody else as it can be shown: without tokens, and without characters that
/// move the cursor or turn the text around.
pub fn sanitize(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{feff}')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
    };
    redact_tokens(text).replace(is_harmful, "\u{fffd}")
}

/// Prints a line on standard output. A terminal that is gone stops nothing.
pub fn print_line(text: &str) {
    let _ = stdout().write_all(format!("{text}\n").as_bytes());
}

/// Prints a line on standard error, about something to be done.
pub fn print_error(text: &str) {
    let _ = stderr().write_all(format!("{}\n", sanitize(text)).as_bytes());
}

/// The terminal of a program that may be quiet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    /// Prints nothing.
    pub quiet: bool,
}

impl Terminal {
    /// Prints a line, unless the program is quiet.
    pub fn print_line(&self, text: &str) {
        if !self.quiet {
            print_line(text);
        }
    }
}

/// Returns a number with its noun: `1 point`, `2 points`.
pub fn plural(number: impl Into<i64>, noun: &str) -> String {
    match number.into() {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}
