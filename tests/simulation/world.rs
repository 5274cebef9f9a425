//! The world: one queue of steps in virtual time, and around the agents a network, clocks and disks
//! that fail. A league follows from its seed and its profile, and from nothing else.
//!
//! Each fault is drawn by itself: from the seed, the agent, the kind of the fault, and how often it
//! was drawn there. So a fault that is left out changes no other draw.

use super::agents::{self, Player, Referee, Server};
use super::judge::Notes;
use league::net::call_error::CallError;
use league::program::credentials::Credentials;
use league::program::storage::ROOM;
use league::program::{Program, SHUTDOWN_TIMEOUT};
use league::values::clock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::ErrorKind::ConnectionRefused;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// An agent: 0 is the manager; the referees follow, then the players.
pub type Id = usize;
/// The answer to a request.
pub type Answer = Result<Value, CallError>;
/// A fault: its agent, its kind, and its number among those of this agent and kind.
pub type FaultId = (Id, Kind, u64);

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    RequestLost,
    AnswerLost,
    Doubled,
    Delayed,
    Crash,
    CutOff,
    Suspended,
    DiskFull,
    ClockJump,
    /// A player answers a request not at all, late, or wrongly.
    Silent,
    Slow,
    Wrong,
    /// A player reports a result, and sends messages in the name of others.
    FalseReport,
    FalseMessage,
    /// The operator pauses the league, or removes a player.
    Order,
}

/// How often each kind happens at most where it can, in the profile with all of them.
const RATES: [(Kind, f64); 15] = [
    (Kind::RequestLost, 0.15),
    (Kind::AnswerLost, 0.15),
    (Kind::Doubled, 0.1),
    (Kind::Delayed, 0.1),
    (Kind::Crash, 0.01),
    (Kind::CutOff, 0.01),
    (Kind::Suspended, 0.01),
    (Kind::DiskFull, 0.01),
    (Kind::ClockJump, 0.01),
    (Kind::Silent, 0.1),
    (Kind::Slow, 0.1),
    (Kind::Wrong, 0.1),
    (Kind::FalseReport, 0.03),
    (Kind::FalseMessage, 0.03),
    (Kind::Order, 0.005),
];

/// Maximum number of steps of a league: one that does the same again and again ends here.
const MAX_STEPS: u64 = 100_000;

/// The kinds of worlds, each of which has laws of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Profile {
    /// Everything goes wrong at once: nothing false may be recorded or told.
    Safety,
    /// One agent is away for a while, and nothing else: nobody waits for it for too long.
    Away,
    /// One agent crashes at one step, and nothing else: nothing is lost, and nobody loses by it.
    Breach,
}

pub fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What a request does where it arrives.
type Arrival = Rc<dyn Fn(&mut World, Ticket)>;

/// What its sender does with the answer.
type Done = Box<dyn FnOnce(&mut World, Answer)>;

/// A step of an agent. It does not happen if the agent has crashed since it was planned.
struct Step {
    owner: Option<(Id, u32)>,
    name: String,
    action: Box<dyn FnOnce(&mut World)>,
}

/// A request that is not answered yet.
struct Call {
    from: (Id, u32),
    name: String,
    done: Done,
    /// The agent that it has reached.
    at: Option<Id>,
}

/// A request that has arrived, and is answered once; without a call nobody waits for the answer.
#[derive(Clone, Copy)]
pub struct Ticket {
    pub from: Id,
    pub to: Id,
    pub at: Duration,
    pub call: Option<u64>,
}

/// An agent as the world sees it.
#[derive(Default)]
pub struct Body {
    pub is_up: bool,
    /// Grows when it crashes or ends.
    pub life: u32,
    pub started: Duration,
    pub has_ended: bool,
    /// On its disk.
    pub credentials: Option<Arc<Credentials>>,
    pub is_registered: bool,
    /// The number of the planned look at its work that counts.
    planned: u64,
    steps: u64,
    /// The end of the last fault of each kind that lasts.
    until: BTreeMap<Kind, Duration>,
    /// How much its wall clock is ahead, in seconds.
    clock_offset: i64,
    pub was_away: bool,
}

/// A league, and all that happens to it.
pub struct World {
    pub seed: u64,
    pub profile: Profile,
    pub program: Arc<Program>,
    left_out: BTreeSet<FaultId>,
    pub now: Duration,
    origin: Instant,
    queue: BTreeMap<(Duration, u64), Step>,
    number: u64,
    calls: BTreeMap<u64, Call>,
    rates: [f64; RATES.len()],
    drawn: BTreeMap<(Id, Kind), u64>,
    pub happened: Vec<FaultId>,
    /// The time from which nothing fails any more, that of the first fault since the start of the
    /// league, and the end of the last one.
    faults_end: Duration,
    pub fault_at: Option<Duration>,
    pub calm_at: Duration,
    /// The one fault of the other profiles: its agent, its kind, and its step or time.
    target: (Id, Kind, u64),
    /// The agent that crashes in this step: nothing that it does leaves it.
    pub dying: Option<Id>,
    pub bodies: Vec<Body>,
    pub server: Option<Server>,
    pub referees: Vec<Referee>,
    pub players: Vec<Player>,
    /// The time between an announcement and its matches.
    pub lead: Duration,
    /// The time of the last result, and that at which the manager ended.
    pub over_at: Option<Duration>,
    pub closed_at: Option<Duration>,
    pub story: Option<Vec<String>>,
    pub counts: BTreeMap<String, u64>,
    pub notes: Notes,
}

impl World {
    pub fn new(
        seed: u64,
        profile: Profile,
        left_out: &BTreeSet<FaultId>,
        program: &Arc<Program>,
    ) -> World {
        let mut draw = fastrand::Rng::with_seed(seed);
        let (referees, players) = (draw.usize(1..=3), draw.usize(2..=5));
        let rates = RATES.map(|(_, most)| most * draw.f64() * f64::from(draw.u8(..3) / 2));
        let agent = draw.usize(0..=referees + players);
        let target = match profile {
            Profile::Breach => (
                agent,
                Kind::Crash,
                draw.u64(1..if agent == 0 { 300 } else { 80 }),
            ),
            _ => {
                let kind = draw
                    .choice([Kind::Crash, Kind::CutOff, Kind::Suspended])
                    .unwrap();
                (agent, kind, draw.u64(300..20_000))
            }
        };

        World {
            seed,
            profile,
            program: Arc::clone(program),
            left_out: left_out.clone(),
            now: Duration::ZERO,
            origin: Instant::now(),
            queue: BTreeMap::new(),
            number: 0,
            calls: BTreeMap::new(),
            rates,
            drawn: BTreeMap::new(),
            happened: Vec::new(),
            faults_end: ms(draw.u64(20_000..200_000)),
            fault_at: None,
            calm_at: Duration::ZERO,
            target,
            dying: None,
            bodies: (0..=referees + players).map(|_| Body::default()).collect(),
            server: None,
            referees: (0..referees).map(|_| Referee::new(program)).collect(),
            players: (0..players).map(|_| Player::new()).collect(),
            lead: ms(draw.choice([0, 0, 3000]).unwrap()),
            over_at: None,
            closed_at: None,
            story: None,
            counts: BTreeMap::new(),
            notes: Notes::default(),
        }
    }

    /// Returns the id of an agent, as the manager gives it.
    pub fn name(&self, id: Id) -> String {
        match id {
            0 => "manager".into(),
            _ if id <= self.referees.len() => format!("REF{id:02}"),
            _ => format!("P{:02}", id - self.referees.len()),
        }
    }

    /// Adds a line to the story.
    pub fn tell(&mut self, line: impl FnOnce(&World) -> String) {
        if let Some(mut story) = self.story.take() {
            story.push(format!("{:>9.3} {}", self.now.as_secs_f64(), line(self)));
            self.story = Some(story);
        }
    }

    pub fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// Returns random numbers for one purpose of an agent.
    pub fn random(&self, agent: Id, purpose: u64, count: u64) -> fastrand::Rng {
        let mut seed = self.seed;
        for part in [agent as u64, purpose, count] {
            seed = fastrand::Rng::with_seed(seed ^ part).u64(..);
        }
        fastrand::Rng::with_seed(seed)
    }

    /// Draws a fault. Returns random numbers for its details if it happens.
    pub fn fault(&mut self, agent: Id, kind: Kind) -> Option<fastrand::Rng> {
        let (target, target_kind, when) = self.target;
        let is_possible = match self.profile {
            Profile::Safety => self.now < self.faults_end && self.rates[kind as usize] > 0.0,
            _ => (agent, kind) == (target, target_kind) && self.happened.is_empty(),
        };
        if !is_possible {
            return None;
        }

        let count = self.drawn.entry((agent, kind)).or_default();
        *count += 1;
        let id = (agent, kind, *count);
        let mut draw = self.random(agent, kind as u64, id.2);
        let happens = match self.profile {
            Profile::Safety => draw.f64() < self.rates[kind as usize],
            Profile::Breach => self.bodies[agent].steps == when,
            Profile::Away => self.now >= ms(when),
        };
        if !happens || self.left_out.contains(&id) {
            return None;
        }
        self.happened.push(id);
        let server = self.server.as_ref();
        if server.is_some_and(|server| server.manager.store.read(|league| league.started)) {
            self.fault_at.get_or_insert(self.now);
        }
        self.calm_at = self.calm_at.max(self.now);
        self.count(format!("fault: {kind:?}"));
        self.tell(|world| format!("** {kind:?} at {}", world.name(agent)));
        Some(draw)
    }

    /// Lets an agent do something later, if it lives then.
    pub fn after(
        &mut self,
        owner: Id,
        delay: Duration,
        name: &str,
        action: impl FnOnce(&mut World) + 'static,
    ) {
        if self.dying != Some(owner) {
            self.plan(Some((owner, self.bodies[owner].life)), delay, name, action);
        }
    }

    pub fn plan(
        &mut self,
        owner: Option<(Id, u32)>,
        delay: Duration,
        name: &str,
        action: impl FnOnce(&mut World) + 'static,
    ) {
        self.number += 1;
        let step = Step {
            owner,
            name: name.into(),
            action: Box::new(action),
        };
        self.queue.insert((self.now + delay, self.number), step);
    }

    /// Lets an agent look at its work later, and not before.
    pub fn wake(&mut self, id: Id, delay: Duration) {
        let body = &mut self.bodies[id];
        body.planned += 1;
        let planned = body.planned;
        self.after(id, delay, "work", move |world| {
            if world.bodies[id].planned == planned {
                agents::work(world, id);
            }
        });
    }

    /// Sends a request. `arrive` is what it does where it arrives, perhaps twice; `done` gets the
    /// answer, or the reason why there is none.
    pub fn call(
        &mut self,
        [from, to]: [Id; 2],
        timeout: Duration,
        name: &str,
        arrive: impl Fn(&mut World, Ticket) + 'static,
        done: impl FnOnce(&mut World, Answer) + 'static,
    ) {
        if self.dying == Some(from) {
            return;
        }
        self.number += 1;
        let call = self.number;
        let own = Call {
            from: (from, self.bodies[from].life),
            name: name.into(),
            done: Box::new(done),
            at: None,
        };
        self.calls.insert(call, own);
        self.plan(None, timeout, name, move |world| {
            world.finish(call, Err(CallError::Timeout(timeout)))
        });

        let line = from.max(to);
        self.tell(|world| format!("{} -> {}: {name}", world.name(from), world.name(to)));
        if self.is_cut_off([from, to]) || self.is_lost(line, Kind::RequestLost, call) {
            return;
        }
        let arrive: Arrival = Rc::new(arrive);
        for copy in 0..=u32::from(self.fault(line, Kind::Doubled).is_some()) {
            let delay = self.delay(line) * (1 + copy * 100);
            let call = (copy == 0).then_some(call);
            let ticket = Ticket {
                from,
                to,
                at: self.now + delay,
                call,
            };
            let (arrive, own) = (Rc::clone(&arrive), name.to_string());
            self.plan(None, delay, name, move |world| {
                world.deliver(ticket, &own, arrive)
            });
        }
    }

    /// Returns true if one of the agents has no network.
    fn is_cut_off(&self, agents: [Id; 2]) -> bool {
        agents.iter().any(|id| self.lasts(*id, Kind::CutOff))
    }

    /// Returns true if a message is lost. Its sender learns it at once, or never.
    fn is_lost(&mut self, line: Id, kind: Kind, call: u64) -> bool {
        let fault = self.fault(line, kind);
        if fault.clone().is_some_and(|mut draw| draw.bool()) {
            self.break_off(call);
        }
        fault.is_some()
    }

    fn break_off(&mut self, call: u64) {
        let error = CallError::Broken("connection reset".into());
        self.plan(None, ms(1), "", move |world| world.finish(call, Err(error)));
    }

    fn delay(&mut self, line: Id) -> Duration {
        match self.fault(line, Kind::Delayed) {
            Some(mut draw) => ms(draw.u64(20..12_000)),
            None => ms(1 + self.random(line, 98, self.number).u64(..4)),
        }
    }

    fn deliver(&mut self, mut ticket: Ticket, name: &str, arrive: Arrival) {
        let to = ticket.to;
        if let Some(call) = ticket.call {
            if !self.bodies[to].is_up {
                let refused = CallError::Unreachable(ConnectionRefused.to_string());
                return self.finish(call, Err(refused));
            }
            if self.is_lost(to.max(ticket.from), Kind::AnswerLost, call) {
                ticket.call = None;
            } else if let Some(call) = self.calls.get_mut(&call) {
                call.at = Some(to);
            }
        }
        self.after(to, Duration::ZERO, name, move |world| arrive(world, ticket));
    }

    /// Answers a request: the referees' requests to players perhaps late, wrongly, or not at all.
    pub fn answer(&mut self, ticket: Ticket, mut answer: Answer) {
        let Ticket { from, to, .. } = ticket;
        let Some(call) = ticket.call.filter(|_| self.dying != Some(to)) else {
            return;
        };
        let mut delay = self.delay(from.max(to));
        if from > 0 && to > 0 {
            if self.fault(to, Kind::Wrong).is_some() {
                answer = Err(CallError::JsonRpc(-32603, "it crashed".into()));
            }
            if let Some(mut draw) = self.fault(to, Kind::Slow) {
                delay += ms(draw.u64(100..40_000));
            }
            if self.fault(to, Kind::Silent).is_some() {
                return;
            }
        }
        if let Err(error) = &answer {
            self.tell(|world| format!("{} answers: {}", world.name(to), error.explain()));
        }
        if !self.is_cut_off([from, to]) {
            self.plan(None, delay, "", move |world| world.finish(call, answer));
        }
    }

    fn finish(&mut self, call: u64, answer: Answer) {
        if let Some(Call {
            from, name, done, ..
        }) = self.calls.remove(&call)
        {
            if let Err(error) = &answer {
                self.tell(|world| {
                    format!(
                        "{} gets for {name}: {}",
                        world.name(from.0),
                        error.explain()
                    )
                });
            }
            self.plan(Some(from), Duration::ZERO, &name, move |world| {
                done(world, answer)
            });
        }
    }

    /// Sets the clocks of this thread to those of an agent.
    fn set_clocks(&self, offset: i64) {
        let utc = OffsetDateTime::from_unix_timestamp(1_736_937_000 + offset).unwrap();
        clock::set(self.origin + self.now, utc + self.now);
    }

    /// Plays the league until everybody has ended, or for `limit`.
    pub fn run(&mut self, limit: Duration) {
        self.set_clocks(0);
        for id in 0..self.bodies.len() {
            let delay = ms(self.random(id, 97, 0).u64(..300));
            self.after(id, delay, "start", move |world| world.start(id));
        }
        while let Some(((time, number), step)) = self.queue.pop_first() {
            let is_over = self
                .closed_at
                .is_some_and(|closed| time > closed + ms(20_000));
            if time > limit
                || self.number > MAX_STEPS
                || is_over
                || self.bodies.iter().all(|body| body.has_ended)
            {
                break;
            }
            self.now = self.now.max(time);
            let Some((owner, life)) = step.owner else {
                (step.action)(self);
                continue;
            };
            let wakes = self.bodies[owner].until.get(&Kind::Suspended).copied();
            if life != self.bodies[owner].life {
                continue; // it has crashed since
            }
            match wakes.filter(|wakes| *wakes > self.now) {
                Some(wakes) => drop(self.queue.insert((wakes, number), step)),
                None => self.run_step(owner, step),
            }
        }
        ROOM.set(usize::MAX);
    }

    fn run_step(&mut self, owner: Id, step: Step) {
        self.bodies[owner].steps += 1;
        let is_alive = self.bodies[owner].is_up && !self.bodies[owner].has_ended;
        let dies = if is_alive {
            self.draw_mishaps(owner)
        } else {
            None
        };
        let room = (self.number % 90) as usize;
        ROOM.set(if self.lasts(owner, Kind::DiskFull) {
            room
        } else {
            usize::MAX
        });
        self.set_clocks(self.bodies[owner].clock_offset);
        let before = self.file_length(owner, dies.is_some());

        self.dying = dies.is_some().then_some(owner);
        (step.action)(self);
        self.dying = None;
        if let Some(draw) = dies {
            self.crash(owner, before, &step.name, draw);
        }
    }

    /// Draws what happens to an agent at a step. Returns random numbers if it crashes.
    fn draw_mishaps(&mut self, id: Id) -> Option<fastrand::Rng> {
        for kind in [Kind::CutOff, Kind::Suspended, Kind::DiskFull] {
            if let Some(draw) = self.fault(id, kind) {
                let until = self.go_away(id, draw);
                self.bodies[id].until.insert(kind, until);
            }
        }
        if let Some(mut draw) = self.fault(id, Kind::ClockJump) {
            self.bodies[id].clock_offset += draw.i64(-10_000..10_000);
        }
        if id == 0
            && let Some(draw) = self.fault(id, Kind::Order)
        {
            Server::order(self, draw);
        } else if id > self.referees.len() {
            Player::cheat(self, id);
        }
        self.fault(id, Kind::Crash)
    }

    /// Returns true if a fault of an agent has not passed.
    fn lasts(&self, id: Id, kind: Kind) -> bool {
        self.bodies[id]
            .until
            .get(&kind)
            .is_some_and(|until| *until > self.now)
    }

    /// Returns the time until which an agent is away.
    fn go_away(&mut self, id: Id, mut draw: fastrand::Rng) -> Duration {
        let time = ms(draw.u64(10..5000) * draw.choice([1, 1, 4, 40]).unwrap());
        self.bodies[id].was_away = true;
        self.calm_at = self.calm_at.max(self.now + time);
        self.tell(|world| format!("{} is away for {time:?}", world.name(id)));
        self.now + time
    }

    /// Returns the length of the file to which an agent appends, if it is asked for.
    fn file_length(&self, id: Id, is_asked: bool) -> Option<u64> {
        let file = self.file(id).filter(|_| is_asked)?;
        Some(fs::metadata(file).map_or(0, |found| found.len()))
    }

    fn file(&self, id: Id) -> Option<PathBuf> {
        match id {
            0 => Some(self.journal()),
            _ if id <= self.referees.len() => Some(self.folder(id)?.join("outbox.jsonl")),
            _ => None,
        }
    }

    pub fn journal(&self) -> PathBuf {
        let folder = self.program.data.join("leagues");
        folder.join(self.program.league_id()).join("journal.jsonl")
    }

    /// Returns the folder of a referee that is registered.
    pub fn folder(&self, id: Id) -> Option<PathBuf> {
        let own = self.bodies[id].credentials.as_ref()?;
        Some(self.program.data.join("referees").join(&own.agent_id))
    }

    /// An agent is gone. Of the lines that it wrote in this step, a part is on the disk.
    fn crash(&mut self, id: Id, before: Option<u64>, step: &str, mut draw: fastrand::Rng) {
        let mut line = "";
        if let (Some(before), Some(after)) = (before, self.file_length(id, true))
            && before < after
        {
            line = ", line whole";
            if draw.bool() && before > 0 {
                let file = OpenOptions::new().write(true).open(self.file(id).unwrap());
                file.and_then(|file| file.set_len(draw.u64(before..after)))
                    .unwrap();
                line = ", line torn";
            }
        }
        let kind = self.name(id).trim_end_matches(char::is_numeric).to_string();
        let step = step.split(' ').next().unwrap_or_default();
        self.count(format!("crash: {kind} at {step}{line}"));
        self.tell(|world| format!("{} crashes at {step}{line}", world.name(id)));

        let body = &mut self.bodies[id];
        (body.is_up, body.is_registered, body.until) = (false, false, BTreeMap::new());
        body.life += 1;
        let open = self.calls.iter().filter(|(_, call)| call.at == Some(id));
        let open: Vec<u64> = open.map(|(call, _)| *call).collect();
        if draw.u32(..4) > 0 {
            open.into_iter().for_each(|call| self.break_off(call)); // else its machine is gone, too
        }
        agents::crash(self, id);
        let until = self.go_away(id, draw);
        if id == 0
            && fs::read_to_string(self.journal()).is_ok_and(|text| text.contains("\"Closed\"}\n"))
        {
            self.closed_at = Some(self.now); // started again it would open the next lobby
            self.bodies[0].has_ended = true;
        } else {
            self.after(id, until - self.now, "start", move |world| world.start(id));
        }
    }

    fn start(&mut self, id: Id) {
        self.bodies[id].is_up = true;
        self.bodies[id].started = self.now;
        self.tell(|world| format!("{} starts", world.name(id)));
        agents::start(self, id);
    }

    /// An agent ends; a referee or a player after a moment in which it still answers.
    pub fn end(&mut self, id: Id) {
        if self.dying == Some(id) || self.bodies[id].has_ended {
            return;
        }
        self.bodies[id].has_ended = true;
        self.tell(|world| format!("{} has ended", world.name(id)));
        let delay = if id == 0 {
            Duration::ZERO
        } else {
            SHUTDOWN_TIMEOUT / 10
        };
        self.after(id, delay, "end", move |world| {
            world.bodies[id].is_up = false;
            world.bodies[id].life += 1;
        });
    }
}
