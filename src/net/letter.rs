//! What a message is as text: whom it is for, what it is about, how it is written, and what a reply says. `client.rs`
//! sends what is written here.

use crate::net::retry::CallError;
use crate::net::secret::secret;
use crate::protocol::{Code, Kind, Packet, Refusal};
use crate::wire::{Fault, SHOWN, cut, quotable};
use serde_json::{Value, json};
use std::fmt::Display;

/// The largest notice, and the largest answer of a manager, in bytes: a table of 100 players has 20 KB.
pub const MAX_NOTICE: usize = 256 << 10;

/// Whom a call is for.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The kind of agent.
    pub kind: Kind,
    /// Its id, for the log.
    pub id: String,
    /// Its URL.
    pub endpoint: String,
    /// The largest answer that is read from it, in bytes.
    pub max: usize,
}

impl Peer {
    /// The league manager, at that URL.
    pub fn manager(endpoint: &str) -> Peer {
        Peer {
            kind: Kind::Manager,
            id: Kind::Manager.word().into(),
            endpoint: endpoint.into(),
            max: MAX_NOTICE,
        }
    }

    /// How the peer signs.
    pub fn sender(&self) -> String {
        match self.kind {
            Kind::Manager => self.id.clone(),
            kind => format!("{kind}:{}", self.id),
        }
    }
}

/// What a message is about: the parts of its envelope that its sender chooses.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "fields of the envelope")]
pub struct About {
    pub conversation_id: String,
    pub auth_token: Option<String>,
    pub round_id: Option<u32>,
    pub match_id: Option<String>,
}

/// A notice for many. It is written once, as text; a copy is what that copy alone says, followed by the notice, two
/// objects joined at a brace.
#[derive(Debug, Clone)]
pub struct Bulletin {
    pub(super) method: &'static str,
    pub(super) packet: Value,
    /// The packet from its first field to the closing brace.
    pub(super) text: String,
}

/// A JSON-RPC request, written.
pub fn call(method: &str, params: impl Display, id: impl Display) -> String {
    let method = json!(method);
    format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params},"id":{id}}}"#)
}

/// An object, and the rest of another from its first field to the closing brace.
pub(super) fn joined(object: &Value, rest: &str) -> String {
    let object = object.to_string();
    format!("{},{rest}", &object[..object.len() - 1])
}

/// Whether an object is a reply, whatever status it came with.
pub(super) fn is_reply(reply: &Packet) -> bool {
    ["message_type", "result", "error"]
        .iter()
        .any(|key| reply.contains_key(*key))
}

/// What a reply says: its `result`. Some agents answer with a request, some without the shell.
pub(super) fn result(mut reply: Packet) -> Result<Value, CallError> {
    if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
        let message = error["message"].as_str().unwrap_or("no message");
        let code = error["code"].as_i64().unwrap_or_default();
        return Err(CallError::Rpc(code, quotable(message)));
    }
    if reply.contains_key("message_type") {
        return Ok(Value::Object(reply));
    }
    let result = reply.remove("result").or_else(|| reply.remove("params"));
    result.ok_or_else(|| {
        let missing = Fault::new(&Value::Null, "a result").under("result");
        CallError::wrong(missing, Value::Object(reply))
    })
}

pub(super) fn not(expected: &str) -> Refusal {
    Refusal::new(Code::E003, format!("that is not {expected}"))
}

/// A text of a request, as it is repeated to its sender.
pub fn quoted(request: &Value, key: &str) -> Option<String> {
    request[key].as_str().map(|text| cut(text, SHOWN))
}

/// What a notice is answered.
pub fn ok() -> Value {
    json!({"status": "ok"})
}

/// A new conversation: the words, then eight random digits, so that runs never mix.
pub fn conversation(words: &str) -> String {
    format!("conv-{words}-{}", secret(8))
}
