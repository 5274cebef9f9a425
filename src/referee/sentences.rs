//! How a player failed in a match, in one sentence that its author can act on. Pure.

use crate::net::retry::CallError;
use crate::protocol::*;

/// How a player failed, in one sentence: what was asked, what came, what was expected, and how often. The sentence
/// begins where the player's name ends.
pub fn blame(failures: &[CallError], expected: &str) -> String {
    let Some((last, others)) = failures.split_last() else {
        return String::new();
    };
    let told = |failure: &CallError, times: &str| failure.told(tool(expected), times, expected);
    let is_same = others.iter().all(|it| told(it, "") == told(last, ""));
    let times = match (is_same, failures.len()) {
        (_, 1) => String::new(),
        (true, 2) => ", twice".into(),
        (true, 3) => ", three times".into(),
        (true, times) => format!(", {times} times"),
        (false, times) => format!(", at the last of {times} attempts"),
    };
    told(last, &times)
}

/// The tool that asks for a message.
pub fn tool(answer: &str) -> &str {
    Entry::of_message(answer).map_or(answer, |entry| entry.tool)
}

/// A message came, but not the one that answers.
pub fn unexpected(reply: &Message) -> CallError {
    let explained = match reply {
        Message::GameError(error) => format!(" ({})", error.explain()),
        Message::LeagueError(error) => format!(" ({})", error.explain()),
        _ => String::new(),
    };
    let problem = format!("got {}", reply.name());
    let refusal = Refusal::field(Code::E003, "message_type", problem);
    CallError::wrong(refusal, format!("{}{explained}", reply.name()))
}
