//! The requests of one relay: they wait for a poll of the player, and then for its answer.
//!
//! A poll takes one request, so that the threads of a player work on several at once. The newest
//! poll takes the next request, since an older poll's connection may be broken. A request that
//! has no answer after a while is handed out once more.

use league::net::http::{OK, Response};
use league::net::log::{text_field, to_json};
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
/// Maximum number of requests that wait at once.
const MAX_REQUESTS: usize = 100;
/// The time without a poll after which the player counts as gone. A request whose answer is missing
/// for as long is handed out once more.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// Maximum number of levels of a request: readers of JSON allow 128, and the answer of a poll adds
/// some.
const MAX_DEPTH: usize = 100;

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

/// The requests of one relay.
pub struct Queue(Shared<State>);

struct State {
    /// By number, so the oldest first.
    requests: BTreeMap<u64, Request>,
    /// The polls that wait, the oldest first.
    polls: Vec<u64>,
    /// The time at which the last poll ended.
    polled_at: Instant,
    /// The last number of a request or a poll. It begins at random, so that an answer that comes
    /// after a restart of the manager does not match a new request.
    number: u64,
}

/// A request to the player, which waits for its answer.
struct Request {
    /// The JSON. It stays text, since that takes a tenth of the memory of a `Value`.
    text: String,
    /// The type of the message in it; empty without one.
    message_type: String,
    since: Instant,
    /// The times at which it was handed out.
    handed_out: Vec<Instant>,
    answer: Option<Value>,
}

impl Request {
    /// Returns the request in a body, or `None` if it is no JSON object, has other `params`
    /// than an object, or is too deep for a player.
    fn parse(body: &[u8]) -> Option<Request> {
        let json: Value = serde_json::from_slice(body).ok()?;
        let has_params = json.get("params").is_none_or(Value::is_object);
        (json.is_object() && has_params && depth(&json) <= MAX_DEPTH).then(|| Request {
            text: json.to_string(),
            message_type: text_field(&json["params"], "message_type").unwrap_or_default(),
            since: Instant::now(),
            handed_out: Vec::new(),
            answer: None,
        })
    }
}

/// Returns the number of levels of lists and objects in a value.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + inner.unwrap_or(0)
}

/// Returns the answer to a request for a player that has gone.
pub fn no_player() -> Response {
    Response::text("503 Service Unavailable", "the player does not poll")
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
        let mut timeout = poll.timeout();
        let known = poll.known.unwrap_or_default();
        let began = Instant::now();
        let answers = poll.answers.unwrap_or_default();
        let id = self.0.update(|state| state.begin_poll(answers));
        if self.0.lock().may_have_lost(&known) {
            timeout = timeout.min(MAX_SILENCE); // the next poll gets the request
        }

        drop(self.0.wait_until(timeout, |state| {
            let is_newest = state.polls.last() == Some(&id);
            !state.polls.contains(&id) || is_newest && state.next(began, &known).is_some()
        }));
        let request = self.0.update(|state| state.end_poll(id, began, &known));
        Requests {
            requests: request.into_iter().collect(),
        }
    }

    /// Passes the request in a body on, and waits for its answer as long as `timeout` says for its
    /// type of message.
    pub fn request(&self, body: &[u8], timeout: impl Fn(&str) -> Duration) -> Response {
        let Some(request) = Request::parse(body) else {
            return Response::text(
                "400 Bad Request",
                "the body and its params must be JSON objects, of at most 100 levels",
            );
        };
        let timeout = timeout(&request.message_type);
        let Some(number) = self.0.update(|state| state.add(request)) else {
            return no_player();
        };
        let is_answered = |state: &State| state.requests[&number].answer.is_some();
        let request = (self.0.wait_until(timeout, is_answered).requests).remove(&number);
        match request.and_then(|request| request.answer) {
            Some(answer) => Response::new(OK, to_json(&answer)),
            None => Response::text("504 Gateway Timeout", "the player has not answered"),
        }
    }

    /// Ends all polls. Requests that were handed out are handed out again.
    pub fn end_polls(&self) {
        self.0.update(|state| {
            state.polls.clear();
            state.polled_at = Instant::now(); // the player is there, and polls in a moment
            for request in state.requests.values_mut() {
                request.handed_out.clear();
            }
        });
    }
}

impl State {
    /// Adds a request, and returns its number; `None` if no poll waits or has waited a short while
    /// ago, or if the player is too slow for all that is asked.
    fn add(&mut self, request: Request) -> Option<u64> {
        let is_polled = !self.polls.is_empty() || self.polled_at.elapsed() < MAX_SILENCE;
        if !is_polled || self.requests.len() >= MAX_REQUESTS {
            return None;
        }

        self.number += 1;
        self.requests.insert(self.number, request);
        Some(self.number)
    }

    /// Takes the answers of a poll, which waits from now on. The answer to LEAGUE_COMPLETED ends
    /// all polls, since no request will follow.
    fn begin_poll(&mut self, answers: Vec<Numbered>) -> u64 {
        self.number += 1;
        self.polls.push(self.number);
        if self.polls.len() > MAX_POLLS {
            self.polls.remove(0);
        }

        for Numbered { number, body, .. } in answers {
            if let Some(request) = self.requests.get_mut(&number) {
                request.answer.get_or_insert(body);
                if request.message_type == LeagueCompleted::NAME {
                    self.polls.clear();
                }
            }
        }
        self.number
    }

    /// Returns true if a request was handed out that the player has neither answered nor named.
    fn may_have_lost(&self, known: &[u64]) -> bool {
        let mut requests = self.requests.iter();
        requests.any(|(number, request)| {
            let is_open = request.handed_out.len() == 1 && request.answer.is_none();
            is_open && !known.contains(number)
        })
    }

    /// Ends a poll. Returns the request that it takes.
    fn end_poll(&mut self, id: u64, began: Instant, known: &[u64]) -> Option<Numbered> {
        self.polled_at = Instant::now();
        let place = self.polls.iter().position(|poll| *poll == id)?;
        self.polls.remove(place);

        let number = self.next(began, known)?;
        let request = self.requests.get_mut(&number)?;
        request.handed_out.push(Instant::now());
        let body = serde_json::from_str(&request.text).ok()?;
        let waited = request.since.elapsed();
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
        let next = requests.find(|(number, request)| {
            let is_due = match request.handed_out[..] {
                [] => true,
                [at] => began.duration_since(at) >= MAX_SILENCE,
                _ => false,
            };
            is_due && request.answer.is_none() && !known.contains(number)
        });
        next.map(|(number, _)| *number)
    }
}
