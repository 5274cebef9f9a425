//! How a referee or a player joins a league, and joins it again: its card, and the conversation with the manager until
//! it has one (R5).

use crate::{
    agent::{Card, Me, Registrant},
    base,
    config_files::{PlayerDefaults, RefereeDefaults},
    endpoint::Endpoint,
    failure::{Failure, pause},
    files::{self, Access},
    log::Level,
    object,
    options::Stop,
    protocol::*,
    threads::lock,
    voice::{self, About, Peer},
    wire::Unread,
};
use std::{fs, path::PathBuf, time::Duration};

object! {
    /// A registration that was asked for and is not on a card yet, by endpoint: an agent that dies meanwhile asks in
    /// the same conversation again, and gets the same answer (R5).
    Asked { conversation_id: String, league_id: String, manager: String, endpoint: String, }
}

impl Me {
    /// The card of our id, else the one of our endpoint, if it is of this league and manager.
    pub(crate) fn find_card(&self) -> Option<Card> {
        let folder = self.data().join("agents");
        let found = files::read_json(&folder.join(format!("{}.json", self.wish()))).or_else(|| {
            let entries = fs::read_dir(&folder).ok()?.flatten();
            let mut cards = entries.filter_map(|entry| files::read_json::<Card>(&entry.path()));
            cards.find(|card| Endpoint::same(&card.endpoint, self.endpoint()))
        });
        let league = &self.config().rules.league_id;
        found.filter(|card: &Card| card.league_id == *league && Endpoint::same(&card.manager, self.base.manager()))
    }

    /// Registers, with the token of an older card if there is one; asks until the manager answers. `expired`: the
    /// manager has said that it knows that token, and that its time is over.
    pub fn register(&self, agent: &dyn Registrant, old: Option<Card>, expired: bool) -> Result<(), Stop> {
        let operator = base::operator_token(self.options())?;
        let expired = expired || old.as_ref().is_some_and(|card| self.has_expired(card));
        let own = old.as_ref().map(|card| card.token.clone()).filter(|token| !token.is_empty());
        lock(&self.card).take(); // what the manager sends from now on may carry the next token: it waits for it
        let card = match self.ask_to_register(own.clone().or(operator.clone()))? {
            // Another run of the league does not know our card; the operator's word may help.
            Err(_) if own.is_some() && operator.is_some() => self.ask_to_register(operator)?,
            answer => answer,
        };
        let card = card.map_err(|reason| Stop::failed(format!("rejected: {reason}")))?;
        // A token we do not know means a registration of its own, perhaps in another run of the league.
        let fresh = old.is_none_or(|old| old.agent_id != card.agent_id || !expired && old.token != card.token);
        if !fresh {
            self.voice().log.orchestrator(Level::Info, "resumed", format!("{} is known again", card.agent_id));
        }
        self.introduce(agent, card, fresh)
    }

    /// Whether the manager knows the token of a card, and its time is over. Registering with it we get another one, as
    /// in a new league; but what we keep stays ours. A manager that is not there yet is waited for; one that is there
    /// and does not answer does not know it.
    fn has_expired(&self, card: &Card) -> bool {
        self.voice().join(&format!("{}:{}", self.kind, card.agent_id), &card.league_id);
        let (league_id, query_type) = (card.league_id.clone(), Unread::new(QueryType::Standings.word()));
        let query = LeagueQuery { league_id, query_type, query_params: None }.into();
        let (conversation_id, auth_token) = (voice::conversation("known"), Some(card.token.clone()));
        let about = About { conversation_id, auth_token, ..About::default() };
        let reply = self.ask_manager(&query, &about, self.config().generic_limit, Failure::is_absence);
        matches!(reply, Ok(Message::LeagueError(error)) if error.says_expired())
    }

    /// Our card, or the reason why we are not let in. Asks until the manager answers.
    fn ask_to_register(&self, auth_token: Option<String>) -> Result<Result<Card, String>, Stop> {
        let (message, limit) = self.application()?;
        let about = About { conversation_id: self.conversation()?, auth_token, ..About::default() };
        let manager = self.base.manager();
        match self.ask_manager(&message, &about, limit, Failure::may_pass) {
            Ok(reply) => self.accepted(reply),
            Err(failure) => Err(Stop::failed(format!("{manager}: {}", failure.explain()))),
        }
    }

    /// Asks as long as `again` finds that the manager may answer yet, and says once whom we are waiting for.
    fn ask_manager(
        &self,
        message: &Message,
        about: &About,
        limit: Duration,
        again: impl Fn(&Failure) -> bool,
    ) -> Result<Message, Failure> {
        let to = Peer::manager(self.base.manager());
        let mut said = false;
        loop {
            match self.voice().ask(to, message, about, limit) {
                Err(failure) if again(&failure) => {
                    if !std::mem::replace(&mut said, true) {
                        eprintln!("waiting for the league manager at {} ({})", to.endpoint, failure.explain());
                    }
                    pause(self.config().retry.base_delay);
                }
                done => return done.map(|(_, reply)| reply),
            }
        }
    }

    /// The conversation of a registration: kept until its answer is on a card.
    fn conversation(&self) -> Result<String, Stop> {
        let asked: Option<Asked> = files::read_json(&self.asked());
        let (league_id, manager) = (self.config().rules.league_id.clone(), self.base.manager().to_string());
        let endpoint = self.endpoint().to_string();
        let same = |it: &Asked| it.league_id == league_id && it.manager == manager && it.endpoint == endpoint;
        if let Some(asked) = asked.filter(same) {
            return Ok(asked.conversation_id);
        }
        let conversation_id = voice::conversation(&format!("{}-registration", self.kind));
        let asked = Asked { conversation_id, league_id, manager, endpoint };
        files::replace_json(&self.asked(), Access::Owner, &asked)?;
        Ok(asked.conversation_id)
    }

    fn asked(&self) -> PathBuf {
        let port = Endpoint::parse(self.endpoint()).map_or(0, |endpoint| endpoint.port);
        self.data().join(format!("agents/{}-{port}.asked", self.kind))
    }

    /// What we say of ourselves, and how long we wait for an answer.
    fn application(&self) -> Result<(Message, Duration), Stop> {
        let (config, display_name, contact_endpoint) = (self.config(), self.display_name(), self.endpoint().into());
        Ok(if self.kind == Kind::Referee {
            let RefereeDefaults { version, game_types, .. } = config.referee(self.wish());
            let (max_concurrent_matches, uses_match_tokens) = (self.max_concurrent_matches()? as i32, Some(true));
            let protocol_version = None;
            let referee_meta = RefereeMeta {
                display_name,
                version,
                game_types,
                contact_endpoint,
                max_concurrent_matches,
                protocol_version,
                uses_match_tokens,
            };
            (RefereeRegisterRequest { referee_meta }.into(), config.register_referee_limit)
        } else {
            let PlayerDefaults { version, game_types, .. } = config.player(self.wish());
            let meta = PlayerMeta { display_name, version, game_types, contact_endpoint, protocol_version: None };
            (LeagueRegisterRequest { player_meta: meta }.into(), config.register_player_limit)
        })
    }

    /// What the manager's answer says.
    fn accepted(&self, reply: Message) -> Result<Result<Card, String>, Stop> {
        let (status, id, token, league_id, reason) = match reply {
            Message::RefereeRegisterResponse(it) => (it.status, it.referee_id, it.auth_token, it.league_id, it.reason),
            Message::LeagueRegisterResponse(it) => (it.status, it.player_id, it.auth_token, it.league_id, it.reason),
            Message::LeagueError(error) => return Err(Stop::failed(format!("refused: {}", error.explain()))),
            other => return Err(Stop::failed(format!("the manager answered with {}", other.name()))),
        };
        match (status, id.filter(|id| files::is_plain(id))) {
            (Verdict::Accepted, Some(agent_id)) => Ok(Ok(Card {
                agent_id,
                token: token.unwrap_or_default(),
                league_id: league_id.unwrap_or_else(|| self.config().rules.league_id.clone()),
                manager: self.base.manager().into(),
                endpoint: self.endpoint().into(),
            })),
            (Verdict::Accepted, None) => Err(Stop::failed("accepted, but without an id of letters and digits")),
            (Verdict::Rejected, _) => Ok(Err(reason.unwrap_or_default())),
        }
    }

    /// The manager has let us in: we sign and log under our id, begin, and keep the card.
    fn introduce(&self, agent: &dyn Registrant, card: Card, fresh: bool) -> Result<(), Stop> {
        self.voice().join(&format!("{}:{}", self.kind, card.agent_id), &card.league_id);
        self.voice().log.open(&card.agent_id, &format!("agents/{}.log.jsonl", card.agent_id));
        agent.begin(&card, fresh)?;
        let path = self.data().join(format!("agents/{}.json", card.agent_id));
        files::replace_json(&path, Access::Owner, &card)?;
        let _ = fs::remove_file(self.asked()); // if it stays, the next registration is in the same conversation
        *lock(&self.card) = Some(card);
        self.introduced.notify_all();
        Ok(())
    }
}
