//! What the manager announces: messages made from the state. Pure.
//!
//! The table, a round's end and the league's end are the same for everybody; an announcement has a copy for each
//! reader. What others wrote in them, names and endpoints, has a bound since the registration, so that no notice is
//! longer than agents read. See "Rounds" and "Standings and notices" in `protocol.md`.

use crate::manager::league::{League, Match, MatchAssignment, Member};
use crate::manager::standings::ending;
use crate::protocol::{
    Champion, Ending, FinalRow, GAME, Kind, LeagueCompleted, LeagueStandingsUpdate, MatchEntry,
    RoundAnnouncement, RoundCompleted, RoundSummary, Standing,
};

impl League {
    /// The announcement of what is still to be played in a round, in `reader`'s copy: players find their own match
    /// token; referees find endpoints and records, and both tokens of the matches that are theirs. Without a
    /// reader nothing is in it that is for one alone.
    pub fn announcement(&self, round_id: u32, reader: Option<&Member>) -> RoundAnnouncement {
        let matches = self
            .assigned(round_id)
            .map(|(game, given)| self.entry(game, given, reader))
            .collect();
        RoundAnnouncement {
            league_id: self.rules.league_id.clone(),
            round_id,
            matches,
            match_token: None,
        }
    }

    /// What is still to be played and has a referee.
    pub fn assigned(&self, round: u32) -> impl Iterator<Item = (&Match, &MatchAssignment)> {
        self.open_matches(round)
            .filter_map(|game| Some((game, game.assignment.as_ref()?)))
    }

    /// A match as `reader` may see it, or everybody.
    fn entry(&self, game: &Match, given: &MatchAssignment, reader: Option<&Member>) -> MatchEntry {
        let [a, b] = &game.players;
        let endpoint = |id: &String| self.members.get(id).map(|member| member.endpoint.clone());
        let referee = reader.filter(|reader| reader.kind == Kind::Referee);
        let its_own = referee.is_some_and(|referee| referee.id == given.referee_id);
        let token =
            |seat: usize| Some(given.tokens[seat].clone()).filter(|token| !token.is_empty());
        MatchEntry {
            match_id: game.id.clone(),
            game_type: GAME.into(),
            player_A_id: a.clone(),
            player_B_id: b.clone(),
            referee_endpoint: endpoint(&given.referee_id).unwrap_or_default(),
            player_A_endpoint: referee.and_then(|_| endpoint(a)),
            player_B_endpoint: referee.and_then(|_| endpoint(b)),
            player_A_standings: referee.and_then(|_| self.tally(a)),
            player_B_standings: referee.and_then(|_| self.tally(b)),
            player_A_token: if its_own { token(0) } else { None },
            player_B_token: if its_own { token(1) } else { None },
            match_token: reader.and_then(|reader| token(game.seat(&reader.id)?)),
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
