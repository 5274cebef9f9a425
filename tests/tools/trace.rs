//! `league trace R1M1`: the messages of a match, from the logs of all agents, as they are told in scripts
//! (`tests/scripts/trace`). What real referees log is seen in `tests/scripts/page`.

use super::support::*;
use crate::show::trace::{diagram, find_lines, page};
use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{fs, thread};

/// Writes a line into the log of an agent: its time in ms after 10 o'clock, the agent, the event, the
/// peer, the message type and edits. It belongs to R1M1 of the league `paper`.
fn log(test: &TestLeague, words: &str) {
    let mut words = words.splitn(6, ' ');
    let [time, own, event, peer, message_type] = [(); 5].map(|()| words.next().unwrap());
    let seconds = time.parse::<f64>().unwrap() / 1000.0;
    let line = json!({"timestamp": format!("2025-01-15T10:00:{seconds:06.3}Z"), "component": own, "event_type": event,
        "peer": peer, "message_type": message_type.replace('-', ""), "match_id": "R1M1",
        "conversation_id": "conv-r1m1-0123abcd", "message": {"league_id": "paper"}});
    let line = golden::edited(line, words.next().unwrap_or_default());
    let file = match own {
        "league_manager" => format!("{peer}.log.jsonl"),
        _ => format!("agents/{}.log.jsonl", own.replace(':', "")),
    };
    let path = test.folder.join("logs").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    writeln!(file.unwrap(), "{line}").unwrap();
}

#[test]
fn golden() {
    golden::run_scripts("trace", || {
        let mut test = TestLeague::new("");
        let mut earlier = Vec::new();
        move |command: &str| {
            match command {
                "picture" => {
                    let lines = find_lines(&test.folder.join("logs"), "paper", "R1M1").unwrap();
                    let picture = diagram(&lines).unwrap_or("none".into());
                    return repeats::counted(&mut earlier, &picture);
                }
                "other logs" => test = TestLeague::new(""),
                words => log(&test, words),
            }
            String::new()
        }
    });
}

fn page_status(logs: &Path, has_result: Option<bool>) -> &'static str {
    page(logs, "paper", "R1M1", || has_result).status
}

#[test]
#[cfg_attr(windows, ignore = "mkfifo is a command of Unix")]
fn pages_are_made_one_at_a_time_and_only_with_a_result() {
    let test = TestLeague::new("");
    let logs = test.folder.join("logs");
    let pipe = logs.join("agents/slow.log.jsonl"); // reading waits for a writer
    fs::create_dir_all(logs.join("agents")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let busy = "503 Service Unavailable";
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            until("it is made", || {
                Some(page_status(&logs, Some(true))).filter(|status| *status != busy)
            })
        });
        wait_until("the first page is being made", || {
            page_status(&logs, None) == busy
        });
        let writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        fs::remove_file(&pipe).unwrap(); // the second reading finds no such log
        drop(writer);
        assert_eq!(slow.join().unwrap(), "404 Not Found");
    });
    assert_eq!(page_status(&logs, None), "404 Not Found");

    let test = TestLeague::new("");
    log(&test, "9000 REF01 message_sent P01 GAME_INVITATION");
    let logs = test.folder.join("logs");
    for (still_has_result, status) in [(true, "200 OK"), (false, "404 Not Found")] {
        let has_result = Cell::new(true); // it may change while the logs are read
        let page = page(&logs, "paper", "R1M1", || {
            Some(has_result.replace(still_has_result))
        });
        assert_eq!(page.status, status);
    }
}
