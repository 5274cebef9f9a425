//! How an agent speaks: it signs, sends and logs every message of its program, and reads what is answered. Envelopes
//! are built in one function here, and nowhere else. One `exchange` goes out; `ask` and `notify` are made of it.
//!
//! ureq is told to follow nothing, keep nothing and look at no proxy; its errors become a `CallError` that says whose
//! fault it was. A fault of our own machine (no descriptor, thread or port) is met here: the call is repeated for a
//! while, and nobody above knows. Read next: `rpc.rs`, the way in.

use crate::net::log::{Body, Level, Line, Log};
use crate::net::retry::{CallError, SHOWN, pause, quotable};
use crate::net::secret::secret;
use crate::net::sync::lock;
use crate::protocol::{self, Code, Envelope, Given, Kind, Message, PROTOCOL, Packet, Refusal};
use crate::wire::{Endpoint, Fault, Timestamp, cut};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// The largest notice, and the largest answer of a manager, in bytes: a table of 100 players has 20 KB.
pub const MAX_NOTICE: usize = 256 << 10;
/// Between two attempts at a call that our own machine could not make.
const OWN_FAULT_PAUSE: Duration = Duration::from_millis(250);

/// Finds addresses. One that stands in the URL needs no asking: ureq's own resolver starts a thread for every request.
#[derive(Debug, Default)]
struct Addresses(DefaultResolver);

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        limit: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let literal = uri
            .host()
            .and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
        let (Some(address), Some(port)) = (literal, uri.port_u16()) else {
            return self.0.resolve(uri, config, limit);
        };
        let mut found = self.empty();
        found.push(SocketAddr::new(address, port));
        Ok(found)
    }
}

/// Whom a call is for.
#[derive(Debug, Clone)]
pub struct Peer {
    /// What it is.
    pub kind: Kind,
    /// Its id, for the log.
    pub id: String,
    /// Its URL.
    pub endpoint: String,
    /// The largest answer that is read from it, in bytes.
    pub max: usize,
}

impl Peer {
    /// The league manager, at that URL.
    pub fn manager(endpoint: &str) -> Peer {
        Peer {
            kind: Kind::Manager,
            id: Kind::Manager.word().into(),
            endpoint: endpoint.into(),
            max: MAX_NOTICE,
        }
    }

    /// How it signs.
    fn sender(&self) -> String {
        if self.kind == Kind::Manager {
            self.id.clone()
        } else {
            format!("{}:{}", self.kind, self.id)
        }
    }
}

/// What a message is about: the parts of its envelope that its sender chooses.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "fields of the envelope")]
pub struct About {
    pub conversation_id: String,
    pub auth_token: Option<String>,
    pub round_id: Option<u32>,
    pub match_id: Option<String>,
    pub match_token: Option<String>,
}

/// A notice as it is delivered to many.
pub struct Letter(Message);

impl Letter {
    /// Of a message.
    pub fn new(message: &Message) -> Letter {
        Letter(message.clone())
    }
}

/// How an agent speaks.
pub struct Client {
    /// How it signs, and of which league it is, once it knows.
    identity: Mutex<(String, Option<String>)>,
    http: ureq::Agent,
    next_id: AtomicU64,
    /// How long a call is repeated that our own machine cannot make.
    patience: Duration,
    /// The program's log.
    pub log: Arc<Log>,
}

impl Client {
    /// A client that signs as `sender` and bears with faults of our own machine for so long.
    pub fn new(sender: &str, patience: Duration, log: Arc<Log>) -> Client {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .input_buffer_size(8 << 10)
            .output_buffer_size(8 << 10)
            .user_agent("even-odd-league");
        Client {
            identity: Mutex::new((sender.into(), None)),
            http: ureq::Agent::with_parts(
                config.build(),
                DefaultConnector::new(),
                Addresses::default(),
            ),
            next_id: AtomicU64::new(1),
            patience,
            log,
        }
    }

    /// From now on the agent has this name, and is of this league.
    pub fn sign_as(&self, sender: &str, league_id: &str) {
        *lock(&self.identity) = (sender.into(), Some(league_id.into()));
    }

    /// How it signs.
    pub fn sender(&self) -> String {
        lock(&self.identity).0.clone()
    }

    /// The league it is of, once it knows.
    pub fn league_id(&self) -> Option<String> {
        lock(&self.identity).1.clone()
    }

    /// A message with its envelope.
    pub fn write(&self, message: &Message, about: &About) -> Packet {
        protocol::write(&self.envelope(message.name(), about), message)
    }

    /// The envelope of a message: the one place that builds one.
    pub fn envelope(&self, message_type: &str, about: &About) -> Envelope {
        let (sender, league_id) = lock(&self.identity).clone();
        Envelope {
            protocol: PROTOCOL.into(),
            message_type: message_type.into(),
            sender,
            timestamp: Timestamp::now(),
            conversation_id: about.conversation_id.clone(),
            auth_token: about.auth_token.clone(),
            league_id,
            round_id: about.round_id,
            match_id: about.match_id.clone(),
        }
    }

    /// Sends a request and returns the message that answers it. What we know already is supplied: who answers, and in
    /// which conversation. A foreign conversation is a warning only.
    pub fn ask(
        &self,
        to: &Peer,
        message: &Message,
        about: &About,
        limit: Duration,
    ) -> Result<Message, CallError> {
        let started = Instant::now();
        let mut result = self.exchange(to, message, about, limit)?;
        let known = given(to, about, &result);
        self.log
            .supplied(&to.id, &protocol::complete(&mut result, known));
        let read = protocol::read(&result);
        let (refusal, empty) = (read.as_ref().err(), Map::new());
        let line = Line {
            level: if refusal.is_some() {
                Level::Warning
            } else {
                Level::Info
            },
            conversation_id: Some(&about.conversation_id), // where the reply itself has none
            peer: Some(&to.id),
            error_code: refusal.map(|it| it.code.code()),
            field: refusal.and_then(Refusal::field_name),
            elapsed_ms: Some(started.elapsed().as_millis() as u64),
            ..Line::default()
        };
        self.note("reply_received", result.as_object().unwrap_or(&empty), line);
        let understood = read.map_err(|refusal| CallError::wrong(refusal, &result))?;
        self.log.doubts(&to.id, &understood);
        if understood.envelope.conversation_id != about.conversation_id {
            let words = format!("{} answered in another conversation", to.id);
            self.log.say(Level::Warning, "foreign_conversation", words);
        }
        Ok(understood.message)
    }

    /// Sends a notice: any 2xx delivers it. What is answered is logged, and changes nothing.
    pub fn notify(
        &self,
        to: &Peer,
        message: &Message,
        about: &About,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let answer = self.exchange(to, message, about, limit);
        let notice = Packet::from_iter([("message_type".to_string(), message.name().into())]);
        self.delivered(to, &notice, answer)
    }

    /// The one way out: writes, logs and sends a message, and returns the `result` that came.
    fn exchange(
        &self,
        to: &Peer,
        message: &Message,
        about: &About,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let packet = self.write(message, about);
        self.note(
            "message_sent",
            &packet,
            Line {
                peer: Some(&to.id),
                ..Line::default()
            },
        );
        self.send(to, message.tool(), &packet, limit)
    }

    /// Sends a packet under a method and returns the `result`. Only failures are logged.
    pub fn send(
        &self,
        to: &Peer,
        method: &str,
        packet: &Packet,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = call(method, packet, id);
        self.patiently(to, packet, || self.post(to, id, &body, limit))
    }

    /// Logs a notice for many, once, without anybody's token.
    pub fn note_to_many(&self, message: &Message, about: &About, recipients: usize) {
        self.note(
            "message_sent",
            &self.write(message, about),
            Line {
                recipients: Some(recipients),
                ..Line::default()
            },
        );
    }

    /// Delivers a notice that was logged for many: any 2xx does.
    pub fn deliver(
        &self,
        to: &Peer,
        letter: &Letter,
        about: &About,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let message = &letter.0;
        let packet = self.write(message, about);
        let answer = self.send(to, message.tool(), &packet, limit);
        self.delivered(to, &packet, answer)
    }

    /// Any 2xx delivers a notice. What was answered is logged, and changes nothing.
    fn delivered(
        &self,
        to: &Peer,
        notice: &Packet,
        answer: Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        let answer = match answer {
            Err(CallError::Status(200..=299, body)) => Value::String(body),
            Err(CallError::Wrong(_, came)) => Value::String(came),
            answer => answer?,
        };
        if answer != ok() {
            let message = Some(Body::Words(cut(&answer.to_string(), SHOWN)));
            self.note(
                "notice_answered",
                notice,
                Line {
                    peer: Some(&to.id),
                    message,
                    ..Line::default()
                },
            );
        }
        Ok(answer)
    }

    /// Makes a call, and again where our own machine could not make it, as long as there is patience.
    fn patiently(
        &self,
        to: &Peer,
        packet: &Packet,
        call: impl Fn() -> Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        let first = Instant::now();
        loop {
            let started = Instant::now();
            let error = match call() {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let line = Line {
                level: Level::Warning,
                peer: Some(&to.id),
                error_code: Some(error.code().code()),
                field: error.field(),
                elapsed_ms: Some(started.elapsed().as_millis() as u64),
                message: Some(Body::Words(error.explain())),
                ..Line::default()
            };
            self.note("delivery_failed", packet, line);
            if !error.is_ours() || first.elapsed() >= self.patience {
                return Err(error);
            }
            pause(OWN_FAULT_PAUSE);
        }
    }

    /// Posts a body as it is, wrong or right, and returns the status and the body of the answer, whatever they are.
    pub fn post_raw(
        &self,
        url: &str,
        body: &str,
        max: usize,
        limit: Duration,
    ) -> Result<(u16, Vec<u8>), CallError> {
        let endpoint = Endpoint::parse(url).map_err(|legal| {
            CallError::Unreachable(format!("{:?} is not {legal}", cut(url, 60)))
        })?;
        // Both, for MCP servers that insist; plain agents ignore it.
        let request = self
            .http
            .post(endpoint.to_string())
            .header("Accept", "application/json, text/event-stream");
        let request = request
            .content_type("application/json")
            .header("Connection", "close");
        let request = request.config().timeout_global(Some(limit)).build();
        finish(request.send(body), limit, max as u64)
    }

    /// One HTTP exchange. A JSON-RPC reply counts whatever the status.
    fn post(&self, to: &Peer, id: u64, body: &str, limit: Duration) -> Result<Value, CallError> {
        let (status, bytes) = self.post_raw(&to.endpoint, body, to.max, limit)?;
        let text = || quotable(&String::from_utf8_lossy(&bytes));
        let reply = match serde_json::from_slice(&bytes) {
            Ok(Value::Object(reply)) if status == 200 || is_reply(&reply) => reply,
            _ if status != 200 => return Err(CallError::Status(status, text())),
            Ok(_) => return Err(CallError::Wrong(not("a JSON-RPC reply"), text())),
            Err(_) => return Err(CallError::Wrong(not("JSON"), text())),
        };
        if reply.get("id").is_some_and(|came| *came != json!(id)) {
            self.log.say(
                Level::Warning,
                "foreign_id",
                format!("{} answered with another JSON-RPC id", to.id),
            );
        }
        result(reply)
    }

    /// Whether anybody is there: any HTTP answer means yes. The agent's own token proves who asks.
    pub fn ping(&self, to: &Peer, token: &str, limit: Duration) -> Result<(), CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = call(
            "ping",
            &Packet::from_iter([("auth_token".to_string(), token.into())]),
            id,
        );
        match self.post(to, id, &body, limit) {
            Err(error) if error.is_silence() && !matches!(error, CallError::Status(..)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Gets a page beside an agent's endpoint, `/health` for instance.
    pub fn get(
        &self,
        endpoint: &Endpoint,
        path: &str,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let page = self.http.get(endpoint.clone().with_path(path).to_string());
        let response = page.config().timeout_global(Some(limit)).build().call();
        let (status, bytes) = finish(response, limit, MAX_NOTICE as u64)?;
        let text = quotable(&String::from_utf8_lossy(&bytes));
        match serde_json::from_slice(&bytes) {
            Ok(page) if status == 200 => Ok(page),
            _ if status != 200 => Err(CallError::Status(status, text)),
            _ => Err(CallError::Wrong(not("JSON"), text)),
        }
    }

    /// Logs a packet: `line` says what the packet itself does not.
    pub fn note<'a>(&self, event_type: &str, packet: &'a Packet, line: Line<'a>) {
        let text = |key: &str| packet.get(key).and_then(Value::as_str);
        let message = line.message.or(Some(Body::Packet(packet)));
        let (message_type, conversation_id) = (
            text("message_type"),
            text("conversation_id").or(line.conversation_id),
        );
        self.log.write(
            event_type,
            Line {
                message_type,
                conversation_id,
                match_id: text("match_id"),
                message,
                ..line
            },
        );
    }
}

/// What we know of a reply before it comes.
fn given(to: &Peer, about: &About, reply: &Value) -> Given {
    let now = Value::from(Timestamp::now().to_string());
    let mut given = vec![
        ("protocol", PROTOCOL.into()),
        ("sender", to.sender().into()),
        ("conversation_id", about.conversation_id.clone().into()),
        ("timestamp", now.clone()),
    ];
    if reply["message_type"] == protocol::GameJoinAck::NAME {
        given.push(("arrival_timestamp", now));
    }
    given
}

/// A JSON-RPC request, written.
pub fn call(method: &str, params: &impl Serialize, id: impl Serialize) -> String {
    #[derive(Serialize)]
    struct RpcCall<'a, P, I> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
        id: I,
    }
    serde_json::to_string(&RpcCall {
        jsonrpc: "2.0",
        method,
        params,
        id,
    })
    .unwrap_or_default()
}

/// Whether an object is a reply, whatever status it came with.
fn is_reply(reply: &Packet) -> bool {
    reply.contains_key("message_type")
        || ["result", "error"]
            .iter()
            .any(|key| reply.contains_key(*key))
}

/// What a reply says: its `result`. Some agents answer with a request, some without the shell.
fn result(mut reply: Packet) -> Result<Value, CallError> {
    if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
        let message = error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or("no message");
        let code = error
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        return Err(CallError::Rpc(code, quotable(message)));
    }
    if reply.contains_key("message_type") {
        return Ok(Value::Object(reply));
    }
    let result = reply.remove("result").or_else(|| reply.remove("params"));
    result.ok_or_else(|| {
        CallError::wrong(
            Fault::new(&Value::Null, "a result").under("result"),
            Value::Object(reply),
        )
    })
}

fn not(expected: &str) -> Refusal {
    Refusal::new(Code::E003, format!("that is not {expected}"))
}

/// The status and the body of an answer, read to its end.
fn finish(
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    limit: Duration,
    max: u64,
) -> Result<(u16, Vec<u8>), CallError> {
    let mut response = response.map_err(|error| blame(error, limit))?;
    let status = response.status().as_u16();
    match response
        .body_mut()
        .with_config()
        .limit(max + 1)
        .read_to_vec()
    {
        Ok(body) if body.len() as u64 <= max => Ok((status, body)),
        Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
            Err(CallError::Broken(format!("it is over {max} bytes")))
        }
        Err(error) => Err(match blame(error, limit) {
            CallError::Unreachable(why) => CallError::Broken(why), // there was an answer, but not all of it
            other => other,
        }),
    }
}

/// Whose fault it was that a call failed.
fn blame(error: ureq::Error, limit: Duration) -> CallError {
    // No memory, no descriptors (of the system, of the process), no buffers.
    let spent = |error: &io::Error| matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105));
    match error {
        ureq::Error::Timeout(_) => CallError::Late(limit),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => CallError::Late(limit),
        ureq::Error::Io(error) if spent(&error) => CallError::Ours(error.to_string()),
        ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
            CallError::Broken(cause(&error))
        }
        // A missing descriptor or port hides behind other errors too: try to open one before blaming the peer.
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
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            "connection refused".into()
        }
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionReset => {
            "connection reset".into()
        }
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it hung up without an answer".into()
        }
        other => other.to_string().trim_start_matches("io: ").into(),
    }
}

/// What a notice is answered.
pub fn ok() -> Value {
    json!({"status": "ok"})
}

/// A new conversation: the words, then eight random digits, so that runs never mix.
pub fn conversation(words: &str) -> String {
    format!("conv-{words}-{}", secret(8))
}
