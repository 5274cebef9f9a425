//! The command line. The options are read from the text that `--help` prints. Read next:
//! `config.rs`, the files.

use super::terminal::{print_error, print_line};
use crate::json::is_similar;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::str::FromStr;

/// The options of every program: what it is, and the files that it uses.
pub const COMMON: &str = "
  --help                      show this and end
  --version                   show the version and end
  --config DIR                configuration files [config]
  --data DIR                  what must survive [data]
  --logs DIR                  log files [logs]
  --league-id ID              which league [default_league_id of system.json]";

/// The options of a program that answers requests.
pub const SERVER: &str = "
  --host ADDRESS              where to listen [127.0.0.1; all for a far manager]
  --port N                    port to listen on, 0: any [as configured, or free]
  --contact-endpoint URL      where others reach it [where the manager sees it]
  --seed N                    make draws and random choices repeatable";

/// The options of a program that calls a manager.
pub const CLIENT: &str = "
  --manager URL               where the manager is [as in agents_config.json]
  --operator-token-file FILE  the operator token, for another machine's manager";

/// The option of a referee or a player.
pub const STAY: &str = "
  --stay                      after the league wait for the next one";

/// The options with which another program, or the program itself, starts this one. They are not for
/// people, so `--help` leaves them out.
const FOR_PROGRAMS: &str = "
  --restarted                 wait until the port is free
  --until-stdin-closes        end when standard input closes";

/// The command line of a program. A line of `options` has a name, the name of its value if there is
/// one, and a description after two spaces.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// The name of the program, and the arguments that stand before the options.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The options.
    pub options: &'static [&'static str],
}

/// The end of a program: its exit code, and a line for the user unless it is empty.
#[derive(Debug, PartialEq)]
pub struct Exit {
    /// 0: done, 1: failed, 2: wrong use or configuration.
    pub code: u8,
    /// The reason.
    pub message: String,
}

impl Exit {
    /// Returns the exit of a program that failed in its work.
    pub fn failure(message: impl Into<String>) -> Exit {
        let message = message.into();
        Exit { code: 1, message }
    }

    /// Returns the exit after wrong use, a faulty configuration, or a port in use.
    pub fn usage(message: impl Into<String>) -> Exit {
        let message = message.into();
        Exit { code: 2, message }
    }
}

impl From<io::Error> for Exit {
    fn from(error: io::Error) -> Exit {
        let mut message = error.to_string();
        if [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem].contains(&error.kind()) {
            message += "; name folders that you may write with --data DIR and --logs DIR";
        }
        Exit::failure(message)
    }
}

/// The options that were given.
#[derive(Debug, Clone, Default)]
pub struct Args {
    options: BTreeMap<&'static str, Vec<String>>,
}

/// Prints why a program ends, and returns its exit code.
pub fn exit_code(program: &str, end: Result<(), Exit>) -> ExitCode {
    let Err(exit) = end else {
        return ExitCode::SUCCESS;
    };
    if exit.code == 0 {
        print_line(&exit.message);
    } else if !exit.message.is_empty() {
        print_error(&format!("{program}: {}", exit.message));
    }
    ExitCode::from(exit.code)
}

impl Usage {
    /// Runs the program and prints why it ends.
    pub fn main(&self, run: impl FnOnce(Args) -> Result<(), Exit>) -> ExitCode {
        let arguments = env::args_os().skip(1);
        let texts = arguments.map(|argument| argument.to_string_lossy().into());
        exit_code(self.name, self.parse(texts.collect()).and_then(run))
    }

    /// Reads the options.
    pub fn parse(&self, arguments: Vec<String>) -> Result<Args, Exit> {
        let mut args = Args::default();
        let options = self.options();
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            let Some((name, value_name)) = options.get_key_value(&*argument) else {
                return Err(self.unknown(&argument));
            };

            let mut value = String::new();
            if !value_name.is_empty() {
                let next = arguments.next_if(|next| !next.starts_with("--"));
                value = next.ok_or_else(|| {
                    Exit::usage(format!("{name} needs a value: {name} {value_name}"))
                })?;
            }
            args.options.entry(name).or_default().push(value);
        }

        if args.has("--help") {
            let message = self.help();
            return Err(Exit { code: 0, message });
        }
        if args.has("--version") {
            let message = format!("{} {}", self.name, env!("CARGO_PKG_VERSION"));
            return Err(Exit { code: 0, message });
        }

        Ok(args)
    }

    /// Returns the options, with the names of their values; empty if an option has none.
    fn options(&self) -> BTreeMap<&'static str, &'static str> {
        let mut options = BTreeMap::new();
        for help in self.options.iter().chain(&[FOR_PROGRAMS]) {
            for line in help.lines() {
                if let Some((left, _)) = line.trim_start().split_once("  ") {
                    let (name, value_name) = left.split_once(' ').unwrap_or((left, ""));
                    options.insert(name, value_name);
                }
            }
        }
        options
    }

    /// Returns the error for an unknown argument, with the known option that was perhaps meant.
    fn unknown(&self, argument: &str) -> Exit {
        let name = argument.split('=').next().unwrap_or_default();
        let options = self.options();
        let similar = options.keys().find(|option| is_similar(name, option));
        let hint = match similar {
            Some(similar) => format!("did you mean {similar}?"),
            None => format!("{} --help lists all", self.name),
        };
        Exit::usage(format!("unknown argument {argument:?}; {hint}"))
    }

    fn help(&self) -> String {
        let (about, name, options) = (self.about, self.name, self.options.concat());
        let codes = "0 done, 1 failed, 2 wrong use or configuration, or port in use";
        format!("{about}\n\nusage: {name} [OPTIONS]\n\noptions:{options}\n\nexit codes: {codes}")
    }
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
