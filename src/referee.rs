//! A referee: it accepts the matches that the manager announces, plays them, and reports each
//! result until the manager has acknowledged it.
//!
//! Its threads: some `match` threads, each of which plays one match at a time; one `report` thread;
//! and for a moment each, `seat` (one player of a match), `game-error` (a notification to a player)
//! and `result` (the result of a match, to a player that has not received it or was told another
//! one than the manager has recorded). How one match is played is in `referee/match_play.rs`; read
//! that first.

mod http_match;
pub mod match_messages;
pub mod match_play;
pub mod tasks;

use crate::games::{self, game_result};
use crate::json::decode;
use crate::net::agent::{Agent, HandlerError, Request, Tool, Toolbox};
use crate::net::call_error::CallError;
use crate::net::client::{MessageContext, Peer};
use crate::net::log::Level;
use crate::net::sync::{Shared, spawn, spawn_needed};
use crate::program::SHUTDOWN_TIMEOUT;
use crate::program::args::{Args, Exit};
use crate::program::attempts::Attempts;
use crate::program::credentials::Credentials;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::{describe_refusal, print_error, print_line, sanitize};
use crate::protocol::{
    AgentKind, Envelope, ErrorCode, GameOver, LeagueError, MatchResult, MatchResultAck,
    ProtocolError, RefereeRequest, Reply, StartMatch, StatusOk,
};
use crate::referee::http_match::{HttpMatch, recipient};
use crate::referee::tasks::{Assignment, PendingResult, State, Tasks};
use crate::values::{MAX_QUOTED_CHARS, truncate};
use serde_json::Value;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
            session,
            tasks: Shared::default(),
            has_warned: AtomicBool::new(false),
        });

        for _ in 0..referee.session.program.max_concurrent_matches() {
            referee.start_thread("match", Referee::play_next);
        }
        referee.start_thread("report", Referee::report_next);
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
        let assignment = self.tasks.wait_for(Tasks::start_next);
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

    /// Waits for a result and reports it. It is reported again until the manager has recorded it,
    /// or has refused it for good.
    fn report_next(self: &Arc<Self>) {
        let result = self.tasks.wait_for(Tasks::next_report);
        let Ok(credentials) = self.session.wait_until_registered() else {
            return;
        };

        match self.send(&credentials, &result) {
            Ok(_) => {
                let state = State::Recorded(result.clone());
                self.tasks.update(|tasks| tasks.end(&result, state));
                return self.has_warned.store(false, Ordering::SeqCst);
            }
            Err(CallError::Refused(error, _)) if AUTH_ERRORS.contains(&error.error_code) => {
                self.session.record_refused_token();
            }
            Err(CallError::Refused(error, _)) => {
                let recorded = recorded_result(&error);
                if let Some(recorded) = &recorded {
                    self.correct(&result, recorded);
                }

                // That another referee was faster is no fault, and stands in the log only.
                let refusal = self.drop_result(&result, &error.explain());
                if recorded.is_none() {
                    print_error(&refusal);
                }
                return;
            }
            Err(error @ CallError::HttpStatus(413, _)) => {
                return print_error(&self.drop_result(&result, &error.explain()));
            }
            Err(error) => self.warn(&credentials.manager, &error),
        }
        self.pause();
    }

    /// Waits before the next attempt.
    fn pause(&self) {
        Attempts::endless(self.session.program.config.system.retry_policy).wait();
    }

    /// Prints once that results wait for the manager.
    fn warn(&self, manager: &str, error: &CallError) {
        if !self.has_warned.swap(true, Ordering::SeqCst) {
            let problem = error.explain();
            print_error(&format!(
                "results wait for the league manager at {manager}: it {problem}"
            ));
        }
    }

    /// Sends a result to the manager.
    fn send(
        &self,
        credentials: &Credentials,
        result: &PendingResult,
    ) -> Result<MatchResultAck, CallError> {
        let context = MessageContext {
            conversation_id: result.conversation_id.clone(),
            auth_token: credentials.token.clone(),
            round_id: Some(result.report.round_id),
            match_id: Some(result.report.match_id.clone()),
        };

        let program = &self.session.program;
        let manager = Peer::manager(&credentials.manager, program.config.generic_limit());
        program.client.call(&manager, &result.report, &context)
    }

    /// Tells the players the result that the manager has recorded instead of ours. (After a restart
    /// we do not know where they are.)
    fn correct(self: &Arc<Self>, result: &PendingResult, recorded: &MatchResult) {
        let (match_id, conversation) = (&result.report.match_id, &result.conversation_id);
        let mut tasks = self.tasks.lock();
        let task = tasks.find(match_id, conversation);
        let assignment = task.and_then(|task| task.assignment.clone());
        drop(tasks);

        if let Some(assignment) = assignment {
            let game_over = assignment.game_over(&game_result(recorded));
            for seat in [0, 1] {
                self.tell(&assignment, seat, game_over.clone());
            }
        }
    }

    /// Tells a player the result of its match, in a thread that tries it as often as the retry
    /// policy says. A newer result replaces the one that this thread is telling.
    fn tell(self: &Arc<Self>, assignment: &Assignment, seat: usize, result: GameOver) {
        let mut tasks = self.tasks.lock();
        let task = tasks.current(assignment);
        if task.is_none_or(|task| task.untold[seat].replace(result).is_some()) {
            return; // it is not ours any more, or has its thread
        }
        drop(tasks);

        let (referee, assignment) = (Arc::clone(self), assignment.clone());
        spawn("result", move || {
            referee.send_newest_result(&assignment, seat)
        });
    }

    /// Sends a player the result of its match, and then a newer one, if there is one by now.
    fn send_newest_result(&self, assignment: &Assignment, seat: usize) {
        let program = &self.session.program;
        let timeout = program.config.game_over_limit();
        let (peer, context) = recipient(program, assignment, seat, timeout);
        let newest = || self.tasks.lock().current(assignment)?.untold[seat].clone();
        while let Some(result) = newest() {
            let mut attempts = Attempts::new(program.config.system.retry_policy);
            while let Err(error) = program.client.notify(&peer, &result, &context)
                && error.is_retryable()
                && newest().as_ref() == Some(&result)
                && attempts.wait()
            {}
            self.tasks
                .update(|tasks| tasks.end_telling(assignment, seat, &result));
        }
    }

    /// Drops a result that the manager has refused for good, and returns a sentence about it.
    fn drop_result(&self, result: &PendingResult, reason: &str) -> String {
        let match_id = &result.report.match_id;
        let reason = truncate(reason, MAX_QUOTED_CHARS);
        let text = format!("{match_id}: the league manager refuses the result for good: {reason}");

        let log = self.session.program.log();
        log.event(Level::Error, "report_refused", &*text);
        self.tasks.update(|tasks| tasks.end(result, State::Refused));
        text
    }
}

/// Returns the result that the manager has recorded instead of the refused one.
fn recorded_result(error: &LeagueError) -> Option<MatchResult> {
    let context = error.context.as_ref()?;
    decode(context.get("recorded_result")?).ok()
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
                let mut tasks = self.tasks.wait_until(SHUTDOWN_TIMEOUT, Tasks::are_settled);
                tasks.clear();
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
