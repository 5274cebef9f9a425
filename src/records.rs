//! Files for people, made from the league at will: the table, the rounds, one file per match. The truth is the
//! journal; whoever deletes these loses nothing.

use crate::{
    answers::ScheduledRound,
    clock::Timestamp,
    files::{self, Access},
    journal::Record,
    league::{League, Match},
    object,
    protocol::{MatchResult, MatchState, Standing},
    threads::lock,
};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Mutex,
};

object! {
    /// `standings.json` (004); the version counts the results.
    StandingsPage {
        schema_version: String, league_id: String, last_updated: Timestamp, version: u32, rounds_completed: u32,
        standings: Vec<Standing>,
    }
    /// `rounds.json`: the history of the rounds.
    RoundsPage { schema_version: String, league_id: String, last_updated: Timestamp, rounds: Vec<ScheduledRound>, }
    /// `matches/ID/R1M1.json`: one match, its result once it has one.
    MatchPage {
        match_id: String, round_id: u32, player_A_id: String, player_B_id: String, state: MatchState,
        ; nullable referee_id: String, result: MatchResult, recorded_at: Timestamp,
    }
}

/// Where the pages go, and what those of the matches depended on when they were written.
pub struct Records {
    league: PathBuf,
    matches: PathBuf,
    written: Mutex<BTreeMap<String, Progress>>,
}

/// What a match's page depends on: its referee, and whether it has a result.
type Progress = (String, bool);

impl Records {
    /// Pages below the data folder, for one league.
    pub fn new(data: &Path, league_id: &str) -> Records {
        let (league, matches) = (data.join("leagues").join(league_id), data.join("matches").join(league_id));
        Records { league, matches, written: Mutex::default() }
    }

    /// Writes what has changed. A match has a page once it has a referee.
    pub fn write(&self, record: &Record) -> io::Result<()> {
        let mut written = lock(&self.written);
        let (standings, rounds, pages) = record.read(|league| {
            let begun = league.matches.iter().filter_map(|game| Some((progress(game)?, game)));
            let news = begun.filter(|(now, game)| written.get(&game.id) != Some(now));
            let pages: Vec<_> = news.map(|(now, game)| (now, match_page(game))).collect();
            (standings_page(league), rounds_page(league), pages)
        });
        for (now, page) in pages {
            files::replace_json(&self.matches.join(format!("{}.json", page.match_id)), Access::Everybody, &page)?;
            written.insert(page.match_id, now);
        }
        files::replace_json(&self.league.join("rounds.json"), Access::Everybody, &rounds)?;
        files::replace_json(&self.league.join("standings.json"), Access::Everybody, &standings)
    }
}

fn progress(game: &Match) -> Option<Progress> {
    Some((game.referee()?.to_string(), game.recorded.is_some()))
}

fn standings_page(league: &League) -> StandingsPage {
    StandingsPage {
        schema_version: "1.0.0".into(),
        league_id: league.rules.league_id.clone(),
        last_updated: Timestamp::now(),
        version: league.played.len() as u32,
        rounds_completed: league.rounds_completed(),
        standings: league.table(),
    }
}

fn rounds_page(league: &League) -> RoundsPage {
    RoundsPage {
        schema_version: "1.0.0".into(),
        league_id: league.rules.league_id.clone(),
        last_updated: Timestamp::now(),
        rounds: league.schedule(None).map(|schedule| schedule.rounds).unwrap_or_default(),
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
        state: if recorded.is_some() { MatchState::Finished } else { MatchState::WaitingForPlayers },
        referee_id: game.referee().map(String::from),
        result: recorded.map(|recorded| recorded.result.clone()),
        recorded_at: recorded.map(|recorded| recorded.at),
    }
}
