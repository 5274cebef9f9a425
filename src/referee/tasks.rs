//! The matches that the manager has assigned to this referee: one table, in which each is a task
//! with a state. `next` says what must be sent about a result now, and `record` what follows from
//! an answer; time comes in as an argument. The program keeps the table behind one lock, which also
//! wakes its threads.
//!
//! | state    | what follows                                                                  |
//! |----------|-------------------------------------------------------------------------------|
//! | Waiting  | a `match` thread plays it                                                     |
//! | InPlay   | its result is saved; or it waits again, if our own machine fails              |
//! | Decided  | the players are told                                                          |
//! | Told     | the result is reported until the manager answers                              |
//! | Recorded | nothing; it is reported once more if it is announced again                    |
//! | Refused  | nothing; it is played again if it is announced again                          |
//!
//! A match that is announced again while it waits or is in play goes on, unless it has other tokens
//! now. A technical loss under other tokens does not count. A match that is given to
//! another referee before it is decided is no task any more. Each time a match is accepted anew it
//! has another conversation: so a thread finds its task, or knows that it has none any more.
//!
//! A player that has not received the result is told again beside the report, by the retry policy.
//! If the manager has recorded another result, that one is told.
//!
//! A result is on disk before the players are told: `data/referees/ID/outbox.jsonl` only grows, by a
//! line per result, with its assignment. A referee that is restarted reports every result in it once
//! more, and the manager acknowledges each once more, so it is not stored which results were
//! acknowledged.

use crate::games::{self, Game};
use crate::json::{FieldError, decode};
use crate::net::call_error::CallError;
use crate::net::client::new_conversation;
use crate::net::sync::secret;
use crate::program::attempts::Attempts;
use crate::program::config::RetryPolicy;
use crate::program::storage::{self, JsonLinesFile};
use crate::program::terminal::print_error;
use crate::protocol::{
    GameOver, GameResult, MatchEntry, MatchResult, ProtocolError, Record, ResultStatus,
    RoundAnnouncement,
};
use crate::values::{Endpoint, token};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time for which the answer to a message is awaited. Then it is sent again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// The index of the manager among the receivers of a result; the players have those of their seats.
pub const MANAGER: usize = 2;

/// A match as it was announced. The arrays have player A first.
#[derive(Clone, Serialize, Deserialize)]
pub struct Assignment {
    pub league_id: String,
    pub round_id: u32,
    pub match_id: String,
    /// The name of a game that we know.
    pub game_type: String,
    pub players: [String; 2],
    /// The players' addresses, which may change while we play.
    pub endpoints: [String; 2],
    /// The match tokens that the manager has announced, if any.
    pub announced_tokens: [Option<String>; 2],
    /// The tokens that prove to the players that we referee this match.
    pub tokens: [String; 2],
    pub standings: [Option<Record>; 2],
    /// The conversation of all messages of the match, a new one each time it is accepted anew.
    pub conversation_id: String,
}

/// A match that was assigned to us. A decided one is a line of the file.
#[derive(Clone, Serialize, Deserialize)]
pub struct Task {
    pub assignment: Assignment,
    /// The result once it is decided: our own, or the one that the manager has recorded instead.
    pub result: Option<GameResult>,
    #[serde(skip)]
    pub state: State,
    /// The messages that are still to be sent: to player A, to player B, to the manager. A player that
    /// is being told for the first time has none yet.
    #[serde(skip)]
    deliveries: [Option<Delivery>; 3],
}

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum State {
    #[default]
    Waiting,
    InPlay,
    Decided,
    Told,
    Recorded,
    Refused,
}

/// A message about a result that must be sent.
#[derive(Clone, Default)]
struct Delivery {
    /// The time before which it is not sent, since an attempt has failed or is under way.
    not_before: Option<Instant>,
    /// Number of attempts that have failed.
    failed: u32,
}

/// A message about a result that must be sent now.
#[derive(Clone)]
pub struct Sending {
    pub assignment: Assignment,
    /// The seat of a player, or `MANAGER`.
    pub receiver: usize,
    pub game_over: GameOver,
}

/// All tasks, and their file.
pub struct Tasks {
    retry_policy: RetryPolicy,
    /// The file, once we are registered.
    file: Option<JsonLinesFile>,
    /// The tasks, by the id of their match.
    pub by_match: BTreeMap<String, Task>,
    /// The time before which the manager gets no report: one that is away is not asked for each.
    report_at: Option<Instant>,
    /// True if the league is over: no match is accepted any more.
    is_over: bool,
}

impl Assignment {
    /// Returns the game. (`new` has checked that there is one.)
    pub fn game(&self) -> &'static Game {
        games::find(&self.game_type).unwrap_or(&games::even_odd::GAME)
    }

    /// Checks that we know the game and the players' addresses.
    pub fn new(
        league_id: &str,
        round_id: u32,
        entry: MatchEntry,
    ) -> Result<Assignment, FieldError> {
        if games::find(&entry.game_type).is_none() {
            let received = entry.game_type.into();
            return Err(
                FieldError::new(&received, "a game that this referee knows").in_field("game_type")
            );
        }
        let (Some(a), Some(b)) = (entry.player_A_endpoint, entry.player_B_endpoint) else {
            let missing = FieldError::new(&Value::Null, "where both players are");
            return Err(missing.in_field("player_A_endpoint, player_B_endpoint"));
        };

        let players = [entry.player_A_id, entry.player_B_id];
        let announced_tokens = [entry.player_A_token, entry.player_B_token];
        let tokens = [0, 1].map(|seat| {
            let announced = announced_tokens[seat].clone();
            announced.unwrap_or_else(|| token(&players[seat], &secret(32)))
        });
        Ok(Assignment {
            league_id: league_id.into(),
            round_id,
            conversation_id: new_conversation(&entry.match_id.to_ascii_lowercase()),
            match_id: entry.match_id,
            game_type: entry.game_type,
            players,
            endpoints: [a, b],
            announced_tokens,
            tokens,
            standings: [entry.player_A_standings, entry.player_B_standings],
        })
    }
}

impl Task {
    /// Returns true if its match must be played again, since it was announced like this: with other
    /// tokens a match that is not over, or a technical loss, whose players may have refused the
    /// older ones rightly.
    fn is_replaced_by(&self, new: &Assignment) -> bool {
        let mut seats = new.announced_tokens.iter().zip(&self.assignment.tokens);
        let has_tokens = seats.all(|(new, token)| new.as_ref().is_none_or(|new| new == token));
        let is_loss = |result: &GameResult| result.status == ResultStatus::TechnicalLoss;
        self.state == State::Refused || !has_tokens && self.result.as_ref().is_none_or(is_loss)
    }

    /// Lets the manager get the result.
    fn report(&mut self) {
        self.state = State::Told;
        self.deliveries[MANAGER] = Some(Delivery::default());
    }

    /// Returns the state after this answer of the manager. If it has recorded another result, the
    /// players are told that one.
    fn next_state(&mut self, answer: &Result<(), CallError>) -> State {
        match answer {
            Ok(()) => State::Recorded,
            Err(CallError::HttpStatus(413, _)) => State::Refused,
            Err(CallError::Refused(error, _)) => {
                let context = error.context.as_ref();
                let recorded = context.and_then(|context| context.get("recorded_result"));
                let Some(Ok(recorded)) = recorded.map(decode::<MatchResult>) else {
                    return State::Refused;
                };
                self.result = Some(games::game_result(&recorded));
                for delivery in &mut self.deliveries[..MANAGER] {
                    delivery.get_or_insert_default();
                }
                State::Recorded
            }
            Err(_) => self.state,
        }
    }
}

impl Tasks {
    pub fn new(retry_policy: RetryPolicy) -> Tasks {
        Tasks {
            retry_policy,
            file: None,
            by_match: BTreeMap::new(),
            report_at: None,
            is_over: false,
        }
    }

    /// Opens the file after a registration, and reports every result in it. If it is a new
    /// registration, older data is archived first.
    pub fn open(&mut self, folder: &Path, is_new: bool) -> io::Result<()> {
        if is_new {
            *self = Tasks::new(self.retry_policy); // it closes its file: Windows moves the folder
            storage::move_aside(folder)?;
        }
        if self.file.is_some() {
            return Ok(());
        }

        let path = folder.join("outbox.jsonl");
        let mut number = 0;
        let file = JsonLinesFile::open(&path, |line| {
            number += 1;
            match serde_json::from_slice::<Task>(line) {
                Ok(mut task) if task.result.is_some() => {
                    task.report();
                    self.by_match.insert(task.assignment.match_id.clone(), task);
                }
                Ok(task) => self
                    .by_match
                    .retain(|id, _| *id != task.assignment.match_id),
                Err(_) => {
                    let problem =
                        "is damaged; if the manager lacks its result, the match is played again";
                    print_error(&format!("{}: line {number} {problem}", path.display()));
                }
            }
            Ok(())
        })?;

        self.file = Some(file);
        Ok(())
    }

    /// Accepts the matches of an announcement for this referee, and drops those of other referees,
    /// except those that are decided: their results are still reported.
    pub fn apply(&mut self, round: RoundAnnouncement, endpoint: &str) -> Result<(), ProtocolError> {
        let mut accepted = Vec::new();
        for (n, entry) in round.matches.into_iter().enumerate() {
            if Endpoint::is_same_address(&entry.referee_endpoint, endpoint) {
                let assignment = Assignment::new(&round.league_id, round.round_id, entry);
                accepted
                    .push(assignment.map_err(|error| error.in_field(&format!("matches[{n}]")))?);
            } else if let Some(task) = self.by_match.get(&entry.match_id)
                && task.result.is_none()
            {
                self.by_match.remove(&entry.match_id);
            }
        }

        for assignment in accepted {
            self.accept(assignment);
        }
        Ok(())
    }

    /// Adds a match, unless it is known. If it is over, its result is reported again. After the end
    /// of the league an announcement is an old one, and adds nothing.
    pub fn accept(&mut self, new: Assignment) {
        if self.is_over {
            return;
        }

        match self.by_match.get_mut(&new.match_id) {
            Some(task) if !task.is_replaced_by(&new) => {
                if task.state == State::Recorded {
                    task.report();
                }
                task.assignment.endpoints = new.endpoints;
            }
            _ => {
                let match_id = new.match_id.clone();
                let task = Task {
                    assignment: new,
                    result: None,
                    state: State::Waiting,
                    deliveries: Default::default(),
                };
                self.by_match.insert(match_id, task);
            }
        }
    }

    /// Returns a match that waits to be played, and marks it as in play; or else how long a thread
    /// waits for one.
    pub fn start_next(&mut self) -> Result<Assignment, Duration> {
        let mut tasks = self.by_match.values_mut();
        let next = tasks
            .find(|task| task.state == State::Waiting)
            .ok_or(ANSWER_TIMEOUT)?;
        next.state = State::InPlay;
        Ok(next.assignment.clone())
    }

    /// Returns the task of a match that is or was in play, unless it has been replaced or dropped.
    pub fn current(&mut self, played: &Assignment) -> Option<&mut Task> {
        let task = self.by_match.get_mut(&played.match_id)?;
        (task.assignment.conversation_id == played.conversation_id).then_some(task)
    }

    /// Saves the result of a match before the players are told. Returns false if its task
    /// has been replaced or dropped.
    pub fn save(&mut self, played: &Assignment, result: &GameResult) -> io::Result<bool> {
        let Some(task) = self.current(played) else {
            return Ok(false);
        };

        let decided = Task {
            result: Some(result.clone()),
            state: State::Decided,
            ..task.clone()
        };
        if let Some(file) = &mut self.file {
            file.append(&decided)?;
        }
        self.by_match.insert(played.match_id.clone(), decided);
        Ok(true)
    }

    /// Lets a match be played again that our own machine could not play, or reports its result.
    pub fn finish(&mut self, played: &Assignment) {
        if let Some(task) = self.current(played) {
            match task.state {
                State::Decided => task.report(),
                _ => task.state = State::Waiting,
            }
        }
    }

    /// Returns the message that must be sent now, or else the time until one must. Of several it is
    /// the one that was sent least often, so one that fails does not delay the others. It does not
    /// come again before its answer is recorded.
    pub fn next(&mut self, now: Instant) -> Result<Sending, Duration> {
        let mut calls = Vec::new();
        for Task {
            assignment,
            result,
            deliveries,
            ..
        } in self.by_match.values_mut()
        {
            for (receiver, delivery) in deliveries.iter_mut().enumerate() {
                let (Some(delivery), Some(result)) = (delivery, &*result) else {
                    continue;
                };
                let pause = self.report_at.filter(|_| receiver == MANAGER);
                let time = delivery.not_before.max(pause).filter(|time| *time > now);
                let rank = (time, delivery.failed, receiver);
                calls.push((rank, &*assignment, result, delivery));
            }
        }

        let next = calls.into_iter().min_by_key(|(rank, ..)| *rank);
        let ((time, _, receiver), assignment, result, delivery) = next.ok_or(ANSWER_TIMEOUT)?;
        if let Some(time) = time {
            return Err(time - now);
        }
        delivery.not_before = Some(now + ANSWER_TIMEOUT);
        Ok(Sending {
            assignment: assignment.clone(),
            receiver,
            game_over: assignment.game_over(result),
        })
    }

    /// Records the answer to a message, and returns the state of its task; none if that has
    /// been replaced or dropped.
    pub fn record(
        &mut self,
        sent: &Sending,
        answer: &Result<(), CallError>,
        now: Instant,
    ) -> Option<State> {
        let mut attempts = Attempts::new(self.retry_policy);
        let task = self.current(&sent.assignment)?;
        let before = task.deliveries[sent.receiver].take();
        if sent.receiver == MANAGER {
            task.state = task.next_state(answer);
            let state = task.state;
            if state == State::Told {
                let failed = before.map_or(1, |before| before.failed + 1);
                task.deliveries[MANAGER] = Some(Delivery {
                    not_before: None, // `report_at` holds for all reports
                    failed,
                });
                self.report_at = Some(now + attempts.first_delay());
            } else if state == State::Refused {
                // After a restart it is not reported again: the match may have other tokens by then.
                task.result = None;
                let refused = task.clone();
                let _ = self.file.as_mut().map(|file| file.append(&refused));
            }
            return Some(state);
        }

        let is_newest = task.result.as_ref() == Some(&sent.game_over.game_result);
        let may_pass = matches!(answer, Err(error) if error.may_pass());
        task.deliveries[sent.receiver] = match before {
            _ if is_newest && (task.state == State::Refused || !may_pass) => None,
            Some(before) if is_newest => {
                attempts.failed = before.failed;
                attempts.next_delay().map(|delay| Delivery {
                    not_before: Some(now + delay),
                    failed: attempts.failed,
                })
            }
            _ => Some(Delivery::default()),
        };
        Some(task.state)
    }

    /// Returns true if the manager has answered all reports, and no player must be told a result.
    pub fn are_settled(&self) -> bool {
        self.by_match
            .values()
            .all(|task| task.state != State::Decided && task.deliveries.iter().all(Option::is_none))
    }

    /// Ends the league: matches without a result are dropped, and no other is accepted.
    pub fn end(&mut self) {
        self.is_over = true;
        self.by_match.retain(|_, task| task.result.is_some());
    }
}
