//! The credentials of an agent, `data/agents/NAME.json`, with which it is the same agent after a
//! restart. The name is the id that it asks for, else its kind and its port: it never changes.
//!
//! They are saved before the agent registers for the first time, with a key of its own and no
//! token: an agent that is killed before the answer came shows the key again and gets the same
//! answer. The program that uses them holds a lock on `data/agents/ID.lock`.

use super::args::Exit;
use super::storage::{self, Access};
use crate::values::Endpoint;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::{self, Path, PathBuf};

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
    /// The data folder of its program, with its whole path.
    #[serde(default)]
    pub folder: PathBuf,
    /// Its token; none until it is registered, or if the manager gives none.
    pub token: Option<String>,
    /// True if the manager sends the token with its requests.
    pub proves_itself: bool,
    /// True when the league is over.
    pub is_over: bool,
}

/// Returns the file of an agent's credentials.
pub fn file(data: &Path, name: &str) -> PathBuf {
    data.join("agents").join(format!("{name}.json"))
}

/// Returns the whole path of a folder, if the system can tell.
pub fn absolute(folder: &Path) -> PathBuf {
    path::absolute(folder).unwrap_or(folder.into())
}

/// Locks an id until the returned file is closed.
pub fn lock(data: &Path, id: &str) -> Result<File, Exit> {
    storage::lock(&file(data, id)).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => in_use(
            data,
            id,
            "another program uses it, perhaps a league in another terminal",
        ),
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
    /// Reads the saved credentials of an agent; none if they are missing. Damaged ones are an error.
    pub fn load(data: &Path, name: &str) -> Result<Option<Credentials>, Exit> {
        let path = file(data, name);
        storage::read_json(&path).map_err(|_| {
            let hint = "put it back, or remove it to register as a new agent";
            Exit::failure(format!("{} is damaged; {hint}", path.display()))
        })
    }

    /// Refuses a copy of the credentials of an agent that runs in another folder of this machine.
    pub fn check_is_no_copy(&self, data: &Path, name: &str) -> Result<(), Exit> {
        let (id, other) = (&self.agent_id, &self.folder);
        if *other == absolute(data) || !file(other, name).exists() || lock(other, id).is_ok() {
            return Ok(());
        }

        let (copy, other) = (file(data, name), other.display());
        let hint = "end that program, or remove the copy to register as another agent";
        Err(Exit::failure(format!(
            "{} is a copy: {id} runs on this machine, in the folder {other}; {hint}",
            copy.display()
        )))
    }

    /// Returns true if the agent is registered in a league that is not over.
    pub fn is_active(&self) -> bool {
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
    pub fn save(&self, data: &Path, name: &str) -> io::Result<()> {
        storage::replace_json(&file(data, name), Access::Owner, self)
    }
}
