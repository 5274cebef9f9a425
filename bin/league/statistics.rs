//! The statistics of a practice: points per match with their standard error, and whether they are more
//! than luck. Pure.
//!
//! Players are compared with a coin, a player that chooses at random. In Even/Odd a coin chooses the
//! same as its opponent in half of the matches, a draw; in the other half the drawn number decides
//! between them, and it is fair. So a coin gets the same against every player, and every player gets
//! the same against a coin. If a number is drawn, the verdict is about expected points, since the draw
//! is luck. A game by turns has no such coin; its players are compared with the average player.

use crate::expected_points::{Gain, coin_points, gains, pair_values_in};
use crate::tables::columns;
use crate::view::LeagueView;
use league::protocol::AgentKind;
use serde_json::json;
use std::fmt;

/// Minimum number of matches for a verdict.
const MIN_MATCHES: usize = 10;

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
    /// Writes `1.333 ± 0.882`, or a dash if there are no numbers.
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        if self.count == 0 {
            return write!(to, "-");
        }
        write!(to, "{:.3} ± {:.3}", self.mean, self.error)
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

    /// Returns a sentence that says if the difference from another player's points per match is more
    /// than luck.
    pub fn verdict(&self, points: f64, name: &str) -> String {
        if self.count < MIN_MATCHES {
            return "too few matches to say".into();
        }
        let difference = self.mean - points;
        if difference.abs() <= 2.0 * self.error {
            return format!("like {name}: luck alone can do this");
        }

        let adjective = if difference > 0.0 { "better" } else { "worse" };
        if difference.abs() <= 3.0 * self.error {
            return format!("{adjective} than {name}, perhaps by luck: play more cycles");
        }
        format!("{adjective} than {name}, and not by luck")
    }
}

/// The player with whom the others are compared.
struct Reference {
    points: f64,
    name: &'static str,
}

/// Returns the report for a terminal: a row for each player, with its points and the verdict.
pub fn report(view: &LeagueView) -> String {
    let values = pair_values_in(view);
    let mut all_gains = Vec::new();
    for the_match in view.matches() {
        all_gains.extend(gains(the_match, &values));
    }
    let reference = reference(view, &all_gains);

    let Reference { points, name } = reference;
    let mut verdicts = vec![format!("({points:.2} is what {name} gets)")];
    let mut rows = Vec::new();
    for player in &view.agents {
        if player.kind != AgentKind::Player {
            continue;
        }

        // Judge the player by its expected points, or else by its points.
        let mut gains = all_gains.clone();
        gains.retain(|gain| *gain.player == player.id);
        let won = Sample::of(gains.iter().map(|gain| gain.points));
        let expected = Sample::of(gains.iter().filter_map(|gain| gain.expected));

        rows.push(json!([
            player.id,
            player.display_name,
            won.count,
            won.to_string(),
            expected.to_string()
        ]));

        let sample = if values.is_empty() { won } else { expected };
        let verdict = sample.verdict(points, name);
        verdicts.push(match player.technical_losses {
            None | Some(0) => verdict,
            Some(lost) => format!("{verdict}; {lost} lost technically"),
        });
    }

    let heads = "Id,Strategy,Matches,Points per match,Expected points";
    let table = columns(heads, 1, rows.into_iter());
    let mut report = String::new();
    for (row, verdict) in table.lines().zip(verdicts) {
        report += &format!("\n{row}  {verdict}");
    }
    report
}

/// Returns a coin, or the average player in a game without coins.
fn reference(view: &LeagueView, gains: &[Gain]) -> Reference {
    match coin_points(&view.league.game_type, &view.league.scoring) {
        Some(points) => Reference {
            points,
            name: "a coin",
        },
        None => Reference {
            points: Sample::of(gains.iter().map(|gain| gain.points)).mean,
            name: "the average player",
        },
    }
}
