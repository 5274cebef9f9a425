//! JSON-RPC 2.0 in: from the bytes of a request to the agent that answers it, and from its answer to bytes. Direct calls
//! and tool calls come the same way, and one function makes every reply.
//!
//! The agent is given an envelope and a message, and returns a bare message or a `Denial`. What a request says itself
//! decides; what it lacks is supplied where we know it (see "Envelope" in `protocol.md`). A request is read once and
//! logged in one line, its reply in another; an address that is refused too often is only counted.
//! Read next: `mcp.rs`, the same handlers as tools.

use crate::net::agent::{Agent, Denial, Request};
use crate::net::answer::{answered, failed, invalid, refusal_of};
use crate::net::client::{About, Client, conversation, ok};
use crate::net::http::{OK, Reply, Service, Visitor};
use crate::net::letter::quoted;
use crate::net::log::{Body, Level, Noise};
use crate::net::mcp::Mcp;
use crate::net::sync::lock;
use crate::protocol::{
    self, Code, Entry, LeagueRegisterRequest, Message, PROTOCOL, RefereeRegisterRequest, Refusal,
    Understood,
};
use crate::wire::{Endpoint, Fault, SHOWN, Timestamp, Wire, cut};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long no other fault of our own is shown; all of them are logged.
const AWHILE: Duration = Duration::from_secs(20);

/// An agent as the HTTP server sees it.
pub struct Server {
    /// Who answers.
    pub agent: Arc<dyn Agent>,
    /// How the agent signs and logs.
    pub client: Arc<Client>,
    /// Whether a request must bring its whole envelope (`strict_envelope`).
    pub strict: bool,
    /// The addresses under which browsers may call the agent.
    pub own: Vec<Endpoint>,
    /// Shows a line on the terminal.
    pub complain: fn(&str),
    /// Has the program take its own place, because of this; comes back only if that cannot be.
    pub start_anew: Box<dyn Fn(&str) + Send + Sync>,
    /// When a fault of our own was last shown.
    pub shown: Mutex<Option<Instant>>,
    /// Who was refused how often.
    pub noise: Noise,
}

impl Service for Server {
    fn call(&self, body: &[u8], from: &Visitor) -> Reply {
        let origins = || from.headers("Origin"); // a browser has one
        if origins().all(|origin| self.is_own(origin)) && origins().count() < 2 {
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
    }

    fn start_anew(&self, why: &str) {
        (self.start_anew)(why);
    }
}

impl Server {
    /// Whether an origin is this very endpoint, host and port.
    fn is_own(&self, origin: &str) -> bool {
        Endpoint::parse(origin).is_ok_and(|origin| {
            let mut own = self.own.iter();
            own.any(|own| own.host == origin.host && own.port == origin.port)
        })
    }

    /// Where a request comes from. A browser that was led to this machine under a name that is not ours does not count
    /// as this machine: its page comes from somewhere else.
    fn peer(&self, from: &Visitor) -> IpAddr {
        let is_ours = |host: &str| {
            let named = Endpoint::parse(&format!("http://{host}"));
            named.is_ok_and(|named| self.own.iter().any(|own| own.host == named.host))
        };
        match from.address() {
            address if address.is_loopback() && !from.header("Host").is_none_or(is_ours) => {
                Ipv4Addr::UNSPECIFIED.into()
            }
            address => address,
        }
    }

    /// Tells the agent what somebody asked for in vain: cut, and not without end, since it is logged.
    fn asked_in_vain(&self, what: &str, peer: IpAddr) {
        if self.noise.count(peer, &self.client.log) {
            self.agent.asked_in_vain(&cut(what, SHOWN), peer);
        }
    }

    /// Answers one body; a notification and a reply get 202. A bare league message is answered bare.
    fn answer(&self, body: &[u8], from: &Visitor) -> Reply {
        let mut request = match serde_json::from_slice(body) {
            Ok(Value::Object(request)) => request,
            Ok(_) => return invalid(Value::Null, "must be one object; batches are not supported"),
            Err(error) => {
                let denial = Denial::rpc(-32700, format!("Parse error: {error}"));
                return failed(Value::Null, denial, OK);
            }
        };
        let has = |key: &str| request.contains_key(key);
        if has("message_type") && !has("jsonrpc") && !has("method") {
            return match self.run("", Value::Object(request), self.peer(from), false) {
                Ok(result) => Reply::new(OK, result.to_string()),
                Err(denial) => failed(Value::Null, denial, OK),
            };
        }
        let is_reply = !has("method") && (has("result") || has("error"));
        let is_version_2 = request.get("jsonrpc") == Some(&json!("2.0"));
        let params = request.remove("params").unwrap_or_else(|| json!({}));
        let id = request.remove("id");
        let echoed = id.clone().unwrap_or_default();
        if echoed.is_boolean() || echoed.is_array() || echoed.is_object() {
            return invalid(Value::Null, "id must be an integer or a string");
        }
        let method = match request.get("method").and_then(Value::as_str) {
            _ if !is_version_2 => return invalid(echoed, "jsonrpc must be \"2.0\""),
            _ if is_reply => return Reply::new("202 Accepted", ""), // to nothing that we have asked
            None | Some("") => return invalid(echoed, "method must be a string, and not empty"),
            Some(method) => method,
        };
        let outcome = self.run_method(method, params, from);
        match outcome {
            _ if id.is_none() => Reply::new("202 Accepted", ""), // a notification: done, not answered
            Ok(result) => Reply::new(OK, answered(&result, &echoed)),
            Err((status, denial)) => failed(echoed, denial, status),
        }
    }

    /// Runs a method of MCP, or a league request. A denial comes with the HTTP status that it wants.
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
            None => {
                let result = self.run(method, params, peer, false);
                result.map_err(|denial| (OK, denial))
            }
        }
    }

    /// Runs a league request: the one way in, for direct calls and for tools. The `message_type` decides; the method,
    /// a tool's name or the message type itself, may only agree with it, or stand alone.
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
        let is_tool = by_method.is_none() && self.agent.toolbox().find(method).is_some();
        let entry = match by_type.or(by_method) {
            Some(entry) => entry,
            None if is_tool => return self.run_tool(method, &params, peer),
            None if method.is_empty() => return self.run_message(&params, peer, &[]),
            None => {
                self.asked_in_vain(method, peer);
                return Err(Denial::not_taken(kind, method));
            }
        };
        let (name, tool) = (entry.message_type, entry.tool);
        if !entry.is_served_by(kind) {
            return Err(Denial::not_taken(kind, name));
        }
        if is_tool || by_method.is_some_and(|it| it.tool != tool) {
            let words = format!("method {method}: {name} belongs to {tool}");
            return Err(Denial::rpc(-32602, words));
        }
        let known = self.known(name, &params, as_tool);
        let supplied = protocol::complete(&mut params, known);
        self.run_message(&params, peer, &supplied)
    }

    fn run_tool(&self, name: &str, arguments: &Value, peer: IpAddr) -> Result<Value, Denial> {
        if self.noise.count(peer, &self.client.log) {
            let facts = json!({"peer": peer});
            let message = Body::Beginning(arguments);
            self.client.note("tool_called", arguments, facts, message);
        }
        let toolbox = self.agent.toolbox();
        let result = self.guarded(|| match toolbox.find(name) {
            Some(tool) => (tool.run)(arguments, peer),
            None => Err(Denial::not_taken(self.agent.kind(), name)),
        });
        result.or_else(|denial| self.deny(arguments, peer, denial))
    }

    fn run_message(
        &self,
        params: &Value,
        peer: IpAddr,
        supplied: &[String],
    ) -> Result<Value, Denial> {
        let read = protocol::read(params);
        let log = &self.client.log;
        let sender = quoted(params, "sender").unwrap_or(peer.to_string());
        // Who only asks to be let in may be anybody, and so may whoever cannot be understood.
        let is_known = read
            .as_ref()
            .is_ok_and(|it| newcomer(it.message.name()).is_none());
        let is_logged = is_known || self.noise.count(peer, log);
        if is_logged {
            let facts = json!({"peer": sender});
            let message = Body::Beginning(params);
            self.client.note("message_received", params, facts, message);
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

    /// A bug of ours is answered too.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Denial>) -> Result<T, Denial> {
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(Denial::Broken("a bug of ours".into())))
    }

    /// What we know of a request, where we supply it: who holds its token, which match it is about, and when it came.
    fn known(&self, message_type: &str, packet: &Value, as_tool: bool) -> Value {
        let newcomer = newcomer(message_type);
        if self.strict && newcomer.is_none() && !as_tool {
            return json!({});
        }
        let token = packet["auth_token"].as_str();
        let holder = || token.and_then(|token| self.agent.holder(token));
        let about = packet["match_id"].as_str().unwrap_or(message_type);
        let about = cut(&about.to_ascii_lowercase(), 60);
        let mut known = json!({
            "protocol": PROTOCOL,
            "sender": newcomer.map(String::from).or_else(holder).unwrap_or("launcher".into()),
            "conversation_id": format!("conv-supplied-{about}"),
            "timestamp": Timestamp::now(),
        });
        if as_tool {
            known["message_type"] = message_type.into();
            if let Some(league_id) = self.client.league_id() {
                known["league_id"] = league_id.into();
            }
        }
        known
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
                let is_logged = self.noise.count(peer, &self.client.log);
                if is_logged {
                    self.agent.refused(request, peer, refusal);
                }
                let sender = self.client.sender();
                let message = refusal_of(self.agent.kind(), &sender, request, refusal);
                return Ok(self.reply(request, &message, is_logged));
            }
            Denial::Broken(why) => {
                self.fault(why);
                self.show_fault(why);
            }
            Denial::Rpc(..) => {}
        }
        Err(denial)
    }

    /// Shows a fault of our own to whoever can mend it; the next one after a while.
    fn show_fault(&self, why: &str) {
        let mut shown = lock(&self.shown);
        if shown.is_none_or(|at| at.elapsed() >= AWHILE) {
            (self.complain)(&cut(why, SHOWN));
            *shown = Some(Instant::now());
        }
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
            let facts = json!({
                "peer": quoted(request, "sender"),
                "error_code": reply["error_code"],
                "field": reply["context"]["field"],
            });
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
