//! The JSON configuration files: their keys, and what is legal in them. One that is unknown, missing, mistyped or
//! illegal is one line that names file and key, what came and what is legal. Bounds stand in the types, so that the
//! reader checks them; what concerns several keys is checked below. The command line overrules the files.

use crate::games::{self, NUMBERS, Scoring};
use crate::net::retry::{Backoff, RetryPolicy};
use crate::protocol::Kind;
use crate::wire::{DisplayName, Endpoint, Plain, Reader, Url, Version, Wire, Within, unknown_key};
use crate::{object, words};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

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
        network: Network, security: Security, timeouts: Timeouts, retry_policy: RetryKeys,
        ; optional limits: Limits,
    }
    /// Where agents listen.
    Network {
        base_host: Host, default_league_manager_port: u16,
        default_referee_port_range: PortRange, default_player_port_range: PortRange,
    }
    /// Tokens and envelopes. The length is in hex digits.
    Security {
        enable_auth_tokens: bool, token_length: Within<32, 256>, token_ttl_hours: Hours,
        ; optional strict_envelope: bool,
    }
    /// How long things may take.
    Timeouts {
        register_referee_timeout_sec: Wait, register_player_timeout_sec: Wait, game_join_ack_timeout_sec: Wait,
        move_timeout_sec: Wait, generic_response_timeout_sec: Wait,
        ; optional game_over_timeout_sec: Wait,
    }
    /// `max_retries` is the number of attempts in all.
    RetryKeys { max_retries: Within<1, 100>, base_delay_sec: Wait, backoff_strategy: Backoff, }
    /// Bytes of a message from an agent.
    Limits { ; optional max_message_bytes: Within<1024, 1048576>, }
    /// `agents/agents_config.json`.
    AgentsFile {
        schema_version: String, last_updated: String, league_manager: ManagerEntry,
        referees: Vec<RefereeEntry>, players: Vec<PlayerEntry>,
    }
    /// Where the manager is found, and how it signs.
    ManagerEntry { display_name: DisplayName, endpoint: Url, version: Version, ; optional agent_id: Plain, }
    /// A listed referee.
    RefereeEntry {
        referee_id: String, display_name: DisplayName, endpoint: Url, version: Version, game_types: Vec<String>,
        max_concurrent_matches: Within<1, 10>, active: bool,
    }
    /// A listed player.
    PlayerEntry {
        player_id: String, display_name: DisplayName, version: Version, game_types: Vec<String>,
        default_endpoint: Url, active: bool,
    }
    /// `leagues/ID.json`.
    LeagueFile {
        schema_version: String, league_id: String, display_name: String, game_type: String, status: LeagueState,
        created_at: String, scoring: Scoring, scheduling: Scheduling, participants: Participants,
    }
    /// `matches_per_round` follows from the players; a file that says otherwise is warned about.
    Scheduling {
        format: Format, matches_per_round: u32,
        ; optional cycles: Within<1, 100>, round_announcement_lead_sec: Seconds,
    }
    /// How many players may play.
    Participants { min_players: Within<2, 200>, max_players: Within<2, 200>, }
    /// `games/games_registry.json`.
    GamesFile { schema_version: String, games: Vec<GameEntry>, }
    /// A game that can be played.
    GameEntry {
        game_type: GameType, display_name: String, players: Within<2, 2>, choices: Choices, number_range: NumberRange,
    }
    /// `defaults/referee.json`: a referee that no list names.
    RefereeDefaults {
        display_name: DisplayName, version: Version, game_types: Vec<String>, max_concurrent_matches: Within<1, 10>,
    }
    /// `defaults/player.json`: a player that no list names.
    PlayerDefaults { display_name: DisplayName, version: Version, game_types: Vec<String>, }
}

/// Declares values that a file writes in one way and the programs use in another.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $json:ty, $expected:literal, $schema:tt, $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name(pub $inner);
        impl Wire for $name {
            fn read_in(value: &Value, reader: &mut Reader) -> Option<Self> {
                let came = <$json>::read_in(value, reader)?;
                $read(came).map($name).or_else(|| reader.wrong(value, $expected))
            }
            fn schema() -> Value {
                json!($schema)
            }
        }
    )*};
}
values! {
    /// A time, also in fractions of a second.
    Seconds(Duration) f64, "seconds from 0 to 86400", {"type": "number"}, duration;
    /// A time that is not nothing.
    Wait(Duration) f64, "more than 0 seconds, at most 86400", {"type": "number"},
        |came| duration(came).filter(|time| *time > Duration::ZERO);
    /// A time in hours.
    Hours(Duration) f64, "more than 0, at most 87600 hours", {"type": "number"},
        |came: f64| Some(came).filter(|h| *h > 0.0 && *h <= 87_600.0).map(|h| Duration::from_secs_f64(h * 3600.0));
    /// The first and the last port.
    PortRange([u16; 2]) Vec<u16>, "[first, last]", {"type": "array", "items": {"type": "integer"}},
        |came: Vec<u16>| <[u16; 2]>::try_from(came).ok().filter(|[first, last]| first <= last && *first > 0);
    /// A game that this program can play.
    GameType(String) String, "a game that this program can play", {"type": "string"},
        |came: String| games::named(&came).map(|game| game.game_type.into());
    /// What may be chosen.
    Choices(Vec<String>) Vec<String>, "[\"even\", \"odd\"]", {"type": "array", "items": {"type": "string"}},
        |came: Vec<String>| (came == ["even", "odd"]).then_some(came);
    /// The smallest and the largest number that is drawn.
    NumberRange([u32; 2]) Vec<u32>, "[1, 10]", {"type": "array", "items": {"type": "integer"}},
        |came: Vec<u32>| <[u32; 2]>::try_from(came).ok().filter(|it| *it == [*NUMBERS.start(), *NUMBERS.end()]);
    /// A host's name.
    Host(String) String, "a host name", {"type": "string"},
        |came: String| Endpoint::parse(&format!("http://{came}/")).is_ok().then_some(came);
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= Duration::from_secs(86_400))
}

/// The largest message of an agent in bytes, unless the file says otherwise.
const MAX_MESSAGE_BYTES: usize = 10 << 10;

/// All files, as they were read.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "one file each")]
pub struct Config {
    pub system: SystemFile,
    pub agents: AgentsFile,
    pub league: LeagueFile,
    pub games: GamesFile,
    pub referee_defaults: RefereeDefaults,
    pub player_defaults: PlayerDefaults,
}

impl Config {
    /// Reads all files below `folder`, for one league: the named one, or the system's default.
    pub fn load(folder: &Path, league_id: Option<&str>) -> Result<Config, String> {
        let system: SystemFile = read(folder, "system.json")?;
        let league_id = &*league_id.unwrap_or(&system.default_league_id.0).to_string();
        if let Err(fault) = Plain::read(&league_id.into()) {
            return Err(format!("--league-id: {fault}"));
        }
        let config = Config {
            agents: read(folder, "agents/agents_config.json")?,
            league: read(folder, &format!("leagues/{league_id}.json"))?,
            games: read(folder, "games/games_registry.json")?,
            referee_defaults: read(folder, "defaults/referee.json")?,
            player_defaults: read(folder, "defaults/player.json")?,
            system,
        };
        config.check_league(folder, league_id)?;
        config.check_agents(folder)?;
        Ok(config)
    }

    /// What must fit together in the league file.
    fn check_league(&self, folder: &Path, league_id: &str) -> Result<(), String> {
        let file = format!(
            "{}: ",
            folder.join(format!("leagues/{league_id}.json")).display()
        );
        let (league, people) = (&self.league, &self.league.participants);
        let known = self
            .games
            .games
            .iter()
            .any(|game| game.game_type.0 == league.game_type);
        let points = league.scoring.points();
        let falling = points[0] > points[1] && points[1] > points[2] && points[2] >= points[3];
        let small = points.iter().all(|points| points.abs() <= 1000);
        legal(
            league.league_id == league_id,
            &file,
            "league_id",
            &league.league_id,
            &format!("{league_id:?}"),
        )?;
        legal(
            known,
            &file,
            "game_type",
            &league.game_type,
            "a game of games_registry.json",
        )?;
        legal(
            falling && small,
            &file,
            "scoring",
            points,
            "win > draw > loss >= technical loss, each within 1000",
        )?;
        let (min, max) = (people.min_players.0, people.max_players.0);
        legal(
            max >= min,
            &file,
            "participants.max_players",
            max,
            "at least min_players",
        )
    }

    /// Every agent has an id and an endpoint of its own.
    fn check_agents(&self, folder: &Path) -> Result<(), String> {
        let file = format!("{}: ", folder.join("agents/agents_config.json").display());
        let referees = self.agents.referees.len();
        let key = |n: usize, of_referee: &str, of_player: &str| match n.checked_sub(referees) {
            None => format!("referees[{n}].{of_referee}"),
            Some(n) => format!("players[{n}].{of_player}"),
        };
        let mut endpoints = vec![Endpoint::parse(&self.agents.league_manager.endpoint.0).ok()];
        for (n, (.., url)) in self.listed().enumerate() {
            let (key, endpoint) = (
                key(n, "endpoint", "default_endpoint"),
                Endpoint::parse(url).ok(),
            );
            legal(
                !endpoints.contains(&endpoint),
                &file,
                &key,
                url,
                "an endpoint of its own",
            )?;
            endpoints.push(endpoint);
        }
        let mut ids = Vec::new();
        for (n, (kind, id, _)) in self.listed().enumerate() {
            let (key, expected) = (
                key(n, "referee_id", "player_id"),
                [1, 2].map(|n| kind.numbered(n)).join(", "),
            );
            legal(
                kind.is_id(id) && !ids.contains(&id),
                &file,
                &key,
                id,
                &format!("{expected}, …, each once"),
            )?;
            ids.push(id);
        }
        Ok(())
    }

    /// A referee's entry in the list, or the defaults for one that no list names.
    pub fn referee(&self, id: &str) -> RefereeDefaults {
        let Some(listed) = self
            .agents
            .referees
            .iter()
            .find(|entry| entry.referee_id == id)
            .cloned()
        else {
            return self.referee_defaults.clone();
        };
        let RefereeEntry {
            display_name,
            version,
            game_types,
            max_concurrent_matches,
            ..
        } = listed;
        RefereeDefaults {
            display_name,
            version,
            game_types,
            max_concurrent_matches,
        }
    }

    /// A player's entry in the list, or the defaults for one that no list names.
    pub fn player(&self, id: &str) -> PlayerDefaults {
        let Some(listed) = self
            .agents
            .players
            .iter()
            .find(|entry| entry.player_id == id)
            .cloned()
        else {
            return self.player_defaults.clone();
        };
        let PlayerEntry {
            display_name,
            version,
            game_types,
            ..
        } = listed;
        PlayerDefaults {
            display_name,
            version,
            game_types,
        }
    }

    /// The endpoints of the listed agents, by kind and id.
    pub fn listed(&self) -> impl Iterator<Item = (Kind, &str, &str)> {
        let referees = self
            .agents
            .referees
            .iter()
            .map(|it| (Kind::Referee, &*it.referee_id, &*it.endpoint.0));
        referees.chain(
            self.agents
                .players
                .iter()
                .map(|it| (Kind::Player, &*it.player_id, &*it.default_endpoint.0)),
        )
    }

    /// The port of a listed agent's endpoint.
    pub fn listed_port(&self, kind: Kind, id: &str) -> Option<u16> {
        let (.., url) = self
            .listed()
            .find(|(known, its, _)| *known == kind && *its == id)?;
        Endpoint::parse(url).ok().map(|endpoint| endpoint.port)
    }

    /// Whether a port belongs to a listed agent on this machine.
    pub fn is_listed_port(&self, port: u16) -> bool {
        let here = |url: &str| {
            Endpoint::parse(url).is_ok_and(|it| it.port == port && it.host == "127.0.0.1")
        };
        self.listed().any(|(.., url)| here(url))
    }

    /// The first and the last port for agents that no list names.
    pub fn port_range(&self, kind: Kind) -> [u16; 2] {
        match kind {
            Kind::Referee => self.system.network.default_referee_port_range.0,
            _ => self.system.network.default_player_port_range.0,
        }
    }

    /// Whether a request must bring its whole envelope.
    pub fn strict_envelope(&self) -> bool {
        self.system.security.strict_envelope != Some(false)
    }

    /// The largest message of an agent, in bytes.
    pub fn max_message_bytes(&self) -> usize {
        let given = self
            .system
            .limits
            .as_ref()
            .and_then(|limits| limits.max_message_bytes.as_ref());
        given.map_or(MAX_MESSAGE_BYTES, |bytes| bytes.0 as usize)
    }

    /// How often a call is tried, and when again.
    pub fn retry(&self) -> RetryPolicy {
        let keys = &self.system.retry_policy;
        let (attempts, base_delay) = (keys.max_retries.0, keys.base_delay_sec.0);
        RetryPolicy {
            attempts,
            base_delay,
            backoff: keys.backoff_strategy,
        }
    }

    /// How long a player may take to note how its match ended.
    pub fn game_over_limit(&self) -> Duration {
        self.system
            .timeouts
            .game_over_timeout_sec
            .as_ref()
            .map_or(Duration::from_secs(5), |wait| wait.0)
    }

    /// How long an answer may take that has no time limit of its own.
    pub fn generic_limit(&self) -> Duration {
        self.system.timeouts.generic_response_timeout_sec.0
    }

    /// The longest that one match can take, from its invitation to its report: what a referee is waited for.
    pub fn match_limit(&self) -> Duration {
        let (retry, timeouts) = (self.retry(), &self.system.timeouts);
        let asked = retry.longest(timeouts.game_join_ack_timeout_sec.0)
            + retry.longest(timeouts.move_timeout_sec.0);
        asked + self.game_over_limit() + retry.longest(self.generic_limit())
    }
}

/// Reads a file and checks its keys.
fn read<T: Wire>(folder: &Path, name: &str) -> Result<T, String> {
    let path = folder.join(name);
    let shown = path.display();
    let elsewhere = "run this where the folder config is, or name another with --config DIR";
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}; {elsewhere}"))?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| format!("{shown}: not JSON: {error}"))?;
    let read = unknown_key(&value, &T::schema()).map_or_else(|| T::read(&value), Err);
    read.map_err(|fault| format!("{shown}: {fault}"))
}

/// One line for one bad value.
fn legal(
    good: bool,
    file: &str,
    key: &str,
    came: impl std::fmt::Debug,
    expected: &str,
) -> Result<(), String> {
    if good {
        Ok(())
    } else {
        Err(format!("{file}{key}: got {came:?}, expected {expected}"))
    }
}
