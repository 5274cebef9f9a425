//! What the configuration files say: which keys they have, and what each means to a program. The
//! types say most of what is legal. The command line overrules all of them. Read next: `files.rs`,
//! how the files are read and what else is legal in them, and `args.rs`.

use crate::games::scoring::Scoring;
use crate::protocol::Kind;
use crate::wire::{DisplayName, Plain, Url, Version, Within};
use crate::{object, words};
use std::ops::RangeInclusive;
use std::time::Duration;

words! {
    /// The only protocol there is.
    ProtocolVersion { V2 = "league.v2", }
    /// The only format of a league.
    Format { RoundRobin = "round_robin", }
    /// Only an active league is played.
    LeagueState { Active = "ACTIVE", }
    /// How the delay before an attempt grows.
    Backoff { Exponential = "exponential", Fixed = "fixed", }
}

object! {
    /// `system.json`.
    SystemFile {
        schema_version: String, system_id: String, protocol_version: ProtocolVersion,
        default_league_id: Plain,
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
        game_join_ack_timeout_sec: Duration, move_timeout_sec: Duration,
        generic_response_timeout_sec: Duration,
        ; optional game_over_timeout_sec: Duration,
    }
    /// Attempts and the delays between them: `max_retries` is the number of attempts in all, and
    /// the base delay comes before the second.
    #[derive(Copy)]
    RetryPolicy { max_retries: Within<1, 100>, base_delay_sec: Duration, backoff_strategy: Backoff, }
    /// Bytes of a message from an agent.
    Limits { max_message_bytes: Within<1024, 1048576>, }
    /// `agents/agents_config.json`.
    AgentsFile {
        schema_version: String, last_updated: String, league_manager: ManagerEntry,
        referees: Vec<AgentEntry>, players: Vec<AgentEntry>,
    }
    /// Where the manager is found, and how it signs.
    ManagerEntry { display_name: DisplayName, endpoint: Url, version: Version, ; optional agent_id: Plain, }
    /// A referee or a player: one of the list, or in `defaults/` what holds for whoever is not
    /// listed. The checks below say which of the optional keys are needed where. Without
    /// `game_types` it plays every game that its program can.
    AgentEntry {
        display_name: DisplayName, version: Version,
        ; optional referee_id: String, player_id: String, endpoint: Url, default_endpoint: Url,
        game_types: Vec<String>,
        max_concurrent_matches: Within<1, 10>, active: bool,
    }
    /// `leagues/ID.json`.
    LeagueFile {
        schema_version: String, league_id: String, display_name: String, game_type: String,
        status: LeagueState,
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

impl RetryPolicy {
    /// How long to wait after so many failed attempts: with a base of 2 s this is 2 s, 4 s, 8 s, or
    /// always 2 s.
    pub fn delay(&self, failed: u32) -> Duration {
        match self.backoff_strategy {
            Backoff::Exponential => self
                .base_delay_sec
                .saturating_mul(1 << (failed.clamp(1, 16) - 1)),
            Backoff::Fixed => self.base_delay_sec,
        }
    }

    /// How long all attempts can take, if each takes `limit`.
    pub fn longest(&self, limit: Duration) -> Duration {
        let delays: Duration = (1..self.max_retries.0)
            .map(|failed| self.delay(failed))
            .sum();
        limit * self.max_retries.0 + delays
    }

    /// Tries again as the policy says, as long as an error is `worth` it.
    pub fn retry<T, E>(
        &self,
        pause: impl Fn(Duration),
        worth: impl Fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        for failed in 1..self.max_retries.0 {
            match attempt() {
                Err(error) if worth(&error) => pause(self.delay(failed)),
                done => return done,
            }
        }
        attempt()
    }
}

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
    /// The URL of the manager.
    pub fn manager(&self) -> &str {
        &self.agents.league_manager.endpoint.0
    }

    /// What the files say of a referee or a player: its own entry, or the defaults for one that no
    /// list names.
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

    /// The longest that one match of so many turns can take, from its invitation to its report:
    /// what a referee is waited for.
    pub fn match_limit(&self, turns: u32) -> Duration {
        let retry = &self.system.retry_policy;
        let timeouts = &self.system.timeouts;
        let asked = retry.longest(timeouts.game_join_ack_timeout_sec)
            + retry.longest(timeouts.move_timeout_sec) * turns;
        asked + self.game_over_limit() + retry.longest(self.generic_limit())
    }
}
