//! What the manager answers to queries, and what its notices say: messages made from the state. Pure.

use crate::{
    league::{Event, League, Match, Member},
    object,
    protocol::*,
    standings::ending,
    wire::{Fault, Wire},
    words,
};
use std::collections::BTreeMap;

words! {
    /// How far a match of the schedule has come, as the manager sees it.
    MatchStatus { Scheduled = "scheduled", Assigned = "assigned", Completed = "completed", }
}

object! {
    /// The answer to GET_STANDINGS.
    StandingsData { standings: Vec<Standing>, }
    /// The answer to GET_SCHEDULE.
    ScheduleData { rounds: Vec<ScheduledRound>, }
    /// A round of it.
    ScheduledRound { round_id: u32, matches: Vec<ScheduledMatch>, }
    /// A match of it.
    ScheduledMatch {
        match_id: String, player_A_id: String, player_B_id: String, status: MatchStatus, winner: Option<String>,
    }
    /// The answer to GET_NEXT_MATCH: null when none is left.
    NextMatchData { next_match: Option<NextMatch>, }
    /// The match; its referee is known once the round is announced.
    NextMatch { match_id: String, round_id: u32, opponent_id: String, referee_endpoint: Option<String>, }
    /// The answer to GET_PLAYER_STATS.
    PlayerStats {
        player_id: String, display_name: String, state: AgentState,
        played: u32, wins: u32, draws: u32, losses: u32, points: i32,
        win_rate: f64, technical_losses: u32, choices: ChoiceCounts, opponents: BTreeMap<String, Tally>,
    }
    /// How often a player chose what.
    ChoiceCounts { even: u32, odd: u32, }
}

impl League {
    /// Answers a query (002 §8.2, R10). Whatever is wrong with the question is `success: false`, not an error.
    pub fn answer(&self, query: &LeagueQuery, sender: &Member) -> Result<LeagueQueryResponse, Refusal> {
        let query_type = String::read(&query.query_type.0).map_err(|fault| fault.under("query_type"))?;
        let (data, refusal) = match self.answer_data(query, sender) {
            Ok(data) => (Some(data), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let error = refusal.map(|refusal| QueryError {
            error_code: refusal.code.to_string(),
            error_name: refusal.code.name().into(),
            error_description: refusal.explain(),
        });
        Ok(LeagueQueryResponse { query_type, success: error.is_none(), data, error })
    }

    fn answer_data(&self, query: &LeagueQuery, sender: &Member) -> Result<Packet, Refusal> {
        let at = |field: &'static str| move |fault: Fault| Refusal::from(fault.under(field));
        let query_type = query.query_type.get().map_err(at("query_type"))?;
        let params = match &query.query_params {
            Some(params) => params.get().map_err(at("query_params"))?,
            None => QueryParams { player_id: None, round_id: None },
        };
        let player = || {
            let id = match (&params.player_id, sender.kind) {
                (Some(id), _) => id,
                (None, Kind::Player) => &sender.id,
                (None, _) => return Err(Refusal::field(Code::E003, "query_params.player_id", "missing")),
            };
            let unknown = || format!("Player ID {id} not found in registry");
            self.player(id).ok_or_else(|| Refusal::new(Code::E005, unknown()))
        };
        let data = match query_type {
            QueryType::Standings => serde_json::to_value(StandingsData { standings: self.table() }),
            QueryType::Schedule => serde_json::to_value(self.schedule(params.round_id)?),
            QueryType::NextMatch => serde_json::to_value(NextMatchData { next_match: self.next_match(&player()?.id) }),
            QueryType::PlayerStats => serde_json::to_value(self.stats(player()?)),
        };
        Ok(data.ok().and_then(|data| data.as_object().cloned()).unwrap_or_default())
    }

    /// The schedule, or one round of it. Before the start: as it would be with the players so far.
    pub fn schedule(&self, round: Option<u32>) -> Result<ScheduleData, Refusal> {
        let preview = || {
            let mut preview = self.clone();
            preview.apply(&Event::Started { seed: None, rounds: self.pairings() });
            preview
        };
        let preview = (!self.started).then(preview);
        let league = preview.as_ref().unwrap_or(self);
        let rounds = league.rounds();
        if round.is_some_and(|round| !(1..=rounds).contains(&round)) {
            return Err(Refusal::field(Code::E003, "query_params.round_id", format!("must be 1 to {rounds}")));
        }
        let wanted = (1..=rounds).filter(|n| round.is_none_or(|round| round == *n));
        let rounds = wanted.map(|n| ScheduledRound { round_id: n, matches: league.round(n).map(scheduled).collect() });
        Ok(ScheduleData { rounds: rounds.collect() })
    }

    fn next_match(&self, player_id: &str) -> Option<NextMatch> {
        let game = self.matches.iter().find(|game| game.has(player_id) && game.recorded.is_none())?;
        let referee = game.referee().and_then(|id| self.members.get(id));
        Some(NextMatch {
            match_id: game.id.clone(),
            round_id: game.round,
            opponent_id: game.opponent(player_id),
            referee_endpoint: referee.map(|referee| referee.endpoint.clone()),
        })
    }

    fn stats(&self, player: &Member) -> PlayerStats {
        let table = self.table();
        let row = table.iter().find(|row| row.player_id == player.id);
        let count = |of: fn(&Standing) -> u32| row.map_or(0, of);
        let (played, wins) = (count(|row| row.played), count(|row| row.wins));
        let mut choices = ChoiceCounts { even: 0, odd: 0 };
        let (mut technical_losses, mut opponents) = (0, BTreeMap::new());
        for (game, recorded) in self.matches.iter().filter_map(|game| Some((game, game.recorded.as_ref()?))) {
            if !game.has(&player.id) {
                continue;
            }
            match recorded.result.details.choices.get(&player.id).copied().flatten() {
                Some(Parity::Even) => choices.even += 1,
                Some(Parity::Odd) => choices.odd += 1,
                None => {}
            }
            let against = opponents.entry(game.opponent(&player.id)).or_insert(Tally { wins: 0, losses: 0, draws: 0 });
            match (recorded.result.winner.as_ref(), ending(&recorded.result)) {
                (Some(winner), _) if *winner == player.id => against.wins += 1,
                (_, Ending::Draw) => against.draws += 1,
                (_, ending) => {
                    against.losses += 1;
                    technical_losses += u32::from(ending == Ending::TechnicalLoss);
                }
            }
        }
        PlayerStats {
            player_id: player.id.clone(),
            display_name: player.display_name.clone(),
            state: self.state_of(player),
            played,
            wins,
            draws: count(|row| row.draws),
            losses: count(|row| row.losses),
            points: row.map_or(0, |row| row.points),
            win_rate: f64::from(wins) / f64::from(played.max(1)),
            technical_losses,
            choices,
            opponents,
        }
    }

    /// How far the league has come (001 §4.1). `reason`: what it waits for.
    pub fn status(&self, reason: Option<String>) -> LeagueStatus {
        let waiting = self.start(None).err();
        LeagueStatus {
            league_id: self.rules.league_id.clone(),
            status: self.progress(),
            current_round: self.open_round().unwrap_or(self.rounds()),
            total_rounds: self.rounds(),
            matches_completed: self.played.len() as u32,
            reason: waiting.or(reason),
        }
    }

    /// The announcement of what is still to be played in a round, in `reader`'s copy (R4, R6): players find their own
    /// match token; referees find endpoints and records, and both tokens of the matches that are theirs.
    pub fn announcement(&self, round: u32, reader: &Member) -> RoundAnnouncement {
        let table = if reader.kind == Kind::Referee { self.table() } else { Vec::new() };
        RoundAnnouncement {
            league_id: self.rules.league_id.clone(),
            round_id: round,
            matches: self.open_matches(round).map(|game| self.announced(game, reader, &table)).collect(),
        }
    }

    /// A match as `reader` may see it.
    fn announced(&self, game: &Match, reader: &Member, table: &[Standing]) -> MatchEntry {
        let [a, b] = &game.players;
        let referee = game.referee().and_then(|id| self.members.get(id));
        let for_referee = reader.kind == Kind::Referee;
        let its_own = referee.is_some_and(|referee| referee.id == reader.id);
        let endpoint = |id: &String| self.members.get(id).filter(|_| for_referee).map(|it| it.endpoint.clone());
        let row = |id: &String| table.iter().find(|row| row.player_id == *id);
        let record = |id| row(id).map(|row| Tally { wins: row.wins, losses: row.losses, draws: row.draws });
        let token = |seat: usize, shown: bool| {
            let order = game.order.as_ref().filter(|_| shown);
            order.map(|order| order.tokens[seat].clone()).filter(|token| !token.is_empty())
        };
        let seat = game.players.iter().position(|player| *player == reader.id);
        MatchEntry {
            match_id: game.id.clone(),
            game_type: GAME.into(),
            player_A_id: a.clone(),
            player_B_id: b.clone(),
            referee_endpoint: referee.map(|referee| referee.endpoint.clone()).unwrap_or_default(),
            player_A_endpoint: endpoint(a),
            player_B_endpoint: endpoint(b),
            player_A_standings: record(a),
            player_B_standings: record(b),
            player_A_token: token(0, its_own),
            player_B_token: token(1, its_own),
            match_token: seat.and_then(|seat| token(seat, true)),
        }
    }

    /// The table as a notice (002 §7.2).
    pub fn standings_update(&self) -> LeagueStandingsUpdate {
        let last = self.played.last().and_then(|id| self.find(id)).map_or(1, |game| game.round);
        LeagueStandingsUpdate { league_id: self.rules.league_id.clone(), round_id: last, standings: self.table() }
    }

    /// A round's end (002 §4.2).
    pub fn round_completed(&self, round: u32) -> RoundCompleted {
        let endings: Vec<Ending> =
            self.round(round).filter_map(Match::played).map(|game| ending(game.result)).collect();
        let count = |wanted| endings.iter().filter(|ending| **ending == wanted).count() as u32;
        RoundCompleted {
            league_id: self.rules.league_id.clone(),
            round_id: round,
            matches_completed: endings.len() as u32,
            next_round_id: (round < self.rounds()).then_some(round + 1),
            summary: RoundSummary {
                total_matches: self.round(round).count() as u32,
                wins: count(Ending::Win),
                draws: count(Ending::Draw),
                technical_losses: count(Ending::TechnicalLoss),
            },
        }
    }

    /// The league's end (002 §4.3); nothing where nobody plays.
    pub fn completed(&self) -> Option<LeagueCompleted> {
        let table = self.table();
        let first = table.first()?;
        let champion = Champion {
            player_id: first.player_id.clone(),
            display_name: first.display_name.clone(),
            points: first.points,
        };
        let row = |row: &Standing| FinalRow {
            rank: row.rank,
            player_id: row.player_id.clone(),
            points: row.points,
            display_name: Some(row.display_name.clone()),
        };
        Some(LeagueCompleted {
            league_id: self.rules.league_id.clone(),
            total_rounds: self.rounds(),
            total_matches: self.matches.len() as u32,
            final_standings: table.iter().map(row).collect(),
            champion,
        })
    }
}

fn scheduled(game: &Match) -> ScheduledMatch {
    let status = match (&game.recorded, &game.order) {
        (Some(_), _) => MatchStatus::Completed,
        (None, Some(_)) => MatchStatus::Assigned,
        (None, None) => MatchStatus::Scheduled,
    };
    ScheduledMatch {
        match_id: game.id.clone(),
        player_A_id: game.players[0].clone(),
        player_B_id: game.players[1].clone(),
        status,
        winner: game.recorded.as_ref().and_then(|recorded| recorded.result.winner.clone()),
    }
}
