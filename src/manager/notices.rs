//! What the manager announces: messages made from the state of the league.
//!
//! The table, a round's end and the league's end are the same for everybody. All players hear the same announcement of
//! a round, beside which each player finds its own match token; a referee's copy has more in it. What others wrote in
//! these messages, names and endpoints, has had a bound since the registration, so that no notice is longer than agents
//! read. See "Rounds" and "Standings and notices" in `protocol.md`.

use crate::manager::league::{League, Match, MatchAssignment, Member};
use crate::manager::standings::{Record, ending};
use crate::protocol::{
    Champion, Ending, FinalRow, LeagueCompleted, LeagueStandingsUpdate, MatchEntry,
    RoundAnnouncement, RoundCompleted, RoundSummary, Standing,
};

impl League {
    /// The announcement of what is still to be played in a round: as all players read it, or in the copy of a
    /// `referee`, who finds in it where the players are, how they stand, and the match tokens of its own matches.
    pub fn announcement(&self, round_id: u32, referee: Option<&Member>) -> RoundAnnouncement {
        let assigned = self.assigned(round_id);
        let entries = assigned.map(|(game, given)| match referee {
            None => self.entry(game, given),
            Some(referee) => self.entry_for(referee, game, given),
        });
        RoundAnnouncement {
            league_id: self.rules.league_id.clone(),
            round_id,
            matches: entries.collect(),
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

    fn endpoint(&self, id: &str) -> Option<String> {
        let member = self.members.get(id)?;
        Some(member.endpoint.clone())
    }

    /// A match as everybody may see it.
    fn entry(&self, game: &Match, given: &MatchAssignment) -> MatchEntry {
        let [a, b] = &game.players;
        MatchEntry {
            match_id: game.id.clone(),
            game_type: self.rules.game_type.clone(),
            player_A_id: a.clone(),
            player_B_id: b.clone(),
            referee_endpoint: self.endpoint(&given.referee_id).unwrap_or_default(),
            player_A_endpoint: None,
            player_B_endpoint: None,
            player_A_standings: None,
            player_B_standings: None,
            player_A_token: None,
            player_B_token: None,
            referee_id: None,
            match_token: None,
        }
    }

    /// A match as a referee may see it.
    fn entry_for(&self, referee: &Member, game: &Match, given: &MatchAssignment) -> MatchEntry {
        let [a, b] = &game.players;
        let token = |seat: usize| {
            let token = &given.tokens[seat];
            let is_its_own = referee.id == given.referee_id;
            (is_its_own && !token.is_empty()).then(|| token.clone())
        };
        MatchEntry {
            referee_id: Some(given.referee_id.clone()),
            player_A_endpoint: self.endpoint(a),
            player_B_endpoint: self.endpoint(b),
            player_A_standings: self.record_of(a).map(Record::tally),
            player_B_standings: self.record_of(b).map(Record::tally),
            player_A_token: token(0),
            player_B_token: token(1),
            ..self.entry(game, given)
        }
    }

    /// The table as a notice, with the round of the last result.
    pub fn standings_update(&self) -> LeagueStandingsUpdate {
        let last = self
            .played
            .last()
            .and_then(|id| self.find(id))
            .map_or(1, |game| game.round);
        let standings = self.table().to_vec();
        LeagueStandingsUpdate {
            league_id: self.rules.league_id.clone(),
            round_id: last,
            standings,
        }
    }

    /// A round's end.
    pub fn round_completed(&self, round: u32) -> RoundCompleted {
        let games = self.round(round);
        let endings = || {
            games
                .iter()
                .filter_map(|game| Some(ending(&game.recorded.as_ref()?.result)))
        };
        let count = |wanted| endings().filter(|ending| *ending == wanted).count() as u32;
        RoundCompleted {
            league_id: self.rules.league_id.clone(),
            round_id: round,
            matches_completed: endings().count() as u32,
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
        let (player_id, display_name) = (first.player_id.clone(), first.display_name.clone());
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
            champion: Champion {
                player_id,
                display_name,
                points: first.points,
            },
            final_standings: table.iter().map(row).collect(),
        })
    }
}
