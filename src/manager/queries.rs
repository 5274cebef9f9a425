//! What the manager answers to queries: the table, the schedule, a player's next match and its
//! statistics; and the status of the league. Pure.
//!
//! Whatever is wrong with a question is `success: false`, not an error; see "Queries" in
//! `protocol.md`. Read next: `notices.rs`, what is told unasked.

use crate::manager::league::{League, Match, Member, Recorded, matches_of};
use crate::manager::standings::{Career, ChoiceCounts};
use crate::manager::view::MatchStatus;
use crate::object;
use crate::protocol::*;
use crate::wire::{Wire, cut};
use serde_json::json;
use std::collections::BTreeMap;

/// What a paused league waits for.
pub const PAUSED: &str =
    "the league is paused: no further match begins until the operator says resume";

object! {
    /// The answer to GET_STANDINGS.
    StandingsData { standings: Vec<Standing>, }
    /// The answer to GET_SCHEDULE.
    ScheduleData { rounds: Vec<ScheduledRound>, }
    /// A round of it.
    ScheduledRound { round_id: u32, matches: Vec<ScheduledMatch>, }
    /// A match of it.
    ScheduledMatch {
        match_id: String, player_A_id: String, player_B_id: String, status: MatchStatus,
        winner: Option<String>,
    }
    /// The answer to GET_NEXT_MATCH: null when none is left.
    NextMatchData { next_match: Option<NextMatch>, }
    /// The match; its referee is known once the round is announced.
    NextMatch { match_id: String, round_id: u32, opponent_id: String, referee_endpoint: Option<String>, }
    /// The answer to GET_PLAYER_STATS.
    PlayerStats {
        player_id: String, display_name: String, state: AgentState,
        played: u32, wins: u32, draws: u32, losses: u32, points: i32,
        win_rate: f64, technical_losses: u32, choices: ChoiceCounts,
        opponents: BTreeMap<String, Tally>,
    }
}

impl League {
    /// Answers a query; an error only where it has no type to answer with.
    pub fn answer(
        &self,
        query: &LeagueQuery,
        sender: &Member,
    ) -> Result<LeagueQueryResponse, Refusal> {
        let query_type = String::read(&query.query_type.0);
        let answer = self.answer_data(query, sender);
        Ok(LeagueQueryResponse {
            query_type: query_type.map_err(|fault| fault.under("query_type"))?,
            success: answer.is_ok(),
            error: answer.as_ref().err().map(|refusal| QueryError {
                error_code: refusal.code.to_string(),
                error_name: refusal.code.name().into(),
                error_description: refusal.explain(),
            }),
            data: answer.ok(),
        })
    }

    fn answer_data(&self, query: &LeagueQuery, sender: &Member) -> Result<Packet, Refusal> {
        let query_type = query.query_type.get();
        let query_type = query_type.map_err(|fault| fault.under("query_type"))?;
        let params = query.query_params.as_ref().map(|params| params.get());
        let params = params.unwrap_or_else(|| Ok(QueryParams::default()));
        let params = params.map_err(|fault| fault.under("query_params"))?;
        let player = || {
            let own = (sender.kind == Kind::Player).then(|| sender.id.clone());
            let missing = || Refusal::field(Code::E003, "query_params.player_id", "missing");
            let id = params.player_id.or(own).ok_or_else(missing)?;
            let unknown = || format!("Player ID {} not found in registry", cut(&id, 60));
            let player = self.player(&id);
            player.ok_or_else(|| Refusal::new(Code::E005, unknown()))
        };
        let data = match query_type {
            QueryType::Standings => json!(self.standings_data()),
            QueryType::Schedule => json!(self.schedule(params.round_id)?),
            QueryType::NextMatch => {
                let next_match = self.next_match(&player()?.id);
                json!(NextMatchData { next_match })
            }
            QueryType::PlayerStats => json!(self.stats(player()?)),
        };
        Ok(data.as_object().cloned().unwrap_or_default())
    }

    /// The table as an answer.
    pub fn standings_data(&self) -> StandingsData {
        StandingsData {
            standings: self.table().to_vec(),
        }
    }

    /// What `each` makes of every round; before the start of those that there would be with the
    /// players so far.
    pub fn by_round<T>(&self, each: impl Fn(u32, &[Match]) -> T) -> Vec<T> {
        let preview;
        let matches = if self.started {
            &self.matches
        } else {
            preview = matches_of(&self.pairings());
            &preview
        };
        let rounds = matches.chunk_by(|one, other| one.round == other.round);
        rounds.map(|games| each(games[0].round, games)).collect()
    }

    /// The schedule, or one round of it.
    pub fn schedule(&self, round: Option<u32>) -> Result<ScheduleData, Refusal> {
        let mut rounds = self.by_round(|round_id, games| {
            let matches = games.iter().map(scheduled).collect();
            ScheduledRound { round_id, matches }
        });
        let last = rounds.len();
        rounds.retain(|it| round.is_none_or(|round| round == it.round_id));
        if round.is_some() && rounds.is_empty() {
            let problem = format!("must be 1 to {last}");
            return Err(Refusal::field(Code::E003, "query_params.round_id", problem));
        }
        Ok(ScheduleData { rounds })
    }

    fn next_match(&self, player_id: &str) -> Option<NextMatch> {
        let game = self.games(player_id).find(|game| game.recorded.is_none())?;
        let referee = game.referee().and_then(|id| self.members.get(id));
        Some(NextMatch {
            match_id: game.id.clone(),
            round_id: game.round,
            opponent_id: game.opponent(player_id).into(),
            referee_endpoint: referee.map(|referee| referee.endpoint.clone()),
        })
    }

    /// What a player has done so far: its row of the table, and what only its matches tell.
    pub fn stats(&self, player: &Member) -> PlayerStats {
        let career = self.career(&player.id);
        let mut opponents = BTreeMap::<String, Career>::new();
        for game in self.games(&player.id) {
            if let Some(Recorded { result, .. }) = &game.recorded {
                let opponent = opponents.entry(game.opponent(&player.id).into());
                opponent.or_default().add(&player.id, result);
            }
        }
        let row = career.row(&player.id, &player.display_name);
        let against = opponents.into_iter();
        PlayerStats {
            player_id: row.player_id,
            display_name: row.display_name,
            state: self.state_of(player),
            played: row.played,
            wins: row.wins,
            draws: row.draws,
            losses: row.losses,
            points: row.points,
            win_rate: f64::from(row.wins) / f64::from(row.played.max(1)),
            technical_losses: career.technical_losses,
            choices: career.choices,
            opponents: against.map(|(id, career)| (id, career.tally)).collect(),
        }
    }

    /// How far the league has come. `waiting`: what one that has started waits for.
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

/// How far a match has come.
pub fn match_status(game: &Match) -> MatchStatus {
    match (&game.recorded, &game.assignment) {
        (Some(_), _) => MatchStatus::Completed,
        (None, Some(_)) => MatchStatus::Assigned,
        (None, None) => MatchStatus::Scheduled,
    }
}

fn scheduled(game: &Match) -> ScheduledMatch {
    ScheduledMatch {
        match_id: game.id.clone(),
        player_A_id: game.players[0].clone(),
        player_B_id: game.players[1].clone(),
        status: match_status(game),
        winner: game
            .recorded
            .as_ref()
            .and_then(|it| it.result.winner.clone()),
    }
}
