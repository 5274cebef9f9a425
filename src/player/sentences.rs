//! What a player's own terminal shows: how its matches ended, and whatever goes wrong, each in one
//! sentence that the author of the player can act on.
//!
//! The words of others are cut, tokens in them are masked, and nothing in them moves the cursor.
//! Pure; `player.rs` and `handlers.rs` say when something is shown. Read next: `invitations.rs`.

use crate::net::retry::SHOWN;
use crate::program::terminal::{counted, shown};
use crate::protocol::{Code, GameError, GameOver, LeagueCompleted, LeagueError, Refusal};
use crate::wire::cut;
use serde_json::Value;
use std::net::IpAddr;

/// How many characters of an id or a name are shown.
const NAME: usize = 60;

/// Words about a match.
pub fn about(match_id: &str, words: &str) -> String {
    shown(&format!("{}: {words}", cut(match_id, NAME)))
}

/// What a referee says went wrong, what is asked of us now, and what follows.
pub fn error(error: &GameError) -> String {
    let mut words = cut(&error.explain(), SHOWN);
    if let Some(retry) = &error.retry_info {
        words += &format!("; attempt {} of {}", retry.retry_count, retry.max_retries);
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

/// What the league manager says went wrong.
pub fn league_error(error: &LeagueError) -> String {
    about("the league manager says", &cut(&error.explain(), SHOWN))
}

/// What we refuse, from whom, and why. What only informs is shown all the same, where it was
/// refused for a fault.
pub fn refusal(packet: &Value, peer: IpAddr, refusal: &Refusal) -> String {
    let text = |key: &str| packet[key].as_str().map(|text| cut(text, NAME));
    let what = text("message_type").unwrap_or("a message".into());
    let of_match = text("match_id").map_or(String::new(), |match_id| format!(" of {match_id}"));
    let from = text("sender").unwrap_or("somebody".into());
    let why = cut(&refusal.to_string(), SHOWN);
    let mut words = format!("refused {what}{of_match} from {from} at {peer}: {why}");
    let informs = [GameOver::NAME, GameError::NAME, LeagueError::NAME].contains(&&*what);
    if informs && matches!(refusal.code, Code::E003 | Code::E021) {
        words += &format!("; it says {}", cut(&packet.to_string(), 4 * SHOWN));
    }
    shown(&words)
}

/// Who won the league, and where we are.
pub fn end(player_id: &str, league: &LeagueCompleted) -> String {
    let champion = &league.champion;
    let name = cut(&champion.display_name, NAME);
    let id = cut(&champion.player_id, NAME);
    let points = counted(champion.points, "point");
    let table = &league.final_standings;
    let ours = table.iter().find(|row| row.player_id == player_id);
    let rank = ours.map_or(String::new(), |row| {
        format!("; {player_id} is {} of {}", row.rank, table.len())
    });
    shown(&format!("Champion: {name} ({id}) with {points}{rank}"))
}
