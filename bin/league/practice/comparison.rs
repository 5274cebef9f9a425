//! Compares two players: both play the same rivals, cycle by cycle, until it is decided which one is
//! better.
//!
//! The unit is one rival in one cycle: the expected points of the new player against this rival, less
//! those of the old one (in games that draw no number, the points). They are counted from the league's
//! document after each cycle. Then a sequential probability ratio test decides if the mean of these
//! differences is `DELTA` or 0. Such a test may be made after every cycle. An ordinary error bar that
//! is looked at after every cycle would be wrong far too often.

use crate::page::document::Document;
use crate::page::expected_points::{gains, pair_values_in};
use crate::page::view::{AgentView, LeagueView};
use crate::practice::statistics::Sample;
use league::manager::Manager;
use league::manager::league::League;
use league::net::sync::spawn;
use league::program::terminal::{plural, sanitize};
use league::protocol::{AgentKind, LeaguePhase};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The gain of points per match for which the test looks.
pub const DELTA: f64 = 0.05;
/// The bound of the test: the answer is wrong in at most 5 of 100. The logarithm of 95 / 5.
const BOUND: f64 = 2.944_438_979_166_440_3;
/// Minimum number of cycles: before, the variance of the differences is not known.
const MIN_CYCLES: usize = 5;
/// Maximum number of cycles: after them the comparison ends undecided.
pub const MAX_CYCLES: u32 = 500;
/// Minimum of the variance of the differences, in points squared.
const MIN_VARIANCE: f64 = 0.000_25;
/// Maximum interval between two checks if a cycle is over.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the evidence of differences after whole cycles. From 1 on the new player is better, and
/// gains at least about `DELTA` points a match; from -1 on it is not better. Between the two, more
/// cycles are needed.
pub fn evidence(differences: &[f64], cycles: usize) -> f64 {
    if cycles < MIN_CYCLES {
        return 0.0;
    }

    let Sample { count, mean, error } = Sample::of(differences.iter().copied());
    let variance = error.powi(2).max(MIN_VARIANCE / count as f64);
    DELTA * (mean - DELTA / 2.0) / variance / BOUND
}

/// Returns the pairings of all rounds: the first two players meet each of the others once a cycle, and
/// no player plays twice in a round.
pub fn pairings(players: &[String]) -> Vec<Vec<[String; 2]>> {
    let [new, old, rivals @ ..] = players else {
        return Vec::new();
    };

    let mut rounds = Vec::new();
    for cycle in 0..MAX_CYCLES {
        for round in 0..rivals.len() {
            let rival_of_new = &rivals[round];
            let rival_of_old = &rivals[(round + 1) % rivals.len()];
            let mut pairs = vec![
                [new.clone(), rival_of_new.clone()],
                [old.clone(), rival_of_old.clone()],
            ];
            if !cycle.is_multiple_of(2) {
                pairs.iter_mut().for_each(|pair| pair.reverse());
            }
            rounds.push(pairs);
        }
    }
    rounds
}

/// Starts a thread that compares the first two players of a league, and ends the league when it is
/// decided.
pub fn follow(manager: &Arc<Manager>, document: &Arc<Document>) {
    let (manager, document) = (Arc::clone(manager), Arc::clone(document));
    spawn("comparison", move || compare(&manager, &document));
}

fn compare(manager: &Manager, document: &Document) {
    let terminal = manager.terminal;
    let start = Instant::now();
    let mut cycles = 0;
    loop {
        // Look at all cycles that are over.
        let view = document.newest(manager);
        while let Some(comparison) = Comparison::of(&view, cycles) {
            if let Some(result) = comparison.result(start) {
                terminal.print_line(&result);
                manager.ends_early.store(true, Ordering::SeqCst);
                manager.store.notify_all();
                return;
            }

            if cycles == 0 {
                terminal.print_line(&comparison.heading());
            } else if cycles.is_power_of_two() && cycles >= 8 {
                terminal.print_line(&comparison.progress());
            }
            cycles += 1;
        }

        if view.status == LeaguePhase::Completed {
            return;
        }
        manager.store.wait(CHECK_INTERVAL, League::is_over);
    }
}

/// The comparison after some cycles.
struct Comparison<'a> {
    cycles: usize,
    new: &'a AgentView,
    old: &'a AgentView,
    rivals: Vec<&'a AgentView>,
    /// The kind of points that are compared.
    unit: &'static str,
    /// One entry for each rival in each cycle.
    entries: Vec<Entry<'a>>,
}

/// The points of both players against a rival in one cycle.
struct Entry<'a> {
    rival: &'a AgentView,
    new: f64,
    old: f64,
}

impl<'a> Comparison<'a> {
    /// Returns the comparison after that many cycles; none unless all their matches have a result.
    fn of(view: &'a LeagueView, cycles: usize) -> Option<Comparison<'a>> {
        if view.status == LeaguePhase::Waiting {
            return None;
        }
        let mut agents = view.agents.iter();
        let mut players = agents
            .by_ref()
            .filter(|agent| agent.kind == AgentKind::Player);
        let (new, old) = (players.next()?, players.next()?);
        let rivals: Vec<&AgentView> = players.collect();

        // Collect the points, cycle by cycle.
        let values = pair_values_in(view);
        let mut entries = Vec::new();
        let rounds = view.rounds.get(..cycles * rivals.len())?;
        for cycle in rounds.chunks(rivals.len().max(1)) {
            let mut points = BTreeMap::new();
            for the_match in cycle.iter().flat_map(|round| &round.matches) {
                for gain in gains(the_match, &values) {
                    let key = (gain.player, gain.opponent);
                    points.insert(key, gain.expected.unwrap_or(gain.points));
                }
            }

            for rival in &rivals {
                entries.push(Entry {
                    rival,
                    new: *points.get(&(&new.id, &rival.id))?,
                    old: *points.get(&(&old.id, &rival.id))?,
                });
            }
        }

        Some(Comparison {
            cycles,
            new,
            old,
            rivals,
            unit: if values.is_empty() {
                "points a match"
            } else {
                "expected points"
            },
            entries,
        })
    }

    fn heading(&self) -> String {
        let (new, old) = (name(self.new), name(self.old));
        let rivals = self.rivals.len();
        format!("{new} and {old}, each against the same {rivals} rivals, until it is decided")
    }

    fn new_points(&self) -> Sample {
        Sample::of(self.entries.iter().map(|entry| entry.new))
    }

    fn old_points(&self) -> Sample {
        Sample::of(self.entries.iter().map(|entry| entry.old))
    }

    /// Returns the evidence, from -1 to 1. A player that has lost technically is not better.
    fn evidence(&self) -> f64 {
        let differences = self.entries.iter().map(|entry| entry.new - entry.old);
        let evidence = evidence(&differences.collect::<Vec<f64>>(), self.cycles);
        if evidence >= 1.0 && self.new.technical_losses > Some(0) {
            return -1.0;
        }
        evidence.clamp(-1.0, 1.0)
    }

    /// Returns `cycle  16   expected points: ada 1.347, eve 1.321    towards better 24 %`.
    fn progress(&self) -> String {
        let (new, old) = (name(self.new), name(self.old));
        let evidence = self.evidence();
        let side = if evidence < 0.0 {
            "not better"
        } else {
            "better"
        };
        format!(
            "  cycle {:>3}   {}: {new} {:.3}, {old} {:.3}    towards {side} {:.0} %",
            self.cycles,
            self.unit,
            self.new_points().mean,
            self.old_points().mean,
            evidence.abs() * 100.0
        )
    }

    /// Returns the result of a comparison that began at `start`; none while more cycles are needed.
    fn result(&self, start: Instant) -> Option<String> {
        let (new, old) = (name(self.new), name(self.old));
        let evidence = self.evidence();
        let verdict = if evidence == 1.0 {
            format!("{new} is better than {old}")
        } else if evidence == -1.0 {
            format!("{new} is not better than {old}")
        } else if self.cycles < MAX_CYCLES as usize {
            return None;
        } else {
            format!("{new} and {old}: undecided")
        };

        let (progress, by_rival) = (self.progress(), self.by_rival());
        let (unit, new_points, old_points) = (self.unit, self.new_points(), self.old_points());
        let cycles = plural(self.cycles as u32, "cycle");
        let (matches, seconds) = (2 * self.entries.len(), start.elapsed().as_secs_f64());
        Some(format!(
            "{progress}\n\
             {verdict}: {unit} {new_points} against {old_points} ({cycles}, {matches} matches, {seconds:.1} s)\n\
             Such an answer is wrong in at most 5 of 100. \"Not better\" means: not by {DELTA} points a match or more.\n\
             {by_rival}"
        ))
    }

    /// Returns `ada gains most on: even +0.31, alternate +0.22, pattern -0.04`.
    fn by_rival(&self) -> String {
        let mut gains = Vec::new();
        for rival in &self.rivals {
            let entries = self
                .entries
                .iter()
                .filter(|entry| entry.rival.id == rival.id);
            let differences = Sample::of(entries.map(|entry| entry.new - entry.old));
            gains.push((differences.mean, name(rival)));
        }
        gains.sort_by(|(one, _), (other, _)| other.total_cmp(one));

        let mut texts = Vec::new();
        for (gain, rival) in gains {
            texts.push(format!("{rival} {gain:+.2}"));
        }
        let new = name(self.new);
        format!("{new} gains most on: {}", texts.join(", "))
    }
}

fn name(player: &AgentView) -> String {
    sanitize(&player.display_name)
}
