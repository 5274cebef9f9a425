//! The configuration files: their keys, the checks of their values, and what the values mean to a
//! program. The command line overrules them.
//!
//! A key that is unknown, missing, of a wrong type or illegal ends the program with one line that
//! names the file and the key. Read next: `args.rs`.

use super::storage;
use crate::games::{self, Scoring};
use crate::protocol::AgentKind;
use crate::values::{check_identifier, check_url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Display;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `system.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemFile {
    pub schema_version: String,
    pub system_id: String,
    pub protocol_version: String,
    pub default_league_id: String,
    pub network: Network,
    pub security: Security,
    pub timeouts: Timeouts,
    pub retry_policy: RetryPolicy,
    #[serde(default)]
    pub limits: Limits,
}

/// The addresses of agents that are not listed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    pub base_host: String,
    pub default_league_manager_port: u16,
    pub default_referee_port_range: [u16; 2],
    pub default_player_port_range: [u16; 2],
}

/// Tokens. The length is in hex digits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Security {
    pub enable_auth_tokens: bool,
    pub token_length: u32,
    pub token_ttl_hours: f64,
}

/// Time limits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    pub register_referee_timeout_sec: Seconds,
    pub register_player_timeout_sec: Seconds,
    pub game_join_ack_timeout_sec: Seconds,
    pub move_timeout_sec: Seconds,
    pub generic_response_timeout_sec: Seconds,
    #[serde(default = "default_game_over_timeout")]
    pub game_over_timeout_sec: Seconds,
    #[serde(default = "default_ping_interval")]
    pub ping_interval_sec: Seconds,
}

fn default_game_over_timeout() -> Seconds {
    Seconds(Duration::from_secs(5))
}

fn default_ping_interval() -> Seconds {
    Seconds(Duration::from_secs(60))
}

/// A time of more than zero, in seconds or fractions of them.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(pub Duration);

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Seconds, String> {
        if seconds > 0.0 && seconds <= 86_400.0 {
            return Ok(Seconds(Duration::from_secs_f64(seconds)));
        }

        let expected = "more than 0 seconds, at most 86400";
        Err(format!("got {seconds}, expected {expected}"))
    }
}

/// Attempts, and the delays between them (`attempts.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    /// Number of attempts in all.
    pub max_retries: u32,
    /// Delay before the second attempt.
    pub base_delay_sec: Seconds,
    /// Growth of the delay.
    pub backoff_strategy: Backoff,
}

/// The growth of the delay before an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    Exponential,
    Fixed,
}

/// Maximum size of a message from an agent, in bytes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub max_message_bytes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_message_bytes: 10 << 10,
        }
    }
}

/// `agents/agents_config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentsFile {
    pub schema_version: String,
    pub last_updated: String,
    pub league_manager: ManagerEntry,
    pub referees: Vec<AgentEntry>,
    pub players: Vec<AgentEntry>,
}

/// The address of the manager, and its signature.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerEntry {
    pub display_name: String,
    pub endpoint: String,
    pub version: String,
    pub agent_id: Option<String>,
}

/// A referee or a player of the list; in `defaults/` those that are not listed. Without
/// `game_types` it plays every game that its program knows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentEntry {
    pub display_name: String,
    pub version: String,
    #[serde(default, alias = "referee_id", alias = "player_id")]
    pub id: String,
    #[serde(default, alias = "default_endpoint")]
    pub endpoint: String,
    pub game_types: Option<Vec<String>>,
    pub max_concurrent_matches: Option<u32>,
    pub active: Option<bool>,
}

/// `leagues/ID.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeagueFile {
    pub schema_version: String,
    pub league_id: String,
    pub display_name: String,
    pub game_type: String,
    pub status: String,
    pub created_at: String,
    pub scoring: Scoring,
    pub scheduling: Scheduling,
    pub participants: Participants,
}

/// The schedule. `matches_per_round` is information: it follows from the number of players.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduling {
    pub format: String,
    pub matches_per_round: u32,
    pub cycles: Option<u32>,
    pub round_announcement_lead_sec: Option<u32>,
}

/// The number of players.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Participants {
    pub min_players: u32,
    pub max_players: u32,
}

/// All files.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub system: SystemFile,
    pub agents: AgentsFile,
    pub league: LeagueFile,
    pub referee_defaults: AgentEntry,
    pub player_defaults: AgentEntry,
}

impl Config {
    /// Reads and checks all files below `folder`, for one league: the named one, or the default
    /// one.
    pub fn load(folder: &Path, league_id: Option<&str>) -> Result<Config, String> {
        let system: SystemFile = read(folder, "system.json", check_system)?;
        let league_id = league_id.unwrap_or(&system.default_league_id).to_string();
        let league_file = format!("leagues/{league_id}.json");

        Ok(Config {
            agents: read(folder, "agents/agents_config.json", check_agents)?,
            referee_defaults: read(folder, "defaults/referee.json", |_| Ok(()))?,
            player_defaults: read(folder, "defaults/player.json", |_| Ok(()))?,
            league: read(folder, &league_file, |league| {
                check_league(league, &league_id)
            })?,
            system,
        })
    }

    /// Returns the URL of the manager.
    pub fn manager(&self) -> &str {
        &self.agents.league_manager.endpoint
    }

    /// Returns the entry of a referee or a player, or the defaults if it is not listed.
    pub fn agent(&self, kind: AgentKind, id: &str) -> &AgentEntry {
        let default = match kind {
            AgentKind::Referee => &self.referee_defaults,
            _ => &self.player_defaults,
        };
        let mut listed = self.configured_agents(kind).iter();
        listed.find(|entry| entry.id == id).unwrap_or(default)
    }

    /// Returns the listed referees or the listed players.
    pub fn configured_agents(&self, kind: AgentKind) -> &[AgentEntry] {
        match kind {
            AgentKind::Referee => &self.agents.referees,
            _ => &self.agents.players,
        }
    }

    /// Returns how often each pair meets.
    pub fn cycles(&self) -> u32 {
        self.league.scheduling.cycles.unwrap_or(1)
    }

    /// Returns the ports of agents that are not listed.
    pub fn port_range(&self, kind: AgentKind) -> RangeInclusive<u16> {
        let network = &self.system.network;
        let [first, last] = match kind {
            AgentKind::Referee => network.default_referee_port_range,
            _ => network.default_player_port_range,
        };
        first..=last
    }

    /// Returns the lifetime of a token.
    pub fn token_lifetime(&self) -> Duration {
        Duration::from_secs_f64(self.system.security.token_ttl_hours * 3600.0)
    }

    /// Returns the maximum size of a message from an agent, in bytes.
    pub fn max_message_bytes(&self) -> usize {
        self.system.limits.max_message_bytes as usize
    }

    /// Returns the time limit of an answer that has no limit of its own.
    pub fn generic_limit(&self) -> Duration {
        self.system.timeouts.generic_response_timeout_sec.0
    }

    /// Returns the time limit of a registration.
    pub fn registration_limit(&self, kind: AgentKind) -> Duration {
        let timeouts = &self.system.timeouts;
        match kind {
            AgentKind::Player => timeouts.register_player_timeout_sec.0,
            _ => timeouts.register_referee_timeout_sec.0,
        }
    }

    /// Returns the time limit of GAME_OVER.
    pub fn game_over_limit(&self) -> Duration {
        self.system.timeouts.game_over_timeout_sec.0
    }

    /// Returns the longest time that a match of so many turns can take, with its report.
    pub fn match_limit(&self, turns: u32) -> Duration {
        let retry = &self.system.retry_policy;
        let timeouts = &self.system.timeouts;
        retry.max_total_time(timeouts.game_join_ack_timeout_sec.0)
            + retry.max_total_time(timeouts.move_timeout_sec.0) * turns
            + self.report_limit()
    }

    /// Returns the longest time for which a decided match still keeps its referee: the players are
    /// told, and the manager gets the report.
    pub fn report_limit(&self) -> Duration {
        let retry = &self.system.retry_policy;
        self.game_over_limit() + retry.max_total_time(self.generic_limit())
    }
}

/// Reads and checks a file; the error names it.
fn read<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
    check: impl FnOnce(&T) -> Result<(), String>,
) -> Result<T, String> {
    let path: PathBuf = folder.join(name).components().collect(); // with this system's separators
    let path_text = path.display();
    let text = storage::read_text(&path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::InvalidData => "save it as UTF-8",
            _ => "run this where the folder config is, or name it with --config DIR",
        };
        format!("{error}; {hint}")
    })?;

    let file = serde_json::from_str(&text).map_err(|error| format!("{path_text}: {error}"))?;
    check(&file).map_err(|error| format!("{path_text}: {error}"))?;
    Ok(file)
}

/// Returns an error unless the value of a key is legal.
fn check(key: &str, is_legal: bool, value: impl Display, expected: &str) -> Result<(), String> {
    if is_legal {
        return Ok(());
    }

    Err(format!("{key}: got {value}, expected {expected}"))
}

fn check_word(key: &str, value: &str, expected: &str) -> Result<(), String> {
    check(key, value == expected, value, expected)
}

fn check_text(
    key: &str,
    text: &str,
    check_syntax: fn(&str) -> Result<(), &'static str>,
) -> Result<(), String> {
    check_syntax(text).or_else(|expected| check(key, false, text, expected))
}

fn check_range(key: &str, range: RangeInclusive<u32>, value: u32) -> Result<(), String> {
    let expected = format!("{} to {}", range.start(), range.end());
    check(key, range.contains(&value), value, &expected)
}

fn check_system(file: &SystemFile) -> Result<(), String> {
    check_word("protocol_version", &file.protocol_version, "league.v2")?;
    let id = &file.default_league_id;
    check_text("default_league_id", id, check_identifier)?;

    let digits = file.security.token_length;
    check_range("security.token_length", 32..=256, digits)?;
    let hours = file.security.token_ttl_hours;
    let is_legal = hours > 0.0 && hours <= 87_600.0;
    let expected = "more than 0, at most 87600 hours";
    check("security.token_ttl_hours", is_legal, hours, expected)?;

    let attempts = file.retry_policy.max_retries;
    check_range("retry_policy.max_retries", 1..=100, attempts)?;
    let bytes = file.limits.max_message_bytes;
    check_range("limits.max_message_bytes", 1024..=1_048_576, bytes)
}

fn check_agents(file: &AgentsFile) -> Result<(), String> {
    let manager = &file.league_manager;
    check_text("league_manager.endpoint", &manager.endpoint, check_url)?;

    let id = manager.agent_id.as_deref().unwrap_or("none");
    check_text("league_manager.agent_id", id, check_identifier)?;

    for (kind, entries) in [
        (AgentKind::Referee, &file.referees),
        (AgentKind::Player, &file.players),
    ] {
        for entry in entries {
            let id = &entry.id;
            let key = format!("{kind}s: {kind}_id");
            let expected = format!("{}, {} …", kind.format_id(1), kind.format_id(2));
            check(&key, kind.is_valid_id(id), id, &expected)?;

            let key = format!("{id}: endpoint (default_endpoint)");
            check_text(&key, &entry.endpoint, check_url)?;
        }
    }
    Ok(())
}

fn check_league(file: &LeagueFile, league_id: &str) -> Result<(), String> {
    check_word("league_id", &file.league_id, league_id)?;
    check_word("status", &file.status, "ACTIVE")?;
    check_word("scheduling.format", &file.scheduling.format, "round_robin")?;

    let game_type = &file.game_type;
    let expected = "a game that this program can play";
    check(
        "game_type",
        games::find(game_type).is_some(),
        game_type,
        expected,
    )?;

    let scoring = &file.scoring;
    let points = [
        scoring.win_points,
        scoring.draw_points,
        scoring.loss_points,
        scoring.technical_loss_points,
    ];
    let [win, draw, loss, technical_loss] = points;

    let is_descending = win > draw && draw > loss && loss >= technical_loss;
    let is_legal = is_descending && win <= 1000 && technical_loss >= -1000;
    let expected = "win > draw > loss >= technical loss, each within 1000";
    check("scoring", is_legal, json!(points), expected)?;

    let cycles = file.scheduling.cycles.unwrap_or(1);
    check_range("scheduling.cycles", 1..=400, cycles)?;
    let lead = file.scheduling.round_announcement_lead_sec.unwrap_or(60);
    check_range("scheduling.round_announcement_lead_sec", 0..=86_400, lead)?;

    let participants = &file.participants;
    let (min, max) = (participants.min_players, participants.max_players);
    check_range("participants.min_players", 2..=200, min)?;
    check_range("participants.max_players", min..=200, max)
}
