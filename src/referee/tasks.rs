//! The matches that the manager has assigned to this referee: one table, in which each is a task
//! with a state. The program keeps it behind one lock, which also wakes its threads.
//!
//! | state    | what follows                                                                  |
//! |----------|-------------------------------------------------------------------------------|
//! | Waiting  | a `match` thread plays it                                                     |
//! | InPlay   | its result is saved; or it waits again, if our own machine fails              |
//! | Decided  | the players are told                                                          |
//! | Told     | the `report` thread reports the result until the manager answers              |
//! | Recorded | nothing; it is reported once more if it is announced again                    |
//! | Refused  | nothing; it is played again if it is announced again                          |
//!
//! A match that is announced again while it waits or is in play goes on, unless it has other tokens
//! now. A technical loss that was decided under other tokens is void. A match that is given to
//! another referee before it is decided is no task any more. Each time a match is played it has
//! another conversation: so a thread finds its task, or knows that the match is not ours any more.
//!
//! A result is on disk before the players are told: `data/referees/ID/outbox.jsonl` only grows, by a
//! line per result. A referee that is restarted reports every result in it once more, and the
//! manager acknowledges each once more, so it is not stored which results were acknowledged.

use crate::games::{self, Game, result_status};
use crate::json::FieldError;
use crate::net::client::new_conversation;
use crate::net::sync::secret;
use crate::program::storage::{self, JsonLinesFile};
use crate::program::terminal::print_error;
use crate::protocol::{
    GameOver, MatchEntry, MatchResult, MatchResultReport, ProtocolError, Record, ResultStatus,
    RoundAnnouncement,
};
use crate::values::{Endpoint, token};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A match as it was announced. The arrays have player A first.
#[derive(Clone)]
pub struct Assignment {
    pub league_id: String,
    pub round_id: u32,
    pub match_id: String,
    pub game: &'static Game,
    pub players: [String; 2],
    /// The players' addresses, which may change while we play.
    pub endpoints: [String; 2],
    /// The match tokens that the manager has announced, if any.
    pub announced_tokens: [Option<String>; 2],
    /// The tokens that prove to the players that we referee this match.
    pub tokens: [String; 2],
    pub standings: [Option<Record>; 2],
    /// The conversation of all messages of the match, a new one each time it is played.
    pub conversation_id: String,
}

/// A result, as it is stored and reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingResult {
    pub conversation_id: String,
    /// The match tokens under which the result was decided.
    pub tokens: Option<[String; 2]>,
    pub report: MatchResultReport,
}

/// A match that was assigned to us.
pub struct Task {
    /// The conversation of its match, a new one each time it is played.
    pub conversation_id: String,
    /// The match; `None` if we were restarted after it was decided.
    pub assignment: Option<Assignment>,
    pub state: State,
    /// The number of times that it was reported.
    reports: u32,
    /// What each player must still be told.
    pub untold: [Option<GameOver>; 2],
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Waiting,
    InPlay,
    Decided(PendingResult),
    Told(PendingResult),
    Recorded(PendingResult),
    Refused,
}

/// All tasks, and their file.
#[derive(Default)]
pub struct Tasks {
    /// The file, once we are registered.
    file: Option<JsonLinesFile>,
    /// The tasks, by the id of their match.
    pub by_match: BTreeMap<String, Task>,
}

impl Assignment {
    /// Checks that we know the game and the players' addresses.
    pub fn new(
        league_id: &str,
        round_id: u32,
        entry: MatchEntry,
    ) -> Result<Assignment, FieldError> {
        let Some(game) = games::find(&entry.game_type) else {
            let received = entry.game_type.into();
            return Err(
                FieldError::new(&received, "a game that this referee knows").in_field("game_type")
            );
        };
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
            game,
            players,
            endpoints: [a, b],
            announced_tokens,
            tokens,
            standings: [entry.player_A_standings, entry.player_B_standings],
        })
    }

    /// Returns true if a result is a technical loss that was decided under other tokens than those
    /// that are announced now: its players may have refused them rightly.
    fn makes_void(&self, result: &PendingResult) -> bool {
        let Some(tokens) = &result.tokens else {
            return false;
        };

        let is_loss = result_status(&result.report.result) == ResultStatus::TechnicalLoss;
        let mut seats = self.announced_tokens.iter().zip(tokens);
        is_loss
            && !seats.all(|(announced, token)| announced.as_ref().is_none_or(|new| new == token))
    }
}

impl Task {
    fn new(conversation_id: String, assignment: Option<Assignment>, state: State) -> Task {
        Task {
            conversation_id,
            assignment,
            state,
            reports: 0,
            untold: [None, None],
        }
    }

    /// Returns true if its match must be played again, since it was announced like this.
    fn is_replaced_by(&self, new: &Assignment) -> bool {
        match &self.state {
            State::Waiting | State::InPlay => {
                let tokens = self
                    .assignment
                    .as_ref()
                    .map(|known| &known.announced_tokens);
                tokens != Some(&new.announced_tokens)
            }
            State::Decided(result) | State::Told(result) | State::Recorded(result) => {
                new.makes_void(result)
            }
            State::Refused => true,
        }
    }

    /// Returns true if the manager or a player still lacks its result.
    fn is_unsettled(&self) -> bool {
        matches!(self.state, State::Decided(_) | State::Told(_)) || self.untold != [None, None]
    }
}

impl Tasks {
    /// Opens the file after a registration, and reports every result in it. If it is a new
    /// registration, older data is archived first.
    pub fn open(&mut self, folder: &Path, is_new: bool) -> io::Result<()> {
        if is_new {
            *self = Tasks::default(); // it closes its file, so that Windows moves the folder
            storage::archive(folder)?;
        }
        if self.file.is_some() {
            return Ok(());
        }

        let path = folder.join("outbox.jsonl");
        let mut number = 0;
        let file = JsonLinesFile::open(&path, |line| {
            number += 1;
            if let Ok(result) = serde_json::from_slice::<PendingResult>(line) {
                let id = result.conversation_id.clone();
                let match_id = result.report.match_id.clone();
                let task = Task::new(id, None, State::Told(result));
                self.by_match.insert(match_id, task);
            } else {
                let problem =
                    "is damaged; if the manager lacks its result, the match is played again";
                print_error(&format!("{}: line {number} {problem}", path.display()));
            }
            Ok(())
        })?;

        if let Some(warning) = &file.warning {
            print_error(warning);
        }
        self.file = Some(file);
        Ok(())
    }

    /// Accepts the matches of an announcement that are ours, and drops those of other referees,
    /// except those that are decided: their results are still reported.
    pub fn apply(&mut self, round: RoundAnnouncement, endpoint: &str) -> Result<(), ProtocolError> {
        let mut accepted = Vec::new();
        for (n, entry) in round.matches.into_iter().enumerate() {
            if Endpoint::is_same_address(&entry.referee_endpoint, endpoint) {
                let assignment = Assignment::new(&round.league_id, round.round_id, entry);
                accepted
                    .push(assignment.map_err(|error| error.in_field(&format!("matches[{n}]")))?);
            } else if let Some(task) = self.by_match.get(&entry.match_id)
                && matches!(task.state, State::Waiting | State::InPlay)
            {
                self.by_match.remove(&entry.match_id);
            }
        }

        for assignment in accepted {
            self.accept(assignment);
        }
        Ok(())
    }

    /// Adds a match, unless it is known. If it is over, its result is reported again.
    pub fn accept(&mut self, new: Assignment) {
        match self.by_match.get_mut(&new.match_id) {
            Some(task) if !task.is_replaced_by(&new) => {
                if let State::Recorded(result) = &task.state {
                    task.state = State::Told(result.clone());
                }
                if let Some(known) = &mut task.assignment {
                    known.endpoints = new.endpoints;
                }
            }
            _ => {
                let id = new.conversation_id.clone();
                let match_id = new.match_id.clone();
                let task = Task::new(id, Some(new), State::Waiting);
                self.by_match.insert(match_id, task);
            }
        }
    }

    /// Returns a match that waits to be played, and marks it as in play.
    pub fn start_next(&mut self) -> Option<Assignment> {
        let mut tasks = self.by_match.values_mut();
        let next = tasks.find(|task| task.state == State::Waiting)?;
        next.state = State::InPlay;
        next.assignment.clone()
    }

    /// Returns the task of a conversation, unless its match is not ours any more.
    pub fn find(&mut self, match_id: &str, conversation_id: &str) -> Option<&mut Task> {
        let task = self.by_match.get_mut(match_id)?;
        (task.conversation_id == conversation_id).then_some(task)
    }

    /// Returns the task of a match that is or was in play, unless it is not ours any more.
    pub fn current(&mut self, played: &Assignment) -> Option<&mut Task> {
        self.find(&played.match_id, &played.conversation_id)
    }

    /// Saves the result of a match before the players are told. Returns false if the match is not
    /// ours any more.
    pub fn save(&mut self, played: &Assignment, result: MatchResult) -> io::Result<bool> {
        if self.current(played).is_none() {
            return Ok(false);
        }

        let result = PendingResult {
            conversation_id: played.conversation_id.clone(),
            tokens: Some(played.tokens.clone()),
            report: MatchResultReport {
                league_id: played.league_id.clone(),
                round_id: played.round_id,
                match_id: played.match_id.clone(),
                game_type: played.game.game_type.into(),
                result,
            },
        };
        let file = self.file.as_mut();
        let file = file.ok_or_else(|| io::Error::other("not registered"))?;
        file.append(&result)?;
        if let Some(task) = self.current(played) {
            task.state = State::Decided(result);
        }
        Ok(true)
    }

    /// Lets a match be played again that our own machine could not play, or reports its result.
    pub fn finish(&mut self, played: &Assignment) {
        if let Some(task) = self.current(played) {
            task.state = match &task.state {
                State::Decided(result) => State::Told(result.clone()),
                _ => State::Waiting,
            };
        }
    }

    /// Returns the result that must be reported, and was reported least often so far. So one that
    /// fails does not delay the others.
    pub fn next_report(&mut self) -> Option<PendingResult> {
        let mut told = Vec::new();
        for task in self.by_match.values_mut() {
            if let State::Told(result) = &task.state {
                told.push((&mut task.reports, result));
            }
        }

        let (reports, result) = told.into_iter().min_by_key(|(reports, _)| **reports)?;
        *reports += 1;
        Some(result.clone())
    }

    /// Ends the task of a reported result: the manager has recorded it, or has refused it for good.
    pub fn end(&mut self, reported: &PendingResult, state: State) {
        if let Some(task) = self.find(&reported.report.match_id, &reported.conversation_id) {
            task.state = state;
        }
    }

    /// Records that a player was told a result, or could not be told, unless there is a newer one.
    pub fn end_telling(&mut self, played: &Assignment, seat: usize, told: &GameOver) {
        if let Some(task) = self.current(played)
            && task.untold[seat].as_ref() == Some(told)
        {
            task.untold[seat] = None;
        }
    }

    /// Returns true if the manager has answered all reports, and no player must be told a result.
    pub fn are_settled(&self) -> bool {
        !self.by_match.values().any(Task::is_unsettled)
    }

    /// Forgets all tasks: the league is over.
    pub fn clear(&mut self) {
        self.by_match.clear();
    }
}
