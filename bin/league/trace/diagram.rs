//! The diagram of a match is made of log lines: lines in, text out, and nothing else. A message has
//! up to two ends, its sending in one log and its receipt in another, and `pair` brings them
//! together. Clocks may differ between machines, but every message of a match is from or to the
//! referee: so the referee's log puts them in order. A stranger can make an agent log a message in
//! another's name. So only those have a lane who have spoken here by themselves, or were spoken to;
//! and what came in somebody's name is drawn only if that one's log has it too, or is not here.

use league::json::decode;
use league::program::terminal::sanitize;
use league::protocol::*;
use league::values::{Timestamp, truncate};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// So many lines of a conversation in one log are drawn, the first ones.
pub const MOST: usize = 200;
/// How much of others' words is shown at once, in characters.
const LONGEST: usize = 200;
/// Columns from one lane to the next.
const LANE: usize = 10;
/// The head of the manager's lane, under whatever name it signs.
const MANAGER: &str = "manager";
/// The events of a message that was sent, and of one that did not arrive.
const SENT: &str = "message_sent";
const FAILED: &str = "delivery_failed";

/// A text of a line.
pub fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// `referee:REF01` and `REF01` are the same, and so are all names of a manager.
fn name(sender: &str) -> &str {
    if sender.starts_with(&*AgentKind::Manager.to_string()) {
        return MANAGER;
    }
    sender.split_once(':').map_or(sender, |(_, name)| name)
}

/// One line of a log: one end of a message, or that it failed.
struct LogEnd<'a> {
    /// Where the line stands among all lines.
    place: usize,
    /// Whose log it is.
    log: &'a str,
    /// Its conversation.
    talk: &'a str,
    /// From whom to whom the message goes.
    way: [&'a str; 2],
    event: &'a str,
    /// The type of the message.
    what: &'a str,
    at: Timestamp,
    line: &'a Value,
}

impl<'a> LogEnd<'a> {
    fn of((place, line): (usize, &'a Value)) -> Option<LogEnd<'a>> {
        let [log, peer] = ["component", "peer"].map(|key| name(text(line, key)));
        let [event, what] = ["event_type", "message_type"].map(|key| text(line, key));
        let end = LogEnd {
            place,
            log,
            talk: text(line, "conversation_id"),
            way: if [SENT, FAILED].contains(&event) {
                [log, peer]
            } else {
                [peer, log]
            },
            event,
            what,
            at: Timestamp::parse(text(line, "timestamp"))?,
            line,
        };
        (log != peer).then_some(end)
    }

    fn is_receipt(&self) -> bool {
        self.way[1] == self.log
    }

    /// Whether a stranger may have caused the line, as long as no other log has it too.
    fn is_doubtful(&self) -> bool {
        self.event == "message_received" || self.event == SENT && !self.line["error_code"].is_null()
    }
}

/// A message, with the ends of it that are known.
struct Arrow<'a> {
    /// Its sending; where nobody logged that, its receipt.
    end: &'a LogEnd<'a>,
    came: Option<&'a LogEnd<'a>>,
    failed: Option<&'a LogEnd<'a>>,
}

impl<'a> Arrow<'a> {
    fn new(end: &'a LogEnd<'a>) -> Self {
        Arrow {
            end,
            came: Some(end).filter(|end| end.is_receipt()),
            failed: None,
        }
    }

    /// Whether both ends of it were logged.
    fn is_whole(&self) -> bool {
        self.came.is_some() && !self.end.is_receipt()
    }

    /// When it was on its way, by the clock and the log of the referee where these are known.
    fn moment(&self) -> (Timestamp, usize) {
        let mut ends = [Some(self.end), self.came].into_iter().flatten();
        let of_referee = ends.find(|it| AgentKind::Referee.is_valid_id(it.log));
        let end = of_referee.unwrap_or(self.end);
        (end.at, end.place)
    }

    /// Whether it may be drawn. If its only end is doubtful, the other agent's log must not be
    /// here.
    fn is_true(&self, logged: &BTreeSet<&str>) -> bool {
        let is_elsewhere = self.end.way.iter().any(|it| !logged.contains(it));
        self.is_whole() || !self.end.is_doubtful() || is_elsewhere
    }
}

/// The diagram of what log lines tell of a match; nothing where they tell nothing.
pub fn diagram(lines: &[Value]) -> Option<String> {
    let logged: BTreeSet<&str> = lines.iter().map(|it| name(text(it, "component"))).collect();
    let mut ends: Vec<LogEnd> = lines.iter().enumerate().filter_map(LogEnd::of).collect();
    ends.sort_by_key(|end| end.at);
    let begin = ends.first()?.at;
    let lanes = lanes(&ends);
    let heads = lanes
        .iter()
        .map(|lane| format!("{:<LANE$}", truncate(&sanitize(lane), LANE - 2)));
    let mut out = vec![row("ms", &heads.collect::<String>(), "")];
    let mut is_dotted = false;
    while let Some(talk) = ends.first().map(|end| end.talk) {
        out.push(row("", &truncate(&sanitize(talk), 60), ""));
        let (own, others) = ends
            .into_iter()
            .partition::<Vec<_>, _>(|end| end.talk == talk);
        ends = others;
        let mut arrows = pair(&own);
        arrows.retain(|it| it.is_true(&logged) && it.end.way.iter().all(|it| lanes.contains(it)));
        arrows.sort_by_key(Arrow::moment);
        is_dotted |= !arrows.iter().all(Arrow::is_whole);
        out.extend(arrows.iter().flat_map(|it| draw(it, &lanes, begin)));
    }
    if is_dotted {
        let elsewhere = "agents on other machines have their logs there";
        out.push(format!(
            "dotted: only one end is in a log here; {elsewhere}"
        ));
    }
    Some(out.join("\n"))
}

/// The lanes are of whoever speaks here by itself, and of those spoken to: the manager, the
/// referees, the players.
fn lanes<'a>(ends: &[LogEnd<'a>]) -> Vec<&'a str> {
    let mut lanes = BTreeSet::from([(false, true, MANAGER)]);
    for end in ends
        .iter()
        .filter(|end| end.event == SENT && !end.is_doubtful())
    {
        lanes.extend(
            end.way
                .map(|it| (it != MANAGER, !AgentKind::Referee.is_valid_id(it), it)),
        );
    }
    lanes.into_iter().map(|(.., lane)| lane).collect()
}

/// Brings the two ends of each message together: the first sending and the first receipt, and so
/// on. Where fewer came than were sent, those were lost that are said to have failed.
fn pair<'a>(ends: &'a [LogEnd<'a>]) -> Vec<Arrow<'a>> {
    let mut ways = BTreeMap::<_, (Vec<Arrow>, Vec<&LogEnd>)>::new();
    for end in ends {
        let (sent, came) = ways.entry((end.way, end.what)).or_default();
        match sent.last_mut() {
            _ if end.is_receipt() => came.push(end),
            Some(arrow) if end.event == FAILED => arrow.failed = Some(end),
            _ => sent.push(Arrow::new(end)),
        }
    }
    let mut arrows = Vec::new();
    for (mut sent, came) in ways.into_values() {
        let all_came = came.len() >= sent.len();
        let mut came = came.into_iter();
        for arrow in sent.iter_mut().filter(|it| all_came || it.failed.is_none()) {
            arrow.came = came.next();
        }
        arrows.extend(sent.into_iter().chain(came.map(Arrow::new)));
    }
    arrows
}

/// When, the lanes, and what is said.
fn row(at: &str, lanes: &str, said: &str) -> String {
    format!("{at:>8}  {lanes}  {said}").trim_end().into()
}

/// The arrow with what it says, and below it why it failed.
fn draw(arrow: &Arrow, lanes: &[&str], begin: Timestamp) -> Vec<String> {
    let column = |lane| 1 + LANE * lanes.iter().position(|it| *it == lane).unwrap_or(0);
    let [from, to] = arrow.end.way.map(column);
    let empty = format!(" |{}", format!("{:>LANE$}", "|").repeat(lanes.len() - 1));
    let mut drawn: Vec<char> = empty.chars().collect();
    let dash = if arrow.is_whole() { '-' } else { '.' };
    drawn[from.min(to) + 1..from.max(to)].fill(dash);
    let is_lost = arrow.failed.is_some() && arrow.came.is_none();
    let (end, tip) = match from < to {
        true => (to - 1, '>'),
        false => (to + 1, '<'),
    };
    drawn[end] = if is_lost { 'x' } else { tip };
    let end = arrow.came.or(arrow.failed);
    let took = end.and_then(|end| end.line["elapsed_ms"].as_u64());
    let took = took.map_or(String::new(), |ms| format!(" ({ms} ms)"));
    let at = arrow.end.at.abs_diff(begin).as_millis().to_string();
    let mut rows = vec![row(
        &at,
        &String::from_iter(drawn),
        &(what(arrow.end) + &took),
    )];
    if let Some(failed) = arrow.failed {
        let why = truncate(&sanitize(text(failed.line, "message")), LONGEST);
        rows.push(row("", &empty, &format!("✗ {why}")));
    }
    rows
}

/// The type of a message, and the little in it that decides.
fn what(end: &LogEnd) -> String {
    let (message, name) = (&end.line["message"], end.what);
    let more = match name {
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
    truncate(&sanitize(format!("{name} {more}").trim_end()), LONGEST)
}
