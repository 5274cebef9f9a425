//! The status of the registered agents: which of them answer, and which referees may get matches.
//!
//! The notifier (`notifier.rs`) keeps a status for every member. Nothing of it is stored on disk.

use crate::json::decode;
use crate::net::call_error::CallError;
use crate::protocol::LeagueError;
use crate::values::{MAX_QUOTED_CHARS, truncate};
use serde_json::Value;
use std::time::Duration;

/// States whether a referee may get matches.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum RefereeState {
    /// The referee answers, or has not been called yet.
    #[default]
    Available,
    /// The referee could not be reached. It is available again when it answers.
    Lost,
    /// The referee answered an assignment with an error. It is available again when it registers or
    /// reports a result.
    Refusing,
    /// The referee has not reported in time. It is available again when it registers or reports a
    /// result.
    Overdue,
}

/// The status of one agent.
#[derive(Debug, Clone, Default)]
pub struct AgentStatus {
    /// The reason why the last call failed; `None` if it succeeded.
    pub last_error: Option<String>,
    /// The same without anything that the agent has sent.
    pub public_error: Option<String>,
    /// The time that the agent took for its last answer, in milliseconds.
    pub response_ms: Option<u32>,
    /// The number of its registrations since this program started.
    pub registrations: u32,
    /// The state of a referee. A player is available or lost, which changes nothing for its
    /// matches.
    pub referee: RefereeState,
    /// The reason for which a referee is not available: the rest of a sentence after its id.
    pub problem: String,
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
        let failure =
            error.filter(|error| !matches!(error, CallError::JsonRpc(..) | CallError::Local(_)));
        self.last_error = failure.map(CallError::explain);
        self.public_error = failure.map(CallError::explain_in_public);

        // Any HTTP answer means that a lost referee is there again.
        match (self.referee, error) {
            (RefereeState::Available, Some(error)) if error.is_unreachable() => {
                self.referee = RefereeState::Lost;
                self.problem = error.explain();
            }
            (
                RefereeState::Lost,
                None | Some(CallError::HttpStatus(..) | CallError::InvalidReply(..)),
            ) => {
                self.referee = RefereeState::Available;
            }
            _ => {}
        }

        if is_assignment && let Some(reason) = refusal(result) {
            self.referee = RefereeState::Refusing;
            self.problem = format!("{reason}, so it refuses its matches");
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
    Some(truncate(&text, MAX_QUOTED_CHARS))
}
