//! A referee: it accepts the matches that the manager announces, plays them, and reports each
//! result until the manager has acknowledged it.
//!
//! Its threads: some `match` threads, each of which plays one match at a time; one `report` thread;
//! and for a moment each, `seat` (one player of a match), `game-error` (a notification to a player)
//! and `result` (the result of a match, to a player that has not received it or was told another
//! one than the manager has recorded). How one match is played is in `referee/match_play.rs`; read
//! that first. Which message is sent when is decided in `referee/tasks.rs`.

mod http_match;
pub mod match_messages;
pub mod match_play;
pub mod tasks;

use crate::games::{self, match_result};
use crate::json::decode;
use crate::net::agent::{Agent, HandlerError, Request, Tool, Toolbox};
use crate::net::call_error::CallError;
use crate::net::client::Peer;
use crate::net::log::Level;
use crate::net::sync::{Shared, spawn, spawn_needed};
use crate::program::args::{Args, Exit};
use crate::program::attempts::Attempts;
use crate::program::credentials::Credentials;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::{describe_refusal, print_error, print_line, sanitize};
use crate::protocol::{
    AgentKind, Envelope, ErrorCode, LeagueError, MatchResultReport, ProtocolError, RefereeRequest,
    Reply, StartMatch, StatusOk,
};
use crate::referee::http_match::{HttpMatch, recipient};
use crate::referee::tasks::{Assignment, MANAGER, Sending, State, Tasks};
use crate::values::{MAX_QUOTED_CHARS, truncate};
use serde_json::Value;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// The description of a referee for language models.
const INSTRUCTIONS: &str = "This is a referee of the AI Agent League: it plays matches between two \
    players and reports them to the league manager. Its tools are for the league manager alone and \
    need the referee's own token. A refusal comes as a tool error that says what is wrong.";

/// The errors of a manager that does not know us any more.
const AUTH_ERRORS: [ErrorCode; 3] = [
    ErrorCode::TokenMissing,
    ErrorCode::TokenInvalid,
    ErrorCode::RefereeNotRegistered,
];

struct Referee {
    session: Arc<Session>,
    tasks: Shared<Tasks>,
    /// True if the user has been told that results wait for the manager.
    has_warned: AtomicBool,
}

/// Runs a referee until the league is over.
pub fn run(args: Args) -> Result<(), Exit> {
    session::run(args, AgentKind::Referee, games::names(), |session| {
        let referee = Arc::new(Referee {
            tasks: Shared::new(Tasks::new(session.program.config.system.retry_policy)),
            session,
            has_warned: AtomicBool::new(false),
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
        let played = catch_unwind(AssertUnwindSafe(|| {
            match_play::play_match(&assignment, &io)
        }));

        if let Ok(Ok(result)) = played {
            let reason = sanitize(&result.reason.unwrap_or_default());
            print_line(&format!("{match_id}: {reason}"));
        } else if self.tasks.lock().current(&assignment).is_some() {
            let problem = "could not be played, by a fault of our own machine";
            self.report_error(&format!("{match_id} {problem}; it is played again"));
            self.pause();
        }
        self.tasks.update(|tasks| tasks.finish(&assignment));
    }

    /// Returns a line with the referee's id: several referees may share a terminal.
    fn with_name(&self, text: &str) -> String {
        let credentials = self.session.credentials();
        let name = credentials.map_or("referee".into(), |known| known.agent_id.clone());
        format!("{name}: {text}")
    }

    /// Logs and prints a failure of our own machine.
    fn report_error(&self, text: &str) {
        let log = self.session.program.log();
        log.system_event(Level::Error, "fault", text);
        print_error(text);
    }

    /// Waits until a message about a result must be sent, and sends it. A player delays no report.
    fn send_next(self: &Arc<Self>) {
        let sending = self.tasks.wait_for(|tasks| tasks.next(Instant::now()));
        if sending.receiver == MANAGER {
            return self.send(&sending);
        }
        let (referee, own) = (Arc::clone(self), sending.clone());
        if spawn("result", move || referee.send(&own)).is_none() {
            self.send(&sending); // our machine has no thread left
        }
    }

    /// Sends a message about a result once, and records and prints what follows.
    fn send(&self, sending: &Sending) {
        let answer = match sending.receiver {
            MANAGER => self.report(sending),
            _ => self.tell(sending),
        };
        let record = |tasks: &mut Tasks| tasks.record(sending, &answer, Instant::now());
        let state = self.tasks.update(record);

        match (state, answer) {
            _ if sending.receiver != MANAGER => {}
            (_, Ok(())) => self.has_warned.store(false, Ordering::SeqCst),
            (Some(State::Told), Err(error)) => self.warn(&error),
            (Some(state), Err(error)) => {
                self.print_refusal(&sending.assignment.match_id, state, &error);
            }
            (None, Err(_)) => {} // the match is not ours any more
        }
    }

    /// Tells a player the result of its match.
    fn tell(&self, sending: &Sending) -> Result<(), CallError> {
        let program = &self.session.program;
        let (seat, timeout) = (sending.receiver, program.config.game_over_limit());
        let (peer, context) = recipient(program, &sending.assignment, seat, timeout);
        let answer = program.client.notify(&peer, &sending.game_over, &context)?;
        match decode::<LeagueError>(&answer) {
            Ok(error) => Err(CallError::Refused(Box::new(error), String::new())),
            Err(_) => Ok(()),
        }
    }

    /// Reports a result to the manager. If it does not know us any more, we register again.
    fn report(&self, sending: &Sending) -> Result<(), CallError> {
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
            Err(CallError::Refused(error, _)) if AUTH_ERRORS.contains(&error.error_code) => {
                self.session.record_refused_token();
                Err(CallError::Local("not registered any more".into()))
            }
            answer => answer.map(|_| ()),
        }
    }

    /// Waits before the next attempt.
    fn pause(&self) {
        let policy = self.session.program.config.system.retry_policy;
        thread::sleep(Attempts::endless(policy).first_delay());
    }

    /// Prints once that results wait for the manager.
    fn warn(&self, error: &CallError) {
        if !error.is_local() && !self.has_warned.swap(true, Ordering::SeqCst) {
            let (manager, problem) = (self.session.program.config.manager(), error.explain());
            print_error(&format!(
                "results wait for the league manager at {manager}: it {problem}"
            ));
        }
    }

    /// Logs that the manager refuses a result for good, and prints it, unless another referee was
    /// faster: that is no fault.
    fn print_refusal(&self, match_id: &str, state: State, error: &CallError) {
        let reason = truncate(&error.explain(), MAX_QUOTED_CHARS);
        let text =
            format!("{match_id}: the league manager refuses the result for good: it {reason}");

        let log = self.session.program.log();
        log.event(Level::Error, "report_refused", &*text);
        if state == State::Refused {
            print_error(&text);
        }
    }
}

impl Participant for Referee {
    fn on_registered(&self, credentials: &Credentials, is_new: bool) -> Result<(), Exit> {
        let path = format!("referees/{}", credentials.agent_id);
        let folder = self.session.program.data.join(path);
        self.tasks.update(|tasks| tasks.open(&folder, is_new))?;
        Ok(())
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
                let endpoint = &credentials.endpoint;
                self.tasks.update(|tasks| tasks.apply(round, endpoint))?;
            }
            RefereeRequest::LeagueCompleted(_) => {
                // The players end later: let them know the results that are recorded.
                self.tasks.update(Tasks::end);
                let limit = self.session.program.config.report_limit();
                let mut tasks = self.tasks.wait_until(limit, Tasks::are_settled);
                tasks.by_match.clear();
                drop(tasks);
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
        let text = describe_refusal(packet, peer, refusal);
        if self.session.program.may_print(&text) {
            print_error(&self.with_name(&text));
        }
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
            let (code, expected) = (ErrorCode::MissingField, format!("expected {league_id:?}"));
            let received = &given.league_id;
            return Err(
                ProtocolError::unexpected_value(code, "league_id", received, expected).into(),
            );
        }

        let assignment = Assignment::new(league_id, given.round_id, given.r#match)
            .map_err(|error| ProtocolError::from(error.in_field("match")))?;
        self.tasks.update(|tasks| tasks.accept(assignment));
        Ok(StatusOk {
            status: "ok".into(),
        })
    }
}
