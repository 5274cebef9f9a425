//! Who may register, under which id, with which token; and whose request a request is.
//!
//! `League::register` is the way in. What the agent says of itself is checked first. Then the
//! manager asks who the agent is: a member that shows its token or its registration key, somebody
//! at a member's endpoint, or a newcomer. `answer` tells the agent what has come of it. The rules
//! in words stand in `protocol.md`, under "Registration" and "Registering again".

use crate::manager::league::{Event, League, Member};
use crate::net::agent::Request;
use crate::program::config::AgentEntry;
use crate::protocol::*;
use crate::wire::{DisplayName, Endpoint, Timestamp, Version, Within, cut, equal, token};
use std::time::Duration;

/// The longest contact endpoint, in characters: announcements carry the endpoints of all players.
const LONGEST_ENDPOINT: usize = 200;
/// How long a restored agent may register without its token.
const LET_IN: Duration = Duration::from_secs(10 * 60);
/// Why a removed player is not let in.
const REMOVED: &str = "Removed by the operator, until the operator restores it";

/// What an agent is from now on; or why it is not let in (which field is wrong, and what is legal),
/// with the protocol's code where there is one.
pub type Admission<T = Member> = Result<T, (String, Option<Code>)>;

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
    /// Lets an agent in, or in again, or says why not. Nothing is new where the agent stays as it
    /// was.
    pub fn register(&self, meta: &AgentMeta, from: &Applicant) -> (Option<Event>, Admission) {
        let admission = self.admit(meta, from);
        let is_new = |it: &&Member| self.members.get(&it.id) != Some(*it);
        let new = admission.as_ref().ok().filter(is_new);
        (new.cloned().map(Event::Registered), admission)
    }

    fn admit(&self, meta: &AgentMeta, from: &Applicant) -> Admission {
        let here = self.members.values().find(|it| is_at(it, meta));
        let shown = self.shown(meta, from);
        let known = shown.or_else(|| self.restored(meta, from));
        self.check(meta, from, known, here)?;
        match (known, here) {
            (Some(known), Some(here)) if known.id != here.id => others(here, from.kind),
            (Some(own), _) if shown.is_some() => Ok(self.re_attached(own, meta, from)),
            (Some(restored), _) => Ok(self.member(&restored.id, meta, from)),
            (None, here) => self.unknown(here, meta, from),
        }
    }

    /// The member that shows its token, or the key that it made before it first asked. An empty one
    /// is none: whoever fills in a form may send that.
    fn shown(&self, meta: &AgentMeta, from: &Applicant) -> Option<&Member> {
        let same = |known: &str, shown: &Option<String>| {
            let mut shown = shown.iter().filter(|shown| !shown.is_empty());
            shown.any(|shown| equal(known, shown))
        };
        let (token, key) = (&from.request.envelope.auth_token, &meta.registration_key);
        let has_key = |it: &Member| it.registration_key.iter().any(|own| same(own, key));
        let mut members = self.members.values();
        members.find(|it| it.kind == from.kind && (same(&it.token, token) || has_key(it)))
    }

    /// The member that the operator restored a short while ago, if it asks under its id or at its
    /// endpoint, and from where it was or from this machine.
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

    /// Whether this agent may register at all, and what it says of itself is legal. `known`: the
    /// member that it is for sure; `here`: the one at its endpoint.
    fn check(
        &self,
        meta: &AgentMeta,
        from: &Applicant,
        known: Option<&Member>,
        here: Option<&Member>,
    ) -> Admission<()> {
        if from.kind == Kind::Referee && !from.trusted && known.is_none() {
            let who = "referees register from the manager's machine or with the operator token";
            return reject(format!("Not permitted: {who}"), None);
        }
        check_meta(meta, from.kind, &self.config.league.game_type)?;
        check_endpoint(meta, from)?;
        let listed = self.listed_at(from.kind, meta);
        if let Some(listed) = listed.filter(|listed| listed.active == Some(false)) {
            let why = format!("the agents configuration lists {} as inactive", listed.id());
            return reject(format!("Not active: {why}"), None);
        }
        match known.or(here).filter(|it| self.removed.contains(&it.id)) {
            Some(removed) => reject(format!("{REMOVED}: {}", removed.id), None),
            None => Ok(()),
        }
    }

    /// The agent shows its token, be it expired, or its key: the same id and token, for another
    /// lifetime. Only what is new goes into the journal, so that asking again does not make the
    /// journal grow.
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
            ..again.clone()
        };
        let lasts = own.expires >= from.now.plus(self.config.token_lifetime() / 2);
        if lasts && as_before == *own {
            as_before
        } else {
            again
        }
    }

    /// The agent shows nothing by which it is known: it is a newcomer, or somebody at the endpoint
    /// of a member. After the start only a referee may come so, while no live one is left.
    fn unknown(&self, here: Option<&Member>, meta: &AgentMeta, from: &Applicant) -> Admission {
        let room = self.config.league.participants.max_players.0;
        let needs_referee = from.referee_wanted && self.open_round().is_some();
        match here {
            _ if self.started && !(from.kind == Kind::Referee && needs_referee) => {
                let more = here.map(|here| format!(": {}", taken(here)));
                let reason = late(from.kind).to_string() + &more.unwrap_or_default();
                reject(reason, Some(Code::E019))
            }
            Some(here) if here.kind != from.kind || here.peer != from.request.peer => {
                others(here, from.kind)
            }
            // a new token at most once a second
            Some(here) if from.now <= here.registered_at => Ok(here.clone()),
            Some(here) => Ok(self.member(&here.id, meta, from)),
            None if from.kind == Kind::Player
                && self.members(Kind::Player).len() >= room as usize =>
            {
                let reason = format!("Maximum players reached: {room} may register");
                reject(reason, None)
            }
            None => Ok(self.member(&self.id_for(meta, from), meta, from)),
        }
    }

    /// What an agent of that id is by this registration, with a new token; an old one is void.
    fn member(&self, id: &str, meta: &AgentMeta, from: &Applicant) -> Member {
        Member {
            kind: from.kind,
            id: id.into(),
            display_name: meta.display_name.clone(),
            endpoint: meta.contact_endpoint.clone(),
            max_concurrent_matches: meta.max_concurrent_matches.unwrap_or(0),
            uses_match_tokens: meta.uses_match_tokens == Some(true),
            token: token(id, from.secret),
            expires: from.now.plus(self.config.token_lifetime()),
            registration_key: meta.registration_key.clone(),
            peer: from.request.peer,
            registered_at: from.now,
        }
    }

    /// The agent that the configuration lists at that endpoint, if there is one.
    fn listed_at(&self, kind: Kind, meta: &AgentMeta) -> Option<&AgentEntry> {
        let mut listed = self.config.listed(kind).iter();
        listed.find(|it| Endpoint::same(it.url(), &meta.contact_endpoint))
    }

    /// The id that a newcomer asks for; else the one listed for its endpoint; else the lowest free
    /// one.
    fn id_for(&self, meta: &AgentMeta, from: &Applicant) -> String {
        let is_free = |id: &String| !self.members.contains_key(id);
        let sender = from.request.envelope.sender.split_once(':');
        let wish = sender.filter(|(kind, id)| *kind == from.kind.word() && from.kind.is_id(id));
        let wish = wish.map(|(_, id)| id.to_string()).into_iter();
        let listed = self.listed_at(from.kind, meta).map(|it| it.id().into());
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
        let id = sender.rsplit(':').next().unwrap_or_default();
        let named = self.members.get(id);
        let named = named.filter(|it| sender == it.signature());
        let nobody = || {
            let is_referee = sender.starts_with(Kind::Referee.word());
            let code = if is_referee { Code::E013 } else { Code::E005 };
            Refusal::got(code, "sender", sender, "which is not registered here")
        };
        let invalid = |problem: String| Refusal::field(Code::E012, "auth_token", problem);
        if !self.config.system.security.enable_auth_tokens {
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
            return Err(invalid(problem));
        }
        Ok(member)
    }
}

/// Whether a member is registered at the endpoint that an agent names.
fn is_at(member: &Member, meta: &AgentMeta) -> bool {
    Endpoint::same(&member.endpoint, &meta.contact_endpoint)
}

/// Whether what an agent of a kind says of itself is legal in a league of that game.
pub fn check_meta(meta: &AgentMeta, kind: Kind, game: &str) -> Admission<()> {
    let capacity = meta.max_concurrent_matches;
    let mut code = None;
    let reason = if !DisplayName::is_good(&meta.display_name) {
        format!("Invalid display_name: must be {}", DisplayName::EXPECTED)
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
fn check_endpoint(meta: &AgentMeta, from: &Applicant) -> Admission<()> {
    let (came, peer) = (&meta.contact_endpoint, from.request.peer);
    let problem = match Endpoint::parse(came) {
        _ if came.chars().count() > LONGEST_ENDPOINT => {
            format!("must be at most {LONGEST_ENDPOINT} characters")
        }
        Err(legal) => format!("must be {legal}"),
        Ok(it) if it.is_loopback() && !peer.is_loopback() => {
            let place = format!("http://{peer}:{}/mcp", it.port);
            let cure = format!("start with --host 0.0.0.0 --contact-endpoint {place}");
            let came = cut(came, 60);
            format!("{came} means this very machine, but the request came from {peer}; {cure}")
        }
        Ok(_) => return Ok(()),
    };
    let reason = format!("{}: contact_endpoint {problem}", unreachable(from.kind));
    reject(reason, None)
}

/// The agent is not let in.
fn reject<T>(reason: String, code: Option<Code>) -> Admission<T> {
    Err((reason, code))
}

/// The endpoint is that of a member, and the request does not show that it comes from this member.
fn others(member: &Member, kind: Kind) -> Admission {
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

/// What the agent is told. A referee and a player are answered by messages that differ in one name.
pub fn answer(kind: Kind, admission: Admission, league_id: &str) -> Message {
    let (member, rejection) = (admission.as_ref().ok(), admission.as_ref().err());
    let status = member.map_or(Verdict::Rejected, |_| Verdict::Accepted);
    let id = member.map(|it| it.id.clone());
    let auth_token = member.map(|it| it.token.clone());
    let league_id = member.map(|_| league_id.to_string());
    let proves_itself = member.map(|_| true); // every request of ours carries the agent's own token
    let reason = rejection.map(|(reason, _)| reason.clone());
    let error_code = rejection.and_then(|(_, code)| Some((*code)?.to_string()));
    match kind {
        Kind::Referee => Message::RefereeRegisterResponse(RefereeRegisterResponse {
            status,
            referee_id: id,
            reason,
            auth_token,
            league_id,
            error_code,
            proves_itself,
        }),
        _ => Message::LeagueRegisterResponse(LeagueRegisterResponse {
            status,
            player_id: id,
            reason,
            auth_token,
            league_id,
            error_code,
            proves_itself,
        }),
    }
}
