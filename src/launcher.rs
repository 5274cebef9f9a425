//! The launcher (001 §4): the words `start` and `status` for a manager that runs elsewhere, and a local league:
//! referees and players as child processes, which end when their standard input closes. So none
//! is left behind, however this program ends.

use crate::{
    base::{self, Base},
    config::Config,
    endpoint::Endpoint,
    failure::Failure,
    options::{Options, Stop},
    protocol::*,
    screen::shown,
    strategies,
    threads::spawn,
    voice::{self, About, Peer, Voice},
    wire::Wire,
};
use std::{
    io,
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    time::{Duration, Instant},
};

/// The children of a local league.
pub struct Children {
    stdins: Vec<ChildStdin>,
    ended: Receiver<Ended>,
    count: usize,
}

/// A child that has ended: its name, and whether it failed.
struct Ended {
    /// `player P01`.
    name: String,
    /// Its exit code was not 0.
    failed: bool,
}

impl Children {
    /// Starts so many referees and players for the manager that stands on `base`. They get its folders and the seed.
    pub fn start(base: &Base, seed: Option<u64>, referees: usize, players: usize) -> io::Result<Children> {
        let (line, ended) = channel();
        let mut children = Children { stdins: Vec::new(), ended, count: referees + players };
        for n in 1..=referees {
            let mut referee = command(base, "referee", "Referee", &format!("REF{n:02}"), seed)?;
            children.start_one(&mut referee, format!("referee REF{n:02}"), line.clone())?;
        }
        for n in 1..=players {
            let (strategy, _) = strategies::ALL[(n - 1) % strategies::ALL.len()];
            let mut player = command(base, "player", "Agent", &format!("P{n:02}"), seed)?;
            children.start_one(player.args(["--strategy", strategy]), format!("player P{n:02}"), line.clone())?;
        }
        Ok(children)
    }

    fn start_one(&mut self, command: &mut Command, name: String, line: Sender<Ended>) -> io::Result<()> {
        let mut child: Child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        self.stdins.extend(child.stdin.take());
        spawn("child", move || {
            let failed = !child.wait().is_ok_and(|status| status.success());
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

/// One of our programs, as the agent of that id. Who is not listed is named after its id.
fn command(base: &Base, program: &str, name: &str, id: &str, seed: Option<u64>) -> io::Result<Command> {
    let mut command = Command::new(beside_us(program)?);
    command.args([&format!("--{program}-id"), id, "--manager", &base.endpoint, "--until-stdin-closes"]);
    for shared in ["--config", "--data", "--logs", "--league-id"] {
        if let Some(value) = base.options.text(shared) {
            command.args([shared, value]);
        }
    }
    if !base.config.rules.listed.iter().any(|listed| listed.id == id) {
        command.args(["--display-name", &format!("{name} {id}")]);
    }
    if base.options.has("--port") {
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

/// What `start` and `status` need: the configuration, where the manager is, and a voice.
fn caller(options: &Options) -> Result<(Config, String, Voice), Stop> {
    let config = base::load(options)?;
    let manager = base::manager(options, &config).to_string();
    let voice = Voice::new("launcher", config.strict_envelope, Vec::new(), base::log(options, "launcher"));
    voice.join("launcher", &config.rules.league_id);
    Ok((config, manager, voice))
}

/// Sends START_LEAGUE to a running manager (001 §4.1).
pub fn start(options: &Options) -> Result<(), Stop> {
    let (config, manager, voice) = caller(options)?;
    let auth_token = base::operator_token(options)?;
    let about = About { conversation_id: voice::conversation("start-league"), auth_token, ..About::default() };
    let message = StartLeague { league_id: config.rules.league_id.clone() }.into();
    match voice.ask(Peer::manager(&manager), &message, &about, config.generic_limit) {
        Ok((_, Message::LeagueStatus(status))) => {
            print_status(&status);
            let waits = status.status == Progress::Waiting;
            if waits { Err(Stop::failed("the league has not started")) } else { Ok(()) }
        }
        Ok((_, Message::LeagueError(error))) => Err(Stop::failed(error.explain())),
        Ok((_, other)) => Err(Stop::failed(format!("the manager answered with {}", other.name()))),
        Err(failure) => Err(nobody(&manager, &failure)),
    }
}

/// Asks a running manager how far its league has come.
pub fn status(options: &Options) -> Result<(), Stop> {
    let (config, manager, voice) = caller(options)?;
    let endpoint = Endpoint::parse(&manager).map_err(|legal| Stop::usage(format!("--manager: expected {legal}")))?;
    let health = voice.get(&endpoint, "/health", config.generic_limit).map_err(|failure| nobody(&manager, &failure))?;
    let status = LeagueStatus::read(&health).map_err(|fault| Stop::failed(format!("{manager}: {fault}")))?;
    print_status(&status);
    Ok(())
}

fn nobody(manager: &str, failure: &Failure) -> Stop {
    Stop::failed(format!(
        "no league manager at {manager} ({}); start one, or name it with --manager",
        failure.explain()
    ))
}

fn print_status(status: &LeagueStatus) {
    println!("league   {}", status.league_id);
    println!("status   {}", status.status);
    println!("round    {} of {}", status.current_round, status.total_rounds);
    println!("matches  {} completed", status.matches_completed);
    if let Some(reason) = &status.reason {
        println!("reason   {}", shown(reason));
    }
}
