//! What a message is before it is sent: whom it is for, what it is about, and how it is written as
//! text. A notice for many is a `Bulletin`, whose text is written once. `client.rs` sends what is
//! written here.

use crate::net::secret::secret;
use crate::protocol::Kind;
use crate::wire::{SHOWN, cut};
use serde_json::{Value, json};
use std::fmt::Display;
use std::time::Duration;

/// The largest notice, and the largest answer of a manager, in bytes: a table of 100 players has 20
/// KB.
pub const MAX_NOTICE: usize = 256 << 10;

/// Whom a call is for, and what is borne with from it.
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
    /// How long its answer may take.
    pub limit: Duration,
}

impl Peer {
    /// The league manager, at that URL.
    pub fn manager(endpoint: &str, limit: Duration) -> Peer {
        Peer {
            kind: Kind::Manager,
            id: Kind::Manager.word().into(),
            endpoint: endpoint.into(),
            max: MAX_NOTICE,
            limit,
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

/// A notice for many. It is written once, as text; a copy is what that copy alone says, followed by
/// the notice, two objects joined at a brace.
#[derive(Debug, Clone)]
pub struct Bulletin {
    pub(super) method: &'static str,
    /// The notice without what each copy says for itself, as it is logged.
    pub packet: Value,
    /// The packet from its first field to the closing brace.
    pub(super) text: String,
}

/// A JSON-RPC request, written.
pub fn call(method: &str, params: impl Display, id: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
}

/// A JSON-RPC result, written.
pub fn answered(result: &Value, id: &Value) -> String {
    let result = written(result);
    format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#)
}

/// An object, and the rest of another from its first field to the closing brace.
pub(super) fn joined(object: &Value, rest: &str) -> String {
    let object = written(object);
    format!("{},{rest}", &object[..object.len() - 1])
}

/// A value as text, in half the time that its `to_string` takes.
pub(super) fn written(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default() // memory takes it all
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
