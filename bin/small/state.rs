//! What the small manager knows: the members, the schedule and the results; and what follows from
//! them: the table and the answers to queries. Nothing here calls another agent.
//! In chapter two every change is an event that is written to disk before it counts
//! (`src/manager/league.rs`), and an agent that comes again is known again (`registration.rs`).

use crate::config::LeagueFile;
use crate::net;
use league::games::{self, TieBreak};
use league::protocol::{
    AgentKind, AgentMeta, EVEN_ODD, ErrorCode, GameResult, LeaguePhase, MatchEntry, ProtocolError,
    Record, ResultStatus, Standing,
};
use serde_json::{Value, json};

pub struct League {
    rules: LeagueFile,
    pub phase: LeaguePhase,
    pub current_round: u32,
    pub members: Vec<Member>,
    pub matches: Vec<Match>,
}

/// A registered agent.
#[derive(Clone)]
pub struct Member {
    pub kind: AgentKind,
    pub id: String,
    pub token: Option<String>,
    pub meta: AgentMeta,
}

impl Member {
    /// Returns the name with which the agent signs its messages.
    pub fn name(&self) -> String {
        format!("{}:{}", self.kind, self.id)
    }
}

/// A match of the schedule, and its result once that is reported.
pub struct Match {
    pub id: String,
    pub round_id: u32,
    pub players: [String; 2],
    pub referee_id: String,
    pub result: Option<GameResult>,
}

impl Match {
    /// Returns the opponent of a player; `None` if it is not in this match.
    fn opponent_of(&self, player_id: &str) -> Option<&String> {
        match &self.players {
            [a, b] if a == player_id => Some(b),
            [a, b] if b == player_id => Some(a),
            _ => None,
        }
    }
}

impl League {
    pub fn new(rules: LeagueFile) -> League {
        League {
            rules,
            phase: LeaguePhase::Waiting,
            current_round: 0,
            members: Vec::new(),
            matches: Vec::new(),
        }
    }

    /// Returns the ids of the members of a kind in order: P10 comes after P9.
    pub fn ids_of(&self, kind: AgentKind) -> Vec<String> {
        let members = self.members.iter().filter(|member| member.kind == kind);
        let mut ids: Vec<String> = members.map(|member| member.id.clone()).collect();
        ids.sort_by_key(|id| (id.len(), id.clone()));
        ids
    }

    fn member(&self, id: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    /// Returns the name of a member. Several members may have the same.
    pub fn name_of(&self, id: &str) -> String {
        self.member(id)
            .map_or(id.to_string(), |member| member.meta.display_name.clone())
    }

    fn endpoint_of(&self, id: &str) -> Option<String> {
        Some(self.member(id)?.meta.contact_endpoint.clone())
    }

    /// Registers an agent, under the id that its sender names (`player:P07`) if that is free, else
    /// under the first free one. An error says why it is rejected.
    pub fn register(
        &mut self,
        kind: AgentKind,
        meta: &AgentMeta,
        sender: &str,
    ) -> Result<Member, String> {
        // Check whether it may become a member.
        if self.phase != LeaguePhase::Waiting {
            return Err("Registration closed - league already started".to_string());
        }
        let count = self.ids_of(kind).len();
        if kind == AgentKind::Player && count >= self.rules.participants.max_players {
            return Err("Maximum players reached".to_string());
        }
        net::check_meta(meta)?;

        // Give it an id and a token.
        let ids = (1..1000).map(|number| kind.format_id(number));
        let free_ids: Vec<String> = ids.filter(|id| self.member(id).is_none()).collect();
        let wanted = free_ids.iter().find(|id| sender == format!("{kind}:{id}"));
        let id = wanted.unwrap_or(&free_ids[0]).clone();
        let member = Member {
            kind,
            token: Some(net::new_token(&id)),
            id,
            meta: meta.clone(),
        };
        self.members.push(member.clone());
        Ok(member)
    }

    /// Starts the league if it has not started. An error says what is missing.
    pub fn start(&mut self) -> Result<(), String> {
        if self.phase != LeaguePhase::Waiting {
            return Ok(());
        }
        let players = self.ids_of(AgentKind::Player);
        let referees = self.ids_of(AgentKind::Referee);
        let (count, needed) = (players.len(), self.rules.participants.min_players);
        if count < needed || referees.is_empty() {
            let referees = referees.len();
            return Err(format!(
                "{count} of at least {needed} players and {referees} of at least 1 referee are here"
            ));
        }
        self.phase = LeaguePhase::Running;
        self.matches = make_schedule(players, referees);
        Ok(())
    }

    /// Returns the number of the last round of the schedule, which is complete before round 1.
    pub fn total_rounds(&self) -> u32 {
        self.matches.last().map_or(0, |last| last.round_id)
    }

    pub fn matches_of(&self, round_id: u32) -> Vec<&Match> {
        let matches = self.matches.iter();
        matches.filter(|m| m.round_id == round_id).collect()
    }

    /// Returns a round as ROUND_ANNOUNCEMENT has it. Only referees are told where the players are.
    pub fn announcement(&self, round_id: u32, receiver: AgentKind) -> Vec<MatchEntry> {
        let mut entries = Vec::new();
        for the_match in self.matches_of(round_id) {
            let [a, b] = &the_match.players;
            let mut entry = MatchEntry {
                match_id: the_match.id.clone(),
                game_type: EVEN_ODD.to_string(),
                player_A_id: a.clone(),
                player_B_id: b.clone(),
                referee_endpoint: self.endpoint_of(&the_match.referee_id).unwrap_or_default(),
                ..MatchEntry::default()
            };
            if receiver == AgentKind::Referee {
                entry.player_A_endpoint = self.endpoint_of(a);
                entry.player_B_endpoint = self.endpoint_of(b);
                entry.player_A_standings = Some(self.record_of(a));
                entry.player_B_standings = Some(self.record_of(b));
            }
            entries.push(entry);
        }
        entries
    }

    /// Returns the table: by points, then by the tie-breaks of the league file, then by id.
    pub fn standings(&self) -> Vec<Standing> {
        // Each player has a list of numbers, and the greater list is ahead. Points come first.
        let all_ids = self.ids_of(AgentKind::Player);
        let mut rows = Vec::new();
        for id in &all_ids {
            let row = self.count(id, &all_ids);
            rows.push((vec![row.points], row));
        }

        // Each tie-break adds a number.
        for tie_break in &self.rules.scoring.tiebreakers {
            let before = rows.clone();
            for (numbers, row) in &mut rows {
                let equal = before.iter().filter(|(others, _)| others == numbers);
                let equal_ids: Vec<String> = equal.map(|(_, row)| row.player_id.clone()).collect();
                numbers.push(match tie_break {
                    TieBreak::Wins => row.wins as i32,
                    TieBreak::HeadToHead => self.count(&row.player_id, &equal_ids).points,
                    TieBreak::Draws => -(row.draws as i32), // fewer are better
                });
            }
        }

        // Players with equal lists share a rank, and stay in the order of their ids.
        rows.sort_by(|(one, _), (other, _)| other.cmp(one));
        let mut standings = Vec::new();
        for (numbers, row) in &rows {
            let ahead = rows.iter().filter(|(others, _)| others > numbers);
            let rank = ahead.count() as u32 + 1;
            standings.push(Standing {
                rank,
                ..row.clone()
            });
        }
        standings
    }

    /// Counts the results of a player in its matches against these opponents.
    fn count(&self, player_id: &str, opponents: &[String]) -> Standing {
        let mut row = Standing {
            player_id: player_id.to_string(),
            display_name: self.name_of(player_id),
            ..Standing::default()
        };
        for the_match in &self.matches {
            let opponent = the_match.opponent_of(player_id);
            let opponent = opponent.filter(|id| opponents.contains(id));
            let (Some(_), Some(result)) = (opponent, &the_match.result) else {
                continue;
            };
            row.played += 1;
            row.points += games::points(result, player_id, &self.rules.scoring);
            match &result.winner_player_id {
                Some(winner) if winner == player_id => row.wins += 1,
                None if result.status == ResultStatus::Draw => row.draws += 1,
                _ => row.losses += 1,
            }
        }
        row
    }

    /// Returns the wins, losses and draws of a player so far.
    fn record_of(&self, player_id: &str) -> Record {
        let row = self.count(player_id, &self.ids_of(AgentKind::Player));
        Record {
            wins: row.wins,
            losses: row.losses,
            draws: row.draws,
        }
    }

    /// Returns the data that a query asks for; those about a player are about this one.
    pub fn answer(&self, query_type: &str, player_id: &str) -> Result<Value, ProtocolError> {
        let standings = self.standings();
        let row = standings.iter().find(|row| row.player_id == player_id);
        match query_type {
            "GET_STANDINGS" => Ok(json!({"standings": standings})),
            "GET_SCHEDULE" => Ok(self.schedule()),
            "GET_NEXT_MATCH" if row.is_some() => Ok(self.next_match(player_id)),
            "GET_PLAYER_STATS" if row.is_some() => Ok(json!(row)),
            "GET_NEXT_MATCH" | "GET_PLAYER_STATS" => {
                let problem = format!("{player_id} is not a registered player");
                Err(ProtocolError::new(ErrorCode::PlayerNotRegistered, problem))
            }
            _ => {
                let legal =
                    "expected GET_STANDINGS, GET_SCHEDULE, GET_NEXT_MATCH, GET_PLAYER_STATS";
                Err(ProtocolError::unexpected_value(
                    ErrorCode::MissingField,
                    "query_type",
                    query_type,
                    legal,
                ))
            }
        }
    }

    /// Returns all rounds, as GET_SCHEDULE has them.
    fn schedule(&self) -> Value {
        let mut rounds = Vec::new();
        for round_id in 1..=self.total_rounds() {
            let mut matches = Vec::new();
            for the_match in self.matches_of(round_id) {
                let result = the_match.result.as_ref();
                matches.push(json!({
                    "match_id": the_match.id,
                    "player_A_id": the_match.players[0],
                    "player_B_id": the_match.players[1],
                    "status": if result.is_some() { "completed" } else { "pending" },
                    "winner": result.and_then(|result| result.winner_player_id.clone()),
                }));
            }
            rounds.push(json!({"round_id": round_id, "matches": matches}));
        }
        json!({"rounds": rounds})
    }

    /// Returns the next match of a player, as GET_NEXT_MATCH has it; null if there is none.
    fn next_match(&self, player_id: &str) -> Value {
        for the_match in &self.matches {
            let opponent_id = the_match.opponent_of(player_id);
            if the_match.result.is_none() && opponent_id.is_some() {
                return json!({"next_match": {
                    "match_id": the_match.id,
                    "round_id": the_match.round_id,
                    "opponent_id": opponent_id,
                    "referee_endpoint": self.endpoint_of(&the_match.referee_id),
                }});
            }
        }
        json!({"next_match": null})
    }
}

/// Makes the rounds by the circle method. The first player stays, all others move on by one place
/// each round, and each meets the one opposite. With an odd number of players one place is empty:
/// the player opposite has no match in this round.
fn make_schedule(players: Vec<String>, referees: Vec<String>) -> Vec<Match> {
    // Place the players in a circle.
    let mut circle: Vec<Option<String>> = players.into_iter().map(Some).collect();
    if circle.len() % 2 == 1 {
        circle.push(None);
    }

    // Pair those who are opposite, and turn the circle.
    let mut matches = Vec::new();
    for round_id in 1..circle.len() as u32 {
        let mut number = 0;
        for place in 0..circle.len() / 2 {
            let opposite = circle.len() - 1 - place;
            let (Some(a), Some(b)) = (&circle[place], &circle[opposite]) else {
                continue;
            };
            let mut players = [a.clone(), b.clone()];
            if place == 0 && round_id % 2 == 0 {
                players.reverse(); // the first player is not always player A
            }
            number += 1;
            matches.push(Match {
                id: format!("R{round_id}M{number}"),
                round_id,
                players,
                referee_id: referees[(number - 1) % referees.len()].clone(),
                result: None,
            });
        }
        circle[1..].rotate_right(1);
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn schedule_of(players: u32) -> Vec<Match> {
        let ids = (1..=players).map(|number| AgentKind::Player.format_id(number));
        make_schedule(ids.collect(), vec!["REF01".to_string()])
    }

    #[test]
    fn five_players_meet_each_other_once() {
        let (mut pairs, mut playing) = (HashSet::new(), HashSet::new());
        for the_match in schedule_of(5) {
            for id in &the_match.players {
                assert!(playing.insert((the_match.round_id, id.clone())));
            }
            let mut pair = the_match.players;
            pair.sort();
            assert!(pairs.insert(pair), "a pair meets twice");
        }
        assert_eq!((pairs.len(), playing.len()), (10, 20)); // five rounds, a bye in each
    }

    #[test]
    fn head_to_head_decides_among_equal_players() {
        let rules = include_str!("../../config/leagues/league_2025_even_odd.json");
        let mut league = League::new(serde_json::from_str(rules).unwrap());
        for id in ["P01", "P02", "P03", "P04"] {
            league.members.push(Member {
                kind: AgentKind::Player,
                id: id.to_string(),
                token: None,
                meta: AgentMeta::default(),
            });
        }

        // P01 beats P02 and P03; P02 beats P03 and P04; P03 beats P04; P04 beats P01. It is an 8.
        league.matches = schedule_of(4);
        for the_match in &mut league.matches {
            let is_second = ["R1M1", "R2M1", "R2M2"].contains(&the_match.id.as_str());
            let choices = [["even", "odd"], ["odd", "even"]][usize::from(is_second)];
            let moves = games::alternating(&choices);
            the_match.result =
                Some(games::even_odd::GAME.judge(&the_match.players, &moves, Some(8)));
        }
        let table = league.standings();
        let rows: Vec<(u32, i32)> = table.iter().map(|row| (row.rank, row.points)).collect();
        assert_eq!(rows, [(1, 6), (2, 6), (3, 3), (4, 3)]);
    }
}
