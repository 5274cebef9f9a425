//! The league manager: registers referees and players, has every pair play, keeps the table.
//!
//! What may happen is decided in `src/league.rs`, what has happened is kept by `src/journal.rs`, and the rounds
//! are played by `src/rounds.rs`. Here: the options, the three words, and one `match` over the messages.

use league::{
    agent::FAREWELL,
    answers::StandingsData,
    base::Base,
    clock::Timestamp,
    dispatch::{Agent, Denial, From},
    endpoint::Endpoint,
    files::{self, Access},
    floor::Floor,
    http::Door,
    journal::{Journal, Record},
    launcher::{self, Children},
    league::Member,
    log::Level,
    object,
    options::{Options, Program, Stop},
    protocol::*,
    registration::{Applicant, Profile, Rejection, equal, token},
    rounds,
    screen::{counted, shown},
    threads::lock,
    voice::Voice,
};
use serde_json::Value;
use std::{
    fs, io,
    net::{IpAddr, ToSocketAddrs},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

const PROGRAM: Program = Program {
    name: "league_manager",
    about: "The manager of the AI Agent League: registers agents, has every pair play, keeps the table.",
    words: &[
        ("start", "tell a running manager to start its league"),
        ("status", "show how far a running manager's league has come"),
        ("local", "run a whole league here: manager, referees and players"),
    ],
    options: &[
        ("--players", "N", "start when so many have registered [local: 4; else on `start`]"),
        ("--referees", "N", "and so many referees [local: 2; else 1]"),
        ("--seed", "N", "make draws and random strategies of a local league repeatable"),
        ("--lead-sec", "N", "seconds from a round's announcement to its matches [local: 0; else as in the file]"),
        ("--stay", "", "keep serving when the league is over"),
        ("--fresh", "", "set an unfinished league aside and start anew"),
        ("--quiet", "", "print no results"),
        ("--manager", "URL", "for `start` and `status`: the manager [as listed in agents_config.json]"),
    ],
};

/// How often the manager looks, before the start, at what no event tells: children that failed, agents that are silent.
const TICK: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    PROGRAM.main(|options| match options.word {
        Some("start") => launcher::start(&options),
        Some("status") => launcher::status(&options),
        _ => manage(options),
    })
}

struct Manager {
    base: Base,
    floor: Arc<Floor>,
    /// So many players and referees start the league.
    awaited: Option<(usize, usize)>,
    seed: Option<u64>,
    operator_token: String,
}

object! {
    /// `GET /health`: the manager's own state, and LEAGUE_STATUS; the uptime is in seconds.
    Health {
        name: String, version: String, id: String, kind: Kind, state: AgentState, uptime: u32, league_id: String,
        status: Progress, current_round: u32, total_rounds: u32, matches_completed: u32,
        ; optional reason: String,
    }
}

/// Manages one league from where its journal stands to its end.
fn manage(options: Options) -> Result<(), Stop> {
    let local = options.word == Some("local");
    let base = Base::new(options, Kind::Manager, "league_manager")?;
    let (manager, resumed) = Manager::new(base, local)?;
    let (manager, door) = manager.serve()?;
    let end = manager.run(&door, local, resumed);
    manager.base.note_end(&end);
    end
}

impl Manager {
    fn new(base: Base, local: bool) -> Result<(Manager, bool), Stop> {
        let (config, options) = (&base.config, &base.options);
        let league_id = &config.rules.league_id;
        let sender = config.agents.league_manager.agent_id.as_ref();
        base.voice.join(&sender.map_or("league_manager".into(), |id| format!("league_manager:{id}")), league_id);
        let (awaited, seed) = (awaited(&base, local)?, options.number("--seed")?);
        let (league, journal, resumed) = Journal::find(&base.data, config.rules.clone(), options.has("--fresh"))?;
        base.voice.log.open("league_manager", &format!("league/{league_id}/league.log.jsonl"));
        let seed = seed.or(league.seed);
        let operator_token = operator_token(&base)?;
        let floor = Arc::new(Floor::new(&base, Arc::new(Record::new(league, journal)?), local)?);
        Ok((Manager { floor, awaited, seed, operator_token, base }, resumed))
    }

    /// Plays the league to its end, with its agents as our children if it is `local`.
    fn run(&self, door: &Door, local: bool, resumed: bool) -> Result<(), Stop> {
        let screen = &self.floor.screen;
        if resumed {
            self.voice().log.orchestrator(Level::Info, "resumed", "an unfinished league was found");
            screen.say("an unfinished league was found: it goes on (--fresh sets it aside instead)");
        }
        let children = if local { Some(self.start_children()?) } else { None };
        if !local {
            screen.say(&format!("operator token in {}", operator_file(&self.base).display()));
        }
        let under_way = self.floor.record.read(|league| league.started);
        self.wait_for_start(children.as_ref())?;
        self.announce_start();
        rounds::play(&self.floor, under_way)?;
        self.end(door, children);
        Ok(())
    }

    fn serve(self) -> Result<(Arc<Manager>, Arc<Door>), Stop> {
        let limit = self.base.config.max_message_bytes;
        let manager = Arc::new(self);
        let door = manager.base.serve(Arc::clone(&manager) as Arc<dyn Agent>, limit)?;
        Ok((manager, door))
    }

    fn start_children(&self) -> Result<Children, Stop> {
        let (players, referees) = self.awaited.unwrap_or_default();
        Children::start(&self.base, self.seed, referees, players)
            .map_err(|error| Stop::failed(format!("cannot start the other programs: {error}")))
    }

    fn wait_for_start(&self, children: Option<&Children>) -> Result<(), Stop> {
        self.start_if_complete()?;
        let (record, mut looked) = (&self.floor.record, Instant::now());
        loop {
            if looked.elapsed() >= self.floor.ping_every {
                self.floor.look_again();
                looked = Instant::now();
            }
            let (changes, started) = record.read(|league| (league.changes, league.started));
            self.floor.screen.arrivals(record, self.awaited);
            if started {
                return Ok(());
            }
            if let Some(name) = children.and_then(Children::failed) {
                let remedy = "with --port N (make league PORT=N) all take free ports";
                return Err(Stop::failed(format!("{name} could not start, so the league does not; {remedy}")));
            }
            record.wait(TICK, |league| league.changes != changes);
        }
    }

    fn announce_start(&self) {
        let (title, game) = (shown(&self.base.config.league.display_name), shown(&self.base.config.game_name));
        let (players, rounds) = self.floor.record.read(|league| (league.members(Kind::Player).len(), league.rounds()));
        self.floor.screen.say(&format!("\n{title}: {game}, {players} players, {}", counted(rounds, "round")));
        let (says, follows) = (self.base.config.league.scheduling.matches_per_round as usize, players / 2);
        if says != follows {
            let words = format!("scheduling.matches_per_round says {says}, but {players} players make {follows}");
            self.voice().log.say(Level::Warning, "configuration", words);
        }
    }

    fn end(&self, door: &Door, children: Option<Children>) {
        if self.base.options.has("--stay") {
            self.floor.screen.say("the league is over; still serving (--stay)");
            loop {
                std::thread::park();
            }
        }
        door.wait_until_empty(FAREWELL);
        if let Some(children) = children {
            children.wait(FAREWELL);
        }
    }

    /// Starts the league when as many have registered as were asked for.
    fn start_if_complete(&self) -> io::Result<()> {
        let Some((players, referees)) = self.awaited else { return Ok(()) };
        self.floor.record.commit(|league| {
            let count = |kind| league.members(kind).len();
            let complete = count(Kind::Player) >= players && count(Kind::Referee) >= referees;
            Ok((if complete { league.start(self.seed).ok().flatten() } else { None }, ()))
        })
    }

    fn register(&self, profile: &Profile, from: &From) -> io::Result<Result<Member, Rejection>> {
        let Envelope { sender, conversation_id, auth_token, .. } = &from.envelope;
        let secret = files::secret(self.base.config.token_length);
        let applicant = Applicant {
            sender,
            conversation_id,
            token: auth_token.as_deref(),
            peer: from.peer,
            trusted: self.is_operator(from) || self.is_listed_host(profile, from.peer),
            referee_wanted: lock(&self.floor.stalled).is_some(),
            room: self.awaited.map_or(usize::MAX, |(players, _)| players).min(self.base.config.rules.max_players),
            secret: &secret,
            now: Timestamp::now(),
        };
        let registered = self.floor.record.commit(|league| match league.register(profile, &applicant) {
            Ok((event, member)) => Ok((event, Ok(member))),
            Err(rejection) => Ok::<_, io::Error>((None, Err(rejection))),
        })?;
        if let Ok(member) = &registered {
            self.floor.couriers.ping(&member.id); // is it there? (R5)
            self.start_if_complete()?;
        }
        Ok(registered)
    }

    /// Registers an agent, or says why not.
    fn admit(&self, profile: &Profile, from: &From) -> io::Result<Admission> {
        Ok(match self.register(profile, from)? {
            Ok(member) => Admission {
                status: Verdict::Accepted,
                id: Some(member.id),
                auth_token: Some(member.token),
                league_id: Some(self.base.config.rules.league_id.clone()),
                reason: None,
                error_code: None,
            },
            Err(no) => Admission {
                status: Verdict::Rejected,
                id: None,
                auth_token: None,
                league_id: None,
                reason: Some(no.reason),
                error_code: no.code.map(|code| code.to_string()),
            },
        })
    }

    /// From this machine, or with the operator's token (R4).
    fn is_operator(&self, from: &From) -> bool {
        let token = from.envelope.auth_token.as_deref().unwrap_or_default();
        from.peer.is_loopback() || equal(token, &self.operator_token)
    }

    /// Whether a referee comes from the host of its listed endpoint.
    fn is_listed_host(&self, profile: &Profile, peer: IpAddr) -> bool {
        let listed = self.floor.record.read(|league| league.listed_at(profile).cloned());
        let Some(Ok(place)) = listed.map(|listed| Endpoint::parse(&listed.endpoint)) else { return false };
        match (place.host.trim_matches(['[', ']']), place.port).to_socket_addrs() {
            Ok(mut addresses) => addresses.any(|address| address.ip().to_canonical() == peer),
            Err(_) => false,
        }
    }

    /// Whose request this is (R4).
    fn identify(&self, from: &From) -> Result<Member, Refusal> {
        let Envelope { sender, auth_token, .. } = &from.envelope;
        self.floor.record.read(|league| league.identify(sender, auth_token.as_deref(), Timestamp::now()).cloned())
    }

    fn report(&self, from: &From, report: &MatchResultReport) -> Result<Message, Denial> {
        let sender = self.identify(from)?;
        self.floor.record.commit(|league| {
            let event = league.record(&sender, report, Timestamp::now())?;
            Ok::<_, Denial>((event, ()))
        })?;
        Ok(MatchResultAck { match_id: report.match_id.clone(), status: "recorded".into() }.into())
    }

    fn start_league(&self, from: &From) -> Result<Message, Denial> {
        if !self.is_operator(from) {
            let code = if from.envelope.auth_token.is_some() { Code::E012 } else { Code::E011 };
            let problem = "only the operator may start the league: from this machine, or with --operator-token-file";
            return Err(Refusal::field(code, "auth_token", problem).into());
        }
        self.floor.record.commit(|league| Ok::<_, io::Error>((league.start(self.seed).ok().flatten(), ())))?;
        Ok(self.status().into())
    }

    fn status(&self) -> LeagueStatus {
        let stalled = lock(&self.floor.stalled).clone();
        self.floor.record.read(|league| league.status(stalled))
    }
}

impl Agent for Manager {
    fn kind(&self) -> Kind {
        Kind::Manager
    }

    fn voice(&self) -> &Voice {
        &self.base.voice
    }

    fn handle(&self, from: &From, message: Message) -> Result<Option<Message>, Denial> {
        Ok(Some(match message {
            Message::RefereeRegisterRequest(request) => {
                let Admission { status, id: referee_id, auth_token, league_id, reason, error_code } =
                    self.admit(&request.referee_meta.into(), from)?;
                RefereeRegisterResponse { status, referee_id, reason, auth_token, league_id, error_code }.into()
            }
            Message::LeagueRegisterRequest(request) => {
                let Admission { status, id: player_id, auth_token, league_id, reason, error_code } =
                    self.admit(&request.player_meta.into(), from)?;
                LeagueRegisterResponse { status, player_id, reason, auth_token, league_id, error_code }.into()
            }
            Message::MatchResultReport(report) => self.report(from, &report)?,
            Message::LeagueQuery(query) => {
                let sender = self.identify(from)?;
                self.floor.record.read(|league| league.answer(&query, &sender))?.into()
            }
            Message::StartLeague(_) => self.start_league(from)?,
            _ => return Ok(None), // not sent to a manager: refused before
        }))
    }

    fn tool(&self, tool: &str, _arguments: &Value) -> Result<Value, Denial> {
        let answer = self.floor.record.read(|league| match tool {
            "create_schedule" => Ok(serde_json::to_value(league.schedule(None)?)),
            _ => Ok::<_, Denial>(serde_json::to_value(StandingsData { standings: league.table() })),
        })?;
        Ok(answer.map_err(io::Error::from)?)
    }

    fn health(&self) -> Value {
        let (status, entry) = (self.status(), &self.base.config.agents.league_manager);
        let state = match status.status {
            Progress::Waiting => AgentState::Registered,
            Progress::Running => AgentState::Active,
            Progress::Completed => AgentState::Shutdown,
        };
        let health = Health {
            name: entry.display_name.clone(),
            version: entry.version.clone(),
            id: self.voice().sender(),
            kind: Kind::Manager,
            state,
            uptime: self.base.started.elapsed().as_secs() as u32,
            league_id: status.league_id,
            status: status.status,
            current_round: status.current_round,
            total_rounds: status.total_rounds,
            matches_completed: status.matches_completed,
            reason: status.reason,
        };
        serde_json::to_value(health).unwrap_or_default()
    }
}

/// What the answer to a registration says, a referee's or a player's.
struct Admission {
    status: Verdict,
    id: Option<String>,
    auth_token: Option<String>,
    league_id: Option<String>,
    reason: Option<String>,
    error_code: Option<String>,
}

/// How many players and referees start the league: as asked for, or as a `local` league has them.
fn awaited(base: &Base, local: bool) -> Result<Option<(usize, usize)>, Stop> {
    let Some(players) = base.options.number("--players")?.or(local.then_some(4)) else { return Ok(None) };
    let referees = base.options.number("--referees")?.unwrap_or(if local { 2 } else { 1 });
    let people = &base.config.league.participants;
    let (min, max) = (people.min_players as usize, people.max_players as usize);
    if !(min..=max).contains(&players) {
        let legal = format!("{min} to {max}, as in the league file");
        return Err(Stop::usage(format!("--players: got {players}, expected {legal}")));
    }
    if referees == 0 {
        return Err(Stop::usage("--referees: got 0, expected at least 1"));
    }
    Ok(Some((players, referees)))
}

fn operator_file(base: &Base) -> PathBuf {
    base.data.join("leagues").join(&base.config.rules.league_id).join("operator.token")
}

/// The operator's token: a file that only its owner can read, made with the league.
fn operator_token(base: &Base) -> io::Result<String> {
    let file = operator_file(base);
    if let Ok(known) = fs::read_to_string(&file) {
        return Ok(known.trim().to_string());
    }
    let new = token("operator", &files::secret(base.config.token_length));
    files::replace(&file, Access::Owner, &format!("{new}\n"))?;
    Ok(new)
}
