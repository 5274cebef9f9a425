//! The command line. The options are read from the text that `--help` prints. Read next: `config.rs`,
//! the files.

use crate::json::{FieldError, decode, is_one_typo_apart};
use crate::program::config::check_value;
use crate::program::terminal::print_error;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// The options of every program. The last ones are for programs that start others.
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
  --stay                         do not end with the league: serve on, or wait for the next one
  --any-port                     for other programs: where the port is in use, take any
  --until-stdin-closes           for other programs: end when standard input closes";

/// The command line of a program. A line of `commands` or `options` is a name, the name of its value
/// if it has one, and behind two spaces a description.
pub struct Usage<'a> {
    /// The name of the program.
    pub name: &'a str,
    /// A description in one line.
    pub about: &'a str,
    /// The words that may stand before the options; arguments may follow them.
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

/// A command or an option.
struct MessageSpec {
    name: &'static str,
    /// The name of its value; empty if it has none.
    value: &'static str,
}

/// Reads the lines of a help text.
fn entries(help: &'static str) -> Vec<MessageSpec> {
    let mut entries = Vec::new();
    for line in help.lines() {
        if let Some((left, _)) = line.trim_start().split_once("  ") {
            let (name, value) = left.split_once(' ').unwrap_or((left, ""));
            entries.push(MessageSpec { name, value });
        }
    }
    entries
}

impl Usage<'_> {
    /// Runs the program and prints why it ends.
    pub fn main(&self, run: impl FnOnce(Args) -> Result<(), Exit>) -> ExitCode {
        let Err(exit) = self.parse(std::env::args().skip(1)).and_then(run) else {
            return ExitCode::SUCCESS;
        };
        if exit.code == 0 {
            println!("{}", exit.message);
        } else if !exit.message.is_empty() {
            print_error(&format!("{}: {}", self.name, exit.message));
        }
        ExitCode::from(exit.code)
    }

    /// Reads the arguments.
    pub fn parse(&self, arguments: impl Iterator<Item = String>) -> Result<Args, Exit> {
        let commands = entries(self.commands);
        let mut options: Vec<MessageSpec> =
            self.options.iter().flat_map(|help| entries(help)).collect();
        options.extend(entries(COMMON));

        let mut args = Args::default();
        let mut arguments = arguments.peekable();
        let mut max_operands = 0;
        let first = arguments.peek().cloned().unwrap_or_default();
        let command = commands.iter().find(|entry| entry.name == first);
        if let Some(command) = command {
            args.command = Some(command.name);
            arguments.next();
            max_operands = match command.value {
                "" => 0,
                value if value.ends_with('…') => usize::MAX,
                _ => 1,
            };
        }

        while let Some(argument) = arguments.next() {
            if !argument.starts_with("--") && args.operands.len() < max_operands {
                args.operands.push(argument);
                continue;
            }
            let (name, joined) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (&*argument, None),
            };
            let Some(option) = options.iter().find(|entry| entry.name == name) else {
                return Err(self.unknown(name, [commands, options]));
            };
            let value = match (option.value, joined) {
                ("", None) => String::new(),
                ("", Some(value)) => return Err(self.unknown(&value, [commands, options])),
                (_, Some(value)) => value,
                (_, None) => {
                    let next = arguments.next_if(|next| !next.starts_with("--"));
                    next.ok_or_else(|| missing_value(option))?
                }
            };
            args.options.entry(option.name).or_default().push(value);
        }

        if args.has("--help") {
            return Err(Exit {
                code: 0,
                message: self.help(),
            });
        }
        if args.has("--version") {
            let message = format!("{} {}", self.name, env!("CARGO_PKG_VERSION"));
            return Err(Exit { code: 0, message });
        }
        if max_operands == 1
            && args.operands.is_empty()
            && let Some(command) = command
        {
            return Err(missing_value(command));
        }
        Ok(args)
    }

    /// Returns the error for an unknown argument, with the known one that was perhaps meant.
    fn unknown(&self, name: &str, known: [Vec<MessageSpec>; 2]) -> Exit {
        let mut known = known.iter().flatten().map(|entry| entry.name);
        let hint = match known.find(|known| is_one_typo_apart(name, known)) {
            Some(known) => format!("did you mean {known}?"),
            None => format!("{} --help lists all", self.name),
        };
        Exit::usage(format!("unknown argument {name:?}; {hint}"))
    }

    fn help(&self) -> String {
        let mut text = format!("{}\n\nusage: {} [OPTIONS]\n", self.about, self.name);
        if !self.commands.is_empty() {
            text += &format!("\ncommands:{}\n", self.commands);
        }
        let codes =
            "0 done, 1 failed in its work, 2 wrong use or configuration, or the port is in use";
        text + &format!(
            "\noptions:{}{COMMON}\n\nexit codes: {codes}",
            self.options.concat()
        )
    }
}

fn missing_value(entry: &MessageSpec) -> Exit {
    Exit::usage(format!(
        "{0} needs a value: {0} {1}",
        entry.name, entry.value
    ))
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

    /// Returns the value of an option as a text or a number of a type that checks it.
    pub fn value<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Exit> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        // A number may begin with zeros, like that of a group.
        let number = match text.parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) => serde_json::from_str(text).unwrap_or(Value::Null),
        };
        let value = parse_value(name, &text.into());
        let value = value.or_else(|error| parse_value(name, &number).map_err(|_| error));
        let value = value.map_err(|error| Exit::usage(format!("{name}: {error}")))?;
        Ok(Some(value))
    }
}

/// Checks and decodes the value of an option, as if it stood in a file.
fn parse_value<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, FieldError> {
    let key = name.trim_start_matches('-').replace('-', "_");
    check_value(&key, value)?;
    decode(value)
}
