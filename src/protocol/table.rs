//! The enum of all messages and the table of their specifications, both made from the list
//! `messages!` in `protocol.rs`. A new message in that list needs an arm in the `match` of each
//! program's handlers; the compiler shows where.

use super::{AgentKind, Envelope, MESSAGES, Message, PROTOCOL, Parity, QueryParams, QueryType};
use crate::json::{FieldError, schema_of};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Declares the messages.
macro_rules! messages {
    ($($message_type:literal $name:ident $method:literal [$($to:ident)*] $(: $description:literal)?)*) => {
        /// Any message of the protocol.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "message_type")]
        pub enum Message {
            $(#[serde(rename = $message_type)] $name($name),)*
        }

        $(
            impl $name {
                /// The `message_type` on the wire.
                pub const NAME: &str = $message_type;
            }

            impl From<$name> for Message {
                fn from(body: $name) -> Message {
                    Message::$name(body)
                }
            }
        )*

        impl Message {
            /// Returns the `message_type` on the wire.
            pub fn name(&self) -> &'static str {
                match self { $(Message::$name(_) => $message_type,)* }
            }
        }

        /// The specifications of all messages.
        pub static MESSAGES: [MessageSpec; [$($message_type),*].len()] = [$(MessageSpec {
            message_type: $message_type,
            method: $method,
            receivers: &[$(AgentKind::$to),*],
            description: concat!($($description)?),
            schema: std::sync::LazyLock::new(|| table::message_schema::<$name>($message_type)),
            decode: |packet| Ok(crate::json::deserialize::<$name>(packet)?.into()),
        },)*];
    };
}

/// The specification of a message.
pub struct MessageSpec {
    /// The name on the wire.
    pub message_type: &'static str,
    /// The JSON-RPC method, which is also the name as a tool.
    pub method: &'static str,
    /// The kinds of agents that accept the message as a request; none if it is only a reply.
    pub receivers: &'static [AgentKind],
    /// A sentence or two for a person or a language model.
    pub description: &'static str,
    /// The JSON schema of the whole message, envelope and body.
    pub schema: LazyLock<Value>,
    /// Decodes the body of a valid message.
    pub decode: fn(&Value) -> Result<Message, FieldError>,
}

impl MessageSpec {
    /// Returns true if agents of this kind accept the message as a request.
    pub fn is_accepted_by(&self, kind: AgentKind) -> bool {
        self.receivers.contains(&kind)
    }

    /// Returns the messages that agents of this kind accept as requests.
    pub fn accepted_by(kind: AgentKind) -> impl Iterator<Item = &'static MessageSpec> {
        MESSAGES
            .iter()
            .filter(move |spec| spec.is_accepted_by(kind))
    }

    /// Returns the specification of a message type.
    pub fn by_type(name: &str) -> Option<&'static MessageSpec> {
        MESSAGES.iter().find(|spec| spec.message_type == name)
    }

    /// Returns the request of a method; the message type itself is accepted as method too.
    pub fn by_method(name: &str) -> Option<&'static MessageSpec> {
        let mut specs = MESSAGES.iter();
        specs.find(|spec| spec.method == name || spec.message_type == name)
    }
}

impl super::Message {
    /// Returns the specification of the message.
    pub fn spec(&self) -> &'static MessageSpec {
        let spec = MessageSpec::by_type(self.name());
        spec.expect("every message is in the table")
    }
}

/// Returns the schema of a message, envelope and body.
pub(super) fn message_schema<T: DeserializeOwned>(name: &str) -> Value {
    let mut schema = schema_of::<Envelope>();
    let body = schema_of::<T>();

    // Add the body to the envelope.
    for (field, body_schema) in body["properties"].as_object().into_iter().flatten() {
        schema["properties"][field] = body_schema.clone();
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(1, json!("message_type"));
        required.extend(body["required"].as_array().into_iter().flatten().cloned());
    }

    // What the types do not say.
    schema["properties"]["message_type"] = json!({"const": name});
    schema["properties"]["protocol"] = json!({"const": PROTOCOL});
    for (field, legal) in [
        ("parity_choice", schema_of::<Parity>()),
        ("query_type", schema_of::<QueryType>()),
        ("query_params", schema_of::<QueryParams>()),
    ] {
        if let Some(field) = schema["properties"].get_mut(field) {
            *field = legal;
            field["$comment"] = "checked by its handler".into();
        }
    }
    schema
}

impl AgentKind {
    /// Returns the n-th id of a kind: `P07`, `P100`, `REF01`.
    pub fn format_id(self, n: u32) -> String {
        let prefix = if self == AgentKind::Referee {
            "REF"
        } else {
            "P"
        };
        format!("{prefix}{n:02}")
    }

    /// Returns true if a text is an id of this kind.
    pub fn is_valid_id(self, text: &str) -> bool {
        let digits = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let number = digits.parse().unwrap_or_default();
        number > 0 && self.format_id(number) == text
    }
}
