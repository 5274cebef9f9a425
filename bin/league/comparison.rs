//! Is one player better than another? Both play the same rivals, cycle by cycle, until that is
//! decided.
//!
//! The unit is one rival in one cycle: what the new player's choice was worth against this rival,
//! less what the old one's was. Choices are worth points before the number is drawn (in games that
//! draw nothing, the points themselves). All of it is counted anew from the league's document after
//! each cycle. Then a sequential probability ratio test asks whether the mean of these differences
//! is rather `DELTA` or rather nothing. Such a test may be looked at as often as one likes; whoever
//! looks at an ordinary error bar after each cycle, and stops when it pleases, is deceived far too
//! often.

use crate::document::Document;
use crate::figures::{gains, worth_in};
use crate::statistics::Sample;
use crate::view::{AgentView, LeagueView};
use league::manager::Manager;
use league::manager::league::League;
use league::net::sync::spawn;
use league::program::terminal::{plural, sanitize};
use league::protocol::{AgentKind, LeaguePhase};
use std::collections::BTreeMap;
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
/// How often the thread looks whether a cycle is over.
const LOOK: Duration = Duration::from_secs(1);

/// How near some differences are to a verdict, after whole cycles: from 1 on the new player is
/// better and gains at least about `DELTA` points a match, from -1 on it does not; between the two,
/// more cycles are needed.
pub fn verdict(differences: &[f64], cycles: usize) -> f64 {
    if cycles < FIRST_LOOK {
        return 0.0;
    }
    let Sample { count, mean, error } = Sample::of(differences.iter().copied());
    let variance = error.powi(2).max(LEAST_VARIANCE / count as f64);
    DELTA * (mean - DELTA / 2.0) / variance / BOUND
}

/// The first player and the second meet each of the others once a cycle, in rounds in which nobody
/// plays twice.
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

/// Has a thread compare the first two players of a league, and end the league when it is decided.
pub fn follow(manager: &Arc<Manager>, document: &Arc<Document>) {
    let (manager, document) = (Arc::clone(manager), Arc::clone(document));
    spawn("comparison", move || {
        let say = |line: String| manager.terminal.print_line(&line);
        let began = Instant::now();
        let mut cycles = 0;
        loop {
            let view = document.newest(&manager);
            while let Some(comparison) = Comparison::of(&view, cycles) {
                if let Some(end) = comparison.end(began) {
                    end.into_iter().for_each(say);
                    if let Err(error) = manager.close() {
                        say(error.to_string());
                    }
                    return;
                }
                if cycles == 0 {
                    say(comparison.heading());
                } else if cycles.is_power_of_two() && cycles >= 8 {
                    say(comparison.line());
                }
                cycles += 1;
            }
            if view.status == LeaguePhase::Completed {
                return;
            }
            manager.store.wait(LOOK, League::is_over);
        }
    });
}

/// What came of the first cycles of a league.
struct Comparison<'a> {
    cycles: usize,
    /// The new player and the old one.
    sides: [&'a AgentView; 2],
    rivals: Vec<&'a AgentView>,
    /// What their matches are counted in.
    kind: &'static str,
    /// Rival by rival in each cycle: what the choices of both sides were worth against it.
    worth: Vec<(&'a AgentView, [f64; 2])>,
}

impl<'a> Comparison<'a> {
    /// The comparison after so many cycles, if all their matches have a result.
    fn of(view: &'a LeagueView, cycles: usize) -> Option<Comparison<'a>> {
        let players = view.agents.iter().filter(|it| it.kind == AgentKind::Player);
        let mut players = players.filter(|_| view.status != LeaguePhase::Waiting);
        let sides = [players.next()?, players.next()?];
        let rivals: Vec<&AgentView> = players.collect();
        let by_pair = worth_in(view);
        let mut worth = Vec::new();
        let rounds = view.rounds.get(..cycles * rivals.len())?;
        for cycle in rounds.chunks(rivals.len().max(1)) {
            let matches = cycle.iter().flat_map(|round| &round.matches);
            let gains = matches.flat_map(|game| gains(game, &by_pair));
            let gains =
                gains.map(|it| ([it.player, it.opponent], it.expected.unwrap_or(it.points)));
            let gains: BTreeMap<_, f64> = gains.collect();
            for rival in &rivals {
                let [new, old] = sides.map(|side| gains.get(&[&side.id, &rival.id]));
                worth.push((*rival, [*new?, *old?]));
            }
        }
        let kind = match by_pair.is_empty() {
            true => "points a match",
            false => "expected points",
        };
        Some(Comparison {
            cycles,
            sides,
            rivals,
            kind,
            worth,
        })
    }

    fn heading(&self) -> String {
        let ([new, old], rivals) = (self.sides.map(name), self.rivals.len());
        format!("{new} and {old}, each against the same {rivals} rivals, until it is decided")
    }

    /// What the choices of the new player were worth in all its matches, and those of the old one.
    fn gains(&self) -> [Sample; 2] {
        [0, 1].map(|side| Sample::of(self.worth.iter().map(|(_, both)| both[side])))
    }

    /// Whoever has lost technically is not better.
    fn verdict(&self) -> f64 {
        let differences = self.worth.iter().map(|(_, [new, old])| new - old);
        match verdict(&differences.collect::<Vec<f64>>(), self.cycles) {
            1.0.. if self.sides[0].technical_losses > Some(0) => -1.0,
            verdict => verdict.clamp(-1.0, 1.0),
        }
    }

    /// `cycle  16   expected points: ada 1.347, eve 1.321    towards better 24 %`
    fn line(&self) -> String {
        let ([new, old], kind) = (self.sides.map(name), self.kind);
        let [new_mean, old_mean] = self.gains().map(|it| it.mean);
        let far = self.verdict();
        let what = if far < 0.0 { "not better" } else { "better" };
        let percent = far.abs() * 100.0;
        format!(
            "  cycle {:>3}   {kind}: {new} {new_mean:.3}, {old} {old_mean:.3}    towards {what} {percent:.0} %",
            self.cycles
        )
    }

    /// What is said when there is nothing more to play for. The league began at that time.
    fn end(&self, began: Instant) -> Option<Vec<String>> {
        let [new, old] = self.sides.map(name);
        let said = match self.verdict() {
            1.0 => format!("{new} is better than {old}"),
            -1.0 => format!("{new} is not better than {old}"),
            _ if self.cycles < MOST_CYCLES as usize => return None,
            _ => format!("{new} and {old}: undecided"),
        };
        let ([new, old], kind) = (self.gains(), self.kind);
        let figures = format!("{kind} {new} against {old}");
        let cycles = plural(self.cycles as u32, "cycle");
        let (matches, seconds) = (2 * self.worth.len(), began.elapsed().as_secs_f64());
        Some(vec![
            self.line(),
            format!("{said}: {figures} ({cycles}, {matches} matches, {seconds:.1} s)"),
            format!(
                "Such an answer is wrong in at most 5 of 100. \"Not better\" means: not by {DELTA} points a match or more."
            ),
            self.by_rival(),
        ])
    }

    /// `ada gains most on: even +0.31, alternate +0.22, pattern -0.04`
    fn by_rival(&self) -> String {
        let gain = |rival: &&AgentView| {
            let own = self.worth.iter().filter(|(it, _)| it.id == rival.id);
            Sample::of(own.map(|(_, [new, old])| new - old)).mean
        };
        let mut gains: Vec<_> = self.rivals.iter().map(|it| (gain(it), name(it))).collect();
        gains.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let texts = gains
            .iter()
            .map(|(gain, name)| format!("{name} {gain:+.2}"));
        let texts: Vec<String> = texts.collect();
        let new = name(self.sides[0]);
        format!("{new} gains most on: {}", texts.join(", "))
    }
}

fn name(player: &AgentView) -> String {
    sanitize(&player.display_name)
}
