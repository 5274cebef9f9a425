//! An examination knows who we are to the agent, what the agent has sent us, and what it has
//! answered. What happens in an examination is a row of steps, and every step has a name.
//! `GAME_INVITATION R2M1` is a message that we send in that match, and `GAME_INVITATION R2M1 with
//! {"auth_token": "x"}` is the same message with that field made other. `ping` is a method without
//! a message. `P01 GAME_OVER R1M1` is what a player of ours is told by a referee. A step is taken
//! once, when the first check looks at it, and the steps that must come before it are taken first.

use super::*;

/// Everything that an examination knows.
pub struct Exam {
    pub program: Program,
    /// Where the two players are that a referee is given.
    pub players: [String; 2],
    /// Tells the person at the terminal.
    pub say: fn(&str),
    /// What came of each step so far, and what came to us by itself.
    pub steps: Mutex<Vec<Exchange>>,
}

/// The step by which the agent asks to be let in.
pub const REGISTRATION: &str = "registration";

impl Exam {
    /// All that came to us so far of that name, `P01 GAME_OVER R1M1` for instance.
    pub fn heard(&self, step: &str) -> Vec<Exchange> {
        let step = self.named(step);
        let steps = lock(&self.steps);
        steps.iter().filter(|it| it.step == step).cloned().collect()
    }

    /// The agent's registration, or nothing yet. Whatever else comes to us is none.
    pub fn registration(&self) -> Exchange {
        let found = self.heard(REGISTRATION).into_iter().next();
        found.unwrap_or_else(|| Exchange::new("", 0, b""))
    }

    pub fn kind(&self) -> AgentKind {
        match self.registration().speaks_of("REFEREE") {
            true => AgentKind::Referee,
            false => AgentKind::Player,
        }
    }

    /// What the agent says of itself.
    pub fn meta(&self) -> Value {
        self.registration().message()[format!("{}_meta", self.kind())].clone()
    }

    /// Where the agent says that it is.
    pub fn endpoint(&self) -> String {
        let meta = self.meta();
        meta["contact_endpoint"].as_str().unwrap_or_default().into()
    }

    /// The id under which the agent is examined: that of `--as`, else the one that it asks for,
    /// else one that no league gives, so that the agent finds none of its old files.
    pub fn id(&self) -> String {
        let (kind, asked) = (self.kind(), self.registration());
        let wish = asked.text("sender").rsplit(':').next();
        let mut ids = self.program.args.text("--as").into_iter().chain(wish);
        let id = ids.find(|it| kind.is_valid_id(it));
        id.map_or_else(|| kind.format_id(90), String::from)
    }

    /// The game of the league.
    pub fn rules(&self) -> &'static Game {
        games::find(&self.program.config.league.game_type).unwrap_or(&even_odd::GAME)
    }

    /// What is said of Even/Odd, said of the game of the league.
    pub fn named(&self, words: &str) -> String {
        let (from, to) = (&even_odd::GAME, self.rules());
        let (from_answer, from_field) = from.answer_format();
        let (to_answer, to_field) = to.answer_format();
        words
            .replace(from.game_type, to.game_type)
            .replace(&call_name(from), &call_name(to))
            .replace(from_answer, to_answer)
            .replace(from_field, to_field)
    }

    /// How the game of P01 and P04 ends, of whom the first always chooses the first legal move and
    /// the other the last, if this number is drawn; nothing if it cannot be drawn.
    pub fn outcome(&self, number: Option<u32>) -> Option<GameResult> {
        let (rules, mut moves) = (self.rules(), Vec::new());
        while let [seat, ..] = rules.players_to_move(&moves)[..] {
            let legal = (rules.legal_moves)(&moves);
            let text = [legal.first(), legal.last()][seat]?.to_string();
            moves.push(games::Move { seat, text });
        }
        let players = ["P01", "P04"].map(String::from);
        rules.replay(&players, &moves, number).ok()
    }

    pub fn timeouts(&self) -> &Timeouts {
        &self.program.config.system.timeouts
    }

    /// What came of a step, which is taken now if it was not taken before; nothing if the steps
    /// before it did not go well.
    pub fn step(&self, step: &str) -> Option<Exchange> {
        let step = &*self.named(step);
        let (message, added) = step.split_once(" with ").unwrap_or((step, ""));
        let (name, match_id) = message.rsplit_once(' ').unwrap_or((message, "R1M1"));
        let known = || self.heard(step).into_iter().next();
        if let Some(known) = known() {
            return Some(known);
        }
        self.before(name, match_id, added)?;
        if name.contains(' ') {
            return known(); // what a referee tells us comes by itself
        }
        let exchange = self.take(step, name, match_id, added);
        if self.kind() == AgentKind::Referee && name == RoundAnnouncement::NAME {
            self.wait_for_match(match_id, &exchange);
        }
        lock(&self.steps).push(exchange.clone());
        Some(exchange)
    }

    /// Takes the steps that must come before a step; nothing if they did not go well. Somebody must
    /// be there, and the other matches are played only if the first one went well.
    fn before(&self, name: &str, match_id: &str, added: &str) -> Option<()> {
        let call = call_name(self.rules());
        let first = match self.kind() {
            AgentKind::Referee => "P04 GAME_OVER R1M1".into(),
            _ => format!("{call} R1M1"),
        };
        let is_announced = name == GameInvitation::NAME || name.contains(' ');
        let earlier = match name {
            "ping" if added.is_empty() => return Some(()),
            _ if is_announced => format!("ROUND_ANNOUNCEMENT {match_id}"),
            _ if name == call && added.is_empty() => format!("GAME_INVITATION {match_id}"),
            _ if [&*call, GameError::NAME, GameOver::NAME].contains(&name) => first,
            RoundAnnouncement::NAME if match_id != "R1M1" => first,
            _ => "ping".into(),
        };
        let it = self.step(&earlier)?;
        let good = match &*earlier {
            "ping" => it.status != 0,
            _ => is_announced || it.reply().is_some(),
        };
        good.then_some(())
    }

    /// Takes a step: what its name says is sent, and the answer may take as long as it may in a
    /// league.
    fn take(&self, step: &str, name: &str, match_id: &str, added: &str) -> Exchange {
        let timeouts = self.timeouts();
        let limit = match name {
            _ if added == "a caller that gives up" => Duration::from_millis(1),
            GameInvitation::NAME => timeouts.game_join_ack_timeout_sec.0,
            _ if name == call_name(self.rules()) => timeouts.move_timeout_sec.0,
            _ => timeouts.generic_response_timeout_sec.0,
        };
        let mut more: JsonObject = serde_json::from_str(added).unwrap_or_default();
        let id = more.remove("id").unwrap_or(json!(90));
        let body = match (step, MessageSpec::by_type(name)) {
            ("broken JSON", _) => "{\"jsonrpc\":".into(),
            ("2 MB", _) => call("ping", json!({"x": "x".repeat(2 << 20)}), id),
            (_, None) => call(name, json!({}), id),
            (_, Some(entry)) => {
                let mut message = self.message(name, match_id);
                more.into_iter()
                    .for_each(|(key, value)| message[key] = value);
                call(entry.method, message, id)
            }
        };
        self.post(step, &body, limit)
    }

    /// Posts a body, for a step.
    pub fn post(&self, step: &str, body: &str, limit: Duration) -> Exchange {
        let to = Peer {
            kind: self.kind(),
            id: self.id(),
            endpoint: self.endpoint(),
            max_bytes: MAX_NOTICE,
            timeout: limit,
        };
        match self.program.client.post(&to, body) {
            Ok((status, body)) => Exchange::new(step, status, &body),
            Err(error) => Exchange {
                came: format!("nothing: it {}", error.explain()),
                ..Exchange::new(step, 0, b"")
            },
        }
    }
}

/// The `message_type` of the call for a move.
pub fn call_name(game: &Game) -> String {
    game.answer_format().0.replace("RESPONSE", "CALL")
}
