//! What a champion's points are worth: how often a league of coin-flippers, with the matches that were played, has a
//! champion with at least as many. Pure, and always the same for the same matches.
//!
//! Whoever flips a coin wins a match with chance 1/4, loses with 1/4 and draws with 1/2, whatever the other does.

use crate::game::Scoring;
use crate::manager::league::League;
use std::collections::BTreeMap;

/// As long as the tables that are possible have so few rows in all they are counted.
const EXACT: usize = 80_000;
/// Else so many matches are drawn, in as many leagues as that makes.
const DRAWN: usize = 6_000_000;
/// The seed of the draws.
const SEED: u64 = 2025;

/// The matches that were played, and what there was to win.
#[derive(Debug, Clone, PartialEq)]
pub struct Lottery {
    /// How many players there are.
    pub players: usize,
    /// Who met whom, by the place of each.
    pub games: Vec<[usize; 2]>,
    /// Points by ending.
    pub scoring: Scoring,
}

impl Lottery {
    /// The chance that somebody has at least `points`: exact where few tables are possible, else simulated.
    pub fn chance(&self, points: i32) -> f64 {
        self.exact(points).unwrap_or_else(|| {
            self.simulated(
                points,
                (DRAWN / self.games.len().max(1)).clamp(100, 200_000),
            )
        })
    }

    /// Counted over all tables that are possible; none where they are too many.
    pub fn exact(&self, points: i32) -> Option<f64> {
        let mut tables = BTreeMap::from([(vec![0; self.players], 1.0)]);
        for [a, b] in &self.games {
            let mut next = BTreeMap::new();
            for (table, chance) in tables {
                for (gained, share) in self.endings() {
                    let mut table: Vec<i32> = table.clone();
                    table[*a] += gained[0];
                    table[*b] += gained[1];
                    *next.entry(table).or_insert(0.0) += chance * share;
                }
            }
            if next.len() * self.players > EXACT {
                return None;
            }
            tables = next;
        }
        let reached = tables
            .into_iter()
            .filter(|(table, _)| table.iter().any(|sum| *sum >= points));
        Some(reached.map(|(_, chance)| chance).sum())
    }

    /// The share of so many leagues of coin-flippers.
    pub fn simulated(&self, points: i32, leagues: usize) -> f64 {
        let (mut random, [won, lost, drawn]) = (
            fastrand::Rng::with_seed(SEED),
            self.endings().map(|it| it.0),
        );
        let reached = (0..leagues).filter(|_| {
            let (mut table, mut coins) = (vec![0; self.players], 0);
            for (n, [a, b]) in self.games.iter().enumerate() {
                coins = if n % 32 == 0 {
                    random.u64(..)
                } else {
                    coins >> 2
                }; // two coins a match
                let gained = [won, lost, drawn, drawn][(coins & 3) as usize];
                table[*a] += gained[0];
                table[*b] += gained[1];
            }
            table.iter().any(|sum| *sum >= points)
        });
        reached.count() as f64 / leagues as f64
    }

    /// What both get, and how likely that is.
    fn endings(&self) -> [([i32; 2], f64); 3] {
        let Scoring {
            win_points: win,
            draw_points: draw,
            loss_points: loss,
            ..
        } = self.scoring;
        [
            ([win, loss], 0.25),
            ([loss, win], 0.25),
            ([draw, draw], 0.5),
        ]
    }
}

impl League {
    /// The matches played so far as a lottery, and the points of whoever leads; none before the first.
    pub fn lottery(&self) -> Option<(Lottery, i32)> {
        let table = self.table();
        let places: BTreeMap<&str, usize> = table
            .iter()
            .zip(0..)
            .map(|(row, n)| (&*row.player_id, n))
            .collect();
        let played = self.matches.iter().filter(|game| game.recorded.is_some());
        let games = played.filter_map(|game| {
            Some([
                *places.get(&*game.players[0])?,
                *places.get(&*game.players[1])?,
            ])
        });
        let games: Vec<[usize; 2]> = games.collect();
        let most = table
            .iter()
            .map(|row| row.points)
            .max()
            .filter(|_| !games.is_empty())?;
        Some((
            Lottery {
                players: table.len(),
                games,
                scoring: self.rules.scoring.clone(),
            },
            most,
        ))
    }
}

/// The chance in a sentence.
pub fn sentence(lottery: &Lottery, points: i32) -> String {
    let chance = lottery.chance(points);
    let often = match chance {
        chance if chance >= 0.995 => "in practically every such league".into(),
        chance if chance >= 0.01 => format!("in {:.0} of 100 such leagues", chance * 100.0),
        chance if chance >= 0.001 => format!("in {:.0} of 1000 such leagues", chance * 1000.0),
        _ => "in fewer than 1 of 1000 such leagues".into(),
    };
    format!("Luck: if all flipped coins, somebody would have {points} points or more {often}.")
}
