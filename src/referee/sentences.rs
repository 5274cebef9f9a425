//! The sentences of a match: how a player failed and what follows, in words that its author can act on. Pure.

use crate::net::retry::{CallError, RetryPolicy, SHOWN};
use crate::protocol::*;
use crate::referee::match_play::{InPlay, Next, Venue};
use crate::wire::{Timestamp, cut};

/// How a player failed, in one sentence: what was asked, what came, what was expected, and how often. The sentence
/// begins where the player's name ends. Nothing where our own machine failed: that is held against nobody.
pub fn blame(failures: &[CallError], expected: &str) -> Option<String> {
    let last = failures.last().filter(|last| !last.is_ours())?;
    let told = |failure: &CallError, times: &str| failure.told(tool(expected), times, expected);
    let is_same = failures
        .iter()
        .all(|failure| told(failure, "") == told(last, ""));
    let times = match (is_same, failures.len()) {
        (_, 1) => String::new(),
        (true, 2) => ", twice".into(),
        (true, 3) => ", three times".into(),
        (true, times) => format!(", {times} times"),
        (false, times) => format!(", at the last of {times} attempts"),
    };
    Some(told(last, &times))
}

/// The tool that asks for a message.
fn tool(answer: &str) -> &str {
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

impl<V: Venue> InPlay<'_, V> {
    /// GAME_ERROR for a player: what went wrong, what is legal, and that the match is lost by it.
    pub(super) fn game_error(&self, seat: usize, failure: &CallError, expected: &str) -> GameError {
        let told = cut(&failure.told(tool(expected), "", expected), 2 * SHOWN);
        let mut refusal = match failure {
            CallError::Wrong(refusal, _) if !refusal.is_no_answer() => refusal.clone(),
            _ => Refusal::new(failure.code(), told),
        };
        if let CallError::Wrong(_, came) = failure
            && !came.is_empty()
        {
            refusal = refusal.with("came", came.clone());
        }
        GameError {
            match_id: self.given.r#match.match_id.clone(),
            error_code: failure.code().to_string(),
            error_description: failure.code().name().into(),
            affected_player: self.player(seat).into(),
            action_required: expected.into(),
            player_id: Some(self.player(seat).into()),
            retry_info: None,
            context: Some(refusal.with("expected", expected).context),
            consequence: Some("Technical loss: the match is forfeited".into()),
        }
    }
}

impl Next {
    /// What the player is threatened with.
    pub(super) fn consequence(&self) -> &'static str {
        match self {
            Next::Forfeit => "Technical loss",
            Next::Mend(_) => "Technical loss if valid choice not received before timeout",
            Next::Retry(_) => "Technical loss if max retries exceeded",
        }
    }

    /// Until when, or from when on, the player can do better.
    pub(super) fn retry_info(
        &self,
        failures: &[CallError],
        policy: &RetryPolicy,
        clock: Timestamp,
    ) -> RetryInfo {
        let (next_retry_at, time_remaining) = match self {
            Next::Forfeit => (None, Some(0.0)),
            Next::Mend(left) => (None, Some((left.as_secs_f64() * 10.0).round() / 10.0)),
            Next::Retry(delay) => (Some(clock.plus(*delay)), None),
        };
        RetryInfo {
            retry_count: failures.len() as u32,
            max_retries: policy.attempts,
            next_retry_at,
            time_remaining,
        }
    }
}
