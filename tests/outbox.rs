//! Results that must survive in files of JSON lines: a referee's outbox and a player's history, left by a kill at any
//! moment; and what an outbox sends when. The manager's journal is in `journal.rs`.

use league::player::history::History;
use league::player::{Past, Turn};
use league::program::storage::{Access, Lines};
use league::referee::outbox::{Kept, Outbox};
use league::wire::Wire;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
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

    /// The matches whose results wait after a start.
    fn waiting(&self) -> Vec<String> {
        let mut outbox = self.open();
        let mut all = Vec::new();
        while let Some((_, kept)) = outbox.first() {
            all.push(kept.report.match_id.clone());
            outbox.forget(&all[all.len() - 1]);
        }
        all.sort();
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
/// one, and behind it (not synced yet, it is there all the same). Beside it nothing, or what a compaction had written
/// before its rename: nothing yet, a part, everything. `check` is told how many lines are whole.
fn each_kill(path: &Path, check: impl Fn(usize, &str)) {
    let whole = fs::read(path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    for n in 0..=lines.len() {
        let (before, next) = (
            lines[..n].concat(),
            lines.get(n).map_or(&[][..], |line| &line[..line.len() - 1]),
        );
        let is_last = n + 1 == lines.len();
        for cut in (0..=next.len())
            .filter(|cut| is_last || [0, 1, next.len() / 2, next.len()].contains(cut))
        {
            let compacted = [None, Some(0), Some(before.len() / 2), Some(before.len())];
            for length in compacted
                .into_iter()
                .take(if [0, 1].contains(&cut) { 4 } else { 1 })
            {
                fs::write(path, [&before, &next[..cut]].concat()).unwrap();
                if let Some(length) = length {
                    fs::write(path.with_extension("new"), &before[..length]).unwrap();
                }
                check(
                    n,
                    &format!(
                        "killed after {n} lines and {cut} bytes, compacted to {length:?} bytes"
                    ),
                );
            }
        }
    }
}

#[test]
fn a_line_is_there_whole_or_not_at_all_wherever_the_file_is_cut() {
    let folder = Folder::new();
    let path = folder.file();
    let (mut lines, _) = Lines::open(&path, Access::Owner).unwrap();
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
        let (mut lines, read) = Lines::open(&path, Access::Owner).unwrap();
        let left = ends.iter().filter(|end| **end <= length).count() - 1;
        assert_eq!(read, records[..left], "cut at {length}");
        lines.note(&json!("later")).unwrap();
        let (_, read) = Lines::open(&path, Access::Owner).unwrap();
        assert_eq!(
            (read.len(), &read[left]),
            (left + 1, &json!("later")),
            "cut at {length}"
        );
    }
}

#[test]
fn a_compacted_file_is_the_old_or_the_new_one() {
    let folder = Folder::new();
    let (path, new) = (folder.file(), folder.0.join("outbox.new"));
    let (mut lines, _) = Lines::open(&path, Access::Everybody).unwrap();
    lines.append(&json!(1)).unwrap();
    fs::write(&new, "[\"half").unwrap(); // killed while compacting, before the rename
    let (mut lines, read) = Lines::open(&path, Access::Everybody).unwrap();
    assert_eq!(read, [json!(1)]);
    lines.replace(&[json!(2)]).unwrap();
    lines.append(&json!(3)).unwrap();
    assert_eq!(
        Lines::open(&path, Access::Everybody).unwrap().1,
        [json!(2), json!(3)]
    );
    assert!(!new.exists());
    fs::create_dir(&new).unwrap(); // it cannot be compacted: the old lines stand, and more can be added
    assert!(lines.replace(&[json!(4)]).is_err());
    lines.append(&json!(5)).unwrap();
    assert_eq!(
        Lines::open(&path, Access::Everybody).unwrap().1,
        [json!(2), json!(3), json!(5)]
    );
}

#[test]
fn a_result_waits_from_its_line_to_the_line_that_settles_it_wherever_the_referee_is_killed() {
    let folder = Folder::new();
    let mut outbox = folder.open();
    for match_id in ["R1M1", "R1M2"] {
        outbox.keep(kept(match_id, "conv-1")).unwrap();
    }
    assert!(outbox.settle(kept("R1M1", "conv-1"), true));
    outbox.keep(kept("R1M1", "conv-2")).unwrap(); // played anew
    assert!(
        !outbox.settle(kept("R1M1", "conv-1"), true),
        "an answer about the older one settles nothing"
    );
    outbox.forget("R1M2");
    let left: [&[&str]; 6] = [
        &[],
        &["R1M1"],
        &["R1M1", "R1M2"],
        &["R1M2"],
        &["R1M1", "R1M2"],
        &["R1M1"],
    ];
    each_kill(&folder.file(), |lines, row| {
        drop(folder.open()); // compacted
        assert_eq!(folder.waiting(), left[lines], "{row}");
        assert!(folder.waiting().is_empty(), "{row}: settled");
    });
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
fn a_history_has_each_match_once_as_it_ended_last_wherever_the_player_is_killed() {
    let folder = Folder::new();
    let path = folder.0.join("history.jsonl");
    fs::write(&path, "{\"match_id\": \"R0M1\"}\nnonsense\n").unwrap();
    let mut history = folder.history(false);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "",
        "what cannot be read is left out"
    );
    let thinking = history.matches();
    for (match_id, conversation, is_news) in [
        ("R1M1", "a", true),
        ("R2M1", "a", true),
        ("R2M1", "a", false),
        ("R1M1", "b", true),
    ] {
        assert_eq!(
            history.remember(past(match_id, conversation)).unwrap(),
            is_news,
            "{match_id} {conversation}"
        );
    }
    assert!(thinking.is_empty(), "whoever thinks keeps what it had");
    let (first, second, again) = (past("R1M1", "a"), past("R2M1", "a"), past("R1M1", "b"));
    let left = [
        vec![],
        vec![first.clone()],
        vec![first, second.clone()],
        vec![again, second],
    ];
    each_kill(&path, |lines, row| {
        let mut history = folder.history(false);
        assert_eq!(history.matches().as_slice(), left[lines], "{row}");
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            left[lines].len(),
            "{row}: compacted"
        );
        history.write_page(true).unwrap();
        history.remember(past("R3M1", "a")).unwrap();
        let all = folder.history(false).matches();
        assert_eq!(
            (all.len(), all.last()),
            (left[lines].len() + 1, Some(&past("R3M1", "a"))),
            "{row}"
        );
        let page = fs::read(folder.0.join("history.json")).unwrap_or_default();
        let page = serde_json::from_slice::<Value>(&page).unwrap_or(json!({"matches": []}));
        assert_eq!(page["matches"], json!(left[lines]), "{row}");
        let _ = fs::remove_file(folder.0.join("history.json"));
    });
}

#[test]
fn the_history_of_an_older_version_is_read_and_of_an_older_registration_set_aside() {
    let folder = Folder::new();
    let old = json!({"player_id": "P01", "league_id": "league", "matches": [past("R1M1", "a")]});
    fs::write(folder.0.join("history.json"), old.to_string()).unwrap();
    fs::write(folder.0.join("history.jsonl"), "{\"match_id\": \"R9").unwrap();
    assert_eq!(
        folder.history(false).matches().as_slice(),
        [past("R1M1", "a")]
    );
    let mut fresh = folder.history(true);
    fresh.write_page(true).unwrap();
    assert!(fresh.matches().is_empty() && !folder.0.join("history.json").exists());
    assert_eq!(
        fs::read_dir(folder.0.parent().unwrap()).unwrap().count(),
        2,
        "set aside, not lost"
    );
}

#[test]
fn the_outbox_of_an_earlier_version_is_taken_over_once() {
    let folder = Folder::new();
    let old = folder.0.join("R1M1.json");
    let text = serde_json::to_string_pretty(&kept("R1M1", "conv-1")).unwrap();
    fs::write(&old, &text).unwrap();
    fs::write(folder.0.join("R1M2.json"), &text[..40]).unwrap();
    drop(folder.open());
    assert!(!old.exists());
    fs::write(&old, &text).unwrap(); // killed between the new file and the old one's end
    assert_eq!(folder.waiting(), ["R1M1"]);
    assert!(folder.waiting().is_empty());
}

#[test]
fn a_result_is_sent_when_the_players_have_heard_and_blocks_no_other() {
    let folder = Folder::new();
    let mut outbox = folder.open();
    let first = |outbox: &Outbox| outbox.first().map(|(_, kept)| kept.report.match_id.clone());
    outbox.keep(kept("R1M1", "conv-1")).unwrap();
    outbox.keep(kept("R1M2", "conv-1")).unwrap();
    assert_eq!(first(&outbox), None, "not before the players");
    outbox.release("R1M1");
    outbox.release("R1M2");
    assert_eq!(first(&outbox).unwrap(), "R1M1");
    let later = Instant::now() + Duration::from_secs(2);
    outbox.postpone("R1M1", later);
    assert_eq!(first(&outbox).unwrap(), "R1M2");
    outbox.settle(kept("R1M2", "conv-1"), false);
    assert_eq!(outbox.first().unwrap().0, later);
    assert!(
        outbox.has("R1M1") && !outbox.has("R1M2"),
        "a refused one is nothing to us"
    );
    outbox.settle(kept("R1M1", "conv-1"), true);
    assert_eq!(first(&outbox), None);
    assert!(outbox.has("R1M1"), "assigned again, it is not played again");
    assert_eq!(first(&outbox).unwrap(), "R1M1", "but reported");
    outbox.clear();
    assert!(first(&outbox).is_none() && folder.waiting().is_empty());
}
