//! One match over a script, without waiting and without a socket: `tests/scripts/match`. The script
//! has a clock of its own: silence takes the whole limit, any other act than `well` one second. The
//! script `answers` has the failures of a call, and `http.rs` runs it.

use super::support::golden::{self, edited};
use super::support::offline::{rules, usual};
use league::games::{self, Game, even_odd, match_result, tic_tac_toe};
use league::json::decode;
use league::net::call_error::CallError;
use league::program::config::{Backoff, RetryPolicy, Seconds, SystemFile};
use league::protocol::{
    Call, ChooseMoveCall, ChooseParityCall, ErrorCode, GameError, GameInvitation, GameOver,
    GameResult, MatchEntry, Message, ProtocolError, ResultStatus, fill_defaults, parse,
};
use league::referee::match_play::{Aborted, MatchIo, play_match};
use league::referee::tasks::Assignment;
use league::values::Timestamp;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Returns the best reply to a question: P01 chooses even, P02 odd, and both make the first legal
/// move.
fn good(question: &impl Message, id: &str) -> Value {
    let mut reply = match question.name() {
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
    (reply["match_id"], reply["player_id"]) = ("R1M1".into(), id.into());
    reply
}

/// Reads a player's reply as the referee does, which fills in what it knows of the envelope.
fn read<R: Message>(mut reply: Value) -> Result<R, CallError> {
    let supplied = fill_defaults(&mut reply, |field| match field {
        "sender" | "conversation_id" => Some("known".into()),
        _ => None,
    });
    let read = parse(&reply).map_err(|refusal| CallError::wrong_reply(&reply, &supplied, refusal));
    Ok(read?.message)
}

/// Returns the reply of a player that does as the script says: `silence`, `well`, `well but EDITS`,
/// `says JSON`, or the name of a failure.
fn reply<C: Call<Reply: Message>>(
    act: &str,
    question: &C,
    id: &str,
    limit: Duration,
) -> Result<C::Reply, CallError> {
    let (word, rest) = act.split_once(' ').unwrap_or((act, ""));
    Err(match word {
        "well" => {
            let edits = rest.trim_start_matches("but ");
            return read(edited(good(question, id), edits));
        }
        "says" => return read(serde_json::from_str(rest).unwrap()),
        "silence" => CallError::Timeout(limit),
        "refused" => CallError::Unreachable(format!("connection refused{rest}")),
        "status" => CallError::HttpStatus(404, rest.into()),
        "crashes" => CallError::JsonRpc(-32603, format!("it crashed{rest}")),
        "text" => {
            let error = ProtocolError::new(ErrorCode::MissingField, "that is not JSON");
            CallError::wrong(error, rest)
        }
        "ours" => CallError::Local("no descriptor".into()),
        other => panic!("{other}: no such act"),
    })
}

/// A match between two players that do as a script says, and then play well.
struct Script {
    game: &'static Game,
    config: SystemFile,
    /// The outcome can be saved.
    can_save: bool,
    /// The state in which the match is given to another referee.
    taken_at: String,
    log: Mutex<MatchLog>,
}

/// The events of the match.
#[derive(Default)]
struct MatchLog {
    scripts: [VecDeque<String>; 2],
    passed: Duration,
    /// The messages to each player, a line each.
    lines: [Vec<String>; 2],
    errors: [Vec<GameError>; 2],
    results: Vec<GameOver>,
    saved: Vec<GameResult>,
    /// The number of players in each parallel step.
    parallel: Vec<usize>,
}

impl Script {
    /// `[setting: ][acts of P01 vs ]acts of P02`.
    fn new(command: &str) -> Script {
        let (setting, acts) = command.split_once(": ").unwrap_or(("", command));
        let (a, b) = acts.split_once(" vs ").unwrap_or(("well", acts));
        let script = |acts: &str| acts.split(", ").map(String::from).collect();
        let is_board = setting.ends_with("tic_tac_toe");
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
            can_save: setting != "unkept",
            taken_at: setting.to_string(),
            log: Mutex::new(MatchLog {
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

    /// Checks the rules of every match: both players are asked at once where the game allows it,
    /// both get the same result and only a saved one, and each error names its player and has a
    /// code.
    fn check(&self, outcome: Option<&GameResult>) {
        let log = self.log();
        let (joined, asked) = log.parallel.split_first().unwrap_or((&2, &[]));
        let at_once = [2, 1][usize::from(self.game.number_range.is_none())];
        assert_eq!(*joined, 2);
        assert!(asked.iter().all(|count| *count == at_once), "{asked:?}");
        match (outcome, &log.results[..]) {
            (None, []) => {}
            (Some(outcome), [sent]) => {
                assert_eq!(sent.game_result, *outcome);
                assert_eq!(log.saved.first(), Some(outcome));
                self.check_report(outcome);
            }
            (_, other) => panic!("{other:?}"),
        }
        for (id, errors) in ["P01", "P02"].iter().zip(&log.errors) {
            for error in errors {
                assert!(!matches!(error.error_code, ErrorCode::Other(_)));
                assert_eq!(error.error_code.name(), error.error_description);
                assert_eq!((&*error.match_id, &*error.affected_player), ("R1M1", *id));
                assert!(error.consequence.is_some(), "{error:?}");
                assert!(json!(error).to_string().len() < 5000, "{error:?}");
            }
        }
    }

    /// Checks that the manager replays the same outcome from the report.
    fn check_report(&self, outcome: &GameResult) {
        let details = match_result(outcome, &usual()).details;
        if outcome.status != ResultStatus::TechnicalLoss {
            let players = ["P01", "P02"].map(String::from);
            let moves = games::moves_by_seat(&players, &details.choices, &details.moves).unwrap();
            let replayed = self.game.replay(&players, &moves, details.drawn_number);
            assert_eq!(replayed.as_ref(), Ok(outcome));
        }
    }

    fn log(&self) -> MutexGuard<'_, MatchLog> {
        self.log.lock().unwrap()
    }

    fn note(&self, seat: usize, line: &str) {
        let now = self.time_elapsed().as_secs();
        self.log().lines[seat].push(format!("t={now}s {line}"));
    }
}

/// Returns the time of t=0s.
fn zero() -> Timestamp {
    Timestamp::parse("2025-01-15T10:30:00Z").unwrap()
}

/// Returns the seconds from t=0s to a time.
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
        let name = question.name();
        let state = match name {
            GameInvitation::NAME => "WAITING_FOR_PLAYERS",
            _ => "COLLECTING_CHOICES",
        };
        if self.taken_at == state {
            return Err(CallError::Local("the match is no longer ours".into()));
        }
        let limit_sec = timeout.as_secs();
        let body = json!(question);
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
        let act = self.log().scripts[seat].pop_front();
        let act = act.unwrap_or("well".into());
        let reply = reply(&act, question, ["P01", "P02"][seat], timeout);
        let takes = match &reply {
            Err(CallError::Timeout(limit)) => *limit,
            Err(failure) if failure.is_retryable() => Duration::ZERO,
            _ => Duration::from_secs(u64::from(act != "well")),
        };
        self.sleep(takes);
        reply
    }

    fn send_result(&self, result: GameOver) {
        let is_saved = self.log().saved.len() == 1 && self.can_save;
        assert!(is_saved, "sent before it is saved");
        self.note(0, "GAME_OVER");
        self.note(1, "GAME_OVER");
        self.log().results.push(result);
    }

    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted> {
        self.log().parallel.push(seats.len());
        Ok(seats.iter().map(|seat| task(*seat)).collect())
    }

    fn send_error(&self, seat: usize, error: GameError) {
        let next = match &error.retry_info {
            None => error.action_required.clone(),
            Some(retry) => {
                let next = match retry.next_retry_at {
                    Some(time) => format!("next at t={}s", at(time)),
                    None => format!("{} s left", retry.time_remaining.unwrap()),
                };
                let (attempt, max_attempts) = (retry.retry_count, retry.max_retries);
                format!("attempt {attempt} of {max_attempts}, {next}")
            }
        };
        self.note(seat, &format!("GAME_ERROR {}, {next}", error.error_code));
        self.log().errors[seat].push(error);
    }

    fn config(&self) -> &SystemFile {
        &self.config
    }

    /// Returns a seed with which 7 is drawn.
    fn seed(&self) -> Option<u64> {
        (0..).find(|seed| even_odd::GAME.draw(Some(*seed), "R1M1") == Some(7))
    }

    fn sleep(&self, delay: Duration) {
        self.log().passed += delay;
    }

    fn time_elapsed(&self) -> Duration {
        self.log().passed
    }

    fn clock(&self) -> Timestamp {
        zero().plus(self.time_elapsed())
    }

    fn save(&self, outcome: &GameResult) -> Result<(), Aborted> {
        if self.taken_at == "DRAWING_NUMBER" {
            return Err(Aborted);
        }
        self.log().saved.push(outcome.clone());
        self.can_save.then_some(()).ok_or(Aborted)
    }
}

/// Returns status, winner, points and reason in one line.
fn describe(outcome: Option<&GameResult>) -> String {
    let Some(outcome) = outcome else {
        return "no outcome".into();
    };
    let winner = outcome.winner_player_id.as_deref().unwrap_or("none");
    let score = match_result(outcome, &usual()).score;
    let [a, b] = ["P01", "P02"].map(|id| score.get(id).unwrap());
    let (status, reason) = (outcome.status, outcome.reason.as_deref().unwrap());
    format!("{status}, winner {winner}, score {a}-{b}: {reason}")
}

/// Plays a match. Returns the messages to each player that has a script, the context of the first
/// error of P02, and the outcome; for `whole: …` the outcome as the players and the manager get it.
fn run_command(command: &str) -> String {
    let script = Script::new(&command.replace("LONG", &r"\u001b".repeat(1500))); // six bytes each
    let outcome = script.play();
    if command.starts_with("whole") {
        let outcome = outcome.unwrap();
        let sent = [json!(outcome), json!(match_result(&outcome, &usual()))];
        return sent.map(|message| format!("{message}\n")).concat();
    }
    let log = script.log();
    let mut output = String::new();
    for (n, lines) in (1..).zip(&log.lines) {
        for line in lines {
            match n {
                _ if command.contains(" vs ") => output += &format!("P0{n} {line}\n"),
                2 => output += &format!("{line}\n"),
                _ => {} // P01 plays well
            }
        }
    }
    if let Some(error) = log.errors[1].first() {
        output += &format!("context {}\n", json!(error.context));
    }
    count_escapes(output + &describe(outcome.as_ref()))
}

/// Writes the number of equal escapes behind the first one, in brackets.
fn count_escapes(mut text: String) -> String {
    for escape in [r"\u{1b}", r"\\u{1b}", r"\u001b", r"\\u001b"] {
        for count in (2..=600).rev() {
            if text.contains(&escape.repeat(2)) {
                text = text.replace(&escape.repeat(count), &format!("{escape}({count})"));
            }
        }
    }
    text
}

#[test]
fn match_golden() {
    golden::run_scripts("match", || run_command);
}
