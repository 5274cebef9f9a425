//! What many matches say about players: points per match with their standard error, and whether it
//! is more than luck. Pure; `local.rs` knows where the matches are from.
//!
//! The measure is a coin: somebody who chooses at random. In Even/Odd a coin chooses, whatever the
//! opponent does, the same in half of the matches, a draw; in the other half the drawn number
//! decides between them, and it is fair. So a coin gets as much against anybody, and anybody gets
//! as much against a coin. Where a number is drawn, the verdict goes by what the choices were worth
//! before it was: the draw is luck. In a game by turns there is no such coin; there the measure is
//! what all players got on average.

use crate::columns::columns;
use crate::figures::{Gain, gains, worth_in};
use crate::view::LeagueView;
use crate::worth;
use league::protocol::AgentKind;
use serde_json::json;
use std::fmt;

/// What some numbers have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// How many there are.
    pub count: usize,
    /// Their mean; 0 where there are none.
    pub mean: f64,
    /// The standard error of the mean; without a limit below two numbers.
    pub error: f64,
}

impl fmt::Display for Sample {
    /// `1.333 ± 0.882`, and a dash where there are no numbers.
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        if self.count == 0 {
            return write!(to, "-");
        }
        write!(to, "{:.3} ± {:.3}", self.mean, self.error)
    }
}

/// Fewer matches than this say nothing.
const FEW: usize = 10;

impl Sample {
    /// Counts, and estimates the error from the numbers themselves.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Sample {
        let numbers: Vec<f64> = numbers.into_iter().collect();
        let count = numbers.len();
        let mean = numbers.iter().sum::<f64>() / count.max(1) as f64;
        let squares: f64 = numbers.iter().map(|it| (it - mean).powi(2)).sum();
        let error = match count {
            0 | 1 => f64::INFINITY,
            _ => (squares / (count - 1) as f64 / count as f64).sqrt(),
        };
        Sample { count, mean, error }
    }

    /// Whether the difference from somebody who gets so many points a match is more than luck, in
    /// words.
    pub fn verdict(&self, points: f64, name: &str) -> String {
        let (gain, error) = (self.mean - points, self.error);
        if self.count < FEW {
            return "too few matches to say".into();
        }
        if gain.abs() <= 2.0 * error {
            return format!("like {name}: luck alone can do this");
        }
        let what = if gain > 0.0 { "better" } else { "worse" };
        if gain.abs() <= 3.0 * error {
            return format!("{what} than {name}, perhaps by luck: play more cycles");
        }
        format!("{what} than {name}, and not by luck")
    }
}

/// The whole report, for a terminal: what everybody won, and whether that is more than luck. Where
/// a number is drawn, players are judged by what their choices were worth, else by their points.
pub fn report(view: &LeagueView) -> String {
    let worth = worth_in(view);
    let matches = view.matches();
    let gains: Vec<Gain> = matches.flat_map(|game| gains(game, &worth)).collect();
    let (measure, name) = measure(view, &gains);
    let mut rows = Vec::new();
    let mut verdicts = vec![format!("({measure:.2} is what {name} gets)")];
    for player in view.agents.iter().filter(|it| it.kind == AgentKind::Player) {
        let own = || gains.iter().filter(|gain| *gain.player == player.id);
        let won = Sample::of(own().map(|gain| gain.points));
        let expected = Sample::of(own().filter_map(|gain| gain.expected));
        rows.push(json!([
            player.id,
            player.display_name,
            won.count,
            won.to_string(),
            expected.to_string()
        ]));
        let judged = if worth.is_empty() { won } else { expected };
        let verdict = judged.verdict(measure, name);
        verdicts.push(match player.technical_losses {
            None | Some(0) => verdict,
            Some(lost) => format!("{verdict}; {lost} lost technically"),
        });
    }
    let heads = "Id,Strategy,Matches,Points per match,Expected points";
    let table = columns(heads, 1, rows.into_iter());
    let lines = table.lines().zip(verdicts);
    let said = lines.map(|(row, verdict)| format!("\n{row}  {verdict}"));
    said.collect()
}

/// What the players are measured by, in points and in words: a coin, or where there is none, all of
/// them together.
fn measure(view: &LeagueView, gains: &[Gain]) -> (f64, &'static str) {
    match worth::coin(&view.league.game_type, &view.league.scoring) {
        Some(points) => (points, "a coin"),
        None => {
            let average = Sample::of(gains.iter().map(|gain| gain.points)).mean;
            (average, "the average player")
        }
    }
}
