//! How a match ended, what that is worth in points, and how players and manager are told. Where
//! nobody failed the game makes the `Outcome` (`Game::judge`), else `forfeit` does. GAME_OVER and
//! the report are both made of it, so they say the same. Pure.

use super::Move;
use super::even_odd::parity;
use super::scoring::Scoring;
use crate::protocol::{Details, Ending, GameResult, MatchResult, MoveMade, Parity};
use crate::wire::Wire;
use std::collections::BTreeMap;

/// A match that has ended.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Outcome {
    pub players: [String; 2],
    /// All that were made, also before somebody failed.
    pub moves: Vec<Move>,
    pub number: Option<u32>,
    pub ending: Ending,
    /// The winner's seat.
    pub winner: Option<usize>,
    pub reason: String,
}

/// Somebody failed: the other wins, or nobody. `failures` says how, by seat.
pub fn forfeit(players: [String; 2], moves: Vec<Move>, failures: [Option<String>; 2]) -> Outcome {
    let [a, b] = &players;
    let (winner, reason) = match failures {
        [Some(how), None] => (Some(1), format!("{a} {how} - {b} wins by default")),
        [None, Some(how)] => (Some(0), format!("{b} {how} - {a} wins by default")),
        [one, other] => {
            let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
            (None, format!("{a} {one}; {b} {other} - nobody wins"))
        }
    };
    Outcome {
        players,
        moves,
        number: None,
        ending: Ending::TechnicalLoss,
        winner,
        reason,
    }
}

impl Outcome {
    /// The points of both seats.
    pub fn score(&self, scoring: &Scoring) -> [i32; 2] {
        let lost = match self.ending {
            Ending::TechnicalLoss => scoring.technical_loss_points,
            _ => scoring.loss_points,
        };
        match self.winner {
            Some(0) => [scoring.win_points, lost],
            Some(_) => [lost, scoring.win_points],
            None if self.ending == Ending::Draw => [scoring.draw_points; 2],
            None => [lost; 2],
        }
    }

    /// What the players are told.
    pub fn for_players(&self) -> GameResult {
        let choice = |seat: usize| {
            let made = self.moves.iter().find(|it| it.seat == seat)?;
            Parity::read(&made.text.clone().into()).ok()
        };
        let [a, b] = self.players.clone();
        let choices = BTreeMap::from([(a, choice(0)), (b, choice(1))]);
        // Every game but Even/Odd has no field of its own for its moves.
        let has_none = choices.values().all(Option::is_none);
        let played = |it: &Move| MoveMade {
            player_id: self.players[it.seat].clone(),
            r#move: it.text.clone(),
        };
        let moves: Vec<MoveMade> = self.moves.iter().map(played).collect();
        GameResult {
            status: self.ending,
            winner_player_id: self.winner.map(|seat| self.players[seat].clone()),
            drawn_number: self.number,
            number_parity: self.number.map(parity),
            choices,
            moves: (has_none && !moves.is_empty()).then_some(moves),
            reason: Some(self.reason.clone()),
        }
    }

    /// What the manager is told.
    pub fn for_manager(&self, scoring: &Scoring) -> MatchResult {
        let told = self.for_players();
        let score = self.players.iter().cloned().zip(self.score(scoring));
        MatchResult {
            winner: told.winner_player_id,
            score: score.collect(),
            details: Details {
                drawn_number: told.drawn_number,
                choices: told.choices,
                moves: told.moves,
                status: Some(told.status),
                reason: told.reason,
            },
        }
    }
}
