//! The output of a player that is started here, as lines of this terminal. Each is passed on when
//! it is whole, with the player's name before it.

use league::net::sync::spawn;
use league::program::terminal::{print_error, print_line, sanitize};
use std::io::{BufReader, Read};
use std::process::Child;
use std::sync::Arc;

/// Maximum length of a line in bytes; a longer one is divided.
const MAX_LINE: usize = 8 << 10;

/// Prints what a player writes, each line with its name. The threads that do so share the name until
/// they have printed all.
pub fn print_output(name: &Arc<str>, child: &mut Child) {
    print_lines(name.clone(), child.stdout.take(), print_line);
    print_lines(name.clone(), child.stderr.take(), print_error);
}

/// Starts a thread that prints the lines of an output.
fn print_lines(name: Arc<str>, output: Option<impl Read + Send + 'static>, print: fn(&str)) {
    if let Some(output) = output {
        spawn("output", move || {
            read_lines(output, |line| print(&sanitize(&format!("{name}: {line}"))));
        });
    }
}

/// Calls `print` with each line of an output that is not empty, until the output closes. A line
/// ends with LF, or with the CR after which a progress bar writes the line again.
fn read_lines(output: impl Read, print: impl Fn(&str)) {
    let bytes = BufReader::new(output).bytes().map_while(Result::ok);
    let mut line = Vec::new();
    for byte in bytes.chain([b'\n']) {
        let is_end = byte == b'\n' || byte == b'\r';
        if !is_end {
            line.push(byte);
        }
        if !line.is_empty() && (is_end || line.len() == MAX_LINE) {
            print(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
}
