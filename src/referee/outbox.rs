//! The outbox: results that wait for the manager's acknowledgement, on disk before the players are
//! told. The moves of a game by turns are stored too, in `moves.jsonl`, so that a match goes on after a
//! restart.
//!
//! `data/referees/ID/outbox.jsonl` only grows, by a line per result. A referee that is restarted
//! reports every result in it once more, and the manager acknowledges each once more, so it is not
//! recorded which results were acknowledged. Read next: `program/storage.rs`, where `JsonLinesFile`
//! is.

use crate::games::Move;
use crate::program::storage::JsonLinesFile;
use crate::program::terminal::print_error;
use crate::protocol::MatchResultReport;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

/// A result, as it is reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PendingResult {
    pub conversation_id: String,
    /// The match tokens under which the result was decided.
    pub tokens: Option<[String; 2]>,
    pub report: MatchResultReport,
}

/// The moves of a match that is not over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct OpenMatch {
    pub match_id: String,
    pub conversation_id: String,
    pub tokens: [String; 2],
    pub moves: Vec<Move>,
}

/// The results of our matches.
#[derive(Default)]
pub struct Outbox {
    /// The file, once we are registered.
    file: Option<JsonLinesFile>,
    /// The file with the moves of the matches.
    moves_file: Option<JsonLinesFile>,
    /// The newest result of each match.
    results: BTreeMap<String, PendingResult>,
    /// The newest moves of each match, when the file was opened.
    open_matches: BTreeMap<String, OpenMatch>,
    /// The matches whose results must be reported now.
    queue: VecDeque<String>,
}

impl Outbox {
    /// Opens the outbox in a folder, unless it is open. Every result in it is queued.
    pub fn open(&mut self, folder: &Path) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }

        let path = folder.join("outbox.jsonl");
        let mut number = 0;
        let file = JsonLinesFile::open(&path, |line| {
            number += 1;
            if let Ok(result) = serde_json::from_slice::<PendingResult>(line) {
                self.results.insert(result.report.match_id.clone(), result);
            } else {
                let problem =
                    "is damaged; if the manager lacks its result, the match is played again";
                print_error(&format!("{}: line {number} {problem}", path.display()));
            }
            Ok(())
        })?;
        let moves_file = JsonLinesFile::open(&folder.join("moves.jsonl"), |line| {
            if let Ok(open) = serde_json::from_slice::<OpenMatch>(line) {
                self.open_matches.insert(open.match_id.clone(), open);
            }
            Ok(())
        })?;

        for warning in [&file.warning, &moves_file.warning].into_iter().flatten() {
            print_error(warning);
        }
        self.moves_file = Some(moves_file);
        self.file = Some(file);
        self.queue = self.results.keys().cloned().collect();
        Ok(())
    }

    /// Writes the moves of a match to disk.
    pub fn save_moves(&mut self, open: &OpenMatch) -> io::Result<()> {
        append(&mut self.moves_file, open)
    }

    /// Takes the moves of a match that were written before a restart.
    pub fn take_open_match(&mut self, match_id: &str) -> Option<OpenMatch> {
        self.open_matches.remove(match_id)
    }

    /// Writes a result to disk. It is not queued yet.
    pub fn save(&mut self, result: PendingResult) -> io::Result<()> {
        append(&mut self.file, &result)?;
        self.results.insert(result.report.match_id.clone(), result);
        Ok(())
    }

    /// Queues the result of a match. Returns false if there is none.
    pub fn enqueue(&mut self, match_id: &str) -> bool {
        let is_known = self.get(match_id).is_some();

        if is_known && !self.queue.iter().any(|queued| queued == match_id) {
            self.queue.push_back(match_id.into());
        }
        is_known
    }

    /// Takes the next result from the queue.
    pub fn pop(&mut self) -> Option<PendingResult> {
        let match_id = self.queue.pop_front()?;
        self.get(&match_id).cloned()
    }

    /// Returns the newest result of a match.
    pub fn get(&self, match_id: &str) -> Option<&PendingResult> {
        self.results.get(match_id)
    }

    /// Queues a result again that could not be reported, unless there is a newer one.
    pub fn requeue(&mut self, result: &PendingResult) {
        if self.get(&result.report.match_id) == Some(result) {
            self.enqueue(&result.report.match_id);
        }
    }

    /// Removes the result of a match.
    pub fn remove(&mut self, match_id: &str) {
        self.results.remove(match_id);
        self.queue.retain(|queued| queued != match_id);
    }

    /// Removes all results: the league is over.
    pub fn clear(&mut self) {
        self.results.clear();
        self.queue.clear();
    }
}

fn append(file: &mut Option<JsonLinesFile>, record: &impl Serialize) -> io::Result<()> {
    let file = file.as_mut();
    let file = file.ok_or_else(|| io::Error::other("not registered"))?;
    file.append(record)
}
