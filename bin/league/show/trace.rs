//! `league trace R1M1`, and `GET /trace/R1M1` of a running manager: the messages of a match as a
//! sequence diagram, made of the logs of the referees. Every message of a match is from or to its
//! referee, so its log has all of them, in their order.
//!
//! The page of a running manager is public, and unregistered agents can write into logs, since an
//! agent logs every message that it receives. So only three events are read: a referee has sent a
//! message, it has got the reply, or the delivery has failed. One page is made at a time.

use league::json::decode;
use league::net::http::{OK, Response};
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::terminal::{print_line, sanitize};
use league::program::{load_config, log_folder};
use league::protocol::{
    AgentKind, ChooseMoveCall, ChooseMoveResponse, ChooseParityResponse, GameError, GameInvitation,
    GameJoinAck, GameOver, LeagueError,
};
use league::values::{Timestamp, truncate};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::{Mutex, TryLockError};

/// The event of a log line with what an agent did, for readers.
pub const COMMENT: &str = "comment";
/// The events of a message that a referee has sent, of its reply, and of one that was not
/// delivered.
const SENT: &str = "message_sent";
const REPLY: &str = "reply_received";
const FAILED: &str = "delivery_failed";
/// The event of a manager that starts a league, and does not resume one.
const LEAGUE_BEGUN: &str = "league_begun";
/// Maximum number of characters that are shown of a text from a log.
const MAX_TEXT: usize = 200;
/// Columns from one lane to the next.
const LANE_WIDTH: usize = 10;
/// The head of the manager's lane.
const MANAGER: &str = "manager";
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
    let (id, folder) = (shown(&match_id), folder.display());
    let Some(diagram) = diagram(&lines) else {
        let hint = "--logs DIR (make trace: LOGS=DIR) says where the logs are";
        let problem = format!("no log in {folder} knows of a match {id}; {hint}");
        return Err(Exit::failure(problem));
    };
    let time = sanitize(text(&lines[0], "timestamp"));
    print_line(&format!(
        "{id} of {league_id}, {time}, by the logs in {folder}"
    ));
    print_line(&diagram);
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

/// Returns the lines about a match in the newest run of its league: the messages of its referees,
/// and the comments of all agents. Another league may have used the same folder.
pub fn find_lines(folder: &Path, league_id: &str, match_id: &str) -> io::Result<Vec<Value>> {
    let (agents, league) = (folder.join("agents"), folder.join("league").join(league_id));
    let mut begun = Vec::new();
    for folder in [&league, &folder.join("system")] {
        begun.extend(read_lines(folder, &[LEAGUE_BEGUN], |line| {
            text(line, "event_type") == LEAGUE_BEGUN
        })?);
    }
    let begun = begun.iter().map(|line| text(line, "timestamp")).max();
    let invitations = read_lines(&agents, &[match_id], |line| {
        is_of_referee(line)
            && text(line, "message_type") == GameInvitation::NAME
            && text(line, "match_id") == match_id
            && line["message"]["league_id"] == league_id
            && Some(text(line, "timestamp")) >= begun
    })?;
    let conversations = invitations.iter().map(|line| text(line, "conversation_id"));
    let conversations: Vec<&str> = conversations.collect();

    let mut lines = Vec::new();
    for folder in [&agents, &league] {
        lines.extend(read_lines(folder, &conversations, |line| {
            let is_shown = is_of_referee(line) || text(line, "event_type") == COMMENT;
            is_shown && conversations.contains(&text(line, "conversation_id"))
        })?);
    }

    lines.sort_by(|one, other| text(one, "timestamp").cmp(text(other, "timestamp")));
    Ok(lines)
}

/// Returns the lines of all logs in a folder that have one of the words and are wanted. Only lines
/// with one of the words are parsed.
fn read_lines(
    folder: &Path,
    words: &[&str],
    is_wanted: impl Fn(&Value) -> bool,
) -> io::Result<Vec<Value>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let log = BufReader::new(File::open(entry?.path())?);
        for line in log.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if words.iter().any(|word| line.contains(word))
                && let Ok(line) = serde_json::from_str(&line)
                && is_wanted(&line)
            {
                found.push(line);
            }
        }
    }

    Ok(found)
}

/// Returns a text field of a log line.
fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// Returns the agent that a field of a log line names by its id or its signature. That of a manager
/// has one name for all managers.
fn agent<'a>(line: &'a Value, key: &str) -> &'a str {
    match text(line, key) {
        manager if manager.starts_with(&*AgentKind::Manager.to_string()) => MANAGER,
        name => name.rsplit(':').next().unwrap_or_default(),
    }
}

fn is_of_referee(line: &Value) -> bool {
    AgentKind::Referee.is_valid_id(agent(line, "component"))
        && [SENT, REPLY, FAILED].contains(&text(line, "event_type"))
}

/// Returns the diagram of these lines; none if there is no message in them.
pub fn diagram(lines: &[Value]) -> Option<String> {
    let start = Timestamp::parse(text(lines.first()?, "timestamp"))?;
    let lanes = lanes(lines);
    let mut rows = vec![row("ms", &heads(&lanes), "")];
    let mut conversation = "";
    for line in lines {
        let time = Timestamp::parse(text(line, "timestamp"))?;
        let time = time.abs_diff(start).as_millis().to_string();
        if text(line, "event_type") == COMMENT {
            let done = format!("{} {}", agent(line, "component"), text(line, "message"));
            rows.push(row(&time, &shown(&done), ""));
            continue;
        }

        if text(line, "conversation_id") != conversation {
            conversation = text(line, "conversation_id");
            rows.push(row("", &shown(conversation), ""));
        }
        rows.extend(draw(line, &lanes, &time));
    }

    Some(rows.join("\n"))
}

/// Returns the names above the lanes.
fn heads(lanes: &[&str]) -> String {
    let mut heads = String::new();
    for lane in lanes {
        let head = truncate(&sanitize(lane), LANE_WIDTH - 2);
        heads += &format!("{head:<LANE_WIDTH$}");
    }

    heads
}

/// Returns the lanes: the manager, the referees and the players.
fn lanes(lines: &[Value]) -> Vec<&str> {
    let mut lanes = vec![MANAGER];
    for line in lines.iter().filter(|line| is_of_referee(line)) {
        lanes.extend(["component", "peer"].map(|key| agent(line, key)));
    }

    lanes.sort_by_key(|lane| {
        let is_referee = AgentKind::Referee.is_valid_id(lane);
        (*lane != MANAGER, !is_referee, *lane)
    });
    lanes.dedup();
    lanes
}

/// Returns a row of the diagram.
fn row(time: &str, lanes: &str, text: &str) -> String {
    format!("{time:>8}  {lanes}  {text}").trim_end().into()
}

/// Returns the row of a message, or of its failure with what came instead.
fn draw(line: &Value, lanes: &[&str], time: &str) -> Vec<String> {
    let event = text(line, "event_type");
    let [own, peer] = ["component", "peer"].map(|key| column(lanes, agent(line, key)));
    let (from, to) = if event == REPLY {
        (peer, own)
    } else {
        (own, peer)
    };

    // Draw the line from lane to lane, and its tip.
    let empty = format!(
        " |{}",
        format!("{:>LANE_WIDTH$}", "|").repeat(lanes.len() - 1)
    );
    let mut drawn: Vec<char> = empty.chars().collect();
    drawn[from.min(to) + 1..from.max(to)].fill('-');
    let tip = match event {
        FAILED => 'x',
        _ if from < to => '>',
        _ => '<',
    };
    drawn[if from < to { to - 1 } else { to + 1 }] = tip;

    // Write the label with the time that the referee has waited.
    let mut label = match event {
        FAILED => format!("✗ {}", text(line, "message")),
        _ => label(line),
    };
    if let Some(ms) = line["elapsed_ms"].as_u64() {
        label += &format!(" ({ms} ms)");
    }

    let mut rows = vec![row(time, &String::from_iter(drawn), &shown(&label))];
    if event == FAILED && !text(line, "body").is_empty() {
        rows.push(row("", &empty, &shown(text(line, "body"))));
    }

    rows
}

/// Returns a text from a log as it is shown.
fn shown(text: &str) -> String {
    truncate(&sanitize(text), MAX_TEXT)
}

/// Returns the column of a lane.
fn column(lanes: &[&str], name: &str) -> usize {
    let position = lanes.iter().position(|lane| *lane == name);
    1 + LANE_WIDTH * position.unwrap_or(0)
}

/// Returns the type of a message, with the field of it that decides.
fn label(line: &Value) -> String {
    let (message_type, message) = (text(line, "message_type"), &line["message"]);
    let detail = match message_type {
        "" => return "an answer that is no message".into(),
        ChooseMoveCall::NAME => text(message, "position").replace('\n', " / "),
        GameJoinAck::NAME if message["accept"] == false => "accept false".into(),
        // Both explain themselves by the same fields.
        GameError::NAME | LeagueError::NAME => match decode::<LeagueError>(message) {
            Ok(error) => error.explain(),
            Err(_) => String::new(),
        },
        GameOver::NAME => text(&message["game_result"], "status").into(),
        ChooseParityResponse::NAME => message["parity_choice"].to_string(),
        ChooseMoveResponse::NAME => message["move"].to_string(),
        _ => String::new(),
    };
    format!("{message_type} {detail}").trim_end().into()
}
