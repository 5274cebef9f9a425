//! What referees and players do alike: register or re-attach, keep their card, know the manager's requests from a
//! stranger's, and end.

use crate::{
    base::{self, Base},
    config::Config,
    config_files::{PlayerDefaults, RefereeDefaults},
    dispatch::{Agent, From},
    endpoint::Endpoint,
    failure::pause,
    files::{self, Access},
    log::Level,
    object,
    options::{Options, Stop},
    protocol::*,
    registration::equal,
    screen::{say, shown},
    threads::lock,
    voice::{self, About, MAX_NOTICE, Peer, Voice},
    wire::{Unread, Wire},
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
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
    /// A registration that was asked for and is not on a card yet, by endpoint: an agent that dies meanwhile asks in
    /// the same conversation again, and gets the same answer (R5).
    Asked { conversation_id: String, league_id: String, manager: String, endpoint: String, }
    /// `GET /health` of a referee or player; the uptime is in seconds.
    Health { name: String, kind: Kind, state: AgentState, uptime_sec: u32, ; nullable agent_id: String, }
}

/// A referee or a player.
pub struct Me {
    base: Base,
    kind: Kind,
    card: Mutex<Option<Card>>,
    introduced: Condvar,
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
    let (card, introduced, proven, end, ended) = Default::default();
    let me = Arc::new(Me { base, kind, card, introduced, proven, end, ended });
    let agent = make(Arc::clone(&me))?;
    let door = me.base.serve(Arc::clone(&agent) as Arc<dyn Agent>, MAX_NOTICE)?;
    let end = me.live(&*agent);
    door.wait_until_empty(FAREWELL);
    me.base.note_end(&end);
    end
}

fn id_option(kind: Kind) -> &'static str {
    if kind == Kind::Referee { "--referee-id" } else { "--player-id" }
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
    fn wish(&self) -> &str {
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
        let fault = || Stop::usage(format!("--max-concurrent-matches: got {at_once}, expected 1 to 10"));
        (1..=10).contains(&at_once).then_some(at_once).ok_or_else(fault)
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
        let agent_id = self.card_now().map(|card| card.agent_id);
        let (name, uptime_sec) = (self.display_name(), self.base.started.elapsed().as_secs() as u32);
        let health = Health { name, kind: self.kind, state: self.state(), uptime_sec, agent_id };
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
        match token {
            _ if !self.config().rules.tokens || card.token.is_empty() => Ok(()),
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

    /// The card of our id, else the one of our endpoint, if it is of this league and manager.
    fn find_card(&self) -> Option<Card> {
        let folder = self.data().join("agents");
        let read = |path: PathBuf| Card::read(&files::read_json(&path).ok()?).ok();
        let found = read(folder.join(format!("{}.json", self.wish()))).or_else(|| {
            let mut cards = fs::read_dir(&folder).ok()?.flatten().filter_map(|entry| read(entry.path()));
            cards.find(|card| Endpoint::same(&card.endpoint, self.endpoint()))
        });
        let league = &self.config().rules.league_id;
        found.filter(|card| card.league_id == *league && Endpoint::same(&card.manager, self.base.manager()))
    }

    /// Registers, with the token of an older card if there is one; asks until the manager answers. `expired`: the
    /// manager has said that it knows that token, and that its time is over.
    pub fn register(&self, agent: &dyn Registrant, old: Option<Card>, expired: bool) -> Result<(), Stop> {
        let operator = base::operator_token(self.options())?;
        let expired = expired || old.as_ref().is_some_and(|card| self.has_expired(card));
        let own = old.as_ref().map(|card| card.token.clone()).filter(|token| !token.is_empty());
        let card = match self.ask_to_register(own.clone().or(operator.clone()))? {
            // Another run of the league does not know our card; the operator's word may help.
            Err(_) if own.is_some() && operator.is_some() => self.ask_to_register(operator)?,
            answer => answer,
        };
        let card = card.map_err(|reason| Stop::failed(format!("rejected: {reason}")))?;
        // A token we do not know means a registration of its own, perhaps in another run of the league.
        let fresh = old.is_none_or(|old| old.agent_id != card.agent_id || !expired && old.token != card.token);
        if !fresh {
            self.voice().log.orchestrator(Level::Info, "resumed", format!("{} is known again", card.agent_id));
        }
        self.introduce(agent, card, fresh)
    }

    /// Whether the manager knows the token of a card, and its time is over. Registering with it we get another one, as
    /// in a new league; but what we keep stays ours. Asked once: a manager that does not answer does not know it.
    fn has_expired(&self, card: &Card) -> bool {
        self.voice().join(&format!("{}:{}", self.kind, card.agent_id), &card.league_id);
        let (league_id, query_type) = (card.league_id.clone(), Unread::new(QueryType::Standings.word()));
        let query = LeagueQuery { league_id, query_type, query_params: None }.into();
        let (conversation_id, auth_token) = (voice::conversation("known"), Some(card.token.clone()));
        let about = About { conversation_id, auth_token, ..About::default() };
        let reply = self.voice().ask(self.to_manager(), &query, &about, self.config().generic_limit);
        matches!(reply, Ok((_, Message::LeagueError(error))) if error.says_expired())
    }

    fn to_manager(&self) -> Peer<'_> {
        Peer { name: "league_manager", endpoint: self.base.manager(), max: MAX_NOTICE }
    }

    /// Our card, or the reason why we are not let in. Asks until the manager answers.
    fn ask_to_register(&self, auth_token: Option<String>) -> Result<Result<Card, String>, Stop> {
        let (to, (message, limit)) = (self.to_manager(), self.application()?);
        let about = About { conversation_id: self.conversation()?, auth_token, ..About::default() };
        let mut said = false;
        loop {
            match self.voice().ask(to, &message, &about, limit) {
                Ok((_, reply)) => return self.accepted(reply),
                Err(failure) if failure.may_pass() => {
                    if !std::mem::replace(&mut said, true) {
                        eprintln!("waiting for the league manager at {} ({})", to.endpoint, failure.explain());
                    }
                    pause(self.config().retry.base_delay);
                }
                Err(failure) => return Err(Stop::failed(format!("{}: {}", to.endpoint, failure.explain()))),
            }
        }
    }

    /// The conversation of a registration: kept until its answer is on a card.
    fn conversation(&self) -> Result<String, Stop> {
        let asked = files::read_json(&self.asked()).ok().and_then(|file| Asked::read(&file).ok());
        let (league_id, manager) = (self.config().rules.league_id.clone(), self.base.manager().to_string());
        let endpoint = self.endpoint().to_string();
        let same = |it: &Asked| it.league_id == league_id && it.manager == manager && it.endpoint == endpoint;
        if let Some(asked) = asked.filter(same) {
            return Ok(asked.conversation_id);
        }
        let conversation_id = voice::conversation(&format!("{}-registration", self.kind));
        let asked = Asked { conversation_id, league_id, manager, endpoint };
        files::replace_json(&self.asked(), Access::Owner, &asked).map_err(|error| Stop::failed(error.to_string()))?;
        Ok(asked.conversation_id)
    }

    fn asked(&self) -> PathBuf {
        let port = Endpoint::parse(self.endpoint()).map_or(0, |endpoint| endpoint.port);
        self.data().join(format!("agents/{}-{port}.asked", self.kind))
    }

    /// What we say of ourselves, and how long we wait for an answer.
    fn application(&self) -> Result<(Message, Duration), Stop> {
        let (config, display_name, contact_endpoint) = (self.config(), self.display_name(), self.endpoint().into());
        Ok(if self.kind == Kind::Referee {
            let RefereeDefaults { version, game_types, .. } = config.referee(self.wish());
            let (max_concurrent_matches, uses_match_tokens) = (self.max_concurrent_matches()? as i32, Some(true));
            let protocol_version = None;
            let referee_meta = RefereeMeta {
                display_name,
                version,
                game_types,
                contact_endpoint,
                max_concurrent_matches,
                protocol_version,
                uses_match_tokens,
            };
            (RefereeRegisterRequest { referee_meta }.into(), config.register_referee_limit)
        } else {
            let PlayerDefaults { version, game_types, .. } = config.player(self.wish());
            let meta = PlayerMeta { display_name, version, game_types, contact_endpoint, protocol_version: None };
            (LeagueRegisterRequest { player_meta: meta }.into(), config.register_player_limit)
        })
    }

    /// What the manager's answer says.
    fn accepted(&self, reply: Message) -> Result<Result<Card, String>, Stop> {
        let (status, id, token, league_id, reason) = match reply {
            Message::RefereeRegisterResponse(it) => (it.status, it.referee_id, it.auth_token, it.league_id, it.reason),
            Message::LeagueRegisterResponse(it) => (it.status, it.player_id, it.auth_token, it.league_id, it.reason),
            Message::LeagueError(error) => return Err(Stop::failed(format!("refused: {}", error.explain()))),
            other => return Err(Stop::failed(format!("the manager answered with {}", other.name()))),
        };
        match (status, id.filter(|id| files::is_plain(id))) {
            (Verdict::Accepted, Some(agent_id)) => Ok(Ok(Card {
                agent_id,
                token: token.unwrap_or_default(),
                league_id: league_id.unwrap_or_else(|| self.config().rules.league_id.clone()),
                manager: self.base.manager().into(),
                endpoint: self.endpoint().into(),
            })),
            (Verdict::Accepted, None) => Err(Stop::failed("accepted, but without an id of letters and digits")),
            (Verdict::Rejected, _) => Ok(Err(reason.unwrap_or_default())),
        }
    }

    fn introduce(&self, agent: &dyn Registrant, card: Card, fresh: bool) -> Result<(), Stop> {
        self.voice().join(&format!("{}:{}", self.kind, card.agent_id), &card.league_id);
        self.voice().log.open(&card.agent_id, &format!("agents/{}.log.jsonl", card.agent_id));
        agent.begin(&card, fresh)?;
        let path = self.data().join(format!("agents/{}.json", card.agent_id));
        files::replace_json(&path, Access::Owner, &card).map_err(|error| Stop::failed(error.to_string()))?;
        let _ = fs::remove_file(self.asked()); // if it stays, the next registration is in the same conversation
        *lock(&self.card) = Some(card);
        self.introduced.notify_all();
        Ok(())
    }
}
