//! The floor on which a league is played: its record, the ways to the agents, the files and the screen; and the
//! notices that go from there to everybody.

use crate::{
    base::Base,
    courier::{Couriers, Route},
    journal::Record,
    league::{Event, League, Member},
    log::{Level, Log},
    options::Stop,
    protocol::{Kind, Message},
    records::Records,
    screen::Screen,
    threads::lock,
    voice::{self, About},
};
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

/// Everything that the round loop needs.
pub struct Floor {
    /// The league.
    pub record: Arc<Record>,
    /// The way to the agents.
    pub couriers: Couriers,
    /// The files for people.
    records: Records,
    /// The last time they could not be written.
    unwritten: AtomicBool,
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
    /// What a league that has started waits for, if it does not go on.
    pub stalled: Mutex<Option<String>>,
}

impl Floor {
    /// The floor of a program. A `local` league needs no lead: its agents are there.
    pub fn new(base: &Base, record: Arc<Record>, local: bool) -> Result<Floor, Stop> {
        let config = &base.config;
        let lead = match base.options.number("--lead-sec")? {
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|_| Stop::usage(format!("--lead-sec: got {seconds}, expected seconds, 0 or more")))?,
            None if local => Duration::ZERO,
            None => config.lead,
        };
        let (limit, policy) = (config.generic_limit, config.retry);
        let route = Route { record: Arc::clone(&record), voice: Arc::clone(&base.voice), policy, limit };
        Ok(Floor {
            couriers: Couriers::new(route),
            records: Records::new(&base.data, &config.rules.league_id),
            unwritten: AtomicBool::new(false),
            screen: Screen::new(base.options.has("--quiet"), &record),
            log: Arc::clone(&base.voice.log),
            lead,
            match_limit: config.match_limit(),
            ping_every: policy.base_delay,
            farewell: policy.longest(limit) + limit,
            token_length: config.token_length,
            stalled: Mutex::default(),
            record,
        })
    }

    /// The ids of those that have registered and do not answer.
    fn unreachable(&self) -> Vec<String> {
        let ids: Vec<String> = self.record.read(|league| league.members.keys().cloned().collect());
        ids.into_iter().filter(|id| self.couriers.heard(id).unreachable).collect()
    }

    /// Asks those again that did not answer after they had registered: many register before their server is up.
    pub fn look_again(&self) {
        for id in self.unreachable() {
            self.couriers.ping(&id);
        }
    }

    /// Names those that have registered and do not answer (R5).
    pub fn warn_of_the_unreachable(&self) {
        for id in self.unreachable() {
            self.warn(
                "unreachable",
                &format!("{id} has registered and cannot be reached: it forfeits until it answers"),
            );
        }
    }

    /// Says something on the screen and in the log.
    pub fn warn(&self, event_type: &str, words: &str) {
        self.log.say(Level::Warning, event_type, words);
        self.screen.say(words);
    }

    /// Tells everybody that the league is over, and closes it (R9).
    pub fn end(&self) -> io::Result<()> {
        let completed = self.record.read(League::completed);
        if let Some(message) = completed.map(Message::from) {
            let out = self.send(&[Kind::Player, Kind::Referee], "league-complete", None, |_, _| message.clone());
            if out.recv_timeout(self.farewell) == Err(RecvTimeoutError::Timeout) {
                self.log.say(Level::Warning, "farewell", "not everybody could be told that the league is over");
            }
        }
        self.write_records();
        self.record.commit(|_| Ok((Some(Event::Closed), ())))
    }

    /// Sends every agent of some kinds its copy of a notice, in a conversation named by `words`. What comes back
    /// breaks off when all copies are out.
    pub fn send(
        &self,
        kinds: &[Kind],
        words: &str,
        round: Option<u32>,
        copy: impl Fn(&League, &Member) -> Message,
    ) -> Receiver<()> {
        let about = About { conversation_id: voice::conversation(words), round_id: round, ..About::default() };
        let notices = self.record.read(|league| {
            let members = kinds.iter().flat_map(|kind| league.members(*kind));
            members.map(|member| (member.id.clone(), copy(league, member))).collect()
        });
        self.couriers.post(notices, &about)
    }

    /// Sends the table to all players.
    pub fn send_table(&self) -> Receiver<()> {
        self.send(&[Kind::Player], "standings", None, |league, _| league.standings_update().into())
    }

    /// Tells all agents that a round is over.
    pub fn send_round_completed(&self, round: u32) {
        let words = format!("round-{round}-complete");
        let both = [Kind::Player, Kind::Referee];
        self.send(&both, &words, Some(round), |league, _| league.round_completed(round).into());
    }

    /// Brings the files for people up to date. That they cannot be written is said once, and stops no league.
    pub fn write_records(&self) {
        let written = self.records.write(&self.record);
        if self.unwritten.swap(written.is_err(), Ordering::SeqCst) {
            return;
        }
        if let Err(error) = written {
            let words = format!("the files for people cannot be written: {error}");
            self.log.orchestrator(Level::Error, "fault", &*words);
            self.screen.say(&words);
        }
    }

    /// Notes what the league waits for, or that it goes on; said once on the screen.
    pub fn stall(&self, reason: Option<&str>) {
        let mut stalled = lock(&self.stalled);
        if stalled.as_deref() != reason {
            *stalled = reason.map(String::from);
            self.warn("stalled", reason.unwrap_or("the league goes on"));
        }
    }
}
