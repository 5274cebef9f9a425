//! What choices are worth in a game in which both choose at once: a pair of choices before the
//! number is drawn, and a choice that is made at random. A game by turns has no such numbers. Pure.

use league::games::Scoring;
use league::games::{self, Move, alternating};
use std::collections::BTreeMap;

/// By pair of choices, as `even odd`, the points of both for each number that can be drawn; where
/// none is drawn, once. Nothing in a game by turns.
pub fn outcomes(game_type: &str, scoring: &Scoring) -> BTreeMap<String, Vec<[i32; 2]>> {
    let mut outcomes = BTreeMap::new();
    let Some(game) = games::find(game_type).filter(|game| game.simultaneous) else {
        return outcomes;
    };
    let numbers = game.number_range.clone().unwrap_or(0..=0);
    let legal = (game.legal_moves)(&[]);
    for one in &legal {
        for other in &legal {
            let pair = alternating(&[one, other]);
            let players = ["A".to_string(), "B".to_string()];
            let points = numbers.clone().map(|number| {
                let result = game.judge(&players, &pair, Some(number));
                players
                    .each_ref()
                    .map(|player| games::points(&result, player, scoring))
            });
            outcomes.insert(key(&pair), points.collect());
        }
    }
    outcomes
}

/// The points of both on average.
fn mean(outcomes: &[[i32; 2]]) -> [f64; 2] {
    let sum = |seat: usize| outcomes.iter().map(|both| both[seat]).sum::<i32>();
    [0, 1].map(|seat| f64::from(sum(seat)) / outcomes.len() as f64)
}

/// By pair of choices, as `even odd`: what it is worth to both before the number is drawn. Empty,
/// where none is drawn.
pub type Worth = BTreeMap<String, [f64; 2]>;

/// What each pair of choices is worth in a game.
pub fn by_pair(game_type: &str, scoring: &Scoring) -> Worth {
    let outcomes = outcomes(game_type, scoring).into_iter();
    let drawn = outcomes.filter(|(_, points)| points.len() > 1);
    drawn.map(|(pair, points)| (pair, mean(&points))).collect()
}

/// What the choices of a match were worth to both, if a number was drawn.
pub fn of_match(worth: &Worth, drawn: Option<u32>, choices: &[Move]) -> Option<[f64; 2]> {
    drawn.and_then(|_| worth.get(&key(choices)).copied())
}

/// How a pair of choices is called.
pub fn key(moves: &[Move]) -> String {
    let texts: Vec<&str> = moves.iter().map(|made| &*made.text).collect();
    texts.join(" ")
}

/// The points per match of whoever chooses at random, against somebody who does so too; none in a
/// game by turns.
pub fn coin(game_type: &str, scoring: &Scoring) -> Option<f64> {
    let outcomes = outcomes(game_type, scoring).into_values();
    let all: Vec<[i32; 2]> = outcomes.flatten().collect();
    (!all.is_empty()).then(|| mean(&all)[0])
}
