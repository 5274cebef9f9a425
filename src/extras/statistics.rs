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

/// The players of a practice, as its tables show them.
struct Rows<'a> {
    league: &'a League,
    players: Vec<&'a Member>,
    names: Vec<String>,
    /// How many columns the names take.
    widest: usize,
}

impl Rows<'_> {
    fn line(&self, id: &str, name: &str, columns: &str) -> String {
        format!("{id:<4}  {}  {columns}", pad(name, self.widest))
    }

    /// A table: a head, and a row for each player.
    fn table(&self, head: &str, columns: impl Fn(&Member) -> String) -> Vec<String> {
        let mut lines = vec![format!("\n{}", self.line("Id", "Strategy", head))];
        for (player, name) in self.players.iter().zip(&self.names) {
            lines.push(self.line(&player.id, name, &columns(player)));
        }
        lines
    }

    /// What everybody won, and whether that is more than luck.
    fn won(&self) -> Vec<String> {
        let coin = coin(&self.league.rules.scoring);
        let head = format!("Matches  Points per match  ({coin:.2} is what a coin gets)");
        self.table(&head, |player| {
            let sample = points(self.league, player, None);
            let Sample { count, mean, error } = sample;
            let error = error.map_or("    ?".into(), |error| format!("{error:.3}"));
            let verdict = sample.verdict(coin);
            format!("{count:>7}     {mean:>5.3} ± {error}  {verdict}")
        })
    }

    /// What everybody won against these opponents.
    fn against(&self, opponents: &[&Member]) -> Vec<String> {
        let ids: String = opponents.iter().map(|it| format!("{:>6}", it.id)).collect();
        let ids = self.line("", "", &ids);
        let cell = |player: &Member, other: &Member| match points(self.league, player, Some(other))
        {
            Sample { count: 0, .. } => format!("{:>6}", "-"),
            sample => format!("{:>6.2}", sample.mean),
        };
        self.table(&format!("Points per match against\n{ids}"), |player| {
            opponents.iter().map(|other| cell(player, other)).collect()
        })
    }

    /// Who lost technically, and how long everybody thought.
    fn answered(&self, answers: &[(String, u64)]) -> Vec<String> {
        self.table("Technical losses  Answers in ms: median  worst", |player| {
            let own = answers.iter().filter(|(peer, _)| *peer == player.id);
            let own = own.map(|(_, elapsed)| *elapsed).collect();
            let (median, worst) = match median_and_worst(own) {
                Some((median, worst)) => (median.to_string(), worst.to_string()),
                None => ("-".into(), "-".into()),
            };
            let lost = self.league.stats(player).technical_losses;
            format!("{lost:>16}  {median:>21}  {worst:>5}")
        })
    }
}

/// The whole report, as lines for a terminal. `answers`: who has answered, after how many milliseconds.
pub fn report(league: &League, answers: &[(String, u64)]) -> Vec<String> {
    let players = league.members(Kind::Player);
    let names: Vec<String> = players.iter().map(|it| shown(&it.display_name)).collect();
    let widths = names.iter().map(|name| width(name));
    let widest = widths.max().unwrap_or(0).max("Strategy".len());
    let rows = Rows {
        league,
        players,
        names,
        widest,
    };
    let mut lines = rows.won();
    for opponents in rows.players.chunks(COLUMNS) {
        lines.extend(rows.against(opponents));
    }
    lines.extend(rows.answered(answers));
    lines
}
