//! Who may register, under which id, with which token; and whose request a request is.
//!
//! `League::register` is the way in. What the agent says of itself is checked first. Then the manager asks who the agent
//! is: a member that shows its token or its registration key, somebody at a member's endpoint, or a newcomer. The rules
//! in words stand in `protocol.md`, under "Registration" and "Registering again".

use crate::manager::admission::{Admission, Rejection, reject};
use crate::manager::league::{Event, League, Listed, Member};
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
    /// Whether no live referee is left, so that one may still come although the league has started.
    pub referee_wanted: bool,
    /// The random part of a token, should it need one.
    pub secret: &'a str,
    /// When it came.
    pub now: Timestamp,
}

impl League {
    /// Lets an agent in, or in again, or says why not. Nothing is new where the agent stays as it was.
    pub fn register(&self, meta: &AgentMeta, from: &Applicant) -> (Option<Event>, Admission) {
        let admission = self.admit(meta, from);
        let is_new = |it: &&Member| self.members.get(&it.id) != Some(*it);
        let new = admission.as_ref().ok().filter(is_new);
        (new.cloned().map(Event::Registered), admission)
    }

    fn admit(&self, meta: &AgentMeta, from: &Applicant) -> Admission {
        let here = self.at_endpoint(meta);
        let shown = self.shown(meta, from);
        let known = shown.or_else(|| self.restored(meta, from));
        self.check(meta, from, known.is_some(), known.or(here))?;
        match (known, here) {
            (Some(known), Some(here)) if known.id != here.id => others(here, from.kind),
            (Some(own), _) if shown.is_some() => Ok(self.re_attached(own, meta, from)),
            (Some(restored), _) => Ok(self.member(&restored.id, meta, from)),
            (None, here) => self.unknown(here, meta, from),
        }
    }

    /// The member that shows its token, or the key that it made before it first asked.
    fn shown(&self, meta: &AgentMeta, from: &Applicant) -> Option<&Member> {
        let is = |known: Option<&String>, shown: &Option<String>| {
            let both = known.zip(shown.as_ref());
            both.is_some_and(|(known, shown)| equal(known, shown))
        };
        let (token, key) = (&from.request.envelope.auth_token, &meta.registration_key);
        self.members.values().find(|it| {
            it.kind == from.kind
                && (is(Some(&it.token), token) || is(it.registration_key.as_ref(), key))
        })
    }

    /// The member that the operator restored a short while ago, if it asks under its id or at its endpoint, and from
    /// where it was or from this machine.
    fn restored(&self, meta: &AgentMeta, from: &Applicant) -> Option<&Member> {
        let Request { envelope, peer } = from.request;
        self.members.values().find(|it| {
            let since = self.let_in.get(&it.id);
            it.kind == from.kind
                && (envelope.sender == it.signature() || is_at(it, meta))
                && (*peer == it.peer || peer.is_loopback())
                && since.is_some_and(|since| from.now <= since.plus(LET_IN))
        })
    }

    fn at_endpoint(&self, meta: &AgentMeta) -> Option<&Member> {
        self.members.values().find(|it| is_at(it, meta))
    }

    /// Whether this agent may register at all, and what it says of itself is legal. `is_known`: it is a member for sure;
    /// `who`: which member it is, or may be.
    fn check(
        &self,
        meta: &AgentMeta,
        from: &Applicant,
        is_known: bool,
        who: Option<&Member>,
    ) -> Result<(), Rejection> {
        if from.kind == Kind::Referee && !from.trusted && !is_known {
            let who = "referees register from the manager's machine or with the operator token";
            return reject(format!("Not permitted: {who}"), None);
        }
        League::check_meta(meta, from.kind, &self.rules.game_type)?;
        self.check_endpoint(meta, from)?;
        let listed = self.listed_at(from.kind, meta);
        if let Some(Listed { id, .. }) = listed.filter(|listed| !listed.active) {
            let why = format!("the agents configuration lists {id} as inactive");
            return reject(format!("Not active: {why}"), None);
        }
        match who.filter(|who| self.removed.contains(&who.id)) {
            Some(removed) => reject(format!("{REMOVED}: {}", removed.id), None),
            None => Ok(()),
        }
    }

    /// Whether what an agent of a kind says of itself is legal in a league of that game.
    pub fn check_meta(meta: &AgentMeta, kind: Kind, game: &str) -> Result<(), Rejection> {
        let capacity = meta.max_concurrent_matches;
        let mut code = None;
        let reason = if !DisplayName::is_good(&meta.display_name) {
            let length = meta.display_name.chars().count();
            format!("Invalid display_name: got {length} characters, must be 1 to 50")
        } else if !Version::is_good(&meta.version) {
            format!("Invalid version: must be {}", Version::EXPECTED)
        } else if !meta.game_types.iter().any(|it| it == game) {
            format!("Unsupported game type: game_types must have {game}")
        } else if kind == Kind::Referee && !capacity.is_some_and(Within::<1, 10>::is_good) {
            "Invalid max_concurrent_matches: must be 1 to 10".into()
        } else if let Some(version) = &meta.protocol_version
            && version.trim_start_matches("league.v").split('.').next() != Some("2")
        {
            code = Some(Code::E018);
            "Protocol version mismatch: protocol_version must be 2.x.y".into()
        } else {
            return Ok(());
        };
        reject(reason, code)
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
        reject(reason, None)
    }

    /// The agent shows its token, be it expired, or its key: the same id and token, for another lifetime. Only what is
    /// new goes into the journal, so that asking again does not make the journal grow.
    fn re_attached(&self, own: &Member, meta: &AgentMeta, from: &Applicant) -> Member {
        let again = Member {
            token: own.token.clone(),
            registration_key: own.registration_key.clone(),
            ..self.member(&own.id, meta, from)
        };
        let as_before = Member {
            expires: own.expires,
            peer: own.peer,
            registered_at: own.registered_at,
            registrations: own.registrations,
            ..again.clone()
        };
        let lasts = own.expires >= from.now.plus(self.rules.token_lifetime / 2);
        match lasts && as_before == *own {
            true => as_before,
            false => again,
        }
    }

    /// The agent shows nothing by which it is known: it is a newcomer, or somebody at the endpoint of a member. After the
    /// start only a referee may come so, while no live one is left.
    fn unknown(&self, here: Option<&Member>, meta: &AgentMeta, from: &Applicant) -> Admission {
        let room = self.rules.max_players;
        let needs_referee = from.referee_wanted && self.open_round().is_some();
        match here {
            _ if self.started && !(from.kind == Kind::Referee && needs_referee) => {
                let more = here.map(|here| format!(": {}", taken(here)));
                reject(
                    late(from.kind).to_string() + &more.unwrap_or_default(),
                    Some(Code::E019),
                )
            }
            Some(here) if here.kind != from.kind || here.peer != from.request.peer => {
                others(here, from.kind)
            }
            Some(here) if from.now <= here.registered_at => Ok(here.clone()), // a new token at most once a second
            Some(here) => Ok(self.member(&here.id, meta, from)),
            None if from.kind == Kind::Player && self.members(Kind::Player).len() >= room => {
                let words = format!("Maximum players reached: {room} may register");
                reject(words, None)
            }
            None => Ok(self.member(&self.id_for(meta, from), meta, from)),
        }
    }

    /// What an agent of that id is by this registration, with a new token; an old one is void.
    fn member(&self, id: &str, meta: &AgentMeta, from: &Applicant) -> Member {
        let before = self.members.get(id).map_or(0, |it| it.registrations);
        Member {
            kind: from.kind,
            id: id.into(),
            display_name: meta.display_name.clone(),
            endpoint: meta.contact_endpoint.clone(),
            max_concurrent_matches: meta.max_concurrent_matches.unwrap_or(0),
            uses_match_tokens: meta.uses_match_tokens == Some(true),
            token: token(id, from.secret),
            expires: from.now.plus(self.rules.token_lifetime),
            registration_key: meta.registration_key.clone(),
            peer: from.request.peer,
            registered_at: from.now,
            registrations: before + 1,
        }
    }

    /// The agent that the configuration lists at that endpoint, if there is one.
    fn listed_at(&self, kind: Kind, meta: &AgentMeta) -> Option<&Listed> {
        let mut listed = self.rules.listed.iter();
        let is_here = |it: &Listed| Endpoint::same(&it.endpoint, &meta.contact_endpoint);
        listed.find(|it| it.kind == kind && is_here(it))
    }

    /// The id that a newcomer asks for; else the one listed for its endpoint; else the lowest free one.
    fn id_for(&self, meta: &AgentMeta, from: &Applicant) -> String {
        let is_free = |id: &String| !self.members.contains_key(id);
        let sender = from.request.envelope.sender.split_once(':');
        let wish = sender.filter(|(kind, id)| *kind == from.kind.word() && from.kind.is_id(id));
        let wish = wish.map(|(_, id)| id.to_string()).into_iter();
        let listed = self.listed_at(from.kind, meta).map(|it| it.id.clone());
        let numbered = (1..).map(|n| from.kind.numbered(n));
        let mut ids = wish.chain(listed).chain(numbered);
        ids.find(is_free).unwrap_or_default()
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
        let named = members.find(|it| sender == it.signature());
        let nobody = || {
            let is_referee = sender.starts_with(Kind::Referee.word());
            let code = if is_referee { Code::E013 } else { Code::E005 };
            let problem = format!("got {:?}, which is not registered here", cut(sender, 60));
            Refusal::field(code, "sender", problem)
        };
        let invalid = |problem: String| Refusal::field(Code::E012, "auth_token", problem);
        if !self.rules.tokens {
            return named.ok_or_else(nobody);
        }
        let Some(token) = token else {
            let problem = "missing; it came with the registration";
            return Err(Refusal::field(Code::E011, "auth_token", problem));
        };
        let Some(member) = self.holder(token) else {
            let named = named.ok_or_else(nobody)?;
            return Err(invalid(format!("not the token of {}", named.id))
                .with("provided_token", cut(token, 60))
                .with("expected_format", "tok-{agent_id}-{hash}"));
        };
        if named.is_some_and(|named| named.id != member.id) {
            let (id, came) = (&member.id, cut(sender, 60));
            return Err(invalid(format!("this is the token of {id}, not of {came}")));
        }
        if member.expires <= now {
            let cure = "register again with it, and it is good again";
            let problem = format!("expired at {}; {cure}", member.expires);
            return Err(invalid(problem).with("expired_at", member.expires.to_string()));
        }
        Ok(member)
    }
}

/// Whether a member is registered at the endpoint that an agent names.
fn is_at(member: &Member, meta: &AgentMeta) -> bool {
    Endpoint::same(&member.endpoint, &meta.contact_endpoint)
}

/// The endpoint is that of a member, and the request does not show that it comes from this member.
fn others<T>(member: &Member, kind: Kind) -> Result<T, Rejection> {
    reject(format!("{}: {}", unreachable(kind), taken(member)), None)
}

/// What somebody is told who asks from the endpoint of a member.
fn taken(member: &Member) -> String {
    let id = &member.id;
    let cure = format!("if {id} lost its card, the operator can say: restore {id}");
    format!("contact_endpoint is {id}'s, whose token must come with the request; {cure}")
}

impl Member {
    /// How the member signs.
    pub fn signature(&self) -> String {
        format!("{}:{}", self.kind, self.id)
    }
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
