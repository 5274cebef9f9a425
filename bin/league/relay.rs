//! Relays: for players that can call the manager and cannot be called ("A player that only calls
//! out" in `protocol.md`).
//!
//! A player opens a relay, registers through it, and then polls for its requests. The referees and
//! the manager call the relay as they would call the player. Relays listen on this machine's
//! loopback interface alone; all share a port, which a league keeps when its manager is restarted,
//! and each has its own path. What becomes of a request is in `queue.rs`. The other end, for any
//! player, is in `commands/connect.rs`.

pub mod queue;

use crate::trace::COMMENT;
use league::manager::Manager;
use league::manager::league::Member;
use league::net::agent::{HandlerError, JsonRpcError, Tool};
use league::net::client::MAX_NOTICE;
use league::net::http::{self, HttpRequest, Response};
use league::net::log::{Content, text_field};
use league::net::rpc::RpcServer;
use league::net::sync::{lock, secret};
use league::program::args::Exit;
use league::program::storage::{self, Access};
use league::program::terminal::print_error;
use league::protocol::{
    AgentKind, ChooseMoveCall, ChooseParityCall, ErrorCode, GameInvitation, GameOver, JsonObject,
    MessageSpec, ProtocolError,
};
use league::values::constant_time_eq;
use queue::{Numbered, Poll, Queue, Requests};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Number of hex digits of a token.
const TOKEN_LENGTH: usize = 32;
/// The time from which on the delay of a request is logged.
const MIN_DELAY: Duration = Duration::from_millis(100);
/// The start of a relay's URL. Its port follows.
const HOST: &str = "http://127.0.0.1:";
/// The start of its path. Some random digits follow.
const PATH: &str = "/relay/";
/// Maximum time for which the port of the relays is waited for: a system keeps the port of a
/// connection for a minute.
const PORT_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval between two attempts to take it.
const PORT_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of relays at which no player is registered.
const MAX_UNUSED: usize = 64;

/// The arguments of `open_relay`.
#[derive(Debug, Serialize, Deserialize)]
struct OpenRelay {
    relay_token: Option<String>,
}

/// The answer of `open_relay`.
#[derive(Debug, Serialize, Deserialize)]
struct OpenedRelay {
    relay_token: String,
    contact_endpoint: String,
    /// The reason why some matches cannot be played through a relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// The arguments of `relay_call`.
#[derive(Debug, Serialize, Deserialize)]
struct RelayCall {
    relay_token: String,
    method: String,
    params: JsonObject,
}

/// The relays of a manager.
#[derive(Default)]
pub struct Relays {
    state: Mutex<State>,
    /// Set when the manager begins.
    rpc: OnceLock<RpcServer<Manager>>,
}

#[derive(Default)]
struct State {
    relays: Vec<Arc<Relay>>,
    /// The port of all relays, once the first was opened.
    port: Option<u16>,
    has_ended: bool,
}

/// A relay.
struct Relay {
    token: String,
    endpoint: String,
    /// The address from which it was opened.
    opened_from: IpAddr,
    queue: Queue,
}

impl Relays {
    /// Lets the relays pass requests on to the manager. In a league that goes on, they get their
    /// port back first: the members of the league are called there.
    pub fn begin(self: &Arc<Self>, manager: &Arc<Manager>) -> Result<(), Exit> {
        let earlier_port = storage::read_text(&port_file(manager)).unwrap_or_default();
        let start = format!("{HOST}{earlier_port}{PATH}");
        let is_called = |member: &Member| member.meta.contact_endpoint.starts_with(&start);
        if let Ok(port) = earlier_port.parse()
            && (manager.store).read(|league| league.members.values().any(is_called))
        {
            self.serve(take_port(port)?, &mut lock(&self.state))?;
        }

        let _ = self.rpc.set(RpcServer {
            agent: Arc::clone(manager),
            client: Arc::clone(&manager.program.client),
            own_origins: Vec::new(),
            print_error,
        });
        Ok(())
    }

    /// Closes all relays, and answers the polls: the manager ends.
    pub fn end(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        for relay in state.relays.drain(..) {
            relay.queue.end_polls();
        }
    }

    /// Returns true if an endpoint is a relay. Only its player and programs of this machine know
    /// its path, so no other player can register with it.
    pub fn has(&self, endpoint: &str) -> bool {
        let is_called = |relay: &Relay| relay.endpoint == endpoint;
        lock(&self.state).find(is_called).is_some()
    }

    /// Returns the tools for the players. Only the first is logged: what a player sends through a
    /// relay is logged by itself.
    pub fn tools<'a>(self: &'a Arc<Self>) -> [Tool<'a>; 3] {
        let open = Tool::new(
            "open_relay",
            "For programs: opens a relay for a player that cannot be called, or that of its \
                relay_token again.",
            |arguments: OpenRelay, peer| self.open(arguments.relay_token, peer),
        );
        let call = Tool::new(
            "relay_call",
            "For programs: passes register_player or league_query on, for the player of a relay.",
            |arguments, peer| self.call(arguments, peer),
        );
        let next = Tool::new(
            "relay_next",
            "For programs: takes the answers of the player of a relay, and waits up to wait_sec \
                (25 at most) for its next request.",
            |poll, _| self.next(poll),
        );
        [open, call, next].map(|tool| Tool {
            read_only: false,
            is_logged: tool.name == "open_relay",
            ..tool
        })
    }

    /// Opens a relay, or returns the one with that token.
    fn open(
        self: &Arc<Self>,
        token: Option<String>,
        peer: IpAddr,
    ) -> Result<OpenedRelay, HandlerError> {
        let manager = &self.rpc.get().ok_or_else(away)?.agent;
        let token = token.unwrap_or_else(|| secret(TOKEN_LENGTH as u32));
        if token.len() != TOKEN_LENGTH || token.contains(|c: char| !c.is_ascii_hexdigit()) {
            let legal = format!("must be {TOKEN_LENGTH} random hex digits");
            return Err(token_error(ErrorCode::MissingField, &legal));
        }

        let mut state = lock(&self.state);
        if state.has_ended {
            return Err(away());
        }
        let relay = match state.find_by_token(&token) {
            Some(relay) => {
                relay.queue.end_polls();
                relay
            }
            None => {
                state.make_room(manager, peer);
                let port = self.port(manager, &mut state)?;
                let relay = Arc::new(Relay {
                    token,
                    endpoint: format!("{HOST}{port}{PATH}{}", secret(16)),
                    opened_from: peer,
                    queue: Queue::new(),
                });
                state.relays.push(Arc::clone(&relay));
                relay
            }
        };
        Ok(OpenedRelay {
            relay_token: relay.token.clone(),
            contact_endpoint: relay.endpoint.clone(),
            warning: referee_warning(manager),
        })
    }

    /// Returns the port of the relays. The first relay takes one, which is stored.
    fn port(self: &Arc<Self>, manager: &Manager, state: &mut State) -> Result<u16, HandlerError> {
        if let Some(port) = state.port {
            return Ok(port);
        }

        let listener = http::listen("127.0.0.1", 0).map_err(HandlerError::Internal)?;
        let port = listener.local_addr()?.port().to_string();
        storage::replace(&port_file(manager), Access::AllUsers, &port)?;
        Ok(self.serve(listener, state)?)
    }

    /// Starts to answer at the port of a listener, and returns it.
    fn serve(self: &Arc<Self>, listener: TcpListener, state: &mut State) -> io::Result<u16> {
        let port = listener.local_addr()?.port();
        let relays = Arc::clone(self);
        let handler = move |http: &HttpRequest| relays.pass_to_player(http);
        http::serve(listener, MAX_NOTICE, Box::new(handler))?;
        state.port = Some(port);
        Ok(port)
    }

    /// Passes a request on to the player of the relay at its path, for as long as the caller waits.
    fn pass_to_player(&self, http: &HttpRequest) -> Response {
        let id = http.path.strip_prefix(PATH);
        let is_called = |relay: &Relay| relay.endpoint.rsplit('/').next() == id;
        let Some(relay) = lock(&self.state).find(is_called) else {
            return queue::no_player(); // after a restart, it has not opened its relay again yet
        };

        let timeouts = &self.rpc.wait().agent.program.config.system.timeouts;
        relay.queue.request(&http.body, |message_type| {
            let timeout = match message_type {
                GameInvitation::NAME => timeouts.game_join_ack_timeout_sec,
                ChooseParityCall::NAME | ChooseMoveCall::NAME => timeouts.move_timeout_sec,
                GameOver::NAME => timeouts.game_over_timeout_sec,
                _ => timeouts.generic_response_timeout_sec,
            };
            timeout.0
        })
    }

    /// Passes a request on to the manager, as if the player had called it from its own address.
    fn call(&self, mut call: RelayCall, peer: IpAddr) -> Result<JsonObject, HandlerError> {
        let relay = self.find(&call.relay_token)?;
        let method = MessageSpec::by_method(&call.method).map(|spec| spec.method);
        if !matches!(method, Some("register_player" | "league_query")) {
            let legal = "relay_call passes on register_player and league_query only";
            return Err(HandlerError::json_rpc(-32601, legal));
        }

        if let Some(meta) = call.params.get_mut("player_meta")
            && meta.is_object()
        {
            meta["contact_endpoint"] = relay.endpoint.clone().into();
        }
        let rpc = self.rpc.get().ok_or_else(away)?;
        let params = call.params.into();
        let answer = rpc.run_method(&call.method, params, peer, Vec::new())?;
        Ok(answer.as_object().cloned().unwrap_or_default())
    }

    /// Takes the answers of the player, and waits for its next request.
    fn next(&self, poll: Poll) -> Result<Requests, HandlerError> {
        let relay = self.find(&poll.relay_token)?;
        let requests = relay.queue.poll(poll);
        for Numbered { body, waited, .. } in &requests.requests {
            if *waited >= MIN_DELAY {
                self.log_delay(&relay, &body["params"], *waited);
            }
        }
        Ok(requests)
    }

    /// Logs how long a request has waited for a poll, for the trace of its match.
    fn log_delay(&self, relay: &Relay, message: &Value, waited: Duration) {
        let manager = &self.rpc.wait().agent;
        let player = manager.store.read(|league| {
            let mut members = league.members.values();
            let player = members.find(|member| member.meta.contact_endpoint == relay.endpoint);
            player.map(|player| player.id.clone())
        });
        let text = format!(
            "passed {} on to {} after {} ms",
            text_field(message, "message_type").unwrap_or_default(),
            player.unwrap_or_default(),
            waited.as_millis()
        );
        (manager.program.log()).message(COMMENT, message, Vec::new(), Content::Text(&text));
    }

    fn find(&self, token: &str) -> Result<Arc<Relay>, HandlerError> {
        let problem = "there is no relay with this token; open_relay opens one";
        let relay = lock(&self.state).find_by_token(token);
        relay.ok_or_else(|| token_error(ErrorCode::TokenInvalid, problem))
    }
}

impl State {
    fn find(&self, is_wanted: impl Fn(&Relay) -> bool) -> Option<Arc<Relay>> {
        let mut relays = self.relays.iter();
        relays.find(|relay| is_wanted(relay)).cloned()
    }

    fn find_by_token(&self, token: &str) -> Option<Arc<Relay>> {
        self.find(|relay| constant_time_eq(&relay.token, token))
    }

    /// Makes room for one more relay: if too many have no registered player, the oldest of these is
    /// closed, of the caller's address or of all. So a program that only opens relays takes no
    /// player's place.
    fn make_room(&mut self, manager: &Manager, peer: IpAddr) {
        let mut unused = self.relays.clone();
        manager.store.read(|league| {
            for member in league.members.values() {
                unused.retain(|relay| relay.endpoint != member.meta.contact_endpoint);
            }
        });
        let is_of_peer = |relay: &&Arc<Relay>| relay.opened_from == peer && !peer.is_loopback();
        let mut of_peer = unused.iter().filter(is_of_peer);
        let oldest = if of_peer.clone().count() >= manager.max_per_address as usize {
            of_peer.next()
        } else {
            unused.first().filter(|_| unused.len() >= MAX_UNUSED)
        };
        if let Some(oldest) = oldest {
            self.relays.retain(|relay| !Arc::ptr_eq(relay, oldest));
            oldest.queue.end_polls(); // its polls are answered
        }
    }
}

/// Returns the file with the port of a league's relays.
fn port_file(manager: &Manager) -> PathBuf {
    let program = &manager.program;
    storage::league_folder(&program.data, program.league_id()).join("relay.port")
}

/// Takes the port that the relays had before a restart. Another program that has taken it would get
/// the requests to players, with the tokens in them, so the league does not go on without it.
fn take_port(port: u16) -> Result<TcpListener, Exit> {
    let begun = Instant::now();
    let mut is_said = false;
    loop {
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return Ok(listener);
        }
        let problem = format!(
            "port {port} is in use, at which players are called through relays; end the program \
                that has it"
        );
        if begun.elapsed() > PORT_TIMEOUT {
            return Err(Exit::failure(problem));
        }
        if !is_said {
            print_error(&problem);
            is_said = true;
        }
        thread::sleep(PORT_INTERVAL);
    }
}

/// Refuses a call while the manager begins or ends: the caller calls again.
fn away() -> HandlerError {
    HandlerError::JsonRpc(JsonRpcError {
        status: "503 Service Unavailable",
        ..JsonRpcError::new(-32603, "the league manager begins or ends")
    })
}

/// Refuses a token.
fn token_error(code: ErrorCode, problem: &str) -> HandlerError {
    ProtocolError::field(code, "relay_token", problem).into()
}

/// Returns a warning if a referee is perhaps on another machine, from which it cannot call a relay.
fn referee_warning(manager: &Manager) -> Option<String> {
    manager.store.read(|league| {
        let mut referees = league.members(AgentKind::Referee).into_iter();
        let id = &referees.find(|referee| !referee.peer.is_loopback())?.id;
        Some(format!(
            "{id} cannot call a relay if it is on another machine than the manager"
        ))
    })
}
