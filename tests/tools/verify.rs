//! `verify`: the files of a league that was played agree, and every file that is changed
//! afterwards is named.

use super::support::*;
use league::system::PYTHON;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Replaces a text in a file.
fn change(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(old), "{old} is not in {}", path.display());
    fs::write(path, text.replacen(old, new, 1)).unwrap();
}

#[test]
fn changed_files_of_a_league_are_named() {
    let test = TestLeague::new("");
    test.local("--players 2 --referees 1 --seed 7");
    let (code, printed) = test.verify();
    assert_eq!(code, Some(0), "{printed}");
    check_contains(
        &printed,
        "1 of 1 results in the journal; outboxes: 1 of 1, \
         histories: 2 of 2 (they lack 0 results), logs: 5 of 5; all agree",
    );

    let journal = test.league_file("journal.jsonl");
    let outbox = test.folder.join("data/referees/REF01/outbox.jsonl");
    let history = test.folder.join("data/players/P02/history.json");
    let log = test.folder.join("logs/agents/P01.log.jsonl");
    let number = test.events("Recorded")[0]["result"]["details"]["drawn_number"].to_string();
    let number = [
        format!("\"drawn_number\":{number}"),
        format!("\"drawn_number\": {number}"),
    ];
    let recorded = fs::read_to_string(&journal).unwrap();
    let recorded = recorded.lines().find(|line| line.contains("Recorded"));
    let recorded = format!("{}\n", recorded.unwrap());
    let twice = recorded.repeat(2);

    for (path, old, new, difference) in [
        (&journal, &*recorded, &*twice, "R1M1 is recorded twice"),
        (
            &outbox,
            &*number[0],
            "\"drawn_number\":99",
            "R1M1 is not in the outbox of REF01",
        ),
        (
            &history,
            &*number[1],
            "\"drawn_number\": 99",
            "P02 remembers R1M1 otherwise",
        ),
        (
            &log,
            "{",
            "{\"token\":\"tok-p01-0123456789abcdef\",",
            "P01.log.jsonl shows a token",
        ),
    ] {
        let before = fs::read_to_string(path).unwrap();
        change(path, old, new);
        let (code, printed) = test.verify();
        assert_eq!(code, Some(1), "{printed}");
        check_contains(&printed, "1 difference");
        check_contains(&printed, difference);
        fs::write(path, before).unwrap();
    }
}

#[test]
fn spoilt_leagues_are_judged_rightly() {
    if !has_python() {
        return print_left_out("there is no Python");
    }
    let mut script = Command::new(PYTHON);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mutate.py"));
    let output = script.env("LEAGUE", executable("league")).output().unwrap();
    let output = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    check_contains(&output, " ways to spoil a league: 0 judged wrongly");
}
