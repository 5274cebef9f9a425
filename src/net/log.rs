//! The logs: one JSON line per event, with every token masked. A program has a log of its own, and one that it shares
//! with all programs, for what begins, ends and breaks.
//!
//! An agent knows its file only when it has an id: until then its lines wait in memory. The sender of a message logs it
//! whole, its receiver at most the beginning. What strangers can cause is limited by `Noise`, so that nobody fills the
//! disk.

use crate::net::sync::lock;
use crate::protocol::{Packet, Understood};
use crate::wire::{Timestamp, cut, masked};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

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
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, reason = "each is the key of that name")]
pub struct Line<'a> {
    pub level: Level,
    pub message_type: Option<&'a str>,
    pub conversation_id: Option<&'a str>,
    pub match_id: Option<&'a str>,
    pub peer: Option<&'a str>,
    pub error_code: Option<&'a str>,
    /// The field that the error is about.
    pub field: Option<&'a str>,
    /// Milliseconds.
    pub elapsed_ms: Option<u64>,
    /// How many agents a notice goes to.
    pub recipients: Option<usize>,
    /// The whole league message, or words.
    pub message: Option<Body<'a>>,
}

impl<'a> Line<'a> {
    /// A line about what goes to a peer or comes from it.
    pub fn with(peer: &'a str) -> Line<'a> {
        Line {
            peer: Some(peer),
            ..Line::default()
        }
    }
}

/// What a line says.
#[derive(Debug, Clone)]
pub enum Body<'a> {
    /// A sentence.
    Words(String),
    /// A whole league message.
    Packet(&'a Packet),
    /// A league message that its sender logs whole: the receiver logs no more than its beginning.
    Beginning(&'a Packet),
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

/// How many refusals of one address are logged within a second.
const LOUDEST: u32 = 20;
const SECOND: Duration = Duration::from_secs(1);
/// How far another clock may be off before it is worth a warning.
const MAX_SKEW: Duration = Duration::from_secs(60);
/// How many characters of a message its receiver logs.
const LOGGED: usize = 500;
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

/// A line as it is written: when, by whom, what, and whatever else applies.
struct Whole<'a> {
    component: &'a str,
    event_type: &'a str,
    line: Line<'a>,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = &self.line;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("timestamp", &Timestamp::to_the_millisecond())?;
        map.serialize_entry("component", self.component)?;
        map.serialize_entry("event_type", self.event_type)?;
        map.serialize_entry("level", &line.level)?;
        let texts = [
            ("message_type", line.message_type),
            ("conversation_id", line.conversation_id),
            ("match_id", line.match_id),
            ("peer", line.peer),
            ("error_code", line.error_code),
            ("field", line.field),
        ];
        for (key, text) in texts {
            match text.map(masked) {
                Some(text) if text.len() > KEY => map.serialize_entry(key, &cut(&text, KEY))?,
                Some(text) => map.serialize_entry(key, &text)?,
                None => {}
            }
        }
        let recipients = line.recipients.map(|recipients| recipients as u64);
        for (key, number) in [("elapsed_ms", line.elapsed_ms), ("recipients", recipients)] {
            if let Some(number) = number {
                map.serialize_entry(key, &number)?;
            }
        }
        map.end()
    }
}

/// Adds a line to a text. Writing into memory cannot fail.
fn format(text: &mut Vec<u8>, component: &str, event_type: &str, mut line: Line) {
    let message = line.message.take();
    let whole = Whole {
        component,
        event_type,
        line,
    };
    let _ = serde_json::to_writer(&mut *text, &whole);
    if let Some(message) = message {
        text.pop(); // the closing brace
        text.extend(b",\"message\":");
        message.write_to(text);
        text.push(b'}');
    }
    text.push(b'\n');
}

impl Body<'_> {
    fn write_to(&self, text: &mut Vec<u8>) {
        let _ = match self {
            Body::Words(words) => serde_json::to_writer(text, &masked(words)),
            Body::Packet(packet) => serde_json::to_writer(text, &MaskedPacket(packet)),
            Body::Beginning(packet) => {
                let start = text.len();
                let mut beginning = Beginning { text, start };
                if serde_json::to_writer(&mut beginning, &MaskedPacket(packet)).is_ok() {
                    return;
                }
                let cut_off = String::from_utf8_lossy(&text[start..]).into_owned();
                text.truncate(start);
                serde_json::to_writer(text, &cut(&cut_off, LOGGED))
            }
        };
    }
}

/// Takes the beginning of a message, and then no more: nobody writes a long text to throw it away.
struct Beginning<'a> {
    text: &'a mut Vec<u8>,
    start: usize,
}

impl Write for Beginning<'_> {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.text.len() > self.start + LOGGED {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.text.extend(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A message as the log shows it: every token in it is masked, by the key it stands under, and by its looks anywhere
/// else.
struct Masked<'a>(&'a str, &'a Value);

impl Serialize for Masked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Value::String(text) if is_secret(self.0) && !text.is_empty() => {
                let looks_like_ours = masked(text);
                let is_foreign = looks_like_ours == *text;
                serializer.serialize_str(if is_foreign { "***" } else { &looks_like_ours })
            }
            Value::String(text) => serializer.serialize_str(&masked(text)),
            Value::Array(items) => {
                serializer.collect_seq(items.iter().map(|item| Masked("", item)))
            }
            Value::Object(object) => MaskedPacket(object).serialize(serializer),
            plain => plain.serialize(serializer),
        }
    }
}

/// Whether what stands under this key is a token, or the key by which an agent is known again.
fn is_secret(key: &str) -> bool {
    key.ends_with("token") || key == "registration_key"
}

/// All fields of a packet, masked.
struct MaskedPacket<'a>(&'a Packet);

impl Serialize for MaskedPacket<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.iter();
        serializer.collect_map(fields.map(|(key, value)| (key, Masked(key, value))))
    }
}

/// A packet as text, every token in it masked.
pub fn masked_text(packet: &Packet) -> String {
    serde_json::to_string(&MaskedPacket(packet)).unwrap_or_default()
}

/// How often each address was refused within a second. Beyond a bound refusals are counted, and no longer logged.
pub struct Noise(Mutex<(Instant, HashMap<IpAddr, u32>)>);

impl Default for Noise {
    fn default() -> Noise {
        Noise(Mutex::new((Instant::now(), HashMap::new())))
    }
}

impl Noise {
    /// Whether this address has been refused so often just now that no more of it is logged.
    pub fn is_over(&self, peer: IpAddr) -> bool {
        let (since, counts) = &*lock(&self.0);
        since.elapsed() < SECOND && counts.get(&peer).is_some_and(|count| *count >= LOUDEST)
    }

    /// Counts what an address has caused, and says whether it is still to be logged. What was left out in an older
    /// second is logged here, in one line.
    pub fn count(&self, peer: IpAddr, log: &Log) -> bool {
        let (since, counts) = &mut *lock(&self.0);
        if since.elapsed() >= SECOND {
            *since = Instant::now();
            for (peer, count) in counts.drain().filter(|(_, count)| *count > LOUDEST) {
                let left_out = count - LOUDEST;
                let words = format!("{left_out} more requests from {peer} are not logged");
                log.say(Level::Warning, "not_logged", words);
            }
        }
        let count = counts.entry(peer).or_default();
        *count += 1;
        *count <= LOUDEST
    }
}
