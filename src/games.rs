//! Even/Odd: what may be chosen, what is drawn, who wins. Pure.

use crate::protocol::{Code, Details, Ending, GameResult, MatchResult, Parity, Refusal};
use crate::wire::Wire;
use crate::{object, words};
use serde_json::Value;
use std::collections::BTreeMap;

/// The smallest and the largest number that can be drawn.
pub const NUMBERS: std::ops::RangeInclusive<u32> = 1..=10;

object! {
    /// Points by ending, and what decides between equals: `scoring` in the league file.
    Scoring {
        win_points: i32, draw_points: i32, loss_points: i32, technical_loss_points: i32, tiebreakers: Vec<TieBreak>,
    }
}

words! {
    /// What decides between equal points, in the order of the league file.
    TieBreak { Wins = "wins", HeadToHead = "head_to_head", Draws = "draws", }
    /// The only game there is.
    GameType { EvenOdd = "even_odd", }
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

/// Judges a choice as it came: exactly `"even"` or `"odd"`, else E004.
pub fn choice(came: &Value) -> Result<Parity, Refusal> {
    Parity::read(came).map_err(|_| {
        let cut: String = came.to_string().chars().take(60).collect();
        let problem = format!("got {cut}, must be \"even\" or \"odd\"");
        Refusal::field(Code::E004, "parity_choice", problem)
            .with(
                "invalid_choice",
                came.as_str()
                    .map(|text| text.chars().take(60).collect())
                    .unwrap_or(cut),
            )
            .with("valid_choices", Parity::schema()["enum"].clone())
    })
}

/// Draws a number, each as likely as any other. With a seed: always the same for the same match.
pub fn draw(seed: Option<u64>, match_id: &str) -> u32 {
    match seed {
        Some(seed) => fastrand::Rng::with_seed(mix(seed, &["draw", match_id])).u32(NUMBERS),
        None => fastrand::u32(NUMBERS),
    }
}

/// One seed out of a seed and some words, the same on every machine and in every build (FNV-1a).
pub fn mix(seed: u64, words: &[&str]) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(
        words
            .iter()
            .flat_map(|word| [word.as_bytes(), &[0]].concat()),
    );
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether a number is even or odd.
pub fn parity(number: u32) -> Parity {
    if number.is_multiple_of(2) {
        Parity::Even
    } else {
        Parity::Odd
    }
}

/// A match that has ended. Without a number nobody drew: somebody failed, as `reason` says.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Outcome {
    pub players: [String; 2],
    pub choices: [Option<Parity>; 2],
    pub number: Option<u32>,
    /// The winner's seat: 0 or 1.
    pub winner: Option<usize>,
    pub reason: String,
}

/// Both have chosen: whose choice is the number's parity wins, unless it is both or neither.
pub fn judge(players: [String; 2], choices: [Parity; 2], number: u32) -> Outcome {
    let drawn = parity(number);
    let winner = match choices.map(|choice| choice == drawn) {
        [true, false] => Some(0),
        [false, true] => Some(1),
        _ => None,
    };
    let reason = match winner {
        Some(n) => format!(
            "{} chose {drawn}, number was {number} ({drawn})",
            players[n]
        ),
        None => {
            let right = if choices[0] == drawn {
                "both correct"
            } else {
                "both incorrect"
            };
            format!(
                "Both chose {}, number was {number} ({drawn}) - {right}",
                choices[0]
            )
        }
    };
    Outcome {
        players,
        choices: choices.map(Some),
        number: Some(number),
        winner,
        reason,
    }
}

/// Somebody failed: the other wins, or nobody. `failures` says how, by seat.
pub fn forfeit(
    players: [String; 2],
    choices: [Option<Parity>; 2],
    failures: [Option<String>; 2],
) -> Outcome {
    let told = |n: usize, how: &str| format!("{} {how}", players[n]);
    let (winner, reason) = match &failures {
        [Some(how), None] => (
            Some(1),
            format!("{} - {} wins by default", told(0, how), players[1]),
        ),
        [None, Some(how)] => (
            Some(0),
            format!("{} - {} wins by default", told(1, how), players[0]),
        ),
        [a, b] => {
            let how = |failure: &Option<String>| failure.clone().unwrap_or_default();
            (
                None,
                format!("{}; {} - nobody wins", told(0, &how(a)), told(1, &how(b))),
            )
        }
    };
    Outcome {
        players,
        choices,
        number: None,
        winner,
        reason,
    }
}

/// How a match ended in which a number was drawn, or not, and somebody won, or not.
pub fn ending(drawn: bool, won: bool) -> Ending {
    match (drawn, won) {
        (false, _) => Ending::TechnicalLoss,
        (true, false) => Ending::Draw,
        (true, true) => Ending::Win,
    }
}

impl Outcome {
    /// WIN, DRAW or TECHNICAL_LOSS.
    pub fn ending(&self) -> Ending {
        ending(self.number.is_some(), self.winner.is_some())
    }

    fn winner_id(&self) -> Option<String> {
        self.winner.map(|n| self.players[n].clone())
    }

    fn choices(&self) -> BTreeMap<String, Option<Parity>> {
        self.players.iter().cloned().zip(self.choices).collect()
    }

    /// What the players are told.
    pub fn for_players(&self) -> GameResult {
        GameResult {
            status: self.ending(),
            winner_player_id: self.winner_id(),
            drawn_number: self.number,
            number_parity: self.number.map(parity),
            choices: self.choices(),
            reason: Some(self.reason.clone()),
            moves: None,
        }
    }

    /// What the manager is told.
    pub fn for_manager(&self, scoring: &Scoring) -> MatchResult {
        let score = self
            .players
            .iter()
            .cloned()
            .zip(score(self.ending(), self.winner, scoring))
            .collect();
        let details = Details {
            drawn_number: self.number,
            choices: self.choices(),
            status: Some(self.ending()),
            reason: Some(self.reason.clone()),
            moves: None,
        };
        MatchResult {
            winner: self.winner_id(),
            score,
            details,
        }
    }
}

/// The points of both seats.
pub fn score(ending: Ending, winner: Option<usize>, scoring: &Scoring) -> [i32; 2] {
    let lost = if ending == Ending::TechnicalLoss {
        scoring.technical_loss_points
    } else {
        scoring.loss_points
    };
    match winner {
        Some(winner) => [0, 1].map(|seat| {
            if seat == winner {
                scoring.win_points
            } else {
                lost
            }
        }),
        None if ending == Ending::Draw => [scoring.draw_points; 2],
        None => [lost; 2],
    }
}
