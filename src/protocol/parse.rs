//! From JSON to a message, and back. First the fields that the receiver knows already are filled in,
//! then the message is parsed once. See "Envelope" in `protocol.md` for what is filled in where.

use super::{Envelope, ErrorCode, GameJoinAck, Message, MessageSpec, PROTOCOL, ProtocolError};
use crate::json::{FieldError, check, deserialize, schema_of};
use crate::values::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// A message that was received.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingMessage {
    /// The envelope.
    pub envelope: Envelope,
    /// The message.
    pub message: Message,
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
    known: impl Fn(&Value, &str) -> Option<String>,
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
            _ => known(packet, field),
        };
        if let Some(value) = value {
            packet[field] = value.into();
            filled_in.push(field);
        }
    }
    filled_in
}

/// Parses a message with its envelope. An error names all missing fields, or the first invalid one.
pub fn parse(packet: &Value) -> Result<IncomingMessage, ProtocolError> {
    if !packet.is_object() {
        return Err(FieldError::new(packet, "an object").into());
    }

    // Another version of the protocol may have other fields.
    if let Some(received) = packet["protocol"].as_str()
        && received != PROTOCOL
    {
        let expected = format!("expected {PROTOCOL:?}");
        let code = ErrorCode::VersionMismatch;
        return Err(ProtocolError::unexpected(
            code, "protocol", received, expected,
        ));
    }

    // Most messages are valid: they are decoded at once.
    let envelope = Envelope::deserialize(packet);
    let message = Message::deserialize(packet);
    if let (Ok(envelope), Ok(message)) = (envelope, message) {
        let ignored = Vec::new();
        return Ok(IncomingMessage {
            envelope,
            message,
            ignored,
        });
    }

    // Else find out which fields are invalid.
    let mut packet = packet.clone();
    let message_type = packet["message_type"].as_str().unwrap_or_default();
    let findings = match MessageSpec::by_type(message_type) {
        Some(spec) => check(&mut packet, &spec.schema),
        None => {
            let is_text = packet["message_type"].is_string();
            let expected = if is_text {
                "a message type of league.v2"
            } else {
                "a string"
            };
            let error = FieldError::new(&packet["message_type"], expected);
            let mut findings = check(&mut packet, &schema_of::<Envelope>());
            findings.errors.push(error.in_field("message_type"));
            findings
        }
    };
    let ignored = findings.ignored.clone();
    findings.into_result()?;

    // Only optional ones are, and they were removed.
    Ok(IncomingMessage {
        envelope: deserialize(&packet)?,
        message: deserialize(&packet)?,
        ignored,
    })
}

/// Returns a message with its envelope as one flat object.
pub fn to_json(envelope: &Envelope, message: &Message) -> Value {
    let mut packet = json!(envelope);
    if let (Value::Object(packet), Value::Object(body)) = (&mut packet, json!(message)) {
        packet.extend(body);
    }
    packet
}
