//! `bin/player.py`, the template of a player in Python: it plays, refuses unauthenticated messages,
//! survives wrong answers to its registration, and shows a student what is wrong with `choose`.

use super::support::fake::{self, converse, message_of_line};
use super::support::*;
use league::protocol::{AgentKind, MessageSpec};
use std::path::Path;
use std::process::Command;
use std::{fs, thread};

pub(super) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");
pub(super) const REST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/league_player.py");

/// An announced match, and its invitation.
const INVITED: &str = "manager announces R1M1 tok-true: ok\ntrue invites R1M1: joins";

/// Returns a test league, if Python is installed.
fn test() -> Option<TestLeague> {
    has_python().then(|| TestLeague::new(""))
}

/// Starts a player, P01 unless `options` say otherwise.
fn start(test: &TestLeague, manager: &str, options: &str) -> TestProcess {
    test.python(SCRIPT, manager, &format!("--player-id P01 {options}"))
}

/// Starts P01, and a stand-in for the manager that has registered it.
fn start_registered(test: &TestLeague, script: &str) -> (FakeAgent, TestProcess) {
    let manager = fake::manager();
    let folder = manager.url.replace([':', '/'], ""); // of its own
    let player = test.python(script, &manager.url, &format!("--data {folder}"));
    player.line("is P01");
    (manager, player)
}

/// Writes a template with another `choose`, and returns its path.
pub(super) fn write_with_choose(test: &TestLeague, body: &str) -> String {
    let template = fs::read_to_string(SCRIPT).unwrap().replace('\r', "");
    let original = "return random.choice(turn.legal_moves)\n";
    assert_eq!(template.matches(original).count(), 1);
    let path = test.folder.join("mine.py");
    fs::copy(REST, test.folder.join("league_player.py")).unwrap();
    let text = match body.contains("def choose(") {
        true => template.replace("def choose(turn):", body),
        false => template.replace(original, &format!("{body}\n")),
    };
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().into()
}

/// Returns how often a text is in the standard error of a player.
pub(super) fn count(player: &TestProcess, text: &str) -> usize {
    player.errors().matches(text).count()
}

/// Checks that a player ends with an exit code and a text on standard error.
pub(super) fn check_failure(mut player: TestProcess, code: i32, text: &str) {
    assert_eq!(player.wait().code(), Some(code), "{text}");
    player.wait_for_error(text);
}

#[test]
fn template_has_no_long_lines() {
    for (file, max_lines) in [(SCRIPT, 45), (REST, 920)] {
        let text = fs::read_to_string(file).unwrap();
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{file}"
        );
        assert!(text.lines().count() <= max_lines, "{file}");
    }
}

#[test]
fn template_plays_a_practice_without_technical_losses() {
    let Some(test) = test() else { return };
    let output = test.local(&format!(
        "--players 3 --cycles 4 --mine `{PYTHON} {SCRIPT}`"
    ));
    let squeezed = output.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed.contains(" P01 player.py 8 "), "matches: {output}");
    assert!(!output.contains(", so "), "{output}");
}

/// Headers, a body, the expected status, and a text in the answer. No page of a browser may call a
/// player, whatever its origin.
const REQUESTS: &str = r#"
| { | 200 | -32700
| {"jsonrpc":"2.0","method":"ping","id":NaN} | 200 | -32700
| {"jsonrpc":"2.0","method":"ping","id":true} | 200 | "id": null
| {"jsonrpc":"2.0","method":5,"id":7} | 200 | "id": 7
Transfer-Encoding: chunked | CHUNKS | 200 | "result": {}
| {"jsonrpc":"2.0","id":7} | 200 | -32600
| {"jsonrpc":"2.0","method":"no_such","id":7} | 200 | -32601
| PING | 200 | "result": {}
| {"jsonrpc":"2.0","method":"ping"} | 202 |
| DEEP | 200 | -32700
| LONG | 413 |
Origin: http://localhost:1 | PING | 403 |
Origin: http://example.org | PING | 403 |
Origin: http://a,Origin: http://b | PING | 403 |"#;

/// Messages and answers. A match that was announced for other players stays unannounced; our own
/// token proves that the manager invites us to a rehearsal.
const TOKEN_CHECKS: &str = "
true asks R1M1: E015
manager announces R1M1 auth_token=null: E011
manager announces R1M1 auth_token=tok-p01-0: E012
manager announces R1M1 tok-other /matches/0/player_A_id=P02 /matches/0/player_B_id=P03: ok
strange invites R1M1: E015
strange ends R1M1 P01 /game_result/reason=strange: E015
true invites R1M1 auth_token=TOKEN: joins
true asks R1M1 auth_token=TOKEN: chooses
true invites R1M1 round_id=null: E003
manager announces R1M1 tok-true: ok
strange invites R1M1: E012
manager announces R1M1 /matches/0/match_token=tok-true: ok
strange invites R1M1: E012
true invites R1M1: joins
true asks R1M1 auth_token=tok-wrong: E012
true asks R1M1 auth_token=null: E011
replay asks R1M1: E015
true asks R1M1 player_id=P02: E012
true asks R1M1 protocol=league.v1: E018
true asks R1M1 deadline=5: E003
true asks R1M1: chooses
manager announces R1M2 tok-true: ok
true invites R1M2: joins
manager announces R1M2 tok-strange: ok
replay ends R1M2 P02: E015
strange ends R1M2 P01: ok
manager announces R1M3 tok-true: ok
true asks R1M3: E015
strange ends R1M3 P02: E015
true ends R1M3 P01: ok";

#[test]
fn unauthenticated_messages_are_refused() {
    let Some(test) = test() else { return };
    let (_manager, mut player) = start_registered(&test, SCRIPT);
    let url = player.url();
    for [headers, body, expected, content] in rows(REQUESTS) {
        let headers: String = headers
            .split_terminator(',')
            .map(|header| format!("{header}\r\n"))
            .collect();
        let sent = match body {
            "PING" => r#"{"jsonrpc":"2.0","method":"ping","id":7}"#.into(),
            "CHUNKS" => {
                "2\r\n{\"\r\n26;x=y\r\njsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":7}\r\n0\r\n\r\n"
                    .into()
            }
            "DEEP" => "[".repeat(200_000),
            "LONG" => " ".repeat(300_000),
            other => other.to_string(),
        };
        let (status, text) = http("POST", &url, &headers, sent.as_bytes());
        assert_eq!(status.to_string(), expected, "{headers}{body}: {text}");
        assert!(text.contains(content), "{headers}{body}: {text}");
    }
    assert_eq!(http("GET", &url, "", b"").0, 405);

    converse(&url, &TOKEN_CHECKS.replace("TOKEN", fake::TOKEN));
    let call = message_of_line("true asks R1M1");
    let choice = send(&url, &call);
    for field in ["match_id", "conversation_id", "auth_token"] {
        assert_eq!(choice[field], call[field]);
    }
    let choice = &choice["parity_choice"];
    assert!(choice == "even" || choice == "odd", "{choice}");
    for _ in 0..20 {
        assert_eq!(send(&url, &call)["parity_choice"], *choice); // `choose` is random
    }

    converse(&url, "true ends R1M1 P01: ok");

    // A refusal is printed once for each kind.
    let printed = count(&player, "refused");
    converse(&url, "strange asks R1M1: E012");
    for field in ["sender", "timestamp", "deadline", "match_id"] {
        converse(&url, &format!("strange asks R1M1 {field}=null: E003"));
    }
    assert_eq!(count(&player, "refused"), printed);
    player.line("R1M1: you (even) beat P02 (odd): the number was 8");
    player.kill();
    assert!(!player.output().contains("strange"));
}

/// Matches that a manager has not announced which does not prove itself: they are joined, but only a
/// hundred of them.
#[test]
fn unannounced_matches_are_limited() {
    let Some(test) = test() else { return };
    let manager = FakeAgent::new(|request| fake::accepts(request, fake::TOKEN, false));
    let player = start(&test, &manager.url, "");
    player.line("is P01");
    for n in 1..=100 {
        converse(&player.url(), &format!("strange invites X{n}: joins"));
    }
    converse(&player.url(), "strange invites X101: E015");
}

/// Messages, and texts that the player then prints.
const PRINTED_ERRORS: &str = r#"
true complains R1M1 /context/field=null /context/problem=silent:tok-p01-00000000 | P01: R1M1: E004 silent:tok-p01-***
true complains R1M1 /context/problem=missing | P01: R1M1: E004 parity_choice: missing
true complains R1M1 | parity_choice: got "EVEN"?[2J
true complains R1M1 context=foreign | E004 INVALID_PARITY_CHOICE
true complains R1M1 match_id=null | E003 MISSING_REQUIRED_FIELD: match_id: missing
true complains R1M1 /context/problem=missing |
true complains R1M1 /context/problem=last | last"#;

#[test]
fn errors_are_printed_once() {
    let Some(test) = test() else { return };
    let (_manager, player) = start_registered(&test, SCRIPT);
    converse(&player.url(), INVITED);
    for [line, text] in rows(PRINTED_ERRORS) {
        send(&player.url(), &message_of_line(line));
        player.wait_for_error(text);
    }
    assert_eq!(count(&player, "parity_choice: missing"), 1);
}

/// The body of `choose`, the answer to the referee, and the text for the student.
const FAULTY: &str = r#"
random.choice(turn.legal_moves) | null | P01: R1M1: your choose returned None, none of ["even", "odd"]: does it end without `return`?
return "Even" | "Even" | your choose returned 'Even', none of ["even", "odd"]
return turn.thiers[-1] | -32603 | `return turn.thiers[-1]`: AttributeError: 'Turn' object has
return input("even or odd? ") | -32603 | `return input("even or odd? ")`: EOFError: EOF when reading a line; in a
quit() | -32603 | `quit()`: SystemExit
raise KeyboardInterrupt | -32603 | `raise KeyboardInterrupt`: KeyboardInterrupt
breakpoint();return "odd" | -32603 | BdbQuit; in a league it has no keyboard
def choose(): | -32603 | choose() takes 0 positional arguments but 1 was given; it must begin with `def choose(turn):`
return list | "<class 'list'>" | your choose returned <class 'list'>, none of
async def choose(turn): | * | : it must be a plain `def`, without `async` and `yield`"#;

#[test]
fn faulty_choose_is_explained_once() {
    let Some(test) = test() else { return };
    for [body, expected, explanation] in rows(FAULTY) {
        let (_manager, player) = start_registered(&test, &write_with_choose(&test, body));
        player.line("mine is P01"); // without --display-name the name is that of the file
        converse(&player.url(), INVITED);
        for _ in 0..3 {
            let answer = send(&player.url(), &message_of_line("true asks R1M1"));
            let choice = &answer["parity_choice"];
            let result = answer.pointer("/error/code").unwrap_or(choice).to_string();
            let is_expected = expected == "*" || result == expected;
            assert!(is_expected, "{body}: {result}");
        }
        // The referee's echo of a fault is not printed, but a timeout is.
        converse(
            &player.url(),
            "true complains R1M1 /context/problem=echo: ok
             true complains R1M1 error_code=E001 /context/problem=late: ok
             true ends R1M1 P02: ok",
        );
        player.wait_for_error(explanation);
        player.wait_for_error("late");
        for (text, expected) in [("your choose", 1), ("Traceback", 0), ("echo", 0)] {
            assert_eq!(count(&player, text), expected, "{body}");
        }
    }
}

#[test]
fn errors_are_printed_while_choose_runs() {
    let Some(test) = test() else { return };
    let slow = "import os, time
    print('thinks', flush=True)
    while not os.path.exists('printed'):
        time.sleep(0.01)
    return \"odd\"";
    let (_manager, player) = start_registered(&test, &write_with_choose(&test, slow));
    let url = player.url();
    converse(&url, INVITED);
    thread::scope(|scope| {
        let late = scope.spawn(|| send(&url, &message_of_line("true asks R1M1")));
        player.line("thinks");
        converse(&url, "true complains R1M1 /context/problem=late: ok");
        player.wait_for_error("P01: R1M1: E004 parity_choice: late");
        fs::write(test.folder.join("printed"), "").unwrap();
        assert_eq!(late.join().unwrap()["parity_choice"], "odd");
    });
}

fn send_move_call(url: &str, line: &str) -> Value {
    let game = "message_type=CHOOSE_MOVE_CALL game_type=tic_tac_toe";
    send(url, &message_of_line(&format!("{line} {game}")))
}

#[test]
fn each_move_of_another_game_is_answered_once() {
    let Some(test) = test() else { return };
    let says = "print(turn.game_type, turn.position, turn.move_number, turn.theirs, flush=True)
    return turn.legal_moves[-1]";
    let (_manager, player) = start_registered(&test, &write_with_choose(&test, says));
    let url = player.url();
    converse(&url, INVITED);
    for (more, expected) in [
        (r#"move_number=1 legal_moves=["a1","b2"]"#, "b2"),
        (r#"move_number=1 legal_moves=["b2","a1"]"#, "b2"), // a repeated call gets the same answer
        (r#"move_number=2 legal_moves=["a1","c3"]"#, "c3"),
    ] {
        let answer = send_move_call(&url, &format!("true asks R1M1 position=X.. {more}"));
        assert_eq!(answer["message_type"], "CHOOSE_MOVE_RESPONSE", "{answer}");
        assert_eq!(answer["move"], expected);
        assert!(more.contains(&format!("move_number={} ", answer["move_number"])));
    }
    player.line("tic_tac_toe X.. 2 []");
    let refused = send_move_call(&url, "true asks R1M1 move_number=0 legal_moves=a1");
    assert_eq!(refused["error_code"], "E003");
    let moves = r#"[{"player_id":"P02","move":"a3"},{"player_id":"P01","move":"b2"},"?",{"player_id":"P02"}]"#;
    let over = format!("true ends R1M1 P02 /game_result/moves={moves}: ok");
    let next = "manager announces R2M1: ok\nstrange invites R2M1: joins";
    converse(&url, &format!("{over}\n{next}"));
    let call = r#"strange asks R2M1 position=... move_number=1 legal_moves=["c1"]"#;
    send_move_call(&url, call);
    player.line("tic_tac_toe ... 1 ['a3']"); // the opponent's move in their match before
}

/// Returns the answer of a manager without `league_id`.
fn accepted(id: &str) -> String {
    let body = format!(r#""status": "ACCEPTED", "auth_token": "tok-p01-x", "player_id": {id}"#);
    format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {{{body}}}}}"#)
}

#[test]
fn wrong_answers_to_a_registration_are_explained() {
    let Some(test) = test() else { return };
    let rows = [
        ("[1]", "answers [1], which does not let us in"),
        ("<html>", "answers HTTP 200 and '<html>', which is no JSON"),
        (&"[".repeat(100_000), "which is no JSON"),
        (r#"{"result": "x"}"#, r#"answers {"result": "x"}"#),
        (r#"{"error": {"code": -32601}}"#, "-32601"),
        (
            r#"{"error": {"message": "Method not found"}}"#,
            "mcp: Method not found",
        ),
        (&accepted("7"), "which does not let us in"),
        (
            &accepted(&format!("{:?}", "x".repeat(9000))),
            "which does not let us in",
        ),
        (&accepted("\"../../P01\""), "which does not let us in"),
    ];
    let started = rows.map(|(body, explanation)| {
        // A wrong answer first, then one that accepts.
        let answers = [body.to_string(), accepted("\"P01\"")];
        let manager = FakeAgent::counting(move |n, _| FakeReply::Body(answers[n.min(1)].clone()));
        let folder = manager.url.replace([':', '/'], "");
        let player = start(&test, &manager.url, &format!("--data {folder}"));
        (player, manager, explanation)
    });
    for (player, manager, explanation) in &started {
        player.line("player is P01");
        let waiting = "waiting for the league manager at";
        player.wait_for_error(&format!("{waiting} {}: ", manager.url));
        player.wait_for_error(explanation);
        assert_eq!(count(player, "Traceback"), 0, "{explanation}");
    }

    let rejection = FakeAgent::new(|_| fake::rejects("the door is shut", None));
    let error =
        json!({"error_code": "E003", "context": {"field": "player_meta", "problem": "missing"}});
    let error = message("LEAGUE_ERROR", "league_manager", error);
    let refusal = FakeAgent::new(move |_| FakeReply::Answer(error.clone()));
    for (manager, explanation) in [
        (
            rejection,
            "the league manager has rejected us: the door is shut",
        ),
        (
            refusal,
            "the league manager has rejected us: E003 player_meta: missing",
        ),
    ] {
        check_failure(start(&test, &manager.url, "--data refused"), 1, explanation);
    }
}

/// Waits until a manager has received that many registrations, and returns them.
fn registrations(manager: &FakeAgent, count: usize) -> Vec<Value> {
    until("it registers", || {
        Some(manager.received("LEAGUE_REGISTER_REQUEST")).filter(|all| all.len() >= count)
    })
}

fn key(request: &Value) -> &str {
    text_of(&request["player_meta"]["registration_key"])
}

#[test]
fn killed_player_registers_again_with_its_credentials() {
    let Some(test) = test() else { return };
    // It is killed before it has read the answer: its key is saved before, and sent again.
    let silent = FakeAgent::new(|_| FakeReply::Silence);
    let mut player = start(&test, &silent.url, "");
    registrations(&silent, 1);
    let saved = test.data("agents/P01.json");
    player.kill();
    let again = start(&test, &silent.url, "");
    let requests = registrations(&silent, 2);
    let keys = [&requests[0], &requests[1]].map(key);
    assert_eq!(keys, [text_of(&saved["registration_key"]); 2]);
    assert!(keys[0].len() == 32 && keys[0].chars().all(|digit| digit.is_ascii_hexdigit()));
    drop(again);

    // With a real manager: its credentials have the token, only their owner may read them, and it is
    // the same player afterwards.
    let manager = test.serve("");
    let player = start(&test, &manager.url(), "");
    player.line("is P01");
    let first = test.data("agents/P01.json");
    assert!(text_of(&first["token"]).starts_with("tok-p01-"), "{first}");
    check_mode(&test.folder.join("data/agents/P01.json"));
    drop(player);
    let player = start(&test, &manager.url(), "");
    player.line("is P01");
    assert_eq!(test.data("agents/P01.json")["token"], first["token"]);
    drop(player);

    // The manager has moved to another port: the token proves that it is the same league.
    let mut manager = manager;
    manager.kill();
    let manager = test.serve("");
    let mut player = start(&test, &manager.url(), "");
    player.line("is P01");
    assert_eq!(test.data("agents/P01.json")["token"], first["token"]);
    player.kill();
    assert!(!player.output().contains("given up"), "{}", player.output());

    // A manager of another league gives another token.
    let other = fake::manager();
    let player = start(&test, &other.url, "");
    player.line("P01 of an earlier league is given up");
}

/// A manager's address, options, and the problem.
const WRONG_USE: &str = "
http://localhost:1 | --player-ld P07 | unrecognized arguments: --player-ld P07
http://localhost:1 | --player-id Ada | --player-id: got 'Ada', expected an id like P07
ftp://localhost | | expected an address like http://10.0.0.5:8000";

#[test]
fn address_of_the_manager_is_enough_to_join() {
    let Some(test) = test() else { return };
    for [manager, options, problem] in rows(WRONG_USE) {
        check_failure(start(&test, manager, options), 2, problem);
    }

    let help = Command::new(PYTHON).args([SCRIPT, "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    let options = "manager URL,display-name NAME,player-id ID,host ADDRESS,data DIR,stay,port N";
    for option in options.split(',') {
        assert!(help.contains(&format!("--{option}")), "{option}: {help}");
    }

    // A bare address gets /mcp; for a manager on this machine it listens on this machine only.
    let manager = test.serve("");
    let bare = manager.url().replace("http://", "").replace("/mcp", "");
    let player = start(
        &test,
        &bare,
        "--display-name Ada --config of-a-local-league",
    );
    player.line("Ada is P01 in ");
    assert!(player.url().starts_with("http://localhost:"));

    // For another machine it listens on all addresses, and names the one that is reached from there.
    let Some(own) = own_address() else { return };
    let manager = format!("http://{own}:1");
    let player = start(&test, &manager, "--data elsewhere");
    let url = player.url();
    assert!(url.starts_with(&format!("http://{own}:")), "{url}");
    assert_eq!(call(&url, "ping", json!({}))["result"], json!({}));
    player.wait_for_error(&format!(
        "the league manager at {manager}/mcp: cannot be reached"
    ));
    let contact = "http://ada.example:81/mcp";
    let options = format!("--data contact --host 127.0.0.1 --contact-endpoint {contact}");
    assert_eq!(start(&test, &manager, &options).url(), contact);
}

#[test]
fn player_with_stay_joins_the_next_league() {
    let Some(test) = test() else { return };
    let manager = FakeAgent::counting(|n, request| match n {
        1 => fake::rejects("started", Some("E019")),
        _ => fake::answers(request),
    });
    let player = start(&test, &manager.url, "--stay");
    player.line("is P01");
    converse(&player.url(), &format!("{INVITED}\nmanager ends: ok"));
    player.line("Champion: Alpha (P01)");
    let requests = registrations(&manager, 3);
    player.wait_for_error("the league is over; waiting for the next league (Ctrl-C ends)");
    assert_eq!(requests[1]["auth_token"], Value::Null); // not the token of the old league
    let keys: Vec<&str> = requests.iter().map(key).collect();
    assert!(keys[0] != keys[1] && keys[1] == keys[2]);
    wait_until("the new credentials are saved", || {
        test.data("agents/P01.json")["token"] == fake::TOKEN
    });
    converse(&player.url(), "true asks R1M1: E015"); // a match of the old league
    drop(player);

    let manager = fake::manager();
    let mut player = start(&test, &manager.url, "--data other");
    player.line("is P01");
    converse(&player.url(), "manager ends: ok");
    player.wait_for_success();
    assert!(!test.folder.join("other/agents/P01.json").exists());
}

#[test]
fn python_files_know_each_message_of_a_player() {
    let player = include_str!("../../bin/league_player.py");
    let adapter = include_str!("../../bin/adapter.py");
    for spec in MessageSpec::accepted_by(AgentKind::Player) {
        let name = format!("\"{}\":", spec.message_type);
        assert!(
            player.contains(&name),
            "NEEDED in league_player.py has no {name}"
        );
        assert!(
            adapter.contains(&name),
            "METHODS in adapter.py has no {name}"
        );
    }
}

#[test]
fn player_that_hears_nothing_registers_again() {
    let Some(test) = test() else { return };
    let folder = test.folder.join("impatient");
    fs::create_dir(&folder).unwrap();
    for (file, name) in [(SCRIPT, "player.py"), (REST, "league_player.py")] {
        let text = fs::read_to_string(file).unwrap();
        let text = text.replace("MAX_SILENCE = 120 ", "MAX_SILENCE = 0.2 ");
        let text = text.replace(
            "MAX_ABSENCE_AT_THE_END = 300 ",
            "MAX_ABSENCE_AT_THE_END = 0.3 ",
        );
        fs::write(
            folder.join(name),
            text.replace("CHECK_INTERVAL = 2 ", "CHECK_INTERVAL = 0.1 "),
        )
        .unwrap();
    }
    let start = |manager: &FakeAgent, options: &str| {
        let data = manager.url.replace([':', '/'], "");
        let options = format!("--player-id P01 --data {data} {options}");
        let player = test.python(folder.join("player.py"), &manager.url, &options);
        player.line("is P01");
        player
    };

    // It is known again, and goes on.
    let manager = fake::manager();
    let mut player = start(&manager, "");
    let asked = registrations(&manager, 3);
    assert_eq!(
        [&asked[1], &asked[2]].map(|one| &one["auth_token"]),
        [fake::TOKEN; 2]
    );
    assert_eq!(asked[0]["player_meta"]["must_be_known"], Value::Null);
    assert_eq!(asked[1]["player_meta"]["must_be_known"], true);
    converse(&player.url(), "manager ends: ok");
    player.wait_for_success();

    // Another league is there.
    let other = FakeAgent::counting(|n, request| match n {
        0 => fake::answers(request),
        _ => fake::rejects("Not a member", None),
    });
    check_failure(start(&other, ""), 1, "has rejected us: Not a member");

    // It joins the next lobby, which it must wait for, and knows no match of the old league.
    let next = FakeAgent::counting(|n, request| match n {
        0 => fake::answers(request),
        1 => fake::rejects("it has begun", Some("E019")),
        _ => fake::accepts(request, "tok-next-0123456789abcdef", true),
    });
    let player = start(&next, "--stay");
    player.wait_for_error("we are too late; waiting for the next league");
    player.line("its token is not known here");
    let asked = registrations(&next, 3);
    assert!(
        asked
            .iter()
            .all(|one| one["player_meta"]["must_be_known"].is_null())
    );

    // Nobody is there: it waits longer while the league has rounds before it.
    let gone = FakeAgent::counting(|n, request| match n {
        0 => fake::answers(request),
        _ => FakeReply::Close,
    });
    let player = start(&gone, "");
    player.wait_for_error("cannot be reached");
    let completed = "manager tells message_type=ROUND_COMPLETED";
    converse(&player.url(), &format!("{completed} next_round_id=2: ok"));
    registrations(&gone, 6);
    converse(
        &player.url(),
        &format!("{completed} next_round_id=null: ok"),
    );
    check_failure(player, 1, "does not answer any more");
}

#[test]
fn restarted_player_shows_the_result_of_its_match() {
    let Some(test) = test() else { return };
    let (_manager, player) = start_registered(&test, SCRIPT);
    let expected = "manager announces R1M2 tok-true: ok\ntrue complains R1M2: E015";
    converse(&player.url(), expected); // nothing is printed
    fake::check_restarted(&player);
}

#[test]
fn exception_in_a_thread_is_one_line() {
    let Some(test) = test() else { return };
    let body = "import threading
    threading.Thread(target=lambda: turn.thiers).start()
    return \"odd\"";
    let (_manager, player) = start_registered(&test, &write_with_choose(&test, body));
    converse(&player.url(), INVITED);
    converse(&player.url(), "true asks R1M1: chooses");
    player.wait_for_error("turn.thiers).start()`: AttributeError: 'Turn' object has");
    assert_eq!(count(&player, "Traceback"), 0);
}

#[test]
fn player_asks_for_its_next_match_if_the_announcement_is_lost() {
    let Some(test) = test() else { return };
    let manager = fake::manager_with_next_match();
    let player = start(&test, &manager.url, "");
    player.line("is P01");
    let script = "strange invites R1M1: E012\ntrue invites R1M1: joins\nstrange invites R2M1: E015";
    converse(&player.url(), script);
    assert_eq!(manager.first("LEAGUE_QUERY")["auth_token"], fake::TOKEN);
}

#[test]
fn address_of_the_manager_is_read_as_by_other_players() {
    let Some(test) = test() else { return };
    let players = |n: usize, manager: &str| {
        let options = format!("--port 0 --data data{n}");
        let rust = test.spawn("player", &format!("--manager {manager} {options}"));
        [start(&test, manager, &options), rust]
    };
    let spellings = [
        "127.0.0.1:1",
        "http://127.0.0.1:1/mcp/",
        "http://127.0.0.1:1/#R1M1",
        "http://127.0.0.1:1/?me=P01",
    ];
    for (n, manager) in spellings.into_iter().enumerate() {
        for player in players(n, manager) {
            player.wait_for_error("the league manager at http://127.0.0.1:1/mcp");
        }
    }
    for player in players(9, "http://127.0.0.1:80000") {
        check_failure(player, 2, "http://127.0.0.1:80000");
    }
}

#[test]
fn players_of_one_machine_take_the_next_free_port() {
    let Some(test) = test() else { return };
    let manager = fake::manager();
    let mut urls = Vec::new();
    let mut players = Vec::new();
    for name in ["Ada", "Bob"] {
        let mut command = Command::new(PYTHON);
        let options = format!("--until-stdin-closes --display-name {name} --manager");
        command
            .arg(SCRIPT)
            .args(options.split(' '))
            .arg(&manager.url);
        let player = TestProcess::new(command.current_dir(&test.folder));
        player.line(&format!("{name} is P01"));
        urls.push(player.url());
        players.push(player);
    }
    assert_ne!(urls[0], urls[1]);
}

/// Prints what the player in Python says of each result in a script.
const DESCRIBE: &str = r#"
import json, sys, types, league_player
ada = types.SimpleNamespace(id="P01", names={"P01": "Ada", "P02": "Bob"})
for line in open(sys.argv[1], encoding="utf-8"):
    if line.startswith("> says result: "):
        result = json.loads(line[15:])
        arguments = result, result["choices"], "P02", result.get("reason", "")
        print("  " + league_player.Player.sentence(ada, *arguments))
"#;

#[test]
fn results_are_told_as_by_the_player_in_rust() {
    let Some(test) = test() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("tests/scripts/invitations/results_in_names.txt");
    let mut command = Command::new(PYTHON);
    command
        .args(["-c", DESCRIBE])
        .arg(&script)
        .env("PYTHONPATH", root.join("bin"));
    let output = command.current_dir(&test.folder).output().unwrap();
    let script = fs::read_to_string(&script).unwrap().replace('\r', "");
    let expected: Vec<&str> = script
        .lines()
        .filter(|line| line.starts_with("  "))
        .collect();
    let told = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn waiting_player_prints_each_line_once() {
    let Some(test) = test() else { return };
    let manager = FakeAgent::counting(|n, request| match n {
        0 | 2 | 4 => FakeReply::Close,
        1 | 3 => fake::status("503 Busy", "later"),
        _ => fake::answers(request),
    });
    let player = start(&test, &manager.url, "");
    player.line("player is P01");
    let waiting = "waiting for the league manager at";
    assert_eq!(count(&player, waiting), 2, "{}", player.errors());
}
