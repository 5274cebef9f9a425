//! What surrounds a manager and its league: the operator's words, the screen, the pages, the children of a local league,
//! and what is kept at the end. The league itself is played by `src/manager.rs` and knows nothing of this.

use crate::extras::children::{self, Children};
use crate::extras::figures::Figures;
use crate::extras::groups::{self, Entrant};
use crate::extras::manager_screen::{self, TurnedAway};
use crate::extras::pages::Pages;
use crate::extras::practice::{self, Practice};
use crate::extras::site::Site;
use crate::extras::stage::{self, ENTRANTS};
use crate::extras::{check, class, comparison, operator, season, statistics, trace};
use crate::manager::journal;
use crate::manager::{Around, Manager};
use crate::net::http::Reply;
use crate::net::log::Level;
use crate::net::sync::{lock, spawn};
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::card;
use crate::program::server::FAREWELL;
use crate::program::storage::{self, Access};
use crate::program::terminal::{Terminal, say, shown};
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often the files for people are written.
const PACE: Duration = Duration::from_secs(2);

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
    if around.local.as_ref().is_some_and(|local| local.is_over) {
        say("this league is over (--fresh plays it again)");
        return Ok(());
    }
    crate::manager::run(args, Arc::new(around))
}

/// A local league: its manager, its referees and its players were all started here.
struct Local {
    /// Who enters it, where a file says so.
    entrants: Vec<Entrant>,
    /// The journal that lay in its folder.
    before: String,
    /// Whether the league of these very entrants is over: a job that is started once more has nothing to do.
    is_over: bool,
    /// The agents of two local leagues have the same ids: only one at a time may have this folder.
    _alone: File,
}

impl Local {
    /// Takes the data folder, and refuses to set a league aside that was not local, or not of these entrants.
    fn new(args: &Args, entrants: Vec<Entrant>) -> Result<Local, Stop> {
        let league_id = program::load(args)?.league.league_id;
        let data = program::data(args);
        let alone = card::lock(&data, "local")?;
        let folder = journal::folder(&data, &league_id);
        let marked = fs::read_to_string(folder.join(ENTRANTS));
        let before = fs::read_to_string(folder.join("journal.jsonl")).unwrap_or_default();
        let last = |event: &str| before.rfind(&format!("{{\"event\":\"{event}\""));
        let is_closed = last("Closed").max(last("Again")) > last("Voided");
        let is_open = last("Registered").is_some() && !is_closed;
        let is_same = marked.as_ref().ok() == Some(&groups::text(&entrants));
        let is_fresh = args.has("--fresh");
        let refused = |whose: &str, cure: &str| {
            let words = format!("an unfinished league {whose} lies in {}", folder.display());
            let cure = format!("{cure}, or name other data with --data DIR");
            Err(Stop::failed(format!("{words}; {cure}")))
        };
        if is_open && marked.is_err() {
            return refused("with other agents", "end it first");
        }
        if is_open && !is_same && !is_fresh {
            return refused("of other entrants", "set it aside with --fresh");
        }
        let is_over = is_closed && is_same && !entrants.is_empty() && !is_fresh;
        Ok(Local {
            entrants,
            before,
            is_over,
            _alone: alone,
        })
    }
}

/// Everything around one manager.
struct Surroundings {
    local: Option<Local>,
    /// Two players are compared: see `comparison.rs`.
    is_comparison: bool,
    practice: Option<Practice>,
    site: Site,
    pages: Arc<Mutex<Pages>>,
    children: Mutex<Option<Children>>,
    /// Breaks off when the champion is on the screen.
    screen: Mutex<Option<Receiver<()>>>,
    turned_away: Mutex<TurnedAway>,
    terminal: Terminal,
}

impl Surroundings {
    /// What the command line asks for; what it leaves open is filled in.
    fn new(args: &mut Args) -> Result<Surroundings, Stop> {
        let is_local = args.word == Some("local");
        for option in ["--mine", "--cycles", "--new", "--entrants"] {
            if args.has(option) && !is_local {
                let cure = format!("league_manager local {option} …");
                return Err(Stop::usage(format!(
                    "{option} is for a local league: {cure}"
                )));
            }
        }
        let is_comparison = args.has("--new");
        let is_practice = is_comparison || practice::cycles(args)?.is_some();
        let entrants = match args.text("--entrants") {
            Some(file) => groups::read(Path::new(file))?,
            None => Vec::new(),
        };
        match args.word {
            Some("local") => children::fill_in(args, &entrants)?,
            Some("class") => class::fill_in(args)?,
            _ => {}
        }
        let mut practice = is_practice.then(|| Practice::new(args));
        if let Some(practice) = &mut practice {
            practice.replace_the_last()?;
        }
        let logs = program::logs(args);
        let quiet = args.has("--quiet") || is_practice;
        let local = is_local.then(|| Local::new(args, entrants));
        Ok(Surroundings {
            local: local.transpose()?,
            is_comparison,
            practice,
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
        if self.is_comparison {
            comparison::follow(manager);
        } else {
            *lock(&self.screen) = Some(manager_screen::follow(manager, self.terminal));
        }
        let program = &manager.program;
        if let Some(local) = &self.local {
            let folder = journal::folder(&program.data, program.league_id());
            let entrants = groups::text(&local.entrants);
            storage::replace(&folder.join(ENTRANTS), Access::Everybody, &entrants)?;
        }
        let (pages, here) = (Arc::clone(&self.pages), Arc::clone(manager));
        spawn("pages", move || {
            while !here.store.read(|league| league.closed) {
                write_pages(&pages, &here);
                here.store.wait(PACE, |league| league.closed);
            }
        });
        let address = children::from_here(program);
        let file = operator::address_file(&program.data, program.league_id());
        storage::replace(&file, Access::Everybody, &address)?;
        *lock(&self.children) = match (&self.local, program.args.word) {
            (Some(local), _) => {
                let (entrants, before) = (&local.entrants, &local.before);
                Some(Children::of_local_league(manager, entrants, before)?)
            }
            (None, Some("class")) => {
                let children = Children::of_class(manager)?;
                class::greet(manager);
                Some(children)
            }
            _ => None,
        };
        operator::listen(manager);
        Ok(())
    }

    fn is_ready(&self, manager: &Manager) -> Result<bool, Stop> {
        let mut children = lock(&self.children);
        let Some(children) = &mut *children else {
            return Ok(true);
        };
        if let Some(name) = children.failed() {
            let words = format!("{name} could not start, so the league does not");
            return Err(Stop::failed(format!("{words}; what it said stands above")));
        }
        let is_here = |id: &String| manager.board.contact(id).is_here;
        let here = manager.ids().iter().filter(|id| is_here(id)).count();
        let all_here = here >= children.count();
        if all_here && self.practice.is_some() && !self.is_comparison {
            manager.terminal.say(&manager.store.read(practice::begins));
        }
        Ok(all_here)
    }

    fn pairings(&self, players: &[String]) -> Option<Vec<Vec<[String; 2]>>> {
        self.is_comparison.then(|| comparison::pairings(players))
    }

    fn page(&self, manager: &Manager, path: &str, query: &str, peer: IpAddr) -> Option<Reply> {
        self.site.page(&manager.document, path, query, peer)
    }

    fn turned_away(&self, words: &str) {
        let line = lock(&self.turned_away).line(shown(words), Instant::now());
        if let Some(line) = line {
            self.terminal.say(&line);
        }
    }

    fn keep(&self, manager: &Manager) {
        if self.is_comparison {
            return write_pages(&self.pages, manager);
        }
        let view = manager.document.newest();
        let figures = Figures::of(&view);
        let policy = manager.program.config.retry();
        let kept = lock(&self.pages).keep(&view, &figures, &policy);
        let kept = kept.unwrap_or_else(|words| {
            let log = manager.program.log();
            log.orchestrator(Level::Error, "fault", &*words);
            words
        });
        if let Some(screen) = lock(&self.screen).take() {
            let _ = screen.recv_timeout(FAREWELL);
        }
        if let Some(luck) = &figures.luck {
            self.terminal.say(luck);
        }
        if let Some(practice) = &self.practice {
            let mut lines = statistics::report(&view);
            let losses = |league: &_| manager_screen::first_losses(league, &practice.logs);
            lines.extend(manager.store.read(losses));
            lines.iter().for_each(|line| say(line));
        }
        manager.terminal.say(&format!("\n{kept}"));
    }

    fn ended(&self, _manager: &Manager) {
        if let Some(children) = &mut *lock(&self.children) {
            children.wait(FAREWELL);
        }
        self.site.linger();
    }
}

/// Writes the files for people. That they cannot be written is said once, and stops no league.
fn write_pages(pages: &Mutex<Pages>, manager: &Manager) {
    let mut pages = lock(pages);
    let failed_before = pages.has_failed;
    let errors = pages.write(&manager.document.newest());
    pages.has_failed = !errors.is_empty();
    if let Some(error) = errors.first()
        && !failed_before
    {
        let words = format!("the files for people cannot be written: {error}");
        manager.say(Level::Error, "fault", &words);
    }
}
