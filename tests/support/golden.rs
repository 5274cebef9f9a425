//! Golden scripts: a folder in `tests/scripts` for each subject, and in it a file for each behaviour.
//! The folder's README explains the commands.
//!
//! A file begins with a sentence that says what must hold. A line `> command` is run; the indented
//! lines below it are its output. Other lines are comments. A test runs all commands and compares
//! every word. With LEAGUE_TEST_REWRITE=1 it writes the output into the file instead: then read the
//! difference.
#![allow(dead_code, reason = "every test file uses its own part")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Runs every script of a folder, each with a new runner, and fails if an output differs.
pub fn run_scripts<Runner: FnMut(&str) -> String>(
    folder: &str,
    mut new_runner: impl FnMut() -> Runner,
) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("tests/scripts").join(folder);
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some());
    paths.sort();
    assert!(!paths.is_empty());

    let mut differences = String::new();
    for path in &paths {
        let expected = fs::read_to_string(path).unwrap();
        let actual = run_script(&expected, new_runner());
        if env::var_os("LEAGUE_TEST_REWRITE").is_some() {
            fs::write(path, &actual).unwrap();
        } else if let Some(difference) = first_difference(&expected, &actual) {
            let file = path.strip_prefix(root).unwrap().display();
            differences += &format!("\n{file}, {difference}\n");
        }
    }
    let hint = "LEAGUE_TEST_REWRITE=1 writes the actual output into the files";
    assert!(differences.is_empty(), "{differences}{hint}");
}

/// Runs the commands of a script, and returns the script with their output.
fn run_script(text: &str, mut run: impl FnMut(&str) -> String) -> String {
    let mut actual = String::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        actual += &format!("{line}\n");
        if let Some(command) = line.strip_prefix("> ") {
            for output in run(command).lines() {
                actual += &format!("  {output}\n");
            }
        }
    }
    actual
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
