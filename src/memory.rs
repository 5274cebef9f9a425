//! What a player remembers: which invitations it was promised and has accepted, what it chose, how its matches
//! ended (R4, R7). Only the results are on disk: `data/players/ID/history.json`.

use crate::{
    agent::Card,
    dispatch::Denial,
    files::{self, Access},
    object,
    protocol::*,
    registration::equal,
    strategies::Past,
    threads::lock,
};
use std::{
    collections::HashMap,
    io,
    path::Path,
    sync::{Arc, Mutex, OnceLock},
};

object! {
    /// The file.
    History { player_id: String, league_id: String, matches: Vec<Past>, }
}

/// How many matches we join without having heard of them from the manager.
const TRUSTED: usize = 100;

/// A match we joined.
#[derive(Debug, Clone)]
pub struct Seat {
    /// What we were invited to.
    pub invitation: GameInvitation,
    /// The match's token; the referee's calls carry it, and our replies.
    pub token: Option<String>,
    /// Our choice: made once, also when it is asked for twice at the same moment.
    pub choice: Arc<OnceLock<Parity>>,
    conversation_id: String,
    /// Announced again without a token: the next invitation may replace this one.
    replaceable: bool,
}

/// The memory, behind its lock.
pub struct Memory {
    inside: Mutex<Inside>,
    /// Whether tokens are checked (`enable_auth_tokens`).
    tokens: bool,
}

#[derive(Default)]
struct Inside {
    history: Vec<Past>,
    /// The matches that the manager announced, and the tokens that their invitations will carry.
    announced: HashMap<String, Option<String>>,
    seats: HashMap<String, Seat>,
}

impl Memory {
    /// Nothing is remembered yet.
    pub fn new(tokens: bool) -> Memory {
        Memory { inside: Mutex::default(), tokens }
    }

    /// Whether the token that came is the one it must be.
    fn same(&self, came: Option<&str>, own: Option<&str>) -> bool {
        !self.tokens || came.is_some() == own.is_some() && equal(came.unwrap_or_default(), own.unwrap_or_default())
    }

    /// Reads the history in `folder`, unless it belongs to an older registration: then it is set aside.
    pub fn begin(&self, folder: &Path, fresh: bool) -> io::Result<()> {
        if fresh {
            files::set_aside(folder)?;
        }
        let kept: Option<History> = files::read_json(&folder.join("history.json"));
        lock(&self.inside).history = kept.map(|history| history.matches).unwrap_or_default();
        Ok(())
    }

    /// Every match of ours that is over, oldest first.
    pub fn history(&self) -> Vec<Past> {
        lock(&self.inside).history.clone()
    }

    /// A round begins: the invitation to our match will carry this token. Where no token is announced, the next
    /// invitation is taken on trust.
    pub fn announced(&self, player_id: &str, announcement: RoundAnnouncement) {
        let mut inside = lock(&self.inside);
        let ours = |entry: &MatchEntry| entry.player_A_id == player_id || entry.player_B_id == player_id;
        for entry in announcement.matches.into_iter().filter(ours) {
            // Without a token: its referee makes tokens of its own, and its next invitation is the one.
            if entry.match_token.is_none()
                && let Some(seat) = inside.seats.get_mut(&entry.match_id)
            {
                seat.replaceable = true;
            }
            inside.announced.insert(entry.match_id, entry.match_token);
        }
    }

    /// Takes a seat, if the invitation is the true one. The same again changes nothing; a newer one replaces it.
    pub fn join(&self, from: &Envelope, invitation: GameInvitation) -> Result<(), Refusal> {
        let false_one = |problem: &str| Err(Refusal::field(Code::E012, "auth_token", problem));
        let (match_id, token) = (invitation.match_id.clone(), from.auth_token.clone());
        let mut inside = lock(&self.inside);
        let promised = inside.announced.get(&match_id).and_then(Option::as_deref);
        if promised.is_some_and(|promised| !self.same(token.as_deref(), Some(promised))) {
            return false_one("not the match token that the league manager announced");
        }
        // Strangers must not fill our memory with matches that nobody has announced.
        let known = inside.announced.contains_key(&match_id) || inside.seats.contains_key(&match_id);
        if !known && inside.seats.len() >= TRUSTED {
            return Err(Refusal::field(Code::E015, "match_id", "not a match that the league manager has announced"));
        }
        let again = |seat: &Seat| {
            seat.conversation_id == from.conversation_id && self.same(token.as_deref(), seat.token.as_deref())
        };
        match inside.seats.get(&match_id) {
            Some(seat) if again(seat) => return Ok(()),
            Some(seat) if promised.is_none() && !seat.replaceable => {
                return false_one("another referee has invited to this match before");
            }
            _ => {}
        }
        let (conversation_id, choice) = (from.conversation_id.clone(), Arc::default());
        inside.seats.insert(match_id, Seat { invitation, token, choice, conversation_id, replaceable: false });
        Ok(())
    }

    /// The match that a referee speaks of, if it speaks with the token and in the conversation of its invitation.
    pub fn seat(&self, from: &Envelope, match_id: &str) -> Result<Seat, Refusal> {
        let inside = lock(&self.inside);
        let unknown = || Refusal::field(Code::E015, "match_id", format!("got {match_id:?}, which we have not joined"));
        let seat = inside.seats.get(match_id).ok_or_else(unknown)?;
        if !self.same(from.auth_token.as_deref(), seat.token.as_deref()) {
            return Err(Refusal::field(Code::E012, "auth_token", "not the token of the invitation"));
        }
        if seat.conversation_id != from.conversation_id {
            return Err(Refusal::field(Code::E015, "conversation_id", "not the conversation of the invitation"));
        }
        Ok(seat.clone())
    }

    /// A match is over: on disk in `folder` when this returns.
    pub fn remember(&self, folder: &Path, card: &Card, from: &Envelope, over: GameOver) -> Result<Past, Denial> {
        let seat = self.seat(from, &over.match_id)?;
        let result = GameResult { reason: over.game_result.reason.clone().or(over.reason), ..over.game_result };
        let (match_id, opponent_id) = (over.match_id, seat.invitation.opponent_id);
        let past = Past { match_id, conversation_id: seat.conversation_id, opponent_id, result };
        let mut inside = lock(&self.inside);
        match inside.history.iter_mut().find(|known| known.match_id == past.match_id) {
            Some(known) => known.clone_from(&past),
            None => inside.history.push(past.clone()),
        }
        let (player_id, league_id) = (card.agent_id.clone(), card.league_id.clone());
        let file = History { player_id, league_id, matches: inside.history.clone() };
        files::replace_json(&folder.join("history.json"), Access::Everybody, &file)?;
        Ok(past)
    }
}
