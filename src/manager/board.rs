//! The board: what is told to whom, and what was heard from them.
//!
//! There is one growing list of notices. The board's own thread follows the league and posts what is new at the end of
//! the list; a newer table or announcement takes the older one down. Every agent has a thread that reads on from the
//! agent's own place in the list and delivers. So everybody hears things in the order in which they happened, a slow or
//! dead agent delays nobody, and nothing outdated is sent. Whoever registers again is put back to what still matters.
//!
//! A notice's body is written once, as text. Each delivery puts a fresh envelope before it, with the reader's own token.
//! Nothing on the board must survive a restart: the league says what is to be told.

use crate::manager::journal::Store;
use crate::manager::league::{League, Member};
use crate::manager::news::{IDLE, Posted, Subject, is_for};
use crate::net::client::{About, Bulletin, Client, MAX_NOTICE, Peer, conversation};
use crate::net::retry::{CallError, RetryPolicy, SHOWN, pause, retry};
use crate::net::sync::{lock, spawn};
use crate::protocol::{Kind, LeagueError};
use crate::wire::{Timestamp, Wire, cut};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often an agent is told anew at most, however often it registers.
const ANEW: Duration = Duration::from_secs(1);

/// A notice on the board.
struct Notice {
    subject: Subject,
    about: About,
    bulletin: Bulletin,
}

/// Whether a referee can be used: whether it is given matches, and keeps those that it has.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum RefereeState {
    /// The referee answers, or has not been called yet.
    #[default]
    Alive,
    /// Nobody answers there, for this reason. The referee is alive again when it answers.
    Lost(String),
    /// The referee answered an assignment with this error. It is alive again when it registers or reports.
    Refusing(String),
    /// The referee has not reported in its time. It is alive again when it registers or reports.
    Overdue,
}

/// What is known of one agent beside its registration.
#[derive(Debug, Clone, Default)]
pub struct Contact {
    /// Why the last call failed, in words; none where it did not.
    pub trouble: Option<String>,
    /// How a referee stands; of a player it says nothing.
    pub referee: RefereeState,
    /// How long its last answer took, in milliseconds.
    pub answers_in: Option<u32>,
    /// Whether it has registered since this program runs.
    pub is_here: bool,
    /// Whether it is to be called at once.
    pub is_asked: bool,
    /// The newest announcement that it was told, or that could not be delivered.
    pub announced: u64,
    /// Whether it begins again with what still matters, and when it last did.
    starts_anew: bool,
    began: Option<Instant>,
    /// The notice that it reads next.
    place: usize,
    called: Option<Instant>,
    has_thread: bool,
}

impl Contact {
    /// Goes back to the first notice that still matters.
    fn begin_anew(&mut self, notices: &[Option<Arc<Notice>>]) -> usize {
        self.starts_anew = false;
        self.began = Some(Instant::now());
        self.place = still_matters_from(notices);
        self.place
    }
}

#[derive(Default)]
struct Inside {
    /// A notice that was taken down leaves an empty place.
    notices: Vec<Option<Arc<Notice>>>,
    contacts: BTreeMap<String, Contact>,
    /// The newest announcement that referees may be told.
    released: u64,
    /// What a league that has started waits for, if it does not go on.
    waiting: Option<String>,
    /// When the announced matches begin, if the lead has not passed yet.
    next_at: Option<Timestamp>,
    changes: u64,
}

/// The board, and what was heard from its readers. One lock around both; it is never held across a call.
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
    pub fn new(
        store: &Arc<Store>,
        client: &Arc<Client>,
        policy: RetryPolicy,
        limit: Duration,
    ) -> Arc<Board> {
        Arc::new(Board {
            store: Arc::clone(store),
            client: Arc::clone(client),
            policy,
            limit,
            inside: Mutex::default(),
            bell: Condvar::new(),
        })
    }

    /// Has a thread follow the league and post what is new; of the rounds that are over already only the last.
    pub fn follow(self: &Arc<Self>) {
        let board = Arc::clone(self);
        spawn("board", move || {
            let mut posted = Posted::default();
            posted.rounds = board.store.read(|it| it.rounds_completed.saturating_sub(1));
            loop {
                let changes = board.store.read(|league| league.changes);
                let next_look = catch_unwind(AssertUnwindSafe(|| board.post(&mut posted)));
                let limit = next_look.unwrap_or(IDLE); // a panic is reported by the hook
                board.store.wait(limit, |league| league.changes != changes);
            }
        });
    }

    /// Posts what is new, and sees to it that every member has a thread. Says when to look again at the latest.
    fn post(self: &Arc<Self>, posted: &mut Posted) -> Duration {
        let members: Vec<(String, Kind)> = self.store.read(|league| {
            let members = league.members.values();
            members
                .map(|member| (member.id.clone(), member.kind))
                .collect()
        });
        for (id, kind) in &members {
            if !self.contact(id).has_thread {
                let (board, reader, kind) = (Arc::clone(self), id.clone(), *kind);
                let has_thread = spawn("reader", move || board.serve(&reader, kind));
                self.update(id, |contact| contact.has_thread = has_thread);
            }
        }
        let (news, next_look) = self.store.read(|league| posted.news(league));
        for (subject, message, words, round_id) in news {
            let about = About {
                conversation_id: conversation(&words),
                round_id,
                ..About::default()
            };
            let readers = members.iter().filter(|(_, kind)| is_for(subject, *kind));
            let bulletin = self.client.bulletin(&message, &about);
            let facts = json!({"recipients": readers.count()});
            self.client.note_sent(&bulletin.packet, facts);
            self.put_up(Notice {
                subject,
                bulletin,
                about,
            });
        }
        next_look
    }

    /// Puts a notice at the end of the list, and takes down what it makes outdated.
    fn put_up(&self, notice: Notice) {
        let kind = std::mem::discriminant(&notice.subject);
        let mut inside = lock(&self.inside);
        if notice.subject != Subject::RoundOver {
            for place in &mut inside.notices {
                let same = |old: &Arc<Notice>| std::mem::discriminant(&old.subject) == kind;
                if place.as_ref().is_some_and(same) {
                    *place = None;
                }
            }
        }
        inside.notices.push(Some(Arc::new(notice)));
        self.bell.notify_all();
    }

    /// One agent's thread: reads and tells, for ever.
    fn serve(&self, id: &str, kind: Kind) {
        loop {
            let (place, notice) = self.next(id, kind);
            let told = catch_unwind(AssertUnwindSafe(|| self.tell(id, kind, notice.as_deref())));
            if told.is_err() {
                continue; // a panic is reported by the hook; the notice is told again
            }
            let mut inside = lock(&self.inside);
            let contact = inside.contacts.entry(id.into()).or_default();
            contact.place = place;
            let subject = notice.map(|notice| notice.subject);
            drop(inside);
            if let Some(Subject::Announcement(..) | Subject::LeagueOver(_)) = subject {
                self.store.nudge(); // the manager may wait for that
            }
        }
    }

    /// Waits until an agent is to be told something, and says what, and what its place is then. Without a notice the
    /// agent is to be pinged.
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
            if contact.starts_anew {
                let since = contact.began.map_or(ANEW, |began| began.elapsed());
                if since >= ANEW {
                    return (contact.begin_anew(notices), None);
                }
                inside = self.rung(inside, ANEW - since);
                continue;
            }
            let is_due = |notice: &&Arc<Notice>| match notice.subject {
                Subject::Announcement(_, number) => kind == Kind::Player || number <= *released,
                subject => is_for(subject, kind),
            };
            for (place, notice) in notices.iter().enumerate().skip(contact.place) {
                if let Some(notice) = notice.as_ref().filter(is_due) {
                    return (place + 1, Some(Arc::clone(notice)));
                }
            }
            let last = notices.last().and_then(Option::as_ref);
            let is_over =
                last.is_some_and(|notice| matches!(notice.subject, Subject::LeagueOver(_)));
            let is_watched = kind == Kind::Referee || contact.trouble.is_some();
            let interval = self.policy.base_delay;
            let waited = contact.called.map_or(interval, |at| at.elapsed());
            if contact.is_asked || is_watched && !is_over && waited >= interval {
                return (contact.place, None);
            }
            let limit = match is_watched && !is_over {
                true => interval.saturating_sub(waited),
                false => IDLE,
            };
            inside = self.rung(inside, limit);
        }
    }

    /// Waits until the bell is rung, at most `limit`.
    fn rung<'a>(&self, inside: MutexGuard<'a, Inside>, limit: Duration) -> MutexGuard<'a, Inside> {
        let rung = self.bell.wait_timeout(inside, limit);
        rung.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Tells an agent a notice, or pings it, as often as that is worth it, and notes how it went.
    fn tell(&self, id: &str, kind: Kind, notice: Option<&Notice>) {
        let subject = notice.map(|notice| notice.subject);
        let was_in_trouble = self.contact(id).trouble.is_some();
        let is_worth_more = |error: &CallError| match subject {
            Some(Subject::LeagueOver(_)) => error.is_silence(),
            None | Some(Subject::Table) => false,
            _ if was_in_trouble => false, // the dead must not pile up work
            // That a referee is gone is the round loop's business, at once.
            _ => error.is_silence() && (kind == Kind::Player || !error.is_absence()),
        };
        let mut begun = Instant::now();
        let result = retry(&self.policy, pause, is_worth_more, || {
            begun = Instant::now();
            self.attempt(id, notice)
        });
        let error = result.as_ref().err();
        let silent = error.filter(|error| error.is_silence() && !error.is_ours());
        let trouble = silent.map(CallError::explain);
        let is_news = trouble.is_some() != was_in_trouble;
        self.update(id, |contact| {
            contact.called = Some(Instant::now());
            contact.is_asked = false;
            match &contact.referee {
                RefereeState::Alive if silent.is_some_and(CallError::is_absence) => {
                    contact.referee = RefereeState::Lost(trouble.clone().unwrap_or_default());
                }
                RefereeState::Lost(_) if silent.is_none() => contact.referee = RefereeState::Alive,
                _ => {}
            }
            contact.trouble = trouble;
            if let Some(Subject::Announcement(_, number)) = subject {
                contact.announced = number;
            }
            if result.is_ok() {
                contact.answers_in = Some(begun.elapsed().as_millis() as u32);
            }
        });
        if is_news {
            self.store.nudge();
        }
    }

    /// One attempt, to the agent as it is registered at this moment: it may have moved since the last one.
    fn attempt(&self, id: &str, notice: Option<&Notice>) -> Result<(), CallError> {
        let Some(member) = self.store.read(|league| league.members.get(id).cloned()) else {
            return Ok(()); // it was removed before the start
        };
        let to = Peer {
            kind: member.kind,
            id: member.id.clone(),
            endpoint: member.endpoint.clone(),
            max: MAX_NOTICE,
            limit: self.limit,
        };
        let Some(notice) = notice else {
            return self.client.ping(&to, &member.token);
        };
        let mut own = json!({"auth_token": member.token});
        if let Subject::Announcement(round, _) = notice.subject {
            if member.kind == Kind::Referee {
                return self.hand_over(&to, &notice.about, &member, round);
            }
            if let Some(token) = self.store.read(|league| league.match_token(round, id)) {
                own["match_token"] = token.into();
            }
        }
        let answer = self.client.deliver(&to, &notice.bulletin, own);
        answer.map(drop)
    }

    /// Announces a round to a referee, in a copy of its own. Its answer matters: an error means that it refuses its
    /// matches.
    fn hand_over(
        &self,
        to: &Peer,
        about: &About,
        referee: &Member,
        round: u32,
    ) -> Result<(), CallError> {
        let copy = self
            .store
            .read(|league| league.announcement(round, Some(referee)));
        let bulletin = self.client.bulletin(&copy.into(), about);
        let own = json!({"auth_token": referee.token});
        let answer = self.client.deliver(to, &bulletin, own);
        let refused = match &answer {
            Err(error @ (CallError::Rpc(..) | CallError::Status(..))) => Some(error.explain()),
            Ok(answer) => refusal(answer),
            Err(_) => None,
        };
        if let Some(why) = refused {
            self.note_referee(&to.id, RefereeState::Refusing(why));
        }
        answer.map(drop)
    }

    fn update(&self, id: &str, change: impl FnOnce(&mut Contact)) {
        let mut inside = lock(&self.inside);
        change(inside.contacts.entry(id.into()).or_default());
        inside.changes += 1;
    }

    /// What is known of an agent.
    pub fn contact(&self, id: &str) -> Contact {
        let contact = lock(&self.inside).contacts.get(id).cloned();
        contact.unwrap_or_default()
    }

    /// Counts changes of what is known: whoever waits for news compares this.
    pub fn changes(&self) -> u64 {
        lock(&self.inside).changes
    }

    /// An agent has registered, perhaps again: it is alive, and is told anew what still matters.
    pub fn note_registered(&self, id: &str) {
        self.update(id, |contact| {
            contact.referee = RefereeState::Alive;
            contact.starts_anew = true;
            contact.is_here = true;
        });
        self.bell.notify_all();
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
        self.update(id, |contact| contact.is_asked = true);
        self.bell.notify_all();
    }

    /// Lets referees be told this announcement.
    pub fn release(&self, number: u64) {
        let mut inside = lock(&self.inside);
        inside.released = number;
        inside.next_at = None;
        self.bell.notify_all();
    }

    /// Whether referees may be told this announcement.
    pub fn is_released(&self, number: u64) -> bool {
        lock(&self.inside).released == number
    }

    /// Whether the end of the league, as it now stands, has been posted, and all members have been told.
    pub fn has_told_the_end(&self, league: &League) -> bool {
        let inside = lock(&self.inside);
        let last = inside.notices.last().and_then(Option::as_ref);
        let end = Subject::LeagueOver(league.tables);
        let is_through = |id: &String| {
            let contact = inside.contacts.get(id);
            contact.is_some_and(|it| !it.starts_anew && it.place >= inside.notices.len())
        };
        last.is_some_and(|notice| notice.subject == end) && league.members.keys().all(is_through)
    }

    /// Notes what the league waits for, if it does not go on.
    pub fn note_waiting(&self, reason: Option<String>) {
        let mut inside = lock(&self.inside);
        if inside.waiting != reason {
            inside.waiting = reason;
            inside.changes += 1;
        }
    }

    /// What a league that has started waits for, if it does not go on.
    pub fn waiting(&self) -> Option<String> {
        lock(&self.inside).waiting.clone()
    }

    /// Notes when the announced matches begin.
    pub fn note_next_at(&self, at: Option<Timestamp>) {
        let mut inside = lock(&self.inside);
        if inside.next_at.is_none() || at.is_none() {
            inside.next_at = at;
        }
    }

    /// When the announced matches begin, if the lead has not passed yet.
    pub fn next_at(&self) -> Option<Timestamp> {
        lock(&self.inside).next_at
    }
}

/// Where somebody begins to read who has to be told everything that still matters: at the last round's end, or at the
/// table if that is older.
fn still_matters_from(notices: &[Option<Arc<Notice>>]) -> usize {
    let is = |place: &Option<Arc<Notice>>, subject| {
        place.as_ref().is_some_and(|it| it.subject == subject)
    };
    let table = notices.iter().position(|place| is(place, Subject::Table));
    let round_over = notices
        .iter()
        .rposition(|place| is(place, Subject::RoundOver));
    table.unwrap_or(usize::MAX).min(round_over.unwrap_or(0))
}

/// Why a referee refuses, if its answer says so.
fn refusal(answer: &Value) -> Option<String> {
    let name = answer["message_type"].as_str()?;
    if !name.ends_with("_ERROR") {
        return None;
    }
    let why = LeagueError::read(answer).map(|error| error.explain()); // GAME_ERROR has the same fields
    Some(cut(
        &format!("answered {name} {}", why.unwrap_or_default()),
        SHOWN,
    ))
}
