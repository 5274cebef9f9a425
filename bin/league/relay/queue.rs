//! The requests of one relay: they wait for a poll of the player, and then for its answer.
//!
//! A poll takes one request, so that the threads of a player work on several at once. The newest
//! poll takes the next request, since the connection of an older one may be gone. A request that
//! has no answer after a while is handed out once more.

use league::net::http::{OK, Response};
use league::net::log::to_json;
use league::net::sync::Shared;
use league::protocol::LeagueCompleted;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum time that a poll waits, in seconds.
const MAX_WAIT: f64 = 25.0;
/// Maximum number of polls that wait at once.
const MAX_POLLS: usize = 3;
/// The time without a poll after which the player has gone, and that without an answer after which
/// a request is handed out once more.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// The arguments of `relay_next`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Poll {
    pub relay_token: String,
    wait_sec: Option<f64>,
    answers: Option<Vec<Numbered>>,
    /// The numbers of requests that the player has already.
    known: Option<Vec<u64>>,
}

impl Poll {
    /// Returns the time that the poll waits.
    pub fn timeout(&self) -> Duration {
        let wait_sec = self.wait_sec.unwrap_or(MAX_WAIT).clamp(0.0, MAX_WAIT);
        Duration::from_secs_f64(wait_sec)
    }
}

/// A request of a relay, or the answer to it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Numbered {
    pub number: u64,
    pub body: Value,
    /// The time that a request has waited for a poll.
    #[serde(skip)]
    pub waited: Duration,
}

/// The answer of `relay_next`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Requests {
    pub requests: Vec<Numbered>,
}

/// A request to the player.
pub struct Request {
    /// The JSON. It stays text, since that takes a tenth of the memory of a `Value`.
    text: String,
    /// The type of the message in it; empty without one.
    pub message_type: String,
}

impl Request {
    /// Returns the request in a body, or `None` if it is no JSON object.
    pub fn parse(body: &[u8]) -> Option<Request> {
        #[derive(Deserialize)]
        struct Call {
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        struct Params {
            message_type: Option<String>,
        }

        let text = str::from_utf8(body).ok()?;
        let params = serde_json::from_str::<Call>(text).ok()?.params;
        let message_type = params.and_then(|params| params.message_type);
        Some(Request {
            text: text.into(),
            message_type: message_type.unwrap_or_default(),
        })
    }
}

/// The requests of one relay.
pub struct Queue(Shared<State>);

struct State {
    /// By number, so the oldest first.
    requests: BTreeMap<u64, Waiting>,
    /// The polls that wait, the oldest first.
    polls: Vec<u64>,
    /// The time at which the last poll ended.
    polled_at: Instant,
    /// The last number of a request or a poll. It begins at random, so that an answer that comes
    /// after a restart of the manager is none to a new request.
    number: u64,
}

/// A request that waits.
struct Waiting {
    request: Request,
    since: Instant,
    /// The times at which it was handed out.
    handed_out: Vec<Instant>,
    answer: Option<Value>,
}

impl Queue {
    /// Returns an empty queue.
    pub fn new() -> Queue {
        Queue(Shared::new(State {
            requests: BTreeMap::new(),
            polls: Vec::new(),
            polled_at: Instant::now(),
            number: fastrand::u32(..).into(),
        }))
    }

    /// Takes the answers of a poll, and waits for a request.
    pub fn poll(&self, poll: Poll) -> Requests {
        let timeout = poll.timeout();
        let known = poll.known.unwrap_or_default();
        let began = Instant::now();
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

    /// Passes a request on, and waits for its answer.
    pub fn request(&self, request: Request, timeout: Duration) -> Response {
        if self.silence() >= MAX_SILENCE {
            return Response::text("503 Service Unavailable", "the player does not poll");
        }

        let number = self.0.update(|state| {
            state.number += 1;
            let waiting = Waiting {
                request,
                since: Instant::now(),
                handed_out: Vec::new(),
                answer: None,
            };
            state.requests.insert(state.number, waiting);
            state.number
        });
        drop(
            self.0
                .wait_until(timeout, |state| state.requests[&number].answer.is_some()),
        );
        let waiting = self.0.update(|state| state.requests.remove(&number));
        match waiting.and_then(|waiting| waiting.answer) {
            Some(answer) => Response::new(OK, to_json(&answer)),
            None => Response::text("504 Gateway Timeout", "the player has not answered"),
        }
    }

    /// Answers all polls. What was handed out is handed out again: the player has been restarted.
    pub fn restart(&self) {
        self.0.update(|state| {
            state.polls.clear();
            state.polled_at = Instant::now(); // it is there, and polls in a moment
            for waiting in state.requests.values_mut() {
                waiting.handed_out.clear();
            }
        });
    }

    /// Returns the time in which no poll has waited.
    pub fn silence(&self) -> Duration {
        let state = self.0.lock();
        match state.polls[..] {
            [] => state.polled_at.elapsed(),
            _ => Duration::ZERO,
        }
    }
}

impl State {
    /// Takes the answers of a poll, which waits from now on. The answer to LEAGUE_COMPLETED ends
    /// all polls, since no request will follow.
    fn begin_poll(&mut self, answers: Vec<Numbered>) -> u64 {
        self.number += 1;
        self.polls.push(self.number);
        if self.polls.len() > MAX_POLLS {
            self.polls.remove(0);
        }

        for Numbered { number, body, .. } in answers {
            if let Some(waiting) = self.requests.get_mut(&number) {
                waiting.answer.get_or_insert(body);
                if waiting.request.message_type == LeagueCompleted::NAME {
                    self.polls.clear();
                }
            }
        }
        self.number
    }

    /// Ends a poll. Returns the request that it takes.
    fn end_poll(&mut self, id: u64, began: Instant, known: &[u64]) -> Option<Numbered> {
        self.polled_at = Instant::now();
        let place = self.polls.iter().position(|poll| *poll == id)?;
        self.polls.remove(place);

        let number = self.next(began, known)?;
        let waiting = self.requests.get_mut(&number)?;
        waiting.handed_out.push(Instant::now());
        let body = serde_json::from_str(&waiting.request.text).ok()?;
        let waited = waiting.since.elapsed();
        Some(Numbered {
            number,
            body,
            waited,
        })
    }

    /// Returns the number of the request that a poll takes: the oldest that was not handed out, or
    /// whose answer was missing for a while when the poll began.
    fn next(&self, began: Instant, known: &[u64]) -> Option<u64> {
        let mut requests = self.requests.iter();
        let next = requests.find(|(number, waiting)| {
            let is_due = match waiting.handed_out[..] {
                [] => true,
                [at] => began.duration_since(at) >= MAX_SILENCE,
                _ => false,
            };
            is_due && waiting.answer.is_none() && !known.contains(number)
        });
        next.map(|(number, _)| *number)
    }
}
