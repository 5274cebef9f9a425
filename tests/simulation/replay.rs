//! A match without a thread. `play_match` blocks while a player thinks. Here it is played from its
//! beginning each time an answer has come, with all answers so far; at the first question without an
//! answer it notes what it wants, and is given up until the answer is there. (Workflow engines work
//! so.) It is thus also shown that `play_match` keeps nothing elsewhere.

use super::world::Answer;
use league::net::call_error::CallError;
use league::program::config::SystemFile;
use league::protocol::{
    Call, ChooseMoveCall, ChooseParityCall, GameError, GameInvitation, GameOver, GameResult,
    Message, PlayerRequest,
};
use league::referee::match_play::{Aborted, MatchIo, play_match};
use league::referee::tasks::Assignment;
use league::values::Timestamp;
use serde_json::Value;
use std::any::Any;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// What a match waits for; the number is the seat.
pub enum Want {
    Ask(usize, PlayerRequest, Duration),
    Sleep(usize, Duration),
    Save(GameResult),
    Tell(GameOver),
}

/// A match that is played again and again.
pub struct Replay {
    pub assignment: Assignment,
    config: SystemFile,
    seed: u64,
    began: Duration,
    began_at: Timestamp,
    state: Mutex<State>,
}

/// The answers so far. What concerns both players stands under seat 0.
#[derive(Default)]
struct State {
    /// The answers for each seat, and their times since the match began.
    got: [Vec<(Duration, Answer)>; 2],
    /// The number of wants of each seat that were made known, and of its errors.
    wanted: [usize; 2],
    errors: [usize; 2],
    /// The same in this run.
    used: [usize; 2],
    used_errors: [usize; 2],
    now: [Duration; 2],
    /// The seat whose task runs.
    seat: usize,
    wants: Vec<Want>,
    told: Vec<(usize, GameError)>,
}

impl Replay {
    pub fn new(assignment: Assignment, config: &SystemFile, seed: u64, now: Duration) -> Replay {
        Replay {
            assignment,
            config: config.clone(),
            seed,
            began: now,
            began_at: Timestamp::now(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds an answer.
    pub fn add(&self, seat: usize, answer: Answer, now: Duration) {
        self.state().got[seat].push((now - self.began, answer));
    }

    /// Plays the match as far as the answers go. Returns what it wants now, the errors that players
    /// are told, and the end, if it has come.
    pub fn run(
        &self,
    ) -> (
        Vec<Want>,
        Vec<(usize, GameError)>,
        Option<Result<GameResult, Aborted>>,
    ) {
        let mut state = self.state();
        (state.used, state.used_errors, state.now) = Default::default();
        drop(state);
        let ended = play_match(&self.assignment, self);
        let mut state = self.state();
        let is_waiting = (0..2).any(|seat| state.wanted[seat] > state.got[seat].len());
        let ended = (!is_waiting).then_some(ended);
        (
            std::mem::take(&mut state.wants),
            std::mem::take(&mut state.told),
            ended,
        )
    }

    /// Returns the next answer of the seat whose task runs, or notes what is wanted.
    fn take(&self, want: impl FnOnce(usize) -> Want) -> Answer {
        let state = &mut *self.state();
        let seat = state.seat;
        state.used[seat] += 1;
        if let Some((time, answer)) = state.got[seat].get(state.used[seat] - 1) {
            state.now[seat] = *time;
            return answer.clone();
        }
        if state.wanted[seat] == state.got[seat].len() {
            state.wanted[seat] += 1;
            state.wants.push(want(seat));
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
        let reply = self.take(|seat| Want::Ask(seat, request(question), timeout))?;
        let name = reply["message_type"].as_str().unwrap_or_default();
        match C::Reply::decode(name, &reply) {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(error)) => Err(CallError::wrong(error, &reply)),
            None => Err(CallError::HttpStatus(500, name.into())),
        }
    }

    fn send_error(&self, seat: usize, error: GameError) {
        let state = &mut *self.state();
        let is_waiting = state.used[seat] > state.got[seat].len();
        state.used_errors[seat] += 1;
        if !is_waiting && state.used_errors[seat] > state.errors[seat] {
            state.errors[seat] += 1;
            state.told.push((seat, error));
        }
    }

    fn send_result(&self, result: GameOver) {
        let _ = self.take(|_| Want::Tell(result));
    }

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
        state.seat = 0;
        state.now = [state.now[0].max(state.now[1]); 2];
        Ok(results)
    }

    fn sleep(&self, delay: Duration) {
        let _ = self.take(|seat| Want::Sleep(seat, delay));
    }

    fn time_elapsed(&self) -> Duration {
        let state = self.state();
        state.now[state.seat]
    }

    fn clock(&self) -> Timestamp {
        self.began_at.plus(self.time_elapsed())
    }

    fn save(&self, result: &GameResult) -> Result<(), Aborted> {
        let saved = self.take(|_| Want::Save(result.clone()));
        saved.map(|_: Value| ()).map_err(|_| Aborted)
    }
}

/// Returns a question as a player gets it.
fn request(question: &dyn Any) -> PlayerRequest {
    if let Some(invitation) = question.downcast_ref::<GameInvitation>() {
        return invitation.clone().into();
    }
    if let Some(call) = question.downcast_ref::<ChooseParityCall>() {
        return call.clone().into();
    }
    let call = question.downcast_ref::<ChooseMoveCall>();
    call.expect("a question of a match").clone().into()
}
