//! `league small`: a league of the programs in `bin/small`, on this machine: the manager, a
//! referee, and the players. If one of them fails, all end.

use crate::agents::installed_program;
use league::program::args::{Args, Exit, Usage};
use league::program::load_config;
use league::program::terminal::print_line;
use league::protocol::AgentKind;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

pub const USAGE: Usage = Usage {
    name: "league small",
    about: "run the small league of bin/small here",
    options: &["
  --players N                 the number of players [4]
  --help                      show this and end"],
};

/// Interval between two looks at the programs.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a small league to its end. No program of it is left behind.
pub fn run(args: Args) -> Result<(), Exit> {
    let mut programs = Vec::new();
    let played = play(&args, &mut programs);
    for program in &mut programs {
        let _ = program.kill();
    }
    played
}

fn play(args: &Args, programs: &mut Vec<Child>) -> Result<(), Exit> {
    // Start the manager. Its first line says where it listens.
    let config = load_config(args)?;
    let players = args.number("--players", 2..=99)?.unwrap_or(4);
    let mut manager = command("small_manager", &format!("--players {players}"));
    let mut manager = manager.stdout(Stdio::piped()).spawn()?;
    let output = manager.stdout.take().map(BufReader::new);
    programs.push(manager);
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
            let options = format!("--port {port} --{kind}-id {}", kind.format_id(n));
            programs.push(command(&format!("small_{kind}"), &options).spawn()?);
        }
    }
    let printer = thread::spawn(move || lines.for_each(|line| print_line(&line)));

    // Wait until the manager has ended, or any program has failed.
    while programs[0].try_wait()?.is_none() {
        for program in programs.iter_mut() {
            if program.try_wait()?.is_some_and(|end| !end.success()) {
                let problem = "a program has failed, so all end; what it said stands above";
                return Err(Exit::failure(problem));
            }
        }
        thread::sleep(CHECK_INTERVAL);
    }
    let _ = printer.join();
    Ok(())
}

/// Returns the command of a program that lies in the folder of this one.
fn command(name: &str, options: &str) -> Command {
    let mut command = Command::new(installed_program(name).unwrap_or(name.into()));
    command.args(options.split(' '));
    command
}
