//! Files for people, made from the league's document: the table, the rounds and a file for each
//! match while the league is played; the report and the tables for spreadsheets at its end. The
//! truth is the journal: whoever deletes these files loses nothing. A file that cannot be written
//! keeps no other from being written, and is tried again.

use crate::figures::Figures;
use crate::report;
use crate::view::{LeagueView, RoundView};
use league::program::storage::{self, Access};
use league::values::Timestamp;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file as JSON. What is borrowed in it is not copied: a tree of all matches would take more
/// memory than the league.
#[derive(Serialize)]
struct Page<'a, T> {
    league_id: &'a str,
    #[serde(flatten)]
    content: T,
    last_updated: Timestamp,
}

/// The files of a league.
pub struct Pages {
    data: PathBuf,
    logs: PathBuf,
    /// The version of the document that all files were last written from.
    written: Option<u64>,
}

impl Pages {
    /// The files of a league below the folder `data`; its report quotes the logs in `logs`.
    pub fn new(data: PathBuf, logs: PathBuf) -> Pages {
        Pages {
            data,
            logs,
            written: None,
        }
    }

    /// Writes the files in which something is new; gives back what went wrong.
    pub fn write(&mut self, view: &LeagueView) -> Vec<io::Error> {
        let folder = self.data.join("matches").join(&view.league_id);
        let rounds = view.rounds.iter();
        let changed: Vec<_> = rounds.filter(|it| it.changed > self.written).collect();
        let mut written = Vec::new();
        for game in changed.iter().flat_map(|round| &round.matches) {
            if game.referee_id.is_some() {
                let path = folder.join(format!("{}.json", game.match_id));
                written.push(write_page(&path, view, game));
            }
        }
        if self.written.is_none() || !changed.is_empty() {
            written.extend(self.write_tables(view));
        }
        let errors: Vec<io::Error> = written.into_iter().filter_map(Result::err).collect();
        if errors.is_empty() {
            self.written = view.version;
        }
        errors
    }

    fn folder(&self, view: &LeagueView) -> PathBuf {
        storage::league_folder(&self.data, &view.league_id)
    }

    fn write_tables(&self, view: &LeagueView) -> [io::Result<()>; 2] {
        let is_over =
            |round: &&Arc<RoundView>| round.matches.iter().all(|game| game.ending.is_some());
        let standings = json!({
            "version": view.matches_completed,
            "matches": view.total_matches,
            "rounds_completed": view.rounds.iter().filter(is_over).count(),
            "standings": view.standings,
        });
        let rounds = BTreeMap::from([("rounds", &view.rounds)]);
        let folder = self.folder(view);
        [
            write_page(&folder.join("standings.json"), view, standings),
            write_page(&folder.join("rounds.json"), view, rounds),
        ]
    }

    /// Writes what a person keeps of a league that is over; says where, or what went wrong.
    pub fn keep(&mut self, view: &LeagueView, figures: &Figures) -> Result<String, String> {
        let folder = self.folder(view);
        let mut errors = self.write(view);
        for name in ["report.html", "league.json", "results.csv", "standings.csv"] {
            let text = report::file(name, view, figures, &self.logs).unwrap_or_default();
            let kept = storage::replace(&folder.join(name), Access::AllUsers, &text);
            errors.extend(kept.err());
        }
        let count = errors.len();
        match errors.first() {
            Some(error) => Err(format!(
                "{count} of the files to keep cannot be written: {error}"
            )),
            None => Ok(format!(
                "to keep: report.html, results.csv and standings.csv in {}",
                folder.display()
            )),
        }
    }
}

/// Writes a file of a league as JSON, with the time at which it was written.
fn write_page(path: &Path, view: &LeagueView, content: impl Serialize) -> io::Result<()> {
    let page = Page {
        league_id: &view.league_id,
        content,
        last_updated: Timestamp::now(),
    };
    storage::replace_json(path, Access::AllUsers, &page)
}
