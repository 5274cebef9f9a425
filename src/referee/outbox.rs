//! Results that wait for the manager's answer: kept on the disk before anybody hears of them, until they are settled.
//!
//! `data/referees/ID/outbox.jsonl` grows by a line for a result, later by a line that settles it. At start it is read
//! back and written anew with what still waits. Killed at any moment, a referee reports what it kept once more, which
//! the manager acknowledges once more. Read next: `program/storage.rs`, where `Lines` is.

use crate::object;
use crate::program::storage::{self, Access, Lines};
use crate::protocol::MatchResultReport;
use crate::wire::Wire;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

object! {
    /// A result that waits for the manager's answer.
    Kept { conversation_id: String, report: MatchResultReport, }
    /// The match whose result need not be kept any longer.
    Settled { settled: String, }
}

/// The results that wait.
#[derive(Default)]
pub struct Outbox {
    /// None until we are registered.
    lines: Option<Lines>,
    /// By match, with the moment from which on it is to be sent: none before the players have heard of it.
    waiting: BTreeMap<String, (Kept, Option<Instant>)>,
    /// What the manager has acknowledged.
    answered: BTreeMap<String, Kept>,
}

impl Outbox {
    /// Opens the outbox of a folder; what waits in it is to be sent now.
    pub fn open(folder: &Path) -> io::Result<Outbox> {
        let (mut lines, records) = Lines::open(&folder.join("outbox.jsonl"), Access::Everybody)?;
        let (olds, mut waiting) = (old_files(folder)?, BTreeMap::new());
        for kept in olds
            .iter()
            .filter_map(|path| storage::read_json::<Kept>(path))
        {
            waiting.insert(kept.report.match_id.clone(), kept);
        }
        for record in &records {
            if let Ok(kept) = Kept::read(record) {
                waiting.insert(kept.report.match_id.clone(), kept);
            } else if let Ok(line) = Settled::read(record) {
                waiting.remove(&line.settled);
            }
        }
        if records.len() != waiting.len() || !olds.is_empty() {
            lines.replace(&waiting.values().collect::<Vec<_>>())?;
        }
        for old in olds {
            let _ = fs::remove_file(old); // if it stays, its result is acknowledged once more
        }
        let now = Some(Instant::now());
        let waiting = waiting
            .into_iter()
            .map(|(match_id, kept)| (match_id, (kept, now)))
            .collect();
        Ok(Outbox {
            lines: Some(lines),
            waiting,
            answered: BTreeMap::new(),
        })
    }

    /// Keeps a result; it is durable when this returns, and is not sent before it is `release`d.
    pub fn keep(&mut self, kept: Kept) -> io::Result<()> {
        self.lines
            .as_mut()
            .ok_or_else(|| io::Error::other("not registered"))?
            .append(&kept)?;
        self.waiting
            .insert(kept.report.match_id.clone(), (kept, None));
        Ok(())
    }

    /// The players have heard of a result: it may be sent.
    pub fn release(&mut self, match_id: &str) {
        self.postpone(match_id, Instant::now());
    }

    /// Sends a result not before that moment. Until then it stands in no other's way.
    pub fn postpone(&mut self, match_id: &str, until: Instant) {
        if let Some((_, from)) = self.waiting.get_mut(match_id) {
            *from = Some(until);
        }
    }

    /// The result to be sent next, and from when on.
    pub fn first(&self) -> Option<(Instant, &Kept)> {
        self.waiting
            .values()
            .filter_map(|(kept, from)| Some(((*from)?, kept)))
            .min_by_key(|(from, _)| *from)
    }

    /// The manager has answered for a result. False where it is not this one any more that waits.
    pub fn settle(&mut self, kept: Kept, accepted: bool) -> bool {
        let match_id = kept.report.match_id.clone();
        let is_waiting = self
            .waiting
            .get(&match_id)
            .is_some_and(|(waiting, _)| *waiting == kept);
        if is_waiting {
            self.forget(&match_id);
            if accepted {
                self.answered.insert(match_id, kept);
            }
        }
        is_waiting
    }

    /// Whether a match is played, so far as we know: then its result is sent, or sent again.
    pub fn has(&mut self, match_id: &str) -> bool {
        if let Some(kept) = self.answered.remove(match_id) {
            self.waiting
                .insert(match_id.into(), (kept, Some(Instant::now())));
        }
        self.waiting.contains_key(match_id)
    }

    /// What the manager has acknowledged is not sent again: it gives us the match anew.
    pub fn void(&mut self, match_id: &str) {
        self.answered.remove(match_id);
    }

    /// A result need not be kept any longer. If that is not durable, it is acknowledged once more.
    pub fn forget(&mut self, match_id: &str) {
        if let (Some(_), Some(lines)) = (self.waiting.remove(match_id), &mut self.lines) {
            let _ = lines.note(&Settled {
                settled: match_id.into(),
            });
        }
    }

    /// Nothing need be kept any longer.
    pub fn clear(&mut self) {
        let all: Vec<String> = self.waiting.keys().cloned().collect();
        all.iter().for_each(|match_id| self.forget(match_id));
    }
}

/// The outboxes of an earlier version, one file a match.
fn old_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    Ok(paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect())
}
