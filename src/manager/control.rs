//! What the operator may do to a league: pause it and let it go on, remove a player and restore it, have a match played
//! again, open a new lobby. Here is decided what an order does; pure, an event or a refusal, as in `league.rs`.
//!
//! The rules in words: LEAGUE_CONTROL in `protocol.md`. Read next: `rounds.rs`, which keeps to it.

use crate::games::Outcome;
use crate::manager::league::{Event, League, Match, Recorded};
use crate::protocol::{Action, Code, Kind, LeagueControl, Progress, Refusal};
use crate::wire::{Timestamp, cut};

/// Why a removed player is not let in.
pub const REMOVED: &str = "Removed by the operator, until it is restored";

impl League {
    /// What an order does; nothing where it is so already.
    pub fn control(&self, order: &LeagueControl) -> Result<Option<Event>, Refusal> {
        let over = self.progress() == Progress::Completed;
        if over != (order.action == Action::Again) {
            let when = if over {
                "the league is over: only again is left"
            } else {
                "the league is not over yet"
            };
            return Err(Refusal::field(
                Code::E003,
                "action",
                format!("got {}, but {when}", order.action),
            ));
        }
        Ok(match order.action {
            Action::Pause => (!self.paused).then_some(Event::Paused),
            Action::Resume => self.paused.then_some(Event::Resumed),
            Action::Remove => {
                let player_id = self.named(order, Some(Kind::Player))?;
                (!self.removed.contains(&player_id)).then_some(Event::Removed { player_id })
            }
            Action::Restore => Some(Event::Restored {
                agent_id: self.named(order, None)?,
            }),
            Action::Replay => Some(Event::Voided {
                match_id: self.replayable(order)?,
            }),
            Action::Again => (!self.again).then_some(Event::Again),
        })
    }

    /// The agent that an order is about: of that kind, or of any.
    fn named(&self, order: &LeagueControl, kind: Option<Kind>) -> Result<String, Refusal> {
        let id = order
            .player_id
            .as_ref()
            .ok_or_else(|| missing("player_id"))?;
        let known = self
            .members
            .get(id)
            .filter(|member| kind.is_none_or(|kind| member.kind == kind));
        let unknown = || {
            format!(
                "got {:?}, which is nobody here who can be meant",
                cut(id, 60)
            )
        };
        known
            .map(|member| member.id.clone())
            .ok_or_else(|| Refusal::field(Code::E005, "player_id", unknown()))
    }

    /// The match that an order is about: it has a result, and both its players may play.
    fn replayable(&self, order: &LeagueControl) -> Result<String, Refusal> {
        let id = order.match_id.as_ref().ok_or_else(|| missing("match_id"))?;
        let wrong = |why: String| Refusal::field(Code::E015, "match_id", why);
        let game = self.find(id).ok_or_else(|| {
            wrong(format!(
                "got {:?}, which is no match of this league",
                cut(id, 60)
            ))
        })?;
        if game.recorded.is_none() {
            return Err(wrong(format!(
                "{id} has no result yet, so it need not be played again"
            )));
        }
        match game
            .players
            .iter()
            .find(|player| self.removed.contains(*player))
        {
            Some(player) => Err(wrong(format!(
                "{player} is removed; restore it before {id} is played again"
            ))),
            None => Ok(game.id.clone()),
        }
    }

    /// Whether the league is paused, and nothing of the open round may go on.
    pub fn rests(&self) -> bool {
        let open = self
            .open_round()
            .into_iter()
            .flat_map(|round| self.open_matches(round));
        self.paused && open.into_iter().all(|game| game.assignment.is_none())
    }

    /// The next result of a round that opens which nobody plays for, since somebody was removed. A round has opened
    /// when its matches were given to referees: who was removed later plays it to its end.
    pub fn walkover(&self, round: u32, at: Timestamp) -> Option<Event> {
        let has_opened = self
            .round(round)
            .iter()
            .any(|game| game.assignment.is_some() || game.voids > 0);
        let lacks = |game: &&Match| {
            game.players
                .iter()
                .any(|player| self.removed.contains(player))
        };
        let game = self
            .open_matches(round)
            .find(lacks)
            .filter(|_| !self.paused && !has_opened)?;
        let [a, b] = &game.players;
        let (winner, reason) = match (self.removed.contains(a), self.removed.contains(b)) {
            (true, true) => (
                None,
                "both players were removed by the operator - nobody wins".into(),
            ),
            (true, false) => (
                Some(1),
                format!("{a} was removed by the operator - {b} wins by default"),
            ),
            (false, _) => (
                Some(0),
                format!("{b} was removed by the operator - {a} wins by default"),
            ),
        };
        let outcome = Outcome {
            players: game.players.clone(),
            choices: [None, None],
            number: None,
            winner,
            reason,
        };
        let result = outcome.for_manager(&self.rules.scoring);
        let (match_id, referee_id) = (game.id.clone(), Kind::Manager.word().into());
        Some(Event::Recorded(Recorded {
            match_id,
            referee_id,
            result,
            at,
        }))
    }
}

fn missing(field: &str) -> Refusal {
    Refusal::field(Code::E003, field, "missing; the order is about one")
}
