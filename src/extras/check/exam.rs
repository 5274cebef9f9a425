//! An examination: who we are to the agent, what it has sent us, and what it has answered.
//!
//! What happens in it is a row of steps, and a step is named by what it is. `GAME_INVITATION R2M1` is a message that we
//! send in that match; with something added it is wrong on purpose: `… with a wrong token`. `ping` is a method without a
//! message. `P91 GAME_OVER R1M1` is what a player of ours is told by a referee. Each step is taken once, when the first
//! check looks at it, and those that must come before are taken first.

use super::*;

/// Everything that an examination knows.
pub struct Exam {
    pub program: Program,
    /// What all our tokens are made of.
    pub secret: String,
    /// Where we are: the league manager, and the two players that a referee is given.
    pub urls: [String; 3],
    pub terminal: Terminal,
    /// What came to us, by whom of us it came to, its type and its match.
    pub heard: Mutex<Vec<(String, Exchange)>>,
    pub taken: Mutex<BTreeMap<String, Exchange>>,
    pub is_there: OnceLock<bool>,
}

impl Exam {
    /// All that came to us so far of that name, `P91 GAME_OVER R1M1` for instance.
    pub fn heard(&self, step: &str) -> Vec<Exchange> {
        let heard = lock(&self.heard);
        let found = heard.iter().filter(|(name, _)| name == step);
        found.map(|(_, it)| it.clone()).collect()
    }

    /// The agent's registration, or nothing yet. Whatever else comes to us is none.
    pub fn registration(&self) -> Exchange {
        let found = self.heard("registration").into_iter().next();
        found.unwrap_or_else(|| Exchange::new("", 0, b""))
    }

    pub fn kind(&self) -> Kind {
        let it = self.registration();
        let is_referee = it.text("message_type").contains("REFEREE");
        if is_referee || it.message().get("referee_meta").is_some() {
            Kind::Referee
        } else {
            Kind::Player
        }
    }

    /// Under which id the agent is examined: that of `--as`, else that which it asks for, else one that no league gives.
    pub fn id(&self) -> String {
        let (kind, asked) = (self.kind(), self.registration());
        let wish = asked.text("sender").rsplit(':').next();
        let mut ids = self.program.args.text("--as").into_iter().chain(wish);
        let id = ids.find(|it| kind.is_id(it));
        id.map_or_else(|| kind.numbered(90), String::from)
    }

    /// Where the agent says that it can be called.
    pub fn endpoint(&self) -> String {
        let (it, meta) = (self.registration(), format!("{}_meta", self.kind()));
        let endpoint = &it.message()[meta]["contact_endpoint"];
        endpoint.as_str().unwrap_or_default().into()
    }

    /// Whether anybody is there. Agents may register before they listen.
    pub fn is_there(&self) -> bool {
        let limit = self
            .program
            .config
            .system
            .timeouts
            .game_join_ack_timeout_sec
            .0;
        let ping = || {
            self.post("ping", &call("ping", &json!({}), 1), limit)
                .status
                != 0
        };
        *self.is_there.get_or_init(|| until(limit, ping))
    }

    /// A step, taken now or before; nothing if what must come before did not go well. No name: the registration.
    pub fn step(&self, step: &str) -> Option<Exchange> {
        let (message, added) = step.split_once(" with ").unwrap_or((step, ""));
        let (name, match_id) = message.rsplit_once(' ').unwrap_or((message, "R1M1"));
        if step.is_empty() {
            return Some(self.registration());
        } else if name.contains(' ') {
            self.step(&format!("{} {match_id}", RoundAnnouncement::NAME))?;
            return self.heard(step).into_iter().next();
        }
        let known = lock(&self.taken).get(step).cloned();
        known.or_else(|| {
            self.is_there()
                .then(|| self.before(name, match_id, added))??;
            let exchange = self.take(step, name, match_id, added);
            if self.kind() == Kind::Referee && name == RoundAnnouncement::NAME {
                self.wait_for_match(match_id, &exchange);
            }
            lock(&self.taken).insert(step.into(), exchange.clone());
            Some(exchange)
        })
    }

    /// Takes the steps that must come before a step in a match; nothing if they did not go well. The other matches need
    /// that the first one went well.
    fn before(&self, name: &str, match_id: &str, added: &str) -> Option<()> {
        let earlier = match (name, match_id) {
            (RoundAnnouncement::NAME, "R1M1") => return Some(()),
            (RoundAnnouncement::NAME, _) if self.kind() == Kind::Referee => {
                "P92 GAME_OVER R1M1".into()
            }
            (GameInvitation::NAME, _) => format!("ROUND_ANNOUNCEMENT {match_id}"),
            (ChooseParityCall::NAME, _) if added.is_empty() => {
                format!("GAME_INVITATION {match_id}")
            }
            _ if ["ROUND_A", "CHOOSE", "GAME"]
                .iter()
                .any(|it| name.starts_with(it)) =>
            {
                "CHOOSE_PARITY_CALL R1M1".into()
            }
            _ => return Some(()),
        };
        let earlier = self.step(&earlier)?;
        (name == GameInvitation::NAME || earlier.reply().is_some()).then_some(())
    }

    /// Takes a step: sends what its name says, and waits as long as the answer may take.
    fn take(&self, step: &str, name: &str, match_id: &str, added: &str) -> Exchange {
        let progress = format!("  {step} is sent; waiting for what comes of it");
        self.terminal.progress(&progress);
        let timeouts = &self.program.config.system.timeouts;
        let limit = match name {
            GameInvitation::NAME => timeouts.game_join_ack_timeout_sec.0,
            ChooseParityCall::NAME => timeouts.move_timeout_sec.0,
            _ => timeouts.generic_response_timeout_sec.0,
        };
        let id = added
            .strip_prefix("id ")
            .and_then(|it| serde_json::from_str(it).ok());
        let id: Value = id.unwrap_or(json!(90));
        let Some(entry) = Entry::of_message(name) else {
            let body = match step {
                "broken JSON" => "{\"jsonrpc\":".into(),
                "2 MB" => call("ping", &json!({"x": "x".repeat(2 << 20)}), id),
                _ => call(name, &json!({}), id),
            };
            return self.post(step, &body, limit);
        };
        let mut params = self.message(name, match_id);
        match added {
            "a wrong token" => params["auth_token"] = "x".into(),
            "no token" => params["auth_token"] = Value::Null,
            "an unknown field" => params["x_later"] = json!(["a field", "of tomorrow"]),
            "100 players" => {
                let row = params["standings"][0].clone();
                params["standings"] = vec![row; 100].into();
            }
            "a caller that gives up" => {
                let body = call(entry.tool, &params, 90);
                return self.post(step, &body, Duration::from_millis(1));
            }
            _ => {}
        }
        self.post(step, &call(entry.tool, &params, id), limit)
    }

    /// Posts a body, which `sent` describes.
    fn post(&self, sent: &str, body: &str, limit: Duration) -> Exchange {
        let client = &self.program.client;
        match client.post_raw(&self.endpoint(), body, MAX_NOTICE, limit) {
            Ok((status, body)) => Exchange::new(sent, status, &body),
            Err(error) => Exchange {
                came: format!("nothing: it {}", error.explain()),
                ..Exchange::new(sent, 0, b"")
            },
        }
    }
}

/// Looks again and again whether something is so, at most so long.
pub fn until(limit: Duration, fact: impl Fn() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !fact() {
        if Instant::now() > end {
            return false;
        }
        pause(Duration::from_millis(10));
    }
    true
}
