//! One JSON line per event (R14), with every token masked.
//!
//! An agent knows its file only when it has an id: until then its lines wait in memory.

use crate::{clock::Timestamp, threads::lock};
use serde::Serialize;
use serde_json::Value;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<&'a str>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
    /// How many agents a notice goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipients: Option<usize>,
    /// The whole league message, or words.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub message: Value,
}

/// The log of one program: its own file, and the one that all programs share.
pub struct Log {
    root: PathBuf,
    target: Mutex<Target>,
}

enum Target {
    Waiting { component: String, lines: String },
    Open { component: String, file: Option<File> },
}

/// Bytes kept while there is no file yet; a peer that talks to an unregistered agent must not fill memory.
const MAX_WAITING: usize = 1 << 20;

impl Log {
    /// A log below `root` whose file is not known yet.
    pub fn new(root: &Path, component: &str) -> Log {
        let target = Target::Waiting { component: component.into(), lines: String::new() };
        Log { root: root.into(), target: Mutex::new(target) }
    }

    /// From now on lines go to `path` below the root, those that waited first.
    pub fn open(&self, component: &str, path: &str) {
        let mut target = lock(&self.target);
        let path = self.root.join(path);
        let file = append_to(&path);
        let file = file.inspect_err(|error| eprintln!("{}: {error}; nothing is logged", path.display())).ok();
        if let (Target::Waiting { lines, .. }, Some(mut file)) = (&*target, file.as_ref()) {
            let _ = file.write_all(lines.as_bytes());
        }
        *target = Target::Open { component: component.into(), file };
    }

    /// Writes one line. A log that cannot be written stops nothing.
    pub fn write(&self, event_type: &str, line: Line) {
        match &mut *lock(&self.target) {
            Target::Waiting { component, lines } if lines.len() < MAX_WAITING => {
                *lines += &format(component, event_type, line);
            }
            Target::Open { component, file: Some(file) } => {
                let _ = file.write_all(format(component, event_type, line).as_bytes());
            }
            _ => {}
        }
    }

    /// Writes one line of words.
    pub fn say(&self, level: Level, event_type: &str, words: impl Into<String>) {
        self.write(event_type, Line { level, message: Value::String(words.into()), ..Line::default() });
    }

    /// Writes one line of words into the log that all programs share: starting, ending, the machine's faults.
    pub fn orchestrator(&self, level: Level, event_type: &str, words: impl Into<String>) {
        let component = match &*lock(&self.target) {
            Target::Waiting { component, .. } | Target::Open { component, .. } => component.clone(),
        };
        let line = Line { level, message: Value::String(words.into()), ..Line::default() };
        if let Ok(mut file) = append_to(&self.root.join("system/orchestrator.log.jsonl")) {
            let _ = file.write_all(format(&component, event_type, line).as_bytes());
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    OpenOptions::new().create(true).append(true).open(path)
}

fn format(component: &str, event_type: &str, mut line: Line) -> String {
    #[derive(Serialize)]
    struct Whole<'a> {
        timestamp: Timestamp,
        component: &'a str,
        event_type: &'a str,
        #[serde(flatten)]
        line: Line<'a>,
    }
    mask(&mut line.message);
    let [peer, conversation_id, match_id] = [line.peer, line.conversation_id, line.match_id].map(|it| it.map(masked));
    let line = Line {
        peer: peer.as_deref(),
        conversation_id: conversation_id.as_deref(),
        match_id: match_id.as_deref(),
        ..line
    };
    let whole = Whole { timestamp: Timestamp::now(), component, event_type, line };
    serde_json::to_string(&whole).unwrap_or_default() + "\n"
}

/// Masks every token in a value: by the key it stands under, and by its looks anywhere else.
pub fn mask(value: &mut Value) {
    match value {
        Value::String(text) => *text = masked(text),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(object) => object.iter_mut().for_each(|(key, value)| match value {
            Value::String(text) if key.ends_with("token") && !text.is_empty() => {
                let looks_like_ours = masked(text);
                *text = if looks_like_ours == *text { "***".into() } else { looks_like_ours };
            }
            deeper => mask(deeper),
        }),
        _ => {}
    }
}

/// `tok-p01-0123…` becomes `tok-p01-***`, wherever it stands in the text.
pub fn masked(text: &str) -> String {
    let mut parts = text.split("tok-");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out += "tok-";
        let id_end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let secret = part[id_end..].strip_prefix('-').unwrap_or_default();
        let secret_end = secret.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(secret.len());
        if secret_end >= 8 {
            out += &part[..=id_end];
            out += "***";
            out += &secret[secret_end..];
        } else {
            out += part;
        }
    }
    out
}
