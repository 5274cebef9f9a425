//! What the three programs read when they start: the options of the command line, and the files in
//! `config/`. In chapter two, `src/program/` also checks what is in these files.
#![allow(dead_code, reason = "each of the three programs uses its part")]

use league::games::Scoring;
use league::protocol::{ChooseParityCall, GameError, GameInvitation, GameOver};
use serde::{Deserialize, de::DeserializeOwned};
use std::time::Duration;
use std::{env, fs, process};

const USAGE: &str = "options: --port N, --seed N, --help; of a manager also --players N, of a \
    referee --referee-id ID, of a player --player-id ID and --always even";

/// The options of the command line.
#[derive(Default)]
pub struct Options {
    pub port: Option<u16>,
    pub id: Option<String>,
    pub players: Option<usize>,
    pub seed: Option<u64>,
    /// The choice of a player in every match. Without it the player asks `choose`.
    pub always: Option<String>,
}

/// Reads the options. An error says which one is wrong.
pub fn read_options() -> Result<Options, String> {
    let mut options = Options::default();
    let mut words = env::args().skip(1);
    while let Some(name) = words.next() {
        if name == "--help" {
            println!("{USAGE}");
            process::exit(0);
        }
        let value =
            (words.next()).ok_or_else(|| format!("{name}: its value is missing; {USAGE}"))?;
        let wrong = format!("{name} {value}: unknown option or wrong value; {USAGE}");
        match name.as_str() {
            "--port" => options.port = Some(value.parse().map_err(|_| wrong)?),
            "--referee-id" | "--player-id" => options.id = Some(value),
            "--always" => options.always = Some(value),
            "--players" => options.players = Some(value.parse().map_err(|_| wrong)?),
            "--seed" => options.seed = Some(value.parse().map_err(|_| wrong)?),
            _ => return Err(wrong),
        }
    }
    Ok(options)
}

/// The part of `config/system.json` that the programs need.
#[derive(Deserialize)]
pub struct Settings {
    pub default_league_id: String,
    pub timeouts: Timeouts,
    pub retry_policy: RetryPolicy,
}

#[derive(Deserialize)]
pub struct Timeouts {
    game_join_ack_timeout_sec: f64,
    move_timeout_sec: f64,
    game_over_timeout_sec: f64,
    generic_response_timeout_sec: f64,
}

impl Timeouts {
    /// Returns how long an agent waits for the reply to a message.
    pub fn limit_of(&self, message_type: &str) -> Duration {
        Duration::from_secs_f64(match message_type {
            GameInvitation::NAME => self.game_join_ack_timeout_sec,
            ChooseParityCall::NAME => self.move_timeout_sec,
            GameOver::NAME | GameError::NAME => self.game_over_timeout_sec,
            _ => self.generic_response_timeout_sec, // a message to think about needs its own line
        })
    }
}

#[derive(Deserialize)]
pub struct RetryPolicy {
    /// The number of attempts in all, in spite of its name.
    pub max_retries: u32,
    pub base_delay_sec: f64,
    pub backoff_strategy: String,
}

impl RetryPolicy {
    /// Returns the pause after a failed attempt: always the same, or twice as long each time.
    pub fn pause_after(&self, attempt: u32) -> Duration {
        let is_exponential = self.backoff_strategy == "exponential";
        let doublings = if is_exponential { attempt - 1 } else { 0 };
        Duration::from_secs_f64(self.base_delay_sec) * 2_u32.pow(doublings)
    }
}

/// The part of `config/leagues/ID.json` that the programs need.
#[derive(Clone, Deserialize)]
pub struct LeagueFile {
    pub display_name: String,
    pub scoring: Scoring,
    pub participants: Participants,
}

#[derive(Clone, Deserialize)]
pub struct Participants {
    pub min_players: usize,
    pub max_players: usize,
}

/// Reads a JSON file of the configuration. An error names the file.
pub fn read_file<T: DeserializeOwned>(path: &str) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}
