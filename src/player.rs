//! A player: it joins every match to which it is genuinely invited, calls `choose` for each move,
//! and remembers the results. A student only writes `choose`, and calls `run(choose)`, or
//! `play(choose)` for games other than Even/Odd.
//!
//! A message of a referee is accepted if it has the token and the conversation of its invitation
//! (`player/invitations.rs`), a message of the manager if it has the player's own token
//! (`program/session.rs`). While `choose` runs, no lock is held but that of the match's moves. A
//! panic of `choose` is printed as one line, and answered like any panic of a handler. Read next:
//! `player/turn.rs`.

pub mod display;
pub mod history;
pub mod invitations;
pub mod turn;

pub use crate::player::turn::{PastMatch, Turn, record};
pub use crate::protocol::Parity;

use crate::games::{self, even_odd};
use crate::net::agent::{Agent, HandlerError, NoArguments, Request, Tool, Toolbox};
use crate::net::client::{MessageContext, Peer, new_conversation};
use crate::net::http::Response;
use crate::net::limits::call_user;
use crate::net::log::Level;
use crate::net::rpc::PANIC;
use crate::net::sync::{Shared, lock, spawn_needed};
use crate::player::history::History;
use crate::player::invitations::Invitations;
use crate::program::args::{Args, CLIENT, COMMON, Exit, SERVER, STAY, Usage};
use crate::program::credentials::Credentials;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::{Terminal, describe_refusal, print_error};
use crate::protocol::{
    AgentKind, AgentState, ChooseMoveCall, ChooseMoveResponse, ChooseParityCall,
    ChooseParityResponse, Envelope, ErrorCode, GameInvitation, GameJoinAck, GameOver,
    LeagueCompleted, LeagueQuery, LeagueQueryResponse, LeagueStandingsUpdate, PlayerRequest,
    ProtocolError, QueryType, Record, Reply,
};
use crate::values::{MAX_QUOTED_CHARS, Timestamp, truncate};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The command line of a player.
pub const USAGE: Usage = Usage {
    name: "player",
    about: "A player of the AI Agent League: joins its matches and chooses.",
    options: OPTIONS,
};

/// The options of a player.
pub const OPTIONS: &[&str] = &[
    "
  --display-name NAME         shown in the table [as in the configuration]
  --player-id ID              the id to ask for, with its credentials [any]
  --quiet                     print only problems, and what `choose` prints",
    CLIENT,
    STAY,
    SERVER,
    COMMON,
];

/// Interval between writes of the history.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time that an invitation waits for the announcement of its match.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum time between two questions for our next match, since other programs can cause them.
const QUERY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time for the answer: the referee waits for us meanwhile.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// The description of a player for language models.
const INSTRUCTIONS: &str = "A player of the AI Agent League: it plays matches that a referee \
    conducts. get_player_state shows its id, record and results, and needs no arguments. The other \
    tools are messages of a league: handle_game_invitation, then choose_parity (in Even/Odd; \
    choose_move in other games) and notify_match_result come from a referee, with the same \
    match_id, conversation_id and auth_token; the rest comes from the league manager.";

/// Runs a player of Even/Odd until the league is over. `choose` is called once in each match (again
/// if it panics, or if the match is played again), in a thread of its own; it must not take longer
/// than `turn.time_left()`.
pub fn run(choose: impl Fn(&Turn) -> Parity + Send + Sync + 'static) -> ExitCode {
    let game_types = vec![even_odd::GAME.game_type];
    let options = Options::new("choose", game_types, move |turn| choose(turn).to_string());
    USAGE.main(|args| start(args, options))
}

/// Runs a player of any game. `choose` is called for each move, and returns one of
/// `turn.legal_moves`.
pub fn play(choose: impl Fn(&Turn) -> String + Send + Sync + 'static) -> ExitCode {
    let options = Options::new("choose", games::names(), choose);
    USAGE.main(|args| start(args, options))
}

/// Runs a player until the league is over.
pub fn start(args: Args, options: Options) -> Result<(), Exit> {
    let game_types = options.game_types.clone();
    session::run(args, AgentKind::Player, game_types, |session| {
        Player::new(session, options)
    })
}

/// The properties in which players differ.
pub struct Options {
    /// The name of the strategy, as `get_player_state` shows it.
    pub strategy: String,
    /// The games that it can play.
    pub game_types: Vec<&'static str>,
    /// Returns one of the legal moves.
    pub choose: Box<dyn Fn(&Turn) -> String + Send + Sync>,
    /// Its surroundings.
    pub hooks: Arc<dyn PlayerHooks>,
}

/// The surroundings of a player.
pub trait PlayerHooks: Send + Sync {
    /// Returns the tools that are offered in addition to `get_player_state`.
    fn toolbox<'a>(&'a self, _session: &'a Session) -> Toolbox<'a> {
        Toolbox {
            instructions: INSTRUCTIONS,
            lists_messages: true,
            tools: Vec::new(),
        }
    }

    /// Answers `GET path`.
    fn page(&self, _path: &str) -> Option<Response> {
        None
    }

    /// Prints how a match or the league has ended.
    fn print(&self, line: &str, terminal: Terminal) {
        terminal.print_line(line);
    }

    /// The league is over, and its end is printed.
    fn over(&self) {}
}

/// The hooks of a player with nothing around it.
struct NoPlayerHooks;

impl PlayerHooks for NoPlayerHooks {}

impl Options {
    /// Returns the options of a player that chooses with a function.
    pub fn new(
        strategy: &str,
        game_types: Vec<&'static str>,
        choose: impl Fn(&Turn) -> String + Send + Sync + 'static,
    ) -> Options {
        Options {
            strategy: strategy.into(),
            game_types,
            choose: Box::new(choose),
            hooks: Arc::new(NoPlayerHooks),
        }
    }
}

/// A player in its league.
struct Player {
    session: Arc<Session>,
    options: Options,
    invitations: Shared<Invitations>,
    history: Mutex<History>,
    /// The names of the players, by id, as the newest table has them.
    names: Mutex<BTreeMap<String, String>>,
    /// The time at which we last asked the manager for our next match.
    asked_at: Mutex<Option<Instant>>,
}

impl Player {
    /// Returns a player that saves its history at intervals.
    fn new(session: Arc<Session>, options: Options) -> Arc<Player> {
        let checks_tokens = session.program.config.system.security.enable_auth_tokens;
        let player = Arc::new(Player {
            session,
            options,
            invitations: Shared::new(Invitations::new(checks_tokens)),
            history: Mutex::default(),
            names: Mutex::default(),
            asked_at: Mutex::default(),
        });

        let writer = Arc::clone(&player);
        spawn_needed("history", move || {
            loop {
                thread::sleep(SAVE_INTERVAL);
                writer.save_history();
            }
        });

        player
    }
}

impl Participant for Player {
    fn on_registered(&self, credentials: &Credentials, is_new: bool) -> Result<(), Exit> {
        if is_new {
            self.invitations.lock().clear();
        }

        let (id, league_id) = (&credentials.agent_id, &credentials.league_id);
        let folder = self.session.program.data.join("players").join(id);
        let mut history = lock(&self.history);
        if is_new || history.matches().is_empty() {
            *history = History::open(&folder, id, league_id, is_new)?;
        }
        Ok(())
    }
}

impl Agent for Player {
    type Requests = PlayerRequest;

    const KIND: AgentKind = AgentKind::Player;

    /// Handles a message. Those of a referee carry the token of a match, which their handlers
    /// check, all others the player's own token.
    fn handle(
        &self,
        request: &Request,
        message: PlayerRequest,
    ) -> Result<Option<Reply>, HandlerError> {
        let credentials = self.session.wait_until_registered()?;
        if !is_from_referee(&message) {
            let token = request.envelope.auth_token.as_deref();
            self.session.check_manager(token)?;
        }

        match message {
            PlayerRequest::GameInvitation(invitation) => {
                return Ok(Some(self.join(&credentials, request, invitation)?.into()));
            }
            PlayerRequest::ChooseMoveCall(call) => {
                return Ok(Some(self.choose(&credentials, request, call)?.into()));
            }
            PlayerRequest::ChooseParityCall(call) => {
                let response = self.choose(&credentials, request, as_move_call(call))?;
                return Ok(Some(as_parity_response(response).into()));
            }
            PlayerRequest::GameOver(over) => self.record_result(&credentials, request, over)?,
            PlayerRequest::GameError(error) => {
                (self.invitations.lock()).find(&request.envelope, &error.match_id)?;
                let text = display::game_error(&error);
                if !text.contains(PANIC) {
                    self.warn(&text); // else the panic is printed
                }
            }
            PlayerRequest::RoundAnnouncement(round) => {
                (self.invitations).update(|all| all.announce(&credentials.agent_id, round));
            }
            PlayerRequest::LeagueCompleted(league) => self.end(&credentials.agent_id, &league),
            PlayerRequest::LeagueError(error) => {
                let text = truncate(&error.explain(), MAX_QUOTED_CHARS);
                self.warn(&format!("the league manager says: {text}"));
            }
            PlayerRequest::LeagueStandingsUpdate(table) => {
                *lock(&self.names) = names(table);
            }
            PlayerRequest::RoundCompleted(round) => self.session.record_round(&round),
        }
        Ok(None)
    }

    fn on_ping(&self, token: Option<&str>) {
        self.session.record_ping(token);
    }

    fn on_refused(&self, packet: &Value, peer: IpAddr, refusal: &ProtocolError) {
        let match_id = packet["match_id"].as_str().unwrap_or_default();
        let token = packet["auth_token"].as_str();
        if refusal.code == ErrorCode::MatchMismatch
            && self.invitations.lock().awaits_invitation(match_id, token)
        {
            return;
        }
        self.warn(&describe_refusal(packet, peer, refusal));
    }

    fn page(&self, path: &str, _query: &str, _peer: IpAddr) -> Option<Response> {
        self.options.hooks.page(path)
    }

    fn is_known(&self, envelope: &Envelope) -> bool {
        let token = envelope.auth_token.as_deref();
        self.session.is_own_token(token) || self.invitations.lock().is_known_token(token)
    }

    fn health(&self) -> Value {
        self.session.health()
    }

    fn toolbox(&self) -> Toolbox<'_> {
        let mut toolbox = self.options.hooks.toolbox(&self.session);
        toolbox.tools.push(Tool::new(
            "get_player_state",
            "The player's id, state, strategy, record and all its results so far.",
            |_: NoArguments, _| Ok(self.state()),
        ));
        toolbox
    }
}

/// Returns the names of the players in a table, by id.
fn names(table: LeagueStandingsUpdate) -> BTreeMap<String, String> {
    let rows = table.standings.into_iter();
    rows.map(|row| (row.player_id, row.display_name)).collect()
}

/// The result of `get_player_state`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlayerState {
    pub display_name: String,
    pub state: AgentState,
    pub strategy: String,
    pub record: Record,
    pub matches: Arc<Vec<PastMatch>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player_id: Option<String>,
}

impl Player {
    /// Ends the player with its league.
    fn end(&self, player_id: &str, league: &LeagueCompleted) {
        self.save_history();
        if self.session.end_league() {
            let text = display::league_over(player_id, league);
            self.print(&text);
            self.options.hooks.over();
        }
    }

    /// Asks the manager for our next match and its token: the announcement may be lost, or an older
    /// one be the last that has come.
    fn ask_for_next_match(&self, credentials: &Credentials) {
        let mut asked_at = lock(&self.asked_at);
        if asked_at.is_some_and(|time| time.elapsed() < QUERY_INTERVAL) {
            return;
        }
        *asked_at = Some(Instant::now());
        drop(asked_at);

        let query = LeagueQuery {
            league_id: credentials.league_id.clone(),
            query_type: json!(QueryType::GetNextMatch),
            query_params: None,
        };
        let context = MessageContext {
            conversation_id: new_conversation("next-match"),
            auth_token: credentials.token.clone(),
            ..MessageContext::default()
        };
        let manager = Peer::manager(&credentials.manager, QUERY_TIMEOUT);
        let answer = (self.session.program.client).call(&manager, &query, &context);
        if let Ok(LeagueQueryResponse {
            data: Some(data), ..
        }) = answer
            && let Some(next) = data.get("next_match")
            && let (Some(id), Some(token)) =
                (next["match_id"].as_str(), next["match_token"].as_str())
        {
            (self.invitations).update(|invitations| invitations.expect(id, token));
        }
    }

    /// Accepts an invitation.
    fn join(
        &self,
        credentials: &Credentials,
        request: &Request,
        invitation: GameInvitation,
    ) -> Result<GameJoinAck, ProtocolError> {
        if let Some(player_id) = &invitation.player_id {
            check_player_id(credentials, player_id)?;
        }

        // The manager invites to a rehearsal, which it does not announce, with our own token.
        let match_id = invitation.match_id.clone();
        let token = request.envelope.auth_token.as_deref();
        let is_demanded = credentials.proves_itself && !self.session.is_own_token(token);
        if is_demanded {
            let is_expected = |invitations: &Invitations| {
                invitations.is_announced(&match_id) && invitations.expects(&match_id, token)
            };
            let invitations = (self.invitations).wait_until(ANNOUNCEMENT_TIMEOUT, is_expected);
            let is_expected = is_expected(&invitations);
            drop(invitations);
            if !is_expected {
                self.ask_for_next_match(credentials);
            }
        }

        let mut invitations = self.invitations.lock();
        let is_new = invitations.join(&request.envelope, invitation, is_demanded)?;
        drop(invitations);
        if is_new {
            lock(&self.history).remove(&match_id); // a result is void when the match is played again
        }

        Ok(GameJoinAck {
            match_id,
            player_id: credentials.agent_id.clone(),
            arrival_timestamp: Timestamp::now(),
            accept: true,
            auth_token: request.envelope.auth_token.clone(),
        })
    }

    /// Answers a call for a move. The same call again gets the same move.
    fn choose(
        &self,
        credentials: &Credentials,
        request: &Request,
        call: ChooseMoveCall,
    ) -> Result<ChooseMoveResponse, HandlerError> {
        // Check the call.
        let mut game_types = self.options.game_types.iter();
        if !game_types.any(|game_type| *game_type == call.game_type) {
            return Err(HandlerError::not_found(AgentKind::Player, &call.game_type));
        }

        let joined = (self.invitations.lock()).find(&request.envelope, &call.match_id)?;
        check_player_id(credentials, &call.player_id)?;

        // The deadline is by the referee's clock, which may differ from ours.
        let sent = request.envelope.timestamp;
        let time_left = call.deadline.max(sent).abs_diff(sent);

        let turn = Turn {
            is_announced: self.invitations.lock().is_announced(&call.match_id),
            player_id: call.player_id,
            opponent_id: joined.opponent_id.clone(),
            match_id: call.match_id,
            conversation_id: joined.conversation_id.clone(),
            round_id: joined.round_id,
            game_type: call.game_type,
            move_number: call.move_number,
            position: call.position,
            legal_moves: call.legal_moves,
            standings: call.context.and_then(|context| context.your_standings),
            history: lock(&self.history).matches(),
            seed: self.session.program.seed,
            deadline: Instant::now() + time_left,
        };

        // Call `choose`, or take the move that it has chosen before.
        let subject = format!("{}: {}: your choose", turn.player_id, turn.match_id);
        let choose = || call_user(subject, || (self.options.choose)(&turn));
        let choice = joined.moves.get_or_choose(turn.move_number, choose)?;

        Ok(ChooseMoveResponse {
            match_id: turn.match_id,
            player_id: turn.player_id,
            move_number: turn.move_number,
            r#move: choice.into(),
            auth_token: request.envelope.auth_token.clone(),
        })
    }

    /// Adds the result of a match to the history, and prints it. If the manager proves itself, a
    /// match that it has not announced is not added.
    fn record_result(
        &self,
        credentials: &Credentials,
        request: &Request,
        over: GameOver,
    ) -> Result<(), ProtocolError> {
        let mut invitations = self.invitations.lock();
        invitations.join_ended(&credentials.agent_id, &request.envelope, &over);
        let joined = invitations.find(&request.envelope, &over.match_id)?;
        drop(invitations);

        let mut result = over.game_result;
        let reason = result.reason.or(over.reason);
        result.reason = reason.map(|reason| truncate(&reason, 3 * MAX_QUOTED_CHARS));
        let names = lock(&self.names);
        let mut text = display::result(&result, &credentials.agent_id, &joined.opponent_id, &names);
        drop(names);

        // Add it to the history.
        let is_announced = self.invitations.lock().is_announced(&over.match_id);
        let mut is_new = true;
        if is_announced || !credentials.proves_itself {
            is_new = lock(&self.history).add(PastMatch {
                match_id: over.match_id.clone(),
                conversation_id: joined.conversation_id.clone(),
                round_id: joined.round_id,
                game_type: over.game_type,
                opponent_id: joined.opponent_id.clone(),
                result,
            });
        } else {
            text += " (not announced by the manager, so not remembered)";
        }

        if is_new {
            let line = display::about_match(&over.match_id, &text);
            self.print(&line);
        }
        if self.session.state() == AgentState::Shutdown {
            self.save_history(); // nothing else saves it after the end of the league
        }
        Ok(())
    }

    fn print(&self, line: &str) {
        let terminal = self.session.program.terminal;
        self.options.hooks.print(line, terminal);
    }

    fn save_history(&self) {
        let saved = lock(&self.history).write();
        if let Err(error) = saved {
            let text = format!("the history is not saved: {error}");
            let program = &self.session.program;
            program.log().event(Level::Warning, "history", &*text);
            self.warn(&text);
        }
    }

    /// Prints a problem, with our id: several players may share a terminal. Others cause such
    /// problems, so the lines are limited.
    fn warn(&self, text: &str) {
        if !self.session.program.may_print(text) {
            return;
        }

        let credentials = self.session.credentials();
        let name = credentials.map_or("player".into(), |known| known.agent_id.clone());
        print_error(&format!("{name}: {text}"));
    }

    /// Returns the public state: no token, and a choice only when its match is over.
    fn state(&self) -> PlayerState {
        let credentials = self.session.credentials();
        let player_id = credentials.map(|known| known.agent_id.clone());
        let matches = lock(&self.history).matches();

        PlayerState {
            display_name: self.session.program.entry.display_name.clone(),
            state: self.session.state(),
            strategy: self.options.strategy.clone(),
            record: record(player_id.as_deref().unwrap_or_default(), &matches),
            matches,
            player_id,
        }
    }
}

/// Returns true if a referee sends such a message.
fn is_from_referee(message: &PlayerRequest) -> bool {
    matches!(
        message,
        PlayerRequest::GameInvitation(_)
            | PlayerRequest::ChooseMoveCall(_)
            | PlayerRequest::ChooseParityCall(_)
            | PlayerRequest::GameOver(_)
            | PlayerRequest::GameError(_)
    )
}

/// Checks that a message is for this player.
fn check_player_id(credentials: &Credentials, player_id: &str) -> Result<(), ProtocolError> {
    let own = &credentials.agent_id;
    if player_id == own {
        return Ok(());
    }

    let problem = format!("but this is {own}");
    Err(ProtocolError::unexpected_value(
        ErrorCode::TokenInvalid,
        "player_id",
        player_id,
        problem,
    ))
}

/// Returns CHOOSE_PARITY_CALL as the call that all other games use.
fn as_move_call(call: ChooseParityCall) -> ChooseMoveCall {
    ChooseMoveCall {
        match_id: call.match_id,
        player_id: call.player_id,
        game_type: even_odd::GAME.game_type.into(),
        deadline: call.deadline,
        move_number: 1,
        position: (even_odd::GAME.position)(&[]),
        legal_moves: vec!["even".into(), "odd".into()],
        context: call.context,
    }
}

/// Returns the response of all other games as CHOOSE_PARITY_RESPONSE.
fn as_parity_response(response: ChooseMoveResponse) -> ChooseParityResponse {
    ChooseParityResponse {
        match_id: response.match_id,
        player_id: response.player_id,
        parity_choice: response.r#move,
        auth_token: response.auth_token,
    }
}
