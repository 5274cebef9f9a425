//! The checks of a player. It gets announcements, invitations, calls and results: right ones,
//! repeated ones, and ones with wrong tokens. Each match is a round of its own, with a token and a
//! conversation of its own. The others are played only if the first match went well.

use super::Severity::{Recommended, Required, RequiredIfPresent, Tolerated};
use super::examination::Examination;
use super::exchange::{Exchange, Observation, worst};
use super::messages::{CONVERSATION, MATCH_TOKEN};
use super::{Check, check, check_accepted};
use league::protocol::{ErrorCode, GameJoinAck, PROTOCOL};
use league::values::quoted_list;

/// The steps with both replies in the first match.
const REPLIES: &str = "GAME_INVITATION R1M1; CHOOSE_PARITY_CALL R1M1";

pub const CHECKS: &[Check] = &[
    check(
        Tolerated,
        "Rounds",
        "ROUND_ANNOUNCEMENT is taken",
        "ROUND_ANNOUNCEMENT R1M1",
        check_accepted,
    ),
    check(
        Required,
        "Invitation",
        "GAME_INVITATION is answered without an error, in time",
        "GAME_INVITATION R1M1",
        |_, call| call.check_answered(),
    ),
    check(
        Required,
        "Invitation",
        "GAME_JOIN_ACK is the answer",
        "GAME_INVITATION R1M1",
        |_, call| call.check_text("message_type", GameJoinAck::NAME),
    ),
    check(
        Tolerated,
        "Invitation",
        "arrival_timestamp is UTC",
        "GAME_INVITATION R1M1",
        |_, call| call.check_timestamp("arrival_timestamp"),
    ),
    check(
        Required,
        "Invitation",
        "accept is true, a boolean",
        "GAME_INVITATION R1M1",
        |_, call| call.check_field("accept", "true", |value| *value == true),
    ),
    check(
        Required,
        "Choice",
        "CHOOSE_PARITY_CALL is answered without an error, in time",
        "CHOOSE_PARITY_CALL R1M1",
        |_, call| call.check_answered(),
    ),
    check(
        Required,
        "Choice",
        "CHOOSE_PARITY_RESPONSE is the answer",
        "CHOOSE_PARITY_CALL R1M1",
        |examination, call| {
            call.check_text(
                "message_type",
                examination.game().messages.message_types().1,
            )
        },
    ),
    check(
        Required,
        "Choice",
        "parity_choice is legal",
        "CHOOSE_PARITY_CALL R1M1",
        check_choice,
    ),
    check(
        RequiredIfPresent, // the player is known by its endpoint, the match is not
        "A match",
        "replies name match and player",
        REPLIES,
        check_names,
    ),
    check(
        Tolerated,
        "Transport",
        "replies are JSON-RPC 2.0 with HTTP 200",
        REPLIES,
        check_transport,
    ),
    check(
        RequiredIfPresent,
        "Envelope",
        "replies say protocol league.v2",
        REPLIES,
        |_, call| call.check_text("protocol", PROTOCOL),
    ),
    check(
        Tolerated,
        "Envelope",
        "replies say who sends them",
        REPLIES,
        check_sender,
    ),
    check(
        Tolerated,
        "Time",
        "replies have a UTC timestamp",
        REPLIES,
        |_, call| call.check_timestamp("timestamp"),
    ),
    check(
        Tolerated,
        "Envelope",
        "replies stay in the conversation",
        REPLIES,
        |_, call| call.check_text("conversation_id", CONVERSATION),
    ),
    check(
        Recommended,
        "Tokens",
        "replies repeat the match's token",
        REPLIES,
        |examination, call| examination.check_match_token(call, |token| token == MATCH_TOKEN),
    ),
    check(
        Recommended,
        "Choice",
        "the same call gets the same choice",
        "CHOOSE_PARITY_CALL R1M1 with nothing new",
        check_same_choice,
    ),
    check(
        Recommended,
        "Tokens",
        "a call with a wrong token is refused",
        r#"CHOOSE_PARITY_CALL R1M1 with {"auth_token": "x"}"#,
        |_, call| call.check_refused(ErrorCode::TokenInvalid),
    ),
    check(
        Recommended,
        "Tokens",
        "an invitation without the announced token is refused",
        r#"GAME_INVITATION R2M1 with {"auth_token": "x"}"#,
        |_, call| call.check_refused(ErrorCode::TokenInvalid),
    ),
    check(
        Recommended,
        "A match",
        "a call for an unknown match is refused",
        "CHOOSE_PARITY_CALL R9M1 with no invitation",
        |_, call| call.check_refused(ErrorCode::MatchMismatch),
    ),
    check(
        Tolerated,
        "Envelope",
        "unknown fields are ignored",
        r#"GAME_INVITATION R3M1 with {"x_later": []}; CHOOSE_PARITY_CALL R3M1 with {"x_later": []}"#,
        check_accepted,
    ),
    check(
        Required,
        "Deadlines and retries",
        "a call is answered, whose caller gave up before",
        "GAME_INVITATION R6M1",
        check_repeated_call,
    ),
    check(
        Tolerated,
        "Choice",
        "GAME_ERROR is taken",
        "GAME_ERROR R1M1",
        check_accepted,
    ),
    check(
        Tolerated,
        "Result",
        "GAME_OVER is taken",
        "GAME_OVER R1M1",
        check_accepted,
    ),
    check(
        Tolerated,
        "Standings and notifications",
        "LEAGUE_STANDINGS_UPDATE is taken",
        "LEAGUE_STANDINGS_UPDATE",
        check_accepted,
    ),
];

fn check_choice(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let game = examination.game();
    let field = game.messages.field();
    let legal_moves = quoted_list(&(game.legal_moves)(&[]));
    call.check_field(field, format!("exactly {legal_moves}"), |choice| {
        game.parse_move(&[], choice).is_ok()
    })
}

fn check_names(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let match_id = call.check_text("match_id", "R1M1");
    let match_id = match_id.map(|seen| Observation {
        is_absent: false,
        ..seen
    });
    let player_id = call.check_text("player_id", &examination.id());
    worst([match_id, player_id].into_iter())
}

fn check_transport(_: &Examination, call: &Exchange) -> Option<Observation> {
    call.reply()?;
    let is_good = call.status == 200 && call.json["jsonrpc"] == "2.0";
    Some(call.observe(&call.received, "HTTP 200 and \"jsonrpc\": \"2.0\"", is_good))
}

fn check_sender(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let registration = examination.registration();
    let registered = registration.text("sender");
    let named = format!("player:{}", examination.id());
    call.check_field("sender", format!("{named:?}"), |sender| {
        *sender == named || *sender == registered
    })
}

fn check_same_choice(examination: &Examination, call: &Exchange) -> Option<Observation> {
    let field = examination.game().messages.field();
    let first_call = examination.exchange("CHOOSE_PARITY_CALL R1M1")?;
    let first = &first_call.message()[field];
    let is_good = call.reply().is_some_and(|reply| reply[field] == *first);
    Some(call.observe(&call.received, format!("{field} {first}"), is_good))
}

fn check_repeated_call(examination: &Examination, _: &Exchange) -> Option<Observation> {
    examination.exchange("CHOOSE_PARITY_CALL R6M1 with a caller that gives up")?;
    let repeated = examination.exchange("CHOOSE_PARITY_CALL R6M1")?;
    repeated.check_answered()
}
