//! The league: who is registered, what is played, what is recorded. Pure: no lock, no I/O, no clock.
//!
//! State is the fold of events. Something is decided by reading (`register`, `start`, `assign`, `record`), which
//! gives an event; the event goes into the journal; `apply` then changes the state, and cannot fail. So a
//! program that dies at any moment finds the same state again by applying the journal.
//! Read next: `journal.rs`; who may register is in `registration.rs`, what is answered in `answers.rs`.

use crate::{
    clock::Timestamp,
    game::Scoring,
    protocol::{AgentState, Ending, Kind, MatchResult, Progress, Standing},
    schedule::{Pair, round_robin},
    standings::{self, Played, TieBreak, by_number},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr, time::Duration};

/// What the configuration says about the league.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "named as in the files")]
pub struct Rules {
    pub league_id: String,
    pub scoring: Scoring,
    pub tiebreakers: Vec<TieBreak>,
    pub cycles: u32,
    pub min_players: usize,
    pub max_players: usize,
    pub game_types: Vec<String>,
    pub listed: Vec<Listed>,
    /// Whether tokens are demanded (`enable_auth_tokens`).
    pub tokens: bool,
    pub token_lifetime: Duration,
}

/// An agent that the agents configuration lists.
#[derive(Debug, Clone)]
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
    /// The request that made it what it is, to know it again when it comes twice.
    pub conversation_id: String,
    pub peer: IpAddr,
    /// How often it has registered: whoever was told of an older registration must be told again.
    pub registrations: u32,
}

/// A match handed to a referee, with the tokens of both players for it (empty, where it makes its own).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Order {
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
pub enum Event {
    /// An agent registered, or re-attached: what it is from now on.
    Registered(Member),
    /// The schedule stands.
    Started {
        /// The seed of a reproducible league.
        seed: Option<u64>,
        /// Who meets whom, by round.
        rounds: Vec<Vec<Pair>>,
    },
    /// Matches were given to referees.
    Assigned {
        /// One for each match.
        orders: Vec<Order>,
    },
    /// A match was played.
    Recorded(Recorded),
    /// Everybody was told that it is over.
    Closed,
}

/// A match of the schedule.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Match {
    pub id: String,
    pub round: u32,
    pub players: [String; 2],
    pub order: Option<Order>,
    pub recorded: Option<Recorded>,
}

/// The state.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct League {
    pub rules: Rules,
    pub members: BTreeMap<String, Member>,
    pub matches: Vec<Match>,
    pub started: bool,
    pub closed: bool,
    pub seed: Option<u64>,
    /// The ids of the matches played, in the order in which they were recorded.
    pub played: Vec<String>,
    /// How many events there have been: whoever waits for news compares this.
    pub changes: u64,
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
            seed: None,
            played: Vec::new(),
            changes: 0,
        }
    }

    /// The agents of a kind, in the order of their ids.
    pub fn members(&self, kind: Kind) -> Vec<&Member> {
        let mut members: Vec<&Member> = self.members.values().filter(|member| member.kind == kind).collect();
        members.sort_by(|one, other| by_number(&one.id, &other.id));
        members
    }

    /// The player of that id, if there is one.
    pub fn player(&self, id: &str) -> Option<&Member> {
        self.members.get(id).filter(|member| member.kind == Kind::Player)
    }

    /// The match of that id, if there is one.
    pub fn find(&self, match_id: &str) -> Option<&Match> {
        self.matches.iter().find(|game| game.id == match_id)
    }

    /// The matches of a round.
    pub fn round(&self, round: u32) -> impl Iterator<Item = &Match> {
        self.matches.iter().filter(move |game| game.round == round)
    }

    /// How many rounds the schedule has; 0 before the start.
    pub fn rounds(&self) -> u32 {
        self.matches.last().map_or(0, |game| game.round)
    }

    /// The matches of a round that have no result yet.
    pub fn open_matches(&self, round: u32) -> impl Iterator<Item = &Match> {
        self.round(round).filter(|game| game.recorded.is_none())
    }

    /// The first round that is not over.
    pub fn open_round(&self) -> Option<u32> {
        self.matches.iter().find(|game| game.recorded.is_none()).map(|game| game.round)
    }

    /// How many rounds are over: those before the open one, or all.
    pub fn rounds_completed(&self) -> u32 {
        self.open_round().map_or(self.rounds(), |open| open - 1)
    }

    /// Waiting, running, or completed.
    pub fn progress(&self) -> Progress {
        match (self.started, self.open_round()) {
            (false, _) => Progress::Waiting,
            (true, Some(_)) => Progress::Running,
            (true, None) => Progress::Completed,
        }
    }

    /// The table as it stands.
    pub fn table(&self) -> Vec<Standing> {
        let players: Vec<_> = self.members(Kind::Player).into_iter().map(|p| (&*p.id, &*p.display_name)).collect();
        standings::table(&players, &self.games(), &self.rules.scoring, &self.rules.tiebreakers)
    }

    /// The matches played, as the table wants them.
    pub fn games(&self) -> Vec<Played<'_>> {
        self.matches.iter().filter_map(Match::played).collect()
    }

    /// Where an agent stands in its life (004). A player whose last match was lost technically is suspended: it
    /// is still invited, and recovers with the next match it plays.
    pub fn state_of(&self, member: &Member) -> AgentState {
        let last = self.played.iter().rev().filter_map(|id| self.find(id)).find(|game| game.has(&member.id));
        let failed = |recorded: &Recorded| {
            let technical = standings::ending(&recorded.result) == Ending::TechnicalLoss;
            technical && recorded.result.winner.as_deref() != Some(&member.id)
        };
        match (self.started, self.closed, last.and_then(|game| game.recorded.as_ref())) {
            (_, true, _) => AgentState::Shutdown,
            (false, ..) => AgentState::Registered,
            (.., Some(recorded)) if member.kind == Kind::Player && failed(recorded) => AgentState::Suspended,
            _ => AgentState::Active,
        }
    }

    /// Who would meet whom, by round, with the players so far.
    pub fn pairings(&self) -> Vec<Vec<Pair>> {
        let players: Vec<String> = self.members(Kind::Player).into_iter().map(|player| player.id.clone()).collect();
        round_robin(&players, self.rules.cycles)
    }

    /// Starts, or says what is missing. Nothing new where it has started already.
    pub fn start(&self, seed: Option<u64>) -> Result<Option<Event>, String> {
        let (players, referees) = (self.members(Kind::Player).len(), self.members(Kind::Referee).len());
        let needed = self.rules.min_players.max(2);
        if self.started {
            return Ok(None);
        }
        if players < needed || referees == 0 {
            let have = format!("{players} of at least {needed} players and {referees} of at least 1 referee");
            return Err(format!("{have} have registered"));
        }
        Ok(Some(Event::Started { seed, rounds: self.pairings() }))
    }

    /// Gives the open matches of a round to the referees that are there, by their capacity. Matches whose
    /// referee is among `present` stay where they are. `token` makes a fresh token for a player.
    pub fn assign(&self, round: u32, present: &[String], mut token: impl FnMut(&str) -> String) -> Option<Event> {
        let referees: Vec<&Member> = present.iter().filter_map(|id| self.members.get(id)).collect();
        let mut load: BTreeMap<&str, u32> = referees.iter().map(|referee| (&*referee.id, 0)).collect();
        let mut orphans = Vec::new();
        for game in self.open_matches(round) {
            match game.referee().and_then(|id| load.get_mut(id)) {
                Some(matches) => *matches += 1,
                None => orphans.push(game),
            }
        }
        let mut orders = Vec::new();
        for game in orphans {
            // The least laden for what it can carry; among equals the lowest id.
            let lightest = referees.iter().min_by(|one, other| {
                let laden = |referee: &Member| u64::from(load[&*referee.id] + 1);
                let left = laden(one) * u64::from(other.max_concurrent_matches);
                left.cmp(&(laden(other) * u64::from(one.max_concurrent_matches)))
            })?;
            *load.entry(&lightest.id).or_default() += 1;
            let tokens = game.players.each_ref().map(|player| match lightest.uses_match_tokens {
                true => token(player),
                false => String::new(),
            });
            orders.push(Order { match_id: game.id.clone(), referee_id: lightest.id.clone(), tokens });
        }
        (!orders.is_empty()).then_some(Event::Assigned { orders })
    }

    /// Changes the state by what has happened.
    pub fn apply(&mut self, event: &Event) {
        self.changes += 1;
        match event {
            Event::Registered(member) => drop(self.members.insert(member.id.clone(), member.clone())),
            Event::Started { seed, rounds } => {
                (self.started, self.seed) = (true, *seed);
                self.matches = (1..).zip(rounds).flat_map(|(round, pairs)| matches_of(round, pairs)).collect();
            }
            Event::Assigned { orders } => orders.iter().for_each(|order| {
                self.change(&order.match_id, |game| game.order = Some(order.clone()));
            }),
            Event::Recorded(recorded) => {
                self.change(&recorded.match_id, |game| game.recorded = Some(recorded.clone()));
                self.played.push(recorded.match_id.clone());
            }
            Event::Closed => self.closed = true,
        }
    }

    fn change(&mut self, match_id: &str, change: impl FnOnce(&mut Match)) {
        self.matches.iter_mut().find(|game| game.id == match_id).map(change);
    }
}

impl Match {
    /// The id of the referee it was given to.
    pub fn referee(&self) -> Option<&str> {
        self.order.as_ref().map(|order| &*order.referee_id)
    }

    /// Whether that player plays in it.
    pub fn has(&self, player_id: &str) -> bool {
        self.players.iter().any(|player| player == player_id)
    }

    /// The other player.
    pub fn opponent(&self, player_id: &str) -> String {
        let [a, b] = &self.players;
        if a == player_id { b.clone() } else { a.clone() }
    }

    /// As the table wants it, once it is played.
    pub fn played(&self) -> Option<Played<'_>> {
        let players = self.players.each_ref().map(String::as_str);
        self.recorded.as_ref().map(|recorded| Played { players, result: &recorded.result })
    }
}

/// The matches of a round, numbered: `R1M1`, `R1M2`, …
fn matches_of(round: u32, pairs: &[Pair]) -> impl Iterator<Item = Match> {
    (1..).zip(pairs).map(move |(n, (a, b))| Match {
        id: format!("R{round}M{n}"),
        round,
        players: [a.clone(), b.clone()],
        order: None,
        recorded: None,
    })
}
