//! What a manager shows beside the messages: its tools that only look, and how it is.
//!
//! Tools and health only read the league, and nothing of them is for the referees and players that
//! play it. `handlers.rs` gives them to whoever asks.

use crate::manager::Manager;
use crate::manager::league::League;
use crate::manager::view::{LeagueView, RoundView};
use crate::net::agent::{Nothing, Tool, Toolbox};
use crate::protocol::{AgentState, Kind, Progress};
use crate::{object, words};
use serde_json::Value;
use std::net::IpAddr;

/// What a model should know of a manager before it calls a tool.
const INSTRUCTIONS: &str = "The manager of a round-robin league. get_standings shows the table and \
    create_schedule who meets whom; get_league shows everything public at once. None needs \
    arguments. start_league starts the league when enough players and a referee have registered, \
    and tells what is missing otherwise. The other tools are for the agents that play: their \
    arguments are a whole league message. A refusal is a tool error that says what was wrong.";

words! {
    /// What `get_league` may be asked for.
    WhichRounds { All = "all", }
}

object! {
    /// The arguments of `get_league`: a round, or all of them; else the open round.
    GetLeague { ; optional round_id: u32, rounds: WhichRounds, }
}

impl Manager {
    /// The table of the tools.
    pub(super) fn tools(&self) -> Toolbox<'_> {
        Toolbox {
            instructions: INSTRUCTIONS,
            lists_messages: true,
            tools: vec![
                Tool::new(
                    "create_schedule",
                    "Who meets whom, by round; before the start, as it would be with the players so far. Changes nothing.",
                    |_: Nothing, _| Ok(self.store.read(|league| league.schedule(None))?),
                ),
                Tool::new(
                    "get_standings",
                    "The current table: rank, points, wins, draws and losses of every player.",
                    |_: Nothing, _| Ok(self.store.read(League::standings_data)),
                ),
                Tool::new(
                    "get_league",
                    "The whole public state: status, agents, table, statistics, and the matches of \
                        the open round (or of round_id).",
                    |asked, peer| Ok(self.league(&asked, peer)),
                ),
            ],
        }
    }

    fn league(&self, asked: &GetLeague, peer: IpAddr) -> LeagueView {
        let newest = self.view();
        let round = asked.round_id.unwrap_or(newest.current_round.max(1));
        let wanted = |it: &RoundView| asked.rounds.is_some() || it.round_id == round;
        newest.copy(peer.is_loopback(), wanted)
    }

    /// The manager's own state, and the fields of LEAGUE_STATUS; the uptime is in seconds.
    pub(super) fn how_it_is(&self) -> Value {
        let status = self.status();
        let entry = &self.program.config.agents.league_manager;
        let state = match status.status {
            Progress::Waiting => AgentState::Registered,
            Progress::Running => AgentState::Active,
            Progress::Completed => AgentState::Shutdown,
        };
        let mut health = serde_json::to_value(status).unwrap_or_default();
        health["name"] = entry.display_name.0.clone().into();
        health["version"] = entry.version.0.clone().into();
        health["id"] = self.program.client.sender().into();
        health["kind"] = Kind::Manager.word().into();
        health["state"] = state.word().into();
        health["uptime"] = self.program.started.elapsed().as_secs().into();
        health
    }
}
