//! What the three programs share: options, configuration and log; a call of another agent, with its
//! time limit and its attempts; the registration; and the server, with a thread for each request.
//!
//! In chapter two `src/net/` does this among strangers: with limits for size, number and time. There
//! `src/program/` checks the configuration, and keeps credentials that survive a restart.
#![allow(dead_code, reason = "each of the three programs uses its part")]

use league::games::Scoring;
use league::protocol::{
    AgentKind, AgentMeta, Envelope, ErrorCode, GAME, IncomingMessage, LeagueRegisterResponse,
    Message, MessageSpec, ProtocolError, parse, to_json,
};
use league::values::{self, Endpoint, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use std::{env, process, thread};
use tiny_http::{Response, Server};

const USAGE: &str = "options: --port N, --league-id ID; of a manager also --players N, \
    of a referee --referee-id ID, of a player --player-id ID";

/// The options of the command line.
#[derive(Default)]
pub struct Options {
    pub port: Option<u16>,
    pub league_id: Option<String>,
    pub id: Option<String>,
    pub players: Option<usize>,
}

fn read_options() -> Result<Options, String> {
    let mut options = Options::default();
    let mut words = env::args().skip(1);
    while let Some(name) = words.next() {
        if name == "--help" {
            println!("{USAGE}");
            process::exit(0);
        }
        let value = words.next().unwrap_or_default();
        let wrong = format!("{name} {value}: unknown option or wrong value; {USAGE}");
        match name.as_str() {
            "--port" => options.port = Some(value.parse().map_err(|_| wrong)?),
            "--league-id" => options.league_id = Some(value),
            "--referee-id" | "--player-id" => options.id = Some(value),
            "--players" => options.players = Some(value.parse().map_err(|_| wrong)?),
            _ => return Err(wrong),
        }
    }
    Ok(options)
}

/// What the programs need of `config/system.json`.
#[derive(Deserialize)]
pub struct Settings {
    pub default_league_id: String,
    pub timeouts: Timeouts,
    pub retry_policy: RetryPolicy,
}

#[derive(Deserialize)]
pub struct Timeouts {
    pub game_join_ack_timeout_sec: f64,
    pub move_timeout_sec: f64,
    pub game_over_timeout_sec: f64,
    pub generic_response_timeout_sec: f64,
}

#[derive(Deserialize)]
pub struct RetryPolicy {
    /// The number of attempts in all.
    pub max_retries: u32,
    pub base_delay_sec: f64,
    pub backoff_strategy: String,
}

impl RetryPolicy {
    /// Returns the pause after a failed attempt: always the same, or 2, 4, 8 seconds.
    pub fn pause_after(&self, attempt: u32) -> Duration {
        let is_exponential = self.backoff_strategy == "exponential";
        let doublings = if is_exponential { attempt - 1 } else { 0 };
        Duration::from_secs_f64(self.base_delay_sec) * 2_u32.pow(doublings)
    }
}

/// What the programs need of `config/leagues/ID.json`.
#[derive(Clone, Deserialize)]
pub struct LeagueFile {
    pub display_name: String,
    pub scoring: Scoring,
    pub participants: Participants,
}

#[derive(Clone, Deserialize)]
pub struct Participants {
    pub min_players: usize,
    pub max_players: usize,
}

/// What every agent has.
pub struct Agent {
    pub kind: AgentKind,
    /// For example `P01`. The manager has none.
    pub id: String,
    /// The manager has none: to each agent it shows that agent's own token.
    pub token: Option<String>,
    pub league_id: String,
    pub url: String,
    pub manager_url: String,
    pub settings: Settings,
    pub league_file: LeagueFile,
    log: Mutex<File>,
}

/// A call of another agent.
pub struct Call {
    pub url: String,
    pub token: Option<String>,
    pub conversation_id: String,
    pub message: Message,
    pub timeout_sec: f64,
}

/// Ends the program with one sentence that says why.
pub fn exit(code: i32, problem: &str) -> ! {
    eprintln!("{problem}");
    process::exit(code)
}

/// Reads options and configuration, and takes the port. Requests wait there until `serve` is called.
pub fn start(kind: AgentKind) -> Result<(Agent, Server, Options), String> {
    // Read the three files.
    let options = read_options()?;
    let settings: Settings = read_config("config/system.json")?;
    let agents: Value = read_config("config/agents/agents_config.json")?;
    let default_league = settings.default_league_id.clone();
    let league_id = options.league_id.clone().unwrap_or(default_league);
    let league_file = read_config(&format!("config/leagues/{league_id}.json"))?;

    // Take the port: that of the manager, if the command line names no other one.
    let manager_url = agents["league_manager"]["endpoint"].as_str();
    let manager_url = manager_url.unwrap_or_default().to_string();
    let manager = Endpoint::parse(&manager_url)
        .map_err(|legal| format!("league_manager.endpoint is {manager_url}, expected {legal}"))?;
    let port = options.port.unwrap_or(manager.port);
    let server = Server::http(("127.0.0.1", port))
        .map_err(|error| format!("port {port}: {error}; --port N names another one"))?;

    // Open the log.
    let id = options.id.clone().unwrap_or(kind.format_id(1));
    let agent = Agent {
        kind,
        log: Mutex::new(open_log(kind, &id, &league_id)?),
        id,
        token: None,
        league_id,
        url: format!("http://localhost:{port}/mcp"),
        manager_url,
        settings,
        league_file,
    };
    Ok((agent, server, options))
}

fn read_config<T: for<'a> Deserialize<'a>>(path: &str) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

fn open_log(kind: AgentKind, id: &str, league_id: &str) -> Result<File, String> {
    let (folder, name) = match kind {
        AgentKind::Manager => (format!("logs/league/{league_id}"), "league"),
        _ => ("logs/agents".to_string(), id),
    };
    let path = format!("{folder}/{name}.log.jsonl");
    fs::create_dir_all(&folder)
        .and_then(|()| File::options().create(true).append(true).open(&path))
        .map_err(|error| format!("{path}: {error}"))
}

impl Agent {
    /// Returns the name with which the agent signs its messages.
    fn sender(&self) -> String {
        match self.kind {
            AgentKind::Manager => "league_manager".to_string(),
            kind => format!("{kind}:{}", self.id),
        }
    }

    /// Writes a line into the log. Tokens are masked.
    pub fn log(&self, event_type: &str, peer: &str, message: &Value) {
        let line = json!({
            "timestamp": Timestamp::now_with_millis(),
            "component": self.sender(),
            "event_type": event_type,
            "level": if event_type == "call_failed" { "WARN" } else { "INFO" },
            "peer": peer,
            "message_type": message["message_type"],
            "conversation_id": message["conversation_id"],
            "message": message,
        });
        let line = values::redact_tokens(&line.to_string()).to_string();
        if let Err(error) = writeln!(self.log.lock().unwrap(), "{line}") {
            eprintln!("the log cannot be written: {error}");
        }
    }

    /// Checks the token of a request that only the manager sends: it is our own, which only the
    /// manager and we know.
    pub fn check_token(&self, envelope: &Envelope) -> Result<(), ProtocolError> {
        let (code, problem) = match &envelope.auth_token {
            token if token.is_some() && *token == self.token => return Ok(()),
            None => (ErrorCode::TokenMissing, "missing"),
            _ => (ErrorCode::TokenInvalid, "not the token of this agent"),
        };
        Err(ProtocolError::field(code, "auth_token", problem))
    }

    // ------------------------------------------------------------ Client

    /// Calls an agent once. Returns its reply, `None` for a receipt (`{"status": "ok"}`). An error
    /// is E001 if the reply came too late, E009 if none came, or what is wrong with it.
    pub fn call(&self, call: &Call) -> Result<Option<Message>, ProtocolError> {
        // Write the request.
        let params = self.write(&call.conversation_id, call.token.clone(), &call.message);
        self.log("message_sent", &call.url, &params);
        let method = call.message.spec().method;
        let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});

        // Send it and read the reply in time. (Windows would try another address of localhost first.)
        let timeout = Duration::from_secs_f64(call.timeout_sec);
        let text = ureq::post(call.url.replace("//localhost", "//127.0.0.1"))
            .content_type("application/json")
            .config()
            .timeout_global(Some(timeout))
            .build()
            .send(request.to_string())
            .and_then(|mut response| response.body_mut().read_to_string());

        // Read the message in it.
        let error = match text {
            Ok(text) => return self.read_reply(&call.url, &text),
            Err(ureq::Error::Timeout(_)) => {
                let problem = format!("no answer within {} s", call.timeout_sec);
                ProtocolError::new(ErrorCode::Timeout, problem)
            }
            Err(error) => ProtocolError::new(ErrorCode::ConnectionError, error.to_string()),
        };
        self.log("call_failed", &call.url, &json!(error.to_string()));
        Err(error)
    }

    fn read_reply(&self, url: &str, text: &str) -> Result<Option<Message>, ProtocolError> {
        let reply: Value = serde_json::from_str(text).unwrap_or_default();
        let result = &reply["result"];
        self.log("reply_received", url, result);
        if result["status"] == "ok" {
            return Ok(None);
        }
        Ok(Some(parse(result)?.message))
    }

    /// Calls an agent; after E001 and E009 once more, as often as the retry policy says.
    pub fn call_with_retries(&self, call: &Call) -> Result<Option<Message>, ProtocolError> {
        let policy = &self.settings.retry_policy;
        let mut attempt = 1;
        loop {
            match self.call(call) {
                Err(error) if is_retryable(&error) && attempt < policy.max_retries => {
                    thread::sleep(policy.pause_after(attempt));
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Returns a message with its envelope.
    fn write(&self, conversation_id: &str, auth_token: Option<String>, message: &Message) -> Value {
        let envelope = Envelope {
            auth_token,
            league_id: Some(self.league_id.clone()),
            ..Envelope::new(&self.sender(), conversation_id)
        };
        to_json(&envelope, message)
    }

    /// Returns the agent's description of itself.
    pub fn meta(&self) -> AgentMeta {
        AgentMeta {
            display_name: format!("Agent {}", self.id),
            version: "1.0.0".to_string(),
            game_types: vec![GAME.to_string()],
            contact_endpoint: self.url.clone(),
            ..AgentMeta::default()
        }
    }

    /// Registers with the manager, which gives the agent its id and its token.
    pub fn register(&mut self, request: Message) -> Result<(), String> {
        let call = Call {
            url: self.manager_url.clone(),
            token: None,
            conversation_id: format!("conv-{}-registration", self.id.to_lowercase()),
            message: request,
            timeout_sec: self.settings.timeouts.generic_response_timeout_sec,
        };
        let reply = self.call_with_retries(&call);

        // The reply to a referee is that to a player, with another name for the id.
        let response: LeagueRegisterResponse = match reply {
            Ok(Some(Message::RefereeRegisterResponse(response))) => response.into(),
            Ok(Some(Message::LeagueRegisterResponse(response))) => response,
            Ok(Some(Message::LeagueError(error))) => return Err(error.explain()),
            Ok(_) => return Err("the manager does not answer the registration".to_string()),
            Err(error) => return Err(format!("the manager at {}: {error}", call.url)),
        };
        let Some(id) = response.player_id else {
            return Err(format!("rejected: {}", response.reason.unwrap_or_default()));
        };

        // From now on the log is that of our id.
        self.log = Mutex::new(open_log(self.kind, &id, &self.league_id)?);
        self.id = id;
        self.token = response.auth_token;
        Ok(())
    }

    // ------------------------------------------------------------ Server

    /// Returns the reply to a JSON-RPC request, and the message if it was accepted.
    fn answer(&self, body: &str, handler: &Handler) -> (Value, Option<Message>) {
        // The method must be one that agents of our kind have.
        let request: Value = serde_json::from_str(body).unwrap_or_default();
        let (id, params) = (&request["id"], &request["params"]);
        let method = request["method"].as_str().unwrap_or_default();
        if !MessageSpec::accepted_by(self.kind).any(|spec| spec.method == method) {
            let error = json!({"code": -32601, "message": "unknown method"});
            return (json!({"jsonrpc": "2.0", "error": error, "id": id}), None);
        }

        // Parse the message, and decide.
        let sender = params["sender"].as_str().unwrap_or("unknown");
        self.log("message_received", sender, params);
        let received = parse(params);
        let decision = match &received {
            Ok(received) => handler(received),
            Err(error) => Err(error.clone()),
        };

        // Write the reply. It belongs to the same conversation, and shows no token of ours.
        let conversation_id = params["conversation_id"].as_str().unwrap_or("unknown");
        let refused_type = params["message_type"].as_str().unwrap_or("UNKNOWN");
        let (result, accepted) = match decision {
            Ok(Some(reply)) => (self.write(conversation_id, None, &reply), received.ok()),
            Ok(None) => (json!({"status": "ok"}), received.ok()),
            Err(error) => {
                let refusal = error.league_error(refused_type).into();
                (self.write(conversation_id, None, &refusal), None)
            }
        };
        self.log("message_sent", sender, &result);
        let reply = json!({"jsonrpc": "2.0", "result": result, "id": id});
        (reply, accepted.map(|received| received.message))
    }
}

/// Returns true for E001 and E009: the next attempt may succeed.
pub fn is_retryable(error: &ProtocolError) -> bool {
    matches!(error.code, ErrorCode::Timeout | ErrorCode::ConnectionError)
}

/// Decides the reply to a message; `None` stands for `{"status": "ok"}`.
pub type Handler = dyn Fn(&IncomingMessage) -> Result<Option<Message>, ProtocolError> + Send + Sync;

/// Answers each request in a thread of its own. As soon as the reply to an accepted message is
/// written, the message goes into the channel, and the main thread acts on it.
pub fn serve(agent: Arc<Agent>, server: Server, handler: Arc<Handler>) -> mpsc::Receiver<Message> {
    let (sender, accepted) = mpsc::channel();
    thread::spawn(move || {
        for mut request in server.incoming_requests() {
            let agent = Arc::clone(&agent);
            let handler = Arc::clone(&handler);
            let sender = sender.clone();
            thread::spawn(move || {
                let mut body = String::new();
                let _ = request.as_reader().read_to_string(&mut body);
                let (reply, accepted) = agent.answer(&body, &*handler);
                let _ = request.respond(Response::from_string(reply.to_string()));
                if let Some(message) = accepted {
                    let _ = sender.send(message);
                }
            });
        }
    });
    accepted
}
