//! What onlookers count from a league's document, beside what the league itself keeps: what the luck was, who is equal,
//! and what everybody's choices were worth before the draw. Pure.
//!
//! The page, the report, the tables and the season show these figures; the league is played without them.

use crate::extras::{luck, worth};
use crate::games::{self, Move};
use crate::manager::document::{LeagueView, MatchView, RoundView};
use crate::manager::standings::{Record, equals, ranked};
use crate::protocol::{Details, Ending, Progress, Standing};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The figures of one document. They stand beside its fields in `league.json` as it is served.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// By player: the points that its choices were worth before the draw, summed over the matches that were drawn.
    /// Nothing in a game that draws no number.
    pub expected_points: BTreeMap<String, f64>,
    /// By pair of choices, as `even odd`: what it is worth to both before the draw.
    pub worth: BTreeMap<String, [f64; 2]>,
    /// By match of a game by turns: how it stood at the end, as a text.
    pub positions: BTreeMap<String, String>,
    /// The players that no tie-break parts, in groups: their order is decided by id.
    pub equals: Vec<Vec<String>>,
    /// By player: how many places it has gained since the round before, or lost where it is less than 0.
    pub moves: BTreeMap<String, i32>,
    /// What the champion's points are worth, in a sentence, once the league is over.
    pub luck: Option<String>,
}

impl Figures {
    /// The figures of a document.
    pub fn of(view: &LeagueView) -> Figures {
        let is_over = view.status == Progress::Completed;
        Figures {
            expected_points: expected_by_player(view),
            worth: worth_in(view),
            positions: positions(view),
            equals: equal_players(view),
            moves: moves(view),
            luck: if is_over { luck::sentence(view) } else { None },
        }
    }
}

/// The moves of a match in their order; in Even/Odd the choices.
pub fn moves_of(game: &MatchView) -> Vec<Move> {
    let players = [game.player_A_id.clone(), game.player_B_id.clone()];
    let details = Details {
        drawn_number: game.drawn_number,
        choices: game.choices.clone().unwrap_or_default(),
        moves: game.moves.clone(),
        status: None,
        reason: None,
    };
    let mut moves = games::reported(&players, &details).unwrap_or_default();
    if moves.len() == 2 {
        moves.sort_by_key(|made| made.seat);
    }
    moves
}

/// What each pair of choices is worth in the game of a league.
pub fn worth_in(view: &LeagueView) -> BTreeMap<String, [f64; 2]> {
    worth::by_pair(&view.league.game_type, &view.league.scoring)
}

/// What the choices of a match were worth to both, if a number was drawn.
pub fn expected_in(game: &MatchView, worth: &BTreeMap<String, [f64; 2]>) -> Option<[f64; 2]> {
    game.drawn_number?;
    worth.get(&worth::key(&moves_of(game))).copied()
}

/// By player: what its choices were worth in all matches in which a number was drawn.
pub fn expected_by_player(view: &LeagueView) -> BTreeMap<String, f64> {
    let worth = worth_in(view);
    let mut sums = BTreeMap::new();
    if worth.is_empty() {
        return sums;
    }
    for row in &view.standings {
        sums.insert(row.player_id.clone(), 0.0);
    }
    for game in matches(view) {
        let players = [&game.player_A_id, &game.player_B_id];
        let expected = expected_in(game, &worth).unwrap_or_default();
        for (id, expected) in players.into_iter().zip(expected) {
            *sums.entry(id.clone()).or_default() += expected;
        }
    }
    sums
}

/// How the matches of a game by turns stood at their end.
fn positions(view: &LeagueView) -> BTreeMap<String, String> {
    let game = games::named(&view.league.game_type);
    let Some(rules) = game.filter(|game| !game.at_once) else {
        return BTreeMap::new();
    };
    let begun = matches(view).filter(|game| game.moves.is_some());
    let position = |game: &MatchView| {
        let position = (rules.position)(&moves_of(game));
        (game.match_id.clone(), position)
    };
    begun.map(position).collect()
}

/// All matches of the schedule, round by round.
pub fn matches(view: &LeagueView) -> impl Iterator<Item = &MatchView> {
    view.rounds.iter().flat_map(|round| &round.matches)
}

/// The groups of players that are equal by all tie-breaks, but for those of one.
pub fn equal_players(view: &LeagueView) -> Vec<Vec<String>> {
    let mut groups = equal_among(view, view.standings.clone());
    groups.retain(|group| group.len() > 1);
    groups
}

/// The groups of players that are equal by all tie-breaks, the best first, among these rows of the table.
pub fn equal_among(view: &LeagueView, rows: Vec<Standing>) -> Vec<Vec<String>> {
    let ties = &view.league.scoring.tiebreakers;
    let groups = equals(rows, ties, |id, group| {
        points_against(id, group, matches(view))
    });
    let ids = |group: Vec<Standing>| group.into_iter().map(|row| row.player_id).collect();
    groups.into_iter().map(ids).collect()
}

/// The points of a player in those of the matches that it played against a group.
fn points_against<'a>(
    id: &str,
    group: &BTreeSet<String>,
    games: impl Iterator<Item = &'a MatchView>,
) -> i32 {
    let own = games.filter_map(|game| {
        let opponent = match (game.player_A_id == id, game.player_B_id == id) {
            (true, _) => &game.player_B_id,
            (_, true) => &game.player_A_id,
            _ => return None,
        };
        let score = game.score.as_ref()?.get(id);
        score.filter(|_| group.contains(opponent))
    });
    own.sum()
}

/// The places that each player has gained since the newest round that has a result began.
fn moves(view: &LeagueView) -> BTreeMap<String, i32> {
    let has_result =
        |round: &Arc<RoundView>| round.matches.iter().any(|game| game.ending.is_some());
    let newest = view.rounds.iter().rposition(has_result).unwrap_or(0);
    if newest == 0 {
        return BTreeMap::new();
    }
    let before = table_after(view, newest);
    let places = before.into_iter().map(|row| (row.player_id, row.rank));
    let places: BTreeMap<String, u32> = places.collect();
    let gained = view.standings.iter().filter_map(|row| {
        let gained = *places.get(&row.player_id)? as i32 - row.rank as i32;
        (gained != 0).then(|| (row.player_id.clone(), gained))
    });
    gained.collect()
}

/// The table as it stood when so many rounds were over.
fn table_after(view: &LeagueView, rounds: usize) -> Vec<Standing> {
    let games = || {
        view.rounds[..rounds]
            .iter()
            .flat_map(|round| &round.matches)
    };
    let mut rows = BTreeMap::new();
    for row in &view.standings {
        let id = row.player_id.clone();
        rows.insert(id, Record::default().row(&row.player_id));
    }
    for game in games() {
        for (id, points) in game.score.iter().flatten() {
            if let Some(row) = rows.get_mut(id) {
                row.points += points;
                row.wins += u32::from(game.winner.as_ref() == Some(id));
                row.draws += u32::from(game.ending == Some(Ending::Draw));
            }
        }
    }
    let ties = &view.league.scoring.tiebreakers;
    let rows = rows.into_values().collect();
    ranked(rows, ties, |id, group| points_against(id, group, games()))
}
