//! One match over a script, without waiting and without a socket: `tests/scripts/match`. The script
//! has a clock of its own: silence takes the whole limit, any other act than `well` one second. The
//! script `answers` has the failures of a call, and `http.rs` runs it.

use super::rules::policy;
use super::support::golden::{self, edited};
use super::support::offline::{rules, usual};
use league::games::{self, Game, even_odd, match_result, tic_tac_toe};
use league::json::decode;
use league::net::call_error::CallError;
use league::program::config::{Seconds, SystemFile};
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
/// `refuses CODE FIELD PROBLEM`, `restarted`, `says JSON`, or the name of a failure.
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
        "refuses" => {
            let words: Vec<&str> = rest.splitn(3, ' ').collect();
            return read(
                json!({"message_type": "GAME_ERROR", "match_id": "R1M1", "error_code": words[0],
                "affected_player": id, "error_description": "NOT_YET", "action_required": "X",
                "context": {"field": words[1], "problem": words[2]}}),
            );
        }
        "restarted" => return reply("refuses E015 match_id not joined", question, id, limit),
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
    /// `fixed` pauses, an outcome that is `unkept`, or the state in which the match is given to
    /// another referee.
    setting: String,
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
        let repeated = |act: &str| match act.strip_suffix(" 3 times") {
            Some(act) => vec![act.into(); 3],
            None => vec![act.into()],
        };
        let script = |acts: &str| acts.split(", ").flat_map(repeated).collect();
        let is_board = setting.ends_with("tic_tac_toe");
        let mut config = rules().system;
        config.timeouts.game_join_ack_timeout_sec = Seconds(Duration::from_secs(5));
        config.timeouts.move_timeout_sec = Seconds(Duration::from_secs(30));
        config.retry_policy = policy(3, ["exponential", "fixed"][usize::from(setting == "fixed")]);
        Script {
            game: [&even_odd::GAME, &tic_tac_toe::GAME][usize::from(is_board)],
            config,
            setting: setting.into(),
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
                let context = error.context.as_ref().unwrap();
                assert!(context["problem"].is_string());
                assert_eq!(context["expected"], error.action_required);
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
        assert!(self.log().results.is_empty(), "{line} after the end");
        self.log().lines[seat].push(format!("{now}s {line}\n"));
    }
}

/// Returns the time of t=0s.
fn zero() -> Timestamp {
    Timestamp::parse("2025-01-15T10:30:00Z").unwrap()
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
        if self.setting == state {
            return Err(CallError::Local("the match is no longer ours".into()));
        }
        let body = json!(question);
        if name != GameInvitation::NAME {
            let deadline: Timestamp = decode(&body["deadline"]).unwrap();
            assert_eq!(deadline, self.clock().plus(timeout));
        }
        let line = match body["position"].as_str() {
            None => format!("{name} {}s", timeout.as_secs()),
            Some(position) => {
                let position = position.replace('\n', "/").replace(' ', "");
                format!("{name} {} {position}", body["move_number"])
            }
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
        let is_saved = self.log().saved.len() == 1 && self.setting != "unkept";
        assert!(is_saved, "sent before it is saved");
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
                    Some(time) => format!("again {}s", time.abs_diff(zero()).as_secs()),
                    None => format!("{}s left", retry.time_remaining.unwrap()),
                };
                let (attempt, max_attempts) = (retry.retry_count, retry.max_retries);
                format!("{attempt}/{max_attempts} {next}")
            }
        };
        self.note(seat, &format!("{} {next}", error.error_code));
        let mut log = self.log();
        let is_called = log.lines[seat].concat().contains("_CALL");
        assert_eq!(error.action_required.ends_with("_RESPONSE"), is_called);
        log.errors[seat].push(error);
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
        if self.setting == "DRAWING_NUMBER" {
            return Err(Aborted);
        }
        self.log().saved.push(outcome.clone());
        (self.setting != "unkept").then_some(()).ok_or(Aborted)
    }
}

/// Plays a match. Returns the messages to each player that has a script; and what the first error of P02
/// has besides the outcome, with the outcome. For `whole: …` the outcome as the players and the manager
/// get it.
fn run_command(command: &str) -> [String; 2] {
    let script = Script::new(&command.replace("LONG", &r"\u001b".repeat(1500))); // six bytes each
    let outcome = script.play();
    if command.starts_with("whole") {
        let outcome = outcome.unwrap();
        let sent = [json!(outcome), json!(match_result(&outcome, &usual()))];
        let sent = sent.map(|message| format!("{message}\n"));
        return [String::new(), sent.concat()];
    }
    let end = outcome.map_or("no outcome".into(), |outcome| {
        let seconds = script.time_elapsed().as_secs();
        format!("{seconds}s {}", outcome.reason.unwrap())
    });
    let log = script.log();
    let [first, second] = log.lines.each_ref().map(|lines| lines.concat());
    let steps = match command.contains(" vs ") {
        true => format!("P01\n{first}P02\n{second}"),
        false => second, // P01 plays well
    };
    let context = log.errors[1]
        .first()
        .and_then(|error| error.context.as_ref());
    let mut others = String::new();
    for (field, value) in context.into_iter().flatten() {
        let text = value.as_str().map_or(value.to_string(), String::from);
        match &**field {
            "expected" if end.contains("attempt") => {}
            "problem" if end.contains(&text) => {}
            "came" if end.contains(&text) => others += "came, as in the result\n",
            _ => others += &format!("{field}: {text}\n"),
        }
    }
    [steps, others + &end].map(count_escapes)
}

/// Writes the number of equal escapes behind the first one, in brackets.
fn count_escapes(text: String) -> String {
    let mut text = text.replace('\u{1b}', r"\u001b");
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
    golden::run_scripts("match", || {
        let mut before = String::new();
        move |command: &str| {
            let [steps, end] = run_command(command);
            if steps == before {
                return end;
            }
            before = steps;
            before.clone() + &end
        }
    });
}
