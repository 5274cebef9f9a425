//! The credentials of an agent, `data/agents/ID.json`, with which it is the same agent after a
//! restart.
//!
//! They are saved before the agent registers for the first time, with a key of its own and no
//! token: an agent that is killed before the answer came shows the key again and gets the same
//! answer. The program that uses them holds a lock on `data/agents/ID.lock`.

use super::args::Exit;
use super::storage::{self, Access};
use crate::values::Endpoint;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The identity of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Credentials {
    /// Its id.
    pub agent_id: String,
    /// The secret by which the manager knows it if it has no token.
    pub registration_key: String,
    /// Its league.
    pub league_id: String,
    /// The URL of its manager.
    pub manager: String,
    /// Its own URL.
    pub endpoint: String,
    /// Its token; none until it is registered, or if the manager gives none.
    pub token: Option<String>,
    /// True if the manager sends the token with its requests.
    pub proves_itself: bool,
    /// True when the league is over.
    pub is_over: bool,
}

/// Returns the file of an agent's credentials.
pub fn file(data: &Path, id: &str) -> PathBuf {
    data.join("agents").join(format!("{id}.json"))
}

/// Locks an id until the returned file is closed.
pub fn lock(data: &Path, id: &str) -> Result<File, Exit> {
    storage::lock(&file(data, id)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => in_use(data, id, "another program uses it"),
        _ => error.into(),
    })
}

fn in_use(data: &Path, id: &str, reason: &str) -> Exit {
    let data = data.display();
    Exit::failure(format!(
        "{id} in {data} is in use: {reason}; end it, or name another folder with --data DIR"
    ))
}

impl Credentials {
    /// Reads the saved credentials of an agent; none if they are missing, or those of a program
    /// that saves other fields. Without a key they are damaged, and an error.
    pub fn load(data: &Path, id: &str) -> Result<Option<Credentials>, Exit> {
        let path = file(data, id);
        match storage::read_json::<Value>(&path) {
            Ok(None) => Ok(None),
            Ok(Some(saved)) if saved["registration_key"].is_string() => {
                Ok(serde_json::from_value(saved).ok())
            }
            _ => Err(Exit::failure(format!(
                "{} is damaged; put it back, or remove it to register as a new agent",
                path.display()
            ))),
        }
    }

    /// Returns the saved credentials of an earlier run of this agent. Those with a token are
    /// preferred, then those with the same id, then those in the file of their id. If there are
    /// none, a damaged file that no program uses is an error: it may be that of this agent.
    pub fn find_saved(&self, data: &Path) -> Result<Option<Credentials>, Exit> {
        let mut earlier = Vec::new();
        let mut damaged = Ok(None);
        let files = fs::read_dir(data.join("agents")).into_iter().flatten();
        for file in files.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let Some(id) = name.strip_suffix(".json") else {
                continue;
            };
            match Credentials::load(data, id) {
                Ok(saved) => earlier.extend(saved.map(|saved| (saved.agent_id == id, saved))),
                Err(exit) if id == self.agent_id || lock(data, id).is_ok() => damaged = Err(exit),
                Err(_) => {}
            }
        }

        earlier.retain(|(_, saved)| self.may_continue(saved));
        earlier.sort_by_key(|(is_original, saved)| {
            let is_same = saved.agent_id == self.agent_id;
            (saved.token.is_some(), is_same, *is_original)
        });
        earlier.pop().map_or(damaged, |(_, saved)| Ok(Some(saved)))
    }

    /// Returns true if saved credentials are those of this agent, from its id or its endpoint, and
    /// of use: their league is not over, or their manager is still the same.
    fn may_continue(&self, saved: &Credentials) -> bool {
        let is_same_agent = saved.agent_id == self.agent_id
            || Endpoint::is_same_address(&saved.endpoint, &self.endpoint);

        let is_same_manager = Endpoint::is_same_address(&saved.manager, &self.manager);
        is_same_agent && (is_same_manager || saved.is_active())
    }

    /// Returns true if the agent is registered in a league that is not over.
    fn is_active(&self) -> bool {
        self.token.is_some() && !self.is_over
    }

    /// Refuses to replace the credentials of an unfinished league of another manager than that at
    /// `other`. (The id of the league is no help: new credentials have that of our own files.)
    pub fn check_may_replace(&self, other: &str, data: &Path) -> Result<(), Exit> {
        if !self.is_active() || Endpoint::is_same_address(&self.manager, other) {
            return Ok(());
        }

        let (league, manager) = (&self.league_id, &self.manager);
        let reason = format!(
            "it plays in {league} of the manager at {manager}, which is not that at {other} (if it \
             has moved, name its new address with --manager URL)"
        );
        Err(in_use(data, &self.agent_id, &reason))
    }

    /// Saves the credentials.
    pub fn save(&self, data: &Path) -> io::Result<()> {
        storage::replace_json(&file(data, &self.agent_id), Access::Owner, self)
    }

    /// Deletes the saved credentials.
    pub fn delete(&self, data: &Path) {
        let _ = fs::remove_file(file(data, &self.agent_id));
    }
}
