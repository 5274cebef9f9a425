//! The league manager: it registers referees and players, has every pair play, and keeps the table.
//!
//! This file is the life of a manager, from the command line to the end of its league. What the
//! manager answers is in `handlers.rs`. What may happen is decided in `league.rs` and the files that
//! it names; `journal.rs` stores what has happened; `rounds.rs` plays the rounds;
//! `notifier.rs` sends notifications to the agents. What else surrounds a league (screens, pages, the processes of a local league) is
//! outside, behind two seams: it reads the league (`Store::read`, `Store::wait`), and it is called
//! by the manager ([`Hooks`]).

pub mod agent_status;
pub mod control;
pub mod handlers;
pub mod journal;
pub mod league;
pub mod notifications;
pub mod notifier;
pub mod queries;
pub mod registration;
pub mod results;
pub mod rounds;
pub mod schedule;
pub mod settings;
pub mod standings;

use crate::manager::agent_status::Waiting;
use crate::manager::journal::Store;
use crate::manager::league::{Event, League};
use crate::manager::notifier::Notifier;
use crate::manager::rounds::{RoundLoop, STEP_INTERVAL};
use crate::manager::settings::{awaited, lead, operator_file, operator_token, rules};
use crate::net::agent::{Agent, Tool};
use crate::net::http::Response;
use crate::net::log::Level;
use crate::net::sync::lock;
use crate::program::args::{Args, Exit};
use crate::program::terminal::{Terminal, sanitize};
use crate::program::{Program, SHUTDOWN_TIMEOUT};
use crate::protocol::{AgentKind, LeagueStatus};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

/// How long agents that do not answer have to answer a last ping when the league starts.
const FINAL_PING_TIMEOUT: Duration = Duration::from_secs(3);

/// What surrounds a manager: it may show, store and start a league, and changes nothing of how the
/// league is played.
pub trait Hooks: Send + Sync {
    /// The manager answers from now on. Its league is played when this returns.
    fn begin(&self, _manager: &Arc<Manager>) -> Result<(), Exit> {
        Ok(())
    }

    /// Returns the schedule, if it is not the round robin: pairs of player ids, by round.
    fn pairings(&self, _players: &[String]) -> Option<Vec<Vec<[String; 2]>>> {
        None
    }

    /// Returns more tools.
    fn tools<'a>(&'a self, _manager: &'a Manager) -> Vec<Tool<'a>> {
        Vec::new()
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

    /// All matches are played, and all agents have been told. The league is not closed yet: what
    /// must not be lost is stored now, since a closed league is not resumed.
    fn league_played(&self, _manager: &Manager) {}

    /// The league is closed.
    fn ended(&self, _manager: &Manager) {}

    /// Returns true while the manager must go on answering after the end of the league.
    fn must_stay(&self, _manager: &Manager) -> bool {
        false
    }

    /// The operator orders a new lobby after this league, which is over.
    fn new_lobby(&self, _manager: &Manager) {}

    /// Returns true if the file of the operator token is named when the manager starts.
    fn shows_operator_token(&self) -> bool {
        true
    }
}

/// The hooks of a manager with nothing around it.
pub struct NoHooks;

impl Hooks for NoHooks {}

/// A league manager.
pub struct Manager {
    /// What every program has.
    pub program: Program,
    /// The league and its journal.
    pub store: Arc<Store>,
    /// Sends notifications to the agents.
    pub notifier: Arc<Notifier>,
    /// What a league that has started waits for.
    pub waiting: Mutex<Waiting>,
    /// Standard output.
    pub terminal: Terminal,
    /// So many players and referees start the league.
    pub awaited: Option<(u32, u32)>,
    /// Makes the league reproducible.
    pub seed: Option<u64>,
    /// Between a round's announcement and its matches.
    pub lead: Duration,
    operator_token: String,
    /// When a rejected registration was last printed.
    last_rejection: Mutex<Option<Instant>>,
    /// Done when what surrounds the manager has stored the played league.
    stored: Once,
    hooks: Arc<dyn Hooks>,
}

/// Runs the program: a league from where its journal ends to its end.
pub fn run(args: Args, hooks: Arc<dyn Hooks>) -> Result<(), Exit> {
    let program = Program::new(args, AgentKind::Manager)?;
    let manager = Arc::new(Manager::new(program, hooks)?);
    let end = manager.run_league();
    manager.program.log_exit(&end);
    end
}

impl Manager {
    fn new(program: Program, hooks: Arc<dyn Hooks>) -> Result<Manager, Exit> {
        let awaited = awaited(&program)?;
        let config = rules(&program, awaited.map(|(players, _)| players))?;
        let sender = match &config.agents.league_manager.agent_id {
            Some(id) => format!("league_manager:{id}"),
            None => "league_manager".into(),
        };
        program.client.set_identity(&sender, program.league_id());

        let is_fresh = program.args.has("--fresh");
        let store = Arc::new(Store::find(&program.data, config, is_fresh)?);
        let log_file = format!("league/{}/league.log.jsonl", program.league_id());
        program.log().open("league_manager", &log_file);
        Ok(Manager {
            notifier: Notifier::new(&store, &program),
            waiting: Mutex::default(),
            last_rejection: Mutex::default(),
            stored: Once::new(),
            terminal: Terminal {
                quiet: program.args.has("--quiet"),
            },
            awaited,
            seed: program.seed.or(store.read(|league| league.seed)),
            lead: lead(&program)?,
            operator_token: operator_token(&program)?,
            hooks,
            store,
            program,
        })
    }

    /// Answers requests, plays the league to its end, and tells all agents.
    fn run_league(self: &Arc<Self>) -> Result<(), Exit> {
        let max_body = self.program.config.max_message_bytes();
        let server = self
            .program
            .serve(Arc::clone(self) as Arc<dyn Agent>, max_body)?;
        self.log_begin();
        self.hooks.begin(self)?;

        let mut rounds = RoundLoop::new(self);
        self.wait_for_start(&mut rounds);
        self.warn_of_unreachable_agents(&mut rounds);
        rounds.run_until(|league| league.open_round().is_none());

        // Give all agents the time of one retry policy to receive the end of the league.
        let attempt = self.program.config.generic_limit();
        let timeout = self
            .program
            .config
            .system
            .retry_policy
            .max_total_time(attempt)
            + attempt;
        let until = Instant::now() + timeout;
        rounds.run_until(|_| self.notifier.are_all_idle() || Instant::now() >= until);
        self.finish()?;
        self.hooks.ended(self);
        rounds.run_until(|_| !self.hooks.must_stay(self));
        server.drain(SHUTDOWN_TIMEOUT);
        Ok(())
    }

    /// Logs that a league begins, or that an unfinished one goes on.
    fn log_begin(&self) {
        let log = self.program.log();
        if self.store.read(|league| league.version == 0) {
            log.system_event(Level::Info, "league_begun", "no agent has registered yet");
        } else {
            let text = "an unfinished league was found: it goes on (--fresh sets it aside instead)";
            log.system_event(Level::Info, "resumed", text);
            self.terminal.print_line(text);
        }
        if self.hooks.shows_operator_token() {
            let file = operator_file(&self.program);
            let text = format!("operator token in {}", file.display());
            self.terminal.print_line(&text);
        }
    }

    /// Waits until the league has started. With `--players` it starts when so many have registered.
    fn wait_for_start(&self, rounds: &mut RoundLoop) {
        let mut last_error = String::new();
        while self.store.read(|league| !league.started) {
            let version = self.store.version();
            self.store.read(|league| rounds.publish(league));

            // A full disk is tried again with the next step.
            if let Some((players, referees)) = self.awaited
                && let Err(error) = self.start(players, referees)
            {
                let error = error.to_string();
                if error != last_error {
                    self.say(Level::Error, "fault", &error);
                }
                last_error = error;
            }
            self.store.wait_for_change(version, STEP_INTERVAL);
        }
    }

    /// Pings the agents once more that do not answer, and warns of those that still do not.
    fn warn_of_unreachable_agents(&self, rounds: &mut RoundLoop) {
        let last_error = |id: &String| self.notifier.status(id).last_error;
        let ids = |league: &League| league.members.keys().cloned().collect();
        let mut silent: Vec<String> = self.store.read(ids);
        silent.retain(|id| last_error(id).is_some());
        for id in &silent {
            self.notifier.resend(id);
        }

        let until = Instant::now() + FINAL_PING_TIMEOUT;
        let answers = |id: &String| last_error(id).is_none();
        rounds.run_until(|_| Instant::now() >= until || silent.iter().all(answers));
        for id in &silent {
            if let Some(problem) = last_error(id) {
                let consequence = "until it answers, it loses its matches";
                let text = format!("{id} has registered, but {problem}; {consequence}");
                self.say(Level::Warning, "unreachable", &text);
            }
        }
    }

    /// Ends the league after its last match. A closed league is not resumed, so what surrounds the
    /// manager first stores what must not be lost.
    pub fn finish(&self) -> io::Result<()> {
        self.stored.call_once(|| self.hooks.league_played(self));
        self.close()
    }

    /// Ends the league, with the results that it has.
    pub fn close(&self) -> io::Result<()> {
        let close = |league: &League| (!league.closed).then_some(Event::Closed);
        self.store.decide(close).map(drop)
    }

    /// Starts the league, if it has so many players and referees, lacks nothing, and has not
    /// started.
    fn start(&self, players: u32, referees: u32) -> io::Result<()> {
        let start = |league: &League| {
            let registered = |kind| league.members(kind).len() as u32;
            if registered(AgentKind::Player) < players || registered(AgentKind::Referee) < referees
            {
                return None;
            }
            let chosen = self.hooks.pairings(&league.ids(AgentKind::Player));
            let rounds = chosen.unwrap_or_else(|| league.pairings());
            league.start(self.seed, rounds)
        };
        self.store.decide(start).map(drop)
    }

    /// Returns the status of the league.
    pub fn status(&self) -> LeagueStatus {
        let reason = lock(&self.waiting).reason.clone();
        self.store.read(|league| league.status(reason))
    }

    /// Prints and logs a text.
    pub fn say(&self, level: Level, event_type: &str, text: &str) {
        self.program.log().event(level, event_type, text);
        self.terminal.print_line(&sanitize(text));
    }
}
