//! What tests say to agents: bytes, HTTP requests, JSON-RPC calls, and messages of the league.
//!
//! `message` puts a body into its envelope, `but` changes one field of it, `send` brings it to an
//! agent and gives its answer. Nothing here knows a rule of the league: what is wrong is sent as
//! readily as what is right.

use super::{json_of, time_limit};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Host and port of a URL, and its path.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}

/// Sends bytes as they are and reads what comes until the other side closes, or says nothing for
/// `limit`.
pub fn raw(url: &str, bytes: &[u8], limit: Duration) -> Vec<u8> {
    let mut stream = connect(url, limit).unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// A request with a body: the status and the body of the answer. `headers` end with a line break
/// each.
pub fn http(verb: &str, url: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let (host, path) = split(url);
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    split_response(&raw(url, &[head.as_bytes(), body].concat(), time_limit()))
}

/// The status (0: none) and the body of an answer.
pub fn split_response(answer: &[u8]) -> (u16, String) {
    let text = String::from_utf8_lossy(answer);
    let status = text.split(' ').nth(1).and_then(|item| item.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or(0), body.into())
}

/// A JSON-RPC call: the whole reply.
pub fn call(url: &str, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    let (status, body) = http("POST", url, "", request.to_string().as_bytes());
    assert_eq!(status, 200, "{method}: {body}");
    json_of(&body)
}

/// A JSON-RPC call: what the reply has as its result.
pub fn ask(url: &str, method: &str, params: Value) -> Value {
    call(url, method, params)["result"].take()
}

/// A tool that is called: its result.
pub fn call_tool(url: &str, name: &str, arguments: Value) -> Value {
    let wanted = json!({"name": name, "arguments": arguments});
    let mut reply = call(url, "tools/call", wanted);
    assert!(reply["result"].is_object(), "{name}: {reply}");
    reply["result"].take()
}

/// A league message sent under its type: the `result`, or the whole reply if it is an error.
pub fn send(url: &str, message: &Value) -> Value {
    let message_type = message["message_type"].as_str().unwrap();
    let mut reply = call(url, message_type, message.clone());
    match reply["error"].is_null() {
        true => reply["result"].take(),
        false => reply,
    }
}

/// A league message with its envelope; `body` overrules the envelope.
pub fn message(message_type: &str, sender: &str, body: Value) -> Value {
    let mut whole = json!({
        "protocol": "league.v2", "message_type": message_type, "sender": sender,
        "timestamp": now(), "conversation_id": format!("conv-{message_type}-{sender}"),
    });
    for (key, value) in body.as_object().unwrap() {
        whole[key] = value.clone();
    }
    whole
}

/// The message in a JSON-RPC request or reply, or the bare message.
pub fn message_of(shell: &Value) -> &Value {
    let inside = ["params", "result"].iter().find_map(|key| shell.get(key));
    inside
        .filter(|_| shell["jsonrpc"] == "2.0")
        .unwrap_or(shell)
}

/// `message` with one field changed; null takes it out.
pub fn with_field(message: &Value, key: &str, value: Value) -> Value {
    let mut changed = message.clone();
    set(&mut changed, key, value);
    changed
}

/// Changes one place of a value, named by a key or a JSON pointer; a null removes the key.
pub fn set(whole: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    match whole.pointer_mut(parent).unwrap() {
        Value::Object(object) if value.is_null() => drop(object.remove(key)),
        Value::Object(object) => drop(object.insert(key.into(), value)),
        other => *other.pointer_mut(&format!("/{key}")).unwrap() = value,
    }
}

/// Connects to the host and port of a URL; reading gives up after `limit` of silence.
pub fn connect(url: &str, limit: Duration) -> io::Result<TcpStream> {
    // On Windows, localhost is first another address, and it takes two seconds to find that out.
    let stream = TcpStream::connect(split(url).0.replace("localhost", "127.0.0.1"))?;
    stream.set_read_timeout(Some(limit))?;
    Ok(stream)
}

/// The time as messages have it.
pub fn now() -> String {
    league::values::Timestamp::now().to_string()
}

/// A scripted agent's registration as a player: the manager's answer.
pub fn register_player(manager: &str, id: &str, endpoint: &str) -> Value {
    let sender = format!("player:{id}");
    let body = application(&sender, endpoint);
    send(manager, &message("LEAGUE_REGISTER_REQUEST", &sender, body))
}

/// A scripted agent's registration as a referee: the manager's answer.
pub fn register_referee(manager: &str, id: &str, endpoint: &str, matches: u32) -> Value {
    let sender = format!("referee:{id}");
    let mut meta = meta(&sender, endpoint);
    meta["max_concurrent_matches"] = matches.into();
    let body = json!({"referee_meta": meta});
    send(manager, &message("REFEREE_REGISTER_REQUEST", &sender, body))
}

/// What registers a player of a name.
pub fn application(name: &str, endpoint: &str) -> Value {
    json!({"player_meta": meta(name, endpoint)})
}

fn meta(name: &str, endpoint: &str) -> Value {
    json!({"display_name": name, "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "contact_endpoint": endpoint})
}

/// The token in a registration's answer.
pub fn token_of(answer: &Value) -> String {
    answer["auth_token"]
        .as_str()
        .unwrap_or_else(|| panic!("no token: {answer}"))
        .to_string()
}

/// The report of an even win of the first of two players, as `sender` would make it.
pub fn report(
    sender: &str,
    token: Option<&str>,
    match_id: &str,
    [winner, loser]: [&str; 2],
) -> Value {
    let round_id: u32 = match_id[1..2].parse().unwrap();
    let details = json!({"drawn_number": 8, "choices": {winner: "even", loser: "odd"}});
    let result = json!({"winner": winner, "score": {winner: 3, loser: 0}, "details": details});
    let body = json!({
        "auth_token": token, "league_id": "league_2025_even_odd", "round_id": round_id, "match_id": match_id,
        "game_type": "even_odd", "result": result,
    });
    message("MATCH_RESULT_REPORT", sender, body)
}
