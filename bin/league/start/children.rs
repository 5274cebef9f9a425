//! The agents that a manager starts as processes of its own: referees and players of a local
//! league, or the referees of a class. They end when their standard input closes, so none is left
//! behind, however the manager ends.

use crate::players::{by_hand, strategies};
use crate::start::entrants::{self, Entrant};
use crate::start::output;
use league::manager::Manager;
use league::manager::league::League;
use league::net::http;
use league::program::args::Exit;
use league::program::credentials::{self, Credentials};
use league::program::terminal::{print_error, sanitize};
use league::program::{Program, SHUTDOWN_TIMEOUT, default_ports, storage};
use league::protocol::AgentKind;
use league::system::PYTHON;
use league::values::Endpoint;
use std::env::{consts::EXE_SUFFIX, current_exe};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two checks of a condition that no other thread signals.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum time that the league waits for players that begin again.
const RESTART_TIMEOUT: Duration = Duration::from_secs(10);

/// The options of a league that its agents get too.
const SHARED_OPTIONS: [&str; 5] = ["--config", "--data", "--logs", "--league-id", "--seed"];

/// The seed for the players, where they must not know that of the draws.
pub const PLAYERS_SEED: &str = "--players-seed";

/// Waits until a condition holds, or the timeout has passed; returns true if it holds. It is for
/// what other processes do. Our own threads wait with `Shared` (`net/sync.rs`).
pub fn until(timeout: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + timeout;
    while !condition() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }

    true
}

/// The children of a manager. Their standard inputs close when it ends.
#[derive(Default)]
pub struct Children(Vec<ChildAgent>);

/// A child: an agent of the league.
struct ChildAgent {
    id: String,
    /// The player; none if the agent is a referee.
    player: Option<Entrant>,
    command: Command,
    process: Child,
    /// The name of a player before each of its lines; the threads that print them share it.
    prefix: Arc<str>,
    /// True if the terminal says that the process has ended.
    is_reported: bool,
}

impl ChildAgent {
    /// Returns the name and the id of a player, or the id of a referee.
    fn name(&self) -> String {
        match &self.player {
            Some(player) => sanitize(&format!("{} ({})", player.name, self.id)),
            None => self.id.clone(),
        }
    }

    /// Returns true if the process has ended, and all that it wrote is printed.
    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None)) && Arc::strong_count(&self.prefix) == 1
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Children {
    /// Starts the referees and those players that run on this machine. `stored` is the league that
    /// is resumed: its agents get the ports that they had, since an agent on the port of another
    /// could not be told from it.
    pub fn start(
        program: &Program,
        entrants: &[Entrant],
        stored: Option<&League>,
    ) -> Result<Children, Exit> {
        let mut wanted = Vec::new();
        let referees = program.args.number("--referees", 1..=100)?;
        for number in 1..=referees.unwrap_or_default() {
            wanted.push((AgentKind::Referee, number, None));
        }
        for (number, entrant) in (1..).zip(entrants) {
            if !entrant.is_remote() {
                wanted.push((AgentKind::Player, number, Some(entrant)));
            }
        }

        let mut children = Vec::new();
        let mut given = Vec::new();
        for (kind, number, player) in wanted {
            let id = kind.format_id(number);
            let old = adopt(program, &id, stored)?.filter(|port| is_free(*port));
            let port = old.unwrap_or_else(|| choose_port(program, kind, &id, &given));
            given.push(port);
            let mut command = command(program, player, &id, port);
            command.arg("--until-stdin-closes");
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            if player.is_some_and(Entrant::is_own) {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
            let prefix = player.map_or("", |player| &player.name).into();
            let mut process = start_process(&mut command)?;
            output::print_output(&prefix, &mut process);
            children.push(ChildAgent {
                id,
                player: player.cloned(),
                command,
                process,
                prefix,
                is_reported: false,
            });
        }

        Ok(Children(children))
    }

    /// Returns true if as many agents have registered since this program started as there are
    /// children, and none of the children is still missing from a league that is resumed. (A player
    /// that asks for no id may get another one than its child has here.) The error names a child
    /// that has failed, or has ended before it registered.
    pub fn have_registered(&mut self, manager: &Manager) -> Result<bool, Exit> {
        for agent in &mut self.0 {
            let end = agent.process.try_wait().ok().flatten();
            let is_here = is_here(manager, &agent.id);
            if let Some(end) = end.filter(|end| !end.success() || !is_here) {
                until(SHUTDOWN_TIMEOUT, || agent.has_ended());
                let name = agent.name();
                let hint = match agent.player.as_ref().filter(|_| end.success()) {
                    Some(player) if player.command.contains(".py") => {
                        "does its file end with run(choose)?"
                    }
                    _ => "what it said stands above, and the same command tries again",
                };
                return Err(Exit::failure(format!(
                    "{name} has ended ({end}) before it registered, so the league does not \
                     begin; {hint}"
                )));
            }
        }

        Ok(manager.store.read(|league| {
            let members = league.members.keys();
            let here = members.filter(|id| is_here(manager, id)).count();
            let mut ids = self.0.iter().map(|agent| &agent.id);
            let is_missing = ids.any(|id| league.members.contains_key(id) && !is_here(manager, id));
            !is_missing && here >= self.0.len()
        }))
    }

    /// Returns the names of the children that have not registered.
    pub fn missing(&self, manager: &Manager) -> Vec<String> {
        let missing = self.0.iter().filter(|agent| !is_here(manager, &agent.id));
        missing.map(ChildAgent::name).collect()
    }

    /// Prints once that a child has ended while the league goes on.
    pub fn report_ended(&mut self) {
        for agent in &mut self.0 {
            let end = agent.process.try_wait().ok().flatten();
            if let Some(end) = end.filter(|_| !agent.is_reported) {
                agent.is_reported = true;
                let name = agent.name();
                print_error(&format!(
                    "{name} has ended in the middle of the league ({end})"
                ));
            }
        }
    }

    /// Starts all players again, without their histories, and waits for a while until they have
    /// registered. No match may be in play. One that does not come back loses its matches.
    pub fn restart_players(&mut self, manager: &Manager) {
        let mut players: Vec<&mut ChildAgent> = self.0.iter_mut().collect();
        players.retain(|agent| agent.player.is_some());
        for agent in &mut players {
            agent.process.stdin = None; // the player ends
        }
        until(SHUTDOWN_TIMEOUT, || {
            players.iter_mut().all(|agent| agent.has_ended())
        });

        let registrations = |id: &str| manager.contacts.with(|table| table.registrations(id));
        let mut counts = Vec::new();
        for agent in players {
            agent.kill();
            counts.push((agent.id.clone(), registrations(&agent.id)));
            let started = archive_history(manager, &agent.id)
                .and_then(|()| start_process(&mut agent.command));
            match started {
                Ok(process) => {
                    agent.process = process;
                    agent.is_reported = false;
                    output::print_output(&agent.prefix, &mut agent.process);
                }
                Err(error) => print_error(&error.to_string()),
            }
        }

        until(RESTART_TIMEOUT, || {
            counts
                .iter()
                .all(|(id, before)| registrations(id) > *before)
        });
    }

    /// Waits for a while until all have ended by themselves. The others end with this process.
    pub fn wait(&mut self) {
        until(SHUTDOWN_TIMEOUT, || {
            self.0.iter_mut().all(ChildAgent::has_ended)
        });
    }
}

/// Starts the process of an agent.
pub fn start_process(command: &mut Command) -> io::Result<Child> {
    command.spawn().map_err(|error| explain(command, error))
}

/// Gives the history of a player another name, so that the player begins without one.
fn archive_history(manager: &Manager, id: &str) -> io::Result<()> {
    let folder = manager.program.data.join("players").join(id);
    storage::move_aside(&folder.join("history.json")).map(drop)
}

/// Returns true if an agent has registered since this program started.
fn is_here(manager: &Manager, id: &str) -> bool {
    manager.contacts.with(|table| table.registrations(id)) > 0
}

/// Writes the credentials of an agent of the stored league as the journal has them, with the
/// address of this manager, which may be another one now. So it does not matter what has happened
/// to the file, unless it belongs to an agent of an unfinished league elsewhere. Returns the port
/// that the agent had.
fn adopt(program: &Program, id: &str, stored: Option<&League>) -> Result<Option<u16>, Exit> {
    let member = stored.and_then(|league| Some((league, league.members.get(id)?)));
    let Some((stored, member)) = member else {
        return Ok(None);
    };
    let Some(key) = &member.meta.registration_key else {
        return Ok(None);
    };

    // The agent of the earlier run may still be ending.
    let data = &program.data;
    until(SHUTDOWN_TIMEOUT, || credentials::lock(data, id).is_ok());

    let restored = Credentials {
        agent_id: id.into(),
        registration_key: key.clone(),
        league_id: stored.config.league.league_id.clone(),
        manager: local_url(program),
        endpoint: member.meta.contact_endpoint.clone(),
        folder: credentials::absolute(data),
        token: Some(member.token.clone()),
        proves_itself: true,
        is_over: stored.closed,
    };
    match Credentials::load(data, id) {
        Ok(None) if stored.closed => return Ok(None),
        Ok(Some(saved)) if !has_key(stored, &saved.registration_key) => {
            saved.check_may_replace(&restored.manager, data)?;
        }
        Err(_) => {
            let file = credentials::file(data, id);
            let text = "was damaged, and is restored from the journal";
            print_error(&format!("{} {text}", file.display()));
        }
        _ => {}
    }
    restored.save(data, id)?;

    let endpoint = Endpoint::parse(&restored.endpoint);
    Ok(endpoint.ok().map(|endpoint| endpoint.port))
}

/// Returns true if an agent of the league has registered with that key.
fn has_key(league: &League, key: &String) -> bool {
    let mut members = league.members.values();
    members.any(|member| member.meta.registration_key.as_ref() == Some(key))
}

/// Returns a usual port for an agent that is free and not `given` to another; 0, for any port, if
/// there is none, or if this manager has a port of its own: then another one may run here.
fn choose_port(program: &Program, kind: AgentKind, id: &str, given: &[u16]) -> u16 {
    if program.args.has("--port") {
        return 0;
    }
    let ports = default_ports(&program.config, kind, program.config.agent(kind, id));
    let mut free = ports.into_iter().filter(|port| !given.contains(port));
    free.find(|port| is_free(*port)).unwrap_or_default()
}

fn is_free(port: u16) -> bool {
    http::listen("127.0.0.1", port).is_ok()
}

/// Returns the command that starts a player, or else a referee, with that id on a port.
pub fn command(program: &Program, player: Option<&Entrant>, id: &str, port: u16) -> Command {
    let strategies = strategies::names(&program.config.league.game_type);
    let line = match player.map(|player| &*player.command) {
        None => "referee".into(),
        Some(name) if strategies.contains(&name) || by_hand::is_by_hand(name) => {
            format!("league play {name}")
        }
        Some(line) => line.to_string(),
    };

    let mut words = entrants::words(&line).into_iter();
    let name = words.next().unwrap_or_default();
    let mut command = Command::new(installed_program(name).unwrap_or(name.into()));
    command.args(words);

    if player.is_none()
        && let Some(seconds) = program.args.text("--move-timeout-sec")
    {
        command.args(["--move-timeout-sec", seconds]);
    }
    match player {
        Some(player) => command.args(["--player-id", id, "--display-name", &player.name]),
        None => command.args(["--referee-id", id]),
    };

    command.args(["--manager", &local_url(program)]);
    if player.is_some_and(|player| player.is_own() && !by_hand::is_by_hand(&player.command)) {
        command.arg("--quiet");
    }
    for shared in SHARED_OPTIONS {
        let hidden = program.args.text(PLAYERS_SEED);
        let hidden = hidden.filter(|_| shared == "--seed" && player.is_some());
        if let Some(value) = hidden.or(program.args.text(shared)) {
            command.args([shared, value]);
        }
    }

    command.args(["--port", &port.to_string()]);
    command
}

/// Returns the URL by which agents of this machine reach the manager: an address where possible,
/// because the name localhost may be unknown.
pub fn local_url(program: &Program) -> String {
    let host = match program.args.text("--host") {
        None | Some("0.0.0.0") => "127.0.0.1",
        Some(host) => host,
    };
    league::program::url(host, program.port)
}

/// Returns why a program could not be started.
fn explain(command: &Command, error: io::Error) -> io::Error {
    let path = Path::new(command.get_program());
    let hint = match error.kind() {
        _ if path.extension().is_some_and(|extension| extension == "py") => {
            let copy = Path::new("bin").join(path); // where a new player lies
            let path = if copy.is_file() { &copy } else { path };
            format!("type \"{PYTHON} {}\"", path.display())
        }
        _ if path.extension().is_some_and(|extension| extension == "rs") => {
            "a player in Rust has no folder and no .rs in MINE: MINE=ada".into()
        }
        io::ErrorKind::PermissionDenied => "chmod +x makes it a program".into(),
        io::ErrorKind::NotFound if path.is_file() => {
            "its first line names no program of this system, or ends as in Windows, with CR LF"
                .into()
        }
        _ if path.to_string_lossy().starts_with("py") => {
            "Python is not installed, or is called python, python3 or py here".into()
        }
        _ => "cargo build makes the programs, league new ada (make agent NAME=ada) a player".into(),
    };
    io::Error::other(format!("{}: {error}; {hint}", path.display()))
}

/// Returns the program of that name in the folder of this one, if there is one.
pub fn installed_program(name: &str) -> Option<PathBuf> {
    let path = current_exe().ok()?;
    let path = path.with_file_name(format!("{name}{EXE_SUFFIX}"));
    path.is_file().then_some(path)
}
