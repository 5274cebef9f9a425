//! Expected points: the points that the choices of a match bring on average, before the number is
//! drawn. The draw is luck, so they say more about a player than its points. Pure.
//!
//! They exist in games in which both players choose at once and a number is drawn then. A game by
//! turns has none.

use crate::show::view::{LeagueView, MatchView};
use league::games::{self, Move, Scoring, alternating};
use std::collections::BTreeMap;

/// By pair of choices, such as `even odd`: the expected points of both players. Empty if the game
/// draws no number.
pub type PairValues = BTreeMap<String, [f64; 2]>;

/// Returns the points of both players by pair of choices, such as `even odd`: one entry for each
/// number that can be drawn, or a single one. Empty for a game by turns.
pub fn outcomes(game_type: &str, scoring: &Scoring) -> BTreeMap<String, Vec<[i32; 2]>> {
    let mut outcomes = BTreeMap::new();
    let Some(game) = games::find(game_type).filter(|game| game.simultaneous) else {
        return outcomes;
    };

    let players = ["A", "B"].map(String::from);
    let moves = (game.legal_moves)(&[]);
    for one in &moves {
        for other in &moves {
            let pair = alternating(&[one, other]);

            let mut points = Vec::new();
            for number in game.number_range.clone().unwrap_or(0..=0) {
                let result = game.judge(&players, &pair, Some(number));
                let players = players.each_ref();
                points.push(players.map(|player| games::points(&result, player, scoring)));
            }
            outcomes.insert(pair_name(&pair), points);
        }
    }

    outcomes
}

/// Returns the average points of both players.
fn mean(outcomes: &[[i32; 2]]) -> [f64; 2] {
    let mut sums = [0, 0];
    for points in outcomes {
        sums[0] += points[0];
        sums[1] += points[1];
    }

    sums.map(|sum| f64::from(sum) / outcomes.len() as f64)
}

/// Returns the expected points of each pair of choices.
pub fn pair_values(game_type: &str, scoring: &Scoring) -> PairValues {
    let mut values = PairValues::new();
    for (pair, points) in outcomes(game_type, scoring) {
        if points.len() > 1 {
            values.insert(pair, mean(&points));
        }
    }

    values
}

/// Returns the expected points of each pair of choices in the game of a league.
pub fn pair_values_in(view: &LeagueView) -> PairValues {
    pair_values(&view.league.game_type, &view.league.scoring)
}

/// Returns the name of a pair of choices.
pub fn pair_name(moves: &[Move]) -> String {
    let texts: Vec<&str> = moves.iter().map(|played| &*played.text).collect();
    texts.join(" ")
}

/// Returns the points per match of a player that chooses at random, against another one; none for a
/// game by turns.
pub fn coin_points(game_type: &str, scoring: &Scoring) -> Option<f64> {
    let outcomes = outcomes(game_type, scoring).into_values();
    let all: Vec<[i32; 2]> = outcomes.flatten().collect();
    (!all.is_empty()).then(|| mean(&all)[0])
}

/// Returns the expected points of both players of a match, if a number was drawn.
pub fn expected_in_match(the_match: &MatchView, values: &PairValues) -> Option<[f64; 2]> {
    the_match.drawn_number?;
    values.get(&pair_name(&the_match.played())).copied()
}

/// The points of one player for a match.
#[derive(Debug, Clone)]
pub struct Gain<'a> {
    pub player: &'a String,
    pub opponent: &'a String,
    /// The points for the result.
    pub points: f64,
    /// The expected points, if a number was drawn.
    pub expected: Option<f64>,
}

/// Returns the points of both players for a match; nothing while it has no result.
pub fn gains<'a>(the_match: &'a MatchView, values: &PairValues) -> Vec<Gain<'a>> {
    let Some(score) = &the_match.score else {
        return Vec::new();
    };

    let expected = expected_in_match(the_match, values);
    let players = [&the_match.player_A_id, &the_match.player_B_id];

    let mut gains = Vec::new();
    for seat in [0, 1] {
        let player = players[seat];
        gains.push(Gain {
            player,
            opponent: players[1 - seat],
            points: score.get(player).copied().map_or(0.0, f64::from),
            expected: expected.map(|both| both[seat]),
        });
    }

    gains
}

/// Returns the sum of the expected points of each player over all matches in which a number was
/// drawn. Empty for a game without numbers.
pub fn expected_by_player(view: &LeagueView) -> BTreeMap<String, f64> {
    let values = pair_values_in(view);
    let mut sums = BTreeMap::new();
    if values.is_empty() {
        return sums;
    }

    for row in &view.standings {
        sums.insert(row.player_id.clone(), 0.0);
    }

    for the_match in view.matches() {
        for gain in gains(the_match, &values) {
            if let Some(sum) = sums.get_mut(gain.player) {
                *sum += gain.expected.unwrap_or_default();
            }
        }
    }

    sums
}
