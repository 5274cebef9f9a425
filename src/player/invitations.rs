//! Whom a player believes: which matches the manager has announced to it, and which invitations it
//! has accepted.
//!
//! The manager promises a token for each match of ours, and only the true referee knows it too. So
//! a stranger can neither lure our choice out of us nor push a false invitation over the true one.
//! Where no token was promised, the newest invitation counts. See "Tokens" in `protocol.md`. Read
//! next: `decision.rs`.

use crate::player::decision::Decision;
use crate::protocol::{Code, Envelope, GameInvitation, Refusal, RoundAnnouncement};
use crate::wire::equal;
use std::{collections::HashMap, sync::Arc};

/// How many matches we join that the manager has not announced to us: strangers must not fill our
/// memory.
const MOST_UNANNOUNCED: usize = 100;

/// A match that we have joined, as its newest invitation has it.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "fields of the invitation")]
pub struct Joined {
    pub round_id: u32,
    pub opponent_id: String,
    pub conversation_id: String,
    /// The match's token: the referee's calls carry it, and so do our replies.
    pub token: Option<String>,
    /// What we choose.
    pub decision: Arc<Decision>,
}

/// The announcements and invitations so far, by match.
pub struct Invitations {
    checks_tokens: bool,
    /// Our matches, with the tokens that their invitations must carry.
    announced: HashMap<String, Option<String>>,
    joined: HashMap<String, Joined>,
}

impl Invitations {
    /// Nothing is announced and nothing joined yet. `checks_tokens` is `enable_auth_tokens` of the
    /// configuration.
    pub fn new(checks_tokens: bool) -> Invitations {
        Invitations {
            checks_tokens,
            announced: HashMap::new(),
            joined: HashMap::new(),
        }
    }

    /// Whether the token that came is the one it must be.
    fn is_same(&self, came: &Option<String>, own: &Option<String>) -> bool {
        let [came, own] = [came, own].map(|token| token.as_deref().unwrap_or_default());
        equal(came, own) || !self.checks_tokens
    }

    /// A round begins: invitations to our matches will come. The token of our match stands beside
    /// the matches, or, as some managers have it, in the match. Other players' matches are
    /// forgotten at once.
    pub fn announce(&mut self, player_id: &str, round: RoundAnnouncement) {
        for entry in round.matches {
            if entry.player_A_id == player_id || entry.player_B_id == player_id {
                let token = round.match_token.clone().or(entry.match_token);
                self.announced.insert(entry.match_id, token);
            }
        }
    }

    /// Whether the manager has named this match as ours.
    pub fn is_announced(&self, match_id: &str) -> bool {
        self.announced.contains_key(match_id)
    }

    /// Joins a match, if the invitation is a true one. The same again changes nothing, a newer one
    /// replaces the older.
    pub fn accept(&mut self, from: &Envelope, invitation: GameInvitation) -> Result<(), Refusal> {
        let match_id = invitation.match_id;
        let token = from.auth_token.clone();
        match self.announced.get(&match_id) {
            Some(promised) if promised.is_some() && !self.is_same(&token, promised) => {
                let problem = "not the match token that the league manager announced";
                return Err(Refusal::field(Code::E012, "auth_token", problem));
            }
            None if !self.joined.contains_key(&match_id) && self.is_full() => {
                let problem = "the league manager has not announced it, and too many such matches were joined already";
                return Err(Refusal::field(Code::E015, "match_id", problem));
            }
            _ => {}
        }
        if self.joined(from, &match_id).is_err() {
            let joined = Joined {
                round_id: invitation.round_id,
                opponent_id: invitation.opponent_id,
                conversation_id: from.conversation_id.clone(),
                token,
                decision: Arc::default(),
            };
            self.joined.insert(match_id, joined);
        }
        Ok(())
    }

    /// Whether no further match is joined that was not announced.
    fn is_full(&self) -> bool {
        let ids = self.joined.keys();
        ids.filter(|id| !self.is_announced(id)).count() >= MOST_UNANNOUNCED
    }

    /// The match that a referee speaks of, if it speaks with the token and in the conversation of
    /// its invitation.
    pub fn joined(&self, from: &Envelope, match_id: &str) -> Result<&Joined, Refusal> {
        let unknown = || Refusal::got(Code::E015, "match_id", match_id, "which we have not joined");
        let joined = self.joined.get(match_id).ok_or_else(unknown)?;
        let differs = |code, field, what| {
            let problem = format!("not the {what} of the newest invitation");
            Err(Refusal::field(code, field, problem))
        };
        if !self.is_same(&from.auth_token, &joined.token) {
            return differs(Code::E012, "auth_token", "token");
        }
        if joined.conversation_id != from.conversation_id {
            return differs(Code::E015, "conversation_id", "conversation");
        }
        Ok(joined)
    }
}
