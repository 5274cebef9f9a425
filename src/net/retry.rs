//! Why a call got no good answer, whose fault that was, and whether to try again.

use crate::protocol::{Code, Refusal};
use crate::wire::{cut, masked};
use crate::words;
use std::{thread, time::Duration};

/// How many characters of a peer's text are shown or passed on.
pub const SHOWN: usize = 200;

/// Why no good answer came to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallError {
    /// None within this time (E001).
    Late(Duration),
    /// No HTTP answer at all: refused, host unknown, connection reset (E009).
    Unreachable(String),
    /// An HTTP answer that broke off, or that is too long (E009).
    Broken(String),
    /// A status other than 200, and what stood in its body (E009).
    Status(u16, String),
    /// A JSON-RPC error: its code and message (E003).
    Rpc(i64, String),
    /// An answer that is wrong: why, and the answer as it came.
    Wrong(Refusal, String),
    /// Our own machine has no descriptor, thread or port left: never the peer's fault.
    Ours(String),
}

impl CallError {
    /// The code of the protocol for it.
    pub fn code(&self) -> Code {
        match self {
            CallError::Late(_) => Code::E001,
            CallError::Unreachable(_)
            | CallError::Broken(_)
            | CallError::Status(..)
            | CallError::Ours(_) => Code::E009,
            CallError::Rpc(..) => Code::E003,
            CallError::Wrong(refusal, _) => refusal.code,
        }
    }

    /// The field that is wrong in an answer.
    pub fn field(&self) -> Option<&str> {
        if let CallError::Wrong(refusal, _) = self {
            refusal.field_name()
        } else {
            None
        }
    }

    /// What happened, said of whoever was asked: `answered HTTP 404 "Not Found"`.
    pub fn explain(&self) -> String {
        let (happened, wanted) = self.told("", "");
        happened + &wanted
    }

    /// The same in two halves, between which stands how often: what happened to the call of `tool`, and what was
    /// `expected`, if that is not plain.
    pub fn told(&self, tool: &str, expected: &str) -> (String, String) {
        let [to, instead] = [(" to ", tool), (", expected ", expected)].map(|(word, name)| {
            if name.is_empty() {
                String::new()
            } else {
                format!("{word}{name}")
            }
        });
        let quoted = |text: &str| {
            if text.is_empty() {
                String::new()
            } else {
                format!(" {}", cut(&format!("{text:?}"), SHOWN))
            }
        };
        match self {
            CallError::Late(limit) => (
                format!("gave no answer{to} within {} s", seconds(*limit)),
                String::new(),
            ),
            CallError::Unreachable(why) => (
                format!(
                    "could not be reached ({}){}",
                    cut(why, SHOWN),
                    to.replace(" to ", " for ")
                ),
                String::new(),
            ),
            CallError::Broken(why) => (
                format!("gave no whole answer{to} ({})", cut(why, SHOWN)),
                String::new(),
            ),
            CallError::Status(status, body) => (
                format!("answered HTTP {status}{}{to}", quoted(body)),
                instead,
            ),
            CallError::Rpc(code, words) => (
                format!("answered JSON-RPC error {code}{}{to}", quoted(words)),
                instead,
            ),
            CallError::Ours(why) => (
                format!("was not called, by a fault of our own machine: {why}"),
                String::new(),
            ),
            CallError::Wrong(refusal, came) if refusal.is_no_answer() && !came.is_empty() => (
                format!("answered {}{to}", cut(came, SHOWN)),
                format!(": {}{instead}", refusal.explain()),
            ),
            CallError::Wrong(refusal, _) if refusal.is_no_answer() => {
                (format!("answered nothing{to}"), instead)
            }
            CallError::Wrong(refusal, _) => (
                format!("answered{to} wrongly"),
                format!(": {}", cut(&refusal.explain(), 2 * SHOWN)),
            ),
        }
    }

    /// Whether the same again may help, since no message came: E001 and E009.
    pub fn is_silence(&self) -> bool {
        !matches!(self, CallError::Rpc(..) | CallError::Wrong(..))
    }

    /// Whether nobody is there, as far as can be told: slowness does not say so, nor our own fault.
    pub fn is_absence(&self) -> bool {
        matches!(self, CallError::Unreachable(_) | CallError::Broken(_))
    }

    /// Whether it was nobody's fault but ours.
    pub fn is_ours(&self) -> bool {
        matches!(self, CallError::Ours(_))
    }

    /// A wrong answer, with the beginning of what came.
    pub fn wrong(refusal: impl Into<Refusal>, came: impl ToString) -> CallError {
        CallError::Wrong(refusal.into(), quotable(&came.to_string()))
    }
}

/// A peer's text as it is shown and passed on: cut, and without tokens, which it may have echoed.
pub fn quotable(text: &str) -> String {
    cut(&masked(text), SHOWN)
}

/// Whole seconds where they are whole: `30`, `0.5`.
pub fn seconds(time: Duration) -> String {
    format!("{}", (time.as_secs_f64() * 100.0).round() / 100.0)
}

words! {
    /// How the delay before a retry grows.
    Backoff { Exponential = "exponential", Fixed = "fixed", }
}

/// Attempts and the delays between them.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named as in the file")]
pub struct RetryPolicy {
    /// How many in all.
    pub attempts: u32,
    pub base_delay: Duration,
    pub backoff: Backoff,
}

impl RetryPolicy {
    /// How long to wait after so many failed attempts: 2 s, 4 s, 8 s, or always 2 s.
    pub fn delay(&self, failed: u32) -> Duration {
        match self.backoff {
            Backoff::Exponential => self
                .base_delay
                .saturating_mul(1 << (failed.clamp(1, 16) - 1)),
            Backoff::Fixed => self.base_delay,
        }
    }

    /// How long all attempts can take, if each takes `limit`.
    pub fn longest(&self, limit: Duration) -> Duration {
        let delays: Duration = (1..self.attempts).map(|failed| self.delay(failed)).sum();
        limit * self.attempts + delays
    }
}

/// Tries within the retry policy, as long as `again` finds that the same again may help.
pub fn retry<T>(
    policy: &RetryPolicy,
    pause: impl Fn(Duration),
    again: impl Fn(&CallError) -> bool,
    mut attempt: impl FnMut() -> Result<T, CallError>,
) -> Result<T, CallError> {
    let mut failed = 0;
    loop {
        match attempt() {
            Err(error) if again(&error) && failed + 1 < policy.attempts => {
                failed += 1;
                pause(policy.delay(failed));
            }
            done => return done,
        }
    }
}

/// Waits before the next attempt.
pub fn pause(delay: Duration) {
    thread::sleep(delay);
}
