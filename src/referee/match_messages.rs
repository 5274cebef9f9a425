//! The messages of a match: the questions to players, the checks of their replies, and what they are
//! told when they fail and when the match is over.

use super::assignments::Assignment;
use crate::games::{Move, MoveMessages};
use crate::net::call_error::CallError;
use crate::protocol::{
    ChooseMoveCall, ChooseParityCall, ErrorCode, GameError, GameInvitation, GameJoinAck, GameOver,
    GameResult, Message, MessageSpec, ProtocolError, RetryInfo, TurnContext,
};
use crate::values::{Timestamp, truncate};
use std::fmt::Debug;

/// A question to one player.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The match.
    pub assignment: &'a Assignment,
    /// The player.
    pub seat: usize,
    /// The moves after which the next one is asked for; `None` for the invitation to the match.
    pub moves: Option<&'a [Move]>,
}

impl Question<'_> {
    fn player_id(&self) -> &String {
        &self.assignment.players[self.seat]
    }

    /// Returns the message to the player.
    pub fn message(&self, deadline: Timestamp) -> Message {
        let assignment = self.assignment;
        let match_id = assignment.match_id.clone();
        let player_id = self.player_id().clone();
        let opponent_id = assignment.players[1 - self.seat].clone();
        let game_type = assignment.game.game_type.into();

        let Some(moves) = self.moves else {
            return Message::GameInvitation(GameInvitation {
                league_id: assignment.league_id.clone(),
                round_id: assignment.round_id,
                match_id,
                game_type,
                role_in_match: ["PLAYER_A", "PLAYER_B"][self.seat].into(),
                opponent_id,
                player_id: Some(player_id),
            });
        };

        let context = Some(TurnContext {
            opponent_id: Some(opponent_id),
            round_id: Some(assignment.round_id),
            your_standings: assignment.standings[self.seat],
        });
        if assignment.game.messages == MoveMessages::Parity {
            return Message::ChooseParityCall(ChooseParityCall {
                match_id,
                player_id,
                game_type,
                deadline,
                context,
            });
        }
        let legal_moves = (assignment.game.legal_moves)(moves);
        Message::ChooseMoveCall(ChooseMoveCall {
            match_id,
            player_id,
            game_type,
            deadline,
            move_number: next_number(moves),
            position: (assignment.game.position)(moves),
            legal_moves: legal_moves.into_iter().map(String::from).collect(),
            context,
        })
    }

    /// Returns the method of the message.
    fn method(&self) -> &'static str {
        let message_type = match self.moves {
            None => GameInvitation::NAME,
            Some(_) => self.assignment.game.messages.names().0,
        };
        MessageSpec::by_type(message_type).map_or(message_type, |spec| spec.method)
    }

    /// Returns the `message_type` of a valid reply.
    fn expected_reply(&self) -> &'static str {
        match self.moves {
            None => GameJoinAck::NAME,
            Some(_) => self.assignment.game.messages.names().1,
        }
    }

    /// Returns the move of a valid reply (empty for an invitation), or what is wrong with the reply.
    pub fn check_reply(&self, reply: &Message) -> Result<String, CallError> {
        if reply.name() != self.expected_reply() {
            return Err(unexpected_reply(reply));
        }

        let (moves, choice) = match (reply, self.moves) {
            (Message::GameJoinAck(ack), None) => {
                expect(ErrorCode::MissingField, "accept", &ack.accept, &true)?;
                self.check_ids(&ack.match_id, &ack.player_id)?;
                return Ok(String::new());
            }
            (Message::ChooseParityResponse(response), Some(moves)) => {
                self.check_ids(&response.match_id, &response.player_id)?;
                (moves, &response.parity_choice)
            }
            (Message::ChooseMoveResponse(response), Some(moves)) => {
                self.check_ids(&response.match_id, &response.player_id)?;
                let (received, expected) = (&response.move_number, &next_number(moves));
                expect(ErrorCode::MatchMismatch, "move_number", received, expected)?;
                (moves, &response.r#move)
            }
            _ => return Err(unexpected_reply(reply)),
        };

        // The move must be legal.
        match self.assignment.game.parse_move(moves, choice) {
            Ok(text) => Ok(text.into()),
            Err(refusal) => Err(CallError::wrong(refusal, "")),
        }
    }

    /// Checks that a reply is about this match and this player.
    fn check_ids(&self, match_id: &String, player_id: &String) -> Result<(), CallError> {
        let expected = &self.assignment.match_id;
        expect(ErrorCode::MatchMismatch, "match_id", match_id, expected)?;
        let expected = self.player_id();
        expect(ErrorCode::TokenInvalid, "player_id", player_id, expected)
    }

    /// Returns the sentence that explains why the player loses after a number of attempts.
    pub fn describe_failure(&self, failure: &CallError, attempts: u32) -> String {
        let attempts = match attempts {
            1 => String::new(),
            _ => format!(", at the last of {attempts} attempts"),
        };

        failure.describe(self.method(), &attempts, self.expected_reply())
    }

    /// Returns GAME_ERROR for a player whose reply was not the expected one.
    pub fn game_error(
        &self,
        failure: &CallError,
        retry_info: RetryInfo,
        consequence: &str,
    ) -> Message {
        let code = failure.code();
        let expected = self.expected_reply();
        let problem = failure.describe(self.method(), "", expected);

        let mut refusal = ProtocolError::new(code, problem);
        if let CallError::InvalidReply(wrong, received) = failure {
            if !wrong.is_unexpected_reply() {
                refusal = wrong.clone();
            }
            if !received.is_empty() {
                refusal = refusal.with_context("came", received.clone());
            }
        }

        Message::GameError(GameError {
            match_id: self.assignment.match_id.clone(),
            error_code: code.to_string(),
            error_description: code.name().into(),
            affected_player: self.player_id().clone(),
            action_required: expected.into(),
            player_id: Some(self.player_id().clone()),
            retry_info: Some(retry_info),
            context: Some(refusal.with_context("expected", expected).context),
            consequence: Some(consequence.into()),
        })
    }
}

impl Assignment {
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
fn unexpected_reply(reply: &Message) -> CallError {
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
