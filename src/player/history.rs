//! How a player's matches ended: `history.json`, one document for people and for the next start, rewritten now and
//! then. A player that is killed forgets its last two seconds, no more. Read next: `strategies.rs`, which learns from it.

use crate::extras::strategies::Past;
use crate::object;
use crate::program::storage;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem};

/// How often the file is written, at most.
const PACE: Duration = Duration::from_secs(2);

object! {
    /// The file.
    HistoryFile { player_id: String, league_id: String, matches: Vec<Past>, }
}

/// Every match of ours that is over, oldest first.
pub struct History {
    matches: Arc<Vec<Past>>,
    path: PathBuf,
    /// The player and the league that stand in the file.
    heading: [String; 2],
    written: Instant,
    is_stale: bool,
}

impl History {
    /// Reads what stands in `folder`; what belongs to an older registration is set aside, where this one is `fresh`.
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
        let matches =
            storage::read_json(&path).map_or(Vec::new(), |file: HistoryFile| file.matches);
        let (heading, written) = ([player_id.into(), league_id.into()], Instant::now());
        Ok(History {
            matches: Arc::new(matches),
            path,
            heading,
            written,
            is_stale: false,
        })
    }

    /// All of it. Whoever is thinking about it keeps it as it was.
    pub fn matches(&self) -> Arc<Vec<Past>> {
        Arc::clone(&self.matches)
    }

    /// A match is over; one that was played again takes the place of the first. Says whether that is new to us.
    pub fn remember(&mut self, past: Past) -> bool {
        let is_new = !self.matches.contains(&past);
        let matches = Arc::make_mut(&mut self.matches);
        match matches
            .iter_mut()
            .rfind(|known| known.match_id == past.match_id)
        {
            Some(known) => *known = past,
            None => matches.push(past),
        }
        self.is_stale |= is_new;
        is_new
    }

    /// Writes the file, if it is not what it should be: at once, or when it is due.
    pub fn write(&mut self, at_once: bool) -> io::Result<()> {
        if !self.is_stale
            || !at_once && mem::replace(&mut self.written, Instant::now()).elapsed() < PACE
        {
            return Ok(());
        }
        let ([player_id, league_id], matches) = (self.heading.clone(), self.matches.to_vec());
        storage::replace_page(
            &self.path,
            &HistoryFile {
                player_id,
                league_id,
                matches,
            },
        )?;
        (self.written, self.is_stale) = (Instant::now(), false);
        Ok(())
    }
}
