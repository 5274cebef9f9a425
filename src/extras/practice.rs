//! A practice: a local league of many cycles, to find out whether a strategy is better than a coin. Here: who plays,
//! and where its files are. What it all means is said by `statistics.rs`.
//!
//! Practice leaves no heap: its data and logs have folders of their own, and the next practice replaces them. They are
//! deleted only if a practice made them, as the file beside them says; a real league never is.

use crate::manager::league::League;
use crate::net::retry::pause;
use crate::program::args::{Args, Stop};
use crate::program::storage::{self, Access};
use crate::program::terminal::{counted, say};
use crate::protocol::Kind;
use crate::wire::{Within, cut};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most cycles: the statistics of so many are as good as any.
type Cycles = Within<1, 1000>;
/// How many characters of a strategy's name are shown.
const NAME: usize = 30;

/// A player of a local league: what it is started with, and what the tables call it, if not as the files do.
#[derive(Debug, Clone, PartialEq)]
pub struct Seat {
    /// A program and its first options.
    pub command: Vec<String>,
    /// Its display name.
    pub name: Option<String>,
}

impl Seat {
    /// Our player with one of its strategies.
    pub fn example(strategy: &str, name: Option<String>) -> Seat {
        Seat {
            command: ["player", "--strategy", strategy].map(String::from).into(),
            name,
        }
    }

    /// A command as a player, named like its last word. The name of a finished strategy alone is our player with it.
    pub fn of(command: &str, finished: &[&str]) -> Seat {
        if finished.contains(&command) {
            return Seat::example(command, Some(command.into()));
        }
        let words: Vec<&str> = command.split_whitespace().collect();
        let last = words.iter().rfind(|word| !word.starts_with('-'));
        let name = last.and_then(|last| last.rsplit(['/', '\\']).next());
        Seat {
            command: words.iter().map(|word| word.to_string()).collect(),
            name: Some(cut(name.unwrap_or_default(), NAME)),
        }
    }
}

/// The folders of a practice; once they are emptied they are ours while this lives.
pub struct Practice {
    data: PathBuf,
    /// Its logs.
    pub logs: PathBuf,
    lock: Option<File>,
}

/// Whether the command line asks for one, and of how many cycles.
pub fn cycles(args: &Args) -> Result<Option<u32>, Stop> {
    let mine = args.has("--mine");
    let cycles: Option<Cycles> = args.number("--cycles")?;
    let cycles = cycles.map(|cycles| cycles.0);
    Ok(cycles.or(mine.then_some(1)))
}

/// The commands of `--mine`: several options, or several commands in one, with commas.
pub fn mine(args: &Args) -> Vec<&str> {
    let all = args.all("--mine").iter();
    let each = all.flat_map(|all| all.split(',')).map(str::trim);
    each.filter(|command| !command.is_empty()).collect()
}

/// The players of a practice, in the order of their ids: first those commands, then `finished` strategies in turn. Each
/// has a name of its own.
pub fn seats(mine: &[&str], finished: &[&str], players: usize) -> Vec<Seat> {
    let mine = mine.iter().map(|command| Seat::of(command, finished));
    let example = |name: &&str| Seat::example(name, Some(name.to_string()));
    let examples = finished.iter().cycle().map(example);
    let mut seats: Vec<Seat> = mine.chain(examples).take(players).collect();
    let mut namesakes = BTreeMap::new();
    for seat in &mut seats {
        let n = namesakes.entry(seat.name.clone()).or_insert(0);
        *n += 1;
        if *n > 1 {
            seat.name = seat.name.as_ref().map(|name| format!("{name} {n}"));
        }
    }
    seats
}

/// What is about to be played.
pub fn begins(league: &League) -> String {
    let players = league.members(Kind::Player).len();
    let cycles = counted(league.rules.cycles, "cycle");
    let matches = counted(league.matches.len() as u32, "match").replace("matchs", "matches");
    format!("practice: {players} players, {cycles}, {matches}")
}

impl Practice {
    /// Puts `practice` below the folders that the command line names.
    pub fn new(args: &mut Args) -> Practice {
        let mut below = |option, default| {
            let folder = Path::new(args.text(option).unwrap_or(default)).join("practice");
            args.set(option, &folder.to_string_lossy());
            folder
        };
        Practice {
            data: below("--data", "data"),
            logs: below("--logs", "logs"),
            lock: None,
        }
    }

    /// Deletes what the last practice left, and says so. What no practice made is left alone.
    pub fn replace_the_last(&mut self) -> Result<(), Stop> {
        let mark = self.data.with_extension("lock");
        let is_ours = mark.exists();
        let folders = [&self.data, &self.logs]
            .into_iter()
            .filter(|folder| folder.exists());
        if let Some(folder) = folders.clone().next().filter(|_| !is_ours) {
            let words = format!("{} is there, but not from a practice", folder.display());
            return Err(Stop::failed(format!(
                "{words}; move it, or name others with --data DIR and --logs DIR"
            )));
        }
        let lock = storage::create(&mark, Access::Owner, OpenOptions::new().write(true))?;
        if lock.try_lock().is_err() {
            let words = format!("another practice is running in {}", self.data.display());
            return Err(Stop::failed(format!(
                "{words}; end it, or name another folder with --data DIR"
            )));
        }
        self.lock = Some(lock);
        for folder in folders {
            let mut tries = 50;
            while let Err(error) = fs::remove_dir_all(folder) {
                tries -= 1;
                if tries == 0 || error.kind() != io::ErrorKind::DirectoryNotEmpty {
                    return Err(storage::named(folder, error).into());
                }
                pause(Duration::from_millis(100)); // agents of the last practice are still ending, and write
            }
            say(&format!(
                "{}: the last practice is replaced",
                folder.display()
            ));
        }
        Ok(())
    }
}
