//! The manager as those who use it meet it: who is let in, what the screen says of each mistake,
//! whom the league waits for. Referees and players are real where they do their work, and scripted
//! where they do not.

use super::support::stand_in::LEAGUE;
use super::support::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
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
fn wrongly(act: &str, good: Value) -> Does {
    let act = act.replace("LONG", &"x".repeat(9_000));
    let act = act.replace("ESCAPES", &r"\u001b".repeat(1_500)); // six bytes each
    match act.split_once(' ') {
        Some(("but", edits)) => Does::Answer(golden::edited(good, edits)),
        Some((_, body)) => Does::Body(body.into()),
        None => Does::Silence,
    }
}

fn is_against_ada(request: &Value) -> bool {
    let asked = &request["params"];
    let places = [&asked["opponent_id"], &asked["context"]["opponent_id"]];
    places.iter().any(|opponent| *opponent == "P01")
}

#[test]
fn everybody_learns_why_a_match_was_lost() {
    let world = World::new("system timeouts.move_timeout_sec=2");
    let mistakes: Vec<[&str; 4]> = rows(MISTAKES).collect();
    let players = mistakes.len() + 1;
    let mut manager = world.serve(&format!("--players {players}"));
    let mut referee = world.agent(&manager, "REF01", "--max-concurrent-matches 10");
    let mut ada = world.agent(&manager, "P01", "--display-name Ada");
    ada.line("is P01");
    let faulty = |(n, [name, when, act, _]): (u32, [&'static str; 4])| {
        let id = format!("P{n:02}");
        let own = id.clone();
        let peer = Peer::new(move |request| {
            let asked = &request["params"]["message_type"];
            match good_player(&own, "odd", request) {
                Does::Answer(good) if asked == when && is_against_ada(request) => {
                    wrongly(act, good)
                }
                _ if asked == "ROUND_COMPLETED" && name == RUDE => Does::Body("no".into()),
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
    let peers: Vec<(String, Peer)> = (2..).zip(mistakes.clone()).map(faulty).collect();
    manager.ends_well();
    referee.ends_well();
    ada.ends_well();
    let [screen, whistle, own] = [&manager, &referee, &ada].map(Agent::output);
    // Nobody else is punished: all are faulty against Ada alone, the one that is gone against
    // everybody.
    world.check_played(players);
    let recorded = world.events("Recorded");
    let technical = recorded
        .iter()
        .map(|line| &line["result"]["details"]["status"]);
    let technical = technical.filter(|status| *status == "TECHNICAL_LOSS");
    assert_eq!(technical.count(), mistakes.len() - 1 + players - 1);
    let mut failed = world.logs();
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
        check_says(&on_screen, &lost);
        let page = world.data(&format!("matches/{LEAGUE}/{match_id}.json"));
        let mut said = vec![line(&whistle), line(&own), text_of(&page["reason"]).into()];
        let received = |message_type: &str| {
            let mut received = peer.received(message_type);
            received.retain(|it| it["match_id"] == match_id);
            received
        };
        if !when.is_empty() {
            said.push(text_of(&received("GAME_OVER")[0]["game_result"]["reason"]).into());
            let times = [1, 3][usize::from(why.contains("3 attempts"))];
            assert_eq!(received("GAME_ERROR").len(), times, "{name}");
        }
        let told = format!("{id} {why}");
        for said in said {
            let words = said.trim_start_matches(&format!("{match_id}: "));
            assert!(words.starts_with(&told), "{said}, expected {told}");
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
fn whoever_is_turned_away_is_on_the_screen_once_and_legibly() {
    let (world, mut manager) = with_manager("--players 2");
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
        sleep(Duration::from_secs(1)); // one line a second
    }
    let flood = |n| register_player(&url, &format!("flood{n}"), "nowhere");
    (0..50).for_each(|n| drop(flood(n)));
    assert_eq!(flood(50)["status"], "REJECTED");
    manager.kill();
    let said = manager.output();
    for (_, line) in &rows {
        assert_eq!(said.matches(line).count(), 1, "{line}");
    }
    let is_short = said.lines().count() < 30;
    assert!(is_short && !said.contains('\u{1b}'), "{said}");
    assert_eq!(world.journal().len(), 1, "the head alone");
}

#[test]
fn after_two_seconds_everybody_can_see_whom_the_league_waits_for() {
    let world = World::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=5; system timeouts.generic_response_timeout_sec=1.5; \
         system retry_policy.max_retries=1; league scheduling.cycles=2",
    );
    let mut manager = world.serve("--players 2 --referees 2");
    let hung = Peer::new(|request| match request["params"]["message_type"].as_str() {
        Some("ROUND_ANNOUNCEMENT") => Does::Silence,
        _ => Does::Answer(json!({"status": "ok"})),
    });
    register_referee(&manager.url(), "REF01", &hung.url, 2);
    let _real = world.agent(&manager, "REF02", "");
    let _players = ["P01", "P02"].map(|id| world.agent(&manager, id, ""));
    let waiting = manager
        .line("waiting for REF01 to report R1M1 of Agent Alpha (P01) and Agent Beta (P02) (until ");
    let (_, health) = manager.page("/health");
    let start = message("START_LEAGUE", "launcher", json!({"league_id": LEAGUE}));
    let start = send(&manager.url(), &start).to_string();
    for said in [health, start] {
        check_says(&said, &waiting);
    }
    wait_until("the word `status` says it too", || {
        let said = world.order("status", &manager.url());
        said.contains(&waiting)
    });
    let until = waiting
        .split_once("(until ")
        .unwrap()
        .1
        .trim_end_matches(')');
    let late = format!("REF01 has not reported all its matches by {until}");
    manager.line(&format!("{late}; its matches are announced anew"));
    manager.ends_well();
    let given = world.events("Assigned");
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
fn a_referee_has_the_whole_time_again_in_every_round() {
    // The lead alone is longer than a match may take, and nobody hears of round 2 before it has
    // passed.
    let world = World::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=2; system timeouts.generic_response_timeout_sec=1; \
         system retry_policy.max_retries=1; league scheduling.cycles=2",
    );
    let mut manager = world.manager("--players 2 --lead-sec 4.5");
    let _referee = world.agent(&manager, "REF01", "");
    let _players = ["P01", "P02"].map(|id| world.agent(&manager, id, ""));
    manager.ends_well();
    let said = manager.output();
    assert!(!said.contains("has not reported"), "{said}");
}

#[test]
fn whoever_registers_before_it_listens_raises_no_alarm() {
    // Nobody is asked again for its own sake.
    let world =
        World::new("system retry_policy.base_delay_sec=30; system retry_policy.max_retries=1");
    let mut manager = world.manager("--players 3");
    let (url, up) = (manager.url(), Arc::new(AtomicBool::new(false)));
    let is_up = Arc::clone(&up);
    let slow = Peer::new(move |request| match is_up.load(Ordering::SeqCst) {
        true => good_player("P01", "even", request),
        false => Does::Close,
    });
    register_player(&url, "P01", &slow.url);
    until("P01 is called in vain", || {
        slow.requests.lock().unwrap().first().map(drop)
    });
    register_player(&url, "P02", "http://127.0.0.1:1/mcp");
    let third = Peer::new(|request| good_player("P03", "odd", request));
    let _referee = world.agent(&manager, "REF01", "");
    up.store(true, Ordering::SeqCst);
    register_player(&url, "P03", &third.url);
    manager.ends_well();
    let said = manager.output();
    let silent =
        "P02 has registered, but could not be reached (connection refused); until it answers";
    check_says(&said, silent);
    assert!(!said.contains("P01 has registered, but"), "{said}");
}

#[test]
fn from_elsewhere_only_the_operators_token_orders_and_lets_a_referee_in() {
    let Some(own) = own_address() else { return };
    let world = World::new("");
    let contact = format!("http://{own}:8000/mcp");
    let manager = world.manager(&format!("--host 0.0.0.0 --contact-endpoint {contact}"));
    manager.line(&format!("others reach us at {contact}"));
    let url = format!("http://{own}:{}/mcp", manager.port());
    let operator = std::fs::read_to_string(world.league_file("operator.token")).unwrap();
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
fn whoever_registers_again_and_again_is_told_anew_once_a_second() {
    let world = World::new("system retry_policy.base_delay_sec=30");
    let manager = world.manager("");
    let peer = listener();
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
        world.count("Registered"),
        1,
        "and nothing more is written down"
    );
}

/// What is answered to everything, and what the word `status` says of it in the lobby.
const IN_THE_LOBBY: &str = r#"
    200 OK | {"jsonrpc": "2.0", "error": {"code": -32601, "message": "no"}, "id": 1} | answers
    500 Oh | {"detail": "no"} | answered HTTP 500 "{\"detail\": \"no\"}"; try make check
    200 OK | <h1>It works!</h1> | answered <h1>It works!</h1>: that is not a JSON-RPC reply; try make check"#;

#[test]
fn the_lobby_says_who_does_not_answer_as_an_agent() {
    let (world, manager) = with_manager("serve --players 9");
    let url = manager.url();
    let agent = |[status, body, _]: [&'static str; 3]| {
        let peer = Peer::new(move |_| stand_in::status(status, body));
        register_player(&url, "new", &peer.url);
        peer
    };
    let _peers: Vec<Peer> = rows(IN_THE_LOBBY).map(agent).collect();
    for [_, _, says] in rows(IN_THE_LOBBY) {
        wait_until(says, || {
            let said = world.order("status", &url);
            said.contains(&format!(": {says}\n"))
        });
    }
}

#[test]
fn a_referee_that_is_back_or_late_once_more_is_told_its_matches_again() {
    let world = World::new(
        "system timeouts.game_join_ack_timeout_sec=0.5; system timeouts.move_timeout_sec=0.5; \
         system timeouts.game_over_timeout_sec=0.5; system timeouts.generic_response_timeout_sec=1; \
         system retry_policy.base_delay_sec=0.2; system retry_policy.max_retries=1",
    );
    let manager = world.manager("--players 2");
    let is_back = Arc::new(OnceLock::new());
    let door = Arc::clone(&is_back);
    let referee = Peer::new(move |request| match request["method"].as_str() {
        _ if door.get().is_none() => Does::Close,
        Some("ping") => stand_in::status("404 Oh", ""),
        _ => Does::Answer(json!({"status": "ok"})),
    });
    register_referee(&manager.url(), "REF01", &referee.url, 2);
    let players = [listener(), listener()];
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
