//! One match, from invitation to outcome (R7). Every path through `play` ends in an outcome, or in a fault of our
//! own machine: then nothing is reported, and the manager gives the match to somebody again.
//!
//! The match talks through a `Line`: HTTP in the program, a script in tests, which so need no socket and wait
//! for nothing. A match in play is local variables only. Read next: `bin/referee.rs`, which queues and reports.

use crate::{
    clock::Timestamp,
    config::RetryPolicy,
    failure::{self, Failure},
    game::{self, Outcome},
    protocol::*,
};
use std::{
    thread,
    time::{Duration, Instant},
};

/// One of the two players of a match.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Seat {
    pub player_id: String,
    pub role: Role,
    pub standings: Option<Tally>,
}

/// A match to be played.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Game {
    pub league_id: String,
    pub round_id: u32,
    pub match_id: String,
    pub seats: [Seat; 2],
}

/// How long things may take. The first three are for one attempt each.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Limits {
    pub join: Duration,
    pub choice: Duration,
    pub game_over: Duration,
    pub retry: RetryPolicy,
    /// How long a fault of our own machine is borne with.
    pub own_faults: Duration,
}

/// How a match reaches the player on a seat, and what it needs of the world.
pub trait Line: Sync {
    /// Sends a message and returns the one that answers it.
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, Failure>;
    /// Sends a message on the side: nobody waits for it.
    fn tell(&self, seat: usize, message: Message);
    /// Waits before the next attempt.
    fn pause(&self, delay: Duration);
    /// A clock that only goes forward, for deadlines.
    fn now(&self) -> Instant;
    /// The wall clock, to write deadlines with.
    fn clock(&self) -> Timestamp;
    /// Notes that the match has come so far; false: it is no longer ours, and ends here.
    fn reached(&self, state: MatchState) -> bool;
}

/// Why there is nothing from a player.
#[derive(Debug)]
enum Miss {
    /// By its own doing, and how: it forfeits the match.
    Player(String),
    /// By a fault of our own machine, for too long: the match cannot go on here.
    Ours,
}

/// Plays one match. `draw` gives the number, `keep` makes the outcome durable before anybody hears of it (false: it
/// is not ours to tell). `None`: the match was taken from us, or our own machine failed for too long.
pub fn play(
    game: &Game,
    line: &impl Line,
    limits: &Limits,
    draw: impl FnOnce() -> u32,
    keep: impl FnOnce(&Outcome) -> bool,
) -> Option<Outcome> {
    let at_play = AtPlay { game, line, limits, patience: line.now() + limits.own_faults };
    if !line.reached(MatchState::WaitingForPlayers) {
        return None;
    }
    let joined = at_play.both(|seat| at_play.invite(seat))?;
    if !line.reached(MatchState::CollectingChoices) {
        return None;
    }
    let asked = match joined {
        [None, None] => at_play.both_choices()?,
        failures => (failures, [None, None]), // one joined perhaps, but is not asked
    };
    if !line.reached(MatchState::DrawingNumber) {
        return None;
    }
    let players = game.seats.each_ref().map(|seat| seat.player_id.clone());
    let outcome = match asked {
        ([None, None], [Some(a), Some(b)]) => game::judge(players, [a, b], draw()),
        (failures, choices) => game::forfeit(players, choices, failures),
    };
    if !keep(&outcome) {
        return None;
    }
    let over: Message = GameOver {
        match_id: game.match_id.clone(),
        game_type: GAME.into(),
        game_result: outcome.for_players(),
        reason: None,
    }
    .into();
    // One attempt: the result stands, heard or not.
    let _ = at_play.both(|seat| {
        let _ = line.ask(seat, &over, limits.game_over);
        Ok(())
    });
    line.reached(MatchState::Finished);
    Some(outcome)
}

/// How a seat failed, if it did.
type Failures = [Option<String>; 2];

/// One time of asking for a choice.
struct Attempt {
    number: u32,
    deadline: Instant,
    /// The deadline as the player is told it.
    written: Timestamp,
    /// The last answer was wrong.
    after_wrong: bool,
}

/// A match in play.
struct AtPlay<'a, L: Line> {
    game: &'a Game,
    line: &'a L,
    limits: &'a Limits,
    /// Until when our own faults are borne with.
    patience: Instant,
}

impl<L: Line> AtPlay<'_, L> {
    /// Does the same with both seats at once; `None` if our own machine failed.
    fn side_by_side<T: Send>(&self, act: impl Fn(usize) -> Result<T, Miss> + Sync) -> Option<[Result<T, String>; 2]> {
        let results = thread::scope(|scope| {
            let other = loop {
                match thread::Builder::new().name("seat".into()).spawn_scoped(scope, || act(1)) {
                    Ok(other) => break other,
                    Err(_) if self.bears_it() => {}
                    Err(_) => return None,
                }
            };
            let first = act(0);
            Some([first, other.join().unwrap_or(Err(Miss::Ours))])
        })?;
        let [a, b] = results.map(|result| match result {
            Ok(done) => Some(Ok(done)),
            Err(Miss::Player(how)) => Some(Err(how)),
            Err(Miss::Ours) => None,
        });
        Some([a?, b?])
    }

    /// Does something with both seats at once; says how each failed, if it did.
    fn both(&self, act: impl Fn(usize) -> Result<(), Miss> + Sync) -> Option<Failures> {
        self.side_by_side(act).map(|results| results.map(Result::err))
    }

    /// Asks both for their choices at once: by seat how it failed, and what it chose.
    fn both_choices(&self) -> Option<(Failures, [Option<Parity>; 2])> {
        let results = self.side_by_side(|seat| self.choice(seat))?;
        Some((results.clone().map(Result::err), results.map(Result::ok)))
    }

    /// Asks; what fails by our own fault is asked again, as long as there is patience.
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, Failure> {
        loop {
            match self.line.ask(seat, message, limit) {
                Err(failure) if failure.is_ours() && self.bears_it() => {}
                done => return done,
            }
        }
    }

    /// Our own machine failed: waits a little; false if it has failed for too long.
    fn bears_it(&self) -> bool {
        let patient = self.line.now() < self.patience;
        if patient {
            self.line.pause(self.limits.retry.base_delay);
        }
        patient
    }

    /// Invites a player: silence, a refusal or a wrong answer is a forfeit; a broken connection is tried again.
    fn invite(&self, seat: usize) -> Result<(), Miss> {
        let Game { league_id, round_id, match_id, seats } = self.game;
        let message: Message = GameInvitation {
            league_id: league_id.clone(),
            round_id: *round_id,
            match_id: match_id.clone(),
            game_type: GAME.into(),
            role_in_match: seats[seat].role,
            opponent_id: seats[1 - seat].player_id.clone(),
            player_id: Some(seats[seat].player_id.clone()),
        }
        .into();
        let again = |failure: &Failure| failure.code() == Code::E009 && !failure.is_ours();
        let pause = |delay| self.line.pause(delay);
        let answered = failure::retry(&self.limits.retry, pause, again, || self.ask(seat, &message, self.limits.join));
        match answered.and_then(|reply| self.joined(seat, reply)) {
            Ok(()) => Ok(()),
            Err(failure) if failure.is_ours() => Err(Miss::Ours),
            Err(failure) => {
                self.tell(seat, &failure, GameJoinAck::NAME, None, "Technical loss: the match is forfeited");
                Err(Miss::Player(described(&failure)))
            }
        }
    }

    /// Whether a reply says that the player has come.
    fn joined(&self, seat: usize, reply: Message) -> Result<(), Failure> {
        let Message::GameJoinAck(ack) = reply else { return Err(unexpected(&reply, GameJoinAck::NAME)) };
        self.same_match(seat, &ack.match_id, &ack.player_id)?;
        match ack.accept {
            true => Ok(()),
            false => Err(Failure::Wrong(Refusal::field(Code::E003, "accept", "the invitation was declined"))),
        }
    }

    /// Asks a player for its choice, as often as R7 says. A fault of our own is no attempt, and costs no time.
    fn choice(&self, seat: usize) -> Result<Parity, Miss> {
        let mut attempt = self.attempt(1);
        loop {
            let left = attempt.deadline.saturating_duration_since(self.line.now());
            let answered = self.line.ask(seat, &self.call(seat, attempt.written), left);
            match answered.and_then(|reply| self.chosen(seat, reply)) {
                Ok(parity) => return Ok(parity),
                Err(failure) if !failure.is_ours() => attempt = self.next_attempt(seat, attempt, &failure)?,
                Err(_) if self.bears_it() => attempt = self.attempt(attempt.number),
                Err(_) => return Err(Miss::Ours),
            }
        }
    }

    /// An attempt with a deadline of its own.
    fn attempt(&self, number: u32) -> Attempt {
        let limit = self.limits.choice;
        let (deadline, written) = (self.line.now() + limit, self.line.clock().plus(limit));
        Attempt { number, deadline, written, after_wrong: false }
    }

    /// What follows a failed attempt; the player is told. After silence or a broken connection: another one with a
    /// new deadline, after a delay. After a wrong answer: another one at once, under the same deadline.
    fn next_attempt(&self, seat: usize, last: Attempt, failure: &Failure) -> Result<Attempt, Miss> {
        let (policy, number, wrong) = (&self.limits.retry, last.number, !failure.is_trouble());
        let left = last.deadline.saturating_duration_since(self.line.now());
        let silent_after_wrong = failure.code() == Code::E001 && last.after_wrong;
        let over = number >= policy.attempts || silent_after_wrong || wrong && left.is_zero();
        let delay = policy.delay(number);
        let seconds_left = (left.as_secs_f64() * 10.0).round() / 10.0;
        let (consequence, next_retry_at, time_remaining) = match (over, wrong) {
            (true, _) => ("Technical loss", None, Some(0.0)),
            (_, true) => ("Technical loss if valid choice not received before timeout", None, Some(seconds_left)),
            (..) => ("Technical loss if max retries exceeded", Some(self.line.clock().plus(delay)), None),
        };
        let retry = RetryInfo { retry_count: number, max_retries: policy.attempts, next_retry_at, time_remaining };
        self.tell(seat, failure, ChooseParityResponse::NAME, Some(retry), consequence);
        if over {
            return Err(Miss::Player(described(failure)));
        }
        if wrong {
            return Ok(Attempt { number: number + 1, after_wrong: true, ..last });
        }
        self.line.pause(delay);
        Ok(self.attempt(number + 1))
    }

    /// The call for a choice (002 §6.1).
    fn call(&self, seat: usize, deadline: Timestamp) -> Message {
        let Seat { player_id, standings, .. } = &self.game.seats[seat];
        ChooseParityCall {
            match_id: self.game.match_id.clone(),
            player_id: player_id.clone(),
            game_type: GAME.into(),
            deadline,
            context: Some(TurnContext {
                opponent_id: Some(self.game.seats[1 - seat].player_id.clone()),
                round_id: Some(self.game.round_id),
                your_standings: standings.clone(),
            }),
        }
        .into()
    }

    /// The choice in a reply, or what is wrong with it.
    fn chosen(&self, seat: usize, reply: Message) -> Result<Parity, Failure> {
        let Message::ChooseParityResponse(response) = reply else {
            return Err(unexpected(&reply, ChooseParityResponse::NAME));
        };
        self.same_match(seat, &response.match_id, &response.player_id)?;
        game::choice(&response.parity_choice.0).map_err(Failure::Wrong)
    }

    /// Whether a reply is about this match and from this player.
    fn same_match(&self, seat: usize, match_id: &str, player_id: &str) -> Result<(), Failure> {
        let (game, player) = (&self.game.match_id, &self.game.seats[seat].player_id);
        let wrong = |code, field, came, expected: &String| {
            Err(Failure::Wrong(Refusal::field(code, field, format!("got {came:?}, expected {expected:?}"))))
        };
        match (match_id == game, player_id == player) {
            (false, _) => wrong(Code::E015, "match_id", match_id, game),
            (_, false) => wrong(Code::E012, "player_id", player_id, player),
            _ => Ok(()),
        }
    }

    /// Tells a player what went wrong (002 §9.2).
    fn tell(&self, seat: usize, failure: &Failure, action: &str, retry_info: Option<RetryInfo>, consequence: &str) {
        let player = &self.game.seats[seat].player_id;
        let context = match failure {
            Failure::Wrong(refusal) => refusal.context.clone(),
            other => Refusal::new(other.code(), other.explain()).with("expected", action).context,
        };
        let error = GameError {
            match_id: self.game.match_id.clone(),
            error_code: failure.code().to_string(),
            error_description: failure.code().name().into(),
            affected_player: player.clone(),
            action_required: action.into(),
            player_id: Some(player.clone()),
            retry_info,
            context: Some(context),
            consequence: Some(consequence.into()),
        };
        self.line.tell(seat, error.into());
    }
}

/// A message, but not the one that answers.
fn unexpected(reply: &Message, expected: &str) -> Failure {
    let said = match reply {
        Message::GameError(error) => format!(": {} {}", error.error_code, error.error_description),
        Message::LeagueError(error) => format!(": {} {}", error.error_code, error.error_description),
        _ => String::new(),
    };
    Failure::Wrong(Refusal::field(
        Code::E003,
        "message_type",
        format!("got {}{said}, expected {expected}", reply.name()),
    ))
}

/// What a player did wrong, for the reason of a result.
fn described(failure: &Failure) -> String {
    match failure.code() {
        Code::E001 => "failed to respond within timeout".into(),
        Code::E009 => "could not be reached".into(),
        code => format!("gave no valid answer ({code} {})", failure.explain()),
    }
}
