//! The league protocol `league.v2`: the envelope, the 24 messages with their fields, the error codes.
//!
//! The page to read is `messages!` below: every message with its type, its tool (the JSON-RPC method) and
//! who may be sent it. Nothing else in the program spells a wire name. Pure: no I/O, no clock.
//! Read next: `referee/match_play.rs`, which plays a match with them. Below stands `protocol.md`: the same for somebody
//! who writes an agent in another language, with every exchange as JSON.
#![doc = include_str!("protocol.md")]

use crate::wire::{Fault, FaultKind, Reader, Timestamp, Unread, Wire, cut, lookalike};
use crate::{object, words};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The only protocol version there is.
pub const PROTOCOL: &str = "league.v2";
/// The only game there is.
pub const GAME: &str = "even_odd";

/// A JSON object, as messages are on the wire.
pub type Packet = Map<String, Value>;

/// Declares the messages and all that follows from the list.
macro_rules! messages {
    ($($wire:literal $name:ident $tool:literal [$($to:ident)*] $says:literal)*) => {
        /// Any message of the protocol.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        #[allow(missing_docs, reason = "each carries the object of its name")]
        pub enum Message { $($name($name),)* }
        $(impl $name {
            /// Its `message_type`.
            pub const NAME: &str = $wire;
        }
        impl From<$name> for Message {
            fn from(body: $name) -> Message { Message::$name(body) }
        })*
        impl Message {
            /// Its `message_type`.
            pub fn name(&self) -> &'static str {
                match self { $(Message::$name(_) => $wire,)* }
            }
            /// The JSON-RPC method it travels under.
            pub fn tool(&self) -> &'static str {
                match self { $(Message::$name(_) => $tool,)* }
            }
            /// Reads the fields that are the message's own.
            fn read_body(name: &str, packet: &Value, reader: &mut Reader) -> Option<Message> {
                match name {
                    $($wire => $name::read_in(packet, reader).map(Message::$name),)*
                    _ => reader.at("message_type", |reader| reader.wrong(&name.into(), "a message type of league.v2")),
                }
            }
        }
        /// All messages, in the order of the page.
        pub static CATALOGUE: &[Entry] = &[$(Entry {
            message_type: Some($wire), as_tool: None, tool: $tool, receivers: &[$(Kind::$to),*], says: $says,
            schema: $name::schema,
        },)*];
    };
}

messages! {
    // message type              its object              tool                         sent to
    "REFEREE_REGISTER_REQUEST"   RefereeRegisterRequest  "register_referee"           [Manager]        "A referee asks to be let in, before the league starts. Answered with an id and a token, or REJECTED and why."
    "REFEREE_REGISTER_RESPONSE"  RefereeRegisterResponse "register_referee"           []               "The answer to it: an id and a token, or the reason why not."
    "LEAGUE_REGISTER_REQUEST"    LeagueRegisterRequest   "register_player"            [Manager]        "A player asks to be let in, before the league starts. Answered with an id and a token, or REJECTED and why."
    "LEAGUE_REGISTER_RESPONSE"   LeagueRegisterResponse  "register_player"            []               "The answer to it: an id and a token, or the reason why not."
    "START_LEAGUE"               StartLeague             "start_league"               [Manager]        "Start the league with the agents registered so far; from the manager's machine it needs no token. Answered with the status, and with what is missing if it cannot start."
    "LEAGUE_STATUS"              LeagueStatus            "start_league"               []               "The answer to it: waiting, running or completed."
    "LEAGUE_CONTROL"             LeagueControl           "control_league"             [Manager]        "The operator of the league pauses or resumes it, removes or restores a player, has a match played again, or opens a new lobby when the league is over. Answered with the status."
    "ROUND_ANNOUNCEMENT"         RoundAnnouncement       "notify_round"               [Referee Player] "The manager announces a round: its matches and who referees them. Answered {\"status\":\"ok\"}."
    "GAME_INVITATION"            GameInvitation          "handle_game_invitation"     [Player]         "A referee invites the player to a match; it answers GAME_JOIN_ACK."
    "GAME_JOIN_ACK"              GameJoinAck             "handle_game_invitation"     []               "The answer to it: I am here, or not."
    "CHOOSE_PARITY_CALL"         ChooseParityCall        "choose_parity"              [Player]         "A referee asks the player for even or odd in a match it has joined; it answers CHOOSE_PARITY_RESPONSE."
    "CHOOSE_PARITY_RESPONSE"     ChooseParityResponse    "choose_parity"              []               "The answer to it: even or odd."
    "CHOOSE_MOVE_CALL"           ChooseMoveCall          "choose_move"                [Player]         "A referee asks the player for a move in a game other than Even/Odd; it answers CHOOSE_MOVE_RESPONSE with one of legal_moves."
    "CHOOSE_MOVE_RESPONSE"       ChooseMoveResponse      "choose_move"                []               "The answer to it: a move."
    "GAME_OVER"                  GameOver                "notify_match_result"        [Player]         "A referee tells a player how its match ended. Answered {\"status\":\"ok\"}."
    "GAME_ERROR"                 GameError               "notify_game_error"          [Referee Player] "A referee tells a player what went wrong in its match and what is asked of it. Answered {\"status\":\"ok\"}."
    "MATCH_RESULT_REPORT"        MatchResultReport       "report_match_result"        [Manager]        "The referee of a match reports how it ended; nobody else may. Answered MATCH_RESULT_ACK once it is recorded."
    "MATCH_RESULT_ACK"           MatchResultAck          "report_match_result"        []               "The answer to it: recorded."
    "LEAGUE_STANDINGS_UPDATE"    LeagueStandingsUpdate   "update_standings"           [Player]         "The manager sends the table after a match. Answered {\"status\":\"ok\"}."
    "ROUND_COMPLETED"            RoundCompleted          "notify_round_completed"     [Referee Player] "The manager says that a round is over: its summary. Answered {\"status\":\"ok\"}."
    "LEAGUE_COMPLETED"           LeagueCompleted         "notify_league_completed"    [Referee Player] "The manager says that the league is over: champion and final table. Answered {\"status\":\"ok\"}."
    "LEAGUE_QUERY"               LeagueQuery             "league_query"               [Manager]        "A registered agent, with its token, asks for standings, schedule, a player's next match or its statistics."
    "LEAGUE_QUERY_RESPONSE"      LeagueQueryResponse     "league_query"               []               "The answer to it: data, or success false and why."
    "LEAGUE_ERROR"               LeagueError             "notify_league_error"        [Referee Player] "A request was refused: the code, and in `context` what was wrong."
}

/// Declares the tools without a message type: they go by the method alone.
macro_rules! tools {
    ($($name:ident $tool:literal $arguments:ident $to:ident $says:literal)*) => {
        words! {
            /// Tools without a message type.
            Tool { $($name = $tool,)* }
        }
        /// The rows of those tools.
        pub static TOOLS: &[Entry] = &[$(Entry {
            message_type: None, as_tool: Some(Tool::$name), tool: $tool, receivers: &[Kind::$to], says: $says,
            schema: $arguments::schema,
        },)*];
    };
}

tools! {
    // tool         method              its arguments   of
    CreateSchedule  "create_schedule"   Nothing         Manager  "Who meets whom, by round; before the start, as it would be with the players so far. Changes nothing."
    GetStandings    "get_standings"     Nothing         Manager  "The current table: rank, points, wins, draws and losses of every player."
    GetLeague       "get_league"        GetLeague       Manager  "The whole public state: status, agents, table, statistics, and the matches of the open round (or of round_id)."
    StartMatch      "start_match"       StartMatch      Referee  "The manager hands one match to the referee, with the referee's own token. Answered {\"status\":\"ok\"}."
    GetMatchState   "get_match_state"   GetMatchState   Referee  "How far a match of this referee has come; choices and result only after the draw."
    GetPlayerState  "get_player_state"  Nothing         Player   "The player's id, state, strategy, record and all its results so far."
    NextTurn        "next_turn"         NextTurn        Player   "Waits up to 25 seconds for a match in which this player is asked: status your_turn, with the opponent, the history and the seconds left; wait: call it again; over: the league has ended."
    MakeChoice      "make_choice"       MakeChoice      Player   "Chooses even or odd in the match that next_turn has named."
}

/// A row of the catalogue.
pub struct Entry {
    /// The wire name; none for a tool that is no message.
    pub message_type: Option<&'static str>,
    /// Which tool it is, where it is no message.
    pub as_tool: Option<Tool>,
    /// The JSON-RPC method and the name as a tool.
    pub tool: &'static str,
    /// Who may be sent it as a request; nobody, where it is only a reply.
    pub receivers: &'static [Kind],
    /// One line for a person or a language model.
    pub says: &'static str,
    schema: fn() -> Value,
}

impl Entry {
    /// Whether it may be asked of an agent of this kind.
    pub fn is_served_by(&self, kind: Kind) -> bool {
        self.receivers.contains(&kind)
    }

    /// What may be asked of an agent of this kind.
    pub fn served_by(kind: Kind) -> impl Iterator<Item = &'static Entry> {
        CATALOGUE
            .iter()
            .chain(TOOLS)
            .filter(move |entry| entry.is_served_by(kind))
    }

    /// The tool's name as a person reads it: `Choose parity`.
    pub fn title(&self) -> String {
        let words = self.tool.replace('_', " ");
        words[..1].to_uppercase() + &words[1..]
    }

    /// The row of a message type.
    pub fn of_message(name: &str) -> Option<&'static Entry> {
        CATALOGUE
            .iter()
            .find(|entry| entry.message_type == Some(name))
    }

    /// The row that a method names: a tool's name, or a message type itself.
    pub fn of_method(name: &str) -> Option<&'static Entry> {
        CATALOGUE
            .iter()
            .chain(TOOLS)
            .find(|entry| entry.tool == name)
            .or_else(|| Entry::of_message(name))
    }

    /// The JSON schema of the whole request: for a message its envelope and its body.
    pub fn schema(&self) -> Value {
        let mut schema = (self.schema)();
        let Some(name) = self.message_type else {
            return schema;
        };
        let envelope = Envelope::schema();
        if let (Some(all), Some(more)) = (
            schema["properties"].as_object_mut(),
            envelope["properties"].as_object(),
        ) {
            for (key, value) in more {
                all.entry(key).or_insert_with(|| value.clone());
            }
            all.insert("message_type".into(), json!({"const": name}));
            all.insert("protocol".into(), json!({"const": PROTOCOL}));
            for (key, says) in ENVELOPE_SAYS {
                all[*key]["description"] = (*says).into();
            }
        }
        if let (Some(all), Some(more)) = (
            schema["required"].as_array_mut(),
            envelope["required"].as_array(),
        ) {
            all.extend(more.iter().cloned());
        }
        schema
    }
}

/// What the fields of the envelope are for.
const ENVELOPE_SAYS: &[(&str, &str)] = &[
    (
        "sender",
        "who sends this: player:P01, referee:REF01, league_manager or launcher",
    ),
    ("timestamp", "now, in UTC: 2025-01-15T10:30:00Z"),
    (
        "conversation_id",
        "the same for messages that belong together: all of one match, a question and its answer",
    ),
    (
        "auth_token",
        "proves the sender: its own token to the manager, the match's token between referee and player",
    ),
    ("league_id", "the league, league_2025_even_odd for instance"),
    ("round_id", "the round, from 1"),
    ("match_id", "the match, R1M1 for instance"),
];

words! {
    /// The three kinds of agent.
    Kind { Manager = "league_manager", Referee = "referee", Player = "player", }
    /// Even or odd: a choice, or what the drawn number is.
    Parity { Even = "even", Odd = "odd", }
    /// Which side of a match; no difference in play.
    Role { PlayerA = "PLAYER_A", PlayerB = "PLAYER_B", }
    /// How a match ended.
    Ending { Win = "WIN", Draw = "DRAW", TechnicalLoss = "TECHNICAL_LOSS", }
    /// The answer to a registration.
    Verdict { Accepted = "ACCEPTED", Rejected = "REJECTED", }
    /// How far the league has come.
    Progress { Waiting = "waiting", Running = "running", Completed = "completed", }
    /// The life of an agent.
    AgentState {
        Init = "INIT", Registered = "REGISTERED", Active = "ACTIVE", Suspended = "SUSPENDED", Shutdown = "SHUTDOWN",
    }
    /// The life of a match.
    MatchState {
        WaitingForPlayers = "WAITING_FOR_PLAYERS", CollectingChoices = "COLLECTING_CHOICES",
        DrawingNumber = "DRAWING_NUMBER", Finished = "FINISHED",
    }
    /// What `get_league` may be asked for.
    WhichRounds { All = "all", }
    /// What the operator may do to a league.
    Action {
        Pause = "pause", Resume = "resume", Remove = "remove", Restore = "restore", Replay = "replay", Again = "again",
    }
    /// The four questions to the manager.
    QueryType {
        Standings = "GET_STANDINGS", Schedule = "GET_SCHEDULE",
        NextMatch = "GET_NEXT_MATCH", PlayerStats = "GET_PLAYER_STATS",
    }
}

impl Kind {
    /// The n-th id of a kind: `P07`, `P100`, `REF01`.
    pub fn numbered(self, n: u32) -> String {
        let prefix = if self == Kind::Referee { "REF" } else { "P" };
        format!("{prefix}{n:02}")
    }

    /// Whether a text is an id of that kind.
    pub fn is_id(self, text: &str) -> bool {
        let number = text
            .trim_start_matches(|c: char| c.is_ascii_uppercase())
            .parse()
            .ok();
        number.is_some_and(|n| n >= 1 && self.numbered(n) == text)
    }
}

// Fields before `optional` must be there; an `Option` among them may be null or absent.
object! {
    /// What every message carries.
    Envelope {
        protocol: String, message_type: String, sender: String, timestamp: Timestamp, conversation_id: String,
        ; optional auth_token: String, league_id: String, round_id: u32, match_id: String,
    }
    /// What an agent says of itself; `max_concurrent_matches` is a referee's. `uses_match_tokens` is an addition of ours.
    AgentMeta {
        display_name: String, version: String, game_types: Vec<String>, contact_endpoint: String,
        ; optional max_concurrent_matches: u32, protocol_version: String, uses_match_tokens: bool, registration_key: String,
    }
    /// A referee asks to be let in.
    RefereeRegisterRequest { referee_meta: AgentMeta, }
    /// It is in, with an id and a token; or not, and why.
    RefereeRegisterResponse {
        status: Verdict,
        referee_id: Option<String>, reason: Option<String>,
        ; optional auth_token: String, league_id: String, error_code: String, proves_itself: bool,
    }
    /// A player asks to be let in.
    LeagueRegisterRequest { player_meta: AgentMeta, }
    /// It is in, with an id and a token; or not, and why.
    LeagueRegisterResponse {
        status: Verdict,
        player_id: Option<String>, reason: Option<String>,
        ; optional auth_token: String, league_id: String, error_code: String, proves_itself: bool,
    }
    /// The operator starts the league.
    StartLeague { league_id: String, }
    /// The operator's order: `remove` and `restore` are about a player, `replay` is about a match. Ours.
    LeagueControl { league_id: String, action: Action, ; optional player_id: String, match_id: String, }
    /// `reason` says what a league that does not go on is waiting for.
    LeagueStatus {
        league_id: String, status: Progress, current_round: u32, total_rounds: u32, matches_completed: u32,
        ; optional reason: String,
    }
    /// A round begins, or goes on: its open matches.
    RoundAnnouncement { league_id: String, round_id: u32, matches: Vec<MatchEntry>, ; optional match_token: String, }
    /// One match of an announcement. The optional fields are additions of this implementation: for the referee where
    /// the players are, how they stand and both match tokens; for a player its own match token.
    MatchEntry {
        match_id: String, game_type: String, player_A_id: String, player_B_id: String, referee_endpoint: String,
        ; optional player_A_endpoint: String, player_B_endpoint: String, player_A_token: String, player_B_token: String, match_token: String, player_A_standings: Tally, player_B_standings: Tally,
    }
    /// What a player has won, lost and drawn so far.
    Tally { wins: u32, losses: u32, draws: u32, }
    /// A player is asked to come. The conversation of the envelope is the match's.
    GameInvitation {
        league_id: String, round_id: u32, match_id: String, game_type: String, role_in_match: String,
        opponent_id: String,
        ; optional player_id: String,
    }
    /// It comes, or not. The token is the match's, echoed.
    GameJoinAck {
        match_id: String, player_id: String, arrival_timestamp: Timestamp, accept: bool,
        ; optional auth_token: String,
    }
    /// A player is asked for its choice.
    ChooseParityCall {
        match_id: String, player_id: String, game_type: String, deadline: Timestamp,
        ; optional context: TurnContext,
    }
    /// What a player is told along with the call.
    TurnContext { ; optional opponent_id: String, round_id: u32, your_standings: Tally, }
    /// Its choice. Judging it is the game's business (E004), not the reader's.
    ChooseParityResponse {
        match_id: String, player_id: String, parity_choice: Unread<Parity>,
        ; optional auth_token: String,
    }
    /// A player is asked for a move of any other game. Moves are counted from 1, and a person can read `position`. Ours.
    ChooseMoveCall {
        match_id: String, player_id: String, game_type: String, deadline: Timestamp, move_number: u32,
        position: String, legal_moves: Vec<String>,
        ; optional context: TurnContext,
    }
    /// Its move: one of the legal ones, which is the game's to judge.
    ChooseMoveResponse {
        match_id: String, player_id: String, move_number: u32, r#move: Unread<String>,
        ; optional auth_token: String,
    }
    /// A move that was made, as players and manager are told.
    PlayedMove { player_id: String, r#move: String, }
    /// How a match ended. `reason` beside the result is read, and never written.
    GameOver { match_id: String, game_type: String, game_result: GameResult, ; optional reason: String, }
    /// How a match ended, as the players are told.
    GameResult {
        status: Ending, winner_player_id: Option<String>, drawn_number: Option<u32>, number_parity: Option<Parity>,
        choices: BTreeMap<String, Option<Parity>>,
        ; optional moves: Vec<PlayedMove>, reason: String,
    }
    /// What went wrong in a match, for the player that it concerns.
    GameError {
        match_id: String, error_code: String, error_description: String, affected_player: String,
        action_required: String,
        ; optional player_id: String, retry_info: RetryInfo, context: Packet, consequence: String,
    }
    /// Which attempt failed, and when the next comes or how many seconds are left.
    RetryInfo { retry_count: u32, max_retries: u32, ; optional next_retry_at: Timestamp, time_remaining: f64, }
    /// How a match ended, for the manager.
    MatchResultReport { league_id: String, round_id: u32, match_id: String, game_type: String, result: MatchResult, }
    /// How a match ended, as the manager is told: points by player.
    MatchResult { winner: Option<String>, score: BTreeMap<String, i32>, details: Details, }
    /// `moves`, `status` and `reason` are additions of this implementation; without a status the number says how the
    /// match ended.
    Details {
        drawn_number: Option<u32>, choices: BTreeMap<String, Option<Parity>>,
        ; optional moves: Vec<PlayedMove>, status: Ending, reason: String,
    }
    /// The report is on the manager's disk.
    MatchResultAck { match_id: String, status: String, }
    /// The table.
    LeagueStandingsUpdate { league_id: String, round_id: u32, standings: Vec<Standing>, }
    /// One row of the table.
    Standing {
        rank: u32, player_id: String, display_name: String,
        played: u32, wins: u32, draws: u32, losses: u32, points: i32,
    }
    /// A round is over.
    RoundCompleted {
        league_id: String, round_id: u32, matches_completed: u32, summary: RoundSummary,
        next_round_id: Option<u32>,
    }
    /// `wins + draws + technical_losses = total_matches`.
    RoundSummary { total_matches: u32, wins: u32, draws: u32, technical_losses: u32, }
    /// The league is over.
    LeagueCompleted {
        league_id: String, total_rounds: u32, total_matches: u32, champion: Champion, final_standings: Vec<FinalRow>,
    }
    /// Who won the league.
    Champion { player_id: String, display_name: String, points: i32, }
    /// One row of the final table.
    FinalRow { rank: u32, player_id: String, points: i32, ; optional display_name: String, }
    /// A question to the manager. What exactly is asked is judged by the answer, not by the reader.
    LeagueQuery { league_id: String, query_type: Unread<QueryType>, ; optional query_params: Unread<QueryParams>, }
    /// Whom or what a query is about; without a player it is about the sender.
    QueryParams { ; optional player_id: String, round_id: u32, }
    /// `data` on success, else `error`.
    LeagueQueryResponse { query_type: String, success: bool, ; optional data: Packet, error: QueryError, }
    /// Here `error_description` is an explanation, not the name.
    QueryError { error_code: String, error_name: String, error_description: String, }
    /// A refusal: `error_description` is the code's name, and `context` says what exactly was wrong.
    LeagueError {
        error_code: String, error_description: String,
        ; optional original_message_type: String, context: Packet,
    }

    /// The arguments of a tool that takes none.
    Nothing {}
    /// The arguments of `start_match`.
    StartMatch { league_id: String, round_id: u32, r#match: MatchEntry, ; optional auth_token: String, }
    /// The arguments of `next_turn`: the player's own token, unless the call is from its machine.
    NextTurn { ; optional auth_token: String, }
    /// The arguments of `make_choice`.
    MakeChoice { match_id: String, choice: Unread<Parity>, ; optional auth_token: String, }
    /// The arguments of `get_league`: a round, or all of them; else the open round.
    GetLeague { ; optional round_id: u32, rounds: WhichRounds, }
    /// The arguments of `get_match_state`.
    GetMatchState { match_id: String, }
}

/// Declares the error codes.
macro_rules! codes {
    ($($code:ident $name:literal)*) => {
        /// The error codes of the protocol; there are no others.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "their names are in the table")]
        pub enum Code { $($code,)* }
        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$code),*];
            /// `E004`.
            pub fn code(self) -> &'static str { match self { $(Code::$code => stringify!($code),)* } }
            /// `INVALID_PARITY_CHOICE`.
            pub fn name(self) -> &'static str { match self { $(Code::$code => $name,)* } }
        }
    };
}
codes! {
    E001 "TIMEOUT_ERROR"            E003 "MISSING_REQUIRED_FIELD"      E004 "INVALID_PARITY_CHOICE"
    E005 "PLAYER_NOT_REGISTERED"    E009 "CONNECTION_ERROR"            E011 "AUTH_TOKEN_MISSING"
    E012 "AUTH_TOKEN_INVALID"       E013 "REFEREE_NOT_REGISTERED"      E015 "MATCH_ID_MISMATCH"
    E018 "PROTOCOL_VERSION_MISMATCH" E019 "LATE_REGISTRATION"          E021 "INVALID_TIMESTAMP"
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.code())
    }
}

/// Why a message is refused: the code, and for `context` which field, what came and what is legal.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The protocol's code.
    pub code: Code,
    /// `field`, `problem`, and whatever else helps.
    pub context: Packet,
}

impl Refusal {
    /// A refusal with its explanation.
    pub fn new(code: Code, problem: impl Into<String>) -> Refusal {
        Refusal {
            code,
            context: Packet::from_iter([("problem".to_string(), Value::String(problem.into()))]),
        }
    }

    /// A refusal of one field.
    pub fn field(code: Code, field: &str, problem: impl Into<String>) -> Refusal {
        Refusal::new(code, problem).with("field", field)
    }

    /// A refusal of a text: as it came, but cut, and what is wrong with it.
    pub fn got(code: Code, field: &str, came: &str, but: impl std::fmt::Display) -> Refusal {
        Refusal::field(code, field, format!("got {:?}, {but}", cut(came, 60)))
    }

    /// Adds to the context.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Refusal {
        self.context.insert(key.into(), value.into());
        self
    }

    /// The field that it is about.
    pub fn field_name(&self) -> Option<&str> {
        self.context.get("field").and_then(Value::as_str)
    }

    /// Whether no league message came at all, or another one: then what came says most.
    pub fn is_no_answer(&self) -> bool {
        matches!(
            self.field_name(),
            None | Some("" | "result" | "message_type")
        )
    }

    /// What exactly was wrong, in one line.
    pub fn explain(&self) -> String {
        in_one_line(&self.context)
    }
}

/// The field and the problem of a context.
fn in_one_line(context: &Packet) -> String {
    let text = |key| context.get(key).and_then(Value::as_str);
    let problem = text("problem").unwrap_or_default();
    match text("field") {
        Some(field) => format!("{field}: {problem}"),
        None => problem.into(),
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let code = if fault.kind == FaultKind::Time {
            Code::E021
        } else {
            Code::E003
        };
        Refusal::field(code, &fault.path, fault.problem)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.code, self.explain(), self.code.name())
    }
}

impl GameError {
    /// The code, its name, and what exactly was wrong, in one line.
    pub fn explain(&self) -> String {
        let problem = self
            .context
            .as_ref()
            .map(|context| format!(": {}", in_one_line(context)))
            .unwrap_or_default();
        format!("{} {}{problem}", self.error_code, self.error_description)
    }
}

impl LeagueError {
    /// The code, its name, and what exactly was wrong, in one line.
    pub fn explain(&self) -> String {
        let problem = self.context.as_ref().map(in_one_line).unwrap_or_default();
        format!("{} {}: {problem}", self.error_code, self.error_description)
    }
}

/// A message as it was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Understood {
    /// Its envelope.
    pub envelope: Envelope,
    /// The message.
    pub message: Message,
    /// What was wrong with fields that only inform.
    pub ignored: Vec<Fault>,
}

/// What is known of a packet before it is read.
pub type Given = Vec<(&'static str, Value)>;

/// Puts what is known into a packet, where it is absent or null, or a time that cannot be read; says what that was.
pub fn complete(packet: &mut Value, given: Given) -> Vec<&'static str> {
    let lacks = |name: &str, came: &Value| {
        came.is_null() || name.ends_with("timestamp") && Timestamp::read(came).is_err()
    };
    let lacking: Given = given
        .into_iter()
        .filter(|(name, _)| packet.is_object() && lacks(name, &packet[name]))
        .collect();
    lacking
        .into_iter()
        .map(|(name, value)| {
            packet[name] = value;
            name
        })
        .collect()
}

/// Reads a packet whole, envelope and message. All that is missing is named at once; a misspelt field is named with its
/// likely meaning.
pub fn read(packet: &Value) -> Result<Understood, Refusal> {
    if let Some(came) = packet["protocol"].as_str().filter(|came| *came != PROTOCOL) {
        return Err(Refusal::got(
            Code::E018,
            "protocol",
            came,
            format_args!("expected {PROTOCOL:?}"),
        ));
    }
    let mut reader = Reader::default();
    let envelope = Envelope::read_in(packet, &mut reader);
    let name = packet["message_type"].as_str();
    let message = name.and_then(|name| Message::read_body(name, packet, &mut reader));
    match reader.end(envelope.zip(message)) {
        Ok((envelope, message)) => Ok(Understood {
            envelope,
            message,
            ignored: reader.ignored,
        }),
        Err(fault) => Err(explained(fault, packet, name.unwrap_or_default()).into()),
    }
}

/// A missing field that stands there under another name is said to be so.
fn explained(fault: Fault, packet: &Value, message_type: &str) -> Fault {
    let entry = Entry::of_message(message_type).filter(|_| fault.kind == FaultKind::Missing);
    let found = entry.and_then(|entry| {
        let schema = entry.schema();
        fault
            .path
            .split(", ")
            .find_map(|path| Some((lookalike(packet, &schema, path)?, path.rsplit('.').next()?)))
    });
    let problem = found.map(|(key, wanted)| format!("has {:?}, expected {wanted:?}", cut(key, 60)));
    Fault {
        problem: problem.unwrap_or(fault.problem),
        ..fault
    }
}

/// Writes a message with its envelope as one flat object.
pub fn write(envelope: &Envelope, message: &Message) -> Packet {
    #[derive(Serialize)]
    struct Flat<'a> {
        #[serde(flatten)]
        envelope: &'a Envelope,
        #[serde(flatten)]
        message: &'a Message, // counts where both have a field
    }
    match serde_json::to_value(Flat { envelope, message }) {
        Ok(Value::Object(packet)) => packet,
        _ => Packet::new(), // never: all of them are structs
    }
}
