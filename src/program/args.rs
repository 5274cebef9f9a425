//! The command line: options declared as a table, from which parsing and `--help` follow.

use crate::program::terminal::complain;
use std::{collections::BTreeMap, process::ExitCode, str::FromStr};

/// An option: its name, the name of its value (empty for a switch), and what it does.
pub type Opt = (&'static str, &'static str, &'static str);

/// What every program has.
const COMMON: &[Opt] = &[
    ("--help", "", "show this and end"),
    ("--version", "", "show the version and end"),
    ("--host", "ADDRESS", "where to listen [127.0.0.1]"),
    (
        "--port",
        "N",
        "port to listen on; 0: any free one [as listed, else the first free one of system.json]",
    ),
    (
        "--any-port",
        "",
        "where no port of the range is free, take any",
    ),
    (
        "--contact-endpoint",
        "URL",
        "where others reach this program [http://BASE_HOST:PORT/mcp]",
    ),
    ("--config", "DIR", "configuration files [config]"),
    ("--data", "DIR", "what must survive [data]"),
    ("--logs", "DIR", "log files [logs]"),
    (
        "--league-id",
        "ID",
        "which league [default_league_id of system.json]",
    ),
    (
        "--operator-token-file",
        "FILE",
        "the operator token, for a manager on another machine",
    ),
    (
        "--stay",
        "",
        "do not end with the league: serve on, or wait for the next one",
    ),
    ("--until-stdin-closes", "", "end when standard input closes"),
];

/// A program as its `--help` shows it.
pub struct Usage {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Words that may stand in place of a first option, and what they do. `trace MATCH` is a word that needs a value.
    pub words: &'static [(&'static str, &'static str)],
    /// What it has beside the common options.
    pub options: &'static [Opt],
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
    /// The word's value, where it needs one.
    pub operand: Option<String>,
    given: BTreeMap<&'static str, Vec<String>>,
}

impl Usage {
    fn options(&self) -> impl Iterator<Item = &Opt> {
        COMMON.iter().chain(self.options)
    }

    /// Reads the program's arguments.
    pub fn parse(&self, arguments: impl Iterator<Item = String>) -> Result<Args, Stop> {
        let mut options = Args::default();
        let mut arguments = arguments.peekable();
        let parts = |word: &'static str| word.split_once(' ').unwrap_or((word, ""));
        let mut words = self.words.iter().map(|(word, _)| parts(word));
        if let Some((word, value)) = arguments
            .peek()
            .and_then(|first| words.find(|(word, _)| word == first))
        {
            options.word = Some(word);
            arguments.next();
            if !value.is_empty() {
                options.operand = arguments.next_if(|next| !next.starts_with("--"));
                let is_asked = arguments.peek().is_some_and(|next| next == "--help");
                if options.operand.is_none() && !is_asked {
                    return Err(Stop::usage(format!("{word} needs a value: {word} {value}")));
                }
            }
        }
        while let Some(argument) = arguments.next() {
            let parts = argument.split_once('=');
            let (name, joined) = parts.map_or((&*argument, None), |(name, value)| {
                (name, Some(value.to_string()))
            });
            let Some((name, value, _)) = self.options().find(|option| option.0 == name) else {
                return Err(Stop::usage(format!(
                    "unknown argument {argument:?}; {} --help lists all",
                    self.name
                )));
            };
            let value = match (value.is_empty(), joined) {
                (true, None) => String::new(),
                (true, Some(_)) => return Err(Stop::usage(format!("{name} takes no value"))),
                (false, joined) => joined
                    .or_else(|| arguments.next_if(|next| !next.starts_with("--")))
                    .ok_or_else(|| Stop::usage(format!("{name} needs a value: {name} {value}")))?,
            };
            options.given.entry(name).or_default().push(value);
        }
        match (options.has("--help"), options.has("--version")) {
            (true, _) => Err(Stop(0, self.help())),
            (_, true) => Err(Stop(
                0,
                format!("{} {}", self.name, env!("CARGO_PKG_VERSION")),
            )),
            _ => Ok(options),
        }
    }

    fn help(&self) -> String {
        let words = if self.words.is_empty() { "" } else { " [WORD]" };
        let mut text = format!("{}\n\nusage: {}{words} [OPTIONS]\n", self.about, self.name);
        let mut section = |title: &str, rows: &mut dyn Iterator<Item = (String, &str)>| {
            text += &format!("\n{title}:\n");
            rows.for_each(|(left, right)| text += &format!("  {left:<30} {right}\n"));
        };
        if !self.words.is_empty() {
            section(
                "words",
                &mut self
                    .words
                    .iter()
                    .map(|(word, says)| (word.to_string(), *says)),
            );
        }
        section(
            "options",
            &mut self
                .options()
                .map(|(name, value, says)| (format!("{name} {value}"), *says)),
        );
        text += "\nexit codes: 0 done, 1 failed in its work, 2 wrong use or configuration, or the port is in use";
        text
    }

    /// Runs the program, and says why it ended if there is anything to say.
    pub fn main(&self, run: impl FnOnce(Args) -> Result<(), Stop>) -> ExitCode {
        match self.parse(std::env::args().skip(1)).and_then(run) {
            Ok(()) => ExitCode::SUCCESS,
            Err(Stop(0, text)) => {
                println!("{text}");
                ExitCode::SUCCESS
            }
            Err(Stop(code, text)) => {
                complain(&format!("{}: {text}", self.name));
                ExitCode::from(code)
            }
        }
    }
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

    /// Its value as a number.
    pub fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Stop> {
        let read = |text: &str| {
            text.parse()
                .map_err(|_| Stop::usage(format!("{name}: got {text:?}, expected a number")))
        };
        self.text(name).map(read).transpose()
    }
}
