//! Tells every agent what it must know. There is no queue: one thread per agent compares what its agent has been told
//! with what holds now, and tells the difference, in this order: the table, rounds that are over, the announcement of
//! the open round, the end. So a slow or dead agent delays nobody, nothing outdated is sent, and after a restart or
//! another registration all is told that still matters, by the same comparison.
//!
//! What is told to all alike is in `editions.rs`. Read next: `rounds.rs`, which decides when referees may be told.

use crate::manager::contacts::{Contact, Contacts};
use crate::manager::editions::{Edition, Editor, PACE};
use crate::manager::journal::Store;
use crate::manager::league::{League, Member};
use crate::net::client::{About, Client, Letter, MAX_NOTICE, Peer, conversation, ok};
use crate::net::log::Level;
use crate::net::retry::{CallError, RetryPolicy, SHOWN, pause, retry};
use crate::net::sync::{lock, spawn};
use crate::protocol::{Kind, LeagueError, MatchEntry, Packet, RoundAnnouncement, StartMatch};
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
struct Told {
    /// The contact's `untold` that this goes by: when that counts up, nothing is told.
    untold: u64,
    /// How many results were in the last table.
    results: usize,
    /// The last end of a round that it was told, by its key in the edition.
    rounds: (u64, u32),
    announcement: u64,
    /// A player: the version of the open matches that it was told.
    open: u64,
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
    /// To a player: the announcement's number, the version of its matches, the notice for all, and the player's own match
    /// token with the text that it goes behind.
    OpenMatches(u64, u64, Arc<Letter>, Option<(String, String)>),
    /// To a referee: the announcement's number, and its own copy.
    Announcement(u64, RoundAnnouncement),
    End(Arc<Letter>),
}

/// How often a task is tried.
#[derive(PartialEq)]
enum Effort {
    Once,
    Policy,
    /// That a referee is gone is the round loop's business at once.
    UnlessGone,
}

impl Task {
    fn effort(&self, kind: Kind, failing: bool) -> Effort {
        match self {
            Task::End(_) => Effort::Policy,
            // Whoever did not answer last time gets one attempt, until it answers: the dead must not pile up work.
            Task::Ping | Task::Table(..) => Effort::Once,
            _ if failing => Effort::Once,
            _ if kind == Kind::Referee => Effort::UnlessGone,
            _ => Effort::Policy,
        }
    }
}

impl Notifier {
    /// Starts to tell what holds in `store`.
    pub fn start(
        store: &Arc<Store>,
        contacts: &Arc<Contacts>,
        client: &Arc<Client>,
        (policy, limit): (RetryPolicy, Duration),
    ) -> Arc<Notifier> {
        let (store, contacts, client) = (Arc::clone(store), Arc::clone(contacts), Arc::clone(client));
        let (edition, published) = (Mutex::default(), Condvar::new());
        let notifier = Arc::new(Notifier { store, contacts, client, policy, limit, edition, published });
        let editor = Arc::clone(&notifier);
        spawn("editor", move || editor.edit());
        notifier
    }

    /// The editor: writes what is new, once for all, and has a thread for every agent.
    fn edit(self: Arc<Self>) {
        let mut readers = BTreeSet::new();
        let mut editor = Editor { client: &self.client, table_at: None };
        loop {
            let look = |league: &League| (league.changes, self.contacts.news());
            let seen = self.store.read(look);
            let made = panic::catch_unwind(AssertUnwindSafe(|| self.publish(&mut readers, &mut editor)));
            let pause = if made.unwrap_or(true) { PACE } else { LOOK }; // a panic is reported by the hook
            self.store.wait(pause, |league| look(league) != seen);
        }
    }

    /// Makes a new edition, if there is anything new, and has a thread for every agent; says whether something waits
    /// for its pace.
    fn publish(self: &Arc<Self>, readers: &mut BTreeSet<String>, editor: &mut Editor) -> bool {
        let unread = |league: &League| league.members.keys().filter(|id| !readers.contains(*id)).cloned().collect();
        let unread: Vec<String> = self.store.read(unread);
        for id in unread {
            let (here, reader) = (Arc::clone(self), id.clone());
            if spawn("notifier", move || here.serve(&reader)) {
                readers.insert(id);
            } // else: tried again with the next edition
        }
        let old = Arc::clone(&lock(&self.edition));
        let news = self.contacts.news();
        let (new, waits) = self.store.read(|league| editor.make(league, news, &old));
        if new.is_news(&old) {
            *lock(&self.edition) = Arc::new(new);
            self.published.notify_all();
        }
        waits
    }

    /// One agent's thread: compares and tells, for ever.
    fn serve(&self, id: &str) {
        let mut told = Told::nothing(self.contacts.of(id).untold.wrapping_sub(1), (0, 0)); // another number: begin with a ping
        loop {
            let edition = Arc::clone(&lock(&self.edition));
            let contact = self.contacts.renew(id);
            let member = self.store.read(|league| league.members.get(id).cloned());
            let task = member.as_ref().and_then(|member| self.next(&edition, &contact, member, &mut told));
            if let (Some(task), Some(member)) = (task, member) {
                let done = panic::catch_unwind(AssertUnwindSafe(|| self.tell(&member, &contact, task, &mut told)));
                drop(done); // a panic is reported by the hook, and the comparison starts again
                continue;
            }
            let pause = self.policy.base_delay;
            let waited =
                self.published.wait_timeout_while(lock(&self.edition), pause, |now| now.number == edition.number);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// What an agent has to be told next.
    fn next(&self, edition: &Edition, contact: &Contact, member: &Member, told: &mut Told) -> Option<Task> {
        if told.untold != contact.untold {
            let last = edition.rounds.last_key_value().map_or((0, 0), |((number, round), _)| (*number, round - 1));
            *told = Told::nothing(contact.untold, last);
            return Some(Task::Ping);
        }
        let (is_player, released) = (member.kind == Kind::Player, self.contacts.released());
        if let Some((results, letter)) = edition.table.as_ref().filter(|table| is_player && table.0 > told.results) {
            return Some(Task::Table(*results, Arc::clone(letter)));
        }
        if let Some((round, letter)) = edition.rounds.range((Bound::Excluded(told.rounds), Bound::Unbounded)).next() {
            return Some(Task::Round(*round, Arc::clone(letter)));
        }
        let announcement = if is_player { edition.announcement } else { edition.announcement.min(released) };
        if let Some(open) = edition.open.as_ref().filter(|open| is_player && open.version > told.open) {
            let own = open.own(&member.id);
            return Some(Task::OpenMatches(announcement, open.version, Arc::clone(&open.letter), own));
        }
        if is_player && announcement > told.announcement {
            self.announced(&member.id, announcement, told);
        } else if announcement > told.announcement {
            let copy = self.store.read(|league| Some(league.announcement(league.open_round()?, member)));
            let is_new = |entry: &MatchEntry| !told.entries.contains(entry);
            match copy.filter(|copy| copy.matches.iter().any(is_new)) {
                Some(copy) => return Some(Task::Announcement(announcement, copy)),
                None => self.announced(&member.id, announcement, told),
            }
        }
        if let Some(letter) = edition.end.as_ref().filter(|_| !told.end) {
            return Some(Task::End(Arc::clone(letter)));
        }
        // A referee at work is asked from time to time whether it is there; and whoever did not answer.
        let asked = member.kind == Kind::Referee || contact.trouble.is_some();
        let idle = told.called.is_none_or(|then| then.elapsed() >= self.policy.base_delay);
        (contact.asked || asked && idle && edition.end.is_none()).then_some(Task::Ping)
    }

    /// Tells an agent something, as often as it is worth it, and notes how that went.
    fn tell(&self, member: &Member, contact: &Contact, task: Task, told: &mut Told) {
        let effort = task.effort(member.kind, contact.trouble.is_some());
        let again = |error: &CallError| {
            effort != Effort::Once && error.is_silence() && !(effort == Effort::UnlessGone && error.is_absence())
        };
        let result = retry(&self.policy, pause, again, || {
            let begun = Instant::now();
            self.attempt(&member.id, &task).inspect(|()| {
                self.contacts.answered(&member.id, u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX));
            })
        });
        told.called = Some(Instant::now());
        match task {
            Task::Ping => {}
            Task::Table(results, _) => told.results = results,
            Task::Round(round, _) => told.rounds = round,
            Task::OpenMatches(number, version, ..) => {
                told.open = version;
                self.announced(&member.id, number, told);
            }
            Task::Announcement(number, copy) => {
                told.entries = copy.matches;
                self.announced(&member.id, number, told);
            }
            Task::End(_) => told.end = true,
        }
        self.hear(&member.id, contact, &result, told.end);
    }

    /// One attempt, to the agent as it is registered at this moment: it may have moved since the last one.
    fn attempt(&self, id: &str, task: &Task) -> Result<(), CallError> {
        let Some(member) = self.store.read(|league| league.members.get(id).cloned()) else { return Ok(()) };
        let to = Peer { kind: member.kind, id: id.into(), endpoint: member.endpoint.clone(), max: MAX_NOTICE };
        match task {
            Task::Ping => self.client.ping(&to, &member.token, self.limit),
            Task::Table(_, letter) | Task::Round(_, letter) | Task::End(letter) => {
                self.client.deliver(&to, letter, &member.token, None, self.limit).map(drop)
            }
            Task::OpenMatches(.., letter, own) => {
                self.client.deliver(&to, letter, &member.token, own.as_ref(), self.limit).map(drop)
            }
            Task::Announcement(_, copy) => self.announce(&to, &member, copy),
        }
    }

    /// Announces the open matches of a round to a referee. Its answer matters: an error means that it refuses them.
    fn announce(&self, to: &Peer, member: &Member, copy: &RoundAnnouncement) -> Result<(), CallError> {
        let conversation_id = conversation(&format!("round-{}-announce", copy.round_id));
        let (auth_token, round_id) = (Some(member.token.clone()), Some(copy.round_id));
        let about = About { conversation_id, auth_token, round_id, match_id: None };
        let mut result = self.client.notify(to, &copy.clone().into(), &about, self.limit);
        if matches!(result, Err(CallError::Rpc(-32601, _))) {
            result = self.start_matches(to, copy, &about);
        }
        let refused = match &result {
            Err(error @ (CallError::Rpc(..) | CallError::Status(..))) => Some(error.explain()),
            Ok(answer) if is_refusal(answer) => {
                let name = answer["message_type"].as_str().unwrap_or_default();
                let why = LeagueError::read(answer).map(|error| error.explain()); // GAME_ERROR has the same fields
                Some(cut(&format!("answered {name} {}", why.unwrap_or_default()), SHOWN))
            }
            _ => None,
        };
        if let Some(why) = &refused {
            self.client.log.say(Level::Warning, "assignment_refused", format!("{} {why}", member.id));
        }
        self.contacts.update(&member.id, |contact| contact.heard.refused = refused);
        result.map(drop)
    }

    /// Hands matches over one by one to a referee that knows no ROUND_ANNOUNCEMENT.
    fn start_matches(&self, to: &Peer, copy: &RoundAnnouncement, about: &About) -> Result<Value, CallError> {
        let mut answer = Ok(ok());
        for entry in copy.matches.iter().filter(|entry| Endpoint::same(&entry.referee_endpoint, &to.endpoint)) {
            let start = StartMatch {
                league_id: copy.league_id.clone(),
                round_id: copy.round_id,
                r#match: entry.clone(),
                auth_token: about.auth_token.clone(),
            };
            let packet: Packet = match serde_json::to_value(start) {
                Ok(Value::Object(packet)) => packet,
                _ => return answer,
            };
            answer = self.client.send(to, "start_match", &packet, self.limit);
            if answer.as_ref().map_or(true, is_refusal) {
                break;
            }
        }
        answer
    }

    fn announced(&self, id: &str, number: u64, told: &mut Told) {
        told.announcement = number;
        self.contacts.update(id, |contact| contact.announced = number);
        self.store.nudge(); // the round loop waits until players know
    }

    /// Notes whether the agent answered, for the next task, the round loop and the screen.
    fn hear(&self, id: &str, before: &Contact, result: &Result<(), CallError>, farewell: bool) {
        let silent = result.as_ref().err().filter(|error| error.is_silence() && !error.is_ours());
        let (trouble, absent) = (silent.map(CallError::explain), silent.is_some_and(CallError::is_absence));
        if before.asked
            || before.trouble != trouble
            || before.heard.unreachable != absent
            || before.farewell != farewell
        {
            self.contacts.update(id, |contact| {
                (contact.trouble, contact.heard.unreachable) = (trouble, absent);
                contact.farewell |= farewell && !contact.came && contact.untold == before.untold;
                contact.asked = false;
            });
            self.store.nudge();
        }
    }
}

impl Told {
    /// Nothing yet, but for the ends of the first rounds, which are no news any more.
    fn nothing(untold: u64, rounds: (u64, u32)) -> Told {
        let entries = Vec::new();
        Told { untold, results: 0, rounds, announcement: 0, open: 0, entries, end: false, called: None }
    }
}

fn is_refusal(answer: &Value) -> bool {
    answer["message_type"].as_str().is_some_and(|name| name.ends_with("_ERROR"))
}
