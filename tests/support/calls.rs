//! Requests of a test to an agent: bytes, HTTP requests, JSON-RPC calls and league messages.
//!
//! `message` adds the envelope to a body, `set` changes one field of a message, and `send` sends a
//! message and returns the reply. No function checks a rule of the league, so a test can send a
//! wrong message too.

use super::{json_of, text_of, time_limit};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Splits a URL into host and port, and path.
fn split(url: &str) -> (&str, &str) {
    let rest = url.strip_prefix("http://").unwrap();
    rest.split_at(rest.find('/').unwrap())
}

/// Sends bytes and reads the reply, until the peer closes the connection or sends nothing for
/// `limit`.
pub fn raw(url: &str, bytes: &[u8], limit: Duration) -> Vec<u8> {
    let mut stream = connect(url, limit).unwrap();
    let _ = stream.write_all(bytes);
    read_all(stream)
}

/// Reads until the peer closes the connection, or sends nothing within the read timeout.
pub fn read_all(mut stream: TcpStream) -> Vec<u8> {
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    reply
}

/// Sends an HTTP request with a body. Returns the status and the body of the response. Each line of
/// `headers` ends with a line break.
pub fn http(verb: &str, url: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let (host, path) = split(url);
    let head = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    split_response(&raw(url, &[head.as_bytes(), body].concat(), time_limit()))
}

/// Returns the status (0: none) and the body of a response.
pub fn split_response(response: &[u8]) -> (u16, String) {
    let text = String::from_utf8_lossy(response);
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.unwrap_or(0), body.into())
}

/// Sends a JSON-RPC call. Returns the whole reply.
pub fn call(url: &str, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    let (status, body) = http("POST", url, "", request.to_string().as_bytes());
    assert_eq!(status, 200, "{method}: {body}");
    json_of(&body)
}

/// Sends a JSON-RPC call. Returns the result in the reply.
pub fn ask(url: &str, method: &str, params: Value) -> Value {
    call(url, method, params)["result"].take()
}

/// Calls a tool. Returns its result.
pub fn call_tool(url: &str, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let result = ask(url, "tools/call", params);
    assert!(result.is_object(), "{name}");
    result
}

/// Sends a league message under its type. Returns the result, or the whole reply if that is an
/// error.
pub fn send(url: &str, message: &Value) -> Value {
    let message_type = message["message_type"].as_str().unwrap();
    let mut reply = call(url, message_type, message.clone());
    match reply["error"].is_null() {
        true => reply["result"].take(),
        false => reply,
    }
}

/// Returns a league message with its envelope. The fields of `body` replace those of the envelope.
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

/// Returns the message in a JSON-RPC request or reply, or the bare message.
pub fn message_of(whole: &Value) -> &Value {
    let inner = ["params", "result"].iter().find_map(|key| whole.get(key));
    let inner = inner.filter(|_| whole["jsonrpc"] == "2.0");
    inner.unwrap_or(whole)
}

/// Changes one field of a value, named by its key or by a JSON pointer; a null removes the field.
pub fn set(whole: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    match whole.pointer_mut(parent).unwrap() {
        Value::Object(object) if value.is_null() => drop(object.remove(key)),
        Value::Object(object) => drop(object.insert(key.into(), value)),
        other => *other.pointer_mut(&format!("/{key}")).unwrap() = value,
    }
}

/// Makes changes like `/context/field=7`; words without a sign of equality change nothing.
pub fn set_all<'a>(whole: &mut Value, words: impl IntoIterator<Item = &'a str>) {
    for (place, text) in words.into_iter().filter_map(|word| word.split_once('=')) {
        set(whole, place, json_or_text(text));
    }
}

/// Reads JSON, or else a text.
pub fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Connects to the host and port of a URL. A read fails if no byte comes within `limit`.
pub fn connect(url: &str, limit: Duration) -> io::Result<TcpStream> {
    // Windows tries localhost as an IPv6 address first, which takes two seconds to fail.
    let stream = TcpStream::connect(split(url).0.replace("localhost", "127.0.0.1"))?;
    stream.set_read_timeout(Some(limit))?;
    Ok(stream)
}

/// Returns the time in the form that messages have.
pub fn now() -> String {
    league::values::Timestamp::now().to_string()
}

/// Registers a player. Returns the manager's reply.
pub fn register_player(manager: &str, id: &str, endpoint: &str) -> Value {
    send(manager, &player_registration(id, endpoint, None))
}

/// Returns a player's registration; with its token it registers again.
pub fn player_registration(id: &str, endpoint: &str, token: Option<&str>) -> Value {
    let sender = format!("player:{id}");
    let mut body = application(&sender, endpoint);
    body["auth_token"] = json!(token);
    message("LEAGUE_REGISTER_REQUEST", &sender, body)
}

/// Returns a referee's registration; with its token it registers again.
pub fn referee_registration(id: &str, endpoint: &str, matches: u32, token: Option<&str>) -> Value {
    let sender = format!("referee:{id}");
    let mut meta = meta(&sender, endpoint);
    meta["max_concurrent_matches"] = matches.into();
    let body = json!({"referee_meta": meta, "auth_token": token});
    message("REFEREE_REGISTER_REQUEST", &sender, body)
}

/// Returns the body of a registration of a player with this display name.
pub fn application(name: &str, endpoint: &str) -> Value {
    json!({"player_meta": meta(name, endpoint)})
}

fn meta(name: &str, endpoint: &str) -> Value {
    json!({"display_name": name, "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"], "contact_endpoint": endpoint})
}

/// Returns the token in the reply to a registration.
pub fn token_of(reply: &Value) -> String {
    text_of(&reply["auth_token"]).into()
}

/// Returns a report of `sender`: the first of two players has won with even.
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
