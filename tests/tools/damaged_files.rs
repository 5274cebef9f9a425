//! A local league that was interrupted goes on whatever has happened to the files that its journal can
//! restore; other files are named.

use super::support::*;
use crate::files::finished_leagues;
use std::fs;
use std::path::Path;

/// A way in which a file comes to harm: its name, and what is left of a text.
type Harm = (&'static str, fn(&str) -> Option<String>);

const HARMS: [Harm; 8] = [
    ("missing", |_| None),
    ("empty", |_| Some(String::new())),
    ("zeros", |text| Some("\0".repeat(text.len()))),
    ("cut", |text| Some(text[..text.len() / 3].into())),
    ("byte order mark", |text| Some(format!("\u{feff}{text}"))),
    ("CRLF", |text| Some(text.replace('\n', "\r\n"))),
    ("no last line end", |text| Some(text.trim_end().into())),
    ("other text", |_| Some("Dear diary".into())),
];

fn write(path: &Path, text: Option<String>) {
    match text {
        Some(text) => fs::write(path, text).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
}

#[test]
fn interrupted_local_league_goes_on_with_damaged_files() {
    let test = TestLeague::new("");
    let entrants = test.folder.join("entrants.txt");
    fs::write(&entrants, "Ada\teven\nBob\todd\nCy\trandom\n").unwrap();
    let options = format!("--entrants {} --referees 1", entrants.display());
    test.local(&options);
    let journal = test.league_file("journal.jsonl");
    let whole = fs::read_to_string(&journal).unwrap();
    let mut recorded = whole.match_indices("\"event\":\"Recorded\"");
    let second = recorded.nth(1).unwrap().0;
    let second = whole[..second].rfind('\n').unwrap() + 1;

    // The referee has decided the second match, and the manager has not taken the result.
    let data = test.folder.join("data");
    let outbox = data.join("referees/REF01/outbox.jsonl");
    let written = fs::read_to_string(&outbox).unwrap();
    let third = written.match_indices('\n').nth(1).unwrap().0 + 1;
    let interrupt = || {
        fs::write(&journal, &whole[..second]).unwrap();
        fs::write(&outbox, &written[..third]).unwrap();
        for id in ["P01", "P02", "P03"] {
            let _ = fs::remove_file(data.join(format!("players/{id}/history.json")));
        }
    };

    let credentials = data.join("agents/P02.json");
    let others = [data.join("agents/P03.json"), data.join("agents/REF01.json")];
    let files = [
        (
            credentials.clone(),
            "P02.json was damaged, and is restored from the journal",
        ),
        (test.league_file("entrants.txt"), ""),
        (test.league_file("operator.token"), "had no whole token"),
        (
            data.join("players/P02/history.json"),
            "is not the player's history",
        ),
    ];
    let texts = files
        .each_ref()
        .map(|(path, _)| fs::read_to_string(path).unwrap());
    interrupt();
    for (harm, change) in HARMS {
        interrupt();
        for ((path, _), text) in files.iter().zip(&texts) {
            fs::write(path, text).unwrap();
            write(path, change(text));
        }
        let mut league = test.manager(&format!("local {options}"));
        league.wait_for_success();

        let errors = league.errors();
        if ["empty", "zeros", "cut", "other text"].contains(&harm) {
            for (_, says) in &files {
                check_contains(&errors, says);
            }
        } else {
            assert_eq!(errors, "", "{harm}");
        }
        test.check_played(3);
        check_verified(&test, harm);
    }

    // A result that its outbox has lost is found in the journal, or played again.
    for (harm, change) in HARMS {
        interrupt();
        write(&outbox, change(&written[..third]));
        test.local(&options);
        test.check_played(3);
        let (_, output) = test.verify();
        let is_whole = ["byte order mark", "CRLF", "no last line end"].contains(&harm);
        assert_eq!(
            !output.contains("R1M1 is not in the outbox"),
            is_whole,
            "{harm}: {output}"
        );
    }

    // The credentials of all, and a copy of another's.
    interrupt();
    fs::copy(&others[0], &credentials).unwrap();
    for path in &others {
        fs::write(path, "").unwrap();
    }
    test.local(&options);
    test.check_played(3);
    check_verified(&test, "all credentials");
}

fn check_verified(test: &TestLeague, row: &str) {
    let (code, output) = test.verify();
    assert_eq!(code, Some(0), "{row}: {output}");
}

#[test]
fn python_player_names_damaged_credentials() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    let manager = test.serve("");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");
    let start = || test.python(script, &manager.url(), "--player-id P01");
    let mut player = start();
    player.line("is P01");
    player.kill();
    let path = test.folder.join("data/agents/P01.json");
    let whole = fs::read_to_string(&path).unwrap();
    for (harm, change) in &HARMS[1..] {
        write(&path, change(&whole));
        let mut player = start();
        if ["byte order mark", "CRLF", "no last line end"].contains(harm) {
            player.line("is P01");
            player.kill();
        } else {
            assert_eq!(player.wait().code(), Some(1), "{harm}");
            check_contains(
                &player.errors(),
                "P01.json is damaged; put it back, or remove it",
            );
        }
        fs::write(&path, &whole).unwrap();
    }
    let members = test.events("Registered");
    assert!(
        members.iter().all(|member| member["id"] == "P01"),
        "{members:?}"
    );
}

#[test]
fn damaged_document_of_a_league_is_left_out() {
    let test = TestLeague::new("");
    test.local("--players 2 --referees 1");
    let path = test.league_file("league.json");
    let whole = fs::read_to_string(&path).unwrap();
    for (harm, change) in HARMS {
        write(&path, change(&whole));
        let leagues = finished_leagues(&test.folder.join("data"), "league_2025_even_odd");
        let is_whole = ["byte order mark", "CRLF", "no last line end"].contains(&harm);
        assert_eq!(leagues.len(), usize::from(is_whole), "{harm}");
    }
}
