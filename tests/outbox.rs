//! Results that must survive in files of JSON lines: a referee's outbox and a player's history, left by a kill at any
//! moment; and what an outbox sends when. The manager's journal is in `journal.rs`.

use league::games::{Scoring, judge};
use league::player::history::History;
use league::player::{Past, Turn};
use league::program::storage::Lines;
use league::protocol::{MatchState, Parity, RoundAnnouncement};
use league::referee::assignments::{Assignment, Assignments};
use league::referee::outbox::{Kept, Outbox};
use league::wire::Wire;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

/// A folder of its own, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "league-outbox-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::SeqCst)
        );
        let folder = std::env::temp_dir().join(name).join("P01");
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("outbox.jsonl")
    }

    fn open(&self) -> Outbox {
        Outbox::open(&self.0).unwrap()
    }

    /// The same folder as a player's.
    fn history(&self, fresh: bool) -> History {
        History::open(&self.0, "P01", "league", fresh).unwrap()
    }

    /// The results that wait after a start, by match.
    fn waiting(&self) -> Vec<Kept> {
        let mut outbox = self.open();
        let mut all: Vec<Kept> = std::iter::from_fn(|| outbox.next_due()).collect();
        all.sort_by_key(|kept| kept.report.match_id.clone());
        all
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}

fn kept(match_id: &str, conversation: &str) -> Kept {
    let details =
        json!({"drawn_number": 8, "choices": {"P01": "even", "P02": "odd"}, "status": "WIN"});
    let result = json!({"winner": "P01", "score": {"P01": 3, "P02": 0}, "details": details});
    let report = json!({"league_id": "league", "round_id": 1, "match_id": match_id, "game_type": "even_odd", "result": result});
    Kept::read(&json!({"conversation_id": conversation, "report": report})).unwrap()
}

/// Every state of a file that a kill can leave: in front of each line and in the middle of it, anywhere in the last
/// one, and behind it (not synced yet, it is there all the same). `check` is told how many lines are whole.
fn each_kill(path: &Path, check: impl Fn(usize, &str)) {
    let whole = fs::read(path).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|n| whole[*n] == b'\n').collect();
    let last_line = ends[ends.len() - 2];
    for length in 0..=whole.len() {
        let near_an_end = ends.iter().any(|end| end.abs_diff(length) < 3);
        if length > last_line || near_an_end || length % 50 == 0 {
            fs::write(path, &whole[..length]).unwrap();
            let lines = ends.iter().filter(|end| **end < length).count();
            check(lines, &format!("killed after {length} bytes"));
        }
    }
}

#[test]
fn a_line_is_there_whole_or_not_at_all_wherever_the_file_is_cut() {
    let folder = Folder::new();
    let path = folder.file();
    let (mut lines, _) = Lines::open(&path).unwrap();
    let records: Vec<Value> = (0..4)
        .map(|n| json!({"n": n, "text": "ünö\n".repeat(n)}))
        .collect();
    let mut ends = vec![0];
    for record in &records {
        lines.append(record).unwrap();
        ends.push(fs::metadata(&path).unwrap().len() as usize);
    }
    let whole = fs::read(&path).unwrap();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (mut lines, read) = Lines::open(&path).unwrap();
        let left = ends.iter().filter(|end| **end <= length).count() - 1;
        assert_eq!(read, records[..left], "cut at {length}");
        lines.append(&json!("later")).unwrap();
        let (_, read) = Lines::open(&path).unwrap();
        assert_eq!(
            (read.len(), &read[left]),
            (left + 1, &json!("later")),
            "cut at {length}"
        );
    }
}

#[test]
fn every_result_waits_after_a_start_as_it_was_kept_last_wherever_the_referee_is_killed() {
    let folder = Folder::new();
    let mut outbox = folder.open();
    let (first, second) = (kept("R1M1", "conv-1"), kept("R1M2", "conv-1"));
    outbox.keep(first.clone()).unwrap();
    outbox.next_due(); // recorded: nothing is written down
    outbox.keep(second.clone()).unwrap();
    let again = kept("R1M1", "conv-2"); // played anew
    outbox.keep(again.clone()).unwrap();
    let left = [
        vec![],
        vec![first.clone()],
        vec![first, second.clone()],
        vec![again, second],
    ];
    each_kill(&folder.file(), |lines, row| {
        assert_eq!(folder.waiting(), left[lines], "{row}");
        assert_eq!(folder.waiting(), left[lines], "{row}: once more, once more");
    });
}

#[test]
fn a_result_is_sent_when_the_players_have_heard_and_blocks_no_other() {
    let folder = Folder::new();
    let mut outbox = folder.open();
    let next = |outbox: &mut Outbox| {
        let kept = outbox.next_due()?;
        Some(format!("{} {}", kept.report.match_id, kept.conversation_id))
    };
    let (one, two) = (kept("R1M1", "conv-1"), kept("R1M2", "conv-1"));
    outbox.keep(one.clone()).unwrap();
    outbox.keep(two.clone()).unwrap();
    assert_eq!(next(&mut outbox), None, "not before the players");
    assert!(outbox.send("R1M1") && outbox.send("R1M2") && outbox.send("R1M1"));
    assert_eq!(next(&mut outbox).unwrap(), "R1M1 conv-1");
    assert!(outbox.send("R1M1"), "in vain");
    assert_eq!(next(&mut outbox).unwrap(), "R1M2 conv-1");
    outbox.forget("R1M2");
    assert!(!outbox.send("R1M2"), "a refused one is nothing to us");
    assert_eq!(next(&mut outbox).unwrap(), "R1M1 conv-1");
    assert_eq!(next(&mut outbox), None, "recorded");
    assert!(outbox.send("R1M1"), "given again, it is not played");
    outbox.forget("R1M1");
    let anew = kept("R1M1", "conv-2");
    outbox.keep(anew.clone()).unwrap();
    assert!(outbox.has(&anew) && !outbox.has(&one));
    assert_eq!(next(&mut outbox), None, "the older one is not sent either");
    assert!(outbox.send("R1M1"));
    assert_eq!(next(&mut outbox).unwrap(), "R1M1 conv-2");
    outbox.clear();
    assert!(next(&mut outbox).is_none() && !outbox.send("R1M1"));
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
    RoundAnnouncement::read(&round).unwrap()
}

const OURS: &str = "http://localhost:8001/mcp";

/// Takes an announcement, and says which playing of R1M1 is ours then, if any.
fn take(all: &Assignments, tokens: &str, port: u16, referee: &str) -> Option<String> {
    all.announced(announced(tokens, port, referee), OURS)
        .unwrap();
    Some(all.find("R1M1")?.conversation_id.clone())
}

/// The result that is to be reported now.
fn due(all: &Arc<Assignments>) -> Kept {
    let (tell, told) = mpsc::channel();
    let all = Arc::clone(all);
    thread::spawn(move || {
        let _ = tell.send(all.next_report());
    });
    let patience = Duration::from_secs(60);
    told.recv_timeout(patience)
        .expect("a result is to be reported")
}

/// Has a match end with a result; whether that could be kept.
fn end(all: &Assignments, assignment: &Arc<Assignment>) -> bool {
    let scoring = json!({"win_points": 3, "draw_points": 1, "loss_points": 0, "technical_loss_points": 0, "tiebreakers": []});
    let players = ["P01".into(), "P02".into()];
    let outcome = judge(players, [Parity::Even, Parity::Odd], 8);
    let scoring = Scoring::read(&scoring).unwrap();
    let is_kept = all.keep(assignment, &outcome, &scoring).unwrap();
    assignment.live().state = MatchState::Finished;
    all.ended(assignment, true);
    is_kept
}

#[test]
fn a_match_is_played_anew_with_other_tokens_or_after_its_report_was_refused_and_else_reported_again()
 {
    let folder = Folder::new();
    let all = Arc::new(Assignments::default());
    all.begin(&folder.0, false).unwrap();
    let first = take(&all, "one", 8101, OURS);
    let playing = all.next_match();
    assert_eq!(take(&all, "one", 9101, OURS), first, "it goes on");
    let moved = playing.live().endpoints[0].clone();
    assert!(moved.contains("9101"), "where its player is now");
    assert!(end(&all, &playing));
    let reported = due(&all);
    assert_eq!(Some(&reported.conversation_id), first.as_ref());
    assert_eq!(take(&all, "one", 8101, OURS), first);
    assert_eq!(due(&all), reported, "once more");

    all.refused(&reported); // voided, and we had not heard of it
    let second = take(&all, "one", 8101, OURS);
    assert!(second.is_some() && second != first, "played anew");
    let playing = all.next_match();
    let third = take(&all, "two", 8101, OURS);
    assert!(third.is_some() && third != second, "other tokens");
    assert!(playing.live().dropped && !end(&all, &playing));
    let playing = all.next_match();
    assert!(end(&all, &playing));
    all.refused(&reported);
    all.report_again(&reported);
    let newest = due(&all);
    assert_eq!(
        Some(&newest.conversation_id),
        third.as_ref(),
        "the old says nothing of the new"
    );

    let restarted = Arc::new(Assignments::default());
    restarted.begin(&folder.0, false).unwrap();
    assert_eq!(take(&restarted, "three", 8101, OURS), None);
    assert_eq!(due(&restarted), newest, "played, so far as it knows");
    restarted.refused(&newest);
    assert!(take(&restarted, "three", 8101, OURS).is_some());
    assert_eq!(restarted.next_match().match_id(), "R1M1");
    assert_eq!(
        take(&restarted, "three", 8101, "http://localhost:8002/mcp"),
        None
    );
    restarted.begin(&folder.0, true).unwrap();
    assert!(
        take(&restarted, "three", 8101, OURS).is_some(),
        "an older registration's"
    );
}

/// A match of P01's that is over.
fn past(match_id: &str, conversation_id: &str) -> Past {
    let sample = Turn::sample().history[0].clone();
    Past {
        match_id: match_id.into(),
        conversation_id: conversation_id.into(),
        ..sample
    }
}

#[test]
fn a_history_has_each_match_once_as_it_ended_last_and_belongs_to_one_registration() {
    let folder = Folder::new();
    let mut history = folder.history(false);
    let thinking = history.matches();
    for (match_id, conversation, is_news) in [
        ("R1M1", "a", true),
        ("R2M1", "a", true),
        ("R2M1", "a", false),
        ("R1M1", "b", true),
    ] {
        assert_eq!(
            history.remember(past(match_id, conversation)),
            is_news,
            "{match_id} {conversation}"
        );
    }
    assert!(thinking.is_empty(), "whoever thinks keeps what it had");
    history.write().unwrap();
    let all = [past("R1M1", "b"), past("R2M1", "a")];
    assert_eq!(folder.history(false).matches().as_slice(), all);
    assert!(folder.history(true).matches().is_empty());
    assert_eq!(
        fs::read_dir(folder.0.parent().unwrap()).unwrap().count(),
        1,
        "set aside, not lost"
    );
}
