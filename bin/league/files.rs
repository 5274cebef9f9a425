//! The files that the tool brings along or finds: the shipped configuration, the journal of the
//! league in a data folder, and the documents of leagues that are over.

use crate::show::view::LeagueView;
use league::manager::league::{Event, League};
use league::program::args::{Args, Exit};
use league::program::storage::{self, Access, league_folder};
use league::program::terminal::print_error;
use league::program::{data_folder, load_config};
use league::protocol::LeaguePhase;
use std::fs;
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

/// Returns the league of the command line as its journal has it; none if there is no journal that
/// can be read.
pub fn stored_league(args: &Args) -> Result<Option<League>, Exit> {
    let config = load_config(args)?;
    let folder = league_folder(&data_folder(args), &config.league.league_id);
    let Ok(text) = storage::read_text(&folder.join("journal.jsonl")) else {
        return Ok(None);
    };

    // The first line has the version, and the last one may be cut off by a kill.
    let mut league = League::new(config);
    let (complete, _) = text.rsplit_once('\n').unwrap_or_default();
    let lines = complete.lines().filter(|line| !line.trim().is_empty());
    for line in lines.skip(1) {
        match serde_json::from_str::<Event>(line) {
            Ok(event) => league.apply(&event),
            Err(_) => return Ok(None), // the manager refuses the journal, and says why
        }
    }

    Ok(Some(league))
}

/// Returns the documents of the leagues of that id that were played to their end in a data folder,
/// also of those that were set aside.
pub fn finished_leagues(data: &Path, league_id: &str) -> Vec<LeagueView> {
    let mut leagues = Vec::new();
    for entry in fs::read_dir(data.join("leagues"))
        .into_iter()
        .flatten()
        .flatten()
    {
        match storage::read_json(&entry.path().join("league.json")) {
            Ok(document) => leagues.extend(document),
            Err(error) => print_error(&format!("{error}; this league is left out")),
        }
    }

    leagues.retain(|league: &LeagueView| {
        league.league_id == league_id && league.status == LeaguePhase::Completed
    });
    leagues
}
