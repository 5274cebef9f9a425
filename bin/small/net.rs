//! What the three programs share: the start and the log; a call to another agent, with its time
//! limit and its attempts; the registration; and the server, with a thread for each request.
//!
//! The server listens on 127.0.0.1: any program of this machine may call it, and so may a web page
//! that is open in a browser here. In chapter two, the league among strangers, `src/net/` adds limits
//! for size, number and time, and `src/program/` keeps credentials that survive a restart.
//!
//! Each of the three programs has `mod net;`, so this file is compiled three times, and the parts that
//! one program does not use are no mistake.
#![allow(dead_code, reason = "each of the three programs uses its part")]

use crate::config::{self, LeagueFile, Options, Settings};
use league::protocol::{
    AgentKind, AgentMeta, Call, EVEN_ODD, Envelope, ErrorCode, IncomingMessage, LeagueError,
    LeagueRegisterResponse, Message, MessageSpec, ProtocolError, Reply, parse, to_json,
};
use league::values::{self, Endpoint, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use tiny_http::{Header, Request, Response, Server};

/// The parts that every agent has.
pub struct Agent {
    pub kind: AgentKind,
    /// For example `P01`; that of the manager is `league_manager`.
    pub id: String,
    /// The manager has none: to each agent it shows that agent's own token.
    pub token: Option<String>,
    pub league_id: String,
    pub url: String,
    pub manager_url: String,
    pub settings: Settings,
    pub league_file: LeagueFile,
    seed: Option<u64>,
    log: Mutex<File>,
}

/// A receiver, and the token that proves us to it.
pub struct Destination {
    pub id: String,
    pub url: String,
    pub token: Option<String>,
    pub conversation_id: String,
}

/// Reads options and configuration, and takes the port. Requests wait there until `serve` is called.
pub fn start(kind: AgentKind) -> Result<(Agent, Server, Options), String> {
    // Read the three files.
    let options = config::read_options()?;
    let settings: Settings = config::read_file("config/system.json")?;
    let agents: Value = config::read_file("config/agents/agents_config.json")?;
    let league_id = settings.default_league_id.clone();
    let league_file = config::read_file(&format!("config/leagues/{league_id}.json"))?;

    // Take the port. Only the manager has one in the configuration.
    let manager_url = agents["league_manager"]["endpoint"].as_str();
    let manager_url = manager_url.unwrap_or_default().to_string();
    let manager = Endpoint::parse(&manager_url)
        .map_err(|legal| format!("league_manager.endpoint is {manager_url}, expected {legal}"))?;
    let usual_port = (kind == AgentKind::Manager).then_some(manager.port);
    let port = options.port.or(usual_port).ok_or("--port N is missing")?;
    let server = Server::http(("127.0.0.1", port))
        .map_err(|error| format!("port {port}: {error}; is another league running?"))?;

    // Open the log.
    let id = match kind {
        AgentKind::Manager => kind.to_string(),
        _ => options.id.clone().unwrap_or(kind.format_id(1)),
    };
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
        seed: options.seed,
    };
    Ok((agent, server, options))
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
            AgentKind::Manager => self.id.clone(),
            kind => format!("{kind}:{}", self.id),
        }
    }

    /// Writes a line into the log: what happened to a message, and the message itself or what else is
    /// to be said. Tokens are masked: `tok-p01-***`. A key `elapsed_ms` with the milliseconds of a call
    /// would stand beside its arrow in `make trace`.
    pub fn log(&self, event_type: &str, peer: &str, message: &Value, content: &Value) {
        let line = json!({
            "timestamp": Timestamp::now_with_millis(),
            "component": self.id,
            "event_type": event_type,
            "level": if event_type == "delivery_failed" { "WARN" } else { "INFO" },
            "peer": peer,
            "message_type": message["message_type"],
            "conversation_id": message["conversation_id"],
            "match_id": message["match_id"],
            "message": content,
        });
        let line = values::redact_tokens(&line.to_string()).to_string();
        if let Err(error) = writeln!(self.log.lock().unwrap(), "{line}") {
            eprintln!("the log cannot be written: {error}");
        }
    }

    /// Returns the random numbers of a match: with `--seed` the same ones in every run.
    ///
    /// `fastrand::seed` in `main` does not do this. It seeds one thread, and each match and each
    /// request has a thread of its own.
    pub fn random(&self, match_id: &str) -> fastrand::Rng {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        fastrand::Rng::with_seed(values::derive_seed(seed, &[&self.id, match_id]))
    }

    // ------------------------------------------------------------ Client

    /// Calls an agent once. Returns its reply, whose type follows from that of the request. An error
    /// is E001 without a reply in time, E009 without an HTTP answer, or what is wrong with the reply.
    pub fn call<R: Call>(&self, to: &Destination, request: &R) -> Result<R::Reply, ProtocolError> {
        // Write the request.
        let params = self.write(&to.conversation_id, to.token.clone(), request);
        self.log("message_sent", &to.id, &params, &params);
        let method = request.spec().method;
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});

        // Send it and read the reply in time. Windows would try ::1 first for localhost.
        let limit = self.settings.timeouts.limit_of(request.name());
        let text = ureq::post(to.url.replace("//localhost", "//127.0.0.1"))
            .content_type("application/json")
            .config()
            .timeout_global(Some(limit))
            .build()
            .send(body.to_string())
            .and_then(|mut response| response.body_mut().read_to_string());
        let error = match text {
            Ok(text) => return self.read_reply(&to.id, &text),
            Err(ureq::Error::Timeout(_)) => {
                let problem = format!("no answer within {} s", limit.as_secs_f64());
                ProtocolError::new(ErrorCode::Timeout, problem)
            }
            Err(error) => ProtocolError::new(ErrorCode::ConnectionError, error.to_string()),
        };
        self.log(
            "delivery_failed",
            &to.id,
            &params,
            &json!(error.to_string()),
        );
        Err(error)
    }

    /// Takes the message out of a JSON-RPC reply. A refusal is an error with the code that came.
    fn read_reply<T: DeserializeOwned>(&self, peer: &str, text: &str) -> Result<T, ProtocolError> {
        let reply: Value = serde_json::from_str(text).unwrap_or_default();
        let result = &reply["result"];
        self.log("reply_received", peer, result, result);
        if let Ok(refusal) = LeagueError::deserialize(result) {
            // A code that the protocol does not have is not passed on.
            let code = match refusal.error_code {
                ErrorCode::Other(_) => ErrorCode::MissingField,
                code => code,
            };
            let context = refusal.context.unwrap_or_default();
            return Err(ProtocolError { code, context });
        }
        T::deserialize(result).map_err(|error| {
            ProtocolError::new(ErrorCode::MissingField, format!("{error}: {text}"))
        })
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

    /// Returns the description with which the agent registers.
    pub fn meta(&self, name: &str) -> AgentMeta {
        AgentMeta {
            display_name: name.to_string(),
            version: "1.0.0".to_string(),
            game_types: vec![EVEN_ODD.to_string()],
            contact_endpoint: self.url.clone(),
            ..AgentMeta::default()
        }
    }

    /// Returns where the manager is called.
    pub fn manager(&self, conversation_id: &str) -> Destination {
        Destination {
            id: "league_manager".to_string(),
            url: self.manager_url.clone(),
            token: self.token.clone(),
            conversation_id: conversation_id.to_string(),
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

    /// Answers an HTTP request, whatever its path is. Returns its message if that was accepted.
    fn respond<M: Message>(
        &self,
        mut request: Request,
        handle: &impl Fn(&IncomingMessage<M>) -> Decision,
    ) -> Option<M> {
        let mut body = String::new();
        let _ = request.as_reader().read_to_string(&mut body);
        let (reply, accepted) = self.answer(&body, handle);
        let content_type: Header = "Content-Type: application/json".parse().unwrap();
        let response = Response::from_string(reply.to_string());
        let _ = request.respond(response.with_header(content_type));
        Some(accepted?.message)
    }

    /// Returns the reply to a JSON-RPC request, and the message if it was accepted.
    fn answer<M: Message>(
        &self,
        body: &str,
        handle: &impl Fn(&IncomingMessage<M>) -> Decision,
    ) -> (Value, Option<IncomingMessage<M>>) {
        // It must be JSON, and its method one that agents of our kind have.
        let request: Value = serde_json::from_str(body).unwrap_or_default();
        let (id, params, method) = (&request["id"], &request["params"], &request["method"]);
        if !MessageSpec::accepted_by(self.kind).any(|spec| spec.method == *method) {
            let (code, problem) = match request {
                Value::Null => (-32700, "the body is null or no JSON".to_string()),
                _ => (-32601, format!("a {} has no method {method}", self.kind)),
            };
            let error = json!({"code": code, "message": problem});
            return (json!({"jsonrpc": "2.0", "error": error, "id": id}), None);
        }

        // Parse the message, and decide.
        let text = |key: &str| params[key].as_str().unwrap_or("unknown");
        let sender = text("sender");
        self.log("message_received", sender, params, params);
        let received = parse(params);
        let decision = match &received {
            Ok(received) => handle(received),
            Err(error) => Err(error.clone()),
        };

        // Write the reply. It belongs to the same conversation, and its envelope has no token.
        let (conversation_id, refused) = (text("conversation_id"), text("message_type"));
        let result = match &decision {
            Ok(Some(reply)) => self.write(conversation_id, None, reply),
            Ok(None) => json!({"status": "ok"}),
            Err(error) => self.write(conversation_id, None, &error.league_error(refused)),
        };
        self.log("message_sent", sender, &result, &result);
        let reply = json!({"jsonrpc": "2.0", "result": result, "id": id});
        (reply, decision.and(received).ok())
    }
}

/// Makes a token. This generator is fast and not meant for secrets: chapter two takes its tokens
/// from the operating system.
pub fn new_token(id: &str) -> String {
    values::token(id, &format!("{:032x}", fastrand::u128(..)))
}

/// Checks the description of an agent that registers. An error says which field is wrong.
pub fn check_meta(meta: &AgentMeta) -> Result<(), String> {
    if !meta.game_types.contains(&EVEN_ODD.to_string()) {
        return Err(format!(
            "Unsupported game type: this league plays {EVEN_ODD}"
        ));
    }
    values::check_display_name(&meta.display_name)
        .map_err(|legal| format!("display_name: must be {legal}"))?;
    values::check_version(&meta.version).map_err(|legal| format!("version: must be {legal}"))?;
    values::check_url(&meta.contact_endpoint)
        .map_err(|legal| format!("contact_endpoint: must be {legal}"))
}

/// Checks that a message has a token, and the right one.
pub fn check_token(envelope: &Envelope, right: &Option<String>) -> Result<(), ProtocolError> {
    if envelope.auth_token.is_none() {
        let code = ErrorCode::TokenMissing;
        return Err(ProtocolError::field(code, "auth_token", "missing"));
    }
    if envelope.auth_token != *right {
        return Err(ProtocolError::wrong_token("not the token that was given"));
    }
    Ok(())
}

/// Returns the refusal of a message that only chapter two understands.
pub fn not_here(message_type: &str) -> ProtocolError {
    let problem = format!("{message_type} is for chapter two");
    ProtocolError::field(ErrorCode::MissingField, "message_type", problem)
}

/// Returns true for E001 and E009: the next attempt may succeed.
pub fn is_retryable(error: &ProtocolError) -> bool {
    matches!(error.code, ErrorCode::Timeout | ErrorCode::ConnectionError)
}

/// The reply to a message, or its refusal; `None` stands for `{"status": "ok"}`.
pub type Decision = Result<Option<Reply>, ProtocolError>;

/// Answers each request in a thread of its own. As soon as the reply to an accepted message is
/// written, the message goes into the channel, and the main thread acts on it.
pub fn serve<M: Message + Send + 'static>(
    agent: Arc<Agent>,
    server: Server,
    handle: impl Fn(&IncomingMessage<M>) -> Decision + Send + Sync + 'static,
) -> mpsc::Receiver<M> {
    let (sender, accepted) = mpsc::channel();
    thread::spawn(move || {
        // The threads of a scope may borrow what they share.
        let (agent, handle, sender) = (&agent, &handle, &sender);
        thread::scope(|scope| {
            for request in server.incoming_requests() {
                scope.spawn(move || {
                    if let Some(message) = agent.respond(request, handle) {
                        let _ = sender.send(message);
                    }
                });
            }
        });
    });
    accepted
}
