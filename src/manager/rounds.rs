//! The round loop: it plays the league from where it stands to its end.
//!
//! The loop calls `step` whenever something has changed. A step decides one event after the other,
//! and then publishes what is new. The start of the league, a restart and the loss of a referee are
//! handled by the same step: every unfinished match of the open round gets an available referee.
//!
//! A round goes through these states. Its matches are *assigned* to referees and *announced* to the
//! players. It is published to the referees when the lead time has passed and all players have
//! received it (a player that does not answer is waited for a second). They *report* the results. A referee that does not report in time
//! is handled in `overdue.rs`. Read next: `notifications.rs`.

use super::Manager;
use super::league::{Event, League};
use super::notifications::NotificationCursor;
use super::overdue::{FutureTime, ReportDeadlines};
use super::queries::PAUSED_REASON;
use crate::net::log::Level;
use crate::net::sync::{lock, secret};
use crate::protocol::AgentKind;
use crate::values::{Timestamp, token};
use std::mem;
use std::time::{Duration, Instant};

/// Maximum time between two steps while a round is open.
const STEP_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time between two steps before the start and after the last round.
const IDLE_STEP_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time from an assignment that referees wait for players to receive it.
const PLAYERS_FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const NO_REFEREE_REASON: &str =
    "no referee is left: the league waits until one registers or answers again";

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
    cursor: NotificationCursor,
    /// The newest open round that the loop has seen; 0 before the start.
    round: u32,
    /// The time at which the matches of the open round may begin; `None` until they are assigned.
    starts_at: Option<FutureTime>,
    /// The time of the last assignment.
    assigned_at: Instant,
    /// The time by which each referee must have reported its matches.
    reports: ReportDeadlines,
}

impl<'a> RoundLoop<'a> {
    /// Creates the loop for the manager's league.
    pub fn new(manager: &'a Manager) -> RoundLoop<'a> {
        RoundLoop {
            manager,
            cursor: manager.store.read(NotificationCursor::before_last_round),
            round: 0,
            starts_at: None,
            assigned_at: Instant::now(),
            reports: ReportDeadlines::default(),
        }
    }

    /// Runs until `is_done` is true of the league.
    pub fn run_until(&mut self, is_done: impl Fn(&League) -> bool) {
        let store = &self.manager.store;
        loop {
            let version = store.version();
            self.step();
            if store.read(&is_done) {
                return;
            }

            let interval = match store.read(League::open_round) {
                Some(_) => STEP_INTERVAL,
                None => IDLE_STEP_INTERVAL,
            };
            store.wait_for_change(version, interval);
        }
    }

    /// Decides what can be decided now, publishes what is new, and says what the league waits for.
    fn step(&mut self) {
        let store = &self.manager.store;

        // Decide one event after the other. A full disk is tried again with the next step.
        let mut result = Ok(true);
        while let Ok(true) = result {
            result = store.commit_event(|league| self.next_event(league));
        }

        // Publish what is new.
        let mut waiting = store.read(|league| {
            self.publish(league);
            let is_announced = self.cursor.referee_announcement == league.announcement_version;
            let notifier = &self.manager.notifier;
            self.reports.update(league, notifier, is_announced);
            self.waiting(league)
        });
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

    /// Decides the next event: the league starts, a match of a removed player is recorded, or the
    /// matches that have no available referee are assigned.
    fn next_event(&mut self, league: &League) -> Option<Event> {
        if !league.started {
            let (players, referees) = self.manager.automatic_start?;
            return self.manager.decide_start(league, players, referees);
        }

        let round = league.open_round()?;
        if round != self.round {
            // After a restart of the manager, a round that has referees already goes on at once.
            let is_resumed = league.assigned_matches(round).next().is_some();
            self.round = round;
            self.starts_at = is_resumed.then(|| FutureTime::after(Duration::ZERO));
        }

        let walkover = league.walkover(round, Timestamp::now());
        if walkover.is_some() || self.waiting_reason(league).is_some() {
            return walkover;
        }

        let referees = self.manager.notifier.available_referees(league);
        let digits = league.config.system.security.token_length;
        let assignment = league
            .assign_open_matches(round, &referees, |player| token(player, &secret(digits)))?;
        self.warn_of_unavailable_referees(league, &referees);
        self.starts_at
            .get_or_insert_with(|| FutureTime::after(self.manager.lead));
        self.assigned_at = Instant::now();
        self.reports.clear();
        Some(assignment)
    }

    /// Returns the reason if no match may begin at present.
    fn waiting_reason(&self, league: &League) -> Option<String> {
        if league.paused {
            return Some(PAUSED_REASON.into());
        }
        let notifier = &self.manager.notifier;
        if !notifier.available_referees(league).is_empty() {
            return None;
        }

        let mut reason = NO_REFEREE_REASON.to_string();
        for id in league.ids(AgentKind::Referee) {
            reason += &format!(" ({id} {})", notifier.status(&id).problem);
        }
        Some(reason)
    }

    /// Warns of the referees whose matches are assigned to the available ones.
    fn warn_of_unavailable_referees(&self, league: &League, available: &[String]) {
        for id in league.ids(AgentKind::Referee) {
            let has_matches = league.open_matches_of(&id, self.round).next().is_some();
            if has_matches && !available.contains(&id) {
                let problem = self.manager.notifier.status(&id).problem;
                let text = format!("{id} {problem}; its matches are announced again");
                self.manager.say(Level::Warning, "referee_lost", &text);
            }
        }
    }

    /// Publishes what is new. Members that are new or must get everything again get fresh queues.
    /// Referees get an announcement when the lead time has passed and `have_players_received`.
    fn publish(&mut self, league: &League) {
        let notifier = &self.manager.notifier;
        // A referee that registers again gets at once what is published already.
        let is_published = self.cursor.referee_announcement == league.announcement_version;
        let has_lead_passed = self.starts_at.as_ref().is_some_and(FutureTime::has_passed);
        let may_publish_to_referees = is_published
            || (has_lead_passed
                && self.waiting_reason(league).is_none()
                && self.have_players_received(league));

        let mut members = Vec::new();
        for member in league.members.values() {
            if notifier.reset_queue_if_due(member) {
                let mut cursor = NotificationCursor::before_last_round(league);
                cursor.publish_changes(notifier, league, &[member], may_publish_to_referees);
            } else {
                members.push(member);
            }
        }
        self.cursor
            .publish_changes(notifier, league, &members, may_publish_to_referees);
    }

    /// Returns true if all players that answer have received the newest announcement, or have had
    /// enough time since the last assignment.
    fn have_players_received(&self, league: &League) -> bool {
        if self.assigned_at.elapsed() >= PLAYERS_FIRST_TIMEOUT {
            return true;
        }
        let mut players = league.members(AgentKind::Player).into_iter();
        self.cursor.player_announcement == league.announcement_version
            && players.all(|player| self.manager.notifier.has_received_all(&player.id))
    }

    /// Returns what the league waits for: agents, the lead time, or reports of referees.
    fn waiting(&self, league: &League) -> Waiting {
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

        if let Some(reason) = self.waiting_reason(league) {
            waiting.reason = Some(reason);
        } else if let Some(starts_at) = &self.starts_at
            && !starts_at.has_passed()
        {
            let (round, time) = (self.round, starts_at.timestamp);
            let reason = format!("round {round} is announced: its matches begin at {time}");
            waiting.reason = Some(reason);
            waiting.next_at = Some(time);
        } else {
            waiting.reason = self.reports.describe_awaited_reports(league);
        }
        waiting
    }
}
