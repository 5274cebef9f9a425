//! What the manager takes, and what it refuses, when a referee reports how a match ended.
//!
//! `judge` asks whose match it is and whether this result was voided before; `check_result` asks whether the result can
//! be true. The rules in words stand in `protocol.md`, under "Reporting".

use crate::games::{self, Game};
use crate::manager::league::{Event, League, Match, Member, Recorded, Rules};
use crate::manager::standings::ending;
use crate::net::agent::Request;
use crate::protocol::{Code, Ending, MatchResult, MatchResultReport, Refusal};
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
        request: &Request,
        report: &MatchResultReport,
        at: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        let game = self.reported(report)?;
        let id = &game.id;
        let conversation_id = request.envelope.conversation_id.clone();
        if game.voided.contains(&conversation_id) {
            let problem = format!("this result of {id} was voided; the match is played again");
            return wrong("conversation_id", problem);
        }
        let result = shortened(&report.result);
        if let Some(recorded) = &game.recorded {
            if recorded.referee_id == sender.id && recorded.result == result {
                return Ok(None);
            }
            return wrong(
                "match_id",
                format!("{id} is recorded already, and the first result stands"),
            );
        }
        if game.referee() != Some(&sender.id) {
            return wrong(
                "sender",
                format!("{} is not the referee of {id}", sender.id),
            );
        }
        check_result(&result, &game.players, &self.rules)?;
        Ok(Some(Event::Recorded(Recorded {
            match_id: id.clone(),
            referee_id: sender.id.clone(),
            conversation_id,
            result,
            at,
        })))
    }

    /// The match that a report is about.
    fn reported(&self, report: &MatchResultReport) -> Result<&Match, Refusal> {
        let Some(game) = self.find(&report.match_id) else {
            let came = cut(&report.match_id, 60);
            let problem = format!("got {came:?}, which is no match of this league");
            return wrong("match_id", problem);
        };
        let (id, round, came) = (&game.id, game.round, report.round_id);
        if came != round {
            let problem = format!("got {came}, but {id} is in round {round}");
            return wrong("round_id", problem);
        }
        let expected = &self.rules.game_type;
        if report.game_type != *expected {
            let came = cut(&report.game_type, 60);
            return wrong("game_type", format!("got {came:?}, expected {expected:?}"));
        }
        Ok(game)
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

/// Whether a result can be true: the right players, and moves, number, winner and score that fit together.
fn check_result(result: &MatchResult, players: &[String; 2], rules: &Rules) -> Result<(), Refusal> {
    let choices = result.details.choices.keys();
    let mut named = result
        .winner
        .iter()
        .chain(result.score.keys())
        .chain(choices);
    if let Some(id) = named.find(|id| !players.contains(id)) {
        let [a, b] = players;
        let id = cut(id, 60);
        return wrong(
            "result",
            format!("{id:?} does not play in this match: {a} does, and {b}"),
        );
    }
    let game = games::named(&rules.game_type);
    if result.details.status.is_none() && game.is_some_and(|game| game.draws.is_none()) {
        let problem = "missing; without a number nothing else says how the match ended";
        return Err(Refusal::field(Code::E003, "result.details.status", problem));
    }
    let ending = ending(result);
    if let Some(game) = game
        && (ending != Ending::TechnicalLoss || result.details.drawn_number.is_some())
    {
        check_played(game, result, players, ending)?;
    }
    let winner = result.winner.as_ref();
    let winner = winner.and_then(|id| players.iter().position(|player| player == id));
    let [a, b] = games::score(ending, winner, &rules.scoring);
    let expected = [(players[0].clone(), a), (players[1].clone(), b)].into();
    if result.score != expected {
        let fits = format!("{} {a} and {} {b}", players[0], players[1]);
        let came = &result.score;
        return wrong(
            "result.score",
            format!("got {came:?}, but {ending} gives {fits}"),
        );
    }
    Ok(())
}

/// Plays the reported moves over, by the rules of the game: the match must have ended as it is said to have ended.
fn check_played(
    game: &Game,
    result: &MatchResult,
    players: &[String; 2],
    ending: Ending,
) -> Result<(), Refusal> {
    let details = &result.details;
    let moves = games::reported(players, &details.choices, &details.moves);
    let played = moves.and_then(|moves| game.replay(players.clone(), moves, details.drawn_number));
    let outcome = match played {
        Ok(outcome) => outcome,
        Err(problem) => return wrong("result.details", problem),
    };
    let winner = outcome.winner.map(|seat| &players[seat]);
    if winner != result.winner.as_ref() || outcome.ending != ending {
        let came = result.winner.as_deref().unwrap_or("nobody");
        let problem = format!(
            "got winner {came} and {ending}, but {} ({})",
            outcome.reason, outcome.ending
        );
        return wrong("result.winner", problem);
    }
    Ok(())
}
