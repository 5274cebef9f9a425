//! A game played over: whether moves, of which somebody else says that they were made, can have
//! been made, and how the match must then have ended. So the manager need not believe a referee.
//! Pure.

use super::{Game, Move, Outcome};
use crate::protocol::{MoveMade, Parity};
use std::collections::BTreeMap;

/// Moves of player A and player B, one after the other.
pub fn moves(texts: &[&str]) -> Vec<Move> {
    let made = |(n, text): (usize, &&str)| Move {
        seat: n % 2,
        text: text.to_string(),
    };
    texts.iter().enumerate().map(made).collect()
}

/// What each player chose in a match of Even/Odd, as a result says it; nothing for whoever did not
/// choose.
pub type Choices = BTreeMap<String, Option<Parity>>;

/// Who made which move, as a result says it: the choices of Even/Odd, or the moves of any other
/// game.
pub fn made<'a>(
    choices: &'a Choices,
    moves: &'a Option<Vec<MoveMade>>,
) -> impl Iterator<Item = (&'a String, String)> {
    let chosen = |(id, choice): (&'a String, &Option<Parity>)| Some((id, (*choice)?.to_string()));
    let moved = |made: &'a MoveMade| (&made.player_id, made.r#move.clone());
    let moves = moves.iter().flatten().map(moved);
    choices.iter().filter_map(chosen).chain(moves)
}

/// The moves that a result names, in their order; choices, which have none, in the order of the
/// seats.
pub fn reported(
    players: &[String; 2],
    choices: &Choices,
    moves: &Option<Vec<MoveMade>>,
) -> Result<Vec<Move>, String> {
    let seated = |(id, text): (&String, String)| match players.iter().position(|it| it == id) {
        Some(seat) => Ok(Move { seat, text }),
        None => Err(format!("{id:?} does not play in this match")),
    };
    let mut named: Vec<Move> = made(choices, moves).map(seated).collect::<Result<_, _>>()?;
    if moves.is_none() {
        named.sort_by_key(|made| made.seat);
    }
    Ok(named)
}

impl Game {
    /// Plays moves over, of which somebody else says that they were made: the outcome, or what
    /// cannot be true.
    pub fn replay(
        &self,
        players: [String; 2],
        moves: Vec<Move>,
        number: Option<u32>,
    ) -> Result<Outcome, String> {
        for (n, made) in moves.iter().enumerate() {
            let (before, player) = (&moves[..n], &players[made.seat]);
            if !self.asked(before).contains(&made.seat) {
                return Err(format!("move {}: it is not {player}'s turn", n + 1));
            }
            let checked = self.check(before, &made.text.clone().into());
            checked.map_err(|refusal| format!("move {}: {}", n + 1, refusal.explain()))?;
        }
        if let [seat, ..] = self.asked(&moves)[..] {
            return Err(format!(
                "the game is not over: {} is to move",
                players[seat]
            ));
        }
        let (can_be, legal) = match &self.draws {
            Some(numbers) => (
                number.is_some_and(|number| numbers.contains(&number)),
                format!("{} to {}", numbers.start(), numbers.end()),
            ),
            None => (number.is_none(), "none: nothing is drawn".into()),
        };
        if !can_be {
            let came = number.map_or("no number".into(), |number| number.to_string());
            return Err(format!("got {came}, must be {legal}"));
        }
        Ok(self.judge(players, moves, number))
    }
}
