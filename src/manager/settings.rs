//! What the files and the command line say to a manager: the rules of its league, how many agents
//! start it, the lead between an announcement and its matches, and the operator's token. The
//! command line overrules the files. The operator's token is made at the first start of a league,
//! and kept in the league's folder.

use crate::net::sync::secret;
use crate::program::Program;
use crate::program::args::Exit;
use crate::program::config::Config;
use crate::program::storage::{self, Access};
use crate::values::token;
use std::{fs, io, path::PathBuf, time::Duration};

/// The configuration by which the league is played: that of the files, but with at most `most`
/// players, and with the `--cycles` of the command line.
pub fn rules(program: &Program, most: Option<u32>) -> Result<Config, Exit> {
    let mut config = program.config.clone();
    let league = &mut config.league;
    if let Some(cycles) = program.args.number("--cycles", 1..=100)? {
        league.scheduling.cycles = Some(cycles);
    }
    if let Some(most) = most {
        league.participants.max_players = most;
    }
    Ok(config)
}

/// How many players and referees start the league, if the command line says so.
pub fn awaited(program: &Program) -> Result<Option<(u32, u32)>, Exit> {
    let legal = &program.config.league.participants;
    let players = program
        .args
        .number("--players", legal.min_players..=legal.max_players)
        .map_err(|exit| {
            let source = "as in the league file (participants)";
            Exit::usage(format!("{}, {source}", exit.message))
        })?;
    let referees = program.args.number("--referees", 1..=100)?.unwrap_or(1);
    Ok(players.map(|players| (players, referees)))
}

/// Between a round's announcement and its matches: 60 seconds, unless the league file or the
/// command line says otherwise.
pub fn lead(program: &Program) -> Result<Duration, Exit> {
    let file = &program.config.league.scheduling.round_announcement_lead_sec;
    let usual = file.as_ref().map_or(60.0, |lead| f64::from(*lead));
    let seconds: f64 = program
        .args
        .number("--lead-sec", 0.0..=86_400.0)?
        .unwrap_or(usual);
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let words = format!("--lead-sec: got {seconds}, expected seconds, 0 or more");
        Exit::usage(words)
    })
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
        &secret(program.config.system.security.token_length),
    );
    storage::replace(&file, Access::Owner, &format!("{new}\n"))?;
    Ok(new)
}
