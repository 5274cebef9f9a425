//! Results that must survive in files of JSON lines: a referee's outbox and a player's history, cut
//! at any byte by a kill; what an outbox sends when, as the story `tests/scripts/outbox`; and
//! when a match is played anew. The manager's journal is in `journal.rs`.

use super::support::offline::usual;
use super::support::{TestLeague, files, golden, open_again, report};
use league::games::{judge, match_result};
use league::json::decode;
use league::player::history::History;
use league::player::{PastMatch, Turn};
use league::program::storage::JsonLinesFile;
use league::protocol::{MatchState, Parity, RoundAnnouncement};
use league::referee::assignments::{Assignment, Assignments};
use league::referee::outbox::{Outbox, PendingResult};
use serde_json::{Value, json};
use std::fs;

fn kept(match_id: &str, conversation: &str) -> PendingResult {
    let report = report("referee:REF01", None, match_id, ["P01", "P02"]);
    serde_json::from_value(json!({"conversation_id": conversation, "report": report})).unwrap()
}

#[test]
fn cut_file_has_whole_lines_only() {
    let test = TestLeague::new("");
    let path = test.folder.join("lines.jsonl");
    let open = || {
        let opened = open_again(|| {
            let mut read: Vec<Value> = Vec::new();
            let lines = JsonLinesFile::open(&path, |line| {
                read.push(serde_json::from_slice(line)?);
                Ok(())
            });
            Ok((lines?, read))
        });
        opened.unwrap()
    };
    let mut lines = open().0;
    let records = [0, 1, 2, 3].map(|n| json!({"n": n, "text": "ünö\n".repeat(n)}));
    let mut ends = vec![0];
    for record in &records {
        lines.append(record).unwrap();
        ends.push(fs::metadata(&path).unwrap().len() as usize);
    }
    drop(lines);
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (mut lines, read) = open();
        let left = ends.iter().filter(|end| **end <= length).count() - 1;
        assert_eq!(read, records[..left], "cut at {length}");
        lines.append(&json!("later")).unwrap();
        drop(lines);
        let (_, read) = open();
        let expected = [&records[..left], &[json!("later")]].concat();
        assert_eq!(read, expected, "cut at {length}");
    }
}

#[test]
fn outbox_golden() {
    golden::run_scripts("outbox", || {
        let test = TestLeague::new("");
        let mut outbox = open(&test);
        move |command: &str| run_command(&test, &mut outbox, command)
    });
}

fn open(test: &TestLeague) -> Outbox {
    let mut outbox = Outbox::default();
    open_again(|| outbox.open(&test.folder.join("REF01"))).unwrap();
    outbox
}

fn run_command(test: &TestLeague, outbox: &mut Outbox, command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    match words[..] {
        ["keep", id, conversation] => outbox.save(kept(id, conversation)).unwrap(),
        ["has", id, conversation] => {
            return (outbox.get(id) == Some(&kept(id, conversation))).to_string();
        }
        ["send", id] => return outbox.enqueue(id).to_string(),
        ["next"] => {
            return match outbox.pop() {
                Some(kept) => format!("{} {}", kept.report.match_id, kept.conversation_id),
                None => "nothing".into(),
            };
        }
        ["forget", id] => outbox.remove(id),
        ["clear"] => outbox.clear(),
        _ => {
            *outbox = Outbox::default(); // the old program has ended
            *outbox = open(test);
        }
    }
    String::new()
}

/// R1M1, with these match tokens and P01 at that port, for the referee at that endpoint.
fn announced(tokens: &str, port: u16, referee: &str) -> RoundAnnouncement {
    let at = |port: u16| format!("http://localhost:{port}/mcp");
    let entry = json!({
        "match_id": "R1M1", "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
        "referee_endpoint": referee, "player_A_endpoint": at(port), "player_B_endpoint": at(8102),
        "player_A_token": format!("{tokens}-a"), "player_B_token": format!("{tokens}-b"),
    });
    let round = json!({"league_id": "league", "round_id": 1, "matches": [entry]});
    decode::<RoundAnnouncement>(&round).unwrap()
}

const OURS: &str = "http://localhost:8001/mcp";

/// Takes an announcement, and says which playing of R1M1 is ours then, if any: the one in play, or
/// the one that is over.
fn take(all: &mut Assignments, tokens: &str, port: u16, referee: &str) -> Option<String> {
    all.apply(announced(tokens, port, referee), OURS).unwrap();
    let over = all
        .outbox
        .get("R1M1")
        .map(|item| item.conversation_id.clone());
    let open = all.matches.get("R1M1");
    open.map(|item| item.conversation_id.clone()).or(over)
}

/// Has a match end with a result; whether that could be kept.
fn end(all: &mut Assignments, playing: &Assignment) -> bool {
    let players = ["P01".into(), "P02".into()];
    let result = judge(&players, [Parity::Even, Parity::Odd], 8);
    let is_kept = all.save(playing, match_result(&result, &usual())).unwrap();
    assert_eq!(all.current(playing).is_some(), is_kept);
    all.finish(playing);
    let state = all.current(playing).map(|item| item.state);
    assert_eq!(state, is_kept.then_some(MatchState::Finished));
    is_kept
}

#[test]
fn match_announced_again_is_reported_or_replayed() {
    let test = TestLeague::new("");
    let folder = test.folder.join("REF01");
    let all = &mut Assignments::default();
    open_again(|| all.open(&folder, false)).unwrap();
    let first = take(all, "one", 8101, OURS);
    let playing = all.start_next().unwrap();
    assert_eq!(take(all, "one", 9101, OURS), first, "it goes on");
    let moved = &all.current(&playing).unwrap().endpoints[0];
    assert!(moved.contains("9101"), "where its player is now");
    assert!(end(all, &playing));
    let reported = all.outbox.pop().unwrap();
    assert_eq!(Some(&reported.conversation_id), first.as_ref());
    assert_eq!(take(all, "one", 8101, OURS), first);
    assert_eq!(all.outbox.pop().unwrap(), reported, "once more");

    all.refuse(&reported); // voided, and we had not heard of it
    let second = take(all, "one", 8101, OURS);
    assert!(second.is_some() && second != first, "played anew");
    let playing = all.start_next().unwrap();
    let third = take(all, "two", 8101, OURS);
    assert!(third.is_some() && third != second, "other tokens");
    assert!(all.current(&playing).is_none() && !end(all, &playing));
    let playing = all.start_next().unwrap();
    assert!(end(all, &playing));
    all.refuse(&reported);
    all.outbox.requeue(&reported);
    let newest = all.outbox.pop().unwrap();
    assert_eq!(
        Some(&newest.conversation_id),
        third.as_ref(),
        "the old says nothing of the new"
    );

    let restarted = all;
    *restarted = Assignments::default();
    open_again(|| restarted.open(&folder, false)).unwrap();
    assert_eq!(take(restarted, "three", 8101, OURS), third);
    assert!(restarted.matches.is_empty());
    assert_eq!(
        restarted.outbox.pop().unwrap(),
        newest,
        "played, so far as it knows"
    );
    restarted.refuse(&newest);
    assert!(take(restarted, "three", 8101, OURS).is_some());
    assert_eq!(restarted.start_next().unwrap().match_id, "R1M1");
    assert_eq!(
        take(restarted, "three", 8101, "http://localhost:8002/mcp"),
        None
    );
    open_again(|| restarted.open(&folder, true)).unwrap();
    assert!(
        take(restarted, "three", 8101, OURS).is_some(),
        "an older registration's"
    );
}

/// A match of P01's that is over.
fn past(match_id: &str, conversation_id: &str) -> PastMatch {
    let sample = Turn::sample().history[0].clone();
    PastMatch {
        match_id: match_id.into(),
        conversation_id: conversation_id.into(),
        ..sample
    }
}

#[test]
fn history_has_the_last_result_of_each_match() {
    let test = TestLeague::new("");
    let folder = test.folder.join("players/P01");
    let open = |fresh| History::open(&folder, "P01", "league", fresh).unwrap();
    let mut history = open(false);
    let thinking = history.matches();
    for (match_id, conversation, is_news) in [
        ("R1M1", "a", true),
        ("R2M1", "a", true),
        ("R2M1", "a", false),
        ("R1M1", "b", true),
    ] {
        let past = past(match_id, conversation);
        assert_eq!(history.add(past), is_news, "{match_id} {conversation}");
    }
    assert!(thinking.is_empty(), "whoever thinks keeps what it had");
    history.write().unwrap();
    let all = [past("R1M1", "b"), past("R2M1", "a")];
    assert_eq!(open(false).matches().as_slice(), all);
    assert!(open(true).matches().is_empty());
    let left = files(&test.folder.join("players"));
    assert_eq!(left.len(), 1, "set aside, not lost");
}
