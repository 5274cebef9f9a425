//! Which reports of referees are accepted.
//!
//! `check_report` checks which match is reported, and by which referee; `check_result` checks that
//! the result is possible. (`check_loser` in `contact.rs` refuses the technical loss of a player that
//! was not told of its match.) The rules in words are in `protocol.md`, under "Reporting". Read next:
//! `rounds.rs`.

use super::league::{Event, League, Match, Member, Recorded};
use crate::games::result_status;
use crate::games::{self, Game};
use crate::program::config::LeagueFile;
use crate::protocol::{
    ErrorCode, GameResult, MatchResult, MatchResultReport, ProtocolError, ResultStatus,
};
use crate::values::{Timestamp, truncate};
use serde_json::json;

/// Maximum length of a referee's explanation, in characters: both players may have failed, each for
/// its own reason.
const MAX_REASON_CHARS: usize = 600;

impl League {
    /// Checks a report from `sender`, and returns the event that records it. The recorded report
    /// from the same referee again is accepted without an event; any other report is refused, with
    /// the recorded result.
    pub fn check_report(
        &self,
        sender: &Member,
        report: &MatchResultReport,
        at: Timestamp,
    ) -> Result<Option<Event>, ProtocolError> {
        let the_match = self.reported_match(report)?;
        let id = &the_match.id;
        let mut result = report.result.clone();
        if let Some(reason) = &mut result.details.reason {
            *reason = truncate(reason, MAX_REASON_CHARS);
        }

        // A recorded result is final.
        if let Some(recorded) = &the_match.recorded {
            if recorded.referee_id == sender.id && recorded.result == result {
                return Ok(None);
            }
            let problem = format!("{id} is recorded already, and the first result stands");
            let refusal = ProtocolError::mismatch("match_id", problem);
            return Err(refusal.with_context("recorded_result", json!(recorded.result)));
        }

        // Every referee that was given the match may report it as played. An earlier referee may have
        // a token that a player refuses, so it cannot judge who fails: only the last one can.
        let mut assignments = the_match.assignments.iter();
        if !assignments.any(|assignment| assignment.referee_id == sender.id) {
            let problem = format!("{} is not the referee of {id}", sender.id);
            return Err(ProtocolError::mismatch("sender", problem));
        }

        let has_the_match = the_match.referee() == Some(&*sender.id);
        if !has_the_match && result_status(&result) == ResultStatus::TechnicalLoss {
            let problem = format!("{id} was given to another referee, which decides who fails");
            return Err(ProtocolError::mismatch("sender", problem));
        }

        check_result(&result, &the_match.players, &self.config.league)?;
        Ok(Some(Event::Recorded(Recorded {
            match_id: id.clone(),
            referee_id: sender.id.clone(),
            result,
            at,
        })))
    }

    /// Returns the match that a report is about.
    fn reported_match(&self, report: &MatchResultReport) -> Result<&Match, ProtocolError> {
        let code = ErrorCode::MatchMismatch;
        let (id, round) = (&report.match_id, report.round_id);
        let Some(the_match) = self.find(id) else {
            let problem = "which is no match of this league";
            return Err(ProtocolError::unexpected_value(
                code, "match_id", id, problem,
            ));
        };
        if round != the_match.round {
            let problem = format!("got {round}, but {id} is in round {}", the_match.round);
            return Err(ProtocolError::mismatch("round_id", problem));
        }

        let (game, expected) = (&report.game_type, &self.config.league.game_type);
        if game != expected {
            let problem = format!("expected {expected:?}");
            return Err(ProtocolError::unexpected_value(
                code,
                "game_type",
                game,
                problem,
            ));
        }
        Ok(the_match)
    }
}

/// Checks that a result is possible: it must be that which follows from the reported moves and
/// number, with the points of the league.
fn check_result(
    result: &MatchResult,
    players: &[String; 2],
    rules: &LeagueFile,
) -> Result<(), ProtocolError> {
    let Some(game) = games::find(&rules.game_type) else {
        return Ok(()); // the configuration names a known game
    };
    if result.details.status.is_none() && game.number_range.is_none() {
        let field = "result.details.status";
        let problem = "missing; without a number nothing else says how the match ended";
        return Err(ProtocolError::field(
            ErrorCode::MissingField,
            field,
            problem,
        ));
    }

    let replayed = result_of_moves(result, players, game)
        .map_err(|problem| ProtocolError::mismatch("result.details", problem))?;
    let expected = games::match_result(&replayed, &rules.scoring);
    if result.winner == expected.winner
        && result_status(result) == replayed.status
        && result.score == expected.score
    {
        return Ok(());
    }

    let (received, legal) = (describe_result(result), describe_result(&expected));
    let reason = replayed.reason.unwrap_or_default();
    let problem = format!("got {received}; must be {legal}: {reason}");
    Err(ProtocolError::mismatch("result", problem))
}

/// Returns the result that follows from the reported moves and number, or the reason why they are
/// not possible. A technical loss does not follow from moves: only its players and its points can
/// be checked.
fn result_of_moves(
    result: &MatchResult,
    players: &[String; 2],
    game: &Game,
) -> Result<GameResult, String> {
    let details = &result.details;
    let moves = games::moves_by_seat(players, &details.choices, &details.moves)?;
    if result_status(result) != ResultStatus::TechnicalLoss || details.drawn_number.is_some() {
        return game.replay(players, &moves, details.drawn_number);
    }

    Ok(GameResult {
        winner_player_id: result.winner.clone().filter(|id| players.contains(id)),
        reason: Some("a player failed".into()),
        ..game.result_without_winner(players, &moves)
    })
}

fn describe_result(result: &MatchResult) -> String {
    let (status, score) = (result_status(result), &result.score);
    let winner = result.winner.as_deref().unwrap_or("none");
    truncate(&format!("{status}, winner {winner}, score {score:?}"), 120)
}
