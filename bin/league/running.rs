//! A league that a command has prepared, and the part of the tool that runs within its manager: the
//! pages, the children of a local league, and the files that are kept at the end.
//!
//! The manager calls it by the trait `ManagerHooks` at the few moments of its life that concern it.
//! The league itself is played by `src/manager.rs`, which knows nothing of this.

use crate::classroom::relay::Relays;
use crate::classroom::{operator, rehearsal};
use crate::compare::comparison::{self, Comparison};
use crate::compare::{practice, statistics};
use crate::show::derived::DerivedFields;
use crate::show::document::Document;
use crate::show::page::WebPages;
use crate::show::view::Practice;
use crate::show::{render, screen};
use crate::start::children::{self, Children};
use crate::start::entrants::{self, Entrant};
use league::manager::league::{League, Match};
use league::manager::{self, Manager, ManagerHooks};
use league::net::agent::Tool;
use league::net::http::Response;
use league::net::log::Level;
use league::net::sync::{lock, spawn};
use league::program::args::{Args, Exit};
use league::program::storage::{self, Access};
use league::program::terminal::{print_error, print_line, sanitize};
use league::program::{load_config, log_folder};
use league::protocol::{AgentKind, LeaguePhase};
use league::system::restart_process;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Maximum time until the children are looked at again, before the start.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The time after which the children that have not registered are named.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// The time after which they are named again.
const LATER_PATIENCE: Duration = Duration::from_secs(60);

/// The kinds of leagues that the tool runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum LeagueKind {
    /// A league whose agents run on this machine.
    #[default]
    Local,
    /// A local league whose files the next one replaces; its players are compared with a coin.
    Practice,
    /// A practice in which two players are compared.
    Comparison,
    /// A league for a class, with referees on this machine.
    Class,
    /// A manager alone, with pages.
    Serve,
}

impl LeagueKind {
    /// Returns true if all agents run on this machine.
    pub fn is_local(self) -> bool {
        !matches!(self, LeagueKind::Class | LeagueKind::Serve)
    }

    /// Returns true for a practice or a comparison.
    pub fn is_practice(self) -> bool {
        matches!(self, LeagueKind::Practice | LeagueKind::Comparison)
    }
}

/// A league as a command has prepared it. Without entrants its agents register by themselves.
#[derive(Default)]
pub struct Setup {
    /// The kind of league.
    pub kind: LeagueKind,
    /// The players that are started here, in the order of their ids.
    pub entrants: Vec<Entrant>,
    /// The names of the user's own players, of a practice or a comparison.
    pub own: Vec<String>,
    /// The league that lies in the data folder.
    pub stored: Option<League>,
    /// The lock of the data folder: the agents of two local leagues have the same ids, so only one
    /// league at a time may use it.
    pub _lock: Option<File>,
}

/// Runs a manager until its league is over. If the operator has ordered a new lobby, the same
/// command is run again in the place of this process.
pub fn run(args: Args, setup: Setup) -> Result<(), Exit> {
    check_port(&args)?;
    let hooks = Arc::new(ToolHooks::new(&args, setup));
    manager::run(args, Arc::clone(&hooks) as Arc<dyn ManagerHooks>)?;
    if let Some(problem) = lock(&hooks.problem).take() {
        return Err(Exit::failure(problem));
    }

    match *lock(&hooks.new_lobby_port) {
        None => Ok(()),
        Some(port) => Ok(restart_process(port, true)?),
    }
}

/// Refuses a port of this machine at which a program answers. macOS and Windows would let a league
/// for this machine listen beside one for all machines, and take its calls.
pub fn check_port(args: &Args) -> Result<(), Exit> {
    let default = load_config(args)?
        .system
        .network
        .default_league_manager_port;
    let port = args.number("--port", 0..=u16::MAX)?.unwrap_or(default);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let answers = TcpStream::connect_timeout(&address, CHECK_INTERVAL).is_ok();
    if answers && !args.has("--restarted") {
        return Err(Exit::usage(format!(
            "port {port} is in use; end the program that has it, or choose another with --port N \
             (make: PORT=9000)"
        )));
    }

    Ok(())
}

/// The tool within a manager.
struct ToolHooks {
    setup: Setup,
    web_pages: WebPages,
    children: Arc<Mutex<Children>>,
    document: Arc<Document>,
    relays: Arc<Relays>,
    /// The manager's port if the operator has ordered a new lobby.
    new_lobby_port: Mutex<Option<u16>>,
    /// The reason why a practice that was played has failed.
    problem: Mutex<Option<String>>,
}

impl ToolHooks {
    fn new(args: &Args, setup: Setup) -> ToolHooks {
        let practice = setup.kind.is_practice().then(|| Practice {
            own: setup.own.clone(),
            is_comparison: setup.kind == LeagueKind::Comparison,
        });
        let document = Document::new(setup.kind.is_local(), practice);

        ToolHooks {
            setup,
            web_pages: WebPages::new(log_folder(args)),
            children: Arc::default(),
            document: Arc::new(document),
            relays: Arc::default(),
            new_lobby_port: Mutex::default(),
            problem: Mutex::default(),
        }
    }

    /// Writes the files that tell other commands of this league: who plays, and where the manager
    /// is.
    fn write_marks(&self, manager: &Manager) -> Result<(), Exit> {
        let program = &manager.program;
        let folder = storage::league_folder(&program.data, program.league_id());
        if !self.setup.entrants.is_empty() {
            let entrants = entrants::text(&self.setup.entrants);
            storage::replace(&folder.join(entrants::FILE), Access::AllUsers, &entrants)?;
        }

        let address = children::local_url(program);
        let file = folder.join(operator::ADDRESS_FILE);
        storage::replace(&file, Access::AllUsers, &address)?;
        Ok(())
    }

    /// Waits for the agents of this machine: the league does not begin without them.
    fn wait_for_children(&self, manager: &Manager) -> Result<(), Exit> {
        let mut named_at = Instant::now();
        let mut patience = FIRST_PATIENCE;
        while !self.is_complete(manager)? {
            let changes = manager.store.change_count();
            manager.store.wait_for_change(changes, CHECK_INTERVAL);
            if named_at.elapsed() > patience {
                let missing = lock(&self.children).missing(manager).join(", ");
                print_error(&format!(
                    "waiting for {missing} to register: does a player wait for input before that?"
                ));
                (named_at, patience) = (Instant::now(), LATER_PATIENCE);
            }
        }

        Ok(())
    }

    /// Returns true if all agents of this machine have registered, and no other player.
    fn is_complete(&self, manager: &Manager) -> Result<bool, Exit> {
        let is_complete = lock(&self.children).have_registered(manager)?;
        let entrants = &self.setup.entrants;
        manager.store.read(|league| check_names(league, entrants))?;
        Ok(is_complete)
    }

    /// Starts a thread that says if a child ends before the league is over. One that ends then
    /// loses its matches like any agent that is gone.
    fn watch_children(&self, manager: &Arc<Manager>) {
        let children = Arc::clone(&self.children);
        let manager = Arc::clone(manager);
        spawn("children", move || {
            while !manager.store.read(League::is_over) {
                lock(&children).report_ended();
                thread::sleep(CHECK_INTERVAL);
            }
        });
    }
}

impl ManagerHooks for ToolHooks {
    fn begin(&self, manager: &Arc<Manager>) -> Result<(), Exit> {
        self.relays.begin(manager)?;
        if !self.setup.kind.is_local() {
            manager.print_operator_file();
        }

        self.write_marks(manager)?;
        if self.setup.kind == LeagueKind::Class {
            let is_lobby = manager.status().status == LeaguePhase::Waiting;
            screen::greet(&manager.program.endpoint, is_lobby);
            rehearsal::follow(manager, &self.document, &self.relays);
            operator::listen(&manager.program);
        }

        match self.setup.kind {
            LeagueKind::Practice => screen::follow_practice(manager),
            LeagueKind::Comparison => {}
            LeagueKind::Local if manager.terminal.quiet => {}
            _ => manager::screen::follow(manager),
        }

        let is_closed = manager.store.read(|league| league.closed);
        if self.setup.kind != LeagueKind::Serve && !is_closed {
            let Setup {
                entrants, stored, ..
            } = &self.setup;
            let children = Children::start(&manager.program, entrants, stored.as_ref())?;
            *lock(&self.children) = children;
        }

        self.wait_for_children(manager)?;
        self.watch_children(manager);

        if self.setup.kind == LeagueKind::Comparison {
            manager.store.commit_event(|league| {
                let players = league.ids(AgentKind::Player);
                let seed = manager.program.seed;
                league.start_event(seed, comparison::pairings(&players, seed))
            })?;
        }

        Ok(())
    }

    fn hint(&self, league: &League, the_match: &Match) -> String {
        screen::trace_hint(league, the_match, "")
    }

    fn before_round(&self, manager: &Manager, round: u32) {
        if self.setup.kind != LeagueKind::Comparison {
            return;
        }

        let Some(blocks) = comparison::blocks_before(round, self.setup.entrants.len()) else {
            return;
        };

        let view = self.document.current(manager);
        let Some(comparison) = Comparison::of(&view, blocks) else {
            return;
        };
        manager.terminal.print_line(&comparison.news());
        if comparison.verdict().is_some() {
            if let Err(error) = manager.close() {
                manager.terminal.print_line(&error.to_string());
            }
        } else if blocks > 0 {
            lock(&self.children).restart_players(manager);
        }
    }

    fn page(&self, manager: &Manager, path: &str, query: &str, peer: IpAddr) -> Option<Response> {
        let view = self.document.newest(manager);
        let is_recorded =
            |match_id: &str| manager.store.read(|league| is_recorded(league, match_id));
        self.web_pages
            .respond(&view, is_recorded, path, query, peer)
    }

    fn over(&self, manager: &Manager) {
        let view = self.document.newest(manager);
        let derived = DerivedFields::of(&view);
        let (data, logs) = (&manager.program.data, log_folder(&manager.program.args));
        let kept = render::write_files(data, &logs, &view, &derived);
        if self.setup.kind.is_practice() {
            let is_comparison = self.setup.kind == LeagueKind::Comparison;
            let problem = practice::print_result(manager, &view, &self.setup.own, is_comparison);
            *lock(&self.problem) = problem;
        } else if self.setup.kind == LeagueKind::Local && manager.terminal.quiet {
            let result = manager.store.read(manager::screen::result);
            print_line(&format!("{}: {result}", data.display()));
        } else if view
            .agents
            .iter()
            .any(|agent| agent.technical_losses > Some(0))
        {
            let text = statistics::completeness(&view);
            manager.terminal.print_line(&text);
        }

        match kept {
            Ok(text) => manager.terminal.print_line(&format!("\n{text}")),
            Err(problem) => manager.say(Level::Error, "fault", &problem),
        }
    }

    fn end(&self, manager: &Arc<Manager>) -> io::Result<()> {
        lock(&self.children).wait();
        self.web_pages.linger();
        let is_ordered = || manager.new_lobby_ordered.load(Ordering::SeqCst);
        if manager.program.args.has("--stay") {
            let text = "the league is over; still serving (--stay) until the command \
                `new-lobby` opens a new lobby";
            manager.terminal.print_line(text);
            manager.run_rounds(|_| is_ordered())?;
        }
        if is_ordered() {
            *lock(&self.new_lobby_port) = Some(manager.program.port);
        }

        self.relays.end();
        Ok(())
    }

    fn tools<'a>(&'a self, manager: &'a Manager) -> Vec<Tool<'a>> {
        let mut tools = vec![Tool::new(
            "get_league",
            "The whole public state: status, agents, table, statistics, and the matches of \
                the open round (or of round_id).",
            |arguments, peer| Ok(self.document.answer(manager, &arguments, peer)),
        )];
        tools.extend(self.relays.tools());
        tools
    }

    fn is_relay(&self, endpoint: &str) -> bool {
        self.relays.has(endpoint)
    }
}

/// Refuses a player that was not started here: it has the place of one of the entrants.
pub fn check_names(league: &League, entrants: &[Entrant]) -> Result<(), Exit> {
    for player in league.members(AgentKind::Player) {
        let name = &player.meta.display_name;
        if !entrants.is_empty()
            && !entrants
                .iter()
                .any(|one| one.name == *name || one.is_remote())
        {
            return Err(Exit::failure(format!(
                "{} takes a place, but was not started here: end it, then type this again",
                sanitize(&player.name_and_id())
            )));
        }
    }

    Ok(())
}

/// Returns true if a match has a result; none if there is no such match.
fn is_recorded(league: &League, match_id: &str) -> Option<bool> {
    Some(league.find(match_id)?.recorded.is_some())
}
