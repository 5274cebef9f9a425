//! The HTTP client of every agent: it builds, sends and logs all messages of the program, and reads
//! the replies. Envelopes are built in one function here, and nowhere else.
//!
//! `call` sends a request and returns the message that answers it. `notify` sends a notification to
//! one agent, `deliver` a copy of a notification for many. Read next: `rpc.rs`, the other
//! direction.

use super::call_error::CallError;
use super::log::{Content, Field, Log, to_json};
use super::sync::{lock, secret};
use crate::json::FieldError;
use crate::protocol::{
    self, AgentKind, Call, Envelope, ErrorCode, Message, ProtocolError, StatusOk,
};
use crate::values::{Timestamp, redact_and_truncate};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// Maximum size of a notification, and of a reply of the manager, in bytes: a table of 100 players
/// has 20 KB.
pub const MAX_NOTICE: usize = 256 << 10;

/// The recipient of a request, and the limits of its reply.
#[derive(Debug)]
pub struct Peer {
    /// The kind of agent.
    pub kind: AgentKind,
    /// Its id, for the log.
    pub id: String,
    /// Its URL.
    pub endpoint: String,
    /// Maximum size of its reply, in bytes.
    pub max_bytes: usize,
    /// Maximum time until its reply is complete.
    pub timeout: Duration,
}

impl Peer {
    /// Returns the league manager at a URL.
    pub fn manager(endpoint: &str, timeout: Duration) -> Peer {
        Peer {
            kind: AgentKind::Manager,
            id: AgentKind::Manager.to_string(),
            endpoint: endpoint.into(),
            max_bytes: MAX_NOTICE,
            timeout,
        }
    }
}

/// The fields of an envelope that the sender of a message chooses.
#[derive(Debug, Default)]
pub struct MessageContext {
    pub conversation_id: String,
    pub auth_token: Option<String>,
    pub round_id: Option<u32>,
    pub match_id: Option<String>,
}

/// A notification for many recipients. Its text is written once; each copy adds its own fields.
#[derive(Debug)]
pub struct Broadcast {
    method: &'static str,
    /// The fields that name the notification in the log.
    header: Value,
    /// The notification as JSON, without the fields of each copy.
    text: String,
}

/// Sends the messages of a program.
pub struct Client {
    /// The name with which the agent signs, and its league, once it is known.
    identity: Mutex<(String, Option<String>)>,
    http: ureq::Agent,
    next_id: AtomicU64,
    /// The program's log.
    pub log: Arc<Log>,
}

impl Client {
    /// Returns a client that signs as `sender`.
    pub fn new(sender: &str, log: Arc<Log>) -> Client {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections(0)
            .input_buffer_size(8 << 10) // the default of 128 KB is cleared for every request
            .output_buffer_size(8 << 10)
            .max_response_header_size(7 << 10) // more would not fit into the buffer, and be no answer
            .user_agent("even-odd-league")
            .build();

        Client {
            identity: Mutex::new((sender.into(), None)),
            http: ureq::Agent::with_parts(config, DefaultConnector::new(), AddressResolver),
            next_id: AtomicU64::new(1),
            log,
        }
    }

    /// Sets the name and the league of the agent.
    pub fn set_identity(&self, sender: &str, league_id: &str) {
        *lock(&self.identity) = (sender.into(), Some(league_id.into()));
    }

    /// Returns the name with which the agent signs.
    pub fn sender(&self) -> String {
        lock(&self.identity).0.clone()
    }

    /// Returns the league of the agent, once it is known.
    pub fn league_id(&self) -> Option<String> {
        lock(&self.identity).1.clone()
    }

    /// Returns a message with its envelope.
    pub fn build(&self, message: &impl Message, context: &MessageContext) -> Value {
        let (sender, league_id) = lock(&self.identity).clone();
        let envelope = Envelope {
            auth_token: context.auth_token.clone(),
            league_id,
            round_id: context.round_id,
            match_id: context.match_id.clone(),
            ..Envelope::new(&sender, &context.conversation_id)
        };
        protocol::to_json(&envelope, message)
    }

    /// Sends a request and returns the message that answers it.
    pub fn call<C: Call<Reply: Message>>(
        &self,
        to: &Peer,
        request: &C,
        context: &MessageContext,
    ) -> Result<C::Reply, CallError> {
        let started = Instant::now();
        let packet = self.build_and_log(to, request, context);
        let mut reply = self.send(to, request.spec().method, &packet, to_json(&packet))?;

        // Fill in what is known: who answers, and in which conversation.
        let mut defaults = protocol::fill_defaults(&mut reply, |field| match field {
            "sender" => Some(to.id.clone()),
            "conversation_id" => Some(context.conversation_id.clone()),
            _ => None,
        });
        if to.kind == AgentKind::Player && reply.is_object() && reply["player_id"].is_null() {
            reply["player_id"] = json!(to.id);
            defaults.push("player_id");
        }
        let parsed = protocol::parse::<C::Reply>(&reply)
            .map_err(|refusal| CallError::wrong_reply(&reply, &defaults, refusal));

        let fields = call_fields(to, started, parsed.as_ref().err());
        self.log
            .message("reply_received", &reply, fields, Content::Full(&reply));
        let parsed = parsed?;
        self.log.warnings(&to.id, &defaults, &parsed);
        Ok(parsed.message)
    }

    fn build_and_log(&self, to: &Peer, message: &impl Message, context: &MessageContext) -> Value {
        let packet = self.build(message, context);
        let fields = vec![("peer", json!(to.id))];
        self.log
            .message("message_sent", &packet, fields, Content::Full(&packet));
        packet
    }

    /// Sends a notification to one agent, and logs it.
    pub fn notify(
        &self,
        to: &Peer,
        message: &impl Call<Reply = StatusOk>,
        context: &MessageContext,
    ) -> Result<Value, CallError> {
        let packet = self.build_and_log(to, message, context);
        self.send_notification(to, message.spec().method, &packet, to_json(&packet))
    }

    /// Writes a notification once for all its recipients, and logs it.
    pub fn prepare_broadcast(&self, message: &impl Message, recipients: usize) -> Broadcast {
        let method = message.spec().method;
        let context = MessageContext {
            conversation_id: new_conversation(method),
            ..MessageContext::default()
        };

        // Each copy has its own time and token.
        let mut packet = self.build(message, &context);
        if let Some(fields) = packet.as_object_mut() {
            fields.retain(|key, _| key != "timestamp" && key != "auth_token");
        }
        let fields = vec![("recipients", json!(recipients))];
        (self.log).message("message_sent", &packet, fields, Content::Full(&packet));

        Broadcast {
            method,
            header: json!({
                "message_type": packet["message_type"],
                "conversation_id": context.conversation_id,
            }),
            text: to_json(&packet),
        }
    }

    /// Sends a copy of a notification that is logged already, with fields of its own.
    pub fn deliver(
        &self,
        to: &Peer,
        broadcast: &Broadcast,
        mut own_fields: Value,
    ) -> Result<Value, CallError> {
        own_fields["timestamp"] = json!(Timestamp::now());

        // Join two objects: `{"a":1` and `"b":2}`.
        let own_fields = to_json(&own_fields);
        let own_fields = &own_fields[..own_fields.len() - 1];
        let params = format_args!("{own_fields},{}", &broadcast.text[1..]);
        self.send_notification(to, broadcast.method, &broadcast.header, params)
    }

    /// Sends a notification. Any 2xx delivers it; a reply other than "ok" is logged.
    fn send_notification(
        &self,
        to: &Peer,
        method: &str,
        packet: &Value,
        params: impl Display,
    ) -> Result<Value, CallError> {
        let answer = match self.send(to, method, packet, params) {
            Err(CallError::HttpStatus(200..=299, body)) => Value::String(body),
            Err(CallError::InvalidReply(_, received)) => Value::String(received),
            answer => answer?,
        };

        if answer != ok() {
            let code = answer["error_code"].clone();
            let fields = vec![("peer", json!(to.id)), ("error_code", code)];
            self.log
                .message("reply_received", &answer, fields, Content::Start(&answer));
        }
        Ok(answer)
    }

    /// Sends a message, which is `params` as text, and logs a failure.
    fn send(
        &self,
        to: &Peer,
        method: &str,
        packet: &Value,
        params: impl Display,
    ) -> Result<Value, CallError> {
        let started = Instant::now();
        let result = self.call_method(to, method, params);
        if let Err(error) = &result {
            let fields = call_fields(to, started, Some(error));
            let text = error.explain();
            self.log
                .message("delivery_failed", packet, fields, Content::Text(&text));
        }
        result
    }

    /// Checks that an agent answers; any JSON-RPC reply will do. The agent's own token proves who
    /// asks.
    pub fn ping(&self, to: &Peer, token: &str) -> Result<(), CallError> {
        match self.call_method(to, "ping", json!({"auth_token": token})) {
            Ok(_) | Err(CallError::JsonRpc(..)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes a JSON-RPC call and returns its result; logs nothing. A JSON-RPC reply counts
    /// with any HTTP status.
    pub fn call_method(
        &self,
        to: &Peer,
        method: &str,
        params: impl Display,
    ) -> Result<Value, CallError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let call =
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#);
        let (status, bytes) = self.post(to, &call)?;

        let reply: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let mut keys = ["message_type", "result", "error"].iter();
        if status != 200 && !keys.any(|key| reply.get(key).is_some()) {
            let body = String::from_utf8_lossy(&bytes);
            return Err(CallError::HttpStatus(status, redact_and_truncate(&body)));
        }
        if !reply.is_object() {
            let refusal =
                ProtocolError::new(ErrorCode::MissingField, "that is not a JSON-RPC reply");
            return Err(CallError::wrong(refusal, String::from_utf8_lossy(&bytes)));
        }

        result_of(reply)
    }

    /// Posts a body and returns the status and the body of the answer. `localhost` is 127.0.0.1, and
    /// ::1 if no program listens there.
    pub fn post(&self, to: &Peer, body: &str) -> Result<(u16, Vec<u8>), CallError> {
        let result = self.post_to(&to.endpoint, to, body);
        let is_refused = result.as_ref().is_err_and(CallError::is_refused);
        let Some(rest) = to
            .endpoint
            .strip_prefix("http://localhost")
            .filter(|_| is_refused)
        else {
            return result;
        };

        match self.post_to(&format!("http://[::1]{rest}"), to, body) {
            Err(CallError::Unreachable(_)) => result,
            second => second,
        }
    }

    fn post_to(&self, url: &str, to: &Peer, body: &str) -> Result<(u16, Vec<u8>), CallError> {
        let request = self
            .http
            .post(url)
            .header("Accept", "application/json, text/event-stream") // some servers insist on both
            .header("Connection", "close")
            .content_type("application/json")
            .config()
            .timeout_global(Some(to.timeout))
            .build();
        let mut response = request
            .send(body)
            .map_err(|error| to_call_error(error, to.timeout))?;

        let status = response.status().as_u16();
        let body = response
            .body_mut()
            .with_config()
            .limit(to.max_bytes as u64 + 1);
        match body.read_to_vec() {
            Ok(body) if body.len() <= to.max_bytes => Ok((status, body)),
            Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
                let reason = format!("it is over {} bytes", to.max_bytes);
                Err(CallError::Broken(reason))
            }
            Err(error) => match to_call_error(error, to.timeout) {
                CallError::Unreachable(reason) => Err(CallError::Broken(reason)),
                other => Err(other),
            },
        }
    }
}

/// Resolves the hosts of URLs. (The resolver of ureq starts a thread for every request.)
#[derive(Debug)]
struct AddressResolver;

impl Resolver for AddressResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri
            .host()
            .unwrap_or_default()
            .replace("localhost", "127.0.0.1");
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let (Ok(address), Some(port)) = (address, uri.port_u16()) else {
            return DefaultResolver::default().resolve(uri, config, timeout);
        };

        let mut addresses = self.empty();
        addresses.push(SocketAddr::new(address, port));
        Ok(addresses)
    }
}

/// Returns the result of a JSON-RPC reply. Some agents answer with a request, some with a bare
/// message.
fn result_of(mut reply: Value) -> Result<Value, CallError> {
    let error = &reply["error"];
    if !error.is_null() {
        let message = error["message"].as_str().or(error.as_str());
        let message = message.unwrap_or("no message");
        let code = error["code"].as_i64().unwrap_or_default();
        return Err(CallError::JsonRpc(code, redact_and_truncate(message)));
    }

    if reply.get("message_type").is_some() {
        return Ok(reply);
    }

    for key in ["result", "params"] {
        if let Some(result) = reply.get_mut(key) {
            return Ok(result.take());
        }
    }

    let missing = FieldError::new(&Value::Null, "a result").in_field("result");
    Err(CallError::wrong(missing, reply))
}

/// Returns the fields of a log line about a call.
fn call_fields(to: &Peer, started: Instant, error: Option<&CallError>) -> Vec<Field> {
    let error_code = match error {
        Some(CallError::Refused(error, _)) => Some(error.error_code.clone()),
        _ => error.map(CallError::code),
    };

    vec![
        ("peer", json!(to.id)),
        ("error_code", json!(error_code)),
        ("field", json!(error.and_then(CallError::field))),
        ("body", json!(error.and_then(CallError::page))),
        ("elapsed_ms", json!(started.elapsed().as_millis() as u64)),
    ]
}

/// Returns why a call failed, and whether it was the fault of our own machine.
fn to_call_error(error: ureq::Error, timeout: Duration) -> CallError {
    let reason = match &error {
        ureq::Error::Timeout(_) => return CallError::Timeout(timeout),
        ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
            return CallError::Broken(error.to_string());
        }
        ureq::Error::HostNotFound => "host unknown".into(),
        // Linux: no memory, no descriptors (of the system, of the process), no buffers.
        ureq::Error::Io(error) if matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105)) => {
            return CallError::Local(error.to_string());
        }
        ureq::Error::Io(error) => match error.kind() {
            TimedOut => return CallError::Timeout(timeout),
            UnexpectedEof => return CallError::Broken("it hung up without an answer".into()),
            kind @ (ConnectionReset | ConnectionAborted | BrokenPipe) => {
                return CallError::Broken(kind.to_string());
            }
            kind => kind.to_string(),
        },
        other => other.to_string(),
    };

    // Such an error may hide that our own machine has no descriptor or port left: try to take one.
    match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
        Ok(_) => CallError::Unreachable(reason),
        Err(error) => CallError::Local(error.to_string()),
    }
}

/// Returns the answer to a notification.
pub fn ok() -> Value {
    json!({"status": "ok"})
}

/// Returns a new conversation id: a name and eight random digits, so that runs never mix.
pub fn new_conversation(name: &str) -> String {
    format!("conv-{name}-{}", secret(8))
}
