//! The notifications that the manager sends, made from the state of the league.
//!
//! `NotificationCursor` remembers which changes of the league have been published, and publishes
//! what is new. Each method of `League` makes one message. See "Rounds" and "Standings and
//! notifications" in `protocol.md`.

use super::league::{League, Match, MatchAssignment, Member};
use super::notifier::Notifier;
use crate::games::result_status;
use crate::protocol::{
    AgentKind, Champion, FinalStanding, LeagueCompleted, LeagueStandingsUpdate, MatchEntry,
    ResultStatus, RoundAnnouncement, RoundCompleted, RoundSummary,
};
use std::time::{Duration, Instant};

/// Maximum number of players of a league in which every result is published at once.
const MAX_UNTHROTTLED_PLAYERS: usize = 16;
/// Minimum time between two tables of a larger league, for each player.
const TABLE_INTERVAL_PER_PLAYER: Duration = Duration::from_millis(5);

/// The changes of the league that have been published.
#[derive(Default)]
pub struct NotificationCursor {
    /// The number of results in the newest table.
    results: usize,
    last_table: Option<Instant>,
    rounds: u32,
    /// The number of the newest announcement that is published to players.
    pub player_announcement: u64,
    /// The number of the newest announcement that is published to referees.
    pub referee_announcement: u64,
    is_over: bool,
}

impl NotificationCursor {
    /// Returns the cursor of an agent that must get everything that still matters: the table, the
    /// end of the last completed round, and what follows.
    pub fn before_last_round(league: &League) -> NotificationCursor {
        NotificationCursor {
            rounds: league.rounds_completed.saturating_sub(1),
            ..NotificationCursor::default()
        }
    }

    /// Publishes to these members what has changed in the league. The announcement of a round is
    /// published to referees only if `may_publish_to_referees`.
    pub fn publish_changes(
        &mut self,
        notifier: &Notifier,
        league: &League,
        members: &[&Member],
        may_publish_to_referees: bool,
    ) {
        let (players, referees): (Vec<&Member>, Vec<&Member>) = members
            .iter()
            .partition(|member| member.kind == AgentKind::Player);

        // A table may be that of several results.
        if league.played.len() != self.results && self.is_table_due(league, players.len()) {
            self.results = league.played.len();
            self.last_table = Some(Instant::now());
            notifier.publish(&players, league.standings_update());
        }

        while self.rounds < league.rounds_completed {
            self.rounds += 1;
            notifier.publish(members, league.round_completed(self.rounds));
        }

        // Players get an announcement before referees.
        if let Some(round) = league.open_round()
            && league.assigned_matches(round).next().is_some()
        {
            if self.player_announcement != league.announcement_version {
                self.player_announcement = league.announcement_version;
                notifier.publish(&players, league.announcement(round, None));
            }
            if may_publish_to_referees && self.referee_announcement != league.announcement_version {
                self.referee_announcement = league.announcement_version;
                for referee in referees {
                    let message = league.announcement(round, Some(&referee.id));
                    notifier.publish(&[referee], message);
                }
            }
        }

        if league.is_over() && !self.is_over {
            self.is_over = true;
            if let Some(message) = league.league_completed() {
                notifier.publish(members, message);
            }
        }
    }

    /// Returns true if a table may be published now. The end of a round or of the league is never
    /// held back.
    fn is_table_due(&self, league: &League, players: usize) -> bool {
        let interval = TABLE_INTERVAL_PER_PLAYER * players as u32;
        players <= MAX_UNTHROTTLED_PLAYERS
            || league.rounds_completed > self.rounds
            || league.is_over()
            || self
                .last_table
                .is_none_or(|time| time.elapsed() >= interval)
    }
}

impl League {
    /// Returns the announcement of the unfinished matches of a round: the copy for all players, or
    /// the copy for a referee.
    pub fn announcement(&self, round_id: u32, referee: Option<&str>) -> RoundAnnouncement {
        let mut matches = Vec::new();
        for (the_match, assignment) in self.assigned_matches(round_id) {
            matches.push(self.match_entry(the_match, assignment, referee));
        }

        RoundAnnouncement {
            league_id: self.config.league.league_id.clone(),
            round_id,
            matches,
            match_token: None,
        }
    }

    /// Returns the unfinished matches of a round that have a referee.
    pub fn assigned_matches(&self, round: u32) -> impl Iterator<Item = (&Match, &MatchAssignment)> {
        self.open_matches(round)
            .filter_map(|the_match| Some((the_match, the_match.assignment()?)))
    }

    /// Returns the token of a player's match in a round; none if the assignment has none. The notifier
    /// adds it to the player's copy of the announcement when it sends the copy.
    pub fn match_token(&self, round: u32, player_id: &str) -> Option<String> {
        for (the_match, assignment) in self.assigned_matches(round) {
            if let Some(seat) = the_match.seat(player_id) {
                return assignment.token(seat);
            }
        }
        None
    }

    /// Returns a match of an announcement. Only a referee gets the optional fields, and only the
    /// referee of the match gets both match tokens here.
    fn match_entry(
        &self,
        the_match: &Match,
        assignment: &MatchAssignment,
        referee: Option<&str>,
    ) -> MatchEntry {
        let [a, b] = &the_match.players;
        let mut entry = MatchEntry {
            match_id: the_match.id.clone(),
            game_type: self.config.league.game_type.clone(),
            player_A_id: a.clone(),
            player_B_id: b.clone(),
            referee_endpoint: self.endpoint(&assignment.referee_id).unwrap_or_default(),
            ..MatchEntry::default()
        };

        if let Some(referee) = referee {
            entry.referee_id = Some(assignment.referee_id.clone());
            entry.player_A_endpoint = self.endpoint(a);
            entry.player_B_endpoint = self.endpoint(b);
            entry.player_A_standings = Some(self.stats(a).record);
            entry.player_B_standings = Some(self.stats(b).record);
            if assignment.referee_id == referee {
                entry.player_A_token = assignment.token(0);
                entry.player_B_token = assignment.token(1);
            }
        }
        entry
    }

    /// Returns the endpoint of a member.
    pub fn endpoint(&self, id: &str) -> Option<String> {
        Some(self.members.get(id)?.meta.contact_endpoint.clone())
    }

    /// Returns the table as a notification, with the round of the last result.
    pub fn standings_update(&self) -> LeagueStandingsUpdate {
        let last = self.played.last().and_then(|id| self.find(id));
        LeagueStandingsUpdate {
            league_id: self.config.league.league_id.clone(),
            round_id: last.map_or(1, |the_match| the_match.round),
            standings: self.table(),
        }
    }

    /// Returns the end of a round.
    pub fn round_completed(&self, round: u32) -> RoundCompleted {
        let mut summary = RoundSummary::default();
        for the_match in self.round(round) {
            summary.total_matches += 1;
            let recorded = the_match.recorded.as_ref();
            match recorded.map(|recorded| result_status(&recorded.result)) {
                Some(ResultStatus::Win) => summary.wins += 1,
                Some(ResultStatus::Draw) => summary.draws += 1,
                Some(ResultStatus::TechnicalLoss) => summary.technical_losses += 1,
                None => {}
            }
        }

        RoundCompleted {
            league_id: self.config.league.league_id.clone(),
            round_id: round,
            matches_completed: summary.total_matches,
            next_round_id: (round < self.rounds()).then_some(round + 1),
            summary,
        }
    }

    /// Returns the end of the league; none if it has no players.
    pub fn league_completed(&self) -> Option<LeagueCompleted> {
        let table = self.table();
        let first = table.first()?;
        let mut final_standings = Vec::new();
        for row in &table {
            final_standings.push(FinalStanding {
                rank: row.rank,
                player_id: row.player_id.clone(),
                points: row.points,
                display_name: Some(row.display_name.clone()),
            });
        }

        Some(LeagueCompleted {
            league_id: self.config.league.league_id.clone(),
            total_rounds: self.rounds(),
            total_matches: self.matches.len() as u32,
            champion: Champion {
                player_id: first.player_id.clone(),
                display_name: first.display_name.clone(),
                points: first.points,
            },
            final_standings,
        })
    }
}

impl MatchAssignment {
    /// Returns the match token of a player; none if the referee makes its own.
    fn token(&self, seat: usize) -> Option<String> {
        Some(self.tokens[seat].clone()).filter(|token| !token.is_empty())
    }
}
