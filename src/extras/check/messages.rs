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

impl Exam {
    /// The page's example of a message, with everybody's name and address as they are here.
    fn retold(&self, message_type: &str, match_id: &str) -> String {
        let ([manager, p91, p92], id) = (&self.urls, self.id());
        let (word, p01, p04, ref01, referee) = match self.kind() {
            Kind::Referee => ("tok-ref01", "P91", "P92", &*id, &self.endpoint()),
            _ => ("tok-p01", &*id, "P91", "REF91", manager),
        };
        let text = match message_type {
            LeagueQueryResponse::NAME => example(message_type, "\"success\": false"),
            _ => example(message_type, word),
        };
        let changes = [
            ("P02", "P93"),
            ("P03", "P94"),
            ("P04", p04),
            ("P01", p01),
            ("REF01", ref01),
            ("R1M1", match_id),
            (
                "\"round_id\": 1",
                &format!("\"round_id\": {}", &match_id[1..2]),
            ),
            ("league_2025_even_odd", self.program.league_id()),
            ("http://localhost:8001/mcp", referee),
            ("http://localhost:8101/mcp", p91),
            ("http://localhost:8104/mcp", p92),
        ];
        let replace = |text: String, (old, new): (&str, &str)| text.replace(old, new);
        let text = changes.into_iter().fold(text.into(), replace);
        self.named(&text)
    }

    /// A message of ours in a match.
    pub fn message(&self, message_type: &str, match_id: &str) -> Value {
        let text = self.retold(message_type, match_id);
        let mut whole = Exchange::new("", 200, text.as_bytes()).message().clone();
        let [conversation, token] = self.game(match_id);
        let mut own = self.token(&self.id());
        let sender = whole["sender"].as_str().unwrap_or_default();
        if sender.starts_with("referee:") {
            whole["conversation_id"] = conversation.into();
            own = token.clone();
        }
        let now = Timestamp::now();
        let deadline = now.plus(self.program.config.system.timeouts.move_timeout_sec.0);
        for (path, value) in [
            ("/timestamp", now.to_string()),
            ("/arrival_timestamp", now.to_string()),
            ("/deadline", deadline.to_string()),
            ("/auth_token", own),
            ("/league_id", self.program.league_id().into()),
            ("/game_type", self.rules().game_type.into()),
            ("/matches/0/game_type", self.rules().game_type.into()),
            ("/match_token", token),
            ("/matches/0/player_A_token", self.token("P91")),
            ("/matches/0/player_B_token", self.token("P92")),
        ] {
            if let Some(place) = whole.pointer_mut(path) {
                *place = value.into();
            }
        }
        let result = self.outcome([&self.id(), "P91"], Some(1));
        let result = result.or(self.outcome([&self.id(), "P91"], None));
        for (key, value) in [
            ("move_number", json!(1)),
            ("position", json!((self.rules().position)(&[]))),
            ("legal_moves", json!((self.rules().legal)(&[]))),
            ("game_result", json!(result.map(|it| it.for_players()))),
        ] {
            if whole.get(key).is_some() {
                whole[key] = value;
            }
        }
        whole
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
    pub fn match_token(&self, it: &Exchange, right: impl Fn(&Value) -> bool) -> Option<Finding> {
        if it.reply()?["auth_token"] == self.token(&self.id()) {
            let own = "its own token, that of its registration, which proves it to the manager";
            return it.shows(own, "the token of the match", false).into();
        }
        it.field("auth_token", "the token of the match", right)
    }
}
