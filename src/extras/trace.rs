//! `league_manager trace R1M1`, and `GET /trace/R1M1` of a running manager: what was said in a match, as a sequence
//! diagram made of everybody's logs. `diagram` is pure, lines in and text out; `about` finds the lines.
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
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

/// How much of others' words is shown at once, in characters.
const LONGEST: usize = 200;
/// So many lines of each log are drawn, the last ones: a stranger may write as many as it likes into a match.
const MOST: usize = 500;
/// Columns from one lane to the next.
const LANE: usize = 10;
/// What the logs call a manager, and the head of its lane.
const MANAGER: (&str, &str) = ("league_manager", "manager");
/// What the life of a program consists of.
const LIFE: [&str; 3] = ["started", "resumed", "ended"];
/// The event of a message that did not arrive.
const FAILED: &str = "delivery_failed";

/// Prints the diagram of the match that stands behind the word.
pub fn trace(args: &Args) -> Result<(), Stop> {
    let (config, folder) = (program::load(args)?, logs(args));
    let match_id = args.operand.clone().unwrap_or_default().to_uppercase();
    let lines = about(&folder, &match_id);
    let lines = lines.map_err(|error| Stop::failed(format!("{}: {error}", folder.display())))?;
    let unknown = || {
        let (id, at) = (cut(&match_id, 60), folder.display());
        Stop::failed(format!(
            "no log in {at} knows of a match {id}; the logs of a league stand where --logs DIR says"
        ))
    };
    say(&diagram(&lines, &config.league.league_id, &match_id).ok_or_else(unknown)?);
    Ok(())
}

/// The lines below a folder about a match, and those about the lives of programs, each log's in their order. Most lines
/// are about neither: they are not parsed.
pub fn about(folder: &Path, match_id: &str) -> io::Result<Vec<Value>> {
    let conversation = format!("conv-{}-", match_id.to_lowercase());
    let is_life = |line: &&str| {
        LIFE.iter()
            .any(|event| line.contains(&format!("\"event_type\":\"{event}\"")))
    };
    let mut lines = Vec::new();
    for path in below(folder)? {
        let text = fs::read_to_string(path)?;
        let is_talk = |line: &&str| line.contains(match_id) || line.contains(&conversation);
        let talk: Vec<&str> = text.lines().filter(is_talk).collect();
        let newest = &talk[talk.len().saturating_sub(MOST)..];
        let wanted = text.lines().filter(is_life).chain(newest.iter().copied());
        lines.extend(wanted.filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    Ok(lines)
}

/// All logs below a folder, in the order of their names.
fn below(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut paths = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            paths.append(&mut below(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            paths.insert(path);
        }
    }
    Ok(paths)
}

/// One line of a log that is about the match: one end of a message, or that it failed.
struct End<'a> {
    /// Where it stands among all lines.
    place: usize,
    /// Whose log it is.
    lane: &'a str,
    peer: &'a str,
    event: &'a str,
    /// The type of its message.
    what: &'a str,
    at: Timestamp,
    line: &'a Value,
}

impl<'a> End<'a> {
    fn of(place: usize, line: &'a Value) -> Option<End<'a>> {
        let (lane, peer) = (name(text(line, "component")), name(text(line, "peer")));
        let (event, what) = (text(line, "event_type"), text(line, "message_type"));
        let end = End {
            place,
            lane,
            peer,
            event,
            what,
            at: Timestamp::parse(text(line, "timestamp"))?,
            line,
        };
        let is_one = end.is_sending() || end.is_receipt() || event == FAILED;
        (is_one && !lane.is_empty() && !peer.is_empty()).then_some(end)
    }

    fn is_sending(&self) -> bool {
        self.event == "message_sent"
    }

    fn is_receipt(&self) -> bool {
        ["message_received", "reply_received", "notice_answered"].contains(&self.event)
    }

    /// From whom to whom.
    fn way(&self) -> [&'a str; 2] {
        if self.is_receipt() {
            [self.peer, self.lane]
        } else {
            [self.lane, self.peer]
        }
    }
}

/// A message, with the ends of it that are known.
struct Arrow<'a> {
    /// Its sending; where nobody logged that, its receipt.
    end: &'a End<'a>,
    came: Option<&'a End<'a>>,
    /// The line about its failure.
    failed: Option<&'a Value>,
    /// What its receiver complained of.
    complaint: Option<String>,
}

impl<'a> Arrow<'a> {
    fn new(end: &'a End<'a>) -> Self {
        let failed = (end.event == FAILED).then_some(end.line);
        Arrow {
            end,
            came: end.is_receipt().then_some(end),
            failed,
            complaint: None,
        }
    }

    /// Whether both ends of it were logged.
    fn is_whole(&self) -> bool {
        self.came.is_some() && !self.end.is_receipt()
    }
}

/// The diagram of a match of a league, of the newest run that has it; nothing where no line is about it.
pub fn diagram(lines: &[Value], league_id: &str, match_id: &str) -> Option<String> {
    let mut talks = BTreeMap::<&str, Vec<End>>::new();
    let prefix = format!("conv-{}-", match_id.to_lowercase());
    for (place, line) in lines.iter().enumerate() {
        let conversation = text(line, "conversation_id");
        if text(line, "match_id") == match_id || conversation.starts_with(&prefix) {
            talks
                .entry(conversation)
                .or_default()
                .extend(End::of(place, line));
        }
    }
    let foreign = |end: &End| {
        end.line["message"]["league_id"]
            .as_str()
            .is_some_and(|id| id != league_id)
    };
    talks.retain(|_, ends| !ends.iter().any(foreign));
    let first = |ends: &Vec<End>| ends.iter().map(|end| end.at).min();
    let newest = talks.values().filter_map(first).max()?;
    let began = starts(lines)
        .into_iter()
        .filter(|start| *start <= newest)
        .max();
    talks.retain(|_, ends| first(ends).is_some_and(|at| began.is_none_or(|began| at >= began)));
    let mut talks: Vec<_> = talks.into_iter().collect();
    talks.sort_by_key(|(_, ends)| first(ends));
    let (begin, lanes) = (
        talks.first().and_then(|(_, ends)| first(ends))?,
        lanes(&talks),
    );
    let heads = lanes
        .iter()
        .map(|lane| format!("{:<LANE$}", cut(&shown(lane), LANE - 2)));
    let mut out = vec![row("ms", &heads.collect::<String>(), "")];
    let mut dotted = false;
    for (conversation, ends) in &talks {
        out.push(row("", &cut(&shown(conversation), 60), ""));
        let mut arrows = in_order(pair(ends));
        blame(&mut arrows);
        dotted |= !arrows.iter().all(Arrow::is_whole);
        out.extend(arrows.iter().flat_map(|arrow| draw(arrow, &lanes, begin)));
    }
    out.extend(dotted.then(|| "dotted: only one end has logged it".into()));
    let logged: BTreeSet<&str> = lines
        .iter()
        .map(|line| name(text(line, "component")))
        .collect();
    let silent: Vec<&str> = lanes
        .into_iter()
        .filter(|lane| !logged.contains(lane))
        .collect();
    let why = "agents on other machines have theirs there";
    out.extend(
        (!silent.is_empty())
            .then(|| format!("no log here of {}: {why}", shown(&silent.join(", ")))),
    );
    let of = |lane: &str| {
        talks
            .iter()
            .flat_map(|(_, ends)| ends)
            .filter(|end| end.lane == lane)
            .count()
    };
    let cut_off = logged.iter().any(|lane| of(lane) >= MOST);
    out.extend(
        cut_off
            .then(|| format!("of each log only the last {MOST} lines about the match are drawn")),
    );
    Some(out.join("\n"))
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// `referee:REF01` and `REF01` are the same, and so are all names of a manager.
fn name(sender: &str) -> &str {
    if sender.starts_with(MANAGER.0) {
        MANAGER.1
    } else {
        sender.split_once(':').map_or(sender, |(_, name)| name)
    }
}

/// When a manager began a league, as far as the logs tell: it started, and did not find one to go on with.
fn starts(lines: &[Value]) -> Vec<Timestamp> {
    let is_life = |line: &&Value| {
        name(text(line, "component")) == MANAGER.1 && LIFE.contains(&text(line, "event_type"))
    };
    let life: Vec<&Value> = lines.iter().filter(is_life).collect();
    let is_new = |n: &usize| {
        let next = life.get(n + 1).map_or("", |next| text(next, "event_type"));
        text(life[*n], "event_type") == "started" && next != "resumed"
    };
    (0..life.len())
        .filter(is_new)
        .filter_map(|n| Timestamp::parse(text(life[n], "timestamp")))
        .collect()
}

/// The manager, the referees in the order in which they came, player A, player B, whoever else.
fn lanes<'a>(talks: &[(&str, Vec<End<'a>>)]) -> Vec<&'a str> {
    let ends = || talks.iter().flat_map(|(_, ends)| ends);
    let invites = ends().filter(|end| end.what == GameInvitation::NAME && end.is_sending());
    let invited = invites.flat_map(|end| {
        let is_a = end.line["message"]["role_in_match"] == Role::PlayerA.word();
        [(1, end.lane), (if is_a { 2 } else { 3 }, end.peer)]
    });
    let mut lanes = vec![(0, MANAGER.1)];
    for (rank, lane) in invited.chain(ends().flat_map(|end| [(4, end.lane), (4, end.peer)])) {
        if !lanes.iter().any(|(_, known)| *known == lane) {
            lanes.push((rank, lane));
        }
    }
    lanes.sort_by_key(|(rank, _)| *rank);
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// Brings the two ends of each message together: the first sending and the first receipt, and so on. Where fewer came
/// than were sent, those failed that are said to have: the unreachable before the slow.
fn pair<'a>(ends: &'a [End<'a>]) -> Vec<Arrow<'a>> {
    let mut ways = BTreeMap::<([&str; 2], &str), (Vec<Arrow>, Vec<&End>)>::new();
    for end in ends {
        // A notice's answer goes the other way than the notice.
        let what = if end.event == "notice_answered" {
            ""
        } else {
            end.what
        };
        let (sent, came) = ways.entry((end.way(), what)).or_default();
        match sent.last_mut() {
            _ if end.is_receipt() => came.push(end),
            Some(arrow) if end.event == FAILED => arrow.failed = Some(end.line),
            _ => sent.push(Arrow::new(end)),
        }
    }
    let mut arrows = Vec::new();
    for (mut sent, came) in ways.into_values() {
        let chance = |arrow: &Arrow| match arrow.failed.map(|line| text(line, "error_code")) {
            Some("E009") => 0,
            Some(_) => 1,
            None => 2,
        };
        let mut order: Vec<usize> = (0..sent.len()).collect();
        order.sort_by_key(|n| chance(&sent[*n]));
        let (lost, mut came) = (
            &order[..sent.len().saturating_sub(came.len())],
            came.into_iter(),
        );
        for (_, arrow) in sent
            .iter_mut()
            .enumerate()
            .filter(|(n, _)| !lost.contains(n))
        {
            arrow.came = came.next();
        }
        arrows.extend(sent.into_iter().chain(came.map(Arrow::new)));
    }
    arrows
}

/// Sorts by cause, and by clock where there is none: a message follows all that its sender's log has before it; one
/// whose sending nobody logged follows what its receiver's log has before it.
fn in_order(mut left: Vec<Arrow>) -> Vec<Arrow> {
    let mut done = Vec::new();
    while !left.is_empty() {
        let mut open = BTreeMap::<&str, usize>::new(); // the first end in each log that is left
        for end in left
            .iter()
            .flat_map(|arrow| [Some(arrow.end), arrow.came])
            .flatten()
        {
            open.entry(end.lane)
                .and_modify(|first| *first = end.place.min(*first))
                .or_insert(end.place);
        }
        let is_free = |end: &End| open.get(end.lane) == Some(&end.place);
        let free = (0..left.len()).filter(|n| is_free(left[*n].end));
        let next = free.min_by_key(|n| (left[*n].end.at, left[*n].end.place));
        done.push(left.remove(next.unwrap_or(0))); // none: a circle of causes, logs that are not of one run
    }
    done
}

/// Gives each answer that was wrong the sentence of the GAME_ERROR that says so: the first complaint of a player's
/// answers is about its first one, for a good answer is its last. Silence is no answer, and marked where it was met.
fn blame(arrows: &mut [Arrow]) {
    let sent = arrows
        .iter()
        .map(|arrow| arrow.end)
        .filter(|end| end.what == GameError::NAME && end.is_sending());
    let errors =
        sent.filter_map(|end| Some((end.way(), GameError::read(&end.line["message"]).ok()?)));
    let silence = [Code::E001.code(), Code::E009.code()];
    let errors: Vec<_> = errors
        .filter(|(_, error)| !silence.contains(&&*error.error_code))
        .collect();
    for ([referee, player], error) in errors {
        let is_answer = |arrow: &&mut Arrow| {
            let fits = arrow.end.what.is_empty() || arrow.end.what == error.action_required;
            fits && arrow.end.way() == [player, referee]
                && arrow.came.is_some()
                && arrow.complaint.is_none()
        };
        arrows
            .iter_mut()
            .find(is_answer)
            .into_iter()
            .for_each(|arrow| arrow.complaint = Some(error.explain()));
    }
}

/// When, the lanes, and what is said.
fn row(at: &str, lanes: &str, said: &str) -> String {
    format!("{at:>8}  {lanes}  {said}").trim_end().into()
}

/// The arrow, what it says, and on a line of its own why it failed.
fn draw(arrow: &Arrow, lanes: &[&str], begin: Timestamp) -> Vec<String> {
    let place = |lane: &str| 1 + LANE * lanes.iter().position(|it| *it == lane).unwrap_or(0);
    let [from, to] = arrow.end.way().map(place);
    let empty: Vec<char> = (0..=1 + LANE * (lanes.len() - 1))
        .map(|x| if x % LANE == 1 { '|' } else { ' ' })
        .collect();
    let mut drawn = empty.clone();
    (from.min(to) + 1..from.max(to))
        .for_each(|x| drawn[x] = if arrow.is_whole() { '-' } else { '.' });
    let (tip, head) = if from < to {
        (to - 1, '>')
    } else {
        (to + 1, '<')
    };
    let is_lost = arrow.failed.is_some() && arrow.came.is_none();
    drawn
        .get_mut(tip)
        .into_iter()
        .for_each(|tip| *tip = if is_lost { 'x' } else { head });
    let came = arrow.came.map(|end| end.line);
    let took = came
        .into_iter()
        .chain(arrow.failed)
        .find_map(|line| line["elapsed_ms"].as_u64());
    let took = took.map_or(String::new(), |ms| format!(" ({ms} ms)"));
    let at = arrow.end.at.distance(begin).as_millis().to_string();
    let failed = arrow.failed.map(|line| text(line, "message").to_string());
    let wrong = |line: &Value| {
        Some(format!(
            "{} {}",
            line["error_code"].as_str()?,
            text(line, "field")
        ))
    };
    let faults = failed
        .into_iter()
        .chain(arrow.complaint.clone().or(came.and_then(wrong)));
    let faults = faults.map(|why| {
        row(
            "",
            &String::from_iter(&empty),
            &format!("✗ {}", cut(&shown(&why), LONGEST)),
        )
    });
    [row(
        &at,
        &String::from_iter(drawn),
        &(what(arrow.end) + &took),
    )]
    .into_iter()
    .chain(faults)
    .collect()
}

/// The type of a message, and the little in it that decides.
fn what(end: &End) -> String {
    let message = &end.line["message"];
    let said = match end.what {
        _ if end.event == "notice_answered" => format!("answered {}", text(end.line, "message")),
        ChooseParityResponse::NAME => format!("{} {}", end.what, message["parity_choice"]),
        GameJoinAck::NAME if message["accept"] == false => format!("{} accept false", end.what),
        GameError::NAME | LeagueError::NAME => {
            format!(
                "{} {} {}",
                end.what,
                text(message, "error_code"),
                text(message, "error_description")
            )
        }
        GameOver::NAME => format!("{} {}", end.what, text(&message["game_result"], "status")),
        "" => "an answer that is no message".into(),
        name => name.into(),
    };
    cut(&shown(&said), LONGEST)
}
