//! `league trace R1M1`, and `GET /trace/R1M1` of a running manager, show what was said in a
//! match, as a sequence diagram made of everybody's logs. This file finds the lines, and
//! `trace/diagram.rs` draws them.
//!
//! The page of a running manager is open to strangers, and strangers can write into logs: an agent
//! logs whatever it is sent. So a trace reads the logs line by line, and keeps a bounded number of
//! lines. It keeps those of the conversations in which an agent here has taken part by itself, and
//! of each log only the first ones. One page is made at a time. Read next: `trace/diagram.rs`, and
//! `net/log.rs`, which writes the lines.

mod diagram;

pub use diagram::diagram;

use diagram::{MOST, text};
use league::net::http::Response;
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::terminal::print_line;
use league::program::{load_config, log_folder};
use league::protocol::{GameInvitation, GameJoinAck, MatchResultAck};
use league::values::truncate;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

/// The event of a manager that begins a league, and does not go on with one.
const BEGUN: &str = "league_begun";
/// Held while a page is made.
static READING: Mutex<()> = Mutex::new(());

pub const USAGE: Usage = Usage {
    name: "league trace MATCH",
    about: "show from the logs what was said in a match: league trace R1M1",
    options: &[COMMON],
    redirects: "",
};

/// Prints the diagram of a match.
pub fn run(args: &Args, match_id: &str) -> Result<(), Exit> {
    let (config, folder) = (load_config(args)?, log_folder(args));
    let match_id = match_id.to_uppercase();
    let drawn = diagram(&about(&folder, &config.league.league_id, &match_id)?);
    print_line(&drawn.ok_or_else(|| {
        let (id, folder) = (truncate(&match_id, 60), folder.display());
        let hint = "--logs DIR (make trace: LOGS=DIR) says where the logs are";
        Exit::failed(format!("no log in {folder} knows of a match {id}; {hint}"))
    })?);
    Ok(())
}

/// The page of a match. `recorded` says whether the league has the match, and whether the match has
/// a result: before, the page would show a choice that the other player must not see. It is asked
/// twice, since the match may be ordered to be played again while the logs are read.
pub fn page(
    folder: &Path,
    league_id: &str,
    match_id: &str,
    recorded: impl Fn() -> Option<bool>,
) -> Response {
    let reading = READING.try_lock();
    if matches!(reading, Err(TryLockError::WouldBlock)) {
        let busy = "another match is being traced; ask again in a moment";
        return Response::text("503 Service Unavailable", busy);
    }
    let is_recorded = recorded() == Some(true);
    let lines = is_recorded.then(|| about(folder, league_id, match_id).ok());
    let drawn = lines.flatten().and_then(|lines| diagram(&lines));
    let why = match recorded() {
        Some(true) => match drawn {
            Some(drawn) => return Response::text("200 OK", drawn),
            None => "no log on the manager's machine tells of this match",
        },
        Some(false) => "this match has no result yet; then it can be seen",
        None => "the league has no such match",
    };
    Response::text("404 Not Found", why)
}

/// The lines in a folder of logs that tell of a match in the newest run of its league, each log's
/// in their order.
pub fn about(folder: &Path, league_id: &str, match_id: &str) -> io::Result<Vec<Value>> {
    let folders = ["agents", "system", &format!("league/{league_id}")].map(|it| folder.join(it));
    let files = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    let logs: BTreeSet<PathBuf> = files.map(|file| file.path()).collect();
    let mut signs = collect(&logs, &[match_id, BEGUN].into(), usize::MAX, |line| {
        text(line, "event_type") == BEGUN || takes_part(line, league_id, match_id)
    })?;
    let conversations = newest(&mut signs);
    collect(&logs, &conversations, MOST * conversations.len(), |line| {
        conversations.contains(text(line, "conversation_id"))
    })
}

/// Whether an agent says by a line that it takes part in a match: it invites, it comes, or it
/// records the result. No stranger can make an agent of ours send any of these.
fn takes_part(line: &Value, league_id: &str, match_id: &str) -> bool {
    let own = [
        GameInvitation::NAME,
        GameJoinAck::NAME,
        MatchResultAck::NAME,
    ];
    let league = line["message"]["league_id"].as_str();
    text(line, "event_type") == "message_sent"
        && text(line, "match_id") == match_id
        && own.contains(&text(line, "message_type"))
        && league.is_none_or(|it| it == league_id)
}

/// The conversations of the newest run: those that began after the manager last began a league.
fn newest(signs: &mut [Value]) -> BTreeSet<&str> {
    signs.sort_by(|one, other| text(one, "timestamp").cmp(text(other, "timestamp")));
    let mut runs = signs.split(|line| text(line, "event_type") == BEGUN);
    let newest = runs.rfind(|run| !run.is_empty()).unwrap_or_default();
    newest
        .iter()
        .map(|line| text(line, "conversation_id"))
        .collect()
}

/// The lines that have one of the words and are wanted, of each log so many, the first ones. Only
/// what has a word is parsed.
fn collect(
    logs: &BTreeSet<PathBuf>,
    words: &BTreeSet<&str>,
    most: usize,
    is_wanted: impl Fn(&Value) -> bool,
) -> io::Result<Vec<Value>> {
    let mut found = Vec::new();
    for log in logs {
        let lines = BufReader::new(File::open(log)?).split(b'\n');
        let parsed = lines.map_while(Result::ok).filter_map(|line| {
            let line = String::from_utf8_lossy(&line);
            let has_word = words.iter().any(|word| line.contains(word));
            has_word.then(|| serde_json::from_str(&line).ok())?
        });
        found.extend(parsed.filter(&is_wanted).take(most));
    }
    Ok(found)
}
