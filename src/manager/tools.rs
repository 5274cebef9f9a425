//! The manager's tools that are no messages: what anybody may look at.

use crate::manager::Manager;
use crate::manager::document::{LeagueView, RoundView};
use crate::manager::league::League;
use crate::net::agent::{Nothing, Tool, Toolbox};
use crate::{object, words};
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
            Tool::shows(
                "create_schedule",
                "Who meets whom, by round; before the start, as it would be with the players so far. Changes nothing.",
                |_: Nothing, _| Ok(manager.store.read(|league| league.schedule(None))?),
            ),
            Tool::shows(
                "get_standings",
                "The current table: rank, points, wins, draws and losses of every player.",
                |_: Nothing, _| Ok(manager.store.read(League::standings_data)),
            ),
            Tool::shows(
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
