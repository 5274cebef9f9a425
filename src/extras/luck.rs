//! What a champion's points are worth: how often a league of random choices, with the matches that were played, has a
//! champion with at least as many. Simulated; pure, and always the same for the same matches.
//!
//! Whoever chooses at random gets the same on average, whatever the other does: in Even/Odd, a coin wins a match with
//! chance 1/4, loses with 1/4 and draws with 1/2. Technical losses are no luck of that kind, so they are held as they
//! were. Of a game by turns nothing of the kind can be said.

use crate::extras::worth;
use crate::manager::view::LeagueView;
use crate::program::terminal::counted;
use crate::protocol::Ending;

/// So many matches are drawn, in as many leagues as that makes.
const DRAWN: usize = 6_000_000;
/// The seed of the draws.
const SEED: u64 = 2025;

/// The share of leagues in which somebody has at least `points`. Players are numbered: `held` has the points that each
/// has from technical results, `games` says who meets whom in a match of coins, and `outcomes` what can come of such a
/// match, each as likely: the points of both.
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

/// What the champion's points are worth, in a sentence; none where no match was played, or in a game by turns.
pub fn sentence(view: &LeagueView) -> Option<String> {
    let outcomes = worth::outcomes(&view.league.game_type, &view.league.scoring);
    let outcomes: Vec<[i32; 2]> = outcomes.into_values().flatten().collect();
    let points = view
        .standings
        .first()
        .filter(|_| !outcomes.is_empty())?
        .points;
    let place = |id: &str| view.standings.iter().position(|row| row.player_id == id);
    let (mut held, mut games) = (vec![0; view.standings.len()], Vec::new());
    for game in view.matches().filter(|game| game.ending.is_some()) {
        if game.ending != Some(Ending::TechnicalLoss) {
            games.push([place(&game.player_A_id)?, place(&game.player_B_id)?]);
            continue;
        }
        for (id, points) in game.score.iter().flatten() {
            held[place(id)?] += points;
        }
    }
    let has = counted(points, "point");
    let gift = match held[0] {
        0 => String::new(),
        held if held == points => format!("all of its {has} came from technical losses"),
        held => format!("{held} of its {has} came from technical losses"),
    };
    if games.is_empty() {
        return (!gift.is_empty()).then(|| format!("Luck: {gift}."));
    }
    let told = match gift.is_empty() {
        true => "if all chose at random".into(),
        false => {
            format!("{gift}. With these as they were, and random choices in all other matches")
        }
    };
    let often = often(chance(&held, &games, &outcomes, points));
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
