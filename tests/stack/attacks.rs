//! A hostile class: a member that registers again and again, floods that are meant to make a
//! program restart at the wrong moment, and a foreign file in place of the journal. None of them
//! stops a league or wins a match.

use super::support::*;
use league::program::storage::JsonLinesFile;
use std::net::TcpStream;
use std::time::Instant;
use std::{fs, thread};

/// Opens more connections than a limited program has descriptors for.
fn flood(url: &str) -> Vec<TcpStream> {
    let connections = (0..60).map(|_| connect(url, TIME_LIMIT).ok());
    connections.flatten().collect()
}

/// Waits until another program that is flooded in the same way has restarted itself.
fn wait_for_restarts() {
    let test = TestLeague::new("");
    let manager = test.start_limited("ulimit -n 41", "league_manager", "");
    let _connections = flood(&manager.url());
    manager.wait_for_error("restarting the process");
}

#[test]
fn repeated_changes_of_a_member_are_stored_once_a_second() {
    let (test, manager) = with_manager("");
    let (url, begun) = (&manager.url(), Instant::now());
    let token = &*token_of(&register_player(url, "P01", "http://127.0.0.1:1/mcp"));

    let replies: Vec<Value> = thread::scope(|scope| {
        let threads = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| {
            let endpoint = format!("http://127.0.0.1:1/mcp?{n}");
            let request = player_registration("P01", &endpoint, Some(token));
            scope.spawn(move || send(url, &request))
        });
        threads.map(|thread| thread.join().unwrap()).into()
    });

    let (accepted, rejected): (Vec<&Value>, Vec<&Value>) = replies
        .iter()
        .partition(|reply| reply["status"] == "ACCEPTED");
    let stored = test.count("Registered");
    assert_eq!(stored, 1 + accepted.len());
    let most = 2 + begun.elapsed().as_secs() as usize;
    assert!((2..=most).contains(&stored), "{stored} of {most}");
    for reply in rejected {
        check_contains(text_of(&reply["reason"]), "once a second at most");
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
)]
fn flooded_manager_of_a_closed_league_is_not_restarted() {
    let test = TestLeague::new("");
    let options = "serve --players 2 --stay";
    let manager = test.start_limited("ulimit -n 41", "league_manager", options);
    let _agents = test.agents(&manager, "REF01 P01 P02");
    wait_until("the league is closed", || test.count("Closed") == 1);
    let connections = flood(&manager.url());
    wait_for_restarts();
    drop(connections);
    let errors = manager.errors();
    assert!(!errors.contains("restarting"), "{errors}");
    assert_eq!(test.count("Closed"), 1);
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
)]
fn flooded_practice_goes_on_where_it_was() {
    let test = TestLeague::new("");
    let options = "local --mine player --cycles 2 --lead-sec 1";
    let mut practice = test.start_limited("ulimit -n 64", "league_manager", options);
    let journal = test
        .folder
        .join("data/practice/leagues/league_2025_even_odd/journal.jsonl");
    let starts = || {
        let lines = json_lines(&journal);
        lines
            .iter()
            .filter(|line| line["event"] == "Started")
            .count()
    };
    wait_until("the league starts", || starts() == 1);
    let _connections = flood(&practice.url());
    practice.wait_for_error("restarting the process");
    practice.wait_for_success();
    assert_eq!(starts(), 1);
    let played = "12 of 12 matches were played to their end";
    check_contains(&practice.output(), played);
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux shows a process its descriptors"
)]
fn flooded_referee_does_not_begin_a_game_by_turns_again() {
    let (test, mut manager) = with_manager("");
    test.play("tic_tac_toe");
    manager.restart(&test, "--players 2");
    let options = format!("--manager {} --referee-id REF01", manager.url());
    let referee = test.start_limited("ulimit -n 41", "referee", &options);
    let _first = test.agent(&manager, "P01", "play blocks");
    let gate = Gate::default();
    let last = slow_player("P02", "", &gate, |asked| {
        asked["message_type"] == "CHOOSE_MOVE_CALL"
    });
    register_player(&manager.url(), "P02", &last.url);

    // The referee is flooded while it waits for the second player's first move.
    last.first("CHOOSE_MOVE_CALL");
    let connections = flood(&referee.url());
    wait_for_restarts();
    gate.open();
    drop(connections);
    manager.wait_for_success();

    let calls = last.received("CHOOSE_MOVE_CALL");
    let conversation = |call: &Value| call["conversation_id"].clone();
    let first = conversation(&calls[0]);
    assert!(calls.iter().all(|call| conversation(call) == first));
    assert_eq!(test.count("Recorded"), 1);
}

#[test]
fn foreign_journal_is_refused_and_left_alone() {
    let folder = &TestLeague::new("").folder;
    let letter = folder.join("letter");
    fs::write(&letter, "Dear diary").unwrap();
    fs::create_dir(folder.join("folder")).unwrap();
    #[cfg(unix)] // on Windows not every user may make a link
    std::os::unix::fs::symlink("letter", folder.join("link")).unwrap();

    let names = ["letter", "folder", "link"];
    for name in &names[..if cfg!(unix) { 3 } else { 2 }] {
        let opened = JsonLinesFile::open(&folder.join(name), |_| Ok(())).map(drop);
        check_contains(&opened.unwrap_err().to_string(), "this is not a");
    }
    assert_eq!(fs::read_to_string(letter).unwrap(), "Dear diary");
}
