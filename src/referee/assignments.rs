//! The matches that were given to us: those that wait to be played, those in play, and those
//! played, whose results are in the outbox. The program keeps all of them behind one lock, whose
//! bell wakes the workers and the reporter.
//!
//! A match that is announced again is not played again: its players may have moved, and if it is
//! over, its result is reported again. Only three things have a match played anew: an announcement
//! with other match tokens; a refused report, after which we know nothing of the match; and a fault
//! of our own machine, which broke the match off. A match that is given to another referee is
//! dropped without a word. See "Rounds" in `protocol.md`. Read next: `outbox.rs`.

use crate::games::{self, Game, Outcome, scoring::Scoring};
use crate::net::letter::conversation;
use crate::net::secret::secret;
use crate::program::storage;
use crate::protocol::*;
use crate::referee::outbox::{Kept, Outbox};
use crate::wire::{Endpoint, Fault, token};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

/// A match that was given to us. What is of its players is listed by seat.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Assignment {
    pub league_id: String,
    pub round_id: u32,
    pub match_id: String,
    pub game: &'static Game,
    pub players: [String; 2],
    /// Where the players are; they may move while we play.
    pub endpoints: [String; 2],
    /// What proves us to the players.
    pub tokens: [Option<String>; 2],
    pub standings: [Option<Tally>; 2],
    /// The conversation of all messages of the match, a new one for every replay.
    pub conversation_id: String,
    /// How far the match has come.
    pub state: MatchState,
    /// How the match ended, once it is over.
    pub result: Option<GameResult>,
}

impl Assignment {
    /// A match to be played. Its game must be known, and where its players are.
    pub fn new(league_id: &str, round_id: u32, given: MatchEntry) -> Result<Assignment, Fault> {
        let Some(game) = games::named(&given.game_type) else {
            let came = given.game_type.into();
            return Err(Fault::new(&came, "a game that this referee knows").under("game_type"));
        };
        let (Some(a), Some(b)) = (given.player_A_endpoint, given.player_B_endpoint) else {
            let missing = Fault::new(&Value::Null, "where both players are");
            return Err(missing.under("player_A_endpoint, player_B_endpoint"));
        };
        Ok(Assignment {
            league_id: league_id.into(),
            round_id,
            conversation_id: conversation(&given.match_id.to_ascii_lowercase()),
            match_id: given.match_id,
            game,
            players: [given.player_A_id, given.player_B_id],
            endpoints: [a, b],
            tokens: [given.player_A_token, given.player_B_token],
            standings: [given.player_A_standings, given.player_B_standings],
            state: MatchState::WaitingForPlayers,
            result: None,
        })
    }
}

/// All of them.
#[derive(Default)]
pub struct Assignments {
    /// To be played next. One that was given away meanwhile ends when its first state is noted.
    pub queue: VecDeque<Assignment>,
    /// By id, the played ones too.
    pub known: BTreeMap<String, Assignment>,
    /// How those ended that were played.
    pub outbox: Outbox,
}

impl Assignments {
    /// We are registered: results wait in `folder`. Those of an earlier run are reported now,
    /// unless they belong to an older registration (`fresh`): then they are set aside, and every
    /// match with them.
    pub fn begin(&mut self, folder: &Path, fresh: bool) -> io::Result<()> {
        if fresh {
            storage::set_aside(folder)?;
            *self = Assignments::default();
        }
        self.outbox.open(folder)
    }

    /// Takes the matches of an announcement that are ours, and drops those that are not any more.
    pub fn announced(&mut self, round: RoundAnnouncement, endpoint: &str) -> Result<(), Refusal> {
        let mut ours = Vec::new();
        for (n, entry) in round.matches.into_iter().enumerate() {
            if Endpoint::same(&entry.referee_endpoint, endpoint) {
                let new = Assignment::new(&round.league_id, round.round_id, entry);
                ours.push(new.map_err(|fault| fault.under(&format!("matches[{n}]")))?);
            } else {
                self.give_up(&entry.match_id);
            }
        }
        ours.into_iter().for_each(|new| self.take(new));
        Ok(())
    }

    /// The match is ours. It is queued, unless we are playing it or have played it.
    pub fn take(&mut self, mut new: Assignment) {
        let match_id = &new.match_id;
        if let Some(known) = self.known.get_mut(match_id) {
            let is_same =
                |seat: usize| new.tokens[seat].is_none() || new.tokens[seat] == known.tokens[seat];
            if is_same(0) && is_same(1) {
                known.endpoints = new.endpoints;
                if known.state == MatchState::Finished {
                    self.outbox.send(match_id);
                }
                return;
            }
            self.give_up(match_id);
        } else if self.outbox.send(match_id) {
            return; // played before we were started anew, so far as we know
        }
        // A manager that makes no match tokens leaves that to us.
        for (own, id) in new.tokens.iter_mut().zip(&new.players) {
            own.get_or_insert_with(|| token(id, &secret(32)));
        }
        self.queue.push_back(new.clone());
        self.known.insert(new.match_id.clone(), new);
    }

    /// The match is not ours, or not any more: it is not played on, and its result is not reported.
    fn give_up(&mut self, match_id: &str) {
        self.known.remove(match_id);
        self.outbox.forget(match_id);
    }

    /// A match in play as it is known now; nothing, if this playing of it is not ours any more.
    pub fn ours(&mut self, playing: &Assignment) -> Option<&mut Assignment> {
        let known = self.known.get_mut(&playing.match_id)?;
        (known.conversation_id == playing.conversation_id).then_some(known)
    }

    /// Makes an outcome durable before anybody hears of it; false if the match is not ours any
    /// more.
    pub fn keep(
        &mut self,
        playing: &Assignment,
        outcome: &Outcome,
        scoring: &Scoring,
    ) -> io::Result<bool> {
        let is_ours = self.ours(playing).is_some();
        if is_ours {
            self.outbox.keep(Kept {
                conversation_id: playing.conversation_id.clone(),
                report: MatchResultReport {
                    league_id: playing.league_id.clone(),
                    round_id: playing.round_id,
                    match_id: playing.match_id.clone(),
                    game_type: playing.game.game_type.into(),
                    result: outcome.for_manager(scoring),
                },
            })?;
        }
        Ok(is_ours)
    }

    /// A match has ended: its result may be shown and reported, if there is one. False if the match
    /// was not ours any more.
    pub fn ended(&mut self, playing: &Assignment, outcome: Option<&Outcome>) -> bool {
        let Some(ours) = self.ours(playing) else {
            return false;
        };
        if let Some(outcome) = outcome {
            ours.result = Some(outcome.for_players());
            self.outbox.send(&playing.match_id);
        }
        true
    }

    /// The manager has refused a result for good: announced again, the match is played anew.
    pub fn refused(&mut self, kept: &Kept) {
        if self.outbox.has(kept) {
            self.give_up(&kept.report.match_id);
        }
    }
}
