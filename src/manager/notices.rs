//! What the manager announces: messages made from the state. Pure.
//!
//! The table, a round's end and the league's end are the same for everybody; an announcement has a copy for each
//! reader. What others wrote in them, names and endpoints, has a bound since the registration, so that no notice is
//! longer than agents read. See "Rounds" and "Standings and notices" in `protocol.md`.

use crate::manager::league::{League, Match, Member};
use crate::manager::standings::ending;
use crate::protocol::{
    Champion, Ending, FinalRow, GAME, Kind, LeagueCompleted, LeagueStandingsUpdate, MatchEntry, RoundAnnouncement,
    RoundCompleted, RoundSummary, Standing,
};

impl League {
    /// The announcement of what is still to be played in a round, in `reader`'s copy: players find their own match
    /// token; referees find endpoints and records, and both tokens of the matches that are theirs.
    pub fn announcement(&self, round: u32, reader: &Member) -> RoundAnnouncement {
        self.announcement_of(round, self.assigned(round).map(|game| self.announced(game, reader)).collect())
    }

    /// The same with nothing in it that is for one reader alone.
    pub fn public_announcement(&self, round: u32) -> RoundAnnouncement {
        self.announcement_of(round, self.assigned(round).map(|game| self.public(game)).collect())
    }

    /// What is still to be played, and by whom it is refereed.
    pub fn assigned(&self, round: u32) -> impl Iterator<Item = &Match> {
        self.open_matches(round).filter(|game| game.assignment.is_some())
    }

    fn announcement_of(&self, round_id: u32, matches: Vec<MatchEntry>) -> RoundAnnouncement {
        RoundAnnouncement { league_id: self.rules.league_id.clone(), round_id, matches }
    }

    /// A match as everybody may see it.
    fn public(&self, game: &Match) -> MatchEntry {
        let referee = game.referee().and_then(|id| self.members.get(id));
        MatchEntry {
            match_id: game.id.clone(),
            game_type: GAME.into(),
            player_A_id: game.players[0].clone(),
            player_B_id: game.players[1].clone(),
            referee_endpoint: referee.map(|referee| referee.endpoint.clone()).unwrap_or_default(),
            player_A_endpoint: None,
            player_B_endpoint: None,
            player_A_standings: None,
            player_B_standings: None,
            player_A_token: None,
            player_B_token: None,
            match_token: None,
        }
    }

    /// A match as `reader` may see it.
    fn announced(&self, game: &Match, reader: &Member) -> MatchEntry {
        let [a, b] = &game.players;
        let for_referee = reader.kind == Kind::Referee;
        let its_own = game.referee() == Some(&reader.id);
        let endpoint = |id: &String| self.members.get(id).filter(|_| for_referee).map(|it| it.endpoint.clone());
        let record = |id: &String| self.tally(id).filter(|_| for_referee);
        let token = |seat: usize, shown: bool| {
            let assignment = game.assignment.as_ref().filter(|_| shown);
            assignment.map(|it| it.tokens[seat].clone()).filter(|token| !token.is_empty())
        };
        MatchEntry {
            player_A_endpoint: endpoint(a),
            player_B_endpoint: endpoint(b),
            player_A_standings: record(a),
            player_B_standings: record(b),
            player_A_token: token(0, its_own),
            player_B_token: token(1, its_own),
            match_token: game.seat(&reader.id).and_then(|seat| token(seat, true)),
            ..self.public(game)
        }
    }

    /// The table as a notice, with the round of the last result.
    pub fn standings_update(&self) -> LeagueStandingsUpdate {
        let last = self.played.last().and_then(|id| self.find(id)).map_or(1, |game| game.round);
        let standings = self.table().to_vec();
        LeagueStandingsUpdate { league_id: self.rules.league_id.clone(), round_id: last, standings }
    }

    /// A round's end.
    pub fn round_completed(&self, round: u32) -> RoundCompleted {
        let games = self.round(round);
        let endings = || games.iter().filter_map(|game| Some(ending(&game.recorded.as_ref()?.result)));
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
            champion: Champion { player_id, display_name, points: first.points },
            final_standings: table.iter().map(row).collect(),
        })
    }
}
