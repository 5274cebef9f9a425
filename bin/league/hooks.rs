//! The part of the tool that runs within a manager: the screen, the pages, the children of a local
//! league, and the files that are kept at the end.
//!
//! The manager calls it by the trait `Hooks` at the few moments of its life that concern it. The
//! league itself is played by `src/manager.rs`, which knows nothing of this.

use crate::children::{self, Children};
use crate::derived::DerivedFields;
use crate::document::Document;
use crate::export::Exporter;
use crate::groups::{self, Entrant};
use crate::verify::Checked;
use crate::web::WebPages;
use crate::{class, comparison, local, operator, rehearsal, screen, statistics};
use league::manager::league::League;
use league::manager::{self, Hooks, Manager};
use league::net::agent::Tool;
use league::net::http::Response;
use league::net::log::Level;
use league::net::sync::{lock, spawn};
use league::program::args::{Args, Exit};
use league::program::storage::{self, Access};
use league::program::terminal::{Terminal, print_error, print_line};
use league::program::{SHUTDOWN_TIMEOUT, data_folder, log_folder};
use league::protocol::LeaguePhase;
use league::system::restart_process;
use std::fs::File;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Maximum time until the children are looked at again, before the start.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval between two writes of the files for people.
const WRITE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of further attempts to write them at the end of a league.
const MAX_WRITES: u32 = 2;

/// The kinds of leagues that the tool runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LeagueKind {
    /// A league whose agents run on this machine.
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

/// A league as a command has prepared it.
pub struct Setup {
    /// The kind of league.
    pub kind: LeagueKind,
    /// The players that are started here, in the order of their ids.
    pub entrants: Vec<Entrant>,
    /// The league that lies in the data folder.
    pub stored: Option<League>,
    /// The lock of the data folder: the agents of two local leagues have the same ids, so only one
    /// league at a time may use it.
    pub _lock: Option<File>,
}

impl Setup {
    /// Returns a league of agents that register by themselves.
    pub fn new(kind: LeagueKind) -> Setup {
        Setup {
            kind,
            entrants: Vec::new(),
            stored: None,
            _lock: None,
        }
    }
}

/// Runs a manager until its league is over. If the operator has ordered a new lobby, the same command
/// is run again in the place of this process.
pub fn run(args: Args, setup: Setup) -> Result<(), Exit> {
    let hooks = Arc::new(ToolHooks::new(&args, setup));
    let end = manager::run(args.clone(), Arc::clone(&hooks) as Arc<dyn Hooks>);
    if end.is_err() && hooks.setup.kind.is_practice() {
        lock(&hooks.children).kill(); // they write into the folders
        local::restore_last_practice(&args)?;
    }
    end?;
    if let Some(problem) = lock(&hooks.problem).take() {
        return Err(Exit::failure(problem));
    }

    match hooks.new_lobby_port.load(Ordering::SeqCst) {
        0 => Ok(()),
        port => Err(restart_process(port).into()),
    }
}

/// The tool within a manager.
struct ToolHooks {
    setup: Setup,
    web_pages: WebPages,
    exporter: Arc<Mutex<Exporter>>,
    children: Mutex<Children>,
    /// Is disconnected when the champion is on the screen.
    screen: Mutex<Option<Receiver<()>>>,
    terminal: Terminal,
    document: Arc<Document>,
    /// The manager's port if the operator has ordered a new lobby; else 0.
    new_lobby_port: AtomicU16,
    /// The reason why a practice that was played has failed.
    problem: Mutex<Option<String>>,
}

impl ToolHooks {
    fn new(args: &Args, setup: Setup) -> ToolHooks {
        let logs = log_folder(args);
        let quiet = args.has("--quiet") || setup.kind.is_practice();
        let is_local = setup.kind.is_local();

        ToolHooks {
            setup,
            web_pages: WebPages::new(logs.clone()),
            exporter: Arc::new(Mutex::new(Exporter::new(data_folder(args), logs))),
            children: Mutex::default(),
            screen: Mutex::default(),
            terminal: Terminal { quiet },
            document: Arc::new(Document::new(is_local)),
            new_lobby_port: AtomicU16::new(0),
            problem: Mutex::default(),
        }
    }

    /// Writes the files that tell other commands of this league: who plays, and where the manager is.
    fn write_marks(&self, manager: &Manager) -> Result<(), Exit> {
        let program = &manager.program;
        let folder = storage::league_folder(&program.data, program.league_id());
        if !self.setup.entrants.is_empty() {
            let entrants = groups::text(&self.setup.entrants);
            storage::replace(&folder.join(groups::FILE), Access::AllUsers, &entrants)?;
        }

        let address = children::local_url(program);
        let file = operator::address_file(&program.data, program.league_id());
        storage::replace(&file, Access::AllUsers, &address)?;
        Ok(())
    }

    /// Shows the league in the terminal, from now on.
    fn start_screen(&self, manager: &Arc<Manager>) {
        if self.setup.kind == LeagueKind::Comparison {
            comparison::follow(manager, &self.document);
            return;
        }

        let view = self.document.newest(manager);
        let screen = screen::follow(
            &manager.store,
            &view,
            manager.lead,
            self.terminal,
            self.setup.kind == LeagueKind::Practice,
        );
        *lock(&self.screen) = Some(screen);
    }

    /// Starts the agents that run on this machine.
    fn start_children(&self, manager: &Manager) -> Result<(), Exit> {
        let Setup {
            entrants, stored, ..
        } = &self.setup;

        let children = Children::start(&manager.program, entrants, stored.as_ref())?;
        *lock(&self.children) = children;
        Ok(())
    }

    /// Prints what a practice says about its players.
    fn print_practice(&self, manager: &Manager) {
        if self.setup.kind == LeagueKind::Practice {
            let mut own = self.setup.entrants.clone();
            own.retain(Entrant::is_own);
            let own: Vec<String> = own.into_iter().map(|entrant| entrant.name).collect();
            let view = self.document.newest(manager);
            print_line(&format!("\n{}", statistics::completeness(&view)));
            print_line(&statistics::report(&view, &own));
        }

        for player in manager.store.read(screen::players_without_a_match) {
            let problem = format!("{player} has lost all its matches technically");
            *lock(&self.problem) = Some(problem);
        }

        let logs = log_folder(&manager.program.args);
        let store = &manager.store;
        for line in store.read(|league| screen::first_losses(league, &logs)) {
            print_line(&line);
        }
    }
}

impl Hooks for ToolHooks {
    fn begin(&self, manager: &Arc<Manager>) -> Result<(), Exit> {
        self.start_screen(manager);
        self.write_marks(manager)?;
        keep_writing(&self.exporter, manager, &self.document);

        if self.setup.kind != LeagueKind::Serve {
            self.start_children(manager)?;
        }
        if self.setup.kind == LeagueKind::Class {
            let is_lobby = manager.status().status == LeaguePhase::Waiting;
            class::greet(&manager.program.endpoint, is_lobby);
            rehearsal::follow(manager, &self.document.rehearsals, self.terminal);
            operator::listen(&manager.program);
        }

        // The league does not begin without its own agents.
        while !lock(&self.children).have_registered(manager)? {
            let version = manager.store.version();
            manager.store.wait_for_change(version, CHECK_INTERVAL);
        }

        if self.setup.kind.is_practice() {
            local::delete_last_practice(&manager.program.args)?;
        }
        Ok(())
    }

    fn pairings(&self, players: &[String]) -> Option<Vec<Vec<[String; 2]>>> {
        let is_comparison = self.setup.kind == LeagueKind::Comparison;
        is_comparison.then(|| comparison::pairings(players))
    }

    fn page(&self, manager: &Manager, path: &str, query: &str, peer: IpAddr) -> Option<Response> {
        let view = self.document.newest(manager);
        let is_recorded =
            |match_id: &str| manager.store.read(|league| is_recorded(league, match_id));
        self.web_pages
            .respond(&view, is_recorded, path, query, peer)
    }

    fn league_played(&self, manager: &Manager) {
        let view = self.document.newest(manager);
        let derived = DerivedFields::of(&view);
        let mut kept = lock(&self.exporter).finish(&view, &derived);
        for _ in 0..MAX_WRITES {
            if kept.is_err() {
                thread::sleep(WRITE_INTERVAL); // the disk may be full for a moment only
                kept = lock(&self.exporter).finish(&view, &derived);
            }
        }

        // The table and the champion come first.
        if let Some(screen) = lock(&self.screen).take() {
            let _ = screen.recv_timeout(SHUTDOWN_TIMEOUT);
        }
        if view
            .agents
            .iter()
            .any(|agent| agent.technical_losses > Some(0))
        {
            self.terminal.print_line(&statistics::completeness(&view));
        }
        if let Some(luck) = &derived.luck {
            self.terminal.print_line(luck);
        }
        if self.setup.kind.is_practice() {
            self.print_practice(manager);
        }

        match kept {
            Ok(text) => manager.terminal.print_line(&format!("\n{text}")),
            Err(problem) => manager.say(Level::Error, "fault", &problem),
        }
    }

    fn league_closed(&self, manager: &Manager) {
        lock(&self.children).wait();
        self.web_pages.linger();
        if self.setup.kind.is_local() {
            let config = manager.program.config.clone();
            let checked = Checked::new(config, &manager.program.args);
            if let Err(exit) = checked.and_then(|checked| checked.check()) {
                print_error(&exit.message);
            }
        }

        if manager.program.args.has("--stay") {
            let text = "the league is over; still serving (--stay) until the command \
                `new-lobby` opens a new lobby";
            manager.terminal.print_line(text);
        }
    }

    fn must_stay(&self, manager: &Manager) -> bool {
        manager.program.args.has("--stay") && self.new_lobby_port.load(Ordering::SeqCst) == 0
    }

    fn new_lobby(&self, manager: &Manager) {
        let port = manager.program.port;
        self.new_lobby_port.store(port, Ordering::SeqCst);
        manager.store.notify_all();
    }

    fn tools<'a>(&'a self, manager: &'a Manager) -> Vec<Tool<'a>> {
        vec![Tool::new(
            "get_league",
            "The whole public state: status, agents, table, statistics, and the matches of \
                the open round (or of round_id).",
            |arguments, peer| Ok(self.document.answer(manager, &arguments, peer)),
        )]
    }

    /// A practice would delete its own files. The children of other leagues are started again.
    fn prepare_restart(&self) -> bool {
        if !self.setup.kind.is_practice() {
            lock(&self.children).kill();
        }
        !self.setup.kind.is_practice()
    }

    fn shows_operator_token(&self) -> bool {
        !self.setup.kind.is_local()
    }
}

/// Returns true if a match has a result; none if there is no such match.
fn is_recorded(league: &League, match_id: &str) -> Option<bool> {
    Some(league.find(match_id)?.recorded.is_some())
}

/// Starts a thread that writes the files for people. That they cannot be written is said once, and
/// stops no league.
fn keep_writing(exporter: &Arc<Mutex<Exporter>>, manager: &Arc<Manager>, document: &Arc<Document>) {
    let (exporter, manager) = (Arc::clone(exporter), Arc::clone(manager));
    let document = Arc::clone(document);

    spawn("pages", move || {
        let mut has_failed = false;
        while !manager.store.read(|league| league.closed) {
            let errors = lock(&exporter).write(&document.newest(&manager));
            if let Some(error) = errors.first()
                && !has_failed
            {
                let text = format!("the files for people cannot be written: {error}");
                manager.say(Level::Error, "fault", &text);
            }

            has_failed = !errors.is_empty();
            manager.store.wait(WRITE_INTERVAL, |league| league.closed);
        }
    });
}
