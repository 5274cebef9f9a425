//! Referees that die, refuse, lie or come late, and managers that are away: every match is recorded once, and no
//! player pays for it.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::channel,
    },
    thread,
};
use support::*;

const LEAGUE: &str = "league_2025_even_odd";

/// Two players whose choices are even and odd; `held` requests wait at the gate.
fn players(manager: &str, held: fn(&Value) -> bool) -> ([Peer; 2], Gate) {
    let gate = Gate::default();
    let player = |id: &'static str, choice: &'static str| {
        let door = gate.clone();
        let peer = Peer::new(move |request| {
            if id == "P01" && held(&request["params"]) {
                door.pass();
            }
            good_player(id, choice, request)
        });
        assert_eq!(register_player(manager, &format!("player:{id}"), &peer.url)["player_id"], id);
        peer
    };
    let both = [player("P01", "even"), player("P02", "odd")];
    (both, gate)
}

fn recorded(world: &World) -> Vec<Value> {
    world.journal().into_iter().filter(|line| line["event"] == "Recorded").collect()
}

/// The one result of the match: who reported it, and that nobody lost technically.
fn check_one_result(world: &World, referee: &str) {
    let all = recorded(world);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["referee_id"], referee, "{all:?}");
    assert!(!all[0]["result"]["details"]["drawn_number"].is_null(), "nobody is punished: {all:?}");
}

/// To whom R1M1 was given at first.
fn first_referee(world: &World) -> Value {
    let journal = world.journal();
    journal.iter().find(|line| line["event"] == "Assigned").unwrap()["orders"][0]["referee_id"].clone()
}

#[test]
fn a_referee_killed_in_any_state_of_a_match_is_replaced() {
    let states: [fn(&Value) -> bool; 3] = [
        |asked| asked["message_type"] == "GAME_INVITATION", // before the join
        |asked| asked["message_type"] == "CHOOSE_PARITY_CALL", // between join and choice
        |asked| asked["message_type"] == "GAME_OVER",       // after the draw, before the report
    ];
    for (state, held) in ["GAME_INVITATION", "CHOOSE_PARITY_CALL", "GAME_OVER"].into_iter().zip(states) {
        let world = World::new(&[]);
        let mut manager = world.manager(&["--players", "2", "--referees", "2"]);
        let mut first = world.referee(&manager, "REF01", &[]);
        let mut second = world.referee(&manager, "REF02", &[]);
        let ([alpha, _beta], gate) = players(&manager.url(), held);
        alpha.first(state);
        first.kill();
        gate.open();
        assert!(manager.wait().success() && second.wait().success(), "{state}");
        check_one_result(&world, "REF02");
        assert_eq!(first_referee(&world), "REF01", "{state}");
        // The newer invitation is another conversation, under another token, and the last result is its.
        let invitations = alpha.received("GAME_INVITATION");
        assert_eq!(invitations.len(), 2, "{state}");
        assert_ne!(invitations[0]["auth_token"], invitations[1]["auth_token"], "{state}");
        let conversation = &invitations[1]["conversation_id"];
        assert_eq!(&alpha.received("GAME_OVER").last().unwrap()["conversation_id"], conversation, "{state}");
        assert!(manager.output().contains("REF01 is lost: its matches are announced anew"), "{state}");
    }
}

#[test]
fn a_referee_killed_after_its_report_has_done_its_work() {
    let held: fn(&Value) -> bool = |asked| asked["message_type"] == "LEAGUE_STANDINGS_UPDATE";
    let world = World::new(&[(&format!("leagues/{LEAGUE}.json"), "/scheduling/cycles", json!(2))]);
    let mut manager = world.manager(&["--players", "2", "--referees", "2"]);
    let (mut first, _second) = (world.referee(&manager, "REF01", &[]), world.referee(&manager, "REF02", &[]));
    let (_players, gate) = players(&manager.url(), held);
    until("R1M1 is recorded", || (!recorded(&world).is_empty()).then_some(()));
    first.kill();
    gate.open();
    assert!(manager.wait().success());
    let who: Vec<_> =
        recorded(&world).into_iter().map(|it| (it["match_id"].clone(), it["referee_id"].clone())).collect();
    assert_eq!(who.len(), 2);
    assert_eq!(who[0], (json!("R1M1"), json!("REF01")));
    assert_eq!(who[1].0, "R2M1");
}

/// How a referee does not do its work: what it answers to a method, before and after it was given a match.
type Fault = (&'static str, fn(&str, bool) -> Does);

const FAULTS: [Fault; 5] = [
    ("breaks the connection", |method, _| if method == "notify_round" { Does::Close } else { ok() }),
    ("takes the match and vanishes", |method, given| if method == "ping" && given { Does::Close } else { ok() }),
    ("answers with LEAGUE_ERROR", |_, _| {
        let error = json!({"error_code": "E003", "error_description": "MISSING_REQUIRED_FIELD"});
        Does::Answer(message("LEAGUE_ERROR", "referee:REF01", error))
    }),
    ("answers with a JSON-RPC error", |_, _| rpc_error(-32000)),
    ("knows no method at all", |_, _| rpc_error(-32601)),
];

fn ok() -> Does {
    Does::Answer(json!({"status": "ok"}))
}

fn rpc_error(code: i32) -> Does {
    Does::Body(json!({"jsonrpc": "2.0", "error": {"code": code, "message": "no"}, "id": 1}).to_string())
}

#[test]
fn the_matches_of_a_referee_that_does_not_do_its_work_go_to_another() {
    for (fault, answer) in FAULTS {
        let world = World::new(&[]);
        let mut manager = world.manager(&["--players", "2", "--referees", "2"]);
        let given = AtomicBool::new(false);
        let first = Peer::new(move |request| match request["params"]["message_type"].as_str() {
            Some("LEAGUE_COMPLETED" | "ROUND_COMPLETED") => ok(),
            message_type => {
                given.fetch_or(message_type == Some("ROUND_ANNOUNCEMENT"), Ordering::SeqCst);
                answer(request["method"].as_str().unwrap(), given.load(Ordering::SeqCst))
            }
        });
        let token = token_of(&register_referee(&manager.url(), "referee:REF01", &first.url, 2));
        let mut second = world.referee(&manager, "REF02", &[]);
        let (_players, _) = players(&manager.url(), |_| false);
        assert!(manager.wait().success() && second.wait().success(), "{fault}");
        check_one_result(&world, "REF02");
        assert_eq!(first_referee(&world), "REF01", "{fault}");
        let requests = first.requests.lock().unwrap();
        let started = requests.iter().find(|request| request["method"] == "start_match").map(|it| &it["params"]);
        assert_eq!(started.is_some(), fault == "knows no method at all", "{fault}");
        if let Some(start) = started {
            let came = [&start["auth_token"], &start["league_id"], &start["round_id"], &start["match"]["match_id"]];
            assert_eq!(came, [&json!(token), &json!(LEAGUE), &json!(1), &json!("R1M1")]);
        }
    }
}

#[test]
fn a_referee_that_only_knows_start_match_keeps_its_match() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "2", "--referees", "2"]);
    let first = Peer::new(|request| match request["params"]["message_type"] == "ROUND_ANNOUNCEMENT" {
        true => rpc_error(-32601),
        false => ok(),
    });
    let token = token_of(&register_referee(&manager.url(), "referee:REF01", &first.url, 2));
    let _second = world.referee(&manager, "REF02", &[]);
    let (_players, _) = players(&manager.url(), |_| false);
    until("start_match comes", || {
        first.requests.lock().unwrap().iter().any(|request| request["method"] == "start_match").then_some(())
    });
    let answer = send(&manager.url(), &report("referee:REF01", Some(&token), "R1M1", ["P01", "P02"]));
    assert_eq!(answer["status"], "recorded", "{answer}");
    assert!(manager.wait().success());
    check_one_result(&world, "REF01");
}

fn health(manager: &Agent) -> Value {
    let (status, body) = http("GET", &manager.url().replace("/mcp", "/health"), "", b"");
    assert_eq!(status, 200);
    serde_json::from_str(&body).unwrap()
}

#[test]
fn without_a_referee_the_league_waits_and_goes_on_when_one_comes() {
    const NOBODY: &str = "no referee is left";
    for back in ["REF01", "REF02"] {
        let world = World::new(&[]);
        let mut manager = world.manager(&["--players", "2"]);
        let mut first = world.referee(&manager, "REF01", &[]);
        let held: fn(&Value) -> bool = |asked| asked["message_type"] == "CHOOSE_PARITY_CALL";
        let ([alpha, _beta], gate) = players(&manager.url(), held);
        alpha.first("CHOOSE_PARITY_CALL");
        let late = register_referee(&manager.url(), "referee:REF02", "http://127.0.0.1:1/mcp", 1);
        assert_eq!((&late["status"], &late["error_code"]), (&json!("REJECTED"), &json!("E019")), "one is there");
        first.kill();
        let waits = |status: &Value| status["reason"].as_str().is_some_and(|reason| reason.contains(NOBODY));
        until("the league waits", || waits(&health(&manager)).then_some(()));
        let status = send(&manager.url(), &message("START_LEAGUE", "launcher", json!({"league_id": LEAGUE})));
        assert!(waits(&status) && status["status"] == "running", "{status}");
        manager.line(NOBODY);
        gate.open();
        let mut referee = world.referee(&manager, back, &[]);
        referee.line(&format!("is {back}"));
        manager.line("the league goes on");
        assert!(manager.wait().success() && referee.wait().success());
        check_one_result(&world, back);
    }
}

/// Waits until a finished match waits in the outbox of REF01.
fn finished(world: &World) -> Value {
    world.data("referees/REF01/R1M1.json")
}

#[test]
fn a_finished_match_is_reported_when_both_are_there_again_and_not_played_again() {
    let held: fn(&Value) -> bool = |asked| asked["message_type"] == "GAME_OVER";
    for dies in ["referee", "manager"] {
        let world = World::new(&[]);
        let arguments = ["--players", "2"];
        let mut manager = world.manager(&arguments);
        let mut referee = world.referee(&manager, "REF01", &[]);
        let ([alpha, beta], gate) = players(&manager.url(), held);
        alpha.first("GAME_OVER");
        let outcome = finished(&world)["report"]["result"].clone();
        match dies {
            "referee" => referee.kill(),
            _ => manager.kill(),
        }
        gate.open();
        match dies {
            "referee" => referee = world.referee(&manager, "REF01", &[]),
            _ => manager.restart(&world, &arguments),
        }
        assert!(manager.wait().success() && referee.wait().success(), "{dies}");
        check_one_result(&world, "REF01");
        assert_eq!(recorded(&world)[0]["result"], outcome, "{dies}");
        assert_eq!([&alpha, &beta].map(|player| player.received("GAME_INVITATION").len()), [1, 1], "{dies}");
        assert!(files(&world.folder.join("data/referees")).is_empty(), "{dies}");
    }
}

#[test]
fn a_token_that_expires_while_a_match_is_played_costs_nothing() {
    let world = World::new(&[("system.json", "/security/token_ttl_hours", json!(0.0003))]); // a good second
    let mut manager = world.manager(&["--players", "2"]);
    let mut referee = world.referee(&manager, "REF01", &[]);
    let ([alpha, _beta], gate) = players(&manager.url(), |asked| asked["message_type"] == "GAME_OVER");
    alpha.first("GAME_OVER");
    let expires = world.journal()[0]["expires"].as_str().unwrap().to_string();
    until("the referee's token expires", || (now() > expires).then_some(()));
    gate.open();
    assert!(manager.wait().success() && referee.wait().success());
    check_one_result(&world, "REF01");
    assert_eq!(alpha.received("GAME_INVITATION").len(), 1, "kept, and reported with the fresh token");
}

#[test]
fn a_stale_outbox_never_counts() {
    for older_card in [false, true] {
        let world = World::new(&[]);
        let mut manager = world.manager(&["--players", "2"]);
        keep(&world, "referees/REF01/R1M1.json", kept_report(["P02", "P01"]));
        if older_card {
            keep(&world, "agents/REF01.json", card(&manager.url(), "tok-ref01-0123456789abcdef0123456789abcdef"));
        }
        let mut referee = world.referee(&manager, "REF01", &[]);
        referee.line("is REF01");
        let (_players, _) = players(&manager.url(), |_| false);
        assert!(manager.wait().success() && referee.wait().success());
        check_one_result(&world, "REF01");
        assert!(world.logs().iter().all(|line| line["conversation_id"] != "conv-kept"), "card: {older_card}");
        let aside = files(&world.folder.join("data"));
        let kept = aside.iter().find(|path| path.ends_with("R1M1.json") && path.to_string_lossy().contains("/REF01~"));
        assert!(fs::read_to_string(kept.unwrap()).unwrap().contains("conv-kept"));
    }
}

#[test]
fn what_comes_with_the_next_token_waits_for_it() {
    let world = Arc::new(World::new(&[]));
    let (here, registrations, (told, answers)) = (Arc::clone(&world), AtomicUsize::new(0), channel());
    let manager = Peer::new(move |request| {
        let (asked, next) = (&request["params"], TOKEN.replace('0', "1"));
        let (message_type, body) = match asked["message_type"].as_str() {
            Some("REFEREE_REGISTER_REQUEST") => {
                let again = registrations.fetch_add(1, Ordering::SeqCst) > 0;
                if again {
                    let url = asked["referee_meta"]["contact_endpoint"].as_str().unwrap().to_string();
                    let body = json!({"auth_token": next, "league_id": LEAGUE, "round_id": 1, "matches": []});
                    let told = told.clone();
                    thread::spawn(move || {
                        told.send(send(&url, &message("ROUND_ANNOUNCEMENT", "league_manager", body)))
                    });
                    let there = |line: &Value| line["message_type"] == "ROUND_ANNOUNCEMENT";
                    until("it overtakes the answer", || here.logs().iter().any(there).then_some(()));
                }
                let token = if again { &next } else { TOKEN };
                let body = json!({"status": "ACCEPTED", "referee_id": "REF01", "reason": null, "auth_token": token});
                ("REFEREE_REGISTER_RESPONSE", body)
            }
            _ => {
                let context = json!({"expired_at": now()});
                let error =
                    json!({"error_code": "E012", "error_description": "AUTH_TOKEN_INVALID", "context": context});
                ("LEAGUE_ERROR", error)
            }
        };
        Does::Answer(message(message_type, "league_manager", body))
    });
    keep(&world, "referees/REF01/R1M1.json", kept_report(["P01", "P02"]));
    keep(&world, "agents/REF01.json", card(&manager.url, TOKEN));
    let _referee = world.start("referee", &["--manager", &manager.url, "--referee-id", "REF01"]);
    assert_eq!(answers.recv().unwrap()["status"], "ok");
}

/// Puts a file into the data folder.
fn keep(world: &World, path: &str, value: Value) {
    let path = world.folder.join("data").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, value.to_string()).unwrap();
}

/// R1M1 as it lies in an outbox.
fn kept_report(players: [&str; 2]) -> Value {
    json!({"conversation_id": "conv-kept", "report": report("referee:REF01", None, "R1M1", players)})
}

/// The card of REF01.
fn card(manager: &str, token: &str) -> Value {
    let endpoint = "http://localhost:8001/mcp";
    json!({"agent_id": "REF01", "token": token, "league_id": LEAGUE, "manager": manager, "endpoint": endpoint})
}

/// A manager whose every word is the test's: it lets REF01 in, and acknowledges what it reports.
fn scripted_manager() -> Peer {
    Peer::new(|request| {
        let asked = &request["params"];
        Does::Answer(match asked["message_type"].as_str() {
            Some("REFEREE_REGISTER_REQUEST") => {
                let body = json!({"status": "ACCEPTED", "referee_id": "REF01", "reason": null, "auth_token": TOKEN});
                message("REFEREE_REGISTER_RESPONSE", "league_manager", body)
            }
            _ => {
                let body = json!({"match_id": asked["match_id"], "status": "recorded"});
                message("MATCH_RESULT_ACK", "league_manager", body)
            }
        })
    })
}

const TOKEN: &str = "tok-ref01-00000000000000000000000000000000";
const ELSEWHERE: &str = "http://127.0.0.1:1/mcp";

/// The announcement of matches between P01 and P02: (match, endpoint of its referee).
fn announcement(players: [&Peer; 2], matches: &[(&str, &str)]) -> Value {
    let entry = |(match_id, endpoint): &(&str, &str)| {
        json!({
            "match_id": match_id, "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
            "referee_endpoint": endpoint, "player_A_endpoint": players[0].url, "player_B_endpoint": players[1].url,
            "player_A_token": format!("tok-p01-{match_id}"), "player_B_token": format!("tok-p02-{match_id}"),
        })
    };
    let matches: Vec<Value> = matches.iter().map(entry).collect();
    let body = json!({"auth_token": TOKEN, "league_id": LEAGUE, "round_id": 1, "matches": matches});
    message("ROUND_ANNOUNCEMENT", "league_manager", body)
}

fn scripted_player(id: &'static str, held: fn(&Value) -> bool, gate: &Gate) -> Peer {
    let door = gate.clone();
    Peer::new(move |request| {
        if held(&request["params"]) {
            door.pass();
        }
        good_player(id, "even", request)
    })
}

#[test]
fn a_match_given_to_somebody_else_is_dropped_and_a_reported_one_is_not_played_again() {
    let (world, manager, gate) = (World::new(&[]), scripted_manager(), Gate::default());
    let held: fn(&Value) -> bool = |asked| asked["message_type"] == "CHOOSE_PARITY_CALL" && asked["match_id"] == "R1M1";
    let alpha = scripted_player("P01", held, &gate);
    let beta = scripted_player("P02", |_| false, &gate);
    let mut referee =
        world.start("referee", &["--manager", &manager.url, "--referee-id", "REF01", "--max-concurrent-matches", "1"]);
    let own = referee.url();
    let announce = |matches: &[(&str, &str)]| {
        assert_eq!(send(&own, &announcement([&alpha, &beta], matches)), json!({"status": "ok"}));
    };
    let reported = |match_id: &str| {
        until(&format!("{match_id} is reported"), || {
            manager.received("MATCH_RESULT_REPORT").iter().any(|it| it["match_id"] == match_id).then_some(())
        });
    };
    announce(&[("R1M1", &own), ("R1M2", &own)]);
    alpha.first("CHOOSE_PARITY_CALL");
    announce(&[("R1M1", ELSEWHERE), ("R1M2", &own)]);
    gate.open();
    reported("R1M2"); // one match at a time: R1M1 is over for this referee
    announce(&[("R1M2", &own), ("R1M3", &own)]); // R1M2 is announced once more: it crossed the report
    reported("R1M3");
    until("R1M2 is reported again", || (manager.received("MATCH_RESULT_REPORT").len() == 3).then_some(()));
    let of = |peer: &Peer, message_type: &str| {
        let all = peer.received(message_type);
        all.iter().map(|it| it["match_id"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of(&manager, "MATCH_RESULT_REPORT"), ["R1M2", "R1M2", "R1M3"]);
    for player in [&alpha, &beta] {
        assert_eq!(of(player, "GAME_INVITATION"), ["R1M1", "R1M2", "R1M3"]);
        assert_eq!(of(player, "GAME_OVER"), ["R1M2", "R1M3"]);
        assert_eq!(of(player, "GAME_ERROR"), [""; 0]);
    }
    send(&own, &message("LEAGUE_COMPLETED", "league_manager", over(Some(TOKEN))));
    assert!(referee.wait().success());
}

#[test]
fn a_match_of_an_earlier_life_is_reported_and_not_played_again() {
    let (world, manager, gate) = (World::new(&[]), scripted_manager(), Gate::default());
    let players = ["P01", "P02"].map(|id| scripted_player(id, |_| false, &gate));
    keep(&world, "agents/REF01.json", card(&manager.url, TOKEN));
    keep(&world, "referees/REF01/R1M1.json", kept_report(["P01", "P02"]));
    let referee = world.start("referee", &["--manager", &manager.url, "--referee-id", "REF01"]);
    until("it is acknowledged", || files(&world.folder.join("data/referees")).is_empty().then_some(()));
    let own = referee.url();
    send(&own, &announcement([&players[0], &players[1]], &[("R1M1", &own), ("R1M2", &own)]));
    until("all is reported", || (manager.received("MATCH_RESULT_REPORT").len() == 3).then_some(()));
    let invitations = players[0].received("GAME_INVITATION");
    assert_eq!(invitations.iter().map(|it| &it["match_id"]).collect::<Vec<_>>(), ["R1M2"]);
}

fn over(token: Option<&str>) -> Value {
    let champion = json!({"player_id": "P01", "display_name": "Alpha", "points": 3});
    json!({
        "auth_token": token, "league_id": LEAGUE, "total_rounds": 1, "total_matches": 1, "champion": champion,
        "final_standings": [{"rank": 1, "player_id": "P01", "points": 3}],
    })
}

#[test]
fn a_referee_obeys_its_manager_alone_and_shows_no_choice_before_the_draw() {
    let (world, manager, gate) = (World::new(&[]), scripted_manager(), Gate::default());
    let alpha = scripted_player("P01", |asked| asked["message_type"] == "CHOOSE_PARITY_CALL", &gate);
    let beta = scripted_player("P02", |_| false, &gate);
    let mut referee = world.start("referee", &["--manager", &manager.url, "--referee-id", "REF01"]);
    let own = referee.url();
    referee.line("is REF01");
    let rows =
        [(None, "E011"), (Some("tok-ref01-0"), "E012"), (Some("tok-p01-00000000000000000000000000000000"), "E012")];
    for (token, code) in rows {
        let mut announced = announcement([&alpha, &beta], &[("R1M1", &own)]);
        announced["auth_token"] = json!(token);
        let start = json!({
            "auth_token": token, "league_id": LEAGUE, "round_id": 1, "match": announced["matches"][0],
        });
        let completed = message("LEAGUE_COMPLETED", "league_manager", over(token));
        for answer in
            [send(&own, &announced), send(&own, &completed), call(&own, "start_match", start)["result"].clone()]
        {
            assert_eq!(answer["error_code"], code, "{token:?}: {answer}");
        }
    }
    let state = || call(&own, "get_match_state", json!({"match_id": "R1M1"}))["result"].clone();
    assert_eq!(state()["error_code"], "E015", "no stranger's match was taken");
    send(&own, &announcement([&alpha, &beta], &[("R1M1", &own)]));
    alpha.first("CHOOSE_PARITY_CALL");
    until("P02 has answered", || {
        let answered = |line: &Value| line["message_type"] == "CHOOSE_PARITY_RESPONSE" && line["peer"] == "P02";
        world.logs().iter().any(answered).then_some(())
    });
    let during = state();
    assert_eq!((&during["state"], &during["result"]), (&json!("COLLECTING_CHOICES"), &Value::Null));
    let text = during.to_string();
    assert!(!text.contains("even") && !text.contains("tok-"), "{text}");
    gate.open();
    manager.first("MATCH_RESULT_REPORT");
    let after = state();
    assert_eq!((&after["state"], &after["result"]["choices"]["P02"]), (&json!("FINISHED"), &json!("even")));
    send(&own, &message("LEAGUE_COMPLETED", "league_manager", over(Some(TOKEN))));
    assert!(referee.wait().success());
}

#[test]
fn a_report_that_lies_changes_nothing() {
    let world = World::new(&[(&format!("leagues/{LEAGUE}.json"), "/scheduling/cycles", json!(2))]);
    let manager = world.manager(&["--players", "2", "--referees", "2"]);
    let url = manager.url();
    let first = listener();
    let mine = token_of(&register_referee(&url, "referee:REF01", &first.url, 1));
    let second = listener();
    let other = token_of(&register_referee(&url, "referee:REF02", &second.url, 1));
    let (_players, _) = players(&url, |_| false);
    first.first("ROUND_ANNOUNCEMENT");
    let honest = report("referee:REF01", Some(&mine), "R1M1", ["P01", "P02"]);
    let changed = |pointer: &str, value: Value| {
        let mut lie = honest.clone();
        *lie.pointer_mut(pointer).unwrap() = value;
        lie
    };
    let page = || fs::read(world.folder.join(format!("data/leagues/{LEAGUE}/standings.json"))).unwrap();
    let refuse = |what: &str, report: Value, code: &str| {
        let before = page();
        let answer = send(&url, &report);
        assert_eq!(answer["message_type"], "LEAGUE_ERROR", "{what}: {answer}");
        assert_eq!(answer["error_code"], code, "{what}: {answer}");
        assert_eq!(page(), before, "{what}");
    };
    world.table();
    refuse("unassigned", report("referee:REF02", Some(&other), "R1M1", ["P01", "P02"]), "E015");
    refuse("no such match", changed("/match_id", json!("R9M9")), "E015");
    refuse("not yet given to anybody", report("referee:REF01", Some(&mine), "R2M1", ["P01", "P02"]), "E015");
    refuse("wrong round", changed("/round_id", json!(2)), "E015");
    refuse("foreign league", changed("/league_id", json!("league_1999")), "E015");
    refuse("contradictory", changed("/result/details/drawn_number", json!(7)), "E015");
    refuse("forged score", changed("/result/score/P01", json!(30)), "E015");
    refuse("malformed", changed("/result/score", json!("3:0")), "E003");
    assert_eq!(send(&url, &honest)["status"], "recorded");
    until("the table has it", || (world.table()[0]["played"] == 1).then_some(()));
    let before = page();
    assert_eq!(send(&url, &honest)["status"], "recorded", "the same again is harmless");
    assert_eq!((page(), recorded(&world).len()), (before, 1));
    refuse("another result, late", report("referee:REF01", Some(&mine), "R1M1", ["P02", "P01"]), "E015");
}

#[test]
fn the_token_of_a_match_can_not_report() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "2"]);
    let _referee = world.referee(&manager, "REF01", &[]);
    let ([alpha, _beta], gate) = players(&manager.url(), |asked| asked["message_type"] == "CHOOSE_PARITY_CALL");
    let call = alpha.first("CHOOSE_PARITY_CALL");
    let token = call["auth_token"].as_str();
    assert!(token.is_some());
    for (sender, code) in [("referee:REF01", "E012"), ("referee:REF09", "E013"), ("player:P01", "E012")] {
        let answer = send(&manager.url(), &report(sender, token, "R1M1", ["P01", "P02"]));
        assert_eq!(answer["error_code"], code, "{sender}: {answer}");
    }
    assert!(recorded(&world).is_empty());
    gate.open();
    assert!(manager.wait().success());
    check_one_result(&world, "REF01");
}
