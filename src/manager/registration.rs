//! Who may register, under which id, with which token; and whose request a request is.
//!
//! `League::register` is the way in. What the agent says of itself is checked first. Then the manager asks who the agent
//! is: a member that shows its token or its registration key, somebody at a member's endpoint, or a newcomer. The rules
//! in words stand in `protocol.md`, under "Registration" and "Registering again".

use crate::manager::admission::Admission;
use crate::manager::league::Listed;
use crate::manager::league::{League, Member};
use crate::net::agent::Request;
use crate::protocol::{AgentMeta, Code, Kind, Refusal};
use crate::wire::{DisplayName, Endpoint, Timestamp, Version, Within, cut, equal, token};
use std::time::Duration;

/// The longest contact endpoint, in characters: announcements carry the endpoints of all players.
const LONGEST_ENDPOINT: usize = 200;
/// How long a restored agent may register without its token.
const LET_IN: Duration = Duration::from_secs(10 * 60);
/// Why a removed player is not let in.
const REMOVED: &str = "Removed by the operator, until the operator restores it";

/// A registration as it came, and what its sender cannot know.
#[derive(Debug)]
pub struct Applicant<'a> {
    /// As what it registers.
    pub kind: Kind,
    /// Who asks, from where.
    pub request: &'a Request,
    /// Whether it may become a referee: it comes from this machine, or shows the operator's token.
    pub trusted: bool,
    /// Whether a referee may still come although the league has started: no live one is left.
    pub referee_wanted: bool,
    /// The random part of a token, should it need one.
    pub secret: &'a str,
    /// When it came.
    pub now: Timestamp,
}

/// Why an agent is not let in, and the protocol's code for that, where one exists.
type Rejection = (String, Option<Code>);

/// Who asks to be registered, as far as the manager can tell.
enum Who<'a> {
    /// A member, by its token.
    ShowsToken(&'a Member),
    /// A member, by the key that it made before it first asked.
    ShowsKey(&'a Member),
    /// A member that the operator let in again without its token.
    LetIn(&'a Member),
    /// Somebody at the endpoint of a member.
    AtEndpointOf(&'a Member),
    /// Nobody that is known.
    Nobody,
}

impl League {
    /// Lets an agent in, or in again, or says why not.
    pub fn register(&self, meta: &AgentMeta, from: &Applicant) -> Admission {
        let who = self.who(meta, from);
        if let Err((reason, code)) = self.check(meta, from, &who) {
            return Admission::rejected(reason, code);
        }
        match who {
            Who::ShowsToken(member) => self.re_attach(member, meta, from),
            Who::ShowsKey(member) => self.re_attach(member, meta, from),
            Who::LetIn(member) => self.renew(member, meta, from),
            Who::AtEndpointOf(member) => self.without_token(member, meta, from),
            Who::Nobody => self.newcomer(meta, from),
        }
    }

    fn who(&self, meta: &AgentMeta, from: &Applicant) -> Who<'_> {
        let of_kind = || self.members.values().filter(|it| it.kind == from.kind);
        let envelope = &from.request.envelope;
        if let Some(shown) = &envelope.auth_token
            && let Some(member) = of_kind().find(|it| equal(&it.token, shown))
        {
            return Who::ShowsToken(member);
        }
        if let Some(shown) = &meta.registration_key {
            let has_key = |it: &&Member| {
                it.registration_key
                    .as_ref()
                    .is_some_and(|key| equal(key, shown))
            };
            if let Some(member) = of_kind().find(has_key) {
                return Who::ShowsKey(member);
            }
        }
        let here = self.at_endpoint(meta);
        let wish = of_kind().find(|it| envelope.sender == signature(it.kind, &it.id));
        let known = here.filter(|it| it.kind == from.kind).or(wish);
        match known.filter(|member| self.is_let_in(member, from)) {
            Some(member) => Who::LetIn(member),
            None => here.map_or(Who::Nobody, Who::AtEndpointOf),
        }
    }

    fn at_endpoint(&self, meta: &AgentMeta) -> Option<&Member> {
        let same = |it: &&Member| Endpoint::same(&it.endpoint, &meta.contact_endpoint);
        self.members.values().find(same)
    }

    /// Whether the operator restored this agent a short while ago, and it asks from where it was or from this machine.
    fn is_let_in(&self, member: &Member, from: &Applicant) -> bool {
        let peer = from.request.peer;
        let since = self.let_in.get(&member.id);
        since.is_some_and(|since| from.now <= since.plus(LET_IN))
            && (peer == member.peer || peer.is_loopback())
    }

    /// Whether this agent may register at all, and what it says of itself is legal.
    fn check(&self, meta: &AgentMeta, from: &Applicant, who: &Who) -> Result<(), Rejection> {
        let is_known = !matches!(who, Who::AtEndpointOf(_) | Who::Nobody);
        if from.kind == Kind::Referee && !from.trusted && !is_known {
            let who = "referees register from the manager's machine or with the operator token";
            return Err((format!("Not permitted: {who}"), None));
        }
        self.check_meta(meta, from)?;
        self.check_endpoint(meta, from)?;
        if let Some(listed) = self.listed_at(from.kind, meta)
            && !listed.active
        {
            let why = format!("the agents configuration lists {} as inactive", listed.id);
            return Err((format!("Not active: {why}"), None));
        }
        match who {
            Who::ShowsToken(it) | Who::ShowsKey(it) | Who::LetIn(it) | Who::AtEndpointOf(it)
                if self.removed.contains(&it.id) =>
            {
                Err((format!("{REMOVED}: {}", it.id), None))
            }
            _ => Ok(()),
        }
    }

    fn check_meta(&self, meta: &AgentMeta, from: &Applicant) -> Result<(), Rejection> {
        let game = &self.rules.game_type;
        let capacity = meta.max_concurrent_matches;
        let mut code = None;
        let reason = if !DisplayName::is_good(&meta.display_name) {
            let length = meta.display_name.chars().count();
            format!("Invalid display_name: got {length} characters, must be 1 to 50")
        } else if !Version::is_good(&meta.version) {
            format!("Invalid version: must be {}", Version::EXPECTED)
        } else if !meta.game_types.contains(game) {
            format!("Unsupported game type: game_types must have {game}")
        } else if from.kind == Kind::Referee && !capacity.is_some_and(Within::<1, 10>::is_good) {
            "Invalid max_concurrent_matches: must be 1 to 10".into()
        } else if let Some(version) = &meta.protocol_version
            && version.trim_start_matches("league.v").split('.').next() != Some("2")
        {
            code = Some(Code::E018);
            "Protocol version mismatch: protocol_version must be 2.x.y".into()
        } else {
            return Ok(());
        };
        Err((reason, code))
    }

    /// Whether the manager can call an agent where it says that it is.
    fn check_endpoint(&self, meta: &AgentMeta, from: &Applicant) -> Result<(), Rejection> {
        let problem = match Endpoint::parse(&meta.contact_endpoint) {
            _ if meta.contact_endpoint.chars().count() > LONGEST_ENDPOINT => {
                format!("must be at most {LONGEST_ENDPOINT} characters")
            }
            Err(legal) => format!("must be {legal}"),
            Ok(endpoint) if endpoint.is_loopback() && !from.request.peer.is_loopback() => {
                let peer = from.request.peer;
                let cure = format!(
                    "start with --host 0.0.0.0 --contact-endpoint http://{peer}:{}/mcp",
                    endpoint.port
                );
                let came = cut(&meta.contact_endpoint, 60);
                format!("{came} means this very machine, but the request came from {peer}; {cure}")
            }
            Ok(_) => return Ok(()),
        };
        let reason = format!("{}: contact_endpoint {problem}", unreachable(from.kind));
        Err((reason, None))
    }

    /// The agent shows its token, be it expired, or its key: the same id and token, for another lifetime. Only what is
    /// new goes into the journal, so that asking again does not make the journal grow.
    fn re_attach(&self, own: &Member, meta: &AgentMeta, from: &Applicant) -> Admission {
        if let Some(here) = self.at_endpoint(meta)
            && here.id != own.id
        {
            let reason = format!("{}: {}", unreachable(from.kind), taken(here));
            return Admission::rejected(reason, None);
        }
        let member = described(own, meta);
        if member == *own && own.expires >= from.now.plus(self.rules.token_lifetime / 2) {
            return Admission::unchanged(own);
        }
        Admission::accepted(self.registered(member, from))
    }

    /// The agent asks from the endpoint of a member, but shows neither its token nor its key.
    fn without_token(&self, member: &Member, meta: &AgentMeta, from: &Applicant) -> Admission {
        if !self.is_open_to(from) {
            // Whoever waits for the next league must learn that it is only too late for this one.
            let reason = format!("{}: {}", late(from.kind), taken(member));
            return Admission::rejected(reason, Some(Code::E019));
        }
        if member.kind != from.kind || member.peer != from.request.peer {
            let reason = format!("{}: {}", unreachable(from.kind), taken(member));
            return Admission::rejected(reason, None);
        }
        let asked_just_now = from.now <= member.registered_at;
        match asked_just_now {
            true => Admission::unchanged(member), // a new token at most once a second
            false => self.renew(member, meta, from),
        }
    }

    /// A known agent with a new token; the old one is void.
    fn renew(&self, known: &Member, meta: &AgentMeta, from: &Applicant) -> Admission {
        let renewed = Member {
            token: token(&known.id, from.secret),
            registration_key: meta.registration_key.clone(),
            ..described(known, meta)
        };
        Admission::accepted(self.registered(renewed, from))
    }

    fn newcomer(&self, meta: &AgentMeta, from: &Applicant) -> Admission {
        if !self.is_open_to(from) {
            return Admission::rejected(late(from.kind), Some(Code::E019));
        }
        let room = self.rules.max_players;
        if from.kind == Kind::Player && self.members(Kind::Player).len() >= room {
            let reason = format!("Maximum players reached: {room} may register");
            return Admission::rejected(reason, None);
        }
        let id = self.id_for(meta, from);
        let nobody = Member {
            kind: from.kind,
            display_name: String::new(),
            endpoint: String::new(),
            max_concurrent_matches: 0,
            uses_match_tokens: false,
            token: token(&id, from.secret),
            id,
            expires: from.now,
            registration_key: meta.registration_key.clone(),
            peer: from.request.peer,
            registered_at: from.now,
            registrations: 0,
        };
        Admission::accepted(self.registered(described(&nobody, meta), from))
    }

    /// Whether an agent without a token may register: before the start; later a referee, while no live one is left.
    fn is_open_to(&self, from: &Applicant) -> bool {
        let referee_wanted = from.kind == Kind::Referee && from.referee_wanted;
        !self.started || referee_wanted && self.open_round().is_some()
    }

    /// The member with the marks of this registration.
    fn registered(&self, member: Member, from: &Applicant) -> Member {
        Member {
            expires: from.now.plus(self.rules.token_lifetime),
            peer: from.request.peer,
            registered_at: from.now,
            registrations: member.registrations + 1,
            ..member
        }
    }

    /// The agent that the configuration lists at that endpoint, if there is one.
    fn listed_at(&self, kind: Kind, meta: &AgentMeta) -> Option<&Listed> {
        let of_kind = self.rules.listed.iter().filter(|it| it.kind == kind);
        let same = |it: &&Listed| Endpoint::same(&it.endpoint, &meta.contact_endpoint);
        of_kind.into_iter().find(same)
    }

    /// The id that a newcomer asks for; else the one listed for its endpoint; else the lowest free one.
    fn id_for(&self, meta: &AgentMeta, from: &Applicant) -> String {
        let is_free = |id: &String| !self.members.contains_key(id);
        let sender = from.request.envelope.sender.split_once(':');
        let wish = sender.filter(|(kind, id)| *kind == from.kind.word() && from.kind.is_id(id));
        let wish = wish.map(|(_, id)| id.to_string());
        let listed = || self.listed_at(from.kind, meta).map(|it| it.id.clone());
        let lowest = || (1..).map(|n| from.kind.numbered(n)).find(is_free);
        let id = wish.filter(is_free).or_else(|| listed().filter(is_free));
        id.or_else(lowest).unwrap_or_default()
    }

    /// Who holds a token, expired or not.
    pub fn holder(&self, token: &str) -> Option<&Member> {
        self.members.values().find(|it| equal(&it.token, token))
    }

    /// Whose request this is. The token says so; `sender` must not say otherwise.
    pub fn identify(
        &self,
        sender: &str,
        token: Option<&str>,
        now: Timestamp,
    ) -> Result<&Member, Refusal> {
        let mut members = self.members.values();
        let named = members.find(|it| sender == signature(it.kind, &it.id));
        let nobody = || {
            let is_referee = sender.starts_with(Kind::Referee.word());
            let code = if is_referee { Code::E013 } else { Code::E005 };
            let problem = format!("got {:?}, which is not registered here", cut(sender, 60));
            Refusal::field(code, "sender", problem)
        };
        if !self.rules.tokens {
            return named.ok_or_else(nobody);
        }
        let Some(token) = token else {
            let problem = "missing; it came with the registration";
            return Err(Refusal::field(Code::E011, "auth_token", problem));
        };
        let Some(member) = self.holder(token) else {
            let named = named.ok_or_else(nobody)?;
            let problem = format!("not the token of {}", named.id);
            return Err(Refusal::field(Code::E012, "auth_token", problem)
                .with("provided_token", cut(token, 60))
                .with("expected_format", "tok-{agent_id}-{hash}"));
        };
        if named.is_some_and(|named| named.id != member.id) {
            let problem = format!(
                "this is the token of {}, not of {}",
                member.id,
                cut(sender, 60)
            );
            return Err(Refusal::field(Code::E012, "auth_token", problem));
        }
        if member.expires <= now {
            let cure = "register again with it, and it is good again";
            let problem = format!("expired at {}; {cure}", member.expires);
            return Err(Refusal::field(Code::E012, "auth_token", problem)
                .with("expired_at", member.expires.to_string()));
        }
        Ok(member)
    }
}

/// A member as it now describes itself.
fn described(known: &Member, meta: &AgentMeta) -> Member {
    Member {
        display_name: meta.display_name.clone(),
        endpoint: meta.contact_endpoint.clone(),
        max_concurrent_matches: meta.max_concurrent_matches.unwrap_or(0),
        uses_match_tokens: meta.uses_match_tokens == Some(true),
        ..known.clone()
    }
}

/// The endpoint is that of a member, and the request does not show that it comes from this member.
fn taken(member: &Member) -> String {
    let id = &member.id;
    let cure = format!("if {id} lost its card, the operator can say: restore {id}");
    format!("contact_endpoint is {id}'s, whose token must come with the request; {cure}")
}

/// How an agent signs.
fn signature(kind: Kind, id: &str) -> String {
    format!("{kind}:{id}")
}

fn late(kind: Kind) -> &'static str {
    match kind {
        Kind::Referee => "League already started",
        _ => "Registration closed - league already started",
    }
}

fn unreachable(kind: Kind) -> &'static str {
    match kind {
        Kind::Referee => "Endpoint unreachable",
        _ => "Contact endpoint unreachable",
    }
}
