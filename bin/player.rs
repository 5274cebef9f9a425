//! A player. To write your own, copy this file and change `choose`: all else is what a legal player needs.
//!
//! The league manager announces rounds; a referee then invites us, asks for our choice, and tells how the match
//! ended. We answer a referee only in a match we joined, under the token and the conversation of its invitation.

use league::{
    agent::{self, Card, Competitor, Me, lock},
    clock::Timestamp,
    files::{self, Access},
    object,
    options::{Options, Program, Stop},
    protocol::*,
    registration::equal,
    rpc::{Agent, Denial, From},
    strategies::{self, Past, Turn},
    voice::Voice,
    wire::{Unread, Wire},
};
use serde_json::Value;
use std::{
    collections::HashMap,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, OnceLock},
    time::Instant,
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
    strategy: String,
    seed: Option<u64>,
    memory: Mutex<Memory>,
}

/// What we remember. The history is also on disk.
#[derive(Default)]
struct Memory {
    /// Where the history is kept.
    file: PathBuf,
    history: Vec<Past>,
    /// The match tokens that the manager announced: only invitations with them are true ones.
    promised: HashMap<String, String>,
    seats: HashMap<String, Seat>,
}

/// A match we joined.
#[derive(Clone)]
struct Seat {
    invitation: GameInvitation,
    conversation_id: String,
    token: Option<String>,
    /// Our choice: made once, also when it is asked for twice at the same moment.
    choice: Arc<OnceLock<Parity>>,
    /// Announced again without a token: the next invitation may replace this one.
    replaceable: bool,
}

object! {
    /// `data/players/ID/history.json`.
    History { player_id: String, league_id: String, matches: Vec<Past>, }
    /// What `get_player_state` shows.
    PlayerState {
        display_name: String, state: AgentState, strategy: String, record: Record, matches: Vec<Past>,
        ; nullable player_id: String,
    }
}

impl Player {
    fn new(me: Arc<Me>) -> Result<Arc<Player>, Stop> {
        let options: &Options = &me.base.options;
        let strategy = options.text("--strategy").unwrap_or(&me.base.config.player.strategy).to_string();
        if strategies::named(&strategy).is_none() {
            let all: Vec<&str> = strategies::ALL.iter().map(|(name, _)| *name).collect();
            return Err(Stop::usage(format!("strategy: got {strategy:?}, expected one of {}", all.join(", "))));
        }
        let seed = options.number("--seed")?;
        Ok(Arc::new(Player { me, strategy, seed, memory: Mutex::default() }))
    }

    /// A round begins: remember which token the invitation to our match will carry.
    fn prepare(&self, card: &Card, announcement: RoundAnnouncement) {
        let mut memory = lock(&self.memory);
        let ours = |entry: &MatchEntry| entry.player_A_id == card.agent_id || entry.player_B_id == card.agent_id;
        for entry in announcement.matches.into_iter().filter(ours) {
            match entry.match_token {
                Some(token) => drop(memory.promised.insert(entry.match_id, token)),
                None => memory.seats.get_mut(&entry.match_id).into_iter().for_each(|seat| seat.replaceable = true),
            }
        }
    }

    /// An invitation: joined, if it is the true one (R4).
    fn join(&self, card: &Card, from: &From, invitation: GameInvitation) -> Result<Message, Refusal> {
        let Envelope { conversation_id, auth_token, .. } = from.envelope.clone();
        let (match_id, player_id) = (invitation.match_id.clone(), card.agent_id.clone());
        if invitation.player_id.as_ref().is_some_and(|id| *id != player_id) {
            return Err(Refusal::field(Code::E012, "player_id", format!("this is {player_id}")));
        }
        let mut memory = lock(&self.memory);
        if let Some(promised) = memory.promised.get(&match_id)
            && !auth_token.as_ref().is_some_and(|token| equal(token, promised))
        {
            return Err(Refusal::field(
                Code::E012,
                "auth_token",
                "not the match token that the league manager announced",
            ));
        }
        let known = memory.seats.get(&match_id);
        let same = known.is_some_and(|seat| seat.conversation_id == conversation_id && seat.token == auth_token);
        let on_trust = known.is_some_and(|seat| !seat.replaceable) && !memory.promised.contains_key(&match_id);
        if !same && on_trust {
            return Err(Refusal::field(Code::E012, "auth_token", "another referee has invited to this match before"));
        }
        if !same {
            let (choice, token) = (Arc::default(), auth_token.clone());
            let seat = Seat { invitation, conversation_id, token, choice, replaceable: false };
            memory.seats.insert(match_id.clone(), seat);
        }
        let arrival_timestamp = Timestamp::now();
        Ok(GameJoinAck { match_id, player_id, arrival_timestamp, accept: true, auth_token }.into())
    }

    /// The match that a referee speaks of, if it speaks with the right token, in the right conversation.
    fn seat(&self, from: &From, match_id: &str) -> Result<Seat, Refusal> {
        let memory = lock(&self.memory);
        let unknown = || Refusal::field(Code::E015, "match_id", format!("got {match_id:?}, which we have not joined"));
        let seat = memory.seats.get(match_id).ok_or_else(unknown)?;
        if seat.token != from.envelope.auth_token {
            return Err(Refusal::field(Code::E012, "auth_token", "not the token of the invitation"));
        }
        if seat.conversation_id != from.envelope.conversation_id {
            return Err(Refusal::field(Code::E015, "conversation_id", "not the conversation of the invitation"));
        }
        Ok(seat.clone())
    }

    /// Our choice. No lock is held while we think.
    fn answer(&self, card: &Card, from: &From, call: ChooseParityCall) -> Result<Message, Refusal> {
        let (received, now) = (Instant::now(), Timestamp::now());
        let seat = self.seat(from, &call.match_id)?;
        if call.player_id != card.agent_id {
            return Err(Refusal::field(Code::E015, "player_id", format!("this is {}", card.agent_id)));
        }
        let time = if call.deadline > now { call.deadline.distance(now) } else { Default::default() };
        let turn = Turn {
            player_id: call.player_id.clone(),
            opponent_id: seat.invitation.opponent_id,
            match_id: call.match_id.clone(),
            round_id: seat.invitation.round_id,
            standings: call.context.and_then(|context| context.your_standings),
            history: lock(&self.memory).history.clone(),
            strategy: self.strategy.clone(),
            seed: self.seed,
            deadline: received + time,
        };
        let parity = *seat.choice.get_or_init(|| choose(&turn));
        let (match_id, player_id, auth_token) = (call.match_id, call.player_id, seat.token);
        Ok(ChooseParityResponse { match_id, player_id, parity_choice: Unread::new(parity.word()), auth_token }.into())
    }

    /// A match is over: remembered on disk before we say so.
    fn remember(&self, card: &Card, from: &From, over: GameOver) -> Result<(), Denial> {
        let seat = self.seat(from, &over.match_id)?;
        let result = GameResult { reason: over.game_result.reason.clone().or(over.reason), ..over.game_result };
        let (match_id, opponent_id) = (over.match_id, seat.invitation.opponent_id);
        let past = Past { match_id, conversation_id: seat.conversation_id, opponent_id, result };
        let mut memory = lock(&self.memory);
        match memory.history.iter_mut().find(|known| known.match_id == past.match_id) {
            Some(known) => *known = past,
            None => memory.history.push(past),
        }
        let (player_id, league_id) = (card.agent_id.clone(), card.league_id.clone());
        let history = History { player_id, league_id, matches: memory.history.clone() };
        Ok(files::replace_json(&memory.file, Access::Everybody, &history)?)
    }
}

impl Agent for Player {
    fn kind(&self) -> Kind {
        Kind::Player
    }

    fn voice(&self) -> &Voice {
        &self.me.base.voice
    }

    fn handle(&self, from: &From, message: Message) -> Result<Option<Message>, Denial> {
        let card = self.me.card()?;
        match message {
            // From a referee.
            Message::GameInvitation(invitation) => return Ok(Some(self.join(&card, from, invitation)?)),
            Message::ChooseParityCall(call) => return Ok(Some(self.answer(&card, from, call)?)),
            Message::GameOver(over) => self.remember(&card, from, over)?,
            Message::GameError(error) => drop(self.seat(from, &error.match_id)?), // for information; it is logged
            // From the manager.
            Message::RoundAnnouncement(announcement) => {
                self.me.check_manager(from)?;
                self.prepare(&card, announcement);
            }
            Message::LeagueCompleted(_) => {
                self.me.check_manager(from)?;
                self.me.finish();
            }
            _ => self.me.check_manager(from)?, // tables, rounds, errors: for information
        }
        Ok(None)
    }

    /// `get_player_state`: open to everybody; it shows no token, and a choice only when its match is over.
    fn tool(&self, _tool: &str, _arguments: &Value) -> Result<Value, Denial> {
        let card = self.me.card_now();
        let matches = lock(&self.memory).history.clone();
        let own = card.as_ref().map(|card| card.agent_id.clone()).unwrap_or_default();
        let count = |wanted: &dyn Fn(&Past) -> bool| matches.iter().filter(|past| wanted(past)).count() as u32;
        let won = |past: &Past| past.result.winner_player_id.as_ref() == Some(&own);
        let drawn = |past: &Past| past.result.status == Ending::Draw;
        let record =
            Record { wins: count(&won), draws: count(&drawn), losses: count(&|past| !won(past) && !drawn(past)) };
        let state = PlayerState {
            display_name: self.me.display_name(),
            state: self.me.state(),
            strategy: self.strategy.clone(),
            record,
            player_id: card.map(|card| card.agent_id),
            matches,
        };
        serde_json::to_value(state).map_err(|error| Denial::Broken(error.to_string()))
    }

    fn health(&self) -> Value {
        self.me.health()
    }
}

impl Competitor for Player {
    /// We are registered: read what we remember, unless it belongs to an older registration.
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        let folder = self.me.base.data.join("players").join(&card.agent_id);
        if fresh {
            files::set_aside(&folder).map_err(|error| Stop::failed(format!("{}: {error}", folder.display())))?;
        }
        let file = folder.join("history.json");
        let read = files::read_json(&file).ok().and_then(|history| History::read(&history).ok());
        let history = read.map(|history| history.matches).unwrap_or_default();
        *lock(&self.memory) = Memory { file, history, ..Memory::default() };
        println!("{} is {}", self.me.display_name(), card.agent_id);
        Ok(())
    }
}
