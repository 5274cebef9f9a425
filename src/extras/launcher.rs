//! The launcher: the words `start` and `status` for a manager that runs elsewhere, and the children of a local league:
//! referees and players as processes, which end when their standard input closes. So none is left behind, however this
//! program ends.

use crate::extras::practice::{self, Seat};
use crate::net::client::{About, Client, Peer, conversation};
use crate::net::retry::{CallError, pause};
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::storage;
use crate::program::terminal::{say, shown};
use crate::program::{self, Program, id_option};
use crate::protocol::*;
use crate::wire::{Endpoint, Wire};
use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How often it is looked whether the children have ended.
const LOOK: Duration = Duration::from_millis(2);
/// What the players of a local league play, in turn.
const STRATEGIES: [&str; 7] = [
    "random",
    "even",
    "odd",
    "alternate",
    "contrary",
    "frequency",
    "pattern",
];
/// So many of them do not learn: a single league gives them nothing to learn from.
const UNLEARNED: usize = 5;

/// The players of a local league: the strategies in turn; in a practice, after those of the command line.
pub fn seats(args: &Args, players: usize) -> Result<Vec<Seat>, Stop> {
    if practice::cycles(args)?.is_some() {
        return Ok(practice::seats(&practice::mine(args), &STRATEGIES, players));
    }
    Ok(STRATEGIES[..UNLEARNED]
        .iter()
        .cycle()
        .take(players)
        .map(|name| Seat::example(name, None))
        .collect())
}

/// The children of a local league. Their standard inputs close when we end.
pub struct Children(Vec<(String, Child)>);

impl Children {
    /// Starts so many referees, and the players, for the manager that `program` is. They get its folders and the seed.
    pub fn start(
        program: &Program,
        seed: Option<u64>,
        referees: usize,
        players: &[Seat],
    ) -> io::Result<Children> {
        let referee = Seat {
            command: vec!["referee".into()],
            is_beside: true,
            name: None,
        };
        let referees = (1..=referees).map(|n| (Kind::Referee, n as u32, &referee));
        let players = (1..).zip(players).map(|(n, seat)| (Kind::Player, n, seat));
        let start = |(kind, n, seat): (Kind, u32, &Seat)| {
            let id = kind.numbered(n);
            let mut command = command(program, kind, seat, &id, seed)?;
            let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
            let child =
                started.map_err(|error| storage::named(Path::new(command.get_program()), error))?;
            Ok((format!("{kind} {id}"), child))
        };
        referees
            .chain(players)
            .map(start)
            .collect::<io::Result<_>>()
            .map(Children)
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
    let mut command = Command::new(if seat.is_beside {
        beside_us(name)?
    } else {
        name.into()
    });
    command.args(seat.command.iter().skip(1));
    command.args([
        id_option(kind),
        id,
        "--manager",
        &program.endpoint,
        "--until-stdin-closes",
        "--any-port",
    ]);
    for shared in ["--config", "--data", "--logs", "--league-id"] {
        if let Some(value) = program.args.text(shared) {
            command.args([shared, value]);
        }
    }
    let listed = program.config.listed().any(|(_, listed)| listed.id() == id);
    let called = if kind == Kind::Referee {
        "Referee"
    } else {
        "Agent"
    };
    if let Some(name) = seat
        .name
        .clone()
        .or((!listed).then(|| format!("{called} {id}")))
    {
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

fn beside_us(program: &str) -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?
        .with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}

/// What `start` and `status` need: the configuration, where the manager is, and a client.
fn caller(args: &Args) -> Result<(Config, String, Client), Stop> {
    let config = program::load(args)?;
    let manager = program::manager(args, &config).to_string();
    let client = Client::new(
        "launcher",
        config.generic_limit(),
        program::log(args, "launcher"),
    );
    client.sign_as("launcher", &config.league.league_id);
    Ok((config, manager, client))
}

/// Sends START_LEAGUE to a running manager.
pub fn start(args: &Args) -> Result<(), Stop> {
    let status = order(args, |league_id| StartLeague { league_id }.into())?;
    if status.status == Progress::Waiting {
        Err(Stop::failed("the league has not started"))
    } else {
        Ok(())
    }
}

/// Sends LEAGUE_CONTROL with the word, and what stands behind it, to a running manager.
pub fn control(args: &Args) -> Result<(), Stop> {
    let word = args.word.unwrap_or_default();
    let action = Action::read(&word.into()).map_err(|fault| Stop::usage(fault.to_string()))?;
    let named = args.operand.as_ref().map(|id| id.to_uppercase());
    let (player_id, match_id) = if action == Action::Replay {
        (None, named)
    } else {
        (named, None)
    };
    order(args, |league_id| {
        LeagueControl {
            league_id,
            action,
            player_id,
            match_id,
        }
        .into()
    })
    .map(drop)
}

/// Sends what the operator wants to a running manager, and shows the status that it answers.
fn order(args: &Args, message: impl FnOnce(String) -> Message) -> Result<LeagueStatus, Stop> {
    let (config, manager, client) = caller(args)?;
    let auth_token = program::operator_token(args)?;
    let words = args.word.unwrap_or_default();
    let about = About {
        conversation_id: conversation(&format!("{words}-league")),
        auth_token,
        ..About::default()
    };
    let message = message(config.league.league_id.clone());
    match client.ask(
        &Peer::manager(&manager),
        &message,
        &about,
        config.generic_limit(),
    ) {
        Ok(Message::LeagueStatus(status)) => {
            print_status(&status);
            Ok(status)
        }
        Ok(Message::LeagueError(error)) => Err(Stop::failed(error.explain())),
        Ok(other) => Err(Stop::failed(format!(
            "the manager at {manager} answered with {}",
            other.name()
        ))),
        Err(error) => Err(no_answer(&manager, &error)),
    }
}

/// Asks a running manager how far its league has come.
pub fn status(args: &Args) -> Result<(), Stop> {
    let (config, manager, client) = caller(args)?;
    let endpoint = Endpoint::parse(&manager)
        .map_err(|legal| Stop::usage(format!("--manager: expected {legal}")))?;
    let health = client.get(&endpoint, "/health", config.generic_limit());
    let health = health.map_err(|error| no_answer(&manager, &error))?;
    let status = LeagueStatus::read(&health).map_err(|fault| {
        Stop::failed(format!(
            "the answer of the league manager at {manager} is no status: {fault}"
        ))
    })?;
    print_status(&status);
    Ok(())
}

fn no_answer(manager: &str, error: &CallError) -> Stop {
    let what = error.explain();
    Stop::failed(format!(
        "the league manager at {manager} {what}; start one, or name it with --manager URL"
    ))
}

fn print_status(status: &LeagueStatus) {
    say(&format!("league   {}", shown(&status.league_id)));
    say(&format!("status   {}", status.status));
    say(&format!(
        "round    {} of {}",
        status.current_round, status.total_rounds
    ));
    say(&format!("matches  {} completed", status.matches_completed));
    if let Some(reason) = &status.reason {
        say(&format!("reason   {}", shown(reason)));
    }
}
