//! The round loop. First start, restart and lost referee are one act: see to it that every open match has a referee that
//! is there, let them be told, wait, look again. Who tells is the notifier; what was heard stands in `contacts.rs`, and
//! which referees count is decided in `liveness.rs`. Read next: `manager.rs`.

use crate::manager::contacts::{Contacts, Waiting};
use crate::manager::journal::Store;
use crate::manager::league::{League, Match};
use crate::manager::liveness::{Liveness, liveness, patience, present};
use crate::manager::queries::PAUSED;
use crate::net::log::{Level, Log};
use crate::net::secret::secret;
use crate::net::sync::lock;
use crate::program::terminal::{Terminal, shown};
use crate::protocol::Kind;
use crate::wire::{Timestamp, token};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
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

/// What the round loop works with.
pub struct Rounds {
    /// The league.
    pub store: Arc<Store>,
    /// What was heard from the agents.
    pub contacts: Arc<Contacts>,
    /// The terminal.
    pub terminal: Terminal,
    /// The log.
    pub log: Arc<Log>,
    /// Between the announcement to the players and that to the referees.
    pub lead: Duration,
    /// The longest a match can take.
    pub match_limit: Duration,
    /// Hex digits of a token.
    pub token_length: u32,
    /// What a league that has started waits for, if it does not go on.
    pub waiting: Waiting,
}

/// What a referee must have reported, and by when.
struct Due {
    matches: usize,
    until: Instant,
    /// The same as a person reads it.
    written: Timestamp,
}

/// A round that is being played.
struct Round<'a> {
    all: &'a Rounds,
    round: u32,
    due: BTreeMap<String, Due>,
    /// Referees that do not count at the moment; they have been forgotten already.
    out: BTreeSet<String>,
    /// The announcement that players are being told, and since when.
    announced: (u64, Instant),
    /// When the lead has passed, so that referees may be told; none before players know.
    lead_over: Option<Instant>,
}

impl Rounds {
    /// Plays the league from where it stands to its end.
    pub fn play(&self) -> io::Result<()> {
        while let Some(round) = self.store.read(League::open_round) {
            let announced = (0, Instant::now());
            let (due, out) = (BTreeMap::new(), BTreeSet::new());
            Round { all: self, round, due, out, announced, lead_over: None }.play();
        }
        self.wait_for(None, false);
        Ok(())
    }

    /// Says something on the screen and in the log.
    pub fn warn(&self, event_type: &str, words: &str) {
        self.log.say(Level::Warning, event_type, words);
        self.terminal.say(&shown(words));
    }

    /// Whether the league has started and no referee is left that can be given matches.
    pub fn has_no_referee(&self) -> bool {
        let how = |id: &String| (id.clone(), liveness(&self.contacts.of(id).heard));
        self.store.read(|league| league.started)
            && present(&self.referees().iter().map(how).collect::<Vec<_>>()).is_empty()
    }

    /// Records what nobody plays for, since somebody was removed. Says whether the round has to wait.
    fn go_on(&self, round: u32) -> io::Result<bool> {
        while self.store.commit(|league| {
            let event = league.walkover(round, Timestamp::now());
            Ok::<_, io::Error>((event.clone(), event.is_some()))
        })? {}
        let rests = self.store.read(League::rests);
        if rests {
            self.wait_for(Some(PAUSED.into()), true);
        }
        Ok(rests)
    }

    /// The ids of all referees.
    fn referees(&self) -> Vec<String> {
        self.store.read(|league| league.members(Kind::Referee).into_iter().map(|it| it.id.clone()).collect())
    }

    /// Notes what the league waits for, or that it goes on; said once.
    fn wait_for(&self, reason: Option<String>, aloud: bool) {
        let mut waiting = lock(&self.waiting);
        if *waiting != reason {
            if let Some(words) = reason.as_ref().filter(|_| aloud) {
                self.warn("waiting", words);
            }
            *waiting = reason;
        }
    }
}

impl Round<'_> {
    /// Looks, assigns, releases and waits, until every match of the round has a result.
    fn play(mut self) {
        let (mut known, mut since, mut stalled) = ((0, 0), Instant::now(), false);
        loop {
            let all = self.all;
            let (changes, open) = all.store.read(|league| (league.changes, league.open_round()));
            if open != Some(self.round) {
                return;
            }
            let newest = (changes, all.contacts.released());
            if newest != known {
                (known, since) = (newest, Instant::now());
            }
            let paused = match all.go_on(self.round) {
                Ok(paused) => paused,
                Err(full) => {
                    all.wait_for(Some(full.to_string()), true); // tried again with the next look
                    true
                }
            };
            let heard = all.contacts.changes();
            let present = present(&self.referees());
            if paused {
                stalled = true;
            } else if present.is_empty() {
                stalled = true;
                all.wait_for(Some(NOBODY.into()), true);
            } else {
                if std::mem::take(&mut stalled) {
                    all.warn("going_on", "the league goes on");
                }
                self.hand_out(&present, since.elapsed() >= SILENCE);
            }
            all.store.wait(TICK, |league| league.changes != changes || all.contacts.changes() != heard);
        }
    }

    /// Gives matches without a referee to those that are there, and lets them be told. `silent`: nothing has happened
    /// for a while.
    fn hand_out(&mut self, present: &[String], silent: bool) {
        let (all, round) = (self.all, self.round);
        let assigned = all.store.commit(|league| {
            let token = |id: &str| token(id, &secret(all.token_length));
            Ok::<_, io::Error>((league.assign(round, present, token), ()))
        });
        if let Err(full) = assigned {
            return all.wait_for(Some(full.to_string()), true); // tried again with the next look
        }
        self.release();
        self.expect_reports();
        all.wait_for(self.whom_we_wait_for().filter(|_| silent), self.due.values().any(|due| due.matches > 0));
    }

    /// Every referee, and whether it counts. Of one that has ceased to count it is forgotten what it was told.
    fn referees(&mut self) -> Vec<(String, Liveness)> {
        let all = self.all;
        let late = self.due.iter().filter(|(_, due)| Instant::now() > due.until).map(|(id, _)| id.clone());
        for id in late.collect::<Vec<_>>() {
            all.contacts.update(&id, |contact| contact.heard.overdue = true);
            self.out.remove(&id); // told once more, if it is the only one left
        }
        let mut referees = Vec::new();
        for id in all.referees() {
            let contact = all.contacts.of(&id);
            let how = liveness(&contact.heard);
            if how == Liveness::Alive {
                self.out.remove(&id);
            } else if self.out.insert(id.clone()) {
                let until = self.due.get(&id).map_or("in its time".into(), |due| format!("by {}", due.written));
                let why = match how {
                    Liveness::Refusing => format!("{}, so it refuses", contact.heard.refused.unwrap_or_default()),
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
        self.all.contacts.forget(id);
        self.all.store.nudge();
        if !self.open_matches(id).is_empty() {
            self.all.warn("referee_lost", &format!("{id} {why}; its matches are announced anew"));
        }
    }

    /// The open matches that a referee has.
    fn open_matches(&self, id: &str) -> Vec<String> {
        let own = |game: &&Match| game.referee() == Some(id);
        self.all.store.read(|league| league.open_matches(self.round).filter(own).map(|game| game.id.clone()).collect())
    }

    /// Lets referees be told as soon as the players know (but for those that do not answer) and the lead has passed.
    fn release(&mut self) {
        let (all, now) = (self.all, Instant::now());
        let (newest, players) = all.store.read(|league| {
            let players = league.members(Kind::Player).into_iter().map(|player| player.id.clone());
            (league.announcements(), players.collect::<Vec<_>>())
        });
        if self.announced.0 != newest {
            self.announced = (newest, now);
        }
        if all.contacts.released() == newest {
            return;
        }
        let knows = |id: &String| {
            let contact = all.contacts.of(id);
            contact.announced >= newest || contact.trouble.is_some()
        };
        if self.announced.1.elapsed() < KNOWN && !players.iter().all(knows) {
            return;
        }
        if now >= *self.lead_over.get_or_insert(now + all.lead) && all.contacts.release(newest) {
            all.store.nudge(); // the notifier looks
        }
    }

    /// Notes by when each referee must have reported. More matches give it more time; an assignment that only comes
    /// again does not.
    fn expect_reports(&mut self) {
        let (all, round) = (self.all, self.round);
        let given = all.store.read(|league| {
            let mut given = BTreeMap::<String, usize>::new();
            for game in league.open_matches(round) {
                *given.entry(game.referee().unwrap_or_default().into()).or_default() += 1;
            }
            let capacity = |id: &String| league.members.get(id).map(|member| member.max_concurrent_matches);
            let each = given.into_iter().filter_map(|(id, matches)| Some((capacity(&id)?, id, matches)));
            each.collect::<Vec<_>>()
        });
        self.due.retain(|id, _| given.iter().any(|(_, known, _)| known == id));
        for (at_once, id, matches) in given {
            let newest = self.announced.0;
            let told = all.contacts.released() == newest && all.contacts.of(&id).announced >= newest;
            if told && self.due.get(&id).is_none_or(|due| matches > due.matches) {
                let time = patience(matches, at_once, all.match_limit);
                let (until, written) = (Instant::now() + time, Timestamp::now().plus(time));
                self.due.insert(id, Due { matches, until, written });
            }
        }
    }

    /// Whom the league waits for, and until when.
    fn whom_we_wait_for(&self) -> Option<String> {
        let left = self.lead_over.map(|over| over.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Some(format!(
                "round {} is announced: its matches begin at {}",
                self.round,
                Timestamp::now().plus(left)
            ));
        }
        let each = self.due.iter().map(|(id, due)| {
            let open = self.open_matches(id);
            let what = if open.len() > 3 { format!("{} matches", open.len()) } else { open.join(", ") };
            format!("{id} to report {what} (until {})", due.written)
        });
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| format!("waiting for {}", each.join(" and ")))
    }
}
