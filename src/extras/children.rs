//! The children of a local league: referees and players as processes, which end when their standard input closes. So
//! none is left behind, however the manager ends.

use crate::extras::groups::Entrant;
use crate::extras::practice::{self, Seat};
use crate::extras::strategies;
use crate::manager::Manager;
use crate::manager::journal;
use crate::net::retry::pause;
use crate::program::args::{Args, Stop};
use crate::program::card::{self, Card};
use crate::program::server::FAREWELL;
use crate::program::storage;
use crate::program::{self, Program, id_option};
use crate::protocol::Kind;
use crate::wire::Endpoint;
use std::env::{consts::EXE_SUFFIX, current_exe};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often it is looked whether the children have ended.
const LOOK: Duration = Duration::from_millis(2);
/// How many referees a class has: each plays several matches at once.
const CLASS_REFEREES: usize = 4;
/// So many of a game's strategies play a single league, in turn: the others learn, and it gives them nothing to learn from.
const UNLEARNED: usize = 5;
/// So few rivals make no comparison.
const FEWEST_RIVALS: usize = 2;

/// Says on the command line what a local league does not have to be told: how many play, and that there is no lead.
pub fn fill_in(args: &mut Args, entrants: &[Entrant]) -> Result<(), Stop> {
    let alone = |args: &Args, says: &str, others: &[&str]| {
        let words = format!("{says}: it needs no {}", others.join(", "));
        match others.iter().any(|other| args.has(other)) {
            true => Err(Stop::usage(words)),
            false => Ok(()),
        }
    };
    if args.has("--entrants") {
        let others = ["--players", "--mine", "--new", "--cycles"];
        alone(args, "--entrants FILE says who plays", &others)?;
        args.set("--players", &entrants.len().to_string());
    }
    if args.has("--new") {
        let others = ["--mine", "--cycles", "--players"];
        alone(
            args,
            "--new NEW --old OLD plays until it is decided",
            &others,
        )?;
        let rivals = strategies::names(&program::load(args)?.league.game_type).len();
        args.set("--players", &(2 + rivals.max(FEWEST_RIVALS)).to_string());
    }
    let mine = practice::mine(args).len();
    if let Some(players) = args.number::<usize>("--players")?
        && players < mine
    {
        let words = format!("--players: got {players}, expected at least the {mine} of --mine");
        return Err(Stop::usage(words));
    }
    let players = 4.max(mine + 1);
    for (option, value) in [("--players", players), ("--referees", 2), ("--lead-sec", 0)] {
        if !args.has(option) {
            args.set(option, &value.to_string());
        }
    }
    Ok(())
}

/// The players of a local league: its entrants, if they are named; else the strategies of its game in turn; in a
/// practice, after those of the command line.
fn seats(program: &Program, players: usize, entrants: &[Entrant]) -> Result<Vec<Seat>, Stop> {
    let finished = strategies::names(&program.config.league.game_type);
    let args = &program.args;
    if !entrants.is_empty() {
        let here = entrants.iter().filter(|entrant| !entrant.is_elsewhere());
        let seat = |entrant: &Entrant| Seat {
            name: Some(entrant.name.clone()),
            ..Seat::of(&entrant.command, &finished)
        };
        return Ok(here.map(seat).collect());
    }
    let mine = match (args.text("--new"), practice::cycles(args)?) {
        (Some(new), _) => vec![new, args.text("--old").unwrap_or("random")],
        (None, Some(_)) => practice::mine(args),
        (None, None) => {
            let names = finished.iter().take(UNLEARNED).cycle().take(players);
            return Ok(names.map(|name| Seat::example(name, None)).collect());
        }
    };
    Ok(practice::seats(&mine, &finished, players))
}

/// The children of a local league. Their standard inputs close when we end.
pub struct Children(Vec<(String, Child)>);

impl Children {
    /// Starts the referees and the players of a local league. `before` is the journal that lay in its folder.
    pub fn of_local_league(
        manager: &Manager,
        entrants: &[Entrant],
        before: &str,
    ) -> Result<Children, Stop> {
        let (players, referees) = manager.awaited.unwrap_or_default();
        let seats = seats(&manager.program, players, entrants)?;
        // Players of other machines come by themselves and take the lowest ids, so ours have the last.
        let others = players.saturating_sub(seats.len()) as u32;
        Children::start(manager, referees, (1 + others..).zip(seats), before)
    }

    /// Starts the referees of a class. Those of an interrupted league come back where they were: a referee that took
    /// the port of another could not be told from it.
    pub fn of_class(manager: &Manager) -> Result<Children, Stop> {
        let program = &manager.program;
        let referees = program.args.number("--referees")?;
        let folder = journal::folder(&program.data, program.league_id());
        let before = fs::read_to_string(folder.join("journal.jsonl"))?;
        Children::start(manager, referees.unwrap_or(CLASS_REFEREES), [], &before)
    }

    /// Starts agents for a manager, players with the numbers of their ids.
    fn start(
        manager: &Manager,
        referees: usize,
        players: impl IntoIterator<Item = (u32, Seat)>,
        before: &str,
    ) -> Result<Children, Stop> {
        let referee = Seat {
            command: vec!["referee".into()],
            name: None,
        };
        let referees = (1..=referees as u32).map(|n| (Kind::Referee, n, referee.clone()));
        let players = players.into_iter();
        let players = players.map(|(n, seat)| (Kind::Player, n, seat));
        let mut children = Vec::new();
        for (kind, n, seat) in referees.chain(players) {
            let id = kind.numbered(n);
            let port = take_along(&manager.program, &id, before)?;
            let mut command = command(manager, kind, &seat, &id, port);
            let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
            let child = started.map_err(|error| {
                let error = storage::named(Path::new(command.get_program()), error);
                Stop::failed(format!("cannot start the other programs: {error}"))
            })?;
            children.push((format!("{kind} {id}"), child));
        }
        Ok(Children(children))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The name of a child that has failed. One that was killed has not: it is lost, as it would be elsewhere.
    pub fn failed(&mut self) -> Option<String> {
        self.0.iter_mut().find_map(|(name, child)| {
            let code = child.try_wait().ok()??.code()?;
            (code != 0).then(|| name.clone())
        })
    }

    /// Waits until all have ended by themselves, at most so long; whoever is left ends with our end.
    pub fn wait(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        let is_running = |(_, child): &mut (String, Child)| matches!(child.try_wait(), Ok(None));
        while self.0.iter_mut().any(is_running) && Instant::now() < until {
            pause(LOOK);
        }
    }
}

/// Lets an agent of an earlier run follow its manager, which may have another address now; gives back the port that
/// the agent had. The card is of that run, and no stranger's, if the journal of that run knows its token or its key.
fn take_along(program: &Program, id: &str, before: &str) -> Result<Option<u16>, Stop> {
    let is_known = |secret: &String| !secret.is_empty() && before.contains(&**secret);
    let card: Option<Card> = storage::read_json(&card::file(&program.data, id));
    let card = card.filter(|card| is_known(&card.token) || is_known(&card.registration_key));
    let Some(mut card) = card else {
        return Ok(None);
    };
    let until = Instant::now() + FAREWELL;
    while card::lock(&program.data, id).is_err() && Instant::now() < until {
        pause(LOOK); // a child of that run is still ending
    }
    card.manager = from_here(program);
    card.keep(&program.data)?;
    let endpoint = Endpoint::parse(&card.endpoint);
    Ok(endpoint.ok().map(|endpoint| endpoint.port))
}

/// A program, as the agent of that id. Who has no name and is not listed is named after its id; a port that is not free
/// is another's, and any free one will do.
fn command(manager: &Manager, kind: Kind, seat: &Seat, id: &str, old_port: Option<u16>) -> Command {
    let program = &manager.program;
    let name = seat.command.first().map_or("", String::as_str);
    let mut command = Command::new(beside_us(name).unwrap_or(name.into()));
    command.args(seat.command.iter().skip(1));
    command.args([id_option(kind), id, "--manager", &from_here(program)]);
    command.args(["--until-stdin-closes", "--any-port"]);
    for shared in ["--config", "--data", "--logs", "--league-id"] {
        if let Some(value) = program.args.text(shared) {
            command.args([shared, value]);
        }
    }
    let is_listed = program.config.listed().any(|(_, listed)| listed.id() == id);
    let by_id = || match kind {
        Kind::Referee => format!("Referee {id}"),
        _ => format!("Agent {id}"),
    };
    if let Some(name) = seat.name.clone().or_else(|| (!is_listed).then(by_id)) {
        command.args(["--display-name", &name]);
    }
    let any = program.args.has("--port").then_some(0); // a league beside another
    if let Some(port) = old_port.or(any) {
        command.args(["--port", &port.to_string()]);
    }
    if let Some(seed) = manager.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    command
}

/// Where a child of ours reaches the manager: one that listens on every address also listens on this one.
pub fn from_here(program: &Program) -> String {
    match program.args.text("--host") {
        Some("0.0.0.0") => format!("http://127.0.0.1:{}/mcp", program.port),
        _ => program.endpoint.clone(),
    }
}

/// The program of that name that was built beside this one, if there is one.
fn beside_us(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{EXE_SUFFIX}");
    let path = current_exe().ok()?.with_file_name(file);
    path.is_file().then_some(path)
}
