//! How a referee or a player joins a league: what it says of itself, and the one loop in which it asks until the
//! manager has answered.
//!
//! An agent may be started before its manager. It then says every few seconds whom it waits for; whoever stays
//! (`--stay`) waits in the same way for the next league. Read next: `session.rs`, what comes after.

use crate::net::client::{About, Peer, conversation};
use crate::net::retry::{CallError, pause};
use crate::program::args::{Args, Stop};
use crate::program::card::Card;
use crate::program::config::{AgentEntry, Config};
use crate::program::terminal::{complain, say, shown};
use crate::program::{Program, id_option, operator_token};
use crate::protocol::*;
use crate::wire::{DisplayName, Within, is_plain};
use std::time::{Duration, Instant};

/// How long an agent waits before it asks again whether there is a new league.
const NEXT_LEAGUE: Duration = Duration::from_secs(2);
/// How often an agent says whom it waits for.
const REMINDER: Duration = Duration::from_secs(5);

/// What came of asking.
enum Admittance {
    Accepted(Card),
    Rejected(String),
    /// We come too late for this league.
    Late(String),
    /// The manager has not answered yet.
    Silence(String),
}

/// What the files say of us.
fn entry<'a>(kind: Kind, args: &Args, config: &'a Config) -> &'a AgentEntry {
    config.agent(kind, args.text(id_option(kind)).unwrap_or_default())
}

/// What we are called: as asked for, as listed, or by default.
pub fn display_name(program: &Program) -> String {
    let listed = &entry(program.kind, &program.args, &program.config).display_name;
    let asked = program.args.text("--display-name");
    asked.unwrap_or(&listed.0).into()
}

/// How many matches a referee plays at once: as asked for, as listed, or by default.
pub fn max_concurrent_matches(args: &Args, config: &Config) -> Result<u32, Stop> {
    let listed = entry(Kind::Referee, args, config).max_concurrent_matches;
    let listed = listed.or(config.referee_defaults.max_concurrent_matches);
    let asked = args.number("--max-concurrent-matches")?;
    Ok(asked.or(listed.map(|it| it.0)).unwrap_or(1))
}

/// Checks what the command line says of us, before anything is done.
pub fn check(kind: Kind, args: &Args, config: &Config) -> Result<(), Stop> {
    args.number::<u64>("--seed")?;
    let name = args.text("--display-name");
    let id = args.text(id_option(kind));
    let at_once = max_concurrent_matches(args, config)?;
    let at_once_is_good = Within::<1, 10>::is_good(at_once);
    let why = if let Some(name) = name.filter(|name| !DisplayName::is_good(name)) {
        format!(
            "--display-name: got {name:?}, expected {}",
            DisplayName::EXPECTED
        )
    } else if let Some(id) = id.filter(|id| !is_plain(id)) {
        format!("{}: got {id:?}, expected an id like P07", id_option(kind))
    } else if !at_once_is_good {
        format!("--max-concurrent-matches: got {at_once}, expected 1 to 10")
    } else {
        return Ok(());
    };
    Err(Stop::usage(why))
}

/// Asks the manager to let us in until it answers, with the token and the key of our card, for the games that our program
/// `plays`.
pub fn register(program: &Program, card: &Card, plays: &[&str]) -> Result<Card, Stop> {
    let operator = operator_token(&program.args)?;
    let own = Some(card.token.clone()).filter(|token| !token.is_empty());
    let stays = program.args.has("--stay");
    let mut about = About {
        conversation_id: conversation(&format!("{}-registration", program.kind)),
        auth_token: own.or(operator.clone()),
        ..About::default()
    };
    let mut said: Option<(String, Instant)> = None;
    loop {
        let (words, is_late) = match ask(program, card, plays, &about)? {
            Admittance::Accepted(card) => return Ok(card),
            Admittance::Silence(words) => (words, false),
            // Another run of the league does not know our token; the operator's word may help.
            Admittance::Rejected(_) | Admittance::Late(_)
                if operator.is_some() && about.auth_token != operator =>
            {
                about.auth_token = operator.clone();
                continue;
            }
            Admittance::Late(reason) if stays => (
                format!("{reason}: waiting for the next league (--stay)"),
                true,
            ),
            Admittance::Rejected(reason) | Admittance::Late(reason) => {
                return Err(Stop::failed(format!("rejected: {reason}")));
            }
        };
        let is_fresh = |(known, when): &(String, Instant)| {
            *known == words && (is_late || when.elapsed() < REMINDER)
        };
        if !said.as_ref().is_some_and(is_fresh) {
            let tell = if is_late { say } else { complain };
            tell(&shown(&words));
            said = Some((words, Instant::now()));
        }
        pause(match is_late {
            true => NEXT_LEAGUE,
            false => program.config.retry().base_delay,
        });
    }
}

/// Asks the manager once. An answer that no further asking can change ends us.
fn ask(program: &Program, card: &Card, plays: &[&str], about: &About) -> Result<Admittance, Stop> {
    let to = Peer::manager(&program.manager);
    let (message, limit) = application(program, card, plays)?;
    let error = match program.client.ask(&to, &message, about, limit) {
        Ok(reply) => return admission(program, card, reply),
        Err(error) => error,
    };
    let manager = format!("the league manager at {}", to.endpoint);
    let what = error.explain();
    match error {
        CallError::Status(400..500, _) | CallError::Wrong(..) => {}
        CallError::Rpc(code, _) if code != -32603 => {}
        _ => {
            return Ok(Admittance::Silence(format!(
                "waiting for {manager}: it {what}"
            )));
        }
    }
    Err(Stop::failed(format!("{manager} {what}")))
}

/// What we say of ourselves, and how long we wait for an answer. The files may name fewer games than our program plays.
fn application(
    program: &Program,
    card: &Card,
    plays: &[&str],
) -> Result<(Message, Duration), Stop> {
    let (kind, args, config) = (program.kind, &program.args, &program.config);
    let entry = entry(kind, args, config);
    let timeouts = &config.system.timeouts;
    let mut game_types: Vec<String> = plays.iter().map(|it| it.to_string()).collect();
    if let Some(listed) = &entry.game_types {
        game_types.retain(|it| listed.contains(it));
    }
    let mut meta = AgentMeta {
        display_name: display_name(program),
        version: entry.version.0.clone(),
        game_types,
        contact_endpoint: program.endpoint.clone(),
        max_concurrent_matches: None,
        protocol_version: None,
        uses_match_tokens: None,
        registration_key: Some(card.registration_key.clone()),
    };
    if kind == Kind::Player {
        let limit = timeouts.register_player_timeout_sec.0;
        return Ok((LeagueRegisterRequest { player_meta: meta }.into(), limit));
    }
    meta.max_concurrent_matches = Some(max_concurrent_matches(args, config)?);
    meta.uses_match_tokens = Some(true);
    let limit = timeouts.register_referee_timeout_sec.0;
    Ok((RefereeRegisterRequest { referee_meta: meta }.into(), limit))
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
            match (status, id.filter(|id| is_plain(id))) {
                (Verdict::Rejected, _) if is_late => Ok(Admittance::Late(reason)),
                (Verdict::Rejected, _) => Ok(Admittance::Rejected(reason)),
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
