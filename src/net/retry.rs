//! What can go wrong with a call: why no good answer came, whose fault that was, how it is said,
//! and whether the same call may help if it is made again. Every sentence about a failed call is
//! made here, once. The codes in brackets are the protocol's (`protocol/codes.rs`).
//!
//! Whether a failed call is in fact made again is decided by its caller: for moves and invitations
//! in `referee/match_play.rs` (read that next), for results in `src/referee.rs`, for notices in
//! `manager/board.rs`, for registrations in `program/registration.rs`. How often and when is said
//! by the `RetryPolicy` of the configuration (`program/config.rs`).

use crate::protocol::{Code, Refusal};
use crate::wire::cut;
pub use crate::wire::{SHOWN, quotable, seconds};
use CallError::*;
use std::thread;
use std::time::Duration;

/// Why no good answer came to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallError {
    /// No answer came within this time (E001).
    Late(Duration),
    /// No HTTP answer came at all: refused, host unknown, connection reset (E009).
    Unreachable(String),
    /// The HTTP answer broke off, or is too long (E009).
    Broken(String),
    /// No JSON-RPC reply came, but this HTTP status, with this in the body (E009).
    Status(u16, String),
    /// The answer was a JSON-RPC error: its code and message (E003).
    Rpc(i64, String),
    /// The answer was wrong: why, and the answer as it came.
    Wrong(Refusal, String),
    /// Our own machine had no descriptor, thread or port left: never the peer's fault (E009).
    Ours(String),
}

impl CallError {
    /// A wrong answer, with the beginning of what came.
    pub fn wrong(refusal: impl Into<Refusal>, came: impl ToString) -> CallError {
        Wrong(refusal.into(), quotable(&came.to_string()))
    }

    /// The code of the protocol for it.
    pub fn code(&self) -> Code {
        match self {
            Late(_) => Code::E001,
            Unreachable(_) | Broken(_) | Status(..) | Ours(_) => Code::E009,
            Rpc(..) => Code::E003,
            Wrong(refusal, _) => refusal.code,
        }
    }

    /// The field of the answer that was wrong.
    pub fn field(&self) -> Option<&str> {
        match self {
            Wrong(refusal, _) => refusal.field_name(),
            _ => None,
        }
    }

    /// Whether the same call may help if it is made again, since no message came: E001 and E009.
    pub fn is_silence(&self) -> bool {
        !matches!(self, Rpc(..) | Wrong(..))
    }

    /// Whether it seems that nobody is there. That somebody is slow does not show it, nor does a
    /// fault of our own.
    pub fn is_absence(&self) -> bool {
        matches!(self, Unreachable(_) | Broken(_))
    }

    /// Whether it was nobody's fault but ours.
    pub fn is_ours(&self) -> bool {
        matches!(self, Ours(_))
    }

    /// What happened, said of whoever was asked: `answered HTTP 404 "Not Found"`.
    pub fn explain(&self) -> String {
        self.told("", "", "")
    }

    /// The same of a call of `tool`, with what was `expected`, and with `times`, the words for how
    /// often it happened, as `, at the last of 3 attempts`. Each of the three may be empty.
    pub fn told(&self, tool: &str, times: &str, expected: &str) -> String {
        let to = phrase(" to ", tool);
        let instead = phrase(", expected ", expected);
        let said = match self {
            Late(limit) => format!("gave no answer{to} within {} s{times}", seconds(*limit)),
            Unreachable(why) => format!(
                "could not be reached ({why}){}{times}",
                phrase(" for ", tool)
            ),
            Broken(why) => format!("gave no whole answer{to} ({why}){times}"),
            Status(status, body) => format!("answered HTTP {status} {body:?}{to}{times}{instead}"),
            Rpc(code, words) => {
                format!("answered JSON-RPC error {code} {words:?}{to}{times}{instead}")
            }
            Wrong(refusal, _) if !refusal.is_no_answer() => {
                format!(
                    "answered{} wrongly{times}: {}",
                    phrase(" ", tool),
                    refusal.explain()
                )
            }
            Wrong(_, came) if came.is_empty() => format!("answered nothing{to}{times}{instead}"),
            Wrong(refusal, came) if expected.is_empty() => {
                format!("answered {came}: {}", refusal.explain())
            }
            Wrong(_, came) => format!("answered {came}{to}{times}{instead}"),
            Ours(why) => format!("was not called, by a fault of our own machine: {why}"),
        };
        cut(&said, 3 * SHOWN)
    }
}

/// A word and what follows it; nothing where nothing follows.
fn phrase(word: &str, rest: &str) -> String {
    if rest.is_empty() {
        String::new()
    } else {
        format!("{word}{rest}")
    }
}

/// Waits before the next attempt.
pub fn pause(delay: Duration) {
    thread::sleep(delay);
}
