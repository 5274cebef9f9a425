//! One match, from invitation to outcome.
//!
//! `play` tells the whole story: both players are invited, moves are collected until the game is
//! over or somebody has failed, a number is drawn if the game draws one, and the outcome is kept
//! before anybody hears of it. A match can also end without an outcome, and then nothing is
//! reported: either it is no longer ours (another referee has it, or it was begun anew), or our own
//! machine failed, and `src/referee.rs` plays it again.
//!
//! Pure: what a match needs of the world stands in the trait `Venue`. The program plays over HTTP,
//! a test over a script. Which match it is stands in an `Assignment` (`assignments.rs`). The
//! messages, and the words in which a failure is told, are in `questions.rs`. Read next:
//! `manager/league.rs`, where the result counts.

use crate::games::{self, Game, Move, Outcome};
use crate::net::retry::CallError;
use crate::program::config::RetryPolicy;
use crate::protocol::*;
use crate::referee::assignments::Assignment;
use crate::referee::questions::blame;
use crate::wire::Timestamp;
use std::time::Duration;

/// How long one attempt may take, at an invitation and at a move, and how often and when it is made
/// again.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Limits {
    pub join: Duration,
    pub choice: Duration,
    pub retry: RetryPolicy,
}

/// Where a match takes place: how it reaches the player on a seat (0 is A, 1 is B), and what else
/// it needs. `None` ends the match without an outcome, except in `draw`.
pub trait Venue: Sync {
    /// Sends a message and returns the one that answers it.
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, CallError>;
    /// Sends a message that needs no answer, while the match goes on.
    fn tell(&self, seat: usize, message: Message);
    /// Sends such a message to both, and waits until both have heard it or their time is over.
    fn tell_both(&self, message: Message);
    /// Runs `act` for several seats at once; `None`, if our own machine failed in it.
    fn each<T: Send>(
        &self,
        seats: &[usize],
        act: impl Fn(usize) -> Option<T> + Sync,
    ) -> Option<Vec<(usize, T)>>;
    /// How long it waits for its players, and how often it asks.
    fn limits(&self) -> Limits;
    /// Waits before the next attempt.
    fn pause(&self, delay: Duration);
    /// The time since the match began, for deadlines.
    fn now(&self) -> Duration;
    /// The wall clock, to write deadlines with.
    fn clock(&self) -> Timestamp;
    /// Notes that the match has come so far; `None`, if it is no longer ours.
    fn reached(&self, state: MatchState) -> Option<()>;
    /// The number; `None` in a game that draws none.
    fn draw(&self, game: &Game) -> Option<u32>;
    /// Makes the outcome durable; `None`, if the match is no longer ours or the outcome cannot be
    /// kept.
    fn keep(&self, outcome: &Outcome) -> Option<()>;
}

/// Plays one match. Every `?` is an end without an outcome; when the outcome is kept, nothing takes
/// it back any more.
pub fn play(given: &Assignment, venue: &impl Venue) -> Option<Outcome> {
    let game = given.game;
    let mut moves: Vec<Move> = Vec::new();
    let mut failed = [None, None]; // by seat: how, in words

    venue.reached(MatchState::WaitingForPlayers)?;
    for (seat, joined) in venue.each(&[0, 1], |seat| ask(given, venue, seat, None))? {
        failed[seat] = joined.err();
    }

    while failed == [None, None] {
        venue.reached(MatchState::CollectingChoices)?;
        let seats = game.asked(&moves);
        if seats.is_empty() {
            break;
        }
        for (seat, moved) in venue.each(&seats, |seat| ask(given, venue, seat, Some(&moves)))? {
            match moved {
                Ok(text) => moves.push(Move { seat, text }),
                Err(how) => failed[seat] = Some(how),
            }
        }
    }

    venue.reached(MatchState::DrawingNumber)?; // the protocol's word, also where nothing is drawn
    let players = given.players.clone();
    let outcome = if failed == [None, None] {
        game.judge(players, moves, venue.draw(game))
    } else {
        games::forfeit(players, moves, failed)
    };
    venue.keep(&outcome)?;
    venue.tell_both(given.game_over(&outcome)); // heard or not, the result stands
    venue.reached(MatchState::Finished);
    Some(outcome)
}

/// Asks a player for its move after `moves`, or, without them, invites it, until it answers well or
/// has failed as often as it may. Returns the move (an empty text from whoever comes), or in words
/// how the player failed. A fault of our own machine is held against nobody: that is `None`.
fn ask(
    given: &Assignment,
    venue: &impl Venue,
    seat: usize,
    moves: Option<&[Move]>,
) -> Option<Result<String, String>> {
    let limits = venue.limits();
    let limit = moves.map_or(limits.join, |_| limits.choice);
    let policy = &limits.retry;
    let wanted = given.wanted(moves);
    let mut failures = Vec::new();
    let mut deadline = venue.now() + limit;
    loop {
        let left = || deadline.saturating_sub(venue.now());
        let question = given.question(seat, moves, venue.clock().plus(left()));
        let answered = venue.ask(seat, &question, left());
        let failure = match answered.and_then(|reply| given.answer(seat, moves, &reply)) {
            Ok(text) => return Some(Ok(text)),
            Err(failure) if failure.is_ours() => return None,
            Err(failure) => failure,
        };
        failures.push(failure.clone());
        let next = Next::after(&failures, moves.is_none(), policy, left());
        let told = next.told(failures.len(), policy, venue.clock());
        venue.tell(seat, given.game_error(seat, &failure, wanted, told));
        match next {
            Next::Forfeit => return Some(Err(blame(&failure, failures.len(), wanted))),
            Next::Mend(_) => {}
            Next::Retry(delay) => {
                venue.pause(delay);
                deadline = venue.now() + limit;
            }
        }
    }
}

/// What follows a failed attempt.
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
    /// An invitation is made again only where it did not come through (E009). A wrong move may be
    /// mended at once, under the deadline that it has; whoever then lets that pass (E001) has
    /// failed. Any other silence is met with another attempt later.
    fn after(
        failures: &[CallError],
        is_invited: bool,
        policy: &RetryPolicy,
        left: Duration,
    ) -> Next {
        match failures {
            _ if failures.len() >= policy.max_retries.0 as usize => Next::Forfeit,
            [.., last] if is_invited && last.code() != Code::E009 => Next::Forfeit,
            [.., last] if !last.is_silence() => Next::Mend(left),
            [.., before, last] if !before.is_silence() && last.code() == Code::E001 => {
                Next::Forfeit
            }
            _ => Next::Retry(policy.delay(failures.len() as u32)),
        }
    }
}
