//! The requests of one relay: they wait for a poll of the player, and then for its answer.
//!
//! A poll takes one request, so that the threads of a player work on several at once. The newest
//! poll takes the next request, since an older poll's connection may be broken. While a request
//! has no answer, it is handed out again each second to a poll that does not name it in `known`:
//! the answer of the poll that took it may be lost. A player that has the request drops the copy.

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
/// The time without a poll after which the player counts as gone.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// Interval between two copies of a request. An invitation must be answered within five seconds, and
/// a referee does not repeat one that got no answer.
const COPY_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which a request waits longer than its caller, who so sees that no answer came, as
/// with a player that is called directly.
const MARGIN: Duration = Duration::from_secs(1);
/// Maximum number of levels of a request: readers of JSON allow 128, and the answer of a poll adds
/// some.
const MAX_DEPTH: usize = 100;

/// The arguments of `relay_next`.
#[derive(Debug, Deserialize)]
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
    /// The time that a request has waited for its first poll.
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
    /// The last time at which the player was seen: a poll ended, or the relay was opened.
    seen_at: Instant,
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
    /// True while no other poll takes it.
    is_handed_out: bool,
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
            is_handed_out: false,
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
            seen_at: Instant::now(),
            number: fastrand::u32(..).into(),
        }))
    }

    /// Takes the answers of a poll, and waits for a request.
    pub fn poll(&self, poll: Poll) -> Requests {
        let timeout = poll.timeout();
        let known = poll.known.unwrap_or_default();
        let answers = poll.answers.unwrap_or_default();
        let id = self.0.update(|state| state.begin_poll(answers));

        drop(self.0.wait_until(timeout, |state| {
            let is_newest = state.polls.last() == Some(&id);
            !state.polls.contains(&id) || is_newest && state.next_number(&known).is_some()
        }));
        let request = self.0.update(|state| state.end_poll(id, &known));
        Requests {
            requests: request.into_iter().collect(),
        }
    }

    /// Passes the request in a body on, and waits for its answer. `timeout` returns how long the
    /// caller waits for the answer to a type of message.
    pub fn pass_on(&self, body: &[u8], timeout: impl Fn(&str) -> Duration) -> Response {
        let Some(request) = Request::parse(body) else {
            let legal = format!(
                "the body and its params must be JSON objects of at most {MAX_DEPTH} levels"
            );
            return Response::text("400 Bad Request", legal);
        };
        let timeout = timeout(&request.message_type) + MARGIN;
        let Some(number) = self.0.update(|state| state.add(request)) else {
            return no_player();
        };

        let is_answered = |state: &State| state.requests[&number].answer.is_some();
        let end = Instant::now() + timeout;
        while !is_answered(&self.0.wait_until(COPY_INTERVAL, is_answered)) && Instant::now() < end {
            self.0.update(|state| state.hand_out_again(number));
        }
        let request = self.0.update(|state| state.requests.remove(&number));
        match request.and_then(|request| request.answer) {
            Some(answer) => Response::new(OK, to_json(&answer)),
            None => Response::text("504 Gateway Timeout", "the player has not answered"),
        }
    }

    /// Ends all polls: the player opens its relay again, or the relay is closed. Requests that were
    /// handed out are handed out again.
    pub fn end_polls(&self) {
        self.0.update(|state| {
            state.polls.clear();
            state.seen_at = Instant::now(); // the player polls in a moment
            for request in state.requests.values_mut() {
                request.is_handed_out = false;
            }
        });
    }
}

impl State {
    /// Adds a request, and returns its number; `None` if the player has gone, or if too many wait.
    fn add(&mut self, request: Request) -> Option<u64> {
        let is_there = !self.polls.is_empty() || self.seen_at.elapsed() < MAX_SILENCE;
        if !is_there || self.requests.len() >= MAX_REQUESTS {
            return None;
        }

        self.number += 1;
        self.requests.insert(self.number, request);
        Some(self.number)
    }

    /// Takes the answers of a poll, which waits from now on. The answer to LEAGUE_COMPLETED ends
    /// all polls, so that the player may exit.
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

    /// Lets the next poll take a request, also if a poll has taken it.
    fn hand_out_again(&mut self, number: u64) {
        if let Some(request) = self.requests.get_mut(&number) {
            request.is_handed_out = false;
        }
    }

    /// Ends a poll. Returns the request that it takes.
    fn end_poll(&mut self, id: u64, known: &[u64]) -> Option<Numbered> {
        self.seen_at = Instant::now();
        let place = self.polls.iter().position(|poll| *poll == id)?;
        self.polls.remove(place);

        let number = self.next_number(known)?;
        let request = self.requests.get_mut(&number)?;
        let waited = request.since.elapsed();
        request.is_handed_out = true;
        let body = serde_json::from_str(&request.text).ok()?;
        Some(Numbered {
            number,
            body,
            waited,
        })
    }

    /// Returns the number of the request that a poll takes: the oldest that neither another poll nor
    /// the player has.
    fn next_number(&self, known: &[u64]) -> Option<u64> {
        let mut requests = self.requests.iter();
        let next = requests.find(|(number, request)| {
            !request.is_handed_out && request.answer.is_none() && !known.contains(number)
        });
        next.map(|(number, _)| *number)
    }
}
