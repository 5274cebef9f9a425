//! The checks of a referee. It gets three matches, one after the other, between two players whom we
//! play. P01 always plays the first legal move, which is even in Even/Odd, and P04 the last. In the
//! first match both play well, though slowly, and the referee's first report gets no answer. P01
//! does not answer in the second match (R2M1), and plays illegal moves in the third (R3M1).

use super::Severity::{Recommended, Required, Tolerated};
use super::examination::Examination;
use super::exchange::{Exchange, Observation};
use super::messages::{MATCH_TOKEN, fill};
use super::{Check, check, check_accepted};
use crate::agents::until;
use league::games;
use league::net::client::ok;
use league::protocol::{
    GameInvitation, GameJoinAck, GameResult, ManagerRequest, MatchResult, MatchResultReport,
    PlayerRequest, ResultDetails, ResultStatus, parse,
};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// The steps of the first match in which the referee sends.
const ALL: &str = "P01 GAME_INVITATION R1M1; P04 GAME_INVITATION R1M1; \
    P01 CHOOSE_PARITY_CALL R1M1; P04 CHOOSE_PARITY_CALL R1M1; \
    P01 GAME_OVER R1M1; P04 GAME_OVER R1M1; manager MATCH_RESULT_REPORT R1M1";
const REPORT: &str = "manager MATCH_RESULT_REPORT R1M1";
/// Time that a player takes for each answer in the first match.
const ANSWER_DELAY: Duration = Duration::from_secs(1);

pub const CHECKS: &[Check] = &[
    check(
        Required,
        "Rounds",
        "ROUND_ANNOUNCEMENT with a match of its own is taken",
        "ROUND_ANNOUNCEMENT R1M1",
        check_accepted,
    ),
    check(
        Required,
        "A match",
        "both players are invited",
        "ROUND_ANNOUNCEMENT R1M1",
        |examination, call| examination.check_sent_to_both(call, "GAME_INVITATION R1M1"),
    ),
    check(
        Tolerated,
        "A match",
        "both are invited at once",
        "P01 GAME_INVITATION R1M1",
        |examination, call| examination.check_simultaneous(call, "P04 GAME_INVITATION R1M1"),
    ),
    check(
        Required,
        "Invitation",
        "GAME_INVITATION is exact",
        "P04 GAME_INVITATION R1M1",
        |examination, call| examination.check_message(call, &json!({"opponent_id": "P01"})),
    ),
    check(
        Tolerated,
        "A match",
        "both are asked at once",
        "P01 CHOOSE_PARITY_CALL R1M1",
        check_simultaneous_calls,
    ),
    check(
        Required,
        "Choice",
        "CHOOSE_PARITY_CALL is exact",
        "P04 CHOOSE_PARITY_CALL R1M1",
        |examination, call| examination.check_message(call, &json!({"player_id": "P04"})),
    ),
    check(
        Required,
        "Envelope",
        "its messages say who sends them",
        ALL,
        |examination, call| call.check_text("sender", &format!("referee:{}", examination.id())),
    ),
    check(
        Required,
        "Envelope",
        "one match is one conversation",
        ALL,
        check_conversation,
    ),
    check(
        Recommended,
        "Tokens",
        "players are shown their match's token, never its own",
        "P01 GAME_INVITATION R1M1",
        check_token,
    ),
    check(
        Tolerated,
        "Result",
        "both players are told the result",
        "ROUND_ANNOUNCEMENT R1M1",
        check_both_results,
    ),
    check(
        Required,
        "Result",
        "GAME_OVER names the right winner",
        "P01 GAME_OVER R1M1; P04 GAME_OVER R1M1",
        check_winner,
    ),
    check(
        Required,
        "Reporting",
        "MATCH_RESULT_REPORT says the same, with the league's points",
        REPORT,
        check_report,
    ),
    check(
        Required,
        "Tokens",
        "MATCH_RESULT_REPORT carries its own token",
        REPORT,
        check_report_token,
    ),
    check(
        Tolerated,
        "Reporting",
        "MATCH_RESULT_REPORT is repeated until it is acknowledged",
        REPORT,
        check_repeated_report,
    ),
    check(
        Required,
        "Invitation",
        "a silent player loses technically",
        "ROUND_ANNOUNCEMENT R2M1",
        |examination, call| {
            examination.check_sent(call, "P04 GAME_OVER R2M1", &technical_loss_of_p01())
        },
    ),
    check(
        Required,
        "Choice",
        "a player who chooses \"Even\" is told E004",
        "P01 CHOOSE_PARITY_CALL R3M1",
        |examination, call| {
            examination.check_sent(call, "P01 GAME_ERROR R3M1", &json!({"error_code": "E004"}))
        },
    ),
    check(
        Required,
        "Choice",
        "and is asked again",
        "P01 CHOOSE_PARITY_CALL R3M1",
        check_second_call,
    ),
    check(
        Required,
        "Choice",
        "and loses technically in the end",
        "ROUND_ANNOUNCEMENT R3M1",
        |examination, call| {
            examination.check_sent(call, "P04 GAME_OVER R3M1", &technical_loss_of_p01())
        },
    ),
];

fn check_simultaneous_calls(examination: &Examination, call: &Exchange) -> Option<Observation> {
    if !examination.game().simultaneous {
        return None;
    }
    examination.check_simultaneous(call, "P04 CHOOSE_PARITY_CALL R1M1")
}

fn check_conversation(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let first = examination.exchange("P01 GAME_INVITATION R1M1")?;
    call.check_text("conversation_id", first.text("conversation_id"))
}

fn check_token(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let uses_our_tokens = examination.meta()["uses_match_tokens"] == true;
    examination.check_match_token(call, |token| {
        if uses_our_tokens {
            token == MATCH_TOKEN
        } else {
            token.is_string()
        }
    })
}

fn check_both_results(examination: &Examination, call: &Exchange) -> Option<Observation> {
    examination.exchange("P01 CHOOSE_PARITY_CALL R1M1")?;
    examination.check_sent_to_both(call, "GAME_OVER R1M1")
}

fn check_winner(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let expected = GameResult {
        reason: None,
        moves: None,
        ..examination.first_result()?
    };
    examination.check_message(call, &json!({"game_result": expected}))
}

fn check_report(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let scoring = &examination.program.config.league.scoring;
    let result = games::match_result(&examination.first_result()?, scoring);
    let details = ResultDetails {
        reason: None,
        status: None,
        ..result.details
    };
    let expected = MatchResult { details, ..result };
    examination.check_message(call, &json!({"result": expected}))
}

fn check_report_token(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let expected = "the token of its registration";
    call.check_field("auth_token", expected, |token| token == examination.token())
}

fn check_repeated_report(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let count = examination.exchanges(REPORT).len();
    let expected = "another one, since the first was answered HTTP 503";
    Some(call.observe(count, expected, count > 1))
}

fn check_second_call(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let count = examination.exchanges("P01 CHOOSE_PARITY_CALL R3M1").len();
    Some(call.observe(format!("{count} calls"), "more than one", count > 1))
}

impl Examination {
    /// Waits until a match is played, or its time has passed. The checks find what is missing then.
    pub fn wait_for_match(&self, match_id: &str, announcement: &Exchange) {
        if announcement.reply().is_none() {
            return;
        }

        let config = &self.program.config;
        let report_count = if match_id == "R1M1" { 2 } else { 1 };
        for (name, count, timeout) in [
            ("P04 GAME_INVITATION", 1, config.generic_limit()),
            (
                "P04 GAME_OVER",
                1,
                config.match_limit(self.game().max_turns),
            ),
            (
                "manager MATCH_RESULT_REPORT",
                report_count,
                config.generic_limit(),
            ),
        ] {
            let step = format!("{name} {match_id}");
            if !until(timeout, || self.exchanges(&step).len() >= count) {
                return;
            }
        }
    }

    /// Returns the answer of a player of ours. In the first match it takes some time, so that calls
    /// that arrive meanwhile were sent at the same time.
    pub fn answer_as_player(&self, id: &str, call: &Exchange) -> Option<Value> {
        let (call_name, answer_name) = self.game().messages.message_types();
        let message_type = call.text("message_type");
        let match_id = call.text("match_id");
        let answer_type = if message_type == GameInvitation::NAME {
            GameJoinAck::NAME
        } else if message_type == call_name {
            answer_name
        } else {
            return Some(ok());
        };

        // Take the time that the match needs.
        match (match_id, id) {
            ("R1M1", _) => thread::sleep(ANSWER_DELAY),
            ("R2M1", "P01") => thread::sleep(self.timeouts().game_join_ack_timeout_sec.0 * 2),
            _ => {}
        }

        // Choose the move.
        let first_moves = json!((self.game().legal_moves)(&[]));
        let legal_moves = call.message().get("legal_moves").unwrap_or(&first_moves);
        let choice = match (match_id, id) {
            ("R3M1", "P01") => json!("Even"),
            (_, "P01") => legal_moves[0].clone(),
            _ => legal_moves.as_array()?.last()?.clone(),
        };

        let fields = [
            ("sender", json!(format!("player:{id}"))),
            ("player_id", json!(id)),
            ("auth_token", call.message()["auth_token"].clone()),
            ("move_number", call.message()["move_number"].clone()),
            (self.game().messages.field(), choice),
        ];
        let mut answer = self.message(answer_type, match_id);
        fill(&mut answer, &fields);
        Some(answer)
    }

    /// Returns the result that the first match must have, with the number that was drawn in it;
    /// none if it was not played.
    fn first_result(&self) -> Option<GameResult> {
        let game_over = self.exchange("P04 GAME_OVER R1M1")?;
        let number = game_over.message()["game_result"]["drawn_number"].as_u64();
        self.expected_result(number.map(|number| number as u32))
    }

    /// Checks a message that the referee must have sent by now.
    fn check_sent(&self, call: &Exchange, step: &str, expected: &Value) -> Option<Observation> {
        match self.exchange(step) {
            Some(sent) => self.check_message(&sent, expected),
            None => Some(call.observe(format!("no {step}"), expected, false)),
        }
    }

    /// Checks that the referee has sent a message to both players.
    fn check_sent_to_both(&self, call: &Exchange, message: &str) -> Option<Observation> {
        call.reply()?;
        let counts = ["P01", "P04"].map(|id| self.exchanges(&format!("{id} {message}")).len());
        let received = format!("{counts:?} times {message}");
        Some(call.observe(received, "one for each", !counts.contains(&0)))
    }

    /// Checks that the second call was received before the first was answered.
    fn check_simultaneous(&self, first: &Exchange, second: &str) -> Option<Observation> {
        let second = self.exchange(second)?;
        let interval = first.time.elapsed().abs_diff(second.time.elapsed());
        let received = format!("one {} ms after the other", interval.as_millis());
        let is_good = interval < ANSWER_DELAY;
        Some(first.observe(received, "both before one is answered", is_good))
    }

    /// Checks a message: our own programs must be able to read it, and it must have these values.
    fn check_message(&self, call: &Exchange, expected: &Value) -> Option<Observation> {
        let message = call.message();
        let refusal = if message["message_type"] == MatchResultReport::NAME {
            parse::<ManagerRequest>(message).err()
        } else {
            parse::<PlayerRequest>(message).err()
        };
        if let Some(refusal) = refusal {
            return Some(call.observe(refusal, "the fields of protocol.md", false));
        }

        let game_types = [Value::Null, json!(self.game().game_type)];
        let is_good = contains(message, expected) && game_types.contains(&message["game_type"]);
        let expected = format!("what is true of this match: {expected}");
        Some(call.observe(message, expected, is_good))
    }
}

fn technical_loss_of_p01() -> Value {
    let status = ResultStatus::TechnicalLoss;
    json!({"game_result": {"status": status, "winner_player_id": "P04", "drawn_number": null}})
}

/// Returns true if a value is the expected one, or has all fields of the expected object.
fn contains(value: &Value, expected: &Value) -> bool {
    match expected.as_object() {
        Some(fields) => fields
            .iter()
            .all(|(key, expected)| contains(&value[key], expected)),
        None => value == expected,
    }
}
