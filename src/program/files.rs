//! The configuration files: how they are read, and what no type can say of what is legal in them.
//!
//! A key that is unknown, missing, mistyped or illegal ends the program with one line that names
//! file and key, what stands there and what would be legal. What no type can say (two keys that
//! must fit together, ids that must differ) stands in one table of checks per file. The files are
//! looked for in the folder `config`; a program that finds no such folder goes by the files that
//! were built into it.

use crate::games;
use crate::program::config::*;
use crate::protocol::Kind;
use crate::wire::{Endpoint, Fault, Plain, Wire, unknown_key};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

macro_rules! built_in {
    ($($name:literal)*) => {
        /// The files as they are shipped, for a program that has no folder of its own: name and
        /// text.
        const BUILT_IN: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../config/", $name)))),*];
    };
}
built_in! {
    "system.json" "agents/agents_config.json" "leagues/league_2025_even_odd.json"
    "leagues/league_2025_tic_tac_toe.json" "games/games_registry.json" "defaults/referee.json" "defaults/player.json"
}

/// Takes one row of a table of checks: the key, whether what stands there is legal, and what would
/// be.
type Check<'a> = &'a mut dyn FnMut(&str, bool, &str);

impl Config {
    /// Reads all files below `folder`, or those that are built in, for one league: the named one,
    /// or the default one.
    pub fn load(folder: Option<&Path>, league_id: Option<Plain>) -> Result<Config, String> {
        let system = read(folder, "system.json", check_system)?;
        let league_id = league_id.as_ref().unwrap_or(&system.default_league_id);
        let games = read(folder, "games/games_registry.json", check_games)?;
        let league = read(
            folder,
            &format!("leagues/{}.json", league_id.0),
            |file, check| check_league(file, &league_id.0, &games, check),
        )?;
        Ok(Config {
            agents: read(folder, "agents/agents_config.json", check_agents)?,
            referee_defaults: read(folder, "defaults/referee.json", |_, _| {})?,
            player_defaults: read(folder, "defaults/player.json", |_, _| {})?,
            league,
            games,
            system,
        })
    }
}

fn check_system(file: &SystemFile, check: Check) {
    let network = &file.network;
    let is_host = Endpoint::parse(&format!("http://{}/", network.base_host)).is_ok();
    check("network.base_host", is_host, "a host name");
    let ranges = [
        ("referee", &network.default_referee_port_range),
        ("player", &network.default_player_port_range),
    ];
    for (name, range) in ranges {
        let good = matches!(range[..], [first, last] if 0 < first && first <= last);
        let key = format!("network.default_{name}_port_range");
        check(&key, good, "[first, last]");
    }
    let hours = file.security.token_ttl_hours;
    let good = hours > 0.0 && hours <= 87_600.0;
    check(
        "security.token_ttl_hours",
        good,
        "more than 0, at most 87600 hours",
    );
}

/// The registry may only say what the game itself says.
fn check_games(file: &GamesFile, check: Check) {
    for (n, entry) in file.games.iter().enumerate() {
        let Some(game) = games::named(&entry.game_type) else {
            let key = format!("games[{n}].game_type");
            return check(&key, false, "a game that this program can play");
        };
        let choices = json!((game.legal)(&[]));
        let numbers = game.draws.as_ref().map(|it| [*it.start(), *it.end()]);
        for (key, came, expected) in [
            ("choices", json!(entry.choices), choices),
            ("number_range", json!(entry.number_range), json!(numbers)),
        ] {
            let key = format!("games[{n}].{key}");
            let is_good = came.is_null() || came == expected;
            check(&key, is_good, &expected.to_string());
        }
    }
}

fn check_league(file: &LeagueFile, league_id: &str, games: &GamesFile, check: Check) {
    let is_its_own = file.league_id == league_id;
    check("league_id", is_its_own, &format!("{league_id:?}"));
    let mut registered = games.games.iter();
    let is_registered = registered.any(|game| game.game_type == file.game_type);
    check("game_type", is_registered, "a game of games_registry.json");
    let [win, draw, loss, technical_loss] = file.scoring.points();
    let falls = win > draw && draw > loss && loss >= technical_loss;
    let is_small = win <= 1000 && technical_loss >= -1000;
    let expected = "win > draw > loss >= technical loss, each within 1000";
    check("scoring", falls && is_small, expected);
    let people = &file.participants;
    let has_room = people.max_players.0 >= people.min_players.0;
    check("participants.max_players", has_room, "at least min_players");
}

/// Every listed agent has an id and an endpoint of its own.
fn check_agents(file: &AgentsFile, check: Check) {
    let mut ids = BTreeSet::new();
    let mut endpoints = BTreeSet::from([Endpoint::parse(&file.league_manager.endpoint.0).ok()]);
    let lists = [
        (Kind::Referee, &file.referees, "endpoint"),
        (Kind::Player, &file.players, "default_endpoint"),
    ];
    for (kind, list, endpoint_key) in lists {
        let like = format!("{}, {}, …, each once", kind.numbered(1), kind.numbered(2));
        for (n, entry) in list.iter().enumerate() {
            let id = entry.id();
            let is_good = kind.is_id(id) && ids.insert(id);
            check(&format!("{kind}s[{n}].{kind}_id"), is_good, &like);
            let endpoint = Endpoint::parse(entry.url()).ok();
            let is_own = endpoint.is_some() && endpoints.insert(endpoint);
            let key = format!("{kind}s[{n}].{endpoint_key}");
            check(&key, is_own, "an endpoint of its own");
        }
    }
}

/// Reads a file, and checks its keys.
fn read<T: Wire>(
    folder: Option<&Path>,
    name: &str,
    checks: impl FnOnce(&T, Check),
) -> Result<T, String> {
    let (shown, text) = text(folder, name)?;
    let value = serde_json::from_str(&text);
    let value = value.map_err(|error| format!("{shown}: not JSON: {error}"))?;
    checked(&value, checks).map_err(|fault| format!("{shown}: {fault}"))
}

/// Reads what stands in a file; the first thing that is wrong ends it.
fn checked<T: Wire>(value: &Value, checks: impl FnOnce(&T, Check)) -> Result<T, Fault> {
    unknown_key(value, &T::schema()).map_or(Ok(()), Err)?;
    let file = T::read(value)?;
    let mut first_fault = None;
    checks(&file, &mut |key, good, expected| {
        if !good && first_fault.is_none() {
            let place = format!("/{}", key.replace(']', "").replace(['.', '['], "/"));
            let came = value.pointer(&place).unwrap_or(&Value::Null);
            first_fault = Some(Fault::new(came, expected).under(key));
        }
    });
    first_fault.map_or(Ok(file), Err)
}

/// What stands in a file, and how the file is called.
fn text(folder: Option<&Path>, name: &str) -> Result<(String, String), String> {
    let Some(folder) = folder else {
        let built_in = BUILT_IN.iter().find(|(its, _)| *its == name);
        let (_, text) = built_in.ok_or(format!("{name} is not built in; name a folder with it"))?;
        return Ok((format!("built-in {name}"), text.to_string()));
    };
    let path = folder.join(name).display().to_string();
    let elsewhere = "run this where the folder config is, or name another with --config DIR";
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(format!("{path}: {error}; {elsewhere}")),
    }
}
