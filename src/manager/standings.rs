//! The table: who has how many points, and who stands before whom.
//!
//! The league adds every recorded result to the `PlayerStats` of both players, so the sums are
//! always there. (`check_report` lets no match be recorded twice.) `rank_groups` sorts the rows of
//! the table, first by points. Players with equal points form a group, and each tie-break of the
//! league file in turn splits the groups. Players that are equal by all of them are sorted by id.

use crate::games::{TieBreak, result_status};
use crate::protocol::{MatchResult, Parity, Record, ResultStatus, Standing};
use crate::values::ByPlayer;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// Compares ids by their numbers: P99 comes before P100.
pub fn compare_ids_by_number(a: &str, b: &str) -> Ordering {
    (a.len(), a).cmp(&(b.len(), b))
}

/// The number of times that a player made each choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ChoiceCounts {
    /// Even.
    even: u32,
    /// Odd.
    odd: u32,
}

/// The results of a player, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PlayerStats {
    pub record: Record,
    pub points: i32,
    pub technical_losses: u32,
    pub choices: ChoiceCounts,
    /// True if the player lost its last match technically.
    pub is_suspended: bool,
}

impl PlayerStats {
    /// Returns the number of matches.
    pub fn matches_played(&self) -> u32 {
        self.record.wins + self.record.draws + self.record.losses
    }

    /// Counts a result.
    pub fn add(&mut self, player_id: &str, result: &MatchResult) {
        let has_won = result.winner.as_deref() == Some(player_id);
        let status = result_status(result);
        self.points += result.score.get(player_id).unwrap_or(&0);
        self.is_suspended = status == ResultStatus::TechnicalLoss && !has_won;
        self.technical_losses += u32::from(self.is_suspended);

        if has_won {
            self.record.wins += 1;
        } else if status == ResultStatus::Draw {
            self.record.draws += 1;
        } else {
            self.record.losses += 1; // a technical loss is a loss, also if both players lose
        }

        match result.details.choices.get(player_id) {
            Some(Some(Parity::Even)) => self.choices.even += 1,
            Some(Some(Parity::Odd)) => self.choices.odd += 1,
            _ => {}
        }
    }
}

/// Returns the rows in groups, the best first. The players of a group are equal in points and by
/// all `tiebreakers`, and sorted by id. `scores` are the points of all matches, for `head_to_head`.
pub fn rank_groups(
    mut rows: Vec<Standing>,
    tiebreakers: &[TieBreak],
    scores: &[&ByPlayer<i32>],
) -> Vec<Vec<Standing>> {
    rows.sort_by(|a, b| compare_ids_by_number(&a.player_id, &b.player_id));
    let mut groups = split(rows, |row| row.points);

    for tiebreaker in tiebreakers {
        let points = match tiebreaker {
            TieBreak::HeadToHead => points_among_equals(&groups, scores),
            _ => HashMap::new(),
        };
        let key = |row: &Standing| match tiebreaker {
            TieBreak::Wins => row.wins as i32,
            TieBreak::Draws => -(row.draws as i32), // fewer are better
            TieBreak::HeadToHead => points.get(&row.player_id).copied().unwrap_or(0),
        };
        groups = groups
            .into_iter()
            .flat_map(|group| split(group, key))
            .collect();
    }
    groups
}

/// Returns the points of each player in its matches against players of its own group.
fn points_among_equals(
    groups: &[Vec<Standing>],
    scores: &[&ByPlayer<i32>],
) -> HashMap<String, i32> {
    let mut group_of = HashMap::new();
    for (number, group) in groups.iter().enumerate() {
        if group.len() > 1 {
            group_of.extend(group.iter().map(|row| (row.player_id.as_str(), number)));
        }
    }

    let mut points = HashMap::new();
    for score in scores {
        let mut groups = score.iter().map(|(id, _)| group_of.get(id.as_str()));
        let first = groups.next().flatten();
        if first.is_some() && groups.all(|group| group == first) {
            for (id, won) in score.iter() {
                *points.entry(id.clone()).or_default() += won;
            }
        }
    }
    points
}

/// Splits rows into groups of equal keys, the highest key first; a group keeps the order.
fn split(rows: Vec<Standing>, key: impl Fn(&Standing) -> i32) -> Vec<Vec<Standing>> {
    let mut groups = BTreeMap::<i32, Vec<Standing>>::new();
    for row in rows {
        groups.entry(key(&row)).or_default().push(row);
    }
    groups.into_values().rev().collect()
}
