//! The fields of `league.json` that are derived from a league's document: luck, players that are
//! equal, expected points. The page, the report, the tables and the season show them; the league is
//! played without them. Pure.
//!
//! The champion's luck is how often a league of random choices, with the matches that were played,
//! has a champion with at least as many points. It is simulated, and always the same for the same
//! matches. A player that chooses at random gets the same on average against every opponent: in
//! Even/Odd it wins a match with chance 1/4, loses with 1/4 and draws with 1/2. Technical losses
//! are no luck of that kind, so they are kept as they were. A game by turns has no such chances.

use crate::page::expected_points::{PairValues, expected_by_player, outcomes, pair_values_in};
use crate::page::view::LeagueView;
use crate::practice::comparison::Comparison;
use league::games;
use league::program::terminal::{plural, sanitize};
use league::protocol::{LeaguePhase, ResultStatus};
use league::values::ByPlayer;
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of matches that are simulated in all leagues together.
const SIMULATED_MATCHES: usize = 6_000_000;
const SEED: u64 = 2025;

/// The derived fields of one document, added to its own fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DerivedFields {
    /// The expected points by player. Empty in a game that draws no number.
    pub expected_points: BTreeMap<String, f64>,
    /// The expected points by pair of choices.
    pub worth: PairValues,
    /// The last position by match, as a text, in a game by turns.
    pub positions: BTreeMap<String, String>,
    /// A sentence about the champion's luck, once the league is over.
    pub luck: Option<String>,
    /// The answer of a comparison, or how far it is.
    pub comparison: Option<String>,
}

impl DerivedFields {
    /// Returns the derived fields of a document.
    pub fn of(view: &LeagueView) -> DerivedFields {
        let is_over = view.status == LeaguePhase::Completed;
        DerivedFields {
            expected_points: expected_by_player(view),
            worth: pair_values_in(view),
            positions: positions(view),
            luck: if is_over { luck(view) } else { None },
            comparison: Comparison::newest(view).map(|comparison| comparison.news()),
        }
    }
}

/// Returns the last positions of the matches of a game by turns.
fn positions(view: &LeagueView) -> BTreeMap<String, String> {
    let mut positions = BTreeMap::new();
    let game = games::find(&view.league.game_type);
    let Some(game) = game.filter(|game| !game.simultaneous) else {
        return positions;
    };

    for the_match in view.matches() {
        if the_match.moves.is_some() {
            let position = (game.position)(&the_match.played());
            positions.insert(the_match.match_id.clone(), position);
        }
    }
    positions
}

/// Returns the share of leagues in which some player gets at least `points`. Players are numbers:
/// `technical_points` has the points of each for technical results, `pairings` the players of each
/// other match, and `outcomes` the points of both for each result of such a match, all with the
/// same chance.
pub fn chance(
    technical_points: &[i32],
    pairings: &[[usize; 2]],
    outcomes: &[[i32; 2]],
    points: i32,
) -> f64 {
    let leagues = (SIMULATED_MATCHES / pairings.len().max(1)).clamp(100, 200_000);
    let mut random = fastrand::Rng::with_seed(SEED);

    let mut reached = 0;
    for _ in 0..leagues {
        let mut table = technical_points.to_vec();
        for [a, b] in pairings {
            let [points_a, points_b] = outcomes[random.usize(..outcomes.len())];
            table[*a] += points_a;
            table[*b] += points_b;
        }

        if table.iter().any(|sum| *sum >= points) {
            reached += 1;
        }
    }
    f64::from(reached) / leagues as f64
}

/// Returns a sentence about the champion's luck; none for a game by turns.
fn luck(view: &LeagueView) -> Option<String> {
    let outcomes = outcomes(&view.league.game_type, &view.league.scoring);
    let outcomes: Vec<[i32; 2]> = outcomes.into_values().flatten().collect();
    if outcomes.is_empty() {
        return None;
    }
    let champion = view.standings.first()?;

    // Keep the technical results as they were.
    let mut technical_points = vec![0; view.standings.len()];
    let mut pairings = Vec::new();
    for the_match in view.matches() {
        match the_match.ending {
            None => {}
            Some(ResultStatus::TechnicalLoss) => {
                for (player_id, points) in the_match.score.iter().flat_map(ByPlayer::iter) {
                    technical_points[position(view, player_id)?] += points;
                }
            }
            Some(_) => pairings.push([
                position(view, &the_match.player_A_id)?,
                position(view, &the_match.player_B_id)?,
            ]),
        }
    }

    // Write the sentence.
    let points = plural(champion.points, "point");
    let condition = match technical_points[0] {
        0 => "if all chose at random".into(),
        technical => format!(
            "{technical} of the {points} of {} came from technical losses. \
             With these as they were, and random choices in all other matches",
            sanitize(&champion.display_name)
        ),
    };
    let chance = chance(&technical_points, &pairings, &outcomes, champion.points);
    let share = if chance < 0.01 {
        "fewer than 1".into()
    } else {
        format!("about {:.0}", chance * 100.0)
    };
    Some(format!(
        "Luck: {condition}, a player would have {points} or more in {share} of 100 such leagues."
    ))
}

/// Returns the position of a player in the table.
fn position(view: &LeagueView, player_id: &str) -> Option<usize> {
    let mut rows = view.standings.iter();
    rows.position(|row| row.player_id == player_id)
}
