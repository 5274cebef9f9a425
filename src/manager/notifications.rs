//! The notifications that the manager sends, and what an agent lacks of them.
//!
//! Nothing is queued. One `Progress` says what may be told to an agent now, another one what the
//! agent has been told. `Progress::next_notification` compares them, and returns the first
//! notification that the agent lacks. So an agent that is slow gets the newest table and not all
//! tables, a notification that did not arrive is still lacking, and an agent that registers again
//! starts with an older progress. (The leader of a Raft cluster keeps such a number for each
//! follower.)
//!
//! The methods of `League` make the messages; see "Rounds" and "Standings and notifications" in
//! `protocol.md`. `contacts.rs` sends them. Read next: `standings.rs`, the table in most of them.

use super::league::{League, Match, MatchAssignment};
use crate::games::result_status;
use crate::net::call_error::CallError;
use crate::protocol::{
    AgentKind, Champion, FinalStanding, LeagueCompleted, LeagueStandingsUpdate, MatchEntry,
    PlayerRequest, ResultStatus, RoundAnnouncement, RoundCompleted, RoundSummary,
};

/// The state of the league that may be told to an agent now, or that it has been told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// The number of tables: one when the league starts, so that all names are known, and one for
    /// each result.
    pub tables: usize,
    /// The number of rounds that are over.
    pub rounds: u32,
    /// The version of the announcement of the open round; 0 if there is none.
    pub announcement: u64,
    /// True if the league is over.
    pub is_over: bool,
}

/// The progress that may be told now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Published {
    /// To players.
    pub players: Progress,
    /// To referees: no table, and an announcement after the players.
    pub referees: Progress,
}

/// A notification, in the order in which an agent gets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notification {
    /// The newest table.
    Table,
    /// The end of this round.
    RoundEnd(u32),
    /// The newest announcement of this round.
    Announcement(u32),
    /// The end of the league.
    LeagueEnd,
}

impl Progress {
    /// Returns the first notification that an agent with this progress lacks, and the progress that
    /// it has with it. `newest` is what may be told to it now.
    pub fn next_notification(self, newest: Progress) -> Option<(Notification, Progress)> {
        let mut next = self;
        let notification = if self.tables < newest.tables {
            next.tables = newest.tables;
            Notification::Table
        } else if self.rounds < newest.rounds {
            next.rounds += 1;
            Notification::RoundEnd(next.rounds)
        } else if self.announcement < newest.announcement {
            next.announcement = newest.announcement;
            Notification::Announcement(newest.rounds + 1)
        } else if !self.is_over && newest.is_over {
            next.is_over = true;
            Notification::LeagueEnd
        } else {
            return None;
        };

        Some((notification, next))
    }

    /// Returns the progress of an agent that must get everything that still matters: the table, the
    /// end of the last completed round, and what follows.
    pub fn before_last_round(self) -> Progress {
        Progress {
            rounds: self.rounds.saturating_sub(1),
            ..Progress::default()
        }
    }
}

impl Published {
    /// Returns what may be told to an agent of this kind.
    pub fn to(self, kind: AgentKind) -> Progress {
        match kind {
            AgentKind::Referee => self.referees,
            _ => self.players,
        }
    }

    /// Returns what may be told to any agent. (The end is told to referees first.)
    pub fn to_any(self) -> Progress {
        Progress {
            is_over: self.referees.is_over,
            ..self.players
        }
    }
}

impl Notification {
    /// Returns true if the agent counts as told after the last attempt, which failed with this error,
    /// or succeeded.
    pub fn is_received(self, error: Option<&CallError>) -> bool {
        match error {
            // The agent may fail at this one message: it gets the next one. But none follows the
            // end.
            Some(CallError::Timeout(_) | CallError::Broken(_)) => self != Notification::LeagueEnd,
            // No program has seen the message.
            Some(CallError::Unreachable(_) | CallError::Local(_)) => false,
            // It has answered, if wrongly.
            _ => true,
        }
    }
}

impl League {
    /// Returns all that there is to tell. (The end of a league without players is not told.)
    pub fn newest(&self) -> Progress {
        let is_announced =
            (self.open_round()).is_some_and(|round| self.assigned_matches(round).next().is_some());
        let mut members = self.members.values();

        Progress {
            tables: usize::from(self.started) + self.played.len(),
            rounds: self.rounds_completed,
            announcement: if is_announced {
                self.announcement_version
            } else {
                0
            },
            is_over: self.is_over() && members.any(|member| member.kind == AgentKind::Player),
        }
    }

    /// Returns a notification as all agents get it, or all players; none if there is nothing to
    /// tell.
    pub fn message_of(&self, notification: Notification) -> Option<PlayerRequest> {
        Some(match notification {
            Notification::Table => self.standings_update().into(),
            Notification::RoundEnd(round) => self.round_completed(round).into(),
            Notification::Announcement(round) => self.announcement(round, None).into(),
            Notification::LeagueEnd => self.league_completed()?.into(),
        })
    }

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
            .filter_map(|the_match| Some((&**the_match, the_match.assignment()?)))
    }

    /// Returns the token of a player's match in a round; none if the assignment has none. The
    /// manager adds it to the player's copy of the announcement when it sends the copy.
    pub fn match_token(&self, round: u32, player_id: &str) -> Option<String> {
        for (the_match, assignment) in self.assigned_matches(round) {
            if let Some(seat) = the_match.seat(player_id) {
                return assignment.token_of_seat(seat);
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
                entry.player_A_token = assignment.token_of_seat(0);
                entry.player_B_token = assignment.token_of_seat(1);
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
        for the_match in self.matches_of_round(round) {
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
    fn token_of_seat(&self, seat: usize) -> Option<String> {
        Some(self.tokens[seat].clone()).filter(|token| !token.is_empty())
    }
}
