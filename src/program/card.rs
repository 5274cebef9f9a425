//! What an agent must know to be itself again after a restart: its card, `data/agents/ID.json`.
//!
//! A card is written before the agent asks the manager for the first time, with a key of the agent's own and no token:
//! so whoever is killed before the answer came shows the key again, and gets the same answer. Whoever holds the lock
//! beside a card is that agent; a card of another league that is still under way is left alone. Read next:
//! `registration.rs`.

use crate::object;
use crate::program::args::Stop;
use crate::program::storage::{self, Access};
use crate::wire::Endpoint;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

object! {
    /// The file. The token is empty until the manager has let us in, and where it gives none.
    Card {
        agent_id: String, token: String, registration_key: String, league_id: String, manager: String,
        endpoint: String,
        ; optional proves_itself: bool, over: bool,
    }
}

/// The cards in a data folder, and who looks at them.
#[allow(missing_docs, reason = "the names say it")]
pub struct Cards<'a> {
    pub data: &'a Path,
    pub league_id: &'a str,
    /// The manager's URL.
    pub manager: &'a str,
    /// Our own URL.
    pub endpoint: &'a str,
}

impl Cards<'_> {
    /// The file of a card.
    pub fn file(&self, id: &str) -> PathBuf {
        self.data.join(format!("agents/{id}.json"))
    }

    /// The lock of an id: held while we run, so that no other agent takes our card, our history or our outbox for its
    /// own.
    pub fn lock(&self, id: &str) -> Result<File, Stop> {
        let path = self.data.join(format!("agents/{id}.lock"));
        let failed = |error| Stop::failed(storage::named(&path, error).to_string());
        let file = storage::create(&path, Access::Owner, OpenOptions::new().write(true))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                Err(self.in_use(id, "another program is running as it"))
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn in_use(&self, id: &str, why: &str) -> Stop {
        let data = self.data.display();
        Stop::failed(format!(
            "{id} in {data} is in use: {why}; end it, or name another folder with --data DIR"
        ))
    }

    /// The card that is ours: of the id that we ask for, else of our endpoint. One with a token is better than one of an
    /// agent that was killed while it asked.
    pub fn find(&self, wish: Option<&str>) -> Result<Option<Card>, Stop> {
        let files = fs::read_dir(self.data.join("agents"));
        let files = files.into_iter().flatten().flatten();
        let others = files.filter_map(|file| storage::read_json::<Card>(&file.path()));
        let of_endpoint = others.filter(|card| Endpoint::same(&card.endpoint, self.endpoint));
        let of_wish = wish.and_then(|wish| storage::read_json(&self.file(wish)));
        let mut cards: Vec<Card> = of_wish.into_iter().chain(of_endpoint).collect();
        cards.retain(|card| self.is_ours(card) || is_under_way(card));
        cards.sort_by_key(|card| card.token.is_empty());
        let found = cards.into_iter().next();
        found.iter().try_for_each(|card| self.check(card))?;
        Ok(found)
    }

    fn is_ours(&self, card: &Card) -> bool {
        card.league_id == self.league_id && Endpoint::same(&card.manager, self.manager)
    }

    /// Refuses a card that another league is still played with.
    fn check(&self, card: &Card) -> Result<(), Stop> {
        if self.is_ours(card) || !is_under_way(card) {
            return Ok(());
        }
        let (id, league, manager) = (&card.agent_id, &card.league_id, &card.manager);
        let file = self.file(id).display().to_string();
        let why = format!(
            "it plays in {league} of the manager at {manager} (if that is given up, remove {file})"
        );
        Err(self.in_use(id, &why))
    }

    /// Whether the id that the manager gave us may be ours here: its card may be another agent's.
    pub fn check_id(&self, id: &str) -> Result<(), Stop> {
        let other: Option<Card> = storage::read_json(&self.file(id));
        other.map_or(Ok(()), |other| self.check(&other))
    }

    /// Writes a card.
    pub fn keep(&self, card: &Card) -> Result<(), Stop> {
        let written = storage::replace_json(&self.file(&card.agent_id), Access::Owner, card);
        Ok(written?)
    }

    /// Removes a card that was written under another id than the manager gave.
    pub fn remove(&self, id: &str) {
        let _ = fs::remove_file(self.file(id));
    }
}

/// Whether a league is played with a card: the manager has let its agent in, and has not said that it is over.
fn is_under_way(card: &Card) -> bool {
    !card.token.is_empty() && card.over != Some(true)
}
