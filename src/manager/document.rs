//! Makes the public state of a league, a `LeagueView` (`view.rs`), from the league and from what
//! was heard from its agents. `Document` keeps the newest one, for all who look. However many look
//! and however much happens, a new one is made only once in a while, and shares with the last one
//! the rounds in which nothing has changed.

use crate::manager::contact::{Contact, Heard};
use crate::manager::league::{League, Match, Member};
use crate::manager::queries::match_status;
use crate::manager::standings::ending;
use crate::manager::view::{AgentView, Heading, LeagueView, MatchView, RoundView};
use crate::net::sync::lock;
use crate::protocol::{Kind, Progress};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The least time between two documents; but the start and the end of a league are told at once.
const PACE: Duration = Duration::from_secs(1);

/// The newest document of a league that is going on.
pub struct Document {
    /// What does not change while the league is played.
    pub heading: Heading,
    made: Mutex<Option<Made>>,
}

/// A document, and what it was made of: the changes of the league and of what was heard.
struct Made {
    changes: (u64, u64),
    at: Instant,
    view: Arc<LeagueView>,
}

impl Document {
    /// Documents under this heading.
    pub fn new(heading: Heading) -> Document {
        Document {
            heading,
            made: Mutex::default(),
        }
    }

    /// The newest document: made anew if something has changed, but only once within `PACE`.
    pub fn newest(&self, league: &League, heard: &Heard) -> Arc<LeagueView> {
        let mut newest = lock(&self.made);
        let changes = (league.changes, heard.changes);
        if let Some(made) = &*newest {
            let is_due = made.at.elapsed() >= PACE || made.view.status != league.progress();
            if made.changes == changes || !is_due {
                return Arc::clone(&made.view);
            }
        }
        let before = newest.as_ref().map(|made| &*made.view);
        let made = Made {
            changes,
            at: Instant::now(),
            view: Arc::new(view(league, heard, &self.heading, before)),
        };
        Arc::clone(&newest.insert(made).view)
    }
}

/// Makes the document. A round that has not changed is shared with the one `before`.
pub fn view(
    league: &League,
    heard: &Heard,
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
    let waiting = &heard.waiting;
    let status = league.status(waiting.reason.clone());
    let members = [Kind::Referee, Kind::Player].map(|kind| league.members(kind));
    let agent = |member: &Member| agent_view(league, member, heard.of(&member.id));
    let is_over = status.status == Progress::Completed;
    let end = league.completed().filter(|_| is_over);
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
        standings: league.table().to_vec(),
        rounds: league.by_round(round),
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
fn agent_view(league: &League, member: &Member, contact: Contact) -> AgentView {
    let career = (member.kind == Kind::Player).then(|| league.career(&member.id));
    let was_called = contact.trouble.is_some() || contact.answers_in.is_some();
    AgentView {
        id: member.id.clone(),
        kind: member.kind,
        display_name: member.display_name.clone(),
        state: league.state_of(member),
        removed: league.removed.contains(&member.id),
        reachable: was_called.then_some(contact.trouble.is_none()),
        trouble: contact.trouble,
        endpoint: Some(member.endpoint.clone()),
        answers_in_ms: contact.answers_in,
        technical_losses: career.map(|career| career.technical_losses),
        choices: career.map(|career| career.choices),
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
        status: match_status(game),
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
