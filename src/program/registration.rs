//! How a referee or a player joins a league, and joins it again: what it says of itself, and the conversation with the
//! manager until it has a card. Read next: `card.rs`.

use crate::net::client::{About, Peer, conversation};
use crate::net::retry::{CallError, pause};
use crate::program::args::Stop;
use crate::program::card::Card;
use crate::program::config::{PlayerDefaults, RefereeDefaults};
use crate::program::terminal::{complain, say, shown};
use crate::program::{Program, id_option, operator_token};
use crate::protocol::*;
use crate::wire::{DisplayName, Within, is_plain};
use std::time::Duration;

/// How long an agent that stays waits before it asks again whether there is a new league.
const NOT_YET: Duration = Duration::from_secs(2);

/// What the manager answers to a registration.
pub enum Admittance {
    /// We are in.
    Accepted(Card),
    /// We are not, and why.
    Rejected(String),
    /// We come too late for this league.
    Late(String),
}

/// The id to ask for; empty for any.
pub fn wish(program: &Program) -> &str {
    program
        .args
        .text(id_option(program.kind))
        .unwrap_or_default()
}

/// What we are called: as asked for, as listed, or by default.
pub fn display_name(program: &Program) -> String {
    let listed = match program.kind {
        Kind::Referee => program.config.referee(wish(program)).display_name,
        _ => program.config.player(wish(program)).display_name,
    };
    program
        .args
        .text("--display-name")
        .map_or(listed.0, String::from)
}

/// How many matches a referee plays at once: as asked for, as listed, or by default.
pub fn max_concurrent_matches(program: &Program) -> Result<u32, Stop> {
    let listed = program
        .config
        .referee(wish(program))
        .max_concurrent_matches
        .0;
    let at_once = program
        .args
        .number("--max-concurrent-matches")?
        .unwrap_or(listed);
    if !Within::<1, 10>::is_good(at_once) {
        return Err(Stop::usage(format!(
            "--max-concurrent-matches: got {at_once}, expected 1 to 10"
        )));
    }
    Ok(at_once)
}

/// Checks what the command line says of us, before anybody is asked.
pub fn check(program: &Program) -> Result<(), Stop> {
    let (name, wish) = (display_name(program), wish(program));
    if !DisplayName::is_good(&name) {
        return Err(Stop::usage(format!(
            "--display-name: got {name:?}, expected {}",
            DisplayName::EXPECTED
        )));
    }
    if !wish.is_empty() && !is_plain(wish) {
        return Err(Stop::usage(format!(
            "{}: got {wish:?}, expected an id like P07",
            id_option(program.kind)
        )));
    }
    if program.kind == Kind::Referee {
        max_concurrent_matches(program).map(drop)
    } else {
        Ok(())
    }
}

/// Asks the manager to let us in, with the token of an older card if there is one, until it answers.
pub fn register(program: &Program, old: Option<&Card>) -> Result<Card, Stop> {
    let operator = operator_token(&program.args)?;
    let own = old
        .map(|card| card.token.clone())
        .filter(|token| !token.is_empty());
    let mut said = false;
    loop {
        let admission = match ask(program, own.clone().or(operator.clone()))? {
            // Another run of the league does not know our card; the operator's word may help.
            Admittance::Rejected(_) | Admittance::Late(_)
                if own.is_some() && operator.is_some() =>
            {
                ask(program, operator.clone())?
            }
            admission => admission,
        };
        match admission {
            Admittance::Accepted(card) => return Ok(card),
            Admittance::Late(reason) if program.args.has("--stay") => {
                if !std::mem::replace(&mut said, true) {
                    say(&format!(
                        "{}: waiting for the next league (--stay)",
                        shown(&reason)
                    ));
                }
                pause(NOT_YET);
            }
            Admittance::Rejected(reason) | Admittance::Late(reason) => {
                return Err(Stop::failed(format!("rejected: {reason}")));
            }
        }
    }
}

/// Asks as long as the manager may answer yet, in one conversation, and says once whom we are waiting for.
fn ask(program: &Program, auth_token: Option<String>) -> Result<Admittance, Stop> {
    let (message, limit) = application(program)?;
    let conversation_id = conversation(&format!("{}-registration", program.kind));
    let about = About {
        conversation_id,
        auth_token,
        ..About::default()
    };
    let to = Peer::manager(program.manager());
    let mut said = false;
    loop {
        match program.client.ask(&to, &message, &about, limit) {
            Ok(reply) => return admission(program, reply),
            Err(error) if error.is_silence() || matches!(error, CallError::Rpc(-32603, _)) => {
                if !std::mem::replace(&mut said, true) {
                    complain(&format!(
                        "waiting for the league manager at {}: it {}",
                        to.endpoint,
                        error.explain()
                    ));
                }
                pause(program.config.retry().base_delay);
            }
            Err(error) => {
                return Err(Stop::failed(format!(
                    "the league manager at {} {}",
                    to.endpoint,
                    error.explain()
                )));
            }
        }
    }
}

/// What we say of ourselves, and how long we wait for an answer.
fn application(program: &Program) -> Result<(Message, Duration), Stop> {
    let (config, wish) = (&program.config, wish(program));
    let PlayerDefaults {
        version,
        game_types,
        ..
    } = config.player(wish);
    let mut meta = AgentMeta {
        display_name: display_name(program),
        version: version.0,
        game_types,
        contact_endpoint: program.endpoint.clone(),
        max_concurrent_matches: None,
        protocol_version: None,
        uses_match_tokens: None,
        registration_key: None,
    };
    let timeouts = &config.system.timeouts;
    if program.kind == Kind::Player {
        let message = LeagueRegisterRequest { player_meta: meta }.into();
        return Ok((message, timeouts.register_player_timeout_sec.0));
    }
    let RefereeDefaults {
        version,
        game_types,
        ..
    } = config.referee(wish);
    (meta.version, meta.game_types, meta.uses_match_tokens) = (version.0, game_types, Some(true));
    meta.max_concurrent_matches = Some(max_concurrent_matches(program)?);
    Ok((
        RefereeRegisterRequest { referee_meta: meta }.into(),
        timeouts.register_referee_timeout_sec.0,
    ))
}

/// What the manager's answer says.
fn admission(program: &Program, reply: Message) -> Result<Admittance, Stop> {
    let manager = program.manager();
    let wrong = |what: String| {
        Err(Stop::failed(format!(
            "the answer of the league manager at {manager} {what}"
        )))
    };
    let (status, id, token, league_id, reason, proves_itself, code) = match reply {
        Message::RefereeRegisterResponse(it) => (
            it.status,
            it.referee_id,
            it.auth_token,
            it.league_id,
            it.reason,
            it.proves_itself,
            it.error_code,
        ),
        Message::LeagueRegisterResponse(it) => (
            it.status,
            it.player_id,
            it.auth_token,
            it.league_id,
            it.reason,
            it.proves_itself,
            it.error_code,
        ),
        Message::LeagueError(error) => {
            return Err(Stop::failed(format!("refused: {}", error.explain())));
        }
        other => return wrong(format!("is {}", other.name())),
    };
    if status == Verdict::Rejected {
        let (reason, late) = (
            reason.unwrap_or_default(),
            code.as_deref() == Some(Code::E019.code()),
        );
        return Ok(if late {
            Admittance::Late(reason)
        } else {
            Admittance::Rejected(reason)
        });
    }
    let Some(agent_id) = id.filter(|id| is_plain(id)) else {
        return wrong("accepts us, but without an id of letters and digits".into());
    };
    Ok(Admittance::Accepted(Card {
        agent_id,
        token: token.unwrap_or_default(),
        league_id: league_id.unwrap_or_else(|| program.league_id().into()),
        manager: manager.into(),
        endpoint: program.endpoint.clone(),
        proves_itself,
        over: None,
    }))
}
