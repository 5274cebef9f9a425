//! One match, from invitation to outcome.
//!
//! `play` tells the whole story: both players are invited, moves are collected until the game is over or somebody has
//! failed, a number is drawn if the game draws one, and the outcome is kept before anybody hears of it. A match can
//! also end without an outcome: it was given to another referee, or our own machine failed. Then nothing is reported,
//! and the manager has it played again.
//!
//! Pure: what a match needs of the world stands in the trait `Venue`. The program plays over HTTP, a test over a script.
//! The messages, and the words in which a failure is told, are in `questions.rs`. Read next: `manager/league.rs`, where
//! the result counts.

use crate::games::{self, Game, Move, Outcome};
use crate::net::retry::{CallError, RetryPolicy};
use crate::protocol::*;
use crate::referee::questions::blame;
use crate::wire::Timestamp;
use std::time::Duration;

/// How long one attempt may take, at an invitation and at a move, and how often and when it is made again.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Limits {
    pub join: Duration,
    pub choice: Duration,
    pub retry: RetryPolicy,
}

/// Where a match takes place: how it reaches the player on a seat (0 is A, 1 is B), and what else it needs. Where there
/// may be nothing, nothing is the end of the match without an outcome.
pub trait Venue: Sync {
    /// Sends a message and returns the one that answers it.
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, CallError>;
    /// Sends a message that needs no answer, while the match goes on.
    fn tell(&self, seat: usize, message: Message);
    /// Sends such a message to both, and waits until both have heard it or their time is over.
    fn tell_both(&self, message: Message);
    /// Runs `act` for several seats at once; nothing, if our own machine failed in it.
    fn each<T: Send>(
        &self,
        seats: &[usize],
        act: impl Fn(usize) -> Option<T> + Sync,
    ) -> Option<Vec<(usize, T)>>;
    /// Waits before the next attempt.
    fn pause(&self, delay: Duration);
    /// The time since the match began, for deadlines.
    fn now(&self) -> Duration;
    /// The wall clock, to write deadlines with.
    fn clock(&self) -> Timestamp;
    /// Notes that the match has come so far; nothing, if it is no longer ours.
    fn reached(&self, state: MatchState) -> Option<()>;
    /// The number, in a game that draws one.
    fn draw(&self, game: &Game) -> Option<u32>;
    /// Makes the outcome durable; nothing, if the match is no longer ours or the outcome cannot be kept.
    fn keep(&self, outcome: &Outcome) -> Option<()>;
}

/// Plays one match. Every `?` is an end without an outcome; when the outcome is kept, nothing takes it back any more.
pub fn play(given: &StartMatch, venue: &impl Venue, limits: &Limits) -> Option<Outcome> {
    let game = games::named(&given.r#match.game_type)?;
    let in_play = InPlay {
        game,
        given,
        venue,
        limits,
    };
    let mut moves: Vec<Move> = Vec::new();
    let mut failed = [None, None];

    venue.reached(MatchState::WaitingForPlayers)?;
    for (seat, joined) in venue.each(&[0, 1], |seat| in_play.invite(seat))? {
        failed[seat] = joined.err();
    }

    while failed == [None, None] {
        venue.reached(MatchState::CollectingChoices)?;
        let seats = game.asked(&moves);
        if seats.is_empty() {
            break;
        }
        for (seat, moved) in venue.each(&seats, |seat| in_play.ask_move(seat, &moves))? {
            match moved {
                Ok(text) => moves.push(Move { seat, text }),
                Err(how) => failed[seat] = Some(how),
            }
        }
    }

    venue.reached(MatchState::DrawingNumber)?;
    let players = [0, 1].map(|seat| in_play.player(seat).to_string());
    let outcome = if failed == [None, None] {
        game.judge(players, moves, venue.draw(game))
    } else {
        games::forfeit(players, moves, failed)
    };
    venue.keep(&outcome)?;
    venue.tell_both(in_play.game_over(&outcome)); // heard or not, the result stands
    venue.reached(MatchState::Finished);
    Some(outcome)
}

/// What follows a failed attempt at a move.
#[derive(Debug, Clone, Copy)]
pub enum Next {
    /// Nothing: the match is forfeited.
    Forfeit,
    /// Another attempt at once, under the same deadline, of which so much is left.
    Mend(Duration),
    /// Another attempt after this delay, with a deadline of its own.
    Retry(Duration),
}

impl Next {
    /// A wrong answer may be mended at once, silence is met with another attempt later. Whoever has answered wrongly
    /// and then lets the deadline pass gets no further attempt.
    fn after(failures: &[CallError], policy: &RetryPolicy, left: Duration) -> Next {
        match failures {
            _ if failures.len() >= policy.attempts as usize => Next::Forfeit,
            [.., last] if !last.is_silence() => Next::Mend(left),
            [.., before, last] if !before.is_silence() && last.code() == Code::E001 => {
                Next::Forfeit
            }
            _ => Next::Retry(policy.delay(failures.len() as u32)),
        }
    }
}

/// A match in play. What it asks its players, and what counts as an answer, is in `questions.rs`.
pub(super) struct InPlay<'a, V: Venue> {
    pub(super) game: &'static Game,
    pub(super) given: &'a StartMatch,
    venue: &'a V,
    limits: &'a Limits,
}

impl<V: Venue> InPlay<'_, V> {
    /// Invites a player: whether it has come, or in words how it failed. A connection that fails is tried again; a late,
    /// refusing or wrong answer is a forfeit. A fault of our own machine is held against nobody: then there is nothing.
    fn invite(&self, seat: usize) -> Option<Result<(), String>> {
        let policy = &self.limits.retry;
        let wanted = GameJoinAck::NAME;
        let invitation = self.invitation(seat);
        let mut failures = Vec::new();
        loop {
            let answered = self.venue.ask(seat, &invitation, self.limits.join);
            let failure = match answered.and_then(|reply| self.joined(seat, reply)) {
                Ok(()) => return Some(Ok(())),
                Err(failure) if failure.is_ours() => return None,
                Err(failure) => failure,
            };
            failures.push(failure.clone());
            let failed = failures.len() as u32;
            if failure.code() == Code::E009 && failed < policy.attempts {
                self.venue.pause(policy.delay(failed));
            } else {
                let error = self.game_error(seat, &failure, wanted);
                self.venue.tell(seat, error.into());
                return Some(Err(blame(&failures, wanted)));
            }
        }
    }

    /// Asks a player for a move, until it gives one or has failed as often as it may: the move, or in words how it
    /// failed. If our own machine failed, there is nothing, as in `invite`.
    fn ask_move(&self, seat: usize, moves: &[Move]) -> Option<Result<String, String>> {
        let policy = &self.limits.retry;
        let wanted = self.game.messages.answer_name;
        let mut failures = Vec::new();
        let mut deadline = self.venue.now() + self.limits.choice;
        loop {
            let left = || deadline.saturating_sub(self.venue.now());
            let call = self.call(seat, moves, self.venue.clock().plus(left()));
            let answered = self.venue.ask(seat, &call, left());
            let failure = match answered.and_then(|reply| self.moved(seat, moves, reply)) {
                Ok(text) => return Some(Ok(text)),
                Err(failure) if failure.is_ours() => return None,
                Err(failure) => failure,
            };
            failures.push(failure.clone());
            let next = Next::after(&failures, policy, left());
            let error = GameError {
                retry_info: Some(next.retry_info(&failures, policy, self.venue.clock())),
                consequence: Some(next.consequence().into()),
                ..self.game_error(seat, &failure, wanted)
            };
            self.venue.tell(seat, error.into());
            match next {
                Next::Forfeit => return Some(Err(blame(&failures, wanted))),
                Next::Mend(_) => {}
                Next::Retry(delay) => {
                    self.venue.pause(delay);
                    deadline = self.venue.now() + self.limits.choice;
                }
            }
        }
    }
}
