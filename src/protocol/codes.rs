//! Why a message is refused. A code of the protocol says what kind of fault it is; the context says
//! which field is wrong, what came and what is legal. Together they are a `Refusal`, which a peer
//! is answered as LEAGUE_ERROR or GAME_ERROR. See "Errors" in `protocol.md` for when which code is
//! used.

use super::{GameError, LeagueError, Packet};
use crate::wire::{Fault, FaultKind, cut};
use crate::words;
use serde_json::Value;
use std::fmt;

/// Declares the error codes.
macro_rules! codes {
    ($($code:ident $word:literal $name:literal)*) => {
        words! {
            /// The error codes of the protocol; there are no others.
            Code { $($code = $word,)* }
        }

        impl Code {
            /// All codes.
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// The name of the code, like `INVALID_PARITY_CHOICE`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$code => $name,)* }
            }
        }
    };
}

codes! {
    E001 "E001" "TIMEOUT_ERROR"
    E003 "E003" "MISSING_REQUIRED_FIELD"
    E004 "E004" "INVALID_PARITY_CHOICE"
    E005 "E005" "PLAYER_NOT_REGISTERED"
    E009 "E009" "CONNECTION_ERROR"
    E011 "E011" "AUTH_TOKEN_MISSING"
    E012 "E012" "AUTH_TOKEN_INVALID"
    E013 "E013" "REFEREE_NOT_REGISTERED"
    E015 "E015" "MATCH_ID_MISMATCH"
    E018 "E018" "PROTOCOL_VERSION_MISMATCH"
    E019 "E019" "LATE_REGISTRATION"
    E021 "E021" "INVALID_TIMESTAMP"
}

/// Why a message is refused: the code, and for `context` which field is wrong, what came and what
/// is legal.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The protocol's code.
    pub code: Code,
    /// `field`, `problem`, and whatever else helps.
    pub context: Packet,
}

impl Refusal {
    /// A refusal with its explanation.
    pub fn new(code: Code, problem: impl Into<String>) -> Refusal {
        let context = Packet::new();
        Refusal { code, context }.with("problem", problem.into())
    }

    /// A refusal of one field.
    pub fn field(code: Code, field: &str, problem: impl Into<String>) -> Refusal {
        Refusal::new(code, problem).with("field", field)
    }

    /// A refusal of a text: how it came, cut, and what is wrong with it.
    pub fn got(code: Code, field: &str, came: &str, but: impl fmt::Display) -> Refusal {
        Refusal::field(code, field, format!("got {:?}, {but}", cut(came, 60)))
    }

    /// Adds to the context.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Refusal {
        self.context.insert(key.into(), value.into());
        self
    }

    /// The field that the refusal is about.
    pub fn field_name(&self) -> Option<&str> {
        self.context.get("field").and_then(Value::as_str)
    }

    /// Whether no league message came at all, or another one than was asked for: then what came
    /// says most.
    pub fn is_no_answer(&self) -> bool {
        let field = self.field_name().unwrap_or_default();
        matches!(field, "" | "result" | "message_type")
    }

    /// What exactly was wrong, in one line.
    pub fn explain(&self) -> String {
        in_one_line(&self.context)
    }
}

/// The field and the problem of a context.
fn in_one_line(context: &Packet) -> String {
    let text = |key| context.get(key).and_then(Value::as_str);
    let problem = text("problem").unwrap_or_default();
    match text("field") {
        Some(field) if !field.is_empty() => format!("{field}: {problem}"),
        _ => problem.into(),
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let code = match fault.kind {
            FaultKind::Time => Code::E021,
            FaultKind::Missing | FaultKind::Wrong => Code::E003,
        };
        Refusal::field(code, &fault.path, fault.problem)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.code, self.explain(), self.code.name())
    }
}

impl GameError {
    /// The code, its name, and what exactly was wrong, in one line.
    pub fn explain(&self) -> String {
        explained(&self.error_code, &self.error_description, &self.context)
    }
}

impl LeagueError {
    /// The code, its name, and what exactly was wrong, in one line.
    pub fn explain(&self) -> String {
        explained(&self.error_code, &self.error_description, &self.context)
    }
}

fn explained(code: &str, name: &str, context: &Option<Packet>) -> String {
    match context.as_ref().map(in_one_line) {
        Some(problem) if !problem.is_empty() => format!("{code} {name}: {problem}"),
        _ => format!("{code} {name}"),
    }
}
