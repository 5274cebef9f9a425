//! What surrounds a manager and its league: the operator's words, the screen, the pages, the
//! children of a local league, and what is kept at the end. The manager calls it by the trait
//! `Hooks`, at the few moments of its life that concern it. The league itself is played by
//! `src/manager.rs` and knows nothing of this.

use crate::extras::children::{self, Children};
use crate::extras::document::Document;
use crate::extras::figures::Figures;
use crate::extras::groups;
use crate::extras::local::{self, Local};
use crate::extras::pages::Pages;
use crate::extras::site::Site;
use crate::extras::{
    check, class, comparison, manager_screen, operator, season, stage, statistics, trace,
};
use crate::manager::league::League;
use crate::manager::{Hooks, Manager};
use crate::net::agent::Tool;
use crate::net::http::Response;
use crate::net::log::Level;
use crate::net::restart::restart_process;
use crate::net::sync::{lock, spawn};
use crate::program;
use crate::program::SHUTDOWN_TIMEOUT;
use crate::program::args::{Args, Exit};
use crate::program::storage::{self, Access};
use crate::program::terminal::{Terminal, print_line};
use crate::protocol::LeaguePhase;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often the manager looks, before the start, whether its children are there.
const LOOK: Duration = Duration::from_millis(100);
/// How often the files for people are written.
const PACE: Duration = Duration::from_secs(2);

/// Runs the program: a word, or a manager with everything around it.
pub fn run(mut args: Args) -> Result<(), Exit> {
    match args.command {
        Some("check") => return check::run(args),
        Some("groups") => return groups::run(&args),
        Some("season") if stage::is_meant(&args) => return stage::run(&args),
        Some("season") => return season::run(&args),
        Some("trace") => return trace::trace(&args),
        Some("local" | "class") | None => {}
        Some(_) => return operator::run(&args),
    }
    let around = Arc::new(Surroundings::new(&mut args)?);
    crate::manager::run(args, Arc::clone(&around) as Arc<dyn Hooks>)?;
    match around.new_lobby_at.load(Ordering::SeqCst) {
        0 => Ok(()),
        port => Err(restart_process(port).into()),
    }
}

/// Everything around one manager.
struct Surroundings {
    local: Local,
    site: Site,
    pages: Arc<Mutex<Pages>>,
    children: Mutex<Children>,
    /// Breaks off when the champion is on the screen.
    screen: Mutex<Option<Receiver<()>>>,
    terminal: Terminal,
    document: Arc<Document>,
    /// The manager's port, if the operator wants a new lobby after this league; else 0.
    new_lobby_at: AtomicU16,
}

impl Surroundings {
    /// What the command line asks for; what it leaves open is filled in.
    fn new(args: &mut Args) -> Result<Surroundings, Exit> {
        for option in ["--mine", "--cycles", "--new", "--entrants"] {
            if args.has(option) && args.command != Some("local") {
                let cure = format!("league_manager local {option} …");
                return Err(Exit::usage(format!(
                    "{option} is for a local league: {cure}"
                )));
            }
        }
        let mut local = Local::default();
        match args.command {
            Some("local") => local = Local::new(args)?,
            Some("class") => {
                class::fill_in(args)?;
                (_, local.before) = local::before(args)?;
            }
            _ => {}
        }
        let logs = program::logs(args);
        let quiet = args.has("--quiet") || local.is_practice;
        Ok(Surroundings {
            local,
            site: Site::new(logs.clone()),
            pages: Arc::new(Mutex::new(Pages::new(program::data(args), logs))),
            children: Mutex::default(),
            screen: Mutex::default(),
            terminal: Terminal { quiet },
            document: Arc::default(),
            new_lobby_at: AtomicU16::new(0),
        })
    }
}

impl Surroundings {
    /// Whether all agents are there that belong to this league; or why they cannot come.
    fn is_ready(&self, manager: &Manager) -> Result<bool, Exit> {
        let is_here = |id: &String| manager.notifier.status(id).has_registered;
        let (here, away): (Vec<_>, Vec<_>) = manager
            .store
            .read(|league| league.members.keys().cloned().partition(is_here));
        lock(&self.children).are_here(&here, &away)
    }
}

impl Hooks for Surroundings {
    fn begin(&self, manager: &Arc<Manager>) -> Result<(), Exit> {
        if self.local.is_comparison {
            comparison::follow(manager, &self.document);
        } else {
            let (store, view) = (&manager.store, &self.document.newest(manager));
            let screen = manager_screen::follow(store, view, manager.lead, self.terminal);
            *lock(&self.screen) = Some(screen);
        }
        let program = &manager.program;
        let folder = storage::league_folder(&program.data, program.league_id());
        let Local {
            entrants, before, ..
        } = &self.local;
        if !entrants.is_empty() {
            let entrants = groups::text(entrants);
            storage::replace(&folder.join(groups::FILE), Access::Everybody, &entrants)?;
        }
        keep_writing(&self.pages, manager, &self.document);
        let address = children::from_here(program);
        let file = operator::address_file(&program.data, program.league_id());
        storage::replace(&file, Access::Everybody, &address)?;
        if program.args.command.is_some() {
            *lock(&self.children) = Children::start(program, entrants, before)?;
        }
        if program.args.command == Some("class") {
            let is_lobby = manager.status().status == LeaguePhase::Waiting;
            class::greet(&program.endpoint, is_lobby);
            operator::listen(program);
        }
        while !self.is_ready(manager)? {
            let version = manager.store.version();
            manager.store.wait_for_change(version, LOOK);
        }
        Ok(())
    }

    fn pairings(&self, players: &[String]) -> Option<Vec<Vec<[String; 2]>>> {
        self.local
            .is_comparison
            .then(|| comparison::pairings(players))
    }

    fn page(&self, manager: &Manager, path: &str, query: &str, peer: IpAddr) -> Option<Response> {
        let recorded = |match_id: &str| {
            let recorded = |league: &League| Some(league.find(match_id)?.recorded.is_some());
            manager.store.read(recorded)
        };
        let view = self.document.newest(manager);
        self.site.page(&view, recorded, path, query, peer)
    }

    fn league_played(&self, manager: &Manager) {
        let logs = program::logs(&manager.program.args);
        let view = self.document.newest(manager);
        let figures = Figures::of(&view);
        let kept = lock(&self.pages).keep(&view, &figures);
        if let Some(screen) = lock(&self.screen).take() {
            let _ = screen.recv_timeout(SHUTDOWN_TIMEOUT);
        }
        if let Some(luck) = &figures.luck {
            self.terminal.print_line(luck);
        }
        if self.local.is_practice {
            if !self.local.is_comparison {
                print_line(&statistics::report(&view));
            }
            let losses = |league: &League| manager_screen::first_losses(league, &logs);
            let losses = manager.store.read(losses);
            losses.iter().for_each(|line| print_line(line));
        }
        match kept {
            Ok(words) => manager.terminal.print_line(&format!("\n{words}")),
            Err(words) => manager.say(Level::Error, "fault", &words),
        }
    }

    fn league_closed(&self, manager: &Manager) {
        lock(&self.children).wait();
        self.site.linger();
        if manager.program.args.has("--stay") {
            let until = "until the word `again` opens a new lobby";
            let words = format!("the league is over; still serving (--stay) {until}");
            manager.terminal.print_line(&words);
        }
    }

    fn must_stay(&self, manager: &Manager) -> bool {
        manager.program.args.has("--stay") && self.new_lobby_at.load(Ordering::SeqCst) == 0
    }

    fn new_lobby(&self, manager: &Manager) {
        self.new_lobby_at
            .store(manager.program.port, Ordering::SeqCst);
        manager.store.nudge();
    }

    fn tools<'a>(&'a self, manager: &'a Manager) -> Vec<Tool<'a>> {
        vec![Tool::new(
            "get_league",
            "The whole public state: status, agents, table, statistics, and the matches of \
                the open round (or of round_id).",
            |asked, peer| Ok(self.document.asked(manager, &asked, peer)),
        )]
    }
}

/// Has a thread write the files for people. That they cannot be written is said once, and stops no
/// league.
fn keep_writing(pages: &Arc<Mutex<Pages>>, manager: &Arc<Manager>, document: &Arc<Document>) {
    let (pages, manager) = (Arc::clone(pages), Arc::clone(manager));
    let document = Arc::clone(document);
    spawn("pages", move || {
        let mut has_failed = false;
        while !manager.store.read(|league| league.closed) {
            let errors = lock(&pages).write(&document.newest(&manager));
            if let Some(error) = errors.first().filter(|_| !has_failed) {
                let words = format!("the files for people cannot be written: {error}");
                manager.say(Level::Error, "fault", &words);
            }
            has_failed = !errors.is_empty();
            manager.store.wait(PACE, |league| league.closed);
        }
    });
}
