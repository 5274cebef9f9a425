//! What a champion's points are worth: how often a league of random choices, with the matches that were played, has a
//! champion with at least as many. Simulated; pure, and always the same for the same matches.
//!
//! Whoever chooses at random gets the same on average, whatever the other does: in Even/Odd, a coin wins a match with
//! chance 1/4, loses with 1/4 and draws with 1/2. Technical losses are no luck of that kind, so they are held as they
//! were. Of a game by turns nothing of the kind can be said.

use crate::program::terminal::counted;

/// So many matches are drawn, in as many leagues as that makes.
const DRAWN: usize = 6_000_000;
/// The seed of the draws.
const SEED: u64 = 2025;

/// What is held, and what is left to the coins. Players are numbered by their place in the table.
#[derive(Debug, Clone, Default)]
pub struct Lottery {
    /// The points that each player has from technical results.
    pub held: Vec<i32>,
    /// Who meets whom in a match of coins.
    pub games: Vec<[usize; 2]>,
    /// What can come of such a match, each as likely: the points of both.
    pub outcomes: Vec<[i32; 2]>,
}

impl Lottery {
    /// The share of leagues in which somebody has at least `points`.
    pub fn chance(&self, points: i32) -> f64 {
        let leagues = (DRAWN / self.games.len().max(1)).clamp(100, 200_000);
        let mut random = fastrand::Rng::with_seed(SEED);
        let reached = (0..leagues).filter(|_| self.highest(&mut random) >= points);
        reached.count() as f64 / leagues as f64
    }

    /// The most points that somebody has after one league of coins.
    fn highest(&self, random: &mut fastrand::Rng) -> i32 {
        let mut table = self.held.clone();
        for [a, b] in &self.games {
            let [gain_a, gain_b] = self.outcomes[random.usize(..self.outcomes.len())];
            table[*a] += gain_a;
            table[*b] += gain_b;
        }
        table.into_iter().max().unwrap_or(0)
    }

    /// What the champion's points are worth, in a sentence; none where no match was played.
    pub fn sentence(&self, points: i32) -> Option<String> {
        let has = counted(points, "point");
        let gift = match self.held[0] {
            0 => String::new(),
            held if held == points => format!("all of its {has} came from technical losses"),
            held => format!("{held} of its {has} came from technical losses"),
        };
        if self.games.is_empty() {
            return (!gift.is_empty()).then(|| format!("Luck: {gift}."));
        }
        let told = match gift.is_empty() {
            true => "if all chose at random".into(),
            false => {
                format!("{gift}. With these as they were, and random choices in all other matches")
            }
        };
        let often = often(self.chance(points));
        Some(format!(
            "Luck: {told}, somebody would have {has} or more {often}."
        ))
    }
}

fn often(chance: f64) -> String {
    match chance {
        chance if chance >= 0.995 => "in practically every such league".into(),
        chance if chance >= 0.01 => format!("in {:.0} of 100 such leagues", chance * 100.0),
        chance if chance >= 0.001 => format!("in {:.0} of 1000 such leagues", chance * 1000.0),
        _ => "in fewer than 1 of 1000 such leagues".into(),
    }
}
