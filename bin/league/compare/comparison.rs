//! Compares two players: both play against the same rivals, until it is decided which one is
//! better.
//!
//! Players that learn soon agree with a rival or differ from it again and again, so the matches of
//! one pair are not independent of each other. Therefore the comparison is made of blocks of
//! `BLOCK_CYCLES` cycles. Before each block all players are started again without their histories,
//! and only whole blocks are compared. The order of the matches is drawn, and is as likely for one
//! of the two players as for the other.
//!
//! The unit is one rival in one block: the expected points per match of the new player against this
//! rival, less those of the old one (in games that draw no number, the points). Then a sequential
//! probability ratio test decides if the mean of these differences is `DELTA` or 0. Such a test may
//! be made after every block. An ordinary error bar that is looked at after every block would be
//! wrong far too often.

use crate::compare::statistics::{Sample, shown_name};
use crate::show::expected_points::{gains, pair_values_in};
use crate::show::view::{AgentView, LeagueView};
use league::protocol::AgentKind;
use std::collections::BTreeMap;

/// The gain of points per match for which the test looks.
pub const DELTA: f64 = 0.05;
/// Number of cycles after which all players begin again.
pub const BLOCK_CYCLES: usize = 8;
/// The bound of the test, for answers of which at most 3 in 100 are wrong: the logarithm of 97 / 3.
/// The test takes the differences for a normal distribution, which a few blocks are not: of players
/// that were compared with themselves, up to 4 in 100 were called better.
const BOUND: f64 = 3.476_098_685_835_273_3;
/// Minimum number of blocks: before, the variance of the differences is not known.
const MIN_BLOCKS: usize = 3;
/// Maximum number of blocks: after them the comparison ends undecided.
pub const MAX_BLOCKS: usize = 60;
/// Minimum of the variance of the differences, in points squared.
const MIN_VARIANCE: f64 = 0.000_25;

/// Returns the evidence of the differences of whole blocks. From 1 on the new player is better, and
/// gains at least about `DELTA` points a match; from -1 on it is not better. Between the two, more
/// blocks are needed.
pub fn evidence(differences: &[f64], blocks: usize) -> f64 {
    if blocks < MIN_BLOCKS {
        return 0.0;
    }

    let Sample { count, mean, error } = Sample::of(differences.iter().copied());
    let variance = error.powi(2).max(MIN_VARIANCE / count as f64);
    DELTA * (mean - DELTA / 2.0) / variance / BOUND
}

/// Returns the pairings of all rounds: the first two players meet each of the others once a cycle,
/// and no player plays twice in a round. The order of the rivals and the seats are drawn for each
/// cycle.
pub fn pairings(players: &[String], seed: Option<u64>) -> Vec<Vec<[String; 2]>> {
    let [new, old, rivals @ ..] = players else {
        return Vec::new();
    };

    let mut rng = seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
    let mut order: Vec<usize> = (0..rivals.len()).collect();
    let mut rounds = Vec::new();
    for _ in 0..MAX_BLOCKS * BLOCK_CYCLES {
        rng.shuffle(&mut order);
        let distance = rng.usize(1..rivals.len());
        let is_reversed = rng.bool();
        for round in 0..rivals.len() {
            let rival_of_new = &rivals[order[round]];
            let rival_of_old = &rivals[order[(round + distance) % rivals.len()]];
            let mut pairs = vec![
                [new.clone(), rival_of_new.clone()],
                [old.clone(), rival_of_old.clone()],
            ];
            if is_reversed {
                pairs.iter_mut().for_each(|pair| pair.reverse());
            }
            rounds.push(pairs);
        }
    }

    rounds
}

/// Returns the number of blocks that are over when a round begins; none within a block.
pub fn blocks_before(round: u32, players: usize) -> Option<usize> {
    let rounds = rounds_of_block(players);
    let before = round as usize - 1;
    before.is_multiple_of(rounds).then_some(before / rounds)
}

fn rounds_of_block(players: usize) -> usize {
    BLOCK_CYCLES * players.saturating_sub(2).max(1)
}

/// The comparison of two players after some blocks.
pub struct Comparison<'a> {
    blocks: usize,
    new: &'a AgentView,
    old: &'a AgentView,
    rivals: Vec<&'a AgentView>,
    /// The kind of points that are compared.
    unit: &'static str,
    /// One entry for each rival in each block.
    entries: Vec<Entry<'a>>,
}

/// The points per match of both players against a rival in one block.
struct Entry<'a> {
    rival: &'a AgentView,
    new: f64,
    old: f64,
}

impl<'a> Comparison<'a> {
    /// Returns the comparison of the first two players after that many blocks; none unless all
    /// their matches have a result.
    pub fn of(view: &'a LeagueView, blocks: usize) -> Option<Comparison<'a>> {
        let mut agents = view.agents.iter();
        let mut players = agents
            .by_ref()
            .filter(|agent| agent.kind == AgentKind::Player);
        let (new, old) = (players.next()?, players.next()?);
        let rivals: Vec<&AgentView> = players.collect();
        let values = pair_values_in(view);

        let mut entries = Vec::new();
        let rounds = rounds_of_block(rivals.len() + 2);
        for block in view.rounds.get(..blocks * rounds)?.chunks(rounds) {
            // Add up the points of the block by player and opponent.
            let mut points = BTreeMap::new();
            for the_match in block.iter().flat_map(|round| &round.matches) {
                for gain in gains(the_match, &values) {
                    let of_pair: &mut Vec<f64> =
                        points.entry((gain.player, gain.opponent)).or_default();
                    of_pair.push(gain.expected.unwrap_or(gain.points));
                }
            }

            let mean = |player: &AgentView, rival: &AgentView| {
                let of_pair = points.get(&(&player.id, &rival.id))?;
                let is_whole = of_pair.len() == BLOCK_CYCLES;
                is_whole.then(|| Sample::of(of_pair.iter().copied()).mean)
            };
            for rival in &rivals {
                let (new, old) = (mean(new, rival)?, mean(old, rival)?);
                entries.push(Entry { rival, new, old });
            }
        }

        Some(Comparison {
            blocks,
            new,
            old,
            rivals,
            unit: if values.is_empty() {
                "points a match"
            } else {
                "expected points a match"
            },
            entries,
        })
    }

    /// Returns the comparison after all whole blocks of a league; none if the league is no
    /// comparison.
    pub fn newest(view: &'a LeagueView) -> Option<Comparison<'a>> {
        let practice = view.league.practice.as_ref()?;
        let mut rounds = view.rounds.iter();
        let open = rounds.position(|round| round.matches.iter().any(|m| m.ending.is_none()));
        let over = open.unwrap_or(view.rounds.len());
        let blocks = over / rounds_of_block(view.standings.len());
        practice
            .is_comparison
            .then(|| Comparison::of(view, blocks))?
    }

    /// Returns the lines that the terminal shows after a block: the heading before the first one,
    /// how far the comparison is, or its result.
    pub fn news(&self) -> String {
        match self.result() {
            Some(result) => result,
            None if self.blocks == 0 => self.heading(),
            None => self.progress(),
        }
    }

    fn heading(&self) -> String {
        let (new, old) = (shown_name(self.new), shown_name(self.old));
        let rivals = self.rivals.len();
        format!(
            "{new} and {old} play against the same {rivals} rivals, until it is decided.\n\
             After every {BLOCK_CYCLES} cycles all players start again, with nothing learnt."
        )
    }

    fn new_points(&self) -> Sample {
        Sample::of(self.entries.iter().map(|entry| entry.new))
    }

    fn old_points(&self) -> Sample {
        Sample::of(self.entries.iter().map(|entry| entry.old))
    }

    /// Returns the evidence, from -1 to 1.
    fn evidence(&self) -> f64 {
        let differences = self.entries.iter().map(|entry| entry.new - entry.old);
        evidence(&differences.collect::<Vec<f64>>(), self.blocks).clamp(-1.0, 1.0)
    }

    /// Returns `  cycle  16   ada 1.347, eve 1.321   better: 24 %`.
    fn progress(&self) -> String {
        let (new, old) = (shown_name(self.new), shown_name(self.old));
        let evidence = self.evidence();
        let percent = evidence.abs() * 100.0;
        let answer = match evidence {
            _ if self.blocks < MIN_BLOCKS => "too early to say".into(),
            ..0.0 => format!("not better: {percent:.0} %"),
            _ => format!("better: {percent:.0} %"),
        };
        format!(
            "  cycle {:>3}   {new} {:.3}, {old} {:.3}   {answer}",
            self.cycles(),
            self.new_points().mean,
            self.old_points().mean,
        )
    }

    fn cycles(&self) -> usize {
        self.blocks * BLOCK_CYCLES
    }

    /// Returns the answer in one sentence; none while more blocks are needed.
    pub fn verdict(&self) -> Option<String> {
        let (new, old) = (shown_name(self.new), shown_name(self.old));
        match self.evidence() {
            1.0.. => Some(format!("{new} is better than {old}")),
            ..=-1.0 => Some(format!("{new} is not better than {old}")),
            _ if self.blocks == MAX_BLOCKS => Some(format!("{new} and {old}: undecided")),
            _ => None,
        }
    }

    /// Returns the answer with its numbers; none while more blocks are needed.
    fn result(&self) -> Option<String> {
        let (new, old) = (shown_name(self.new), shown_name(self.old));
        let (verdict, by_rival) = (self.verdict()?, self.by_rival());
        let (unit, new_points, old_points) = (self.unit, self.new_points(), self.old_points());
        let matches = 2 * self.entries.len() * BLOCK_CYCLES;
        let cycles = self.cycles();
        Some(format!(
            "\n{verdict} ({cycles} cycles, {matches} matches).\n  \
             {new}: {unit} {new_points}\n  \
             {old}: {unit} {old_points}\n\
             Such an answer is wrong in at most 5 of 100. \"Not better\" means: not by\n\
             {DELTA} points a match or more. A technical loss counts with its points.\n\n\
             {new} gains against\n{by_rival}"
        ))
    }

    /// Returns a line for each rival, with what the new player gains: `  even   +0.31 ± 0.02`.
    fn by_rival(&self) -> String {
        let mut gains = Vec::new();
        for rival in &self.rivals {
            let entries = self
                .entries
                .iter()
                .filter(|entry| entry.rival.id == rival.id);
            let differences = Sample::of(entries.map(|entry| entry.new - entry.old));
            gains.push((differences, shown_name(rival)));
        }

        gains.sort_by(|(one, _), (other, _)| other.mean.total_cmp(&one.mean));

        let mut lines = Vec::new();
        for (Sample { mean, error, .. }, rival) in gains {
            lines.push(format!("  {rival:<17} {mean:+.2} ± {error:.2}"));
        }

        lines.join("\n")
    }
}
