//! Makes the public state of a league, a `LeagueView` (`view.rs`), from the league and from what
//! was heard from its agents. `Document` keeps the newest one, for all who look. However many look
//! and however much happens, a new one is made only once in a while, and shares with the last one
//! the rounds in which nothing has changed.

use crate::extras::view::{AgentView, GetLeague, Heading, LeagueView, MatchView, RoundView};
use crate::json::decode;
use crate::manager::Manager;
use crate::manager::agent_status::AgentStatus;
use crate::manager::league::{League, Match, Member};
use crate::manager::rounds::Waiting;
use crate::manager::standings::ending;
use crate::net::sync::lock;
use crate::program::config::Config;
use crate::protocol::{AgentKind, LeaguePhase};
use serde_json::json;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The least time between two documents; but the start and the end of a league are told at once.
const PACE: Duration = Duration::from_secs(1);

/// The newest document of a league that is going on.
#[derive(Default)]
pub struct Document {
    made: Mutex<Option<Made>>,
}

/// A document, and the version of the store from which it was made.
struct Made {
    store_version: u64,
    at: Instant,
    view: Arc<LeagueView>,
}

impl Document {
    /// The newest document: made anew if something has changed, but only once within `PACE`.
    pub fn newest(&self, manager: &Manager) -> Arc<LeagueView> {
        let store_version = manager.store.version();
        manager
            .store
            .read(|league| self.made(league, store_version, manager))
    }

    fn made(&self, league: &League, store_version: u64, manager: &Manager) -> Arc<LeagueView> {
        let mut newest = lock(&self.made);
        if let Some(made) = &*newest {
            let is_due = made.at.elapsed() >= PACE || made.view.status != league.progress();
            if made.store_version == store_version || !is_due {
                return Arc::clone(&made.view);
            }
        }
        let before = newest.as_ref().map(|made| &*made.view);
        let status = |id: &str| manager.notifier.status(id);
        let waiting = lock(&manager.waiting).clone();
        let made = Made {
            store_version,
            at: Instant::now(),
            view: Arc::new(view(league, status, &waiting, &heading(manager), before)),
        };
        Arc::clone(&newest.insert(made).view)
    }

    /// What the tool `get_league` answers.
    pub fn asked(&self, manager: &Manager, asked: &GetLeague, peer: IpAddr) -> LeagueView {
        let newest = self.newest(manager);
        let round = asked.round_id.unwrap_or(newest.current_round.max(1));
        let wanted = |it: &RoundView| asked.rounds.is_some() || it.round_id == round;
        newest.copy(peer.is_loopback(), wanted)
    }
}

/// What the public document says of the league beside its state.
fn heading(manager: &Manager) -> Heading {
    let program = &manager.program;
    let config = &program.config;
    let (players_awaited, referees_awaited) = manager.awaited.unzip();
    Heading {
        display_name: config.league.display_name.clone(),
        name: program.args.text("--name").map(String::from),
        game: game_name(config),
        game_type: config.league.game_type.clone(),
        register_at: program.endpoint.clone(),
        scoring: config.league.scoring.clone(),
        local: program.args.command == Some("local"),
        players_awaited,
        referees_awaited,
    }
}

/// The name of the game, as the registry has it.
fn game_name(config: &Config) -> String {
    let game_type = &config.league.game_type;
    let mut games = config.games.games.iter();
    let game = games.find(|game| game.game_type == *game_type);
    game.map_or(game_type.clone(), |game| game.display_name.clone())
}

/// Makes the document. A round that has not changed is shared with the one `before`.
pub fn view(
    league: &League,
    status_of: impl Fn(&str) -> AgentStatus,
    waiting: &Waiting,
    heading: &Heading,
    before: Option<&LeagueView>,
) -> LeagueView {
    // The first version is the clock's, so that a manager that was started again goes on above
    // where it had stopped.
    let clock = || UNIX_EPOCH.elapsed().map_or(0, |it| it.as_millis() as u64);
    let version = before.and_then(|view| view.version);
    let version = version.map_or_else(clock, |version| version + 1);
    let round = |round_id: u32, games: &[Match]| {
        let known = before.and_then(|view| view.rounds.get(round_id as usize - 1));
        round_view(round_id, games, known, version)
    };
    let matches = league.schedule_preview();
    let rounds = matches.chunk_by(|one, other| one.round == other.round);
    let rounds = rounds.map(|games| round(games[0].round, games)).collect();
    let status = league.status(waiting.reason.clone());
    let members = [AgentKind::Referee, AgentKind::Player].map(|kind| league.members(kind));
    let agent = |member: &Member| agent_view(league, member, status_of(&member.id));
    let is_over = status.status == LeaguePhase::Completed;
    let end = league.league_completed().filter(|_| is_over);
    LeagueView {
        schema_version: "1.0.0".into(),
        league_id: status.league_id,
        league: heading.clone(),
        status: status.status,
        paused: league.paused,
        current_round: status.current_round,
        total_rounds: status.total_rounds,
        matches_completed: status.matches_completed,
        total_matches: league.matches.len() as u32,
        agents: members.into_iter().flatten().map(agent).collect(),
        standings: league.table(),
        rounds,
        reason: status.reason,
        next_at: waiting.next_at,
        champion: end.map(|end| end.champion),
        version: Some(version),
    }
}

/// A round, which is the known one where nothing has changed.
fn round_view(
    round_id: u32,
    games: &[Match],
    known: Option<&Arc<RoundView>>,
    version: u64,
) -> Arc<RoundView> {
    let matches: Vec<MatchView> = games.iter().map(match_view).collect();
    match known.filter(|known| known.matches == matches) {
        Some(known) => Arc::clone(known),
        None => Arc::new(RoundView {
            round_id,
            matches,
            changed: Some(version),
        }),
    }
}

/// An agent, as its league and whoever calls it know it.
fn agent_view(league: &League, member: &Member, agent: AgentStatus) -> AgentView {
    let stats = (member.kind == AgentKind::Player).then(|| league.stats(&member.id));
    let was_called = agent.last_error.is_some() || agent.response_ms.is_some();
    AgentView {
        id: member.id.clone(),
        kind: member.kind,
        display_name: member.meta.display_name.clone(),
        state: league.state_of(member),
        removed: league.removed.contains(&member.id),
        reachable: was_called.then_some(agent.last_error.is_none()),
        trouble: agent.last_error,
        endpoint: Some(member.meta.contact_endpoint.clone()),
        answers_in_ms: agent.response_ms,
        technical_losses: stats.map(|stats| stats.technical_losses),
        choices: stats.map(|stats| stats.choices),
    }
}

/// A match.
fn match_view(game: &Match) -> MatchView {
    let result = game.recorded.as_ref().map(|recorded| &recorded.result);
    let details = result.map(|result| &result.details);
    let explained = details.filter(|details| details.drawn_number.is_none());
    MatchView {
        match_id: game.id.clone(),
        player_A_id: game.players[0].clone(),
        player_B_id: game.players[1].clone(),
        status: decode(&json!(game.status())).unwrap(),
        referee_id: game.referee().map(String::from),
        recorded_at: game.recorded.as_ref().map(|recorded| recorded.at),
        ending: result.map(ending),
        winner: result.and_then(|result| result.winner.clone()),
        drawn_number: details.and_then(|details| details.drawn_number),
        choices: details.map(|details| details.choices.clone()),
        score: result.map(|result| result.score.clone()),
        reason: explained.and_then(|details| details.reason.clone()),
        moves: details.and_then(|details| details.moves.clone()),
    }
}
