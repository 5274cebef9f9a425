//! What is new in the league, so that it has to be told: the table, the end of a round, the announcement of the next one,
//! and the end of the league. The board (`board.rs`) asks `news` whenever something has happened, and tells everybody to
//! whom such a message may be sent. Whoever adds a message that the manager sends has `news` push it.
//!
//! A table is told after every result, but in a large league one table stands for several results.

use crate::manager::league::League;
use crate::net::client::{About, conversation};
use crate::protocol::{Entry, Kind, Message};
use std::time::{Duration, Instant};

/// How long nothing need be looked at when nothing happens.
pub const IDLE: Duration = Duration::from_secs(60);
/// Up to so many players every result is told with a table of its own. Above, tables are paced, so that telling costs
/// the same however many listen: at least so much time for each player lies between two tables.
const UNPACED: usize = 16;
const PACE_PER_PLAYER: Duration = Duration::from_millis(5);

/// Something that is to be told.
pub struct News {
    /// The message.
    pub message: Message,
    /// Its round and its conversation.
    pub about: About,
    /// Which announcement of a round it is, as the league counts them; 0 for every other message.
    pub announcement: u64,
}

impl News {
    fn new(message: impl Into<Message>, words: &str, round_id: Option<u32>) -> News {
        News {
            message: message.into(),
            about: About {
                conversation_id: conversation(words),
                round_id,
                ..About::default()
            },
            announcement: 0,
        }
    }

    /// Whether agents of this kind are told it: those to whom such a message may be sent.
    pub fn is_for(&self, kind: Kind) -> bool {
        let row = Entry::of_message(self.message.name());
        row.is_some_and(|row| row.is_served_by(kind))
    }
}

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
        let wait = self.wait_for_table(league);
        if wait.is_zero() {
            self.tables = league.tables;
            self.table_at = Some(Instant::now());
            news.push(News::new(league.standings_update(), "standings", None));
        }
        let rounds = league.rounds_completed;
        for round in self.rounds.min(rounds) + 1..=rounds {
            let words = format!("round-{round}-complete");
            news.push(News::new(
                league.round_completed(round),
                &words,
                Some(round),
            ));
        }
        self.rounds = rounds;
        if let Some(round) = league.open_round()
            && league.announcements != self.announcements
        {
            self.announcements = league.announcements;
            let message = league.announcement(round, None);
            if !message.matches.is_empty() {
                let words = format!("round-{round}-announce");
                news.push(News {
                    announcement: league.announcements,
                    ..News::new(message, &words, Some(round))
                });
            }
        }
        let is_over = league.is_over();
        if is_over && !self.is_over {
            let end = league.completed();
            news.extend(end.map(|end| News::new(end, "league-complete", None)));
        }
        self.is_over = is_over;
        (news, if wait.is_zero() { IDLE } else { wait })
    }

    /// How long it is not yet time for a new table: the end of a round and of the league need not wait.
    fn wait_for_table(&self, league: &League) -> Duration {
        if league.tables == self.tables {
            return IDLE;
        }
        let ends_a_round = league.rounds_completed > self.rounds;
        let players = league.members(Kind::Player).len();
        if players <= UNPACED || ends_a_round || league.open_round().is_none() {
            return Duration::ZERO;
        }
        let pace = PACE_PER_PLAYER * players as u32;
        let since = self.table_at.map_or(pace, |at| at.elapsed());
        pace.saturating_sub(since)
    }
}
