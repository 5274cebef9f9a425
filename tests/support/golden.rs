//! Golden scripts: the files in `tests/scripts`, each a list of commands with what came of them.
//!
//! A line `> command` is done; the indented lines below it are what was said. Whatever else stands
//! there tells the story to the reader. A test does all commands anew and compares every word. Who
//! wants other words runs it once with LEAGUE_TEST_REWRITE=1, which writes what came of the
//! commands into the file, and reads the difference.
#![allow(dead_code, reason = "every test file uses its own part")]

use serde_json::Value;
use std::{fs, path::Path};

/// Does every command of a script; fails where something else comes of it than what stands there.
pub fn play(name: &str, mut does: impl FnMut(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let path = folder.join(name);
    let text = fs::read_to_string(&path).unwrap();
    let mut came = String::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        came += line;
        came += "\n";
        if let Some(command) = line.strip_prefix("> ") {
            let said = does(command);
            said.lines().for_each(|it| came += &format!("  {it}\n"));
        }
    }
    if std::env::var_os("LEAGUE_TEST_REWRITE").is_some() {
        return fs::write(&path, &came).unwrap();
    }
    let mut lines = (1..).zip(text.lines().chain([""]).zip(came.lines().chain([""])));
    if let Some((n, (expected, came))) = lines.find(|(_, (expected, came))| expected != came) {
        let cure = "LEAGUE_TEST_REWRITE=1 takes what came";
        panic!("tests/scripts/{name}, line {n}\nexpected: {expected}\ncame:     {came}\n{cure}");
    }
}

/// A message with edits, `;` between them: `field=JSON`, `field>other name`, `-field`.
pub fn edited(mut message: Value, edits: &str) -> Value {
    let fields = message.as_object_mut().unwrap();
    for edit in edits.split(';').filter(|edit| !edit.is_empty()) {
        if let Some((field, json)) = edit.split_once('=') {
            let value = serde_json::from_str(json);
            fields.insert(
                field.into(),
                value.unwrap_or_else(|no| panic!("{json}: {no}")),
            );
        } else if let Some((field, name)) = edit.split_once('>') {
            let value = fields.remove(field).unwrap();
            fields.insert(name.into(), value);
        } else {
            fields.remove(edit.trim_start_matches('-')).unwrap();
        }
    }
    message
}
