//! The board: what is told to whom, and what was heard from them.
//!
//! There is one growing list of notices. The manager's main thread has the board post what is new
//! in the league at the end of the list (`news.rs`); a newer table or announcement takes the older
//! one down. Every agent has a thread that reads on from the agent's own place in the list and
//! delivers. So everybody hears things in the order in which they happened, a slow or dead agent
//! delays nobody, and nothing outdated is sent. Whoever registers again is put back to what still
//! matters.
//!
//! A notice is written once, as text; only an announcement is written anew for each referee. Each
//! delivery puts before it what this copy alone says: its time and its reader's tokens. What was
//! heard from an agent is its `Contact` (`contact.rs`). Nothing on the board must survive a
//! restart: the league says what is to be told.

use crate::manager::contact::{Contact, Heard, RefereeState, Waiting, refusal};
use crate::manager::journal::Store;
use crate::manager::league::{League, Member};
use crate::manager::news::{News, Posted};
use crate::net::client::Client;
use crate::net::letter::{Bulletin, MAX_NOTICE, Peer};
use crate::net::retry::{CallError, pause};
use crate::net::sync::{lock, spawn};
use crate::program::Program;
use crate::program::config::RetryPolicy;
use crate::protocol::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a reader sleeps at most while it has nothing to do.
const IDLE: Duration = Duration::from_secs(60);
/// In the lobby nothing hangs on a referee yet: it is pinged so many times more rarely.
const LOBBY: u32 = 5;
/// How long referees wait at most until all players have been told of a round.
const PLAYERS_TOLD: Duration = Duration::from_secs(1);

/// A notice on the board. All notices are numbered as they are put up, from 1.
struct Notice {
    number: u64,
    since: Instant,
    news: News,
    bulletin: Bulletin,
}

#[derive(Default)]
struct Inside {
    posted: Posted,
    notices: Vec<Arc<Notice>>,
    heard: Heard,
    /// The agents that have a thread.
    readers: BTreeMap<String, Kind>,
    /// The number of the newest announcement that referees may be told.
    released: u64,
}

/// The board, and what was heard from its readers. One lock around both; it is never held across a
/// call.
pub struct Board {
    store: Arc<Store>,
    client: Arc<Client>,
    policy: RetryPolicy,
    /// How long one attempt may take.
    limit: Duration,
    inside: Mutex<Inside>,
    /// Rung when a reader has something to do.
    bell: Condvar,
}

impl Board {
    /// An empty board for the league in `store`.
    pub fn new(store: &Arc<Store>, program: &Program) -> Arc<Board> {
        let inside = Inside {
            posted: store.read(Posted::until),
            ..Inside::default()
        };
        Arc::new(Board {
            store: Arc::clone(store),
            client: Arc::clone(&program.client),
            policy: program.config.system.retry_policy,
            limit: program.config.generic_limit(),
            inside: Mutex::new(inside),
            bell: Condvar::new(),
        })
    }

    /// Posts what is new in the league, and sees to it that every member has a thread.
    pub fn post(self: &Arc<Self>) {
        let news = self.store.read(|league| {
            let inside = &mut *lock(&self.inside);
            for Member { id, kind, .. } in league.members.values() {
                if !inside.readers.contains_key(id) && self.start_reader(id, *kind) {
                    inside.readers.insert(id.clone(), *kind);
                }
            }
            inside.posted.news(league)
        });
        for news in news {
            let bulletin = self.client.bulletin(&news.message, &news.about);
            let is_reader = |kind: &&Kind| news.is_for(**kind);
            let readers = lock(&self.inside)
                .readers
                .values()
                .filter(is_reader)
                .count();
            let facts = vec![("recipients", json!(readers))];
            self.client.note_sent(&bulletin.packet, facts);
            self.put_up(news, bulletin);
        }
    }

    fn start_reader(self: &Arc<Self>, id: &str, kind: Kind) -> bool {
        let (board, id) = (Arc::clone(self), id.to_string());
        spawn("reader", move || board.serve(&id, kind))
    }

    /// Puts a notice at the end of the list, and takes down what it makes outdated: the last of its
    /// sort, but no end of a round.
    fn put_up(&self, news: News, bulletin: Bulletin) {
        let notices = &mut lock(&self.inside).notices;
        let number = notices.last().map_or(1, |last| last.number + 1);
        if !matches!(news.message, Message::RoundCompleted(_)) {
            let sort = discriminant(&news.message);
            notices.retain(|old| discriminant(&old.news.message) != sort);
        }
        notices.push(Arc::new(Notice {
            number,
            since: Instant::now(),
            news,
            bulletin,
        }));
        self.bell.notify_all();
    }

    /// One agent's thread: reads and tells, for ever.
    fn serve(&self, id: &str, kind: Kind) {
        loop {
            let notice = self.next(id, kind);
            let tell = || self.tell(id, kind, notice.as_deref());
            // a panic is reported by the hook; the notice is told again
            let _ = catch_unwind(AssertUnwindSafe(tell));
        }
    }

    /// Waits until an agent is to be told something, and says what. Without a notice the agent is
    /// to be pinged.
    fn next(&self, id: &str, kind: Kind) -> Option<Arc<Notice>> {
        let mut inside = lock(&self.inside);
        loop {
            let Inside {
                notices,
                heard,
                released,
                ..
            } = &mut *inside;
            let contact = heard.contacts.entry(id.into()).or_default();
            let mut patience = contact.begin_anew(|| outdated(notices));
            if patience.is_zero() {
                let is_next = |notice: &&Arc<Notice>| {
                    let may_hear = kind == Kind::Player
                        || !notice.news.is_announcement()
                        || notice.number <= *released;
                    notice.news.is_for(kind) && may_hear
                };
                let read = notices.partition_point(|notice| notice.number <= contact.read);
                if let Some(notice) = notices[read..].iter().find(is_next) {
                    return Some(Arc::clone(notice));
                }
                let is_watched = kind == Kind::Referee || contact.trouble.is_some();
                patience = match contact.called {
                    None => return None,
                    Some(at) if is_watched && newest(notices, LeagueCompleted::NAME).is_none() => {
                        let rarely = if notices.is_empty() { LOBBY } else { 1 };
                        (self.policy.base_delay_sec * rarely).saturating_sub(at.elapsed())
                    }
                    Some(_) => IDLE,
                };
                if patience.is_zero() {
                    return None;
                }
            }
            let rung = self.bell.wait_timeout(inside, patience);
            inside = rung.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells an agent a notice, or pings it, as often as that is worth it, and notes how it went.
    fn tell(&self, id: &str, kind: Kind, notice: Option<&Notice>) {
        let was_in_trouble = self.contact(id).trouble.is_some();
        let message = notice.map(|notice| &notice.news.message);
        let is_worth_more = |error: &CallError| match message {
            Some(Message::LeagueCompleted(_)) => error.is_silence(),
            None | Some(Message::LeagueStandingsUpdate(_)) => false,
            _ if was_in_trouble => false, // the dead must not pile up work
            // That a referee is gone, or refuses its matches, is the round loop's business, at
            // once.
            _ if kind == Kind::Referee => matches!(error, CallError::Late(_) | CallError::Ours(_)),
            _ => error.is_silence(),
        };
        let mut begun = Instant::now();
        let result = self.policy.retry(pause, is_worth_more, || {
            begun = Instant::now();
            self.attempt(id, kind, notice)
        });
        let is_announcement = notice.is_some_and(|notice| notice.news.is_announcement());
        let mut is_in_trouble = false;
        self.update(id, |contact| {
            contact.read = notice.map_or(contact.read, |notice| notice.number);
            contact.note_call(result.as_ref().err());
            is_in_trouble = contact.trouble.is_some();
            if result.is_ok() && (notice.is_some() || contact.answers_in.is_none()) {
                contact.answers_in = Some(begun.elapsed().as_millis() as u32);
            }
            if is_announcement
                && kind == Kind::Referee
                && let Some(why) = refusal(&result)
            {
                let why = format!("{why}, so it refuses its matches");
                contact.referee = RefereeState::Refusing(why);
            }
        });
        let is_end = matches!(message, Some(Message::LeagueCompleted(_)));
        if is_announcement || is_end || is_in_trouble != was_in_trouble {
            self.store.nudge(); // the manager may wait for that
        }
    }

    /// One attempt, to the agent as it is registered at this moment: it may have moved since the
    /// last one. A referee has its own copy of an announcement, and a player has the token of its
    /// match beside it.
    fn attempt(&self, id: &str, kind: Kind, notice: Option<&Notice>) -> Result<Value, CallError> {
        let reached = |league: &League| {
            let member = league.members.get(id)?;
            Some((member.endpoint.clone(), member.token.clone()))
        };
        let Some((endpoint, token)) = self.store.read(reached) else {
            return Ok(Value::Null); // it was removed before the start
        };
        let to = Peer {
            kind,
            id: id.into(),
            endpoint,
            max: MAX_NOTICE,
            limit: self.limit,
        };
        let Some(Notice { news, bulletin, .. }) = notice else {
            return self.client.ping(&to, &token).map(|()| Value::Null);
        };
        let is_over = || self.store.read(League::is_over);
        if matches!(news.message, Message::LeagueCompleted(_)) && !is_over() {
            // a match is played again: whoever is back must not leave once more
            return Ok(Value::Null);
        }
        let mut own = json!({"auth_token": token});
        let Message::RoundAnnouncement(open) = &news.message else {
            return self.client.deliver(&to, bulletin, own);
        };
        if kind == Kind::Referee {
            let copy = |league: &League| league.announcement(open.round_id, Some(id));
            let copy = self.store.read(copy).into();
            let bulletin = self.client.bulletin(&copy, &news.about);
            return self.client.deliver(&to, &bulletin, own);
        }
        let match_token = |league: &League| league.match_token(open.round_id, id);
        if let Some(token) = self.store.read(match_token) {
            own["match_token"] = token.into();
        }
        self.client.deliver(&to, bulletin, own)
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Contact)) {
        let heard = &mut lock(&self.inside).heard;
        let contact = heard.contacts.entry(id.into()).or_default();
        let mut before = contact.clone();
        change(contact);
        before.called = contact.called; // that an agent answers as it did before is no news
        let is_new = *contact != before;
        heard.changes += u64::from(is_new);
    }

    /// What is known of an agent.
    pub fn contact(&self, id: &str) -> Contact {
        self.heard(|heard| heard.of(id))
    }

    /// Counts changes of what is known: whoever waits for news compares this.
    pub fn changes(&self) -> u64 {
        self.heard(|heard| heard.changes)
    }

    /// Looks at all that is known of the agents.
    pub fn heard<T>(&self, ask: impl FnOnce(&Heard) -> T) -> T {
        ask(&lock(&self.inside).heard)
    }

    /// An agent has registered, perhaps again: it is alive, and is told anew what still matters.
    pub fn note_registered(&self, id: &str) {
        self.update(id, |contact| {
            contact.referee = RefereeState::Alive;
            contact.is_here = true;
            contact.called = None;
        });
        self.tell_anew(id);
    }

    /// What an agent was told is to be told once more.
    pub fn tell_anew(&self, id: &str) {
        self.update(id, |contact| contact.starts_anew = true);
        self.bell.notify_all();
    }

    /// How a referee stands from now on.
    pub fn note_referee(&self, id: &str, state: RefereeState) {
        self.update(id, |contact| contact.referee = state);
    }

    /// An agent is to be called once more, now.
    pub fn ask_again(&self, id: &str) {
        self.update(id, |contact| contact.called = None);
        self.bell.notify_all();
    }

    /// The referees that may be given matches: those that are alive; if there are none, those that
    /// are overdue.
    pub fn usable_referees(&self, league: &League) -> Vec<String> {
        let those = |is_wanted: fn(&RefereeState) -> bool| {
            let mut ids = league.ids(Kind::Referee);
            ids.retain(|id| is_wanted(&self.contact(id).referee));
            ids
        };
        let alive = those(|it| *it == RefereeState::Alive);
        if alive.is_empty() {
            those(|it| matches!(it, RefereeState::Overdue(_)))
        } else {
            alive
        }
    }

    /// Lets referees be told the newest announcement, if all players that answer have been told it,
    /// or it has been up for so long that they should have.
    pub fn release(&self, league: &League) {
        let mut inside = lock(&self.inside);
        let Some(newest) = newest(&inside.notices, RoundAnnouncement::NAME) else {
            return;
        };
        let is_told =
            |id: &String| inside.heard.of(id).trouble.is_some() || inside.has_heard(id, newest);
        let number = newest.number;
        let is_late = newest.since.elapsed() >= PLAYERS_TOLD;
        if number > inside.released && (is_late || league.ids(Kind::Player).iter().all(is_told)) {
            inside.released = number;
            self.bell.notify_all();
        }
    }

    /// Whether an agent has been told the newest announcement, or it could not be delivered.
    pub fn has_heard_announcement(&self, id: &str) -> bool {
        let inside = lock(&self.inside);
        let newest = newest(&inside.notices, RoundAnnouncement::NAME);
        newest.is_some_and(|newest| inside.has_heard(id, newest))
    }

    /// Whether the end of the league has been posted, and all members have been told.
    pub fn has_told_the_end(&self, league: &League) -> bool {
        let inside = lock(&self.inside);
        let end = newest(&inside.notices, LeagueCompleted::NAME);
        end.is_some_and(|end| league.members.keys().all(|id| inside.has_heard(id, end)))
    }

    /// Notes what the league waits for.
    pub fn note_waiting(&self, waiting: Waiting) {
        let heard = &mut lock(&self.inside).heard;
        heard.changes += u64::from(heard.waiting != waiting);
        heard.waiting = waiting;
    }
}

impl Inside {
    /// Whether an agent has been told that notice, or it could not be delivered.
    fn has_heard(&self, id: &str, notice: &Notice) -> bool {
        let contact = self.heard.contacts.get(id);
        contact.is_some_and(|it| !it.starts_anew && it.read >= notice.number)
    }
}

/// The newest notice of a sort.
fn newest<'a>(notices: &'a [Arc<Notice>], name: &str) -> Option<&'a Notice> {
    let mut newest_first = notices.iter().rev().map(|notice| &**notice);
    newest_first.find(|notice| notice.news.message.name() == name)
}

/// The number of the last notice that does not matter any more to somebody who has to be told
/// everything else: the one before the last round's end, or before the table if that is older.
fn outdated(notices: &[Arc<Notice>]) -> u64 {
    let before = |name| newest(notices, name).map_or(0, |notice| notice.number - 1);
    before(RoundCompleted::NAME).min(before(LeagueStandingsUpdate::NAME))
}
