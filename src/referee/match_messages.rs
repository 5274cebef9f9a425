//! The messages of a match: what players are asked, which replies are valid, what they are told
//! about failures and about the result.

use crate::games::Move;
use crate::net::call_error::CallError;
use crate::protocol::*;
use crate::referee::assignments::Assignment;
use crate::referee::match_play::Question;
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
        // The reply must be of the expected type.
        let (match_id, player_id, number, received) = match reply {
            _ if reply.name() != self.expected_reply(question) => return Err(unexpected(reply)),
            Message::GameJoinAck(ack) => {
                expect("accept", &ack.accept, &true, ErrorCode::MissingField)?;
                (&ack.match_id, &ack.player_id, 0, &Value::Null)
            }
            Message::ChooseParityResponse(response) => {
                let choice = &response.parity_choice;
                (&response.match_id, &response.player_id, 1, choice)
            }
            Message::ChooseMoveResponse(response) => {
                let (number, choice) = (response.move_number, &response.r#move);
                (&response.match_id, &response.player_id, number, choice)
            }
            _ => return Err(unexpected(reply)),
        };

        // It must be about this match and this player.
        expect(
            "match_id",
            match_id,
            &self.match_id,
            ErrorCode::MatchMismatch,
        )?;
        expect(
            "player_id",
            player_id,
            &self.players[seat],
            ErrorCode::TokenInvalid,
        )?;

        // Its move must be legal.
        let Question::Move(moves) = question else {
            return Ok(String::new());
        };
        expect(
            "move_number",
            &number,
            &next_number(moves),
            ErrorCode::MatchMismatch,
        )?;
        match self.game.parse_move(moves, received) {
            Ok(text) => Ok(text.into()),
            Err(refusal) => Err(CallError::wrong(refusal, "")),
        }
    }

    /// Returns GAME_ERROR for a player whose reply was not the expected one.
    pub fn game_error(
        &self,
        seat: usize,
        question: &Message,
        failure: &CallError,
        expected: &str,
        retry_info: RetryInfo,
        consequence: &str,
    ) -> Message {
        let code = failure.code();
        let mut refusal =
            ProtocolError::new(code, failure.describe(question.spec().method, "", expected));
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
    field: &str,
    received: &T,
    expected: &T,
    code: ErrorCode,
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
