//! The messages of a match: the questions to players, the checks of their replies, and what they
//! are told when they fail and when the match is over.

use super::tasks::Assignment;
use crate::games::Move;
use crate::net::call_error::CallError;
use crate::net::client::MessageContext;
use crate::protocol::{
    ChooseMoveCall, ChooseMoveResponse, ChooseParityCall, ChooseParityResponse, ErrorCode,
    GameError, GameInvitation, GameJoinAck, GameOver, GameResult, ProtocolError, RetryInfo,
    TurnContext,
};
use crate::values::{Timestamp, truncate};
use serde_json::Value;
use std::fmt::Debug;

/// A player of a match.
#[derive(Clone, Copy)]
pub struct Seat<'a> {
    /// The match.
    pub assignment: &'a Assignment,
    /// 0 for player A, 1 for player B.
    pub number: usize,
}

/// A question to a player.
#[derive(Clone, Copy, PartialEq)]
pub enum Question {
    /// The invitation to the match.
    Join,
    /// The question for its next move.
    Move,
}

impl Seat<'_> {
    fn player_id(&self) -> &String {
        &self.assignment.players[self.number]
    }

    fn opponent_id(&self) -> String {
        self.assignment.players[1 - self.number].clone()
    }

    /// Returns the invitation to the match.
    pub fn invitation(&self) -> GameInvitation {
        let assignment = self.assignment;
        GameInvitation {
            league_id: assignment.league_id.clone(),
            round_id: assignment.round_id,
            match_id: assignment.match_id.clone(),
            game_type: assignment.game_type.clone(),
            role_in_match: ["PLAYER_A", "PLAYER_B"][self.number].into(),
            opponent_id: self.opponent_id(),
            player_id: Some(self.player_id().clone()),
        }
    }

    /// Returns the question for a choice in Even/Odd.
    pub fn parity_call(&self, deadline: Timestamp) -> ChooseParityCall {
        ChooseParityCall {
            match_id: self.assignment.match_id.clone(),
            player_id: self.player_id().clone(),
            game_type: self.assignment.game_type.clone(),
            deadline,
            context: self.context(),
        }
    }

    /// Returns the question for a move in every other game.
    pub fn move_call(&self, moves: &[Move], deadline: Timestamp) -> ChooseMoveCall {
        let game = self.assignment.game();
        let legal_moves = (game.legal_moves)(moves);
        ChooseMoveCall {
            match_id: self.assignment.match_id.clone(),
            player_id: self.player_id().clone(),
            game_type: game.game_type.into(),
            deadline,
            move_number: moves.len() as u32 + 1,
            position: (game.position)(moves),
            legal_moves: legal_moves.into_iter().map(String::from).collect(),
            context: self.context(),
        }
    }

    fn context(&self) -> Option<TurnContext> {
        Some(TurnContext {
            opponent_id: Some(self.opponent_id()),
            round_id: Some(self.assignment.round_id),
            your_standings: self.assignment.standings[self.number],
        })
    }

    /// Checks that the player has accepted its invitation.
    pub fn check_ack(&self, ack: &GameJoinAck) -> Result<(), CallError> {
        expect(ErrorCode::MissingField, "accept", &ack.accept, &true)?;
        self.check_ids(&ack.match_id, &ack.player_id)
    }

    /// Returns the choice of a response, which must be legal.
    pub fn check_choice(
        &self,
        moves: &[Move],
        response: &ChooseParityResponse,
    ) -> Result<String, CallError> {
        self.check_ids(&response.match_id, &response.player_id)?;
        self.check_legal(moves, &response.parity_choice)
    }

    /// Returns the move of a response, which must be the expected one and legal.
    pub fn check_move(
        &self,
        moves: &[Move],
        response: &ChooseMoveResponse,
    ) -> Result<String, CallError> {
        self.check_ids(&response.match_id, &response.player_id)?;
        let (received, expected) = (&response.move_number, &(moves.len() as u32 + 1));
        expect(ErrorCode::MatchMismatch, "move_number", received, expected)?;
        self.check_legal(moves, &response.r#move)
    }

    fn check_legal(&self, moves: &[Move], received: &Value) -> Result<String, CallError> {
        let played = self.assignment.game().parse_move(moves, received);
        let text = played.map_err(|error| CallError::wrong(error, ""))?;
        Ok(text.into())
    }

    /// Checks that a reply is about this match and this player.
    fn check_ids(&self, match_id: &String, player_id: &String) -> Result<(), CallError> {
        let expected = &self.assignment.match_id;
        expect(ErrorCode::MatchMismatch, "match_id", match_id, expected)?;
        let expected = self.player_id();
        expect(ErrorCode::TokenInvalid, "player_id", player_id, expected)
    }

    /// Returns the method of a question, and the `message_type` of a valid reply.
    fn names(&self, question: Question) -> (&'static str, &'static str) {
        match question {
            Question::Join => ("handle_game_invitation", GameJoinAck::NAME),
            Question::Move => self.assignment.game().messages.names(),
        }
    }

    /// Returns the sentence that explains why the player loses after a number of attempts.
    pub fn describe_failure(
        &self,
        question: Question,
        failure: &CallError,
        attempts: u32,
    ) -> String {
        let (method, _) = self.names(question);
        format!("{} ({method}, attempt {attempts})", failure.explain())
    }

    /// Returns GAME_ERROR for a player whose reply was not the expected one.
    pub fn game_error(
        &self,
        question: Question,
        failure: &CallError,
        retry_info: RetryInfo,
        consequence: &str,
    ) -> GameError {
        let (_, expected) = self.names(question);
        let mut refusal = match failure {
            CallError::InvalidReply(wrong, _) if !wrong.is_unexpected_reply() => wrong.clone(),
            _ => ProtocolError::new(failure.code(), failure.explain()),
        };
        if let CallError::Refused(_, received) | CallError::InvalidReply(_, received) = failure
            && !received.is_empty()
        {
            refusal = refusal.with_context("came", received.clone());
        }

        GameError {
            match_id: self.assignment.match_id.clone(),
            error_description: refusal.code.name().into(),
            error_code: refusal.code.clone(),
            affected_player: self.player_id().clone(),
            action_required: expected.into(),
            player_id: Some(self.player_id().clone()),
            retry_info: Some(retry_info),
            context: Some(refusal.with_context("expected", expected).context),
            consequence: Some(consequence.into()),
        }
    }
}

impl Assignment {
    /// Returns the envelope of a message of the match, with the token of its receiver.
    pub fn context(&self, auth_token: Option<String>) -> MessageContext {
        MessageContext {
            conversation_id: self.conversation_id.clone(),
            auth_token,
            round_id: Some(self.round_id),
            match_id: Some(self.match_id.clone()),
        }
    }

    /// Returns GAME_OVER, the same for both players.
    pub fn game_over(&self, result: &GameResult) -> GameOver {
        GameOver {
            match_id: self.match_id.clone(),
            game_type: self.game_type.clone(),
            game_result: result.clone(),
            reason: None,
        }
    }
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
