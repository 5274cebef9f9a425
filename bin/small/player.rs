//! The small player: it registers, joins its matches, and chooses even or odd. Change `choose`.
//!
//! It answers any referee, and remembers its matches only while it runs. The player of chapter two,
//! the league among strangers (`src/player.rs`), joins announced matches only, checks the token of a
//! match, answers a repeated call with the same choice, and survives a restart.
//!
//! It uses three functions of `net.rs`: `start` reads options and configuration and takes a port,
//! `call_with_retries` calls another agent, and `serve` answers the calls of others.

mod config;
mod net;

use league::protocol::{
    AgentKind, ChooseParityCall, ChooseParityResponse, GameInvitation, GameJoinAck, GameOver,
    IncomingMessage, LeagueRegisterRequest, Parity, PlayerRequest, Reply,
};
use league::values::Timestamp;
use net::{Agent, Decision};
use std::process;
use std::sync::{Arc, Mutex};

/// What a player knows when it must choose. In chapter two, `bin/player.rs` and `bin/player.py` have
/// the same names.
#[allow(dead_code, reason = "a better `choose` uses them")]
struct Turn {
    player_id: String,
    /// Empty if the referee does not say it.
    opponent_id: String,
    match_id: String,
    /// Our matches so far, oldest first. In the small league all opponents are met once, so none of
    /// them was against this one.
    history: Vec<GameOver>,
    agent: Arc<Agent>,
}

impl Turn {
    /// Returns even or odd at random. With `--seed` it is the same in every run, and at every call.
    /// `fastrand::bool()` would not be: each request has a thread of its own, which `fastrand::seed` in
    /// `main` does not reach.
    fn random(&self) -> Parity {
        [Parity::Even, Parity::Odd][self.agent.random(&self.match_id).usize(..2)]
    }
}

/// The strategy: a coin. Replace it by a better one, step by step.
fn choose(turn: &Turn) -> Parity {
    // Step 1: equal choices always draw, which is 1 point for each player. Unequal choices always have
    //         a winner, who gets 3 points. So try to choose another one than your opponent.
    // Step 2: some players always choose the same. What did your opponents choose most in
    //         `turn.history`? `past.game_result.choices` has what both players chose in a match.
    // Step 3: if all players do step 2, they choose the same again. What is better then?
    turn.random()
}

fn main() {
    if let Err(problem) = run() {
        eprintln!("{problem}");
        process::exit(1);
    }
}

/// The life of a player.
fn run() -> Result<(), String> {
    // Register.
    let (mut agent, server, options) = net::start(AgentKind::Player)?;
    let player_meta = agent.meta(options.always.as_deref().unwrap_or("Agent"));
    let manager = agent.manager("conv-registration");
    let response = agent.call_with_retries(&manager, &LeagueRegisterRequest { player_meta });
    agent.join_league(response)?;

    // Answer each request in a thread of its own. `accepted` has each message as soon as its reply is
    // written. Wait until the league is over.
    let agent = Arc::new(agent);
    let player = Player {
        agent: Arc::clone(&agent),
        always: options.always,
        history: Mutex::new(Vec::new()),
    };
    let accepted = net::serve(agent, server, move |received| player.handle(received));
    for message in accepted {
        if let PlayerRequest::LeagueCompleted(_) = message {
            break;
        }
    }
    Ok(())
}

struct Player {
    agent: Arc<Agent>,
    /// With `--always even` the player does not ask `choose`.
    always: Option<String>,
    /// The results of our matches, oldest first.
    history: Mutex<Vec<GameOver>>,
}

impl Player {
    /// Returns the reply to a message; `None` where a receipt is enough.
    fn handle(&self, received: &IncomingMessage<PlayerRequest>) -> Decision {
        let token = received.envelope.auth_token.clone();
        match &received.message {
            PlayerRequest::GameInvitation(call) => return Ok(Some(self.join(call, token))),
            PlayerRequest::ChooseParityCall(call) => return Ok(Some(self.answer(call, token))),
            PlayerRequest::ChooseMoveCall(_) => return Err(net::not_here("CHOOSE_MOVE_CALL")),
            PlayerRequest::GameOver(over) => {
                // It may come twice, if the referee missed our reply.
                let mut history = self.history.lock().unwrap();
                history.retain(|past| past.match_id != over.match_id);
                history.push(over.clone());
            }
            PlayerRequest::GameError(error) => println!("{}: {}", error.match_id, error.explain()),
            // Announcements, tables and the end come from the manager. They stand in the log.
            _ => net::check_token(&received.envelope, &self.agent.token)?,
        }
        Ok(None)
    }

    /// Accepts an invitation. The token of the match goes back with each reply.
    fn join(&self, invitation: &GameInvitation, auth_token: Option<String>) -> Reply {
        Reply::GameJoinAck(GameJoinAck {
            match_id: invitation.match_id.clone(),
            player_id: self.agent.id.clone(),
            arrival_timestamp: Timestamp::now(),
            accept: true,
            auth_token,
        })
    }

    /// Answers a call with a choice.
    fn answer(&self, call: &ChooseParityCall, auth_token: Option<String>) -> Reply {
        let opponent_id = call.context.clone().and_then(|context| context.opponent_id);
        let turn = Turn {
            player_id: self.agent.id.clone(),
            opponent_id: opponent_id.unwrap_or_default(),
            match_id: call.match_id.clone(),
            history: self.history.lock().unwrap().clone(),
            agent: Arc::clone(&self.agent),
        };
        let choice = match &self.always {
            Some(choice) => choice.clone(),
            None => choose(&turn).to_string(),
        };
        Reply::ChooseParityResponse(ChooseParityResponse {
            match_id: call.match_id.clone(),
            player_id: self.agent.id.clone(),
            parity_choice: choice.into(),
            auth_token,
        })
    }
}
