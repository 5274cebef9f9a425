//! The messages of a match: what players are asked, which replies are valid, what they are told
//! about failures and about the result.

use super::assignments::Assignment;
use super::match_play::Question;
use crate::games::Move;
use crate::net::call_error::CallError;
use crate::protocol::{
    ChooseMoveCall, ChooseParityCall, ErrorCode, GameError, GameInvitation, GameJoinAck, GameOver,
    GameResult, Message, MessageSpec, ProtocolError, RetryInfo, TurnContext,
};
use crate::values::{Timestamp, truncate};
use serde_json::Value;
use std::fmt::Debug;

impl Assignment {
    /// Returns the message that asks a player.
    pub fn message(&self, seat: usize, question: Question, deadline: Timestamp) -> Message {
        let match_id = self.match_id.clone();
        let player_id = self.players[seat].clone();
        let opponent_id = self.players[1 - seat].clone();
        let game_type = self.game.game_type.into();

        let Question::Move(moves) = question else {
            return Message::GameInvitation(GameInvitation {
                league_id: self.league_id.clone(),
                round_id: self.round_id,
                match_id,
                game_type,
                role_in_match: ["PLAYER_A", "PLAYER_B"][seat].into(),
                opponent_id,
                player_id: Some(player_id),
            });
        };

        let context = Some(TurnContext {
            opponent_id: Some(opponent_id),
            round_id: Some(self.round_id),
            your_standings: self.standings[seat],
        });
        if self.game.has_parity_messages {
            return Message::ChooseParityCall(ChooseParityCall {
                match_id,
                player_id,
                game_type,
                deadline,
                context,
            });
        }
        let legal_moves = (self.game.legal_moves)(moves);
        Message::ChooseMoveCall(ChooseMoveCall {
            match_id,
            player_id,
            game_type,
            deadline,
            move_number: next_number(moves),
            position: (self.game.position)(moves),
            legal_moves: legal_moves.into_iter().map(String::from).collect(),
            context,
        })
    }

    /// Returns the method of the message that asks a player.
    fn method(&self, question: Question) -> &'static str {
        let message_type = match question {
            Question::Join => GameInvitation::NAME,
            Question::Move(_) if self.game.has_parity_messages => ChooseParityCall::NAME,
            Question::Move(_) => ChooseMoveCall::NAME,
        };
        MessageSpec::by_type(message_type).map_or(message_type, |spec| spec.method)
    }

    /// Returns the `message_type` of a valid reply.
    pub fn expected_reply(&self, question: Question) -> &'static str {
        match question {
            Question::Join => GameJoinAck::NAME,
            Question::Move(_) => self.game.answer_format().0,
        }
    }

    /// Returns the move of a valid reply (empty for an invitation), or what is wrong with the reply.
    pub fn check_reply(
        &self,
        seat: usize,
        question: Question,
        reply: &Message,
    ) -> Result<String, CallError> {
        if reply.name() != self.expected_reply(question) {
            return Err(unexpected(reply));
        }
        match (question, reply) {
            (Question::Join, Message::GameJoinAck(ack)) => {
                expect(ErrorCode::MissingField, "accept", &ack.accept, &true)?;
                self.check_ids(seat, &ack.match_id, &ack.player_id)?;
                Ok(String::new())
            }
            (Question::Move(moves), Message::ChooseParityResponse(response)) => {
                self.check_ids(seat, &response.match_id, &response.player_id)?;
                self.check_move(moves, &response.parity_choice)
            }
            (Question::Move(moves), Message::ChooseMoveResponse(response)) => {
                self.check_ids(seat, &response.match_id, &response.player_id)?;
                let (received, expected) = (&response.move_number, &next_number(moves));
                expect(ErrorCode::MatchMismatch, "move_number", received, expected)?;
                self.check_move(moves, &response.r#move)
            }
            _ => Err(unexpected(reply)),
        }
    }

    /// Checks that a reply is about this match and this player.
    fn check_ids(
        &self,
        seat: usize,
        match_id: &String,
        player_id: &String,
    ) -> Result<(), CallError> {
        expect(
            ErrorCode::MatchMismatch,
            "match_id",
            match_id,
            &self.match_id,
        )?;
        expect(
            ErrorCode::TokenInvalid,
            "player_id",
            player_id,
            &self.players[seat],
        )
    }

    /// Returns a move if it is legal.
    fn check_move(&self, moves: &[Move], received: &Value) -> Result<String, CallError> {
        match self.game.parse_move(moves, received) {
            Ok(text) => Ok(text.into()),
            Err(refusal) => Err(CallError::wrong(refusal, "")),
        }
    }

    /// Returns the sentence that explains why a player loses after a number of attempts.
    pub fn describe_failure(
        &self,
        question: Question,
        failure: &CallError,
        attempts: u32,
    ) -> String {
        let attempts = match attempts {
            1 => String::new(),
            _ => format!(", at the last of {attempts} attempts"),
        };
        failure.describe(
            self.method(question),
            &attempts,
            self.expected_reply(question),
        )
    }

    /// Returns GAME_ERROR for a player whose reply was not the expected one.
    pub fn game_error(
        &self,
        seat: usize,
        question: Question,
        failure: &CallError,
        retry_info: RetryInfo,
        consequence: &str,
    ) -> Message {
        let code = failure.code();
        let expected = self.expected_reply(question);
        let problem = failure.describe(self.method(question), "", expected);
        let mut refusal = ProtocolError::new(code, problem);
        if let CallError::Wrong(wrong, received) = failure {
            if !wrong.is_unrelated_reply() {
                refusal = wrong.clone();
            }
            if !received.is_empty() {
                refusal = refusal.with_context("came", received.clone());
            }
        }

        Message::GameError(GameError {
            match_id: self.match_id.clone(),
            error_code: code.to_string(),
            error_description: code.name().into(),
            affected_player: self.players[seat].clone(),
            action_required: expected.into(),
            player_id: Some(self.players[seat].clone()),
            retry_info: Some(retry_info),
            context: Some(refusal.with_context("expected", expected).context),
            consequence: Some(consequence.into()),
        })
    }

    /// Returns GAME_OVER, the same for both players.
    pub fn game_over(&self, result: &GameResult) -> Message {
        Message::GameOver(GameOver {
            match_id: self.match_id.clone(),
            game_type: self.game.game_type.into(),
            game_result: result.clone(),
            reason: None,
        })
    }
}

/// Returns the number of the next move.
fn next_number(moves: &[Move]) -> u32 {
    moves.len() as u32 + 1
}

/// Checks that a field of a reply has the expected value.
fn expect<T: Debug + PartialEq>(
    code: ErrorCode,
    field: &str,
    received: &T,
    expected: &T,
) -> Result<(), CallError> {
    if received == expected {
        return Ok(());
    }
    let received = truncate(&format!("{received:?}"), 60);
    let problem = format!("got {received}, expected {expected:?}");
    Err(CallError::wrong(
        ProtocolError::field(code, field, problem),
        "",
    ))
}

/// Returns the failure that a reply has another message type than expected.
fn unexpected(reply: &Message) -> CallError {
    let mut received = reply.name().to_string();
    match reply {
        Message::GameError(error) => received += &format!(" ({})", error.explain()),
        Message::LeagueError(error) => received += &format!(" ({})", error.explain()),
        _ => {}
    }
    let problem = format!("got {}", reply.name());
    CallError::wrong(
        ProtocolError::field(ErrorCode::MissingField, "message_type", problem),
        received,
    )
}
