//! What surrounds a manager and its league: the operator's words, the screen, the pages, the
//! children of a local league, and what is kept at the end. The manager calls it by the trait
//! `Around`, at the few moments of its life that concern it. The league itself is played by
//! `src/manager.rs` and knows nothing of this.

use crate::extras::children::{self, Children};
use crate::extras::figures::Figures;
use crate::extras::groups;
use crate::extras::local::{self, Local};
use crate::extras::pages::Pages;
use crate::extras::site::Site;
use crate::extras::{
    check, class, comparison, manager_screen, operator, season, stage, statistics, trace,
};
use crate::manager::league::League;
use crate::manager::{Around, Manager};
use crate::net::http::Reply;
use crate::net::log::Level;
use crate::net::sync::{lock, spawn};
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::server::FAREWELL;
use crate::program::storage::{self, Access};
use crate::program::terminal::{Terminal, say, shown};
use crate::protocol::Progress;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often the files for people are written.
const PACE: Duration = Duration::from_secs(2);

/// How long a line about somebody who was turned away is not repeated.
const AWHILE: Duration = Duration::from_secs(60);
/// How many such lines are shown within `AWHILE`; the log has all.
const TURNED_AWAY: usize = 20;

/// Runs the program: a word, or a manager with everything around it.
pub fn run(mut args: Args) -> Result<(), Stop> {
    match args.word {
        Some("check") => return check::run(args),
        Some("groups") => return groups::run(&args),
        Some("season") if stage::is_meant(&args) => return stage::run(&args),
        Some("season") => return season::run(&args),
        Some("trace") => return trace::trace(&args),
        Some("local" | "class") | None => {}
        Some(_) => return operator::run(&args),
    }
    let around = Surroundings::new(&mut args)?;
    crate::manager::run(args, Arc::new(around))
}

/// Everything around one manager.
struct Surroundings {
    local: Local,
    site: Site,
    pages: Arc<Mutex<Pages>>,
    children: Mutex<Children>,
    /// Breaks off when the champion is on the screen.
    screen: Mutex<Option<Receiver<()>>>,
    /// What was shown of whom was turned away, and when. None is shown twice in a while, and no
    /// more than a person can read: whoever is turned away may come again in a loop.
    turned_away: Mutex<BTreeMap<String, Instant>>,
    terminal: Terminal,
}

impl Surroundings {
    /// What the command line asks for; what it leaves open is filled in.
    fn new(args: &mut Args) -> Result<Surroundings, Stop> {
        for option in ["--mine", "--cycles", "--new", "--entrants"] {
            if args.has(option) && args.word != Some("local") {
                let cure = format!("league_manager local {option} …");
                return Err(Stop::usage(format!(
                    "{option} is for a local league: {cure}"
                )));
            }
        }
        let mut local = Local::default();
        match args.word {
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
            turned_away: Mutex::default(),
            terminal: Terminal { quiet },
        })
    }
}

impl Around for Surroundings {
    fn begin(&self, manager: &Arc<Manager>) -> Result<(), Stop> {
        if self.local.is_comparison {
            comparison::follow(manager);
        } else {
            let (store, view) = (&manager.store, &manager.view());
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
        keep_writing(&self.pages, manager);
        let address = children::from_here(program);
        let file = operator::address_file(&program.data, program.league_id());
        storage::replace(&file, Access::Everybody, &address)?;
        if program.args.word.is_some() {
            *lock(&self.children) = Children::start(program, entrants, before)?;
        }
        if program.args.word == Some("class") {
            let is_lobby = manager.status().status == Progress::Waiting;
            class::greet(&program.endpoint, is_lobby);
            operator::listen(program);
        }
        Ok(())
    }

    fn is_ready(&self, manager: &Manager) -> Result<bool, Stop> {
        let is_here = |id: &String| manager.board.contact(id).is_here;
        let (here, away): (Vec<_>, Vec<_>) = manager.ids().into_iter().partition(is_here);
        lock(&self.children).are_here(&here, &away)
    }

    fn pairings(&self, players: &[String]) -> Option<Vec<Vec<[String; 2]>>> {
        self.local
            .is_comparison
            .then(|| comparison::pairings(players))
    }

    fn page(&self, manager: &Manager, path: &str, query: &str, peer: IpAddr) -> Option<Reply> {
        let recorded = |match_id: &str| {
            let recorded = |league: &League| Some(league.find(match_id)?.recorded.is_some());
            manager.store.read(recorded)
        };
        self.site.page(&manager.view(), recorded, path, query, peer)
    }

    fn turned_away(&self, words: &str) {
        let mut lines = lock(&self.turned_away);
        lines.retain(|_, shown| shown.elapsed() < AWHILE);
        if lines.len() < TURNED_AWAY && lines.insert(words.into(), Instant::now()).is_none() {
            self.terminal.say(&shown(words));
        }
    }

    fn keep(&self, manager: &Manager) {
        let logs = program::logs(&manager.program.args);
        let view = manager.view();
        let figures = Figures::of(&view);
        let kept = lock(&self.pages).keep(&view, &figures);
        if let Some(screen) = lock(&self.screen).take() {
            let _ = screen.recv_timeout(FAREWELL);
        }
        if let Some(luck) = &figures.luck {
            self.terminal.say(luck);
        }
        if self.local.is_practice {
            if !self.local.is_comparison {
                say(&statistics::report(&view));
            }
            let losses = |league: &League| manager_screen::first_losses(league, &logs);
            let losses = manager.store.read(losses);
            losses.iter().for_each(|line| say(line));
        }
        match kept {
            Ok(words) => manager.terminal.say(&format!("\n{words}")),
            Err(words) => manager.say(Level::Error, "fault", &words),
        }
    }

    fn ended(&self, _manager: &Manager) {
        lock(&self.children).wait();
        self.site.linger();
    }
}

/// Has a thread write the files for people. That they cannot be written is said once, and stops no
/// league.
fn keep_writing(pages: &Arc<Mutex<Pages>>, manager: &Arc<Manager>) {
    let (pages, manager) = (Arc::clone(pages), Arc::clone(manager));
    spawn("pages", move || {
        let mut has_failed = false;
        while !manager.store.read(|league| league.closed) {
            let errors = lock(&pages).write(&manager.view());
            if let Some(error) = errors.first().filter(|_| !has_failed) {
                let words = format!("the files for people cannot be written: {error}");
                manager.say(Level::Error, "fault", &words);
            }
            has_failed = !errors.is_empty();
            manager.store.wait(PACE, |league| league.closed);
        }
    });
}
