//! A referee: it accepts the matches that the manager announces, plays them, and reports each
//! result until the manager has acknowledged it.
//!
//! Its threads: some `match` threads, each of which plays one match at a time; one `report` thread;
//! and for a moment each, `seat` (one player of a match), `game-error` (a notification to a player)
//! and `result` (the result of a match, to a player that has not received it or was told another
//! one than the manager has recorded). How one match is played is in `referee/match_play.rs`; read
//! that first. Which message is sent when is decided in `referee/tasks.rs`.

pub mod match_messages;
pub mod match_play;
pub mod tasks;

use crate::games::{self, match_result};
use crate::json::decode;
use crate::net::agent::{Agent, HandlerError, Request, Tool, Toolbox};
use crate::net::call_error::CallError;
use crate::net::client::{MessageContext, Peer};
use crate::net::sync::{Shared, spawn, spawn_needed};
use crate::program::args::{Args, Exit};
use crate::program::attempts::Attempts;
use crate::program::config::SystemFile;
use crate::program::credentials::Credentials;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::{describe_refusal, print_error, print_line, sanitize};
use crate::protocol::{
    AgentKind, Call, Envelope, ErrorCode, GameError, GameOver, GameResult, LeagueError,
    MatchResultReport, Message, ProtocolError, RefereeRequest, Reply, StartMatch, StatusOk,
};
use crate::values::{MAX_QUOTED_CHARS, Timestamp, truncate};
use match_play::{Aborted, MatchIo, play_match};
use serde_json::Value;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};
use tasks::{Assignment, MANAGER, Sending, State, Tasks};

/// The description of a referee for language models.
const INSTRUCTIONS: &str = "This is a referee of the AI Agent League: it plays matches between two \
    players and reports them to the league manager. Its tools are for the league manager alone and \
    need the referee's own token. A refusal comes as a tool error that says what is wrong.";

struct Referee {
    session: Arc<Session>,
    tasks: Shared<Tasks>,
}

/// Runs a referee until the league is over.
pub fn run(args: Args) -> Result<(), Exit> {
    session::run(args, AgentKind::Referee, games::names(), |session| {
        let referee = Arc::new(Referee {
            tasks: Shared::new(Tasks::new(session.program.config.system.retry_policy)),
            session,
        });

        for _ in 0..referee.session.program.max_concurrent_matches() {
            referee.start_thread("match", Referee::play_next);
        }
        referee.start_thread("report", Referee::send_next);
        referee
    })
}

impl Referee {
    /// Starts a thread that runs a task again and again.
    fn start_thread(self: &Arc<Self>, name: &str, task: fn(&Arc<Referee>)) {
        let referee = Arc::clone(self);
        spawn_needed(name, move || {
            loop {
                let _ = catch_unwind(AssertUnwindSafe(|| task(&referee)));
            }
        });
    }

    /// Waits for a match and plays it. If our own machine fails, it is played again.
    fn play_next(self: &Arc<Self>) {
        let assignment = self.tasks.wait_for(|tasks| tasks.start_next());
        let match_id = &assignment.match_id;
        let io = HttpMatch {
            referee: self,
            assignment: &assignment,
            started: Instant::now(),
        };
        let played = catch_unwind(AssertUnwindSafe(|| play_match(&assignment, &io)));

        if let Ok(Ok(result)) = played {
            let reason = sanitize(&result.reason.unwrap_or_default());
            print_line(&format!("{match_id}: {reason}"));
        } else if self.tasks.lock().current(&assignment).is_some() {
            self.report_error(&format!(
                "{match_id} was stopped by a fault of our own machine; it is played again"
            ));
            let policy = self.session.program.config.system.retry_policy;
            thread::sleep(Attempts::endless(policy).first_delay());
        }
        self.tasks.update(|tasks| tasks.finish(&assignment));
    }

    /// Logs a problem that somebody must look at, and prints it.
    fn report_error(&self, text: &str) {
        if self.session.program.log().error(text) {
            print_error(text);
        }
    }

    /// Waits until a message about a result must be sent, and sends it. A player delays no report.
    fn send_next(self: &Arc<Self>) {
        let sending = self.tasks.wait_for(|tasks| tasks.next(Instant::now()));
        if sending.receiver == MANAGER {
            return self.report(&sending);
        }
        let referee = Arc::clone(self);
        // Without a thread, it comes again.
        spawn("result", move || {
            referee.tell(&sending);
            referee.tasks.update(|_| ()); // the end of the league may wait for it
        });
    }

    /// Returns the address of a player, and the envelope of a message to it.
    fn recipient(
        &self,
        assignment: &Assignment,
        seat: usize,
        timeout: Duration,
    ) -> (Peer, MessageContext) {
        let peer = Peer {
            kind: AgentKind::Player,
            id: assignment.players[seat].clone(),
            endpoint: assignment.endpoints[seat].clone(),
            max_bytes: self.session.program.config.max_message_bytes(),
            timeout,
        };
        let context = assignment.context(Some(assignment.tokens[seat].clone()));
        (peer, context)
    }

    /// Tells a player the result of its match, once. It wakes no thread: mostly nothing follows.
    fn tell(&self, sending: &Sending) {
        let program = &self.session.program;
        let timeout = program.config.game_over_limit();
        let (peer, context) = self.recipient(&sending.assignment, sending.receiver, timeout);
        let answer = program.client.notify(&peer, &sending.game_over, &context);
        let answer = answer.and_then(|answer| match decode::<LeagueError>(&answer) {
            Ok(error) => Err(CallError::Refused(Box::new(error), String::new())),
            Err(_) => Ok(()),
        });
        let mut tasks = self.tasks.lock();
        tasks.record(sending, &answer, Instant::now());
    }

    /// Reports a result to the manager once, and prints what follows. A result that another referee
    /// has reported before is no fault.
    fn report(&self, sending: &Sending) {
        let answer = self.send_report(sending);
        let state = self
            .tasks
            .update(|tasks| tasks.record(sending, &answer, Instant::now()));
        let Err(error) = answer else {
            return;
        };

        let (match_id, problem) = (&sending.assignment.match_id, error.explain());
        let problem = truncate(&problem, MAX_QUOTED_CHARS);
        match state {
            Some(State::Told) if !error.is_local() => {
                let manager = self.session.program.config.manager();
                self.session.warn(&format!(
                    "results wait for the league manager at {manager}: it {problem}"
                ));
            }
            Some(State::Refused) => self.report_error(&format!(
                "{match_id}: the league manager refuses the result for good: it {problem}"
            )),
            _ => {} // the manager has another result, or the match is not ours any more
        }
    }

    /// Sends a report. If the manager does not know us any more, we register again.
    fn send_report(&self, sending: &Sending) -> Result<(), CallError> {
        let program = &self.session.program;
        let registered = self.session.wait_until_registered();
        let credentials = registered.map_err(|error| CallError::Local(error.to_string()))?;
        let assignment = &sending.assignment;
        let context = assignment.context(credentials.token.clone());
        let scoring = &program.config.league.scoring;
        let report = MatchResultReport {
            league_id: assignment.league_id.clone(),
            round_id: assignment.round_id,
            match_id: assignment.match_id.clone(),
            game_type: assignment.game_type.clone(),
            result: match_result(&sending.game_over.game_result, scoring),
        };
        let manager = Peer::manager(&credentials.manager, program.config.generic_limit());
        match program.client.call(&manager, &report, &context) {
            Err(CallError::Refused(error, _))
                if matches!(
                    error.error_code,
                    ErrorCode::TokenMissing
                        | ErrorCode::TokenInvalid
                        | ErrorCode::RefereeNotRegistered
                ) =>
            {
                self.session.record_refused_token();
                Err(CallError::Local("not registered any more".into()))
            }
            answer => answer.map(|_| ()),
        }
    }
}

impl Participant for Referee {
    fn on_registered(&self, credentials: &Credentials, is_new: bool) -> Result<(), Exit> {
        let folder = self.session.program.data.join("referees");
        let folder = folder.join(&credentials.agent_id);
        Ok(self.tasks.update(|tasks| tasks.open(&folder, is_new))?)
    }
}

impl Agent for Referee {
    type Requests = RefereeRequest;

    const KIND: AgentKind = AgentKind::Referee;

    /// Handles a message of the manager, which must carry the referee's own token.
    fn handle(
        &self,
        request: &Request,
        message: RefereeRequest,
    ) -> Result<Option<Reply>, HandlerError> {
        let token = request.envelope.auth_token.as_deref();
        let credentials = self.session.check_manager(token)?;

        match message {
            RefereeRequest::RoundAnnouncement(round) => {
                self.tasks
                    .update(|tasks| tasks.apply(round, &credentials.endpoint))?;
            }
            RefereeRequest::LeagueCompleted(_) => {
                // The players end later: let them know the results that are recorded.
                self.tasks.update(Tasks::end);
                let limit = self.session.program.config.report_limit();
                self.tasks
                    .wait_until(limit, Tasks::are_settled)
                    .by_match
                    .clear();
                if self.session.end_league() {
                    print_line("the league is over");
                }
            }
            RefereeRequest::LeagueError(error) => {
                let text = truncate(&error.explain(), MAX_QUOTED_CHARS);
                print_error(&format!("the league manager says: {text}"));
            }
            RefereeRequest::RoundCompleted(round) => self.session.record_round(&round),
            RefereeRequest::GameError(_) => {} // it only informs
        }
        Ok(None)
    }

    fn on_ping(&self, token: Option<&str>) {
        self.session.record_ping(token);
    }

    fn on_refused(&self, packet: &Value, peer: IpAddr, refusal: &ProtocolError) {
        self.session.warn(&describe_refusal(packet, peer, refusal));
    }

    fn is_known(&self, envelope: &Envelope) -> bool {
        self.session.is_own_token(envelope.auth_token.as_deref())
    }

    fn toolbox(&self) -> Toolbox<'_> {
        let start_match = Tool {
            read_only: false,
            ..Tool::new(
                "start_match",
                "The manager hands one match to the referee, with the referee's own token. \
                    Answered {\"status\":\"ok\"}.",
                |arguments, _| self.start_match(arguments),
            )
        };

        Toolbox {
            instructions: INSTRUCTIONS,
            lists_messages: true,
            tools: vec![start_match],
        }
    }

    fn health(&self) -> Value {
        self.session.health()
    }
}

impl Referee {
    /// Accepts one match, which is assigned without an announcement.
    fn start_match(&self, given: StartMatch) -> Result<StatusOk, HandlerError> {
        let credentials = self.session.check_manager(given.auth_token.as_deref())?;
        let league_id = &credentials.league_id;
        if given.league_id != *league_id {
            let (code, received) = (ErrorCode::MissingField, &given.league_id);
            let expected = format!("expected {league_id:?}");
            let refusal = ProtocolError::unexpected_value(code, "league_id", received, expected);
            return Err(refusal.into());
        }

        let assignment = Assignment::new(league_id, given.round_id, given.r#match)
            .map_err(|error| ProtocolError::from(error.in_field("match")))?;
        self.tasks.update(|tasks| tasks.accept(assignment));
        Ok(StatusOk {
            status: "ok".into(),
        })
    }
}

/// A match that is played over HTTP, with real clocks and on disk. A failure of our own machine (no
/// thread, a full disk) aborts it.
struct HttpMatch<'a> {
    referee: &'a Referee,
    assignment: &'a Assignment,
    started: Instant,
}

impl HttpMatch<'_> {
    /// Returns the match with the players' addresses of now, unless it is no longer ours.
    fn current(&self) -> Option<Assignment> {
        let mut tasks = self.referee.tasks.lock();
        Some(tasks.current(self.assignment)?.assignment.clone())
    }
}

impl MatchIo for HttpMatch<'_> {
    fn config(&self) -> &SystemFile {
        &self.referee.session.program.config.system
    }

    fn seed(&self) -> Option<u64> {
        self.referee.session.program.seed
    }

    fn call<C: Call<Reply: Message>>(
        &self,
        seat: usize,
        question: &C,
        timeout: Duration,
    ) -> Result<C::Reply, CallError> {
        let Some(assignment) = self.current() else {
            return Err(CallError::Local("the match is no longer ours".into()));
        };
        let (peer, context) = self.referee.recipient(&assignment, seat, timeout);
        let client = &self.referee.session.program.client;
        client.call(&peer, question, &context)
    }

    fn send_error(&self, seat: usize, error: GameError) {
        if let Some(assignment) = self.current() {
            let program = &self.referee.session.program;
            let timeout = program.config.game_over_limit();
            let (peer, context) = self.referee.recipient(&assignment, seat, timeout);
            let client = Arc::clone(&program.client);
            spawn("game-error", move || {
                drop(client.notify(&peer, &error, &context));
            });
        }
    }

    fn send_result(&self, game_over: GameOver) {
        let _ = self.in_parallel(&[0, 1], |seat| {
            let Some(assignment) = self.current() else {
                return;
            };
            self.referee.tell(&Sending {
                assignment,
                receiver: seat,
                game_over: game_over.clone(),
            });
        });
    }

    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for seat in &seats[1..] {
                let thread = Builder::new().name("seat".into());
                threads.push(thread.spawn_scoped(scope, || task(*seat)));
            }

            let mut results = vec![task(seats[0])]; // in this thread
            for thread in threads {
                let thread = thread.map_err(|_| Aborted)?;
                results.push(thread.join().map_err(|_| Aborted)?);
            }
            Ok(results)
        })
    }

    fn sleep(&self, delay: Duration) {
        thread::sleep(delay);
    }

    fn time_elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn clock(&self) -> Timestamp {
        Timestamp::now()
    }

    fn save(&self, result: &GameResult) -> Result<(), Aborted> {
        match self.referee.tasks.lock().save(self.assignment, result) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Aborted),
            Err(error) => {
                let match_id = &self.assignment.match_id;
                let text = format!("the result of {match_id} cannot be kept: {error}");
                self.referee.report_error(&text);
                Err(Aborted)
            }
        }
    }
}
