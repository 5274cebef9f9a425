//! What a champion's points are worth: how often a league of random choices, with the matches that
//! were played, has a champion with at least as many. Simulated; pure, and always the same for the
//! same matches.
//!
//! Whoever chooses at random gets the same on average, whatever the other does: in Even/Odd, a coin
//! wins a match with chance 1/4, loses with 1/4 and draws with 1/2. Technical losses are no luck of
//! that kind, so they are held as they were. Of a game by turns nothing of the kind can be said.

use league::program::terminal::plural;

/// So many matches are drawn, in as many leagues as that makes.
const DRAWN: usize = 6_000_000;
/// The seed of the draws.
const SEED: u64 = 2025;

/// The share of leagues in which somebody has at least `points`. Players are numbered: `held` has
/// the points that each has from technical results, `games` says who meets whom in a match of
/// coins, and `outcomes` what can come of such a match, each as likely: the points of both.
pub fn chance(held: &[i32], games: &[[usize; 2]], outcomes: &[[i32; 2]], points: i32) -> f64 {
    let leagues = (DRAWN / games.len().max(1)).clamp(100, 200_000);
    let mut random = fastrand::Rng::with_seed(SEED);
    let reached = (0..leagues).filter(|_| {
        let mut table = held.to_vec();
        for [a, b] in games {
            let [gain_a, gain_b] = outcomes[random.usize(..outcomes.len())];
            table[*a] += gain_a;
            table[*b] += gain_b;
        }
        table.iter().any(|own| *own >= points)
    });
    reached.count() as f64 / leagues as f64
}

/// What the champion's points are worth, in a sentence. The champion is the first of those whose
/// points from technical results are `held`.
pub fn sentence(held: &[i32], games: &[[usize; 2]], outcomes: &[[i32; 2]], points: i32) -> String {
    let has = plural(points, "point");
    let told = match held[0] {
        0 => "if all chose at random".into(),
        held => format!(
            "{held} of its {has} came from technical losses. \
             With these as they were, and random choices in all other matches"
        ),
    };
    let often = match chance(held, games, outcomes, points) {
        chance if chance < 0.01 => "fewer than 1".into(),
        chance => format!("about {:.0}", chance * 100.0),
    };
    format!("Luck: {told}, somebody would have {has} or more in {often} of 100 such leagues.")
}
