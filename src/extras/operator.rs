//! The operator's words: `start`, `status`, `pause` and the others, said to a manager that runs already.
//!
//! Each is one message to the manager, and what comes back is shown.

use crate::net::client::{About, Client, Peer, conversation};
use crate::net::retry::CallError;
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::terminal::{say, shown};
use crate::protocol::*;
use crate::wire::{Endpoint, Wire};

/// What `start` and `status` need: the configuration, where the manager is, and a client.
fn caller(args: &Args) -> Result<(Config, String, Client), Stop> {
    let config = program::load(args)?;
    let manager = program::manager(args, &config).to_string();
    let client = Client::new(
        "launcher",
        config.generic_limit(),
        program::log(args, "launcher"),
    );
    client.sign_as("launcher", &config.league.league_id);
    Ok((config, manager, client))
}

/// Sends START_LEAGUE to a running manager.
pub fn start(args: &Args) -> Result<(), Stop> {
    let status = order(args, |league_id| StartLeague { league_id }.into())?;
    if status.status == Progress::Waiting {
        Err(Stop::failed("the league has not started"))
    } else {
        Ok(())
    }
}

/// Sends LEAGUE_CONTROL with the word, and what stands behind it, to a running manager.
pub fn control(args: &Args) -> Result<(), Stop> {
    let word = args.word.unwrap_or_default();
    let action = Action::read(&word.into()).map_err(|fault| Stop::usage(fault.to_string()))?;
    let named = args.operand.as_ref().map(|id| id.to_uppercase());
    let (player_id, match_id) = if action == Action::Replay {
        (None, named)
    } else {
        (named, None)
    };
    order(args, |league_id| {
        LeagueControl {
            league_id,
            action,
            player_id,
            match_id,
        }
        .into()
    })
    .map(drop)
}

/// Sends what the operator wants to a running manager, and shows the status that it answers.
fn order(args: &Args, message: impl FnOnce(String) -> Message) -> Result<LeagueStatus, Stop> {
    let (config, manager, client) = caller(args)?;
    let auth_token = program::operator_token(args)?;
    let words = args.word.unwrap_or_default();
    let about = About {
        conversation_id: conversation(&format!("{words}-league")),
        auth_token,
        ..About::default()
    };
    let message = message(config.league.league_id.clone());
    match client.ask(
        &Peer::manager(&manager),
        &message,
        &about,
        config.generic_limit(),
    ) {
        Ok(Message::LeagueStatus(status)) => {
            print_status(&status);
            Ok(status)
        }
        Ok(Message::LeagueError(error)) => Err(Stop::failed(error.explain())),
        Ok(other) => Err(Stop::failed(format!(
            "the manager at {manager} answered with {}",
            other.name()
        ))),
        Err(error) => Err(no_answer(&manager, &error)),
    }
}

/// Asks a running manager how far its league has come.
pub fn status(args: &Args) -> Result<(), Stop> {
    let (config, manager, client) = caller(args)?;
    let endpoint = Endpoint::parse(&manager)
        .map_err(|legal| Stop::usage(format!("--manager: expected {legal}")))?;
    let health = client.get(&endpoint, "/health", config.generic_limit());
    let health = health.map_err(|error| no_answer(&manager, &error))?;
    let status = LeagueStatus::read(&health).map_err(|fault| {
        Stop::failed(format!(
            "the answer of the league manager at {manager} is no status: {fault}"
        ))
    })?;
    print_status(&status);
    Ok(())
}

fn no_answer(manager: &str, error: &CallError) -> Stop {
    let what = error.explain();
    Stop::failed(format!(
        "the league manager at {manager} {what}; start one, or name it with --manager URL"
    ))
}

fn print_status(status: &LeagueStatus) {
    say(&format!("league   {}", shown(&status.league_id)));
    say(&format!("status   {}", status.status));
    say(&format!(
        "round    {} of {}",
        status.current_round, status.total_rounds
    ));
    say(&format!("matches  {} completed", status.matches_completed));
    if let Some(reason) = &status.reason {
        say(&format!("reason   {}", shown(reason)));
    }
}
