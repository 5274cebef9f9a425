//! A player whose choices come from outside: `--strategy mcp` leaves them to whoever calls its tools, a person with the
//! Inspector or an assistant. `next_turn` waits for a match in which we are asked, `make_choice` answers it.
//!
//! The referee's call waits in `ask` meanwhile. If nobody chooses, the fallback does, a little before the deadline, and
//! `next_turn` tells it. Who may call the tools is decided in `player.rs`, before anything waits.

use crate::extras::strategies::{Past, Turn};
use crate::games;
use crate::net::sync::lock;
use crate::protocol::{Code, Parity, Refusal, Tally};
use crate::wire::{Wire, cut};
use crate::{object, words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
        ; optional match_id: String, round_id: u32, player_id: String, opponent_id: String, seconds_left: u32, standings: Tally, history: Vec<Past>,
    }
    /// What `make_choice` answers.
    Chosen { status: String, match_id: String, choice: Parity, }
}

/// What is asked of us at this moment.
#[derive(Default)]
pub struct ByHand {
    table: Mutex<Table>,
    /// Rung when something in it is new.
    changed: Condvar,
}

#[derive(Default)]
struct Table {
    /// By match, until it is answered or its time is over.
    asked: BTreeMap<String, Turn>,
    /// By match, until the player has it.
    chosen: BTreeMap<String, Parity>,
    /// What has happened without the client, until it is told.
    notes: Vec<String>,
    is_over: bool,
}

impl ByHand {
    /// The table, when something in it is no longer so, or after a while.
    fn wait_while(&self, limit: Duration, is_so: impl Fn(&Table) -> bool) -> MutexGuard<'_, Table> {
        let waited = self
            .changed
            .wait_timeout_while(lock(&self.table), limit, |table| is_so(table));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Asks whoever calls our tools. None: nobody chose in time, and the fallback must.
    pub fn ask(&self, turn: &Turn) -> Option<Parity> {
        let (match_id, limit) = (&turn.match_id, turn.time_left().saturating_sub(MARGIN));
        lock(&self.table)
            .asked
            .insert(match_id.clone(), turn.clone());
        self.changed.notify_all();
        let mut table = self.wait_while(limit, |table| table.asked.contains_key(match_id));
        table.asked.remove(match_id);
        table.chosen.remove(match_id)
    }

    /// Something that the client is told with its next turn.
    pub fn note(&self, words: &str) {
        lock(&self.table).notes.push(words.into());
    }

    /// The league is over.
    pub fn end(&self, words: &str) {
        let mut table = lock(&self.table);
        table.notes.push(words.into());
        table.is_over = true;
        self.changed.notify_all();
    }

    /// `next_turn`: waits until we are asked; the most urgent comes first.
    pub fn next_turn(&self) -> Offer {
        let mut table = self.wait_while(PATIENCE, |table| !table.is_over && table.asked.is_empty());
        let notes = std::mem::take(&mut table.notes);
        let turn = table.asked.values().min_by_key(|turn| turn.deadline);
        let nobody = if table.is_over {
            TurnState::Over
        } else {
            TurnState::Wait
        };
        let status = if turn.is_some() {
            TurnState::YourTurn
        } else {
            nobody
        };
        let newest =
            |turn: &Turn| turn.history[turn.history.len().saturating_sub(SHOWN)..].to_vec();
        let seconds = |turn: &Turn| turn.time_left().saturating_sub(MARGIN).as_secs() as u32;
        let (match_id, round_id) = turn.map(|it| (it.match_id.clone(), it.round_id)).unzip();
        let (player_id, opponent_id) = turn
            .map(|it| (it.player_id.clone(), it.opponent_id.clone()))
            .unzip();
        let (seconds_left, history) = turn.map(|it| (seconds(it), newest(it))).unzip();
        let standings = turn.and_then(|it| it.standings.clone());
        Offer {
            status,
            notes,
            match_id,
            round_id,
            player_id,
            opponent_id,
            seconds_left,
            standings,
            history,
        }
    }

    /// `make_choice`: before the fallback does.
    pub fn make_choice(&self, match_id: &str, choice: &Value) -> Result<Chosen, Refusal> {
        let checked = games::even_odd::GAME.check(&[], choice);
        checked.map_err(|refusal| refusal.with("field", "choice"))?;
        let choice = Parity::read(choice)?;
        let mut table = lock(&self.table);
        if table.asked.remove(match_id).is_none() {
            let problem = "but there no choice is asked now; next_turn waits for one";
            return Err(Refusal::field(
                Code::E015,
                "match_id",
                format!("got {:?}, {problem}", cut(match_id, 60)),
            ));
        }
        table.chosen.insert(match_id.into(), choice);
        self.changed.notify_all();
        Ok(Chosen {
            status: "ok".into(),
            match_id: match_id.into(),
            choice,
        })
    }
}
