//! A match over HTTP: what `match_play.rs` needs from outside, with real players, clocks and disk.
//! A failure of our own machine (no thread, a full disk) aborts the match.

use super::Referee;
use super::match_play::{Aborted, MatchIo};
use super::tasks::{Assignment, Sending};
use crate::net::call_error::CallError;
use crate::net::client::{MessageContext, Peer};
use crate::net::sync::spawn;
use crate::program::Program;
use crate::program::config::SystemFile;
use crate::protocol::{AgentKind, Call, GameError, GameOver, GameResult, Message};
use crate::values::Timestamp;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// A match that is played over HTTP.
pub struct HttpMatch<'a> {
    /// The referee.
    pub referee: &'a Arc<Referee>,
    /// The match.
    pub assignment: &'a Assignment,
    /// The time when the match began.
    pub started: Instant,
}

impl HttpMatch<'_> {
    fn program(&self) -> &Program {
        &self.referee.session.program
    }

    /// Returns the match with the players' addresses of now, unless it is no longer ours.
    fn current(&self) -> Option<Assignment> {
        let mut tasks = self.referee.tasks.lock();
        Some(tasks.current(self.assignment)?.assignment.clone())
    }
}

/// Returns the address of a player and the envelope of a message to it.
pub fn recipient(
    program: &Program,
    assignment: &Assignment,
    seat: usize,
    timeout: Duration,
) -> (Peer, MessageContext) {
    let peer = Peer {
        kind: AgentKind::Player,
        id: assignment.players[seat].clone(),
        endpoint: assignment.endpoints[seat].clone(),
        max_bytes: program.config.max_message_bytes(),
        timeout,
    };

    let context = assignment.context(Some(assignment.tokens[seat].clone()));
    (peer, context)
}

impl MatchIo for HttpMatch<'_> {
    fn config(&self) -> &SystemFile {
        &self.program().config.system
    }

    fn seed(&self) -> Option<u64> {
        self.program().seed
    }

    fn call<C: Call<Reply: Message>>(
        &self,
        seat: usize,
        question: &C,
        timeout: Duration,
    ) -> Result<C::Reply, CallError> {
        let Some(assignment) = self.current() else {
            return Err(CallError::Local("the match is no longer ours".into()));
        };
        let (peer, context) = recipient(self.program(), &assignment, seat, timeout);
        self.program().client.call(&peer, question, &context)
    }

    fn send_error(&self, seat: usize, error: GameError) {
        let program = self.program();
        if let Some(assignment) = self.current() {
            let timeout = program.config.game_over_limit();
            let (peer, context) = recipient(program, &assignment, seat, timeout);
            let client = Arc::clone(&program.client);
            spawn("game-error", move || {
                drop(client.notify(&peer, &error, &context));
            });
        }
    }

    fn send_result(&self, game_over: GameOver) {
        let _ = self.in_parallel(&[0, 1], |seat| {
            let Some(assignment) = self.current() else {
                return;
            };
            self.referee.tell(&Sending {
                assignment,
                receiver: seat,
                game_over: game_over.clone(),
            });
        });
    }

    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for seat in &seats[1..] {
                let thread = Builder::new().name("seat".into());
                threads.push(thread.spawn_scoped(scope, || task(*seat)));
            }

            let mut results = vec![task(seats[0])]; // in this thread
            for thread in threads {
                let thread = thread.map_err(|_| Aborted)?;
                results.push(thread.join().map_err(|_| Aborted)?);
            }
            Ok(results)
        })
    }

    fn sleep(&self, delay: Duration) {
        thread::sleep(delay);
    }

    fn time_elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn clock(&self) -> Timestamp {
        Timestamp::now()
    }

    fn save(&self, result: &GameResult) -> Result<(), Aborted> {
        match self.referee.tasks.lock().save(self.assignment, result) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Aborted),
            Err(error) => {
                let match_id = &self.assignment.match_id;
                let text = format!("the result of {match_id} cannot be kept: {error}");
                self.referee.report_error(&text);
                Err(Aborted)
            }
        }
    }
}
