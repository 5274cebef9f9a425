//! One match over a script, without waiting or a socket: `tests/scripts/match`. The script has
//! a clock of its own, on which silence costs its whole limit and any other answer than a good one
//! a second. What a player goes through is written down as one line, and how it failed as the
//! sentence that everybody is told. How bytes become an answer is tabled in `http.rs`.

use super::support::golden::{self, edited};
use super::support::offline::{rules, usual};
use league::games::{self, Game, Move, even_odd, match_result, tic_tac_toe};
use league::json::decode;
use league::net::call_error::CallError;
use league::program::config::{Backoff, RetryPolicy, Seconds, SystemFile};
use league::protocol::*;
use league::referee::assignments::Assignment;
use league::referee::match_play::{Aborted, MatchIo, play_match};
use league::values::Timestamp;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The best answer to a question: P01 chooses even, P02 odd, and both make the first legal move.
fn good(question: &impl Message, id: &str) -> Value {
    let mut answer = match question.name() {
        ChooseParityCall::NAME => {
            let choice = if id == "P01" { "even" } else { "odd" };
            json!({"message_type": "CHOOSE_PARITY_RESPONSE", "parity_choice": choice})
        }
        ChooseMoveCall::NAME => {
            let call = json!(question);
            json!({"message_type": "CHOOSE_MOVE_RESPONSE",
                "move_number": call["move_number"], "move": call["legal_moves"][0]})
        }
        _ => json!({"message_type": "GAME_JOIN_ACK", "accept": true}),
    };
    answer["match_id"] = json!("R1M1");
    answer["player_id"] = json!(id);
    answer
}

/// An answer as the reader of players' answers reads it: what the referee knows of the envelope is
/// supplied.
fn read_as_it_comes<R: Message>(mut answer: Value) -> Result<R, CallError> {
    let supplied = fill_defaults(&mut answer, |_, field| match field {
        "sender" | "conversation_id" => Some("known".into()),
        _ => None,
    });
    let understood =
        parse(&answer).map_err(|refusal| CallError::wrong_reply(&answer, &supplied, refusal))?;
    Ok(understood.message)
}

/// What a player does with a question: `silence`, `well`, `well but EDITS`, `says JSON`, or the
/// name of a failure.
fn answer<C: Call<Reply: Message>>(
    act: &str,
    question: &C,
    id: &str,
    limit: Duration,
) -> Result<C::Reply, CallError> {
    let (word, rest) = act.split_once(' ').unwrap_or((act, ""));
    Err(match word {
        "well" => {
            let edits = rest.trim_start_matches("but ");
            return read_as_it_comes(edited(good(question, id), edits));
        }
        "says" => return read_as_it_comes(serde_json::from_str(rest).unwrap()),
        "silence" => CallError::Timeout(limit),
        "refused" => CallError::Unreachable(format!("connection refused{rest}")),
        "status" => CallError::HttpStatus(404, rest.into()),
        "crashes" => CallError::JsonRpc(-32603, format!("it crashed{rest}")),
        "text" => CallError::wrong(
            ProtocolError::new(ErrorCode::MissingField, "that is not JSON"),
            rest,
        ),
        "ours" => CallError::Local("no descriptor".into()),
        other => panic!("{other}: nobody can do that"),
    })
}

/// A match between two players who do what a script says, and then play well.
struct Script {
    game: &'static Game,
    config: SystemFile,
    /// Whether the outcome can be kept.
    keeps: bool,
    /// The state at which the match is taken away.
    taken_at: Option<MatchState>,
    seen: Mutex<MatchLog>,
}

/// What has happened in it.
#[derive(Default)]
struct MatchLog {
    scripts: [VecDeque<String>; 2],
    passed: Duration,
    /// What each player went through.
    story: [Vec<String>; 2],
    /// What each player was told.
    errors: [Vec<GameError>; 2],
    overs: Vec<GameOver>,
    kept: Vec<GameResult>,
    saved_moves: usize,
    /// How many were asked at the same time, each time.
    at_once: Vec<usize>,
}

impl Script {
    /// `[setting: ][what P01 does vs ]what P02 does`.
    fn new(command: &str) -> Script {
        let (setting, acts) = command.split_once(": ").unwrap_or(("", command));
        let (a, b) = acts.split_once(" vs ").unwrap_or(("well", acts));
        let script = |acts: &str| acts.split(", ").map(String::from).collect();
        let is_board = setting == "tic_tac_toe";
        let is_fixed = setting == "fixed";
        let mut config = rules().system;
        config.timeouts.game_join_ack_timeout_sec = Seconds(Duration::from_secs(5));
        config.timeouts.move_timeout_sec = Seconds(Duration::from_secs(30));
        config.retry_policy = RetryPolicy {
            max_retries: 3,
            base_delay_sec: Seconds(Duration::from_secs(2)),
            backoff_strategy: [Backoff::Exponential, Backoff::Fixed][usize::from(is_fixed)],
        };
        Script {
            game: [&even_odd::GAME, &tic_tac_toe::GAME][usize::from(is_board)],
            config,
            keeps: setting != "unkept",
            taken_at: decode::<MatchState>(&setting.into()).ok(),
            seen: Mutex::new(MatchLog {
                scripts: [script(a), script(b)],
                ..MatchLog::default()
            }),
        }
    }

    /// Plays the match: R1M1 of P01 and P02; 7 is drawn.
    fn play(&self) -> Option<GameResult> {
        let entry = json!({"match_id": "R1M1", "game_type": self.game.game_type, "player_A_id": "P01",
            "player_B_id": "P02", "referee_endpoint": "http://localhost:8001/mcp",
            "player_A_endpoint": "", "player_B_endpoint": ""});
        let entry = decode::<MatchEntry>(&entry).unwrap();
        let outcome = play_match(&Assignment::new("league", 1, entry).unwrap(), self).ok();
        self.check(outcome.as_ref());
        outcome
    }

    /// What holds in every match: both are asked at once where the game allows it, hear the same
    /// and only of what is kept, and each complaint is to the right player and has a code.
    fn check(&self, outcome: Option<&GameResult>) {
        let seen = self.seen();
        let (joined, asked) = seen.at_once.split_first().unwrap_or((&2, &[]));
        let (together, by_turns) = ([2].repeat(asked.len()), [1].repeat(asked.len()));
        let is_board = self.game.number_range.is_none();
        assert_eq!(
            (*joined, asked),
            (2, if is_board { &by_turns[..] } else { &together })
        );
        match (outcome, &seen.overs[..]) {
            (None, overs) => assert_eq!(overs, []),
            (Some(outcome), [over]) => {
                assert_eq!(over.game_result, *outcome);
                assert_eq!(seen.kept.first(), Some(outcome));
                self.check_report(outcome);
            }
            (_, other) => panic!("{other:?}"),
        }
        for (id, error) in ["P01", "P02"]
            .iter()
            .zip(&seen.errors)
            .flat_map(|(id, all)| all.iter().map(move |item| (id, item)))
        {
            assert!(!matches!(error.error_code, ErrorCode::Other(_)));
            assert_eq!(error.error_code.name(), error.error_description);
            assert_eq!((&*error.match_id, &*error.affected_player), ("R1M1", *id));
            assert!(error.consequence.is_some(), "{error:?}");
            assert!(json!(error).to_string().len() < 5000, "{error:?}");
        }
    }

    /// Of what the manager is told it makes the same outcome.
    fn check_report(&self, outcome: &GameResult) {
        let details = match_result(outcome, &usual()).details;
        if outcome.status != ResultStatus::TechnicalLoss {
            let players = ["P01", "P02"].map(String::from);
            let moves = games::moves_by_seat(&players, &details.choices, &details.moves).unwrap();
            let again = self.game.replay(&players, &moves, details.drawn_number);
            assert_eq!(again.as_ref(), Ok(outcome));
        }
    }

    fn seen(&self) -> MutexGuard<'_, MatchLog> {
        self.seen.lock().unwrap()
    }

    fn note(&self, seat: usize, what: &str) {
        let now = self.time_elapsed().as_secs();
        self.seen().story[seat].push(format!("t={now}s {what}"));
    }
}

/// When the script's clock stands at 0.
fn zero() -> Timestamp {
    Timestamp::parse("2025-01-15T10:30:00Z").unwrap()
}

/// Seconds from the script's beginning.
fn at(time: Timestamp) -> u64 {
    time.abs_diff(zero()).as_secs()
}

impl MatchIo for Script {
    fn call<C: Call<Reply: Message>>(
        &self,
        seat: usize,
        question: &C,
        timeout: Duration,
    ) -> Result<C::Reply, CallError> {
        let state = match question.name() {
            GameInvitation::NAME => MatchState::WaitingForPlayers,
            _ => MatchState::CollectingChoices,
        };
        if self.taken_at == Some(state) {
            return Err(CallError::Local("the match is no longer ours".into()));
        }
        let limit_sec = timeout.as_secs();
        let body = json!(question);
        let name = question.name();
        let line = match name {
            ChooseParityCall::NAME => {
                let deadline = at(decode(&body["deadline"]).unwrap());
                format!("{name}, {limit_sec} s, deadline t={deadline}s")
            }
            ChooseMoveCall::NAME => {
                let position = body["position"].as_str().unwrap().replace('\n', "/");
                format!("{name} {}, position {position}", body["move_number"])
            }
            _ => format!("{name}, {limit_sec} s"),
        };
        self.note(seat, &line);
        let act = self.seen().scripts[seat].pop_front();
        let act = act.unwrap_or("well".into());
        let answer = answer(&act, question, ["P01", "P02"][seat], timeout);
        let takes = match &answer {
            Err(CallError::Timeout(limit)) => *limit,
            Err(failure) if failure.is_retryable() => Duration::ZERO,
            _ => Duration::from_secs(u64::from(act != "well")),
        };
        self.sleep(takes);
        answer
    }

    fn send_result(&self, result: GameOver) {
        let is_kept = self.seen().kept.len() == 1 && self.keeps;
        assert!(is_kept, "told before it is kept");
        self.note(0, "GAME_OVER");
        self.note(1, "GAME_OVER");
        self.seen().overs.push(result);
    }

    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted> {
        self.seen().at_once.push(seats.len());
        Ok(seats.iter().map(|seat| task(*seat)).collect())
    }

    fn send_error(&self, seat: usize, error: GameError) {
        let next = match &error.retry_info {
            None => error.action_required.clone(),
            Some(retry) => {
                let again = retry
                    .next_retry_at
                    .map(|time| format!("next at t={}s", at(time)));
                let left = retry.time_remaining.map(|left| format!("{left} s left"));
                let next = again.or(left).unwrap();
                let (attempt, max_attempts) = (retry.retry_count, retry.max_retries);
                format!("attempt {attempt} of {max_attempts}, {next}")
            }
        };
        self.note(seat, &format!("GAME_ERROR {}, {next}", error.error_code));
        self.seen().errors[seat].push(error);
    }

    fn config(&self) -> &SystemFile {
        &self.config
    }

    /// One with which 7 is drawn.
    fn seed(&self) -> Option<u64> {
        (0..).find(|seed| even_odd::GAME.draw(Some(*seed), "R1M1") == Some(7))
    }

    fn sleep(&self, delay: Duration) {
        self.seen().passed += delay;
    }

    fn time_elapsed(&self) -> Duration {
        self.seen().passed
    }

    fn clock(&self) -> Timestamp {
        zero().plus(self.time_elapsed())
    }

    fn save_moves(&self, moves: &[Move]) -> Result<(), Aborted> {
        let number = self.seen().saved_moves + 1;
        assert_eq!(moves.len(), number, "each move is saved once");
        self.seen().saved_moves = number;
        Ok(())
    }

    fn save(&self, outcome: &GameResult) -> Result<(), Aborted> {
        if self.taken_at == Some(MatchState::DrawingNumber) {
            return Err(Aborted);
        }
        self.seen().kept.push(outcome.clone());
        match self.keeps {
            true => Ok(()),
            false => Err(Aborted),
        }
    }
}

/// Status, winner, points and reason in one line.
fn describe(outcome: Option<&GameResult>) -> String {
    let Some(outcome) = outcome else {
        return "no outcome".into();
    };
    let winner = outcome.winner_player_id.as_deref().unwrap_or("none");
    let score = match_result(outcome, &usual()).score;
    let [a, b] = ["P01", "P02"].map(|id| score.get(id).unwrap());
    let points = format!("{a}-{b}");
    let reason = outcome.reason.as_deref().unwrap();
    format!(
        "{}, winner {winner}, score {points}: {reason}",
        outcome.status
    )
}

/// What came of a match: the story of each player that has a script, what P02 was told first of
/// what it did wrongly, and how the match ended; `whole: …` has it as everybody is sent it.
fn story(command: &str) -> String {
    let script = Script::new(&command.replace("LONG", &r"\u001b".repeat(1500))); // six bytes each
    let outcome = script.play();
    if command.starts_with("whole: ") {
        let outcome = outcome.unwrap();
        let sent = [json!(outcome), json!(match_result(&outcome, &usual()))];
        return sent.map(|item| format!("{item}\n")).concat();
    }
    let seen = script.seen();
    let mut output = String::new();
    for (seat, lines) in seen.story.iter().enumerate() {
        for line in lines {
            match seat {
                _ if command.contains(" vs ") => output += &format!("P0{} {line}\n", seat + 1),
                1 => output += &format!("{line}\n"),
                _ => {} // P01 plays well
            }
        }
    }
    if let Some(error) = seen.errors[1].first() {
        output += &format!("context {}\n", json!(error.context));
    }
    output + &describe(outcome.as_ref())
}

#[test]
fn match_golden() {
    golden::run_scripts("match", || story);
}

#[test]
fn restarted_player_is_invited_again() {
    let unknown = r#"says {"message_type":"GAME_ERROR","match_id":"R1M1","error_code":"E015","affected_player":"P02","error_description":"MATCH_ID_MISMATCH","action_required":"CHOOSE_PARITY_CALL","context":{"field":"match_id","problem":"got \"R1M1\""}}"#;
    let once = story(&format!("well, {unknown}"));
    let expected = "t=0s GAME_INVITATION, 5 s
t=0s CHOOSE_PARITY_CALL, 30 s, deadline t=30s
t=1s GAME_INVITATION, 29 s
t=1s CHOOSE_PARITY_CALL, 29 s, deadline t=30s
t=1s GAME_OVER
WIN, winner P02";
    assert!(once.starts_with(expected), "{once}");
    let always = story(&format!(
        "well, {unknown}, well, {unknown}, {unknown}, well, {unknown}, {unknown}, well, {unknown}"
    ));
    let invited = always.matches("GAME_INVITATION").count();
    assert_eq!(invited, 4, "once in each attempt: {always}");
    assert!(always.contains("TECHNICAL_LOSS, winner P01"), "{always}");
}
