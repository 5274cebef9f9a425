//! The output of a player that is started here, as lines of this terminal.
//!
//! What the player prints is passed through as it comes, with the player's name before each line.
//! Only problems that the player's program itself prints are counted when they come again in
//! another match.

use league::net::sync::spawn;
use league::program::terminal::{print_error, print_whole_line, sanitize};
use league::values::truncate;
use std::collections::BTreeMap;
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
/// Maximum number of characters of a repeated problem.
const MAX_REPEATED: usize = 100;

/// Prints what a player writes.
pub fn print_output(name: &str, child: &mut Child) {
    let (printed, errors) = (name.to_string(), name.to_string());
    if let Some(stdout) = child.stdout.take() {
        spawn("output", move || {
            read_lines(stdout, |line| {
                print_whole_line(&sanitize(&format!("{printed}: {line}")));
            });
        });
    }

    if let Some(stderr) = child.stderr.take() {
        spawn("output", move || {
            let mut problems = BTreeMap::new();
            read_lines(stderr, |line| {
                let text = format!("{errors}: {line}");
                if !is_problem(line) {
                    return print_error(&text);
                }

                let problem = problems.entry(without_numbers_of_matches(line));
                let (text, count) = problem.or_insert((text, 0));
                *count += 1;
                if *count == 1 {
                    print_error(text);
                }
            });
            for (text, count) in problems.into_values().filter(|(_, count)| *count > 1) {
                print_error(&format!("{count} times: {}", truncate(&text, MAX_REPEATED)));
            }
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

/// Returns true for a line that a player's program prints itself: it begins with the player's id.
fn is_problem(line: &str) -> bool {
    let id = line.split_once(": ").map_or("", |(id, _)| id);
    let digits = id.strip_prefix('P').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a line without its match ids and its number of attempts, in which repeated problems
/// differ.
fn without_numbers_of_matches(line: &str) -> String {
    let line = line.split("; attempt ").next().unwrap_or_default();
    let mut words: Vec<&str> = line.split(' ').collect();
    words.retain(|word| {
        let digits = word.trim_matches(|c: char| "R(M):".contains(c));
        digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit() || c == 'M')
    });
    words.join(" ")
}
