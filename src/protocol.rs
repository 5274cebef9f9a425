//! The league protocol `league.v2`: the envelope, the 21 messages with their fields, the error codes.
//!
//! The page to read is `messages!` below: every message with its type, its tool (the JSON-RPC method) and
//! who may be sent it. Nothing else in the program spells a wire name. Pure: no I/O, no clock.
//! Read next: `referee.rs`, which plays a match with them.

use crate::{
    clock::Timestamp,
    object,
    wire::{Fault, Unread, Wire, field},
    words,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The only protocol version there is (002 §10.2).
pub const PROTOCOL: &str = "league.v2";
/// The only game there is.
pub const GAME: &str = "even_odd";

/// A JSON object, as messages are on the wire.
pub type Packet = Map<String, Value>;

/// Declares the messages and all that follows from the list.
macro_rules! messages {
    ($($wire:literal $name:ident $tool:literal [$($to:ident)*] $says:literal)*) => {
        /// Any message of the protocol.
        #[derive(Debug, Clone, PartialEq)]
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
            fn read_body(name: &str, packet: &Value) -> Result<Message, Fault> {
                match name {
                    $($wire => Ok(Message::$name($name::read(packet)?)),)*
                    _ => Err(Fault::new(&name.into(), "a message type of league.v2").under("message_type")),
                }
            }
            fn write_body(&self) -> Result<Value, serde_json::Error> {
                match self { $(Message::$name(body) => serde_json::to_value(body),)* }
            }
        }
        /// All messages, in the order of the page.
        pub static CATALOGUE: &[Entry] = &[$(Entry {
            message_type: Some($wire), tool: $tool, receivers: &[$(Kind::$to),*], says: $says, schema: $name::schema,
        },)*];
    };
}

messages! {
    // message type              its object              tool                         sent to
    "REFEREE_REGISTER_REQUEST"   RefereeRegisterRequest  "register_referee"           [Manager]        "Register a referee, before the league starts."
    "REFEREE_REGISTER_RESPONSE"  RefereeRegisterResponse "register_referee"           []               "The answer to it: an id and a token, or the reason why not."
    "LEAGUE_REGISTER_REQUEST"    LeagueRegisterRequest   "register_player"            [Manager]        "Register a player, before the league starts."
    "LEAGUE_REGISTER_RESPONSE"   LeagueRegisterResponse  "register_player"            []               "The answer to it: an id and a token, or the reason why not."
    "START_LEAGUE"               StartLeague             "start_league"               [Manager]        "Start the league with the agents registered so far."
    "LEAGUE_STATUS"              LeagueStatus            "start_league"               []               "The answer to it: waiting, running or completed."
    "ROUND_ANNOUNCEMENT"         RoundAnnouncement       "notify_round"               [Referee Player] "A round begins: its matches and who referees them."
    "GAME_INVITATION"            GameInvitation          "handle_game_invitation"     [Player]         "Invite the player to a match; it answers GAME_JOIN_ACK."
    "GAME_JOIN_ACK"              GameJoinAck             "handle_game_invitation"     []               "The answer to it: I am here, or not."
    "CHOOSE_PARITY_CALL"         ChooseParityCall        "choose_parity"              [Player]         "Ask the player for even or odd in a match it has joined."
    "CHOOSE_PARITY_RESPONSE"     ChooseParityResponse    "choose_parity"              []               "The answer to it: even or odd."
    "GAME_OVER"                  GameOver                "notify_match_result"        [Player]         "Tell a player how its match ended."
    "GAME_ERROR"                 GameError               "notify_game_error"          [Referee Player] "Tell a player what went wrong in its match and what is asked of it."
    "MATCH_RESULT_REPORT"        MatchResultReport       "report_match_result"        [Manager]        "Report how a match ended; only its referee may."
    "MATCH_RESULT_ACK"           MatchResultAck          "report_match_result"        []               "The answer to it: recorded."
    "LEAGUE_STANDINGS_UPDATE"    LeagueStandingsUpdate   "update_standings"           [Player]         "The table after a match."
    "ROUND_COMPLETED"            RoundCompleted          "notify_round_completed"     [Referee Player] "A round is over: its summary."
    "LEAGUE_COMPLETED"           LeagueCompleted         "notify_league_completed"    [Referee Player] "The league is over: champion and final table."
    "LEAGUE_QUERY"               LeagueQuery             "league_query"               [Manager]        "Ask for standings, schedule, a player's next match or its statistics."
    "LEAGUE_QUERY_RESPONSE"      LeagueQueryResponse     "league_query"               []               "The answer to it."
    "LEAGUE_ERROR"               LeagueError             "notify_league_error"        [Referee Player] "A request was refused: the code, and in `context` what was wrong."
}

/// Tools without a message type: they go by the method alone (004, Required Tools per Agent).
pub static TOOLS: &[Entry] = &[
    tool(
        "create_schedule",
        &[Kind::Manager],
        "Preview the schedule of the players so far; nothing changes.",
        Nothing::schema,
    ),
    tool(
        "get_standings",
        &[Kind::Manager],
        "The current table: rank, points, wins, draws and losses of every player.",
        Nothing::schema,
    ),
    tool("start_match", &[Kind::Referee], "Hand a match to the referee; needs its own token.", StartMatch::schema),
    tool(
        "get_match_state",
        &[Kind::Referee],
        "How far a match has come; choices only after the draw.",
        GetMatchState::schema,
    ),
    tool("get_player_state", &[Kind::Player], "The player's id, state, record and results so far.", Nothing::schema),
];

const fn tool(tool: &'static str, receivers: &'static [Kind], says: &'static str, schema: fn() -> Value) -> Entry {
    Entry { message_type: None, tool, receivers, says, schema }
}

/// A row of the catalogue.
pub struct Entry {
    /// The wire name; none for a tool that is no message.
    pub message_type: Option<&'static str>,
    /// The JSON-RPC method and the name as a tool.
    pub tool: &'static str,
    /// Who may be sent it as a request; nobody, where it is only a reply.
    pub receivers: &'static [Kind],
    /// One line for a person or a language model.
    pub says: &'static str,
    schema: fn() -> Value,
}

impl Entry {
    /// What may be asked of an agent of this kind.
    pub fn served_by(kind: Kind) -> impl Iterator<Item = &'static Entry> {
        CATALOGUE.iter().chain(TOOLS).filter(move |entry| entry.receivers.contains(&kind))
    }

    /// The row of a message type.
    pub fn of_message(name: &str) -> Option<&'static Entry> {
        CATALOGUE.iter().find(|entry| entry.message_type == Some(name))
    }

    /// The row that a method names: a tool's name, or a message type itself.
    pub fn of_method(name: &str) -> Option<&'static Entry> {
        CATALOGUE.iter().chain(TOOLS).find(|entry| entry.tool == name).or_else(|| Entry::of_message(name))
    }

    /// The JSON schema of the whole request: for a message its envelope and its body.
    pub fn schema(&self) -> Value {
        let mut schema = (self.schema)();
        let Some(name) = self.message_type else { return schema };
        let envelope = Envelope::schema();
        if let (Some(all), Some(more)) = (schema["properties"].as_object_mut(), envelope["properties"].as_object()) {
            for (key, value) in more {
                all.entry(key).or_insert_with(|| value.clone());
            }
            all.insert("message_type".into(), json!({"const": name}));
            all.insert("protocol".into(), json!({"const": PROTOCOL}));
        }
        if let (Some(all), Some(more)) = (schema["required"].as_array_mut(), envelope["required"].as_array()) {
            all.extend(more.iter().cloned());
        }
        schema
    }
}

words! {
    /// The three kinds of agent.
    Kind { Manager = "league_manager", Referee = "referee", Player = "player", }
    /// Even or odd: a choice, or what the drawn number is.
    Parity { Even = "even", Odd = "odd", }
    /// Which side of a match; no difference in play (002 §5.1.2).
    Role { PlayerA = "PLAYER_A", PlayerB = "PLAYER_B", }
    /// How a match ended (002 §5.3.2).
    Ending { Win = "WIN", Draw = "DRAW", TechnicalLoss = "TECHNICAL_LOSS", }
    /// The answer to a registration.
    Verdict { Accepted = "ACCEPTED", Rejected = "REJECTED", }
    /// How far the league has come (R10).
    Progress { Waiting = "waiting", Running = "running", Completed = "completed", }
    /// The life of an agent (004, Agent Lifecycle States).
    AgentState {
        Init = "INIT", Registered = "REGISTERED", Active = "ACTIVE", Suspended = "SUSPENDED", Shutdown = "SHUTDOWN",
    }
    /// The life of a match (004, Match States).
    MatchState {
        WaitingForPlayers = "WAITING_FOR_PLAYERS", CollectingChoices = "COLLECTING_CHOICES",
        DrawingNumber = "DRAWING_NUMBER", Finished = "FINISHED",
    }
    /// The four questions to the manager (002 §8.1.2).
    QueryType {
        Standings = "GET_STANDINGS", Schedule = "GET_SCHEDULE",
        NextMatch = "GET_NEXT_MATCH", PlayerStats = "GET_PLAYER_STATS",
    }
}

object! {
    /// What every message carries (002 §2.1, 004 Message Envelope).
    Envelope {
        protocol: String, message_type: String, sender: String, timestamp: Timestamp, conversation_id: String,
        ; optional auth_token: String, league_id: String, round_id: u32, match_id: String,
    }
    /// 002 §3.1.2, and two optional fields of ours (R2, R4).
    RefereeMeta {
        display_name: String, version: String, game_types: Vec<String>, contact_endpoint: String,
        max_concurrent_matches: i32,
        ; optional protocol_version: String, uses_match_tokens: bool,
    }
    /// 002 §3.3.2.
    PlayerMeta {
        display_name: String, version: String, game_types: Vec<String>, contact_endpoint: String,
        ; optional protocol_version: String,
    }
    /// 002 §3.1.
    RefereeRegisterRequest { referee_meta: RefereeMeta, }
    /// 002 §3.2; the token and the league's id as in 004.
    RefereeRegisterResponse {
        status: Verdict,
        ; nullable referee_id: String, reason: String,
        ; optional auth_token: String, league_id: String, error_code: String,
    }
    /// 002 §3.3.
    LeagueRegisterRequest { player_meta: PlayerMeta, }
    /// 002 §3.4; the token and the league's id as in 004.
    LeagueRegisterResponse {
        status: Verdict,
        ; nullable player_id: String, reason: String,
        ; optional auth_token: String, league_id: String, error_code: String,
    }
    /// 001 §4.1.
    StartLeague { league_id: String, }
    /// 001 §4.1; `reason` says what a league that does not go on is waiting for.
    LeagueStatus {
        league_id: String, status: Progress, current_round: u32, total_rounds: u32, matches_completed: u32,
        ; optional reason: String,
    }
    /// 002 §4.1.
    RoundAnnouncement { league_id: String, round_id: u32, matches: Vec<MatchEntry>, }
    /// One match of an announcement. The optional fields are the hand-over to the referee (R6) and the
    /// match tokens (R4): both tokens in its referee's copy, its own in a player's.
    MatchEntry {
        match_id: String, game_type: String, player_A_id: String, player_B_id: String, referee_endpoint: String,
        ; optional player_A_endpoint: String, player_B_endpoint: String,
        player_A_standings: Tally, player_B_standings: Tally,
        player_A_token: String, player_B_token: String, match_token: String,
    }
    /// What a player has won, lost and drawn so far.
    Tally { wins: u32, losses: u32, draws: u32, }
    /// 002 §5.1. The conversation of the envelope is the match's.
    GameInvitation {
        league_id: String, round_id: u32, match_id: String, game_type: String, role_in_match: Role,
        opponent_id: String,
        ; optional player_id: String,
    }
    /// 002 §5.2. The token is the match's, echoed (R4).
    GameJoinAck {
        match_id: String, player_id: String, arrival_timestamp: Timestamp, accept: bool,
        ; optional auth_token: String,
    }
    /// 002 §6.1.
    ChooseParityCall {
        match_id: String, player_id: String, game_type: String, deadline: Timestamp,
        ; optional context: TurnContext,
    }
    /// What a player is told along with the call (002 §6.1.2).
    TurnContext { ; optional opponent_id: String, round_id: u32, your_standings: Tally, }
    /// 002 §6.2. Judging the choice is the game's business (E004), not the reader's.
    ChooseParityResponse {
        match_id: String, player_id: String, parity_choice: Unread<Parity>,
        ; optional auth_token: String,
    }
    /// 002 §5.3. `reason` beside the result is read, and never written (R7).
    GameOver { match_id: String, game_type: String, game_result: GameResult, ; optional reason: String, }
    /// How a match ended, as the players are told.
    GameResult {
        status: Ending, winner_player_id: Option<String>, drawn_number: Option<u32>, number_parity: Option<Parity>,
        choices: BTreeMap<String, Option<Parity>>,
        ; optional reason: String,
    }
    /// 002 §9.2.
    GameError {
        match_id: String, error_code: String, error_description: String, affected_player: String,
        action_required: String,
        ; optional player_id: String, retry_info: RetryInfo, context: Packet, consequence: String,
    }
    /// 002 §9.2.2: which attempt failed, and when the next comes or how many seconds are left.
    RetryInfo { retry_count: u32, max_retries: u32, ; optional next_retry_at: Timestamp, time_remaining: f64, }
    /// 002 §7.1.
    MatchResultReport { league_id: String, round_id: u32, match_id: String, game_type: String, result: MatchResult, }
    /// How a match ended, as the manager is told: points by player.
    MatchResult { winner: Option<String>, score: BTreeMap<String, i32>, details: Details, }
    /// `status` and `reason` are ours (R7); without a status the number says how the match ended.
    Details {
        drawn_number: Option<u32>, choices: BTreeMap<String, Option<Parity>>,
        ; optional status: Ending, reason: String,
    }
    /// 001 §2.5.
    MatchResultAck { match_id: String, status: String, }
    /// 002 §7.2.
    LeagueStandingsUpdate { league_id: String, round_id: u32, standings: Vec<Standing>, }
    /// One row of the table.
    Standing {
        rank: u32, player_id: String, display_name: String,
        played: u32, wins: u32, draws: u32, losses: u32, points: i32,
    }
    /// 002 §4.2.
    RoundCompleted {
        league_id: String, round_id: u32, matches_completed: u32, summary: RoundSummary,
        ; nullable next_round_id: u32,
    }
    /// `wins + draws + technical_losses = total_matches`.
    RoundSummary { total_matches: u32, wins: u32, draws: u32, technical_losses: u32, }
    /// 002 §4.3.
    LeagueCompleted {
        league_id: String, total_rounds: u32, total_matches: u32, champion: Champion, final_standings: Vec<FinalRow>,
    }
    /// Who won the league.
    Champion { player_id: String, display_name: String, points: i32, }
    /// One row of the final table.
    FinalRow { rank: u32, player_id: String, points: i32, ; optional display_name: String, }
    /// 002 §8.1. What exactly is asked is judged by the answer, not by the reader (R10).
    LeagueQuery { league_id: String, query_type: Unread<QueryType>, ; optional query_params: Unread<QueryParams>, }
    /// Whom or what a query is about; without a player it is about the sender.
    QueryParams { ; optional player_id: String, round_id: u32, }
    /// 002 §8.2: `data` on success, else `error`.
    LeagueQueryResponse { query_type: String, success: bool, ; optional data: Packet, error: QueryError, }
    /// Here `error_description` is an explanation, not the name.
    QueryError { error_code: String, error_name: String, error_description: String, }
    /// 002 §9.1; here `error_description` is the name, and `context` says what exactly was wrong.
    LeagueError {
        error_code: String, error_description: String,
        ; optional original_message_type: String, context: Packet,
    }

    /// The arguments of a tool that takes none.
    Nothing {}
    /// The arguments of `start_match` (R1).
    StartMatch { league_id: String, round_id: u32, r#match: MatchEntry, ; optional auth_token: String, }
    /// The arguments of `get_match_state`.
    GetMatchState { match_id: String, }
}

/// Declares the error codes (R12).
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
        Refusal { code, context: Packet::from_iter([("problem".to_string(), Value::String(problem.into()))]) }
    }

    /// A refusal of one field.
    pub fn field(code: Code, field: &str, problem: impl Into<String>) -> Refusal {
        Refusal::new(code, problem).with("field", field)
    }

    /// Adds to the context.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Refusal {
        self.context.insert(key.into(), value.into());
        self
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
        let code = if fault.is_time { Code::E021 } else { Code::E003 };
        Refusal::field(code, &fault.path, fault.problem)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.code, self.explain(), self.code.name())
    }
}

impl LeagueError {
    /// Whether the manager knows the token, and its time is over.
    pub fn says_expired(&self) -> bool {
        self.context.as_ref().is_some_and(|context| context.contains_key("expired_at"))
    }

    /// The code, its name, and what exactly was wrong, in one line.
    pub fn explain(&self) -> String {
        let problem = self.context.as_ref().map(in_one_line).unwrap_or_default();
        format!("{} {}: {problem}", self.error_code, self.error_description)
    }
}

/// Reads a packet whole: first the envelope, then the message. `mend` is asked about each fault of
/// `sender`, `timestamp` and `conversation_id`; what it gives instead is taken (R2, `strict_envelope`).
pub fn read(packet: &Packet, mend: impl Fn(&Fault) -> Option<Value>) -> Result<(Envelope, Message), Refusal> {
    let protocol: String = field(packet, "protocol")?;
    if protocol != PROTOCOL {
        let problem = format!("got {protocol:?}, expected {PROTOCOL:?}");
        return Err(Refusal::field(Code::E018, "protocol", problem));
    }
    let mut packet = packet.clone();
    let checks = [
        ("sender", field::<String>(&packet, "sender").err()),
        ("timestamp", field::<Timestamp>(&packet, "timestamp").err()),
        ("conversation_id", field::<String>(&packet, "conversation_id").err()),
    ];
    for (name, fault) in checks {
        if let Some(fault) = fault {
            let mended = mend(&fault).ok_or(fault)?;
            packet.insert(name.into(), mended);
        }
    }
    let name: String = field(&packet, "message_type")?;
    let packet = Value::Object(packet);
    Ok((Envelope::read(&packet)?, Message::read_body(&name, &packet)?))
}

/// Writes a message with its envelope as one flat object.
pub fn write(envelope: &Envelope, message: &Message) -> Packet {
    let mut packet = Packet::new();
    for written in [serde_json::to_value(envelope), message.write_body()] {
        if let Ok(Value::Object(fields)) = written {
            packet.extend(fields); // always: both are structs
        }
    }
    packet
}
