//! The output of a player that is started here, as lines of this terminal.
//!
//! What the player prints is passed through as it comes, with the player's name before each line.

use league::net::sync::spawn;
use league::program::terminal::{print_error, print_line, sanitize};
use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Maximum length of a line in bytes; a longer one is divided.
pub const MAX_LINE: usize = 8 << 10;
/// The time after which a line without an end is printed, such as the prompt of a question.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of pieces of output that are read before they are printed.
const MAX_PIECES: usize = 4;

/// Prints what a player writes, each line with its name.
pub fn print_output(name: &str, child: &mut Child) {
    let (printed, errors) = (name.to_string(), name.to_string());
    if let Some(stdout) = child.stdout.take() {
        spawn("output", move || {
            read_lines(stdout, |line| {
                print_line(&sanitize(&format!("{printed}: {line}")));
            });
        });
    }
    if let Some(stderr) = child.stderr.take() {
        spawn("output", move || {
            read_lines(stderr, |line| print_error(&format!("{errors}: {line}")));
        });
    }
}

/// Calls `print` with each line of an output until it closes.
fn read_lines(output: impl Read + Send + 'static, mut print: impl FnMut(&str)) {
    let (sender, pieces) = sync_channel(MAX_PIECES);
    spawn("output", move || {
        let mut reader = BufReader::new(output);
        while let Ok(piece @ [_, ..]) = reader.fill_buf() {
            let piece = piece.to_vec();
            reader.consume(piece.len());
            if sender.send(piece).is_err() {
                return;
            }
        }
    });

    let mut rest = Vec::new();
    loop {
        let piece = pieces.recv_timeout(PAUSE);
        match &piece {
            Ok(piece) => rest.extend(piece),
            Err(_) if rest.is_empty() || rest == b"\r" => {}
            Err(_) => rest.push(b'\n'),
        }
        while let Some(line) = take_line(&mut rest) {
            print(&line);
        }
        if piece == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Takes the first line of an output. A line ends with LF, with the CR LF of Windows, with the CR
/// after which a progress bar writes the line again, or at its maximum length.
pub fn take_line(output: &mut Vec<u8>) -> Option<String> {
    let end = output.iter().position(|byte| b"\r\n".contains(byte));
    let end = end.unwrap_or(output.len()).min(MAX_LINE);
    let used = match &output[end..] {
        [] if end < MAX_LINE => return None,
        [b'\r'] => return None, // LF may follow
        [b'\r', b'\n', ..] => end + 2,
        [b'\r' | b'\n', ..] => end + 1,
        _ => end,
    };

    let line = String::from_utf8_lossy(&output[..end]).into_owned();
    output.drain(..used);
    Some(line)
}
