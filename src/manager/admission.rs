//! What comes of a registration, and how the agent is told. Who is let in is decided in `registration.rs`.
//! A referee and a player are answered by messages that differ in one name.

use crate::manager::league::Member;
use crate::protocol::{Code, LeagueRegisterResponse, RefereeRegisterResponse, Verdict};

/// What the agent is from now on, or why it is not let in.
pub type Admission = Result<Member, Rejection>;

/// Why an agent is not let in.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// Which field is wrong, and what is legal.
    pub reason: String,
    /// The protocol's code, where one exists.
    pub code: Option<Code>,
}

/// The agent is not let in.
pub(super) fn reject<T>(reason: impl Into<String>, code: Option<Code>) -> Result<T, Rejection> {
    let reason = reason.into();
    Err(Rejection { reason, code })
}

/// The answer to a referee.
pub fn for_referee(admission: Admission, league_id: &str) -> RefereeRegisterResponse {
    match admission {
        Ok(member) => RefereeRegisterResponse {
            status: Verdict::Accepted,
            referee_id: Some(member.id),
            auth_token: Some(member.token),
            reason: None,
            league_id: Some(league_id.into()),
            error_code: None,
            proves_itself: Some(true), // every request of ours carries the agent's own token
        },
        Err(Rejection { reason, code }) => RefereeRegisterResponse {
            status: Verdict::Rejected,
            referee_id: None,
            auth_token: None,
            reason: Some(reason),
            league_id: None,
            error_code: code.map(|code| code.to_string()),
            proves_itself: None,
        },
    }
}

/// The answer to a player is the same, but for one name.
pub fn for_player(admission: Admission, league_id: &str) -> LeagueRegisterResponse {
    let same = for_referee(admission, league_id);
    LeagueRegisterResponse {
        status: same.status,
        player_id: same.referee_id,
        reason: same.reason,
        auth_token: same.auth_token,
        league_id: same.league_id,
        error_code: same.error_code,
        proves_itself: same.proves_itself,
    }
}
