//! A referee: takes the matches that the manager's announcements give it, plays them, reports until
//! it is heard.
//!
//! It has a few `match` threads, each of which plays one match at a time, and one `report` thread,
//! which repeats every result until the manager has answered for it. For a moment each there are
//! `seat` (the second player of a match is asked while the first is) and `game-error` (a player is
//! told of a failed attempt). Requests come in through `referee/handlers.rs`. How one match goes is
//! in `referee/match_play.rs`; read that first.

pub mod assignments;
pub mod handlers;
pub mod match_play;
pub mod outbox;
pub mod over_http;
pub mod questions;

use crate::games;
use crate::net::letter::{About, Peer};
use crate::net::log::Level;
use crate::net::retry::{CallError, SHOWN, pause};
use crate::net::sync::{Watched, spawn};
use crate::program::args::{Args, Stop};
use crate::program::card::Card;
use crate::program::session::{self, Participant, Session};
use crate::program::terminal::{complain, say, shown};
use crate::protocol::{Kind, Message};
use crate::referee::assignments::{Assignment, Assignments};
use crate::referee::match_play::play;
use crate::referee::outbox::Kept;
use crate::referee::over_http::{OverHttp, fault};
use crate::wire::cut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs a referee to its end.
pub fn run(args: Args) -> Result<(), Stop> {
    session::run(args, Kind::Referee, Referee::new)
}

/// The codes of a refusal that is about who we are, and not about the result.
const ABOUT_US: [&str; 3] = ["E011", "E012", "E013"];

struct Referee {
    session: Arc<Session>,
    assignments: Watched<Assignments>,
    /// Whether it has been said that results wait for the manager.
    said: AtomicBool,
    /// Whether a report is under way.
    is_reporting: Watched<bool>,
}

impl Referee {
    fn new(session: Arc<Session>) -> Arc<Referee> {
        let at_once = session.program.at_once();
        let referee = Arc::new(Referee {
            session,
            assignments: Watched::default(),
            said: AtomicBool::new(false),
            is_reporting: Watched::default(),
        });
        for _ in 0..at_once {
            referee.start("match", |it| {
                it.play(&it.assignments.wait_for(|all| all.queue.pop_front()));
            });
        }
        referee.start("report", |it| {
            let kept = it.assignments.wait_for(|all| all.outbox.next_due());
            it.is_reporting.change(|is| *is = true);
            it.report(&kept);
            it.is_reporting.change(|is| *is = false);
        });
        referee
    }

    /// Has a thread of its own do a work again and again, for ever.
    fn start(self: &Arc<Self>, name: &str, work: fn(&Referee)) {
        let here = Arc::clone(self);
        spawn(name, move || {
            loop {
                let _ = catch_unwind(AssertUnwindSafe(|| work(&here)));
            }
        });
    }

    /// One match: played, kept on the disk, told to the players. Reporting is the reporter's
    /// business.
    fn play(&self, playing: &Assignment) {
        let venue = OverHttp {
            program: &self.session.program,
            assignments: &self.assignments,
            playing,
            began: Instant::now(),
        };
        let played = catch_unwind(AssertUnwindSafe(|| play(playing, &venue)));
        let outcome = played.unwrap_or_default();
        let match_id = &playing.match_id;
        if let Some(outcome) = &outcome {
            // once it is reported, all may end
            say(&format!("{match_id}: {}", shown(&outcome.reason)));
        }
        let ended = |all: &mut Assignments| all.ended(playing, outcome.as_ref());
        let is_ours = self.assignments.change(ended);
        if outcome.is_none() && is_ours {
            let words = "could not be played, by a fault of our own machine";
            let program = &self.session.program;
            fault(program, &format!("{match_id} {words}; it is played again"));
            pause(program.config.system.retry_policy.base_delay_sec);
            let again = |all: &mut Assignments| all.queue.push_back(playing.clone());
            self.assignments.change(again);
        }
    }

    /// One result reported: recorded, refused for good, or to be sent again later. If the manager
    /// does not know us any more, we register again first; if it wants us no more, that is our end.
    fn report(&self, kept: &Kept) {
        let Ok(card) = self.session.wait_for_card() else {
            return self.assignments.lock().outbox.send_again(kept);
        };
        match self.send_report(&card, kept) {
            Ok(Message::MatchResultAck(_)) => return self.said.store(false, Ordering::SeqCst),
            Ok(Message::LeagueError(error)) if ABOUT_US.contains(&&*error.error_code) => {
                if let Err(stop) = self.session.register(self, card) {
                    self.session.finish(Err(stop));
                }
            }
            Ok(Message::LeagueError(error)) => return self.forget(kept, &error.explain()),
            Ok(_) => {}
            Err(error @ CallError::Status(413, _)) => return self.forget(kept, &error.explain()),
            Err(error) => {
                if !self.said.swap(true, Ordering::SeqCst) {
                    let (manager, why) = (card.manager, error.explain());
                    complain(&format!(
                        "results wait for the league manager at {manager}: it {why}"
                    ));
                }
            }
        }
        let config = &self.session.program.config;
        pause(config.system.retry_policy.base_delay_sec);
        self.assignments.lock().outbox.send_again(kept);
    }

    /// The manager refuses a result for good: it is said, and forgotten.
    fn forget(&self, kept: &Kept, why: &str) {
        let (match_id, why) = (&kept.report.match_id, cut(why, SHOWN));
        let words = format!("{match_id}: the league manager refuses the result for good: {why}");
        let log = self.session.program.log();
        log.say(Level::Error, "report_refused", &*words);
        complain(&words);
        self.assignments.lock().refused(kept);
    }

    fn send_report(&self, card: &Card, kept: &Kept) -> Result<Message, CallError> {
        let about = About {
            conversation_id: kept.conversation_id.clone(),
            auth_token: card.token.clone(),
            round_id: Some(kept.report.round_id),
            match_id: Some(kept.report.match_id.clone()),
        };
        let program = &self.session.program;
        let to = Peer::manager(&card.manager, program.config.generic_limit());
        let report = kept.report.clone().into();
        program.client.ask(&to, &report, &about)
    }
}

impl Participant for Referee {
    fn plays(&self) -> Vec<&'static str> {
        games::all().collect()
    }

    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        let data = &self.session.program.data;
        let folder = data.join("referees").join(&card.agent_id);
        self.assignments
            .change(|all| all.begin(&folder, fresh))
            .map_err(|error| Stop::failed(format!("the outbox cannot be used: {error}")))
    }
}
