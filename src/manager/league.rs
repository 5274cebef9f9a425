//! The league: who is registered, what is played, what is recorded. It uses no lock, file, network
//! or clock.
//!
//! The state of a league follows from its events alone. A decision reads the league and returns an
//! event; the journal stores the event; then `apply` changes the state, and `apply` cannot fail. So
//! a manager that is killed at any moment finds the same league again in its journal.
//!
//! The decisions are methods of `League` too, each subject in its own file: which agents may
//! register (`registration.rs`), how a league starts and which referee gets a match
//! (`schedule.rs`), which reports are accepted (`results.rs`), what the operator may do
//! (`control.rs`). Other methods make answers (`queries.rs`) and notifications (`notifications.rs`)
//! from the state. Read next: `journal.rs`.

use super::standings::{PlayerStats, compare_ids_by_number};
use crate::program::config::Config;
use crate::protocol::{AgentKind, AgentMeta, LeaguePhase, MatchResult, Standing};
use crate::values::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A registered agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Referee or player.
    pub kind: AgentKind,
    /// The id that the manager gave it.
    pub id: String,
    /// Its description, as it last registered.
    pub meta: AgentMeta,
    /// The token that the manager gave it.
    pub token: String,
    /// The time at which the token expires.
    pub expires: Timestamp,
    /// The address from which it last registered with a change.
    pub peer: IpAddr,
    /// The time of that registration.
    pub registered_at: Timestamp,
}

/// A match given to a referee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchAssignment {
    /// The match.
    pub match_id: String,
    /// The referee.
    pub referee_id: String,
    /// The match tokens of both players; empty if the referee makes them.
    pub tokens: [String; 2],
}

/// The result of a match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The match.
    pub match_id: String,
    /// The referee that reported it; `league_manager` if a player was removed and nothing was
    /// played.
    pub referee_id: String,
    /// The result.
    pub result: MatchResult,
    /// The time at which it was recorded.
    pub at: Timestamp,
}

/// An event of a league: a line of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum Event {
    /// An agent registered, or registered again with a change.
    Registered(Member),
    /// The league started.
    Started {
        /// Makes the league reproducible.
        seed: Option<u64>,
        /// The schedule: pairs of player ids, by round.
        rounds: Vec<Vec<[String; 2]>>,
    },
    /// Matches were given to referees.
    Assigned {
        /// A match and its referee each.
        assignments: Vec<MatchAssignment>,
    },
    /// The result of a match was recorded.
    Recorded(Recorded),
    /// The league was closed: every agent was told that it is over, or could not be told in time,
    /// or the league was ended early. Open matches get no result.
    Closed,
    /// The operator paused the league: no further match begins.
    Paused,
    /// The operator let the league go on.
    Resumed,
    /// The operator removed a player: it does not play any more.
    Removed {
        /// The player.
        player_id: String,
    },
    /// The operator restored a removed player: it plays again.
    Restored {
        /// The player.
        player_id: String,
        /// The time of the order.
        at: Timestamp,
        /// Another address from which it may come back.
        address: Option<IpAddr>,
    },
}

/// A match of the schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// `R1M1`
    pub id: String,
    /// Its round, from 1.
    pub round: u32,
    /// Player A and player B.
    pub players: [String; 2],
    /// The referees to which the match was given. The last one plays it.
    pub assignments: Vec<MatchAssignment>,
    /// The first version of the announcement that has the last assignment.
    pub announcement: u64,
    /// Its result; `None` while the match is open.
    pub recorded: Option<Recorded>,
}

/// The state of a league.
#[derive(Debug, Clone, PartialEq)]
pub struct League {
    /// The configuration: rules, time limits, addresses.
    pub config: Config,
    /// The registered agents, by id.
    pub members: BTreeMap<String, Member>,
    /// The schedule, in the order of the rounds. A copy of it shares the matches.
    pub matches: Vec<Arc<Match>>,
    /// Makes the league reproducible.
    pub seed: Option<u64>,
    /// See [`Event::Started`].
    pub started: bool,
    /// See [`Event::Closed`].
    pub closed: bool,
    /// See [`Event::Paused`].
    pub paused: bool,
    /// The ids of the removed players. Those that are removed before the start are no members any
    /// more when the league starts.
    pub removed: BTreeSet<String>,
    /// The restored players that have not registered since, when they were restored, and the
    /// address that the operator named. For some minutes they may register without their token
    /// (`registration.rs`).
    pub restored: BTreeMap<String, (Timestamp, Option<IpAddr>)>,
    /// The ids of the matches that have a result, in the order in which they were recorded.
    pub played: Vec<String>,
    /// The number of rounds that are over.
    pub rounds_completed: u32,
    /// The number of events so far.
    pub version: u64,
    /// Grows when the content of an announcement may change: a match got a referee, or an agent
    /// registered with other data.
    pub announcement_version: u64,
    /// The wins, draws, losses and points of each player.
    stats: BTreeMap<String, PlayerStats>,
    /// The table of this version, if it has been asked for.
    pub(super) table: OnceLock<Vec<Vec<Standing>>>,
}

impl League {
    /// Returns a league without any event.
    pub fn new(config: Config) -> League {
        League {
            config,
            members: BTreeMap::new(),
            matches: Vec::new(),
            seed: None,
            started: false,
            closed: false,
            paused: false,
            removed: BTreeSet::new(),
            restored: BTreeMap::new(),
            played: Vec::new(),
            rounds_completed: 0,
            version: 0,
            announcement_version: 0,
            stats: BTreeMap::new(),
            table: OnceLock::new(),
        }
    }

    /// Changes the state by an event.
    pub fn apply(&mut self, event: &Event) {
        self.version += 1;
        self.table = OnceLock::new();
        match event {
            Event::Registered(member) => self.apply_registered(member),
            Event::Started { seed, rounds } => {
                let removed = mem::take(&mut self.removed);
                self.members.retain(|id, _| !removed.contains(id));
                self.started = true;
                self.seed = *seed;
                self.matches = scheduled_matches(rounds);
            }
            Event::Assigned { assignments } => {
                self.announcement_version += 1;
                let announcement = self.announcement_version;
                for assignment in assignments {
                    if let Some(the_match) = self.find_mut(&assignment.match_id) {
                        the_match.announcement = announcement;
                        the_match.assignments.reserve_exact(1); // most matches have only one
                        the_match.assignments.push(assignment.clone());
                    }
                }
            }
            Event::Recorded(recorded) => self.apply_recorded(recorded),
            Event::Closed => self.closed = true,

            Event::Paused => self.paused = true,
            Event::Resumed => self.paused = false,
            Event::Removed { player_id } => {
                self.removed.insert(player_id.clone());
            }
            Event::Restored {
                player_id,
                at,
                address,
            } => {
                self.removed.remove(player_id);
                self.restored.insert(player_id.clone(), (*at, *address));
            }
        }
    }

    fn apply_registered(&mut self, member: &Member) {
        self.restored.remove(&member.id);

        // Announcements carry the endpoints.
        let before = self.members.insert(member.id.clone(), member.clone());
        if before.is_some_and(|before| before.meta != member.meta) {
            self.announcement_version += 1;
        }
    }

    fn apply_recorded(&mut self, recorded: &Recorded) {
        let Some(the_match) = self.find_mut(&recorded.match_id) else {
            return;
        };

        the_match.recorded = Some(recorded.clone());
        for assignment in &mut the_match.assignments {
            assignment.tokens = Default::default(); // only an open match needs them
        }

        // Count the result for both players.
        for player in the_match.players.clone() {
            let stats = self.stats.entry(player.clone()).or_default();
            stats.add(&player, &recorded.result);
        }
        self.played.push(recorded.match_id.clone());

        // Count the rounds that are over now: go on to the next one with an open match.
        while let Some(round) = self.open_round()
            && self.open_matches(round).next().is_none()
        {
            self.rounds_completed += 1;
        }
    }

    /// Returns the agents of a kind, sorted by id. After the start a removed player stays in the
    /// table.
    pub fn members(&self, kind: AgentKind) -> Vec<&Member> {
        let mut members: Vec<&Member> = self.members.values().collect();
        members.retain(|m| m.kind == kind && (self.started || !self.removed.contains(&m.id)));
        members.sort_by(|a, b| compare_ids_by_number(&a.id, &b.id));
        members
    }

    /// Returns the number of agents of a kind.
    pub fn count(&self, kind: AgentKind) -> usize {
        self.members(kind).len()
    }

    /// Returns the ids of the agents of a kind, sorted.
    pub fn ids(&self, kind: AgentKind) -> Vec<String> {
        let members = self.members(kind);
        members.iter().map(|member| member.id.clone()).collect()
    }

    /// Returns the player with that id.
    pub fn player(&self, id: &str) -> Option<&Member> {
        let member = self.members.get(id)?;
        (member.kind == AgentKind::Player).then_some(member)
    }

    /// Returns the match with that id.
    pub fn find(&self, match_id: &str) -> Option<&Arc<Match>> {
        let matches = self.matches_of_round(round_of(match_id)?);
        matches.iter().find(|m| m.id == match_id)
    }

    fn find_mut(&mut self, match_id: &str) -> Option<&mut Match> {
        let range = self.range_of_round(round_of(match_id)?);
        let mut matches = self.matches[range].iter_mut();
        matches.find(|m| m.id == match_id).map(Arc::make_mut)
    }

    /// Returns a player's matches, in the order of the schedule.
    pub fn matches_of(&self, player_id: &str) -> impl Iterator<Item = &Arc<Match>> {
        self.matches
            .iter()
            .filter(move |m| m.seat(player_id).is_some())
    }

    /// Returns the number of rounds; 0 before the start.
    pub fn rounds(&self) -> u32 {
        self.matches.last().map_or(0, |m| m.round)
    }

    /// Returns the matches of a round; none if there is no such round.
    pub fn matches_of_round(&self, round: u32) -> &[Arc<Match>] {
        &self.matches[self.range_of_round(round)]
    }

    /// Returns the positions of the matches of a round in the schedule.
    fn range_of_round(&self, round: u32) -> Range<usize> {
        let [start, end] = [round, round.saturating_add(1)]
            .map(|limit| self.matches.partition_point(|m| m.round < limit));
        start..end
    }

    /// Returns the matches of a round that have no result yet.
    pub fn open_matches(&self, round: u32) -> impl Iterator<Item = &Arc<Match>> {
        self.matches_of_round(round)
            .iter()
            .filter(|m| m.recorded.is_none())
    }

    /// Returns the matches of the open round that have no result yet and are assigned to a referee.
    pub fn open_matches_of(&self, referee: &str) -> impl Iterator<Item = &Arc<Match>> {
        let matches = self.open_matches(self.open_round().unwrap_or(0));
        matches.filter(move |m| m.referee() == Some(referee))
    }

    /// Returns the first round that has open matches; none before the start, after the last result,
    /// and if the league is closed.
    pub fn open_round(&self) -> Option<u32> {
        let is_open = !self.closed && self.rounds_completed < self.rounds();
        is_open.then_some(self.rounds_completed + 1)
    }

    /// Returns the phase of the league.
    pub fn phase(&self) -> LeaguePhase {
        if !self.started {
            LeaguePhase::Waiting
        } else if self.open_round().is_some() {
            LeaguePhase::Running
        } else {
            LeaguePhase::Completed
        }
    }

    /// Returns true if all matches are played, or the league was closed early.
    pub fn is_over(&self) -> bool {
        self.phase() == LeaguePhase::Completed
    }

    /// Returns the name and the id of a member; of others the id.
    pub fn name_and_id(&self, id: &str) -> String {
        let member = self.members.get(id);
        member.map_or(id.into(), Member::name_and_id)
    }

    /// Returns the statistics of a player.
    pub fn stats(&self, player_id: &str) -> PlayerStats {
        self.stats.get(player_id).copied().unwrap_or_default()
    }
}

impl Member {
    /// Returns `Ada Lovelace (P06)`.
    pub fn name_and_id(&self) -> String {
        format!("{} ({})", self.meta.display_name, self.id)
    }

    /// Returns the number of matches that a referee plays at once.
    pub fn capacity(&self) -> u32 {
        self.meta.max_concurrent_matches.unwrap_or(1)
    }

    /// Returns the `sender` of the member's messages.
    pub fn signature(&self) -> String {
        format!("{}:{}", self.kind, self.id)
    }
}

impl Match {
    /// Returns the assignment that counts.
    pub fn assignment(&self) -> Option<&MatchAssignment> {
        self.assignments.last()
    }

    /// Returns the id of the referee.
    pub fn referee(&self) -> Option<&str> {
        Some(&self.assignment()?.referee_id)
    }

    /// Returns the seat of a player: 0 for A, 1 for B.
    pub fn seat(&self, player_id: &str) -> Option<usize> {
        self.players.iter().position(|player| player == player_id)
    }

    /// Returns the other player.
    pub fn opponent(&self, player_id: &str) -> &str {
        let [a, b] = &self.players;
        if a == player_id { b } else { a }
    }
}

/// Returns the round of the match `R{round}M{number}`.
fn round_of(match_id: &str) -> Option<u32> {
    let (round, _) = match_id.strip_prefix('R')?.split_once('M')?;
    round.parse().ok()
}

/// Returns the matches of all rounds, numbered within each: `R1M1`, `R1M2`, …
pub fn scheduled_matches(rounds: &[Vec<[String; 2]>]) -> Vec<Arc<Match>> {
    let mut matches = Vec::with_capacity(rounds.iter().map(Vec::len).sum());
    for (round, pairs) in (1..).zip(rounds) {
        for (number, players) in (1..).zip(pairs) {
            let the_match = Match {
                id: format!("R{round}M{number}"),
                round,
                players: players.clone(),
                assignments: Vec::new(),
                announcement: 0,
                recorded: None,
            };
            matches.push(Arc::new(the_match));
        }
    }
    matches
}
