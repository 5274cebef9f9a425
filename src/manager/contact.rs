//! What is known of one agent beside its registration: whether it answers, what it has been told,
//! and, of a referee, whether it can be given matches. Nothing of that must survive a restart. The
//! board (`board.rs`) keeps a `Contact` for every member.

use crate::net::retry::{CallError, SHOWN};
use crate::protocol::LeagueError;
use crate::wire::{Timestamp, Wire, cut};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often an agent is told anew at most, however often it registers.
const ANEW: Duration = Duration::from_secs(1);

/// Whether a referee can be used: whether it is given matches, and keeps those that it has.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum RefereeState {
    /// The referee answers, or has not been called yet.
    #[default]
    Alive,
    /// Nobody answers there, for this reason. The referee is alive again when it answers.
    Lost(String),
    /// The referee answered an assignment with this error. It is alive again when it registers or
    /// reports.
    Refusing(String),
    /// The referee has not reported in its time, as these words say. It is alive again when it
    /// registers or reports.
    Overdue(String),
}

/// What is known of all agents, and of the league beside its state.
#[derive(Default)]
pub struct Heard {
    /// What is known of each agent that was called or has registered.
    pub contacts: BTreeMap<String, Contact>,
    /// What a league that has started waits for.
    pub waiting: Waiting,
    /// How often something of this has changed.
    pub changes: u64,
}

impl Heard {
    /// What is known of an agent.
    pub fn of(&self, id: &str) -> Contact {
        self.contacts.get(id).cloned().unwrap_or_default()
    }
}

/// What a league that has started waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waiting {
    /// Why the league does not go on, if it does not.
    pub reason: Option<String>,
    /// When the announced matches begin, if the lead has not passed yet.
    pub next_at: Option<Timestamp>,
}

/// What is known of one agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contact {
    /// Why the last call failed, in words; none where it did not.
    pub trouble: Option<String>,
    /// How a referee stands; of a player it says nothing.
    pub referee: RefereeState,
    /// How long its answer to the last notice took, or to the first ping, in milliseconds.
    pub answers_in: Option<u32>,
    /// Whether it has registered since this program runs.
    pub is_here: bool,
    /// When it was last called; none while it is to be called at once.
    pub called: Option<Instant>,
    /// The number of the last notice that it was told, or that could not be delivered.
    pub(super) read: u64,
    /// Whether it begins again with what still matters, and when it last did.
    pub(super) starts_anew: bool,
    began: Option<Instant>,
}

impl Contact {
    /// Goes back to what comes after the `outdated` notices, if the agent begins anew. Says how
    /// long that must wait.
    pub(super) fn begin_anew(&mut self, outdated: impl FnOnce() -> u64) -> Duration {
        if !self.starts_anew {
            return Duration::ZERO;
        }
        let since = self.began.map_or(ANEW, |began| began.elapsed());
        if since >= ANEW {
            self.starts_anew = false;
            self.began = Some(Instant::now());
            self.read = outdated();
        }
        ANEW.saturating_sub(since)
    }

    /// Notes how a call ended: whether an agent is there. Whoever answers with a JSON-RPC error is
    /// one.
    pub(super) fn note_call(&mut self, error: Option<&CallError>) {
        let is_trouble =
            |error: &&CallError| !matches!(error, CallError::Rpc(..)) && !error.is_ours();
        let trouble = error.filter(is_trouble);
        self.called = Some(Instant::now());
        self.trouble = trouble.map(CallError::explain);
        match (&self.referee, trouble) {
            (RefereeState::Alive, Some(why)) if why.is_absence() => {
                self.referee = RefereeState::Lost(why.explain());
            }
            // Any HTTP answer means that it is there, also one that no agent gives. It may have
            // missed its matches.
            (RefereeState::Lost(_), None | Some(CallError::Status(..) | CallError::Wrong(..))) => {
                self.referee = RefereeState::Alive;
                self.starts_anew = true;
            }
            _ => {}
        }
    }
}

/// Why a referee refuses its matches, if what came of their announcement says so.
pub(super) fn refusal(result: &Result<Value, CallError>) -> Option<String> {
    let answer = match result {
        Err(error @ (CallError::Rpc(..) | CallError::Status(..))) => return Some(error.explain()),
        Err(_) => return None,
        Ok(answer) => answer,
    };
    let name = answer["message_type"].as_str()?;
    if !name.ends_with("_ERROR") {
        return None;
    }
    // GAME_ERROR has the same fields
    let why = LeagueError::read(answer).map(|error| error.explain());
    let words = format!("answered {name} {}", why.unwrap_or_default());
    Some(cut(&words, SHOWN))
}
