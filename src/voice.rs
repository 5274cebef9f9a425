//! How an agent speaks: it signs, sends, reads and logs every message of its program. Envelopes are built in one
//! function here, and nowhere else.

use crate::{
    clock::Timestamp,
    endpoint::Endpoint,
    failure::Failure,
    files,
    http::{Client, Trouble},
    log::{Level, Line, Log},
    protocol::{self, Code, Envelope, GameError, Kind, LeagueError, Message, PROTOCOL, Packet, Refusal},
    threads::lock,
    wire::{Fault, Wire},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// What a league request is answered.
pub struct Answer {
    /// The `result`.
    pub result: Value,
    /// Whether it is a LEAGUE_ERROR or a GAME_ERROR.
    pub is_error: bool,
}

/// Whom a request is for.
#[derive(Debug, Clone, Copy)]
pub struct Peer<'a> {
    /// Its id, for the log.
    pub name: &'a str,
    /// Its URL.
    pub endpoint: &'a str,
    /// The largest answer that is read from it, in bytes.
    pub max: usize,
}

impl<'a> Peer<'a> {
    /// The league manager, at that URL.
    pub fn manager(endpoint: &'a str) -> Peer<'a> {
        Peer { name: "league_manager", endpoint, max: MAX_NOTICE }
    }
}

/// What a request is about: the parts of its envelope that its sender chooses.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "fields of the envelope")]
pub struct About {
    pub conversation_id: String,
    pub auth_token: Option<String>,
    pub round_id: Option<u32>,
    pub match_id: Option<String>,
}

/// The largest notice, and the largest answer of a manager: a table of 100 players has 20 KB (R11).
pub const MAX_NOTICE: usize = 256 << 10;

/// How an agent speaks: it signs, sends, reads and logs every message of its program.
pub struct Voice {
    name: Mutex<Name>,
    strict: bool,
    own_hosts: Vec<String>,
    client: Client,
    next_id: AtomicU64,
    /// The program's log.
    pub log: Arc<Log>,
}

/// How an agent signs, and of which league it is, once it knows.
#[derive(Clone)]
struct Name {
    sender: String,
    league_id: Option<String>,
}

impl Voice {
    /// A voice that signs as `sender`; `own_hosts` are the names under which browsers may call it.
    pub fn new(sender: &str, strict: bool, own_hosts: Vec<String>, log: Arc<Log>) -> Voice {
        let name = Mutex::new(Name { sender: sender.into(), league_id: None });
        Voice { name, strict, own_hosts, client: Client::default(), next_id: AtomicU64::new(1), log }
    }

    /// From now on the agent has this name, and takes messages of this league only.
    pub fn join(&self, sender: &str, league_id: &str) {
        *lock(&self.name) = Name { sender: sender.into(), league_id: Some(league_id.into()) };
    }

    /// How it signs.
    pub fn sender(&self) -> String {
        lock(&self.name).sender.clone()
    }

    pub(crate) fn is_own_host(&self, origin: &str) -> bool {
        Endpoint::parse(origin).is_ok_and(|origin| self.own_hosts.contains(&origin.host))
    }

    /// A message with its envelope: the one place that builds one.
    pub fn write(&self, message: &Message, about: &About) -> Packet {
        let Name { sender, league_id } = lock(&self.name).clone();
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

    /// The reply to `request`, whole. A refusal becomes a GAME_ERROR where the match is readable and the agent plays
    /// or referees it, else a LEAGUE_ERROR (R12).
    pub(crate) fn reply(&self, kind: Kind, request: &Packet, outcome: Result<Option<Message>, Refusal>) -> Answer {
        let text = |key: &str| request.get(key).and_then(Value::as_str).map(String::from);
        let (is_error, message, code) = match outcome {
            Ok(None) => return Answer { result: ok(), is_error: false },
            Ok(Some(message)) => (false, message, None),
            Err(refusal) => {
                let code = refusal.code;
                let original = text("message_type").unwrap_or("UNKNOWN".into());
                let message = match text("match_id").filter(|_| kind != Kind::Manager) {
                    Some(match_id) => self.game_error(match_id, original, refusal, text("player_id")),
                    None => league_error(original, refusal),
                };
                (true, message, Some(code))
            }
        };
        let about = About {
            conversation_id: text("conversation_id").unwrap_or_else(|| conversation("error")),
            auth_token: None,
            round_id: request.get("round_id").and_then(|round| u32::read(round).ok()),
            match_id: text("match_id"),
        };
        let packet = self.write(&message, &about);
        let (peer, error_code) = (request.get("sender").and_then(Value::as_str), code.map(Code::code));
        let level = if is_error { Level::Warning } else { Level::Info };
        self.note("message_sent", &packet, Line { level, peer, error_code, ..Line::default() });
        Answer { result: Value::Object(packet), is_error }
    }

    fn game_error(&self, match_id: String, original: String, refusal: Refusal, player: Option<String>) -> Message {
        let own_id = self.sender().rsplit(':').next().unwrap_or_default().to_string();
        GameError {
            match_id,
            error_code: refusal.code.to_string(),
            error_description: refusal.code.name().into(),
            affected_player: player.clone().unwrap_or(own_id),
            action_required: original,
            player_id: player,
            retry_info: None,
            context: Some(refusal.context),
            consequence: Some("Refused; nothing has changed".into()),
        }
        .into()
    }

    /// Reads a message of our league, mending the envelope where the configuration allows it.
    pub(crate) fn read(&self, packet: &Packet) -> Result<(Envelope, Message), Refusal> {
        let mend = |fault: &Fault| {
            let absent = fault.problem == "missing" || fault.problem.starts_with("got null");
            if self.strict || !absent && fault.path != "timestamp" {
                return None;
            }
            self.log.say(Level::Warning, "envelope_mended", fault.to_string());
            Some(match fault.path.as_str() {
                "sender" => "".into(),
                "timestamp" => Timestamp::now().to_string().into(),
                // A match stays one conversation, also where nobody names it.
                _ => packet.get("match_id").and_then(Value::as_str).map_or_else(
                    || conversation("mended").into(),
                    |match_id| format!("conv-mended-{}", match_id.to_ascii_lowercase()).into(),
                ),
            })
        };
        let (envelope, message) = protocol::read(packet, mend)?;
        let skew = envelope.timestamp.distance(Timestamp::now());
        if skew > Duration::from_secs(60) {
            let words = format!("{}'s clock is {} s off ours", envelope.sender, skew.as_secs());
            self.log.say(Level::Warning, "clock_skew", words);
        }
        match (&envelope.league_id, &lock(&self.name).league_id) {
            (Some(came), Some(ours)) if came != ours => {
                let code = if matches!(message, Message::MatchResultReport(_)) { Code::E015 } else { Code::E003 };
                Err(Refusal::field(code, "league_id", format!("got {came:?}, expected {ours:?}")))
            }
            _ => Ok((envelope, message)),
        }
    }

    /// A message for one agent, logged as sent.
    fn write_to(&self, to: Peer, message: &Message, about: &About) -> Packet {
        let packet = self.write(message, about);
        self.note("message_sent", &packet, Line { peer: Some(to.name), ..Line::default() });
        packet
    }

    /// Sends a request and reads the message that answers it. Both are logged.
    pub fn ask(
        &self,
        to: Peer,
        message: &Message,
        about: &About,
        limit: Duration,
    ) -> Result<(Envelope, Message), Failure> {
        let packet = self.write_to(to, message, about);
        let (result, elapsed) = self.send(to, message.tool(), &packet, limit)?;
        self.take(to, &packet, result, elapsed)
    }

    /// Sends a notice. What is answered is logged, and changes nothing (R1).
    pub fn notify(&self, to: Peer, message: &Message, about: &About, limit: Duration) -> Result<(), Failure> {
        let packet = self.write_to(to, message, about);
        let (answer, _) = self.send(to, message.tool(), &packet, limit)?;
        self.note("notice_answered", &packet, Line { peer: Some(to.name), message: answer, ..Line::default() });
        Ok(())
    }

    /// Reads the message in a reply. A foreign conversation is a warning only: who answered is known (R2).
    fn take(
        &self,
        to: Peer,
        request: &Packet,
        result: Value,
        elapsed: Duration,
    ) -> Result<(Envelope, Message), Failure> {
        let packet =
            result.as_object().ok_or_else(|| Failure::Wrong(Fault::new(&result, "a league message").into()))?;
        let read = self.read(packet);
        let level = if read.is_ok() { Level::Info } else { Level::Warning };
        let (peer, elapsed_ms) = (Some(to.name), Some(elapsed.as_millis() as u64));
        let error_code = read.as_ref().err().map(|refusal| refusal.code.code());
        self.note("reply_received", packet, Line { level, peer, elapsed_ms, error_code, ..Line::default() });
        let (envelope, message) = read.map_err(Failure::Wrong)?;
        if request.get("conversation_id").and_then(Value::as_str) != Some(&envelope.conversation_id) {
            self.log.say(
                Level::Warning,
                "foreign_conversation",
                format!("{} answered in another conversation", to.name),
            );
        }
        Ok((envelope, message))
    }

    /// Sends a packet under a method, and returns the `result`. Only failures are logged.
    pub fn send(&self, to: Peer, method: &str, packet: &Packet, limit: Duration) -> Result<(Value, Duration), Failure> {
        let started = Instant::now();
        let result = self.post(to, method, packet, limit);
        let elapsed = started.elapsed();
        if let Err(failure) = &result {
            let (peer, elapsed_ms) = (Some(to.name), Some(elapsed.as_millis() as u64));
            let (level, error_code) = (Level::Warning, Some(failure.code().code()));
            let message = failure.explain().into();
            self.note(
                "delivery_failed",
                packet,
                Line { level, peer, error_code, elapsed_ms, message, ..Line::default() },
            );
        }
        Ok((result?, elapsed))
    }

    fn post(&self, to: Peer, method: &str, packet: &Packet, limit: Duration) -> Result<Value, Failure> {
        let endpoint = Endpoint::parse(to.endpoint)
            .map_err(|legal| Failure::Trouble(Trouble::Unreachable(format!("{:?} is not {legal}", to.endpoint))))?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "method": method, "params": packet, "id": id}).to_string();
        let bytes = self.client.post(&endpoint, &body, limit, to.max as u64).map_err(Failure::Trouble)?;
        let wrong = |problem: &str| Failure::Wrong(Refusal::new(Code::E003, problem));
        let reply: Value =
            serde_json::from_slice(&bytes).map_err(|error| wrong(&format!("the answer is not JSON: {error}")))?;
        let Value::Object(mut reply) = reply else { return Err(wrong("the answer is not a JSON-RPC reply")) };
        if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
            let message = error.get("message").and_then(Value::as_str).unwrap_or("no message");
            let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
            return Err(Failure::Rpc(code, message.chars().take(200).collect()));
        }
        if reply.get("id").is_some_and(|came| *came != json!(id)) {
            self.log.say(Level::Warning, "foreign_id", format!("{} answered with another JSON-RPC id", to.name));
        }
        // Some agents answer with a request, some without the shell (R2).
        if reply.contains_key("message_type") {
            return Ok(Value::Object(reply));
        }
        reply.remove("result").or_else(|| reply.remove("params")).ok_or_else(|| wrong("the answer has no result"))
    }

    /// Whether anybody is there: any HTTP answer means yes (R6). The agent's own token proves who asks.
    pub fn ping(&self, to: Peer, token: &str, limit: Duration) -> Result<(), Failure> {
        let params = Packet::from_iter([("auth_token".to_string(), Value::from(token))]);
        match self.post(to, "ping", &params, limit) {
            Err(Failure::Trouble(Trouble::Status(_))) => Ok(()),
            Err(failure) if failure.is_trouble() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Gets a page beside an agent's endpoint, `/health` for instance.
    pub fn get(&self, endpoint: &Endpoint, path: &str, limit: Duration) -> Result<Value, Failure> {
        let page = endpoint.clone().with_path(path);
        let bytes = self.client.get(&page, limit, MAX_NOTICE as u64).map_err(Failure::Trouble)?;
        serde_json::from_slice(&bytes).map_err(|error| Failure::Wrong(Refusal::new(Code::E003, error.to_string())))
    }

    /// Logs a packet: `line` says what the packet itself does not.
    pub fn note<'a>(&self, event_type: &str, packet: &'a Packet, line: Line<'a>) {
        let text = |key: &str| packet.get(key).and_then(Value::as_str);
        let message = if line.message.is_null() { Value::Object(packet.clone()) } else { line.message };
        let (message_type, conversation_id) = (text("message_type"), text("conversation_id"));
        self.log.write(event_type, Line { message_type, conversation_id, match_id: text("match_id"), message, ..line });
    }
}

fn league_error(original: String, refusal: Refusal) -> Message {
    LeagueError {
        error_code: refusal.code.to_string(),
        error_description: refusal.code.name().into(),
        original_message_type: Some(original),
        context: Some(refusal.context),
    }
    .into()
}

/// What a notice is answered.
pub fn ok() -> Value {
    json!({"status": "ok"})
}

/// A new conversation: the words, then eight random digits, so that runs never mix.
pub fn conversation(words: &str) -> String {
    format!("conv-{words}-{}", files::secret(8))
}
