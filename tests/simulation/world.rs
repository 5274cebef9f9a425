//! The world: one queue of events in virtual time, one table of all requests, and around the agents
//! a network, clocks and disks that fail. A league follows from its seed, and from nothing else, except
//! the digits of tokens and conversations, on which nothing depends.
//!
//! A row of the table is a request, and what became of it: the agents fill the rows, the world
//! delivers them, and the judge reads them when the league is over.
//!
//! Each fault is drawn by itself: from the seed, the agent, the kind of the fault, and how often it
//! was drawn there. So a fault that is left out changes no other draw.

use super::COUNTS;
use super::agents::{self, Referee, Server};
use league::net::call_error::CallError;
use league::net::sync::lock;
use league::player::state::PlayerState;
use league::program::Program;
use league::program::credentials::Credentials;
use league::program::storage::ROOM;
use league::protocol::{Envelope, ManagerRequest, Message, PlayerRequest, Reply};
use league::values::clock;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;

/// An agent: 0 is the manager; the referees follow, then the players.
pub type Id = usize;
/// The answer to a request; a notification is answered with nothing.
pub type Answer = Result<Option<Reply>, CallError>;
/// A step of an agent.
type Step = Box<dyn FnOnce(&mut World)>;
/// What the sender of a request does with its answer.
type GoOn = Box<dyn FnOnce(&mut World, Answer)>;
/// A fault: its agent, its kind, and its number among those of this agent and kind.
pub type FaultId = (Id, Kind, u64);

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A request does not arrive, or its answer.
    Lost,
    Doubled,
    Delayed,
    Crash,
    CutOff,
    Suspended,
    /// A match of a referee does not go on.
    Hung,
    DiskFull,
    /// Somebody else sends the same message with a token of its own.
    Forged,
    ClockJump,
    /// A player answers with an error.
    Wrong,
}

/// How often each kind happens at most where it can, in the profile with many faults. In each league
/// about one kind of three happens at all. A match hangs only in the profile `Away`.
const RATES: [f64; 11] = [0.15, 0.1, 0.1, 0.01, 0.01, 0.01, 0.0, 0.01, 0.05, 0.01, 0.1];

/// Maximum number of events of a league: one that does the same again and again ends here.
const MAX_EVENTS: u64 = 20_000;
/// The time by which each league has ended, however much has failed.
const LIMIT: Duration = Duration::from_secs(1500);

/// The kinds of worlds, each of which has laws of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Profile {
    /// Faults of several kinds, again and again: nothing false may be recorded or told.
    Safety,
    /// One or two agents crash or are away once, and nothing else: nobody else loses by it, or waits
    /// for them for too long. Who is judged by a referee that was away may lose by it.
    Away,
    /// One agent crashes once, and nothing else: nothing is lost, not even why somebody has won.
    Breach,
}

pub fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A request: a row of the table.
#[derive(Clone)]
pub struct Call {
    pub from: Id,
    pub to: Id,
    /// The life of its sender: one that has crashed since gets no answer.
    pub life: u32,
    pub envelope: Envelope,
    pub body: Body,
    /// The time at which it has arrived, and the life of its receiver.
    pub reached: Option<(Duration, u32)>,
    /// True if the receiver has asked the manager about it.
    pub has_asked: bool,
    /// True if somebody else has sent it.
    is_forged: bool,
    /// What its sender got.
    pub outcome: Option<Answer>,
}

/// The content of a request.
#[derive(Clone)]
pub enum Body {
    Ping,
    ToManager(ManagerRequest),
    ToAgent(PlayerRequest),
}

/// A step that is planned.
struct Planned {
    agent: Id,
    /// The step does not happen in another life.
    life: Option<u32>,
    step: Step,
}

/// An agent as the world sees it.
#[derive(Default)]
pub struct Machine {
    pub name: String,
    pub is_up: bool,
    /// Grows when it crashes or ends.
    pub life: u32,
    pub ended_at: Option<Duration>,
    /// On its disk.
    pub credentials: Option<Arc<Credentials>>,
    /// The file to which it appends.
    pub file: PathBuf,
    pub is_registered: bool,
    /// The time at which it looks at its work.
    looks_at: Option<Duration>,
    /// How much its wall clock is ahead, in seconds.
    clock_offset: i64,
    steps: u64,
    drawn: [u64; RATES.len()],
    /// The end of the last fault of each kind that lasts.
    until: BTreeMap<Kind, Duration>,
    pub was_away: bool,
}

/// A league, and all that happens to it.
pub struct World {
    pub seed: u64,
    pub profile: Profile,
    pub program: Arc<Program>,
    left_out: BTreeSet<FaultId>,
    pub now: Duration,
    queue: BTreeMap<(Duration, u64), Planned>,
    /// The number of steps that were planned so far.
    pub number: u64,
    pub calls: Vec<Call>,
    /// Those who wait for an answer. Nobody waits for the answer to a copy.
    waiting: BTreeMap<usize, GoOn>,
    /// What happens now: the type of a message, or else work.
    pub step: &'static str,
    rates: [f64; RATES.len()],
    /// The faults so far, with their times.
    pub happened: Vec<(Duration, FaultId)>,
    /// The time from which nothing fails any more.
    faults_end: Duration,
    /// The faults of the other profiles: agent, kind, and step.
    targets: Vec<(Id, Kind, u64)>,
    pub machines: Vec<Machine>,
    pub server: Option<Server>,
    pub referees: Vec<Referee>,
    pub players: Vec<PlayerState>,
    /// The time between an announcement and its matches.
    pub lead: Duration,
    /// True if its story is printed.
    pub is_told: bool,
    /// The broken laws, each with what is wrong.
    pub broken: RefCell<Vec<(&'static str, String)>>,
    /// The time at which that many rounds were over.
    pub over_at: BTreeMap<u32, Duration>,
}

impl Machine {
    fn new(id: Id, referees: usize) -> Machine {
        Machine {
            name: match id {
                0 => "manager".into(),
                _ if id <= referees => format!("REF{id:02}"),
                _ => format!("P{:02}", id - referees),
            },
            ..Machine::default()
        }
    }
}

impl World {
    pub fn new(
        seed: u64,
        left_out: &BTreeSet<FaultId>,
        program: &Arc<Program>,
        is_told: bool,
    ) -> World {
        let profile = [
            Profile::Safety,
            Profile::Away,
            Profile::Safety,
            Profile::Breach,
        ][seed as usize % 4];
        let mut draw = fastrand::Rng::with_seed(seed);
        let (referees, players) = (draw.usize(1..=3), draw.usize(2..=5));
        let (rates, targets) = match profile {
            Profile::Safety => (draw_rates(&mut draw), Vec::new()),
            _ => (
                RATES.map(|_| 0.0),
                draw_targets(&mut draw, profile, referees, players),
            ),
        };
        World {
            seed,
            profile,
            program: Arc::clone(program),
            left_out: left_out.clone(),
            now: Duration::ZERO,
            queue: BTreeMap::new(),
            number: 0,
            calls: Vec::new(),
            waiting: BTreeMap::new(),
            step: "",
            rates,
            happened: Vec::new(),
            faults_end: ms(draw.u64(20_000..200_000)),
            targets,
            machines: (0..=referees + players)
                .map(|id| Machine::new(id, referees))
                .collect(),
            server: None,
            referees: (0..referees).map(|_| Referee::new(program)).collect(),
            players: (0..players).map(|_| PlayerState::new(true)).collect(),
            lead: ms(draw.choice([0, 0, 3000]).unwrap()),
            is_told,
            broken: RefCell::default(),
            over_at: BTreeMap::new(),
        }
    }

    /// Returns the id of an agent, as the manager gives it.
    pub fn name(&self, id: Id) -> &str {
        &self.machines[id].name
    }

    /// Returns the agent to which the manager gave this id; the manager, if there is none.
    pub fn id(&self, name: &str) -> Id {
        let found = self
            .machines
            .iter()
            .position(|machine| machine.name == name);
        found.unwrap_or_default()
    }

    /// Prints a line of the story.
    pub fn tell(&self, line: impl FnOnce(&World) -> String) {
        if self.is_told {
            println!("{:>9.3} {}", self.now.as_secs_f64(), line(self));
        }
    }

    /// Notes a broken law, unless it holds.
    pub fn check(&self, law: &'static str, holds: bool, problem: impl Debug) {
        if !holds {
            let problem = format!("{problem:?}");
            self.broken.borrow_mut().push((law, problem));
        }
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
        let machine = &mut self.machines[agent];
        let is_due = |target: &(Id, Kind, u64)| {
            (target.0, target.1) == (agent, kind) && target.2 <= machine.steps
        };
        let target = self.targets.iter().position(is_due);
        let rate = self.rates[kind as usize];
        match target {
            Some(target) => drop(self.targets.remove(target)),
            None if rate == 0.0 || self.now >= self.faults_end => return None,
            None => {}
        }

        machine.drawn[kind as usize] += 1;
        let id = (agent, kind, machine.drawn[kind as usize]);
        let mut draw = self.random(agent, kind as u64, id.2);
        if target.is_none() && draw.f64() >= rate || self.left_out.contains(&id) {
            return None;
        }
        self.happened.push((self.now, id));
        count(format!("fault: {kind:?}"));
        self.tell(|world| format!("** {kind:?} at {}", world.name(agent)));
        Some(draw)
    }

    fn push(&mut self, agent: Id, life: Option<u32>, delay: Duration, step: Step) {
        self.number += 1;
        let planned = Planned { agent, life, step };
        self.queue.insert((self.now + delay, self.number), planned);
    }

    /// Lets something happen to an agent later, in this life.
    pub fn plan(&mut self, agent: Id, delay: Duration, step: impl FnOnce(&mut World) + 'static) {
        let life = self.machines[agent].life;
        self.push(agent, Some(life), delay, Box::new(step));
    }

    /// Lets an agent look at its work later, unless it does so before.
    pub fn wake(&mut self, id: Id, delay: Duration) {
        let time = self.now + delay;
        if self.machines[id].looks_at.is_none_or(|next| time < next) {
            self.machines[id].looks_at = Some(time);
            self.plan(id, delay, move |world| {
                if world.machines[id]
                    .looks_at
                    .is_some_and(|next| next <= world.now)
                {
                    world.machines[id].looks_at = None;
                    agents::work(world, id);
                }
            });
        }
    }

    /// Sends a request, perhaps twice. Its sender goes on with the answer, or with the reason why there
    /// is none.
    pub fn send(
        &mut self,
        [from, to]: [Id; 2],
        timeout: Duration,
        envelope: Envelope,
        body: Body,
        go_on: impl FnOnce(&mut World, Answer) + 'static,
    ) {
        let call = self.calls.len();
        self.waiting.insert(call, Box::new(go_on));
        self.calls.push(Call {
            from,
            to,
            life: self.machines[from].life,
            envelope,
            body,
            reached: None,
            has_asked: false,
            is_forged: false,
            outcome: None,
        });
        self.tell(|world| {
            let name = world.calls[call].name();
            format!("{} -> {}: {name}", world.name(from), world.name(to))
        });
        self.give_back(call, timeout, Err(CallError::Timeout(timeout)));

        let line = from.max(to);
        let delay = self.delay(line, 12_000);
        if self.calls[call].needs_token()
            && let Some(draw) = self.fault(line, Kind::Forged)
        {
            let mut forged = self.calls[call].clone();
            forged.envelope.auth_token = Some(self.false_token([from, to], draw));
            forged.is_forged = true;
            self.calls.push(forged);
            self.deliver(self.calls.len() - 1, delay);
        }
        if !self.is_lost(call) {
            self.deliver(call, delay);
            if self.fault(line, Kind::Doubled).is_some() {
                self.calls.push(self.calls[call].clone());
                self.deliver(self.calls.len() - 1, delay * 100);
            }
        }
    }

    fn deliver(&mut self, call: usize, delay: Duration) {
        let step = move |world: &mut World| agents::receive(world, call);
        self.push(self.calls[call].to, None, delay, Box::new(step));
    }

    /// Returns the token of some agent other than these, or one that nobody has.
    fn false_token(&self, others: [Id; 2], mut draw: fastrand::Rng) -> String {
        let id = draw.usize(1..self.machines.len());
        let own = self.machines[id].credentials.as_ref();
        let own = own.filter(|_| !others.contains(&id));
        own.and_then(|own| own.token.clone())
            .unwrap_or_else(|| "tok-false".into())
    }

    /// Answers a request. A player's answer may be replaced by an error on the way to a referee.
    pub fn reply(&mut self, call: usize, mut answer: Answer) {
        let Call {
            from,
            to,
            is_forged,
            ..
        } = self.calls[call];
        let holds = !is_forged || answer.is_err();
        self.check("stranger", holds, (self.calls[call].kind(), to));
        if from > 0 && to > 0 && self.fault(to, Kind::Wrong).is_some() {
            answer = Err(CallError::JsonRpc(-32603, "it crashed".into()));
        }
        if !self.is_lost(call) {
            let delay = self.delay(from.max(to), 40_000);
            self.give_back(call, delay, answer);
        }
    }

    /// Gives an answer to the sender of a request, later.
    pub fn give_back(&mut self, call: usize, delay: Duration, answer: Answer) {
        let Call { from, life, .. } = self.calls[call];
        if self.waiting.contains_key(&call) {
            let step = move |world: &mut World| world.end_call(call, answer);
            self.push(from, Some(life), delay, Box::new(step));
        }
    }

    /// The first answer to a request counts.
    fn end_call(&mut self, call: usize, answer: Answer) {
        let Some(go_on) = self.waiting.remove(&call) else {
            return;
        };
        self.step = self.calls[call].kind();
        if let Err(error) = &answer {
            self.tell(|world| {
                let (name, call) = (world.name(world.calls[call].from), world.calls[call].name());
                format!("{name} gets for {call}: {}", error.explain())
            });
        }
        self.calls[call].outcome = Some(answer.clone());
        go_on(self, answer);
    }

    /// Returns true if a message is lost. Its sender learns it at once, or never.
    fn is_lost(&mut self, call: usize) -> bool {
        let Call { from, to, .. } = self.calls[call];
        if self.lasts(from, Kind::CutOff) || self.lasts(to, Kind::CutOff) {
            return true;
        }
        let fault = self.fault(from.max(to), Kind::Lost);
        if fault.clone().is_some_and(|mut draw| draw.bool()) {
            self.break_off(call);
        }
        fault.is_some()
    }

    fn break_off(&mut self, call: usize) {
        let error = CallError::Broken("connection reset".into());
        self.give_back(call, ms(1), Err(error));
    }

    fn delay(&mut self, line: Id, longest: u64) -> Duration {
        match self.fault(line, Kind::Delayed) {
            Some(mut draw) => ms(draw.u64(20..longest)),
            None => ms(1 + self.random(line, 98, self.number).u64(..4)),
        }
    }

    /// Plays the league until the manager has ended, or for too long.
    pub fn run(&mut self) {
        self.set_clocks(0);
        for id in 0..self.machines.len() {
            let delay = ms(self.random(id, 97, 0).u64(..300));
            self.plan(id, delay, move |world| agents::start(world, id));
        }
        while let Some(((time, number), planned)) = self.queue.pop_first() {
            if time > LIMIT || self.number > MAX_EVENTS || self.machines[0].ended_at.is_some() {
                break;
            }
            self.now = time;
            let machine = &self.machines[planned.agent];
            if planned.life.is_some_and(|life| life != machine.life) {
                continue; // it has crashed since
            }
            match machine.until.get(&Kind::Suspended) {
                Some(wakes) if *wakes > self.now => {
                    self.queue.insert((*wakes, number), planned);
                }
                _ => self.run_step(planned.agent, planned.step),
            }
        }
    }

    /// Lets something happen to an agent, which perhaps crashes at it.
    fn run_step(&mut self, id: Id, step: Step) {
        self.machines[id].steps += 1;
        let crash = self.draw_mishaps(id);
        let room = (self.number % 90) as usize;
        let is_full = self.lasts(id, Kind::DiskFull);
        ROOM.set(if is_full { room } else { usize::MAX });
        self.set_clocks(id);

        let crash = crash.map(|draw| (draw, self.file_length(id)));
        let before = (self.number, self.calls.len());
        self.step = "work";
        step(self);
        if let Some((draw, length)) = crash
            && self.machines[id].ended_at.is_none()
        {
            // Nothing leaves it.
            self.queue.retain(|(_, number), _| *number <= before.0);
            self.calls.truncate(before.1);
            self.waiting.split_off(&before.1);
            self.crash(id, length, draw);
        }
    }

    /// Draws what happens to an agent at a step. Returns random numbers if it crashes.
    fn draw_mishaps(&mut self, id: Id) -> Option<fastrand::Rng> {
        if !self.machines[id].is_up {
            return None;
        }
        for kind in [Kind::CutOff, Kind::Suspended, Kind::DiskFull] {
            if let Some(draw) = self.fault(id, kind) {
                let until = self.go_away(id, draw);
                self.machines[id].until.insert(kind, until);
            }
        }
        if let Some(mut draw) = self.fault(id, Kind::ClockJump) {
            self.machines[id].clock_offset += draw.i64(-10_000..10_000);
        }
        self.fault(id, Kind::Crash)
    }

    /// Returns true if a fault of an agent has not passed.
    fn lasts(&self, id: Id, kind: Kind) -> bool {
        let until = self.machines[id].until.get(&kind);
        until.is_some_and(|until| *until > self.now)
    }

    /// Returns the time until which an agent is away.
    fn go_away(&mut self, id: Id, mut draw: fastrand::Rng) -> Duration {
        let time = ms(draw.u64(10..5000) * draw.choice([1, 1, 4, 40]).unwrap());
        self.machines[id].was_away = true;
        self.tell(|world| format!("{} is away for {time:?}", world.name(id)));
        self.now + time
    }

    /// Sets the clocks of this thread to those of an agent.
    fn set_clocks(&self, id: Id) {
        let offset = self.machines[id].clock_offset;
        let utc = OffsetDateTime::from_unix_timestamp(1_736_937_000 + offset).unwrap();
        clock::set(self.program.started + self.now, utc + self.now);
    }

    /// Returns the length of the file to which an agent appends.
    fn file_length(&self, id: Id) -> u64 {
        fs::metadata(&self.machines[id].file).map_or(0, |found| found.len())
    }

    /// An agent is gone. Of the lines that it wrote in this step, a part is on the disk, or all.
    fn crash(&mut self, id: Id, before: u64, mut draw: fastrand::Rng) {
        let step = self.step;
        let mut line = "";
        let after = self.file_length(id);
        if before < after {
            line = ", line whole";
            if draw.bool() && before > 0 {
                let file = OpenOptions::new().write(true).open(&self.machines[id].file);
                let cut = draw.u64(before..after);
                file.and_then(|file| file.set_len(cut)).unwrap();
                line = ", line torn";
            }
        }
        count(format!("crash at {step}{line}"));
        self.tell(|world| format!("{} crashes at {step}{line}", world.name(id)));

        // Those that wait for an answer notice it, unless its whole machine is gone.
        let machine = &mut self.machines[id];
        let life = Some(machine.life);
        (machine.is_up, machine.is_registered) = (false, false);
        machine.looks_at = None;
        machine.until.clear();
        machine.life += 1;
        if draw.u32(..4) > 0 {
            for call in 0..self.calls.len() {
                let reached = self.calls[call].reached.map(|(_, life)| life);
                if self.calls[call].to == id && reached == life {
                    self.break_off(call);
                }
            }
        }
        agents::crash(self, id);
        let until = self.go_away(id, draw);
        self.plan(id, until - self.now, move |world| agents::start(world, id));
    }

    /// An agent ends.
    pub fn end(&mut self, id: Id) {
        let machine = &mut self.machines[id];
        machine.is_up = false;
        machine.life += 1;
        machine.ended_at = Some(self.now);
        self.tell(|world| format!("{} has ended", world.name(id)));
    }
}

pub fn count(what: String) {
    *lock(&COUNTS).entry(what).or_default() += 1;
}

/// Draws how often each kind of fault happens in a league with many of them.
fn draw_rates(draw: &mut fastrand::Rng) -> [f64; RATES.len()] {
    RATES.map(|most| most * draw.f64() * f64::from(draw.u8(..3) / 2))
}

/// Draws the faults of a league with few of them: each happens once, at a step or at the next one where
/// it can.
fn draw_targets(
    draw: &mut fastrand::Rng,
    profile: Profile,
    referees: usize,
    players: usize,
) -> Vec<(Id, Kind, u64)> {
    let is_breach = profile == Profile::Breach;
    let most = if is_breach { 1 } else { 2 };
    let mut targets = Vec::new();
    for n in 0..draw.usize(1..=most) {
        let agent = draw.usize(0..=referees + players);
        let step = draw.u64(1..if agent == 0 { 300 } else { 80 });
        // One that hangs for good needs another one.
        let may_hang = n == 0 && referees > 1 && (1..=referees).contains(&agent);
        let last = if may_hang { Kind::Hung } else { Kind::Crash };
        let kinds = [Kind::Crash, Kind::CutOff, Kind::Suspended, last];
        let drawn = draw.choice(kinds).unwrap();
        let kind = if is_breach { Kind::Crash } else { drawn };
        targets.push((agent, kind, step));
    }
    targets
}

impl Call {
    /// Returns the type of its message.
    pub fn kind(&self) -> &'static str {
        match &self.body {
            Body::Ping => "ping",
            Body::ToManager(message) => message.name(),
            Body::ToAgent(message) => message.name(),
        }
    }

    /// Returns true if its receiver checks the token of its sender.
    fn needs_token(&self) -> bool {
        !self.kind().ends_with("REGISTER_REQUEST") && !matches!(self.body, Body::Ping)
    }

    /// Returns the message to a referee or a player.
    pub fn message(&self) -> Option<&PlayerRequest> {
        match &self.body {
            Body::ToAgent(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the name of its message, with the match.
    pub fn name(&self) -> String {
        let id = self.envelope.match_id.as_deref().unwrap_or_default();
        format!("{} {id}", self.kind()).trim_end().into()
    }
}
