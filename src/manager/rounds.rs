//! The round loop. First start, restart and lost referee are one act: see to it that every open match has a referee that
//! is there, let them be told, wait, look again. Who tells is the notifier; what was heard stands in `contacts.rs`, and
//! which referees count is decided in `liveness.rs`. Read next: `manager.rs`.

use crate::manager::contacts::Contacts;
use crate::manager::journal::Store;
use crate::manager::league::{Announcement, League, Match};
use crate::manager::liveness::{Liveness, liveness, patience, present};
use crate::manager::queries::PAUSED;
use crate::net::log::Level;
use crate::net::secret::secret;
use crate::net::sync::lock;
use crate::program::Program;
use crate::program::terminal::{Terminal, shown};
use crate::protocol::Kind;
use crate::wire::{Timestamp, token};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// How often the loop looks at what nobody tells: time limits.
const TICK: Duration = Duration::from_millis(100);
/// How long referees wait at most until all players know of a round.
const KNOWN: Duration = Duration::from_secs(1);
/// After so long without an event, or a release, the league says whom it waits for.
const SILENCE: Duration = Duration::from_secs(2);
/// What it waits for when no referee counts.
const NOBODY: &str = "no referee is left: the league waits until one registers or answers again";

/// What a referee must have reported, and by when.
struct Due {
    matches: usize,
    until: Instant,
    /// The same as a person reads it.
    written: Timestamp,
}

/// A round that is being played.
struct Round<'a> {
    program: &'a Program,
    store: &'a Store,
    contacts: &'a Contacts,
    terminal: Terminal,
    /// Between the announcement to the players and that to the referees.
    lead: Duration,
    round: u32,
    due: BTreeMap<String, Due>,
    /// Referees that do not count at the moment; they have been forgotten already.
    out: BTreeSet<String>,
    /// What players are being told, and since when.
    newest: (Announcement, Instant),
    /// When the lead has passed, so that referees may be told; none before players know.
    lead_over: Option<Instant>,
}

/// Plays the league from where it stands to its end.
pub fn play(
    program: &Program,
    store: &Store,
    contacts: &Contacts,
    terminal: Terminal,
    lead: Duration,
) {
    while let Some(round) = store.read(League::open_round) {
        let (due, out, lead_over) = Default::default();
        let newest = (Announcement::default(), Instant::now());
        Round {
            program,
            store,
            contacts,
            terminal,
            lead,
            round,
            due,
            out,
            newest,
            lead_over,
        }
        .play();
    }
    *lock(&contacts.waiting) = None;
}

impl Round<'_> {
    /// Looks, assigns, releases and waits, until every match of the round has a result.
    fn play(mut self) {
        let (mut known, mut since, mut stalled) = (Default::default(), Instant::now(), false);
        loop {
            let (changes, open) = self
                .store
                .read(|league| (league.changes, league.open_round()));
            if open != Some(self.round) {
                return;
            }
            let newest = (changes, self.contacts.released());
            if newest != known {
                (known, since) = (newest, Instant::now());
            }
            let obstacle = self.obstacle();
            let heard = self.contacts.changes();
            let present = present(&self.referees());
            if let Some(why) = obstacle.or_else(|| present.is_empty().then(|| NOBODY.into())) {
                stalled = true;
                self.wait_for(Some(why), true);
            } else {
                if std::mem::take(&mut stalled) {
                    self.warn("going_on", "the league goes on");
                }
                self.hand_out(&present, since.elapsed() >= SILENCE);
            }
            self.store.wait(TICK, |league| {
                league.changes != changes || self.contacts.changes() != heard
            });
        }
    }

    /// Gives matches without a referee to those that are there, and lets them be told. `silent`: nothing has happened
    /// for a while.
    fn hand_out(&mut self, present: &[String], silent: bool) {
        let digits = self.program.config.system.security.token_length.0;
        let token = |id: &str| token(id, &secret(digits));
        let assigned = self
            .store
            .decide(|league| league.assign(self.round, present, token));
        if let Err(full) = assigned {
            return self.wait_for(Some(full.to_string()), true); // tried again with the next look
        }
        self.release();
        self.expect_reports();
        self.wait_for(
            self.whom_we_wait_for().filter(|_| silent),
            self.due.values().any(|due| due.matches > 0),
        );
    }

    /// Why nothing can be played at the moment, if so. What nobody plays for, since somebody was removed, is recorded.
    fn obstacle(&self) -> Option<String> {
        let walkover = |league: &League| league.walkover(self.round, Timestamp::now());
        loop {
            match self.store.decide(walkover) {
                Ok(true) => {}
                Ok(false) => return self.store.read(League::rests).then(|| PAUSED.into()),
                Err(full) => return Some(full.to_string()), // tried again with the next look
            }
        }
    }

    /// Every referee, and whether it counts. Of one that has ceased to count it is forgotten what it was told.
    fn referees(&mut self) -> Vec<(String, Liveness)> {
        let late = self
            .due
            .iter()
            .filter(|(_, due)| Instant::now() > due.until)
            .map(|(id, _)| id.clone());
        for id in late.collect::<Vec<_>>() {
            self.contacts
                .update(&id, |contact| contact.heard.overdue = true);
            self.out.remove(&id); // told once more, if it is the only one left
        }
        let mut referees = Vec::new();
        let ids = |league: &League| {
            league
                .members(Kind::Referee)
                .into_iter()
                .map(|it| it.id.clone())
                .collect::<Vec<_>>()
        };
        for id in self.store.read(ids) {
            let contact = self.contacts.of(&id);
            let how = liveness(&contact.heard);
            if how == Liveness::Alive {
                self.out.remove(&id);
            } else if self.out.insert(id.clone()) {
                let until = self
                    .due
                    .get(&id)
                    .map_or("in its time".into(), |due| format!("by {}", due.written));
                let why = match how {
                    Liveness::Refusing => format!(
                        "{}, so it refuses",
                        contact.heard.refused.unwrap_or_default()
                    ),
                    Liveness::Overdue => format!("has not reported all its matches {until}"),
                    _ => contact.trouble.unwrap_or_default(),
                };
                self.forget(&id, &why);
            }
            referees.push((id, how));
        }
        referees
    }

    /// A referee is not what it should be: what it was told does not count any more.
    fn forget(&mut self, id: &str, why: &str) {
        self.due.remove(id);
        self.contacts.forget(id);
        self.store.nudge();
        if !self.open_matches(id).is_empty() {
            self.warn(
                "referee_lost",
                &format!("{id} {why}; its matches are announced anew"),
            );
        }
    }

    /// The open matches that a referee has.
    fn open_matches(&self, id: &str) -> Vec<String> {
        let own = |game: &&Match| game.referee() == Some(id);
        self.store.read(|league| {
            league
                .open_matches(self.round)
                .filter(own)
                .map(|game| game.id.clone())
                .collect()
        })
    }

    /// Lets referees be told as soon as the players know (but for those that do not answer) and the lead has passed.
    fn release(&mut self) {
        let now = Instant::now();
        let newest = self.store.read(League::newest_announcement);
        if self.newest.0 != newest {
            self.newest = (newest, now);
        }
        if self.contacts.released() == newest {
            return;
        }
        let knows = |id: &str| {
            let contact = self.contacts.of(id);
            contact.announced >= newest || contact.trouble.is_some()
        };
        let all_know = |league: &League| {
            league
                .members(Kind::Player)
                .iter()
                .all(|player| knows(&player.id))
        };
        if self.newest.1.elapsed() < KNOWN && !self.store.read(all_know) {
            return;
        }
        if now >= *self.lead_over.get_or_insert(now + self.lead) && self.contacts.release(newest) {
            self.store.nudge(); // the notifier looks
        }
    }

    /// Notes by when each referee must have reported. More matches give it more time; an assignment that only comes
    /// again does not.
    fn expect_reports(&mut self) {
        let (newest, _) = self.newest;
        let mut given = BTreeMap::<String, (usize, u32)>::new();
        self.store.read(|league| {
            for (_, assignment) in league.assigned(self.round) {
                if let Some(referee) = league.members.get(&assignment.referee_id) {
                    given
                        .entry(referee.id.clone())
                        .or_insert((0, referee.max_concurrent_matches))
                        .0 += 1;
                }
            }
        });
        self.due.retain(|id, _| given.contains_key(id));
        for (id, (matches, at_once)) in given {
            let told =
                self.contacts.released() == newest && self.contacts.of(&id).announced >= newest;
            if told && self.due.get(&id).is_none_or(|due| matches > due.matches) {
                let time = patience(matches, at_once, self.program.config.match_limit());
                let (until, written) = (Instant::now() + time, Timestamp::now().plus(time));
                self.due.insert(
                    id,
                    Due {
                        matches,
                        until,
                        written,
                    },
                );
            }
        }
    }

    /// Whom the league waits for, and until when.
    fn whom_we_wait_for(&self) -> Option<String> {
        let left = self
            .lead_over
            .map(|over| over.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            let begin = Timestamp::now().plus(left);
            return Some(format!(
                "round {} is announced: its matches begin at {begin}",
                self.round
            ));
        }
        let to_report = |(id, due): (&String, &Due)| {
            let open = self.open_matches(id);
            let what = if open.len() > 3 {
                format!("{} matches", open.len())
            } else {
                open.join(", ")
            };
            format!("{id} to report {what} (until {})", due.written)
        };
        let each: Vec<String> = self.due.iter().map(to_report).collect();
        (!each.is_empty()).then(|| format!("waiting for {}", each.join(" and ")))
    }

    /// Notes what the league waits for, or that it goes on; said once.
    fn wait_for(&self, reason: Option<String>, aloud: bool) {
        let mut waiting = lock(&self.contacts.waiting);
        if *waiting != reason {
            if let Some(words) = reason.as_ref().filter(|_| aloud) {
                self.warn("waiting", words);
            }
            *waiting = reason;
        }
    }

    /// Says something on the screen and in the log.
    fn warn(&self, event_type: &str, words: &str) {
        self.program.log().say(Level::Warning, event_type, words);
        self.terminal.say(&shown(words));
    }
}
