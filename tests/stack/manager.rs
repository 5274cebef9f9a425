//! The manager as those who use it meet it: who is let in, what the screen says of each mistake,
//! whom the league waits for. Referees and players are real where they do their work, and scripted
//! where they do not.

use super::support::fake::LEAGUE;
use super::support::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The player that answers the end of each round wrongly too, which costs nothing.
const RUDE: &str = "Loud";

/// Each kind of mistake: its player, what it does wrongly when it is sent what, and how everybody
/// is told.
const MISTAKES: &str = r#"
    Okay | GAME_INVITATION | body {"jsonrpc": "2.0", "result": {"status": "ok", "token": "tok-p02-0123456789abcdef0123"}, "id": 1} | answered {"status":"ok","token":"tok-p02-***"} to handle_game_invitation, expected GAME_JOIN_ACK
    Naming | CHOOSE_PARITY_CALL | but parity_choice>choice | answered choose_parity wrongly, at the last of 3 attempts: parity_choice: has "choice", expected "parity_choice"
    Silent | CHOOSE_PARITY_CALL | silence | gave no answer to choose_parity within 2 s, at the last of 3 attempts
    Gone | | | could not be reached (connection refused) for handle_game_invitation, at the last of 3 attempts
    Loud | CHOOSE_PARITY_CALL | but parity_choice="EVEN" | answered choose_parity wrongly, at the last of 3 attempts: parity_choice: got "EVEN", must be "even" or "odd"
    Broken | CHOOSE_PARITY_CALL | body {"jsonrpc": "2.0", "error": {"code": -32603, "message": "name 'rnadom' is not defined\u001b[2J"}, "id": 1} | answered JSON-RPC error -32603 "name 'rnadom' is not defined\u{1b}[2J" to choose_parity, at the last of 3 attempts, expected CHOOSE_PARITY_RESPONSE
    Long | GAME_INVITATION | but match_id="LONG" | answered handle_game_invitation wrongly: match_id: got "xxxxxxxxxx
    Longer | GAME_INVITATION | but player_id="ESCAPES" | answered handle_game_invitation wrongly: player_id: got "\u{1b}\u{1b}\u{1b}"#;

/// What a faulty player does instead of giving a good answer.
fn wrongly(act: &str, good: Value) -> FakeReply {
    let act = act.replace("LONG", &"x".repeat(9_000));
    let act = act.replace("ESCAPES", &r"\u001b".repeat(1_500)); // six bytes each
    match act.split_once(' ') {
        Some(("but", edits)) => FakeReply::Answer(golden::edited(good, edits)),
        Some((_, body)) => FakeReply::Body(body.into()),
        None => FakeReply::Silence,
    }
}

fn is_against_ada(request: &Value) -> bool {
    let asked = &request["params"];
    let places = [&asked["opponent_id"], &asked["context"]["opponent_id"]];
    places.iter().any(|opponent| *opponent == "P01")
}

#[test]
fn reason_of_a_technical_loss_is_printed_by_all_programs() {
    let test = TestLeague::new("system timeouts.move_timeout_sec=2");
    let mistakes: Vec<[&str; 4]> = rows(MISTAKES).collect();
    let players = mistakes.len() + 1;
    let mut manager = test.serve(&format!("--players {players}"));
    let mut referee = test.agent(&manager, "REF01", "--max-concurrent-matches 10");
    let mut ada = test.agent(&manager, "P01", "--display-name Ada");
    ada.line("is P01");
    let faulty = |(n, [name, when, act, _]): (u32, [&'static str; 4])| {
        let id = format!("P{n:02}");
        let own = id.clone();
        let peer = FakeAgent::new(move |request| {
            let asked = &request["params"]["message_type"];
            match valid_reply(&own, "odd", request) {
                FakeReply::Answer(good) if asked == when && is_against_ada(request) => {
                    wrongly(act, good)
                }
                _ if asked == "ROUND_COMPLETED" && name == RUDE => FakeReply::Body("no".into()),
                good => good,
            }
        });
        let endpoint = match when.is_empty() {
            true => "http://127.0.0.1:1/mcp",
            false => &peer.url,
        };
        let body = application(name, endpoint);
        let request = message("LEAGUE_REGISTER_REQUEST", &format!("player:{id}"), body);
        assert_eq!(send(&manager.url(), &request)["player_id"], *id);
        (id, peer)
    };
    let peers: Vec<(String, FakeAgent)> = (2..).zip(mistakes.clone()).map(faulty).collect();
    manager.wait_for_success();
    referee.wait_for_success();
    ada.wait_for_success();
    let [screen, whistle, own] = [&manager, &referee, &ada].map(TestProcess::output);
    // Nobody else is punished: all are faulty against Ada alone, the one that is gone against
    // everybody.
    test.check_played(players);
    let recorded = test.events("Recorded");
    let technical = recorded
        .iter()
        .map(|line| &line["result"]["details"]["status"]);
    let technical = technical.filter(|status| *status == "TECHNICAL_LOSS");
    assert_eq!(technical.count(), mistakes.len() - 1 + players - 1);
    let mut failed = test.logs();
    failed.retain(|line| {
        line["event_type"] == "delivery_failed" && line["component"] == "league_manager"
    });
    let whom = |line: &Value| format!("{} {}", line["peer"], line["error_code"]);
    let in_vain: BTreeSet<String> = failed.iter().map(whom).collect();
    // Notices get to all but the one that is gone and the one that is rude.
    let expected = [r#""P05" "E009""#, r#""P06" "E003""#];
    assert!(in_vain.iter().eq(expected), "{in_vain:?}");
    for ((id, peer), [name, when, _, why]) in peers.iter().zip(mistakes) {
        let is_theirs = |line: &&Value| {
            let score = &line["result"]["score"];
            !score["P01"].is_null() && !score[id].is_null()
        };
        let match_id = text_of(&recorded.iter().find(is_theirs).unwrap()["match_id"]);
        let line = |text: &str| {
            let mut lines = text.lines().map(str::trim_start);
            let line = lines.find(|line| line.starts_with(match_id));
            line.expect(text).to_string()
        };
        let on_screen = line(&screen);
        let lost = format!(" won, {name} lost technically: {id} {why}");
        check_contains(&on_screen, &lost);
        let page = test.data(&format!("matches/{LEAGUE}/{match_id}.json"));
        let mut output = vec![
            line(&whistle),
            line(&own),
            text_of(&page["result"]["details"]["reason"]).into(),
        ];
        let received = |message_type: &str| {
            let mut received = peer.received(message_type);
            received.retain(|item| item["match_id"] == match_id);
            received
        };
        if !when.is_empty() {
            output.push(text_of(&received("GAME_OVER")[0]["game_result"]["reason"]).into());
            let times = [1, 3][usize::from(why.contains("3 attempts"))];
            assert_eq!(received("GAME_ERROR").len(), times, "{name}");
        }
        let told = format!("{id} {why}");
        for output in output {
            let words = output.trim_start_matches(&format!("{match_id}: "));
            assert!(words.starts_with(&told), "{output}, expected {told}");
        }
    }
    for text in [screen, whistle, own] {
        check_no_token(&text);
        let is_legible = |line: &str| line.len() < 900 && !line.contains('\u{1b}');
        assert!(text.lines().all(is_legible), "{text}");
    }
}

/// With which body an agent asks to be let in, and what the screen says of it.
const TURNED_AWAY: &str = r#"
    {"player_meta": {"display_name": "\u001b[2JEve\u202e", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": "ftp://localhost"}} | rejected �[2JEve� at ftp://localhost, from 127.0.0.1: Contact endpoint unreachable: contact_endpoint must be
    {"player_meta": {"display_name": "Longa", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": "http://localhost:9/LONG"}} | rejected Longa at http://localhost:9/yyy
    {"player_meta": {"display_name": "Nora", "version": null, "game_types": ["even_odd"], "contact_endpoint": "http://localhost:9/mcp"}} | rejected Nora at http://localhost:9/mcp, from 127.0.0.1: E003 player_meta.version: missing
    {} | rejected unknown at unknown, from 127.0.0.1: E003 player_meta: missing"#;

#[test]
fn rejected_agent_is_printed_once() {
    let (test, mut manager) = with_manager("--players 2");
    let url = manager.url();
    let apply = |body: &Value| {
        let body = body.clone();
        send(
            &url,
            &message("LEAGUE_REGISTER_REQUEST", "player:new", body),
        )
    };
    let read = |[body, line]: [&'static str; 2]| {
        let body = body.replace("LONG", &"y".repeat(9_000));
        (json_of(&body), line)
    };
    let rows: Vec<(Value, &str)> = rows(TURNED_AWAY).map(read).collect();
    for (body, line) in &rows {
        (0..3).for_each(|_| drop(apply(body)));
        assert!(manager.line(line).chars().count() < 600);
    }
    let without_type = json!({"player_meta": {"display_name": "Nameless"}});
    call(&url, "register_player", without_type);
    manager.line("rejected Nameless at unknown, from 127.0.0.1: E003 ");
    let flood = |n| register_player(&url, &format!("flood{n}"), "nowhere");
    (0..50).for_each(|n| drop(flood(n)));
    assert_eq!(flood(50)["status"], "REJECTED");
    manager.kill();
    let output = manager.output();
    for (_, line) in &rows {
        assert_eq!(output.matches(line).count(), 1, "{line}");
    }
    let is_short = output.lines().count() < 30;
    assert!(is_short && !output.contains('\u{1b}'), "{output}");
    assert_eq!(test.journal().len(), 1, "the head alone");
}

#[test]
fn awaited_referee_is_named_after_two_seconds() {
    let test = TestLeague::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=5; system timeouts.generic_response_timeout_sec=1.5; \
         system retry_policy.max_retries=1; league scheduling.cycles=2",
    );
    let mut manager = test.serve("--players 2 --referees 2");
    let hung = FakeAgent::new(|request| match request["params"]["message_type"].as_str() {
        Some("ROUND_ANNOUNCEMENT") => FakeReply::Silence,
        _ => FakeReply::Answer(json!({"status": "ok"})),
    });
    register_referee(&manager.url(), "REF01", &hung.url, 2);
    let _real = test.agent(&manager, "REF02", "");
    let _players = ["P01", "P02"].map(|id| test.agent(&manager, id, ""));
    let waiting = manager
        .line("waiting for REF01 to report R1M1 of Agent Alpha (P01) and Agent Beta (P02) (until ");
    let (_, health) = manager.page("/health");
    let start = message("START_LEAGUE", "launcher", json!({"league_id": LEAGUE}));
    let start = send(&manager.url(), &start).to_string();
    for output in [health, start] {
        check_contains(&output, &waiting);
    }
    wait_until("the word `status` says it too", || {
        let output = test.order("status", &manager.url());
        output.contains(&waiting)
    });
    let until = waiting
        .split_once("(until ")
        .unwrap()
        .1
        .trim_end_matches(')');
    let late = format!("REF01 has not reported all its matches by {until}");
    manager.line(&format!("{late}; its matches are announced again"));
    manager.wait_for_success();
    let given = test.events("Assigned");
    let given = given.iter().map(|line| {
        let first = &line["assignments"][0];
        [&first["match_id"], &first["referee_id"]]
    });
    let expected = [["R1M1", "REF01"], ["R1M1", "REF02"], ["R2M1", "REF02"]];
    assert_eq!(
        given.collect::<Vec<_>>(),
        expected,
        "what was learnt holds in the next round"
    );
}

#[test]
fn time_limit_of_a_referee_begins_again_in_every_round() {
    // The lead alone is longer than a match may take, and nobody hears of round 2 before it has
    // passed.
    let test = TestLeague::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=2; system timeouts.generic_response_timeout_sec=1; \
         system retry_policy.max_retries=1; league scheduling.cycles=2",
    );
    let mut manager = test.manager("--players 2 --lead-sec 4.5");
    let _referee = test.agent(&manager, "REF01", "");
    let _players = ["P01", "P02"].map(|id| test.agent(&manager, id, ""));
    manager.wait_for_success();
    let output = manager.output();
    assert!(!output.contains("has not reported"), "{output}");
}

#[test]
fn agent_that_starts_late_is_not_reported_as_unreachable() {
    // Nobody is asked again for its own sake.
    let test =
        TestLeague::new("system retry_policy.base_delay_sec=30; system retry_policy.max_retries=1");
    let mut manager = test.manager("--players 3");
    let (url, up) = (manager.url(), Arc::new(AtomicBool::new(false)));
    let is_up = Arc::clone(&up);
    let slow = FakeAgent::new(move |request| match is_up.load(Ordering::SeqCst) {
        true => valid_reply("P01", "even", request),
        false => FakeReply::Close,
    });
    register_player(&url, "P01", &slow.url);
    until("P01 is called in vain", || {
        slow.requests.lock().unwrap().first().map(drop)
    });
    register_player(&url, "P02", "http://127.0.0.1:1/mcp");
    let third = FakeAgent::new(|request| valid_reply("P03", "odd", request));
    let _referee = test.agent(&manager, "REF01", "");
    up.store(true, Ordering::SeqCst);
    register_player(&url, "P03", &third.url);
    manager.wait_for_success();
    let output = manager.output();
    let silent =
        "P02 has registered, but could not be reached (connection refused); until it answers";
    check_contains(&output, silent);
    assert!(!output.contains("P01 has registered, but"), "{output}");
}

#[test]
fn remote_orders_and_referees_need_the_operator_token() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    let contact = format!("http://{own}:8000/mcp");
    let manager = test.manager(&format!("--host 0.0.0.0 --contact-endpoint {contact}"));
    manager.line(&format!("others reach us at {contact}"));
    let url = format!("http://{own}:{}/mcp", manager.port());
    let operator = std::fs::read_to_string(test.league_file("operator.token")).unwrap();
    let rows = [
        (None, "E011", "REJECTED"),
        (Some("tok-operator-0"), "E012", "REJECTED"),
        (Some(operator.trim()), "waiting", "ACCEPTED"),
    ];
    for (token, code, status) in rows {
        let with_token = |message_type: &str, mut body: Value| {
            body["auth_token"] = json!(token);
            body["league_id"] = json!(LEAGUE);
            send(&url, &message(message_type, "launcher", body))
        };
        // The operator is refused the last three for other reasons: there is nobody, no match and no
        // league that is over.
        let actions = ["pause", "resume", "remove", "restore", "new_lobby"];
        let actions = &actions[..if code == "waiting" { 2 } else { 5 }];
        let orders = actions
            .iter()
            .map(|action| ("LEAGUE_CONTROL", json!({"action": action})));
        for (message_type, order) in orders.chain([("START_LEAGUE", json!({}))]) {
            let answer = with_token(message_type, order);
            let came = answer["error_code"].as_str().or(answer["status"].as_str());
            assert_eq!(came, Some(code), "{answer}");
        }
        for (host, status) in [(&*own.to_string(), status), ("127.0.0.1", "REJECTED")] {
            let meta = json!({"referee_meta": {
                "display_name": "Far", "version": "1.0.0", "game_types": ["even_odd"], "max_concurrent_matches": 1,
                "contact_endpoint": format!("http://{host}:1/mcp"),
            }});
            let answer = with_token("REFEREE_REGISTER_REQUEST", meta);
            assert_eq!(answer["status"], status, "{token:?}: {answer}");
        }
    }
}

#[test]
fn repeated_registrations_are_answered_with_one_queue_a_second() {
    let test = TestLeague::new("system retry_policy.base_delay_sec=30");
    let manager = test.manager("");
    let peer = idle_agent();
    let mut request = message(
        "LEAGUE_REGISTER_REQUEST",
        "player:P01",
        application("Ada", &peer.url),
    );
    let begun = Instant::now();
    request["auth_token"] = send(&manager.url(), &request)["auth_token"].clone();
    let called = || peer.requests.lock().unwrap().len() as u64;
    for _ in 0..100 {
        assert_eq!(send(&manager.url(), &request)["status"], "ACCEPTED");
    }
    wait_until("it is called once more", || called() > 1);
    let (came, most) = (called(), 2 + begun.elapsed().as_secs());
    assert!(came <= most, "{came} calls, at most {most}");
    assert_eq!(
        test.count("Registered"),
        1,
        "and nothing more is written down"
    );
}

/// What is answered to everything, and what the word `status` says of it in the lobby.
const IN_THE_LOBBY: &str = r#"
    200 OK | {"jsonrpc": "2.0", "error": {"code": -32601, "message": "no"}, "id": 1} | answers
    500 Oh | {"detail": "no"} | answered HTTP 500 "{\"detail\": \"no\"}"; try make check
    200 OK | <h1>It works!</h1> | answered with a page of text that is not JSON; try make check"#;

#[test]
fn status_in_the_lobby_names_agents_that_do_not_answer() {
    let (test, manager) = with_manager("serve --players 9");
    let url = manager.url();
    let agent = |[status, body, _]: [&'static str; 3]| {
        let peer = FakeAgent::new(move |_| fake::status(status, body));
        register_player(&url, "new", &peer.url);
        peer
    };
    let _peers: Vec<FakeAgent> = rows(IN_THE_LOBBY).map(agent).collect();
    for [_, _, says] in rows(IN_THE_LOBBY) {
        wait_until(says, || {
            let output = test.order("status", &url);
            output.contains(&format!(": {says}\n"))
        });
    }
}

#[test]
fn returned_or_late_referee_gets_its_matches_again() {
    let test = TestLeague::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=0.5; system timeouts.generic_response_timeout_sec=1; \
         system retry_policy.base_delay_sec=0.2; system retry_policy.max_retries=1",
    );
    let manager = test.manager("--players 2");
    let is_back = Arc::new(OnceLock::new());
    let door = Arc::clone(&is_back);
    let referee = FakeAgent::new(move |request| match request["method"].as_str() {
        _ if door.get().is_none() => FakeReply::Close,
        Some("ping") => fake::status("404 Oh", ""),
        _ => FakeReply::Answer(json!({"status": "ok"})),
    });
    register_referee(&manager.url(), "REF01", &referee.url, 2);
    let players = [idle_agent(), idle_agent()];
    for player in &players {
        register_player(&manager.url(), "new", &player.url);
    }
    manager.line("no referee is left");
    let told = || referee.received("ROUND_ANNOUNCEMENT").len();
    let before = told();
    is_back.set(()).unwrap();
    wait_until(
        "it is told when it is back, and after each time limit",
        || told() >= before + 5,
    );
}

#[test]
fn end_of_the_league_is_told_until_it_is_received() {
    const FAILURES: usize = 4; // one more than the retry policy has attempts
    let test = TestLeague::new("system retry_policy.base_delay_sec=0.05");
    let mut manager = test.manager("--players 3");
    let _referee = test.agent(&manager, "REF01", "");
    let ends = AtomicUsize::new(0);
    let failing = FakeAgent::new(
        move |request| match request["params"]["message_type"].as_str() {
            Some("LEAGUE_STANDINGS_UPDATE") => FakeReply::Close,
            Some("LEAGUE_COMPLETED") if ends.fetch_add(1, Ordering::SeqCst) < FAILURES => {
                FakeReply::Close
            }
            _ => valid_reply("P01", "even", request),
        },
    );
    let good = FakeAgent::new(|request| valid_reply("P02", "odd", request));
    register_player(&manager.url(), "P01", &failing.url);
    register_player(&manager.url(), "P02", &good.url);
    register_player(&manager.url(), "P03", "http://127.0.0.1:1/mcp");
    let started = Instant::now();
    manager.wait_for_success();
    let limit = Duration::from_secs(40); // a player that is there has 46 s, and P03 is not
    assert!(started.elapsed() < limit, "it waits for P03");

    // The tables that P01 does not take cost it nothing else.
    let rounds = failing.received("ROUND_COMPLETED");
    assert_eq!(rounds.last().unwrap()["round_id"], 3);
    let ends = [&failing, &good].map(|player| player.received("LEAGUE_COMPLETED").len());
    assert_eq!(ends, [FAILURES + 1, 1]);
}
