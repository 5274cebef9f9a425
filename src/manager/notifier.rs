//! Sends notifications and pings to all agents.
//!
//! Every member has a queue and a delivery thread. The round loop puts notifications into the
//! queues (`notifications.rs`). A thread sends its agent the notifications one after the other, so
//! every agent receives them in order, and a slow or dead agent delays only itself. A newer table or
//! announcement replaces the older one that is still in the queue. An agent that registers again
//! gets a fresh queue.
//!
//! Nothing here is stored on disk: after a restart, the state of the league says what must be sent.

use super::agent_status::{AgentStatus, RefereeState};
use super::journal::Store;
use super::league::{League, Member};
use crate::net::call_error::CallError;
use crate::net::client::{Broadcast, Client, MAX_NOTICE, MessageContext, Peer, new_conversation};
use crate::net::sync::{Shared, spawn};
use crate::program::Program;
use crate::program::config::RetryPolicy;
use crate::protocol::{AgentKind, Message, PlayerRequest};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Interval between pings. Agents that do not answer, and referees while a round is open, are pinged
/// at the base delay of the retry policy instead.
const PING_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum time between two fresh queues of one agent, however often it registers.
const RESET_INTERVAL: Duration = Duration::from_secs(1);

/// Sends notifications to all agents, and keeps the status of each.
///
/// The lock is never held during a call over the network.
pub struct Notifier {
    store: Arc<Store>,
    client: Arc<Client>,
    retry_policy: RetryPolicy,
    /// The time limit of one attempt.
    timeout: Duration,
    recipients: Shared<BTreeMap<String, Recipient>>,
}

/// An agent and its queue.
#[derive(Default)]
struct Recipient {
    status: AgentStatus,
    /// The notifications to be sent. `None` is a ping.
    queue: VecDeque<Option<Arc<Notification>>>,
    /// True while a notification is being sent.
    is_sending: bool,
    needs_reset: bool,
    reset_at: Option<Instant>,
}

/// A notification, whose text is written once for all its recipients.
struct Notification {
    message: PlayerRequest,
    text: Broadcast,
}

impl Notifier {
    /// Creates a notifier for the league in `store`.
    pub fn new(store: &Arc<Store>, program: &Program) -> Arc<Notifier> {
        Arc::new(Notifier {
            store: Arc::clone(store),
            client: Arc::clone(&program.client),
            retry_policy: program.config.system.retry_policy,
            timeout: program.config.generic_limit(),
            recipients: Shared::default(),
        })
    }

    /// Puts a notification into the queues of these recipients.
    pub fn publish(&self, recipients: &[&Member], message: impl Into<PlayerRequest>) {
        if recipients.is_empty() {
            return;
        }

        let message = message.into();
        let context = MessageContext {
            conversation_id: new_conversation(message.spec().method),
            ..MessageContext::default()
        };
        let text = (self.client).prepare_broadcast(&message, &context, recipients.len());
        let notification = Arc::new(Notification { message, text });
        self.recipients.update(|all| {
            for member in recipients {
                let recipient = all.entry(member.id.clone()).or_default();
                recipient.push(Arc::clone(&notification));
            }
        });
    }

    /// Gives a member a fresh queue if it is new or must get everything again. Returns true if it
    /// has done so: then the caller fills the queue.
    pub fn reset_queue_if_due(self: &Arc<Self>, member: &Member) -> bool {
        let is_due = self.with(&member.id, |recipient| match recipient.reset_at {
            None => self.start_delivery_thread(member),
            Some(time) => recipient.needs_reset && time.elapsed() >= RESET_INTERVAL,
        });

        if is_due {
            self.recipients.update(|all| {
                let recipient = all.entry(member.id.clone()).or_default();
                recipient.reset_at = Some(Instant::now());
                recipient.needs_reset = false;
                recipient.queue = VecDeque::from([None]);
            });
        }
        is_due
    }

    /// Returns false if the machine has no thread left.
    fn start_delivery_thread(self: &Arc<Self>, member: &Member) -> bool {
        let notifier = Arc::clone(self);
        let (id, kind) = (member.id.clone(), member.kind);
        spawn("delivery", move || {
            loop {
                let notification = notifier.wait_for_next(&id, kind);
                // A panic is logged by its hook, and does not end the thread.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    notifier.deliver(&id, kind, notification.as_deref());
                }));
            }
        })
    }

    /// Waits for the next notification of an agent. Returns `None` if a ping is due.
    fn wait_for_next(&self, id: &str, kind: AgentKind) -> Option<Arc<Notification>> {
        let must_report =
            kind == AgentKind::Referee && self.store.read(|league| league.open_round().is_some());
        let interval = if must_report || self.status(id).last_error.is_some() {
            self.retry_policy.base_delay_sec.0
        } else {
            PING_INTERVAL
        };

        let mut all = self
            .recipients
            .wait_until(interval, |all| !all[id].queue.is_empty());
        let recipient = all.get_mut(id)?;
        let notification = recipient.queue.pop_front().flatten();
        recipient.is_sending = notification.is_some();
        notification
    }

    /// Sends a notification or a ping to an agent, with retries, and records the result.
    fn deliver(&self, id: &str, kind: AgentKind, notification: Option<&Notification>) {
        let message = notification.map(|notification| &notification.message);
        if message.is_none() && self.store.read(League::is_over) {
            return; // The agents have ended.
        }

        // An agent that failed before gets one attempt, so that its queue does not grow, except at
        // the end of the league. So does a player that is pinged: it may be about to start.
        let had_error = self.status(id).last_error.is_some();
        let is_end = matches!(message, Some(PlayerRequest::LeagueCompleted(_)));
        let is_single = had_error || kind == AgentKind::Player && message.is_none();
        let started = Instant::now();
        let result = self.retry_policy.retry(
            thread::sleep,
            |error: &CallError| error.is_retryable() && (is_end || !is_single),
            || self.send(id, kind, notification),
        );

        // Record the result.
        let is_assignment = kind == AgentKind::Referee
            && matches!(message, Some(PlayerRequest::RoundAnnouncement(_)));
        let mut all = self.recipients.lock();
        let recipient = all.entry(id.into()).or_default();
        recipient.is_sending = false;
        let before = recipient.status.clone();
        let status = &mut recipient.status;
        status.record_call(&result, is_assignment, started.elapsed());
        let has_new_state = status.referee != before.referee;
        recipient.needs_reset |= has_new_state;

        // Wake the round loop if it may wait for this.
        let is_changed =
            has_new_state || status.last_error != before.last_error || before.response_ms.is_none();
        let is_last = message.is_some() && all.values().all(Recipient::is_idle);
        drop(all);
        if is_changed || is_last {
            self.store.notify_all();
        }
    }

    /// Sends a notification or a ping once, to the address at which the agent is registered now.
    fn send(
        &self,
        id: &str,
        kind: AgentKind,
        notification: Option<&Notification>,
    ) -> Result<Value, CallError> {
        let Some(member) = self.store.read(|league| league.members.get(id).cloned()) else {
            return Ok(Value::Null); // It was removed before the start.
        };
        let peer = Peer {
            kind,
            id: member.id,
            endpoint: member.meta.contact_endpoint,
            max_bytes: MAX_NOTICE,
            timeout: self.timeout,
        };

        let Some(Notification { message, text }) = notification else {
            self.client.ping(&peer, &member.token)?;
            return Ok(Value::Null);
        };

        let mut own_fields = json!({"auth_token": member.token});
        if let PlayerRequest::RoundAnnouncement(round) = message {
            let token = self
                .store
                .read(|league| league.match_token(round.round_id, id));
            if let Some(token) = token {
                own_fields["match_token"] = json!(token);
            }
        }
        self.client.deliver(&peer, text, own_fields)
    }

    /// Records that an agent has registered, perhaps again. It gets everything again that still
    /// matters.
    pub fn record_registration(&self, id: &str) {
        self.with(id, |recipient| {
            recipient.status.registrations += 1;
            recipient.status.referee = RefereeState::Available;
            recipient.needs_reset = true;
        });
    }

    /// Sends an agent a ping, and everything again that still matters.
    pub fn resend(&self, id: &str) {
        self.with(id, |recipient| recipient.needs_reset = true);
    }

    /// Records that a referee has reported a result: it may get matches.
    pub fn record_report(&self, id: &str) {
        self.with(id, |recipient| {
            recipient.needs_reset |= recipient.status.referee != RefereeState::Available;
            recipient.status.referee = RefereeState::Available;
        });
    }

    /// Records that a referee is overdue. It gets its matches again, if no other one can get them.
    pub fn record_overdue(&self, id: &str, problem: String) {
        self.with(id, |recipient| {
            recipient.needs_reset = true;
            recipient.status.referee = RefereeState::Overdue;
            recipient.status.problem = problem;
        });
    }

    /// Returns the status of an agent.
    pub fn status(&self, id: &str) -> AgentStatus {
        self.with(id, |recipient| recipient.status.clone())
    }

    /// Returns the ids of the agents whose last call failed.
    pub fn unreachable(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for (id, recipient) in self.recipients.lock().iter() {
            if recipient.status.last_error.is_some() {
                ids.insert(id.clone());
            }
        }
        ids
    }

    /// Returns true if an agent has received everything, or does not answer.
    pub fn has_received_all(&self, id: &str) -> bool {
        self.with(id, |recipient| {
            recipient.is_idle() || recipient.status.last_error.is_some()
        })
    }

    fn with<T>(&self, id: &str, change: impl FnOnce(&mut Recipient) -> T) -> T {
        let mut all = self.recipients.lock();
        change(all.entry(id.into()).or_default())
    }

    /// Returns true if nothing is left to be sent to any agent.
    pub fn are_all_idle(&self) -> bool {
        self.recipients.lock().values().all(Recipient::is_idle)
    }

    /// Returns the referees that may get matches: those that are available or, if there are none,
    /// those that are overdue.
    pub fn available_referees(&self, league: &League) -> Vec<String> {
        let mut available = Vec::new();
        let mut overdue = Vec::new();
        for id in league.ids(AgentKind::Referee) {
            match self.with(&id, |recipient| recipient.status.referee) {
                RefereeState::Available => available.push(id),
                RefereeState::Overdue => overdue.push(id),
                RefereeState::Lost | RefereeState::Refusing => {}
            }
        }

        if available.is_empty() {
            overdue
        } else {
            available
        }
    }
}

impl Recipient {
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.is_sending && !self.needs_reset
    }

    /// Appends a notification. It replaces an older one of the same type, except the end of a round.
    fn push(&mut self, notification: Arc<Notification>) {
        if !matches!(notification.message, PlayerRequest::RoundCompleted(_)) {
            let message_type = discriminant(&notification.message);
            self.queue.retain(|queued| match queued {
                Some(queued) => discriminant(&queued.message) != message_type,
                None => true,
            });
        }
        self.queue.push_back(Some(notification));
    }
}
