//! JSON-RPC 2.0 in (R1): a request is read, and reaches the agent's `handle` as an envelope and a message; what
//! the agent returns, a bare message or a refusal, goes back through `Voice::reply`.
//!
//! Read next: `voice.rs`, requests out; `mcp.rs`, the same handlers as tools; `agent.rs`, what agents share.

use crate::{
    http::{self, Call, Reply},
    log::{Level, Line},
    mcp,
    protocol::{Entry, Envelope, Kind, Message, Packet, Refusal},
    voice::{Answer, Voice},
    wire::Fault,
};
use serde_json::{Value, json};
use std::{net::IpAddr, sync::Arc};

/// Where a request came from.
pub struct From {
    /// Its envelope.
    pub envelope: Envelope,
    /// The address of the connection.
    pub peer: IpAddr,
}

/// What an agent does with what it is sent.
pub trait Agent: Send + Sync + 'static {
    /// Which messages it takes.
    fn kind(&self) -> Kind;
    /// How it speaks.
    fn voice(&self) -> &Voice;
    /// Answers a message: with a message, with a plain "ok", or not at all because it must be refused.
    fn handle(&self, from: &From, message: Message) -> Result<Option<Message>, Denial>;
    /// Answers a tool that is no message (R1).
    fn tool(&self, tool: &str, arguments: &Value) -> Result<Value, Denial>;
    /// What `GET /health` shows.
    fn health(&self) -> Value;
}

/// Why a request is not done.
#[derive(Debug)]
pub enum Denial {
    /// It is wrong: answered with LEAGUE_ERROR or GAME_ERROR.
    Refused(Refusal),
    /// We cannot just now, a full disk for instance: answered with -32603, and nothing has changed.
    Broken(String),
}

impl std::convert::From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Denial {
        Denial::Refused(refusal)
    }
}

impl std::convert::From<serde_json::Error> for Denial {
    fn from(error: serde_json::Error) -> Denial {
        Denial::Broken(error.to_string())
    }
}

impl std::convert::From<std::io::Error> for Denial {
    fn from(error: std::io::Error) -> Denial {
        Denial::Broken(error.to_string())
    }
}

/// A JSON-RPC error: for what the league protocol has no code for.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "named as in JSON-RPC")]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without further data.
    pub fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }
}

/// An agent as the HTTP server sees it.
pub struct Served(pub Arc<dyn Agent>);

impl http::Service for Served {
    fn call(&self, call: Call) -> Reply {
        if call.origin.as_ref().is_some_and(|origin| !self.0.voice().is_own_host(origin)) {
            return Reply("403 Forbidden", String::new());
        }
        // A bug of ours is answered too.
        let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| answer(&*self.0, &call)));
        match answered.unwrap_or_else(|_| Some(failure(Value::Null, RpcError::new(-32603, "Internal error")))) {
            Some(value) => Reply("200 OK", value.to_string()),
            None => Reply("202 Accepted", String::new()),
        }
    }

    fn health(&self) -> String {
        self.0.health().to_string()
    }

    fn fault(&self, what: &str) {
        self.0.voice().log.orchestrator(Level::Error, "fault", what);
    }
}

fn failure(id: Value, error: RpcError) -> Value {
    let mut body = json!({"code": error.code, "message": error.message});
    if let Some(data) = error.data {
        body["data"] = data;
    }
    json!({"jsonrpc": "2.0", "error": body, "id": id})
}

/// Answers one body; nothing for a notification. A bare league message is answered bare.
fn answer(agent: &dyn Agent, call: &Call) -> Option<Value> {
    let invalid = |id: Value, what: &str| Some(failure(id, RpcError::new(-32600, format!("Invalid Request: {what}"))));
    let request: Value = match serde_json::from_slice(&call.body) {
        Ok(request) => request,
        Err(error) => {
            return Some(failure(Value::Null, RpcError::new(-32700, format!("Parse error: {error}"))));
        }
    };
    let Value::Object(request) = request else {
        return invalid(Value::Null, "must be one object; batches are not supported");
    };
    if !request.contains_key("jsonrpc") && !request.contains_key("method") && request.contains_key("message_type") {
        return Some(match run(agent, "", &request, call.peer) {
            Ok(answer) => answer.result,
            Err(error) => failure(Value::Null, error),
        });
    }
    let id = request.get("id").cloned();
    let echoed = id.clone().filter(|id| id.is_number() || id.is_string()).unwrap_or(Value::Null);
    if id.as_ref().is_some_and(|id| !(id.is_number() || id.is_string() || id.is_null())) {
        return invalid(echoed, "id must be an integer or a string");
    }
    if request.get("jsonrpc") != Some(&json!("2.0")) {
        return invalid(echoed, "jsonrpc must be \"2.0\"");
    }
    let Some(method) = request.get("method").and_then(Value::as_str) else {
        return invalid(echoed, "method must be a string");
    };
    let outcome = match request.get("params").unwrap_or(&json!({})) {
        Value::Object(params) => mcp::answer(agent, method, params, call)
            .unwrap_or_else(|| run(agent, method, params, call.peer).map(|answer| answer.result)),
        other => Err(RpcError::new(-32602, Fault::new(other, "an object").under("params").to_string())),
    };
    id?; // a notification: done, not answered
    Some(match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "result": result, "id": echoed}),
        Err(error) => failure(echoed, error),
    })
}

/// Runs a league request under any of its names: the one way in, for direct calls and for tools.
pub fn run(agent: &dyn Agent, method: &str, params: &Packet, peer: IpAddr) -> Result<Answer, RpcError> {
    let by_method = Entry::of_method(method);
    let by_type = params.get("message_type").and_then(Value::as_str).and_then(Entry::of_message);
    let not_here =
        |name: &str| RpcError::new(-32601, format!("Method not found: {} does not take {name}", agent.kind()));
    let served = |entry: &Entry| entry.receivers.contains(&agent.kind());
    match (by_type, by_method) {
        (Some(message), _) if !served(message) => Err(not_here(message.message_type.unwrap_or_default())),
        (Some(message), Some(method)) if message.tool != method.tool => {
            let belongs = format!("{} belongs to {}", message.message_type.unwrap_or_default(), message.tool);
            Err(RpcError::new(-32602, format!("method {}: {belongs}", method.tool)))
        }
        (None, Some(tool)) if tool.message_type.is_none() && served(tool) => run_tool(agent, tool.tool, params),
        (None, Some(method)) if !Entry::served_by(agent.kind()).any(|entry| entry.tool == method.tool) => {
            Err(not_here(method.tool))
        }
        (None, None) if !method.is_empty() => Err(not_here(method)),
        _ => run_message(agent, params, peer),
    }
}

fn run_tool(agent: &dyn Agent, tool: &str, params: &Packet) -> Result<Answer, RpcError> {
    match agent.tool(tool, &Value::Object(params.clone())) {
        Ok(result) => Ok(Answer { result, is_error: false }),
        Err(denial) => deny(agent, params, denial),
    }
}

fn run_message(agent: &dyn Agent, params: &Packet, peer: IpAddr) -> Result<Answer, RpcError> {
    let voice = agent.voice();
    let sender = params.get("sender").and_then(Value::as_str);
    voice.note("message_received", params, Line { peer: sender, ..Line::default() });
    let read = voice.read(params);
    let outcome =
        read.map_err(Denial::Refused).and_then(|(envelope, message)| agent.handle(&From { envelope, peer }, message));
    match outcome {
        Ok(message) => Ok(voice.reply(agent.kind(), params, Ok(message))),
        Err(denial) => deny(agent, params, denial),
    }
}

fn deny(agent: &dyn Agent, params: &Packet, denial: Denial) -> Result<Answer, RpcError> {
    match denial {
        Denial::Refused(refusal) => Ok(agent.voice().reply(agent.kind(), params, Err(refusal))),
        Denial::Broken(why) => {
            agent.voice().log.orchestrator(Level::Error, "fault", &*why);
            Err(RpcError::new(-32603, format!("Internal error: {why}")))
        }
    }
}
