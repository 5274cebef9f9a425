//! The commands to a running manager: `start`, `status`, `pause` and the others.
//!
//! They are typed into any terminal, and in a class also into the manager's own. A command is a
//! message to the manager whose data folder this is. The answer is a sentence that says by name what
//! was done. A plain `league_manager` has no public document, so players are named by their ids, and
//! `status` shows what `GET /health` says.

use crate::columns::{LEADERS, grid};
use crate::view::{AgentView, LeagueView};
use league::json::decode;
use league::manager::settings::operator_file;
use league::net::call_error::CallError;
use league::net::client::{Client, MessageContext, Peer, new_conversation};
use league::net::sync::spawn;
use league::program::args::{Args, CLIENT, COMMON, Exit, Usage};
use league::program::config::Config;
use league::program::terminal::{plural, print_line, sanitize};
use league::program::{Program, data_folder, load_config, open_log, read_operator_token, storage};
use league::protocol::{
    AgentKind, ControlAction, LeagueControl, LeagueError, LeaguePhase, LeagueStatus, Message,
    StartLeague,
};
use league::values::Endpoint;
use serde_json::Value;
use std::fs;
use std::io::{self, Read, Write, stdin};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

pub const START_USAGE: Usage = Usage {
    name: "league start",
    arguments: "[OPTIONS]",
    about: "starts the league with the agents that have registered",
    options: &[CLIENT, COMMON],
    elsewhere: "",
};
pub const STATUS_USAGE: Usage = Usage {
    name: "league status",
    about: "shows who is here, how far the league is, and what it waits for",
    ..START_USAGE
};
pub const PAUSE_USAGE: Usage = Usage {
    name: "league pause",
    about: "begins no further match; matches in play end",
    ..START_USAGE
};
pub const RESUME_USAGE: Usage = Usage {
    name: "league resume",
    about: "lets a paused league go on",
    ..START_USAGE
};
pub const REMOVE_USAGE: Usage = Usage {
    name: "league remove",
    arguments: "PLAYER [OPTIONS]",
    about: "takes a player out: it loses its matches 3-0, or leaves the lobby",
    ..START_USAGE
};
pub const RESTORE_USAGE: Usage = Usage {
    name: "league restore",
    arguments: "PLAYER [OPTIONS]",
    about: "lets a removed player play again",
    ..START_USAGE
};
pub const NEW_LOBBY_USAGE: Usage = Usage {
    name: "league new-lobby",
    about: "sets a finished league aside and opens a new lobby (with --stay)",
    ..START_USAGE
};

/// The commands that may be typed into the manager's terminal, with what they do.
const TYPED_COMMANDS: [(&str, &str); 8] = [
    ("start", "start the league with those who are here"),
    (
        "status",
        "who is here, how far the league is, and what it waits for",
    ),
    ("pause", "no further match begins; matches in play end"),
    ("resume", "the league goes on"),
    ("remove ADA", "Ada plays no more, and loses its matches 3-0"),
    ("restore ADA", "undoes that"),
    ("new-lobby", "when the league is over: open a new lobby"),
    ("help", "these words"),
];

/// Interval between two documents of a manager, at most.
const DOCUMENT_INTERVAL: Duration = Duration::from_secs(1);

/// Sends a command to the manager, and prints its answer.
pub fn run(args: &Args, command: &str, player: Option<&str>) -> Result<(), Exit> {
    let operator = Operator::new(args)?;
    match command {
        "status" => operator.print_status(),
        "start" => operator.start(),
        _ => {
            let player = match player {
                Some(name) => Some(operator.find_player(name)?),
                None => None,
            };
            operator.control(action(command)?, player)
        }
    }
}

/// Returns the action that a command orders.
fn action(command: &str) -> Result<ControlAction, Exit> {
    let action = Value::from(command.replace('-', "_"));
    decode(&action).map_err(|error| Exit::usage(error.to_string()))
}

/// Returns the file in a league's folder that says where its manager is.
pub fn address_file(data: &Path, league_id: &str) -> PathBuf {
    storage::league_folder(data, league_id).join("manager.url")
}

/// A player that a command is about.
struct Player {
    id: String,
    /// Its name and id, if its name is known; else its id.
    name: String,
}

/// The operator of a running manager.
struct Operator {
    client: Client,
    manager: Peer,
    league_id: String,
    token: Option<String>,
}

impl Operator {
    /// Finds the manager: the one that the command line names, or whose data folder this is.
    fn new(args: &Args) -> Result<Operator, Exit> {
        let config = load_config(args)?;
        let league_id = config.league.league_id.clone();
        let client = Client::new("launcher", open_log(args, "launcher"));
        client.set_identity("launcher", &league_id);
        Ok(Operator {
            client,
            manager: Peer::manager(&address(args, &config), config.generic_limit()),
            league_id,
            token: read_operator_token(args)?,
        })
    }

    fn failed(&self, problem: &str) -> Exit {
        let manager = &self.manager.endpoint;
        Exit::failed(format!("the league manager at {manager}: {problem}"))
    }

    fn no_answer(&self, error: &CallError) -> Exit {
        let problem = error.explain();
        self.failed(&format!(
            "{problem}; start one, or name it with --manager URL"
        ))
    }

    fn print(&self, league: &str, sentence: &str) {
        let manager = &self.manager.endpoint;
        print_line(&sanitize(&format!("{league} at {manager}: {sentence}")));
    }

    /// Asks for the public document. A plain league_manager has none.
    fn view(&self) -> Result<Option<LeagueView>, Exit> {
        match self.client.call(&self.manager, "get_league", "{}") {
            Ok(answer) => match decode(&answer) {
                Ok(view) => Ok(Some(view)),
                Err(error) => {
                    Err(self.failed(&format!("answered something else than its league: {error}")))
                }
            },
            Err(CallError::JsonRpc(..)) => Ok(None),
            Err(error) => Err(self.no_answer(&error)),
        }
    }

    fn print_status(&self) -> Result<(), Exit> {
        let Some(view) = self.view()? else {
            let status = self.health()?;
            let sentence = status_sentence(&status);
            self.print(&status.league_id, &sentence);
            return Ok(());
        };
        let (league, manager) = (sanitize(view.league.called()), &self.manager.endpoint);
        print_line(&format!("{league} at {manager}"));
        for line in status_lines(&view) {
            print_line(&line);
        }
        Ok(())
    }

    /// Reads the status of a plain league_manager.
    fn health(&self) -> Result<LeagueStatus, Exit> {
        let health = get_health(&self.manager).map_err(|error| self.failed(&error.to_string()))?;
        decode(&health).map_err(|error| {
            let text = format!("answered GET /health with something else than its status: {error}");
            self.failed(&text)
        })
    }

    /// Finds the player with that id or name. A document may be older than the newest registration,
    /// so an unknown player is looked for once more.
    fn find_player(&self, name: &str) -> Result<Player, Exit> {
        let mut id = name.to_uppercase();
        for pause in [Duration::ZERO, DOCUMENT_INTERVAL] {
            thread::sleep(pause);
            let Some(view) = self.view()? else {
                break;
            };
            id = player_id(&view, name).map_err(|problem| self.failed(&problem))?;
            if let Some(player) = view.agents.iter().find(|agent| agent.id == id) {
                let name = format!("{} ({id})", player.display_name);
                return Ok(Player { id, name });
            }
        }
        let name = id.clone();
        Ok(Player { id, name })
    }

    fn start(&self) -> Result<(), Exit> {
        let league_id = self.league_id.clone();
        let status = self.request(StartLeague { league_id }.into())?;
        let phase = format!("the league is {}", status.status);
        self.print(&status.league_id, &status.reason.unwrap_or(phase));
        if status.status == LeaguePhase::Waiting {
            return Err(Exit::failed("the league has not started"));
        }
        Ok(())
    }

    fn control(&self, action: ControlAction, player: Option<Player>) -> Result<(), Exit> {
        let order = LeagueControl {
            league_id: self.league_id.clone(),
            action,
            player_id: player.as_ref().map(|player| player.id.clone()),
        };
        let status = self.request(order.into())?;
        let sentence = order_sentence(action, player.as_ref(), status.status);
        self.print(&status.league_id, &sentence);
        Ok(())
    }

    /// Sends a message, and returns the status that answers it.
    fn request(&self, message: Message) -> Result<LeagueStatus, Exit> {
        let context = MessageContext {
            conversation_id: new_conversation("operator"),
            auth_token: self.token.clone(),
            ..MessageContext::default()
        };
        match self.client.request(&self.manager, &message, &context) {
            Ok(Message::LeagueStatus(status)) => Ok(status),
            Ok(Message::LeagueError(error)) => Err(self.failed(&problem(&error))),
            Ok(other) => Err(self.failed(&format!("answered with {}", other.name()))),
            Err(error) => Err(self.no_answer(&error)),
        }
    }
}

/// Returns the URL of the manager.
fn address(args: &Args, config: &Config) -> String {
    let file = address_file(&data_folder(args), &config.league.league_id);
    match fs::read_to_string(file) {
        Ok(address) if !args.has("--manager") => address.trim().into(),
        _ => config.manager().into(),
    }
}

/// Sends `GET /health` to a manager.
fn get_health(manager: &Peer) -> io::Result<Value> {
    let endpoint = Endpoint::parse(&manager.endpoint).map_err(io::Error::other)?;
    let (host, port) = (endpoint.host.as_str(), endpoint.port);
    let mut stream = TcpStream::connect((host, port))?;
    stream.set_read_timeout(Some(manager.timeout))?;
    stream.write_all(format!("GET /health HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n").as_bytes())?;

    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(serde_json::from_str(body)?)
}

/// Says what an order has done, and how it is undone.
fn order_sentence(action: ControlAction, player: Option<&Player>, phase: LeaguePhase) -> String {
    let (id, name) = player.map_or(("", ""), |player| (&player.id, &player.name));
    match action {
        ControlAction::Pause => "no further match begins; resume lets the league go on".into(),
        ControlAction::Resume => "the league goes on".into(),
        ControlAction::NewLobby => "this league is set aside, and a new lobby opens".into(),
        ControlAction::Remove if phase == LeaguePhase::Waiting => {
            format!("{name} is out of the lobby; started again, it comes back")
        }
        ControlAction::Remove => {
            format!("{name} plays no more, and loses its matches 3-0; restore {id} undoes it")
        }
        ControlAction::Restore => format!(
            "{name} plays again in every match that has no result yet; remove {id} undoes it"
        ),
    }
}

/// Returns the id of the player with that id, or with a name that no other player has. Capital and
/// small letters count the same.
fn player_id(view: &LeagueView, name: &str) -> Result<String, String> {
    let id = name.to_uppercase();
    let mut named: Vec<&str> = Vec::new();
    for agent in &view.agents {
        let has_name = agent.display_name.to_lowercase() == name.to_lowercase();
        if agent.kind == AgentKind::Player && has_name {
            named.push(&agent.id);
        }
    }

    match named[..] {
        [id] => Ok(id.into()),
        [_, _, ..] if !view.agents.iter().any(|agent| agent.id == id) => {
            Err(format!("{name} may be {}; name the id", named.join(" or ")))
        }
        _ => Ok(id),
    }
}

/// Returns what was wrong, without the code.
fn problem(error: &LeagueError) -> String {
    let context = error.context.as_ref();
    let problem = context.and_then(|context| context.get("problem")?.as_str());
    sanitize(&problem.map_or_else(|| error.explain(), String::from))
}

/// Shows the teacher of a class what may be typed into this terminal, and starts a thread that does
/// it.
pub fn listen(program: &Program) {
    print_line("\nYour words, typed here:");
    print_help();
    let mut args = program.args.clone();
    let token = operator_file(program);
    args.set("--operator-token-file", &token.to_string_lossy());
    spawn("keyboard", move || {
        for line in stdin().lines().map_while(Result::ok) {
            if let Err(exit) = run_line(&args, line.trim()) {
                print_line(&exit.message);
            }
        }
    });
}

/// Runs a typed line like a command of another terminal.
fn run_line(args: &Args, line: &str) -> Result<(), Exit> {
    let (command, player) = line.split_once(' ').unwrap_or((line, ""));
    let command = command.to_lowercase();
    for (usage, _) in TYPED_COMMANDS {
        let known = usage.split(' ').next();
        if known == Some(&command) && command != "help" {
            let player = usage.contains(' ').then_some(player.trim());
            return run(args, &command, player);
        }
    }
    print_help();
    Ok(())
}

fn print_help() {
    for (usage, description) in TYPED_COMMANDS {
        print_line(&format!("  {usage:<12} {description}"));
    }
}

/// Says how far the league of a plain league_manager is.
fn status_sentence(status: &LeagueStatus) -> String {
    let (round, rounds) = (status.current_round, status.total_rounds);
    let (phase, matches) = (
        status.status,
        plural(status.matches_completed, "match result"),
    );
    let reason = match &status.reason {
        Some(reason) => format!("; {reason}"),
        None => String::new(),
    };
    match status.status {
        LeaguePhase::Waiting => format!("{phase}{reason}"),
        _ => format!("{phase}, round {round} of {rounds}, {matches}{reason}"),
    }
}

/// Says how far a league is, in lines.
fn status_lines(view: &LeagueView) -> Vec<String> {
    let mut lines = Vec::new();
    let is_lobby = view.status == LeaguePhase::Waiting;
    if is_lobby {
        let [referees, players] = [AgentKind::Referee, AgentKind::Player].map(|kind| {
            let agents = view.agents.iter().filter(|agent| agent.kind == kind);
            plural(agents.count() as u32, &kind.to_string())
        });
        lines.push(format!("{referees} and {players} here"));
    } else {
        let (round, rounds) = (view.current_round, view.total_rounds);
        let (done, all) = (view.matches_completed, view.total_matches);
        let phase = if view.paused {
            "paused".into()
        } else {
            view.status.to_string()
        };
        lines.push(format!(
            "round {round} of {rounds}, {done} of {all} matches are over: {phase}"
        ));
        lines.push(grid(&view.standings, LEADERS));
    }

    // All agents are listed in the lobby, later only those that do not answer.
    for agent in &view.agents {
        if is_lobby || agent.trouble.is_some() {
            lines.push(agent_line(agent));
        }
    }
    if let Some(reason) = &view.reason {
        lines.push(sanitize(reason));
    } else if is_lobby {
        lines.push("enough are here; the word that begins is: start".into());
    }
    lines
}

fn agent_line(agent: &AgentView) -> String {
    let state = match (&agent.trouble, agent.reachable) {
        (Some(trouble), _) => format!("{}; try make check", sanitize(trouble)),
        (None, Some(true)) => "answers".into(),
        (None, _) => "has not been called yet".into(),
    };
    format!("  {} {}: {state}", agent.id, sanitize(&agent.display_name))
}
