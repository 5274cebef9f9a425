//! From a packet to a message, and back. A packet is first completed with what is known already,
//! then read once, whole. See "Envelope" in `protocol.md` for what is supplied where.

use super::{Code, Refusal};
use super::{Entry, Envelope, GameJoinAck, Message, PROTOCOL};
use crate::wire::{Fault, FaultKind, Reader, Timestamp, Wire, cut, lookalike};
use serde_json::{Value, json};

/// A message as it was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Understood {
    /// The envelope.
    pub envelope: Envelope,
    /// The message.
    pub message: Message,
    /// What was wrong with optional fields, which count as absent.
    pub ignored: Vec<Fault>,
}

/// What a packet may lack, if whoever reads it knows it. A tool call need not bring any of these.
pub const SUPPLIED: [&str; 7] = [
    "arrival_timestamp",
    "conversation_id",
    "league_id",
    "message_type",
    "protocol",
    "sender",
    "timestamp",
];

/// Puts what is known into a packet, where it is absent or null, or a time that cannot be read: the
/// protocol, the time, and of the other fields what `known` says. Returns the names of the fields
/// that were supplied.
pub fn complete(
    packet: &mut Value,
    known: impl Fn(&Value, &str) -> Option<String>,
) -> Vec<&'static str> {
    let mut supplied = Vec::new();
    for field in SUPPLIED {
        let came = &packet[field];
        let is_good = || !field.ends_with("timestamp") || Timestamp::read(came).is_ok();
        if !packet.is_object() || !came.is_null() && is_good() {
            continue;
        }
        let value = match field {
            "protocol" => Some(PROTOCOL.into()),
            "arrival_timestamp" if packet["message_type"] != GameJoinAck::NAME => None,
            "arrival_timestamp" | "timestamp" => Some(Timestamp::now().to_string()),
            _ => known(packet, field),
        };
        if let Some(value) = value {
            packet[field] = value.into();
            supplied.push(field);
        }
    }
    supplied
}

/// Reads a packet whole, envelope and message. All that is missing is named at once; a misspelt
/// field is named with its likely meaning.
pub fn read(packet: &Value) -> Result<Understood, Refusal> {
    if let Some(came) = packet["protocol"].as_str().filter(|came| *came != PROTOCOL) {
        let expected = format_args!("expected {PROTOCOL:?}");
        return Err(Refusal::got(Code::E018, "protocol", came, expected));
    }
    let mut reader = Reader::default();
    let envelope = Envelope::read_in(packet, &mut reader);
    let name = packet["message_type"].as_str();
    let message = name.and_then(|name| Message::read_body(name, packet, &mut reader));
    match reader.end(envelope.zip(message)) {
        Ok((envelope, message)) => Ok(Understood {
            envelope,
            message,
            ignored: reader.ignored,
        }),
        Err(fault) => Err(spelt(fault, packet, name.unwrap_or_default()).into()),
    }
}

/// Says of a missing field that it stands there under another name.
fn spelt(fault: Fault, packet: &Value, message_type: &str) -> Fault {
    let Some(entry) = Entry::of_message(message_type).filter(|_| fault.kind == FaultKind::Missing)
    else {
        return fault;
    };
    let schema = entry.schema();
    for path in fault.path.split(", ") {
        if let Some(key) = lookalike(packet, &schema, path) {
            let wanted = path.rsplit('.').next().unwrap_or_default();
            let problem = format!("has {:?}, expected {wanted:?}", cut(key, 60));
            return Fault { problem, ..fault };
        }
    }
    fault
}

/// Writes a message with its envelope as one flat object. A field that both have is the message's.
pub fn write(envelope: &Envelope, message: &Message) -> Value {
    let mut packet = json!(envelope);
    if let (Value::Object(all), Value::Object(own)) = (&mut packet, json!(message)) {
        all.extend(own);
    }
    packet
}
