//! Every match that a player has played: in memory for `choose`, and in `history.json` for people
//! and for the next start of the program.
//!
//! The file is written anew every two seconds while something in it has changed, and at the end of
//! the league. A player that is killed forgets at most what happened in between. Read next:
//! `turn.rs`, what `choose` sees of it.

use crate::object;
use crate::player::turn::Past;
use crate::program::storage::{self, Access};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

object! {
    /// The file: every match of ours that is over, oldest first.
    #[derive(Default)]
    HistoryFile { player_id: String, league_id: String, matches: Arc<Vec<Past>>, }
}

/// What a player has played, and where that is written; nothing and nowhere before it is
/// registered.
#[derive(Default)]
pub struct History {
    path: PathBuf,
    file: HistoryFile,
    /// Whether the file on the disk lacks something.
    is_stale: bool,
}

impl History {
    /// Reads the history in `folder`. If the registration is `fresh`, one of an older registration
    /// is set aside.
    pub fn open(
        folder: &Path,
        player_id: &str,
        league_id: &str,
        fresh: bool,
    ) -> io::Result<History> {
        if fresh {
            storage::set_aside(folder).map_err(|error| storage::named(folder, error))?;
        }
        let path = folder.join("history.json");
        let file = storage::read_json(&path).unwrap_or(HistoryFile {
            player_id: player_id.into(),
            league_id: league_id.into(),
            matches: Arc::default(),
        });
        Ok(History {
            path,
            file,
            is_stale: false,
        })
    }

    /// All matches as they are now. A `choose` that is still thinking keeps the list that it was
    /// given.
    pub fn matches(&self) -> Arc<Vec<Past>> {
        Arc::clone(&self.file.matches)
    }

    /// Adds a match that is over; one that was played again replaces its first playing. Says
    /// whether that is news: a referee may tell it twice.
    pub fn remember(&mut self, past: Past) -> bool {
        let matches = Arc::make_mut(&mut self.file.matches);
        let known = matches.iter_mut().rfind(|it| it.match_id == past.match_id);
        match known {
            Some(known) if *known == past => return false,
            Some(known) => *known = past,
            None => matches.push(past),
        }
        self.is_stale = true;
        true
    }

    /// Writes the file, if it lacks something.
    pub fn write(&mut self) -> io::Result<()> {
        if self.is_stale {
            storage::replace_json(&self.path, Access::Everybody, &self.file)?;
            self.is_stale = false;
        }
        Ok(())
    }
}
