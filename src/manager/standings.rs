//! Points, tie-breaks, ranks.
//!
//! A `Career` counts what one player has done, result by result. `ranked` makes the table of all
//! players: first by points, then by each tie-break of the league file in turn. The league sorts
//! its table only when somebody looks.

use crate::games::scoring::TieBreak;
use crate::object;
use crate::protocol::{Ending, MatchResult, Parity, Standing, Tally};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The order of ids by their numbers: P99 comes before P100.
pub fn by_number(one: &str, other: &str) -> Ordering {
    (one.len(), one).cmp(&(other.len(), other))
}

/// How a result ended: its own word, or what the number says.
pub fn ending(result: &MatchResult) -> Ending {
    let derived = match (result.details.drawn_number, &result.winner) {
        (None, _) => Ending::TechnicalLoss,
        (Some(_), None) => Ending::Draw,
        (Some(_), Some(_)) => Ending::Win,
    };
    result.details.status.unwrap_or(derived)
}

/// Whether a player lost that match technically.
pub fn lost_technically(player_id: &str, result: &MatchResult) -> bool {
    ending(result) == Ending::TechnicalLoss && result.winner.as_deref() != Some(player_id)
}

object! {
    /// How often a player chose what.
    #[derive(Copy, Default)]
    ChoiceCounts { even: u32, odd: u32, }
}

/// What a player has done in the league so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Career {
    pub tally: Tally,
    pub points: i32,
    pub technical_losses: u32,
    pub choices: ChoiceCounts,
    /// Whether it lost the match technically that was recorded last.
    pub suspended: bool,
}

impl Career {
    /// Counts a result, with the points that it brought when it was recorded.
    pub fn add(&mut self, player_id: &str, result: &MatchResult) {
        self.points += result.score.get(player_id).copied().unwrap_or_default();
        self.suspended = lost_technically(player_id, result);
        self.technical_losses += u32::from(self.suspended);
        match (&result.winner, ending(result)) {
            (Some(winner), _) if winner == player_id => self.tally.wins += 1,
            (None, Ending::Draw) => self.tally.draws += 1,
            _ => self.tally.losses += 1, // a technical loss is a loss, also when both players lose
        }
        match result.details.choices.get(player_id) {
            Some(Some(Parity::Even)) => self.choices.even += 1,
            Some(Some(Parity::Odd)) => self.choices.odd += 1,
            _ => {}
        }
    }

    /// The row of the table, without a rank.
    pub fn row(&self, player_id: &str, display_name: &str) -> Standing {
        let Tally {
            wins,
            losses,
            draws,
        } = self.tally;
        Standing {
            rank: 0,
            player_id: player_id.into(),
            display_name: display_name.into(),
            played: wins + draws + losses,
            wins,
            draws,
            losses,
            points: self.points,
        }
    }
}

/// The rows, best first, ranked 1, 2, 3… without gaps: by points, then by each of `ties`, then by
/// id.
pub fn ranked(
    rows: Vec<Standing>,
    ties: &[TieBreak],
    against: impl Fn(&str, &BTreeSet<String>) -> i32,
) -> Vec<Standing> {
    let mut table = equals(rows, ties, against).concat();
    for (rank, row) in (1..).zip(&mut table) {
        row.rank = rank;
    }
    table
}

/// The rows in groups, the best first. The players of a group are equal in points and by all of
/// `ties`, and stand in the order of their ids. `against` gives the points of a player in its
/// matches against a group.
pub fn equals(
    mut rows: Vec<Standing>,
    ties: &[TieBreak],
    against: impl Fn(&str, &BTreeSet<String>) -> i32,
) -> Vec<Vec<Standing>> {
    rows.sort_by(|one, other| by_number(&one.player_id, &other.player_id));
    let mut groups = split(rows, |row| row.points);
    for tie in ties {
        let mut parts = Vec::new();
        for group in groups {
            let ids = group.iter().map(|row| row.player_id.clone()).collect();
            parts.extend(match tie {
                _ if group.len() == 1 => vec![group],
                TieBreak::Wins => split(group, |row| row.wins as i32),
                TieBreak::Draws => split(group, |row| -(row.draws as i32)),
                TieBreak::HeadToHead => split(group, |row| against(&row.player_id, &ids)),
            });
        }
        groups = parts;
    }
    groups
}

/// Groups of equals, the highest key first; inside a group the order stays.
fn split(rows: Vec<Standing>, key: impl Fn(&Standing) -> i32) -> Vec<Vec<Standing>> {
    let mut groups = BTreeMap::<i32, Vec<Standing>>::new();
    for row in rows {
        groups.entry(key(&row)).or_default().push(row);
    }
    groups.into_values().rev().collect()
}
