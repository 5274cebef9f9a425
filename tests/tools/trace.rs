//! `league trace R1M1`: the messages of a match, from the logs of all agents. In real leagues of two
//! players, and with log lines on paper.

use super::support::*;
use crate::show::trace::{diagram, find_lines, page};
use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{fs, thread};

/// Returns the diagram of R1M1 without its times and the end of the conversation.
fn trace(test: &TestLeague) -> String {
    let (code, text) = test.run_tool("trace r1m1");
    assert_eq!(code, Some(0), "{text}");
    check_no_token(&text);
    let mut rows = Vec::new();
    let logs = test.folder.join("logs");
    let (head, text) = text.split_once('\n').unwrap();
    check_contains(head, "R1M1 of league_2025_even_odd, 20");
    check_contains(head, &format!("Z, by the logs in {}", logs.display()));
    for line in text.lines() {
        let start = if line.starts_with(' ') { 10 } else { 0 };
        let mut row = &line[start..];
        if row.starts_with("conv-r1m1-") {
            row = "conv-r1m1-";
        }
        row = row.split(" {").next().unwrap();
        if let Some(timed) = row.strip_suffix(" ms)") {
            row = timed.rsplit_once(" (").unwrap().0;
        }
        rows.push(row);
    }
    rows.join("\n")
}

fn sorted_rows(text: &str) -> Vec<&str> {
    let mut rows: Vec<&str> = text.lines().map(str::trim).collect();
    rows.sort();
    rows
}

/// Checks that a diagram has the expected rows. Simultaneous messages may be in any order, but no
/// answer is above its question.
fn check(name: &str, text: &str, expected: &str) {
    assert_eq!(sorted_rows(text), sorted_rows(expected), "{name}:\n{text}");
    let sequence = [
        "GAME_INVITATION",
        "GAME_JOIN_ACK",
        "CHOOSE_PARITY_CALL",
        "GAME_OVER",
        "MATCH_RESULT_REPORT",
        "RESULT_ACK",
    ];
    assert!(
        sequence.is_sorted_by_key(|message_type| text.find(message_type)),
        "{name}:\n{text}"
    );
}

/// Plays a league of P01, which always chooses even, and P02, whose answer `script` changes.
fn play(script: impl Fn(FakeReply) -> FakeReply + Send + Sync + 'static) -> TestLeague {
    let test =
        TestLeague::new("system timeouts.move_timeout_sec=3; system retry_policy.max_retries=2");
    let mut manager = test.serve("--players 2");
    let mut referee = test.agent(&manager, "REF01", "--seed 7");
    let mut player = test.agent(&manager, "P01", "play even");
    let peer = FakeAgent::new(move |request| match valid_reply("P02", "odd", request) {
        good if request["params"]["message_type"] == "CHOOSE_PARITY_CALL" => script(good),
        good => good,
    });
    register_player(&manager.url(), "P02", &peer.url);
    manager.wait_for_success();
    referee.wait_for_success();
    player.wait_for_success();
    let output = manager.output();
    let lost = output.matches(", so ").count();
    let hints = output.matches(" (make trace MATCH=R1M1)\n").count();
    assert_eq!(lost, hints, "{output}");
    test
}

/// The rows that do not depend on P02.
const FRAME: &str = "manager   REF01     P01       P02
conv-r1m1-
 |         |-------->|         |  GAME_INVITATION
 |         |------------------>|  GAME_INVITATION
 |         |<--------|         |  GAME_JOIN_ACK
 |         |<------------------|  GAME_JOIN_ACK
 |         |-------->|         |  CHOOSE_PARITY_CALL
 |         |<--------|         |  CHOOSE_PARITY_RESPONSE \"even\"
 |<--------|         |         |  MATCH_RESULT_REPORT
 |-------->|         |         |  MATCH_RESULT_ACK\n";

const END: &str = " |         |-------->|         |  GAME_OVER HOW
 |         |------------------>|  GAME_OVER HOW";
const CALL: &str = " |         |------------------>|  CHOOSE_PARITY_CALL
 |         |<------------------|  CHOOSE_PARITY_RESPONSE \"odd\"\n";
const SILENCE: &str = " |         |------------------>|  CHOOSE_PARITY_CALL
 |         |------------------x|  ✗ gave no answer within 3 s
 |         |------------------>|  GAME_ERROR E001 TIMEOUT_ERROR: gave no answer within 3 s\n";
const WRONG: &str = " |         |------------------>|  CHOOSE_PARITY_CALL
 |         |<------------------|  CHOOSE_PARITY_RESPONSE \"blue\"
 |         |------------------>|  GAME_ERROR E004 INVALID_PARITY_CHOICE: parity_choice: got \"blue\", must be \"even\" or \"odd\"\n";
const PAGE: &str = " |         |------------------>|  CHOOSE_PARITY_CALL
 |         |------------------x|  ✗ answered HTTP 500 with a page of text
 |         |         |         |  <p>Oh
 |         |------------------>|  GAME_ERROR E009 CONNECTION_ERROR: answered HTTP 500 with a page of text\n";
const NOTHING: &str = " |         |------------------>|  CHOOSE_PARITY_CALL
 |         |<------------------|  an answer that is no message
 |         |------------------>|  GAME_ERROR E003 MISSING_REQUIRED_FIELD: answered\n";

#[test]
fn failed_calls_are_drawn_with_their_reason() {
    let won = [FRAME, CALL, &END.replace("HOW", "WIN")].concat();
    check("won", &trace(&play(|good| good)), &won);

    let lost = [FRAME, &END.replace("HOW", "TECHNICAL_LOSS")].concat();
    for (name, test, step) in [
        ("silence", play(|_| FakeReply::Silence), SILENCE),
        (
            "nothing",
            play(|_| FakeReply::Answer(json!({"foo": 1}))),
            NOTHING,
        ),
        ("wrong", play(illegal_choice), WRONG),
        ("page", play(|_| fake::status("500 Oh", "<p>Oh")), PAGE),
    ] {
        check(name, &trace(&test), &[step, step, &lost].concat());
    }
}

fn illegal_choice(good: FakeReply) -> FakeReply {
    match good {
        FakeReply::Answer(answer) => {
            FakeReply::Answer(with_field(&answer, "parity_choice", json!("blue")))
        }
        other => other,
    }
}

#[test]
fn reassigned_match_has_all_its_conversations() {
    let (test, mut manager) = with_manager("serve --players 2 --referees 2");
    let gate = Gate::default();
    let mut referees = ["REF01", "REF02"].map(|id| test.agent(&manager, id, "--seed 7"));
    let peers = ["P01", "P02"].map(|id| {
        let peer = slow_player(id, "even", &gate, is_parity_call);
        register_player(&manager.url(), id, &peer.url);
        peer
    });
    for peer in &peers {
        peer.first("CHOOSE_PARITY_CALL");
    }
    referees[0].kill();
    manager.line("its matches are announced again");
    gate.open();
    manager.wait_for_success();
    referees[1].wait_for_success();
    const EXPECTED: &str = "manager   REF01     REF02     P01       P02
conv-r1m1-
 |         |------------------>|         |  GAME_INVITATION
 |         |---------------------------->|  GAME_INVITATION
 |         |<------------------|         |  GAME_JOIN_ACK
 |         |<----------------------------|  GAME_JOIN_ACK
 |         |------------------>|         |  CHOOSE_PARITY_CALL
 |         |---------------------------->|  CHOOSE_PARITY_CALL
conv-r1m1-
 |         |         |-------->|         |  GAME_INVITATION
 |         |         |------------------>|  GAME_INVITATION
 |         |         |<--------|         |  GAME_JOIN_ACK
 |         |         |<------------------|  GAME_JOIN_ACK
 |         |         |-------->|         |  CHOOSE_PARITY_CALL
 |         |         |------------------>|  CHOOSE_PARITY_CALL
 |         |         |<--------|         |  CHOOSE_PARITY_RESPONSE \"even\"
 |         |         |<------------------|  CHOOSE_PARITY_RESPONSE \"even\"
 |         |         |-------->|         |  GAME_OVER DRAW
 |         |         |------------------>|  GAME_OVER DRAW
 |<------------------|         |         |  MATCH_RESULT_REPORT
 |------------------>|         |         |  MATCH_RESULT_ACK";
    check("reassigned", &trace(&test), EXPECTED);
}

/// Returns a log line on paper from its time, component, event, message type and peer. It belongs to
/// R1M1 and the conversation conv-r1m1-0123abcd, unless `fields` has others.
fn line(text: &str, fields: Value) -> Value {
    let [time, component, event, message_type, peer] = *text.split(' ').collect::<Vec<_>>() else {
        panic!("{text}");
    };
    let mut line = json!({"timestamp": format!("2025-01-15T{time}Z"), "component": component,
        "event_type": event, "peer": peer, "message_type": message_type, "match_id": "R1M1",
        "conversation_id": "conv-r1m1-0123abcd"});
    for (key, value) in fields.as_object().into_iter().flatten() {
        line[key] = value.clone();
    }
    line
}

fn plain_line(text: &str) -> Value {
    line(text, Value::Null)
}

/// Returns the lines of a match of REF01, and then more lines.
fn match_lines(more: Vec<Value>) -> Vec<Value> {
    let invitation = json!({"message": {"league_id": "paper"}});
    let mut lines = vec![line(
        "10:00:09.500 REF01 message_sent GAME_INVITATION P01",
        invitation,
    )];
    let texts = [
        "10:00:10.500 REF01 reply_received GAME_JOIN_ACK P01",
        "10:00:10.501 REF01 message_sent GAME_OVER P02",
    ];
    lines.extend(texts.map(plain_line));
    lines.extend(more);
    lines
}

const MATCH_DIAGRAM: &str = "      ms  manager   REF01     P01       P02
          conv-r1m1-0123abcd
       0   |         |-------->|         |  GAME_INVITATION
    1000   |         |<--------|         |  GAME_JOIN_ACK
    1001   |         |------------------>|  GAME_OVER";

/// Returns a test league with these lines in its logs.
fn world_with_logs(lines: &[Value]) -> TestLeague {
    let test = TestLeague::new("");
    let folder = test.folder.join("logs/agents");
    fs::create_dir_all(&folder).unwrap();
    for line in lines {
        let path = folder.join(format!("{}.log.jsonl", text_of(&line["component"])));
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        writeln!(file.unwrap(), "{line}").unwrap();
    }
    test
}

/// Returns the lines that a trace finds in logs with these lines.
fn find(lines: &[Value]) -> Vec<Value> {
    find_lines(&world_with_logs(lines).folder.join("logs"), "paper", "R1M1").unwrap()
}

#[test]
fn only_what_the_referee_has_sent_and_its_replies_are_drawn() {
    let old = json!({"conversation_id": "conv-r1m1-old", "message": {"league_id": "paper"}});
    let earlier = line("09:00:00 REF01 message_sent GAME_INVITATION P09", old);
    let other = json!({"conversation_id": "conv-r1m1-x", "message": {"league_id": "other"}});
    let other = line("10:00:20 REF01 message_sent GAME_INVITATION P01", other);
    let forged = plain_line("10:00:06 P01 message_received GAME_OVER referee:REF01");
    let as_player = plain_line("10:00:06 REF01 message_received GAME_ERROR player:P01");
    for (name, more) in [
        ("nothing", vec![]),
        ("another league", vec![other]),
        ("in the referee's name", vec![forged.clone()]),
        ("in a player's name", vec![as_player]),
    ] {
        let drawn = diagram(&find(&match_lines(more)));
        assert_eq!(drawn.as_deref(), Some(MATCH_DIAGRAM), "{name}");
    }
    assert_eq!(diagram(&find(&[forged])), None);

    // The lines of an earlier run are left out, if the manager has begun a league since.
    let test = world_with_logs(&match_lines(vec![earlier]));
    let logs = test.folder.join("logs");
    let found = || find_lines(&logs, "paper", "R1M1").unwrap().len();
    assert_eq!(found(), 4);
    let start = plain_line("09:59:00 league_manager league_begun - -");
    for file in ["league/paper/league", "system/orchestrator"] {
        let path = logs.join(format!("{file}.log.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{start}\n")).unwrap();
        assert_eq!(found(), 3, "{file}");
        fs::remove_file(path).unwrap();
    }
}

/// A line, its other fields, and its row.
const DRAWN: &str = r#"
10:00:11 REF01 reply_received GAME_JOIN_ACK P01 | {"message": {"accept": false}} | |<--------|         |  GAME_JOIN_ACK accept false
10:00:11 referee:REF01 reply_received GAME_JOIN_ACK player:P01 | {"message": {"accept": false}} | |<--------|         |  GAME_JOIN_ACK accept false
10:00:11 REF01 message_sent CHOOSE_MOVE_CALL P02 | {"message": {"position": "X 2\n3 4"}} | |------------------>|  CHOOSE_MOVE_CALL X 2 / 3 4
10:00:11 P02 comment CHOOSE_MOVE_CALL - | {"message": "chose 5: it is the middle"} | 1500  P02 chose 5: it is the middle"#;

#[test]
fn labels_show_the_field_that_decides() {
    for row in DRAWN.trim().lines() {
        let [text, fields, drawn] = *row.splitn(3, " | ").collect::<Vec<_>>() else {
            panic!("{row}");
        };
        let lines = vec![line(text, json_of(fields))];
        let diagram = diagram(&find(&match_lines(lines))).unwrap();
        check_contains(&diagram, drawn);
    }
}

fn page_status(logs: &Path, has_result: Option<bool>) -> &'static str {
    page(logs, "paper", "R1M1", || has_result).status
}

#[test]
#[cfg_attr(windows, ignore = "mkfifo is a command of Unix")]
fn pages_are_made_one_at_a_time_and_only_with_a_result() {
    let test = TestLeague::new("");
    let logs = test.folder.join("logs");
    let pipe = logs.join("agents/slow.log.jsonl"); // reading waits for a writer
    fs::create_dir_all(logs.join("agents")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let busy = "503 Service Unavailable";
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            until("it is made", || {
                Some(page_status(&logs, Some(true))).filter(|status| *status != busy)
            })
        });
        wait_until("the first page is being made", || {
            page_status(&logs, None) == busy
        });
        let writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        fs::remove_file(&pipe).unwrap(); // the second reading finds no such log
        drop(writer);
        assert_eq!(slow.join().unwrap(), "404 Not Found");
    });
    assert_eq!(page_status(&logs, None), "404 Not Found");

    let test = world_with_logs(&match_lines(Vec::new()));
    let logs = test.folder.join("logs");
    for (still_has_result, status) in [(true, "200 OK"), (false, "404 Not Found")] {
        let has_result = Cell::new(true); // it may change while the logs are read
        let page = page(&logs, "paper", "R1M1", || {
            Some(has_result.replace(still_has_result))
        });
        assert_eq!(page.status, status);
    }
}
