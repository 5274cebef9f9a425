//! The league manager: it registers referees and players, has every pair play, and keeps the table.
//!
//! This file is the life of a manager, from the command line to the end of its league. What the
//! manager answers is in `handlers.rs`. What may happen is decided in `league.rs` and the files
//! that it names; `journal.rs` stores what has happened; `rounds.rs` plays the rounds;
//! `contacts.rs` sends notifications to the agents; `screen.rs` prints the league and `files.rs`
//! writes its files. Pages and the processes of a local league are outside: they read the league
//! (`Store::read`, `Store::wait`), and the manager calls them ([`ManagerHooks`]).

pub mod contact;
pub mod contacts;
pub mod control;
pub mod files;
pub mod handlers;
pub mod journal;
pub mod league;
pub mod notifications;
pub mod queries;
pub mod registration;
pub mod results;
pub mod rounds;
pub mod schedule;
pub mod screen;
pub mod standings;

use crate::net::agent::Tool;
use crate::net::http::Response;
use crate::net::log::Level;
use crate::net::sync::secret;
use crate::program::args::{Args, Exit};
use crate::program::storage::{self, Access};
use crate::program::terminal::{Terminal, print_error, sanitize};
use crate::program::{Program, SHUTDOWN_TIMEOUT};
use crate::protocol::{AgentKind, LeagueStatus};
use crate::values::{Moment, check_identifier, token};
use contacts::Contacts;
use files::WrittenFiles;
use journal::{OPERATOR_FILE, Store};
use league::{Event, League, Match};
use screen::Screen;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

/// Maximum number of members that register from one address before the start, unless the command
/// line has another one.
const MAX_PER_ADDRESS: u32 = 8;

/// The surroundings of a manager: they may show, store and start a league, and change nothing of
/// how the league is played.
pub trait ManagerHooks: Send + Sync {
    /// The manager answers from now on. Its league is played when this returns.
    fn begin(&self, manager: &Arc<Manager>) -> Result<(), Exit> {
        manager.print_operator_file();
        screen::follow(manager);
        Ok(())
    }

    /// Returns what is printed behind a result.
    fn hint(&self, _league: &League, _the_match: &Match) -> String {
        String::new()
    }

    /// A round is about to begin: the results of the rounds before it are stored. Its matches are
    /// assigned when this returns, or were before the manager was restarted.
    fn before_round(&self, _manager: &Manager, _round: u32) {}

    /// Returns true if an agent that shows the token of another league may register here, and get
    /// another token in its place.
    fn replaces_tokens(&self) -> bool {
        true
    }

    /// Returns more tools.
    fn tools<'a>(&'a self, _manager: &'a Manager) -> Vec<Tool<'a>> {
        Vec::new()
    }

    /// Returns true if an endpoint on this machine passes requests on to a player elsewhere.
    fn is_relay(&self, _endpoint: &str) -> bool {
        false
    }

    /// Answers `GET path?query`.
    fn page(
        &self,
        _manager: &Manager,
        _path: &str,
        _query: &str,
        _peer: IpAddr,
    ) -> Option<Response> {
        None
    }

    /// All matches are played, all agents have been told, and the table is printed. The league is
    /// not closed yet: what must not be lost is stored now, since a closed league is not resumed.
    fn over(&self, _manager: &Manager) {}

    /// The league is closed. The manager stops answering when this returns.
    fn end(&self, _manager: &Arc<Manager>) -> io::Result<()> {
        Ok(())
    }
}

/// The hooks of a manager with nothing around it.
pub struct NoManagerHooks;

impl ManagerHooks for NoManagerHooks {}

/// A league manager.
pub struct Manager {
    /// The parts that every program has.
    pub program: Arc<Program>,
    /// The league and its journal.
    pub store: Store,
    /// Sends notifications to the agents.
    pub contacts: Contacts,
    /// Standard output.
    pub terminal: Terminal,
    screen: Mutex<Option<Screen>>,
    written_files: Mutex<WrittenFiles>,
    /// The number of members that may register from one address before the start.
    pub max_per_address: u32,
    /// The time between a round's announcement and its matches.
    pub lead: Duration,
    operator_token: String,
    /// Done when the played league is stored.
    stored: Once,
    /// True if the operator has ordered a new lobby after this league, which is over.
    pub new_lobby_ordered: AtomicBool,
    hooks: Arc<dyn ManagerHooks>,
}

/// Runs the program: a league from where its journal ends to its end.
pub fn run(args: Args, hooks: Arc<dyn ManagerHooks>) -> Result<(), Exit> {
    let program = Arc::new(Program::new(args, AgentKind::Manager)?);
    let manager = Arc::new(Manager::new(program, hooks)?);
    let end = manager.run_league();
    manager.program.log_exit(&end);
    end
}

impl Manager {
    /// Opens the league. The command line overrules the files.
    pub fn new(program: Arc<Program>, hooks: Arc<dyn ManagerHooks>) -> Result<Manager, Exit> {
        let mut config = program.config.clone();
        let automatic_start = awaited_agents(&program)?;
        let given = program.args.number("--members-per-address", 1..=200)?;
        let max_per_address = given.unwrap_or(MAX_PER_ADDRESS);
        if let Some((players, _)) = automatic_start {
            config.league.participants.max_players = players;
        }
        if let Some(cycles) = program.args.number("--cycles", 1..=400)? {
            config.league.scheduling.cycles = Some(cycles);
        }

        let sender = match &config.agents.league_manager.agent_id {
            Some(id) => format!("league_manager:{id}"),
            None => "league_manager".into(),
        };
        program.client.set_identity(&sender, program.league_id());

        let has = |name| program.args.has(name);
        let store = Store::open(&program.data, config, has("--fresh"), has("--restarted"))?;
        let contacts = store.read(Contacts::new);
        contacts.with(|table| table.automatic_start = automatic_start);
        Ok(Manager {
            contacts,
            stored: Once::new(),
            new_lobby_ordered: AtomicBool::new(false),
            terminal: Terminal {
                quiet: program.args.has("--quiet"),
            },
            screen: Mutex::default(),
            written_files: Mutex::default(),
            max_per_address,
            lead: lead(&program)?,
            operator_token: operator_token(&program)?,
            hooks,
            store,
            program,
        })
    }

    /// Answers requests, plays the league to its end, and tells all agents.
    fn run_league(self: &Arc<Self>) -> Result<(), Exit> {
        let config = &self.program.config;
        // Read before the first agent can register.
        let found = (self.store).read(|league| [league.version == 0, league.closed]);
        let server = (self.program).serve(Arc::clone(self), config.max_message_bytes())?;
        self.log_begin(found);
        files::keep_writing(self);
        self.hooks.begin(self)?;

        self.run_rounds(|league| league.started)?;
        self.warn_of_unreachable_agents();
        self.run_rounds(|league| league.open_round().is_none())?;

        // Tell all agents the end of the league.
        self.run_rounds(|_| self.may_end())?;

        self.finish()?;
        self.hooks.end(self)?;
        server.drain(SHUTDOWN_TIMEOUT);
        Ok(())
    }

    /// Returns true if all agents have been told the end of the league, or cannot be told.
    pub fn may_end(&self) -> bool {
        let config = &self.program.config;
        let attempt = config.generic_limit();
        let limit = config.system.retry_policy.max_total_time(attempt) + attempt;
        (self.contacts).with(|table| table.may_end(limit, Moment::now()))
    }

    /// Logs that a league begins, or that an unfinished one goes on.
    fn log_begin(&self, [is_new, is_closed]: [bool; 2]) {
        let log = self.program.log();
        if is_closed {
            self.stored.call_once(|| {}); // before the restart of this process
        }
        if is_new {
            log.system_event(Level::Info, "league_begun", "no agent has registered yet");
        } else if !is_closed {
            let found = match self.store.read(|league| league.started) {
                true => "an unfinished league was found: it goes on",
                false => "a lobby was found: it is open again",
            };
            let text = format!("{found} (--fresh sets it aside instead)");
            log.system_event(Level::Info, "resumed", text.as_str());
            self.terminal.print_line(&text);
        }
    }

    /// Prints where the operator token is.
    pub fn print_operator_file(&self) {
        let file = operator_file(&self.program);
        let text = format!("operator token in {}", file.display());
        self.terminal.print_line(&text);
    }

    /// Warns of the agents that do not answer.
    fn warn_of_unreachable_agents(&self) {
        for (id, contact) in self.contacts.with(|table| table.contacts.clone()) {
            if let Some(error) = contact.health.error() {
                let agent = self.store.read(|league| league.name_and_id(&id));
                let problem = format!("has registered, but {}", error.explain());
                let text = format!("{agent} {problem}; until it answers, it loses its matches");
                self.say(Level::Warning, "unreachable", &text);
            }
        }
    }

    /// Decides to start the league, if nothing is lacking.
    fn decide_start(&self, league: &League) -> Option<Event> {
        league.start_event(self.program.seed, league.pairings())
    }

    /// Closes the league after its last match. A closed league is not resumed, so all files are
    /// written first. The table and the champion come before what the surroundings print.
    fn finish(&self) -> io::Result<()> {
        self.stored.call_once(|| {
            self.write_files();
            self.print_news();
            self.hooks.over(self);
        });
        self.close()
    }

    /// Closes the league with the results that it has.
    pub fn close(&self) -> io::Result<()> {
        let event = |league: &League| (!league.closed).then_some(Event::Closed);
        self.store.commit_event(event).map(drop)
    }

    /// Returns the status of the league.
    pub fn status(&self) -> LeagueStatus {
        self.store.read(|league| {
            let now = Moment::now();
            let waiting = self.contacts.with(|table| table.waiting(league, now));
            league.status(waiting.reason)
        })
    }

    /// Prints and logs a text.
    pub fn say(&self, level: Level, event_type: &str, text: &str) {
        self.program.log().event(level, event_type, text);
        self.terminal.print_line(&sanitize(text));
    }
}

/// Returns the numbers of players and referees that start the league, if the command line has them.
fn awaited_agents(program: &Program) -> Result<Option<(u32, u32)>, Exit> {
    let limits = &program.config.league.participants;
    let players = program
        .args
        .number("--players", limits.min_players..=limits.max_players)
        .map_err(|exit| {
            let source = "as in the league file (participants)";
            Exit::usage(format!("{}, {source}", exit.message))
        })?;

    let referees = program.args.number("--referees", 1..=100)?.unwrap_or(1);
    Ok(players.map(|players| (players, referees)))
}

/// Returns the time between a round's announcement and its matches: 60 seconds, unless the league
/// file or the command line has another one.
fn lead(program: &Program) -> Result<Duration, Exit> {
    let scheduling = &program.config.league.scheduling;
    let seconds = scheduling.round_announcement_lead_sec.unwrap_or(60);
    let given = program.args.number("--lead-sec", 0.0..=86_400.0)?;
    Ok(Duration::from_secs_f64(given.unwrap_or(seconds.into())))
}

/// Returns the path of the operator's token, in the folder of the league.
pub fn operator_file(program: &Program) -> PathBuf {
    storage::league_folder(&program.data, program.league_id()).join(OPERATOR_FILE)
}

/// Returns the operator's token. It is made at the first start of a league, in a file that only its
/// owner can read, and made again if that file is damaged.
fn operator_token(program: &Program) -> io::Result<String> {
    let file = operator_file(program);
    let digits = program.config.system.security.token_length;
    let operator_token = token("operator", &secret(digits));
    if file.exists() {
        let saved = storage::read_text(&file).unwrap_or_default();
        let saved = saved.trim();
        if saved.len() == operator_token.len() && check_identifier(saved).is_ok() {
            return Ok(saved.into());
        }

        let problem = "had no whole token, and gets a new one";
        print_error(&format!("{} {problem}", file.display()));
        storage::archive(&file)?;
    }

    storage::replace(&file, Access::Owner, &format!("{operator_token}\n"))?;
    Ok(operator_token)
}
