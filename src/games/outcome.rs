//! How a match ended, what that is worth in points, and how players and manager are told. Pure.

use super::Move;
use super::even_odd::parity;
use crate::protocol::{Details, Ending, GameResult, MatchResult, MoveMade, Parity};
use crate::wire::Wire;
use crate::{object, words};
use std::collections::BTreeMap;

object! {
    /// Points by ending, and what decides between equals: `scoring` in the league file.
    #[derive(Default)]
    Scoring {
        win_points: i32, draw_points: i32, loss_points: i32, technical_loss_points: i32, tiebreakers: Vec<TieBreak>,
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

/// How a match ended that was played to its end, or not, and that somebody won, or not.
pub fn ending(played: bool, won: bool) -> Ending {
    match (played, won) {
        (false, _) => Ending::TechnicalLoss,
        (true, false) => Ending::Draw,
        (true, true) => Ending::Win,
    }
}

/// The points of both seats.
pub fn score(ending: Ending, winner: Option<usize>, scoring: &Scoring) -> [i32; 2] {
    let lost = match ending {
        Ending::TechnicalLoss => scoring.technical_loss_points,
        _ => scoring.loss_points,
    };
    match winner {
        Some(0) => [scoring.win_points, lost],
        Some(_) => [lost, scoring.win_points],
        None if ending == Ending::Draw => [scoring.draw_points; 2],
        None => [lost; 2],
    }
}

impl Outcome {
    /// The points of both seats.
    pub fn score(&self, scoring: &Scoring) -> [i32; 2] {
        score(self.ending, self.winner, scoring)
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
