//! The agents: the code of the three programs, and around it what their threads do, as steps.
//! Requests are handed over as they are, without HTTP and JSON.

use super::replay::{Replay, Want};
use super::world::{Answer, Id, Kind, Ticket, World, ms};
use fastrand::Rng;
use league::games::even_odd::GAME as EVEN_ODD_GAME;
use league::games::match_result;
use league::manager::contact::Call;
use league::manager::{Manager, NoManagerHooks};
use league::net::agent::{Agent, HandlerError, Request};
use league::net::call_error::CallError;
use league::player::state::{Pause, PlayerState, Sender, Step};
use league::player::turn::PastMatch;
use league::program::Program;
use league::program::attempts::Attempts;
use league::program::credentials::Credentials;
use league::protocol::{
    AgentKind, AgentMeta, ControlAction, EVEN_ODD, Envelope, ErrorCode, GameInvitation, GameOver,
    LeagueCompleted, LeagueControl, LeagueQuery, LeagueRegisterRequest, ManagerRequest,
    MatchResultReport, Message, PlayerRequest, ProtocolError, RefereeRegisterRequest, Reply,
};
use league::referee::tasks::{Assignment, MANAGER, Sending, Tasks};
use league::values::clock;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
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
/// The number of matches that a referee plays at once.
const CAPACITY: u32 = 2;

/// Starts the program of an agent.
pub fn start(world: &mut World, id: Id) {
    match id {
        0 => Server::start(world),
        _ => register(world, id),
    }
}

/// Lets a manager or a referee look at its work.
pub fn work(world: &mut World, id: Id) {
    match id {
        0 => Server::work(world),
        _ => Referee::work(world, id),
    }
}

/// Drops what an agent has in memory.
pub fn crash(world: &mut World, id: Id) {
    if id == 0 {
        world.server = None;
    } else if id <= world.referees.len() {
        world.referees[id - 1] = Referee::new(&world.program);
    } else {
        Player::save(world, id, false);
        let player = Player::of(world, id);
        (player.state, player.saves) = (PlayerState::new(true), 0);
    }
}

fn endpoint(id: Id) -> String {
    format!("http://localhost:{}/mcp", 7000 + id)
}

fn agent_at(endpoint: &str) -> Id {
    let port = endpoint.trim_end_matches("/mcp").rsplit(':').next();
    port.unwrap().parse::<Id>().unwrap() - 7000
}

fn envelope(sender: &str, conversation_id: &str, auth_token: Option<String>) -> Envelope {
    Envelope {
        auth_token,
        ..Envelope::new(sender, conversation_id)
    }
}

/// Returns the answer of a handler as its caller gets it.
fn answer_of(handled: Result<Option<Reply>, HandlerError>) -> Answer {
    match handled {
        Ok(None) => Ok(json!({"status": "ok"})),
        Ok(Some(reply)) => {
            let mut answer = json!(reply);
            answer["message_type"] = reply.name().into();
            Ok(answer)
        }
        Err(HandlerError::Refused(error)) => Err(CallError::Refused(
            Box::new(error.league_error("?")),
            error.to_string(),
        )),
        Err(error) => Err(CallError::JsonRpc(-32603, error.into_json_rpc().message)),
    }
}

fn refuse(world: &mut World, ticket: Ticket, error: ProtocolError) {
    world.answer(ticket, answer_of(Err(error.into())));
}

/// Registers an agent, again and again until the manager answers.
fn register(world: &mut World, id: Id) {
    let is_referee = id <= world.referees.len();
    let kind = if is_referee {
        AgentKind::Referee
    } else {
        AgentKind::Player
    };
    let token = world.bodies[id]
        .credentials
        .as_ref()
        .and_then(|own| own.token.clone());
    let (name, key) = (world.name(id), format!("{:032}", world.seed + id as u64));
    let meta = AgentMeta {
        display_name: name.clone(),
        version: "1.0.0".into(),
        game_types: vec![EVEN_ODD.into()],
        contact_endpoint: endpoint(id),
        max_concurrent_matches: is_referee.then_some(CAPACITY),
        uses_match_tokens: is_referee.then_some(true),
        registration_key: Some(key.clone()),
        ..AgentMeta::default()
    };
    let message = match is_referee {
        true => RefereeRegisterRequest { referee_meta: meta }.into(),
        false => LeagueRegisterRequest { player_meta: meta }.into(),
    };

    let from = envelope(
        &format!("{kind}:{name}"),
        "conv-registration",
        token.clone(),
    );
    let timeout = world.program.config.registration_limit(kind);
    ask_manager(world, id, timeout, from, message, move |world, answer| {
        let answer = answer.unwrap_or_default();
        if answer["status"] == "REJECTED" {
            world.count("registration rejected");
            return world.end(id);
        }
        if answer["status"] != "ACCEPTED" {
            let delay = Attempts::endless(world.program.config.system.retry_policy).first_delay();
            return world.after(id, delay, "registration", move |world| register(world, id));
        }

        let text = |key: &str| answer[key].as_str().map(String::from);
        let credentials = Credentials {
            agent_id: text("player_id").or(text("referee_id")).unwrap(),
            registration_key: key,
            league_id: text("league_id").unwrap(),
            manager: endpoint(0),
            endpoint: endpoint(id),
            folder: PathBuf::new(),
            token: text("auth_token"),
            proves_itself: answer["proves_itself"] == true,
            is_over: false,
        };
        let is_new = credentials.token != token;
        world.bodies[id].credentials = Some(Arc::new(credentials));
        world.bodies[id].is_registered = true;
        if !is_referee {
            return Player::remember(world, id);
        }
        let folder = world.folder(id).unwrap();
        world.referees[id - 1].tasks.open(&folder, is_new).unwrap();
        world.wake(id, Duration::ZERO);
    });
}

/// Sends a request to the manager.
fn ask_manager(
    world: &mut World,
    from: Id,
    timeout: Duration,
    envelope: Envelope,
    message: ManagerRequest,
    done: impl FnOnce(&mut World, Answer) + 'static,
) {
    let request = Request {
        envelope,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let name = message.name();
    let arrive = move |world: &mut World, ticket: Ticket| {
        let Some(server) = &world.server else { return };
        let manager = Arc::clone(&server.manager);
        let answer = answer_of(manager.handle(&request, message.clone()));
        world.note_answer(ticket, &message, &answer);
        world.answer(ticket, answer);
        world.wake(0, Duration::ZERO);
    };
    world.call([from, 0], timeout, name, arrive, done);
}

/// A request arrives at a referee or a player. Before it is registered it does not know who asks.
fn hear(world: &mut World, ticket: Ticket, envelope: Envelope, message: PlayerRequest) {
    let id = ticket.to;
    let body = &world.bodies[id];
    let Some(own) = body.credentials.clone().filter(|_| body.is_registered) else {
        if world.now > ticket.at + REGISTRATION_TIMEOUT {
            let problem = "this agent is not registered with a league manager yet";
            return refuse(
                world,
                ticket,
                ProtocolError::new(ErrorCode::PlayerNotRegistered, problem),
            );
        }
        return world.after(id, ms(100), message.name(), move |world| {
            hear(world, ticket, envelope, message)
        });
    };
    let has_own_token = envelope.auth_token == own.token;
    if envelope.match_id.is_none() && !has_own_token {
        return refuse(world, ticket, ProtocolError::wrong_token("not ours"));
    }
    if id <= world.referees.len() {
        return Referee::handle(world, ticket, message);
    }
    let from = Sender {
        envelope,
        credentials: own,
        has_own_token,
        received_at: clock::now(),
        has_asked: false,
    };
    Player::handle(world, ticket, from, message);
}

/// The manager's program.
pub struct Server {
    pub manager: Arc<Manager>,
    /// The agents that are being called.
    called: BTreeSet<String>,
}

impl Server {
    fn start(world: &mut World) {
        let opened = Manager::new(Arc::clone(&world.program), Arc::new(NoManagerHooks));
        let Ok(mut manager) = opened else {
            return world.after(0, ms(2000), "start", Server::start); // the disk is full
        };
        let awaited = Some((world.players.len() as u32, world.referees.len() as u32));
        manager.lead = world.lead;
        manager
            .contacts
            .with(|table| table.automatic_start = awaited);
        world.server = Some(Server {
            manager: Arc::new(manager),
            called: BTreeSet::new(),
        });
        world.wake(0, Duration::ZERO);
    }

    /// What the round loop and the delivery threads do when they are woken.
    fn work(world: &mut World) {
        let Some(server) = &world.server else { return };
        let manager = Arc::clone(&server.manager);
        let mut changes = None;
        while changes != Some(manager.store.change_count()) {
            changes = Some(manager.store.change_count());
            manager.step();
        }
        let is_over = manager
            .store
            .read(|league| league.started && league.open_round().is_none());
        if is_over {
            world.over_at.get_or_insert(world.now);
        }
        if is_over && manager.may_end() && manager.close().is_ok() {
            if world.dying.is_none() {
                world.closed_at = Some(world.now);
            }
            return world.end(0);
        }

        let mut wait = STEP_INTERVAL;
        let ids = manager
            .contacts
            .with(|table| table.contacts.keys().cloned().collect::<Vec<_>>());
        for id in ids {
            if world
                .server
                .as_ref()
                .is_some_and(|server| server.called.contains(&id))
            {
                continue;
            }
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
            let member = &league.members[&id];
            let mut message = call.notification.and_then(|told| league.message_of(told));
            if let Some(PlayerRequest::RoundAnnouncement(round)) = &mut message {
                match member.kind {
                    AgentKind::Referee => *round = league.announcement(round.round_id, Some(&id)),
                    _ => round.match_token = league.match_token(round.round_id, &id),
                }
            }
            (member.clone(), message)
        });
        world.note_notification(&id, call.notification);
        world.server.as_mut().unwrap().called.insert(id.clone());

        let name = message.as_ref().map_or("ping", |message| message.name());
        let from = envelope(
            "league_manager",
            "conv-notification",
            Some(member.token.clone()),
        );
        let arrive = move |world: &mut World, ticket: Ticket| match &message {
            None => world.answer(ticket, Ok(Value::Null)),
            Some(message) => hear(world, ticket, from.clone(), message.clone()),
        };
        let agents = [0, agent_at(&member.meta.contact_endpoint)];
        let timeout = manager.program.config.generic_limit();
        world.call(agents, timeout, name, arrive, move |world, answer| {
            world.note_call(&id, &answer);
            // A refusal is an answer that arrived.
            let answer = match answer {
                Err(CallError::Refused(error, _)) => {
                    let mut packet = json!(error);
                    packet["message_type"] = "LEAGUE_ERROR".into();
                    Ok(packet)
                }
                answer => answer,
            };
            let Some(server) = &mut world.server else {
                return;
            };
            server.called.remove(&id);
            server.manager.record(&id, &call, &answer);
            world.wake(0, Duration::ZERO);
        });
    }

    /// The operator pauses the league for a while, or removes a player.
    pub fn order(world: &mut World, mut draw: Rng) {
        let player = 1 + world.referees.len() + draw.usize(..world.players.len());
        let is_started = world
            .server
            .as_ref()
            .is_some_and(|server| server.manager.store.read(|league| league.started));
        if draw.bool() || !is_started {
            Server::obey(world, ControlAction::Pause, None);
            world.calm_at = world.calm_at.max(world.now + ms(10_000));
            return Server::obey_later(world, ms(draw.u64(..10_000)));
        }
        Server::obey(world, ControlAction::Remove, Some(world.name(player)));
    }

    /// The operator lets the league go on as soon as there is a manager.
    fn obey_later(world: &mut World, delay: Duration) {
        world.plan(None, delay, "order", |world| {
            if !Server::obey(world, ControlAction::Resume, None) {
                Server::obey_later(world, ms(500));
            }
        });
    }

    fn obey(world: &mut World, action: ControlAction, player_id: Option<String>) -> bool {
        let Some(server) = &world.server else {
            return false;
        };
        let league_id = world.program.league_id().to_string();
        let order = LeagueControl {
            league_id,
            action,
            player_id,
            address: None,
        };
        let from = envelope("operator", "conv-order", None);
        let request = Request {
            envelope: from,
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        server.manager.handle(&request, order.into()).is_ok()
    }
}

/// What a referee has in memory.
pub struct Referee {
    tasks: Tasks,
    /// The conversations of the matches in play.
    plays: Vec<String>,
    is_reporting: bool,
    /// The notifications of the end of the league that are not answered yet.
    ending: Vec<Ticket>,
}

impl Referee {
    pub fn new(program: &Program) -> Referee {
        Referee {
            tasks: Tasks::new(program.config.system.retry_policy),
            plays: Vec::new(),
            is_reporting: false,
            ending: Vec::new(),
        }
    }

    fn handle(world: &mut World, ticket: Ticket, message: PlayerRequest) {
        let id = ticket.to;
        let referee = &mut world.referees[id - 1];
        let mut handled = Ok(None);
        match message {
            PlayerRequest::RoundAnnouncement(round) => {
                handled = referee.tasks.apply(round, &endpoint(id)).map(|()| None);
            }
            PlayerRequest::LeagueCompleted(_) => {
                referee.tasks.end();
                referee.ending.push(ticket);
                return world.wake(id, Duration::ZERO);
            }
            _ => {}
        }
        world.answer(ticket, answer_of(handled.map_err(HandlerError::from)));
        world.wake(id, Duration::ZERO);
    }

    /// What its threads do when they are woken.
    fn work(world: &mut World, id: Id) {
        while world.referees[id - 1].plays.len() < CAPACITY as usize
            && let Ok(assignment) = world.referees[id - 1].tasks.start_next()
        {
            let seed = world.note_draw(id);
            let system = &world.program.config.system;
            let replay = Rc::new(Replay::new(assignment, system, seed, world.now));
            let conversation = replay.assignment.conversation_id.clone();
            world.referees[id - 1].plays.push(conversation);
            Referee::play(world, id, &replay);
        }

        // While a report is under way, its thread sends nothing else.
        let mut wait = Duration::MAX;
        while !world.referees[id - 1].is_reporting && wait == Duration::MAX {
            match world.referees[id - 1].tasks.next(clock::now()) {
                Ok(sending) if sending.receiver == MANAGER => Referee::report(world, id, sending),
                Ok(sending) => {
                    Referee::tell(world, id, sending, Referee::record);
                }
                Err(time) => wait = time,
            }
        }

        // The end is answered when all is settled, or after a while.
        let limit = world.program.config.report_limit();
        let referee = &mut world.referees[id - 1];
        let is_late = |ticket: &Ticket| world.now >= ticket.at + limit;
        if !referee.ending.is_empty()
            && (referee.tasks.are_settled() || referee.ending.iter().any(is_late))
        {
            referee.tasks.by_match.clear();
            for ticket in std::mem::take(&mut referee.ending) {
                world.answer(ticket, Ok(json!({"status": "ok"})));
            }
            return world.end(id);
        }
        let limit = if referee.ending.is_empty() {
            wait
        } else {
            wait.min(ms(1000))
        };
        if limit < Duration::from_secs(3600) {
            world.wake(id, limit.max(ms(1)));
        }
    }

    /// Plays a match on, with the answers that have come.
    fn play(world: &mut World, id: Id, replay: &Rc<Replay>) {
        let (wants, ended) = replay.run();
        let assignment = &replay.assignment;
        for (seat, want) in wants {
            let own = Rc::clone(replay);
            let go_on = move |world: &mut World, answer: Answer| {
                own.add(seat, answer, world.now);
                Referee::play(world, id, &own);
            };
            match want {
                Want::Ask(question, timeout) => {
                    let call = (assignment.conversation_id.clone(), seat);
                    let is_invitation = matches!(question, PlayerRequest::GameInvitation(_));
                    Referee::send(
                        world,
                        id,
                        assignment,
                        seat,
                        timeout,
                        question,
                        move |world, answer| {
                            world.note_question(call, is_invitation, &answer);
                            go_on(world, answer);
                        },
                    );
                }
                Want::Error(error) => {
                    let timeout = world.program.config.game_over_limit();
                    Referee::send(
                        world,
                        id,
                        assignment,
                        seat,
                        timeout,
                        error.into(),
                        |_, _| {},
                    );
                }
                Want::Sleep(delay) => world.after(id, delay, "pause", move |world| {
                    go_on(world, Ok(Value::Null))
                }),
                Want::Save(result) => {
                    let saved = world.referees[id - 1].tasks.save(assignment, &result);
                    let error = Err(CallError::Local("not saved".into()));
                    let answer = if matches!(saved, Ok(true)) {
                        Ok(Value::Null)
                    } else {
                        error
                    };
                    world.after(id, Duration::ZERO, "saved", move |world| {
                        go_on(world, answer)
                    });
                }
                Want::Tell(game_over) => {
                    let sending = Sending {
                        assignment: assignment.clone(),
                        receiver: seat,
                        game_over,
                    };
                    Referee::tell(world, id, sending, move |world, id, sending, answer| {
                        if answer.is_err() {
                            Referee::record(world, id, sending, answer);
                        }
                        go_on(world, Ok(Value::Null));
                    });
                }
            }
        }

        let Some(result) = ended else { return };
        let status = result.as_ref().map(|result| result.status);
        world.count(format!("match ends: {status:?}"));
        let referee = &mut world.referees[id - 1];
        referee
            .plays
            .retain(|own| *own != assignment.conversation_id);
        let is_to_pause = result.is_err() && referee.tasks.current(assignment).is_some();
        let own = Rc::clone(replay);
        world.after(
            id,
            ms(2000) * u32::from(is_to_pause),
            "finish",
            move |world| {
                world.referees[id - 1].tasks.finish(&own.assignment);
                world.wake(id, Duration::ZERO);
            },
        );
    }

    fn record(world: &mut World, id: Id, sending: &Sending, answer: Answer) {
        let answer = answer.map(|_| ());
        let state = world.referees[id - 1]
            .tasks
            .record(sending, &answer, clock::now());
        if let (MANAGER, Err(CallError::Refused(..))) = (sending.receiver, &answer) {
            world.count(format!("report refused: {state:?}"));
        }
        world.wake(id, Duration::ZERO);
    }

    /// Tells a player the result of its match.
    fn tell(
        world: &mut World,
        id: Id,
        sending: Sending,
        done: impl FnOnce(&mut World, Id, &Sending, Answer) + 'static,
    ) {
        let timeout = world.program.config.game_over_limit();
        let (own, over) = (sending.clone(), sending.game_over.clone().into());
        Referee::send(
            world,
            id,
            &own.assignment,
            own.receiver,
            timeout,
            over,
            move |world, answer| {
                done(world, id, &sending, answer);
            },
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
        done: impl FnOnce(&mut World, Answer) + 'static,
    ) {
        let Some(task) = world.referees[id - 1].tasks.current(assignment) else {
            let local = Err(CallError::Local("the match is no longer ours".into()));
            return world.after(id, Duration::ZERO, "not ours", move |world| {
                done(world, local)
            });
        };
        let to = agent_at(&task.assignment.endpoints[seat]);
        let token = Some(assignment.tokens[seat].clone());
        let from = Envelope {
            round_id: Some(assignment.round_id),
            match_id: Some(assignment.match_id.clone()),
            ..envelope("referee:REF", &assignment.conversation_id, token)
        };
        let name = format!("{} {}", message.name(), assignment.match_id);
        let arrive = move |world: &mut World, ticket: Ticket| {
            hear(world, ticket, from.clone(), message.clone())
        };
        world.call([id, to], timeout, &name, arrive, done);
    }

    /// Reports a result. If the manager does not know us any more, we register again.
    fn report(world: &mut World, id: Id, sending: Sending) {
        world.referees[id - 1].is_reporting = true;
        let own = world.bodies[id].credentials.clone().unwrap();
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
        ask_manager(
            world,
            id,
            config.generic_limit(),
            from,
            report.into(),
            move |world, mut answer| {
                if let Err(CallError::Refused(error, _)) = &answer
                    && error.error_code == ErrorCode::TokenInvalid
                {
                    answer = Err(CallError::Local("not registered any more".into()));
                    register(world, id);
                }
                world.referees[id - 1].is_reporting = false;
                Referee::record(world, id, &sending, answer);
            },
        );
    }
}

/// A player: what it has in memory, and on its disk.
pub struct Player {
    pub state: PlayerState,
    /// The number of intervals after which the history was saved last.
    saves: u128,
    /// On its disk.
    pub saved: Arc<Vec<PastMatch>>,
    /// The end that it was told.
    pub told: Option<LeagueCompleted>,
}

impl Player {
    pub fn new() -> Player {
        Player {
            state: PlayerState::new(true),
            saves: 0,
            saved: Arc::default(),
            told: None,
        }
    }

    pub fn of(world: &mut World, id: Id) -> &mut Player {
        let first = 1 + world.referees.len();
        &mut world.players[id - first]
    }

    /// Saves the history if the time for it has passed, or `now`.
    fn save(world: &mut World, id: Id, now: bool) {
        let age = world.now - world.bodies[id].started;
        let saves = age.as_millis() / SAVE_INTERVAL.as_millis();
        let player = Player::of(world, id);
        let matches = player.state.history.matches();
        if now || saves > player.saves && !matches.is_empty() {
            (player.saved, player.saves) = (matches, saves);
        }
    }

    /// Reads the history that was saved.
    fn remember(world: &mut World, id: Id) {
        let player = Player::of(world, id);
        for past in player.saved.iter() {
            player.state.history.add(past.clone());
        }
    }

    /// Handles a request, perhaps again after a pause.
    fn handle(world: &mut World, ticket: Ticket, mut from: Sender, mut message: PlayerRequest) {
        let id = ticket.to;
        Player::save(world, id, false);
        let handled = Player::of(world, id)
            .state
            .handle(&mut from, &mut message, clock::now());
        let reply = match handled {
            Err(Pause::Wait(time)) => {
                let name = message.name();
                return world.after(id, time.min(ms(50)), name, move |world| {
                    Player::handle(world, ticket, from, message)
                });
            }
            Err(Pause::Ask(query)) => {
                let query = json!(query);
                return Player::ask(world, ticket, from, message, query);
            }
            Err(Pause::Refuse(error)) => Err(error),
            Ok(Step::Choose(turn, joined)) => {
                let draw = world.note_draw(id) as usize;
                let chosen = turn.legal_moves[draw % turn.legal_moves.len()].clone();
                let choice = joined.moves.get_or_choose(turn.move_number, || chosen);
                world.note_choice(id, &turn.conversation_id, &choice);
                Ok(Some(from.response(&message, turn, choice)))
            }
            Ok(Step::Reply(reply)) => Ok(reply),
            Ok(Step::Print(_) | Step::Warn(_)) => Ok(None),
            Ok(Step::End(_)) => {
                if let PlayerRequest::LeagueCompleted(end) = &message {
                    Player::of(world, id).told = Some(end.clone());
                }
                Player::save(world, id, true);
                world.end(id);
                Ok(None)
            }
        };
        if world.bodies[id].has_ended {
            Player::save(world, id, true);
        }
        if reply.is_ok() {
            world.note_handled(id, &message);
        }
        world.answer(ticket, answer_of(reply));
    }

    /// Asks the manager, and then handles the request again.
    fn ask(
        world: &mut World,
        ticket: Ticket,
        from: Sender,
        message: PlayerRequest,
        query_type: Value,
    ) {
        let own = Arc::clone(&from.credentials);
        let league_id = own.league_id.clone();
        let query = LeagueQuery {
            league_id,
            query_type,
            query_params: None,
        };
        let asks = envelope(
            &format!("player:{}", own.agent_id),
            "conv-query",
            own.token.clone(),
        );
        ask_manager(
            world,
            ticket.to,
            QUERY_TIMEOUT,
            asks,
            query.into(),
            move |world, answer| {
                let data = answer
                    .ok()
                    .and_then(|answer| answer["data"].as_object().cloned());
                match data {
                    Some(data) => drop(
                        Player::of(world, ticket.to)
                            .state
                            .learn(&own.agent_id, &data),
                    ),
                    None => world.note_failed_query(ticket.to),
                }
                Player::handle(world, ticket, from, message);
            },
        );
    }

    /// Perhaps reports a result, or gets a message in the name of a referee.
    pub fn cheat(world: &mut World, id: Id) {
        let report = world.fault(id, Kind::FalseReport);
        let message = world.fault(id, Kind::FalseMessage);
        if report.is_none() && message.is_none() {
            return;
        }
        let (Some(server), Some(own)) = (&world.server, world.bodies[id].credentials.clone())
        else {
            return;
        };
        let open = server.manager.store.read(|league| {
            let open = league.open_matches(league.open_round()?).next()?;
            Some((open.round, open.id.clone(), open.players.clone()))
        });
        let Some((round_id, match_id, players)) = open else {
            return;
        };
        let failures = players
            .each_ref()
            .map(|player| (*player != own.agent_id).then(|| "came late".into()));
        let game_result = EVEN_ODD_GAME.forfeit(&players, &[], &failures);

        let (league_id, game_type) = (own.league_id.clone(), EVEN_ODD.to_string());
        if let Some(mut draw) = report {
            let result = match_result(&game_result, &world.program.config.league.scoring);
            let report = MatchResultReport {
                league_id,
                round_id,
                match_id,
                game_type,
                result,
            };
            let sender = draw
                .choice(["referee:REF01".into(), format!("player:{}", own.agent_id)])
                .unwrap();
            let from = envelope(&sender, "conv-false", own.token.clone());
            ask_manager(world, id, ms(1000), from, report.into(), |_, _| {});
        } else if let Some(mut draw) = message {
            let from = Envelope {
                round_id: Some(round_id),
                match_id: Some(match_id.clone()),
                ..envelope("referee:REF01", "conv-false", Some("tok-false".into()))
            };
            let over = GameOver {
                match_id: match_id.clone(),
                game_type: game_type.clone(),
                game_result,
                reason: None,
            };
            let [opponent_id, role_in_match] = ["P01", "PLAYER_A"].map(String::from);
            let invitation = GameInvitation {
                league_id,
                round_id,
                match_id,
                game_type,
                role_in_match,
                opponent_id,
                player_id: None,
            };
            let message = if draw.bool() {
                over.into()
            } else {
                invitation.into()
            };
            let ticket = Ticket {
                from: id,
                to: id,
                at: world.now,
                call: None,
            };
            hear(world, ticket, from, message);
        }
    }
}
