//! The league: who is registered, what is played, what is recorded. It knows no lock, file, network
//! or clock.
//!
//! The state of a league is the sum of its events. A decision only reads the league and gives an
//! event; the journal writes the event down; then `apply` changes the state, and `apply` cannot
//! fail. So a manager that dies at any moment finds the same league again in its journal.
//!
//! The decisions are methods of `League` too, each subject in a file of its own: who may register
//! (`registration.rs`), how a league starts (`start.rs`), who referees a match (`assignment.rs`),
//! which reports are taken (`results.rs`), what the operator may do (`control.rs`). Other methods
//! make answers (`queries.rs`) and notices (`notices.rs`) of the state. A variable named `game` is
//! a match, for `match` is a word of Rust. Read next: `journal.rs`.

use crate::manager::standings::{Career, by_number, ranked};
use crate::program::config::Config;
use crate::protocol::{AgentState, Kind, MatchResult, Progress, Standing};
use crate::wire::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::OnceLock;

/// A registered agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Member {
    pub kind: Kind,
    pub id: String,
    pub display_name: String,
    pub endpoint: String,
    /// A referee's; 0 for a player.
    pub max_concurrent_matches: u32,
    pub uses_match_tokens: bool,
    pub token: String,
    pub expires: Timestamp,
    /// A secret that the agent made before it asked, by which the same agent is known when it asks
    /// again.
    pub registration_key: Option<String>,
    /// The address from which it last registered with something new, and when.
    pub peer: IpAddr,
    pub registered_at: Timestamp,
}

/// A match handed to a referee, with both players' match tokens (empty: the referee makes them).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct MatchAssignment {
    pub match_id: String,
    pub referee_id: String,
    pub tokens: [String; 2],
}

/// A result that counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Recorded {
    pub match_id: String,
    /// The manager's own name, where nobody played because a player was removed.
    pub referee_id: String,
    /// The conversation in which the match was played and reported; empty where nobody played.
    pub conversation_id: String,
    pub result: MatchResult,
    pub at: Timestamp,
}

/// What can happen to a league; a line of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
#[allow(missing_docs, reason = "of the fields: the names say it")]
pub enum Event {
    /// An agent registered, or registered again: what it is from now on.
    Registered(Member),
    /// The league started with this schedule: who meets whom, by round. A reproducible league has a
    /// seed.
    Started {
        seed: Option<u64>,
        rounds: Vec<Vec<[String; 2]>>,
    },
    /// Matches were given to referees.
    Assigned { assignments: Vec<MatchAssignment> },
    /// A match has a result, and the result counts.
    Recorded(Recorded),
    /// The league is closed: everybody was told that it is over, or did not hear it in time, or the
    /// manager ends it early. Matches that are open stay so.
    Closed,
    /// The operator: no further match begins.
    Paused,
    /// The operator: the league goes on.
    Resumed,
    /// The operator: this player plays no more.
    Removed { player_id: String },
    /// The operator: a player that was removed plays again; any other agent may register without
    /// its token.
    Restored { agent_id: String, at: Timestamp },
    /// The operator: this match's result does not count, and the match is played again. A league
    /// that was closed goes on.
    Voided { match_id: String, at: Timestamp },
    /// The operator: a new lobby takes the place of the league.
    Again,
}

/// A match of the schedule.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Match {
    pub id: String,
    pub round: u32,
    pub players: [String; 2],
    pub assignment: Option<MatchAssignment>,
    pub recorded: Option<Recorded>,
    /// The conversations of its voided results: what is reported in one of them again does not
    /// count.
    pub voided: Vec<String>,
}

/// The state of a league.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct League {
    /// What the files and the command line say: the rules.
    pub config: Config,
    pub members: BTreeMap<String, Member>,
    pub matches: Vec<Match>,
    pub seed: Option<u64>,
    pub started: bool,
    pub closed: bool,
    pub paused: bool,
    pub again: bool,
    /// The players that the operator has removed since the start.
    pub removed: BTreeSet<String>,
    /// The agents that may register without their token, and since when.
    pub let_in: BTreeMap<String, Timestamp>,
    /// The ids of the matches that have a result, in the order in which they were recorded.
    pub played: Vec<String>,
    /// How many rounds are over: those before the open one, or all.
    pub rounds_completed: u32,
    /// How many events there have been. Whoever waits for something new compares this number.
    pub changes: u64,
    /// Grows when a result is recorded or voided. Whoever tells the table compares this number.
    pub tables: u64,
    /// The number of the newest announcement. It grows when what an announcement says has changed:
    /// who referees a match, where an agent is, or which round is open.
    pub announcements: u64,
    /// Where each match stands in `matches`, by its id.
    places: BTreeMap<String, usize>,
    /// Where the matches of each player stand in `matches`.
    games: BTreeMap<String, Vec<usize>>,
    /// What each player has done so far; whoever has not played yet is not in it.
    careers: BTreeMap<String, Career>,
    /// The table is sorted when somebody first looks at it.
    table: OnceLock<Vec<Standing>>,
}

impl League {
    /// A league in which nothing has happened yet.
    pub fn new(config: Config) -> League {
        League {
            config,
            members: BTreeMap::new(),
            matches: Vec::new(),
            seed: None,
            started: false,
            closed: false,
            paused: false,
            again: false,
            removed: BTreeSet::new(),
            let_in: BTreeMap::new(),
            played: Vec::new(),
            rounds_completed: 0,
            changes: 0,
            tables: 0,
            announcements: 0,
            places: BTreeMap::new(),
            games: BTreeMap::new(),
            careers: BTreeMap::new(),
            table: OnceLock::new(),
        }
    }

    /// Changes the state by what has happened.
    pub fn apply(&mut self, event: &Event) {
        self.changes += 1;
        match event {
            Event::Registered(member) => self.enter(member),
            Event::Started { seed, rounds } => self.set_up(*seed, rounds),
            Event::Assigned { assignments } => self.hand_out(assignments),
            Event::Recorded(recorded) => self.record(recorded),
            Event::Voided { match_id, at } => self.void(match_id, *at),
            Event::Paused => self.paused = true,
            Event::Resumed => self.paused = false,
            Event::Removed { player_id } => self.remove(player_id),
            Event::Restored { agent_id, at } => self.restore(agent_id, *at),
            Event::Closed => self.closed = true,
            Event::Again => self.again = true,
        }
    }

    fn enter(&mut self, member: &Member) {
        let before = self.members.insert(member.id.clone(), member.clone());
        if before.is_some_and(|before| before.endpoint != member.endpoint) {
            self.announcements += 1;
        }
        self.let_in.remove(&member.id);
        self.table = OnceLock::new();
    }

    fn set_up(&mut self, seed: Option<u64>, rounds: &[Vec<[String; 2]>]) {
        self.started = true;
        self.seed = seed;
        self.matches = matches_of(rounds);
        for (place, game) in self.matches.iter().enumerate() {
            self.places.insert(game.id.clone(), place);
            for player in &game.players {
                self.games.entry(player.clone()).or_default().push(place);
            }
        }
    }

    fn hand_out(&mut self, assignments: &[MatchAssignment]) {
        self.announcements += 1;
        for given in assignments {
            if let Some(game) = self.find_mut(&given.match_id) {
                game.assignment = Some(given.clone());
            }
        }
    }

    /// Counts a result: in its match, for both players, in the table, and for the round.
    fn record(&mut self, recorded: &Recorded) {
        let Some(game) = self.find_mut(&recorded.match_id) else {
            return;
        };
        if game.recorded.is_some() {
            return;
        }
        game.recorded = Some(recorded.clone());
        for player in game.players.clone() {
            let career = self.careers.entry(player.clone()).or_default();
            career.add(&player, &recorded.result);
        }
        self.played.push(recorded.match_id.clone());
        self.tables += 1;
        self.table = OnceLock::new();
        while let Some(round) = self.open_round() {
            if self.open_matches(round).next().is_some() {
                break;
            }
            self.rounds_completed += 1;
            // Where an older match was played again, the next round may have its referees already:
            // it must be announced all the same.
            self.announcements += 1;
        }
    }

    /// Forgets one result, and counts all others anew in the order in which they came. The agents
    /// of a closed league have given their tokens up, so they may register without them.
    fn void(&mut self, match_id: &str, at: Timestamp) {
        let Some(game) = self.find_mut(match_id) else {
            return;
        };
        game.assignment = None;
        if let Some(recorded) = game.recorded.take() {
            game.voided.push(recorded.conversation_id);
        }
        if self.closed {
            self.closed = false;
            let ids = self.members.keys().cloned();
            self.let_in.extend(ids.map(|id| (id, at)));
        }
        self.careers.clear();
        self.rounds_completed = 0;
        self.tables += 1;
        self.table = OnceLock::new();
        for id in std::mem::take(&mut self.played) {
            let recorded = self.find_mut(&id).and_then(|game| game.recorded.take());
            if let Some(recorded) = recorded {
                self.record(&recorded);
            }
        }
    }

    /// After the start a removed player stays in the table; before it, the player is gone.
    fn remove(&mut self, player_id: &str) {
        if self.started {
            self.removed.insert(player_id.into());
        } else {
            self.members.remove(player_id);
            self.table = OnceLock::new();
        }
    }

    fn restore(&mut self, agent_id: &str, at: Timestamp) {
        let was_removed = self.removed.remove(agent_id);
        if !was_removed {
            self.let_in.insert(agent_id.into(), at);
        }
    }

    /// The agents of a kind, in the order of their ids.
    pub fn members(&self, kind: Kind) -> Vec<&Member> {
        let of_kind = self.members.values().filter(|member| member.kind == kind);
        let mut members: Vec<&Member> = of_kind.collect();
        members.sort_by(|one, other| by_number(&one.id, &other.id));
        members
    }

    /// The ids of the agents of a kind, in their order.
    pub fn ids(&self, kind: Kind) -> Vec<String> {
        let members = self.members(kind).into_iter();
        members.map(|member| member.id.clone()).collect()
    }

    /// The player of that id, if there is one.
    pub fn player(&self, id: &str) -> Option<&Member> {
        let member = self.members.get(id)?;
        (member.kind == Kind::Player).then_some(member)
    }

    /// The match of that id, if there is one.
    pub fn find(&self, match_id: &str) -> Option<&Match> {
        self.matches.get(*self.places.get(match_id)?)
    }

    fn find_mut(&mut self, match_id: &str) -> Option<&mut Match> {
        self.matches.get_mut(*self.places.get(match_id)?)
    }

    /// A player's matches, in the order of the schedule.
    pub fn games(&self, player_id: &str) -> impl Iterator<Item = &Match> {
        let places = self.games.get(player_id).into_iter().flatten();
        places.filter_map(|place| self.matches.get(*place))
    }

    /// How many rounds the schedule has; 0 before the start.
    pub fn rounds(&self) -> u32 {
        self.matches.last().map_or(0, |game| game.round)
    }

    /// The matches of a round; none where there is no such round.
    pub fn round(&self, round: u32) -> &[Match] {
        let first = self.matches.partition_point(|game| game.round < round);
        let end = self.matches.partition_point(|game| game.round <= round);
        &self.matches[first..end]
    }

    /// The matches of a round that have no result yet.
    pub fn open_matches(&self, round: u32) -> impl Iterator<Item = &Match> {
        let matches = self.round(round).iter();
        matches.filter(|game| game.recorded.is_none())
    }

    /// The matches of a round that have no result yet and are this referee's.
    pub fn open_matches_of(&self, referee: &str, round: u32) -> impl Iterator<Item = &Match> {
        self.open_matches(round)
            .filter(move |game| game.referee() == Some(referee))
    }

    /// The first round that is not over; none in a league that is closed.
    pub fn open_round(&self) -> Option<u32> {
        let is_open = !self.closed && self.rounds_completed < self.rounds();
        is_open.then_some(self.rounds_completed + 1)
    }

    /// Waiting, running, or completed.
    pub fn progress(&self) -> Progress {
        match (self.started, self.open_round()) {
            (false, _) => Progress::Waiting,
            (true, Some(_)) => Progress::Running,
            (true, None) => Progress::Completed,
        }
    }

    /// Whether all matches are played, or the league was closed before.
    pub fn is_over(&self) -> bool {
        self.progress() == Progress::Completed
    }

    /// The table as it stands, best first.
    pub fn table(&self) -> &[Standing] {
        self.table.get_or_init(|| {
            let players = self.members(Kind::Player).into_iter();
            let rows = players.map(|it| self.career(&it.id).row(&it.id, &it.display_name));
            let against = |id: &str, group: &BTreeSet<String>| {
                let score = |game: &Match| {
                    let recorded = game.recorded.as_ref()?;
                    let is_among = group.contains(game.opponent(id));
                    recorded.result.score.get(id).filter(|_| is_among).copied()
                };
                self.games(id).filter_map(score).sum()
            };
            let tiebreakers = &self.config.league.scoring.tiebreakers;
            ranked(rows.collect(), tiebreakers, against)
        })
    }

    /// What a player has done so far.
    pub fn career(&self, player_id: &str) -> Career {
        self.careers.get(player_id).copied().unwrap_or_default()
    }

    /// Where an agent stands in its life. A player whose last match was lost technically is
    /// suspended: it is still invited, and recovers with the next match that it plays.
    pub fn state_of(&self, member: &Member) -> AgentState {
        if self.closed {
            AgentState::Shutdown
        } else if !self.started {
            AgentState::Registered
        } else if self.career(&member.id).suspended {
            AgentState::Suspended
        } else {
            AgentState::Active
        }
    }
}

impl Match {
    /// The id of the referee it was given to.
    pub fn referee(&self) -> Option<&str> {
        let assignment = self.assignment.as_ref()?;
        Some(&assignment.referee_id)
    }

    /// Where that player sits, if it plays in it: 0 for A, 1 for B.
    pub fn seat(&self, player_id: &str) -> Option<usize> {
        self.players.iter().position(|player| player == player_id)
    }

    /// The other player.
    pub fn opponent(&self, player_id: &str) -> &str {
        let [a, b] = &self.players;
        if a == player_id { b } else { a }
    }
}

/// The matches of all rounds, numbered within each: `R1M1`, `R1M2`, …
pub fn matches_of(rounds: &[Vec<[String; 2]>]) -> Vec<Match> {
    let mut matches = Vec::new();
    for (round, pairs) in (1..).zip(rounds) {
        for (number, players) in (1..).zip(pairs) {
            matches.push(Match {
                id: format!("R{round}M{number}"),
                round,
                players: players.clone(),
                ..Match::default()
            });
        }
    }
    matches
}
