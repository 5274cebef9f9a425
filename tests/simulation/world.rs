//! The world: one queue of steps in virtual time, and around the agents a network, clocks and disks
//! that fail. A world is made from a seed and a profile, and from nothing else.
//!
//! Each fault is drawn by itself, from the seed, the agent, the kind of the fault and how often it
//! has been drawn there. So a fault that is left out changes no other draw.

use super::agents::{Player, Referee, Server};
use super::judge::Notes;
use league::net::call_error::CallError;
use league::program::storage::ROOM;
use league::program::{Program, SHUTDOWN_TIMEOUT};
use league::values::clock;
use serde_json::Value;
use std::cmp::Reverse;
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
    CutOff,
    Crash,
    Suspended,
    DiskFull,
    ClockJump,
    Silent,
    Slow,
    Wrong,
    FalseReport,
    Stranger,
    Operator,
}

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

/// Random numbers for one purpose.
pub fn random(seed: u64, agent: Id, purpose: u64, count: u64) -> fastrand::Rng {
    let mut mixed = seed;
    for part in [agent as u64, purpose, count] {
        mixed = fastrand::Rng::with_seed(mixed ^ part).u64(..);
    }
    fastrand::Rng::with_seed(mixed)
}

pub fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

type Action = Box<dyn FnOnce(&mut World)>;
type Done = Box<dyn FnOnce(&mut World, Answer)>;

/// A step of an agent, which does not happen if the agent has crashed since it was planned.
struct Step {
    owner: Option<(Id, u32)>,
    name: Rc<str>,
    action: Action,
}

/// A request that is not answered yet.
struct Call {
    from: (Id, u32),
    name: Rc<str>,
    done: Done,
    /// The agent that it has reached.
    at: Option<Id>,
}

/// A request that has arrived, and is answered once.
#[derive(Clone, Copy)]
pub struct Ticket {
    pub from: Id,
    pub to: Id,
    pub at: Duration,
    call: Option<u64>,
}

/// An agent as the world sees it.
#[derive(Default)]
pub struct Body {
    pub is_up: bool,
    /// Grows when it crashes or ends.
    pub life: u32,
    pub started: Duration,
    pub has_ended: bool,
    suspended_until: Duration,
    cut_off_until: Duration,
    disk_full_until: Duration,
    /// How much its wall clock is ahead, in seconds.
    clock_offset: i64,
    /// The number of its steps.
    steps: u64,
    /// The times in which it was down, suspended, cut off, or without a disk.
    pub away: Vec<(Duration, Duration)>,
}

/// A league and all that happens to it.
pub struct World {
    pub seed: u64,
    pub profile: Profile,
    pub now: Duration,
    origin: Instant,
    queue: BTreeMap<Reverse<(Duration, u64)>, Step>,
    number: u64,
    calls: BTreeMap<u64, Call>,
    pub rates: BTreeMap<Kind, f64>,
    /// The number of draws of each kind of each agent.
    drawn: BTreeMap<(Id, Kind), u64>,
    pub happened: Vec<FaultId>,
    pub left_out: BTreeSet<FaultId>,
    /// The time from which nothing fails any more.
    pub faults_end: Duration,
    /// In the profiles with one fault: the agent, and its step or the time.
    target: (Id, u64),
    /// The agent that crashes in this step: nothing that it does leaves it.
    pub dying: Option<Id>,
    pub bodies: Vec<Body>,
    pub folder: PathBuf,
    pub program: Arc<Program>,
    pub server: Option<Server>,
    pub referees: Vec<Referee>,
    pub players: Vec<Player>,
    pub closed_at: Option<Duration>,
    /// The time between an announcement and its matches.
    pub lead: Duration,
    pub story: Option<Vec<String>>,
    pub counts: BTreeMap<String, u64>,
    pub last_fault_at: Duration,
    pub notes: Notes,
}

impl World {
    pub fn new(
        seed: u64,
        profile: Profile,
        left_out: BTreeSet<FaultId>,
        program: &Arc<Program>,
    ) -> World {
        let mut draw = random(seed, 0, 99, 0);
        let (referees, players) = (draw.usize(1..=3), draw.usize(2..=5));
        let mut rates = BTreeMap::new();
        if profile == Profile::Safety {
            for (kind, most) in [
                (Kind::RequestLost, 0.15),
                (Kind::AnswerLost, 0.15),
                (Kind::Doubled, 0.1),
                (Kind::Delayed, 0.1),
                (Kind::CutOff, 0.01),
                (Kind::Crash, 0.01),
                (Kind::Suspended, 0.01),
                (Kind::DiskFull, 0.01),
                (Kind::ClockJump, 0.01),
                (Kind::Silent, 0.2),
                (Kind::Slow, 0.2),
                (Kind::Wrong, 0.2),
                (Kind::FalseReport, 0.02),
                (Kind::Stranger, 0.02),
                (Kind::Operator, 0.01),
            ] {
                let is_on = draw.u32(..3) == 0;
                let rate = most * draw.f64();
                rates.insert(kind, if is_on { rate } else { 0.0 });
            }
        }

        let target = draw.usize(0..=referees + players);
        let step = match profile {
            Profile::Breach => draw
                .u64(1..[400, 100, 60][usize::from(target > 0) + usize::from(target > referees)]),
            _ => draw.u64(0..20_000),
        };
        World {
            seed,
            profile,
            now: Duration::ZERO,
            origin: Instant::now(),
            queue: BTreeMap::new(),
            number: 0,
            calls: BTreeMap::new(),
            rates,
            drawn: BTreeMap::new(),
            happened: Vec::new(),
            left_out,
            faults_end: ms(draw.u64(20_000..200_000)),
            target: (target, step),
            dying: None,
            bodies: (0..1 + referees + players)
                .map(|_| Body::default())
                .collect(),
            folder: program.data.clone(),
            program: Arc::clone(program),
            server: None,
            referees: (0..referees).map(|_| Referee::new(program)).collect(),
            players: (0..players).map(|_| Player::new()).collect(),
            closed_at: None,
            lead: ms(draw.choice([0, 0, 3000]).unwrap()),
            story: None,
            counts: BTreeMap::new(),
            last_fault_at: Duration::ZERO,
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
        if self.story.is_some() {
            let text = format!("{:>9.3} {}", self.now.as_secs_f64(), line(self));
            self.story.as_mut().unwrap().push(text);
        }
    }

    pub fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// Draws a fault. Returns random numbers for its details if it happens.
    pub fn fault(&mut self, agent: Id, kind: Kind) -> Option<fastrand::Rng> {
        let rate = self.rates.get(&kind).copied().unwrap_or_default();
        if rate == 0.0 || self.now >= self.faults_end {
            return None;
        }
        let count = self.drawn.entry((agent, kind)).or_default();
        *count += 1;
        let id = (agent, kind, *count);
        let mut draw = random(self.seed, agent, kind as u64, *count);
        let happens = draw.f64() < rate && !self.left_out.contains(&id);
        happens.then(|| self.record_fault(id, draw))
    }

    fn record_fault(&mut self, id: FaultId, draw: fastrand::Rng) -> fastrand::Rng {
        self.happened.push(id);
        self.last_fault_at = self.now;
        self.count(format!("fault: {:?}", id.1));
        self.tell(|world| format!("** {:?} at {}", id.1, world.name(id.0)));
        draw
    }

    /// Lets an agent do something later, if it lives then.
    pub fn after(
        &mut self,
        owner: Id,
        delay: Duration,
        name: &Rc<str>,
        action: impl FnOnce(&mut World) + 'static,
    ) {
        if self.dying != Some(owner) {
            let owner = (owner, self.bodies[owner].life);
            self.plan(Some(owner), delay, name, action);
        }
    }

    fn plan(
        &mut self,
        owner: Option<(Id, u32)>,
        delay: Duration,
        name: &Rc<str>,
        action: impl FnOnce(&mut World) + 'static,
    ) {
        self.number += 1;
        let step = Step {
            owner,
            name: Rc::clone(name),
            action: Box::new(action),
        };
        self.queue
            .insert(Reverse((self.now + delay, self.number)), step);
    }

    /// Sends a request. `arrive` is what it does where it arrives, perhaps twice; `done` gets the
    /// answer, or the reason why there is none.
    pub fn call(
        &mut self,
        from: Id,
        to: Id,
        timeout: Duration,
        name: String,
        arrive: impl Fn(&mut World, Ticket) + 'static,
        done: impl FnOnce(&mut World, Answer) + 'static,
    ) {
        if self.dying == Some(from) {
            return;
        }
        self.number += 1;
        let call = self.number;
        let name: Rc<str> = name.into();
        let own = Call {
            from: (from, self.bodies[from].life),
            name: Rc::clone(&name),
            done: Box::new(done),
            at: None,
        };
        self.calls.insert(call, own);
        self.plan(None, timeout, &name, move |world| {
            world.finish(call, Err(CallError::Timeout(timeout)))
        });

        let line = from.max(to);
        let arrive = Rc::new(arrive);
        let is_lost = self.is_cut_off(from) || self.is_cut_off(to);
        if is_lost || self.is_lost(line, Kind::RequestLost, call) {
            return self.tell(|world| {
                format!("{} -> {}: {name} is lost", world.name(from), world.name(to))
            });
        }
        let copies = 1 + u32::from(self.fault(line, Kind::Doubled).is_some());
        for copy in 0..copies {
            let delay = self.delay(line) * (1 + copy * 100);
            let (arrive, own) = (Rc::clone(&arrive), Rc::clone(&name));
            let ticket = Ticket {
                from,
                to,
                at: self.now + delay,
                call: (copy == 0).then_some(call),
            };
            self.plan(None, delay, &name, move |world| {
                world.deliver(ticket, &own, arrive)
            });
        }
    }

    fn is_cut_off(&self, id: Id) -> bool {
        self.bodies[id].cut_off_until > self.now
    }

    /// Returns true if a message is lost. Its sender learns it at once, or never.
    fn is_lost(&mut self, line: Id, kind: Kind, call: u64) -> bool {
        let Some(mut draw) = self.fault(line, kind) else {
            return false;
        };
        if draw.bool() {
            let error = CallError::Broken("connection reset".into());
            self.plan(None, ms(2), &"".into(), move |world| {
                world.finish(call, Err(error))
            });
        }
        true
    }

    fn delay(&mut self, line: Id) -> Duration {
        match self.fault(line, Kind::Delayed) {
            Some(mut draw) => ms(draw.u64(20..12_000)),
            None => ms(1 + random(self.seed, line, 98, self.number).u64(..4)),
        }
    }

    fn deliver(
        &mut self,
        ticket: Ticket,
        name: &Rc<str>,
        arrive: Rc<impl Fn(&mut World, Ticket) + 'static>,
    ) {
        let to = ticket.to;
        self.tell(|world| format!("{} -> {}: {name}", world.name(ticket.from), world.name(to)));
        let Some(call) = ticket.call else {
            return self.after(to, Duration::ZERO, name, move |world| arrive(world, ticket));
        };
        if !self.bodies[to].is_up {
            let refused = CallError::Unreachable(ConnectionRefused.to_string());
            return self.plan(None, ms(1), name, move |world| {
                world.finish(call, Err(refused))
            });
        }
        let is_lost = self.is_lost(to.max(ticket.from), Kind::AnswerLost, call);
        let ticket = Ticket {
            call: ticket.call.filter(|_| !is_lost),
            ..ticket
        };
        if let Some(own) = self.calls.get_mut(&call).filter(|_| !is_lost) {
            own.at = Some(to);
        }
        self.after(to, Duration::ZERO, name, move |world| arrive(world, ticket));
    }

    /// Answers a request.
    pub fn answer(&mut self, ticket: Ticket, answer: Answer) {
        let is_cut_off = self.is_cut_off(ticket.from) || self.is_cut_off(ticket.to);
        if let Some(call) = ticket.call
            && self.dying != Some(ticket.to)
            && !is_cut_off
        {
            let delay = self.delay(ticket.to.max(ticket.from));
            self.plan(None, delay, &"".into(), move |world| {
                world.finish(call, answer)
            });
        }
    }

    fn finish(&mut self, call: u64, answer: Answer) {
        if let Some(Call {
            from, name, done, ..
        }) = self.calls.remove(&call)
        {
            if let Err(error) = &answer {
                self.tell(|world| format!("{}: {name}: {}", world.name(from.0), error.explain()));
            }
            self.plan(Some(from), Duration::ZERO, &name, move |world| {
                done(world, answer)
            });
        }
    }

    /// Sets the clocks of this thread to those of an agent.
    fn set_clocks(&self, offset: i64) {
        let utc = OffsetDateTime::from_unix_timestamp(1_736_937_000 + offset).unwrap() + self.now;
        clock::set(self.origin + self.now, utc);
    }

    /// Plays the league until everybody has ended, or for `limit`.
    pub fn run(&mut self, limit: Duration) {
        self.set_clocks(0);
        for id in 0..self.bodies.len() {
            let delay = ms(random(self.seed, id, 97, 0).u64(..300));
            self.plan(Some((id, 0)), delay, &"start".into(), move |world| {
                world.start(id)
            });
        }
        while let Some((Reverse((time, number)), step)) = self.queue.pop_last() {
            let is_over = self
                .closed_at
                .is_some_and(|closed| time > closed + ms(20_000));
            if time > limit || is_over || self.bodies.iter().all(|body| body.has_ended) {
                break;
            }
            let Some((owner, life)) = step.owner else {
                self.now = time;
                (step.action)(self);
                continue;
            };
            let body = &mut self.bodies[owner];
            if life != body.life {
                continue; // it has crashed since
            }
            if body.suspended_until > time {
                let wakes = body.suspended_until;
                self.queue.insert(Reverse((wakes, number)), step);
                continue;
            }
            self.now = time;
            body.steps += 1;
            self.run_step(owner, step);
        }
        ROOM.set(usize::MAX);
    }

    fn run_step(&mut self, owner: Id, step: Step) {
        if self.bodies[owner].is_up {
            self.draw_mishaps(owner);
        }
        let body = &self.bodies[owner];
        let is_target = self.profile == Profile::Breach && self.target == (owner, body.steps);
        let id = (owner, Kind::Crash, 0);
        let mut dies = None;
        if body.is_up && is_target && !self.left_out.contains(&id) {
            dies = Some(self.record_fault(id, random(self.seed, owner, 96, 0)));
        } else if body.is_up && !body.has_ended {
            dies = self.fault(owner, Kind::Crash);
        }

        let is_full = self.bodies[owner].disk_full_until > self.now;
        let room = if is_full {
            (self.number % 90) as usize
        } else {
            usize::MAX
        };
        ROOM.set(room);
        self.set_clocks(self.bodies[owner].clock_offset);
        let before = dies.is_some().then(|| self.file_length(owner)).flatten();
        self.dying = dies.is_some().then_some(owner);
        (step.action)(self);
        self.dying = None;
        if let Some(draw) = dies {
            self.crash(owner, before, &step.name, draw);
        }
    }

    /// Draws what may happen to an agent before a step.
    fn draw_mishaps(&mut self, id: Id) {
        if let Some(mut draw) = self.fault(id, Kind::Suspended) {
            let time = ms(draw.u64(500..20_000) * draw.choice([1, 1, 10]).unwrap());
            self.bodies[id].suspended_until = self.now + time;
            self.away(id, time);
        }
        if let Some(mut draw) = self.fault(id, Kind::CutOff) {
            let time = ms(draw.u64(500..60_000));
            self.bodies[id].cut_off_until = self.now + time;
            self.away(id, time);
        }
        if let Some(mut draw) = self.fault(id, Kind::DiskFull) {
            let time = ms(draw.u64(500..30_000));
            self.bodies[id].disk_full_until = self.now + time;
            self.away(id, time);
        }
        if let Some(mut draw) = self.fault(id, Kind::ClockJump) {
            self.bodies[id].clock_offset += draw.i64(-100_000..100_000);
        }
    }

    fn away(&mut self, id: Id, time: Duration) {
        let until = self.now + time;
        self.bodies[id].away.push((self.now, until));
    }

    /// Returns the file to which an agent appends.
    fn file(&self, id: Id) -> Option<PathBuf> {
        match id {
            0 => Some(self.journal()),
            _ => Some(self.referees.get(id - 1)?.folder(self).join("outbox.jsonl")),
        }
    }

    pub fn journal(&self) -> PathBuf {
        let folder = self.folder.join("leagues");
        folder.join(self.program.league_id()).join("journal.jsonl")
    }

    fn file_length(&self, id: Id) -> Option<u64> {
        Some(fs::metadata(self.file(id)?).map_or(0, |found| found.len()))
    }

    /// An agent is gone. Of the lines that it wrote in this step, a part is on the disk.
    fn crash(&mut self, id: Id, before: Option<u64>, step: &str, mut draw: fastrand::Rng) {
        let mut torn = "";
        if let (Some(before), Some(after)) = (before, self.file_length(id))
            && before < after
        {
            torn = " (line whole)";
            if draw.bool() && before > 0 {
                let file = OpenOptions::new()
                    .write(true)
                    .open(self.file(id).unwrap())
                    .unwrap();
                file.set_len(draw.u64(before..after)).unwrap();
                torn = " (line torn)";
            }
        }
        let kind = self.name(id).trim_end_matches(char::is_numeric).to_string();
        let step = step.split(' ').next().unwrap_or_default();
        self.count(format!("crash: {kind} at {step}{torn}"));
        self.tell(|world| format!("{} crashes at {step}{torn}", world.name(id)));
        self.go_down(id);
        if draw.u32(..4) > 0 {
            self.hang_up(id); // else its machine has no power, and nobody is told
        }
        let time = ms(draw.u64(10..2000) * draw.choice([1, 1, 1, 30]).unwrap());
        self.away(id, time);
        if id == 0 && fs::read_to_string(self.journal()).is_ok_and(|text| text.contains("Closed")) {
            self.closed_at = Some(self.now); // started again it would open the next lobby
            self.bodies[0].has_ended = true;
        } else {
            self.after(id, time, &"start".into(), move |world| world.start(id));
        }
    }

    /// Lets the calls fail that an agent does not answer any more.
    fn hang_up(&mut self, id: Id) {
        let open = self.calls.iter().filter(|(_, call)| call.at == Some(id));
        for call in open.map(|(call, _)| *call).collect::<Vec<_>>() {
            let error = CallError::Broken("connection reset".into());
            self.plan(None, ms(1), &"".into(), move |world| {
                world.finish(call, Err(error))
            });
        }
    }

    fn go_down(&mut self, id: Id) {
        let body = &mut self.bodies[id];
        body.is_up = false;
        body.life += 1;
        body.suspended_until = Duration::ZERO;
        match id {
            0 => self.server = None,
            _ => match self.referees.get_mut(id - 1) {
                Some(referee) => referee.crash(&self.program),
                None => Player::crash(self, id),
            },
        }
    }

    fn start(&mut self, id: Id) {
        self.bodies[id].is_up = true;
        self.bodies[id].started = self.now;
        self.tell(|world| format!("{} starts", world.name(id)));
        match id {
            0 => Server::start(self),
            _ if id <= self.referees.len() => Referee::start(self, id),
            _ => Player::start(self, id),
        }
        // In the profile with one agent away, it goes away once.
        let (target, time) = self.target;
        if self.profile == Profile::Away && target == id && self.bodies[id].life == 0 {
            self.plan(Some((id, 0)), ms(time), &"away".into(), move |world| {
                world.go_away(id)
            });
        }
    }

    fn go_away(&mut self, id: Id) {
        let fault = (id, Kind::Suspended, 0);
        if self.left_out.contains(&fault) || self.bodies[id].has_ended {
            return;
        }
        let mut draw = self.record_fault(fault, random(self.seed, id, 95, 0));
        let time = ms(draw.u64(500..20_000) * draw.choice([1, 1, 10]).unwrap());
        let until = self.now + time;
        match draw.u32(..3) {
            0 => self.bodies[id].suspended_until = until,
            1 => self.bodies[id].cut_off_until = until,
            _ => {
                self.go_down(id);
                self.after(id, time, &"start".into(), move |world| world.start(id));
            }
        }
        self.tell(|world| format!("{} is away for {time:?}", world.name(id)));
        self.away(id, time);
    }

    /// The manager has closed the league.
    pub fn close(&mut self) {
        if self.dying != Some(0) {
            self.closed_at = Some(self.now);
        }
        self.end(0);
    }

    /// An agent ends, after a moment in which it still answers.
    pub fn end(&mut self, id: Id) {
        if self.dying == Some(id) || self.bodies[id].has_ended {
            return;
        }
        self.bodies[id].has_ended = true;
        self.tell(|world| format!("{} has ended", world.name(id)));
        self.after(id, SHUTDOWN_TIMEOUT / 10, &"end".into(), move |world| {
            world.bodies[id].is_up = false;
            world.bodies[id].life += 1;
        });
    }
}
