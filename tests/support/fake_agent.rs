//! Fake agents, whose replies a test decides, and fake players, which play well, at once or when a
//! gate opens.
//!
//! A fake agent handles each request in a thread of its own. Its script returns the reply, or
//! another fault of a network. It keeps all requests.

use super::{message, now, time_limit};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// The reaction of a fake agent to a request.
pub enum FakeReply {
    /// Replies with this as `result`.
    Answer(Value),
    /// Replies with this body and status 200.
    Body(String),
    /// Writes these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Writes these bytes again and again, after a pause each time.
    Endless(Vec<u8>, Duration),
    /// Closes the connection at once.
    Close,
    /// Sends nothing until the peer closes the connection.
    Silence,
}

/// An agent whose replies a test decides.
pub struct FakeAgent {
    pub url: String,
    pub requests: Arc<Mutex<Vec<Value>>>,
}

impl FakeAgent {
    /// Starts an agent. `script` gets each request (the JSON-RPC object), in a thread of its own.
    pub fn new(script: impl Fn(&Value) -> FakeReply + Send + Sync + 'static) -> FakeAgent {
        FakeAgent::with_paths(move |_, request| script(request))
    }

    /// Starts an agent whose script also gets the path of each request.
    pub fn with_paths(
        script: impl Fn(&str, &Value) -> FakeReply + Send + Sync + 'static,
    ) -> FakeAgent {
        FakeAgent::serving(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// Starts an agent that takes its requests from this listener.
    pub fn serving(
        listener: TcpListener,
        script: impl Fn(&str, &Value) -> FakeReply + Send + Sync + 'static,
    ) -> FakeAgent {
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (script, seen) = (Arc::new(script), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                thread::spawn(move || serve(stream, &*script, &seen));
            }
        });
        FakeAgent { url, requests }
    }

    /// Returns the messages of a type that the agent has received (their `params`).
    pub fn received(&self, message_type: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let params = requests.iter().map(|request| &request["params"]);
        let wanted = params.filter(|params| params["message_type"] == message_type);
        wanted.cloned().collect()
    }

    /// Returns the number of requests that the agent has received.
    pub fn request_count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn serve(
    mut stream: TcpStream,
    script: &dyn Fn(&str, &Value) -> FakeReply,
    seen: &Mutex<Vec<Value>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    let _ = reader.read_line(&mut first);
    let path = first.split(' ').nth(1).unwrap_or_default();
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    seen.lock().unwrap().push(request.clone());
    let ok = |body: &str| {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}");
        format!("{head}\r\n\r\n{body}")
    };
    let done = match script(path, &request) {
        FakeReply::Answer(result) => {
            let reply = json!({"jsonrpc": "2.0", "result": result, "id": request["id"]});
            stream.write_all(ok(&reply.to_string()).as_bytes())
        }
        FakeReply::Body(body) => stream.write_all(ok(&body).as_bytes()),
        FakeReply::Bytes(bytes) => stream.write_all(&bytes),
        FakeReply::Endless(bytes, pause) => loop {
            if stream.write_all(&bytes).is_err() {
                break Ok(());
            }
            thread::park_timeout(pause);
        },
        FakeReply::Close => Ok(()),
        FakeReply::Silence => reader.read_to_end(&mut Vec::new()).map(drop),
    };
    drop(done); // the peer may have closed the connection
}

/// Returns the reply to a notification that was received.
pub fn acknowledgement() -> FakeReply {
    FakeReply::Answer(json!({"status": "ok"}))
}

/// Returns the reply of a good player to `request`: it joins, chooses `choice` as its parity, and
/// makes the first legal move.
pub fn valid_reply(id: &str, choice: &str, request: &Value) -> FakeReply {
    let asked = &request["params"];
    let reply = |message_type: &str, body: Value| {
        let mut reply = message(message_type, &format!("player:{id}"), body);
        for echoed in ["conversation_id", "auth_token", "match_id"] {
            reply[echoed] = asked[echoed].clone();
        }
        FakeReply::Answer(reply)
    };
    match asked["message_type"].as_str() {
        Some("GAME_INVITATION") => reply(
            "GAME_JOIN_ACK",
            json!({"player_id": id, "arrival_timestamp": now(), "accept": true}),
        ),
        Some("CHOOSE_PARITY_CALL") => reply(
            "CHOOSE_PARITY_RESPONSE",
            json!({"player_id": id, "parity_choice": choice}),
        ),
        Some("CHOOSE_MOVE_CALL") => reply(
            "CHOOSE_MOVE_RESPONSE",
            json!({"player_id": id, "move": asked["legal_moves"][0], "move_number": asked["move_number"]}),
        ),
        _ => acknowledgement(),
    }
}

/// A gate at which scripts wait until the test opens it. Then it stays open.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Waits until the gate is open.
    pub fn pass(&self) {
        let (is_open, opened) = &*self.0;
        let is_open = is_open.lock().unwrap();
        let passed = opened.wait_timeout_while(is_open, time_limit(), |is_open| !*is_open);
        drop(passed.unwrap());
    }

    /// Opens the gate.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

/// Returns true if a message asks for a parity choice.
pub fn is_parity_call(asked: &Value) -> bool {
    asked["message_type"] == "CHOOSE_PARITY_CALL"
}
