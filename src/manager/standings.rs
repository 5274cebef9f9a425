//! Points, tie-breaks, ranks. Pure.
//!
//! `add` counts a result in a player's row, once; `ranked` sorts the rows. The league keeps the rows and asks for
//! the order only when somebody looks: see `League::table`.

use crate::games::{self, Scoring, TieBreak};
use crate::protocol::{Ending, MatchResult, Standing};
use std::{cmp::Ordering, collections::BTreeMap, collections::BTreeSet};

/// Ids in the order of their numbers: P99 before P100.
pub fn by_number(one: &str, other: &str) -> Ordering {
    (one.len(), one).cmp(&(other.len(), other))
}

/// How a result ended: its own word, or what the number says.
pub fn ending(result: &MatchResult) -> Ending {
    let derived = games::ending(
        result.details.drawn_number.is_some(),
        result.winner.is_some(),
    );
    result.details.status.unwrap_or(derived)
}

/// Whether a player lost that match technically.
pub fn lost_technically(player_id: &str, result: &MatchResult) -> bool {
    ending(result) == Ending::TechnicalLoss && result.winner.as_deref() != Some(player_id)
}

/// The points of both seats.
pub fn points(players: &[String; 2], result: &MatchResult, scoring: &Scoring) -> [i32; 2] {
    let winner = result
        .winner
        .as_ref()
        .and_then(|id| players.iter().position(|player| player == id));
    games::score(ending(result), winner, scoring)
}

/// The row of a player that has not played yet.
pub fn empty_row(id: &str, name: &str) -> Standing {
    let (player_id, display_name) = (id.into(), name.into());
    Standing {
        rank: 0,
        player_id,
        display_name,
        played: 0,
        wins: 0,
        draws: 0,
        losses: 0,
        points: 0,
    }
}

/// The heads of a table as people read it.
pub const HEADS: [&str; 8] = [
    "Rank", "Id  ", "Player", "Played", "Wins", "Draws", "Losses", "Points",
];

/// A row of it.
pub fn cells(row: &Standing) -> [String; 8] {
    let [rank, played, wins, draws, losses] =
        [row.rank, row.played, row.wins, row.draws, row.losses].map(|n| n.to_string());
    [
        rank,
        row.player_id.clone(),
        row.display_name.clone(),
        played,
        wins,
        draws,
        losses,
        row.points.to_string(),
    ]
}

/// Counts a result in a player's row, with the points that it brought when it was recorded.
pub fn add(row: &mut Standing, result: &MatchResult) {
    row.played += 1;
    row.points += result
        .score
        .get(&row.player_id)
        .copied()
        .unwrap_or_default();
    match (&result.winner, ending(result)) {
        (Some(winner), _) if *winner == row.player_id => row.wins += 1,
        (None, Ending::Draw) => row.draws += 1,
        _ => row.losses += 1, // a technical loss is a loss, also when both lose
    }
}

/// The rows, best first, ranked 1, 2, 3… without gaps: by points, then by each of `ties`, then by id. `against` gives
/// the points of a player in its matches against a group.
pub fn ranked(
    mut rows: Vec<Standing>,
    ties: &[TieBreak],
    against: impl Fn(&str, &BTreeSet<String>) -> i32,
) -> Vec<Standing> {
    rows.sort_by(|one, other| by_number(&one.player_id, &other.player_id));
    let mut equals = split(rows, |row| row.points);
    for tie in ties {
        let by_tie = |group: Vec<Standing>| match tie {
            TieBreak::Wins => split(group, |row| row.wins),
            TieBreak::Draws => split(group, |row| std::cmp::Reverse(row.draws)),
            TieBreak::HeadToHead => {
                let ids = group.iter().map(|row| row.player_id.clone()).collect();
                split(group, |row| against(&row.player_id, &ids))
            }
        };
        let alone = |group: Vec<Standing>| {
            if group.len() > 1 {
                by_tie(group)
            } else {
                vec![group]
            }
        };
        equals = equals.into_iter().flat_map(alone).collect();
    }
    let mut rows: Vec<Standing> = equals.into_iter().flatten().collect();
    (1..).zip(&mut rows).for_each(|(rank, row)| row.rank = rank);
    rows
}

/// Groups of equals, the highest key first; inside a group the order stays.
fn split<K: Ord>(rows: Vec<Standing>, key: impl Fn(&Standing) -> K) -> Vec<Vec<Standing>> {
    let mut groups = BTreeMap::<K, Vec<Standing>>::new();
    rows.into_iter()
        .for_each(|row| groups.entry(key(&row)).or_default().push(row));
    groups.into_values().rev().collect()
}
