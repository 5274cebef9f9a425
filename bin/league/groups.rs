//! Entrants and groups. A file of entrants has a line for each player: its name, a tab, and the
//! command that starts the player. A URL in the place of the command stands for a player of another
//! machine, which registers by itself.
//!
//! `league groups` deals many entrants into files of that kind. Each group is a local league of its
//! own, so groups can be played at the same time, also on several machines. `season.rs` adds them up.

use crate::strategies;
use league::games::derive_seed;
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::storage::{self, Access};
use league::program::terminal::{plural, print_line};
use league::values::{check_display_name, truncate};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub const USAGE: Usage = Usage {
    name: "league groups",
    about: "deal many entrants into groups, each for a local league of its own",
    options: &[
        "
  --entrants FILE                who plays: a line is a name, a tab, and a command or URL
  --size N                       how many a group has at most
  --out DIR                      the folder below which the groups are written
  --seed N                       deals other groups [0]",
        COMMON,
    ],
    redirects: "",
};

/// The folder of the groups, below the folder of their stage.
pub const FOLDER: &str = "groups";
/// The file in a league's folder with its entrants.
pub const FILE: &str = "entrants.txt";
/// Minimum size of a group, so that no group has a single player.
const MIN_SIZE: usize = 3;
/// Maximum length of a name that is made from a command, in characters.
const MAX_NAME: usize = 30;

/// A player that enters a league.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    /// The name in the tables.
    pub name: String,
    /// The command that starts it here: the name of a strategy, or a program with its options; or the URL of a
    /// player that is started on another machine.
    pub command: String,
}

impl Entrant {
    /// Returns the player of a command, with the name of its last word that is no option.
    pub fn of(command: &str) -> Entrant {
        let mut words = words(command).into_iter();
        let last = words.rfind(|word| !word.starts_with('-'));
        let name = last.and_then(|last| last.rsplit(['/', '\\']).next());
        Entrant {
            name: truncate(name.unwrap_or_default(), MAX_NAME),
            command: command.into(),
        }
    }

    /// Returns true for a program of the user: neither a strategy nor a player of another machine.
    pub fn is_own(&self) -> bool {
        !self.is_remote() && strategies::all_names().all(|name| name != self.command)
    }

    /// Returns true if the player is started on another machine.
    pub fn is_remote(&self) -> bool {
        self.command.starts_with("http://") || self.command.starts_with("https://")
    }
}

/// Returns the words of a command. A word that begins with a quotation mark ends with the next one,
/// so the path of a program may have a blank.
pub fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = command.trim_start();
    while !rest.is_empty() {
        let split = match rest.strip_prefix(['"', '\'']) {
            Some(quoted) => quoted.split_once(&rest[..1]).unwrap_or((quoted, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(split.0);
        rest = split.1.trim_start();
    }
    words
}

/// Returns entrants as the lines of a file.
pub fn text(entrants: &[Entrant]) -> String {
    let mut text = String::new();
    for Entrant { name, command } in entrants {
        text += &format!("{name}\t{command}\n");
    }
    text
}

/// Reads a file of entrants. Each name enters once.
pub fn read(path: &Path) -> Result<Vec<Entrant>, Exit> {
    let text = fs::read_to_string(path)
        .map_err(|error| Exit::usage(storage::with_path(path, error).to_string()))?;
    parse(&text).map_err(|problem| Exit::usage(format!("{}: {problem}", path.display())))
}

fn parse(text: &str) -> Result<Vec<Entrant>, String> {
    let mut entrants = Vec::new();
    let mut lines = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }

        let (name, command) = line.split_once('\t').unwrap_or_default();
        let (name, command) = (name.trim(), command.trim());
        if check_display_name(name).is_err() || command.is_empty() {
            let expected = "a name of 1 to 50 characters, a tab, and a command or a URL";
            return Err(format!("line {number}: got {line:?}, expected {expected}"));
        }
        if let Some(first) = lines.insert(name, number) {
            return Err(format!(
                "line {number}: {name} enters in line {first} already"
            ));
        }
        entrants.push(Entrant {
            name: name.into(),
            command: command.into(),
        });
    }

    Ok(entrants)
}

/// Deals entrants into as few groups as their size allows. The groups differ by one at most. They
/// depend on the names and the seed, and not on the order of the names.
pub fn deal(mut entrants: Vec<Entrant>, size: usize, seed: u64) -> Vec<Vec<Entrant>> {
    entrants.sort_by_cached_key(|entrant| {
        let seed = derive_seed(seed, &["group", &entrant.name]);
        let lot = fastrand::Rng::with_seed(seed).u64(..);
        (lot, entrant.name.clone())
    });

    let count = entrants.len().div_ceil(size);
    let mut groups = vec![Vec::new(); count];
    for (n, entrant) in entrants.into_iter().enumerate() {
        groups[n % count].push(entrant);
    }

    groups
}

/// Writes a file for each group. Writing the same groups again changes nothing; other groups are not
/// overwritten.
pub fn run(args: &Args) -> Result<(), Exit> {
    let entrants = read(Path::new(require(args, "--entrants")?))?;
    let folder = Path::new(require(args, "--out")?).join(FOLDER);
    require(args, "--size")?;
    let size = args.number("--size", 0..=usize::MAX)?.unwrap_or_default();
    if size < MIN_SIZE || entrants.len() < 2 {
        let count = entrants.len();
        return Err(Exit::usage(format!(
            "got {count} in groups of {size}, expected at least 2 entrants, in groups of \
             {MIN_SIZE} or more"
        )));
    }

    // Deal them.
    let seed = args.number("--seed", 0..=u64::MAX)?.unwrap_or_default();
    let count = plural(entrants.len() as u32, "entrant");
    let groups = deal(entrants, size, seed);
    let mut files = BTreeMap::new();
    for (n, group) in (1..).zip(&groups) {
        files.insert(folder.join(format!("{n:03}.txt")), text(group));
    }
    check_no_others(&folder, &files)?;

    // Write the files.
    for (path, text) in &files {
        storage::replace(path, Access::AllUsers, text)?;
    }

    let (dealt, largest) = (plural(groups.len() as u32, "group"), groups[0].len());
    let folder = folder.display();
    print_line(&format!(
        "{count} in {dealt} of at most {largest}: {folder}"
    ));

    Ok(())
}

fn require<'a>(args: &'a Args, option: &str) -> Result<&'a str, Exit> {
    args.text(option).ok_or_else(|| {
        let all = "groups needs --entrants FILE, --size N and --out DIR";
        Exit::usage(format!("{option} is missing: {all}"))
    })
}

/// Refuses a folder with a file that is not one of these.
fn check_no_others(folder: &Path, files: &BTreeMap<PathBuf, String>) -> Result<(), Exit> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if files.get(&path) != fs::read_to_string(&path).ok().as_ref() {
            let folder = folder.display();
            return Err(Exit::failure(format!(
                "{folder} holds other groups; remove them, or name another folder with --out DIR"
            )));
        }
    }

    Ok(())
}
