//! The manager as a class meets it: the registrations that it accepts, the lines on its screen about
//! each mistake, and the agents that the league waits for. Referees and players are real programs
//! where they do their work, and fake agents where they fail.

use super::support::fake::LEAGUE;
use super::support::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use time::macros::format_description;
use time::{OffsetDateTime, Time, UtcOffset};

/// The player that also answers the end of each round wrongly, which costs no match.
const RUDE: &str = "Loud";

/// Each kind of mistake: the player, the message that it answers wrongly, its reply, and the reason
/// in all outputs.
const MISTAKES: &str = r#"
    Okay | GAME_INVITATION | body {"jsonrpc": "2.0", "result": {"status": "ok", "token": "tok-p02-0123456789abcdef0123"}, "id": 1} | answered {"status":"ok","token":"tok-p02-***"}: 
    Naming | CHOOSE_PARITY_CALL | but parity_choice>choice | answered wrongly: parity_choice: has "choice", expected "parity_choice" (choose_parity, attempt 3)
    Silent | CHOOSE_PARITY_CALL | silence | gave no answer within 2 s (choose_parity, attempt 3)
    Gone | | | could not be reached: connection refused (handle_game_invitation, attempt 3)
    Loud | CHOOSE_PARITY_CALL | but parity_choice="EVEN" | answered wrongly: parity_choice: got "EVEN", must be "even" or "odd" (choose_parity, attempt 3)
    Broken | CHOOSE_PARITY_CALL | body {"jsonrpc": "2.0", "error": {"code": -32603, "message": "name 'rnadom' is not defined\u001b[2J"}, "id": 1} | answered JSON-RPC error -32603 "name 'rnadom' is not defined\u{1b}[2J" (choose_parity, attempt 3)
    Long | GAME_INVITATION | but match_id="LONG" | answered wrongly: match_id: got "xxxxxxxxxx
    Longer | GAME_INVITATION | but player_id="ESCAPES" | answered wrongly: player_id: got "\u{1b}\u{1b}\u{1b}"#;

/// Returns the wrong reply of a faulty player.
fn wrong_reply(act: &str, good: Value) -> FakeReply {
    let act = act.replace("LONG", &"x".repeat(9_000));
    let act = act.replace("ESCAPES", &r"\u001b".repeat(1_500)); // six bytes each
    match act.split_once(' ') {
        Some(("but", edits)) => FakeReply::Answer(golden::edited(good, edits)),
        Some((_, body)) => FakeReply::Body(body.into()),
        None => FakeReply::Silence,
    }
}

/// Returns true if a message is about a match against P01, which is called Ada.
fn is_against_ada(asked: &Value) -> bool {
    let opponents = [&asked["opponent_id"], &asked["context"]["opponent_id"]];
    opponents.iter().any(|opponent| *opponent == "P01")
}

/// Starts and registers a player that makes one mistake, and only against Ada.
fn faulty_player(
    manager: &str,
    n: usize,
    [name, when, act, _]: [&'static str; 4],
) -> (String, FakeAgent) {
    let id = format!("P{n:02}");
    let own = id.clone();
    let player = FakeAgent::new(move |request| {
        let asked = &request["params"];
        match valid_reply(&own, "odd", request) {
            FakeReply::Answer(good) if asked["message_type"] == when && is_against_ada(asked) => {
                wrong_reply(act, good)
            }
            _ if asked["message_type"] == "ROUND_COMPLETED" && name == RUDE => {
                FakeReply::Body("no".into())
            }
            good => good,
        }
    });
    let endpoint = match when.is_empty() {
        true => "http://127.0.0.1:1/mcp",
        false => &player.url,
    };
    let mut request = player_registration(&id, endpoint, None);
    set(&mut request, "/player_meta/display_name", json!(name));
    assert_eq!(send(manager, &request)["player_id"], *id);
    (id, player)
}

#[test]
fn reason_of_a_technical_loss_is_printed_by_all_programs() {
    let test = TestLeague::new("system timeouts.move_timeout_sec=2");
    let mistakes: Vec<[&str; 4]> = rows(MISTAKES).collect();
    let count = mistakes.len() + 1;
    let mut manager = test.serve(&format!("--players {count}"));
    let mut referee = test.agent(&manager, "REF01", "--max-concurrent-matches 10");
    let mut ada = test.agent(&manager, "P01", "--display-name Ada");
    ada.line("is P01");
    let url = manager.url();
    let players = (2..).zip(mistakes.clone());
    let players: Vec<_> = players
        .map(|(n, row)| faulty_player(&url, n, row))
        .collect();
    for program in [&mut manager, &mut referee, &mut ada] {
        program.wait_for_success();
    }
    let outputs = [&manager, &referee, &ada].map(TestProcess::output);
    // No other match is lost: all are faulty against Ada alone, except the one that is gone.
    test.check_played(count);
    let recorded = test.events("Recorded");
    let is_technical = |line: &&Value| line["result"]["details"]["status"] == "TECHNICAL_LOSS";
    let technical = recorded.iter().filter(is_technical).count();
    assert_eq!(technical, mistakes.len() - 1 + count - 1);
    // Every player gets its notifications, except the one that is gone and the one that is rude.
    let mut failed = test.logged("delivery_failed");
    failed.retain(|line| line["component"] == "league_manager");
    let failure = |line: &Value| format!("{} {}", line["peer"], line["error_code"]);
    let failures: BTreeSet<String> = failed.iter().map(failure).collect();
    let expected = [r#""P05" "E009""#, r#""P06" "E003""#];
    assert!(failures.iter().eq(expected), "{failures:?}");
    for ((id, player), [name, when, _, why]) in players.iter().zip(mistakes) {
        let is_theirs = |line: &&Value| {
            let score = &line["result"]["score"];
            !score["P01"].is_null() && !score[id].is_null()
        };
        let match_id = text_of(&recorded.iter().find(is_theirs).unwrap()["match_id"]);
        let [on_screen, of_referee, of_ada] = outputs.each_ref().map(|text| {
            let mut lines = text.lines().map(str::trim_start);
            let line = lines.find(|line| line.starts_with(match_id));
            line.expect(text).to_string()
        });
        let lost = format!("{name} {why}");
        check_contains(&on_screen, &lost);
        check_contains(&of_ada, ", so you ");
        let file = test.data(&format!("matches/{LEAGUE}/{match_id}.json"));
        let in_file = text_of(&file["result"]["details"]["reason"]).into();
        let mut reasons = vec![of_referee, in_file];
        let received = |message_type: &str| {
            let mut received = player.received(message_type);
            received.retain(|message| message["match_id"] == match_id);
            received
        };
        if !when.is_empty() {
            let result = &received("GAME_OVER")[0]["game_result"];
            reasons.push(text_of(&result["reason"]).into());
            let times = [1, 3][usize::from(why.contains("attempt 3"))];
            assert_eq!(received("GAME_ERROR").len(), times, "{name}");
        }
        let expected = format!("{id} {why}");
        for reason in reasons {
            let reason = reason.trim_start_matches(&format!("{match_id}: "));
            assert!(reason.starts_with(&expected), "{reason}, not {expected}");
        }
    }
    for text in outputs {
        check_no_token(&text);
        let is_legible = |line: &str| line.len() < 900 && !line.contains('\u{1b}');
        assert!(text.lines().all(is_legible), "{text}");
    }
}

/// The body of a rejected registration, and the line on the screen.
const REJECTED: &str = r#"
    {"player_meta": {"display_name": "\u001b[2JEve\u202e", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": "ftp://localhost"}} | rejected �[2JEve� at ftp://localhost, from 127.0.0.1: Contact endpoint unreachable: contact_endpoint must be
    {"player_meta": {"display_name": "Longa", "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": "http://localhost:9/LONG"}} | rejected Longa at http://localhost:9/yyy
    {"player_meta": {"display_name": "Nora", "version": null, "game_types": ["even_odd"], "contact_endpoint": "http://localhost:9/mcp"}} | rejected Nora at http://localhost:9/mcp, from 127.0.0.1: E003 player_meta.version: missing
    {} | rejected unknown at unknown, from 127.0.0.1: E003 player_meta: missing"#;

#[test]
fn rejected_agent_is_printed_once() {
    let (test, mut manager) = with_manager("--players 2");
    let url = manager.url();
    for [body, line] in rows(REJECTED) {
        let body = json_of(&body.replace("LONG", &"y".repeat(9_000)));
        let request = message("LEAGUE_REGISTER_REQUEST", "player:new", body);
        (0..3).for_each(|_| drop(send(&url, &request)));
        assert!(manager.line(line).chars().count() < 600);
    }
    let without_type = json!({"player_meta": {"display_name": "Nameless"}});
    call(&url, "register_player", without_type);
    manager.line("rejected Nameless at unknown, from 127.0.0.1: E003 ");
    for n in 0..51 {
        let reply = register_player(&url, &format!("flood{n}"), "nowhere");
        assert_eq!(reply["status"], "REJECTED");
    }
    manager.kill();
    let output = manager.output();
    for [_, line] in rows(REJECTED) {
        assert_eq!(output.matches(line).count(), 1, "{line}");
    }
    let is_short = output.lines().count() < 30;
    assert!(is_short && !output.contains('\u{1b}'), "{output}");
    assert_eq!(test.journal().len(), 1, "only the first line");
}

#[test]
fn awaited_referee_is_named_after_two_seconds() {
    let test = TestLeague::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=5; system timeouts.generic_response_timeout_sec=1.5; \
         system retry_policy.max_retries=1; league scheduling.cycles=2",
    );
    let mut manager = test.serve("--players 2 --referees 2");
    let hung = idle_agent(); // it accepts its matches, and plays none
    register_referee(&manager.url(), "REF01", &hung.url, 2);
    let _agents = test.agents(&manager, "REF02 P01 P02");
    let waiting = manager
        .line("waiting for referee:REF01 (REF01) to report R1M1 of Agent Alpha (P01) and Agent Beta (P02) (until ");
    check_contains(&manager.page("/health").1, &waiting);
    let start = message("START_LEAGUE", "launcher", json!({"league_id": LEAGUE}));
    check_contains(&send(&manager.url(), &start).to_string(), &waiting);
    wait_until("the command `status` prints the line too", || {
        test.order("status", &manager.url()).contains(&waiting)
    });
    let (_, until) = waiting.split_once("(until ").unwrap();
    let until = until.trim_end_matches(')');
    if cfg!(unix) {
        let utc = OffsetDateTime::now_utc();
        let local = utc.to_offset(UtcOffset::from_hms(9, 0, 0).unwrap()).time();
        let format = format_description!("[hour]:[minute]:[second]");
        let left = Time::parse(until, format).unwrap() - local;
        let left = left.whole_seconds().rem_euclid(24 * 3600);
        assert!((0..60).contains(&left), "{until} is {left} s after {local}");
    }
    let late = format!("referee:REF01 (REF01) has not reported all its matches by {until}");
    manager.line(&format!("{late}; its matches are announced again"));
    manager.wait_for_success();
    let assigned = test.events("Assigned");
    let assigned = assigned.iter().map(|line| {
        let first = &line["assignments"][0];
        ["match_id", "referee_id"].map(|key| text_of(&first[key]))
    });
    // The manager gives REF01 no match in the next round either.
    let expected = [["R1M1", "REF01"], ["R1M1", "REF02"], ["R2M1", "REF02"]];
    assert!(assigned.eq(expected));
}

#[test]
fn time_limit_of_a_referee_begins_again_in_every_round() {
    // The lead alone is longer than a match may take, and round 2 is announced only after it.
    let test = TestLeague::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=2; system timeouts.generic_response_timeout_sec=1; \
         system retry_policy.max_retries=1; league scheduling.cycles=2",
    );
    let mut manager = test.manager("--players 2 --lead-sec 4.5");
    let _agents = test.agents(&manager, "REF01 P01 P02");
    manager.wait_for_success();
    let output = manager.output();
    assert!(!output.contains("has not reported"), "{output}");
}

#[test]
fn agent_that_does_not_answer_is_reported_at_the_start() {
    let test = TestLeague::new("");
    let mut manager = test.manager("--players 2");
    let url = manager.url();
    let first = FakeAgent::new(|request| valid_reply("P01", "even", request));
    register_player(&url, "P01", &first.url);
    register_player(&url, "P02", "http://127.0.0.1:1/mcp");
    let _referee = test.agent(&manager, "REF01", "");
    manager.wait_for_success();
    let output = manager.output();
    let unreachable = "player:P02 (P02) has registered, but could not be reached: connection refused; until it answers";
    check_contains(&output, unreachable);
    assert!(!output.contains("(P01) has registered, but"), "{output}");
}

#[test]
fn programs_of_this_machine_are_no_strangers_at_its_other_address() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    let mut manager = test.manager(&format!("--players 2 --host {own}"));
    assert_eq!(
        manager.url(),
        format!("http://{own}:{}/mcp", manager.port())
    );
    let mut agents = test.agents(&manager, "REF01 P01 P02");
    wait_for_all(&mut manager, &mut agents);
    test.check_played(2);
    assert!(!manager.output().contains("others reach us at"));
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
    for (token, code, status) in [
        (None, "E011", "REJECTED"),
        (Some("tok-operator-0"), "E012", "REJECTED"),
        (Some(operator.trim()), "waiting", "ACCEPTED"),
    ] {
        // The league refuses the last three to the operator for other reasons.
        let actions = ["pause", "resume", "remove", "restore", "new_lobby"];
        let actions = &actions[..if code == "waiting" { 2 } else { 5 }];
        let orders = actions.iter().map(|action| ("LEAGUE_CONTROL", *action));
        for (message_type, action) in orders.chain([("START_LEAGUE", "")]) {
            let body = json!({"auth_token": token, "league_id": LEAGUE, "action": action});
            let reply = send(&url, &message(message_type, "launcher", body));
            let actual = reply["error_code"].as_str().or(reply["status"].as_str());
            assert_eq!(actual, Some(code), "{reply}");
        }
        for (host, status) in [(&*own.to_string(), status), ("127.0.0.1", "REJECTED")] {
            let endpoint = format!("http://{host}:1/mcp");
            let reply = send(&url, &referee_registration("new", &endpoint, 1, token));
            assert_eq!(reply["status"], status, "{token:?}: {reply}");
        }
    }

    // A peer with an address of this machine is this machine, if it calls the manager by its name.
    let port = free_port();
    let url = format!("http://{own}:{port}/mcp");
    let near = TestLeague::new("");
    let all = format!("--host 0.0.0.0 --port {port} --contact-endpoint {url}");
    let _manager = near.manager(&all);
    let reply = send(&url, &referee_registration("new", &url, 1, None));
    assert_eq!(reply["status"], "ACCEPTED", "{reply}");
}

#[test]
fn repeated_registrations_cause_one_call_a_second() {
    let test = TestLeague::new("system retry_policy.base_delay_sec=30");
    let manager = test.manager("");
    let (peer, begun) = (idle_agent(), Instant::now());
    let token = token_of(&register_player(&manager.url(), "P01", &peer.url));
    let again = player_registration("P01", &peer.url, Some(&token));
    wait_until("P01 is called", || peer.request_count() > 0);
    for _ in 0..100 {
        assert_eq!(send(&manager.url(), &again)["status"], "ACCEPTED");
    }
    wait_until("P01 is called once more", || peer.request_count() > 1);
    let (calls, most) = (peer.request_count(), 2 + begun.elapsed().as_secs());
    assert!(calls as u64 <= most, "{calls} calls, at most {most}");
    assert_eq!(test.count("Registered"), 1);
}

/// A reply to every call, and the words of the command `status` about the agent in the lobby.
const IN_THE_LOBBY: &str = r#"
    200 OK | {"jsonrpc": "2.0", "error": {"code": -32601, "message": "no"}, "id": 1} | answers
    500 Oh | {"detail": "no"} | answered HTTP 500 "{\"detail\": \"no\"}"; try make check
    200 OK | <h1>It works!</h1> | answered with a page of text that is not JSON; try make check"#;

#[test]
fn agents_in_the_lobby_are_called_again_and_status_names_their_faults() {
    let (test, manager) = with_manager("serve --players 9");
    let url = manager.url();
    let _peers: Vec<FakeAgent> = rows(IN_THE_LOBBY)
        .map(|[status, body, _]| {
            let peer = FakeAgent::counting(move |n, _| match n {
                0 => FakeReply::Close, // as if the agent did not listen yet
                _ => fake::status(status, body),
            });
            register_player(&url, "new", &peer.url);
            peer
        })
        .collect();
    for [_, _, words] in rows(IN_THE_LOBBY) {
        let line_end = format!(": {words}\n");
        wait_until(words, || test.order("status", &url).contains(&line_end));
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
    let is_up = Arc::new(AtomicBool::new(false));
    let listens = Arc::clone(&is_up);
    let referee = FakeAgent::new(move |request| match request["method"].as_str() {
        _ if !listens.load(Ordering::SeqCst) => FakeReply::Close,
        Some("ping") => fake::status("404 Oh", ""),
        _ => acknowledgement(),
    });
    register_referee(&manager.url(), "REF01", &referee.url, 2);
    let _players = [(); 2].map(|()| {
        let player = idle_agent();
        register_player(&manager.url(), "new", &player.url);
        player
    });
    manager.line("no referee is left");
    let rounds = || referee.received("ROUND_ANNOUNCEMENT").len();
    let before = rounds();
    is_up.store(true, Ordering::SeqCst);
    let what = "the round is announced to the referee that is back, and after each time limit";
    wait_until(what, || rounds() >= before + 5);
}

#[test]
fn end_of_the_league_is_sent_until_it_is_received() {
    const FAILURES: usize = 4; // one more than the retry policy has attempts
    let test = TestLeague::new("system retry_policy.base_delay_sec=0.05");
    let mut manager = test.manager("--players 3");
    let _referee = test.agent(&manager, "REF01", "");
    let ends = AtomicUsize::new(0);
    let failing = FakeAgent::new(move |request| {
        let fails = match request["params"]["message_type"].as_str() {
            Some("LEAGUE_STANDINGS_UPDATE") => true,
            Some("LEAGUE_COMPLETED") => ends.fetch_add(1, Ordering::SeqCst) < FAILURES,
            _ => false,
        };
        match fails {
            true => FakeReply::Close,
            false => valid_reply("P01", "even", request),
        }
    });
    let good = FakeAgent::new(|request| valid_reply("P02", "odd", request));
    register_player(&manager.url(), "P01", &failing.url);
    register_player(&manager.url(), "P02", &good.url);
    register_player(&manager.url(), "P03", "http://127.0.0.1:1/mcp");
    let started = Instant::now();
    manager.wait_for_success();
    let limit = Duration::from_secs(40); // a reachable player has 46 s, and P03 is not reachable
    assert!(started.elapsed() < limit, "the manager waits for P03");

    // P01 gets all else though no table reaches it.
    let rounds = failing.received("ROUND_COMPLETED");
    assert_eq!(rounds.last().unwrap()["round_id"], 3);
    let ends = [failing, good].map(|player| player.received("LEAGUE_COMPLETED").len());
    assert_eq!(ends, [FAILURES + 1, 1]);
}
