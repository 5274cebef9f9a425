//! What a player is examined in: it is told of matches, invited, asked, told how they ended; rightly, twice, two at
//! once, with wrong tokens. Each match is a round of its own, with a token and a conversation of its own; the first must
//! go well, or the others are not played.

use super::*;

/// What it is sent in a match, in this order.
const ANNOUNCEMENT: &str = RoundAnnouncement::NAME;
const INVITATION: &str = GameInvitation::NAME;
const CALL: &str = ChooseParityCall::NAME;
/// A field that we do not know.
const LATER: &str = ", 'x_later': ['a field', 'of tomorrow']";

pub const CHECKS: &[Check] = checks! { it:
    MUST     "Rounds"     "ROUND_ANNOUNCEMENT is taken"              it.first(ANNOUNCEMENT, 1)?.taken();
    MUST     "Invitation" "GAME_INVITATION is answered in time"      it.first(INVITATION, 1)?.taken();
    MUST     "Invitation" "GAME_JOIN_ACK is exact"                   it.first(INVITATION, 1)?.are(&[("message_type", GameJoinAck::NAME), ("match_id", "R1M1"), ("player_id", "P90")]);
    FORGIVEN "Invitation" "arrival_timestamp is UTC"                 it.first(INVITATION, 1)?.field("arrival_timestamp", TIME, is::<Timestamp>);
    MUST     "Invitation" "accept is true, a boolean"                it.first(INVITATION, 1)?.field("accept", "true", |it| *it == true);
    MUST     "Choice"     "CHOOSE_PARITY_CALL is answered in time"   it.first(CALL, 1)?.taken();
    MUST     "Choice"     "CHOOSE_PARITY_RESPONSE is exact"          it.first(CALL, 1)?.are(&[("message_type", ChooseParityResponse::NAME), ("match_id", "R1M1"), ("player_id", "P90")]);
    MUST     "Choice"     "parity_choice is even or odd"             it.first(CALL, 1)?.field("parity_choice", "exactly \"even\" or \"odd\"", is::<Parity>);
    FORGIVEN "Transport"  "replies are JSON-RPC 2.0 with HTTP 200"   it.both(|it| it.shows(&it.came, "HTTP 200 and \"jsonrpc\": \"2.0\"", it.status == 200 && it.json["jsonrpc"] == "2.0"));
    FORGIVEN "Envelope"   "replies say protocol league.v2"           it.both(|it| it.are(&[("protocol", PROTOCOL)]));
    FORGIVEN "Envelope"   "replies say who sends them" {
        let alias = it.registration().text("sender").to_string();
        it.both(|it| it.field("sender", "\"player:P90\"", |it| *it == "player:P90" || *it == alias))
    };
    FORGIVEN "Time"       "replies have a UTC timestamp"             it.both(|it| it.field("timestamp", TIME, is::<Timestamp>));
    FORGIVEN "Envelope"   "replies stay in the conversation"         it.both(|reply| reply.are(&[("conversation_id", &it.game(1)[0])]));
    OURS     "Tokens"     "replies repeat the match's token"         it.both(|reply| reply.field("auth_token", "that of the request", |came| *came == it.game(1)[1]));
    OURS     "Choice"     "the same call gets the same choice" {
        let (first, again) = (it.chosen()?, it.send(CALL, 1, "")?);
        let good = again.reply().is_some_and(|it| it["parity_choice"] == first);
        again.shows(&again.came, format!("parity_choice {first}"), good)
    };
    OURS     "Tokens"     "a call with a wrong token is refused"     it.chosen().and_then(|_| it.send(CALL, 1, WRONG_TOKEN))?.refused(Code::E012);
    OURS     "Tokens"     "an invitation without the announced token is refused" {
        it.first(ANNOUNCEMENT, 2)?;
        it.send(INVITATION, 2, WRONG_TOKEN)?.refused(Code::E012)
    };
    OURS     "A match"    "a call for an unknown match is refused"   it.chosen().and_then(|_| it.send(CALL, 9, ""))?.refused(Code::E015);
    MUST     "Envelope"   "unknown fields are ignored" {
        it.first(ANNOUNCEMENT, 3)?;
        worst([INVITATION, CALL].map(|message_type| it.send(message_type, 3, LATER)?.taken()))
    };
    OURS     "A match"    "two matches at once are kept apart" {
        it.first(ANNOUNCEMENT, 4).and(it.first(ANNOUNCEMENT, 5))?;
        worst(thread::scope(|scope| {
            let other = scope.spawn(|| it.kept_apart(5, 4));
            [it.kept_apart(4, 5), other.join().ok().flatten()]
        }))
    };
    MUST     "Deadlines and retries" "a call is answered, whose caller gave up before" {
        it.first(INVITATION, 6)?;
        let body = call("choose_parity", &it.message(CALL, 6, ""), 90);
        let _ = it.program.client.post_raw(&it.endpoint(), &body, MAX_NOTICE, Duration::from_millis(1));
        it.first(CALL, 6)?.taken()
    };
    MUST     "Choice"     "GAME_ERROR is taken"                      it.first(GameError::NAME, 1)?.taken();
    MUST     "Result"     "GAME_OVER is taken"                       it.first(GameOver::NAME, 1)?.taken();
    MUST     "Limits"     "LEAGUE_STANDINGS_UPDATE with 100 players is taken" {
        let counts = "'played': 0, 'wins': 0, 'draws': 0, 'losses': 0, 'points': 0";
        let row = |n| format!("{{'rank': {n}, 'player_id': 'P{n:02}', 'display_name': 'A long name', {counts}}}");
        let rows: Vec<String> = (1..=100).map(row).collect();
        it.send(LeagueStandingsUpdate::NAME, 1, &format!(", 'standings': [{}]", rows.join(", ")))?.taken()
    };
};

impl Exam {
    /// What came of a message in the n-th match when it was first sent: that is now, after those that come before it, or
    /// was for an earlier check.
    fn first(&self, message_type: &str, n: u32) -> Option<Exchange> {
        match message_type {
            INVITATION => drop(self.first(ANNOUNCEMENT, n)?),
            CALL => drop(self.first(INVITATION, n)?.reply()?),
            ANNOUNCEMENT if n == 1 => {}
            _ => drop(self.chosen()?),
        }
        self.once(format!("{message_type} {n}"), || {
            self.send(message_type, n, "")
        })
    }

    /// What it chose in the first match.
    fn chosen(&self) -> Option<Value> {
        Some(self.first(CALL, 1)?.reply()?["parity_choice"].clone())
    }

    /// The worse of the two replies in the first match.
    fn both(&self, judge: impl Fn(&Exchange) -> Option<Finding>) -> Option<Finding> {
        let reply = |message_type| {
            self.first(message_type, 1)
                .filter(|it| it.reply().is_some())
        };
        worst([INVITATION, CALL].map(|message_type| judge(&reply(message_type)?)))
    }

    /// Plays a match while another goes on: the answer must be about its own, or not say.
    fn kept_apart(&self, n: u32, other: u32) -> Option<Finding> {
        let (answer, other) = (self.first(CALL, n)?, self.message(CALL, other, ""));
        let is_other =
            |key: &str| answer.message()[key].is_string() && answer.message()[key] == other[key];
        let good =
            answer.reply().is_some() && !is_other("match_id") && !is_other("conversation_id");
        answer.shows(&answer.came, "an answer about this match, in time", good)
    }
}
