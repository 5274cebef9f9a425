//! What a champion's points are worth: how often a league of coin-flippers, with the matches that were played, has a
//! champion with at least as many. Simulated; pure, and always the same for the same matches.
//!
//! Whoever chooses at random gets the same on average, whatever the other does: in Even/Odd, a coin wins a match with
//! chance 1/4, loses with 1/4 and draws with 1/2. Technical losses are no luck of that kind, so they are held as they
//! were. Of a game by turns nothing of the kind can be said.

use crate::extras::figures::matches;
use crate::extras::worth::at_random;
use crate::games;
use crate::manager::document::LeagueView;
use crate::program::terminal::counted;
use crate::protocol::Ending;

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
}

/// What the champion's points are worth, in a sentence; none where no match was played, or in a game by turns.
pub fn sentence(view: &LeagueView) -> Option<String> {
    let champion = view.standings.first()?;
    let place = |id: &str| view.standings.iter().position(|row| row.player_id == id);
    let rules = games::named(&view.league.game_type).filter(|game| game.at_once)?;
    let mut lottery = Lottery {
        held: vec![0; view.standings.len()],
        games: Vec::new(),
        outcomes: at_random(rules, &view.league.scoring),
    };
    for game in matches(view).filter(|game| game.ending.is_some()) {
        if game.ending != Some(Ending::TechnicalLoss) {
            let players = [place(&game.player_A_id)?, place(&game.player_B_id)?];
            lottery.games.push(players);
            continue;
        }
        for (id, points) in game.score.iter().flatten() {
            lottery.held[place(id)?] += points;
        }
    }
    let points = view.standings.iter().map(|row| row.points).max()?;
    let has = counted(points, "point");
    let gift = match lottery.held[0] {
        0 => String::new(),
        held if held == champion.points => format!("all of its {has} came from technical losses"),
        held => format!("{held} of its {has} came from technical losses"),
    };
    if lottery.games.is_empty() {
        return (!gift.is_empty()).then(|| format!("Luck: {gift}."));
    }
    let often = often(lottery.chance(points));
    let [all, others] = match rules.draws {
        Some(_) => ["flipped coins", "coins"],
        None => ["chose at random", "random choices"],
    };
    let told = match gift.is_empty() {
        true => format!("if all {all}"),
        false => format!("{gift}. With these as they were, and {others} for all other matches"),
    };
    Some(format!(
        "Luck: {told}, somebody would have {has} or more {often}."
    ))
}

fn often(chance: f64) -> String {
    match chance {
        chance if chance >= 0.995 => "in practically every such league".into(),
        chance if chance >= 0.01 => format!("in {:.0} of 100 such leagues", chance * 100.0),
        chance if chance >= 0.001 => format!("in {:.0} of 1000 such leagues", chance * 1000.0),
        _ => "in fewer than 1 of 1000 such leagues".into(),
    }
}
