//! The contacts of the manager: every member, and the threads that call them.
//!
//! Every member has a thread, which makes one call after the other: it asks the contact for the
//! next call, sends it, and records the result (`contact.rs`). So every agent receives its messages
//! in order, and a slow or dead agent delays only itself. The round loop says what may be told, and
//! wakes the threads.
//!
//! Nothing here is stored on disk: after a restart, the state of the league says what must be sent.

use super::Manager;
use super::contact::{Call, Next, Table};
use super::league::League;
use super::notifications::{Notification, Progress};
use crate::net::call_error::CallError;
use crate::net::client::{Broadcast, MAX_NOTICE, Peer};
use crate::net::sync::{lock, spawn};
use crate::protocol::AgentKind;
use crate::values::{Moment, clock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::Duration;

/// Time until an agent is looked at again whose contact is gone, or whose thread has panicked.
const PAUSE: Duration = Duration::from_secs(10);

/// The members of the league, and the threads that call them.
///
/// The lock is never held during a call over the network. It is taken after that of the league.
pub struct Contacts {
    inner: Mutex<Inner>,
}

struct Inner {
    table: Table,
    /// The notifications that all agents get, or all players. Each text is written once.
    texts: BTreeMap<Notification, Arc<Broadcast>>,
    threads: BTreeMap<String, Thread>,
}

impl Contacts {
    /// Creates the contacts of a league.
    pub fn new(league: &League) -> Contacts {
        Contacts {
            inner: Mutex::new(Inner {
                table: Table::new(league, Moment::now()),
                texts: BTreeMap::new(),
                threads: BTreeMap::new(),
            }),
        }
    }

    /// Reads or changes the table.
    pub fn with<T>(&self, work: impl FnOnce(&mut Table) -> T) -> T {
        work(&mut lock(&self.inner).table)
    }
}

impl Manager {
    /// Lets agents be told what is new, and writes the texts of it. Returns the threads that must be
    /// woken. (They take both locks at once, so they are woken without these.)
    pub fn publish(self: &Arc<Self>, league: &League, now: Moment) -> Vec<Thread> {
        let mut inner = lock(&self.contacts.inner);
        let Inner {
            table,
            texts,
            threads,
        } = &mut *inner;
        let may_begin = !league.paused && !table.available_referees(league).is_empty();
        let before = table.publish(league, may_begin, now);
        let newest = table.published;
        self.write_new_texts(texts, league, before.to_any(), newest.to_any());

        // Only those that lack something new are woken: a call that is under way is followed by the
        // next one anyway.
        let mut woken = Vec::new();
        for (id, contact) in &table.contacts {
            if contact.has_received(newest) || newest == before && !contact.is_reset() {
                continue;
            }
            match threads.get(id) {
                Some(thread) => woken.push(thread.clone()),
                // Without a thread left on this machine, it is tried again with the next step.
                None => threads.extend(self.start_thread(id)),
            }
        }
        woken
    }

    /// Writes the notifications that all agents get, or all players. In a simulation nothing is sent.
    fn write_new_texts(
        &self,
        texts: &mut BTreeMap<Notification, Arc<Broadcast>>,
        league: &League,
        mut written: Progress,
        newest: Progress,
    ) {
        if clock::is_simulated() {
            return;
        }

        while let Some((notification, next)) = written.next_notification(newest) {
            written = next;
            let recipients = match notification {
                Notification::Table | Notification::Announcement(_) => {
                    league.count(AgentKind::Player)
                }
                Notification::RoundEnd(_) | Notification::LeagueEnd => league.members.len(),
            };

            if let Some(message) = league.message_of(notification) {
                let text = self.program.client.prepare_broadcast(&message, recipients);
                texts.insert(notification, Arc::new(text));
            }
            if let Notification::Announcement(round) = notification {
                texts.remove(&Notification::Announcement(round - 1));
            }
        }
    }

    /// Starts the thread that calls an agent.
    fn start_thread(self: &Arc<Self>, id: &str) -> Option<(String, Thread)> {
        let (manager, own_id) = (Arc::clone(self), id.to_string());
        let thread = spawn("delivery", move || {
            loop {
                // A panic is logged by its hook, and does not end the thread.
                let served = catch_unwind(AssertUnwindSafe(|| manager.serve(&own_id)));
                let wait = served.unwrap_or(PAUSE);
                if !wait.is_zero() {
                    thread::park_timeout(wait); // ends when the thread is woken
                }
            }
        })?;
        Some((id.to_string(), thread))
    }

    /// Makes the call to an agent that is due, and records its result. Returns the time until the
    /// next call.
    fn serve(&self, id: &str) -> Duration {
        match self.begin_call(id) {
            Ok((call, text)) => {
                let result = self.send(id, &call, text);
                self.record(id, &call, &result);
                Duration::ZERO
            }
            Err(time) => time,
        }
    }

    /// Returns the call to an agent that is due, with the text that others get too; or the time until
    /// the next one.
    pub fn begin_call(&self, id: &str) -> Result<(Call, Option<Arc<Broadcast>>), Duration> {
        let mut inner = lock(&self.contacts.inner);
        let published = inner.table.published;
        let contact = inner.table.contacts.get_mut(id).ok_or(PAUSE)?;
        let call = match contact.next_call(published, Moment::now()) {
            Next::Call(call) => call,
            Next::Wait(time) => return Err(time),
        };

        contact.begin(&call);
        let text = (call.notification).and_then(|told| inner.texts.get(&told).cloned());
        Ok((call, text))
    }

    /// Records the result of a call, and wakes the round loop if it may wait for it.
    pub fn record(&self, id: &str, call: &Call, result: &Result<Value, CallError>) {
        let now = Moment::now();
        let mut inner = lock(&self.contacts.inner);
        let table = &mut inner.table;
        let Some(contact) = table.contacts.get_mut(id) else {
            return;
        };

        contact.record(call, result, now);
        let (kind, may_play) = (contact.kind, contact.health.may_play());
        let is_awaited = match call.notification {
            None => true, // perhaps its first call, or it answers again
            Some(Notification::Table | Notification::RoundEnd(_)) => false,
            Some(_) => !may_play || table.are_settled(kind),
        };
        drop(inner);
        if is_awaited {
            self.store.notify_all();
        }
    }

    /// Sends a notification or a ping once, to the address at which the agent is registered now.
    fn send(
        &self,
        id: &str,
        call: &Call,
        text: Option<Arc<Broadcast>>,
    ) -> Result<Value, CallError> {
        // A player that was removed from the lobby is not called, so that it registers again and
        // learns it.
        let member = self.store.read(|league| {
            let is_called = league.started || !league.removed.contains(id);
            league.members.get(id).filter(|_| is_called).cloned()
        });
        let Some(member) = member else {
            return Ok(Value::Null);
        };

        let peer = Peer {
            kind: member.kind,
            id: member.id.clone(),
            endpoint: member.meta.contact_endpoint.clone(),
            max_bytes: MAX_NOTICE,
            timeout: self.program.config.generic_limit(),
        };
        let client = &self.program.client;
        let Some(notification) = call.notification else {
            return client.ping(&peer, &member.token).map(|()| Value::Null);
        };

        let mut own_fields = json!({"auth_token": member.token});
        let mut text = text;
        if let Notification::Announcement(round) = notification {
            if member.kind == AgentKind::Referee {
                // Its copy has the addresses of the players and the tokens of its matches.
                let message = (self.store).read(|league| league.announcement(round, Some(id)));
                text = Some(Arc::new(client.prepare_broadcast(&message, 1)));
            } else if let Some(token) = self.store.read(|league| league.match_token(round, id)) {
                own_fields["match_token"] = json!(token);
            }
        }
        let text = text.ok_or_else(|| CallError::Local("no text".into()))?;
        client.deliver(&peer, &text, own_fields)
    }
}
