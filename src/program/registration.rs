//! How a referee or a player joins a league: what it says of itself, and the one loop in which it
//! asks until the manager has answered.
//!
//! An agent may be started before its manager. It then says once whom it waits for; whoever stays
//! (`--stay`) waits in the same way for the next league. Read next: `session.rs`, what comes after.

use crate::net::letter::{About, Peer, conversation};
use crate::net::retry::{CallError, pause};
use crate::program::Program;
use crate::program::args::Stop;
use crate::program::card::Card;
use crate::program::terminal::complain;
use crate::protocol::*;
use crate::wire::Plain;

/// Asks the manager to let us in until it answers, for the games that our program `plays`. We show
/// the key of our card, and the operator's token where we were given one, else our own.
pub fn register(program: &Program, card: &Card, plays: &[&str]) -> Result<Card, Stop> {
    let limit = program.config.registration_limit(program.kind);
    let to = Peer::manager(program.config.manager(), limit);
    let manager = format!("the league manager at {}", to.endpoint);
    let application = application(program, card, plays);
    let token = program.operator_token.as_ref().or(card.token.as_ref());
    let about = About {
        conversation_id: conversation(&format!("{}-registration", program.kind)),
        auth_token: token.cloned(),
        ..About::default()
    };
    let mut said = String::new();
    loop {
        let words = match program.client.ask(&to, &application, &about) {
            Ok(reply) => {
                let answer = answer(reply)?;
                if answer.status == Verdict::Accepted {
                    return accepted(card, answer);
                }
                let reason = answer.reason.unwrap_or_default();
                let is_late = answer.error_code.as_deref() == Some(Code::E019.word());
                if !is_late || !program.args.has("--stay") {
                    return Err(Stop::failed(format!("rejected: {reason}")));
                }
                format!("{reason}: waiting for the next league (--stay)")
            }
            Err(error) if is_final(&error) => {
                return Err(Stop::failed(format!("{manager} {}", error.explain())));
            }
            Err(error) => format!("waiting for {manager}: it {}", error.explain()),
        };
        if words != said {
            complain(&words);
            said = words;
        }
        pause(program.config.system.retry_policy.base_delay_sec);
    }
}

/// Whether no further asking can change what came. An internal error of the manager may pass.
fn is_final(error: &CallError) -> bool {
    match error {
        CallError::Status(400..500, _) | CallError::Wrong(..) => true,
        CallError::Rpc(code, _) => *code != -32603,
        _ => false,
    }
}

/// What we say of ourselves. The files may name fewer games than our program plays.
fn application(program: &Program, card: &Card, plays: &[&str]) -> Message {
    let entry = &program.entry;
    let is_referee = program.kind == Kind::Referee;
    let mut game_types: Vec<String> = plays.iter().map(|it| it.to_string()).collect();
    if let Some(listed) = &entry.game_types {
        game_types.retain(|it| listed.contains(it));
    }
    let meta = AgentMeta {
        display_name: entry.display_name.0.clone(),
        version: entry.version.0.clone(),
        game_types,
        contact_endpoint: program.endpoint.clone(),
        max_concurrent_matches: is_referee.then_some(program.at_once()),
        protocol_version: None,
        uses_match_tokens: is_referee.then_some(true),
        registration_key: Some(card.registration_key.clone()),
    };
    if is_referee {
        RefereeRegisterRequest { referee_meta: meta }.into()
    } else {
        LeagueRegisterRequest { player_meta: meta }.into()
    }
}

/// The manager's answer. That to a player is the same as that to a referee, but for one name.
fn answer(reply: Message) -> Result<RefereeRegisterResponse, Stop> {
    match reply {
        Message::RefereeRegisterResponse(it) => Ok(it),
        Message::LeagueRegisterResponse(it) => Ok(RefereeRegisterResponse {
            status: it.status,
            referee_id: it.player_id,
            reason: it.reason,
            auth_token: it.auth_token,
            league_id: it.league_id,
            error_code: it.error_code,
            proves_itself: it.proves_itself,
        }),
        Message::LeagueError(error) => Err(Stop::failed(format!("refused: {}", error.explain()))),
        other => Err(Stop::failed(format!("answered with {}", other.name()))),
    }
}

/// Our card, now that the manager has let us in.
fn accepted(card: &Card, answer: RefereeRegisterResponse) -> Result<Card, Stop> {
    let no_id = "the league manager accepts us, but without an id of letters and digits";
    let id = answer.referee_id.filter(|id| Plain::is_good(id));
    Ok(Card {
        agent_id: id.ok_or_else(|| Stop::failed(no_id))?,
        token: answer.auth_token,
        league_id: answer.league_id.unwrap_or(card.league_id.clone()),
        proves_itself: answer.proves_itself,
        over: None,
        ..card.clone()
    })
}
