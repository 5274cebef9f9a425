//! The round loop: it plays the league from where it stands to its end.
//!
//! The loop calls `step` whenever something has changed. A step decides one event after the other,
//! and then publishes what is new. The start of the league, a restart and the loss of a referee are
//! handled by the same step: every unfinished match of the open round gets an available referee.
//!
//! A round goes through these states. Its matches are *assigned* to referees and *announced* to the
//! players. It is published to the referees when the lead time has passed and all players that
//! answer have received it, or a second has passed since the assignment or since the manager was
//! restarted. They *report* the results. The open matches of a referee that does not report in time
//! are given to others, as are those of one that does not answer (`contact.rs`). Read next:
//! `notifications.rs`.

use super::Manager;
use super::contact::Table;
use super::league::{Event, League};
use super::notifications::{Progress, Published};
use crate::net::log::Level;
use crate::net::sync::secret;
use crate::protocol::AgentKind;
use crate::values::{Moment, Timestamp, token};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time between two steps.
const STEP_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time from an assignment, or from a restart, that referees wait for players to receive it.
const PLAYERS_FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of players of a league in which every result is published at once.
const MAX_UNTHROTTLED_PLAYERS: usize = 16;
/// Maximum number of players of a league in which each round ends with its table. In a larger one
/// the rounds of fast players would be over before all have read the table of the round before.
const MAX_PLAYERS_OF_ROUND_TABLES: usize = 100;
/// Minimum time between two tables of a larger league, divided by the number of its players.
const TABLE_INTERVAL_PER_PLAYER: Duration = Duration::from_millis(5);
/// Time without news after which the league says which referees it waits for.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a league waits for.
#[derive(Default)]
pub struct Waiting {
    /// The reason as text.
    pub reason: Option<String>,
    /// The time at which the announced matches begin.
    pub next_at: Option<Timestamp>,
}

/// The times by which a league is played. It uses no clock.
#[derive(Default)]
pub struct Pace {
    /// The newest open round that was begun; 0 before the start.
    round: u32,
    /// The time at which the matches of the open round may begin; `None` until they are assigned.
    starts_at: Option<Moment>,
    /// The time until which the referees wait for players to receive the last assignment.
    players_until: Option<Moment>,
    /// The time from which a further table may be published.
    next_table_at: Option<Moment>,
}

impl Manager {
    /// Runs until `is_done` is true of the league. Fails if another program writes the journal.
    pub fn run_rounds(self: &Arc<Self>, is_done: impl Fn(&League) -> bool) -> io::Result<()> {
        loop {
            let changes = self.store.change_count();
            self.store.check()?;
            self.step();
            if self.store.read(&is_done) {
                return Ok(());
            }
            self.store.wait_for_change(changes, STEP_INTERVAL);
        }
    }

    /// Decides what can be decided now, publishes what is new, and says what the league waits for.
    pub fn step(self: &Arc<Self>) {
        let (store, contacts) = (&self.store, &self.contacts);
        // Decide one event after the other. A full disk is tried again with the next step.
        let mut result = Ok(true);
        while let Ok(true) = result {
            result = self.decide_next();
        }

        // Publish what is new.
        let now = Moment::now();
        let (threads, is_new, reason) = store.read(|league| {
            let threads = self.publish(league, now);
            contacts.with(|table| {
                table.fault = result.err().map(|error| error.to_string());
                let reason = table.waiting(league, now).reason;
                let is_new = reason != table.said;
                table.said.clone_from(&reason);
                // A lobby that the operator will start is no news.
                let is_lobby = !league.started && table.automatic_start.is_none();
                (threads, is_new, reason.filter(|_| !is_lobby))
            })
        });
        for thread in threads {
            thread.unpark();
        }

        // Say what the league waits for, if that has changed.
        if is_new {
            store.notify_all();
        }
        if let Some(reason) = reason.filter(|_| is_new) {
            self.print_news(); // first the round, then what it waits for
            self.say(Level::Warning, "waiting", &reason);
        }
    }

    /// Decides and stores the next event. Returns false if there is none.
    fn decide_next(&self) -> io::Result<bool> {
        let now = Moment::now();
        let new_round =
            (self.store).read(|league| self.contacts.with(|table| table.pace.begin(league, now)));
        if let Some(round) = new_round {
            self.hooks.before_round(self, round);
        }

        let mut warnings = Vec::new();
        let event = self.store.commit_event(|league| {
            self.contacts.with(|table| {
                let event = self.next_event(league, table);
                if let Some(Event::Assigned { .. }) = event {
                    warnings = table.lost_referee_warnings(league);
                }
                event
            })
        })?;

        if let Some(Event::Assigned { assignments }) = &event {
            let now = Moment::now();
            (self.contacts).with(|table| table.record_assignment(assignments, self.lead, now));
            for text in warnings {
                self.say(Level::Warning, "referee_lost", &text);
            }
        }
        Ok(event.is_some())
    }

    /// Decides the next event: the league starts, a match of a removed player is recorded, or the
    /// open matches whose referee is missing or lost are assigned.
    fn next_event(&self, league: &League, table: &Table) -> Option<Event> {
        if !league.started {
            let (players, referees) = table.automatic_start?;
            let are_here = league.count(AgentKind::Player) >= players as usize
                && league.count(AgentKind::Referee) >= referees as usize;
            return self.decide_start(league).filter(|_| are_here);
        }

        let round = league.open_round()?;
        let available = table.available_referees(league);
        let walkover = league.walkover(round, Timestamp::now());
        if walkover.is_some() || league.paused || available.is_empty() {
            return walkover;
        }

        let digits = league.config.system.security.token_length;
        league.assign_open_matches(round, &available, &table.unannounced, |player| {
            token(player, &secret(digits))
        })
    }
}

impl Pace {
    /// Begins with the open round, and returns it if it is new. After a restart of the manager, the
    /// matches of a round that has referees already count as assigned now, without a lead time.
    pub fn begin(&mut self, league: &League, now: Moment) -> Option<u32> {
        let round = league.open_round().filter(|round| *round != self.round)?;
        self.round = round;
        self.starts_at = None;
        if league.assigned_matches(round).next().is_some() {
            self.assign(Duration::ZERO, now);
        }
        Some(round)
    }

    /// Records that matches of the round were assigned.
    pub fn assign(&mut self, lead: Duration, now: Moment) {
        self.starts_at.get_or_insert(now.plus(lead));
        self.players_until = Some(now.plus(PLAYERS_FIRST_TIMEOUT));
    }
}

impl Table {
    /// Returns what may be told now.
    ///
    /// The tables of a large league are held back for a while. Referees get an announcement when
    /// the lead time has passed, the players have it, and the league `may_begin` matches. The end
    /// of the league is published to referees first, since their players may lack a result.
    pub fn publishable(&mut self, league: &League, may_begin: bool, now: Moment) -> Published {
        let (before, pace) = (self.published, &mut self.pace);
        let mut players = league.newest();
        if players.tables != before.players.tables {
            let player_count = league.count(AgentKind::Player);
            // The last table is never held back. The table of a round is held back only in a very
            // large league.
            let is_round_over = players.rounds > before.players.rounds;
            let is_due = player_count <= MAX_UNTHROTTLED_PLAYERS
                || is_round_over && player_count <= MAX_PLAYERS_OF_ROUND_TABLES
                || league.is_over()
                || pace.next_table_at.is_none_or(|time| time.has_passed(now));
            if is_due {
                let interval = TABLE_INTERVAL_PER_PLAYER * player_count as u32;
                pace.next_table_at = Some(now.plus(interval));
            } else {
                players.tables = before.players.tables;
            }
        }

        let mut referees = Progress {
            tables: 0, // they get no table
            ..players
        };
        // A referee that registers again gets at once what is published already.
        let is_published = before.referees.announcement == players.announcement;
        let may_begin = may_begin && pace.starts_at.is_some_and(|time| time.has_passed(now));
        let is_time_over = (self.pace.players_until).is_none_or(|time| time.has_passed(now));
        let have_players_received = is_time_over
            || before.players.announcement == players.announcement
                && self.are_settled(AgentKind::Player);
        if !(is_published || may_begin && have_players_received) {
            referees.announcement = 0;
        }

        // Players are told the end after all referees that answer.
        players.is_over &= before.referees.is_over && self.are_settled(AgentKind::Referee);
        Published { players, referees }
    }

    /// Returns what the league waits for: the disk, agents that register, the operator, a referee,
    /// the lead time, or reports of referees.
    pub fn waiting(&self, league: &League, now: Moment) -> Waiting {
        let mut waiting = Waiting::default();
        waiting.reason = match self.pace.starts_at {
            _ if self.fault.is_some() => self.fault.clone(),
            _ if league.is_over() => None,
            _ if !league.started => match self.automatic_start {
                Some((players, referees)) => Some(format!(
                    "the league starts when these have registered: players {players}, \
                     referees {referees}"
                )),
                None => league.missing_to_start(),
            },
            _ if league.paused => Some(
                "the league is paused: no further match begins until the operator says resume"
                    .into(),
            ),
            _ if self.available_referees(league).is_empty() => {
                let mut reason =
                    "no referee is left: the league waits until one registers or answers again"
                        .to_string();
                for id in league.ids(AgentKind::Referee) {
                    reason += &format!("; {}", self.problem_of(&id, league));
                }
                Some(reason)
            }
            Some(starts_at) if !starts_at.has_passed(now) => {
                waiting.next_at = Some(starts_at.timestamp);
                let (round, time) = (self.pace.round, starts_at.timestamp.time_of_day());
                Some(format!(
                    "round {round} is announced: its matches begin at {time}"
                ))
            }
            _ if self.published_at.plus(IDLE_TIMEOUT).has_passed(now) => {
                self.awaited_reports(league)
            }
            _ => None,
        };
        waiting
    }
}
