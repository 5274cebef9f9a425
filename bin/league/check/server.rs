//! The servers of an examination: we listen as the league manager, and as the two players of a
//! referee's matches.
//!
//! A player that only calls out opens a relay here, which is that of the tool (`relay/queue.rs`)
//! without its limits. Every call is kept. Only a call that asks for a registration is taken as the
//! registration, so an agent may send others before. Every agent is registered. Some agents
//! register by a tool of the Model Context Protocol, so this server answers that protocol as a
//! manager does.

use super::examination::{Examination, REGISTRATION};
use super::exchange::Exchange;
use super::json_rpc_call;
use super::messages::fill;
use crate::agents::until;
use crate::relay::queue::Queue;
use league::net::client::MAX_NOTICE;
use league::net::http::{self, HttpRequest, OK, Response};
use league::net::sync::{lock, secret};
use league::program::Program;
use league::program::args::{Args, Exit};
use league::program::terminal::sanitize;
use league::protocol::{
    AgentKind, LeagueError, LeagueRegisterResponse, MatchResultAck, MatchResultReport, MessageSpec,
    RefereeRegisterResponse,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Interval between two checks for a registration.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of unknown requests that are printed.
const MAX_UNKNOWN: usize = 20;
/// The methods of clients of the Model Context Protocol before they call a tool.
const CLIENT_METHODS: [&str; 4] = ["initialize", "notifications/", "tools/list", "ping"];
/// Time for the agent to read that it is registered.
const REGISTRATION_PAUSE: Duration = Duration::from_millis(200);

/// Starts the servers of an examination, which prints its lines with `print`.
pub fn listen(args: Args, print: fn(&str)) -> Result<Arc<Examination>, Exit> {
    let program = Program::new(args, AgentKind::Manager)?;
    let manager = program.listener.try_clone()?;
    let p01 = http::listen("127.0.0.1", 0).map_err(Exit::failure)?;
    let p04 = http::listen("127.0.0.1", 0).map_err(Exit::failure)?;
    let relay = http::listen("127.0.0.1", 0).map_err(Exit::failure)?;
    let examination = Arc::new(Examination {
        player_urls: [url(&p01)?, url(&p04)?],
        relay_url: url(&relay)?,
        relay: Queue::new(),
        program,
        print,
        exchanges: Mutex::default(),
    });

    // Listen for the agent, and for the referee's calls to its players.
    for (name, listener) in [("manager", manager), ("P01", p01), ("P04", p04)] {
        let server = CheckServer {
            examination: Arc::clone(&examination),
            name,
            printed: Mutex::default(),
        };
        let handler = Box::new(move |request: &HttpRequest| server.handle(request));
        http::serve(listener, MAX_NOTICE, handler)?;
    }
    let relayed = Arc::clone(&examination);
    let handler = move |http: &HttpRequest| {
        let timeout = relayed.timeouts().move_timeout_sec.0;
        relayed.relay.pass_on(&http.body, |_| timeout)
    };
    http::serve(relay, MAX_NOTICE, Box::new(handler))?;
    Ok(examination)
}

/// Waits until an agent has registered and answers at its endpoint, as long as `is_expected`.
/// Returns false if none has registered.
pub fn wait_for_agent(examination: &Examination, mut is_expected: impl FnMut() -> bool) -> bool {
    while examination.exchanges(REGISTRATION).is_empty() {
        if !is_expected() {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }

    thread::sleep(REGISTRATION_PAUSE);
    let timeout = examination.timeouts().game_join_ack_timeout_sec.0;
    let ping = json_rpc_call("ping", &json!({}), &json!(1));
    until(timeout, || examination.post("", &ping, timeout).status != 0);
    true
}

fn url(listener: &TcpListener) -> io::Result<String> {
    Ok(format!("http://{}/mcp", listener.local_addr()?))
}

/// The server of one of our three agents.
struct CheckServer {
    examination: Arc<Examination>,
    /// Our agent: `manager`, `P01` or `P04`.
    name: &'static str,
    /// The unknown requests that have been printed.
    printed: Mutex<BTreeSet<String>>,
}

impl CheckServer {
    fn handle(&self, request: &HttpRequest) -> Response {
        if *request.method != *"POST" {
            self.print_unknown(&format!("{} {}", request.method, request.path));
            return Response::new("405 Method Not Allowed", "").with_headers("Allow: POST\r\n");
        }

        if request.path != "/mcp" {
            self.print_unknown(request.path);
        }

        let call = Exchange::new("", 200, &request.body);
        match (self.examination).answer_at_relay(&call) {
            Some(RelayAnswer::Result(result)) => response(&call, result),
            Some(RelayAnswer::Call(body)) => self.handle_call(body.as_bytes()),
            None => self.handle_call(&request.body),
        }
    }

    fn handle_call(&self, body: &[u8]) -> Response {
        let call = self.record(body);
        let message = MessageSpec::by_type(call.text("message_type"));
        let is_known = call.step == REGISTRATION || message.is_some();
        if !is_known
            && !CLIENT_METHODS
                .iter()
                .any(|method| call.method().starts_with(method))
        {
            self.print_unknown(&format!("the method {:?}", call.method()));
        }
        let answer = match self.name {
            "manager" => self.examination.answer_as_manager(&call),
            player_id => self.examination.answer_as_player(player_id, &call),
        };
        match answer {
            Some(message) => response(&call, message),
            None => Response::new("503 Service Unavailable", ""),
        }
    }

    /// Prints a request that this server does not know, each one once: an agent that does not find
    /// its way to the registration would wait in silence.
    fn print_unknown(&self, what: &str) {
        let mut printed = lock(&self.printed);
        if printed.len() < MAX_UNKNOWN && printed.insert(what.to_string()) {
            (self.examination.print)(&sanitize(&format!(
                "an agent asked for {what}: an agent registers with POST {} and the method \
                 register_player or register_referee (bin/adapter.py does it for other players)",
                self.examination.program.endpoint
            )));
        }
    }

    /// Keeps a call to us as a step.
    fn record(&self, body: &[u8]) -> Exchange {
        let mut call = Exchange::new("", 200, body);
        let (message_type, match_id) = (call.text("message_type"), call.text("match_id"));
        call.step = if call.mentions("REGIST") {
            REGISTRATION.into()
        } else {
            format!("{} {message_type} {match_id}", self.name)
        };
        lock(&self.examination.exchanges).push(call.clone());
        call
    }
}

/// Returns the response to a call: the message as the result of JSON-RPC or of a tool, or alone if
/// the call was a bare message. A notification gets no message, except for a registration.
fn response(call: &Exchange, mut message: Value) -> Response {
    let same_fields = ["conversation_id", "match_id"].map(|key| (key, call.message()[key].clone()));
    fill(&mut message, &same_fields);

    if call.json["method"] == "tools/call" {
        let content = json!([{"type": "text", "text": message.to_string()}]);
        message = json!({"content": content, "structuredContent": message, "isError": false});
    }

    let id = &call.json["id"];
    if call.is_bare() {
        Response::new(OK, message.to_string())
    } else if id.is_null() && call.step != REGISTRATION {
        Response::new("202 Accepted", "")
    } else {
        let reply = json!({"jsonrpc": "2.0", "result": message, "id": id});
        Response::new(OK, reply.to_string())
    }
}

/// The answer to a call of a relay's tool.
enum RelayAnswer {
    Result(Value),
    /// What the player sends to its manager: a call like any other.
    Call(String),
}

impl Examination {
    /// Answers a call of a relay's tool; none if it is another call.
    fn answer_at_relay(&self, call: &Exchange) -> Option<RelayAnswer> {
        let mut params = call.json["params"].clone();
        let result = match call.method() {
            "open_relay" => {
                self.relay.end_polls();
                let shown = params["relay_token"].as_str();
                let token = shown.map_or_else(|| secret(32), String::from);
                json!({"relay_token": token, "contact_endpoint": self.relay_url})
            }
            "relay_next" if self.exchanges(REGISTRATION).is_empty() => json!({}), // none is open
            "relay_next" => json!(self.relay.poll(serde_json::from_value(params).ok()?)),
            "relay_call" => {
                let message = &mut params["params"];
                if let Some(Value::Object(meta)) = message.get_mut("player_meta") {
                    meta.insert("contact_endpoint".into(), json!(self.relay_url));
                }
                let (message, method) = (message.take(), params["method"].as_str()?);
                let body = json_rpc_call(method, &message, &call.json["id"]);
                return Some(RelayAnswer::Call(body));
            }
            _ => return None,
        };
        Some(RelayAnswer::Result(result))
    }

    /// Returns the manager's answer to a call. The first report of the first match gets none, so
    /// that the referee must repeat it.
    fn answer_as_manager(&self, call: &Exchange) -> Option<Value> {
        let message_type = if call.step == REGISTRATION {
            match self.kind() {
                AgentKind::Referee => RefereeRegisterResponse::NAME,
                _ => LeagueRegisterResponse::NAME,
            }
        } else if call.text("message_type") == MatchResultReport::NAME {
            if call.step.ends_with("R1M1") && self.exchanges(&call.step).len() == 1 {
                return None;
            }
            MatchResultAck::NAME
        } else {
            match call.method() {
                "initialize" => return Some(initialize(call)),
                "tools/list" => return Some(list_tools()),
                "ping" => return Some(json!({})),
                _ => LeagueError::NAME,
            }
        };
        Some(self.message(message_type, "R1M1"))
    }
}

fn initialize(call: &Exchange) -> Value {
    json!({
        "protocolVersion": call.json["params"]["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "league_manager", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn list_tools() -> Value {
    let mut tools = Vec::new();
    for spec in MessageSpec::accepted_by(AgentKind::Manager) {
        tools.push(json!({"name": spec.method, "inputSchema": *spec.schema}));
    }
    json!({"tools": tools})
}
