//! `league_manager trace R1M1`: what a student sees of a match, made of everybody's logs. Over real
//! leagues of two players, and on paper where clocks contradict each other.

use super::support::*;
use crate::trace::{diagram, find_lines, page};
use std::cell::Cell;
use std::io::Write;
use std::process::Command;
use std::{fs, thread};

/// The diagram with its times masked.
fn traced(world: &World) -> String {
    let (code, text) = world.word("trace r1m1");
    assert_eq!(code, Some(0), "{text}");
    check_no_token(&text);
    let masked = text.lines().map(|line| {
        let line = &line[if line.starts_with(' ') { 10 } else { 0 }..];
        match line.starts_with("conv-r1m1-") {
            true => "conv-r1m1-",
            false => line.split(" {").next().unwrap(),
        }
    });
    let untimed = masked.map(|line| match line.strip_suffix(" ms)") {
        Some(timed) => timed.rsplit_once(" (").unwrap().0,
        None => line,
    });
    untimed.collect::<Vec<_>>().join("\n")
}

/// The same rows, each as often: what happens at once may stand in any order. But no answer above
/// its question.
fn check(name: &str, text: &str, expected: &str) {
    let sorted = |text: &str| {
        let mut rows: Vec<String> = text.lines().map(|line| line.trim().to_string()).collect();
        rows.sort();
        rows.join("\n")
    };
    assert_eq!(sorted(text), sorted(expected), "{name}:\n{text}");
    let way = [
        "GAME_INVITATION",
        "GAME_JOIN_ACK",
        "CHOOSE_PARITY_CALL",
        "GAME_OVER",
        "MATCH_RESULT_REPORT",
        "RESULT_ACK",
    ];
    assert!(
        way.is_sorted_by_key(|what| text.find(what)),
        "{name}:\n{text}"
    );
}

/// A league of a real P01, which says even, and P02, which answers a call as `script` says.
fn play(script: impl Fn(Does) -> Does + Send + Sync + 'static) -> World {
    let world = World::new("system timeouts.move_timeout_sec=3; system retry_policy.max_retries=2");
    let mut manager = world.serve("--players 2");
    let mut referee = world.agent(&manager, "REF01", "--seed 7");
    let mut player = world.agent(&manager, "P01", "play even");
    let peer = Peer::new(move |request| match good_player("P02", "odd", request) {
        good if request["params"]["message_type"] == "CHOOSE_PARITY_CALL" => script(good),
        good => good,
    });
    register_player(&manager.url(), "P02", &peer.url);
    manager.ends_well();
    referee.ends_well();
    player.ends_well();
    let output = manager.output();
    let lost = output.matches(" lost technically").count();
    let hints = output.matches(" (make trace MATCH=R1M1)\n").count();
    assert_eq!(lost, hints, "{output}");
    world
}

/// How it starts, and how it ends, whatever P02 says.
const FRAME: &str = "manager   REF01     P01       P02
conv-r1m1-
 |         |-------->|         |  GAME_INVITATION
 |         |..................>|  GAME_INVITATION
 |         |<--------|         |  GAME_JOIN_ACK
 |         |<..................|  GAME_JOIN_ACK
 |         |-------->|         |  CHOOSE_PARITY_CALL
 |         |<--------|         |  CHOOSE_PARITY_RESPONSE \"even\"
 |<--------|         |         |  MATCH_RESULT_REPORT
 |-------->|         |         |  MATCH_RESULT_ACK
dotted: only one end is in a log here; agents on other machines have their logs there\n";

const END: &str = " |         |-------->|         |  GAME_OVER HOW
 |         |..................>|  GAME_OVER HOW";
const CALL: &str = " |         |..................>|  CHOOSE_PARITY_CALL
 |         |<..................|  CHOOSE_PARITY_RESPONSE \"odd\"\n";
const SILENCE: &str = " |         |..................x|  CHOOSE_PARITY_CALL
 |         |         |         |  ✗ gave no answer within 3 s
 |         |..................>|  GAME_ERROR E001 TIMEOUT_ERROR: gave no answer to choose_parity within 3 s\n";
const WRONG: &str = " |         |..................>|  CHOOSE_PARITY_CALL
 |         |<..................|  CHOOSE_PARITY_RESPONSE \"blue\"
 |         |..................>|  GAME_ERROR E004 INVALID_PARITY_CHOICE: parity_choice: got \"blue\", must be \"even\" or \"odd\"\n";
const NOTHING: &str = " |         |..................>|  CHOOSE_PARITY_CALL
 |         |<..................|  an answer that is no message
 |         |..................>|  GAME_ERROR E003 MISSING_REQUIRED_FIELD: answered\n";

#[test]
fn a_match_is_drawn_as_it_went_and_the_failing_arrow_has_its_sentence() {
    let blue = |good| match good {
        Does::Answer(answer) => Does::Answer(but(&answer, "parity_choice", json!("blue"))),
        other => other,
    };
    let lost = [FRAME, &END.replace("HOW", "TECHNICAL_LOSS")].concat();
    let won = [FRAME, CALL, &END.replace("HOW", "WIN")].concat();
    check("won", &traced(&play(|good| good)), &won);
    let fails = |name: &str, world: World, step: &str| {
        check(name, &traced(&world), &[step, step, &lost].concat());
    };
    fails("silence", play(|_| Does::Silence), SILENCE);
    fails(
        "nothing",
        play(|_| Does::Answer(json!({"foo": 1}))),
        NOTHING,
    );
    fails("wrong", play(blue), WRONG);
}

#[test]
fn a_reassigned_match_has_all_its_conversations() {
    let (world, mut manager) = with_manager("serve --players 2 --referees 2");
    let gate = Gate::default();
    let mut referees = ["REF01", "REF02"].map(|id| world.agent(&manager, id, "--seed 7"));
    let peers = ["P01", "P02"].map(|id| {
        let peer = slow_player(id, "even", &gate, asks);
        register_player(&manager.url(), id, &peer.url);
        peer
    });
    for peer in &peers {
        peer.first("CHOOSE_PARITY_CALL");
    }
    referees[0].kill();
    manager.line("its matches are announced anew");
    gate.open();
    manager.ends_well();
    referees[1].ends_well();
    const EXPECTED: &str = "manager   REF01     REF02     P01       P02
conv-r1m1-
 |         |..................>|         |  GAME_INVITATION
 |         |............................>|  GAME_INVITATION
 |         |<..................|         |  GAME_JOIN_ACK
 |         |<............................|  GAME_JOIN_ACK
 |         |..................>|         |  CHOOSE_PARITY_CALL
 |         |............................>|  CHOOSE_PARITY_CALL
conv-r1m1-
 |         |         |........>|         |  GAME_INVITATION
 |         |         |..................>|  GAME_INVITATION
 |         |         |<........|         |  GAME_JOIN_ACK
 |         |         |<..................|  GAME_JOIN_ACK
 |         |         |........>|         |  CHOOSE_PARITY_CALL
 |         |         |..................>|  CHOOSE_PARITY_CALL
 |         |         |<........|         |  CHOOSE_PARITY_RESPONSE \"even\"
 |         |         |<..................|  CHOOSE_PARITY_RESPONSE \"even\"
 |         |         |........>|         |  GAME_OVER DRAW
 |         |         |..................>|  GAME_OVER DRAW
 |<------------------|         |         |  MATCH_RESULT_REPORT
 |------------------>|         |         |  MATCH_RESULT_ACK
dotted: only one end is in a log here; agents on other machines have their logs there";
    check("reassigned", &traced(&world), EXPECTED);
}

/// A line of a log on paper: when, whose, what happened, with which message, with whom. It is about
/// R1M1 and in the conversation conv-r1m1-0123abcd, unless `more` says otherwise.
fn line(words: &str, more: Value) -> Value {
    let [at, component, event, what, peer] = *words.split(' ').collect::<Vec<_>>() else {
        panic!("{words}");
    };
    let mut line = json!({"timestamp": format!("2025-01-15T{at}Z"), "component": component,
        "event_type": event, "peer": peer, "message_type": what, "match_id": "R1M1",
        "conversation_id": "conv-r1m1-0123abcd"});
    for (key, value) in more.as_object().into_iter().flatten() {
        line[key] = value.clone();
    }
    line
}

/// A match of REF01 and P01, whose clock is behind, and then the lines in `more`. P02's log is on
/// another machine.
fn story(more: Vec<Value>) -> Vec<Value> {
    let story = [
        "10:00:05 P01 message_received GAME_INVITATION referee:REF01",
        "10:00:05 P01 message_sent GAME_JOIN_ACK referee:REF01",
        "10:00:09.500 REF01 message_sent GAME_INVITATION P01",
        "10:00:10.500 REF01 reply_received GAME_JOIN_ACK P01",
        "10:00:10.501 REF01 message_sent GAME_OVER P02",
    ];
    let story = story.map(|words| line(words, Value::Null));
    story.into_iter().chain(more).collect()
}

const STORY: &str = "      ms  manager   REF01     P01       P02
          conv-r1m1-0123abcd
    4500   |         |-------->|         |  GAME_INVITATION
       0   |         |<--------|         |  GAME_JOIN_ACK
    5501   |         |..................>|  GAME_OVER
dotted: only one end is in a log here; agents on other machines have their logs there";

/// Lays lines into the files of a folder of logs.
fn laid(lines: &[Value]) -> World {
    let world = World::new("");
    let folder = world.folder.join("logs/agents");
    fs::create_dir_all(&folder).unwrap();
    for line in lines {
        let path = folder.join(format!("{}.log.jsonl", text_of(&line["component"])));
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        writeln!(file.unwrap(), "{line}").unwrap();
    }
    world
}

/// What is kept of lines that went through such files.
fn kept(lines: &[Value]) -> Vec<Value> {
    find_lines(&laid(lines).folder.join("logs"), "paper", "R1M1").unwrap()
}

#[test]
fn causes_come_before_clocks_and_strangers_leave_no_mark() {
    let plain = |words| line(words, Value::Null);
    let no_talk = |words| line(words, json!({"conversation_id": null}));
    let error = json!({"match_id": "R1M1", "error_code": "E012", "affected_player": "P01",
        "error_description": "AUTH_TOKEN_INVALID", "action_required": "GAME_JOIN_ACK"});
    let refusal = json!({"error_code": "E012", "message": error});
    let refuses = |words: &str| line(words, refusal.clone());
    let old = json!({"conversation_id": "conv-r1m1-old"});
    let earlier = line("09:00:00 REF01 message_sent GAME_INVITATION P09", old);
    let theirs = json!({"conversation_id": "conv-r1m1-theirs"});
    let own_talk = "10:00:30 P01 message_received GAME_INVITATION REF01";
    let other = json!({"conversation_id": "conv-r1m1-x", "message": {"league_id": "other"}});
    let other = line("10:00:20 REF01 message_sent GAME_INVITATION P01", other);
    let start = no_talk("09:59:00 league_manager league_begun - -");
    let forged = plain("10:00:06 P01 message_received GAME_OVER referee:REF01");
    let invented = plain("10:00:06 P01 message_received GAME_OVER referee:X");
    let as_player = plain("10:00:06 REF01 message_received GAME_ERROR player:P01");
    let as_itself = plain("10:00:06 P01 message_received GAME_OVER player:P01");
    let [refused, disowned] = ["X", "REF01"].map(|who| {
        refuses(&format!(
            "10:00:06 P01 message_sent GAME_ERROR referee:{who}"
        ))
    });
    for (name, more) in [
        ("nothing", vec![]),
        ("an older run", vec![earlier.clone(), start]),
        ("another league", vec![other]),
        ("invented senders", vec![invented, refused]),
        (
            "in the referee's name, and refused",
            vec![forged.clone(), disowned],
        ),
        ("in a player's name", vec![as_player]),
        ("in its own name", vec![as_itself]),
        ("in a conversation of its own", vec![line(own_talk, theirs)]),
    ] {
        let drawn = diagram(&kept(&story(more)));
        assert_eq!(drawn.as_deref(), Some(STORY), "{name}");
    }
    let drawn = diagram(&kept(&story(vec![earlier]))).unwrap();
    check_says(&drawn, "conv-r1m1-old");
    assert_eq!(diagram(&kept(&[forged])), None);
}

/// A line, what it says, and how it is drawn: a player may also refuse the referee itself.
const DRAWN: &str = r#"
10:00:11 P01 message_sent GAME_ERROR REF01 | {"error_code": "E015"} | |<--------|         |  GAME_ERROR
10:00:11 P01 message_sent GAME_JOIN_ACK REF01 | {"message": {"accept": false}} | |<........|         |  GAME_JOIN_ACK accept false
10:00:11 REF01 message_sent CHOOSE_MOVE_CALL P02 | {"message": {"position": "X 2\n3 4"}} | |..................>|  CHOOSE_MOVE_CALL X 2 / 3 4"#;

#[test]
fn an_arrow_says_what_decides() {
    let answer = "10:00:11 REF01 reply_received GAME_ERROR P01";
    for row in DRAWN.trim().lines() {
        let [words, more, drawn] = *row.splitn(3, " | ").collect::<Vec<_>>() else {
            panic!("{row}");
        };
        let more = line(words, json_of(more));
        let came = diagram(&kept(&story(vec![more, line(answer, Value::Null)]))).unwrap();
        check_says(&came, drawn);
    }
}

#[test]
fn however_many_lines_a_stranger_writes_few_are_kept() {
    let flood = |n: usize| {
        let theirs = json!({"conversation_id": format!("conv-r1m1-{n}")});
        let more = if n < 300 { Value::Null } else { theirs };
        line(
            "10:00:12 P01 message_received GAME_OVER referee:REF01",
            more,
        )
    };
    let kept = kept(&story((0..2000).map(flood).collect()));
    assert_eq!(kept.len(), 203, "200 of P01's, and 3 of REF01's");
    assert_eq!(diagram(&kept).unwrap(), STORY);
}

#[test]
fn one_page_is_made_at_a_time_and_of_a_match_that_is_still_over() {
    let world = World::new("");
    let logs = world.folder.join("logs");
    let pipe = logs.join("agents/slow.log.jsonl"); // nobody can open it before somebody writes
    fs::create_dir_all(logs.join("agents")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let ask = |recorded| page(&logs, "paper", "R1M1", || recorded).status;
    let busy = "503 Service Unavailable";
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            until("it is made", || {
                Some(ask(Some(true))).filter(|it| *it != busy)
            })
        });
        wait_until("the first page is being made", || ask(None) == busy);
        let writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        fs::remove_file(&pipe).unwrap(); // a second look finds no such log
        drop(writer);
        assert_eq!(slow.join().unwrap(), "404 Not Found");
    });
    assert_eq!(ask(None), "404 Not Found");

    let world = laid(&story(Vec::new()));
    for (is_still_over, status) in [(true, "200 OK"), (false, "404 Not Found")] {
        let was_over = Cell::new(true);
        let recorded = || Some(was_over.replace(is_still_over));
        let shown = page(&world.folder.join("logs"), "paper", "R1M1", recorded);
        assert_eq!(shown.status, status, "while the logs were read");
    }
}
