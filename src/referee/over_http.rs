//! Where a match takes place in the program: over HTTP, with real threads, clocks and the outbox's disk. A fault of our
//! own machine is borne with here: the client repeats its calls, a thread or the disk is tried again for a while.
//! The rules are in `match_play.rs`.

use crate::games::{self, Outcome};
use crate::net::client::{About, Peer};
use crate::net::log::Level;
use crate::net::retry::{CallError, pause, retry};
use crate::net::sync::spawn;
use crate::program::Program;
use crate::program::terminal::complain;
use crate::protocol::*;
use crate::referee::assignments::{Assignment, Assignments};
use crate::referee::match_play::{Acted, Venue};
use crate::wire::Timestamp;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A match over HTTP.
pub struct OverHttp<'a> {
    /// Who plays it.
    pub program: &'a Arc<Program>,
    /// Where its result is kept.
    pub assignments: &'a Assignments,
    /// Which it is.
    pub assignment: &'a Arc<Assignment>,
    /// With a seed its draw is repeatable.
    pub seed: Option<u64>,
    /// When it began.
    pub began: Instant,
}

/// Whom a message for a seat goes to, and what it is about.
fn to_seat(program: &Program, assignment: &Assignment, seat: usize) -> (Peer, About) {
    let StartMatch {
        round_id,
        r#match: entry,
        ..
    } = &assignment.game;
    let id = [&entry.player_A_id, &entry.player_B_id][seat].clone();
    let endpoint = assignment.live().endpoints[seat].clone();
    let about = About {
        conversation_id: assignment.conversation_id.clone(),
        auth_token: Some(assignment.tokens[seat].clone()),
        round_id: Some(*round_id),
        match_id: Some(entry.match_id.clone()),
    };
    (
        Peer {
            kind: Kind::Player,
            id,
            endpoint,
            max: program.config.max_message_bytes(),
        },
        about,
    )
}

/// Sends a notice to a seat, once.
fn notify(program: &Program, assignment: &Assignment, seat: usize, message: &Message) {
    let (to, about) = to_seat(program, assignment, seat);
    let _ = program
        .client
        .notify(&to, message, &about, program.config.game_over_limit());
}

/// A fault of our own machine, for whoever can mend it.
pub fn fault(program: &Program, words: &str) {
    program.log().orchestrator(Level::Error, "fault", words);
    complain(words);
}

impl Venue for OverHttp<'_> {
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, CallError> {
        let (to, about) = to_seat(self.program, self.assignment, seat);
        self.program.client.ask(&to, message, &about, limit)
    }

    fn notify(&self, seat: usize, message: &Message) {
        notify(self.program, self.assignment, seat, message);
    }

    fn tell(&self, seat: usize, message: Message) {
        let (program, assignment) = (Arc::clone(self.program), Arc::clone(self.assignment));
        spawn("game-error", move || {
            notify(&program, &assignment, seat, &message)
        });
    }

    fn both<T: Send>(&self, act: impl Fn(usize) -> Acted<T> + Sync) -> [Acted<T>; 2] {
        let ours = |why: String| Err(vec![CallError::Ours(why)]);
        thread::scope(|scope| {
            let start = || {
                let started = thread::Builder::new()
                    .name("seat".into())
                    .spawn_scoped(scope, || act(1));
                started.map_err(|error| CallError::Ours(error.to_string()))
            };
            match retry(
                &self.program.config.retry(),
                pause,
                CallError::is_ours,
                start,
            ) {
                Ok(other) => [
                    act(0),
                    other
                        .join()
                        .unwrap_or_else(|_| ours("a bug of ours".into())),
                ],
                Err(error) => [ours(error.explain()), ours(error.explain())],
            }
        })
    }

    fn pause(&self, delay: Duration) {
        pause(delay);
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn clock(&self) -> Timestamp {
        Timestamp::now()
    }

    fn reached(&self, state: MatchState) -> bool {
        let mut live = self.assignment.live();
        live.state = state;
        !live.dropped
    }

    fn draw(&self) -> u32 {
        games::draw(self.seed, self.assignment.match_id())
    }

    fn keep(&self, outcome: &Outcome) -> bool {
        let config = &self.program.config;
        let (league_id, round_id) = (
            self.assignment.game.league_id.clone(),
            self.assignment.game.round_id,
        );
        let (match_id, result) = (
            self.assignment.match_id().into(),
            outcome.for_manager(&config.league.scoring),
        );
        let report = MatchResultReport {
            league_id,
            round_id,
            match_id,
            game_type: GAME.into(),
            result,
        };
        let (until, mut said) = (Instant::now() + config.match_limit(), false);
        loop {
            let error = match self
                .assignments
                .keep(self.assignment, outcome, report.clone())
            {
                Ok(is_ours) => return is_ours,
                Err(error) => error,
            };
            if !std::mem::replace(&mut said, true) {
                fault(
                    self.program,
                    &format!(
                        "the result of {} cannot be kept yet: {error}",
                        report.match_id
                    ),
                );
            }
            if Instant::now() >= until {
                return false;
            }
            pause(config.retry().base_delay);
        }
    }
}
