//! Results that wait for the manager's answer: on the disk before anybody hears of them.
//!
//! `data/referees/ID/outbox.jsonl` only grows, by a line a result. A referee that starts again reports all that stands
//! in it once more, which the manager acknowledges once more: so nobody needs to write down that a result was settled.
//! Read next: `program/storage.rs`, where `Lines` is.

use crate::object;
use crate::program::storage::{Access, Lines};
use crate::protocol::MatchResultReport;
use crate::wire::Wire;
use std::{collections::BTreeMap, io, path::Path, time::Instant};

object! {
    /// A result, as it is reported.
    Kept { conversation_id: String, report: MatchResultReport, }
}

/// How far a result has come.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The players have not heard of it yet.
    Held,
    /// It is to be sent, from that moment on.
    Due(Instant),
    /// The manager has acknowledged it.
    Settled,
}

/// The results of our matches, by match. No file before we are registered.
#[derive(Default)]
pub struct Outbox {
    lines: Option<Lines>,
    results: BTreeMap<String, (Kept, Way)>,
}

impl Outbox {
    /// Opens the outbox of a folder; what stands in it is to be sent now.
    pub fn open(folder: &Path) -> io::Result<Outbox> {
        let (lines, records) = Lines::open(&folder.join("outbox.jsonl"), Access::Everybody)?;
        let kept = records.iter().filter_map(|record| Kept::read(record).ok());
        let results = kept
            .map(|it| (it.report.match_id.clone(), (it, Way::Due(Instant::now()))))
            .collect();
        Ok(Outbox {
            lines: Some(lines),
            results,
        })
    }

    /// Keeps a result; it is durable when this returns, and is not sent before it is `postpone`d to a moment.
    pub fn keep(&mut self, kept: Kept) -> io::Result<()> {
        self.lines
            .as_mut()
            .ok_or_else(|| io::Error::other("not registered"))?
            .append(&kept)?;
        self.results
            .insert(kept.report.match_id.clone(), (kept, Way::Held));
        Ok(())
    }

    /// Sends a result not before that moment. Until then it stands in no other's way.
    pub fn postpone(&mut self, match_id: &str, until: Instant) {
        self.results
            .get_mut(match_id)
            .into_iter()
            .for_each(|(_, way)| *way = Way::Due(until));
    }

    /// The result to be sent next, and from when on.
    pub fn first(&self) -> Option<(Instant, &Kept)> {
        let due = |(kept, way): &'_ (Kept, Way)| {
            if let Way::Due(from) = way {
                Some(*from)
            } else {
                let _ = kept;
                None
            }
        };
        self.results
            .values()
            .filter_map(|it| Some((due(it)?, &it.0)))
            .min_by_key(|(from, _)| *from)
    }

    /// The manager has answered for a result. False where it is not this one any more that waits.
    pub fn settle(&mut self, kept: &Kept, accepted: bool) -> bool {
        let match_id = &kept.report.match_id;
        let is_it = self
            .results
            .get(match_id)
            .is_some_and(|(known, _)| known == kept);
        match accepted {
            true if is_it => self
                .results
                .get_mut(match_id)
                .into_iter()
                .for_each(|(_, way)| *way = Way::Settled),
            false if is_it => self.forget(match_id),
            _ => {}
        }
        is_it
    }

    /// Whether a match is played, so far as we know: then its result is sent, or sent again.
    pub fn has(&mut self, match_id: &str) -> bool {
        if self
            .results
            .get(match_id)
            .is_some_and(|(_, way)| *way == Way::Settled)
        {
            self.postpone(match_id, Instant::now());
        }
        self.results.contains_key(match_id)
    }

    /// A result counts no more: the match is somebody else's, or to be played anew.
    pub fn forget(&mut self, match_id: &str) {
        self.results.remove(match_id);
    }

    /// Nothing need be sent any longer.
    pub fn clear(&mut self) {
        self.results.clear();
    }
}
