//! What the manager answers to queries: the table, the schedule, a player's next match and its
//! statistics; and the status of the league.
//!
//! A wrong query is answered with `success: false`, not with an error; see "Queries" in
//! `protocol.md`. Read next: `notifications.rs`.

use super::league::{League, Match, Member, scheduled_matches};
use super::standings::PlayerStats;
use crate::json::{decode, deserialize};
use crate::protocol::{
    AgentKind, ErrorCode, JsonObject, LeagueQuery, LeagueQueryResponse, LeagueStatus,
    ProtocolError, QueryParams, QueryType, Record, Standing,
};
use crate::values::truncate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Why a paused league does not go on.
pub const PAUSED: &str =
    "the league is paused: no further match begins until the operator says resume";

/// The answer to GET_STANDINGS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StandingsData {
    /// The table.
    pub standings: Vec<Standing>,
}

impl League {
    /// Answers a query. Fails only if it has no type to answer with.
    pub fn answer(
        &self,
        query: &LeagueQuery,
        sender: &Member,
    ) -> Result<LeagueQueryResponse, ProtocolError> {
        let query_type =
            decode::<String>(&query.query_type).map_err(|error| error.in_field("query_type"))?;
        let body = match self.query_data(query, sender) {
            Ok(data) => json!({"query_type": query_type, "success": true, "data": data}),
            Err(error) => {
                let error = json!({
                    "error_code": error.code.to_string(),
                    "error_name": error.code.name(),
                    "error_description": error.detail(),
                });
                json!({"query_type": query_type, "success": false, "error": error})
            }
        };
        Ok(deserialize(&body)?)
    }

    fn query_data(&self, query: &LeagueQuery, sender: &Member) -> Result<Value, ProtocolError> {
        let query_type =
            decode::<QueryType>(&query.query_type).map_err(|error| error.in_field("query_type"))?;
        let params = match &query.query_params {
            Some(params) => decode(params).map_err(|error| error.in_field("query_params"))?,
            None => QueryParams::default(),
        };
        match query_type {
            QueryType::GetStandings => Ok(json!(self.standings_data())),
            QueryType::GetSchedule => Ok(json!(self.schedule(params.round_id)?)),
            QueryType::GetNextMatch => Ok(self.next_match(self.queried_player(params, sender)?)),
            QueryType::GetPlayerStats => {
                Ok(self.player_stats(self.queried_player(params, sender)?))
            }
        }
    }

    /// Returns the player that a query is about: the sender if no other is named.
    fn queried_player(
        &self,
        params: QueryParams,
        sender: &Member,
    ) -> Result<&Member, ProtocolError> {
        let id = match params.player_id {
            Some(id) => id,
            None if sender.kind == AgentKind::Player => sender.id.clone(),
            None => {
                let field = "query_params.player_id";
                return Err(ProtocolError::field(
                    ErrorCode::MissingField,
                    field,
                    "missing",
                ));
            }
        };
        self.player(&id).ok_or_else(|| {
            let problem = format!("Player ID {} not found in registry", truncate(&id, 60));
            ProtocolError::new(ErrorCode::PlayerNotRegistered, problem)
        })
    }

    /// Returns the table as an answer.
    pub fn standings_data(&self) -> StandingsData {
        StandingsData {
            standings: self.table(),
        }
    }

    /// Returns the matches of all rounds; before the start those that there would be with the
    /// players so far.
    pub fn schedule_preview(&self) -> Cow<'_, [Match]> {
        if self.started {
            Cow::Borrowed(&self.matches)
        } else {
            Cow::Owned(scheduled_matches(&self.pairings()))
        }
    }

    /// Returns the schedule, or one round of it.
    pub fn schedule(&self, round_id: Option<u32>) -> Result<JsonObject, ProtocolError> {
        let matches = self.schedule_preview();
        let mut rounds = Vec::new();
        for matches in matches.chunk_by(|a, b| a.round == b.round) {
            let round = matches[0].round;
            let matches: Vec<Value> = matches.iter().map(scheduled_match).collect();
            if round_id.is_none_or(|wanted| wanted == round) {
                rounds.push(json!({"round_id": round, "matches": matches}));
            }
        }

        if round_id.is_some() && rounds.is_empty() {
            let last = matches.last().map_or(0, |m| m.round);
            let problem = format!("must be 1 to {last}");
            return Err(ProtocolError::field(
                ErrorCode::MissingField,
                "query_params.round_id",
                problem,
            ));
        }
        Ok(JsonObject::from_iter([("rounds".into(), rounds.into())]))
    }

    fn next_match(&self, player: &Member) -> Value {
        let mut matches = self.matches_of(&player.id);
        let Some(next) = matches.find(|m| m.recorded.is_none()) else {
            return json!({"next_match": null});
        };
        let referee = next.referee().and_then(|id| self.members.get(id));
        json!({"next_match": {
            "match_id": next.id,
            "round_id": next.round,
            "opponent_id": next.opponent(&player.id),
            "referee_endpoint": referee.map(|referee| &referee.meta.contact_endpoint),
        }})
    }

    /// Returns the statistics of a player as an answer.
    pub fn player_stats(&self, player: &Member) -> Value {
        let mut against = BTreeMap::<&str, PlayerStats>::new();
        for the_match in self.matches_of(&player.id) {
            if let Some(recorded) = &the_match.recorded {
                let stats = against.entry(the_match.opponent(&player.id)).or_default();
                stats.add(&player.id, &recorded.result);
            }
        }
        let opponents: BTreeMap<&str, Record> = against
            .iter()
            .map(|(id, stats)| (*id, stats.record))
            .collect();

        let stats = self.stats(&player.id);
        let Record {
            wins,
            losses,
            draws,
        } = stats.record;
        let played = wins + losses + draws;
        json!({
            "player_id": player.id,
            "display_name": player.meta.display_name,
            "state": self.state_of(player),
            "played": played,
            "wins": wins,
            "draws": draws,
            "losses": losses,
            "points": stats.points,
            "win_rate": f64::from(wins) / f64::from(played.max(1)),
            "technical_losses": stats.technical_losses,
            "choices": stats.choices,
            "opponents": opponents,
        })
    }

    /// Returns the status of the league. `waiting`: why a running league does not go on.
    pub fn status(&self, waiting: Option<String>) -> LeagueStatus {
        let is_paused = self.paused && !self.is_over();
        let paused = is_paused.then(|| PAUSED.to_string());
        LeagueStatus {
            league_id: self.config.league.league_id.clone(),
            status: self.progress(),
            current_round: self.open_round().unwrap_or(self.rounds()),
            total_rounds: self.rounds(),
            matches_completed: self.played.len() as u32,
            reason: self.lacks().or(paused).or(waiting),
        }
    }
}

fn scheduled_match(the_match: &Match) -> Value {
    let winner = the_match
        .recorded
        .as_ref()
        .map(|recorded| &recorded.result.winner);
    json!({
        "match_id": the_match.id,
        "player_A_id": the_match.players[0],
        "player_B_id": the_match.players[1],
        "status": the_match.status(),
        "winner": winner,
    })
}

impl Match {
    /// Returns the state of the match in the schedule.
    pub fn status(&self) -> &'static str {
        if self.recorded.is_some() {
            "completed"
        } else if self.assignment().is_some() {
            "assigned"
        } else {
            "scheduled"
        }
    }
}
