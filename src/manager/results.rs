//! What the manager takes, and what it refuses, when a referee reports how a match ended. Pure.
//!
//! `judge` asks whose match it is, `check_result` whether the result can be true; the rules in words: "Reporting" in
//! `protocol.md`. Read next: `standings.rs`, where a result counts.

use crate::games;
use crate::games::Scoring;
use crate::manager::league::{Event, League, Member, Recorded};
use crate::manager::standings;
use crate::protocol::{Code, Ending, GAME, MatchResult, MatchResultReport, Refusal};
use crate::wire::{Timestamp, cut};

/// How much of a referee's explanation is kept, in characters: both players may have failed, each for its reason.
pub const LONGEST_REASON: usize = 600;

fn wrong<T>(field: &str, problem: String) -> Result<T, Refusal> {
    Err(Refusal::field(Code::E015, field, problem))
}

impl League {
    /// Takes a report from `sender`, or refuses it. A repeated report is no event, and no refusal.
    pub fn judge(
        &self,
        sender: &Member,
        report: &MatchResultReport,
        at: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        let Some(game) = self.find(&report.match_id) else {
            let came = cut(&report.match_id, 60);
            return wrong(
                "match_id",
                format!("got {came:?}, which is no match of this league"),
            );
        };
        if report.round_id != game.round {
            return wrong(
                "round_id",
                format!(
                    "got {}, but {} is in round {}",
                    report.round_id, game.id, game.round
                ),
            );
        }
        if report.game_type != GAME {
            return wrong(
                "game_type",
                format!("got {:?}, expected {GAME:?}", cut(&report.game_type, 60)),
            );
        }
        let result = shortened(&report.result);
        if let Some(recorded) = &game.recorded {
            return match recorded.referee_id == sender.id && shortened(&recorded.result) == result {
                true => Ok(None),
                false => wrong(
                    "match_id",
                    format!(
                        "{} is recorded already, and the first result stands",
                        game.id
                    ),
                ),
            };
        }
        if game.referee() != Some(&sender.id) {
            return wrong(
                "sender",
                format!("{} is not the referee of {}", sender.id, game.id),
            );
        }
        check_result(&result, &game.players, &self.rules.scoring)?;
        let (match_id, referee_id) = (game.id.clone(), sender.id.clone());
        Ok(Some(Event::Recorded(Recorded {
            match_id,
            referee_id,
            result,
            at,
        })))
    }
}

/// A result whose explanation has a bound, as it is kept.
fn shortened(result: &MatchResult) -> MatchResult {
    let mut result = result.clone();
    result.details.reason = result
        .details
        .reason
        .map(|reason| cut(&reason, LONGEST_REASON));
    result
}

/// Whether a result can be true: the right players, and number, choices, winner and score that fit together.
fn check_result(
    result: &MatchResult,
    players: &[String; 2],
    scoring: &Scoring,
) -> Result<(), Refusal> {
    let named = result
        .winner
        .iter()
        .chain(result.score.keys())
        .chain(result.details.choices.keys());
    if let Some(id) = named.into_iter().find(|id| !players.contains(id)) {
        let ([a, b], id) = (players, cut(id, 60));
        return wrong(
            "result",
            format!("{id:?} does not play in this match: {a} does, and {b}"),
        );
    }
    let ending = standings::ending(result);
    let winner = result
        .winner
        .as_ref()
        .and_then(|id| players.iter().position(|player| player == id));
    let choices = players
        .each_ref()
        .map(|player| result.details.choices.get(player).copied().flatten());
    match (result.details.drawn_number, choices) {
        (Some(number), _) if !games::NUMBERS.contains(&number) => {
            let (least, most) = (games::NUMBERS.start(), games::NUMBERS.end());
            return wrong(
                "result.details.drawn_number",
                format!("got {number}, must be {least} to {most}"),
            );
        }
        (Some(number), [Some(a), Some(b)]) => {
            let judged = games::judge(players.clone(), [a, b], number);
            if judged.winner != winner || judged.ending() != ending {
                let got = format!("got winner {:?} and {ending}", result.winner);
                return wrong(
                    "result.winner",
                    format!("{got}, but {} ({})", judged.reason, judged.ending()),
                );
            }
        }
        (Some(_), _) => {
            return wrong(
                "result.details.choices",
                "a number was drawn without both choices".into(),
            );
        }
        (None, _) if ending != Ending::TechnicalLoss => {
            return wrong(
                "result.details.drawn_number",
                format!("got null, but {ending} needs a number"),
            );
        }
        (None, _) => {}
    }
    let score = standings::points(players, result, scoring);
    let came = players
        .each_ref()
        .map(|player| result.score.get(player).copied());
    if came != score.map(Some) {
        let fits = format!(
            "{} {} and {} {}",
            players[0], score[0], players[1], score[1]
        );
        return wrong(
            "result.score",
            format!("got {:?}, but {ending} gives {fits}", result.score),
        );
    }
    Ok(())
}
