//! What the configuration files say, in the types that the programs use. The command line, in `options.rs`,
//! overrules them. The files themselves are in `config_files.rs`.

use crate::{
    config_files::*,
    endpoint::Endpoint,
    files::is_plain,
    game::Scoring,
    league::{Listed, Rules},
    protocol::{GAME, Kind},
};
use std::{path::Path, time::Duration};

/// Attempts and the delays between them (002 §14.3).
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "named as in the file")]
pub struct RetryPolicy {
    /// How many in all.
    pub attempts: u32,
    pub base_delay: Duration,
    pub backoff: Backoff,
}

impl RetryPolicy {
    /// How long to wait after so many failed attempts: 2 s, 4 s, 8 s, or always 2 s.
    pub fn delay(&self, failed: u32) -> Duration {
        match self.backoff {
            Backoff::Exponential => self.base_delay.saturating_mul(1 << (failed.clamp(1, 16) - 1)),
            Backoff::Fixed => self.base_delay,
        }
    }

    /// How long all attempts can take, if each takes `limit`.
    pub fn longest(&self, limit: Duration) -> Duration {
        let delays: Duration = (1..self.attempts).map(|failed| self.delay(failed)).sum();
        limit * self.attempts + delays
    }
}

/// What the files say, checked.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "named as in the files")]
pub struct Config {
    pub network: Network,
    pub agents: AgentsFile,
    pub league: LeagueFile,
    pub game_name: String,
    pub referee_defaults: RefereeDefaults,
    pub player_defaults: PlayerDefaults,
    pub rules: Rules,
    pub retry: RetryPolicy,
    pub token_length: u32,
    pub strict_envelope: bool,
    pub max_message_bytes: usize,
    pub register_referee_limit: Duration,
    pub register_player_limit: Duration,
    pub join_limit: Duration,
    pub choice_limit: Duration,
    pub game_over_limit: Duration,
    pub generic_limit: Duration,
    pub lead: Duration,
}

impl Config {
    /// Reads all files below `folder`, for one league: the named one, or the system's default.
    pub fn load(folder: &Path, league_id: Option<&str>) -> Result<Config, String> {
        let system: SystemFile = read(folder, "system.json")?;
        let agents: AgentsFile = read(folder, "agents/agents_config.json")?;
        let default = ("system.json", "default_league_id", &*system.default_league_id);
        let (file, key, league_id) = league_id.map_or(default, |id| ("command line", "--league-id", id));
        legal(is_plain(league_id), file, key, league_id, "letters, digits, _ and -")?;
        let league: LeagueFile = read(folder, &format!("leagues/{league_id}.json"))?;
        let games: GamesFile = read(folder, "games/games_registry.json")?;
        let referee_defaults: RefereeDefaults = read(folder, "defaults/referee.json")?;
        let player_defaults: PlayerDefaults = read(folder, "defaults/player.json")?;
        check_system(&system)?;
        check_agents(&agents)?;
        check_defaults(&referee_defaults, &player_defaults)?;
        check_games(&games)?;
        check_league(&league, league_id, &games)?;
        let (t, policy) = (&system.timeouts, &system.retry_policy);
        let wait = |key: &str, came: f64| some_seconds("system.json", key, came);
        let game_name = games.games.iter().find(|game| game.game_type == league.game_type);
        let lead = league.scheduling.round_announcement_lead_sec.unwrap_or(60.0);
        Ok(Config {
            rules: rules(&system, &agents, &league, &games),
            game_name: game_name.map_or(GAME.into(), |game| game.display_name.clone()),
            retry: RetryPolicy {
                attempts: policy.max_retries,
                base_delay: wait("retry_policy.base_delay_sec", policy.base_delay_sec)?,
                backoff: policy.backoff_strategy,
            },
            register_referee_limit: wait("timeouts.register_referee_timeout_sec", t.register_referee_timeout_sec)?,
            register_player_limit: wait("timeouts.register_player_timeout_sec", t.register_player_timeout_sec)?,
            join_limit: wait("timeouts.game_join_ack_timeout_sec", t.game_join_ack_timeout_sec)?,
            choice_limit: wait("timeouts.move_timeout_sec", t.move_timeout_sec)?,
            generic_limit: wait("timeouts.generic_response_timeout_sec", t.generic_response_timeout_sec)?,
            game_over_limit: wait("timeouts.game_over_timeout_sec", t.game_over_timeout_sec.unwrap_or(5.0))?,
            lead: seconds(&format!("leagues/{league_id}.json"), "scheduling.round_announcement_lead_sec", lead)?,
            strict_envelope: system.security.strict_envelope != Some(false),
            token_length: system.security.token_length,
            max_message_bytes: system.limits.and_then(|limits| limits.max_message_bytes).unwrap_or(MAX_MESSAGE_BYTES)
                as usize,
            network: system.network,
            agents,
            league,
            referee_defaults,
            player_defaults,
        })
    }

    /// A referee's entry in the list, or the defaults for one that no list names.
    pub fn referee(&self, id: &str) -> RefereeDefaults {
        match self.agents.referees.iter().find(|entry| entry.referee_id == id).cloned() {
            Some(RefereeEntry { display_name, version, game_types, max_concurrent_matches, .. }) => {
                RefereeDefaults { display_name, version, game_types, max_concurrent_matches }
            }
            None => self.referee_defaults.clone(),
        }
    }

    /// A player's entry in the list, or the defaults for one that no list names.
    pub fn player(&self, id: &str) -> PlayerDefaults {
        let defaults = self.player_defaults.clone();
        match self.agents.players.iter().find(|entry| entry.player_id == id).cloned() {
            Some(PlayerEntry { display_name, version, game_types, .. }) => {
                PlayerDefaults { display_name, version, game_types, ..defaults }
            }
            None => defaults,
        }
    }

    /// The port of a listed agent's endpoint.
    pub fn listed_port(&self, kind: Kind, id: Option<&str>) -> Option<u16> {
        let listed = self.rules.listed.iter().find(|listed| listed.kind == kind && Some(&*listed.id) == id)?;
        Endpoint::parse(&listed.endpoint).ok().map(|endpoint| endpoint.port)
    }

    /// Whether a port belongs to a listed agent on this machine.
    pub fn is_listed_port(&self, port: u16) -> bool {
        let here = |url: &str| Endpoint::parse(url).is_ok_and(|it| it.port == port && it.host == "127.0.0.1");
        self.rules.listed.iter().any(|listed| here(&listed.endpoint))
    }

    /// The first and the last port for agents that no list names.
    pub fn port_range(&self, kind: Kind) -> (u16, u16) {
        let range = match kind {
            Kind::Referee => &self.network.default_referee_port_range,
            _ => &self.network.default_player_port_range,
        };
        (range[0], range[1])
    }

    /// The longest that one match can take, from its invitation to its report: what a referee is waited for.
    pub fn match_limit(&self) -> Duration {
        let join = self.retry.longest(self.join_limit);
        join + self.retry.longest(self.choice_limit) + self.game_over_limit + self.retry.longest(self.generic_limit)
    }
}

fn rules(system: &SystemFile, agents: &AgentsFile, league: &LeagueFile, games: &GamesFile) -> Rules {
    let referee = |entry: &RefereeEntry| Listed {
        kind: Kind::Referee,
        id: entry.referee_id.clone(),
        endpoint: entry.endpoint.clone(),
        active: entry.active,
    };
    let player = |entry: &PlayerEntry| Listed {
        kind: Kind::Player,
        id: entry.player_id.clone(),
        endpoint: entry.default_endpoint.clone(),
        active: entry.active,
    };
    Rules {
        league_id: league.league_id.clone(),
        scoring: Scoring {
            win: league.scoring.win_points,
            draw: league.scoring.draw_points,
            loss: league.scoring.loss_points,
            technical_loss: league.scoring.technical_loss_points,
        },
        tiebreakers: league.scoring.tiebreakers.clone(),
        cycles: league.scheduling.cycles.unwrap_or(1),
        min_players: league.participants.min_players as usize,
        max_players: league.participants.max_players as usize,
        game_types: games.games.iter().map(|game| game.game_type.clone()).collect(),
        listed: agents.referees.iter().map(referee).chain(agents.players.iter().map(player)).collect(),
        tokens: system.security.enable_auth_tokens,
        token_lifetime: Duration::try_from_secs_f64(system.security.token_ttl_hours * 3600.0).unwrap_or_default(),
    }
}
