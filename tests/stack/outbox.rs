//! Files of JSON lines that a kill may cut at any byte: a referee's outbox and a player's history;
//! the tasks of a referee, and which results it reports (`tests/scripts/outbox`). The manager's journal
//! is in `journal.rs`.

use super::rules::policy;
use super::support::offline::{judge, local, usual};
use super::support::{TestLeague, files, golden, open_again, print_no_errors};
use league::games::{even_odd, match_result};
use league::json::decode;
use league::net::call_error::CallError;
use league::player::history::History;
use league::player::{PastMatch, Turn};
use league::program::storage::JsonLinesFile;
use league::protocol::{GameResult, LeagueError, Parity, RoundAnnouncement};
use league::referee::tasks::{Assignment, MANAGER, Sending, Task, Tasks};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn cut_file_has_whole_lines_only() {
    print_no_errors();
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

/// The tasks of a referee, and what its threads are at. The time passes only where a line says so.
struct Story {
    test: TestLeague,
    tasks: Tasks,
    begun: Instant,
    now: Instant,
    playing: Vec<Assignment>,
    /// The newest message about each match that has no answer yet.
    sent: Vec<Sending>,
    /// The conversations in the order in which they appear.
    conversations: Vec<String>,
    /// All tasks, as they were shown last.
    shown: String,
}

impl Story {
    fn new() -> Story {
        let begun = Instant::now();
        let mut story = Story {
            test: TestLeague::new(""),
            tasks: no_tasks(),
            begun,
            now: begun,
            playing: Vec::new(),
            sent: Vec::new(),
            conversations: Vec::new(),
            shown: String::new(),
        };
        story.open(false);
        story
    }

    fn open(&mut self, is_new: bool) {
        let folder = self.test.folder.join("REF01");
        open_again(|| self.tasks.open(&folder, is_new)).unwrap();
    }

    /// Runs commands. Returns what they have found, and the tasks that have changed.
    fn run(&mut self, line: &str) -> String {
        let mut found: String = line.split("; ").map(|one| self.run_command(one)).collect();
        let all = self.describe();
        for task in all.lines().filter(|task| !self.shown.contains(task)) {
            found += &format!("{task}\n");
        }
        for task in self.shown.lines().filter(|task| !all.contains(&task[..4])) {
            found += &format!("{} is gone\n", &task[..4]);
        }
        self.shown = all;
        found
    }

    fn run_command(&mut self, command: &str) -> String {
        let mut found = String::new();
        match command.split(' ').collect::<Vec<_>>()[..] {
            ["announce", id, tokens] => self.announce(id, tokens, OURS),
            ["give", id, "to_another"] => self.announce(id, "one", &local(8002)),
            ["play"] => {
                found = match self.tasks.start_next() {
                    Ok(started) => {
                        let text = format!("plays {}\n", started.match_id);
                        self.playing.push(started);
                        text
                    }
                    Err(_) => "plays nothing\n".into(),
                }
            }
            ["decide", result] => {
                let played = self.playing.last().unwrap();
                let is_saved = self.tasks.save(played, &result_of(result)).unwrap();
                found = ["not ours\n", ""][usize::from(is_saved)].into();
            }
            ["tell", id, answer] => {
                let task = self.tasks.current(self.playing.last().unwrap()).unwrap();
                let assignment = task.assignment.clone();
                let sending = Sending {
                    receiver: assignment.players.iter().position(|own| own == id).unwrap(),
                    game_over: assignment.game_over(task.result.as_ref().unwrap()),
                    assignment,
                };
                self.tasks.record(&sending, &answer_of(answer), self.now);
            }
            ["end"] => self.tasks.finish(&self.playing.pop().unwrap()),
            ["next"] => {
                found = match self.tasks.next(self.now) {
                    Ok(sending) => {
                        let text = self.describe_sending(&sending);
                        self.sent.push(sending);
                        text
                    }
                    Err(wait) if wait > Duration::from_secs(60) => "nothing to send\n".into(),
                    Err(wait) => format!("waits {wait:?}\n"),
                }
            }
            ["answer", answer] => match self.sent.pop() {
                Some(sending) => {
                    self.tasks.record(&sending, &answer_of(answer), self.now);
                }
                None => found = "nothing was sent\n".into(),
            },
            ["after", seconds] => {
                self.now = self.begun + Duration::from_secs_f64(seconds.parse().unwrap())
            }
            ["restart"] => {
                self.tasks = no_tasks();
                self.open(false);
            }
            ["register_anew"] => self.open(true),
            ["league_over"] => {
                self.tasks.end();
                found = format!("settled: {}\n", self.tasks.are_settled());
            }
            ["settled"] => found = format!("settled: {}\n", self.tasks.are_settled()),
            _ => panic!("{command}: no such command"),
        }
        found
    }

    /// Announces a match with these match tokens, for the referee at this endpoint.
    fn announce(&mut self, id: &str, tokens: &str, referee: &str) {
        let round =
            json!({"league_id": "league", "round_id": 1, "matches": [entry(id, tokens, referee)]});
        let round = decode::<RoundAnnouncement>(&round).unwrap();
        self.tasks.apply(round, OURS).unwrap();
    }

    /// Returns `tells P01 won, conversation 2`.
    fn describe_sending(&mut self, sending: &Sending) -> String {
        let result = &sending.game_over.game_result;
        let result = match &result.winner_player_id {
            Some(winner) => format!("{winner} has won, {}", result.status),
            None => result.status.to_string(),
        };
        let number = self.number(&sending.assignment.conversation_id);
        match sending.receiver {
            MANAGER => format!("reports {number}: {result}\n"),
            seat => format!(
                "tells {} {number}: {result}\n",
                sending.assignment.players[seat]
            ),
        }
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
        let mut text = String::new();
        for (id, task) in self.tasks.by_match.clone() {
            let number = self.number(&task.assignment.conversation_id);
            text += &format!("{id} {:?}, {number}\n", task.state);
        }
        text
    }
}

/// Returns no tasks. The delays are 2 s and 4 s.
fn no_tasks() -> Tasks {
    Tasks::new(policy(3, "exponential"))
}

/// Returns a match of an announcement with these match tokens, for the referee at this endpoint.
fn entry(id: &str, tokens: &str, referee: &str) -> Value {
    json!({
        "match_id": id, "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
        "referee_endpoint": referee, "player_A_endpoint": local(8101), "player_B_endpoint": local(8102),
        "player_A_token": format!("{tokens}-a"), "player_B_token": format!("{tokens}-b"),
    })
}

/// Returns a result: P01 has `won`, or has `lost` technically.
fn result_of(word: &str) -> GameResult {
    let players = ["P01".into(), "P02".into()];
    let failures = [Some("gave no answer".to_string()), None];
    match word {
        "won" => judge(&players, [Parity::Even, Parity::Odd], 8),
        _ => even_odd::GAME.forfeit(&players, &[], &failures),
    }
}

/// Returns the answer to a message: `ok`, `silence`, the code of a refusal, `413`, or that the manager
/// has recorded that P01 has `lost`.
fn answer_of(word: &str) -> Result<(), CallError> {
    let (code, context) = match word {
        "ok" => return Ok(()),
        "silence" => return Err(CallError::Timeout(Duration::from_secs(5))),
        "413" => return Err(CallError::HttpStatus(413, String::new())),
        "lost" => {
            let recorded = match_result(&result_of("lost"), &usual());
            (
                "E015",
                json!({"field": "match_id", "recorded_result": recorded}),
            )
        }
        code => (code, json!({"field": "match_id"})),
    };
    let error = json!({"error_code": code, "error_description": code, "context": context});
    let error = decode::<LeagueError>(&error).unwrap();
    Err(CallError::Refused(Box::new(error), String::new()))
}

/// Returns a task of a referee that P01 has won.
pub fn decided_task(id: &str) -> Task {
    let entry = decode(&entry(id, "one", OURS)).unwrap();
    let mut tasks = no_tasks();
    tasks.accept(Assignment::new("league", 1, entry).unwrap());
    let mut task = tasks.by_match.remove(id).unwrap();
    task.result = Some(result_of("won"));
    task
}

/// Returns a match of P01 that is over, with this reason.
fn past(match_id: &str, reason: &str) -> PastMatch {
    let mut past = Turn::sample().history[0].clone();
    past.match_id = match_id.into();
    past.result.reason = Some(reason.into());
    past
}

#[test]
fn history_has_the_last_result_of_each_match() {
    let test = TestLeague::new("");
    let folder = test.folder.join("players/P01");
    let open = |fresh| History::open(&folder, "P01", "league", fresh).unwrap();
    let mut history = open(false);
    let before = history.matches();
    let news = [("R1M1", "a"), ("R2M1", "a"), ("R2M1", "a"), ("R1M1", "b")]
        .map(|(match_id, reason)| history.add(past(match_id, reason)));
    assert_eq!(news, [true, true, false, true]);
    assert!(before.is_empty(), "the history of a running turn changes");
    history.write().unwrap();
    let all = [past("R1M1", "b"), past("R2M1", "a")];
    assert_eq!(open(false).matches().as_slice(), all);
    assert!(open(true).matches().is_empty());
    let archived = files(&test.folder.join("players"));
    assert_eq!(archived.len(), 1, "{archived:?}");
}
