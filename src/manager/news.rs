//! What is new in the league, so that it has to be told: the table, the end of a round, the
//! announcement of the next one, and the end of the league. The board (`board.rs`) asks `news`
//! whenever something may have happened, and tells everybody to whom such a message may be sent.
//! Whoever adds a message that the manager sends has `news` push it.
//!
//! A table is told after every result, but in a large league one table stands for several results.

use crate::manager::league::League;
use crate::net::letter::{About, conversation};
use crate::protocol::{Entry, Kind, Message};
use std::time::{Duration, Instant};

/// Up to so many players every result is told with a table of its own. Above, tables are paced, so
/// that telling costs the same however many listen: at least so much time for each player lies
/// between two tables.
const UNPACED: usize = 16;
const PACE_PER_PLAYER: Duration = Duration::from_millis(5);

/// Something that is to be told.
pub struct News {
    /// The message.
    pub message: Message,
    /// Its round and its conversation.
    pub about: About,
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
        }
    }

    /// Whether it announces a round: then referees are told later than players.
    pub fn is_announcement(&self) -> bool {
        matches!(self.message, Message::RoundAnnouncement(_))
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
    rounds: u32,
    announcements: u64,
    is_over: bool,
}

impl Posted {
    /// Nothing has been posted yet; of the rounds that are over already only the last is to be.
    pub fn until(league: &League) -> Posted {
        Posted {
            rounds: league.rounds_completed.saturating_sub(1),
            ..Posted::default()
        }
    }

    /// What is new in the league since it was last posted.
    pub fn news(&mut self, league: &League) -> Vec<News> {
        let mut news = Vec::new();
        if self.is_time_for_table(league) {
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
                news.push(News::new(message, &words, Some(round)));
            }
        }
        let is_over = league.is_over();
        if is_over && !self.is_over {
            let end = league.completed();
            news.extend(end.map(|end| News::new(end, "league-complete", None)));
        }
        self.is_over = is_over;
        news
    }

    /// Whether a new table is to be told now: the end of a round and of the league need not wait.
    fn is_time_for_table(&self, league: &League) -> bool {
        if league.tables == self.tables {
            return false;
        }
        let ends_a_round = league.rounds_completed > self.rounds;
        let players = league.members(Kind::Player).len();
        let pace = PACE_PER_PLAYER * players as u32;
        players <= UNPACED
            || ends_a_round
            || league.open_round().is_none()
            || self.table_at.is_none_or(|at| at.elapsed() >= pace)
    }
}
