//! Files for people, made from the league's document: the table, the rounds and a file for each match while the league
//! is played; the report and the tables for spreadsheets at its end. The truth is the journal: whoever deletes these
//! files loses nothing. A file that cannot be written keeps no other from being written, and is tried again.

use crate::extras::figures::Figures;
use crate::extras::{csv, report};
use crate::manager::document::{LeagueView, RoundView};
use crate::manager::journal;
use crate::net::retry::{RetryPolicy, pause};
use crate::program::storage::{self, Access};
use crate::wire::Timestamp;
use serde::Serialize;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file as JSON.
#[derive(Serialize)]
struct Page<T> {
    #[serde(flatten)]
    content: T,
    last_updated: Timestamp,
}

/// What stands in `rounds.json`: borrowed, since a tree of all matches would take more memory than the league.
#[derive(Serialize)]
struct RoundsPage<'a> {
    league_id: &'a str,
    rounds: &'a [Arc<RoundView>],
}

/// The files of a league, and what they said when they were written.
pub struct Pages {
    data: PathBuf,
    logs: PathBuf,
    /// The document that all files were written from; none after one that could not be written.
    written: Option<Arc<LeagueView>>,
    /// Whether somebody has been told that files cannot be written.
    pub has_failed: bool,
}

impl Pages {
    /// The files of a league below the folder `data`; its report quotes the logs in `logs`.
    pub fn new(data: PathBuf, logs: PathBuf) -> Pages {
        Pages {
            data,
            logs,
            written: None,
            has_failed: false,
        }
    }

    /// Writes the files in which something is new; gives back what went wrong.
    pub fn write(&mut self, view: &Arc<LeagueView>) -> Vec<io::Error> {
        let before = self.written.take();
        let folder = self.data.join("matches").join(&view.league_id);
        let mut errors = Vec::new();
        let mut is_new = before.is_none();
        for (place, round) in view.rounds.iter().enumerate() {
            let old = before.as_ref().and_then(|view| view.rounds.get(place));
            if old.is_some_and(|old| Arc::ptr_eq(old, round)) {
                continue;
            }
            is_new = true;
            for game in round.matches.iter().filter(|it| it.referee_id.is_some()) {
                if old.is_none_or(|old| !old.matches.contains(game)) {
                    let path = folder.join(format!("{}.json", game.match_id));
                    errors.extend(write_page(&path, game).err());
                }
            }
        }
        if is_new {
            errors.extend(self.write_tables(view));
        }
        self.written = Some(Arc::clone(view)).filter(|_| errors.is_empty());
        errors
    }

    fn folder(&self, view: &LeagueView) -> PathBuf {
        journal::folder(&self.data, &view.league_id)
    }

    fn write_tables(&self, view: &LeagueView) -> Vec<io::Error> {
        let is_over =
            |round: &&Arc<RoundView>| round.matches.iter().all(|game| game.ending.is_some());
        let standings = json!({
            "league_id": view.league_id,
            "version": view.matches_completed,
            "matches": view.total_matches,
            "rounds_completed": view.rounds.iter().filter(is_over).count(),
            "standings": view.standings,
        });
        let (league_id, rounds) = (&view.league_id, &view.rounds);
        let rounds = RoundsPage { league_id, rounds };
        let folder = self.folder(view);
        let written = [
            write_page(&folder.join("standings.json"), standings),
            write_page(&folder.join("rounds.json"), rounds),
        ];
        written.into_iter().filter_map(Result::err).collect()
    }

    /// Writes what a person keeps of a league that is over, within the retry policy; says where, or what went wrong.
    pub fn keep(
        &mut self,
        view: &Arc<LeagueView>,
        figures: &Figures,
        policy: &RetryPolicy,
    ) -> Result<String, String> {
        let folder = self.folder(view);
        let standings = csv::standings(view, &figures.expected_points);
        let mut files = vec![
            ("report.html", report::saved(view, figures, &self.logs)),
            ("league.json", report::document(view, figures)),
            ("results.csv", csv::results(view)),
            ("standings.csv", standings),
        ];
        for attempt in 1.. {
            let mut errors = self.write(view);
            files.retain(|(name, text)| {
                let kept = storage::replace(&folder.join(name), Access::Everybody, text);
                kept.map_err(|error| errors.push(error)).is_err()
            });
            match errors.first() {
                None => break,
                Some(error) if attempt >= policy.attempts => {
                    let count = errors.len();
                    return Err(format!(
                        "{count} of the files to keep cannot be written: {error}"
                    ));
                }
                Some(_) => pause(policy.delay(attempt)),
            }
        }
        Ok(format!(
            "to keep: report.html, results.csv and standings.csv in {}",
            folder.display()
        ))
    }
}

/// Writes a file as JSON, with the time at which it was written.
fn write_page(path: &Path, content: impl Serialize) -> io::Result<()> {
    let last_updated = Timestamp::now();
    let page = Page {
        content,
        last_updated,
    };
    storage::replace_json(path, Access::Everybody, &page)
}
