//! The examination of an agent by `league check`. The player and the referee of the stack pass. An
//! agent with one fault fails the check of that fault, and no other: a proxy between the agent and the
//! examination changes messages, and each row of a table has a fault and the check that finds it.

use super::support::*;
use super::texts;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// Returns a test league with timeouts of that many seconds.
fn test(seconds: u32) -> TestLeague {
    let test = TestLeague::new("");
    for name in ["game_join_ack", "move", "generic_response"] {
        let key = format!("timeouts.{name}_timeout_sec");
        test.edit("system", &key, json!(seconds));
    }
    test
}

/// Starts an examination. Returns it and its URL.
pub(super) fn start_examination(test: &TestLeague, options: &str) -> (TestProcess, String) {
    let check = test.spawn("league_manager", &format!("check --json {options}"));
    let url = until("the examination listens", || {
        let output = check.errors();
        let mut lines = output.lines();
        lines.find_map(|line| Some(line.strip_prefix("listening on ")?.into()))
    });
    (check, url)
}

/// Waits for the end of an examination. Returns its findings, and the grades and names of those that
/// are not ok: FATAL if the league of the stack does not tolerate the fault.
pub(super) fn findings(check: &mut TestProcess) -> (Vec<Value>, String) {
    let status = check.wait();
    let all: Vec<Value> = json_of(&check.output());
    let mut bad = Vec::new();
    for finding in &all {
        let grade = match text_of(&finding["grade"]) {
            "ok" | "skip" => continue,
            "FAIL" if finding["forgiven"] == false => "FATAL",
            grade => grade,
        };
        bad.push(format!("{grade} {}", text_of(&finding["check"])));
    }

    let bad = bad.join(", ");
    let is_fatal = bad.contains("FATAL ");
    assert_eq!(
        status.success(),
        !is_fatal && !bad.contains("FAIL "),
        "{bad}"
    );
    let verdict = ["it WOULD PLAY", "it would NOT play"][usize::from(is_fatal)];
    check.wait_for_error(verdict);
    (all, bad)
}

/// Returns how many findings have a grade.
fn count(all: &[Value], grade: &str) -> usize {
    let mut grades = texts(all, "grade");
    grades.retain(|found| *found == grade);
    grades.len()
}

/// The game of the league, an agent and its options, the options of the examination, the id that the
/// agent gets, and the number of checks that are only for another game.
const OUR_OWN: &str = "
even_odd | player | | | P90 | 0
even_odd | player | --player-id P02 | | P02 | 0
even_odd | referee | --referee-id REF02 | --as REF07 | REF07 | 0
even_odd | referee | --referee-id REF01 | --as P01 | REF01 | 0
tic_tac_toe | player | play random | | P90 | 0
tic_tac_toe | referee | | | REF90 | 1";

#[test]
fn own_agents_pass() {
    thread::scope(|scope| {
        rows(OUR_OWN).for_each(|row| drop(scope.spawn(move || check_own_agent(row))));
    });
}

fn check_own_agent([game, program, options, requested, id, others]: [&str; 6]) {
    let test = test(3);
    if game == "tic_tac_toe" {
        test.play(game);
    }
    let (mut check, url) = start_examination(&test, requested);
    let mut agent = test.start(program, &format!("{options} --manager {url}"));
    let (all, bad) = findings(&mut check);
    assert_eq!(bad, "", "{game} {program}: {all:#?}");
    assert_eq!(count(&all, "skip").to_string(), others, "{game} {program}");
    assert!(all.len() >= 35, "{program}");

    let names = texts(&all, "check").join("\n");
    for (call, game_type) in [
        ("CHOOSE_PARITY_CALL is", "even_odd"),
        ("CHOOSE_MOVE_CALL is", "tic_tac_toe"),
    ] {
        assert_eq!(names.contains(call), game_type == game, "{program}");
    }
    agent.line(&format!(" is {id} in an_examination_no_league"));
    agent.wait_for_success(); // it has received the end of the league
    let leagues = test.folder.join("data/leagues");
    assert!(
        !leagues.exists(),
        "an examination writes no files of a league"
    );
}

#[test]
fn player_by_hand_without_choices_passes() {
    let test = test(4); // the fallback chooses two seconds before
    let (mut check, url) = start_examination(&test, "");
    let player = test.start("player", &format!("play mcp:odd --manager {url}"));
    let (all, bad) = findings(&mut check);
    assert_eq!((&*bad, count(&all, "skip")), ("", 0));
    let mut all = all.iter();
    let choice = all.find(|finding| finding["check"] == "parity_choice is legal");
    assert_eq!(choice.unwrap()["came"], "parity_choice \"odd\"");
    player.wait_for_error("R6M1: no choice came in time; odd chose odd");
}

#[test]
fn findings_name_step_received_and_expected_value() {
    let test = test(3);
    let mut check = test.manager("check");
    let faults = [
        "CHOOSE_PARITY_CALL R1M1 | /reply/result/parity_choice | \"Even\"",
        "GAME_INVITATION R1M1 | /reply/result/sender | \"P90\"",
        "CHOOSE_PARITY_CALL R1M1 | /reply/result/auth_token | \"OWN\"",
    ];
    let _agents = start_with_faults(&test, "player", &check.url(), &faults.join("\n"));
    assert_eq!(check.wait().code(), Some(1));
    let output = check.output();
    for line in [
        "FAIL  parity_choice is legal: at CHOOSE_PARITY_CALL R1M1 came parity_choice \"Even\", expected exactly \"even\" or \"odd\"; our own league does not forgive it  [Choice]",
        "FAIL  replies say who sends them: at GAME_INVITATION R1M1 came sender \"P90\", expected \"player:P90\"; our own league forgives it  [Envelope]",
        "warn  replies repeat the match's token: at CHOOSE_PARITY_CALL R1M1 came its own token, that of its registration, which proves it to the manager, expected the token of the match; our own league forgives it  [Tokens]",
        "2 FAIL, 1 warn, 0 skip\nit would NOT play in our league, by what fails: parity_choice is legal",
    ] {
        check_contains(&output, line);
    }
    check_no_token(&output);
}

/// Starts a player that answers only the necessary messages. Returns it and its registration.
fn minimal_player() -> (FakeAgent, Value) {
    let peer = FakeAgent::new(|request| {
        let unknown = json!({"jsonrpc": "2.0", "error": {"code": -32601}, "id": request["id"]});
        match (
            request["params"]["message_type"].as_str(),
            request["method"].as_str(),
        ) {
            (Some(_), _) => valid_reply("P90", "odd", request),
            (_, Some("ping")) => FakeReply::Answer(json!({})),
            (_, Some(_)) => FakeReply::Body(unknown.to_string()),
            _ => FakeReply::Close,
        }
    });
    let body = application("A", &peer.url);
    (peer, message("LEAGUE_REGISTER_REQUEST", "player:a", body))
}

#[test]
fn bare_registration_is_answered_and_tolerated() {
    let test = test(3);
    let (mut check, url) = start_examination(&test, "");
    let (_peer, registration) = minimal_player();
    let (status, answer) = http("POST", &url, "", registration.to_string().as_bytes());
    let answer: Value = json_of(&answer);
    assert_eq!((status, &answer["status"]), (200, &json!("ACCEPTED")));
    let (_, bad) = findings(&mut check);
    let expected =
        "FAIL it registers by JSON-RPC 2.0, with an id, FAIL its method is that of its kind, warn";
    assert!(bad.starts_with(expected) && !bad.contains("FATAL"), "{bad}");
}

#[test]
fn agent_that_asks_for_other_paths_and_methods_is_told_how_to_register() {
    let test = test(3);
    let mut check = test.manager("check");
    let (url, silent) = (check.url(), idle_agent());
    http("GET", &url.replace("/mcp", "/register"), "", b"");
    for _ in 0..2 {
        call(&url, "join_league", json!({"name": "A"}));
    }
    call_tool(&url, "register_player", application("A", &silent.url));
    assert_eq!(check.wait().code(), Some(1));
    let output = check.output();
    for asked in ["GET /register", "the method \"join_league\""] {
        let line = format!("an agent asked for {asked}: an agent registers with POST {url} ");
        assert_eq!(output.matches(&line).count(), 1, "{output}");
    }

    // The arguments of a tool need no envelope, so nothing about the registration has failed.
    let (registration, rest) = output.split_once("ROUND_ANNOUNCEMENT").unwrap();
    assert!(!registration.contains("FAIL"), "{registration}");
    check_contains(
        rest,
        "it would NOT play in our league, by what fails: GAME_JOIN_ACK is",
    );
    check_contains(rest, "\nbin/adapter.py may translate for it: ");
}

#[test]
fn answer_that_is_no_result_is_an_answer() {
    for is_bare in [false, true] {
        let test = test(3);
        let (mut check, url) = start_examination(&test, "");
        let player = FakeAgent::new(move |request| match valid_reply("P90", "odd", request) {
            FakeReply::Answer(message) if is_bare => FakeReply::Body(message.to_string()),
            FakeReply::Answer(message) => {
                let call = json!({"jsonrpc": "2.0", "method": "answer", "params": message,
                    "id": request["id"]});
                FakeReply::Body(call.to_string())
            }
            reply => reply,
        });
        call_tool(&url, "register_player", application("A", &player.url));
        let (_, bad) = findings(&mut check);
        assert!(!bad.contains("FATAL"), "{bad}");
        let says_so = bad.contains("FAIL replies are JSON-RPC 2.0 with HTTP 200");
        assert_eq!(says_so, is_bare, "{bad}");
    }
}

#[test]
fn minimal_player_passes() {
    let test = test(3);
    let (mut check, url) = start_examination(&test, "");
    let (peer, registration) = minimal_player();

    // Like a client of tools, the player sends other requests first, and registers by a tool.
    let version = json!({"protocolVersion": "2025-06-18"});
    let server = ask(&url, "initialize", version);
    assert_eq!(server["protocolVersion"], "2025-06-18");
    let tools = ask(&url, "tools/list", json!({}));
    check_contains(&tools.to_string(), "\"register_player\"");
    let initialized = br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;
    for body in [&b"{\"hello\": 1}"[..], initialized] {
        assert_eq!(http("POST", &url, "", body).0, 202);
    }
    let answer = call_tool(&url, "register_player", registration);
    assert_eq!(answer["structuredContent"]["status"], "ACCEPTED");

    let (all, bad) = findings(&mut check);
    let has_only_warnings = !bad.contains("FA") && bad.contains("warn broken JSON");
    assert!(has_only_warnings, "{bad}: {all:#?}");
    let call = peer.first("CHOOSE_PARITY_CALL");
    let [sent, deadline] = ["timestamp", "deadline"].map(|key| text_of(&call[key]));
    assert!(deadline > sent && sent > "2026", "{call}");
}

/// A fault that the proxy puts into exchanges.
struct Fault {
    /// The words that the exchange must contain.
    words: String,
    /// The number of the one exchange with these words that is changed; 0 for all.
    only: usize,
    /// The JSON pointer of the changed value, `instead` of passing the request on, or `turn`: one
    /// exchange at a time.
    place: String,
    value: Value,
    /// The number of exchanges with these words so far.
    seen: AtomicUsize,
    turn: Mutex<()>,
}

impl Fault {
    /// Reads `WORDS #2 | /reply/result/accept | "true"`.
    fn new(row: &str) -> Fault {
        let mut cells = row.split(" | ").map(str::trim);
        let [words, place, value] = [(); 3].map(|()| cells.next().unwrap());
        let (words, only) = words.split_once('#').unwrap_or((words, "0"));
        Fault {
            words: words.into(),
            only: only.parse().unwrap(),
            place: place.into(),
            value: json_of(value),
            seen: AtomicUsize::default(),
            turn: Mutex::default(),
        }
    }

    /// Returns true if the fault is for an exchange and that place in it.
    fn applies(&self, exchange: &Value, place: &str) -> bool {
        if !self.place.starts_with(place) {
            return false;
        }
        let (text, mut words) = (exchange.to_string(), self.words.split_whitespace());
        let has_all = words.all(|word| text.contains(word));
        if !has_all {
            return false;
        }
        let count = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        self.only == 0 || self.only == count
    }
}

/// All faults of an agent, and its token once it has one.
struct Faults {
    all: Vec<Fault>,
    token: OnceLock<String>,
}

impl Faults {
    /// Reads the rows of a table.
    fn new(rows: &str) -> Arc<Faults> {
        Arc::new(Faults {
            all: rows.lines().map(Fault::new).collect(),
            token: OnceLock::new(),
        })
    }

    /// Returns the first fault for an exchange.
    fn find(&self, exchange: &Value, place: &str) -> Option<&Fault> {
        self.all.iter().find(|fault| fault.applies(exchange, place))
    }

    /// Puts the faults into an exchange.
    fn apply(&self, exchange: &mut Value, place: &str) {
        for fault in &self.all {
            if fault.applies(exchange, place) {
                let value = match fault.value.as_str() {
                    Some("OWN") => json!(self.token.wait()),
                    _ => fault.value.clone(),
                };
                set(exchange, &fault.place, value);
            }
        }
    }
}

/// The URL to which a proxy passes requests on, once it is known.
type Target = Arc<OnceLock<String>>;

/// Starts a proxy that passes requests on after `edit`, and the answers back, with the faults.
fn proxy(
    target: &Target,
    faults: &Arc<Faults>,
    edit: impl Fn(&mut Value) + Send + Sync + 'static,
) -> FakeAgent {
    let (target, faults) = (Arc::clone(target), Arc::clone(faults));
    FakeAgent::new(move |request| {
        let mut exchange = json!({"request": request});
        if let Some(fault) = faults.find(&exchange, "instead") {
            return match &fault.value {
                Value::Null => FakeReply::Silence,
                body => FakeReply::Body(body.to_string()),
            };
        }
        let turn = faults.find(&exchange, "turn");
        let _lock = turn.map(|fault| fault.turn.lock());
        edit(&mut exchange["request"]);
        faults.apply(&mut exchange, "/request");
        let body = match &exchange["request"] {
            Value::Null => "{".into(),
            request => request.to_string(),
        };
        let url = target.wait();
        if connect(url, TIME_LIMIT).is_err() {
            return FakeReply::Close; // the examination is over
        }
        let (status, body) = http("POST", url, "", body.as_bytes());
        exchange["reply"] = serde_json::from_str(&body).unwrap_or_default();
        let result = &exchange["reply"]["result"];
        if result["status"] == "ACCEPTED" {
            let _ = faults.token.set(token_of(result));
        }
        faults.apply(&mut exchange, "/reply");
        fake::status(&format!("{status} x"), &exchange["reply"].to_string())
    })
}

/// Starts an agent of the stack with the faults of some rows. There are proxies before the manager, the
/// players of its matches, and the agent.
fn start_with_faults(
    test: &TestLeague,
    program: &str,
    check: &str,
    rows: &str,
) -> (TestProcess, Vec<FakeAgent>) {
    let faults = Faults::new(rows);
    let [manager, home, a, b] = [(); 4].map(|()| Target::default());
    manager.set(check.into()).unwrap();
    let [manager, player_a, player_b] = [&manager, &a, &b].map(|to| proxy(to, &faults, |_| ()));
    let seats = [
        ("player_A_endpoint", a, player_a.url.clone()),
        ("player_B_endpoint", b, player_b.url.clone()),
    ];
    let own_proxy = proxy(&home, &faults, move |request| {
        for (key, target, url) in &seats {
            if let Some(place) = request.pointer_mut(&format!("/params/matches/0/{key}")) {
                let _ = target.set(text_of(place).into());
                *place = url.clone().into();
            }
        }
    });
    let urls = format!(
        "--manager {} --contact-endpoint {}",
        manager.url, own_proxy.url
    );
    let agent = test.start(program, &urls);
    home.set(agent.url()).unwrap();
    (agent, vec![manager, player_a, player_b, own_proxy])
}

/// Starts the small player behind a proxy that replaces its random choice by even.
fn start_small_player(test: &TestLeague, check: &str) -> (TestProcess, Vec<FakeAgent>) {
    let faults = Faults::new(
        "CHOOSE_PARITY_CALL reply parity_choice | /reply/result/parity_choice | \"even\"",
    );
    let [manager, home] = [(); 2].map(|()| Target::default());
    manager.set(check.into()).unwrap();
    let own_proxy = proxy(&home, &faults, |_| ());
    let endpoint = json!(own_proxy.url);
    let manager = proxy(&manager, &faults, move |request| {
        let place = "/params/player_meta/contact_endpoint";
        set(request, place, endpoint.clone());
    });
    let port = free_port();
    home.set(format!("http://127.0.0.1:{port}/mcp")).unwrap();
    let player = start_small(test, "player", &manager.url, port);
    (player, vec![manager, own_proxy])
}

/// Starts an agent of the small league.
fn start_small(test: &TestLeague, kind: &str, manager: &str, port: u16) -> TestProcess {
    test.edit("agents", "league_manager.endpoint", json!(manager));
    let mut command = Command::new(executable(&format!("small_{kind}")));
    command.args(["--port", &port.to_string()]);
    TestProcess::new(command.current_dir(&test.folder))
}

#[test]
fn small_agents_lack_what_chapter_two_adds() {
    golden::run_scripts("small", || {
        |kind: &str| {
            let test = test(3);
            let (mut check, url) = start_examination(&test, "");
            let _agents = match kind {
                "player" => start_small_player(&test, &url),
                _ => (start_small(&test, kind, &url, free_port()), Vec::new()),
            };
            let (all, _) = findings(&mut check);
            let mut lines = Vec::new();
            for finding in &all {
                let [grade, name] = ["grade", "check"].map(|key| text_of(&finding[key]));
                if !["ok", "skip"].contains(&grade) {
                    lines.push(format!("{grade}  {name}"));
                }
            }
            lines.push(format!("{} ok", count(&all, "ok")));
            let errors = check.errors();
            lines.push(errors.lines().last().unwrap_or_default().into());
            lines.join("\n")
        }
    });
}

/// Examines an agent with each of the faults of a table, in six threads. Every check from `first` to
/// `last` must have a fault.
fn check_each_fault(program: &str, table: &str, [first, last]: [&str; 2]) {
    let rows: Vec<&str> = table.trim().lines().collect();
    let left = Mutex::new(rows.clone());
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(row) = take_row(&left) {
                    let all = check_fault(program, row);
                    let names = texts(&all, "check").into_iter();
                    let mut names: Vec<&str> = names.skip_while(|name| *name != first).collect();
                    names.truncate(names.iter().position(|name| *name == last).unwrap() + 1);
                    names.retain(|name| !rows.iter().any(|row| row.contains(&format!(" {name}"))));
                    assert!(names.is_empty(), "checks without a fault: {names:?}");
                }
            });
        }
    });
}

/// Takes the last row: the slow rows are at the end.
fn take_row<'a>(rows: &Mutex<Vec<&'a str>>) -> Option<&'a str> {
    rows.lock().unwrap().pop()
}

/// Examines an agent with the fault of a row. The row also has the findings that are not ok, and the
/// number of checks that cannot be made with this fault. Returns the findings.
fn check_fault(program: &str, row: &str) -> Vec<Value> {
    let test = test(if row.contains(" | turn | ") { 5 } else { 3 });
    let (mut check, url) = start_examination(&test, "");
    let _agents = start_with_faults(&test, program, &url, row);
    let (all, bad) = findings(&mut check);
    let [expected, skipped] = [3, 4].map(|n| row.split(" | ").nth(n).unwrap_or("0").trim());
    assert_eq!(bad, expected, "{row}: {all:#?}");
    let count = count(&all, "skip").to_string();
    assert_eq!(count, skipped, "{row}: {all:#?}");
    all
}

#[test]
fn player_with_one_fault_fails_only_its_check() {
    let table = r#"
REGISTER_REQUEST | /request/jsonrpc | "1.0" | FATAL it registers by JSON-RPC 2.0, with an id
REGISTER_REQUEST | /request/method | "register" | FAIL its method is that of its kind
REGISTER_REQUEST | /request/method | "league_query" | FATAL its method is that of its kind
REGISTER_REQUEST | /request/params/message_type | "REGISTER" | FATAL message_type is a registration
REGISTER_REQUEST | /request/params/protocol | "league.v1" | FATAL protocol is league.v2
REGISTER_REQUEST | /request/params/protocol | null | FAIL protocol is league.v2
REGISTER_REQUEST | /request/params/sender | "a" | FAIL sender names its kind
REGISTER_REQUEST | /request/params/conversation_id | null | FAIL conversation_id is a text
REGISTER_REQUEST | /request/params/timestamp | "2025-01-15T10:00:00+02:00" | FAIL timestamp is UTC
REGISTER_REQUEST | /request/params/player_meta | "me" | FATAL it says what it is, FATAL an agent answers at its contact_endpoint | 34
REGISTER_REQUEST | /request/params/player_meta/display_name | "" | FATAL it says what it is
REGISTER_REQUEST | /request/params/player_meta/version | "1.0" | FATAL it says what it is
REGISTER_REQUEST | /request/params/player_meta/game_types | "even_odd" | FATAL it says what it is
REGISTER_REQUEST | /request/params/player_meta/contact_endpoint | "localhost:8101" | FATAL an agent answers at its contact_endpoint | 34
REGISTER_REQUEST | /request/params/player_meta/contact_endpoint | "http://127.0.0.1:1/mcp" | FATAL an agent answers at its contact_endpoint | 34
REGISTER_REQUEST | /request/params/player_meta/protocol_version | "1.0.0" | FATAL it says what it is
"method":"notify_round" R1M1 | /reply/error | {"code": -32603} | FAIL ROUND_ANNOUNCEMENT is taken
GAME_INVITATION | instead | null | FATAL GAME_INVITATION is answered without an error, in time | 21
GAME_INVITATION | /reply/result/match_id | "R1" | FATAL replies name match and player
GAME_INVITATION #1 | /reply/result/message_type | "JOINED" | FATAL GAME_JOIN_ACK is the answer
GAME_INVITATION | /reply/result/arrival_timestamp | "now" | FAIL arrival_timestamp is UTC
GAME_INVITATION | /reply/result/accept | "true" | FATAL accept is true, a boolean
CHOOSE_PARITY_CALL | instead | null | FATAL CHOOSE_PARITY_CALL is answered without an error, in time | 10
CHOOSE_PARITY_CALL | /reply/result/player_id | "P9" | FATAL replies name match and player
GAME_INVITATION | /reply/result/player_id | null | FAIL replies name match and player
CHOOSE_PARITY_CALL #1 | /reply/result/message_type | "CHOSEN" | FATAL CHOOSE_PARITY_RESPONSE is the answer
CHOOSE_PARITY_CALL | /reply/result/parity_choice | 0 | FATAL parity_choice is legal
GAME_INVITATION | /reply/jsonrpc | 2 | FAIL replies are JSON-RPC 2.0 with HTTP 200
CHOOSE_PARITY_CALL | /reply/result/protocol | "v2" | FATAL replies say protocol league.v2
CHOOSE_PARITY_CALL | /reply/result/protocol | null | FAIL replies say protocol league.v2
GAME_INVITATION | /reply/result/sender | "P90" | FAIL replies say who sends them
CHOOSE_PARITY_CALL | /reply/result/timestamp | 1 | FAIL replies have a UTC timestamp
GAME_INVITATION | /reply/result/conversation_id | "new" | FAIL replies stay in the conversation
CHOOSE_PARITY_CALL | /reply/result/auth_token | "OWN" | warn replies repeat the match's token
CHOOSE_PARITY_CALL R1M1 #2 | /reply/result/parity_choice | "both" | warn the same call gets the same choice
CHOOSE_PARITY_CALL R1M1 E012 | /reply/result | {"status": "ok"} | warn a call with a wrong token is refused
GAME_INVITATION E012 | /reply/result | {"status": "ok"} | warn an invitation without the announced token is refused
CHOOSE_PARITY_CALL R9M1 | /reply/result | {"status": "ok"} | warn a call for an unknown match is refused
GAME_INVITATION x_later | instead | {"error": {"code": -32603}, "id": 90} | FAIL unknown fields are ignored
CHOOSE_PARITY_CALL R6M1 | instead | null | FATAL a call is answered, whose caller gave up before
"GAME_ERROR" #1 | instead | {"error": {"code": -32603}, "id": 90} | FAIL GAME_ERROR is taken
GAME_OVER | instead | null | FAIL GAME_OVER is taken
LEAGUE_STANDINGS_UPDATE | instead | null | FAIL LEAGUE_STANDINGS_UPDATE is taken
ROUND_COMPLETED "id":90 #1 | instead | {"error": {"code": -32603}, "id": 90} | FAIL ROUND_COMPLETED is taken
ROUND_COMPLETED "id":4711 | /reply/id | "4711" | FAIL an id is echoed, integer or string
ROUND_COMPLETED "id":"check" | /reply/id | 1 | FAIL an id is echoed, integer or string
ROUND_COMPLETED "auth_token":"x" | /reply/result | {"status": "ok"} | warn a notice with a wrong token is refused
ROUND_COMPLETED "auth_token":null | /reply/result | {"status": "ok"} | warn a notice without a token is refused
"method":"ping" "id":90 #1 | instead | {"error": {"code": -32603}, "id": 90} | warn ping is answered
no_such_method | instead | {"result": {}} | FAIL an unknown method is an error
{"request":null} | instead | null | warn broken JSON is an error
"method":"ping" "id":90 #3 | instead | null | FATAL it survives a large body
tools/list | instead | {"error": {"code": -32603}, "id": 90} | warn its tools are listed
LEAGUE_COMPLETED | instead | {"error": {"code": -32603}, "id": 90} | FAIL LEAGUE_COMPLETED is taken
"#;
    let all = [
        "it registers by JSON-RPC 2.0, with an id",
        "LEAGUE_COMPLETED is taken",
    ];
    check_each_fault("player", table, all);
}

#[test]
fn referee_with_one_fault_fails_only_its_check() {
    let table = r#"
REGISTER_REQUEST | /request/params/referee_meta/max_concurrent_matches | 11 | FATAL it says what it is
ROUND_ANNOUNCEMENT | instead | {"result": {"message_type": "LEAGUE_ERROR"}} | FATAL ROUND_ANNOUNCEMENT with a match of its own is taken | 17
ROUND_ANNOUNCEMENT | instead | {"result": {"status": "ok"}} | FATAL both players are invited | 16
GAME_INVITATION "player_id":"P04" | /request/params/opponent_id | "P04" | FATAL GAME_INVITATION is exact
GAME_INVITATION "player_id":"P04" | /request/params/game_type | "chess" | FATAL GAME_INVITATION is exact
CHOOSE_PARITY_CALL "player_id":"P04" | /request/params/deadline | "soon" | FATAL CHOOSE_PARITY_CALL is exact
GAME_OVER | /request/params/sender | "referee" | FATAL its messages say who sends them
GAME_OVER | /request/params/conversation_id | "another" | FATAL one match is one conversation
GAME_INVITATION | /request/params/auth_token | "OWN" | warn players are shown their match's token, never its own
GAME_OVER tok-p01 | instead | {"result": {"status": "ok"}} | FAIL both players are told the result
GAME_OVER R1M1 | /request/params/game_result/winner_player_id | "P95" | FATAL GAME_OVER names the right winner
MATCH_RESULT_REPORT R1M1 | /request/params/result/score | {"P01": 2, "P04": 0} | FATAL MATCH_RESULT_REPORT says the same, with the league's points
MATCH_RESULT_REPORT | /request/params/auth_token | null | FATAL MATCH_RESULT_REPORT carries its own token
MATCH_RESULT_REPORT R1M1 #1 | /reply | {"result": {"message_type": "MATCH_RESULT_ACK", "match_id": "R1M1", "status": "recorded"}} | FAIL MATCH_RESULT_REPORT is repeated until it is acknowledged
GAME_OVER R2M1 | /request/params/game_result/drawn_number | 4 | FATAL a silent player loses technically
GAME_OVER R2M1 | /request/params/game_result/winner_player_id | null | FATAL a silent player loses technically
"GAME_ERROR" E004 | instead | {"result": {"status": "ok"}} | FATAL a player who chooses "Even" is told E004
CHOOSE_PARITY_CALL R3M1 "player_id":"P01" #2 | instead | null | FATAL and is asked again
CHOOSE_PARITY_CALL R3M1 "player_id":"P01" #2 | /reply/result/parity_choice | "even" | FATAL and loses technically in the end
GAME_INVITATION R1M1 | turn | null | FAIL both are invited at once
CHOOSE_PARITY_CALL R1M1 | turn | null | FAIL both are asked at once
"#;
    let first_and_last = [
        "ROUND_ANNOUNCEMENT with a match of its own is taken",
        "and loses technically in the end",
    ];
    check_each_fault("referee", table, first_and_last);
}
