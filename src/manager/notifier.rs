//! Sends notifications and pings to all agents.
//!
//! Every member has a delivery thread, which sends it what it lacks (`notifications.rs`), one
//! message after the other. So every agent receives them in order, and a slow or dead agent delays
//! only itself. An agent that could not be reached still lacks the message: it is called every two
//! seconds. The round loop says what may be told, and wakes the threads.
//!
//! Nothing here is stored on disk: after a restart, the state of the league says what must be sent.

use super::journal::Store;
use super::league::{League, Member};
use super::notifications::{Notification, Progress, Published};
use super::recipient::{AgentStatus, Delivery, Recipient, RefereeState, Task, Texts};
use crate::net::call_error::CallError;
use crate::net::client::{Broadcast, Client, MAX_NOTICE, Peer};
use crate::net::sync::{lock, spawn};
use crate::program::Program;
use crate::program::config::SystemFile;
use crate::program::session::REMOVED;
use crate::protocol::{AgentKind, ErrorCode, LeagueRegisterRequest, PlayerRequest, ProtocolError};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Sends notifications to all agents, and keeps the status of each.
///
/// The lock is never held during a call over the network. It is taken after that of the league.
pub struct Notifier {
    store: Arc<Store>,
    client: Arc<Client>,
    /// The time limits and the retry policy.
    system: SystemFile,
    state: Mutex<State>,
}

struct State {
    published: Published,
    texts: Texts,
    recipients: BTreeMap<String, Recipient>,
}

impl Notifier {
    /// Creates a notifier for the league in `store`.
    pub fn new(store: &Arc<Store>, program: &Program) -> Arc<Notifier> {
        let system = &program.config.system;
        let state = store.read(|league| {
            let members = league.members.values();
            let recipient =
                |member: &Member| (member.id.clone(), Recipient::new(member.kind, system));
            State {
                published: Published {
                    players: league.newest().before_last_round(),
                    referees: Progress::default(),
                },
                texts: BTreeMap::new(),
                recipients: members.map(recipient).collect(),
            }
        });

        Arc::new(Notifier {
            store: Arc::clone(store),
            client: Arc::clone(&program.client),
            system: system.clone(),
            state: Mutex::new(state),
        })
    }

    /// Returns what may be told now.
    pub fn published(&self) -> Published {
        lock(&self.state).published
    }

    /// Lets agents be told what is new, and writes the texts of it. Returns the delivery threads
    /// that must be woken. (They take both locks at once, so they are woken without these.)
    pub fn publish(self: &Arc<Self>, league: &League, newest: Published) -> Vec<Thread> {
        let mut state = lock(&self.state);
        let before = mem::replace(&mut state.published, newest);
        let [written, new] = [before, newest].map(|published| Progress {
            is_over: published.referees.is_over, // the end is published to referees first
            ..published.players
        });
        self.write_new_texts(&mut state.texts, league, written, new);

        let has_new_announcement = before.referees.announcement != newest.referees.announcement;
        let mut threads = Vec::new();
        for member in league.members.values() {
            let Some(recipient) = state.recipients.get_mut(&member.id) else {
                continue; // its registration is about to be recorded
            };
            if has_new_announcement || recipient.announcement.is_none() {
                recipient.announcement = self.own_announcement(league, member, newest);
            }
            if newest.to(member.kind).is_over && !before.to(member.kind).is_over {
                recipient.attempts.failed = 0; // the end gets all attempts of the retry policy
            }
            if recipient.thread.is_none() {
                recipient.thread = self.start_delivery_thread(&member.id);
            } else if newest != before && !recipient.has_received(newest) {
                threads.extend(recipient.thread.clone());
            }
        }
        threads
    }

    /// Writes the notifications that all agents get, or all players.
    fn write_new_texts(
        &self,
        texts: &mut Texts,
        league: &League,
        mut written: Progress,
        newest: Progress,
    ) {
        while let Some((notification, next)) = written.next_notification(newest) {
            written = next;
            let recipients = match notification {
                Notification::Table | Notification::Announcement(_) => {
                    league.members(AgentKind::Player).len()
                }
                Notification::RoundEnd(_) | Notification::LeagueEnd => league.members.len(),
            };

            if let Some(message) = league.message_of(notification) {
                texts.insert(notification, self.write(&message, recipients));
            }
            if let Notification::Announcement(round) = notification {
                texts.remove(&Notification::Announcement(round - 1));
            }
        }
    }

    /// Returns a referee's own copy of the announcement: it has the addresses of the players and
    /// the tokens of the referee's matches.
    fn own_announcement(
        &self,
        league: &League,
        member: &Member,
        newest: Published,
    ) -> Option<Arc<Broadcast>> {
        if member.kind != AgentKind::Referee || newest.referees.announcement == 0 {
            return None;
        }

        let message = league.announcement(league.open_round()?, Some(&member.id));
        Some(self.write(&message.into(), 1))
    }

    /// Writes the text of a notification.
    fn write(&self, message: &PlayerRequest, recipients: usize) -> Arc<Broadcast> {
        Arc::new(self.client.prepare_broadcast(message, recipients))
    }

    /// Returns `None` if the machine has no thread left.
    fn start_delivery_thread(self: &Arc<Self>, id: &str) -> Option<Thread> {
        let (notifier, id) = (Arc::clone(self), id.to_string());
        spawn("delivery", move || {
            loop {
                match notifier.next_task(&id) {
                    Task::Wait(time) => thread::park_timeout(time), // ends when the thread is woken
                    // A panic is logged by its hook, and does not end the thread.
                    Task::Deliver(delivery) => {
                        let _ = catch_unwind(AssertUnwindSafe(|| notifier.deliver(&id, &delivery)));
                    }
                }
            }
        })
    }

    fn next_task(&self, id: &str) -> Task {
        let mut state = lock(&self.state);
        let State {
            published,
            texts,
            recipients,
        } = &mut *state;

        match recipients.get_mut(id) {
            Some(recipient) => recipient.next_task(*published, texts),
            None => Task::Wait(self.timeout()),
        }
    }

    /// Makes a call to an agent, and records the result.
    fn deliver(&self, id: &str, delivery: &Delivery) {
        let started = Instant::now();
        let result = self.send(id, delivery);
        let elapsed = started.elapsed();

        let mut state = lock(&self.state);
        let published = state.published;
        let Some(recipient) = state.recipients.get_mut(id) else {
            return;
        };

        let kind = recipient.kind;
        let is_changed = recipient.record_call(delivery, &result, elapsed, published);

        // Wake the round loop if it may wait for this.
        let is_last = matches!(delivery, Delivery::Notify { .. }) && state.have_received(kind);
        drop(state);
        if is_changed || is_last {
            self.store.notify_all();
        }
    }

    /// Sends a notification or a ping once, to the address at which the agent is registered now.
    fn send(&self, id: &str, delivery: &Delivery) -> Result<Value, CallError> {
        let member = self.store.read(|league| {
            let member = league.members.get(id)?.clone();
            let match_token = match delivery {
                Delivery::Notify {
                    notification: Notification::Announcement(round),
                    ..
                } => league.match_token(*round, id),
                _ => None,
            };
            Some((member, match_token))
        });
        let Some((member, match_token)) = member else {
            return Ok(Value::Null); // It was removed before the start.
        };

        let peer = self.peer(&member);
        let Delivery::Notify { text, .. } = delivery else {
            self.client.ping(&peer, &member.token)?;
            return Ok(Value::Null);
        };

        let mut own_fields = json!({"auth_token": member.token});
        if let Some(token) = match_token {
            own_fields["match_token"] = json!(token);
        }
        self.client.deliver(&peer, text, own_fields)
    }

    /// Returns the time limit of one attempt.
    fn timeout(&self) -> Duration {
        self.system.timeouts.generic_response_timeout_sec.0
    }

    fn peer(&self, member: &Member) -> Peer {
        Peer {
            kind: member.kind,
            id: member.id.clone(),
            endpoint: member.meta.contact_endpoint.clone(),
            max_bytes: MAX_NOTICE,
            timeout: self.timeout(),
        }
    }

    /// Tells a player once that the operator has removed it from the lobby. It would wait for a
    /// league that it is not in.
    pub fn tell_removed(&self, member: &Member) {
        let removed = ProtocolError::new(ErrorCode::PlayerNotRegistered, REMOVED);
        let error = removed.league_error(LeagueRegisterRequest::NAME);
        let text = self.write(&error.into(), 1);
        let own_fields = json!({"auth_token": member.token});

        let (client, peer) = (Arc::clone(&self.client), self.peer(member));
        spawn("removed", move || {
            let _ = client.deliver(&peer, &text, own_fields);
        });
    }

    /// Records that an agent has registered, perhaps again. It gets everything again that still
    /// matters.
    pub fn record_registration(&self, member: &Member) {
        let mut state = lock(&self.state);
        let recipient = (state.recipients.entry(member.id.clone()))
            .or_insert_with(|| Recipient::new(member.kind, &self.system));
        recipient.status.registrations += 1;
        recipient.status.referee = RefereeState::Available;
        recipient.reset();
    }

    /// Sends an agent a ping, and everything again that still matters.
    pub fn resend(&self, id: &str) {
        self.change(id, Recipient::reset);
    }

    /// Records that a referee has reported a result: it may get matches.
    pub fn record_report(&self, id: &str) {
        self.change(id, |recipient| {
            if recipient.status.referee != RefereeState::Available {
                recipient.status.referee = RefereeState::Available;
                recipient.reset();
            }
        });
    }

    /// Records that a referee is overdue. It gets its matches again, if no other one can get them.
    pub fn record_overdue(&self, id: &str, problem: String) {
        self.change(id, |recipient| {
            recipient.status.referee = RefereeState::Overdue;
            recipient.status.problem = problem;
            recipient.reset();
        });
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Recipient)) {
        lock(&self.state).recipients.get_mut(id).map(change);
    }

    /// Returns the status of an agent.
    pub fn status(&self, id: &str) -> AgentStatus {
        let state = lock(&self.state);
        let recipient = state.recipients.get(id);
        recipient.map_or_else(AgentStatus::default, |known| known.status.clone())
    }

    /// Returns the ids of the agents whose last call failed.
    pub fn unreachable(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for (id, recipient) in &lock(&self.state).recipients {
            if recipient.status.last_error.is_some() {
                ids.insert(id.clone());
            }
        }
        ids
    }

    /// Returns true if an agent has received everything, or does not answer.
    pub fn has_received(&self, id: &str) -> bool {
        let state = lock(&self.state);
        let recipient = state.recipients.get(id);
        recipient.is_some_and(|known| known.has_received_or_fails(state.published))
    }

    /// Returns true if all agents of a kind have received everything, or do not answer.
    pub fn have_received(&self, kind: AgentKind) -> bool {
        lock(&self.state).have_received(kind)
    }

    /// Returns true if nothing is left to be sent. At the end of the league, the agents at whose
    /// ports no program answers get all attempts of the retry policy, and no more.
    pub fn is_done(&self) -> bool {
        let state = lock(&self.state);
        let published = state.published;
        let mut recipients = state.recipients.values();
        published.players.is_over == published.referees.is_over
            && recipients.all(|one| one.is_gone() || one.has_received(published))
    }

    /// Returns the referees that may get matches: those that are available or, if there are none,
    /// those that are overdue.
    pub fn available_referees(&self, league: &League) -> Vec<String> {
        let state = lock(&self.state);
        let mut available = Vec::new();
        let mut overdue = Vec::new();
        for id in league.ids(AgentKind::Referee) {
            let recipient = state.recipients.get(&id);
            let referee = recipient.map(|known| known.status.referee);
            match referee.unwrap_or_default() {
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

impl State {
    /// Returns true if all agents of a kind have received everything, or do not answer.
    fn have_received(&self, kind: AgentKind) -> bool {
        let mut recipients = self.recipients.values();
        recipients.all(|one| one.kind != kind || one.has_received_or_fails(self.published))
    }
}
