//! The state of an examination, and its steps.
//!
//! Everything that happens in an examination is a step with a name:
//! - `GAME_INVITATION R2M1` is a message that we send in that match;
//! - `GAME_INVITATION R2M1 with {"auth_token": "x"}` is the same message with another value in a
//!   field;
//! - `ping` is a method without a message;
//! - `P01 GAME_OVER R1M1` is a message that a referee sends to a player of ours.
//!
//! A step is taken once, when the first check needs it. The steps that must come before it are
//! taken first.

use super::exchange::Exchange;
use super::json_rpc_call;
use crate::relay::queue::Queue;
use league::games::{self, Game, Move, even_odd};
use league::net::client::{MAX_NOTICE, Peer};
use league::net::sync::lock;
use league::program::Program;
use league::program::config::Timeouts;
use league::protocol::{
    AgentKind, GameError, GameInvitation, GameOver, GameResult, JsonObject, MessageSpec,
    RoundAnnouncement,
};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

/// The step in which the agent asks to be registered.
pub const REGISTRATION: &str = "registration";

/// The examination of one agent.
pub struct Examination {
    pub program: Program,
    /// The endpoints of the two players of a referee's matches.
    pub player_urls: [String; 2],
    /// The endpoint of a player that only calls out, and the requests for it.
    pub relay_url: String,
    pub relay: Queue,
    /// Prints a line for the person at the terminal.
    pub print: fn(&str),
    /// The exchanges so far: the steps that were taken, and the calls to us.
    pub exchanges: Mutex<Vec<Exchange>>,
}

/// The parts of a step's name.
struct Step<'a> {
    /// The whole name.
    full: &'a str,
    /// The message type or the method; `P01 GAME_OVER` for a message to a player of ours.
    name: &'a str,
    match_id: &'a str,
    /// The text after `with`.
    change: &'a str,
}

impl<'a> Step<'a> {
    fn parse(full: &'a str) -> Step<'a> {
        let (message, change) = full.split_once(" with ").unwrap_or((full, ""));
        let (name, match_id) = message.rsplit_once(' ').unwrap_or((message, "R1M1"));
        Step {
            full,
            name,
            match_id,
            change,
        }
    }

    /// Returns true if the referee takes this step, and not we.
    fn is_call_to_us(&self) -> bool {
        self.name.contains(' ')
    }
}

impl Examination {
    /// Returns the exchanges of a step so far.
    pub fn exchanges(&self, step: &str) -> Vec<Exchange> {
        let step = self.translate(step);
        let exchanges = lock(&self.exchanges);
        let same_step = exchanges.iter().filter(|exchange| exchange.step == step);
        same_step.cloned().collect()
    }

    fn first_exchange(&self, step: &str) -> Option<Exchange> {
        self.exchanges(step).into_iter().next()
    }

    /// Returns the agent's registration; an empty exchange before it.
    pub fn registration(&self) -> Exchange {
        let registration = self.first_exchange(REGISTRATION);
        registration.unwrap_or_else(|| Exchange::new("", 0, b""))
    }

    /// Returns the kind of the agent.
    pub fn kind(&self) -> AgentKind {
        if self.registration().mentions("REFEREE") {
            AgentKind::Referee
        } else {
            AgentKind::Player
        }
    }

    /// Returns the metadata with which the agent has registered.
    pub fn meta(&self) -> Value {
        self.registration().message()[format!("{}_meta", self.kind())].clone()
    }

    /// Returns the agent's endpoint, as its metadata says.
    pub fn endpoint(&self) -> String {
        let meta = self.meta();
        meta["contact_endpoint"].as_str().unwrap_or_default().into()
    }

    /// Returns the id that the agent gets: that of `--as`, or the one that it asks for, or one that
    /// no league gives, so that the agent finds no files of an earlier run.
    pub fn id(&self) -> String {
        let (kind, registration) = (self.kind(), self.registration());
        let given = self.program.args.text("--as");
        let requested = registration.text("sender").rsplit(':').next();
        for id in [given, requested].into_iter().flatten() {
            if kind.is_valid_id(id) {
                return id.into();
            }
        }
        kind.format_id(90)
    }

    /// Returns the game of the league.
    pub fn game(&self) -> &'static Game {
        games::find(&self.program.config.league.game_type).unwrap_or(&even_odd::GAME)
    }

    /// Returns a text about Even/Odd with the names of the league's game instead.
    pub fn translate(&self, text: &str) -> String {
        let (from, to) = (&even_odd::GAME, self.game());
        let (from_call, from_answer) = from.messages.message_types();
        let (to_call, to_answer) = to.messages.message_types();
        text.replace(from.game_type, to.game_type)
            .replace(from_call, to_call)
            .replace(from_answer, to_answer)
            .replace(from.messages.field(), to.messages.field())
    }

    /// Returns the result of a game in which P01 always plays the first legal move and P04 the last
    /// one, if this number is drawn; none if it cannot be drawn.
    pub fn expected_result(&self, number: Option<u32>) -> Option<GameResult> {
        let game = self.game();
        let mut moves = Vec::new();
        while let Some(&seat) = game.players_to_move(&moves).first() {
            let legal = (game.legal_moves)(&moves);
            let text = if seat == 0 {
                legal.first()?
            } else {
                legal.last()?
            };
            moves.push(Move {
                seat,
                text: text.to_string(),
            });
        }
        let players = ["P01", "P04"].map(String::from);
        game.replay(&players, &moves, number).ok()
    }

    /// Returns the timeouts of the league.
    pub fn timeouts(&self) -> &Timeouts {
        &self.program.config.system.timeouts
    }

    /// Returns the exchange of a step, which is taken now unless it was taken before; none if the
    /// steps before it did not succeed.
    pub fn exchange(&self, step: &str) -> Option<Exchange> {
        let full = self.translate(step);
        let step = Step::parse(&full);

        // A step is taken once, after those that it depends on.
        if let Some(known) = self.first_exchange(&full) {
            return Some(known);
        }
        let is_relayed = self.endpoint() == self.relay_url; // then it never gets such a body
        let is_refused_by_relay = is_relayed && ["broken JSON", "2 MB"].contains(&step.full);
        if is_refused_by_relay || !self.take_earlier_step(&step) {
            return None;
        }
        if step.is_call_to_us() {
            return self.first_exchange(&full);
        }

        let exchange = self.take(&step);
        if self.kind() == AgentKind::Referee && step.name == RoundAnnouncement::NAME {
            self.wait_for_match(step.match_id, &exchange);
        }
        lock(&self.exchanges).push(exchange.clone());
        Some(exchange)
    }

    /// Takes the step that must come before a step; returns true if it succeeded. The agent must
    /// answer at its endpoint, and the other matches are played only after the first one.
    fn take_earlier_step(&self, step: &Step) -> bool {
        let (call, _) = self.game().messages.message_types();
        let end_of_first_match = match self.kind() {
            AgentKind::Referee => "P04 GAME_OVER R1M1".into(),
            _ => format!("{call} R1M1"),
        };

        let follows_announcement = step.name == GameInvitation::NAME || step.is_call_to_us();
        let earlier = match step.name {
            "ping" if step.change.is_empty() => return true,
            _ if follows_announcement => format!("ROUND_ANNOUNCEMENT {}", step.match_id),
            name if name == call && step.change.is_empty() => {
                format!("GAME_INVITATION {}", step.match_id)
            }
            name if [call, GameError::NAME, GameOver::NAME].contains(&name) => end_of_first_match,
            RoundAnnouncement::NAME if step.match_id != "R1M1" => end_of_first_match,
            _ => "ping".into(),
        };

        let Some(exchange) = self.exchange(&earlier) else {
            return false;
        };
        if earlier == "ping" {
            exchange.status != 0
        } else {
            follows_announcement || exchange.reply().is_some()
        }
    }

    /// Sends the message of a step, even if it was sent before, and does not keep it.
    pub fn send(&self, step: &str) -> Exchange {
        self.take(&Step::parse(&self.translate(step)))
    }

    /// Sends the request of a step. The answer may take as long as in a league.
    fn take(&self, step: &Step) -> Exchange {
        let timeouts = self.timeouts();
        let timeout = match step.name {
            _ if step.change == "a caller that gives up" => Duration::from_millis(1),
            GameInvitation::NAME => timeouts.game_join_ack_timeout_sec.0,
            name if name == self.game().messages.message_types().0 => timeouts.move_timeout_sec.0,
            _ => timeouts.generic_response_timeout_sec.0,
        };

        let mut changes: JsonObject = serde_json::from_str(step.change).unwrap_or_default();
        let id = changes.remove("id").unwrap_or(json!(90));
        let body = if step.full == "broken JSON" {
            "{\"jsonrpc\":".into()
        } else if step.full == "2 MB" {
            json_rpc_call("ping", &json!({"x": "x".repeat(2 << 20)}), &id)
        } else if let Some(spec) = MessageSpec::by_type(step.name) {
            let mut message = self.message(step.name, step.match_id);
            for (key, value) in changes {
                message[key] = value;
            }
            json_rpc_call(spec.method, &message, &id)
        } else {
            json_rpc_call(step.name, &json!({}), &id)
        };
        self.post(step.full, &body, timeout)
    }

    /// Posts the body of a step to the agent.
    pub fn post(&self, step: &str, body: &str, timeout: Duration) -> Exchange {
        let agent = Peer {
            kind: self.kind(),
            id: self.id(),
            endpoint: self.endpoint(),
            max_bytes: MAX_NOTICE,
            timeout,
        };
        match self.program.client.post(&agent, body) {
            Ok((status, body)) => Exchange::new(step, status, &body),
            Err(error) => Exchange {
                received: format!("nothing: it {}", error.explain()),
                ..Exchange::new(step, 0, b"")
            },
        }
    }
}
