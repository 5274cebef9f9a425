//! A real player between a scripted manager and scripted referees, true ones and strangers: whom it believes, what it
//! answers, remembers and shows. Whom it believes is tabled in `invitations.rs`; here it is shown to be asked.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::channel,
    },
    thread,
    time::Duration,
};
use support::stand_in::{self, LEAGUE, Referee, TOKEN, completed, notice};
use support::*;

/// Starts a player and waits until it is registered.
fn player(world: &World, manager: &Peer, arguments: &[&str]) -> Agent {
    let player = unregistered(world, manager, arguments);
    player.line("is P01");
    player
}

fn unregistered(world: &World, manager: &Peer, arguments: &[&str]) -> Agent {
    world.start(
        "player",
        &[
            &["--manager", &manager.url, "--player-id", "P01"],
            arguments,
        ]
        .concat(),
    )
}

/// A manager that sends no tokens of its own, so far as it says.
fn silent_about_tokens() -> Peer {
    Peer::new(|request| stand_in::accepts(request, TOKEN, false))
}

const TRUE: Referee = Referee("tok-true", "conv-true");
const REPLAY: Referee = Referee("tok-true", "conv-replay");
const STRANGER: Referee = Referee("tok-strange", "conv-true");

/// The announcement of our match, with the token of its invitation.
fn announces(match_id: &str, match_token: Option<&str>) -> Value {
    let token = match_token.map_or(Value::Null, |token| json!(token));
    let whole = stand_in::announces(&[(match_id, "http://localhost:8001/mcp", json!({}))]);
    but(&whole, "match_token", token)
}

/// What came back: the error's code, the message's type, or `ok`.
fn told(reply: &Value) -> &str {
    let kinds = ["error_code", "message_type", "status"];
    kinds
        .iter()
        .find_map(|key| reply[key].as_str())
        .unwrap_or_else(|| panic!("{reply}"))
}

/// Sends each message, and compares what comes back.
fn converse(player: &Agent, name: &str, dialogue: &[(Value, &str)]) {
    for (n, (message, expected)) in dialogue.iter().enumerate() {
        let reply = send(&player.url(), message);
        assert_eq!(told(&reply), *expected, "{name}, line {n}: {reply}");
    }
}

const JOINS: &str = "GAME_JOIN_ACK";
const CHOOSES: &str = "CHOOSE_PARITY_RESPONSE";

fn state(player: &Agent) -> Value {
    call(&player.url(), "get_player_state", json!({}))["result"].clone()
}

#[test]
fn it_joins_and_chooses_under_the_match_token() {
    let (world, manager) = (World::new(&[]), stand_in::manager());
    let player = player(&world, &manager, &["--strategy", "even"]);
    let joined = send(&player.url(), &TRUE.invites("R1M1"));
    let chosen = send(&player.url(), &TRUE.asks("R1M1"));
    for (reply, message_type, own, value) in [
        (&joined, JOINS, "accept", json!(true)),
        (&chosen, CHOOSES, "parity_choice", json!("even")),
    ] {
        let expected = json!({
            "protocol": "league.v2", "message_type": message_type, "sender": "player:P01", "match_id": "R1M1",
            "conversation_id": TRUE.1, "auth_token": TRUE.0, "player_id": "P01", "league_id": LEAGUE, own: value,
        });
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(reply[field], *value, "{field} in {reply}");
        }
    }
}

#[test]
fn it_believes_the_referee_that_the_manager_announced_and_says_whom_it_does_not() {
    let (world, manager) = (World::new(&[]), stand_in::manager());
    let mut player = player(&world, &manager, &["--strategy", "even"]);
    let mut not_for_us = TRUE.invites("R5M1");
    not_for_us["player_id"] = "P02".into();
    converse(
        &player,
        "announced",
        &[
            (announces("R1M1", Some("tok-true")), "ok"),
            (STRANGER.invites("R1M1"), "E012"),
            (TRUE.asks("R1M1"), "E015"),
            (TRUE.invites("R1M1"), JOINS),
            (STRANGER.asks("R1M1"), "E012"),
            (STRANGER.complains("R1M1"), "E012"),
            (STRANGER.ends("R1M1", "P02"), "E012"),
            (REPLAY.asks("R1M1"), "E015"),
            (TRUE.complains("R1M1"), "ok"),
            (TRUE.asks("R1M1"), CHOOSES),
            (not_for_us, "E012"),
        ],
    );
    let before = state(&player)
        .to_string()
        .replace("\"strategy\":\"even\"", "");
    assert!(
        !before.contains("even") && !before.contains("odd"),
        "a choice before its match is over: {before}"
    );
    converse(
        &player,
        "twice",
        &[
            (TRUE.ends("R1M1", "P01"), "ok"),
            (TRUE.ends("R1M1", "P01"), "ok"),
        ],
    );
    let record = |wins, losses| json!({"wins": wins, "losses": losses, "draws": 0});
    let after = state(&player);
    assert_eq!(
        (
            &after["record"],
            &after["matches"][0]["result"]["choices"]["P01"]
        ),
        (&record(1, 0), &json!("even"))
    );
    let again = [
        (REPLAY.invites("R1M1"), JOINS),
        (REPLAY.ends("R1M1", "P02"), "ok"),
        (TRUE.ends("R1M1", "P01"), "E015"),
        (completed(Some(TOKEN)), "ok"),
    ];
    let matches = state(&player);
    converse(&player, "played again", &again);
    assert!(matches["record"] == record(1, 0) && player.wait().success());
    let page = world.data("players/P01/history.json");
    assert_eq!(
        page["matches"][0]["result"]["winner_player_id"], "P02",
        "the last end counts: {page}"
    );
    // What its person sees: how it ended, in colour of nobody's choosing, and whom it refused and why.
    let (said, complained) = (player.output(), player.stderr.lock().unwrap().clone());
    assert_eq!(
        said.matches("R1M1: so it \u{fffd}[2J went").count(),
        2,
        "once for each end: {said}"
    );
    for line in [
        "P01: refused GAME_INVITATION of R1M1 from referee:REF01 at 127.0.0.1: E012 auth_token: not the match token",
        "P01: refused CHOOSE_PARITY_CALL of R1M1 from referee:REF01 at 127.0.0.1: E015 match_id: got \"R1M1\", which we",
        "P01: R1M1: E004 INVALID_PARITY_CHOICE: parity_choice: got \"EVEN\"\u{fffd}[2J; attempt 1 of 3, asked again, \
         29.5 s are left; expected CHOOSE_PARITY_RESPONSE; Technical loss\n",
    ] {
        assert!(complained.contains(line), "{line} in {complained}");
    }
    check_no_token(&(said + &complained));
    assert!(!complained.contains('\u{1b}'));
}

#[test]
fn what_strangers_end_is_history_only_where_the_manager_does_not_prove_itself() {
    for (manager, expected) in [(stand_in::manager(), 1), (silent_about_tokens(), 2)] {
        let world = World::new(&[]);
        let player = player(&world, &manager, &[]);
        let dialogue = [
            (STRANGER.invites("S1"), JOINS),
            (STRANGER.ends("S1", "P01"), "ok"),
            (announces("R1M1", None), "ok"),
            (TRUE.invites("R1M1"), JOINS),
            (TRUE.ends("R1M1", "P01"), "ok"),
        ];
        converse(&player, "a stranger and a true one", &dialogue);
        let lines = json_lines(&world.folder.join("data/players/P01/history.jsonl")).len();
        assert_eq!(
            (lines, &state(&player)["record"]["wins"]),
            (expected, &json!(expected))
        );
    }
}

#[test]
fn what_the_configuration_does_not_demand_may_be_missing() {
    let without = |message: Value, fields: &[&str]| {
        fields
            .iter()
            .fold(message, |it, field| but(&it, field, Value::Null))
    };
    for (key, fields) in [
        ("enable_auth_tokens", &["auth_token"][..]),
        (
            "strict_envelope",
            &["sender", "timestamp", "conversation_id"],
        ),
    ] {
        let world = World::new(&[("system.json", &format!("/security/{key}"), json!(false))]);
        let manager = stand_in::manager();
        let player = player(&world, &manager, &[]);
        let dialogue = [
            (announces("R1M1", Some("tok-true")), "ok"),
            (without(TRUE.invites("R1M1"), fields), JOINS),
            (without(TRUE.asks("R1M1"), fields), CHOOSES),
            (without(TRUE.complains("R1M1"), fields), "ok"),
            (without(TRUE.ends("R1M1", "P01"), fields), "ok"),
        ];
        converse(&player, key, &dialogue);
    }
}

#[test]
fn only_the_manager_ends_it_from_its_first_moment_on() {
    for (manager, without) in [(stand_in::manager(), "E011"), (silent_about_tokens(), "ok")] {
        let world = World::new(&[]);
        let mut player = player(&world, &manager, &[]);
        let table = |token| {
            notice(
                "LEAGUE_STANDINGS_UPDATE",
                token,
                json!({"round_id": 1, "standings": []}),
            )
        };
        // The manager has not said a word since the registration.
        let mut dialogue = vec![
            (table(None), without),
            (table(Some("tok-p01-wrong")), "E012"),
            (completed(Some("tok-p01-wrong")), "E012"),
            (table(Some(TOKEN)), "ok"),
        ];
        if without == "E011" {
            dialogue.push((completed(None), "E011"));
        }
        converse(&player, "strangers", &dialogue);
        assert!(player.child.try_wait().unwrap().is_none() && state(&player)["state"] == "ACTIVE");
        converse(&player, "the manager", &[(completed(Some(TOKEN)), "ok")]);
        assert!(player.wait().success());
    }
}

#[test]
fn its_history_lives_as_long_as_its_registration() {
    let (world, fresh) = (World::new(&[]), AtomicUsize::new(0));
    let manager = Peer::new(move |request| {
        let new = || format!("{TOKEN}{}", fresh.fetch_add(1, Ordering::SeqCst));
        let token = request["params"]["auth_token"]
            .as_str()
            .map_or_else(new, String::from); // renewed in place
        stand_in::accepts(request, &token, true)
    });
    let mut first = player(&world, &manager, &[]);
    let announced = notice(
        "ROUND_ANNOUNCEMENT",
        Some(&format!("{TOKEN}0")),
        announces("R1M1", None),
    );
    let dialogue = [
        (announced, "ok"),
        (TRUE.invites("R1M1"), JOINS),
        (TRUE.ends("R1M1", "P01"), "ok"),
    ];
    converse(&first, "a match", &dialogue);
    let port = first
        .url()
        .replace("http://localhost:", "")
        .replace("/mcp", "");
    first.kill();
    for (name, port, id) in [
        ("the same port", &*port, "P01"),
        (
            "the same port, and the id that it first asked for but did not get",
            &port,
            "p1",
        ),
        ("another port", "0", "P01"),
    ] {
        let mut again = player(&world, &manager, &["--port", port, "--player-id", id]);
        assert_eq!(state(&again)["record"]["wins"], 1, "{name}");
        let request = manager.received("LEAGUE_REGISTER_REQUEST").pop().unwrap();
        assert_eq!(request["auth_token"], format!("{TOKEN}0"), "{name}");
        assert_eq!(
            request["player_meta"]["contact_endpoint"],
            again.url(),
            "{name}"
        );
        again.kill();
    }
    fs::remove_file(world.folder.join("data/agents/P01.json")).unwrap();
    let fresh = player(&world, &manager, &[]);
    assert_eq!(state(&fresh)["matches"], json!([]));
    let kept = files(&world.folder.join("data/players"));
    assert!(
        kept.iter()
            .any(|path| path.to_string_lossy().contains("/P01~")),
        "set aside, not lost: {kept:?}"
    );
}

#[test]
fn what_comes_before_it_knows_its_id_waits() {
    let world = World::new(&[]);
    let gate = Gate::default();
    let door = gate.clone();
    let manager = Peer::new(move |request| {
        door.pass();
        stand_in::answers(request)
    });
    let player = unregistered(&world, &manager, &[]);
    manager.first("LEAGUE_REGISTER_REQUEST");
    let (answer, answers) = channel();
    for message in [
        announces("R9M1", None),
        TRUE.invites("R1M1"),
        completed(None),
    ] {
        let (url, answer) = (player.url(), answer.clone());
        thread::spawn(move || answer.send(told(&send(&url, &message)).to_string()));
    }
    assert!(
        answers.recv_timeout(Duration::from_millis(300)).is_err(),
        "answered before it is registered"
    );
    gate.open();
    let mut all = [(); 3].map(|()| answers.recv_timeout(PATIENCE).unwrap());
    all.sort();
    assert_eq!(all, ["E011", JOINS, "ok"]);
}

#[test]
fn it_waits_for_its_manager_and_says_so_once() {
    let world = World::new(&[("system.json", "/retry_policy/base_delay_sec", json!(0.01))]);
    let asked = AtomicUsize::new(0);
    let manager = Peer::new(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0..5 => Does::Close,
        _ => stand_in::answers(request),
    });
    let mut player = player(
        &world,
        &manager,
        &["--contact-endpoint", "http://elsewhere:8101/mcp"],
    );
    player.line("others reach us at http://elsewhere:8101/mcp");
    converse(&player, "the end", &[(completed(Some(TOKEN)), "ok")]);
    assert!(player.wait().success());
    assert_eq!(
        player
            .stderr
            .lock()
            .unwrap()
            .matches("waiting for the league manager")
            .count(),
        1
    );
    let requests = manager.received("LEAGUE_REGISTER_REQUEST");
    let same = |request: &Value| request["conversation_id"] == requests[0]["conversation_id"];
    assert!(
        requests.len() == 6 && requests.iter().all(same),
        "one conversation, so that it gets the lost answer"
    );
}

#[test]
fn whoever_is_not_let_in_says_why_in_one_plain_line() {
    let error = || json!({"error_code": "E003", "error_description": "no\u{1b}[2J", "context": {"problem": "none"}});
    type Answers = fn(Value) -> Does;
    let rows: [(Answers, &str); 5] = [
        (
            |_| stand_in::rejects("Maximum players reached: \u{1b}]0;x\u{7} 2 may register"),
            "rejected: Maximum players",
        ),
        (
            |error| Does::Answer(message("LEAGUE_ERROR", "league_manager", error)),
            "refused: E003 no\u{fffd}[2J: none",
        ),
        (
            |_| {
                Does::Body(
                    r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "\u001b[31mno"}}"#
                        .into(),
                )
            },
            "answered JSON-RPC error -32000 \"\\u{1b}[31mno\"",
        ),
        (
            |_| Does::Answer(json!({"status": "\u{1b}[2J"})),
            "answered {\"status\":\"\\u001b[2J\"}",
        ),
        (|_| Does::Body("\u{1b}[2Jno".into()), "not JSON"),
    ];
    for (does, expected) in rows {
        let (world, error) = (World::new(&[]), error());
        let manager = Peer::new(move |_| does(error.clone()));
        for program in ["player", "referee"] {
            let mut agent = world.start(program, &["--manager", &manager.url]);
            assert_eq!(agent.wait().code(), Some(1));
            until(expected, || {
                agent.stderr.lock().unwrap().contains('\n').then_some(())
            });
            let said = agent.stderr.lock().unwrap().clone();
            assert!(said.contains(expected), "{program}: {said}");
            assert!(
                said.lines().count() == 1 && !said.contains(['\u{1b}', '\u{7}']),
                "{program}: {said}"
            );
        }
        for word in ["status", "start"] {
            let (code, said) = world.word(&[word, "--manager", &manager.url]);
            assert!(
                !said.contains(['\u{1b}', '\u{7}']) && code == Some(1),
                "{word}: {said}"
            );
        }
    }
}
