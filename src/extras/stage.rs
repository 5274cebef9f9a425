//! `league_manager season DIR…`: a stage, which is one league in each of many data folders, and the entrants of the next
//! stage. The folders are read one after the other, each from the document that its closed league left.
//!
//! A group whose league has not come to its end is named and left out. A folder of dealt groups among those that are
//! named says which groups there must be, so that a group that has not even begun is missed too.

use crate::extras::figures::expected_by_player;
use crate::extras::groups::{self, Entrant};
use crate::extras::local::ENTRANTS;
use crate::extras::season::{add, ordered, say_table, title};
use crate::manager::document::LeagueView;
use crate::manager::journal;
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::terminal::{complain, say, shown};
use crate::protocol::Progress;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Whether a command line is about a stage, and not about the leagues of one folder.
pub fn is_meant(args: &Args) -> bool {
    !args.operands.is_empty() || args.has("--status") || args.has("--promote")
}

/// Adds a stage up, or says how far its groups are.
pub fn run(args: &Args) -> Result<(), Stop> {
    let league_id = program::load(args)?.league.league_id;
    let folders = folders(&args.operands);
    if folders.is_empty() {
        let words = "--status and --promote need the data folders of groups: season DIR…";
        return Err(Stop::usage(words));
    }
    let left_out = match args.has("--status") {
        true => say_status(&folders, &league_id),
        false => add_up(args, &folders, &league_id)?,
    };
    let is_nothing_left = left_out == folders.len() && !args.has("--status");
    if left_out > 0 && (args.has("--all") || is_nothing_left) {
        let all = folders.len();
        let words = format!("{left_out} of {all} groups are not over, or cannot be read");
        return Err(Stop::failed(words));
    }
    Ok(())
}

/// The data folders of the groups, each once. Of a folder of dealt groups each file names one beside that folder; any
/// other file says nothing of a group.
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
    let league = journal::folder(folder, league_id);
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
    let broken = |why| format!("broken, for league.json cannot be read: {why}");
    let view: LeagueView = serde_json::from_slice(&document).map_err(broken)?;
    match (view.league_id == league_id, view.status) {
        (false, _) => Err(format!("foreign, for its league is {}", view.league_id)),
        (_, Progress::Completed) => Ok(view),
        _ => Err("broken, for league.json is of a league that was not over".into()),
    }
}

/// Says in a line for each group how far it is; gives back how many are not over.
fn say_status(folders: &BTreeSet<PathBuf>, league_id: &str) -> usize {
    let states = folders.iter().map(|folder| {
        let state = look(folder, league_id);
        let is_open = state.is_err();
        let words = state.map_or_else(|why| why, |_| "over".into());
        say(&shown(&format!("{}  {words}", folder.display())));
        usize::from(is_open)
    });
    states.sum()
}

/// Shows the table over all groups that are over, and prints the entrants of the next stage, if they are asked for;
/// gives back how many groups are left out.
fn add_up(args: &Args, folders: &BTreeSet<PathBuf>, league_id: &str) -> Result<usize, Stop> {
    let most: Option<usize> = args.value("--promote")?;
    let by_expected = match args.text("--by").unwrap_or("points") {
        "points" => false,
        "expected" => true,
        other => {
            let words = format!("--by: got {other:?}, expected points or expected");
            return Err(Stop::usage(words));
        }
    };
    let tell = |words: &str| match most {
        Some(_) => words.lines().for_each(complain), // standard output is for the entrants
        None => say(words),
    };
    let mut players = BTreeMap::new();
    let mut next = Vec::new();
    let mut left_out = 0;
    for folder in folders {
        let shown_folder = folder.display();
        let found = look(folder, league_id).and_then(|view| {
            let best = promoted(folder, &view, most.unwrap_or_default(), by_expected)?;
            Ok((view, best))
        });
        match found {
            Ok((view, best)) => {
                tell(&shown(&format!("  {shown_folder}{}", title(&view))));
                add(&mut players, &view);
                next.extend(best);
            }
            Err(why) => {
                complain(&format!("{shown_folder} is left out: {why}"));
                left_out += 1;
            }
        }
    }
    say_table(&ordered(players), tell);
    if left_out == 0 || !args.has("--all") {
        print!("{}", groups::text(&next));
    }
    Ok(left_out)
}

/// The best of a group, so many at most, with the commands that started them. Who has the same worth stands as in the
/// table of the league.
fn promoted(
    folder: &Path,
    view: &LeagueView,
    most: usize,
    by_expected: bool,
) -> Result<Vec<Entrant>, String> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let file = journal::folder(folder, &view.league_id).join(ENTRANTS);
    let entrants = groups::read(&file).map_err(|Stop(_, why)| why)?;
    let worth = expected_by_player(view);
    let mut rows: Vec<_> = view.standings.iter().collect();
    if by_expected {
        rows.sort_by(|one, other| worth[&other.player_id].total_cmp(&worth[&one.player_id]));
    }
    let best = rows.into_iter().take(most).map(|row| {
        let own = entrants.iter().find(|it| it.name == row.display_name);
        let name = &row.display_name;
        let words = || format!("{} does not say how {name} is started", file.display());
        own.cloned().ok_or_else(words)
    });
    best.collect()
}
