//! What we send are the examples of `protocol.md`, with the agent in the place of P01 (or of
//! REF01), and with our own addresses and times. The tokens are those of the page: an examination
//! has no secrets. So an agent whose author has tried the page's examples knows what comes.

use super::*;

/// The page.
const PAGE: &str = include_str!("../../../src/protocol.md");
/// The conversation of the first match.
pub const CONVERSATION: &str = "conv-r1m1-3f9c2a7e";
/// The token of P01 in a match.
pub const MATCH_TOKEN: &str = "tok-p01-89abcdef0123456789abcdef01234567";
/// The token of P01's registration, which stands in the examples of notices.
const TOKEN_OF_P01: &str = "tok-p01-0123456789abcdef0123456789abcdef";

/// The example of a message; where there are several, the first that has the word.
fn example(message_type: &str, word: &str) -> &'static str {
    let name = format!("\"message_type\": \"{message_type}\"");
    let examples = PAGE.split("```").filter(|it| it.contains(&name));
    let found = examples.min_by_key(|it| !it.contains(word));
    found.unwrap_or_default().trim_start_matches("json")
}

/// Puts values into a message, where it has a place for them.
pub fn fill<'a>(message: &mut Value, values: impl IntoIterator<Item = (&'a str, Value)>) {
    for (key, value) in values {
        if let Some(place) = message.get_mut(key) {
            *place = value;
        }
    }
}

impl Exam {
    /// A message of ours in a match: the page's example, true of this examination. The agent has
    /// the place of P01 or REF01; should another of the example have its name, the two change
    /// names.
    pub fn message(&self, message_type: &str, match_id: &str) -> Value {
        let ([p01, p04], id) = (&self.players, self.id());
        let (name, referee) = match self.kind() {
            AgentKind::Referee => ("REF01", self.endpoint()),
            _ => ("P01", self.program.endpoint.clone()),
        };
        let example = Exchange::new("", 200, example(message_type, name).as_bytes());
        let mut message = example.message().clone();
        let (now, rules) = (Timestamp::now(), self.rules());
        let deadline = now.plus(self.timeouts().move_timeout_sec.0);
        let number = rules.number_range.as_ref().map(|numbers| *numbers.start());
        let result = self.outcome(number);
        let values = [
            ("timestamp", json!(now)),
            ("deadline", json!(deadline)),
            ("move_number", json!(1)),
            ("position", json!((rules.position)(&[]))),
            ("legal_moves", json!((rules.legal_moves)(&[]))),
            ("game_result", json!(result)),
        ];
        fill(&mut message, values);
        let round = format!("\"round_id\":{}", &match_id[1..2]);
        let changes: [(&str, &str); 10] = [
            (TOKEN_OF_P01, self.token()),
            ("\"round_id\":1", &round),
            (name, "#"),
            (&id, name),
            ("#", &id),
            ("R1M1", match_id),
            ("r1m1", &match_id.to_lowercase()),
            ("http://localhost:8001/mcp", &referee),
            ("http://localhost:8101/mcp", p01),
            ("http://localhost:8104/mcp", p04),
        ];
        let change = |text: String, (old, new): (&str, &str)| text.replace(old, new);
        let text = changes.into_iter().fold(message.to_string(), change);
        serde_json::from_str(&self.named(&text)).unwrap_or_default()
    }

    /// The agent's own token, that of its registration.
    pub fn token(&self) -> &'static str {
        match self.kind() {
            AgentKind::Referee => "tok-ref01-00112233445566778899aabbccddeeff",
            _ => TOKEN_OF_P01,
        }
    }

    /// Judges the token that stands where that of a match should.
    pub fn match_token(&self, it: &Exchange, right: impl Fn(&Value) -> bool) -> Option<Seen> {
        if it.reply()?["auth_token"] == self.token() {
            let own = "its own token, that of its registration, which proves it to the manager";
            return it.shows(own, "the token of the match", false).into();
        }
        it.field("auth_token", "the token of the match", right)
    }
}
