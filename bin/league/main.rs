//! The tool `league`: it plays, operates, examines and shows leagues. It is a crate of its own, which
//! sees only what the library declares `pub`; the three programs do not know it.
//!
//! Each command is a file with its usage text on top. This file chooses the command and takes its
//! operands, which stand before the options.

mod by_hand;
mod check;
mod children;
mod class;
mod columns;
mod comparison;
mod csv;
mod document;
mod figures;
mod files;
mod groups;
mod hooks;
mod local;
mod luck;
mod operator;
mod pages;
mod play;
mod report;
mod screen;
mod season;
mod site;
mod statistics;
mod strategies;
mod trace;
mod verify;
mod view;
mod worth;

use league::json::is_one_typo_apart;
use league::program::args::{Exit, Usage, exit_code, process_arguments};
use std::process::ExitCode;

/// The usage of each command, in the order of `league --help`.
const COMMANDS: [Usage; 16] = [
    local::USAGE,
    class::USAGE,
    class::SERVE_USAGE,
    play::USAGE,
    operator::START_USAGE,
    operator::STATUS_USAGE,
    operator::PAUSE_USAGE,
    operator::RESUME_USAGE,
    operator::REMOVE_USAGE,
    operator::RESTORE_USAGE,
    operator::NEW_LOBBY_USAGE,
    check::USAGE,
    trace::USAGE,
    verify::USAGE,
    groups::USAGE,
    season::USAGE,
];

fn main() -> ExitCode {
    exit_code("league", process_arguments().and_then(run))
}

fn run(arguments: Vec<String>) -> Result<(), Exit> {
    let (command, arguments) = match arguments.split_first() {
        Some((first, rest)) => (first.as_str(), rest),
        None => return Err(Exit::usage("name a command; league --help lists them")),
    };
    let usage = find_usage(command)?;

    let is_option = |argument: &String| argument.starts_with("--");
    let first_option = arguments.iter().position(is_option);
    let (operands, options) = arguments.split_at(first_option.unwrap_or(arguments.len()));
    let args = usage.parse(options.to_vec())?;
    check_operands(&usage, operands)?;

    match command {
        "local" => local::run(args),
        "class" => class::run(args),
        "serve" => class::run_serve(args),
        "play" => play::run(args, &operands[0]),
        "check" => check::run(args),
        "trace" => trace::run(&args, &operands[0]),
        "verify" => verify::run(&args),
        "groups" => groups::run(&args),
        "season" => season::run(&args, operands),
        _ => operator::run(&args, command, operands.first().map(String::as_str)),
    }
}

/// Returns the word of a command: its usage is that of `league WORD`.
fn word(usage: &Usage) -> &'static str {
    usage.name.trim_start_matches("league ")
}

/// Returns the usage of a command, or the error for an unknown one. `--help` and `--version` end the
/// program, too.
fn find_usage(command: &str) -> Result<Usage, Exit> {
    let message = match command {
        "--help" => help(),
        "--version" => format!("league {}", env!("CARGO_PKG_VERSION")),
        _ => {
            let mut commands = COMMANDS.into_iter();
            let found = commands.find(|usage| word(usage) == command);
            return found.ok_or_else(|| unknown(command));
        }
    };
    Err(Exit { code: 0, message })
}

fn unknown(command: &str) -> Exit {
    let mut words = COMMANDS.iter().map(word);
    let hint = match words.find(|known| is_one_typo_apart(command, known)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "league --help lists all".into(),
    };
    Exit::usage(format!("unknown command: {command}; {hint}"))
}

/// Returns an error unless a command has the operands that its usage names.
fn check_operands(usage: &Usage, operands: &[String]) -> Result<(), Exit> {
    let (name, arguments) = (usage.name, usage.arguments);
    let is_wrong = match arguments.split(' ').next() {
        Some("[OPTIONS]") => !operands.is_empty(),
        Some("[DIR…]") => false,
        _ => operands.len() != 1,
    };
    if is_wrong {
        let words = operands.join(" ");
        let problem = format!("got {words:?}, expected {name} {arguments}; {name} --help explains");
        return Err(Exit::usage(problem));
    }
    Ok(())
}

fn help() -> String {
    let mut text = "Plays, operates, examines and shows leagues of the AI Agent League.\n\n\
        usage: league COMMAND [OPTIONS]; league COMMAND --help lists the options\n\ncommands:\n"
        .to_string();
    for usage in &COMMANDS {
        let arguments = usage.arguments.trim_end_matches("[OPTIONS]");
        let command = format!("{} {arguments}", word(usage));
        text += &format!("  {command:<16} {}\n", usage.about);
    }
    text.trim_end().into()
}

#[cfg(test)]
#[path = "../../tests/tools/main.rs"]
mod tests;
