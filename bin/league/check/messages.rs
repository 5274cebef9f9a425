//! The messages that we send: the examples of `protocol.md`, with the agent in the place of P01 or
//! REF01, and with our own addresses and times. The tokens are those of the examples, since an
//! examination has no secrets. So an agent whose author has tried the examples knows the messages.

use super::examination::Examination;
use super::exchange::{Exchange, Observation};
use league::protocol::AgentKind;
use league::values::Timestamp;
use serde_json::{Value, json};

/// The id of our league, which the agent prints when it has registered.
const LEAGUE: &str = "an_examination_no_league";
const PROTOCOL_PAGE: &str = include_str!("../../../src/protocol.md");
/// The conversation of the first match.
pub const CONVERSATION: &str = "conv-r1m1-3f9c2a7e";
/// The token of P01 in a match.
pub const MATCH_TOKEN: &str = "tok-p01-89abcdef0123456789abcdef01234567";
/// The token of P01's registration, in the examples of notifications.
const TOKEN_OF_P01: &str = "tok-p01-0123456789abcdef0123456789abcdef";
const TOKEN_OF_REF01: &str = "tok-ref01-00112233445566778899aabbccddeeff";

/// Returns the example of a message: the first one with that name in it, or else the first one.
fn example(message_type: &str, name: &str) -> &'static str {
    let type_field = format!("\"message_type\": \"{message_type}\"");
    let blocks = PROTOCOL_PAGE.split("```");
    let examples = blocks.filter(|block| block.contains(&type_field));
    let example = examples.min_by_key(|example| !example.contains(name));
    example.unwrap_or_default().trim_start_matches("json")
}

/// Sets those fields that a message has.
pub fn fill(message: &mut Value, fields: &[(&str, Value)]) {
    for (key, value) in fields {
        if let Some(field) = message.get_mut(key) {
            *field = value.clone();
        }
    }
}

impl Examination {
    /// Returns our message of that type in a match. If another agent of the example has the name of
    /// the agent under examination, the two change names.
    pub fn message(&self, message_type: &str, match_id: &str) -> Value {
        let (name, referee_url) = match self.kind() {
            AgentKind::Referee => ("REF01", self.endpoint()),
            _ => ("P01", self.program.endpoint.clone()),
        };

        let example = Exchange::new("", 200, example(message_type, name).as_bytes());
        let mut message = example.message().clone();

        // Set the fields that depend on the time and the game.
        let (now, game) = (Timestamp::now(), self.game());
        let deadline = now.plus(self.timeouts().move_timeout_sec.0);
        let lowest_number = game.number_range.as_ref().map(|range| *range.start());
        let fields = [
            ("timestamp", json!(now)),
            ("deadline", json!(deadline)),
            ("move_number", json!(1)),
            ("position", json!((game.position)(&[]))),
            ("legal_moves", json!((game.legal_moves)(&[]))),
            ("game_result", json!(self.expected_result(lowest_number))),
            ("consequence", json!("This is an examination")),
        ];
        fill(&mut message, &fields);

        // Replace names, the match and addresses, also within texts and lists.
        let id = self.id();
        let round = match_id.trim_start_matches('R').split('M').next();
        let round = format!("\"round_id\":{}", round.unwrap_or_default());
        let [p01_url, p04_url] = &self.player_urls;
        let mut text = message.to_string();
        for (old, new) in [
            (TOKEN_OF_P01, self.token()),
            ("\"round_id\":1", &round),
            (name, "#"),
            (&id, name),
            ("#", &id),
            ("league_2025_even_odd", LEAGUE),
            ("league_2025_tic_tac_toe", LEAGUE),
            ("R1M1", match_id),
            ("r1m1", &match_id.to_lowercase()),
            ("http://localhost:8001/mcp", &referee_url),
            ("http://localhost:8101/mcp", p01_url),
            ("http://localhost:8104/mcp", p04_url),
        ] {
            text = text.replace(old, new);
        }
        serde_json::from_str(&self.translate(&text)).unwrap_or_default()
    }

    /// Returns the token of the agent's registration.
    pub fn token(&self) -> &'static str {
        match self.kind() {
            AgentKind::Referee => TOKEN_OF_REF01,
            _ => TOKEN_OF_P01,
        }
    }

    /// Checks the token of a match in a message of the agent.
    pub fn check_match_token(
        &self,
        exchange: &Exchange,
        is_right: impl Fn(&Value) -> bool,
    ) -> Option<Observation> {
        let expected = "the token of the match";
        if exchange.reply()?["auth_token"] == self.token() {
            let received =
                "its own token, that of its registration, which proves it to the manager";
            return Some(exchange.observe(received, expected, false));
        }
        exchange.check_field("auth_token", expected, is_right)
    }
}
