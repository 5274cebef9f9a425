//! Whole leagues in virtual time: the league, the contacts and the pace of the round loop as they
//! are, and around them a network that loses questions and answers, agents that crash and return,
//! and referees that hang. No thread, clock or socket: a seed is a league.

use super::support::offline::{ends, lobby, report, start};
use league::manager::contact::{Call, Next, Table};
use league::manager::league::{Event, League};
use league::manager::notifications::Notification;
use league::net::call_error::CallError;
use league::protocol::AgentKind;
use league::values::Moment;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time until faults stop, and until every league must have ended.
const FAULTS_END: Duration = Duration::from_secs(600);
const LIMIT: Duration = Duration::from_secs(3600);
const STEP: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

enum Happening {
    Step,
    Serve(String),
    Arrive(String, u32, Notification),
    Answer(String, Call, Result<Value, CallError>),
    Report(String, u32, String),
    Crash(String, Duration),
    Return(String),
    /// The network to an agent is gone for a while; the agent does not notice.
    CutOff(String),
    BackAgain(String),
}

/// An agent of the world.
#[derive(Default)]
struct Agent {
    is_down: bool,
    is_cut_off: bool,
    /// The number of its lives: what was sent to an earlier one is lost.
    life: u32,
    told: Vec<Notification>,
    /// The matches that it plays, by their token.
    plays: BTreeSet<String>,
    is_done: bool,
}

struct World {
    random: fastrand::Rng,
    now: Duration,
    origin: Moment,
    queue: BTreeMap<(Duration, u64), Happening>,
    count: u64,
    league: League,
    table: Table,
    agents: BTreeMap<String, Agent>,
    /// The time at which each contact is served next, unless it is in a call.
    serve_at: BTreeMap<String, Option<Duration>>,
    loss: f64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = fastrand::Rng::with_seed(seed);
        let players = random.u32(2..=6);
        let league = start(lobby(players, &[2, 2, 2][..random.usize(1..=3)]));
        let origin = Moment::now();
        let mut world = World {
            loss: [0.0, 0.05, 0.2][random.usize(0..3)],
            random,
            now: Duration::ZERO,
            origin,
            queue: BTreeMap::new(),
            count: 0,
            table: Table::new(&league, origin),
            agents: BTreeMap::new(),
            serve_at: BTreeMap::new(),
            league,
        };
        for id in world.league.members.keys().cloned().collect::<Vec<_>>() {
            world.agents.insert(id.clone(), Agent::default());
            world.serve_at.insert(id.clone(), None);
            world.wake(&id);
            if world.random.bool() {
                let [time, gone] = [300.0, 120.0].map(|most| world.seconds(0.0, most));
                world.after(time, Happening::Crash(id.clone(), gone));
            }
            if world.random.bool() {
                let time = world.seconds(0.0, 300.0);
                world.after(time, Happening::CutOff(id));
            }
        }
        world.after(Duration::ZERO, Happening::Step);
        world
    }

    fn seconds(&mut self, least: f64, most: f64) -> Duration {
        Duration::from_secs_f64(least + self.random.f64() * (most - least))
    }

    fn moment(&self) -> Moment {
        self.origin.plus(self.now)
    }

    fn after(&mut self, time: Duration, happening: Happening) {
        self.count += 1;
        self.queue.insert((self.now + time, self.count), happening);
    }

    /// Lets a contact be served now, unless it is in a call.
    fn wake(&mut self, id: &str) {
        if self.serve_at.contains_key(id) {
            self.serve_at.insert(id.into(), Some(self.now));
            self.after(Duration::ZERO, Happening::Serve(id.into()));
        }
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(((time, _), happening)) = self.queue.pop_first() {
            self.now = time;
            if self.now > LIMIT {
                return Err(format!("not over: {:?}", self.league.open_round()));
            }
            self.happen(happening);
            let is_told = self.agents.values().all(|agent| agent.is_done);
            let limit = Duration::from_secs(46);
            let may_end = self.table.may_end(limit, self.moment());
            if self.league.is_over() && is_told && may_end {
                return self.judge();
            }
        }
        Err("nothing happens any more".into())
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Step => {
                self.step();
                self.after(STEP, Happening::Step);
            }
            Happening::Serve(id) => self.serve(&id),
            Happening::Arrive(id, life, notification) => self.arrive(&id, life, notification),
            Happening::Answer(id, call, result) => {
                let now = self.moment();
                let contact = self.table.contacts.get_mut(&id).unwrap();
                contact.record(&call, &result, now);
                self.serve_at.insert(id.clone(), None);
                self.wake(&id);
                self.step();
            }
            Happening::Report(id, life, match_id) => self.report(&id, life, &match_id),
            Happening::Crash(id, gone) => {
                let agent = self.agents.get_mut(&id).unwrap();
                if self.now < FAULTS_END && !agent.is_done && !agent.is_down {
                    agent.is_down = true;
                    self.after(gone, Happening::Return(id));
                }
            }
            Happening::CutOff(id) => {
                self.agents.get_mut(&id).unwrap().is_cut_off = true;
                let time = self.seconds(0.1, 120.0);
                self.after(time, Happening::BackAgain(id));
            }
            Happening::BackAgain(id) => self.agents.get_mut(&id).unwrap().is_cut_off = false,
            Happening::Return(id) => {
                let agent = self.agents.get_mut(&id).unwrap();
                *agent = Agent {
                    life: agent.life + 1,
                    ..Agent::default()
                };
                let now = self.moment();
                let member = &self.league.members[&id];
                self.table.record_registration(member, now);
                self.wake(&id);
                self.step();
                if self.random.bool() {
                    let [time, gone] = [300.0, 120.0].map(|most| self.seconds(0.0, most));
                    self.after(time, Happening::Crash(id, gone));
                }
            }
        }
    }

    /// The step of the round loop.
    fn step(&mut self) {
        let now = self.moment();
        let available = self.table.available_referees(&self.league);
        if let Some(round) = self.league.open_round()
            && !available.is_empty()
        {
            if self.league.assigned_matches(round).next().is_none() {
                self.table.pace.begin(round, false, now);
            }
            let event = self.league.assign_open_matches(
                round,
                &available,
                &self.table.unannounced,
                |player| format!("{player}-{}", self.league.version),
            );
            if let Some(event) = event
                && let Event::Assigned { assignments } = &event
            {
                let lead = Duration::from_secs(3);
                self.table.record_assignment(assignments, lead, now);
                self.league.apply(&event);
            }
        }
        self.table.publish(&self.league, !available.is_empty(), now);
        let newest = self.table.published;
        for id in self.agents.keys().cloned().collect::<Vec<_>>() {
            if !self.table.contacts[&id].has_received(newest) {
                self.wake(&id);
            }
        }
    }

    fn serve(&mut self, id: &str) {
        if self.serve_at.get(id) != Some(&Some(self.now)) {
            return; // an older plan, or it is in a call
        }
        let now = self.moment();
        let published = self.table.published;
        let contact = self.table.contacts.get_mut(id).unwrap();
        let call = match contact.next_call(published, now) {
            Next::Wait(time) => {
                self.serve_at.insert(id.into(), Some(self.now + time));
                return self.after(time, Happening::Serve(id.into()));
            }
            Next::Call(call) => call,
        };
        contact.begin(&call);
        self.serve_at.remove(id);

        let loss = if self.now < FAULTS_END {
            self.loss
        } else {
            0.0
        };
        let [is_lost, is_answer_lost] = [0, 1].map(|_| self.random.f64() < loss);
        let agent = &self.agents[id];
        let (is_down, life) = (agent.is_down || agent.is_cut_off, agent.life);
        let [there, back] = [0, 1].map(|_| self.seconds(0.001, 0.3));
        let (time, result) = if is_down {
            let error = CallError::Unreachable("connection refused".into());
            (there, Err(error))
        } else {
            if !is_lost && let Some(notification) = call.notification {
                self.after(there, Happening::Arrive(id.into(), life, notification));
            }
            match is_lost || is_answer_lost {
                true => (TIMEOUT, Err(CallError::Timeout(TIMEOUT))),
                false => (there + back, Ok(Value::Null)),
            }
        };
        self.after(time, Happening::Answer(id.into(), call, result));
    }

    fn arrive(&mut self, id: &str, life: u32, notification: Notification) {
        let agent = self.agents.get_mut(id).unwrap();
        if agent.is_down || agent.life != life {
            return;
        }
        // Now and then an agent is restarted while its answer is under way.
        if self.now < FAULTS_END && self.random.f64() < 0.03 {
            let gone = self.seconds(0.01, 0.2);
            self.after(Duration::ZERO, Happening::Crash(id.into(), gone));
        }
        let agent = self.agents.get_mut(id).unwrap();
        agent.told.push(notification);
        agent.is_done |= notification == Notification::LeagueEnd;
        let Notification::Announcement(round) = notification else {
            return;
        };
        let mut mine = Vec::new();
        for (game, given) in self.league.assigned_matches(round) {
            if given.referee_id == id && agent.plays.insert(given.tokens[0].clone()) {
                mine.push(game.id.clone());
            }
        }
        for match_id in mine {
            // Now and then a referee hangs with a match for longer than it may take.
            let hangs = self.now < FAULTS_END && self.random.f64() < 0.05;
            let most = if hangs { 600.0 } else { 20.0 };
            let time = self.seconds(0.1, most);
            self.after(time, Happening::Report(id.into(), life, match_id));
        }
    }

    fn report(&mut self, id: &str, life: u32, match_id: &str) {
        let agent = &self.agents[id];
        if agent.is_down || agent.life != life {
            return;
        }
        let is_cut_off = agent.is_cut_off;
        if is_cut_off || self.now < FAULTS_END && self.random.f64() < self.loss {
            let again = Happening::Report(id.into(), life, match_id.into());
            return self.after(Duration::from_secs(2), again);
        }
        let game = self.league.find(match_id).unwrap();
        let report = report(&self.league, game, &ends("wins")(game));
        let referee = self.league.members[id].clone();
        if let Ok(Some(event)) =
            self.league
                .check_report(&referee, &report, self.moment().timestamp)
        {
            assert!(matches!(event, Event::Recorded(_)));
            self.league.apply(&event);
        }
        let now = self.moment();
        self.table.record_report(id, now);
        self.step();
    }

    /// Every match has one result, everybody knows the end, and nobody was told things twice or out
    /// of order in one life.
    fn judge(&self) -> Result<(), String> {
        if self.league.played.len() != self.league.matches.len() {
            return Err("a match has no result".into());
        }
        for (id, agent) in &self.agents {
            let kind = self.table.contacts[id].kind;
            let mut last_round = 0;
            for told in &agent.told {
                if let Notification::RoundEnd(round) = told {
                    if *round < last_round && self.loss == 0.0 && kind == AgentKind::Player {
                        return Err(format!("{id}: {:?}", agent.told));
                    }
                    last_round = *round;
                }
            }
            // After three attempts without an answer, a message other than the end is given up.
            if last_round != self.league.rounds() && self.loss == 0.0 {
                return Err(format!("{id} lacks the last round: {:?}", agent.told));
            }
            if agent.told.last() != Some(&Notification::LeagueEnd) {
                return Err(format!("{id}: the end is not the last: {:?}", agent.told));
            }
        }
        Ok(())
    }
}

#[test]
fn leagues_in_virtual_time_end_and_everybody_knows() {
    let seeds = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok());
    let begun = Instant::now();
    let (mut failed, mut virtual_time, mut happenings) = (Vec::new(), Duration::ZERO, 0);
    let seeds = seeds.unwrap_or(300);
    for seed in 0..seeds {
        let mut world = World::new(seed);
        if let Err(problem) = world.run() {
            failed.push(format!("seed {seed}: {problem}"));
        }
        virtual_time += world.now;
        happenings += world.count;
    }
    println!(
        "{seeds} leagues in {:.1} s, {} h of virtual time, {happenings} happenings; {} failed",
        begun.elapsed().as_secs_f64(),
        virtual_time.as_secs() / 3600,
        failed.len()
    );
    failed.truncate(5);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
