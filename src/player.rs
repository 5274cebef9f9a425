//! A player: it joins every match to which it is genuinely invited, calls `choose` for each move,
//! and remembers the results. A student only writes `choose`, and calls `run(choose)`, or
//! `play(choose)` for games other than Even/Odd.
//!
//! A message of a referee is accepted if it has the token and the conversation of its invitation
//! (`player/invitations.rs`), a message of the manager if it has the player's own token
//! (`program/session.rs`). What follows from a message is decided in `player/state.rs`; here it is
//! done. While `choose` runs, no lock is held but that of the match's moves. A panic of `choose` is
//! printed as one line, and answered like any panic of a handler. Read next: `player/turn.rs`.

pub mod display;
pub mod history;
pub mod invitations;
pub mod state;
pub mod turn;

pub use crate::protocol::Parity;
pub use turn::{PastMatch, Turn, record};

use crate::games::{self, even_odd};
use crate::net::agent::{Agent, HandlerError, NoArguments, Request, Tool, Toolbox};
use crate::net::http::Response;
use crate::net::limits::call_user;
use crate::net::sync::{Shared, spawn_needed};
use crate::program::args::{Args, CLIENT, COMMON, Exit, SERVER, STAY, Usage};
use crate::program::credentials::Credentials;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::describe_refusal;
use crate::protocol::{
    AgentKind, AgentState, Envelope, ErrorCode, PlayerRequest, ProtocolError, QueryType, Record,
    Reply,
};
use history::History;
use invitations::JoinedMatch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use state::{Pause, PlayerState, Sender, Step};
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
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

    /// Is told how a match or the league has ended.
    fn note(&self, _line: &str) {}

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
    state: Shared<PlayerState>,
}

impl Player {
    /// Returns a player that saves its history at intervals.
    fn new(session: Arc<Session>, options: Options) -> Arc<Player> {
        let checks_tokens = session.program.config.system.security.enable_auth_tokens;
        let state = PlayerState::new(checks_tokens);
        let player = Arc::new(Player {
            session,
            options,
            state: Shared::new(state),
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
        let id = &credentials.agent_id;
        let folder = self.session.program.data.join("players").join(id);
        let mut state = self.state.lock();
        state.table.clear();
        if is_new {
            state.invitations.clear();
        }
        if is_new || state.history.matches().is_empty() {
            state.history = History::open(&folder, id, &credentials.league_id, is_new)?;
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
        mut message: PlayerRequest,
    ) -> Result<Option<Reply>, HandlerError> {
        let credentials = self.session.wait_until_registered()?;
        let token = request.envelope.auth_token.as_deref();
        if !is_from_referee(&message) {
            self.session.check_manager(token)?;
        }

        if let PlayerRequest::RoundCompleted(round) = &message {
            self.session.record_round(round);
        }

        let mut from = Sender {
            has_own_token: self.session.is_own_token(token),
            envelope: request.envelope.clone(),
            credentials,
            received_at: Instant::now(),
            has_asked: false,
        };
        loop {
            let next = self.state.wait_for(|state| {
                match state.handle(&mut from, &mut message, Instant::now()) {
                    Err(Pause::Wait(time)) => Err(time),
                    next => Ok(next),
                }
            });
            match next {
                Ok(Step::Choose(turn, joined)) => {
                    return self.choose(turn, &joined, from, &message).map(Some);
                }
                Ok(step) => {
                    self.state.update(|_| ()); // an invitation may wait for the announcement
                    return Ok(self.finish(step));
                }
                Err(Pause::Ask(query_type)) => self.ask(&from.credentials, query_type),
                Err(Pause::Refuse(error)) => return Err(error),
                Err(Pause::Wait(_)) => {} // it is over
            }
        }
    }

    fn on_ping(&self, token: Option<&str>) {
        self.session.record_ping(token);
    }

    fn on_refused(&self, packet: &Value, peer: IpAddr, refusal: &ProtocolError) {
        let match_id = packet["match_id"].as_str().unwrap_or_default();
        let token = packet["auth_token"].as_str();
        // The referee of an announced match invites us again after this refusal.
        if refusal.code == ErrorCode::MatchMismatch
            && self
                .state
                .lock()
                .invitations
                .awaits_invitation(match_id, token)
        {
            return;
        }
        self.session.warn(&describe_refusal(packet, peer, refusal));
    }

    fn page(&self, path: &str, _query: &str, _peer: IpAddr) -> Option<Response> {
        self.options.hooks.page(path)
    }

    fn is_known(&self, envelope: &Envelope) -> bool {
        let token = envelope.auth_token.as_deref();
        self.session.is_own_token(token) || self.state.lock().invitations.is_known_token(token)
    }

    fn health(&self) -> Value {
        self.session.health()
    }

    fn toolbox(&self) -> Toolbox<'_> {
        let mut toolbox = self.options.hooks.toolbox(&self.session);
        toolbox.tools.push(Tool::new(
            "get_player_state",
            "The player's id, state, strategy, record and all its results so far.",
            |_: NoArguments, _| Ok(self.report()),
        ));
        toolbox
    }
}

/// The result of `get_player_state`.
#[derive(Serialize, Deserialize)]
struct PlayerReport {
    display_name: String,
    state: AgentState,
    strategy: String,
    record: Record,
    matches: Arc<Vec<PastMatch>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    player_id: Option<String>,
}

impl Player {
    /// Prints what a decision says, and returns the reply.
    fn finish(&self, step: Step) -> Option<Reply> {
        match step {
            Step::Reply(reply) => return reply,
            Step::Print(line) => self.print(&line),
            Step::Warn(text) => self.session.warn(&text),
            Step::End(text) => {
                if self.session.end_league() {
                    self.print(&text);
                    self.options.hooks.over();
                }
            }
            Step::Choose(..) => {} // `handle` calls `choose`
        }

        if self.session.state() == AgentState::Shutdown {
            self.save_history(); // no later write comes after the end of the league
        }
        None
    }

    /// Asks the manager a question. Without an answer nothing is learnt.
    fn ask(&self, credentials: &Credentials, query_type: QueryType) {
        if let Some(data) = self.session.query(credentials, query_type) {
            let lines = self
                .state
                .update(|state| state.learn(&credentials.agent_id, &data));
            lines.iter().for_each(|line| self.print(line));
        }
    }

    /// Calls `choose`, or takes the move that it has chosen before, and returns the response.
    fn choose(
        &self,
        mut turn: Turn,
        joined: &JoinedMatch,
        from: Sender,
        call: &PlayerRequest,
    ) -> Result<Reply, HandlerError> {
        if !self.options.game_types.contains(&&*turn.game_type) {
            return Err(HandlerError::not_found(AgentKind::Player, &turn.game_type));
        }
        turn.seed = self.session.program.seed;

        let subject = format!("{}: {}: your choose", turn.player_id, turn.match_id);
        let choose = || call_user(subject, || (self.options.choose)(&turn));
        let choice = joined.moves.get_or_choose(turn.move_number, choose);
        Ok(from.response(call, turn, choice))
    }

    fn print(&self, line: &str) {
        self.session.program.terminal.print_line(line);
        self.options.hooks.note(line);
    }

    fn save_history(&self) {
        let saved = self.state.lock().history.write();
        if let Err(error) = saved {
            self.session
                .warn(&format!("the history is not saved: {error}"));
        }
    }

    /// Returns the public state: no token, and a choice only when its match is over.
    fn report(&self) -> PlayerReport {
        let credentials = self.session.credentials();
        let player_id = credentials.map(|known| known.agent_id.clone());
        let matches = self.state.lock().history.matches();

        PlayerReport {
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
