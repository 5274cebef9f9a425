//! What many matches say about players: points per match with their standard error, whom they were won against, and
//! whether it is more than luck. Pure; `local.rs` knows where the matches are from.
//!
//! The measure is a coin: somebody who chooses at random. In Even/Odd a coin chooses, whatever the opponent does, the same
//! in half of the matches, a draw; in the other half the drawn number decides between them, and it is fair. So a coin gets
//! as much against anybody, and anybody gets as much against a coin. Where a number is drawn, the verdict goes by what the
//! choices were worth before it was: the draw is luck. In a game by turns there is no such coin; there the measure is
//! what all players got on average.

use crate::extras::columns::{pad, width};
use crate::extras::figures::{Gain, gains, matches, worth_in};
use crate::extras::worth;
use crate::games;
use crate::manager::document::{AgentView, LeagueView};
use crate::program::terminal::shown;
use crate::protocol::Kind;
use std::collections::BTreeMap;
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
            return write!(to, "    -        ");
        }
        write!(to, "{:>5.3} ± {:<5.3}", self.mean, self.error)
    }
}

/// Fewer matches than this say nothing.
const FEW: usize = 10;
/// So many opponents stand beside each other: a terminal is no wider.
const COLUMNS: usize = 12;

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

    /// Whether the difference from a measure is more than luck, in words.
    pub fn verdict(&self, measure: Measure) -> String {
        let Measure { points, name } = measure;
        let (gain, error) = (self.mean - points, self.error);
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

/// What players are measured by: somebody who gets so many points a match.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// The points.
    pub points: f64,
    /// Who gets them.
    pub name: &'static str,
}

/// The players of a practice, as its tables show them.
struct Rows<'a> {
    view: &'a LeagueView,
    /// Whether the game draws a number. Then players are judged by what their choices were worth, else by their points.
    draws: bool,
    /// The players with their names.
    players: Vec<(&'a AgentView, String)>,
    /// By player: what its matches gave it.
    gains: BTreeMap<&'a String, Vec<Gain<'a>>>,
}

impl<'a> Rows<'a> {
    fn new(view: &'a LeagueView) -> Rows<'a> {
        let players = view.agents.iter().filter(|it| it.kind == Kind::Player);
        let players = players.map(|it| (it, shown(&it.display_name)));
        let worth = worth_in(view);
        let mut by_player = BTreeMap::<_, Vec<Gain>>::new();
        for gain in matches(view).flat_map(|game| gains(game, &worth)) {
            by_player.entry(gain.player).or_default().push(gain);
        }
        Rows {
            view,
            draws: !worth.is_empty(),
            players: players.collect(),
            gains: by_player,
        }
    }

    /// A table: a head, and a row for each player.
    fn table(&self, head: &str, columns: impl Fn(&AgentView) -> String) -> Vec<String> {
        let names = self.players.iter().map(|(_, name)| &**name);
        let widest = names.chain(["Strategy"]).map(width).max();
        let line = |id: &str, name: &str, columns: &str| {
            let name = pad(name, widest.unwrap_or_default());
            format!("{id:<4}  {name}  {columns}")
        };
        let rows = self.players.iter();
        let rows = rows.map(|(player, name)| line(&player.id, name, &columns(player)));
        let mut heads = head.lines();
        let first = line("Id", "Strategy", heads.next().unwrap_or_default());
        let more = heads.map(|head| line("", "", head));
        let heads = [String::new(), first].into_iter().chain(more);
        heads.chain(rows).collect()
    }

    /// What a player's matches gave it, or those against one opponent.
    fn own(
        &self,
        player: &AgentView,
        against: Option<&AgentView>,
    ) -> impl Iterator<Item = &Gain<'a>> {
        let own = self.gains.get(&player.id).into_iter().flatten();
        own.filter(move |gain| against.is_none_or(|it| *gain.opponent == it.id))
    }

    /// What a player is judged by.
    fn judged(&self, player: &AgentView, against: Option<&AgentView>) -> Sample {
        let worth = |gain: &Gain| match self.draws {
            true => gain.expected,
            false => Some(gain.points),
        };
        Sample::of(self.own(player, against).filter_map(worth))
    }

    /// What the players are measured by: a coin, or where there is none, all of them together.
    fn measure(&self) -> Measure {
        let league = &self.view.league;
        let coin =
            games::named(&league.game_type).and_then(|game| worth::coin(game, &league.scoring));
        let all = self.gains.values().flatten().map(|gain| gain.points);
        match coin {
            Some(points) => Measure {
                points,
                name: "a coin",
            },
            None => Measure {
                points: Sample::of(all).mean,
                name: "the average player",
            },
        }
    }

    /// What everybody won, and whether that is more than luck.
    fn won(&self) -> Vec<String> {
        let measure = self.measure();
        let columns = match self.draws {
            true => "Matches  Points per match   Expected points",
            false => "Matches  Points per match",
        };
        let head = format!(
            "{columns}  ({:.2} is what {} gets)",
            measure.points, measure.name
        );
        self.table(&head, |player| {
            let points = self.own(player, None).map(|gain| gain.points);
            let won = Sample::of(points);
            let judged = self.judged(player, None);
            let more = match self.draws {
                true => format!("     {judged}"),
                false => String::new(),
            };
            let verdict = match judged.count {
                0 if won.count > 0 => "no number was drawn in its matches".into(),
                _ => judged.verdict(measure),
            };
            let lost = match player.technical_losses {
                None | Some(0) => String::new(),
                Some(lost) => format!("; {lost} lost technically"),
            };
            format!("{:>7}     {won}{more}  {verdict}{lost}", won.count)
        })
    }

    /// What everybody won against these opponents, or its choices were worth.
    fn against(&self, opponents: &[(&AgentView, String)]) -> Vec<String> {
        let others = || opponents.iter().map(|(other, _)| *other);
        let ids: String = others().map(|it| format!("{:>6}", it.id)).collect();
        let what = match self.draws {
            true => "Expected points",
            false => "Points",
        };
        let cell = |player: &AgentView, other: &AgentView| match self.judged(player, Some(other)) {
            Sample { count: 0, .. } => format!("{:>6}", "-"),
            sample => format!("{:>6.2}", sample.mean),
        };
        self.table(&format!("{what} per match against\n{ids}"), |player| {
            others().map(|other| cell(player, other)).collect()
        })
    }
}

/// The whole report, as lines for a terminal.
pub fn report(view: &LeagueView) -> Vec<String> {
    let rows = Rows::new(view);
    let mut lines = rows.won();
    for opponents in rows.players.chunks(COLUMNS) {
        lines.extend(rows.against(opponents));
    }
    lines
}
