//! The small player: it registers, joins its matches, and chooses even or odd. Change `choose`.
//!
//! It answers any referee, and remembers its matches only while it runs. The player of chapter two,
//! the league among strangers (`src/player.rs`), joins announced matches only, checks the token of a
//! match, answers a repeated call with the same choice, and survives a restart.

mod net;

use league::protocol::{
    AgentKind, AgentMeta, ChooseParityCall, ChooseParityResponse, GAME, GameInvitation,
    GameJoinAck, GameOver, IncomingMessage, LeagueRegisterRequest, Parity, PlayerRequest,
    ProtocolError, Reply,
};
use league::values::Timestamp;
use net::Agent;
use std::sync::{Arc, Mutex};
use tiny_http::Server;

struct Player {
    agent: Arc<Agent>,
    /// The results of our matches, oldest first.
    history: Mutex<Vec<GameOver>>,
}

/// The strategy: replace it by a better one. `history` has our matches so far, oldest first.
fn choose(_history: &[GameOver]) -> Parity {
    if fastrand::bool() {
        Parity::Even
    } else {
        Parity::Odd
    }
}

fn main() {
    let started = net::start(AgentKind::Player);
    let (agent, server, _) = started.unwrap_or_else(|problem| net::exit(2, &problem));
    run(agent, server).unwrap_or_else(|problem| net::exit(1, &problem));
}

/// The life of a player.
fn run(mut agent: Agent, server: Server) -> Result<(), String> {
    // Register. Then answer each request in a thread of its own.
    let player_meta = AgentMeta {
        display_name: format!("Agent {}", agent.id),
        version: "1.0.0".to_string(),
        game_types: vec![GAME.to_string()],
        contact_endpoint: agent.url.clone(),
        ..AgentMeta::default()
    };
    let manager = agent.manager("conv-registration");
    let response = agent.call_with_retries(&manager, &LeagueRegisterRequest { player_meta });
    agent.join_league(response)?;
    let agent = Arc::new(agent);
    let player = Player {
        agent: Arc::clone(&agent),
        history: Mutex::new(Vec::new()),
    };
    let handler = move |received: &IncomingMessage<PlayerRequest>| player.handle(received);
    let accepted = net::serve(agent, server, Arc::new(handler));

    // `accepted` has each message as soon as its reply is written. Wait until the league is over.
    for message in accepted {
        if let PlayerRequest::LeagueCompleted(_) = message {
            break;
        }
    }
    Ok(())
}

impl Player {
    /// Returns the reply to a message; `None` where a receipt is enough.
    fn handle(
        &self,
        received: &IncomingMessage<PlayerRequest>,
    ) -> Result<Option<Reply>, ProtocolError> {
        let token = received.envelope.auth_token.clone();
        match &received.message {
            PlayerRequest::GameInvitation(invitation) => Ok(Some(self.join(invitation, token))),
            PlayerRequest::ChooseParityCall(call) => Ok(Some(self.answer_call(call, token))),
            PlayerRequest::GameOver(over) => {
                // It may come twice, if the referee missed our reply.
                let mut history = self.history.lock().unwrap();
                history.retain(|known| known.match_id != over.match_id);
                history.push(over.clone());
                Ok(None)
            }
            PlayerRequest::GameError(error) => {
                println!("{}: {}", error.match_id, error.explain());
                Ok(None)
            }
            // Announcements, tables and the end come from the manager. They stand in the log.
            _ => {
                self.agent.check_token(&received.envelope)?;
                Ok(None)
            }
        }
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
    fn answer_call(&self, call: &ChooseParityCall, auth_token: Option<String>) -> Reply {
        let history = self.history.lock().unwrap().clone();
        Reply::ChooseParityResponse(ChooseParityResponse {
            match_id: call.match_id.clone(),
            player_id: self.agent.id.clone(),
            parity_choice: choose(&history).as_str().into(),
            auth_token,
        })
    }
}
