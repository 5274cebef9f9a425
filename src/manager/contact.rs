//! The agents as the manager knows them: what each has been told, how its last call went, and until
//! when a referee must report.
//!
//! `next_call` says which call is due and `record` what follows from its result; `check_deadline`
//! marks a referee that is late. They use no clock, lock, thread or network: these are in
//! `contacts.rs`. Nothing of a contact is stored on disk.

use super::league::{League, Match, MatchAssignment, Member, Recorded};
use super::notifications::{Notification, Progress, Published};
use super::rounds::Pace;
use crate::games::result_status;
use crate::json::decode;
use crate::net::call_error::CallError;
use crate::program::attempts::Attempts;
use crate::program::config::SystemFile;
use crate::protocol::{AgentKind, ErrorCode, LeagueError, ProtocolError, ResultStatus};
use crate::values::{MAX_QUOTED_CHARS, Moment, truncate};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Minimum time between two resets of an agent that registers again and again.
const RESET_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of concessions to an agent in a round: nobody delays a league without end.
const MAX_CONCESSIONS: u32 = 3;

/// An agent, and what it has been told.
#[derive(Clone)]
pub struct Contact {
    /// Referee or player.
    pub kind: AgentKind,
    /// How its last calls went.
    pub health: Health,
    /// The time by which a referee must have reported, once it has received its matches.
    pub report_by: Option<Moment>,
    /// The number of its registrations since this program started.
    registrations: u32,
    /// What it has been told; `None` if it must be told everything that still matters.
    progress: Option<Progress>,
    /// The calls that failed one after the other.
    attempts: Attempts,
    /// The end of the last call.
    called_at: Option<Moment>,
    /// The time of the last reset, or of the next one.
    reset_at: Option<Moment>,
    /// Interval between pings. Agents that do not answer, and referees while a round is open, are
    /// pinged at the first delay of the retry policy instead.
    ping_interval: Duration,
}

/// How the last calls to an agent went, and so whether a referee may get matches.
#[derive(Clone, PartialEq)]
pub enum Health {
    /// It answers, or has not been called yet.
    Answering,
    /// All attempts of the last call failed. It answers again after a call that succeeds.
    Failing(CallError),
    /// It answered its matches with an error, for this reason. It is asked again when it registers
    /// or reports a result.
    Refusing(String),
    /// It has not reported in time. It gets matches again when it registers or reports a result, or
    /// when no other referee is left.
    Late(String),
}

/// A call to an agent.
#[derive(Clone, Copy)]
pub struct Call {
    /// What it is told; `None` if it is only asked whether it answers.
    pub notification: Option<Notification>,
    /// What it has been told before the call.
    before: Progress,
    /// What it has been told when it has received the notification.
    after: Progress,
}

/// What an agent needs next.
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
            registrations: 0,
            progress: None,
            attempts: Attempts::new(system.retry_policy),
            called_at: None,
            reset_at: None,
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
        } else if lacking.is_some() {
            Duration::ZERO
        } else if is_playing || self.health.error().is_some() {
            first_delay
        } else {
            self.ping_interval
        };

        let due_at = match self.progress {
            Some(_) => self.called_at.map(|time| time.plus(interval)),
            None => self.reset_at,
        };
        let due_at = due_at.unwrap_or(now);
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

    /// Records the result of a call. After a reset during the call, only its time counts.
    pub fn record(&mut self, call: &Call, result: &Result<Value, CallError>, now: Moment) {
        self.called_at = Some(now);
        if self.is_reset() {
            return;
        }

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

        if call.notification.is_none_or(|told| told.is_received(error)) {
            self.progress = Some(call.after);
        }

        // A referee that is back may have been restarted, or may have missed its matches.
        let could_play = self.health.may_play();
        self.health = self.next_health(call, result);
        if self.kind == AgentKind::Referee && !could_play && self.health.may_play() {
            self.progress = None;
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
            // No call shows that it plays its matches.
            (_, Health::Refusing(_) | Health::Late(_)) => self.health.clone(),
            // A JSON-RPC error is an answer.
            (Ok(_) | Err(CallError::JsonRpc(..)), _) => Health::Answering,
            // A failure of our own machine says nothing about the agent.
            (Err(CallError::Local(_)), health) => health.clone(),
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
                self.reset(now);
            }
            _ => {}
        }
    }

    /// Records that the agent is there, since it has registered or reported: it may get matches, and
    /// gets everything again that still matters.
    fn revive(&mut self, now: Moment) {
        self.health = Health::Answering;
        self.reset(now);
    }

    /// Lets the agent be told everything again that still matters: at once, unless that was so a
    /// moment ago.
    fn reset(&mut self, now: Moment) {
        self.progress = None;
        self.attempts.failed = 0;
        if self.reset_at.is_none_or(|last| last.has_passed(now)) {
            let next = self.reset_at.map(|last| last.plus(RESET_INTERVAL));
            self.reset_at = next.max(Some(now));
        }
    }

    /// Returns true if the agent has been called since this program started.
    pub fn was_called(&self) -> bool {
        self.called_at.is_some()
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

    /// Returns true if the agent answers, or has not been called yet.
    pub fn answers(&self) -> bool {
        self.health.error().is_none() && !self.has_failed()
    }

    /// Returns true if all attempts of the last call failed.
    fn has_failed(&self) -> bool {
        self.attempts.delay().is_none()
    }

    /// Returns true if no program answers at its port, in all attempts of the retry policy.
    pub fn is_gone(&self) -> bool {
        self.health.error().is_some_and(CallError::is_refused) && self.has_failed()
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
    /// The time limits and the retry policy.
    system: SystemFile,
    /// What may be told now.
    pub published: Published,
    /// The time since which it may be told.
    pub published_at: Moment,
    /// The times by which the league is played.
    pub pace: Pace,
    /// The members, by id.
    pub contacts: BTreeMap<String, Contact>,
    /// For each agent, the number of technical losses in this round that did not count, since its
    /// announcement had not reached it, and of its registrations after the end.
    concessions: BTreeMap<String, u32>,
    /// The matches of which a player had not been told when the referees were.
    unaware: BTreeSet<String>,
    /// The matches that must be announced again, since such a player has failed.
    pub unannounced: BTreeSet<String>,
    /// The conversations of the technical losses that were refused for that.
    refused: BTreeSet<String>,
    /// The reason why the last event could not be stored.
    pub fault: Option<String>,
    /// What the league was last said to wait for.
    pub said: Option<String>,
    /// The numbers of players and referees that start the league.
    pub automatic_start: Option<(u32, u32)>,
}

impl Table {
    /// Returns the members of a league that goes on now.
    pub fn new(league: &League, now: Moment) -> Table {
        let mut table = Table {
            system: league.config.system.clone(),
            published: Published {
                players: league.newest().before_last_round(),
                referees: Progress::default(),
            },
            published_at: now,
            pace: Pace::default(),
            contacts: BTreeMap::new(),
            concessions: BTreeMap::new(),
            unaware: BTreeSet::new(),
            unannounced: BTreeSet::new(),
            refused: BTreeSet::new(),
            fault: None,
            said: None,
            automatic_start: None,
        };
        for member in league.members.values() {
            table.contact(member);
        }
        // Before a restart they may not have been told.
        table.note_unaware_players(league);
        table
    }

    /// Returns a member, which is new if it is not known.
    fn contact(&mut self, member: &Member) -> &mut Contact {
        let contact = self.contacts.entry(member.id.clone());
        contact.or_insert_with(|| Contact::new(member.kind, &self.system))
    }

    /// Records that an agent has registered, perhaps again.
    pub fn record_registration(&mut self, member: &Member, now: Moment) {
        let may_revive = !self.published.to(member.kind).is_over || self.concede(&member.id);
        let contact = self.contact(member);
        contact.registrations += 1;
        if may_revive {
            contact.revive(now);
        }
    }

    /// Returns true if one more concession may be made to an agent in this round, and counts it.
    fn concede(&mut self, id: &str) -> bool {
        let count = self.concessions.entry(id.into()).or_default();
        *count += 1;
        *count <= MAX_CONCESSIONS
    }

    /// Records that a referee has reported a result.
    pub fn record_report(&mut self, id: &str, now: Moment) {
        if let Some(contact) = self.contacts.get_mut(id)
            && !contact.health.may_play()
        {
            contact.revive(now);
        }
    }

    /// Refuses the technical loss of a player that was told of its match too late: that must be
    /// announced again. The same report may come once more, before or after it is. A match that is
    /// played again has another conversation, so that the new report differs. A player whose calls fail
    /// in all attempts counts as told. A referee that has not received the last announcement has judged
    /// by an older one.
    pub fn check_loser(
        &mut self,
        the_match: &Match,
        new: &Recorded,
        conversation: &str,
    ) -> Result<(), ProtocolError> {
        let is_loss = result_status(&new.result) == ResultStatus::TechnicalLoss;
        let id = &the_match.id;
        if is_loss && the_match.assignments.len() > 1 && self.lacks(&new.referee_id, the_match) {
            let problem = format!("{id} has been announced again since");
            return Err(ProtocolError::mismatch("match_id", problem));
        }

        for player in &the_match.players {
            if is_loss
                && new.result.winner.as_ref() != Some(player)
                && let Some(contact) = self.contacts.get(player)
                && (self.unaware.contains(id)
                    || self.lacks(player, the_match)
                    || self.refused.contains(conversation))
                && !contact.has_failed()
                && (self.unannounced.contains(id) || self.concede(player))
            {
                if self.unannounced.insert(id.clone()) {
                    self.refused.insert(conversation.into());
                }
                let problem =
                    format!("{player} was not told of {id} in time: it is announced again");
                return Err(ProtocolError::mismatch("match_id", problem));
            }
        }
        Ok(())
    }

    /// Returns true if a member has not been told of a match with its newest tokens.
    fn lacks(&self, id: &str, the_match: &Match) -> bool {
        self.contacts.get(id).is_some_and(|contact| {
            contact.progress.unwrap_or_default().announcement < the_match.announcement
        })
    }

    /// Notes the matches of which a player has not been told, while the referees are told.
    fn note_unaware_players(&mut self, league: &League) {
        for (the_match, _) in league.assigned_matches(league.open_round().unwrap_or(0)) {
            let mut players = the_match.players.iter();
            if players.any(|id| self.lacks(id, the_match)) {
                self.unaware.insert(the_match.id.clone());
            }
        }
    }

    /// Lets an agent be told everything again that still matters, or be pinged.
    pub fn resend(&mut self, id: &str, now: Moment) {
        if let Some(contact) = self.contacts.get_mut(id) {
            contact.reset(now);
        }
    }

    /// Lets agents be told what is new, and checks the deadlines of the referees. Returns what might
    /// be told before.
    pub fn publish(&mut self, league: &League, may_begin: bool, now: Moment) -> Published {
        let before = self.published;
        let newest = self.publishable(league, may_begin, now);
        if newest != before {
            self.published = newest;
            self.published_at = now;
        }
        if newest.referees.announcement > before.referees.announcement {
            self.note_unaware_players(league);
        }

        let [old, new] = [before, newest].map(Published::to_any);
        if (old.rounds, old.is_over) != (new.rounds, new.is_over) {
            self.concessions.clear();
        }
        for (id, contact) in &mut self.contacts {
            let kind = contact.kind;
            let [old, new] = [before, newest].map(|published| published.to(kind));
            if new.is_over && !old.is_over {
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

    /// Records that matches were given to referees after the lead time `lead`. The time limits of
    /// all referees begin again, since they get other matches.
    pub fn record_assignment(&mut self, given: &[MatchAssignment], lead: Duration, now: Moment) {
        self.pace.assign(lead, now);
        for assignment in given {
            self.unannounced.remove(&assignment.match_id);
            self.unaware.remove(&assignment.match_id);
        }
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

    /// Returns the referees that may get matches, sorted: those that are there or, if there are
    /// none, those that are late but answer. One that is not known yet is there: its registration is
    /// about to be recorded.
    pub fn available_referees(&self, league: &League) -> Vec<String> {
        for with_late in [false, true] {
            let mut ids = league.ids(AgentKind::Referee);
            ids.retain(|id| {
                self.contacts.get(id).is_none_or(|contact| {
                    let is_late = contact.health.is_late() && contact.answers();
                    contact.health.may_play() || with_late && is_late
                })
            });
            if !ids.is_empty() {
                return ids;
            }
        }
        Vec::new()
    }

    /// Returns true if an agent answers, or has not been called yet.
    pub fn answers(&self, id: &str) -> bool {
        self.contacts.get(id).is_none_or(Contact::answers)
    }

    /// Returns true if all agents of a kind have received everything, or do not answer.
    pub fn are_settled(&self, kind: AgentKind) -> bool {
        let mut awaited = self.contacts.values().filter(|contact| contact.answers());
        awaited.all(|contact| contact.kind != kind || contact.has_received(self.published))
    }

    /// Returns true if the manager may end: each agent has the end of the league, or all attempts
    /// have failed since it was published. They go on for the time `limit`, except at a port at
    /// which no program answers.
    pub fn may_end(&self, limit: Duration, now: Moment) -> bool {
        let published = self.published;
        let is_time_over = self.published_at.plus(limit).has_passed(now);
        let mut contacts = self.contacts.values();
        published.players.is_over == published.referees.is_over
            && contacts.all(|contact| {
                let is_given_up = contact.is_gone() || is_time_over && contact.has_failed();
                is_given_up || contact.has_received(published)
            })
    }

    /// Returns a warning for each referee whose matches are assigned to the available ones.
    pub fn lost_referee_warnings(&self, league: &League) -> Vec<String> {
        let available = self.available_referees(league);
        let mut warnings = Vec::new();
        for id in league.ids(AgentKind::Referee) {
            let mut matches = league.open_matches_of(&id);
            if !available.contains(&id) && matches.next().is_some() {
                let problem = self.problem_of(&id, league);
                warnings.push(format!("{problem}; its matches are announced again"));
            }
        }
        warnings
    }

    /// Returns the reports that the league waits for.
    pub fn awaited_reports(&self, league: &League) -> Option<String> {
        let mut awaited = Vec::new();
        for id in league.ids(AgentKind::Referee) {
            let contact = self.contacts.get(&id);
            let Some(deadline) = contact.and_then(|contact| contact.report_by) else {
                continue;
            };
            let mut matches = Vec::new();
            for the_match in league.open_matches_of(&id) {
                let [a, b] = (the_match.players.each_ref()).map(|id| league.name_and_id(id));
                matches.push(format!("{} of {a} and {b}", the_match.id));
            }

            let (referee, matches) = (league.name_and_id(&id), matches.join(", "));
            let until = deadline.timestamp.time_of_day();
            awaited.push(format!("{referee} to report {matches} (until {until})"));
        }
        (!awaited.is_empty()).then(|| format!("waiting for {}", awaited.join(" and ")))
    }

    /// Returns what is wrong with a referee, after its name.
    pub fn problem_of(&self, id: &str, league: &League) -> String {
        let contact = self.contacts.get(id);
        let problem = contact.map_or_else(String::new, |contact| contact.health.problem());
        format!("{} {problem}", league.name_and_id(id))
    }
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
    let error = decode::<LeagueError>(answer);
    if matches!(&error, Ok(error) if error.error_code == ErrorCode::PlayerNotRegistered) {
        return None; // the answer to its registration is on its way
    }
    let reason = error.map(|error| error.explain());
    let text = format!("answered {name} {}", reason.unwrap_or_default());
    Some(truncate(&text, MAX_QUOTED_CHARS))
}
