//! Relays: for players that can call the manager and cannot be called ("A player that only calls
//! out" in `protocol.md`).
//!
//! A player opens a relay, registers through it, and then asks again and again for its requests.
//! The referees and the manager call the relay as they would call the player. It answers on this
//! machine's loopback interface alone, all relays on one port, each at a path of its own. What
//! becomes of a request is in `queue.rs`.

mod queue;

use league::manager::Manager;
use league::net::agent::{HandlerError, Tool};
use league::net::client::MAX_NOTICE;
use league::net::http::{self, HttpRequest, Response};
use league::net::rpc::RpcServer;
use league::net::sync::{lock, secret};
use league::program::config::Config;
use league::program::terminal::print_error;
use league::protocol::{
    AgentKind, ChooseMoveCall, ChooseParityCall, ErrorCode, GameInvitation, JsonObject,
    ProtocolError,
};
use league::values::{Endpoint, constant_time_eq};
use queue::{Poll, Queue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Number of hex digits of a token.
const TOKEN_LENGTH: usize = 32;
/// The time without a poll after which a relay is closed that no player has registered with.
const MAX_UNUSED: Duration = Duration::from_secs(120);
/// The methods that a relay passes on to the manager.
const METHODS: [&str; 2] = ["register_player", "league_query"];

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
    /// Answers what the players call; once the manager has begun.
    rpc: OnceLock<RpcServer<Manager>>,
}

#[derive(Default)]
struct State {
    relays: Vec<Arc<Relay>>,
    /// The port on which all relays answer, once there is one.
    port: Option<u16>,
    /// True if the manager ends.
    has_ended: bool,
}

/// A relay.
struct Relay {
    token: String,
    endpoint: String,
    /// The address of the player.
    player: Mutex<IpAddr>,
    /// True if the player has registered with it.
    is_used: Mutex<bool>,
    queue: Queue,
}

impl Relays {
    /// Prepares the relays of a manager.
    pub fn begin(&self, manager: &Arc<Manager>) {
        let rpc = RpcServer {
            agent: Arc::clone(manager),
            client: Arc::clone(&manager.program.client),
            own_origins: Vec::new(),
            print_error,
        };
        let _ = self.rpc.set(rpc);
    }

    /// Closes all relays: the manager ends.
    pub fn end(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        for relay in state.relays.drain(..) {
            relay.queue.release();
        }
    }

    /// Returns true if an endpoint is a relay's, whose player has that address.
    pub fn has(&self, endpoint: &str, player: IpAddr) -> bool {
        let state = lock(&self.state);
        let mut relays = state.relays.iter();
        relays.any(|relay| relay.endpoint == endpoint && *lock(&relay.player) == player)
    }

    /// Returns true if an endpoint is a relay's.
    pub fn is_relay(&self, endpoint: &str) -> bool {
        let state = lock(&self.state);
        let mut relays = state.relays.iter();
        relays.any(|relay| relay.endpoint == endpoint)
    }

    /// Returns the tools for the players.
    pub fn tools<'a>(
        self: &'a Arc<Self>,
        manager: &'a Manager,
        trusts_this_machine: bool,
    ) -> [Tool<'a>; 3] {
        let open = Tool::new(
            "open_relay",
            "For programs: opens a relay for a player that cannot be called; the same one again \
                for its relay_token.",
            move |arguments: OpenRelay, peer: IpAddr| {
                let is_trusted = trusts_this_machine && peer.is_loopback();
                self.open(manager, arguments.relay_token, peer, is_trusted)
            },
        );
        let call = Tool::new(
            "relay_call",
            "For programs: passes register_player or league_query on to the manager, for the \
                player behind a relay.",
            |arguments, peer| self.call(arguments, peer),
        );
        let next = Tool::new(
            "relay_next",
            "For programs: takes the answers of the player behind a relay, and waits up to \
                wait_sec (at most 25) for its next request.",
            |poll: Poll, _| Ok(self.find(&poll.relay_token)?.queue.poll(poll)),
        );
        [open, call, next].map(|tool| Tool {
            read_only: false,
            is_logged: tool.name == "open_relay", // what is passed on is logged by itself
            ..tool
        })
    }

    /// Opens a relay, or returns the one with that token.
    fn open(
        self: &Arc<Self>,
        manager: &Manager,
        token: Option<String>,
        peer: IpAddr,
        is_trusted: bool,
    ) -> Result<OpenedRelay, HandlerError> {
        let token = token.unwrap_or_else(|| secret(TOKEN_LENGTH as u32));
        let is_digit = |byte: u8| byte.is_ascii_hexdigit();
        if token.len() != TOKEN_LENGTH || !token.bytes().all(is_digit) {
            let legal = format!("must be {TOKEN_LENGTH} random hex digits, or absent");
            return Err(ProtocolError::field(ErrorCode::MissingField, "relay_token", legal).into());
        }

        let mut state = lock(&self.state);
        if let Some(relay) = state.find(&token) {
            relay.queue.restart();
            *lock(&relay.player) = peer;
            return Ok(relay.opened(manager));
        }

        state.close_unused(manager);
        state.check_capacity(manager, peer, is_trusted)?;
        let port = self.port(&mut state, &manager.program.config)?;
        let relay = Relay {
            token,
            endpoint: format!("http://127.0.0.1:{port}/{}", secret(8)),
            player: Mutex::new(peer),
            is_used: Mutex::default(),
            queue: Queue::new(),
        };
        let opened = relay.opened(manager);
        state.relays.push(Arc::new(relay));
        Ok(opened)
    }

    /// Returns the port of the relays. The first one starts to answer there.
    fn port(self: &Arc<Self>, state: &mut State, config: &Config) -> Result<u16, HandlerError> {
        if let Some(port) = state.port {
            return Ok(port);
        }

        let listener = http::listen("127.0.0.1", 0).map_err(HandlerError::Internal)?;
        let port = listener.local_addr()?.port();
        let (relays, config) = (Arc::clone(self), config.clone());
        let handler = move |http: &HttpRequest| relays.pass_to_player(http, &config);
        http::serve(listener, MAX_NOTICE, Box::new(handler))?;
        state.port = Some(port);
        Ok(port)
    }

    /// Passes a request on to the player behind the relay at its path.
    fn pass_to_player(&self, http: &HttpRequest, config: &Config) -> Response {
        let relays = lock(&self.state).relays.clone();
        let id = http.path.strip_prefix('/');
        let mut named = relays.iter();
        let Some(relay) = named.find(|relay| relay.endpoint.rsplit('/').next() == id) else {
            return Response::text("404 Not Found", "there is no such relay");
        };
        let Ok(body) = serde_json::from_slice::<JsonObject>(&http.body) else {
            return Response::text("400 Bad Request", "the body must be a JSON object");
        };

        let timeouts = &config.system.timeouts;
        let timeout = match queue::message_type(&body) {
            GameInvitation::NAME => timeouts.game_join_ack_timeout_sec,
            ChooseParityCall::NAME | ChooseMoveCall::NAME => timeouts.move_timeout_sec,
            _ => timeouts.generic_response_timeout_sec,
        };
        relay.queue.request(body, timeout.0)
    }

    /// Passes a request of a player on to the manager, which answers as if the player had called
    /// from its own address.
    fn call(&self, call: RelayCall, peer: IpAddr) -> Result<JsonObject, HandlerError> {
        let relay = self.find(&call.relay_token)?;
        *lock(&relay.player) = peer;
        let Some(rpc) = self.rpc.get() else {
            let problem = "the manager has not begun yet; try again";
            return Err(HandlerError::Internal(problem.into()));
        };
        let method = &*call.method;
        if !METHODS.contains(&method) {
            let legal = METHODS.join(" and ");
            let problem = format!("relay_call passes on {legal} only");
            return Err(HandlerError::json_rpc(-32601, problem));
        }

        let mut params = call.params;
        if let Some(Value::Object(meta)) = params.get_mut("player_meta") {
            meta.insert("contact_endpoint".into(), relay.endpoint.clone().into());
        }
        let answer = rpc.run_method(method, params.into(), peer, Vec::new())?;
        if answer["status"] == "ACCEPTED" {
            *lock(&relay.is_used) = true;
        }
        Ok(answer.as_object().cloned().unwrap_or_default())
    }

    fn find(&self, token: &str) -> Result<Arc<Relay>, HandlerError> {
        let problem = "there is no such relay now; open_relay opens it again";
        let code = ErrorCode::TokenInvalid;
        let missing = || ProtocolError::field(code, "relay_token", problem);
        Ok(lock(&self.state).find(token).ok_or_else(missing)?)
    }
}

impl Relay {
    fn opened(&self, manager: &Manager) -> OpenedRelay {
        OpenedRelay {
            relay_token: self.token.clone(),
            contact_endpoint: self.endpoint.clone(),
            warning: far_referee(manager),
        }
    }
}

impl State {
    fn find(&self, token: &str) -> Option<Arc<Relay>> {
        let mut relays = self.relays.iter();
        let found = relays.find(|relay| constant_time_eq(&relay.token, token));
        found.cloned()
    }

    /// Closes the relays that no player needs: at which no member is registered, because it has
    /// another one now, or never was.
    fn close_unused(&mut self, manager: &Manager) {
        let is_needed = |relay: &Relay| {
            let is_of_member = manager.store.read(|league| {
                let mut members = league.members.values();
                members.any(|member| member.meta.contact_endpoint == relay.endpoint)
            });
            is_of_member || !*lock(&relay.is_used) && relay.queue.silence() < MAX_UNUSED
        };
        self.relays.retain(|relay| is_needed(relay));
    }

    /// Checks that there is room for one more.
    fn check_capacity(
        &self,
        manager: &Manager,
        peer: IpAddr,
        is_trusted: bool,
    ) -> Result<(), HandlerError> {
        let players = manager
            .store
            .read(|league| league.config.league.participants.max_players);
        let from_peer = (self.relays.iter())
            .filter(|relay| *lock(&relay.player) == peer)
            .count();
        let max_per_address = manager.max_per_address;
        let problem = if self.has_ended {
            "the manager ends".into()
        } else if self.relays.len() >= players as usize {
            format!("Maximum players reached: {players} relays are open")
        } else if !is_trusted && from_peer >= max_per_address as usize {
            let hint = "the operator raises this with --members-per-address";
            format!("Maximum players reached: {max_per_address} relays from {peer}; {hint}")
        } else {
            return Ok(());
        };
        Err(HandlerError::json_rpc(-32000, problem))
    }
}

/// Returns a warning if a referee is on another machine, and cannot call a relay.
fn far_referee(manager: &Manager) -> Option<String> {
    manager.store.read(|league| {
        let referees = league.members(AgentKind::Referee);
        let far = (referees.iter()).find(|referee| !is_here(&referee.meta.contact_endpoint))?;
        let id = &far.id;
        Some(format!(
            "{id} is on another machine, from which it cannot call a relay"
        ))
    })
}

/// Returns true if the host of an endpoint is an address of this machine.
fn is_here(endpoint: &str) -> bool {
    let address = Endpoint::parse(endpoint)
        .ok()
        .and_then(|parsed| parsed.address());
    address.is_some_and(|address| UdpSocket::bind((address, 0)).is_ok())
}
