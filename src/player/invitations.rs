//! The invitations that a player has accepted, and the tokens that the league manager has
//! announced: with them it decides which messages of a referee it accepts.
//!
//! The manager announces to each player a token for its match, which only the assigned referee
//! knows too. So another program can neither read our choice nor replace a genuine invitation. If
//! no token was announced (the referee makes its own), the newest invitation counts. See "Tokens"
//! in `protocol.md`. Read next: `manager/league.rs`, where the result of a match is recorded.

use crate::net::sync::lock;
use crate::protocol::{
    Envelope, ErrorCode, GameInvitation, GameOver, ProtocolError, RoundAnnouncement,
};
use crate::values::constant_time_eq;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Maximum number of joined matches at which we join one that the manager has not announced.
const MAX_JOINED: usize = 100;

/// A match that we have joined, as in its newest invitation.
#[derive(Debug)]
pub struct JoinedMatch {
    pub round_id: u32,
    pub opponent_id: String,
    pub conversation_id: String,
    pub token: Option<String>,
    /// The moves that we have chosen.
    pub moves: Moves,
}

/// The moves of a match, by number. The lock is held while a move is chosen, so that the same call
/// again waits for the same move. No other match and no other message needs it.
#[derive(Debug, Default)]
pub struct Moves(Mutex<HashMap<u32, String>>);

impl Moves {
    /// Returns the move of that number. It is chosen only once for an invitation: the same call again
    /// waits for the same move. If `choose` panics, it is called again the next time.
    pub fn get_or_choose(&self, number: u32, choose: impl FnOnce() -> String) -> String {
        let mut chosen = lock(&self.0);
        chosen.entry(number).or_insert_with(choose).clone()
    }
}

/// The announcements and invitations so far.
pub struct Invitations {
    checks_tokens: bool,
    /// The tokens that the manager has announced, by match.
    announced: HashMap<String, Option<String>>,
    joined: HashMap<String, Arc<JoinedMatch>>,
}

impl Invitations {
    /// `checks_tokens` is `enable_auth_tokens` of the configuration.
    pub fn new(checks_tokens: bool) -> Invitations {
        Invitations {
            checks_tokens,
            announced: HashMap::new(),
            joined: HashMap::new(),
        }
    }

    /// Removes everything of an older league.
    pub fn clear(&mut self) {
        self.announced.clear();
        self.joined.clear();
    }

    /// Stores the tokens of our matches in a round. Some managers put the token into the match.
    pub fn announce(&mut self, player_id: &str, round: &RoundAnnouncement) {
        for entry in &round.matches {
            if entry.player_A_id == player_id || entry.player_B_id == player_id {
                let token = round.match_token.as_ref().or(entry.match_token.as_ref());
                self.announced
                    .insert(entry.match_id.clone(), token.cloned());
            }
        }
    }

    /// Stores the token of a match that the manager has named.
    pub fn expect(&mut self, match_id: &str, token: &str) {
        self.announced.insert(match_id.into(), Some(token.into()));
    }

    /// Returns false if the manager has announced another token for this match.
    pub fn expects(&self, match_id: &str, token: Option<&str>) -> bool {
        match self.announced.get(match_id) {
            Some(Some(announced)) => self.is_token(token, announced),
            _ => true,
        }
    }

    /// Returns true if the manager has announced this match.
    pub fn is_announced(&self, match_id: &str) -> bool {
        self.announced.contains_key(match_id)
    }

    /// Returns true if the manager has announced a match with this token, and we have not joined it
    /// with this token: its invitation is lost, or we were restarted since.
    pub fn awaits_invitation(&self, match_id: &str, token: Option<&str>) -> bool {
        let is_announced = matches!(self.announced.get(match_id), Some(Some(_)));
        let joined = self.joined.get(match_id);
        let has_joined = joined.is_some_and(|joined| joined.token.as_deref() == token);
        is_announced && !has_joined && self.expects(match_id, token)
    }

    /// Joins a match that has ended without us, so that its result is not refused.
    pub fn join_ended(&mut self, own_id: &str, envelope: &Envelope, over: &GameOver) {
        let mut players = over.game_result.choices.iter().map(|(id, _)| id);
        let opponent_id = players.find(|id| *id != own_id);
        if let (Some(round_id), Some(opponent_id)) = (envelope.round_id, opponent_id)
            && self.awaits_invitation(&over.match_id, envelope.auth_token.as_deref())
        {
            self.add(envelope, &over.match_id, round_id, opponent_id);
        }
    }

    /// Returns true if the manager has announced this token for one of our matches.
    pub fn is_known_token(&self, token: Option<&str>) -> bool {
        let mut announced = self.announced.values().flatten();
        announced.any(|known| self.is_token(token, known))
    }

    /// Joins a match. A newer invitation replaces an older one; the same one again keeps our moves. An
    /// announcement is demanded where the manager proves itself.
    pub fn join(
        &mut self,
        envelope: &Envelope,
        invitation: &GameInvitation,
        demands_announcement: bool,
    ) -> Result<(), ProtocolError> {
        let match_id = &invitation.match_id;

        // The invitation must carry the announced token.
        if !self.expects(match_id, envelope.auth_token.as_deref()) {
            return Err(ProtocolError::wrong_token(
                "not the match token that the league manager announced",
            ));
        }

        // Other programs must not ask for our choices, nor fill our memory.
        let is_excess = self.joined.len() >= MAX_JOINED && !self.joined.contains_key(match_id);
        if !self.is_announced(match_id) && (demands_announcement || is_excess) {
            return Err(ProtocolError::mismatch(
                "match_id",
                "the league manager has not announced this match to us",
            ));
        }

        if self.find(envelope, match_id).is_err() {
            let opponent_id = &invitation.opponent_id;
            self.add(envelope, match_id, invitation.round_id, opponent_id);
        }
        Ok(())
    }

    fn add(&mut self, envelope: &Envelope, match_id: &str, round_id: u32, opponent_id: &str) {
        let joined = JoinedMatch {
            round_id,
            opponent_id: opponent_id.into(),
            conversation_id: envelope.conversation_id.clone(),
            token: envelope.auth_token.clone(),
            moves: Moves::default(),
        };
        self.joined.insert(match_id.into(), Arc::new(joined));
    }

    /// Returns the match of a referee's message, which must carry the token and the conversation of
    /// the newest invitation.
    pub fn find(
        &self,
        envelope: &Envelope,
        match_id: &str,
    ) -> Result<Arc<JoinedMatch>, ProtocolError> {
        let Some(joined) = self.joined.get(match_id) else {
            return Err(ProtocolError::unexpected_value(
                ErrorCode::MatchMismatch,
                "match_id",
                match_id,
                "which we have not joined",
            ));
        };

        let token = joined.token.as_deref().unwrap_or_default();
        if !self.is_token(envelope.auth_token.as_deref(), token) {
            return Err(ProtocolError::wrong_token(
                "not the token of the newest invitation",
            ));
        }

        if joined.conversation_id != envelope.conversation_id {
            let problem = "not the conversation of the newest invitation";
            return Err(ProtocolError::mismatch("conversation_id", problem));
        }

        Ok(Arc::clone(joined))
    }

    /// Returns true if a token is the expected one, or if tokens are not checked.
    fn is_token(&self, received: Option<&str>, expected: &str) -> bool {
        !self.checks_tokens || constant_time_eq(received.unwrap_or_default(), expected)
    }
}
