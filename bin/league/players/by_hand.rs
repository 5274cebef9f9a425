//! A player whose choices come from outside: `league play mcp` leaves them to the clients of its
//! tools, a person with the Inspector or an assistant. `next_turn` waits for a match in which the
//! player is asked, and `make_choice` answers it.
//!
//! The referee's call waits in `ask` meanwhile. If no client chooses, a strategy does
//! (`players/play.rs`), a little before the deadline, and `next_turn` says so. The tools are for
//! callers on the player's own machine, and for those who know its token; other callers are refused
//! before anything waits.
#![allow(missing_docs, reason = "the names of the JSON fields")]

use crate::show::page::text_response;
use crate::show::render;
use crate::show::trace::COMMENT;
use league::games::{self, tic_tac_toe};
use league::net::agent::{HandlerError, Tool, Toolbox};
use league::net::http::Response;
use league::net::log::{Content, Log};
use league::net::sync::Shared;
use league::player::PlayerHooks;
use league::player::turn::{PastMatch, Turn};
use league::program::session::Session;
use league::program::terminal::sanitize;
use league::protocol::{ErrorCode, ProtocolError, QueryType, ResultStatus};
use league::values::{constant_time_eq, truncate};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// The instructions for a model that calls the tools.
const INSTRUCTIONS: &str = "You are a player of the AI Agent League, and play matches against \
    others. Call next_turn again and again until its status is \"over\": it waits up to 25 seconds \
    for a match in which you are asked. When its status is \"your_turn\", look at the position, \
    and call make_choice with its match_id and one of its legal_moves before seconds_left have \
    passed; else a fallback chooses for you, and the notes say so. A match may ask you several \
    times. The description of make_choice has the rules of the game. get_player_state shows your \
    record at any time.";
const NEXT_TURN: &str = "Waits up to 25 seconds for a match in which this player is asked. Status \
    your_turn: choose in match_id, against opponent_id, before seconds_left have passed; position \
    shows how the match stands, legal_moves what may be chosen, history the matches so far, table \
    the table of the league. Status wait: call it again. Status over: the league has ended. The notes tell what happened since \
    your last choice.";
/// The rules stand here, since many clients show a model the tools only, and not the instructions.
const MAKE_CHOICE: &str = "Chooses one of the legal_moves in the match that next_turn has named. \
    Give move_number too, if the match has several moves: then a choice that comes too late is not \
    taken for the next move. The rules: a win is worth 3 points, a draw 1. In Even/Odd a number \
    is drawn when both have chosen: if both chose alike it is a draw, else the one who \
    named its parity wins. The draw is fair; so only the opponent can be predicted, from the \
    history, and it pays to choose otherwise than it does. In other games the position and the \
    legal_moves say what is played. A comment may say why you choose so: the trace of the match shows \
    it when the match is over.";

/// Maximum time that `next_turn` waits: less than clients usually wait for a tool.
const TURN_TIMEOUT: Duration = Duration::from_secs(25);
/// Time before the deadline at which the strategy chooses.
const MARGIN: Duration = Duration::from_secs(2);
/// Maximum number of past matches that are shown.
const MAX_HISTORY: usize = 50;
/// Maximum length of a note, in characters.
const MAX_NOTE: usize = 500;

/// The arguments of `next_turn`: the player's own token, unless the call is from its machine.
#[derive(Debug, Deserialize)]
pub struct NextTurn {
    pub auth_token: Option<String>,
}

/// The arguments of `make_choice`.
#[derive(Debug, Deserialize)]
pub struct MakeChoice {
    pub match_id: String,
    pub choice: Value,
    pub move_number: Option<u32>,
    /// The reason, for readers of the trace.
    pub comment: Option<String>,
    pub auth_token: Option<String>,
}

/// Returns true for the command of a player that is played by hand: `mcp`, `mcp:NAME`, or the whole
/// command line.
pub fn is_by_hand(command: &str) -> bool {
    command == "mcp" || command.starts_with("mcp:") || command.contains("play mcp")
}

/// The choices for which this player is asked at this moment.
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
    /// The events that no client has seen, until the next choice: an answer that tells of it may be
    /// lost on its way.
    notes: Vec<String>,
    is_over: bool,
}

impl ByHand {
    /// Asks the clients of the tools. Returns none if they do not choose in time.
    pub fn ask(&self, turn: &Turn) -> Option<String> {
        let match_id = &turn.match_id;
        self.table.update(|table| {
            table.asked.insert(match_id.clone(), turn.clone());
            table.is_over = false; // a player that stays plays the next league
        });

        let timeout = turn.time_left().saturating_sub(MARGIN);
        let mut table = self
            .table
            .wait_until(timeout, |table| !table.asked.contains_key(match_id));
        table.asked.remove(match_id);

        table.chosen.remove(match_id)
    }

    /// Waits until the player is asked. The match with the nearest deadline comes first.
    pub fn next_turn(&self) -> Value {
        let table = self.table.wait_until(TURN_TIMEOUT, |table| {
            table.is_over || !table.asked.is_empty()
        });
        let notes = &table.notes;
        let Some(turn) = table.asked.values().min_by_key(|turn| turn.deadline) else {
            let status = if table.is_over { "over" } else { "wait" };
            return json!({"status": status, "notes": notes});
        };

        json!({
            "status": "your_turn",
            "notes": notes,
            "match_id": turn.match_id,
            "round_id": turn.round_id,
            "player_id": turn.player_id,
            "opponent_id": turn.opponent_id,
            "seconds_left": turn.time_left().saturating_sub(MARGIN).as_secs(),
            "game_type": turn.game_type,
            "move_number": turn.move_number,
            "position": position(turn),
            "legal_moves": turn.legal_moves,
            "standings": turn.standings,
            "history": newest_matches(turn),
        })
    }

    /// Answers a match, if the player is still asked in it. Returns the turn and the choice.
    pub fn make_choice(&self, made: &MakeChoice) -> Result<(Turn, String), ProtocolError> {
        self.table.update(|table| table.choose(made))
    }
}

impl Table {
    fn choose(&mut self, made: &MakeChoice) -> Result<(Turn, String), ProtocolError> {
        let match_id = &made.match_id;
        let Some(turn) = self.asked.get(match_id) else {
            let shown = truncate(match_id, 60);
            let problem =
                format!("got {shown:?}, but there no choice is asked now; next_turn waits for one");
            return Err(mismatch("match_id", problem));
        };

        if let Some(number) = made.move_number
            && number != turn.move_number
        {
            let problem =
                format!("got {number}, but another move is asked now; next_turn shows it");
            return Err(mismatch("move_number", problem));
        }

        let legal: Vec<&str> = turn.legal_moves.iter().map(String::as_str).collect();
        let choice = games::parse_choice(&legal, "choice", &made.choice)?.to_string();
        let turn = turn.clone();
        self.asked.remove(match_id);
        self.notes.clear();
        self.chosen.insert(match_id.clone(), choice.clone());
        Ok((turn, choice))
    }
}

fn mismatch(field: &str, problem: String) -> ProtocolError {
    ProtocolError::field(ErrorCode::MatchMismatch, field, problem)
}

impl PlayerHooks for ByHand {
    /// The messages of the league are not listed, since they are for referees and the manager.
    fn toolbox<'a>(&'a self, session: &'a Session) -> Toolbox<'a> {
        let next_turn = Tool::new("next_turn", NEXT_TURN, |arguments: NextTurn, peer| {
            check_caller(session, arguments.auth_token.as_deref(), peer)?;
            let mut turn = self.next_turn();
            let table = session.credentials().and_then(|own| {
                session
                    .query(&own, QueryType::GetStandings)?
                    .remove("standings")
            });
            turn["table"] = json!(table);
            Ok(turn)
        });
        let make_choice = Tool::new("make_choice", MAKE_CHOICE, |arguments: MakeChoice, peer| {
            check_caller(session, arguments.auth_token.as_deref(), peer)?;
            let (turn, choice) = self.make_choice(&arguments)?;
            if let Some(comment) = &arguments.comment {
                log_comment(session.program.log(), &turn, &choice, comment);
            }
            Ok(json!({"status": "ok", "match_id": turn.match_id, "choice": choice}))
        });

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

    /// Returns the page on which a person plays. It calls the tools, like every client on this
    /// machine.
    fn page(&self, path: &str) -> Option<Response> {
        let headers = "Content-Security-Policy: default-src 'none'; connect-src 'self'; img-src data:; \
            style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'; \
            base-uri 'none'; form-action 'none'";
        (path == "/").then(|| {
            let page = include_str!("by_hand.html")
                .replace("{{style}}", render::STYLE)
                .replace("{{parts}}", render::PARTS);
            text_response("html", headers, page)
        })
    }

    /// Adds a note for the next answer of `next_turn`. It may have texts of other agents, which
    /// must not look like something else.
    fn note(&self, text: &str) {
        let text = truncate(&sanitize(text), MAX_NOTE);
        self.table.lock().notes.push(text);
    }

    /// Ends the waiting of the clients.
    fn over(&self) {
        self.table.update(|table| table.is_over = true);
    }
}

/// Writes the reason of a choice into the log, where the trace of the match finds it.
fn log_comment(log: &Log, turn: &Turn, choice: &str, comment: &str) {
    let packet = json!({"match_id": turn.match_id, "conversation_id": turn.conversation_id});
    let text = format!("chose {choice}: {}", truncate(&sanitize(comment), MAX_NOTE));
    log.message(COMMENT, &packet, Vec::new(), Content::Text(&text));
}

/// Refuses callers that are neither on this machine nor know the player's own token.
fn check_caller(session: &Session, token: Option<&str>, peer: IpAddr) -> Result<(), HandlerError> {
    let credentials = session.credentials();
    let own = credentials.as_ref().and_then(|own| own.token.as_ref());
    let has_token = match (token, own) {
        (Some(token), Some(own)) => constant_time_eq(token, own),
        _ => false,
    };

    if has_token || peer.is_loopback() {
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

/// Returns the position with what a person needs to know of the game.
fn position(turn: &Turn) -> String {
    let position = &turn.position;
    if turn.game_type != tic_tac_toe::GAME.game_type {
        return position.clone();
    }

    let mark = if turn.move_number % 2 == 1 { "X" } else { "O" };
    format!("{position}\nYou are {mark}, and move now; three in a row win.")
}

/// Returns the newest matches of the player that is asked.
fn newest_matches(turn: &Turn) -> Vec<Value> {
    let first = turn.history.len().saturating_sub(MAX_HISTORY);
    let played = turn.history[first..].iter().map(|past| {
        json!({
            "match_id": past.match_id,
            "opponent_id": past.opponent_id,
            "outcome": outcome(past, &turn.player_id),
            "result": past.result,
        })
    });
    played.collect()
}

fn outcome(past: &PastMatch, player_id: &str) -> &'static str {
    match &past.result.winner_player_id {
        Some(winner) if winner == player_id => "you won",
        None if past.result.status == ResultStatus::Draw => "a draw",
        _ => "you lost",
    }
}
