//! The whole public state of a league in one document: `GET /league.json` and the tool `get_league`. No token is in it,
//! no choice of a match that is not recorded, and endpoints only for this machine.
//!
//! It is made at most once a second while somebody asks, kept as bytes, and sent only to those that do not have it
//! already. Read next: `report.rs`, the page that shows it.

use crate::extras::luck;
use crate::manager::board::{Board, Contact};
use crate::manager::journal::Store;
use crate::manager::league::{League, Match, Member};
use crate::manager::queries::{ChoiceCounts, MatchStatus, match_status};
use crate::manager::standings::ending;
use crate::net::http::Reply;
use crate::net::sync::lock;
use crate::object;
use crate::protocol::{AgentState, Champion, Ending, GetLeague, Kind, Parity, Progress, Standing};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

/// Between two documents.
const PACE: Duration = Duration::from_secs(1);
/// Whoever has asked within this time is still looking.
const LOOKING: Duration = Duration::from_secs(3);
/// How long the manager stays at the end for those that are looking.
const LAST_LOOK: Duration = Duration::from_millis(1500);

object! {
    /// The document.
    LeagueView {
        schema_version: String, league_id: String, league: Heading,
        status: Progress, paused: bool, current_round: u32, total_rounds: u32, matches_completed: u32, total_matches: u32,
        agents: Vec<AgentView>, standings: Vec<Standing>, rounds: Vec<RoundView>,
        reason: Option<String>, champion: Option<Champion>, luck: Option<String>,
    }
    /// What does not change while the league is played; so many players and referees start it.
    Heading {
        display_name: String, game: String, register_at: String, win_points: i32, draw_points: i32, loss_points: i32,
        ; optional players_awaited: u32, referees_awaited: u32,
    }
    /// An agent. `reachable` is null until it was called; `trouble` says why the last call failed; how long its last
    /// answer took is in milliseconds. `removed` by the operator: its matches are lost, from the next round on.
    AgentView {
        id: String, kind: Kind, display_name: String, state: AgentState, removed: bool,
        reachable: Option<bool>, trouble: Option<String>,
        ; optional endpoint: String, answers_in_ms: u32, max_concurrent_matches: u32, open_matches: u32, technical_losses: u32, choices: ChoiceCounts,
    }
    /// A round.
    RoundView { round_id: u32, matches: Vec<MatchView>, }
    /// A match. What follows the referee is there once it is recorded; the reason only of a technical loss.
    MatchView {
        match_id: String, player_A_id: String, player_B_id: String, status: MatchStatus,
        ; optional referee_id: String, ending: Ending, winner: String, drawn_number: u32, choices: BTreeMap<String, Option<Parity>>, score: BTreeMap<String, i32>, reason: String,
    }
}

/// What a document depends on: the league, what was heard from the agents, what is waited for.
type Seen = (u64, u64, Option<String>);

/// A document as bytes.
struct Made {
    seen: Seen,
    over: bool,
    at: Instant,
    tag: String,
    bytes: Arc<Vec<u8>>,
}

/// Makes documents, and keeps the newest: one for others, one for this machine.
pub struct Views {
    store: Arc<Store>,
    board: Arc<Board>,
    heading: Heading,
    made: Mutex<[Option<Made>; 2]>,
    asked: Mutex<Option<Instant>>,
    luck: OnceLock<Option<String>>,
}

impl Views {
    /// Documents of the league in `store`.
    pub fn new(store: &Arc<Store>, board: &Arc<Board>, heading: Heading) -> Views {
        let (store, board) = (Arc::clone(store), Arc::clone(board));
        let (made, asked, luck) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Views {
            store,
            board,
            heading,
            made,
            asked,
            luck,
        }
    }

    /// `GET /league.json`; 304 for whoever has it already. `here`: on this machine.
    pub fn reply(&self, here: bool, if_none_match: Option<&str>) -> Reply {
        *lock(&self.asked) = Some(Instant::now());
        let (tag, bytes) = self.newest(here);
        let known = |it: &str| it == "*" || it.trim_start_matches("W/") == tag;
        let has_it = if_none_match.is_some_and(|tags| tags.split(',').map(str::trim).any(known));
        let (status, body) = if has_it {
            ("304 Not Modified", Vec::new())
        } else {
            ("200 OK", bytes.to_vec())
        };
        let headers = "Content-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n";
        Reply {
            status,
            headers: format!("{headers}Cache-Control: no-cache\r\nETag: {tag}\r\n"),
            body,
        }
    }

    fn newest(&self, here: bool) -> (String, Arc<Vec<u8>>) {
        let mut all = lock(&self.made);
        let made = &mut all[usize::from(here)];
        let (changes, over) = self
            .store
            .read(|it| (it.changes, it.progress() == Progress::Completed));
        let seen = (changes, self.board.changes(), self.board.waiting());
        let fresh =
            |made: &Made| made.seen == seen || made.over == over && made.at.elapsed() < PACE;
        if let Some(made) = made.as_ref().filter(|made| fresh(made)) {
            return (made.tag.clone(), Arc::clone(&made.bytes));
        }
        let bytes = serde_json::to_vec(&self.whole(here)).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let (tag, bytes) = (format!("\"{:016x}\"", hasher.finish()), Arc::new(bytes));
        *made = Some(Made {
            seen,
            over,
            at: Instant::now(),
            tag: tag.clone(),
            bytes: Arc::clone(&bytes),
        });
        (tag, bytes)
    }

    /// The document with all rounds.
    pub fn whole(&self, here: bool) -> LeagueView {
        self.view(here, |_, _| true)
    }

    /// What `get_league` answers: one round's matches, unless all are asked for.
    pub fn answer(&self, asked: &GetLeague, here: bool) -> LeagueView {
        self.view(here, |open, round| {
            asked.rounds.is_some() || round == asked.round_id.unwrap_or(open)
        })
    }

    /// `wanted`: whether a round is, given the open one.
    fn view(&self, here: bool, wanted: impl Fn(u32, u32) -> bool) -> LeagueView {
        let waiting = self.board.waiting();
        let mut view = self.store.read(|league| {
            let status = league.status(waiting);
            let open = status.current_round.max(1);
            let round = |round_id: u32, games: &[Match]| {
                wanted(open, round_id).then(|| RoundView {
                    round_id,
                    matches: games.iter().map(match_view).collect(),
                })
            };
            let agents = [Kind::Referee, Kind::Player]
                .into_iter()
                .flat_map(|kind| league.members(kind));
            let agent =
                |member: &Member| agent_view(league, member, self.board.contact(&member.id), here);
            let over = status.status == Progress::Completed;
            LeagueView {
                schema_version: "1.0.0".into(),
                league_id: status.league_id,
                league: self.heading.clone(),
                status: status.status,
                paused: league.paused,
                current_round: status.current_round,
                total_rounds: status.total_rounds,
                matches_completed: status.matches_completed,
                total_matches: league.matches.len() as u32,
                agents: agents.map(agent).collect(),
                standings: league.table().to_vec(),
                rounds: league.by_round(round),
                reason: status.reason,
                champion: league.completed().filter(|_| over).map(|end| end.champion),
                luck: None,
            }
        });
        view.luck = view
            .champion
            .as_ref()
            .and_then(|_| self.luck.get_or_init(|| luck::sentence(&view)).clone());
        view
    }

    /// The sentence about the luck in a league that is over: counted once, and without the league's lock.
    pub fn luck(&self) -> Option<String> {
        self.whole(false).luck
    }

    /// At the end: stays until those that are looking have seen it.
    pub fn linger(&self) {
        if lock(&self.asked).is_some_and(|asked| asked.elapsed() < LOOKING) {
            self.store.wait(LAST_LOOK, |_| false);
        }
    }
}

fn agent_view(league: &League, member: &Member, contact: Contact, here: bool) -> AgentView {
    let is_player = member.kind == Kind::Player;
    let stats = is_player.then(|| league.stats(member));
    let open = league
        .open_round()
        .into_iter()
        .flat_map(|round| league.open_matches(round));
    let own = open
        .filter(|game| game.referee() == Some(&member.id))
        .count() as u32;
    AgentView {
        id: member.id.clone(),
        kind: member.kind,
        display_name: member.display_name.clone(),
        state: league.state_of(member),
        removed: league.removed.contains(&member.id),
        reachable: (contact.trouble.is_some() || contact.answers_in.is_some())
            .then_some(contact.trouble.is_none()),
        trouble: contact.trouble,
        endpoint: here.then(|| member.endpoint.clone()),
        answers_in_ms: contact.answers_in,
        max_concurrent_matches: (!is_player).then_some(member.max_concurrent_matches),
        open_matches: (!is_player).then_some(own),
        technical_losses: stats.as_ref().map(|stats| stats.technical_losses),
        choices: stats.map(|stats| stats.choices),
    }
}

fn match_view(game: &Match) -> MatchView {
    let result = game.recorded.as_ref().map(|recorded| &recorded.result);
    let how = result.map(ending);
    MatchView {
        match_id: game.id.clone(),
        player_A_id: game.players[0].clone(),
        player_B_id: game.players[1].clone(),
        status: match_status(game),
        referee_id: game.referee().map(String::from),
        ending: how,
        winner: result.and_then(|result| result.winner.clone()),
        drawn_number: result.and_then(|result| result.details.drawn_number),
        choices: result.map(|result| result.details.choices.clone()),
        score: result.map(|result| result.score.clone()),
        reason: result
            .filter(|_| how == Some(Ending::TechnicalLoss))
            .and_then(|it| it.details.reason.clone()),
    }
}
