//! What the operator may do to a league: pause it and let it go on, remove a player and restore it, have a match played
//! again, open a new lobby.
//!
//! An order is decided as everything else is: it gives an event, or nothing where the league is so already, or a
//! refusal. Each comes with a sentence that says by name what was done and how it is undone. The rules in words stand
//! in `protocol.md`, under LEAGUE_CONTROL.

use crate::manager::league::{Event, League, Member};
use crate::protocol::{Action, Code, Kind, LeagueControl, Progress, Refusal};
use crate::wire::{Timestamp, cut};

/// What an order does, if anything, and the sentence that says so.
type Done = (Option<Event>, String);

impl League {
    /// Decides what an order does.
    pub fn control(&self, order: &LeagueControl, now: Timestamp) -> Result<Done, Refusal> {
        let is_over = self.progress() == Progress::Completed;
        match order.action {
            Action::Again if !is_over => self.not_now(order, "the league is not over yet"),
            Action::Pause | Action::Resume | Action::Remove if is_over => self.not_now(
                order,
                "the league is over; replay, restore and again are left",
            ),
            Action::Replay if self.again => self.not_now(order, "a new lobby is opening"),
            Action::Replay if is_over && !self.closed => self.not_now(
                order,
                "the league is just ending; say it once more in a moment",
            ),
            Action::Pause if self.paused => {
                nothing("the league is paused already; resume lets it go on")
            }
            Action::Pause => Ok((
                Some(Event::Paused),
                "no further match begins; resume lets the league go on".into(),
            )),
            Action::Resume if !self.paused => nothing("the league is not paused"),
            Action::Resume => Ok((Some(Event::Resumed), "the league goes on".into())),
            Action::Remove => self.order_remove(order),
            Action::Restore => self.order_restore(order, now),
            Action::Replay => self.order_replay(order, now),
            Action::Again if self.again => nothing("a new lobby is opening already"),
            Action::Again => Ok((
                Some(Event::Again),
                "this league is set aside, and a new lobby opens".into(),
            )),
        }
    }

    fn not_now(&self, order: &LeagueControl, why: &str) -> Result<Done, Refusal> {
        let problem = format!("got {}, but {why}", order.action);
        Err(Refusal::field(Code::E003, "action", problem))
    }

    fn order_remove(&self, order: &LeagueControl) -> Result<Done, Refusal> {
        let member = self.named(order, Some(Kind::Player))?;
        let (id, who) = (&member.id, called(member));
        if self.removed.contains(id) {
            return nothing(&format!("{who} is removed already; restore {id} undoes it"));
        }
        let event = Event::Removed {
            player_id: id.clone(),
        };
        let how = match self.started {
            true => {
                format!("{who} plays no more, and loses its matches 3-0; restore {id} undoes it")
            }
            false => format!("{who} is out of the lobby; it may register again"),
        };
        Ok((Some(event), how))
    }

    fn order_restore(&self, order: &LeagueControl, now: Timestamp) -> Result<Done, Refusal> {
        let member = self.named(order, None)?;
        let (id, who) = (&member.id, called(member));
        let event = Event::Restored {
            agent_id: id.clone(),
            at: now,
        };
        let how = match self.removed.contains(id) {
            true => format!(
                "{who} plays again in every match that has no result yet; remove {id} undoes it"
            ),
            false => format!(
                "{who} may register without its card for ten minutes, from where it was or from here"
            ),
        };
        Ok((Some(event), how))
    }

    fn order_replay(&self, order: &LeagueControl, now: Timestamp) -> Result<Done, Refusal> {
        let id = order.match_id.as_ref().ok_or_else(|| missing("match_id"))?;
        let wrong = |why: String| Err(Refusal::field(Code::E015, "match_id", why));
        let Some(game) = self.find(id) else {
            return wrong(format!(
                "got {:?}, which is no match of this league",
                cut(id, 60)
            ));
        };
        if game.recorded.is_none() {
            return wrong(format!(
                "{id} has no result yet, so it need not be played again"
            ));
        }
        let mut players = game.players.iter();
        if let Some(player) = players.find(|player| self.removed.contains(*player)) {
            return wrong(format!(
                "{player} is removed; restore it before {id} is played again"
            ));
        }
        let event = Event::Voided {
            match_id: id.clone(),
            at: now,
        };
        Ok((
            Some(event),
            format!("the result of {id} does not count any more, and {id} is played again"),
        ))
    }

    /// The agent that an order is about, by its id or by a display name that only one agent has.
    fn named(&self, order: &LeagueControl, kind: Option<Kind>) -> Result<&Member, Refusal> {
        let name = order
            .player_id
            .as_ref()
            .ok_or_else(|| missing("player_id"))?;
        let wanted = |it: &&Member| kind.is_none_or(|kind| it.kind == kind);
        let is_so_called = |it: &&Member| it.display_name.to_lowercase() == name.to_lowercase();
        if let Some(member) = self.members.get(&name.to_uppercase()).filter(wanted) {
            return Ok(member);
        }
        let members = self.members.values().filter(wanted);
        let same: Vec<&Member> = members.filter(is_so_called).collect();
        let problem = match same[..] {
            [member] => return Ok(member),
            [] => format!(
                "got {:?}, which is nobody here who can be meant",
                cut(name, 60)
            ),
            _ => {
                let ids: Vec<&str> = same.iter().map(|it| &*it.id).collect();
                format!("{} may be {}; name the id", cut(name, 60), ids.join(" or "))
            }
        };
        Err(Refusal::field(Code::E005, "player_id", problem))
    }
}

/// The league is so already.
fn nothing(words: &str) -> Result<Done, Refusal> {
    Ok((None, words.into()))
}

/// `Ada Lovelace (P06)`.
fn called(member: &Member) -> String {
    format!("{} ({})", member.display_name, member.id)
}

fn missing(field: &str) -> Refusal {
    Refusal::field(Code::E003, field, "missing; the order is about one")
}
