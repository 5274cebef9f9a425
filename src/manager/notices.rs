//! What the manager announces: messages made from the state of the league.
//!
//! The table, a round's end and the league's end are the same for everybody. All players hear the
//! same announcement of a round, beside which each player finds its own match token; a referee's
//! copy has more in it. What others wrote in these messages, names and endpoints, has had a bound
//! since the registration, so that no notice is longer than agents read. See "Rounds" and
//! "Standings and notices" in `protocol.md`.

use crate::manager::league::{League, Match, MatchAssignment};
use crate::manager::standings::ending;
use crate::protocol::*;

impl League {
    /// The announcement of what is still to be played in a round: as all players read it, or in the
    /// copy of a `referee`, who finds in it where the players are, how they stand, and the match
    /// tokens of its own matches.
    pub fn announcement(&self, round_id: u32, referee: Option<&str>) -> RoundAnnouncement {
        let assigned = self.assigned(round_id);
        RoundAnnouncement {
            league_id: self.config.league.league_id.clone(),
            round_id,
            matches: assigned
                .map(|(game, given)| self.entry(game, given, referee))
                .collect(),
            match_token: None,
        }
    }

    /// What is still to be played in a round and has a referee.
    pub fn assigned(&self, round: u32) -> impl Iterator<Item = (&Match, &MatchAssignment)> {
        self.open_matches(round)
            .filter_map(|game| Some((game, game.assignment.as_ref()?)))
    }

    /// The token of a player's match in a round.
    pub fn match_token(&self, round: u32, player_id: &str) -> Option<String> {
        let (game, given) = self
            .assigned(round)
            .find(|(game, _)| game.seat(player_id).is_some())?;
        let token = &given.tokens[game.seat(player_id)?];
        (!token.is_empty()).then(|| token.clone())
    }

    /// A match as everybody may see it, or with what a referee may see beside that.
    fn entry(&self, game: &Match, given: &MatchAssignment, referee: Option<&str>) -> MatchEntry {
        let [a, b] = &game.players;
        let endpoint = |id: &String| Some(self.members.get(id)?.endpoint.clone());
        let tally = |id: &String| self.career(id).tally;
        let own = referee.filter(|id| *id == given.referee_id);
        let token = |seat: usize| {
            let token = own.map(|_| given.tokens[seat].clone());
            token.filter(|token| !token.is_empty())
        };
        MatchEntry {
            match_id: game.id.clone(),
            game_type: self.config.league.game_type.clone(),
            player_A_id: a.clone(),
            player_B_id: b.clone(),
            referee_endpoint: endpoint(&given.referee_id).unwrap_or_default(),
            player_A_endpoint: referee.and_then(|_| endpoint(a)),
            player_B_endpoint: referee.and_then(|_| endpoint(b)),
            player_A_standings: referee.map(|_| tally(a)),
            player_B_standings: referee.map(|_| tally(b)),
            player_A_token: token(0),
            player_B_token: token(1),
            referee_id: referee.map(|_| given.referee_id.clone()),
            match_token: None,
        }
    }

    /// The table as a notice, with the round of the last result.
    pub fn standings_update(&self) -> LeagueStandingsUpdate {
        let last = self.played.last().and_then(|id| self.find(id));
        LeagueStandingsUpdate {
            league_id: self.config.league.league_id.clone(),
            round_id: last.map_or(1, |game| game.round),
            standings: self.table().to_vec(),
        }
    }

    /// A round's end.
    pub fn round_completed(&self, round: u32) -> RoundCompleted {
        let games = self.round(round);
        let recorded = games.iter().filter_map(|game| game.recorded.as_ref());
        let endings: Vec<Ending> = recorded.map(|it| ending(&it.result)).collect();
        let count = |wanted| endings.iter().filter(|it| **it == wanted).count() as u32;
        RoundCompleted {
            league_id: self.config.league.league_id.clone(),
            round_id: round,
            matches_completed: endings.len() as u32,
            next_round_id: (round < self.rounds()).then_some(round + 1),
            summary: RoundSummary {
                total_matches: games.len() as u32,
                wins: count(Ending::Win),
                draws: count(Ending::Draw),
                technical_losses: count(Ending::TechnicalLoss),
            },
        }
    }

    /// The league's end; nothing where nobody plays.
    pub fn completed(&self) -> Option<LeagueCompleted> {
        let table = self.table();
        let first = table.first()?;
        let row = |row: &Standing| FinalRow {
            rank: row.rank,
            player_id: row.player_id.clone(),
            points: row.points,
            display_name: Some(row.display_name.clone()),
        };
        Some(LeagueCompleted {
            league_id: self.config.league.league_id.clone(),
            total_rounds: self.rounds(),
            total_matches: self.matches.len() as u32,
            champion: Champion {
                player_id: first.player_id.clone(),
                display_name: first.display_name.clone(),
                points: first.points,
            },
            final_standings: table.iter().map(row).collect(),
        })
    }
}
