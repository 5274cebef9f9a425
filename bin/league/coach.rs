//! A player with a finished strategy, or one that is played by hand, in the place of
//! its own `choose`. This belongs to the tool (`league play NAME`).

use crate::by_hand::ByHand;
use crate::strategies;
use league::games;
use league::net::agent::{Agent, HandlerError, Request, Toolbox};
use league::player::{self, Player, Strategy, Turn, display};
use league::program::args::{Args, Exit};
use league::program::credentials::Credentials;
use league::program::session::{self, Participant, Session};
use league::program::terminal::{print_error, print_line};
use league::protocol::{AgentKind, AgentState, Message, ProtocolError};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread;

/// Runs a player with the strategy that the command line names.
pub fn run(args: Args) -> Result<(), Exit> {
    let name = args.operands[0].clone();
    start(args, &name)
}

fn start(args: Args, name: &str) -> Result<(), Exit> {
    let name = if name == "mcp" { "mcp:random" } else { name };
    let example = name.strip_prefix("mcp:").unwrap_or(name);
    let all: Vec<&str> = strategies::all_names().collect();
    if !all.contains(&example) {
        let legal = format!("mcp, or one of {}", all.join(", "));
        let words = format!("play: got {example:?}, expected {legal}");
        return Err(Exit::usage(words));
    }
    let mut game_types = games::names();
    game_types.retain(|game| strategies::named(game, example).is_some());
    let owned = example.to_string();
    let choose = move |turn: &Turn| match strategies::named(&turn.game_type, &owned) {
        Some(choose) => choose(turn),
        None => String::new(), // it is not one of game_types
    };
    let mut strategy = Strategy {
        name: name.into(),
        game_types,
        choose: Box::new(choose),
    };
    if name == example {
        return player::start(args, strategy);
    }
    let by_hand = Arc::new(ByHand::default());
    let (hand, owned) = (Arc::clone(&by_hand), example.to_string());
    let choose = strategy.choose;
    strategy.choose = Box::new(move |turn| by_hand_or(&hand, turn, &owned, &choose));
    session::run(args, AgentKind::Player, |session| {
        let player = Player::new(Arc::clone(&session), strategy);
        Arc::new(HandPlayer {
            player,
            session,
            by_hand,
        })
    })?;
    print_line("the league is over; still serving");
    loop {
        thread::park();
    }
}

/// A match that only a stranger has named is not offered to whoever plays by hand.
fn by_hand_or(
    by_hand: &ByHand,
    turn: &Turn,
    name: &str,
    choose: &dyn Fn(&Turn) -> String,
) -> String {
    if !turn.is_announced {
        return choose(turn);
    }
    if let Some(chosen) = by_hand.ask(turn) {
        return chosen;
    }
    let (match_id, chosen) = (&turn.match_id, choose(turn));
    let words = format!("{match_id}: nobody chose in time; {name} chose {chosen}");
    print_error(&format!("{}: {words}", turn.player_id));
    by_hand.note(&words);
    chosen
}

/// A player whose choices come through its tools.
struct HandPlayer {
    player: Arc<Player>,
    session: Arc<Session>,
    by_hand: Arc<ByHand>,
}

impl Participant for HandPlayer {
    fn game_types(&self) -> Vec<&'static str> {
        self.player.game_types()
    }

    fn on_registered(&self, card: &Credentials, is_new_registration: bool) -> Result<(), Exit> {
        self.player.on_registered(card, is_new_registration)
    }
}

impl Agent for HandPlayer {
    fn kind(&self) -> AgentKind {
        AgentKind::Player
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, HandlerError> {
        let was_over = self.session.state() == AgentState::Shutdown;
        let league = match &message {
            Message::LeagueCompleted(league) => Some(league.clone()),
            _ => None,
        };
        let answer = self.player.handle(request, message)?;
        if let (Some(league), Some(card), false) = (league, self.session.credentials(), was_over) {
            (self.by_hand).end(&display::league_over(&card.agent_id, &league));
        }
        Ok(answer)
    }

    fn on_refused(&self, packet: &Value, peer: IpAddr, refusal: &ProtocolError) {
        self.player.on_refused(packet, peer, refusal);
    }

    fn health(&self) -> Value {
        self.player.health()
    }

    fn toolbox(&self) -> Toolbox<'_> {
        let mut toolbox = self.by_hand.toolbox(&self.session);
        toolbox.tools.extend(self.player.toolbox().tools);
        toolbox
    }
}
