//! What a player is examined in: it is told of matches, invited, asked, told how they ended; rightly, twice, two at
//! once, with wrong tokens. Each match is a round of its own, with a token and a conversation of its own.

use crate::check::exchange::{Exchange, Seen, text, worst, write};
use crate::check::{Board, COMMON, Examinee, REGISTRATION, TIME, envelope, is_time};
use crate::protocol::*;
use crate::wire::{Timestamp, token};
use serde_json::Value;
use std::{thread, time::Duration};

/// Whom it plays against: nobody.
const OPPONENT: &str = "P91";

/// The player, and what it answered in its first match; each is asked only if the one before was answered.
pub struct PlayerExam {
    agent: Examinee,
    announced: Option<Exchange>,
    invited: Option<Exchange>,
    chosen: Option<Exchange>,
}

/// Makes all checks of a player.
pub fn examine(agent: Examinee, board: &mut Board) {
    board.run(REGISTRATION, &agent);
    let mut player = PlayerExam { agent, announced: None, invited: None, chosen: None };
    player.announced = player.announce(1);
    player.invited = player.agent.ask(&player.invitation(1));
    let has_come = player.invited.as_ref().is_some_and(|it| it.reply().is_some());
    player.chosen = has_come.then(|| player.agent.ask(&player.call(1))).flatten();
    board.run(CHECKS, &player);
    board.run(COMMON, &player.agent);
}

checks! { CHECKS of PlayerExam:
    Must "Rounds" "ROUND_ANNOUNCEMENT is taken" |it| it.announced.as_ref()?.taken();
    Must "Invitation" "GAME_INVITATION is answered in time" |it| it.invited.as_ref()?.taken();
    Must "Invitation" "GAME_JOIN_ACK is exact" |it| {
        let wanted = [("message_type", GameJoinAck::NAME), ("match_id", "R1M1"), ("player_id", &it.agent.id)];
        it.invited.as_ref()?.are(&wanted)
    };
    Forgiven "Invitation" "arrival_timestamp is UTC" |it| {
        it.invited.as_ref()?.field("arrival_timestamp", TIME, is_time)
    };
    Must "Invitation" "accept is true, a boolean" |it| it.invited.as_ref()?.field("accept", "true", |it| *it == true);
    Must "Choice" "CHOOSE_PARITY_CALL is answered in time" |it| it.chosen.as_ref()?.taken();
    Must "Choice" "CHOOSE_PARITY_RESPONSE is exact" |it| {
        let wanted = [("message_type", ChooseParityResponse::NAME), ("match_id", "R1M1"), ("player_id", &it.agent.id)];
        it.chosen.as_ref()?.are(&wanted)
    };
    Must "Choice" "parity_choice is even or odd" |it| {
        let exact = |choice: &Value| *choice == "even" || *choice == "odd";
        it.chosen.as_ref()?.field("parity_choice", "exactly \"even\" or \"odd\"", exact)
    };
    Forgiven "Transport" "replies are JSON-RPC 2.0 with HTTP 200" |it| it.replies(|it| {
        let good = it.status == 200 && it.answer["jsonrpc"] == "2.0";
        Some(it.seen(&it.came, "HTTP 200 and \"jsonrpc\": \"2.0\"", good))
    });
    Forgiven "Envelope" "replies say protocol league.v2" |it| it.replies(|it| it.are(&[("protocol", PROTOCOL)]));
    Forgiven "Envelope" "replies say who sends them" |it| {
        let (own, alias) = (format!("player:{}", it.agent.id), text(&it.agent.registration.answer, "sender"));
        it.replies(|it| it.field("sender", &format!("{own:?}"), |it| *it == *own || *it == *alias))
    };
    Forgiven "Time" "replies have a UTC timestamp" |it| it.replies(|it| it.field("timestamp", TIME, is_time));
    Forgiven "Envelope" "replies stay in the conversation" |it| {
        let own = text(&it.call(1), "conversation_id");
        it.replies(|it| it.are(&[("conversation_id", &own)]))
    };
    Ours "Tokens" "replies repeat the match's token" |it| {
        it.replies(|reply| reply.field("auth_token", "that of the request", |came| *came == *it.token(1)))
    };
    Ours "Choice" "the same call gets the same choice" |it| {
        let (first, again) = (it.asked()?["parity_choice"].clone(), it.agent.ask(&it.call(1))?);
        let good = again.reply().is_some_and(|it| it["parity_choice"] == first);
        Some(again.seen(&again.came, &format!("parity_choice {first}"), good))
    };
    Ours "Tokens" "a call with a wrong token is refused" |it| {
        it.asked()?;
        it.wrong(it.call(1))?.refused("E012")
    };
    Ours "Tokens" "an invitation without the announced token is refused" |it| {
        it.asked()?;
        it.announce(2)?;
        it.wrong(it.invitation(2))?.refused("E012")
    };
    Ours "A match" "a call for an unknown match is refused" |it| {
        it.asked()?;
        it.agent.ask(&it.call(9))?.refused("E015")
    };
    Must "Envelope" "unknown fields are ignored" |it| {
        let later = |mut message: Value| {
            message["x_later"] = vec!["a field", "of tomorrow"].into();
            it.agent.ask(&message)?.taken()
        };
        it.asked()?;
        it.announce(3)?;
        worst([later(it.invitation(3)), later(it.call(3))].into_iter().flatten())
    };
    Ours "A match" "two matches at once are kept apart" PlayerExam::two_at_once;
    Must "Deadlines and retries" "a call is answered, whose caller gave up before" |it| {
        it.asked()?;
        it.announce(6)?;
        it.agent.ask(&it.invitation(6))?;
        it.agent.call("90", "choose_parity", &it.call(6), Duration::from_millis(1))?;
        it.agent.ask(&it.call(6))?.taken()
    };
    Must "Choice" "GAME_ERROR is taken" |it| it.tell(GameError::NAME, "'error_code': 'E001', \
        'error_description': 'TIMEOUT_ERROR', 'affected_player': 'P90', 'action_required': 'CHOOSE_PARITY_RESPONSE', \
        'player_id': 'P90', 'consequence': 'none: an examination'");
    Must "Result" "GAME_OVER is taken" |it| it.tell(GameOver::NAME, "'game_type': 'even_odd', 'game_result': {
        'status': 'WIN', 'winner_player_id': 'P90', 'drawn_number': 8, 'number_parity': 'even',
        'choices': {'P90': 'even', 'P91': 'odd'}, 'reason': 'P90 chose even, number was 8 (even)'}");
    Must "Limits" "LEAGUE_STANDINGS_UPDATE with 100 players is taken" |it| {
        let counts = "'played': 0, 'wins': 0, 'draws': 0, 'losses': 0, 'points': 0";
        let row = |n| format!("{{'rank': {n}, 'player_id': 'P{n:02}', 'display_name': 'A long name', {counts}}}");
        let rows: Vec<String> = (1..=100).map(row).collect();
        let body = format!("'round_id': 1, 'standings': [{}]", rows.join(", "));
        it.agent.ask(&it.agent.notice(LeagueStandingsUpdate::NAME, &body))?.taken()
    };
}

impl PlayerExam {
    /// The token of a match.
    fn token(&self, n: u32) -> String {
        token(&self.agent.id, &format!("{}{n}", self.agent.secret))
    }

    fn announce(&self, n: u32) -> Option<Exchange> {
        let promise = format!("'match_token': '{}'", self.token(n));
        self.agent.announce(n, [&self.agent.id, OPPONENT], &self.agent.manager.url, &promise)
    }

    /// A message of a referee in a match.
    fn of_referee(&self, n: u32, message_type: &str, body: &str) -> Value {
        let (league_id, conversation) =
            (&self.agent.config.league.league_id, format!("conv-r{n}m1-{}", &self.agent.secret[..8]));
        let (auth_token, round_id, match_id) = (Some(self.token(n)), Some(n), Some(format!("R{n}M1")));
        let envelope = envelope("referee:REF91", message_type, league_id, &conversation);
        write(&Envelope { auth_token, round_id, match_id, ..envelope }, body)
    }

    fn invitation(&self, n: u32) -> Value {
        let who = format!("'player_id': '{}', 'opponent_id': '{OPPONENT}', 'role_in_match': 'PLAYER_A'", self.agent.id);
        self.of_referee(n, GameInvitation::NAME, &format!("{who}, 'game_type': 'even_odd'"))
    }

    fn call(&self, n: u32) -> Value {
        let deadline = Timestamp::now().plus(self.agent.config.system.timeouts.move_timeout_sec.0);
        let context = format!("'context': {{'opponent_id': '{OPPONENT}', 'round_id': {n}}}");
        let who = format!("'player_id': '{}', 'game_type': 'even_odd'", self.agent.id);
        self.of_referee(n, ChooseParityCall::NAME, &format!("{who}, 'deadline': '{deadline}', {context}"))
    }

    /// Its first choice: what follows needs one that has chosen.
    fn asked(&self) -> Option<&Value> {
        self.chosen.as_ref()?.reply()
    }

    /// Sends it with another token.
    fn wrong(&self, mut message: Value) -> Option<Exchange> {
        message["auth_token"] = self.token(0).into();
        self.agent.ask(&message)
    }

    /// A notice in the first match.
    fn tell(&self, message_type: &str, body: &str) -> Option<Seen> {
        self.asked()?;
        self.agent.ask(&self.of_referee(1, message_type, body))?.taken()
    }

    /// The worse of the two replies.
    fn replies(&self, judge: impl Fn(&Exchange) -> Option<Seen>) -> Option<Seen> {
        let replies = [&self.invited, &self.chosen].into_iter().flatten().filter(|it| it.reply().is_some());
        worst(replies.filter_map(judge))
    }

    /// Two matches at once: each answer must be about its own, or not say.
    fn two_at_once(&self) -> Option<Seen> {
        let play = |n| {
            self.agent.ask(&self.invitation(n))?;
            let (call, other) = (self.call(n), self.call(9 - n));
            let answer = self.agent.ask(&call)?;
            let is_other = |key| answer.result()[key].is_string() && answer.result()[key] == other[key];
            let good = answer.reply().is_some() && !is_other("match_id") && !is_other("conversation_id");
            Some(answer.seen(&answer.came, "an answer about this match, in time", good))
        };
        self.asked()?;
        [self.announce(4), self.announce(5)].iter().flatten().last()?;
        let both = thread::scope(|scope| {
            let other = scope.spawn(|| play(5));
            [play(4), other.join().ok().flatten()]
        });
        worst(both.into_iter().flatten())
    }
}
