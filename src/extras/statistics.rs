//! What many matches say about players: points per match with their standard error, whom they were won against, and
//! whether it is more than luck. Pure; `practice.rs` knows where the matches are from.
//!
//! The measure is a coin: somebody who chooses at random. In Even/Odd a coin chooses, whatever the opponent does, the same
//! in half of the matches, a draw; in the other half the drawn number decides between them, and it is fair. So a coin gets
//! as much against anybody, and anybody gets as much against a coin. Where a number is drawn, the verdict goes by what the
//! choices were worth before it was: the draw is luck. In a game by turns there is no such coin; there the measure is
//! what all players got on average.

use crate::extras::columns::{pad, width};
use crate::extras::worth;
use crate::games::{self, Game};
use crate::manager::league::{League, Match, Member};
use crate::manager::standings;
use crate::program::terminal::shown;
use crate::protocol::Kind;
use std::fmt;

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

impl fmt::Display for Sample {
    /// `1.333 ± 0.882`, and a dash where there are no numbers.
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        if self.count == 0 {
            return write!(to, "    -        ");
        }
        let error = self
            .error
            .map_or("    ?".into(), |error| format!("{error:.3}"));
        write!(to, "{:>5.3} ± {error}", self.mean)
    }
}

/// Fewer matches than this say nothing.
const FEW: usize = 10;
/// So many opponents stand beside each other: a terminal is no wider.
const COLUMNS: usize = 12;

impl Sample {
    /// Counts, and estimates the error from the numbers themselves.
    pub fn of(numbers: &[f64]) -> Sample {
        let count = numbers.len();
        let mean = numbers.iter().sum::<f64>() / count.max(1) as f64;
        let squares: f64 = numbers.iter().map(|it| (it - mean).powi(2)).sum();
        let error = (count > 1).then(|| (squares / (count - 1) as f64 / count as f64).sqrt());
        Sample { count, mean, error }
    }

    /// Whether the difference from a measure is more than luck, in words.
    pub fn verdict(&self, measure: Measure) -> String {
        let Measure { points, name, .. } = measure;
        let (gain, error) = (self.mean - points, self.error.unwrap_or_default());
        if self.count < FEW {
            return "too few matches to say".into();
        }
        if gain.abs() <= 2.0 * error {
            return format!("like {name}: luck alone can do this");
        }
        let (what, luck) = match gain > 0.0 {
            true => ("better", "luck"),
            false => ("worse", "bad luck"),
        };
        if gain.abs() <= 3.0 * error {
            return format!("{what} than {name}, perhaps by {luck}: play more cycles");
        }
        format!("{what} than {name}, and not by {luck}")
    }
}

/// What players are measured by.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// So many points a match.
    pub points: f64,
    /// What gets them, for comparisons.
    pub name: &'static str,
    /// What they are, for the head of a table.
    pub told: &'static str,
}

impl Measure {
    /// A coin, which gets so many points a match.
    pub fn coin(points: f64) -> Measure {
        Measure {
            points,
            name: "a coin",
            told: "is what a coin gets",
        }
    }
}

/// What the players of a league are measured by: a coin, or where there is none, all of them together.
fn measure(league: &League) -> Measure {
    let game = games::named(&league.rules.game_type);
    if let Some(points) = game.and_then(|game| worth::coin(game, &league.rules.scoring)) {
        return Measure::coin(points);
    }
    let players = league.members(Kind::Player);
    let all = players.iter().flat_map(|it| points(league, it, None));
    let all: Vec<f64> = all.collect();
    Measure {
        points: Sample::of(&all).mean,
        name: "the average",
        told: "is the average of all",
    }
}

/// The middle one, and the largest; of an even number the lower of the middle two.
pub fn median_and_worst(mut numbers: Vec<u64>) -> Option<(u64, u64)> {
    numbers.sort_unstable();
    Some((numbers[numbers.len().checked_sub(1)? / 2], *numbers.last()?))
}

/// What each of a player's matches gave it; of all, or of those against one opponent.
fn points(league: &League, player: &Member, against: Option<&Member>) -> Vec<f64> {
    let with = |game: &&Match| against.is_none_or(|it| game.opponent(&player.id) == it.id);
    let of = |game: &Match| {
        let result = &game.recorded.as_ref()?.result;
        let both = standings::points(&game.players, result, &league.rules.scoring);
        Some(f64::from(both[game.seat(&player.id)?]))
    };
    let games = league.games(&player.id).filter(with);
    games.filter_map(of).collect()
}

/// What each of a player's choices was worth before the number was drawn.
fn expected(league: &League, rules: &Game, player: &Member, against: Option<&Member>) -> Vec<f64> {
    let with = |game: &&Match| against.is_none_or(|it| game.opponent(&player.id) == it.id);
    let of = |game: &Match| {
        let details = &game.recorded.as_ref()?.result.details;
        details.drawn_number?;
        let moves = games::reported(&game.players, details).ok()?;
        let both = rules.expected(&moves, &league.rules.scoring)?;
        Some(both[game.seat(&player.id)?])
    };
    let games = league.games(&player.id).filter(with);
    games.filter_map(of).collect()
}

/// The players of a practice, as its tables show them.
struct Rows<'a> {
    league: &'a League,
    /// The game, if it draws a number.
    drawing: Option<&'static Game>,
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

    /// What a player is judged by: what its choices were worth where a number is drawn, else its points.
    fn judged(&self, player: &Member, against: Option<&Member>) -> Sample {
        Sample::of(&match self.drawing {
            Some(rules) => expected(self.league, rules, player, against),
            None => points(self.league, player, against),
        })
    }

    /// What everybody won, and whether that is more than luck.
    fn won(&self) -> Vec<String> {
        let measure = measure(self.league);
        let columns = match self.drawing {
            Some(_) => "Matches  Points per match   Expected points",
            None => "Matches  Points per match",
        };
        let head = format!("{columns}  ({:.2} {})", measure.points, measure.told);
        self.table(&head, |player| {
            let won = Sample::of(&points(self.league, player, None));
            let judged = self.judged(player, None);
            let more = match self.drawing {
                Some(_) => format!("     {judged}"),
                None => String::new(),
            };
            let verdict = match judged.count {
                0 if won.count > 0 => "no number was drawn in its matches".into(),
                _ => judged.verdict(measure),
            };
            format!("{:>7}     {won}{more}  {verdict}", won.count)
        })
    }

    /// What everybody won against these opponents, or its choices were worth.
    fn against(&self, opponents: &[&Member]) -> Vec<String> {
        let ids: String = opponents.iter().map(|it| format!("{:>6}", it.id)).collect();
        let ids = self.line("", "", &ids);
        let what = match self.drawing {
            Some(_) => "Expected points",
            None => "Points",
        };
        let cell = |player: &Member, other: &Member| match self.judged(player, Some(other)) {
            Sample { count: 0, .. } => format!("{:>6}", "-"),
            sample => format!("{:>6.2}", sample.mean),
        };
        let head = format!("{what} per match against\n{ids}");
        self.table(&head, |player| {
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
    let game = games::named(&league.rules.game_type);
    let rows = Rows {
        league,
        drawing: game.filter(|game| game.draws.is_some()),
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
