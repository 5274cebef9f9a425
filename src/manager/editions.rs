//! What all readers are told alike, written once. The editor follows the league and makes an edition whenever there is
//! something new. Tables are paced: up to a few players every result has its own; above, one stands for many, and the
//! more players the more, so that telling costs the same however many listen. Read next: `notifier.rs`.

use crate::manager::league::{Announcement, League};
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
    /// `Contacts::news` when it was written.
    news: u64,
    /// The table, and how many results are in it.
    pub table: Option<(usize, Arc<Letter>)>,
    /// When it was written.
    table_at: Option<Instant>,
    /// How many rounds are over.
    ended: u32,
    /// The end of each round that is over, as far as somebody may still have to hear of it, by `League::changes` when it
    /// was written: a round with a match that is played again ends again.
    pub rounds: BTreeMap<(u64, u32), Arc<Letter>>,
    /// The newest announcement.
    pub announcement: Announcement,
    /// What it says to players: the open matches.
    pub open: Option<OpenMatches>,
    /// The end of the league.
    pub end: Option<Arc<Letter>>,
}

/// The open matches, for players.
#[derive(Clone)]
pub struct OpenMatches {
    /// The announcement that first said all this: whoever knows that one or a newer one is not told again.
    pub since: Announcement,
    /// The notice, without anybody's token.
    pub letter: Arc<Letter>,
    /// The matches with the tokens of their players.
    matches: Vec<(MatchEntry, [String; 2])>,
}

impl OpenMatches {
    /// What is to be put into a player's copy: the text behind which it goes, and its match token.
    pub fn own(&self, player_id: &str) -> Option<(String, String)> {
        let mine = self.matches.iter().find_map(|(entry, tokens)| {
            let seat = [&entry.player_A_id, &entry.player_B_id]
                .iter()
                .position(|id| *id == player_id)?;
            Some((&entry.match_id, &tokens[seat]))
        });
        let (match_id, token) = mine.filter(|(_, token)| !token.is_empty())?;
        Some((
            format!("\"match_id\":\"{match_id}\","),
            format!("\"match_token\":\"{token}\","),
        ))
    }
}

impl Edition {
    /// What everybody knows already when we start: all rounds that are over but the last, which is told again.
    pub fn known(league: &League) -> Edition {
        Edition {
            ended: league.rounds_completed.saturating_sub(1),
            ..Edition::default()
        }
    }

    /// How many results are in the table.
    fn results(&self) -> usize {
        self.table.as_ref().map_or(0, |(results, _)| *results)
    }

    /// Whether it says something that another one does not.
    pub fn is_news(&self, old: &Edition) -> bool {
        let state = |it: &Edition| {
            (
                it.news,
                it.results(),
                it.ended,
                it.announcement,
                it.end.is_some(),
            )
        };
        state(self) != state(old)
    }

    /// What holds now, as `client` signs it, and whether a table has to wait for its pace. `news` is what
    /// `Contacts::news` counts.
    pub fn successor(&self, league: &League, news: u64, client: &Client) -> (Edition, bool) {
        let (all, players) = (league.members.len(), league.members(Kind::Player).len());
        let (played, rounds, announcement) = (
            league.tables(),
            league.rounds_completed,
            league.newest_announcement(),
        );
        let over = league.progress() == Progress::Completed;
        let mut new = Edition {
            news,
            ended: rounds,
            announcement,
            ..self.clone()
        };
        new.rounds.retain(|(_, round), _| *round <= rounds); // a match of a later one is played again
        let pace = if players <= UNPACED {
            Duration::ZERO
        } else {
            PACE.max(PACE_PER_PLAYER * players as u32)
        };
        let due =
            rounds > self.ended || over || self.table_at.is_none_or(|then| then.elapsed() >= pace);
        if played > self.results() && due {
            let message = league.standings_update().into();
            new.table = Some((
                played,
                compose(client, &message, "standings", None, players),
            ));
            new.table_at = Some(Instant::now());
        }
        for round in self.ended + 1..=rounds {
            let message = league.round_completed(round).into();
            let letter = compose(
                client,
                &message,
                &format!("round-{round}-complete"),
                Some(round),
                all,
            );
            new.rounds.insert((league.changes, round), letter);
        }
        if announcement != self.announcement || news != self.news {
            new.open = self.open_matches(league, players, client);
        }
        if over && self.end.is_none() {
            new.end = league
                .completed()
                .map(|end| compose(client, &end.into(), "league-complete", None, all));
        }
        let waits = new.results() < played;
        (new, waits)
    }

    /// The announcement for players; none while no match has a referee.
    fn open_matches(
        &self,
        league: &League,
        players: usize,
        client: &Client,
    ) -> Option<OpenMatches> {
        let open = league.announcement(league.open_round()?, None);
        let tokens = league
            .assigned(open.round_id)
            .map(|(_, given)| given.tokens.clone());
        let matches: Vec<_> = open.matches.iter().cloned().zip(tokens).collect();
        if matches.is_empty() {
            return None;
        }
        if let Some(old) = self.open.as_ref().filter(|old| old.matches == matches) {
            return Some(old.clone());
        }
        let known = self
            .open
            .as_ref()
            .filter(|old| matches.iter().all(|entry| old.matches.contains(entry)));
        let since = known.map_or(league.newest_announcement(), |old| old.since);
        let (round, message): (u32, Message) = (open.round_id, RoundAnnouncement::into(open));
        let letter = compose(
            client,
            &message,
            &format!("round-{round}-announce"),
            Some(round),
            players,
        );
        Some(OpenMatches {
            since,
            letter,
            matches,
        })
    }
}

fn compose(
    client: &Client,
    message: &Message,
    words: &str,
    round_id: Option<u32>,
    recipients: usize,
) -> Arc<Letter> {
    let about = About {
        conversation_id: conversation(words),
        round_id,
        ..About::default()
    };
    Arc::new(client.compose(message, &about, recipients))
}
