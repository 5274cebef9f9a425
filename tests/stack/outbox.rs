//! Files of JSON lines that a kill may cut at any byte: a referee's outbox and a player's history;
//! the tasks of a referee, and which results it reports (`tests/scripts/outbox`). The manager's journal
//! is in `journal.rs`.

use super::support::offline::{local, usual};
use super::support::{TestLeague, files, golden, open_again};
use league::games::{even_odd, judge, match_result};
use league::json::decode;
use league::player::history::History;
use league::player::{PastMatch, Turn};
use league::program::storage::JsonLinesFile;
use league::protocol::{Parity, RoundAnnouncement};
use league::referee::tasks::{Assignment, PendingResult, State, Tasks};
use serde_json::{Value, json};
use std::fs;

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
fn tasks_golden() {
    golden::run_scripts("outbox", || {
        let mut story = Story::new();
        move |command: &str| story.run(command)
    });
}

const OURS: &str = "http://localhost:8001/mcp";

/// The tasks of a referee, and what its threads are at.
struct Story {
    test: TestLeague,
    tasks: Tasks,
    playing: Vec<Assignment>,
    reported: Vec<PendingResult>,
    /// The conversations in the order in which they appear.
    conversations: Vec<String>,
}

impl Story {
    fn new() -> Story {
        let mut story = Story {
            test: TestLeague::new(""),
            tasks: Tasks::default(),
            playing: Vec::new(),
            reported: Vec::new(),
            conversations: Vec::new(),
        };
        story.open(false);
        story
    }

    fn open(&mut self, is_new: bool) {
        let folder = self.test.folder.join("REF01");
        open_again(|| self.tasks.open(&folder, is_new)).unwrap();
    }

    /// Runs a command. Returns what it has found, and all tasks.
    fn run(&mut self, command: &str) -> String {
        let mut found = String::new();
        match command.split(' ').collect::<Vec<_>>()[..] {
            ["announce", id, tokens] => self.announce(id, tokens, OURS),
            ["give", id, "to_another"] => self.announce(id, "one", &local(8002)),
            ["play"] => {
                let started = self.tasks.start_next().unwrap();
                found = format!("plays {}\n", started.match_id);
                self.playing.push(started);
            }
            ["decide", result] => {
                let players = ["P01".into(), "P02".into()];
                let failures = [Some("gave no answer".to_string()), None];
                let result = match result {
                    "won" => judge(&players, [Parity::Even, Parity::Odd], 8),
                    _ => even_odd::GAME.forfeit(&players, &[], &failures),
                };
                let played = self.playing.last().unwrap();
                let result = match_result(&result, &usual());
                let is_saved = self.tasks.save(played, result).unwrap();
                found = ["not ours\n", ""][usize::from(is_saved)].into();
            }
            ["end"] => self.tasks.finish(&self.playing.pop().unwrap()),
            ["report"] => match self.tasks.next_report() {
                Some(result) => {
                    found = format!("reports {}\n", self.number(&result.conversation_id));
                    self.reported.push(result);
                }
                None => found = "reports nothing\n".into(),
            },
            ["recorded"] => {
                let reported = self.reported.pop().unwrap();
                let state = State::Recorded(reported.clone());
                self.tasks.end(&reported, state);
            }
            ["refused"] => {
                let reported = self.reported.pop().unwrap();
                self.tasks.end(&reported, State::Refused);
            }
            ["restart"] => {
                self.tasks = Tasks::default();
                self.open(false);
            }
            ["register_anew"] => self.open(true),
            _ => panic!("{command}: no such command"),
        }
        found + &self.describe()
    }

    /// Announces a match with these match tokens, for the referee at this endpoint.
    fn announce(&mut self, id: &str, tokens: &str, referee: &str) {
        let entry = json!({
            "match_id": id, "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
            "referee_endpoint": referee, "player_A_endpoint": local(8101), "player_B_endpoint": local(8102),
            "player_A_token": format!("{tokens}-a"), "player_B_token": format!("{tokens}-b"),
        });
        let round = json!({"league_id": "league", "round_id": 1, "matches": [entry]});
        let round = decode::<RoundAnnouncement>(&round).unwrap();
        self.tasks.apply(round, OURS).unwrap();
    }

    /// Returns `conversation 2`.
    fn number(&mut self, conversation: &String) -> String {
        if !self.conversations.contains(conversation) {
            self.conversations.push(conversation.clone());
        }
        let position = self.conversations.iter().position(|id| id == conversation);
        format!("conversation {}", position.unwrap() + 1)
    }

    fn describe(&mut self) -> String {
        let mut rows = Vec::new();
        for (id, task) in &self.tasks.by_match {
            let state = format!("{:?}", task.state);
            let state = state.split('(').next().unwrap_or_default().to_string();
            rows.push((id.clone(), state, task.conversation_id.clone()));
        }
        let mut text = String::new();
        for (id, state, conversation) in rows {
            text += &format!("{id} {state}, {}\n", self.number(&conversation));
        }
        text
    }
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
