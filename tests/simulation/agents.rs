//! The agents: the code of the three programs, and around it what their threads do, as steps.
//! Requests are handed over as they are, without HTTP and JSON.

use super::replay::{Replay, Want};
use super::world::{Answer, Id, Kind, Ticket, World, ms};
use league::games::match_result;
use league::manager::contact::Call as ManagerCall;
use league::manager::{Manager, NoManagerHooks};
use league::net::agent::{Agent, HandlerError, Request};
use league::net::call_error::CallError;
use league::player::state::{Pause, PlayerState, Sender, Step};
use league::player::turn::PastMatch;
use league::program::Program;
use league::program::attempts::Attempts;
use league::program::credentials::Credentials;
use league::protocol::{
    AgentKind, AgentMeta, EVEN_ODD, Envelope, ErrorCode, GameOver, LeagueCompleted, LeagueQuery,
    LeagueRegisterRequest, ManagerRequest, MatchResultReport, Message, PlayerRequest,
    ProtocolError, QueryType, RefereeRegisterRequest, Reply,
};
use league::referee::tasks::{Assignment, MANAGER, Sending, Tasks};
use league::values::{clock, constant_time_eq};
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
/// The longest time between two looks of the manager at its clock here; its own is shorter.
const STEP_INTERVAL: Duration = Duration::from_millis(500);
/// The number of matches that a referee plays at once.
const CAPACITY: u32 = 2;

fn endpoint(id: Id) -> String {
    format!("http://localhost:{}/mcp", 7000 + id)
}

fn agent_at(endpoint: &str) -> Id {
    let port = endpoint
        .rsplit(':')
        .next()
        .unwrap()
        .trim_end_matches("/mcp");
    port.parse::<Id>().unwrap() - 7000
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
        Err(HandlerError::Refused(error)) => Err(refused(&error)),
        Err(error) => {
            let error = error.into_json_rpc();
            Err(CallError::JsonRpc(error.code.into(), error.message))
        }
    }
}

fn refused(error: &ProtocolError) -> CallError {
    CallError::Refused(Box::new(error.league_error("?")), error.to_string())
}

fn not_registered() -> CallError {
    let problem = "this agent is not registered with a league manager yet";
    refused(&ProtocolError::new(ErrorCode::PlayerNotRegistered, problem))
}

/// The manager's program.
pub struct Server {
    pub manager: Arc<Manager>,
    /// The agents that are being called.
    called: BTreeSet<String>,
    /// The number of the planned step that counts.
    planned: u64,
}

impl Server {
    pub fn start(world: &mut World) {
        let opened = Manager::new(Arc::clone(&world.program), Arc::new(NoManagerHooks));
        let Ok(mut manager) = opened else {
            return world.after(0, ms(2000), &"start".into(), Server::start);
        };
        let awaited = (world.players.len() as u32, world.referees.len() as u32);
        manager.automatic_start = Some(awaited);
        manager.lead = world.lead;
        manager
            .contacts
            .with(|table| table.automatic_start = Some(awaited));
        world.server = Some(Server {
            manager: Arc::new(manager),
            called: BTreeSet::new(),
            planned: 0,
        });
        Server::plan(world, Duration::ZERO);
    }

    /// Plans the next step of the round loop.
    fn plan(world: &mut World, delay: Duration) {
        let Some(server) = &mut world.server else {
            return;
        };
        server.planned += 1;
        let number = server.planned;
        world.after(0, delay, &"round loop".into(), move |world| {
            if world
                .server
                .as_ref()
                .is_some_and(|server| server.planned == number)
            {
                Server::work(world);
            }
        });
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

        let is_over =
            (manager.store).read(|league| league.started && league.open_round().is_none());
        if is_over && manager.may_end() && manager.close().is_ok() {
            return world.close();
        }

        let ids = manager
            .store
            .read(|league| league.members.keys().cloned().collect::<Vec<_>>());
        let mut wait = STEP_INTERVAL;
        for id in ids {
            let server = world.server.as_mut().unwrap();
            if server.called.contains(&id) {
                continue;
            }
            match manager.contacts.begin_call(&id) {
                Ok((call, _)) => {
                    server.called.insert(id.clone());
                    Server::send(world, &manager, id, call);
                }
                Err(time) => wait = wait.min(time.max(ms(1))),
            }
        }
        Server::plan(world, wait);
    }

    /// Makes a call to an agent.
    fn send(world: &mut World, manager: &Manager, id: String, call: ManagerCall) {
        let Some((member, announcement, match_token)) = manager.contacts.receiver(&id, &call)
        else {
            return Server::record(world, &id, &call, Ok(Value::Null));
        };
        let message = match (announcement, call.notification) {
            (Some(own), _) => Some(own.into()),
            (None, told) => {
                told.and_then(|told| manager.store.read(|league| league.message_of(told)))
            }
        };
        let message = message.map(|mut message| {
            if let PlayerRequest::RoundAnnouncement(round) = &mut message {
                round.match_token = match_token;
            }
            message
        });
        if let Some(told) = call.notification {
            world.note_notification(&id, told);
        }

        let to = agent_at(&member.meta.contact_endpoint);
        let name = message
            .as_ref()
            .map_or("ping", |message| message.name())
            .to_string();
        let envelope = Envelope {
            auth_token: Some(member.token.clone()),
            ..Envelope::new("league_manager", "conv-notification")
        };
        let arrive = move |world: &mut World, ticket: Ticket| match &message {
            None => world.answer(ticket, Ok(Value::Null)),
            Some(message) if ticket.to <= world.referees.len() => {
                Referee::hear(world, ticket, envelope.auth_token.clone(), message.clone());
            }
            Some(message) => Player::hear(world, ticket, &envelope, message.clone()),
        };
        let timeout = manager.program.config.generic_limit();
        world.call(0, to, timeout, name, arrive, move |world, answer| {
            // A refusal is an answer that arrived.
            let answer = match answer {
                Err(CallError::Refused(error, _)) => {
                    let mut packet = json!(error);
                    packet["message_type"] = "LEAGUE_ERROR".into();
                    Ok(packet)
                }
                answer => answer,
            };
            Server::record(world, &id, &call, answer);
        });
    }

    fn record(world: &mut World, id: &str, call: &ManagerCall, answer: Answer) {
        world.note_call(id, &answer);
        let Some(server) = &mut world.server else {
            return;
        };
        server.called.remove(id);
        server.manager.contacts.record(id, call, &answer);
        Server::plan(world, Duration::ZERO);
    }

    /// Handles a request.
    fn hear(world: &mut World, ticket: Ticket, request: &Request, message: ManagerRequest) {
        let Some(server) = &world.server else { return };
        let manager = Arc::clone(&server.manager);
        let answer = answer_of(manager.handle(request, message.clone()));
        world.note_answer(ticket, &message, &answer);
        world.answer(ticket, answer);
        Server::plan(world, Duration::ZERO);
    }
}

/// Sends a request to the manager.
pub fn ask_manager(
    world: &mut World,
    from: Id,
    timeout: Duration,
    envelope: Envelope,
    message: ManagerRequest,
    done: impl FnOnce(&mut World, Answer) + 'static,
) {
    let name = match &message {
        ManagerRequest::MatchResultReport(report) => {
            format!("{} {}", message.name(), report.match_id)
        }
        _ => message.name().into(),
    };
    let arrive = move |world: &mut World, ticket: Ticket| {
        let request = Request {
            envelope: envelope.clone(),
            peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        Server::hear(world, ticket, &request, message.clone());
    };
    world.call(from, 0, timeout, name, arrive, done);
}

/// Registers an agent, again and again until the manager answers. Returns its credentials to `then`,
/// and true if they are new.
fn register(world: &mut World, id: Id, then: fn(&mut World, Id, Arc<Credentials>, bool)) {
    let is_referee = id <= world.referees.len();
    let kind = if is_referee {
        AgentKind::Referee
    } else {
        AgentKind::Player
    };
    let known = world.credentials(id).clone();
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
    let envelope = Envelope {
        auth_token: known.as_ref().and_then(|known| known.token.clone()),
        ..Envelope::new(&format!("{kind}:{name}"), "conv-registration")
    };
    let message = match is_referee {
        true => RefereeRegisterRequest { referee_meta: meta }.into(),
        false => LeagueRegisterRequest { player_meta: meta }.into(),
    };

    let timeout = world.program.config.registration_limit(kind);
    ask_manager(
        world,
        id,
        timeout,
        envelope,
        message,
        move |world, answer| {
            let answer = answer.unwrap_or_default();
            if answer["status"] == "REJECTED" {
                world.count("registration rejected");
                return world.end(id);
            }
            if answer["status"] != "ACCEPTED" {
                let delay =
                    Attempts::endless(world.program.config.system.retry_policy).first_delay();
                return world.after(id, delay, &"registration".into(), move |world| {
                    register(world, id, then)
                });
            }

            let text = |key: &str| answer[key].as_str().map(String::from);
            let agent_id = text("player_id").or(text("referee_id")).unwrap();
            let token = text("auth_token");
            let is_new = known.is_none_or(|known| known.token != token);
            let credentials = Arc::new(Credentials {
                agent_id,
                registration_key: key,
                league_id: text("league_id").unwrap(),
                manager: endpoint(0),
                endpoint: endpoint(id),
                folder: PathBuf::new(),
                token,
                proves_itself: answer["proves_itself"] == true,
                is_over: false,
            });
            *world.credentials(id) = Some(Arc::clone(&credentials));
            then(world, id, credentials, is_new);
        },
    );
}

impl World {
    /// Returns the credentials on the disk of an agent.
    pub fn credentials(&mut self, id: Id) -> &mut Option<Arc<Credentials>> {
        match id <= self.referees.len() {
            true => &mut self.referees[id - 1].credentials,
            false => &mut Player::of(self, id).credentials,
        }
    }
}

/// A referee's program.
pub struct Referee {
    /// On its disk.
    pub credentials: Option<Arc<Credentials>>,
    is_registered: bool,
    pub tasks: Tasks,
    /// The matches in play.
    plays: Vec<String>,
    is_reporting: bool,
    /// The notifications of the end of the league that are not answered yet.
    ending: Vec<Ticket>,
    planned: u64,
}

impl Referee {
    pub fn new(program: &Program) -> Referee {
        Referee {
            credentials: None,
            is_registered: false,
            tasks: Tasks::new(program.config.system.retry_policy),
            plays: Vec::new(),
            is_reporting: false,
            ending: Vec::new(),
            planned: 0,
        }
    }

    pub fn crash(&mut self, program: &Program) {
        let credentials = self.credentials.take();
        *self = Referee {
            credentials,
            ..Referee::new(program)
        };
    }

    pub fn folder(&self, world: &World) -> PathBuf {
        let name = self
            .credentials
            .as_ref()
            .map_or("none", |own| &own.agent_id);
        world.folder.join("referees").join(name)
    }

    pub fn start(world: &mut World, id: Id) {
        register(world, id, |world, id, _, is_new| {
            let folder = world.referees[id - 1].folder(world);
            let referee = &mut world.referees[id - 1];
            referee.is_registered = referee.tasks.open(&folder, is_new).is_ok();
            if referee.is_registered {
                return Referee::plan(world, id, Duration::ZERO);
            }
            world.after(id, ms(2000), &"start".into(), move |world| {
                Referee::start(world, id)
            });
        });
    }

    fn hear(world: &mut World, ticket: Ticket, token: Option<String>, message: PlayerRequest) {
        let (id, now) = (ticket.to, world.now);
        let referee = &mut world.referees[id - 1];
        let own = referee
            .credentials
            .clone()
            .filter(|_| referee.is_registered);
        let Some(own) = own else {
            if now - ticket.at > REGISTRATION_TIMEOUT {
                return world.answer(ticket, Err(not_registered()));
            }
            let name = message.name().into();
            return world.after(id, ms(100), &name, move |world| {
                Referee::hear(world, ticket, token, message)
            });
        };
        if token != own.token {
            return world.answer(
                ticket,
                Err(refused(&ProtocolError::wrong_token("not ours"))),
            );
        }

        let mut handled = Ok(None);
        match message {
            PlayerRequest::RoundAnnouncement(round) => {
                let applied = referee.tasks.apply(round, &own.endpoint);
                handled = applied.map(|()| None).map_err(HandlerError::from);
            }
            PlayerRequest::LeagueCompleted(_) => {
                referee.tasks.end();
                referee.ending.push(ticket);
                return Referee::plan(world, id, Duration::ZERO);
            }
            _ => {}
        }
        world.answer(ticket, answer_of(handled));
        Referee::plan(world, id, Duration::ZERO);
    }

    /// Plans the next look at its tasks.
    fn plan(world: &mut World, id: Id, delay: Duration) {
        let referee = &mut world.referees[id - 1];
        referee.planned += 1;
        let number = referee.planned;
        world.after(id, delay, &"tasks".into(), move |world| {
            if world.referees[id - 1].planned == number {
                Referee::work(world, id);
            }
        });
    }

    /// What its threads do when they are woken.
    fn work(world: &mut World, id: Id) {
        while world.referees[id - 1].plays.len() < CAPACITY as usize
            && let Ok(assignment) = world.referees[id - 1].tasks.start_next()
        {
            let seed = world.draw_seed(id);
            let system = &world.program.config.system;
            let replay = Rc::new(Replay::new(assignment, system, seed, world.now));
            let conversation = replay.assignment.conversation_id.clone();
            world.count("match begun");
            world.referees[id - 1].plays.push(conversation);
            Referee::play(world, id, &replay);
        }

        // While a report is under way, its thread sends nothing else.
        let mut wait = Duration::MAX;
        while !world.referees[id - 1].is_reporting && wait == Duration::MAX {
            match world.referees[id - 1].tasks.next(clock::now()) {
                Ok(sending) if sending.receiver == MANAGER => Referee::report(world, id, sending),
                Ok(sending) => {
                    let own = sending.clone();
                    Referee::tell(world, id, &sending, move |world, answer| {
                        Referee::record(world, id, &own, &answer);
                    });
                }
                Err(time) => wait = time,
            }
        }

        // The end is answered when all is settled, or after a while.
        let limit = world.program.config.report_limit();
        let now = world.now;
        let referee = &mut world.referees[id - 1];
        if let Some(first) = referee.ending.first()
            && (referee.tasks.are_settled() || now >= first.at + limit)
        {
            referee.tasks.by_match.clear();
            for ticket in std::mem::take(&mut referee.ending) {
                world.answer(ticket, Ok(json!({"status": "ok"})));
            }
            return world.end(id);
        }
        if wait < Duration::from_secs(3600) || !referee.ending.is_empty() {
            Referee::plan(world, id, wait.min(ms(1000)).max(ms(1)));
        }
    }

    /// Plays a match on, with the answers that have come.
    fn play(world: &mut World, id: Id, replay: &Rc<Replay>) {
        let (wants, errors, ended) = replay.run();
        for (seat, error) in errors {
            let timeout = world.program.config.game_over_limit();
            Referee::ask(
                world,
                id,
                &replay.assignment,
                seat,
                timeout,
                error.into(),
                |_, _| {},
            );
        }
        for want in wants {
            let own = Rc::clone(replay);
            let go_on = move |world: &mut World, seat, answer| {
                own.add(seat, answer, world.now);
                Referee::play(world, id, &own);
            };
            let at_once = Duration::ZERO;
            match want {
                Want::Ask(seat, question, timeout) => {
                    let (conversation, is_invitation) = (
                        replay.assignment.conversation_id.clone(),
                        matches!(question, PlayerRequest::GameInvitation(_)),
                    );
                    Referee::ask(
                        world,
                        id,
                        &replay.assignment,
                        seat,
                        timeout,
                        question,
                        move |world, answer| {
                            world.note_failure((conversation, seat), is_invitation, &answer);
                            go_on(world, seat, answer);
                        },
                    );
                }
                Want::Sleep(seat, delay) => world.after(id, delay, &"pause".into(), move |world| {
                    go_on(world, seat, Ok(Value::Null))
                }),
                Want::Save(result) => {
                    let saved = world.referees[id - 1]
                        .tasks
                        .save(&replay.assignment, &result);
                    let answer = match saved {
                        Ok(true) => Ok(Value::Null),
                        _ => Err(CallError::Local("not saved".into())),
                    };
                    world.after(id, at_once, &"saved".into(), move |world| {
                        go_on(world, 0, answer)
                    });
                }
                Want::Tell(over) => Referee::send_result(world, id, replay, over),
            }
        }

        let Some(result) = ended else { return };
        let assignment = &replay.assignment;
        world.note_end(assignment, &result);
        let name = world.name(id);
        if let Ok(result) = &result {
            let reason = result.reason.clone().unwrap_or_default();
            world.tell(|_| format!("{name}: {}: {reason}", assignment.match_id));
        }
        let referee = &mut world.referees[id - 1];
        referee
            .plays
            .retain(|own| *own != assignment.conversation_id);
        let is_ours = referee.tasks.current(assignment).is_some();
        let pause = if result.is_err() && is_ours {
            ms(2000)
        } else {
            Duration::ZERO
        };
        let own = Rc::clone(replay);
        world.after(id, pause, &"finish".into(), move |world| {
            world.referees[id - 1].tasks.finish(&own.assignment);
            Referee::plan(world, id, Duration::ZERO);
        });
    }

    /// Tells both players the result once, and records what failed.
    fn send_result(world: &mut World, id: Id, replay: &Rc<Replay>, over: GameOver) {
        let left = Rc::new(std::cell::Cell::new(2));
        for seat in [0, 1] {
            let (own, left) = (Rc::clone(replay), Rc::clone(&left));
            let current = world.referees[id - 1].tasks.current(&replay.assignment);
            let assignment =
                current.map_or_else(|| replay.assignment.clone(), |task| task.assignment.clone());
            let sending = Sending {
                assignment,
                receiver: seat,
                game_over: over.clone(),
            };
            Referee::tell(world, id, &sending.clone(), move |world, answer| {
                if answer.is_err() {
                    Referee::record(world, id, &sending, &answer);
                }
                left.set(left.get() - 1);
                if left.get() == 0 {
                    own.add(0, Ok(Value::Null), world.now);
                    Referee::play(world, id, &own);
                }
            });
        }
    }

    fn record(world: &mut World, id: Id, sending: &Sending, answer: &Result<(), CallError>) {
        let referee = &mut world.referees[id - 1];
        let state = referee.tasks.record(sending, answer, clock::now());
        if let (MANAGER, Err(CallError::Refused(..))) = (sending.receiver, answer) {
            world.count(format!("report refused: {state:?}"));
        }
        Referee::plan(world, id, Duration::ZERO);
    }

    /// Tells a player the result of its match.
    fn tell(
        world: &mut World,
        id: Id,
        sending: &Sending,
        done: impl FnOnce(&mut World, Result<(), CallError>) + 'static,
    ) {
        let timeout = world.program.config.game_over_limit();
        let over = sending.game_over.clone().into();
        Referee::ask(
            world,
            id,
            &sending.assignment,
            sending.receiver,
            timeout,
            over,
            |world, answer| {
                done(world, answer.map(|_| ()));
            },
        );
    }

    /// Sends a message of a match to a player.
    fn ask(
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
            return world.after(id, Duration::ZERO, &"no longer ours".into(), move |world| {
                done(world, local)
            });
        };
        let to = agent_at(&task.assignment.endpoints[seat]);
        let envelope = Envelope {
            auth_token: Some(assignment.tokens[seat].clone()),
            round_id: Some(assignment.round_id),
            match_id: Some(assignment.match_id.clone()),
            ..Envelope::new("referee:REF", &assignment.conversation_id)
        };
        let name = format!("{} {}", message.name(), assignment.match_id);
        let arrive = move |world: &mut World, ticket: Ticket| {
            Player::hear(world, ticket, &envelope, message.clone());
        };
        world.call(id, to, timeout, name, arrive, done);
    }

    /// Reports a result. If the manager does not know us any more, we register again.
    fn report(world: &mut World, id: Id, sending: Sending) {
        world.referees[id - 1].is_reporting = true;
        let own = world.referees[id - 1].credentials.clone().unwrap();
        let (config, assignment) = (&world.program.config, &sending.assignment);
        let report = MatchResultReport {
            league_id: assignment.league_id.clone(),
            round_id: assignment.round_id,
            match_id: assignment.match_id.clone(),
            game_type: assignment.game_type.clone(),
            result: match_result(&sending.game_over.game_result, &config.league.scoring),
        };
        let envelope = Envelope {
            auth_token: own.token.clone(),
            ..Envelope::new(
                &format!("referee:{}", own.agent_id),
                &assignment.conversation_id,
            )
        };
        let timeout = config.generic_limit();
        ask_manager(
            world,
            id,
            timeout,
            envelope,
            report.into(),
            move |world, answer| {
                let answer = match answer {
                    Err(CallError::Refused(error, _))
                        if error.error_code == ErrorCode::TokenInvalid =>
                    {
                        register(world, id, |_, _, _, _| {});
                        Err(CallError::Local("not registered any more".into()))
                    }
                    answer => answer.map(|_| ()),
                };
                world.referees[id - 1].is_reporting = false;
                Referee::record(world, id, &sending, &answer);
            },
        );
    }
}

/// A player's program.
pub struct Player {
    /// On its disk.
    pub credentials: Option<Arc<Credentials>>,
    pub saved: Arc<Vec<PastMatch>>,
    is_registered: bool,
    pub state: PlayerState,
    /// The number of intervals after which the history was saved last.
    saves: u32,
    pub told: Option<LeagueCompleted>,
}

impl Player {
    pub fn id(&self) -> String {
        self.credentials
            .as_ref()
            .map_or(String::new(), |own| own.agent_id.clone())
    }

    pub fn new() -> Player {
        Player {
            credentials: None,
            saved: Arc::default(),
            is_registered: false,
            state: PlayerState::new(true),
            saves: 0,
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
        let saves = (age.as_millis() / SAVE_INTERVAL.as_millis()) as u32;
        let player = Player::of(world, id);
        if player.is_registered && (now || saves > player.saves) {
            player.saved = player.state.history.matches();
            player.saves = saves;
        }
    }

    pub fn crash(world: &mut World, id: Id) {
        Player::save(world, id, false);
        let player = Player::of(world, id);
        *player = Player {
            credentials: player.credentials.take(),
            saved: Arc::clone(&player.saved),
            told: player.told.take(),
            ..Player::new()
        };
    }

    pub fn start(world: &mut World, id: Id) {
        register(world, id, |world, id, _, _| {
            let player = Player::of(world, id);
            for past in player.saved.iter() {
                player.state.history.add(past.clone());
            }
            player.is_registered = true;
        });
    }

    /// A request arrives.
    pub fn hear(world: &mut World, ticket: Ticket, envelope: &Envelope, message: PlayerRequest) {
        let (id, now) = (ticket.to, world.now);
        Player::save(world, id, false);
        let player = Player::of(world, id);
        let Some(own) = player.credentials.clone().filter(|_| player.is_registered) else {
            if now - ticket.at > REGISTRATION_TIMEOUT {
                return world.answer(ticket, Err(not_registered()));
            }
            let (name, envelope) = (message.name().into(), envelope.clone());
            return world.after(id, ms(100), &name, move |world| {
                Player::hear(world, ticket, &envelope, message)
            });
        };
        let token = envelope.auth_token.as_deref().unwrap_or_default();
        let has_own_token = constant_time_eq(token, own.token.as_deref().unwrap_or_default());
        let is_from_referee = envelope.match_id.is_some();
        if !is_from_referee && !has_own_token {
            return world.answer(
                ticket,
                Err(refused(&ProtocolError::wrong_token("not ours"))),
            );
        }
        let from = Sender {
            has_own_token,
            envelope: envelope.clone(),
            credentials: own,
            received_at: clock::now(),
            has_asked: false,
        };
        Player::handle(world, ticket, from, message);
    }

    /// Handles a request, perhaps again after a pause.
    fn handle(world: &mut World, ticket: Ticket, mut from: Sender, mut message: PlayerRequest) {
        let id = ticket.to;
        let player = Player::of(world, id);
        let name: Rc<str> = message.name().into();
        let reply = match player.state.handle(&mut from, &mut message, clock::now()) {
            Err(Pause::Wait(time)) => {
                let time = time.min(ms(50));
                return world.after(id, time, &name, move |world| {
                    Player::handle(world, ticket, from, message)
                });
            }
            Err(Pause::Ask(query)) => return Player::ask(world, ticket, from, message, query),
            Err(Pause::Refuse(error)) => Err(error),
            Ok(Step::Choose(turn, joined)) => {
                let conversation = turn.conversation_id.clone();
                let draw = world.draw_seed(id) as usize;
                let chosen = turn.legal_moves[draw % turn.legal_moves.len()].clone();
                let choice = joined.moves.get_or_choose(turn.move_number, || chosen);
                choice.map_err(HandlerError::from).map(|choice| {
                    world.note_choice(id, &conversation, &choice);
                    Some(from.response(&message, turn, choice))
                })
            }
            Ok(Step::Reply(reply)) => Ok(reply),
            Ok(Step::Print(_) | Step::Warn(_)) => Ok(None),
            Ok(Step::End(_)) => {
                if let PlayerRequest::LeagueCompleted(end) = &message {
                    player.told = Some(end.clone());
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
        let is_question = matches!(
            message,
            PlayerRequest::GameInvitation(_) | PlayerRequest::ChooseParityCall(_)
        );
        let answer = answer_of(reply);
        if let Err(error) = &answer {
            world.tell(|world| format!("{} refuses {name}: {}", world.name(id), error.explain()));
        }
        if is_question {
            return Player::answer_question(world, ticket, answer);
        }
        world.answer(ticket, answer);
    }

    /// Answers a question of a referee: well, or not at all, or late, or wrongly.
    fn answer_question(world: &mut World, ticket: Ticket, mut answer: Answer) {
        let id = ticket.to;
        if world.fault(id, Kind::Silent).is_some() {
            return;
        }
        if let Some(mut draw) = world.fault(id, Kind::Wrong) {
            answer = match draw.u32(..3) {
                0 => Err(CallError::JsonRpc(-32603, "it crashed".into())),
                1 => Err(CallError::HttpStatus(500, "it crashed".into())),
                _ => answer.map(|mut answer| {
                    answer["parity_choice"] = "seven".into();
                    answer["player_id"] = "P99".into();
                    answer
                }),
            };
        }
        if let Some(mut draw) = world.fault(id, Kind::Slow) {
            let time = ms(draw.u64(100..40_000));
            return world.after(id, time, &"slow".into(), move |world| {
                world.answer(ticket, answer)
            });
        }
        world.answer(ticket, answer);
    }

    /// Asks the manager, and then handles the request again.
    fn ask(
        world: &mut World,
        ticket: Ticket,
        from: Sender,
        message: PlayerRequest,
        query: QueryType,
    ) {
        let own = Arc::clone(&from.credentials);
        let query = LeagueQuery {
            league_id: own.league_id.clone(),
            query_type: json!(query),
            query_params: None,
        };
        let envelope = Envelope {
            auth_token: own.token.clone(),
            ..Envelope::new(&format!("player:{}", own.agent_id), "conv-query")
        };
        world.count("player asks the manager");
        ask_manager(
            world,
            ticket.to,
            QUERY_TIMEOUT,
            envelope,
            query.into(),
            move |world, answer| {
                let data = answer
                    .ok()
                    .and_then(|answer| answer["data"].as_object().cloned());
                world.note_query(ticket.to, data.is_some());
                if let Some(data) = data {
                    Player::of(world, ticket.to)
                        .state
                        .learn(&own.agent_id, &data);
                }
                Player::handle(world, ticket, from, message);
            },
        );
    }
}
