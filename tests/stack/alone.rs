//! The three programs without the tool: the lines that the manager prints, and the files that it
//! writes.

use super::support::*;
use league::program::terminal::LineLimit;
use std::fs;
use std::time::{Duration, Instant};

const LEAGUE: &str = "leagues/league_2025_even_odd";

/// Plays a league with REF01 and these players to its end. Returns the output of the manager.
fn play(test: &TestLeague, manager: &mut TestProcess, players: &str) -> String {
    let mut agents = test.agents(manager, &format!("REF01 {players}"));
    wait_for_all(manager, &mut agents);
    manager.output()
}

/// Returns the keys of an object.
fn keys(value: &Value) -> String {
    let keys = value.as_object().unwrap().keys();
    keys.map(String::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn three_programs_print_the_league_and_write_its_files() {
    for options in ["", "--quiet"] {
        let (test, mut manager) = with_manager(&format!("--players 3 {options}"));
        let output = play(&test, &mut manager, "P01 P02 P03");
        test.check_played(3);

        let table = test.table();
        let columns = "player_id display_name played wins draws losses points";
        let cells = |row: &Value| {
            let cells = columns.split(' ').map(|column| row[column].to_string());
            cells.collect::<Vec<_>>().join(" ").replace('"', "")
        };
        let (before, end) = output.rsplit_once("Rank  Id   Player").unwrap();
        for (line, row) in end.lines().skip(1).zip(&table) {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[1..].join(" "), cells(row)); // equal players share a rank
        }
        let [name, id] = ["display_name", "player_id"].map(|key| text_of(&table[0][key]));
        check_contains(end, &format!("\n\nChampion: {name} ({id})"));
        let points = &table[0]["points"];
        check_contains(end, &format!(" with {points} point"));

        if options == "--quiet" {
            assert_eq!(before.trim_end().lines().count(), 1, "listening: {before}");
            continue;
        }
        let mut lines = vec![
            "Agent Alpha (P01) is here".to_string(),
            "Referee Alpha (REF01) is here".to_string(),
            "the league starts when these have registered: players 3, referees 1".to_string(),
        ];
        for round in list_of(&test.events("Started")[0]["rounds"]) {
            let [a, b] = [0, 1].map(|seat| {
                let row = table.iter().find(|row| row["player_id"] == round[0][seat]);
                text_of(&row.unwrap()["display_name"])
            });
            lines.push(format!(" of 3: {a} meets {b}"));
        }
        for line in lines {
            check_contains(before, &format!("{line}\n"));
        }
        for recorded in test.events("Recorded") {
            let start = format!("  {} ", text_of(&recorded["match_id"]));
            let line = before.lines().find(|line| line.starts_with(&start));
            let number = &recorded["result"]["details"]["drawn_number"];
            check_contains(line.unwrap(), &format!(": the number was {number}"));
        }
    }
}

#[test]
fn files_have_the_form_of_the_specification() {
    let (test, mut manager) = with_manager("--players 2");
    play(&test, &mut manager, "P01 P02");

    let standings = test.data(&format!("{LEAGUE}/standings.json"));
    let rounds = test.data(&format!("{LEAGUE}/rounds.json"));
    for (object, expected) in [
        (
            &standings,
            "last_updated league_id rounds_completed schema_version standings version",
        ),
        (
            &standings["standings"][0],
            "display_name draws losses played player_id points rank wins",
        ),
        (
            &rounds["rounds"][0]["matches"][0],
            "match_id player_A_id player_B_id status winner",
        ),
    ] {
        assert_eq!(keys(object), expected);
    }
    assert_eq!(standings["rounds_completed"], 1);
    let file = test.data("matches/league_2025_even_odd/R1M1.json");
    for (key, value) in [
        ("schema_version", "1.0.0"),
        ("league_id", "league_2025_even_odd"),
        ("referee_id", "REF01"),
        ("match_id", "R1M1"),
    ] {
        assert_eq!(file[key], value);
    }
    let mut temporary = files(&test.folder.join("data"));
    temporary.retain(|path| path.extension().is_some_and(|name| name == "new"));
    assert!(temporary.is_empty(), "{temporary:?}");
}

#[test]
fn file_that_cannot_be_written_is_reported_once_and_stops_no_league() {
    let test = TestLeague::new("");
    fs::create_dir_all(test.league_file("standings.json").join("x")).unwrap();
    let mut manager = test.manager("--players 2");
    let rounds = || test.data(&format!("{LEAGUE}/rounds.json"));
    let first = rounds();
    wait_until("the files are written again", || rounds() != first);
    let output = play(&test, &mut manager, "P01 P02");

    let faults = output.matches("the files of the league cannot be written: ");
    assert_eq!(faults.count(), 1, "{output}");
    let file = test.data("matches/league_2025_even_odd/R1M1.json");
    assert_eq!(file["result"], test.events("Recorded")[0]["result"]);
    assert_eq!(rounds()["rounds"][0]["matches"][0]["status"], "completed");
}

#[test]
fn twenty_lines_are_printed_in_two_minutes_and_none_twice() {
    let (mut limit, start) = (LineLimit::default(), Instant::now());
    let mut admit = |line: &str, seconds| limit.allow(line, start + Duration::from_secs(seconds));
    for n in 0..19 {
        assert!(admit(&format!("first {n}"), 100), "{n}");
    }
    assert!(!admit("first 0", 101));
    assert!(admit("one more", 102));
    assert!(!admit("another", 219), "two minutes have not passed");
    assert!(admit("first 0", 220));
    for n in 0..20 {
        assert_eq!(admit(&format!("second {n}"), 220), n < 18, "{n}");
    }
}
