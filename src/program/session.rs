//! A referee's or a player's life in a league: it joins, knows the manager's requests from a stranger's, and ends.
//! How it joins is in `registration.rs`.

use crate::net::agent::{Agent, Request};
use crate::net::client::MAX_NOTICE;
use crate::net::log::Level;
use crate::net::sync::lock;
use crate::object;
use crate::program::args::{Args, Stop};
use crate::program::card::Card;
use crate::program::registration;
use crate::program::terminal::{say, shown};
use crate::program::{Program, id_option, server};
use crate::protocol::*;
use crate::wire::equal;
use serde_json::Value;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long an ending program waits for its last answers and deliveries.
pub const FAREWELL: Duration = Duration::from_secs(5);
/// How long a request waits for a registration that is under way.
const REGISTRATION: Duration = Duration::from_secs(5);

object! {
    /// `GET /health` of a referee or player; the uptime is in seconds.
    AgentHealth { name: String, kind: Kind, state: AgentState, uptime: u32, id: Option<String>, }
}

/// A referee or a player in its league.
pub struct Session {
    /// What it is made of.
    pub program: Arc<Program>,
    card: Mutex<Option<Card>>,
    /// Rung when there is a card.
    registered: Condvar,
    /// The lock on our id's card; ours while we run.
    held: Mutex<Option<(String, File)>>,
    /// Whether the manager has called us.
    called: AtomicBool,
    /// How it ended, once it has.
    end: Mutex<Option<Result<(), Stop>>>,
    ended: Condvar,
}

/// What a referee or player does beside answering.
pub trait Participant: Agent {
    /// It is registered. `fresh`: newly, so that what it kept of an older registration must be set aside.
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop>;
}

/// Runs a referee or a player to its end: listen, register, answer until the league is over.
pub fn run<P: Participant>(
    args: Args,
    kind: Kind,
    make: impl FnOnce(Arc<Session>) -> Result<Arc<P>, Stop>,
) -> Result<(), Stop> {
    let wish = args.text(id_option(kind)).unwrap_or("new");
    let sender = format!("{kind}:{wish}");
    let program = Program::new(args, kind, &sender)?;
    registration::check(&program)?;
    let session = Arc::new(Session {
        program: Arc::new(program),
        card: Mutex::new(None),
        registered: Condvar::new(),
        held: Mutex::new(None),
        called: AtomicBool::new(false),
        end: Mutex::new(None),
        ended: Condvar::new(),
    });
    let participant = make(Arc::clone(&session))?;
    let old = session.own_card()?;
    let door = server::serve(
        &session.program,
        Arc::clone(&participant) as Arc<dyn Agent>,
        MAX_NOTICE,
    )?;
    let end = session.live(&*participant, old);
    door.wait_until_empty(FAREWELL);
    session.program.note_end(&end);
    end
}

impl Session {
    /// Registers, and answers until the league is over for us; then again, if we are to stay.
    fn live(&self, participant: &dyn Participant, old: Option<Card>) -> Result<(), Stop> {
        let mut end = self.play_league(participant, old);
        while end.is_ok() && self.program.args.has("--stay") {
            end = self.play_league(participant, None); // our old token is nothing there
        }
        end
    }

    fn play_league(&self, participant: &dyn Participant, old: Option<Card>) -> Result<(), Stop> {
        let card = self.register(participant, old)?;
        lock(&self.end).take(); // of the league before
        let (name, wish) = (
            registration::display_name(&self.program),
            registration::wish(&self.program),
        );
        let other = !wish.is_empty() && wish != card.agent_id;
        let note = if other {
            format!(" ({wish} is taken, or no such id)")
        } else {
            String::new()
        };
        say(&format!(
            "{} is {} in {}{note}",
            shown(&name),
            card.agent_id,
            shown(&card.league_id)
        ));
        let end = self.ended.wait_while(lock(&self.end), |end| end.is_none());
        end.unwrap_or_else(PoisonError::into_inner)
            .clone()
            .unwrap_or(Ok(()))
    }

    /// The card of an earlier run, its lock held; or none.
    fn own_card(&self) -> Result<Option<Card>, Stop> {
        let wish = registration::wish(&self.program);
        if !wish.is_empty() {
            self.hold(wish)?;
        }
        let found = self.program.cards().find(wish)?;
        found
            .iter()
            .try_for_each(|card| self.hold(&card.agent_id))?;
        Ok(found)
    }

    /// Takes the lock of an id, and lets go of another.
    fn hold(&self, id: &str) -> Result<(), Stop> {
        let mut held = lock(&self.held);
        if held.as_ref().is_none_or(|(known, _)| known != id) {
            *held = Some((id.into(), self.program.cards().lock(id)?));
        }
        Ok(())
    }

    /// Registers, with the token of an older card if there is one; then signs, logs and begins under the id that the
    /// manager gave, and keeps the card. Requests that come meanwhile wait for it.
    pub fn register(&self, participant: &dyn Participant, old: Option<Card>) -> Result<Card, Stop> {
        lock(&self.card).take(); // what the manager sends from now on may carry the next token: it waits for it
        let card = registration::register(&self.program, old.as_ref())?;
        self.hold(&card.agent_id)?;
        self.program.cards().check(&card.agent_id)?;
        let (client, id) = (&self.program.client, &card.agent_id);
        client.sign_as(&format!("{}:{id}", self.program.kind), &card.league_id);
        client.log.open(id, &format!("agents/{id}.log.jsonl"));
        // A token that we do not know means a registration of its own, perhaps in another run of the league.
        let fresh = old.is_none_or(|old| old.token != card.token);
        if !fresh {
            client
                .log
                .orchestrator(Level::Info, "resumed", format!("{id} is known again"));
        }
        participant.begin(&card, fresh)?;
        self.program.cards().keep(&card)?;
        *lock(&self.card) = Some(card.clone());
        self.registered.notify_all();
        Ok(card)
    }

    /// Our card, if we have one already.
    pub fn card_now(&self) -> Option<Card> {
        lock(&self.card).clone()
    }

    /// Our card, once the manager has let us in. A request that comes at that very moment waits for it.
    pub fn wait_for_card(&self) -> Result<Card, Refusal> {
        let waiting = self
            .registered
            .wait_timeout_while(lock(&self.card), REGISTRATION, |card| card.is_none());
        let (card, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        card.clone().ok_or_else(|| {
            Refusal::new(
                Code::E005,
                "this agent is not registered with a league manager yet",
            )
        })
    }

    /// The manager proves itself with our own token: see "Tokens" in `protocol.md`.
    pub fn check_manager(&self, request: &Request) -> Result<(), Refusal> {
        self.check_token(request.envelope.auth_token.as_deref())
    }

    /// Whether a request carries our own token. A referee always demands it, a player where the manager has said that
    /// it proves itself; a wrong one is refused in any case.
    pub fn check_token(&self, token: Option<&str>) -> Result<(), Refusal> {
        let card = self.wait_for_card()?;
        let demanded = self.program.kind == Kind::Referee || card.proves_itself == Some(true);
        let denied = |code, problem| Err(Refusal::field(code, "auth_token", problem));
        match token {
            _ if !self.program.config.system.security.enable_auth_tokens
                || card.token.is_empty() => {}
            Some(token) if equal(token, &card.token) => {}
            Some(_) => return denied(Code::E012, "only the league manager knows the right one"),
            None if demanded => {
                return denied(
                    Code::E011,
                    "missing; the league manager's requests carry it",
                );
            }
            None => {}
        }
        self.called.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Where we stand in our life.
    pub fn state(&self) -> AgentState {
        match (
            lock(&self.end).is_some(),
            self.card_now(),
            self.called.load(Ordering::SeqCst),
        ) {
            (true, ..) => AgentState::Shutdown,
            (_, None, _) => AgentState::Init,
            (.., false) => AgentState::Registered,
            (.., true) => AgentState::Active,
        }
    }

    /// What `GET /health` shows of us.
    pub fn health(&self) -> Value {
        let id = self.card_now().map(|card| card.agent_id);
        let (name, kind) = (registration::display_name(&self.program), self.program.kind);
        let uptime = self.program.started.elapsed().as_secs() as u32;
        let health = AgentHealth {
            name,
            kind,
            state: self.state(),
            uptime,
            id,
        };
        serde_json::to_value(health).unwrap_or_default()
    }

    /// The league is over: our card says so, and `run` returns when the answers in hand are out. Says whether that is
    /// news, for the notice may come twice.
    pub fn league_is_over(&self) -> bool {
        if let Some(card) = self.card_now() {
            let _ = self.program.cards().keep(&Card {
                over: Some(true),
                ..card
            });
        }
        self.finish(Ok(()))
    }

    /// It ends for us: `run` returns when the answers in hand are out. Says whether that is news.
    pub fn finish(&self, end: Result<(), Stop>) -> bool {
        let mut known = lock(&self.end);
        let is_news = known.is_none();
        known.get_or_insert(end); // the first stands
        self.ended.notify_all();
        is_news
    }
}
