//! The league: who is registered, what is played, what is recorded. Pure: no lock, no I/O, no clock.
//!
//! State is the fold of events. Something is decided by reading (`register`, `start`, `assign`, `judge`), which gives
//! an event; the event goes into the journal; `apply` then changes the state, and cannot fail. So a program that dies
//! at any moment finds the same state again by applying the journal.
//!
//! `League` has five more subjects in files of their own: who may register (`registration.rs`), which reports are
//! taken (`results.rs`), what is answered (`queries.rs`) and announced (`notices.rs`), what the operator may do
//! (`control.rs`). A variable named `game` is a match: that word is Rust's. Read next: `journal.rs`.

use crate::games::Scoring;
use crate::manager::schedule::round_robin;
use crate::manager::standings::{add, by_number, empty_row, lost_technically, ranked};
use crate::protocol::{AgentState, Kind, MatchResult, Progress, Standing, Tally};
use crate::wire::Timestamp;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap, collections::BTreeSet, net::IpAddr, sync::OnceLock, time::Duration,
};

/// What the configuration and the command line say about the league.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "named as in the files")]
pub struct Rules {
    pub league_id: String,
    pub scoring: Scoring,
    pub cycles: u32,
    pub min_players: usize,
    /// How many may register at most: `max_players`, or `--players` where that is less.
    pub max_players: usize,
    pub game_types: Vec<String>,
    pub listed: Vec<Listed>,
    /// Whether tokens are demanded (`enable_auth_tokens`).
    pub tokens: bool,
    pub token_lifetime: Duration,
}

/// An agent that the agents configuration lists.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "named as in the file")]
pub struct Listed {
    pub kind: Kind,
    pub id: String,
    pub endpoint: String,
    pub active: bool,
}

/// A registered agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Member {
    pub kind: Kind,
    pub id: String,
    /// The sender it first registered under: an alias of its id.
    pub alias: String,
    pub display_name: String,
    pub endpoint: String,
    /// A referee's; 0 for a player.
    pub max_concurrent_matches: u32,
    pub uses_match_tokens: bool,
    pub token: String,
    pub expires: Timestamp,
    /// The conversation and the address of the request that made it what it is, to know that one again when it comes
    /// twice.
    pub conversation_id: String,
    pub peer: IpAddr,
    /// How many of its registrations are in the journal.
    pub registrations: u32,
    /// When the last of them was; older journals do not say.
    #[serde(default)]
    pub registered_at: Option<Timestamp>,
}

/// A match handed to a referee, with the tokens of both players for it (empty, where it makes its own).
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
    pub referee_id: String,
    pub result: MatchResult,
    pub at: Timestamp,
}

/// What can happen to a league; a line of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
#[allow(missing_docs, reason = "of the fields: the names say it")]
pub enum Event {
    /// An agent registered, or re-attached: what it is from now on.
    Registered(Member),
    /// The schedule stands: who meets whom, by round. A reproducible league has a seed.
    Started {
        seed: Option<u64>,
        rounds: Vec<Vec<[String; 2]>>,
    },
    /// Matches were given to referees.
    Assigned {
        /// Older journals say `orders`.
        #[serde(alias = "orders")]
        assignments: Vec<MatchAssignment>,
    },
    /// A match was played.
    Recorded(Recorded),
    /// Everybody was told that it is over.
    Closed,
    /// The operator: no further round begins.
    Paused,
    /// The operator: it goes on.
    Resumed,
    /// The operator: this player plays no more.
    Removed { player_id: String },
    /// The operator: this agent plays again, and is let in without its token.
    Restored { agent_id: String },
    /// The operator: this match's result does not count, and it is played again.
    Voided { match_id: String },
    /// The operator: a new lobby takes the place of the league.
    Again,
}

/// The number of an announcement: a newer one says something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Announcement(u64);

/// A match of the schedule.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Match {
    pub id: String,
    pub round: u32,
    pub players: [String; 2],
    pub assignment: Option<MatchAssignment>,
    pub recorded: Option<Recorded>,
    /// How often a result of it was voided.
    pub voids: u32,
}

/// The state.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct League {
    pub rules: Rules,
    pub members: BTreeMap<String, Member>,
    pub matches: Vec<Match>,
    pub started: bool,
    pub closed: bool,
    pub paused: bool,
    pub again: bool,
    /// The players that the operator has removed since the start.
    pub removed: BTreeSet<String>,
    /// The agents that are let in next time without their token.
    pub let_in: BTreeSet<String>,
    pub seed: Option<u64>,
    /// The ids of the matches played, in the order in which they were recorded.
    pub played: Vec<String>,
    /// How many events there have been; whoever waits for the next one compares this.
    pub changes: u64,
    /// How many rounds are over: those before the open one, or all.
    pub rounds_completed: u32,
    // What follows is derived, once for each event, so that no look at the league counts it all again.
    /// Where each match stands in `matches`, by its id.
    places: BTreeMap<String, usize>,
    /// By player.
    seasons: BTreeMap<String, Season>,
    /// Sorted when somebody first looks.
    table: OnceLock<Vec<Standing>>,
}

/// A player's way through the league.
#[derive(Debug, Clone, PartialEq)]
struct Season {
    /// Its row of the table, without a rank.
    row: Standing,
    /// Where its matches stand in `matches`.
    games: Vec<usize>,
    /// Whether it lost the one technically that was recorded last.
    suspended: bool,
}

impl League {
    /// A league in which nothing has happened yet.
    pub fn new(rules: Rules) -> League {
        League {
            rules,
            members: BTreeMap::new(),
            matches: Vec::new(),
            started: false,
            closed: false,
            paused: false,
            again: false,
            removed: BTreeSet::new(),
            let_in: BTreeSet::new(),
            seed: None,
            played: Vec::new(),
            changes: 0,
            rounds_completed: 0,
            places: BTreeMap::new(),
            seasons: BTreeMap::new(),
            table: OnceLock::new(),
        }
    }

    /// The agents of a kind, in the order of their ids.
    pub fn members(&self, kind: Kind) -> Vec<&Member> {
        let mut members: Vec<&Member> = self
            .members
            .values()
            .filter(|member| member.kind == kind)
            .collect();
        members.sort_by(|one, other| by_number(&one.id, &other.id));
        members
    }

    /// The player of that id, if there is one.
    pub fn player(&self, id: &str) -> Option<&Member> {
        self.members
            .get(id)
            .filter(|member| member.kind == Kind::Player)
    }

    /// The match of that id, if there is one.
    pub fn find(&self, match_id: &str) -> Option<&Match> {
        self.matches.get(*self.places.get(match_id)?)
    }

    fn find_mut(&mut self, match_id: &str) -> Option<&mut Match> {
        self.matches.get_mut(*self.places.get(match_id)?)
    }

    /// The newest announcement. Its number grows with every event that is no result: an announcement depends on nothing
    /// else, for matches that are played are only left out of it.
    pub fn newest_announcement(&self) -> Announcement {
        Announcement(self.changes - self.played.len() as u64)
    }

    /// Counts the tables that there have been: each result makes one, and each that is voided.
    pub fn tables(&self) -> usize {
        self.played.len()
            + 2 * self
                .matches
                .iter()
                .map(|game| game.voids as usize)
                .sum::<usize>()
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
        self.round(round)
            .iter()
            .filter(|game| game.recorded.is_none())
    }

    /// The first round that is not over.
    pub fn open_round(&self) -> Option<u32> {
        (self.rounds_completed < self.rounds()).then_some(self.rounds_completed + 1)
    }

    /// Waiting, running, or completed.
    pub fn progress(&self) -> Progress {
        match (self.started, self.open_round()) {
            (false, _) => Progress::Waiting,
            (true, Some(_)) => Progress::Running,
            (true, None) => Progress::Completed,
        }
    }

    /// The table as it stands, best first.
    pub fn table(&self) -> &[Standing] {
        self.table.get_or_init(|| {
            let rows = self
                .seasons
                .values()
                .map(|season| season.row.clone())
                .collect();
            let against = |id: &str, group: &BTreeSet<String>| {
                let among = self
                    .games(id)
                    .filter(|game| group.contains(game.opponent(id)));
                among
                    .filter_map(|game| game.recorded.as_ref()?.result.score.get(id))
                    .sum()
            };
            ranked(rows, &self.rules.scoring.tiebreakers, against)
        })
    }

    /// What a player has won, lost and drawn so far.
    pub fn tally(&self, player_id: &str) -> Option<Tally> {
        let row = self.row(player_id)?;
        Some(Tally {
            wins: row.wins,
            losses: row.losses,
            draws: row.draws,
        })
    }

    /// A player's row of the table, without a rank.
    pub fn row(&self, player_id: &str) -> Option<&Standing> {
        self.seasons.get(player_id).map(|season| &season.row)
    }

    /// A player's matches, in the order of the schedule.
    pub fn games(&self, player_id: &str) -> impl Iterator<Item = &Match> {
        let places = self
            .seasons
            .get(player_id)
            .map_or(&[][..], |season| &season.games);
        places.iter().filter_map(|place| self.matches.get(*place))
    }

    /// Where an agent stands in its life. A player whose last match was lost technically is suspended: it is still
    /// invited, and recovers with the next match it plays.
    pub fn state_of(&self, member: &Member) -> AgentState {
        let suspended = self
            .seasons
            .get(&member.id)
            .is_some_and(|season| season.suspended);
        match (self.closed, self.started, suspended) {
            (true, ..) => AgentState::Shutdown,
            (_, false, _) => AgentState::Registered,
            (.., true) => AgentState::Suspended,
            (.., false) => AgentState::Active,
        }
    }

    /// The matches with the players so far, as they would be if the league started now.
    pub fn preview(&self) -> Vec<Match> {
        matches_of(&self.pairings())
    }

    fn pairings(&self) -> Vec<Vec<[String; 2]>> {
        let players: Vec<String> = self
            .members(Kind::Player)
            .into_iter()
            .map(|player| player.id.clone())
            .collect();
        round_robin(&players, self.rules.cycles)
    }

    /// What a league that has not started lacks to do so.
    pub fn lacks(&self) -> Option<String> {
        let count = |kind| {
            self.members
                .values()
                .filter(|member| member.kind == kind)
                .count()
        };
        let (players, referees, needed) = (
            count(Kind::Player),
            count(Kind::Referee),
            self.rules.min_players.max(2),
        );
        let lacking = !self.started && (players < needed || referees == 0);
        let have = || {
            format!("{players} of at least {needed} players and {referees} of at least 1 referee")
        };
        lacking.then(|| have() + " have registered")
    }

    /// Starts, or says what is missing. Nothing new where it has started already.
    pub fn start(&self, seed: Option<u64>) -> Result<Option<Event>, String> {
        match self.lacks() {
            Some(lacks) => Err(lacks),
            None => Ok((!self.started).then(|| Event::Started {
                seed,
                rounds: self.pairings(),
            })),
        }
    }

    /// Gives the open matches of a round to the referees that are there, by their capacity. Matches whose referee is
    /// among `present` stay where they are. `token` makes a fresh token for a player.
    pub fn assign(
        &self,
        round: u32,
        present: &[String],
        mut token: impl FnMut(&str) -> String,
    ) -> Option<Event> {
        let referees: Vec<&Member> = present
            .iter()
            .filter_map(|id| self.members.get(id))
            .collect();
        let mut load: BTreeMap<&str, u32> =
            referees.iter().map(|referee| (&*referee.id, 0)).collect();
        let mut orphans = Vec::new();
        // While the league is paused, only what has begun goes on.
        for game in self
            .open_matches(round)
            .filter(|game| !self.paused || game.assignment.is_some())
        {
            match game.referee().and_then(|id| load.get_mut(id)) {
                Some(matches) => *matches += 1,
                None => orphans.push(game),
            }
        }
        let mut assignments = Vec::new();
        for game in orphans {
            // The least laden for what it can carry; among equals the first. 2520 is a multiple of each capacity, 1 to 10.
            let laden =
                |it: &&&Member| (load[&*it.id] + 1) * 2520 / it.max_concurrent_matches.max(1);
            let lightest = referees.iter().min_by_key(laden)?;
            *load.entry(&lightest.id).or_default() += 1;
            let tokens = game
                .players
                .each_ref()
                .map(|player| match lightest.uses_match_tokens {
                    true => token(player),
                    false => String::new(),
                });
            let (match_id, referee_id) = (game.id.clone(), lightest.id.clone());
            assignments.push(MatchAssignment {
                match_id,
                referee_id,
                tokens,
            });
        }
        (!assignments.is_empty()).then_some(Event::Assigned { assignments })
    }

    /// Changes the state by what has happened.
    pub fn apply(&mut self, event: &Event) {
        self.changes += 1;
        match event {
            Event::Registered(member) => self.enter(member),
            Event::Started { seed, rounds } => self.set_up(*seed, rounds),
            Event::Assigned { assignments } => {
                for given in assignments {
                    self.find_mut(&given.match_id)
                        .into_iter()
                        .for_each(|game| game.assignment = Some(given.clone()));
                }
            }
            Event::Recorded(recorded) => self.count(recorded),
            Event::Closed => self.closed = true,
            Event::Paused => self.paused = true,
            Event::Resumed => self.paused = false,
            Event::Removed { player_id } if self.started => {
                self.removed.insert(player_id.clone());
            }
            Event::Removed { player_id } => {
                self.members.remove(player_id);
                self.seasons.remove(player_id);
                self.table = OnceLock::new();
            }
            Event::Restored { agent_id } => {
                self.removed.remove(agent_id);
                self.let_in.insert(agent_id.clone());
            }
            Event::Voided { match_id } => self.void(match_id),
            Event::Again => self.again = true,
        }
    }

    /// Forgets a result, and counts all others anew in their order.
    fn void(&mut self, match_id: &str) {
        let Some(game) = self.find_mut(match_id) else {
            return;
        };
        (game.assignment, game.recorded, game.voids) = (None, None, game.voids + 1);
        for season in self.seasons.values_mut() {
            (season.row, season.suspended) = (
                empty_row(&season.row.player_id, &season.row.display_name),
                false,
            );
        }
        (self.rounds_completed, self.table) = (0, OnceLock::new());
        for id in std::mem::take(&mut self.played) {
            let recorded = self.find_mut(&id).and_then(|game| game.recorded.take());
            recorded
                .into_iter()
                .for_each(|recorded| self.count(&recorded));
        }
    }

    fn enter(&mut self, member: &Member) {
        self.let_in.remove(&member.id);
        if member.kind == Kind::Player {
            let (id, name) = (&member.id, &member.display_name);
            let new = || Season {
                row: empty_row(id, name),
                games: Vec::new(),
                suspended: false,
            };
            self.seasons
                .entry(id.clone())
                .or_insert_with(new)
                .row
                .display_name
                .clone_from(name);
            self.table = OnceLock::new();
        }
        self.members.insert(member.id.clone(), member.clone());
    }

    fn set_up(&mut self, seed: Option<u64>, rounds: &[Vec<[String; 2]>]) {
        (self.started, self.seed, self.matches) = (true, seed, matches_of(rounds));
        for (place, game) in self.matches.iter().enumerate() {
            self.places.insert(game.id.clone(), place);
            for player in &game.players {
                self.seasons
                    .entry(player.clone())
                    .and_modify(|season| season.games.push(place));
            }
        }
    }

    fn count(&mut self, recorded: &Recorded) {
        let game = self
            .places
            .get(&recorded.match_id)
            .and_then(|place| self.matches.get_mut(*place));
        let Some(game) = game.filter(|game| game.recorded.is_none()) else {
            return;
        };
        game.recorded = Some(recorded.clone());
        for player in &game.players {
            if let Some(season) = self.seasons.get_mut(player) {
                add(&mut season.row, &recorded.result);
                season.suspended = lost_technically(player, &recorded.result);
            }
        }
        while self
            .open_round()
            .is_some_and(|round| self.open_matches(round).next().is_none())
        {
            self.rounds_completed += 1;
        }
        self.played.push(recorded.match_id.clone());
        self.table = OnceLock::new();
    }
}

impl Match {
    /// The id of the referee it was given to.
    pub fn referee(&self) -> Option<&str> {
        self.assignment
            .as_ref()
            .map(|assignment| &*assignment.referee_id)
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
fn matches_of(rounds: &[Vec<[String; 2]>]) -> Vec<Match> {
    let mut matches = Vec::new();
    for (round, pairs) in (1..).zip(rounds) {
        for (n, players) in (1..).zip(pairs.iter().cloned()) {
            let id = format!("R{round}M{n}");
            matches.push(Match {
                id,
                round,
                players,
                assignment: None,
                recorded: None,
                voids: 0,
            });
        }
    }
    matches
}
