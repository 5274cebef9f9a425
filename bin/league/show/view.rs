//! The public document of a league: what `GET /league.json` and the tool `get_league` show.
//!
//! The page, the report, the tables and the season are made from it; only the screen of a manager
//! follows the league itself. No token is in it, and no choice of a match that has no result. The
//! manager makes it in `document.rs`.
#![allow(missing_docs, non_snake_case, reason = "the names of the JSON fields")]

use league::games::{self, Move, Scoring};
use league::json::nullable;
use league::protocol::{
    AgentKind, AgentState, Champion, LeaguePhase, MoveMade, Parity, ResultStatus, Standing,
};
use league::values::{ByPlayer, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The states of a match for its manager.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchStatus {
    Scheduled,
    Assigned,
    Completed,
}

/// The rounds that `get_league` may be asked for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhichRounds {
    All,
}

/// The arguments of `get_league`: a round, or all rounds; else the open round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetLeague {
    pub round_id: Option<u32>,
    pub rounds: Option<WhichRounds>,
}

/// The whole league. `version` grows with every document. A round that has not changed is shared
/// with the document before. `ranks` has those of the table for people, like `1=`. `next_at` is the
/// time at which the matches of an announced round begin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeagueView {
    pub schema_version: String,
    pub league_id: String,
    pub league: Heading,
    pub status: LeaguePhase,
    pub paused: bool,
    pub current_round: u32,
    pub total_rounds: u32,
    pub matches_completed: u32,
    pub total_matches: u32,
    pub agents: Vec<AgentView>,
    pub standings: Vec<Standing>,
    pub ranks: Vec<String>,
    pub rounds: Vec<Arc<RoundView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub champion: Option<Champion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The part that does not change while the league is played. `name` is that of this one league,
/// `display_name` that of all leagues of its file. The league starts when as many agents have
/// registered as are awaited; without such numbers, when the operator starts it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Heading {
    pub display_name: String,
    pub game: String,
    pub game_type: String,
    pub register_at: String,
    pub scoring: Scoring,
    pub local: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub practice: Option<Practice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub players_awaited: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referees_awaited: Option<u32>,
}

/// The names of the user's own players in a practice. In a comparison they are the two players that
/// are compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Practice {
    pub own: Vec<String>,
    pub is_comparison: bool,
}

/// An agent. `reachable` is null until the manager has called it; `trouble` is the reason why the
/// last call failed, for other machines without anything that the agent has sent. `rehearsal` is
/// `plays …` or what went wrong (`classroom/rehearsal.rs`). A player that the operator has `removed`
/// loses its matches. The endpoint is shown to this machine only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentView {
    pub id: String,
    pub kind: AgentKind,
    pub display_name: String,
    pub state: AgentState,
    pub removed: bool,
    #[serde(default, deserialize_with = "nullable")]
    pub reachable: Option<bool>,
    #[serde(default, deserialize_with = "nullable")]
    pub trouble: Option<String>,
    #[serde(skip)]
    pub public_trouble: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub technical_losses: Option<u32>,
}

/// A round, and the version of the document in which something changed in it last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RoundView {
    pub round_id: u32,
    pub matches: Vec<MatchView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<u64>,
}

/// A match. The fields below the referee are there when it is recorded; the reason only if no
/// number was drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchView {
    pub match_id: String,
    pub player_A_id: String,
    pub player_B_id: String,
    pub status: MatchStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referee_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<ResultStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drawn_number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<ByPlayer<Option<Parity>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ByPlayer<i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<MoveMade>>,
}

impl Heading {
    /// Returns the name of the league: its own, or that of all leagues of its file.
    pub fn called(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.display_name)
    }
}

impl LeagueView {
    /// Returns all matches of the schedule, round by round.
    pub fn matches(&self) -> impl Iterator<Item = &MatchView> {
        self.rounds.iter().flat_map(|round| &round.matches)
    }

    /// Returns a copy with those rounds, and with endpoints only for a reader on this machine.
    pub fn copy(
        &self,
        for_this_machine: bool,
        is_wanted: impl Fn(&RoundView) -> bool,
    ) -> LeagueView {
        let mut copy = self.clone();
        copy.rounds.retain(|round| is_wanted(round));

        if !for_this_machine {
            for agent in &mut copy.agents {
                agent.endpoint = None;
                agent.trouble = agent.public_trouble.take();
            }
        }

        copy
    }
}

impl MatchView {
    /// Returns the moves of the match in their order; in Even/Odd the choices, in the order of the
    /// seats.
    pub fn played(&self) -> Vec<Move> {
        let players = [self.player_A_id.clone(), self.player_B_id.clone()];
        let choices = self.choices.clone().unwrap_or_default();
        games::moves_by_seat(&players, &choices, &self.moves).unwrap_or_default()
    }
}
