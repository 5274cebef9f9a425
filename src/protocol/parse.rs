//! From JSON to a message, and back. First the fields that the receiver knows already are filled
//! in, then the message is parsed once. See "Envelope" in `protocol.md` for what is filled in
//! where.

use super::{Envelope, ErrorCode, GameJoinAck, Message, MessageSpec, PROTOCOL, ProtocolError};
use crate::json::{FieldError, check, deserialize, has_objects, remove_absent};
use crate::values::Timestamp;
use serde_json::{Value, json};
use std::mem;

/// A message that was received.
#[derive(Debug)]
pub struct IncomingMessage<M> {
    /// The envelope.
    pub envelope: Envelope,
    /// The message.
    pub message: M,
    /// Errors in optional fields, which count as absent.
    pub ignored: Vec<FieldError>,
}

/// The fields that may be absent if the receiver knows them. The arguments of a tool call need none
/// of them.
pub const DEFAULTED_FIELDS: [&str; 7] = [
    "arrival_timestamp",
    "conversation_id",
    "league_id",
    "message_type",
    "protocol",
    "sender",
    "timestamp",
];

/// Fills in the fields that are absent or null, and timestamps that are invalid: the protocol, the
/// current time, and for other fields the value that `known` returns. Returns the names of the
/// fields that were filled in.
pub fn fill_defaults(
    packet: &mut Value,
    known: impl Fn(&str) -> Option<String>,
) -> Vec<&'static str> {
    let mut filled_in = Vec::new();
    if !packet.is_object() {
        return filled_in;
    }

    for field in DEFAULTED_FIELDS {
        let received = &packet[field];
        let is_time = received.as_str().and_then(Timestamp::parse).is_some();
        if !received.is_null() && (is_time || !field.ends_with("timestamp")) {
            continue;
        }

        let value = match field {
            "protocol" => Some(PROTOCOL.into()),
            "arrival_timestamp" if packet["message_type"] != GameJoinAck::NAME => None,
            "arrival_timestamp" | "timestamp" => Some(Timestamp::now().to_string()),
            _ => known(field),
        };
        if let Some(value) = value {
            packet[field] = value.into();
            filled_in.push(field);
        }
    }
    filled_in
}

/// Parses a message of one type, or one of an enum, with its envelope. An error names all missing
/// fields, or the first invalid one.
pub fn parse<M: Message>(packet: &Value) -> Result<IncomingMessage<M>, ProtocolError> {
    if !packet.is_object() {
        return Err(FieldError::new(packet, "an object").into());
    }

    // Another version of the protocol may have other fields.
    if let Some(received) = packet["protocol"].as_str()
        && received != PROTOCOL
    {
        return Err(ProtocolError::unexpected_value(
            ErrorCode::VersionMismatch,
            "protocol",
            received,
            format!("expected {PROTOCOL:?}"),
        ));
    }
    let message_type = packet["message_type"].as_str().unwrap_or_default();
    let Some(spec) = MessageSpec::by_type(message_type) else {
        let error = FieldError::new(&packet["message_type"], "a message type of league.v2");
        return Err(error.in_field("message_type").into());
    };

    // Most messages are valid: they are decoded at once.
    if has_objects(packet, &spec.schema)
        && let Ok(message) = decode(packet, spec, Vec::new())
    {
        return Ok(message);
    }

    // Else find out which fields are invalid. Optional ones are removed.
    let mut packet = packet.clone();
    let mut result = check(&mut packet, &spec.schema);
    let ignored = mem::take(&mut result.ignored);
    result.into_result()?;
    Ok(decode(&packet, spec, ignored)?)
}

/// Decodes a message whose fields are valid.
fn decode<M: Message>(
    packet: &Value,
    spec: &MessageSpec,
    ignored: Vec<FieldError>,
) -> Result<IncomingMessage<M>, FieldError> {
    let Some(message) = M::decode(spec.message_type, packet) else {
        let error = FieldError::new(&packet["message_type"], "another message");
        return Err(error.in_field("message_type"));
    };

    Ok(IncomingMessage {
        envelope: deserialize(packet)?,
        message: message?,
        ignored,
    })
}

/// Returns a message with its envelope as one flat object. Fields that are absent are left out.
pub fn to_json(envelope: &Envelope, message: &impl Message) -> Value {
    let mut packet = json!(envelope);
    packet["message_type"] = message.name().into();
    if let (Value::Object(packet), Value::Object(body)) = (&mut packet, json!(message)) {
        packet.extend(body);
    }
    remove_absent(&mut packet, &message.spec().schema);
    packet
}
