//! What is new in the league, so that it has to be told: the table, the end of a round, the announcement of the next one,
//! and the end of the league. The board (`board.rs`) asks here whenever something has happened, and tells everybody.
//!
//! A table is told after every result, but in a large league one table stands for several results.

use crate::manager::league::League;
use crate::protocol::{Kind, Message, Progress};
use std::time::{Duration, Instant};

/// How long nothing need be looked at when nothing happens.
pub const IDLE: Duration = Duration::from_secs(60);
/// Up to so many players every result is told with a table of its own. Above, tables are paced, so that telling costs
/// the same however many listen: at least so much time for each player lies between two tables.
const UNPACED: usize = 16;
const PACE_PER_PLAYER: Duration = Duration::from_millis(5);

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Subject {
    /// The table.
    Table,
    /// The end of a round.
    RoundOver,
    /// The open matches of a round, and the number of this announcement.
    Announcement(u32, u64),
    /// The league's end, after so many changes of the table.
    LeagueOver(u64),
}

/// Tables are for players; the rest is for everybody.
pub fn is_for(subject: Subject, kind: Kind) -> bool {
    subject != Subject::Table || kind == Kind::Player
}

/// What is to be put up: what it is about, the message, and the words and the round of its conversation.
pub type News = (Subject, Message, String, Option<u32>);

/// How far the league has been posted.
#[derive(Default)]
pub struct Posted {
    tables: u64,
    table_at: Option<Instant>,
    /// How many rounds are known to be over.
    pub rounds: u32,
    announcements: u64,
    is_over: bool,
}

impl Posted {
    /// What is new in the league since it was last posted, and when to look again at the latest.
    pub fn news(&mut self, league: &League) -> (Vec<News>, Duration) {
        let mut news = Vec::new();
        let next_look = self.table(league, &mut news);
        let rounds = league.rounds_completed;
        for round in self.rounds.min(rounds) + 1..=rounds {
            let message = league.round_completed(round).into();
            let words = format!("round-{round}-complete");
            news.push((Subject::RoundOver, message, words, Some(round)));
        }
        self.rounds = rounds;
        if let Some(round) = league.open_round()
            && league.announcements != self.announcements
        {
            self.announcements = league.announcements;
            let message = league.announcement(round, None);
            if !message.matches.is_empty() {
                let subject = Subject::Announcement(round, league.announcements);
                let words = format!("round-{round}-announce");
                news.push((subject, message.into(), words, Some(round)));
            }
        }
        let is_over = league.progress() == Progress::Completed;
        if let Some(end) = league.completed().filter(|_| is_over && !self.is_over) {
            news.push((
                Subject::LeagueOver(league.tables),
                end.into(),
                "league-complete".into(),
                None,
            ));
        }
        self.is_over = is_over;
        (news, next_look)
    }

    /// The table, if there is a new one and it is time for it; else how long until then.
    fn table(&mut self, league: &League, news: &mut Vec<News>) -> Duration {
        if league.tables == self.tables {
            return IDLE;
        }
        let players = league.members(Kind::Player).len();
        let pace = match players {
            0..=UNPACED => Duration::ZERO,
            _ => PACE_PER_PLAYER * players as u32,
        };
        let since = self.table_at.map_or(pace, |at| at.elapsed());
        let ends_a_round = league.rounds_completed > self.rounds;
        if since < pace && !ends_a_round && league.open_round().is_some() {
            return pace - since;
        }
        let message = league.standings_update().into();
        news.push((Subject::Table, message, "standings".into(), None));
        self.tables = league.tables;
        self.table_at = Some(Instant::now());
        IDLE
    }
}
