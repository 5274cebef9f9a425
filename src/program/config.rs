//! The configuration files: which keys they have, and what is legal in each.
//!
//! A key that is unknown, missing, mistyped or illegal ends the program with one line that names file and key, what
//! stands there and what would be legal. The types below say most of it; what no type can say (two keys that must fit
//! together, ids that must differ) stands in one table of checks per file. The files are looked for in the folder
//! `config`; a program that finds no such folder goes by the files that were built into it. The command line overrules
//! all of them. Read next: `args.rs`.

use crate::games::{self, scoring::Scoring};
use crate::net::retry::RetryPolicy;
use crate::protocol::Kind;
use crate::wire::{DisplayName, Endpoint, Fault, Plain, Url, Version, Wire, Within, unknown_key};
use crate::{object, words};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

words! {
    /// The only protocol there is.
    ProtocolVersion { V2 = "league.v2", }
    /// The only format of a league.
    Format { RoundRobin = "round_robin", }
    /// Only an active league is played.
    LeagueState { Active = "ACTIVE", }
}

object! {
    /// `system.json`.
    SystemFile {
        schema_version: String, system_id: String, protocol_version: ProtocolVersion, default_league_id: Plain,
        network: Network, security: Security, timeouts: Timeouts, retry_policy: RetryPolicy,
        ; optional limits: Limits,
    }
    /// Where agents listen.
    Network {
        base_host: String, default_league_manager_port: u16,
        default_referee_port_range: Vec<u16>, default_player_port_range: Vec<u16>,
    }
    /// Tokens and envelopes. The length is in hex digits.
    Security {
        enable_auth_tokens: bool, token_length: Within<32, 256>, token_ttl_hours: f64,
        ; optional strict_envelope: bool,
    }
    /// How long things may take.
    Timeouts {
        register_referee_timeout_sec: Duration, register_player_timeout_sec: Duration,
        game_join_ack_timeout_sec: Duration, move_timeout_sec: Duration, generic_response_timeout_sec: Duration,
        ; optional game_over_timeout_sec: Duration,
    }
    /// Bytes of a message from an agent.
    Limits { max_message_bytes: Within<1024, 1048576>, }
    /// `agents/agents_config.json`.
    AgentsFile {
        schema_version: String, last_updated: String, league_manager: ManagerEntry,
        referees: Vec<AgentEntry>, players: Vec<AgentEntry>,
    }
    /// Where the manager is found, and how it signs.
    ManagerEntry { display_name: DisplayName, endpoint: Url, version: Version, ; optional agent_id: Plain, }
    /// A referee or a player: one of the list, or in `defaults/` what holds for whoever is not listed. The checks below
    /// say which of the optional keys are needed where. Without `game_types` it plays every game that its program can.
    AgentEntry {
        display_name: DisplayName, version: Version,
        ; optional referee_id: String, player_id: String, endpoint: Url, default_endpoint: Url, game_types: Vec<String>,
        max_concurrent_matches: Within<1, 10>, active: bool,
    }
    /// `leagues/ID.json`.
    LeagueFile {
        schema_version: String, league_id: String, display_name: String, game_type: String, status: LeagueState,
        created_at: String, scoring: Scoring, scheduling: Scheduling, participants: Participants,
    }
    /// `matches_per_round` follows from the players; a file that says otherwise is warned about.
    Scheduling {
        format: Format, matches_per_round: u32,
        ; optional cycles: Within<1, 100>, round_announcement_lead_sec: Within<0, 86400>,
    }
    /// How many players may play.
    Participants { min_players: Within<2, 200>, max_players: Within<2, 200>, }
    /// `games/games_registry.json`.
    GamesFile { schema_version: String, games: Vec<GameEntry>, }
    /// A game that can be played. What the optional keys say follows from the game.
    GameEntry {
        game_type: String, display_name: String, players: Within<2, 2>,
        ; optional choices: Vec<String>, number_range: Vec<u32>,
    }
}

impl AgentEntry {
    /// Its id; empty for one that is not listed.
    pub fn id(&self) -> &str {
        let id = self.referee_id.as_ref().or(self.player_id.as_ref());
        id.map_or("", String::as_str)
    }

    /// Where it is called; empty for one that is not listed.
    pub fn url(&self) -> &str {
        let url = self.endpoint.as_ref().or(self.default_endpoint.as_ref());
        url.map_or("", |url| &*url.0)
    }
}

macro_rules! built_in {
    ($($name:literal)*) => {
        /// The files as they are shipped, for a program that has no folder of its own: name and text.
        const BUILT_IN: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../config/", $name)))),*];
    };
}
built_in! {
    "system.json" "agents/agents_config.json" "leagues/league_2025_even_odd.json"
    "leagues/league_2025_tic_tac_toe.json" "games/games_registry.json" "defaults/referee.json" "defaults/player.json"
}

/// Takes one row of a table of checks: the key, whether what stands there is legal, and what would be.
type Check<'a> = &'a mut dyn FnMut(&str, bool, &str);

/// All files, as they were read.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "one file each")]
pub struct Config {
    pub system: SystemFile,
    pub agents: AgentsFile,
    pub league: LeagueFile,
    pub games: GamesFile,
    pub referee_defaults: AgentEntry,
    pub player_defaults: AgentEntry,
}

impl Config {
    /// Reads all files below `folder`, or those that are built in, for one league: the named one, or the default one.
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

    /// The URL of the manager.
    pub fn manager(&self) -> &str {
        &self.agents.league_manager.endpoint.0
    }

    /// What the files say of a referee or a player: its own entry, or the defaults for one that no list names.
    pub fn agent(&self, kind: Kind, id: &str) -> &AgentEntry {
        let default = match kind {
            Kind::Referee => &self.referee_defaults,
            _ => &self.player_defaults,
        };
        let mut listed = self.listed(kind).iter();
        listed.find(|it| it.id() == id).unwrap_or(default)
    }

    /// The listed referees, or the listed players.
    pub fn listed(&self, kind: Kind) -> &[AgentEntry] {
        match kind {
            Kind::Referee => &self.agents.referees,
            _ => &self.agents.players,
        }
    }

    /// How often everybody meets everybody.
    pub fn cycles(&self) -> u32 {
        let given = self.league.scheduling.cycles.as_ref();
        given.map_or(1, |cycles| cycles.0)
    }

    /// The ports for agents that no list names.
    pub fn port_range(&self, kind: Kind) -> RangeInclusive<u16> {
        let network = &self.system.network;
        let range = match kind {
            Kind::Referee => &network.default_referee_port_range,
            _ => &network.default_player_port_range,
        };
        range[0]..=range[1] // two, as checked
    }

    /// How long a token is good.
    pub fn token_lifetime(&self) -> Duration {
        Duration::from_secs_f64(self.system.security.token_ttl_hours * 3600.0)
    }

    /// Whether a request must bring its whole envelope.
    pub fn strict_envelope(&self) -> bool {
        self.system.security.strict_envelope != Some(false)
    }

    /// The largest message of an agent, in bytes: 10 KB unless the file says otherwise.
    pub fn max_message_bytes(&self) -> usize {
        let given = self.system.limits.as_ref();
        given.map_or(10 << 10, |limits| limits.max_message_bytes.0 as usize)
    }

    /// How long a player may take to note how its match ended.
    pub fn game_over_limit(&self) -> Duration {
        let given = self.system.timeouts.game_over_timeout_sec;
        given.unwrap_or(Duration::from_secs(5))
    }

    /// How long an answer may take that has no time limit of its own.
    pub fn generic_limit(&self) -> Duration {
        self.system.timeouts.generic_response_timeout_sec
    }

    /// How long the manager may take to answer whoever registers.
    pub fn registration_limit(&self, kind: Kind) -> Duration {
        let timeouts = &self.system.timeouts;
        match kind {
            Kind::Player => timeouts.register_player_timeout_sec,
            _ => timeouts.register_referee_timeout_sec,
        }
    }

    /// The longest that one match can take, from its invitation to its report: what a referee is waited for.
    pub fn match_limit(&self) -> Duration {
        let retry = &self.system.retry_policy;
        let timeouts = &self.system.timeouts;
        let turns = games::named(&self.league.game_type).map_or(1, |game| game.turns);
        let asked = retry.longest(timeouts.game_join_ack_timeout_sec)
            + retry.longest(timeouts.move_timeout_sec) * turns;
        asked + self.game_over_limit() + retry.longest(self.generic_limit())
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
