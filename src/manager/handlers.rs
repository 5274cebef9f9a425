//! What the manager answers: one `match` over the messages, exhaustive, and below it what each arm does.
//!
//! A handler asks the league for a decision, has the journal keep it (`Store::commit`), and answers. No lock is held
//! while an answer is sent.

use crate::manager::Manager;
use crate::manager::board::Standing;
use crate::manager::league::{League, Member};
use crate::manager::registration::{Admission, Applicant};
use crate::manager::tools::tools;
use crate::net::agent::{Agent, Denial, Request, Toolbox};
use crate::net::http::Reply;
use crate::net::log::Level;
use crate::net::secret::secret;
use crate::program::terminal::shown;
use crate::protocol::*;
use crate::wire::{Timestamp, cut, equal};
use serde_json::Value;
use std::io;
use std::net::IpAddr;

impl Agent for Manager {
    fn kind(&self) -> Kind {
        Kind::Manager
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        let league_id = self.program.league_id();
        Ok(Some(match message {
            Message::RefereeRegisterRequest(it) => {
                let admission = self.admit(Kind::Referee, &it.referee_meta, request)?;
                admission.for_referee(league_id).into()
            }
            Message::LeagueRegisterRequest(it) => {
                let admission = self.admit(Kind::Player, &it.player_meta, request)?;
                admission.for_player(league_id).into()
            }
            Message::MatchResultReport(report) => self.report(request, &report)?,
            Message::LeagueQuery(query) => {
                let sender = self.sender_of(request)?;
                let answer = |league: &League| league.answer(&query, &sender);
                self.store.read(answer)?.into()
            }
            Message::StartLeague(_) => self.start_league(request)?,
            Message::LeagueControl(order) => self.control(request, &order)?,
            // Nobody sends these to a manager: they were refused before.
            Message::RefereeRegisterResponse(_)
            | Message::LeagueRegisterResponse(_)
            | Message::LeagueStatus(_)
            | Message::RoundAnnouncement(_)
            | Message::GameInvitation(_)
            | Message::GameJoinAck(_)
            | Message::ChooseParityCall(_)
            | Message::ChooseParityResponse(_)
            | Message::ChooseMoveCall(_)
            | Message::ChooseMoveResponse(_)
            | Message::GameOver(_)
            | Message::GameError(_)
            | Message::MatchResultAck(_)
            | Message::LeagueStandingsUpdate(_)
            | Message::RoundCompleted(_)
            | Message::LeagueCompleted(_)
            | Message::LeagueQueryResponse(_)
            | Message::LeagueError(_) => return Ok(None),
        }))
    }

    fn refused(&self, packet: &Value, peer: IpAddr, refusal: &Refusal) {
        let text = |value: &Value, key: &str| Some(cut(value[key].as_str()?, 200));
        let message_type = text(packet, "message_type").unwrap_or_default();
        let why = cut(&refusal.to_string(), 400);
        if message_type.ends_with("_REGISTER_REQUEST") {
            let metas = ["player_meta", "referee_meta"];
            let said = |key: &str| metas.iter().find_map(|meta| text(&packet[meta], key));
            let name = said("display_name").unwrap_or("somebody".into());
            let place = said("contact_endpoint").map_or(String::new(), |url| format!(" at {url}"));
            let words = format!("refused to register {name}{place}, from {peer}: {why}");
            self.turn_away("refused", &words);
        }
        if message_type == MatchResultReport::NAME {
            let match_id = text(packet, "match_id").unwrap_or_default();
            let words = format!(
                "refused a report of {}, from {peer}: {why}",
                cut(&match_id, 20)
            );
            self.turn_away("refused", &words);
        }
    }

    fn toolbox(&self) -> Toolbox<'_> {
        tools(self)
    }

    fn asked_in_vain(&self, what: &str, peer: IpAddr) {
        let door = "players register with register_player at /mcp";
        self.turn_away(
            "asked_in_vain",
            &format!("{peer} asked for {what}, which nobody has here; {door}"),
        );
    }

    fn holder(&self, token: &str) -> Option<String> {
        let signs = |member: &Member| format!("{}:{}", member.kind, member.id);
        self.store.read(|league| league.holder(token).map(signs))
    }

    fn page(&self, path: &str, query: &str, peer: IpAddr) -> Option<Reply> {
        self.around.page(self, path, query, peer)
    }

    /// The manager's own state, and the fields of LEAGUE_STATUS; the uptime is in seconds.
    fn health(&self) -> Value {
        let status = self.status();
        let entry = &self.program.config.agents.league_manager;
        let state = match status.status {
            Progress::Waiting => AgentState::Registered,
            Progress::Running => AgentState::Active,
            Progress::Completed => AgentState::Shutdown,
        };
        let mut health = serde_json::to_value(status).unwrap_or_default();
        health["name"] = entry.display_name.0.clone().into();
        health["version"] = entry.version.0.clone().into();
        health["id"] = self.program.client.sender().into();
        health["kind"] = Kind::Manager.word().into();
        health["state"] = state.word().into();
        health["uptime"] = self.program.started.elapsed().as_secs().into();
        health
    }
}

impl Manager {
    /// Lets an agent in, or says why not.
    fn admit(&self, kind: Kind, meta: &AgentMeta, request: &Request) -> io::Result<Admission> {
        let applicant = Applicant {
            kind,
            request,
            trusted: self.is_operator(request),
            referee_wanted: self.has_no_referee(),
            secret: &secret(self.program.config.system.security.token_length.0),
            now: Timestamp::now(),
        };
        let admission = self.store.commit(|league| {
            let admission = league.register(meta, &applicant);
            let event = match &admission {
                Admission::Accepted { event, .. } => event.clone(),
                Admission::Rejected { .. } => None,
            };
            Ok::<_, io::Error>((event, admission))
        })?;
        match &admission {
            Admission::Accepted { member, .. } => {
                self.board.note_registered(&member.id);
                self.store.nudge();
                self.start_if_complete()?;
            }
            Admission::Rejected { reason, .. } => {
                let name = cut(&meta.display_name, 50);
                let endpoint = cut(&meta.contact_endpoint, 200);
                let peer = request.peer;
                let words = format!("rejected {kind} {name} at {endpoint}, from {peer}: {reason}");
                self.turn_away("rejected", &words);
            }
        }
        Ok(admission)
    }

    /// Whether the league has started and no referee is left that can be given matches.
    fn has_no_referee(&self) -> bool {
        self.store.read(|league| {
            let usable = |member: &&Member| {
                let standing = self.board.contact(&member.id).standing;
                matches!(standing, Standing::Alive | Standing::Overdue)
            };
            league.started && !league.members(Kind::Referee).iter().any(usable)
        })
    }

    fn turn_away(&self, event_type: &str, words: &str) {
        self.program.log().say(Level::Warning, event_type, words);
        self.around.turned_away(words);
    }

    /// From this machine, or with the operator's token.
    fn is_operator(&self, request: &Request) -> bool {
        let token = request.envelope.auth_token.as_deref().unwrap_or_default();
        request.peer.is_loopback() || equal(token, &self.operator_token)
    }

    fn check_operator(&self, request: &Request) -> Result<(), Refusal> {
        if self.is_operator(request) {
            return Ok(());
        }
        let has_token = request.envelope.auth_token.is_some();
        let code = if has_token { Code::E012 } else { Code::E011 };
        let problem =
            "only the operator may do that: from this machine, or with --operator-token-file";
        Err(Refusal::field(code, "auth_token", problem))
    }

    /// Whose request this is.
    fn sender_of(&self, request: &Request) -> Result<Member, Refusal> {
        let envelope = &request.envelope;
        let token = envelope.auth_token.as_deref();
        let now = Timestamp::now();
        self.store
            .read(|league| league.identify(&envelope.sender, token, now).cloned())
    }

    /// Records a result before it is acknowledged. Taken or refused, the report shows that its referee is at work.
    fn report(&self, request: &Request, report: &MatchResultReport) -> Result<Message, Denial> {
        let sender = self.sender_of(request)?;
        let judged = self.store.commit(|league| {
            let event = league.judge(&sender, request, report, Timestamp::now())?;
            Ok::<_, Denial>((event, ()))
        });
        self.board.note_standing(&sender.id, Standing::Alive);
        if judged.is_err() {
            self.board.forget(&sender.id); // it may have missed that the match is played again
        }
        judged?;
        let match_id = report.match_id.clone();
        let status = "recorded".into();
        Ok(MatchResultAck { match_id, status }.into())
    }

    fn control(&self, request: &Request, order: &LeagueControl) -> Result<Message, Denial> {
        self.check_operator(request)?;
        let words = self.obey(order)?;
        self.terminal.say(&shown(&format!("the operator: {words}")));
        let mut status = self.status();
        status.reason = Some(words);
        Ok(status.into())
    }

    /// Does what the operator says, durably, and says by name what was done.
    pub fn obey(&self, order: &LeagueControl) -> Result<String, Denial> {
        let stays = self.program.args.has("--stay");
        let words = self.store.commit(|league| {
            if order.action == Action::Replay && league.progress() == Progress::Completed && !stays
            {
                let problem = "got replay, but the league is over and its agents end: only with --stay they stay";
                return Err(Refusal::field(Code::E003, "action", problem).into());
            }
            Ok::<_, Denial>(league.control(order, Timestamp::now())?)
        })?;
        self.program.log().say(Level::Info, "control", &*words);
        Ok(words)
    }

    fn start_league(&self, request: &Request) -> Result<Message, Denial> {
        self.check_operator(request)?;
        self.start(0, 0)?;
        Ok(self.status().into())
    }
}
