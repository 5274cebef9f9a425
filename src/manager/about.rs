//! What a manager shows and says beside the messages: its tools that only look, its health, and in words why it has
//! refused a request of which a person at the manager's screen should hear.

use crate::manager::Manager;
use crate::manager::league::League;
use crate::manager::view::{LeagueView, RoundView};
use crate::net::agent::{Nothing, Tool, Toolbox};
use crate::protocol::{AgentState, Kind, MatchResultReport, Progress, Refusal};
use crate::wire::{SHOWN, cut};
use crate::{object, words};
use serde_json::Value;
use std::net::IpAddr;

/// What a model should know of a manager before it calls a tool.
const INSTRUCTIONS: &str = "The manager of a round-robin league. get_standings shows the table and create_schedule who \
    meets whom; get_league shows everything public at once. None needs arguments. start_league starts the league when \
    enough players and a referee have registered, and tells what is missing otherwise. The other tools are for the \
    agents that play: their arguments are a whole league message. A refusal is a tool error that says what was wrong.";

words! {
    /// What `get_league` may be asked for.
    WhichRounds { All = "all", }
}

object! {
    /// The arguments of `get_league`: a round, or all of them; else the open round.
    GetLeague { ; optional round_id: u32, rounds: WhichRounds, }
}

/// The table of the tools.
pub fn tools(manager: &Manager) -> Toolbox<'_> {
    Toolbox {
        instructions: INSTRUCTIONS,
        lists_messages: true,
        tools: vec![
            Tool::new(
                "create_schedule",
                "Who meets whom, by round; before the start, as it would be with the players so far. Changes nothing.",
                |_: Nothing, _| Ok(manager.store.read(|league| league.schedule(None))?),
            ),
            Tool::new(
                "get_standings",
                "The current table: rank, points, wins, draws and losses of every player.",
                |_: Nothing, _| Ok(manager.store.read(League::standings_data)),
            ),
            Tool::new(
                "get_league",
                "The whole public state: status, agents, table, statistics, and the matches of the open round (or of \
                 round_id).",
                |asked, peer| Ok(league(manager, &asked, peer)),
            ),
        ],
    }
}

fn league(manager: &Manager, asked: &GetLeague, peer: IpAddr) -> LeagueView {
    let newest = manager.document.newest();
    let round = asked.round_id.unwrap_or(newest.current_round.max(1));
    let wanted = |it: &RoundView| asked.rounds.is_some() || it.round_id == round;
    newest.copy(peer.is_loopback(), wanted)
}

/// The manager's own state, and the fields of LEAGUE_STATUS; the uptime is in seconds.
pub fn health(manager: &Manager) -> Value {
    let status = manager.status();
    let entry = &manager.program.config.agents.league_manager;
    let state = match status.status {
        Progress::Waiting => AgentState::Registered,
        Progress::Running => AgentState::Active,
        Progress::Completed => AgentState::Shutdown,
    };
    let mut health = serde_json::to_value(status).unwrap_or_default();
    health["name"] = entry.display_name.0.clone().into();
    health["version"] = entry.version.0.clone().into();
    health["id"] = manager.program.client.sender().into();
    health["kind"] = Kind::Manager.word().into();
    health["state"] = state.word().into();
    health["uptime"] = manager.program.started.elapsed().as_secs().into();
    health
}

/// What a person should hear of a refused registration or report: nobody else can tell its author.
pub fn refusal(packet: &Value, peer: IpAddr, refusal: &Refusal) -> Option<String> {
    let text = |value: &Value, key: &str| Some(cut(value[key].as_str()?, SHOWN));
    let message_type = text(packet, "message_type")?;
    let why = cut(&refusal.to_string(), 400);
    if message_type == MatchResultReport::NAME {
        let match_id = cut(&text(packet, "match_id").unwrap_or_default(), 20);
        return Some(format!(
            "refused a report of {match_id}, from {peer}: {why}"
        ));
    }
    if !message_type.ends_with("_REGISTER_REQUEST") {
        return None;
    }
    let metas = ["player_meta", "referee_meta"];
    let said = |key: &str| metas.iter().find_map(|meta| text(&packet[meta], key));
    let name = said("display_name").unwrap_or("somebody".into());
    let place = said("contact_endpoint").map_or(String::new(), |url| format!(" at {url}"));
    Some(format!(
        "refused to register {name}{place}, from {peer}: {why}"
    ))
}
