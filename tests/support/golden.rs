//! Golden scripts: a folder in `tests/scripts` for each subject, and in it a file for each behaviour.
//! The folder's README explains the commands.
//!
//! A file begins with a sentence that says what must hold. A line `> command` is run; the indented
//! lines below it are its output. Other lines are comments. A test runs all commands and compares
//! every word. With LEAGUE_TEST_REWRITE=1 it writes the output into the file instead: then read the
//! difference.
#![allow(dead_code, reason = "every test file uses its own part")]

use super::{browser, json_or_text, print_left_out};
use league::system::PYTHON;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs every script of a folder, each with a new runner, and fails if an output differs.
pub fn run_scripts<Runner: FnMut(&str) -> String>(
    folder: &str,
    mut new_runner: impl FnMut() -> Runner,
) {
    let paths = scripts(folder).into_iter();
    let differences = paths.map(|path| difference(&path, new_runner()));
    check(differences.collect());
}

/// The same for scripts that wait: all of them at once, or some, where programs start slowly. A
/// script that fails ends its thread, so its runner can print what its programs have said.
pub fn run_scripts_at_once<Runner: FnMut(&str) -> String>(
    folder: &str,
    new_runner: impl Fn() -> Runner + Sync,
) {
    let at_once = if cfg!(windows) { 6 } else { usize::MAX };
    for part in scripts(folder).chunks(at_once) {
        thread::scope(|scope| {
            for path in part {
                let named = thread::Builder::new().name(path.display().to_string());
                let compare = || {
                    let mut runner = new_runner();
                    check(difference(path, &mut runner));
                };
                named.spawn_scoped(scope, compare).unwrap();
            }
        });
    }
}

fn scripts(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(ROOT).join("tests/scripts").join(folder);
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let only = env::var("LEAGUE_TEST_SCRIPT").unwrap_or_default();
    paths.retain(|path| path.extension().is_some() && path.to_str().unwrap().contains(&only));
    paths.sort();
    assert!(!paths.is_empty() || !only.is_empty());
    paths
}

fn check(differences: String) {
    let hint = "LEAGUE_TEST_REWRITE=1 writes the actual output into the files";
    assert!(differences.is_empty(), "{differences}{hint}");
}

/// Runs a script. Returns where its output differs.
fn difference(path: &Path, runner: impl FnMut(&str) -> String) -> String {
    let expected = fs::read_to_string(path).unwrap();
    assert!(expected.contains("\n> "), "{} is empty", path.display());
    let needs = expected
        .lines()
        .find_map(|line| line.strip_prefix("> needs "));
    let missing = needs.and_then(|names| names.split(' ').find(|name| !is_installed(name)));
    if let Some(name) = missing {
        print_left_out(&format!("{name} is not installed"));
        return String::new();
    }

    let actual = run_script(path, &expected, runner);
    let file = path.strip_prefix(ROOT).unwrap().display();
    if is_rewritten() {
        fs::write(path, &actual).unwrap();
    } else if let Some(difference) = first_difference(&expected, &actual) {
        return format!("\n{file}, {difference}\n");
    }
    String::new()
}

fn is_installed(name: &str) -> bool {
    match name {
        "browser" => browser::installed().is_some(),
        "python" => super::is_installed(PYTHON),
        _ => super::is_installed(name),
    }
}

fn is_rewritten() -> bool {
    env::var_os("LEAGUE_TEST_REWRITE").is_some()
}

/// Runs the commands of a script, and returns the script with their output. It ends at the first
/// difference, unless the outputs are to be written.
fn run_script(path: &Path, text: &str, mut run: impl FnMut(&str) -> String) -> String {
    let text = text.replace('\r', "");
    let mut actual = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with("  ") {
            continue;
        }
        if !is_rewritten() && !text.starts_with(&actual) {
            break;
        }
        actual += &format!("{line}\n");
        if let Some(command) = line.strip_prefix("> ") {
            let _place = Place(path, number, line);
            for output in with_plain_json(&run(command)).lines() {
                actual += &format!("  {output}\n");
            }
        }
    }
    actual
}

/// A line of a script: if its command panics, it is printed.
struct Place<'a>(&'a Path, usize, &'a str);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}, line {}: {}", self.0.display(), self.1, self.2);
        }
    }
}

/// Returns a text in which JSON is easier to read: `{"a":"b c","d":[1,"e"]}` is `{a="b c" d=[1 e]}`. A
/// text that could be read as another value keeps its quotation marks.
fn with_plain_json(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['{', '[']) {
        let (before, json) = rest.split_at(start);
        plain += before;
        let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
        let value = values.next().and_then(Result::ok).unwrap_or_default();
        let length = values.byte_offset();
        let written = value.to_string();
        if written == json[..length] {
            plain += &plain_json(&value);
            rest = &json[length..];
        } else {
            plain += &json[..1];
            rest = &json[1..];
        }
    }
    plain + rest
}

fn plain_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| format!("{name}={}", plain_json(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(plain_json).collect();
            format!("[{}]", values.join(" "))
        }
        Value::String(text) if is_word(text) => text.clone(),
        _ => value.to_string(),
    }
}

/// Returns true if a text is one word, and nothing else in JSON.
fn is_word(text: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || "_-.:/<>@#~?&".contains(sign);
    !text.is_empty() && text.chars().all(is_part) && serde_json::from_str::<Value>(text).is_err()
}

/// Returns the first line in which two texts differ.
fn first_difference(expected: &str, actual: &str) -> Option<String> {
    let pairs = expected.lines().chain([""]).zip(actual.lines().chain([""]));
    for (number, (expected, actual)) in (1..).zip(pairs) {
        if expected != actual {
            return Some(format!(
                "line {number}\nexpected: {expected}\nactual:   {actual}"
            ));
        }
    }
    None
}

/// A command: words, and options like `at=9001`. Text in single quotes keeps its blanks.
pub struct Command {
    pub words: Vec<String>,
    /// An object.
    pub options: Value,
}

impl Command {
    pub fn new(line: &str) -> Command {
        let mut is_quoted = false;
        let parts = line.split(|sign| {
            is_quoted ^= sign == '\'';
            sign == ' ' && !is_quoted
        });
        let (mut words, mut options) = (Vec::new(), json!({}));
        for part in parts.map(|part| part.replace('\'', "")) {
            match part.split_once('=') {
                Some((key, text)) => options[key] = value_of(text),
                None => words.push(part),
            }
        }
        Command { words, options }
    }

    /// Returns the word at this place, or an empty one.
    pub fn word(&self, place: usize) -> &str {
        self.words.get(place).map_or("", String::as_str)
    }

    pub fn number(&self, place: usize) -> u32 {
        self.word(place).parse().unwrap()
    }

    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|own| own == word)
    }

    pub fn option<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_value(self.options[key].clone()).ok()
    }

    /// Returns an object with the options as its fields, as far as it has such fields;
    /// `result/winner` is a field of a field.
    pub fn change<T: DeserializeOwned>(&self, object: impl Serialize) -> T {
        let mut whole = json!(object);
        for (path, value) in self.options.as_object().unwrap() {
            let steps = path.split('/');
            *steps.fold(&mut whole, |place, step| &mut place[step]) = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }
}

/// Reads JSON, or else a text; `x*51` is 51 times x.
fn value_of(text: &str) -> Value {
    let repeated = text.rsplit_once('*');
    let repeated = repeated.and_then(|(part, times)| Some((part, times.parse().ok()?)));
    let Some((part, times)) = repeated else {
        return json_or_text(text);
    };
    let (rest, last) = part.split_at(part.char_indices().last().unwrap().0);
    format!("{rest}{}", last.repeat(times)).into()
}

/// Returns the text with `x*51` in place of 51 times x, as an option is written.
pub fn with_repeats_folded(text: &str) -> String {
    let signs: Vec<char> = text.chars().collect();
    let runs = signs.chunk_by(|one, other| one == other);
    let fold = |run: &[char]| match run.len() {
        0..20 => run.iter().collect(),
        times => format!("{}*{times}", run[0]),
    };
    runs.map(fold).collect()
}

/// Returns a message with edits, separated by `;`: `field=JSON`, `field>other name`, `-field`.
pub fn edited(mut message: Value, edits: &str) -> Value {
    let fields = message.as_object_mut().unwrap();
    for edit in edits.split(';').filter(|edit| !edit.is_empty()) {
        if let Some((field, json)) = edit.split_once('=') {
            let value = serde_json::from_str(json);
            fields.insert(field.into(), value.expect(json));
        } else if let Some((field, name)) = edit.split_once('>') {
            let value = fields.remove(field).unwrap();
            fields.insert(name.into(), value);
        } else {
            fields.remove(edit.trim_start_matches('-')).unwrap();
        }
    }
    message
}
