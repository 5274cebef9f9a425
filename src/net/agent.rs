//! What an agent is to the network: it takes requests and answers them, or denies. The three programs implement
//! `Agent`; `rpc.rs` calls it.

use crate::net::http::Reply;
use crate::protocol::{Envelope, Kind, Message, Packet, Refusal, Tool};
use serde_json::Value;
use std::net::IpAddr;

/// A request as the handlers see it, beside its message.
#[derive(Debug)]
pub struct Request {
    /// Its envelope.
    pub envelope: Envelope,
    /// The address of the connection.
    pub peer: IpAddr,
    /// Whether the conversation is the sender's own word, or was made by us.
    pub has_conversation: bool,
}

/// What an agent does with what it is sent.
pub trait Agent: Send + Sync + 'static {
    /// Which messages it takes.
    fn kind(&self) -> Kind;
    /// Answers a message: with a message, or with a plain "ok".
    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial>;
    /// Answers a tool that is no message.
    fn tool(&self, tool: Tool, arguments: &Value, peer: IpAddr) -> Result<Value, Denial>;
    /// Whether it has that tool at all: some are only there if its options say so.
    fn serves(&self, _tool: Tool) -> bool {
        true
    }
    /// The JSON schema of what such a tool answers.
    fn answer_schema(&self, tool: Tool) -> Option<Value>;
    /// Told of whatever is refused, by the handlers or before them: the message, where it came from, and why.
    fn refused(&self, _packet: &Packet, _peer: IpAddr, _refusal: &Refusal) {}
    /// Who holds a token, as it signs: only the manager knows.
    fn holder(&self, _token: &str) -> Option<String> {
        None
    }
    /// Any other page than `/health`. `query` is what stands behind the question mark of its address.
    fn page(&self, _path: &str, _query: &str, _peer: IpAddr) -> Option<Reply> {
        None
    }
    /// What `GET /health` shows.
    fn health(&self) -> Value;
    /// What a model should know before it calls a tool.
    fn instructions(&self) -> &'static str;
}

/// What a handler ends with when a request is not done.
#[derive(Debug, Clone, PartialEq)]
pub enum Denial {
    /// It is wrong: answered with LEAGUE_ERROR or GAME_ERROR.
    Refused(Refusal),
    /// We cannot just now, a full disk for instance: answered with -32603, and nothing has changed.
    Broken(String),
    /// What the league protocol has no code for: a JSON-RPC error with code, message and data.
    Rpc(i32, String, Option<Value>),
}

impl Denial {
    /// A JSON-RPC error without further data.
    pub fn rpc(code: i32, message: impl Into<String>) -> Denial {
        Denial::Rpc(code, message.into(), None)
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Denial {
        Denial::Refused(refusal)
    }
}

impl From<serde_json::Error> for Denial {
    fn from(error: serde_json::Error) -> Denial {
        Denial::Broken(error.to_string())
    }
}

impl From<std::io::Error> for Denial {
    fn from(error: std::io::Error) -> Denial {
        Denial::Broken(error.to_string())
    }
}

/// What a league request is answered.
pub struct Answer {
    /// The `result`.
    pub result: Value,
    /// Why it was refused, in words.
    pub refused: Option<String>,
}
