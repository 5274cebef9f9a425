//! One match, from invitation to outcome. Every path through `play` ends in an outcome, or in none: the match was given
//! to another referee, or our own machine failed. Then nothing is reported, and the match stays open at the manager.
//!
//! Pure: whatever a match needs of the world stands in the trait `Venue`. The program plays over HTTP, a test over a
//! script. The rules are those of "A match" and "Deadlines and retries" in `protocol.md`.
//! Read next: `manager/league.rs`, where the result counts; or `referee.rs`, which has matches played and reported.

use crate::games::{self, Outcome};
use crate::net::retry::{CallError, RetryPolicy, SHOWN};
use crate::protocol::*;
use crate::wire::{Timestamp, cut};
use std::time::Duration;

/// How long things may take: one attempt at an invitation, one at a choice.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Limits {
    pub join: Duration,
    pub choice: Duration,
    pub retry: RetryPolicy,
}

/// How dealing with one player ended: with what was wanted, or with every failed attempt, in order.
pub type Acted<T> = Result<T, Vec<CallError>>;

/// Where a match takes place: how it reaches the player on a seat (0 is A, 1 is B), and what else it needs.
pub trait Venue: Sync {
    /// Sends a message and returns the one that answers it.
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, CallError>;
    /// Sends a message once, and waits until it is heard or is not going to be.
    fn notify(&self, seat: usize, message: &Message);
    /// Sends a message on the side: nobody waits for it.
    fn tell(&self, seat: usize, message: Message);
    /// Does the same with both seats at once.
    fn both<T: Send>(&self, act: impl Fn(usize) -> Acted<T> + Sync) -> [Acted<T>; 2];
    /// Waits before the next attempt.
    fn pause(&self, delay: Duration);
    /// The time since the match began, for deadlines.
    fn now(&self) -> Duration;
    /// The wall clock, to write deadlines with.
    fn clock(&self) -> Timestamp;
    /// Notes that the match has come so far; false: it is no longer ours, and ends here.
    fn reached(&self, state: MatchState) -> bool;
    /// The number.
    fn draw(&self) -> u32;
    /// Makes the outcome durable, before anybody hears of it; false: it is not ours to tell.
    fn keep(&self, outcome: &Outcome) -> bool;
}

/// Plays one match.
pub fn play(game: &StartMatch, venue: &impl Venue, limits: &Limits) -> Option<Outcome> {
    let in_play = InPlay {
        game,
        entry: &game.r#match,
        venue,
        limits,
    };
    if !venue.reached(MatchState::WaitingForPlayers) {
        return None;
    }
    let joined = venue.both(|seat| in_play.invite(seat));
    if !venue.reached(MatchState::CollectingChoices) {
        return None;
    }
    let (expected, acted) = match joined {
        [Ok(()), Ok(())] => (
            ChooseParityResponse::NAME,
            venue.both(|seat| in_play.choice(seat).map(Some)),
        ),
        joined => (GameJoinAck::NAME, joined.map(|it| it.map(|()| None))), // one joined perhaps, but is not asked
    };
    // A fault of our own machine is held against nobody.
    let we_failed = |acted: &Acted<_>| {
        acted
            .as_ref()
            .is_err_and(|failures| failures.iter().any(CallError::is_ours))
    };
    if acted.iter().any(we_failed) || !venue.reached(MatchState::DrawingNumber) {
        return None;
    }
    let players = [0, 1].map(|seat| in_play.player(seat).to_string());
    let outcome = match acted {
        [Ok(Some(a)), Ok(Some(b))] => games::judge(players, [a, b], venue.draw()),
        acted => {
            let failures = acted.each_ref().map(|it| {
                it.as_ref()
                    .err()
                    .map(|failures| sentence(failures, expected))
            });
            games::forfeit(players, acted.map(|it| it.ok().flatten()), failures)
        }
    };
    if !venue.keep(&outcome) {
        return None;
    }
    let (match_id, game_type) = (in_play.entry.match_id.clone(), GAME.into());
    let over = GameOver {
        match_id,
        game_type,
        game_result: outcome.for_players(),
        reason: None,
    }
    .into();
    let _ = venue.both(|seat| {
        venue.notify(seat, &over); // heard or not, the result stands
        Ok(())
    });
    venue.reached(MatchState::Finished);
    Some(outcome)
}

/// What follows a failed attempt at a choice.
enum Next {
    /// Nothing: the match is forfeited.
    Over,
    /// Another one, under the same deadline.
    AtOnce { left: Duration },
    /// Another one later, with a deadline of its own.
    After { delay: Duration },
}

impl Next {
    /// After a wrong answer at once, as long as time is left; after none later. The end is the last attempt, and a
    /// deadline that passes after a wrong answer.
    fn after(failures: &[CallError], policy: &RetryPolicy, left: Duration) -> Next {
        let (number, mut backwards) = (failures.len() as u32, failures.iter().rev());
        let (last, before) = (backwards.next(), backwards.next());
        let is_wrong = |attempt: Option<&CallError>| attempt.is_some_and(|it| !it.is_silence());
        let is_late = last.is_some_and(|it| it.code() == Code::E001);
        if number >= policy.attempts
            || is_late && is_wrong(before)
            || is_wrong(last) && left.is_zero()
        {
            return Next::Over;
        }
        if is_wrong(last) {
            Next::AtOnce { left }
        } else {
            Next::After {
                delay: policy.delay(number),
            }
        }
    }

    /// What the player is threatened with.
    fn consequence(&self) -> &'static str {
        match self {
            Next::Over => "Technical loss",
            Next::AtOnce { .. } => "Technical loss if valid choice not received before timeout",
            Next::After { .. } => "Technical loss if max retries exceeded",
        }
    }

    /// Until when, or from when on, the player can do better.
    fn retry_info(&self, retry_count: u32, max_retries: u32, clock: Timestamp) -> RetryInfo {
        let (next_retry_at, time_remaining) = match self {
            Next::Over => (None, Some(0.0)),
            Next::AtOnce { left } => (None, Some((left.as_secs_f64() * 10.0).round() / 10.0)),
            Next::After { delay } => (Some(clock.plus(*delay)), None),
        };
        RetryInfo {
            retry_count,
            max_retries,
            next_retry_at,
            time_remaining,
        }
    }
}

/// A match in play.
struct InPlay<'a, V: Venue> {
    game: &'a StartMatch,
    entry: &'a MatchEntry,
    venue: &'a V,
    limits: &'a Limits,
}

impl<V: Venue> InPlay<'_, V> {
    fn player(&self, seat: usize) -> &str {
        [&self.entry.player_A_id, &self.entry.player_B_id][seat]
    }

    /// Invites a player: silence, a refusal or a wrong answer is a forfeit; a broken connection is tried again.
    fn invite(&self, seat: usize) -> Acted<()> {
        let message = GameInvitation {
            league_id: self.game.league_id.clone(),
            round_id: self.game.round_id,
            match_id: self.entry.match_id.clone(),
            game_type: GAME.into(),
            role_in_match: [Role::PlayerA, Role::PlayerB][seat].to_string(),
            opponent_id: self.player(1 - seat).into(),
            player_id: Some(self.player(seat).into()),
        };
        let (message, policy, mut failures) = (message.into(), &self.limits.retry, Vec::new());
        loop {
            let answered = self.venue.ask(seat, &message, self.limits.join);
            let Err(failure) = answered.and_then(|reply| self.joined(seat, reply)) else {
                return Ok(());
            };
            let (is_ours, is_broken) = (failure.is_ours(), failure.code() == Code::E009);
            failures.push(failure);
            if is_ours {
                return Err(failures);
            }
            if !is_broken || failures.len() >= policy.attempts as usize {
                self.warn(
                    seat,
                    &failures,
                    GameJoinAck::NAME,
                    None,
                    "Technical loss: the match is forfeited",
                );
                return Err(failures);
            }
            self.venue.pause(policy.delay(failures.len() as u32));
        }
    }

    /// Whether a reply says that the player has come.
    fn joined(&self, seat: usize, reply: Message) -> Result<(), CallError> {
        let Message::GameJoinAck(ack) = reply else {
            return Err(unexpected(&reply));
        };
        self.check_match(seat, &ack.match_id, &ack.player_id)?;
        let declined = || Refusal::field(Code::E003, "accept", "got false, expected true");
        if ack.accept {
            Ok(())
        } else {
            Err(CallError::wrong(declined(), ""))
        }
    }

    /// Asks a player for its choice, as often as it may fail.
    fn choice(&self, seat: usize) -> Acted<Parity> {
        let (limit, policy, mut failures) = (self.limits.choice, &self.limits.retry, Vec::new());
        let fresh = || (self.venue.now() + limit, self.venue.clock().plus(limit));
        let (mut deadline, mut written) = fresh();
        loop {
            let left = || deadline.saturating_sub(self.venue.now());
            let answered = self.venue.ask(seat, &self.call(seat, written), left());
            let failure = match answered.and_then(|reply| self.chosen(seat, reply)) {
                Ok(parity) => return Ok(parity),
                Err(failure) => failure,
            };
            let is_ours = failure.is_ours();
            failures.push(failure);
            if is_ours {
                return Err(failures);
            }
            let next = Next::after(&failures, policy, left());
            let retry_info =
                next.retry_info(failures.len() as u32, policy.attempts, self.venue.clock());
            self.warn(
                seat,
                &failures,
                ChooseParityResponse::NAME,
                Some(retry_info),
                next.consequence(),
            );
            match next {
                Next::Over => return Err(failures),
                Next::AtOnce { .. } => {}
                Next::After { delay } => {
                    self.venue.pause(delay);
                    (deadline, written) = fresh();
                }
            }
        }
    }

    /// The call for a choice.
    fn call(&self, seat: usize, deadline: Timestamp) -> Message {
        let your_standings = [
            &self.entry.player_A_standings,
            &self.entry.player_B_standings,
        ][seat]
            .clone();
        let (opponent_id, round_id) =
            (Some(self.player(1 - seat).into()), Some(self.game.round_id));
        ChooseParityCall {
            match_id: self.entry.match_id.clone(),
            player_id: self.player(seat).into(),
            game_type: GAME.into(),
            deadline,
            context: Some(TurnContext {
                opponent_id,
                round_id,
                your_standings,
            }),
        }
        .into()
    }

    /// The choice in a reply, or what is wrong with it.
    fn chosen(&self, seat: usize, reply: Message) -> Result<Parity, CallError> {
        let Message::ChooseParityResponse(response) = reply else {
            return Err(unexpected(&reply));
        };
        self.check_match(seat, &response.match_id, &response.player_id)?;
        games::choice(&response.parity_choice.0).map_err(|refusal| CallError::wrong(refusal, ""))
    }

    /// Whether a reply is about this match and from this player.
    fn check_match(&self, seat: usize, match_id: &str, player_id: &str) -> Result<(), CallError> {
        let rows = [
            (Code::E015, "match_id", match_id, &*self.entry.match_id),
            (Code::E012, "player_id", player_id, self.player(seat)),
        ];
        let Some((code, field, came, expected)) = rows.into_iter().find(|row| row.2 != row.3)
        else {
            return Ok(());
        };
        Err(CallError::wrong(
            Refusal::got(code, field, came, format_args!("expected {expected:?}")),
            "",
        ))
    }

    /// GAME_ERROR to a player: what went wrong, what is legal, and what follows.
    fn warn(
        &self,
        seat: usize,
        failures: &[CallError],
        action: &str,
        retry_info: Option<RetryInfo>,
        threat: &str,
    ) {
        let Some(failure) = failures.last() else {
            return;
        };
        let told = Refusal::new(
            failure.code(),
            cut(&failure.told(tool(action), "", action), 2 * SHOWN),
        );
        let refusal = match failure {
            CallError::Wrong(refusal, came) if came.is_empty() => refusal.clone(),
            CallError::Wrong(refusal, came) if refusal.is_no_answer() => {
                told.with("came", came.clone())
            }
            CallError::Wrong(refusal, came) => refusal.clone().with("came", came.clone()),
            _ => told,
        };
        let error = GameError {
            match_id: self.entry.match_id.clone(),
            error_code: failure.code().to_string(),
            error_description: failure.code().name().into(),
            affected_player: self.player(seat).into(),
            action_required: action.into(),
            player_id: Some(self.player(seat).into()),
            retry_info,
            context: Some(refusal.with("expected", action).context),
            consequence: Some(threat.into()),
        };
        self.venue.tell(seat, error.into());
    }
}

/// A message, but not the one that answers.
fn unexpected(reply: &Message) -> CallError {
    let said = match reply {
        Message::GameError(it) => Some((&it.error_code, &it.error_description, &it.context)),
        Message::LeagueError(it) => Some((&it.error_code, &it.error_description, &it.context)),
        _ => None,
    };
    let said = said.map(|(code, name, context)| {
        let problem = context
            .as_ref()
            .and_then(|context| context.get("problem"))
            .and_then(|it| it.as_str());
        format!(
            " ({code} {name}{})",
            problem.map(|it| format!(": {it}")).unwrap_or_default()
        )
    });
    let came = reply.name().to_string() + &said.unwrap_or_default();
    CallError::wrong(
        Refusal::field(Code::E003, "message_type", format!("got {}", reply.name())),
        came,
    )
}

/// How a player failed, in one sentence that its student can act on: what was asked, what came, what was expected,
/// and how often. It begins where the player's name ends.
fn sentence(failures: &[CallError], expected: &str) -> String {
    let Some(last) = failures.last() else {
        return String::new();
    };
    let told = |failure: &CallError, times: &str| failure.told(tool(expected), times, expected);
    let is_same = |other: &CallError| match (other, last) {
        (CallError::Wrong(one, _), CallError::Wrong(other, _)) => one == other,
        _ => told(other, "") == told(last, ""),
    };
    let times = match (failures.iter().all(is_same), failures.len()) {
        (_, 1) => String::new(),
        (true, 2) => ", twice".into(),
        (true, 3) => ", three times".into(),
        (true, times) => format!(", {times} times"),
        (false, times) => format!(", at the last of {times} attempts"),
    };
    told(last, &times)
}

/// The tool that asks for a message.
fn tool(answer: &str) -> &str {
    Entry::of_message(answer).map_or(answer, |entry| entry.tool)
}
