//! A local league that was interrupted goes on whatever has happened to the files that its journal can
//! restore; other files are named.

use super::support::damage::damaged;
use super::support::*;
use crate::files::finished_leagues;
use std::fs;
use std::path::Path;

/// The ways of damage: after the first three a file still has all that it had, then it is missing, and
/// after the last four it has not.
const WAYS: [&str; 8] = [
    "byte order mark",
    "CRLF",
    "no last line end",
    "missing",
    "empty",
    "zeros",
    "cut",
    "other text",
];

fn is_whole(way: &str) -> bool {
    WAYS[..3].contains(&way)
}

/// Writes what is left of a text after a damage.
fn damage(path: &Path, text: &str, way: &str) {
    match damaged(way, text.as_bytes()) {
        Some(left) => fs::write(path, left).unwrap(),
        None => fs::remove_file(path).unwrap(),
    }
}

/// Returns a text up to the line with the second of these words.
fn until_second(text: &str, words: &str) -> String {
    let place = text.match_indices(words).nth(1).unwrap().0;
    let lines = text[..place].rfind('\n').unwrap() + 1;
    text[..lines].into()
}

#[test]
fn interrupted_local_league_goes_on_with_damaged_files() {
    let test = TestLeague::new("");
    let data = test.folder.join("data");
    let entrants = test.folder.join("entrants.txt");
    fs::write(&entrants, "Ada\teven\nBob\todd\nCy\trandom\n").unwrap();
    let options = format!("local --entrants {} --referees 1", entrants.display());
    let league = || {
        let mut league = test.manager(&options);
        league.wait_for_success();
        test.check_played(3);
        league.errors()
    };
    let check_verified = |way: &str| {
        let (code, output) = test.verify();
        assert_eq!(code, Some(0), "{way}: {output}");
    };
    league();

    // The referee has decided the second match, and the manager has not taken the result.
    let [journal, outbox] = [
        test.league_file("journal.jsonl"),
        data.join("referees/REF01/outbox.jsonl"),
    ];
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let events = until_second(&read(&journal), "\"event\":\"Recorded\"");
    let results = read(&outbox);
    let lines = results.split_inclusive('\n').take(2);
    let results: String = lines.collect();
    let interrupt = || {
        fs::write(&journal, &events).unwrap();
        fs::write(&outbox, &results).unwrap();
        for id in ["P01", "P02", "P03"] {
            let _ = fs::remove_file(data.join(format!("players/{id}/history.json")));
        }
    };
    let files = [
        (
            data.join("agents/P02.json"),
            "P02.json was damaged, and is restored from the journal",
        ),
        (test.league_file("entrants.txt"), ""),
        (test.league_file("operator.token"), "had no whole token"),
        (
            data.join("players/P02/history.json"),
            "is not the player's history",
        ),
    ];
    let texts = files.each_ref().map(|(path, _)| read(path));
    for way in WAYS {
        interrupt();
        for ((path, _), text) in files.iter().zip(&texts) {
            fs::write(path, text).unwrap();
            damage(path, text, way);
        }
        let errors = league();
        match WAYS[4..].contains(&way) {
            true => files
                .iter()
                .for_each(|(_, says)| check_contains(&errors, says)),
            false => assert_eq!(errors, "", "{way}"),
        }
        check_verified(way);
    }

    // A result that its outbox has lost is found in the journal, or played again.
    for way in WAYS {
        interrupt();
        damage(&outbox, &results, way);
        league();
        let (_, output) = test.verify();
        let is_lost = output.contains("R1M1 is not in the outbox");
        assert_eq!(is_lost, !is_whole(way), "{way}: {output}");
    }

    // The credentials of all, and a copy of another's.
    interrupt();
    let [own, others @ ..] =
        ["P02", "P03", "REF01"].map(|id| data.join(format!("agents/{id}.json")));
    fs::copy(&others[0], own).unwrap();
    for path in others {
        fs::write(path, "").unwrap();
    }
    league();
    check_verified("all credentials");
}

#[test]
fn damaged_document_of_a_league_is_left_out() {
    let test = TestLeague::new("");
    test.local("--players 2 --referees 1");
    let path = test.league_file("league.json");
    let whole = fs::read_to_string(&path).unwrap();
    for way in WAYS {
        damage(&path, &whole, way);
        let leagues = finished_leagues(&test.folder.join("data"), "league_2025_even_odd");
        assert_eq!(leagues.len(), usize::from(is_whole(way)), "{way}");
    }
}
