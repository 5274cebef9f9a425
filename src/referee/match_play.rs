//! How one match is played, from the invitations to the outcome.
//!
//! `play` invites both players, collects their moves until the game is over or a player has failed,
//! draws a number if the game needs one, and saves the outcome before it tells the players.
//!
//! Everything that a match needs from outside is in the trait `MatchIo`: the program plays over HTTP
//! (`http_match.rs`), the tests play a script. The messages are in `match_messages.rs`. Read next:
//! `manager/league.rs`, where the result is recorded.

use crate::games::{self, Move};
use crate::net::call_error::CallError;
use crate::program::config::SystemFile;
use crate::protocol::{ErrorCode, GameResult, Message, RetryInfo};
use crate::referee::assignments::Assignment;
use crate::values::Timestamp;
use std::time::Duration;

/// The match ends without an outcome: it was given to another referee, or our own machine failed.
#[derive(Debug)]
pub struct Aborted;

/// What a match needs from outside. Player A has seat 0, player B has seat 1.
pub trait MatchIo: Sync {
    /// Returns the configuration: timeouts and retries.
    fn config(&self) -> &SystemFile;
    /// Returns the seed of the draw, if draws are repeatable.
    fn seed(&self) -> Option<u64>;
    /// Sends a question to a player and returns its reply. `CallError::Ours` aborts the match.
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
    fn elapsed(&self) -> Duration;
    /// Returns the wall clock, for the deadlines in messages.
    fn clock(&self) -> Timestamp;
    /// Writes the result to disk. Fails if the match is no longer ours.
    fn save(&self, result: &GameResult) -> Result<(), Aborted>;
}

/// What a player is asked.
#[derive(Debug, Clone, Copy)]
pub enum Question<'a> {
    /// To join the match.
    Join,
    /// For its next move, after these.
    Move(&'a [Move]),
}

/// How a player has answered.
enum Answer {
    /// As asked, with this move (empty for an invitation).
    Valid(String),
    /// Not as asked, in any of its attempts. The sentence says how it failed.
    Forfeit(String),
}

/// Plays one match and returns its result.
pub fn play(assignment: &Assignment, io: &impl MatchIo) -> Result<GameResult, Aborted> {
    let game = assignment.game;
    let mut moves = Vec::new();
    let mut failures = [None, None]; // by seat

    // Invite both players at the same time.
    ask_players(assignment, io, &[0, 1], Question::Join, &mut failures)?;

    // Collect moves until the game is over or a player has failed.
    let mut seats = game.players_to_move(&moves);
    while failures == [None, None] && !seats.is_empty() {
        let question = Question::Move(&moves);
        let played = ask_players(assignment, io, &seats, question, &mut failures)?;
        moves.extend(played);
        seats = game.players_to_move(&moves);
    }

    // Decide who has won.
    let players = &assignment.players;
    let result = if failures == [None, None] {
        let number = game.draw(io.seed(), &assignment.match_id);
        game.judge(players, &moves, number)
    } else {
        games::forfeit(players, &moves, &failures)
    };

    // Save the result before anybody is told. It stands even if no player receives it.
    io.save(&result)?;
    io.notify_both(assignment.game_over(&result));
    Ok(result)
}

/// Asks players at the same time. Returns their moves, and adds to `failures` how players failed.
fn ask_players(
    assignment: &Assignment,
    io: &impl MatchIo,
    seats: &[usize],
    question: Question,
    failures: &mut [Option<String>; 2],
) -> Result<Vec<Move>, Aborted> {
    let answers = io.in_parallel(seats, |seat| ask(assignment, io, seat, question))?;

    let mut moves = Vec::new();
    for (seat, answer) in seats.iter().zip(answers) {
        match answer? {
            Answer::Valid(text) => moves.push(Move { seat: *seat, text }),
            Answer::Forfeit(reason) => failures[*seat] = Some(reason),
        }
    }
    Ok(moves)
}

/// Asks a player until it gives a valid answer or has no attempt left.
fn ask(
    assignment: &Assignment,
    io: &impl MatchIo,
    seat: usize,
    question: Question,
) -> Result<Answer, Aborted> {
    let config = io.config();
    let timeout = match question {
        Question::Join => config.timeouts.game_join_ack_timeout_sec.0,
        Question::Move(_) => config.timeouts.move_timeout_sec.0,
    };
    let max_attempts = config.retry_policy.max_retries;
    let mut deadline = io.elapsed() + timeout;
    let mut has_answered = false;
    let mut was_invited_again = false;
    let mut attempt = 0;

    loop {
        // Ask, and check the reply.
        let time_left = deadline.saturating_sub(io.elapsed());
        let message = assignment.message(seat, question, io.clock().plus(time_left));
        let reply = io.ask(seat, &message, time_left);
        // A player that was restarted does not know the match any more: invite it once more.
        if !was_invited_again && matches!(question, Question::Move(_)) && is_unknown_match(&reply) {
            was_invited_again = true;
            let invitation = assignment.message(seat, Question::Join, io.clock());
            let reply = io.ask(seat, &invitation, deadline.saturating_sub(io.elapsed()));
            if reply.is_ok_and(|reply| assignment.check_reply(seat, Question::Join, &reply).is_ok())
            {
                continue;
            }
        }

        let failure = match reply.and_then(|reply| assignment.check_reply(seat, question, &reply)) {
            Ok(text) => return Ok(Answer::Valid(text)),
            Err(failure) if failure.is_local() => return Err(Aborted),
            Err(failure) => failure,
        };
        attempt += 1;

        // Decide what follows. A wrong answer may be corrected at once, under the same deadline. An
        // undelivered question is repeated later, a move also if the player was too slow.
        let is_too_slow = failure.code() == ErrorCode::Timeout;
        let is_undelivered = failure.code() == ErrorCode::ConnectionError;
        let is_last_attempt = attempt == max_attempts
            || is_too_slow && has_answered
            || matches!(question, Question::Join) && !is_undelivered;
        has_answered = !failure.is_retryable();
        let delay = config.retry_policy.delay(attempt);

        // Tell the player.
        let mut retry_info = RetryInfo {
            retry_count: attempt,
            max_retries: max_attempts,
            next_retry_at: None,
            time_remaining: None,
        };
        let consequence;
        if is_last_attempt {
            retry_info.time_remaining = Some(0.0);
            consequence = "Technical loss";
        } else if has_answered {
            let seconds = deadline.saturating_sub(io.elapsed()).as_secs_f64();
            retry_info.time_remaining = Some((seconds * 10.0).round() / 10.0);
            consequence = "Technical loss if valid choice not received before timeout";
        } else {
            retry_info.next_retry_at = Some(io.clock().plus(delay));
            consequence = "Technical loss if max retries exceeded";
        }
        let expected = assignment.expected_reply(question);
        let error =
            assignment.game_error(seat, &message, &failure, expected, retry_info, consequence);
        io.notify(seat, error);

        // Give up, or ask again.
        if is_last_attempt {
            let attempts = match attempt {
                1 => String::new(),
                _ => format!(", at the last of {attempt} attempts"),
            };
            let reason = failure.describe(message.spec().method, &attempts, expected);
            return Ok(Answer::Forfeit(reason));
        }
        if !has_answered {
            io.sleep(delay);
            deadline = io.elapsed() + timeout;
        }
    }
}

/// Returns true if a player has replied that it has not joined the match.
fn is_unknown_match(reply: &Result<Message, CallError>) -> bool {
    let Ok(Message::GameError(error)) = reply else {
        return false;
    };
    let field = error
        .context
        .as_ref()
        .and_then(|context| context.get("field"));
    error.error_code == ErrorCode::MatchMismatch.as_str()
        && field.is_some_and(|field| field == "match_id")
}
