//! Which agents may register, with which id and token; and which agent sent a request.
//!
//! `League::decide_registration` first checks the description of the agent. Then it finds out which
//! agent it is: a member that shows its token or its registration key, an agent at a member's
//! endpoint, or a new one. `registration_reply` makes the reply. The rules in words are in
//! `protocol.md`, under "Registration" and "Registering again".

use super::contact::Table;
use super::league::{Event, League, Member};
use crate::net::agent::Request;
use crate::program::config::AgentEntry;
use crate::program::session::REMOVED;
use crate::protocol::{
    AgentKind, AgentMeta, Envelope, ErrorCode, LeagueRegisterResponse, ProtocolError,
    RefereeRegisterResponse, RegistrationStatus, Reply,
};
use crate::values::{
    Endpoint, Timestamp, check_display_name, check_version, constant_time_eq, peer_text, token,
    truncate,
};
use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

/// Maximum length of a contact endpoint, in characters: announcements carry those of all players.
const MAX_ENDPOINT_CHARS: usize = 200;
/// The reason of a rejection that is over after a second: every change is written to the journal and
/// announced to all agents.
pub const TOO_SOON: &str =
    "Registered again too soon: a member changes its description once a second at most";
/// Maximum time after which a restored player may register without its token.
const RETURN_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// A registration.
pub struct Application<'a> {
    /// The kind of agent.
    pub kind: AgentKind,
    /// The agent's description of itself.
    pub meta: &'a AgentMeta,
    /// The envelope, and the address from which it came.
    pub request: &'a Request,
    /// True if it came from this machine, or with the operator's token.
    pub trusted: bool,
    /// True if the endpoint is on this machine and passes requests on to the caller.
    pub is_relayed: bool,
    /// The number of members that may register from one address before the start.
    pub max_per_address: u32,
    /// Which members answer.
    pub table: &'a Table,
    /// The random part of a new token.
    pub secret: &'a str,
    /// The time at which it came.
    pub now: Timestamp,
}

/// An agent is rejected.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// The protocol's code, if it has one.
    pub code: Option<ErrorCode>,
    /// The field that is wrong, and what is legal, for people.
    pub reason: String,
}

impl League {
    /// Accepts or rejects a registration. There is no event if the member stays as it was.
    pub fn decide_registration(
        &self,
        application: &Application,
    ) -> (Option<Event>, Result<Member, Rejection>) {
        let decision = self.accepted_member(application);
        let is_new = |member: &&Member| self.members.get(&member.id) != Some(*member);
        let new = decision.as_ref().ok().filter(is_new).cloned();
        (new.map(Event::Registered), decision)
    }

    fn accepted_member(&self, application: &Application) -> Result<Member, Rejection> {
        let kind = application.kind;
        let mut members = self.members.values();
        let authenticated = members.find(|member| proves_to_be(member, application));
        let at_endpoint = self.members.values().find(|m| is_at(m, application));
        self.check(
            application,
            authenticated.or(at_endpoint),
            authenticated.is_some(),
        )?;

        // A member that proves that it is one, or was restored, may register at any time.
        let known = authenticated.or_else(|| self.restored_player(application));
        if let Some(member) = known {
            let is_other =
                |other: &&Member| other.id != member.id && !self.removed.contains(&other.id);
            if let Some(other) = at_endpoint.filter(is_other) {
                return Err(unreachable(kind, &taken(other)));
            }

            return match authenticated {
                Some(_) => self.renew(member, application),
                None => Ok(self.new_member(&member.id, application)),
            };
        }

        if application.meta.must_be_known == Some(true) {
            return Err(rejection("Not a member: this is another league"));
        }

        // After the start only a referee may register, and only while no live one is left.
        let is_wanted =
            kind == AgentKind::Referee && application.table.available_referees(self).is_empty();
        if self.started && !(is_wanted && self.open_round().is_some()) {
            return Err(late(kind, at_endpoint));
        }

        // A member without a proof gets a new token, once a second at most. One that has a key
        // shows it, unless it does not answer.
        if let Some(member) = at_endpoint {
            let is_owned = key_of(&member.meta).is_some() && application.table.answers(&member.id);
            if member.kind != kind || member.peer != application.request.peer || is_owned {
                return Err(unreachable(kind, &taken(member)));
            }
            if application.now <= member.registered_at {
                return Ok(member.clone());
            }
            return Ok(self.new_member(&member.id, application));
        }

        self.check_capacity(application)?;
        Ok(self.new_member(&self.free_id(application), application))
    }

    /// Checks that there is room for one more. One machine must not take all places of a class.
    fn check_capacity(&self, application: &Application) -> Result<(), Rejection> {
        let (peer, max_per_address) = (application.request.peer, application.max_per_address);
        let same_address = self.members.values().filter(|member| member.peer == peer);
        let max_players = self.config.league.participants.max_players;

        let limit = if !application.trusted && same_address.count() >= max_per_address as usize {
            let hint = "the operator raises this with --members-per-address";
            format!("{max_per_address} from {peer}; {hint}")
        } else if application.kind == AgentKind::Player
            && self.count(AgentKind::Player) >= max_players as usize
        {
            format!("{max_players} may register")
        } else {
            return Ok(());
        };
        Err(rejection(format!("Maximum players reached: {limit}")))
    }

    /// Checks that an agent may register at all, and that its description is legal. `member` is the
    /// member that it is, or whose endpoint it names.
    fn check(
        &self,
        application: &Application,
        member: Option<&Member>,
        is_authenticated: bool,
    ) -> Result<(), Rejection> {
        let Application { kind, meta, .. } = *application;
        if kind == AgentKind::Referee && !application.trusted && !is_authenticated {
            let legal = "referees register from the manager's machine or with the operator token";
            return Err(rejection(format!("Not permitted: {legal}")));
        }

        check_meta(meta, kind, &self.config.league.game_type).map_err(rejection)?;
        if let Some(version) = &meta.protocol_version
            && version.trim_start_matches("league.v").split('.').next() != Some("2")
        {
            return Err(Rejection {
                code: Some(ErrorCode::VersionMismatch),
                reason: "Protocol version mismatch: protocol_version must be 2.x.y".into(),
            });
        }
        check_endpoint(application).map_err(|problem| unreachable(kind, &problem))?;

        if let Some(listed) = self.listed_agent(application)
            && listed.active == Some(false)
        {
            let problem = format!("the agents configuration lists {} as inactive", listed.id);
            return Err(rejection(format!("Not active: {problem}")));
        }

        if let Some(member) = member
            && self.removed.contains(&member.id)
        {
            let id = &member.id;
            let reason = format!("{REMOVED}, until the operator restores it: {id}");
            return Err(rejection(reason));
        }

        Ok(())
    }

    /// Returns the player that the operator restored a short while ago, if it asks with its id or
    /// at its endpoint, from the address it had, from that which the operator named, or from this
    /// machine. A player that still answers is not replaced.
    fn restored_player(&self, application: &Application) -> Option<&Member> {
        let Request { envelope, peer } = application.request;
        self.members.values().find(|member| {
            let Some((at, address)) = self.restored.get(&member.id) else {
                return false;
            };
            application.now <= at.plus(RETURN_TIMEOUT)
                && (envelope.sender == member.signature() || is_at(member, application))
                && (*peer == member.peer || Some(*peer) == *address || peer.is_loopback())
                && !application.table.answers(&member.id)
        })
    }

    /// Returns a member with its new description, its old token, and its old registration key if
    /// it sends none. If nothing is new and more than half of its lifetime is left, nothing
    /// changes: registering again does not make the journal grow.
    fn renew(&self, member: &Member, application: &Application) -> Result<Member, Rejection> {
        let mut meta = application.meta.clone();
        if key_of(&meta).is_none() {
            meta.registration_key = member.meta.registration_key.clone();
        }
        meta.must_be_known = None;

        let minimum = self.config.token_lifetime() / 2;
        if member.meta == meta && member.expires >= application.now.plus(minimum) {
            return Ok(member.clone());
        }
        if application.now <= member.registered_at {
            return Err(rejection(TOO_SOON));
        }

        Ok(Member {
            meta,
            token: member.token.clone(),
            ..self.new_member(&member.id, application)
        })
    }

    /// Returns a member with this id and a new token.
    fn new_member(&self, id: &str, application: &Application) -> Member {
        Member {
            kind: application.kind,
            id: id.into(),
            meta: application.meta.clone(),
            token: token(id, application.secret),
            expires: application.now.plus(self.config.token_lifetime()),
            peer: application.request.peer,
            registered_at: application.now,
        }
    }

    /// Returns the id that a new agent asks for, if it is free; else that which the configuration
    /// lists for its endpoint; else the lowest free one.
    fn free_id(&self, application: &Application) -> String {
        let kind = application.kind;
        let sender = &application.request.envelope.sender;
        let requested = sender.strip_prefix(&format!("{kind}:"));
        if let Some(id) = requested
            && kind.is_valid_id(id)
            && !self.members.contains_key(id)
        {
            return id.into();
        }

        if let Some(listed) = self.listed_agent(application)
            && !self.members.contains_key(&listed.id)
        {
            return listed.id.clone();
        }

        let mut number = 1;
        while self.members.contains_key(&kind.format_id(number)) {
            number += 1;
        }
        kind.format_id(number)
    }

    /// Returns the agent that the configuration lists for that endpoint.
    fn listed_agent(&self, application: &Application) -> Option<&AgentEntry> {
        let mut listed = self.config.configured_agents(application.kind).iter();
        listed.find(|agent| {
            Endpoint::is_same_address(&agent.endpoint, &application.meta.contact_endpoint)
        })
    }

    /// Returns the member that has this token, expired or not.
    pub fn token_owner(&self, token: &str) -> Option<&Member> {
        let mut members = self.members.values();
        members.find(|member| constant_time_eq(&member.token, token))
    }

    /// Returns the member that sent a request. The token says which one; `sender` must not name
    /// another member.
    pub fn authenticate(
        &self,
        envelope: &Envelope,
        now: Timestamp,
    ) -> Result<&Member, ProtocolError> {
        let sender = &envelope.sender;
        let (_, id) = sender.split_once(':').unwrap_or_default();
        let named = (self.members.get(id)).filter(|member| member.signature() == *sender);

        if !self.config.system.security.enable_auth_tokens {
            return named.ok_or_else(|| not_registered(sender));
        }

        let Some(token) = &envelope.auth_token else {
            let problem = "missing; it came with the registration";
            let code = ErrorCode::TokenMissing;
            return Err(ProtocolError::field(code, "auth_token", problem));
        };

        let problem = match (self.token_owner(token), named) {
            (None, None) => return Err(not_registered(sender)),
            (None, Some(named)) => format!("not the token of {}", named.id),
            (Some(owner), Some(named)) if owner.id != named.id => {
                let owner = &owner.id;
                format!(
                    "this is the token of {owner}, not of {}",
                    truncate(sender, 60)
                )
            }
            (Some(owner), _) if owner.expires <= now => {
                let hint = "register again with it, and it is good again";
                format!("expired at {}; {hint}", owner.expires)
            }
            (Some(owner), _) => return Ok(owner),
        };
        let error = ProtocolError::wrong_token(problem);
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
    ProtocolError::unexpected_value(code, "sender", sender, "which is not registered here")
}

/// Returns true if a member is registered at the endpoint that an agent names.
fn is_at(member: &Member, application: &Application) -> bool {
    Endpoint::is_same_address(
        &member.meta.contact_endpoint,
        &application.meta.contact_endpoint,
    )
}

/// Returns true if the token or the registration key of a member was sent.
fn proves_to_be(member: &Member, application: &Application) -> bool {
    let token = application.request.envelope.auth_token.as_deref();
    let has_token = token.is_some_and(|token| constant_time_eq(&member.token, token));
    let keys = key_of(&member.meta).zip(key_of(application.meta));
    let has_key = keys.is_some_and(|(own, sent)| constant_time_eq(own, sent));
    member.kind == application.kind && (has_token || has_key)
}

/// Returns the registration key of an agent. An empty one is none: agents in other languages send
/// that for "none".
fn key_of(meta: &AgentMeta) -> Option<&str> {
    let key = meta.registration_key.as_deref();
    key.filter(|key| !key.is_empty())
}

/// Checks the description of an agent, for a league of that game.
fn check_meta(meta: &AgentMeta, kind: AgentKind, game: &str) -> Result<(), String> {
    check_display_name(&meta.display_name)
        .map_err(|legal| format!("Invalid display_name: must be {legal}"))?;
    check_version(&meta.version).map_err(|legal| format!("Invalid version: must be {legal}"))?;
    if !meta.game_types.iter().any(|game_type| game_type == game) {
        return Err(format!(
            "Unsupported game type: game_types must have {game}"
        ));
    }

    if key_of(meta).is_some_and(|key| !(16..=128).contains(&key.chars().count())) {
        return Err("Invalid registration_key: must be 16 to 128 characters".into());
    }

    let capacity = meta.max_concurrent_matches.unwrap_or(0);
    if kind == AgentKind::Referee && !(1..=10).contains(&capacity) {
        return Err("Invalid max_concurrent_matches: must be 1 to 10".into());
    }

    Ok(())
}

/// Checks that the manager can call an agent at its endpoint. Fails with what is legal.
fn check_endpoint(application: &Application) -> Result<(), String> {
    let (endpoint, peer) = (&application.meta.contact_endpoint, application.request.peer);
    if endpoint.chars().count() > MAX_ENDPOINT_CHARS {
        return Err(format!("must be at most {MAX_ENDPOINT_CHARS} characters"));
    }
    let parsed = Endpoint::parse(endpoint).map_err(|legal| format!("must be {legal}"))?;
    if application.is_relayed {
        return Ok(());
    }

    let quoted = truncate(endpoint, 60);
    if peer.is_unspecified() {
        if parsed.address().is_none() || application.trusted && !parsed.is_loopback() {
            return Ok(());
        }
        let problem = format!(
            "is an address, but the request came from {}",
            peer_text(peer)
        );
        return Err(format!("{quoted} {problem}; give a host name"));
    }

    if parsed.is_loopback() && !peer.is_loopback() {
        let own = format!("http://{peer}:{}/mcp", parsed.port);
        let hint = format!("start with --host 0.0.0.0 --contact-endpoint {own}");
        let problem = format!("means this very machine, but the request came from {peer}");
        return Err(format!("{quoted} {problem}; {hint}"));
    }

    let is_own = parsed.address() == Some(peer) || is_secure_name(endpoint, &parsed);
    if application.trusted || is_own {
        return Ok(());
    }
    Err(format!(
        "{quoted} must be at {peer}, from which the request came"
    ))
}

/// Returns true for the name of a host that proves by its certificate that it is the one.
fn is_secure_name(endpoint: &str, parsed: &Endpoint) -> bool {
    endpoint.starts_with("https:") && parsed.address().is_none()
}

/// Returns the description of an agent with its address in the place of a host name that leads to
/// it: the name could lead to another machine later.
pub fn with_address(meta: &AgentMeta, peer: IpAddr) -> AgentMeta {
    let mut meta = meta.clone();
    if let Ok(parsed) = Endpoint::parse(&meta.contact_endpoint)
        && parsed.address().is_none()
        && !is_secure_name(&meta.contact_endpoint, &parsed)
        && let Ok(mut found) = (&*parsed.host, parsed.port).to_socket_addrs()
        && found.any(|address| address.ip().to_canonical() == peer)
    {
        meta.contact_endpoint = parsed.with_host(peer).to_string();
    }
    meta
}

fn rejection(reason: impl Into<String>) -> Rejection {
    Rejection {
        code: None,
        reason: reason.into(),
    }
}

fn unreachable(kind: AgentKind, problem: &str) -> Rejection {
    rejection(match kind {
        AgentKind::Referee => format!("Endpoint unreachable: contact_endpoint {problem}"),
        _ => format!("Contact endpoint unreachable: contact_endpoint {problem}"),
    })
}

/// Returns the problem of an endpoint that is a member's, if the agent has not shown the member's
/// token or key.
fn taken(member: &Member) -> String {
    let id = &member.id;
    let hint = match member.kind {
        AgentKind::Player => {
            format!(
                "start {id} in its folder, another with its own --port, or have {id} removed and restored"
            )
        }
        _ => format!("if {id} lost it, it is let in again while no referee is left"),
    };
    format!("is {id}'s, whose token must come with the request; {hint}")
}

/// Rejects an agent that comes after the start.
fn late(kind: AgentKind, at_endpoint: Option<&Member>) -> Rejection {
    let mut reason = match kind {
        AgentKind::Referee => "League already started".to_string(),
        _ => "Registration closed - league already started".to_string(),
    };

    if let Some(member) = at_endpoint {
        reason += &format!(": contact_endpoint {}", taken(member));
    }
    Rejection {
        code: Some(ErrorCode::LateRegistration),
        reason,
    }
}

/// Makes the reply to a registration.
pub fn registration_reply(
    kind: AgentKind,
    decision: Result<Member, Rejection>,
    league_id: &str,
) -> Reply {
    let response = match decision {
        Ok(member) => LeagueRegisterResponse {
            status: RegistrationStatus::Accepted,
            player_id: Some(member.id),
            auth_token: Some(member.token),
            league_id: Some(league_id.into()),
            proves_itself: Some(true), // each of our requests carries the agent's token
            ..Default::default()
        },
        Err(rejection) => LeagueRegisterResponse {
            error_code: rejection.code,
            reason: Some(rejection.reason),
            ..Default::default()
        },
    };

    match kind {
        AgentKind::Referee => RefereeRegisterResponse::from(response).into(),
        _ => response.into(),
    }
}
