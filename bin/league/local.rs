//! A local league before its manager runs: who plays, what lies in its folder, and that it is the
//! only one there.
//!
//! A practice is a local league of many cycles, to find out whether a strategy is better than a
//! coin. What it all means is said by `statistics.rs`. Practice leaves no heap: its data and logs
//! have folders of their own, and the next practice replaces them. They are deleted only if a
//! practice made them; a real league never is.

use crate::groups::{self, Entrant};
use crate::patience::until;
use crate::strategies;
use league::program::SHUTDOWN_TIMEOUT;
use league::program::args::{Args, Exit};
use league::program::terminal::print_line;
use league::program::{self, credentials, storage};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The most cycles: the statistics of so many are as good as any.
/// So many of a game's strategies play a single league, in turn: the others learn, and it gives
/// them nothing to learn from.
const UNLEARNED: usize = 5;
/// So many are needed for a comparison: the two, and two rivals.
const FEWEST_COMPARED: usize = 4;

/// Who plays a league that is started here, and what was there before.
#[derive(Default)]
pub struct Local {
    /// The players, in the order of their ids.
    pub entrants: Vec<Entrant>,
    /// The journal that lay in its folder.
    pub before: String,
    /// The command line asks for a practice. A comparison is one too.
    pub is_practice: bool,
    /// Two players are compared: see `comparison.rs`.
    pub is_comparison: bool,
    /// The agents of two local leagues have the same ids: only one at a time may have this folder.
    _alone: Option<File>,
}

impl Local {
    /// Takes the data folder, and refuses to set a league aside that was not local, or not of these
    /// entrants.
    pub fn new(args: &mut Args) -> Result<Local, Exit> {
        let cycles: Option<u32> = args.number("--cycles", 1..=100)?;
        let is_comparison = args.has("--new");
        let is_practice = cycles.is_some() || args.has("--mine") || is_comparison;
        let entrants = enter(args, is_practice)?;
        let alone = match is_practice {
            true => replace_the_last(args)?,
            false => credentials::lock(&program::data_folder(args), "local")?,
        };
        let (folder, before) = before(args)?;
        let mark = fs::read_to_string(folder.join(groups::FILE));
        let last = |event: &str| before.rfind(&format!("{{\"event\":\"{event}\""));
        let is_closed = last("Closed").is_some();
        let is_open = last("Registered").is_some() && !is_closed;
        let is_same = mark.as_ref().ok() == Some(&groups::text(&entrants));
        let is_fresh = args.has("--fresh");
        if is_closed && is_same && !is_fresh && args.has("--entrants") {
            let words = "this league is over (--fresh plays it again)";
            return Err(Exit {
                code: 0,
                message: words.into(),
            });
        }
        if is_open && (mark.is_err() || !is_same && !is_fresh) {
            let words = "an unfinished league of other entrants lies in";
            let cure = "end it, set it aside with --fresh if it is local, or name other data with --data DIR";
            let folder = folder.display();
            return Err(Exit::failed(format!("{words} {folder}; {cure}")));
        }
        Ok(Local {
            entrants,
            before,
            is_practice,
            is_comparison,
            _alone: Some(alone),
        })
    }
}

/// The folder of the league that the command line names, and the journal that lies there.
pub fn before(args: &Args) -> Result<(PathBuf, String), Exit> {
    let league_id = program::load_config(args)?.league.league_id;
    let folder = storage::league_folder(&program::data_folder(args), &league_id);
    let journal = fs::read_to_string(folder.join("journal.jsonl"));
    Ok((folder, journal.unwrap_or_default()))
}

/// The players of a local league: those of a file, or those of the command line and strategies of
/// the game in turn. What the command line leaves open is filled in: how many agents there are, and
/// that there is no lead.
fn enter(args: &mut Args, is_practice: bool) -> Result<Vec<Entrant>, Exit> {
    let ways = ["--entrants", "--new", "--mine"];
    if ways.iter().filter(|way| args.has(way)).count() > 1 {
        let words = format!("only one of {} says who plays", ways.join(", "));
        return Err(Exit::usage(words));
    }
    for [one, other] in [["--entrants", "--players"], ["--new", "--cycles"]] {
        if args.has(one) && args.has(other) {
            return Err(Exit::usage(format!("{one} needs no {other}")));
        }
    }
    let mut entrants = match args.text("--entrants") {
        Some(file) => groups::read(Path::new(file))?,
        None => chosen(args, is_practice)?,
    };
    // Players of other machines come by themselves and take the lowest ids.
    entrants.sort_by_key(|it| !it.is_elsewhere());
    args.set("--players", &entrants.len().to_string());
    for (option, value) in [("--referees", "2"), ("--lead-sec", "0")] {
        if !args.has(option) {
            args.set(option, value);
        }
    }
    Ok(entrants)
}

/// The players that the command line chooses, and as many strategies of the game as are missing. In
/// a single league they are called as the files call them.
fn chosen(args: &Args, is_practice: bool) -> Result<Vec<Entrant>, Exit> {
    let config = program::load_config(args)?;
    let mut finished = strategies::names(&config.league.game_type);
    if !is_practice {
        finished.truncate(UNLEARNED);
    }
    let mut mine = mine(args);
    let (mut least, mut usual) = (mine.len(), 4.max(mine.len() + 1));
    if let Some(new) = args.text("--new") {
        mine = vec![new, args.text("--old").unwrap_or("random")];
        least = FEWEST_COMPARED;
        usual = least.max(mine.len() + finished.len());
    }
    let players = args.number("--players", 0..=usize::MAX)?.unwrap_or(usual);
    if players < least {
        let words = format!("--players: got {players}, expected at least {least}");
        return Err(Exit::usage(words));
    }
    let mut entrants = practice(&mine, &finished, players);
    if !is_practice {
        for (entrant, listed) in entrants.iter_mut().zip(&config.agents.players) {
            entrant.name = listed.display_name.clone();
        }
    }
    Ok(entrants)
}

/// The commands of `--mine`: several options, or several commands in one, with commas.
fn mine(args: &Args) -> Vec<&str> {
    let all = args.all("--mine").iter();
    let each = all.flat_map(|all| all.split(',')).map(str::trim);
    each.filter(|command| !command.is_empty()).collect()
}

/// The players of a practice: first those commands, then `finished` strategies in turn. Each has a
/// name of its own.
pub fn practice(mine: &[&str], finished: &[&str], players: usize) -> Vec<Entrant> {
    let commands = mine.iter().chain(finished.iter().cycle());
    let mut entrants: Vec<_> = commands.take(players).map(|it| Entrant::of(it)).collect();
    let mut namesakes = BTreeMap::new();
    for entrant in &mut entrants {
        let n = namesakes.entry(entrant.name.clone()).or_insert(0);
        *n += 1;
        if *n > 1 {
            entrant.name += &format!(" {n}");
        }
    }
    entrants
}

/// Puts `practice` below the folders that the command line names, and deletes what the last
/// practice left there. What no practice made is left alone: the lock of the first one stays beside
/// the folders, as a mark that they are ours.
fn replace_the_last(args: &mut Args) -> Result<File, Exit> {
    let (data, logs) = (program::data_folder(args), program::log_folder(args));
    let is_ours = data.join("agents/practice.lock").exists();
    let folders = [("--data", &data), ("--logs", &logs)].map(|(option, above)| {
        let folder = above.join("practice");
        args.set(option, &folder.to_string_lossy());
        folder
    });
    let mut there = folders.iter().filter(|folder| folder.exists());
    if !is_ours && let Some(folder) = there.next() {
        let words = format!("{} is there, but not from a practice", folder.display());
        let cure = "move it, or name others with --data DIR and --logs DIR";
        return Err(Exit::failed(format!("{words}; {cure}")));
    }
    let alone = credentials::lock(&data, "practice")?;
    for folder in there {
        let mut removed = Ok(());
        // Agents of the last practice may still be ending, and write.
        until(SHUTDOWN_TIMEOUT, || {
            removed = fs::remove_dir_all(folder);
            removed.is_ok()
        });
        removed.map_err(|error| storage::with_path(folder, error))?;
        let folder = folder.display();
        print_line(&format!("{folder}: the last practice is replaced"));
    }
    Ok(alone)
}
