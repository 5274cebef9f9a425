//! What every agent does: read its options, listen, answer; and what referees and players do: register or
//! re-attach, keep their card, know the manager's requests from a stranger's, end.

use crate::{
    config::Config,
    endpoint::Endpoint,
    files::{self, Access},
    http::{self, Door},
    log::{Level, Log},
    object,
    options::{Options, Stop},
    protocol::{
        AgentState, Code, Kind, LeagueRegisterRequest, Message, PlayerMeta, RefereeMeta, RefereeRegisterRequest,
        Refusal, Verdict,
    },
    registration::equal,
    rpc::{Agent, From, Served},
    voice::{self, About, Peer, Voice},
    wire::Wire,
};
use serde_json::Value;
use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How long an ending agent waits for its last answers and deliveries (R9).
pub const FAREWELL: Duration = Duration::from_secs(5);
/// How long a request waits for a registration that is under way.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// Locks, also after a panic elsewhere: what our locks protect is whole at every moment.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that has its configuration and its port, and answers nothing yet.
pub struct Base {
    /// The command line.
    pub options: Options,
    /// The files.
    pub config: Config,
    /// What must survive.
    pub data: PathBuf,
    /// Where others reach us.
    pub endpoint: String,
    /// How we speak.
    pub voice: Arc<Voice>,
    /// When we began.
    pub started: Instant,
    listener: Mutex<Option<TcpListener>>,
    address: String,
}

impl Base {
    /// Reads the configuration and takes a port: the given one; the listed one; else the first free of a range.
    pub fn new(options: Options, kind: Kind, sender: &str) -> Result<Base, Stop> {
        let folder = Path::new(options.text("--config").unwrap_or("config"));
        let config = Config::load(folder, options.text("--league-id")).map_err(Stop::usage)?;
        let host = options.text("--host").unwrap_or("127.0.0.1");
        let given = options.number::<u16>("--port")?;
        let listener = given.or(listed_port(&config, kind, &options)).map_or_else(
            || first_free(host, range(&config, kind)),
            |port| http::listen(host, port).map_err(Stop::usage),
        )?;
        let port = listener.local_addr().map_err(|error| Stop::failed(error.to_string()))?.port();
        let wildcard = matches!(host, "0.0.0.0" | "::" | "[::]");
        let contact = options.text("--contact-endpoint").map(String::from);
        if wildcard && contact.is_none() {
            return Err(Stop::usage(format!(
                "--host {host} is everywhere: say with --contact-endpoint URL where we are reached"
            )));
        }
        let endpoint = contact.unwrap_or_else(|| format!("http://{}:{port}/mcp", config.network.base_host));
        let own =
            Endpoint::parse(&endpoint).map_err(|legal| Stop::usage(format!("--contact-endpoint: expected {legal}")))?;
        let base_host = Endpoint::parse(&format!("http://{}/", config.network.base_host)).map(|base| base.host);
        let hosts = ["127.0.0.1".into(), "[::1]".into(), host.into(), own.host, base_host.unwrap_or_default()];
        let logs = Path::new(options.text("--logs").unwrap_or("logs"));
        let log = Arc::new(Log::new(logs, sender));
        let shown = if host == "127.0.0.1" { "localhost" } else { host };
        Ok(Base {
            data: options.text("--data").unwrap_or("data").into(),
            voice: Arc::new(Voice::new(sender, config.strict_envelope, hosts.into(), log)),
            started: Instant::now(),
            listener: Mutex::new(Some(listener)),
            address: format!("http://{shown}:{port}/mcp"),
            endpoint,
            config,
            options,
        })
    }

    /// Answers from now on; says so on standard output. `max_body` is in bytes.
    pub fn serve(&self, agent: Arc<dyn Agent>, max_body: usize) -> Result<Arc<Door>, Stop> {
        let listener = lock(&self.listener).take().ok_or_else(|| Stop::failed("serves already"))?;
        let door = http::serve(listener, max_body, Arc::new(Served(agent)))
            .map_err(|error| Stop::failed(error.to_string()))?;
        println!("listening on {}", self.address);
        self.voice.log.orchestrator(Level::Info, "started", &*self.address);
        if self.options.has("--until-stdin-closes") {
            http::spawn("stdin", || {
                let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
                std::process::exit(0);
            });
        }
        Ok(door)
    }

    /// The operator token, if a file with it was named.
    pub fn operator_token(&self) -> Result<Option<String>, Stop> {
        let read = |path: &str| fs::read_to_string(path).map_err(|error| Stop::usage(format!("{path}: {error}")));
        Ok(self.options.text("--operator-token-file").map(read).transpose()?.map(|token| token.trim().to_string()))
    }

    /// Where the manager is: `--manager`, else as listed.
    pub fn manager(&self) -> String {
        self.options.text("--manager").unwrap_or(&self.config.agents.league_manager.endpoint).to_string()
    }
}

fn id_option(kind: Kind) -> &'static str {
    if kind == Kind::Referee { "--referee-id" } else { "--player-id" }
}

fn listed_port(config: &Config, kind: Kind, options: &Options) -> Option<u16> {
    let id = match kind {
        Kind::Manager => return Some(config.network.default_league_manager_port),
        kind => options.text(id_option(kind))?,
    };
    let listed = config.rules.listed.iter().find(|listed| listed.id == id)?;
    Endpoint::parse(&listed.endpoint).ok().map(|endpoint| endpoint.port)
}

fn range(config: &Config, kind: Kind) -> (u16, u16) {
    let range = match kind {
        Kind::Referee => &config.network.default_referee_port_range,
        _ => &config.network.default_player_port_range,
    };
    (range[0], range[1])
}

fn first_free(host: &str, (first, last): (u16, u16)) -> Result<TcpListener, Stop> {
    let all_taken = || Stop::usage(format!("ports {first} to {last} are all in use; choose another with --port N"));
    (first..=last).find_map(|port| http::listen(host, port).ok()).ok_or_else(all_taken)
}

object! {
    /// What an agent must remember to be itself again: `data/agents/ID.json`.
    Card { agent_id: String, token: String, league_id: String, manager: String, endpoint: String, }
}

object! {
    /// `GET /health` of a referee or player; the uptime is in seconds.
    Health { name: String, kind: Kind, state: AgentState, uptime_sec: u32, ; nullable agent_id: String, }
}

/// A referee or a player.
pub struct Me {
    /// The program.
    pub base: Base,
    kind: Kind,
    card: Mutex<Option<Card>>,
    introduced: Condvar,
    /// Whether a notice of the manager has carried our token: from then on all must (R4).
    proven: AtomicBool,
    over: Mutex<bool>,
    ended: Condvar,
}

/// What `run` needs of a referee or player beside answering.
pub trait Competitor: Agent {
    /// It is registered. `fresh`: newly, so that what it kept of an older registration is to be set aside.
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop>;
}

/// Runs a referee or a player to its end: listen, register, play until the league is over.
pub fn run<A: Competitor>(
    options: Options,
    kind: Kind,
    make: impl FnOnce(Arc<Me>) -> Result<Arc<A>, Stop>,
) -> Result<(), Stop> {
    let wish = options.text(id_option(kind)).map_or_else(|| "new".into(), String::from);
    let base = Base::new(options, kind, &format!("{kind}:{wish}"))?;
    let (card, introduced, over, ended) = Default::default();
    let me = Arc::new(Me { base, kind, card, introduced, proven: AtomicBool::new(false), over, ended });
    let agent = make(Arc::clone(&me))?;
    let door = me.base.serve(Arc::clone(&agent) as Arc<dyn Agent>, voice::MAX_NOTICE)?;
    me.register(&*agent, find_card(&me))?;
    drop(me.ended.wait_while(lock(&me.over), |over| !*over));
    door.wait_until_empty(FAREWELL);
    me.base.voice.log.orchestrator(Level::Info, "ended", "the league is over");
    Ok(())
}

/// The card of our id, else the one of our endpoint, if it is of this league and manager.
fn find_card(me: &Me) -> Option<Card> {
    let folder = me.base.data.join("agents");
    let read = |path: PathBuf| Card::read(&files::read_json(&path).ok()?).ok();
    let wish = me.base.options.text(id_option(me.kind));
    let of_id = wish.and_then(|id| read(folder.join(format!("{id}.json"))));
    let of_endpoint = || {
        let cards = fs::read_dir(&folder).ok()?.flatten().filter_map(|entry| read(entry.path()));
        cards.into_iter().find(|card| Endpoint::same(&card.endpoint, &me.base.endpoint))
    };
    let found = if wish.is_some() { of_id } else { of_endpoint() };
    let league = &me.base.config.rules.league_id;
    found.filter(|card| card.league_id == *league && Endpoint::same(&card.manager, &me.base.manager()))
}

impl Me {
    /// Our card, once the manager has let us in. A request that comes at that very moment waits for it.
    pub fn card(&self) -> Result<Card, Refusal> {
        let waiting = self.introduced.wait_timeout_while(lock(&self.card), INTRODUCTION, |card| card.is_none());
        let (card, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        card.clone().ok_or_else(|| Refusal::new(Code::E005, "this agent is not registered with a league manager yet"))
    }

    /// What we are called.
    pub fn display_name(&self) -> String {
        match self.application().0 {
            Message::RefereeRegisterRequest(request) => request.referee_meta.display_name,
            Message::LeagueRegisterRequest(request) => request.player_meta.display_name,
            _ => String::new(),
        }
    }

    /// Where we stand in our life (004).
    pub fn state(&self) -> AgentState {
        match (*lock(&self.over), self.card_now(), self.proven.load(Ordering::SeqCst)) {
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

    /// The manager proves itself with our own token. A player lets notices without one through until the first
    /// that carried it; a referee never does (R4).
    pub fn check_manager(&self, from: &From) -> Result<(), Refusal> {
        let card = self.card()?;
        self.check_token(&card, from.envelope.auth_token.as_deref(), self.kind == Kind::Referee)
    }

    /// Whether a request carries our own token; `demanded`: also from a manager that has never sent one.
    pub fn check_token(&self, card: &Card, token: Option<&str>, demanded: bool) -> Result<(), Refusal> {
        let checked = self.base.config.rules.tokens && !card.token.is_empty();
        match token {
            _ if !checked => Ok(()),
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

    /// The league is over for us: `run` returns when the answers in hand are out.
    pub fn finish(&self) {
        *lock(&self.over) = true;
        self.ended.notify_all();
    }

    /// Registers, with the token of an older card if there is one; asks until the manager answers.
    pub fn register(&self, agent: &dyn Competitor, old: Option<Card>) -> Result<(), Stop> {
        let (manager, policy) = (self.base.manager(), self.base.config.retry);
        let to = Peer { name: "league_manager", endpoint: &manager };
        let token = old.as_ref().map(|card| card.token.clone()).filter(|token| !token.is_empty());
        let operator = self.base.operator_token()?;
        let words = format!("{}-registration", self.kind);
        let about =
            About { conversation_id: voice::conversation(&words), auth_token: token.or(operator), ..About::default() };
        let (message, limit) = self.application();
        let mut said = false;
        let reply = loop {
            match self.base.voice.ask(to, &message, &about, limit) {
                Ok((_, reply)) => break reply,
                Err(failure) if failure.is_trouble() => {
                    if !std::mem::replace(&mut said, true) {
                        eprintln!("waiting for the league manager at {manager} ({})", failure.explain());
                    }
                    voice::pause(policy.base_delay);
                }
                Err(failure) => return Err(Stop::failed(format!("{manager}: {}", failure.explain()))),
            }
        };
        let (id, token, league_id) = accepted(reply)?;
        let league_id = league_id.unwrap_or_else(|| self.base.config.rules.league_id.clone());
        let card = Card {
            agent_id: id,
            token: token.unwrap_or_default(),
            league_id,
            manager,
            endpoint: self.base.endpoint.clone(),
        };
        // A token we do not know means a registration of its own, perhaps in another run of the league.
        let fresh = old.is_none_or(|old| old.agent_id != card.agent_id || old.token != card.token);
        self.introduce(agent, card, fresh)
    }

    fn introduce(&self, agent: &dyn Competitor, card: Card, fresh: bool) -> Result<(), Stop> {
        let Base { voice, data, .. } = &self.base;
        voice.join(&format!("{}:{}", self.kind, card.agent_id), &card.league_id);
        voice.log.open(&card.agent_id, &format!("agents/{}.log.jsonl", card.agent_id));
        agent.begin(&card, fresh)?;
        let path = data.join(format!("agents/{}.json", card.agent_id));
        files::replace_json(&path, Access::Owner, &card)
            .map_err(|error| Stop::failed(format!("{}: {error}", path.display())))?;
        *lock(&self.card) = Some(card);
        self.introduced.notify_all();
        Ok(())
    }

    /// What we say of ourselves: as listed, else as the defaults have it; the command line overrules both.
    fn application(&self) -> (Message, Duration) {
        let Base { config, options, endpoint, .. } = &self.base;
        let wish = options.text(id_option(self.kind)).unwrap_or_default();
        let named = |listed: &str| options.text("--display-name").unwrap_or(listed).to_string();
        if self.kind == Kind::Referee {
            let listed = config.agents.referees.iter().find(|entry| entry.referee_id == wish);
            let default = &config.referee;
            let referee_meta = RefereeMeta {
                display_name: named(listed.map_or(&default.display_name, |entry| &entry.display_name)),
                version: listed.map_or(&default.version, |entry| &entry.version).clone(),
                game_types: listed.map_or(&default.game_types, |entry| &entry.game_types).clone(),
                contact_endpoint: endpoint.clone(),
                max_concurrent_matches: self.max_concurrent_matches(),
                protocol_version: None,
                uses_match_tokens: Some(true),
            };
            return (RefereeRegisterRequest { referee_meta }.into(), config.register_referee_limit);
        }
        let listed = config.agents.players.iter().find(|entry| entry.player_id == wish);
        let default = &config.player;
        let player_meta = PlayerMeta {
            display_name: named(listed.map_or(&default.display_name, |entry| &entry.display_name)),
            version: listed.map_or(&default.version, |entry| &entry.version).clone(),
            game_types: listed.map_or(&default.game_types, |entry| &entry.game_types).clone(),
            contact_endpoint: endpoint.clone(),
            protocol_version: None,
        };
        (LeagueRegisterRequest { player_meta }.into(), config.register_player_limit)
    }

    /// How many matches a referee plays at once: as asked for, as listed, or by default.
    pub fn max_concurrent_matches(&self) -> u32 {
        let Base { config, options, .. } = &self.base;
        let wish = options.text("--referee-id").unwrap_or_default();
        let listed = config.agents.referees.iter().find(|entry| entry.referee_id == wish);
        let default = listed.map_or(config.referee.max_concurrent_matches, |entry| entry.max_concurrent_matches);
        options.number("--max-concurrent-matches").ok().flatten().unwrap_or(default)
    }
}

/// The id, token and league of an accepted registration; else why not.
fn accepted(reply: Message) -> Result<(String, Option<String>, Option<String>), Stop> {
    let (status, id, token, league, reason) = match reply {
        Message::RefereeRegisterResponse(it) => (it.status, it.referee_id, it.auth_token, it.league_id, it.reason),
        Message::LeagueRegisterResponse(it) => (it.status, it.player_id, it.auth_token, it.league_id, it.reason),
        Message::LeagueError(error) => {
            let context = serde_json::to_string(&error.context).unwrap_or_default();
            return Err(Stop::failed(format!("refused: {} {} {context}", error.error_code, error.error_description)));
        }
        other => return Err(Stop::failed(format!("the manager answered with {}", other.name()))),
    };
    match (status, id) {
        (Verdict::Accepted, Some(id)) if id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') => {
            Ok((id, token, league))
        }
        (Verdict::Accepted, id) => Err(Stop::failed(format!("accepted, but with the id {id:?}"))),
        (Verdict::Rejected, _) => Err(Stop::failed(format!("rejected: {}", reason.unwrap_or_default()))),
    }
}
