//! JSON-RPC 2.0 in: from the bytes of a request to the agent that answers it, and from its answer
//! to bytes. Direct calls and tool calls come the same way, and one function makes every reply.
//!
//! The agent is given an envelope and a message, and returns a bare message or a `Denial`. What a
//! request says itself decides; what it lacks is supplied where we know it (see "Envelope" in
//! `protocol.md`). A request is read once and logged in one line, its reply in another; an address
//! that is refused too often is only counted. Read next: `mcp.rs`, the same handlers as tools.

use crate::net::agent::{Agent, Denial, Request, Tool};
use crate::net::bounds::start_anew;
use crate::net::client::Client;
use crate::net::http::{OK, Reply, Service, Visitor};
use crate::net::letter::{About, answered, conversation, ok, quoted, written};
use crate::net::log::{Body, Level};
use crate::net::mcp::Mcp;
use crate::net::sync::lock;
use crate::protocol::{
    self, Code, Entry, GameError, Kind, LeagueError, LeagueRegisterRequest, Message,
    RefereeRegisterRequest, Refusal, Understood,
};
use crate::wire::{Fault, SHOWN, Wire, cut};
use serde_json::{Value, json};
use std::mem;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// What is said of JSON that is no request.
const NO_REQUEST: &str = "must be one object (batches are not supported) with \"jsonrpc\": \
    \"2.0\", a \"method\" that is a string, and an \"id\" that is an integer or a string";

/// An agent as the HTTP server sees it.
pub struct Server {
    /// Who answers.
    pub agent: Arc<dyn Agent>,
    /// How the agent signs and logs.
    pub client: Arc<Client>,
    /// Whether a request must bring its whole envelope (`strict_envelope`).
    pub strict: bool,
    /// The hosts, each with its port, under which browsers may call the agent.
    pub own: Vec<String>,
    /// Shows a line on the terminal.
    pub complain: fn(&str),
    /// The port on which the agent listens.
    pub port: u16,
    /// The fault of our own that was last shown, a panic too: the same again is only logged.
    pub shown: Mutex<String>,
}

impl Service for Server {
    fn call(&self, body: &[u8], from: &Visitor) -> Reply {
        let origins = || from.headers("Origin"); // a browser has one
        let is_ours = |origin: &str| {
            origin
                .strip_prefix("http://")
                .is_some_and(|it| self.is_own(it))
        };
        if origins().all(is_ours) && origins().count() < 2 {
            self.answer(body, from)
        } else {
            Reply::new("403 Forbidden", "")
        }
    }

    fn page(&self, path: &str, from: &Visitor) -> Option<Reply> {
        let peer = self.peer(from);
        let page = match path {
            "/health" => Some(Reply::new(OK, self.agent.health().to_string())),
            _ => self.agent.page(path, from.query(), peer),
        };
        if page.is_none() {
            self.asked_in_vain(path, peer);
        }
        page
    }

    fn fault(&self, what: &str) {
        self.client.log.orchestrator(Level::Error, "fault", what);
        let shown = cut(what, 2 * SHOWN);
        if mem::replace(&mut *lock(&self.shown), shown.clone()) != shown {
            (self.complain)(&shown);
        }
    }

    fn start_anew(&self, why: &str) {
        let words = format!("{why}: the program takes its own place");
        (self.complain)(&words);
        self.client.log.orchestrator(Level::Info, "ended", words);
        let why = start_anew(self.port);
        (self.complain)(&format!("that cannot be: {why}"));
    }
}

impl Server {
    /// Whether a browser names this very agent, by host and port; it leaves out port 80.
    fn is_own(&self, host: &str) -> bool {
        let host = host.trim_end_matches(":80");
        let is_it = |own: &String| own.trim_end_matches(":80").eq_ignore_ascii_case(host);
        self.own.iter().any(is_it)
    }

    /// Where a request comes from. A browser that was led to this machine under a name that is not
    /// ours does not count as this machine: its page comes from somewhere else.
    fn peer(&self, from: &Visitor) -> IpAddr {
        let address = from.address();
        let is_ours = from.header("Host").is_none_or(|host| self.is_own(host));
        match address.is_loopback() && !is_ours {
            true => Ipv4Addr::UNSPECIFIED.into(),
            false => address,
        }
    }

    /// Tells the agent what somebody asked for in vain: cut, and not without end, since it is
    /// logged.
    fn asked_in_vain(&self, what: &str, peer: IpAddr) {
        if self.client.log.bears(peer) {
            self.agent.asked_in_vain(&cut(what, SHOWN), peer);
        }
    }

    /// Answers one body; a notification and a reply get 202. A bare league message is answered
    /// bare.
    fn answer(&self, body: &[u8], from: &Visitor) -> Reply {
        let mut request: Value = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => {
                let denial = Denial::rpc(-32700, format!("Parse error: {error}"));
                return failed(Value::Null, denial);
            }
        };
        let has = |key: &str| request.get(key).is_some();
        if has("message_type") && !has("jsonrpc") && !has("method") {
            return match self.run("", request, self.peer(from), false) {
                Ok(result) => Reply::new(OK, written(&result)),
                Err(denial) => failed(Value::Null, denial),
            };
        }
        if !has("method") && (has("result") || has("error")) {
            return Reply::new("202 Accepted", ""); // a reply to nothing that we have asked
        }
        let is_notification = !has("id");
        let is_id = |id: &Value| id.is_null() || id.is_number() || id.is_string();
        let id = Some(request["id"].clone()).filter(is_id);
        let method = request["method"].as_str().unwrap_or_default().to_string();
        if id.is_none() || method.is_empty() || request["jsonrpc"] != "2.0" {
            let denial = Denial::rpc(-32600, format!("Invalid Request: {NO_REQUEST}"));
            return failed(id.unwrap_or_default(), denial);
        }
        let id = id.unwrap_or_default();
        let params = request.get_mut("params").map(Value::take);
        let outcome = self.run_method(&method, params.unwrap_or_else(|| json!({})), from);
        match outcome {
            _ if is_notification => Reply::new("202 Accepted", ""), // done, not answered
            Ok(result) => Reply::new(OK, answered(&result, &id)),
            Err((status, denial)) => Reply {
                status,
                ..failed(id, denial)
            },
        }
    }

    /// Runs a method of MCP, or a league request. A denial comes with the HTTP status that it
    /// wants.
    fn run_method(
        &self,
        method: &str,
        params: Value,
        from: &Visitor,
    ) -> Result<Value, (&'static str, Denial)> {
        if !params.is_object() {
            let fault = Fault::new(&params, "an object").under("params");
            return Err((OK, Denial::rpc(-32602, fault.to_string())));
        }
        let peer = self.peer(from);
        match Mcp::find(method, &params, from) {
            Some(mcp) => mcp.answer(&*self.agent, &self.client.sender(), |name, arguments| {
                self.run(name, arguments, peer, true)
            }),
            None => (self.run(method, params, peer, false)).map_err(|denial| (OK, denial)),
        }
    }

    /// Runs a league request: the one way in, for direct calls and for tools. The `message_type`
    /// decides; the method, a tool's name or the message type itself, may only agree with it, or
    /// stand alone.
    fn run(
        &self,
        method: &str,
        mut params: Value,
        peer: IpAddr,
        as_tool: bool,
    ) -> Result<Value, Denial> {
        let kind = self.agent.kind();
        let by_type = params["message_type"].as_str().and_then(Entry::of_message);
        let by_method = Entry::of_method(method);
        let toolbox = by_method.is_none().then(|| self.agent.toolbox());
        let tool = toolbox.as_ref().and_then(|it| it.find(method));
        let Some(entry) = by_type.or(by_method) else {
            return match tool {
                Some(tool) => self.run_tool(tool, &params, peer),
                None if method.is_empty() => self.run_message(&params, peer, &[]),
                None => {
                    self.asked_in_vain(method, peer);
                    Err(Denial::not_taken(kind, method))
                }
            };
        };
        let name = entry.message_type;
        if !entry.is_served_by(kind) {
            return Err(Denial::not_taken(kind, name));
        }
        if tool.is_some() || by_method.is_some_and(|it| it.tool != entry.tool) {
            let words = format!("method {method}: {name} belongs to {}", entry.tool);
            return Err(Denial::rpc(-32602, words));
        }
        let may_lack = as_tool || !self.strict || newcomer(name).is_some();
        let supplied = may_lack.then(|| {
            let known = |packet: &Value, field: &str| self.known(name, packet, field, as_tool);
            protocol::complete(&mut params, known)
        });
        self.run_message(&params, peer, &supplied.unwrap_or_default())
    }

    fn run_tool(&self, tool: &Tool, arguments: &Value, peer: IpAddr) -> Result<Value, Denial> {
        if self.client.log.bears(peer) {
            self.note_received("tool_called", arguments, &peer.to_string());
        }
        let result = self.guarded(|| (tool.run)(arguments, peer));
        result.or_else(|denial| self.deny(arguments, peer, denial))
    }

    fn run_message(
        &self,
        params: &Value,
        peer: IpAddr,
        supplied: &[&str],
    ) -> Result<Value, Denial> {
        let read = protocol::read(params);
        let log = &self.client.log;
        let sender = quoted(params, "sender").unwrap_or_else(|| peer.to_string());
        // Who only asks to be let in may be anybody, and so may whoever cannot be understood.
        let is_known = read
            .as_ref()
            .is_ok_and(|it| newcomer(it.message.name()).is_none());
        let is_logged = is_known || log.bears(peer);
        if is_logged {
            self.note_received("message_received", params, &sender);
        }
        let outcome = self.guarded(|| {
            let understood = read?;
            log.doubts(&sender, supplied, &understood);
            self.is_our_league(&understood)?;
            let envelope = understood.envelope;
            let request = Request { envelope, peer };
            self.agent.handle(&request, understood.message)
        });
        match outcome {
            Ok(None) => Ok(ok()),
            Ok(Some(message)) => Ok(self.reply(params, &message, is_logged)),
            Err(denial) => self.deny(params, peer, denial),
        }
    }

    fn note_received(&self, event_type: &str, params: &Value, from: &str) {
        let facts = vec![("peer", json!(from))];
        (self.client).note(event_type, params, facts, Body::Beginning(params));
    }

    /// A panic is answered too: the server's hook has said where it was.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Denial>) -> Result<T, Denial> {
        let words = "Internal error: a panic; this agent's own terminal says where";
        let panicked = |_| Err(Denial::rpc(-32603, words));
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked)
    }

    /// What we know of a field that a request lacks: who holds its token, which match it is about.
    fn known(
        &self,
        message_type: &str,
        packet: &Value,
        field: &str,
        as_tool: bool,
    ) -> Option<String> {
        let text = |field: &str| packet[field].as_str();
        match field {
            "sender" => {
                let holder = || text("auth_token").and_then(|token| self.agent.holder(token));
                let newcomer = newcomer(message_type).map(String::from);
                newcomer.or_else(holder).or(Some("launcher".into()))
            }
            "conversation_id" => {
                let about = text("match_id").unwrap_or(message_type);
                let about = cut(&about.to_ascii_lowercase(), 60);
                Some(format!("conv-supplied-{about}"))
            }
            "message_type" if as_tool => Some(message_type.into()),
            "league_id" if as_tool => self.client.league_id(),
            _ => None,
        }
    }

    /// Whether a message is of our league.
    fn is_our_league(&self, understood: &Understood) -> Result<(), Refusal> {
        match (&understood.envelope.league_id, self.client.league_id()) {
            (Some(came), Some(ours)) if *came != ours => {
                let code = match understood.message {
                    Message::MatchResultReport(_) => Code::E015,
                    _ => Code::E003,
                };
                let expected = format_args!("expected {ours:?}");
                Err(Refusal::got(code, "league_id", came, expected))
            }
            _ => Ok(()),
        }
    }

    /// Answers what is not done: a refusal is a message, all else a JSON-RPC error.
    fn deny(&self, request: &Value, peer: IpAddr, denial: Denial) -> Result<Value, Denial> {
        match &denial {
            Denial::Refused(refusal) => {
                let is_logged = self.client.log.bears(peer);
                if is_logged {
                    self.agent.refused(request, peer, refusal);
                }
                let message = self.refusal(request, refusal);
                return Ok(self.reply(request, &message, is_logged));
            }
            Denial::Broken(why) => self.fault(why),
            Denial::Rpc(..) => {}
        }
        Err(denial)
    }

    /// A refusal as a message: a GAME_ERROR where the match is readable and the agent plays or
    /// referees it, else a LEAGUE_ERROR. See "Errors" in `protocol.md`.
    fn refusal(&self, request: &Value, refusal: &Refusal) -> Message {
        let original = quoted(request, "message_type").unwrap_or("UNKNOWN".into());
        let error_code = refusal.code.to_string();
        let error_description = refusal.code.name().into();
        let context = Some(refusal.context.clone());
        let match_id = quoted(request, "match_id");
        let Some(match_id) = match_id.filter(|_| self.agent.kind() != Kind::Manager) else {
            return Message::LeagueError(LeagueError {
                error_code,
                error_description,
                original_message_type: Some(original),
                context,
            });
        };
        let player_id = quoted(request, "player_id");
        let sender = self.client.sender();
        let own_id = sender.rsplit(':').next().unwrap_or_default();
        Message::GameError(GameError {
            match_id,
            error_code,
            error_description,
            affected_player: player_id.clone().unwrap_or(own_id.into()),
            action_required: original,
            player_id,
            retry_info: None,
            context,
            consequence: Some("Refused; nothing has changed".into()),
        })
    }

    /// The reply to a request, whole, in its conversation or a new one.
    fn reply(&self, request: &Value, message: &Message, is_logged: bool) -> Value {
        let conversation_id = quoted(request, "conversation_id");
        let about = About {
            conversation_id: conversation_id.unwrap_or_else(|| conversation("reply")),
            auth_token: None,
            round_id: u32::read(&request["round_id"]).ok(),
            match_id: quoted(request, "match_id"),
        };
        let reply = self.client.write(message, &about);
        if is_logged {
            let facts = vec![
                ("peer", quoted(request, "sender").into()),
                ("error_code", reply["error_code"].clone()),
                ("field", reply["context"]["field"].clone()),
            ];
            self.client.note_sent(&reply, facts);
        }
        reply
    }
}

/// How somebody signs who asks to be let in.
fn newcomer(message_type: &str) -> Option<&'static str> {
    match message_type {
        RefereeRegisterRequest::NAME => Some("referee:new"),
        LeagueRegisterRequest::NAME => Some("player:new"),
        _ => None,
    }
}

/// A JSON-RPC error, written.
fn failed(id: Value, denial: Denial) -> Reply {
    let (code, message, data) = denial.error();
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    let whole = json!({"jsonrpc": "2.0", "error": error, "id": id});
    Reply::new(OK, whole.to_string())
}
