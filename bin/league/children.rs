//! The children of a local league: referees and players as processes, which end when their standard
//! input closes. So none is left behind, however the manager ends. The referees of a class are
//! started in the same way.

use crate::groups::Entrant;
use crate::patience::until;
use crate::strategies;
use league::program::Program;
use league::program::SHUTDOWN_TIMEOUT;
use league::program::args::Exit;
use league::program::credentials::{self, Credentials};
use league::program::storage;
use league::protocol::AgentKind;
use league::values::Endpoint;
use std::env::{consts::EXE_SUFFIX, current_exe};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The children of a local league. Their standard inputs close when we end.
#[derive(Default)]
pub struct Children(Vec<(String, Child)>);

impl Children {
    /// Starts the referees and the players of a local league, or the referees of a class. Those of
    /// an interrupted league come back where they were: an agent that took the port of another
    /// could not be told from it. `before` is the journal of that league.
    pub fn start(program: &Program, entrants: &[Entrant], before: &str) -> Result<Children, Exit> {
        let referees = program
            .args
            .number("--referees", 1..=100)?
            .unwrap_or_default();
        let players = (1..).zip(entrants).filter(|(_, it)| !it.is_elsewhere());
        let players = players.map(|(n, entrant)| (AgentKind::Player.format_id(n), Some(entrant)));
        let referees = (1..=referees).map(|n| (AgentKind::Referee.format_id(n), None));
        let mut children = Vec::new();
        for (id, player) in referees.chain(players) {
            let port = take_along(program, &id, before)?;
            let mut command = command(program, player, &id, port);
            let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
            let program = Path::new(command.get_program());
            children.push((
                id,
                started.map_err(|error| storage::with_path(program, error))?,
            ));
        }
        Ok(Children(children))
    }

    /// Whether all are among those that have registered since this program runs, who are `here`, and
    /// none among the other members, who are `away`; or which of them has failed, or has ended
    /// before it did. One that was killed later has not failed: it is lost, as it would be
    /// elsewhere.
    pub fn are_here(&mut self, here: &[String], away: &[String]) -> Result<bool, Exit> {
        for (id, child) in &mut self.0 {
            let end = child.try_wait().ok().flatten();
            if end.is_some_and(|end| end.code() > Some(0) || !here.contains(id)) {
                let words = format!("{id} has ended, so the league does not begin");
                let cure = "what it said stands above, and the same command tries again";
                return Err(Exit::failed(format!("{words}; {cure}")));
            }
        }
        let is_away = self.0.iter().any(|(id, _)| away.contains(id));
        Ok(!is_away && here.len() >= self.0.len())
    }

    /// Waits until all have ended by themselves, for a while; whoever is left ends with our end.
    pub fn wait(&mut self) {
        let is_over = |(_, child): &mut (String, Child)| !matches!(child.try_wait(), Ok(None));
        until(SHUTDOWN_TIMEOUT, || self.0.iter_mut().all(is_over));
    }
}

/// Lets an agent of an earlier run follow its manager, which may have another address now; gives
/// back the port that the agent had. The card is of that run, and no stranger's, if the journal of
/// that run knows its key.
fn take_along(program: &Program, id: &str, before: &str) -> Result<Option<u16>, Exit> {
    let card: Option<Credentials> = storage::read_json(&credentials::file(&program.data, id));
    let Some(mut card) = card.filter(|card| before.contains(&card.registration_key)) else {
        return Ok(None);
    };
    // a child of that run is still ending
    until(SHUTDOWN_TIMEOUT, || {
        credentials::lock(&program.data, id).is_ok()
    });
    card.manager = from_here(program);
    card.save(&program.data)?;
    let endpoint = Endpoint::parse(&card.endpoint);
    Ok(endpoint.ok().map(|endpoint| endpoint.port))
}

/// The program of a player, or of a referee, as the agent of that id. A port that is not free is
/// another's, and any free one will do.
fn command(program: &Program, player: Option<&Entrant>, id: &str, port: Option<u16>) -> Command {
    let finished = strategies::names(&program.config.league.game_type);
    let line = match player.map(|player| &*player.command) {
        None => "referee".into(),
        Some(name) if finished.contains(&name) => format!("league play {name}"),
        Some(line) => line.to_string(),
    };
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let mut command = Command::new(beside_us(name).unwrap_or(name.into()));
    command.args(words);
    if let Some(player) = player {
        command.args(["--player-id", id, "--display-name", &player.name]);
    } else {
        command.args(["--referee-id", id]);
    }
    command.args(["--manager", &from_here(program)]);
    command.args(["--until-stdin-closes", "--any-port"]);
    for shared in ["--config", "--data", "--logs", "--league-id", "--seed"] {
        if let Some(value) = program.args.text(shared) {
            command.args([shared, value]);
        }
    }
    let any = program.args.has("--port").then_some(0); // a league beside another
    if let Some(port) = port.or(any) {
        command.args(["--port", &port.to_string()]);
    }
    command
}

/// Where a child of ours reaches the manager: one that listens on every address also listens on
/// this one.
pub fn from_here(program: &Program) -> String {
    match program.args.text("--host") {
        Some("0.0.0.0") => format!("http://127.0.0.1:{}/mcp", program.port),
        _ => program.endpoint.clone(),
    }
}

/// The program of that name that was built beside this one, if there is one.
fn beside_us(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{EXE_SUFFIX}");
    let path = current_exe().ok()?.with_file_name(file);
    path.is_file().then_some(path)
}
