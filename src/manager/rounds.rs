//! The round loop: it plays the league from where it stands to its end.
//!
//! The first start, a restart and a lost referee are one act: see to it that every open match has a referee that can be
//! used, let players and then referees be told, wait until something changes, and look again. Who tells them, and what
//! was heard from them, is the board's business (`board.rs`). Who gets which match is decided in `assignment.rs`. When
//! the loop ends, `src/manager.rs` closes the league.
//!
//! A round goes through these states. Its matches are *assigned* to referees; players are told, which is the
//! *announcement*; the *lead* passes; the announcement is *released* to the referees; and they *report*.

use crate::manager::Manager;
use crate::manager::board::{RefereeState, Waiting};
use crate::manager::control::called;
use crate::manager::league::{League, Match, Member};
use crate::manager::queries::PAUSED;
use crate::net::log::Level;
use crate::net::secret::secret;
use crate::protocol::Kind;
use crate::wire::{Timestamp, token};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// How often the loop looks at what nobody tells it: time limits.
const TICK: Duration = Duration::from_millis(100);
/// How long referees wait at most until all players have been told of a round.
const PLAYERS_TOLD: Duration = Duration::from_secs(1);
/// After so long without an event the league says whom it waits for.
const SILENCE: Duration = Duration::from_secs(2);
/// What the league waits for when no referee can be used.
const NOBODY: &str = "no referee is left: the league waits until one registers or answers again";

/// How many matches a referee must have reported, and by when, once for the clock and once as text.
struct Due {
    matches: usize,
    until: Instant,
    written: Timestamp,
}

/// What players are being told: the number of the newest announcement and since when it is the newest, its round, and
/// when the matches of that round may begin, for the clock and as text.
struct Announced {
    number: u64,
    since: Instant,
    round: u32,
    begins: Instant,
    begins_at: Timestamp,
}

/// The rounds of a manager's league as they are played.
pub struct Rounds<'a> {
    manager: &'a Manager,
    announced: Announced,
    /// What each referee still has to report.
    due: BTreeMap<String, Due>,
    /// How each referee stood when the loop last looked.
    stood: BTreeMap<String, RefereeState>,
}

impl<'a> Rounds<'a> {
    /// The rounds of the manager's league.
    pub fn new(manager: &'a Manager) -> Rounds<'a> {
        Rounds {
            manager,
            announced: Announced {
                number: 0,
                since: Instant::now(),
                round: 0,
                begins: Instant::now(),
                begins_at: Timestamp::now(),
            },
            due: BTreeMap::new(),
            stood: BTreeMap::new(),
        }
    }

    /// Plays until no match is open.
    pub fn play(&mut self) {
        let (store, board) = (&self.manager.store, &self.manager.board);
        let mut changes = 0;
        let mut last_event = Instant::now();
        let mut was_stuck = false;
        let mut said = None;
        if store.read(|league| league.paused) {
            self.warn("waiting", PAUSED); // a later pause is an order, and its answer is shown
        }
        let open = |league: &League| Some((league.open_round()?, league.changes));
        while let Some((round, now_changes)) = store.read(open) {
            let heard = board.changes();
            if now_changes != changes {
                changes = now_changes;
                last_event = Instant::now();
            }
            let obstacle = match self.step(round) {
                Ok(obstacle) => obstacle,
                Err(unwritable) => Some(unwritable.to_string()), // tried again with the next look
            };
            if was_stuck && obstacle.is_none() {
                self.warn("going_on", "the league goes on");
            }
            was_stuck = obstacle.as_ref().is_some_and(|why| why != PAUSED);
            let next_at = self.next_at().filter(|_| obstacle.is_none());
            let begun = self.announced.begins; // the lead is nobody's silence
            let since = next_at.map_or(last_event.max(begun), |_| last_event);
            let is_silent = since.elapsed() >= SILENCE;
            let whom = || self.whom_we_wait_for(round, next_at).filter(|_| is_silent);
            let reason = obstacle.or_else(whom);
            board.note_waiting(Waiting {
                reason: reason.clone(),
                next_at,
            });
            let is_news = |words: &&String| reason != said && *words != PAUSED;
            if let Some(words) = reason.as_ref().filter(is_news) {
                self.warn("waiting", words);
            }
            said = reason;
            store.wait(TICK, |league| {
                league.changes != changes || board.changes() != heard
            });
        }
        board.note_waiting(Waiting::default());
    }

    /// Assigns and releases what can be; or says why nothing can be played at the moment. First every match of a player
    /// whom the operator removed is recorded without being played, which is a walkover: one event at a time.
    fn step(&mut self, round: u32) -> io::Result<Option<String>> {
        let Manager { store, board, .. } = self.manager;
        let walkover = |league: &League| league.walkover(round, Timestamp::now());
        while store.decide(walkover)? {}
        self.look_at_referees(round);
        if store.read(|league| league.paused) {
            return Ok(Some(PAUSED.into()));
        }
        let usable = store.read(|league| board.usable_referees(league));
        if usable.is_empty() {
            return Ok(Some(NOBODY.into()));
        }
        let digits = self.manager.program.config.system.security.token_length.0;
        let new_token = |player: &str| token(player, &secret(digits));
        store.decide(|league| league.assign(round, &usable, new_token))?;
        self.release_when_due(round);
        self.expect_reports(round);
        Ok(None)
    }

    /// Notes who is overdue; and says of each referee that was lost since the last look what happens to its matches.
    fn look_at_referees(&mut self, round: u32) {
        let Manager { store, board, .. } = self.manager;
        for id in store.read(|league| league.ids(Kind::Referee)) {
            let is_late = |due: &&Due| Instant::now() > due.until;
            let missed = self.due.get(&id).filter(is_late).map(|due| due.written);
            if missed.is_some() {
                board.note_referee(&id, RefereeState::Overdue);
            }
            let state = board.contact(&id).referee;
            let before = self.stood.insert(id.clone(), state.clone());
            if before.unwrap_or_default() == state && missed.is_none() {
                continue;
            }
            let why = match state {
                RefereeState::Alive => continue,
                RefereeState::Lost(why) => why,
                RefereeState::Refusing(why) => format!("{why}, so it refuses its matches"),
                RefereeState::Overdue => {
                    let until = missed.unwrap_or_else(Timestamp::now);
                    format!("has not reported all its matches by {until}")
                }
            };
            self.due.remove(&id);
            board.tell_anew(&id);
            if !self.open_matches(round, &id).is_empty() {
                let words = format!("{id} {why}; its matches are announced anew");
                self.warn("referee_lost", &words);
            }
        }
    }

    /// Looks whether it is time to tell the referees: the players have been told (or do not answer), and the lead has
    /// passed.
    fn release_when_due(&mut self, round: u32) {
        let Manager { store, board, .. } = self.manager;
        let announced = &mut self.announced;
        let now = Instant::now();
        let number = store.read(|league| league.announcements);
        if announced.number != number {
            announced.number = number;
            announced.since = now;
        }
        // The lead of a round passes once, however often the round is announced.
        if announced.round != round {
            announced.round = round;
            announced.begins = now + self.manager.lead;
            announced.begins_at = Timestamp::now().plus(self.manager.lead);
        }
        if now < announced.begins || board.is_released(number) {
            return;
        }
        let is_told = |id: &String| {
            let contact = board.contact(id);
            contact.announced >= number || contact.trouble.is_some()
        };
        let players = || store.read(|league| league.ids(Kind::Player));
        if now - announced.since >= PLAYERS_TOLD || players().iter().all(is_told) {
            board.release(number);
        }
    }

    /// When the announced matches begin, while the lead has not passed yet.
    fn next_at(&self) -> Option<Timestamp> {
        let Announced {
            begins, begins_at, ..
        } = self.announced;
        (begins > Instant::now()).then_some(begins_at)
    }

    /// Notes by when each referee must have reported. More matches give a referee more time; a repeated announcement of
    /// the same matches does not.
    fn expect_reports(&mut self, round: u32) {
        let Manager {
            store,
            board,
            program,
            ..
        } = self.manager;
        let given = |league: &League| {
            let given = |it: &Member| {
                let matches = league.open_matches_of(&it.id, round).count();
                (it.id.clone(), it.max_concurrent_matches.max(1), matches)
            };
            let referees = league.members(Kind::Referee).into_iter();
            referees.map(given).collect::<Vec<_>>()
        };
        for (id, capacity, matches) in store.read(given) {
            if matches == 0 {
                self.due.remove(&id);
            }
            let known = self.due.get(&id).map_or(0, |due| due.matches);
            if matches <= known || board.contact(&id).announced < self.announced.number {
                continue;
            }
            let turns = (matches as u32).div_ceil(capacity);
            let time = program.config.match_limit() * turns;
            let due = Due {
                matches,
                until: Instant::now() + time,
                written: Timestamp::now().plus(time),
            };
            self.due.insert(id, due);
        }
    }

    /// Whom the league waits for, and until when.
    fn whom_we_wait_for(&self, round: u32, next_at: Option<Timestamp>) -> Option<String> {
        if let Some(next_at) = next_at {
            return Some(format!(
                "round {round} is announced: its matches begin at {next_at}"
            ));
        }
        let mut awaited = Vec::new();
        for (id, due) in &self.due {
            let open = self.open_matches(round, id);
            let what = match open.len() {
                0..=3 => open.join(", "),
                many => format!("{many} matches"),
            };
            awaited.push(format!("{id} to report {what} (until {})", due.written));
        }
        (!awaited.is_empty()).then(|| format!("waiting for {}", awaited.join(" and ")))
    }

    fn warn(&self, event_type: &str, words: &str) {
        self.manager.say(Level::Warning, event_type, words);
    }

    /// The open matches that a referee has, with who plays in them: `R1M3 of Ada (P01) and Bob (P06)`.
    fn open_matches(&self, round: u32, referee: &str) -> Vec<String> {
        let read = |league: &League| {
            let named = |game: &Match| {
                let players = game
                    .players
                    .each_ref()
                    .map(|id| called(&league.members[id]));
                format!("{} of {}", game.id, players.join(" and "))
            };
            league.open_matches_of(referee, round).map(named).collect()
        };
        self.manager.store.read(read)
    }
}
