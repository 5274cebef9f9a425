//! From a request to the agent that answers it: the one way in, for direct calls and for tools. The agent is given an
//! envelope and a message, and returns a bare message or a refusal; `Voice::reply` makes the reply of it.

use crate::{
    log::{Level, Line},
    protocol::{Entry, Envelope, Kind, Message, Packet, Refusal},
    voice::{Answer, Voice},
};
use serde_json::Value;
use std::{
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
};

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
    /// It was pinged by somebody who claims with a token to be the manager.
    fn pinged(&self, _token: &str) {}
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

/// Runs a league request: the one way in, for direct calls and for tools. Its `message_type` decides; the method, the
/// tool's name or the message type itself, may only agree with it, or stand alone (R1).
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
    agent.voice().note("tool_called", params, Line::default());
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
    let handle = |(envelope, message)| {
        // A bug of ours is answered too.
        let handled = catch_unwind(AssertUnwindSafe(|| agent.handle(&From { envelope, peer }, message)));
        handled.unwrap_or_else(|_| Err(Denial::Broken("a bug of ours".into())))
    };
    match read.map_err(Denial::Refused).and_then(handle) {
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
