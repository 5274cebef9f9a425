//! What a player's own terminal shows: how its matches ended, and whatever goes wrong, in one sentence that its author
//! can act on. Others' words are cut, and no token is named. Pure; `player.rs` says when.

use crate::net::retry::SHOWN;
use crate::program::terminal::{counted, shown};
use crate::protocol::{Champion, GameError, LeagueCompleted, Packet, Refusal};
use crate::wire::cut;
use serde_json::Value;
use std::net::IpAddr;

/// How many characters of an id or a name are shown.
const NAME: usize = 60;

/// About a match: fit for a terminal, whoever wrote the words.
pub fn about(match_id: &str, words: &str) -> String {
    shown(&format!("{}: {words}", cut(match_id, NAME)))
}

/// What a referee says went wrong, what is asked of us now, and what follows.
pub fn error(error: &GameError) -> String {
    let mut words = cut(&error.explain(), SHOWN);
    if let Some(retry) = &error.retry_info {
        words += &format!("; attempt {} of {}", retry.retry_count, retry.max_retries);
        words += &match (retry.next_retry_at, retry.time_remaining) {
            (Some(next), _) => format!(", asked again at {next}"),
            (None, Some(left)) if left > 0.0 => format!(", asked again, {left} s are left"),
            _ => ", the last".into(),
        };
    }
    let expected = format!("expected {}", cut(&error.action_required, NAME));
    if !words.contains(&expected) {
        words += &format!("; {expected}");
    }
    if let Some(consequence) = &error.consequence {
        words += &format!("; {}", cut(consequence, SHOWN));
    }
    about(&error.match_id, &words)
}

/// What we refuse, from whom, and why.
pub fn refusal(packet: &Packet, peer: IpAddr, refusal: &Refusal) -> String {
    let text = |key: &str| {
        packet
            .get(key)
            .and_then(Value::as_str)
            .map(|text| cut(text, NAME))
    };
    let of_match = text("match_id").map_or(String::new(), |match_id| format!(" of {match_id}"));
    let what = text("message_type").unwrap_or("a message".into());
    let from = text("sender").unwrap_or("somebody".into());
    let why = cut(&refusal.to_string(), SHOWN);
    shown(&format!(
        "refused {what}{of_match} from {from} at {peer}: {why}"
    ))
}

/// Who won the league, and where we are.
pub fn end(player_id: &str, league: &LeagueCompleted) -> String {
    let Champion {
        player_id: champion,
        display_name,
        points,
    } = &league.champion;
    let (name, id, points) = (
        cut(display_name, NAME),
        cut(champion, NAME),
        counted(*points, "point"),
    );
    let ours = league
        .final_standings
        .iter()
        .find(|row| row.player_id == player_id);
    let rank = ours.map(|row| {
        format!(
            "; {player_id} is {} of {}",
            row.rank,
            league.final_standings.len()
        )
    });
    shown(&format!(
        "Champion: {name} ({id}) with {points}{}",
        rank.unwrap_or_default()
    ))
}
