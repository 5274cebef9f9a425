//! A player. To write your own, copy this file and change `choose`: all else is what a legal player needs.
//!
//! The league manager announces rounds; a referee then invites us, asks for our choice, and tells how the match
//! ended. What we may believe, and what we remember, is in `src/memory.rs`. Read next: `src/protocol.rs`.

use league::{
    agent::{self, Card, Me, Registrant},
    clock::Timestamp,
    dispatch::{Agent, Denial, From},
    memory::Memory,
    object,
    options::{Program, Stop},
    protocol::*,
    screen::{say, shown},
    strategies::{self, Past, Turn},
    voice::Voice,
    wire::Unread,
};
use serde_json::Value;
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

/// Your strategy. `turn` knows the opponent, the round, your record and every past match of yours.
/// Take your time, but not longer than `turn.time_left()`.
fn choose(turn: &Turn) -> Parity {
    let strategy = strategies::named(&turn.strategy); // delete these two lines and think for yourself
    strategy.map_or(Parity::Even, |strategy| strategy(turn))
}

const PROGRAM: Program = Program {
    name: "player",
    about: "A player of the AI Agent League: joins matches of Even/Odd and chooses.",
    words: &[],
    options: &[
        ("--manager", "URL", "the league manager [as listed in agents_config.json]"),
        ("--display-name", "NAME", "shown in the table [as listed, or defaults/player.json]"),
        ("--player-id", "ID", "the id to ask for, and whose card to use [any]"),
        ("--strategy", "NAME", "random, even, odd, alternate or contrary [defaults/player.json]"),
        ("--seed", "N", "make random choices repeatable"),
    ],
};

fn main() -> ExitCode {
    PROGRAM.main(|options| agent::run(options, Kind::Player, Player::new))
}

struct Player {
    me: Arc<Me>,
    memory: Memory,
    strategy: String,
    seed: Option<u64>,
}

object! {
    /// What `get_player_state` shows.
    PlayerState {
        display_name: String, state: AgentState, strategy: String, record: Tally, matches: Vec<Past>,
        ; nullable player_id: String,
    }
}

impl Player {
    fn new(me: Arc<Me>) -> Result<Arc<Player>, Stop> {
        let (source, strategy) = match me.options().text("--strategy") {
            Some(name) => ("--strategy", name),
            None => ("defaults/player.json: strategy", me.config().player_defaults.strategy.as_str()),
        };
        if strategies::named(strategy).is_none() {
            let all: Vec<&str> = strategies::ALL.iter().map(|(name, _)| *name).collect();
            return Err(Stop::usage(format!("{source}: got {strategy:?}, expected one of {}", all.join(", "))));
        }
        let (strategy, seed) = (strategy.to_string(), me.options().number("--seed")?);
        let memory = Memory::new(me.config().rules.tokens);
        Ok(Arc::new(Player { me, memory, strategy, seed }))
    }

    /// We come to every match we are truly invited to.
    fn join(&self, card: &Card, from: &From, invitation: GameInvitation) -> Result<Message, Refusal> {
        let (match_id, player_id) = (invitation.match_id.clone(), card.agent_id.clone());
        if invitation.player_id.as_ref().is_some_and(|id| *id != player_id) {
            return Err(Refusal::field(Code::E012, "player_id", format!("this is {player_id}")));
        }
        self.memory.join(&from.envelope, invitation)?;
        let (arrival_timestamp, auth_token) = (Timestamp::now(), from.envelope.auth_token.clone());
        Ok(GameJoinAck { match_id, player_id, arrival_timestamp, accept: true, auth_token }.into())
    }

    /// Our choice: the same whenever it is asked for again. No lock is held while we think.
    fn answer(&self, card: &Card, from: &From, call: ChooseParityCall) -> Result<Message, Refusal> {
        let seat = self.memory.seat(&from.envelope, &call.match_id)?;
        if call.player_id != card.agent_id {
            return Err(Refusal::field(Code::E012, "player_id", format!("this is {}", card.agent_id)));
        }
        let now = Timestamp::now();
        let time = if call.deadline > now { call.deadline.distance(now) } else { Duration::ZERO };
        let turn = Turn {
            player_id: call.player_id.clone(),
            opponent_id: seat.invitation.opponent_id,
            match_id: call.match_id.clone(),
            round_id: seat.invitation.round_id,
            standings: call.context.and_then(|context| context.your_standings),
            history: self.memory.history(),
            strategy: self.strategy.clone(),
            seed: self.seed,
            deadline: Instant::now() + time,
        };
        let parity = *seat.choice.get_or_init(|| choose(&turn));
        let (match_id, player_id, auth_token) = (call.match_id, call.player_id, seat.token);
        Ok(ChooseParityResponse { match_id, player_id, parity_choice: Unread::new(parity.word()), auth_token }.into())
    }

    /// Where our results are kept.
    fn folder(&self, card: &Card) -> PathBuf {
        self.me.data().join("players").join(&card.agent_id)
    }
}

impl Agent for Player {
    fn kind(&self) -> Kind {
        Kind::Player
    }

    fn voice(&self) -> &Voice {
        self.me.voice()
    }

    fn handle(&self, from: &From, message: Message) -> Result<Option<Message>, Denial> {
        let card = self.me.card()?;
        match message {
            // From a referee.
            Message::GameInvitation(invitation) => return Ok(Some(self.join(&card, from, invitation)?)),
            Message::ChooseParityCall(call) => return Ok(Some(self.answer(&card, from, call)?)),
            Message::GameOver(over) => {
                let past = self.memory.remember(&self.folder(&card), &card, &from.envelope, over)?;
                say(&format!("{}: {}", shown(&past.match_id), shown(&past.result.reason.unwrap_or_default())));
            }
            Message::GameError(error) => drop(self.memory.seat(&from.envelope, &error.match_id)?), // for the log
            // From the manager.
            Message::RoundAnnouncement(announcement) => {
                self.me.check_manager(from)?;
                self.memory.announced(&card.agent_id, announcement);
            }
            Message::LeagueCompleted(_) => {
                self.me.check_manager(from)?;
                self.me.finish(Ok(()));
            }
            _ => self.me.check_manager(from)?, // tables, rounds, errors: for information
        }
        Ok(None)
    }

    /// `get_player_state`: open to everybody; it shows no token, and a choice only when its match is over.
    fn tool(&self, _tool: &str, _arguments: &Value) -> Result<Value, Denial> {
        let (player_id, matches) = (self.me.card_now().map(|card| card.agent_id), self.memory.history());
        let mut record = Tally { wins: 0, draws: 0, losses: 0 };
        for past in &matches {
            match past.result.status {
                Ending::Draw => record.draws += 1,
                _ if past.result.winner_player_id == player_id => record.wins += 1,
                _ => record.losses += 1,
            }
        }
        let (display_name, state, strategy) = (self.me.display_name(), self.me.state(), self.strategy.clone());
        Ok(serde_json::to_value(PlayerState { display_name, state, strategy, record, player_id, matches })?)
    }

    fn pinged(&self, token: &str) {
        self.me.pinged(token);
    }

    fn health(&self) -> Value {
        self.me.health()
    }
}

impl Registrant for Player {
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        let folder = self.folder(card);
        self.memory.begin(&folder, fresh).map_err(|error| Stop::failed(format!("{}: {error}", folder.display())))
    }
}
