//! Results that must survive: the file of JSON lines that a referee's outbox is, cut anywhere, and what is sent when.

use league::program::storage::{Access, Lines};
use league::referee::outbox::{Kept, Outbox};
use league::wire::Wire;
use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// A folder of its own, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("league-outbox-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("outbox.jsonl")
    }

    fn open(&self) -> Outbox {
        Outbox::open(&self.0).unwrap()
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
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kept(match_id: &str, conversation: &str) -> Kept {
    let details = json!({"drawn_number": 8, "choices": {"P01": "even", "P02": "odd"}, "status": "WIN"});
    let result = json!({"winner": "P01", "score": {"P01": 3, "P02": 0}, "details": details});
    let report =
        json!({"league_id": "league", "round_id": 1, "match_id": match_id, "game_type": "even_odd", "result": result});
    Kept::read(&json!({"conversation_id": conversation, "report": report})).unwrap()
}

#[test]
fn a_line_is_there_whole_or_not_at_all_wherever_the_file_is_cut() {
    let folder = Folder::new();
    let path = folder.file();
    let (mut lines, _) = Lines::open(&path, Access::Owner).unwrap();
    let records: Vec<Value> = (0..4).map(|n| json!({"n": n, "text": "ünö\n".repeat(n)})).collect();
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
        assert_eq!((read.len(), &read[left]), (left + 1, &json!("later")), "cut at {length}");
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
    assert_eq!(Lines::open(&path, Access::Everybody).unwrap().1, [json!(2), json!(3)]);
    assert!(!new.exists());
    fs::create_dir(&new).unwrap(); // it cannot be compacted: the old lines stand, and more can be added
    assert!(lines.replace(&[json!(4)]).is_err());
    lines.append(&json!(5)).unwrap();
    assert_eq!(Lines::open(&path, Access::Everybody).unwrap().1, [json!(2), json!(3), json!(5)]);
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
    assert!(!outbox.settle(kept("R1M1", "conv-1"), true), "an answer about the older one settles nothing");
    outbox.forget("R1M2");
    let whole = fs::read_to_string(folder.file()).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let left: [&[&str]; 6] = [&[], &["R1M1"], &["R1M1", "R1M2"], &["R1M2"], &["R1M1", "R1M2"], &["R1M1"]];
    for (n, left) in left.iter().enumerate() {
        for torn in ["", lines.get(n).map_or("", |line| &line[..line.len() - 1])] {
            fs::write(folder.file(), lines[..n].concat() + torn).unwrap();
            drop(folder.open()); // compacted
            assert_eq!(folder.waiting(), *left, "after {n} lines");
            assert!(folder.waiting().is_empty(), "settled");
        }
    }
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
    assert!(outbox.has("R1M1") && !outbox.has("R1M2"), "a refused one is nothing to us");
    outbox.settle(kept("R1M1", "conv-1"), true);
    assert_eq!(first(&outbox), None);
    assert!(outbox.has("R1M1"), "assigned again, it is not played again");
    assert_eq!(first(&outbox).unwrap(), "R1M1", "but reported");
    outbox.clear();
    assert!(first(&outbox).is_none() && folder.waiting().is_empty());
}
