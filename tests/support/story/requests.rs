//! Requests in a story, and their answers in short.

use super::*;
use league::protocol::MessageSpec;
use std::collections::BTreeSet;

impl Story {
    /// Runs a command about requests that are answered later, or sent until something happens.
    pub fn waiting_command(&mut self, line: &str) -> Option<String> {
        let [first, second, _, more] = words_of(line);
        match (first, second) {
            ("later", name) => {
                let (target, asked) = more.split_once(' ').unwrap();
                let (url, asked) = (self.url(target), asked.to_string());
                let asked = thread::spawn(move || match asked.strip_prefix("told ") {
                    Some(line) => told(&url, line),
                    None => answer(&url, &asked),
                });
                self.asked.insert(name.into(), asked);
            }
            ("reply", name) => {
                wait_until(line, || self.asked[name].is_finished());
                return Some(self.asked.remove(name).unwrap().join().unwrap());
            }
            ("waiting", count) => wait_until(line, || {
                let waiting = self.asked.values().filter(|asked| !asked.is_finished());
                waiting.count().to_string() == count
            }),
            (name, "pinged") => {
                let [token, _, fake, kind, count] = more.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                let ping = json!({"auth_token": token});
                wait_until(line, || {
                    call(&self.url(name), "ping", ping.clone());
                    self.received(fake, kind, 0).len() >= count.parse().unwrap()
                });
            }
            _ => return None,
        }
        Some(String::new())
    }

    /// Sends a request that is answered at once, and returns the answer.
    pub fn request_command(&mut self, line: &str) -> Option<String> {
        let [name, command, rest, more] = words_of(line);
        Some(match command {
            "invited" => {
                for line in [
                    format!("manager announces {more} tok-true"),
                    format!("true invites {more}"),
                ] {
                    let reply = told(&self.url(name), &line);
                    assert!(["ok", "joins"].contains(&&*reply), "{line}: {reply}");
                }
                String::new()
            }
            "told" => told(&self.url(name), more),
            "replies" => {
                let reply = reply_to(&self.url(name), more);
                let conversation = reply["result"]["conversation_id"].as_str();
                let conversation = conversation.map(|id| format!(" in {id}"));
                let legal = "\"even or odd\"";
                let reply = shown(reply)
                    .replace("\"even\"", legal)
                    .replace("\"odd\"", legal);
                reply + &conversation.unwrap_or_default()
            }
            "repeats" => {
                let replies = (0..20).map(|_| shown(reply_to(&self.url(name), more)));
                replies.collect::<BTreeSet<_>>().len().to_string()
            }
            "sends" => {
                let (header, body) = more.split_once(" -- ").unwrap_or(("X: y", more));
                let (header, body) = (format!("{header}\r\n"), body.replace("\\r\\n", "\r\n"));
                match http("POST", &self.url(name), &header, body.as_bytes()) {
                    (200, text) => text,
                    (status, _) => status.to_string(),
                }
            }
            "post" => post(&self.url(name), "", more),
            "browsed" => post(&self.url(name), "Origin: http://192.0.2.1\r\n", more),
            "serves" => served(&self.url(name), more),
            _ => answer(&self.url(name), rest),
        })
    }
}

/// Sends the message of a line of `fake.rs` under its method. Returns the reply.
pub fn reply_to(url: &str, line: &str) -> Value {
    send_by_method(url, fake::message_of_line(line))
}

/// Returns the reply to such a message as one word.
pub fn told(url: &str, line: &str) -> String {
    fake::told(&reply_to(url, line)["result"]).into()
}

/// Sends a message under its method. Returns the whole reply.
pub fn send_by_method(url: &str, message: Value) -> Value {
    let spec = MessageSpec::by_type(text_of(&message["message_type"])).unwrap();
    call(url, spec.method, message)
}

/// Calls a method with arguments like `relay_token=<1> known=[7]`. Returns the answer in short.
pub fn answer(url: &str, words: &str) -> String {
    let (method, arguments) = words.split_once(' ').unwrap_or((words, ""));
    let mut params = json!({});
    set_all(&mut params, arguments.split(' '));
    let call = json!({"jsonrpc": "2.0", "method": method, "params": params, "id": 1});
    post(url, "", &call.to_string())
}

/// Posts a body. Returns the answer in short.
pub fn post(url: &str, headers: &str, body: &str) -> String {
    let (status, text) = http("POST", url, headers, body.as_bytes());
    match serde_json::from_str(&text) {
        Ok(reply) if status == 200 => shown(reply),
        _ => status.to_string(),
    }
}

/// Returns a reply without its envelope; of an error, the code, and the field or the message.
pub fn shown(mut reply: Value) -> String {
    if let Some(code) = reply.pointer("/error/code") {
        let message = reply["error"]["message"].as_str().unwrap_or_default();
        return format!(
            "error {code} {}",
            message.split(':').next().unwrap_or_default()
        );
    }
    let result = reply.get_mut("result").map(Value::take);
    let mut result = result.unwrap_or(reply);
    if let Some(code) = result["error_code"].as_str() {
        let field = result["context"]["field"].as_str().unwrap_or_default();
        return format!("{code} {field}");
    }
    if let Some(fields) = result.as_object_mut() {
        let envelope = "protocol sender timestamp arrival_timestamp conversation_id league_id \
            round_id proves_itself";
        fields.retain(|name, _| !envelope.contains(name.as_str()));
    }
    result.to_string()
}

/// Gets a page. Returns these fields of its JSON, or how often it has this text; else the status, what the
/// head says about the file, and a short text.
pub fn served(url: &str, words: &str) -> String {
    let (path, wanted) = words.split_once(' ').unwrap_or((words, ""));
    let (status, head, body) = pages::get(url, path);
    if let Some(pointers) = wanted.strip_prefix('/') {
        return columns(&[json_of(&body)], &pointers.replace(" /", " "));
    }
    if !wanted.is_empty() {
        return body.matches(wanted).count().to_string();
    }
    let told = ["Content-Type", "Content-Disposition", "Location"];
    let head = head
        .lines()
        .filter(|line| told.iter().any(|name| line.starts_with(name)));
    let head: String = head.map(|line| format!("{line}\n")).collect();
    let body = if body.len() < 1000 {
        body
    } else {
        String::new()
    };
    format!("{status}\n{head}{body}")
}

/// Returns these fields of each value: `match_id result/winner`, with a line for each value.
pub fn columns(values: &[Value], fields: &str) -> String {
    let cell = |value: &Value, field: &str| match value.pointer(&format!("/{field}")) {
        Some(Value::String(text)) => text.clone(),
        found => found.unwrap_or(&Value::Null).to_string(),
    };
    let mut lines = String::new();
    for value in values {
        let cells: Vec<String> = fields.split(' ').map(|field| cell(value, field)).collect();
        lines += &format!("{}\n", cells.join(" "));
    }
    lines
}
