//! The operator's words: `start`, `status`, `pause` and the others.
//!
//! They may be said from any terminal, and in a class typed into the manager's own. Either way a
//! word is a message to the manager whose data folder this is, and the answer is a sentence that
//! says by name what was done.

use crate::extras::columns::{LEADERS, grid};
use crate::extras::view::{AgentView, LeagueView};
use crate::json::decode;
use crate::manager::operator_file;
use crate::net::call_error::CallError;
use crate::net::client::Client;
use crate::net::client::{MessageContext, Peer, new_conversation};
use crate::net::sync::spawn;
use crate::program::args::{Args, Exit};
use crate::program::config::Config;
use crate::program::terminal::{plural, print_line, sanitize};
use crate::program::{self, Program, storage};
use crate::protocol::*;
use serde_json::json;
use std::fs;
use std::io::stdin;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// The words that may be typed, and what they do.
const WORDS: [(&str, &str); 8] = [
    ("start", "start the league with those who are here"),
    (
        "status",
        "who is here, how far the league is, and what it waits for",
    ),
    ("pause", "no further match begins; matches in play end"),
    ("resume", "the league goes on"),
    ("remove ADA", "Ada plays no more, and loses its matches 3-0"),
    ("restore ADA", "undoes that"),
    ("again", "when the league is over: open a new lobby"),
    ("help", "these words"),
];

/// The file in a league's folder that says where its manager is.
pub fn address_file(data: &Path, league_id: &str) -> PathBuf {
    storage::league_folder(data, league_id).join("manager.url")
}

/// Says the word of the command line to the manager, and shows what it answers.
pub fn run(args: &Args) -> Result<(), Exit> {
    let config = program::load(args)?;
    let manager = Peer::manager(&address(args, &config), config.generic_limit());
    let place = &manager.endpoint;
    let failed = |words: &str| Exit::failed(format!("the league manager at {place}: {words}"));
    let no_answer = |error: CallError| {
        let cure = "start one, or name it with --manager URL";
        failed(&format!("{}; {cure}", error.explain()))
    };
    let client = Client::new("launcher", program::log(args, "launcher"));
    client.set_identity("launcher", &config.league.league_id);
    let view = || {
        let answer = client.call(&manager, "get_league", "{}");
        decode::<LeagueView>(&answer.map_err(no_answer)?)
            .map_err(|fault| failed(&format!("answered something else than its league: {fault}")))
    };
    if args.command == Some("status") {
        let view = view()?;
        print_line(&format!("{} at {place}", sanitize(view.league.called())));
        status_lines(&view).iter().for_each(|line| print_line(line));
        return Ok(());
    }
    let (mut id, mut done) = (None, None);
    if let Some(name) = args.operands.first() {
        let mut view = (view()?, view);
        let mut meant = player_id(&view.0, name).map_err(|why| failed(&why))?;
        if !view.0.agents.iter().any(|it| it.id == meant) {
            thread::sleep(Duration::from_secs(1)); // the document is as old at most
            view.0 = view.1()?;
            meant = player_id(&view.0, name).map_err(|why| failed(&why))?;
        }
        let (view, _) = view;
        let who = view.agents.iter().find(|it| it.id == meant);
        let who = who.map_or(meant.clone(), |it| format!("{} ({meant})", it.display_name));
        let is_lobby = view.status == LeaguePhase::Waiting;
        (id, done) = (Some(meant), Some((who, is_lobby)));
    }
    let done = sentence(args.command.unwrap_or_default(), id.as_deref(), done);
    let order = order(args, config.league.league_id, id)?;
    let about = MessageContext {
        conversation_id: new_conversation("operator"),
        auth_token: program::operator_token(args)?,
        ..MessageContext::default()
    };
    let status = match client
        .request(&manager, &order, &about)
        .map_err(no_answer)?
    {
        Message::LeagueStatus(status) => status,
        Message::LeagueError(error) => return Err(failed(&problem(&error))),
        other => return Err(failed(&format!("answered with {}", other.name()))),
    };
    let usual = format!("the league is {}", status.status);
    let (league, sentence) = (&status.league_id, done.or(status.reason).unwrap_or(usual));
    print_line(&sanitize(&format!("{league} at {place}: {sentence}")));
    match (order, status.status) {
        (Message::StartLeague(_), LeaguePhase::Waiting) => {
            Err(Exit::failed("the league has not started"))
        }
        _ => Ok(()),
    }
}

/// Where the manager is: the one that the command line names, or whose data folder this is.
fn address(args: &Args, config: &Config) -> String {
    let file = address_file(&program::data(args), &config.league.league_id);
    match fs::read_to_string(file) {
        Ok(here) if !args.has("--manager") => here.trim().into(),
        _ => config.manager().into(),
    }
}

/// What an order does, and how it is undone. `who`: whom it is about, and whether the league has not
/// started.
fn sentence(word: &str, id: Option<&str>, who: Option<(String, bool)>) -> Option<String> {
    let (who, is_lobby) = who.unwrap_or_default();
    let id = id.unwrap_or_default();
    Some(match word {
        "pause" => "no further match begins; resume lets the league go on".into(),
        "resume" => "the league goes on".into(),
        "again" => "this league is set aside, and a new lobby opens".into(),
        "remove" if is_lobby => format!("{who} is out of the lobby; started again, it comes back"),
        "remove" => {
            format!("{who} plays no more, and loses its matches 3-0; restore {id} undoes it")
        }
        "restore" => format!(
            "{who} plays again in every match that has no result yet; remove {id} undoes it"
        ),
        _ => return None,
    })
}

/// The id of the player that is meant: by its id, or by a name that only it has, in any letters.
fn player_id(view: &LeagueView, name: &str) -> Result<String, String> {
    let is_named = |it: &&AgentView| it.display_name.to_lowercase() == name.to_lowercase();
    let players = view.agents.iter().filter(|it| it.kind == AgentKind::Player);
    let named: Vec<&str> = players.filter(is_named).map(|it| &*it.id).collect();
    match named[..] {
        [id] => Ok(id.into()),
        [_, _, ..] if !view.agents.iter().any(|it| it.id == name.to_uppercase()) => {
            Err(format!("{name} may be {}; name the id", named.join(" or ")))
        }
        _ => Ok(name.to_uppercase()),
    }
}

/// The message to the manager that a word stands for.
fn order(args: &Args, league_id: String, about: Option<String>) -> Result<Message, Exit> {
    let order = match args.command {
        Some("start") => return Ok(StartLeague { league_id }.into()),
        Some("again") => json!({"league_id": league_id, "action": "new_lobby"}),
        word => json!({"league_id": league_id, "action": word, "player_id": about}),
    };
    let order = decode::<LeagueControl>(&order);
    Ok(order
        .map_err(|fault| Exit::usage(fault.to_string()))?
        .into())
}

/// What exactly was wrong, for a person: without the code.
fn problem(error: &LeagueError) -> String {
    let context = error.context.as_ref();
    let problem = context.and_then(|it| it.get("problem")?.as_str().map(String::from));
    sanitize(&problem.unwrap_or_else(|| error.explain()))
}

/// Shows the teacher of a class what can be typed into this terminal, and has a thread do it.
pub fn listen(program: &Program) {
    print_line("\nYour words, typed here:");
    help();
    let mut args = program.args.clone();
    let token = operator_file(program);
    args.set("--operator-token-file", &token.to_string_lossy());
    spawn("keyboard", move || {
        for line in stdin().lines().map_while(Result::ok) {
            if let Err(Exit { message: why, .. }) = obey(args.clone(), line.trim()) {
                print_line(&why);
            }
        }
    });
}

/// Does what a typed line says, as if it came from another terminal of this machine.
fn obey(mut args: Args, line: &str) -> Result<(), Exit> {
    let (word, about) = line.split_once(' ').unwrap_or((line, ""));
    let mut known = WORDS
        .iter()
        .filter_map(|(usage, _)| usage.split(' ').next());
    let known = known.find(|known| *known != "help" && *known == word.to_lowercase());
    if known.is_none() {
        help();
        return Ok(());
    }
    args.command = known;
    args.operands = vec![about.trim().into()];
    run(&args)
}

/// Shows the words and what they do.
fn help() {
    for (word, says) in WORDS {
        print_line(&format!("  {word:<12} {says}"));
    }
}

/// How far a league is, as lines.
fn status_lines(view: &LeagueView) -> Vec<String> {
    let mut lines = Vec::new();
    let is_lobby = view.status == LeaguePhase::Waiting;
    if is_lobby {
        let here = [AgentKind::Referee, AgentKind::Player].map(|kind| {
            let agents = view.agents.iter().filter(|it| it.kind == kind);
            plural(agents.count() as u32, &kind.to_string())
        });
        lines.push(format!("{} here", here.join(" and ")));
    } else {
        let (round, rounds) = (view.current_round, view.total_rounds);
        let (done, all) = (view.matches_completed, view.total_matches);
        let status = if view.paused {
            "paused".into()
        } else {
            view.status.to_string()
        };
        lines.push(format!(
            "round {round} of {rounds}, {done} of {all} matches are over: {status}"
        ));
        lines.push(grid(&view.standings, LEADERS));
    }
    let agents = view.agents.iter();
    let told = agents.filter(|agent| is_lobby || agent.trouble.is_some());
    lines.extend(told.map(agent_line));
    let begin = "enough are here; the word that begins is: start";
    let reason = view.reason.as_deref();
    lines.extend(reason.or(is_lobby.then_some(begin)).map(sanitize));
    lines
}

fn agent_line(agent: &AgentView) -> String {
    let how = match (&agent.trouble, agent.reachable) {
        (Some(trouble), _) => format!("{}; try make check", sanitize(trouble)),
        (None, Some(true)) => "answers".into(),
        (None, _) => "has not been called yet".into(),
    };
    format!("  {} {}: {how}", agent.id, sanitize(&agent.display_name))
}
