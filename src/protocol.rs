//! The league protocol `league.v2` on one page: the messages, who may be sent them, and their
//! fields.
//!
//! First comes the table `messages!`: for every message its type on the wire, its object, its tool
//! (the JSON-RPC method that it travels under), the kinds of agents to which it may be sent as a
//! request, and a sentence that explains it to people and language models. A message that may be
//! sent to nobody is only a reply, and has no sentence. Then come the objects: a field of a message
//! is declared here and nowhere else.
//!
//! How to read a declaration:
//! ```text
//! words! {
//!     Fruit { Apple = "APPLE", Pear = "PEAR", }    one of these words, else it is refused
//! }
//! object! {
//!     Example {
//!         match_id: String, accept: bool,          a required field must be there and right
//!         next_round_id: Option<u32>,              required too; where there is none it is null
//!         parity_choice: Unread<Parity>,           any JSON is let in, and judged later
//!         ; optional auth_token: String,           absent, null and faulty are all the same
//!     }
//! }
//! ```
//! Each declaration makes a Rust struct with those fields (an optional one is an `Option`), a
//! reader that names what is wrong by its full path, and a JSON schema for tool clients. How that
//! is done stands in `wire/object.rs`; how a whole message is read, in `protocol/read.rs`. This
//! page is pure: it knows no clock and no socket.
//!
//! The file `protocol.md`, which `cargo doc` shows below, says the same to somebody who writes an
//! agent in another language, with every exchange as JSON. Read next: `games.rs`.
#![doc = include_str!("protocol.md")]
#![doc = include_str!("protocol/fields.md")]

mod codes;
mod read;
#[macro_use]
mod table;

pub use codes::{Code, Refusal};
pub use read::{SUPPLIED, Understood, complete, read, write};
pub use table::Entry;

use crate::wire::{Timestamp, Unread};
use crate::{object, words};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The only protocol version there is.
pub const PROTOCOL: &str = "league.v2";
/// The game that has messages of its own.
pub const GAME: &str = "even_odd";

/// A JSON object, as messages are on the wire.
pub type Packet = Map<String, Value>;

messages! {
    "REFEREE_REGISTER_REQUEST"  RefereeRegisterRequest   "register_referee"        [Manager]:
        "A referee asks to be let in, before the league starts. Answered with an id and a \
         token, or REJECTED and why."
    "REFEREE_REGISTER_RESPONSE" RefereeRegisterResponse  "register_referee"        []
    "LEAGUE_REGISTER_REQUEST"   LeagueRegisterRequest    "register_player"         [Manager]:
        "A player asks to be let in, before the league starts. Answered with an id and a \
         token, or REJECTED and why."
    "LEAGUE_REGISTER_RESPONSE"  LeagueRegisterResponse   "register_player"         []
    "START_LEAGUE"              StartLeague              "start_league"            [Manager]:
        "Start the league with the agents registered so far; from the manager's machine it \
         needs no token. Answered with the status, and with what is missing if it cannot \
         start."
    "LEAGUE_STATUS"             LeagueStatus             "start_league"            []
    "LEAGUE_CONTROL"            LeagueControl            "control_league"          [Manager]:
        "The operator of the league pauses or resumes it, removes or restores a player, has a \
         match played again, or opens a new lobby when the league is over. Answered with the \
         status."
    "ROUND_ANNOUNCEMENT"        RoundAnnouncement        "notify_round"            [Referee Player]:
        "The manager announces a round: its matches and who referees them. Answered \
         {\"status\":\"ok\"}."
    "GAME_INVITATION"           GameInvitation           "handle_game_invitation"  [Player]:
        "A referee invites the player to a match; it answers GAME_JOIN_ACK."
    "GAME_JOIN_ACK"             GameJoinAck              "handle_game_invitation"  []
    "CHOOSE_PARITY_CALL"        ChooseParityCall         "choose_parity"           [Player]:
        "A referee asks the player for even or odd in a match it has joined; it answers \
         CHOOSE_PARITY_RESPONSE."
    "CHOOSE_PARITY_RESPONSE"    ChooseParityResponse     "choose_parity"           []
    "CHOOSE_MOVE_CALL"          ChooseMoveCall           "choose_move"             [Player]:
        "A referee asks the player for its move in a game other than Even/Odd; it answers \
         CHOOSE_MOVE_RESPONSE."
    "CHOOSE_MOVE_RESPONSE"      ChooseMoveResponse       "choose_move"             []
    "GAME_OVER"                 GameOver                 "notify_match_result"     [Player]:
        "A referee tells a player how its match ended. Answered {\"status\":\"ok\"}."
    "GAME_ERROR"                GameError                "notify_game_error"       [Referee Player]:
        "A referee tells a player what went wrong in its match and what is asked of it. \
         Answered {\"status\":\"ok\"}."
    "MATCH_RESULT_REPORT"       MatchResultReport        "report_match_result"     [Manager]:
        "The referee of a match reports how it ended; nobody else may. Answered \
         MATCH_RESULT_ACK once it is recorded."
    "MATCH_RESULT_ACK"          MatchResultAck           "report_match_result"     []
    "LEAGUE_STANDINGS_UPDATE"   LeagueStandingsUpdate    "update_standings"        [Player]:
        "The manager sends the table after a match. Answered {\"status\":\"ok\"}."
    "ROUND_COMPLETED"           RoundCompleted           "notify_round_completed"  [Referee Player]:
        "The manager says that a round is over: its summary. Answered {\"status\":\"ok\"}."
    "LEAGUE_COMPLETED"          LeagueCompleted          "notify_league_completed" [Referee Player]:
        "The manager says that the league is over: champion and final table. Answered \
         {\"status\":\"ok\"}."
    "LEAGUE_QUERY"              LeagueQuery              "league_query"            [Manager]:
        "A registered agent, with its token, asks for standings, schedule, a player's next \
         match or its statistics."
    "LEAGUE_QUERY_RESPONSE"     LeagueQueryResponse      "league_query"            []
    "LEAGUE_ERROR"              LeagueError              "notify_league_error"     [Referee Player]:
        "A request was refused: the code, and in `context` what was wrong."
}

words! {
    /// The three kinds of agent.
    Kind { Manager = "league_manager", Referee = "referee", Player = "player", }
    /// A choice in Even/Odd, and what the drawn number is.
    Parity { Even = "even", Odd = "odd", }
    /// The sides of a match. In a game by turns player A begins; else they make no difference.
    Role { PlayerA = "PLAYER_A", PlayerB = "PLAYER_B", }
    /// How a match ended.
    Ending { Win = "WIN", Draw = "DRAW", TechnicalLoss = "TECHNICAL_LOSS", }
    /// The answer to a registration.
    Verdict { Accepted = "ACCEPTED", Rejected = "REJECTED", }
    /// How far the league has come.
    Progress { Waiting = "waiting", Running = "running", Completed = "completed", }
    /// The life of an agent.
    AgentState {
        Init = "INIT", Registered = "REGISTERED", Active = "ACTIVE",
        Suspended = "SUSPENDED", Shutdown = "SHUTDOWN",
    }
    /// The life of a match.
    MatchState {
        WaitingForPlayers = "WAITING_FOR_PLAYERS", CollectingChoices = "COLLECTING_CHOICES",
        DrawingNumber = "DRAWING_NUMBER", Finished = "FINISHED",
    }
    /// What the operator may do to a league.
    Action {
        Pause = "pause", Resume = "resume", Remove = "remove",
        Restore = "restore", Replay = "replay", Again = "again",
    }
    /// The four questions to the manager.
    QueryType {
        Standings = "GET_STANDINGS", Schedule = "GET_SCHEDULE",
        NextMatch = "GET_NEXT_MATCH", PlayerStats = "GET_PLAYER_STATS",
    }
}

object! {
    /// The envelope: every message has it, beside its own fields.
    Envelope {
        protocol: String, message_type: String, sender: String, timestamp: Timestamp,
        conversation_id: String,
        ; optional auth_token: String, league_id: String, round_id: u32, match_id: String,
    }

    /// What an agent says of itself. Only a referee says how many matches it plays at once, and
    /// whether it takes match tokens from the manager. By its `registration_key`, a secret that it
    /// made itself and keeps on its disk, an agent that lost the manager's answer gets it again.
    AgentMeta {
        display_name: String, version: String, game_types: Vec<String>, contact_endpoint: String,
        ; optional max_concurrent_matches: u32, protocol_version: String,
        uses_match_tokens: bool, registration_key: String,
    }
    /// A referee asks to be let in.
    RefereeRegisterRequest { referee_meta: AgentMeta, }
    /// A referee is in, with an id and a token; or it is not, and `reason` says why. With
    /// `proves_itself` the manager promises that its own requests carry that token.
    RefereeRegisterResponse {
        status: Verdict, referee_id: Option<String>, reason: Option<String>,
        ; optional auth_token: String, league_id: String, error_code: String, proves_itself: bool,
    }
    /// A player asks to be let in.
    LeagueRegisterRequest { player_meta: AgentMeta, }
    /// The same for a player.
    LeagueRegisterResponse {
        status: Verdict, player_id: Option<String>, reason: Option<String>,
        ; optional auth_token: String, league_id: String, error_code: String, proves_itself: bool,
    }

    /// The operator starts the league.
    StartLeague { league_id: String, }
    /// The operator's order: `remove` names a player, `restore` a player or another agent, both in
    /// `player_id`; `replay` names a match.
    LeagueControl {
        league_id: String, action: Action,
        ; optional player_id: String, match_id: String,
    }
    /// How far the league is; where it does not go on, `reason` says what it waits for.
    LeagueStatus {
        league_id: String, status: Progress, current_round: u32, total_rounds: u32,
        matches_completed: u32,
        ; optional reason: String,
    }

    /// A round begins, or goes on: its open matches. `match_token` stands in a player's copy: only
    /// an invitation that carries it as `auth_token` is a true one to the player's match of this
    /// round.
    RoundAnnouncement {
        league_id: String, round_id: u32, matches: Vec<MatchEntry>,
        ; optional match_token: String,
    }
    /// One match of an announcement. The optional fields are for the referee: who referees, where
    /// the players are, the token of each for this match, and how they stand. Only `match_token` is
    /// for a player: some managers write it here; ours never does.
    MatchEntry {
        match_id: String, game_type: String, player_A_id: String, player_B_id: String,
        referee_endpoint: String,
        ; optional referee_id: String, player_A_endpoint: String, player_B_endpoint: String,
        player_A_token: String, player_B_token: String,
        player_A_standings: Tally, player_B_standings: Tally, match_token: String,
    }
    /// What a player has won, lost and drawn so far.
    #[derive(Copy, Default)]
    Tally { wins: u32, losses: u32, draws: u32, }
    /// One match as a referee is given it by the tool `start_match`, which is no message.
    StartMatch {
        league_id: String, round_id: u32, r#match: MatchEntry,
        ; optional auth_token: String,
    }

    /// A player is asked to come. The conversation of the envelope is that of the whole match.
    GameInvitation {
        league_id: String, round_id: u32, match_id: String, game_type: String,
        role_in_match: String, opponent_id: String,
        ; optional player_id: String,
    }
    /// The player comes, or does not. It echoes the token of the match.
    GameJoinAck {
        match_id: String, player_id: String, arrival_timestamp: Timestamp, accept: bool,
        ; optional auth_token: String,
    }
    /// A player is asked for even or odd.
    ChooseParityCall {
        match_id: String, player_id: String, game_type: String, deadline: Timestamp,
        ; optional context: TurnContext,
    }
    /// What a player is told along with the call.
    TurnContext { ; optional opponent_id: String, round_id: u32, your_standings: Tally, }
    /// The player's choice. Judging it is the game's business, not the reader's.
    ChooseParityResponse {
        match_id: String, player_id: String, parity_choice: Unread<Parity>,
        ; optional auth_token: String,
    }
    /// A player is asked for a move, in any game but Even/Odd. `position` is for people to read;
    /// `move_number` counts the moves of the match, from 1.
    ChooseMoveCall {
        match_id: String, player_id: String, game_type: String, deadline: Timestamp,
        move_number: u32, position: String, legal_moves: Vec<String>,
        ; optional context: TurnContext,
    }
    /// The player's move: one of the legal ones, which the game judges.
    ChooseMoveResponse {
        match_id: String, player_id: String, move_number: u32, r#move: Unread<String>,
        ; optional auth_token: String,
    }
    /// How a match ended. `reason` beside the result is read, and never written.
    GameOver {
        match_id: String, game_type: String, game_result: GameResult,
        ; optional reason: String,
    }
    /// How a match ended, as the players are told. `choices` is for Even/Odd, `moves` for every
    /// other game.
    GameResult {
        status: Ending, winner_player_id: Option<String>, drawn_number: Option<u32>,
        number_parity: Option<Parity>, choices: BTreeMap<String, Option<Parity>>,
        ; optional reason: String, moves: Vec<MoveMade>,
    }
    /// A move as it was played.
    MoveMade { player_id: String, r#move: String, }
    /// What went wrong in a match, for the player that it concerns.
    GameError {
        match_id: String, error_code: String, error_description: String,
        affected_player: String, action_required: String,
        ; optional player_id: String, retry_info: RetryInfo, context: Packet, consequence: String,
    }
    /// Which attempt failed; and when the next one comes, or how many seconds are left for it.
    RetryInfo {
        retry_count: u32, max_retries: u32,
        ; optional next_retry_at: Timestamp, time_remaining: f64,
    }

    /// How a match ended, for the manager.
    MatchResultReport {
        league_id: String, round_id: u32, match_id: String, game_type: String, result: MatchResult,
    }
    /// How a match ended, as the manager is told: points by player.
    MatchResult { winner: Option<String>, score: BTreeMap<String, i32>, details: Details, }
    /// What the result follows from. In Even/Odd `status` may be absent: the number then says how
    /// the match ended.
    Details {
        drawn_number: Option<u32>, choices: BTreeMap<String, Option<Parity>>,
        ; optional status: Ending, reason: String, moves: Vec<MoveMade>,
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
    /// How the matches of a round ended: `wins + draws + technical_losses = total_matches`.
    RoundSummary { total_matches: u32, wins: u32, draws: u32, technical_losses: u32, }
    /// The league is over.
    LeagueCompleted {
        league_id: String, total_rounds: u32, total_matches: u32, champion: Champion,
        final_standings: Vec<FinalRow>,
    }
    /// Who won the league.
    Champion { player_id: String, display_name: String, points: i32, }
    /// One row of the final table.
    FinalRow { rank: u32, player_id: String, points: i32, ; optional display_name: String, }

    /// A question to the manager. What exactly is asked is judged by whoever answers it.
    LeagueQuery {
        league_id: String, query_type: Unread<QueryType>,
        ; optional query_params: Unread<QueryParams>,
    }
    /// Whom or what a question is about; without a player it is about its sender.
    #[derive(Default)]
    QueryParams { ; optional player_id: String, round_id: u32, }
    /// The answer to a question: `data` on success, else `error`.
    LeagueQueryResponse {
        query_type: String, success: bool,
        ; optional data: Packet, error: QueryError,
    }
    /// Why a question was not answered; unlike in LEAGUE_ERROR, `error_description` explains.
    QueryError { error_code: String, error_name: String, error_description: String, }
    /// A refusal. `error_description` is the code's name; `context` says what exactly was wrong.
    LeagueError {
        error_code: String, error_description: String,
        ; optional original_message_type: String, context: Packet,
    }
}
