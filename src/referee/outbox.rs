//! The outbox: results that wait for the manager's answer, on the disk before anybody hears of
//! them.
//!
//! `data/referees/ID/outbox.jsonl` only grows, by a line a result. A referee that starts again
//! reports every result in it once more, and the manager acknowledges each once more: so nobody
//! needs to write down that a result was settled. Read next: `program/storage.rs`, where `Lines`
//! is.

use crate::object;
use crate::program::storage::Lines;
use crate::protocol::MatchResultReport;
use crate::wire::Wire;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

object! {
    /// A result, as it is reported.
    Kept { conversation_id: String, report: MatchResultReport, }
}

/// The results of our matches. Before we are registered there is no file.
#[derive(Default)]
pub struct Outbox {
    lines: Option<Lines>,
    /// By match: how it ended last.
    results: BTreeMap<String, Kept>,
    /// Those that are to be sent. One that the players have not heard yet, or that the manager has
    /// recorded, is not among them.
    due: VecDeque<Kept>,
}

impl Outbox {
    /// Opens the outbox of a folder, unless it is open; every result in it is to be sent now.
    pub fn open(&mut self, folder: &Path) -> io::Result<()> {
        if self.lines.is_none() {
            let lines = Lines::open(&folder.join("outbox.jsonl"), |line| {
                let record = serde_json::from_slice(line).unwrap_or_default();
                if let Ok(kept) = Kept::read(&record) {
                    self.results.insert(kept.report.match_id.clone(), kept);
                }
                Ok(())
            });
            self.lines = Some(lines?);
            self.due = self.results.values().cloned().collect();
        }
        Ok(())
    }

    /// Keeps a result: it is durable when this returns, and waits for `send`.
    pub fn keep(&mut self, kept: Kept) -> io::Result<()> {
        let lines = self.lines.as_mut();
        let lines = lines.ok_or_else(|| io::Error::other("not registered"))?;
        lines.append(&kept)?;
        self.results.insert(kept.report.match_id.clone(), kept);
        Ok(())
    }

    /// Has the result of a match sent, after those that wait already; false if there is none.
    pub fn send(&mut self, match_id: &str) -> bool {
        let Some(kept) = self.results.get(match_id) else {
            return false;
        };
        if !self.due.contains(kept) {
            self.due.push_back(kept.clone());
        }
        true
    }

    /// Takes the result that is to be sent next. Whoever sends it in vain says `send_again`.
    pub fn next_due(&mut self) -> Option<Kept> {
        self.due.pop_front()
    }

    /// Whether this is how its match ended last.
    pub fn has(&self, kept: &Kept) -> bool {
        self.results.get(&kept.report.match_id) == Some(kept)
    }

    /// A result was sent in vain: it is sent again. If the match has another result by now, that
    /// one is sent when its own time comes.
    pub fn send_again(&mut self, kept: &Kept) {
        if self.has(kept) {
            self.send(&kept.report.match_id);
        }
    }

    /// The result of a match is nothing to us: it was refused, or the match is somebody else's, or
    /// to be played anew.
    pub fn forget(&mut self, match_id: &str) {
        self.results.remove(match_id);
        self.due.retain(|due| due.report.match_id != match_id);
    }

    /// The league is over: nothing need be sent any more.
    pub fn clear(&mut self) {
        self.results.clear();
        self.due.clear();
    }
}
