//! Files of JSON lines that a kill may cut at any byte: a referee's outbox and a player's history;
//! the results that an outbox sends (`tests/scripts/outbox`); and the announcements after which a
//! match is played again. The manager's journal is in `journal.rs`.

use super::support::offline::{local, usual};
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

fn pending(match_id: &str, conversation: &str) -> PendingResult {
    let report = report("referee:REF01", None, match_id, ["P01", "P02"]);
    serde_json::from_value(json!({"conversation_id": conversation, "report": report})).unwrap()
}

#[test]
fn cut_file_has_whole_lines_only() {
    let test = TestLeague::new("");
    let path = test.folder.join("lines.jsonl");
    let open = || {
        let mut read: Vec<Value> = Vec::new();
        let opened = open_again(|| {
            read.clear();
            JsonLinesFile::open(&path, |line| {
                read.push(serde_json::from_slice(line)?);
                Ok(())
            })
        });
        (opened.unwrap(), read)
    };
    let (mut lines, _) = open();
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
        let expected = [&records[..left], &[json!("later")]].concat();
        assert_eq!(open().1, expected, "cut at {length}");
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
    match command.split(' ').collect::<Vec<_>>()[..] {
        ["keep", id, conversation] => outbox.save(pending(id, conversation)).unwrap(),
        ["has", id, conversation] => {
            return (outbox.get(id) == Some(&pending(id, conversation))).to_string();
        }
        ["send", id] => return outbox.enqueue(id).to_string(),
        ["next"] => {
            let next = outbox.pop();
            let line =
                |next: PendingResult| format!("{} {}", next.report.match_id, next.conversation_id);
            return next.map_or("nothing".into(), line);
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

/// Announces R1M1 with these match tokens and P01 at this port, for the referee at this endpoint.
fn announcement(tokens: &str, port: u32, referee: &str) -> RoundAnnouncement {
    let entry = json!({
        "match_id": "R1M1", "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
        "referee_endpoint": referee, "player_A_endpoint": local(port), "player_B_endpoint": local(8102),
        "player_A_token": format!("{tokens}-a"), "player_B_token": format!("{tokens}-b"),
    });
    let round = json!({"league_id": "league", "round_id": 1, "matches": [entry]});
    decode::<RoundAnnouncement>(&round).unwrap()
}

const OURS: &str = "http://localhost:8001/mcp";

/// Applies an announcement. Returns the conversation in which this referee plays R1M1 then, or has
/// played it.
fn apply(all: &mut Assignments, tokens: &str, port: u32, referee: &str) -> Option<String> {
    all.apply(announcement(tokens, port, referee), OURS)
        .unwrap();
    let open = all.matches.get("R1M1").map(|open| &open.conversation_id);
    let over = all.outbox.get("R1M1").map(|over| &over.conversation_id);
    open.or(over).cloned()
}

/// Ends a match with a result. Returns true if the result is saved.
fn end(all: &mut Assignments, playing: &Assignment) -> bool {
    let players = ["P01".into(), "P02".into()];
    let result = judge(&players, [Parity::Even, Parity::Odd], 8);
    let is_saved = all.save(playing, match_result(&result, &usual())).unwrap();
    assert_eq!(all.current(playing).is_some(), is_saved);
    all.finish(playing);
    let state = all.current(playing).map(|current| current.state);
    assert_eq!(state, is_saved.then_some(MatchState::Finished));
    is_saved
}

#[test]
fn match_announced_again_is_reported_or_replayed() {
    let test = TestLeague::new("");
    let folder = test.folder.join("REF01");
    let open = |fresh: bool| {
        let mut all = Assignments::default();
        open_again(|| all.open(&folder, fresh)).unwrap();
        all
    };
    let all = &mut open(false);
    let first = apply(all, "one", 8101, OURS);
    let playing = all.start_next().unwrap();
    assert_eq!(apply(all, "one", 9101, OURS), first, "the match goes on");
    let moved = &all.current(&playing).unwrap().endpoints[0];
    assert!(moved.contains("9101"), "the new endpoint of its player");
    assert!(end(all, &playing));
    let reported = all.outbox.pop().unwrap();
    assert_eq!(Some(&reported.conversation_id), first.as_ref());
    assert_eq!(apply(all, "one", 8101, OURS), first);
    assert_eq!(all.outbox.pop().unwrap(), reported, "reported once more");

    all.refuse(&reported); // the manager has voided the result
    let second = apply(all, "one", 8101, OURS);
    assert!(second.is_some() && second != first, "played again");
    let playing = all.start_next().unwrap();
    let third = apply(all, "two", 8101, OURS);
    assert!(third.is_some() && third != second, "other tokens");
    assert!(all.current(&playing).is_none() && !end(all, &playing));
    let playing = all.start_next().unwrap();
    assert!(end(all, &playing));
    all.refuse(&reported); // the old result does not change the new one
    all.outbox.requeue(&reported);
    let newest = all.outbox.pop().unwrap();
    assert_eq!(Some(&newest.conversation_id), third.as_ref());

    *all = Assignments::default(); // the old program has ended
    *all = open(false);
    assert_eq!(apply(all, "three", 8101, OURS), third);
    assert!(all.matches.is_empty());
    assert_eq!(all.outbox.pop().unwrap(), newest, "played already");
    all.refuse(&newest);
    assert!(apply(all, "three", 8101, OURS).is_some());
    assert_eq!(all.start_next().unwrap().match_id, "R1M1");
    assert_eq!(apply(all, "three", 8101, &local(8002)), None);
    open_again(|| all.open(&folder, true)).unwrap();
    let played = apply(all, "three", 8101, OURS);
    assert!(played.is_some(), "the result is of an older registration");
}

/// Returns a match of P01 that is over.
fn past(match_id: &str, conversation_id: &str) -> PastMatch {
    PastMatch {
        match_id: match_id.into(),
        conversation_id: conversation_id.into(),
        ..Turn::sample().history[0].clone()
    }
}

#[test]
fn history_has_the_last_result_of_each_match() {
    let test = TestLeague::new("");
    let folder = test.folder.join("players/P01");
    let open = |fresh| History::open(&folder, "P01", "league", fresh).unwrap();
    let mut history = open(false);
    let before = history.matches();
    let news = [("R1M1", "a"), ("R2M1", "a"), ("R2M1", "a"), ("R1M1", "b")]
        .map(|(match_id, conversation)| history.add(past(match_id, conversation)));
    assert_eq!(news, [true, true, false, true]);
    assert!(before.is_empty(), "the history of a running turn changes");
    history.write().unwrap();
    let all = [past("R1M1", "b"), past("R2M1", "a")];
    assert_eq!(open(false).matches().as_slice(), all);
    assert!(open(true).matches().is_empty());
    let archived = files(&test.folder.join("players"));
    assert_eq!(archived.len(), 1, "{archived:?}");
}
