//! The table, the schedule, the statistics of a player and the status of the league, made from its
//! state; and the answers to queries.
//!
//! A wrong query is answered with `success: false`, not with an error; see "Queries" in
//! `protocol.md`. Read next: `notifications.rs`.

use super::league::{League, Match, Member, scheduled_matches};
use super::standings::{PlayerStats, rank_groups};
use crate::games::game_result;
use crate::json::decode;
use crate::protocol::{
    AgentKind, AgentState, ErrorCode, JsonObject, LeagueQuery, LeagueQueryResponse, LeagueStatus,
    ProtocolError, QueryParams, QueryType, Standing,
};
use crate::values::truncate;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The answer to GET_STANDINGS.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StandingsData {
    /// The table.
    pub standings: Vec<Standing>,
}

impl League {
    /// Answers a query. Fails only if it has no type to answer with.
    pub fn answer_query(
        &self,
        query: &LeagueQuery,
        sender: &Member,
    ) -> Result<LeagueQueryResponse, ProtocolError> {
        let query_type =
            decode::<String>(&query.query_type).map_err(|error| error.in_field("query_type"))?;
        let answer = self.query_data(query, sender);
        Ok(LeagueQueryResponse::new(query_type, answer))
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
            QueryType::GetNextMatch => {
                Ok(self.next_match(self.queried_player(params, sender)?, sender))
            }
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
            None => return Err(wrong_param("player_id", "missing")),
        };

        self.player(&id).ok_or_else(|| {
            let problem = format!("Player ID {} not found in registry", truncate(&id, 60));
            ProtocolError::new(ErrorCode::PlayerNotRegistered, problem)
        })
    }

    /// Returns the table, best player first. It is sorted once for each version of the league.
    pub fn table(&self) -> Vec<Standing> {
        self.ranked_groups().concat()
    }

    /// Returns the ranks in the table for people: players that are equal in everything share the
    /// best of their ranks, `1=`.
    pub fn ranks(&self) -> Vec<String> {
        let mut ranks = Vec::new();
        for group in self.ranked_groups() {
            let sign = if group.len() > 1 { "=" } else { "" };
            let rank = format!("{}{sign}", group[0].rank);
            ranks.resize(ranks.len() + group.len(), rank);
        }
        ranks
    }

    fn ranked_groups(&self) -> &Vec<Vec<Standing>> {
        self.table.get_or_init(|| self.sort_table())
    }

    fn sort_table(&self) -> Vec<Vec<Standing>> {
        let mut rows = Vec::new();
        for player in self.members(AgentKind::Player) {
            let stats = self.stats(&player.id);
            rows.push(Standing {
                rank: 0,
                player_id: player.id.clone(),
                display_name: player.meta.display_name.clone(),
                played: stats.matches_played(),
                wins: stats.record.wins,
                draws: stats.record.draws,
                losses: stats.record.losses,
                points: stats.points,
            });
        }

        let mut scores = Vec::new();
        for the_match in &self.matches {
            if let Some(recorded) = &the_match.recorded {
                scores.push(&recorded.result.score);
            }
        }

        let tiebreakers = &self.config.league.scoring.tiebreakers;
        let mut groups = rank_groups(rows, tiebreakers, &scores);
        for (rank, row) in (1..).zip(groups.iter_mut().flatten()) {
            row.rank = rank;
        }
        groups
    }

    /// Returns the table as an answer.
    pub fn standings_data(&self) -> StandingsData {
        StandingsData {
            standings: self.table(),
        }
    }

    /// Returns the matches of all rounds; before the start those that there would be with the
    /// players so far.
    pub fn schedule_preview(&self) -> Vec<Arc<Match>> {
        match self.started {
            true => self.matches.clone(),
            false => scheduled_matches(&self.pairings()),
        }
    }

    /// Returns the schedule, or one round of it.
    pub fn schedule(&self, round_id: Option<u32>) -> Result<JsonObject, ProtocolError> {
        let schedule = self.schedule_preview();
        let rounds = scheduled_rounds(&schedule, round_id);

        if round_id.is_some() && rounds.is_empty() {
            let last = schedule.last().map_or(0, |m| m.round);
            return Err(wrong_param("round_id", format!("must be 1 to {last}")));
        }

        Ok(JsonObject::from_iter([("rounds".into(), json!(rounds))]))
    }

    /// Returns the next match of a player as an answer. Only the player itself gets its token.
    fn next_match(&self, player: &Member, sender: &Member) -> Value {
        let mut matches = self.matches_of(&player.id);
        let Some(next) = matches.find(|m| m.recorded.is_none()) else {
            return json!({"next_match": null});
        };

        let mut data = json!({
            "match_id": next.id,
            "round_id": next.round,
            "opponent_id": next.opponent(&player.id),
            "referee_endpoint": next.referee().and_then(|id| self.endpoint(id)),
        });
        let token = self.match_token(next.round, &player.id);
        if let Some(token) = token.filter(|_| sender.id == player.id) {
            data["match_token"] = json!(token);
        }
        json!({"next_match": data})
    }

    /// Returns the statistics of a player as an answer.
    fn player_stats(&self, player: &Member) -> Value {
        let mut by_opponent = BTreeMap::<&str, PlayerStats>::new();
        let mut matches = Vec::new();
        for the_match in self.matches_of(&player.id) {
            if let Some(recorded) = &the_match.recorded {
                let opponent = the_match.opponent(&player.id);
                let stats = by_opponent.entry(opponent).or_default();
                stats.add(&player.id, &recorded.result);
                matches.push(json!({
                    "match_id": the_match.id,
                    "round_id": the_match.round,
                    "game_type": self.config.league.game_type,
                    "opponent_id": opponent,
                    "result": game_result(&recorded.result),
                }));
            }
        }

        let mut opponents = JsonObject::new();
        for (id, stats) in by_opponent {
            opponents.insert(id.into(), json!(stats.record));
        }

        let stats = self.stats(&player.id);
        let record = stats.record;
        json!({
            "player_id": player.id,
            "display_name": player.meta.display_name,
            "state": self.state_of(player),
            "played": stats.matches_played(),
            "wins": record.wins,
            "draws": record.draws,
            "losses": record.losses,
            "points": stats.points,
            "win_rate": f64::from(record.wins) / f64::from(stats.matches_played().max(1)),
            "technical_losses": stats.technical_losses,
            "choices": stats.choices,
            "opponents": opponents,
            "matches": matches,
        })
    }

    /// Returns the state of an agent. A player that lost its last match technically is suspended:
    /// it is still invited, and is active again after the next match that it plays.
    pub fn state_of(&self, member: &Member) -> AgentState {
        if self.closed {
            AgentState::Shutdown
        } else if !self.started {
            AgentState::Registered
        } else if self.stats(&member.id).is_suspended {
            AgentState::Suspended
        } else {
            AgentState::Active
        }
    }

    /// Returns the status of the league. `reason` says what it waits for.
    pub fn status(&self, reason: Option<String>) -> LeagueStatus {
        LeagueStatus {
            league_id: self.config.league.league_id.clone(),
            status: self.phase(),
            current_round: self.open_round().unwrap_or(self.rounds()),
            total_rounds: self.rounds(),
            matches_completed: self.played.len() as u32,
            reason,
        }
    }
}

fn wrong_param(name: &str, problem: impl Into<String>) -> ProtocolError {
    let field = format!("query_params.{name}");
    ProtocolError::field(ErrorCode::MissingField, &field, problem)
}

/// A round of the schedule as it is shown.
#[derive(Serialize)]
pub struct ScheduledRound<'a> {
    round_id: u32,
    matches: Vec<ScheduledMatch<'a>>,
}

#[derive(Serialize)]
#[allow(non_snake_case, reason = "fields are named by the specification")]
struct ScheduledMatch<'a> {
    match_id: &'a str,
    player_A_id: &'a str,
    player_B_id: &'a str,
    status: &'static str,
    winner: Option<&'a str>,
}

/// Returns the rounds of a schedule as they are shown, or one of them.
pub fn scheduled_rounds(schedule: &[Arc<Match>], round_id: Option<u32>) -> Vec<ScheduledRound<'_>> {
    let mut rounds = Vec::new();
    for round in schedule.chunk_by(|a, b| a.round == b.round) {
        let number = round[0].round;
        if round_id.is_none_or(|requested| requested == number) {
            rounds.push(ScheduledRound {
                round_id: number,
                matches: round.iter().map(scheduled_match).collect(),
            });
        }
    }
    rounds
}

fn scheduled_match(the_match: &Arc<Match>) -> ScheduledMatch<'_> {
    let recorded = the_match.recorded.as_ref();
    let [player_a, player_b] = &the_match.players;

    ScheduledMatch {
        match_id: &the_match.id,
        player_A_id: player_a,
        player_B_id: player_b,
        status: the_match.status(),
        winner: recorded.and_then(|recorded| recorded.result.winner.as_deref()),
    }
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
