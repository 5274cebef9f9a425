//! `league_manager season DIR…`: a stage, which is one league in each of many data folders, and the
//! entrants of the next stage. The folders are read one after the other, each from the document
//! that its closed league left.
//!
//! A group whose league has not come to its end is named and left out. A folder of dealt groups
//! among those that are named says which groups there must be, so that a group that has not even
//! begun is missed too.
#![allow(missing_docs)] // the names of the fields say it

use crate::extras::figures::expected_by_player;
use crate::extras::groups::{self, Entrant};
use crate::extras::season::{add, ordered, say_table, title};
use crate::extras::view::LeagueView;
use crate::program;
use crate::program::args::{Args, Exit};
use crate::program::storage;
use crate::program::terminal::{print_error, print_line, sanitize};
use crate::protocol::Standing;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// By what the best of a group are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    Points,
    Expected,
}

fn measure(args: &Args) -> Result<Measure, Exit> {
    match args.text("--by") {
        None | Some("points") => Ok(Measure::Points),
        Some("expected") => Ok(Measure::Expected),
        Some(other) => {
            let problem = format!("--by: got {other}, expected points or expected");
            Err(Exit::usage(problem))
        }
    }
}

/// Whether a command line is about a stage, and not about the leagues of one folder.
pub fn is_meant(args: &Args) -> bool {
    !args.operands.is_empty() || args.has("--status") || args.has("--promote")
}

/// Shows the table over all groups that are over, and prints the entrants of the next stage, if
/// they are asked for; or says in a line for each group how far it is.
pub fn run(args: &Args) -> Result<(), Exit> {
    let league_id = program::load_config(args)?.league.league_id;
    let most: Option<usize> = args.number("--promote", 0..=usize::MAX)?;
    let measure = measure(args)?;
    let is_status = args.has("--status");
    let folders = folders(&args.operands);
    if folders.is_empty() {
        let words = "--status and --promote need the data folders of groups: season DIR…";
        return Err(Exit::usage(words));
    }
    let tell = |words: &str| match most {
        Some(_) => words.lines().for_each(print_error), // standard output is for the entrants
        None => print_line(words),
    };
    let mut players = BTreeMap::new();
    let mut next = Vec::new();
    let mut left_out = 0;
    for folder in &folders {
        let place = sanitize(&folder.display().to_string());
        let found = look(folder, &league_id);
        left_out += usize::from(found.is_err());
        match found {
            Ok(_) if is_status => print_line(&format!("{place}  over")),
            Err(why) if is_status => print_line(&sanitize(&format!("{place}  {why}"))),
            Err(why) => print_error(&format!("{place} is left out: {why}")),
            Ok(view) => {
                tell(&sanitize(&format!("  {place}{}", title(&view))));
                next.extend(promoted(folder, &view, most.unwrap_or(0), measure)?);
                add(&mut players, &view);
            }
        }
    }
    if !is_status {
        say_table(&ordered(players), tell);
    }
    if left_out > 0 && args.has("--all") {
        let all = folders.len();
        let words = format!("{left_out} of {all} groups are not over, or cannot be read");
        return Err(Exit::failed(words));
    }
    print!("{}", groups::text(&next));
    Ok(())
}

/// The data folders of the groups, each once. Of a folder of dealt groups each file names one
/// beside that folder; any other file says nothing of a group.
fn folders(named: &[String]) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    for path in named.iter().map(PathBuf::from) {
        if path.ends_with(groups::FOLDER) {
            let files = fs::read_dir(&path).into_iter().flatten().flatten();
            let names = files.filter_map(|file| file.path().file_stem().map(PathBuf::from));
            folders.extend(names.map(|name| path.with_file_name(name)));
        } else if !path.is_file() {
            folders.insert(path);
        }
    }
    folders
}

/// The document of a group's league that is over; or where the group stands instead.
fn look(folder: &Path, league_id: &str) -> Result<LeagueView, String> {
    let league = storage::league_folder(folder, league_id);
    if folder.exists() && !league.exists() {
        return Err(format!("foreign, for it holds no league {league_id}"));
    }
    let Ok(document) = fs::read(league.join("league.json")) else {
        let table = fs::read(league.join("standings.json")).unwrap_or_default();
        let table: Value = serde_json::from_slice(&table).unwrap_or_default();
        let [played, all] = ["version", "matches"].map(|key| table[key].as_u64().unwrap_or(0));
        return Err(match all {
            0 => "waiting".into(),
            _ => format!("running, with {played} of {all} matches played"),
        });
    };
    serde_json::from_slice(&document)
        .map_err(|why| format!("broken, for league.json cannot be read: {why}"))
}

/// The best of a group, so many at most, with the commands that started them. Who has the same
/// worth stands as in the table of the league.
fn promoted(
    folder: &Path,
    view: &LeagueView,
    most: usize,
    measure: Measure,
) -> Result<Vec<Entrant>, Exit> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let file = storage::league_folder(folder, &view.league_id).join(groups::FILE);
    let entrants = groups::read(&file)?;
    let expected = expected_by_player(view);
    let mut rows: Vec<_> = view.standings.iter().collect();
    if measure == Measure::Expected {
        let worth = |row: &Standing| expected.get(&row.player_id).copied().unwrap_or_default();
        rows.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
    }
    let best = rows.into_iter().take(most).map(|row| {
        let name = &row.display_name;
        let own = entrants.iter().find(|it| it.name == *name);
        let words = || format!("{} does not say how {name} is started", file.display());
        own.cloned().ok_or_else(|| Exit::failed(words()))
    });
    best.collect()
}
