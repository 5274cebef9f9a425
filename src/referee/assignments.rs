//! The matches that were given to us: those that wait to be played, those in play, and those played, whose results are
//! in the outbox. One lock around all, and one bell for the workers and the reporter.
//!
//! An assignment again is harmless: a match in play goes on, a played one is reported again. One that is given to
//! somebody else is dropped without a word. See "Rounds" in `protocol.md`. Read next: `outbox.rs`.

use crate::games::Outcome;
use crate::net::client::conversation;
use crate::net::secret::secret;
use crate::net::sync::lock;
use crate::program::storage;
use crate::protocol::*;
use crate::referee::outbox::{Kept, Outbox};
use crate::wire::{Endpoint, Fault, is_plain, token};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A match that was given to us.
pub struct Assignment {
    /// Who plays, in which match of which round.
    pub game: StartMatch,
    /// What proves us to the players, by seat.
    pub tokens: [String; 2],
    /// Every message of the match belongs to it; a new one for every replay.
    pub conversation_id: String,
    live: Mutex<Live>,
}

/// What changes about a match while it is ours. Whoever looks, looks at all of it at once.
#[derive(Debug, Clone)]
pub struct Live {
    /// Where the players are; they may move while we play.
    pub endpoints: [String; 2],
    /// How far it has come.
    pub state: MatchState,
    /// How it ended, once that is durable.
    pub result: Option<GameResult>,
    /// It is somebody else's now.
    pub dropped: bool,
}

impl Assignment {
    /// A match to be played; a referee cannot do without the players' endpoints.
    fn new(game: StartMatch) -> Result<Assignment, Fault> {
        let entry = &game.r#match;
        if !is_plain(&entry.match_id) {
            return Err(Fault::new(
                &entry.match_id.clone().into(),
                "letters and digits, as in R1M1",
            )
            .under("match_id"));
        }
        let endpoint = |given: &Option<String>, field| {
            given
                .clone()
                .ok_or_else(|| Fault::new(&serde_json::Value::Null, "an endpoint").under(field))
        };
        let endpoints = [
            endpoint(&entry.player_A_endpoint, "player_A_endpoint")?,
            endpoint(&entry.player_B_endpoint, "player_B_endpoint")?,
        ];
        // A manager that makes no match tokens leaves that to us.
        let own = |given: &Option<String>, id: &str| {
            given.clone().unwrap_or_else(|| token(id, &secret(32)))
        };
        let tokens = [
            own(&entry.player_A_token, &entry.player_A_id),
            own(&entry.player_B_token, &entry.player_B_id),
        ];
        let conversation_id = conversation(&entry.match_id.to_ascii_lowercase());
        let live = Live {
            endpoints,
            state: MatchState::WaitingForPlayers,
            result: None,
            dropped: false,
        };
        Ok(Assignment {
            game,
            tokens,
            conversation_id,
            live: Mutex::new(live),
        })
    }

    /// The match's id.
    pub fn match_id(&self) -> &str {
        &self.game.r#match.match_id
    }

    /// Its state at this moment.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        lock(&self.live)
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
    /// We are registered: results wait in `folder`. What is there already is reported now, unless it belongs to an
    /// older registration (`fresh`): then it is set aside, and every match with it.
    pub fn begin(&self, folder: &Path, fresh: bool) -> io::Result<()> {
        let mut inside = lock(&self.inside);
        if fresh {
            storage::set_aside(folder)?;
            inside
                .known
                .values()
                .for_each(|known| known.live().dropped = true);
            *inside = Matches::default();
        }
        if inside.folder != folder {
            (inside.outbox, inside.folder) = (Outbox::open(folder)?, folder.into());
        }
        self.bell.notify_all();
        Ok(())
    }

    /// Takes the matches of an announcement that are ours, and lets go of those that are not any more.
    pub fn announced(
        &self,
        announcement: RoundAnnouncement,
        our_endpoint: &str,
    ) -> Result<(), Refusal> {
        let RoundAnnouncement {
            league_id,
            round_id,
            matches,
            ..
        } = announcement;
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for (n, entry) in matches.into_iter().enumerate() {
            if Endpoint::same(&entry.referee_endpoint, our_endpoint) {
                let game = StartMatch {
                    league_id: league_id.clone(),
                    round_id,
                    r#match: entry,
                    auth_token: None,
                };
                ours.push(
                    Assignment::new(game).map_err(|fault| fault.under(&format!("matches[{n}]")))?,
                );
            } else {
                others.push(entry.match_id);
            }
        }
        let mut inside = lock(&self.inside);
        others.iter().for_each(|match_id| inside.let_go(match_id));
        ours.into_iter()
            .for_each(|assignment| inside.take(assignment));
        self.bell.notify_all();
        Ok(())
    }

    /// The next match to play; waits until there is one.
    pub fn next_match(&self) -> Arc<Assignment> {
        let mut inside = lock(&self.inside);
        loop {
            match inside.queue.pop_front() {
                Some(assignment) => return assignment,
                None => {
                    inside = self
                        .bell
                        .wait(inside)
                        .unwrap_or_else(PoisonError::into_inner)
                }
            }
        }
    }

    /// The next result to report; waits until one is due. Those that wait for their time stand in nobody's way.
    pub fn next_report(&self) -> Kept {
        let mut inside = lock(&self.inside);
        loop {
            let first = inside
                .outbox
                .first()
                .map(|(from, kept)| (from.saturating_duration_since(Instant::now()), kept));
            inside = match first {
                Some((wait, kept)) if wait.is_zero() => return kept.clone(),
                Some((wait, _)) => {
                    let waited = self.bell.wait_timeout(inside, wait);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .bell
                    .wait(inside)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Makes an outcome durable before anybody hears of it; false if the match is not ours any more.
    pub fn keep(
        &self,
        assignment: &Assignment,
        outcome: &Outcome,
        report: MatchResultReport,
    ) -> io::Result<bool> {
        let mut inside = lock(&self.inside);
        if assignment.live().dropped {
            return Ok(false);
        }
        inside.outbox.keep(Kept {
            conversation_id: assignment.conversation_id.clone(),
            report,
        })?;
        assignment.live().result = Some(outcome.for_players());
        Ok(true)
    }

    /// A match has ended: its result may be reported. Or it could not be played: then we do not have it any more.
    pub fn ended(&self, assignment: &Arc<Assignment>, played: bool) {
        let mut inside = lock(&self.inside);
        let is_ours = inside
            .known
            .get(assignment.match_id())
            .is_some_and(|known| Arc::ptr_eq(known, assignment));
        if is_ours {
            inside
                .outbox
                .postpone(assignment.match_id(), Instant::now());
        }
        if is_ours && !played {
            inside.known.remove(assignment.match_id());
        }
        self.bell.notify_all();
    }

    /// A result could not be reported: again, at that moment.
    pub fn postpone(&self, kept: &Kept, until: Instant) {
        lock(&self.inside)
            .outbox
            .postpone(&kept.report.match_id, until);
    }

    /// The manager has answered for a result: it need not be kept any longer. Refused, the match is ours no more.
    pub fn settle(&self, kept: Kept, accepted: bool) {
        let (mut inside, match_id) = (lock(&self.inside), kept.report.match_id.clone());
        if inside.outbox.settle(&kept, accepted) && !accepted {
            inside.known.remove(&match_id);
        }
    }

    /// The league is over: nothing need be kept any longer.
    pub fn settle_all(&self) {
        lock(&self.inside).outbox.clear();
    }

    /// The match of that id, if it is ours.
    pub fn find(&self, match_id: &str) -> Option<Arc<Assignment>> {
        lock(&self.inside).known.get(match_id).cloned()
    }
}

impl Matches {
    /// The match is ours: queued, unless we have it already, in play or played. Other tokens mean that it is to be
    /// played anew.
    fn take(&mut self, new: Assignment) {
        let match_id = new.match_id().to_string();
        let given = [
            &new.game.r#match.player_A_token,
            &new.game.r#match.player_B_token,
        ];
        let is_same = |known: &&Arc<Assignment>| {
            given
                .iter()
                .zip(&known.tokens)
                .all(|(given, own)| given.as_ref().is_none_or(|given| given == own))
        };
        let known = self.known.get(&match_id);
        let same = known.filter(is_same);
        if known.is_some() && same.is_none() {
            self.outbox.forget(&match_id);
        }
        if self.outbox.has(&match_id) {
            return; // our report and this announcement have crossed: reported again
        }
        if let Some(known) = same {
            known.live().endpoints = new.live().endpoints.clone();
            return;
        }
        self.let_go(&match_id);
        let assignment = Arc::new(new);
        self.known.insert(match_id, Arc::clone(&assignment));
        self.queue.push_back(assignment);
    }

    /// The match is not ours, or not any more.
    fn let_go(&mut self, match_id: &str) {
        if let Some(assignment) = self.known.remove(match_id) {
            assignment.live().dropped = true;
            self.queue.retain(|queued| queued.match_id() != match_id);
        }
        self.outbox.forget(match_id);
    }
}
