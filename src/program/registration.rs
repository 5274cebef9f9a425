//! How a referee or a player joins a league: what it says of itself, and the one loop in which it asks until the
//! manager has answered.
//!
//! An agent may be started before its manager. It then says once whom it waits for; whoever stays (`--stay`) waits in
//! the same way for the next league. Read next: `session.rs`, what comes after.

use crate::net::client::{About, Peer, conversation};
use crate::net::retry::{CallError, pause};
use crate::program::Program;
use crate::program::args::Stop;
use crate::program::card::Card;
use crate::program::terminal::{complain, say, shown};
use crate::protocol::*;
use crate::wire::Plain;
use std::time::Duration;

/// How long an agent waits before it asks again whether there is a new league.
const NEXT_LEAGUE: Duration = Duration::from_secs(2);

/// What came of asking.
enum Admittance {
    Accepted(Card),
    /// The manager's reason, and whether it is that we come too late for this league.
    Rejected(String, bool),
    /// The manager has not answered yet: whom we wait for, and why.
    Silence(String),
}

/// Asks the manager to let us in until it answers, with the token and the key of our card, for the games that our program
/// `plays`.
pub fn register(program: &Program, card: &Card, plays: &[&str]) -> Result<Card, Stop> {
    let operator = &program.operator_token;
    let own = Some(card.token.clone()).filter(|token| !token.is_empty());
    let stays = program.args.has("--stay");
    let application = application(program, card, plays);
    let mut about = About {
        conversation_id: conversation(&format!("{}-registration", program.kind)),
        auth_token: own.or(operator.clone()),
        ..About::default()
    };
    let mut said = String::new();
    loop {
        let (words, is_late) = match ask(program, card, &application, &about)? {
            Admittance::Accepted(card) => return Ok(card),
            Admittance::Silence(words) => (words, false),
            // Another run of the league does not know our token; the operator's word may help.
            Admittance::Rejected(..) if operator.is_some() && about.auth_token != *operator => {
                about.auth_token = operator.clone();
                continue;
            }
            Admittance::Rejected(reason, true) if stays => {
                let words = format!("{reason}: waiting for the next league (--stay)");
                (words, true)
            }
            Admittance::Rejected(reason, _) => {
                return Err(Stop::failed(format!("rejected: {reason}")));
            }
        };
        if words != said {
            let tell = if is_late { say } else { complain };
            tell(&shown(&words));
            said = words;
        }
        pause(match is_late {
            true => NEXT_LEAGUE,
            false => program.config.retry().base_delay,
        });
    }
}

/// Asks the manager once. An answer that no further asking can change ends us.
fn ask(
    program: &Program,
    card: &Card,
    application: &Message,
    about: &About,
) -> Result<Admittance, Stop> {
    let to = Peer::manager(&program.manager);
    let timeouts = &program.config.system.timeouts;
    let limit = match program.kind {
        Kind::Player => &timeouts.register_player_timeout_sec,
        _ => &timeouts.register_referee_timeout_sec,
    };
    let error = match program.client.ask(&to, application, about, limit.0) {
        Ok(reply) => return admission(program, card, reply),
        Err(error) => error,
    };
    let manager = format!("the league manager at {}", to.endpoint);
    let what = error.explain();
    let is_final = match error {
        CallError::Status(status, _) => (400..500).contains(&status),
        CallError::Rpc(code, _) => code != -32603,
        CallError::Wrong(..) => true,
        _ => false,
    };
    if is_final {
        return Err(Stop::failed(format!("{manager} {what}")));
    }
    let words = format!("waiting for {manager}: it {what}");
    Ok(Admittance::Silence(words))
}

/// What we say of ourselves. The files may name fewer games than our program plays.
fn application(program: &Program, card: &Card, plays: &[&str]) -> Message {
    let entry = program.entry();
    let is_referee = program.kind == Kind::Referee;
    let mut game_types: Vec<String> = plays.iter().map(|it| it.to_string()).collect();
    if let Some(listed) = &entry.game_types {
        game_types.retain(|it| listed.contains(it));
    }
    let meta = AgentMeta {
        display_name: program.display_name.clone(),
        version: entry.version.0.clone(),
        game_types,
        contact_endpoint: program.endpoint.clone(),
        max_concurrent_matches: is_referee.then_some(program.max_concurrent_matches),
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

/// What the manager's answer says.
fn admission(program: &Program, card: &Card, reply: Message) -> Result<Admittance, Stop> {
    match reply {
        Message::RefereeRegisterResponse(RefereeRegisterResponse {
            referee_id: id,
            status,
            reason,
            auth_token,
            league_id,
            error_code,
            proves_itself,
        })
        | Message::LeagueRegisterResponse(LeagueRegisterResponse {
            player_id: id,
            status,
            reason,
            auth_token,
            league_id,
            error_code,
            proves_itself,
        }) => {
            let reason = reason.unwrap_or_default();
            let is_late = error_code.as_deref() == Some(Code::E019.code());
            let no_id = "the league manager accepts us, but without an id of letters and digits";
            match (status, id.filter(|id| Plain::is_good(id))) {
                (Verdict::Rejected, _) => Ok(Admittance::Rejected(reason, is_late)),
                (_, None) => Err(Stop::failed(no_id)),
                (_, Some(agent_id)) => Ok(Admittance::Accepted(Card {
                    agent_id,
                    token: auth_token.unwrap_or_default(),
                    league_id: league_id.unwrap_or(program.league_id().into()),
                    manager: program.manager.clone(),
                    endpoint: program.endpoint.clone(),
                    proves_itself,
                    over: None,
                    registration_key: card.registration_key.clone(),
                })),
            }
        }
        Message::LeagueError(error) => Err(Stop::failed(format!("refused: {}", error.explain()))),
        other => Err(Stop::failed(format!("answered with {}", other.name()))),
    }
}
