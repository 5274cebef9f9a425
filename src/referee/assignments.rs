//! The matches that were given to us: those that wait to be played, those in play, and those played, whose results are
//! in the outbox. One lock protects all of them, and one bell wakes the workers and the reporter.
//!
//! A match that is announced again is not played again: its players may have moved, and if it is over, its result is
//! reported again. Only two things have a match played anew: an announcement with other match tokens, and a refused
//! report, after which we know nothing of the match. A match that is given to another referee is dropped without a word.
//! See "Rounds" in `protocol.md`. Read next: `outbox.rs`.

use crate::games::{self, Outcome, Scoring};
use crate::net::client::conversation;
use crate::net::secret::secret;
use crate::net::sync::lock;
use crate::program::storage;
use crate::protocol::*;
use crate::referee::outbox::{Kept, Outbox};
use crate::wire::{Endpoint, Fault, token};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A match that was given to us.
pub struct Assignment {
    /// Who plays, in which match of which round.
    pub given: StartMatch,
    /// What proves us to the players, by seat.
    pub tokens: [String; 2],
    /// The conversation of all messages of the match, a new one for every replay.
    pub conversation_id: String,
    live: Mutex<Live>,
}

/// What changes about a match while it is ours.
#[derive(Debug, Clone)]
pub struct Live {
    /// Where the players are; they may move while we play.
    pub endpoints: [String; 2],
    /// How far the match has come.
    pub state: MatchState,
    /// How the match ended, once that is durable.
    pub result: Option<GameResult>,
    /// Whether the match is somebody else's now.
    pub dropped: bool,
}

impl Assignment {
    /// A match to be played. Its game must be known, and where its players are.
    fn new(given: StartMatch) -> Result<Assignment, Fault> {
        let entry = &given.r#match;
        if games::named(&entry.game_type).is_none() {
            let came = entry.game_type.clone().into();
            return Err(Fault::new(&came, "a game that this referee knows").under("game_type"));
        }
        let (Some(a), Some(b)) = (&entry.player_A_endpoint, &entry.player_B_endpoint) else {
            let missing = Fault::new(&Value::Null, "where both players are");
            return Err(missing.under("player_A_endpoint, player_B_endpoint"));
        };
        let endpoints = [a.clone(), b.clone()];
        // A manager that makes no match tokens leaves that to us.
        let own = |given: &Option<String>, id: &str| {
            given.clone().unwrap_or_else(|| token(id, &secret(32)))
        };
        let tokens = [
            own(&entry.player_A_token, &entry.player_A_id),
            own(&entry.player_B_token, &entry.player_B_id),
        ];
        Ok(Assignment {
            tokens,
            conversation_id: conversation(&entry.match_id.to_ascii_lowercase()),
            live: Mutex::new(Live {
                endpoints,
                state: MatchState::WaitingForPlayers,
                result: None,
                dropped: false,
            }),
            given,
        })
    }

    /// The match's id.
    pub fn match_id(&self) -> &str {
        &self.given.r#match.match_id
    }

    /// Its state at this moment.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        lock(&self.live)
    }

    /// Whether an announcement with these match tokens is about this very playing of the match.
    fn is_the_same(&self, new: &StartMatch) -> bool {
        let given = [&new.r#match.player_A_token, &new.r#match.player_B_token];
        let is_known = |(given, own): (&Option<String>, &String)| {
            given.as_ref().is_none_or(|given| given == own)
        };
        given.into_iter().zip(&self.tokens).all(is_known)
    }
}

/// All of them.
#[derive(Default)]
pub struct Assignments {
    inside: Mutex<Matches>,
    /// Rung when there is a match to play, or a result to report.
    bell: Condvar,
}

#[derive(Default)]
struct Matches {
    folder: PathBuf,
    queue: VecDeque<Arc<Assignment>>,
    /// By id, the played ones too.
    known: BTreeMap<String, Arc<Assignment>>,
    outbox: Outbox,
}

impl Assignments {
    /// We are registered: results wait in `folder`. Those of an earlier run are reported now, unless they belong to an
    /// older registration (`fresh`): then they are set aside, and every match with them.
    pub fn begin(&self, folder: &Path, fresh: bool) -> io::Result<()> {
        let mut inside = lock(&self.inside);
        if fresh {
            storage::set_aside(folder)?;
            for known in inside.known.values() {
                known.live().dropped = true;
            }
            *inside = Matches::default();
        }
        if inside.folder != folder {
            inside.outbox = Outbox::open(folder)?;
            inside.folder = folder.into();
        }
        self.bell.notify_all();
        Ok(())
    }

    /// Takes the matches of an announcement that are ours, and drops those that are not any more.
    pub fn announced(&self, round: RoundAnnouncement, our_endpoint: &str) -> Result<(), Refusal> {
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for (n, entry) in round.matches.into_iter().enumerate() {
            if !Endpoint::same(&entry.referee_endpoint, our_endpoint) {
                others.push(entry.match_id);
                continue;
            }
            let given = StartMatch {
                league_id: round.league_id.clone(),
                round_id: round.round_id,
                r#match: entry,
                auth_token: None,
            };
            let named = |fault: Fault| fault.under(&format!("matches[{n}]"));
            ours.push(Assignment::new(given).map_err(named)?);
        }
        let mut inside = lock(&self.inside);
        for match_id in &others {
            inside.give_up(match_id);
        }
        for assignment in ours {
            inside.take(assignment);
        }
        self.bell.notify_all();
        Ok(())
    }

    /// Takes one match, handed over without an announcement.
    pub fn started(&self, given: StartMatch) -> Result<(), Refusal> {
        let new = Assignment::new(given).map_err(|fault| fault.under("match"))?;
        lock(&self.inside).take(new);
        self.bell.notify_all();
        Ok(())
    }

    /// The next match to play; waits until there is one.
    pub fn next_match(&self) -> Arc<Assignment> {
        self.wait_for(|inside| inside.queue.pop_front())
    }

    /// The next result to report; waits until there is one.
    pub fn next_report(&self) -> Kept {
        self.wait_for(|inside| inside.outbox.next_due())
    }

    fn wait_for<T>(&self, take: impl Fn(&mut Matches) -> Option<T>) -> T {
        let mut inside = lock(&self.inside);
        loop {
            if let Some(taken) = take(&mut inside) {
                return taken;
            }
            let rung = self.bell.wait(inside);
            inside = rung.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes an outcome durable before anybody hears of it; false if the match is not ours any more.
    pub fn keep(
        &self,
        assignment: &Assignment,
        outcome: &Outcome,
        scoring: &Scoring,
    ) -> io::Result<bool> {
        let mut inside = lock(&self.inside);
        if assignment.live().dropped {
            return Ok(false);
        }
        inside.outbox.keep(Kept {
            conversation_id: assignment.conversation_id.clone(),
            report: MatchResultReport {
                league_id: assignment.given.league_id.clone(),
                round_id: assignment.given.round_id,
                match_id: assignment.match_id().into(),
                game_type: assignment.given.r#match.game_type.clone(),
                result: outcome.for_manager(scoring),
            },
        })?;
        assignment.live().result = Some(outcome.for_players());
        Ok(true)
    }

    /// A match has ended: its result may be reported. Or it could not be played: then we know nothing of it any more.
    pub fn ended(&self, assignment: &Arc<Assignment>, played: bool) {
        let mut inside = lock(&self.inside);
        let match_id = assignment.match_id();
        if assignment.live().dropped {
            return;
        }
        if played {
            inside.outbox.send(match_id);
        } else {
            inside.give_up(match_id);
        }
        self.bell.notify_all();
    }

    /// The manager has not answered for a result: it is reported again. If the match has another result by now, that
    /// one is reported when its own time comes.
    pub fn report_again(&self, kept: &Kept) {
        let mut inside = lock(&self.inside);
        if inside.outbox.has(kept) {
            inside.outbox.send(&kept.report.match_id);
        }
    }

    /// The manager has refused a result for good: announced again, the match is played anew.
    pub fn refused(&self, kept: &Kept) {
        let mut inside = lock(&self.inside);
        if inside.outbox.has(kept) {
            inside.outbox.forget(&kept.report.match_id);
            inside.known.remove(&kept.report.match_id);
        }
    }

    /// The league is over: nothing need be reported any longer.
    pub fn league_is_over(&self) {
        lock(&self.inside).outbox.clear();
    }

    /// The match of that id, if it is ours.
    pub fn find(&self, match_id: &str) -> Option<Arc<Assignment>> {
        lock(&self.inside).known.get(match_id).cloned()
    }
}

impl Matches {
    /// The match is ours. It is queued, unless we are playing it or have played it.
    fn take(&mut self, new: Assignment) {
        let match_id = new.match_id().to_string();
        match self.known.get(&match_id) {
            Some(known) if known.is_the_same(&new.given) => {
                let mut live = known.live();
                live.endpoints = new.live().endpoints.clone();
                if live.state == MatchState::Finished {
                    self.outbox.send(&match_id);
                }
                return;
            }
            Some(_) => self.give_up(&match_id),
            // Played before we were started anew, so far as we know.
            None if self.outbox.send(&match_id) => return,
            None => {}
        }
        let assignment = Arc::new(new);
        self.known.insert(match_id, Arc::clone(&assignment));
        self.queue.push_back(assignment);
    }

    /// The match is not ours, or not any more: it is not played on, and its result is not reported.
    fn give_up(&mut self, match_id: &str) {
        if let Some(assignment) = self.known.remove(match_id) {
            assignment.live().dropped = true;
            self.queue.retain(|queued| queued.match_id() != match_id);
        }
        self.outbox.forget(match_id);
    }
}
