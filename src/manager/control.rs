//! What the operator may do to a league: pause it and let it go on, remove a player and restore it,
//! have a match played again, open a new lobby.
//!
//! An order is decided as everything else is: it gives an event, or nothing where the league is so
//! already, or a refusal. Each comes with a sentence that says by name what was done and how it is
//! undone. The rules in words stand in `protocol.md`, under LEAGUE_CONTROL.

use crate::manager::league::{Event, League, Member};
use crate::protocol::{Action, Code, Kind, LeagueControl, Refusal};
use crate::wire::{Timestamp, cut};

/// What an order does, if anything, and the sentence that says so.
type Done = (Option<Event>, String);

impl League {
    /// Decides what an order does.
    pub fn control(&self, order: &LeagueControl, now: Timestamp) -> Result<Done, Refusal> {
        let not_now = |why: &str| {
            let problem = format!("got {}, but {why}", order.action);
            Err(Refusal::field(Code::E003, "action", problem))
        };
        match order.action {
            Action::Again if !self.is_over() => not_now("the league is not over yet"),
            Action::Pause | Action::Resume | Action::Remove if self.is_over() => {
                not_now("the league is over; replay, restore and again are left")
            }
            Action::Replay if self.again => not_now("a new lobby is opening"),
            Action::Replay if self.is_over() && !self.closed => {
                not_now("the league is just ending; say it once more in a moment")
            }
            Action::Pause => done(
                (!self.paused).then_some(Event::Paused),
                "no further match begins; resume lets the league go on",
            ),
            Action::Resume => done(self.paused.then_some(Event::Resumed), "the league goes on"),
            Action::Remove => self.order_remove(order),
            Action::Restore => self.order_restore(order, now),
            Action::Replay => self.order_replay(order, now),
            Action::Again => done(
                (!self.again).then_some(Event::Again),
                "this league is set aside, and a new lobby opens",
            ),
        }
    }

    fn order_remove(&self, order: &LeagueControl) -> Result<Done, Refusal> {
        let member = self.named(order, |it| it.kind == Kind::Player)?;
        let (id, who) = (&member.id, called(member));
        let words = match self.started {
            true => {
                format!("{who} plays no more, and loses its matches 3-0; restore {id} undoes it")
            }
            false => format!("{who} is out of the lobby; started again, it comes back"),
        };
        let player_id = id.clone();
        let is_new = !self.removed.contains(id);
        done(is_new.then_some(Event::Removed { player_id }), words)
    }

    fn order_restore(&self, order: &LeagueControl, at: Timestamp) -> Result<Done, Refusal> {
        let member = self.named(order, |_| true)?;
        let (id, who) = (&member.id, called(member));
        let words = match self.removed.contains(id) {
            true => format!(
                "{who} plays again in every match that has no result yet; remove {id} undoes it"
            ),
            false => format!(
                "{who} may register without its card for ten minutes, from where it was or from here"
            ),
        };
        let agent_id = id.clone();
        done(Some(Event::Restored { agent_id, at }), words)
    }

    fn order_replay(&self, order: &LeagueControl, at: Timestamp) -> Result<Done, Refusal> {
        let id = order.match_id.as_ref().ok_or_else(|| missing("match_id"))?;
        let wrong = |why: String| Err(Refusal::field(Code::E015, "match_id", why));
        let Some(game) = self.find(id) else {
            let came = cut(id, 60);
            return wrong(format!("got {came:?}, which is no match of this league"));
        };
        if game.recorded.is_none() {
            let why = format!("{id} has no result yet, so it need not be played again");
            return wrong(why);
        }
        let mut players = game.players.iter();
        if let Some(player) = players.find(|player| self.removed.contains(*player)) {
            let why = format!("{player} is removed; restore it before {id} is played again");
            return wrong(why);
        }
        let words = format!("the result of {id} does not count any more, and {id} is played again");
        let match_id = id.clone();
        done(Some(Event::Voided { match_id, at }), words)
    }

    /// The agent that an order is about, by its id or by a display name that only one agent of
    /// those `wanted` has.
    fn named(
        &self,
        order: &LeagueControl,
        wanted: impl Fn(&Member) -> bool,
    ) -> Result<&Member, Refusal> {
        let name = order.player_id.as_ref();
        let name = name.ok_or_else(|| missing("player_id"))?;
        let members = self.members.values().filter(|it| wanted(it));
        let mut same: Vec<&Member> = members.collect();
        if let Some(member) = same.iter().find(|it| it.id == name.to_uppercase()) {
            return Ok(member);
        }
        same.retain(|it| it.display_name.to_lowercase() == name.to_lowercase());
        let came = cut(name, 60);
        let problem = match same[..] {
            [member] => return Ok(member),
            [] => format!("got {came:?}, which is nobody here who can be meant"),
            _ => {
                let ids: Vec<&str> = same.iter().map(|it| &*it.id).collect();
                format!("{came} may be {}; name the id", ids.join(" or "))
            }
        };
        Err(Refusal::field(Code::E005, "player_id", problem))
    }
}

/// What happens, if the league is not so already, and how the league is now in words.
fn done(event: Option<Event>, words: impl Into<String>) -> Result<Done, Refusal> {
    Ok((event, words.into()))
}

/// `Ada Lovelace (P06)`.
pub fn called(member: &Member) -> String {
    format!("{} ({})", member.display_name, member.id)
}

fn missing(field: &str) -> Refusal {
    Refusal::field(Code::E003, field, "missing; the order is about one")
}
