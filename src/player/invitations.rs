//! Whom a player believes: which matches the manager announced to it, and which invitations it accepted.
//!
//! The manager promises a token for each of our matches, and only the true referee knows it too: so a stranger can
//! neither lure our choice out of us nor push a false invitation over the true one. Where no token was promised, the
//! newest invitation counts. See "Tokens" in `protocol.md`. Read next: `decision.rs`.

use crate::player::decision::Decision;
use crate::protocol::{Code, Envelope, GameInvitation, MatchEntry, Refusal, RoundAnnouncement};
use crate::wire::equal;
use std::{collections::HashMap, sync::Arc};

/// How many matches we join that the manager has not announced: strangers must not fill our memory.
const UNANNOUNCED: usize = 100;

/// A match that we have joined, as its newest invitation has it.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "fields of the invitation")]
pub struct Joined {
    pub round_id: u32,
    pub opponent_id: String,
    pub conversation_id: String,
    /// The match's token; the referee's calls carry it, and our replies.
    pub token: Option<String>,
    /// What we choose.
    pub decision: Arc<Decision>,
}

/// The announcements and invitations so far.
pub struct Invitations {
    checks_tokens: bool,
    /// Our matches, and the tokens that their invitations must carry.
    announced: HashMap<String, Option<String>>,
    joined: HashMap<String, Joined>,
}

impl Invitations {
    /// None yet. Tokens are checked, or not (`enable_auth_tokens`).
    pub fn new(checks_tokens: bool) -> Invitations {
        Invitations {
            checks_tokens,
            announced: HashMap::new(),
            joined: HashMap::new(),
        }
    }

    /// Whether the token that came is the one it must be.
    fn is_same(&self, came: Option<&str>, own: Option<&str>) -> bool {
        let same = match (came, own) {
            (Some(came), Some(own)) => equal(came, own),
            (came, own) => came == own,
        };
        same || !self.checks_tokens
    }

    /// A round begins: these invitations will come, and perhaps with these tokens.
    pub fn announce(&mut self, player_id: &str, round: RoundAnnouncement) {
        let ours =
            |entry: &MatchEntry| entry.player_A_id == player_id || entry.player_B_id == player_id;
        let entries = round.matches.into_iter().filter(ours);
        self.announced
            .extend(entries.map(|entry| (entry.match_id, round.match_token.clone())));
    }

    /// Whether the manager has named this match as ours.
    pub fn is_announced(&self, match_id: &str) -> bool {
        self.announced.contains_key(match_id)
    }

    /// Joins a match, if the invitation is a true one. The same again changes nothing, a newer one replaces the older.
    pub fn accept(&mut self, from: &Envelope, invitation: GameInvitation) -> Result<(), Refusal> {
        let GameInvitation {
            match_id,
            round_id,
            opponent_id,
            ..
        } = invitation;
        let token = from.auth_token.clone();
        match self.announced.get(&match_id) {
            Some(Some(promised)) if !self.is_same(token.as_deref(), Some(promised)) => {
                let problem = "not the match token that the league manager announced";
                return Err(Refusal::field(Code::E012, "auth_token", problem));
            }
            None if !self.joined.contains_key(&match_id) && self.unannounced() >= UNANNOUNCED => {
                let problem = "the league manager has not announced it, and too many such matches were joined already";
                return Err(Refusal::field(Code::E015, "match_id", problem));
            }
            _ => {}
        }
        if self.joined(from, &match_id).is_err() {
            let (conversation_id, decision) = (from.conversation_id.clone(), Arc::default());
            self.joined.insert(
                match_id,
                Joined {
                    round_id,
                    opponent_id,
                    conversation_id,
                    token,
                    decision,
                },
            );
        }
        Ok(())
    }

    fn unannounced(&self) -> usize {
        self.joined
            .keys()
            .filter(|match_id| !self.is_announced(match_id))
            .count()
    }

    /// The match that a referee speaks of, if it speaks with the token and in the conversation of its invitation.
    pub fn joined(&self, from: &Envelope, match_id: &str) -> Result<&Joined, Refusal> {
        let unknown = || Refusal::got(Code::E015, "match_id", match_id, "which we have not joined");
        let joined = self.joined.get(match_id).ok_or_else(unknown)?;
        if !self.is_same(from.auth_token.as_deref(), joined.token.as_deref()) {
            return Err(Refusal::field(
                Code::E012,
                "auth_token",
                "not the token of the newest invitation",
            ));
        }
        if joined.conversation_id != from.conversation_id {
            return Err(Refusal::field(
                Code::E015,
                "conversation_id",
                "not the conversation of the newest invitation",
            ));
        }
        Ok(joined)
    }
}
