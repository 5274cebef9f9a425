//! The pair of messages that Even/Odd has of its own: CHOOSE_PARITY_CALL and
//! CHOOSE_PARITY_RESPONSE. They say less than the pair of the other games, because a match has only
//! one choice, and what is legal is always the same.

use super::GAME;
use crate::games::Messages;
use crate::protocol::{
    ChooseMoveCall, ChooseMoveResponse, ChooseParityCall, ChooseParityResponse, Message,
};
use crate::wire::Unread;

pub static CHOOSE_PARITY: Messages = Messages {
    call: |call| {
        Message::ChooseParityCall(ChooseParityCall {
            match_id: call.match_id,
            player_id: call.player_id,
            game_type: call.game_type,
            deadline: call.deadline,
            context: call.context,
        })
    },
    answer: |answer| {
        Message::ChooseParityResponse(ChooseParityResponse {
            match_id: answer.match_id,
            player_id: answer.player_id,
            parity_choice: Unread::new(answer.r#move.0),
            auth_token: answer.auth_token,
        })
    },
    answered: |message| match message {
        Message::ChooseParityResponse(it) => Some(ChooseMoveResponse {
            match_id: it.match_id.clone(),
            player_id: it.player_id.clone(),
            move_number: 1,
            r#move: Unread::new(it.parity_choice.0.clone()),
            auth_token: None,
        }),
        _ => None,
    },
    call_name: ChooseParityCall::NAME,
    answer_name: ChooseParityResponse::NAME,
    field: "parity_choice",
};

impl From<ChooseParityCall> for ChooseMoveCall {
    fn from(call: ChooseParityCall) -> ChooseMoveCall {
        ChooseMoveCall {
            match_id: call.match_id,
            player_id: call.player_id,
            game_type: GAME.game_type.into(),
            deadline: call.deadline,
            move_number: 1,
            position: (GAME.position)(&[]),
            legal_moves: (GAME.legal)(&[]).into_iter().map(String::from).collect(),
            context: call.context,
        }
    }
}
