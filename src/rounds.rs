//! The round loop. First start, restart and lost referee are one act: announce what is unfinished, wait, look again.

use crate::{
    agent::lock,
    courier::Couriers,
    journal::Record,
    league::{Event, League, Match, Member},
    liveness::{Standing, patience, standing},
    log::{Level, Log},
    protocol::{Kind, Message},
    records::Records,
    registration,
    screen::Screen,
    voice::{self, About},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError},
    },
    time::{Duration, Instant},
};

/// How often the loop looks at what no event tells: deadlines, and what couriers have heard.
const TICK: Duration = Duration::from_millis(100);
/// How long a round waits until its announcement has reached the players, and a table until the last is out.
const SWEEP: Duration = Duration::from_secs(1);

/// What the loop needs.
pub struct Floor {
    /// The league.
    pub record: Arc<Record>,
    /// The way to the agents.
    pub couriers: Couriers,
    /// The files for people.
    pub records: Records,
    /// The terminal.
    pub screen: Screen,
    /// The log.
    pub log: Arc<Log>,
    /// Between the announcement to the players and that to the referees.
    pub lead: Duration,
    /// The longest a match can take.
    pub match_limit: Duration,
    /// How often a referee at work is asked whether it is there.
    pub ping_every: Duration,
    /// How long the last message is tried.
    pub farewell: Duration,
    /// Hex digits of a token.
    pub token_length: u32,
    /// What the league waits for, if it does.
    pub stalled: Mutex<Option<String>>,
}

impl Floor {
    /// Plays the league from where it stands to its end, and tells everybody.
    pub fn play(&self, resumed: bool) -> io::Result<()> {
        self.warn_of_the_unreachable();
        let mut told = Told { results: self.record.read(|league| league.played.len()), sweep: None };
        self.records.write(&self.record)?;
        if resumed {
            told.sweep = Some((self.send_table(), Instant::now()));
            let last = self.record.read(|league| league.open_round().unwrap_or(league.rounds() + 1) - 1);
            if last > 0 {
                self.send_round_completed(last);
            }
        }
        while let Some(round) = self.record.read(League::open_round) {
            self.screen.round(&self.record, round);
            Round::new(self, round).play(&mut told)?;
            self.send_round_completed(round);
        }
        self.end()
    }

    fn warn_of_the_unreachable(&self) {
        let ids = self.record.read(|league| league.members.keys().cloned().collect::<Vec<_>>());
        for id in ids.iter().filter(|id| self.couriers.heard(id).unreachable) {
            let words = format!("{id} cannot be reached; it stays in the schedule, and forfeits until it answers");
            self.log.say(Level::Warning, "unreachable", &*words);
            self.screen.say(&words);
        }
    }

    fn end(&self) -> io::Result<()> {
        let completed = self.record.read(League::completed);
        if let Some(message) = completed.map(Message::from) {
            let out = self.send(&[Kind::Player, Kind::Referee], "league-complete", None, |_| message.clone());
            if out.recv_timeout(self.farewell) == Err(RecvTimeoutError::Timeout) {
                self.log.say(Level::Warning, "farewell", "not everybody could be told that the league is over");
            }
        }
        self.record.commit(|_| Ok::<_, io::Error>((Some(Event::Closed), ())))?;
        self.records.write(&self.record)
    }

    /// Sends every agent of some kinds its copy of a notice.
    fn send(
        &self,
        kinds: &[Kind],
        words: &str,
        round: Option<u32>,
        copy: impl Fn((&League, &Member)) -> Message,
    ) -> Receiver<()> {
        let about = About { conversation_id: voice::conversation(words), round_id: round, ..About::default() };
        let notices = self.record.read(|league| {
            let members = kinds.iter().flat_map(|kind| league.members(*kind));
            members.map(|member| (member.id.clone(), copy((league, member)))).collect()
        });
        self.couriers.post(notices, &about)
    }

    fn send_table(&self) -> Receiver<()> {
        self.send(&[Kind::Player], "standings", None, |(league, _)| league.standings_update().into())
    }

    fn send_round_completed(&self, round: u32) {
        let words = format!("round-{round}-complete");
        let both = [Kind::Player, Kind::Referee];
        self.send(&both, &words, Some(round), |(league, _)| league.round_completed(round).into());
    }

    /// What the league waits for, or `None`; said once on the screen.
    fn stall(&self, reason: Option<&str>) {
        let mut stalled = lock(&self.stalled);
        if stalled.as_deref() != reason {
            *stalled = reason.map(String::from);
            let words = reason.unwrap_or("a referee is back; the league goes on");
            self.log.say(Level::Warning, "stalled", words);
            self.screen.say(words);
        }
    }
}

/// What has been told so far.
struct Told {
    results: usize,
    /// The last table that was sent: it breaks off when it has reached everybody.
    sweep: Option<(Receiver<()>, Instant)>,
}

/// What an assignment depends on: if anything of it changes, it is announced again.
type Key = (String, [u32; 3], [String; 2]);

struct Round<'a> {
    floor: &'a Floor,
    round: u32,
    began: Instant,
    players_told: BTreeMap<String, Key>,
    referees_told: BTreeMap<String, Key>,
    lead_over: Option<Instant>,
    /// How many matches a referee was given, and by when it must have reported them, counted from `began`.
    due: BTreeMap<String, (usize, Duration)>,
    pinged: Instant,
}

impl Round<'_> {
    fn new(floor: &Floor, round: u32) -> Round<'_> {
        let (players_told, referees_told, due) = Default::default();
        let (began, lead_over) = (Instant::now(), None);
        Round { floor, round, began, players_told, referees_told, lead_over, due, pinged: began }
    }

    fn play(&mut self, told: &mut Told) -> io::Result<()> {
        loop {
            let (changes, over) = self.look(|league| (league.changes, league.open_round() != Some(self.round)));
            self.tell_results(told, over)?;
            if over {
                return Ok(());
            }
            self.hand_out()?;
            self.floor.record.wait(TICK, |league| league.changes != changes);
        }
    }

    fn look<T>(&self, ask: impl FnOnce(&League) -> T) -> T {
        self.floor.record.read(ask)
    }

    fn open(league: &League, round: u32) -> impl Iterator<Item = &Match> {
        league.round(round).filter(|game| game.recorded.is_none())
    }

    /// Sees to it that every open match has a referee that is there, and that all have been told.
    fn hand_out(&mut self) -> io::Result<()> {
        let standings = self.standings();
        let those = |wanted: Standing| standings.iter().filter(move |(_, it)| *it == wanted).map(|(id, _)| id.clone());
        let mut present: Vec<String> = those(Standing::Alive).collect();
        let late: BTreeSet<String> = those(Standing::Overdue).collect();
        if present.is_empty() {
            present = late.iter().cloned().collect();
        }
        for (id, how) in standings.iter().filter(|(_, how)| *how != Standing::Alive) {
            self.forget(id, *how);
        }
        if present.is_empty() {
            self.floor.stall(Some("no referee is left: the league waits until one registers or answers again"));
            return Ok(());
        }
        self.floor.stall(None);
        let round = self.round;
        self.floor.record.commit(|league| {
            let token = |id: &str| registration::token(id, &crate::files::secret(self.floor.token_length));
            Ok::<_, io::Error>((league.assign(round, &present, token), ()))
        })?;
        self.announce();
        Ok(())
    }

    /// How each referee stands. Those at work are asked from time to time whether they are there.
    fn standings(&mut self) -> Vec<(String, Standing)> {
        let ping = self.pinged.elapsed() >= self.floor.ping_every;
        if ping {
            self.pinged = Instant::now();
        }
        let referees = self.look(|league| {
            let referees = league.members(Kind::Referee);
            referees.into_iter().map(|referee| (referee.id.clone(), referee.registrations)).collect::<Vec<_>>()
        });
        let now = self.began.elapsed();
        let standing = |(id, registrations): (String, u32)| {
            if ping {
                self.floor.couriers.ping(&id);
            }
            let due = self.due.get(&id).map(|(_, due)| *due);
            let standing = standing(self.floor.couriers.heard(&id), registrations, due, now);
            (id, standing)
        };
        referees.into_iter().map(standing).collect()
    }

    /// A referee is not what it should be: what it was told does not count any more.
    fn forget(&mut self, referee_id: &str, how: Standing) {
        let held = self.referees_told.len();
        self.referees_told.retain(|_, (referee, ..)| referee != referee_id);
        self.due.remove(referee_id);
        if self.referees_told.len() < held {
            let words =
                format!("{referee_id} is {}: its matches are announced anew", format!("{how:?}").to_lowercase());
            self.floor.log.say(Level::Warning, "referee_lost", &*words);
            self.floor.screen.say(&words);
        }
    }

    /// Announces what has changed: first to the players, then, when that has reached them and the lead has
    /// passed, to the referees (R6).
    fn announce(&mut self) {
        let (round, words) = (self.round, format!("round-{}-announce", self.round));
        let keys: BTreeMap<String, Key> =
            self.look(|league| Round::open(league, round).filter_map(|game| key(league, game)).collect());
        let news = |told: &BTreeMap<String, Key>| keys.iter().any(|(id, key)| told.get(id) != Some(key));
        let copy = |(league, reader): (&League, &Member)| league.announcement(round, reader).into();
        if news(&self.players_told) {
            let out = self.floor.send(&[Kind::Player], &words, Some(round), copy);
            let _ = out.recv_timeout(SWEEP);
            self.lead_over.get_or_insert(Instant::now() + self.floor.lead);
            self.players_told.clone_from(&keys);
        }
        if news(&self.referees_told) && self.lead_over.is_some_and(|over| Instant::now() >= over) {
            self.floor.send(&[Kind::Referee], &words, Some(round), copy);
            self.expect_reports();
            self.referees_told = keys;
        }
    }

    /// Notes by when each referee must have reported. More matches give it more time; an assignment that only
    /// comes again does not.
    fn expect_reports(&mut self) {
        let (now, round, limit) = (self.began.elapsed(), self.round, self.floor.match_limit);
        let given = self.look(|league| {
            let own = |id: &str| Round::open(league, round).filter(|game| game.referee() == Some(id)).count();
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
    fn tell_results(&self, told: &mut Told, over: bool) -> io::Result<()> {
        let results = self.look(|league| league.played.len());
        let last_is_out = |(out, when): &(Receiver<()>, Instant)| {
            out.try_recv() == Err(TryRecvError::Disconnected) || when.elapsed() >= SWEEP
        };
        if results == told.results || !over && !told.sweep.as_ref().is_none_or(last_is_out) {
            return Ok(());
        }
        self.floor.screen.results(&self.floor.record, told.results);
        self.floor.records.write(&self.floor.record)?;
        told.sweep = Some((self.floor.send_table(), Instant::now()));
        told.results = results;
        Ok(())
    }
}

/// What the announcement of a match says, as far as it can change; nothing before it has a referee.
fn key(league: &League, game: &Match) -> Option<(String, Key)> {
    let order = game.order.as_ref()?;
    let times = |id: &String| league.members.get(id).map_or(0, |member| member.registrations);
    let [a, b] = &game.players;
    let key = (order.referee_id.clone(), [times(&order.referee_id), times(a), times(b)], order.tokens.clone());
    Some((game.id.clone(), key))
}
