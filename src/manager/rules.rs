//! The rules of a league, as its files and the command line say them (`settings.rs` reads those).

use crate::games::scoring::Scoring;
use crate::protocol::Kind;
use std::time::Duration;

/// What the configuration and the command line say about the league.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "named as in the files")]
pub struct Rules {
    pub league_id: String,
    pub game_type: String,
    pub scoring: Scoring,
    pub cycles: u32,
    pub min_players: usize,
    /// How many may register at most: `max_players`, or `--players` where that is less.
    pub max_players: usize,
    pub listed: Vec<Listed>,
    /// Whether tokens are demanded (`enable_auth_tokens`).
    pub tokens: bool,
    pub token_lifetime: Duration,
}

/// An agent that the agents configuration lists.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "named as in the file")]
pub struct Listed {
    pub kind: Kind,
    pub id: String,
    pub endpoint: String,
    pub active: bool,
}
