//! The agents: the code of the three programs, and around it what their threads do, as steps.
//! Requests are handed over as they are, without HTTP and JSON.

use super::judge;
use super::replay::Replay;
use super::world::{Answer, Body, Id, Kind, World, count, ms};
use league::games::match_result;
use league::manager::contact::Call;
use league::manager::league::League;
use league::manager::{Manager, NoManagerHooks};
use league::net::agent::{Agent, HandlerError, Request};
use league::net::call_error::CallError;
use league::net::sync::lock;
use league::player::state::{Pause, PlayerState, Sender, Step};
use league::program::Program;
use league::program::credentials::Credentials;
use league::program::storage::league_folder;
use league::protocol::{
    AgentMeta, EVEN_ODD, Envelope, LeagueQuery, LeagueRegisterRequest, LeagueRegisterResponse,
    ManagerRequest, MatchResultReport, PlayerRequest, QueryType, RefereeRegisterRequest, Reply,
};
use league::referee::tasks::{Assignment, MANAGER, Sending, Tasks};
use league::values::clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind::ConnectionRefused;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Maximum time for the answer to a player's question to the manager.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time between two steps of the round loop here. (In the program it is shorter.)
const STEP_INTERVAL: Duration = Duration::from_secs(1);
/// Time until something is tried again that has failed.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Time until a request is looked at again that waits.
const PAUSE: Duration = Duration::from_millis(100);
/// The number of matches that a referee plays at once.
const CAPACITY: u32 = 2;

/// The manager's program.
pub struct Server {
    pub manager: Arc<Manager>,
    /// The agents that are being called.
    called: BTreeSet<Id>,
    /// The time of the last step of the round loop, and the number of changes before it.
    stepped: (Duration, u64),
    /// The number of assignments.
    pub assigned: usize,
    /// The rounds of which an agent was told the end.
    pub ends: BTreeSet<(Id, u32)>,
}

/// What a referee has in memory.
pub struct Referee {
    tasks: Arc<Mutex<Tasks>>,
    /// The matches in play, by conversation.
    plays: BTreeMap<String, Replay>,
    is_reporting: bool,
    /// The newest token of player A, by match.
    pub tokens: BTreeMap<String, Option<String>>,
    /// True if it has ended with nothing left to tell.
    pub is_settled: bool,
}

impl Referee {
    pub fn new(program: &Program) -> Referee {
        let tasks = Tasks::new(program.config.system.retry_policy);
        Referee {
            tasks: Arc::new(Mutex::new(tasks)),
            plays: BTreeMap::new(),
            is_reporting: false,
            tokens: BTreeMap::new(),
            is_settled: false,
        }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        lock(&self.tasks)
    }
}

/// The program of an agent starts.
pub fn start(world: &mut World, id: Id) {
    world.machines[id].is_up = true;
    world.tell(|world| format!("{} starts", world.name(id)));
    match id {
        0 => start_manager(world),
        _ => register(world, id),
    }
}

/// Drops what an agent has in memory. Of a player's history nothing is on its disk here.
pub fn crash(world: &mut World, id: Id) {
    if id == 0 {
        world.server = None;
    } else if id <= world.referees.len() {
        world.referees[id - 1] = Referee::new(&world.program);
    } else {
        *player(world, id) = PlayerState::new(true);
    }
}

/// An agent looks at its work.
pub fn work(world: &mut World, id: Id) {
    match id {
        0 => work_as_manager(world),
        _ => work_as_referee(world, id),
    }
}

pub fn player(world: &mut World, id: Id) -> &mut PlayerState {
    let first = 1 + world.referees.len();
    &mut world.players[id - first]
}

fn endpoint(id: Id) -> String {
    format!("http://localhost:{}/mcp", 7000 + id)
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

/// A request arrives, or is looked at again. It waits until its receiver is registered.
pub fn receive(world: &mut World, call: usize) {
    let row = &mut world.calls[call];
    let (id, machine) = (row.to, &world.machines[row.to]);
    world.step = row.kind();
    let (received_at, _) = *row.reached.get_or_insert((world.now, machine.life));
    if !machine.is_up {
        let refused = CallError::Unreachable(ConnectionRefused.to_string());
        return world.give_back(call, Duration::ZERO, Err(refused));
    }
    let (envelope, has_asked) = (row.envelope.clone(), row.has_asked);
    let message = match row.body.clone() {
        Body::Ping => return world.reply(call, Ok(None)),
        Body::ToManager(message) => return handle_as_manager(world, call, envelope, message),
        Body::ToAgent(message) => message,
    };
    if !machine.is_registered {
        return world.plan(id, 5 * PAUSE, move |world| receive(world, call));
    }

    let credentials = machine.credentials.clone().unwrap();
    let has_own_token = envelope.auth_token == credentials.token;
    let token = envelope.auth_token.as_deref();
    if envelope.match_id.is_none()
        && let Err(refusal) = credentials.check_manager(token, true)
    {
        return world.reply(call, answer_of(Err(refusal.into())));
    }
    if id <= world.referees.len() {
        return handle_as_referee(world, call, message);
    }
    let from = Sender {
        envelope,
        credentials,
        has_own_token,
        received_at: world.program.started + received_at,
        has_asked,
    };
    handle_as_player(world, call, from, message);
}

/// Sends a request to the manager.
fn ask_manager(
    world: &mut World,
    id: Id,
    conversation: &str,
    message: ManagerRequest,
    go_on: impl FnOnce(&mut World, Id, Answer) + 'static,
) {
    let machine = &world.machines[id];
    let kind = match id <= world.referees.len() {
        true => "referee",
        false => "player",
    };
    let sender = format!("{kind}:{}", machine.name);
    let own = machine.credentials.as_ref();
    let from = Envelope {
        auth_token: own.and_then(|own| own.token.clone()),
        ..Envelope::new(&sender, conversation)
    };
    let timeout = match message {
        ManagerRequest::LeagueQuery(_) => QUERY_TIMEOUT,
        _ => world.program.config.generic_limit(),
    };
    let go_on = move |world: &mut World, answer| go_on(world, id, answer);
    world.send([id, 0], timeout, from, Body::ToManager(message), go_on);
}

/// Registers an agent.
fn register(world: &mut World, id: Id) {
    let machine = &mut world.machines[id];
    let own = machine
        .credentials
        .get_or_insert_with(|| Credentials::new(&world.program).into());
    let meta = AgentMeta {
        display_name: machine.name.clone(),
        version: "1.0.0".into(),
        game_types: vec![EVEN_ODD.into()],
        contact_endpoint: endpoint(id),
        max_concurrent_matches: Some(CAPACITY),
        uses_match_tokens: Some(true),
        registration_key: Some(own.registration_key.clone()),
        ..AgentMeta::default()
    };
    let message = match id <= world.referees.len() {
        true => RefereeRegisterRequest { referee_meta: meta }.into(),
        false => LeagueRegisterRequest { player_meta: meta }.into(),
    };
    ask_manager(world, id, "conv-registration", message, enter);
}

/// An agent has an answer to its registration. Without one it registers again and again.
fn enter(world: &mut World, id: Id, answer: Answer) {
    let response: LeagueRegisterResponse = match answer {
        Ok(Some(Reply::RefereeRegisterResponse(response))) => response.into(),
        Ok(Some(Reply::LeagueRegisterResponse(response))) => response,
        _ => return world.plan(id, RETRY_DELAY, move |world| register(world, id)),
    };
    let machine = &mut world.machines[id];
    let old = machine.credentials.as_deref().unwrap();
    let is_new = response.auth_token != old.token;
    let new = old.clone().accepted(response).unwrap();

    machine.credentials = Some(new.into());
    machine.is_registered = true;
    if id <= world.referees.len() {
        let folder = world.program.data.join(&machine.name);
        machine.file = folder.join("outbox.jsonl");
        (world.referees[id - 1].tasks().open(&folder, is_new)).unwrap();
        world.wake(id, Duration::ZERO);
    }
}

fn start_manager(world: &mut World) {
    let program = Arc::clone(&world.program);
    let folder = league_folder(&program.data, program.league_id());
    world.machines[0].file = folder.join("journal.jsonl");
    let Ok(mut manager) = Manager::new(program, Arc::new(NoManagerHooks)) else {
        return world.plan(0, RETRY_DELAY, start_manager); // the disk is full
    };
    let awaited = Some((world.players.len() as u32, world.referees.len() as u32));
    manager.lead = world.lead;
    (manager.contacts).with(|table| table.automatic_start = awaited);
    world.server = Some(Server {
        manager: Arc::new(manager),
        called: BTreeSet::new(),
        stepped: (Duration::ZERO, u64::MAX),
        assigned: 0,
        ends: BTreeSet::new(),
    });
    world.wake(0, Duration::ZERO);
}

fn handle_as_manager(world: &mut World, call: usize, envelope: Envelope, message: ManagerRequest) {
    if let Some(server) = &world.server {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let handled = server.manager.handle(&Request { envelope, peer }, message);
        world.reply(call, answer_of(handled));
        world.wake(0, Duration::ZERO);
    }
}

/// What the round loop and the delivery threads do when they are woken.
fn work_as_manager(world: &mut World) {
    let server = world.server.as_mut().unwrap();
    let manager = Arc::clone(&server.manager);
    let changes = manager.store.change_count();
    if changes != server.stepped.1 || world.now >= server.stepped.0 + STEP_INTERVAL {
        server.stepped = (world.now, changes);
        manager.step();
        judge::the_manager_waits_rightly(world, &manager);
    }
    end_league(world);
    for id in 1..world.machines.len() {
        call_agent(world, id);
    }
    world.wake(0, STEP_INTERVAL);
}

/// Closes the league when it is over, and all have been told.
fn end_league(world: &mut World) {
    let manager = &world.server.as_ref().unwrap().manager;
    if manager.store.read(League::is_over) && manager.may_end() && manager.close().is_ok() {
        world.end(0);
    }
}

/// Makes the next call to an agent, if none is under way, and records its answer.
fn call_agent(world: &mut World, to: Id) {
    let server = world.server.as_mut().unwrap();
    if server.called.contains(&to) {
        return;
    }
    let (call, _) = match server.manager.begin_call(&world.machines[to].name) {
        Ok(begun) => begun,
        Err(time) => return world.wake(0, time.max(ms(1))),
    };
    server.called.insert(to);
    let (from, message) = notice(world, to, &call);
    if let Some(message) = &message {
        judge::notifications_come_in_order(world, to, message);
    }

    let limit = world.program.config.generic_limit();
    let body = message.map_or(Body::Ping, Body::ToAgent);
    world.send([0, to], limit, from, body, move |world, answer| {
        let answer = match answer {
            Err(error) if !matches!(error, CallError::Refused(..)) => Err(error),
            // A refusal is an answer that arrived. That of a referee which refuses for good is not
            // simulated (tests/scripts/contacts).
            _ => Ok(Value::Null),
        };
        let server = world.server.as_mut().unwrap();
        server.called.remove(&to);
        (server.manager).record(&world.machines[to].name, &call, &answer);
        if server.manager.store.change_count() != server.stepped.1 {
            world.wake(0, Duration::ZERO);
        } else {
            end_league(world); // the round loop may look between two steps
        }
        call_agent(world, to);
    });
}

/// Returns the message of a call, and its envelope. Each referee has its own copy of an announcement,
/// and each player its own token.
fn notice(world: &World, to: Id, call: &Call) -> (Envelope, Option<PlayerRequest>) {
    let name = world.name(to);
    let server = world.server.as_ref().unwrap();
    server.manager.store.read(|league| {
        let mut message = call.notification.and_then(|told| league.message_of(told));
        if let Some(PlayerRequest::RoundAnnouncement(round)) = &mut message {
            match to <= world.referees.len() {
                true => *round = league.announcement(round.round_id, Some(name)),
                false => round.match_token = league.match_token(round.round_id, name),
            }
        }
        let envelope = Envelope {
            auth_token: Some(league.members[name].token.clone()),
            ..Envelope::new("league_manager", "conv-notification")
        };
        (envelope, message)
    })
}

fn handle_as_referee(world: &mut World, call: usize, message: PlayerRequest) {
    let (id, reached) = (world.calls[call].to, world.calls[call].reached);
    let limit = world.program.config.report_limit();
    let referee = &mut world.referees[id - 1];
    let handled = match message {
        PlayerRequest::RoundAnnouncement(round) => {
            let matches = round.matches.iter().cloned();
            let tokens = matches.map(|one| (one.match_id, one.player_A_token));
            referee.tokens.extend(tokens);
            referee.tasks().apply(round, &endpoint(id))
        }
        PlayerRequest::LeagueCompleted(_) => {
            // The end is answered when all is settled, or after a while.
            referee.tasks().end();
            let is_settled = referee.tasks().are_settled();
            if !is_settled && reached.is_some_and(|(time, _)| world.now < time + limit) {
                return world.plan(id, PAUSE, move |world| receive(world, call));
            }
            referee.is_settled = is_settled;
            referee.tasks().by_match.clear();
            world.end(id);
            Ok(())
        }
        _ => Ok(()),
    };
    let handled = handled.map(|()| None).map_err(HandlerError::from);
    world.reply(call, answer_of(handled));
    world.wake(id, Duration::ZERO);
}

/// What the threads of a referee do when they are woken.
fn work_as_referee(world: &mut World, id: Id) {
    while world.referees[id - 1].plays.len() < CAPACITY as usize {
        // Another number each time: a match that is played again does not end alike.
        let random = world.random(id, 94, world.number).u64(..);
        let referee = &mut world.referees[id - 1];
        let next = referee.tasks().start_next();
        let Ok(assignment) = next else { break };
        let conversation = assignment.conversation_id.clone();
        let config = &world.program.config.system;
        let replay = Replay::new(assignment, &referee.tasks, config, random);
        referee.plays.insert(conversation.clone(), replay);
        go_on(world, id, &conversation);
    }

    // While a report is under way, its thread sends nothing else.
    while !world.referees[id - 1].is_reporting {
        let next = world.referees[id - 1].tasks().next(clock::now());
        match next {
            Ok(sending) if sending.receiver == MANAGER => report(world, id, sending),
            Ok(sending) => tell(world, id, sending),
            Err(time) => return world.wake(id, time.max(ms(1))),
        }
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
        go_on(world, id, conversation);
    }
}

/// Plays a match as far as its answers go, and does what it wants then.
fn go_on(world: &mut World, id: Id, conversation: &str) {
    let replay = &world.referees[id - 1].plays[conversation];
    let ((wants, end), assignment) = (replay.run(), Arc::clone(&replay.assignment));
    for (seat, message, time) in wants {
        let conversation = conversation.to_string();
        let go_on = move |world: &mut World, answer| play(world, id, &conversation, seat, answer);
        match message {
            None => world.plan(id, time, move |world| go_on(world, Ok(None))),
            Some(PlayerRequest::GameOver(game_over)) => {
                let sending = Sending {
                    assignment: Assignment::clone(&assignment),
                    receiver: seat,
                    game_over,
                };
                tell(world, id, sending);
            }
            Some(question) => {
                let (to, from) = address(world, &assignment, seat);
                judge::matches_begin_in_time(world, to, &question);
                world.send([id, to], time, from, Body::ToAgent(question), go_on);
            }
        }
    }

    let Some(result) = end else { return };
    let status = result.as_ref().map(|result| result.status);
    count(format!("match ends: {status:?}"));
    let referee = &mut world.referees[id - 1];
    referee.plays.remove(conversation);
    let pause = RETRY_DELAY * u32::from(result.is_err());
    world.plan(id, pause, move |world| {
        world.referees[id - 1].tasks().finish(&assignment);
        world.wake(id, Duration::ZERO);
    });
}

/// Returns a player, and the envelope of a message to it about a match.
fn address(world: &World, assignment: &Assignment, seat: usize) -> (Id, Envelope) {
    let envelope = Envelope {
        auth_token: Some(assignment.tokens[seat].clone()),
        round_id: Some(assignment.round_id),
        match_id: Some(assignment.match_id.clone()),
        ..Envelope::new("referee:REF", &assignment.conversation_id)
    };
    (world.id(&assignment.players[seat]), envelope)
}

/// Tells a player the result of its match.
fn tell(world: &mut World, id: Id, sending: Sending) {
    let limit = world.program.config.game_over_limit();
    let (to, from) = address(world, &sending.assignment, sending.receiver);
    let body = Body::ToAgent(sending.game_over.clone().into());
    world.send([id, to], limit, from, body, move |world, answer| {
        record(world, id, &sending, answer);
        let conversation = &sending.assignment.conversation_id;
        play(world, id, conversation, sending.receiver, Ok(None));
    });
}

/// Reports a result to the manager.
fn report(world: &mut World, id: Id, sending: Sending) {
    judge::losses_are_reported_under_the_newest_tokens(world, id, &sending);
    world.referees[id - 1].is_reporting = true;
    let (config, assignment) = (&world.program.config, sending.assignment.clone());
    let report = MatchResultReport {
        league_id: assignment.league_id,
        round_id: assignment.round_id,
        match_id: assignment.match_id,
        game_type: assignment.game_type,
        result: match_result(&sending.game_over.game_result, &config.league.scoring),
    };
    let conversation = &assignment.conversation_id;
    ask_manager(
        world,
        id,
        conversation,
        report.into(),
        move |world, id, answer| {
            world.referees[id - 1].is_reporting = false;
            record(world, id, &sending, answer);
        },
    );
}

/// Records the answer to a result.
fn record(world: &mut World, id: Id, sending: &Sending, answer: Answer) {
    let answer = answer.map(drop);
    (world.referees[id - 1].tasks()).record(sending, &answer, clock::now());
    world.wake(id, Duration::ZERO);
}

/// Handles a request, perhaps again after a pause.
fn handle_as_player(world: &mut World, call: usize, mut from: Sender, mut message: PlayerRequest) {
    let id = world.calls[call].to;
    let handled = player(world, id).handle(&mut from, &mut message, clock::now());
    world.calls[call].has_asked = from.has_asked;
    let reply = match handled {
        Err(Pause::Wait(time)) => {
            return world.plan(id, time.min(PAUSE), move |world| receive(world, call));
        }
        Err(Pause::Ask(query)) => return ask_about(world, call, &from, query),
        Err(Pause::Refuse(error)) => {
            judge::results_are_accepted(world, id, &from.envelope, &message, &error);
            Err(error)
        }
        Ok(Step::Choose(turn, joined)) => {
            let draw = world.random(id, 94, world.number).usize(..);
            let chosen = turn.legal_moves[draw % turn.legal_moves.len()].clone();
            let choice = joined.moves.get_or_choose(turn.move_number, || chosen);
            Ok(Some(from.response(&message, turn, choice)))
        }
        Ok(Step::Reply(reply)) => Ok(reply),
        Ok(Step::End(_)) => {
            world.end(id);
            Ok(None)
        }
        Ok(_) => Ok(None),
    };
    world.reply(call, answer_of(reply));
}

/// Asks the manager about a request of a player, and handles that then.
fn ask_about(world: &mut World, call: usize, from: &Sender, query: QueryType) {
    let query = LeagueQuery {
        league_id: from.credentials.league_id.clone(),
        query_type: json!(query),
        query_params: None,
    };
    let id = world.calls[call].to;
    ask_manager(
        world,
        id,
        "conv-query",
        query.into(),
        move |world, id, answer| {
            if let Ok(Some(Reply::LeagueQueryResponse(response))) = answer
                && let Some(data) = response.data
            {
                let own_id = world.name(id).to_string();
                player(world, id).learn(&own_id, &data);
            }
            receive(world, call);
        },
    );
}
