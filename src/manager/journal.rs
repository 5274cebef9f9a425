//! The league and its journal behind one lock: whoever reads it, and whoever is told, sees only what is on the disk.
//!
//! `data/leagues/ID/journal.jsonl` is the truth: a first line with its version, then one event a line. `commit` decides,
//! appends, syncs, applies: in this order, under the lock. The lock is never held during a call to another agent.
//! Read next: `rounds.rs`, which plays the league, and `board.rs`, which tells of it.

use crate::manager::league::{Event, League, Rules};
use crate::net::sync::lock;
use crate::program::storage::{self, Access};
use serde_json::{Value, json};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::Path,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// The version of the journal, which its first line names: a change of `Event` needs a new version.
const VERSION: u32 = 4;

/// The file, open and locked against a second manager.
pub struct Journal {
    file: File,
    /// Bytes of whole lines.
    length: u64,
}

impl Journal {
    /// Opens or creates it, applies every event, and cuts off a last line that a crash left unfinished. Any other
    /// damage is refused with its line number.
    pub fn open(path: &Path, league: &mut League) -> io::Result<Journal> {
        let file = storage::create(
            path,
            Access::Owner,
            OpenOptions::new().read(true).append(true),
        )?;
        file.try_lock().map_err(|_| {
            let remedy = "end that one, or name other data with --data DIR";
            let words = format!(
                "{}: another league manager is running on it; {remedy}",
                path.display()
            );
            io::Error::new(io::ErrorKind::WouldBlock, words)
        })?;
        let length = apply_all(&file, path, league)?;
        file.set_len(length)?;
        let mut journal = Journal { file, length };
        if length == 0 {
            journal.append(&json!({"journal_version": VERSION}))?;
        }
        journal.file.sync_all()?;
        Ok(journal)
    }

    /// Opens the league's journal. A league that is closed, that a new lobby replaces, or that a `fresh` start does not
    /// want is set aside first, with its match pages.
    pub fn find(data: &Path, rules: Rules, fresh: bool) -> io::Result<(League, Journal)> {
        let folder = storage::league_folder(data, &rules.league_id);
        let path = folder.join("journal.jsonl");
        let mut league = League::new(rules);
        let opened = Journal::open(&path, &mut league);
        let unwanted = match &opened {
            Ok(_) => league.closed || league.again || fresh && league.changes > 0,
            Err(error) => fresh && error.kind() != io::ErrorKind::WouldBlock,
        };
        if !unwanted {
            return Ok((league, opened?));
        }
        // The old journal stays locked until it is out of the way. It goes last, so that a manager that dies between
        // the two finds it at its next start.
        storage::set_aside(&data.join("matches").join(&league.rules.league_id))?;
        storage::set_aside(&folder)?;
        drop(opened);
        let mut league = League::new(league.rules);
        let journal = Journal::open(&path, &mut league)?;
        Ok((league, journal))
    }

    /// Adds one line and syncs it. What was written of it before an error is cut off again: nothing has changed.
    fn append(&mut self, line: &impl serde::Serialize) -> io::Result<()> {
        let line = serde_json::to_string(line)? + "\n";
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            if self.file.set_len(self.length).is_err() {
                end(&error); // half a line that cannot be cut off
            }
            return Err(io::Error::other(format!(
                "the journal cannot be written: {error}"
            )));
        }
        self.file.sync_data().unwrap_or_else(|error| end(&error));
        self.length += line.len() as u64;
        Ok(())
    }
}

/// Applies the event of every whole line; says how many bytes those are.
fn apply_all(file: &File, path: &Path, league: &mut League) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut length = 0;
    for number in 1.. {
        line.clear();
        reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            break; // the end, or a last line that a crash left unfinished
        }
        let faulty = |why| io::Error::other(format!("{}: line {number} {why}", path.display()));
        if number == 1 {
            check_head(&line).map_err(faulty)?;
        } else {
            let event: Event = serde_json::from_slice(&line).map_err(|it| faulty(damaged(it)))?;
            league.apply(&event);
        }
        length += line.len() as u64;
    }
    Ok(length)
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

/// The disk does not do what it must: only a restart is safe.
fn end(error: &io::Error) -> ! {
    eprintln!(
        "league_manager: the journal cannot be trusted any more: {error}; mend the disk and start again"
    );
    std::process::exit(1);
}

/// League and journal.
pub struct Store {
    book: Mutex<(League, Journal)>,
    /// Rung when something is new.
    changed: Condvar,
}

impl Store {
    /// Puts a league and the journal it was read from together.
    pub fn new(league: League, journal: Journal) -> Store {
        Store {
            book: Mutex::new((league, journal)),
            changed: Condvar::new(),
        }
    }

    /// Looks at the league.
    pub fn read<T>(&self, ask: impl FnOnce(&League) -> T) -> T {
        ask(&lock(&self.book).0)
    }

    /// Decides, and makes what was decided durable before anybody can see it. Without an event nothing is new.
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
        let not_yet = |book: &mut (League, Journal)| !until(&book.0);
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
