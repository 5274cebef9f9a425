//! Points, tie-breaks, ranks (R9). Pure.

use crate::{
    game::{self, Scoring},
    protocol::{Ending, MatchResult, Standing},
    words,
};
use std::{cmp::Ordering, collections::BTreeMap};

words! {
    /// What decides between equal points, in the order of the league file.
    TieBreak { Wins = "wins", HeadToHead = "head_to_head", Draws = "draws", }
}

/// A match that counts: who played, and how it ended.
#[derive(Debug, Clone, Copy)]
pub struct Played<'a> {
    /// The ids of both players.
    pub players: [&'a str; 2],
    /// The result as recorded.
    pub result: &'a MatchResult,
}

/// Ids in the order of their numbers: P99 before P100.
pub fn by_number(one: &str, other: &str) -> Ordering {
    (one.len(), one).cmp(&(other.len(), other))
}

/// How a result ended: its own word, or what the number says (R7).
pub fn ending(result: &MatchResult) -> Ending {
    let derived = game::ending(result.details.drawn_number.is_some(), result.winner.is_some());
    result.details.status.unwrap_or(derived)
}

/// The table of `players` (id and name) after the matches played, best first, ranked 1, 2, 3… without gaps.
pub fn table(players: &[(&str, &str)], played: &[Played], scoring: &Scoring, ties: &[TieBreak]) -> Vec<Standing> {
    let mut rows: Vec<Standing> = players.iter().map(|(id, name)| row(id, name, played, scoring)).collect();
    rows.sort_by(|one, other| by_number(&one.player_id, &other.player_id));
    let mut equals = split(rows, |row| row.points.into());
    for tie in ties {
        let by_tie = |group: Vec<Standing>| {
            let ids: Vec<String> = group.iter().map(|row| row.player_id.clone()).collect();
            split(group, |row| match tie {
                TieBreak::Wins => row.wins.into(),
                TieBreak::Draws => -i64::from(row.draws),
                TieBreak::HeadToHead => head_to_head(&row.player_id, &ids, played, scoring),
            })
        };
        equals = equals.into_iter().flat_map(by_tie).collect();
    }
    let mut rows: Vec<Standing> = equals.into_iter().flatten().collect();
    (1..).zip(&mut rows).for_each(|(rank, row)| row.rank = rank);
    rows
}

/// Groups of equals, the highest key first; inside a group the order stays.
fn split(rows: Vec<Standing>, key: impl Fn(&Standing) -> i64) -> Vec<Vec<Standing>> {
    let mut groups = BTreeMap::<_, Vec<Standing>>::new();
    rows.into_iter().for_each(|row| groups.entry(key(&row)).or_default().push(row));
    groups.into_values().rev().collect()
}

/// Points in the matches among those that are equal so far.
fn head_to_head(id: &str, equals: &[String], played: &[Played], scoring: &Scoring) -> i64 {
    let among = |game: &&Played| game.players.iter().all(|player| equals.iter().any(|equal| equal == player));
    let games = played.iter().filter(among).filter(|game| game.players.contains(&id));
    games.map(|game| i64::from(points(game, id, scoring))).sum()
}

fn row(id: &str, name: &str, played: &[Played], scoring: &Scoring) -> Standing {
    let mut row = Standing {
        rank: 0,
        player_id: id.into(),
        display_name: name.into(),
        played: 0,
        wins: 0,
        draws: 0,
        losses: 0,
        points: 0,
    };
    for game in played.iter().filter(|game| game.players.contains(&id)) {
        row.played += 1;
        row.points += points(game, id, scoring);
        match (&game.result.winner, ending(game.result)) {
            (Some(winner), _) if winner == id => row.wins += 1,
            (None, Ending::Draw) => row.draws += 1,
            _ => row.losses += 1, // a technical loss is a loss, also when both lose
        }
    }
    row
}

fn points(game: &Played, id: &str, scoring: &Scoring) -> i32 {
    let seat = |wanted: &str| game.players.iter().position(|player| *player == wanted);
    let winner = game.result.winner.as_deref().and_then(seat);
    let score = game::score(ending(game.result), winner, scoring);
    seat(id).map_or(0, |seat| score[seat])
}
