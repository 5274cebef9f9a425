//! Files for people, made from the league's document at will: the table, the rounds, one file per match. The truth is
//! the journal; whoever deletes these loses nothing. They follow from outside, every two seconds at most.

use crate::manager::document::LeagueView;
use crate::program::storage;
use crate::wire::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The pages of a league, and what they said when they were written.
pub struct Pages {
    league: PathBuf,
    matches: PathBuf,
    written: BTreeMap<PathBuf, Value>,
}

impl Pages {
    /// Pages below the data folder, for one league.
    pub fn new(data: &Path, league_id: &str) -> Pages {
        let (league, matches) = (
            data.join("leagues").join(league_id),
            data.join("matches").join(league_id),
        );
        Pages {
            league,
            matches,
            written: BTreeMap::new(),
        }
    }

    /// Writes what is new.
    pub fn write(&mut self, view: &LeagueView) -> io::Result<()> {
        let over = view
            .rounds
            .iter()
            .filter(|round| round.matches.iter().all(|it| it.ending.is_some()))
            .count();
        let (id, version, rounds) = (&view.league_id, view.matches_completed, &view.rounds);
        let table = json!({"league_id": id, "version": version, "rounds_completed": over, "standings": view.standings});
        let mut pages = vec![
            (self.league.join("standings.json"), table),
            (
                self.league.join("rounds.json"),
                json!({"league_id": id, "rounds": rounds}),
            ),
        ];
        for game in rounds
            .iter()
            .flat_map(|round| &round.matches)
            .filter(|it| it.referee_id.is_some())
        {
            pages.push((
                self.matches.join(format!("{}.json", game.match_id)),
                json!(game),
            ));
        }
        for (path, mut page) in pages {
            if self.written.get(&path) != Some(&page) {
                self.written.insert(path.clone(), page.clone());
                page["last_updated"] = Timestamp::now().to_string().into();
                storage::replace_page(&path, &page)?;
            }
        }
        Ok(())
    }
}
