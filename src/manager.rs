//! The league manager: registers referees and players, has every pair play, keeps the table. Here: from the command line
//! to the end of a league, and one `match` over the messages.
//!
//! What may happen is decided in `league.rs` and its neighbours, what has happened is kept by `journal.rs`, the rounds
//! are played by `rounds.rs`, and `notifier.rs`, `screen.rs` and `pages.rs` follow and tell.

pub mod board;
pub mod control;
pub mod document;
pub mod journal;
pub mod league;
pub mod notices;
pub mod queries;
pub mod registration;
pub mod results;
pub mod rounds;
pub mod schedule;
pub mod settings;
pub mod standings;

use crate::extras::launcher::Children;
use crate::extras::manager_screen::TurnedAway;
use crate::extras::pages::Pages;
use crate::extras::practice::Practice;
use crate::extras::{
    launcher, manager_screen as screen, practice, report, season, statistics, trace,
};
use crate::manager::board::{Board, Standing};
use crate::manager::document::{Heading, LeagueView, Views};
use crate::manager::journal::{Journal, Store};
use crate::manager::league::{Event, League, Member};
use crate::manager::queries::{ScheduleData, StandingsData};
use crate::manager::registration::{Admission, Applicant};
use crate::manager::settings::{awaited, lead, operator_file, operator_token, rules};
use crate::net::agent::{Agent, Denial, Request};
use crate::net::http::Reply;
use crate::net::log::Level;
use crate::net::secret::secret;
use crate::net::sync::{lock, spawn};
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::session::FAREWELL;
use crate::program::storage::{self, Access};
use crate::program::terminal::{Terminal, say, shown};
use crate::program::{self, Program, server};
use crate::protocol::*;
use crate::wire::{Endpoint, Timestamp, Wire, cut, equal};
use serde_json::Value;
use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How often the manager looks, before the start, at what nobody tells: children that failed.
const TICK: Duration = Duration::from_millis(200);
/// How long those that do not answer are asked once more when the league starts.
const PAGES: Duration = Duration::from_secs(2);
const LAST_CALL: Duration = Duration::from_secs(1);

struct Manager {
    program: Program,
    store: Arc<Store>,
    board: Arc<Board>,
    terminal: Terminal,
    pages: Mutex<Pages>,
    pages_fail: AtomicBool,
    views: Views,
    /// So many players and referees start the league.
    awaited: Option<(usize, usize)>,
    seed: Option<u64>,
    /// Between a round's announcement and its matches.
    lead: Duration,
    operator_token: String,
    since: Timestamp,
    turned_away: Mutex<TurnedAway>,
}

/// Runs the program: a league from where its journal stands to its end, or one of the words.
pub fn run(mut args: Args) -> Result<(), Stop> {
    match args.word {
        Some("start") => return launcher::start(&args),
        Some("status") => return launcher::status(&args),
        Some("season") => return season::run(&args),
        Some("pause" | "resume" | "remove" | "restore" | "replay" | "again") => {
            return launcher::control(&args);
        }
        Some("trace") => return trace::trace(&args),
        _ => {}
    }
    let local = args.word == Some("local");
    let mut practice = practice::cycles(&args)?.map(|_| Practice::new(&mut args));
    let program = Program::new(args, Kind::Manager, "league_manager")?;
    practice
        .as_mut()
        .map_or(Ok(()), Practice::replace_the_last)?;
    // The agents of two local leagues have the same ids: only one at a time may have this folder.
    let _alone = if local {
        Some(program.cards().lock("local")?)
    } else {
        None
    };
    let manager = Arc::new(Manager::new(program, local)?);
    let end = manager.live(local, practice.as_ref());
    manager.program.note_end(&end);
    end
}

impl Manager {
    fn new(program: Program, local: bool) -> Result<Manager, Stop> {
        let (config, args, client) = (&program.config, &program.args, &program.client);
        let (awaited, seed, lead) = (
            awaited(&program, local)?,
            args.number("--seed")?,
            lead(&program, local)?,
        );
        let agent_id = config.agents.league_manager.agent_id.as_ref();
        let sender = agent_id.map_or("league_manager".into(), |id| {
            format!("league_manager:{}", id.0)
        });
        client.sign_as(&sender, program.league_id());
        let rules = rules(
            config,
            awaited.map(|(players, _)| players),
            practice::cycles(args)?,
        );
        let (league, journal) = Journal::find(&program.data, rules, args.has("--fresh"))?;
        let seed = seed.or(league.seed);
        client.log.open(
            "league_manager",
            &format!("league/{}/league.log.jsonl", program.league_id()),
        );
        let terminal = Terminal {
            quiet: args.has("--quiet"),
        };
        let store = Arc::new(Store::new(league, journal));
        let board = Board::start(&store, client, config.retry(), config.generic_limit());
        let heading = Heading {
            display_name: config.league.display_name.clone(),
            game: game_name(config),
            register_at: program.endpoint.clone(),
            win_points: config.league.scoring.win_points,
            draw_points: config.league.scoring.draw_points,
            loss_points: config.league.scoring.loss_points,
            players_awaited: awaited.map(|(players, _)| players as u32),
            referees_awaited: awaited.map(|(_, referees)| referees as u32),
        };
        Ok(Manager {
            pages: Mutex::new(Pages::new(&program.data, program.league_id())),
            pages_fail: AtomicBool::new(false),
            views: Views::new(&store, &board, heading),
            operator_token: operator_token(&program)?,
            since: Timestamp::now(),
            turned_away: Mutex::default(),
            program,
            store,
            board,
            terminal,
            awaited,
            seed,
            lead,
        })
    }

    /// Answers, plays the league to its end, with its agents as our children if it is `local`, and tells everybody.
    fn live(self: &Arc<Self>, local: bool, practice: Option<&Practice>) -> Result<(), Stop> {
        let (config, terminal, store) = (&self.program.config, self.terminal, &self.store);
        let resumed = store.read(|league| league.changes > 0);
        let agent = Arc::clone(self) as Arc<dyn Agent>;
        let visitors = server::serve(&self.program, agent, config.max_message_bytes())?;
        if resumed {
            self.program.log().orchestrator(
                Level::Info,
                "resumed",
                "an unfinished league was found",
            );
            terminal
                .say("an unfinished league was found: it goes on (--fresh sets it aside instead)");
        }
        let title = format!(
            "{}: {}",
            shown(&config.league.display_name),
            shown(&game_name(config))
        );
        let each_match = Terminal {
            quiet: terminal.quiet || practice.is_some(),
        };
        let here = Arc::clone(self);
        let on_screen = screen::follow(store, each_match, &title, self.awaited, move || {
            here.views.luck()
        });
        let here = Arc::clone(self);
        spawn("pages", move || {
            while !here.store.read(|league| league.closed) {
                here.write_pages();
                here.store.wait(PAGES, |league| league.closed);
            }
        });
        let ids: Vec<String> = store.read(|league| league.members.keys().cloned().collect());
        ids.iter().for_each(|id| self.board.forget(id)); // whoever is there already is told what still matters
        self.board.follow();
        let mut children = if local {
            Some(self.start_children()?)
        } else {
            None
        };
        if !local {
            terminal.say(&format!(
                "operator token in {}",
                operator_file(&self.program).display()
            ));
        }
        self.wait_for_start(children.as_mut())?;
        practice
            .iter()
            .for_each(|_| terminal.say(&store.read(practice::begins)));
        self.warn_of_matches_per_round();
        self.warn_of_the_silent();
        rounds::play(&self.program, store, &self.board, terminal, self.lead);
        let kept = self.keep_results();
        self.say_farewell()?;
        let _ = on_screen.recv_timeout(FAREWELL); // it breaks off when the champion is on the screen
        let figures = |practice: &Practice| {
            store.read(|league| statistics::report(league, &practice.answers(league)))
        };
        let report = practice.map(figures);
        report.iter().flatten().for_each(|line| say(line));
        terminal.say(&kept);
        children
            .iter_mut()
            .for_each(|children| children.wait(FAREWELL));
        if self.program.args.has("--stay") {
            terminal.say("the league is over; still serving (--stay) until the word `again` opens a new lobby");
            while !store.read(|league| league.again) {
                store.wait(FAREWELL, |league| league.again);
            }
        }
        self.views.linger();
        visitors.wait_until_empty(FAREWELL); // their answers are out
        if store.read(|league| league.again) {
            return Err(self.program.start_anew()); // where it finds this league, and sets it aside
        }
        Ok(())
    }

    fn start_children(&self) -> Result<Children, Stop> {
        let (players, referees) = self.awaited.unwrap_or_default();
        let seats = launcher::seats(&self.program.args, players)?;
        Children::start(&self.program, self.seed, referees, &seats)
            .map_err(|error| Stop::failed(format!("cannot start the other programs: {error}")))
    }

    /// Waits until the league has started, and until all our children are there. One that fails ends us.
    fn wait_for_start(&self, mut children: Option<&mut Children>) -> Result<(), Stop> {
        self.start_if_complete()?;
        loop {
            if let Some(name) = children.as_mut().and_then(|children| children.failed()) {
                let remedy = "what it said stands above";
                return Err(Stop::failed(format!(
                    "{name} could not start, so the league does not; {remedy}"
                )));
            }
            let (changes, started) = self.store.read(|league| (league.changes, league.started));
            if started
                && children
                    .as_ref()
                    .is_none_or(|children| self.here() >= children.count())
            {
                return Ok(());
            }
            self.store.wait(TICK, |league| league.changes != changes);
        }
    }

    /// How many agents have registered since this program runs.
    fn here(&self) -> usize {
        self.store.read(|league| {
            league
                .members
                .keys()
                .filter(|id| self.board.contact(id).is_here)
                .count()
        })
    }

    fn warn_of_matches_per_round(&self) {
        let players = self.store.read(|league| league.members(Kind::Player).len());
        let (says, follows) = (
            self.program.config.league.scheduling.matches_per_round as usize,
            players / 2,
        );
        if says != follows {
            let words = format!(
                "scheduling.matches_per_round says {says}, but {players} players make {follows}"
            );
            self.program
                .log()
                .say(Level::Warning, "configuration", words);
        }
    }

    /// Names those that have registered and do not answer, asked once more.
    fn warn_of_the_silent(&self) {
        let (store, board) = (&self.store, &self.board);
        let silent = || -> Vec<(String, String)> {
            let ids: Vec<String> = store.read(|league| league.members.keys().cloned().collect());
            ids.into_iter()
                .filter_map(|id| board.contact(&id).trouble.map(|why| (id, why)))
                .collect()
        };
        let asked = silent();
        asked.iter().for_each(|(id, _)| board.ask_again(id));
        store.wait(LAST_CALL, |_| {
            asked.iter().all(|(id, _)| !board.contact(id).asked)
        });
        for (id, why) in silent() {
            let is_player = store.read(|league| league.player(&id).is_some());
            let meanwhile = if is_player {
                "it forfeits"
            } else {
                "it gets no matches"
            };
            let words = format!("{id} has registered, but {why}; {meanwhile} until it answers");
            self.say(Level::Warning, "unreachable", &words);
        }
    }

    /// Says something on the screen and in the log.
    fn say(&self, level: Level, event_type: &str, words: &str) {
        self.program.log().say(level, event_type, words);
        self.terminal.say(&shown(words));
    }

    /// Writes what a person keeps of the league; says where.
    fn keep_results(&self) -> String {
        let folder = self
            .program
            .data
            .join("leagues")
            .join(self.program.league_id());
        let view = self.views.whole(false);
        let files = report::files(&view);
        let keep = |(name, text): &(&str, String)| {
            storage::replace(&folder.join(name), Access::Everybody, text)
        };
        match files.and_then(|files| files.iter().try_for_each(keep)) {
            Ok(()) => format!(
                "\nto keep: report.html, results.csv and standings.csv in {}",
                folder.display()
            ),
            Err(error) => {
                let words = format!("the results to keep cannot be written: {error}");
                self.program
                    .log()
                    .orchestrator(Level::Error, "fault", &*words);
                words
            }
        }
    }

    /// Writes the files for people. That they cannot be written is said once, and stops no league.
    fn write_pages(&self) {
        let written = lock(&self.pages).write(&self.views.whole(false));
        if let (Err(error), false) = (
            &written,
            self.pages_fail.swap(written.is_err(), Ordering::SeqCst),
        ) {
            self.say(
                Level::Error,
                "fault",
                &format!("the files for people cannot be written: {error}"),
            );
        }
    }

    /// Waits until everybody has been told that the league is over, and closes it.
    fn say_farewell(&self) -> io::Result<()> {
        let (retry, limit) = (
            self.program.config.retry(),
            self.program.config.generic_limit(),
        );
        let told = |league: &League| {
            self.board
                .has_told(&league.members.keys().cloned().collect::<Vec<_>>())
        };
        self.store.wait(retry.longest(limit) + limit, told);
        if !self.store.read(told) {
            let words = "not everybody could be told that the league is over";
            self.program.log().say(Level::Warning, "farewell", words);
        }
        self.write_pages();
        self.store.decide(|_| Some(Event::Closed)).map(drop)
    }

    /// Starts the league when as many have registered as were asked for.
    fn start_if_complete(&self) -> io::Result<()> {
        self.awaited.map_or(Ok(()), |awaited| self.start(awaited))
    }

    /// Starts the league, if it has so many players and referees, lacks nothing, and has not started.
    fn start(&self, (players, referees): (usize, usize)) -> io::Result<()> {
        let started = self.store.decide(|league| {
            let has = |kind, wanted| league.members(kind).len() >= wanted;
            let complete = has(Kind::Player, players) && has(Kind::Referee, referees);
            if complete {
                league.start(self.seed).ok().flatten()
            } else {
                None
            }
        });
        started.map(drop)
    }

    /// Lets an agent in, or says on the screen why not.
    fn admit(&self, kind: Kind, meta: &AgentMeta, request: &Request) -> io::Result<Admission> {
        let applicant = Applicant {
            kind,
            request,
            trusted: self.is_operator(request) || self.is_listed_host(kind, meta, request.peer),
            referee_wanted: self.has_no_referee(),
            secret: &secret(self.program.config.system.security.token_length.0),
            now: Timestamp::now(),
            running_since: self.since,
        };
        let admission = self.store.commit(|league| {
            let admission = league.register(meta, &applicant);
            let event = if let Admission::Accepted { event, .. } = &admission {
                event.clone()
            } else {
                None
            };
            Ok::<_, io::Error>((event, admission))
        })?;
        match &admission {
            Admission::Accepted { member, .. } => {
                self.board.registered(&member.id);
                self.store.nudge();
                self.start_if_complete()?;
            }
            Admission::Rejected { reason, .. } => {
                let (name, endpoint) = (
                    cut(&meta.display_name, 50),
                    cut(&meta.contact_endpoint, 200),
                );
                let words = format!(
                    "rejected {kind} {name} at {endpoint}, from {}: {reason}",
                    request.peer
                );
                self.turn_away("rejected", &words);
            }
        }
        Ok(admission)
    }

    /// Whether the league has started and no referee is left that can be given matches.
    fn has_no_referee(&self) -> bool {
        self.store.read(|league| {
            let how = |member: &Member| self.board.contact(&member.id).standing;
            let counts = |how: Standing| matches!(how, Standing::Alive | Standing::Overdue);
            league.started
                && !league
                    .members(Kind::Referee)
                    .into_iter()
                    .map(how)
                    .any(counts)
        })
    }

    /// Says that a registration was not accepted: always in the log, on the screen as much as can be read.
    fn turn_away(&self, event_type: &str, words: &str) {
        self.program.log().say(Level::Warning, event_type, words);
        let line = lock(&self.turned_away).line(shown(words), Instant::now());
        line.iter().for_each(|line| self.terminal.say(line));
    }

    /// From this machine, or with the operator's token.
    fn is_operator(&self, request: &Request) -> bool {
        let token = request.envelope.auth_token.as_deref().unwrap_or_default();
        request.peer.is_loopback() || equal(token, &self.operator_token)
    }

    /// Whether a referee comes from the host of its listed endpoint.
    fn is_listed_host(&self, kind: Kind, meta: &AgentMeta, peer: IpAddr) -> bool {
        let listed = self
            .store
            .read(|league| league.listed_at(kind, meta).cloned());
        let Some(Ok(place)) = listed.map(|listed| Endpoint::parse(&listed.endpoint)) else {
            return false;
        };
        match (place.host.trim_matches(['[', ']']), place.port).to_socket_addrs() {
            Ok(mut addresses) => addresses.any(|address| address.ip().to_canonical() == peer),
            Err(_) => false,
        }
    }

    /// Whose request this is.
    fn sender_of(&self, request: &Request) -> Result<Member, Refusal> {
        let Envelope {
            sender, auth_token, ..
        } = &request.envelope;
        let now = Timestamp::now();
        self.store
            .read(|league| league.identify(sender, auth_token.as_deref(), now).cloned())
    }

    fn report(&self, request: &Request, report: &MatchResultReport) -> Result<Message, Denial> {
        let sender = self.sender_of(request)?;
        let judged = self.store.commit(|league| {
            let event = league.judge(&sender, report, Timestamp::now())?;
            Ok::<_, Denial>((event, ()))
        });
        self.board.reported(&sender.id);
        judged?;
        Ok(MatchResultAck {
            match_id: report.match_id.clone(),
            status: "recorded".into(),
        }
        .into())
    }

    fn check_operator(&self, request: &Request) -> Result<(), Refusal> {
        if self.is_operator(request) {
            return Ok(());
        }
        let code = if request.envelope.auth_token.is_some() {
            Code::E012
        } else {
            Code::E011
        };
        let problem =
            "only the operator may do that: from this machine, or with --operator-token-file";
        Err(Refusal::field(code, "auth_token", problem))
    }

    /// Does what the operator says, durably, and says so.
    fn control(&self, request: &Request, order: &LeagueControl) -> Result<Message, Denial> {
        self.check_operator(request)?;
        let is_new = self.store.commit(|league| {
            let event = league.control(order)?;
            Ok::<_, Denial>((event.clone(), event.is_some()))
        })?;
        if is_new {
            let about = order
                .player_id
                .as_ref()
                .or(order.match_id.as_ref())
                .map_or("", String::as_str);
            let words = format!("the operator says: {} {about}", order.action);
            self.say(Level::Info, "control", words.trim_end());
        }
        Ok(self.status().into())
    }

    fn start_league(&self, request: &Request) -> Result<Message, Denial> {
        self.check_operator(request)?;
        self.start((0, 0))?;
        Ok(self.status().into())
    }

    /// What was said in a match that is recorded.
    fn traced(&self, match_id: &str) -> Reply {
        let (folder, league_id) = (program::logs(&self.program.args), self.program.league_id());
        trace::page(&folder, league_id, match_id, || {
            self.store
                .read(|league| Some(league.find(match_id)?.recorded.is_some()))
        })
    }

    fn status(&self) -> LeagueStatus {
        let waiting = self.board.waiting();
        self.store.read(|league| league.status(waiting))
    }
}

/// The name of the game, as the registry has it.
fn game_name(config: &Config) -> String {
    let game = config
        .games
        .games
        .iter()
        .find(|game| game.game_type.word() == config.league.game_type);
    game.map_or(GAME.into(), |game| game.display_name.clone())
}

impl Agent for Manager {
    fn kind(&self) -> Kind {
        Kind::Manager
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        let league_id = self.program.league_id();
        Ok(Some(match message {
            Message::RefereeRegisterRequest(it) => self
                .admit(Kind::Referee, &it.referee_meta, request)?
                .for_referee(league_id)
                .into(),
            Message::LeagueRegisterRequest(it) => self
                .admit(Kind::Player, &it.player_meta, request)?
                .for_player(league_id)
                .into(),
            Message::MatchResultReport(report) => self.report(request, &report)?,
            Message::LeagueQuery(query) => {
                let sender = self.sender_of(request)?;
                self.store
                    .read(|league| league.answer(&query, &sender))?
                    .into()
            }
            Message::StartLeague(_) => self.start_league(request)?,
            Message::LeagueControl(order) => self.control(request, &order)?,
            // Not sent to a manager: refused before.
            Message::RefereeRegisterResponse(_)
            | Message::LeagueRegisterResponse(_)
            | Message::LeagueStatus(_)
            | Message::RoundAnnouncement(_)
            | Message::GameInvitation(_)
            | Message::GameJoinAck(_)
            | Message::ChooseParityCall(_)
            | Message::ChooseParityResponse(_)
            | Message::GameOver(_)
            | Message::GameError(_)
            | Message::MatchResultAck(_)
            | Message::LeagueStandingsUpdate(_)
            | Message::RoundCompleted(_)
            | Message::LeagueCompleted(_)
            | Message::LeagueQueryResponse(_)
            | Message::LeagueError(_) => return Ok(None),
        }))
    }

    fn refused(&self, packet: &Packet, peer: IpAddr, refusal: &Refusal) {
        let message_type = packet
            .get("message_type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if message_type.ends_with("_REGISTER_REQUEST") {
            let meta = ["player_meta", "referee_meta"]
                .iter()
                .find_map(|key| packet.get(*key)?.as_object());
            let said = |key: &str| {
                meta.and_then(|meta| meta.get(key)?.as_str())
                    .map(|text| cut(text, 200))
            };
            let name = said("display_name").unwrap_or("somebody".into());
            let endpoint =
                said("contact_endpoint").map_or(String::new(), |url| format!(" at {url}"));
            let why = cut(&refusal.to_string(), 400);
            self.turn_away(
                "refused",
                &format!("refused to register {name}{endpoint}, from {peer}: {why}"),
            );
        }
    }

    fn tool(&self, tool: Tool, arguments: &Value, peer: IpAddr) -> Result<Value, Denial> {
        if tool == Tool::GetLeague {
            let asked = GetLeague::read(arguments).map_err(Refusal::from)?;
            return Ok(serde_json::to_value(
                self.views.answer(&asked, peer.is_loopback()),
            )?);
        }
        self.store.read(|league| match tool {
            Tool::CreateSchedule => Ok(serde_json::to_value(league.schedule(None)?)?),
            Tool::GetStandings => Ok(serde_json::to_value(league.standings_data())?),
            _ => Err(Denial::rpc(
                -32601,
                format!("a league manager has no {tool}"),
            )),
        })
    }

    fn answer_schema(&self, tool: Tool) -> Option<Value> {
        match tool {
            Tool::CreateSchedule => Some(ScheduleData::schema()),
            Tool::GetStandings => Some(StandingsData::schema()),
            Tool::GetLeague => Some(LeagueView::schema()),
            _ => None,
        }
    }

    fn holder(&self, token: &str) -> Option<String> {
        let signs = |member: &Member| format!("{}:{}", member.kind, member.id);
        self.store.read(|league| league.holder(token).map(signs))
    }

    fn page(&self, path: &str, peer: IpAddr, if_none_match: Option<&str>) -> Option<Reply> {
        match path {
            "/" => Some(report::live()),
            "/league.json" => Some(self.views.reply(peer.is_loopback(), if_none_match)),
            _ => path
                .strip_prefix("/trace/")
                .map(|match_id| self.traced(&match_id.to_uppercase())),
        }
    }

    /// The manager's own state, and the fields of LEAGUE_STATUS; the uptime is in seconds.
    fn health(&self) -> Value {
        let (status, entry) = (self.status(), &self.program.config.agents.league_manager);
        let state = match status.status {
            Progress::Waiting => AgentState::Registered,
            Progress::Running => AgentState::Active,
            Progress::Completed => AgentState::Shutdown,
        };
        let mut health = serde_json::to_value(status).unwrap_or_default();
        health["name"] = entry.display_name.0.clone().into();
        health["version"] = entry.version.0.clone().into();
        health["id"] = self.program.client.sender().into();
        health["kind"] = Kind::Manager.word().into();
        health["state"] = state.word().into();
        health["uptime"] = self.program.started.elapsed().as_secs().into();
        health
    }

    fn instructions(&self) -> &'static str {
        "The manager of a round-robin league of the game Even/Odd. get_standings shows the table and \
         create_schedule who meets whom; get_league shows everything public at once. None needs arguments. \
         start_league starts the league when enough players and a referee have registered, and tells what is \
         missing otherwise. The other tools are for the agents that play: their arguments are a whole league \
         message. A refusal is a tool error that says what was wrong."
    }
}
