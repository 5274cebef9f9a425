//! The world: one queue of events in virtual time, one table of all requests, and around the agents
//! a network, clocks and disks that fail. A league follows from its seed and its profile, and from
//! nothing else.
//!
//! A row of the table is a request, and what became of it: the agents fill the rows, the world
//! delivers them, and the judge reads them when the league is over.
//!
//! Each fault is drawn by itself: from the seed, the agent, the kind of the fault, and how often it
//! was drawn there. So a fault that is left out changes no other draw.

use super::agents::{self, Player, Referee, Server};
use super::judge;
use league::manager::contact;
use league::net::call_error::CallError;
use league::program::Program;
use league::program::credentials::Credentials;
use league::program::storage::ROOM;
use league::protocol::{Envelope, ManagerRequest, Message, PlayerRequest, Reply};
use league::referee::tasks::{Assignment, Sending};
use league::values::clock;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind::ConnectionRefused;
use std::iter;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// An agent: 0 is the manager; the referees follow, then the players.
pub type Id = usize;
/// The answer to a request; a notification is answered with nothing.
pub type Answer = Result<Option<Reply>, CallError>;
/// A fault: its agent, its kind, and its number among those of this agent and kind.
pub type FaultId = (Id, Kind, u64);

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A request does not arrive, or its answer.
    Lost,
    Doubled,
    Delayed,
    /// Somebody else sends the same message with a token of its own.
    Forged,
    Crash,
    CutOff,
    Suspended,
    /// A match of a referee does not go on.
    Hung,
    DiskFull,
    ClockJump,
    /// A player answers with an error.
    Wrong,
}

/// How often each kind happens at most where it can, in the profile with many faults. In each league
/// about one kind of three happens at all. A match hangs only in the profile `Away`.
const RATES: [f64; 11] = [0.15, 0.1, 0.1, 0.05, 0.01, 0.01, 0.01, 0.0, 0.01, 0.01, 0.1];

/// Maximum number of events of a league: one that does the same again and again ends here.
const MAX_EVENTS: u64 = 20_000;
/// The longest time that a league is played.
const LIMIT: Duration = Duration::from_secs(3600);

/// The kinds of worlds, each of which has laws of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Profile {
    /// Faults of several kinds, again and again: nothing false may be recorded or told.
    Safety,
    /// One or two agents are away for a while, and nothing else: nobody waits for them for too long.
    Away,
    /// One agent crashes at one step, and nothing else: nothing is lost, and nobody loses by it.
    Breach,
}

pub fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A request: a row of the table.
pub struct Call {
    pub from: Id,
    pub to: Id,
    /// The life of its sender: one that has crashed since gets no answer.
    pub life: u32,
    pub envelope: Envelope,
    pub body: Body,
    pub purpose: Rc<Purpose>,
    /// The life of the receiver that it has reached.
    reached: Option<u32>,
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

/// The reason for which its sender waits for the answer.
pub enum Purpose {
    Registration,
    Notification(contact::Call, String),
    /// A question of a match to this seat.
    Question(usize),
    /// A result is told to a player, or reported.
    Result(Box<Sending>),
    /// A player needs to know more before it can answer this request.
    Query(Arrival),
}

/// A request on its way to its receiver, or there.
#[derive(Clone)]
pub struct Arrival {
    pub call: usize,
    /// Nobody waits for the answer to a copy.
    is_copy: bool,
    /// The token of somebody else.
    pub forged: Option<String>,
    /// The time at which it has arrived, and the life of its receiver.
    pub reached: Option<(Duration, u32)>,
    /// True if the manager was asked about it.
    pub has_asked: bool,
}

/// An answer that was given, perhaps one of two to the same request.
pub struct Given {
    pub call: usize,
    /// The life of the receiver.
    pub life: u32,
    pub answer: Answer,
}

/// What happens to an agent.
pub enum Event {
    /// Its program starts, or registers again.
    Start,
    /// It looks at its work. Of those that are planned the last one counts.
    Work(u64),
    Arrive(Arrival),
    Return(usize, Answer),
    /// A referee goes on with a match, for a seat; or is done with it.
    GoOn(String, usize, Answer),
    Finish(Arc<Assignment>),
    End,
}

struct Step {
    agent: Id,
    /// The step does not happen in another life.
    life: Option<u32>,
    event: Event,
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
    pub is_registered: bool,
    /// The number of the planned look at its work that counts.
    pub planned: u64,
    steps: u64,
    drawn: [u64; RATES.len()],
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
    pub origin: Instant,
    queue: BTreeMap<(Duration, u64), Box<Step>>,
    pub number: u64,
    pub calls: Vec<Call>,
    pub given: Vec<Given>,
    rates: [f64; RATES.len()],
    /// The faults so far, with their times.
    pub happened: Vec<(Duration, FaultId)>,
    /// The time from which nothing fails any more, and the end of the last fault.
    faults_end: Duration,
    pub calm_at: Duration,
    /// The faults of the other profiles: agent, kind, and step.
    targets: Vec<(Id, Kind, u64)>,
    pub machines: Vec<Machine>,
    pub server: Option<Server>,
    pub referees: Vec<Referee>,
    pub players: Vec<Player>,
    /// The time between an announcement and its matches.
    pub lead: Duration,
    /// True if its story is printed.
    pub is_told: bool,
    pub counts: BTreeMap<String, u64>,
    /// The broken laws, each with what is wrong.
    pub broken: RefCell<Vec<(&'static str, String)>>,
    /// The time at which that many rounds were over.
    pub over_at: BTreeMap<u32, Duration>,
}

impl World {
    pub fn new(seed: u64, left_out: &BTreeSet<FaultId>, program: &Arc<Program>) -> World {
        let profile = [Profile::Safety, Profile::Away, Profile::Breach][seed as usize % 3];
        let mut draw = fastrand::Rng::with_seed(seed);
        let (referees, players) = (draw.usize(1..=3), draw.usize(2..=5));
        let rates = match profile {
            Profile::Safety => RATES.map(|most| most * draw.f64() * f64::from(draw.u8(..3) / 2)),
            _ => [0.0; RATES.len()],
        };
        let names = (1..=referees).map(|n| format!("REF{n:02}"));
        let names = names.chain((1..=players).map(|n| format!("P{n:02}")));
        let names = iter::once("manager".to_string()).chain(names);
        let new_machine = |name| Machine {
            name,
            ..Machine::default()
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
            calls: Vec::new(),
            given: Vec::new(),
            rates,
            happened: Vec::new(),
            faults_end: ms(draw.u64(20_000..200_000)),
            calm_at: Duration::ZERO,
            targets: draw_targets(&mut draw, profile, referees, players),
            machines: names.map(new_machine).collect(),
            server: None,
            referees: (0..referees).map(|_| Referee::new(program)).collect(),
            players: (0..players).map(|_| Player::default()).collect(),
            lead: ms(draw.choice([0, 0, 3000]).unwrap()),
            is_told: false,
            counts: BTreeMap::new(),
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
        let mut targets = self.targets.iter();
        let target = targets.find(|(id, of, _)| (*id, *of) == (agent, kind));
        let rate = self.rates[kind as usize];
        if target.is_none() && (rate == 0.0 || self.now >= self.faults_end) {
            return None;
        }

        let machine = &mut self.machines[agent];
        machine.drawn[kind as usize] += u64::from(target.is_none());
        let id = (agent, kind, machine.drawn[kind as usize]);
        let mut draw = self.random(agent, kind as u64, id.2);
        let happens = match target {
            Some((.., step)) => {
                let mut happened = self.happened.iter();
                self.machines[agent].steps >= *step && happened.all(|(_, fault)| *fault != id)
            }
            None => draw.f64() < rate,
        };
        if !happens || self.left_out.contains(&id) {
            return None;
        }
        self.happened.push((self.now, id));
        self.calm_at = self.calm_at.max(self.now);
        self.count(format!("fault: {kind:?}"));
        self.tell(|world| format!("** {kind:?} at {}", world.name(agent)));
        Some(draw)
    }

    fn push(&mut self, agent: Id, life: Option<u32>, delay: Duration, event: Event) {
        self.number += 1;
        let step = Box::new(Step { agent, life, event });
        self.queue.insert((self.now + delay, self.number), step);
    }

    /// Lets something happen to an agent later, in this life.
    pub fn plan(&mut self, agent: Id, delay: Duration, event: Event) {
        self.push(agent, Some(self.machines[agent].life), delay, event);
    }

    /// Lets an agent look at its work later, and not before.
    pub fn wake(&mut self, id: Id, delay: Duration) {
        self.machines[id].planned += 1;
        self.plan(id, delay, Event::Work(self.machines[id].planned));
    }

    /// Sends a request, perhaps twice. Its sender gets an answer, or the reason why there is none.
    pub fn send(
        &mut self,
        [from, to]: [Id; 2],
        timeout: Duration,
        envelope: Envelope,
        body: Body,
        purpose: Purpose,
    ) {
        let call = self.calls.len();
        self.calls.push(Call {
            from,
            to,
            life: self.machines[from].life,
            envelope,
            body,
            purpose: Rc::new(purpose),
            reached: None,
            outcome: None,
        });
        self.tell(|world| {
            let name = world.calls[call].name();
            format!("{} -> {}: {name}", world.name(from), world.name(to))
        });
        self.give_back(call, timeout, Err(CallError::Timeout(timeout)));

        let line = from.max(to);
        let delay = self.delay(line, 12_000);
        let proves_nothing = matches!(*self.calls[call].purpose, Purpose::Registration)
            || matches!(self.calls[call].body, Body::Ping);
        if !proves_nothing && let Some(draw) = self.fault(line, Kind::Forged) {
            let token = self.false_token([from, to], draw);
            self.deliver(call, delay, true, Some(token));
        }
        if !self.is_lost([from, to], call) {
            self.deliver(call, delay, false, None);
            if self.fault(line, Kind::Doubled).is_some() {
                self.deliver(call, delay * 100, true, None);
            }
        }
    }

    fn deliver(&mut self, call: usize, delay: Duration, is_copy: bool, forged: Option<String>) {
        let arrival = Arrival {
            call,
            is_copy,
            forged,
            reached: None,
            has_asked: false,
        };
        self.push(self.calls[call].to, None, delay, Event::Arrive(arrival));
    }

    /// Returns a token that nobody has, or that of some agent other than these.
    fn false_token(&self, others: [Id; 2], mut draw: fastrand::Rng) -> String {
        let id = draw.usize(1..self.machines.len());
        let own = self.machines[id].credentials.as_ref();
        let token = own
            .filter(|_| !others.contains(&id))
            .and_then(|own| own.token.clone());
        token.unwrap_or_else(|| "tok-false".into())
    }

    /// Answers a request. A player's answer may be replaced by an error on the way to a referee.
    pub fn reply(&mut self, arrival: &Arrival, mut answer: Answer) {
        let call = arrival.call;
        let Call { from, to, .. } = self.calls[call];
        if arrival.forged.is_some() {
            return judge::nobody_takes_the_message_of_a_stranger(self, call, &answer);
        }
        self.given.push(Given {
            call,
            life: self.machines[to].life,
            answer: answer.clone(),
        });
        if from > 0 && to > 0 && self.fault(to, Kind::Wrong).is_some() {
            answer = Err(CallError::JsonRpc(-32603, "it crashed".into()));
        }
        if let Err(error) = &answer {
            self.tell(|world| format!("{} answers: {}", world.name(to), error.explain()));
        }
        if !arrival.is_copy && !self.is_lost([from, to], call) {
            let delay = self.delay(from.max(to), 40_000);
            self.give_back(call, delay, answer);
        }
    }

    /// Gives an answer to the sender of a request, later.
    fn give_back(&mut self, call: usize, delay: Duration, answer: Answer) {
        let Call { from, life, .. } = self.calls[call];
        self.push(from, Some(life), delay, Event::Return(call, answer));
    }

    /// Returns true if a message is lost. Its sender learns it at once, or never.
    fn is_lost(&mut self, agents: [Id; 2], call: usize) -> bool {
        if agents.iter().any(|id| self.lasts(*id, Kind::CutOff)) {
            return true;
        }
        let fault = self.fault(agents[0].max(agents[1]), Kind::Lost);
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

    /// A request arrives. Returns false if there is no program that takes it.
    pub fn is_taken(&mut self, arrival: &mut Arrival) -> bool {
        let call = &mut self.calls[arrival.call];
        let machine = &self.machines[call.to];
        let (_, life) = *arrival.reached.get_or_insert((self.now, machine.life));
        if machine.is_up && life == machine.life {
            if !arrival.is_copy {
                call.reached = Some(life);
            }
            return true;
        }
        if !machine.is_up && !arrival.is_copy {
            let refused = CallError::Unreachable(ConnectionRefused.to_string());
            self.give_back(arrival.call, Duration::ZERO, Err(refused));
        }
        false
    }

    /// Plays the league until the manager has ended, for an hour, or for the maximum number of events.
    pub fn run(&mut self) {
        self.set_clocks(0);
        for id in 0..self.machines.len() {
            let delay = ms(self.random(id, 97, 0).u64(..300));
            self.plan(id, delay, Event::Start);
        }
        while let Some(((time, number), step)) = self.queue.pop_first() {
            if time > LIMIT || self.number > MAX_EVENTS || self.machines[0].ended_at.is_some() {
                break;
            }
            self.now = self.now.max(time);
            let machine = &self.machines[step.agent];
            let is_replaced =
                matches!(step.event, Event::Work(planned) if planned != machine.planned);
            if is_replaced || step.life.is_some_and(|life| life != machine.life) {
                continue; // it has crashed since
            }
            match machine.until.get(&Kind::Suspended) {
                Some(wakes) if *wakes > self.now => drop(self.queue.insert((*wakes, number), step)),
                _ => self.run_step(step),
            }
        }
        ROOM.set(usize::MAX);
    }

    /// Lets something happen to an agent, which perhaps crashes at it.
    fn run_step(&mut self, step: Box<Step>) {
        let id = step.agent;
        let machine = &mut self.machines[id];
        machine.steps += 1;
        let is_alive = machine.is_up && machine.ended_at.is_none();
        let dies = match is_alive {
            true => self.draw_mishaps(id),
            false => None,
        };
        let room = (self.number % 90) as usize;
        let is_full = self.lasts(id, Kind::DiskFull);
        ROOM.set(if is_full { room } else { usize::MAX });
        self.set_clocks(id);

        let dying = dies.map(|draw| (self.file_length(id), self.step_name(&step.event), draw));
        let before = (self.number, self.calls.len(), self.given.len());
        agents::run(self, id, step.event);
        if let Some((file, name, draw)) = dying
            && self.machines[id].ended_at.is_none()
        {
            // Nothing leaves it.
            self.queue.retain(|(_, number), _| *number <= before.0);
            self.calls.truncate(before.1);
            self.given.truncate(before.2);
            self.crash(id, file, name, draw);
        }
    }

    /// Draws what happens to an agent at a step. Returns random numbers if it crashes.
    fn draw_mishaps(&mut self, id: Id) -> Option<fastrand::Rng> {
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
        self.calm_at = self.calm_at.max(self.now + time);
        self.tell(|world| format!("{} is away for {time:?}", world.name(id)));
        self.now + time
    }

    /// Sets the clocks of this thread to those of an agent.
    fn set_clocks(&self, id: Id) {
        let offset = self.machines[id].clock_offset;
        let utc = OffsetDateTime::from_unix_timestamp(1_736_937_000 + offset).unwrap();
        clock::set(self.origin + self.now, utc + self.now);
    }

    /// Returns the length of the file to which an agent appends.
    fn file_length(&self, id: Id) -> u64 {
        let found = self.file(id).and_then(|file| fs::metadata(file).ok());
        found.map_or(0, |found| found.len())
    }

    /// Returns the file to which a manager or a referee appends.
    pub fn file(&self, id: Id) -> Option<PathBuf> {
        let data = &self.program.data;
        if id == 0 {
            let folder = data.join("leagues").join(self.program.league_id());
            return Some(folder.join("journal.jsonl"));
        }
        let own = self.machines[id].credentials.as_ref()?;
        let folder = data.join("referees").join(&own.agent_id);
        (id <= self.referees.len()).then(|| folder.join("outbox.jsonl"))
    }

    /// An agent is gone. Of the lines that it wrote in this step, a part is on the disk, or all.
    fn crash(&mut self, id: Id, before: u64, step: &str, mut draw: fastrand::Rng) {
        let mut line = "";
        let after = self.file_length(id);
        if before < after {
            line = ", line whole";
            if draw.bool() && before > 0 {
                let file = OpenOptions::new().write(true).open(self.file(id).unwrap());
                let cut = draw.u64(before..after);
                file.and_then(|file| file.set_len(cut)).unwrap();
                line = ", line torn";
            }
        }
        let kind = self.name(id).trim_end_matches(char::is_numeric).to_string();
        self.count(format!("crash: {kind} at {step}{line}"));
        self.tell(|world| format!("{} crashes at {step}{line}", world.name(id)));

        // Those that wait for an answer notice it, unless its whole machine is gone.
        let machine = &mut self.machines[id];
        let life = Some(machine.life);
        (machine.is_up, machine.is_registered) = (false, false);
        machine.until.clear();
        machine.life += 1;
        if draw.u32(..4) > 0 {
            for call in 0..self.calls.len() {
                if self.calls[call].to == id && self.calls[call].reached == life {
                    self.break_off(call);
                }
            }
        }
        agents::crash(self, id);
        let until = self.go_away(id, draw);
        self.plan(id, until - self.now, Event::Start);
    }

    /// Returns the name of a step.
    fn step_name(&self, event: &Event) -> &'static str {
        match event {
            Event::Arrive(Arrival { call, .. }) | Event::Return(call, _) => {
                self.calls[*call].kind()
            }
            _ => "work",
        }
    }

    /// An agent ends; a referee or a player after a moment in which it still answers.
    pub fn end(&mut self, id: Id) {
        if self.machines[id].ended_at.is_none() {
            self.machines[id].ended_at = Some(self.now);
            self.tell(|world| format!("{} has ended", world.name(id)));
            self.plan(id, ms(500) * u32::from(id > 0), Event::End);
        }
    }
}

/// Draws the faults of the profiles with few of them: each happens once, at a step or at the next
/// one where it can.
fn draw_targets(
    draw: &mut fastrand::Rng,
    profile: Profile,
    referees: usize,
    players: usize,
) -> Vec<(Id, Kind, u64)> {
    let count = match profile {
        Profile::Safety => 0,
        Profile::Away => draw.usize(1..=2),
        Profile::Breach => 1,
    };
    let mut targets = Vec::new();
    for n in 0..count {
        let agent = draw.usize(0..=referees + players);
        let step = draw.u64(1..if agent == 0 { 300 } else { 80 });
        // One that hangs for good needs another one.
        let may_hang = referees > 1 && agent > 0 && agent <= referees && n == 0;
        let last = if may_hang { Kind::Hung } else { Kind::Crash };
        let kinds = [Kind::Crash, Kind::CutOff, Kind::Suspended, last];
        let kind = match profile {
            Profile::Away => draw.choice(kinds).unwrap(),
            _ => Kind::Crash,
        };
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

    /// Returns the message to a referee or a player.
    pub fn message(&self) -> Option<&PlayerRequest> {
        match &self.body {
            Body::ToAgent(message) => Some(message),
            _ => None,
        }
    }

    /// Returns true if it is a question of a match to a player.
    pub fn is_question(&self, conversation: &str, seat: usize) -> bool {
        self.envelope.conversation_id == conversation
            && matches!(*self.purpose, Purpose::Question(of) if of == seat)
    }

    /// Returns the name of its message, with the match.
    pub fn name(&self) -> String {
        let id = self.envelope.match_id.as_deref().unwrap_or_default();
        format!("{} {id}", self.kind()).trim_end().into()
    }
}
