//! What many matches say about players: points per match with their standard error, whom they were won against, and
//! whether it is more than luck. Pure; `practice.rs` knows where the matches are from.
//!
//! The measure is a coin. Whatever the opponent does, a coin chooses the same in half of the matches: a draw; in the
//! other half the drawn number decides between them, and it is fair. So a coin gets `coin(scoring)` points a match
//! against anybody, and anybody gets as much against a coin.

use crate::extras::columns::{pad, width};
use crate::games::Scoring;
use crate::manager::league::{League, Match, Member};
use crate::manager::standings;
use crate::program::terminal::shown;
use crate::protocol::Kind;

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
/// So many opponents stand beside each other: a terminal is no wider.
const COLUMNS: usize = 12;

impl Sample {
    /// Counts, and estimates the error from the numbers themselves.
    pub fn of(numbers: &[i32]) -> Sample {
        let count = numbers.len();
        let mean = numbers.iter().map(|it| f64::from(*it)).sum::<f64>() / count.max(1) as f64;
        let squares: f64 = numbers
            .iter()
            .map(|it| (f64::from(*it) - mean).powi(2))
            .sum();
        let error = (count > 1).then(|| (squares / (count - 1) as f64 / count as f64).sqrt());
        Sample { count, mean, error }
    }

    /// Whether the difference from what a coin gets is more than luck, in words.
    pub fn verdict(&self, coin: f64) -> &'static str {
        let (gain, error) = (self.mean - coin, self.error.unwrap_or_default());
        match (
            self.count < FEW,
            gain.abs() > 2.0 * error,
            gain.abs() > 3.0 * error,
            gain > 0.0,
        ) {
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
    let [win, draw, loss] =
        [scoring.win_points, scoring.draw_points, scoring.loss_points].map(f64::from);
    draw / 2.0 + (win + loss) / 4.0
}

/// The middle one, and the largest; of an even number the lower of the middle two.
pub fn median_and_worst(mut numbers: Vec<u64>) -> Option<(u64, u64)> {
    numbers.sort_unstable();
    Some((numbers[numbers.len().checked_sub(1)? / 2], *numbers.last()?))
}

/// What a player's matches gave it; all, or those against one opponent.
fn points(league: &League, player: &Member, against: Option<&Member>) -> Sample {
    let with = |game: &&Match| against.is_none_or(|it| game.opponent(&player.id) == it.id);
    let of = |game: &Match| {
        let result = &game.recorded.as_ref()?.result;
        Some(
            standings::points(&game.players, result, &league.rules.scoring)
                [game.seat(&player.id)?],
        )
    };
    Sample::of(
        &league
            .games(&player.id)
            .filter(with)
            .filter_map(of)
            .collect::<Vec<i32>>(),
    )
}

/// The whole report, as lines for a terminal. `answers`: who has answered, after how many milliseconds.
pub fn report(league: &League, answers: &[(String, u64)]) -> Vec<String> {
    let (players, coin) = (league.members(Kind::Player), coin(&league.rules.scoring));
    let names: Vec<String> = players.iter().map(|it| shown(&it.display_name)).collect();
    let widest = names
        .iter()
        .map(|name| width(name))
        .max()
        .unwrap_or(0)
        .max("Strategy".len());
    let line =
        |id: &str, name: &str, columns: &str| format!("{id:<4}  {}  {columns}", pad(name, widest));
    let table = |head: &str, columns: &dyn Fn(&Member) -> String| -> Vec<String> {
        let rows = players
            .iter()
            .zip(&names)
            .map(|(it, name)| line(&it.id, name, &columns(it)));
        std::iter::once(format!("\n{}", line("Id", "Strategy", head)))
            .chain(rows)
            .collect()
    };
    let won = |it: &Member| {
        let sample = points(league, it, None);
        let error = sample
            .error
            .map_or("    ?".into(), |error| format!("{error:.3}"));
        format!(
            "{:>7}     {:>5.3} ± {error}  {}",
            sample.count,
            sample.mean,
            sample.verdict(coin)
        )
    };
    let mut lines = table(
        &format!("Matches  Points per match  ({coin:.2} is what a coin gets)"),
        &won,
    );
    for opponents in players.chunks(COLUMNS) {
        let ids: String = opponents.iter().map(|it| format!("{:>6}", it.id)).collect();
        let cell = |it: &Member, other: &Member| match points(league, it, Some(other)) {
            Sample { count: 0, .. } => format!("{:>6}", "-"),
            sample => format!("{:>6.2}", sample.mean),
        };
        let cells = |it: &Member| {
            opponents
                .iter()
                .map(|other| cell(it, other))
                .collect::<String>()
        };
        lines.extend(table(
            &format!("Points per match against\n{}", line("", "", &ids)),
            &cells,
        ));
    }
    lines.extend(table(
        "Technical losses  Answers in ms: median  worst",
        &|it| {
            let own = answers
                .iter()
                .filter(|(peer, _)| *peer == it.id)
                .map(|(_, elapsed)| *elapsed);
            let (median, worst) = median_and_worst(own.collect())
                .map_or(("-".into(), "-".into()), |(median, worst)| {
                    (median.to_string(), worst.to_string())
                });
            format!(
                "{:>16}  {median:>21}  {worst:>5}",
                league.stats(it).technical_losses
            )
        },
    ));
    lines
}
