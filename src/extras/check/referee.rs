//! What a referee is examined in: it is given four matches, one after the other, between two players whom we play. In
//! the first both are good, and the first report is not heard; then P91 is slow, silent, and lying.

use super::*;
use crate::games::{self, NUMBERS};

/// The matches, by what P91 does in them.
const GOOD: u32 = 1;
const SLOW: u32 = 2;
const SILENT: u32 = 3;
const LYING: u32 = 4;
/// The players of every match, who are our endpoints 1 and 2, and what they choose.
const PLAYERS: [&str; 2] = ["P91", "P92"];
const CHOICES: [Parity; 2] = [Parity::Even, Parity::Odd];
/// What the referee sends.
const INVITATION: &str = GameInvitation::NAME;
const CALL: &str = ChooseParityCall::NAME;
const OVER: &str = GameOver::NAME;
const REPORT: &str = MatchResultReport::NAME;

pub const CHECKS: &[Check] = checks! { it:
    MUST "Registration" "max_concurrent_matches"        it.says("meta.max_concurrent_matches", "1 to 10", is::<Within<1, 10>>);
    MUST "Rounds"       "ROUND_ANNOUNCEMENT with a match of its own is taken" it.play(GOOD)?.taken();
    MUST "A match"      "both players are invited" {
        let (exchange, [a, b]) = (it.play(GOOD)?, [1, 2].map(|who| it.heard(who, INVITATION, GOOD).len()));
        exchange.reply()?;
        exchange.shows(format!("{a} and {b} invitations"), "one for each", a > 0 && b > 0)
    };
    MUST "A match"      "both are invited at once"      it.at_once(INVITATION);
    MUST "Invitation"   "GAME_INVITATION is exact"      it.exact(INVITATION, |it: GameInvitation, [_, other]| it.opponent_id == other && it.game_type == GAME);
    MUST "A match"      "both are asked at once"        it.at_once(CALL);
    MUST "Choice"       "CHOOSE_PARITY_CALL is exact"   it.exact(CALL, |it: ChooseParityCall, [id, _]| it.player_id == id && it.game_type == GAME);
    MUST "Envelope"     "its messages have a whole envelope" it.each(|message| match Envelope::read(message) {
        Ok(it) => (format!("{:?} from {:?}", it.protocol, it.sender), it.protocol == PROTOCOL && it.sender == "referee:REF90"),
        Err(fault) => (fault.to_string(), false),
    });
    MUST "Envelope"     "one match is one conversation" {
        let first = it.told(1, INVITATION, GOOD)?.message()["conversation_id"].clone();
        it.each(|message| (message["conversation_id"].to_string(), [&first, &Value::Null].contains(&&message["conversation_id"])))
    };
    OURS "Tokens"       "players are shown their match's token, never its own" {
        let ours = it.registration().message()["referee_meta"]["uses_match_tokens"] == true;
        let good = |id: &str, came: &Value| if ours { *came == it.token(id) } else { came.is_string() && *came != it.token("REF90") };
        let field = "the token that was announced for this player";
        worst([1, 2].map(|who| it.told(who, INVITATION, GOOD)?.field("auth_token", field, |came| good(PLAYERS[who - 1], came))))
    };
    MUST "Result"       "GAME_OVER is told to both alike" {
        let (call, [a, b]) = (it.told(1, CALL, GOOD)?, [1, 2].map(|who| it.over(who, GOOD).unwrap_or_default()));
        call.shows(format!("{a} and {b}"), "the same result for both", a == b && !a.is_null())
    };
    MUST "Result"       "GAME_OVER names the right winner" it.exact(OVER, |GameOver { game_result: came, .. }, _| {
        let number = came.drawn_number.unwrap_or(0);
        let right = games::judge(PLAYERS.map(String::from), CHOICES, number).for_players();
        NUMBERS.contains(&number) && came == GameResult { reason: came.reason.clone(), ..right }
    });
    MUST "Reporting"    "MATCH_RESULT_REPORT says the same, with the league's points" {
        let number = it.over(2, GOOD)?["drawn_number"].as_u64().unwrap_or(0) as u32;
        let report = it.told(0, REPORT, GOOD).map_or(Value::Null, |it| it.message().clone());
        let result = MatchResultReport::read(&report).map(|it| it.result);
        let outcome = games::judge(PLAYERS.map(String::from), CHOICES, number);
        let mut right = outcome.for_manager(&it.program.config.league.scoring);
        if let Ok(MatchResult { details, .. }) = &result {
            (right.details.reason, right.details.status) = (details.reason.clone(), details.status.and(right.details.status));
        }
        let came = result.as_ref().map_or_else(ToString::to_string, |_| report["result"].to_string());
        it.play(GOOD)?.shows(came, serde_json::to_string(&right).unwrap_or_default(), result == Ok(right))
    };
    MUST "Tokens"       "MATCH_RESULT_REPORT carries its own token" it.told(0, REPORT, GOOD)?.field("auth_token", "the token of its registration", |came| *came == it.token("REF90"));
    MUST "Reporting"    "MATCH_RESULT_REPORT is repeated until it is acknowledged" {
        let (first, count) = (it.told(0, REPORT, GOOD)?, it.heard(0, REPORT, GOOD).len());
        first.shows(count, "another one, since the first was answered HTTP 503", count > 1)
    };
    MUST "Deadlines and retries" "a slow player's choice counts" {
        let (exchange, over) = (it.play(SLOW)?, it.over(2, SLOW).unwrap_or_default());
        exchange.shows(&over, "a result with a number", over["drawn_number"].is_u64())
    };
    MUST "Invitation"   "a silent player loses technically" it.forfeited(SILENT);
    MUST "Choice"       "a player who chooses \"Even\" is told E004" {
        let (call, error) = (it.told(1, CALL, LYING)?, || it.told(1, GameError::NAME, LYING));
        until(it.program.config.game_over_limit(), || error().is_some());
        let came = error().map_or("no GAME_ERROR".into(), |it| it.text("error_code").to_string());
        call.shows(&came, "GAME_ERROR with E004", came == "E004")
    };
    MUST "Choice"       "and is asked again" {
        let (first, count) = (it.told(1, CALL, LYING)?, it.heard(1, CALL, LYING).len());
        first.shows(format!("{count} calls"), "more than one", count > 1)
    };
    MUST "Choice"       "and loses technically in the end" it.forfeited(LYING);
};

impl Exam {
    /// Gives it a match, once, and waits until that is played, or will not be: what did not come, the checks will find.
    /// If nothing came of the first match, the others are not played.
    fn play(&self, n: u32) -> Option<Exchange> {
        let _ = if n == GOOD {
            None
        } else {
            Some(self.over(2, GOOD)?)
        };
        self.once(format!("match {n}"), || {
            let exchange = self.send(RoundAnnouncement::NAME, n, "")?;
            let (config, wanted) = (&self.program.config, if n == GOOD { 2 } else { 1 });
            let has = |name| [1, 2].map(|who| !self.heard(who, name, n).is_empty());
            let reports = || self.heard(0, REPORT, n).len();
            let _ = exchange.reply().is_some()
                && until(config.generic_limit(), || has(INVITATION) != [false; 2])
                && until(config.match_limit(), || {
                    has(OVER) != [false; 2] || reports() > 0
                })
                && until(config.generic_limit(), || {
                    has(OVER) == [true; 2] && reports() >= wanted
                });
            Some(exchange)
        })
    }

    /// What a player of ours answers. In the first match it takes its time: whatever comes meanwhile comes at once.
    pub fn play_as(&self, who: usize, asked: &Exchange) -> Option<Value> {
        let (name, match_id, token) = (
            asked.text("message_type"),
            asked.text("match_id"),
            asked.text("auth_token"),
        );
        let timeouts = &self.program.config.system.timeouts;
        match (match_id, name, who) {
            ("R1M1", INVITATION | CALL, _) => pause(self.hold()),
            ("R2M1", CALL, 1) => {
                pause((timeouts.move_timeout_sec.0 / 2).min(Duration::from_secs(2)))
            }
            ("R3M1", INVITATION, 1) => pause(timeouts.game_join_ack_timeout_sec.0 * 2),
            _ => {}
        }
        let (id, choice) = (PLAYERS[who - 1], CHOICES[who - 1].word());
        let choice = if (match_id, who) == ("R4M1", 1) {
            "Even"
        } else {
            choice
        };
        let own = format!(
            ", 'match_id': '{match_id}', 'player_id': '{id}', 'auth_token': '{token}', 'sender': 'player:{id}'"
        );
        Some(match name {
            INVITATION => self.message(GameJoinAck::NAME, 0, &own),
            CALL => self.message(
                ChooseParityResponse::NAME,
                0,
                &format!("{own}, 'parity_choice': '{choice}'"),
            ),
            _ => ok(),
        })
    }

    /// So long.
    fn hold(&self) -> Duration {
        let timeouts = &self.program.config.system.timeouts;
        (timeouts
            .game_join_ack_timeout_sec
            .0
            .min(timeouts.move_timeout_sec.0)
            / 2)
        .min(Duration::from_millis(500))
    }

    /// The first message of a type that one of us was sent in a match.
    fn told(&self, who: usize, message_type: &str, n: u32) -> Option<Exchange> {
        self.play(n)
            .and_then(|_| self.heard(who, message_type, n).into_iter().next())
    }

    /// How a match ended, as a player was told.
    fn over(&self, who: usize, n: u32) -> Option<Value> {
        Some(self.told(who, OVER, n)?.message()["game_result"].clone())
    }

    fn forfeited(&self, n: u32) -> Option<Finding> {
        let (exchange, over) = (self.play(n)?, self.over(2, n).unwrap_or_default());
        let good = over["status"] == Ending::TechnicalLoss.word()
            && over["winner_player_id"] == PLAYERS[1];
        let expected = "TECHNICAL_LOSS without a number, and P92 as the winner";
        exchange.shows(&over, expected, good && over["drawn_number"].is_null())
    }

    /// Whether the second message came before the first was answered.
    fn at_once(&self, message_type: &str) -> Option<Finding> {
        let (a, b) = (
            self.told(1, message_type, GOOD)?,
            self.told(2, message_type, GOOD)?,
        );
        let apart = a.at.max(b.at) - a.at.min(b.at);
        let came = format!("one {} ms after the other", apart.as_millis());
        a.shows(came, "both before one is answered", apart < self.hold())
    }

    /// Judges all its messages of the first match, the report included.
    fn each(&self, judge: impl Fn(&Value) -> (String, bool)) -> Option<Finding> {
        let all = [INVITATION, CALL, OVER, REPORT]
            .map(|name| [0, 1, 2].map(|who| self.heard(who, name, GOOD)));
        worst(all.into_iter().flatten().flatten().map(|it| {
            let (came, good) = judge(it.message());
            let came = format!("{} with {came}", it.text("message_type"));
            it.shows(
                came,
                "all five fields, and the same conversation throughout",
                good,
            )
        }))
    }

    /// Judges what both players were told in the first match, read strictly; knowing its id and the other's.
    fn exact<T: Wire>(
        &self,
        message_type: &str,
        good: impl Fn(T, [&str; 2]) -> bool,
    ) -> Option<Finding> {
        worst([1, 2].map(|who| {
            let it = self.told(who, message_type, GOOD)?;
            let (came, good) = match T::read(it.message()) {
                Ok(message) => (
                    it.message().to_string(),
                    good(message, [PLAYERS[who - 1], PLAYERS[2 - who]]),
                ),
                Err(fault) => (fault.to_string(), false),
            };
            it.shows(
                came,
                "the fields of protocol.md, and what is true of this match",
                good,
            )
        }))
    }
}
