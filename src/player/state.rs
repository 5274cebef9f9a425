//! What a player knows, and what it does about each message: `handle` decides from the state, the
//! message and the time, and uses no thread, lock or socket. A thread of the program carries out
//! the `Step`, and calls `handle` again with the same message after a `Wait` or an `Ask`.
//!
//! An invitation or a result may overtake the announcement of its match, or the announcement may be
//! lost. So, where the manager's requests carry our token, both wait a second for it; then the
//! manager is asked for our next match. The manager is asked for our results too, if its first table
//! after a registration or its last one says otherwise than those that we remember: a player that
//! was away has missed some.

use super::display;
use super::history::History;
use super::invitations::{Invitations, JoinedMatch};
use super::turn::{PastMatch, Turn, record};
use crate::games::even_odd;
use crate::json::deserialize;
use crate::net::agent::HandlerError;
use crate::net::rpc::PANIC;
use crate::program::credentials::Credentials;
use crate::protocol::{
    ChooseMoveCall, ChooseMoveResponse, ChooseParityCall, ChooseParityResponse, Envelope,
    ErrorCode, GameInvitation, GameJoinAck, GameOver, JsonObject, LeagueCompleted, PlayerRequest,
    ProtocolError, QueryType, Record, Reply, Standing,
};
use crate::values::{MAX_QUOTED_CHARS, Timestamp, truncate};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time that an invitation or a result waits for the announcement of its match.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_secs(1);

/// The sender of a message, as its envelope shows it, and how far the message is handled.
pub struct Sender {
    pub envelope: Envelope,
    /// Our credentials when the message came.
    pub credentials: Arc<Credentials>,
    /// True if the message carries our own token, so that it comes from the manager.
    pub has_own_token: bool,
    pub received_at: Instant,
    /// True if the manager was asked about it.
    pub has_asked: bool,
}

/// What to do about a message.
pub enum Step {
    /// Reply with this message, or with "ok".
    Reply(Option<Reply>),
    /// Print a line about a match, and reply "ok".
    Print(String),
    /// Print a problem, and reply "ok".
    Warn(String),
    /// The league is over: print this line, and reply "ok".
    End(String),
    /// Call `choose`, without a lock, and reply with the move.
    Choose(Turn, Arc<JoinedMatch>),
}

/// The reason why a message has no reply yet, or is refused.
pub enum Pause {
    /// Wait until something changes, or for this time at most.
    Wait(Duration),
    /// Ask the manager, and give its answer to `learn`.
    Ask(QueryType),
    Refuse(HandlerError),
}

impl<E: Into<HandlerError>> From<E> for Pause {
    fn from(error: E) -> Pause {
        Pause::Refuse(error.into())
    }
}

/// What a player knows.
pub struct PlayerState {
    pub invitations: Invitations,
    pub history: History,
    /// The newest table since the registration.
    pub table: Vec<Standing>,
}

impl PlayerState {
    /// `checks_tokens` is `enable_auth_tokens` of the configuration.
    pub fn new(checks_tokens: bool) -> PlayerState {
        PlayerState {
            invitations: Invitations::new(checks_tokens),
            history: History::default(),
            table: Vec::new(),
        }
    }

    /// Decides what to do about a message. The token of a referee's message is checked here, that of
    /// the manager's before.
    pub fn handle(
        &mut self,
        from: &mut Sender,
        message: &mut PlayerRequest,
        now: Instant,
    ) -> Result<Step, Pause> {
        let step = match message {
            PlayerRequest::GameInvitation(invitation) => self.join(from, invitation, now)?,
            PlayerRequest::ChooseMoveCall(call) => self.turn(from, call.clone(), now)?,
            PlayerRequest::ChooseParityCall(call) => self.turn(from, as_move_call(call), now)?,
            PlayerRequest::GameOver(over) => self.record_result(from, over, now)?,
            PlayerRequest::GameError(error) => {
                self.invitations.find(&from.envelope, &error.match_id)?;
                match display::game_error(error) {
                    text if text.contains(PANIC) => Step::Reply(None), // the panic is printed
                    text => Step::Warn(text),
                }
            }
            PlayerRequest::LeagueError(error) => {
                let text = truncate(&error.explain(), MAX_QUOTED_CHARS);
                Step::Warn(format!("the league manager says: {text}"))
            }
            PlayerRequest::RoundAnnouncement(round) => {
                self.invitations.announce(&from.credentials.agent_id, round);
                Step::Reply(None)
            }
            PlayerRequest::LeagueStandingsUpdate(table) => {
                if self.table.is_empty() && self.lacks_results(from, &table.standings) {
                    from.ask(QueryType::GetPlayerStats)?;
                }
                self.table = mem::take(&mut table.standings);
                Step::Reply(None)
            }
            PlayerRequest::LeagueCompleted(league) => {
                if self.lacks_tables(from, league) || self.lacks_results(from, &self.table) {
                    from.ask(QueryType::GetPlayerStats)?;
                }
                Step::End(display::league_over(&from.credentials.agent_id, league))
            }
            PlayerRequest::RoundCompleted(_) => Step::Reply(None), // it only informs
        };
        Ok(step)
    }

    /// Waits until the manager has announced a match with the token of a message, and then asks for
    /// it. The manager's rehearsal has our own token, and is not announced.
    fn await_announcement(
        &self,
        from: &mut Sender,
        match_id: &str,
        now: Instant,
    ) -> Result<(), Pause> {
        let token = from.envelope.auth_token.as_deref();
        let is_expected =
            self.invitations.is_announced(match_id) && self.invitations.expects(match_id, token);
        if is_expected || !from.must_be_announced() {
            return Ok(());
        }

        let waited = now - from.received_at;
        if waited < ANNOUNCEMENT_TIMEOUT {
            return Err(Pause::Wait(ANNOUNCEMENT_TIMEOUT - waited));
        }
        from.ask(QueryType::GetNextMatch)
    }

    /// Returns true if the newest table lacks results of the league that is over.
    fn lacks_tables(&self, from: &Sender, league: &LeagueCompleted) -> bool {
        let played: u32 = self.table.iter().map(|row| row.played).sum();
        from.credentials.proves_itself && played < 2 * league.total_matches
    }

    /// Returns true if our row of a table says otherwise than the results that we remember, and is not
    /// older: a result that we are told is in the table a little later.
    fn lacks_results(&self, from: &Sender, table: &[Standing]) -> bool {
        let own_id = &from.credentials.agent_id;
        let matches = self.history.matches();
        let is_wrong = |row: &Standing| {
            let (wins, losses, draws) = (row.wins, row.losses, row.draws);
            row.player_id == *own_id
                && row.played as usize >= matches.len()
                && record(own_id, &matches)
                    != (Record {
                        wins,
                        losses,
                        draws,
                    })
        };
        from.credentials.proves_itself && table.iter().any(is_wrong)
    }

    /// Takes over what the manager has answered: the token of our next match, or our results. Returns
    /// the lines about results that we did not have.
    pub fn learn(&mut self, own_id: &str, data: &JsonObject) -> Vec<String> {
        if let Some(next) = data.get("next_match")
            && let (Some(id), Some(token)) =
                (next["match_id"].as_str(), next["match_token"].as_str())
        {
            self.invitations.expect(id, token);
        }

        let results = data.get("matches").map(deserialize::<Vec<PastMatch>>);
        let mut lines = Vec::new();
        for past in results.and_then(Result::ok).unwrap_or_default() {
            let line = self.describe(own_id, &past);
            if self.history.add(past) {
                lines.push(line);
            }
        }
        lines
    }

    /// Accepts an invitation.
    fn join(
        &mut self,
        from: &mut Sender,
        invitation: &GameInvitation,
        now: Instant,
    ) -> Result<Step, Pause> {
        self.await_announcement(from, &invitation.match_id, now)?;

        let own_id = &from.credentials.agent_id;
        if let Some(player_id) = &invitation.player_id {
            check_player_id(own_id, player_id)?;
        }
        self.invitations
            .join(&from.envelope, invitation, from.must_be_announced())?;

        let ack = GameJoinAck {
            match_id: invitation.match_id.clone(),
            player_id: own_id.clone(),
            arrival_timestamp: Timestamp::now(),
            accept: true,
            auth_token: from.envelope.auth_token.clone(),
        };
        Ok(Step::Reply(Some(ack.into())))
    }

    /// Returns the turn that a call for a move is about.
    fn turn(
        &self,
        from: &Sender,
        call: ChooseMoveCall,
        now: Instant,
    ) -> Result<Step, ProtocolError> {
        let joined = self.invitations.find(&from.envelope, &call.match_id)?;
        check_player_id(&from.credentials.agent_id, &call.player_id)?;

        // The deadline is by the referee's clock, which may differ from ours.
        let sent = from.envelope.timestamp;
        let time_left = call.deadline.max(sent).abs_diff(sent);

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
            seed: None,
            deadline: now + time_left,
        };
        Ok(Step::Choose(turn, joined))
    }

    /// Adds the result of a match to the history. If the manager proves itself, a match that it has
    /// not announced is not added.
    fn record_result(
        &mut self,
        from: &mut Sender,
        over: &GameOver,
        now: Instant,
    ) -> Result<Step, Pause> {
        if !self.invitations.is_announced(&over.match_id) {
            self.await_announcement(from, &over.match_id, now)?;
        }

        let own_id = &from.credentials.agent_id;
        self.invitations.join_ended(own_id, &from.envelope, over);
        let joined = self.invitations.find(&from.envelope, &over.match_id)?;

        let mut result = over.game_result.clone();
        let reason = result.reason.as_ref().or(over.reason.as_ref());
        result.reason = reason.map(|reason| truncate(reason, 3 * MAX_QUOTED_CHARS));
        let past = PastMatch {
            match_id: over.match_id.clone(),
            round_id: joined.round_id,
            game_type: over.game_type.clone(),
            opponent_id: joined.opponent_id.clone(),
            result,
        };

        let mut line = self.describe(own_id, &past);
        if from.credentials.proves_itself && !self.invitations.is_announced(&over.match_id) {
            line += " (not announced by the manager, so not remembered)";
        } else if !self.history.add(past) {
            return Ok(Step::Reply(None)); // it is known
        }
        Ok(Step::Print(line))
    }

    /// Returns the line about the result of a match, with the opponent's name as the newest table has
    /// it.
    fn describe(&self, own_id: &str, past: &PastMatch) -> String {
        let opponent_id = &past.opponent_id;
        let row = self.table.iter().find(|row| row.player_id == *opponent_id);
        let opponent = row.map_or(opponent_id, |row| &row.display_name);
        let text = display::result(&past.result, own_id, opponent_id, opponent);
        display::about_match(&past.match_id, &text)
    }
}

impl Sender {
    /// Asks the manager about the message, once.
    fn ask(&mut self, query: QueryType) -> Result<(), Pause> {
        match mem::replace(&mut self.has_asked, true) {
            true => Ok(()),
            false => Err(Pause::Ask(query)),
        }
    }

    /// Returns true if the manager must have announced the match of a message.
    fn must_be_announced(&self) -> bool {
        self.credentials.proves_itself && !self.has_own_token
    }

    /// Returns the response to a call for a move.
    pub fn response(self, call: &PlayerRequest, turn: Turn, choice: String) -> Reply {
        let auth_token = self.envelope.auth_token;
        match call {
            PlayerRequest::ChooseParityCall(_) => Reply::from(ChooseParityResponse {
                match_id: turn.match_id,
                player_id: turn.player_id,
                parity_choice: choice.into(),
                auth_token,
            }),
            _ => Reply::from(ChooseMoveResponse {
                match_id: turn.match_id,
                player_id: turn.player_id,
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

    Err(ProtocolError::unexpected_value(
        ErrorCode::TokenInvalid,
        "player_id",
        player_id,
        format!("but this is {own_id}"),
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
