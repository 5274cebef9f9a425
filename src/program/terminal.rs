//! Output on the user's terminal.

use crate::values::redact_tokens;
use std::io::{Write, stderr, stdout};

/// Returns a text of another program as it can be shown: without tokens, and without characters that
/// move the cursor or turn the text around.
pub fn sanitize(text: &str) -> String {
    redact_tokens(text).replace(is_harmful, "\u{fffd}")
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
}

/// Prints a line on standard output. A terminal that is closed is no error.
pub fn print_line(text: &str) {
    let _ = stdout().write_all(format!("{text}\n").as_bytes());
}

/// Prints a line on standard error, for a problem that the user can solve.
pub fn print_error(text: &str) {
    let _ = stderr().write_all(format!("{}\n", sanitize(text)).as_bytes());
}

/// Standard output of a program that may be quiet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    /// True if nothing is printed.
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
