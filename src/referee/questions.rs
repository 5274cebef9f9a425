//! The messages of a match: how players are invited, asked for a move, told what they did wrong and
//! how it ended; what counts as an answer; and how a player failed, in one sentence that its author
//! can act on. Pure, like the course of the match in `match_play.rs`. A question and its answer are
//! about the moves so far; a player that has not come yet is asked without moves, which is an
//! invitation.

use crate::games::{Move, Outcome};
use crate::net::retry::CallError;
use crate::program::config::RetryPolicy;
use crate::protocol::*;
use crate::referee::assignments::Assignment;
use crate::referee::match_play::Next;
use crate::wire::{Timestamp, cut};
use std::fmt::Debug;

impl Assignment {
    /// The question to a player: GAME_INVITATION, or the call for a move in the game's own message.
    pub fn question(&self, seat: usize, moves: Option<&[Move]>, deadline: Timestamp) -> Message {
        let [player_id, opponent_id] = [seat, 1 - seat].map(|seat| self.players[seat].clone());
        let match_id = self.match_id.clone();
        let game_type = self.game.game_type.into();
        let Some(moves) = moves else {
            return Message::GameInvitation(GameInvitation {
                league_id: self.league_id.clone(),
                round_id: self.round_id,
                match_id,
                game_type,
                role_in_match: [Role::PlayerA, Role::PlayerB][seat].to_string(),
                opponent_id,
                player_id: Some(player_id),
            });
        };
        let legal = (self.game.legal)(moves);
        (self.game.messages.call)(ChooseMoveCall {
            match_id,
            player_id,
            game_type,
            deadline,
            move_number: number(moves),
            position: (self.game.position)(moves),
            legal_moves: legal.into_iter().map(String::from).collect(),
            context: Some(TurnContext {
                opponent_id: Some(opponent_id),
                round_id: Some(self.round_id),
                your_standings: self.standings[seat],
            }),
        })
    }

    /// The `message_type` of a good answer.
    pub fn wanted(&self, moves: Option<&[Move]>) -> &'static str {
        moves.map_or(GameJoinAck::NAME, |_| self.game.messages.answer_name)
    }

    /// What a reply says: the move, or nothing of a player that comes. Or what is wrong with it.
    pub fn answer(
        &self,
        seat: usize,
        moves: Option<&[Move]>,
        reply: &Message,
    ) -> Result<String, CallError> {
        let is_ours = |match_id: &str, player_id: &str| {
            expect("match_id", match_id, &*self.match_id, Code::E015)?;
            expect("player_id", player_id, &*self.players[seat], Code::E012)
        };
        let Some(moves) = moves else {
            let Message::GameJoinAck(ack) = reply else {
                return Err(unexpected(reply));
            };
            is_ours(&ack.match_id, &ack.player_id)?;
            expect("accept", &ack.accept, &true, Code::E003)?;
            return Ok(String::new());
        };
        let answered = (self.game.messages.answered)(reply);
        let answer = answered.ok_or_else(|| unexpected(reply))?;
        is_ours(&answer.match_id, &answer.player_id)?;
        let (came, next) = (answer.move_number, number(moves));
        expect("move_number", &came, &next, Code::E015)?;
        match self.game.check(moves, &answer.r#move.0) {
            Ok(text) => Ok(text.into()),
            Err(refusal) => Err(CallError::wrong(refusal, "")),
        }
    }

    /// GAME_ERROR for a player: what went wrong, what is legal, and what follows.
    pub fn game_error(
        &self,
        seat: usize,
        failure: &CallError,
        wanted: &str,
        (retry_info, consequence): (RetryInfo, &str),
    ) -> Message {
        let mut refusal = match failure {
            CallError::Wrong(refusal, _) if !refusal.is_no_answer() => refusal.clone(),
            _ => Refusal::new(failure.code(), failure.told(tool(wanted), "", wanted)),
        };
        if let CallError::Wrong(_, came) = failure
            && !came.is_empty()
        {
            refusal = refusal.with("came", came.clone());
        }
        let player_id = &self.players[seat];
        Message::GameError(GameError {
            match_id: self.match_id.clone(),
            error_code: failure.code().to_string(),
            error_description: failure.code().name().into(),
            affected_player: player_id.clone(),
            action_required: wanted.into(),
            player_id: Some(player_id.clone()),
            retry_info: Some(retry_info),
            context: Some(refusal.with("expected", wanted).context),
            consequence: Some(consequence.into()),
        })
    }

    /// GAME_OVER, the same for both.
    pub fn game_over(&self, outcome: &Outcome) -> Message {
        Message::GameOver(GameOver {
            match_id: self.match_id.clone(),
            game_type: self.game.game_type.into(),
            game_result: outcome.for_players(),
            reason: None,
        })
    }
}

impl Next {
    /// Until when, or from when on, the player can do better, and what it is threatened with.
    pub fn told(
        self,
        failed: usize,
        policy: &RetryPolicy,
        clock: Timestamp,
    ) -> (RetryInfo, &'static str) {
        let (next_retry_at, time_remaining, consequence) = match self {
            Next::Forfeit => (None, Some(0.0), "Technical loss"),
            Next::Mend(left) => (
                None,
                Some((left.as_secs_f64() * 10.0).round() / 10.0),
                "Technical loss if valid choice not received before timeout",
            ),
            Next::Retry(delay) => (
                Some(clock.plus(delay)),
                None,
                "Technical loss if max retries exceeded",
            ),
        };
        let retry_info = RetryInfo {
            retry_count: failed as u32,
            max_retries: policy.max_retries.0,
            next_retry_at,
            time_remaining,
        };
        (retry_info, consequence)
    }
}

/// The number of the next move.
fn number(moves: &[Move]) -> u32 {
    moves.len() as u32 + 1
}

/// Whether a field of a reply says what it must.
fn expect<T: Debug + PartialEq + ?Sized>(
    field: &str,
    came: &T,
    expected: &T,
    code: Code,
) -> Result<(), CallError> {
    if came == expected {
        return Ok(());
    }
    let came = cut(&format!("{came:?}"), 60);
    let problem = format!("got {came}, expected {expected:?}");
    Err(CallError::wrong(Refusal::field(code, field, problem), ""))
}

/// How a player failed at its last attempt, in one sentence: what was asked, what came, what was
/// expected. The sentence begins where the player's name ends.
pub fn blame(failure: &CallError, attempts: usize, wanted: &str) -> String {
    let times = match attempts {
        1 => String::new(),
        _ => format!(", at the last of {attempts} attempts"),
    };
    failure.told(tool(wanted), &times, wanted)
}

/// The tool that asks for a message.
fn tool(answer: &str) -> &str {
    Entry::of_message(answer).map_or(answer, |entry| entry.tool)
}

/// A message came, but not the one that answers.
fn unexpected(reply: &Message) -> CallError {
    let explained = match reply {
        Message::GameError(error) => format!(" ({})", error.explain()),
        Message::LeagueError(error) => format!(" ({})", error.explain()),
        _ => String::new(),
    };
    let problem = format!("got {}", reply.name());
    let refusal = Refusal::field(Code::E003, "message_type", problem);
    CallError::wrong(refusal, format!("{}{explained}", reply.name()))
}
