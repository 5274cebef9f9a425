//! The league and its journal behind one lock: what is committed is on the disk before anybody hears of it.
//!
//! `data/leagues/ID/journal.jsonl` is the truth, one event a line. Order of locks: `synced`, then `book`; neither
//! is held across a call to another agent. Syncing under its own lock lets neighbours share one sync.

use crate::{
    files::{self, Access},
    league::{Event, League, Rules},
    threads::lock,
};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::Path,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

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
        let file = files::create(path, Access::Owner, OpenOptions::new().read(true).append(true))
            .map_err(|error| files::named(path, error))?;
        let shown = path.display();
        file.try_lock().map_err(|_| {
            io::Error::new(
                io::ErrorKind::WouldBlock,
                format!(
                    "{shown}: another league manager is running on it; end that one, or name other data with --data DIR"
                ),
            )
        })?;
        let (mut reader, mut line, mut length) = (BufReader::new(&file), Vec::new(), 0);
        for number in 1.. {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                break; // the end, or a torn last line
            }
            let damaged = |error: serde_json::Error| {
                let error = error.to_string().replace("line 1 column", "column"); // it knows this one line
                io::Error::other(format!("{shown}: line {number} is damaged ({error}); mend it, or start with --fresh"))
            };
            let event: Event = serde_json::from_slice(&line).map_err(damaged)?;
            league.apply(&event);
            length += line.len() as u64;
        }
        file.set_len(length)?;
        file.sync_all()?;
        Ok(Journal { file, length })
    }

    /// Finds the league in its folder: to be resumed, or, if it is closed or to be `fresh`, set aside
    /// with its match pages. Says whether something is resumed.
    pub fn find(data: &Path, rules: Rules, fresh: bool) -> io::Result<(League, Journal, bool)> {
        let folder = data.join("leagues").join(&rules.league_id);
        let path = folder.join("journal.jsonl");
        let mut league = League::new(rules);
        let mut opened = Journal::open(&path, &mut league);
        let busy = opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        let over = opened.is_ok() && league.closed;
        let unwanted = fresh && (opened.is_err() || league.changes > 0);
        if !busy && (over || unwanted) {
            // The old journal stays locked until it is out of the way.
            files::set_aside(&folder)?;
            files::set_aside(&data.join("matches").join(&league.rules.league_id))?;
            league = League::new(league.rules);
            opened = Journal::open(&path, &mut league);
        }
        let resumed = league.changes > 0;
        Ok((league, opened?, resumed))
    }

    /// Adds one line. What was written of it before an error is cut off again, so that nothing has changed.
    fn append(&mut self, event: &Event) -> io::Result<()> {
        let line = serde_json::to_string(event)? + "\n";
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            if self.file.set_len(self.length).is_err() {
                end(&error); // half a line that cannot be cut off
            }
            return Err(io::Error::other(format!("the journal cannot be written: {error}")));
        }
        self.length += line.len() as u64;
        Ok(())
    }
}

/// The disk does not do what it must, and memory may be ahead of it: only a restart is safe.
fn end(error: &io::Error) -> ! {
    eprintln!("league_manager: the journal cannot be trusted any more: {error}; mend the disk and start again");
    std::process::exit(1);
}

/// League and journal.
pub struct Record {
    book: Mutex<Book>,
    /// Rung when something new is durable.
    changed: Condvar,
    /// The journal's file once more, to be synced while others write.
    disk: File,
    /// How many bytes of the journal are durable.
    synced: Mutex<u64>,
}

struct Book {
    league: League,
    journal: Journal,
}

impl Record {
    /// Puts a league and the journal it was read from together.
    pub fn new(league: League, journal: Journal) -> io::Result<Record> {
        let (disk, synced) = (journal.file.try_clone()?, Mutex::new(journal.length));
        Ok(Record { book: Mutex::new(Book { league, journal }), changed: Condvar::new(), disk, synced })
    }

    /// Looks at the league.
    pub fn read<T>(&self, ask: impl FnOnce(&League) -> T) -> T {
        ask(&lock(&self.book).league)
    }

    /// Decides, appends, applies, and returns when that is durable. Where there is no event nothing is new; but
    /// whoever repeats a request waits here until the first one is durable.
    pub fn commit<T, R: From<io::Error>>(
        &self,
        decide: impl FnOnce(&League) -> Result<(Option<Event>, T), R>,
    ) -> Result<T, R> {
        let mut book = lock(&self.book);
        let (event, answer) = decide(&book.league)?;
        if let Some(event) = event {
            book.journal.append(&event)?;
            book.league.apply(&event);
        }
        let written = book.journal.length;
        drop(book);
        let mut synced = lock(&self.synced);
        if *synced < written {
            let reached = lock(&self.book).journal.length; // a neighbour's line is taken along
            self.disk.sync_data().unwrap_or_else(|error| end(&error));
            *synced = reached;
        }
        drop(synced);
        self.changed.notify_all();
        Ok(answer)
    }

    /// Waits until the league is as asked, at most `limit`.
    pub fn wait(&self, limit: Duration, until: impl Fn(&League) -> bool) {
        let waited = self.changed.wait_timeout_while(lock(&self.book), limit, |book| !until(&book.league));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
