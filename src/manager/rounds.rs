//! The round loop: it plays the league from where it stands to its end.
//!
//! The first start, a restart and a lost referee are one act: see to it that every open match has a referee that can be
//! used, let players and then referees be told, wait until something changes, and look again. Who tells them, and what
//! was heard from them, is the board's business (`board.rs`).
//!
//! A round goes through these states. Its matches are *assigned* to referees; players are told, which is the
//! *announcement*; the *lead* passes; the announcement is *released* to the referees; and they *report*.

use crate::manager::board::{Board, RefereeState};
use crate::manager::journal::Store;
use crate::manager::league::{League, Match};
use crate::manager::queries::PAUSED;
use crate::net::log::Level;
use crate::net::secret::secret;
use crate::program::Program;
use crate::program::terminal::{Terminal, shown};
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

/// The newest announcement: since when players are being told, and when its matches may begin.
struct Announced {
    number: u64,
    round: u32,
    since: Instant,
    begins: Instant,
}

/// The rounds as they are played.
pub struct Rounds<'a> {
    program: &'a Program,
    store: &'a Store,
    board: &'a Board,
    terminal: Terminal,
    /// Between the announcement to the players and the release to the referees.
    lead: Duration,
    announced: Option<Announced>,
    /// What each referee still has to report.
    due: BTreeMap<String, Due>,
    /// How each referee stood when the loop last looked.
    stood: BTreeMap<String, RefereeState>,
}

impl<'a> Rounds<'a> {
    /// The rounds of the league in `store`.
    pub fn new(
        program: &'a Program,
        store: &'a Store,
        board: &'a Board,
        terminal: Terminal,
        lead: Duration,
    ) -> Rounds<'a> {
        Rounds {
            program,
            store,
            board,
            terminal,
            lead,
            announced: None,
            due: BTreeMap::new(),
            stood: BTreeMap::new(),
        }
    }

    /// Plays until no match is open.
    pub fn play(&mut self) {
        let mut changes = 0;
        let mut last_event = Instant::now();
        let mut was_stuck = false;
        while let Some(round) = self.store.read(League::open_round) {
            let now_changes = self.store.read(|league| league.changes);
            let heard = self.board.changes();
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
            was_stuck = obstacle.is_some();
            let is_silent = last_event.elapsed() >= SILENCE;
            let reason = obstacle.or_else(|| self.whom_we_wait_for(round).filter(|_| is_silent));
            let is_news = self.board.waiting() != reason;
            self.board.note_waiting(reason.clone());
            if let Some(words) = reason.filter(|_| is_news) {
                self.warn("waiting", &words);
            }
            self.store.wait(TICK, |league| {
                league.changes != changes || self.board.changes() != heard
            });
        }
        self.board.note_waiting(None);
    }

    /// Assigns and releases what can be; or says why nothing can be played at the moment.
    fn step(&mut self, round: u32) -> io::Result<Option<String>> {
        let walkover = |league: &League| league.walkover(round, Timestamp::now());
        while self.store.decide(walkover)? {}
        self.look_at_referees(round);
        if self.store.read(|league| league.paused) {
            self.board.note_next_at(None);
            return Ok(Some(PAUSED.into()));
        }
        let usable = self.usable_referees();
        if usable.is_empty() {
            return Ok(Some(NOBODY.into()));
        }
        let digits = self.program.config.system.security.token_length.0;
        let new_token = |player: &str| token(player, &secret(digits));
        self.store
            .decide(|league| league.assign(round, &usable, new_token))?;
        self.release_when_due(round);
        self.expect_reports(round);
        Ok(None)
    }

    /// Notes who is overdue; and says of each referee that was lost since the last look what happens to its matches.
    fn look_at_referees(&mut self, round: u32) {
        let now = Instant::now();
        let late = self.due.iter().filter(|(_, due)| now > due.until);
        late.for_each(|(id, _)| self.board.note_referee(id, RefereeState::Overdue));
        for id in self.ids(Kind::Referee) {
            let state = self.board.contact(&id).referee;
            let before = self.stood.insert(id.clone(), state.clone());
            if before.unwrap_or_default() == state {
                continue;
            }
            let why = match state {
                RefereeState::Alive => continue,
                RefereeState::Lost(why) => why,
                RefereeState::Refusing(why) => format!("{why}, so it refuses its matches"),
                RefereeState::Overdue => match self.due.get(&id) {
                    Some(due) => format!("has not reported all its matches by {}", due.written),
                    None => "has not reported all its matches in its time".into(),
                },
            };
            self.due.remove(&id);
            self.board.tell_anew(&id);
            if !self.open_matches(round, &id).is_empty() {
                let words = format!("{id} {why}; its matches are announced anew");
                self.warn("referee_lost", &words);
            }
        }
    }

    /// The referees that may be given matches: those that are alive; if there are none, those that are overdue.
    fn usable_referees(&self) -> Vec<String> {
        let those = |wanted: RefereeState| {
            let mut ids = self.ids(Kind::Referee);
            ids.retain(|id| self.board.contact(id).referee == wanted);
            ids
        };
        let alive = those(RefereeState::Alive);
        if alive.is_empty() {
            those(RefereeState::Overdue)
        } else {
            alive
        }
    }

    /// Looks whether it is time to tell the referees: the players have been told (or do not answer), and the lead has
    /// passed.
    fn release_when_due(&mut self, round: u32) {
        let now = Instant::now();
        let number = self.store.read(|league| league.announcements);
        let announced = match self.announced.take() {
            Some(newest) if newest.number == number && newest.round == round => newest,
            older => Announced {
                number,
                round,
                since: now,
                begins: match older {
                    Some(older) if older.round == round => older.begins, // the lead of a round passes once
                    _ => now + self.lead,
                },
            },
        };
        let left = announced.begins.saturating_duration_since(now);
        let waited = now - announced.since >= PLAYERS_TOLD;
        self.announced = Some(announced);
        if self.board.is_released(number) {
            return;
        }
        self.board
            .note_next_at((!left.is_zero()).then(|| Timestamp::now().plus(left)));
        let is_told = |id: &String| {
            let contact = self.board.contact(id);
            contact.announced >= number || contact.trouble.is_some()
        };
        if left.is_zero() && (waited || self.ids(Kind::Player).iter().all(is_told)) {
            self.board.release(number);
        }
    }

    /// Notes by when each referee must have reported. More matches give a referee more time; a repeated announcement of
    /// the same matches does not.
    fn expect_reports(&mut self, round: u32) {
        let mut given = BTreeMap::<String, usize>::new();
        self.store.read(|league| {
            for (_, assignment) in league.assigned(round) {
                *given.entry(assignment.referee_id.clone()).or_default() += 1;
            }
        });
        self.due.retain(|id, _| given.contains_key(id));
        let number = self.announced.as_ref().map_or(0, |newest| newest.number);
        for (id, matches) in given {
            let is_told = self.board.contact(&id).announced >= number;
            let known = self.due.get(&id).map_or(0, |due| due.matches);
            if !is_told || matches <= known {
                continue;
            }
            let capacity = self.store.read(|league| {
                let referee = league.members.get(&id);
                referee.map_or(1, |it| it.max_concurrent_matches.max(1) as usize)
            });
            let time = self.program.config.match_limit() * matches.div_ceil(capacity) as u32;
            let due = Due {
                matches,
                until: Instant::now() + time,
                written: Timestamp::now().plus(time),
            };
            self.due.insert(id, due);
        }
    }

    /// Whom the league waits for, and until when.
    fn whom_we_wait_for(&self, round: u32) -> Option<String> {
        if let Some(next_at) = self.board.next_at() {
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

    /// Says something on the screen and in the log.
    fn warn(&self, event_type: &str, words: &str) {
        self.program.log().say(Level::Warning, event_type, words);
        self.terminal.say(&shown(words));
    }

    fn ids(&self, kind: Kind) -> Vec<String> {
        let members = |league: &League| {
            league
                .members(kind)
                .iter()
                .map(|it| it.id.clone())
                .collect()
        };
        self.store.read(members)
    }

    /// The open matches that a referee has, with who plays in them: `R1M3 of P01 and P06`.
    fn open_matches(&self, round: u32, referee: &str) -> Vec<String> {
        let own = |game: &&Match| game.referee() == Some(referee);
        self.store.read(|league| {
            let open = league.open_matches(round).filter(own);
            let named = |game: &Match| format!("{} of {}", game.id, game.players.join(" and "));
            open.map(named).collect()
        })
    }
}
