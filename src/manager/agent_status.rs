//! The status of the registered agents: which of them answer, and which referees may get matches.
//!
//! The notifier (`notifier.rs`) keeps a status for every member. Nothing of it is stored on disk.

use crate::json::decode;
use crate::net::call_error::CallError;
use crate::protocol::LeagueError;
use crate::values::{MAX_SHOWN_CHARS, Timestamp, truncate};
use serde_json::Value;
use std::time::Duration;

/// States whether a referee may get matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum RefereeState {
    /// The referee answers, or has not been called yet.
    #[default]
    Available,
    /// The referee could not be reached, for this reason. It is available again when it answers.
    Lost(String),
    /// The referee answered an assignment with this error. It is available again when it registers
    /// or reports a result.
    Refusing(String),
    /// The referee has not reported in time. It is available again when it registers or reports a
    /// result.
    Overdue(String),
}

/// The status of one agent.
#[derive(Debug, Clone, Default)]
pub struct AgentStatus {
    /// Why the last call failed; none if it succeeded.
    pub last_error: Option<String>,
    /// The time that the agent took for its last answer, in milliseconds.
    pub response_ms: Option<u32>,
    /// True if the agent has registered since this program started.
    pub has_registered: bool,
    /// The state of a referee. It is not used for players.
    pub referee: RefereeState,
}

/// What a running league waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waiting {
    /// Why the league does not go on.
    pub reason: Option<String>,
    /// When the announced matches begin.
    pub next_at: Option<Timestamp>,
}

impl Waiting {
    /// Returns a reason without a time.
    pub fn because(reason: impl ToString) -> Waiting {
        Waiting {
            reason: Some(reason.to_string()),
            next_at: None,
        }
    }
}

impl RefereeState {
    /// Returns the reason for which the referee is not available.
    pub fn problem(&self) -> Option<&str> {
        match self {
            RefereeState::Available => None,
            RefereeState::Lost(reason)
            | RefereeState::Refusing(reason)
            | RefereeState::Overdue(reason) => Some(reason),
        }
    }
}

impl AgentStatus {
    /// Records the result of a call, which was an assignment, another notification or a ping.
    pub fn record_call(
        &mut self,
        result: &Result<Value, CallError>,
        is_assignment: bool,
        elapsed: Duration,
    ) {
        let error = result.as_ref().err();
        if error.is_none() {
            self.response_ms = Some(elapsed.as_millis() as u32);
        }

        // A JSON-RPC error is an answer. A failure of our own machine says nothing about the agent.
        self.last_error = match error {
            None | Some(CallError::JsonRpc(..) | CallError::Local(_)) => None,
            Some(error) => Some(error.explain()),
        };

        // Any HTTP answer means that a lost referee is there again.
        match (&self.referee, error) {
            (RefereeState::Available, Some(error)) if error.is_unreachable() => {
                self.referee = RefereeState::Lost(error.explain());
            }
            (
                RefereeState::Lost(_),
                None | Some(CallError::HttpStatus(..) | CallError::InvalidReply(..)),
            ) => {
                self.referee = RefereeState::Available;
            }
            _ => {}
        }

        if is_assignment && let Some(reason) = refusal(result) {
            let reason = format!("{reason}, so it refuses its matches");
            self.referee = RefereeState::Refusing(reason);
        }
    }
}

/// Returns the reason for which a referee refuses its matches, if its answer to an announcement is
/// an error.
fn refusal(result: &Result<Value, CallError>) -> Option<String> {
    let answer = match result {
        Ok(answer) => answer,
        Err(error @ (CallError::JsonRpc(..) | CallError::HttpStatus(..))) => {
            return Some(error.explain());
        }
        Err(_) => return None,
    };

    let name = answer["message_type"].as_str()?;
    if !name.ends_with("_ERROR") {
        return None;
    }

    // A GAME_ERROR has the same fields.
    let reason = decode::<LeagueError>(answer).map(|error| error.explain());
    let text = format!("answered {name} {}", reason.unwrap_or_default());
    Some(truncate(&text, MAX_SHOWN_CHARS))
}
