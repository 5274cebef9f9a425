//! The commands to a running manager: `start`, `status`, `pause` and the others.
//!
//! They are typed into any terminal, and in a class also into the manager's own. A command is a
//! message to the manager whose data folder this is. The answer is a sentence that says by name
//! what was done. A player is named by its id, or by its name in the public document of the league,
//! which a plain `league_manager` has not.

use crate::show::view::{AgentView, LeagueView};
use league::json::{decode, is_similar};
use league::manager::control::NOTHING_CHANGED;
use league::manager::journal::OPERATOR_FILE;
use league::manager::operator_file;
use league::manager::screen::{LEADERS, grid};
use league::net::call_error::CallError;
use league::net::client::{Client, MessageContext, Peer, new_conversation};
use league::net::sync::spawn;
use league::program::args::{Args, CLIENT, COMMON, Exit, Usage};
use league::program::terminal::{plural, print_line, sanitize};
use league::program::{Program, data_folder, load_config, open_log, read_operator_token, storage};
use league::protocol::{
    AgentKind, Call, ControlAction, LeagueControl, LeagueError, LeaguePhase, LeagueStatus,
    StartLeague,
};
use league::values::Endpoint;
use std::io::{BufRead, stdin};
use std::net::IpAddr;

/// The usage of each command to a manager. The same commands may be typed into its terminal.
pub const USAGES: [Usage; 7] = [
    usage("league start", "start the league with those who are here"),
    usage(
        "league status",
        "show who is here and how far the league is",
    ),
    usage(
        "league pause",
        "no further match begins; matches in play end",
    ),
    usage("league resume", "the league goes on"),
    usage(
        "league remove PLAYER",
        "the player plays no more, and loses its matches 3-0",
    ),
    usage("league restore PLAYER [ADDRESS]", "the player plays again"),
    usage(
        "league new-lobby",
        "when the league is over: open a new lobby",
    ),
];

const fn usage(name: &'static str, about: &'static str) -> Usage {
    Usage {
        name,
        about,
        options: &[CLIENT, COMMON],
    }
}

/// Sends a command to the manager, and prints its answer.
pub fn run(args: &Args, command: &str, player: Option<&str>) -> Result<(), Exit> {
    Operator::new(args)?.run(command, player)
}

/// The file in a league's folder that says where its manager is.
pub const ADDRESS_FILE: &str = "manager.url";

/// The player that a command names.
#[derive(Default)]
struct NamedPlayer {
    id: String,
    /// Its name and id if its name is known, else its id.
    called: String,
}

/// The operator of a running manager.
struct Operator {
    client: Client,
    manager: Peer,
    league_id: String,
    token: Option<String>,
}

impl Operator {
    /// Finds the manager: the one that the command line names, or whose data folder this is. The
    /// operator's token in this folder is for its own manager only.
    fn new(args: &Args) -> Result<Operator, Exit> {
        let config = load_config(args)?;
        let league_id = config.league.league_id.clone();
        let client = Client::new("launcher", open_log(args, "launcher"));
        client.set_identity("launcher", &league_id);

        let folder = storage::league_folder(&data_folder(args), &league_id);
        let stored = storage::read_text(&folder.join(ADDRESS_FILE)).unwrap_or_default();
        let stored = stored.trim();
        let manager = match Endpoint::parse(stored) {
            Ok(_) if !args.has("--manager") => stored,
            _ => config.manager(),
        };

        let mut token = read_operator_token(args)?;
        if token.is_none() && Endpoint::is_same_address(stored, manager) {
            let stored = storage::read_text(&folder.join(OPERATOR_FILE)).ok();
            token = stored.map(|token| token.trim().into());
        }

        Ok(Operator {
            client,
            token,
            manager: Peer::manager(manager, config.generic_limit()),
            league_id,
        })
    }

    fn run(&self, command: &str, player: Option<&str>) -> Result<(), Exit> {
        let action = match command {
            "status" => return self.print_status(),
            "start" => return self.start(),
            "pause" => ControlAction::Pause,
            "resume" => ControlAction::Resume,
            "remove" => ControlAction::Remove,
            "restore" => ControlAction::Restore,
            _ => ControlAction::NewLobby,
        };
        self.control(action, player)
    }

    fn failure(&self, problem: &str) -> Exit {
        let manager = &self.manager.endpoint;
        Exit::failure(format!("the league manager at {manager}: {problem}"))
    }

    fn no_answer(&self, error: &CallError) -> Exit {
        let problem = error.explain();
        self.failure(&format!(
            "{problem}; start one, or name it with --manager URL"
        ))
    }

    /// Asks for the public document.
    fn view(&self) -> Result<LeagueView, Exit> {
        match self.client.call_method(&self.manager, "get_league", "{}") {
            Ok(answer) => decode(&answer).map_err(|error| {
                self.failure(&format!("answered something else than its league: {error}"))
            }),
            Err(CallError::JsonRpc(..)) => {
                Err(self.failure("a plain league_manager: GET /health shows its status"))
            }
            Err(error) => Err(self.no_answer(&error)),
        }
    }

    fn print_status(&self) -> Result<(), Exit> {
        let view = self.view()?;
        let (league, manager) = (sanitize(view.league.called()), &self.manager.endpoint);
        print_line(&format!("{league} at {manager}"));
        for line in status_lines(&view) {
            print_line(&line);
        }

        Ok(())
    }

    /// Finds the player with that id, or with a name that no other player has. Capital and small
    /// letters count the same.
    fn find_player(&self, name: &str) -> Result<NamedPlayer, Exit> {
        let id = name.to_uppercase();
        if AgentKind::Player.is_valid_id(&id) {
            let called = id.clone();
            return Ok(NamedPlayer { id, called });
        }

        let view = self.view()?;
        let mut named: Vec<&AgentView> = view.agents.iter().collect();
        named.retain(|agent| {
            let has_name = agent.display_name.to_lowercase() == name.to_lowercase();
            agent.kind == AgentKind::Player && has_name
        });
        match named[..] {
            [player] => Ok(NamedPlayer {
                id: player.id.clone(),
                called: format!("{} ({})", player.display_name, player.id),
            }),
            [] => Err(Exit::failure(format!("no player here is called {name}"))),
            _ => {
                let ids: Vec<&str> = named.iter().map(|agent| &*agent.id).collect();
                let ids = ids.join(" or ");
                Err(Exit::failure(format!("{name} may be {ids}; name the id")))
            }
        }
    }

    fn start(&self) -> Result<(), Exit> {
        let league_id = self.league_id.clone();
        let status = self.request(&StartLeague { league_id })?;

        let phase = format!("the league is {:?}", status.status).to_lowercase();
        print_line(&sanitize(&status.reason.unwrap_or(phase)));
        if status.status == LeaguePhase::Waiting {
            return Err(Exit::failure("the league has not started"));
        }

        Ok(())
    }

    fn control(&self, action: ControlAction, name: Option<&str>) -> Result<(), Exit> {
        let (name, address) = match name {
            Some(name) if action == ControlAction::Restore => split_address(name),
            _ => (name, None),
        };
        let target = match name {
            Some(name) => self.find_player(name)?,
            None => NamedPlayer::default(),
        };
        let order = LeagueControl {
            league_id: self.league_id.clone(),
            action,
            player_id: name.map(|_| target.id.clone()),
            address,
        };

        let status = self.request(&order)?;
        let sentence = match status.reason {
            Some(reason) if reason == NOTHING_CHANGED => reason,
            _ => order_sentence(action, &target, status.status),
        };
        print_line(&sanitize(&sentence));
        Ok(())
    }

    /// Sends a message, and returns the status that answers it.
    fn request(&self, message: &impl Call<Reply = LeagueStatus>) -> Result<LeagueStatus, Exit> {
        let context = MessageContext {
            conversation_id: new_conversation("operator"),
            auth_token: self.token.clone(),
            ..MessageContext::default()
        };
        let answer = self.client.call(&self.manager, message, &context);
        answer.map_err(|error| match error {
            CallError::Refused(error, _) => Exit::failure(problem(&error)),
            error => self.no_answer(&error),
        })
    }
}

/// Splits `P08 10.0.0.7` into a player and the address at which it may come back.
fn split_address(text: &str) -> (Option<&str>, Option<String>) {
    if let Some((name, word)) = text.rsplit_once(' ')
        && word.parse::<IpAddr>().is_ok()
    {
        return (Some(name.trim()), Some(word.into()));
    }

    (Some(text), None)
}

/// Returns what an order has done, and how it is undone.
fn order_sentence(action: ControlAction, target: &NamedPlayer, phase: LeaguePhase) -> String {
    let NamedPlayer { id, called } = target;
    match action {
        ControlAction::Pause => "no further match begins; resume lets the league go on".into(),
        ControlAction::Resume => "the league goes on".into(),
        ControlAction::NewLobby => "this league is set aside, and a new lobby opens".into(),
        ControlAction::Remove if phase == LeaguePhase::Waiting => {
            format!("{called} is out of the lobby until: restore {id}")
        }
        ControlAction::Restore if phase == LeaguePhase::Waiting => {
            format!("{called} may come back to the lobby")
        }
        ControlAction::Remove => {
            format!("{called} plays no more, and loses its matches 3-0; restore {id} undoes it")
        }
        ControlAction::Restore => format!(
            "{called} plays again in every match that has no result yet; remove {id} undoes it"
        ),
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

    // Commands that are typed here may do what the operator may.
    let mut args = program.args.clone();
    let token = operator_file(program);
    args.set("--operator-token-file", &token.to_string_lossy());

    spawn("keyboard", move || {
        for line in stdin().lock().split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if let Err(exit) = run_line(&args, line.trim()) {
                print_line(&sanitize(&exit.message));
            }
        }
    });
}

/// Runs a typed line like a command of another terminal.
fn run_line(args: &Args, line: &str) -> Result<(), Exit> {
    let (word, player) = line.split_once(' ').unwrap_or((line, ""));
    let word = word.to_lowercase();
    for usage in &USAGES {
        let mut words = usage.name.split(' ').skip(1);
        if words.next() == Some(&word) {
            let player = words.next().map(|_| player.trim());
            if player == Some("") {
                return Err(Exit::usage(format!("whom? for example: {word} P01")));
            }
            return run(args, &word, player);
        }
    }

    let mut commands = USAGES
        .iter()
        .filter_map(|usage| usage.name.split(' ').nth(1));
    if let Some(meant) = commands.find(|known| is_similar(&word, known)) {
        print_line(&sanitize(&format!(
            "unknown command: {word}; did you mean {meant}?"
        )));
    } else {
        print_help();
    }

    Ok(())
}

fn print_help() {
    for usage in &USAGES {
        let command = usage.name.trim_start_matches("league ");
        print_line(&format!("  {command:<24} {}", usage.about));
    }

    print_line("  help                     these words");
}

/// Returns how far a league is, in lines.
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
            format!("{:?}", view.status).to_lowercase()
        };

        lines.push(format!(
            "round {round} of {rounds}, {done} of {all} matches are over: {phase}"
        ));
        lines.push(grid(&view.standings, &view.ranks, LEADERS));
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
        lines.push("enough are here; type start".into());
    }

    lines
}

fn agent_line(agent: &AgentView) -> String {
    let state = match (&agent.trouble, &agent.rehearsal) {
        (Some(trouble), _) if trouble.starts_with("could not be reached") => {
            let hint = "if nothing can call that machine, it needs --relay or bin/league_player.py";
            format!("{}; {hint}", sanitize(trouble))
        }
        (Some(trouble), _) => format!("{}; try make check", sanitize(trouble)),
        (None, Some(verdict)) => sanitize(verdict),
        (None, None) if agent.reachable == Some(true) => "answers".into(),
        (None, None) => "has not been called yet".into(),
    };
    format!("  {} {}: {state}", agent.id, sanitize(&agent.display_name))
}
