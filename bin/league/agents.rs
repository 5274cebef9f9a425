//! The agents that a manager starts as processes of its own: referees and players of a local
//! league, or the referees of a class. They end when their standard input closes, so none is left
//! behind, however the manager ends.

pub mod by_hand;
pub mod entrants;
pub mod strategies;

use entrants::Entrant;
use league::manager::Manager;
use league::manager::league::League;
use league::net::http;
use league::net::sync::spawn;
use league::program::args::Exit;
use league::program::credentials::{self, Credentials};
use league::program::terminal::{print_error, print_line, sanitize};
use league::program::{Program, SHUTDOWN_TIMEOUT, storage, usual_ports};
use league::protocol::AgentKind;
use league::system::PYTHON;
use league::values::{Endpoint, truncate};
use std::collections::BTreeMap;
use std::env::{self, consts::EXE_SUFFIX, current_exe};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf, is_separator};
use std::process::{Child, Command, Stdio};
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

/// Maximum number of characters of a repeated problem.
const MAX_REPEATED: usize = 100;

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
}

impl ChildAgent {
    /// Starts an agent.
    fn start(id: String, player: Option<&Entrant>, mut command: Command) -> io::Result<ChildAgent> {
        let process = start_process(&mut command, player)?;
        Ok(ChildAgent {
            id,
            player: player.cloned(),
            command,
            process,
        })
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
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
            children.push(ChildAgent::start(id, player, command)?);
        }

        Ok(Children(children))
    }

    /// Returns true if as many agents have registered since this program started as there are
    /// children, and none of the children is still missing from a league that is resumed. (A player
    /// that asks for no id may get another one than its child has here.) The error names a child
    /// that has failed, or has ended before it registered; one that is killed later is lost like
    /// any agent.
    pub fn have_registered(&mut self, manager: &Manager) -> Result<bool, Exit> {
        for ChildAgent { id, process, .. } in &mut self.0 {
            let end = process.try_wait().ok().flatten();
            if end.is_some_and(|end| end.code() > Some(0) || !is_here(manager, id)) {
                return Err(Exit::failure(format!(
                    "{id} has ended, so the league does not begin; what it said stands above, \
                     and the same command tries again"
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

    /// Kills all children.
    pub fn kill(&mut self) {
        self.0.iter_mut().for_each(ChildAgent::kill);
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

        let registrations = |id: &str| manager.notifier.status(id).registrations;
        let mut counts = Vec::new();
        for agent in players {
            agent.kill();
            counts.push((agent.id.clone(), registrations(&agent.id)));
            let started = archive_history(manager, &agent.id)
                .and_then(|()| start_process(&mut agent.command, agent.player.as_ref()));
            match started {
                Ok(process) => agent.process = process,
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

/// Starts the process of an agent. What a player writes is printed with its name.
fn start_process(command: &mut Command, player: Option<&Entrant>) -> io::Result<Child> {
    let mut process = command.spawn().map_err(|error| explain(command, error))?;
    if let Some(player) = player {
        relay(&player.name, &mut process);
    }
    Ok(process)
}

/// Gives the history of a player another name, so that the player begins without one.
fn archive_history(manager: &Manager, id: &str) -> io::Result<()> {
    let folder = manager.program.data.join("players").join(id);
    storage::archive(&folder.join("history.json"))
}

/// Prints what a player writes, with the player's name before each line. A problem that comes again
/// in another match is printed once, and counted.
fn relay(name: &str, child: &mut Child) {
    let (printed, errors) = (name.to_string(), name.to_string());
    if let Some(stdout) = child.stdout.take() {
        spawn("relay", move || {
            for line in lines(stdout) {
                print_line(&sanitize(&format!("{printed}: {line}")));
            }
        });
    }

    if let Some(stderr) = child.stderr.take() {
        spawn("relay", move || {
            let mut counts = BTreeMap::new();
            for line in lines(stderr) {
                let line = format!("{errors}: {line}");
                let count = counts.entry(without_numbers_of_matches(&line)).or_insert(0);
                *count += 1;
                if *count == 1 {
                    print_error(&line);
                }
            }
            for (line, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
                print_error(&format!("{count} times: {}", truncate(&line, MAX_REPEATED)));
            }
        });
    }
}

/// Returns the lines that a program prints. Those of Windows end in CR LF.
fn lines(output: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(line.trim_ascii_end()).into())
}

/// Returns a line without its match ids and thread ids, in which repeated problems differ.
fn without_numbers_of_matches(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    words.retain(|word| {
        let digits = word.trim_matches(|c: char| "R(M):".contains(c));
        digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit() || c == 'M')
    });
    words.join(" ")
}

/// Returns true if an agent has registered since this program started.
fn is_here(manager: &Manager, id: &str) -> bool {
    manager.notifier.status(id).registrations > 0
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
    restored.save(data)?;

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
    let ports = usual_ports(&program.config, kind, program.config.agent(kind, id));
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

/// Checks that the program of a player exists, if the player runs on this machine.
pub fn check_program(entrant: &Entrant) -> Result<(), Exit> {
    let words = entrants::words(&entrant.command);
    let name = words.first().copied().unwrap_or_default();
    let is_found = installed_program(name).is_some()
        || by_hand::is_by_hand(name)
        || strategies::all_names().any(|strategy| strategy == name)
        || is_program(name);
    if entrant.is_remote() || is_found {
        return Ok(());
    }

    let hint = if name.ends_with(".py") {
        format!("type \"{PYTHON} {name}\"")
    } else {
        "is it installed? A player of your own: league new ada (make agent NAME=ada), cargo build"
            .into()
    };
    let problem = format!("there is no program {name:?} that can be started");
    Err(Exit::usage(format!("{problem}: {hint}")))
}

/// Returns true for the path of a program and for the name of one in PATH, also without `.exe`.
fn is_program(name: &str) -> bool {
    let path = env::var_os("PATH").filter(|_| !name.contains(is_separator));
    let file = format!("{name}{EXE_SUFFIX}");
    let is_there = |folder: PathBuf| folder.join(name).is_file() || folder.join(&file).is_file();
    !name.ends_with(".py") && env::split_paths(&path.unwrap_or_default()).any(is_there)
}

/// Returns why a program could not be started.
fn explain(command: &Command, error: io::Error) -> io::Error {
    let path = Path::new(command.get_program());
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "; chmod +x makes it a program",
        io::ErrorKind::NotFound if path.is_file() => {
            "; its first line names no program of this system, or ends as in Windows, with CR LF"
        }
        _ => "",
    };
    let error = io::Error::new(error.kind(), format!("{error}{hint}"));
    storage::with_path(path, error)
}

/// Returns the program of that name in the folder of this one, if there is one.
pub fn installed_program(name: &str) -> Option<PathBuf> {
    let path = current_exe().ok()?;
    let path = path.with_file_name(format!("{name}{EXE_SUFFIX}"));
    path.is_file().then_some(path)
}
