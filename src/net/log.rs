//! One JSON line per event, with every token masked.
//!
//! An agent knows its file only when it has an id: until then its lines wait in memory.

use crate::net::sync::lock;
use crate::protocol::{Packet, Understood};
use crate::wire::{Timestamp, cut, masked};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// How serious a line is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs, reason = "the usual four")]
pub enum Level {
    Debug,
    #[default]
    Info,
    Warning,
    Error,
}

/// One line; what does not apply stays empty and is left out.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "each is the key of that name")]
pub struct Line<'a> {
    pub level: Level,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "short")]
    pub message_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "short")]
    pub conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "short")]
    pub match_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "short")]
    pub peer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<&'a str>,
    /// The field that the error is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'a str>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// How many agents a notice goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipients: Option<usize>,
    /// The whole league message, or words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Body<'a>>,
}

/// What a line says.
#[derive(Debug, Clone)]
pub enum Body<'a> {
    /// A sentence.
    Words(String),
    /// A whole league message.
    Packet(&'a Packet),
}

/// The log of one program: its own file, and the one that all programs share.
pub struct Log {
    root: PathBuf,
    target: Mutex<Target>,
}

/// Lines wait for a file; then each is written at once, in a buffer that is used again.
struct Target {
    component: String,
    lines: Vec<u8>,
    file: Option<File>,
    is_open: bool,
}

/// How far another clock may be off before it is worth a warning.
const MAX_SKEW: Duration = Duration::from_secs(60);
/// How many characters of a peer's own words a line has beside the message.
const KEY: usize = 100;
/// Bytes kept while there is no file yet; a peer that talks to an unregistered agent must not fill memory.
const MAX_WAITING: usize = 1 << 20;

impl Log {
    /// A log below `root` whose file is not known yet.
    pub fn new(root: &Path, component: &str) -> Log {
        let target = Target {
            component: component.into(),
            lines: Vec::new(),
            file: None,
            is_open: false,
        };
        Log {
            root: root.into(),
            target: Mutex::new(target),
        }
    }

    /// From now on lines go to `path` below the root, those that waited first.
    pub fn open(&self, component: &str, path: &str) {
        let path = self.root.join(path);
        let file = append_to(&path);
        let mut file = file
            .inspect_err(|error| eprintln!("{}: {error}; nothing is logged", path.display()))
            .ok();
        let mut target = lock(&self.target);
        if let Some(file) = file.as_mut().filter(|_| !target.is_open) {
            let _ = file.write_all(&target.lines);
        }
        *target = Target {
            component: component.into(),
            lines: Vec::new(),
            file,
            is_open: true,
        };
    }

    /// Writes one line. A log that cannot be written stops nothing.
    pub fn write(&self, event_type: &str, line: Line) {
        let Target {
            component,
            lines,
            file,
            is_open,
        } = &mut *lock(&self.target);
        match file {
            Some(file) => {
                lines.clear();
                format(lines, component, event_type, line);
                let _ = file.write_all(lines);
            }
            None if !*is_open && lines.len() < MAX_WAITING => {
                format(lines, component, event_type, line)
            }
            None => {}
        }
    }

    /// Writes one line of words.
    pub fn say(&self, level: Level, event_type: &str, words: impl Into<String>) {
        self.write(
            event_type,
            Line {
                level,
                message: Some(Body::Words(words.into())),
                ..Line::default()
            },
        );
    }

    /// Warns of what was taken instead of fields that were not there or not right.
    pub fn supplied(&self, from: &str, fields: &[&str]) {
        if !fields.is_empty() {
            let words = format!(
                "{from} left out {}: what is known was taken",
                fields.join(", ")
            );
            self.say(Level::Warning, "fields_supplied", words);
        }
    }

    /// Warns of what only informs and is wrong, and of a clock that is off.
    pub fn doubts(&self, from: &str, understood: &Understood) {
        for fault in &understood.ignored {
            self.say(Level::Warning, "field_ignored", format!("{from}: {fault}"));
        }
        let skew = understood.envelope.timestamp.distance(Timestamp::now());
        if skew > MAX_SKEW {
            self.say(
                Level::Warning,
                "clock_skew",
                format!("{from}'s clock is {} s off ours", skew.as_secs()),
            );
        }
    }

    /// Writes one line of words into the log that all programs share: starting, ending, the machine's faults.
    pub fn orchestrator(&self, level: Level, event_type: &str, words: impl Into<String>) {
        let component = lock(&self.target).component.clone();
        let line = Line {
            level,
            message: Some(Body::Words(words.into())),
            ..Line::default()
        };
        if let Ok(mut file) = append_to(&self.root.join("system/orchestrator.log.jsonl")) {
            let mut text = Vec::new();
            format(&mut text, &component, event_type, line);
            let _ = file.write_all(&text);
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    OpenOptions::new().create(true).append(true).open(path)
}

/// Adds a line to a text.
fn format(text: &mut Vec<u8>, component: &str, event_type: &str, line: Line) {
    #[derive(Serialize)]
    struct Whole<'a> {
        timestamp: String,
        component: &'a str,
        event_type: &'a str,
        #[serde(flatten)]
        line: Line<'a>,
    }
    let whole = Whole {
        timestamp: Timestamp::to_the_millisecond(),
        component,
        event_type,
        line,
    };
    let _ = serde_json::to_writer(&mut *text, &whole); // into memory: always
    text.push(b'\n');
}

/// A peer's own words beside the message: masked, and cut.
fn short<S: Serializer>(words: &Option<&str>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = masked(words.unwrap_or_default());
    if text.len() <= KEY {
        text.serialize(serializer)
    } else {
        cut(&text, KEY).serialize(serializer)
    }
}

/// A message as the log shows it: every token in it is masked, by the key it stands under, and by its looks anywhere
/// else.
struct Masked<'a>(&'a str, &'a Value);

impl Serialize for Masked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Value::String(text) if (self.0.ends_with("token") || self.0 == "registration_key") && !text.is_empty() => {
                let looks_like_ours = masked(text);
                serializer.serialize_str(if looks_like_ours == *text {
                    "***"
                } else {
                    &looks_like_ours
                })
            }
            Value::String(text) => serializer.serialize_str(&masked(text)),
            Value::Array(items) => {
                serializer.collect_seq(items.iter().map(|item| Masked("", item)))
            }
            Value::Object(object) => {
                serializer.collect_map(object.iter().map(|(key, value)| (key, Masked(key, value))))
            }
            plain => plain.serialize(serializer),
        }
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Body::Words(words) => serializer.serialize_str(&masked(words)),
            Body::Packet(packet) => {
                serializer.collect_map(packet.iter().map(|(key, value)| (key, Masked(key, value))))
            }
        }
    }
}

/// A packet as text, every token in it masked.
pub fn masked_text(packet: &Packet) -> String {
    serde_json::to_string(&Body::Packet(packet)).unwrap_or_default()
}
