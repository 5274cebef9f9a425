//! One agent as the notifier sees it: what it has been told, how its last calls went, and which
//! call is due. Locks, threads and the network are in `notifier.rs`.

use super::agent_status::{AgentStatus, RefereeState};
use super::notifications::{Notification, Progress, Published};
use crate::net::call_error::CallError;
use crate::net::client::Broadcast;
use crate::program::attempts::Attempts;
use crate::program::config::{RetryPolicy, SystemFile};
use crate::protocol::AgentKind;
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
    policy: RetryPolicy,
    /// Interval between pings. Agents that do not answer, and referees while a round is open, are
    /// pinged at the base delay of the retry policy instead.
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
    Call(Call),
    /// Wait, until the thread is woken or the time has passed.
    Wait(Duration),
}

/// A call to an agent.
pub enum Call {
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
            policy,
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
        !self.needs_reset && self.progress.next(published.to(self.kind)).is_none()
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
        let Some((notification, progress)) = self.progress.next(newest) else {
            return match wait.is_zero() {
                _ if newest.is_over => Task::Wait(self.ping_interval), // the agents have ended
                true => Task::Call(Call::Ping),
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
        Task::Call(Call::Notify {
            notification,
            text: Arc::clone(text),
            progress,
        })
    }

    /// Records the result of a call. Returns true if it changes the status.
    pub fn record_call(
        &mut self,
        call: &Call,
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
        let is_ping = matches!(call, Call::Ping);
        if !self.has_attempts_left() || !is_referee && is_ping {
            let is_assignment = self.record_receipt(call, error) && is_referee;
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
    fn record_receipt(&mut self, call: &Call, error: Option<&CallError>) -> bool {
        let Call::Notify {
            notification,
            progress,
            ..
        } = call
        else {
            return false;
        };
        if notification.is_received(error, self.attempts.failed, self.policy.max_retries) {
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
        if let Some(delay) = self.attempts.delay()
            && self.attempts.failed > 0
        {
            delay
        } else if self.attempts.failed > 0 || self.status.last_error.is_some() || is_playing {
            self.policy.base_delay_sec.0
        } else {
            self.ping_interval
        }
    }
}
