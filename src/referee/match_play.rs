//! One match is played here, from the invitations to the result.
//!
//! `play` invites both players, collects their moves until the game is over or a player has failed,
//! draws a number if the game needs one, and saves the result before it tells the players.
//!
//! The network, the clocks, the disk and the threads of a match are in the trait `MatchIo`: the program plays over HTTP
//! (`http_match.rs`), the tests play a script. The messages are in `match_messages.rs`. Read next:
//! `player/invitations.rs`, the player's side.

use super::assignments::Assignment;
use super::match_messages::Question;
use crate::games::Move;
use crate::net::call_error::CallError;
use crate::program::attempts::Attempts;
use crate::program::config::SystemFile;
use crate::protocol::{ErrorCode, GameResult, Message, RetryInfo};
use crate::values::Timestamp;
use std::time::Duration;

/// The match ends without a result: it was given to another referee, or our own machine failed.
#[derive(Debug)]
pub struct Aborted;

/// The network, clocks, disk and threads that a match uses. Player A has seat 0, player B has seat 1.
pub trait MatchIo: Sync {
    /// Returns the configuration: timeouts and retries.
    fn config(&self) -> &SystemFile;
    /// Returns the seed of the draw, if draws are repeatable.
    fn seed(&self) -> Option<u64>;
    /// Sends a question to a player and returns its reply. `CallError::Local` aborts the match.
    fn ask(&self, seat: usize, message: &Message, timeout: Duration) -> Result<Message, CallError>;
    /// Sends a notification to a player without waiting for it.
    fn notify(&self, seat: usize, message: Message);
    /// Sends a notification to both players, and waits until both have received it or timed out.
    fn notify_both(&self, message: Message);
    /// Runs a task for several seats at the same time.
    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted>;
    /// Waits before the next attempt.
    fn sleep(&self, delay: Duration);
    /// Returns the time since the match began, from a monotonic clock.
    fn time_elapsed(&self) -> Duration;
    /// Returns the wall clock, for the deadlines in messages.
    fn clock(&self) -> Timestamp;
    /// Writes the result to disk. Fails if the match is no longer ours, or if the disk fails.
    fn save(&self, result: &GameResult) -> Result<(), Aborted>;
}

/// The answer of a player.
enum Answer {
    /// A valid answer, with this move (empty for an invitation).
    Valid(String),
    /// No valid answer in any attempt. The sentence says how the player failed.
    Forfeit(String),
}

/// Plays one match and returns its result.
pub fn play(assignment: &Assignment, io: &impl MatchIo) -> Result<GameResult, Aborted> {
    let game = assignment.game;
    let mut moves = Vec::new();
    let mut failures = [None, None]; // by seat

    // Invite both players at the same time.
    ask_players(assignment, io, &[0, 1], None, &mut failures)?;

    // Collect moves until the game is over or a player has failed.
    let mut seats = game.players_to_move(&moves);
    while failures == [None, None] && !seats.is_empty() {
        let played = ask_players(assignment, io, &seats, Some(&moves), &mut failures)?;
        moves.extend(played);
        seats = game.players_to_move(&moves);
    }

    // Decide who has won.
    let players = &assignment.players;
    let result = if failures == [None, None] {
        let number = game.draw(io.seed(), &assignment.match_id);
        game.judge(players, &moves, number)
    } else {
        game.forfeit(players, &moves, &failures)
    };

    // Save the result before the players are told. It stands even if no player receives it.
    io.save(&result)?;
    io.notify_both(assignment.game_over(&result));
    Ok(result)
}

/// Asks players at the same time, for their next move after these moves, or to join the match.
/// Returns their moves (with empty texts from invitations), and adds to `failures` how players failed.
fn ask_players(
    assignment: &Assignment,
    io: &impl MatchIo,
    seats: &[usize],
    moves: Option<&[Move]>,
    failures: &mut [Option<String>; 2],
) -> Result<Vec<Move>, Aborted> {
    let answers = io.in_parallel(seats, |seat| {
        let question = Question {
            assignment,
            seat,
            moves,
        };
        ask(question, io)
    })?;

    let mut played = Vec::new();
    for (seat, answer) in seats.iter().zip(answers) {
        match answer? {
            Answer::Valid(text) => played.push(Move { seat: *seat, text }),
            Answer::Forfeit(reason) => failures[*seat] = Some(reason),
        }
    }
    Ok(played)
}

/// Asks a player until it gives a valid answer or has lost (`next_step`).
fn ask(question: Question, io: &impl MatchIo) -> Result<Answer, Aborted> {
    let timeouts = &io.config().timeouts;
    let timeout = match question.moves {
        None => timeouts.game_join_ack_timeout_sec.0,
        Some(_) => timeouts.move_timeout_sec.0,
    };
    let mut call = PlayerCall {
        question,
        io,
        attempts: Attempts::new(io.config().retry_policy),
        deadline: io.time_elapsed() + timeout,
        is_correction: false,
        may_repeat_invitation: question.moves.is_some(),
    };

    loop {
        let failure = match call.ask_once() {
            Ok(text) => return Ok(Answer::Valid(text)),
            Err(failure) if failure.is_local() => return Err(Aborted),
            Err(failure) => failure,
        };
        let next = call.next_step(&failure);
        call.report_failure(&failure, next);

        match next {
            NextStep::GiveUp => {
                let reason = question.describe_failure(&failure, call.attempts.failed);
                return Ok(Answer::Forfeit(reason));
            }
            NextStep::AskNow => call.is_correction = true,
            NextStep::AskLater(delay) => {
                io.sleep(delay);
                call.is_correction = false;
                call.deadline = io.time_elapsed() + timeout;
            }
        }
    }
}

/// A question to a player, with the state of its attempts.
struct PlayerCall<'a, Io> {
    question: Question<'a>,
    io: &'a Io,
    attempts: Attempts,
    /// End of the time limit, since the match began.
    deadline: Duration,
    /// True if the player corrects a wrong answer in this attempt.
    is_correction: bool,
    /// True if a restarted player may be invited again.
    may_repeat_invitation: bool,
}

/// The consequence of a failed attempt.
#[derive(Clone, Copy)]
enum NextStep {
    /// The player loses the match.
    GiveUp,
    /// The player may correct its answer at once, under the same deadline.
    AskNow,
    /// The question is repeated after a delay, with a new deadline.
    AskLater(Duration),
}

impl<Io: MatchIo> PlayerCall<'_, Io> {
    /// Makes one attempt, and returns the move of a valid answer (empty for an invitation).
    fn ask_once(&mut self) -> Result<String, CallError> {
        let mut reply = self.send(self.question)?;
        if is_unknown_match(&reply) && self.repeat_invitation() {
            reply = self.send(self.question)?;
        }
        self.question.check_reply(&reply)
    }

    /// Invites a player again that was restarted since its invitation, but only once and under the
    /// same deadline. Returns true if it has joined.
    fn repeat_invitation(&mut self) -> bool {
        if !self.may_repeat_invitation {
            return false;
        }

        self.may_repeat_invitation = false;
        let invitation = Question {
            moves: None,
            ..self.question
        };
        let reply = self.send(invitation);
        reply.is_ok_and(|reply| invitation.check_reply(&reply).is_ok())
    }

    /// Sends a question to the player, for the time that is left, and returns the reply.
    fn send(&self, question: Question) -> Result<Message, CallError> {
        let time_left = self.time_left();
        let message = question.message(self.io.clock().plus(time_left));
        self.io.ask(question.seat, &message, time_left)
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_sub(self.io.time_elapsed())
    }

    /// Counts a failed attempt and decides what follows, until there were `max_retries` attempts.
    ///
    /// | failure                   | invitation        | call for a move                      |
    /// |---------------------------|-------------------|--------------------------------------|
    /// | no connection, HTTP error | is repeated       | is repeated                          |
    /// | no answer in time         | the player loses  | is repeated, but not a correction    |
    /// | a wrong answer            | the player loses  | may be corrected, until the deadline |
    fn next_step(&mut self, failure: &CallError) -> NextStep {
        let Some(delay) = self.attempts.next_delay() else {
            return NextStep::GiveUp;
        };

        let is_too_slow = failure.code() == ErrorCode::Timeout;
        let has_connection_failed = failure.code() == ErrorCode::ConnectionError;
        let is_invitation = self.question.moves.is_none();

        if (is_too_slow && self.is_correction) || (is_invitation && !has_connection_failed) {
            NextStep::GiveUp
        } else if failure.is_retryable() {
            NextStep::AskLater(delay)
        } else {
            NextStep::AskNow
        }
    }

    /// Tells the player what was wrong and what follows, with GAME_ERROR.
    fn report_failure(&self, failure: &CallError, next: NextStep) {
        let mut retry_info = RetryInfo {
            retry_count: self.attempts.failed,
            max_retries: self.io.config().retry_policy.max_retries,
            next_retry_at: None,
            time_remaining: None,
        };

        let consequence = match next {
            NextStep::GiveUp => {
                retry_info.time_remaining = Some(0.0);
                "Technical loss"
            }
            NextStep::AskNow => {
                let seconds = self.time_left().as_secs_f64();
                retry_info.time_remaining = Some((seconds * 10.0).round() / 10.0);
                "Technical loss if valid choice not received before timeout"
            }
            NextStep::AskLater(delay) => {
                retry_info.next_retry_at = Some(self.io.clock().plus(delay));
                "Technical loss if max retries exceeded"
            }
        };

        let error = self.question.game_error(failure, retry_info, consequence);
        self.io.notify(self.question.seat, error);
    }
}

/// Returns true if a player has replied that it has not joined the match.
fn is_unknown_match(reply: &Message) -> bool {
    let Message::GameError(error) = reply else {
        return false;
    };

    let field = error
        .context
        .as_ref()
        .and_then(|context| context.get("field"));
    error.error_code == ErrorCode::MatchMismatch.as_str()
        && field.is_some_and(|field| field == "match_id")
}
