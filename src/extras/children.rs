//! The children of a local league: referees and players as processes, which end when their standard input closes. So
//! none is left behind, however the manager ends.

use crate::extras::groups::Entrant;
use crate::extras::practice::{self, Seat};
use crate::extras::strategies;
use crate::manager::Manager;
use crate::net::retry::pause;
use crate::program::args::{Args, Stop};
use crate::program::card::{self, Card};
use crate::program::server::FAREWELL;
use crate::program::storage;
use crate::program::{self, Program, id_option};
use crate::protocol::Kind;
use crate::wire::Endpoint;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

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
    if args.has("--entrants") {
        if ["--players", "--mine", "--new", "--cycles"]
            .iter()
            .any(|it| args.has(it))
        {
            let words =
                "--entrants FILE says who plays: it needs no --players, --mine, --new or --cycles";
            return Err(Stop::usage(words));
        }
        args.set("--players", &entrants.len().to_string());
    }
    let mine = practice::mine(args).len();
    if args.has("--new") {
        if args.has("--mine") || args.has("--cycles") || args.has("--players") {
            let words = "--new NEW --old OLD needs no --mine, --cycles or --players: it plays until it is decided";
            return Err(Stop::usage(words));
        }
        let game_type = program::load(args)?.league.game_type;
        let rivals = strategies::names(&game_type).len().max(FEWEST_RIVALS);
        args.set("--players", &(2 + rivals).to_string());
    }
    let players: Option<usize> = args.number("--players")?;
    if players.is_some_and(|players| players < mine) {
        let least = format!("expected at least the {mine} of --mine");
        let came = players.unwrap_or_default();
        return Err(Stop::usage(format!("--players: got {came}, {least}")));
    }
    for (option, value) in [
        ("--players", 4.max(mine + 1)),
        ("--referees", 2),
        ("--lead-sec", 0),
    ] {
        if args.text(option).is_none() {
            args.set(option, &value.to_string());
        }
    }
    Ok(())
}

/// The players of a local league: its entrants, if they are named; else the strategies of its game in turn; in a
/// practice, after those of the command line.
fn seats(program: &Program, players: usize, entrants: &[Entrant]) -> Result<Vec<Seat>, Stop> {
    let finished = strategies::names(&program.config.league.game_type);
    if !entrants.is_empty() {
        let here = entrants.iter().filter(|entrant| !entrant.is_elsewhere());
        return Ok(here.map(|entrant| seat(entrant, &finished)).collect());
    }
    let args = &program.args;
    if let Some(new) = args.text("--new") {
        let old = args.text("--old").unwrap_or("random");
        return Ok(practice::seats(
            &practice::commands(&[new, old]),
            &finished,
            players,
        ));
    }
    if practice::cycles(args)?.is_some() {
        return Ok(practice::seats(&practice::mine(args), &finished, players));
    }
    let names = finished.iter().take(UNLEARNED).cycle().take(players);
    Ok(names.map(|name| Seat::example(name, None)).collect())
}

/// An entrant as a player of a local league. Its program is one beside this one, or any other.
fn seat(entrant: &Entrant, finished: &[&str]) -> Seat {
    let commands = practice::commands(&[&entrant.command]);
    let seat = practice::seats(&commands, finished, 1).swap_remove(0);
    let beside = seat.command.first().map(|program| beside_us(program));
    Seat {
        is_beside: beside.is_some_and(|path| path.is_ok_and(|path| path.is_file())),
        name: Some(entrant.name.clone()),
        ..seat
    }
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
        Children::start(manager, referees, &seats, before)
    }

    /// Starts the referees of a class. Those of an interrupted league come back where they were: a referee that took
    /// the port of another could not be told from it.
    pub fn of_class(manager: &Manager) -> Result<Children, Stop> {
        let program = &manager.program;
        let referees = program.args.number("--referees")?;
        let folder = program.data.join("leagues").join(program.league_id());
        let before = fs::read_to_string(folder.join("journal.jsonl"))?;
        Children::start(manager, referees.unwrap_or(CLASS_REFEREES), &[], &before)
    }

    /// Starts agents for a manager. They get its folders and the seed. Players of other machines come by themselves and
    /// take the lowest ids, so ours have the last.
    fn start(
        manager: &Manager,
        referees: usize,
        players: &[Seat],
        before: &str,
    ) -> Result<Children, Stop> {
        let awaited = manager.awaited.map_or(0, |(players, _)| players);
        let first = 1 + awaited.saturating_sub(players.len()) as u32;
        let referee = Seat {
            command: vec!["referee".into()],
            is_beside: true,
            name: None,
        };
        let referees = (1..=referees as u32).map(|n| (Kind::Referee, n, &referee));
        let players = (first..).zip(players);
        let players = players.map(|(n, seat)| (Kind::Player, n, seat));
        let mut children = Vec::new();
        for (kind, n, seat) in referees.chain(players) {
            let id = kind.numbered(n);
            let port = take_along(&manager.program, &id, before)?;
            let mut command = command(&manager.program, kind, seat, &id, manager.seed)?;
            if let Some(port) = port {
                command.args(["--port", &port.to_string()]);
            }
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
fn command(
    program: &Program,
    kind: Kind,
    seat: &Seat,
    id: &str,
    seed: Option<u64>,
) -> io::Result<Command> {
    let name = seat.command.first().map(String::as_str).unwrap_or_default();
    let path = match seat.is_beside {
        true => beside_us(name)?,
        false => name.into(),
    };
    let mut command = Command::new(path);
    command.args(seat.command.iter().skip(1));
    command.args([
        id_option(kind),
        id,
        "--manager",
        &from_here(program),
        "--until-stdin-closes",
        "--any-port",
    ]);
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
    let name = seat.name.clone().or_else(|| (!is_listed).then(by_id));
    if let Some(name) = name {
        command.args(["--display-name", &name]);
    }
    if program.args.has("--port") {
        command.args(["--port", "0"]); // a league beside another: any free ports
    }
    if let Some(seed) = seed {
        command.args(["--seed", &seed.to_string()]);
    }
    Ok(command)
}

/// Where a child of ours reaches the manager: one that listens on every address also listens on this one.
pub fn from_here(program: &Program) -> String {
    match program.args.text("--host") {
        Some("0.0.0.0") => format!("http://127.0.0.1:{}/mcp", program.port),
        _ => program.endpoint.clone(),
    }
}

fn beside_us(program: &str) -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?
        .with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}
