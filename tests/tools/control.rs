//! Running a class: what the operator may do to a league, with `kill -9` of the manager between
//! each order. The results and answers of single orders are scripts: `tests/scripts/control`.

use super::support::*;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Returns the match of a request that asks for a choice.
fn asked_to_choose(request: &Value) -> Option<&str> {
    let asked = &request["params"];
    is_parity_call(asked).then(|| text_of(&asked["match_id"]))
}

#[test]
fn orders_survive_a_kill_of_the_manager() {
    let test = TestLeague::new("");
    let run = "serve --stay --lead-sec 0";
    let mut manager = test.manager(run);
    let referee = test.agent(&manager, "REF01", "--stay");
    referee.line("is REF01"); // before the first order kills the manager
    let gates: [Gate; 3] = Default::default();
    // P01 chooses in a round once the gate of the round is open.
    let peers = ["P01", "P02", "P03", "P04", "P05"].map(|id| {
        let doors = gates.clone();
        let peer = FakeAgent::new(move |request| {
            if let ("P01", Some(about)) = (id, asked_to_choose(request)) {
                let round: usize = about[1..2].parse().unwrap();
                doors[round - 1].pass();
            }
            valid_reply(id, "even", request)
        });
        let answer = register_player(&manager.url(), id, &peer.url);
        assert_eq!(answer["player_id"], id);
        peer
    });
    let order = |manager: &mut TestProcess, words: &str, says: &str| {
        let output = test.order(words, &manager.url());
        assert!(output.contains(says), "{words}: {output}");
        manager.restart(&test, run);
    };
    let recorded = |id: &str, times: usize| {
        until(&format!("{id} is recorded {times} times"), || {
            let mut found = test.events("Recorded");
            found.retain(|line| line["match_id"] == id);
            found.pop().filter(|_| found.len() + 1 == times)
        })
    };
    let asked = |id: &str| {
        wait_until(&format!("P01 is asked in {id}"), || {
            let calls = peers[0].received("CHOOSE_PARITY_CALL");
            calls.iter().any(|call| call["match_id"] == id)
        })
    };
    order(&mut manager, "remove P05", "P05 is out of the lobby");
    order(&mut manager, "start", "running");
    asked("R1M1");
    recorded("R1M2", 1);
    order(&mut manager, "pause", "resume lets the league go on");
    order(&mut manager, "pause", "nothing has changed");
    gates[0].open();
    recorded("R1M1", 1);
    order(&mut manager, "remove player:p04", "restore P04 undoes it");
    let begun = test.events("Assigned").len();
    order(&mut manager, "resume", "the league goes on");
    assert_eq!(begun, 1, "a paused league begins nothing");
    let lost = recorded("R2M1", 1);
    let by = (&lost["result"]["winner"], &lost["referee_id"]);
    assert_eq!(by, (&json!("P02"), &json!("league_manager")), "{lost}");
    order(&mut manager, "resume", "nothing has changed");
    order(&mut manager, "restore P04 10.0.0.7", "P04 plays again");
    gates[1].open();
    assert_ne!(recorded("R3M1", 1)["referee_id"], "league_manager");
    // A match in play is lost at once too, and a later report of its referee changes nothing.
    asked("R3M2");
    check_contains(&test.order("remove P01", &manager.url()), "plays no more");
    assert_eq!(recorded("R3M2", 1)["result"]["winner"], "P02");
    gates[2].open();
    manager.line("the league is over");
    let table = test.table();
    assert!(table.iter().all(|row| row["played"] == 3), "{table:?}");
    assert_eq!(table.len(), 4);
    let output = test.order("new-lobby", &manager.url());
    check_contains(&output, "a new lobby opens");
    wait_until("a new lobby is open", || leagues(&test).0 == 2);
}

#[test]
fn restored_player_is_replaced_only_while_it_does_not_answer() {
    let (test, manager) = with_manager("--lead-sec 60");
    let url = manager.url();
    let has_ended = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::clone(&has_ended);
    let first = FakeAgent::new(move |_| match is_gone.load(Ordering::SeqCst) {
        true => FakeReply::Close,
        false => FakeReply::Answer(json!({"status": "ok"})),
    });
    let [referee, second, third, other] = [idle_agent(), idle_agent(), idle_agent(), idle_agent()];
    register_referee(&url, "REF01", &referee.url, 1);
    for (id, peer) in [("P01", &first), ("P02", &second), ("P03", &third)] {
        register_player(&url, id, &peer.url);
    }
    test.order("start", &url);
    let restore = || {
        test.order("remove P01", &url);
        test.order("restore P01", &url);
    };
    let is_replaced = || register_player(&url, "P01", &other.url)["status"] == "ACCEPTED";
    restore();
    assert!(!is_replaced(), "it answers");
    has_ended.store(true, Ordering::SeqCst);
    restore();
    until_within(20, "it is replaced", || is_replaced().then_some(()));
}

/// Returns the ids of the players in the table.
fn ids(test: &TestLeague) -> Vec<String> {
    let table = test.table();
    let ids = table.iter().map(|row| text_of(&row["player_id"]));
    let mut ids: Vec<String> = ids.map(String::from).collect();
    ids.sort();
    ids
}

/// Returns the number of leagues, with those that are set aside, and the last event of the newest.
fn leagues(test: &TestLeague) -> (usize, String) {
    let folders = std::fs::read_dir(test.folder.join("data/leagues")).unwrap();
    let folders = folders.flatten().filter(|entry| entry.path().is_dir());
    let count = folders.count(); // before the journal: a folder that is counted has its own
    let journal = test.journal();
    let last = journal.last().and_then(|line| line["event"].as_str());
    (count, last.unwrap_or_default().into())
}

/// Waits until so many leagues have been played, and the last of them is closed.
fn wait_for_leagues(test: &TestLeague, number: usize) {
    wait_until(&format!("league {number} is over"), || {
        leagues(test) == (number, "Closed".into())
    });
}

fn check_none_has_ended(agents: impl IntoIterator<Item = TestProcess>) {
    for mut agent in agents {
        let end = agent.child.try_wait().unwrap();
        assert_eq!(end, None, "{}", agent.errors());
    }
}

#[test]
fn removed_player_waits_for_the_next_league_and_its_manager_is_silent() {
    let (test, mut manager) = with_manager("serve --stay --lead-sec 0");
    let gate = Gate::default();
    let first = slow_player("P01", "even", &gate, |_| true);
    register_player(&manager.url(), "P01", &first.url);
    let removed = test.agent(&manager, "P02", "--stay");
    let _other = test.agent(&manager, "P03", "--stay");
    let _referee = test.agent(&manager, "REF01", "--stay");
    wait_until("all are here", || test.journal().len() == 5);
    test.order("start", &manager.url());
    test.order("remove P02", &manager.url());
    gate.open();
    wait_for_leagues(&test, 1);
    removed.wait_for_error("; waiting for the next league (Ctrl-C ends)");
    manager.kill();
    check_contains(&manager.output(), "Champion");
    assert!(!manager.output().contains("rejected "));
}

#[test]
fn local_league_with_stay_plays_another_one() {
    let (test, manager) = with_manager("local --stay --fresh");
    for n in 1..=3 {
        wait_for_leagues(&test, n);
        test.check_played(4);
        test.order("new-lobby", &manager.url());
    }
}

#[test]
fn late_player_waits_for_the_next_league() {
    let (test, mut manager) = with_manager("serve --stay --lead-sec 0");
    let gate = Gate::default();
    let first = slow_player("P01", "even", &gate, |_| true);
    register_player(&manager.url(), "P01", &first.url);
    let _second = test.agent(&manager, "P02", "--stay");
    let _referee = test.agent(&manager, "REF01", "--stay");
    wait_until("two are here", || test.journal().len() == 4);
    test.order("start", &manager.url());
    let late = test.agent(&manager, "P03", "--stay");
    late.wait_for_error(
        "the league has started already; waiting for the next league (Ctrl-C ends)",
    );
    gate.open();
    wait_for_leagues(&test, 1);
    test.order("new-lobby", &manager.url());
    late.line("is P03 in league_2025_even_odd");
    wait_until("the others are here", || {
        leagues(&test).0 == 2 && test.journal().len() == 4
    });
    test.order("start", &manager.url());
    wait_for_leagues(&test, 2);
    assert_eq!(ids(&test), ["P02", "P03"]);
    manager.kill();
    let turned_away = manager.output().matches("rejected ").count();
    assert_eq!(
        turned_away, 1,
        "the manager prints nothing about players that wait"
    );
}

#[test]
fn killed_manager_opens_the_ordered_lobby() {
    // A player that missed the end of the old league asks again after two intervals.
    let test = TestLeague::new("system timeouts.ping_interval_sec=1");
    let run = "serve --players 2 --stay --lead-sec 0";
    let mut manager = test.manager(run);
    let referee = test.agent(&manager, "REF01", "--stay");
    referee.line("is REF01");
    // The manager waits for an agent that does not answer LEAGUE_COMPLETED, so it does not close the
    // old league by itself.
    let mute = FakeAgent::new(|request| match request["params"]["message_type"].as_str() {
        Some("LEAGUE_COMPLETED") => FakeReply::Silence,
        _ => FakeReply::Answer(json!({"status": "ok"})),
    });
    register_referee(&manager.url(), "REF02", &mute.url, 1);
    // Each player has an address of its own, as in a class.
    let players = ["P01", "P02"].map(|id| {
        let host = format!("127.0.0.{}", &id[2..]);
        let free = TcpListener::bind((&*host, 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let contact = format!("http://{free}/mcp");
        let place = format!(
            "--stay --host {host} --port {} --contact-endpoint {contact}",
            free.port()
        );
        test.agent(&manager, id, &place)
    });
    mute.first("LEAGUE_COMPLETED");
    let order = json!({"league_id": fake::LEAGUE, "action": "new_lobby"});
    let order = message("LEAGUE_CONTROL", "launcher", order);
    send(&manager.url(), &order);
    let before = leagues(&test);
    manager.kill();
    assert_eq!(
        before,
        (1, "Closed".into()),
        "it is on the disk when it is answered"
    );
    manager.restart(&test, run);
    wait_for_leagues(&test, 2);
    test.check_played(2);
    assert_eq!(ids(&test), ["P01", "P02"], "they keep their ids");
    let pages = std::fs::read_dir(test.folder.join("data/matches")).unwrap();
    assert_eq!(pages.count(), 2, "with its matches");
    check_none_has_ended(players.into_iter().chain([referee]));
}

#[test]
fn plain_manager_obeys_the_operator() {
    let (test, mut manager) = with_manager("--lead-sec 0");
    let order = |words: &str, says: &str| check_contains(&test.order(words, &manager.url()), says);
    let peers = ["P01", "P02", "P03"].map(|id| {
        let peer = FakeAgent::new(move |request| valid_reply(id, "even", request));
        register_player(&manager.url(), id, &peer.url);
        peer
    });
    order("remove p03", "P03 is out of the lobby");
    order("pause", "no further match begins");
    let mut referee = test.agent(&manager, "REF01", "");
    referee.line("is REF01");
    order("start", "paused");
    order("resume", "the league goes on");
    manager.wait_for_success();
    test.check_played(2);
    referee.wait_for_success();
    drop(peers);
}

/// Starts `league class` with one referee on any free port.
pub(super) fn start_class(test: &TestLeague) -> TestProcess {
    let class = until("a port is free", || {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let arguments = format!("class --port {port} --host 127.0.0.1 --referees 1");
        let class = TestProcess::new(&mut test.command("league", &arguments));
        wait_until("the class prints a line or listens", || {
            !class.errors().is_empty() || TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        (!class.errors().contains(" is in use")).then_some(class)
    });
    class.line("typed here:");
    class
}

#[test]
fn players_of_a_class_rehearse_before_the_start() {
    let test = TestLeague::new("system retry_policy.max_retries=1");
    let mut class = start_class(&test);
    class.line("no address was found by which students reach this machine");
    let own = test.agent(&class, "P01", "");
    let broken = FakeAgent::new(|_| fake::status("500 Oh", "<p>Oh"));
    register_player(&class.url(), "P02", &broken.url);
    class.line("P01 Agent Alpha plays");
    class.line("P02 player:P02 would lose: it answered HTTP 500 with a page of text (handle_game_");

    // A player that was corrected registers again, as it does after a restart.
    let is_good = Arc::new(AtomicBool::default());
    let answers = Arc::clone(&is_good);
    let player = FakeAgent::new(move |request| {
        let choice = ["Even", "even"][usize::from(answers.load(Ordering::SeqCst))];
        valid_reply("P03", choice, request)
    });
    let accepted = register_player(&class.url(), "P03", &player.url);
    class.line("P03 player:P03 would lose: it answered wrongly: parity_choice");
    assert_eq!(player.first("GAME_ERROR")["match_id"], "REHEARSAL");
    is_good.store(true, Ordering::SeqCst);
    let mut again = application("player:P03", &player.url);
    again["auth_token"] = accepted["auth_token"].clone();
    let again = message("LEAGUE_REGISTER_REQUEST", "player:P03", again);
    assert_eq!(send(&class.url(), &again)["player_id"], "P03");
    class.line("P03 player:P03 plays");

    // The page and the status say the same. The page is made once a second at most.
    let verdicts = || -> Vec<Value> {
        let (_, document) = class.page("/league.json");
        let document: Value = json_of(&document);
        let agents = list_of(&document["agents"]).iter();
        agents.map(|agent| agent["rehearsal"].clone()).collect()
    };
    wait_until("the page has all verdicts", || {
        verdicts().get(3).is_some_and(|verdict| verdict == "plays")
    });
    let verdicts = verdicts();
    let expected = [&Value::Null, &json!("plays"), &verdicts[2], &json!("plays")];
    assert_eq!(verdicts.iter().collect::<Vec<_>>(), expected);
    assert!(text_of(&verdicts[2]).starts_with("answered HTTP 500"));
    class.write(b"status\n");
    class.line("P01 Agent Alpha: plays");

    // No rehearsal is in a history, and none ends with GAME_OVER.
    assert!(player.received("GAME_OVER").is_empty());
    let state = call_tool(&own.url(), "get_player_state", json!({}));
    assert_eq!(state["structuredContent"]["matches"], json!([]));
}

#[test]
fn typed_commands_are_answered_in_a_sentence_and_any_bytes_end_nothing() {
    let test = TestLeague::new("");
    let mut class = start_class(&test);
    class.write(b"remove Zo\xeb\nstatus\n");
    class.line("no player here is called Zo\u{fffd}");
    class.line("0 players");
    for port in [1, 2] {
        register_player(&class.url(), "new", &format!("http://localhost:{port}/mcp"));
    }
    class.line("is here; P01 has the same name");
    for (typed, answer) in [
        ("strat", "unknown command: strat; did you mean start?"),
        ("remove", "whom? for example: remove P01"),
        ("remove Nobody", "no player here is called Nobody"),
        (
            "pause",
            "no further match begins; resume lets the league go on",
        ),
    ] {
        class.write(format!("{typed}\n").as_bytes());
        let line = class.line(answer);
        assert_eq!(line.trim(), answer);
    }
}

#[test]
fn id_is_an_id_before_it_is_a_name() {
    let test = TestLeague::new("");
    let manager = test.serve("");
    register_player(&manager.url(), "Ada", "http://localhost:1/mcp");
    register_player(&manager.url(), "Eve", "http://localhost:2/mcp");
    register_player(&manager.url(), "P02", "http://localhost:3/mcp");
    let removed = test.order("remove P02", &manager.url());
    check_contains(&removed, "P02 is out of the lobby");

    // It stays out until it is restored.
    let answer = register_player(&manager.url(), "Eve", "http://localhost:2/mcp");
    check_contains(text_of(&answer["reason"]), "Removed by the operator");
    check_contains(&test.order("restore P02", &manager.url()), "P02");
    let answer = register_player(&manager.url(), "Eve", "http://localhost:2/mcp");
    assert_eq!(answer["player_id"], "P02", "{answer}");
}

#[test]
fn player_of_a_local_league_gives_no_orders() {
    let (test, manager) = with_manager("local --lead-sec 60 --stay");
    test.starts();
    let order = json!({"league_id": fake::LEAGUE, "action": "remove", "player_id": "P02"});
    let order = message("LEAGUE_CONTROL", "launcher", order);
    let refused = send(&manager.url(), &order);
    assert_eq!(refused["error_code"], "E011", "{refused}");
    let removed = test.order("remove P02", &manager.url()); // with the token of the data folder
    check_contains(&removed, "P02");
}

#[test]
fn report_is_made_for_one_request_at_a_time() {
    let test = TestLeague::new("");
    let manager = test.serve("");
    manager.line("listening on ");
    let url = manager.url().replace("/mcp", "/report.html");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let ask = || scope.spawn(|| http("GET", &url, "", b"").0);
        let threads: Vec<_> = (0..20).map(|_| ask()).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(statuses.contains(&200), "{statuses:?}");
    assert!(
        statuses.iter().all(|status| [200, 503].contains(status)),
        "{statuses:?}"
    );
}

#[test]
fn member_that_registers_again_and_again_causes_few_lines() {
    let test = TestLeague::new("system retry_policy.max_retries=1");
    let class = start_class(&test);
    let peer = FakeAgent::new(|request| valid_reply("P01", "even", request));
    let token = register_player(&class.url(), "Ada", &peer.url)["auth_token"].clone();
    class.line("is here");
    class.line("plays");
    let begun = Instant::now();
    for n in 0..25 {
        let name = format!("Ada {}", n % 2);
        let mut again = message(
            "LEAGUE_REGISTER_REQUEST",
            "player:P01",
            application(&name, &peer.url),
        );
        again["auth_token"] = token.clone();
        send(&class.url(), &again);
    }
    let printed = class.output_so_far();
    let most = 20 + begun.elapsed().as_secs() as usize;
    assert!(
        printed.matches("(P01) is here").count() <= 3,
        "a name is printed once: {printed}"
    );
    assert!(printed.matches("plays").count() <= most, "{printed}");
}

#[test]
fn player_that_is_removed_in_the_lobby_is_told() {
    // A removed player is not called any more, and so registers again.
    let test = TestLeague::new("system timeouts.ping_interval_sec=0.5");
    let manager = test.manager("serve");
    let mut removed = vec![("P01", test.agent(&manager, "P01", ""))];
    if has_python() {
        let bin = concat!(env!("CARGO_MANIFEST_DIR"), "/bin");
        for name in ["player.py", "league_player.py"] {
            let text = fs::read_to_string(format!("{bin}/{name}")).unwrap();
            let text = text.replace("MAX_SILENCE = 120 ", "MAX_SILENCE = 1 ");
            fs::write(test.folder.join(name), text).unwrap();
        }
        let script = test.folder.join("player.py");
        let player = test.python(script, &manager.url(), "--player-id P02");
        player.line("is P02");
        removed.push(("P02", player));
    }
    for (id, mut player) in removed {
        wait_until("it is registered", || !test.table().is_empty());
        test.order(&format!("remove {id}"), &manager.url());
        player.wait_for_error("Removed by the operator");
        assert_eq!(player.wait().code(), Some(1), "{id}: {}", player.errors());
    }
}
