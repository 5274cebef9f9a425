//! The messages of a match: how players are invited, asked for a move, told what they did wrong and how it ended; what
//! counts as an answer; and how a player failed, in one sentence that its author can act on. Pure, like the course of
//! the match in `match_play.rs`.

use crate::games::{Move, Outcome};
use crate::net::retry::{CallError, RetryPolicy, SHOWN};
use crate::protocol::*;
use crate::referee::match_play::{InPlay, Next, Venue};
use crate::wire::{Timestamp, cut};
use std::fmt::Debug;

impl<V: Venue> InPlay<'_, V> {
    /// The player on a seat.
    pub(super) fn player(&self, seat: usize) -> &str {
        let entry = &self.given.r#match;
        [&entry.player_A_id, &entry.player_B_id][seat]
    }

    fn match_id(&self) -> &str {
        &self.given.r#match.match_id
    }

    /// GAME_INVITATION for a player.
    pub(super) fn invitation(&self, seat: usize) -> Message {
        let invitation = GameInvitation {
            league_id: self.given.league_id.clone(),
            round_id: self.given.round_id,
            match_id: self.match_id().into(),
            game_type: self.game.game_type.into(),
            role_in_match: [Role::PlayerA, Role::PlayerB][seat].to_string(),
            opponent_id: self.player(1 - seat).into(),
            player_id: Some(self.player(seat).into()),
        };
        invitation.into()
    }

    /// Whether a reply says that the player has come.
    pub(super) fn joined(&self, seat: usize, reply: Message) -> Result<(), CallError> {
        let Message::GameJoinAck(ack) = reply else {
            return Err(unexpected(&reply));
        };
        self.check_match(seat, &ack.match_id, &ack.player_id)?;
        expect("accept", &ack.accept, &true, Code::E003)
    }

    /// The call for a move, in the game's own message.
    pub(super) fn call(&self, seat: usize, moves: &[Move], deadline: Timestamp) -> Message {
        let entry = &self.given.r#match;
        let standings = [&entry.player_A_standings, &entry.player_B_standings];
        let legal = (self.game.legal)(moves);
        (self.game.messages.call)(ChooseMoveCall {
            match_id: self.match_id().into(),
            player_id: self.player(seat).into(),
            game_type: self.game.game_type.into(),
            deadline,
            move_number: number(moves),
            position: (self.game.position)(moves),
            legal_moves: legal.into_iter().map(String::from).collect(),
            context: Some(TurnContext {
                opponent_id: Some(self.player(1 - seat).into()),
                round_id: Some(self.given.round_id),
                your_standings: standings[seat].clone(),
            }),
        })
    }

    /// The move in a reply, or what is wrong with it.
    pub(super) fn moved(
        &self,
        seat: usize,
        moves: &[Move],
        reply: Message,
    ) -> Result<String, CallError> {
        let Some(answer) = (self.game.messages.answered)(&reply) else {
            return Err(unexpected(&reply));
        };
        self.check_match(seat, &answer.match_id, &answer.player_id)?;
        expect(
            "move_number",
            &answer.move_number,
            &number(moves),
            Code::E015,
        )?;
        match self.game.check(moves, &answer.r#move.0) {
            Ok(text) => Ok(text.into()),
            Err(refusal) => Err(CallError::wrong(refusal, "")),
        }
    }

    /// Whether a reply is about this match and from this player.
    fn check_match(&self, seat: usize, match_id: &str, player_id: &str) -> Result<(), CallError> {
        expect("match_id", match_id, self.match_id(), Code::E015)?;
        expect("player_id", player_id, self.player(seat), Code::E012)
    }

    /// GAME_ERROR for a player: what went wrong, what is legal, and that the match is lost by it.
    pub(super) fn game_error(&self, seat: usize, failure: &CallError, expected: &str) -> GameError {
        let told = cut(&failure.told(tool(expected), "", expected), 2 * SHOWN);
        let mut refusal = match failure {
            CallError::Wrong(refusal, _) if !refusal.is_no_answer() => refusal.clone(),
            _ => Refusal::new(failure.code(), told),
        };
        if let CallError::Wrong(_, came) = failure
            && !came.is_empty()
        {
            refusal = refusal.with("came", came.clone());
        }
        GameError {
            match_id: self.given.r#match.match_id.clone(),
            error_code: failure.code().to_string(),
            error_description: failure.code().name().into(),
            affected_player: self.player(seat).into(),
            action_required: expected.into(),
            player_id: Some(self.player(seat).into()),
            retry_info: None,
            context: Some(refusal.with("expected", expected).context),
            consequence: Some("Technical loss: the match is forfeited".into()),
        }
    }

    /// GAME_OVER, the same for both.
    pub(super) fn game_over(&self, outcome: &Outcome) -> Message {
        let over = GameOver {
            match_id: self.match_id().into(),
            game_type: self.game.game_type.into(),
            game_result: outcome.for_players(),
            reason: None,
        };
        over.into()
    }
}

impl Next {
    /// What the player is threatened with.
    pub(super) fn consequence(&self) -> &'static str {
        match self {
            Next::Forfeit => "Technical loss",
            Next::Mend(_) => "Technical loss if valid choice not received before timeout",
            Next::Retry(_) => "Technical loss if max retries exceeded",
        }
    }

    /// Until when, or from when on, the player can do better.
    pub(super) fn retry_info(
        &self,
        failures: &[CallError],
        policy: &RetryPolicy,
        clock: Timestamp,
    ) -> RetryInfo {
        let (next_retry_at, time_remaining) = match self {
            Next::Forfeit => (None, Some(0.0)),
            Next::Mend(left) => (None, Some((left.as_secs_f64() * 10.0).round() / 10.0)),
            Next::Retry(delay) => (Some(clock.plus(*delay)), None),
        };
        RetryInfo {
            retry_count: failures.len() as u32,
            max_retries: policy.attempts,
            next_retry_at,
            time_remaining,
        }
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
    let problem = format!(
        "got {}, expected {expected:?}",
        cut(&format!("{came:?}"), 60)
    );
    Err(CallError::wrong(Refusal::field(code, field, problem), ""))
}

/// How a player failed, in one sentence: what was asked, what came, what was expected, and how often. The sentence
/// begins where the player's name ends.
pub fn blame(failures: &[CallError], expected: &str) -> String {
    let Some((last, others)) = failures.split_last() else {
        return String::new();
    };
    let told = |failure: &CallError, times: &str| failure.told(tool(expected), times, expected);
    let is_same = others.iter().all(|it| told(it, "") == told(last, ""));
    let times = match (is_same, failures.len()) {
        (_, 1) => String::new(),
        (true, 2) => ", twice".into(),
        (true, 3) => ", three times".into(),
        (true, times) => format!(", {times} times"),
        (false, times) => format!(", at the last of {times} attempts"),
    };
    told(last, &times)
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
