//! The commands. Each is a file with its usage text on top. This file chooses the command and takes
//! its operands, which stand before the options.

use crate::classroom::{check, operator};
use crate::compare::season;
use crate::players::play;
use crate::show::trace;
use crate::start::{class, local, new, small};
use league::json::is_similar;
use league::program::args::{Exit, Usage};

/// Returns the usage of each command, in the order of `league --help`.
fn usages() -> Vec<Usage> {
    let mut usages = vec![local::USAGE, small::USAGE, new::USAGE];
    usages.extend([class::USAGE, class::SERVE_USAGE, play::USAGE]);
    usages.extend(operator::USAGES);
    usages.extend([check::USAGE, trace::USAGE, season::USAGE]);
    usages
}

/// Runs the command that the arguments name.
pub fn run(arguments: Vec<String>) -> Result<(), Exit> {
    let Some((command, arguments)) = arguments.split_first() else {
        return Err(Exit::usage("name a command; league --help lists them"));
    };
    let usage = find_usage(command)?;

    // Part the operands from the options.
    let count = arguments
        .iter()
        .take_while(|argument| !argument.starts_with("--"))
        .count();
    let (operands, options) = arguments.split_at(count);
    let args = usage.parse(options.to_vec())?;
    check_operands(&usage, operands)?;

    match command.as_str() {
        "local" => local::run(args),
        "small" => small::run(args),
        "new" if args.has("--small") => new::copy_small_league(&operands[0]),
        "new" => new::run(&operands[0]),
        "class" => class::run(args),
        "serve" => class::run_serve(args),
        "play" => play::run(args, &operands[0]),
        "check" => check::run(args),
        "trace" => trace::run(&args, &operands[0]),
        "season" => season::run(&args, operands),
        _ => {
            let named = (!operands.is_empty()).then(|| operands.join(" "));
            operator::run(&args, command, named.as_deref())
        }
    }
}

/// Returns the usage of a command, or the error for an unknown one. `--help` and `--version` end
/// the program, too.
fn find_usage(command: &str) -> Result<Usage, Exit> {
    let message = match command {
        "--help" => help(),
        "--version" => format!("league {}", env!("CARGO_PKG_VERSION")),
        _ => {
            let found = usages().into_iter().find(|usage| word(usage) == command);
            return found.ok_or_else(|| unknown(command));
        }
    };

    Err(Exit { code: 0, message })
}

/// Returns the word of a command: its usage is that of `league WORD`.
fn word(usage: &Usage) -> &'static str {
    usage.name.split(' ').nth(1).unwrap_or_default()
}

fn unknown(command: &str) -> Exit {
    let usages = usages();
    let mut words = usages.iter().map(word);
    let hint = match words.find(|known| is_similar(command, known)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "league --help lists all".into(),
    };

    Exit::usage(format!("unknown command: {command}; {hint}"))
}

/// Returns an error unless a command has the operands that its usage names.
fn check_operands(usage: &Usage, operands: &[String]) -> Result<(), Exit> {
    let is_right = match usage.name.split(' ').nth(2) {
        None => operands.is_empty(),
        Some(several) if several.ends_with("…]") => true,
        Some(_) if usage.name.ends_with("[ADDRESS]") => matches!(operands.len(), 1 | 2),
        Some(_) => operands.len() == 1,
    };
    if is_right {
        return Ok(());
    }

    let (name, operands) = (usage.name, operands.join(" "));
    Err(Exit::usage(format!(
        "got {operands:?}, expected {name} [OPTIONS]; --help explains them"
    )))
}

fn help() -> String {
    let mut text = "Plays, operates, examines and shows leagues of the AI Agent League.\n\n\
        usage: league COMMAND [OPTIONS]; league COMMAND --help lists the options\n\ncommands:"
        .to_string();
    for usage in usages() {
        let command = usage.name.trim_start_matches("league ");
        text += &format!("\n  {command:<16} {}", usage.about);
    }

    text
}
