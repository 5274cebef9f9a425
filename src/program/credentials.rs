//! The credentials of an agent, `data/agents/NAME.json`, with which it is the same agent after a
//! restart. The name is the id that it asks for, else its kind and its port: it never changes.
//!
//! They are saved before the agent registers for the first time, with a key of its own and no
//! token: an agent that is killed before the answer came shows the key again and gets the same
//! answer. The program that uses them holds a lock on `data/agents/ID.lock`.

use super::Program;
use super::args::Exit;
use super::storage::{self, Access};
use crate::net::sync::secret;
use crate::protocol::{ErrorCode, LeagueRegisterResponse, ProtocolError};
use crate::values::{Endpoint, check_identifier, constant_time_eq};
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
    Ok(storage::lock(&file(data, id))?)
}

impl Credentials {
    /// Returns new credentials with a key and no token.
    pub fn new(program: &Program) -> Credentials {
        Credentials {
            agent_id: program.name.clone(),
            registration_key: secret(32),
            league_id: program.league_id().into(),
            manager: program.config.manager().into(),
            endpoint: program.endpoint.clone(),
            folder: absolute(&program.data),
            token: None,
            proves_itself: false,
            is_over: false,
        }
    }

    /// Returns the credentials that the manager has given.
    pub fn accepted(self, response: LeagueRegisterResponse) -> Result<Credentials, Exit> {
        let Some(id) = response.player_id.filter(|id| check_identifier(id).is_ok()) else {
            let problem = "the league manager accepts us, but without an id of letters and digits";
            return Err(Exit::failure(problem));
        };

        Ok(Credentials {
            agent_id: id,
            token: response.auth_token,
            league_id: response.league_id.unwrap_or(self.league_id),
            proves_itself: response.proves_itself == Some(true),
            is_over: false,
            ..self
        })
    }

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

        let (id, league, manager) = (&self.agent_id, &self.league_id, &self.manager);
        Err(Exit::failure(format!(
            "{id} in {} plays in {league} of the manager at {manager}, which is not that at \
             {other}; name another folder with --data DIR, or if the manager has moved, its new \
             address with --manager URL",
            data.display()
        )))
    }

    /// Checks the token of a request of the manager, which is the agent's own. A wrong one is
    /// refused in any case. See "Tokens" in `protocol.md`.
    pub fn check_manager(
        &self,
        token: Option<&str>,
        is_required: bool,
    ) -> Result<(), ProtocolError> {
        match (token, &self.token) {
            (Some(token), Some(own)) if !constant_time_eq(token, own) => {
                let problem = "only the league manager knows the right one";
                Err(ProtocolError::wrong_token(problem))
            }
            (None, Some(_)) if is_required => {
                let problem = "missing; the league manager's requests carry it";
                let code = ErrorCode::TokenMissing;
                Err(ProtocolError::field(code, "auth_token", problem))
            }
            _ => Ok(()),
        }
    }

    /// Saves the credentials.
    pub fn save(&self, data: &Path, name: &str) -> io::Result<()> {
        storage::replace_json(&file(data, name), Access::Owner, self)
    }
}
