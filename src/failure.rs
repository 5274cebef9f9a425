//! Why a request got no good answer, whose fault that was, and whether to try again (002 §9.2.4).

use crate::{
    config::RetryPolicy,
    http::Trouble,
    protocol::{Code, Refusal},
};
use std::{thread, time::Duration};

/// Why a request got no good answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// No answer at all.
    Trouble(Trouble),
    /// An answer, but a wrong one.
    Wrong(Refusal),
    /// A JSON-RPC error.
    Rpc(i64, String),
}

impl Failure {
    /// The code of the protocol for it.
    pub fn code(&self) -> Code {
        match self {
            Failure::Trouble(Trouble::Late) => Code::E001,
            Failure::Trouble(_) => Code::E009,
            Failure::Wrong(refusal) => refusal.code,
            Failure::Rpc(..) => Code::E003,
        }
    }

    /// What happened, in words.
    pub fn explain(&self) -> String {
        match self {
            Failure::Trouble(Trouble::Late) => "no answer in time".into(),
            Failure::Trouble(Trouble::Unreachable(why)) => why.clone(),
            Failure::Trouble(Trouble::Status(status)) => format!("HTTP status {status}"),
            Failure::Trouble(Trouble::Ours(why)) => format!("a fault of our own machine: {why}"),
            Failure::Wrong(refusal) => refusal.explain(),
            Failure::Rpc(code, message) => format!("answered JSON-RPC error {code}: {message}"),
        }
    }

    /// Whether whoever waits for an answer should ask again: there was none, or one that says "not now".
    pub fn may_pass(&self) -> bool {
        self.is_trouble() || matches!(self, Failure::Rpc(-32603, _))
    }

    /// Whether the same again may help: E001 and E009 (002 §9.2.4).
    pub fn is_trouble(&self) -> bool {
        matches!(self, Failure::Trouble(_))
    }

    /// Whether nobody is there, as far as can be told: slowness does not say so, nor our own fault.
    pub fn is_absence(&self) -> bool {
        matches!(self, Failure::Trouble(Trouble::Unreachable(_)))
    }

    /// Whether it was nobody's fault but ours.
    pub fn is_ours(&self) -> bool {
        matches!(self, Failure::Trouble(Trouble::Ours(_)))
    }
}

/// Tries within the retry policy (002 §14.3), as long as `again` finds that the same again may help.
pub fn retry<T>(
    policy: &RetryPolicy,
    pause: impl Fn(Duration),
    again: impl Fn(&Failure) -> bool,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut failed = 0;
    loop {
        match attempt() {
            Err(failure) if again(&failure) && failed + 1 < policy.attempts => {
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
