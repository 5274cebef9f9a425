//! The enums of the messages and the table of their specifications, made from the list `messages!`
//! in `protocol.rs`. A new request in that list needs an arm in the `match` of each program that it
//! is sent to; the compiler shows where.

use super::{AgentKind, Envelope, MESSAGES, PROTOCOL, Parity, QueryParams, QueryType};
use crate::json::{FieldError, schema_of};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A message of one type, or an enum of several: it can be written and parsed.
pub trait Message: Serialize + Sized + 'static {
    /// Returns the `message_type` on the wire.
    fn name(&self) -> &'static str;

    /// Decodes the body of a message of this type. Returns `None` if it is another type of message.
    fn decode(message_type: &str, packet: &Value) -> Option<Result<Self, FieldError>>;

    /// Returns the specification of the message.
    fn spec(&self) -> &'static MessageSpec {
        let spec = MessageSpec::by_type(self.name());
        spec.expect("every message is in the table")
    }
}

/// A request.
pub trait Call: Message {
    /// The message that answers it, or `StatusOk` if it is a notification.
    type Reply: DeserializeOwned;
}

/// Declares the messages. The requests stand in groups, since two kinds of agent share some.
macro_rules! messages {
    (
        ManagerRequest { $($manager:tt)* }
        PlayerRequest { $($player:tt)* }
        PlayerRequest and RefereeRequest { $($both:tt)* }
        Reply { $($reply:tt)* }
    ) => {
        messages! { @enum ManagerRequest $($manager)* }
        messages! { @enum PlayerRequest $($player)* $($both)* }
        messages! { @enum RefereeRequest $($both)* }
        messages! { @enum Reply $($reply)* "GAME_ERROR" GameError "LEAGUE_ERROR" LeagueError }
        messages! {
            @table
            [AgentKind::Manager] { $($manager)* }
            [AgentKind::Player] { $($player)* }
            [AgentKind::Player, AgentKind::Referee] { $($both)* }
            [] { $($reply)* }
        }
    };

    (@enum $enum:ident $($message_type:literal $name:ident
        $(: $method:literal => $reply:ident $description:literal)?)*
    ) => {
        #[derive(Debug, Clone, Serialize)]
        #[serde(untagged)]
        pub enum $enum { $($name($name),)* }

        impl Message for $enum {
            fn name(&self) -> &'static str {
                match self { $($enum::$name(_) => $message_type,)* }
            }

            fn decode(message_type: &str, packet: &Value) -> Option<Result<Self, FieldError>> {
                match message_type {
                    $($message_type => Some(deserialize(packet).map($enum::$name)),)*
                    _ => None,
                }
            }
        }

        $(impl From<$name> for $enum {
            fn from(message: $name) -> $enum {
                $enum::$name(message)
            }
        })*
    };

    (@table $($receivers:tt { $($message_type:literal $name:ident
        $(: $method:literal => $reply:ident $description:literal)?)* })*
    ) => {
        $($(
            impl $name {
                /// The `message_type` on the wire.
                pub const NAME: &str = $message_type;
            }

            impl Message for $name {
                fn name(&self) -> &'static str {
                    $message_type
                }

                fn decode(message_type: &str, packet: &Value) -> Option<Result<Self, FieldError>> {
                    (message_type == $message_type).then(|| deserialize(packet))
                }
            }

            $(impl Call for $name {
                type Reply = $reply;
            })?
        )*)*

        /// The specifications of all messages.
        pub static MESSAGES: [MessageSpec; [$($($message_type,)*)*].len()] = [$($(MessageSpec {
            message_type: $message_type,
            method: concat!($($method)?),
            receivers: &$receivers,
            description: concat!($($description)?),
            schema: std::sync::LazyLock::new(|| table::message_schema::<$name>($message_type)),
        },)*)*];
    };
}

/// The specification of a message.
pub struct MessageSpec {
    /// The name on the wire.
    pub message_type: &'static str,
    /// The JSON-RPC method, which is also the name as a tool; empty for a reply.
    pub method: &'static str,
    /// The kinds of agents that accept the message as a request; none if it is only a reply.
    pub receivers: &'static [AgentKind],
    /// A sentence or two for a person or a language model.
    pub description: &'static str,
    /// The JSON schema of the whole message, envelope and body.
    pub schema: LazyLock<Value>,
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
        let mut found = MESSAGES.iter().filter(|_| !name.is_empty());
        found.find(|spec| spec.method == name || spec.message_type == name)
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
    for (field, constant) in [("message_type", name), ("protocol", PROTOCOL)] {
        schema["properties"][field] =
            json!({"const": constant, "description": format!("{constant:?}")});
    }
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
