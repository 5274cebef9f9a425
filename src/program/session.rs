//! A referee or a player in its league: it finds its credentials, registers, checks the token of
//! the manager's requests, and ends when the league is over, or registers for the next one
//! (`--stay`).
//!
//! It repeats its registration until the manager answers, and says once what it waits for. Requests
//! that come before it knows its id wait until it does. An agent that hears nothing of its manager,
//! or has got another address, registers again. Read next: `player.rs` and `referee.rs`.

use super::args::{Args, Exit};
use super::attempts::Attempts;
use super::credentials::{self, Credentials};
use super::terminal::{print_error, sanitize};
use super::{Program, SHUTDOWN_TIMEOUT};
use crate::net::agent::Agent;
use crate::net::call_error::CallError;
use crate::net::client::{MAX_NOTICE, MessageContext, Peer, new_conversation};
use crate::net::sync::Shared;
use crate::protocol::{
    AgentKind, AgentMeta, AgentState, ErrorCode, JsonObject, LeagueQuery, LeagueRegisterRequest,
    LeagueRegisterResponse, ProtocolError, QueryType, RefereeRegisterRequest, RegistrationStatus,
    RoundCompleted,
};
use crate::values::{Endpoint, constant_time_eq};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time that a request waits for a registration that is under way.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for the manager's answer to a question.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of ping intervals without a word of the manager after which an agent registers again.
const MAX_SILENCE: u32 = 2;
/// Number of ping intervals without a word of the manager after which an agent ends.
const MAX_MISSED_PINGS: u32 = 30;
/// The same after the last round, when only the end of the league can be missing.
const MAX_MISSED_PINGS_AT_THE_END: u32 = 5;

/// The start of the reason for which a removed player is rejected.
pub const REMOVED: &str = "Removed by the operator";

/// A referee or a player in its league.
pub struct Session {
    /// Its program.
    pub program: Program,
    /// The games that it can play.
    game_types: Vec<&'static str>,
    /// The conversation of its registrations.
    conversation_id: String,
    state: Shared<SessionState>,
}

#[derive(Default)]
struct SessionState {
    /// The credentials, once the agent is registered.
    credentials: Option<Arc<Credentials>>,
    /// The locks of the program's name and of its ids.
    locks: BTreeMap<String, File>,
    /// True if the manager has sent a request.
    is_active: bool,
    /// The time of the manager's last request or answer.
    last_seen: Option<Instant>,
    /// True if a program at the manager's address has refused our token.
    is_unknown: bool,
    /// True if the manager has announced no further round after the last one.
    is_last_round_over: bool,
    /// The lines about why the agent waits: each was printed once.
    wait_lines: BTreeSet<String>,
    /// True if the league is over.
    is_over: bool,
}

/// A referee or a player, which a session registers.
pub trait Participant {
    /// Is called when the agent is registered. After a new registration it archives its data of an
    /// older one.
    fn on_registered(&self, credentials: &Credentials, is_new: bool) -> Result<(), Exit>;
}

/// Runs a referee or a player to its end.
pub fn run<P: Participant + Agent>(
    args: Args,
    kind: AgentKind,
    game_types: Vec<&'static str>,
    new_participant: impl FnOnce(Arc<Session>) -> Arc<P>,
) -> Result<(), Exit> {
    let session = Arc::new(Session {
        program: Program::new(args, kind)?,
        game_types,
        conversation_id: new_conversation(&format!("{kind}-registration")),
        state: Shared::default(),
    });
    let participant = new_participant(Arc::clone(&session));
    let credentials = session.load_credentials()?;

    let server = (session.program).serve(Arc::clone(&participant), MAX_NOTICE)?;
    let end = session.take_part(&*participant, credentials);
    server.drain(SHUTDOWN_TIMEOUT);
    session.program.log_exit(&end);
    end
}

impl Session {
    /// Takes part in the league, and with `--stay` in the next ones.
    fn take_part(
        &self,
        participant: &dyn Participant,
        mut credentials: Credentials,
    ) -> Result<(), Exit> {
        loop {
            credentials.save(&self.program.data, &self.program.name)?;
            self.play_league(participant, &credentials)?;
            if !self.stays() {
                return Ok(());
            }
            credentials = Credentials::new(&self.program);
        }
    }

    fn stays(&self) -> bool {
        self.program.args.has("--stay")
    }

    /// Registers until the manager accepts the agent, and again when that is needed, until the
    /// league is over. Requests wait until the agent is registered for the first time.
    ///
    /// An agent may miss the end, a laptop may get another address, and another program may take
    /// the manager's port for a while. So the agent asks to be registered again if its token was
    /// refused or, with a manager that proves itself, if that has been silent for too long or has
    /// called at an old address. Another league accepts it only with `--stay`.
    fn play_league(&self, participant: &dyn Participant, saved: &Credentials) -> Result<(), Exit> {
        let config = &self.program.config;
        let ping_interval = config.system.timeouts.ping_interval_sec.0;
        let interval = Attempts::endless(config.system.retry_policy).first_delay();
        let mut state = self.state.lock();
        state.credentials = None; // the manager's next request may carry a new token
        state.last_seen = None;

        while state.credentials.is_none() || !state.is_over {
            let is_unknown = mem::take(&mut state.is_unknown);
            let silence = state.last_seen.map(|time| time.elapsed());
            let max_missed = match state.is_last_round_over {
                true => MAX_MISSED_PINGS_AT_THE_END,
                false => MAX_MISSED_PINGS,
            };
            let registered = state.credentials.clone();
            drop(state);

            let is_lost = silence.is_none_or(|silence| silence >= ping_interval * MAX_SILENCE);
            let must_register = registered.as_ref().is_none_or(|own| {
                let has_moved = self.program.current_endpoint() != own.endpoint;
                is_unknown || own.proves_itself && (is_lost || has_moved)
            });
            if must_register {
                let old = registered.as_deref().unwrap_or(saved);
                match self.try_to_register(participant, old, registered.is_some()) {
                    Err(exit) if is_lost => return Err(exit),
                    // Our own manager was there a moment ago.
                    Err(exit) => self.print_once(format!(
                        "{}; waiting for our own league manager",
                        exit.message
                    )),
                    Ok(false)
                        if !self.stays()
                            && silence.is_some_and(|time| time >= ping_interval * max_missed) =>
                    {
                        let problem = "the league manager does not answer any more";
                        return Err(Exit::failure(problem));
                    }
                    Ok(_) => {}
                }
            }

            state = self.state.wait_until(interval, |state| {
                state.is_unknown || state.is_over && state.credentials.is_some()
            });
        }
        Ok(())
    }

    /// Prints a line about why the agent waits, unless it has been printed.
    fn print_once(&self, text: String) {
        if self.state.lock().wait_lines.insert(text.clone()) {
            print_error(&text);
        }
    }

    /// Returns the credentials of an earlier run, or new ones. Their file is locked.
    fn load_credentials(&self) -> Result<Credentials, Exit> {
        let new = Credentials::new(&self.program);
        let (data, name) = (&self.program.data, &self.program.name);
        self.lock_id(name)?;
        let Some(saved) = Credentials::load(data, name)? else {
            return Ok(new);
        };

        saved.check_is_no_copy(data, name)?;
        if !saved.is_active() && !Endpoint::is_same_address(&saved.manager, &new.manager) {
            return Ok(new);
        }
        // A manager that was named may be the same one at another address.
        if !self.program.args.has("--manager") {
            saved.check_may_replace(&new.manager, data)?;
        }
        Ok(Credentials {
            folder: new.folder,
            ..saved
        })
    }

    /// Locks the name of a file or an id, unless that is done.
    fn lock_id(&self, id: &str) -> Result<(), Exit> {
        let locks = &mut self.state.lock().locks;
        if !locks.contains_key(id) {
            locks.insert(id.into(), credentials::lock(&self.program.data, id)?);
        }
        Ok(())
    }

    /// Takes over the id that the manager has given, and saves the new credentials.
    fn accept(
        &self,
        participant: &dyn Participant,
        old: &Credentials,
        new: Credentials,
    ) -> Result<(), Exit> {
        let data = &self.program.data;
        let is_new = new.token.is_none() || new.token != old.token;

        // The id may be that of another agent of this data folder.
        let id = &new.agent_id;
        self.lock_id(id)?;

        // From now on it signs and logs with its id.
        let client = &self.program.client;
        client.set_identity(&format!("{}:{id}", self.program.kind), &new.league_id);
        client.log.set_component(id);
        participant.on_registered(&new, is_new)?;

        // Save the new credentials, and let requests through.
        new.save(data, &self.program.name)?;

        let name = sanitize(&self.program.entry.display_name);
        let text = format!("{name} is {id} in {}", sanitize(&new.league_id));
        let id = id.clone();
        let is_expected = self.state.update(|state| {
            let before = state.credentials.as_ref().map(|before| &before.agent_id);
            let is_expected = before == Some(&id) && state.wait_lines.is_empty();
            state.credentials = Some(Arc::new(new));
            state.last_seen = Some(Instant::now());
            state.wait_lines.clear();
            if is_new {
                state.is_over = false; // that was the league before
                state.is_last_round_over = false;
            }
            is_expected
        });
        if !is_expected {
            self.program.terminal.print_line(&text);
        }
        Ok(())
    }

    /// Sends the registration once. Returns false if it must be sent again. The manager must know
    /// an agent that is in its league, or in a league of a manager at another address.
    fn try_to_register(
        &self,
        participant: &dyn Participant,
        old: &Credentials,
        is_registered: bool,
    ) -> Result<bool, Exit> {
        let program = &self.program;
        let timeout = program.config.registration_limit(program.kind);
        let to = Peer::manager(program.config.manager(), timeout);
        let may_replace = old.check_may_replace(&to.endpoint, &program.data);
        let must_be_known = may_replace.is_err() || is_registered && !self.stays();
        let new = Credentials {
            manager: to.endpoint.clone(),
            endpoint: program.current_endpoint(),
            ..old.clone()
        };

        let manager = format!("the league manager at {}", to.endpoint);
        let text = match self.send_registration(&to, &new, must_be_known) {
            Ok(response) if response.status == RegistrationStatus::Accepted => {
                self.accept(participant, old, new.accepted(response)?)?;
                return Ok(true);
            }
            Ok(response) => {
                may_replace?;
                let state = self.wait_reason(response)?;
                format!("{state}; waiting for the next league (Ctrl-C ends)")
            }
            Err(CallError::Refused(error, _)) => {
                return Err(Exit::failure(format!("refused: {}", error.explain())));
            }
            // Later another program may have the manager's port for a while.
            Err(error) if old.token.is_none() && is_final(&error) => {
                return Err(Exit::failure(format!("{manager} {}", error.explain())));
            }
            Err(error) => format!("waiting for {manager}: it {}", error.explain()),
        };

        self.print_once(text);
        Ok(false)
    }

    /// Returns why a rejected agent waits for the next league; an error if it does not wait.
    fn wait_reason(&self, response: LeagueRegisterResponse) -> Result<&'static str, Exit> {
        let reason = response.reason.unwrap_or_default();
        let is_late = response.error_code == Some(ErrorCode::LateRegistration);
        let may_wait = is_late || reason.starts_with(REMOVED);
        if !may_wait || !self.stays() {
            return Err(Exit::failure(format!("rejected: {reason}")));
        }

        Ok(if self.state.lock().is_over {
            "the league is over"
        } else if is_late {
            "the league has started already"
        } else {
            "removed by the operator"
        })
    }

    /// Returns the manager's answer to a registration. The files may name fewer games than the
    /// program plays.
    fn send_registration(
        &self,
        to: &Peer,
        credentials: &Credentials,
        must_be_known: bool,
    ) -> Result<LeagueRegisterResponse, CallError> {
        let entry = &self.program.entry;
        let operator_token = self.program.operator_token.as_ref();
        let own_token = credentials.token.as_ref().filter(|_| !credentials.is_over);
        let context = MessageContext {
            conversation_id: self.conversation_id.clone(),
            auth_token: operator_token.or(own_token).cloned(),
            ..MessageContext::default()
        };
        let is_referee = self.program.kind == AgentKind::Referee;
        let mut game_types: Vec<String> = self.game_types.iter().map(ToString::to_string).collect();
        if let Some(listed) = &entry.game_types {
            game_types.retain(|game| listed.contains(game));
        }

        let meta = AgentMeta {
            display_name: entry.display_name.clone(),
            version: entry.version.clone(),
            game_types,
            contact_endpoint: credentials.endpoint.clone(),
            max_concurrent_matches: is_referee.then_some(self.program.max_concurrent_matches()),
            uses_match_tokens: is_referee.then_some(true),
            registration_key: Some(credentials.registration_key.clone()),
            must_be_known: must_be_known.then_some(true),
            ..AgentMeta::default()
        };

        let client = &self.program.client;
        if is_referee {
            let request = RefereeRegisterRequest { referee_meta: meta };
            Ok(client.call(to, &request, &context)?.into())
        } else {
            client.call(to, &LeagueRegisterRequest { player_meta: meta }, &context)
        }
    }

    /// Returns the credentials if the agent is registered.
    pub fn credentials(&self) -> Option<Arc<Credentials>> {
        self.state.lock().credentials.clone()
    }

    /// Waits until the agent is registered, and returns its credentials.
    pub fn wait_until_registered(&self) -> Result<Arc<Credentials>, ProtocolError> {
        let state =
            (self.state).wait_until(REGISTRATION_TIMEOUT, |state| state.credentials.is_some());

        state.credentials.clone().ok_or_else(|| {
            let problem = "this agent is not registered with a league manager yet";
            ProtocolError::new(ErrorCode::PlayerNotRegistered, problem)
        })
    }

    /// Checks that a request comes from the manager: a referee demands our own token always, a
    /// player if the manager sends it. Returns the agent's credentials.
    pub fn check_manager(&self, token: Option<&str>) -> Result<Arc<Credentials>, ProtocolError> {
        let credentials = self.wait_until_registered()?;
        if self.program.config.system.security.enable_auth_tokens {
            let is_referee = self.program.kind == AgentKind::Referee;
            credentials.check_manager(token, is_referee || credentials.proves_itself)?;
        }

        self.state.lock().is_active = true;
        self.record_ping(token);
        Ok(credentials)
    }

    /// Asks the manager about the league, or about this agent. Returns nothing if it does not answer
    /// at once: a referee waits for us meanwhile.
    pub fn query(&self, own: &Credentials, query_type: QueryType) -> Option<JsonObject> {
        let query = LeagueQuery {
            league_id: own.league_id.clone(),
            query_type: json!(query_type),
            query_params: None,
        };
        let context = MessageContext {
            conversation_id: new_conversation("query"),
            auth_token: own.token.clone(),
            ..MessageContext::default()
        };
        let manager = Peer::manager(&own.manager, QUERY_TIMEOUT);
        let answer = self.program.client.call(&manager, &query, &context);
        answer.ok()?.data
    }

    /// Records that the manager does not know our token any more, so that the agent registers again.
    pub fn record_refused_token(&self) {
        self.state.update(|state| state.is_unknown = true);
    }

    /// Records the end of a round.
    pub fn record_round(&self, round: &RoundCompleted) {
        self.state.lock().is_last_round_over = round.next_round_id.is_none();
    }

    /// Records a ping or another request. Only those of the manager carry our own token.
    pub fn record_ping(&self, token: Option<&str>) {
        if self.is_own_token(token) {
            self.state.lock().last_seen = Some(Instant::now());
        }
    }

    /// Returns true if this is our own token, which the manager's requests carry.
    pub fn is_own_token(&self, token: Option<&str>) -> bool {
        let credentials = self.credentials();
        let own = credentials.as_ref().and_then(|own| own.token.as_deref());
        constant_time_eq(token.unwrap_or_default(), own.unwrap_or_default())
            || !self.program.config.system.security.enable_auth_tokens
    }

    /// Prints a problem, with our id: several agents may share a terminal. Others cause such
    /// problems, so the lines are limited.
    pub fn warn(&self, text: &str) {
        if self.program.may_print(text) {
            print_error(&format!("{}: {text}", self.program.log().component()));
        }
    }

    /// Returns the state of the agent.
    pub fn state(&self) -> AgentState {
        let state = self.state.lock();
        if state.is_over {
            AgentState::Shutdown
        } else if state.credentials.is_none() {
            AgentState::Init
        } else if state.is_active {
            AgentState::Active
        } else {
            AgentState::Registered
        }
    }

    /// Returns what `GET /health` shows; the uptime is in seconds.
    pub fn health(&self) -> Value {
        json!({
            "name": self.program.entry.display_name,
            "kind": self.program.kind,
            "state": self.state(),
            "uptime": self.program.started.elapsed().as_secs(),
            "id": self.credentials().map(|credentials| credentials.agent_id.clone()),
        })
    }

    /// Ends the agent because its league is over. Returns false if it has ended already: the
    /// notification may come twice.
    pub fn end_league(&self) -> bool {
        if let Some(credentials) = self.credentials() {
            let credentials = Credentials {
                is_over: true,
                ..Credentials::clone(&credentials)
            };
            let _ = credentials.save(&self.program.data, &self.program.name);
        }

        self.state
            .update(|state| !mem::replace(&mut state.is_over, true))
    }
}

/// Returns true if the same registration cannot be answered otherwise. An internal error of the
/// manager may pass.
fn is_final(error: &CallError) -> bool {
    match error {
        CallError::HttpStatus(400..500, _) | CallError::InvalidReply(..) => true,
        CallError::JsonRpc(code, _) => *code != -32603,
        _ => false,
    }
}
