//! A match without a thread. `play_match` blocks while a player thinks. Here it is played from its
//! beginning each time an answer has come, with all answers so far; at the first question without an
//! answer it notes what it wants, and is given up until the answer is there. (Workflow engines work
//! so.) It is thus also shown that `play_match` keeps nothing elsewhere.

use super::world::Answer;
use league::net::call_error::CallError;
use league::net::sync::lock;
use league::program::config::SystemFile;
use league::protocol::{Call, GameError, GameOver, GameResult, Message, PlayerRequest};
use league::referee::match_play::{Aborted, MatchIo, play_match};
use league::referee::tasks::{Assignment, Tasks};
use league::values::{Timestamp, clock};
use serde_json::json;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What a match wants for a seat: an answer to a message within a time, or without one a pause.
pub type Want = (usize, Option<PlayerRequest>, Duration);

/// The end of a match, if it has come.
pub type End = Option<Result<GameResult, Aborted>>;

/// A match that is played again and again.
pub struct Replay {
    pub assignment: Arc<Assignment>,
    tasks: Arc<Mutex<Tasks>>,
    config: SystemFile,
    seed: u64,
    began: Instant,
    state: Mutex<State>,
}

/// The answers so far, for each seat.
#[derive(Default)]
struct State {
    seat: usize,
    answers: [Vec<(Duration, Answer)>; 2],
    /// The number of answers that were used in this run, and the time of the last one.
    used: [usize; 2],
    now: [Duration; 2],
    /// True if the next answer is on its way.
    is_waiting: [bool; 2],
    wants: Vec<Want>,
    /// True if the result was saved, and false if it was not.
    is_saved: Option<bool>,
}

impl Replay {
    pub fn new(
        assignment: Assignment,
        tasks: &Arc<Mutex<Tasks>>,
        config: &SystemFile,
        seed: u64,
    ) -> Replay {
        Replay {
            assignment: Arc::new(assignment),
            tasks: Arc::clone(tasks),
            config: config.clone(),
            seed,
            began: clock::now(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Adds an answer.
    pub fn add(&self, seat: usize, answer: Answer) {
        let mut state = self.state();
        state.answers[seat].push((clock::now() - self.began, answer));
        state.is_waiting[seat] = false;
    }

    /// Plays the match as far as the answers go. Returns what it wants now, and its end if it has
    /// come.
    pub fn run(&self) -> (Vec<Want>, End) {
        let mut state = self.state();
        (state.used, state.now) = Default::default();
        drop(state);
        let end = play_match(&self.assignment, self);
        let mut state = self.state();
        let has_ended = state.is_waiting == [false; 2];
        (mem::take(&mut state.wants), has_ended.then_some(end))
    }

    /// Returns the next answer for the seat whose task runs, or notes what is wanted.
    fn take(&self, message: impl FnOnce() -> Option<PlayerRequest>, time: Duration) -> Answer {
        let state = &mut *self.state();
        let seat = state.seat;
        if let Some((time, answer)) = state.answers[seat].get(state.used[seat]) {
            state.used[seat] += 1;
            state.now[seat] = *time;
            return answer.clone();
        }
        if lock(&self.tasks).current(&self.assignment).is_none() {
            return Err(CallError::Local("the match is no longer ours".into()));
        }
        if !mem::replace(&mut state.is_waiting[seat], true) {
            state.wants.push((seat, message(), time));
        }
        Err(CallError::Local("not answered yet".into()))
    }
}

impl MatchIo for Replay {
    fn config(&self) -> &SystemFile {
        &self.config
    }

    fn seed(&self) -> Option<u64> {
        Some(self.seed)
    }

    fn call<C: Call<Reply: Message>>(
        &self,
        _seat: usize,
        question: &C,
        timeout: Duration,
    ) -> Result<C::Reply, CallError> {
        let message = || PlayerRequest::decode(question.name(), &json!(question))?.ok();
        let reply = self.take(message, timeout)?;
        let reply = reply.and_then(|reply| C::Reply::decode(reply.name(), &json!(reply))?.ok());
        reply.ok_or(CallError::HttpStatus(500, "another reply".into()))
    }

    /// It only informs, so it is not sent.
    fn send_error(&self, _seat: usize, _error: GameError) {}

    fn send_result(&self, result: GameOver) {
        let message = || Some(result.clone().into());
        let _ = self.in_parallel(&[0, 1], |_| self.take(message, Duration::ZERO));
    }

    /// Runs the tasks one after the other, each as far as its answers go.
    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted> {
        let mut results = Vec::new();
        for seat in seats {
            self.state().seat = *seat;
            results.push(task(*seat));
        }
        let mut state = self.state();
        state.now = [state.now[0].max(state.now[1]); 2];
        let is_done = state.is_waiting == [false; 2];
        is_done.then_some(results).ok_or(Aborted)
    }

    fn sleep(&self, delay: Duration) {
        let _ = self.take(|| None, delay);
    }

    fn time_elapsed(&self) -> Duration {
        let state = self.state();
        state.now[state.seat]
    }

    fn clock(&self) -> Timestamp {
        Timestamp::now()
    }

    fn save(&self, result: &GameResult) -> Result<(), Aborted> {
        let save = || lock(&self.tasks).save(&self.assignment, result);
        let is_saved = &mut self.state().is_saved;
        let is_saved = *is_saved.get_or_insert_with(|| save().is_ok_and(|saved| saved));
        is_saved.then_some(()).ok_or(Aborted)
    }
}
