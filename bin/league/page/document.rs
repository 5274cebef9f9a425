//! Makes the public document of a league, a `LeagueView` (`view.rs`), from the league and the status
//! of its agents. `Document` keeps the newest one for all readers. However many read it and however
//! much happens, a new one is made at most once a second, and shares with the last one the rounds in
//! which nothing has changed.

use crate::page::view::{
    AgentView, GetLeague, Heading, LeagueView, MatchStatus, MatchView, RoundView,
};
use crate::running::rehearsal::Rehearsals;
use league::games::result_status;
use league::manager::Manager;
use league::manager::agent_status::AgentStatus;
use league::manager::league::{League, Match, Member};
use league::manager::rounds::Waiting;
use league::net::sync::lock;
use league::program::config::Config;
use league::protocol::{AgentKind, LeaguePhase};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Minimum time between two documents, unless the league starts or ends.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The newest document of a league that is going on.
pub struct Document {
    /// True if all agents run on this machine.
    is_local: bool,
    newest: Mutex<Option<Made>>,
    /// The verdicts on the players before the start.
    pub rehearsals: Arc<Rehearsals>,
}

/// A document, and the version of the store from which it was made.
struct Made {
    store_version: u64,
    time: Instant,
    view: Arc<LeagueView>,
}

impl Document {
    /// Returns an empty document of a league.
    pub fn new(is_local: bool) -> Document {
        Document {
            is_local,
            newest: Mutex::default(),
            rehearsals: Arc::default(),
        }
    }

    /// Returns the newest document. A new one is made if something has changed.
    pub fn newest(&self, manager: &Manager) -> Arc<LeagueView> {
        let store = &manager.store;
        let version = store.version();
        store.read(|league| self.make(league, version, manager))
    }

    fn make(&self, league: &League, store_version: u64, manager: &Manager) -> Arc<LeagueView> {
        let mut newest = lock(&self.newest);
        if let Some(made) = &*newest {
            let is_old = made.time.elapsed() >= MIN_INTERVAL;
            let is_due = is_old || made.view.status != league.progress();
            if made.store_version == store_version || !is_due {
                return Arc::clone(&made.view);
            }
        }

        let waiting = lock(&manager.waiting).clone();
        let mut view = view(
            league,
            |id| manager.notifier.status(id),
            &waiting,
            &self.heading(manager),
            newest.as_ref().map(|made| &*made.view),
        );
        if !league.started {
            for agent in &mut view.agents {
                agent.rehearsal = self.rehearsals.verdict(&agent.id);
            }
        }
        let made = newest.insert(Made {
            store_version,
            time: Instant::now(),
            view: Arc::new(view),
        });

        Arc::clone(&made.view)
    }

    /// Answers the tool `get_league`.
    pub fn answer(&self, manager: &Manager, arguments: &GetLeague, peer: IpAddr) -> LeagueView {
        let newest = self.newest(manager);
        let round_id = arguments.round_id.unwrap_or(newest.current_round.max(1));

        newest.copy(peer.is_loopback(), |round| {
            arguments.rounds.is_some() || round.round_id == round_id
        })
    }

    /// Returns the part of the document that is not the state of the league.
    fn heading(&self, manager: &Manager) -> Heading {
        let program = &manager.program;
        let config = &program.config;
        let (players_awaited, referees_awaited) = manager.automatic_start.unzip();

        Heading {
            display_name: config.league.display_name.clone(),
            name: program.args.text("--name").map(String::from),
            game: game_name(config),
            game_type: config.league.game_type.clone(),
            register_at: program.endpoint.clone(),
            scoring: config.league.scoring.clone(),
            local: self.is_local,
            players_awaited,
            referees_awaited,
        }
    }
}

/// Returns the name of the game in the registry.
fn game_name(config: &Config) -> String {
    let game_type = &config.league.game_type;
    let mut games = config.games.games.iter();
    let game = games.find(|game| game.game_type == *game_type);
    game.map_or(game_type.clone(), |game| game.display_name.clone())
}

/// Makes the document. A round that has not changed is shared with the document `before`.
pub fn view(
    league: &League,
    status_of: impl Fn(&str) -> AgentStatus,
    waiting: &Waiting,
    heading: &Heading,
    before: Option<&LeagueView>,
) -> LeagueView {
    // The first version is the time, so that a restarted manager continues above its last version.
    let version = match before.and_then(|view| view.version) {
        Some(version) => version + 1,
        None => UNIX_EPOCH
            .elapsed()
            .map_or(0, |time| time.as_millis() as u64),
    };

    let mut agents = Vec::new();
    for kind in [AgentKind::Referee, AgentKind::Player] {
        for member in league.members(kind) {
            agents.push(agent_view(league, member, status_of(&member.id)));
        }
    }

    let status = league.status(waiting.reason.clone());
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
        agents,
        standings: league.table(),
        rounds: round_views(league, before, version),
        reason: status.reason,
        next_at: waiting.next_at,
        champion: end.map(|end| end.champion),
        version: Some(version),
    }
}

/// Returns the rounds. Those in which nothing has changed are the ones of the document `before`.
fn round_views(league: &League, before: Option<&LeagueView>, version: u64) -> Vec<Arc<RoundView>> {
    let mut rounds = Vec::new();
    let matches = league.schedule_preview();
    for matches in matches.chunk_by(|one, other| one.round == other.round) {
        let round_id = matches[0].round;
        let matches: Vec<MatchView> = matches.iter().map(match_view).collect();

        rounds.push(
            match before.and_then(|view| view.rounds.get(rounds.len())) {
                Some(known) if known.matches == matches => Arc::clone(known),
                _ => Arc::new(RoundView {
                    round_id,
                    matches,
                    changed: Some(version),
                }),
            },
        );
    }

    rounds
}

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
        rehearsal: None,
        endpoint: Some(member.meta.contact_endpoint.clone()),
        answers_in_ms: agent.response_ms,
        technical_losses: stats.map(|stats| stats.technical_losses),
        choices: stats.map(|stats| stats.choices),
    }
}

fn match_view(the_match: &Match) -> MatchView {
    let recorded = the_match.recorded.as_ref();
    let status = if recorded.is_some() {
        MatchStatus::Completed
    } else if the_match.assignment().is_some() {
        MatchStatus::Assigned
    } else {
        MatchStatus::Scheduled
    };

    let result = recorded.map(|recorded| &recorded.result);
    let details = result.map(|result| &result.details);
    let explained = details.filter(|details| details.drawn_number.is_none());

    MatchView {
        match_id: the_match.id.clone(),
        player_A_id: the_match.players[0].clone(),
        player_B_id: the_match.players[1].clone(),
        status,
        referee_id: the_match.referee().map(String::from),
        recorded_at: recorded.map(|recorded| recorded.at),
        ending: result.map(result_status),
        winner: result.and_then(|result| result.winner.clone()),
        drawn_number: details.and_then(|details| details.drawn_number),
        choices: details.map(|details| details.choices.clone()),
        score: result.map(|result| result.score.clone()),
        reason: explained.and_then(|details| details.reason.clone()),
        moves: details.and_then(|details| details.moves.clone()),
    }
}
