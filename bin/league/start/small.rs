//! `league small`: a league of the programs in `bin/small`, on this machine: the manager, a
//! referee, and the players. If one of them fails, all end.

use crate::start::children::{installed_program, start_process};
use league::program::args::{Args, Exit, Usage};
use league::program::load_config;
use league::program::terminal::{print_error, print_line};
use league::protocol::AgentKind;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub const USAGE: Usage = Usage {
    name: "league small",
    about: "run the small league of bin/small here",
    options: &["
  --players N                 players [4]; each second one chooses even
  --seed N                    the same choices and numbers in every run
  --help                      show this and end"],
};

/// Interval between two looks at the programs.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time in which the agents end by themselves after the league.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A program of the league, and its name for people.
struct Program {
    name: String,
    process: Child,
}

/// Runs a small league to its end. No program of it is left behind.
pub fn run(args: Args) -> Result<(), Exit> {
    let mut programs = Vec::new();
    let played = play(&args, &mut programs);
    for program in &mut programs {
        let _ = program.process.kill();
    }
    played
}

fn play(args: &Args, programs: &mut Vec<Program>) -> Result<(), Exit> {
    // Start the manager. Its first line says where it listens.
    let config = load_config(args)?;
    let players = args.number("--players", 2..=99)?.unwrap_or(4);
    let seed = args.number("--seed", 0..=u64::MAX)?;
    let seed = seed.map_or(String::new(), |seed| format!(" --seed {seed}"));
    let mut manager = command("small_manager", &format!("--players {players}"));
    let mut process = start_process(manager.stdout(Stdio::piped()))?;
    let output = process.stdout.take().map(BufReader::new);
    let name = "the manager".to_string();
    programs.push(Program { name, process });
    let mut lines = output.into_iter().flat_map(BufRead::lines).flatten();
    let Some(line) = lines.next() else {
        return Err(Exit::usage(
            "so the small league has not begun; config/agents/agents_config.json names its port",
        ));
    };
    print_line(&format!("{line}; Ctrl-C stops all"));

    // Start the agents, and pass on what the manager prints.
    for (kind, number) in [(AgentKind::Referee, 1), (AgentKind::Player, players)] {
        for (n, port) in (1..=number).zip(config.port_range(kind)) {
            let name = kind.format_id(n);
            let mut options = format!("--port {port} --{kind}-id {name}{seed}");
            if kind == AgentKind::Player && n % 2 == 0 {
                options += " --always even";
            }
            let process = start_process(&mut command(&format!("small_{kind}"), &options))?;
            programs.push(Program { name, process });
        }
    }
    let printer = thread::spawn(move || lines.for_each(|line| print_line(&line)));

    // Wait until the manager has ended, or any program has failed.
    while programs[0].process.try_wait()?.is_none() {
        programs.iter_mut().try_for_each(check)?;
        thread::sleep(CHECK_INTERVAL);
    }
    let _ = printer.join();
    check(&mut programs[0])?;
    wait_for_agents(programs)?;
    print_line("\nThe league was played to its end.");
    Ok(())
}

/// Returns an error if a program has failed.
fn check(program: &mut Program) -> Result<(), Exit> {
    match program.process.try_wait()? {
        Some(end) if !end.success() => Err(Exit::failure(format!(
            "the league was not played to its end: {} has failed ({end}); what it said stands above",
            program.name
        ))),
        _ => Ok(()),
    }
}

/// Waits until all agents have ended by themselves. Those that do not are named.
fn wait_for_agents(programs: &mut [Program]) -> Result<(), Exit> {
    let deadline = Instant::now() + END_TIMEOUT;
    for program in programs {
        while program.process.try_wait()?.is_none() && Instant::now() < deadline {
            thread::sleep(CHECK_INTERVAL);
        }
        if program.process.try_wait()?.is_none() {
            let seconds = END_TIMEOUT.as_secs();
            let problem = format!("did not end by itself within {seconds} s, so it is killed");
            print_error(&format!("{} {problem}", program.name));
        }
    }
    Ok(())
}

/// Returns the command of a program that lies in the folder of this one.
fn command(name: &str, options: &str) -> Command {
    let mut command = Command::new(installed_program(name).unwrap_or(name.into()));
    command.args(options.split(' '));
    command
}
