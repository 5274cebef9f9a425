//! The round loop: it plays the league from where it stands to its end.
//!
//! The loop calls `step` whenever something has changed. A step decides one event after the other,
//! and then publishes what is new. The start of the league, a restart and the loss of a referee are
//! handled by the same step: every unfinished match of the open round gets an available referee.
//!
//! A round goes through these states. Its matches are *assigned* to referees and *announced* to the
//! players. It is published to the referees when the lead time has passed and all players have
//! received it (a player that does not answer is waited for a second). They *report* the results. A
//! referee that does not report in time is handled in `overdue.rs`. Read next: `notifications.rs`.

use super::Manager;
use super::league::{Event, League};
use super::notifications::{Progress, Published};
use super::overdue::{FutureTime, ReportDeadlines};
use super::queries::NO_REFEREE_REASON;
use crate::net::log::Level;
use crate::net::sync::{lock, secret};
use crate::program::SHUTDOWN_TIMEOUT;
use crate::protocol::AgentKind;
use crate::values::{Timestamp, token};
use std::io;
use std::mem;
use std::thread::Thread;
use std::time::{Duration, Instant};

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
    last_table: Option<Instant>,
    /// The newest open round that the loop has seen; 0 before the start.
    round: u32,
    /// The time at which the matches of the open round may begin; `None` until they are assigned.
    starts_at: Option<FutureTime>,
    /// The time of the last assignment.
    assigned_at: Instant,
    /// The time by which each referee must have reported its matches.
    reports: ReportDeadlines,
    /// The time at which the end of the league was published to the referees.
    ended_at: Option<Instant>,
}

impl<'a> RoundLoop<'a> {
    /// Creates the loop for the manager's league.
    pub fn new(manager: &'a Manager) -> RoundLoop<'a> {
        RoundLoop {
            manager,
            last_table: None,
            round: 0,
            starts_at: None,
            assigned_at: Instant::now(),
            reports: ReportDeadlines::default(),
            ended_at: None,
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
        let (store, notifier) = (&self.manager.store, &self.manager.notifier);
        let referees = store.read(|league| notifier.available_referees(league));

        // Decide one event after the other. A full disk is tried again with the next step.
        let mut result = Ok(true);
        while let Ok(true) = result {
            result = self.decide_next(&referees);
        }

        // Publish what is new.
        let (threads, mut waiting) = store.read(|league| {
            let reason = league.waiting_reason(&referees);
            let threads = self.publish(league, reason.is_none());
            self.reports.update(league, notifier);
            (threads, self.waiting(league, reason))
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
    fn decide_next(&mut self, referees: &[String]) -> io::Result<bool> {
        let store = &self.manager.store;
        self.enter_open_round();
        let mut warnings = None; // none unless matches are assigned
        let is_new = store.commit_event(|league| {
            let event = self.next_event(league, referees);
            if let Some(Event::Assigned { .. }) = event {
                warnings = Some(self.lost_referee_warnings(league, referees));
            }
            event
        })?;

        // Matches are assigned.
        if let Some(warnings) = warnings {
            for text in warnings {
                self.manager.say(Level::Warning, "referee_lost", &text);
            }
            self.starts_at
                .get_or_insert_with(|| FutureTime::after(self.manager.lead));
            self.assigned_at = Instant::now();
            self.reports.clear();
        }
        Ok(is_new)
    }

    /// Begins with a new open round. After a restart of the manager, a round that has referees
    /// already goes on at once.
    fn enter_open_round(&mut self) {
        let store = &self.manager.store;
        if let Some(round) = store.read(League::open_round)
            && round != self.round
        {
            self.manager.hooks.before_round(self.manager, round);
            let is_resumed = store.read(|league| league.assigned_matches(round).next().is_some());
            self.round = round;
            self.starts_at = is_resumed.then(|| FutureTime::after(Duration::ZERO));
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
    fn lost_referee_warnings(&self, league: &League, available: &[String]) -> Vec<String> {
        let mut warnings = Vec::new();
        for id in league.ids(AgentKind::Referee) {
            let has_matches = league.open_matches_of(&id, self.round).next().is_some();
            if has_matches && !available.contains(&id) {
                let problem = self.manager.notifier.status(&id).problem;
                let referee = league.name_and_id(&id);
                warnings.push(format!(
                    "{referee} {problem}; its matches are announced again"
                ));
            }
        }
        warnings
    }

    /// Publishes what is new. Returns the threads that have to be woken for it.
    ///
    /// The tables of a large league are held back for a while. Referees get an announcement when
    /// the lead time has passed, `have_players_received`, and the league `may_begin` matches. The
    /// end of the league is published to referees first, since their players may lack a result.
    fn publish(&mut self, league: &League, may_begin: bool) -> Vec<Thread> {
        let notifier = &self.manager.notifier;
        let before = notifier.published();

        let mut players = league.newest();
        if players.results != before.players.results {
            if self.is_table_due(league, before.players) {
                self.last_table = Some(Instant::now());
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
        let has_lead_passed = self.starts_at.as_ref().is_some_and(FutureTime::has_passed);
        let is_due = may_begin && has_lead_passed;
        if !(is_published || is_due && self.have_players_received(league, before.players)) {
            referees.announcement = 0;
        }
        players.is_over &= self.have_referees_ended();
        if referees.is_over {
            self.ended_at.get_or_insert_with(Instant::now);
        }
        notifier.publish(league, Published { players, referees })
    }

    /// Returns true if a table may be published now. The end of a round or of the league is never
    /// held back.
    fn is_table_due(&self, league: &League, published: Progress) -> bool {
        let players = league.members(AgentKind::Player).len();
        let interval = TABLE_INTERVAL_PER_PLAYER * players as u32;
        let last_table = self.last_table;
        players <= MAX_UNTHROTTLED_PLAYERS
            || league.rounds_completed > published.rounds
            || league.is_over()
            || last_table.is_none_or(|time| time.elapsed() >= interval)
    }

    /// Returns true if all players that answer have received the newest announcement, or have had
    /// enough time since the last assignment.
    fn have_players_received(&self, league: &League, published: Progress) -> bool {
        self.assigned_at.elapsed() >= PLAYERS_FIRST_TIMEOUT
            || published.announcement == league.announcement_version
                && self.manager.notifier.have_received(AgentKind::Player)
    }

    /// Returns true if all referees that answer have taken the end of the league, or have had
    /// enough time to finish what they were sending.
    fn have_referees_ended(&self) -> bool {
        self.ended_at.is_some_and(|time| {
            time.elapsed() >= SHUTDOWN_TIMEOUT
                || self.manager.notifier.have_received(AgentKind::Referee)
        })
    }

    /// Returns what the league waits for: agents, what `reason` says, the lead time, or reports of
    /// referees.
    fn waiting(&self, league: &League, reason: Option<&str>) -> Waiting {
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
                for id in league.ids(AgentKind::Referee) {
                    let problem = self.manager.notifier.status(&id).problem;
                    text += &format!("; {} {problem}", league.name_and_id(&id));
                }
            }
            waiting.reason = Some(text);
        } else if let Some(starts_at) = &self.starts_at
            && !starts_at.has_passed()
        {
            let (round, time) = (self.round, starts_at.timestamp.time_of_day());
            let reason = format!("round {round} is announced: its matches begin at {time}");
            waiting.reason = Some(reason);
            waiting.next_at = Some(starts_at.timestamp);
        } else {
            waiting.reason = self.reports.describe_awaited_reports(league);
        }
        waiting
    }
}
