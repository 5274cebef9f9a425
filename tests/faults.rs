//! What players do to a connection, in one league over real sockets: each faulty player has another fault
//! for each good one. What follows from an answer that arrives whole is in `match.rs`.

mod support;

use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use support::{Does, PATIENCE, Peer, World, good_player, register_player, until};

const JOIN: &str = "GAME_INVITATION";
const CHOICE: &str = "CHOOSE_PARITY_CALL";

/// Its name, what it strikes, what is done instead of the good answer, and the code that the player is told.
type Fault = (&'static str, &'static str, fn(Value) -> Does, &'static str);

const FAULTS: &[Fault] = &[
    ("silent", JOIN, |_| Does::Silence, "E001"),
    ("trickles", JOIN, |_| Does::Endless(HEAD.into(), Duration::from_millis(20)), "E001"),
    ("endless body", JOIN, |_| Does::Endless([HEAD, &[b' '; 65536]].concat(), Duration::ZERO), "E009"),
    ("closes", JOIN, |_| Does::Close, "E009"),
    ("HTTP 500", JOIN, |_| Does::Bytes(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".into()), "E009"),
    ("redirect", JOIN, |_| Does::Bytes(b"HTTP/1.1 307 No\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".into()), "E009"),
    ("cut off", JOIN, |_| Does::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}".into()), "E009"),
    ("HTML", JOIN, |_| Does::Body("<html><body>It works!</body></html>".into()), "E003"),
    ("empty", JOIN, |_| Does::Body(String::new()), "E003"),
    ("broken JSON", JOIN, |_| Does::Body("{\"jsonrpc\": \"2.0\", ".into()), "E003"),
    ("JSON-RPC error", JOIN, |_| Does::Body(RPC_ERROR.into()), "E003"),
    ("accept: \"true\"", JOIN, |good| with(good, "accept", json!("true")), "E003"),
    ("accept: 1", JOIN, |good| with(good, "accept", json!(1)), "E003"),
    ("accept: null", JOIN, |good| with(good, "accept", json!(null)), "E003"),
    ("no accept", JOIN, |good| without(good, "accept"), "E003"),
    ("another's id", JOIN, |good| with(good, "player_id", json!("P98")), "E012"),
    ("dies between", CHOICE, |_| Does::Close, "E009"),
    ("no choice", CHOICE, |good| without(good, "parity_choice"), "E003"),
    ("a null choice", CHOICE, |good| with(good, "parity_choice", json!(null)), "E004"),
    ("JSON-RPC error late", CHOICE, |_| Does::Body(RPC_ERROR.into()), "E003"),
];

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";
const RPC_ERROR: &str = r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "not today"}, "id": 1}"#;

fn with(mut answer: Value, field: &str, value: Value) -> Does {
    answer[field] = value;
    Does::Answer(answer)
}

fn without(mut answer: Value, field: &str) -> Does {
    answer.as_object_mut().unwrap().remove(field);
    Does::Answer(answer)
}

const GOOD: [&str; 4] = ["P11", "P12", "P13", "P14"];
/// Good too, but late with its first choice: too late, and then valid.
const LATE: &str = "P13";
/// Good too, but answers every notice with an error.
const RUDE: &str = "P14";
/// Nobody is at its endpoint, and perhaps not even its kind of address.
const GONE: &str = "P99";

fn good(id: &'static str) -> Peer {
    let late = AtomicBool::new(id == LATE);
    Peer::new(move |request| match request["params"]["message_type"].as_str().unwrap_or_default() {
        CHOICE if late.swap(false, Ordering::SeqCst) => Does::Silence,
        JOIN | CHOICE => good_player(id, "odd", request),
        _ if id == RUDE => Does::Body(RPC_ERROR.into()),
        _ => good_player(id, "odd", request),
    })
}

/// The faulty players: as many as it takes to have every fault.
fn faulty_ids() -> impl Iterator<Item = String> {
    (0..FAULTS.len().div_ceil(GOOD.len())).map(|n| format!("P{}", 21 + n))
}

/// The fault that a player has against another.
fn fault(id: &str, opponent: &str) -> Option<&'static Fault> {
    let (n, which) = (faulty_ids().position(|it| it == id)?, GOOD.iter().position(|it| *it == opponent)?);
    FAULTS.chunks(GOOD.len()).nth(n)?.get(which)
}

/// The code that a player is told in a match against another. Two faulty ones decline to meet.
fn code(id: &str, opponent: &str) -> Option<&'static str> {
    match fault(id, opponent) {
        Some((.., code)) => Some(code),
        None if GOOD.contains(&id) => None,
        None => Some(if id == GONE { "E009" } else { "E003" }),
    }
}

fn faulty(id: String) -> Peer {
    Peer::new(move |request| {
        let asked = &request["params"];
        let Does::Answer(good) = good_player(&id, "even", request) else { panic!("it answers") };
        let opponent = asked["opponent_id"].as_str().or(asked["context"]["opponent_id"].as_str()).unwrap_or_default();
        match fault(&id, opponent) {
            Some((_, when, does, _)) if asked["message_type"] == **when => does(good),
            None if asked["message_type"] == JOIN => with(good, "accept", json!(false)),
            _ => Does::Answer(good),
        }
    })
}

/// Plays the league to its end: how many players there were.
fn play(world: &World) -> usize {
    let mut peers: Vec<(String, Peer)> = GOOD.into_iter().map(|id| (id.into(), good(id))).collect();
    peers.extend(faulty_ids().map(|id| (id.clone(), faulty(id))));
    let all = peers.len() + 1;
    let mut manager = world.manager(&["--players", &all.to_string()]);
    let mut referee = world.referee(&manager, "REF01", &["--max-concurrent-matches", "10"]);
    let endpoints = peers.iter().map(|(id, peer)| (&**id, &*peer.url));
    for (id, endpoint) in endpoints.chain([(GONE, "http://[::1]:1/mcp")]) {
        let answer = register_player(&manager.url(), &format!("player:{id}"), endpoint);
        assert_eq!(answer["player_id"], id, "{answer}");
    }
    assert!(manager.wait().success() && referee.wait().success());
    all
}

/// Holds a recorded match against what its players are: who is told which code.
fn check(line: &Value) -> Vec<(String, String, String)> {
    let result = &line["result"];
    let players: Vec<&str> = result["score"].as_object().unwrap().keys().map(String::as_str).collect();
    let codes = [code(players[0], players[1]), code(players[1], players[0])];
    let (endings, winner) = match codes {
        [None, None] => (&["WIN", "DRAW"][..], result["winner"].as_str()),
        [Some(_), Some(_)] => (&["TECHNICAL_LOSS"][..], None),
        [first, _] => (&["TECHNICAL_LOSS"][..], Some(players[usize::from(first.is_some())])),
    };
    let ending = result["details"]["status"].as_str().unwrap();
    assert!(endings.contains(&ending) && result["winner"].as_str() == winner, "{line}");
    let told = players.into_iter().zip(codes).filter_map(|(id, code)| Some((id.to_string(), code?.to_string())));
    told.map(|(id, code)| (text(&line["match_id"]), id, code)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

#[test]
fn every_faulty_player_loses_technically_and_nobody_else_does() {
    let world = World::new(&[
        ("system.json", "/timeouts/game_join_ack_timeout_sec", json!(1)),
        ("system.json", "/timeouts/move_timeout_sec", json!(1)),
        ("system.json", "/retry_policy/base_delay_sec", json!(0.05)),
        ("system.json", "/retry_policy/backoff_strategy", json!("fixed")),
    ]);
    let players = play(&world);
    let (journal, logs) = (world.journal(), world.logs());

    // Every match is recorded once, as its players deserve.
    let recorded: Vec<&Value> = journal.iter().filter(|line| line["event"] == "Recorded").collect();
    let different: BTreeSet<String> = recorded.iter().map(|line| text(&line["match_id"])).collect();
    assert_eq!((recorded.len(), different.len()), (players * (players - 1) / 2, recorded.len()));
    let expected: BTreeSet<_> = recorded.into_iter().flat_map(check).collect();

    // The referee tells each its code. Who was late once is told so, and loses nothing.
    let by = |component: &'static str| logs.iter().filter(move |line| line["component"] == component);
    let errors = by("REF01").filter(|line| line["message"]["message_type"] == "GAME_ERROR");
    let (late, told): (BTreeSet<_>, BTreeSet<_>) = errors
        .map(|line| (text(&line["match_id"]), text(&line["peer"]), text(&line["message"]["error_code"])))
        .partition(|(_, id, _)| id == LATE);
    assert_eq!(told, expected);
    assert_eq!(late.into_iter().map(|(_, _, code)| code).collect::<Vec<_>>(), ["E001"]);

    // The manager's notices reach everybody but these two.
    let in_vain = by("league_manager").filter(|line| line["event_type"] == "delivery_failed");
    let in_vain: BTreeSet<_> = in_vain.map(|line| (text(&line["peer"]), text(&line["error_code"]))).collect();
    assert_eq!(in_vain, [(RUDE, "E003"), (GONE, "E009")].map(|(id, code)| (id.into(), code.into())).into());
}

#[test]
fn a_slow_player_delays_its_own_match_only() {
    let world = World::new(&[("system.json", "/timeouts/game_join_ack_timeout_sec", json!(PATIENCE.as_secs()))]);
    let mut manager = world.manager(&["--players", "4"]);
    let mut referee = world.referee(&manager, "REF01", &["--max-concurrent-matches", "2"]);
    let other_is_over = Arc::new(AtomicBool::new(false));
    let _peers = GOOD.map(|id| {
        let other_is_over = Arc::clone(&other_is_over);
        let peer = Peer::new(move |request| {
            match request["params"]["message_type"].as_str().unwrap_or_default() {
                JOIN if id == GOOD[0] => {
                    until("the round's other match ends", || other_is_over.load(Ordering::SeqCst).then_some(()));
                }
                "GAME_OVER" => other_is_over.store(true, Ordering::SeqCst),
                _ => {}
            }
            good_player(id, "odd", request)
        });
        register_player(&manager.url(), &format!("player:{id}"), &peer.url);
        peer
    });
    assert!(manager.wait().success() && referee.wait().success());
    assert!(world.journal().iter().all(|line| line["result"]["details"]["status"] != "TECHNICAL_LOSS"));
}
