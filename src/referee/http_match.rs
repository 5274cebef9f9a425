//! A match over HTTP: what `match_play.rs` needs from outside, with real players, clocks and disk.
//! A failure of our own machine (no thread, a full disk) aborts the match.

use super::Referee;
use super::match_play::{Aborted, MatchIo};
use super::tasks::Assignment;
use crate::games::match_result;
use crate::net::call_error::CallError;
use crate::net::client::{MessageContext, Peer};
use crate::net::sync::spawn;
use crate::program::Program;
use crate::program::config::SystemFile;
use crate::protocol::{AgentKind, Call, GameError, GameOver, GameResult, Message, StatusOk};
use crate::values::Timestamp;
use std::io;
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

    /// Returns an error if the match is no longer ours, or if the disk has failed.
    fn check_saved(&self, saved: io::Result<bool>) -> Result<(), Aborted> {
        let is_ours = saved.unwrap_or_else(|error| {
            let match_id = &self.assignment.match_id;
            let text = format!("the result of {match_id} cannot be kept: {error}");
            self.referee.report_error(&text);
            false
        });
        if is_ours { Ok(()) } else { Err(Aborted) }
    }

    /// Returns where a player is now, unless the match is no longer ours.
    fn recipient(&self, seat: usize, timeout: Duration) -> Option<(Peer, MessageContext)> {
        let mut tasks = self.referee.tasks.lock();
        let current = tasks.current(self.assignment)?.assignment.as_ref()?;
        Some(recipient(self.program(), current, seat, timeout))
    }

    /// Returns a task that sends a notification to a player, unless the match is no longer ours.
    fn notification(
        &self,
        seat: usize,
        message: impl Call<Reply = StatusOk> + Send + 'static,
    ) -> impl FnOnce() -> Result<(), CallError> + Send + 'static {
        let client = Arc::clone(&self.program().client);
        let timeout = self.program().config.game_over_limit();
        let recipient = self.recipient(seat, timeout);

        move || {
            if let Some((peer, context)) = recipient {
                client.notify(&peer, &message, &context)?;
            }
            Ok(())
        }
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

    let context = MessageContext {
        conversation_id: assignment.conversation_id.clone(),
        auth_token: Some(assignment.tokens[seat].clone()),
        round_id: Some(assignment.round_id),
        match_id: Some(assignment.match_id.clone()),
    };
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
        let Some((peer, context)) = self.recipient(seat, timeout) else {
            return Err(CallError::Local("the match is no longer ours".into()));
        };
        self.program().client.call(&peer, question, &context)
    }

    fn send_error(&self, seat: usize, error: GameError) {
        let notify = self.notification(seat, error);
        spawn("game-error", || drop(notify()));
    }

    fn send_result(&self, result: GameOver) {
        let _ = self.in_parallel(&[0, 1], |seat| {
            let notified = self.notification(seat, result.clone())();
            if notified.is_err_and(|error| error.is_retryable()) {
                self.referee.tell(self.assignment, seat, result.clone());
            }
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
        let result = match_result(result, &self.program().config.league.scoring);
        let mut tasks = self.referee.tasks.lock();
        self.check_saved(tasks.save(self.assignment, result))
    }
}
