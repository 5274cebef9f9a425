//! What many matches say about players: points per match with their standard error, whom they were
//! won against, and whether it is more than luck. Pure; `local.rs` knows where the matches are
//! from.
//!
//! The measure is a coin: somebody who chooses at random. In Even/Odd a coin chooses, whatever the
//! opponent does, the same in half of the matches, a draw; in the other half the drawn number
//! decides between them, and it is fair. So a coin gets as much against anybody, and anybody gets
//! as much against a coin. Where a number is drawn, the verdict goes by what the choices were worth
//! before it was: the draw is luck. In a game by turns there is no such coin; there the measure is
//! what all players got on average.

use crate::extras::columns::columns;
use crate::extras::figures::{Gain, gains, worth_in};
use crate::extras::worth;
use crate::manager::view::{AgentView, LeagueView};
use crate::protocol::Kind;
use serde_json::json;
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
            return write!(to, "-");
        }
        write!(to, "{:.3} ± {:.3}", self.mean, self.error)
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

/// The players of a practice, as its tables show them.
struct Rows<'a> {
    view: &'a LeagueView,
    /// Whether the game draws a number. Then players are judged by what their choices were worth,
    /// else by their points.
    draws: bool,
    players: Vec<&'a AgentView>,
    /// By player: what its matches gave it.
    gains: BTreeMap<&'a String, Vec<Gain<'a>>>,
}

impl<'a> Rows<'a> {
    fn new(view: &'a LeagueView) -> Rows<'a> {
        let players = view.agents.iter().filter(|it| it.kind == Kind::Player);
        let worth = worth_in(view);
        let mut by_player = BTreeMap::<_, Vec<Gain>>::new();
        for gain in view.matches().flat_map(|game| gains(game, &worth)) {
            by_player.entry(gain.player).or_default().push(gain);
        }
        Rows {
            view,
            draws: !worth.is_empty(),
            players: players.collect(),
            gains: by_player,
        }
    }

    /// A table: its heads, which commas part, and a row for each player.
    fn table(&self, heads: &str, cells: impl Fn(&AgentView) -> Vec<String>) -> String {
        let row = |player: &&AgentView| {
            let own = vec![player.id.clone(), player.display_name.clone()];
            json!([own, cells(player)].concat())
        };
        columns(
            &format!("Id,Strategy,{heads}"),
            1,
            self.players.iter().map(row),
        )
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

    /// What the players are measured by, in points and in words: a coin, or where there is none,
    /// all of them together.
    fn measure(&self) -> (f64, &'static str) {
        let league = &self.view.league;
        let all = self.gains.values().flatten().map(|gain| gain.points);
        match worth::coin(&league.game_type, &league.scoring) {
            Some(points) => (points, "a coin"),
            None => (Sample::of(all).mean, "the average player"),
        }
    }

    /// What everybody won, and whether that is more than luck.
    fn won(&self) -> String {
        let (measure, name) = self.measure();
        let heads = match self.draws {
            true => "Matches,Points per match,Expected points",
            false => "Matches,Points per match",
        };
        let table = self.table(heads, |player| {
            let won = Sample::of(self.own(player, None).map(|gain| gain.points));
            let judged = self.draws.then(|| self.judged(player, None).to_string());
            let cells = [won.count.to_string(), won.to_string()];
            cells.into_iter().chain(judged).collect()
        });
        let verdict = |player: &&AgentView| {
            let verdict = self.judged(player, None).verdict(measure, name);
            match player.technical_losses {
                None | Some(0) => verdict,
                Some(lost) => format!("{verdict}; {lost} lost technically"),
            }
        };
        let head = format!("({measure:.2} is what {name} gets)");
        let verdicts = [head].into_iter().chain(self.players.iter().map(verdict));
        let rows = table.lines().zip(verdicts);
        rows.map(|(row, said)| format!("\n{row}  {said}")).collect()
    }

    /// What everybody won against these opponents, or its choices were worth.
    fn against(&self, opponents: &[&AgentView]) -> String {
        let ids: Vec<&str> = opponents.iter().map(|it| &*it.id).collect();
        let what = match self.draws {
            true => "Expected points",
            false => "Points",
        };
        let table = self.table(&ids.join(","), |player| {
            let cell = |other: &&AgentView| match self.judged(player, Some(other)) {
                Sample { count: 0, .. } => "-".into(),
                sample => format!("{:.2}", sample.mean),
            };
            opponents.iter().map(cell).collect()
        });
        format!("\n\n{what} per match against\n{table}")
    }
}

/// The whole report, for a terminal.
pub fn report(view: &LeagueView) -> String {
    let rows = Rows::new(view);
    let against = rows.players.chunks(COLUMNS).map(|some| rows.against(some));
    rows.won() + &against.collect::<String>()
}
