//! Referees that die, refuse, lie or are late, and managers that are away: every match is recorded
//! once, and no player pays for it.

use super::outbox::decided_task;
use super::support::fake::{self, LEAGUE, TOKEN, announces, completed, status};
use super::support::*;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Returns true for the requests that a player answers only once the gate is open.
type Held = fn(&Value) -> bool;

const NEVER: Held = |_| false;
const CHOICES: Held = is_parity_call;
const ENDS: Held = |asked| asked["message_type"] == "GAME_OVER";

/// Registers two players, which choose even and odd. P01 answers the requests that are `held` only
/// once the gate is open.
fn players(
    manager: &str,
    held: impl Fn(&Value) -> bool + Send + Sync + 'static,
) -> ([FakeAgent; 2], Gate) {
    let gate = Gate::default();
    let players = [
        slow_player("P01", "even", &gate, held),
        slow_player("P02", "odd", &gate, NEVER),
    ];
    for (id, player) in ["P01", "P02"].iter().zip(&players) {
        let reply = register_player(manager, id, &player.url);
        assert_eq!(reply["player_id"], *id);
    }
    (players, gate)
}

/// Checks that the match has one result, which this referee has reported and which is no technical
/// loss.
fn check_one_result(test: &TestLeague, referee: &str) {
    let all = test.events("Recorded");
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["referee_id"], referee, "{all:?}");
    assert_eq!(test.technical_losses(), (1, 0), "{all:?}");
}

/// Returns the referee that R1M1 was assigned to first.
fn first_referee(test: &TestLeague) -> Value {
    test.events("Assigned")[0]["assignments"][0]["referee_id"].clone()
}

#[test]
fn killed_referee_is_replaced_in_any_state() {
    // Before the join; between join and choice; after the draw, before the report.
    for state in ["GAME_INVITATION", "CHOOSE_PARITY_CALL", "GAME_OVER"] {
        let (test, mut manager) = with_manager("--players 2 --referees 2");
        let mut referees = test.agents(&manager, "REF01 REF02");
        let ([alpha, _beta], gate) =
            players(&manager.url(), move |asked| asked["message_type"] == state);
        alpha.first(state);
        referees[0].kill();
        gate.open();
        wait_for_all(&mut manager, &mut referees[1..]);
        check_one_result(&test, "REF02");
        assert_eq!(first_referee(&test), "REF01", "{state}");
        // The newer invitation has another conversation and another token, and the last result
        // belongs to it.
        let [old, new] = &alpha.received("GAME_INVITATION")[..] else {
            panic!("{state}: not invited twice");
        };
        assert_ne!(old["auth_token"], new["auth_token"], "{state}");
        let last = alpha.received("GAME_OVER").pop().unwrap();
        assert_eq!(last["conversation_id"], new["conversation_id"], "{state}");
        // The connection was refused, or broke off during a call.
        let is_lost = |line: &str| {
            line.contains(" (REF01) could not be reached: ")
                && line.ends_with("; its matches are announced again")
        };
        let output = manager.output();
        assert!(output.lines().any(is_lost), "{state}: {output}");
    }
}

/// The faults of a referee: the method that it refuses once it was given a match (none: every
/// method), its reply (none: it hangs up), and the words on the screen.
const FAULTS: &str = r#"
notify_round | | gave no whole answer: it hung up without an answer
ping | | gave no whole answer: it hung up without an answer
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
            let is_refused = method.is_empty() || request["method"] == method && was_given;
            match body {
                _ if is_end || !is_refused => acknowledgement(),
                "" => FakeReply::Close,
                body => FakeReply::Body(body.into()),
            }
        });
        register_referee(&manager.url(), "REF01", &first.url, 2);
        let mut second = test.agents(&manager, "REF02");
        let (_players, _) = players(&manager.url(), NEVER);
        wait_for_all(&mut manager, &mut second);
        check_one_result(&test, "REF02");
        assert_eq!(first_referee(&test), "REF01", "{why}");
        let line = format!("(REF01) {why}; its matches are announced again");
        check_contains(&manager.output(), &line);
    }
}

#[test]
fn one_reset_connection_does_not_lose_a_referee() {
    let (_test, mut manager) = with_manager("--players 2");
    let was_given = AtomicBool::new(false);
    let referee = FakeAgent::new(move |request| {
        match is_round(request) && !was_given.swap(true, Ordering::SeqCst) {
            true => FakeReply::Close,
            false => acknowledgement(),
        }
    });
    register_referee(&manager.url(), "REF01", &referee.url, 1);
    let (_players, _) = players(&manager.url(), NEVER);
    wait_until("the round is announced again", || {
        referee.received("ROUND_ANNOUNCEMENT").len() == 2
    });
    manager.kill();
    let output = manager.output();
    assert!(!output.contains("no referee is left"), "{output}");
}

/// Returns true if a request announces a round.
fn is_round(request: &Value) -> bool {
    request["params"]["message_type"] == "ROUND_ANNOUNCEMENT"
}

#[test]
fn silent_player_delays_an_assignment_by_a_second() {
    let (_test, manager) = with_manager("--players 2 --referees 2");
    let url = manager.url();
    let [refused_at, given_at] = [(); 2].map(|()| Arc::<OnceLock<Instant>>::default());
    let time = Arc::clone(&refused_at);
    let refusing = FakeAgent::new(move |request| {
        if !is_round(request) {
            return acknowledgement();
        }
        time.get_or_init(Instant::now);
        FakeReply::Body(REFUSED.into())
    });
    let time = Arc::clone(&given_at);
    let other = FakeAgent::new(move |request| {
        if request["params"]["matches"][0]["referee_id"] == "REF02" {
            time.get_or_init(Instant::now);
        }
        acknowledgement()
    });
    let silent = FakeAgent::new(|request| match is_round(request) {
        true => FakeReply::Silence,
        false => acknowledgement(),
    });
    let moving = [idle_agent(), idle_agent()];
    register_referee(&url, "REF01", &refusing.url, 1);
    register_referee(&url, "REF02", &other.url, 1);
    let token = token_of(&register_player(&url, "P01", &moving[0].url));
    let begun = Instant::now();
    register_player(&url, "P02", &silent.url);
    silent.first("ROUND_ANNOUNCEMENT");
    let mut moves = moving.iter().cycle();
    until_within(8, "REF01 gets the round while P01 moves", || {
        let endpoint = &moves.next().unwrap().url;
        let request = player_registration("P01", endpoint, Some(&token));
        assert_eq!(send(&url, &request)["status"], "ACCEPTED");
        std::thread::park_timeout(Duration::from_millis(50));
        refusing.received("ROUND_ANNOUNCEMENT").pop()
    });
    let given = until_within(8, "its match is assigned to REF02", || given_at.get());
    let refused = refused_at.get().unwrap();
    for waited in [*refused - begun, *given - *refused] {
        let least = Duration::from_millis(900);
        assert!(waited > least, "players first: {waited:?}");
    }
}

#[test]
fn league_without_referees_waits_for_one() {
    const REASON: &str = "no referee is left";
    for back in ["REF01", "REF02"] {
        let (test, mut manager) = with_manager("--players 2");
        let mut first = test.agent(&manager, "REF01", "");
        let ([alpha, _beta], gate) = players(&manager.url(), CHOICES);
        alpha.first("CHOOSE_PARITY_CALL");
        let late = register_referee(&manager.url(), "REF02", "http://127.0.0.1:1/mcp", 1);
        assert_eq!(late["error_code"], "E019", "REF01 is not lost: {late}");
        first.kill();
        let line = manager.line(REASON);
        assert!(line.contains("; Referee Alpha (REF01) "), "{line}");
        let body = json!({"league_id": LEAGUE});
        let status = send(&manager.url(), &message("START_LEAGUE", "launcher", body));
        check_contains(text_of(&status["reason"]), REASON);
        assert_eq!(status["status"], "running");
        gate.open();
        let mut referee = test.agents(&manager, back);
        referee[0].line(&format!("is {back}"));
        wait_for_all(&mut manager, &mut referee);
        check_one_result(&test, back);
    }
}

#[test]
fn slow_player_delays_only_its_own_match() {
    let seconds = time_limit().as_secs();
    let limit = format!("system timeouts.game_join_ack_timeout_sec={seconds}");
    let test = TestLeague::new(&limit);
    let mut manager = test.manager("--players 4");
    let mut referee = test.agents(&manager, "REF01");
    let other_is_over = Gate::default();
    let _players = ["P01", "P02", "P03", "P04"].map(|id| {
        let gate = other_is_over.clone();
        let player = FakeAgent::new(move |request| {
            match request["params"]["message_type"].as_str() {
                Some("GAME_INVITATION") if id == "P01" => gate.pass(),
                Some("GAME_OVER") => gate.open(),
                _ => {}
            }
            valid_reply(id, "odd", request)
        });
        register_player(&manager.url(), id, &player.url);
        player
    });
    wait_for_all(&mut manager, &mut referee);
    assert_eq!(test.technical_losses(), (6, 0));
}

/// Returns the results that REF01 has saved.
fn outbox(test: &TestLeague) -> Vec<Value> {
    json_lines(&test.folder.join("data/referees/REF01/outbox.jsonl"))
}

/// Returns the number of acknowledgements that REF01 has received.
fn acknowledged(test: &TestLeague) -> usize {
    let mut log = json_lines(&test.folder.join("logs/agents/REF01.log.jsonl"));
    log.retain(|line| line["message_type"] == "MATCH_RESULT_ACK");
    log.len()
}

#[test]
fn finished_match_is_reported_after_restarts() {
    for lost in ["referee", "manager", "token"] {
        let test = TestLeague::new("");
        if lost == "token" {
            test.edit("system", "security.token_ttl_hours", json!(0.0003)); // over a second
        }
        let arguments = "--players 2";
        let mut manager = test.manager(arguments);
        let mut referee = test.agents(&manager, "REF01");
        let (players, gate) = players(&manager.url(), ENDS);
        players[0].first("GAME_OVER");
        let outcome = outbox(&test)[0]["result"]["choices"].clone();
        match lost {
            "referee" => referee[0].kill(),
            "manager" => manager.kill(),
            _ => {
                let expires = test.events("Registered")[0]["expires"].take();
                wait_until("the token expires", || &*now() > text_of(&expires));
            }
        }
        gate.open();
        match lost {
            "referee" => referee = test.agents(&manager, "REF01"),
            "manager" => manager.restart(&test, arguments),
            _ => {}
        }
        wait_for_all(&mut manager, &mut referee);
        check_one_result(&test, "REF01");
        let recorded = &test.events("Recorded")[0]["result"];
        assert_eq!(recorded["details"]["choices"], outcome, "{lost}");
        let invited = players.map(|player| player.received("GAME_INVITATION").len());
        assert_eq!(invited, [1, 1], "{lost}");
        assert_eq!(outbox(&test).len(), 1, "{lost}");
    }
}

#[test]
fn outbox_of_another_league_is_ignored() {
    let (test, mut manager) = with_manager("--players 2");
    let write = |folder: &str, name: &str, value: Value| {
        let folder = test.folder.join("data").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), format!("{value}\n")).unwrap();
    };
    let mut decided = json!(decided_task("R1M1"));
    decided["assignment"]["conversation_id"] = "conv-old".into();
    write("referees/REF01", "outbox.jsonl", decided);
    let mut referee = test.agents(&manager, "REF01");
    referee[0].line("is REF01");
    let (_players, _) = players(&manager.url(), NEVER);
    wait_for_all(&mut manager, &mut referee);
    check_one_result(&test, "REF01");
    let is_old = |line: &Value| line["conversation_id"] == "conv-old";
    assert!(!test.logs().iter().any(is_old));
    let mut archived = files(&test.folder.join("data/referees"));
    archived.retain(|path| path.to_string_lossy().contains("REF01~"));
    let archived = fs::read_to_string(&archived[0]).unwrap();
    check_contains(&archived, "conv-old");
}

/// A referee with a fake manager and two fake players, which choose even. P01 answers the requests
/// that are `held` only once the gate is open.
struct Alone {
    test: TestLeague,
    players: [FakeAgent; 2],
    gate: Gate,
    referee: TestProcess,
}

impl Alone {
    fn new(test: TestLeague, manager: &FakeAgent, held: Held) -> Alone {
        let gate = Gate::default();
        let alpha = slow_player("P01", "even", &gate, held);
        Alone::with_player(test, manager, alpha, gate)
    }

    fn with_player(test: TestLeague, manager: &FakeAgent, alpha: FakeAgent, gate: Gate) -> Alone {
        let players = [alpha, slow_player("P02", "even", &gate, NEVER)];
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

    /// Returns an announcement of matches of this referee; `other R1M1` is another referee's.
    fn round(&self, matches: &str) -> Value {
        let (own, [a, b]) = (&*self.referee.url(), &self.players);
        let mut rows = Vec::new();
        let mut referee = own;
        for id in matches.split(' ') {
            if id == "other" {
                referee = "http://127.0.0.1:1/mcp";
                continue;
            }
            let more = json!({
                "player_A_endpoint": a.url, "player_A_token": format!("tok-p01-{id}"),
                "player_B_endpoint": b.url, "player_B_token": format!("tok-p02-{id}"),
            });
            rows.push((id, referee, more));
            referee = own;
        }
        announces(&rows)
    }

    fn announce(&self, matches: &str) {
        let reply = send(&self.referee.url(), &self.round(matches));
        assert_eq!(reply, json!({"status": "ok"}));
    }

    fn end(mut self) {
        send(&self.referee.url(), &completed(Some(TOKEN)));
        self.referee.wait_for_success();
    }
}

/// Returns the matches of the messages of a type that an agent has received: `R1M1 R1M2`.
fn matches(agent: &FakeAgent, message_type: &str) -> String {
    let messages = agent.received(message_type);
    let ids = messages.iter().map(|message| text_of(&message["match_id"]));
    ids.collect::<Vec<_>>().join(" ")
}

#[test]
fn reassigned_match_is_dropped_by_its_old_referee() {
    let manager = fake::manager();
    let alone = Alone::new(TestLeague::new(""), &manager, |asked| {
        CHOICES(asked) && asked["match_id"] == "R1M1"
    });
    alone.announce("R1M1 R1M2");
    alone.players[0].first("CHOOSE_PARITY_CALL");
    alone.announce("other R1M1 R1M2");
    alone.gate.open();
    // The referee plays one match at a time, so R1M1 is over for this referee.
    wait_until("R1M2 is acknowledged", || acknowledged(&alone.test) == 1);
    alone.announce("R1M2 R1M3"); // the announcement of R1M2 has crossed the report
    wait_until("all results are reported", || {
        matches(&manager, "MATCH_RESULT_REPORT") == "R1M2 R1M2 R1M3"
    });
    for player in &alone.players {
        assert_eq!(matches(player, "GAME_INVITATION"), "R1M1 R1M2 R1M3");
        assert_eq!(matches(player, "GAME_OVER"), "R1M2 R1M3");
        assert_eq!(matches(player, "GAME_ERROR"), "");
    }
    alone.end();
}

/// A reply that refuses a report or a round.
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
            // R1M3 is reported again until R1M4 is recorded, and does not delay that.
            Some("R1M3") if !recorded.load(Ordering::SeqCst) => FakeReply::Close,
            _ => {
                recorded.fetch_or(match_id == Some("R1M4"), Ordering::SeqCst);
                fake::answers(request)
            }
        }
    });
    let alone = Alone::new(test, &manager, NEVER);
    alone.announce("R1M1 R1M2 R1M3 R1M4");
    wait_until("R1M3 and R1M4 are recorded", || {
        acknowledged(&alone.test) == 2
    });
    let all = matches(&manager, "MATCH_RESULT_REPORT");
    let times = ["R1M1", "R1M2", "R1M4"].map(|id| all.matches(id).count());
    assert_eq!(times, [1, 1, 1], "{all}");
    assert!(all.ends_with("R1M3"), "{all}");
    alone.referee.wait_for_error("R1M2: "); // the test may read the lines late
    let output = alone.referee.errors();
    let url = &manager.url;
    let why = "it gave no whole answer: it hung up";
    let waits = format!("results wait for the league manager at {url}: {why}");
    check_contains(&output, &waits);
    let mut lines: Vec<&str> = output.lines().collect();
    lines.retain(|line| !line.starts_with(&waits));
    let refused = "the league manager refuses the result for good";
    let expected = [
        format!("R1M1: {refused}: it answered HTTP 413 \"enough\""),
        format!(
            "R1M2: {refused}: it answered LEAGUE_ERROR: E015 MATCH_ID_MISMATCH: match_id: \u{fffd}[2Jalready recorded"
        ),
    ];
    assert_eq!(lines, expected);
    alone.end();
}

/// Another league takes the port of the manager for a while: it does not know the referee's token,
/// and does not let it in.
#[test]
fn referee_waits_for_its_own_manager() {
    let test = TestLeague::new("system retry_policy.base_delay_sec=0.02");
    let is_back = Gate::default();
    let back = is_back.clone();
    let is_foreign = AtomicBool::new(false);
    let refusals = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&refusals);
    let manager = FakeAgent::new(move |request| {
        let message_type = &request["params"]["message_type"];
        match message_type.as_str() {
            _ if back.is_open() => fake::answers(request),
            Some("MATCH_RESULT_REPORT") => {
                is_foreign.store(true, Ordering::SeqCst);
                let body =
                    json!({"error_code": "E013", "error_description": "REFEREE_NOT_REGISTERED"});
                FakeReply::Answer(message("LEAGUE_ERROR", "league_manager", body))
            }
            Some("REFEREE_REGISTER_REQUEST") if is_foreign.load(Ordering::SeqCst) => {
                seen.fetch_add(1, Ordering::SeqCst);
                let body =
                    json!({"status": "REJECTED", "reason": "Not a member", "error_code": "E019"});
                FakeReply::Answer(message("REFEREE_REGISTER_RESPONSE", "league_manager", body))
            }
            _ => fake::answers(request),
        }
    });
    let alone = Alone::new(test, &manager, NEVER);
    alone.announce("R1M1");
    wait_until("the other league has refused it twice", || {
        refusals.load(Ordering::SeqCst) == 2
    });
    is_back.open();
    wait_until("the result is recorded", || acknowledged(&alone.test) == 1);
    let waits = "rejected: Not a member; waiting for our own league manager\n";
    assert_eq!(alone.referee.errors(), waits);
    alone.end();
}

/// A manager that refuses each report, since it has recorded that P02 wins.
fn manager_with_another_result() -> FakeAgent {
    let recorded = json!({
        "winner": "P02", "score": {"P01": 0, "P02": 3},
        "details": {"drawn_number": null, "choices": {"P01": null, "P02": null}, "status": "TECHNICAL_LOSS"},
    });
    let context = json!({"field": "match_id", "problem": "recorded", "recorded_result": recorded});
    FakeAgent::new(move |request| {
        if request["params"]["message_type"] != "MATCH_RESULT_REPORT" {
            return fake::answers(request);
        }
        let body = json!({
            "error_code": "E015", "error_description": "MATCH_ID_MISMATCH", "context": context,
        });
        FakeReply::Answer(message("LEAGUE_ERROR", "league_manager", body))
    })
}

#[test]
fn players_receive_the_recorded_result() {
    let manager = manager_with_another_result();
    let alone = Alone::new(TestLeague::new(""), &manager, NEVER);
    alone.announce("R1M1");
    for player in &alone.players {
        wait_until("both results are told", || {
            player.received("GAME_OVER").len() == 2
        });
        let results = player.received("GAME_OVER");
        let [first, last] = [0, 1].map(|n| &results[n]["game_result"]);
        assert!(first["drawn_number"].is_u64());
        assert_eq!(last["winner_player_id"], "P02");
        assert_eq!(last["status"], "TECHNICAL_LOSS");
        assert_eq!(last["drawn_number"], Value::Null);
    }
    wait_until("the refusal is logged", || {
        !alone.test.logged("report_refused").is_empty()
    });
    assert_eq!(alone.referee.errors(), "", "this is no fault");
    alone.end();
}

#[test]
fn referee_obeys_only_its_manager() {
    let manager = fake::manager();
    let alone = Alone::new(TestLeague::new(""), &manager, CHOICES);
    let own = alone.referee.url();
    let start_match = |token: Option<&str>, league_id: &str| {
        let start = json!({"auth_token": token, "league_id": league_id, "round_id": 1,
            "match": alone.round("R1M1")["matches"][0]});
        ask(&own, "start_match", start)
    };
    let altered = TOKEN.replace('f', "e");
    for (token, code) in [(None, "E011"), (Some(&*altered), "E012")] {
        let announced = with_field(&alone.round("R1M1"), "auth_token", json!(token));
        let replies = [send(&own, &announced), send(&own, &completed(token))];
        for reply in [&replies[..], &[start_match(token, LEAGUE)]].concat() {
            assert_eq!(reply["error_code"], code, "{token:?}: {reply}");
        }
    }
    alone
        .referee
        .wait_for_error("REF01: refused start_match from an unknown agent at 127.0.0.1: E011");
    let reply = start_match(Some(TOKEN), "other");
    assert_eq!(reply["context"]["field"], "league_id", "{reply}");
    alone.end();
}

/// P01, which hangs up when it is told a result for the time of that number.
fn hangs_up_at_result(number: usize, gate: &Gate) -> FakeAgent {
    let (gate, told) = (gate.clone(), AtomicUsize::new(0));
    FakeAgent::new(move |request| {
        if request["params"]["message_type"] != "GAME_OVER" {
            return valid_reply("P01", "even", request);
        }
        match told.fetch_add(1, Ordering::SeqCst) + 1 {
            time if time == number => return FakeReply::Close,
            time if time > number => gate.pass(),
            _ => {}
        }
        FakeReply::Answer(json!({"status": "ok"}))
    })
}

#[test]
fn lost_result_is_told_again_beside_the_report() {
    let (manager, gate) = (fake::manager(), Gate::default());
    let alpha = hangs_up_at_result(1, &gate);
    let alone = Alone::with_player(TestLeague::new(""), &manager, alpha, gate);
    alone.announce("R1M1");
    manager.first("MATCH_RESULT_REPORT"); // it does not wait for P01
    alone.gate.open();
    wait_until("P01 is told again", || {
        alone.players[0].received("GAME_OVER").len() == 2
    });
    assert_eq!(matches(&alone.players[1], "GAME_OVER"), "R1M1");
    alone.end();
}

#[test]
fn technical_loss_under_older_tokens_is_void() {
    // The manager gets no report. P01 refuses each call.
    let manager = FakeAgent::new(|request| match &request["params"]["message_type"] {
        kind if kind == "MATCH_RESULT_REPORT" => FakeReply::Close,
        _ => fake::answers(request),
    });
    let alpha = FakeAgent::new(|request| match is_parity_call(&request["params"]) {
        true => valid_reply("P01", "fish", request),
        false => valid_reply("P01", "even", request),
    });
    let gate = Gate::default();
    gate.open();
    let alone = Alone::with_player(TestLeague::new(""), &manager, alpha, gate);
    alone.announce("R1M1");
    let report = manager.first("MATCH_RESULT_REPORT");
    assert_eq!(report["result"]["winner"], "P02");

    // The same tokens again: the result stands. With other tokens the match is played again.
    alone.announce("R1M1");
    let mut round = alone.round("R1M1");
    for seat in ["player_A_token", "player_B_token"] {
        round["matches"][0][seat] = json!(format!("tok-new-{seat}"));
    }
    assert_eq!(alone.players[1].received("GAME_INVITATION").len(), 1);
    send(&alone.referee.url(), &round);
    wait_until("the players are invited again", || {
        alone.players[1].received("GAME_INVITATION").len() == 2
    });
}

#[test]
fn referee_ends_when_its_players_know_the_recorded_result() {
    let manager = manager_with_another_result();
    // The first attempt to correct the result is lost.
    let gate = Gate::default();
    gate.open();
    let alpha = hangs_up_at_result(2, &gate);
    let mut alone = Alone::with_player(TestLeague::new(""), &manager, alpha, gate);
    alone.announce("R1M1");
    manager.first("MATCH_RESULT_REPORT");
    send(&alone.referee.url(), &completed(Some(TOKEN)));
    alone.referee.wait_for_success();
    let told = alone.players[0].received("GAME_OVER");
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[2]["game_result"]["winner_player_id"], "P02");
}

#[test]
fn players_end_after_the_referees() {
    let (test, mut manager) = with_manager("--players 2 --referees 2");
    let mut first = test.agent(&manager, "REF01", "");
    let [has_ended, is_early] = [(); 2].map(|()| Arc::<AtomicBool>::default());
    let (ended, early) = (Arc::clone(&has_ended), Arc::clone(&is_early));
    let second = FakeAgent::new(move |request| {
        if request["params"]["message_type"] == "LEAGUE_COMPLETED" {
            let until = Instant::now() + Duration::from_millis(500);
            while Instant::now() < until {
                early.fetch_or(ended.load(Ordering::SeqCst), Ordering::SeqCst);
                std::thread::park_timeout(Duration::from_millis(10));
            }
        }
        FakeReply::Answer(json!({"status": "ok"}))
    });
    register_referee(&manager.url(), "REF02", &second.url, 1);
    let (_players, _) = players(&manager.url(), move |asked| {
        has_ended.fetch_or(
            asked["message_type"] == "LEAGUE_COMPLETED",
            Ordering::SeqCst,
        );
        false
    });
    manager.wait_for_success();
    first.wait_for_success();
    assert_eq!(second.received("LEAGUE_COMPLETED").len(), 1);
    assert!(
        !is_early.load(Ordering::SeqCst),
        "a referee had not answered"
    );
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

#[test]
fn bare_answers_without_player_id_play() {
    let test = TestLeague::new("");
    let mut manager = test.manager("--players 2 --lead-sec 0");
    let _referee = test.agent(&manager, "REF01", "");
    let mut players = Vec::new();
    for id in ["P01", "P02"] {
        let player = FakeAgent::new(move |request| match valid_reply(id, "odd", request) {
            FakeReply::Answer(mut message) => {
                message["player_id"] = Value::Null;
                FakeReply::Body(message.to_string())
            }
            reply => reply,
        });
        register_player(&manager.url(), id, &player.url);
        players.push(player);
    }
    manager.wait_for_success();
    let output = manager.output();
    check_contains(&output, "the number was");
    assert!(!output.contains("technically"), "{output}");
}
