//! `league trace R1M1`, and `GET /trace/R1M1` of a running manager: the messages of a match as a
//! sequence diagram, made of the logs of all agents. This file finds the log lines, and
//! `trace/diagram.rs` draws them.
//!
//! The page of a running manager is public, and unregistered agents can write into logs, since an
//! agent logs every message that it receives. So a trace reads the logs line by line, and keeps a
//! limited number of lines: the first ones of each log in those conversations in which an agent
//! here has sent a message by itself. One page is made at a time. Read next: `trace/diagram.rs`,
//! and `net/log.rs`, which writes the lines.

mod diagram;

pub use diagram::{COMMENT, diagram};

use diagram::{MAX_LINES, text};
use league::net::http::{OK, Response};
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::terminal::{print_line, print_whole_line, sanitize};
use league::program::{load_config, log_folder};
use league::protocol::{GameInvitation, GameJoinAck, MatchResultAck};
use league::values::truncate;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

/// The event of a manager that starts a league, and does not resume one.
const LEAGUE_BEGUN: &str = "league_begun";
/// Locked while a page is made.
static PAGE_LOCK: Mutex<()> = Mutex::new(());

pub const USAGE: Usage = Usage {
    name: "league trace MATCH",
    about: "show from the logs what was said in a match: trace R1M1",
    options: &[COMMON],
};

/// Prints the diagram of a match.
pub fn run(args: &Args, match_id: &str) -> Result<(), Exit> {
    let (config, folder) = (load_config(args)?, log_folder(args));
    let match_id = match_id.to_uppercase();
    let league_id = &config.league.league_id;
    let lines = find_lines(&folder, league_id, &match_id)?;
    let (id, folder) = (truncate(&match_id, 60), folder.display());
    let Some(diagram) = diagram(&lines) else {
        let hint = "--logs DIR (make trace: LOGS=DIR) says where the logs are";
        let problem = format!("no log in {folder} knows of a match {id}; {hint}");
        return Err(Exit::failure(problem));
    };
    let times = lines.iter().map(|line| text(line, "timestamp"));
    let time = sanitize(times.min().unwrap_or_default());
    print_line(&format!(
        "{id} of {league_id}, {time}, by the logs in {folder}"
    ));
    print_whole_line(&diagram);
    Ok(())
}

/// Returns the page of a match. `has_result` returns none if the league has no such match. The page
/// of a match without a result would show a choice that the other player must not see, so
/// `has_result` is called again after the logs are read.
pub fn page(
    folder: &Path,
    league_id: &str,
    match_id: &str,
    has_result: impl Fn() -> Option<bool>,
) -> Response {
    let lock = PAGE_LOCK.try_lock();
    if matches!(lock, Err(TryLockError::WouldBlock)) {
        let busy = "another match is being traced; ask again in a moment";
        return Response::text("503 Service Unavailable", busy);
    }

    let mut drawn = None;
    if has_result() == Some(true)
        && let Ok(lines) = find_lines(folder, league_id, match_id)
    {
        drawn = diagram(&lines);
    }
    let problem = match (has_result(), drawn) {
        (Some(true), Some(drawn)) => return Response::text(OK, drawn),
        (Some(true), None) => "no log on the manager's machine tells of this match",
        (Some(false), _) => "this match has no result yet; then it can be seen",
        (None, _) => "the league has no such match",
    };
    Response::text("404 Not Found", problem)
}

/// Returns the lines in a folder of logs about a match in the newest run of its league; those of
/// each log in their order.
pub fn find_lines(folder: &Path, league_id: &str, match_id: &str) -> io::Result<Vec<Value>> {
    let mut logs = BTreeSet::new();
    for name in ["agents", "system", &format!("league/{league_id}")] {
        for file in fs::read_dir(folder.join(name)).into_iter().flatten() {
            logs.extend(file.map(|file| file.path()));
        }
    }

    let texts = BTreeSet::from([match_id, LEAGUE_BEGUN]);
    let mut signs = collect(&logs, &texts, usize::MAX, |line| {
        is_league_start(line) || is_own_message(line, league_id, match_id)
    })?;

    let conversations = newest_conversations(&mut signs);
    let max = MAX_LINES * conversations.len();
    collect(&logs, &conversations, max, |line| {
        conversations.contains(text(line, "conversation_id"))
    })
}

fn is_league_start(line: &Value) -> bool {
    text(line, "event_type") == LEAGUE_BEGUN
}

/// Returns true if a line shows that an agent takes part in a match by itself: it sends an
/// invitation, accepts one, or records the result. No unregistered agent can make another one send
/// these.
fn is_own_message(line: &Value, league_id: &str, match_id: &str) -> bool {
    let own_types = [
        GameInvitation::NAME,
        GameJoinAck::NAME,
        MatchResultAck::NAME,
    ];
    let league = line["message"]["league_id"].as_str();
    text(line, "event_type") == "message_sent"
        && text(line, "match_id") == match_id
        && own_types.contains(&text(line, "message_type"))
        && league.is_none_or(|league| league == league_id)
}

/// Returns the conversations in the newest run: those after the last start of the league. A player
/// accepts an invitation of any program to a match that is not its own, so its answer only counts
/// if no log of a referee or of the manager is here.
fn newest_conversations(signs: &mut [Value]) -> BTreeSet<&str> {
    signs.sort_by(|one, other| text(one, "timestamp").cmp(text(other, "timestamp")));
    let mut runs = signs.split(is_league_start);
    let newest = runs.rfind(|run| !run.is_empty()).unwrap_or_default();

    let mut conversations = BTreeSet::new();
    let mut accepted = BTreeSet::new();
    for line in newest {
        let conversation = text(line, "conversation_id");
        if text(line, "message_type") == GameJoinAck::NAME {
            accepted.insert(conversation);
        } else {
            conversations.insert(conversation);
        }
    }
    if conversations.is_empty() {
        accepted
    } else {
        conversations
    }
}

/// Returns those lines of logs that contain one of the texts and are wanted; at most `max` of each
/// log, the first ones. Only lines with one of the texts are parsed.
fn collect(
    logs: &BTreeSet<PathBuf>,
    texts: &BTreeSet<&str>,
    max: usize,
    is_wanted: impl Fn(&Value) -> bool,
) -> io::Result<Vec<Value>> {
    let mut found = Vec::new();
    for log in logs {
        let mut count = 0;
        for line in BufReader::new(File::open(log)?).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line);
            if !texts.iter().any(|text| line.contains(text)) {
                continue;
            }

            match serde_json::from_str(&line) {
                Ok(line) if is_wanted(&line) => found.push(line),
                _ => continue,
            }
            count += 1;
            if count == max {
                break;
            }
        }
    }
    Ok(found)
}
