//! Is one player better than another? Both play the same rivals, cycle by cycle, until that is decided.
//!
//! The unit is one rival in one cycle: what the new player's choice was worth against this rival, less what the old
//! one's was. Choices are worth points before the number is drawn (in games that draw nothing, the points themselves).
//! After each cycle a sequential probability ratio test asks whether the mean of these differences is rather `DELTA` or
//! rather nothing. Such a test may be looked at as often as one likes; whoever looks at an ordinary error bar after each
//! cycle, and stops when it pleases, is deceived far too often.

use crate::extras::figures::{Gain, gains, worth_in};
use crate::extras::statistics::Sample;
use crate::extras::worth::Worth;
use crate::manager::Manager;
use crate::manager::document::{LeagueView, MatchView};
use crate::net::sync::spawn;
use crate::program::terminal::{counted, shown};
use crate::protocol::{Ending, Kind, Progress};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A gain of so many points a match is worth knowing of.
pub const DELTA: f64 = 0.05;
/// The answer is wrong in at most 5 of 100: the logarithm of 95 to 5.
const BOUND: f64 = 2.944_438_979_166_440_3; // ln 19
/// The first look comes after so many cycles: before, the spread of the differences is not known.
const FIRST_LOOK: usize = 5;
/// After so many cycles nothing is decided.
pub const MOST_CYCLES: u32 = 500;
/// Differences that hardly spread are taken to spread so much, in points squared.
const LEAST_VARIANCE: f64 = 0.000_25;
/// How long the thread sleeps at most while nothing happens.
const IDLE: Duration = Duration::from_secs(60);
/// So many technical losses in a row end a comparison.
const LOST_IN_A_ROW: usize = 3;

/// What the differences say so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The new player gains at least about `DELTA` points a match.
    Better,
    /// It does not.
    NotBetter,
    /// More cycles are needed; from -1, not better, to 1, better: how far it is.
    Open(f64),
}

/// The verdict on some differences, after whole cycles.
pub fn verdict(differences: &[f64], cycles: usize) -> Verdict {
    if cycles < FIRST_LOOK || differences.is_empty() {
        return Verdict::Open(0.0);
    }
    let Sample { count, mean, error } = Sample::of(differences.iter().copied());
    let variance = error.powi(2).max(LEAST_VARIANCE / count as f64);
    let ratio = DELTA * (mean - DELTA / 2.0) / variance;
    if ratio >= BOUND {
        Verdict::Better
    } else if ratio <= -BOUND {
        Verdict::NotBetter
    } else {
        Verdict::Open(ratio / BOUND)
    }
}

/// The first player and the second meet each of the others once a cycle, in rounds in which nobody plays twice.
pub fn pairings(players: &[String]) -> Vec<Vec<[String; 2]>> {
    let [new, old, rivals @ ..] = players else {
        return Vec::new();
    };
    let mut rounds = Vec::new();
    for cycle in 0..MOST_CYCLES {
        for round in 0..rivals.len() {
            let rival = |place: usize| rivals[place % rivals.len()].clone();
            let mut pairs = vec![[new.clone(), rival(round)], [old.clone(), rival(round + 1)]];
            if !cycle.is_multiple_of(2) {
                pairs.iter_mut().for_each(|pair| pair.reverse());
            }
            rounds.push(pairs);
        }
    }
    rounds
}

/// One of the two players that are compared.
struct Side {
    id: String,
    name: String,
    /// What its choices were worth, cycle by cycle, a row for each rival.
    worth: Vec<Vec<f64>>,
    technical_losses: usize,
    /// How many of these came last, one behind the other.
    lost_in_a_row: usize,
    /// The reason of the last one.
    reason: String,
}

/// A comparison under way.
struct Comparison {
    sides: [Side; 2],
    /// The ids and the names of the others.
    rivals: Vec<(String, String)>,
    cycles: usize,
    /// What pairs of choices are worth; empty in a game that draws no number.
    worth: Worth,
    began: Instant,
}

/// Has a thread compare the first two players of a league, and end the league when it is decided.
pub fn follow(manager: &Arc<Manager>) {
    let manager = Arc::clone(manager);
    spawn("comparison", move || {
        let mut view = manager.document.newest();
        while view.status == Progress::Waiting {
            view = manager.document.wait(&view, IDLE);
        }
        let Some(mut comparison) = Comparison::of(&view) else {
            return;
        };
        let say = |line: String| manager.terminal.say(&line);
        say(comparison.heading());
        loop {
            while comparison.count_cycle(&view) {
                if let Some(end) = comparison.end() {
                    end.into_iter().for_each(say);
                    if let Err(error) = manager.close() {
                        say(error.to_string());
                    }
                    return;
                }
                if comparison.cycles.is_power_of_two() && comparison.cycles >= 8 {
                    say(comparison.line());
                }
            }
            view = manager.document.wait(&view, IDLE);
        }
    });
}

impl Comparison {
    /// The comparison in a league that has started.
    fn of(view: &LeagueView) -> Option<Comparison> {
        let players = view.agents.iter().filter(|it| it.kind == Kind::Player);
        let players: Vec<_> = players
            .map(|it| (it.id.clone(), shown(&it.display_name)))
            .collect();
        let [new, old, rivals @ ..] = &players[..] else {
            return None;
        };
        let side = |(id, name): &(String, String)| Side {
            id: id.clone(),
            name: name.clone(),
            worth: vec![Vec::new(); rivals.len()],
            technical_losses: 0,
            lost_in_a_row: 0,
            reason: String::new(),
        };
        Some(Comparison {
            sides: [side(new), side(old)],
            rivals: rivals.to_vec(),
            cycles: 0,
            worth: worth_in(view),
            began: Instant::now(),
        })
    }

    fn heading(&self) -> String {
        let [new, old] = &self.sides;
        let rivals = self.rivals.len();
        format!(
            "{} and {}, each against the same {rivals} rivals, until it is decided",
            new.name, old.name
        )
    }

    /// Counts the next cycle, if all its matches have a result.
    fn count_cycle(&mut self, view: &LeagueView) -> bool {
        let size = self.rivals.len();
        let rounds = view.rounds.iter().skip(self.cycles * size).take(size);
        let games: Vec<&MatchView> = rounds.flat_map(|round| &round.matches).collect();
        if games.is_empty() || games.iter().any(|game| game.score.is_none()) {
            return false;
        }
        for game in games {
            for gain in gains(game, &self.worth) {
                let side = self.sides.iter_mut().find(|side| side.id == *gain.player);
                let mut rivals = self.rivals.iter();
                let row = rivals.position(|(id, _)| id == gain.opponent);
                if let (Some(side), Some(row)) = (side, row) {
                    side.count(game, &gain, row);
                }
            }
        }
        self.cycles += 1;
        true
    }

    fn verdict(&self) -> Verdict {
        let [new, old] = &self.sides;
        let both = new.worth.iter().flatten().zip(old.worth.iter().flatten());
        let differences: Vec<f64> = both.map(|(new, old)| new - old).collect();
        match verdict(&differences, self.cycles) {
            Verdict::Better if new.technical_losses > 0 => Verdict::NotBetter,
            verdict => verdict,
        }
    }

    /// What its matches are counted in.
    fn kind(&self) -> &str {
        match self.worth.is_empty() {
            true => "points a match",
            false => "expected points",
        }
    }

    /// `cycle  16   expected points: ada 1.347, eve 1.321    towards better 24 %`
    fn line(&self) -> String {
        let [new, old] = &self.sides;
        let ([one, other], kind) = (self.sides.each_ref().map(Side::gain), self.kind());
        let so_far = format!(
            "{kind}: {} {:.3}, {} {:.3}",
            new.name, one.mean, old.name, other.mean
        );
        let towards = match self.verdict() {
            Verdict::Better => "better 100 %".into(),
            Verdict::NotBetter => "not better 100 %".into(),
            Verdict::Open(far) if far < 0.0 => format!("not better {:.0} %", -far * 100.0),
            Verdict::Open(far) => format!("better {:.0} %", far * 100.0),
        };
        format!("  cycle {:>3}   {so_far}    towards {towards}", self.cycles)
    }

    /// What is said when there is nothing more to play for.
    fn end(&self) -> Option<Vec<String>> {
        let is_broken = |side: &&Side| side.lost_in_a_row >= LOST_IN_A_ROW;
        if let Some(Side { name, reason, .. }) = self.sides.iter().find(is_broken) {
            let words = format!("{name} lost technically {LOST_IN_A_ROW} times in a row: {reason}");
            return Some(vec![words, "nothing is decided".into()]);
        }
        let [new, old] = &self.sides;
        let said = match self.verdict() {
            Verdict::Better => format!("{} is better than {}", new.name, old.name),
            Verdict::NotBetter => format!("{} is not better than {}", new.name, old.name),
            Verdict::Open(_) if self.cycles < MOST_CYCLES as usize => return None,
            Verdict::Open(_) => format!("{} and {}: undecided", new.name, old.name),
        };
        let mut lines = vec![
            self.line(),
            format!("{said}: {}", self.figures()),
            format!(
                "Such an answer is wrong in at most 5 of 100. \"Not better\" means: not by {DELTA} points a match or more."
            ),
            self.gains(),
        ];
        for side in self.sides.iter().filter(|side| side.technical_losses > 0) {
            let (name, losses) = (&side.name, side.technical_losses);
            lines.push(format!("{name} lost {losses} of its matches technically"));
        }
        Some(lines)
    }

    /// `expected points 1.389 ± 0.026 against 1.270 ± 0.032 (9 cycles, 126 matches, 3.2 s)`
    fn figures(&self) -> String {
        let kind = self.kind();
        let [new, old] = self.sides.each_ref().map(Side::gain);
        let cycles = counted(self.cycles as u32, "cycle");
        let matches = 2 * self.cycles * self.rivals.len();
        let seconds = self.began.elapsed().as_secs_f64();
        format!("{kind} {new} against {old} ({cycles}, {matches} matches, {seconds:.1} s)")
    }

    /// `ada gains most on: even +0.31, alternate +0.22, pattern -0.04`
    fn gains(&self) -> String {
        let [new, old] = &self.sides;
        let rows = new.worth.iter().zip(&old.worth);
        let mean = |row: &Vec<f64>| Sample::of(row.iter().copied()).mean;
        let gains = rows.map(|(new, old)| mean(new) - mean(old));
        let mut gains: Vec<_> = gains.zip(&self.rivals).collect();
        gains.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let texts = gains
            .iter()
            .map(|(gain, (_, name))| format!("{name} {gain:+.2}"));
        let texts: Vec<String> = texts.collect();
        format!("{} gains most on: {}", new.name, texts.join(", "))
    }
}

impl Side {
    /// Counts a match against a rival.
    fn count(&mut self, game: &MatchView, gain: &Gain, row: usize) {
        self.worth[row].push(gain.expected.unwrap_or(gain.points));
        if game.ending != Some(Ending::TechnicalLoss) {
            self.lost_in_a_row = 0;
        } else if game.winner.as_ref() != Some(&self.id) {
            self.technical_losses += 1;
            self.lost_in_a_row += 1;
            self.reason = shown(game.reason.as_deref().unwrap_or_default());
        }
    }

    /// What its matches were worth.
    fn gain(&self) -> Sample {
        Sample::of(self.worth.iter().flatten().copied())
    }
}
