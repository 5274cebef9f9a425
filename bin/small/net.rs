//! What the three programs share: options, configuration and log; a call to another agent, with its
//! time limit and its attempts; the registration; and the server, with a thread for each request.
//!
//! In chapter two, the league among strangers, `src/net/` adds limits for size, number and time, and
//! `src/program/` checks the configuration, and keeps credentials that survive a restart.
#![allow(dead_code, reason = "each of the three programs uses its part")]

use league::games::Scoring;
use league::protocol::{
    AgentKind, Call, Envelope, ErrorCode, IncomingMessage, LeagueError, LeagueRegisterResponse,
    Message, MessageSpec, ProtocolError, Reply, parse, to_json,
};
use league::values::{self, Endpoint, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use std::{env, process, thread};
use tiny_http::{Header, Response, Server};

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

/// The part of `config/system.json` that the programs need.
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
    /// The number of attempts in all, in spite of its name.
    pub max_retries: u32,
    pub base_delay_sec: f64,
    pub backoff_strategy: String,
}

impl RetryPolicy {
    /// Returns the pause after a failed attempt: always the same, or twice as long each time.
    pub fn pause_after(&self, attempt: u32) -> Duration {
        let is_exponential = self.backoff_strategy == "exponential";
        let doublings = if is_exponential { attempt - 1 } else { 0 };
        Duration::from_secs_f64(self.base_delay_sec) * 2_u32.pow(doublings)
    }
}

/// The part of `config/leagues/ID.json` that the programs need.
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

/// The parts that every agent has.
pub struct Agent {
    pub kind: AgentKind,
    /// For example `P01`. The manager does not use it.
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

/// The receiver of a request, the token that proves its sender, and the time limit for the reply.
pub struct Destination {
    pub url: String,
    pub token: Option<String>,
    pub conversation_id: String,
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

    // Take the port. Only the manager has one in the configuration.
    let manager_url = agents["league_manager"]["endpoint"].as_str();
    let manager_url = manager_url.unwrap_or_default().to_string();
    let manager = Endpoint::parse(&manager_url)
        .map_err(|legal| format!("league_manager.endpoint is {manager_url}, expected {legal}"))?;
    let usual_port = (kind == AgentKind::Manager).then_some(manager.port);
    let port = options.port.or(usual_port).ok_or("--port N is missing")?;
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

fn read_config<T: DeserializeOwned>(path: &str) -> Result<T, String> {
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

    /// Writes a line into the log. Tokens are masked: `tok-p01-***`.
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

    /// Calls an agent once. Returns its reply, whose type follows from that of the request. An error
    /// is E001 without a reply in time, E009 without an HTTP answer, or what is wrong with the reply.
    pub fn call<R: Call>(&self, to: &Destination, request: &R) -> Result<R::Reply, ProtocolError> {
        // Write the request.
        let params = self.write(&to.conversation_id, to.token.clone(), request);
        self.log("message_sent", &to.url, &params);
        let method = request.spec().method;
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});

        // Send it and read the reply in time. Windows would try ::1 first for localhost.
        let text = ureq::post(to.url.replace("//localhost", "//127.0.0.1"))
            .content_type("application/json")
            .config()
            .timeout_global(Some(Duration::from_secs_f64(to.timeout_sec)))
            .build()
            .send(body.to_string())
            .and_then(|mut response| response.body_mut().read_to_string());
        let error = match text {
            Ok(text) => return self.read_reply(&to.url, &text),
            Err(ureq::Error::Timeout(_)) => {
                let problem = format!("no answer within {} s", to.timeout_sec);
                ProtocolError::new(ErrorCode::Timeout, problem)
            }
            Err(error) => ProtocolError::new(ErrorCode::ConnectionError, error.to_string()),
        };
        self.log("call_failed", &to.url, &json!(error.to_string()));
        Err(error)
    }

    fn read_reply<T: DeserializeOwned>(&self, url: &str, text: &str) -> Result<T, ProtocolError> {
        let reply: Value = serde_json::from_str(text).unwrap_or_default();
        let result = &reply["result"];
        self.log("reply_received", url, result);
        let problem = match (T::deserialize(result), LeagueError::deserialize(result)) {
            (Ok(reply), _) => return Ok(reply),
            (_, Ok(refusal)) => refusal.explain(),
            (Err(_), _) if reply["error"].is_object() => reply["error"].to_string(),
            (Err(error), _) => error.to_string(),
        };
        Err(ProtocolError::new(ErrorCode::MissingField, problem))
    }

    /// Calls an agent; after E001 or E009 again, until the attempts of the retry policy are used up.
    pub fn call_with_retries<R: Call>(
        &self,
        to: &Destination,
        request: &R,
    ) -> Result<R::Reply, ProtocolError> {
        let policy = &self.settings.retry_policy;
        let mut attempt = 1;
        loop {
            match self.call(to, request) {
                Err(error) if is_retryable(&error) && attempt < policy.max_retries => {
                    thread::sleep(policy.pause_after(attempt));
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Returns a message with its envelope.
    fn write(&self, conversation: &str, token: Option<String>, message: &impl Message) -> Value {
        let envelope = Envelope {
            auth_token: token,
            league_id: Some(self.league_id.clone()),
            ..Envelope::new(&self.sender(), conversation)
        };
        to_json(&envelope, message)
    }

    /// Returns where the manager is called.
    pub fn manager(&self, conversation_id: &str) -> Destination {
        Destination {
            url: self.manager_url.clone(),
            token: self.token.clone(),
            conversation_id: conversation_id.to_string(),
            timeout_sec: self.settings.timeouts.generic_response_timeout_sec,
        }
    }

    /// Takes the id and the token of the manager's response to the registration. The log is that of
    /// the id from now on.
    pub fn join_league(
        &mut self,
        response: Result<LeagueRegisterResponse, ProtocolError>,
    ) -> Result<(), String> {
        let response =
            response.map_err(|error| format!("the manager at {}: {error}", self.manager_url))?;
        let Some(id) = response.player_id else {
            return Err(format!("rejected: {}", response.reason.unwrap_or_default()));
        };
        self.log = Mutex::new(open_log(self.kind, &id, &self.league_id)?);
        self.id = id;
        self.token = response.auth_token;
        Ok(())
    }

    // ------------------------------------------------------------ Server

    /// Returns the reply to a JSON-RPC request, and the message if it was accepted.
    fn answer<M: Message>(&self, body: &str, handler: &Handler<M>) -> (Value, Option<M>) {
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

        // Write the reply. It belongs to the same conversation, and its envelope has no token.
        let conversation_id = params["conversation_id"].as_str().unwrap_or("unknown");
        let refused_type = params["message_type"].as_str().unwrap_or("UNKNOWN");
        let (result, accepted) = match decision {
            Ok(Some(reply)) => (self.write(conversation_id, None, &reply), received.ok()),
            Ok(None) => (json!({"status": "ok"}), received.ok()),
            Err(error) => {
                let refusal = error.league_error(refused_type);
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
pub type Handler<M> =
    dyn Fn(&IncomingMessage<M>) -> Result<Option<Reply>, ProtocolError> + Send + Sync;

/// Answers each request in a thread of its own. As soon as the reply to an accepted message is
/// written, the message goes into the channel, and the main thread acts on it.
pub fn serve<M: Message + Send + 'static>(
    agent: Arc<Agent>,
    server: Server,
    handler: Arc<Handler<M>>,
) -> mpsc::Receiver<M> {
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
                let content_type: Header = "Content-Type: application/json".parse().unwrap();
                let response = Response::from_string(reply.to_string()).with_header(content_type);
                let _ = request.respond(response);
                if let Some(message) = accepted {
                    let _ = sender.send(message);
                }
            });
        }
    });
    accepted
}
