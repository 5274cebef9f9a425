//! A referee: takes the matches that the manager's announcements give it, plays them, reports until it is heard.
//!
//! A few workers, each of which plays one match at a time, and one reporter, which repeats every result until the
//! manager has answered for it. How one match goes is in `referee/match_play.rs`; read that first, then
//! `referee/assignments.rs` and `referee/outbox.rs`.

pub mod assignments;
pub mod match_play;
pub mod outbox;
pub mod over_http;

use crate::net::agent::{Agent, Denial, Request};
use crate::net::client::{About, Peer, ok};
use crate::net::log::Level;
use crate::net::retry::{CallError, SHOWN};
use crate::net::sync::spawn;
use crate::object;
use crate::program::args::{Args, Stop};
use crate::program::card::Card;
use crate::program::registration::max_concurrent_matches;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::{complain, say, shown};
use crate::protocol::*;
use crate::referee::assignments::{Assignment, Assignments};
use crate::referee::match_play::{Limits, play};
use crate::referee::outbox::Kept;
use crate::referee::over_http::{OverHttp, fault};
use crate::wire::{Wire, cut};
use serde_json::Value;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

object! {
    /// What `get_match_state` shows: choices and result only after the draw.
    MatchView {
        match_id: String, round_id: u32, player_A_id: String, player_B_id: String, state: MatchState,
        result: Option<GameResult>,
    }
}

/// Runs a referee to its end.
pub fn run(args: Args) -> Result<(), Stop> {
    session::run(args, Kind::Referee, Referee::new)
}

struct Referee {
    session: Arc<Session>,
    assignments: Assignments,
    limits: Limits,
    seed: Option<u64>,
    /// That no result gets through has been said.
    said: AtomicBool,
}

impl Referee {
    fn new(session: Arc<Session>) -> Result<Arc<Referee>, Stop> {
        let program = &session.program;
        let (timeouts, retry) = (&program.config.system.timeouts, program.config.retry());
        let limits = Limits {
            join: timeouts.game_join_ack_timeout_sec.0,
            choice: timeouts.move_timeout_sec.0,
            retry,
        };
        let (at_once, seed) = (
            max_concurrent_matches(&program.args, &program.config)?,
            program.args.number("--seed")?,
        );
        let (assignments, said) = (Assignments::default(), AtomicBool::new(false));
        let referee = Arc::new(Referee {
            session,
            assignments,
            limits,
            seed,
            said,
        });
        for _ in 0..at_once {
            referee.start("match", |it| it.play(&it.assignments.next_match()))?;
        }
        referee.start("report", |it| it.report(it.assignments.next_report()))?;
        Ok(referee)
    }

    /// Has a thread of its own do a work again and again, for ever.
    fn start(self: &Arc<Self>, name: &str, work: fn(&Referee)) -> Result<(), Stop> {
        let here = Arc::clone(self);
        let endless = move || loop {
            let _ = catch_unwind(AssertUnwindSafe(|| work(&here)));
        };
        if spawn(name, endless) {
            Ok(())
        } else {
            Err(Stop::failed("no thread to work with"))
        }
    }

    /// One match: played, kept on the disk, told to the players. Reporting is the reporter's business.
    fn play(&self, assignment: &Arc<Assignment>) {
        let (program, assignments, seed) = (&self.session.program, &self.assignments, self.seed);
        let venue = OverHttp {
            program,
            assignments,
            assignment,
            seed,
            began: Instant::now(),
        };
        let played = catch_unwind(AssertUnwindSafe(|| {
            play(&assignment.game, &venue, &self.limits)
        }));
        let (outcome, match_id) = (played.unwrap_or_default(), assignment.match_id());
        match &outcome {
            Some(outcome) => say(&format!("{match_id}: {}", shown(&outcome.reason))),
            None if assignment.live().dropped => {} // given to somebody else meanwhile
            None => fault(
                program,
                &format!("{match_id} could not be played, by a fault of our own machine"),
            ),
        }
        assignments.ended(assignment, outcome.is_some());
    }

    /// One result reported: acknowledged, refused for good, or to be sent again later. If the manager does not know us
    /// any more, we register again first.
    fn report(&self, kept: Kept) {
        let Ok(card) = self.session.wait_for_card() else {
            return self.later(&kept);
        };
        let is_about_us =
            |error: &LeagueError| ["E011", "E012", "E013"].contains(&&*error.error_code);
        let mut answer = self.ask_manager(&card, &kept);
        if matches!(&answer, Ok(Message::LeagueError(error)) if is_about_us(error)) {
            match self.session.register(self, Some(card.clone())) {
                Ok(new) if new.token == card.token => answer = self.ask_manager(&new, &kept),
                Ok(_) => return, // a new registration, for which the old results are nothing
                Err(stop) => {
                    self.session.finish(Err(stop)); // it wants us no more
                    return;
                }
            }
        }
        let why = match answer {
            Ok(Message::MatchResultAck(_)) => {
                self.said.store(false, Ordering::SeqCst);
                return self.assignments.settle(kept, true);
            }
            Ok(Message::LeagueError(error)) if !is_about_us(&error) => error.explain(),
            Err(error @ CallError::Status(413, _)) => error.explain(),
            Err(error) => {
                if !self.said.swap(true, Ordering::SeqCst) {
                    let (manager, why) = (card.manager, error.explain());
                    complain(&format!(
                        "results wait for the league manager at {manager}: it {why}"
                    ));
                }
                return self.later(&kept);
            }
            _ => return self.later(&kept),
        };
        let why = format!(
            "{}: the league manager refuses the result for good: {}",
            kept.report.match_id,
            cut(&why, SHOWN)
        );
        self.session
            .program
            .log()
            .say(Level::Error, "report_refused", &*why);
        complain(&why);
        self.assignments.settle(kept, false);
    }

    fn later(&self, kept: &Kept) {
        self.assignments
            .postpone(kept, Instant::now() + self.limits.retry.base_delay);
    }

    fn ask_manager(&self, card: &Card, kept: &Kept) -> Result<Message, CallError> {
        let about = About {
            conversation_id: kept.conversation_id.clone(),
            auth_token: Some(card.token.clone()).filter(|token| !token.is_empty()),
            round_id: Some(kept.report.round_id),
            match_id: Some(kept.report.match_id.clone()),
        };
        let (program, message) = (&self.session.program, kept.report.clone().into());
        program.client.ask(
            &Peer::manager(&card.manager),
            &message,
            &about,
            program.config.generic_limit(),
        )
    }
}

impl Agent for Referee {
    fn kind(&self) -> Kind {
        Kind::Referee
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        self.session.check_manager(request)?;
        match message {
            Message::RoundAnnouncement(round) => {
                self.assignments
                    .announced(round, &self.session.program.endpoint)?;
            }
            Message::LeagueCompleted(_) => {
                self.assignments.settle_all();
                if self.session.league_is_over() {
                    say("the league is over"); // once, though the notice may come twice
                }
            }
            Message::LeagueError(error) => complain(&format!(
                "the league manager says: {}",
                cut(&error.explain(), SHOWN)
            )),
            _ => {} // for information; what is for others is refused before it comes here
        }
        Ok(None)
    }

    fn tool(&self, tool: Tool, arguments: &Value, _: IpAddr) -> Result<Value, Denial> {
        match tool {
            Tool::StartMatch => {
                self.start_match(StartMatch::read(arguments).map_err(Refusal::from)?)
            }
            Tool::GetMatchState => self.match_state(
                &GetMatchState::read(arguments)
                    .map_err(Refusal::from)?
                    .match_id,
            ),
            _ => Err(Denial::rpc(
                -32601,
                format!("Method not found: a referee does not take {tool}"),
            )),
        }
    }

    fn answer_schema(&self, tool: Tool) -> Option<Value> {
        (tool == Tool::GetMatchState).then(MatchView::schema)
    }

    fn health(&self) -> Value {
        self.session.health()
    }

    fn instructions(&self) -> &'static str {
        "This is a referee of the AI Agent League: it plays matches of Even/Odd between two players and reports them to \
         the league manager. get_match_state only looks: it shows how far a match has come, and after the draw its \
         choices and result. Everything else is for the league manager alone and needs the referee's own token. A \
         refusal comes as a tool error that says what is wrong."
    }
}

impl Referee {
    /// One match, handed over without an announcement.
    fn start_match(&self, game: StartMatch) -> Result<Value, Denial> {
        self.session.check_token(game.auth_token.as_deref())?;
        let StartMatch {
            league_id,
            round_id,
            r#match: entry,
            ..
        } = game;
        let ours = self.session.wait_for_card()?.league_id;
        if league_id != ours {
            return Err(Refusal::got(
                Code::E003,
                "league_id",
                &league_id,
                format_args!("expected {ours:?}"),
            )
            .into());
        }
        let announcement = RoundAnnouncement {
            league_id,
            round_id,
            matches: vec![entry],
            match_token: None,
        };
        self.assignments
            .announced(announcement, &self.session.program.endpoint)?;
        Ok(ok())
    }

    fn match_state(&self, match_id: &str) -> Result<Value, Denial> {
        let unknown = || {
            Refusal::got(
                Code::E015,
                "match_id",
                match_id,
                "which is not a match of this referee",
            )
        };
        let assignment = self.assignments.find(match_id).ok_or_else(unknown)?;
        let (
            live,
            StartMatch {
                round_id,
                r#match: entry,
                ..
            },
        ) = (assignment.live().clone(), assignment.game.clone());
        let MatchEntry {
            match_id,
            player_A_id,
            player_B_id,
            ..
        } = entry;
        let (state, result) = (live.state, live.result);
        Ok(serde_json::to_value(MatchView {
            match_id,
            round_id,
            player_A_id,
            player_B_id,
            state,
            result,
        })?)
    }
}

impl Participant for Referee {
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        let folder = self
            .session
            .program
            .data
            .join("referees")
            .join(&card.agent_id);
        self.assignments
            .begin(&folder, fresh)
            .map_err(|error| Stop::failed(format!("{}: {error}", folder.display())))
    }
}
