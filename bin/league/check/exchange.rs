//! Exchanges, and the findings of checks about them.
//!
//! An exchange is a call of ours with its answer, or a call to us. It is not read tolerantly, since
//! the author of the agent wants to know every fault. No token is shown.

use league::json::decode;
use league::protocol::{DEFAULTED_FIELDS, ErrorCode};
use league::values::{Timestamp, redact_and_truncate};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Instant;

/// The grades of a check.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Grade {
    #[serde(rename = "ok")]
    Good,
    #[serde(rename = "FAIL")]
    Failed,
    #[serde(rename = "warn")]
    Warned,
    #[serde(rename = "skip")]
    Skipped,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The part of an exchange that a check looks at.
#[derive(Serialize)]
pub struct Observation {
    pub step: String,
    #[serde(rename = "came")]
    pub received: String,
    pub expected: String,
    #[serde(skip)]
    pub is_good: bool,
    /// True if the agent has left out what the check is about.
    #[serde(skip)]
    pub is_absent: bool,
}

/// The outcome of a check, as a line for people or an object for machines.
#[derive(Serialize)]
pub struct Finding {
    pub check: String,
    pub section: &'static str,
    pub grade: Grade,
    /// True if the agent can play in our own league in spite of a fault.
    pub forgiven: bool,
    #[serde(flatten)]
    pub observation: Option<Observation>,
}

impl Finding {
    /// Returns the finding as a line.
    pub fn line(&self) -> String {
        let detail = match &self.observation {
            None => ": cannot be seen, after an earlier fault or through a relay".into(),
            Some(observation) if observation.is_good => String::new(),
            Some(observation) => {
                let forgives = if self.forgiven {
                    "forgives"
                } else {
                    "does not forgive"
                };
                let (step, received) = (&observation.step, &observation.received);
                let expected = &observation.expected;
                format!(
                    ": at {step} came {received}, expected {expected}; our own league {forgives} it"
                )
            }
        };

        let (grade, check, section) = (self.grade, &self.check, self.section);
        format!("{grade:<4}  {check}{detail}  [{section}]")
    }
}

/// Returns the first observation that is not good, or else the last one.
pub fn worst(observations: impl Iterator<Item = Option<Observation>>) -> Option<Observation> {
    let observations = observations.flatten();
    observations.reduce(|worst, next| if worst.is_good { next } else { worst })
}

/// A call of ours with its answer. A call to us is kept as if it were an answer.
#[derive(Clone)]
pub struct Exchange {
    pub time: Instant,
    /// The name of the step.
    pub step: String,
    /// The HTTP status; 0 if there was no answer.
    pub status: u16,
    /// The body that was received, if it is JSON.
    pub json: Value,
    /// The body as a text, or the reason why there is none.
    pub received: String,
}

impl Exchange {
    /// Returns the exchange of a step in which that body was received.
    pub fn new(step: &str, status: u16, body: &[u8]) -> Exchange {
        let text = String::from_utf8_lossy(body);
        Exchange {
            time: Instant::now(),
            step: step.into(),
            status,
            json: serde_json::from_slice(body).unwrap_or_default(),
            received: match status {
                200 => text.into(),
                _ => format!("HTTP {status} {text}"),
            },
        }
    }

    /// Returns the league message: the result or the parameters of JSON-RPC, the arguments of a
    /// tool, or the whole body.
    pub fn message(&self) -> &Value {
        for place in ["/result", "/params/arguments", "/params"] {
            if let Some(message) = self.json.pointer(place)
                && message.is_object()
            {
                return message;
            }
        }
        &self.json
    }

    /// Returns true for a league message without JSON-RPC around it.
    pub fn is_bare(&self) -> bool {
        let json = &self.json;
        json.get("message_type").is_some()
            && json.get("jsonrpc").is_none()
            && json.get("method").is_none()
    }

    /// Returns true for a call of a tool, whose arguments need no envelope.
    fn is_tool_call(&self) -> bool {
        self.json["method"] == "tools/call"
    }

    /// Returns the method that is called, or the name of the tool.
    pub fn method(&self) -> &str {
        match self.json["method"].as_str().unwrap_or_default() {
            "tools/call" => self.json["params"]["name"].as_str().unwrap_or_default(),
            method => method,
        }
    }

    /// Returns true if the message type or the method contains a word, in capitals or not.
    pub fn mentions(&self, word: &str) -> bool {
        let names = format!("{} {}", self.text("message_type"), self.method());
        names.to_uppercase().contains(word)
    }

    /// Returns a text field of the message.
    pub fn text(&self, key: &str) -> &str {
        self.message()[key].as_str().unwrap_or_default()
    }

    /// Returns the message, unless it is an error or there is none.
    pub fn reply(&self) -> Option<&Value> {
        Some(self.message()).filter(|message| message.is_object() && !self.is_error())
    }

    fn is_error(&self) -> bool {
        let is_error_message = self.text("message_type").ends_with("_ERROR");
        is_error_message || self.json["error"].is_object() || self.status >= 400
    }

    /// Returns an observation about this exchange.
    pub fn observe(
        &self,
        received: impl ToString,
        expected: impl ToString,
        is_good: bool,
    ) -> Observation {
        Observation {
            step: self.step.clone(),
            received: redact_and_truncate(&received.to_string()),
            expected: expected.to_string(),
            is_good,
            is_absent: false,
        }
    }

    /// Checks a field of the reply.
    pub fn check_field(
        &self,
        name: &str,
        expected: impl ToString,
        is_good: impl Fn(&Value) -> bool,
    ) -> Option<Observation> {
        let value = &self.reply()?[name];

        let received = match value {
            Value::Null => format!("no {name}"),
            value => format!("{name} {value}"),
        };
        let is_needless = self.is_tool_call() && DEFAULTED_FIELDS.contains(&name);
        let is_good = is_good(value) || value.is_null() && is_needless;
        Some(Observation {
            is_absent: value.is_null(),
            ..self.observe(received, expected, is_good)
        })
    }

    /// Checks that a field of the reply is a time.
    pub fn check_timestamp(&self, name: &str) -> Option<Observation> {
        let expected = "a UTC time like \"2025-01-15T10:30:00Z\"";
        self.check_field(name, expected, |value| decode::<Timestamp>(value).is_ok())
    }

    /// Checks that a field of the reply is that text.
    pub fn check_text(&self, name: &str, text: &str) -> Option<Observation> {
        self.check_field(name, format!("{text:?}"), |value| value == text)
    }

    /// Checks that the call was answered with a message, in time. Our league also finds an answer
    /// that stands in the place of parameters, or alone.
    pub fn check_answered(&self) -> Option<Observation> {
        let mut places = ["result", "params", "message_type"].iter();
        let is_good = self.reply().is_some() && places.any(|place| self.json.get(place).is_some());
        let expected = "HTTP 200 and a JSON-RPC result, in time";
        Some(self.observe(&self.received, expected, is_good))
    }

    /// Checks that the call was answered as JSON-RPC, in time, and without an error.
    pub fn check_accepted(&self) -> Option<Observation> {
        let is_good = self.reply().is_some() && self.json.get("result").is_some();
        let expected = "HTTP 200 and a JSON-RPC result, in time";
        Some(self.observe(&self.received, expected, is_good))
    }

    /// Checks that the call was refused, with any error. Nothing is observed if there was no
    /// answer.
    pub fn check_refused(&self, code: ErrorCode) -> Option<Observation> {
        if self.status == 0 {
            return None;
        }

        let expected = format!("a refusal ({code})");
        Some(self.observe(&self.received, expected, self.is_error()))
    }

    /// Checks that the answer is a JSON-RPC error of that code.
    pub fn check_error(&self, code: i64) -> Option<Observation> {
        let is_good = self.json["error"]["code"] == code;
        let expected = format!("a JSON-RPC error {code}");
        Some(self.observe(&self.received, expected, is_good))
    }
}
