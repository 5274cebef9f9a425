//! The logs: one JSON line per event, with every token masked. A program has a log of its own, and
//! one that it shares with all programs, for what begins, ends and breaks.
//!
//! An agent knows its file only when it has an id: until then its lines wait in memory. The sender
//! of a message logs it whole, its receiver at most the beginning. What strangers can cause is
//! logged only so often, so that nobody fills the disk.

use crate::net::sync::lock;
use crate::protocol::Understood;
use crate::wire::{Timestamp, masked};
use crate::words;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

words! {
    /// How serious a line is.
    Level { Info = "INFO", Warning = "WARNING", Error = "ERROR", }
}

/// What a line says beside its message: a key, and a value, null where the fact does not apply.
pub type Fact = (&'static str, Value);

/// What a line says beside its facts.
pub enum Body<'a> {
    /// A sentence.
    Words(String),
    /// A whole league message.
    Whole(&'a Value),
    /// A league message that its sender logs whole: the receiver logs no more than its beginning.
    Beginning(&'a Value),
}

/// The log of one program: its own file, and the one that all programs share.
pub struct Log {
    root: PathBuf,
    target: Mutex<Target>,
    /// The second that it is, and what each address has caused in it that is logged only within
    /// bounds.
    noise: Mutex<(u64, HashMap<IpAddr, u32>)>,
}

/// Where lines go. They wait as long as there is no file; then each is written at once.
struct Target {
    component: String,
    lines: Vec<u8>,
    file: Option<File>,
}

impl Target {
    fn write_out(&mut self) {
        if let Some(file) = &mut self.file {
            let _ = file.write_all(&self.lines); // a log that cannot be written stops nothing
            self.lines.clear();
        }
    }
}

/// How many refusals of one address are logged within a second.
const LOUDEST: u32 = 20;
/// How far another clock may be off before it is worth a warning.
const MAX_SKEW: Duration = Duration::from_secs(60);
/// How many bytes of a message its receiver logs.
const LOGGED: usize = 500;
/// Bytes kept while there is no file yet; a peer that talks to an unregistered agent must not fill
/// memory.
const MAX_WAITING: usize = 1 << 20;

impl Log {
    /// A log below `root` whose file is not known yet.
    pub fn new(root: &Path, component: &str) -> Log {
        let target = Target {
            component: component.into(),
            lines: Vec::new(),
            file: None,
        };
        Log {
            root: root.into(),
            target: Mutex::new(target),
            noise: Mutex::default(),
        }
    }

    /// From now on lines go to `path` below the root, those that waited first.
    pub fn open(&self, component: &str, path: &str) {
        let path = self.root.join(path);
        let file = append_to(&path);
        let file =
            file.inspect_err(|error| eprintln!("{}: {error}; nothing is logged", path.display()));
        let mut target = lock(&self.target);
        target.component = component.into();
        target.file = file.ok();
        target.write_out();
    }

    /// Writes a line about a message. With an `error_code` among the facts it is a warning.
    pub fn note(&self, event_type: &str, facts: &[Fact], message: Body) {
        let has_failed = |(key, fact): &Fact| *key == "error_code" && !fact.is_null();
        let level = match facts.iter().any(has_failed) {
            true => Level::Warning,
            false => Level::Info,
        };
        self.write(level, event_type, facts, message);
    }

    /// Writes a line of words.
    pub fn say(&self, level: Level, event_type: &str, words: impl Into<String>) {
        self.write(level, event_type, &[], Body::Words(words.into()));
    }

    fn write(&self, level: Level, event_type: &str, facts: &[Fact], message: Body) {
        let target = &mut *lock(&self.target);
        if target.lines.len() < MAX_WAITING {
            let names = [&*target.component, event_type];
            // memory takes it all
            let _ = add_line(&mut target.lines, names, level, facts, message);
        }
        target.write_out();
    }

    /// Writes a line of words into the log that all programs share: starting, ending, the machine's
    /// faults.
    pub fn orchestrator(&self, level: Level, event_type: &str, words: impl Into<String>) {
        let component = lock(&self.target).component.clone();
        let names = [&*component, event_type];
        let words = Body::Words(words.into());
        let mut line = Vec::new();
        let added = add_line(&mut line, names, level, &[], words);
        let file = added.and_then(|()| append_to(&self.root.join("system/orchestrator.log.jsonl")));
        let _ = file.and_then(|mut file| file.write_all(&line));
    }

    /// Warns of what was taken instead of fields that were not there, of what only informs and is
    /// wrong, and of a clock that is off.
    pub fn doubts(&self, from: &str, supplied: &[&str], understood: &Understood) {
        if !supplied.is_empty() {
            let fields = supplied.join(", ");
            let words = format!("{from} left out {fields}: what is known was taken");
            self.say(Level::Warning, "fields_supplied", words);
        }
        for fault in &understood.ignored {
            self.say(Level::Warning, "field_ignored", format!("{from}: {fault}"));
        }
        let skew = understood.envelope.timestamp.distance(Timestamp::now());
        if skew > MAX_SKEW {
            let words = format!("{from}'s clock is {} s off ours", skew.as_secs());
            self.say(Level::Warning, "clock_skew", words);
        }
    }

    /// Counts what an address has caused, and says whether it is still to be logged. What was left
    /// out in an older second is logged here, in one line.
    pub fn bears(&self, peer: IpAddr) -> bool {
        let now = UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
        let (second, counts) = &mut *lock(&self.noise);
        if *second != now {
            *second = now;
            for (peer, count) in counts.drain().filter(|(_, count)| *count > LOUDEST) {
                let left_out = count - LOUDEST;
                let words = format!("{left_out} more requests from {peer} are not logged");
                self.say(Level::Warning, "not_logged", words);
            }
        }
        let count = counts.entry(peer).or_default();
        *count += 1;
        *count <= LOUDEST
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    OpenOptions::new().create(true).append(true).open(path)
}

/// Adds a line to a text: when, by whom, what, whatever else applies, and what it says.
fn add_line(
    text: &mut Vec<u8>,
    [component, event_type]: [&str; 2],
    level: Level,
    facts: &[Fact],
    message: Body,
) -> io::Result<()> {
    let now = Timestamp::to_the_millisecond();
    write!(
        text,
        r#"{{"timestamp":"{now}","component":"{component}","event_type":"{event_type}","level":"{level}""#
    )?;
    for (key, fact) in facts.iter().filter(|(_, fact)| !fact.is_null()) {
        write!(text, ",\"{key}\":")?;
        serde_json::to_writer(&mut *text, &Masked(key, fact))?;
    }
    text.write_all(b",\"message\":")?;
    message.add_to(text)?;
    text.write_all(b"}\n")
}

impl Body<'_> {
    /// Adds what the line says to a text, as JSON.
    fn add_to(&self, text: &mut Vec<u8>) -> io::Result<()> {
        let message = match self {
            Body::Words(words) => return Ok(serde_json::to_writer(text, &masked(words))?),
            Body::Whole(message) => return Ok(serde_json::to_writer(text, &Masked("", message))?),
            Body::Beginning(message) => Masked("", message),
        };
        let mut beginning = [0; LOGGED];
        let mut rest = &mut beginning[..];
        let is_whole = serde_json::to_writer(&mut rest, &message).is_ok();
        let length = LOGGED - rest.len();
        if is_whole {
            return text.write_all(&beginning[..length]);
        }
        let beginning = String::from_utf8_lossy(&beginning);
        Ok(serde_json::to_writer(text, &format!("{beginning}…"))?)
    }
}

/// A value as the log shows it, under its key: every token in it is masked, by the key it stands
/// under, and by its looks anywhere else.
struct Masked<'a>(&'a str, &'a Value);

impl Serialize for Masked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Value::String(text) => {
                let shown = masked(text);
                let looks_foreign = is_secret(self.0) && !text.is_empty() && shown == *text;
                serializer.serialize_str(if looks_foreign { "***" } else { &shown })
            }
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

/// Whether what stands under this key is a token, or the key by which an agent is known again.
fn is_secret(key: &str) -> bool {
    key.ends_with("token") || key == "registration_key"
}
