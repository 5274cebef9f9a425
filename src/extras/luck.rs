//! What a champion's points are worth: how often a league of coin-flippers, with the matches that were played, has a
//! champion with at least as many. Simulated; pure, and always the same for the same matches.
//!
//! Whoever flips a coin wins a match with chance 1/4, loses with 1/4 and draws with 1/2, whatever the other does.

use crate::manager::document::{Heading, LeagueView};

/// So many matches are drawn, in as many leagues as that makes; and the seed of the draws.
const DRAWN: usize = 6_000_000;
const SEED: u64 = 2025;

/// The share of leagues of coin-flippers in which somebody has at least `points`; `games` is who met whom, by place.
pub fn chance(
    players: usize,
    games: &[[usize; 2]],
    [win, draw, loss]: [i32; 3],
    points: i32,
) -> f64 {
    let (leagues, mut random) = (
        (DRAWN / games.len().max(1)).clamp(100, 200_000),
        fastrand::Rng::with_seed(SEED),
    );
    let reached = (0..leagues).filter(|_| {
        let (mut table, mut coins) = (vec![0; players], 0);
        for (n, [a, b]) in games.iter().enumerate() {
            coins = if n % 32 == 0 {
                random.u64(..)
            } else {
                coins >> 2
            }; // two coins a match
            let gained =
                [[win, loss], [loss, win], [draw, draw], [draw, draw]][(coins & 3) as usize];
            table[*a] += gained[0];
            table[*b] += gained[1];
        }
        table.iter().any(|sum| *sum >= points)
    });
    reached.count() as f64 / leagues as f64
}

/// What the champion's points are worth, in a sentence; none before the first match.
pub fn sentence(view: &LeagueView) -> Option<String> {
    let place = |id: &str| view.standings.iter().position(|row| row.player_id == id);
    let played = view
        .rounds
        .iter()
        .flat_map(|round| &round.matches)
        .filter(|game| game.ending.is_some());
    let games: Vec<_> = played
        .filter_map(|it| Some([place(&it.player_A_id)?, place(&it.player_B_id)?]))
        .collect();
    let points = view
        .standings
        .iter()
        .map(|row| row.points)
        .max()
        .filter(|_| !games.is_empty())?;
    let Heading {
        win_points,
        draw_points,
        loss_points,
        ..
    } = view.league;
    let often = match chance(
        view.standings.len(),
        &games,
        [win_points, draw_points, loss_points],
        points,
    ) {
        chance if chance >= 0.995 => "in practically every such league".into(),
        chance if chance >= 0.01 => format!("in {:.0} of 100 such leagues", chance * 100.0),
        chance if chance >= 0.001 => format!("in {:.0} of 1000 such leagues", chance * 1000.0),
        _ => "in fewer than 1 of 1000 such leagues".into(),
    };
    Some(format!(
        "Luck: if all flipped coins, somebody would have {points} points or more {often}."
    ))
}
