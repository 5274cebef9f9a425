//! `league_manager trace R1M1`: what a student sees of a match, made of everybody's logs. Over real leagues of two
//! players, and on paper where clocks contradict each other.

mod support;

use league::extras::trace::{about, diagram};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use support::*;

/// The diagram with its times masked.
fn traced(world: &World) -> String {
    let (code, text) = world.word(&["trace", "r1m1"]);
    assert_eq!(code, Some(0), "{text}");
    check_no_token(&text);
    let masked = text.lines().map(|line| {
        let line = line
            .get(10..)
            .filter(|_| line.starts_with(' '))
            .unwrap_or(line);
        let line = if line.starts_with("conv-r1m1-") {
            "conv-r1m1-"
        } else {
            line
        };
        let line = line.split_once(" {").map_or(line, |(said, _)| said);
        match line
            .rsplit_once(" (")
            .filter(|(_, took)| took.ends_with(" ms)"))
        {
            Some((said, _)) => said.to_string(),
            None => line.to_string(),
        }
    });
    masked.collect::<Vec<_>>().join("\n")
}

/// The same rows, each as often: what happens at once may stand in any order. But no answer above its question.
fn check(name: &str, text: &str, expected: &str) {
    let sorted = |text: &str| {
        let mut rows: Vec<String> = text.lines().map(|line| line.trim().to_string()).collect();
        rows.sort();
        rows.join("\n")
    };
    assert_eq!(sorted(text), sorted(expected), "{name}:\n{text}");
    let place = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("{name}: no {what} in\n{text}"))
    };
    let way = [
        "GAME_INVITATION",
        "GAME_JOIN_ACK",
        "CHOOSE_PARITY_CALL",
        "GAME_OVER",
        "MATCH_RESULT_REPORT",
        "RESULT_ACK",
    ];
    assert!(way.is_sorted_by_key(|what| place(what)), "{name}:\n{text}");
}

/// A league of a real P01, which says even, and P02, which answers a call as `script` says.
fn play(script: impl Fn(Does) -> Does + Send + Sync + 'static) -> World {
    let world = World::new(&[
        ("system.json", "/timeouts/move_timeout_sec", json!(1)),
        ("system.json", "/retry_policy/max_retries", json!(2)),
    ]);
    let mut manager = world.manager(&["--players", "2"]);
    let mut referee = world.referee(&manager, "REF01", &["--seed", "7"]);
    let mut player = world.player(&manager, "P01", &["--strategy", "even"]);
    let peer = Peer::new(move |request| match good_player("P02", "odd", request) {
        good if request["params"]["message_type"] == "CHOOSE_PARITY_CALL" => script(good),
        good => good,
    });
    register_player(&manager.url(), "player:P02", &peer.url);
    assert!(manager.wait().success() && referee.wait().success() && player.wait().success());
    let ends = manager
        .output()
        .lines()
        .filter(|line| line.contains(" lost technically"))
        .count();
    assert_eq!(
        ends,
        manager
            .output()
            .lines()
            .filter(|line| line.ends_with(" (make trace MATCH=R1M1)"))
            .count()
    );
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
dotted: only one end has logged it
no log here of P02: agents on other machines have theirs there\n";

const END: &str = " |         |-------->|         |  GAME_OVER HOW
 |         |..................>|  GAME_OVER HOW";
const CALL: &str = " |         |..................>|  CHOOSE_PARITY_CALL
 |         |<..................|  CHOOSE_PARITY_RESPONSE \"odd\"\n";
const SILENCE: &str = " |         |..................x|  CHOOSE_PARITY_CALL
 |         |         |         |  ✗ gave no answer within 1 s
 |         |..................>|  GAME_ERROR E001 TIMEOUT_ERROR\n";
const WRONG: &str = " |         |..................>|  CHOOSE_PARITY_CALL
 |         |<..................|  CHOOSE_PARITY_RESPONSE \"blue\"
 |         |         |         |  ✗ E004 INVALID_PARITY_CHOICE: parity_choice: got \"blue\", must be \"even\" or \"odd\"
 |         |..................>|  GAME_ERROR E004 INVALID_PARITY_CHOICE\n";
const NOTHING: &str = " |         |..................>|  CHOOSE_PARITY_CALL
 |         |<..................|  an answer that is no message
 |         |         |         |  ✗ E003 MISSING_REQUIRED_FIELD: answered
 |         |..................>|  GAME_ERROR E003 MISSING_REQUIRED_FIELD\n";

#[test]
fn a_match_is_drawn_as_it_went_and_the_failing_arrow_has_its_sentence() {
    let blue = |good| match good {
        Does::Answer(mut answer) => {
            answer["parity_choice"] = "blue".into();
            Does::Answer(answer)
        }
        other => other,
    };
    let lost = END.replace("HOW", "TECHNICAL_LOSS");
    check(
        "won",
        &traced(&play(|good| good)),
        &[FRAME, CALL, &END.replace("HOW", "WIN")].concat(),
    );
    check(
        "silence",
        &traced(&play(|_| Does::Silence)),
        &[FRAME, SILENCE, SILENCE, &lost].concat(),
    );
    let nothing = |_| Does::Answer(json!({"foo": 1}));
    check(
        "nothing",
        &traced(&play(nothing)),
        &[FRAME, NOTHING, NOTHING, &lost].concat(),
    );
    check(
        "wrong",
        &traced(&play(blue)),
        &[FRAME, WRONG, WRONG, &lost].concat(),
    );
}

#[test]
fn a_reassigned_match_has_all_its_conversations() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "2", "--referees", "2"]);
    let gate = Gate::default();
    let mut referees = ["REF01", "REF02"].map(|id| world.referee(&manager, id, &["--seed", "7"]));
    let peers = ["P01", "P02"].map(|id| {
        let (gate, is_first) = (gate.clone(), AtomicBool::new(true));
        Peer::new(move |request| {
            let called = request["params"]["message_type"] == "CHOOSE_PARITY_CALL";
            if called && is_first.swap(false, Ordering::SeqCst) {
                gate.pass();
            }
            good_player(id, "even", request)
        })
    });
    for (id, peer) in ["P01", "P02"].iter().zip(&peers) {
        register_player(&manager.url(), &format!("player:{id}"), &peer.url);
    }
    peers
        .iter()
        .for_each(|peer| drop(peer.first("CHOOSE_PARITY_CALL")));
    referees[0].kill();
    manager.line("its matches are announced anew");
    gate.open();
    assert!(manager.wait().success() && referees[1].wait().success());
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
dotted: only one end has logged it
no log here of P01, P02: agents on other machines have theirs there";
    check("reassigned", &traced(&world), EXPECTED);
}

/// A line of a log on paper, about R1M1 in the conversation conv-r1m1-0123abcd unless `more` says otherwise.
fn line(at: &str, component: &str, event: &str, what: &str, peer: &str, more: Value) -> Value {
    let mut line = json!({"timestamp": format!("2025-01-15T{at}Z"), "component": component,
        "event_type": event, "peer": peer, "message_type": what, "match_id": "R1M1",
        "conversation_id": "conv-r1m1-0123abcd"});
    for (key, value) in more.as_object().into_iter().flatten() {
        line[key] = value.clone();
    }
    line
}

/// The diagram of lines, after it went through the files of a folder of logs.
fn on_paper(lines: &[Value]) -> Option<String> {
    let world = World::new(&[]);
    for line in lines {
        let folder = world.folder.join("logs/agents");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{}.log.jsonl", line["component"].as_str().unwrap()));
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path);
        writeln!(file.unwrap(), "{line}").unwrap();
    }
    diagram(&about(&world.folder.join("logs"), "paper", "R1M1").unwrap())
}

/// A match of REF01 and P01, whose clock is behind; P02's log is on another machine.
fn story() -> Vec<Value> {
    let story =
        |at, component, event, what, peer| line(at, component, event, what, peer, Value::Null);
    vec![
        story(
            "10:00:05",
            "P01",
            "message_received",
            "GAME_INVITATION",
            "referee:REF01",
        ),
        story(
            "10:00:05",
            "P01",
            "message_sent",
            "GAME_JOIN_ACK",
            "referee:REF01",
        ),
        story(
            "10:00:09.500",
            "REF01",
            "message_sent",
            "GAME_INVITATION",
            "P01",
        ),
        story(
            "10:00:10.500",
            "REF01",
            "reply_received",
            "GAME_JOIN_ACK",
            "P01",
        ),
        story("10:00:10.501", "REF01", "message_sent", "GAME_OVER", "P02"),
    ]
}

const STORY: &str = "      ms  manager   REF01     P01       P02
          conv-r1m1-0123abcd
    4500   |         |-------->|         |  GAME_INVITATION
       0   |         |<--------|         |  GAME_JOIN_ACK
    5501   |         |..................>|  GAME_OVER
dotted: only one end has logged it
no log here of manager, P02: agents on other machines have theirs there";

#[test]
fn causes_come_before_clocks_and_strangers_leave_no_mark() {
    let old = json!({"conversation_id": "conv-r1m1-old"});
    let other = json!({"conversation_id": "conv-r1m1-other", "message": {"league_id": "other"}});
    let life = |at, event| {
        line(
            at,
            "league_manager",
            event,
            "",
            "",
            json!({"conversation_id": null}),
        )
    };
    let invited = |at, more| line(at, "REF01", "message_sent", "GAME_INVITATION", "P09", more);
    let refused = json!({"level": "WARNING", "error_code": "E012", "message": {
        "match_id": "R1M1", "error_code": "E012", "error_description": "AUTH_TOKEN_INVALID",
        "affected_player": "P01", "action_required": "GAME_JOIN_ACK"}});
    let received = |component, what, peer| {
        line(
            "10:00:06",
            component,
            "message_received",
            what,
            peer,
            Value::Null,
        )
    };
    let sent = |what, peer| {
        line(
            "10:00:06",
            "P01",
            "message_sent",
            what,
            peer,
            refused.clone(),
        )
    };
    let unknown = json!({"conversation_id": "conv-r1m1-stranger"});
    let rows = [
        ("nothing", vec![]),
        (
            "an older run",
            vec![life("09:59:00", "started"), invited("09:00:00", old)],
        ),
        ("another league", vec![invited("10:00:20", other)]),
        (
            "invented senders",
            vec![
                received("P01", "GAME_OVER", "referee:X"),
                sent("GAME_ERROR", "X"),
            ],
        ),
        (
            "in the referee's name, refused",
            vec![
                received("P01", "GAME_OVER", "referee:REF01"),
                sent("GAME_ERROR", "referee:REF01"),
            ],
        ),
        (
            "in a player's name",
            vec![received("REF01", "GAME_ERROR", "player:P01")],
        ),
        (
            "in its own name",
            vec![received("P01", "GAME_OVER", "player:P01")],
        ),
        (
            "a conversation of the stranger's",
            vec![line(
                "10:00:30",
                "P01",
                "message_received",
                "GAME_OVER",
                "REF01",
                unknown.clone(),
            )],
        ),
        (
            "refused there",
            vec![line(
                "10:00:30",
                "P01",
                "message_sent",
                "GAME_ERROR",
                "REF01",
                unknown,
            )],
        ),
    ];
    for (name, more) in rows {
        let lines = [story(), more].concat();
        assert_eq!(on_paper(&lines).as_deref(), Some(STORY), "{name}");
    }
    let resumed = [
        vec![life("10:01:00", "started"), life("10:01:00", "resumed")],
        story(),
    ];
    assert_eq!(on_paper(&resumed.concat()).as_deref(), Some(STORY));
    assert_eq!(
        on_paper(&[received("P01", "GAME_OVER", "referee:REF01")]),
        None
    );
}

#[test]
fn a_player_refuses_the_referee_itself() {
    let refusal = |event, component, peer, more: &str| {
        line(
            "10:00:11",
            component,
            event,
            "GAME_ERROR",
            peer,
            serde_json::from_str(more).unwrap(),
        )
    };
    let sent = refusal("message_sent", "P01", "REF01", "{\"error_code\": \"E015\"}");
    let answered = refusal(
        "notice_answered",
        "REF01",
        "P01",
        "{\"message_type\": \"GAME_OVER\"}",
    );
    let drawn = on_paper(&[story(), vec![sent, answered]].concat()).unwrap();
    assert!(
        drawn.contains("|         |<--------|         |  GAME_ERROR"),
        "{drawn}"
    );
}

#[test]
fn however_many_lines_a_stranger_writes_few_are_kept() {
    let flood = |n: usize| {
        let conversation = json!({"conversation_id": format!("conv-r1m1-{}", n % 2)});
        let more = if n < 300 { Value::Null } else { conversation };
        line(
            "10:00:12",
            "P01",
            "message_received",
            "GAME_OVER",
            "referee:REF01",
            more,
        )
    };
    let lines = [story(), (0..2000).map(flood).collect()].concat();
    let drawn = on_paper(&lines).unwrap();
    let note = "of each log the first 200 lines of a conversation are drawn";
    assert_eq!(drawn, format!("{STORY}\n{note}"));
}
