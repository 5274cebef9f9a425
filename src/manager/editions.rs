//! What all readers are told alike, written once. The editor follows the league and makes an edition whenever there is
//! something new. Tables are paced: up to a few players every result has its own; above, one stands for many, and the
//! more players the more, so that telling costs the same however many listen. Read next: `notifier.rs`.

use crate::manager::league::League;
use crate::net::client::{About, Client, Letter, conversation};
use crate::protocol::{Kind, MatchEntry, Message, Progress, RoundAnnouncement};
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Up to so many players every result has a table of its own.
const UNPACED: usize = 16;
/// Above, between two tables: so much for each player, and at least this.
pub const PACE: Duration = Duration::from_millis(100);
const PACE_PER_PLAYER: Duration = Duration::from_millis(5);

/// What all readers are told alike, as it holds now.
#[derive(Default, Clone)]
pub struct Edition {
    /// Counts editions.
    pub number: u64,
    /// `Contacts::news` when it was written.
    news: u64,
    /// The table, and how many results are in it.
    pub table: Option<(usize, Arc<Letter>)>,
    /// How many rounds are over.
    ended: u32,
    /// The end of each round that is over, as far as somebody may still have to hear of it, by the edition that it was
    /// written for: a round with a match that is played again ends again.
    pub rounds: BTreeMap<(u64, u32), Arc<Letter>>,
    /// The number of the newest announcement, `League::announcements`.
    pub announcement: u64,
    /// The announcement as players are told it: the open matches.
    pub open: Option<OpenMatches>,
    /// The end of the league.
    pub end: Option<Arc<Letter>>,
}

/// The open matches, for players.
#[derive(Clone)]
pub struct OpenMatches {
    /// The number of the announcement that first said all this.
    pub version: u64,
    /// The notice, without anybody's token.
    pub letter: Arc<Letter>,
    /// The matches with the tokens of their players.
    matches: Vec<(MatchEntry, [String; 2])>,
}

impl OpenMatches {
    /// What is to be put into a player's copy: the text behind which it goes, and its match token.
    pub fn own(&self, player_id: &str) -> Option<(String, String)> {
        let mine = self.matches.iter().find_map(|(entry, tokens)| {
            let seat = [&entry.player_A_id, &entry.player_B_id].iter().position(|id| *id == player_id)?;
            Some((&entry.match_id, &tokens[seat]))
        });
        let (match_id, token) = mine.filter(|(_, token)| !token.is_empty())?;
        Some((format!("\"match_id\":\"{match_id}\","), format!("\"match_token\":\"{token}\",")))
    }
}

impl Edition {
    /// How many results are in the table.
    fn results(&self) -> usize {
        self.table.as_ref().map_or(0, |(results, _)| *results)
    }

    /// Whether it says something that another one does not.
    pub fn is_news(&self, old: &Edition) -> bool {
        let state = |it: &Edition| (it.news, it.results(), it.ended, it.announcement, it.end.is_some());
        state(self) != state(old)
    }
}

/// Makes editions.
pub struct Editor<'a> {
    /// Who signs.
    pub client: &'a Client,
    /// When the last table was made.
    pub table_at: Option<Instant>,
}

impl Editor<'_> {
    /// What holds now, and whether a table has to wait for its pace. `news` is what `Contacts::news` counts.
    pub fn make(&mut self, league: &League, news: u64, old: &Edition) -> (Edition, bool) {
        let (all, players) = (league.members.len(), league.members(Kind::Player).len());
        let (played, rounds, announcement) = (league.tables(), league.rounds_completed(), league.announcements());
        let over = league.progress() == Progress::Completed;
        let mut new = Edition { number: old.number + 1, news, ended: rounds, announcement, ..old.clone() };
        new.rounds.retain(|(_, round), _| *round <= rounds); // a match of a later one is played again
        // After a start of ours the last that is over is told again.
        let known = if old.number == 0 { rounds.saturating_sub(1) } else { old.ended.min(rounds) };
        let pace = if players <= UNPACED { Duration::ZERO } else { PACE.max(PACE_PER_PLAYER * players as u32) };
        let due = rounds > known || over || self.table_at.is_none_or(|then| then.elapsed() >= pace);
        if played > new.results() && due {
            let message = league.standings_update().into();
            new.table = Some((played, self.compose(&message, "standings", None, players)));
            self.table_at = Some(Instant::now());
        }
        for round in known + 1..=rounds {
            let message = league.round_completed(round).into();
            let letter = self.compose(&message, &format!("round-{round}-complete"), Some(round), all);
            new.rounds.insert((new.number, round), letter);
        }
        if announcement != old.announcement || news != old.news {
            new.open = self.open_matches(league, old.open.as_ref(), players);
        }
        if over && new.end.is_none() {
            let completed = league.completed().map(Message::from);
            new.end = completed.map(|message| self.compose(&message, "league-complete", None, all));
        }
        let waits = new.results() < played;
        (new, waits)
    }

    /// The announcement for players. Where nothing in it is new it has the version of the last one: whoever knows that
    /// is not told again.
    fn open_matches(&self, league: &League, old: Option<&OpenMatches>, players: usize) -> Option<OpenMatches> {
        let open = league.public_announcement(league.open_round()?);
        let games = league.assigned(open.round_id);
        let tokens = games.map(|game| game.assignment.as_ref().map(|it| it.tokens.clone()).unwrap_or_default());
        if open.matches.is_empty() {
            return None; // none has a referee yet
        }
        let matches: Vec<_> = open.matches.iter().cloned().zip(tokens).collect();
        if let Some(old) = old.filter(|old| old.matches == matches) {
            return Some(old.clone());
        }
        let known = old.filter(|old| matches.iter().all(|entry| old.matches.contains(entry)));
        let version = known.map_or(league.announcements(), |old| old.version);
        let (round, message): (u32, Message) = (open.round_id, RoundAnnouncement::into(open));
        let letter = self.compose(&message, &format!("round-{round}-announce"), Some(round), players);
        Some(OpenMatches { version, letter, matches })
    }

    fn compose(&self, message: &Message, words: &str, round_id: Option<u32>, recipients: usize) -> Arc<Letter> {
        let about = About { conversation_id: conversation(words), round_id, ..About::default() };
        Arc::new(self.client.compose(message, &about, recipients))
    }
}
