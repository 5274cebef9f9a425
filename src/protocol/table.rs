//! What follows from the table of messages in `protocol.rs`: the enum of all messages, their names,
//! and a row for each in which tools, receivers and schemas are looked up. A message that is new in
//! the table is new everywhere: the handlers of all three programs are one exhaustive `match` each,
//! and do not compile without an arm for it.

use super::{CATALOGUE, Envelope, Kind, PROTOCOL};
use crate::wire::Wire;
use serde_json::{Value, json};

/// Declares the messages and all that follows from the list.
macro_rules! messages {
    ($($wire:literal $name:ident $tool:literal [$($to:ident)*] $(: $says:literal)?)*) => {
        /// Any message of the protocol.
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        #[allow(missing_docs, reason = "each carries the object of its name")]
        pub enum Message { $($name($name),)* }

        $(
            impl $name {
                /// The `message_type` on the wire.
                pub const NAME: &str = $wire;
            }

            impl From<$name> for Message {
                fn from(body: $name) -> Message {
                    Message::$name(body)
                }
            }
        )*

        impl Message {
            /// The `message_type` on the wire.
            pub fn name(&self) -> &'static str {
                match self { $(Message::$name(_) => $wire,)* }
            }

            /// The JSON-RPC method that the message travels under.
            pub fn tool(&self) -> &'static str {
                match self { $(Message::$name(_) => $tool,)* }
            }

            /// Reads the fields that are the message's own.
            fn read_body(
                name: &str,
                packet: &Value,
                reader: &mut $crate::wire::Reader,
            ) -> Option<Message> {
                use $crate::wire::Wire;
                match name {
                    $($wire => $name::read_in(packet, reader).map(Message::$name),)*
                    _ => reader.at("message_type", |reader| {
                        reader.wrong(&name.into(), "a message type of league.v2")
                    }),
                }
            }
        }

        /// All messages, in the order of the page.
        pub static CATALOGUE: &[Entry] = &[$(Entry {
            message_type: $wire,
            tool: $tool,
            receivers: &[$(Kind::$to),*],
            says: concat!($($says)?),
            schema: <$name as $crate::wire::Wire>::schema,
        },)*];
    };
}

/// A row of the table of messages.
pub struct Entry {
    /// The name on the wire.
    pub message_type: &'static str,
    /// The JSON-RPC method, and the name as a tool.
    pub tool: &'static str,
    /// Who may be sent the message as a request; nobody, where it is only a reply.
    pub receivers: &'static [Kind],
    /// A sentence or two for a person or a language model.
    pub says: &'static str,
    /// The schema of the message without its envelope.
    pub(super) schema: fn() -> Value,
}

impl Entry {
    /// Whether the message may be sent to an agent of this kind.
    pub fn is_served_by(&self, kind: Kind) -> bool {
        self.receivers.contains(&kind)
    }

    /// The messages that may be sent to an agent of this kind.
    pub fn served_by(kind: Kind) -> impl Iterator<Item = &'static Entry> {
        CATALOGUE.iter().filter(move |it| it.is_served_by(kind))
    }

    /// The row of a message type.
    pub fn of_message(name: &str) -> Option<&'static Entry> {
        CATALOGUE.iter().find(|it| it.message_type == name)
    }

    /// The row that a method names: a tool's name, of which the request is meant (it stands first),
    /// or a message type itself.
    pub fn of_method(name: &str) -> Option<&'static Entry> {
        let mut all = CATALOGUE.iter();
        all.find(|it| it.tool == name || it.message_type == name)
    }

    /// The JSON schema of the whole message, envelope and body.
    pub fn schema(&self) -> Value {
        let (mut whole, own) = (Envelope::schema(), (self.schema)());
        for (key, field) in own["properties"].as_object().into_iter().flatten() {
            whole["properties"][key] = field.clone();
        }
        let required = own["required"].as_array().into_iter().flatten();
        if let Some(all) = whole["required"].as_array_mut() {
            all.extend(required.cloned());
        }
        whole["properties"]["message_type"] = json!({"const": self.message_type});
        whole["properties"]["protocol"] = json!({"const": PROTOCOL});
        whole
    }
}

impl Kind {
    /// The n-th id of a kind: `P07`, `P100`, `REF01`.
    pub fn numbered(self, n: u32) -> String {
        let prefix = match self {
            Kind::Referee => "REF",
            Kind::Player | Kind::Manager => "P",
        };
        format!("{prefix}{n:02}")
    }

    /// Whether a text is an id of that kind.
    pub fn is_id(self, text: &str) -> bool {
        let digits = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let number: Option<u32> = digits.parse().ok();
        number.is_some_and(|n| n >= 1 && self.numbered(n) == text)
    }
}
