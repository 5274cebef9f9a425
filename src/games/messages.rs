//! The messages by which a player is asked for a move and answers. Most games share one pair;
//! Even/Odd has its own, for the protocol names them. A referee speaks through the table of its
//! game, as if every game had the shared pair; a player answers in the pair in which it was asked.
//! Pure.

use crate::protocol::{ChooseMoveCall, ChooseMoveResponse, Message};

/// A pair of messages. Both can be made from the pair that most games share; the answer can be read
/// as that of the pair.
pub struct Messages {
    /// Makes the call for a move.
    pub call: fn(ChooseMoveCall) -> Message,
    /// Makes the answer.
    pub answer: fn(ChooseMoveResponse) -> Message,
    /// Reads the answer, if a message is one.
    pub answered: fn(&Message) -> Option<ChooseMoveResponse>,
    /// The `message_type` of the call.
    pub call_name: &'static str,
    /// The `message_type` of the answer.
    pub answer_name: &'static str,
    /// The answer's field in which the move stands.
    pub field: &'static str,
}

/// The messages of every game that has none of its own.
pub static CHOOSE_MOVE: Messages = Messages {
    call: Message::ChooseMoveCall,
    answer: Message::ChooseMoveResponse,
    answered: |message| match message {
        Message::ChooseMoveResponse(it) => Some(it.clone()),
        _ => None,
    },
    call_name: ChooseMoveCall::NAME,
    answer_name: ChooseMoveResponse::NAME,
    field: "move",
};
