//! What the league file says of points: what an ending is worth, and what decides between players
//! who have as many.
//!
//! The points of one match are counted in `games/outcome.rs`, the table is sorted in
//! `manager/standings.rs`. Pure.

use crate::{object, words};

object! {
    /// Points by ending, and what decides between equals: `scoring` in the league file.
    #[derive(Default)]
    Scoring {
        win_points: i32, draw_points: i32, loss_points: i32, technical_loss_points: i32,
        tiebreakers: Vec<TieBreak>,
    }
}

words! {
    /// What decides between equal points, in the order of the league file.
    TieBreak { Wins = "wins", HeadToHead = "head_to_head", Draws = "draws", }
}

impl Scoring {
    /// From the most wanted ending to the least.
    pub fn points(&self) -> [i32; 4] {
        [
            self.win_points,
            self.draw_points,
            self.loss_points,
            self.technical_loss_points,
        ]
    }
}
