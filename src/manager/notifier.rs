//! Tells every agent what it must know. There is no queue: one thread per agent compares what its agent has been told
//! with what holds now, and tells the difference, in this order: the table, rounds that are over, the announcement of
//! the open round, the end. So a slow or dead agent delays nobody, nothing outdated is sent, and after a restart or
//! another registration all is told that still matters, by the same comparison.
//!
//! What is told to all alike is in `editions.rs`. Read next: `rounds.rs`, which decides when referees may be told.

use crate::manager::contacts::{Contact, Contacts};
use crate::manager::editions::{Edition, PACE};
use crate::manager::journal::Store;
use crate::manager::league::{Announcement, League};
use crate::net::client::{About, Client, Letter, MAX_NOTICE, Peer, conversation, ok};
use crate::net::log::Level;
use crate::net::retry::{CallError, RetryPolicy, SHOWN, pause, retry};
use crate::net::sync::{lock, spawn};
use crate::protocol::{Kind, LeagueError, MatchEntry, RoundAnnouncement, StartMatch};
use crate::wire::{Endpoint, Wire, cut};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    ops::Bound,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How often the editor looks without being called.
const LOOK: Duration = Duration::from_millis(500);

/// Tells everybody.
pub struct Notifier {
    store: Arc<Store>,
    contacts: Arc<Contacts>,
    client: Arc<Client>,
    policy: RetryPolicy,
    /// How long one attempt may take.
    limit: Duration,
    edition: Mutex<Arc<Edition>>,
    /// Rung when there is a new edition.
    published: Condvar,
}

/// What one agent has been told.
#[derive(Default)]
struct Told {
    /// The contact's `untold` that this goes by: when that counts up, nothing is told.
    untold: u64,
    /// How many results were in the last table.
    results: usize,
    /// The last end of a round that it was told, by its key in the edition.
    rounds: (u64, u32),
    announcement: Announcement,
    /// A referee: the open matches that it knows of.
    entries: Vec<MatchEntry>,
    end: bool,
    /// When it was last called.
    called: Option<Instant>,
}

/// What is to be told next.
enum Task {
    Ping,
    Table(usize, Arc<Letter>),
    Round((u64, u32), Arc<Letter>),
    /// To a player: the notice for all, and its own match token with the text that it goes behind.
    OpenMatches(Announcement, Arc<Letter>, Option<(String, String)>),
    /// To a referee: its own copy.
    Announcement(Announcement, RoundAnnouncement),
    End(Arc<Letter>),
}

impl Notifier {
    /// Starts to tell what holds in `store`.
    pub fn start(
        store: &Arc<Store>,
        contacts: &Arc<Contacts>,
        client: &Arc<Client>,
        (policy, limit): (RetryPolicy, Duration),
    ) {
        let (store, contacts, client) =
            (Arc::clone(store), Arc::clone(contacts), Arc::clone(client));
        let edition = Mutex::new(Arc::new(store.read(Edition::known)));
        let notifier = Notifier {
            store,
            contacts,
            client,
            policy,
            limit,
            edition,
            published: Condvar::new(),
        };
        spawn("editor", move || Arc::new(notifier).edit());
    }

    /// The editor: writes what is new, once for all, and has a thread for every agent.
    fn edit(self: Arc<Self>) {
        let mut readers = BTreeSet::new();
        loop {
            let look = |league: &League| (league.changes, self.contacts.news());
            let seen = self.store.read(look);
            let made = panic::catch_unwind(AssertUnwindSafe(|| self.publish(&mut readers)));
            let pause = if made.unwrap_or(true) { PACE } else { LOOK }; // a panic is reported by the hook
            self.store.wait(pause, |league| look(league) != seen);
        }
    }

    /// Makes a new edition, if there is anything new, and has a thread for every agent; says whether something waits
    /// for its pace.
    fn publish(self: &Arc<Self>, readers: &mut BTreeSet<String>) -> bool {
        let unread = |league: &League| {
            league
                .members
                .keys()
                .filter(|id| !readers.contains(*id))
                .cloned()
                .collect()
        };
        let unread: Vec<String> = self.store.read(unread);
        for id in unread {
            let (here, reader) = (Arc::clone(self), id.clone());
            if spawn("notifier", move || here.serve(&reader)) {
                readers.insert(id);
            } // else: tried again with the next edition
        }
        let old = Arc::clone(&lock(&self.edition));
        let news = self.contacts.news();
        let (new, waits) = self
            .store
            .read(|league| old.successor(league, news, &self.client));
        if new.is_news(&old) {
            *lock(&self.edition) = Arc::new(new);
            self.published.notify_all();
        }
        waits
    }

    /// One agent's thread: compares and tells, for ever.
    fn serve(&self, id: &str) {
        // Another number than the contact's: it begins with a ping.
        let mut told = Told {
            untold: self.contacts.of(id).untold.wrapping_sub(1),
            ..Told::default()
        };
        loop {
            let edition = Arc::clone(&lock(&self.edition));
            let contact = self.contacts.renew(id);
            let kind = self.store.read(|league| Some(league.members.get(id)?.kind));
            let task = kind.and_then(|kind| self.next(&edition, &contact, id, kind, &mut told));
            if let (Some(task), Some(kind)) = (task, kind) {
                let done = panic::catch_unwind(AssertUnwindSafe(|| {
                    self.tell(id, kind, &contact, task, &mut told)
                }));
                drop(done); // a panic is reported by the hook, and the comparison starts again
                continue;
            }
            let is_read = |now: &mut Arc<Edition>| Arc::ptr_eq(now, &edition);
            let waited = self.published.wait_timeout_while(
                lock(&self.edition),
                self.policy.base_delay,
                is_read,
            );
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// What an agent has to be told next.
    fn next(
        &self,
        edition: &Edition,
        contact: &Contact,
        id: &str,
        kind: Kind,
        told: &mut Told,
    ) -> Option<Task> {
        if told.untold != contact.untold {
            // The ends of the first rounds are no news any more.
            let rounds = edition
                .rounds
                .last_key_value()
                .map_or((0, 0), |((changes, round), _)| (*changes, round - 1));
            *told = Told {
                untold: contact.untold,
                rounds,
                ..Told::default()
            };
            return Some(Task::Ping);
        }
        let is_player = kind == Kind::Player;
        if let Some((results, letter)) = edition
            .table
            .as_ref()
            .filter(|table| is_player && table.0 > told.results)
        {
            return Some(Task::Table(*results, Arc::clone(letter)));
        }
        if let Some((round, letter)) = edition
            .rounds
            .range((Bound::Excluded(told.rounds), Bound::Unbounded))
            .next()
        {
            return Some(Task::Round(*round, Arc::clone(letter)));
        }
        let announcement = edition.announcement;
        let announcement = if is_player {
            announcement
        } else {
            announcement.min(self.contacts.released())
        };
        if announcement > told.announcement {
            let task = match &edition.open {
                Some(open) if is_player && open.since > told.announcement => Some(
                    Task::OpenMatches(announcement, Arc::clone(&open.letter), open.own(id)),
                ),
                _ if is_player => None,
                _ => self
                    .copy_for(id, &told.entries)
                    .map(|copy| Task::Announcement(announcement, copy)),
            };
            if task.is_some() {
                return task;
            }
            self.announced(id, announcement, told); // it knows all that is in it
        }
        if let Some(letter) = edition.end.as_ref().filter(|_| !told.end) {
            return Some(Task::End(Arc::clone(letter)));
        }
        // A referee at work is asked from time to time whether it is there; and whoever did not answer.
        let asked = kind == Kind::Referee || contact.trouble.is_some();
        let idle = told
            .called
            .is_none_or(|then| then.elapsed() >= self.policy.base_delay);
        (contact.asked || asked && idle && edition.end.is_none()).then_some(Task::Ping)
    }

    /// A referee's copy of the announcement, if there is a match in it that it does not know.
    fn copy_for(&self, id: &str, known: &[MatchEntry]) -> Option<RoundAnnouncement> {
        let copy = |league: &League| {
            Some(league.announcement(league.open_round()?, Some(league.members.get(id)?)))
        };
        self.store
            .read(copy)
            .filter(|copy| copy.matches.iter().any(|entry| !known.contains(entry)))
    }

    /// Tells an agent something, as often as it is worth it, and notes how that went.
    fn tell(&self, id: &str, kind: Kind, contact: &Contact, task: Task, told: &mut Told) {
        let worth_it = |error: &CallError| match task {
            Task::End(_) => true,
            // Whoever did not answer last time gets one attempt, until it answers: the dead must not pile up work.
            Task::Ping | Task::Table(..) => false,
            _ if contact.trouble.is_some() => false,
            _ => kind == Kind::Player || !error.is_absence(), // that a referee is gone is the round loop's business at once
        };
        let result = retry(
            &self.policy,
            pause,
            |error| error.is_silence() && worth_it(error),
            || {
                let begun = Instant::now();
                self.attempt(id, &task).inspect(|()| {
                    self.contacts.answered(
                        id,
                        u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX),
                    );
                })
            },
        );
        told.called = Some(Instant::now());
        match task {
            Task::Ping => {}
            Task::Table(results, _) => told.results = results,
            Task::Round(round, _) => told.rounds = round,
            Task::OpenMatches(announcement, ..) => self.announced(id, announcement, told),
            Task::Announcement(announcement, copy) => {
                told.entries = copy.matches;
                self.announced(id, announcement, told);
            }
            Task::End(_) => told.end = true,
        }
        self.hear(id, contact, &result, told.end);
    }

    /// One attempt, to the agent as it is registered at this moment: it may have moved since the last one.
    fn attempt(&self, id: &str, task: &Task) -> Result<(), CallError> {
        let Some((to, token)) = self.store.read(|league| {
            let member = league.members.get(id)?;
            let (kind, endpoint) = (member.kind, member.endpoint.clone());
            Some((
                Peer {
                    kind,
                    id: id.into(),
                    endpoint,
                    max: MAX_NOTICE,
                },
                member.token.clone(),
            ))
        }) else {
            return Ok(());
        };
        let deliver = |letter, own| {
            self.client
                .deliver(&to, letter, &token, own, self.limit)
                .map(drop)
        };
        match task {
            Task::Ping => self.client.ping(&to, &token, self.limit),
            Task::Table(_, letter) | Task::Round(_, letter) | Task::End(letter) => {
                deliver(letter, None)
            }
            Task::OpenMatches(_, letter, own) => deliver(letter, own.as_ref()),
            Task::Announcement(_, copy) => self.announce(&to, token, copy),
        }
    }

    /// Announces the open matches of a round to a referee. Its answer matters: an error means that it refuses them.
    fn announce(
        &self,
        to: &Peer,
        token: String,
        copy: &RoundAnnouncement,
    ) -> Result<(), CallError> {
        let conversation_id = conversation(&format!("round-{}-announce", copy.round_id));
        let about = About {
            conversation_id,
            auth_token: Some(token),
            round_id: Some(copy.round_id),
            ..About::default()
        };
        let mut result = self
            .client
            .notify(to, &copy.clone().into(), &about, self.limit);
        if matches!(result, Err(CallError::Rpc(-32601, _))) {
            result = self.start_matches(to, copy, &about);
        }
        let refused = match &result {
            Err(error @ (CallError::Rpc(..) | CallError::Status(..))) => Some(error.explain()),
            Ok(answer) if is_refusal(answer) => {
                let name = answer["message_type"].as_str().unwrap_or_default();
                let why = LeagueError::read(answer).map(|error| error.explain()); // GAME_ERROR has the same fields
                Some(cut(
                    &format!("answered {name} {}", why.unwrap_or_default()),
                    SHOWN,
                ))
            }
            _ => None,
        };
        if let Some(why) = &refused {
            self.client.log.say(
                Level::Warning,
                "assignment_refused",
                format!("{} {why}", to.id),
            );
        }
        self.contacts
            .update(&to.id, |contact| contact.heard.refused = refused);
        result.map(drop)
    }

    /// Hands matches over one by one to a referee that knows no ROUND_ANNOUNCEMENT.
    fn start_matches(
        &self,
        to: &Peer,
        copy: &RoundAnnouncement,
        about: &About,
    ) -> Result<Value, CallError> {
        let mut answer = Ok(ok());
        for entry in copy
            .matches
            .iter()
            .filter(|entry| Endpoint::same(&entry.referee_endpoint, &to.endpoint))
        {
            let start = StartMatch {
                league_id: copy.league_id.clone(),
                round_id: copy.round_id,
                r#match: entry.clone(),
                auth_token: about.auth_token.clone(),
            };
            let Ok(Value::Object(packet)) = serde_json::to_value(start) else {
                return answer;
            };
            answer = self.client.send(to, "start_match", &packet, self.limit);
            if answer.as_ref().map_or(true, is_refusal) {
                break;
            }
        }
        answer
    }

    fn announced(&self, id: &str, announcement: Announcement, told: &mut Told) {
        told.announcement = announcement;
        self.contacts
            .update(id, |contact| contact.announced = announcement);
        self.store.nudge(); // the round loop waits until players know
    }

    /// Notes whether the agent answered, for the next task, the round loop and the screen.
    fn hear(&self, id: &str, before: &Contact, result: &Result<(), CallError>, farewell: bool) {
        let silent = result
            .as_ref()
            .err()
            .filter(|error| error.is_silence() && !error.is_ours());
        let (trouble, absent) = (
            silent.map(CallError::explain),
            silent.is_some_and(CallError::is_absence),
        );
        let known = (&before.trouble, before.heard.unreachable, before.farewell);
        if before.asked || known != (&trouble, absent, farewell) {
            self.contacts.update(id, |contact| {
                (contact.trouble, contact.heard.unreachable) = (trouble, absent);
                contact.farewell |= farewell && !contact.came && contact.untold == before.untold;
                contact.asked = false;
            });
            self.store.nudge();
        }
    }
}

fn is_refusal(answer: &Value) -> bool {
    answer["message_type"]
        .as_str()
        .is_some_and(|name| name.ends_with("_ERROR"))
}
