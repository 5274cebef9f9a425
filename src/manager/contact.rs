//! The agents as the manager knows them: what each has been told, how its last call went, and until
//! when a referee must report.
//!
//! `next_call` says which call is due and `record` what follows from its result; `check_deadline`
//! marks a referee that is late. They use no clock, lock, thread or network: these are in
//! `contacts.rs`. Nothing of a contact is stored on disk.

use super::league::{League, Member};
use super::notifications::{Notification, Progress, Published};
use crate::json::decode;
use crate::net::call_error::CallError;
use crate::program::attempts::Attempts;
use crate::program::config::SystemFile;
use crate::protocol::{AgentKind, LeagueError};
use crate::values::{MAX_QUOTED_CHARS, Moment, truncate};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;

/// Minimum time between two calls to an agent that registers again and again.
const RESET_INTERVAL: Duration = Duration::from_secs(1);

/// An agent, and what it has been told.
#[derive(Debug, Clone)]
pub struct Contact {
    /// Referee or player.
    pub kind: AgentKind,
    /// How its last calls went.
    pub health: Health,
    /// The time by which a referee must have reported, once it has received its matches.
    pub report_by: Option<Moment>,
    /// The time that it took for its last answer, in milliseconds.
    pub response_ms: Option<u32>,
    /// The number of its registrations since this program started.
    pub registrations: u32,
    /// What it has been told; `None` if it must be told everything that still matters.
    progress: Option<Progress>,
    /// The calls that failed one after the other.
    attempts: Attempts,
    /// The end of the last call; `None` if it must be called now.
    called_at: Option<Moment>,
    /// Interval between pings. Agents that do not answer, and referees while a round is open, are
    /// pinged at the first delay of the retry policy instead.
    ping_interval: Duration,
}

/// How the last calls to an agent went, and so whether a referee may get matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Health {
    /// It answers, or has not been called yet.
    #[default]
    Answering,
    /// All attempts of the last call failed. It answers again after a call that succeeds.
    Failing(CallError),
    /// It answered its matches with an error, for this reason. It is asked again when it registers
    /// or reports a result.
    Refusing(String),
    /// It has not reported in time. It gets matches again when it registers or reports a result.
    Late(String),
}

/// A call to an agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call {
    /// What it is told; `None` if it is only asked whether it answers.
    pub notification: Option<Notification>,
    /// What it has been told before the call.
    before: Progress,
    /// What it has been told when it has received the notification.
    after: Progress,
}

/// What an agent needs next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// This call, now.
    Call(Call),
    /// Nothing for this time.
    Wait(Duration),
}

impl Contact {
    /// Returns an agent that has been told nothing yet.
    pub fn new(kind: AgentKind, system: &SystemFile) -> Contact {
        Contact {
            kind,
            health: Health::Answering,
            report_by: None,
            response_ms: None,
            registrations: 0,
            progress: None,
            attempts: Attempts::new(system.retry_policy),
            called_at: None,
            ping_interval: system.timeouts.ping_interval_sec.0,
        }
    }

    /// Returns the call that is due, or the time until the next one.
    pub fn next_call(&self, published: Published, now: Moment) -> Next {
        let newest = published.to(self.kind);
        let before = self.progress.unwrap_or(newest.before_last_round());
        let lacking = before.next_notification(newest);
        if lacking.is_none() && newest.is_over {
            return Next::Wait(self.ping_interval); // the agents have ended
        }

        let first_delay = self.attempts.first_delay();
        let is_playing = self.kind == AgentKind::Referee && published.players.announcement > 0;
        let interval = if self.attempts.failed > 0 {
            self.attempts.delay().unwrap_or(first_delay)
        } else if self.progress.is_none() {
            RESET_INTERVAL
        } else if lacking.is_some() {
            Duration::ZERO
        } else if is_playing || self.health.error().is_some() {
            first_delay
        } else {
            self.ping_interval
        };

        let due_at = self.called_at.map_or(now, |time| time.plus(interval));
        if !due_at.has_passed(now) {
            return Next::Wait(due_at.time_left(now));
        }
        Next::Call(Call {
            notification: lacking.map(|(notification, _)| notification),
            before,
            after: lacking.map_or(before, |(_, after)| after),
        })
    }

    /// Records that a call is being made. A reset during the call is thus not overlooked.
    pub fn begin(&mut self, call: &Call) {
        self.progress = Some(call.before);
    }

    /// Records the result of a call.
    pub fn record(&mut self, call: &Call, result: &Result<Value, CallError>, now: Moment) {
        self.called_at = Some(now);
        let error = result.as_ref().err();
        self.attempts.failed = match error {
            Some(error) if error.is_retryable() => self.attempts.failed + 1,
            _ => 0,
        };

        // A failure counts after the last attempt. The ping of a player has only one: it may be
        // about to start.
        let has_attempts_left = self.attempts.failed > 0 && self.attempts.delay().is_some();
        let is_ping_of_player = self.kind == AgentKind::Player && call.notification.is_none();
        if has_attempts_left && !is_ping_of_player {
            return;
        }

        if let Some(progress) = &mut self.progress
            && call.notification.is_none_or(|told| told.is_received(error))
        {
            *progress = call.after;
        }

        // A referee that is back may have been restarted, or may have missed its matches.
        let could_play = self.health.may_play();
        self.health = self.next_health(call, result);
        if self.kind == AgentKind::Referee && !could_play && self.health.may_play() {
            self.progress = None;
            self.called_at = None;
        }
    }

    /// Returns the health after a call with this result.
    fn next_health(&self, call: &Call, result: &Result<Value, CallError>) -> Health {
        let is_assignment = self.kind == AgentKind::Referee
            && matches!(call.notification, Some(Notification::Announcement(_)));
        if is_assignment && let Some(reason) = refusal_reason(result) {
            return Health::Refusing(format!("{reason}, so it refuses its matches"));
        }

        match (result, &self.health) {
            // It answers. A JSON-RPC error is an answer.
            (Ok(_) | Err(CallError::JsonRpc(..)), Health::Failing(_)) => Health::Answering,
            (Ok(_) | Err(CallError::JsonRpc(..)), other) => other.clone(),
            // A failure of our own machine says nothing about the agent.
            (Err(CallError::Local(_)), other) => other.clone(),
            (Err(error), _) => Health::Failing(error.clone()),
        }
    }

    /// Gives a referee that has received its matches a deadline, and marks it as late when that has
    /// passed. `time_limit` is the longest time that its open matches can take; zero if it has none.
    pub fn check_deadline(&mut self, time_limit: Duration, published: Published, now: Moment) {
        let is_awaited = self.health.may_play() || self.health.is_late();
        let is_announced = published.referees.announcement == published.players.announcement;
        match self.report_by {
            _ if time_limit.is_zero() || !is_awaited => self.report_by = None,
            None if is_announced && self.has_received(published) => {
                self.report_by = Some(now.plus(time_limit));
            }
            // It gets its matches again, if no other referee can get them.
            Some(deadline) if deadline.has_passed(now) => {
                let time = deadline.timestamp.time_of_day();
                self.health = Health::Late(format!("has not reported all its matches by {time}"));
                self.report_by = None;
                self.reset();
            }
            _ => {}
        }
    }

    /// Records that the agent is there, since it has registered or reported: it may get matches, and
    /// gets everything again that still matters.
    pub fn revive(&mut self) {
        self.health = Health::Answering;
        self.reset();
    }

    /// Lets the agent be told everything again that still matters.
    pub fn reset(&mut self) {
        self.progress = None;
        self.attempts.failed = 0;
    }

    /// Returns true if the agent must be told everything again that still matters.
    pub fn is_reset(&self) -> bool {
        self.progress.is_none()
    }

    /// Returns true if the agent has received all that is published.
    pub fn has_received(&self, published: Published) -> bool {
        let newest = published.to(self.kind);
        let progress = self.progress;
        progress.is_some_and(|progress| progress.next_notification(newest).is_none())
    }

    /// Returns true if nobody need wait for the agent: it has received all, or does not answer.
    pub fn is_settled(&self, published: Published) -> bool {
        self.health.error().is_some() || self.has_received(published)
    }

    /// Returns true if no program answers at its port, in all attempts of the retry policy.
    pub fn is_gone(&self) -> bool {
        self.health.error().is_some_and(CallError::is_refused) && self.attempts.delay().is_none()
    }
}

impl Health {
    /// Returns true if a referee may get matches: it answers, be it wrongly.
    pub fn may_play(&self) -> bool {
        match self {
            Health::Answering => true,
            Health::Failing(error) => !error.is_silence(),
            Health::Refusing(_) | Health::Late(_) => false,
        }
    }

    /// Returns true if a referee has not reported in time.
    pub fn is_late(&self) -> bool {
        matches!(self, Health::Late(_))
    }

    /// Returns the reason why the last call failed.
    pub fn error(&self) -> Option<&CallError> {
        match self {
            Health::Failing(error) => Some(error),
            _ => None,
        }
    }

    /// Returns what is wrong with an agent: the rest of a sentence after its id.
    pub fn problem(&self) -> String {
        match self {
            Health::Answering => "answers again".into(),
            Health::Failing(error) => error.explain(),
            Health::Refusing(reason) | Health::Late(reason) => reason.clone(),
        }
    }
}

/// All members, and what may be told to them.
pub struct Table {
    /// What may be told now.
    pub published: Published,
    /// The members, by id.
    pub contacts: BTreeMap<String, Contact>,
}

impl Table {
    /// Returns the members of a league.
    pub fn new(league: &League) -> Table {
        let mut table = Table {
            published: Published {
                players: league.newest().before_last_round(),
                referees: Progress::default(),
            },
            contacts: BTreeMap::new(),
        };
        for member in league.members.values() {
            table.contact(member, &league.config.system);
        }
        table
    }

    /// Returns a member, which is new if it is not known.
    fn contact(&mut self, member: &Member, system: &SystemFile) -> &mut Contact {
        let contact = self.contacts.entry(member.id.clone());
        contact.or_insert_with(|| Contact::new(member.kind, system))
    }

    /// Records that an agent has registered, perhaps again.
    pub fn record_registration(&mut self, member: &Member, system: &SystemFile) {
        let contact = self.contact(member, system);
        contact.registrations += 1;
        contact.revive();
    }

    /// Records that a referee has reported a result.
    pub fn record_report(&mut self, id: &str) {
        if let Some(contact) = self.contacts.get_mut(id)
            && !contact.health.may_play()
        {
            contact.revive();
        }
    }

    /// Lets an agent be told everything again that still matters, or be pinged.
    pub fn resend(&mut self, id: &str) {
        if let Some(contact) = self.contacts.get_mut(id) {
            contact.reset();
        }
    }

    /// Lets agents be told what is new, and checks the deadlines of the referees. Returns what might
    /// be told before.
    pub fn publish(&mut self, league: &League, newest: Published, now: Moment) -> Published {
        let before = mem::replace(&mut self.published, newest);
        for (id, contact) in &mut self.contacts {
            let kind = contact.kind;
            if newest.to(kind).is_over && !before.to(kind).is_over {
                contact.attempts.failed = 0; // the end gets all attempts of the retry policy
            }
            if kind == AgentKind::Referee
                && let Some(member) = league.members.get(id)
            {
                contact.check_deadline(league.time_limit(member), newest, now);
            }
        }
        before
    }

    /// Lets the time limits of all referees begin again, since they get other matches.
    pub fn clear_deadlines(&mut self) {
        for contact in self.contacts.values_mut() {
            contact.report_by = None;
        }
    }

    /// Returns the number of registrations of an agent since this program started.
    pub fn registrations(&self, id: &str) -> u32 {
        self.contacts
            .get(id)
            .map_or(0, |contact| contact.registrations)
    }

    /// Returns the referees of a league, sorted.
    pub fn referees(&self, league: &League) -> Vec<(String, Contact)> {
        let mut referees = Vec::new();
        for id in league.ids(AgentKind::Referee) {
            let known = self.contacts.get(&id).cloned();
            // Its registration is about to be recorded.
            let new = || Contact::new(AgentKind::Referee, &league.config.system);
            referees.push((id, known.unwrap_or_else(new)));
        }
        referees
    }

    /// Returns the ids of the agents whose last call failed.
    pub fn unreachable(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for (id, contact) in &self.contacts {
            if contact.health.error().is_some() {
                ids.insert(id.clone());
            }
        }
        ids
    }

    /// Returns true if all agents of a kind have received everything, or do not answer.
    pub fn are_settled(&self, kind: AgentKind) -> bool {
        let mut contacts = self.contacts.values();
        contacts.all(|contact| contact.kind != kind || contact.is_settled(self.published))
    }

    /// Returns true if nothing is left to be sent. At the end of the league, the agents at whose
    /// ports no program answers get all attempts of the retry policy, and no more.
    pub fn is_done(&self) -> bool {
        let published = self.published;
        let mut contacts = self.contacts.values();
        published.players.is_over == published.referees.is_over
            && contacts.all(|contact| contact.is_gone() || contact.has_received(published))
    }
}

/// Returns the referees that may get matches: those that are there or, if there are none, those that
/// are late.
pub fn available(referees: &[(String, Contact)]) -> Vec<String> {
    for is_available in [Health::may_play, Health::is_late] {
        let mut ids = Vec::new();
        for (id, contact) in referees {
            if is_available(&contact.health) {
                ids.push(id.clone());
            }
        }
        if !ids.is_empty() {
            return ids;
        }
    }
    Vec::new()
}

/// Returns the reason for which a referee refuses its matches, if its answer to an announcement is
/// an error.
fn refusal_reason(result: &Result<Value, CallError>) -> Option<String> {
    let answer = match result {
        Ok(answer) => answer,
        Err(error @ (CallError::JsonRpc(..) | CallError::HttpStatus(..))) => {
            return Some(error.explain());
        }
        Err(_) => return None,
    };

    let name = answer["message_type"].as_str()?;
    if !name.ends_with("_ERROR") {
        return None;
    }

    // A GAME_ERROR has the same fields.
    let reason = decode::<LeagueError>(answer).map(|error| error.explain());
    let text = format!("answered {name} {}", reason.unwrap_or_default());
    Some(truncate(&text, MAX_QUOTED_CHARS))
}
