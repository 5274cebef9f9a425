//! What we send are the examples of `protocol.md`, with the agent in the place of P01 (or of REF01), and with our own
//! addresses, times and tokens. So an agent whose author has tried the page's examples knows what comes.

use super::*;

/// The page.
const PAGE: &str = include_str!("../../protocol.md");

/// The example of a message; where there are several, the first that has the word.
fn example(message_type: &str, word: &str) -> &'static str {
    let name = format!("\"message_type\": \"{message_type}\"");
    let blocks = PAGE.split("```json\n").skip(1);
    let blocks = blocks.filter_map(|it| Some(it.split_once("```")?.0));
    let examples = blocks.filter(|it| it.contains(&name));
    examples
        .min_by_key(|it| !it.contains(word))
        .unwrap_or_default()
}

/// Puts values into a message, where it has a place for them, as `round_id` or `context/round_id`.
pub fn fill<'a>(message: &mut Value, values: impl IntoIterator<Item = (&'a str, Value)>) {
    for (path, value) in values {
        if let Some(place) = message.pointer_mut(&format!("/{path}")) {
            *place = value;
        }
    }
}

impl Exam {
    /// A message of ours in a match: the page's example, true of this examination.
    pub fn message(&self, message_type: &str, match_id: &str) -> Value {
        let word = match self.kind() {
            Kind::Referee => "tok-ref01",
            _ => "tok-p01",
        };
        let example = example(message_type, word);
        let mut whole = Exchange::new("", 200, example.as_bytes()).message().clone();
        let [conversation, token] = self.game(match_id);
        let mut own = self.token(&self.id());
        if whole["sender"] == "referee:REF01" {
            whole["conversation_id"] = conversation.into();
            own = token.clone();
        }
        let (now, rules) = (Timestamp::now(), self.rules());
        let deadline = now.plus(self.timeouts().move_timeout_sec.0);
        let round: Option<u32> = match_id[1..2].parse().ok();
        let number = rules.draws.as_ref().map(|numbers| *numbers.start());
        let result = self.outcome(number);
        let values = [
            ("timestamp", json!(now)),
            ("deadline", json!(deadline)),
            ("auth_token", json!(own)),
            ("round_id", json!(round)),
            ("context/round_id", json!(round)),
            ("match_token", json!(token)),
            ("matches/0/player_A_token", json!(self.token("P01"))),
            ("matches/0/player_B_token", json!(self.token("P04"))),
            ("move_number", json!(1)),
            ("position", json!((rules.position)(&[]))),
            ("legal_moves", json!((rules.legal)(&[]))),
            ("game_result", json!(result.map(|it| it.for_players()))),
        ];
        fill(&mut whole, values);
        self.with_our_names(&whole, match_id)
    }

    /// An example with everybody's name and address as they are here. The agent has the place of P01 or REF01; should
    /// another of the example have its name, the two change names.
    fn with_our_names(&self, example: &Value, match_id: &str) -> Value {
        let ([p01, p04], id, own) = (&self.players, self.id(), self.meta());
        let (name, referee) = match self.kind() {
            Kind::Referee => ("REF01", own.text("contact_endpoint")),
            _ => ("P01", &*self.program.endpoint),
        };
        let changes = [
            (name, "#"),
            (&*id, name),
            ("#", &*id),
            ("R1M1", match_id),
            ("http://localhost:8001/mcp", referee),
            ("http://localhost:8101/mcp", p01),
            ("http://localhost:8104/mcp", p04),
        ];
        let change = |text: String, (old, new): (&str, &str)| text.replace(old, new);
        let text = changes.into_iter().fold(example.to_string(), change);
        serde_json::from_str(&self.named(&text)).unwrap_or_default()
    }

    /// The token that somebody has of us.
    pub fn token(&self, id: &str) -> String {
        token(id, &self.secret)
    }

    /// The conversation and the token of a player's match.
    pub fn game(&self, match_id: &str) -> [String; 2] {
        let conversation = format!("conv-{match_id}-{}", &self.secret[..8]).to_lowercase();
        [
            conversation,
            token(&self.id(), &format!("{}{match_id}", self.secret)),
        ]
    }

    /// Judges the token that stands where that of a match should.
    pub fn match_token(&self, it: &Exchange, right: impl Fn(&Value) -> bool) -> Option<Seen> {
        if it.reply()?["auth_token"] == self.token(&self.id()) {
            let own = "its own token, that of its registration, which proves it to the manager";
            return it.shows(own, "the token of the match", false).into();
        }
        it.field("auth_token", "the token of the match", right)
    }
}
