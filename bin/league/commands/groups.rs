//! `league groups` deals many entrants into files of entrants (`agents/entrants.rs`). Each group is
//! a local league of its own, so groups can be played at the same time, also on several machines.
//! `season.rs` adds them up.

use crate::agents::entrants::{Entrant, read, text};
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::storage::{self, Access};
use league::program::terminal::{plural, print_line};
use league::values::derive_seed;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub const USAGE: Usage = Usage {
    name: "league groups",
    about: "deal many entrants into groups, each with its own league",
    options: &[
        "
  --entrants FILE             who plays: lines of name, tab, command or URL
  --size N                    how many a group has at most
  --out DIR                   the folder below which the groups are written
  --seed N                    deals other groups [0]",
        COMMON,
    ],
};

/// The folder of the groups, below the folder of their stage.
pub const FOLDER: &str = "groups";
/// Minimum size of a group, so that no group has a single player.
const MIN_SIZE: usize = 3;

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

/// Writes a file for each group. Writing the same groups again changes nothing; other groups are
/// not overwritten.
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
