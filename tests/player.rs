//! A real player between a scripted manager and scripted referees, true ones and strangers: whom it believes, what
//! it answers, what it remembers (R4, R5, R7).

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::channel,
    },
    thread,
    time::Duration,
};
use support::{Agent, Does, PATIENCE, Peer, World, call, files, message, now, send, until};

const LEAGUE: &str = "league_2025_even_odd";
const MANAGER: &str = "tok-p01-0123456789abcdef0123456789abcdef";

/// The answer to a registration: accepted as P01, with the token that came, or this one.
fn accepted(request: &Value, token: &str) -> Does {
    let token = request["params"]["auth_token"].as_str().unwrap_or(token);
    let body = json!({
        "status": "ACCEPTED", "player_id": "P01", "auth_token": token, "league_id": LEAGUE, "reason": null,
        "conversation_id": request["params"]["conversation_id"],
    });
    Does::Answer(message("LEAGUE_REGISTER_RESPONSE", "league_manager", body))
}

fn manager() -> Peer {
    Peer::new(|request| accepted(request, MANAGER))
}

/// Starts a player and waits until it is registered.
fn player(world: &World, manager: &Peer, arguments: &[&str]) -> Agent {
    let player = unregistered(world, manager, arguments);
    player.line("is P01");
    player
}

fn unregistered(world: &World, manager: &Peer, arguments: &[&str]) -> Agent {
    world.start("player", &[&["--manager", &manager.url, "--player-id", "P01"], arguments].concat())
}

/// A referee: the match token and the conversation that it uses.
#[derive(Clone, Copy)]
struct Referee(&'static str, &'static str);

const TRUE: Referee = Referee("tok-true", "conv-true");
const REPLAY: Referee = Referee("tok-true", "conv-replay");
const STRANGER: Referee = Referee("tok-strange", "conv-true");

impl Referee {
    fn says(self, message_type: &str, match_id: &str, mut body: Value) -> Value {
        body["match_id"] = match_id.into();
        body["game_type"] = "even_odd".into();
        (body["auth_token"], body["conversation_id"]) = (self.0.into(), self.1.into());
        message(message_type, "referee:REF01", body)
    }

    fn invites(self, match_id: &str) -> Value {
        let body = json!({"league_id": LEAGUE, "round_id": 1, "role_in_match": "PLAYER_A", "opponent_id": "P02"});
        self.says("GAME_INVITATION", match_id, body)
    }

    fn asks(self, match_id: &str) -> Value {
        self.says("CHOOSE_PARITY_CALL", match_id, json!({"player_id": "P01", "deadline": now()}))
    }

    /// P01 chose even.
    fn ends(self, match_id: &str, winner: &str) -> Value {
        let number = if winner == "P01" { 8 } else { 7 };
        let result = json!({
            "status": "WIN", "winner_player_id": winner, "drawn_number": number,
            "number_parity": if winner == "P01" { "even" } else { "odd" }, "choices": {"P01": "even", "P02": "odd"},
        });
        self.says("GAME_OVER", match_id, json!({"game_result": result}))
    }

    fn complains(self, match_id: &str) -> Value {
        let body = json!({
            "error_code": "E001", "error_description": "TIMEOUT_ERROR", "affected_player": "P01",
            "action_required": "CHOOSE_PARITY_RESPONSE",
        });
        self.says("GAME_ERROR", match_id, body)
    }
}

/// A notice of the manager, with this token.
fn notice(message_type: &str, token: Option<&str>, mut body: Value) -> Value {
    body["auth_token"] = token.into();
    body["league_id"] = LEAGUE.into();
    message(message_type, "league_manager", body)
}

/// The announcement of our match, with the token of its invitation.
fn announces(match_id: &str, match_token: Option<&str>) -> Value {
    let mut entry = json!({
        "match_id": match_id, "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
        "referee_endpoint": "http://localhost:8001/mcp",
    });
    if let Some(token) = match_token {
        entry["match_token"] = token.into();
    }
    notice("ROUND_ANNOUNCEMENT", Some(MANAGER), json!({"round_id": 1, "matches": [entry]}))
}

fn completed(token: Option<&str>) -> Value {
    let champion = json!({"player_id": "P01", "display_name": "One", "points": 3});
    let body = json!({"total_rounds": 1, "total_matches": 1, "champion": champion, "final_standings": []});
    notice("LEAGUE_COMPLETED", token, body)
}

/// What came back: the error's code, the message's type, or `ok`.
fn told(reply: &Value) -> &str {
    let kinds = ["error_code", "message_type", "status"];
    kinds.iter().find_map(|key| reply[key].as_str()).unwrap_or_else(|| panic!("{reply}"))
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

fn history(world: &World) -> PathBuf {
    world.folder.join("data/players/P01/history.json")
}

#[test]
fn it_joins_and_chooses_under_the_match_token() {
    let (world, manager) = (World::new(&[]), manager());
    let player = player(&world, &manager, &["--strategy", "even"]);
    let joined = send(&player.url(), &TRUE.invites("R1M1"));
    let chosen = send(&player.url(), &TRUE.asks("R1M1"));
    for (reply, message_type, own, value) in
        [(&joined, JOINS, "accept", json!(true)), (&chosen, CHOOSES, "parity_choice", json!("even"))]
    {
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
fn the_same_call_gets_the_same_answer_also_at_the_same_moment() {
    let (world, manager) = (World::new(&[]), manager());
    let player = player(&world, &manager, &["--strategy", "random"]);
    let url = player.url();
    let mut seen = Vec::new();
    for n in 1..=24 {
        let match_id = format!("R{n}M1");
        converse(&player, "invited twice", &[(TRUE.invites(&match_id), JOINS), (TRUE.invites(&match_id), JOINS)]);
        let ask = || send(&url, &TRUE.asks(&match_id))["parity_choice"].clone();
        let both = thread::scope(|scope| [scope.spawn(ask), scope.spawn(ask)].map(|call| call.join().unwrap()));
        converse(&player, "invited again", &[(TRUE.invites(&match_id), JOINS)]);
        assert!(both[0] == both[1] && both[0] == ask(), "{both:?}");
        seen.extend(both);
    }
    assert!(seen.contains(&json!("even")) && seen.contains(&json!("odd")), "random it is");
}

#[test]
fn it_believes_the_referee_that_the_manager_announced_else_the_first_one() {
    let (world, manager) = (World::new(&[]), manager());
    let player = player(&world, &manager, &[]);
    let other = Referee("tok-other", "conv-other");
    converse(
        &player,
        "not announced: taken on trust",
        &[
            (TRUE.invites("R2M1"), JOINS),
            (STRANGER.invites("R2M1"), "E012"),
            (REPLAY.invites("R2M1"), "E012"),
            (STRANGER.asks("R2M1"), "E012"),
            (TRUE.asks("R2M1"), CHOOSES),
        ],
    );
    converse(
        &player,
        "a stranger before the announcement",
        &[
            (STRANGER.invites("R3M1"), JOINS),
            (announces("R3M1", Some("tok-true")), "ok"),
            (TRUE.invites("R3M1"), JOINS),
            (STRANGER.asks("R3M1"), "E012"),
            (TRUE.asks("R3M1"), CHOOSES),
        ],
    );
    converse(
        &player,
        "announced with its token",
        &[
            (announces("R1M1", Some("tok-true")), "ok"),
            (STRANGER.invites("R1M1"), "E012"),
            (TRUE.asks("R1M1"), "E015"),
            (TRUE.invites("R1M1"), JOINS),
            (STRANGER.invites("R1M1"), "E012"),
            (STRANGER.asks("R1M1"), "E012"),
            (STRANGER.complains("R1M1"), "E012"),
            (REPLAY.asks("R1M1"), "E015"),
            (TRUE.complains("R1M1"), "ok"),
            (TRUE.asks("R1M1"), CHOOSES),
        ],
    );
    converse(
        &player,
        "a newer invitation, and then another referee",
        &[
            (announces("R4M1", Some("tok-true")), "ok"),
            (TRUE.invites("R4M1"), JOINS),
            (REPLAY.invites("R4M1"), JOINS),
            (TRUE.asks("R4M1"), "E015"),
            (REPLAY.asks("R4M1"), CHOOSES),
            (announces("R4M1", Some("tok-other")), "ok"),
            (TRUE.invites("R4M1"), "E012"),
            (other.invites("R4M1"), JOINS),
            (REPLAY.asks("R4M1"), "E012"),
            (other.asks("R4M1"), CHOOSES),
        ],
    );
    converse(
        &player,
        "then a referee that makes tokens of its own",
        &[
            (announces("R6M1", Some("tok-true")), "ok"),
            (TRUE.invites("R6M1"), JOINS),
            (announces("R6M1", None), "ok"),
            (other.invites("R6M1"), JOINS),
            (STRANGER.invites("R6M1"), "E012"),
            (other.asks("R6M1"), CHOOSES),
        ],
    );
    // A stranger can take a hundred seats at most, and none of an announced match.
    let replies: Vec<Value> = (1..=100).map(|n| send(&player.url(), &STRANGER.invites(&format!("S{n}")))).collect();
    assert_eq!(told(&replies[0]), JOINS);
    assert_eq!(told(&replies[99]), "E015");
    converse(&player, "the table is full", &[(announces("R7M1", None), "ok"), (TRUE.invites("R7M1"), JOINS)]);
    let mut not_for_us = TRUE.invites("R5M1");
    not_for_us["player_id"] = "P02".into();
    converse(&player, "for somebody else", &[(not_for_us, "E012"), (TRUE.asks("R5M1"), "E015")]);
}

#[test]
fn what_the_configuration_does_not_demand_may_be_missing() {
    let without = |message: Value, fields: &[&str]| {
        let mut message = message;
        fields.iter().for_each(|field| drop(message.as_object_mut().unwrap().remove(*field)));
        message
    };
    for (key, fields) in
        [("enable_auth_tokens", &["auth_token"][..]), ("strict_envelope", &["sender", "timestamp", "conversation_id"])]
    {
        let world = World::new(&[("system.json", &format!("/security/{key}"), json!(false))]);
        let manager = manager();
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
fn it_remembers_what_its_referees_tell_and_nothing_else() {
    let (world, manager) = (World::new(&[]), manager());
    let player = player(&world, &manager, &["--strategy", "even"]);
    converse(
        &player,
        "false ends",
        &[
            (TRUE.invites("R1M1"), JOINS),
            (TRUE.asks("R1M1"), CHOOSES),
            (STRANGER.ends("R1M1", "P02"), "E012"),
            (REPLAY.ends("R1M1", "P02"), "E015"),
            (TRUE.ends("R9M9", "P02"), "E015"),
        ],
    );
    let before = state(&player).to_string().replace("\"strategy\":\"even\"", "");
    assert!(!before.contains("even") && !before.contains("odd"), "a choice before its match is over: {before}");
    assert!(!history(&world).exists());
    converse(&player, "twice", &[(TRUE.ends("R1M1", "P01"), "ok"), (TRUE.ends("R1M1", "P01"), "ok")]);
    let record = |wins, losses| json!({"wins": wins, "losses": losses, "draws": 0});
    let after = state(&player);
    assert_eq!((&after["record"], &after["matches"][0]["result"]["choices"]["P01"]), (&record(1, 0), &json!("even")));
    converse(
        &player,
        "played again",
        &[
            (announces("R1M1", Some("tok-true")), "ok"),
            (REPLAY.invites("R1M1"), JOINS),
            (REPLAY.ends("R1M1", "P02"), "ok"),
            (TRUE.ends("R1M1", "P01"), "E015"),
        ],
    );
    assert_eq!(state(&player)["record"], record(0, 1));
    assert_eq!(world.data("players/P01/history.json")["matches"], state(&player)["matches"]);
}

#[test]
fn only_the_manager_ends_it() {
    let (world, manager) = (World::new(&[]), manager());
    let mut player = player(&world, &manager, &[]);
    let ended = |token| {
        let summary = json!({"total_matches": 1, "wins": 1, "draws": 0, "technical_losses": 0});
        let body = json!({"round_id": 1, "matches_completed": 1, "summary": summary, "next_round_id": null});
        notice("ROUND_COMPLETED", token, body)
    };
    converse(
        &player,
        "strangers",
        &[
            (ended(None), "ok"), // perhaps this manager sends no tokens
            (ended(Some("tok-p01-wrong")), "E012"),
            (completed(Some("tok-p01-wrong")), "E012"),
        ],
    );
    // The manager pings whoever has registered, with its token: from then on all must carry it.
    assert_eq!(call(&player.url(), "ping", json!({"auth_token": MANAGER}))["result"], json!({}));
    converse(
        &player,
        "strangers, after the ping",
        &[(ended(None), "E011"), (completed(None), "E011"), (completed(Some("tok-p01-wrong")), "E012")],
    );
    assert!(player.child.try_wait().unwrap().is_none() && state(&player)["state"] == "ACTIVE");
    converse(&player, "the manager", &[(completed(Some(MANAGER)), "ok")]);
    assert!(player.wait().success());
}

#[test]
fn its_history_lives_as_long_as_its_registration() {
    let world = World::new(&[]);
    let manager = Peer::new({
        let fresh = AtomicUsize::new(0);
        move |request| accepted(request, &format!("{MANAGER}{}", fresh.fetch_add(1, Ordering::SeqCst)))
    });
    let mut first = player(&world, &manager, &[]);
    converse(&first, "a match", &[(TRUE.invites("R1M1"), JOINS), (TRUE.ends("R1M1", "P01"), "ok")]);
    let port = first.url().replace("http://localhost:", "").replace("/mcp", "");
    first.kill();
    for (name, port, id) in [
        ("the same port", &*port, "P01"),
        ("the same port, and the id that it first asked for but did not get", &port, "p1"),
        ("another port", "0", "P01"),
    ] {
        let mut again = player(&world, &manager, &["--port", port, "--player-id", id]);
        assert_eq!(state(&again)["record"]["wins"], 1, "{name}");
        let request = manager.received("LEAGUE_REGISTER_REQUEST").pop().unwrap();
        assert_eq!(request["auth_token"], format!("{MANAGER}0"), "{name}");
        assert_eq!(request["player_meta"]["contact_endpoint"], again.url(), "{name}");
        again.kill();
    }
    // A token that has expired is replaced at the registration; the history stays.
    let away = AtomicBool::new(true);
    let expiring = Peer::new(move |request| match request["params"]["message_type"].as_str() {
        Some("LEAGUE_QUERY") if away.swap(false, Ordering::SeqCst) => Does::Close, // it is only starting
        Some("LEAGUE_QUERY") => {
            let context = json!({"problem": "expired", "expired_at": now()});
            let error = json!({"error_code": "E012", "error_description": "AUTH_TOKEN_INVALID", "context": context});
            Does::Answer(message("LEAGUE_ERROR", "league_manager", error))
        }
        _ => {
            let mut request = request.clone();
            request["params"]["auth_token"] = json!(null);
            accepted(&request, "tok-p01-renewed")
        }
    });
    let card = world.data("agents/P01.json").to_string().replace(&manager.url, &expiring.url);
    fs::write(world.folder.join("data/agents/P01.json"), card).unwrap();
    let mut renewed = player(&world, &expiring, &[]);
    assert_eq!(state(&renewed)["record"]["wins"], 1, "an expired token");
    assert_eq!(world.data("agents/P01.json")["token"], "tok-p01-renewed");
    renewed.kill();
    fs::remove_file(world.folder.join("data/agents/P01.json")).unwrap();
    let fresh = player(&world, &manager, &[]);
    assert_eq!((&state(&fresh)["matches"], history(&world).exists()), (&json!([]), false));
    let kept = files(&world.folder.join("data/players"));
    assert!(kept.iter().any(|path| path.ends_with("history.json")), "set aside, not lost: {kept:?}");
}

#[test]
fn what_comes_before_it_knows_its_id_waits() {
    let world = World::new(&[]);
    let (release, released) = channel();
    let released = Mutex::new(released);
    let manager = Peer::new(move |request| {
        let _ = released.lock().unwrap().recv();
        accepted(request, MANAGER)
    });
    let player = unregistered(&world, &manager, &[]);
    manager.first("LEAGUE_REGISTER_REQUEST");
    let (answer, answers) = channel();
    for message in [announces("R9M1", None), TRUE.invites("R1M1")] {
        let (url, answer) = (player.url(), answer.clone());
        thread::spawn(move || answer.send(told(&send(&url, &message)).to_string()));
    }
    assert!(answers.recv_timeout(Duration::from_millis(300)).is_err(), "answered before it is registered");
    release.send(()).unwrap();
    let mut both = [(); 2].map(|()| answers.recv_timeout(PATIENCE).unwrap());
    both.sort();
    assert_eq!(both, [JOINS, "ok"]);
}

#[test]
fn it_waits_for_its_manager_and_says_so_once() {
    let world = World::new(&[("system.json", "/retry_policy/base_delay_sec", json!(0.01))]);
    let asked = AtomicUsize::new(0);
    let manager = Peer::new(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0..5 => Does::Close,
        _ => accepted(request, MANAGER),
    });
    let mut player = player(&world, &manager, &[]);
    converse(&player, "the end", &[(completed(Some(MANAGER)), "ok")]);
    assert!(player.wait().success());
    assert_eq!(player.stderr.lock().unwrap().matches("waiting for the league manager").count(), 1);
    assert_eq!(manager.received("LEAGUE_REGISTER_REQUEST").len(), 6);
}

#[test]
fn a_player_that_dies_before_it_has_a_card_asks_in_the_same_conversation_again() {
    let world = World::new(&[]);
    let asked = AtomicUsize::new(0);
    let manager = Peer::new(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Does::Silence,
        _ => accepted(request, MANAGER),
    });
    let mut first = unregistered(&world, &manager, &[]);
    manager.first("LEAGUE_REGISTER_REQUEST");
    first.kill();
    let url = first.url();
    let (_, port) = url.trim_end_matches("/mcp").rsplit_once(':').unwrap();
    player(&world, &manager, &["--port", port]).kill();
    fs::remove_file(world.folder.join("data/agents/P01.json")).unwrap();
    player(&world, &manager, &["--port", port]).kill();
    let requests = manager.received("LEAGUE_REGISTER_REQUEST");
    let [lost, again, new] = [0, 1, 2].map(|n| &requests[n]["conversation_id"]);
    assert_eq!(lost, again, "the manager gives the same answer");
    assert_ne!(again, new, "a card was written in between");
}

#[test]
fn a_player_that_is_rejected_says_why_and_ends() {
    let world = World::new(&[]);
    let manager = Peer::new(|_| {
        let body =
            json!({"status": "REJECTED", "player_id": null, "reason": "Maximum players reached: 2 may register"});
        Does::Answer(message("LEAGUE_REGISTER_RESPONSE", "league_manager", body))
    });
    let mut player = unregistered(&world, &manager, &[]);
    assert_eq!(player.wait().code(), Some(1));
    until("it says why", || player.stderr.lock().unwrap().contains("Maximum players reached: 2").then_some(()));
}
