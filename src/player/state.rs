//! What a player knows, and what it does about each message: `handle` decides from the state, the
//! message and the time, and uses no thread, clock or socket. A thread of the program carries out
//! the `Step`, and calls `handle` again with the same message after a `Wait` or an `Ask`.
//!
//! An invitation or a result may overtake the announcement of its match, or the announcement may be
//! lost. So, where the manager proves itself, both wait a second for it; then the manager is asked
//! for our next match. The manager is asked for our results too, if its table says that we remember
//! less than it has recorded, or another result: a player that was away has missed them.

use super::display;
use super::history::History;
use super::invitations::{Invitations, JoinedMatch};
use super::turn::{PastMatch, Turn};
use crate::games::even_odd;
use crate::json::deserialize;
use crate::net::agent::HandlerError;
use crate::net::rpc::PANIC;
use crate::program::credentials::Credentials;
use crate::protocol::{
    AgentKind, ChooseMoveCall, ChooseMoveResponse, ChooseParityCall, ChooseParityResponse,
    Envelope, ErrorCode, GameInvitation, GameJoinAck, GameOver, JsonObject, PlayerRequest,
    ProtocolError, QueryType, Record, Reply, Standing,
};
use crate::values::{MAX_QUOTED_CHARS, Timestamp, truncate};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time that an invitation or a result waits for the announcement of its match.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum time between two questions to the manager, since other programs can cause them.
const QUERY_INTERVAL: Duration = Duration::from_secs(1);

/// A message to the player, and how far its handling is.
pub struct Incoming {
    pub envelope: Envelope,
    pub message: PlayerRequest,
    /// Our credentials when it came.
    pub credentials: Arc<Credentials>,
    /// True if it carries our own token, so that it comes from the manager.
    pub has_own_token: bool,
    pub received_at: Instant,
    /// True if the manager was asked about it.
    pub has_asked: bool,
}

/// What to do about a message.
pub enum Step {
    /// Reply with this message, or with "ok".
    Reply(Option<Reply>),
    /// Print lines about matches, and reply "ok".
    Print(Vec<String>),
    /// Print a problem, and reply "ok".
    Warn(String),
    /// The league is over: print this line, and reply "ok".
    End(String),
    /// Call `choose`, without a lock, and reply with the move.
    Choose(Box<Turn>, Arc<JoinedMatch>),
    /// Wait until something changes, or until this time at most.
    Wait(Instant),
    /// Ask the manager, and give its answer to `learn`.
    Ask(QueryType),
}

/// What a player knows.
pub struct PlayerState {
    game_types: Vec<&'static str>,
    seed: Option<u64>,
    pub invitations: Invitations,
    pub history: History,
    /// The newest table.
    table: Vec<Standing>,
    /// The time at which the manager was last asked.
    asked_at: Option<Instant>,
    /// The lines about results that the manager has told us when it was asked.
    learnt: Vec<String>,
}

impl PlayerState {
    /// `checks_tokens` is `enable_auth_tokens` of the configuration.
    pub fn new(
        game_types: Vec<&'static str>,
        seed: Option<u64>,
        checks_tokens: bool,
    ) -> PlayerState {
        PlayerState {
            game_types,
            seed,
            invitations: Invitations::new(checks_tokens),
            history: History::default(),
            table: Vec::new(),
            asked_at: None,
            learnt: Vec::new(),
        }
    }

    /// Decides what to do about a message. The token of a referee's message is checked here, that of
    /// the manager's before.
    pub fn handle(&mut self, incoming: &mut Incoming, now: Instant) -> Result<Step, HandlerError> {
        let own_id = &Arc::clone(&incoming.credentials).agent_id;
        let envelope = &incoming.envelope;
        let question = match &incoming.message {
            PlayerRequest::GameInvitation(invitation) => {
                self.missing_announcement(incoming, &invitation.match_id, now)
            }
            PlayerRequest::GameOver(over)
                if self.invitations.find(envelope, &over.match_id).is_err() =>
            {
                self.missing_announcement(incoming, &over.match_id, now)
            }
            PlayerRequest::LeagueStandingsUpdate(table) => {
                self.missing_results(own_id, &table.standings)
            }
            _ => None,
        };
        match question {
            Some(Step::Ask(_)) if !self.may_ask(incoming, now) => {}
            Some(step) => return Ok(step),
            None => {}
        }

        let envelope = &incoming.envelope;
        let proves_itself = incoming.credentials.proves_itself;
        Ok(match &mut incoming.message {
            PlayerRequest::GameInvitation(invitation) => {
                let must_be_announced = proves_itself && !incoming.has_own_token;
                self.join(own_id, envelope, invitation, must_be_announced)?
            }
            PlayerRequest::ChooseMoveCall(call) => self.turn(own_id, envelope, call, now)?,
            PlayerRequest::ChooseParityCall(call) => {
                self.turn(own_id, envelope, &as_move_call(call), now)?
            }
            PlayerRequest::GameOver(over) => {
                self.record_result(own_id, envelope, over, proves_itself)?
            }
            PlayerRequest::GameError(error) => {
                self.invitations.find(envelope, &error.match_id)?;
                let text = display::game_error(error);
                if text.contains(PANIC) {
                    Step::Reply(None) // the panic is printed
                } else {
                    Step::Warn(text)
                }
            }
            PlayerRequest::RoundAnnouncement(round) => {
                self.invitations.announce(own_id, round);
                Step::Reply(None)
            }
            PlayerRequest::LeagueCompleted(league) => {
                Step::End(display::league_over(own_id, league))
            }
            PlayerRequest::LeagueError(error) => {
                let text = truncate(&error.explain(), MAX_QUOTED_CHARS);
                Step::Warn(format!("the league manager says: {text}"))
            }
            PlayerRequest::LeagueStandingsUpdate(table) => {
                self.table = mem::take(&mut table.standings);
                Step::Print(mem::take(&mut self.learnt))
            }
            PlayerRequest::RoundCompleted(_) => Step::Reply(None), // it only informs
        })
    }

    /// Returns what a message of a referee waits for, if the manager has not announced its match
    /// with its token. The manager's rehearsal has our own token, and is not announced.
    fn missing_announcement(
        &self,
        incoming: &Incoming,
        match_id: &str,
        now: Instant,
    ) -> Option<Step> {
        let token = incoming.envelope.auth_token.as_deref();
        let is_expected = !incoming.credentials.proves_itself
            || incoming.has_own_token
            || self.invitations.is_announced(match_id) && self.invitations.expects(match_id, token);
        if is_expected {
            return None;
        }

        let until = incoming.received_at + ANNOUNCEMENT_TIMEOUT;
        Some(if now < until {
            Step::Wait(until)
        } else {
            Step::Ask(QueryType::GetNextMatch)
        })
    }

    /// Returns the question for our results, if our row of a table does not agree with those that we
    /// remember. A result that we are told is in the table a little later.
    fn missing_results(&self, own_id: &str, table: &[Standing]) -> Option<Step> {
        let row = table.iter().find(|row| row.player_id == own_id)?;
        let recorded = Record {
            wins: row.wins,
            losses: row.losses,
            draws: row.draws,
        };
        let is_older = (row.played as usize) < self.history.matches().len();
        let is_missing = !is_older && recorded != self.history.record();
        is_missing.then_some(Step::Ask(QueryType::GetPlayerStats))
    }

    /// Returns true if the manager may be asked about a message now: once, and not too often.
    fn may_ask(&mut self, incoming: &mut Incoming, now: Instant) -> bool {
        let is_early = (self.asked_at).is_some_and(|time| now < time + QUERY_INTERVAL);
        if is_early || mem::replace(&mut incoming.has_asked, true) {
            return false;
        }
        self.asked_at = Some(now);
        true
    }

    /// Takes over what the manager has answered: the token of our next match, or our results.
    pub fn learn(&mut self, own_id: &str, data: &JsonObject) {
        if let Some(next) = data.get("next_match")
            && let (Some(id), Some(token)) =
                (next["match_id"].as_str(), next["match_token"].as_str())
        {
            self.invitations.expect(id, token);
        }

        let results = data.get("matches").map(deserialize::<Vec<PastMatch>>);
        for past in results.and_then(Result::ok).unwrap_or_default() {
            if !self.history.has_result(&past) {
                self.learnt.push(self.describe(own_id, &past));
                self.history.add(past);
            }
        }
    }

    /// Accepts an invitation.
    fn join(
        &mut self,
        own_id: &str,
        envelope: &Envelope,
        invitation: &GameInvitation,
        must_be_announced: bool,
    ) -> Result<Step, ProtocolError> {
        if let Some(player_id) = &invitation.player_id {
            check_player_id(own_id, player_id)?;
        }
        self.invitations
            .join(envelope, invitation, must_be_announced)?;

        let ack = GameJoinAck {
            match_id: invitation.match_id.clone(),
            player_id: own_id.into(),
            arrival_timestamp: Timestamp::now(),
            accept: true,
            auth_token: envelope.auth_token.clone(),
        };
        Ok(Step::Reply(Some(ack.into())))
    }

    /// Returns the turn that a call for a move is about.
    fn turn(
        &self,
        own_id: &str,
        envelope: &Envelope,
        call: &ChooseMoveCall,
        now: Instant,
    ) -> Result<Step, HandlerError> {
        if !self.game_types.contains(&&*call.game_type) {
            return Err(HandlerError::not_found(AgentKind::Player, &call.game_type));
        }
        let joined = self.invitations.find(envelope, &call.match_id)?;
        check_player_id(own_id, &call.player_id)?;

        // The deadline is by the referee's clock, which may differ from ours.
        let sent = envelope.timestamp;
        let time_left = call.deadline.max(sent).abs_diff(sent);

        let call = call.clone();
        let turn = Turn {
            is_announced: self.invitations.is_announced(&call.match_id),
            player_id: call.player_id,
            opponent_id: joined.opponent_id.clone(),
            match_id: call.match_id,
            conversation_id: joined.conversation_id.clone(),
            round_id: joined.round_id,
            game_type: call.game_type,
            move_number: call.move_number,
            position: call.position,
            legal_moves: call.legal_moves,
            standings: call.context.and_then(|context| context.your_standings),
            history: self.history.matches(),
            seed: self.seed,
            deadline: now + time_left,
        };
        Ok(Step::Choose(Box::new(turn), joined))
    }

    /// Adds the result of a match to the history. If the manager proves itself, a match that it has
    /// not announced is not added.
    fn record_result(
        &mut self,
        own_id: &str,
        envelope: &Envelope,
        over: &GameOver,
        proves_itself: bool,
    ) -> Result<Step, ProtocolError> {
        self.invitations.join_ended(own_id, envelope, over);
        let joined = self.invitations.find(envelope, &over.match_id)?;

        let mut result = over.game_result.clone();
        let reason = result.reason.as_ref().or(over.reason.as_ref());
        result.reason = reason.map(|reason| truncate(reason, 3 * MAX_QUOTED_CHARS));
        let past = PastMatch {
            match_id: over.match_id.clone(),
            conversation_id: joined.conversation_id.clone(),
            round_id: joined.round_id,
            game_type: over.game_type.clone(),
            opponent_id: joined.opponent_id.clone(),
            result,
        };

        let mut line = self.describe(own_id, &past);
        if proves_itself && !self.invitations.is_announced(&over.match_id) {
            line += " (not announced by the manager, so not remembered)";
        } else if !self.history.add(past) {
            return Ok(Step::Reply(None)); // it is known
        }
        Ok(Step::Print(vec![line]))
    }

    /// Returns the line about the result of a match.
    fn describe(&self, own_id: &str, past: &PastMatch) -> String {
        let text = display::result(&past.result, own_id, &past.opponent_id, &self.names());
        display::about_match(&past.match_id, &text)
    }

    /// Returns the names of the players, by id, as the newest table has them.
    pub fn names(&self) -> BTreeMap<String, String> {
        let rows = self.table.iter();
        rows.map(|row| (row.player_id.clone(), row.display_name.clone()))
            .collect()
    }
}

impl Incoming {
    /// Returns the response to a call for a move.
    pub fn response(&self, turn: &Turn, choice: String) -> Reply {
        let (match_id, player_id) = (turn.match_id.clone(), turn.player_id.clone());
        let auth_token = self.envelope.auth_token.clone();
        match self.message {
            PlayerRequest::ChooseParityCall(_) => Reply::from(ChooseParityResponse {
                match_id,
                player_id,
                parity_choice: choice.into(),
                auth_token,
            }),
            _ => Reply::from(ChooseMoveResponse {
                match_id,
                player_id,
                move_number: turn.move_number,
                r#move: choice.into(),
                auth_token,
            }),
        }
    }
}

/// Checks that a message is for this player.
fn check_player_id(own_id: &str, player_id: &str) -> Result<(), ProtocolError> {
    if player_id == own_id {
        return Ok(());
    }

    let problem = format!("but this is {own_id}");
    Err(ProtocolError::unexpected_value(
        ErrorCode::TokenInvalid,
        "player_id",
        player_id,
        problem,
    ))
}

/// Returns CHOOSE_PARITY_CALL as the call that all other games use.
fn as_move_call(call: &ChooseParityCall) -> ChooseMoveCall {
    let call = call.clone();
    ChooseMoveCall {
        match_id: call.match_id,
        player_id: call.player_id,
        game_type: even_odd::GAME.game_type.into(),
        deadline: call.deadline,
        move_number: 1,
        position: (even_odd::GAME.position)(&[]),
        legal_moves: vec!["even".into(), "odd".into()],
        context: call.context,
    }
}
