//! A referee is given three matches, one after the other, between two players whom we play. P01
//! always chooses the first legal move, in Even/Odd even, and P04 the last. In the first match both
//! are good, though not quick, and the referee's first report is not heard. Then P01 is silent
//! (R2M1) and lying (R3M1).

use super::*;

/// All that is said in the first match.
const ALL: &str = "P01 GAME_INVITATION R1M1; P04 GAME_INVITATION R1M1; \
    P01 CHOOSE_PARITY_CALL R1M1; P04 CHOOSE_PARITY_CALL R1M1; \
    P01 GAME_OVER R1M1; P04 GAME_OVER R1M1; manager MATCH_RESULT_REPORT R1M1";
const REPORT: &str = "manager MATCH_RESULT_REPORT R1M1";
/// So long a player takes in the first match.
const HOLD: Duration = Duration::from_secs(1);

pub const CHECKS: &[Check] = checks! { exam, it:
    MUST "Rounds" "ROUND_ANNOUNCEMENT with a match of its own is taken" "ROUND_ANNOUNCEMENT R1M1"
        it.taken();
    MUST "A match" "both players are invited" "ROUND_ANNOUNCEMENT R1M1"
        exam.both_hear(it, "GAME_INVITATION R1M1");
    FORGIVEN "A match" "both are invited at once" "P01 GAME_INVITATION R1M1"
        exam.at_once(it, "P04 GAME_INVITATION R1M1");
    MUST "Invitation" "GAME_INVITATION is exact" "P04 GAME_INVITATION R1M1"
        exam.is_exact(it, json!({"opponent_id": "P01"}));
    FORGIVEN "A match" "both are asked at once" "P01 CHOOSE_PARITY_CALL R1M1" {
        exam.rules().simultaneous.then_some(())?;
        exam.at_once(it, "P04 CHOOSE_PARITY_CALL R1M1")
    };
    MUST "Choice" "CHOOSE_PARITY_CALL is exact" "P04 CHOOSE_PARITY_CALL R1M1"
        exam.is_exact(it, json!({"player_id": "P04"}));
    MUST "Envelope" "its messages say who sends them" ALL
        it.equals("sender", &format!("referee:{}", exam.id()));
    MUST "Envelope" "one match is one conversation" ALL {
        let first = exam.step("P01 GAME_INVITATION R1M1")?;
        it.equals("conversation_id", first.text("conversation_id"))
    };
    WISE "Tokens" "players are shown their match's token, never its own"
        "P01 GAME_INVITATION R1M1" {
        let uses_ours = exam.meta()["uses_match_tokens"] == true;
        exam.match_token(it, |it| if uses_ours { it == MATCH_TOKEN } else { it.is_string() })
    };
    FORGIVEN "Result" "both players are told the result" "ROUND_ANNOUNCEMENT R1M1" {
        exam.step("P01 CHOOSE_PARITY_CALL R1M1")?;
        exam.both_hear(it, "GAME_OVER R1M1")
    };
    MUST "Result" "GAME_OVER names the right winner" "P01 GAME_OVER R1M1; P04 GAME_OVER R1M1" {
        let told = exam.first_match()?;
        let game_result = GameResult { reason: None, moves: None, ..told };
        exam.is_exact(it, json!({"game_result": game_result}))
    };
    MUST "Reporting" "MATCH_RESULT_REPORT says the same, with the league's points" REPORT {
        let told = games::match_result(&exam.first_match()?, &exam.program.config.league.scoring);
        let details = ResultDetails { reason: None, status: None, ..told.details };
        exam.is_exact(it, json!({"result": MatchResult { details, ..told }}))
    };
    MUST "Tokens" "MATCH_RESULT_REPORT carries its own token" REPORT
        it.field("auth_token", "the token of its registration", |came| came == exam.token());
    FORGIVEN "Reporting" "MATCH_RESULT_REPORT is repeated until it is acknowledged" REPORT {
        let count = exam.heard(REPORT).len();
        it.shows(count, "another one, since the first was answered HTTP 503", count > 1)
    };
    MUST "Invitation" "a silent player loses technically" "ROUND_ANNOUNCEMENT R2M1"
        exam.is_told(it, "P04 GAME_OVER R2M1", forfeited());
    MUST "Choice" "a player who chooses \"Even\" is told E004" "P01 CHOOSE_PARITY_CALL R3M1"
        exam.is_told(it, "P01 GAME_ERROR R3M1", json!({"error_code": "E004"}));
    MUST "Choice" "and is asked again" "P01 CHOOSE_PARITY_CALL R3M1" {
        let count = exam.heard("P01 CHOOSE_PARITY_CALL R3M1").len();
        it.shows(format!("{count} calls"), "more than one", count > 1)
    };
    MUST "Choice" "and loses technically in the end" "ROUND_ANNOUNCEMENT R3M1"
        exam.is_told(it, "P04 GAME_OVER R3M1", forfeited());
};

impl Exam {
    /// Waits until a match is played, or will not be: what did not come, the checks will find.
    pub fn wait_for_match(&self, match_id: &str, announced: &Exchange) {
        let config = &self.program.config;
        let longest = config.match_limit(self.rules().max_turns);
        let count = |step: &str| self.heard(&format!("{step} {match_id}")).len();
        let reports = if match_id == "R1M1" { 2 } else { 1 };
        let _ = announced.reply().is_some()
            && until(config.generic_limit(), || count("P04 GAME_INVITATION") > 0)
            && until(longest, || count("P04 GAME_OVER") > 0)
            && until(config.generic_limit(), || {
                count("manager MATCH_RESULT_REPORT") >= reports
            });
    }

    /// What a player of ours answers. In the first match it takes its time: whatever comes
    /// meanwhile comes at once.
    pub fn play_as(&self, id: &str, asked: &Exchange) -> Option<Value> {
        let (answer_name, move_field) = self.rules().answer_format();
        let call_name = super::exam::call_name(self.rules());
        let [name, match_id] = ["message_type", "match_id"].map(|key| asked.text(key));
        let answered = match name {
            GameInvitation::NAME => GameJoinAck::NAME,
            name if name == call_name => answer_name,
            _ => return Some(ok()),
        };
        match (match_id, id) {
            ("R1M1", _) => thread::sleep(HOLD),
            ("R2M1", "P01") => thread::sleep(self.timeouts().game_join_ack_timeout_sec.0 * 2),
            _ => {}
        }
        let known = json!((self.rules().legal_moves)(&[]));
        let legal = asked.message().get("legal_moves").unwrap_or(&known);
        let choice = match (match_id, id) {
            ("R3M1", "P01") => json!("Even"),
            (_, "P01") => legal[0].clone(),
            _ => legal.as_array()?.last()?.clone(),
        };
        let mut answer = self.message(answered, match_id);
        let same = |key| (key, asked.message()[key].clone());
        let own = [
            ("sender", json!(format!("player:{id}"))),
            ("player_id", json!(id)),
            same("auth_token"),
            same("move_number"),
            (move_field, choice),
        ];
        fill(&mut answer, own);
        Some(answer)
    }

    /// How the first match must have ended, with the number that was drawn in it; nothing if none
    /// was played.
    fn first_match(&self) -> Option<GameResult> {
        let over = self.step("P04 GAME_OVER R1M1")?;
        let number = over.message()["game_result"]["drawn_number"].as_u64();
        self.outcome(number.map(|number| number as u32))
    }

    /// Judges what a player of ours must have been told.
    fn is_told(&self, it: &Exchange, step: &str, wanted: Value) -> Seen {
        match self.step(step) {
            Some(told) => self.is_exact(&told, wanted),
            None => it.shows(format!("no {step}"), wanted, false),
        }
    }

    /// Whether both players were told this.
    fn both_hear(&self, it: &Exchange, message: &str) -> Option<Seen> {
        it.reply()?;
        let counts = ["P01", "P04"].map(|id| self.heard(&format!("{id} {message}")).len());
        let came = format!("{counts:?} times {message}");
        Some(it.shows(came, "one for each", !counts.contains(&0)))
    }

    /// Whether the second message came before the first was answered.
    fn at_once(&self, it: &Exchange, other: &str) -> Option<Seen> {
        let other = self.step(other)?;
        let apart = it.at.elapsed().abs_diff(other.at.elapsed());
        let came = format!("one {} ms after the other", apart.as_millis());
        Some(it.shows(came, "both before one is answered", apart < HOLD))
    }

    /// Judges a message as our own programs read it, and what must stand in it.
    fn is_exact(&self, it: &Exchange, wanted: Value) -> Seen {
        let message = it.message();
        if let Err(refusal) = parse(message) {
            return it.shows(refusal, "the fields of protocol.md", false);
        }
        let game = [Value::Null, json!(self.rules().game_type)];
        let good = has(message, &wanted) && game.contains(&message["game_type"]);
        it.shows(
            message,
            format!("what is true of this match: {wanted}"),
            good,
        )
    }
}

/// How a match ends that P01 loses technically.
fn forfeited() -> Value {
    let status = ResultStatus::TechnicalLoss;
    json!({"game_result": {"status": status, "winner_player_id": "P04", "drawn_number": null}})
}

/// Whether a value is the wanted one, or has all that the wanted one has.
fn has(value: &Value, wanted: &Value) -> bool {
    match wanted.as_object() {
        Some(wanted) => wanted.iter().all(|(key, wanted)| has(&value[key], wanted)),
        None => value == wanted,
    }
}
