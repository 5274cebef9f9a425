//! The league protocol `league.v2`: the messages, their receivers, and their fields.
//!
//! First comes the list `messages!`. It makes four enums: one for the requests to each kind of
//! agent ([`ManagerRequest`], [`RefereeRequest`], [`PlayerRequest`]), and one for all replies
//! ([`Reply`]). The row of a request has its name on the wire, its struct, its JSON-RPC method, the
//! struct of its reply, and a description for people and language models. The method is also the
//! name of the tool for clients of the Model Context Protocol. The struct of a request is a
//! [`Call`], whose `Reply` is the struct behind `=>`. The row of a reply has its name and its struct.
//!
//! Then come the structs. A message is parsed and written by the types of its fields:
//! - An ordinary field must be there and valid.
//! - An `Option` may be absent. An invalid one is ignored. `None` is not sent.
//! - An `Option` with `deserialize_with = "nullable"` may be absent or null, and is not ignored
//!   when it is invalid. `None` is sent as null.
//! - A `Value` is checked by the function that uses it.
//!
//! To add a message, write a struct and a row of the list. To add a field, write it into the
//! struct.
//!
//! `into()` turns the struct of a reply into a [`Reply`]. A [`Message`] knows its name on the wire
//! (`name`) and its row (`spec`). [`parse`] makes an [`IncomingMessage`] of JSON: the envelope and
//! the message. [`to_json`] does the reverse and writes both as one object. If both have a field
//! of the same name, the message's own field is written.
//!
//! A message is refused with a [`ProtocolError`], which `new(code, problem)` or
//! `field(code, field, problem)` makes. The codes have numbers on the wire:
//!
//! | | [`ErrorCode`] | | [`ErrorCode`] |
//! |---|---|---|---|
//! | E001 | `Timeout` | E012 | `TokenInvalid` |
//! | E003 | `MissingField` | E013 | `RefereeNotRegistered` |
//! | E004 | `InvalidChoice` | E015 | `MatchMismatch` |
//! | E005 | `PlayerNotRegistered` | E018 | `VersionMismatch` |
//! | E009 | `ConnectionError` | E019 | `LateRegistration` |
//! | E011 | `TokenMissing` | E021 | `InvalidTimestamp` |
//!
//! `protocol/parse.rs` parses a whole message, `json.rs` decodes its fields. This file uses no
//! socket. The page `protocol.md`, which `cargo doc` shows below, describes the same for other
//! languages, with every exchange as JSON.
#![doc = include_str!("protocol.md")]
#![doc = include_str!("protocol/fields.md")]
#![allow(non_snake_case, reason = "fields are named by the specification")]

mod errors;
mod parse;
#[macro_use]
mod table;

pub use errors::{ErrorCode, ProtocolError};
pub use parse::{DEFAULTED_FIELDS, IncomingMessage, fill_defaults, parse, to_json};
pub use table::{Call, Message, MessageSpec};

use crate::json::{FieldError, deserialize, nullable};
use crate::values::{ByPlayer, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The version of the protocol.
pub const PROTOCOL: &str = "league.v2";
/// The game that has messages of its own.
pub const EVEN_ODD: &str = "even_odd";

/// A JSON object, as messages are on the wire.
pub type JsonObject = Map<String, Value>;

messages! {
    ManagerRequest {
        "REFEREE_REGISTER_REQUEST" RefereeRegisterRequest: "register_referee" => RefereeRegisterResponse
            "A referee asks to be let in, before the league starts. Answered with an id and a \
             token, or REJECTED and why."
        "LEAGUE_REGISTER_REQUEST" LeagueRegisterRequest: "register_player" => LeagueRegisterResponse
            "A player asks to be let in, before the league starts. Answered with an id and a \
             token, or REJECTED and why."
        "START_LEAGUE" StartLeague: "start_league" => LeagueStatus
            "Start the league with the agents registered so far; from the manager's machine it \
             needs no token. Answered with the status, and with what is missing if it cannot \
             start."
        "LEAGUE_CONTROL" LeagueControl: "control_league" => LeagueStatus
            "The operator of the league pauses or resumes it, removes or restores a player, or \
             opens a new lobby when the league is over. Answered with the status."
        "MATCH_RESULT_REPORT" MatchResultReport: "report_match_result" => MatchResultAck
            "A referee that was given the match reports how it ended; no other agent may. Answered \
             MATCH_RESULT_ACK once it is recorded."
        "LEAGUE_QUERY" LeagueQuery: "league_query" => LeagueQueryResponse
            "A registered agent, with its token, asks for standings, schedule, a player's next \
             match or its statistics."
    }

    PlayerRequest {
        "GAME_INVITATION" GameInvitation: "handle_game_invitation" => GameJoinAck
            "A referee invites the player to a match; it answers GAME_JOIN_ACK."
        "CHOOSE_PARITY_CALL" ChooseParityCall: "choose_parity" => ChooseParityResponse
            "A referee asks the player for even or odd in a match it has joined; it answers \
             CHOOSE_PARITY_RESPONSE."
        "CHOOSE_MOVE_CALL" ChooseMoveCall: "choose_move" => ChooseMoveResponse
            "A referee asks the player for its move in a game other than Even/Odd; it answers \
             CHOOSE_MOVE_RESPONSE."
        "GAME_OVER" GameOver: "notify_match_result" => StatusOk
            "A referee tells a player how its match ended. Answered {\"status\":\"ok\"}."
        "LEAGUE_STANDINGS_UPDATE" LeagueStandingsUpdate: "update_standings" => StatusOk
            "The manager sends the table after a match. Answered {\"status\":\"ok\"}."
    }

    PlayerRequest and RefereeRequest {
        "ROUND_ANNOUNCEMENT" RoundAnnouncement: "notify_round" => StatusOk
            "The manager announces a round: its matches and who referees them. Answered \
             {\"status\":\"ok\"}."
        "GAME_ERROR" GameError: "notify_game_error" => StatusOk
            "A referee tells a player what went wrong in its match and what is asked of it. \
             Answered {\"status\":\"ok\"}."
        "ROUND_COMPLETED" RoundCompleted: "notify_round_completed" => StatusOk
            "The manager says that a round is over: its summary. Answered {\"status\":\"ok\"}."
        "LEAGUE_COMPLETED" LeagueCompleted: "notify_league_completed" => StatusOk
            "The manager says that the league is over: champion and final table. Answered \
             {\"status\":\"ok\"}."
        "LEAGUE_ERROR" LeagueError: "notify_league_error" => StatusOk
            "A request was refused: the code, and in `context` what was wrong."
    }

    Reply {
        "REFEREE_REGISTER_RESPONSE" RefereeRegisterResponse
        "LEAGUE_REGISTER_RESPONSE" LeagueRegisterResponse
        "LEAGUE_STATUS" LeagueStatus
        "MATCH_RESULT_ACK" MatchResultAck
        "LEAGUE_QUERY_RESPONSE" LeagueQueryResponse
        "GAME_JOIN_ACK" GameJoinAck
        "CHOOSE_PARITY_RESPONSE" ChooseParityResponse
        "CHOOSE_MOVE_RESPONSE" ChooseMoveResponse
    }
}

/// The three kinds of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    #[serde(rename = "league_manager")]
    Manager,
    Referee,
    Player,
}

/// A choice in Even/Odd, and what the drawn number is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parity {
    Even,
    Odd,
}

/// The ending of a match.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ResultStatus {
    Win,
    Draw,
    TechnicalLoss,
}

/// The answer to a registration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RegistrationStatus {
    Accepted,
    #[default]
    Rejected,
}

/// The phase of a league.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaguePhase {
    Waiting,
    Running,
    Completed,
}

/// The life of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AgentState {
    Init,
    Registered,
    Active,
    Suspended,
    Shutdown,
}

/// The life of a match.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MatchState {
    WaitingForPlayers,
    CollectingChoices,
    DrawingNumber,
    Finished,
}

/// An action of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAction {
    Pause,
    Resume,
    Remove,
    Restore,
    NewLobby,
}

/// The four questions to the manager.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum QueryType {
    GetStandings,
    GetSchedule,
    GetNextMatch,
    GetPlayerStats,
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for ResultStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Parity {
    /// Returns the choice as it is sent.
    pub const fn as_str(self) -> &'static str {
        match self {
            Parity::Even => "even",
            Parity::Odd => "odd",
        }
    }
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The envelope: every message has it, before its own fields.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Envelope {
    pub protocol: String,
    pub sender: String,
    pub timestamp: Timestamp,
    pub conversation_id: String,
    pub auth_token: Option<String>,
    pub league_id: Option<String>,
    pub round_id: Option<u32>,
    pub match_id: Option<String>,
}

impl Envelope {
    /// Returns the envelope of a message that is written now.
    pub fn new(sender: &str, conversation_id: &str) -> Envelope {
        Envelope {
            protocol: PROTOCOL.into(),
            sender: sender.into(),
            timestamp: Timestamp::now(),
            conversation_id: conversation_id.into(),
            auth_token: None,
            league_id: None,
            round_id: None,
            match_id: None,
        }
    }
}

/// The description that an agent registers with. Only a referee says how many matches it plays at
/// once, and whether it takes match tokens from the manager. By its `registration_key`, a secret
/// that it made itself and keeps on its disk, an agent that lost the manager's answer gets it
/// again. With `must_be_known` a league that does not know its token or key must reject it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentMeta {
    pub display_name: String,
    pub version: String,
    pub game_types: Vec<String>,
    pub contact_endpoint: String,
    pub max_concurrent_matches: Option<u32>,
    pub protocol_version: Option<String>,
    pub uses_match_tokens: Option<bool>,
    pub registration_key: Option<String>,
    pub must_be_known: Option<bool>,
}

/// A referee asks to be let in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RefereeRegisterRequest {
    pub referee_meta: AgentMeta,
}

/// A referee is in, with an id and a token; or it is not, and `reason` says why. With
/// `proves_itself` the manager promises that its own requests carry that token.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RefereeRegisterResponse {
    pub status: RegistrationStatus,
    #[serde(default, deserialize_with = "nullable")]
    pub referee_id: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub reason: Option<String>,
    pub auth_token: Option<String>,
    pub league_id: Option<String>,
    pub error_code: Option<ErrorCode>,
    pub proves_itself: Option<bool>,
}

/// A player asks to be let in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueRegisterRequest {
    pub player_meta: AgentMeta,
}

/// The reply to the registration of a player, like that of a referee.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LeagueRegisterResponse {
    pub status: RegistrationStatus,
    #[serde(default, deserialize_with = "nullable")]
    pub player_id: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub reason: Option<String>,
    pub auth_token: Option<String>,
    pub league_id: Option<String>,
    pub error_code: Option<ErrorCode>,
    pub proves_itself: Option<bool>,
}

impl From<RefereeRegisterResponse> for LeagueRegisterResponse {
    fn from(response: RefereeRegisterResponse) -> LeagueRegisterResponse {
        LeagueRegisterResponse {
            status: response.status,
            player_id: response.referee_id,
            reason: response.reason,
            auth_token: response.auth_token,
            league_id: response.league_id,
            error_code: response.error_code,
            proves_itself: response.proves_itself,
        }
    }
}

impl From<LeagueRegisterResponse> for RefereeRegisterResponse {
    fn from(response: LeagueRegisterResponse) -> RefereeRegisterResponse {
        RefereeRegisterResponse {
            status: response.status,
            referee_id: response.player_id,
            reason: response.reason,
            auth_token: response.auth_token,
            league_id: response.league_id,
            error_code: response.error_code,
            proves_itself: response.proves_itself,
        }
    }
}

/// The reply to a notification. It is no message: it has no type and no envelope.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StatusOk {
    /// Always "ok".
    pub status: String,
}

/// The operator starts the league.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartLeague {
    pub league_id: String,
}

/// The operator's order; `remove` and `restore` name a player.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueControl {
    pub league_id: String,
    pub action: ControlAction,
    pub player_id: Option<String>,
    pub address: Option<String>,
}

/// The progress of the league; if it does not go on, `reason` says what it waits for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueStatus {
    pub league_id: String,
    pub status: LeaguePhase,
    pub current_round: u32,
    pub total_rounds: u32,
    pub matches_completed: u32,
    pub reason: Option<String>,
}

/// The open matches of a round, when it begins or goes on. `match_token` stands in a player's copy: only
/// an invitation that carries it as `auth_token` is a true one to the player's match of this
/// round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RoundAnnouncement {
    pub league_id: String,
    pub round_id: u32,
    pub matches: Vec<MatchEntry>,
    pub match_token: Option<String>,
}

/// One match of an announcement. The optional fields are for the referee: who referees, where
/// the players are, the token of each for this match, and how they stand. Only `match_token` is
/// for a player: some managers write it here; ours never does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MatchEntry {
    pub match_id: String,
    pub game_type: String,
    pub player_A_id: String,
    pub player_B_id: String,
    pub referee_endpoint: String,
    pub referee_id: Option<String>,
    pub player_A_endpoint: Option<String>,
    pub player_B_endpoint: Option<String>,
    pub player_A_token: Option<String>,
    pub player_B_token: Option<String>,
    pub player_A_standings: Option<Record>,
    pub player_B_standings: Option<Record>,
    pub match_token: Option<String>,
}

/// The wins, losses and draws of a player so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub wins: u32,
    pub losses: u32,
    pub draws: u32,
}

/// One match as a referee is given it by the tool `start_match`, which is no message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartMatch {
    pub league_id: String,
    pub round_id: u32,
    pub r#match: MatchEntry,
    pub auth_token: Option<String>,
}

/// A player is asked to come. The conversation of the envelope is that of the whole match.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GameInvitation {
    pub league_id: String,
    pub round_id: u32,
    pub match_id: String,
    pub game_type: String,
    pub role_in_match: String,
    pub opponent_id: String,
    pub player_id: Option<String>,
}

/// The player comes, or does not. It echoes the token of the match.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GameJoinAck {
    pub match_id: String,
    pub player_id: String,
    pub arrival_timestamp: Timestamp,
    pub accept: bool,
    pub auth_token: Option<String>,
}

/// A player is asked for even or odd.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChooseParityCall {
    pub match_id: String,
    pub player_id: String,
    pub game_type: String,
    pub deadline: Timestamp,
    pub context: Option<TurnContext>,
}

/// More that a player is told with the call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TurnContext {
    pub opponent_id: Option<String>,
    pub round_id: Option<u32>,
    pub your_standings: Option<Record>,
}

/// The player's choice. The game judges it, not the parser.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChooseParityResponse {
    pub match_id: String,
    pub player_id: String,
    pub parity_choice: Value,
    pub auth_token: Option<String>,
}

/// A player is asked for a move, in any game but Even/Odd. `position` is for people to read;
/// `move_number` counts the moves of the match, from 1.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChooseMoveCall {
    pub match_id: String,
    pub player_id: String,
    pub game_type: String,
    pub deadline: Timestamp,
    pub move_number: u32,
    pub position: String,
    pub legal_moves: Vec<String>,
    pub context: Option<TurnContext>,
}

/// The player's move: one of the legal ones, which the game judges.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChooseMoveResponse {
    pub match_id: String,
    pub player_id: String,
    pub move_number: u32,
    pub r#move: Value,
    pub auth_token: Option<String>,
}

/// The end of a match. Other programs may write `reason` here; ours write it in `game_result`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GameOver {
    pub match_id: String,
    pub game_type: String,
    pub game_result: GameResult,
    pub reason: Option<String>,
}

/// The result of a match, as the players are told it. `choices` is for Even/Odd, `moves` for every
/// other game.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GameResult {
    pub status: ResultStatus,
    #[serde(default, deserialize_with = "nullable")]
    pub winner_player_id: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    pub drawn_number: Option<u32>,
    #[serde(default, deserialize_with = "nullable")]
    pub number_parity: Option<Parity>,
    pub choices: ByPlayer<Option<Parity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<MoveMade>>,
}

/// A move as it was played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MoveMade {
    pub player_id: String,
    pub r#move: String,
}

/// An error in a match. A referee tells it to the player concerned; it is also the refusal of a
/// message of a match.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GameError {
    pub match_id: String,
    pub error_code: ErrorCode,
    pub error_description: String,
    pub affected_player: String,
    pub action_required: String,
    pub player_id: Option<String>,
    pub retry_info: Option<RetryInfo>,
    pub context: Option<JsonObject>,
    pub consequence: Option<String>,
}

/// The attempt that failed, and when the next one comes or how many seconds are left for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RetryInfo {
    pub retry_count: u32,
    pub max_retries: u32,
    pub next_retry_at: Option<Timestamp>,
    pub time_remaining: Option<f64>,
}

/// The report of a referee: the result of a match.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MatchResultReport {
    pub league_id: String,
    pub round_id: u32,
    pub match_id: String,
    pub game_type: String,
    pub result: MatchResult,
}

/// The result of a match, as the manager is told it: points by player.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchResult {
    #[serde(default, deserialize_with = "nullable")]
    pub winner: Option<String>,
    pub score: ByPlayer<i32>,
    pub details: ResultDetails,
}

/// The facts from which the result follows. In Even/Odd `status` may be absent: the number then
/// says how the match ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultDetails {
    #[serde(default, deserialize_with = "nullable")]
    pub drawn_number: Option<u32>,
    pub choices: ByPlayer<Option<Parity>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ResultStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<MoveMade>>,
}

/// The report is recorded.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MatchResultAck {
    pub match_id: String,
    pub status: String,
}

/// The table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueStandingsUpdate {
    pub league_id: String,
    pub round_id: u32,
    pub standings: Vec<Standing>,
}

/// One row of the table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    pub rank: u32,
    pub player_id: String,
    pub display_name: String,
    pub played: u32,
    pub wins: u32,
    pub draws: u32,
    pub losses: u32,
    pub points: i32,
}

/// A round is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RoundCompleted {
    pub league_id: String,
    pub round_id: u32,
    pub matches_completed: u32,
    pub summary: RoundSummary,
    #[serde(default, deserialize_with = "nullable")]
    pub next_round_id: Option<u32>,
}

/// The endings of the matches of a round: `wins + draws + technical_losses = total_matches`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RoundSummary {
    pub total_matches: u32,
    pub wins: u32,
    pub draws: u32,
    pub technical_losses: u32,
}

/// The league is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueCompleted {
    pub league_id: String,
    pub total_rounds: u32,
    pub total_matches: u32,
    pub champion: Champion,
    pub final_standings: Vec<FinalStanding>,
}

/// The winner of the league.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Champion {
    pub player_id: String,
    pub display_name: String,
    pub points: i32,
}

/// One row of the final table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FinalStanding {
    pub rank: u32,
    pub player_id: String,
    pub points: i32,
    pub display_name: Option<String>,
}

/// A question to the manager. What exactly is asked is judged by the one who answers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueQuery {
    pub league_id: String,
    pub query_type: Value,
    pub query_params: Option<Value>,
}

/// The subject of a query; without a player it is about its sender.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct QueryParams {
    pub player_id: Option<String>,
    pub round_id: Option<u32>,
}

/// The answer to a question: `data` on success, else `error`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueQueryResponse {
    pub query_type: String,
    pub success: bool,
    pub data: Option<JsonObject>,
    pub error: Option<QueryError>,
}

impl LeagueQueryResponse {
    /// Returns the answer to a query: its data, or why there are none.
    pub fn new(query_type: String, answer: Result<Value, ProtocolError>) -> LeagueQueryResponse {
        let error = answer.as_ref().err().map(|error| QueryError {
            error_code: error.code.clone(),
            error_name: error.code.name().into(),
            error_description: error.detail(),
        });

        LeagueQueryResponse {
            query_type,
            success: error.is_none(),
            data: answer.ok().and_then(|data| data.as_object().cloned()),
            error,
        }
    }
}

/// The reason why a query is not answered; unlike in LEAGUE_ERROR, `error_description` explains.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueryError {
    pub error_code: ErrorCode,
    pub error_name: String,
    pub error_description: String,
}

/// A refusal. `error_description` is the code's name; `context` says what exactly was wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeagueError {
    pub error_code: ErrorCode,
    pub error_description: String,
    pub original_message_type: Option<String>,
    pub context: Option<JsonObject>,
}
