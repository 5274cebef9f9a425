//! The three programs without any other: what the manager prints, and the files that it writes.

use super::support::*;
use league::program::terminal::LineLimit;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LEAGUE: &str = "leagues/league_2025_even_odd";

/// Starts a referee and players; returns them.
fn agents(test: &TestLeague, manager: &TestProcess, players: u32) -> Vec<TestProcess> {
    let ids = (1..=players).map(|n| format!("P{n:02}"));
    let ids = ["REF01".to_string()].into_iter().chain(ids);
    ids.map(|id| test.agent(manager, &id, "")).collect()
}

/// The keys of an object.
fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object();
    object.unwrap().keys().map(String::as_str).collect()
}

#[test]
fn three_programs_print_the_league_and_write_its_files() {
    for options in ["", "--quiet"] {
        let test = TestLeague::new("");
        let mut manager = test.manager(&format!("--players 3 {options}"));
        let mut agents = agents(&test, &manager, 3);
        manager.wait_for_success();
        agents.iter_mut().for_each(TestProcess::wait_for_success);
        test.check_played(3);

        let (output, table) = (manager.output(), test.table());
        let [name, id] = ["display_name", "player_id"].map(|key| text_of(&table[0][key]));
        let rows: Vec<String> = table
            .iter()
            .map(|row| {
                let cells = [
                    "rank",
                    "player_id",
                    "display_name",
                    "played",
                    "wins",
                    "draws",
                ];
                let cells = cells.iter().chain(&["losses", "points"]);
                let cells = cells.map(|key| row[key].to_string().replace('"', ""));
                cells.collect::<Vec<_>>().join(" ")
            })
            .collect();
        let (before, end) = output.rsplit_once("Rank  Id   Player").unwrap();
        let end = end.split_once('\n').unwrap().1;
        let shown = end.lines().take(3).map(|line| {
            let cells = line.split_whitespace();
            cells.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(shown.collect::<Vec<_>>(), rows);
        let points = &table[0]["points"];
        check_contains(
            end,
            &format!("\n\nChampion: {name} ({id}) with {points} point"),
        );

        if options == "--quiet" {
            assert_eq!(before.trim_end().lines().count(), 1, "listening: {before}");
            continue;
        }
        for (id, name) in [("P01", "Agent Alpha"), ("REF01", "Referee Alpha")] {
            check_contains(before, &format!("{name} ({id}) is here\n"));
        }
        check_contains(
            before,
            "\nthe league starts when these have registered: players 3, referees 1\n",
        );
        for line in test.events("Started")[0]["rounds"].as_array().unwrap() {
            let [a, b] = [0, 1].map(|seat| {
                let id = &line[0][seat];
                let row = table.iter().find(|row| row["player_id"] == *id);
                text_of(&row.unwrap()["display_name"])
            });
            check_contains(before, &format!(" of 3: {a} meets {b}\n"));
        }
        for recorded in test.events("Recorded") {
            let id = text_of(&recorded["match_id"]);
            let number = &recorded["result"]["details"]["drawn_number"];
            let mut lines = before.lines();
            let line = lines.find(|line| line.starts_with(&format!("  {id} ")));
            let line = line.unwrap();
            assert!(
                line.ends_with(&format!(": the number was {number}")),
                "{line}"
            );
        }
    }
}

#[test]
fn files_have_the_form_of_the_specification() {
    let (test, mut manager) = with_manager("--players 2");
    let mut agents = agents(&test, &manager, 2);
    manager.wait_for_success();
    agents.iter_mut().for_each(TestProcess::wait_for_success);

    let standings = test.data(&format!("{LEAGUE}/standings.json"));
    assert_eq!(
        keys(&standings),
        [
            "last_updated",
            "league_id",
            "rounds_completed",
            "schema_version",
            "standings",
            "version"
        ]
    );
    assert_eq!(
        keys(&standings["standings"][0]),
        [
            "display_name",
            "draws",
            "losses",
            "played",
            "player_id",
            "points",
            "rank",
            "wins"
        ]
    );
    assert_eq!(standings["rounds_completed"], 1);
    let rounds = test.data(&format!("{LEAGUE}/rounds.json"));
    assert_eq!(
        keys(&rounds["rounds"][0]["matches"][0]),
        ["match_id", "player_A_id", "player_B_id", "status", "winner"]
    );
    let file = test.data("matches/league_2025_even_odd/R1M1.json");
    for (key, value) in [
        ("schema_version", "1.0.0"),
        ("league_id", "league_2025_even_odd"),
        ("referee_id", "REF01"),
        ("match_id", "R1M1"),
    ] {
        assert_eq!(file[key], value);
    }
    let left = files(&test.folder.join("data"));
    let is_temporary = |path: &&PathBuf| path.extension().is_some_and(|name| name == "new");
    assert_eq!(left.iter().find(is_temporary), None);
}

#[test]
fn file_that_cannot_be_written_is_said_once_and_stops_nothing() {
    let test = TestLeague::new("");
    let in_the_way = test.league_file("standings.json");
    fs::create_dir_all(in_the_way.join("x")).unwrap();
    let mut manager = test.manager("--players 2");
    let rounds = || test.data(&format!("{LEAGUE}/rounds.json"))["last_updated"].take();
    let first = rounds();
    wait_until("it is tried again", || rounds() != first);
    let mut agents = agents(&test, &manager, 2);
    manager.wait_for_success();
    agents.iter_mut().for_each(TestProcess::wait_for_success);

    let output = manager.output();
    let said = output.matches("the files of the league cannot be written: ");
    assert_eq!(said.count(), 1, "{output}");
    let file = test.data("matches/league_2025_even_odd/R1M1.json");
    assert_eq!(file["result"], test.events("Recorded")[0]["result"]);
    let rounds = test.data(&format!("{LEAGUE}/rounds.json"));
    assert_eq!(rounds["rounds"][0]["matches"][0]["status"], "completed");
}

#[test]
fn twenty_lines_are_printed_at_once_then_one_a_second_and_none_twice() {
    let (mut limit, start) = (LineLimit::default(), Instant::now());
    let mut admit = |line: &str, seconds| limit.admit(line, start + Duration::from_secs(seconds));
    for n in 0..20 {
        assert!(admit(&format!("first {n}"), 100), "{n}");
    }
    assert!(!admit("one more", 100));
    assert!(admit("one more", 101), "a lost line may be printed later");
    assert!(!admit("another", 101));
    assert!(!admit("first 0", 699), "ten minutes have not passed");
    assert!(admit("first 0", 700));
    for n in 0..20 {
        assert_eq!(admit(&format!("second {n}"), 700), n < 19, "{n}");
    }
}
