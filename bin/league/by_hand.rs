//! A player whose choices come from outside: `league play mcp` leaves them to the clients of its
//! tools, a person with the Inspector or an assistant. `next_turn` waits for a match in which the
//! player is asked, `make_choice` answers it.
//!
//! The referee's call waits in `ask` meanwhile. If nobody chooses, an example does (`coach.rs`), a
//! little before the deadline, and `next_turn` tells it. The tools are for callers on the player's
//! own machine, and for those who know its token; a stranger is refused before anything waits.
#![allow(missing_docs)] // the names of the fields say it

use league::games;
use league::net::agent::{HandlerError, Tool, Toolbox};
use league::net::sync::Shared;
use league::player::turn::{PastMatch, Turn};
use league::program::session::Session;
use league::protocol::{ErrorCode, GameResult, ProtocolError, Record, ResultStatus};
use league::values::{constant_time_eq, truncate};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a model is told before it calls a tool.
const INSTRUCTIONS: &str = "You are a player of the AI Agent League, and play matches against \
    others. Call next_turn again and again until its status is \"over\": it waits up to 25 seconds \
    for a match in which you are asked. When its status is \"your_turn\", look at the position, \
    and call make_choice with its match_id and one of its legal_moves before seconds_left have \
    passed; else a fallback chooses for you, and the notes say so. A match may ask you several \
    times. The description of make_choice has the rules of the game. get_player_state shows your \
    record at any time.";
const NEXT_TURN: &str = "Waits up to 25 seconds for a match in which this player is asked. Status \
    your_turn: choose in match_id, against opponent_id, before seconds_left have passed; position \
    shows how the match stands, legal_moves what may be chosen, history the matches so far. Status \
    wait: call it again. Status over: the league has ended. The notes tell what happened since \
    your last choice.";
/// The rules stand here, since many clients show a model the tools only, and not the instructions.
const MAKE_CHOICE: &str = "Chooses one of the legal_moves in the match that next_turn has named. \
    Give move_number too, if the match has several moves: then a choice that comes too late is not \
    taken for the next move. The rules: a win is worth 3 points, a draw 1. In Even/Odd a number \
    from 1 to 10 is drawn when both have chosen: if both chose alike it is a draw, else whoever \
    named its parity wins. The draw is fair; so only the opponent can be predicted, from the \
    history, and it pays to choose otherwise than it does. In other games the position and the \
    legal_moves say what is played.";

/// How long `next_turn` waits: less than clients usually wait for a tool.
const PATIENCE: Duration = Duration::from_secs(25);
/// So long before the deadline the example chooses.
const MARGIN: Duration = Duration::from_secs(2);
/// How many past matches are shown.
const MAX_SHOWN_CHARS: usize = 50;

/// What `next_turn` has found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    YourTurn,
    Wait,
    Over,
}

/// How a match ended for this player.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Ended {
    #[serde(rename = "you won")]
    Won,
    #[serde(rename = "you lost")]
    Lost,
    #[serde(rename = "a draw")]
    Drew,
}

/// The arguments of `next_turn`: the player's own token, unless the call is from its machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NextTurn {
    pub auth_token: Option<String>,
}

/// The arguments of `make_choice`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MakeChoice {
    pub match_id: String,
    pub choice: Value,
    pub move_number: Option<u32>,
    pub auth_token: Option<String>,
}

/// What `next_turn` answers: the match in which we are asked; or that there is none yet, or
/// none any more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Offer {
    pub status: TurnState,
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opponent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub game_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal_moves: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standings: Option<Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<Played>>,
}

/// A past match, and what came of it for this player.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Played {
    pub match_id: String,
    pub opponent_id: String,
    pub outcome: Ended,
    pub result: GameResult,
}

/// What `make_choice` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chosen {
    pub status: String,
    pub match_id: String,
    pub choice: String,
}

/// What is asked of us at this moment.
#[derive(Default)]
pub struct ByHand {
    table: Shared<Table>,
}

#[derive(Default)]
struct Table {
    /// By match, until it is answered or its time is over.
    asked: BTreeMap<String, Turn>,
    /// By match, until the player has it.
    chosen: BTreeMap<String, String>,
    /// What has happened without the client, until its next choice: an answer that tells it may be
    /// lost on its way.
    notes: Vec<String>,
    is_over: bool,
}

impl ByHand {
    /// Asks whoever calls our tools. None: nobody chose in time, and the fallback must.
    pub fn ask(&self, turn: &Turn) -> Option<String> {
        let (match_id, limit) = (&turn.match_id, turn.time_left().saturating_sub(MARGIN));
        self.table
            .update(|table| table.asked.insert(match_id.clone(), turn.clone()));
        let is_answered = |table: &Table| !table.asked.contains_key(match_id);
        let mut table = self.table.wait_until(limit, is_answered);
        table.asked.remove(match_id);
        table.chosen.remove(match_id)
    }

    /// Something that the client is told with its next turn.
    pub fn note(&self, words: &str) {
        self.table.lock().notes.push(words.into());
    }

    /// The league is over.
    pub fn end(&self, words: &str) {
        self.table.update(|table| {
            table.notes.push(words.into());
            table.is_over = true;
        });
    }

    /// `next_turn`: waits until we are asked; the most urgent match comes first.
    pub fn next_turn(&self) -> Offer {
        let is_news = |table: &Table| table.is_over || !table.asked.is_empty();
        let table = self.table.wait_until(PATIENCE, is_news);
        let turn = table.asked.values().min_by_key(|turn| turn.deadline);
        let nobody_asks = match table.is_over {
            true => TurnState::Over,
            false => TurnState::Wait,
        };
        let left = |turn: &Turn| turn.time_left().saturating_sub(MARGIN).as_secs() as u32;
        Offer {
            status: turn.map_or(nobody_asks, |_| TurnState::YourTurn),
            notes: table.notes.clone(),
            match_id: turn.map(|turn| turn.match_id.clone()),
            round_id: turn.map(|turn| turn.round_id),
            player_id: turn.map(|turn| turn.player_id.clone()),
            opponent_id: turn.map(|turn| turn.opponent_id.clone()),
            seconds_left: turn.map(left),
            game_type: turn.map(|turn| turn.game_type.clone()),
            move_number: turn.map(|turn| turn.move_number),
            position: turn.map(|turn| turn.position.clone()),
            legal_moves: turn.map(|turn| turn.legal_moves.clone()),
            standings: turn.and_then(|turn| turn.standings),
            history: turn.map(newest),
        }
    }

    /// `make_choice`: answers the match, if it is still asked for.
    pub fn make_choice(&self, made: &MakeChoice) -> Result<Chosen, ProtocolError> {
        self.table.update(|table| chosen(table, made))
    }
}

/// Returns the tools of a player that is played by hand. The messages of the league are not listed,
/// since they are for referees and the manager.
pub fn toolbox<'a>(by_hand: &Arc<ByHand>, session: &'a Session) -> Toolbox<'a> {
    let (asked, made) = (Arc::clone(by_hand), Arc::clone(by_hand));
    let next_turn = Tool::new("next_turn", NEXT_TURN, move |arguments: NextTurn, peer| {
        check_caller(session, arguments.auth_token.as_deref(), peer)?;
        Ok(asked.next_turn())
    });
    let make_choice = Tool::new(
        "make_choice",
        MAKE_CHOICE,
        move |arguments: MakeChoice, peer| {
            check_caller(session, arguments.auth_token.as_deref(), peer)?;
            Ok(made.make_choice(&arguments)?)
        },
    );
    Toolbox {
        instructions: INSTRUCTIONS,
        lists_messages: false,
        tools: vec![
            next_turn,
            Tool {
                read_only: false,
                ..make_choice
            },
        ],
    }
}

fn chosen(table: &mut Table, made: &MakeChoice) -> Result<Chosen, ProtocolError> {
    let match_id = &made.match_id;
    let wrong = |field, came: String, problem| {
        let problem = format!("got {came}, {problem}");
        Err(ProtocolError::field(
            ErrorCode::MatchMismatch,
            field,
            problem,
        ))
    };
    let Some(turn) = table.asked.get(match_id) else {
        let problem = "but there no choice is asked now; next_turn waits for one";
        return wrong("match_id", format!("{:?}", truncate(match_id, 60)), problem);
    };
    if let Some(number) = made.move_number.filter(|it| *it != turn.move_number) {
        let problem = "but another move is asked now; next_turn shows it";
        return wrong("move_number", number.to_string(), problem);
    }
    let legal: Vec<&str> = turn.legal_moves.iter().map(String::as_str).collect();
    let choice = games::parse_choice(&legal, "choice", &made.choice)?.to_string();
    table.asked.remove(match_id);
    table.notes.clear();
    table.chosen.insert(match_id.clone(), choice.clone());
    Ok(Chosen {
        status: "ok".into(),
        match_id: match_id.clone(),
        choice,
    })
}

/// Whether somebody may choose for us: from this machine, or with our own token.
fn check_caller(session: &Session, token: Option<&str>, peer: IpAddr) -> Result<(), HandlerError> {
    let credentials = session.credentials();
    let own = credentials.as_ref().and_then(|known| known.token.as_ref());
    let is_own = token
        .zip(own)
        .is_some_and(|(token, own)| constant_time_eq(token, own));
    if is_own || peer.is_loopback() {
        return Ok(());
    }
    let (code, problem) = match token {
        Some(_) => (ErrorCode::TokenInvalid, "not this player's own"),
        None => (
            ErrorCode::TokenMissing,
            "missing; this player's own, from its card",
        ),
    };
    Err(ProtocolError::field(code, "auth_token", problem).into())
}

/// The newest matches of a turn's history, with what came of them.
fn newest(turn: &Turn) -> Vec<Played> {
    let show = |past: &PastMatch| {
        let outcome = match &past.result.winner_player_id {
            Some(winner) if *winner == turn.player_id => Ended::Won,
            None if past.result.status == ResultStatus::Draw => Ended::Drew,
            _ => Ended::Lost,
        };
        Played {
            match_id: past.match_id.clone(),
            opponent_id: past.opponent_id.clone(),
            outcome,
            result: past.result.clone(),
        }
    };
    let first = turn.history.len().saturating_sub(MAX_SHOWN_CHARS);
    turn.history[first..].iter().map(show).collect()
}
