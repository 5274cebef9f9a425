//! The matches that the manager has assigned to this referee, and the outbox with their results.
//! The program keeps them behind one lock, which also wakes its threads.
//!
//! A match that is announced again is not played again: its players may have moved, and if it is
//! over, its result is reported again. It is played again only if other match tokens are announced
//! while it is in play or after a technical loss, if the manager has refused its result, or if our
//! own machine failed. A match that is given to another referee is removed. Read next: `outbox.rs`.

use super::outbox::{OpenMatch, Outbox, PendingResult};
use crate::games::{self, Game, Move, result_status};
use crate::json::FieldError;
use crate::net::client::new_conversation;
use crate::net::sync::secret;
use crate::program::storage;
use crate::protocol::{
    GameOver, MatchEntry, MatchResult, MatchResultReport, MatchState, ProtocolError, Record,
    ResultStatus, RoundAnnouncement,
};
use crate::values::{Endpoint, token};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A match that was assigned to us. The arrays have player A first.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names say it")]
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
    /// The moves with which the match goes on.
    pub moves: Vec<Move>,
    pub state: MatchState,
    pub is_in_play: bool,
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
            moves: Vec::new(),
            state: MatchState::WaitingForPlayers,
            is_in_play: false,
        })
    }

    /// Returns true unless the manager has announced other tokens than these.
    fn fits(&self, tokens: &[String; 2]) -> bool {
        let mut pairs = self.announced_tokens.iter().zip(tokens);
        pairs.all(|(announced, token)| announced.as_ref().is_none_or(|known| known == token))
    }

    /// Returns true if a result is a technical loss that was decided under other tokens: its players
    /// may have refused them rightly, so the match is played again.
    fn makes_void(&self, stored: &PendingResult) -> bool {
        let is_loss = result_status(&stored.report.result) == ResultStatus::TechnicalLoss;
        is_loss
            && stored
                .tokens
                .as_ref()
                .is_some_and(|tokens| !self.fits(tokens))
    }

    /// Goes on with the moves of a match, unless the manager has announced other tokens since.
    fn resume(&mut self, open: OpenMatch) {
        if !self.fits(&open.tokens) {
            return;
        }
        self.conversation_id = open.conversation_id;
        self.tokens = open.tokens;
        self.moves = open.moves;
    }

    /// Returns true if the result of the match is saved.
    fn is_decided(&self) -> bool {
        matches!(self.state, MatchState::DrawingNumber | MatchState::Finished)
    }
}

/// All matches that were assigned to us.
#[derive(Default)]
pub struct Assignments {
    /// Those that wait or are in play, by id.
    pub matches: BTreeMap<String, Assignment>,
    /// The results of those that are over.
    pub outbox: Outbox,
    /// The results that players must still be told, by conversation and seat.
    pub untold: BTreeMap<(String, usize), GameOver>,
}

impl Assignments {
    /// Opens the outbox after a registration. If it is a new one, older data is archived first.
    pub fn open(&mut self, folder: &Path, is_new: bool) -> io::Result<()> {
        if is_new {
            *self = Assignments::default(); // it closes its file, so that Windows moves the folder
            storage::archive(folder)?;
        }

        self.outbox.open(folder)
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
            } else if let Some(known) = self.matches.get(&entry.match_id)
                && !known.is_decided()
            {
                self.matches.remove(&entry.match_id);
            }
        }

        for assignment in accepted {
            self.accept(assignment);
        }
        Ok(())
    }

    /// Adds a match, unless it is known. If it is over, its result is reported again.
    pub fn accept(&mut self, mut new: Assignment) {
        let stored = self.outbox.get(&new.match_id);
        if stored.is_some_and(|stored| new.makes_void(stored)) {
            self.remove(&new.match_id);
        }

        match self.matches.get_mut(&new.match_id) {
            Some(known) if known.announced_tokens == new.announced_tokens || known.is_decided() => {
                known.endpoints = new.endpoints;
                if known.state == MatchState::Finished {
                    self.outbox.enqueue(&new.match_id);
                }
                return;
            }
            None if self.outbox.enqueue(&new.match_id) => return,
            _ => {}
        }

        // It is new, or is played again, or goes on after a restart with the same tokens.
        if let Some(open) = self.outbox.take_open_match(&new.match_id) {
            new.resume(open);
        }
        self.remove(&new.match_id);
        self.matches.insert(new.match_id.clone(), new);
    }

    /// Removes a match and its result.
    fn remove(&mut self, match_id: &str) {
        self.matches.remove(match_id);
        self.outbox.remove(match_id);
    }

    /// Returns a match that waits to be played, and marks it as in play.
    pub fn start_next(&mut self) -> Option<Assignment> {
        let next = self.matches.values_mut().find(|next| !next.is_in_play)?;
        next.is_in_play = true;
        Some(next.clone())
    }

    /// Returns a match in play as it is now, unless it is not ours any more.
    pub fn current(&mut self, played: &Assignment) -> Option<&mut Assignment> {
        let current = self.matches.get_mut(&played.match_id)?;
        (current.conversation_id == played.conversation_id).then_some(current)
    }

    /// Saves the moves of a match in play. Returns false if the match is not ours any more.
    pub fn save_moves(&mut self, played: &Assignment, moves: &[Move]) -> io::Result<bool> {
        let Some(current) = self.current(played) else {
            return Ok(false);
        };

        current.moves = moves.to_vec();

        self.outbox.save_moves(&OpenMatch {
            match_id: played.match_id.clone(),
            conversation_id: played.conversation_id.clone(),
            tokens: played.tokens.clone(),
            moves: moves.to_vec(),
        })?;
        Ok(true)
    }

    /// Saves the result of a match before the players are told. Returns false if the match is not
    /// ours any more.
    pub fn save(&mut self, played: &Assignment, result: MatchResult) -> io::Result<bool> {
        if self.current(played).is_none() {
            return Ok(false);
        }

        self.outbox.save(PendingResult {
            conversation_id: played.conversation_id.clone(),
            tokens: Some(played.tokens.clone()),
            report: MatchResultReport {
                league_id: played.league_id.clone(),
                round_id: played.round_id,
                match_id: played.match_id.clone(),
                game_type: played.game.game_type.into(),
                result,
            },
        })?;
        if let Some(current) = self.current(played) {
            current.state = MatchState::DrawingNumber;
        }
        Ok(true)
    }

    /// Marks a match as waiting again, which could not be played.
    pub fn mark_waiting(&mut self, played: &Assignment) {
        if let Some(current) = self.current(played) {
            current.is_in_play = false;
        }
    }

    /// Ends a match whose result was saved: the result is reported now. The match is kept until the
    /// manager has answered, since the players may have to be told another result.
    pub fn finish(&mut self, played: &Assignment) {
        if let Some(current) = self.current(played) {
            current.state = MatchState::Finished;
            self.outbox.enqueue(&played.match_id);
        }
    }

    /// Returns the match of a result. There is none if the referee has been restarted since.
    pub fn find_finished(&self, result: &PendingResult) -> Option<Assignment> {
        let finished = self.matches.get(&result.report.match_id)?;
        (finished.conversation_id == result.conversation_id).then(|| finished.clone())
    }

    /// Removes a result that a player was told, or could not be told, unless there is a newer one.
    pub fn remove_told(&mut self, key: &(String, usize), told: &GameOver) {
        if self.untold.get(key) == Some(told) {
            self.untold.remove(key);
        }
    }

    /// Returns true if the manager has answered all reports, and no player must be told a result.
    pub fn is_settled(&self) -> bool {
        let mut matches = self.matches.values();
        self.untold.is_empty() && !matches.any(Assignment::is_decided)
    }

    /// Removes a match whose result the manager has recorded.
    pub fn remove_reported(&mut self, result: &PendingResult) {
        if let Some(finished) = self.find_finished(result) {
            self.matches.remove(&finished.match_id);
        }
    }

    /// Removes a match whose result the manager has refused. If it is announced again, it is played
    /// again.
    pub fn refuse(&mut self, result: &PendingResult) {
        let match_id = &result.report.match_id;
        if self.outbox.get(match_id) == Some(result) {
            self.remove(match_id);
        }
    }
}
