//! The league manager: it registers referees and players, has every pair play, and keeps the table.
//!
//! This file is the life of a manager, from the command line to the end of its league. What the
//! manager answers is in `handlers.rs`. What may happen is decided in `league.rs` and the files
//! that it names; what has happened is kept by `journal.rs`; `rounds.rs` plays the rounds;
//! `board.rs` tells everybody. Whatever else surrounds a league (screens, pages, the children of a
//! local league) comes in from outside, as an [`Around`].

pub mod about;
pub mod assignment;
pub mod board;
pub mod contact;
pub mod control;
pub mod document;
pub mod handlers;
pub mod journal;
pub mod league;
pub mod news;
pub mod notices;
pub mod queries;
pub mod registration;
pub mod results;
pub mod rounds;
pub mod settings;
pub mod standings;
pub mod start;
pub mod view;

use crate::manager::board::Board;
use crate::manager::document::Document;
use crate::manager::journal::Store;
use crate::manager::league::{Event, League};
use crate::manager::rounds::Rounds;
use crate::manager::settings::{awaited, lead, operator_file, operator_token, rules};
use crate::manager::view::{Heading, LeagueView};
use crate::net::agent::Agent;
use crate::net::bounds::start_anew;
use crate::net::http::Reply;
use crate::net::log::Level;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::server::FAREWELL;
use crate::program::terminal::{Terminal, shown};
use crate::program::{Program, server};
use crate::protocol::{Kind, LeagueStatus};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How often the manager asks, before the start, whether what is around it has failed.
const LOOK: Duration = Duration::from_secs(2);
/// How long those that do not answer are asked once more when the league starts.
const LAST_CALL: Duration = Duration::from_secs(3);
/// How long the manager sleeps at most while nothing happens.
const IDLE: Duration = Duration::from_secs(60);

/// What is around a manager's life: it may start, show and keep a league, and it changes nothing of
/// how the league is played. Nothing around is `()`.
pub trait Around: Send + Sync {
    /// The manager answers from now on, and its league is about to be played.
    fn begin(&self, _manager: &Arc<Manager>) -> Result<(), Stop> {
        Ok(())
    }

    /// Whether all agents are there that belong to this league; or why they cannot come.
    fn is_ready(&self, _manager: &Manager) -> Result<bool, Stop> {
        Ok(true)
    }

    /// Who meets whom, by round, if not everybody meets everybody.
    fn pairings(&self, _players: &[String]) -> Option<Vec<Vec<[String; 2]>>> {
        None
    }

    /// What a browser at `peer` is shown at a path, with what stands behind its question mark.
    fn page(&self, _manager: &Manager, _path: &str, _query: &str, _peer: IpAddr) -> Option<Reply> {
        None
    }

    /// Somebody was turned away who should perhaps hear of it from a person.
    fn turned_away(&self, _words: &str) {}

    /// All matches are played, and everybody has been told. The league is not closed yet: what must
    /// not be lost if the manager dies is kept now, since nobody resumes a closed league.
    fn keep(&self, _manager: &Manager) {}

    /// The league is closed.
    fn ended(&self, _manager: &Manager) {}
}

impl Around for () {}

/// A league manager.
pub struct Manager {
    /// What every program is made of.
    pub program: Program,
    /// The league and its journal.
    pub store: Arc<Store>,
    /// Who is told what.
    pub board: Arc<Board>,
    document: Document,
    /// What a person sees.
    pub terminal: Terminal,
    /// So many players and referees start the league.
    awaited: Option<(u32, u32)>,
    /// What makes the league repeatable.
    pub seed: Option<u64>,
    /// Between a round's announcement and its matches.
    pub lead: Duration,
    operator_token: String,
    around: Arc<dyn Around>,
}

/// Runs the program: a league from where its journal stands to its end.
pub fn run(args: Args, around: Arc<dyn Around>) -> Result<(), Stop> {
    let program = Program::new(args, Kind::Manager)?;
    let manager = Arc::new(Manager::new(program, around)?);
    let end = manager.live();
    manager.program.note_end(&end);
    end
}

impl Manager {
    fn new(program: Program, around: Arc<dyn Around>) -> Result<Manager, Stop> {
        let client = &program.client;
        let awaited = awaited(&program)?;
        let lead = lead(&program)?;
        let rules = rules(&program, awaited.map(|(players, _)| players))?;
        client.sign_as(&signature(&program.config), program.league_id());
        let is_fresh = program.args.has("--fresh");
        let store = Arc::new(Store::find(&program.data, rules, is_fresh)?);
        let log_file = format!("league/{}/league.log.jsonl", program.league_id());
        client.log.open("league_manager", &log_file);
        let seed = program.seed.or(store.read(|league| league.seed));
        let board = Board::new(&store, &program);
        Ok(Manager {
            document: Document::new(heading(&program, awaited)),
            store,
            board,
            terminal: Terminal {
                quiet: program.args.has("--quiet"),
            },
            awaited,
            seed,
            lead,
            operator_token: operator_token(&program)?,
            around,
            program,
        })
    }

    /// Answers, plays the league to its end, and tells everybody.
    fn live(self: &Arc<Self>) -> Result<(), Stop> {
        let limit = self.program.config.max_message_bytes();
        let visitors = server::serve(&self.program, Arc::clone(self) as Arc<dyn Agent>, limit)?;
        self.resume();
        self.around.begin(self)?;
        self.wait_for_start()?;
        Rounds::new(self).play();
        self.say_farewell()?;
        self.around.ended(self);
        if self.program.args.has("--stay") {
            self.stay();
        }
        visitors.wait_until_empty(FAREWELL); // their answers are out
        if self.store.read(goes_on) {
            let log = self.program.log();
            log.orchestrator(Level::Info, "ended", "a new one takes its place");
            return Err(start_anew(self.program.port).into());
        }
        Ok(())
    }

    /// Logs that a league begins, or says that an unfinished one goes on.
    fn resume(&self) {
        let log = self.program.log();
        if self.store.read(|league| league.changes == 0) {
            log.orchestrator(Level::Info, "league_begun", "nobody has registered yet");
        } else {
            let words =
                "an unfinished league was found: it goes on (--fresh sets it aside instead)";
            log.orchestrator(Level::Info, "resumed", words);
            self.terminal.say(words);
        }
        if self.program.args.word != Some("local") {
            let file = operator_file(&self.program);
            let words = format!("operator token in {}", file.display());
            self.terminal.say(&words);
        }
    }

    /// Waits until the league has started, and until everybody is there who belongs to it. With
    /// `--players` the league starts when as many have registered.
    fn wait_for_start(&self) -> Result<(), Stop> {
        let changes = |league: &League| (league.changes, self.board.changes());
        let mut said = None;
        loop {
            let before = self.store.read(changes); // what comes while we look must not be missed
            self.board.post();
            if let Some((players, referees)) = self.awaited {
                // a full disk is tried again with the next look
                let unwritable = self.start(players, referees).err().map(|it| it.to_string());
                if let Some(why) = unwritable.as_ref().filter(|_| unwritable != said) {
                    self.say(Level::Error, "fault", why);
                }
                said = unwritable;
            }
            let is_ready = self.around.is_ready(self)?;
            if is_ready && self.store.read(|league| league.started) {
                break;
            }
            self.store.wait(LOOK, |league| changes(league) != before);
        }
        self.warn_of_matches_per_round();
        self.warn_of_the_silent();
        Ok(())
    }

    fn warn_of_matches_per_round(&self) {
        let players = self.store.read(|league| league.members(Kind::Player).len());
        let says = self.program.config.league.scheduling.matches_per_round;
        if says as usize != players / 2 {
            let follows = format!("{players} players make {}", players / 2);
            let words = format!("scheduling.matches_per_round says {says}, but {follows}");
            self.program
                .log()
                .say(Level::Warning, "configuration", words);
        }
    }

    /// Names those that have registered and do not answer, asked once more.
    fn warn_of_the_silent(&self) {
        let trouble = |id: &String| self.board.contact(id).trouble;
        let mut silent = self.ids();
        silent.retain(|id| trouble(id).is_some());
        silent.iter().for_each(|id| self.board.ask_again(id));
        let is_asked = |id: &String| self.board.contact(id).called.is_none();
        self.store.wait(LAST_CALL, |_| !silent.iter().any(is_asked));
        for id in &silent {
            if let Some(why) = trouble(id) {
                let meanwhile = "until it answers, it loses its matches";
                let words = format!("{id} has registered, but {why}; {meanwhile}");
                self.say(Level::Warning, "unreachable", &words);
            }
        }
    }

    /// Waits until everybody has been told that the league is over, and closes it.
    fn say_farewell(&self) -> io::Result<()> {
        let limit = self.program.config.generic_limit();
        let longest = self.program.config.system.retry_policy.longest(limit) + limit;
        let is_told = |league: &League| self.board.has_told_the_end(league);
        if !self.store.wait(longest, is_told) {
            let words = "not everybody could be told that the league is over";
            self.program.log().say(Level::Warning, "farewell", words);
        }
        self.around.keep(self);
        self.close()
    }

    /// Ends the league, with the results that there are.
    pub fn close(&self) -> io::Result<()> {
        let close = |league: &League| (!league.closed).then_some(Event::Closed);
        self.store.decide(close).map(drop)
    }

    /// Serves on, until the operator wants a new lobby, or a match played again.
    fn stay(&self) {
        let until = "until the word `again` opens a new lobby";
        let words = format!("the league is over; still serving (--stay) {until}");
        self.terminal.say(&words);
        while !self.store.wait(IDLE, goes_on) {}
    }

    /// Starts the league, if it has so many players and referees, lacks nothing, and has not
    /// started.
    fn start(&self, players: u32, referees: u32) -> io::Result<()> {
        let started = self.store.decide(|league| {
            let has = |kind, wanted| league.members(kind).len() as u32 >= wanted;
            if !has(Kind::Player, players) || !has(Kind::Referee, referees) {
                return None;
            }
            let chosen = self.around.pairings(&league.ids(Kind::Player));
            let rounds = chosen.unwrap_or_else(|| league.pairings());
            league.start(self.seed, rounds)
        });
        started.map(drop)
    }

    /// The state of the league in short.
    pub fn status(&self) -> LeagueStatus {
        let reason = self.board.heard(|heard| heard.waiting.reason.clone());
        self.store.read(|league| league.status(reason))
    }

    /// The public state of the league.
    pub fn view(&self) -> Arc<LeagueView> {
        let newest = |league: &League| {
            self.board
                .heard(|heard| self.document.newest(league, heard))
        };
        self.store.read(newest)
    }

    /// Says something on the screen and in the log.
    pub fn say(&self, level: Level, event_type: &str, words: &str) {
        self.program.log().say(level, event_type, words);
        self.terminal.say(&shown(words));
    }

    /// The ids of all members.
    pub fn ids(&self) -> Vec<String> {
        self.store
            .read(|league| league.members.keys().cloned().collect())
    }
}

/// Whether the operator has opened a closed league again, or a new lobby: the program begins anew,
/// and finds in the journal what is to be done.
fn goes_on(league: &League) -> bool {
    league.again || !league.closed
}

/// How the manager signs: with its id, where the agents configuration gives it one.
fn signature(config: &Config) -> String {
    match &config.agents.league_manager.agent_id {
        Some(id) => format!("league_manager:{}", id.0),
        None => "league_manager".into(),
    }
}

/// What the public document says of the league beside its state.
fn heading(program: &Program, awaited: Option<(u32, u32)>) -> Heading {
    let config = &program.config;
    let (players_awaited, referees_awaited) = awaited.unzip();
    Heading {
        display_name: config.league.display_name.clone(),
        name: program.args.text("--name").map(String::from),
        game: game_name(config),
        game_type: config.league.game_type.clone(),
        register_at: program.endpoint.clone(),
        scoring: config.league.scoring.clone(),
        local: program.args.word == Some("local"),
        players_awaited,
        referees_awaited,
    }
}

/// The name of the game, as the registry has it.
fn game_name(config: &Config) -> String {
    let game_type = &config.league.game_type;
    let mut games = config.games.games.iter();
    let game = games.find(|game| game.game_type == *game_type);
    game.map_or(game_type.clone(), |game| game.display_name.clone())
}
