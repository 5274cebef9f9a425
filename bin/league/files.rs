//! The files that the tool brings along or finds: the shipped configuration, the journal of the
//! league in a data folder, and the documents of leagues that are over.

use crate::page::view::LeagueView;
use league::manager::league::{Event, League};
use league::program::args::{Args, Exit};
use league::program::storage::{self, Access, league_folder};
use league::program::terminal::print_error;
use league::program::{data_folder, load_config};
use league::protocol::LeaguePhase;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;

/// The shipped configuration.
const CONFIG_FILES: [(&str, &str); 7] = [
    ("system.json", include_str!("../../config/system.json")),
    (
        "agents/agents_config.json",
        include_str!("../../config/agents/agents_config.json"),
    ),
    (
        "leagues/league_2025_even_odd.json",
        include_str!("../../config/leagues/league_2025_even_odd.json"),
    ),
    (
        "leagues/league_2025_tic_tac_toe.json",
        include_str!("../../config/leagues/league_2025_tic_tac_toe.json"),
    ),
    (
        "games/games_registry.json",
        include_str!("../../config/games/games_registry.json"),
    ),
    (
        "defaults/referee.json",
        include_str!("../../config/defaults/referee.json"),
    ),
    (
        "defaults/player.json",
        include_str!("../../config/defaults/player.json"),
    ),
];

/// Writes the shipped configuration if there is no folder `config` and no other is named.
pub fn provide_config(args: &Args) -> Result<(), Exit> {
    let folder = Path::new("config");
    if args.has("--config") || folder.exists() {
        return Ok(());
    }
    for (name, text) in CONFIG_FILES {
        storage::replace(&folder.join(name), Access::AllUsers, text)?;
    }
    print_error("there was no folder config here: it is made now, with the usual configuration");

    Ok(())
}

/// Returns the events in the journal of a league's folder. The first line has its version.
pub fn read_journal(folder: &Path) -> io::Result<Vec<Event>> {
    read_lines(&folder.join("journal.jsonl"), 1)
}

/// Returns the records of a file of JSON lines, without the first ones. A last line that was cut
/// off by a kill is left out.
pub fn read_lines<T: DeserializeOwned>(path: &Path, skipped: usize) -> io::Result<Vec<T>> {
    let text = storage::read_text(path)?;
    let (complete, _) = text.rsplit_once('\n').unwrap_or_default();

    let mut records = Vec::new();
    for line in complete.lines().skip(skipped) {
        let record = serde_json::from_str(line);
        records.push(record.map_err(|error| storage::with_path(path, error.into()))?);
    }

    Ok(records)
}

/// Returns the league of the command line as its journal has it; none if there is no journal that
/// can be read.
pub fn stored_league(args: &Args) -> Result<Option<League>, Exit> {
    let config = load_config(args)?;
    let folder = league_folder(&data_folder(args), &config.league.league_id);
    let Ok(events) = read_journal(&folder) else {
        return Ok(None);
    };

    let mut league = League::new(config);
    for event in &events {
        league.apply(event);
    }
    Ok(Some(league))
}

/// Returns the documents of the leagues of that id that were played to their end in a data folder,
/// also of those that were set aside and of practices.
pub fn finished_leagues(data: &Path, league_id: &str) -> Vec<LeagueView> {
    let mut leagues = Vec::new();
    for folder in [data.join("leagues"), data.join("practice/leagues")] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match storage::read_json(&entry.path().join("league.json")) {
                Ok(document) => leagues.extend(document),
                Err(error) => print_error(&format!("{error}; this league is left out")),
            }
        }
    }

    leagues.retain(|league: &LeagueView| {
        league.league_id == league_id && league.status == LeaguePhase::Completed
    });
    leagues
}

/// Returns the document of the finished league in a data folder. The error says how far the league
/// is instead.
pub fn finished_league(data: &Path, league_id: &str) -> Result<LeagueView, String> {
    let folder = league_folder(data, league_id);
    if data.exists() && !folder.exists() {
        return Err(format!("foreign, for it holds no league {league_id}"));
    }
    let document = storage::read_json(&folder.join("league.json"));
    if let Some(view) = document.map_err(|error| format!("broken, for {error}"))? {
        return Ok(view);
    }

    let schedule: Option<Value> = storage::read_json(&folder.join("rounds.json")).unwrap_or(None);
    let schedule = schedule.unwrap_or_default();
    let rounds = schedule["rounds"].as_array().into_iter().flatten();
    let matches = rounds.flat_map(|round| round["matches"].as_array().into_iter().flatten());
    let statuses: Vec<&Value> = matches.map(|the_match| &the_match["status"]).collect();
    if statuses.iter().all(|status| *status == "scheduled") {
        return Err("waiting".into());
    }

    let all = statuses.len();
    let played = statuses.into_iter().filter(|status| *status == "completed");
    let played = played.count();
    Err(format!("running, with {played} of {all} matches played"))
}
