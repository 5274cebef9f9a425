//! Is one player better than another? Both play the same rivals, cycle by cycle, until that is decided.
//!
//! The unit is one rival in one cycle: what the new player's choice was worth against this rival, less what the old
//! one's was. Choices are worth points before the number is drawn (in games that draw nothing, the points themselves).
//! After each cycle a sequential probability ratio test asks whether the mean of these differences is rather `DELTA` or
//! rather nothing. Such a test may be looked at as often as one likes; whoever looks at an ordinary error bar after each
//! cycle, and stops when it pleases, is deceived far too often.

use crate::games;
use crate::manager::Manager;
use crate::manager::league::{League, Match};
use crate::manager::standings;
use crate::net::sync::spawn;
use crate::program::terminal::{counted, shown};
use crate::protocol::Ending;
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
    let count = differences.len() as f64;
    if cycles < FIRST_LOOK || differences.is_empty() {
        return Verdict::Open(0.0);
    }
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|it| (it - mean).powi(2)).sum();
    let variance = (squares / count).max(LEAST_VARIANCE);
    let ratio = count * DELTA * (mean - DELTA / 2.0) / variance;
    if ratio >= BOUND {
        Verdict::Better
    } else if ratio <= -BOUND {
        Verdict::NotBetter
    } else {
        Verdict::Open(ratio / BOUND)
    }
}

/// The mean of some numbers and the standard error of the mean.
fn mean_and_error(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|it| (it - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
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
    /// In how many matches its choice differed from the rival's.
    differed: usize,
    technical_losses: usize,
    /// The reasons of the losses that came last, one behind the other.
    lost_in_a_row: Vec<String>,
}

/// A comparison under way.
struct Comparison {
    sides: [Side; 2],
    rivals: Vec<(String, String)>,
    cycles: usize,
    draws: bool,
    began: Instant,
}

/// Has a thread compare the first two players of a league, and end the league when it is decided.
pub fn follow(manager: &Arc<Manager>) {
    let manager = Arc::clone(manager);
    spawn("comparison", move || {
        while !manager.store.read(|league| league.started) {
            manager.store.wait(IDLE, |league| league.started);
        }
        let Some(mut comparison) = manager.store.read(Comparison::of) else {
            return;
        };
        let say = |line: String| manager.terminal.say(&line);
        say(comparison.heading());
        loop {
            let changes = manager.store.read(|league| league.changes);
            while manager.store.read(|league| comparison.count_cycle(league)) {
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
            manager
                .store
                .wait(Duration::from_secs(60), |league| league.changes != changes);
        }
    });
}

impl Comparison {
    /// The comparison in a league that has started.
    fn of(league: &League) -> Option<Comparison> {
        let players = league.player_ids();
        let name = |id: &String| {
            let member = league.members.get(id);
            member.map_or(id.clone(), |member| shown(&member.display_name))
        };
        let [new, old, rivals @ ..] = &players[..] else {
            return None;
        };
        let side = |id: &String| Side {
            id: id.clone(),
            name: name(id),
            worth: vec![Vec::new(); rivals.len()],
            differed: 0,
            technical_losses: 0,
            lost_in_a_row: Vec::new(),
        };
        let game = games::named(&league.rules.game_type);
        Some(Comparison {
            sides: [side(new), side(old)],
            rivals: rivals.iter().map(|id| (id.clone(), name(id))).collect(),
            cycles: 0,
            draws: game.is_some_and(|game| game.draws.is_some()),
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
    fn count_cycle(&mut self, league: &League) -> bool {
        let cycle = self.cycles;
        let size = self.rivals.len();
        let mut played = Vec::new();
        for side in &self.sides {
            let games = league.games(&side.id).skip(cycle * size).take(size);
            let games: Vec<&Match> = games.filter(|game| game.recorded.is_some()).collect();
            if games.len() < size {
                return false;
            }
            played.push(games);
        }
        for (side, games) in self.sides.iter_mut().zip(played) {
            for game in games {
                let rival = game.opponent(&side.id);
                if let Some(row) = self.rivals.iter().position(|(id, _)| id == rival) {
                    side.count(league, game, row);
                }
            }
        }
        self.cycles += 1;
        true
    }

    fn differences(&self) -> Vec<f64> {
        let [new, old] = &self.sides;
        let both = new.worth.iter().flatten().zip(old.worth.iter().flatten());
        both.map(|(new, old)| new - old).collect()
    }

    fn verdict(&self) -> Verdict {
        match verdict(&self.differences(), self.cycles) {
            Verdict::Better if self.sides[0].technical_losses > 0 => Verdict::NotBetter,
            verdict => verdict,
        }
    }

    /// `cycle  16   ada differed in 70 of 112, eve in 58    towards better 24 %`
    fn line(&self) -> String {
        let matches = self.cycles * self.rivals.len();
        let [new, old] = &self.sides;
        let so_far = if self.draws {
            let (more, less) = (new.differed, old.differed);
            format!(
                "{} differed in {more} of {matches}, {} in {less}",
                new.name, old.name
            )
        } else {
            let (one, other) = (new.mean().0, old.mean().0);
            format!(
                "{} has {one:.2} points a match, {} {other:.2}",
                new.name, old.name
            )
        };
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
        if let Some(words) = self.sides.iter().find_map(Side::is_broken) {
            return Some(vec![words, "nothing is decided".into()]);
        }
        let [new, old] = &self.sides;
        let kind = if self.draws {
            "expected points"
        } else {
            "points a match"
        };
        let said = match self.verdict() {
            Verdict::Better => format!("{} is better than {}", new.name, old.name),
            Verdict::NotBetter => format!("{} is not better than {}", new.name, old.name),
            Verdict::Open(_) if self.cycles < MOST_CYCLES as usize => return None,
            Verdict::Open(_) => format!("{} and {}: undecided", new.name, old.name),
        };
        let figure = |side: &Side| {
            let (mean, error) = side.mean();
            format!("{mean:.3} ± {error:.3}")
        };
        let matches = 2 * self.cycles * self.rivals.len();
        let cost = format!(
            "{}, {matches} matches, {:.1} s",
            counted(self.cycles as u32, "cycle"),
            self.began.elapsed().as_secs_f64()
        );
        let mut lines = vec![
            self.line(),
            format!(
                "{said}: {kind} {} against {} ({cost})",
                figure(new),
                figure(old)
            ),
            format!(
                "Such an answer is wrong in at most 5 of 100. \"Not better\" means: not by {DELTA} points a match or more."
            ),
            self.gains(),
        ];
        for side in self.sides.iter().filter(|side| side.technical_losses > 0) {
            let losses = side.technical_losses;
            lines.push(format!(
                "{} lost {losses} of its matches technically",
                side.name
            ));
        }
        Some(lines)
    }

    /// `ada gains most on: even +0.31, alternate +0.22, pattern -0.04`
    fn gains(&self) -> String {
        let [new, old] = &self.sides;
        let mut gains = Vec::new();
        for (row, (_, name)) in self.rivals.iter().enumerate() {
            let gain = mean_and_error(&new.worth[row]).0 - mean_and_error(&old.worth[row]).0;
            gains.push((gain, name));
        }
        gains.sort_by(|one, other| other.0.total_cmp(&one.0));
        let text: Vec<String> = gains
            .iter()
            .map(|(gain, name)| format!("{name} {gain:+.2}"))
            .collect();
        format!("{} gains most on: {}", new.name, text.join(", "))
    }
}

impl Side {
    /// Why a player that only loses technically is compared no longer.
    fn is_broken(&self) -> Option<String> {
        if self.lost_in_a_row.len() < LOST_IN_A_ROW {
            return None;
        }
        let (name, reason) = (&self.name, shown(&self.lost_in_a_row[0]));
        let times = LOST_IN_A_ROW;
        Some(format!(
            "{name} lost technically {times} times in a row: {reason}"
        ))
    }

    fn count(&mut self, league: &League, game: &Match, row: usize) {
        let (Some(recorded), Some(seat)) = (&game.recorded, game.seat(&self.id)) else {
            return;
        };
        let result = &recorded.result;
        let scoring = &league.rules.scoring;
        let points = standings::points(&game.players, result, scoring)[seat];
        let rules = games::named(&league.rules.game_type);
        let moves = games::reported(&game.players, &result.details).unwrap_or_default();
        let expected = match rules {
            Some(rules) if result.details.drawn_number.is_some() => rules.expected(&moves, scoring),
            _ => None,
        };
        self.worth[row].push(expected.map_or(f64::from(points), |both| both[seat]));
        if let [one, other] = &moves[..] {
            self.differed += usize::from(one.text != other.text);
        }
        let has_lost = standings::lost_technically(&self.id, result);
        let reason = result.details.reason.clone().unwrap_or_default();
        match (has_lost, standings::ending(result)) {
            (true, _) => {
                self.technical_losses += 1;
                self.lost_in_a_row.push(reason);
            }
            (false, Ending::TechnicalLoss) => {} // the rival's
            (false, _) => self.lost_in_a_row.clear(),
        }
    }

    fn mean(&self) -> (f64, f64) {
        let all: Vec<f64> = self.worth.iter().flatten().copied().collect();
        mean_and_error(&all)
    }
}
