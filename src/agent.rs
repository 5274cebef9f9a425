//! What referees and players do alike: live through a league, know the manager's requests from a stranger's, and end.
//! How they join it is in `joining.rs`.

use crate::{
    base::{self, Base, id_option},
    config::Config,
    dispatch::{Agent, From},
    object,
    options::{Options, Stop},
    protocol::*,
    registration::{MATCHES_AT_ONCE, equal},
    screen::{say, shown},
    threads::lock,
    voice::{MAX_NOTICE, Voice},
};
use serde_json::Value;
use std::{
    path::Path,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// How long an ending program waits for its last answers and deliveries (R9).
pub const FAREWELL: Duration = Duration::from_secs(5);
/// How long a request waits for a registration that is under way.
const INTRODUCTION: Duration = Duration::from_secs(5);

object! {
    /// What an agent must know to be itself again: `data/agents/ID.json`.
    Card { agent_id: String, token: String, league_id: String, manager: String, endpoint: String, }
    /// `GET /health` of a referee or player; the uptime is in seconds.
    Health { name: String, kind: Kind, state: AgentState, uptime: u32, ; nullable id: String, }
}

/// A referee or a player.
pub struct Me {
    pub(crate) base: Base,
    pub(crate) kind: Kind,
    pub(crate) card: Mutex<Option<Card>>,
    /// Rung when there is a card.
    pub(crate) introduced: Condvar,
    /// Whether a notice of the manager has carried our token: from then on all must (R4).
    proven: AtomicBool,
    /// How it ended, once it has.
    end: Mutex<Option<Result<(), Stop>>>,
    ended: Condvar,
}

/// What a referee or player does beside answering.
pub trait Registrant: Agent {
    /// It is registered. `fresh`: newly, so that what it kept of an older registration must be set aside.
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop>;
}

/// Runs a referee or a player to its end: listen, register, answer until the league is over.
pub fn run<A: Registrant>(
    options: Options,
    kind: Kind,
    make: impl FnOnce(Arc<Me>) -> Result<Arc<A>, Stop>,
) -> Result<(), Stop> {
    base::operator_token(&options)?; // a file that is not there is said at once
    let wish = options.text(id_option(kind)).unwrap_or("new");
    let sender = format!("{kind}:{wish}");
    let base = Base::new(options, kind, &sender)?;
    let me = Arc::new(Me {
        base,
        kind,
        card: Mutex::new(None),
        introduced: Condvar::new(),
        proven: AtomicBool::new(false),
        end: Mutex::new(None),
        ended: Condvar::new(),
    });
    let agent = make(Arc::clone(&me))?;
    let door = me.base.serve(Arc::clone(&agent) as Arc<dyn Agent>, MAX_NOTICE)?;
    let end = me.live(&*agent);
    door.wait_until_empty(FAREWELL);
    me.base.note_end(&end);
    end
}

impl Me {
    /// Registers, and answers until the league is over for us.
    fn live(&self, agent: &dyn Registrant) -> Result<(), Stop> {
        self.register(agent, self.find_card(), false)?;
        if let Some(card) = self.card_now() {
            let other = !self.wish().is_empty() && self.wish() != card.agent_id;
            let note = if other { format!(" ({} is taken, or no such id)", self.wish()) } else { String::new() };
            say(&format!("{} is {} in {}{note}", shown(&self.display_name()), card.agent_id, shown(&card.league_id)));
        }
        let end = self.ended.wait_while(lock(&self.end), |end| end.is_none());
        end.unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(Ok(()))
    }

    /// The command line.
    pub fn options(&self) -> &Options {
        &self.base.options
    }

    /// The files.
    pub fn config(&self) -> &Config {
        &self.base.config
    }

    /// What must survive.
    pub fn data(&self) -> &Path {
        &self.base.data
    }

    /// How we speak.
    pub fn voice(&self) -> &Voice {
        &self.base.voice
    }

    /// Where others reach us.
    pub fn endpoint(&self) -> &str {
        &self.base.endpoint
    }

    /// The id to ask for.
    pub(crate) fn wish(&self) -> &str {
        self.options().text(id_option(self.kind)).unwrap_or_default()
    }

    /// What we are called: as asked for, as listed, or by default.
    pub fn display_name(&self) -> String {
        let listed = match self.kind {
            Kind::Referee => self.config().referee(self.wish()).display_name,
            _ => self.config().player(self.wish()).display_name,
        };
        self.options().text("--display-name").map_or(listed, String::from)
    }

    /// How many matches a referee plays at once: as asked for, as listed, or by default.
    pub fn max_concurrent_matches(&self) -> Result<u32, Stop> {
        let listed = self.config().referee(self.wish()).max_concurrent_matches;
        let at_once = self.options().number("--max-concurrent-matches")?.unwrap_or(listed);
        if !MATCHES_AT_ONCE.contains(&at_once) {
            return Err(Stop::usage(format!("--max-concurrent-matches: got {at_once}, expected 1 to 10")));
        }
        Ok(at_once)
    }

    /// Where we stand in our life (004).
    pub fn state(&self) -> AgentState {
        match (lock(&self.end).is_some(), self.card_now(), self.proven.load(Ordering::SeqCst)) {
            (true, ..) => AgentState::Shutdown,
            (_, None, _) => AgentState::Init,
            (.., false) => AgentState::Registered,
            (.., true) => AgentState::Active,
        }
    }

    /// What `GET /health` shows of us.
    pub fn health(&self) -> Value {
        let id = self.card_now().map(|card| card.agent_id);
        let (name, uptime) = (self.display_name(), self.base.started.elapsed().as_secs() as u32);
        let health = Health { name, kind: self.kind, state: self.state(), uptime, id };
        serde_json::to_value(health).unwrap_or_default()
    }

    /// Our card, if we have one already.
    pub fn card_now(&self) -> Option<Card> {
        lock(&self.card).clone()
    }

    /// Our card, once the manager has let us in. A request that comes at that very moment waits for it.
    pub fn card(&self) -> Result<Card, Refusal> {
        let waiting = self.introduced.wait_timeout_while(lock(&self.card), INTRODUCTION, |card| card.is_none());
        let (card, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        card.clone().ok_or_else(|| Refusal::new(Code::E005, "this agent is not registered with a league manager yet"))
    }

    /// The manager proves itself with our own token. A player lets notices without one through until the first
    /// that carried it; a referee never does (R4).
    pub fn check_manager(&self, from: &From) -> Result<(), Refusal> {
        self.check_token(&self.card()?, from.envelope.auth_token.as_deref(), self.kind == Kind::Referee)
    }

    /// Whether a request carries our own token; `demanded`: also from a manager that has never sent one.
    pub fn check_token(&self, card: &Card, token: Option<&str>, demanded: bool) -> Result<(), Refusal> {
        if !self.config().rules.tokens || card.token.is_empty() {
            return Ok(());
        }
        match token {
            Some(token) if equal(token, &card.token) => {
                self.proven.store(true, Ordering::SeqCst);
                Ok(())
            }
            Some(_) => Err(Refusal::field(Code::E012, "auth_token", "only the league manager knows the right one")),
            None if demanded || self.proven.load(Ordering::SeqCst) => {
                Err(Refusal::field(Code::E011, "auth_token", "missing; the league manager's requests carry it"))
            }
            None => Ok(()),
        }
    }

    /// A ping of the manager carries our token, and so proves it before its first notice (R4).
    pub fn pinged(&self, token: &str) {
        if let Ok(card) = self.card() {
            let _ = self.check_token(&card, Some(token), false);
        }
    }

    /// The league is over for us: `run` returns when the answers in hand are out.
    pub fn finish(&self, end: Result<(), Stop>) {
        lock(&self.end).get_or_insert(end);
        self.ended.notify_all();
    }
}
