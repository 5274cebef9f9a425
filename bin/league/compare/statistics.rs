//! The statistics of a practice: points per match with their standard error, and whether they are
//! more than luck. Pure.
//!
//! Players are compared with a coin, a player that chooses at random. In Even/Odd a coin chooses
//! the same as its opponent in half of the matches, a draw; in the other half the drawn number
//! decides between them, and it is fair. So a coin gets the same against every player, and every
//! player gets the same against a coin. The rivals of a user's own players are not compared: they
//! also meet each other, in matches that no other player has. If a number is drawn, the verdict is
//! about expected points, since the draw is luck. A game by turns has no such coin; its players are
//! compared with the average player.

use crate::show::expected_points::{Gain, coin_points, gains, pair_values_in};
use crate::show::tables::columns;
use crate::show::view::{AgentView, LeagueView};
use league::program::terminal::sanitize;
use league::protocol::{AgentKind, ResultStatus};
use league::values::truncate;
use serde_json::json;
use std::fmt;

/// Minimum number of matches for a comparison.
const MIN_MATCHES: usize = 10;
/// Maximum number of characters of a name.
const MAX_NAME: usize = 17;

/// The mean of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub count: usize,
    /// The mean; 0 if there are no numbers.
    pub mean: f64,
    /// The standard error of the mean; infinite below two numbers.
    pub error: f64,
}

impl fmt::Display for Sample {
    /// Writes `1.333 ± 0.882`; one number without an error, and none as a dash.
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self.count {
            0 => write!(to, "-"),
            1 => write!(to, "{:.3}", self.mean),
            _ => write!(to, "{:.3} ± {:.3}", self.mean, self.error),
        }
    }
}

impl Sample {
    /// Returns the mean of some numbers, with the error that is estimated from the numbers.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Sample {
        let numbers: Vec<f64> = numbers.into_iter().collect();
        let count = numbers.len();
        let mean = numbers.iter().sum::<f64>() / count.max(1) as f64;
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        let error = match count {
            0 | 1 => f64::INFINITY,
            _ => (squares / (count - 1) as f64 / count as f64).sqrt(),
        };
        Sample { count, mean, error }
    }

    /// Compares the mean with another player's points per match. With "?" the difference may be
    /// luck.
    pub fn grade(&self, points: f64) -> &'static str {
        let difference = self.mean - points;
        let is_clear = difference.abs() > 3.0 * self.error;
        if self.count < MIN_MATCHES {
            "too few"
        } else if difference.abs() <= 2.0 * self.error {
            "the same"
        } else if difference > 0.0 {
            if is_clear { "better" } else { "better?" }
        } else if is_clear {
            "worse"
        } else {
            "worse?"
        }
    }
}

/// A row of the report: a player, or one of its rivals.
struct Row {
    id: String,
    name: String,
    matches: usize,
    /// The player's expected points a match, or else its points.
    sample: Sample,
}

/// Returns the report for a terminal: a row for each player, best first, with its points and their
/// error. If the user's own players are named, only they have rows; a single
/// one has another row for each of its rivals.
pub fn report(view: &LeagueView, own_names: &[String]) -> String {
    let values = pair_values_in(view);
    let mut all_gains = Vec::new();
    for the_match in view.matches() {
        all_gains.extend(gains(the_match, &values));
    }

    let (name, points) = reference(view, &all_gains);
    let has_draws = !values.is_empty();
    let mut players: Vec<&AgentView> = view.agents.iter().collect();
    players.retain(|agent| agent.kind == AgentKind::Player);
    let rows = rows(&players, &all_gains, has_draws, own_names);

    let cells = rows
        .iter()
        .map(|row| json!([row.id, row.name, row.matches, row.sample.to_string()]));
    let head = if has_draws {
        "Id,Player,Matches,Expected points"
    } else {
        "Id,Player,Matches,Points per match"
    };
    let table = columns(head, 1, cells);

    // Write the grade at the end of each row.
    let mut lines = table.lines();
    let mut report = format!("\n{}", lines.next().unwrap_or_default());
    for (line, row) in lines.zip(&rows) {
        report += &format!("\n{line}  {}", row.sample.grade(points));
    }

    report
        + &format!("\n\ncompared with {name}, which gets {points:.2}")
        + "\nbetter, worse: by more than three times its ±; with \"?\": two to three times\n\
            the same: by less, which may be luck; too few: below 10 matches"
}

/// Returns how many matches were played to their end.
pub fn completeness(view: &LeagueView) -> String {
    let over: Vec<ResultStatus> = view.matches().filter_map(|one| one.ending).collect();
    let lost = over
        .iter()
        .filter(|end| **end == ResultStatus::TechnicalLoss);
    let (all, played) = (over.len(), over.len() - lost.count());
    format!("{played} of {all} matches were played to their end")
}

/// Returns the rows: judged by expected points if a number is drawn, or else by points.
fn rows(players: &[&AgentView], gains: &[Gain], has_draws: bool, own_names: &[String]) -> Vec<Row> {
    // Without own players, or without rivals, all are compared in all their matches.
    let mut own = players.to_vec();
    own.retain(|player| own_names.contains(&player.display_name));
    let mut rivals = players.to_vec();
    rivals.retain(|player| !own_names.contains(&player.display_name));
    if own.is_empty() || rivals.is_empty() {
        own = players.to_vec();
        rivals = players.to_vec();
    }

    let mut rows = Vec::new();
    for player in &own {
        rows.push(row(shown_name(player), player, &rivals, gains, has_draws));
    }

    rows.sort_by(|one, other| other.sample.mean.total_cmp(&one.sample.mean));

    if let [player] = own[..] {
        for rival in rivals {
            let name = format!("against {}", shown_name(rival));
            let name = truncate(&name, MAX_NAME);
            let id = String::new();
            rows.push(Row {
                id,
                ..row(name, player, &[rival], gains, has_draws)
            });
        }
    }

    rows
}

/// Returns the row for the matches of a player against these rivals.
fn row(
    name: String,
    player: &AgentView,
    rivals: &[&AgentView],
    gains: &[Gain],
    has_draws: bool,
) -> Row {
    let mut matches = 0;
    let mut samples = Vec::new();
    for gain in gains.iter().filter(|gain| *gain.player == player.id) {
        if rivals.iter().any(|rival| rival.id == *gain.opponent) {
            matches += 1;
            // A technical loss counts its points. To win by one shows nothing.
            let counts_points = !has_draws || gain.points <= 0.0;
            let points = counts_points.then_some(gain.points);
            samples.extend(gain.expected.or(points));
        }
    }

    let id = player.id.clone();
    Row {
        id,
        name,
        matches,
        sample: Sample::of(samples),
    }
}

/// Returns a player's name as it is shown in a table.
pub fn shown_name(player: &AgentView) -> String {
    truncate(&sanitize(&player.display_name), MAX_NAME)
}

/// Returns the player with whom the others are compared, and its points: a coin, or the average
/// player in a game without coins.
fn reference(view: &LeagueView, gains: &[Gain]) -> (&'static str, f64) {
    match coin_points(&view.league.game_type, &view.league.scoring) {
        Some(points) => ("a coin", points),
        None => {
            let mean = Sample::of(gains.iter().map(|gain| gain.points)).mean;
            ("the average player", mean)
        }
    }
}
