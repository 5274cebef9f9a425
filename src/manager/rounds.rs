//! The round loop: it plays the league from where it stands to its end.
//!
//! The loop calls `step` whenever something has changed. The first start, a restart and the loss of
//! a referee are handled by the same step: every unfinished match of the open round gets an
//! available referee, and what is new is published.
//!
//! A round goes through these states. Its matches are *assigned* to referees and *announced* to the
//! players. When all players have received the announcement and the lead time has passed, it is
//! published to the referees, and they *report* the results. Read next:
//! `notifications.rs`.

use super::Manager;
use super::agent_status::{RefereeState, Waiting};
use super::league::{Event, League};
use super::notifications::NotificationCursor;
use super::queries::PAUSED;
use crate::games;
use crate::net::log::Level;
use crate::net::sync::lock;
use crate::net::sync::secret;
use crate::protocol::AgentKind;
use crate::values::{Timestamp, token};
use std::collections::BTreeMap;
use std::mem;
use std::time::{Duration, Instant};

/// Maximum time between two steps.
pub const STEP_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time that referees wait until all players have received an announcement.
const PLAYERS_FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Time without any change after which the league says which referees it waits for.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(2);
const NO_REFEREE: &str =
    "no referee is left: the league waits until one registers or answers again";

/// A moment to come, for the clock and as text.
struct Deadline {
    at: Instant,
    written: Timestamp,
}

impl Deadline {
    fn after(time: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + time,
            written: Timestamp::now().plus(time),
        }
    }

    fn has_passed(&self) -> bool {
        Instant::now() >= self.at
    }
}

/// Plays the rounds of a league.
pub struct RoundLoop<'a> {
    manager: &'a Manager,
    cursor: NotificationCursor,
    /// The open round; 0 if there is none.
    round: u32,
    /// When the matches of the open round may begin; none until they are assigned.
    starts_at: Option<Deadline>,
    /// When matches were last assigned.
    assigned_at: Instant,
    /// When each referee must have reported all its matches.
    deadlines: BTreeMap<String, Deadline>,
    /// The number of events at the last step, and when it last changed.
    events: u64,
    last_event: Instant,
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
            deadlines: BTreeMap::new(),
            events: 0,
            last_event: Instant::now(),
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
            store.wait_for_change(version, STEP_INTERVAL);
        }
    }

    /// Brings the league on as far as it goes now, and publishes what is new.
    fn step(&mut self) {
        // Record what can be decided. A full disk is tried again with the next step.
        let store = &self.manager.store;
        let mut result = Ok(true);
        while let Ok(true) = result {
            result = store.decide(|league| self.next_event(league));
        }

        // Publish what is new.
        let new = store.read(|league| {
            self.publish(league);
            self.update_deadlines(league);
            match result {
                Ok(_) => self.waiting(league),
                Err(error) => Waiting::because(error),
            }
        });

        // Say what the league waits for.
        let before = mem::replace(&mut *lock(&self.manager.waiting), new.clone());
        if new != before {
            store.nudge();
        }
        if new.reason != before.reason
            && let Some(reason) = new.reason
        {
            self.manager.say(Level::Warning, "waiting", &reason);
        }
    }

    /// Decides the next event of the open round: a match of a removed player is recorded, or the
    /// matches that have no available referee are assigned.
    fn next_event(&mut self, league: &League) -> Option<Event> {
        let round = league.open_round()?;
        if round != self.round {
            // A round that has referees since before a restart of the manager has no second lead.
            let is_resumed = league.assigned(round).next().is_some();
            self.round = round;
            self.starts_at = is_resumed.then(|| Deadline::after(Duration::ZERO));
        }

        let walkover = league.walkover(round, Timestamp::now());
        if walkover.is_some() || self.obstacle(league).is_some() {
            return walkover;
        }

        let referees = self.manager.notifier.available_referees(league);
        let digits = self.manager.program.config.system.security.token_length;
        let new_token = |player: &str| token(player, &secret(digits));
        let assignment = league.assign(round, &referees, new_token)?;
        self.warn_of_lost_referees(league, &referees);
        self.starts_at
            .get_or_insert_with(|| Deadline::after(self.manager.lead));
        self.assigned_at = Instant::now();
        self.deadlines.clear();
        Some(assignment)
    }

    /// Returns the reason if no match may begin at present.
    fn obstacle(&self, league: &League) -> Option<&'static str> {
        if league.paused {
            Some(PAUSED)
        } else if self.manager.notifier.available_referees(league).is_empty() {
            Some(NO_REFEREE)
        } else {
            None
        }
    }

    /// Warns of the referees whose matches are assigned to the available ones.
    fn warn_of_lost_referees(&self, league: &League, available: &[String]) {
        for id in league.ids(AgentKind::Referee) {
            let has_matches = league.open_matches_of(&id, self.round).next().is_some();
            if has_matches
                && !available.contains(&id)
                && let Some(reason) = self.manager.notifier.status(&id).referee.problem()
            {
                let text = format!("{id} {reason}; its matches are announced anew");
                self.manager.say(Level::Warning, "referee_lost", &text);
            }
        }
    }

    /// Publishes what is new. Members that are new or must get everything again get fresh queues.
    /// Referees get an announcement when the players have received it and the lead time has passed.
    pub fn publish(&mut self, league: &League) {
        let notifier = &self.manager.notifier;
        let may_tell_referees = self.cursor.referee_announcement == league.announcement_version
            || self.starts_at.as_ref().is_some_and(Deadline::has_passed)
                && self.obstacle(league).is_none()
                && self.have_players_received(league);

        let mut members = Vec::new();
        for member in league.members.values() {
            if notifier.refill(member) {
                let mut cursor = NotificationCursor::before_last_round(league);
                cursor.publish_changes(notifier, league, &[member], may_tell_referees);
            } else {
                members.push(member);
            }
        }
        self.cursor
            .publish_changes(notifier, league, &members, may_tell_referees);
    }

    /// Returns true if all players that answer have received the newest announcement, or have had
    /// enough time.
    fn have_players_received(&self, league: &League) -> bool {
        if self.assigned_at.elapsed() >= PLAYERS_FIRST_TIMEOUT {
            return true;
        }
        let mut members = league.members.values();
        self.cursor.player_announcement == league.announcement_version
            && members.all(|member| {
                member.kind != AgentKind::Player || self.manager.notifier.has_received(&member.id)
            })
    }

    /// Sets a deadline for each referee that has received its matches, and marks those that are
    /// overdue. More matches give a referee more time.
    fn update_deadlines(&mut self, league: &League) {
        let notifier = &self.manager.notifier;
        let config = &self.manager.program.config;
        let game = games::find(&config.league.game_type);
        let match_limit = config.match_limit(game.map_or(1, |game| game.max_turns));

        for referee in league.members(AgentKind::Referee) {
            let id = &referee.id;
            let matches = league.open_matches_of(id, self.round).count() as u32;
            let state = notifier.status(id).referee;
            if matches == 0 || matches!(state, RefereeState::Lost(_) | RefereeState::Refusing(_)) {
                self.deadlines.remove(id);
            } else if let Some(deadline) = self.deadlines.get(id) {
                if deadline.has_passed() {
                    let until = deadline.written;
                    let reason = format!("has not reported all its matches by {until}");
                    notifier.set_referee_state(id, RefereeState::Overdue(reason));
                    self.deadlines.remove(id);
                }
            } else if self.cursor.referee_announcement == league.announcement_version
                && notifier.has_received(id)
            {
                let batches = matches.div_ceil(referee.meta.max_concurrent_matches.unwrap_or(1));
                let deadline = Deadline::after(match_limit * batches);
                self.deadlines.insert(id.clone(), deadline);
                self.last_event = Instant::now();
            }
        }
    }

    /// Returns what the league waits for: until the round can go on, the lead time, or referees.
    fn waiting(&mut self, league: &League) -> Waiting {
        if league.version != self.events {
            self.events = league.version;
            self.last_event = Instant::now();
        }

        if league.open_round().is_none() {
            return Waiting::default();
        }
        if let Some(reason) = self.obstacle(league) {
            return Waiting::because(reason);
        }
        if let Some(starts_at) = &self.starts_at
            && !starts_at.has_passed()
        {
            let (round, time) = (self.round, starts_at.written);
            let reason = format!("round {round} is announced: its matches begin at {time}");
            return Waiting {
                reason: Some(reason),
                next_at: Some(time),
            };
        }

        // After a while, name the referees.
        let mut referees = Vec::new();
        for (id, deadline) in &self.deadlines {
            let mut matches = Vec::new();
            for the_match in league.open_matches_of(id, self.round) {
                let [a, b] = the_match
                    .players
                    .each_ref()
                    .map(|id| league.members[id].name_and_id());
                matches.push(format!("{} of {a} and {b}", the_match.id));
            }
            let (matches, until) = (matches.join(", "), deadline.written);
            referees.push(format!("{id} to report {matches} (until {until})"));
        }
        if referees.is_empty() || self.last_event.elapsed() < SILENCE_TIMEOUT {
            return Waiting::default();
        }
        Waiting::because(format!("waiting for {}", referees.join(" and ")))
    }
}
