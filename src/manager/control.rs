//! What the operator may do: start the league, pause it and let it go on, remove a player and
//! restore it, open a new lobby when the league is over.
//!
//! An order is decided as everything else is: it returns an event, or none if the league is in that
//! state already, or a refusal. The rules in words are in `protocol.md`, under LEAGUE_CONTROL.

use super::Manager;
use super::league::{Event, League};
use crate::net::agent::{HandlerError, Request};
use crate::protocol::{ControlAction, ErrorCode, LeagueControl, LeagueStatus, ProtocolError};
use crate::values::{Moment, Timestamp, constant_time_eq};
use std::sync::atomic::Ordering;

/// The `reason` in the answer to an order that was carried out before.
pub const NOTHING_CHANGED: &str = "nothing has changed: it was so before";

impl Manager {
    /// Starts the league with the agents that have registered.
    pub fn start_league(&self, request: &Request) -> Result<LeagueStatus, HandlerError> {
        self.check_operator(request)?;
        self.store
            .commit_event(|league| self.decide_start(league))?;
        Ok(self.status())
    }

    /// Does what the operator orders.
    pub fn control(
        &self,
        request: &Request,
        order: &LeagueControl,
    ) -> Result<LeagueStatus, HandlerError> {
        self.check_operator(request)?;
        let is_new = self.store.commit(|league| {
            let event = league.decide_order(order, Timestamp::now())?;
            let is_new = event.is_some() || order.action == ControlAction::NewLobby;
            Ok::<_, HandlerError>((event, is_new))
        })?;

        match (order.action, &order.player_id) {
            // Find out whether the player answers: if it does not, it may register without its
            // token.
            (ControlAction::Restore, Some(player_id)) => {
                self.contacts
                    .with(|table| table.resend(player_id, Moment::now()));
            }
            // The league is closed before the answer, so that the order survives a crash.
            (ControlAction::NewLobby, _) => {
                self.finish()?;
                self.new_lobby_ordered.store(true, Ordering::SeqCst);
                self.store.notify_all();
            }
            _ => {}
        }

        let mut status = self.status();
        if !is_new {
            status.reason = Some(NOTHING_CHANGED.into());
        }
        Ok(status)
    }

    /// Returns true if a request comes from this machine, or carries the operator's token.
    pub fn is_operator(&self, request: &Request) -> bool {
        request.peer.is_loopback() || self.has_operator_token(request)
    }

    fn has_operator_token(&self, request: &Request) -> bool {
        let token = request.envelope.auth_token.as_deref().unwrap_or_default();
        constant_time_eq(token, &self.operator_token)
    }

    fn check_operator(&self, request: &Request) -> Result<(), ProtocolError> {
        // In a league of this machine, one of the players could ask.
        let is_here = request.peer.is_loopback() && !self.program.args.has("--alone");
        if is_here || self.has_operator_token(request) {
            return Ok(());
        }

        let code = match request.envelope.auth_token {
            Some(_) => ErrorCode::TokenInvalid,
            None => ErrorCode::TokenMissing,
        };
        let problem =
            "only the operator may do that: from this machine, or with --operator-token-file";
        Err(ProtocolError::field(code, "auth_token", problem))
    }
}

impl League {
    /// Decides an order.
    pub fn decide_order(
        &self,
        order: &LeagueControl,
        at: Timestamp,
    ) -> Result<Option<Event>, ProtocolError> {
        let action = order.action;
        let is_over = self.is_over();
        if is_over != (action == ControlAction::NewLobby) {
            let phase = if is_over { "over" } else { "not over yet" };
            let problem = format!("the league is {phase}");
            return Err(invalid_order("action", problem));
        }

        match action {
            ControlAction::Pause => Ok((!self.paused).then_some(Event::Paused)),
            ControlAction::Resume => Ok(self.paused.then_some(Event::Resumed)),
            ControlAction::Remove => {
                let player_id = self.ordered_player(order)?;
                let is_new = !self.removed.contains(&player_id);
                Ok(is_new.then_some(Event::Removed { player_id }))
            }
            ControlAction::Restore => {
                let player_id = self.ordered_player(order)?;
                if !self.removed.contains(&player_id) {
                    return Err(invalid_order(
                        "player_id",
                        format!("{player_id} was not removed"),
                    ));
                }
                let address = order.address.as_deref().map(str::parse).transpose();
                let address =
                    address.map_err(|_| invalid_order("address", "expected an IP address"))?;
                Ok(Some(Event::Restored {
                    player_id,
                    at,
                    address,
                }))
            }
            ControlAction::NewLobby => Ok(None), // the manager closes the league
        }
    }

    /// Returns the id of the player that an order names.
    fn ordered_player(&self, order: &LeagueControl) -> Result<String, ProtocolError> {
        let Some(id) = &order.player_id else {
            return Err(invalid_order("player_id", "missing; this action needs it"));
        };

        if self.player(id).is_none() {
            let code = ErrorCode::PlayerNotRegistered;
            let problem = "which is no player of this league";
            return Err(ProtocolError::unexpected_value(
                code,
                "player_id",
                id,
                problem,
            ));
        }
        Ok(id.clone())
    }
}

fn invalid_order(field: &str, problem: impl Into<String>) -> ProtocolError {
    ProtocolError::field(ErrorCode::MissingField, field, problem)
}
