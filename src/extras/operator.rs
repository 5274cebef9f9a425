//! The operator's words: `start`, `status`, `pause` and the others.
//!
//! They may be said from any terminal, and in a class typed into the manager's own. Either way a
//! word is a message to the manager whose data folder this is, and the answer is a sentence that
//! says by name what was done.

use crate::extras::columns::{LEADERS, grid};
use crate::manager::settings::operator_file;
use crate::manager::view::{AgentView, LeagueView};
use crate::net::client::Client;
use crate::net::letter::{About, Peer, conversation};
use crate::net::retry::CallError;
use crate::net::sync::spawn;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::terminal::{counted, say, shown};
use crate::program::{self, Program, storage};
use crate::protocol::*;
use crate::wire::Wire;
use serde_json::json;
use std::fs;
use std::io::stdin;
use std::path::{Path, PathBuf};

/// The words that may be typed, and what they do.
const WORDS: [(&str, &str); 9] = [
    ("start", "start the league with those who are here"),
    (
        "status",
        "who is here, how far the league is, and what it waits for",
    ),
    ("pause", "no further match begins; matches in play end"),
    ("resume", "the league goes on"),
    ("remove ADA", "Ada plays no more, and loses its matches 3-0"),
    (
        "restore ADA",
        "undoes that; or lets an agent in again that lost its card",
    ),
    (
        "replay R2M1",
        "void a result and have the match played again",
    ),
    ("again", "when the league is over: open a new lobby"),
    ("help", "these words"),
];

/// The file in a league's folder that says where its manager is.
pub fn address_file(data: &Path, league_id: &str) -> PathBuf {
    storage::league_folder(data, league_id).join("manager.url")
}

/// Says the word of the command line to the manager, and shows what it answers.
pub fn run(args: &Args) -> Result<(), Stop> {
    let config = program::load(args)?;
    let manager = Peer::manager(&address(args, &config), config.generic_limit());
    let place = &manager.endpoint;
    let failed = |words: &str| Stop::failed(format!("the league manager at {place}: {words}"));
    let no_answer = |error: CallError| {
        let cure = "start one, or name it with --manager URL";
        failed(&format!("{}; {cure}", error.explain()))
    };
    let client = Client::new("launcher", program::log(args, "launcher"));
    client.sign_as("launcher", &config.league.league_id);
    if args.word == Some("status") {
        let answer = client.post(&manager, "get_league", "{}");
        let view = LeagueView::read(&answer.map_err(no_answer)?).map_err(|fault| {
            failed(&format!("answered something else than its league: {fault}"))
        })?;
        say(&format!("{} at {place}", shown(view.league.called())));
        status_lines(&view).iter().for_each(|line| say(line));
        return Ok(());
    }
    let order = order(args, config.league.league_id)?;
    let about = About {
        conversation_id: conversation("operator"),
        auth_token: program::operator_token(args)?,
        ..About::default()
    };
    let status = match client.ask(&manager, &order, &about).map_err(no_answer)? {
        Message::LeagueStatus(status) => status,
        Message::LeagueError(error) => return Err(failed(&problem(&error))),
        other => return Err(failed(&format!("answered with {}", other.name()))),
    };
    let usual = format!("the league is {}", status.status);
    let (league, sentence) = (&status.league_id, status.reason.unwrap_or(usual));
    say(&shown(&format!("{league} at {place}: {sentence}")));
    match (order, status.status) {
        (Message::StartLeague(_), Progress::Waiting) => {
            Err(Stop::failed("the league has not started"))
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

/// The message to the manager that a word stands for.
fn order(args: &Args, league_id: String) -> Result<Message, Stop> {
    let about = args.operands.first();
    let order = match args.word {
        Some("start") => return Ok(StartLeague { league_id }.into()),
        Some("replay") => {
            let match_id = about.map(|id| id.to_uppercase());
            json!({"league_id": league_id, "action": "replay", "match_id": match_id})
        }
        word => json!({"league_id": league_id, "action": word, "player_id": about}),
    };
    let order = LeagueControl::read(&order);
    Ok(order
        .map_err(|fault| Stop::usage(fault.to_string()))?
        .into())
}

/// What exactly was wrong, for a person: without the code.
fn problem(error: &LeagueError) -> String {
    let context = error.context.as_ref();
    let problem = context.and_then(|it| it.get("problem")?.as_str().map(String::from));
    shown(&problem.unwrap_or_else(|| error.explain()))
}

/// Shows the teacher of a class what can be typed into this terminal, and has a thread do it.
pub fn listen(program: &Program) {
    say("\nYour words, typed here:");
    help();
    let mut args = program.args.clone();
    let token = operator_file(program);
    args.set("--operator-token-file", &token.to_string_lossy());
    spawn("keyboard", move || {
        for line in stdin().lines().map_while(Result::ok) {
            if let Err(Stop(_, why)) = obey(args.clone(), line.trim()) {
                say(&why);
            }
        }
    });
}

/// Does what a typed line says, as if it came from another terminal of this machine.
fn obey(mut args: Args, line: &str) -> Result<(), Stop> {
    let (word, about) = line.split_once(' ').unwrap_or((line, ""));
    let mut known = WORDS
        .iter()
        .filter_map(|(usage, _)| usage.split(' ').next());
    let known = known.find(|known| *known != "help" && *known == word.to_lowercase());
    if known.is_none() {
        help();
        return Ok(());
    }
    args.word = known;
    args.operands = vec![about.trim().into()];
    run(&args)
}

/// Shows the words and what they do.
fn help() {
    for (word, says) in WORDS {
        say(&format!("  {word:<12} {says}"));
    }
}

/// How far a league is, as lines.
fn status_lines(view: &LeagueView) -> Vec<String> {
    let mut lines = Vec::new();
    let is_lobby = view.status == Progress::Waiting;
    if is_lobby {
        let here = [Kind::Referee, Kind::Player].map(|kind| {
            let agents = view.agents.iter().filter(|it| it.kind == kind);
            counted(agents.count() as u32, kind.word())
        });
        lines.push(format!("{} here", here.join(" and ")));
    } else {
        let (round, rounds) = (view.current_round, view.total_rounds);
        let (done, all) = (view.matches_completed, view.total_matches);
        let status = if view.paused {
            "paused"
        } else {
            view.status.word()
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
    lines.extend(reason.or(is_lobby.then_some(begin)).map(shown));
    lines
}

fn agent_line(agent: &AgentView) -> String {
    let how = match (&agent.trouble, agent.reachable) {
        (Some(trouble), _) => format!("{}; try make check", shown(trouble)),
        (None, Some(true)) => "answers".into(),
        (None, _) => "has not been called yet".into(),
    };
    format!("  {} {}: {how}", agent.id, shown(&agent.display_name))
}
