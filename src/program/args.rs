//! The command line: what `--help` shows is the declaration, from which the options are read.
//!
//! Whoever misspells a word or an option is told the nearest one, before the program has done
//! anything. A value stands behind its option, or joined to it as in `--port=0`. Read next:
//! `config.rs`, what the files say.

use crate::program::terminal::complain;
use crate::wire::{Wire, one_slip};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// The options that every program has. The last ones are for programs that start others.
const COMMON: &str = "
  --help                         show this and end
  --version                      show the version and end
  --host ADDRESS                 where to listen [127.0.0.1; all, if the manager is elsewhere]
  --port N                       port to listen on; 0: any [as configured, else the first free]
  --contact-endpoint URL         where others reach this program [where the manager sees it]
  --config DIR                   configuration files [config; without such a folder, those built in]
  --manager URL                  where the league manager is [as listed in agents_config.json]
  --seed N                       make draws and random choices repeatable
  --data DIR                     what must survive [data]
  --logs DIR                     log files [logs]
  --league-id ID                 which league [default_league_id of system.json]
  --operator-token-file FILE     the operator token, for a manager on another machine
  --stay                         do not end with the league: serve on, or wait for the next one
  --any-port                     for other programs: where the port is in use, take any
  --until-stdin-closes           for other programs: end when standard input closes";

/// A program as its `--help` shows it.
pub struct Usage<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is, in a line.
    pub about: &'a str,
    /// Words that may stand in place of a first option. Each line has a word, the name of the value
    /// that it needs, if any, and after two spaces what it does. A word with `DIR…` takes any
    /// number of values.
    pub words: &'static str,
    /// What it has beside the common options, in lines like those of the words.
    pub options: &'a [&'static str],
}

/// Why a program ends: the exit code and, unless empty, a line for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop(pub u8, pub String);

impl Stop {
    /// It failed in its work: exit code 1.
    pub fn failed(why: impl Into<String>) -> Stop {
        Stop(1, why.into())
    }
    /// Wrong use, a faulty configuration, or a port in use: exit code 2.
    pub fn usage(why: impl Into<String>) -> Stop {
        Stop(2, why.into())
    }
}

impl From<std::io::Error> for Stop {
    /// The disk or the network does not do what it must: exit code 1.
    fn from(error: std::io::Error) -> Stop {
        Stop::failed(error.to_string())
    }
}

/// The options that were given.
#[derive(Debug, Clone, Default)]
pub struct Args {
    /// The word, if one stood there.
    pub word: Option<&'static str>,
    /// The values of the word.
    pub operands: Vec<String>,
    given: BTreeMap<&'static str, Vec<String>>,
}

impl Usage<'_> {
    fn options(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let own = self.options.iter().flat_map(|lines| names(lines));
        own.chain(names(COMMON))
    }

    /// Reads the program's arguments.
    pub fn parse(&self, arguments: impl Iterator<Item = String>) -> Result<Args, Stop> {
        let mut args = Args::default();
        let split = |argument: String| match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => vec![name.into(), value.into()],
            _ => vec![argument],
        };
        let mut rest = arguments.flat_map(split).peekable();
        let is_value = |next: &String| !next.starts_with("--");
        let mut words = names(self.words);
        let first = words.find(|(word, _)| rest.next_if_eq(*word).is_some());
        let (word, value) = first.unwrap_or_default();
        args.word = first.map(|(word, _)| word);
        let most = match value {
            "" => 0,
            value if value.ends_with('…') => usize::MAX,
            _ => 1,
        };
        while let Some(argument) = rest.next() {
            if is_value(&argument) && args.operands.len() < most {
                args.operands.push(argument);
                continue;
            }
            let mut options = self.options();
            let Some((name, value)) = options.find(|(name, _)| *name == argument) else {
                return Err(self.unknown(&argument));
            };
            let given = match value.is_empty() {
                true => Some(String::new()),
                false => rest.next_if(is_value),
            };
            let given = given.ok_or_else(|| needs(name, value))?;
            args.given.entry(name).or_default().push(given);
        }
        if args.has("--help") {
            return Err(Stop(0, self.help()));
        }
        if args.has("--version") {
            let version = env!("CARGO_PKG_VERSION");
            return Err(Stop(0, format!("{} {version}", self.name)));
        }
        if most == 1 && args.operands.is_empty() {
            return Err(needs(word, value));
        }
        Ok(args)
    }

    /// Refuses an argument, and names the one that was perhaps meant.
    fn unknown(&self, argument: &str) -> Stop {
        let mut known = names(self.words)
            .chain(self.options())
            .map(|(name, _)| name);
        let begins = |known: &str| argument.len() > 3 && known.starts_with(argument);
        let near = known.find(|known| begins(known) || one_slip(argument, known));
        let all = format!("{} --help lists all", self.name);
        let advice = near.map_or(all, |near| format!("did you mean {near}?"));
        Stop::usage(format!("unknown argument {argument:?}; {advice}"))
    }

    fn help(&self) -> String {
        let words = if self.words.is_empty() { "" } else { " [WORD]" };
        let mut text = format!("{}\n\nusage: {}{words} [OPTIONS]\n", self.about, self.name);
        if !self.words.is_empty() {
            text += &format!("\nwords:{}\n", self.words);
        }
        let codes =
            "0 done, 1 failed in its work, 2 wrong use or configuration, or the port is in use";
        text += &format!(
            "\noptions:{}{COMMON}\n\nexit codes: {codes}",
            self.options.concat()
        );
        text
    }

    /// Runs the program, and says why it ended if there is anything to say.
    pub fn main(&self, run: impl FnOnce(Args) -> Result<(), Stop>) -> ExitCode {
        match self.parse(std::env::args().skip(1)).and_then(run) {
            Ok(()) => ExitCode::SUCCESS,
            Err(Stop(code, text)) => {
                match code {
                    0 => println!("{text}"),
                    _ if text.is_empty() => {} // it has been said
                    _ => complain(&format!("{}: {text}", self.name)),
                }
                ExitCode::from(code)
            }
        }
    }
}

/// The names that such lines begin with, each with the name of its value (empty for none).
fn names(lines: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    lines.lines().filter_map(|line| {
        let (left, _) = line.trim_start().split_once("  ")?;
        Some(left.split_once(' ').unwrap_or((left, "")))
    })
}

fn needs(name: &str, value: &str) -> Stop {
    Stop::usage(format!("{name} needs a value: {name} {value}"))
}

impl Args {
    /// Whether it was given.
    pub fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Its value; the last one, if it was given more than once.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// All its values, in their order.
    pub fn all(&self, name: &str) -> &[String] {
        self.given.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Puts a value in the place of what was given.
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.given.insert(name, vec![value.into()]);
    }

    /// Its value as something that can stand in a file too: a text, else a number, which may begin
    /// with zeros, as the number of a group does.
    pub fn value<T: Wire>(&self, name: &str) -> Result<Option<T>, Stop> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let number = match text.parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) => serde_json::from_str(text).unwrap_or_default(),
        };
        let value = T::read(&text.into()).or_else(|fault| T::read(&number).map_err(|_| fault));
        let value = value.map_err(|fault| Stop::usage(format!("{name}: {fault}")))?;
        Ok(Some(value))
    }
}
