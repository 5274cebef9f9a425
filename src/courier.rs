//! One ordered queue and one thread per agent: notices arrive in the order in which they were written, and a slow
//! or dead agent delays nobody else (R9).

use crate::{
    config::RetryPolicy,
    endpoint::Endpoint,
    failure::{Failure, pause, retry},
    http::Trouble,
    journal::Record,
    league::Member,
    liveness::Heard,
    log::{Level, Line},
    protocol::{Code, Kind, MatchEntry, Message, RoundAnnouncement, StartMatch},
    threads::{lock, spawn},
    voice::{About, MAX_NOTICE, Peer, Voice, ok},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

/// How couriers reach agents.
pub struct Route {
    /// Where endpoints and tokens stand.
    pub record: Arc<Record>,
    /// Who speaks.
    pub voice: Arc<Voice>,
    /// How often a delivery is tried.
    pub policy: RetryPolicy,
    /// How long one attempt may take.
    pub limit: Duration,
}

/// All couriers.
pub struct Couriers {
    route: Arc<Route>,
    all: Mutex<BTreeMap<String, Arc<Courier>>>,
}

struct Courier {
    id: String,
    queue: Mutex<VecDeque<Job>>,
    bell: Condvar,
    heard: Mutex<Heard>,
    /// The last delivery failed.
    failing: AtomicBool,
}

enum Job {
    /// A message, what it is about, and the end of a line that breaks when the message is out, or dropped.
    Notice(Box<Message>, About, Sender<()>),
    Ping,
}

impl Couriers {
    /// No couriers yet.
    pub fn new(route: Route) -> Couriers {
        Couriers { route: Arc::new(route), all: Mutex::default() }
    }

    fn courier(&self, id: &str) -> Arc<Courier> {
        let mut all = lock(&self.all);
        if let Some(known) = all.get(id) {
            return Arc::clone(known);
        }
        let courier = Arc::new(Courier {
            id: id.into(),
            queue: Mutex::default(),
            bell: Condvar::new(),
            heard: Mutex::default(),
            failing: AtomicBool::new(false),
        });
        let (route, here) = (Arc::clone(&self.route), Arc::clone(&courier));
        if spawn("courier", move || here.work(&route)) {
            all.insert(id.into(), Arc::clone(&courier));
        } // else: tried again with the next notice
        courier
    }

    /// Sends one message to many, each its own copy. What comes back breaks off when all copies are out.
    pub fn post(&self, notices: Vec<(String, Message)>, about: &About) -> Receiver<()> {
        let (line, out) = channel();
        if let Some((_, message)) = notices.first() {
            let packet = self.route.voice.write(message, about);
            let recipients = Some(notices.len());
            self.route.voice.note("message_sent", &packet, Line { recipients, ..Line::default() });
        }
        for (id, message) in notices {
            let courier = self.courier(&id);
            let mut queue = lock(&courier.queue);
            queue.retain(|job| !matches!(job, Job::Notice(old, ..) if is_outdated(old, &message)));
            queue.push_back(Job::Notice(Box::new(message), about.clone(), line.clone()));
            courier.bell.notify_one();
        }
        out
    }

    /// Asks an agent whether it is there, unless it is being told something anyway.
    pub fn ping(&self, id: &str) {
        let courier = self.courier(id);
        let mut queue = lock(&courier.queue);
        if queue.is_empty() {
            queue.push_back(Job::Ping);
            courier.bell.notify_one();
        }
    }

    /// What was last heard of an agent.
    pub fn heard(&self, id: &str) -> Heard {
        *lock(&self.courier(id).heard)
    }
}

impl Courier {
    /// Does one job after the other, for ever.
    fn work(&self, route: &Route) {
        loop {
            let queue = self.bell.wait_while(lock(&self.queue), |queue| queue.is_empty());
            let job = queue.unwrap_or_else(PoisonError::into_inner).pop_front();
            let done = panic::catch_unwind(AssertUnwindSafe(|| job.map(|job| self.deliver(route, job))));
            drop(done); // a panic is reported by the hook, and the next job is taken
        }
    }

    /// Does a job, and notes whether the agent answers.
    fn deliver(&self, route: &Route, job: Job) {
        let result = match job {
            Job::Ping => self.ask(route, |to, member| route.voice.ping(to, &member.token, route.limit)),
            Job::Notice(message, about, _line) => self.tell(route, &message, &about),
        };
        self.hear(&result);
    }

    /// Asks the agent as it is registered at this moment: it may have moved, or got a new token, since the last time.
    fn ask<T: Default>(
        &self,
        route: &Route,
        ask: impl FnOnce(Peer, &Member) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let member = route.record.read(|league| league.members.get(&self.id).cloned());
        let to = |member: &Member| ask(Peer { name: &self.id, endpoint: &member.endpoint, max: MAX_NOTICE }, member);
        member.as_ref().map_or(Ok(T::default()), to)
    }

    /// Delivers a notice, as often as it is worth it.
    fn tell(&self, route: &Route, message: &Message, about: &About) -> Result<(), Failure> {
        // Whoever did not answer last time gets one attempt, until it answers: a dead agent must not pile up work.
        let last = matches!(message, Message::LeagueCompleted(_));
        let patient = last || !is_table(message) && !self.failing.load(Ordering::SeqCst);
        let is_referee =
            route.record.read(|league| league.members.get(&self.id).map(|it| it.kind)) == Some(Kind::Referee);
        let again = |failure: &Failure| {
            // That a referee is gone is the round loop's business at once.
            let gone = is_referee && !last && failure.code() == Code::E009 && !failure.is_ours();
            patient && failure.is_trouble() && !is_taken(failure) && !gone
        };
        retry(&route.policy, pause, again, || {
            self.ask(route, |to, member| self.attempt(route, to, member, message, about))
        })
    }

    /// One attempt. What is answered is logged; only to an assignment does it matter (R1, R6).
    fn attempt(
        &self,
        route: &Route,
        to: Peer,
        member: &Member,
        message: &Message,
        about: &About,
    ) -> Result<(), Failure> {
        let about = About { auth_token: Some(member.token.clone()), ..about.clone() };
        let packet = route.voice.write(message, &about);
        let mut result = route.voice.send(to, message.tool(), &packet, route.limit).map(|(result, _)| result);
        if let (Message::RoundAnnouncement(announcement), Kind::Referee) = (message, member.kind) {
            if matches!(result, Err(Failure::Rpc(-32601, _))) {
                result = start_matches(route, to, announcement, &about);
            }
            let refused = result.as_ref().map_or_else(is_refusal, is_error);
            lock(&self.heard).refused = refused.then_some(member.registrations);
            if refused {
                let why = result.as_ref().err().map_or("answered with an error".into(), Failure::explain);
                route.voice.log.say(Level::Warning, "assignment_refused", format!("{}: {why}", self.id));
            }
        }
        if let Some(answer) = result.as_ref().ok().filter(|answer| **answer != ok()) {
            let level = if is_error(answer) { Level::Warning } else { Level::Info };
            let line = Line { level, peer: Some(&self.id), message: answer.clone(), ..Line::default() };
            route.voice.note("notice_answered", &packet, line);
        }
        result.map(drop)
    }

    /// Notes whether the agent answered, for the next delivery and for the round loop.
    fn hear(&self, result: &Result<(), Failure>) {
        self.failing.store(result.as_ref().is_err_and(Failure::is_trouble), Ordering::SeqCst);
        if !result.as_ref().is_err_and(Failure::is_ours) {
            lock(&self.heard).unreachable = result.as_ref().is_err_and(Failure::is_absence);
        }
    }
}

/// Whether a notice that still waits need not be sent any more: a newer table is there, or the end; or the same round
/// is announced anew.
fn is_outdated(old: &Message, new: &Message) -> bool {
    match (old, new) {
        (Message::LeagueStandingsUpdate(_), Message::LeagueStandingsUpdate(_) | Message::LeagueCompleted(_)) => true,
        (Message::RoundAnnouncement(old), Message::RoundAnnouncement(new)) => old.round_id == new.round_id,
        _ => false,
    }
}

fn is_table(message: &Message) -> bool {
    matches!(message, Message::LeagueStandingsUpdate(_))
}

/// Whether it was taken, though not answered as JSON-RPC has it: 202 and its like.
fn is_taken(failure: &Failure) -> bool {
    matches!(failure, Failure::Trouble(Trouble::Status(200..=299)))
}

/// Whether somebody is there and does not want what was sent: it answers with an error. Whatever else it answers
/// changes nothing (R1).
fn is_refusal(failure: &Failure) -> bool {
    matches!(failure, Failure::Rpc(..) | Failure::Trouble(Trouble::Status(_))) && !is_taken(failure)
}

fn is_error(result: &Value) -> bool {
    matches!(result.get("message_type").and_then(Value::as_str), Some(name) if name.ends_with("_ERROR"))
}

/// Hands matches over one by one to a referee that knows no ROUND_ANNOUNCEMENT (R1).
fn start_matches(route: &Route, to: Peer, announcement: &RoundAnnouncement, about: &About) -> Result<Value, Failure> {
    let own = |entry: &&MatchEntry| Endpoint::same(&entry.referee_endpoint, to.endpoint);
    let mut answer = Ok(Value::Null);
    for entry in announcement.matches.iter().filter(own) {
        let order = StartMatch {
            league_id: announcement.league_id.clone(),
            round_id: announcement.round_id,
            r#match: entry.clone(),
            auth_token: about.auth_token.clone(),
        };
        let packet = serde_json::to_value(order).ok().and_then(|order| order.as_object().cloned()).unwrap_or_default();
        answer = route.voice.send(to, "start_match", &packet, route.limit).map(|(result, _)| result);
        if answer.as_ref().is_ok_and(is_error) || answer.is_err() {
            break;
        }
    }
    answer
}
