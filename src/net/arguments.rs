//! What every argument of a tool is for, in words for a person or a language model. The schemas of the tools are made
//! from the structs of the protocol, which know types only; the words stand here once for each name, whichever tool has
//! it. See `mcp.rs`.

use serde_json::Value;

/// Writes into the schema of a tool what each of its arguments is for.
pub fn explain(schema: &mut Value) {
    let Some(arguments) = schema["properties"].as_object_mut() else {
        return; // a tool without arguments
    };
    for (name, says) in SAYS {
        if let Some(argument) = arguments.get_mut(*name) {
            argument["description"] = (*says).into();
        }
    }
}

/// Each argument by its name: those of the envelope, those of the messages, and those of the other tools.
const SAYS: &[(&str, &str)] = &[
    (
        "protocol",
        "the version of the league's protocol; need not come",
    ),
    ("message_type", "which message this is; the tool implies it"),
    (
        "sender",
        "who sends this: player:P01, referee:REF01, league_manager or launcher",
    ),
    ("timestamp", "now, in UTC: 2025-01-15T10:30:00Z"),
    (
        "conversation_id",
        "the same for messages that belong together: all of one match, a question and its answer",
    ),
    (
        "auth_token",
        "proves the sender: its own token to the manager, the match's token between referee and player; \
        next_turn and make_choice take the player's own, and need none on its machine",
    ),
    ("league_id", "the league, league_2025_even_odd for instance"),
    ("round_id", "the round, from 1"),
    ("match_id", "the match, R1M1 for instance"),
    (
        "referee_meta",
        "what the referee says of itself: name, version, games, and the URL under which it is reached",
    ),
    (
        "player_meta",
        "what the player says of itself: name, version, games, and the URL under which it is reached",
    ),
    (
        "action",
        "what is done: remove and restore need a player_id, replay a match_id, the others neither",
    ),
    (
        "query_type",
        "what is asked for: the table, the schedule, a player's next match, or its statistics",
    ),
    (
        "query_params",
        "whom or what the question is about; without a player it is about the sender",
    ),
    (
        "matches",
        "the open matches of the round: who plays whom, and who referees",
    ),
    (
        "match_token",
        "only an invitation that carries it is a true one to this player's match of the round",
    ),
    ("game_type", "the game, even_odd for instance"),
    ("player_id", "the player that this is for, or about: P01"),
    ("opponent_id", "the player on the other side: P02"),
    (
        "role_in_match",
        "which side this player is, PLAYER_A or PLAYER_B; it makes no difference in play",
    ),
    ("deadline", "until when the answer must have come, in UTC"),
    (
        "context",
        "more about it: of a question the opponent and how one stands, of an error what was wrong",
    ),
    ("move_number", "which move of the match this is, from 1"),
    ("position", "how the match stands, for people to read"),
    ("legal_moves", "what may be answered"),
    (
        "game_result",
        "how the match ended: who won, the number that was drawn, and what each player chose",
    ),
    (
        "result",
        "how the match ended: the winner or null, the points of each player, and what they follow from",
    ),
    ("reason", "why it ended so, in words"),
    (
        "error_code",
        "the code of what went wrong, E001 for instance",
    ),
    ("error_description", "its name, TIMEOUT_ERROR for instance"),
    ("original_message_type", "the message that was refused"),
    ("affected_player", "the player that it concerns"),
    (
        "action_required",
        "the message that is awaited from the player",
    ),
    (
        "retry_info",
        "which attempt failed, and when the next one comes",
    ),
    ("consequence", "what follows if no attempt is left"),
    ("standings", "the table, the first in front"),
    ("matches_completed", "how many matches are over"),
    (
        "summary",
        "how many matches the round had, and how they ended",
    ),
    (
        "next_round_id",
        "the round that comes next; null after the last one",
    ),
    ("champion", "who won the league"),
    ("final_standings", "the final table, the first in front"),
    ("total_matches", "how many matches the league had"),
    ("total_rounds", "how many rounds the league had"),
    (
        "match",
        "one entry of `matches` as referees get it: the players, their endpoints and their tokens",
    ),
    (
        "rounds",
        "the word all, for the matches of every round; else those of the open round, or of round_id",
    ),
    ("choice", "one of the legal_moves that next_turn has shown"),
];
