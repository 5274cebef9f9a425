//! What an agent is to the network: it answers messages and offers tools. The three programs
//! implement [`Agent`]; `rpc.rs` calls it, for direct requests and for tool calls alike.
//!
//! A tool that is no league message is a [`Tool`] in the agent's [`Toolbox`], made from the types
//! of its arguments and of its answer.

use super::http::{OK, Response};
use crate::json::{decode, schema_of};
use crate::protocol::{AgentKind, Envelope, Message, ProtocolError, Reply};
use crate::values::truncate;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::IpAddr;

/// A request as the handlers see it, without its message.
#[derive(Debug)]
pub struct Request {
    /// The envelope.
    pub envelope: Envelope,
    /// The address of the connection.
    pub peer: IpAddr,
}

/// Answers messages and tool calls.
pub trait Agent: Send + Sync + 'static {
    /// The messages that this kind of agent answers.
    type Requests: Message;

    /// The kind of agent.
    const KIND: AgentKind;

    /// Answers a message with a message, or with `None` for "ok". This is one `match` with an arm
    /// for every message of `Requests`.
    fn handle(
        &self,
        request: &Request,
        message: Self::Requests,
    ) -> Result<Option<Reply>, HandlerError>;

    /// Returns the tools that are no messages, and what a tool client is told of the agent.
    fn toolbox(&self) -> Toolbox<'_>;

    /// Is called with every message that is refused, by the handlers or before them.
    fn on_refused(&self, _packet: &Value, _peer: IpAddr, _refusal: &ProtocolError) {}

    /// Is called with the token of every ping.
    fn on_ping(&self, _token: Option<&str>) {}

    /// Is called when a method or a path is requested that does not exist. `text` says by whom.
    fn on_not_found(&self, _text: &str) {}

    /// Returns a page other than `/health`. `query` is the text behind the question mark.
    fn page(&self, _path: &str, _query: &str, _peer: IpAddr) -> Option<Response> {
        None
    }

    /// Returns true if the sender of a message shows a token that the agent knows. The log takes
    /// only a limited number of messages of others.
    fn is_known(&self, envelope: &Envelope) -> bool;

    /// Returns what `GET /health` shows.
    fn health(&self) -> Value;
}

/// The offer of an agent to tool clients.
pub struct Toolbox<'a> {
    /// The advice for a model that wants to call a tool.
    pub instructions: &'static str,
    /// True if the messages are listed as tools. They can be called in any case.
    pub lists_messages: bool,
    /// The tools that are no messages.
    pub tools: Vec<Tool<'a>>,
}

impl Toolbox<'_> {
    /// Returns the tool of that name.
    pub fn find(&self, name: &str) -> Option<&Tool<'_>> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A tool that is no message: it is called by its name, without an envelope.
pub struct Tool<'a> {
    /// The JSON-RPC method, and the name of the tool.
    pub name: &'static str,
    /// A sentence or two for a person or a language model.
    pub description: &'static str,
    /// True if the tool changes nothing.
    pub read_only: bool,
    /// False if programs call the tool again and again: its calls are not logged.
    pub is_logged: bool,
    /// Makes the schema of the arguments, for a client that lists the tools.
    pub input_schema: fn() -> Value,
    /// Makes the schema of the answer.
    pub output_schema: fn() -> Value,
    /// Runs the tool with its arguments, for a caller at an address.
    pub run: Box<RunTool<'a>>,
}

/// The function of a tool.
type RunTool<'a> = dyn Fn(&Value, IpAddr) -> Result<Value, HandlerError> + 'a;

impl<'a> Tool<'a> {
    /// Returns a tool that changes nothing. Its arguments are read strictly: optional ones must be
    /// right, too.
    pub fn new<Q: DeserializeOwned, A: DeserializeOwned + Serialize>(
        name: &'static str,
        description: &'static str,
        run: impl Fn(Q, IpAddr) -> Result<A, HandlerError> + 'a,
    ) -> Tool<'a> {
        Tool {
            name,
            description,
            read_only: true,
            is_logged: true,
            input_schema: schema_of::<Q>,
            output_schema: schema_of::<A>,
            run: Box::new(move |arguments, peer| {
                let arguments = decode::<Q>(arguments).map_err(ProtocolError::from)?;
                Ok(json!(run(arguments, peer)?))
            }),
        }
    }
}

/// The arguments of a tool that takes none.
#[derive(Debug, Serialize, Deserialize)]
pub struct NoArguments {}

/// The reason why a handler does not answer a request.
#[derive(Debug)]
pub enum HandlerError {
    /// The request is wrong: answered with LEAGUE_ERROR or GAME_ERROR.
    Refused(ProtocolError),
    /// Our own machine failed, for instance a full disk: answered with -32603, nothing has changed.
    Internal(String),
    /// An error for which the league protocol has no code.
    JsonRpc(JsonRpcError),
}

/// An error of JSON-RPC.
#[derive(Debug)]
pub struct JsonRpcError {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
    /// The HTTP status that it is sent with.
    pub status: &'static str,
}

impl JsonRpcError {
    /// Returns an error that is sent with status 200.
    pub fn new(code: i32, message: impl Into<String>) -> JsonRpcError {
        JsonRpcError {
            code,
            message: message.into(),
            data: None,
            status: OK,
        }
    }
}

impl HandlerError {
    /// Returns a JSON-RPC error.
    pub fn json_rpc(code: i32, message: impl Into<String>) -> HandlerError {
        HandlerError::JsonRpc(JsonRpcError::new(code, message))
    }

    /// Returns the error for a method or a message that this kind of agent does not accept.
    pub fn not_found(kind: AgentKind, name: &str) -> HandlerError {
        let name = truncate(name, 60);
        let message = format!("Method not found: {kind} does not take {name}");
        HandlerError::json_rpc(-32601, message)
    }

    /// Returns the error as JSON-RPC writes it.
    pub fn into_json_rpc(self) -> JsonRpcError {
        match self {
            HandlerError::JsonRpc(error) => error,
            HandlerError::Refused(refusal) => JsonRpcError::new(-32602, refusal.to_string()),
            HandlerError::Internal(reason) => {
                JsonRpcError::new(-32603, format!("Internal error: {reason}"))
            }
        }
    }
}

impl From<ProtocolError> for HandlerError {
    fn from(refusal: ProtocolError) -> HandlerError {
        HandlerError::Refused(refusal)
    }
}

impl From<std::io::Error> for HandlerError {
    fn from(error: std::io::Error) -> HandlerError {
        HandlerError::Internal(error.to_string())
    }
}
