//! The public state of a league as one object: what `GET /league.json` and the tool `get_league`
//! show. Pure.
//!
//! The page, the report, the tables and the season are made from this object; only the screen of a
//! manager follows the league itself. No token is in it, and no choice of a match that is not
//! recorded. The manager makes it in `document.rs`.

use crate::games::{self, Move, scoring::Scoring};
use crate::manager::standings::ChoiceCounts;
use crate::protocol::{AgentState, Champion, Ending, Kind, MoveMade, Parity, Progress, Standing};
use crate::wire::Timestamp;
use crate::{object, words};
use std::collections::BTreeMap;
use std::sync::Arc;

words! {
    /// How far a match of the schedule has come, as the manager sees it.
    MatchStatus { Scheduled = "scheduled", Assigned = "assigned", Completed = "completed", }
}

object! {
    /// The whole league. `version` grows with every document. A round that has not changed is
    /// shared with the document before. `next_at` is when the matches of an announced round begin.
    LeagueView {
        schema_version: String, league_id: String, league: Heading,
        status: Progress, paused: bool, current_round: u32, total_rounds: u32,
        matches_completed: u32, total_matches: u32,
        agents: Vec<AgentView>, standings: Vec<Standing>, rounds: Vec<Arc<RoundView>>,
        ; optional reason: String, next_at: Timestamp, champion: Champion, version: u64,
    }
    /// What does not change while the league is played. `name` is what this one league is called,
    /// `display_name` what all leagues of its file are. The league starts when as many have
    /// registered as are awaited; without such numbers, at the operator's word.
    Heading {
        display_name: String, game: String, game_type: String, register_at: String,
        scoring: Scoring, local: bool,
        ; optional name: String, players_awaited: u32, referees_awaited: u32,
    }
    /// An agent. `reachable` is null until the manager has called it; `trouble` says why the last
    /// call failed. A player that the operator has `removed` loses its matches. The endpoint is for
    /// this machine only.
    AgentView {
        id: String, kind: Kind, display_name: String, state: AgentState, removed: bool,
        reachable: Option<bool>, trouble: Option<String>,
        ; optional endpoint: String, answers_in_ms: u32, technical_losses: u32,
        choices: ChoiceCounts,
    }
    /// A round, and the version of the document in which something changed in it last.
    RoundView { round_id: u32, matches: Vec<MatchView>, ; optional changed: u64, }
    /// A match. What follows the referee is there once it is recorded; the reason only where no
    /// number was drawn.
    MatchView {
        match_id: String, player_A_id: String, player_B_id: String, status: MatchStatus,
        ; optional referee_id: String, recorded_at: Timestamp, ending: Ending, winner: String,
        drawn_number: u32, choices: BTreeMap<String, Option<Parity>>, score: BTreeMap<String, i32>,
        reason: String,
        moves: Vec<MoveMade>,
    }
}

impl Heading {
    /// The name of the league: its own, or what all leagues of its file are called.
    pub fn called(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.display_name)
    }
}

impl LeagueView {
    /// All matches of the schedule, round by round.
    pub fn matches(&self) -> impl Iterator<Item = &MatchView> {
        self.rounds.iter().flat_map(|round| &round.matches)
    }

    /// A copy with the `wanted` rounds, and with endpoints only where the reader is `here`, on this
    /// machine.
    pub fn copy(&self, here: bool, wanted: impl Fn(&RoundView) -> bool) -> LeagueView {
        let mut copy = self.clone();
        copy.rounds.retain(|round| wanted(round));
        if !here {
            copy.agents.iter_mut().for_each(|it| it.endpoint = None);
        }
        copy
    }
}

impl MatchView {
    /// The moves of the match in their order; in Even/Odd the choices, in the order of the seats.
    pub fn played(&self) -> Vec<Move> {
        let players = [self.player_A_id.clone(), self.player_B_id.clone()];
        let choices = self.choices.clone().unwrap_or_default();
        games::reported(&players, &choices, &self.moves).unwrap_or_default()
    }
}
