//! Where a match takes place in the program: over HTTP, with real threads, clocks and the outbox's disk. A fault of our
//! own machine (no thread, a full disk) ends the match without an outcome. The rules are in `match_play.rs`.

use crate::games::{Game, Outcome};
use crate::net::client::{About, Peer};
use crate::net::log::Level;
use crate::net::retry::{CallError, pause};
use crate::net::sync::spawn;
use crate::program::Program;
use crate::program::terminal::complain;
use crate::protocol::*;
use crate::referee::assignments::{Assignment, Assignments};
use crate::referee::match_play::Venue;
use crate::wire::Timestamp;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// A match over HTTP.
pub struct OverHttp<'a> {
    /// The program that plays it.
    pub program: &'a Arc<Program>,
    /// Where its result is kept.
    pub assignments: &'a Assignments,
    /// Which match it is.
    pub assignment: &'a Arc<Assignment>,
    /// When it began.
    pub began: Instant,
}

/// Whom a message for a seat goes to, and what it is about.
fn to_seat(
    program: &Program,
    assignment: &Assignment,
    seat: usize,
    limit: Duration,
) -> (Peer, About) {
    let entry = &assignment.given.r#match;
    let to = Peer {
        kind: Kind::Player,
        id: [&entry.player_A_id, &entry.player_B_id][seat].clone(),
        endpoint: assignment.live().endpoints[seat].clone(),
        max: program.config.max_message_bytes(),
        limit,
    };
    let about = About {
        conversation_id: assignment.conversation_id.clone(),
        auth_token: Some(assignment.tokens[seat].clone()),
        round_id: Some(assignment.given.round_id),
        match_id: Some(entry.match_id.clone()),
    };
    (to, about)
}

/// Sends a notice to a seat, once.
fn notify(program: &Program, assignment: &Assignment, seat: usize, message: &Message) {
    let limit = program.config.game_over_limit();
    let (to, about) = to_seat(program, assignment, seat, limit);
    let _ = program.client.notify(&to, message, &about);
}

/// A fault of our own machine, for whoever can mend it.
pub fn fault(program: &Program, words: &str) {
    program.log().orchestrator(Level::Error, "fault", words);
    complain(words);
}

impl Venue for OverHttp<'_> {
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, CallError> {
        let (to, about) = to_seat(self.program, self.assignment, seat, limit);
        self.program.client.ask(&to, message, &about)
    }

    fn tell(&self, seat: usize, message: Message) {
        let program = Arc::clone(self.program);
        let assignment = Arc::clone(self.assignment);
        let work = move || notify(&program, &assignment, seat, &message);
        spawn("game-error", work);
    }

    fn tell_both(&self, message: Message) {
        self.each(&[0, 1], |seat| {
            notify(self.program, self.assignment, seat, &message);
            Some(())
        });
    }

    fn each<T: Send>(
        &self,
        seats: &[usize],
        act: impl Fn(usize) -> Option<T> + Sync,
    ) -> Option<Vec<(usize, T)>> {
        let act = &act;
        thread::scope(|scope| {
            let start = |seat: usize| {
                let named = Builder::new().name("seat".into());
                named.spawn_scoped(scope, move || act(seat))
            };
            // The first seat is this thread's own business; each other one gets a thread.
            let others: Vec<_> = seats[1..]
                .iter()
                .map(|seat| (*seat, start(*seat)))
                .collect();
            let mut all = vec![(seats[0], act(seats[0])?)];
            for (seat, started) in others {
                let acted = started.ok()?.join().ok()?;
                all.push((seat, acted?));
            }
            Some(all)
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

    fn reached(&self, state: MatchState) -> Option<()> {
        let mut live = self.assignment.live();
        live.state = state;
        (!live.dropped).then_some(())
    }

    fn draw(&self, game: &Game) -> Option<u32> {
        game.draw(self.program.seed, self.assignment.match_id())
    }

    fn keep(&self, outcome: &Outcome) -> Option<()> {
        let scoring = &self.program.config.league.scoring;
        let kept = self.assignments.keep(self.assignment, outcome, scoring);
        let is_ours = kept.unwrap_or_else(|error| {
            let match_id = self.assignment.match_id();
            let words = format!("the result of {match_id} cannot be kept: {error}");
            fault(self.program, &words);
            false
        });
        is_ours.then_some(())
    }
}
