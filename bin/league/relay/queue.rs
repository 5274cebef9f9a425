//! The requests of one relay: they wait for a poll of the player, and then for its answer.
//!
//! A poll takes one request, so that a player with several threads works on several at once. The
//! newest poll gets the next request: the connection of an older one may be gone. A request that
//! has no answer after a while is handed out once more, to a poll that does not know its number.

use league::net::http::{OK, Response};
use league::net::log::to_json;
use league::net::sync::Shared;
use league::protocol::{JsonObject, LeagueCompleted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum time that a poll waits, in seconds.
const MAX_WAIT_SEC: f64 = 25.0;
/// Maximum number of polls of one relay that wait at once.
const MAX_POLLS: usize = 3;
/// The time without a poll after which the player has gone, and the time without an answer after
/// which a request is handed out once more.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// Maximum number of times that a request is handed out.
const MAX_HANDED_OUT: u32 = 2;

/// The arguments of `relay_next`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Poll {
    pub relay_token: String,
    pub wait_sec: Option<f64>,
    pub answers: Option<Vec<Numbered>>,
    /// The numbers of the requests that the player has and has not answered yet.
    pub known: Option<Vec<u64>>,
}

/// A request of a relay, or the answer to it; no body if the player has none.
#[derive(Debug, Serialize, Deserialize)]
pub struct Numbered {
    pub number: u64,
    pub body: Option<JsonObject>,
}

/// The answer of `relay_next`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Requests {
    pub requests: Vec<Numbered>,
}

/// The requests of one relay.
pub struct Queue(Shared<State>);

struct State {
    /// By number, so the oldest first.
    requests: BTreeMap<u64, Waiting>,
    /// The polls that wait, the oldest first.
    polls: Vec<u64>,
    polled_at: Instant,
    /// The next number of a request or a poll. An answer from before a restart of the manager must
    /// not fit a request after it, so the first one is random.
    next_number: u64,
}

/// A request without an answer, or one whose answer is about to be sent.
struct Waiting {
    body: JsonObject,
    handed_out: u32,
    handed_out_at: Instant,
    /// The answer, once it is there; it may have no body.
    answer: Option<Option<JsonObject>>,
}

impl Queue {
    /// Returns an empty queue.
    pub fn new() -> Queue {
        Queue(Shared::new(State {
            requests: BTreeMap::new(),
            polls: Vec::new(),
            polled_at: Instant::now(),
            next_number: fastrand::u32(..).into(),
        }))
    }

    /// Takes the answers of a poll, and waits for a request.
    pub fn poll(&self, poll: Poll) -> Requests {
        let began = Instant::now();
        let known = poll.known.unwrap_or_default();
        let wait_sec = poll.wait_sec.unwrap_or(MAX_WAIT_SEC);
        let timeout = Duration::from_secs_f64(wait_sec.clamp(0.0, MAX_WAIT_SEC));

        let answers = poll.answers.unwrap_or_default();
        let id = self.0.update(|state| state.begin_poll(answers));
        drop(self.0.wait_until(timeout, |state| {
            let is_newest = state.polls.last() == Some(&id);
            !state.polls.contains(&id) || is_newest && state.next(began, &known).is_some()
        }));
        let request = self.0.update(|state| state.end_poll(id, began, &known));
        let requests = request.into_iter().collect();
        Requests { requests }
    }

    /// Passes a request on, and waits for the answer until `timeout` is over.
    pub fn request(&self, body: JsonObject, timeout: Duration) -> Response {
        let Some(number) = self.0.update(|state| state.add(body)) else {
            return unavailable();
        };

        let is_answered = |state: &State| state.requests[&number].answer.is_some();
        let silence = MAX_SILENCE.min(timeout);
        let state = self.0.wait_until(silence, is_answered);
        let is_gone = state.requests[&number].handed_out == 0 && state.is_gone();
        drop(state);
        if !is_gone {
            drop(self.0.wait_until(timeout - silence, is_answered));
        }

        let request = self.0.update(|state| state.requests.remove(&number));
        match request.and_then(|request| request.answer) {
            Some(Some(answer)) => Response::new(OK, to_json(&answer)),
            Some(None) => Response::text("502 Bad Gateway", "the player has no answer"),
            None if is_gone => unavailable(),
            None => Response::text("504 Gateway Timeout", "the player has not answered"),
        }
    }

    /// Answers the polls that wait, and hands out again what was handed out to them or before them:
    /// the player has been started again.
    pub fn restart(&self) {
        self.0.update(|state| {
            state.polls.clear();
            state.polled_at = Instant::now();
            for request in state.requests.values_mut() {
                request.handed_out = 0;
            }
        });
    }

    /// Answers the polls that wait.
    pub fn release(&self) {
        self.0.update(|state| state.polls.clear());
    }

    /// Returns the time since the last poll.
    pub fn silence(&self) -> Duration {
        let state = self.0.lock();
        match state.polls.is_empty() {
            true => state.polled_at.elapsed(),
            false => Duration::ZERO,
        }
    }
}

impl State {
    /// Returns a new number.
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Returns true if the player does not poll any more. Then it is not slow, but away.
    fn is_gone(&self) -> bool {
        self.polls.is_empty() && self.polled_at.elapsed() >= MAX_SILENCE
    }

    /// Adds a request; none if the player has gone.
    fn add(&mut self, body: JsonObject) -> Option<u64> {
        if self.is_gone() {
            return None;
        }

        let number = self.number();
        let request = Waiting {
            body,
            handed_out: 0,
            handed_out_at: Instant::now(),
            answer: None,
        };
        self.requests.insert(number, request);
        Some(number)
    }

    /// Takes the answers of a poll, which waits from now on. Too many polls end the oldest, and the
    /// answer to LEAGUE_COMPLETED ends all: nothing more will come.
    fn begin_poll(&mut self, answers: Vec<Numbered>) -> u64 {
        let id = self.number();
        self.polls.push(id);
        if self.polls.len() > MAX_POLLS {
            self.polls.remove(0);
        }

        for Numbered { number, body } in answers {
            if let Some(request) = self.requests.get_mut(&number)
                && request.answer.is_none()
                && request.handed_out > 0
            {
                request.answer = Some(body);
                if message_type(&request.body) == LeagueCompleted::NAME {
                    self.polls.clear();
                }
            }
        }
        id
    }

    /// Ends a poll. Returns the request that it takes.
    fn end_poll(&mut self, id: u64, began: Instant, known: &[u64]) -> Option<Numbered> {
        self.polled_at = Instant::now();
        let index = self.polls.iter().position(|poll| *poll == id)?;
        self.polls.remove(index);

        let number = self.next(began, known)?;
        let request = self.requests.get_mut(&number)?;
        request.handed_out += 1;
        request.handed_out_at = Instant::now();
        let body = Some(request.body.clone());
        Some(Numbered { number, body })
    }

    /// Returns the number of the request that a poll takes: one that was not handed out yet, or one
    /// that got no answer for a while before the poll began.
    fn next(&self, began: Instant, known: &[u64]) -> Option<u64> {
        let mut requests = self.requests.iter();
        let next = requests.find(|(number, request)| {
            let is_lost = request.handed_out < MAX_HANDED_OUT
                && began.duration_since(request.handed_out_at) >= MAX_SILENCE
                && !known.contains(number);
            request.answer.is_none() && (request.handed_out == 0 || is_lost)
        });
        next.map(|(number, _)| *number)
    }
}

/// Returns the type of the message of a request.
pub fn message_type(body: &JsonObject) -> &str {
    let params = body.get("params");
    let message_type = params.and_then(|params| params["message_type"].as_str());
    message_type.unwrap_or_default()
}

fn unavailable() -> Response {
    let text = "the player does not ask for its requests any more";
    Response::text("503 Service Unavailable", text)
}
