//! How a player's matches ended. `history.jsonl` grows by a line a match, and is read back when the player starts;
//! `history.json` is the same as one document for people, and rewritten now and then.
//!
//! A match that is played again ends again: its later line overrules the earlier one. Read next: `strategies.rs`, which
//! learns from all this.

use crate::object;
use crate::player::strategies::Past;
use crate::program::storage::{self, Access, Lines};
use crate::wire::Wire;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the page for people is written, at most.
const PACE: Duration = Duration::from_secs(2);

object! {
    /// The page: `history.json`.
    HistoryFile { player_id: String, league_id: String, matches: Vec<Past>, }
}

/// Every match of ours that is over, oldest first.
pub struct History {
    matches: Arc<Vec<Past>>,
    lines: Lines,
    page: PathBuf,
    /// The player and the league that stand on the page.
    heading: [String; 2],
    /// When the page was last written, or we began.
    written: Instant,
    /// Something has ended since.
    is_stale: bool,
    /// Something is not in the file.
    is_behind: bool,
}

impl History {
    /// Reads what stands in `folder`. What belongs to an older registration is set aside first, where this one is
    /// `fresh`.
    pub fn open(
        folder: &Path,
        player_id: &str,
        league_id: &str,
        fresh: bool,
    ) -> io::Result<History> {
        if fresh {
            storage::set_aside(folder).map_err(|error| storage::named(folder, error))?;
        }
        let page = folder.join("history.json");
        let (mut lines, records) = Lines::open(&folder.join("history.jsonl"), Access::Everybody)?;
        let mut matches = Vec::new();
        records
            .iter()
            .filter_map(|record| Past::read(record).ok())
            .for_each(|past| put(&mut matches, past));
        if records.is_empty() {
            // An older version of this program kept the page alone.
            matches =
                storage::read_json(&page).map_or(Vec::new(), |file: HistoryFile| file.matches);
        }
        if matches.len() != records.len() {
            lines.replace(&matches)?;
        }
        let (heading, is_stale) = ([player_id.into(), league_id.into()], !matches.is_empty());
        let (matches, written, is_behind) = (Arc::new(matches), Instant::now(), false);
        Ok(History {
            matches,
            lines,
            page,
            heading,
            written,
            is_stale,
            is_behind,
        })
    }

    /// All of it. Whoever is thinking about it keeps it as it was.
    pub fn matches(&self) -> Arc<Vec<Past>> {
        Arc::clone(&self.matches)
    }

    /// A match is over: in the file when this returns. Says whether that is new to us. After an error we know it all
    /// the same, and the next one brings it into the file.
    pub fn remember(&mut self, past: Past) -> io::Result<bool> {
        if self.matches.contains(&past) {
            return Ok(false);
        }
        put(Arc::make_mut(&mut self.matches), past.clone());
        self.is_stale = true;
        let kept = if self.is_behind {
            self.lines.replace(&self.matches)
        } else {
            self.lines.note(&past)
        };
        self.is_behind = kept.is_err();
        kept.map(|()| true)
    }

    /// Writes the page, if it is not what it should be: at once, or when it is due.
    pub fn write_page(&mut self, at_once: bool) -> io::Result<()> {
        if !self.is_stale || !at_once && self.written.elapsed() < PACE {
            return Ok(());
        }
        let ([player_id, league_id], matches) = (self.heading.clone(), self.matches.to_vec());
        self.written = Instant::now();
        storage::replace_page(
            &self.page,
            &HistoryFile {
                player_id,
                league_id,
                matches,
            },
        )?;
        self.is_stale = false;
        Ok(())
    }
}

/// Adds a match, or puts it in the place of the same one played before.
fn put(matches: &mut Vec<Past>, past: Past) {
    match matches
        .iter_mut()
        .rfind(|known| known.match_id == past.match_id)
    {
        Some(known) => *known = past,
        None => matches.push(past),
    }
}
