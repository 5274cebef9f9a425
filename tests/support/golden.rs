//! Golden scripts: a folder in `tests/scripts` for each subject, and in it a file for each behaviour.
//! The folder's README explains the commands.
//!
//! A file begins with a sentence that says what must hold. A line `> command` is run; the indented
//! lines below it are its output. Other lines are comments. A test runs all commands and compares
//! every word. With LEAGUE_TEST_REWRITE=1 it writes the output into the file instead: then read the
//! difference.
#![allow(dead_code, reason = "every test file uses its own part")]

use super::print_left_out;
use league::system::PYTHON;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs every script of a folder, each with a new runner, and fails if an output differs.
pub fn run_scripts<Runner: FnMut(&str) -> String>(
    folder: &str,
    mut new_runner: impl FnMut() -> Runner,
) {
    let differences = scripts(folder).map(|path| difference(&path, new_runner()));
    check(differences.collect());
}

/// The same for scripts that wait: all of them at once.
pub fn run_scripts_at_once<Runner: FnMut(&str) -> String>(
    folder: &str,
    new_runner: impl Fn() -> Runner + Sync,
) {
    let differences = thread::scope(|scope| {
        let start = |path: PathBuf| {
            let named = thread::Builder::new().name(path.display().to_string());
            named
                .spawn_scoped(scope, || difference(&{ path }, new_runner()))
                .unwrap()
        };
        let scripts: Vec<_> = scripts(folder).map(start).collect();
        let ends = scripts.into_iter().map(|script| script.join());
        ends.map(|end| end.unwrap_or("a script has panicked\n".into()))
            .collect()
    });
    check(differences);
}

fn scripts(folder: &str) -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(ROOT).join("tests/scripts").join(folder);
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let only = env::var("LEAGUE_TEST_SCRIPT").unwrap_or_default();
    paths.retain(|path| path.extension().is_some() && path.to_str().unwrap().contains(&only));
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter()
}

fn check(differences: String) {
    let hint = "LEAGUE_TEST_REWRITE=1 writes the actual output into the files";
    assert!(differences.is_empty(), "{differences}{hint}");
}

/// Runs a script. Returns where its output differs.
fn difference(path: &Path, runner: impl FnMut(&str) -> String) -> String {
    let expected = fs::read_to_string(path).unwrap();
    let needs = expected
        .lines()
        .find_map(|line| line.strip_prefix("> needs "));
    let missing = needs.and_then(|names| names.split(' ').find(|name| !is_installed(name)));
    if let Some(name) = missing {
        print_left_out(&format!("{}: {name} is not installed", path.display()));
        return String::new();
    }

    let actual = run_script(&expected, runner);
    if env::var_os("LEAGUE_TEST_REWRITE").is_some() {
        fs::write(path, &actual).unwrap();
    } else if let Some(difference) = first_difference(&expected, &actual) {
        let file = path.strip_prefix(ROOT).unwrap().display();
        return format!("\n{file}, {difference}\n");
    }
    String::new()
}

fn is_installed(name: &str) -> bool {
    let mut command = Command::new(if name == "python" { PYTHON } else { name });
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok()
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
