//! Makes the public document of a league, a `LeagueView` (`view.rs`), from the league and the
//! status of its agents. `Document` keeps the newest one for all readers. However many read it and
//! however much happens, a new one is made at most once a second, and shares with the last one the
//! rounds in which nothing has changed. Under the league's lock only the other rounds are copied.

use crate::show::view::{
    AgentView, GetLeague, Heading, LeagueView, MatchStatus, MatchView, Practice, RoundView,
};
use league::games::{self, result_status};
use league::manager::Manager;
use league::manager::contact::Contact;
use league::manager::league::{League, Match, Member};
use league::manager::rounds::Waiting;
use league::net::call_error::CallError;
use league::net::sync::lock;
use league::protocol::{AgentKind, Champion, LeaguePhase};
use league::values::Moment;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Minimum time between two documents, unless the league starts or ends.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The verdicts of all rehearsals, by player.
#[derive(Default)]
pub struct Rehearsals(Mutex<BTreeMap<String, Rehearsal>>);

struct Rehearsal {
    /// The number of the player's registration before the rehearsal.
    registration: u32,
    /// `plays …`, or what went wrong; none while the match is played.
    verdict: Option<String>,
}

impl Rehearsals {
    /// Returns the verdict on a player: `plays`, or what went wrong.
    pub fn verdict(&self, player_id: &str) -> Option<String> {
        lock(&self.0).get(player_id)?.verdict.clone()
    }

    /// Notes that a rehearsal begins. Returns false if the player has had it since this
    /// registration, or plays one now.
    pub fn begin(&self, player_id: &str, registration: u32) -> bool {
        let mut all = lock(&self.0);
        if let Some(last) = all.get(player_id)
            && (last.registration == registration || last.verdict.is_none())
        {
            return false;
        }
        let rehearsal = Rehearsal {
            registration,
            verdict: None,
        };
        all.insert(player_id.into(), rehearsal);
        true
    }

    /// Notes the verdict of a rehearsal.
    pub fn end(&self, player_id: &str, verdict: String) {
        if let Some(rehearsal) = lock(&self.0).get_mut(player_id) {
            rehearsal.verdict = Some(verdict);
        }
    }
}

/// The newest document of a league that is going on.
pub struct Document {
    /// True if all agents run on this machine.
    is_local: bool,
    practice: Option<Practice>,
    newest: Mutex<Option<Made>>,
    /// The verdicts on the players before the start.
    pub rehearsals: Rehearsals,
}

/// A document, and the version of the store from which it was made.
struct Made {
    store_changes: u64,
    time: Instant,
    view: Arc<LeagueView>,
}

impl Document {
    /// Returns an empty document of a league.
    pub fn new(is_local: bool, practice: Option<Practice>) -> Document {
        Document {
            is_local,
            practice,
            newest: Mutex::default(),
            rehearsals: Rehearsals::default(),
        }
    }

    /// Returns the newest document. A new one is made if something has changed. Readers that come
    /// meanwhile wait for it.
    pub fn newest(&self, manager: &Manager) -> Arc<LeagueView> {
        let store = &manager.store;
        let mut newest = lock(&self.newest);
        if let Some(made) = &*newest {
            let is_old = made.time.elapsed() >= MIN_INTERVAL;
            let is_due = is_old || made.view.status != store.read(League::phase);
            if made.store_changes == store.change_count() || !is_due {
                return Arc::clone(&made.view);
            }
        }
        self.make(manager, &mut newest)
    }

    /// Returns a document of this moment.
    pub fn current(&self, manager: &Manager) -> Arc<LeagueView> {
        self.make(manager, &mut lock(&self.newest))
    }

    /// Makes a document, and keeps it.
    fn make(&self, manager: &Manager, newest: &mut Option<Made>) -> Arc<LeagueView> {
        let store = &manager.store;
        let store_changes = store.change_count();

        // Copy the league, and add the status of its agents.
        let heading = self.heading(manager);
        let before = newest.as_ref().map(|made| &*made.view);
        let mut view = store.read(|league| {
            let now = Moment::now();
            let waiting = (manager.contacts).with(|table| table.waiting(league, now));
            copy(league, &waiting, heading, before)
        });
        let is_lobby = view.status == LeaguePhase::Waiting;
        for agent in &mut view.agents {
            if let Some(contact) = manager
                .contacts
                .with(|table| table.contacts.get(&agent.id).cloned())
            {
                agent.add_status(&contact);
            }
            if is_lobby {
                agent.rehearsal = self.rehearsals.verdict(&agent.id);
            }
        }

        let made = newest.insert(Made {
            store_changes,
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
        let (players_awaited, referees_awaited) =
            manager.contacts.with(|table| table.automatic_start).unzip();

        Heading {
            display_name: config.league.display_name.clone(),
            name: program.args.text("--name").map(String::from),
            game: game_name(&config.league.game_type),
            game_type: config.league.game_type.clone(),
            register_at: program.endpoint.clone(),
            scoring: config.league.scoring.clone(),
            local: self.is_local,
            practice: self.practice.clone(),
            players_awaited,
            referees_awaited,
        }
    }
}

/// Returns the name of the game for people.
fn game_name(game_type: &str) -> String {
    games::find(game_type)
        .map_or(game_type, |game| game.display_name)
        .into()
}

/// Copies what the document shows of a league; it lacks the status of the agents. A round that has
/// not changed is shared with the document `before`.
pub fn copy(
    league: &League,
    waiting: &Waiting,
    heading: Heading,
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
            agents.push(agent_view(league, member));
        }
    }

    let status = league.status(waiting.reason.clone());
    let standings = league.table();
    let champion = (standings.first()).filter(|_| status.status == LeaguePhase::Completed);

    LeagueView {
        schema_version: "1.0.0".into(),
        league_id: status.league_id,
        league: heading,
        status: status.status,
        paused: league.paused,
        current_round: status.current_round,
        total_rounds: status.total_rounds,
        matches_completed: status.matches_completed,
        total_matches: league.matches.len() as u32,
        agents,
        rounds: round_views(league, before, version),
        reason: status.reason,
        next_at: waiting.next_at,
        champion: champion.map(|first| Champion {
            player_id: first.player_id.clone(),
            display_name: first.display_name.clone(),
            points: first.points,
        }),
        standings,
        ranks: league.ranks(),
        version: Some(version),
    }
}

/// Returns the rounds. Those in which nothing has changed are the ones of the document `before`.
fn round_views(league: &League, before: Option<&LeagueView>, version: u64) -> Vec<Arc<RoundView>> {
    let mut rounds = Vec::new();
    let matches = league.schedule_preview();
    for matches in matches.chunk_by(|one, other| one.round == other.round) {
        let known = before.and_then(|view| view.rounds.get(rounds.len()));
        let known = known.filter(|known| {
            let mut pairs = known.matches.iter().zip(matches);
            known.matches.len() == matches.len() && pairs.all(|(view, m)| shows(view, m))
        });

        rounds.push(match known {
            Some(known) => Arc::clone(known),
            None => Arc::new(RoundView {
                round_id: matches[0].round,
                matches: matches.iter().map(match_view).collect(),
                changed: Some(version),
            }),
        });
    }

    rounds
}

/// Returns true if a match is as it was when its view was made: a result does not change any more.
fn shows(view: &MatchView, the_match: &Match) -> bool {
    let recorded = the_match.recorded.as_ref();
    let [player_a, player_b] = &the_match.players;
    view.recorded_at == recorded.map(|recorded| recorded.at)
        && view.referee_id.as_deref() == the_match.referee()
        && view.player_A_id == *player_a
        && view.player_B_id == *player_b
}

fn agent_view(league: &League, member: &Member) -> AgentView {
    let stats = (member.kind == AgentKind::Player).then(|| league.stats(&member.id));

    AgentView {
        id: member.id.clone(),
        kind: member.kind,
        display_name: member.meta.display_name.clone(),
        state: league.state_of(member),
        removed: league.removed.contains(&member.id),
        reachable: None,
        trouble: None,
        public_trouble: None,
        rehearsal: None,
        endpoint: Some(member.meta.contact_endpoint.clone()),
        technical_losses: stats.map(|stats| stats.technical_losses),
    }
}

impl AgentView {
    /// Adds whether the agent answers.
    fn add_status(&mut self, contact: &Contact) {
        let error = contact.health.error();
        self.reachable = contact.was_called().then_some(error.is_none());
        self.trouble = error.map(CallError::explain);
        self.public_trouble = error.map(CallError::explain_in_public);
    }
}

fn match_view(the_match: &Arc<Match>) -> MatchView {
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
