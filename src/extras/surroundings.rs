//! What surrounds a manager and its league: the operator's words, the screen, the pages, the children of a local league,
//! and what is kept at the end. The league itself is played by `src/manager.rs` and knows nothing of this.

use crate::extras::children::{self, Children};
use crate::extras::groups::{self, Entrant};
use crate::extras::manager_screen::{self, TurnedAway};
use crate::extras::pages::Pages;
use crate::extras::practice::{self, Practice};
use crate::extras::site::Site;
use crate::extras::stage::{self, ENTRANTS};
use crate::extras::{check, class, comparison, operator, season, statistics, trace};
use crate::manager::document::LeagueView;
use crate::manager::{Around, Manager};
use crate::net::http::Reply;
use crate::net::log::Level;
use crate::net::sync::{lock, spawn};
use crate::program::args::{Args, Stop};
use crate::program::card;
use crate::program::server::FAREWELL;
use crate::program::storage::{self, Access};
use crate::program::terminal::{Terminal, say, shown};
use crate::program::{self};
use crate::protocol::Progress;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How often the files for people are written.
const PACE: Duration = Duration::from_secs(2);
/// The mark of a league that was started here with all its agents, beside its journal.
const LOCAL: &str = "local";

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
    let mut around = Surroundings {
        terminal: Terminal {
            quiet: args.has("--quiet"),
        },
        ..Surroundings::default()
    };
    let cycles = practice::cycles(&args)?;
    around.is_local = args.word == Some("local");
    around.is_comparison = around.is_local && args.has("--new");
    around.entrants = entrants(&args)?;
    match args.word {
        Some("local") => children::fill_in(&mut args, &around.entrants)?,
        Some("class") => class::fill_in(&mut args)?,
        _ => {}
    }
    if cycles.is_some() || around.is_comparison {
        let mut practice = Practice::new(&mut args);
        practice.replace_the_last()?;
        around.practice = Some(practice);
    }
    // The agents of two local leagues have the same ids: only one at a time may have this folder.
    let _alone = if around.is_local {
        let (lock, is_over) = around.alone(&args)?;
        if is_over {
            say("this league is over (--fresh plays it again)");
            return Ok(());
        }
        Some(lock)
    } else {
        None
    };
    crate::manager::run(args, Arc::new(around))
}

/// Who enters a local league, where a file says so.
fn entrants(args: &Args) -> Result<Vec<Entrant>, Stop> {
    match args.text("--entrants") {
        None => Ok(Vec::new()),
        Some(file) if args.word == Some("local") => groups::read(Path::new(file)),
        Some(_) => {
            let cure = "league_manager local --entrants FILE";
            let words = format!("--entrants is for a local league: {cure}");
            Err(Stop::usage(words))
        }
    }
}

/// Whether a journal tells of a league in which somebody has registered and which was not closed.
fn is_open(journal: &str) -> bool {
    let has = |event: &str| journal.contains(&format!("{{\"event\":\"{event}\""));
    has("Registered") && !has("Closed") && !has("Again")
}

/// Everything around one manager.
#[derive(Default)]
struct Surroundings {
    is_local: bool,
    /// Two players are compared: see `comparison.rs`.
    is_comparison: bool,
    /// Who enters a local league, where a file says so.
    entrants: Vec<Entrant>,
    /// The journal that lay in the folder of a local league.
    before: String,
    practice: Option<Practice>,
    site: OnceLock<Arc<Site>>,
    children: Mutex<Option<Children>>,
    pages: Arc<Mutex<Option<Pages>>>,
    /// Where that was kept what a person keeps of the league.
    kept: Mutex<String>,
    /// Breaks off when the champion is on the screen.
    screen: Mutex<Option<Receiver<()>>>,
    turned_away: Mutex<TurnedAway>,
    terminal: Terminal,
}

impl Surroundings {
    /// Takes the data folder for one local league, and refuses to set a league aside that was not local. Says whether
    /// the league of these very entrants is over: a job that is started once more has nothing to do.
    fn alone(&mut self, args: &Args) -> Result<(File, bool), Stop> {
        let config = program::load(args)?;
        let data = PathBuf::from(args.text("--data").unwrap_or("data"));
        let lock = card::lock(&data, "local")?;
        let folder = data.join("leagues").join(&config.league.league_id);
        let read = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
        self.before = read("journal.jsonl");
        let shown = folder.display();
        if is_open(&self.before) && !folder.join(LOCAL).exists() {
            let words = format!("an unfinished league with other agents lies in {shown}");
            let cure = "end it first, or name other data with --data DIR";
            return Err(Stop::failed(format!("{words}; {cure}")));
        }
        let is_fresh = args.has("--fresh");
        let is_same = read(ENTRANTS) == groups::text(&self.entrants);
        if is_open(&self.before) && !is_same && !is_fresh {
            let words = format!("an unfinished league of other entrants lies in {shown}");
            let cure = "set it aside with --fresh, or name other data with --data DIR";
            return Err(Stop::failed(format!("{words}; {cure}")));
        }
        let document: Option<LeagueView> = storage::read_json(&folder.join("league.json"));
        let is_over = document.is_some_and(|it| it.status == Progress::Completed);
        let is_over = is_over && is_same && !self.entrants.is_empty() && !is_fresh;
        Ok((lock, is_over))
    }
}

impl Around for Surroundings {
    fn begin(&self, manager: &Arc<Manager>) -> Result<(), Stop> {
        let site = Arc::clone(self.site(manager));
        let each_match = Terminal {
            quiet: manager.terminal.quiet || self.practice.is_some(),
        };
        if self.is_comparison {
            comparison::follow(manager);
        } else {
            let screen = manager_screen::follow(manager, each_match, move || site.luck());
            *lock(&self.screen) = Some(screen);
        }
        let (data, league_id) = (&manager.program.data, manager.program.league_id());
        let word = manager.program.args.word;
        if self.is_local {
            let folder = data.join("leagues").join(league_id);
            storage::replace(&folder.join(LOCAL), Access::Everybody, "")?;
            let entrants = groups::text(&self.entrants);
            storage::replace(&folder.join(ENTRANTS), Access::Everybody, &entrants)?;
        }
        let logs = program::logs(&manager.program.args);
        *lock(&self.pages) = Some(Pages::new(data, league_id, logs));
        let (pages, here) = (Arc::clone(&self.pages), Arc::clone(manager));
        spawn("pages", move || {
            while !here.store.read(|league| league.closed) {
                write_pages(&pages, &here);
                here.store.wait(PACE, |league| league.closed);
            }
        });
        let address = children::from_here(&manager.program);
        let file = operator::address_file(data, league_id);
        storage::replace(&file, Access::Everybody, &address)?;
        let (entrants, before) = (&self.entrants, &self.before);
        *lock(&self.children) = match word {
            Some("local") => Some(Children::of_local_league(manager, entrants, before)?),
            Some("class") => Some(Children::of_class(manager)?),
            _ => None,
        };
        if word == Some("class") {
            class::greet(manager);
        }
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
        self.site(manager).page(path, query, peer)
    }

    fn turned_away(&self, words: &str) {
        let line = lock(&self.turned_away).line(shown(words), Instant::now());
        if let Some(line) = line {
            self.terminal.say(&line);
        }
    }

    fn keep(&self, manager: &Manager) {
        if self.is_comparison {
            write_pages(&self.pages, manager);
        } else {
            *lock(&self.kept) = keep_results(&self.pages, manager);
        }
    }

    fn ended(&self, manager: &Manager) {
        if let Some(screen) = lock(&self.screen).take() {
            let _ = screen.recv_timeout(FAREWELL);
        }
        if let Some(practice) = &self.practice
            && !self.is_comparison
        {
            let view = manager.document.newest();
            let mut lines = statistics::report(&view, &practice.answers(&view));
            let failures = |league: &_| practice::failures(league, &practice.logs);
            lines.extend(manager.store.read(failures));
            lines.iter().for_each(|line| say(line));
        }
        if !self.is_comparison {
            let kept = lock(&self.kept);
            manager.terminal.say(&format!("\n{kept}"));
        }
        if let Some(children) = &mut *lock(&self.children) {
            children.wait(FAREWELL);
        }
        self.site(manager).linger();
    }
}

impl Surroundings {
    /// The pages; somebody may ask for one before the league begins.
    fn site(&self, manager: &Manager) -> &Arc<Site> {
        let logs = || program::logs(&manager.program.args);
        let new = || Arc::new(Site::new(&manager.document, logs()));
        self.site.get_or_init(new)
    }
}

/// Writes the files for people. That they cannot be written is said once, and stops no league.
fn write_pages(pages: &Mutex<Option<Pages>>, manager: &Manager) {
    let Some(pages) = &mut *lock(pages) else {
        return;
    };
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

/// Writes what a person keeps of the league; says where.
fn keep_results(pages: &Mutex<Option<Pages>>, manager: &Manager) -> String {
    let Some(pages) = &mut *lock(pages) else {
        return String::new();
    };
    let kept = pages.keep(&manager.document.newest(), &manager.program.config.retry());
    kept.unwrap_or_else(|words| {
        let log = manager.program.log();
        log.orchestrator(Level::Error, "fault", &*words);
        words
    })
}
