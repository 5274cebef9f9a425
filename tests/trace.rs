//! `league_manager trace R1M1`: what a student sees of a match, made of everybody's logs. Over real leagues of two
//! players, and on paper where clocks contradict each other.

mod support;

use league::extras::trace::{about, diagram};
use serde_json::json;
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

#[test]
fn causes_come_before_clocks_and_the_newest_run_counts() {
    let line = |at: &str, component: &str, event: &str, what: &str, peer: &str| {
        json!({"timestamp": format!("2025-01-15T{at}Z"), "component": component, "event_type": event, "peer": peer,
            "message_type": what, "conversation_id": "conv-r1m1-new", "match_id": "R1M1"})
    };
    let started = json!({"timestamp": "2025-01-15T10:00:00Z", "component": "league_manager", "event_type": "started"});
    let mut old = line(
        "09:00:00",
        "REF01",
        "message_sent",
        "GAME_INVITATION",
        "P09",
    );
    old["conversation_id"] = "conv-r1m1-old".into();
    let lines = [
        started,
        line(
            "10:00:05",
            "P01",
            "message_received",
            "GAME_INVITATION",
            "referee:REF01",
        ), // its clock is behind
        line(
            "10:00:05",
            "P01",
            "message_sent",
            "GAME_JOIN_ACK",
            "referee:REF01",
        ),
        old,
        line(
            "10:00:09.500",
            "REF01",
            "message_sent",
            "GAME_INVITATION",
            "P01",
        ),
        line(
            "10:00:10.500",
            "REF01",
            "reply_received",
            "GAME_JOIN_ACK",
            "P01",
        ),
        line(
            "10:00:10.501",
            "REF01",
            "message_sent",
            "CHOOSE_PARITY_CALL",
            "P01",
        ),
    ];
    let expected = "      ms  manager   REF01     P01
          conv-r1m1-new
    4500   |         |-------->|  GAME_INVITATION
       0   |         |<--------|  GAME_JOIN_ACK
    5501   |         |........>|  CHOOSE_PARITY_CALL
dotted: only one end has logged it";
    assert_eq!(diagram(&lines, "paper", "R1M1").unwrap(), expected);
    assert_eq!(diagram(&lines, "paper", "R1M2"), None);
}

#[test]
fn of_each_log_the_last_lines_are_drawn_however_many_a_stranger_writes() {
    let world = World::new(&[]);
    let logs = world.folder.join("logs");
    std::fs::create_dir_all(&logs).unwrap();
    let write = |name: &str, lines: &[serde_json::Value]| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(logs.join(name), text + "{\"match_id\":\"R1M1\", torn").unwrap();
    };
    let line = |n: usize, component: &str, peer: &str| {
        json!({"timestamp": format!("2025-01-15T10:{:02}:{:02}Z", n / 60, n % 60), "component": component,
            "event_type": "message_received", "peer": peer, "message_type": "LEAGUE_QUERY",
            "conversation_id": "conv-r1m1-one", "match_id": "R1M1"})
    };
    write(
        "manager.jsonl",
        &(0..600)
            .map(|n| line(n, "league_manager", "league_manager:x"))
            .collect::<Vec<_>>(),
    );
    write("player.jsonl", &[line(599, "P01", "REF01")]);
    let lines = about(&logs, "R1M1").unwrap();
    assert_eq!(lines.len(), 500); // the torn line is one of the last
    let text = diagram(&lines, "paper", "R1M1").unwrap();
    assert_eq!(text.matches("LEAGUE_QUERY").count(), 500, "{text}");
    assert!(
        text.ends_with("of each log only the last 500 lines about the match are drawn"),
        "{text}"
    );
}
