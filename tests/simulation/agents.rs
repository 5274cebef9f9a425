//! The agents: the code of the three programs, and around it what their threads do, as steps.
//! Requests are handed over as they are, without HTTP and JSON.

use super::judge;
use super::replay::{Replay, Want};
use super::world::{Answer, Arrival, Body, Event, Id, Kind, Purpose, World, ms};
use league::games::match_result;
use league::manager::contact::Call;
use league::manager::{Manager, NoManagerHooks};
use league::net::agent::{Agent, HandlerError, Request};
use league::net::call_error::CallError;
use league::player::state::{Pause, PlayerState, Sender, Step};
use league::player::turn::PastMatch;
use league::program::Program;
use league::program::credentials::Credentials;
use league::protocol::{
    AgentKind, AgentMeta, EVEN_ODD, Envelope, ErrorCode, LeagueQuery, LeagueRegisterRequest,
    LeagueRegisterResponse, ManagerRequest, MatchResultReport, PlayerRequest, ProtocolError,
    QueryType, RefereeRegisterRequest, RegistrationStatus, Reply,
};
use league::referee::tasks::{Assignment, MANAGER, Sending, Tasks};
use league::values::clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that a request waits for the registration of its receiver.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for the answer to a player's question to the manager.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between two writes of a player's history.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time between two steps of the round loop here. (In the program it is shorter.)
const STEP_INTERVAL: Duration = Duration::from_secs(1);
/// Time until something is tried again that has failed.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// The number of matches that a referee plays at once.
const CAPACITY: u32 = 2;

/// Something happens to an agent.
pub fn run(world: &mut World, id: Id, event: Event) {
    match event {
        Event::Start if id == 0 => Server::start(world),
        Event::Start => register(world, id),
        Event::Work(_) if id == 0 => Server::work(world),
        Event::Work(_) => Referee::work(world, id),
        Event::Arrive(arrival) => receive(world, id, arrival),
        Event::Return(call, answer) => {
            if world.calls[call].outcome.is_none() {
                world.calls[call].outcome = Some(answer.clone());
                go_on(world, id, call, answer);
            }
        }
        Event::GoOn(conversation, seat, answer) => {
            Referee::play(world, id, &conversation, seat, answer)
        }
        Event::Finish(assignment) => {
            world.referees[id - 1].tasks.finish(&assignment);
            world.wake(id, Duration::ZERO);
        }
        Event::End => {
            world.machines[id].is_up = false;
            world.machines[id].life += 1;
        }
    }
}

/// Drops what an agent has in memory.
pub fn crash(world: &mut World, id: Id) {
    if id == 0 {
        world.server = None;
    } else if id <= world.referees.len() {
        world.referees[id - 1] = Referee::new(&world.program);
    } else {
        Player::of(world, id).state = PlayerState::new(true);
    }
}

fn endpoint(id: Id) -> String {
    format!("http://localhost:{}/mcp", 7000 + id)
}

fn envelope(sender: &str, conversation_id: &str, auth_token: Option<String>) -> Envelope {
    Envelope {
        auth_token,
        ..Envelope::new(sender, conversation_id)
    }
}

/// Returns the answer of a handler as its caller gets it.
fn answer_of(handled: Result<Option<Reply>, HandlerError>) -> Answer {
    handled.map_err(|error| match error {
        HandlerError::Refused(error) => {
            CallError::Refused(Box::new(error.league_error("?")), error.to_string())
        }
        error => CallError::JsonRpc(-32603, error.into_json_rpc().message),
    })
}

fn refuse(world: &mut World, arrival: &Arrival, error: ProtocolError) {
    world.reply(arrival, answer_of(Err(error.into())));
}

/// A request arrives. An agent that is not registered yet does not know who asks.
fn receive(world: &mut World, id: Id, mut arrival: Arrival) {
    if !world.is_taken(&mut arrival) {
        return;
    }
    let (call, machine) = (&world.calls[arrival.call], &world.machines[id]);
    let (received_at, _) = arrival.reached.unwrap();
    let mut envelope = call.envelope.clone();
    envelope.auth_token = arrival.forged.clone().or(envelope.auth_token);
    let message = match call.body.clone() {
        Body::Ping => return world.reply(&arrival, Ok(None)),
        Body::ToManager(message) => return Server::handle(world, &arrival, envelope, message),
        Body::ToAgent(message) => message,
    };
    if !machine.is_registered {
        if world.now <= received_at + REGISTRATION_TIMEOUT {
            return world.plan(id, ms(100), Event::Arrive(arrival));
        }
        let problem = "this agent is not registered with a league manager yet";
        let error = ProtocolError::new(ErrorCode::PlayerNotRegistered, problem);
        return refuse(world, &arrival, error);
    }

    let credentials = machine.credentials.clone().unwrap();
    let has_own_token = envelope.auth_token == credentials.token;
    if envelope.match_id.is_none() && !has_own_token {
        return refuse(world, &arrival, ProtocolError::wrong_token("not ours"));
    }
    if id <= world.referees.len() {
        return Referee::handle(world, id, arrival, message);
    }
    let from = Sender {
        envelope,
        credentials,
        has_own_token,
        received_at: world.origin + received_at,
        has_asked: arrival.has_asked,
    };
    Player::handle(world, id, arrival, from, message);
}

/// A request of an agent is answered, or has failed.
fn go_on(world: &mut World, id: Id, call: usize, answer: Answer) {
    if let Err(error) = &answer {
        world.tell(|world| {
            let name = world.calls[call].name();
            format!("{} gets for {name}: {}", world.name(id), error.explain())
        });
    }
    let call = &world.calls[call];
    match &*Rc::clone(&call.purpose) {
        Purpose::Registration => enter(world, id, answer),
        Purpose::Notification(call, receiver) => Server::record(world, receiver, call, answer),
        Purpose::Question(seat) => {
            let conversation = call.envelope.conversation_id.clone();
            Referee::play(world, id, &conversation, *seat, answer);
        }
        Purpose::Result(sending) => Referee::record(world, id, sending, answer),
        Purpose::Query(arrival) => {
            let own = world.machines[id].credentials.clone().unwrap();
            if let Ok(Some(Reply::LeagueQueryResponse(response))) = answer
                && let Some(data) = response.data
            {
                let player = Player::of(world, id);
                player.state.learn(&own.agent_id, &data);
            }
            receive(world, id, arrival.clone());
        }
    }
}

/// Registers an agent.
fn register(world: &mut World, id: Id) {
    world.boot(id);
    let is_referee = id <= world.referees.len();
    let kind = if is_referee {
        AgentKind::Referee
    } else {
        AgentKind::Player
    };
    let name = world.name(id).to_string();
    let new = || Credentials {
        endpoint: endpoint(id),
        ..Credentials::new(&world.program)
    };
    let own = world.machines[id]
        .credentials
        .get_or_insert_with(|| Arc::new(new()));
    let meta = AgentMeta {
        display_name: name.clone(),
        version: "1.0.0".into(),
        game_types: vec![EVEN_ODD.into()],
        contact_endpoint: own.endpoint.clone(),
        max_concurrent_matches: is_referee.then_some(CAPACITY),
        uses_match_tokens: is_referee.then_some(true),
        registration_key: Some(own.registration_key.clone()),
        ..AgentMeta::default()
    };
    let from = envelope(
        &format!("{kind}:{name}"),
        "conv-registration",
        own.token.clone(),
    );
    let message = match is_referee {
        true => RefereeRegisterRequest { referee_meta: meta }.into(),
        false => LeagueRegisterRequest { player_meta: meta }.into(),
    };
    let timeout = world.program.config.registration_limit(kind);
    world.send(
        [id, 0],
        timeout,
        from,
        Body::ToManager(message),
        Purpose::Registration,
    );
}

/// An agent has an answer to its registration. Without one it registers again and again.
fn enter(world: &mut World, id: Id, answer: Answer) {
    let response: LeagueRegisterResponse = match answer {
        Ok(Some(Reply::RefereeRegisterResponse(response))) => response.into(),
        Ok(Some(Reply::LeagueRegisterResponse(response))) => response,
        _ => {
            return world.plan(id, RETRY_DELAY, Event::Start);
        }
    };
    if response.status == RegistrationStatus::Rejected {
        return world.end(id);
    }

    let machine = &mut world.machines[id];
    let old = machine.credentials.take().unwrap();
    let new = Credentials::clone(&old).accepted(response).unwrap();
    let is_new = new.token != old.token;
    machine.credentials = Some(Arc::new(new));
    machine.is_registered = true;
    if id > world.referees.len() {
        let player = Player::of(world, id);
        for past in player.saved.iter() {
            player.state.history.add(past.clone());
        }
        return;
    }
    let file = world.file(id).unwrap();
    let tasks = &mut world.referees[id - 1].tasks;
    tasks.open(file.parent().unwrap(), is_new).unwrap();
    world.wake(id, Duration::ZERO);
}

/// The manager's program.
pub struct Server {
    pub manager: Arc<Manager>,
    /// The agents that are being called.
    called: BTreeSet<String>,
    /// The time of the last step of the round loop, and the number of changes before it.
    stepped: (Duration, u64),
    /// The number of assignments.
    pub assigned: usize,
    /// The ends of rounds that were sent: to whom, and of which round.
    pub ends: BTreeSet<(Id, u32)>,
}

impl Server {
    fn start(world: &mut World) {
        world.boot(0);
        let opened = Manager::new(Arc::clone(&world.program), Arc::new(NoManagerHooks));
        let Ok(mut manager) = opened else {
            return world.plan(0, RETRY_DELAY, Event::Start); // the disk is full
        };
        let awaited = Some((world.players.len() as u32, world.referees.len() as u32));
        manager.lead = world.lead;
        manager
            .contacts
            .with(|table| table.automatic_start = awaited);
        world.server = Some(Server {
            stepped: (Duration::ZERO, u64::MAX),
            assigned: 0,
            ends: BTreeSet::new(),
            manager: Arc::new(manager),
            called: BTreeSet::new(),
        });
        world.wake(0, Duration::ZERO);
    }

    /// Handles a request.
    fn handle(world: &mut World, arrival: &Arrival, envelope: Envelope, message: ManagerRequest) {
        if let Some(server) = &world.server {
            let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let handled = server.manager.handle(&Request { envelope, peer }, message);
            world.reply(arrival, answer_of(handled));
            world.wake(0, Duration::ZERO);
        }
    }

    /// What the round loop and the delivery threads do when they are woken.
    fn work(world: &mut World) {
        let Some(server) = &world.server else { return };
        let manager = Arc::clone(&server.manager);
        let mut is_due = world.now >= server.stepped.0 + STEP_INTERVAL;
        let mut changes = server.stepped.1;
        while is_due || changes != manager.store.change_count() {
            changes = manager.store.change_count();
            manager.step();
            is_due = false;
            world.server.as_mut().unwrap().stepped = (world.now, changes);
            judge::the_manager_waits_rightly(world, &manager);
        }
        let is_over = manager.store.read(|league| league.is_over());
        if is_over && manager.may_end() && manager.close().is_ok() {
            return world.end(0);
        }

        let mut wait = STEP_INTERVAL;
        let mut ids = manager
            .store
            .read(|league| league.members.keys().cloned().collect::<Vec<_>>());
        ids.retain(|id| !world.server.as_ref().unwrap().called.contains(id));
        for id in ids {
            match manager.begin_call(&id) {
                Ok((call, _)) => Server::send(world, &manager, id, call),
                Err(time) => wait = wait.min(time.max(ms(1))),
            }
        }
        world.wake(0, wait);
    }

    /// Makes a call to an agent.
    fn send(world: &mut World, manager: &Manager, id: String, call: Call) {
        // Each referee has its own copy of an announcement, and each player its own token.
        let (member, message) = manager.store.read(|league| {
            let member = league.members[&id].clone();
            let mut message = call.notification.and_then(|told| league.message_of(told));
            if let Some(PlayerRequest::RoundAnnouncement(round)) = &mut message {
                match member.kind {
                    AgentKind::Referee => *round = league.announcement(round.round_id, Some(&id)),
                    _ => round.match_token = league.match_token(round.round_id, &id),
                }
            }
            (member, message)
        });
        world.server.as_mut().unwrap().called.insert(id.clone());
        let from = envelope("league_manager", "conv-notification", Some(member.token));
        let to = world.id(&id);
        if let Some(message) = &message {
            judge::notifications_come_in_order(world, to, message);
        }
        let timeout = manager.program.config.generic_limit();
        let body = message.map_or(Body::Ping, Body::ToAgent);
        world.send(
            [0, to],
            timeout,
            from,
            body,
            Purpose::Notification(call, id),
        );
    }

    /// Records the answer to a call. A refusal is an answer that arrived.
    fn record(world: &mut World, id: &str, call: &Call, answer: Answer) {
        let answer = match answer {
            Ok(_) => Ok(Value::Null),
            Err(CallError::Refused(error, _)) => {
                let mut packet = json!(error);
                packet["message_type"] = "LEAGUE_ERROR".into();
                Ok(packet)
            }
            Err(error) => Err(error),
        };
        if let Some(server) = &mut world.server {
            server.called.remove(id);
            server.manager.record(id, call, &answer);
            world.wake(0, Duration::ZERO);
        }
    }
}

impl World {
    /// Notes that the program of an agent runs, if it did not run yet.
    fn boot(&mut self, id: Id) {
        if !self.machines[id].is_up {
            self.machines[id].is_up = true;
            self.tell(|world| format!("{} starts", world.name(id)));
        }
    }
}

/// What a referee has in memory.
pub struct Referee {
    tasks: Tasks,
    /// The matches in play, by conversation.
    plays: BTreeMap<String, Replay>,
    is_reporting: bool,
    /// The newest token of player A, by match.
    pub tokens: BTreeMap<String, Option<String>>,
    /// True if it has ended with nothing left to tell.
    pub is_settled: bool,
    /// The notifications of the end of the league that are not answered yet.
    ending: Vec<Arrival>,
}

impl Referee {
    pub fn new(program: &Program) -> Referee {
        Referee {
            tasks: Tasks::new(program.config.system.retry_policy),
            plays: BTreeMap::new(),
            is_reporting: false,
            tokens: BTreeMap::new(),
            is_settled: false,
            ending: Vec::new(),
        }
    }

    fn handle(world: &mut World, id: Id, arrival: Arrival, message: PlayerRequest) {
        let referee = &mut world.referees[id - 1];
        let handled = match message {
            PlayerRequest::RoundAnnouncement(round) => {
                let matches = round.matches.iter().cloned();
                let tokens = matches.map(|one| (one.match_id, one.player_A_token));
                referee.tokens.extend(tokens);
                referee.tasks.apply(round, &endpoint(id))
            }
            PlayerRequest::LeagueCompleted(_) => {
                referee.tasks.end();
                referee.ending.push(arrival);
                return world.wake(id, Duration::ZERO);
            }
            _ => Ok(()),
        };
        world.reply(
            &arrival,
            answer_of(handled.map(|()| None).map_err(HandlerError::from)),
        );
        world.wake(id, Duration::ZERO);
    }

    /// What its threads do when they are woken.
    fn work(world: &mut World, id: Id) {
        while world.referees[id - 1].plays.len() < CAPACITY as usize
            && let Ok(assignment) = world.referees[id - 1].tasks.start_next()
        {
            // Another number each time: a match that is played again does not end alike.
            let seed = world.random(id, 94, world.number).u64(..);
            let conversation = assignment.conversation_id.clone();
            let replay = Replay::new(assignment, &world.program.config.system, seed);
            world.referees[id - 1]
                .plays
                .insert(conversation.clone(), replay);
            Referee::go_on(world, id, &conversation);
        }

        // While a report is under way, its thread sends nothing else.
        let mut wait = Duration::MAX;
        while !world.referees[id - 1].is_reporting && wait == Duration::MAX {
            match world.referees[id - 1].tasks.next(clock::now()) {
                Ok(sending) if sending.receiver == MANAGER => Referee::report(world, id, sending),
                Ok(sending) => Referee::tell(world, id, sending),
                Err(time) => wait = time,
            }
        }

        // The end is answered when all is settled, or after a while.
        let limit = world.program.config.report_limit();
        let referee = &mut world.referees[id - 1];
        if let Some(first) = referee.ending.first() {
            let is_settled = referee.tasks.are_settled();
            if world.machines[id].ended_at.is_none() {
                referee.is_settled = is_settled;
            }
            if is_settled || world.now >= first.reached.unwrap().0 + limit {
                referee.tasks.by_match.clear();
                for arrival in std::mem::take(&mut referee.ending) {
                    world.reply(&arrival, Ok(None));
                }
                return world.end(id);
            }
            wait = wait.min(ms(1000));
        }
        if wait != Duration::MAX {
            world.wake(id, wait.max(ms(1)));
        }
    }

    /// Goes on with a match, if it is still in play, with an answer.
    fn play(world: &mut World, id: Id, conversation: &str, seat: usize, answer: Answer) {
        let hangs = world.fault(id, Kind::Hung).is_some();
        world.machines[id].was_away |= hangs;
        if let Some(replay) = world.referees[id - 1].plays.get(conversation)
            && !hangs
        {
            replay.add(seat, answer);
            Referee::go_on(world, id, conversation);
        }
    }

    /// Plays a match as far as its answers go, and does what it wants then.
    fn go_on(world: &mut World, id: Id, conversation: &str) {
        let replay = &world.referees[id - 1].plays[conversation];
        let ((wants, end), assignment) = (replay.run(), Arc::clone(&replay.assignment));
        for (seat, want) in wants {
            Referee::give(world, id, &assignment, seat, want);
        }

        let Some(result) = end else { return };
        let status = result.as_ref().map(|result| result.status);
        world.count(format!("match ends: {status:?}"));
        let referee = &mut world.referees[id - 1];
        referee.plays.remove(conversation);
        let pauses = result.is_err() && referee.tasks.current(&assignment).is_some();
        world.plan(
            id,
            RETRY_DELAY * u32::from(pauses),
            Event::Finish(assignment),
        );
    }

    /// Does what a match wants. What needs no answer from elsewhere is answered at once.
    fn give(world: &mut World, id: Id, assignment: &Assignment, seat: usize, want: Want) {
        let conversation = &assignment.conversation_id;
        let tasks = &mut world.referees[id - 1].tasks;
        let is_ours = tasks.current(assignment).is_some();
        let answer = match want {
            Want::Ask(question, timeout) if is_ours => {
                if let PlayerRequest::GameInvitation(new) = &question {
                    let player = world.id(&assignment.players[seat]);
                    judge::matches_begin_in_time(world, player, new);
                }
                let purpose = Purpose::Question(seat);
                return Referee::send(world, id, assignment, seat, timeout, question, purpose);
            }
            Want::Tell(game_over) if is_ours => {
                let sending = Sending {
                    assignment: assignment.clone(),
                    receiver: seat,
                    game_over,
                };
                return Referee::tell(world, id, sending);
            }
            Want::Sleep(delay) => {
                let event = Event::GoOn(conversation.clone(), seat, Ok(None));
                return world.plan(id, delay, event);
            }
            Want::Save(result) if tasks.save(assignment, &result).is_ok_and(|saved| saved) => {
                Ok(None)
            }
            _ => Err(CallError::Local("the match is no longer ours".into())),
        };
        Referee::play(world, id, conversation, seat, answer);
    }

    /// Records the answer to a result.
    fn record(world: &mut World, id: Id, sending: &Sending, mut answer: Answer) {
        let is_report = sending.receiver == MANAGER;
        if is_report {
            world.referees[id - 1].is_reporting = false;
            if let Err(CallError::Refused(error, _)) = &answer
                && error.error_code == ErrorCode::TokenInvalid
            {
                answer = Err(CallError::Local("not registered any more".into()));
                register(world, id);
            }
        }
        let tasks = &mut world.referees[id - 1].tasks;
        tasks.record(sending, &answer.map(drop), clock::now());
        if !is_report {
            let conversation = &sending.assignment.conversation_id;
            Referee::play(world, id, conversation, sending.receiver, Ok(None));
        }
        world.wake(id, Duration::ZERO);
    }

    /// Tells a player the result of its match.
    fn tell(world: &mut World, id: Id, sending: Sending) {
        let limit = world.program.config.game_over_limit();
        let (assignment, seat) = (sending.assignment.clone(), sending.receiver);
        let message = sending.game_over.clone().into();
        Referee::send(
            world,
            id,
            &assignment,
            seat,
            limit,
            message,
            Purpose::Result(Box::new(sending)),
        );
    }

    /// Sends a message of a match to a player.
    fn send(
        world: &mut World,
        id: Id,
        assignment: &Assignment,
        seat: usize,
        timeout: Duration,
        message: PlayerRequest,
        purpose: Purpose,
    ) {
        let to = world.id(&assignment.players[seat]);
        let token = Some(assignment.tokens[seat].clone());
        let from = Envelope {
            round_id: Some(assignment.round_id),
            match_id: Some(assignment.match_id.clone()),
            ..envelope("referee:REF", &assignment.conversation_id, token)
        };
        world.send([id, to], timeout, from, Body::ToAgent(message), purpose);
    }

    /// Reports a result to the manager.
    fn report(world: &mut World, id: Id, sending: Sending) {
        judge::losses_are_reported_under_the_newest_tokens(world, id, &sending);
        world.referees[id - 1].is_reporting = true;
        let own = world.machines[id].credentials.clone().unwrap();
        let (config, assignment) = (&world.program.config, &sending.assignment);
        let report = MatchResultReport {
            league_id: assignment.league_id.clone(),
            round_id: assignment.round_id,
            match_id: assignment.match_id.clone(),
            game_type: assignment.game_type.clone(),
            result: match_result(&sending.game_over.game_result, &config.league.scoring),
        };
        let sender = format!("referee:{}", own.agent_id);
        let from = envelope(&sender, &assignment.conversation_id, own.token.clone());
        let (body, timeout) = (Body::ToManager(report.into()), config.generic_limit());
        world.send(
            [id, 0],
            timeout,
            from,
            body,
            Purpose::Result(Box::new(sending)),
        );
    }
}

/// A player: what it has in memory, and on its disk.
pub struct Player {
    pub state: PlayerState,
    /// On its disk.
    pub saved: Arc<Vec<PastMatch>>,
    saved_at: Duration,
}

impl Default for Player {
    fn default() -> Player {
        Player {
            state: PlayerState::new(true),
            saved: Arc::default(),
            saved_at: Duration::ZERO,
        }
    }
}

impl Player {
    pub fn of(world: &mut World, id: Id) -> &mut Player {
        let first = 1 + world.referees.len();
        &mut world.players[id - first]
    }

    /// Handles a request, perhaps again after a pause.
    fn handle(
        world: &mut World,
        id: Id,
        mut arrival: Arrival,
        mut from: Sender,
        mut message: PlayerRequest,
    ) {
        let now = world.now;
        let player = Player::of(world, id);
        if now >= player.saved_at + SAVE_INTERVAL {
            (player.saved, player.saved_at) = (player.state.history.matches(), now);
        }
        let handled = player.state.handle(&mut from, &mut message, clock::now());
        arrival.has_asked = from.has_asked;
        let reply = match handled {
            Err(Pause::Wait(time)) => {
                return world.plan(id, time.min(ms(100)), Event::Arrive(arrival));
            }
            Err(Pause::Ask(query)) => return Player::ask(world, id, arrival, query),
            Err(Pause::Refuse(error)) => Err(error),
            Ok(Step::Choose(turn, joined)) => {
                let draw = world.random(id, 94, world.number).usize(..);
                let chosen = turn.legal_moves[draw % turn.legal_moves.len()].clone();
                let choice = joined.moves.get_or_choose(turn.move_number, || chosen);
                Ok(Some(from.response(&message, turn, choice)))
            }
            Ok(Step::Reply(reply)) => Ok(reply),
            Ok(Step::End(_)) => {
                let player = Player::of(world, id);
                player.saved = player.state.history.matches();
                world.end(id);
                Ok(None)
            }
            Ok(_) => Ok(None),
        };
        world.reply(&arrival, answer_of(reply));
    }

    /// Asks the manager about a request.
    fn ask(world: &mut World, id: Id, arrival: Arrival, query: QueryType) {
        let own = world.machines[id].credentials.as_ref().unwrap();
        let query = LeagueQuery {
            league_id: own.league_id.clone(),
            query_type: json!(query),
            query_params: None,
        };
        let sender = format!("player:{}", own.agent_id);
        let from = envelope(&sender, "conv-query", own.token.clone());
        let body = Body::ToManager(query.into());
        world.send([id, 0], QUERY_TIMEOUT, from, body, Purpose::Query(arrival));
    }
}
