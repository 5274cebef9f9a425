//! One match is played here, from the invitations to the result.
//!
//! `play_match` invites both players, collects their moves until the game is over or a player has
//! failed, draws a number if the game needs one, and saves the result before it tells the players.
//!
//! The network, the clocks, the disk and the threads of a match are in the trait `MatchIo`: the
//! program plays over HTTP (`referee.rs`), the tests play a script. The messages are in
//! `match_messages.rs`. Read next: `player/invitations.rs`, the player's side.

use super::match_messages::{Question, Seat};
use super::tasks::Assignment;
use crate::games::{Move, MoveMessages};
use crate::net::call_error::CallError;
use crate::program::attempts::Attempts;
use crate::program::config::SystemFile;
use crate::protocol::{Call, ErrorCode, GameError, GameOver, GameResult, Message, RetryInfo};
use crate::values::Timestamp;
use std::time::Duration;

/// The match ends without a result: it was given to another referee or announced with other tokens,
/// the league is over, or our own machine failed.
#[derive(Debug)]
pub struct Aborted;

/// The network, clocks, disk and threads that a match uses. Player A has seat 0, player B has seat
/// 1.
pub trait MatchIo: Sync {
    /// Returns the contents of `system.json`: timeouts (a `Seconds` has its `Duration` in `.0`) and
    /// retries.
    fn config(&self) -> &SystemFile;
    /// Returns the seed of the draw, if draws are repeatable.
    fn seed(&self) -> Option<u64>;
    /// Sends a question to a player and returns its reply. `CallError::Local` aborts the match.
    fn call<C: Call<Reply: Message>>(
        &self,
        seat: usize,
        question: &C,
        timeout: Duration,
    ) -> Result<C::Reply, CallError>;
    /// Tells a player what was wrong, without waiting for it.
    fn send_error(&self, seat: usize, error: GameError);
    /// Tells both players the result, and waits for one attempt. More follow without waiting.
    fn send_result(&self, result: GameOver);
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

/// Plays one match and returns its result. The assignment has its game, its players and their
/// tokens.
pub fn play_match(assignment: &Assignment, io: &impl MatchIo) -> Result<GameResult, Aborted> {
    let game = assignment.game();
    let mut moves = Vec::new();
    let mut failures = [None, None]; // by seat

    // Invite both players at the same time.
    let answers = io.in_parallel(&[0, 1], |seat| {
        PlayerCall::new(assignment, seat, Question::Join, io).repeat(PlayerCall::invite)
    })?;
    for (seat, answer) in answers.into_iter().enumerate() {
        failures[seat] = answer?.err();
    }

    // Collect moves until the game is over or a player has failed.
    let mut seats = game.players_to_move(&moves);
    while failures == [None, None] && !seats.is_empty() {
        let answers = io.in_parallel(&seats, |seat| {
            let call = PlayerCall::new(assignment, seat, Question::Move, io);
            call.repeat(|call| call.ask_for_move(&moves))
        })?;
        for (seat, answer) in seats.into_iter().zip(answers) {
            match answer? {
                Ok(text) => moves.push(Move { seat, text }),
                Err(reason) => failures[seat] = Some(reason),
            }
        }
        seats = game.players_to_move(&moves);
    }

    // Decide who has won.
    let players = &assignment.players;
    let result = if failures == [None, None] {
        let number = game.draw(io.seed(), &assignment.match_id);
        game.judge(players, &moves, number)
    } else {
        game.forfeit(players, &moves, &failures) // `games/outcome.rs`
    };

    // Save the result before the players are told. It stands even if no player receives it.
    io.save(&result)?;
    io.send_result(assignment.game_over(&result));
    Ok(result)
}

/// A question to one player, with the state of its attempts.
struct PlayerCall<'a, Io> {
    /// The match, and which of its two players is asked.
    player: Seat<'a>,
    question: Question,
    io: &'a Io,
    timeout: Duration,
    /// End of the time limit, since the match began.
    deadline: Duration,
    /// Counts the attempts that have failed, and knows the delays between them.
    attempts: Attempts,
    /// True if the player corrects a wrong answer in this attempt.
    is_correction: bool,
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

impl<'a, Io: MatchIo> PlayerCall<'a, Io> {
    fn new(assignment: &'a Assignment, number: usize, question: Question, io: &'a Io) -> Self {
        let timeouts = &io.config().timeouts;
        let timeout = match question {
            Question::Join => timeouts.game_join_ack_timeout_sec.0,
            Question::Move => timeouts.move_timeout_sec.0,
        };

        PlayerCall {
            player: Seat { assignment, number },
            question,
            io,
            timeout,
            deadline: Duration::ZERO,
            attempts: Attempts::new(io.config().retry_policy),
            is_correction: false,
        }
    }

    /// Makes attempts until one succeeds or the player has lost (`next_step`). Returns its valid
    /// answer, or the inner error: a sentence that says how it has failed in all attempts. The
    /// outer error means that the match is aborted.
    fn repeat<T>(
        mut self,
        attempt: impl Fn(&mut Self) -> Result<T, CallError>,
    ) -> Result<Result<T, String>, Aborted> {
        loop {
            if !self.is_correction {
                self.deadline = self.io.time_elapsed() + self.timeout;
            }
            let failure = match attempt(&mut self) {
                Ok(answer) => return Ok(Ok(answer)),
                Err(failure) if failure.is_local() => return Err(Aborted),
                Err(failure) => failure,
            };
            let next = self.next_step(&failure);
            self.report_failure(&failure, next);

            match next {
                NextStep::GiveUp => {
                    let attempts = self.attempts.failed;
                    let reason = self
                        .player
                        .describe_failure(self.question, &failure, attempts);
                    return Ok(Err(reason));
                }
                NextStep::AskNow => self.is_correction = true,
                NextStep::AskLater(delay) => {
                    self.io.sleep(delay);
                    self.is_correction = false;
                }
            }
        }
    }

    /// Invites the player once.
    fn invite(&mut self) -> Result<(), CallError> {
        let ack = self.send(&self.player.invitation())?;
        self.player.check_ack(&ack)
    }

    /// Asks for a move once. A player that was restarted since its invitation, or has received a
    /// delayed older invitation since, is invited again, once and under the same deadline.
    fn ask_for_move(&mut self, moves: &[Move]) -> Result<String, CallError> {
        match self.send_question(moves) {
            Err(CallError::Refused(error, _)) if error.lacks_invitation() => {
                self.invite()?;
                self.send_question(moves)
            }
            answer => answer,
        }
    }

    /// Sends the question for a move, and returns the move.
    fn send_question(&self, moves: &[Move]) -> Result<String, CallError> {
        let deadline = self.io.clock().plus(self.time_left());
        match self.player.assignment.game().messages {
            MoveMessages::Parity => {
                let response = self.send(&self.player.parity_call(deadline))?;
                self.player.check_choice(moves, &response)
            }
            MoveMessages::Move => {
                let response = self.send(&self.player.move_call(moves, deadline))?;
                self.player.check_move(moves, &response)
            }
        }
    }

    /// Sends a message to the player, for the time that is left, and returns the reply.
    fn send<C: Call<Reply: Message>>(&self, question: &C) -> Result<C::Reply, CallError> {
        self.io.call(self.player.number, question, self.time_left())
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_sub(self.io.time_elapsed())
    }

    /// Counts a failed attempt and decides what follows. `max_retries` counts all attempts, also
    /// the first one.
    ///
    /// | failure                   | invitation        | call for a move                      |
    /// |---------------------------|-------------------|--------------------------------------|
    /// | no connection, HTTP error | is repeated       | is repeated                          |
    /// | token or match refused    | is repeated       | is repeated                          |
    /// | no answer in time         | the player loses  | is repeated; a correction loses      |
    /// | a wrong answer            | the player loses  | may be corrected, until the deadline |
    ///
    /// A player that refuses the token or the match may answer otherwise later: the announcement of
    /// the match is on its way to it, or its next invitation is.
    fn next_step(&mut self, failure: &CallError) -> NextStep {
        let Some(delay) = self.attempts.next_delay() else {
            return NextStep::GiveUp;
        };

        let is_invitation = self.question == Question::Join;
        let is_too_slow = failure.code() == ErrorCode::Timeout;
        if is_too_slow && (is_invitation || self.is_correction) {
            NextStep::GiveUp
        } else if failure.may_pass() {
            NextStep::AskLater(delay)
        } else if is_invitation {
            NextStep::GiveUp
        } else {
            NextStep::AskNow
        }
    }

    /// Tells the player what was wrong and what follows, with GAME_ERROR.
    fn report_failure(&self, failure: &CallError, next: NextStep) {
        let seconds_left = (self.time_left().as_secs_f64() * 10.0).round() / 10.0;
        let (time_remaining, next_retry_at, consequence) = match next {
            NextStep::GiveUp => (Some(0.0), None, "Technical loss"),
            NextStep::AskNow => {
                let consequence = "Technical loss if valid choice not received before timeout";
                (Some(seconds_left), None, consequence)
            }
            NextStep::AskLater(delay) => {
                let time = self.io.clock().plus(delay);
                (None, Some(time), "Technical loss if max retries exceeded")
            }
        };
        let retry_info = RetryInfo {
            retry_count: self.attempts.failed,
            max_retries: self.io.config().retry_policy.max_retries,
            next_retry_at,
            time_remaining,
        };

        let player = self.player;
        let error = player.game_error(self.question, failure, retry_info, consequence);
        self.io.send_error(player.number, error);
    }
}
