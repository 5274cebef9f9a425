//! The examination of an agent: it passes our own player and referee, and an agent with one fault fails that check, and
//! no other. Every row is a fault and the checks that see it; what cannot be looked at then is skipped.

mod support;

use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    thread,
    time::Duration,
};
use support::{Agent, Does, Peer, World, message, now, raw, until};

fn world() -> World {
    let limits = [
        "game_join_ack_timeout_sec",
        "move_timeout_sec",
        "generic_response_timeout_sec",
    ];
    let edits = limits.map(|name| ("system.json", format!("/timeouts/{name}"), json!(1)));
    World::new(
        &edits
            .each_ref()
            .map(|(file, path, value)| (*file, path.as_str(), value.clone())),
    )
}

/// Starts an examination, and says where.
fn examination(world: &World) -> (Agent, String) {
    let check = world.start_unheard("league_manager", &["check", "--json"]);
    let said = || {
        check
            .stderr
            .lock()
            .unwrap()
            .lines()
            .find_map(|it| it.strip_prefix("listening on ").map(String::from))
    };
    let url = until("it listens", said);
    (check, url)
}

/// Its findings, and the names of those that are neither good nor skipped.
fn findings(check: &mut Agent) -> (Vec<Value>, Vec<String>) {
    let status = check.wait();
    let all: Vec<Value> = serde_json::from_str(&check.output()).unwrap();
    let bad = all
        .iter()
        .filter(|it| it["grade"] == "FAIL" || it["grade"] == "warn");
    let bad: Vec<String> = bad
        .map(|it| {
            format!(
                "{} {}",
                it["grade"].as_str().unwrap(),
                it["check"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        status.success(),
        !bad.iter().any(|it| it.starts_with("FAIL")),
        "{bad:?}"
    );
    (all, bad)
}

/// How many could not look, after an earlier fault.
fn skipped(all: &[Value]) -> usize {
    all.iter().filter(|it| it["grade"] == "skip").count()
}

#[test]
fn our_own_player_and_referee_pass() {
    for program in ["player", "referee"] {
        let world = world();
        let (mut check, url) = examination(&world);
        let mut agent = world.start(program, &["--manager", &url]);
        let (all, _) = findings(&mut check);
        let bad: Vec<&Value> = all.iter().filter(|it| it["grade"] != "ok").collect();
        assert!(bad.is_empty() && all.len() >= 40, "{program}: {bad:#?}");
        assert!(agent.wait().success(), "it was told the end of the league");
        assert!(
            !world.folder.join("data/leagues").exists(),
            "no league was touched"
        );
    }
}

#[test]
fn a_player_by_hand_passes_though_nobody_chooses() {
    let world = world();
    world.edit("system.json", "/timeouts/move_timeout_sec", json!(4)); // it falls back two seconds before
    let (mut check, url) = examination(&world);
    let player = world.start("player", &["--manager", &url, "--strategy", "mcp:odd"]);
    let (all, bad) = findings(&mut check);
    assert!(bad.is_empty() && skipped(&all) == 0, "{bad:?}");
    let choice = all
        .iter()
        .find(|it| it["check"] == "parity_choice is even or odd")
        .unwrap();
    assert_eq!(choice["came"], "parity_choice \"odd\"");
    assert!(
        player
            .stderr
            .lock()
            .unwrap()
            .contains("R6M1: nobody chose in time; odd chose odd")
    );
}

#[test]
fn lines_say_what_was_sent_what_came_and_what_was_expected() {
    let world = world();
    let mut check = world.start("league_manager", &["check"]);
    let fault = |path, value| ("CHOOSE_PARITY_CALL R1M1", path, value);
    let faults = [
        fault("/result/parity_choice", json!("Even")),
        fault("/result/sender", json!("P90")),
    ];
    let _player = player(&check.url(), faults.to_vec());
    assert_eq!(check.wait().code(), Some(1));
    let (output, exact) = (
        check.output(),
        "expected exactly \"even\" or \"odd\"  [Choice]",
    );
    let line = format!(
        "FAIL  parity_choice is even or odd: sent CHOOSE_PARITY_CALL R1M1, came parity_choice \"Even\", {exact}"
    );
    assert!(output.contains(&line), "{output}");
    assert!(
        output.contains("came sender \"P90\", expected \"player:P90\"; our own league forgives it"),
        "{output}"
    );
    assert!(output.contains("2 FAIL, 0 warn, 0 skip"), "{output}");
    support::check_no_token(&output);
}

/// The type of a message, or the method of a call without one.
fn said(request: &Value) -> &str {
    request["params"]["message_type"]
        .as_str()
        .or(request["method"].as_str())
        .unwrap_or_default()
}

/// A fault: in which exchange (all these words stand in it, or in none: `register`), where, and what stands there then.
/// The place "" is the whole answer; one that is null is none.
type Fault = (&'static str, &'static str, Value);

fn spoil((words, path, value): &Fault, exchange: &str, whole: &mut Value) {
    let is_it = words.split(' ').all(|word| exchange.contains(word));
    match path.rsplit_once('/').filter(|_| is_it) {
        Some((parent, key)) => whole.pointer_mut(parent).unwrap()[key] = value.clone(),
        None if is_it => *whole = value.clone(),
        None => {}
    }
}

/// A scripted player that does everything right, but for these faults.
fn player(manager: &str, faults: Vec<Fault>) -> Peer {
    let (own, joined) = (
        Arc::new(OnceLock::<String>::new()),
        Mutex::new(HashMap::<String, Value>::new()),
    );
    let (token, made) = (Arc::clone(&own), faults.clone());
    let peer = Peer::new(move |request| {
        let mut reply = json!({"jsonrpc": "2.0", "id": request["id"]});
        match answer(request, token.wait(), &mut joined.lock().unwrap()) {
            Ok(result) => reply["result"] = result,
            Err(code) => reply["error"] = json!({"code": code, "message": "no"}),
        }
        let exchange = format!("{request}{reply}");
        made.iter()
            .for_each(|fault| spoil(fault, &exchange, &mut reply));
        if reply.is_null() {
            Does::Silence
        } else {
            Does::Body(reply.to_string())
        }
    });
    let mut meta = json!({"display_name": "A", "version": "1.0.0", "game_types": ["even_odd"]});
    meta["contact_endpoint"] = json!(peer.url);
    let params = message(
        "LEAGUE_REGISTER_REQUEST",
        "player:a",
        json!({"player_meta": meta}),
    );
    let mut request =
        json!({"jsonrpc": "2.0", "method": "register_player", "params": params, "id": 1});
    faults
        .iter()
        .for_each(|fault| spoil(fault, "register", &mut request));
    let (_, body) = support::http("POST", manager, "", request.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&body).unwrap();
    own.set(support::token_of(&answer["result"])).unwrap();
    peer
}

/// What a good player answers; `matches` has the tokens of its matches.
fn answer(request: &Value, own: &str, matches: &mut HashMap<String, Value>) -> Result<Value, i32> {
    let (asked, match_id) = (
        &request["params"],
        request["params"]["match_id"].as_str().unwrap_or_default(),
    );
    let is_true = matches
        .get(match_id)
        .is_some_and(|token| *token == asked["auth_token"]);
    let count = format!("{} {match_id} {}", said(request), asked["x"].is_string()); // so that a fault can come later
    let times = matches.get(&count).and_then(Value::as_u64).unwrap_or(0) + 1;
    matches.insert(count, json!(times));
    let after = matches.contains_key("ping  true");
    let refusal = |code| {
        message(
            "LEAGUE_ERROR",
            "player:P90",
            json!({"error_code": code, "error_description": "no"}),
        )
    };
    let reply = |message_type: &str, body: Value| {
        let mut reply = message(message_type, "player:P90", body);
        ["match_id", "conversation_id", "auth_token"]
            .iter()
            .for_each(|key| reply[*key] = asked[*key].clone());
        (reply["player_id"], reply["times"]) = (json!("P90"), json!(times));
        reply
    };
    match said(request) {
        _ if request.is_null() => Err(-32700),
        "ping" => Ok(json!({"after": after})),
        "tools/list" => Ok(json!({"tools": [{"name": "choose_parity"}]})),
        "GAME_INVITATION" if is_true => Ok(reply(
            "GAME_JOIN_ACK",
            json!({"accept": true, "arrival_timestamp": now()}),
        )),
        "CHOOSE_PARITY_CALL" if is_true => Ok(reply(
            "CHOOSE_PARITY_RESPONSE",
            json!({"parity_choice": "odd"}),
        )),
        "GAME_OVER" | "GAME_ERROR" if is_true => Ok(json!({"status": "ok"})),
        "GAME_INVITATION" | "CHOOSE_PARITY_CALL" => Ok(refusal("E012")),
        "no_such_method" => Err(-32601),
        _ if asked["auth_token"] != own => Ok(refusal("E012")),
        "ROUND_ANNOUNCEMENT" => {
            let entry = &asked["matches"][0];
            matches.insert(
                entry["match_id"].as_str().unwrap().into(),
                asked["match_token"].clone(),
            );
            Ok(json!({"status": "ok"}))
        }
        _ => Ok(json!({"status": "ok"})),
    }
}

#[test]
fn a_player_with_one_fault_fails_that_check_alone() {
    let (none, error, ok) = (
        Value::Null,
        json!({"error": {"code": -32603}, "id": 90}),
        json!({"status": "ok"}),
    );
    let rows = [
        (
            "register",
            "/jsonrpc",
            json!("1.0"),
            "FAIL it registers by JSON-RPC 2.0, with an id",
        ),
        (
            "register",
            "/method",
            json!("register"),
            "FAIL its method is that of its kind",
        ),
        (
            "register",
            "/params/message_type",
            json!("REGISTER"),
            "FAIL message_type is a registration",
        ),
        (
            "register",
            "/params/protocol",
            json!("league.v1"),
            "FAIL protocol is league.v2",
        ),
        (
            "register",
            "/params/sender",
            json!("a"),
            "FAIL sender names its kind",
        ),
        (
            "register",
            "/params/conversation_id",
            json!(""),
            "FAIL conversation_id is a text",
        ),
        (
            "register",
            "/params/timestamp",
            json!("2025-01-15T10:00:00+02:00"),
            "FAIL timestamp is UTC",
        ),
        (
            "register",
            "/params/timestamp",
            json!("2025-01-15T10:00:00Z"),
            "warn its clock is right",
        ),
        (
            "register",
            "/params/player_meta",
            json!("me"),
            "FAIL it says what it is",
        ),
        (
            "register",
            "/params/player_meta/display_name",
            json!(""),
            "FAIL display_name",
        ),
        (
            "register",
            "/params/player_meta/version",
            json!("1.0"),
            "FAIL version",
        ),
        (
            "register",
            "/params/player_meta/game_types",
            json!("even_odd"),
            "FAIL game_types",
        ),
        (
            "register",
            "/params/player_meta/contact_endpoint",
            json!("localhost:8101"),
            "FAIL contact_endpoint",
        ),
        (
            "register",
            "/params/player_meta/contact_endpoint",
            json!("http://127.0.0.1:1/mcp"),
            "FAIL somebody answers at its contact_endpoint",
        ),
        (
            "register",
            "/params/player_meta/protocol_version",
            json!("1.0.0"),
            "FAIL protocol_version, if any",
        ),
        (
            "ROUND_ANNOUNCEMENT",
            "",
            error.clone(),
            "FAIL ROUND_ANNOUNCEMENT is taken",
        ),
        (
            "GAME_INVITATION",
            "",
            none.clone(),
            "FAIL GAME_INVITATION is answered in time",
        ),
        (
            "GAME_INVITATION",
            "/result/match_id",
            json!("R1"),
            "FAIL GAME_JOIN_ACK is exact",
        ),
        (
            "GAME_INVITATION",
            "/result/arrival_timestamp",
            json!("now"),
            "FAIL arrival_timestamp is UTC",
        ),
        (
            "GAME_INVITATION",
            "/result/accept",
            json!("true"),
            "FAIL accept is true, a boolean",
        ),
        (
            "CHOOSE_PARITY_CALL",
            "",
            none.clone(),
            "FAIL CHOOSE_PARITY_CALL is answered in time",
        ),
        (
            "CHOOSE_PARITY_CALL",
            "/result/player_id",
            json!("P9"),
            "FAIL CHOOSE_PARITY_RESPONSE is exact",
        ),
        (
            "CHOOSE_PARITY_CALL",
            "/result/parity_choice",
            json!(0),
            "FAIL parity_choice is even or odd",
        ),
        (
            "GAME_INVITATION",
            "/jsonrpc",
            json!(2),
            "FAIL replies are JSON-RPC 2.0 with HTTP 200",
        ),
        (
            "CHOOSE_PARITY_CALL",
            "/result/protocol",
            json!("v2"),
            "FAIL replies say protocol league.v2",
        ),
        (
            "GAME_INVITATION",
            "/result/sender",
            json!("P90"),
            "FAIL replies say who sends them",
        ),
        (
            "CHOOSE_PARITY_CALL",
            "/result/timestamp",
            json!(1),
            "FAIL replies have a UTC timestamp",
        ),
        (
            "GAME_INVITATION",
            "/result/conversation_id",
            json!("new"),
            "FAIL replies stay in the conversation",
        ),
        (
            "CHOOSE_PARITY_CALL",
            "/result/auth_token",
            json!("mine"),
            "warn replies repeat the match's token",
        ),
        (
            "CHOOSE_PARITY_CALL \"times\":2",
            "/result/parity_choice",
            json!("even"),
            "warn the same call gets the same choice",
        ),
        (
            "CHOOSE_PARITY_CALL R1M1 E012",
            "/result",
            ok.clone(),
            "warn a call with a wrong token is refused",
        ),
        (
            "GAME_INVITATION E012",
            "/result",
            ok.clone(),
            "warn an invitation without the announced token is refused",
        ),
        (
            "CHOOSE_PARITY_CALL R9M1",
            "/result",
            ok.clone(),
            "warn a call for an unknown match is refused",
        ),
        (
            "GAME_INVITATION x_later",
            "",
            error.clone(),
            "FAIL unknown fields are ignored",
        ),
        (
            "CHOOSE_PARITY_CALL R5M1",
            "/result/match_id",
            json!("R4M1"),
            "warn two matches at once are kept apart",
        ),
        (
            "CHOOSE_PARITY_CALL R6M1",
            "",
            none.clone(),
            "FAIL a call is answered, whose caller gave up before",
        ),
        (
            "\"GAME_ERROR\"",
            "",
            error.clone(),
            "FAIL GAME_ERROR is taken",
        ),
        ("GAME_OVER", "", none.clone(), "FAIL GAME_OVER is taken"),
        (
            "LEAGUE_STANDINGS_UPDATE",
            "",
            none.clone(),
            "FAIL LEAGUE_STANDINGS_UPDATE with 100 players is taken",
        ),
        (
            "ROUND_COMPLETED \"id\":90",
            "",
            error.clone(),
            "FAIL ROUND_COMPLETED is taken",
        ),
        (
            "ROUND_COMPLETED \"id\":4711",
            "/id",
            json!("4711"),
            "FAIL an integer id is echoed",
        ),
        (
            "ROUND_COMPLETED \"id\":\"check\"",
            "/id",
            json!(1),
            "FAIL a string id is echoed",
        ),
        (
            "ROUND_COMPLETED \"auth_token\":\"x\"",
            "/result",
            ok.clone(),
            "warn a notice with a wrong token is refused",
        ),
        (
            "ROUND_COMPLETED \"auth_token\":null",
            "/result",
            ok.clone(),
            "warn a notice without a token is refused",
        ),
        (
            "\"method\":\"ping\" \"id\":90",
            "",
            error.clone(),
            "warn ping is answered",
        ),
        (
            "no_such_method",
            "",
            json!({"result": {}}),
            "FAIL an unknown method is an error",
        ),
        ("-32700", "", none.clone(), "FAIL broken JSON is an error"),
        ("\"after\":true", "", none, "FAIL it survives a large body"),
        ("tools/list", "", error.clone(), "warn its tools are listed"),
        (
            "LEAGUE_COMPLETED",
            "",
            error,
            "FAIL LEAGUE_COMPLETED is taken",
        ),
    ];
    let names: Vec<String> = rows.iter().map(|row| row.3[5..].to_string()).collect();
    let unseen = [
        ("FAIL it says what it is", 41),
        ("FAIL contact_endpoint", 36),
        ("FAIL somebody answers at its contact_endpoint", 35),
        ("FAIL GAME_INVITATION is answered in time", 21),
        ("FAIL CHOOSE_PARITY_CALL is answered in time", 11),
    ];
    let rows = Mutex::new(rows.to_vec());
    let work = || {
        while let Some((words, path, value, bad)) = { rows.lock().unwrap().pop() } {
            let world = world();
            let (mut check, url) = examination(&world);
            let _player = player(&url, vec![(words, path, value)]);
            let (all, came) = findings(&mut check);
            assert_eq!(came, [bad], "{all:#?}");
            let unseen = unseen
                .iter()
                .find(|(name, _)| *name == bad)
                .map_or(0, |(_, count)| *count);
            assert_eq!(skipped(&all), unseen, "{all:#?}");
            let untested = all
                .iter()
                .find(|it| !names.contains(&it["check"].as_str().unwrap().to_string()));
            assert_eq!(untested, None, "every check has a fault that it sees");
        }
    };
    thread::scope(|scope| (0..6).for_each(|_| drop(scope.spawn(work))));
}

/// A scripted referee that plays every match that it is given, with one fault.
fn referee(manager: &str, fault: &'static str) -> Peer {
    let (own, manager) = (Arc::new(OnceLock::<String>::new()), manager.to_string());
    let (token, to) = (Arc::clone(&own), manager.clone());
    let peer = Peer::new(move |request| {
        let asked = request["params"].clone();
        let own = token.wait().clone(); // we may be called before we have read that we are in
        let refused = message(
            "LEAGUE_ERROR",
            "referee:REF90",
            json!({"error_code": "E012", "error_description": "no"}),
        );
        let error = |code| {
            Does::Body(
                json!({"jsonrpc": "2.0", "error": {"code": code}, "id": request["id"]}).to_string(),
            )
        };
        match said(request) {
            _ if request.is_null() => error(-32700),
            "no_such_method" => error(-32601),
            "ping" => Does::Answer(json!({})),
            "tools/list" => Does::Answer(json!({"tools": [{"name": "notify_round"}]})),
            _ if asked["auth_token"] != own => Does::Answer(refused),
            "ROUND_ANNOUNCEMENT" if fault == "deaf" => Does::Answer(refused),
            "ROUND_ANNOUNCEMENT" => {
                let to = to.clone();
                thread::spawn(move || {
                    if fault != "idle" {
                        play(&to, &own, &asked["matches"][0], fault)
                    }
                });
                Does::Answer(json!({"status": "ok"}))
            }
            _ => Does::Answer(json!({"status": "ok"})),
        }
    });
    let at_once = if fault == "eleven" { 11 } else { 2 };
    let answer = support::register_referee(&manager, "referee:a", &peer.url, at_once);
    own.set(support::token_of(&answer)).unwrap();
    peer
}

/// Posts a message: what is answered within a time, if anything.
fn ask(url: &Value, whole: &Value, limit: Duration) -> Option<Value> {
    let body = json!({"jsonrpc": "2.0", "method": whole["message_type"], "params": whole, "id": 1})
        .to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = raw(url.as_str()?, [head, body].concat().as_bytes(), limit);
    let answer: Value =
        serde_json::from_slice(&answer[answer.windows(4).position(|it| it == b"\r\n\r\n")? + 4..])
            .ok()?;
    answer.get("result").cloned()
}

/// One match, as the scripted referee plays it.
fn play(manager: &str, own: &str, entry: &Value, fault: &'static str) {
    let (match_id, sides, ids) = (
        entry["match_id"].as_str().unwrap(),
        ["A", "B"],
        ["P91", "P92"],
    );
    let tell = |seat: usize, message_type: &str, body: Value| {
        let mut whole = message(message_type, "referee:REF90", body);
        whole["auth_token"] = entry[format!("player_{}_token", sides[seat])].clone();
        whole["player_id"] = json!(ids[seat]);
        for (key, value) in [
            ("match_id", match_id),
            ("game_type", "even_odd"),
            ("conversation_id", "conv"),
        ] {
            whole[key] = json!(value);
        }
        whole["league_id"] = json!("league_2025_even_odd");
        match (fault, message_type) {
            ("own token", _) => whole["auth_token"] = json!(own),
            ("opponent", "GAME_INVITATION") => whole["opponent_id"] = json!(ids[seat]),
            ("deadline", "CHOOSE_PARITY_CALL") => whole["deadline"] = json!("soon"),
            ("sender", "GAME_OVER") => whole["sender"] = json!("referee"),
            ("conversation", "GAME_OVER") => whole["conversation_id"] = json!("another"),
            ("winner", "GAME_OVER") if match_id == "R1M1" => {
                whole["game_result"]["winner_player_id"] = json!("P92")
            }
            _ => {}
        }
        let late = fault == "hasty" && match_id == "R2M1" && message_type == "CHOOSE_PARITY_CALL";
        let limit = Duration::from_millis(if late { 100 } else { 1000 });
        ask(
            &entry[format!("player_{}_endpoint", sides[seat])],
            &whole,
            limit,
        )
    };
    let both = |in_turn: bool, act: &(dyn Fn(usize) -> Option<Value> + Sync)| {
        thread::scope(|scope| {
            let first = scope.spawn(|| act(0));
            let first = if in_turn {
                Err(first.join().unwrap())
            } else {
                Ok(first)
            };
            let second = act(1);
            [
                first.map_or_else(|done| done, |running| running.join().unwrap()),
                second,
            ]
        })
    };
    let invite = |seat: usize| {
        let body = json!({"round_id": match_id[1..2].parse::<u32>().unwrap(), "role_in_match": "PLAYER_A", "opponent_id": ids[1 - seat]});
        tell(seat, "GAME_INVITATION", body)
    };
    let choose = |seat: usize| {
        for attempt in 1..=if fault == "strict" { 1 } else { 2 } {
            let choice =
                tell(seat, "CHOOSE_PARITY_CALL", json!({"deadline": now()}))?["parity_choice"]
                    .clone();
            if choice == "even" || choice == "odd" {
                return Some(choice);
            }
            let body = json!({"error_code": "E004", "error_description": "INVALID_PARITY_CHOICE"});
            let _ = (fault != "quiet").then(|| tell(seat, "GAME_ERROR", body));
            if fault == "forgiving" && attempt == 2 {
                return Some(json!("even"));
            }
        }
        None
    };
    let joined = both(fault == "invites in turn", &invite);
    let chosen = if joined.iter().all(Option::is_some) {
        both(fault == "asks in turn", &choose)
    } else {
        [None, None]
    };
    let real = chosen.iter().all(Option::is_some);
    let (status, number, parity) = if real {
        ("WIN", json!(8), json!("even"))
    } else {
        ("TECHNICAL_LOSS", json!(null), json!(null))
    };
    let winner = match (real, fault) {
        (true, _) => json!("P91"),
        (_, "nobody") if match_id == "R3M1" => json!(null),
        _ => json!("P92"),
    };
    let choices = json!({"P91": chosen[0], "P92": chosen[1]});
    let result = json!({"status": status, "winner_player_id": winner, "drawn_number": number, "number_parity": parity, "choices": choices});
    let over = |seat| {
        (fault != "half" || seat == 1)
            .then(|| tell(seat, "GAME_OVER", json!({"game_result": result})))?
    };
    both(false, &over);
    let mut report = support::report("referee:REF90", Some(own), match_id, ids);
    report["conversation_id"] = json!("conv");
    if fault == "points" {
        report["result"]["score"]["P91"] = json!(2);
    }
    if fault == "no token" {
        report.as_object_mut().unwrap().remove("auth_token");
    }
    while ask(&json!(manager), &report, Duration::from_secs(1)).is_none() && fault != "once" {}
}

#[test]
fn a_referee_with_one_fault_fails_that_check_alone() {
    let rows = [
        ("none", ""),
        ("eleven", "FAIL max_concurrent_matches"),
        (
            "deaf",
            "FAIL ROUND_ANNOUNCEMENT with a match of its own is taken",
        ),
        ("idle", "FAIL both players are invited"),
        ("invites in turn", "FAIL both are invited at once"),
        ("asks in turn", "FAIL both are asked at once"),
        ("opponent", "FAIL GAME_INVITATION is exact"),
        ("deadline", "FAIL CHOOSE_PARITY_CALL is exact"),
        ("sender", "FAIL its messages have a whole envelope"),
        ("conversation", "FAIL one match is one conversation"),
        ("half", "FAIL GAME_OVER is told to both alike"),
        ("winner", "FAIL GAME_OVER names the right winner"),
        (
            "points",
            "FAIL MATCH_RESULT_REPORT says the same, with the league's points",
        ),
        ("no token", "FAIL MATCH_RESULT_REPORT carries its own token"),
        (
            "once",
            "FAIL MATCH_RESULT_REPORT is repeated until it is acknowledged",
        ),
        (
            "own token",
            "warn players are shown their match's token, never its own",
        ),
        ("hasty", "FAIL a slow player's choice counts"),
        ("nobody", "FAIL a silent player loses technically"),
        ("quiet", "FAIL a player who chooses \"Even\" is told E004"),
        ("strict", "FAIL and is asked again"),
        ("forgiving", "FAIL and loses technically in the end"),
    ];
    thread::scope(|scope| {
        for (fault, bad) in rows {
            scope.spawn(move || {
                let world = world();
                let (mut check, url) = examination(&world);
                let _referee = referee(&url, fault);
                let (all, came) = findings(&mut check);
                assert_eq!(came.join(", "), bad, "{fault}: {all:#?}");
                let unseen = if fault == "deaf" {
                    18
                } else {
                    17 * usize::from(fault == "idle")
                };
                assert_eq!(skipped(&all), unseen, "{fault}: {all:#?}");
                let own = all.iter().map(|it| it["check"].as_str().unwrap());
                let own = own.skip_while(|name| *name != "max_concurrent_matches");
                let mut own = own.take_while(|name| *name != "ROUND_COMPLETED is taken");
                let is_tested = |name: &str| rows.iter().any(|(_, bad)| bad.get(5..) == Some(name));
                assert_eq!(
                    own.find(|name| !is_tested(name)),
                    None,
                    "every check has a fault that it sees"
                );
            });
        }
    });
}
