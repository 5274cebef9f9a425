//! A hostile class: a member that registers again and again, floods that are meant to make a
//! program restart at the wrong moment, and a foreign file in place of the journal. None of them
//! stops a league or wins a match.

use super::support::fake::{self, LEAGUE};
use super::support::*;
use league::manager::registration::with_address;
use league::program::storage::{self, Access, JsonLinesFile};
use league::protocol::AgentKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Instant;
use std::{fs, thread};

/// Opens more connections than a limited program has descriptors for.
fn flood(url: &str) -> Vec<TcpStream> {
    let connections = (0..60).map(|_| connect(url, TIME_LIMIT).ok());
    connections.flatten().collect()
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
fn flooded_manager_of_a_closed_league_comes_back_as_it_was() {
    let test = TestLeague::new("");
    let options = "serve --players 2 --stay";
    let manager = test.start_limited("ulimit -n 41", "league_manager", options);
    let _agents = test.agents(&manager, "REF01 P01 P02");
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
    assert_eq!(printed.matches("\nChampion").count(), 1, "{printed}");
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
fn host_name_becomes_the_address_to_which_it_leads() {
    let at = |endpoint: &str| offline::meta(AgentKind::Player, endpoint);
    let elsewhere = "10.0.0.7".parse().unwrap();
    // The name of this machine, where it leads to an address.
    let name = fs::read_to_string("/etc/hostname").unwrap_or_default();
    let found = (name.trim(), 8101).to_socket_addrs().into_iter().flatten();
    for own in found.filter(SocketAddr::is_ipv4) {
        let by_name = at(&format!("http://{}:8101/mcp?a", name.trim()));
        let found = with_address(&by_name, own.ip()).contact_endpoint;
        assert_eq!(found, format!("http://{}:8101/mcp?a", own.ip()));
        assert_eq!(with_address(&by_name, elsewhere), by_name);
    }
    let address = at("http://10.0.0.8:8101/mcp");
    assert_eq!(with_address(&address, elsewhere), address);
}

#[test]
fn answer_of_an_endpoint_is_not_public() {
    let test = TestLeague::new("");
    let manager = test.serve("");
    let service = FakeAgent::new(|_| fake::status("418 Teapot", "a secret of this machine"));
    register_player(&manager.url(), "P01", &service.url);
    wait_until("the page of this machine says what it answers", || {
        manager.page("/league.json").1.contains("a secret")
    });
    let report = manager.page("/report.html").1;
    check_contains(&report, "answered HTTP 418");
    assert!(!report.contains("a secret"), "{report}");
}

#[test]
fn wrong_clocks_and_queries_of_a_player_are_logged_at_a_limited_rate() {
    let test = TestLeague::new("");
    let manager = test.manager("");
    let token = token_of(&register_player(
        &manager.url(),
        "P01",
        "http://127.0.0.1:1/mcp",
    ));
    let body = json!({"league_id": LEAGUE, "query_type": "GET_STANDINGS"});
    let mut known = message("LEAGUE_QUERY", "player:P01", body);
    known["timestamp"] = json!("2001-01-01T00:00:00Z");
    let unknown = known.clone();
    known["auth_token"] = json!(token);
    let begun = Instant::now();
    for query in [&known, &unknown] {
        for _ in 0..500 {
            send(&manager.url(), query);
        }
    }
    let most = 100 * (2 + begun.elapsed().as_secs() as usize);
    for event in ["message_received", "message_sent", "clock_skew"] {
        let logged = test.logged(event).len();
        assert!(
            (1..=most).contains(&logged),
            "{logged} {event}, at most {most}"
        );
    }
}

#[test]
fn key_of_a_message_shows_no_token_in_a_log() {
    let test = TestLeague::new("");
    let manager = test.manager("");
    let token = format!("tok-p01-{}", "0123456789abcdef".repeat(2));
    let mut query = message("LEAGUE_QUERY", "player:P01", json!({"league_id": LEAGUE}));
    query[token.as_str()] = json!(1);
    send(&manager.url(), &query);
    let line = test.logged("message_received").pop().unwrap().to_string();
    check_contains(&line, "tok-p01-***");
    assert!(!line.contains(&token), "{line}");
}

#[test]
fn strangers_and_members_cause_few_lines_on_a_terminal() {
    let (test, fake_manager) = (TestLeague::new(""), fake::manager());
    let arguments = format!("--manager {} --player-id P01", fake_manager.url);
    let player = test.start("player", &arguments);
    player.line("is P01");
    let manager = test.manager("");
    let begun = Instant::now();
    let token = token_of(&register_player(
        &manager.url(),
        "Ada",
        "http://127.0.0.1:1/mcp",
    ));
    for n in 0..100 {
        // GAME_ERROR in matches that no player has joined, and a call with another reason each time.
        for verb in ["complains", "asks"] {
            let line = format!("strange {verb} R{n}M1");
            assert_eq!(
                send(&player.url(), &fake::message_of_line(&line))["error_code"],
                "E015"
            );
        }
    }
    for n in 0..3 {
        let mut again = message("LEAGUE_REGISTER_REQUEST", "player:P01", {
            application(&format!("Ada {n}"), "http://127.0.0.1:1/mcp")
        });
        again["auth_token"] = json!(token);
        assert_eq!(send(&manager.url(), &again)["status"], "ACCEPTED");
    }
    let printed = player.errors().lines().count();
    let most = 21 + begun.elapsed().as_secs() as usize;
    assert!(
        (1..=most).contains(&printed),
        "{printed} lines, at most {most}"
    );
    assert!(!player.errors().contains("E004"), "{}", player.errors());
}

#[test]
#[cfg(unix)]
fn temporary_file_of_another_user_is_not_used() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let test = TestLeague::new("");
    let in_folder = |name: &str| test.folder.join(name);
    fs::write(in_folder("letter"), "Dear diary").unwrap();
    symlink("letter", in_folder("card.new")).unwrap();
    storage::replace(&in_folder("card.json"), Access::Owner, "ours").unwrap();
    assert_eq!(
        fs::read_to_string(in_folder("letter")).unwrap(),
        "Dear diary"
    );

    fs::write(in_folder("token.new"), "").unwrap();
    fs::set_permissions(in_folder("token.new"), PermissionsExt::from_mode(0o666)).unwrap();
    storage::replace(&in_folder("token.json"), Access::Owner, "ours").unwrap();
    let mode = fs::metadata(in_folder("token.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn journal_that_is_not_ours_is_refused_or_kept() {
    let test = TestLeague::new("");
    let open = |name: &str| -> std::io::Result<()> {
        JsonLinesFile::open(&test.folder.join(name), |_| Ok(())).map(drop)
    };
    fs::write(test.folder.join("letter"), "Dear diary").unwrap();
    fs::create_dir(test.folder.join("folder")).unwrap();
    #[cfg(unix)] // on Windows not every user may make a link
    std::os::unix::fs::symlink("letter", test.folder.join("link")).unwrap();

    let names = ["folder", "link"];
    for name in names.into_iter().take(if cfg!(unix) { 2 } else { 1 }) {
        let error = open(name).unwrap_err().to_string();
        check_contains(&error, "this is not a");
    }
    open("letter").unwrap();
    let letter = fs::read_to_string(test.folder.join("letter~cut")).unwrap();
    assert_eq!(letter, "Dear diary\n");
}
