//! JSON-RPC 2.0 in: from the bytes of a request to the agent that answers it, and from its answer to bytes. One way in
//! for direct calls and for tools; one function makes every reply.
//!
//! The agent is given an envelope and a message, and returns a bare message or a `Denial`. What a request says itself
//! decides; what it lacks is supplied where we know it (see "Envelope" in `protocol.md`).
//! Read next: `mcp.rs`, the same handlers as tools.

use crate::net::agent::{Agent, Answer, Denial, Request};
use crate::net::client::{About, Client, conversation, ok};
use crate::net::http::{self, Call, Reply};
use crate::net::log::{Body, Level, Line, masked_text};
use crate::net::mcp::{self, Asked};
use crate::net::retry::SHOWN;
use crate::net::sync::lock;
use crate::protocol::{
    self, Code, Entry, GameError, Given, Kind, LeagueError, Message, PROTOCOL, Packet, Refusal,
    Tool,
};
use crate::wire::{Endpoint, Fault, Timestamp, Wire, cut};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An agent as the HTTP server sees it.
pub struct Server {
    /// Who answers.
    pub agent: Arc<dyn Agent>,
    /// How it signs and logs.
    pub client: Arc<Client>,
    /// Whether a request must bring its whole envelope (`strict_envelope`).
    pub strict: bool,
    /// The names under which browsers may call it.
    pub own_hosts: Vec<String>,
    /// Shows a line on the terminal.
    pub complain: fn(&str),
    /// The last fault of our own that was shown, and when.
    pub shown: Mutex<Option<(String, Instant)>>,
}

/// How many characters of a message its receiver logs; its sender logs all.
const LOGGED: usize = 500;
/// How long a fault of our own is not shown again.
const AWHILE: Duration = Duration::from_secs(60);

impl http::Service for Server {
    fn call(&self, call: &Call) -> Reply {
        let is_own = |origin: &str| {
            Endpoint::parse(origin).is_ok_and(|it| self.own_hosts.contains(&it.host))
        };
        if call.header("Origin").is_some_and(|origin| !is_own(origin)) {
            return Reply::new("403 Forbidden", "");
        }
        self.answer(call)
    }

    fn page(&self, path: &str, query: &str, peer: IpAddr) -> Option<Reply> {
        match path {
            "/health" => Some(Reply::new("200 OK", self.agent.health().to_string())),
            _ => self.agent.page(path, query, peer),
        }
    }

    fn fault(&self, what: &str) {
        self.client.log.orchestrator(Level::Error, "fault", what);
    }

    fn alarm(&self, what: &str) {
        self.client.log.orchestrator(Level::Warning, "alarm", what);
        (self.complain)(what);
    }
}

impl Server {
    /// Answers one body; a notification and a reply get 202. A bare league message is answered bare.
    fn answer(&self, call: &Call) -> Reply {
        let request: Value = match serde_json::from_slice(&call.body) {
            Ok(request) => request,
            Err(error) => {
                return failed(
                    Value::Null,
                    Denial::rpc(-32700, format!("Parse error: {error}")),
                    "200 OK",
                );
            }
        };
        let invalid = |id: Value, what: &str| {
            failed(
                id,
                Denial::rpc(-32600, format!("Invalid Request: {what}")),
                "200 OK",
            )
        };
        let Value::Object(mut request) = request else {
            return invalid(Value::Null, "must be one object; batches are not supported");
        };
        if !request.contains_key("jsonrpc")
            && !request.contains_key("method")
            && request.contains_key("message_type")
        {
            return match self.run("", Value::Object(request), call.peer, !self.strict) {
                Ok(answer) => Reply::new("200 OK", answer.result.to_string()),
                Err(denial) => failed(Value::Null, denial, "200 OK"),
            };
        }
        let id = request.remove("id");
        let echoed = id
            .clone()
            .filter(|id| id.is_number() || id.is_string())
            .unwrap_or(Value::Null);
        if id.as_ref().is_some_and(|id| *id != echoed) {
            return invalid(echoed, "id must be an integer or a string");
        }
        if request.get("jsonrpc") != Some(&json!("2.0")) {
            return invalid(echoed, "jsonrpc must be \"2.0\"");
        }
        if !request.contains_key("method")
            && (request.contains_key("result") || request.contains_key("error"))
        {
            return Reply::new("202 Accepted", ""); // a reply to nothing that we have asked
        }
        let params = request.remove("params").unwrap_or_else(|| json!({}));
        let Some(method) = request
            .get("method")
            .and_then(Value::as_str)
            .filter(|method| !method.is_empty())
        else {
            return invalid(echoed, "method must be a string, and not empty");
        };
        let outcome = self.run_method(method, &params, call);
        if id.is_none() {
            return Reply::new("202 Accepted", ""); // a notification: done, not answered
        }
        match outcome {
            Ok(result) => Reply::new("200 OK", answered(&result, &echoed)),
            Err(denial) => {
                let status = mcp::status(&denial, method, &params, call);
                failed(echoed, denial, status)
            }
        }
    }

    /// Runs a method of MCP, or a league request.
    fn run_method(&self, method: &str, params: &Value, call: &Call) -> Result<Value, Denial> {
        if !params.is_object() {
            return Err(Denial::rpc(
                -32602,
                Fault::new(params, "an object").under("params").to_string(),
            ));
        }
        if !mcp::is_mcp(method, params, call) {
            return Ok(self
                .run(method, params.clone(), call.peer, !self.strict)?
                .result);
        }
        let sender = self.client.sender();
        match mcp::asked(&*self.agent, &sender, method, params, call)? {
            Asked::Done(result) => Ok(result),
            Asked::Call(entry, arguments) => {
                let answer = self.run(entry.tool, arguments, call.peer, true);
                let result = mcp::tool_result(&*self.agent, entry, answer);
                Ok(mcp::signed_in_its_era(&sender, result, params, call))
            }
        }
    }

    /// Runs a league request: the one way in, for direct calls and for tools. Its `message_type` decides; the method,
    /// the tool's name or the message type itself, may only agree with it, or stand alone.
    fn run(
        &self,
        method: &str,
        mut params: Value,
        peer: IpAddr,
        lenient: bool,
    ) -> Result<Answer, Denial> {
        let kind = self.agent.kind();
        let by_type = params["message_type"].as_str().and_then(Entry::of_message);
        let not_here = |name: &str| {
            Err(Denial::rpc(
                -32601,
                format!("Method not found: {kind} does not take {name}"),
            ))
        };
        let entry = match (by_type, Entry::of_method(method)) {
            (Some(message), Some(method))
                if message.tool != method.tool && message.is_served_by(kind) =>
            {
                let belongs = format!(
                    "{} belongs to {}",
                    message.message_type.unwrap_or_default(),
                    message.tool
                );
                return Err(Denial::rpc(
                    -32602,
                    format!("method {}: {belongs}", method.tool),
                ));
            }
            (Some(entry), _) => Some(entry),
            (None, Some(method)) => Entry::served_by(kind)
                .find(|entry| entry.tool == method.tool)
                .or(Some(method)),
            (None, None) if method.is_empty() => None, // a bare message: the reader says what is wrong with it
            (None, None) => return not_here(&cut(method, 60)),
        };
        match entry {
            Some(entry) if !entry.is_served_by(kind) => {
                not_here(entry.message_type.unwrap_or(entry.tool))
            }
            Some(Entry {
                as_tool: Some(tool),
                ..
            }) => self.run_tool(*tool, &params, peer),
            _ => {
                let given = if lenient {
                    self.given(entry, &params)
                } else {
                    Given::new()
                };
                let supplied = protocol::complete(&mut params, given);
                self.run_message(&params, peer, &supplied)
            }
        }
    }

    fn run_tool(&self, tool: Tool, arguments: &Value, peer: IpAddr) -> Result<Answer, Denial> {
        let empty = Map::new();
        let packet = arguments.as_object().unwrap_or(&empty);
        self.client.note(
            "tool_called",
            packet,
            Line {
                peer: Some(&peer.to_string()),
                ..Line::default()
            },
        );
        match self.guarded(|| self.agent.tool(tool, arguments, peer)) {
            Ok(result) => Ok(Answer {
                result,
                refused: None,
            }),
            Err(denial) => self.deny(packet, peer, denial),
        }
    }

    fn run_message(
        &self,
        params: &Value,
        peer: IpAddr,
        supplied: &[&str],
    ) -> Result<Answer, Denial> {
        let (client, empty) = (&self.client, Map::new());
        let packet = params.as_object().unwrap_or(&empty);
        let address = peer.to_string();
        let sender = packet
            .get("sender")
            .and_then(Value::as_str)
            .unwrap_or(&address);
        let line = Line {
            peer: Some(sender),
            message: Some(logged(packet)),
            ..Line::default()
        };
        client.note("message_received", packet, line);
        client.log.supplied(sender, supplied);
        let handle = |understood: protocol::Understood| {
            client.log.doubts(sender, &understood);
            self.is_our_league(&understood)?;
            let has_conversation = !supplied.contains(&"conversation_id");
            let request = Request {
                envelope: understood.envelope,
                peer,
                has_conversation,
            };
            self.guarded(|| self.agent.handle(&request, understood.message))
        };
        match protocol::read(params)
            .map_err(Denial::Refused)
            .and_then(handle)
        {
            Ok(None) => Ok(Answer {
                result: ok(),
                refused: None,
            }),
            Ok(Some(message)) => Ok(self.reply(packet, &message, None)),
            Err(denial) => self.deny(packet, peer, denial),
        }
    }

    /// A bug of ours is answered too.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Denial>) -> Result<T, Denial> {
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(Denial::Broken("a bug of ours".into())))
    }

    /// What we know of a request beside what it says: who holds its token, which match it is about, and when it came.
    fn given(&self, entry: Option<&Entry>, packet: &Value) -> Given {
        let message_type = entry.and_then(|entry| entry.message_type);
        let sender = match message_type {
            Some(protocol::RefereeRegisterRequest::NAME) => format!("{}:new", Kind::Referee),
            Some(protocol::LeagueRegisterRequest::NAME) => format!("{}:new", Kind::Player),
            _ => packet["auth_token"]
                .as_str()
                .and_then(|token| self.agent.holder(token))
                .unwrap_or("launcher".into()),
        };
        let about = packet["match_id"]
            .as_str()
            .or(message_type)
            .unwrap_or("message")
            .to_ascii_lowercase();
        let mut given: Given = vec![
            ("protocol", PROTOCOL.into()),
            ("sender", sender.into()),
            (
                "conversation_id",
                format!("conv-supplied-{}", cut(&about, 60)).into(),
            ),
            ("timestamp", Timestamp::now().to_string().into()),
        ];
        given.extend(message_type.map(|name| ("message_type", name.into())));
        given.extend(
            self.client
                .league_id()
                .map(|league_id| ("league_id", league_id.into())),
        );
        given
    }

    /// Whether a message is of our league.
    fn is_our_league(&self, understood: &protocol::Understood) -> Result<(), Refusal> {
        match (&understood.envelope.league_id, self.client.league_id()) {
            (Some(came), Some(ours)) if *came != ours => {
                let is_report = matches!(understood.message, Message::MatchResultReport(_));
                let code = if is_report { Code::E015 } else { Code::E003 };
                Err(Refusal::got(
                    code,
                    "league_id",
                    came,
                    format_args!("expected {ours:?}"),
                ))
            }
            _ => Ok(()),
        }
    }

    fn deny(&self, request: &Packet, peer: IpAddr, denial: Denial) -> Result<Answer, Denial> {
        match denial {
            Denial::Refused(refusal) => {
                self.agent.refused(request, peer, &refusal);
                Ok(self.reply(request, &self.refusal(request, &refusal), Some(&refusal)))
            }
            Denial::Broken(why) => {
                self.client.log.orchestrator(Level::Error, "fault", &*why);
                self.show_fault(&why);
                Err(Denial::rpc(-32603, format!("Internal error: {why}")))
            }
            rpc => Err(rpc),
        }
    }

    /// Shows a fault of our own to whoever can mend it; the same one again after a while.
    fn show_fault(&self, why: &str) {
        let mut shown = lock(&self.shown);
        if !shown
            .as_ref()
            .is_some_and(|(known, at)| known == why && at.elapsed() < AWHILE)
        {
            (self.complain)(&cut(why, SHOWN));
            *shown = Some((why.into(), Instant::now()));
        }
    }

    /// The reply to a request, whole, in its conversation or a new one. Where it refuses the request, `refusal` is why.
    fn reply(&self, request: &Packet, message: &Message, refusal: Option<&Refusal>) -> Answer {
        let about = About {
            conversation_id: quoted(request, "conversation_id")
                .unwrap_or_else(|| conversation("reply")),
            auth_token: None,
            round_id: request
                .get("round_id")
                .and_then(|round| u32::read(round).ok()),
            match_id: quoted(request, "match_id"),
            match_token: None,
        };
        let packet = self.client.write(message, &about);
        let peer = request.get("sender").and_then(Value::as_str);
        let level = if refusal.is_some() {
            Level::Warning
        } else {
            Level::Info
        };
        let (error_code, field) = (
            refusal.map(|it| it.code.code()),
            refusal.and_then(Refusal::field_name),
        );
        self.client.note(
            "message_sent",
            &packet,
            Line {
                level,
                peer,
                error_code,
                field,
                ..Line::default()
            },
        );
        Answer {
            result: Value::Object(packet),
            refused: refusal.map(ToString::to_string),
        }
    }

    /// A refusal as a message: a GAME_ERROR where the match is readable and we play or referee it, else a LEAGUE_ERROR.
    fn refusal(&self, request: &Packet, refusal: &Refusal) -> Message {
        let original = quoted(request, "message_type").unwrap_or("UNKNOWN".into());
        let (error_code, error_description) =
            (refusal.code.to_string(), refusal.code.name().into());
        let context = Some(refusal.context.clone());
        let Some(match_id) =
            quoted(request, "match_id").filter(|_| self.agent.kind() != Kind::Manager)
        else {
            let original_message_type = Some(original);
            return LeagueError {
                error_code,
                error_description,
                original_message_type,
                context,
            }
            .into();
        };
        let player_id = quoted(request, "player_id");
        let own_id = || {
            self.client
                .sender()
                .rsplit(':')
                .next()
                .unwrap_or_default()
                .to_string()
        };
        GameError {
            match_id,
            error_code,
            error_description,
            affected_player: player_id.clone().unwrap_or_else(own_id),
            action_required: original,
            player_id,
            retry_info: None,
            context,
            consequence: Some("Refused; nothing has changed".into()),
        }
        .into()
    }
}

/// A text of a request, as it is repeated to its sender.
fn quoted(request: &Packet, key: &str) -> Option<String> {
    request
        .get(key)
        .and_then(Value::as_str)
        .map(|text| cut(text, 200))
}

/// What the receiver logs of a message: all of it, or its beginning.
fn logged(packet: &Packet) -> Body<'_> {
    let text = masked_text(packet);
    if text.len() > LOGGED {
        Body::Words(cut(&text, LOGGED))
    } else {
        Body::Packet(packet)
    }
}

/// A JSON-RPC result, written.
pub fn answered(result: &Value, id: &Value) -> String {
    #[derive(Serialize)]
    struct RpcResult<'a> {
        jsonrpc: &'static str,
        result: &'a Value,
        id: &'a Value,
    }
    serde_json::to_string(&RpcResult {
        jsonrpc: "2.0",
        result,
        id,
    })
    .unwrap_or_default()
}

/// A JSON-RPC error.
fn failed(id: Value, denial: Denial, status: &'static str) -> Reply {
    let (code, message, data) = match denial {
        Denial::Rpc(code, message, data) => (code, message, data),
        Denial::Refused(refusal) => (-32602, refusal.to_string(), None),
        Denial::Broken(why) => (-32603, why, None),
    };
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    Reply::new(
        status,
        json!({"jsonrpc": "2.0", "error": error, "id": id}).to_string(),
    )
}
