//! What a player prints: the results of its matches, and problems, each in one sentence that its
//! author can act on. Texts of others are cut, and tokens and control characters in them replaced.

use crate::program::terminal::{MAX_NAME, describe_result, plural, sanitize};
use crate::protocol::{ErrorCode, GameError, GameResult, LeagueCompleted};
use crate::values::{MAX_QUOTED_CHARS, truncate};

/// Returns a line about a match.
pub fn about_match(match_id: &str, text: &str) -> String {
    sanitize(&format!("{}: {text}", truncate(match_id, MAX_NAME)))
}

/// Describes the result of a match, with the name of the opponent.
pub fn result(result: &GameResult, own_id: &str, opponent_id: &str, opponent: &str) -> String {
    let players = [own_id.into(), opponent_id.into()];
    describe_result(result, &players, |id| {
        let name = if id == own_id { "you" } else { opponent };
        truncate(name, MAX_NAME)
    })
}

/// Describes a GAME_ERROR: what was wrong, what is expected, and the consequence.
pub fn game_error(error: &GameError) -> String {
    let mut text = truncate(&error.explain(), MAX_QUOTED_CHARS);
    if let Some(retry) = &error.retry_info {
        text += &format!("; attempt {} of {}", retry.retry_count, retry.max_retries);
    }

    let expected = format!("expected {}", truncate(&error.action_required, MAX_NAME));
    if !text.contains(&expected) {
        text += &format!("; {expected}");
    }

    if let Some(consequence) = &error.consequence {
        text += &format!("; {}", truncate(consequence, MAX_QUOTED_CHARS));
    }
    if error.error_code == ErrorCode::Timeout && error.action_required.starts_with("CHOOSE") {
        text += "; does choose loop or sleep, wait for input or a lock, or is this machine busy?";
    }
    about_match(&error.match_id, &text)
}

/// Describes the end of the league: the champion, the players with as many points, and our rank.
pub fn league_over(player_id: &str, league: &LeagueCompleted) -> String {
    let champion = &league.champion;
    let mut text = format!(
        "Champion: {} with {}",
        with_id(&champion.display_name, &champion.player_id),
        plural(champion.points, "point")
    );

    let rows = &league.final_standings;
    let mut link = ", as many as";
    for row in rows {
        if row.points == champion.points && row.player_id != champion.player_id {
            let name = row.display_name.as_ref().unwrap_or(&row.player_id);
            text += &format!("{link} {}", with_id(name, &row.player_id));
            link = " and";
        }
    }

    let all_points: Vec<i32> = rows.iter().map(|row| row.points).collect();
    if let Some(row) = rows.iter().find(|row| row.player_id == player_id) {
        text += &format!("; you are {}", place(row.rank, row.points, &all_points));
    }
    sanitize(&text)
}

fn with_id(name: &str, id: &str) -> String {
    format!("{} ({})", truncate(name, MAX_NAME), truncate(id, MAX_NAME))
}

/// Returns a player's place among the points of all players: `2 of 4 with 3 points, as many as
/// another player`.
pub fn place(rank: u32, points: i32, all_points: &[i32]) -> String {
    let equal = all_points.iter().filter(|other| **other == points).count();
    let tie = match equal {
        0 | 1 => "",
        _ => ", as many as another player",
    };
    let (players, points) = (all_points.len(), plural(points, "point"));
    format!("{rank} of {players} with {points}{tie}")
}
