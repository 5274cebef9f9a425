//! What a champion's points are worth: how often a league of coin-flippers, with the matches that were played, has a
//! champion with at least as many. Simulated; pure, and always the same for the same matches.
//!
//! Whoever flips a coin wins a match with chance 1/4, loses with 1/4 and draws with 1/2, whatever the other does.
//! Technical losses are no luck of that kind, so they are held as they were.

use crate::extras::figures::matches;
use crate::games::Scoring;
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
    /// The points for a win, a draw and a loss.
    pub points: [i32; 3],
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
        let [win, draw, loss] = self.points;
        let outcomes = [[win, loss], [loss, win], [draw, draw], [draw, draw]];
        let mut table = self.held.clone();
        let mut coins = 0;
        for (n, [a, b]) in self.games.iter().enumerate() {
            // A random number has 64 coins, and a match takes two.
            coins = if n % 32 == 0 {
                random.u64(..)
            } else {
                coins >> 2
            };
            let [gain_a, gain_b] = outcomes[(coins & 3) as usize];
            table[*a] += gain_a;
            table[*b] += gain_b;
        }
        table.into_iter().max().unwrap_or(0)
    }
}

/// What the champion's points are worth, in a sentence. None where no match was played, or where one was neither drawn
/// by a number nor lost technically: then coins say nothing.
pub fn sentence(view: &LeagueView) -> Option<String> {
    let champion = view.standings.first()?;
    let place = |id: &str| view.standings.iter().position(|row| row.player_id == id);
    let Scoring {
        win_points,
        draw_points,
        loss_points,
        ..
    } = view.league.scoring;
    let mut lottery = Lottery {
        held: vec![0; view.standings.len()],
        games: Vec::new(),
        points: [win_points, draw_points, loss_points],
    };
    for game in matches(view).filter(|game| game.ending.is_some()) {
        let players = [place(&game.player_A_id)?, place(&game.player_B_id)?];
        if game.drawn_number.is_some() {
            lottery.games.push(players);
        } else if game.ending == Some(Ending::TechnicalLoss) {
            for (id, points) in game.score.iter().flatten() {
                lottery.held[place(id)?] += points;
            }
        } else {
            return None;
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
    let told = match gift.is_empty() {
        true => "if all flipped coins".to_string(),
        false => format!("{gift}. With these as they were, and coins for all other matches"),
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
