//! A referee is given four matches, one after the other, between two players whom we play. P91 always chooses the first
//! legal move, in Even/Odd even, and P92 the last. In the first match both are good, and the referee's first report is not heard. Then P91 is slow (R2M1),
//! silent (R3M1) and lying (R4M1).

use super::*;

/// All that is said in the first match.
const ALL: &str = "P91 GAME_INVITATION R1M1; P92 GAME_INVITATION R1M1; \
    P91 CHOOSE_PARITY_CALL R1M1; P92 CHOOSE_PARITY_CALL R1M1; \
    P91 GAME_OVER R1M1; P92 GAME_OVER R1M1; manager MATCH_RESULT_REPORT R1M1";
const REPORT: &str = "manager MATCH_RESULT_REPORT R1M1";

pub const CHECKS: &[Check] = checks! { exam, it:
    MUST "Registration" "max_concurrent_matches" ""
        it.field("_meta/max_concurrent_matches", "1 to 10", is::<Within<1, 10>>);
    MUST "Rounds" "ROUND_ANNOUNCEMENT with a match of its own is taken" "ROUND_ANNOUNCEMENT R1M1"
        it.taken();
    MUST "A match" "both players are invited" "ROUND_ANNOUNCEMENT R1M1" {
        it.reply()?;
        let count = |id| exam.heard(&format!("{id} GAME_INVITATION R1M1")).len();
        let invited = ["P91", "P92"].map(count);
        it.shows(format!("{invited:?} invitations"), "one for each", !invited.contains(&0))
    };
    FORGIVEN "A match" "both are invited at once" "P91 GAME_INVITATION R1M1"
        exam.at_once(it, "P92 GAME_INVITATION R1M1");
    MUST "Invitation" "GAME_INVITATION is exact" "P92 GAME_INVITATION R1M1"
        exam.exact::<GameInvitation>(it, |it| {
            it["opponent_id"] == "P91" && it["game_type"] == exam.rules().game_type
        });
    FORGIVEN "A match" "both are asked at once" "P91 CHOOSE_PARITY_CALL R1M1" {
        exam.rules().at_once.then_some(())?;
        exam.at_once(it, "P92 CHOOSE_PARITY_CALL R1M1")
    };
    MUST "Choice" "CHOOSE_PARITY_CALL is exact" "P92 CHOOSE_PARITY_CALL R1M1" {
        let rules = exam.rules();
        let good = |it: &Value| it["player_id"] == "P92" && it["game_type"] == rules.game_type;
        match rules.messages.call_name == ChooseParityCall::NAME {
            true => exam.exact::<ChooseParityCall>(it, good),
            false => exam.exact::<ChooseMoveCall>(it, good),
        }
    };
    MUST "Envelope" "its messages have a whole envelope" ALL {
        let named = format!("referee:{}", exam.id());
        match Envelope::read(it.message()) {
            Err(fault) => Some(it.shows(fault, "all five fields", false)),
            Ok(_) => worst([it.equals("protocol", PROTOCOL), it.equals("sender", &named)]),
        }
    };
    MUST "Envelope" "one match is one conversation" ALL {
        let first = exam.step("P91 GAME_INVITATION R1M1")?;
        it.equals("conversation_id", first.text("conversation_id"))
    };
    WISE "Tokens" "players are shown their match's token, never its own"
        "P91 GAME_INVITATION R1M1" {
        let (registered, right) = (exam.registration(), exam.token("P91"));
        let uses_ours = registered.message()["referee_meta"]["uses_match_tokens"] == true;
        exam.match_token(it, |it| if uses_ours { *it == right } else { it.is_string() })
    };
    FORGIVEN "Result" "GAME_OVER is told to both alike" "ROUND_ANNOUNCEMENT R1M1" {
        exam.step("P91 CHOOSE_PARITY_CALL R1M1")?;
        let [a, b] = ["P91", "P92"].map(|id| exam.over(&format!("{id} GAME_OVER R1M1")));
        it.shows(format!("{a} and {b}"), "the same result for both", a == b && !a.is_null())
    };
    MUST "Result" "GAME_OVER names the right winner" "P92 GAME_OVER R1M1"
        exam.exact::<GameOver>(it, |it| {
            let Some(outcome) = exam.first_match() else {
                return false; // such a number cannot be drawn
            };
            let (told, came) = (json!(outcome.for_players()), &it["game_result"]);
            let keys = ["status", "winner_player_id", "drawn_number", "number_parity"];
            keys.iter().all(|key| came[*key] == told[*key])
                && (exam.rules().draws.is_none() || came["choices"] == told["choices"])
        });
    MUST "Reporting" "MATCH_RESULT_REPORT says the same, with the league's points" REPORT {
        let outcome = exam.first_match()?;
        let told = json!(outcome.for_manager(&exam.program.config.league.scoring));
        let came = &it.message()["result"];
        let played = if exam.rules().draws.is_some() { "choices" } else { "moves" };
        let good = MatchResultReport::read(it.message()).is_ok()
            && came["winner"] == told["winner"]
            && came["score"] == told["score"]
            && came["details"]["drawn_number"] == told["details"]["drawn_number"]
            && came["details"][played] == told["details"][played];
        it.shows(came, told, good)
    };
    MUST "Tokens" "MATCH_RESULT_REPORT carries its own token" REPORT {
        let own = exam.token(&exam.id());
        it.field("auth_token", "the token of its registration", |came| *came == own)
    };
    FORGIVEN "Reporting" "MATCH_RESULT_REPORT is repeated until it is acknowledged" REPORT {
        let count = exam.heard(REPORT).len();
        it.shows(count, "another one, since the first was answered HTTP 503", count > 1)
    };
    MUST "Deadlines and retries" "a slow player's choice counts" "ROUND_ANNOUNCEMENT R2M1" {
        let over = exam.over("P92 GAME_OVER R2M1");
        let is_played = [Ending::Win, Ending::Draw].iter().any(|it| over["status"] == it.word());
        it.shows(&over, "the result of a match that was played", is_played)
    };
    MUST "Invitation" "a silent player loses technically" "ROUND_ANNOUNCEMENT R3M1"
        exam.is_forfeited(it, "P92 GAME_OVER R3M1");
    MUST "Choice" "a player who chooses \"Even\" is told E004" "P91 CHOOSE_PARITY_CALL R4M1" {
        let error = || exam.step("P91 GAME_ERROR R4M1");
        until(exam.program.config.game_over_limit(), || error().is_some());
        let came = error().map_or("no GAME_ERROR".into(), |it| it.text("error_code").to_string());
        it.shows(&came, "GAME_ERROR with E004", came == "E004")
    };
    MUST "Choice" "and is asked again" "P91 CHOOSE_PARITY_CALL R4M1" {
        let count = exam.heard("P91 CHOOSE_PARITY_CALL R4M1").len();
        it.shows(format!("{count} calls"), "more than one", count > 1)
    };
    MUST "Choice" "and loses technically in the end" "ROUND_ANNOUNCEMENT R4M1"
        exam.is_forfeited(it, "P92 GAME_OVER R4M1");
};

impl Exam {
    /// Waits until a match is played, or will not be: what did not come, the checks will find.
    pub fn wait_for_match(&self, match_id: &str, announced: &Exchange) {
        let config = &self.program.config;
        let count = |step: &str| self.heard(&format!("{step} {match_id}")).len();
        let both = |name: &str| ["P91", "P92"].map(|id| count(&format!("{id} {name}")) > 0);
        let is_invited = || both("GAME_INVITATION") != [false; 2];
        let is_over = || both("GAME_OVER") != [false; 2];
        let reported = || count("manager MATCH_RESULT_REPORT") > usize::from(match_id == "R1M1");
        let is_done = || both("GAME_OVER") == [true; 2] && reported();
        let _ = announced.reply().is_some()
            && until(config.generic_limit(), is_invited)
            && until(config.match_limit(), is_over)
            && until(config.generic_limit(), is_done);
    }

    /// What a player of ours answers. In the first match it takes its time: whatever comes meanwhile comes at once.
    pub fn play_as(&self, id: &str, asked: &Exchange) -> Option<Value> {
        let timeouts = &self.program.config.system.timeouts;
        let messages = self.rules().messages;
        let joins = timeouts.game_join_ack_timeout_sec.0;
        let [name, match_id] = ["message_type", "match_id"].map(|key| asked.text(key));
        let answered = match name {
            GameInvitation::NAME => GameJoinAck::NAME,
            name if name == messages.call_name => messages.answer_name,
            _ => return Some(ok()),
        };
        match (match_id, id) {
            ("R1M1", _) => pause(self.hold()),
            ("R2M1", "P91") if name == messages.call_name => {
                pause((timeouts.move_timeout_sec.0 / 2).min(Duration::from_secs(2)));
            }
            ("R3M1", "P91") if name == GameInvitation::NAME => pause(joins * 2),
            _ => {}
        }
        let mut answer = self.message(answered, "R1M1");
        answer["sender"] = format!("player:{id}").into();
        answer["player_id"] = id.into();
        answer["match_id"] = match_id.into();
        answer["auth_token"] = asked.message()["auth_token"].clone();
        if name == messages.call_name {
            let legal = asked.message()["legal_moves"].as_array().cloned();
            let legal = legal.unwrap_or(json!((self.rules().legal)(&[])).as_array()?.clone());
            let choice = if id == "P91" {
                legal.first()
            } else {
                legal.last()
            };
            let is_lie = (match_id, id) == ("R4M1", "P91");
            answer[messages.field] = if is_lie {
                "Even".into()
            } else {
                choice?.clone()
            };
            if answer.get("move_number").is_some() {
                answer["move_number"] = asked.message()["move_number"].clone();
            }
        }
        Some(answer)
    }

    /// So long a player takes in the first match.
    fn hold(&self) -> Duration {
        let timeouts = &self.program.config.system.timeouts;
        let limits = [
            &timeouts.game_join_ack_timeout_sec,
            &timeouts.move_timeout_sec,
        ];
        limits
            .map(|it| it.0 / 2)
            .into_iter()
            .fold(Duration::from_millis(500), Duration::min)
    }

    /// How a match ended, as a player was told; null if it was not.
    fn over(&self, step: &str) -> Value {
        let told = self.step(step);
        told.map_or(Value::Null, |it| it.message()["game_result"].clone())
    }

    /// How the first match must have ended, with the number that was drawn in it.
    fn first_match(&self) -> Option<Outcome> {
        let over = self.over("P92 GAME_OVER R1M1");
        let number = over["drawn_number"].as_u64().map(|number| number as u32);
        self.outcome(["P91", "P92"], number)
    }

    fn is_forfeited(&self, it: &Exchange, step: &str) -> Finding {
        let over = self.over(step);
        let good = over["status"] == Ending::TechnicalLoss.word()
            && over["winner_player_id"] == "P92"
            && over["drawn_number"].is_null();
        it.shows(
            &over,
            "TECHNICAL_LOSS without a number, and P92 as the winner",
            good,
        )
    }

    /// Whether the second message came before the first was answered.
    fn at_once(&self, it: &Exchange, other: &str) -> Option<Finding> {
        let other = self.step(other)?;
        let apart = it.at.max(other.at) - it.at.min(other.at);
        let came = format!("one {} ms after the other", apart.as_millis());
        it.shows(came, "both before one is answered", apart < self.hold())
            .into()
    }

    /// Judges what a player is told, the fields and what is true of the match.
    fn exact<T: Wire>(&self, it: &Exchange, good: impl Fn(&Value) -> bool) -> Finding {
        let expected = "the fields of protocol.md, and what is true of this match";
        match T::read(it.message()) {
            Ok(_) => it.shows(it.message(), expected, good(it.message())),
            Err(fault) => it.shows(fault, expected, false),
        }
    }
}
