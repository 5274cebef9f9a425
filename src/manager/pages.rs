//! Files for people, made from the league at will: the table, the rounds, one file per match. The truth is the journal;
//! whoever deletes these loses nothing. They follow the league from outside, every two seconds at most.

use crate::manager::journal::Store;
use crate::manager::league::{League, Match};
use crate::manager::queries::ScheduledRound;
use crate::net::log::{Level, Log};
use crate::net::sync::{lock, spawn};
use crate::object;
use crate::program::storage;
use crate::program::terminal::Terminal;
use crate::protocol::{MatchResult, MatchState, Standing};
use crate::wire::Timestamp;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Between two writings.
const PACE: Duration = Duration::from_secs(2);

object! {
    /// `standings.json`; the version counts the results.
    StandingsPage {
        schema_version: String, league_id: String, last_updated: Timestamp, version: u32, rounds_completed: u32,
        standings: Vec<Standing>,
    }
    /// `rounds.json`: the history of the rounds.
    RoundsPage { schema_version: String, league_id: String, last_updated: Timestamp, rounds: Vec<ScheduledRound>, }
    /// `matches/ID/R1M1.json`: one match, its result once it has one.
    MatchPage {
        match_id: String, round_id: u32, player_A_id: String, player_B_id: String, state: MatchState,
        referee_id: Option<String>, result: Option<MatchResult>, recorded_at: Option<Timestamp>,
    }
}

/// What a match's page depends on: its referee, whether it has a result, and how many were voided.
type PageState = (String, bool, u32);

/// Where the pages go, and what those of the matches depended on when they were written.
pub struct Pages {
    league: PathBuf,
    matches: PathBuf,
    written: Mutex<BTreeMap<String, PageState>>,
    /// The last time they could not be written.
    failing: AtomicBool,
    terminal: Terminal,
    log: Arc<Log>,
}

impl Pages {
    /// Pages below the data folder, for one league.
    pub fn new(data: &Path, league_id: &str, terminal: Terminal, log: &Arc<Log>) -> Pages {
        let (league, matches) = (
            data.join("leagues").join(league_id),
            data.join("matches").join(league_id),
        );
        let (written, failing) = (Mutex::default(), AtomicBool::new(false));
        Pages {
            league,
            matches,
            written,
            failing,
            terminal,
            log: Arc::clone(log),
        }
    }

    /// Writes from now on what is new.
    pub fn follow(self: &Arc<Self>, store: &Arc<Store>) {
        let (here, store) = (Arc::clone(self), Arc::clone(store));
        spawn("pages", move || {
            loop {
                let (changes, closed) = store.read(|league| (league.changes, league.closed));
                if closed {
                    return; // the last pages were written before
                }
                here.write_all(&store);
                store.wait(PACE, |league| league.closed);
                store.wait(PACE, |league| league.changes != changes);
            }
        });
    }

    /// Writes what is new. That it cannot be written is said once, and stops no league.
    pub fn write_all(&self, store: &Store) {
        let written = self.write(store);
        if self.failing.swap(written.is_err(), Ordering::SeqCst) {
            return;
        }
        if let Err(error) = written {
            let words = format!("the files for people cannot be written: {error}");
            self.log.orchestrator(Level::Error, "fault", &*words);
            self.terminal.say(&words);
        }
    }

    /// Writes what has changed. A match has a page once it has a referee.
    fn write(&self, store: &Store) -> io::Result<()> {
        let mut written = lock(&self.written);
        let (standings, rounds, pages) = store.read(|league| {
            let begun = league
                .matches
                .iter()
                .filter_map(|game| Some((page_state(game)?, game)));
            let news = begun.filter(|(now, game)| written.get(&game.id) != Some(now));
            let pages: Vec<_> = news.map(|(now, game)| (now, match_page(game))).collect();
            (standings_page(league), rounds_page(league), pages)
        });
        for (now, page) in pages {
            storage::replace_page(&self.matches.join(format!("{}.json", page.match_id)), &page)?;
            written.insert(page.match_id, now);
        }
        storage::replace_page(&self.league.join("rounds.json"), &rounds)?;
        storage::replace_page(&self.league.join("standings.json"), &standings)
    }
}

fn page_state(game: &Match) -> Option<PageState> {
    let by = game.recorded.as_ref().map(|recorded| &*recorded.referee_id);
    Some((game.referee().or(by)?.to_string(), by.is_some(), game.voids))
}

fn standings_page(league: &League) -> StandingsPage {
    StandingsPage {
        schema_version: "1.0.0".into(),
        league_id: league.rules.league_id.clone(),
        last_updated: Timestamp::now(),
        version: league.tables() as u32,
        rounds_completed: league.rounds_completed,
        standings: league.table().to_vec(),
    }
}

fn rounds_page(league: &League) -> RoundsPage {
    RoundsPage {
        schema_version: "1.0.0".into(),
        league_id: league.rules.league_id.clone(),
        last_updated: Timestamp::now(),
        rounds: league
            .schedule(None)
            .map(|schedule| schedule.rounds)
            .unwrap_or_default(),
    }
}

fn match_page(game: &Match) -> MatchPage {
    let [a, b] = game.players.clone();
    let recorded = game.recorded.as_ref();
    MatchPage {
        match_id: game.id.clone(),
        round_id: game.round,
        player_A_id: a,
        player_B_id: b,
        state: if recorded.is_some() {
            MatchState::Finished
        } else {
            MatchState::WaitingForPlayers
        },
        referee_id: game.referee().map(String::from),
        result: recorded.map(|recorded| recorded.result.clone()),
        recorded_at: recorded.map(|recorded| recorded.at),
    }
}
