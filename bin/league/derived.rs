//! The fields of `league.json` that are derived from a league's document: luck, players that are
//! equal, expected points. The page, the report, the tables and the season show them; the league is
//! played without them. Pure.

use crate::expected_points::{PairValues, expected_by_player, pair_values_in};
use crate::luck;
use crate::view::LeagueView;
use league::games;
use league::manager::standings::rank_groups;
use league::protocol::LeaguePhase;
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
    /// Groups of players that are equal by all tie-breaks: only their ids decide the order.
    pub equals: Vec<Vec<String>>,
    /// A sentence about the champion's luck, once the league is over.
    pub luck: Option<String>,
}

impl DerivedFields {
    /// Returns the derived fields of a document.
    pub fn of(view: &LeagueView) -> DerivedFields {
        let is_over = view.status == LeaguePhase::Completed;
        DerivedFields {
            expected_points: expected_by_player(view),
            worth: pair_values_in(view),
            positions: positions(view),
            equals: equal_players(view),
            luck: if is_over { luck::luck(view) } else { None },
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

/// Returns the groups of two or more players that are equal by all tie-breaks.
fn equal_players(view: &LeagueView) -> Vec<Vec<String>> {
    let tiebreakers = &view.league.scoring.tiebreakers;
    let scores: Vec<_> = view
        .matches()
        .filter_map(|the_match| the_match.score.as_ref())
        .collect();

    let mut equals = Vec::new();
    for group in rank_groups(view.standings.clone(), tiebreakers, &scores) {
        if group.len() > 1 {
            equals.push(group.into_iter().map(|row| row.player_id).collect());
        }
    }
    equals
}
