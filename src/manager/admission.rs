//! What comes of a registration, and how the agent is told.

use crate::manager::league::{Event, Member};
use crate::protocol::{Code, LeagueRegisterResponse, RefereeRegisterResponse, Verdict};

/// What comes of a registration.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// The agent is in.
    Accepted {
        /// What it is from now on.
        member: Box<Member>,
        /// Whether that is new, and goes into the journal.
        is_new: bool,
    },
    /// The agent is not let in.
    Rejected {
        /// Why: which field, and what is legal.
        reason: String,
        /// The protocol's code, where one exists.
        code: Option<Code>,
    },
}

impl Admission {
    pub(super) fn accepted(member: Member) -> Admission {
        Admission::Accepted {
            member: Box::new(member),
            is_new: true,
        }
    }

    pub(super) fn unchanged(member: &Member) -> Admission {
        Admission::Accepted {
            member: Box::new(member.clone()),
            is_new: false,
        }
    }

    pub(super) fn rejected(reason: impl Into<String>, code: Option<Code>) -> Admission {
        let reason = reason.into();
        Admission::Rejected { reason, code }
    }

    /// What goes into the journal.
    pub fn event(&self) -> Option<Event> {
        match self {
            Admission::Accepted { member, is_new } if *is_new => {
                Some(Event::Registered(Member::clone(member)))
            }
            _ => None,
        }
    }

    /// The answer to a referee.
    pub fn for_referee(self, league_id: &str) -> RefereeRegisterResponse {
        match self {
            Admission::Accepted { member, .. } => RefereeRegisterResponse {
                status: Verdict::Accepted,
                referee_id: Some(member.id),
                auth_token: Some(member.token),
                reason: None,
                league_id: Some(league_id.into()),
                error_code: None,
                proves_itself: Some(true), // every request of ours carries the agent's own token
            },
            Admission::Rejected { reason, code } => RefereeRegisterResponse {
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
    pub fn for_player(self, league_id: &str) -> LeagueRegisterResponse {
        let same = self.for_referee(league_id);
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
}
