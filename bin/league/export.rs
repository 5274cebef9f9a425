//! Files for people, made from the league's document: the table, the rounds and a file for each match
//! while the league is played; the report and the tables for spreadsheets at its end.
//!
//! The journal is the truth, so nothing is lost if these files are deleted. If a file cannot be
//! written, the others are written nevertheless, and it is tried again.

use crate::derived::DerivedFields;
use crate::render;
use crate::view::LeagueView;
use league::program::storage::{self, Access};
use league::values::Timestamp;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The content of a JSON file. It borrows the parts of the document, since a copy of all matches would
/// take more memory than the league.
#[derive(Serialize)]
struct FileContent<'a, T> {
    league_id: &'a str,
    #[serde(flatten)]
    content: T,
    last_updated: Timestamp,
}

/// The files of a league.
pub struct Exporter {
    data: PathBuf,
    logs: PathBuf,
    /// The version of the document from which all files were last written.
    written_version: Option<u64>,
}

impl Exporter {
    /// Returns the files below the folder `data`; the report has traces of the folder `logs`.
    pub fn new(data: PathBuf, logs: PathBuf) -> Exporter {
        Exporter {
            data,
            logs,
            written_version: None,
        }
    }

    /// Writes the files that have changed. Returns the errors.
    pub fn write(&mut self, view: &LeagueView) -> Vec<io::Error> {
        let folder = self.data.join("matches").join(&view.league_id);
        let mut has_changed = self.written_version.is_none();
        let mut errors = Vec::new();
        for round in &view.rounds {
            if round.changed <= self.written_version {
                continue;
            }

            has_changed = true;
            for the_match in &round.matches {
                if the_match.referee_id.is_some() {
                    let path = folder.join(format!("{}.json", the_match.match_id));
                    errors.extend(write_json(&path, view, the_match).err());
                }
            }
        }

        if has_changed {
            errors.extend(self.write_standings(view).err());
            errors.extend(self.write_rounds(view).err());
        }

        if errors.is_empty() {
            self.written_version = view.version;
        }
        errors
    }

    fn folder(&self, view: &LeagueView) -> PathBuf {
        storage::league_folder(&self.data, &view.league_id)
    }

    fn write_standings(&self, view: &LeagueView) -> io::Result<()> {
        let mut rounds_completed = 0;
        for round in &view.rounds {
            let mut matches = round.matches.iter();
            if matches.all(|the_match| the_match.ending.is_some()) {
                rounds_completed += 1;
            }
        }

        let standings = json!({
            "version": view.matches_completed,
            "matches": view.total_matches,
            "rounds_completed": rounds_completed,
            "standings": view.standings,
        });
        write_json(&self.folder(view).join("standings.json"), view, standings)
    }

    fn write_rounds(&self, view: &LeagueView) -> io::Result<()> {
        let rounds = BTreeMap::from([("rounds", &view.rounds)]);
        write_json(&self.folder(view).join("rounds.json"), view, rounds)
    }

    /// Writes the files that people keep of a league that is over. Returns a sentence that names the
    /// folder, or one with the first error.
    pub fn finish(&mut self, view: &LeagueView, derived: &DerivedFields) -> Result<String, String> {
        let folder = self.folder(view);
        let mut errors = self.write(view);
        for name in ["report.html", "league.json", "results.csv", "standings.csv"] {
            let text = render::file(name, view, derived, &self.logs).unwrap_or_default();
            let written = storage::replace(&folder.join(name), Access::AllUsers, &text);
            errors.extend(written.err());
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

/// Writes a JSON file of a league, with the time.
fn write_json(path: &Path, view: &LeagueView, content: impl Serialize) -> io::Result<()> {
    let content = FileContent {
        league_id: &view.league_id,
        content,
        last_updated: Timestamp::now(),
    };
    storage::replace_json(path, Access::AllUsers, &content)
}
