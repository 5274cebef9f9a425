//! Relays: for players that can call the manager and cannot be called ("A player that only calls
//! out" in `protocol.md`).
//!
//! A player opens a relay, registers through it, and then polls for its requests. The referees and
//! the manager call the relay as they would call the player. Relays listen on this machine's
//! loopback interface alone; all share a port, which a league keeps when its manager is restarted,
//! and each has its own path. What becomes of a request is in `queue.rs`. The other end, for any
//! player, is `Relay` in `bin/league_player.py`.

use crate::classroom::queue::{self, Numbered, Poll, Queue, Requests};
use crate::show::trace::COMMENT;
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

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::{IpAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Number of hex digits of a token.
const TOKEN_LENGTH: usize = 32;
/// Minimum delay of a request that is logged.
const MIN_DELAY: Duration = Duration::from_millis(100);
/// The start of a relay's URL, before its port.
const URL_START: &str = "http://127.0.0.1:";
/// The start of a relay's path, before its random digits.
const PATH: &str = "/relay/";
/// Maximum time to wait for the port of the relays: a connection may have used it, which keeps it
/// for a minute after its end.
const PORT_TIMEOUT: Duration = Duration::from_secs(90);
/// Interval between two attempts to take the port.
const PORT_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of relays at which no player is registered.
const MAX_UNUSED: usize = 64;

/// The arguments of `open_relay`.
#[derive(Debug, Deserialize)]
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
#[derive(Debug, Deserialize)]
struct RelayCall {
    relay_token: String,
    method: String,
    params: JsonObject,
}

/// The relays of a manager.
#[derive(Default)]
pub struct Relays {
    state: Mutex<State>,
    /// Set when the manager begins. Earlier calls wait for it.
    rpc: OnceLock<RpcServer<Manager>>,
}

#[derive(Default)]
struct State {
    relays: Vec<Arc<Relay>>,
    /// The port of all relays, once the first was opened.
    port: Option<u16>,
    /// True while the manager waits for the port, and when it has ended.
    is_away: bool,
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
        let start = format!("{URL_START}{earlier_port}{PATH}");
        let is_called = |member: &Member| member.meta.contact_endpoint.starts_with(&start);
        if let Ok(port) = earlier_port.parse()
            && (manager.store).read(|league| league.members.values().any(is_called))
        {
            lock(&self.state).is_away = true;
            let listener = take_port(port)?;
            let mut state = lock(&self.state);
            self.serve(listener, &mut state)?;
            state.is_away = false;
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
        state.is_away = true;
        for relay in state.relays.drain(..) {
            relay.queue.end_polls();
        }
    }

    /// Returns true if an endpoint is a relay. Its path is random, so no player can guess that of
    /// another.
    pub fn has(&self, endpoint: &str) -> bool {
        lock(&self.state).find_by_endpoint(endpoint).is_some()
    }

    /// Returns the tools for the players. Only the first is logged: what is passed on is logged as
    /// the message that it is, and there are too many polls.
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
        if lock(&self.state).is_away {
            return Err(away());
        }

        let manager = &self.rpc.wait().agent;
        let token = token.unwrap_or_else(|| secret(TOKEN_LENGTH as u32));
        if token.len() != TOKEN_LENGTH || token.contains(|c: char| !c.is_ascii_hexdigit()) {
            let legal = format!("must be {TOKEN_LENGTH} random hex digits");
            return Err(token_error(ErrorCode::MissingField, &legal));
        }

        let mut state = lock(&self.state);
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
                    endpoint: format!("{URL_START}{port}{PATH}{}", secret(16)),
                    opened_from: peer,
                    queue: Queue::new(),
                });
                state.relays.push(Arc::clone(&relay));
                relay
            }
        };
        drop(state); // the store may be writing
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
        let handler = move |http: &HttpRequest| {
            let endpoint = format!("{URL_START}{port}{}", http.path);
            relays.pass_to_player(&endpoint, &http.body)
        };
        http::serve(listener, MAX_NOTICE, Box::new(handler))?;
        state.port = Some(port);
        Ok(port)
    }

    /// Passes a request on to the player of the relay at an endpoint.
    fn pass_to_player(&self, endpoint: &str, body: &[u8]) -> Response {
        let Some(relay) = lock(&self.state).find_by_endpoint(endpoint) else {
            return queue::no_player(); // after a restart, it has not opened its relay again yet
        };

        let timeouts = &self.rpc.wait().agent.program.config.system.timeouts;
        relay.queue.pass_on(body, |message_type| {
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
        let relay = self.find_by_token(&call.relay_token)?;
        let method = MessageSpec::by_method(&call.method).map(|spec| spec.method);
        if !matches!(method, Some("register_player" | "league_query")) {
            let legal = "relay_call passes on register_player and league_query only";
            return Err(HandlerError::json_rpc(-32601, legal));
        }

        if let Some(Value::Object(meta)) = call.params.get_mut("player_meta") {
            meta.insert("contact_endpoint".into(), json!(relay.endpoint));
        }
        let (rpc, params) = (self.rpc.wait(), call.params.into());
        let answer = rpc.run(&call.method, params, peer, false)?;
        self.find_by_token(&call.relay_token)?; // else the endpoint was gone before the decision
        Ok(answer.as_object().cloned().unwrap_or_default())
    }

    /// Takes the answers of the player, and waits for its next request.
    fn next(&self, poll: Poll) -> Result<Requests, HandlerError> {
        let relay = self.find_by_token(&poll.relay_token)?;
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
        let is_player = |member: &&Member| member.meta.contact_endpoint == relay.endpoint;
        let id = manager.store.read(|league| {
            let player = league.members.values().find(is_player);
            player.map(|player| player.id.clone())
        });
        let Some(id) = id else { return };
        let text = format!(
            "passed {} on to {id} after {} ms",
            text_field(message, "message_type").unwrap_or_default(),
            waited.as_millis()
        );
        (manager.program.log()).message(COMMENT, message, Vec::new(), Content::Text(&text));
    }

    fn find_by_token(&self, token: &str) -> Result<Arc<Relay>, HandlerError> {
        let problem = "there is no relay with this token; open_relay opens one";
        let relay = lock(&self.state).find_by_token(token);
        relay.ok_or_else(|| token_error(ErrorCode::TokenInvalid, problem))
    }
}

impl State {
    fn find_by_endpoint(&self, endpoint: &str) -> Option<Arc<Relay>> {
        let mut relays = self.relays.iter();
        relays.find(|relay| relay.endpoint == endpoint).cloned()
    }

    fn find_by_token(&self, token: &str) -> Option<Arc<Relay>> {
        let mut relays = self.relays.iter();
        relays
            .find(|relay| constant_time_eq(&relay.token, token))
            .cloned()
    }

    /// Makes room for one more relay: if too many have no registered player, the oldest of these is
    /// closed, of the caller's address or of all. So a program that only opens relays closes that
    /// of no registered player.
    fn make_room(&mut self, manager: &Manager, peer: IpAddr) {
        let mut unused = self.relays.clone();
        manager.store.read(|league| {
            for member in league.members.values() {
                unused.retain(|relay| relay.endpoint != member.meta.contact_endpoint);
            }
        });
        let is_of_peer = |relay: &&Arc<Relay>| relay.opened_from == peer && !peer.is_loopback();
        let of_peer: Vec<&Arc<Relay>> = unused.iter().filter(is_of_peer).collect();
        let oldest = if of_peer.len() >= manager.max_per_address as usize {
            of_peer[0]
        } else if unused.len() >= MAX_UNUSED {
            &unused[0]
        } else {
            return;
        };
        self.relays.retain(|relay| !Arc::ptr_eq(relay, oldest));
        oldest.queue.end_polls();
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
    let mut is_printed = false;
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
        if !is_printed {
            print_error(&problem);
            is_printed = true;
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
