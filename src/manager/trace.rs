//! `league_manager trace R1M1`: what was said in a match, as a sequence diagram made of everybody's logs. `diagram` is
//! pure, lines in and text out; `trace` reads the files below the logs' folder.
//!
//! A message has up to two ends, its sending in one log and its receipt in another; `pair` brings them together. Clocks
//! may differ between machines, so the order is that of causes: within a log that of its lines, and no receipt before
//! its sending. Read next: `net/log.rs`, which writes the lines.

use crate::program::args::{Args, Stop};
use crate::program::terminal::{say, shown};
use crate::program::{self, logs};
use crate::protocol::*;
use crate::wire::{Timestamp, Wire, cut};
use serde_json::Value;
use std::{collections::BTreeMap, collections::BTreeSet, fs, path::Path};

/// How much of others' words is shown at once, in characters.
const LONGEST: usize = 200;
/// Columns from one lane to the next.
const LANE: usize = 10;
/// What the logs call a manager, and the head of its lane.
const MANAGER: (&str, &str) = ("league_manager", "manager");

/// One line of a log that is about the match: one end of a message, or that it failed.
struct End<'a> {
    /// Whose log it is.
    lane: String,
    peer: String,
    event: &'a str,
    /// The type of its message.
    what: String,
    at: Timestamp,
    line: &'a Value,
}

impl End<'_> {
    fn is_sending(&self) -> bool {
        self.event == "message_sent"
    }

    fn is_receipt(&self) -> bool {
        ["message_received", "reply_received", "notice_answered"].contains(&self.event)
    }
}

/// A message, with the ends of it that are known.
struct Arrow<'a> {
    from: String,
    to: String,
    sent: Option<usize>,
    came: Option<usize>,
    /// The line about its failure.
    failed: Option<&'a Value>,
    /// What its receiver complained of.
    complaint: Option<String>,
}

impl Arrow<'_> {
    fn new(from: &str, to: &str) -> Self {
        Arrow { from: from.into(), to: to.into(), sent: None, came: None, failed: None, complaint: None }
    }
}

/// Prints the diagram of the match that stands behind the word.
pub fn trace(args: &Args) -> Result<(), Stop> {
    let (config, folder) = (program::load(args)?, logs(args));
    let match_id = args.operand.clone().unwrap_or_default().to_uppercase();
    let mut lines = Vec::new();
    read_all(&folder, &mut lines).map_err(|error| Stop::failed(format!("{}: {error}", folder.display())))?;
    let found = diagram(&lines, &config.league.league_id, &match_id);
    let unknown = || {
        let (id, at) = (cut(&match_id, 60), folder.display());
        Stop::failed(format!("no log in {at} knows of a match {id}; the logs of a league stand where --logs DIR says"))
    };
    say(&found.ok_or_else(unknown)?);
    Ok(())
}

/// Every line of every log below a folder, each file's in their order. What is not JSON is left out: a line may be torn.
fn read_all(folder: &Path, lines: &mut Vec<Value>) -> std::io::Result<()> {
    let mut paths: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_all(&path, lines)?;
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            let bytes = fs::read(&path)?;
            lines.extend(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
        }
    }
    Ok(())
}

/// The diagram of a match of a league, of the newest run that has it; nothing where no line is about it.
pub fn diagram(lines: &[Value], league_id: &str, match_id: &str) -> Option<String> {
    let mut talks = BTreeMap::<&str, Vec<End>>::new();
    let prefix = format!("conv-{}-", match_id.to_lowercase());
    for line in lines {
        let conversation = text(line, "conversation_id");
        if text(line, "match_id") == match_id || conversation.starts_with(&prefix) {
            talks.entry(conversation).or_default().extend(end(line));
        }
    }
    let foreign = |end: &End| end.line["message"]["league_id"].as_str().is_some_and(|id| id != league_id);
    talks.retain(|_, ends| !ends.is_empty() && !ends.iter().any(foreign));
    let starts = starts(lines);
    let run = |at: Timestamp| starts.iter().filter(|start| **start <= at).count();
    let first = |ends: &[End]| ends.iter().map(|end| end.at).min();
    let newest = talks.values().filter_map(|ends| first(ends)).map(run).max()?;
    let mut talks: Vec<_> = talks.into_iter().filter(|(_, ends)| first(ends).map(run) == Some(newest)).collect();
    talks.sort_by_key(|(_, ends)| first(ends));
    let begin = talks.iter().filter_map(|(_, ends)| first(ends)).min()?;
    let lanes = lanes(&talks);
    let (mut out, mut dotted) = (vec![head(&lanes)], false);
    for (conversation, ends) in &talks {
        out.push(format!("{:>8}  {}", "", cut(&shown(conversation), 60)));
        let mut arrows = pair(ends);
        in_order(ends, &mut arrows);
        blame(ends, &mut arrows);
        dotted |= arrows.iter().any(|arrow| arrow.sent.is_none() || arrow.came.is_none());
        arrows.iter().for_each(|arrow| draw(arrow, ends, &lanes, begin, &mut out));
    }
    let logged: BTreeSet<&str> = lines.iter().map(|line| name(text(line, "component"))).collect();
    let silent: Vec<&str> = lanes.iter().map(String::as_str).filter(|lane| !logged.contains(lane)).collect();
    out.extend(dotted.then(|| "dotted: only one end has logged it".into()));
    let why = "agents on other machines have theirs there";
    out.extend((!silent.is_empty()).then(|| format!("no log here of {}: {why}", shown(&silent.join(", ")))));
    Some(out.join("\n"))
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// `referee:REF01` and `REF01` are the same, and so are all names of a manager.
fn name(sender: &str) -> &str {
    if sender.starts_with(MANAGER.0) { MANAGER.1 } else { sender.split_once(':').map_or(sender, |(_, name)| name) }
}

fn end(line: &Value) -> Option<End<'_>> {
    let (event, peer) = (text(line, "event_type"), text(line, "peer"));
    let end = End {
        lane: name(text(line, "component")).into(),
        peer: name(peer).into(),
        event,
        what: text(line, "message_type").into(),
        at: Timestamp::parse(text(line, "timestamp"))?,
        line,
    };
    (!peer.is_empty() && (end.is_sending() || end.is_receipt() || event == "delivery_failed")).then_some(end)
}

/// When a manager began a league, as far as the logs tell: it started, and did not find one to go on with.
fn starts(lines: &[Value]) -> Vec<Timestamp> {
    let said = |line: &&Value| name(text(line, "component")) == MANAGER.1;
    let managers: Vec<&Value> = lines.iter().filter(said).collect();
    let life = managers.iter().filter(|line| ["started", "resumed", "ended"].contains(&text(line, "event_type")));
    let life: Vec<&&Value> = life.collect();
    let new = life.iter().enumerate().filter(|(n, line)| {
        let next = life.get(n + 1).map_or("", |next| text(next, "event_type"));
        text(line, "event_type") == "started" && next != "resumed"
    });
    new.filter_map(|(_, line)| Timestamp::parse(text(line, "timestamp"))).collect()
}

/// The manager, the referees in the order in which they came, player A, player B.
fn lanes(talks: &[(&str, Vec<End>)]) -> Vec<String> {
    let ends = || talks.iter().flat_map(|(_, ends)| ends);
    let mut lanes: Vec<(u8, String)> = vec![(0, MANAGER.1.into())];
    let mut add = |rank: u8, lane: &str| {
        let known = lanes.iter().any(|(_, other)| other == lane);
        if !known && !lane.is_empty() {
            lanes.push((rank, lane.into()));
        }
    };
    for end in ends().filter(|end| end.what == GameInvitation::NAME && end.is_sending()) {
        add(1, &end.lane);
        let is_a = end.line["message"]["role_in_match"] == Role::PlayerA.word();
        add(if is_a { 2 } else { 3 }, &end.peer);
    }
    ends().for_each(|end| [&end.lane, &end.peer].iter().for_each(|lane| add(4, lane)));
    lanes.sort_by_key(|(rank, _)| *rank);
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// Brings the two ends of each message together: the first sending and the first receipt, and so on. Where fewer came
/// than were sent, those failed that are said to have: the unreachable before the slow.
fn pair<'a>(ends: &[End<'a>]) -> Vec<Arrow<'a>> {
    let mut ways = BTreeMap::<[&str; 3], (Vec<Arrow>, Vec<usize>)>::new();
    for (n, end) in ends.iter().enumerate() {
        // A notice's answer goes the other way than the notice.
        let what = if end.event == "notice_answered" { "" } else { &*end.what };
        if end.is_receipt() {
            ways.entry([&end.peer, &end.lane, what]).or_default().1.push(n);
        } else {
            let sent = &mut ways.entry([&end.lane, &end.peer, what]).or_default().0;
            match sent.last_mut().filter(|_| !end.is_sending()) {
                Some(arrow) => arrow.failed = Some(end.line),
                None => sent.push(Arrow { sent: Some(n), ..Arrow::new(&end.lane, &end.peer) }),
            }
        }
    }
    let mut arrows = Vec::new();
    for ([from, to, _], (mut sent, mut came)) in ways {
        let lost = |arrow: &Arrow| match arrow.failed.map(|line| text(line, "error_code")) {
            Some("E009") => 0,
            Some(_) => 1,
            None => 2,
        };
        let mut order: Vec<usize> = (0..sent.len()).collect();
        order.sort_by_key(|n| lost(&sent[*n])); // what is likeliest lost stands first
        let mut whole = order.split_off(sent.len().saturating_sub(came.len()));
        whole.sort_unstable();
        came.reverse();
        for n in whole {
            sent[n].came = came.pop();
        }
        arrows.append(&mut sent);
        arrows.extend(came.into_iter().rev().map(|n| Arrow { came: Some(n), ..Arrow::new(from, to) }));
    }
    arrows
}

/// Sorts by cause, and by clock where there is none: a message follows all that its sender's log has before it; one
/// whose sending nobody logged follows what its receiver's log has before it.
fn in_order(ends: &[End], arrows: &mut Vec<Arrow>) {
    let at = |arrow: &Arrow| arrow.sent.or(arrow.came).unwrap_or_default();
    let (mut left, mut done) = (std::mem::take(arrows), BTreeSet::new());
    while !left.is_empty() {
        let open: BTreeSet<usize> = left.iter().flat_map(|it| [it.sent, it.came]).flatten().collect();
        let is_free = |arrow: &Arrow| {
            let before = open.range(..at(arrow)).filter(|n| !done.contains(*n));
            !before.into_iter().any(|n| ends[*n].lane == ends[at(arrow)].lane)
        };
        let candidates = (0..left.len()).filter(|n| is_free(&left[*n]));
        let next = candidates.min_by_key(|n| (ends[at(&left[*n])].at, at(&left[*n])));
        let arrow = left.remove(next.unwrap_or(0)); // a circle of causes: logs that are not of one run
        done.extend([arrow.sent, arrow.came].into_iter().flatten());
        arrows.push(arrow);
    }
}

/// Gives each answer that was wrong the sentence of the GAME_ERROR that says so: the first complaint of a player's
/// answers is about its first one, for a good answer is its last. Silence is no answer, and marked where it was met.
fn blame(ends: &[End], arrows: &mut [Arrow]) {
    let sending = |arrow: &Arrow| arrow.sent.or(arrow.came).map(|n| &ends[n]);
    let mut complaints = Vec::new();
    for end in arrows.iter().filter_map(sending).filter(|end| end.what == GameError::NAME && end.is_sending()) {
        let error = GameError::read(&end.line["message"]).ok();
        let error = error.filter(|error| ![Code::E001.code(), Code::E009.code()].contains(&&*error.error_code));
        complaints.extend(error.map(|error| (&end.lane, &end.peer, error)));
    }
    for (referee, player, error) in complaints {
        let is_answer = |arrow: &&mut Arrow| {
            let what = sending(arrow).map(|end| &*end.what).unwrap_or_default();
            let fits = what.is_empty() || what == error.action_required;
            fits && arrow.from == *player && arrow.to == *referee && arrow.came.is_some() && arrow.complaint.is_none()
        };
        arrows.iter_mut().find(is_answer).into_iter().for_each(|arrow| arrow.complaint = Some(error.explain()));
    }
}

fn head(lanes: &[String]) -> String {
    let names = lanes.iter().map(|lane| format!("{:<LANE$}", cut(&shown(lane), LANE - 1)));
    format!("{:>8}  {}", "ms", names.collect::<String>().trim_end())
}

/// The arrow, what it says, and on a line of its own why it failed.
fn draw(arrow: &Arrow, ends: &[End], lanes: &[String], begin: Timestamp, out: &mut Vec<String>) {
    let Some(end) = arrow.sent.or(arrow.came).map(|n| &ends[n]) else { return };
    let place = |lane: &String| 1 + LANE * lanes.iter().position(|it| it == lane).unwrap_or(0);
    let (from, to) = (place(&arrow.from), place(&arrow.to));
    let empty: Vec<char> = (0..=1 + LANE * (lanes.len() - 1)).map(|x| if x % LANE == 1 { '|' } else { ' ' }).collect();
    let mut row = empty.clone();
    let both = arrow.sent.is_some() && arrow.came.is_some();
    let stroke = if both { '-' } else { '.' };
    (from.min(to) + 1..from.max(to)).for_each(|x| row[x] = stroke);
    let (tip, head) = if from < to { (to - 1, '>') } else { (to + 1, '<') };
    if let Some(tip) = row.get_mut(tip) {
        *tip = if arrow.failed.is_some() && arrow.came.is_none() { 'x' } else { head };
    }
    let elapsed = |line: &Value| line["elapsed_ms"].as_u64();
    let came = arrow.came.map(|n| ends[n].line);
    let took = came.and_then(elapsed).or(arrow.failed.and_then(elapsed));
    let took = took.map_or(String::new(), |ms| format!(" ({ms} ms)"));
    let at = end.at.distance(begin).as_millis();
    let row: String = row.into_iter().collect();
    out.push(format!("{at:>8}  {row}  {}{took}", what(end)));
    let faults =
        [arrow.failed.map(|line| text(line, "message").to_string()), arrow.complaint.clone().or(came.and_then(wrong))];
    for why in faults.into_iter().flatten() {
        out.push(format!("{:>8}  {}  ✗ {}", "", empty.iter().collect::<String>(), cut(&shown(&why), LONGEST)));
    }
}

/// The type of a message, and the little in it that decides.
fn what(end: &End) -> String {
    let message = &end.line["message"];
    let said = match &*end.what {
        _ if end.event == "notice_answered" => format!("answered {}", text(end.line, "message")),
        ChooseParityResponse::NAME => format!("{} {}", end.what, message["parity_choice"]),
        GameJoinAck::NAME if message["accept"] == false => format!("{} accept false", end.what),
        GameError::NAME | LeagueError::NAME => {
            format!("{} {} {}", end.what, text(message, "error_code"), text(message, "error_description"))
        }
        GameOver::NAME => format!("{} {}", end.what, text(&message["game_result"], "status")),
        "" => "an answer that is no message".into(),
        name => name.into(),
    };
    cut(&shown(&said), LONGEST)
}

/// What was wrong with an answer that could not be taken.
fn wrong(line: &Value) -> Option<String> {
    let code = line["error_code"].as_str()?;
    Some(format!("{code} {}", text(line, "field")))
}
