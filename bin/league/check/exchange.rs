//! A check looks at an exchange, and makes a finding about it. An exchange is a call of ours with
//! its answer, or a call to us. Nothing here is read tolerantly, since the agent's author wants to
//! know what is wrong, and no token is shown.

use super::*;
use serde::{Deserialize, Serialize};

/// How a check ended.
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

impl std::fmt::Display for Grade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// What a check saw, good or not.
#[derive(Serialize)]
pub struct Seen {
    pub step: String,
    pub came: String,
    pub expected: String,
    #[serde(skip)]
    pub good: bool,
    /// Whether what it looked for is not there.
    #[serde(skip)]
    pub is_absent: bool,
}

/// A finding says how a check ended and what it saw, in a line for people or an object for
/// machines.
#[derive(Serialize)]
pub struct Finding {
    pub check: String,
    pub section: &'static str,
    pub grade: Grade,
    /// Whether the agent plays in our own league all the same.
    pub forgiven: bool,
    #[serde(flatten)]
    pub seen: Option<Seen>,
}

impl Finding {
    pub fn line(&self) -> String {
        let judged = match &self.seen {
            None => ": cannot be seen, after an earlier fault".into(),
            Some(seen) if seen.good => String::new(),
            Some(seen) => {
                let forgives = match self.forgiven {
                    true => "forgives",
                    false => "does not forgive",
                };
                let (step, came, expected) = (&seen.step, &seen.came, &seen.expected);
                format!(
                    ": at {step} came {came}, expected {expected}; our own league {forgives} it"
                )
            }
        };
        let (grade, check, section) = (self.grade, &self.check, self.section);
        format!("{grade:<4}  {check}{judged}  [{section}]")
    }
}

/// The first that is not good, else the last.
pub fn worst(seen: impl IntoIterator<Item = Option<Seen>>) -> Option<Seen> {
    let all = seen.into_iter().flatten();
    all.reduce(|first, next| if first.good { next } else { first })
}

/// A call of ours and its answer. A call to us is kept as if it were an answer.
#[derive(Clone)]
pub struct Exchange {
    pub at: Instant,
    /// The name of the step.
    pub step: String,
    /// The HTTP status; 0 where nothing came.
    pub status: u16,
    /// The body that came, if it is JSON.
    pub json: Value,
    /// What came, in words.
    pub came: String,
}

impl Exchange {
    pub fn new(step: &str, status: u16, body: &[u8]) -> Exchange {
        let words = String::from_utf8_lossy(body);
        Exchange {
            at: Instant::now(),
            step: step.into(),
            status,
            json: serde_json::from_slice(body).unwrap_or_default(),
            came: match status {
                200 => words.into(),
                _ => format!("HTTP {status} {words}"),
            },
        }
    }

    /// The league message in it: in a shell, in the arguments of a tool, or bare.
    pub fn message(&self) -> &Value {
        let places = ["/result", "/params/arguments", "/params"];
        let mut found = places.iter().filter_map(|it| self.json.pointer(it));
        found.find(|it| it.is_object()).unwrap_or(&self.json)
    }

    /// Whether a league message came without the JSON-RPC shell.
    pub fn is_bare(&self) -> bool {
        let has = |key| self.json.get(key).is_some();
        has("message_type") && !has("jsonrpc") && !has("method")
    }

    /// The method that is called; of a tool its name.
    pub fn method(&self) -> &str {
        match self.json["method"].as_str().unwrap_or_default() {
            "tools/call" => self.json["params"]["name"].as_str().unwrap_or_default(),
            method => method,
        }
    }

    /// Whether its type or its method has a word, however it is written.
    pub fn speaks_of(&self, word: &str) -> bool {
        let words = format!("{} {}", self.text("message_type"), self.method());
        words.to_uppercase().contains(word)
    }

    /// A text of the message.
    pub fn text(&self, key: &str) -> &str {
        self.message()[key].as_str().unwrap_or_default()
    }

    /// The message, unless it is a refusal or nothing.
    pub fn reply(&self) -> Option<&Value> {
        Some(self.message()).filter(|it| it.is_object() && !self.is_refusal())
    }

    fn is_refusal(&self) -> bool {
        let is_error = self.text("message_type").ends_with("_ERROR");
        is_error || self.json["error"].is_object() || self.status >= 400
    }

    /// What a check sees in this exchange, good or not.
    pub fn shows(&self, came: impl ToString, expected: impl ToString, good: bool) -> Seen {
        Seen {
            step: self.step.clone(),
            came: redact_and_truncate(&came.to_string()),
            expected: expected.to_string(),
            good,
            is_absent: false,
        }
    }

    /// Judges a field of the reply.
    pub fn field(
        &self,
        name: &str,
        expected: impl ToString,
        good: impl Fn(&Value) -> bool,
    ) -> Option<Seen> {
        let it = &self.reply()?[name];
        let came = match it {
            Value::Null => format!("no {name}"),
            it => format!("{name} {it}"),
        };
        Some(Seen {
            is_absent: it.is_null(),
            ..self.shows(came, expected, good(it))
        })
    }

    /// Judges a field of the reply that must be a time.
    pub fn time(&self, name: &str) -> Option<Seen> {
        let expected = "a UTC time like \"2025-01-15T10:30:00Z\"";
        self.field(name, expected, |it| decode::<Timestamp>(it).is_ok())
    }

    /// Judges whether a field of the reply is exactly this text.
    pub fn equals(&self, name: &str, text: &str) -> Option<Seen> {
        self.field(name, format!("{text:?}"), |it| it == text)
    }

    /// Whether it was answered as JSON-RPC, in time, and not refused.
    pub fn taken(&self) -> Seen {
        let good = self.reply().is_some() && self.json.get("result").is_some();
        self.shows(&self.came, "HTTP 200 and a JSON-RPC result, in time", good)
    }

    /// Whether it was refused, in any way. Where nothing came nothing is seen.
    pub fn refused(&self, code: ErrorCode) -> Option<Seen> {
        let seen = self.shows(&self.came, format!("a refusal ({code})"), self.is_refusal());
        Some(seen).filter(|_| self.status != 0)
    }

    /// Whether it is a JSON-RPC error of that code.
    pub fn failed(&self, code: i64) -> Seen {
        let good = self.json["error"]["code"] == code;
        self.shows(&self.came, format!("a JSON-RPC error {code}"), good)
    }
}
