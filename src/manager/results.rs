//! What the manager takes, and what it refuses, when a referee reports how a match ended.
//!
//! `judge` asks whose match it is and whether this result was voided before; `check_result` asks
//! whether the result can be true. The rules in words stand in `protocol.md`, under "Reporting".

use crate::games::{self, Outcome};
use crate::manager::league::{Event, League, Match, Member, Recorded};
use crate::manager::standings::ending;
use crate::net::agent::Request;
use crate::program::config::LeagueFile;
use crate::protocol::{Code, Ending, MatchResult, MatchResultReport, Refusal};
use crate::wire::{Timestamp, cut};

/// How much of a referee's explanation is kept, in characters: both players may have failed, each
/// for its reason.
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
        let mut result = report.result.clone();
        let reason = result.details.reason.as_ref();
        result.details.reason = reason.map(|reason| cut(reason, LONGEST_REASON));
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
        check_result(&result, &game.players, &self.config.league)?;
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
        let expected = &self.config.league.game_type;
        if report.game_type != *expected {
            let came = cut(&report.game_type, 60);
            return wrong("game_type", format!("got {came:?}, expected {expected:?}"));
        }
        Ok(game)
    }
}

/// Whether a result can be true: played over by the rules of the game, the match must end as it is
/// said to have ended. That somebody failed is believed; the points must fit in any case.
fn check_result(
    result: &MatchResult,
    players: &[String; 2],
    rules: &LeagueFile,
) -> Result<(), Refusal> {
    let details = &result.details;
    let game = games::named(&rules.game_type);
    if details.status.is_none() && game.is_some_and(|game| game.draws.is_none()) {
        let problem = "missing; without a number nothing else says how the match ended";
        return Err(Refusal::field(Code::E003, "result.details.status", problem));
    }
    let moves = games::reported(players, &details.choices, &details.moves);
    let moves = moves.or_else(|problem| wrong("result.details", problem))?;
    let winner = result.winner.as_ref();
    let said = Outcome {
        players: players.clone(),
        moves,
        number: details.drawn_number,
        ending: ending(result),
        winner: winner.and_then(|id| players.iter().position(|player| player == id)),
        reason: "somebody failed".into(),
    };
    let is_believed = said.ending == Ending::TechnicalLoss && said.number.is_none();
    let outcome = match game.filter(|_| !is_believed) {
        Some(game) => game.replay(said.players, said.moves, said.number),
        None => Ok(said),
    };
    let outcome = outcome.or_else(|problem| wrong("result.details", problem))?;
    let expected = outcome.for_manager(&rules.scoring);
    let [came, legal] = [result, &expected].map(|it| (&it.winner, ending(it), &it.score));
    if came == legal {
        return Ok(());
    }
    let [came, legal] = [came, legal].map(|(winner, ending, score)| {
        let winner = winner.as_deref().unwrap_or("nobody");
        cut(&format!("{ending}, winner {winner}, score {score:?}"), 120)
    });
    let problem = format!("got {came}; must be {legal}: {}", outcome.reason);
    wrong("result", problem)
}
