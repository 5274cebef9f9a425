//! What an agent is to the network: it takes messages and answers them or denies, and it may have
//! tools beside. The three programs implement `Agent`; `rpc.rs` calls it, for direct requests and
//! for tool clients alike.
//!
//! A tool that is no league message stands in the agent's `Toolbox`: a table with a row for each,
//! made from the types of its arguments and of its answer.

use crate::net::http::Reply;
use crate::object;
use crate::protocol::{Envelope, Kind, Message, Refusal};
use crate::wire::{Wire, cut};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::IpAddr;

/// A request as the handlers see it, beside its message.
#[derive(Debug)]
pub struct Request {
    /// The envelope.
    pub envelope: Envelope,
    /// The address of the connection.
    pub peer: IpAddr,
}

/// What an agent does with what it is sent.
pub trait Agent: Send + Sync + 'static {
    /// Which messages the agent takes.
    fn kind(&self) -> Kind;
    /// Answers a message: with a message, or with a plain "ok". This is one `match` with an arm for
    /// every message, so that a new one cannot be forgotten; those that are not for this kind of
    /// agent are refused before.
    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial>;
    /// The tools that are no messages, and what a tool client is told of the agent.
    fn toolbox(&self) -> Toolbox<'_>;
    /// Told of whatever is refused, by the handlers or before them: the message, where it came
    /// from, and why.
    fn refused(&self, _packet: &Value, _peer: IpAddr, _refusal: &Refusal) {}
    /// Told of a method or a path that nobody has here: somebody may be at the wrong door.
    fn asked_in_vain(&self, _what: &str, _peer: IpAddr) {}
    /// Who holds a token, as that agent signs: only the manager knows.
    fn holder(&self, _token: &str) -> Option<String> {
        None
    }
    /// Any other page than `/health`. `query` is what stands behind the question mark of its
    /// address.
    fn page(&self, _path: &str, _query: &str, _peer: IpAddr) -> Option<Reply> {
        None
    }
    /// What `GET /health` shows.
    fn health(&self) -> Value;
}

/// What an agent offers to tool clients beside the messages.
pub struct Toolbox<'a> {
    /// What a model should know before it calls a tool.
    pub instructions: &'static str,
    /// Whether the messages are listed as tools too. They are served in any case.
    pub lists_messages: bool,
    /// The tools that are no messages.
    pub tools: Vec<Tool<'a>>,
}

impl Toolbox<'_> {
    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Tool<'_>> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A tool that is no message: it is called by its name alone, without an envelope.
pub struct Tool<'a> {
    /// The JSON-RPC method, and the name as a tool.
    pub name: &'static str,
    /// A sentence or two for a person or a language model.
    pub says: &'static str,
    /// Whether the tool only shows something, and changes nothing.
    pub only_shows: bool,
    /// The schema of the arguments.
    pub arguments: fn() -> Value,
    /// The schema of the answer.
    pub answer: fn() -> Value,
    /// Runs the tool with its arguments, for somebody at an address.
    pub run: Box<Run<'a>>,
}

/// What a tool does.
pub type Run<'a> = dyn Fn(&Value, IpAddr) -> Result<Value, Denial> + 'a;

impl<'a> Tool<'a> {
    /// A tool that only shows something. Its arguments are read strictly: whatever is wrong in them
    /// is refused.
    pub fn new<Q: Wire, A: Wire + Serialize>(
        name: &'static str,
        says: &'static str,
        run: impl Fn(Q, IpAddr) -> Result<A, Denial> + 'a,
    ) -> Tool<'a> {
        let run = move |arguments: &Value, peer: IpAddr| {
            let asked = Q::read(arguments).map_err(Refusal::from)?;
            Ok(json!(run(asked, peer)?))
        };
        Tool {
            name,
            says,
            only_shows: true,
            arguments: Q::schema,
            answer: A::schema,
            run: Box::new(run),
        }
    }
}

object! {
    /// The arguments of a tool that takes none.
    Nothing {}
    /// The answer of a tool that has done what it was told.
    Done { status: String, }
}

/// What a handler ends with when a request is not done.
#[derive(Debug, Clone, PartialEq)]
pub enum Denial {
    /// The request is wrong: answered with LEAGUE_ERROR or GAME_ERROR.
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

    /// The code, the words and the data of the JSON-RPC error.
    pub fn error(self) -> (i32, String, Option<Value>) {
        match self {
            Denial::Rpc(code, words, data) => (code, words, data),
            Denial::Refused(refusal) => (-32602, refusal.to_string(), None),
            Denial::Broken(why) => (-32603, format!("Internal error: {why}"), None),
        }
    }

    /// What an agent of this kind answers to a method or a message that it does not take.
    pub fn not_taken(kind: Kind, what: &str) -> Denial {
        let what = cut(what, 60);
        Denial::rpc(
            -32601,
            format!("Method not found: {kind} does not take {what}"),
        )
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Denial {
        Denial::Refused(refusal)
    }
}

impl From<std::io::Error> for Denial {
    fn from(error: std::io::Error) -> Denial {
        Denial::Broken(error.to_string())
    }
}
