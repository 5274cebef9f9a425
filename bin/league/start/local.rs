//! `league local`: a whole league on this machine. This file decides who plays, and refuses to set
//! aside a league with agents of other machines; `children.rs` starts the agents, `running.rs` the
//! manager.
//!
//! A practice is a local league of many cycles, which finds out whether a strategy is better than a
//! coin (`compare/statistics.rs`); in a comparison two players meet the same rivals
//! (`compare/comparison.rs`).

use crate::compare::practice::replace_last_practice;
use crate::files::{provide_config, stored_league};
use crate::players::{by_hand, strategies};
use crate::running::{self, LeagueKind, Setup};
use crate::start::children::PLAYERS_SEED;
use crate::start::entrants::{self, Entrant};
use league::manager::league::League;
use league::net::sync::secret;
use league::program::args::{Args, COMMON, Exit, SERVER, Usage};
use league::program::storage::Access;
use league::program::terminal::{plural, print_line};
use league::program::{credentials, data_folder, load_config, storage};
use league::protocol::AgentKind;
use league::values::derive_seed;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub const USAGE: Usage = Usage {
    name: "league local",
    about: "run a whole league here: manager, referees and players",
    options: &[
        "
  --players N                 the number of players [4]
  --referees N                the number of referees [2]
  --mine COMMAND              your own player; several: with commas
  --new COMMAND               is it better than --old? played until decided
  --old COMMAND               what --new is compared with [a coin]
  --cycles N                  how often each pair of players meets
  --entrants FILE             who plays: lines of name, tab, command or URL
  --lead-sec N                seconds from announcement to matches [0]
  --move-timeout-sec N        seconds for a move [system.json; 2 in a practice]
  --no-deadline               no time limit for a move, for a debugger
  --fresh                     set an unfinished league aside and start a new one
  --name TEXT                 what this league is called: --name \"10b, Tuesday\"
  --stay                      do not end with the league: serve on
  --quiet                     print one line at the end: the champion",
        SERVER,
        COMMON,
    ],
};

/// Number of strategies that fill a league that is no practice: the others learn, and one league
/// gives them nothing to learn from.
const FILLERS: usize = 5;
/// Maximum time for a move in a practice, in seconds, unless the command line has another one: a
/// `choose` that never ends must not take hours.
const PRACTICE_MOVE_TIMEOUT: &str = "2";
/// Minimum number of players in a comparison: the two, and two rivals.
const MIN_COMPARED: usize = 4;

/// Runs a local league to its end.
pub fn run(mut args: Args) -> Result<(), Exit> {
    provide_config(&args)?;
    let setup = prepare(&mut args)?;
    running::run(args, setup)
}

/// Decides who plays, and takes the data folder.
fn prepare(args: &mut Args) -> Result<Setup, Exit> {
    let kind = league_kind(args)?;
    let entrants = entrants(args, kind)?;
    if kind == LeagueKind::Local && entrants.iter().any(|one| one.is_own() || one.is_remote()) {
        hide_seed(args)?;
    }

    if args.has("--no-deadline") {
        args.set("--move-timeout-sec", "86400");
    }

    args.set("--players", &entrants.len().to_string());
    set_default(args, "--referees", "2");
    set_default(args, "--lead-sec", "0");
    args.set("--alone", "");

    let lock = if kind.is_practice() {
        replace_last_practice(args)?
    } else {
        credentials::lock(&data_folder(args), "local")?
    };

    let stored = stored_league(args)?;
    if let Some(stored) = &stored
        && !args.has("--restarted")
    {
        check_stored(args, stored, &entrants)?;
    }

    if kind.is_practice() && !is_by_hand(&entrants) {
        set_default(args, "--move-timeout-sec", PRACTICE_MOVE_TIMEOUT);
    }

    Ok(Setup {
        kind,
        own: own_names(args, &entrants),
        entrants,
        stored,
        _lock: Some(lock),
    })
}

fn league_kind(args: &Args) -> Result<LeagueKind, Exit> {
    let cycles = args
        .number("--cycles", 1..=400)
        .map_err(|exit| Exit::usage(format!("{} (make: CYCLES=20)", exit.message)))?;
    if args.has("--new") {
        Ok(LeagueKind::Comparison)
    } else if cycles.is_some() || args.has("--mine") {
        Ok(LeagueKind::Practice)
    } else {
        Ok(LeagueKind::Local)
    }
}

/// Mixes the seed of the draws with a secret of the data folder, so that no player knows the
/// numbers from `--seed`. On the same data the draws are repeatable. The players get the seed as it
/// is.
fn hide_seed(args: &mut Args) -> Result<(), Exit> {
    let Some(seed) = args.number("--seed", 0..=u64::MAX)? else {
        return Ok(());
    };
    let file = data_folder(args).join("seed.secret");
    if !file.exists() {
        storage::replace(&file, Access::Owner, &secret(32))?;
    }

    let secret = storage::read_text(&file)?;
    args.set(PLAYERS_SEED, &seed.to_string());
    args.set("--seed", &derive_seed(seed, &[&secret]).to_string());
    Ok(())
}

/// Sets an option that was not given.
fn set_default(args: &mut Args, name: &'static str, value: &str) {
    if !args.has(name) {
        args.set(name, value);
    }
}

/// Returns true if a person or a language model plays, and needs time.
fn is_by_hand(entrants: &[Entrant]) -> bool {
    let mut commands = entrants.iter().map(|entrant| &entrant.command);
    commands.any(|command| by_hand::is_by_hand(command))
}

/// Refuses to go on with an unfinished league of other entrants. `--fresh` sets it aside, and so is
/// a league without any result. A finished league of the same file of entrants is not played again.
fn check_stored(args: &mut Args, stored: &League, entrants: &[Entrant]) -> Result<(), Exit> {
    let folder = storage::league_folder(&data_folder(args), &stored.config.league.league_id);
    let names: BTreeSet<&String> = entrants.iter().map(|entrant| &entrant.name).collect();
    let members = stored.members(AgentKind::Player).into_iter();
    let is_same = names == members.map(|member| &member.meta.display_name).collect();
    let is_fresh = args.has("--fresh");

    if stored.closed && is_same && !is_fresh && args.has("--entrants") {
        let folder = data_folder(args);
        let message = format!(
            "{}: this league is over (--fresh plays it again)",
            folder.display()
        );
        return Err(Exit { code: 0, message });
    }

    if stored.closed || stored.members.is_empty() || is_same && !is_fresh {
        return Ok(());
    }

    let (folder, results) = (folder.display(), stored.played.len() as u32);
    if results == 0 {
        args.set("--fresh", ""); // nothing is lost
    } else if is_fresh {
        let results = plural(results, "result");
        print_line(&format!(
            "an unfinished league with {results} is set aside: {folder}~TIME"
        ));
    } else {
        return Err(Exit::failure(format!(
            "an unfinished league of other entrants lies in {folder}; end it, set it aside with \
             --fresh, or name other data with --data DIR"
        )));
    }

    Ok(())
}

/// Returns the players: those of a file, or those of the command line and strategies of the game.
/// Players of other machines register by themselves and take the lowest ids, so they come first.
fn entrants(args: &Args, kind: LeagueKind) -> Result<Vec<Entrant>, Exit> {
    let sources = ["--entrants", "--new", "--mine"];
    if sources.iter().filter(|source| args.has(source)).count() > 1 {
        let sources = sources.join(", ");
        let problem = format!("only one of {sources} says who plays");
        return Err(Exit::usage(problem));
    }

    for [one, other] in [["--entrants", "--players"], ["--new", "--cycles"]] {
        if args.has(one) && args.has(other) {
            return Err(Exit::usage(format!("{one} needs no {other}")));
        }
    }

    if args.has("--old") && !args.has("--new") {
        let hint = "--old is what --new is compared with";
        return Err(Exit::usage(format!("--old needs --new: {hint}")));
    }

    let mut entrants = match args.text("--entrants") {
        Some(file) => entrants::read(Path::new(file))?,
        None => chosen_entrants(args, kind)?,
    };

    entrants.sort_by_key(|entrant| !entrant.is_remote());
    Ok(entrants)
}

/// Returns the players of the command line, and as many strategies of the game as are missing. In a
/// league that is no practice they have the names of the configuration.
fn chosen_entrants(args: &Args, kind: LeagueKind) -> Result<Vec<Entrant>, Exit> {
    let config = load_config(args)?;
    let mut strategies = strategies::names(&config.league.game_type);
    if !kind.is_practice() {
        strategies.truncate(FILLERS);
    }

    let commands = own_commands(args);
    let (min, default) = match kind {
        LeagueKind::Comparison => {
            let all = commands.len() + strategies.len();
            (MIN_COMPARED, all.max(MIN_COMPARED))
        }
        _ => (commands.len(), 4.max(commands.len() + 1)),
    };

    let players = args.number("--players", 0..=usize::MAX)?.unwrap_or(default);
    if players < min {
        let problem = format!("--players: got {players}, expected at least {min}");
        return Err(Exit::usage(problem));
    }

    let mut entrants = name_players(&commands, &strategies, players);
    if !kind.is_practice() {
        for (entrant, listed) in entrants.iter_mut().zip(&config.agents.players) {
            entrant.name = listed.display_name.clone();
        }
    }

    Ok(entrants)
}

/// Returns the commands of the two players that are compared, or those of `--mine`, which may be
/// given several times, with several commands each.
fn own_commands(args: &Args) -> Vec<&str> {
    if let Some(new) = args.text("--new") {
        return vec![new, args.text("--old").unwrap_or("random")];
    }

    let values = args.all("--mine").iter();
    values.flat_map(|value| entrants::commands(value)).collect()
}

/// Returns the names of the user's own players: those of the command line, or those of a file that
/// are no finished strategies.
fn own_names(args: &Args, entrants: &[Entrant]) -> Vec<String> {
    let commands = own_commands(args);
    let mut own = name_players(&commands, &[], commands.len());
    if args.has("--entrants") {
        own = entrants.to_vec();
        own.retain(Entrant::is_own);
    }

    own.into_iter().map(|entrant| entrant.name).collect()
}

/// Returns as many players: first those commands, then the strategies in turn. Each has a name of
/// its own.
pub fn name_players(commands: &[&str], strategies: &[&str], players: usize) -> Vec<Entrant> {
    let commands = commands.iter().chain(strategies.iter().cycle());
    let mut numbers = BTreeMap::new();
    let mut entrants = Vec::new();
    for command in commands.take(players) {
        let mut entrant = Entrant::of(command);
        let number = numbers.entry(entrant.name.clone()).or_insert(0);
        *number += 1;
        if *number > 1 {
            entrant.name += &format!(" {number}");
        }
        entrants.push(entrant);
    }

    entrants
}
