//! Where a match takes place in the program: over HTTP, with real threads, clocks and the outbox's
//! disk. A fault of our own machine (no thread, a full disk) ends the match without an outcome, and
//! it is played again. The rules are in `match_play.rs`.

use crate::games::{Game, Outcome};
use crate::net::letter::{About, Peer};
use crate::net::log::Level;
use crate::net::retry::{CallError, pause};
use crate::net::sync::{Watched, spawn};
use crate::program::Program;
use crate::program::terminal::complain;
use crate::protocol::*;
use crate::referee::assignments::{Assignment, Assignments};
use crate::referee::match_play::{Limits, Venue};
use crate::wire::Timestamp;
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

/// A match over HTTP.
pub struct OverHttp<'a> {
    /// The program that plays it.
    pub program: &'a Arc<Program>,
    /// Where its result is kept, and where its players are now.
    pub assignments: &'a Watched<Assignments>,
    /// Which match it is.
    pub playing: &'a Assignment,
    /// When it began.
    pub began: Instant,
}

impl OverHttp<'_> {
    /// Whom a message for a seat goes to, and what it is about.
    fn to_seat(&self, seat: usize, limit: Duration) -> (Peer, About) {
        let playing = self.playing;
        let mut all = self.assignments.lock();
        let now = all.ours(playing).map_or(playing, |ours| &*ours);
        let to = Peer {
            kind: Kind::Player,
            id: playing.players[seat].clone(),
            endpoint: now.endpoints[seat].clone(),
            max: self.program.config.max_message_bytes(),
            limit,
        };
        let about = About {
            conversation_id: playing.conversation_id.clone(),
            auth_token: playing.tokens[seat].clone(),
            round_id: Some(playing.round_id),
            match_id: Some(playing.match_id.clone()),
        };
        (to, about)
    }

    /// What sends a notice to a seat, once.
    fn notice(&self, seat: usize, message: Message) -> impl FnOnce() + Send + 'static {
        let program = Arc::clone(self.program);
        let (to, about) = self.to_seat(seat, program.config.game_over_limit());
        move || {
            let _ = program.client.notify(&to, &message, &about);
        }
    }
}

/// A fault of our own machine, for whoever can mend it.
pub fn fault(program: &Program, words: &str) {
    program.log().orchestrator(Level::Error, "fault", words);
    complain(words);
}

impl Venue for OverHttp<'_> {
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, CallError> {
        let (to, about) = self.to_seat(seat, limit);
        self.program.client.ask(&to, message, &about)
    }

    fn tell(&self, seat: usize, message: Message) {
        spawn("game-error", self.notice(seat, message));
    }

    fn tell_both(&self, message: Message) {
        self.each(&[0, 1], |seat| {
            self.notice(seat, message.clone())();
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
            let start = |seat: &usize| {
                let (named, seat) = (Builder::new().name("seat".into()), *seat);
                named.spawn_scoped(scope, move || act(seat))
            };
            // The first seat is this thread's own business; each other one gets a thread.
            let others: Vec<_> = seats[1..].iter().map(start).collect();
            let mut all = vec![(seats[0], act(seats[0])?)];
            for (seat, started) in seats[1..].iter().zip(others) {
                all.push((*seat, started.ok()?.join().ok()??));
            }
            Some(all)
        })
    }

    fn limits(&self) -> Limits {
        let timeouts = &self.program.config.system.timeouts;
        Limits {
            join: timeouts.game_join_ack_timeout_sec,
            choice: timeouts.move_timeout_sec,
            retry: self.program.config.system.retry_policy,
        }
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
        self.assignments.lock().ours(self.playing)?.state = state;
        Some(())
    }

    fn draw(&self, game: &Game) -> Option<u32> {
        game.draw(self.program.seed, &self.playing.match_id)
    }

    fn keep(&self, outcome: &Outcome) -> Option<()> {
        let scoring = &self.program.config.league.scoring;
        let playing = self.playing;
        let kept = self.assignments.lock().keep(playing, outcome, scoring);
        let not_kept = |error| {
            let match_id = &playing.match_id;
            let words = format!("the result of {match_id} cannot be kept: {error}");
            fault(self.program, &words);
        };
        kept.map_err(not_kept).ok()?.then_some(())
    }
}
