//! What the operator may do to a league: pause it and let it go on, remove a player and restore it,
//! open a new lobby when it is over.
//!
//! An order is decided as everything else is: it returns an event, or none if the league is in that
//! state already, or a refusal. The rules in words are in `protocol.md`, under LEAGUE_CONTROL.

use super::league::{Event, League, Member};
use crate::protocol::{ControlAction, ErrorCode, LeagueControl, ProtocolError};
use crate::values::Timestamp;

impl League {
    /// Decides an order.
    pub fn control(
        &self,
        order: &LeagueControl,
        at: Timestamp,
    ) -> Result<Option<Event>, ProtocolError> {
        let is_over = self.is_over();
        if is_over != (order.action == ControlAction::NewLobby) {
            let phase = if is_over { "over" } else { "not over yet" };
            let problem = format!("got {}, but the league is {phase}", order.action);
            return Err(ProtocolError::field(
                ErrorCode::MissingField,
                "action",
                problem,
            ));
        }

        Ok(match order.action {
            ControlAction::Pause => (!self.paused).then_some(Event::Paused),
            ControlAction::Resume => self.paused.then_some(Event::Resumed),
            ControlAction::Remove => {
                let player_id = self.ordered_player(order)?.id.clone();
                let is_new = !self.removed.contains(&player_id);
                is_new.then_some(Event::Removed { player_id })
            }
            ControlAction::Restore => {
                let player_id = self.ordered_player(order)?.id.clone();
                if !self.removed.contains(&player_id) {
                    let problem = format!("{player_id} was not removed");
                    return Err(ProtocolError::field(
                        ErrorCode::MissingField,
                        "player_id",
                        problem,
                    ));
                }
                Some(Event::Restored { player_id, at })
            }
            ControlAction::NewLobby => None, // the league is closed, or is just being closed
        })
    }

    /// Returns the player that an order names.
    fn ordered_player(&self, order: &LeagueControl) -> Result<&Member, ProtocolError> {
        let Some(id) = &order.player_id else {
            let problem = "missing; the order is about one";
            return Err(ProtocolError::field(
                ErrorCode::MissingField,
                "player_id",
                problem,
            ));
        };
        let problem = "which is nobody here who can be meant";
        self.player(id).ok_or_else(|| {
            ProtocolError::unexpected(ErrorCode::PlayerNotRegistered, "player_id", id, problem)
        })
    }
}
