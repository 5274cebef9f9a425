//! `bin/player.py` and `bin/league_player.py`, the player in Python: their texts, and what they share
//! with the player in Rust. `tests/stack/player.rs` plays with it.

use super::support::*;
use league::protocol::{AgentKind, MessageSpec};
use std::fs;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");

#[test]
fn template_has_no_long_lines() {
    for (file, max_lines) in [("player.py", 45), ("league_player.py", 920)] {
        let text = fs::read_to_string(format!("{ROOT}/bin/{file}")).unwrap();
        let is_short = text.lines().all(|line| line.chars().count() <= 100);
        assert!(is_short && text.lines().count() <= max_lines, "{file}");
    }
}

#[test]
fn python_files_know_each_message_of_a_player() {
    let player = include_str!("../../bin/league_player.py");
    let adapter = include_str!("../../bin/adapter.py");
    for spec in MessageSpec::accepted_by(AgentKind::Player) {
        let name = format!("\"{}\":", spec.message_type);
        assert!(player.contains(&name), "NEEDED in league_player.py: {name}");
        assert!(adapter.contains(&name), "METHODS in adapter.py: {name}");
    }
}

#[test]
fn players_of_one_machine_take_the_next_free_port() {
    if !has_python() {
        return;
    }
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let players = ["Ada", "Bob"].map(|name| {
        let mut command = Command::new(PYTHON);
        let options = ["--until-stdin-closes", "--display-name", name, "--manager"];
        command.arg(SCRIPT).args(options).arg(&manager.url);
        let player = TestProcess::new(command.current_dir(&test.folder));
        player.line(&format!("{name} is P01"));
        player
    });
    let [ada, bob] = players.each_ref().map(TestProcess::url);
    assert_ne!(ada, bob);
}

/// Prints what the player in Python says of each result in a script.
const DESCRIBE: &str = r#"
import json, sys, types, league_player
ada = types.SimpleNamespace(id="P01", names={"P01": "Ada", "P02": "Bob"})
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("> says result: "):
        result = json.loads(line[15:])
        arguments = result, result["choices"], "P02", result.get("reason", "")
        print("  " + league_player.Player.sentence(ada, *arguments))
"#;

#[test]
fn results_are_told_as_by_the_player_in_rust() {
    if !has_python() {
        return;
    }
    let script = format!("{ROOT}/tests/scripts/invitations/results_in_names.txt");
    let mut command = Command::new(PYTHON);
    command.args(["-c", DESCRIBE, &script]);
    let output = command.env("PYTHONPATH", format!("{ROOT}/bin")).output();
    let told = String::from_utf8(output.unwrap().stdout).unwrap();
    let script = fs::read_to_string(&script).unwrap();
    let expected = script.lines().filter(|line| line.starts_with("  "));
    assert_eq!(Vec::from_iter(told.lines()), Vec::from_iter(expected));
}
