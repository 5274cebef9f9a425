//! What onlookers count from a league's document, beside what the league itself keeps: what the
//! luck was, who is equal, and what everybody's choices were worth before the draw. Pure.
//!
//! The page, the report, the tables and the season show these figures; the league is played without
//! them.

use crate::luck;
use crate::view::{LeagueView, MatchView};
use crate::worth::{self, Worth};
use league::games;
use league::manager::standings::rank_groups;
use league::protocol::{LeaguePhase, ResultStatus, Standing};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of one document. They stand beside its fields in `league.json` as it is served.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// By player: the points that its choices were worth before the draw, summed over the matches
    /// that were drawn. Nothing in a game that draws no number.
    pub expected_points: BTreeMap<String, f64>,
    /// By pair of choices, as `even odd`: what it is worth to both before the draw.
    pub worth: Worth,
    /// By match of a game by turns: how it stood at the end, as a text.
    pub positions: BTreeMap<String, String>,
    /// The players that no tie-break parts, in groups: their order is decided by id.
    pub equals: Vec<Vec<String>>,
    /// What the champion's points are worth, in a sentence, once the league is over.
    pub luck: Option<String>,
}

impl Figures {
    /// The figures of a document.
    pub fn of(view: &LeagueView) -> Figures {
        let is_over = view.status == LeaguePhase::Completed;
        Figures {
            expected_points: expected_by_player(view),
            worth: worth_in(view),
            positions: positions(view),
            equals: equal_players(view),
            luck: if is_over { luck(view) } else { None },
        }
    }
}

/// What each pair of choices is worth in the game of a league.
pub fn worth_in(view: &LeagueView) -> Worth {
    worth::by_pair(&view.league.game_type, &view.league.scoring)
}

/// What a match gave to one of its players.
#[derive(Debug, Clone)]
pub struct Gain<'a> {
    /// The player.
    pub player: &'a String,
    /// The other one.
    pub opponent: &'a String,
    /// The points that the result brought it.
    pub points: f64,
    /// What the choices of both were worth to it before the number was drawn, if one was.
    pub expected: Option<f64>,
}

/// What a match gave to both; nothing while it has no result.
pub fn gains<'a>(game: &'a MatchView, worth: &Worth) -> Vec<Gain<'a>> {
    let Some(score) = &game.score else {
        return Vec::new();
    };
    let expected = worth::of_match(worth, game.drawn_number, &game.played());
    let players = [&game.player_A_id, &game.player_B_id];
    let gain = |seat: usize| Gain {
        player: players[seat],
        opponent: players[1 - seat],
        points: score.get(players[seat]).copied().map_or(0.0, f64::from),
        expected: expected.map(|both| both[seat]),
    };
    vec![gain(0), gain(1)]
}

/// By player: what its choices were worth in all matches in which a number was drawn.
pub fn expected_by_player(view: &LeagueView) -> BTreeMap<String, f64> {
    let worth = worth_in(view);
    let rows = view.standings.iter().filter(|_| !worth.is_empty());
    let mut sums: BTreeMap<_, _> = rows.map(|row| (row.player_id.clone(), 0.0)).collect();
    for gain in view.matches().flat_map(|game| gains(game, &worth)) {
        if let (Some(sum), Some(worth)) = (sums.get_mut(gain.player), gain.expected) {
            *sum += worth;
        }
    }
    sums
}

/// How the matches of a game by turns stood at their end.
fn positions(view: &LeagueView) -> BTreeMap<String, String> {
    let game = games::find(&view.league.game_type);
    let Some(rules) = game.filter(|game| !game.simultaneous) else {
        return BTreeMap::new();
    };
    let begun = view.matches().filter(|game| game.moves.is_some());
    let position = |game: &MatchView| (game.match_id.clone(), (rules.position)(&game.played()));
    begun.map(position).collect()
}

/// What the champion's points are worth; nothing in a game by turns.
fn luck(view: &LeagueView) -> Option<String> {
    let outcomes = worth::outcomes(&view.league.game_type, &view.league.scoring);
    let outcomes: Vec<[i32; 2]> = outcomes.into_values().flatten().collect();
    let champion = view.standings.first().filter(|_| !outcomes.is_empty())?;
    let place = |id: &str| view.standings.iter().position(|row| row.player_id == id);
    let (mut held, mut games) = (vec![0; view.standings.len()], Vec::new());
    for game in view.matches() {
        match game.ending {
            None => {}
            Some(ResultStatus::TechnicalLoss) => {
                for (id, points) in game.score.iter().flatten() {
                    held[place(id)?] += points;
                }
            }
            Some(_) => games.push([place(&game.player_A_id)?, place(&game.player_B_id)?]),
        }
    }
    Some(luck::sentence(&held, &games, &outcomes, champion.points))
}

/// The groups of players that are equal by all tie-breaks, but for those of one.
fn equal_players(view: &LeagueView) -> Vec<Vec<String>> {
    let ties = &view.league.scoring.tiebreakers;
    let scores: Vec<_> = view
        .matches()
        .filter_map(|game| game.score.as_ref())
        .collect();
    let groups = rank_groups(view.standings.clone(), ties, &scores);
    let shared = groups.into_iter().filter(|group| group.len() > 1);
    let ids = |group: Vec<Standing>| group.into_iter().map(|row| row.player_id).collect();
    shared.map(ids).collect()
}
