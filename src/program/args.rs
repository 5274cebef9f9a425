//! The command line. The options are read from the text that `--help` prints. Read next: `config.rs`,
//! the files.

use super::terminal::{print_error, print_line};
use crate::json::is_one_typo_apart;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::iter::Peekable;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::str::FromStr;
use std::vec::IntoIter;

/// The options of every program.
const COMMON: &str = "
  --help                         show this and end
  --version                      show the version and end
  --host ADDRESS                 where to listen [127.0.0.1; all, if the manager is elsewhere]
  --port N                       port to listen on; 0: any [as configured, else the first free]
  --contact-endpoint URL         where others reach this program [where the manager sees it]
  --config DIR                   configuration files [config]
  --manager URL                  where the league manager is [as listed in agents_config.json]
  --seed N                       make draws and random choices repeatable
  --data DIR                     what must survive [data]
  --logs DIR                     log files [logs]
  --league-id ID                 which league [default_league_id of system.json]
  --operator-token-file FILE     the operator token, for a manager on another machine
  --stay                         do not end with the league: serve on, or wait for the next one";

/// The options with which other programs start this one. `--help` does not show them.
const HIDDEN: &str = "
  --any-port                     take any port if the wanted one is in use
  --until-stdin-closes           end when standard input closes";

/// The command line of a program. A line of `commands` or `options` has a name, the name of its value
/// if there is one, and a description after two spaces.
pub struct Usage<'a> {
    /// The name of the program.
    pub name: &'a str,
    /// A description in one line.
    pub about: &'a str,
    /// The commands, each with its argument if it has one.
    pub commands: &'static str,
    /// The options of this program.
    pub options: &'a [&'static str],
}

/// The end of a program: its exit code, and a line for the user unless it is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    /// 0: done, 1: failed, 2: wrong use or configuration.
    pub code: u8,
    /// The reason.
    pub message: String,
}

impl Exit {
    /// Returns the exit of a program that failed in its work.
    pub fn failed(message: impl Into<String>) -> Exit {
        let message = message.into();
        Exit { code: 1, message }
    }

    /// Returns the exit after wrong use, a faulty configuration, or a port in use.
    pub fn usage(message: impl Into<String>) -> Exit {
        let message = message.into();
        Exit { code: 2, message }
    }
}

impl From<std::io::Error> for Exit {
    fn from(error: std::io::Error) -> Exit {
        Exit::failed(error.to_string())
    }
}

/// The arguments that were given.
#[derive(Debug, Clone, Default)]
pub struct Args {
    /// The command.
    pub command: Option<&'static str>,
    /// The arguments of the command.
    pub operands: Vec<String>,
    options: BTreeMap<&'static str, Vec<String>>,
}

/// A command or an option, as its line in the help text says.
struct ArgSpec {
    name: &'static str,
    /// The name of its value; empty if it has none.
    value: &'static str,
}

/// Reads the lines of a help text.
fn arg_specs(help: &'static str) -> Vec<ArgSpec> {
    let mut specs = Vec::new();

    for line in help.lines() {
        if let Some((left, _)) = line.trim_start().split_once("  ") {
            let (name, value) = left.split_once(' ').unwrap_or((left, ""));
            specs.push(ArgSpec { name, value });
        }
    }

    specs
}

/// Returns the arguments of the process, without the name of the program.
fn process_arguments() -> Result<Vec<String>, Exit> {
    let mut arguments = Vec::new();
    for argument in std::env::args_os().skip(1) {
        match argument.into_string() {
            Ok(text) => arguments.push(text),
            Err(other) => {
                let problem = format!("the argument {other:?} is not UTF-8 text");
                return Err(Exit::usage(problem));
            }
        }
    }
    Ok(arguments)
}

impl Usage<'_> {
    /// Runs the program and prints why it ends.
    pub fn main(&self, run: impl FnOnce(Args) -> Result<(), Exit>) -> ExitCode {
        let args = process_arguments().and_then(|arguments| self.parse(arguments));
        let Err(exit) = args.and_then(run) else {
            return ExitCode::SUCCESS;
        };

        if exit.code == 0 {
            print_line(&exit.message);
        } else if !exit.message.is_empty() {
            print_error(&format!("{}: {}", self.name, exit.message));
        }
        ExitCode::from(exit.code)
    }

    /// Reads the arguments.
    pub fn parse(&self, arguments: Vec<String>) -> Result<Args, Exit> {
        let mut args = Args::default();
        let mut arguments = arguments.into_iter().peekable();

        // The command, and the number of arguments that it takes.
        let mut max_operands = 0;
        let first = arguments.peek().cloned().unwrap_or_default();
        let commands = arg_specs(self.commands);
        let command = commands.iter().find(|command| command.name == first);
        if let Some(command) = command {
            arguments.next();
            args.command = Some(command.name);
            max_operands = match command.value {
                "" => 0,
                value if value.ends_with('…') => usize::MAX,
                _ => 1,
            };
        }

        // Its arguments, and the options.
        while let Some(argument) = arguments.next() {
            if !argument.starts_with("--") && args.operands.len() < max_operands {
                args.operands.push(argument);
            } else {
                self.parse_option(&argument, &mut arguments, &mut args)?;
            }
        }

        if args.has("--help") {
            let message = self.help();
            return Err(Exit { code: 0, message });
        }
        if args.has("--version") {
            let message = format!("{} {}", self.name, env!("CARGO_PKG_VERSION"));
            return Err(Exit { code: 0, message });
        }

        match command {
            Some(command) if max_operands == 1 && args.operands.is_empty() => {
                Err(missing_value(command))
            }
            _ => Ok(args),
        }
    }

    /// Reads an option with its value, if it has one: `--port 8101` or `--port=8101`.
    fn parse_option(
        &self,
        argument: &str,
        rest: &mut Peekable<IntoIter<String>>,
        args: &mut Args,
    ) -> Result<(), Exit> {
        let (name, joined) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_string())),
            None => (argument, None),
        };

        let options = self.options();
        let Some(option) = options.iter().find(|option| option.name == name) else {
            return Err(self.unknown(name));
        };

        let takes_value = !option.value.is_empty();
        let value = match joined {
            Some(value) if takes_value => value,
            Some(value) => return Err(self.unknown(&value)),
            None if takes_value => {
                let next = rest.next_if(|next| !next.starts_with("--"));
                next.ok_or_else(|| missing_value(option))?
            }
            None => String::new(),
        };

        args.options.entry(option.name).or_default().push(value);
        Ok(())
    }

    fn options(&self) -> Vec<ArgSpec> {
        let texts = self.options.iter().chain(&[COMMON, HIDDEN]);
        texts.flat_map(|help| arg_specs(help)).collect()
    }

    /// Returns the error for an unknown argument, with the known one that was perhaps meant.
    fn unknown(&self, argument: &str) -> Exit {
        let mut known = self.options();
        known.extend(arg_specs(self.commands));

        let meant = known
            .iter()
            .find(|known| is_one_typo_apart(argument, known.name));
        let hint = match meant {
            Some(meant) => format!("did you mean {}?", meant.name),
            None => format!("{} --help lists all", self.name),
        };
        Exit::usage(format!("unknown argument {argument:?}; {hint}"))
    }

    fn help(&self) -> String {
        let mut text = format!("{}\n\nusage: {} [OPTIONS]\n", self.about, self.name);
        if !self.commands.is_empty() {
            text += &format!("\ncommands:{}\n", self.commands);
        }
        text += &format!("\noptions:{}{COMMON}\n\n", self.options.concat());
        text + "exit codes: 0 done, 1 failed in its work, 2 wrong use or configuration, or the port is in use"
    }
}

fn missing_value(spec: &ArgSpec) -> Exit {
    let (name, value) = (spec.name, spec.value);
    Exit::usage(format!("{name} needs a value: {name} {value}"))
}

impl Args {
    /// Returns true if an option was given.
    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// Returns the value of an option; the last one, if it was given more than once.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// Returns all values of an option.
    pub fn all(&self, name: &str) -> &[String] {
        self.options
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Sets an option.
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.options.insert(name, vec![value.into()]);
    }

    /// Returns the value of an option as a number in a range.
    pub fn number<T: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        legal: RangeInclusive<T>,
    ) -> Result<Option<T>, Exit> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };

        match text.parse() {
            Ok(number) if legal.contains(&number) => Ok(Some(number)),
            _ => {
                let (min, max) = (legal.start(), legal.end());
                let problem = format!("{name}: got {text}, expected {min} to {max}");
                Err(Exit::usage(problem))
            }
        }
    }

    /// Returns the value of an option as a text that `check` accepts. Its error says what is legal.
    pub fn checked_text(
        &self,
        name: &str,
        check: fn(&str) -> Result<(), &'static str>,
    ) -> Result<Option<String>, Exit> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };

        check(text)
            .map_err(|legal| Exit::usage(format!("{name}: got {text}, expected {legal}")))?;
        Ok(Some(text.into()))
    }
}
