//! A value for each player of a match.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The values of the players of a match, sorted by player id: an object in JSON. A league keeps two
/// of them for each match, and a `BTreeMap` takes 300 bytes for two entries. Copies share the values.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, T>")]
pub struct ByPlayer<T>(Arc<[(String, T)]>);

impl<T> ByPlayer<T> {
    /// Returns the value of a player.
    pub fn get(&self, player_id: &str) -> Option<&T> {
        let (_, value) = self.iter().find(|(id, _)| *id == player_id)?;
        Some(value)
    }

    /// Returns the ids of the players and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.0.iter().map(|(id, value)| (id, value))
    }
}

impl<T> From<BTreeMap<String, T>> for ByPlayer<T> {
    fn from(values: BTreeMap<String, T>) -> ByPlayer<T> {
        ByPlayer(values.into_iter().collect())
    }
}

impl<T> FromIterator<(String, T)> for ByPlayer<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(values: I) -> ByPlayer<T> {
        BTreeMap::from_iter(values).into()
    }
}

impl<T: Serialize> Serialize for ByPlayer<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<T: fmt::Debug> fmt::Debug for ByPlayer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
