//! Who may register, under which id, with which token; and whose request a request is. Pure.
//!
//! `League::register` is the way in: first what the agent says of itself is checked, then one `match` decides by who
//! it is (its token) and where it is (its endpoint). The rules in words: "Registration" and "Registering again" in
//! `protocol.md`. Read next: `results.rs`.

use crate::manager::control::REMOVED;
use crate::manager::league::{Event, League, Listed, Member};
use crate::net::agent::Request;
use crate::protocol::{
    AgentMeta, Code, Kind, LeagueRegisterResponse, RefereeRegisterResponse, Refusal, Verdict,
};
use crate::wire::{DisplayName, Endpoint, Timestamp, Version, Within, cut, equal, token};
use std::time::Duration;

/// The longest contact endpoint, in characters: announcements carry those of all players.
const LONGEST_ENDPOINT: usize = 200;
/// How long the same request is given the same answer.
const REPEATED: Duration = Duration::from_secs(60);

/// A registration as it came, and what its sender cannot know.
#[derive(Debug)]
pub struct Applicant<'a> {
    /// As what it registers.
    pub kind: Kind,
    /// Who asks, from where.
    pub request: &'a Request,
    /// Whether it may become a referee: from loopback, from its listed host, or with the operator's token.
    pub trusted: bool,
    /// Whether a referee may still come although the league has started: no live one is left.
    pub referee_wanted: bool,
    /// The random part of a token, should it need one.
    pub secret: &'a str,
    /// When it came.
    pub now: Timestamp,
    /// Since when this manager runs: before, it could not answer.
    pub running_since: Timestamp,
}

/// What comes of a registration.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// It is in.
    Accepted {
        /// What it is from now on.
        member: Box<Member>,
        /// What goes into the journal; nothing, where it is as it was.
        event: Option<Event>,
    },
    /// It is not.
    Rejected {
        /// Why: which field, and what is legal.
        reason: String,
        /// The protocol's code, where one exists.
        code: Option<Code>,
    },
}

impl Admission {
    fn accepted(member: Member) -> Admission {
        Admission::Accepted {
            event: Some(Event::Registered(member.clone())),
            member: Box::new(member),
        }
    }

    fn rejected(reason: impl Into<String>, code: Option<Code>) -> Admission {
        Admission::Rejected {
            reason: reason.into(),
            code,
        }
    }

    /// The answer to a referee.
    pub fn for_referee(self, league_id: &str) -> RefereeRegisterResponse {
        let (member, reason, code) = match self {
            Admission::Accepted { member, .. } => (Some(member), None, None),
            Admission::Rejected { reason, code } => (None, Some(reason), code),
        };
        let known = member.is_some();
        let (referee_id, auth_token) = member.map(|it| (it.id, it.token)).unzip();
        RefereeRegisterResponse {
            status: if known {
                Verdict::Accepted
            } else {
                Verdict::Rejected
            },
            referee_id,
            auth_token,
            reason,
            league_id: known.then(|| league_id.into()),
            error_code: code.map(|code| code.to_string()),
            proves_itself: known.then_some(true), // every request of ours carries the agent's own token
        }
    }

    /// The answer to a player: the same, but for one name.
    pub fn for_player(self, league_id: &str) -> LeagueRegisterResponse {
        let RefereeRegisterResponse {
            status,
            referee_id,
            reason,
            auth_token,
            league_id,
            error_code,
            proves_itself,
        } = self.for_referee(league_id);
        let player_id = referee_id;
        LeagueRegisterResponse {
            status,
            player_id,
            reason,
            auth_token,
            league_id,
            error_code,
            proves_itself,
        }
    }
}

impl League {
    /// Lets an agent in, or in again, or says why not.
    pub fn register(&self, meta: &AgentMeta, from: &Applicant) -> Admission {
        let own = from
            .request
            .envelope
            .auth_token
            .as_ref()
            .and_then(|token| self.holder(token));
        let own = own.filter(|known| known.kind == from.kind);
        let here = self
            .members
            .values()
            .find(|known| Endpoint::same(&known.endpoint, &meta.contact_endpoint));
        if from.kind == Kind::Referee && !from.trusted && own.is_none() {
            let who = "referees register from this machine, from their listed host, or with the operator token";
            return Admission::rejected(format!("Not permitted: {who}"), None);
        }
        if let Some(rejected) = self.objection(meta, from) {
            return rejected;
        }
        let (_, wish) = from
            .request
            .envelope
            .sender
            .split_once(':')
            .unwrap_or_default();
        let asked = self
            .members
            .get(wish)
            .filter(|known| known.kind == from.kind);
        if let Some(known) = own
            .or(here)
            .or(asked)
            .filter(|known| self.removed.contains(&known.id))
        {
            return Admission::rejected(format!("{REMOVED}: {}", known.id), None);
        }
        // The operator has restored it: whoever asks for that id now is it.
        let restored = here
            .or(asked)
            .filter(|known| known.kind == from.kind && self.let_in.contains(&known.id));
        if let Some(known) = restored.filter(|_| own.is_none()) {
            return self.renew(known, meta, from);
        }
        match (own, here) {
            (None, None) => self.newcomer(meta, from),
            (Some(own), None) => self.re_attach(own, meta, from),
            (Some(own), Some(here)) if own.id == here.id => self.re_attach(own, meta, from),
            (None, Some(here)) if here.kind == from.kind => self.without_token(here, meta, from),
            (_, Some(here)) => Admission::rejected(
                format!(
                    "{}: contact_endpoint is {}'s",
                    unreachable(from.kind),
                    here.id
                ),
                None,
            ),
        }
    }

    /// What is not legal in what an agent says of itself.
    fn objection(&self, meta: &AgentMeta, from: &Applicant) -> Option<Admission> {
        let major = |version: &String| {
            version.trim_start_matches("league.v").split('.').next() == Some("2")
        };
        let reason = if !DisplayName::is_good(&meta.display_name) {
            let length = meta.display_name.chars().count();
            format!("Invalid display_name: got {length} characters, must be 1 to 50")
        } else if !Version::is_good(&meta.version) {
            format!("Invalid version: must be {}", Version::EXPECTED)
        } else if !meta
            .game_types
            .iter()
            .any(|game| self.rules.game_types.contains(game))
        {
            let legal = self.rules.game_types.join(", ");
            format!("Unsupported game type: game_types must have one of {legal}")
        } else if meta.contact_endpoint.chars().count() > LONGEST_ENDPOINT {
            format!(
                "{}: contact_endpoint must be at most {LONGEST_ENDPOINT} characters",
                unreachable(from.kind)
            )
        } else if let Err(legal) = Endpoint::parse(&meta.contact_endpoint) {
            format!(
                "{}: contact_endpoint must be {legal}",
                unreachable(from.kind)
            )
        } else if from.kind == Kind::Referee
            && !meta
                .max_concurrent_matches
                .is_some_and(Within::<1, 10>::is_good)
        {
            "Invalid max_concurrent_matches: must be 1 to 10".into()
        } else if !meta.protocol_version.as_ref().is_none_or(major) {
            let reason = "Protocol version mismatch: protocol_version must be 2.x.y";
            return Some(Admission::rejected(reason, Some(Code::E018)));
        } else {
            let listed = self
                .listed_at(from.kind, meta)
                .filter(|listed| !listed.active)?;
            format!(
                "Not active: the agents configuration lists {} as inactive",
                listed.id
            )
        };
        Some(Admission::rejected(reason, None))
    }

    /// It shows its token, be it expired: the same id, the same token, for another lifetime. Only what is new goes
    /// into the journal, so that asking again does not make it grow.
    fn re_attach(&self, own: &Member, meta: &AgentMeta, from: &Applicant) -> Admission {
        let member = described(own, meta);
        if member == *own && own.expires >= from.now.plus(self.rules.token_lifetime / 2) {
            return Admission::Accepted {
                member: Box::new(member),
                event: None,
            };
        }
        Admission::accepted(self.registered(member, from))
    }

    /// It comes from a member's endpoint, without its token.
    fn without_token(&self, known: &Member, meta: &AgentMeta, from: &Applicant) -> Admission {
        let same_peer = known.peer == from.request.peer;
        let since = known
            .registered_at
            .map_or(from.running_since, |at| at.max(from.running_since));
        let same = from.request.has_conversation
            && known.conversation_id == from.request.envelope.conversation_id;
        if same && same_peer && from.now <= since.plus(REPEATED) {
            return Admission::Accepted {
                member: Box::new(known.clone()),
                event: None,
            };
        }
        if same_peer && self.is_open_to(from.kind, from) {
            return self.renew(known, meta, from);
        }
        let reason = format!(
            "contact_endpoint is {}'s, whose token must come with the request",
            known.id
        );
        match self.started {
            true => Admission::rejected(format!("{}: {reason}", late(from.kind)), Some(Code::E019)),
            false => Admission::rejected(format!("{}: {reason}", unreachable(from.kind)), None),
        }
    }

    /// A known agent with a new token; the old one is void.
    fn renew(&self, known: &Member, meta: &AgentMeta, from: &Applicant) -> Admission {
        let renewed = Member {
            token: token(&known.id, from.secret),
            ..described(known, meta)
        };
        Admission::accepted(self.registered(renewed, from))
    }

    fn newcomer(&self, meta: &AgentMeta, from: &Applicant) -> Admission {
        if !self.is_open_to(from.kind, from) {
            return Admission::rejected(late(from.kind), Some(Code::E019));
        }
        let room = self.rules.max_players;
        if from.kind == Kind::Player && self.members(Kind::Player).len() >= room {
            return Admission::rejected(
                format!("Maximum players reached: {room} may register"),
                None,
            );
        }
        let id = self.id_for(meta, from);
        let own_sender = |id: &str| format!("{}:{id}", from.kind);
        let sender = &from.request.envelope.sender;
        let member = Member {
            kind: from.kind,
            // `player:new` is what we supply where no sender came: nobody's name.
            alias: if *sender == own_sender("new") {
                own_sender(&id)
            } else {
                sender.clone()
            },
            display_name: meta.display_name.clone(),
            endpoint: meta.contact_endpoint.clone(),
            max_concurrent_matches: meta.max_concurrent_matches.unwrap_or(0),
            uses_match_tokens: meta.uses_match_tokens == Some(true),
            token: token(&id, from.secret),
            id,
            expires: from.now,
            conversation_id: String::new(),
            peer: from.request.peer,
            registrations: 0,
            registered_at: None,
        };
        Admission::accepted(self.registered(member, from))
    }

    /// Whether an agent without a token may register: before the start; later a referee, while no live one is left.
    fn is_open_to(&self, kind: Kind, from: &Applicant) -> bool {
        !self.started || kind == Kind::Referee && from.referee_wanted && self.open_round().is_some()
    }

    /// The member with the marks of this registration.
    fn registered(&self, member: Member, from: &Applicant) -> Member {
        Member {
            expires: from.now.plus(self.rules.token_lifetime),
            conversation_id: from.request.envelope.conversation_id.clone(),
            peer: from.request.peer,
            registrations: member.registrations + 1,
            registered_at: Some(from.now),
            ..member
        }
    }

    /// The listed agent of that kind at that endpoint, if there is one.
    pub fn listed_at(&self, kind: Kind, meta: &AgentMeta) -> Option<&Listed> {
        let here = |listed: &&Listed| Endpoint::same(&listed.endpoint, &meta.contact_endpoint);
        self.rules
            .listed
            .iter()
            .filter(|listed| listed.kind == kind)
            .find(here)
    }

    /// The listed id of its endpoint; else the id it asks for; else the lowest free one.
    fn id_for(&self, meta: &AgentMeta, from: &Applicant) -> String {
        let free = |id: &str| !self.members.contains_key(id);
        if let Some(listed) = self
            .listed_at(from.kind, meta)
            .filter(|listed| free(&listed.id))
        {
            return listed.id.clone();
        }
        let listed = |id: &str| self.rules.listed.iter().find(|listed| listed.id == id);
        let asked = from
            .request
            .envelope
            .sender
            .split_once(':')
            .filter(|(kind, _)| *kind == from.kind.word());
        let unclaimed = |id: &&str| {
            listed(id).is_none_or(|listed| {
                let used = self
                    .members
                    .values()
                    .any(|known| Endpoint::same(&known.endpoint, &listed.endpoint));
                from.request.peer.is_loopback() && listed.active && !used
            })
        };
        let asked = asked
            .map(|(_, id)| id)
            .filter(|id| from.kind.is_id(id) && free(id))
            .filter(unclaimed);
        let lowest = || {
            (1..)
                .map(|n| from.kind.numbered(n))
                .find(|id| free(id) && listed(id).is_none())
        };
        asked.map(String::from).or_else(lowest).unwrap_or_default()
    }

    /// Who holds a token, expired or not.
    pub fn holder(&self, token: &str) -> Option<&Member> {
        self.members
            .values()
            .find(|known| equal(&known.token, token))
    }

    /// Whose request this is: its token must be its own and still good. What is missing is said first, then who is
    /// unknown, then what is wrong.
    pub fn identify(
        &self,
        sender: &str,
        token: Option<&str>,
        now: Timestamp,
    ) -> Result<&Member, Refusal> {
        if self.rules.tokens && token.is_none() {
            return Err(Refusal::field(
                Code::E011,
                "auth_token",
                "missing; it came with the registration",
            ));
        }
        let token = token.unwrap_or_default();
        let (kind, name) = sender.split_once(':').unwrap_or(("", sender));
        // An id comes before an alias: where no tokens are demanded, a name that somebody else took shadows nobody.
        let by_id = self
            .members
            .get(name)
            .filter(|known| known.kind.word() == kind);
        let by_alias = self.members.values().filter(|known| known.alias == sender);
        let mut called = by_id.into_iter().chain(by_alias);
        let Some(first) = called.clone().next() else {
            let code = if kind == Kind::Referee.word() {
                Code::E013
            } else {
                Code::E005
            };
            let problem = format!("got {:?}, which is not registered here", cut(sender, 60));
            return Err(Refusal::field(code, "sender", problem));
        };
        if !self.rules.tokens {
            return Ok(first);
        }
        let own = called
            .find(|known| equal(&known.token, token))
            .ok_or_else(|| {
                Refusal::field(
                    Code::E012,
                    "auth_token",
                    format!("not the token of {}", first.id),
                )
                .with("provided_token", cut(token, 60))
                .with("expected_format", "tok-{agent_id}-{hash}")
            })?;
        if own.expires <= now {
            let problem = format!(
                "expired at {}; register again with it, and it is good again",
                own.expires
            );
            return Err(Refusal::field(Code::E012, "auth_token", problem)
                .with("expired_at", own.expires.to_string()));
        }
        Ok(own)
    }
}

/// A member as it now says it is.
fn described(known: &Member, meta: &AgentMeta) -> Member {
    Member {
        display_name: meta.display_name.clone(),
        endpoint: meta.contact_endpoint.clone(),
        max_concurrent_matches: meta.max_concurrent_matches.unwrap_or(0),
        uses_match_tokens: meta.uses_match_tokens == Some(true),
        ..known.clone()
    }
}

fn late(kind: Kind) -> &'static str {
    if kind == Kind::Referee {
        "League already started"
    } else {
        "Registration closed - league already started"
    }
}

fn unreachable(kind: Kind) -> &'static str {
    if kind == Kind::Referee {
        "Endpoint unreachable"
    } else {
        "Contact endpoint unreachable"
    }
}
