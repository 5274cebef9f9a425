//! Referees that die, refuse, lie or come late, and managers that are away: every match is recorded
//! once, and no player pays for it.

use super::support::fake::{self, LEAGUE, TOKEN, announces, completed, status};
use super::support::*;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Which requests a player lets wait at the gate.
type Held = fn(&Value) -> bool;

const NEVER: Held = |_| false;
const CHOICES: Held = is_parity_call;
const ENDS: Held = |asked| asked["message_type"] == "GAME_OVER";

/// Two registered players whose choices are even and odd; P01 is the one that may be held.
fn players(
    manager: &str,
    held: impl Fn(&Value) -> bool + Send + Sync + 'static,
) -> ([FakeAgent; 2], Gate) {
    let gate = Gate::default();
    let alpha = slow_player("P01", "even", &gate, held);
    let beta = slow_player("P02", "odd", &gate, NEVER);
    for (id, peer) in [("P01", &alpha), ("P02", &beta)] {
        let answer = register_player(manager, id, &peer.url);
        assert_eq!(answer["player_id"], id);
    }
    ([alpha, beta], gate)
}

/// The one result of the match: who reported it, and that nobody lost technically.
fn check_one_result(test: &TestLeague, referee: &str) {
    let all = test.events("Recorded");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["referee_id"], referee, "{all:?}");
    assert!(
        !all[0]["result"]["details"]["drawn_number"].is_null(),
        "nobody is punished: {all:?}"
    );
}

/// To whom R1M1 was given at first.
fn first_referee(test: &TestLeague) -> Value {
    test.events("Assigned")[0]["assignments"][0]["referee_id"].clone()
}

#[test]
fn killed_referee_is_replaced_in_any_state() {
    // Before the join; between join and choice; after the draw, before the report.
    for state in ["GAME_INVITATION", "CHOOSE_PARITY_CALL", "GAME_OVER"] {
        let (test, mut manager) = with_manager("--players 2 --referees 2");
        let mut first = test.agent(&manager, "REF01", "");
        let mut second = test.agent(&manager, "REF02", "");
        let ([alpha, _beta], gate) =
            players(&manager.url(), move |asked| asked["message_type"] == state);
        alpha.first(state);
        first.kill();
        gate.open();
        manager.wait_for_success();
        second.wait_for_success();
        check_one_result(&test, "REF02");
        assert_eq!(first_referee(&test), "REF01", "{state}");
        // The newer invitation is another conversation, under another token, and the last result is
        // its.
        let [old, new] = &alpha.received("GAME_INVITATION")[..] else {
            panic!("{state}: not invited twice");
        };
        assert_ne!(old["auth_token"], new["auth_token"], "{state}");
        let overs = alpha.received("GAME_OVER");
        let last = &overs.last().unwrap()["conversation_id"];
        assert_eq!(*last, new["conversation_id"], "{state}");
        // Refused, or broken off in the middle of a call.
        let is_lost = |line: &str| {
            let is_its = line.starts_with("REF01 could not be reached (");
            is_its && line.ends_with("); its matches are announced again")
        };
        let output = manager.output();
        assert!(output.lines().any(is_lost), "{state}: {output}");
    }
}

/// How a referee does not do its work: the method that it does not take, once it was given a match
/// (none: it takes nothing), what it answers then (nothing: it hangs up), and what the screen says
/// of it.
const FAULTS: &str = r#"
notify_round | | could not be reached (it hung up without an answer)
ping | | could not be reached (it hung up without an answer)
 | {"result": {"message_type": "LEAGUE_ERROR", "error_code": "E015", "error_description": "MATCH_ID_MISMATCH", "context": {"field": "match_id", "problem": "too\u001b[2J many for tok-ref01-0123456789abcdef"}}} | answered LEAGUE_ERROR E015 MATCH_ID_MISMATCH: match_id: too�[2J many for tok-ref01-***, so it refuses its matches
 | {"error": {"code": -32000, "message": "no"}} | answered JSON-RPC error -32000 "no", so it refuses its matches
 | {"error": {"code": -32601, "message": "no"}} | answered JSON-RPC error -32601 "no", so it refuses its matches"#;

#[test]
fn matches_of_a_failing_referee_are_reassigned() {
    for [method, body, why] in rows(FAULTS) {
        let (test, mut manager) = with_manager("--players 2 --referees 2");
        let given = AtomicBool::new(false);
        let first = FakeAgent::new(move |request| {
            let asked = &request["params"]["message_type"];
            let is_given = asked == "ROUND_ANNOUNCEMENT";
            let was_given = given.fetch_or(is_given, Ordering::SeqCst) || is_given;
            let is_end = asked == "LEAGUE_COMPLETED" || asked == "ROUND_COMPLETED";
            let is_its = request["method"] == method && was_given;
            match body {
                _ if is_end || !(is_its || method.is_empty()) => {
                    FakeReply::Answer(json!({"status": "ok"}))
                }
                "" => FakeReply::Close,
                body => FakeReply::Body(body.into()),
            }
        });
        register_referee(&manager.url(), "REF01", &first.url, 2);
        let mut second = test.agent(&manager, "REF02", "");
        let (_players, _) = players(&manager.url(), NEVER);
        manager.wait_for_success();
        second.wait_for_success();
        check_one_result(&test, "REF02");
        assert_eq!(first_referee(&test), "REF01", "{why}");
        let output = manager.output();
        let line = format!("REF01 {why}; its matches are announced again");
        check_contains(&output, &line);
    }
}

#[test]
fn one_reset_connection_does_not_lose_a_referee() {
    let (_world, mut manager) = with_manager("--players 2");
    let was_given = AtomicBool::new(false);
    let referee = FakeAgent::new(move |request| {
        let is_given = request["params"]["message_type"] == "ROUND_ANNOUNCEMENT";
        match is_given && !was_given.swap(true, Ordering::SeqCst) {
            true => FakeReply::Close,
            false => FakeReply::Answer(json!({"status": "ok"})),
        }
    });
    register_referee(&manager.url(), "REF01", &referee.url, 1);
    let (_players, _) = players(&manager.url(), NEVER);
    wait_until("it is told once more", || {
        referee.received("ROUND_ANNOUNCEMENT").len() == 2
    });
    manager.kill();
    let output = manager.output();
    assert!(!output.contains("no referee is left"), "{output}");
}

#[test]
fn silent_player_delays_an_assignment_by_a_second() {
    let (_world, manager) = with_manager("--players 2 --referees 2");
    let url = manager.url();
    let given = |request: &Value| request["params"]["message_type"] == "ROUND_ANNOUNCEMENT";
    let [refused_at, given_at] = [(); 2].map(|()| Arc::<OnceLock<Instant>>::default());
    let time = Arc::clone(&refused_at);
    let refusing = FakeAgent::new(move |request| match given(request) {
        true => {
            time.get_or_init(Instant::now);
            FakeReply::Body(REFUSED.into())
        }
        false => FakeReply::Answer(json!({"status": "ok"})),
    });
    let time = Arc::clone(&given_at);
    let other = FakeAgent::new(move |request| {
        if request["params"]["matches"][0]["referee_id"] == "REF02" {
            time.get_or_init(Instant::now);
        }
        FakeReply::Answer(json!({"status": "ok"}))
    });
    let silent = FakeAgent::new(move |request| match given(request) {
        true => FakeReply::Silence,
        false => FakeReply::Answer(json!({"status": "ok"})),
    });
    let [here, there] = [idle_agent(), idle_agent()];
    register_referee(&url, "REF01", &refusing.url, 1);
    register_referee(&url, "REF02", &other.url, 1);
    let token = token_of(&register_player(&url, "P01", &here.url));
    let begun = Instant::now();
    register_player(&url, "P02", &silent.url);
    silent.first("ROUND_ANNOUNCEMENT");
    let mut places = [&here.url, &there.url].into_iter().cycle();
    until_within(8, "REF01 is told while P01 moves", || {
        let mut moves = application("player:P01", places.next().unwrap());
        moves["auth_token"] = json!(token);
        let moves = message("LEAGUE_REGISTER_REQUEST", "player:P01", moves);
        assert_eq!(send(&url, &moves)["status"], "ACCEPTED");
        std::thread::park_timeout(Duration::from_millis(50));
        refusing.received("ROUND_ANNOUNCEMENT").pop()
    });
    let given = until_within(8, "its match is given to REF02", || given_at.get());
    let refused = refused_at.get().unwrap();
    for (start, end) in [(&begun, refused), (refused, given)] {
        let waited = *end - *start;
        assert!(
            waited > Duration::from_millis(900),
            "players first: {waited:?}"
        );
    }
}

#[test]
fn league_without_referees_waits_for_one() {
    const NOBODY: &str = "no referee is left";
    for back in ["REF01", "REF02"] {
        let (test, mut manager) = with_manager("--players 2");
        let mut first = test.agent(&manager, "REF01", "");
        let ([alpha, _beta], gate) = players(&manager.url(), CHOICES);
        alpha.first("CHOOSE_PARITY_CALL");
        let nowhere = "http://127.0.0.1:1/mcp";
        let late = register_referee(&manager.url(), "REF02", nowhere, 1);
        let refused = [&late["status"], &late["error_code"]];
        assert_eq!(refused, ["REJECTED", "E019"], "one is there");
        first.kill();
        let line = manager.line(NOBODY);
        assert!(line.ends_with(')') && line.contains(" (REF01 "), "{line}");
        let body = json!({"league_id": LEAGUE});
        let status = send(&manager.url(), &message("START_LEAGUE", "launcher", body));
        let is_waiting = text_of(&status["reason"]).contains(NOBODY);
        assert!(is_waiting && status["status"] == "running", "{status}");
        gate.open();
        let mut referee = test.agent(&manager, back, "");
        referee.line(&format!("is {back}"));
        manager.wait_for_success();
        referee.wait_for_success();
        check_one_result(&test, back);
    }
}

#[test]
fn slow_player_delays_only_its_own_match() {
    let seconds = time_limit().as_secs();
    let limit = format!("system timeouts.game_join_ack_timeout_sec={seconds}");
    let test = TestLeague::new(&limit);
    let mut manager = test.manager("--players 4");
    let mut referee = test.agent(&manager, "REF01", "--max-concurrent-matches 2");
    let other_is_over = Gate::default();
    let _peers = ["P01", "P02", "P03", "P04"].map(|id| {
        let gate = other_is_over.clone();
        let peer = FakeAgent::new(move |request| {
            match request["params"]["message_type"].as_str() {
                Some("GAME_INVITATION") if id == "P01" => gate.pass(),
                Some("GAME_OVER") => gate.open(),
                _ => {}
            }
            valid_reply(id, "odd", request)
        });
        register_player(&manager.url(), id, &peer.url);
        peer
    });
    manager.wait_for_success();
    referee.wait_for_success();
    let mut lost = test.events("Recorded");
    lost.retain(|line| line["result"]["details"]["status"] == "TECHNICAL_LOSS");
    assert_eq!(lost, [] as [Value; 0]);
}

/// The results that REF01 has kept so far.
fn outbox(test: &TestLeague) -> Vec<Value> {
    json_lines(&test.folder.join("data/referees/REF01/outbox.jsonl"))
}

/// How many of its reports REF01 knows to be recorded.
fn acknowledged(test: &TestLeague) -> usize {
    let log = json_lines(&test.folder.join("logs/agents/REF01.log.jsonl"));
    let is_ack = |line: &&Value| line["message_type"] == "MATCH_RESULT_ACK";
    log.iter().filter(is_ack).count()
}

#[test]
fn finished_match_is_reported_after_restarts() {
    for dies in ["referee", "manager", "the referee's token"] {
        let test = TestLeague::new("");
        if dies == "the referee's token" {
            test.edit("system", "security.token_ttl_hours", json!(0.0003)); // a good second
        }
        let arguments = "--players 2";
        let mut manager = test.manager(arguments);
        let mut referee = test.agent(&manager, "REF01", "");
        let ([alpha, beta], gate) = players(&manager.url(), ENDS);
        alpha.first("GAME_OVER");
        let outcome = outbox(&test)[0]["report"]["result"].clone();
        match dies {
            "referee" => referee.kill(),
            "manager" => manager.kill(),
            _ => {
                let expires = &test.events("Registered")[0]["expires"];
                wait_until("it expires", || &*now() > expires.as_str().unwrap());
            }
        }
        gate.open();
        match dies {
            "referee" => referee = test.agent(&manager, "REF01", ""),
            "manager" => manager.restart(&test, arguments),
            _ => {}
        }
        manager.wait_for_success();
        referee.wait_for_success();
        check_one_result(&test, "REF01");
        assert_eq!(test.events("Recorded")[0]["result"], outcome, "{dies}");
        let invited = [&alpha, &beta].map(|player| player.received("GAME_INVITATION").len());
        assert_eq!(invited, [1, 1], "{dies}");
        assert_eq!(outbox(&test).len(), 1, "{dies}: it only grows");
    }
}

#[test]
fn outbox_of_another_league_is_ignored() {
    for older_card in [false, true] {
        let (test, mut manager) = with_manager("--players 2");
        let keep = |folder: &str, name: &str, value: Value| {
            let folder = test.folder.join("data").join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(name), format!("{value}\n")).unwrap();
        };
        let report = report("referee:REF01", None, "R1M1", ["P02", "P01"]);
        let kept = json!({"conversation_id": "conv-kept", "report": report});
        keep("referees/REF01", "outbox.jsonl", kept);
        if older_card {
            let key = "k".repeat(32);
            let card = json!({
                "agent_id": "REF01", "token": TOKEN, "registration_key": key, "league_id": LEAGUE,
                "manager": manager.url(), "endpoint": "http://localhost:8001/mcp",
            });
            keep("agents", "REF01.json", card);
        }
        let mut referee = test.agent(&manager, "REF01", "");
        referee.line("is REF01");
        let (_players, _) = players(&manager.url(), NEVER);
        manager.wait_for_success();
        referee.wait_for_success();
        check_one_result(&test, "REF01");
        let logs = test.logs();
        let told = logs
            .iter()
            .filter(|line| line["conversation_id"] == "conv-kept");
        assert_eq!(told.count(), 0, "card: {older_card}");
        let mut aside = files(&test.folder.join("data/referees"));
        aside.retain(|path| path.to_string_lossy().contains("REF01~"));
        let aside = fs::read_to_string(&aside[0]).unwrap();
        assert!(aside.contains("conv-kept"));
    }
}

/// A referee alone with a manager and two players who choose even; P01 waits at the gate when
/// `held`.
struct Alone {
    test: TestLeague,
    players: [FakeAgent; 2],
    gate: Gate,
    referee: TestProcess,
}

impl Alone {
    fn new(test: TestLeague, manager: &FakeAgent, held: Held) -> Alone {
        let gate = Gate::default();
        let players = [
            slow_player("P01", "even", &gate, held),
            slow_player("P02", "even", &gate, NEVER),
        ];
        let url = &manager.url;
        let own = format!("--manager {url} --referee-id REF01 --max-concurrent-matches 1");
        let referee = test.start("referee", &own);
        referee.line("is REF01");
        Alone {
            test,
            players,
            gate,
            referee,
        }
    }

    /// The announcement of these matches: (its id, whether it is this referee's).
    fn round(&self, matches: &[(&'static str, bool)]) -> Value {
        let (own, [a, b]) = (self.referee.url(), &self.players);
        let row = |(id, ours): &(&'static str, bool)| {
            let more = json!({
                "player_A_endpoint": a.url, "player_A_token": format!("tok-p01-{id}"),
                "player_B_endpoint": b.url, "player_B_token": format!("tok-p02-{id}"),
            });
            let referee = if *ours {
                &*own
            } else {
                "http://127.0.0.1:1/mcp"
            };
            (*id, referee, more)
        };
        announces(&matches.iter().map(row).collect::<Vec<_>>())
    }

    fn announce(&self, matches: &[(&'static str, bool)]) {
        let answer = send(&self.referee.url(), &self.round(matches));
        assert_eq!(answer, json!({"status": "ok"}));
    }

    fn end(mut self) {
        send(&self.referee.url(), &completed(Some(TOKEN)));
        self.referee.wait_for_success();
    }
}

/// The matches of the messages of a type that came to a peer.
fn matches(peer: &FakeAgent, message_type: &str) -> Vec<String> {
    let messages = peer.received(message_type);
    let id = |item: &Value| text_of(&item["match_id"]).to_string();
    messages.iter().map(id).collect()
}

#[test]
fn reassigned_match_is_dropped_by_its_old_referee() {
    let manager = fake::manager();
    let item = Alone::new(TestLeague::new(""), &manager, |asked| {
        CHOICES(asked) && asked["match_id"] == "R1M1"
    });
    item.announce(&[("R1M1", true), ("R1M2", true)]);
    item.players[0].first("CHOOSE_PARITY_CALL");
    item.announce(&[("R1M1", false), ("R1M2", true)]);
    item.gate.open();
    // One match at a time, so R1M1 is over for this referee.
    wait_until("R1M2 is acknowledged", || acknowledged(&item.test) == 1);
    item.announce(&[("R1M2", true), ("R1M3", true)]); // R1M2 is announced once more: it crossed the report
    wait_until("all is reported", || {
        matches(&manager, "MATCH_RESULT_REPORT") == ["R1M2", "R1M2", "R1M3"]
    });
    for player in &item.players {
        assert_eq!(matches(player, "GAME_INVITATION"), ["R1M1", "R1M2", "R1M3"]);
        assert_eq!(matches(player, "GAME_OVER"), ["R1M2", "R1M3"]);
        assert_eq!(matches(player, "GAME_ERROR"), [""; 0]);
    }
    item.end();
}

/// A league error.
const REFUSED: &str = r#"{"result": {"message_type": "LEAGUE_ERROR", "error_code": "E015",
    "error_description": "MATCH_ID_MISMATCH", "context": {"field": "match_id", "problem": "\u001b[2Jalready recorded"}}}"#;

#[test]
fn refused_result_is_printed_once_and_blocks_no_other() {
    let test = TestLeague::new("system retry_policy.base_delay_sec=0.02");
    let recorded = AtomicBool::new(false);
    let manager = FakeAgent::new(move |request| {
        let match_id = request["params"]["match_id"].as_str();
        match match_id {
            Some("R1M1") => status("413 Too Large", "enough"),
            Some("R1M2") => FakeReply::Body(REFUSED.into()),
            // It is asked again until R1M4 is recorded, which it does not keep waiting.
            Some("R1M3") if !recorded.load(Ordering::SeqCst) => FakeReply::Close,
            _ => {
                recorded.fetch_or(match_id == Some("R1M4"), Ordering::SeqCst);
                fake::answers(request)
            }
        }
    });
    let item = Alone::new(test, &manager, NEVER);
    item.announce(&["R1M1", "R1M2", "R1M3", "R1M4"].map(|id| (id, true)));
    wait_until("R1M3 and R1M4 are recorded", || {
        acknowledged(&item.test) == 2
    });
    let all = matches(&manager, "MATCH_RESULT_REPORT");
    let times = |id: &str| all.iter().filter(|item| *item == id).count();
    assert_eq!(["R1M1", "R1M2", "R1M4"].map(times), [1, 1, 1], "{all:?}");
    assert_eq!(all.last().unwrap(), "R1M3");
    item.referee.wait_for_error("R1M2: "); // the reading of its lines may be behind
    let output = item.referee.errors();
    // R1M3 did not get through: that is said too, and whom it waits for.
    let url = &manager.url;
    let why = "it could not be reached (it hung up";
    let waits = format!("results wait for the league manager at {url}: {why}");
    let (waiting, output): (Vec<&str>, Vec<&str>) = output
        .split_inclusive('\n')
        .partition(|line| line.starts_with(&waits));
    assert!(!waiting.is_empty(), "{output:?}");
    let (refused, escape) = ("the league manager refuses the result for good", '\u{fffd}');
    let expected = format!(
        "R1M1: {refused}: answered HTTP 413 \"enough\"\nR1M2: {refused}: E015 MATCH_ID_MISMATCH: match_id: {escape}[2Jalready recorded\n"
    );
    assert_eq!(output.concat(), expected);
    item.end();
}

#[test]
fn players_receive_the_recorded_result() {
    let recorded = json!({
        "winner": "P02", "score": {"P01": 0, "P02": 3},
        "details": {"drawn_number": null, "choices": {"P01": null, "P02": null}, "status": "TECHNICAL_LOSS"},
    });
    let context = json!({"field": "match_id", "problem": "recorded", "recorded_result": recorded});
    let manager = FakeAgent::new(move |request| {
        if request["params"]["message_type"] != "MATCH_RESULT_REPORT" {
            return fake::answers(request);
        }
        let body = json!({
            "error_code": "E015", "error_description": "MATCH_ID_MISMATCH", "context": context,
        });
        FakeReply::Answer(message("LEAGUE_ERROR", "league_manager", body))
    });
    let item = Alone::new(TestLeague::new(""), &manager, NEVER);
    item.announce(&[("R1M1", true)]);
    for player in &item.players {
        wait_until("both results are told", || {
            player.received("GAME_OVER").len() == 2
        });
        let [first, last] = &player.received("GAME_OVER")[..] else {
            panic!("two results");
        };
        assert!(first["game_result"]["drawn_number"].is_u64());
        let last = &last["game_result"];
        assert_eq!(last["winner_player_id"], "P02");
        assert_eq!(last["status"], "TECHNICAL_LOSS");
        assert_eq!(last["drawn_number"], Value::Null);
    }
    wait_until("the refusal is logged", || {
        !item.test.logged("report_refused").is_empty()
    });
    assert_eq!(item.referee.errors(), "", "that is no fault");
    item.end();
}

#[test]
fn referee_obeys_only_its_manager() {
    let manager = fake::manager();
    let item = Alone::new(TestLeague::new(""), &manager, CHOICES);
    let own = item.referee.url();
    let altered = TOKEN.replace('f', "e");
    for (token, code) in [(None, "E011"), (Some(&*altered), "E012")] {
        let mut announced = item.round(&[("R1M1", true)]);
        announced["auth_token"] = json!(token);
        let start = json!({"auth_token": token, "league_id": LEAGUE, "round_id": 1, "match": announced["matches"][0]});
        let start = ask(&own, "start_match", start);
        for answer in [send(&own, &announced), send(&own, &completed(token)), start] {
            assert_eq!(answer["error_code"], code, "{token:?}: {answer}");
        }
    }
    item.referee
        .wait_for_error("REF01: refused start_match from an unknown agent at 127.0.0.1: E011");
    let one = item.round(&[("R1M1", true)])["matches"][0].take();
    let foreign = json!({"auth_token": TOKEN, "league_id": "other", "round_id": 1, "match": one});
    let answer = ask(&own, "start_match", foreign);
    assert_eq!(answer["context"]["field"], "league_id", "{answer}");
    let state = || ask(&own, "get_match_state", json!({"match_id": "R1M1"}));
    let early = state();
    assert_eq!(early["error_code"], "E015", "no stranger's match was taken");
    item.announce(&[("R1M1", true)]);
    item.players[0].first("CHOOSE_PARITY_CALL");
    wait_until("P02 has answered", || {
        let answered = |line: &Value| {
            line["message_type"] == "CHOOSE_PARITY_RESPONSE" && line["peer"] == "P02"
        };
        item.test.logs().iter().any(answered)
    });
    let during = state();
    assert_eq!(
        [&during["state"], &during["result"]],
        [&json!("COLLECTING_CHOICES"), &Value::Null]
    );
    let text = during.to_string();
    assert!(!text.contains("even") && !text.contains("tok-"), "{text}");
    item.gate.open();
    manager.first("MATCH_RESULT_REPORT");
    let after = state();
    assert_eq!(
        [&after["state"], &after["result"]["choices"]["P02"]],
        ["FINISHED", "even"]
    );
    item.end();
}

#[test]
fn referee_that_missed_an_announcement_gets_it_again() {
    let test = TestLeague::new(
        "system timeouts.generic_response_timeout_sec=0.5; system retry_policy.max_retries=1",
    );
    let manager = test.manager("--players 2");
    let is_first = AtomicBool::new(true);
    let referee = FakeAgent::new(move |request| {
        let is_announcement = request["params"]["message_type"] == "ROUND_ANNOUNCEMENT";
        if is_announcement && is_first.swap(false, Ordering::SeqCst) {
            return FakeReply::Silence;
        }
        FakeReply::Answer(json!({"status": "ok"}))
    });
    register_referee(&manager.url(), "REF01", &referee.url, 2);
    let players = [idle_agent(), idle_agent()];
    for player in &players {
        register_player(&manager.url(), "new", &player.url);
    }
    until_within(20, "it is announced again before its time limit", || {
        (referee.received("ROUND_ANNOUNCEMENT").len() > 1).then_some(())
    });
}
