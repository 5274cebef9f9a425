//! Who may register, under which id, with which token; and whose request a request is (R4, R5). Pure.

use crate::{
    clock::Timestamp,
    endpoint::Endpoint,
    league::{Event, League, Listed, Member},
    protocol::{Code, Kind, PlayerMeta, RefereeMeta, Refusal},
};
use std::{net::IpAddr, ops::RangeInclusive};

/// How many characters a display name may have (002 §3.1.2).
pub const NAME_LENGTH: RangeInclusive<usize> = 1..=50;
/// How many matches a referee may play at once (002 §3.1.2).
pub const MATCHES_AT_ONCE: RangeInclusive<u32> = 1..=10;

/// What an agent says of itself, the same for both kinds.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "fields of referee_meta and player_meta")]
pub struct Profile {
    pub kind: Kind,
    pub display_name: String,
    pub version: String,
    pub game_types: Vec<String>,
    pub contact_endpoint: String,
    pub protocol_version: Option<String>,
    pub max_concurrent_matches: Option<u32>,
    pub uses_match_tokens: bool,
}

impl From<RefereeMeta> for Profile {
    fn from(meta: RefereeMeta) -> Profile {
        Profile {
            kind: Kind::Referee,
            display_name: meta.display_name,
            version: meta.version,
            game_types: meta.game_types,
            contact_endpoint: meta.contact_endpoint,
            protocol_version: meta.protocol_version,
            max_concurrent_matches: Some(meta.max_concurrent_matches.try_into().unwrap_or(0)), // 0 is rejected too
            uses_match_tokens: meta.uses_match_tokens == Some(true),
        }
    }
}

impl From<PlayerMeta> for Profile {
    fn from(meta: PlayerMeta) -> Profile {
        Profile {
            kind: Kind::Player,
            display_name: meta.display_name,
            version: meta.version,
            game_types: meta.game_types,
            contact_endpoint: meta.contact_endpoint,
            protocol_version: meta.protocol_version,
            max_concurrent_matches: None,
            uses_match_tokens: false,
        }
    }
}

/// Who asks, from where, and when.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Applicant<'a> {
    pub sender: &'a str,
    pub conversation_id: &'a str,
    pub token: Option<&'a str>,
    pub peer: IpAddr,
    /// Whether it may become a referee: from loopback, from its listed host, or with the operator's token.
    pub trusted: bool,
    /// Whether a referee may still come although the league has started: no live one is left.
    pub referee_wanted: bool,
    /// How many players may register at most.
    pub room: usize,
    /// The random part of a token, should it need one.
    pub secret: &'a str,
    pub now: Timestamp,
}

/// Why an agent was not let in.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// In the words of 002, then the field and what is legal.
    pub reason: String,
    /// Where one exists.
    pub code: Option<Code>,
}

fn reject<T>(reason: impl Into<String>, code: Option<Code>) -> Result<T, Rejection> {
    Err(Rejection { reason: reason.into(), code })
}

/// A token: whose it is can be read, what it is cannot be guessed.
pub fn token(id: &str, secret: &str) -> String {
    format!("tok-{}-{secret}", id.to_ascii_lowercase())
}

/// Compares without telling by its time how much was right.
pub fn equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |seen, (a, b)| seen | (a ^ b));
    one.len() == other.len() && differences == 0
}

impl League {
    /// Lets an agent in, or in again; `None` for an event means that the first answer was lost on its way.
    pub fn register(&self, profile: &Profile, from: &Applicant) -> Result<(Option<Event>, Member), Rejection> {
        let own = from.token.and_then(|token| {
            self.members.values().find(|known| known.kind == profile.kind && equal(&known.token, token))
        });
        let same_place = self.members.values().find(|known| Endpoint::same(&known.endpoint, &profile.contact_endpoint));
        if profile.kind == Kind::Referee && !from.trusted && own.is_none() {
            return reject(
                "Not permitted: referees register from this machine, from their listed host, or with the operator token",
                None,
            );
        }
        self.check(profile)?;
        match (own, same_place) {
            (Some(own), Some(other)) if own.id != other.id => {
                reject(format!("{}: contact_endpoint is {}'s", unreachable(profile.kind), other.id), None)
            }
            (Some(own), _) => Ok(self.re_attach(own, profile, from, own.expires <= from.now)),
            (None, Some(known)) if known.kind != profile.kind => {
                reject(format!("{}: contact_endpoint is {}'s", unreachable(profile.kind), known.id), None)
            }
            (None, Some(known)) if known.conversation_id == from.conversation_id && known.peer == from.peer => {
                Ok((None, known.clone()))
            }
            // Before the start; or a referee without which the league does not go on.
            (None, Some(known)) if known.peer == from.peer && (!self.started || self.may_come_late(profile, from)) => {
                Ok(self.re_attach(known, profile, from, true))
            }
            (None, Some(known)) => {
                let reason = format!("contact_endpoint is {}'s, whose token must come with the request", known.id);
                match self.started {
                    true => reject(format!("{}: {reason}", late(profile.kind)), Some(Code::E019)),
                    false => reject(format!("{}: {reason}", unreachable(profile.kind)), None),
                }
            }
            (None, None) => self.newcomer(profile, from),
        }
    }

    /// Whether it is let in after the start: a referee, while no live one is left.
    fn may_come_late(&self, profile: &Profile, from: &Applicant) -> bool {
        profile.kind == Kind::Referee && from.referee_wanted
    }

    /// The member that an agent becomes when it registers again: the same id; `renew`: with a new token.
    fn re_attach(&self, known: &Member, profile: &Profile, from: &Applicant, renew: bool) -> (Option<Event>, Member) {
        let mut member = Member {
            display_name: profile.display_name.clone(),
            endpoint: profile.contact_endpoint.clone(),
            max_concurrent_matches: profile.max_concurrent_matches.unwrap_or(0),
            uses_match_tokens: profile.uses_match_tokens,
            conversation_id: from.conversation_id.into(),
            peer: from.peer,
            registrations: known.registrations + 1,
            ..known.clone()
        };
        if renew {
            member.token = token(&member.id, from.secret);
            member.expires = from.now.plus(self.rules.token_lifetime);
        }
        (Some(Event::Registered(member.clone())), member)
    }

    fn newcomer(&self, profile: &Profile, from: &Applicant) -> Result<(Option<Event>, Member), Rejection> {
        if self.started && !self.may_come_late(profile, from) {
            return reject(late(profile.kind), Some(Code::E019));
        }
        if profile.kind == Kind::Player && self.members(Kind::Player).len() >= from.room {
            return reject(format!("Maximum players reached: {} may register", from.room), None);
        }
        let id = self.id_for(profile, from);
        let member = Member {
            kind: profile.kind,
            alias: from.sender.into(),
            display_name: profile.display_name.clone(),
            endpoint: profile.contact_endpoint.clone(),
            max_concurrent_matches: profile.max_concurrent_matches.unwrap_or(0),
            uses_match_tokens: profile.uses_match_tokens,
            token: token(&id, from.secret),
            expires: from.now.plus(self.rules.token_lifetime),
            conversation_id: from.conversation_id.into(),
            peer: from.peer,
            registrations: 1,
            id,
        };
        Ok((Some(Event::Registered(member.clone())), member))
    }

    /// What an agent says of itself must be legal (002 §3.1.2, §3.3.2).
    fn check(&self, profile: &Profile) -> Result<(), Rejection> {
        let name = profile.display_name.chars().count();
        if !NAME_LENGTH.contains(&name) {
            return reject(format!("Invalid display_name: got {name} characters, must be 1 to 50"), None);
        }
        if !is_version(&profile.version) {
            return reject("Invalid version: must be MAJOR.MINOR.PATCH, like 1.0.0", None);
        }
        if !profile.game_types.iter().any(|game| self.rules.game_types.contains(game)) {
            let legal = self.rules.game_types.join(", ");
            return reject(format!("Unsupported game type: game_types must have one of {legal}"), None);
        }
        if let Err(legal) = Endpoint::parse(&profile.contact_endpoint) {
            return reject(format!("{}: contact_endpoint must be {legal}", unreachable(profile.kind)), None);
        }
        if profile.max_concurrent_matches.is_some_and(|matches| !MATCHES_AT_ONCE.contains(&matches)) {
            return reject("Invalid max_concurrent_matches: must be 1 to 10", None);
        }
        let major = |version: &String| version.trim_start_matches("league.v").split('.').next() == Some("2");
        if !profile.protocol_version.as_ref().is_none_or(major) {
            return reject("Protocol version mismatch: protocol_version must be 2.x.y", Some(Code::E018));
        }
        match self.listed_at(profile).filter(|listed| !listed.active) {
            Some(listed) => {
                reject(format!("Not active: the agents configuration lists {} as inactive", listed.id), None)
            }
            None => Ok(()),
        }
    }

    /// The listed agent of that kind at that endpoint, if there is one.
    pub fn listed_at(&self, profile: &Profile) -> Option<&Listed> {
        let here = |listed: &&Listed| Endpoint::same(&listed.endpoint, &profile.contact_endpoint);
        self.rules.listed.iter().filter(|listed| listed.kind == profile.kind).find(here)
    }

    /// The listed id of its endpoint; else the id it asks for; else the lowest free one.
    fn id_for(&self, profile: &Profile, from: &Applicant) -> String {
        let free = |id: &str| !self.members.contains_key(id);
        if let Some(listed) = self.listed_at(profile).filter(|listed| free(&listed.id)) {
            return listed.id.clone();
        }
        let listed = |id: &str| self.rules.listed.iter().find(|listed| listed.id == id);
        let asked = from.sender.strip_prefix(profile.kind.word()).and_then(|rest| rest.strip_prefix(':'));
        let unclaimed = |id: &&str| {
            listed(id).is_none_or(|listed| {
                let used = self.members.values().any(|known| Endpoint::same(&known.endpoint, &listed.endpoint));
                from.peer.is_loopback() && listed.active && !used
            })
        };
        let asked =
            asked.filter(|id| is_id(profile.kind, id)).filter(|id| free(id)).filter(unclaimed).map(String::from);
        let lowest = || (1..).map(|n| numbered(profile.kind, n)).find(|id| free(id) && listed(id).is_none());
        asked.or_else(lowest).unwrap_or_default()
    }

    /// Whose request this is: its token must be its own and still good. Checked in the order of R4.
    pub fn identify(&self, sender: &str, token: Option<&str>, now: Timestamp) -> Result<&Member, Refusal> {
        if self.rules.tokens && token.is_none() {
            return Err(Refusal::field(Code::E011, "auth_token", "missing; it came with the registration"));
        }
        let token = token.unwrap_or_default();
        let (kind, name) = sender.split_once(':').unwrap_or(("", sender));
        let by_id = |known: &Member| known.kind.word() == kind && known.id == name;
        let called = |known: &&Member| {
            // Without a sender (`strict_envelope: false` lets that through) the token says who it is.
            by_id(known) || known.alias == sender || sender.is_empty() && equal(&known.token, token)
        };
        let mut candidates: Vec<&Member> = self.members.values().filter(called).collect();
        // An id comes before an alias: where no tokens are demanded, a name that somebody else took shadows nobody.
        candidates.sort_by_key(|known| !by_id(known));
        let Some(first) = candidates.first() else {
            let code = if kind == Kind::Referee.word() { Code::E013 } else { Code::E005 };
            return Err(Refusal::field(code, "sender", format!("got {sender:?}, which is not registered here")));
        };
        if !self.rules.tokens {
            return Ok(first);
        }
        let own = candidates.iter().find(|known| equal(&known.token, token)).ok_or_else(|| {
            Refusal::field(Code::E012, "auth_token", format!("not the token of {}", first.id))
                .with("provided_token", token)
                .with("expected_format", "tok-{agent_id}-{hash}")
        })?;
        if own.expires <= now {
            let problem = format!("expired at {}; register again with it to get a fresh one", own.expires);
            return Err(Refusal::field(Code::E012, "auth_token", problem).with("expired_at", own.expires.to_string()));
        }
        Ok(own)
    }
}

/// The n-th id of a kind: `P07`, `P100`, `REF01`.
pub fn numbered(kind: Kind, n: u32) -> String {
    let prefix = if kind == Kind::Referee { "REF" } else { "P" };
    format!("{prefix}{n:02}")
}

/// Whether a text is an id of that kind.
pub fn is_id(kind: Kind, text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_uppercase()).parse().ok();
    number.is_some_and(|n| n >= 1 && numbered(kind, n) == text)
}

/// Whether a text is MAJOR.MINOR.PATCH.
pub fn is_version(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    text.split('.').count() == 3 && text.split('.').all(number)
}

fn late(kind: Kind) -> &'static str {
    if kind == Kind::Referee { "League already started" } else { "Registration closed - league already started" }
}

fn unreachable(kind: Kind) -> &'static str {
    if kind == Kind::Referee { "Endpoint unreachable" } else { "Contact endpoint unreachable" }
}
