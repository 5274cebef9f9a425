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
use std::any::Any;
use std::mem;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// What a match wants for one of its seats.
pub enum Want {
    Ask(PlayerRequest, Duration),
    Sleep(Duration),
    Save(GameResult),
    Tell(GameOver),
    /// A player is told an error. Nobody waits for it.
    Error(GameError),
}

/// The end of a match.
pub type End = Result<GameResult, Aborted>;

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
    /// The answers for each seat, with their times since the match began.
    answers: [Vec<(Duration, Answer)>; 2],
    /// The number of answers and of errors that each seat has wanted.
    wanted: [usize; 2],
    errors: [usize; 2],
    /// The same in this run, and the time of each seat.
    run: Run,
    wants: Vec<(usize, Want)>,
}

#[derive(Default)]
struct Run {
    /// The seat whose task runs.
    seat: usize,
    wanted: [usize; 2],
    errors: [usize; 2],
    now: [Duration; 2],
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
        self.state().answers[seat].push((now - self.began, answer));
    }

    /// Plays the match as far as the answers go. Returns what it wants now, and its end if it has come.
    pub fn run(&self) -> (Vec<(usize, Want)>, Option<End>) {
        self.state().run = Run::default();
        let ended = play_match(&self.assignment, self);
        let mut state = self.state();
        let is_waiting = (0..2).any(|seat| state.wanted[seat] > state.answers[seat].len());
        (mem::take(&mut state.wants), (!is_waiting).then_some(ended))
    }

    /// Returns the next answer of the seat whose task runs, or notes what is wanted.
    fn take(&self, want: Want) -> Answer {
        let state = &mut *self.state();
        let seat = state.run.seat;
        state.run.wanted[seat] += 1;
        if let Some((time, answer)) = state.answers[seat].get(state.run.wanted[seat] - 1) {
            state.run.now[seat] = *time;
            return answer.clone();
        }
        if state.wanted[seat] == state.answers[seat].len() {
            state.wanted[seat] += 1;
            state.wants.push((seat, want));
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
        let reply = self.take(Want::Ask(request(question), timeout))?;
        let name = reply["message_type"].as_str().unwrap_or_default();
        match C::Reply::decode(name, &reply) {
            Some(Ok(reply)) => Ok(reply),
            Some(Err(error)) => Err(CallError::wrong(error, &reply)),
            None => Err(CallError::HttpStatus(500, name.into())),
        }
    }

    fn send_error(&self, seat: usize, error: GameError) {
        let state = &mut *self.state();
        let is_waiting = state.run.wanted[seat] > state.answers[seat].len();
        state.run.errors[seat] += 1;
        if !is_waiting && state.run.errors[seat] > state.errors[seat] {
            state.errors[seat] += 1;
            state.wants.push((seat, Want::Error(error)));
        }
    }

    fn send_result(&self, result: GameOver) {
        let _ = self.in_parallel(&[0, 1], |_| self.take(Want::Tell(result.clone())));
    }

    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted> {
        let mut results = Vec::new();
        for seat in seats {
            self.state().run.seat = *seat;
            results.push(task(*seat));
        }
        let run = &mut self.state().run;
        run.seat = 0;
        run.now = [run.now[0].max(run.now[1]); 2];
        Ok(results)
    }

    fn sleep(&self, delay: Duration) {
        let _ = self.take(Want::Sleep(delay));
    }

    fn time_elapsed(&self) -> Duration {
        let run = &self.state().run;
        run.now[run.seat]
    }

    fn clock(&self) -> Timestamp {
        self.began_at.plus(self.time_elapsed())
    }

    fn save(&self, result: &GameResult) -> Result<(), Aborted> {
        let saved = self.take(Want::Save(result.clone()));
        saved.map(|_| ()).map_err(|_| Aborted)
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
