//! The logs: one JSON line for each event, with all tokens masked. A program has a log of its own,
//! and shares another with all programs for start, end and faults.
//!
//! The sender of a message logs it in full, the receiver only its start. Lines that unknown callers
//! can cause are limited in number, so that no sender can fill the disk.

use super::sync::lock;
use crate::protocol::IncomingMessage;
use crate::values::{MAX_QUOTED_CHARS, Timestamp, clock, redact_tokens, truncate};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// The importance of a line.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    Info,
    Warning,
    Error,
}

/// A field of a line; it is left out if it is null.
pub type Field = (&'static str, Value);

/// The `message` of a line.
pub enum Content<'a> {
    /// A sentence.
    Text(&'a str),
    /// A whole message.
    Full(&'a Value),
    /// The start of a message: its sender logs it in full.
    Start(&'a Value),
}

/// Maximum number of lines in a second that unknown callers can cause.
const MAX_UNKNOWN_LINES: u32 = 100;
/// Maximum difference between two clocks that is not worth a warning.
const MAX_CLOCK_OFFSET: Duration = Duration::from_secs(60);
/// Maximum length of the start of a message, in characters.
const MAX_START: usize = 500;

/// The log of one program.
pub struct Log {
    root: PathBuf,
    /// The name of the program in its lines.
    component: Mutex<String>,
    file: Mutex<Option<File>>,
    /// The last failure of our own machine.
    last_error: Mutex<String>,
    unknown: Mutex<UnknownLines>,
}

/// Number of lines in a second that unknown callers have caused.
#[derive(Default)]
struct UnknownLines {
    second: Option<Timestamp>,
    count: u32,
}

impl Log {
    /// Returns a log below `root` that has no file of its own yet.
    pub fn new(root: &Path, component: &str) -> Log {
        Log {
            root: root.into(),
            component: Mutex::new(component.into()),
            file: Mutex::default(),
            last_error: Mutex::default(),
            unknown: Mutex::default(),
        }
    }

    /// Opens the file of the log, `NAME.log.jsonl` below the root.
    pub fn open(&self, name: &str) {
        let path = self.root.join(format!("{name}.log.jsonl"));
        match append_to(&path) {
            Ok(file) => *lock(&self.file) = Some(file),
            Err(error) => eprintln!("{}: {error}; nothing is logged", path.display()),
        }
    }

    /// Sets the name of the program in its lines.
    pub fn set_component(&self, component: &str) {
        *lock(&self.component) = component.into();
    }

    /// Writes a line about a message, with these fields and those of the message itself. With an
    /// `error_code` it is a warning.
    pub fn message(
        &self,
        event_type: &str,
        packet: &Value,
        mut fields: Vec<Field>,
        content: Content,
    ) {
        for key in ["message_type", "conversation_id", "match_id"] {
            fields.push((key, text_field(packet, key).into()));
        }

        let has_failed = fields
            .iter()
            .any(|(key, value)| *key == "error_code" && !value.is_null());
        let level = if has_failed {
            Level::Warning
        } else {
            Level::Info
        };
        self.write(level, event_type, &fields, content);
    }

    /// Writes a line about an event.
    pub fn event(&self, level: Level, event_type: &str, text: impl AsRef<str>) {
        self.write(level, event_type, &[], Content::Text(text.as_ref()));
    }

    pub fn component(&self) -> String {
        lock(&self.component).clone()
    }

    /// Writes a line. The lock is not held while the line is made; without it lines of two threads
    /// would mix on Windows. A log that cannot be written stops nothing.
    fn write(&self, level: Level, event_type: &str, fields: &[Field], content: Content) {
        if clock::is_simulated() {
            return;
        }
        let line = line(&self.component(), level, event_type, fields, content);
        if let Some(file) = &mut *lock(&self.file) {
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// Writes a line into the log of all programs: start, end, faults of the machine.
    pub fn system_event(&self, level: Level, event_type: &str, text: impl AsRef<str>) {
        let content = Content::Text(text.as_ref());
        let line = line(&self.component(), level, event_type, &[], content);
        if let Ok(mut file) = append_to(&self.root.join("system/orchestrator.log.jsonl")) {
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// Logs a failure of our own machine, for instance a full disk. Returns false if it is the last
    /// one again, which the terminal shows already.
    pub fn error(&self, text: &str) -> bool {
        self.system_event(Level::Error, "fault", text);
        mem::replace(&mut *lock(&self.last_error), text.into()) != text
    }

    /// Writes warnings about a message: fields that were filled in, optional fields that were
    /// ignored, and a clock that is wrong.
    pub fn warnings<M>(&self, from: &str, defaults: &[&str], parsed: &IncomingMessage<M>) {
        if !defaults.is_empty() {
            let text = format!(
                "{from} left out {}: what is known was taken",
                defaults.join(", ")
            );
            self.event(Level::Warning, "fields_supplied", text);
        }

        for error in &parsed.ignored {
            self.event(Level::Warning, "field_ignored", format!("{from}: {error}"));
        }

        let offset = parsed.envelope.timestamp.abs_diff(Timestamp::now());
        if offset > MAX_CLOCK_OFFSET {
            let text = format!("{from}'s clock is {} s off ours", offset.as_secs());
            self.event(Level::Warning, "clock_skew", text);
        }
    }

    /// Counts a request of an unknown caller; returns true if it may still be logged. The number of
    /// requests that were not logged is logged in the next second.
    pub fn may_log_unknown(&self) -> bool {
        let unknown = &mut *lock(&self.unknown);
        let second = Some(Timestamp::now());
        if unknown.second != second {
            let left_out = unknown.count.saturating_sub(MAX_UNKNOWN_LINES);
            if left_out > 0 {
                let text = format!("{left_out} more requests were not logged");
                self.event(Level::Warning, "not_logged", text);
            }
            *unknown = UnknownLines { second, count: 0 };
        }

        unknown.count += 1;
        unknown.count <= MAX_UNKNOWN_LINES
    }
}

/// Returns a text of a message, cut to the length in which it may be repeated.
pub fn text_field(packet: &Value, key: &str) -> Option<String> {
    packet[key]
        .as_str()
        .map(|text| truncate(text, MAX_QUOTED_CHARS))
}

/// Opens a log. If a program was killed while it wrote a line, the next one begins a new line. (That
/// is not seen in a log that cannot be read.)
fn append_to(path: &Path) -> io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).open(path)?;

    let mut last = *b"\n";
    if let Ok(mut written) = File::open(path)
        && written.seek(SeekFrom::End(-1)).is_ok()
    {
        let _ = written.read(&mut last);
    }
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// Returns a line of a log: the time first, the message last.
fn line(
    component: &str,
    level: Level,
    event_type: &str,
    fields: &[Field],
    content: Content,
) -> String {
    let (now, level) = (Timestamp::now_with_millis(), to_json(&level));
    let mut line = format!(
        r#"{{"timestamp":"{now}","component":"{component}","event_type":"{event_type}","level":{level}"#
    );
    for (key, value) in fields {
        if !value.is_null() {
            line += &format!(",\"{key}\":{}", to_json(&Redacted { key, value }));
        }
    }

    let message = match content {
        Content::Text(text) => to_json(&redact_tokens(text)),
        Content::Full(value) => to_json(&Redacted { key: "", value }),
        Content::Start(value) => start(&Redacted { key: "", value }),
    };
    line + ",\"message\":" + &message + "}\n"
}

/// Returns a value as JSON, in half the time of `Value::to_string`.
pub fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() // cannot fail
}

/// Returns a message as JSON, or its start as a text if it is long.
fn start(message: &Redacted) -> String {
    let text = to_json(message);
    let start = truncate(&text, MAX_START);
    if start == text { text } else { to_json(&start) }
}

/// A value with its key, which is written with all tokens masked: what is named as a token or a
/// key, and what looks like one of our tokens.
struct Redacted<'a> {
    key: &'a str,
    value: &'a Value,
}

impl Serialize for Redacted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::String(text) => {
                let is_secret = self.key.ends_with("token") || self.key == "registration_key";
                let redacted = redact_tokens(text);
                if is_secret && !text.is_empty() && redacted == *text {
                    return serializer.serialize_str("***");
                }

                serializer.serialize_str(&redacted)
            }
            Value::Array(items) => {
                let items = items.iter().map(|value| Redacted { key: "", value });
                serializer.collect_seq(items)
            }
            Value::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, value)| (redact_tokens(key), Redacted { key, value }));
                serializer.collect_map(fields)
            }
            other => other.serialize(serializer),
        }
    }
}
