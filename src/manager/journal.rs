//! The league and its journal behind one lock. Readers and notifications only see events that have
//! been written to the disk.
//!
//! `data/leagues/ID/journal.jsonl` has all that is decided: a first line with its version, then one
//! event a line, with the number of the line. A journal that lacks a line is not played on.
//! `commit` decides, appends and syncs, and applies: in this order, under the lock.
//! The lock is never held during a call to another agent. Read next: `results.rs`, a decision.

use super::league::{Event, League};
use crate::net::sync::Shared;
use crate::program::config::Config;
use crate::program::storage::{self, JsonLinesFile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The version of the journal, in its first line. A change of `Event` needs a new version.
const VERSION: u32 = 6;
/// The file with the operator's token, next to the journal. It is written after the journal's first
/// line, so where it exists a journal without any line is a damaged one.
pub const OPERATOR_FILE: &str = "operator.token";

/// A league and its journal.
pub struct Store {
    /// Behind a lock that threads can wait for.
    inner: Shared<Inner>,
    /// Keeps other managers out.
    _lock: File,
}

struct Inner {
    league: League,
    /// The file, to which a line is added and synced.
    journal: JsonLinesFile,
    /// The number of changes since the start of the program, including those that are not in the
    /// journal.
    changes: u64,
}

/// A line of the journal after the first one.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Its number, from 1.
    line: u64,
    #[serde(flatten)]
    event: Event,
}

impl Store {
    /// Opens the league in the data folder. A closed league, and with `is_fresh` any league, is
    /// first archived with the files of its matches. A process that has restarted itself keeps a
    /// closed one.
    pub fn open(
        data: &Path,
        config: Config,
        is_fresh: bool,
        is_restarted: bool,
    ) -> io::Result<Store> {
        let league_id = config.league.league_id.clone();
        let folder = storage::league_folder(data, &league_id);
        let path = folder.join("journal.jsonl");
        let lock = storage::lock(&folder)?;
        let mut league = League::new(config);
        let mut journal = open_journal(&path, &mut league);

        let must_archive = match &journal {
            Ok(_) => league.closed && !is_restarted || is_fresh && league.version > 0,
            Err(_) => is_fresh,
        };
        if must_archive {
            // Close the journal, since Windows moves no folder with an open file. It is moved last,
            // so that a manager that is killed in between finds it at its next start.
            let is_damaged = journal.is_err();
            drop(journal);
            storage::move_aside(&data.join("matches").join(league_id))?;
            if is_damaged {
                storage::archive(&folder)?;
            } else {
                storage::move_aside(&folder)?;
            }
            league = League::new(league.config);
            journal = open_journal(&path, &mut league);
        }

        let inner = Inner {
            league,
            journal: journal?,
            changes: 0,
        };
        Ok(Store {
            inner: Shared::new(inner),
            _lock: lock,
        })
    }

    /// Fails if another program has written the journal.
    pub fn check(&self) -> io::Result<()> {
        self.inner.lock().journal.check()
    }

    /// Reads the league.
    pub fn read<T>(&self, read: impl FnOnce(&League) -> T) -> T {
        read(&self.inner.lock().league)
    }

    /// Calls `decide`, and writes its event to the disk before any reader can see it. Returns the
    /// answer or the error of `decide`, or the error of the disk. Without an event nothing changes.
    pub fn commit<T, E: From<io::Error>>(
        &self,
        decide: impl FnOnce(&League) -> Result<(Option<Event>, T), E>,
    ) -> Result<T, E> {
        let mut inner = self.inner.lock();
        let (event, answer) = decide(&inner.league)?;

        if let Some(event) = event {
            let line = inner.league.version + 2; // after the first line and all events
            let event = Line { line, event };
            inner.journal.append(&event)?;
            inner.league.apply(&event.event);
            drop(inner);
            self.notify_all();
        }
        Ok(answer)
    }

    /// Commits a decision that has no answer, and returns its event.
    pub fn commit_event(
        &self,
        decide: impl FnOnce(&League) -> Option<Event>,
    ) -> io::Result<Option<Event>> {
        self.commit(|league| {
            let event = decide(league);
            Ok((event.clone(), event))
        })
    }

    /// Waits until the condition holds, or the timeout has passed; returns true if it holds.
    pub fn wait(&self, timeout: Duration, condition: impl Fn(&League) -> bool) -> bool {
        let inner = self
            .inner
            .wait_until(timeout, |inner| condition(&inner.league));
        condition(&inner.league)
    }

    /// Wakes all threads that wait, after a change that may not be in the journal.
    pub fn notify_all(&self) {
        self.inner.update(|inner| inner.changes += 1);
    }

    /// Returns the number of changes since the start of the program.
    pub fn change_count(&self) -> u64 {
        self.inner.lock().changes
    }

    /// Waits until the number of changes is another one, or the timeout has passed.
    pub fn wait_for_change(&self, known: u64, timeout: Duration) {
        drop(
            self.inner
                .wait_until(timeout, |inner| inner.changes != known),
        );
    }
}

/// Opens the journal of a league, and applies its events. Fails with the line number if a line is
/// corrupt.
fn open_journal(path: &Path, league: &mut League) -> io::Result<JsonLinesFile> {
    let mut number = 0;
    let mut lines = JsonLinesFile::open(path, |line| {
        number += 1;
        read_line(number, line, league).map_err(|problem| {
            io::Error::other(format!("{}: line {number} {problem}", path.display()))
        })
    })?;

    if number == 0 {
        if path.with_file_name(OPERATOR_FILE).exists() {
            let error = io::Error::other("it has no line; put it back, or start with --fresh");
            return Err(storage::with_path(path, error));
        }

        lines.append(&json!({"journal_version": VERSION}))?;
    }
    Ok(lines)
}

/// Checks the version in the first line; applies the event of any other line.
fn read_line(number: u64, text: &[u8], league: &mut League) -> Result<(), String> {
    if number > 1 {
        let Line { line, event } = serde_json::from_slice(text).map_err(corrupt)?;
        if line != number {
            return Err(format!(
                "has the number {line}: a line is missing, doubled or moved; put the journal back \
                 as it was, or start with --fresh"
            ));
        }
        league.apply(&event);
        return Ok(());
    }

    let first: Value = serde_json::from_slice(text).map_err(corrupt)?;
    if first["journal_version"] != VERSION {
        let hint = "use the program that wrote it, or start with --fresh";
        return Err(format!(
            "is not of this program's version, {VERSION}; {hint}"
        ));
    }
    Ok(())
}

fn corrupt(error: serde_json::Error) -> String {
    let error = error.to_string().replace("line 1 column", "column"); // it counts within this line
    format!("is damaged ({error}); repair it, or start with --fresh")
}
