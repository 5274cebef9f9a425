//! How a match ended, and what that is worth in points. GAME_OVER carries a `GameResult`, and
//! MATCH_RESULT_REPORT is made from it, so they always agree.

use super::{Game, Move, MoveMessages, parity};
use crate::protocol::{GameResult, MatchResult, MoveMade, Parity, ResultDetails, ResultStatus};
use crate::values::ByPlayer;
use serde::{Deserialize, Serialize};

/// Points for each result, and how ties are broken: `scoring` in the league file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scoring {
    pub win_points: i32,
    pub draw_points: i32,
    pub loss_points: i32,
    pub technical_loss_points: i32,
    pub tiebreakers: Vec<TieBreak>,
}

/// A rule that decides between players with equal points. The league file has their order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TieBreak {
    Wins,
    HeadToHead,
    Draws,
}

impl Game {
    /// Returns the result of a match in which one player or both failed. `failures` says how, by
    /// seat.
    pub fn forfeit(
        &self,
        players: &[String; 2],
        moves: &[Move],
        failures: &[Option<String>; 2],
    ) -> GameResult {
        let [a, b] = players;
        let (winner, reason) = match failures {
            [Some(how), None] => (Some(b), format!("{a} {how} - {b} wins by default")),
            [None, Some(how)] => (Some(a), format!("{b} {how} - {a} wins by default")),
            [how_a, how_b] => {
                let [how_a, how_b] = [how_a, how_b].map(|how| how.as_deref().unwrap_or_default());
                (None, format!("{a} {how_a}; {b} {how_b} - nobody wins"))
            }
        };
        GameResult {
            winner_player_id: winner.cloned(),
            reason: Some(reason),
            ..self.result_without_winner(players, moves)
        }
    }

    /// Plays reported moves again. Returns the result, or why the report cannot be true.
    pub fn replay(
        &self,
        players: &[String; 2],
        moves: &[Move],
        number: Option<u32>,
    ) -> Result<GameResult, String> {
        // Every move must be legal and in turn.
        for (n, played) in moves.iter().enumerate() {
            let before = &moves[..n];
            if !self.players_to_move(before).contains(&played.seat) {
                let player = &players[played.seat];
                return Err(format!("move {}: it is not {player}'s turn", n + 1));
            }
            if let Err(refusal) = self.parse_move(before, &played.text.clone().into()) {
                return Err(format!("move {}: {}", n + 1, refusal.detail()));
            }
        }

        // The game must be over.
        if let Some(seat) = self.players_to_move(moves).first() {
            return Err(format!(
                "the game is not over: {} is to move",
                players[*seat]
            ));
        }

        // The number must be one that can be drawn.
        let (is_possible, legal) = match &self.number_range {
            Some(range) => {
                let is_possible = number.is_some_and(|number| range.contains(&number));
                (is_possible, format!("{} to {}", range.start(), range.end()))
            }
            None => (number.is_none(), "none".into()),
        };
        if !is_possible {
            let received = number.map_or("no number".into(), |number| number.to_string());
            return Err(format!("drawn_number: got {received}, must be {legal}"));
        }

        Ok(self.judge(players, moves, number))
    }

    /// Returns a technical loss of both players after these moves.
    pub fn result_without_winner(&self, players: &[String; 2], moves: &[Move]) -> GameResult {
        let mut choices = [None; 2];
        let mut others = Vec::new();
        for played in moves {
            match self.messages {
                MoveMessages::Parity => {
                    let mut all = [Parity::Even, Parity::Odd].into_iter();
                    choices[played.seat] = all.find(|choice| choice.as_str() == played.text);
                }
                MoveMessages::Move => others.push(MoveMade {
                    player_id: players[played.seat].clone(),
                    r#move: played.text.clone(),
                }),
            }
        }

        GameResult {
            status: ResultStatus::TechnicalLoss,
            winner_player_id: None,
            drawn_number: None,
            number_parity: None,
            choices: players.iter().cloned().zip(choices).collect(),
            reason: None,
            moves: Some(others).filter(|others| !others.is_empty()),
        }
    }
}

/// Returns alternating moves of player A and player B.
pub fn alternating(texts: &[&str]) -> Vec<Move> {
    let moves = texts.iter().enumerate().map(|(n, text)| Move {
        seat: n % 2,
        text: text.to_string(),
    });
    moves.collect()
}

/// Returns the points of a player for a match.
pub fn points(result: &GameResult, player_id: &str, scoring: &Scoring) -> i32 {
    if result.winner_player_id.as_deref() == Some(player_id) {
        return scoring.win_points;
    }

    match result.status {
        ResultStatus::Win => scoring.loss_points,
        ResultStatus::Draw => scoring.draw_points,
        ResultStatus::TechnicalLoss => scoring.technical_loss_points,
    }
}

/// Returns the result as MATCH_RESULT_REPORT has it.
pub fn match_result(result: &GameResult, scoring: &Scoring) -> MatchResult {
    let players = result.choices.iter();
    let score = players.map(|(id, _)| (id.clone(), points(result, id, scoring)));

    MatchResult {
        winner: result.winner_player_id.clone(),
        score: score.collect(),
        details: ResultDetails {
            drawn_number: result.drawn_number,
            choices: result.choices.clone(),
            moves: result.moves.clone(),
            status: Some(result.status),
            reason: result.reason.clone(),
        },
    }
}

/// Returns the ending of a match: the status of its result; without one the number says it.
pub fn result_status(result: &MatchResult) -> ResultStatus {
    let details = &result.details;
    let status = match (details.drawn_number, &result.winner) {
        (None, _) => ResultStatus::TechnicalLoss,
        (Some(_), None) => ResultStatus::Draw,
        (Some(_), Some(_)) => ResultStatus::Win,
    };
    details.status.unwrap_or(status)
}

/// Returns the result as GAME_OVER has it.
pub fn game_result(result: &MatchResult) -> GameResult {
    let details = result.details.clone();
    GameResult {
        status: result_status(result),
        winner_player_id: result.winner.clone(),
        drawn_number: details.drawn_number,
        number_parity: details.drawn_number.map(parity),
        choices: details.choices,
        reason: details.reason,
        moves: details.moves,
    }
}

/// Returns the moves of a result: its `choices` by seat, then its `moves`.
pub fn moves_by_seat(
    players: &[String; 2],
    choices: &ByPlayer<Option<Parity>>,
    moves: &Option<Vec<MoveMade>>,
) -> Result<Vec<Move>, String> {
    let mut all = Vec::new();
    for (player_id, choice) in choices.iter() {
        if let Some(choice) = choice {
            all.push(Move {
                seat: seat_of(players, player_id)?,
                text: choice.to_string(),
            });
        }
    }
    all.sort_by_key(|played| played.seat);

    for made in moves.iter().flatten() {
        all.push(Move {
            seat: seat_of(players, &made.player_id)?,
            text: made.r#move.clone(),
        });
    }
    Ok(all)
}

fn seat_of(players: &[String; 2], player_id: &String) -> Result<usize, String> {
    let seat = players.iter().position(|player| player == player_id);
    seat.ok_or_else(|| format!("{player_id:?} does not play in this match"))
}
