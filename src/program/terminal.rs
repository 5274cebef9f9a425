//! Output on the user's terminal. Names may be in any script, so a text in a column is measured by
//! its width on the screen.

use crate::protocol::{
    DEFAULTED_FIELDS, ErrorCode, GameError, GameOver, GameResult, LeagueError, ProtocolError,
    ResultStatus,
};
use crate::values::{MAX_QUOTED_CHARS, clock, peer_text, redact_tokens, truncate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Write, stderr, stdout};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Maximum length of an id or a name.
pub const MAX_NAME: usize = 60;
/// Maximum number of lines of unknown agents in `REPEAT_INTERVAL`.
const MAX_LINES: usize = 20;
/// Minimum time until the same line is printed again.
const REPEAT_INTERVAL: Duration = Duration::from_secs(120);

/// Returns a text of another program as it can be shown: without tokens, and without characters
/// that move the cursor or turn the text around.
pub fn sanitize(text: &str) -> String {
    redact_tokens(text).replace(is_unsafe, "\u{fffd}")
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
}

/// Prints a line on standard output. A terminal that is closed is no error.
pub fn print_line(text: &str) {
    let _ = stdout().write_all(format!("{text}\n").as_bytes());
}

/// Prints a line on standard error, for a problem that the user can solve.
pub fn print_error(text: &str) {
    if !clock::is_simulated() {
        let _ = stderr().write_all(format!("{}\n", sanitize(text)).as_bytes());
    }
}

/// Standard output of a program that may be quiet.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terminal {
    /// True if nothing is printed.
    pub quiet: bool,
}

impl Terminal {
    /// Prints a line, unless the program is quiet.
    pub fn print_line(&self, text: &str) {
        if !self.quiet {
            print_line(text);
        }
    }
}

/// Limits the lines that unknown agents cause: many may register at the same moment, and one may
/// try again every second.
#[derive(Debug, Default)]
pub struct LineLimit {
    /// The lines of the last minutes, with the time at which they were printed.
    printed: BTreeMap<String, Instant>,
}

impl LineLimit {
    /// Returns true if a line may be printed now, and counts it.
    pub fn allow(&mut self, line: &str, now: Instant) -> bool {
        self.printed
            .retain(|_, time| now.duration_since(*time) < REPEAT_INTERVAL);
        if self.printed.len() >= MAX_LINES || self.printed.contains_key(line) {
            return false;
        }

        self.printed.insert(line.into(), now);
        true
    }
}

/// Returns the number of columns that a text takes on the screen.
pub fn width(text: &str) -> usize {
    let double = text.chars().filter(|c| is_double(*c));
    text.chars().count() + double.count()
}

/// Returns true for a character of two columns, such as those of Chinese and Japanese.
fn is_double(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{ff01}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..)
}

/// Returns a text with spaces behind it, that many columns wide.
pub fn pad(text: &str, columns: usize) -> String {
    text.to_string() + &" ".repeat(columns.saturating_sub(width(text)))
}

/// Returns a number with its noun: `1 point`, `2 points`.
pub fn plural(number: impl Into<i64>, noun: &str) -> String {
    match number.into() {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Describes the result of a match: `Ada (even) beat Bob (odd): the number was 8`. Where no number
/// was drawn, the reason stands in its place; if a player has failed, it comes first: `Bob gave no
/// answer within 30 s, so Ada won`.
pub fn describe_result(
    result: &GameResult,
    players: &[String; 2],
    name: impl Fn(&str) -> String,
) -> String {
    let mut players = players.each_ref();
    if result.winner_player_id.as_ref() == Some(players[1]) {
        players.reverse();
    }

    // The reason ends with the winner, who stands in the sentence already.
    let reason = result.reason.as_deref().unwrap_or("no reason is known");
    let (how, _) = reason.rsplit_once(" - ").unwrap_or((reason, ""));
    let how = match result.drawn_number {
        Some(number) => format!("the number was {number}"),
        None => replace_ids(&sanitize(how), players, &name),
    };

    let [first, second] = players.map(|id| match result.choices.get(id) {
        Some(Some(choice)) => format!("{} ({choice})", name(id)),
        _ => name(id),
    });
    match (result.status, &result.winner_player_id) {
        (ResultStatus::Draw, _) => format!("{first} and {second} drew: {how}"),
        (ResultStatus::Win, _) => format!("{first} beat {second}: {how}"),
        (ResultStatus::TechnicalLoss, Some(_)) => format!("{how}, so {first} won"),
        (ResultStatus::TechnicalLoss, None) => format!("{how}, so nobody won"),
    }
}

/// Replaces the ids of players by their names, except in quoted texts.
fn replace_ids(text: &str, ids: [&String; 2], name: impl Fn(&str) -> String) -> String {
    let mut replaced = String::new();
    let mut is_quoted = false;
    for part in text.split_inclusive('"') {
        let mut named = part.to_string();
        if !is_quoted {
            for id in ids {
                named = named.replacen(id.as_str(), &name(id), 1);
            }
        }
        replaced += &named;
        is_quoted ^= part.ends_with('"') && !part.ends_with("\\\"");
    }
    replaced
}

/// Describes a message that was refused. A message that only informs is shown even if it is faulty,
/// without its envelope.
pub fn describe_refusal(packet: &Value, peer: IpAddr, refusal: &ProtocolError) -> String {
    let field =
        |key: &str, default: &str| truncate(packet[key].as_str().unwrap_or(default), MAX_NAME);
    let message_type = field("message_type", "a message");
    let mut text = format!("refused {message_type}");
    if packet["match_id"].is_string() {
        text += &format!(" of {}", field("match_id", ""));
    }
    let reason = truncate(&refusal.to_string(), MAX_QUOTED_CHARS);
    text += &format!(
        " from {} at {}: {reason}",
        field("sender", "an unknown agent"),
        peer_text(peer)
    );

    let has_invalid_field = matches!(
        refusal.code,
        ErrorCode::MissingField | ErrorCode::InvalidTimestamp
    );
    if has_invalid_field
        && [GameOver::NAME, GameError::NAME, LeagueError::NAME].contains(&&*message_type)
        && let Some(fields) = packet.as_object()
    {
        let mut body = fields.clone();
        body.retain(|name, _| !DEFAULTED_FIELDS.contains(&name.as_str()) && name != "auth_token");
        let body = Value::Object(body).to_string();
        text += &format!("; it says {}", truncate(&body, 4 * MAX_QUOTED_CHARS));
    }
    sanitize(&text)
}
