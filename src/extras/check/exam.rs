//! An examination knows who we are to the agent, what the agent has sent us, and what it has answered.
//! What happens in an examination is a row of steps, and every step has a name. `GAME_INVITATION R2M1` is a message
//! that we send in that match, and `GAME_INVITATION R2M1 with {"auth_token": "x"}` is the same message with that
//! field made other. `ping` is a method without a message. `P01 GAME_OVER R1M1` is what a player of ours is told by a
//! referee. A step is taken once, when the first check looks at it, and the steps that must come before it are taken
//! first.

use super::*;

/// Everything that an examination knows.
pub struct Exam {
    pub program: Program,
    /// What all our tokens are made of.
    pub secret: String,
    /// Where we are: the league manager, and the two players that a referee is given.
    pub urls: [String; 3],
    pub terminal: Terminal,
    /// What came of each step so far, and what came to us by itself. The step without a name is the registration.
    pub steps: Mutex<Vec<(String, Exchange)>>,
    pub is_there: OnceLock<bool>,
}

impl Exam {
    /// All that came to us so far of that name, `P01 GAME_OVER R1M1` for instance.
    pub fn heard(&self, step: &str) -> Vec<Exchange> {
        let step = self.named(step);
        let steps = lock(&self.steps);
        let found = steps.iter().filter(|(name, _)| *name == step);
        found.map(|(_, it)| it.clone()).collect()
    }

    /// The agent's registration, or nothing yet. Whatever else comes to us is none.
    pub fn registration(&self) -> Exchange {
        let found = self.heard("").into_iter().next();
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

    /// The id under which the agent is examined: that of `--as`, else the one that it asks for, else one that no
    /// league gives, so that the agent finds none of its old files.
    pub fn id(&self) -> String {
        let (kind, asked) = (self.kind(), self.registration());
        let wish = asked.text("sender").rsplit(':').next();
        let mut ids = self.program.args.text("--as").into_iter().chain(wish);
        let id = ids.find(|it| kind.is_id(it));
        id.map_or_else(|| kind.numbered(90), String::from)
    }

    /// The game of the league.
    pub fn rules(&self) -> &'static Game {
        games::named(&self.program.config.league.game_type).unwrap_or(&even_odd::GAME)
    }

    /// What is said of Even/Odd, said of the game of the league.
    pub fn named(&self, words: &str) -> String {
        let legal = |game: &Game| (game.legal)(&[]).join(" or ");
        let (from, to) = (&even_odd::GAME, self.rules());
        words
            .replace(from.messages.call_name, to.messages.call_name)
            .replace(from.messages.answer_name, to.messages.answer_name)
            .replace(from.messages.field, to.messages.field)
            .replace(&legal(from), &legal(to))
    }

    /// How a game of these two ends, of whom the first always chooses the first legal move and the other the last, if
    /// this number is drawn; nothing if it cannot be drawn.
    pub fn outcome(&self, players: [&str; 2], number: Option<u32>) -> Option<Outcome> {
        let (rules, mut moves) = (self.rules(), Vec::new());
        loop {
            let (seats, legal) = (rules.asked(&moves), (rules.legal)(&moves));
            let ends = [legal.first(), legal.last()];
            for seat in &seats {
                let text = ends[*seat]?.to_string();
                moves.push(games::Move { seat: *seat, text });
            }
            if seats.is_empty() {
                return rules.replay(players.map(String::from), moves, number).ok();
            }
        }
    }

    /// Where the agent says that it can be called.
    pub fn endpoint(&self) -> String {
        let (it, meta) = (self.registration(), format!("{}_meta", self.kind()));
        let endpoint = &it.message()[meta]["contact_endpoint"];
        endpoint.as_str().unwrap_or_default().into()
    }

    /// Whether anybody is there. Agents may register before they listen.
    pub fn is_there(&self) -> bool {
        let limit = self.timeouts().game_join_ack_timeout_sec.0;
        let ping = || self.post("ping", &call("ping", json!({}), 1), limit).status != 0;
        *self.is_there.get_or_init(|| until(limit, ping))
    }

    pub fn timeouts(&self) -> &Timeouts {
        &self.program.config.system.timeouts
    }

    /// What came of a step, which is taken now if it was not taken before; nothing if the steps before it did not go
    /// well.
    pub fn step(&self, step: &str) -> Option<Exchange> {
        let step = &*self.named(step);
        let (message, added) = step.split_once(" with ").unwrap_or((step, ""));
        let (name, match_id) = message.rsplit_once(' ').unwrap_or((message, "R1M1"));
        let is_for_us = name.contains(' ');
        if is_for_us {
            self.step(&format!("{} {match_id}", RoundAnnouncement::NAME))?;
        }
        let known = self.heard(step).into_iter().next();
        if known.is_some() || is_for_us || !self.is_there() {
            return known;
        }
        self.before(name, match_id, added)?;
        let exchange = self.take(step, name, match_id, added);
        if self.kind() == Kind::Referee && name == RoundAnnouncement::NAME {
            self.wait_for_match(match_id, &exchange);
        }
        lock(&self.steps).push((step.into(), exchange.clone()));
        Some(exchange)
    }

    /// Takes the steps that must come before a step in a match; nothing if they did not go well. The other matches
    /// are played only if the first one went well.
    fn before(&self, name: &str, match_id: &str, added: &str) -> Option<()> {
        let is_call = name == self.rules().messages.call_name;
        let first = "CHOOSE_PARITY_CALL R1M1".to_string();
        let earlier = match name {
            RoundAnnouncement::NAME if match_id == "R1M1" => return Some(()),
            RoundAnnouncement::NAME if self.kind() == Kind::Referee => "P04 GAME_OVER R1M1".into(),
            GameInvitation::NAME => format!("ROUND_ANNOUNCEMENT {match_id}"),
            _ if is_call && added.is_empty() => format!("GAME_INVITATION {match_id}"),
            RoundAnnouncement::NAME | GameError::NAME | GameOver::NAME => first,
            _ if is_call => first,
            _ => return Some(()),
        };
        let earlier = self.step(&earlier)?;
        (name == GameInvitation::NAME || earlier.reply().is_some()).then_some(())
    }

    /// Takes a step: what its name says is sent, and the answer may take as long as it may in a league.
    fn take(&self, step: &str, name: &str, match_id: &str, added: &str) -> Exchange {
        let progress = format!("  {step} is sent; waiting for what comes of it");
        self.terminal.progress(&progress);
        let timeouts = self.timeouts();
        let limit = match name {
            _ if added == "a caller that gives up" => Duration::from_millis(1),
            GameInvitation::NAME => timeouts.game_join_ack_timeout_sec.0,
            _ if name == self.rules().messages.call_name => timeouts.move_timeout_sec.0,
            _ => timeouts.generic_response_timeout_sec.0,
        };
        let mut more: Packet = serde_json::from_str(added).unwrap_or_default();
        let id = more.remove("id").unwrap_or(json!(90));
        let body = match (step, Entry::of_message(name)) {
            ("broken JSON", _) => "{\"jsonrpc\":".into(),
            ("2 MB", _) => call("ping", json!({"x": "x".repeat(2 << 20)}), id),
            (_, None) => call(name, json!({}), id),
            (_, Some(entry)) => {
                let mut message = self.message(name, match_id);
                more.into_iter()
                    .for_each(|(key, value)| message[key] = value);
                call(entry.tool, message, id)
            }
        };
        self.post(step, &body, limit)
    }

    /// Posts a body, which `sent` describes.
    fn post(&self, sent: &str, body: &str, limit: Duration) -> Exchange {
        let to = Peer {
            kind: self.kind(),
            id: self.id(),
            endpoint: self.endpoint(),
            max: MAX_NOTICE,
            limit,
        };
        match self.program.client.post_raw(&to, body) {
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
