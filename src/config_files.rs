//! The JSON configuration files: their keys, and what is legal in them (004, R14). One that is unknown, missing,
//! mistyped or illegal is one line that names file and key, what came and what is legal.

use crate::{
    endpoint::Endpoint,
    files::is_plain,
    game::NUMBERS,
    object,
    protocol::{GAME, Kind, PROTOCOL},
    registration::{MATCHES_AT_ONCE, NAME_LENGTH, is_id, is_version, numbered},
    standings::TieBreak,
    wire::{Wire, unknown_key},
    words,
};
use serde_json::Value;
use std::{path::Path, time::Duration};

words! {
    /// How the delay before a retry grows.
    Backoff { Exponential = "exponential", Fixed = "fixed", }
}

object! {
    /// `system.json`.
    SystemFile {
        schema_version: String, system_id: String, protocol_version: String, default_league_id: String,
        network: Network, security: Security, timeouts: Timeouts, retry_policy: RetryFile,
        ; optional limits: Limits,
    }
    /// Where agents listen.
    Network {
        base_host: String, default_league_manager_port: u16,
        default_referee_port_range: Vec<u16>, default_player_port_range: Vec<u16>,
    }
    /// Tokens and envelopes.
    Security { enable_auth_tokens: bool, token_length: u32, token_ttl_hours: f64, ; optional strict_envelope: bool, }
    /// Seconds, also in fractions.
    Timeouts {
        register_referee_timeout_sec: f64, register_player_timeout_sec: f64, game_join_ack_timeout_sec: f64,
        move_timeout_sec: f64, generic_response_timeout_sec: f64,
        ; optional game_over_timeout_sec: f64,
    }
    /// `max_retries` is the number of attempts in all (R7).
    RetryFile { max_retries: u32, base_delay_sec: f64, backoff_strategy: Backoff, }
    /// Bytes of a message from an agent.
    Limits { ; optional max_message_bytes: u32, }
    /// `agents/agents_config.json`.
    AgentsFile {
        schema_version: String, last_updated: String, league_manager: ManagerEntry,
        referees: Vec<RefereeEntry>, players: Vec<PlayerEntry>,
    }
    /// Where the manager is found, and how it signs.
    ManagerEntry { display_name: String, endpoint: String, version: String, ; optional agent_id: String, }
    /// A listed referee.
    RefereeEntry {
        referee_id: String, display_name: String, endpoint: String, version: String, game_types: Vec<String>,
        max_concurrent_matches: u32, active: bool,
    }
    /// A listed player.
    PlayerEntry {
        player_id: String, display_name: String, version: String, game_types: Vec<String>,
        default_endpoint: String, active: bool,
    }
    /// `leagues/ID.json`.
    LeagueFile {
        schema_version: String, league_id: String, display_name: String, game_type: String, status: String,
        created_at: String, scoring: ScoringFile, scheduling: Scheduling, participants: Participants,
    }
    /// Points, and what decides between equals.
    ScoringFile {
        win_points: i32, draw_points: i32, loss_points: i32, technical_loss_points: i32, tiebreakers: Vec<TieBreak>,
    }
    /// `matches_per_round` follows from the players; a file that says otherwise is warned about.
    Scheduling {
        format: String, matches_per_round: u32,
        ; optional cycles: u32, round_announcement_lead_sec: f64,
    }
    /// How many players may play.
    Participants { min_players: u32, max_players: u32, }
    /// `games/games_registry.json`.
    GamesFile { schema_version: String, games: Vec<GameEntry>, }
    /// A game that can be played.
    GameEntry {
        game_type: String, display_name: String, players: u32, choices: Vec<String>, number_range: Vec<u32>,
    }
    /// `defaults/referee.json`: a referee that no list names.
    RefereeDefaults { display_name: String, version: String, game_types: Vec<String>, max_concurrent_matches: u32, }
    /// `defaults/player.json`: a player that no list names; the strategy of all.
    PlayerDefaults { display_name: String, version: String, game_types: Vec<String>, strategy: String, }
}

/// The largest message of an agent, unless the file says otherwise (R11).
pub(crate) const MAX_MESSAGE_BYTES: u32 = 10 << 10;

/// Reads a file and checks its keys.
pub(crate) fn read<T: Wire>(folder: &Path, name: &str) -> Result<T, String> {
    let path = folder.join(name);
    let shown = path.display();
    let elsewhere = "run this where the folder config is, or name another with --config DIR";
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}; {elsewhere}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{shown}: not JSON: {error}"))?;
    let read = unknown_key(&value, &T::schema()).map_or_else(|| T::read(&value), Err);
    read.map_err(|fault| format!("{shown}: {fault}"))
}

/// One line for one bad value.
pub(crate) fn legal(good: bool, file: &str, key: &str, came: impl std::fmt::Debug, legal: &str) -> Result<(), String> {
    if good { Ok(()) } else { Err(format!("{file}: {key}: got {came:?}, expected {legal}")) }
}

pub(crate) fn seconds(file: &str, key: &str, came: f64) -> Result<Duration, String> {
    let duration = Duration::try_from_secs_f64(came).ok().filter(|duration| *duration < Duration::from_secs(86_400));
    duration.ok_or_else(|| format!("{file}: {key}: got {came}, expected seconds from 0 to 86400"))
}

pub(crate) fn some_seconds(file: &str, key: &str, came: f64) -> Result<Duration, String> {
    let duration = seconds(file, key, came)?;
    legal(duration > Duration::ZERO, file, key, came, "more than 0 seconds").map(|()| duration)
}

pub(crate) fn check_system(system: &SystemFile) -> Result<(), String> {
    let (file, network, security) = ("system.json", &system.network, &system.security);
    legal(system.protocol_version == PROTOCOL, file, "protocol_version", &system.protocol_version, PROTOCOL)?;
    let host = Endpoint::parse(&format!("http://{}/", network.base_host)).is_ok();
    legal(host, file, "network.base_host", &network.base_host, "a host name")?;
    for (key, range) in [
        ("network.default_referee_port_range", &network.default_referee_port_range),
        ("network.default_player_port_range", &network.default_player_port_range),
    ] {
        let good = matches!(range[..], [first, last] if first <= last && first > 0);
        legal(good, file, key, range, "[first, last]")?;
    }
    let length = security.token_length;
    legal((32..=256).contains(&length), file, "security.token_length", length, "32 to 256")?;
    let hours = security.token_ttl_hours;
    legal(hours > 0.0 && hours <= 87_600.0, file, "security.token_ttl_hours", hours, "more than 0, at most 87600")?;
    let attempts = system.retry_policy.max_retries;
    legal((1..=100).contains(&attempts), file, "retry_policy.max_retries", attempts, "1 to 100 attempts in all")?;
    let bytes = system.limits.as_ref().and_then(|limits| limits.max_message_bytes).unwrap_or(MAX_MESSAGE_BYTES);
    legal((1024..=1 << 20).contains(&bytes), file, "limits.max_message_bytes", bytes, "1024 to 1048576")
}

/// What the manager demands of a registration (R5).
fn check_named(file: &str, key: &str, display_name: &str, version: &str) -> Result<(), String> {
    let length = display_name.chars().count();
    legal(NAME_LENGTH.contains(&length), file, &format!("{key}.display_name"), display_name, "1 to 50 characters")?;
    legal(is_version(version), file, &format!("{key}.version"), version, "MAJOR.MINOR.PATCH")
}

/// What agents that no list names take.
pub(crate) fn check_defaults(referee: &RefereeDefaults, player: &PlayerDefaults) -> Result<(), String> {
    let at_once = referee.max_concurrent_matches;
    legal(MATCHES_AT_ONCE.contains(&at_once), "defaults/referee.json", "max_concurrent_matches", at_once, "1 to 10")?;
    check_named("defaults", "referee.json", &referee.display_name, &referee.version)?;
    check_named("defaults", "player.json", &player.display_name, &player.version)
}

pub(crate) fn check_agents(agents: &AgentsFile) -> Result<(), String> {
    let file = "agents_config.json";
    let managers = [("league_manager.endpoint".to_string(), &agents.league_manager.endpoint)];
    let referees = agents.referees.iter().enumerate().map(|(n, it)| (format!("referees[{n}].endpoint"), &it.endpoint));
    let players = agents.players.iter().enumerate();
    let players = players.map(|(n, it)| (format!("players[{n}].default_endpoint"), &it.default_endpoint));
    let mut seen = Vec::new();
    for (key, url) in managers.into_iter().chain(referees).chain(players) {
        let endpoint = Endpoint::parse(url).map_err(|legal| format!("{file}: {key}: got {url:?}, expected {legal}"))?;
        legal(!seen.contains(&endpoint), file, &key, url, "an endpoint of its own")?;
        seen.push(endpoint);
    }
    let manager = &agents.league_manager;
    check_named(file, "league_manager", &manager.display_name, &manager.version)?;
    let named = manager.agent_id.as_ref().is_none_or(|id| is_plain(id));
    legal(named, file, "league_manager.agent_id", &manager.agent_id, "letters, digits, _ and -")?;
    for (n, player) in agents.players.iter().enumerate() {
        check_named(file, &format!("players[{n}]"), &player.display_name, &player.version)?;
    }
    for (n, referee) in agents.referees.iter().enumerate() {
        check_named(file, &format!("referees[{n}]"), &referee.display_name, &referee.version)?;
        let (key, came) = (format!("referees[{n}].max_concurrent_matches"), referee.max_concurrent_matches);
        legal(MATCHES_AT_ONCE.contains(&came), file, &key, came, "1 to 10")?;
    }
    let mut ids = Vec::new();
    let referees = agents
        .referees
        .iter()
        .enumerate()
        .map(|(n, it)| (Kind::Referee, format!("referees[{n}].referee_id"), &it.referee_id));
    let players = agents
        .players
        .iter()
        .enumerate()
        .map(|(n, it)| (Kind::Player, format!("players[{n}].player_id"), &it.player_id));
    for (kind, key, id) in referees.chain(players) {
        let good = is_id(kind, id) && !ids.contains(&id);
        legal(good, file, &key, id, &format!("{}, {}, …, each once", numbered(kind, 1), numbered(kind, 2)))?;
        ids.push(id);
    }
    Ok(())
}

pub(crate) fn check_league(league: &LeagueFile, league_id: &str, games: &GamesFile) -> Result<(), String> {
    let file = format!("leagues/{league_id}.json");
    let (file, points, people) = (file.as_str(), &league.scoring, &league.participants);
    legal(league.league_id == league_id, file, "league_id", &league.league_id, &format!("{league_id:?}"))?;
    legal(league.status == "ACTIVE", file, "status", &league.status, "\"ACTIVE\"")?;
    let format = &league.scheduling.format;
    legal(format == "round_robin", file, "scheduling.format", format, "\"round_robin\"")?;
    let known = games.games.iter().any(|game| game.game_type == league.game_type);
    legal(known, file, "game_type", &league.game_type, "a game of games_registry.json")?;
    let came = [points.win_points, points.draw_points, points.loss_points, points.technical_loss_points];
    let falling = came[0] > came[1] && came[1] > came[2] && came[2] >= came[3];
    let small = came.iter().all(|points| points.abs() <= 1000);
    legal(falling && small, file, "scoring", came, "win > draw > loss >= technical loss, each within 1000")?;
    let cycles = league.scheduling.cycles.unwrap_or(1);
    legal((1..=100).contains(&cycles), file, "scheduling.cycles", cycles, "1 to 100")?;
    let (min, max) = (people.min_players, people.max_players);
    legal(min >= 2, file, "participants.min_players", min, "at least 2")?;
    legal(max >= min, file, "participants.max_players", max, "at least min_players")
}

pub(crate) fn check_games(games: &GamesFile) -> Result<(), String> {
    let file = "games_registry.json";
    for (n, game) in games.games.iter().enumerate() {
        let key = |key: &str| format!("games[{n}].{key}");
        legal(game.game_type == GAME, file, &key("game_type"), &game.game_type, GAME)?;
        legal(game.players == 2, file, &key("players"), game.players, "2")?;
        legal(game.choices == ["even", "odd"], file, &key("choices"), &game.choices, "[\"even\", \"odd\"]")?;
        let range = [*NUMBERS.start(), *NUMBERS.end()];
        legal(game.number_range == range, file, &key("number_range"), &game.number_range, "[1, 10]")?;
    }
    Ok(())
}
