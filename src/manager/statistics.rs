//! What many matches say about players: points per match with their standard error, whom they were won against, and
//! whether it is more than luck. Pure; `practice.rs` brings the matches.
//!
//! The measure is a coin. Whatever the opponent does, a coin chooses the same in half of the matches: a draw; in the
//! other half the drawn number decides between them, and it is fair. So a coin gets `coin(scoring)` points a match
//! against anybody, and anybody gets as much against a coin.

use crate::game::Scoring;

/// A match: its players by seat in the practice, their points, and who lost it technically.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the line above says it")]
pub struct Score {
    pub players: [usize; 2],
    pub points: [i32; 2],
    pub failed: [bool; 2],
}

/// A player of a practice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contestant {
    /// Its id in the league.
    pub id: String,
    /// What it plays.
    pub strategy: String,
    /// How long its choices took, in milliseconds.
    pub answers: Vec<u64>,
}

/// What some numbers have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// How many there are.
    pub count: usize,
    /// Their mean; 0 where there are none.
    pub mean: f64,
    /// The standard error of the mean; unknown below two numbers.
    pub error: Option<f64>,
}

/// Fewer matches than this say nothing.
const FEW: usize = 10;

impl Sample {
    /// Counts, and estimates the error from the numbers themselves.
    pub fn of(numbers: &[i32]) -> Sample {
        let count = numbers.len();
        let mean = numbers.iter().map(|it| f64::from(*it)).sum::<f64>() / count.max(1) as f64;
        let squares: f64 = numbers.iter().map(|it| (f64::from(*it) - mean).powi(2)).sum();
        let error = (count > 1).then(|| (squares / (count - 1) as f64 / count as f64).sqrt());
        Sample { count, mean, error }
    }

    /// Whether the difference from what a coin gets is more than luck, in words.
    pub fn verdict(&self, coin: f64) -> &'static str {
        let (gain, error) = (self.mean - coin, self.error.unwrap_or_default());
        match (self.count < FEW, gain.abs() > 2.0 * error, gain.abs() > 3.0 * error, gain > 0.0) {
            (true, ..) => "too few matches to say",
            (_, false, ..) => "like a coin: luck alone can do this",
            (.., false, true) => "better than a coin, perhaps by luck: play more cycles",
            (.., false, false) => "worse than a coin, perhaps by bad luck: play more cycles",
            (.., true, true) => "better than a coin, and not by luck",
            (.., true, false) => "worse than a coin, and not by bad luck",
        }
    }
}

/// The points per match that a coin gets, whomever it plays.
pub fn coin(scoring: &Scoring) -> f64 {
    let [win, draw, loss] = [scoring.win_points, scoring.draw_points, scoring.loss_points].map(f64::from);
    draw / 2.0 + (win + loss) / 4.0
}

/// The middle one, and the largest; of an even number the lower of the middle two.
pub fn median_and_worst(numbers: &[u64]) -> Option<(u64, u64)> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    Some((sorted[sorted.len().checked_sub(1)? / 2], *sorted.last()?))
}

/// The points of a player in its matches, or in those against one opponent.
fn points_of(player: usize, against: Option<usize>, scores: &[Score]) -> Vec<i32> {
    let of = |score: &Score| {
        let seat = score.players.iter().position(|it| *it == player)?;
        against.is_none_or(|it| it == score.players[1 - seat]).then_some(score.points[seat])
    };
    scores.iter().filter_map(of).collect()
}

/// The whole report, as lines for a terminal.
pub fn report(contestants: &[Contestant], scores: &[Score], scoring: &Scoring) -> Vec<String> {
    let coin = coin(scoring);
    let width = contestants.iter().map(|it| it.strategy.chars().count()).max().unwrap_or(0).max("Strategy".len());
    let start = |it: &Contestant| format!("{:<4}  {:<width$}", it.id, it.strategy);
    let head = |columns: &str| format!("\n{:<4}  {:<width$}  {columns}", "Id", "Strategy");
    let mut lines = vec![head(&format!("Matches  Points per match  ({coin:.2} is what a coin gets)"))];
    for (n, it) in contestants.iter().enumerate() {
        let sample = Sample::of(&points_of(n, None, scores));
        let error = sample.error.map_or("    ?".into(), |error| format!("{error:.3}"));
        let Sample { count, mean, .. } = sample;
        lines.push(format!("{}  {count:>7}     {mean:>5.3} ± {error}  {}", start(it), sample.verdict(coin)));
    }
    let ids: String = contestants.iter().map(|it| format!("{:>6}", it.id)).collect();
    lines.push(head(&format!("Points per match against\n{:<4}  {:<width$}  {ids}", "", "")));
    for (n, it) in contestants.iter().enumerate() {
        let cell = |other: usize| match points_of(n, Some(other), scores) {
            points if points.is_empty() => format!("{:>6}", "-"),
            points => format!("{:>6.2}", Sample::of(&points).mean),
        };
        lines.push(format!("{}  {}", start(it), (0..contestants.len()).map(cell).collect::<String>()));
    }
    lines.push(head("Technical losses  Answers in ms: median  worst"));
    for (n, it) in contestants.iter().enumerate() {
        let failed = |score: &&Score| (0..2).any(|seat| score.players[seat] == n && score.failed[seat]);
        let (median, worst) = median_and_worst(&it.answers)
            .map_or(("-".into(), "-".into()), |(median, worst)| (median.to_string(), worst.to_string()));
        let lost = scores.iter().filter(failed).count();
        lines.push(format!("{}  {lost:>16}  {median:>21}  {worst:>5}", start(it)));
    }
    lines
}
