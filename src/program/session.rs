//! A referee's or a player's life in a league: it finds its card, joins, knows the manager's
//! requests from those of a stranger, and ends when the league is over, or waits for the next one
//! (`--stay`).
//!
//! Requests that come before the agent knows its id wait until it does. How it joins is in
//! `registration.rs`. Read next: `server.rs`, or the agents themselves, `player.rs` and
//! `referee.rs`.

use crate::net::agent::Agent;
use crate::net::letter::MAX_NOTICE;
use crate::net::log::Level;
use crate::net::secret::secret;
use crate::net::sync::Watched;
use crate::program::args::{Args, Stop};
use crate::program::card::{self, Card};
use crate::program::server::{self, FAREWELL};
use crate::program::terminal::{say, shown};
use crate::program::{Program, registration, storage};
use crate::protocol::*;
use crate::wire::equal;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::sync::Arc;
use std::time::Duration;

/// How long a request waits for a registration that is under way.
const REGISTRATION: Duration = Duration::from_secs(5);

/// A referee or a player in its league.
pub struct Session {
    /// What it is made of.
    pub program: Arc<Program>,
    life: Watched<Life>,
}

#[derive(Default)]
struct Life {
    /// Who we are, once the manager has let us in.
    card: Option<Card>,
    /// The lock on our id's card; ours while we run.
    held: Option<(String, File)>,
    /// Whether the manager has called us.
    is_called: bool,
    /// How it ended, once it has.
    end: Option<Result<(), Stop>>,
}

/// What a referee or player does beside answering.
pub trait Participant: Agent {
    /// The games that it can play.
    fn plays(&self) -> Vec<&'static str>;
    /// It is registered. `fresh`: newly, so that what it kept of an older registration must be set
    /// aside.
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop>;
}

/// Runs a referee or a player to its end: listen, register, answer until the league is over.
pub fn run<P: Participant>(
    args: Args,
    kind: Kind,
    make: impl FnOnce(Arc<Session>) -> Arc<P>,
) -> Result<(), Stop> {
    let session = Arc::new(Session {
        program: Arc::new(Program::new(args, kind)?),
        life: Watched::default(),
    });
    let participant = make(Arc::clone(&session));
    let card = session.own_card()?;
    let agent = Arc::clone(&participant) as Arc<dyn Agent>;
    let door = server::serve(&session.program, agent, MAX_NOTICE)?;
    let end = session.live(&*participant, card);
    door.wait_until_empty(FAREWELL);
    session.program.note_end(&end);
    end
}

impl Session {
    /// Registers, and answers until the league is over for us; then again, if we are to stay.
    fn live(&self, participant: &dyn Participant, mut card: Card) -> Result<(), Stop> {
        loop {
            card = self.register(participant, card)?;
            let name = shown(&self.program.entry.display_name.0);
            let league = shown(&card.league_id);
            let id = &card.agent_id;
            let note = match &self.program.wish {
                Some(wish) if wish != id => format!(" ({wish} is taken, or no such id)"),
                _ => String::new(),
            };
            say(&format!("{name} is {id} in {league}{note}"));
            self.life.wait_for(|life| life.end.clone())?;
            if !self.program.args.has("--stay") {
                return Ok(());
            }
            card = self.new_card(); // in another league our old card is nothing
        }
    }

    /// The card to ask with: that of an earlier run, its lock held, or a new one.
    fn own_card(&self) -> Result<Card, Stop> {
        if let Some(wish) = &self.program.wish {
            self.hold(wish)?;
        }
        let new = self.new_card();
        let Some(earlier) = new.earlier(&self.program.data)? else {
            return Ok(new);
        };
        self.hold(&earlier.agent_id)?;
        Ok(Card {
            manager: new.manager,
            endpoint: new.endpoint,
            ..earlier
        })
    }

    /// A card to ask with for the first time: it has a new key, and no token. It is named by the id
    /// that we ask for; without such a wish, by our port.
    fn new_card(&self) -> Card {
        let program = &self.program;
        let any = format!("new-{}", program.port);
        Card {
            agent_id: program.wish.clone().unwrap_or(any),
            token: None,
            registration_key: secret(32),
            league_id: program.league_id().into(),
            manager: program.config.manager().into(),
            endpoint: program.endpoint.clone(),
            proves_itself: None,
            over: None,
        }
    }

    /// Takes the lock of an id, and lets go of another.
    fn hold(&self, id: &str) -> Result<(), Stop> {
        let mut life = self.life.lock();
        if life.held.as_ref().is_none_or(|(known, _)| known != id) {
            life.held = Some((id.into(), card::lock(&self.program.data, id)?));
        }
        Ok(())
    }

    /// Registers with a card, which is on the disk before we ask; then signs, logs and begins under
    /// the id that the manager gave, and keeps the card as it is now. Requests that come meanwhile
    /// wait for it.
    pub fn register(&self, participant: &dyn Participant, asking: Card) -> Result<Card, Stop> {
        self.life.lock().card = None; // what the manager sends from now on may carry the next token
        let data = &self.program.data;
        asking.keep(data)?;
        let card = registration::register(&self.program, &asking, &participant.plays())?;
        // A token that we do not know means a registration of its own, perhaps in another run of
        // the league.
        let is_fresh = card.token.is_none() || card.token != asking.token;
        let id = &card.agent_id;
        self.hold(id)?;
        if let Some(other) = storage::read_json::<Card>(&card::file(data, id)) {
            // the id that the manager gave us may be another agent's here
            other.make_way(&card, data)?;
        }
        let client = &self.program.client;
        client.sign_as(&format!("{}:{id}", self.program.kind), &card.league_id);
        client.log.open(id, &format!("agents/{id}.log.jsonl"));
        if !is_fresh {
            let words = format!("{id} is known again");
            client.log.orchestrator(Level::Info, "resumed", words);
        }
        participant.begin(&card, is_fresh)?;
        card.keep(data)?;
        if asking.agent_id != *id && asking.token.is_none() {
            let _ = fs::remove_file(card::file(data, &asking.agent_id));
        }
        self.life.change(|life| {
            life.card = Some(card.clone());
            life.end = None; // of the league before
        });
        Ok(card)
    }

    /// Our card, if we have one already.
    pub fn card_now(&self) -> Option<Card> {
        self.life.lock().card.clone()
    }

    /// Our card, once the manager has let us in. A request that comes at that very moment waits for
    /// it.
    pub fn wait_for_card(&self) -> Result<Card, Refusal> {
        let is_known = |life: &Life| life.card.is_some();
        let not_yet = "this agent is not registered with a league manager yet";
        let card = self.life.wait_until(REGISTRATION, is_known).card.clone();
        card.ok_or_else(|| Refusal::new(Code::E005, not_yet))
    }

    /// The manager proves itself with our own token: see "Tokens" in `protocol.md`. A referee
    /// always demands it, a player where the manager has said that it proves itself; a wrong one is
    /// refused in any case.
    pub fn check_manager(&self, token: Option<&str>) -> Result<(), Refusal> {
        let card = self.wait_for_card()?;
        let security = &self.program.config.system.security;
        let is_proof_due = self.program.kind == Kind::Referee || card.proves_itself == Some(true);
        let denied = |code, problem| Err(Refusal::field(code, "auth_token", problem));
        match (token, &card.token) {
            _ if !security.enable_auth_tokens => {}
            (Some(token), Some(own)) if !equal(token, own) => {
                return denied(Code::E012, "only the league manager knows the right one");
            }
            (None, Some(_)) if is_proof_due => {
                let problem = "missing; the league manager's requests carry it";
                return denied(Code::E011, problem);
            }
            _ => {}
        }
        self.life.lock().is_called = true;
        Ok(())
    }

    /// Where we stand in our life.
    pub fn state(&self) -> AgentState {
        match &*self.life.lock() {
            Life { end: Some(_), .. } => AgentState::Shutdown,
            Life { card: None, .. } => AgentState::Init,
            Life { is_called, .. } if *is_called => AgentState::Active,
            _ => AgentState::Registered,
        }
    }

    /// What `GET /health` shows of us; the uptime is in seconds.
    pub fn health(&self) -> Value {
        json!({
            "name": self.program.entry.display_name.0,
            "kind": self.program.kind,
            "state": self.state(),
            "uptime": self.program.started.elapsed().as_secs(),
            "id": self.card_now().map(|card| card.agent_id),
        })
    }

    /// The league is over: our card says so, and `run` returns when the answers in hand are out.
    /// Says whether that is news, for the notice may come twice.
    pub fn league_is_over(&self) -> bool {
        if let Some(mut card) = self.card_now() {
            card.over = Some(true);
            let _ = card.keep(&self.program.data);
        }
        self.finish(Ok(()))
    }

    /// It ends for us: `run` returns when the answers in hand are out. Says whether that is news;
    /// the first end stands.
    pub fn finish(&self, end: Result<(), Stop>) -> bool {
        self.life.change(|life| {
            let is_news = life.end.is_none();
            life.end.get_or_insert(end);
            is_news
        })
    }
}
