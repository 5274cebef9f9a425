//! The league and its journal behind one lock: whoever reads it, and whoever is told, sees only
//! what is on the disk.
//!
//! `data/leagues/ID/journal.jsonl` is the truth: a first line with its version, then one event a
//! line. `commit` decides, appends, syncs, applies: in this order, under the lock. The lock is
//! never held during a call to another agent. Read next: `rounds.rs`, which plays the league, and
//! `board.rs`, which tells of it.

use crate::manager::league::{Event, League};
use crate::net::sync::lock;
use crate::program::config::Config;
use crate::program::storage::{self, Lines};
use serde_json::{Value, json};
use std::{
    io,
    path::Path,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// The version of the journal, which its first line names: a change of `Event` needs a new version.
const VERSION: u32 = 4;

/// Opens the journal of a league, and applies every event in it. Damage is refused with its line
/// number.
fn open(path: &Path, league: &mut League) -> io::Result<Lines> {
    let mut number = 0;
    let mut lines = Lines::open(path, |line| {
        number += 1;
        let faulty = |why| io::Error::other(format!("{}: line {number} {why}", path.display()));
        if number == 1 {
            return check_head(line).map_err(faulty);
        }
        let event: Event = serde_json::from_slice(line).map_err(|it| faulty(damaged(it)))?;
        league.apply(&event);
        Ok(())
    })?;
    if number == 0 {
        lines.append(&json!({"journal_version": VERSION}))?;
    }
    Ok(lines)
}

/// Whether the journal is of our version.
fn check_head(line: &[u8]) -> Result<(), String> {
    let head: Value = serde_json::from_slice(line).map_err(damaged)?;
    if head["journal_version"] == VERSION {
        return Ok(());
    }
    let remedy = "take the program that wrote it, or start with --fresh";
    Err(format!(
        "is not of this program's version, {VERSION}; {remedy}"
    ))
}

fn damaged(error: serde_json::Error) -> String {
    let error = error.to_string().replace("line 1 column", "column"); // it knows this one line
    format!("is damaged ({error}); mend it, or start with --fresh")
}

/// League and journal.
pub struct Store {
    book: Mutex<(League, Lines)>,
    /// Rung when something is new.
    changed: Condvar,
}

impl Store {
    /// Finds the league in the folder of data, as its journal says. A league that is closed, that a
    /// new lobby replaces, or that a `fresh` start does not want is set aside first, with the files
    /// of its matches.
    pub fn find(data: &Path, config: Config, fresh: bool) -> io::Result<Store> {
        let folder = storage::league_folder(data, &config.league.league_id);
        let path = folder.join("journal.jsonl");
        let mut league = League::new(config);
        let mut opened = open(&path, &mut league);
        let unwanted = match &opened {
            Ok(_) => league.closed || league.again || fresh && league.changes > 0,
            Err(error) => fresh && error.kind() != io::ErrorKind::WouldBlock,
        };
        if unwanted {
            // The old journal stays locked until it is out of the way. It goes last, so that a
            // manager that dies between the two finds it at its next start.
            let league_id = &league.config.league.league_id;
            storage::set_aside(&data.join("matches").join(league_id))?;
            storage::set_aside(&folder)?;
            league = League::new(league.config);
            opened = open(&path, &mut league);
        }
        Ok(Store {
            book: Mutex::new((league, opened?)),
            changed: Condvar::new(),
        })
    }

    /// Looks at the league.
    pub fn read<T>(&self, ask: impl FnOnce(&League) -> T) -> T {
        ask(&lock(&self.book).0)
    }

    /// Decides, and makes what was decided durable before anybody can see it. Without an event
    /// nothing is new.
    pub fn commit<T, R: From<io::Error>>(
        &self,
        decide: impl FnOnce(&League) -> Result<(Option<Event>, T), R>,
    ) -> Result<T, R> {
        let mut book = lock(&self.book);
        let (league, journal) = &mut *book;
        let (event, answer) = decide(league)?;
        if let Some(event) = event {
            journal.append(&event)?;
            league.apply(&event);
            drop(book);
            self.changed.notify_all();
        }
        Ok(answer)
    }

    /// The same where nothing can be refused; says whether something is new.
    pub fn decide(&self, decide: impl FnOnce(&League) -> Option<Event>) -> io::Result<bool> {
        self.commit(|league| {
            let event = decide(league);
            let is_new = event.is_some();
            Ok((event, is_new))
        })
    }

    /// Waits until the league is as asked, at most `limit`; says whether it is.
    pub fn wait(&self, limit: Duration, until: impl Fn(&League) -> bool) -> bool {
        let book = lock(&self.book);
        let not_yet = |book: &mut (League, Lines)| !until(&book.0);
        let waited = self.changed.wait_timeout_while(book, limit, not_yet);
        let (book, end) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(book);
        !end.timed_out()
    }

    /// Has those that wait look again: something has changed that is not in the journal.
    pub fn nudge(&self) {
        drop(lock(&self.book)); // nobody between a look and the wait after it misses the bell
        self.changed.notify_all();
    }
}
