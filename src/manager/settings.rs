//! What the files and the command line say to a manager: the league's rules, how many agents start it, the lead, and the
//! operator's token.

use crate::extras::practice;
use crate::manager::league::{Listed, Rules};
use crate::net::secret::secret;
use crate::program::Program;
use crate::program::args::Stop;
use crate::program::config::Config;
use crate::program::storage::{self, Access};
use crate::wire::token;
use std::{fs, io, path::PathBuf, time::Duration};

/// What the files and the command line say about the league: `most` players may register, `cycles` overrules the file.
pub fn rules(config: &Config, most: Option<usize>, cycles: Option<u32>) -> Rules {
    let people = &config.league.participants;
    let security = &config.system.security;
    let listed = config.listed().map(|(kind, entry)| Listed {
        kind,
        id: entry.id().into(),
        endpoint: entry.url().into(),
        active: entry.active != Some(false),
    });
    Rules {
        league_id: config.league.league_id.clone(),
        scoring: config.league.scoring.clone(),
        cycles: cycles
            .or(config.league.scheduling.cycles.map(|cycles| cycles.0))
            .unwrap_or(1),
        min_players: people.min_players.0 as usize,
        max_players: most
            .unwrap_or(usize::MAX)
            .min(people.max_players.0 as usize),
        game_types: config
            .games
            .games
            .iter()
            .map(|game| game.game_type.word().into())
            .collect(),
        listed: listed.collect(),
        tokens: security.enable_auth_tokens,
        token_lifetime: config.token_lifetime(),
    }
}

/// How many players and referees start the league: as asked for, or as a `local` league has them.
pub fn awaited(program: &Program, local: bool) -> Result<Option<(usize, usize)>, Stop> {
    let mine = practice::mine(&program.args).len();
    let Some(players) = program
        .args
        .number("--players")?
        .or(local.then_some(4.max(mine + 1)))
    else {
        return Ok(None);
    };
    if players < mine {
        return Err(Stop::usage(format!(
            "--players: got {players}, expected at least the {mine} of --mine"
        )));
    }
    let referees = program
        .args
        .number("--referees")?
        .unwrap_or(if local { 2 } else { 1 });
    let people = &program.config.league.participants;
    let (min, max) = (people.min_players.0 as usize, people.max_players.0 as usize);
    if !(min..=max).contains(&players) {
        let legal = format!("{min} to {max}, as in the league file (participants)");
        return Err(Stop::usage(format!(
            "--players: got {players}, expected {legal}"
        )));
    }
    if referees == 0 {
        return Err(Stop::usage("--referees: got 0, expected at least 1"));
    }
    Ok(Some((players, referees)))
}

/// Between a round's announcement and its matches. A `local` league needs none: its agents are there.
pub fn lead(program: &Program, local: bool) -> Result<Duration, Stop> {
    match program.args.number("--lead-sec")? {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| {
            Stop::usage(format!(
                "--lead-sec: got {seconds}, expected seconds, 0 or more"
            ))
        }),
        None if local => Ok(Duration::ZERO),
        None => Ok(program.config.announcement_lead()),
    }
}

/// Where the operator's token stands.
pub fn operator_file(program: &Program) -> PathBuf {
    program
        .data
        .join("leagues")
        .join(program.league_id())
        .join("operator.token")
}

/// The operator's token: a file that only its owner can read, made with the league.
pub fn operator_token(program: &Program) -> io::Result<String> {
    let file = operator_file(program);
    if let Ok(known) = fs::read_to_string(&file) {
        return Ok(known.trim().to_string());
    }
    let new = token(
        "operator",
        &secret(program.config.system.security.token_length.0),
    );
    storage::replace(&file, Access::Owner, &format!("{new}\n"))?;
    Ok(new)
}
