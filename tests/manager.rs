//! The manager as those who use it meet it: who is let in, what the screen says of each mistake, whom the league waits
//! for. Referees and players are real where they do their work, and scripted where they do not.

mod support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};
use support::stand_in::LEAGUE;
use support::*;

/// What registers a player of a name.
fn application(name: &str, endpoint: &str) -> Value {
    json!({"player_meta": {
        "display_name": name, "version": "1.0.0", "game_types": ["even_odd"], "contact_endpoint": endpoint,
    }})
}

fn enrol(manager: &str, id: &str, name: &str, endpoint: &str) -> Value {
    send(
        manager,
        &message(
            "LEAGUE_REGISTER_REQUEST",
            &format!("player:{id}"),
            application(name, endpoint),
        ),
    )
}

/// What a faulty player answers, instead of a good answer.
type Wrongly = fn(Value) -> Does;

/// The player that answers the end of each round wrongly too, which costs nothing.
const RUDE: &str = "Loud";

/// Each kind of mistake: its player, what it does wrongly, and how everybody is told.
const MISTAKES: &[(&str, &str, Wrongly, &str)] = &[
    (
        "Okay",
        "GAME_INVITATION",
        |_| Does::Answer(json!({"status": "ok", "token": "tok-p02-0123456789abcdef0123"})),
        r#"answered {"status":"ok","token":"tok-p02-***"} to handle_game_invitation, expected GAME_JOIN_ACK"#,
    ),
    (
        "Naming",
        "CHOOSE_PARITY_CALL",
        |good| {
            Does::Answer(but(
                &but(&good, "choice", json!("odd")),
                "parity_choice",
                Value::Null,
            ))
        },
        r#"answered choose_parity wrongly, three times: has "choice", expected "parity_choice""#,
    ),
    (
        "Silent",
        "CHOOSE_PARITY_CALL",
        |_| Does::Silence,
        "gave no answer to choose_parity within 0.5 s, three times",
    ),
    (
        "Gone",
        "",
        |_| Does::Close,
        "could not be reached (connection refused) for handle_game_invitation, three times",
    ),
    (
        "Loud",
        "CHOOSE_PARITY_CALL",
        |good| Does::Answer(but(&good, "parity_choice", json!("EVEN"))),
        r#"answered choose_parity wrongly, three times: parity_choice: got "EVEN", must be "even" or "odd""#,
    ),
    (
        "Broken",
        "CHOOSE_PARITY_CALL",
        |_| {
            let error = json!({"code": -32603, "message": "name 'rnadom' is not defined\u{1b}[2J"});
            Does::Body(json!({"jsonrpc": "2.0", "error": error, "id": 1}).to_string())
        },
        r#"answered JSON-RPC error -32603 "name 'rnadom' is not defined\u{1b}[2J" to choose_parity, three times, expected CHOOSE_PARITY_RESPONSE"#,
    ),
    (
        "Long",
        "GAME_INVITATION",
        |good| Does::Answer(but(&good, "match_id", json!("x".repeat(9_000)))),
        "answered handle_game_invitation wrongly: match_id: got \"xxxxxxxxxx",
    ),
    (
        "Longer",
        "GAME_INVITATION",
        |good| Does::Answer(but(&good, "player_id", json!("\u{1b}".repeat(1_500)))), // six bytes each
        r#"answered handle_game_invitation wrongly: player_id: got "\u{1b}\u{1b}\u{1b}"#,
    ),
];

fn is_against_ada(request: &Value) -> bool {
    ["/params/opponent_id", "/params/context/opponent_id"]
        .iter()
        .any(|key| request.pointer(key) == Some(&json!("P01")))
}

#[test]
fn everybody_learns_why_a_match_was_lost() {
    let world = World::new(&[
        ("system.json", "/timeouts/move_timeout_sec", json!(0.5)),
        ("system.json", "/retry_policy/base_delay_sec", json!(0.05)),
    ]);
    let players = MISTAKES.len() + 1;
    let mut manager = world.manager(&["--players", &players.to_string()]);
    let mut referee = world.referee(&manager, "REF01", &["--max-concurrent-matches", "10"]);
    let mut ada = world.player(&manager, "P01", &["--display-name", "Ada"]);
    ada.line("is P01");
    let mut peers = Vec::new();
    for (n, (name, when, wrongly, _)) in (2..).zip(MISTAKES) {
        let id = format!("P{n:02}");
        let own = id.clone();
        let peer = Peer::new(move |request| {
            match (
                good_player(&own, "odd", request),
                &request["params"]["message_type"],
            ) {
                (Does::Answer(good), asked) if asked == *when && is_against_ada(request) => {
                    wrongly(good)
                }
                (_, asked) if asked == "ROUND_COMPLETED" && *name == RUDE => {
                    Does::Body("no".into())
                }
                (good, _) => good,
            }
        });
        let endpoint = if when.is_empty() {
            "http://127.0.0.1:1/mcp"
        } else {
            &peer.url
        };
        assert_eq!(enrol(&manager.url(), &id, name, endpoint)["player_id"], *id);
        peers.push((id, peer));
    }
    assert!(manager.wait().success() && referee.wait().success() && ada.wait().success());
    let [screen, whistle, own] = [&manager, &referee, &ada].map(Agent::output);
    // Nobody else is punished: all are faulty against Ada alone, the one that is gone against everybody.
    world.check_played(players);
    let recorded = world.events("Recorded");
    let technical = recorded
        .iter()
        .filter(|line| line["result"]["details"]["status"] == "TECHNICAL_LOSS");
    assert_eq!(technical.count(), MISTAKES.len() - 1 + players - 1);
    let mut in_vain = world.logs();
    in_vain.retain(|line| {
        line["event_type"] == "delivery_failed" && line["component"] == "league_manager"
    });
    let in_vain: BTreeSet<String> = in_vain
        .iter()
        .map(|line| format!("{} {}", line["peer"], line["error_code"]))
        .collect();
    let expected = [r#""P05" "E009""#, r#""P06" "E003""#].map(String::from);
    assert_eq!(
        in_vain,
        expected.into(),
        "notices get to all but the one that is gone and the one that is rude"
    );
    for ((id, peer), (name, when, _, why)) in peers.iter().zip(MISTAKES) {
        let score = |line: &&Value| {
            ["P01", id]
                .iter()
                .all(|player| !line["result"]["score"][player].is_null())
        };
        let match_id = recorded.iter().find(score).unwrap()["match_id"]
            .as_str()
            .unwrap();
        let line = |text: &str| {
            let all = text
                .lines()
                .map(str::trim_start)
                .find(|line| line.starts_with(match_id))
                .map(String::from);
            all.unwrap_or_else(|| panic!("nothing of {match_id} in {text}"))
        };
        let on_screen = line(&screen);
        assert!(
            on_screen.contains(&format!(" won, {name} lost technically: {why}")),
            "{on_screen}"
        );
        let told = format!("{id} {why}");
        assert!(
            line(&whistle).starts_with(&format!("{match_id}: {told}")),
            "{whistle}"
        );
        assert!(
            line(&own).starts_with(&format!("{match_id}: {told}")),
            "{own}"
        );
        let page = world.data(&format!("matches/{LEAGUE}/{match_id}.json"));
        assert!(
            page["result"]["details"]["reason"]
                .as_str()
                .unwrap()
                .starts_with(&told),
            "{page}"
        );
        let errors = peer
            .received("GAME_ERROR")
            .into_iter()
            .filter(|it| it["match_id"] == match_id);
        let overs = peer
            .received("GAME_OVER")
            .into_iter()
            .filter(|it| it["match_id"] == match_id);
        let overs: Vec<Value> = overs.collect();
        if !when.is_empty() {
            assert!(
                overs[0]["game_result"]["reason"]
                    .as_str()
                    .unwrap()
                    .starts_with(&told),
                "{overs:?}"
            );
            let (times, wrong) = (
                errors.count(),
                if why.contains("three times") { 3 } else { 1 },
            );
            assert_eq!(times, wrong, "{name}");
        }
    }
    for text in [screen, whistle, own] {
        check_no_token(&text);
        assert!(
            !text.contains('\u{1b}') && text.lines().all(|line| line.len() < 900),
            "{text}"
        );
    }
}

#[test]
fn whoever_is_turned_away_is_on_the_screen_once_and_legibly() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "2"]);
    let url = manager.url();
    let apply = |body: Value| {
        send(
            &url,
            &message("LEAGUE_REGISTER_REQUEST", "player:new", body),
        )
    };
    let long = format!("http://localhost:9/{}", "y".repeat(9_000));
    let mut unnamed = application("Nora", "http://localhost:9/mcp");
    unnamed["player_meta"]
        .as_object_mut()
        .unwrap()
        .remove("version");
    let trick = "\u{1b}[2JEve\u{202e}";
    let rows = [
        (
            application(trick, "ftp://localhost"),
            "rejected player \u{fffd}[2JEve\u{fffd} at ftp://localhost, from 127.0.0.1: Contact endpoint unreachable: contact_endpoint must be",
        ),
        (
            application("Longa", &long),
            "rejected player Longa at http://localhost:9/yyy",
        ),
        (
            unnamed,
            "refused to register Nora at http://localhost:9/mcp, from 127.0.0.1: E003 player_meta.version: missing",
        ),
        (
            json!({}),
            "refused to register somebody, from 127.0.0.1: E003 player_meta: missing",
        ),
    ];
    for (body, line) in &rows {
        (0..3).for_each(|_| drop(apply(body.clone())));
        assert!(manager.line(line).chars().count() < 600);
    }
    (0..50).for_each(|n| drop(apply(application(&format!("Flood {n}"), "nowhere"))));
    assert_eq!(apply(application("Late", "nowhere"))["status"], "REJECTED");
    manager.line("more registrations are not accepted; the log has all of them");
    manager.kill();
    let said = manager.output();
    for (_, line) in &rows {
        assert_eq!(said.matches(line).count(), 1, "{line}");
    }
    assert!(
        !said.contains('\u{1b}') && said.lines().count() < 30,
        "{said}"
    );
    assert!(world.logs().iter().any(|line| {
        line["message"]
            .as_str()
            .is_some_and(|it| it.contains("Flood 49"))
    }));
    assert_eq!(world.journal().len(), 1, "the head alone");
}

/// What `GET /health`, START_LEAGUE and the word `status` say that the league waits for.
fn reasons(world: &World, manager: &Agent) -> [String; 3] {
    let (_, health) = http("GET", &manager.url().replace("/mcp", "/health"), "", b"");
    let health: Value = serde_json::from_str(&health).unwrap();
    let start = send(
        &manager.url(),
        &message("START_LEAGUE", "launcher", json!({"league_id": LEAGUE})),
    );
    let (_, word) = world.word(&["status", "--manager", &manager.url()]);
    let word = word
        .lines()
        .find_map(|line| line.strip_prefix("reason   "))
        .unwrap_or_default()
        .to_string();
    [
        health["reason"].as_str().unwrap_or_default().into(),
        start["reason"].as_str().unwrap_or_default().into(),
        word,
    ]
}

#[test]
fn after_two_seconds_everybody_can_see_whom_the_league_waits_for() {
    let league = format!("leagues/{LEAGUE}.json");
    let world = World::new(&[
        (
            "system.json",
            "/timeouts/game_join_ack_timeout_sec",
            json!(0.5),
        ),
        ("system.json", "/timeouts/move_timeout_sec", json!(0.5)),
        ("system.json", "/timeouts/game_over_timeout_sec", json!(1)),
        (
            "system.json",
            "/timeouts/generic_response_timeout_sec",
            json!(3),
        ),
        ("system.json", "/retry_policy/max_retries", json!(1)),
        (&league, "/scheduling/cycles", json!(2)),
    ]);
    let mut manager = world.manager(&["--players", "2", "--referees", "2"]);
    let hung = listener(); // it takes its match, and that is all
    register_referee(&manager.url(), "referee:REF01", &hung.url, 2);
    let _real = world.referee(&manager, "REF02", &[]);
    let _players = ["P01", "P02"].map(|id| world.player(&manager, id, &[]));
    let waiting = manager.line("waiting for REF01 to report R1M1 (until ");
    assert_eq!(reasons(&world, &manager), [(); 3].map(|()| waiting.clone()));
    let until = waiting
        .split_once("(until ")
        .unwrap()
        .1
        .trim_end_matches(')');
    manager.line(&format!(
        "REF01 has not reported all its matches by {until}; its matches are announced anew"
    ));
    assert!(manager.wait().success());
    let given = world
        .events("Assigned")
        .into_iter()
        .map(|line| line["assignments"][0].clone());
    let given: Vec<[Value; 2]> = given
        .map(|it| ["match_id", "referee_id"].map(|key| it[key].clone()))
        .collect();
    let expected = [["R1M1", "REF01"], ["R1M1", "REF02"], ["R2M1", "REF02"]];
    assert_eq!(given, expected, "what was learnt holds in the next round");
}

#[test]
fn whoever_registers_before_it_listens_raises_no_alarm() {
    let world = World::new(&[
        ("system.json", "/retry_policy/base_delay_sec", json!(30)), // nobody is asked again for its own sake
        ("system.json", "/retry_policy/max_retries", json!(1)),
    ]);
    let mut manager = world.manager(&["--players", "3"]);
    let (url, up) = (manager.url(), Arc::new(AtomicBool::new(false)));
    let is_up = Arc::clone(&up);
    let slow = Peer::new(move |request| match is_up.load(Ordering::SeqCst) {
        true => good_player("P01", "even", request),
        false => Does::Close,
    });
    register_player(&url, "player:P01", &slow.url);
    until("P01 is called in vain", || {
        slow.requests.lock().unwrap().first().map(drop)
    });
    register_player(&url, "player:P02", "http://127.0.0.1:1/mcp");
    let third = Peer::new(|request| good_player("P03", "odd", request));
    let _referee = world.referee(&manager, "REF01", &[]);
    up.store(true, Ordering::SeqCst);
    register_player(&url, "player:P03", &third.url);
    assert!(manager.wait().success());
    let said = manager.output();
    assert!(
        said.contains(
            "P02 has registered, but could not be reached (connection refused); it forfeits"
        ),
        "{said}"
    );
    assert!(!said.contains("P01 has registered, but"), "{said}");
}

/// A player that sends exactly what the shortest description of the messages prints: no envelope, no token, arrival and choice and no more.
fn bare_player(own_id: &Arc<OnceLock<String>>) -> Peer {
    const PRINTED: [&str; 6] = [
        "message_type",
        "match_id",
        "player_id",
        "arrival_timestamp",
        "accept",
        "parity_choice",
    ];
    let own_id = Arc::clone(own_id);
    Peer::new(move |request| {
        let id = own_id.get().map_or("", String::as_str);
        let Does::Answer(Value::Object(mut answer)) = good_player(id, "even", request) else {
            return Does::Close;
        };
        answer.retain(|key, _| PRINTED.contains(&&**key));
        Does::Answer(answer.into())
    })
}

#[test]
fn a_player_that_prints_no_envelope_plays() {
    for strict in [false, true] {
        let world = World::new(&[("system.json", "/security/strict_envelope", json!(strict))]);
        let mut manager = world.manager(&["--players", "2"]);
        let (url, id) = (manager.url(), Arc::new(OnceLock::new()));
        let bare = bare_player(&id);
        let mut request = application("Agent Alpha", &bare.url);
        request["message_type"] = json!("LEAGUE_REGISTER_REQUEST");
        let mut answer = send(&url, &request);
        if strict {
            assert_eq!(answer["error_code"], "E003", "{answer}");
            let told = answer["context"].to_string();
            let missing = ["protocol", "sender", "timestamp", "conversation_id"]; // all at once
            assert!(missing.iter().all(|field| told.contains(field)), "{told}");
            answer = enrol(&url, "bare", "Agent Alpha", &bare.url); // somebody else does
        }
        assert_eq!(answer["status"], "ACCEPTED", "{answer}");
        let own_id = id.get_or_init(|| answer["player_id"].as_str().unwrap().into());
        let _real = world.player(&manager, "P02", &["--strategy", "odd"]);
        let _referee = world.referee(&manager, "REF01", &[]);
        assert!(manager.wait().success());
        let recorded = &world.events("Recorded")[0];
        assert_eq!(
            recorded["result"]["details"]["choices"],
            json!({own_id: "even", "P02": "odd"}),
            "{recorded}"
        );
        assert_eq!(bare.received("GAME_OVER").len(), 1);
    }
}

#[test]
fn from_elsewhere_only_the_operators_token_orders_and_lets_a_referee_in() {
    let Some(own) = own_address() else { return };
    let world = World::new(&[]);
    let contact = format!("http://{own}:8000/mcp");
    let manager = world.manager(&["--host", "0.0.0.0", "--contact-endpoint", &contact]);
    manager.line(&format!("others reach us at {contact}"));
    let url = format!("http://{own}:{}/mcp", manager.port());
    let operator = world
        .folder
        .join(format!("data/leagues/{LEAGUE}/operator.token"));
    let operator = std::fs::read_to_string(operator).unwrap();
    let rows = [
        (None, "E011", "REJECTED"),
        (Some("tok-operator-0"), "E012", "REJECTED"),
    ];
    for (token, code, status) in
        rows.into_iter()
            .chain([(Some(operator.trim()), "waiting", "ACCEPTED")])
    {
        let with_token = |message_type: &str, mut body: Value| {
            body["auth_token"] = json!(token);
            send(&url, &message(message_type, "launcher", body))
        };
        // The operator is refused the last four for other reasons: there is nobody, no match and no league that is over.
        let actions = ["pause", "resume", "remove", "restore", "replay", "again"];
        let actions = &actions[..if code == "waiting" { 2 } else { 6 }];
        let orders = actions.iter().map(|action| {
            (
                "LEAGUE_CONTROL",
                json!({"league_id": LEAGUE, "action": action}),
            )
        });
        for (message_type, order) in orders.chain([("START_LEAGUE", json!({"league_id": LEAGUE}))])
        {
            let answer = with_token(message_type, order);
            assert_eq!(
                answer["error_code"].as_str().or(answer["status"].as_str()),
                Some(code),
                "{answer}"
            );
        }
        let meta = json!({"referee_meta": {
            "display_name": "Far", "version": "1.0.0", "game_types": ["even_odd"], "max_concurrent_matches": 1,
            "contact_endpoint": "http://127.0.0.1:1/mcp",
        }});
        assert_eq!(
            with_token("REFEREE_REGISTER_REQUEST", meta)["status"],
            status,
            "{token:?}"
        );
    }
}
