//! What an agent must know to be itself again after a restart: its card, `data/agents/ID.json`.
//!
//! A card is written before the agent asks the manager for the first time, with a key of the
//! agent's own and no token: so whoever is killed before the answer came shows the key again, and
//! gets the same answer. Whoever holds the lock beside a card is that agent; a card of another
//! league that is still under way is left alone. Read next: `registration.rs`.

use crate::object;
use crate::program::args::Stop;
use crate::program::storage::{self, Access};
use crate::wire::Endpoint;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

object! {
    /// The file. There is no token until the manager has let us in, and where it gives none.
    Card {
        agent_id: String, registration_key: String, league_id: String, manager: String,
        endpoint: String,
        ; optional token: String, proves_itself: bool, over: bool,
    }
}

/// The file of a card, in a folder of data.
pub fn file(data: &Path, id: &str) -> PathBuf {
    data.join(format!("agents/{id}.json"))
}

/// The lock of an id: held while we run, so that no other agent takes our card, our history or our
/// outbox for its own.
pub fn lock(data: &Path, id: &str) -> Result<File, Stop> {
    let path = data.join(format!("agents/{id}.lock"));
    let file = storage::create(&path, Access::Owner, OpenOptions::new().write(true))?;
    let in_use = |_| in_use(data, id, "another program is running as it");
    file.try_lock().map_err(in_use)?;
    Ok(file)
}

fn in_use(data: &Path, id: &str, why: &str) -> Stop {
    let data = data.display();
    let remedy = "end it, or name another folder with --data DIR";
    Stop::failed(format!("{id} in {data} is in use: {why}; {remedy}"))
}

impl Card {
    /// The card of an earlier run, for an agent that has this new one: of the same id, else of the
    /// same endpoint. One with a token is better than one of an agent that was killed while it
    /// asked.
    pub fn earlier(&self, data: &Path) -> Result<Option<Card>, Stop> {
        let files = fs::read_dir(data.join("agents"));
        let files = files.into_iter().flatten().flatten();
        let all = files.filter_map(|file| storage::read_json::<Card>(&file.path()));
        let has_our_id = |card: &Card| card.agent_id == self.agent_id;
        let found = all
            .filter(|card| has_our_id(card) || Endpoint::same(&card.endpoint, &self.endpoint))
            .filter(|card| card.is_of_league(self) || card.is_under_way())
            .min_by_key(|card| (card.token.is_none(), !has_our_id(card)));
        found
            .iter()
            .try_for_each(|card| card.make_way(self, data))?;
        Ok(found)
    }

    /// Whether both cards are of one league. Its id does not say so: a new card has that of our own
    /// files.
    fn is_of_league(&self, other: &Card) -> bool {
        Endpoint::same(&self.manager, &other.manager)
    }

    /// Whether a league is played with the card: the manager has let its agent in, and has not said
    /// that it is over.
    fn is_under_way(&self) -> bool {
        self.token.is_some() && self.over != Some(true)
    }

    /// Whether a newer card may stand in the place of this one: not while another league is played
    /// with it.
    pub fn make_way(&self, newer: &Card, data: &Path) -> Result<(), Stop> {
        if self.is_of_league(newer) || !self.is_under_way() {
            return Ok(());
        }
        let (id, league, manager) = (&self.agent_id, &self.league_id, &self.manager);
        let file = file(data, id);
        let file = file.display();
        let why = format!(
            "it plays in {league} of the manager at {manager} (if that is given up, remove {file})"
        );
        Err(in_use(data, id, &why))
    }

    /// Writes the card.
    pub fn keep(&self, data: &Path) -> io::Result<()> {
        storage::replace_json(&file(data, &self.agent_id), Access::Owner, self)
    }
}
