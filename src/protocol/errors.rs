//! The error codes of the protocol, and the error with which a message is refused. See "Errors" in
//! `protocol.md` for when which code is used.

use super::{GameError, JsonObject, LeagueError};
use crate::json::{FieldError, FieldErrorKind};
use crate::values::truncate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Declares the error codes: the variant, the code and its name in the specification.
macro_rules! error_codes {
    ($($variant:ident $code:literal $name:literal)*) => {
        /// The error codes of the protocol.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "String")]
        pub enum ErrorCode {
            $(#[serde(rename = $code)] $variant,)*
            /// A code of another program that the protocol does not have. It is never sent.
            #[serde(untagged)]
            Other(String),
        }

        impl From<String> for ErrorCode {
            fn from(code: String) -> ErrorCode {
                match &*code {
                    $($code => ErrorCode::$variant,)*
                    _ => ErrorCode::Other(code),
                }
            }
        }

        impl ErrorCode {
            /// Returns the name of the code, like `INVALID_PARITY_CHOICE`.
            pub fn name(&self) -> &str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                    ErrorCode::Other(code) => code,
                }
            }
        }
    };
}

error_codes! {
    Timeout "E001" "TIMEOUT_ERROR"
    MissingField "E003" "MISSING_REQUIRED_FIELD"
    InvalidChoice "E004" "INVALID_PARITY_CHOICE"
    PlayerNotRegistered "E005" "PLAYER_NOT_REGISTERED"
    ConnectionError "E009" "CONNECTION_ERROR"
    TokenMissing "E011" "AUTH_TOKEN_MISSING"
    TokenInvalid "E012" "AUTH_TOKEN_INVALID"
    RefereeNotRegistered "E013" "REFEREE_NOT_REGISTERED"
    MatchMismatch "E015" "MATCH_ID_MISMATCH"
    VersionMismatch "E018" "PROTOCOL_VERSION_MISMATCH"
    LateRegistration "E019" "LATE_REGISTRATION"
    InvalidTimestamp "E021" "INVALID_TIMESTAMP"
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The reason why a message is refused. It is sent as LEAGUE_ERROR or GAME_ERROR.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolError {
    /// The error code.
    pub code: ErrorCode,
    /// `field`, `problem`, and more where it helps.
    pub context: JsonObject,
}

impl ProtocolError {
    /// Returns an error with its explanation.
    pub fn new(code: ErrorCode, problem: impl Into<String>) -> ProtocolError {
        let context = JsonObject::new();
        ProtocolError { code, context }.with_context("problem", problem.into())
    }

    /// Returns an error about one field.
    pub fn field(code: ErrorCode, field: &str, problem: impl Into<String>) -> ProtocolError {
        ProtocolError::new(code, problem).with_context("field", field)
    }

    /// Returns an error about a match that is not as the receiver knows it (E015).
    pub fn mismatch(field: &str, problem: impl Into<String>) -> ProtocolError {
        ProtocolError::field(ErrorCode::MatchMismatch, field, problem)
    }

    /// Returns an error about a token that is not the right one (E012).
    pub fn wrong_token(problem: impl Into<String>) -> ProtocolError {
        ProtocolError::field(ErrorCode::TokenInvalid, "auth_token", problem)
    }

    /// Returns an error about a field that has an unexpected value.
    pub fn unexpected_value(
        code: ErrorCode,
        field: &str,
        received: &str,
        detail: impl fmt::Display,
    ) -> ProtocolError {
        let received = truncate(received, 60);
        ProtocolError::field(code, field, format!("got {received:?}, {detail}"))
    }

    /// Adds to the context.
    pub fn with_context(mut self, key: &str, value: impl Into<Value>) -> ProtocolError {
        self.context.insert(key.into(), value.into());
        self
    }

    /// Returns the field that the error is about.
    pub fn field_name(&self) -> Option<&str> {
        self.context.get("field").and_then(Value::as_str)
    }

    /// Returns true if a reply was no league message, or another one than expected.
    pub fn is_unexpected_reply(&self) -> bool {
        let field = self.field_name().unwrap_or_default();
        matches!(field, "" | "result" | "message_type")
    }

    /// Returns the LEAGUE_ERROR that refuses a message of that type.
    pub fn league_error(&self, refused_type: &str) -> LeagueError {
        LeagueError {
            error_code: self.code.clone(),
            error_description: self.code.name().into(),
            original_message_type: Some(refused_type.into()),
            context: Some(self.context.clone()),
        }
    }

    /// Returns the field and the problem in one line.
    pub fn detail(&self) -> String {
        format_context(&self.context)
    }
}

impl From<FieldError> for ProtocolError {
    fn from(error: FieldError) -> ProtocolError {
        let code = match error.kind {
            FieldErrorKind::InvalidTimestamp => ErrorCode::InvalidTimestamp,
            _ => ErrorCode::MissingField,
        };
        ProtocolError::field(code, &error.path, error.problem)
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.code, self.detail(), self.code.name())
    }
}

impl GameError {
    /// Returns the code, its name, the field and the problem in one line.
    pub fn explain(&self) -> String {
        format_error(&self.error_code, &self.error_description, &self.context)
    }
}

impl LeagueError {
    /// Returns true if a player refuses a message because it has not joined the match, or because a
    /// delayed older invitation has replaced the newest one.
    pub fn lacks_invitation(&self) -> bool {
        let context = self.context.as_ref();
        let field = context.map(|context| text_of(context, "field"));
        let is_match = matches!(field, Some("match_id" | "conversation_id"));
        self.error_code == ErrorCode::MatchMismatch && is_match
    }

    /// Returns the code, its name, the field and the problem in one line.
    pub fn explain(&self) -> String {
        format_error(&self.error_code, &self.error_description, &self.context)
    }
}

fn format_error(code: &ErrorCode, name: &str, context: &Option<JsonObject>) -> String {
    let detail = context.as_ref().map(format_context).unwrap_or_default();
    if detail.is_empty() {
        format!("{code} {name}")
    } else {
        format!("{code} {name}: {detail}")
    }
}

fn format_context(context: &JsonObject) -> String {
    let field = text_of(context, "field");
    let problem = text_of(context, "problem");
    if field.is_empty() {
        problem.into()
    } else {
        format!("{field}: {problem}")
    }
}

fn text_of<'a>(context: &'a JsonObject, key: &str) -> &'a str {
    context.get(key).and_then(Value::as_str).unwrap_or_default()
}
