//! One agent as the notifier sees it: what it has been told, which call is due, and how its last
//! calls went. From these follows whether it answers, and whether a referee may get matches. Locks,
//! threads and the network are in `notifier.rs`. Nothing of it is stored on disk.

use super::notifications::{Notification, Progress, Published};
use crate::json::decode;
use crate::net::call_error::CallError;
use crate::net::client::Broadcast;
use crate::program::attempts::Attempts;
use crate::program::config::SystemFile;
use crate::protocol::{AgentKind, LeagueError};
use crate::values::{MAX_QUOTED_CHARS, truncate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Minimum time between two resets of one agent, however often it registers.
const RESET_INTERVAL: Duration = Duration::from_secs(1);

/// The notifications that all agents get, or all players. Each text is written once.
pub type Texts = BTreeMap<Notification, Arc<Broadcast>>;

/// An agent, and what it has been told.
pub struct Recipient {
    /// Referee or player.
    pub kind: AgentKind,
    /// Its status.
    pub status: AgentStatus,
    /// A referee's own copy of the announcement.
    pub announcement: Option<Arc<Broadcast>>,
    /// Its delivery thread.
    pub thread: Option<Thread>,
    /// Interval between pings. Agents that do not answer, and referees while a round is open, are
    /// pinged at the first delay of the retry policy instead.
    ping_interval: Duration,
    progress: Progress,
    /// True if the agent must get everything again that still matters.
    needs_reset: bool,
    reset_at: Option<Instant>,
    /// The number of calls that failed one after the other.
    pub attempts: Attempts,
    /// True if no program took the connection at the last call.
    is_refused: bool,
    /// The time of the next ping or, after a failed call, of the next attempt; now if `None`.
    call_at: Option<Instant>,
}

/// The next work of a delivery thread.
pub enum Task {
    /// Call the agent now.
    Deliver(Delivery),
    /// Wait, until the thread is woken or the time has passed.
    Wait(Duration),
}

/// A call to an agent.
pub enum Delivery {
    /// Asks whether it answers.
    Ping,
    /// Tells it what it lacks.
    Notify {
        /// The notification.
        notification: Notification,
        /// Its text.
        text: Arc<Broadcast>,
        /// The agent's progress when it has received the notification.
        progress: Progress,
    },
}

impl Recipient {
    /// Returns an agent that has been told nothing yet.
    pub fn new(kind: AgentKind, system: &SystemFile) -> Recipient {
        let policy = system.retry_policy;
        Recipient {
            kind,
            status: AgentStatus::default(),
            announcement: None,
            thread: None,
            ping_interval: system.timeouts.ping_interval_sec.0,
            progress: Progress::default(),
            needs_reset: true,
            reset_at: None,
            attempts: Attempts::new(policy),
            is_refused: false,
            call_at: None,
        }
    }

    /// Returns true if the agent has received all that is published.
    pub fn has_received(&self, published: Published) -> bool {
        !self.needs_reset
            && self
                .progress
                .next_notification(published.to(self.kind))
                .is_none()
    }

    /// Returns true if it has received all, or does not answer.
    pub fn has_received_or_fails(&self, published: Published) -> bool {
        self.status.last_error.is_some() || self.has_received(published)
    }

    /// Returns true if no program answers at its port, in all attempts of the retry policy.
    pub fn is_gone(&self) -> bool {
        self.is_refused && self.attempts.delay().is_none()
    }

    /// Lets the agent be called now, and get everything again that still matters.
    pub fn reset(&mut self) {
        self.needs_reset = true;
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }

    /// Returns the call that is due, or the time until the next one.
    pub fn next_task(&mut self, published: Published, texts: &Texts) -> Task {
        let newest = published.to(self.kind);
        let now = Instant::now();
        if self.needs_reset {
            let age = self.reset_at.map_or(RESET_INTERVAL, |time| now - time);
            if age < RESET_INTERVAL {
                return Task::Wait(RESET_INTERVAL - age);
            }
            self.needs_reset = false;
            self.reset_at = Some(now);
            self.progress = newest.before_last_round();
            self.attempts.failed = 0;
            self.call_at = None;
        }

        let call_at = self.call_at.unwrap_or(now);
        let wait = call_at.saturating_duration_since(now);
        let Some((notification, progress)) = self.progress.next_notification(newest) else {
            return match wait.is_zero() {
                _ if newest.is_over => Task::Wait(self.ping_interval), // the agents have ended
                true => Task::Deliver(Delivery::Ping),
                false => Task::Wait(wait),
            };
        };
        if self.attempts.failed > 0 && !wait.is_zero() {
            return Task::Wait(wait);
        }

        let text = match (notification, &self.announcement) {
            (Notification::Announcement(_), Some(own)) => own,
            _ => &texts[&notification],
        };
        Task::Deliver(Delivery::Notify {
            notification,
            text: Arc::clone(text),
            progress,
        })
    }

    /// Records the result of a call. Returns true if it changes the status.
    pub fn record_call(
        &mut self,
        delivery: &Delivery,
        result: &Result<Value, CallError>,
        elapsed: Duration,
        published: Published,
    ) -> bool {
        let error = result.as_ref().err();
        self.is_refused = error.is_some_and(CallError::is_refused);
        self.attempts.failed = match error {
            Some(error) if error.is_retryable() => self.attempts.failed + 1,
            _ => 0,
        };

        // A failure counts after the last attempt. The ping of a player has only one: it may be
        // about to start.
        let before = self.status.clone();
        let is_referee = self.kind == AgentKind::Referee;
        let is_ping = matches!(delivery, Delivery::Ping);
        if !self.has_attempts_left() || !is_referee && is_ping {
            let is_assignment = self.record_receipt(delivery, error) && is_referee;
            // A referee that answers no ping may be suspended, and then it holds its round.
            let is_timeout = matches!(error, Some(CallError::Timeout(_)));
            let is_lost = is_timeout && is_referee && is_ping;
            self.status
                .record_call(result, is_assignment, is_lost, elapsed);
        }
        let has_new_state = self.status.referee != before.referee;
        let is_lost = has_new_state && self.status.referee == RefereeState::Lost;
        let has_returned = before.last_error.is_some() && self.status.last_error.is_none();
        if is_lost || is_referee && has_returned {
            // It may have been restarted, or may have missed its matches.
            self.progress = published.to(self.kind).before_last_round();
        }
        self.call_at = Some(Instant::now() + self.interval(published));

        has_new_state
            || self.status.last_error != before.last_error
            || self.status.response_ms.is_some() != before.response_ms.is_some()
    }

    /// Moves the progress on if the agent has received the notification. Returns true if it was an
    /// announcement.
    fn record_receipt(&mut self, delivery: &Delivery, error: Option<&CallError>) -> bool {
        let Delivery::Notify {
            notification,
            progress,
            ..
        } = delivery
        else {
            return false;
        };

        if notification.is_received(error, !self.has_attempts_left()) {
            self.progress = *progress;
        }
        matches!(notification, Notification::Announcement(_))
    }

    /// Returns true after a failed call that was not the last attempt of the retry policy.
    fn has_attempts_left(&self) -> bool {
        self.attempts.failed > 0 && self.attempts.delay().is_some()
    }

    /// Returns the time until the next call, if the agent lacks nothing or the last call failed.
    fn interval(&self, published: Published) -> Duration {
        let is_playing = self.kind == AgentKind::Referee && published.players.announcement > 0;
        let first_delay = self.attempts.first_delay();
        if self.attempts.failed > 0 {
            self.attempts.delay().unwrap_or(first_delay)
        } else if self.status.last_error.is_some() || is_playing {
            first_delay
        } else {
            self.ping_interval
        }
    }
}

/// States whether a referee may get matches.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum RefereeState {
    /// The referee answers, or has not been called yet.
    #[default]
    Available,
    /// The referee could not be reached, or has answered no ping. It is available again when it
    /// answers.
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
    /// Records the result of a call, which was an assignment, another notification or a ping. An
    /// agent that could not be reached is lost; `is_lost` is true if it is lost anyway.
    pub fn record_call(
        &mut self,
        result: &Result<Value, CallError>,
        is_assignment: bool,
        is_lost: bool,
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
            (RefereeState::Available, Some(error)) if is_lost || error.is_unreachable() => {
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

        if is_assignment && let Some(reason) = refusal_reason(result) {
            self.referee = RefereeState::Refusing;
            self.problem = format!("{reason}, so it refuses its matches");
        }
    }
}

/// Returns the reason for which a referee refuses its matches, if its answer to an announcement is
/// an error.
fn refusal_reason(result: &Result<Value, CallError>) -> Option<String> {
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
