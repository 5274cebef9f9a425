//! The launcher: the words `start` and `status` for a manager that runs elsewhere, and the children of a local league:
//! referees and players as processes, which end when their standard input closes. So none is left behind, however this
//! program ends.

use crate::net::client::{About, Client, Peer, conversation};
use crate::net::retry::CallError;
use crate::net::sync::spawn;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::terminal::{say, shown};
use crate::program::{self, Program};
use crate::protocol::*;
use crate::wire::{Endpoint, Wire};
use std::{
    io,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    time::{Duration, Instant},
};

/// What the players of a local league play, in turn.
const STRATEGIES: [&str; 5] = ["random", "even", "odd", "alternate", "contrary"];

/// The children of a local league.
pub struct Children {
    stdins: Vec<ChildStdin>,
    ended: Receiver<Ended>,
    /// How many there are.
    pub count: usize,
}

/// A child that has ended: its name, and whether it failed.
struct Ended {
    /// `player P01`.
    name: String,
    /// Its exit code was not 0. A child that was killed has none: then it is lost, as it would be elsewhere.
    failed: bool,
}

impl Children {
    /// Starts so many referees and players for the manager that `program` is. They get its folders and the seed.
    pub fn start(program: &Program, seed: Option<u64>, (players, referees): (usize, usize)) -> io::Result<Children> {
        let (line, ended) = channel();
        let mut children = Children { stdins: Vec::new(), ended, count: referees + players };
        for n in 1..=referees {
            let id = Kind::Referee.numbered(n as u32);
            let mut referee = command(program, "referee", "Referee", &id, seed)?;
            children.start_one(&mut referee, format!("referee {id}"), line.clone())?;
        }
        for n in 1..=players {
            let id = Kind::Player.numbered(n as u32);
            let mut player = command(program, "player", "Agent", &id, seed)?;
            player.args(["--strategy", STRATEGIES[(n - 1) % STRATEGIES.len()]]);
            children.start_one(&mut player, format!("player {id}"), line.clone())?;
        }
        Ok(children)
    }

    fn start_one(&mut self, command: &mut Command, name: String, line: Sender<Ended>) -> io::Result<()> {
        let mut child: Child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        self.stdins.extend(child.stdin.take());
        spawn("child", move || {
            let failed = child.wait().is_ok_and(|status| status.code().is_some_and(|code| code != 0));
            let _ = line.send(Ended { name, failed });
        });
        Ok(())
    }

    /// The name of a child that has failed, if one has since the last question.
    pub fn failed(&self) -> Option<String> {
        self.ended.try_iter().find(|child| child.failed).map(|child| child.name)
    }

    /// Waits until all have ended by themselves, at most so long; whoever is left ends with our end.
    pub fn wait(&self, limit: Duration) {
        let until = Instant::now() + limit;
        for _ in 0..self.count {
            let left = until.saturating_duration_since(Instant::now());
            if self.ended.recv_timeout(left).is_err() {
                return;
            }
        }
    }
}

/// One of our programs, as the agent of that id. Who is not listed is named after its id; a port that is not free is
/// another's, and any free one will do.
fn command(program: &Program, name: &str, called: &str, id: &str, seed: Option<u64>) -> io::Result<Command> {
    let mut command = Command::new(beside_us(name)?);
    command.args([&format!("--{name}-id"), id, "--manager", &program.endpoint, "--until-stdin-closes", "--any-port"]);
    for shared in ["--config", "--data", "--logs", "--league-id"] {
        if let Some(value) = program.args.text(shared) {
            command.args([shared, value]);
        }
    }
    if !program.config.listed().any(|(_, listed, _)| listed == id) {
        command.args(["--display-name", &format!("{called} {id}")]);
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
    Ok(std::env::current_exe()?.with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}

/// What `start` and `status` need: the configuration, where the manager is, and a client.
fn caller(args: &Args) -> Result<(Config, String, Client), Stop> {
    let config = program::load(args)?;
    let manager = program::manager(args, &config).to_string();
    let client = Client::new("launcher", config.generic_limit(), program::log(args, "launcher"));
    client.sign_as("launcher", &config.league.league_id);
    Ok((config, manager, client))
}

/// Sends START_LEAGUE to a running manager.
pub fn start(args: &Args) -> Result<(), Stop> {
    let (config, manager, client) = caller(args)?;
    let auth_token = program::operator_token(args)?;
    let about = About { conversation_id: conversation("start-league"), auth_token, ..About::default() };
    let message = StartLeague { league_id: config.league.league_id.clone() }.into();
    match client.ask(&Peer::manager(&manager), &message, &about, config.generic_limit()) {
        Ok(Message::LeagueStatus(status)) => {
            print_status(&status);
            let waits = status.status == Progress::Waiting;
            if waits { Err(Stop::failed("the league has not started")) } else { Ok(()) }
        }
        Ok(Message::LeagueError(error)) => Err(Stop::failed(error.explain())),
        Ok(other) => Err(Stop::failed(format!("the manager at {manager} answered with {}", other.name()))),
        Err(error) => Err(no_answer(&manager, &error)),
    }
}

/// Asks a running manager how far its league has come.
pub fn status(args: &Args) -> Result<(), Stop> {
    let (config, manager, client) = caller(args)?;
    let endpoint = Endpoint::parse(&manager).map_err(|legal| Stop::usage(format!("--manager: expected {legal}")))?;
    let health = client.get(&endpoint, "/health", config.generic_limit());
    let health = health.map_err(|error| no_answer(&manager, &error))?;
    let status = LeagueStatus::read(&health).map_err(|fault| {
        Stop::failed(format!("the answer of the league manager at {manager} is no status: {fault}"))
    })?;
    print_status(&status);
    Ok(())
}

fn no_answer(manager: &str, error: &CallError) -> Stop {
    let what = error.explain();
    Stop::failed(format!("the league manager at {manager} {what}; start one, or name it with --manager URL"))
}

fn print_status(status: &LeagueStatus) {
    say(&format!("league   {}", shown(&status.league_id)));
    say(&format!("status   {}", status.status));
    say(&format!("round    {} of {}", status.current_round, status.total_rounds));
    say(&format!("matches  {} completed", status.matches_completed));
    if let Some(reason) = &status.reason {
        say(&format!("reason   {}", shown(reason)));
    }
}
