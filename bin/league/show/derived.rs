//! The fields of `league.json` that are derived from a league's document: expected points,
//! the positions of games by turns, and how far a comparison is. The page, the report, the tables and the season show them; the league is
//! played without them. Pure.

use crate::compare::comparison::Comparison;
use crate::show::expected_points::{PairValues, expected_by_player, pair_values_in};
use crate::show::view::LeagueView;
use league::games;
use serde::Serialize;
use std::collections::BTreeMap;

/// The derived fields of one document, added to its own fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DerivedFields {
    /// The expected points by player. Empty in a game that draws no number.
    pub expected_points: BTreeMap<String, f64>,
    /// The expected points by pair of choices.
    pub worth: PairValues,
    /// The last position by match, as a text, in a game by turns.
    pub positions: BTreeMap<String, String>,
    /// The answer of a comparison, or how far it is.
    pub comparison: Option<String>,
}

impl DerivedFields {
    /// Returns the derived fields of a document.
    pub fn of(view: &LeagueView) -> DerivedFields {
        DerivedFields {
            expected_points: expected_by_player(view),
            worth: pair_values_in(view),
            positions: positions(view),
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
