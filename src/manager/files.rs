//! The files of a league for people and other programs: the table, the rounds, and each match that
//! has a result.
//!
//! The journal is the truth, so nothing is lost if these files are deleted. A thread writes them
//! while the league is played; it holds the lock of the league only while it copies the state,
//! which shares the matches. If a file cannot be written, the others are written nevertheless, and
//! it is tried again.

use super::Manager;
use super::league::{League, Match};
use super::queries::scheduled_rounds;
use crate::net::log::Level;
use crate::net::sync::{lock, spawn_needed};
use crate::program::storage::{self, Access};
use crate::values::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

/// Interval between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(2);
/// The state of the files.
#[derive(Default)]
pub struct WrittenFiles {
    /// The number of events when all files were last written.
    version: Option<u64>,
    /// The number of results, in the order in which they were recorded, that have a file.
    results: usize,
    /// True if the last write failed.
    has_failed: bool,
}

/// Starts a thread that writes the files of a manager's league until the league is closed.
pub fn keep_writing(manager: &Arc<Manager>) {
    let manager = Arc::clone(manager);
    spawn_needed("files", move || {
        while !manager.store.read(|league| league.closed) {
            manager.write_files();
            thread::sleep(WRITE_INTERVAL);
        }
    });
}

impl Manager {
    /// Writes what is new in the league. That it cannot be written is said once, and stops no
    /// league.
    pub fn write_files(&self) {
        let mut written = lock(&self.written_files);
        let result = self.write_changes(&mut written);
        if let Err(error) = &result
            && !written.has_failed
        {
            let text = format!("the files of the league cannot be written: {error}");
            self.say(Level::Error, "fault", &text);
        }
        written.has_failed = result.is_err();
    }

    /// Writes the files that have changed. Returns one of the errors.
    fn write_changes(&self, written: &mut WrittenFiles) -> io::Result<()> {
        let league = self.store.read(League::clone);
        if written.version == Some(league.version) {
            return Ok(());
        }

        let mut result = Ok(());
        let new_results = league.played[written.results..].iter();
        for the_match in new_results.filter_map(|id| league.find(id)) {
            let written = self.write_file("matches", &the_match.id, match_content(the_match));
            result = result.and(written);
        }

        let standings = json!({
            "version": league.version,
            "rounds_completed": league.rounds_completed,
            "standings": league.table(),
        });
        let schedule = league.schedule_preview();
        let rounds = BTreeMap::from([("rounds", scheduled_rounds(&schedule, None))]);
        self.write_file("leagues", "rounds", rounds)
            .and(self.write_file("leagues", "standings", standings))
            .and(result)?;
        written.version = Some(league.version);
        written.results = league.played.len();
        Ok(())
    }

    /// Writes `data/KIND/ID/NAME.json`, with the fields that all files have.
    fn write_file(&self, kind: &str, name: &str, content: impl Serialize) -> io::Result<()> {
        let league_id = self.program.league_id();
        let file = LeagueFile {
            schema_version: "1.0.0",
            league_id,
            last_updated: Timestamp::now(),
            content,
        };

        let mut path = self.program.data.join(kind).join(league_id);
        path.push(format!("{name}.json"));
        storage::replace_json(&path, Access::AllUsers, &file)
    }
}

/// A file with the fields that all files have. Its text is written from the content itself, since
/// the `Value` of a long schedule takes several times the memory of its text.
#[derive(Serialize)]
struct LeagueFile<'a, T> {
    schema_version: &'static str,
    league_id: &'a str,
    last_updated: Timestamp,
    #[serde(flatten)]
    content: T,
}

/// Returns what the file of a match with a result has.
fn match_content(the_match: &Match) -> Value {
    let recorded = the_match.recorded.as_ref();
    json!({
        "match_id": the_match.id,
        "round_id": the_match.round,
        "player_A_id": the_match.players[0],
        "player_B_id": the_match.players[1],
        "referee_id": recorded.map(|recorded| &recorded.referee_id),
        "result": recorded.map(|recorded| &recorded.result),
        "recorded_at": recorded.map(|recorded| recorded.at),
    })
}
