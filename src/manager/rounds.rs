//! The round loop: it plays the league from where it stands to its end.
//!
//! The loop calls `step` whenever something has changed. A step decides one event after the other,
//! and then publishes what is new. The start of the league, a restart and the loss of a referee are
//! handled by the same step: every unfinished match of the open round gets an available referee.
//!
//! A round goes through these states. Its matches are *assigned* to referees and *announced* to the
//! players. It is published to the referees when the lead time has passed and all players have
//! received it (a player that does not answer is waited for a second). They *report* the results. A
//! referee that does not report in time gets no further match (`contact.rs`). Read next:
//! `notifications.rs`.

use super::Manager;
use super::contact::{self, Contact, Table};
use super::league::{Event, League};
use super::notifications::{Progress, Published};
use super::queries::NO_REFEREE_REASON;
use crate::net::log::Level;
use crate::net::sync::{lock, secret};
use crate::program::SHUTDOWN_TIMEOUT;
use crate::protocol::AgentKind;
use crate::values::{Moment, Timestamp, token};
use std::io;
use std::mem;
use std::time::Duration;

/// Maximum time between two steps while a round is open.
const STEP_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time between two steps before the start and after the last round.
const IDLE_STEP_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time from an assignment that referees wait for players to receive it.
const PLAYERS_FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of players of a league in which every result is published at once.
const MAX_UNTHROTTLED_PLAYERS: usize = 16;
/// Minimum time between two tables of a larger league, for each player.
const TABLE_INTERVAL_PER_PLAYER: Duration = Duration::from_millis(5);
/// Time without news after which the league says which referees it waits for.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The reason why a league waits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waiting {
    /// The reason as text.
    pub reason: Option<String>,
    /// The time at which the announced matches begin.
    pub next_at: Option<Timestamp>,
}

/// Plays the rounds of a league.
pub struct RoundLoop<'a> {
    manager: &'a Manager,
    pace: Pace,
}

/// The times by which a league is played. It uses no clock.
pub struct Pace {
    /// The newest open round that was begun; 0 before the start.
    round: u32,
    /// The time at which the matches of the open round may begin; `None` until they are assigned.
    starts_at: Option<Moment>,
    /// The time until which the referees wait for players to receive the last assignment.
    players_until: Moment,
    /// The time from which a further table may be published.
    next_table_at: Moment,
    /// The time at which something new was published last.
    published_at: Moment,
}

impl<'a> RoundLoop<'a> {
    /// Creates the loop for the manager's league.
    pub fn new(manager: &'a Manager) -> RoundLoop<'a> {
        RoundLoop {
            manager,
            pace: Pace::new(Moment::now()),
        }
    }

    /// Runs until `is_done` is true of the league.
    pub fn run_until(&mut self, is_done: impl Fn(&League) -> bool) {
        let store = &self.manager.store;
        loop {
            let changes = store.change_count();
            self.step();
            if store.read(&is_done) {
                return;
            }

            let interval = match store.read(League::open_round) {
                Some(_) => STEP_INTERVAL,
                None => IDLE_STEP_INTERVAL,
            };
            store.wait_for_change(changes, interval);
        }
    }

    /// Decides what can be decided now, publishes what is new, and says what the league waits for.
    fn step(&mut self) {
        let (store, contacts) = (&self.manager.store, &self.manager.contacts);
        let referees = store.read(|league| self.referees(league));
        let available = contact::available(&referees);

        // Decide one event after the other. A full disk is tried again with the next step.
        let mut result = Ok(true);
        while let Ok(true) = result {
            result = self.decide_next(&referees, &available);
        }

        // Publish what is new.
        let now = Moment::now();
        let (threads, mut waiting) = store.read(|league| {
            let reason = league.waiting_reason(&available);
            let newest =
                contacts.with(|table| self.pace.publishable(league, table, reason.is_none(), now));
            let threads = contacts.publish(league, newest, now);
            (threads, self.waiting(league, reason, now))
        });
        for thread in threads {
            thread.unpark();
        }
        if let Err(error) = result {
            waiting.reason = Some(error.to_string());
        }

        // Say what the league waits for, if that has changed.
        let before = mem::replace(&mut *lock(&self.manager.waiting), waiting.clone());
        if waiting != before {
            store.notify_all();
        }
        if waiting.reason != before.reason
            && let Some(reason) = waiting.reason
        {
            self.manager.say(Level::Warning, "waiting", &reason);
        }
    }

    /// Decides and stores the next event. Returns false if there is none.
    fn decide_next(
        &mut self,
        referees: &[(String, Contact)],
        available: &[String],
    ) -> io::Result<bool> {
        self.enter_open_round();
        let mut warnings = None; // none unless matches are assigned
        let is_new = self.manager.store.commit_event(|league| {
            let event = self.next_event(league, available);
            if let Some(Event::Assigned { .. }) = event {
                warnings = Some(self.lost_referee_warnings(league, referees, available));
            }
            event
        })?;

        // Matches are assigned.
        if let Some(warnings) = warnings {
            let now = Moment::now();
            for text in warnings {
                self.manager.say(Level::Warning, "referee_lost", &text);
            }
            self.pace.assign(self.manager.lead, now);
            self.manager.contacts.with(Table::clear_deadlines);
        }
        Ok(is_new)
    }

    /// Begins with a new open round. After a restart of the manager, a round that has referees
    /// already goes on at once.
    fn enter_open_round(&mut self) {
        let store = &self.manager.store;
        if let Some(round) = store.read(League::open_round)
            && round != self.pace.round
        {
            self.manager.hooks.before_round(self.manager, round);
            let is_resumed = store.read(|league| league.assigned_matches(round).next().is_some());
            self.pace.begin(round, is_resumed, Moment::now());
        }
    }

    /// Decides the next event: the league starts, a match of a removed player is recorded, or the
    /// matches that have no available referee are assigned.
    fn next_event(&self, league: &League, referees: &[String]) -> Option<Event> {
        if !league.started {
            let (players, referees) = self.manager.automatic_start?;
            return self.manager.decide_start(league, players, referees);
        }

        let round = league.open_round()?;
        let walkover = league.walkover(round, Timestamp::now());
        if walkover.is_some() || league.waiting_reason(referees).is_some() {
            return walkover;
        }

        let digits = league.config.system.security.token_length;
        league.assign_open_matches(round, referees, |player| token(player, &secret(digits)))
    }

    /// Returns a warning for each referee whose matches are assigned to the available ones.
    fn lost_referee_warnings(
        &self,
        league: &League,
        referees: &[(String, Contact)],
        available: &[String],
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        for (id, contact) in referees {
            let has_matches = league.open_matches_of(id, self.pace.round).next().is_some();
            if has_matches && !available.contains(id) {
                let (referee, problem) = (league.name_and_id(id), contact.health.problem());
                warnings.push(format!(
                    "{referee} {problem}; its matches are announced again"
                ));
            }
        }
        warnings
    }

    /// Returns what the league waits for: agents, what `reason` says, the lead time, or reports of
    /// referees.
    fn waiting(&self, league: &League, reason: Option<&str>, now: Moment) -> Waiting {
        let mut waiting = Waiting::default();
        if let Some((players, referees)) = self.manager.automatic_start
            && !league.started
        {
            waiting.reason = Some(format!(
                "the league starts when these have registered: players {players}, \
                 referees {referees}"
            ));
        }
        if league.open_round().is_none() {
            return waiting;
        }

        if let Some(reason) = reason {
            let mut text = reason.to_string();
            if reason == NO_REFEREE_REASON {
                for (id, contact) in self.referees(league) {
                    let problem = contact.health.problem();
                    text += &format!("; {} {problem}", league.name_and_id(&id));
                }
            }
            waiting.reason = Some(text);
        } else if let Some(starts_at) = self.pace.starts_at
            && !starts_at.has_passed(now)
        {
            let (round, time) = (self.pace.round, starts_at.timestamp.time_of_day());
            let reason = format!("round {round} is announced: its matches begin at {time}");
            waiting.reason = Some(reason);
            waiting.next_at = Some(starts_at.timestamp);
        } else if self.pace.published_at.plus(IDLE_TIMEOUT).has_passed(now) {
            waiting.reason = self.awaited_reports(league);
        }
        waiting
    }

    /// Returns the referees as they are now.
    fn referees(&self, league: &League) -> Vec<(String, Contact)> {
        self.manager.contacts.with(|table| table.referees(league))
    }

    /// Returns the reports that the league waits for.
    fn awaited_reports(&self, league: &League) -> Option<String> {
        let mut awaited = Vec::new();
        for (id, contact) in self.referees(league) {
            let Some(deadline) = contact.report_by else {
                continue;
            };
            let mut matches = Vec::new();
            for the_match in league.open_matches_of(&id, self.pace.round) {
                let [a, b] = (the_match.players.each_ref()).map(|id| league.name_and_id(id));
                matches.push(format!("{} of {a} and {b}", the_match.id));
            }

            let (referee, matches) = (league.name_and_id(&id), matches.join(", "));
            let until = deadline.timestamp.time_of_day();
            awaited.push(format!("{referee} to report {matches} (until {until})"));
        }
        (!awaited.is_empty()).then(|| format!("waiting for {}", awaited.join(" and ")))
    }
}

impl Pace {
    /// Returns the pace of a league that goes on now.
    pub fn new(now: Moment) -> Pace {
        Pace {
            round: 0,
            starts_at: None,
            players_until: now,
            next_table_at: now,
            published_at: now,
        }
    }

    /// Begins a round. If it `is_resumed`, it has no second lead time.
    pub fn begin(&mut self, round: u32, is_resumed: bool, now: Moment) {
        self.round = round;
        self.starts_at = is_resumed.then_some(now);
    }

    /// Records that matches of the round were assigned.
    pub fn assign(&mut self, lead: Duration, now: Moment) {
        self.starts_at.get_or_insert(now.plus(lead));
        self.players_until = now.plus(PLAYERS_FIRST_TIMEOUT);
    }

    /// Returns what may be told now.
    ///
    /// The tables of a large league are held back for a while. Referees get an announcement when
    /// the lead time has passed, the players have it, and the league `may_begin` matches. The end
    /// of the league is published to referees first, since their players may lack a result.
    pub fn publishable(
        &mut self,
        league: &League,
        table: &Table,
        may_begin: bool,
        now: Moment,
    ) -> Published {
        let before = table.published;
        let mut players = league.newest();
        if players.results != before.players.results {
            let member_count = league.members(AgentKind::Player).len();
            // The end of a round or of the league is never held back.
            let is_due = member_count <= MAX_UNTHROTTLED_PLAYERS
                || players.rounds > before.players.rounds
                || league.is_over()
                || self.next_table_at.has_passed(now);
            if is_due {
                self.next_table_at = now.plus(TABLE_INTERVAL_PER_PLAYER * member_count as u32);
            } else {
                players.results = before.players.results;
            }
        }

        let mut referees = Progress {
            results: 0, // they get no table
            ..players
        };
        // A referee that registers again gets at once what is published already.
        let is_published = before.referees.announcement == players.announcement;
        let may_begin = may_begin && self.starts_at.is_some_and(|time| time.has_passed(now));
        let have_players_received = self.players_until.has_passed(now)
            || before.players.announcement == players.announcement
                && table.are_settled(AgentKind::Player);
        if !is_published && !(may_begin && have_players_received) {
            referees.announcement = 0;
        }

        // All referees that answer have taken the end, or have had enough time to finish what they
        // were sending.
        players.is_over &= before.referees.is_over
            && (table.are_settled(AgentKind::Referee)
                || self.published_at.plus(SHUTDOWN_TIMEOUT).has_passed(now));

        let newest = Published { players, referees };
        if newest != before {
            self.published_at = now;
        }
        newest
    }
}
