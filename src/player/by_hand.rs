//! A player whose choices come from outside: `--strategy mcp` leaves them to whoever calls its tools, a person with the
//! Inspector or an assistant. `next_turn` waits for a match in which we are asked, `make_choice` answers it.
//!
//! The referee's call waits in `ask` meanwhile. If nobody chooses, the fallback does, a little before the deadline, and
//! `next_turn` tells it. Who may call the tools is decided in `player.rs`, before anything waits.

use crate::game;
use crate::net::sync::lock;
use crate::player::strategies::{Past, Turn};
use crate::protocol::{Code, Parity, Refusal, Tally};
use crate::wire::cut;
use crate::{object, words};
use serde_json::Value;
use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// What a model is told before it calls a tool.
pub const INSTRUCTIONS: &str = "You are a player of the AI Agent League, and play Even/Odd against others. Call \
    next_turn again and again until its status is \"over\": it waits up to 25 seconds for a match in which you are asked. \
    When its status is \"your_turn\", call make_choice with its match_id and your choice, \"even\" or \"odd\", before \
    seconds_left have passed; else a fallback chooses for you, and the notes say so. Then a number from 1 to 10 is drawn: \
    if you and your opponent chose alike it is a draw, else whoever named the number's parity wins. The draw is fair; so \
    only the opponent can be predicted, from the history, and it pays to choose otherwise than it does. \
    get_player_state shows your record at any time. The other tools are for referees and the league manager: leave them.";

/// How long `next_turn` waits: less than clients usually wait for a tool.
const PATIENCE: Duration = Duration::from_secs(25);
/// So long before the deadline the fallback chooses.
const MARGIN: Duration = Duration::from_secs(2);
/// How many past matches are shown.
const SHOWN: usize = 50;

words! {
    /// What `next_turn` has found.
    TurnState { YourTurn = "your_turn", Wait = "wait", Over = "over", }
}

object! {
    /// What `next_turn` answers: the match in which we are asked; or that there is none yet, or none any more.
    Offer {
        status: TurnState, notes: Vec<String>,
        ; optional match_id: String, round_id: u32, player_id: String, opponent_id: String, seconds_left: u32,
        standings: Tally, history: Vec<Past>,
    }
    /// What `make_choice` answers.
    Chosen { status: String, match_id: String, choice: Parity, }
}

/// The matches in which we are asked at this moment.
#[derive(Default)]
pub struct ByHand {
    table: Mutex<Table>,
    /// Rung when something in it is new.
    changed: Condvar,
}

#[derive(Default)]
struct Table {
    open: Vec<(Turn, Option<Parity>)>,
    /// What has happened without the client, until it is told.
    notes: Vec<String>,
    is_over: bool,
}

impl ByHand {
    /// Asks whoever calls our tools. None: nobody chose in time, and the fallback must.
    pub fn ask(&self, turn: &Turn) -> Option<Parity> {
        let mut table = lock(&self.table);
        table.open.push((turn.clone(), None));
        self.changed.notify_all();
        let find = |table: &Table| table.open.iter().position(|(open, _)| open.match_id == turn.match_id);
        let is_unanswered = |table: &mut Table| find(table).is_some_and(|at| table.open[at].1.is_none());
        let limit = turn.time_left().saturating_sub(MARGIN);
        let waited = self.changed.wait_timeout_while(table, limit, is_unanswered);
        let (mut table, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let at = find(&table)?;
        table.open.remove(at).1
    }

    /// Something that the client is told with its next turn.
    pub fn note(&self, words: &str) {
        lock(&self.table).notes.push(words.into());
    }

    /// The league is over.
    pub fn end(&self, words: &str) {
        let mut table = lock(&self.table);
        if !std::mem::replace(&mut table.is_over, true) {
            table.notes.push(words.into());
        }
        self.changed.notify_all();
    }

    /// `next_turn`: waits until we are asked, but not for ever.
    pub fn next_turn(&self) -> Offer {
        let is_idle = |table: &mut Table| !table.is_over && table.open.iter().all(|(_, choice)| choice.is_some());
        let waited = self.changed.wait_timeout_while(lock(&self.table), PATIENCE, is_idle);
        let (mut table, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let notes = std::mem::take(&mut table.notes);
        let asked = table.open.iter().find(|(_, choice)| choice.is_none()).map(|(turn, _)| turn);
        let status = match (asked, table.is_over) {
            (Some(_), _) => TurnState::YourTurn,
            (None, true) => TurnState::Over,
            (None, false) => TurnState::Wait,
        };
        let history = |turn: &Turn| turn.history[turn.history.len().saturating_sub(SHOWN)..].to_vec();
        Offer {
            status,
            notes,
            match_id: asked.map(|turn| turn.match_id.clone()),
            round_id: asked.map(|turn| turn.round_id),
            player_id: asked.map(|turn| turn.player_id.clone()),
            opponent_id: asked.map(|turn| turn.opponent_id.clone()),
            seconds_left: asked.map(|turn| turn.time_left().saturating_sub(MARGIN).as_secs() as u32),
            standings: asked.and_then(|turn| turn.standings.clone()),
            history: asked.map(history),
        }
    }

    /// `make_choice`: the same again is fine, another is too late.
    pub fn make_choice(&self, match_id: &str, choice: &Value) -> Result<Chosen, Refusal> {
        let choice = game::choice(choice).map_err(|refusal| refusal.with("field", "choice"))?;
        let mut table = lock(&self.table);
        let Some((_, made)) = table.open.iter_mut().find(|(turn, _)| turn.match_id == match_id) else {
            let problem =
                format!("got {:?}, but there no choice is asked now; next_turn waits for one", cut(match_id, 60));
            return Err(Refusal::field(Code::E015, "match_id", problem));
        };
        let first = *made.get_or_insert(choice);
        self.changed.notify_all();
        if first != choice {
            return Err(Refusal::field(Code::E015, "choice", format!("{first} is chosen already, and stands")));
        }
        Ok(Chosen { status: "ok".into(), match_id: match_id.into(), choice })
    }
}
