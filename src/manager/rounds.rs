//! The round loop: it plays the league from where it stands to its end.
//!
//! The first start, a restart and a lost referee are one act: see to it that every open match has a
//! referee that can be used, let players and then referees be told, wait until something changes,
//! and look again. Who tells them, and what was heard from them, is the board's business
//! (`board.rs`). Who gets which match is decided in `assignment.rs`. When the loop ends,
//! `src/manager.rs` closes the league.
//!
//! A round goes through these states. Its matches are *assigned* to referees; players are told,
//! which is the *announcement*; the *lead* passes; the announcement is *released* to the referees;
//! and they *report*. Read next: `handlers.rs`, which takes their reports.

use crate::games;
use crate::manager::Manager;
use crate::manager::contact::{RefereeState, Waiting};
use crate::manager::control::called;
use crate::manager::league::{League, Match};
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
/// After so long without an event the league says whom it waits for.
const SILENCE: Duration = Duration::from_secs(2);
/// What the league waits for when no referee can be used.
const NOBODY: &str = "no referee is left: the league waits until one registers or answers again";

/// A moment to come, for the clock and as text.
struct Deadline {
    at: Instant,
    written: Timestamp,
}

impl Deadline {
    fn after(time: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + time,
            written: Timestamp::now().plus(time),
        }
    }

    fn has_passed(&self) -> bool {
        Instant::now() >= self.at
    }
}

/// How many matches of the open round a referee must have reported, and by when.
struct Due {
    matches: usize,
    until: Deadline,
}

/// The rounds of a manager's league as they are played.
pub struct Rounds<'a> {
    manager: &'a Manager,
    /// The open round.
    round: u32,
    /// When its matches may begin, once they are announced: after the lead, which passes once,
    /// however often the round is announced.
    begins: Option<Deadline>,
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
            round: 0,
            begins: None,
            due: BTreeMap::new(),
            stood: BTreeMap::new(),
        }
    }

    /// Plays until no match is open.
    pub fn play(&mut self) {
        let (store, board) = (&self.manager.store, &self.manager.board);
        let mut changes = 0;
        let mut last_event = Instant::now();
        let mut said = None;
        let open = |league: &League| Some((league.open_round()?, league.changes));
        while let Some((round, now_changes)) = store.read(open) {
            let heard = board.changes();
            if now_changes != changes {
                changes = now_changes;
                last_event = Instant::now();
            }
            if round != self.round {
                self.round = round;
                self.begins = None;
                self.due.clear(); // a new round has time of its own
            }
            let waiting = self.look(last_event);
            board.note_waiting(waiting.clone());
            if let Some(words) = waiting.reason.as_ref().filter(|_| waiting.reason != said) {
                self.warn("waiting", words);
            }
            said = waiting.reason;
            store.wait(TICK, |league| {
                league.changes != changes || board.changes() != heard
            });
        }
        board.post();
        board.note_waiting(Waiting::default());
    }

    /// Brings the open round on as far as it goes now, and says what is waited for.
    fn look(&mut self, last_event: Instant) -> Waiting {
        let obstacle = match self.assign() {
            Ok(obstacle) => obstacle,
            Err(unwritable) => Some(unwritable.to_string()), // tried again with the next look
        };
        self.manager.board.post();
        let mut next_at = None;
        if obstacle.is_none() {
            next_at = self.release_after_lead();
            self.expect_reports();
        }
        let round = self.round;
        let lead =
            next_at.map(|at| format!("round {round} is announced: its matches begin at {at}"));
        let lead_end = self.begins.as_ref().map_or(last_event, |begins| begins.at);
        let silence = last_event.max(lead_end).elapsed(); // the lead is nobody's silence
        let reason = match obstacle.or(lead) {
            None if silence >= SILENCE => self.whom_we_wait_for(),
            reason => reason,
        };
        Waiting { reason, next_at }
    }

    /// Assigns what can be; or says why nothing can be played at the moment. First every match of a
    /// player whom the operator removed is recorded without being played, which is a walkover: one
    /// event at a time.
    fn assign(&mut self) -> io::Result<Option<String>> {
        let (Manager { store, board, .. }, round) = (self.manager, self.round);
        let walkover = |league: &League| league.walkover(round, Timestamp::now());
        while store.decide(walkover)? {}
        self.look_at_referees();
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
        Ok(None)
    }

    /// Notes who is overdue; and says of each referee that cannot be counted on since the last look
    /// (lost, refusing or overdue) what happens to its matches.
    fn look_at_referees(&mut self) {
        let Manager { store, board, .. } = self.manager;
        for id in store.read(|league| league.ids(Kind::Referee)) {
            if let Some(due) = self.due.get(&id).filter(|due| due.until.has_passed()) {
                let why = format!("has not reported all its matches by {}", due.until.written);
                board.note_referee(&id, RefereeState::Overdue(why));
            }
            let state = board.contact(&id).referee;
            let before = self.stood.insert(id.clone(), state.clone());
            if before.unwrap_or_default() == state {
                continue;
            }
            let why = match state {
                RefereeState::Alive => continue,
                RefereeState::Lost(why)
                | RefereeState::Refusing(why)
                | RefereeState::Overdue(why) => why,
            };
            self.due.remove(&id);
            board.tell_anew(&id);
            if !store.read(|league| awaited_matches(league, self.round, &id).is_empty()) {
                let words = format!("{id} {why}; its matches are announced anew");
                self.warn("referee_lost", &words);
            }
        }
    }

    /// Lets the referees be told of a round once the lead has passed; before that, says when it
    /// will have.
    fn release_after_lead(&mut self) -> Option<Timestamp> {
        let Manager {
            store, board, lead, ..
        } = self.manager;
        let begins = self.begins.get_or_insert_with(|| Deadline::after(*lead));
        if !begins.has_passed() {
            return Some(begins.written);
        }
        store.read(|league| board.release(league));
        None
    }

    /// Notes by when each referee must have reported. More matches give a referee more time; a
    /// repeated announcement of the same matches does not.
    fn expect_reports(&mut self) {
        let Manager {
            store,
            board,
            program,
            ..
        } = self.manager;
        store.read(|league| {
            for referee in league.members(Kind::Referee) {
                let id = &referee.id;
                let matches = league.open_matches_of(id, self.round).count();
                if matches == 0 {
                    self.due.remove(id);
                }
                let known = self.due.get_mut(id).map_or(0, |due| {
                    // so a match that comes in the place of a reported one counts as more
                    due.matches = due.matches.min(matches);
                    due.matches
                });
                if matches > known && board.has_heard_announcement(id) {
                    let batches = (matches as u32).div_ceil(referee.max_concurrent_matches.max(1));
                    let game = games::named(&program.config.league.game_type);
                    let longest = program
                        .config
                        .match_limit(game.map_or(1, |game| game.turns));
                    let until = Deadline::after(longest * batches);
                    self.due.insert(id.clone(), Due { matches, until });
                }
            }
        });
    }

    /// Whom the league waits for, and until when.
    fn whom_we_wait_for(&self) -> Option<String> {
        let mut awaited = Vec::new();
        for (id, due) in &self.due {
            let read = |league: &League| awaited_matches(league, self.round, id);
            let open = self.manager.store.read(read);
            let what = match open.len() {
                0..=3 => open.join(", "),
                many => format!("{many} matches"),
            };
            let until = due.until.written;
            awaited.push(format!("{id} to report {what} (until {until})"));
        }
        (!awaited.is_empty()).then(|| format!("waiting for {}", awaited.join(" and ")))
    }

    fn warn(&self, event_type: &str, words: &str) {
        self.manager.say(Level::Warning, event_type, words);
    }
}

/// The open matches that a referee has, with who plays in them: `R1M3 of Ada (P01) and Bob (P06)`.
fn awaited_matches(league: &League, round: u32, referee: &str) -> Vec<String> {
    let named = |game: &Match| {
        let players = game.players.each_ref();
        let players = players.map(|id| called(&league.members[id]));
        format!("{} of {}", game.id, players.join(" and "))
    };
    league.open_matches_of(referee, round).map(named).collect()
}
