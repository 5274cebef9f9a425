//! Entrants and groups. A file of entrants has a line for each player: its name, a tab, and the
//! command that starts the player. A URL in the place of the command stands for a player of another
//! machine, which comes by itself.
//!
//! `league_manager groups` deals many entrants into files of that kind. Each is a league of its
//! own, so that the leagues can be played side by side, also on several machines. What they make
//! together is added up by `stage.rs`.

use league::games::derive_seed;
use league::program::args::{Args, Exit};
use league::program::storage::{self, Access};
use league::program::terminal::{plural, print_line};
use league::values::{check_display_name, truncate};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the groups, below the folder of their stage.
pub const FOLDER: &str = "groups";
/// The file in a league's folder that says with which command each of its players was started.
pub const FILE: &str = "entrants.txt";
/// The smallest size of a group: however many enter, nobody is left alone.
const SMALLEST: usize = 3;
/// How many characters a name has that is made of a command.
const NAME: usize = 30;

/// A player that enters a league.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    /// What the tables call it.
    pub name: String,
    /// What starts it here: a strategy's name, or a program with its options. Or the URL of one
    /// that is started elsewhere.
    pub command: String,
}

impl Entrant {
    /// The player of a command, named like its last word.
    pub fn of(command: &str) -> Entrant {
        let mut words = command.split_whitespace();
        let last = words.rfind(|word| !word.starts_with('-'));
        let name = last.and_then(|last| last.rsplit(['/', '\\']).next());
        Entrant {
            name: truncate(name.unwrap_or_default(), NAME),
            command: command.into(),
        }
    }

    /// Whether the player is started on another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.command.starts_with("http://") || self.command.starts_with("https://")
    }
}

/// Entrants as the lines of a file.
pub fn text(entrants: &[Entrant]) -> String {
    let line = |it: &Entrant| format!("{}\t{}\n", it.name, it.command);
    entrants.iter().map(line).collect()
}

/// Reads a file of entrants. Every name enters once.
pub fn read(path: &Path) -> Result<Vec<Entrant>, Exit> {
    let file = fs::read_to_string(path);
    let file = file.map_err(|error| Exit::usage(storage::with_path(path, error).to_string()))?;
    let wrong = |number: u32, why: String| {
        let path = path.display();
        Err(Exit::usage(format!("{path}: line {number}: {why}")))
    };
    let mut entrants = Vec::new();
    let mut lines = BTreeMap::new();
    for (number, line) in (1..).zip(file.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let (name, command) = line.split_once('\t').unwrap_or_default();
        let (name, command) = (name.trim(), command.trim());
        if check_display_name(name).is_err() || command.is_empty() {
            let legal = "a name of 1 to 50 characters, a tab, and a command or a URL";
            return wrong(number, format!("got {line:?}, expected {legal}"));
        }
        if let Some(first) = lines.insert(name, number) {
            return wrong(number, format!("{name} enters in line {first} already"));
        }
        entrants.push(Entrant {
            name: name.into(),
            command: command.into(),
        });
    }
    Ok(entrants)
}

/// Deals entrants into as few groups as their size allows. The groups differ by one at most, and
/// are the same for the same names and the same seed, in whatever order the names come.
pub fn deal(mut entrants: Vec<Entrant>, size: usize, seed: u64) -> Vec<Vec<Entrant>> {
    let lot = |name: &str| fastrand::Rng::with_seed(derive_seed(seed, &["group", name])).u64(..);
    entrants.sort_by_cached_key(|it| (lot(&it.name), it.name.clone()));
    let count = entrants.len().div_ceil(size);
    let mut groups = vec![Vec::new(); count];
    for (n, entrant) in entrants.into_iter().enumerate() {
        groups[n % count].push(entrant);
    }
    groups
}

/// Writes a file for each group. To do so again changes nothing, and no other groups are
/// overwritten.
pub fn run(args: &Args) -> Result<(), Exit> {
    let missing = |option| {
        let legal = "groups needs --entrants FILE, --size N and --out DIR";
        Exit::usage(format!("{option} is missing: {legal}"))
    };
    let needed = |option| args.text(option).ok_or_else(|| missing(option));
    let entrants = read(Path::new(needed("--entrants")?))?;
    let folder = Path::new(needed("--out")?).join(FOLDER);
    let size = args
        .number("--size", 0..=usize::MAX)?
        .ok_or_else(|| missing("--size"))?;
    if size < SMALLEST || entrants.len() < 2 {
        let words = format!("got {} in groups of {size}", entrants.len());
        let legal = format!("at least 2 entrants, in groups of {SMALLEST} or more");
        return Err(Exit::usage(format!("{words}, expected {legal}")));
    }
    let count = plural(entrants.len() as u32, "entrant");
    let groups = deal(
        entrants,
        size,
        args.number("--seed", 0..=u64::MAX)?.unwrap_or_default(),
    );
    let most = groups.first().map_or(0, Vec::len);
    let made = plural(groups.len() as u32, "group");
    let files = (1..).zip(&groups);
    let files = files.map(|(n, group)| (folder.join(format!("{n:03}.txt")), text(group)));
    let files: BTreeMap<PathBuf, String> = files.collect();
    let there = fs::read_dir(&folder).into_iter().flatten().flatten();
    let is_other = |path: PathBuf| files.get(&path) != fs::read_to_string(&path).ok().as_ref();
    if there.map(|entry| entry.path()).any(is_other) {
        let words = format!("{} holds other groups", folder.display());
        let cure = "remove them, or name another folder with --out DIR";
        return Err(Exit::failed(format!("{words}; {cure}")));
    }
    for (path, text) in &files {
        storage::replace(path, Access::AllUsers, text)?;
    }
    let folder = folder.display();
    print_line(&format!("{count} in {made} of at most {most}: {folder}"));
    Ok(())
}
