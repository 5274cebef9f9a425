//! A fake manager for tests of a single referee or player: its replies and its notifications. And
//! the messages of a fake referee to a player.

use super::{FakeAgent, FakeReply, json_of, message, now, rows, send, set_all, text_of};
use serde_json::{Value, json};

pub const LEAGUE: &str = "league_2025_even_odd";
/// The token of every agent that the fake manager accepts.
pub const TOKEN: &str = "tok-own-0123456789abcdef0123456789abcdef";

/// Records a report, and accepts a registration, as REF01 or P01.
pub fn answers(request: &Value) -> FakeReply {
    let asked = &request["params"];
    if asked["message_type"] == "MATCH_RESULT_REPORT" {
        let body = json!({"match_id": asked["match_id"], "status": "recorded"});
        return FakeReply::Answer(message("MATCH_RESULT_ACK", "league_manager", body));
    }
    let (message_type, id) = match asked["message_type"] == "REFEREE_REGISTER_REQUEST" {
        true => ("REFEREE_REGISTER_RESPONSE", "referee_id"),
        false => ("LEAGUE_REGISTER_RESPONSE", "player_id"),
    };
    let body = json!({
        "status": "ACCEPTED", id: if id == "player_id" { "P01" } else { "REF01" }, "auth_token": TOKEN,
        "league_id": LEAGUE, "reason": null, "proves_itself": true,
        "conversation_id": asked["conversation_id"],
    });
    FakeReply::Answer(message(message_type, "league_manager", body))
}

/// Rejects a registration with a code, or `-`, and a reason: `E019 it has begun`.
pub fn rejects(request: &Value, words: &str) -> FakeReply {
    let message_type = text_of(&request["params"]["message_type"]);
    let message_type = message_type.replace("REQUEST", "RESPONSE");
    let (code, reason) = words.split_once(' ').unwrap();
    let code = Some(code).filter(|code| *code != "-");
    let body = json!({"status": "REJECTED", "reason": reason, "error_code": code});
    FakeReply::Answer(message(&message_type, "league_manager", body))
}

/// Returns a response with this HTTP status.
pub fn status(status: &str, body: &str) -> FakeReply {
    let length = body.len();
    let whole = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
    FakeReply::Bytes(whole.into())
}

/// Starts a manager that accepts every registration and records every report.
pub fn manager() -> FakeAgent {
    FakeAgent::new(answers)
}

/// Returns a notification with this token.
pub fn notice(message_type: &str, token: Option<&str>, mut body: Value) -> Value {
    (body["auth_token"], body["league_id"]) = (token.into(), LEAGUE.into());
    message(message_type, "league_manager", body)
}

/// Returns the notification that the league is over and P01 has won it.
pub fn completed(token: Option<&str>) -> Value {
    let champion = json!({"player_id": "P01", "display_name": "Alpha", "points": 3});
    let rows = json!([{"rank": 1, "player_id": "P01", "points": 3}]);
    let body = json!({"total_rounds": 1, "total_matches": 1, "champion": champion, "final_standings": rows});
    notice("LEAGUE_COMPLETED", token, body)
}

/// Announces a round with a match between P01 and P02 for each row: its id, the endpoint of its
/// referee, and more fields.
pub fn announces(rows: &[(&str, &str, Value)]) -> Value {
    let entry = |(match_id, endpoint, more): &(&str, &str, Value)| {
        let mut entry = json!({
            "match_id": match_id, "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
            "referee_endpoint": endpoint,
        });
        let more = more.as_object().into_iter().flatten();
        more.for_each(|(key, value)| entry[key] = value.clone());
        entry
    };
    let matches: Vec<Value> = rows.iter().map(entry).collect();
    notice(
        "ROUND_ANNOUNCEMENT",
        Some(TOKEN),
        json!({"round_id": 1, "matches": matches}),
    )
}

/// The messages of a referee to P01, which has chosen even: the words in a script, the message type
/// and the fields.
const MESSAGES: &str = r#"
invites | GAME_INVITATION | {"league_id": "LEAGUE", "round_id": 1, "role_in_match": "PLAYER_A", "opponent_id": "P02"}
asks | CHOOSE_PARITY_CALL | {"player_id": "P01", "deadline": "NOW"}
complains | GAME_ERROR | {"error_code": "E004", "error_description": "INVALID_PARITY_CHOICE", "affected_player": "P01", "action_required": "CHOOSE_PARITY_RESPONSE", "consequence": "Technical loss", "context": {"field": "parity_choice", "problem": "got \"EVEN\"\u001b[2J"}, "retry_info": {"retry_count": 1, "max_retries": 3, "time_remaining": 29.5}}
ends P01 | GAME_OVER | {"game_result": {"status": "WIN", "winner_player_id": "P01", "drawn_number": 8, "number_parity": "even", "choices": {"P01": "even", "P02": "odd"}, "reason": "so it \u001b[2J went"}}
ends P02 | GAME_OVER | {"game_result": {"status": "WIN", "winner_player_id": "P02", "drawn_number": 7, "number_parity": "odd", "choices": {"P01": "even", "P02": "odd"}, "reason": "so it \u001b[2J went"}}"#;

/// Returns a message of a referee. `true` is the referee that the manager has announced, `replay`
/// the same one when it plays the match again; any other word is a stranger.
fn referee_message(who: &str, words: &str, match_id: &str) -> Value {
    let (token, conversation) = match who {
        "true" => ("tok-true", "conv-true"),
        "replay" => ("tok-true", "conv-replay"),
        _ => ("tok-strange", "conv-true"),
    };
    let row = rows(MESSAGES).find(|row| row[0] == words);
    let [_, message_type, body] = row.expect(words);
    let body = body.replace("LEAGUE", LEAGUE).replace("NOW", &now());
    let mut body: Value = json_of(&body);
    (body["match_id"], body["game_type"]) = (match_id.into(), "even_odd".into());
    (body["auth_token"], body["conversation_id"]) = (token.into(), conversation.into());
    message(message_type, "referee:REF01", body)
}

/// Returns the message of a line of a script: `manager announces R1M1 tok-true`, `true invites
/// R1M1`, `true ends R1M1 P02`. Words like `player_id=P02` or `/context/problem=null` change a
/// field, or remove it.
pub fn message_of_line(line: &str) -> Value {
    let words = line.split_whitespace();
    let (changes, words): (Vec<&str>, Vec<&str>) = words.partition(|word| word.contains('='));
    let mut message = match words[..] {
        ["manager", "announces", match_id, ref token @ ..] => {
            let mut round = announces(&[(match_id, "http://localhost:8001/mcp", Value::Null)]);
            round["match_token"] = json!(token.first());
            round
        }
        ["manager", "tells"] => {
            let table = json!({"round_id": 1, "standings": []});
            notice("LEAGUE_STANDINGS_UPDATE", Some(TOKEN), table)
        }
        ["manager", "ends"] => completed(Some(TOKEN)),
        [who, verb, match_id] => referee_message(who, verb, match_id),
        [who, verb, match_id, winner] => {
            referee_message(who, &format!("{verb} {winner}"), match_id)
        }
        _ => panic!("{line}"),
    };
    set_all(&mut message, changes);
    message
}

/// Returns a player's reply as one word: `joins`, `chooses`, a move, an error code, or the status.
pub fn told(reply: &Value) -> &str {
    match reply["message_type"].as_str() {
        Some("GAME_JOIN_ACK") if reply["accept"] == true => "joins",
        Some("CHOOSE_PARITY_RESPONSE") => "chooses",
        Some("CHOOSE_MOVE_RESPONSE") => text_of(&reply["move"]),
        _ => {
            let word = reply["error_code"].as_str().or(reply["status"].as_str());
            word.unwrap_or_else(|| panic!("{reply}"))
        }
    }
}

/// Sends a player the message of each line of a script, and compares the reply with the word after
/// the colon.
pub fn converse(url: &str, script: &str) {
    for line in script.trim().lines() {
        let (words, expected) = line.split_once(": ").unwrap();
        let reply = send(url, &message_of_line(words));
        assert_eq!(told(&reply), expected, "{line}: {reply}");
    }
}
