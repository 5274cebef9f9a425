//! What an agent must know to be itself again: its card, `data/agents/ID.json`. Whoever holds the lock beside it is
//! that agent; a card of another league that is still under way is left alone.

use crate::object;
use crate::program::args::Stop;
use crate::program::storage::{self, Access};
use crate::wire::Endpoint;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

object! {
    /// The file.
    Card {
        agent_id: String, token: String, league_id: String, manager: String, endpoint: String,
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
    fn file(&self, id: &str) -> PathBuf {
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

    /// The card that is ours: of the id that we ask for (empty for any), else of our endpoint.
    pub fn find(&self, wish: &str) -> Result<Option<Card>, Stop> {
        let of_endpoint = || {
            let entries = fs::read_dir(self.data.join("agents"))
                .into_iter()
                .flatten()
                .flatten();
            let mut cards = entries.filter_map(|entry| storage::read_json::<Card>(&entry.path()));
            cards.find(|card| Endpoint::same(&card.endpoint, self.endpoint))
        };
        let found = storage::read_json(&self.file(wish)).or_else(of_endpoint);
        found.map_or(Ok(None), |card| Ok(self.is_ours(&card)?.then_some(card)))
    }

    /// Whether a card is of our league; an error where its own league is another, and still under way.
    fn is_ours(&self, card: &Card) -> Result<bool, Stop> {
        let ours = card.league_id == self.league_id && Endpoint::same(&card.manager, self.manager);
        if !ours && card.over != Some(true) {
            let (league, manager, file) =
                (&card.league_id, &card.manager, self.file(&card.agent_id));
            let given_up = format!("if that is given up, remove {}", file.display());
            let why = format!("it plays in {league} of the manager at {manager} ({given_up})");
            return Err(self.in_use(&card.agent_id, &why));
        }
        Ok(ours)
    }

    /// Whether the id that the manager gave us may be ours here: its card may be another agent's.
    pub fn check(&self, id: &str) -> Result<(), Stop> {
        let other = storage::read_json::<Card>(&self.file(id));
        other.map_or(Ok(()), |other| self.is_ours(&other).map(drop))
    }

    /// Writes a card.
    pub fn keep(&self, card: &Card) -> Result<(), Stop> {
        Ok(storage::replace_json(
            &self.file(&card.agent_id),
            Access::Owner,
            card,
        )?)
    }
}
