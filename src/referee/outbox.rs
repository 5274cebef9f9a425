//! The outbox: results that wait for the manager's answer, on the disk before anybody hears of them.
//!
//! `data/referees/ID/outbox.jsonl` only grows, by a line a result. A referee that starts again reports every result in
//! it once more, and the manager acknowledges each once more: so nobody needs to write down that a result was settled.
//! Read next: `program/storage.rs`, where `Lines` is.

use crate::object;
use crate::program::storage::Lines;
use crate::protocol::MatchResultReport;
use crate::wire::Wire;
use std::{collections::BTreeMap, io, path::Path, time::Instant};

object! {
    /// A result, as it is reported.
    Kept { conversation_id: String, report: MatchResultReport, }
}

/// The results of our matches. Before we are registered there is no file.
#[derive(Default)]
pub struct Outbox {
    lines: Option<Lines>,
    /// By match: the result, and from when on it is to be sent. One that the players have not heard yet, or that the
    /// manager has recorded, is not to be sent.
    results: BTreeMap<String, (Kept, Option<Instant>)>,
}

impl Outbox {
    /// Opens the outbox of a folder; every result in it is to be sent now.
    pub fn open(folder: &Path) -> io::Result<Outbox> {
        let (lines, records) = Lines::open(&folder.join("outbox.jsonl"))?;
        let mut outbox = Outbox::default();
        for kept in records.iter().filter_map(|record| Kept::read(record).ok()) {
            outbox.insert(kept, Some(Instant::now()));
        }
        outbox.lines = Some(lines);
        Ok(outbox)
    }

    /// Keeps a result: it is durable when this returns, and waits for `send`.
    pub fn keep(&mut self, kept: Kept) -> io::Result<()> {
        let lines = self.lines.as_mut();
        lines
            .ok_or_else(|| io::Error::other("not registered"))?
            .append(&kept)?;
        self.insert(kept, None);
        Ok(())
    }

    fn insert(&mut self, kept: Kept, from: Option<Instant>) {
        self.results
            .insert(kept.report.match_id.clone(), (kept, from));
    }

    /// Has the result of a match sent from that moment on; false if there is none.
    pub fn send(&mut self, match_id: &str, from: Instant) -> bool {
        let found = self.results.get_mut(match_id);
        found.map(|(_, due)| *due = Some(from)).is_some()
    }

    /// The result that is to be sent next, and from when on.
    pub fn next(&self) -> Option<(Instant, &Kept)> {
        self.results
            .values()
            .filter_map(|(kept, from)| from.map(|from| (from, kept)))
            .min_by_key(|(from, _)| *from)
    }

    /// A report was made: the result is to be sent again from that moment on, or not any more. If the match has
    /// another result by now, nothing changes.
    pub fn settle(&mut self, kept: &Kept, again: Option<Instant>) {
        match self.results.get_mut(&kept.report.match_id) {
            Some((known, from)) if known == kept => *from = again,
            _ => {}
        }
    }

    /// The manager has refused a result: it is forgotten. False if the match has another result by now, or none.
    pub fn refused(&mut self, kept: &Kept) -> bool {
        let found = self.results.get(&kept.report.match_id);
        let is_it = found.is_some_and(|(known, _)| known == kept);
        if is_it {
            self.forget(&kept.report.match_id);
        }
        is_it
    }

    /// The match is somebody else's now, or to be played anew: its result is nothing to us.
    pub fn forget(&mut self, match_id: &str) {
        self.results.remove(match_id);
    }

    /// The league is over: nothing need be sent any more.
    pub fn clear(&mut self) {
        self.results.clear();
    }
}
