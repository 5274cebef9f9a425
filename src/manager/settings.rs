//! What the files and the command line say to a manager: the rules of its league, how many agents start it, the lead
//! between an announcement and its matches, and the operator's token.

use crate::manager::league::{Listed, Rules};
use crate::net::secret::secret;
use crate::program::Program;
use crate::program::args::Stop;
use crate::program::config::Config;
use crate::program::storage::{self, Access};
use crate::wire::token;
use std::{fs, io, path::PathBuf, time::Duration};

/// The rules of the league: from the files, with at most `most` players, and `--cycles` before the file's.
pub fn rules(program: &Program, most: Option<u32>) -> Result<Rules, Stop> {
    let config = &program.config;
    let people = &config.league.participants;
    let security = &config.system.security;
    let cycles = program.args.value("--cycles")?;
    let from_file = config.league.scheduling.cycles.map(|cycles| cycles.0);
    Ok(Rules {
        league_id: config.league.league_id.clone(),
        game_type: config.league.game_type.clone(),
        scoring: config.league.scoring.clone(),
        cycles: cycles.or(from_file).unwrap_or(1),
        min_players: people.min_players.0 as usize,
        max_players: most.unwrap_or(u32::MAX).min(people.max_players.0) as usize,
        listed: listed(config),
        tokens: security.enable_auth_tokens,
        token_lifetime: config.token_lifetime(),
    })
}

fn listed(config: &Config) -> Vec<Listed> {
    let listed = config.listed().map(|(kind, entry)| Listed {
        kind,
        id: entry.id().into(),
        endpoint: entry.url().into(),
        active: entry.active != Some(false),
    });
    listed.collect()
}

/// How many players and referees start the league, if the command line says so.
pub fn awaited(program: &Program) -> Result<Option<(u32, u32)>, Stop> {
    let Some(players) = program.args.value("--players")? else {
        return Ok(None);
    };
    let referees = program.args.value("--referees")?.unwrap_or(1);
    let people = &program.config.league.participants;
    let least = people.min_players.0;
    let most = people.max_players.0;
    if !(least..=most).contains(&players) {
        let legal = format!("{least} to {most}, as in the league file (participants)");
        return Err(Stop::usage(format!(
            "--players: got {players}, expected {legal}"
        )));
    }
    if referees == 0 {
        return Err(Stop::usage("--referees: got 0, expected at least 1"));
    }
    Ok(Some((players, referees)))
}

/// Between a round's announcement and its matches.
pub fn lead(program: &Program) -> Result<Duration, Stop> {
    match program.args.value("--lead-sec")? {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| {
            Stop::usage(format!(
                "--lead-sec: got {seconds}, expected seconds, 0 or more"
            ))
        }),
        None => Ok(program.config.announcement_lead()),
    }
}

/// Where the operator's token stands.
pub fn operator_file(program: &Program) -> PathBuf {
    storage::league_folder(&program.data, program.league_id()).join("operator.token")
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
