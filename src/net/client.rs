//! How an agent speaks: it signs, sends and logs every message of its program, and reads what is
//! answered. Envelopes are built in one function here, and nowhere else.
//!
//! There are three ways out. `ask` sends a request and reads the message that answers it. `notify`
//! sends a notice to one agent. `deliver` sends one of many copies of a `Bulletin`, whose body was
//! written once. All of them end in `send`, which posts, and logs what failed.
//!
//! ureq is told to follow nothing, keep nothing and look at no proxy; its errors become a
//! `CallError` that says whose fault it was. Read next: `rpc.rs`, the way in.

use crate::net::letter::{About, Bulletin, Peer, call, joined, ok, quoted, written};
use crate::net::log::{Body, Fact, Level, Log};
use crate::net::retry::CallError;
use crate::net::sync::lock;
use crate::protocol::{self, Code, Envelope, Message, PROTOCOL, Refusal};
use crate::wire::{Fault, Timestamp, quotable};
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// How an agent speaks.
pub struct Client {
    /// How the agent signs, and of which league it is, once it knows.
    identity: Mutex<(String, Option<String>)>,
    http: ureq::Agent,
    next_id: AtomicU64,
    /// The program's log.
    pub log: Arc<Log>,
}

impl Client {
    /// A client that signs as `sender`.
    pub fn new(sender: &str, log: Arc<Log>) -> Client {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .input_buffer_size(8 << 10)
            .output_buffer_size(8 << 10)
            .user_agent("even-odd-league")
            .build();
        Client {
            identity: Mutex::new((sender.into(), None)),
            http: ureq::Agent::with_parts(config, DefaultConnector::new(), Addresses::default()),
            next_id: AtomicU64::new(1),
            log,
        }
    }

    /// From now on the agent has this name, and is of this league.
    pub fn sign_as(&self, sender: &str, league_id: &str) {
        *lock(&self.identity) = (sender.into(), Some(league_id.into()));
    }

    /// How the agent signs.
    pub fn sender(&self) -> String {
        lock(&self.identity).0.clone()
    }

    /// The league that the agent is of, once it knows.
    pub fn league_id(&self) -> Option<String> {
        lock(&self.identity).1.clone()
    }

    /// A message with its envelope: the one place that builds one.
    pub fn write(&self, message: &Message, about: &About) -> Value {
        let (sender, league_id) = lock(&self.identity).clone();
        let envelope = Envelope {
            protocol: PROTOCOL.into(),
            message_type: message.name().into(),
            sender,
            timestamp: Timestamp::now(),
            conversation_id: about.conversation_id.clone(),
            auth_token: about.auth_token.clone(),
            league_id,
            round_id: about.round_id,
            match_id: about.match_id.clone(),
        };
        protocol::write(&envelope, message)
    }

    /// Sends a request and returns the message that answers it. What we know already is supplied:
    /// who answers, and in which conversation. A foreign conversation is a warning only.
    pub fn ask(&self, to: &Peer, message: &Message, about: &About) -> Result<Message, CallError> {
        let started = Instant::now();
        let packet = self.write(message, about);
        self.note_sent(&packet, vec![("peer", json!(to.id))]);
        let mut reply = self.send(to, message.tool(), &packet, &written(&packet))?;
        let supplied = protocol::complete(&mut reply, |_, field| match field {
            "sender" => Some(to.sender()),
            "conversation_id" => Some(about.conversation_id.clone()),
            _ => None,
        });
        let understood = protocol::read(&reply).map_err(|refusal| {
            let mut came = reply.clone();
            if let Some(fields) = came.as_object_mut() {
                fields.retain(|name, _| !supplied.contains(&&**name));
            }
            CallError::wrong(refusal, came)
        });
        let facts = facts(to, started, understood.as_ref().err());
        self.note("reply_received", &reply, facts, Body::Whole(&reply));
        let understood = understood?;
        self.log.doubts(&to.id, &supplied, &understood);
        if understood.envelope.conversation_id != about.conversation_id {
            let words = format!("{} answered in another conversation", to.id);
            self.log.say(Level::Warning, "foreign_conversation", words);
        }
        Ok(understood.message)
    }

    /// Sends a notice to one agent. Any 2xx delivers it.
    pub fn notify(&self, to: &Peer, message: &Message, about: &About) -> Result<Value, CallError> {
        let packet = self.write(message, about);
        self.note_sent(&packet, vec![("peer", json!(to.id))]);
        self.tell(to, message.tool(), &packet, &written(&packet))
    }

    /// Writes a notice, without what each of its copies says for itself: when it is sent, and the
    /// token of its reader.
    pub fn bulletin(&self, message: &Message, about: &About) -> Bulletin {
        let mut packet = self.write(message, about);
        if let Some(packet) = packet.as_object_mut() {
            packet.retain(|key, _| key != "timestamp" && key != "auth_token");
        }
        Bulletin {
            method: message.tool(),
            text: written(&packet)[1..].into(),
            packet,
        }
    }

    /// Delivers one copy of a notice, with the tokens that are the reader's `own`. Any 2xx delivers
    /// it.
    pub fn deliver(
        &self,
        to: &Peer,
        bulletin: &Bulletin,
        mut own: Value,
    ) -> Result<Value, CallError> {
        own["timestamp"] = json!(Timestamp::now());
        let params = joined(&own, &bulletin.text);
        self.tell(to, bulletin.method, &bulletin.packet, &params)
    }

    /// Sends a notice, whose whole text is `params`. What is answered is returned, and logged where
    /// it is more than an "ok"; it changes nothing here.
    fn tell(
        &self,
        to: &Peer,
        method: &str,
        notice: &Value,
        params: &str,
    ) -> Result<Value, CallError> {
        let answer = match self.send(to, method, notice, params) {
            Err(CallError::Status(200..=299, body)) => Value::String(body),
            Err(CallError::Wrong(_, came)) => Value::String(came),
            answer => answer?,
        };
        if answer != ok() {
            let code = answer["error_code"].clone();
            let facts = vec![("peer", json!(to.id)), ("error_code", code)];
            self.note("reply_received", &answer, facts, Body::Beginning(&answer));
        }
        Ok(answer)
    }

    /// Where the three ways out end: posts a call and returns its `result`; a failure is logged.
    /// `packet` says what the call is about, and `params` is the whole of it as text.
    fn send(
        &self,
        to: &Peer,
        method: &str,
        packet: &Value,
        params: &str,
    ) -> Result<Value, CallError> {
        let started = Instant::now();
        self.post(to, method, params).inspect_err(|error| {
            let facts = facts(to, started, Some(error));
            let words = Body::Words(error.explain());
            self.note("delivery_failed", packet, facts, words);
        })
    }

    /// Whether an agent is there: a JSON-RPC answer means yes. The agent's own token proves who
    /// asks.
    pub fn ping(&self, to: &Peer, token: &str) -> Result<(), CallError> {
        let params = json!({"auth_token": token}).to_string();
        match self.post(to, "ping", &params) {
            // an agent, though perhaps one that knows no ping
            Ok(_) | Err(CallError::Rpc(..)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// One JSON-RPC exchange, of which nothing is logged. A JSON-RPC reply counts whatever the
    /// status.
    pub fn post(&self, to: &Peer, method: &str, params: &str) -> Result<Value, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (status, bytes) = self.post_raw(to, &call(method, params, id))?;
        let reply: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut keys = ["message_type", "result", "error"].into_iter();
        let is_reply = keys.any(|key| reply.get(key).is_some());
        if !is_reply && status != 200 {
            let body = String::from_utf8_lossy(&bytes);
            return Err(CallError::Status(status, quotable(&body)));
        }
        if !reply.is_object() {
            let refusal = Refusal::new(Code::E003, "that is not a JSON-RPC reply");
            return Err(CallError::wrong(refusal, String::from_utf8_lossy(&bytes)));
        }
        if reply.get("id").is_some_and(|came| *came != id) {
            let words = format!("{} answered with another JSON-RPC id", to.id);
            self.log.say(Level::Warning, "foreign_id", words);
        }
        result(reply)
    }

    /// Posts a body as it is, wrong or right, and returns the status and the body of the answer,
    /// whatever they are.
    pub fn post_raw(&self, to: &Peer, body: &str) -> Result<(u16, Vec<u8>), CallError> {
        let (max, limit) = (to.max, to.limit);
        let request = self
            .http
            .post(&to.endpoint)
            // some MCP servers insist on both
            .header("Accept", "application/json, text/event-stream")
            .header("Connection", "close")
            .content_type("application/json");
        let request = request.config().timeout_global(Some(limit)).build();
        let mut response = request.send(body).map_err(|error| blame(error, limit))?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(max as u64 + 1);
        match body.read_to_vec() {
            Ok(body) if body.len() <= max => Ok((status, body)),
            Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
                Err(CallError::Broken(format!("it is over {max} bytes")))
            }
            Err(error) => Err(match blame(error, limit) {
                // there was an answer, but not all of it
                CallError::Unreachable(why) => CallError::Broken(why),
                other => other,
            }),
        }
    }

    /// Logs a packet that we send, whole.
    pub fn note_sent(&self, packet: &Value, facts: Vec<Fact>) {
        self.note("message_sent", packet, facts, Body::Whole(packet));
    }

    /// Logs what has become of a packet: `facts` are what the packet itself does not say.
    pub fn note(&self, event_type: &str, packet: &Value, mut facts: Vec<Fact>, message: Body) {
        let own = ["message_type", "conversation_id", "match_id"];
        facts.extend(own.map(|key| (key, quoted(packet, key).into())));
        self.log.note(event_type, &facts, message);
    }
}

/// What a reply says: its `result`. Some agents answer with a request, some without the shell.
fn result(mut reply: Value) -> Result<Value, CallError> {
    let error = &reply["error"];
    if !error.is_null() {
        let message = error["message"].as_str().unwrap_or("no message");
        let code = error["code"].as_i64().unwrap_or_default();
        return Err(CallError::Rpc(code, quotable(message)));
    }
    if reply.get("message_type").is_some() {
        return Ok(reply);
    }
    for key in ["result", "params"] {
        if let Some(result) = reply.get_mut(key) {
            return Ok(result.take());
        }
    }
    let missing = Fault::new(&Value::Null, "a result").under("result");
    Err(CallError::wrong(missing, reply))
}

/// What the log says of a call beside its message.
fn facts(to: &Peer, started: Instant, error: Option<&CallError>) -> Vec<Fact> {
    vec![
        ("peer", json!(to.id)),
        ("error_code", json!(error.map(CallError::code))),
        ("field", json!(error.and_then(CallError::field))),
        ("elapsed_ms", json!(started.elapsed().as_millis() as u64)),
    ]
}

/// Whose fault it was that a call failed.
fn blame(error: ureq::Error, limit: Duration) -> CallError {
    // No memory, no descriptors (of the system, of the process), no buffers.
    let is_spent = |error: &io::Error| matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105));
    match error {
        ureq::Error::Timeout(_) => CallError::Late(limit),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => CallError::Late(limit),
        ureq::Error::Io(error) if is_spent(&error) => CallError::Ours(error.to_string()),
        ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
            CallError::Broken(cause(&error))
        }
        // A missing descriptor or port hides behind other errors too: try to open one before
        // blaming the peer.
        error => match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
            Ok(_) => CallError::Unreachable(cause(&error)),
            Err(ours) => CallError::Ours(ours.to_string()),
        },
    }
}

/// The cause of a failed connection in plain words.
fn cause(error: &ureq::Error) -> String {
    match error {
        ureq::Error::HostNotFound => "host unknown".into(),
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof => "it hung up without an answer".into(),
            kind => kind.to_string(),
        },
        other => other.to_string(),
    }
}

/// Finds addresses. One that stands in the URL needs no asking, nor does this machine: ureq's own
/// resolver starts a thread for every request.
#[derive(Debug, Default)]
struct Addresses(DefaultResolver);

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        limit: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = match uri.host().unwrap_or_default() {
            "localhost" => "127.0.0.1",
            host => host.trim_matches(['[', ']']),
        };
        let (Ok(address), Some(port)) = (host.parse::<IpAddr>(), uri.port_u16()) else {
            return self.0.resolve(uri, config, limit);
        };
        let mut found = self.empty();
        found.push(SocketAddr::new(address, port));
        Ok(found)
    }
}
