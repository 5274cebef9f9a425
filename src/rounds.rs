//! The round loop. First start, restart and lost referee are one act: announce what is unfinished, wait, look again.

use crate::{
    floor::Floor,
    league::{League, Match, Member},
    liveness::{Liveness, liveness, patience},
    protocol::Kind,
    registration,
};
use std::{
    collections::BTreeMap,
    io,
    sync::mpsc::{Receiver, TryRecvError},
    time::{Duration, Instant},
};

/// How often the loop looks at what no event tells: deadlines, and what couriers have heard.
const TICK: Duration = Duration::from_millis(100);
/// How long a round waits until its announcement has reached the players, and a table until the last is out.
const SWEEP: Duration = Duration::from_secs(1);

/// Plays the league from where it stands to its end, and tells everybody. `resumed`: it had started before this
/// program did; then the last news is told again (R9).
pub fn play(floor: &Floor, resumed: bool) -> io::Result<()> {
    floor.warn_of_the_unreachable();
    let mut told = Told { results: floor.record.read(|league| league.played.len()), sweep: None };
    floor.write_records();
    if resumed {
        told.sweep = Some((floor.send_table(), Instant::now()));
        let last = floor.record.read(League::rounds_completed);
        if last > 0 {
            floor.send_round_completed(last);
        }
    }
    while let Some(round) = floor.record.read(League::open_round) {
        floor.screen.round(&floor.record, round);
        Round::new(floor, round).play(&mut told);
        floor.send_round_completed(round);
    }
    floor.screen.end(&floor.record);
    floor.end()
}

/// What has been told so far.
struct Told {
    /// How many results.
    results: usize,
    /// The last table that was sent, and when: it breaks off when it has reached everybody.
    sweep: Option<(Receiver<()>, Instant)>,
}

/// What an assignment depends on: if anything of it changes, it is announced again.
#[derive(Clone, PartialEq)]
struct Assignment {
    referee_id: String,
    /// How often its referee, player A and player B have registered.
    registrations: [u32; 3],
    tokens: [String; 2],
}

struct Round<'a> {
    floor: &'a Floor,
    round: u32,
    began: Instant,
    /// What has been announced to the players, by match.
    players_told: BTreeMap<String, Assignment>,
    /// What has been announced to the referees, by match.
    referees_told: BTreeMap<String, Assignment>,
    /// When the referees may be told; known once the players have been.
    lead_over: Option<Instant>,
    /// How many matches a referee was given, and by when it must have reported them, counted from `began`.
    due: BTreeMap<String, (usize, Duration)>,
    pinged: Instant,
}

impl Round<'_> {
    fn new(floor: &Floor, round: u32) -> Round<'_> {
        let now = Instant::now();
        Round {
            floor,
            round,
            began: now,
            players_told: BTreeMap::new(),
            referees_told: BTreeMap::new(),
            lead_over: None,
            due: BTreeMap::new(),
            pinged: now,
        }
    }

    /// Looks, tells, hands out and waits, until every match of the round has a result.
    fn play(&mut self, told: &mut Told) {
        loop {
            let (changes, over) = self.look(|league| (league.changes, league.open_round() != Some(self.round)));
            self.floor.screen.arrivals(&self.floor.record, None);
            self.tell_results(told, over);
            if over {
                return;
            }
            self.hand_out();
            self.floor.record.wait(TICK, |league| league.changes != changes);
        }
    }

    fn look<T>(&self, ask: impl FnOnce(&League) -> T) -> T {
        self.floor.record.read(ask)
    }

    /// Sees to it that every open match has a referee that is there, and that all have been told.
    fn hand_out(&mut self) {
        let referees = self.referees();
        let those = |wanted: Liveness| -> Vec<String> {
            referees.iter().filter(|(_, how)| *how == wanted).map(|(id, _)| id.clone()).collect()
        };
        let mut present = those(Liveness::Alive);
        if present.is_empty() {
            present = those(Liveness::Overdue);
        }
        for (id, how) in referees.iter().filter(|(_, how)| *how != Liveness::Alive) {
            self.forget(id, *how);
        }
        if present.is_empty() {
            return self.floor.stall(Some("no referee is left: the league waits until one registers or answers again"));
        }
        let round = self.round;
        let assigned = self.floor.record.commit(|league| {
            let token = |id: &str| registration::token(id, &crate::files::secret(self.floor.token_length));
            Ok::<_, io::Error>((league.assign(round, &present, token), ()))
        });
        match assigned {
            Ok(()) => {
                self.floor.stall(None);
                self.announce();
            }
            Err(full) => self.floor.stall(Some(&full.to_string())), // tried again with the next look
        }
    }

    /// Every referee, and whether it counts. From time to time they are asked whether they are there.
    fn referees(&mut self) -> Vec<(String, Liveness)> {
        let ping = self.pinged.elapsed() >= self.floor.ping_every;
        if ping {
            self.pinged = Instant::now();
        }
        let registered: Vec<(String, u32)> = self.look(|league| {
            let referees = league.members(Kind::Referee).into_iter();
            referees.map(|referee| (referee.id.clone(), referee.registrations)).collect()
        });
        let now = self.began.elapsed();
        let mut referees = Vec::new();
        for (id, registrations) in registered {
            if ping {
                self.floor.couriers.ping(&id);
            }
            let due = self.due.get(&id).map(|(_, due)| *due);
            let how = liveness(self.floor.couriers.heard(&id), registrations, due, now);
            referees.push((id, how));
        }
        referees
    }

    /// A referee is not what it should be: what it was told does not count any more.
    fn forget(&mut self, referee_id: &str, how: Liveness) {
        let held = self.referees_told.len();
        self.referees_told.retain(|_, told| told.referee_id != referee_id);
        self.due.remove(referee_id);
        if self.referees_told.len() < held {
            let words =
                format!("{referee_id} is {}: its matches are announced anew", format!("{how:?}").to_lowercase());
            self.floor.warn("referee_lost", &words);
        }
    }

    /// Announces what has changed: first to the players, then, when that has reached them and the lead has
    /// passed, to the referees (R6).
    fn announce(&mut self) {
        let (round, words) = (self.round, format!("round-{}-announce", self.round));
        let current: BTreeMap<String, Assignment> =
            self.look(|league| league.open_matches(round).filter_map(|game| assignment(league, game)).collect());
        let news = |told: &BTreeMap<String, Assignment>| current.iter().any(|(id, it)| told.get(id) != Some(it));
        let copy = |league: &League, reader: &Member| league.announcement(round, reader).into();
        if news(&self.players_told) {
            let out = self.floor.send(&[Kind::Player], &words, Some(round), copy);
            let _ = out.recv_timeout(SWEEP);
            self.lead_over.get_or_insert(Instant::now() + self.floor.lead);
            self.players_told.clone_from(&current);
        }
        if news(&self.referees_told) && self.lead_over.is_some_and(|over| Instant::now() >= over) {
            self.floor.send(&[Kind::Referee], &words, Some(round), copy);
            self.expect_reports();
            self.referees_told = current;
        }
    }

    /// Notes by when each referee must have reported. More matches give it more time; an assignment that only
    /// comes again does not.
    fn expect_reports(&mut self) {
        let (now, round, limit) = (self.began.elapsed(), self.round, self.floor.match_limit);
        let given = self.look(|league| {
            let own = |id: &str| league.open_matches(round).filter(|game| game.referee() == Some(id)).count();
            let referees = league.members(Kind::Referee).into_iter();
            referees.map(|it| (it.id.clone(), own(&it.id), it.max_concurrent_matches)).collect::<Vec<_>>()
        });
        for (id, matches, at_once) in given.into_iter().filter(|(_, matches, _)| *matches > 0) {
            let due = self.due.entry(id).or_default();
            if matches > due.0 {
                *due = (matches, now + patience(matches, at_once, limit));
            }
        }
    }

    /// Tells people and players what has been recorded since the last look. Tables are sent one at a time: under
    /// load one stands for many results. The last table of a round is always sent.
    fn tell_results(&self, told: &mut Told, over: bool) {
        let results = self.look(|league| league.played.len());
        if results == told.results {
            return;
        }
        let last_is_out = match &told.sweep {
            Some((out, when)) => out.try_recv() == Err(TryRecvError::Disconnected) || when.elapsed() >= SWEEP,
            None => true,
        };
        if !last_is_out && !over {
            return;
        }
        self.floor.screen.results(&self.floor.record, told.results);
        self.floor.write_records();
        told.sweep = Some((self.floor.send_table(), Instant::now()));
        told.results = results;
    }
}

/// A match's id and what its announcement depends on; nothing before it has a referee.
fn assignment(league: &League, game: &Match) -> Option<(String, Assignment)> {
    let order = game.order.as_ref()?;
    let times = |id: &String| league.members.get(id).map_or(0, |member| member.registrations);
    let [a, b] = &game.players;
    let registrations = [times(&order.referee_id), times(a), times(b)];
    let (referee_id, tokens) = (order.referee_id.clone(), order.tokens.clone());
    Some((game.id.clone(), Assignment { referee_id, registrations, tokens }))
}
