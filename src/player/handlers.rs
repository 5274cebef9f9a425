//! What a player does with each message that it is sent: one `match` over all of them, in `handle`.
//!
//! A referee is believed if it speaks with the token and in the conversation of its invitation
//! (`invitations.rs`), the manager if it shows the player's own token (`program/session.rs`). No
//! lock is held while `choose` thinks. Read next: `turn.rs`, what `choose` is given, and
//! `decision.rs`, how it is called.

use crate::games::{CHOOSE_MOVE, Messages, even_odd};
use crate::net::agent::{Agent, Denial, Nothing, Request, Tool, Toolbox};
use crate::net::retry::SHOWN;
use crate::net::sync::lock;
use crate::object;
use crate::player::invitations::Joined;
use crate::player::{Companion, Past, Player, Turn, record, sentences};
use crate::program::card::Card;
use crate::program::terminal::say;
use crate::protocol::*;
use crate::wire::{Timestamp, Unread, cut};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// What a model should know of a player before it calls a tool.
const INSTRUCTIONS: &str = "A player of the AI Agent League: it plays matches that a referee \
    conducts. get_player_state shows its id, record and results, and needs no arguments. The other \
    tools are messages of a league: handle_game_invitation, then choose_parity (in Even/Odd; \
    choose_move in other games) and notify_match_result come from a referee, with the same \
    match_id, conversation_id and auth_token; the rest comes from the league manager.";

object! {
    /// What `get_player_state` shows.
    PlayerState {
        display_name: String, state: AgentState, strategy: String, record: Tally,
        matches: Arc<Vec<Past>>,
        player_id: Option<String>,
    }
}

impl Agent for Player {
    fn kind(&self) -> Kind {
        Kind::Player
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        let card = self.session.wait_for_card()?;
        let token = request.envelope.auth_token.as_deref();
        let manager_is_true = || self.session.check_manager(token);
        match message {
            // From a referee.
            Message::GameInvitation(it) => return self.join(&card, request, it),
            Message::ChooseParityCall(it) => {
                return self.answer(&card, request, it.into(), even_odd::GAME.messages);
            }
            Message::ChooseMoveCall(it) => return self.answer(&card, request, it, &CHOOSE_MOVE),
            Message::GameOver(it) => self.remember(&card, request, it)?,
            Message::GameError(it) => self.has_erred(request, &it)?,
            // From the manager: each arm first asks `manager_is_true`, or it would believe anybody.
            Message::RoundAnnouncement(it) => {
                manager_is_true()?;
                lock(&self.invitations).announce(&card.agent_id, it);
            }
            Message::LeagueCompleted(it) => {
                manager_is_true()?;
                self.end(&card, &it);
            }
            Message::LeagueError(it) => {
                manager_is_true()?;
                self.warn(&sentences::league_error(&it));
            }
            Message::LeagueStandingsUpdate(_) | Message::RoundCompleted(_) => manager_is_true()?,
            // Not sent to a player: refused before.
            Message::RefereeRegisterRequest(_)
            | Message::RefereeRegisterResponse(_)
            | Message::LeagueRegisterRequest(_)
            | Message::LeagueRegisterResponse(_)
            | Message::StartLeague(_)
            | Message::LeagueStatus(_)
            | Message::LeagueControl(_)
            | Message::GameJoinAck(_)
            | Message::ChooseParityResponse(_)
            | Message::ChooseMoveResponse(_)
            | Message::MatchResultReport(_)
            | Message::MatchResultAck(_)
            | Message::LeagueQuery(_)
            | Message::LeagueQueryResponse(_) => {}
        }
        Ok(None)
    }

    fn refused(&self, packet: &Value, peer: IpAddr, refusal: &Refusal) {
        self.warn(&sentences::refusal(packet, peer, refusal));
    }

    fn health(&self) -> Value {
        self.session.health()
    }

    fn toolbox(&self) -> Toolbox<'_> {
        let mut toolbox = self.beside.toolbox(&self.session).unwrap_or(Toolbox {
            instructions: INSTRUCTIONS,
            lists_messages: true,
            tools: Vec::new(),
        });
        let says = "The player's id, state, strategy, record and all its results so far.";
        let state = Tool::new("get_player_state", says, |_: Nothing, _| Ok(self.state()));
        toolbox.tools.push(state);
        toolbox
    }
}

impl Player {
    /// The match that a referee speaks of, if the referee is to be believed.
    fn joined(&self, request: &Request, match_id: &str) -> Result<Joined, Refusal> {
        let invitations = lock(&self.invitations);
        invitations.joined(&request.envelope, match_id).cloned()
    }

    fn is_announced(&self, match_id: &str) -> bool {
        lock(&self.invitations).is_announced(match_id)
    }

    /// We come to every match that we are truly invited to.
    fn join(
        &self,
        card: &Card,
        request: &Request,
        invitation: GameInvitation,
    ) -> Result<Option<Message>, Denial> {
        check_is_for_us(card, invitation.player_id.as_deref())?;
        let match_id = invitation.match_id.clone();
        lock(&self.invitations).accept(&request.envelope, invitation)?;
        let ack = GameJoinAck {
            match_id,
            player_id: card.agent_id.clone(),
            arrival_timestamp: Timestamp::now(),
            accept: true,
            auth_token: request.envelope.auth_token.clone(),
        };
        Ok(Some(ack.into()))
    }

    /// The referee says what was wrong. That is shown also where we do not believe it: the refusal
    /// is shown too.
    fn has_erred(&self, request: &Request, error: &GameError) -> Result<(), Denial> {
        self.warn(&sentences::error(error));
        self.joined(request, &error.match_id)?;
        Ok(())
    }

    /// Our move, which is the same whenever it is asked for again. The companion chooses, or leaves
    /// it to `choose`.
    fn answer(
        &self,
        card: &Card,
        request: &Request,
        call: ChooseMoveCall,
        messages: &Messages,
    ) -> Result<Option<Message>, Denial> {
        if !self.plays_game(&call.game_type) {
            return Err(Denial::not_taken(Kind::Player, &call.game_type));
        }
        let joined = self.joined(request, &call.match_id)?;
        check_is_for_us(card, Some(&call.player_id))?;
        // Both times are by the referee's clock, which may be another than ours: only their
        // distance tells us anything.
        let written = request.envelope.timestamp;
        let time = call.deadline.max(written).distance(written);
        let turn = Turn {
            player_id: call.player_id,
            opponent_id: joined.opponent_id,
            match_id: call.match_id,
            round_id: joined.round_id,
            game_type: call.game_type,
            move_number: call.move_number,
            position: call.position,
            legal_moves: call.legal_moves,
            standings: call.context.and_then(|context| context.your_standings),
            history: lock(&self.history).matches(),
            seed: self.session.program.seed,
            deadline: Instant::now() + time,
        };
        let number = turn.move_number;
        let is_announced = self.is_announced(&turn.match_id);
        let chosen = joined.decision.make(number, || {
            let chosen = self.beside.choose(&turn, is_announced);
            chosen.unwrap_or_else(|| (self.choose)(&turn))
        })?;
        let response = ChooseMoveResponse {
            match_id: turn.match_id,
            player_id: turn.player_id,
            move_number: number,
            r#move: Unread::new(chosen),
            auth_token: joined.token,
        };
        Ok(Some((messages.answer)(response)))
    }

    /// A match is over. Where the manager has shown how it announces matches, one that it has not
    /// announced is a stranger's, and is not remembered.
    fn remember(&self, card: &Card, request: &Request, over: GameOver) -> Result<(), Denial> {
        let joined = self.joined(request, &over.match_id)?;
        let reason = over.game_result.reason.clone().or(over.reason);
        let reason = reason.map(|reason| cut(&reason, 3 * SHOWN)); // it may tell of two failures
        let past = Past {
            match_id: over.match_id.clone(),
            conversation_id: joined.conversation_id,
            opponent_id: joined.opponent_id,
            result: GameResult {
                reason: reason.clone(),
                ..over.game_result
            },
        };
        let mut words = reason.unwrap_or("is over".into());
        let mut is_news = true;
        if card.proves_itself == Some(true) && !self.is_announced(&over.match_id) {
            words += " (not announced by the manager, so not remembered)";
        } else {
            is_news = lock(&self.history).remember(past);
        }
        if is_news {
            say(&sentences::about(&over.match_id, &words));
        }
        Ok(())
    }

    /// The league is over, and so are we.
    fn end(&self, card: &Card, league: &LeagueCompleted) {
        self.write_history();
        if self.session.league_is_over() {
            let words = sentences::end(&card.agent_id, league);
            say(&words); // once, though the notice may come twice
            self.beside.league_is_over(&words);
        }
    }

    /// `get_player_state` is open to everybody: it shows no token, and a choice only when its match
    /// is over.
    fn state(&self) -> PlayerState {
        let player_id = self.session.card_now().map(|card| card.agent_id);
        let matches = lock(&self.history).matches();
        PlayerState {
            display_name: self.session.program.entry.display_name.0.clone(),
            state: self.session.state(),
            strategy: self.beside.name(),
            record: record(player_id.as_deref().unwrap_or_default(), &matches),
            matches,
            player_id,
        }
    }
}

/// Refuses what names another player.
fn check_is_for_us(card: &Card, player_id: Option<&str>) -> Result<(), Refusal> {
    match player_id {
        Some(id) if id != card.agent_id => {
            let but = format!("but this is {}", card.agent_id);
            Err(Refusal::got(Code::E012, "player_id", id, but))
        }
        _ => Ok(()),
    }
}
