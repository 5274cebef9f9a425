//! A local league that was interrupted goes on whatever has happened to the files that its journal can
//! restore; the last practice is not lost; other files are named.

use super::support::*;
use crate::files::finished_leagues;
use crate::practice::{delete_last_practice, replace_last_practice, restore_last_practice};
use league::program::args::{COMMON, Usage};
use std::path::Path;
use std::{fs, io};

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
    let second = whole
        .match_indices("{\"event\":\"Recorded\"")
        .nth(1)
        .unwrap()
        .0;

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
        let (_, output) = test.run_tool("verify");
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
    let (code, output) = test.run_tool("verify");
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
fn last_practice_is_kept_until_the_next_one_begins() {
    let usage = Usage {
        name: "test",
        about: "",
        options: &[COMMON],
    };
    let test = TestLeague::new("");
    let folders = ["data", "logs"].map(|name| test.folder.join(name));
    let mut arguments = Vec::new();
    for folder in &folders {
        let name = folder.file_name().unwrap().to_string_lossy();
        arguments.extend([format!("--{name}"), folder.display().to_string()]);
    }
    let args = || usage.parse(arguments.clone()).unwrap();
    let practice = |n: usize| folders[n].join("practice/file");
    let lay = |text: &str| {
        for folder in &folders {
            fs::create_dir_all(folder.join("practice")).unwrap();
            fs::write(folder.join("practice/file"), text).unwrap();
        }
    };
    let texts = || [0, 1].map(|n| fs::read_to_string(practice(n)).unwrap_or_default());
    let start = || {
        let started = open_again(|| {
            let mut args = args();
            let lock = replace_last_practice(&mut args);
            let lock = lock.map_err(|exit| io::Error::new(io::ErrorKind::WouldBlock, exit.message));
            lock.map(|_| args)
        });
        started.unwrap()
    };

    start();
    lay("first");
    // Each of them is killed before it has begun; the one after that finds the first one.
    for _ in 0..3 {
        start();
        assert_eq!(texts(), ["", ""]);
        lay("not begun");
    }
    let failed = start();
    restore_last_practice(&failed).unwrap();
    assert_eq!(texts(), ["first", "first"]);

    // It is killed between the two folders, when it moves them and when it deletes them.
    fs::rename(
        folders[0].join("practice"),
        folders[0].join("practice.last"),
    )
    .unwrap();
    let next = start();
    lay("second");
    fs::remove_dir_all(folders[0].join("practice.last")).unwrap();
    start();
    restore_last_practice(&next).unwrap();
    assert_eq!(texts(), ["second", "second"]);
    start();
    delete_last_practice(&next).unwrap();
    restore_last_practice(&next).unwrap();
    assert_eq!(texts(), ["", ""]);
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
