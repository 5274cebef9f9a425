//! A hostile classroom: a member that registers again and again, floods that are meant to make a
//! program restart at the wrong moment, addresses that do not look like this machine, and requests
//! that are meant to fill the disk. None of them stops a league or wins a match.

use super::support::fake::LEAGUE;
use super::support::*;
use league::program::storage::JsonLinesFile;
use league::values::Endpoint;
use std::net::TcpStream;
use std::time::Instant;
use std::{fs, io, thread};

/// Opens connections to a program that may have too few descriptors to accept them.
fn flood(url: &str) -> Vec<TcpStream> {
    let connections = (0..60).map(|_| connect(url, TIME_LIMIT).ok());
    connections.flatten().collect()
}

#[test]
fn repeated_changes_of_a_member_are_stored_once_a_second() {
    let test = TestLeague::new("");
    let manager = test.manager("");
    let url = manager.url();
    let begun = Instant::now();
    let token = token_of(&register_player(&url, "P01", "http://127.0.0.1:1/mcp"));

    let replies: Vec<Value> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for n in 0..8 {
            let (url, token) = (&url, &token);
            threads.push(scope.spawn(move || {
                let endpoint = format!("http://127.0.0.1:1/mcp?{n}");
                let request = application("Ada", &endpoint);
                let mut request = message("LEAGUE_REGISTER_REQUEST", "player:P01", request);
                request["auth_token"] = json!(token);
                send(url, &request)
            }));
        }
        let replies = threads.into_iter().map(|thread| thread.join().unwrap());
        replies.collect()
    });

    let accepted = replies.iter().filter(|reply| reply["status"] == "ACCEPTED");
    let stored = test.count("Registered");
    assert_eq!(stored, 1 + accepted.count());
    let most = 2 + begun.elapsed().as_secs() as usize;
    assert!(
        (2..=most).contains(&stored),
        "{stored} changes, at most {most}"
    );
    for reply in replies.iter().filter(|reply| reply["status"] != "ACCEPTED") {
        check_contains(text_of(&reply["reason"]), "once a second at most");
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux tells a process what it holds"
)]
fn flooded_manager_of_a_closed_league_comes_back_as_it_was() {
    let test = TestLeague::new("");
    let options = "serve --players 2 --stay";
    let manager = test.start_limited("ulimit -n 41", "league_manager", options);
    let _agents = ["REF01", "P01", "P02"].map(|id| test.agent(&manager, id, ""));
    wait_until("the league is closed", || test.count("Closed") == 1);
    let connections = flood(&manager.url());
    manager.wait_for_error("restarting the process");
    drop(connections);

    // It opens no lobby, shows the league, and takes the operator's words.
    wait_until("it serves again", || {
        let text = manager.output_so_far();
        text.matches("still serving (--stay)").count() == 2
    });
    assert_eq!(test.count("Closed"), 1, "the league is where it was");
    let late = register_player(&manager.url(), "P03", "http://127.0.0.1:1/mcp");
    assert_eq!(late["error_code"], "E019", "{late}");
    let page = manager.page("/league.json").1;
    check_contains(&page, r#""status":"completed""#);
    let printed = manager.output_so_far();
    assert_eq!(printed.matches("Champion: ").count(), 1, "{printed}");
    check_contains(
        &test.order("new-lobby", &manager.url()),
        "a new lobby opens",
    );
    wait_until("the lobby is open", || {
        manager.output_so_far().matches("listening on ").count() == 3
    });
    let accepted = register_player(&manager.url(), "P03", "http://127.0.0.1:1/mcp");
    assert_eq!(accepted["status"], "ACCEPTED", "{accepted}");
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux tells a process what it holds"
)]
fn flooded_practice_goes_on_where_it_was() {
    let test = TestLeague::new("");
    let options = "local --mine player --cycles 2 --lead-sec 1";
    let mut practice = test.start_limited("ulimit -n 64", "league_manager", options);
    let journal = test
        .folder
        .join("data/practice/leagues/league_2025_even_odd/journal.jsonl");
    wait_until("it has begun", || {
        fs::read_to_string(&journal).is_ok_and(|events| events.contains("Started"))
    });
    let _connections = flood(&practice.url());
    practice.wait_for_error("restarting the process");
    practice.wait_for_success();
    let events = fs::read_to_string(&journal).unwrap();
    assert_eq!(events.matches("Started").count(), 1);
    check_contains(
        &practice.output(),
        "12 of 12 matches were played to their end",
    );
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux tells a process what it holds"
)]
fn flooded_referee_does_not_begin_a_game_by_turns_again() {
    let (test, mut manager) = with_manager("");
    test.play("tic_tac_toe");
    manager.restart(&test, "--players 2");
    let options = format!("--manager {} --referee-id REF01", manager.url());
    let referee = test.start_limited("ulimit -n 41", "referee", &options);
    let options = format!("play blocks --manager {} --player-id P01", manager.url());
    let _first = test.start("player", &options);
    let gate = Gate::default();
    let last = slow_player("P02", "", &gate, |asked| {
        asked["message_type"] == "CHOOSE_MOVE_CALL"
    });
    register_player(&manager.url(), "P02", &last.url);

    // The referee is flooded while it waits for the second player's first move.
    last.first("CHOOSE_MOVE_CALL");
    let connections = flood(&referee.url());
    referee.wait_for_error("restarting the process");
    gate.open();
    drop(connections);
    manager.wait_for_success();

    let calls = last.received("CHOOSE_MOVE_CALL");
    let conversation = &calls[0]["conversation_id"];
    let is_same = |call: &Value| call["conversation_id"] == *conversation;
    assert!(calls.iter().all(is_same), "{calls:?}");
    assert_eq!(last.received("GAME_INVITATION").len(), 1);
    assert_eq!(test.count("Recorded"), 1);
}

#[test]
fn every_spelling_of_a_loopback_address_is_recognised() {
    for host in [
        "localhost",
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
    ] {
        let endpoint = Endpoint::parse(&format!("http://{host}:8101/mcp")).unwrap();
        assert!(endpoint.is_loopback(), "{host}");
    }
    for host in ["127.1", "0", "2130706433", "0x7f000001", "0177.0.0.1.1"] {
        let endpoint = Endpoint::parse(&format!("http://{host}:8101/mcp"));
        assert!(endpoint.is_err(), "{host}: {endpoint:?}");
    }
}

#[test]
fn requests_with_an_unknown_token_are_logged_at_a_limited_rate() {
    let test = TestLeague::new("");
    let manager = test.manager("");
    let body =
        json!({"league_id": LEAGUE, "query_type": "GET_STANDINGS", "auth_token": "tok-p01-no"});
    let query = message("LEAGUE_QUERY", "player:P01", body);
    let begun = Instant::now();
    for _ in 0..1000 {
        assert_eq!(send(&manager.url(), &query)["error_code"], "E005");
    }

    let logged = test.logged("message_received").len();
    let most = 100 * (2 + begun.elapsed().as_secs() as usize);
    assert!(
        (1..=most).contains(&logged),
        "{logged} lines, at most {most}"
    );
}

#[test]
fn journal_that_is_not_ours_is_refused_and_left_alone() {
    let test = TestLeague::new("");
    let open = |name: &str| -> io::Result<()> {
        JsonLinesFile::open(&test.folder.join(name), |_| Ok(())).map(drop)
    };
    fs::write(test.folder.join("letter"), "Dear diary").unwrap();
    fs::create_dir(test.folder.join("folder")).unwrap();
    #[cfg(unix)] // on Windows not every user may make a link
    std::os::unix::fs::symlink("letter", test.folder.join("link")).unwrap();

    let names = ["letter", "folder", "link"];
    for name in names.into_iter().take(if cfg!(unix) { 3 } else { 2 }) {
        let error = open(name).unwrap_err().to_string();
        check_contains(&error, "this is not a");
    }
    let letter = fs::read_to_string(test.folder.join("letter")).unwrap();
    assert_eq!(letter, "Dear diary");
}
