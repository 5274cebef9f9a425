//! How what an agent answers is written: as a JSON-RPC result or error, or as the league message that refuses a request.
//! See "Errors" in `protocol.md`.

use crate::net::agent::Denial;
use crate::net::http::{OK, Reply};
use crate::net::letter::quoted;
use crate::protocol::{GameError, Kind, LeagueError, Message, Refusal};
use serde_json::{Value, json};

/// A refusal as a message: a GAME_ERROR where the match is readable and the agent plays or referees it, else a
/// LEAGUE_ERROR. `sender` is how the agent signs.
pub fn refusal_of(kind: Kind, sender: &str, request: &Value, refusal: &Refusal) -> Message {
    let original = quoted(request, "message_type").unwrap_or("UNKNOWN".into());
    let error_code = refusal.code.to_string();
    let error_description = refusal.code.name().into();
    let context = Some(refusal.context.clone());
    let Some(match_id) = quoted(request, "match_id").filter(|_| kind != Kind::Manager) else {
        return Message::LeagueError(LeagueError {
            error_code,
            error_description,
            original_message_type: Some(original),
            context,
        });
    };
    let player_id = quoted(request, "player_id");
    let own_id = sender.rsplit(':').next().unwrap_or_default();
    Message::GameError(GameError {
        match_id,
        error_code,
        error_description,
        affected_player: player_id.clone().unwrap_or(own_id.into()),
        action_required: original,
        player_id,
        retry_info: None,
        context,
        consequence: Some("Refused; nothing has changed".into()),
    })
}

/// A JSON-RPC result, written.
pub fn answered(result: &Value, id: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#)
}

/// A JSON-RPC error, written.
pub fn failed(id: Value, denial: Denial) -> Reply {
    let (code, message, data) = denial.error();
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    let whole = json!({"jsonrpc": "2.0", "error": error, "id": id});
    Reply::new(OK, whole.to_string())
}
