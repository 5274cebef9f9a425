//! A player is told of matches, is invited, is asked, and is told how they ended: rightly, twice,
//! and with wrong tokens. Each match is a round of its own, with a token and a conversation of its
//! own. The first match must go well, or the others are not played.

use super::*;

/// Both replies in the first match.
const REPLIES: &str = "GAME_INVITATION R1M1; CHOOSE_PARITY_CALL R1M1";

pub const CHECKS: &[Check] = checks! { exam, it:
    FORGIVEN "Rounds" "ROUND_ANNOUNCEMENT is taken" "ROUND_ANNOUNCEMENT R1M1" it.taken();
    MUST "Invitation" "GAME_INVITATION is answered in time" "GAME_INVITATION R1M1" it.taken();
    MUST "Invitation" "GAME_JOIN_ACK is the answer" "GAME_INVITATION R1M1"
        it.equals("message_type", GameJoinAck::NAME);
    FORGIVEN "Invitation" "arrival_timestamp is UTC" "GAME_INVITATION R1M1"
        it.time("arrival_timestamp");
    MUST "Invitation" "accept is true, a boolean" "GAME_INVITATION R1M1"
        it.field("accept", "true", |it| *it == true);
    MUST "Choice" "CHOOSE_PARITY_CALL is answered in time" "CHOOSE_PARITY_CALL R1M1" it.taken();
    MUST "Choice" "CHOOSE_PARITY_RESPONSE is the answer" "CHOOSE_PARITY_CALL R1M1"
        it.equals("message_type", exam.rules().answer_format().0);
    MUST "Choice" "parity_choice is legal" "CHOOSE_PARITY_CALL R1M1"
        {
            let legal = format!("exactly {}", games::quoted_list(&(exam.rules().legal_moves)(&[])));
            it.field(&exam.named("parity_choice"), legal, |it| exam.rules().parse_move(&[], it).is_ok())
        };
    MUST "A match" "replies name match and player" REPLIES
        worst([it.equals("match_id", "R1M1"), it.equals("player_id", &exam.id())]);
    FORGIVEN "Transport" "replies are JSON-RPC 2.0 with HTTP 200" REPLIES {
        it.reply()?;
        let good = it.status == 200 && it.json["jsonrpc"] == "2.0";
        it.shows(&it.came, "HTTP 200 and \"jsonrpc\": \"2.0\"", good)
    };
    IF_ANY "Envelope" "replies say protocol league.v2" REPLIES it.equals("protocol", PROTOCOL);
    FORGIVEN "Envelope" "replies say who sends them" REPLIES {
        let (registered, named) = (exam.registration(), format!("player:{}", exam.id()));
        let names = [&*named, registered.text("sender")];
        it.field("sender", format!("{named:?}"), |it| names.iter().any(|name| it == name))
    };
    FORGIVEN "Time" "replies have a UTC timestamp" REPLIES
        it.time("timestamp");
    FORGIVEN "Envelope" "replies stay in the conversation" REPLIES
        it.equals("conversation_id", CONVERSATION);
    WISE "Tokens" "replies repeat the match's token" REPLIES
        exam.match_token(it, |came| came == MATCH_TOKEN);
    WISE "Choice" "the same call gets the same choice" "CHOOSE_PARITY_CALL R1M1 with nothing new" {
        let field = exam.named("parity_choice");
        let first = exam.step("CHOOSE_PARITY_CALL R1M1")?.message()[&field].clone();
        let good = it.reply().is_some_and(|it| it[&field] == first);
        it.shows(&it.came, format!("{field} {first}"), good)
    };
    WISE "Tokens" "a call with a wrong token is refused"
        r#"CHOOSE_PARITY_CALL R1M1 with {"auth_token": "x"}"# it.refused(ErrorCode::TokenInvalid);
    WISE "Tokens" "an invitation without the announced token is refused"
        r#"GAME_INVITATION R2M1 with {"auth_token": "x"}"# it.refused(ErrorCode::TokenInvalid);
    WISE "A match" "a call for an unknown match is refused"
        "CHOOSE_PARITY_CALL R9M1 with no invitation" it.refused(ErrorCode::MatchMismatch);
    FORGIVEN "Envelope" "unknown fields are ignored"
        r#"GAME_INVITATION R3M1 with {"x_later": []}; CHOOSE_PARITY_CALL R3M1 with {"x_later": []}"#
        it.taken();
    MUST "Deadlines and retries" "a call is answered, whose caller gave up before"
        "GAME_INVITATION R6M1" {
        exam.step("CHOOSE_PARITY_CALL R6M1 with a caller that gives up")?;
        exam.step("CHOOSE_PARITY_CALL R6M1")?.taken()
    };
    FORGIVEN "Choice" "GAME_ERROR is taken" "GAME_ERROR R1M1" it.taken();
    FORGIVEN "Result" "GAME_OVER is taken" "GAME_OVER R1M1" it.taken();
    FORGIVEN "Standings and notices" "LEAGUE_STANDINGS_UPDATE is taken" "LEAGUE_STANDINGS_UPDATE"
        it.taken();
};
