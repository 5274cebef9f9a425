//! `league connect -- COMMAND`: a player that is not changed plays through a relay of the manager
//! (`relay.rs`), so other machines need not reach this one.
//!
//! The player's manager is this program, on the loopback interface: a call of `register_player` or
//! `league_query` goes to the manager by `relay_call`. Some threads poll for the player's requests,
//! and call the endpoint that it has named in its registration.

use crate::agents::installed_program;
use crate::check::json_rpc_call;
use crate::files::provide_config;
use crate::relay::queue::{Numbered, Requests};
use league::json::deserialize;
use league::net::call_error::CallError;
use league::net::client::{Client, MAX_NOTICE, Peer};
use league::net::http::{self, HttpRequest, OK, Response};
use league::net::sync::{Shared, lock, secret, spawn};
use league::program::args::{Args, Exit, Usage};
use league::program::terminal::{print_error, sanitize};
use league::program::{SHUTDOWN_TIMEOUT, load_config, open_log, url};
use league::protocol::{AgentKind, LeagueCompleted};
use league::values::{constant_time_eq, redact_and_truncate};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub const USAGE: Usage = Usage {
    name: "league connect",
    about: "start a player that cannot be called: connect -- COMMAND",
    options: &["
  --manager URL               where the manager is [as in agents_config.json]
  --config DIR                configuration files [config]
  --help                      show this and end"],
};

/// Number of threads that wait for requests, at most.
const MAX_WAITING: usize = 3;
/// Time limit of every call: a poll waits for 25 s, and a choice takes 30 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(40);
/// Maximum size of a player's answer in bytes: the poll that carries it has at most 10 KB.
const MAX_ANSWER: usize = 9 << 10;
/// Interval between two attempts to reach the manager.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A player and its relay.
struct Connection {
    client: Client,
    manager: Peer,
    relay_token: String,
    registration: Mutex<Registration>,
    /// True when the league is over: the player itself registers in the next one.
    is_over: AtomicBool,
    /// The numbers of the requests whose answers the relay does not have.
    unanswered: Shared<BTreeSet<u64>>,
    /// Number of times that the relay was opened. It is locked while the relay is opened.
    open_count: Mutex<u32>,
    /// Number of threads that wait for a request.
    waiting: AtomicUsize,
}

/// The registration of the player.
#[derive(Clone, Default)]
struct Registration {
    /// The player's call: the accepted one, or else the first. Null before.
    call: Value,
    is_accepted: bool,
}

/// Starts the player, and ends when it ends.
pub fn run(args: Args, command: &[String]) -> Result<(), Exit> {
    let Some((name, words)) = command.split_first() else {
        let legal = "expected league connect [OPTIONS] -- COMMAND, which starts the player";
        return Err(Exit::usage(legal));
    };
    provide_config(&args)?;
    let config = load_config(&args)?;
    let connection = Arc::new(Connection {
        client: Client::new("launcher", open_log(&args, "launcher")),
        manager: Peer::manager(config.manager(), CALL_TIMEOUT),
        relay_token: secret(32),
        registration: Mutex::default(),
        is_over: AtomicBool::new(false),
        unanswered: Shared::default(),
        open_count: Mutex::default(),
        waiting: AtomicUsize::new(0),
    });
    connection.open_relay(0);

    // Answer the player's calls, and poll for its requests.
    let listener = http::listen("127.0.0.1", 0).map_err(Exit::failure)?;
    let manager = url("127.0.0.1", listener.local_addr()?.port());
    let called = Arc::clone(&connection);
    let handler = move |http: &HttpRequest| called.answer_player(http);
    http::serve(listener, MAX_NOTICE, Box::new(handler))?;
    connection.start_polling();

    let program = installed_program(name).unwrap_or(name.into());
    let end = Command::new(program)
        .args(words)
        .args(["--manager", &manager])
        .status()
        .map_err(|error| Exit::failure(format!("{name}: {error}")))?;
    drop((connection.unanswered).wait_until(SHUTDOWN_TIMEOUT, BTreeSet::is_empty));
    match end.success() {
        true => Ok(()),
        false => Err(Exit::failure(format!("the player has ended: {end}"))),
    }
}

impl Connection {
    /// Waits for the manager, opens the relay, and registers the player again. Does nothing if
    /// another thread has opened the relay since the caller has `seen` the number of openings.
    fn open_relay(&self, seen: u32) {
        let mut open_count = lock(&self.open_count);
        if *open_count != seen {
            return;
        }

        // A manager that opens a new lobby is away for a moment.
        let patience = if seen == 0 { 1 } else { 3 };
        let mut attempts = 0;
        let opened = loop {
            match self.open_and_register() {
                Ok(opened) => break opened,
                Err(error) => {
                    attempts += 1;
                    if attempts == patience {
                        self.print_waiting(&error);
                    }
                    thread::sleep(RETRY_INTERVAL);
                }
            }
        };
        if seen == 0
            && let Some(warning) = opened["warning"].as_str()
        {
            print_error(&sanitize(warning));
        }
        *open_count += 1;
    }

    /// Opens the relay. A restarted manager has given it a new endpoint, so the player registers
    /// again.
    fn open_and_register(&self) -> Result<Value, CallError> {
        let arguments = json!({"relay_token": self.relay_token});
        let opened = (self.client).call_method(&self.manager, "open_relay", arguments)?;
        let registration = lock(&self.registration).clone();
        if registration.is_accepted && !self.is_over.load(SeqCst) {
            self.call_manager(&registration.call)?;
        }
        Ok(opened)
    }

    /// Prints why the manager opens no relay.
    fn print_waiting(&self, error: &CallError) {
        let (manager, mut problem) = (&self.manager.endpoint, error.explain());
        if let CallError::JsonRpc(-32601, _) = error {
            problem = "has no relay: ask your teacher to start it with `league class`".into();
        }
        print_error(&format!(
            "waiting for the league manager at {manager}: it {problem}"
        ));
    }

    /// Answers a call of the player, which takes this program for its manager. While the manager is
    /// away, or has no relay after a restart, the answer is 502; a thread that polls opens the relay
    /// again.
    fn answer_player(&self, http: &HttpRequest) -> Response {
        let call = serde_json::from_slice(&http.body).unwrap_or_default();
        let is_page = !http.headers("Origin").is_empty(); // in a browser of this machine
        if is_page || !self.is_of_player(&call) {
            return Response::text("403 Forbidden", "another player is connected here");
        }

        match self.call_manager(&call) {
            Ok(reply) if reply["result"]["context"]["field"] == "relay_token" => Response::text(
                "502 Bad Gateway",
                "has no relay of this player at the moment",
            ),
            Ok(answer) => Response::new(OK, answer.to_string()),
            Err(error) => Response::text("502 Bad Gateway", error.explain()),
        }
    }

    /// Returns false for a registration of another program on this machine, which would take the
    /// player's place: it has neither the endpoint nor a secret of the accepted registration.
    fn is_of_player(&self, call: &Value) -> bool {
        let registration = lock(&self.registration);
        let (own, new) = (&registration.call["params"], &call["params"]);
        let is_same = |pointer: &str| is_same_text(own.pointer(pointer), new.pointer(pointer));
        !registration.is_accepted
            || !new["player_meta"].is_object()
            || is_same("/player_meta/contact_endpoint")
            || is_same("/player_meta/registration_key")
            || is_same("/auth_token")
    }

    /// Passes a call on to the manager, and returns the whole answer. An accepted registration is
    /// kept, with the token that the player gets: it proves after a restart of the manager who the
    /// player is. In another league only the player itself registers, with a new key. The first
    /// registration is kept at once, since a request may come before the answer. Later ones count
    /// when they are accepted.
    fn call_manager(&self, call: &Value) -> Result<Value, CallError> {
        let is_registration = call["params"]["player_meta"].is_object();
        let mut registration = lock(&self.registration);
        if is_registration && registration.call.is_null() {
            registration.call = call.clone();
        }
        drop(registration);

        let (method, params) = (&call["method"], &call["params"]);
        let params = json!({"relay_token": self.relay_token, "method": method, "params": params});
        let relayed = json_rpc_call("relay_call", &params, &call["id"]);
        let (status, bytes) = self.client.post(&self.manager, &relayed)?;
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !answer.is_object() {
            let text = redact_and_truncate(&String::from_utf8_lossy(&bytes));
            return Err(CallError::HttpStatus(status, text));
        }

        let reply = &answer["result"];
        if is_registration && reply["status"] == "ACCEPTED" {
            let mut call = call.clone();
            call["params"]["auth_token"] = reply["auth_token"].clone();
            call["params"]["player_meta"]["must_be_known"] = true.into();
            let is_accepted = true;
            *lock(&self.registration) = Registration { call, is_accepted };
            self.is_over.store(false, SeqCst);
        }
        Ok(answer)
    }

    fn start_polling(self: &Arc<Self>) {
        let connection = Arc::clone(self);
        spawn("poll", move || connection.poll());
    }

    /// Asks the manager for requests, and has the player answer them. Before a thread passes a
    /// request on, it makes sure that another thread waits for the next one, since the player may be
    /// slow. A thread ends if enough others wait.
    fn poll(self: &Arc<Self>) {
        let mut answers: Vec<Numbered> = Vec::new();
        loop {
            let is_spare = self.waiting.fetch_add(1, SeqCst) >= MAX_WAITING;
            let seen = *lock(&self.open_count);
            let poll = json!({
                "relay_token": self.relay_token,
                "answers": answers,
                "known": *self.unanswered.lock(),
                "wait_sec": is_spare.then_some(0), // else as long as it can
            });
            let polled = self.client.call_method(&self.manager, "relay_next", poll);
            let others = self.waiting.fetch_sub(1, SeqCst) - 1;

            // Answers that may not have arrived are sent again. Those that the manager has refused
            // are not: they would be refused again.
            let may_be_lost = matches!(&polled, Err(error)
                if error.is_retryable() && !matches!(error, CallError::HttpStatus(..)));
            if !may_be_lost {
                self.unanswered.update(|numbers| {
                    for answer in answers.drain(..) {
                        numbers.remove(&answer.number);
                    }
                });
            }
            if let Ok(polled) = polled
                && let Ok(Requests { requests }) = deserialize(&polled)
            {
                if requests.is_empty() && is_spare {
                    return;
                }
                for request in &requests {
                    (self.unanswered).update(|numbers| numbers.insert(request.number));
                }
                if !requests.is_empty() && others == 0 {
                    self.start_polling();
                }
                answers.extend(requests.into_iter().map(|request| self.ask_player(request)));
            } else {
                self.open_relay(seen);
                thread::sleep(RETRY_INTERVAL); // the program that answers may be no manager
            }
        }
    }

    /// Has the player answer a request.
    fn ask_player(&self, request: Numbered) -> Numbered {
        let call = lock(&self.registration).call.clone();
        let endpoint = call["params"]["player_meta"]["contact_endpoint"].as_str();
        let player = Peer {
            kind: AgentKind::Player,
            endpoint: endpoint.unwrap_or_default().into(),
            max_bytes: MAX_ANSWER,
            ..self.manager.clone()
        };
        let answer = match self.client.post(&player, &request.body.to_string()) {
            Ok((_, bytes)) => serde_json::from_slice(&bytes).map_err(|_| "answered no JSON".into()),
            Err(error) => Err(error.explain()),
        };
        if request.body["params"]["message_type"] == LeagueCompleted::NAME {
            self.is_over.store(true, SeqCst);
        }
        let body = answer.unwrap_or_else(|problem: String| {
            let error = json!({"code": -32603, "message": format!("the player {problem}")});
            json!({"jsonrpc": "2.0", "error": error, "id": request.body["id"]})
        });
        Numbered { body, ..request }
    }
}

/// Returns true if two fields have the same text, which is not empty.
fn is_same_text(one: Option<&Value>, other: Option<&Value>) -> bool {
    let [one, other] = [one, other].map(|field| field.and_then(Value::as_str).unwrap_or_default());
    !one.is_empty() && constant_time_eq(one, other)
}
