//! Draws the diagram of a match from log lines: lines in, text out.
//!
//! A message has up to two ends, the line of its sending in one log and the line of its receipt in
//! another. `pair_ends` brings them together. The clocks of machines may differ, but every message
//! of a match is from or to the referee, so the referee's log gives the order.
//!
//! An unregistered agent can make another agent log a message with a false sender. So lanes are
//! only given to agents that have sent messages here by themselves, and to their recipients. A
//! message that only its recipient has logged is drawn only if the log of its sender is not here.

use league::json::decode;
use league::program::terminal::sanitize;
use league::protocol::{
    AgentKind, ChooseMoveCall, ChooseMoveResponse, ChooseParityResponse, GameError, GameJoinAck,
    GameOver, LeagueError,
};
use league::values::{Timestamp, truncate};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of lines of a conversation that are drawn from one log: the first ones.
pub const MAX_LINES: usize = 200;
/// Maximum number of characters that are shown of a text from a log.
const MAX_TEXT: usize = 200;
/// Columns from one lane to the next.
const LANE_WIDTH: usize = 10;
/// The head of the manager's lane, for all names by which managers sign.
const MANAGER: &str = "manager";
/// The events of a message that was sent, and of one that was not delivered.
const SENT: &str = "message_sent";
const FAILED: &str = "delivery_failed";
/// The event of a log line with what an agent did, for readers.
pub const COMMENT: &str = "comment";

/// Returns a text field of a log line.
pub fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// Returns the lane of a sender: `REF01` for `referee:REF01` and `REF01`.
fn lane_name(sender: &str) -> &str {
    if sender.starts_with(&*AgentKind::Manager.to_string()) {
        return MANAGER;
    }
    sender.split_once(':').map_or(sender, |(_, name)| name)
}

/// A log line about a message: one end of it, or that its delivery failed.
struct LogEntry<'a> {
    /// The position of the line among all lines.
    position: usize,
    /// The agent whose log has the line.
    owner: &'a str,
    conversation: &'a str,
    from: &'a str,
    to: &'a str,
    event: &'a str,
    message_type: &'a str,
    time: Timestamp,
    line: &'a Value,
}

impl<'a> LogEntry<'a> {
    fn read(position: usize, line: &'a Value) -> Option<LogEntry<'a>> {
        let owner = lane_name(text(line, "component"));
        let peer = lane_name(text(line, "peer"));
        if owner == peer {
            return None;
        }

        let event = text(line, "event_type");
        let (from, to) = if [SENT, FAILED].contains(&event) {
            (owner, peer)
        } else {
            (peer, owner)
        };
        Some(LogEntry {
            position,
            owner,
            conversation: text(line, "conversation_id"),
            from,
            to,
            event,
            message_type: text(line, "message_type"),
            time: Timestamp::parse(text(line, "timestamp"))?,
            line,
        })
    }

    fn is_receipt(&self) -> bool {
        self.to == self.owner
    }

    /// Returns true if an unregistered agent may have caused the line, unless another log has it,
    /// too.
    fn is_doubtful(&self) -> bool {
        self.event == "message_received" || self.event == SENT && !self.line["error_code"].is_null()
    }
}

/// A message, with its known ends.
struct Arrow<'a> {
    /// The line of its sending, or else that of its receipt.
    entry: &'a LogEntry<'a>,
    receipt: Option<&'a LogEntry<'a>>,
    failure: Option<&'a LogEntry<'a>>,
}

impl<'a> Arrow<'a> {
    fn new(entry: &'a LogEntry<'a>) -> Self {
        Arrow {
            entry,
            receipt: entry.is_receipt().then_some(entry),
            failure: None,
        }
    }

    fn has_both_ends(&self) -> bool {
        self.receipt.is_some() && !self.entry.is_receipt()
    }

    /// Returns the key of the order: time and position, those of the referee's log if it has the
    /// message.
    fn order(&self) -> (Timestamp, usize) {
        let mut entry = self.entry;
        if let Some(receipt) = self.receipt
            && !AgentKind::Referee.is_valid_id(entry.owner)
            && AgentKind::Referee.is_valid_id(receipt.owner)
        {
            entry = receipt;
        }
        (entry.time, entry.position)
    }

    /// Returns true if both agents have lanes and, should the only end be doubtful, the log of the
    /// other agent is not here.
    fn may_be_drawn(&self, lanes: &[&str], logs: &BTreeSet<&str>) -> bool {
        let (from, to) = (self.entry.from, self.entry.to);
        let has_other_log = logs.contains(from) && logs.contains(to);
        let is_doubtful = !self.has_both_ends() && self.entry.is_doubtful() && has_other_log;
        lanes.contains(&from) && lanes.contains(&to) && !is_doubtful
    }
}

/// Returns the diagram of the messages in log lines; none if there is no message in them.
pub fn diagram(lines: &[Value]) -> Option<String> {
    let mut logs = BTreeSet::new();
    let mut entries = Vec::new();
    let mut comments = Vec::new();
    for (position, line) in lines.iter().enumerate() {
        logs.insert(lane_name(text(line, "component")));
        let entry = LogEntry::read(position, line);
        if text(line, "event_type") == COMMENT {
            comments.extend(entry);
        } else {
            entries.extend(entry);
        }
    }
    entries.sort_by_key(|entry| entry.time);
    let start = entries.first()?.time;

    let lanes = lanes(&entries);
    let mut rows = vec![row("ms", &heads(&lanes), "")];

    // Draw one conversation after the other.
    let mut is_dotted = false;
    while let Some(conversation) = entries.first().map(|entry| entry.conversation) {
        rows.push(row("", &truncate(&sanitize(conversation), 60), ""));
        let (own, others): (Vec<_>, Vec<_>) = entries
            .into_iter()
            .partition(|entry| entry.conversation == conversation);
        entries = others;

        let mut arrows = pair_ends(&own);
        arrows.retain(|arrow| arrow.may_be_drawn(&lanes, &logs));
        arrows.sort_by_key(Arrow::order);
        for arrow in &arrows {
            is_dotted |= !arrow.has_both_ends();
            rows.extend(draw(arrow, &lanes, start));
        }
    }

    // The reasons of players that are played by hand, and the delays of relays.
    for comment in comments {
        let done = format!("{} {}", comment.owner, text(comment.line, "message"));
        let time = comment.time.abs_diff(start).as_millis().to_string();
        rows.push(row(&time, &truncate(&sanitize(&done), MAX_TEXT), ""));
    }

    if is_dotted {
        let note = "dotted: only one end is in a log here; \
            agents on other machines have their logs there";
        rows.push(note.into());
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

/// Returns the lanes: the manager, the referees and the players that have sent a message here by
/// themselves, or were its recipients.
fn lanes<'a>(entries: &[LogEntry<'a>]) -> Vec<&'a str> {
    let mut lanes = vec![MANAGER];
    for entry in entries {
        if entry.event == SENT && !entry.is_doubtful() {
            lanes.extend([entry.from, entry.to]);
        }
    }
    lanes.sort_by_key(|lane| {
        let is_referee = AgentKind::Referee.is_valid_id(lane);
        (*lane != MANAGER, !is_referee, *lane)
    });
    lanes.dedup();
    lanes
}

/// The messages of one type from one agent to another.
#[derive(Default)]
struct Messages<'a> {
    sent: Vec<Arrow<'a>>,
    receipts: Vec<&'a LogEntry<'a>>,
}

/// Brings the two ends of each message together: the first sending and the first receipt, and so
/// on. If fewer were received than sent, those were lost whose delivery has failed.
fn pair_ends<'a>(entries: &'a [LogEntry<'a>]) -> Vec<Arrow<'a>> {
    let mut all = BTreeMap::<_, Messages>::new();
    for entry in entries {
        let key = (entry.from, entry.to, entry.message_type);
        let messages = all.entry(key).or_default();
        match messages.sent.last_mut() {
            _ if entry.is_receipt() => messages.receipts.push(entry),
            Some(arrow) if entry.event == FAILED => arrow.failure = Some(entry),
            _ => messages.sent.push(Arrow::new(entry)),
        }
    }

    let mut arrows = Vec::new();
    for mut messages in all.into_values() {
        let is_complete = messages.receipts.len() >= messages.sent.len();
        let mut receipts = messages.receipts.into_iter();
        for arrow in &mut messages.sent {
            if is_complete || arrow.failure.is_none() {
                arrow.receipt = receipts.next();
            }
        }
        arrows.extend(messages.sent);
        arrows.extend(receipts.map(Arrow::new));
    }
    arrows
}

/// Returns a row of the diagram.
fn row(time: &str, lanes: &str, text: &str) -> String {
    format!("{time:>8}  {lanes}  {text}").trim_end().into()
}

/// Returns the row of an arrow with its label, and below it the reason of a failure.
fn draw(arrow: &Arrow, lanes: &[&str], start: Timestamp) -> Vec<String> {
    let entry = arrow.entry;
    let (from, to) = (column(lanes, entry.from), column(lanes, entry.to));
    let is_to_the_right = from < to;

    // Draw the line from lane to lane, and its tip.
    let empty = format!(
        " |{}",
        format!("{:>LANE_WIDTH$}", "|").repeat(lanes.len() - 1)
    );
    let mut drawn: Vec<char> = empty.chars().collect();
    let dash = if arrow.has_both_ends() { '-' } else { '.' };
    drawn[from.min(to) + 1..from.max(to)].fill(dash);
    let tip = if arrow.failure.is_some() && arrow.receipt.is_none() {
        'x'
    } else if is_to_the_right {
        '>'
    } else {
        '<'
    };
    drawn[if is_to_the_right { to - 1 } else { to + 1 }] = tip;

    // Write the label with the time that the caller has waited.
    let mut label = label(entry);
    let end = arrow.receipt.or(arrow.failure);
    if let Some(ms) = end.and_then(|end| end.line["elapsed_ms"].as_u64()) {
        label += &format!(" ({ms} ms)");
    }
    let time = entry.time.abs_diff(start).as_millis().to_string();
    let mut rows = vec![row(&time, &String::from_iter(drawn), &label)];
    if let Some(failure) = arrow.failure {
        let reason = truncate(&sanitize(text(failure.line, "message")), MAX_TEXT);
        rows.push(row("", &empty, &format!("✗ {reason}")));
        let body = truncate(&sanitize(text(failure.line, "body")), MAX_TEXT);
        if !body.is_empty() {
            rows.push(row("", &empty, &body));
        }
    }
    rows
}

/// Returns the column of a lane.
fn column(lanes: &[&str], name: &str) -> usize {
    let position = lanes.iter().position(|lane| *lane == name);
    1 + LANE_WIDTH * position.unwrap_or(0)
}

/// Returns the type of a message, with the field of it that decides.
fn label(entry: &LogEntry) -> String {
    let message = &entry.line["message"];
    let detail = match entry.message_type {
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
    let label = format!("{} {detail}", entry.message_type);
    truncate(&sanitize(label.trim_end()), MAX_TEXT)
}
