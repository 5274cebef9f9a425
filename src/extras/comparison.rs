//! Is one player better than another? Both play the same rivals, cycle by cycle, until that is decided.
//!
//! The unit is one rival in one cycle: what the new player's choice was worth against this rival, less what the old
//! one's was. Choices are worth points before the number is drawn (in games that draw nothing, the points themselves).
//! All of it is counted anew from the league's document after each cycle. Then a sequential probability ratio test asks
//! whether the mean of these differences is rather `DELTA` or rather nothing. Such a test may be looked at as often as
//! one likes; whoever looks at an ordinary error bar after each cycle, and stops when it pleases, is deceived far too
//! often.

use crate::extras::figures::{gains, worth_in};
use crate::extras::statistics::Sample;
use crate::manager::Manager;
use crate::manager::league::League;
use crate::manager::view::{AgentView, LeagueView, MatchView};
use crate::net::sync::spawn;
use crate::program::terminal::{counted, shown};
use crate::protocol::{Kind, Progress};
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

/// Has a thread compare the first two players of a league, and end the league when it is decided.
pub fn follow(manager: &Arc<Manager>) {
    let manager = Arc::clone(manager);
    spawn("comparison", move || {
        let say = |line: String| manager.terminal.say(&line);
        let began = Instant::now();
        let mut view = manager.document.newest();
        let mut cycles = 0;
        loop {
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
            if view.status == Progress::Completed {
                return;
            }
            manager.store.wait(LOOK, League::is_over);
            view = manager.document.newest();
        }
    });
}

/// What came of the first cycles of a league.
struct Comparison<'a> {
    cycles: usize,
    /// The new player and the old one.
    sides: [&'a AgentView; 2],
    rivals: Vec<&'a AgentView>,
    matches: usize,
    /// What their matches are counted in.
    kind: &'static str,
    /// By player and opponent: what the player's choices were worth, cycle by cycle.
    worth: BTreeMap<[&'a String; 2], Vec<f64>>,
}

impl<'a> Comparison<'a> {
    /// The comparison after so many cycles, if all their matches have a result.
    fn of(view: &'a LeagueView, cycles: usize) -> Option<Comparison<'a>> {
        let players = view.agents.iter().filter(|it| it.kind == Kind::Player);
        let mut players = players.filter(|_| view.status != Progress::Waiting);
        let sides = [players.next()?, players.next()?];
        let rivals: Vec<&AgentView> = players.collect();
        let rounds = view.rounds.get(..cycles * rivals.len())?;
        let matches = rounds.iter().flat_map(|round| &round.matches);
        let matches: Vec<&MatchView> = matches.collect();
        if matches.iter().any(|game| game.score.is_none()) {
            return None;
        }
        let by_pair = worth_in(view);
        let mut worth = BTreeMap::<_, Vec<f64>>::new();
        for gain in matches.iter().flat_map(|game| gains(game, &by_pair)) {
            let against = worth.entry([gain.player, gain.opponent]).or_default();
            against.push(gain.expected.unwrap_or(gain.points));
        }
        let kind = match by_pair.is_empty() {
            true => "points a match",
            false => "expected points",
        };
        Some(Comparison {
            cycles,
            sides,
            rivals,
            matches: matches.len(),
            kind,
            worth,
        })
    }

    fn heading(&self) -> String {
        let ([new, old], rivals) = (self.sides.map(name), self.rivals.len());
        format!("{new} and {old}, each against the same {rivals} rivals, until it is decided")
    }

    /// What the choices of a side were worth against a rival.
    fn against(&self, side: &'a AgentView, rival: &'a AgentView) -> &[f64] {
        let worth = self.worth.get(&[&side.id, &rival.id]);
        worth.map_or(&[], Vec::as_slice)
    }

    /// What the choices of a side were worth in all its matches.
    fn gain(&self, side: &'a AgentView) -> Sample {
        let rivals = self.rivals.iter();
        Sample::of(rivals.flat_map(|rival| self.against(side, rival)).copied())
    }

    /// How much more the new player got against a rival, cycle by cycle.
    fn differences(&self, rival: &'a AgentView) -> impl Iterator<Item = f64> {
        let [new, old] = self.sides.map(|side| self.against(side, rival));
        new.iter().zip(old).map(|(new, old)| new - old)
    }

    fn verdict(&self) -> Verdict {
        let all = self.rivals.iter().flat_map(|rival| self.differences(rival));
        match verdict(&all.collect::<Vec<f64>>(), self.cycles) {
            Verdict::Better if self.sides[0].technical_losses > Some(0) => Verdict::NotBetter,
            verdict => verdict,
        }
    }

    /// `cycle  16   expected points: ada 1.347, eve 1.321    towards better 24 %`
    fn line(&self) -> String {
        let side = |side| format!("{} {:.3}", name(side), self.gain(side).mean);
        let ([new, old], kind) = (self.sides.map(side), self.kind);
        let far = match self.verdict() {
            Verdict::Better => 1.0,
            Verdict::NotBetter => -1.0,
            Verdict::Open(far) => far,
        };
        let what = if far < 0.0 { "not better" } else { "better" };
        let percent = far.abs() * 100.0;
        format!(
            "  cycle {:>3}   {kind}: {new}, {old}    towards {what} {percent:.0} %",
            self.cycles
        )
    }

    /// What is said when there is nothing more to play for. The league began at that time.
    fn end(&self, began: Instant) -> Option<Vec<String>> {
        let [new, old] = self.sides.map(name);
        let said = match self.verdict() {
            Verdict::Better => format!("{new} is better than {old}"),
            Verdict::NotBetter => format!("{new} is not better than {old}"),
            Verdict::Open(_) if self.cycles < MOST_CYCLES as usize => return None,
            Verdict::Open(_) => format!("{new} and {old}: undecided"),
        };
        Some(vec![
            self.line(),
            format!("{said}: {}", self.figures(began)),
            format!(
                "Such an answer is wrong in at most 5 of 100. \"Not better\" means: not by {DELTA} points a match or more."
            ),
            self.gains(),
        ])
    }

    /// `expected points 1.389 ± 0.026 against 1.270 ± 0.032 (9 cycles, 126 matches, 3.2 s)`
    fn figures(&self, began: Instant) -> String {
        let ([new, old], kind) = (self.sides.map(|side| self.gain(side)), self.kind);
        let cycles = counted(self.cycles as u32, "cycle");
        let (matches, seconds) = (self.matches, began.elapsed().as_secs_f64());
        format!("{kind} {new} against {old} ({cycles}, {matches} matches, {seconds:.1} s)")
    }

    /// `ada gains most on: even +0.31, alternate +0.22, pattern -0.04`
    fn gains(&self) -> String {
        let gain = |rival: &&'a AgentView| (Sample::of(self.differences(rival)).mean, name(rival));
        let mut gains: Vec<(f64, String)> = self.rivals.iter().map(gain).collect();
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
    shown(&player.display_name)
}
