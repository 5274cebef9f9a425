//! What choices are worth in a game in which both choose at once: a pair of choices before the number is drawn, and a
//! choice that is made at random. A game by turns has no such numbers. Pure.

use crate::games::{self, Game, Move, Scoring, moves};
use std::collections::BTreeMap;

/// Every pair of choices in a game in which both choose at once.
fn pairs(game: &Game) -> Vec<Vec<Move>> {
    if !game.at_once {
        return Vec::new();
    }
    let legal = (game.legal)(&[]);
    let mut pairs = Vec::new();
    for one in &legal {
        for other in &legal {
            pairs.push(moves(&[one, other]));
        }
    }
    pairs
}

/// By pair of choices, as `even odd`: what it is worth to both before the number is drawn. Empty, where none is drawn.
pub type Worth = BTreeMap<String, [f64; 2]>;

/// What each pair of choices is worth in a game.
pub fn by_pair(game_type: &str, scoring: &Scoring) -> Worth {
    let pairs = games::named(game_type).map(|game| (game, pairs(game)));
    let worth = |(game, pairs): (&Game, Vec<Vec<Move>>)| {
        let expected = |pair: Vec<Move>| Some((key(&pair), game.expected(&pair, scoring)?));
        pairs.into_iter().filter_map(expected).collect()
    };
    pairs.map(worth).unwrap_or_default()
}

/// What the choices of a match were worth to both, if a number was drawn.
pub fn of_match(worth: &Worth, drawn: Option<u32>, choices: &[Move]) -> Option<[f64; 2]> {
    worth
        .get(&key(choices))
        .copied()
        .filter(|_| drawn.is_some())
}

/// How a pair of choices is called.
pub fn key(moves: &[Move]) -> String {
    let texts: Vec<&str> = moves.iter().map(|made| &*made.text).collect();
    texts.join(" ")
}

/// The points of both, for everything that can come of a match in which both choose at random, each as likely.
pub fn at_random(game: &Game, scoring: &Scoring) -> Vec<[i32; 2]> {
    let mut all = Vec::new();
    for pair in pairs(game) {
        let numbers: Vec<Option<u32>> = match &game.draws {
            Some(numbers) => numbers.clone().map(Some).collect(),
            None => vec![None],
        };
        for number in numbers {
            let outcome = game.judge(Default::default(), pair.clone(), number);
            all.push(outcome.score(scoring));
        }
    }
    all
}

/// The points per match of whoever chooses at random, against somebody who does so too; none in a game by turns.
pub fn coin(game: &Game, scoring: &Scoring) -> Option<f64> {
    let all = at_random(game, scoring);
    let sum: i32 = all.iter().map(|[points, _]| points).sum();
    (!all.is_empty()).then(|| f64::from(sum) / all.len() as f64)
}
