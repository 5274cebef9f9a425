//! The reasons why a call failed, whose fault each is, and the sentence that says it. The codes in
//! brackets are those of the protocol (`protocol/errors.rs`).
//!
//! The caller decides whether a failed call is made again: for moves and invitations in
//! `referee/match_play.rs`, for results in `referee/tasks.rs`, for notifications in
//! `manager/contact.rs`, for registrations in `program/session.rs`. The `RetryPolicy` of the
//! configuration says how often and when (`program/attempts.rs`).

use crate::json::deserialize;
use crate::protocol::{ErrorCode, GameError, LeagueError, MessageSpec, ProtocolError};
use crate::values::{MAX_QUOTED_CHARS, format_seconds, redact_and_truncate, truncate};
use serde_json::Value;
use std::io::ErrorKind::ConnectionRefused;
use std::time::Duration;

/// The reason why a call has no good answer.
#[derive(Debug, Clone, PartialEq)]
pub enum CallError {
    /// No answer came within this time (E001).
    Timeout(Duration),
    /// No program took the connection: refused, host unknown (E009).
    Unreachable(String),
    /// A program took the connection, and the HTTP answer is missing, broke off, or is too long
    /// (E009).
    Broken(String),
    /// No JSON-RPC reply came, but this HTTP status with this body (E009).
    HttpStatus(u16, String),
    /// The answer was a JSON-RPC error: its code and message (E003).
    JsonRpc(i64, String),
    /// The answer was GAME_ERROR or LEAGUE_ERROR: its content, and both as text (E003).
    Refused(Box<LeagueError>, String),
    /// The answer was wrong: the reason, and the answer as it came.
    InvalidReply(ProtocolError, String),
    /// Our own machine had no descriptor, thread or port left: never the peer's fault (E009).
    Local(String),
}

impl CallError {
    /// Returns the error of a wrong answer, with the start of that answer.
    pub fn wrong(refusal: impl Into<ProtocolError>, received: impl ToString) -> CallError {
        CallError::InvalidReply(refusal.into(), redact_and_truncate(&received.to_string()))
    }

    /// Returns the error of a reply that is not the expected message. `defaults` are the fields of
    /// it that were filled in.
    pub fn wrong_reply(reply: &Value, defaults: &[&str], refusal: ProtocolError) -> CallError {
        // GAME_ERROR has the fields of LEAGUE_ERROR.
        let name = reply["message_type"].as_str().unwrap_or_default();
        if let GameError::NAME | LeagueError::NAME = name
            && let Ok(error) = deserialize::<LeagueError>(reply)
        {
            let text = redact_and_truncate(&format!("{name}: {}", error.explain()));
            return CallError::Refused(Box::new(error), text);
        }
        if refusal.is_unexpected_reply() && MessageSpec::by_type(name).is_some() {
            return CallError::wrong(refusal, name);
        }

        // Show the reply as it came.
        let mut received = reply.clone();
        if let Value::Object(fields) = &mut received {
            fields.retain(|name, _| !defaults.contains(&name.as_str()));
        }
        CallError::wrong(refusal, received)
    }

    /// Returns the code of the protocol.
    pub fn code(&self) -> ErrorCode {
        match self {
            CallError::Timeout(_) => ErrorCode::Timeout,
            CallError::Unreachable(_)
            | CallError::Broken(_)
            | CallError::HttpStatus(..)
            | CallError::Local(_) => ErrorCode::ConnectionError,
            CallError::JsonRpc(..) | CallError::Refused(..) => ErrorCode::MissingField,
            CallError::InvalidReply(refusal, _) => refusal.code.clone(),
        }
    }

    /// Returns the field of the answer that was wrong.
    pub fn field(&self) -> Option<&str> {
        match self {
            CallError::InvalidReply(refusal, _) => refusal.field_name(),
            _ => None,
        }
    }

    /// Returns true if no message came (E001 and E009), so that the same call may help.
    pub fn is_retryable(&self) -> bool {
        !matches!(
            self,
            CallError::JsonRpc(..) | CallError::Refused(..) | CallError::InvalidReply(..)
        )
    }

    /// Returns true if a player may soon answer the same call otherwise: no message came, or it
    /// refuses the token or the match, since the announcement or its next invitation is on its way.
    pub fn may_pass(&self) -> bool {
        match self {
            CallError::Refused(error, _) => {
                error.error_code == ErrorCode::TokenInvalid || error.lacks_invitation()
            }
            _ => self.is_retryable(),
        }
    }

    /// Returns true if the peer could not be reached, or gave no answer. A local failure does not
    /// count.
    pub fn is_silence(&self) -> bool {
        matches!(
            self,
            CallError::Timeout(_) | CallError::Unreachable(_) | CallError::Broken(_)
        )
    }

    /// Returns true if the peer's machine answers, and no program listens there.
    pub fn is_refused(&self) -> bool {
        matches!(self, CallError::Unreachable(reason) if *reason == ConnectionRefused.to_string())
    }

    /// Returns true if our own machine failed.
    pub fn is_local(&self) -> bool {
        matches!(self, CallError::Local(_))
    }

    /// Returns the answer if it is HTML, or has several lines as a stack trace has. It stands in
    /// the log, and in no sentence.
    pub fn page(&self) -> Option<&str> {
        let (CallError::HttpStatus(_, text)
        | CallError::Refused(_, text)
        | CallError::InvalidReply(_, text)) = self
        else {
            return None;
        };
        let text = text.trim();
        (text.starts_with('<') || text.contains('\n')).then_some(text)
    }

    /// Returns a sentence about the peer: `answered HTTP 404 "Not Found"`.
    pub fn explain(&self) -> String {
        let text = match self {
            CallError::Timeout(timeout) => {
                format!("gave no answer within {} s", format_seconds(*timeout))
            }
            CallError::Unreachable(reason) => format!("could not be reached: {reason}"),
            CallError::Broken(reason) => format!("gave no whole answer: {reason}"),
            CallError::HttpStatus(status, _) if self.page().is_some() => {
                format!("answered HTTP {status} with a page of text")
            }
            CallError::HttpStatus(status, body) => format!("answered HTTP {status} {body:?}"),
            CallError::JsonRpc(code, message) => {
                format!("answered JSON-RPC error {code} {message:?}")
            }
            _ if self.page().is_some() => "answered with a page of text that is not JSON".into(),
            CallError::Refused(_, received) => format!("answered {received}"),
            CallError::InvalidReply(refusal, received) if refusal.is_unexpected_reply() => {
                format!("answered {received}: {}", refusal.detail())
            }
            CallError::InvalidReply(refusal, _) => {
                format!("answered wrongly: {}", refusal.detail())
            }
            CallError::Local(reason) => {
                format!("was not called, by a fault of our own machine: {reason}")
            }
        };

        truncate(&text, 3 * MAX_QUOTED_CHARS)
    }

    /// Returns the same without anything that the peer has sent: all may read this.
    pub fn explain_in_public(&self) -> String {
        match self {
            CallError::HttpStatus(status, _) => format!("answered HTTP {status}"),
            CallError::JsonRpc(code, _) => format!("answered JSON-RPC error {code}"),
            CallError::Refused(error, _) => format!("refused with {}", error.error_code),
            CallError::InvalidReply(..) => "answered wrongly".into(),
            _ => self.explain(),
        }
    }
}
