//! The matches that a player has played: in memory for `choose`, and in `history.json` for people
//! and for the next start of the program.
//!
//! The file is written every two seconds if it has changed, and at the end of the league.

use super::turn::PastMatch;
use crate::program::storage::{self, Access};
use crate::program::terminal::print_error;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file. The oldest match is the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryFile {
    pub player_id: String,
    pub league_id: String,
    pub matches: Arc<Vec<PastMatch>>,
}

/// The history of a player; empty and without a file until it is registered.
#[derive(Default)]
pub struct History {
    path: PathBuf,
    file: HistoryFile,
    /// True if the file on disk is outdated.
    has_changed: bool,
}

impl History {
    /// Reads the history in a folder. The history of an older registration is archived, and so is a
    /// file that is damaged or that of another player.
    pub fn open(
        folder: &Path,
        player_id: &str,
        league_id: &str,
        is_new_registration: bool,
    ) -> io::Result<History> {
        if is_new_registration {
            storage::move_aside(folder)?;
        }

        let path = folder.join("history.json");
        let mut file = HistoryFile {
            player_id: player_id.into(),
            league_id: league_id.into(),
            ..HistoryFile::default()
        };
        if let Ok(Some(saved)) = storage::read_json::<HistoryFile>(&path)
            && (&saved.player_id, &saved.league_id) == (&file.player_id, &file.league_id)
        {
            file = saved;
        } else if let Some(archived) = storage::move_aside(&path)? {
            let problem = "is not the player's history, and is forgotten; its text is in";
            let [path, archived] = [&path, &archived].map(|path| path.display());
            print_error(&format!("{path} {problem} {archived} now"));
        }

        Ok(History {
            path,
            file,
            has_changed: false,
        })
    }

    /// Returns all matches. The list does not change while a `choose` uses it.
    pub fn matches(&self) -> Arc<Vec<PastMatch>> {
        Arc::clone(&self.file.matches)
    }

    /// Adds a match that is over, or replaces its earlier result. Returns false if it was known.
    pub fn add(&mut self, new: PastMatch) -> bool {
        let matches = Arc::make_mut(&mut self.file.matches);
        let mut latest_first = matches.iter_mut().rev();
        match latest_first.find(|past| past.match_id == new.match_id) {
            Some(past) if past.result == new.result => return false,
            Some(past) => *past = new,
            None => {
                let later = matches.partition_point(|past| past.round_id <= new.round_id);
                matches.insert(later, new);
            }
        }
        self.has_changed = true;
        true
    }

    /// Writes the file if it is outdated.
    pub fn write(&mut self) -> io::Result<()> {
        if self.has_changed {
            storage::replace_json(&self.path, Access::AllUsers, &self.file)?;
            self.has_changed = false;
        }
        Ok(())
    }
}
