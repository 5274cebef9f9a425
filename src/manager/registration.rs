//! Who may register, with which id and token; and who sent a request.
//!
//! `League::register` decides a registration. It first checks what the agent says of itself. Then it
//! asks who the agent is: a member that shows its token or its registration key, an agent at a
//! member's endpoint, or a new one. `answer` makes the reply. The rules in words are in
//! `protocol.md`, under "Registration" and "Registering again".

use super::league::{Event, League, Member};
use crate::json::deserialize;
use crate::net::agent::Request;
use crate::program::config::AgentEntry;
use crate::protocol::{
    AgentKind, AgentMeta, Envelope, ErrorCode, LeagueRegisterResponse, Message, ProtocolError,
    RefereeRegisterResponse, RegistrationStatus,
};
use crate::values::{
    Endpoint, Timestamp, check_display_name, check_version, constant_time_eq, token, truncate,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum length of a contact endpoint, in characters: announcements carry those of all players.
const LONGEST_ENDPOINT: usize = 200;
/// How long a restored player may register without its token.
const READMISSION: Duration = Duration::from_secs(10 * 60);

/// A registration.
#[derive(Debug)]
pub struct Application<'a> {
    /// As what the agent registers.
    pub kind: AgentKind,
    /// What it says of itself.
    pub meta: &'a AgentMeta,
    /// Its envelope, and from where it came.
    pub request: &'a Request,
    /// True if it came from this machine, or with the operator's token.
    pub trusted: bool,
    /// True if no live referee is left, so that one may register after the start.
    pub referee_wanted: bool,
    /// The ids of the members whose last call failed.
    pub unreachable: &'a BTreeSet<String>,
    /// The random part of a new token.
    pub secret: &'a str,
    /// When it came.
    pub now: Timestamp,
}

/// Why an agent is rejected.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// Which field is wrong, and what is legal.
    pub reason: String,
    /// The protocol's code, if it has one.
    pub code: Option<ErrorCode>,
}

impl League {
    /// Accepts or rejects a registration. There is no event if the member stays as it was.
    pub fn register(&self, from: &Application) -> (Option<Event>, Result<Member, Rejection>) {
        let decision = self.decide_registration(from);
        let event = match &decision {
            Ok(member) if self.members.get(&member.id) != Some(member) => {
                Some(Event::Registered(member.clone()))
            }
            _ => None,
        };
        (event, decision)
    }

    fn decide_registration(&self, from: &Application) -> Result<Member, Rejection> {
        let own = self.proven_member(from);
        let neighbor = self.members.values().find(|member| is_at(member, from));
        self.check(from, own, neighbor)?;

        // A member proves that it is one, or was restored: at any time.
        if let Some(known) = own.or_else(|| self.restored_player(from)) {
            return match neighbor {
                Some(other) if other.id != known.id => Err(unreachable(from.kind, &taken(other))),
                _ if own.is_some() => Ok(self.renew(known, from)),
                _ => Ok(self.new_member(&known.id, from)),
            };
        }

        // After the start only a referee may register, and only while no live one is left.
        let is_wanted = from.kind == AgentKind::Referee && from.referee_wanted;
        if self.started && !(is_wanted && self.open_round().is_some()) {
            return Err(late(from.kind, neighbor));
        }

        // A member without a proof: it has a new token once a second at most.
        if let Some(member) = neighbor {
            if member.kind != from.kind || member.peer != from.request.peer {
                return Err(unreachable(from.kind, &taken(member)));
            }
            if from.now <= member.registered_at {
                return Ok(member.clone());
            }
            return Ok(self.new_member(&member.id, from));
        }

        let max_players = self.config.league.participants.max_players;
        let players = self.members(AgentKind::Player).len();
        if from.kind == AgentKind::Player && players >= max_players as usize {
            let reason = format!("Maximum players reached: {max_players} may register");
            return Err(reject(reason));
        }
        Ok(self.new_member(&self.free_id(from), from))
    }

    /// Checks that an agent may register at all, and that what it says of itself is legal.
    fn check(
        &self,
        from: &Application,
        own: Option<&Member>,
        neighbor: Option<&Member>,
    ) -> Result<(), Rejection> {
        if from.kind == AgentKind::Referee && !from.trusted && own.is_none() {
            let who = "referees register from the manager's machine or with the operator token";
            return Err(reject(format!("Not permitted: {who}")));
        }
        check_meta(from.meta, from.kind, &self.config.league.game_type)?;
        check_endpoint(from)?;

        if let Some(listed) = self.listed_agent(from)
            && listed.active == Some(false)
        {
            let why = format!("the agents configuration lists {} as inactive", listed.id);
            return Err(reject(format!("Not active: {why}")));
        }
        if let Some(member) = own.or(neighbor)
            && self.removed.contains(&member.id)
        {
            let why = "Removed by the operator, until the operator restores it";
            return Err(reject(format!("{why}: {}", member.id)));
        }
        Ok(())
    }

    /// Returns the member whose token or registration key was sent.
    fn proven_member(&self, from: &Application) -> Option<&Member> {
        let (token, key) = (
            &from.request.envelope.auth_token,
            &from.meta.registration_key,
        );
        let mut members = self.members.values();
        members.find(|member| {
            let own_key = member.meta.registration_key.as_deref().unwrap_or_default();
            member.kind == from.kind && (is_secret(&member.token, token) || is_secret(own_key, key))
        })
    }

    /// Returns the player that the operator restored a short while ago, if it asks with its id or at
    /// its endpoint, from the address it had or from this machine. A player that still answers is
    /// not replaced.
    fn restored_player(&self, from: &Application) -> Option<&Member> {
        let Request { envelope, peer } = from.request;
        self.members.values().find(|member| {
            let restored_at = self.restored.get(&member.id);
            restored_at.is_some_and(|at| from.now <= at.plus(READMISSION))
                && (envelope.sender == member.signature() || is_at(member, from))
                && (*peer == member.peer || peer.is_loopback())
                && from.unreachable.contains(&member.id)
        })
    }

    /// Returns the member with what it says of itself now, its old token, and its old registration
    /// key if it sends none. If nothing is new and more than half of its lifetime is left, nothing
    /// changes: registering again does not make the journal grow.
    fn renew(&self, own: &Member, from: &Application) -> Member {
        let mut meta = from.meta.clone();
        if meta
            .registration_key
            .as_deref()
            .unwrap_or_default()
            .is_empty()
        {
            meta.registration_key = own.meta.registration_key.clone();
        }

        let half = self.config.token_lifetime() / 2;
        if own.meta == meta && own.expires >= from.now.plus(half) {
            return own.clone();
        }
        Member {
            meta,
            token: own.token.clone(),
            ..self.new_member(&own.id, from)
        }
    }

    /// Returns a member with this id and a new token.
    fn new_member(&self, id: &str, from: &Application) -> Member {
        Member {
            kind: from.kind,
            id: id.into(),
            meta: from.meta.clone(),
            token: token(id, from.secret),
            expires: from.now.plus(self.config.token_lifetime()),
            peer: from.request.peer,
            registered_at: from.now,
        }
    }

    /// Returns the id that a new agent asks for, if it is free; else that which the configuration
    /// lists for its endpoint; else the lowest free one.
    fn free_id(&self, from: &Application) -> String {
        let sender = &from.request.envelope.sender;
        let asked = sender.strip_prefix(&format!("{}:", from.kind));
        let asked = asked.filter(|id| from.kind.is_valid_id(id));
        let listed = self.listed_agent(from).map(|agent| agent.id.as_str());
        for id in asked.into_iter().chain(listed) {
            if !self.members.contains_key(id) {
                return id.into();
            }
        }

        let mut number = 1;
        while self.members.contains_key(&from.kind.format_id(number)) {
            number += 1;
        }
        from.kind.format_id(number)
    }

    /// Returns the agent that the configuration lists for that endpoint.
    fn listed_agent(&self, from: &Application) -> Option<&AgentEntry> {
        let mut listed = self.config.listed(from.kind).iter();
        listed.find(|agent| Endpoint::is_same_address(&agent.endpoint, &from.meta.contact_endpoint))
    }

    /// Returns the member that has this token, expired or not.
    pub fn token_owner(&self, token: &str) -> Option<&Member> {
        let mut members = self.members.values();
        members.find(|member| constant_time_eq(&member.token, token))
    }

    /// Returns the member that sent a request. The token says which one; `sender` must not name
    /// another.
    pub fn authenticate(
        &self,
        envelope: &Envelope,
        now: Timestamp,
    ) -> Result<&Member, ProtocolError> {
        let sender = &envelope.sender;
        let mut members = self.members.values();
        let named = members.find(|member| member.signature() == *sender);
        if !self.config.system.security.enable_auth_tokens {
            return named.ok_or_else(|| not_registered(sender));
        }

        let Some(token) = &envelope.auth_token else {
            let problem = "missing; it came with the registration";
            return Err(ProtocolError::field(
                ErrorCode::TokenMissing,
                "auth_token",
                problem,
            ));
        };
        let problem = match (self.token_owner(token), named) {
            (None, None) => return Err(not_registered(sender)),
            (None, Some(named)) => format!("not the token of {}", named.id),
            (Some(owner), Some(named)) if owner.id != named.id => {
                format!(
                    "this is the token of {}, not of {}",
                    owner.id,
                    truncate(sender, 60)
                )
            }
            (Some(owner), _) if owner.expires <= now => {
                let hint = "register again with it, and it is good again";
                format!("expired at {}; {hint}", owner.expires)
            }
            (Some(owner), _) => return Ok(owner),
        };
        let error = ProtocolError::field(ErrorCode::TokenInvalid, "auth_token", problem);
        Err(error
            .with_context("provided_token", truncate(token, 60))
            .with_context("expected_format", "tok-{agent_id}-{hash}"))
    }
}

fn not_registered(sender: &str) -> ProtocolError {
    let code = if sender.starts_with(&AgentKind::Referee.to_string()) {
        ErrorCode::RefereeNotRegistered
    } else {
        ErrorCode::PlayerNotRegistered
    };
    ProtocolError::unexpected(code, "sender", sender, "which is not registered here")
}

/// Returns true if a member is registered at the endpoint that an agent names.
fn is_at(member: &Member, from: &Application) -> bool {
    Endpoint::is_same_address(&member.meta.contact_endpoint, &from.meta.contact_endpoint)
}

/// Returns true if a secret was sent, and is this one. An empty one is none: agents in other
/// languages send that for "none".
fn is_secret(own: &str, sent: &Option<String>) -> bool {
    sent.as_ref()
        .is_some_and(|sent| !sent.is_empty() && constant_time_eq(own, sent))
}

/// Checks what an agent says of itself, for a league of that game.
pub fn check_meta(meta: &AgentMeta, kind: AgentKind, game: &str) -> Result<(), Rejection> {
    let capacity = meta.max_concurrent_matches.unwrap_or(0);
    let problem = if let Err(legal) = check_display_name(&meta.display_name) {
        format!("Invalid display_name: must be {legal}")
    } else if let Err(legal) = check_version(&meta.version) {
        format!("Invalid version: must be {legal}")
    } else if !meta.game_types.iter().any(|game_type| game_type == game) {
        format!("Unsupported game type: game_types must have {game}")
    } else if kind == AgentKind::Referee && !(1..=10).contains(&capacity) {
        "Invalid max_concurrent_matches: must be 1 to 10".into()
    } else if let Some(version) = &meta.protocol_version
        && version.trim_start_matches("league.v").split('.').next() != Some("2")
    {
        let reason = "Protocol version mismatch: protocol_version must be 2.x.y".into();
        let code = Some(ErrorCode::VersionMismatch);
        return Err(Rejection { reason, code });
    } else {
        return Ok(());
    };
    Err(reject(problem))
}

/// Checks that the manager can call an agent where it says it is.
fn check_endpoint(from: &Application) -> Result<(), Rejection> {
    let (endpoint, peer) = (&from.meta.contact_endpoint, from.request.peer);
    let problem = match Endpoint::parse(endpoint) {
        _ if endpoint.chars().count() > LONGEST_ENDPOINT => {
            format!("must be at most {LONGEST_ENDPOINT} characters")
        }
        Err(legal) => format!("must be {legal}"),
        Ok(parsed) if parsed.is_loopback() && !peer.is_loopback() => {
            let own = format!("http://{peer}:{}/mcp", parsed.port);
            let hint = format!("start with --host 0.0.0.0 --contact-endpoint {own}");
            let received = truncate(endpoint, 60);
            format!("{received} means this very machine, but the request came from {peer}; {hint}")
        }
        Ok(parsed) if !from.trusted && parsed.address().is_some_and(|address| address != peer) => {
            let received = truncate(endpoint, 60);
            format!("{received} must be at {peer}, from which the request came")
        }
        Ok(_) => return Ok(()),
    };
    Err(unreachable(
        from.kind,
        &format!("contact_endpoint {problem}"),
    ))
}

fn reject(reason: String) -> Rejection {
    Rejection { reason, code: None }
}

fn unreachable(kind: AgentKind, problem: &str) -> Rejection {
    reject(match kind {
        AgentKind::Referee => format!("Endpoint unreachable: {problem}"),
        _ => format!("Contact endpoint unreachable: {problem}"),
    })
}

/// The endpoint is that of a member, which has not proven to be this one.
fn taken(member: &Member) -> String {
    let id = &member.id;
    let hint = match member.kind {
        AgentKind::Player => {
            format!("{id} lost it and does not answer, the operator can remove {id} and restore it")
        }
        _ => format!("{id} lost it, it is let in again while no referee is left"),
    };
    format!("contact_endpoint is {id}'s, whose token must come with the request; if {hint}")
}

/// Rejects an agent that comes after the start.
fn late(kind: AgentKind, neighbor: Option<&Member>) -> Rejection {
    let mut reason = match kind {
        AgentKind::Referee => "League already started".to_string(),
        _ => "Registration closed - league already started".to_string(),
    };
    if let Some(neighbor) = neighbor {
        reason += &format!(": {}", taken(neighbor));
    }
    let code = Some(ErrorCode::LateRegistration);
    Rejection { reason, code }
}

/// Makes the reply to a registration. Those to a referee and to a player differ in one name.
pub fn answer(
    kind: AgentKind,
    decision: Result<Member, Rejection>,
    league_id: &str,
) -> Result<Message, ProtocolError> {
    let body = match decision {
        Ok(member) => json!({
            "status": RegistrationStatus::Accepted,
            "referee_id": member.id,
            "player_id": member.id,
            "auth_token": member.token,
            "league_id": league_id,
            "proves_itself": true, // each of our requests carries the agent's token
        }),
        Err(rejection) => json!({
            "status": RegistrationStatus::Rejected,
            "reason": rejection.reason,
            "error_code": rejection.code.map(|code| code.to_string()),
        }),
    };
    Ok(match kind {
        AgentKind::Referee => deserialize::<RefereeRegisterResponse>(&body)?.into(),
        _ => deserialize::<LeagueRegisterResponse>(&body)?.into(),
    })
}
