//! What was heard from each agent and how far it has been told: written by the notifier and the handlers, read by the
//! round loop, the screen and the answers. A small table behind a lock of its own; nothing in it must survive.

use crate::manager::league::Announcement;
use crate::manager::liveness::Heard;
use crate::net::sync::lock;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// What we know of one agent beside its registration.
#[derive(Debug, Clone, Default)]
pub struct Contact {
    /// What was last heard of it.
    pub heard: Heard,
    /// Why the last call failed, in words; none where it did not.
    pub trouble: Option<String>,
    /// How long its last answer took, in milliseconds.
    pub answers_in: Option<u32>,
    /// Counts up when all that it was told counts as untold.
    pub untold: u64,
    /// When that was last because it had registered.
    registered: Option<Instant>,
    /// Whether it has registered since.
    pub came: bool,
    /// The newest announcement that it has been told, or that could not be delivered.
    pub announced: Announcement,
    /// Whether it is to be called once more, now.
    pub asked: bool,
    /// Whether it has been told that the league is over, or could not be.
    pub farewell: bool,
}

/// The table, how far agents may be told of the open round, and what the league waits for.
#[derive(Default)]
pub struct Contacts {
    all: Mutex<BTreeMap<String, Contact>>,
    changes: AtomicU64,
    /// Counts what the notifier must look at: who registered, is to be asked or told anew, and releases.
    news: AtomicU64,
    /// The newest announcement that referees may be told.
    released: Mutex<Announcement>,
    /// What a league that has started waits for, if it does not go on.
    pub waiting: Mutex<Option<String>>,
}

/// An agent that registers in a loop is told anew once in this time.
const TOLD_ANEW: Duration = Duration::from_secs(1);

impl Contacts {
    /// What we know of an agent.
    pub fn of(&self, id: &str) -> Contact {
        lock(&self.all).get(id).cloned().unwrap_or_default()
    }

    /// Counts changes: whoever waits for news compares this.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Changes what we know of an agent.
    pub fn update(&self, id: &str, change: impl FnOnce(&mut Contact)) {
        change(lock(&self.all).entry(id.into()).or_default());
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts what the notifier must look at.
    pub fn news(&self) -> u64 {
        self.news.load(Ordering::SeqCst)
    }

    /// The newest announcement that referees may be told.
    pub fn released(&self) -> Announcement {
        *lock(&self.released)
    }

    /// How many agents have registered since this program runs.
    pub fn here(&self) -> usize {
        lock(&self.all)
            .values()
            .filter(|contact| contact.came || contact.registered.is_some())
            .count()
    }

    /// It is to be called once more, now.
    pub fn ask_again(&self, id: &str) {
        self.update(id, |contact| contact.asked = true);
        self.news.fetch_add(1, Ordering::SeqCst);
    }

    /// It has answered, in so many milliseconds. News only the first time.
    pub fn answered(&self, id: &str, milliseconds: u32) {
        let first = lock(&self.all)
            .entry(id.into())
            .or_default()
            .answers_in
            .replace(milliseconds)
            .is_none();
        self.changes.fetch_add(first.into(), Ordering::SeqCst);
    }

    /// From now on referees may be told this announcement. Says whether that is new.
    pub fn release(&self, announcement: Announcement) -> bool {
        let is_new = std::mem::replace(&mut *lock(&self.released), announcement) != announcement;
        self.news.fetch_add(is_new.into(), Ordering::SeqCst);
        is_new
    }

    /// All that it was told counts as untold.
    pub fn forget(&self, id: &str) {
        self.update(id, |contact| contact.untold += 1);
        self.news.fetch_add(1, Ordering::SeqCst);
    }

    /// It has registered, perhaps again: it counts, and is told everything anew.
    pub fn registered(&self, id: &str) {
        self.update(id, |contact| {
            (contact.heard, contact.farewell, contact.came) = (Heard::default(), false, true);
        });
        self.news.fetch_add(1, Ordering::SeqCst);
    }

    /// What it was told before it registered counts as untold: at once, or when the last time is long enough ago. Says
    /// what we know then.
    pub fn renew(&self, id: &str) -> Contact {
        let contact = self.of(id);
        if !contact.came
            || contact
                .registered
                .is_some_and(|then| then.elapsed() < TOLD_ANEW)
        {
            return contact;
        }
        self.update(id, |contact| {
            (contact.registered, contact.came) = (Some(Instant::now()), false);
            contact.untold += 1;
        });
        self.of(id)
    }

    /// A report has come from it, taken or refused: it is at work.
    pub fn reported(&self, id: &str) {
        let heard = self.of(id).heard;
        if heard.refused.is_some() || heard.overdue {
            self.update(id, |contact| contact.heard = Heard::default());
        }
    }
}
