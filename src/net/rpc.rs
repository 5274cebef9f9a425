//! JSON-RPC 2.0 in: from the bytes of a request to the agent that answers it, and from its answer to bytes. Direct calls
//! and tool calls come the same way, and one function makes every reply.
//!
//! The agent is given an envelope and a message, and returns a bare message or a `Denial`. What a request says itself
//! decides; what it lacks is supplied where we know it (see "Envelope" in `protocol.md`). A request is read once and
//! logged in one line, its reply in another; an address that is refused too often is only counted.
//! Read next: `mcp.rs`, the same handlers as tools.

use crate::net::agent::{Agent, Denial, Request};
use crate::net::answer::{Answer, answered, failed, invalid, quoted, refusal_of};
use crate::net::client::{About, Client, conversation, ok};
use crate::net::http::{OK, Reply, Service, Visitor};
use crate::net::log::{Body, Level, Line, Noise};
use crate::net::mcp::{Asked, Mcp};
use crate::net::sync::lock;
use crate::protocol::{
    self, Code, Entry, Given, LeagueRegisterRequest, Message, PROTOCOL, Packet,
    RefereeRegisterRequest, Refusal, Understood,
};
use crate::wire::{Endpoint, Fault, SHOWN, Timestamp, Wire, cut};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a fault of our own is not shown again.
const AWHILE: Duration = Duration::from_secs(60);

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
    /// Has the program take its own place; comes back only if that cannot be.
    pub start_anew: Box<dyn Fn() + Send + Sync>,
    /// The last fault of our own that was shown, and when.
    pub shown: Mutex<Option<(String, Instant)>>,
    /// Who was refused how often.
    pub noise: Noise,
}

impl Service for Server {
    fn call(&self, body: &[u8], from: &Visitor) -> Reply {
        let mut origins = from.headers("Origin");
        let is_own = match (origins.next(), origins.next()) {
            (None, _) => true, // no browser
            (Some(origin), None) => Endpoint::parse(origin).is_ok_and(|it| self.is_own(&it)),
            (Some(_), Some(_)) => false,
        };
        if is_own {
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
            self.agent.asked_in_vain(path, peer);
        }
        page
    }

    fn fault(&self, what: &str) {
        self.client.log.orchestrator(Level::Error, "fault", what);
    }

    fn start_anew(&self, why: &str) {
        (self.complain)(&format!("{why}: the program takes its own place"));
        (self.start_anew)();
    }
}

impl Server {
    /// Whether an origin is this very endpoint, host and port.
    fn is_own(&self, origin: &Endpoint) -> bool {
        let is_same = |own: &Endpoint| own.host == origin.host && own.port == origin.port;
        self.own.iter().any(is_same)
    }

    /// Where a request comes from. A browser that was led to this machine under a name that is not ours does not count
    /// as this machine: its page comes from somewhere else.
    fn peer(&self, from: &Visitor) -> IpAddr {
        let host = from.headers("Host").next();
        let named = host.map(|host| Endpoint::parse(&format!("http://{host}")));
        let is_ours = match named {
            None => true,
            Some(Ok(named)) => self.own.iter().any(|own| own.host == named.host),
            Some(Err(_)) => false,
        };
        if is_ours || !from.address.is_loopback() {
            from.address
        } else {
            Ipv4Addr::UNSPECIFIED.into()
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
                Ok(answer) => Reply::new(OK, answer.result.to_string()),
                Err(denial) => failed(Value::Null, denial, OK),
            };
        }
        let is_reply = !has("method") && (has("result") || has("error"));
        let is_version_2 = request.get("jsonrpc") == Some(&json!("2.0"));
        let params = request.remove("params").unwrap_or_else(|| json!({}));
        let id = request.remove("id");
        let echoed = match &id {
            Some(id) if id.is_number() || id.is_string() => id.clone(),
            None | Some(Value::Null) => Value::Null,
            Some(_) => return invalid(Value::Null, "id must be an integer or a string"),
        };
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
        let Some(mcp) = Mcp::find(method, &params, from) else {
            let answer = self.run(method, params, peer, false);
            return answer.map(|it| it.result).map_err(|denial| (OK, denial));
        };
        mcp.check().map_err(|denial| ("400 Bad Request", denial))?;
        let sender = self.client.sender();
        let asked = mcp.asked(&*self.agent, &sender);
        match asked.map_err(|denial| (mcp.status(&denial), denial))? {
            Asked::Done(result) => Ok(result),
            Asked::Call(name, arguments) => {
                let answer = self.run(&name, arguments, peer, true);
                Ok(mcp.tool_result(&*self.agent, &sender, &name, answer))
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
    ) -> Result<Answer, Denial> {
        let kind = self.agent.kind();
        let by_type = params["message_type"].as_str().and_then(Entry::of_message);
        let by_method = Entry::of_method(method);
        let is_tool = by_method.is_none() && self.agent.toolbox().find(method).is_some();
        let named = by_method.map(|it| it.tool).or(is_tool.then_some(method));
        let entry = match (by_type, by_method) {
            (Some(entry), _)
                if entry.is_served_by(kind) && named.is_some_and(|it| it != entry.tool) =>
            {
                let (name, tool) = (entry.message_type, entry.tool);
                let words = format!("method {method}: {name} belongs to {tool}");
                return Err(Denial::rpc(-32602, words));
            }
            (Some(entry), _) => entry,
            (None, None) if is_tool => return self.run_tool(method, &params, peer),
            (None, None) if method.is_empty() => return self.run_message(&params, peer, &[]),
            (None, None) => {
                self.agent.asked_in_vain(method, peer);
                return Err(Denial::not_taken(kind, &cut(method, 60)));
            }
            (None, Some(named)) => Entry::served_by(kind)
                .find(|it| it.tool == named.tool)
                .unwrap_or(named),
        };
        if !entry.is_served_by(kind) {
            return Err(Denial::not_taken(kind, entry.message_type));
        }
        let given = self.given(entry.message_type, &params, as_tool);
        let supplied = protocol::complete(&mut params, given);
        self.run_message(&params, peer, &supplied)
    }

    fn run_tool(&self, name: &str, arguments: &Value, peer: IpAddr) -> Result<Answer, Denial> {
        let nothing = Packet::new();
        let packet = arguments.as_object().unwrap_or(&nothing);
        if self.noise.count(peer, &self.client.log) {
            let address = peer.to_string();
            let message = Some(Body::Beginning(packet));
            let line = Line {
                message,
                ..Line::with(&address)
            };
            self.client.note("tool_called", packet, line);
        }
        let toolbox = self.agent.toolbox();
        let tool = toolbox.find(name);
        let run = || match tool {
            Some(tool) => tool.run(arguments, peer),
            None => Err(Denial::not_taken(self.agent.kind(), name)),
        };
        match self.guarded(run) {
            Ok(result) => Ok(Answer::done(result)),
            Err(denial) => self.deny(packet, peer, denial),
        }
    }

    fn run_message(
        &self,
        params: &Value,
        peer: IpAddr,
        supplied: &[&str],
    ) -> Result<Answer, Denial> {
        let nothing = Packet::new();
        let packet = params.as_object().unwrap_or(&nothing);
        let address = peer.to_string();
        let sender = packet.get("sender").and_then(Value::as_str);
        let sender = sender.unwrap_or(&address);
        let log = &self.client.log;
        let note = || {
            let message = Some(Body::Beginning(packet));
            let line = Line {
                message,
                ..Line::with(sender)
            };
            self.client.note("message_received", packet, line);
            log.supplied(sender, supplied);
        };
        let is_noisy = self.noise.is_over(peer);
        if !is_noisy {
            note();
        }
        let handle = |understood: Understood| {
            if is_noisy {
                note(); // readable all the same
            }
            log.doubts(sender, &understood);
            self.is_our_league(&understood)?;
            let request = Request {
                envelope: understood.envelope,
                peer,
            };
            self.guarded(|| self.agent.handle(&request, understood.message))
        };
        let read = protocol::read(params).map_err(Denial::Refused);
        match read.and_then(handle) {
            Ok(None) => Ok(Answer::done(ok())),
            Ok(Some(message)) => Ok(self.reply(packet, &message, None, true)),
            Err(denial) => self.deny(packet, peer, denial),
        }
    }

    /// A bug of ours is answered too.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Denial>) -> Result<T, Denial> {
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|_| Err(Denial::Broken("a bug of ours".into())))
    }

    /// What we supply to a request, where we do: who holds its token, which match it is about, and when it came.
    fn given(&self, message_type: &'static str, packet: &Value, as_tool: bool) -> Given {
        let (registers, sender) = match message_type {
            RefereeRegisterRequest::NAME => (true, Some("referee:new".into())),
            LeagueRegisterRequest::NAME => (true, Some("player:new".into())),
            _ => {
                let token = packet["auth_token"].as_str();
                (false, token.and_then(|token| self.agent.holder(token)))
            }
        };
        if self.strict && !registers && !as_tool {
            return Given::new();
        }
        let about = packet["match_id"].as_str().unwrap_or(message_type);
        let about = cut(&about.to_ascii_lowercase(), 60);
        let mut given: Given = vec![
            ("protocol", PROTOCOL.into()),
            ("sender", sender.unwrap_or("launcher".into()).into()),
            ("conversation_id", format!("conv-supplied-{about}").into()),
            ("timestamp", Timestamp::now().to_string().into()),
        ];
        if as_tool {
            given.push(("message_type", message_type.into()));
            let league_id = self.client.league_id();
            given.extend(league_id.map(|league_id| ("league_id", league_id.into())));
        }
        given
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

    fn deny(&self, request: &Packet, peer: IpAddr, denial: Denial) -> Result<Answer, Denial> {
        match denial {
            Denial::Refused(refusal) => {
                let is_logged = self.noise.count(peer, &self.client.log);
                if is_logged {
                    self.agent.refused(request, peer, &refusal);
                }
                let message =
                    refusal_of(self.agent.kind(), &self.client.sender(), request, &refusal);
                Ok(self.reply(request, &message, Some(&refusal), is_logged))
            }
            Denial::Broken(why) => {
                self.fault(&why);
                self.show_fault(&why);
                Err(Denial::rpc(-32603, format!("Internal error: {why}")))
            }
            rpc => Err(rpc),
        }
    }

    /// Shows a fault of our own to whoever can mend it; the same one again after a while.
    fn show_fault(&self, why: &str) {
        let mut shown = lock(&self.shown);
        let is_known = match &*shown {
            Some((known, at)) => known == why && at.elapsed() < AWHILE,
            None => false,
        };
        if !is_known {
            (self.complain)(&cut(why, SHOWN));
            *shown = Some((why.into(), Instant::now()));
        }
    }

    /// The reply to a request, whole, in its conversation or a new one. Where it refuses the request, `refusal` is why.
    fn reply(
        &self,
        request: &Packet,
        message: &Message,
        refusal: Option<&Refusal>,
        is_logged: bool,
    ) -> Answer {
        let conversation_id = quoted(request, "conversation_id");
        let round_id = request.get("round_id").map(u32::read);
        let about = About {
            conversation_id: conversation_id.unwrap_or_else(|| conversation("reply")),
            auth_token: None,
            round_id: round_id.and_then(Result::ok),
            match_id: quoted(request, "match_id"),
        };
        let packet = self.client.write(message, &about);
        if is_logged {
            let line = Line {
                level: refusal.map_or(Level::Info, |_| Level::Warning),
                peer: request.get("sender").and_then(Value::as_str),
                error_code: refusal.map(|it| it.code.code()),
                field: refusal.and_then(Refusal::field_name),
                ..Line::default()
            };
            self.client.note("message_sent", &packet, line);
        }
        Answer {
            result: Value::Object(packet),
            refused: refusal.map(ToString::to_string),
        }
    }
}
