//! What is told, to whom, and what was heard. There is one list, the board. Notices are posted at its end; a newer table
//! or announcement takes the older one down. Every agent has a thread that reads on from the agent's own place and
//! delivers. So everybody hears things in the order in which they happened, a slow or dead agent delays nobody, nothing
//! outdated is sent, and whoever registers again is put back to what still matters. Read next: `rounds.rs`.

use crate::manager::journal::Store;
use crate::manager::league::{Announcement, League};
use crate::net::client::{About, Bulletin, Client, MAX_NOTICE, Peer, conversation, ok};
use crate::net::retry::{CallError, RetryPolicy, SHOWN, pause, retry};
use crate::net::sync::{lock, spawn};
use crate::protocol::{
    Kind, LeagueError, MatchEntry, Message, Progress, RoundAnnouncement, StartMatch,
};
use crate::wire::{Endpoint, Wire, cut};
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Up to so many players every result has a table of its own; above, tables are paced, so that telling costs the same
/// however many listen: so much time for each player lies between two.
const UNPACED: usize = 16;
const PACE_PER_PLAYER: Duration = Duration::from_millis(5);
/// How often it is looked whether a table is due, and whether somebody is new.
const LOOK: Duration = Duration::from_millis(100);

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Table,
    RoundOver,
    /// The open matches of a round: each reader has a copy of its own, made when it is told.
    Announcement(u32, Announcement),
    End,
}

/// A notice on the board.
struct Notice {
    about: Subject,
    message: Message,
    envelope: About,
}

/// Whether a referee is given matches, and keeps those that it has.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Standing {
    /// It answers, or has not been asked yet.
    #[default]
    Alive,
    /// Nobody is there; it counts again when it answers.
    Lost,
    /// It answered an assignment with this error; it counts again when it registers again or reports.
    Refusing(String),
    /// It has not reported in its time: it counts only if nobody else is left, until it registers again or reports.
    Overdue,
}

/// What is known of one agent beside its registration. Nothing in it must survive.
#[derive(Debug, Clone, Default)]
pub struct Contact {
    /// Why the last call failed, in words; none where it did not.
    pub trouble: Option<String>,
    /// A referee's.
    pub standing: Standing,
    /// How long its last answer took, in milliseconds.
    pub answers_in: Option<u32>,
    /// Whether it has registered since this program runs.
    pub is_here: bool,
    /// Whether it is to be called at once.
    pub asked: bool,
    /// The newest announcement that it was told, or that could not be delivered.
    pub announced: Announcement,
    /// Whether it starts again with what still matters.
    anew: bool,
    /// The notice that it reads next.
    place: usize,
    /// The matches that it was announced.
    matches: Vec<MatchEntry>,
    called: Option<Instant>,
    has_thread: bool,
}

#[derive(Default)]
struct Inside {
    /// Those that were taken down leave an empty place.
    notices: Vec<Option<Arc<Notice>>>,
    contacts: BTreeMap<String, Contact>,
    /// The newest announcement that referees may be told.
    released: Announcement,
    /// What a league that has started waits for, if it does not go on.
    waiting: Option<String>,
    changes: u64,
}

/// How far the league has been posted.
#[derive(Default)]
struct Posted {
    tables: usize,
    table_at: Option<Instant>,
    rounds: u32,
    announcement: Announcement,
    end: bool,
}

/// The board, and what was heard of its readers. One lock around both; never held across a call.
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
    /// Tells from now on what happens in `store`; of the rounds that are over only the last.
    pub fn start(
        store: &Arc<Store>,
        client: &Arc<Client>,
        policy: RetryPolicy,
        limit: Duration,
    ) -> Arc<Board> {
        let (store, client) = (Arc::clone(store), Arc::clone(client));
        Arc::new(Board {
            store,
            client,
            policy,
            limit,
            inside: Mutex::default(),
            bell: Condvar::new(),
        })
    }

    /// Has a thread follow the league and post what is new.
    pub fn follow(self: &Arc<Self>) {
        let here = Arc::clone(self);
        let mut posted = Posted {
            rounds: here.store.read(|it| it.rounds_completed.saturating_sub(1)),
            ..Posted::default()
        };
        spawn("board", move || {
            loop {
                let changes = here.store.read(|league| league.changes);
                let _ = catch_unwind(AssertUnwindSafe(|| here.post(&mut posted))); // a panic is reported by the hook
                here.store.wait(LOOK, |league| league.changes != changes);
            }
        });
    }

    /// Posts what is new, and sees to it that every member has a thread.
    fn post(self: &Arc<Self>, posted: &mut Posted) {
        let (members, news) = self.store.read(|league| {
            let members: Vec<_> = league
                .members
                .values()
                .map(|member| (member.id.clone(), member.kind))
                .collect();
            (members, news(league, posted))
        });
        for (id, kind) in &members {
            let (here, reader, kind) = (Arc::clone(self), id.clone(), *kind);
            let has_thread =
                self.contact(id).has_thread || spawn("reader", move || here.serve(&reader, kind));
            self.update(id, |contact| contact.has_thread = has_thread);
        }
        for (about, words, round_id, message) in news {
            let envelope = About {
                conversation_id: conversation(&words),
                round_id,
                ..About::default()
            };
            let readers = members
                .iter()
                .filter(|(_, kind)| about != Subject::Table || *kind == Kind::Player)
                .count();
            self.client.note_to_many(&message, &envelope, readers);
            let mut inside = lock(&self.inside);
            let same = |old: &Arc<Notice>| match (old.about, about) {
                (Subject::Table, Subject::Table)
                | (Subject::Announcement(..), Subject::Announcement(..)) => true,
                _ => false,
            };
            inside
                .notices
                .iter_mut()
                .for_each(|place| drop(place.take_if(|old| same(old))));
            inside.notices.push(Some(Arc::new(Notice {
                about,
                message,
                envelope,
            })));
        }
        self.bell.notify_all();
    }

    /// One agent's thread: reads and tells, for ever.
    fn serve(&self, id: &str, kind: Kind) {
        loop {
            let (next, notice) = self.next(id, kind);
            let before = self.contact(id);
            let told = catch_unwind(AssertUnwindSafe(|| self.tell(id, kind, notice.as_deref())));
            drop(told); // a panic is reported by the hook
            let was = before.trouble.is_some();
            self.update(id, |contact| contact.place = next);
            if was != self.contact(id).trouble.is_some()
                || matches!(
                    notice.as_deref().map(|it| it.about),
                    Some(Subject::Announcement(..) | Subject::End)
                )
            {
                self.store.nudge(); // the round loop may wait for that
            }
        }
    }

    /// What an agent is told next, and its place then; nothing: it is to be pinged. Waits until there is something.
    fn next(&self, id: &str, kind: Kind) -> (usize, Option<Arc<Notice>>) {
        let mut inside = lock(&self.inside);
        loop {
            let Inside {
                notices,
                contacts,
                released,
                ..
            } = &mut *inside;
            let contact = contacts.entry(id.into()).or_default();
            if std::mem::take(&mut contact.anew) {
                let ends = notices
                    .iter()
                    .rposition(|it| it.as_ref().is_some_and(|it| it.about == Subject::RoundOver));
                let table = notices
                    .iter()
                    .position(|it| it.as_ref().is_some_and(|it| it.about == Subject::Table));
                (contact.place, contact.matches) = (
                    table.unwrap_or(usize::MAX).min(ends.unwrap_or(0)),
                    Vec::new(),
                );
                return (contact.place, None);
            }
            let is_for_it = |notice: &&Arc<Notice>| match notice.about {
                Subject::Table => kind == Kind::Player,
                Subject::Announcement(_, number) => kind == Kind::Player || number <= *released,
                _ => true,
            };
            let unread = notices.iter().enumerate().skip(contact.place);
            if let Some((place, notice)) = unread
                .filter_map(|(n, it)| Some((n, it.as_ref().filter(is_for_it)?)))
                .next()
            {
                return (place + 1, Some(Arc::clone(notice)));
            }
            let is_over = notices
                .last()
                .is_some_and(|it| it.as_ref().is_some_and(|it| it.about == Subject::End));
            let watched = (kind == Kind::Referee || contact.trouble.is_some()) && !is_over;
            if contact.asked
                || watched
                    && contact
                        .called
                        .is_none_or(|at| at.elapsed() >= self.policy.base_delay)
            {
                return (contact.place, None);
            }
            let waited = self.bell.wait_timeout(inside, self.policy.base_delay);
            inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tells an agent a notice, or pings it, as often as it is worth it, and notes how that went.
    fn tell(&self, id: &str, kind: Kind, notice: Option<&Notice>) {
        let before = self.contact(id);
        let worth_it = |error: &CallError| match notice.map(|notice| notice.about) {
            Some(Subject::End) => true,
            None | Some(Subject::Table) => false,
            _ if before.trouble.is_some() => false, // the dead must not pile up work
            _ => kind == Kind::Player || !error.is_absence(), // that a referee is gone is the round loop's business at once
        };
        let (mut begun, mut known) = (Instant::now(), before.matches.clone());
        let result = retry(
            &self.policy,
            pause,
            |error: &CallError| error.is_silence() && worth_it(error),
            || {
                begun = Instant::now();
                self.attempt(id, notice, &mut known)
            },
        );
        let silent = result
            .as_ref()
            .err()
            .filter(|error| error.is_silence() && !error.is_ours());
        self.update(id, |contact| {
            (contact.called, contact.asked, contact.matches) = (Some(Instant::now()), false, known);
            contact.trouble = silent.map(CallError::explain);
            match &contact.standing {
                Standing::Alive if silent.is_some_and(CallError::is_absence) => {
                    contact.standing = Standing::Lost
                }
                Standing::Lost if silent.is_none() => contact.standing = Standing::Alive,
                _ => {}
            }
            if let Some(Subject::Announcement(_, number)) = notice.map(|notice| notice.about) {
                contact.announced = number;
            }
            if result.is_ok() {
                contact.answers_in = Some(begun.elapsed().as_millis() as u32);
            }
        });
    }

    /// One attempt, to the agent as it is registered at this moment: it may have moved since the last one.
    fn attempt(
        &self,
        id: &str,
        notice: Option<&Notice>,
        known: &mut Vec<MatchEntry>,
    ) -> Result<(), CallError> {
        let found = self.store.read(|league| {
            let member = league.members.get(id)?;
            let to = Peer {
                kind: member.kind,
                id: id.into(),
                endpoint: member.endpoint.clone(),
                max: MAX_NOTICE,
            };
            let copy = match notice?.about {
                Subject::Announcement(round, _) => Some(league.announcement(round, Some(member))),
                _ => None,
            };
            Some((to, member.token.clone(), copy))
        });
        let Some((to, token, copy)) = found else {
            let member = self.store.read(|league| league.members.get(id).cloned());
            let Some(member) = member else { return Ok(()) };
            let to = Peer {
                kind: member.kind,
                id: id.into(),
                endpoint: member.endpoint,
                max: MAX_NOTICE,
            };
            return self.client.ping(&to, &member.token, self.limit);
        };
        let Some(notice) = notice else { return Ok(()) };
        let envelope = About {
            auth_token: Some(token.clone()),
            ..notice.envelope.clone()
        };
        let deliver = |message: &Message, match_token: Option<&str>| {
            let bulletin = Bulletin::new(message, &notice.envelope);
            let limit = self.limit;
            self.client
                .deliver(&to, &bulletin, &token, match_token, limit)
        };
        let Some(copy) = copy else {
            return deliver(&notice.message, None).map(drop);
        };
        if copy.matches.iter().all(|entry| known.contains(entry)) {
            return Ok(()); // it knows all that is in it
        }
        known.clone_from(&copy.matches);
        let mut body = copy.clone();
        let match_token = body.match_token.take();
        let answer = deliver(&body.into(), match_token.as_deref());
        if to.kind == Kind::Player {
            answer.map(drop)
        } else {
            self.taken(&to, &copy, &envelope, answer).map(drop)
        }
    }

    /// A referee's answer matters: an error means that it refuses its matches. One that knows no ROUND_ANNOUNCEMENT is
    /// handed them one by one.
    fn taken(
        &self,
        to: &Peer,
        copy: &RoundAnnouncement,
        about: &About,
        mut answer: Answered,
    ) -> Answered {
        if matches!(answer, Err(CallError::Rpc(-32601, _))) {
            answer = Ok(ok());
            for entry in copy
                .matches
                .iter()
                .filter(|entry| Endpoint::same(&entry.referee_endpoint, &to.endpoint))
            {
                let (league_id, auth_token) = (copy.league_id.clone(), about.auth_token.clone());
                let start = StartMatch {
                    league_id,
                    round_id: copy.round_id,
                    r#match: entry.clone(),
                    auth_token,
                };
                let Ok(Value::Object(packet)) = serde_json::to_value(start) else {
                    break;
                };
                answer = self.client.send(to, "start_match", &packet, self.limit);
                if answer.as_ref().map_or(true, is_refusal) {
                    break;
                }
            }
        }
        let refused = match &answer {
            Err(error @ (CallError::Rpc(..) | CallError::Status(..))) => Some(error.explain()),
            Ok(answer) if is_refusal(answer) => {
                let why = LeagueError::read(answer).map(|error| error.explain()); // GAME_ERROR has the same fields
                let name = answer["message_type"].as_str().unwrap_or_default();
                Some(cut(
                    &format!("answered {name} {}", why.unwrap_or_default()),
                    SHOWN,
                ))
            }
            _ => None,
        };
        if let Some(why) = refused {
            self.update(&to.id, |contact| contact.standing = Standing::Refusing(why));
        }
        answer
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Contact)) {
        let mut inside = lock(&self.inside);
        change(inside.contacts.entry(id.into()).or_default());
        inside.changes += 1;
    }

    /// What is known of an agent.
    pub fn contact(&self, id: &str) -> Contact {
        lock(&self.inside)
            .contacts
            .get(id)
            .cloned()
            .unwrap_or_default()
    }

    /// Counts changes of what is known: whoever waits for news compares this.
    pub fn changes(&self) -> u64 {
        lock(&self.inside).changes
    }

    /// It has registered, perhaps again: it counts, and is told anew what still matters.
    pub fn registered(&self, id: &str) {
        self.update(id, |it| {
            (it.standing, it.anew, it.is_here) = (Standing::Alive, true, true)
        });
        self.bell.notify_all();
    }

    /// What it was told does not count any more.
    pub fn forget(&self, id: &str) {
        self.update(id, |contact| contact.anew = true);
        self.bell.notify_all();
    }

    /// A report has come from it, taken or refused: it is at work.
    pub fn reported(&self, id: &str) {
        self.update(id, |contact| contact.standing = Standing::Alive);
    }

    /// It has not reported in its time.
    pub fn is_overdue(&self, id: &str) {
        self.update(id, |contact| contact.standing = Standing::Overdue);
    }

    /// It is to be called once more, now.
    pub fn ask_again(&self, id: &str) {
        self.update(id, |contact| contact.asked = true);
        self.bell.notify_all();
    }

    /// The newest announcement that referees may be told; with one to be `released`, that one from now on.
    pub fn released(&self, new: Option<Announcement>) -> Announcement {
        let mut inside = lock(&self.inside);
        if let Some(new) = new {
            inside.released = new;
            self.bell.notify_all();
        }
        inside.released
    }

    /// Whether these have read all that was posted.
    pub fn has_told(&self, ids: &[String]) -> bool {
        let inside = lock(&self.inside);
        let is_through = |id: &String| {
            inside
                .contacts
                .get(id)
                .is_some_and(|it| !it.anew && it.place >= inside.notices.len())
        };
        ids.iter().all(is_through)
    }

    /// What the league waits for; with a `new` reason, what it waits for from now on: says whether that is new.
    pub fn wait_for(&self, new: Option<String>) -> bool {
        let mut inside = lock(&self.inside);
        inside.changes += 1;
        std::mem::replace(&mut inside.waiting, new.clone()) != new
    }

    /// What a league that has started waits for, if it does not go on.
    pub fn waiting(&self) -> Option<String> {
        lock(&self.inside).waiting.clone()
    }
}

type Answered = Result<Value, CallError>;

fn is_refusal(answer: &Value) -> bool {
    answer["message_type"]
        .as_str()
        .is_some_and(|name| name.ends_with("_ERROR"))
}

/// What is new in the league since it was last posted.
fn news(league: &League, posted: &mut Posted) -> Vec<(Subject, String, Option<u32>, Message)> {
    let (rounds, mut news) = (league.rounds_completed, Vec::new());
    let (players, over) = (
        league.members(Kind::Player).len(),
        league.progress() == Progress::Completed,
    );
    let pace = if players <= UNPACED {
        Duration::ZERO
    } else {
        PACE_PER_PLAYER * players as u32
    };
    let is_due =
        rounds > posted.rounds || over || posted.table_at.is_none_or(|at| at.elapsed() >= pace);
    if league.tables() > posted.tables && is_due {
        news.push((
            Subject::Table,
            "standings".into(),
            None,
            league.standings_update().into(),
        ));
        (posted.tables, posted.table_at) = (league.tables(), Some(Instant::now()));
    }
    for round in posted.rounds.min(rounds) + 1..=rounds {
        let words = format!("round-{round}-complete");
        news.push((
            Subject::RoundOver,
            words,
            Some(round),
            league.round_completed(round).into(),
        ));
    }
    let number = league.newest_announcement();
    if let Some(round) = league
        .open_round()
        .filter(|_| number != posted.announcement)
    {
        let message = league.announcement(round, None);
        if !message.matches.is_empty() {
            let about = Subject::Announcement(round, number);
            news.push((
                about,
                format!("round-{round}-announce"),
                Some(round),
                message.into(),
            ));
        }
    }
    let end = if over && !posted.end {
        league.completed()
    } else {
        None
    };
    posted.end |= end.is_some();
    news.extend(end.map(|end| (Subject::End, "league-complete".into(), None, end.into())));
    (posted.rounds, posted.announcement) = (rounds, number);
    news
}
