//! The round loop. First start, restart and lost referee are one act: see to it that every open match has a referee that
//! is there, let them be told, wait, look again. Who tells, and what was heard, is in `board.rs`.

use crate::manager::board::{Board, Standing};
use crate::manager::journal::Store;
use crate::manager::league::{Announcement, League, Match};
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

/// How often the loop looks at what nobody tells: time limits.
const TICK: Duration = Duration::from_millis(100);
/// How long referees wait at most until all players know of a round.
const KNOWN: Duration = Duration::from_secs(1);
/// After so long without an event the league says whom it waits for.
const SILENCE: Duration = Duration::from_secs(2);
/// What it waits for when no referee counts.
const NOBODY: &str = "no referee is left: the league waits until one registers or answers again";

/// What a referee must have reported, by when; and the same as a person reads it.
struct Due {
    matches: usize,
    until: Instant,
    written: Timestamp,
}

/// The rounds as they are played.
pub struct Rounds<'a> {
    program: &'a Program,
    store: &'a Store,
    board: &'a Board,
    terminal: Terminal,
    /// Between the announcement to the players and that to the referees.
    lead: Duration,
    due: BTreeMap<String, Due>,
    /// How each referee stood when last looked at.
    stood: BTreeMap<String, Standing>,
    /// What players are being told, and since when.
    newest: (Announcement, Instant),
    /// Of a round: when the lead has passed, so that referees may be told.
    lead_over: Option<(u32, Instant)>,
}

/// Plays the league from where it stands to its end.
pub fn play(program: &Program, store: &Store, board: &Board, terminal: Terminal, lead: Duration) {
    let (due, stood, lead_over) = Default::default();
    let newest = (Announcement::default(), Instant::now());
    let mut rounds = Rounds {
        program,
        store,
        board,
        terminal,
        lead,
        due,
        stood,
        newest,
        lead_over,
    };
    let (mut known, mut since, mut stuck) = (0, Instant::now(), false);
    while let Some(round) = store.read(League::open_round) {
        let (changes, heard) = (store.read(|league| league.changes), board.changes());
        if changes != known {
            (known, since) = (changes, Instant::now());
        }
        let obstacle = rounds
            .step(round)
            .unwrap_or_else(|full| Some(full.to_string())); // tried again with the next look
        let was_stuck = std::mem::replace(&mut stuck, obstacle.is_some());
        if was_stuck && !stuck {
            rounds.warn("going_on", "the league goes on");
        }
        let silent = || {
            rounds
                .whom_we_wait_for(round)
                .filter(|_| since.elapsed() >= SILENCE)
        };
        let reason = obstacle.or_else(silent);
        if board.wait_for(reason.clone()) {
            reason
                .iter()
                .for_each(|words| rounds.warn("waiting", words));
        }
        store.wait(TICK, |league| {
            league.changes != changes || board.changes() != heard
        });
    }
    board.wait_for(None);
}

impl Rounds<'_> {
    /// Looks, assigns and releases; or says why nothing can be played at the moment.
    fn step(&mut self, round: u32) -> io::Result<Option<String>> {
        while self
            .store
            .decide(|league| league.walkover(round, Timestamp::now()))?
        {}
        if self.store.read(League::rests) {
            return Ok(Some(PAUSED.into()));
        }
        let present = self.present(round);
        if present.is_empty() {
            return Ok(Some(NOBODY.into()));
        }
        let digits = self.program.config.system.security.token_length.0;
        self.store
            .decide(|league| league.assign(round, &present, |id| token(id, &secret(digits))))?;
        self.release(round);
        self.expect_reports(round);
        Ok(None)
    }

    /// The referees that count: who is alive; if nobody is, who is overdue. Of one that has ceased to count it is
    /// forgotten what it was told.
    fn present(&mut self, round: u32) -> Vec<String> {
        self.due
            .iter()
            .filter(|(_, due)| Instant::now() > due.until)
            .for_each(|(id, _)| self.board.is_overdue(id));
        let referees: Vec<String> = self.store.read(|league| {
            league
                .members(Kind::Referee)
                .into_iter()
                .map(|it| it.id.clone())
                .collect()
        });
        let now: BTreeMap<_, _> = referees
            .into_iter()
            .map(|id| (id.clone(), self.board.contact(&id)))
            .collect();
        for (id, contact) in &now {
            let before = self
                .stood
                .insert(id.clone(), contact.standing.clone())
                .unwrap_or_default();
            let why = match &contact.standing {
                how if *how == before => continue,
                Standing::Alive => continue,
                Standing::Lost => contact.trouble.clone().unwrap_or_default(),
                Standing::Refusing(why) => format!("{why}, so it refuses"),
                Standing::Overdue => {
                    let until = self
                        .due
                        .get(id)
                        .map_or("in its time".into(), |due| format!("by {}", due.written));
                    format!("has not reported all its matches {until}")
                }
            };
            self.due.remove(id);
            self.board.forget(id);
            if !self.open_matches(round, id).is_empty() {
                self.warn(
                    "referee_lost",
                    &format!("{id} {why}; its matches are announced anew"),
                );
            }
        }
        let those = |wanted| {
            now.iter()
                .filter(move |(_, it)| it.standing == wanted)
                .map(|(id, _)| id.clone())
                .collect()
        };
        let alive: Vec<String> = those(Standing::Alive);
        if alive.is_empty() {
            those(Standing::Overdue)
        } else {
            alive
        }
    }

    /// The open matches that a referee has.
    fn open_matches(&self, round: u32, id: &str) -> Vec<String> {
        let own = |game: &&Match| game.referee() == Some(id);
        self.store.read(|league| {
            league
                .open_matches(round)
                .filter(own)
                .map(|game| game.id.clone())
                .collect()
        })
    }

    /// Lets referees be told as soon as the players know (but for those that do not answer) and the lead has passed.
    fn release(&mut self, round: u32) {
        let now = Instant::now();
        let newest = self.store.read(League::newest_announcement);
        if self.newest.0 != newest {
            self.newest = (newest, now);
        }
        if self.board.released(None) == newest {
            return;
        }
        let knows = |id: &String| {
            Some(self.board.contact(id))
                .is_some_and(|it| it.announced >= newest || it.trouble.is_some())
        };
        let players = self.store.read(|league| {
            league
                .members(Kind::Player)
                .into_iter()
                .map(|it| it.id.clone())
                .collect()
        });
        let players: Vec<String> = players;
        if self.newest.1.elapsed() < KNOWN && !players.iter().all(knows) {
            return;
        }
        let known = self.lead_over.filter(|(of, _)| *of == round);
        let lead_over = known.unwrap_or((round, now + self.lead));
        if known.is_none() {
            self.lead_over = Some(lead_over);
            self.board
                .note_next_at(Some(Timestamp::now().plus(self.lead)));
        }
        if now >= lead_over.1 {
            self.board.note_next_at(None);
            self.board.released(Some(newest));
        }
    }

    /// Notes by when each referee must have reported. More matches give it more time; an assignment that only comes
    /// again does not.
    fn expect_reports(&mut self, round: u32) {
        let mut given = BTreeMap::<String, (usize, u32)>::new();
        self.store.read(|league| {
            let referees = league
                .assigned(round)
                .filter_map(|(_, it)| league.members.get(&it.referee_id));
            referees.for_each(|it| {
                given
                    .entry(it.id.clone())
                    .or_insert((0, it.max_concurrent_matches))
                    .0 += 1
            });
        });
        self.due.retain(|id, _| given.contains_key(id));
        for (id, (matches, at_once)) in given {
            let told = self.board.contact(&id).announced >= self.newest.0;
            if told && self.due.get(&id).is_none_or(|due| matches > due.matches) {
                let time = self.program.config.match_limit()
                    * matches.div_ceil(at_once.max(1) as usize) as u32;
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
    fn whom_we_wait_for(&self, round: u32) -> Option<String> {
        let left = self
            .lead_over
            .map(|(_, over)| over.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            let begin = Timestamp::now().plus(left);
            return Some(format!(
                "round {round} is announced: its matches begin at {begin}"
            ));
        }
        let to_report = |(id, due): (&String, &Due)| {
            let open = self.open_matches(round, id);
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

    /// Says something on the screen and in the log.
    fn warn(&self, event_type: &str, words: &str) {
        self.program.log().say(Level::Warning, event_type, words);
        self.terminal.say(&shown(words));
    }
}
