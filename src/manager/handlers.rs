//! What the manager answers: one `match` over the messages, exhaustive, and below it what each arm
//! does.
//!
//! A handler asks the league for a decision, has the journal keep it (`Store::commit`), and
//! answers. No lock is held while an answer is sent. Who is let in is decided in `registration.rs`;
//! which reports are taken, in `results.rs`. What is shown beside the messages is in `about.rs`.
//! `around` is whatever shows the league, its pages and screens (`Around` in `src/manager.rs`).

use crate::manager::Manager;
use crate::manager::contact::RefereeState;
use crate::manager::league::{League, Member};
use crate::manager::registration::{Applicant, answer};
use crate::net::agent::{Agent, Denial, Request, Toolbox};
use crate::net::http::Reply;
use crate::net::log::Level;
use crate::net::secret::secret;
use crate::protocol::*;
use crate::wire::{SHOWN, Timestamp, cut, equal};
use serde_json::Value;
use std::io;
use std::net::IpAddr;

impl Agent for Manager {
    fn kind(&self) -> Kind {
        Kind::Manager
    }

    fn handle(&self, request: &Request, message: Message) -> Result<Option<Message>, Denial> {
        Ok(Some(match message {
            Message::RefereeRegisterRequest(it) => {
                self.admit(Kind::Referee, &it.referee_meta, request)?
            }
            Message::LeagueRegisterRequest(it) => {
                self.admit(Kind::Player, &it.player_meta, request)?
            }
            Message::MatchResultReport(report) => self.report(request, &report)?,
            Message::LeagueQuery(query) => {
                let sender = self.sender_of(request)?;
                let answer = |league: &League| league.answer(&query, &sender);
                self.store.read(answer)?.into()
            }
            Message::StartLeague(_) => self.start_league(request)?,
            Message::LeagueControl(order) => self.control(request, &order)?,
            // These are not for a manager: they are refused before they come here.
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
        if let Some(words) = words_for(packet, peer, refusal) {
            self.turn_away("refused", &words);
        }
    }

    fn toolbox(&self) -> Toolbox<'_> {
        self.tools()
    }

    fn asked_in_vain(&self, what: &str, peer: IpAddr) {
        let door = "players register with register_player at /mcp";
        self.turn_away(
            "asked_in_vain",
            &format!("{peer} asked for {what}, which nobody has here; {door}"),
        );
    }

    fn holder(&self, token: &str) -> Option<String> {
        self.store
            .read(|league| league.holder(token).map(Member::signature))
    }

    fn page(&self, path: &str, query: &str, peer: IpAddr) -> Option<Reply> {
        self.around.page(self, path, query, peer)
    }

    fn health(&self) -> Value {
        self.how_it_is()
    }
}

impl Manager {
    /// Lets an agent in, or says why not.
    fn admit(&self, kind: Kind, meta: &AgentMeta, request: &Request) -> io::Result<Message> {
        let nobody_referees = |league: &League| self.board.usable_referees(league).is_empty();
        let applicant = Applicant {
            kind,
            request,
            trusted: self.is_operator(request),
            referee_wanted: self.store.read(nobody_referees),
            secret: &secret(self.program.config.system.security.token_length.0),
            now: Timestamp::now(),
        };
        let decide = |league: &League| Ok::<_, io::Error>(league.register(meta, &applicant));
        let admission = self.store.commit(decide)?;
        match &admission {
            Ok(member) => {
                self.board.note_registered(&member.id);
                self.store.nudge(); // what the board noted is no event
            }
            // it waits for the next league
            Err((_, Some(Code::E019))) if self.store.read(League::is_over) => {}
            Err((reason, _)) => {
                let name = cut(&meta.display_name, 50);
                let endpoint = cut(&meta.contact_endpoint, 200);
                let peer = request.peer;
                let words = format!("rejected {kind} {name} at {endpoint}, from {peer}: {reason}");
                self.around.turned_away(&words); // the log has the answer, which says why
            }
        }
        Ok(answer(kind, admission, self.program.league_id()))
    }

    fn turn_away(&self, event_type: &str, words: &str) {
        self.program.log().say(Level::Warning, event_type, words);
        self.around.turned_away(words);
    }

    /// Whether a request comes from this machine, or carries the operator's token.
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

    /// Records a result before it is acknowledged. Taken or refused, the report shows that its
    /// referee is at work.
    fn report(&self, request: &Request, report: &MatchResultReport) -> Result<Message, Denial> {
        let sender = self.sender_of(request)?;
        let judged = self.store.commit(|league| {
            let event = league.judge(&sender, request, report, Timestamp::now())?;
            Ok::<_, Denial>((event, ()))
        });
        self.board.note_referee(&sender.id, RefereeState::Alive);
        if judged.is_err() {
            self.board.tell_anew(&sender.id); // it may have missed that the match is played again
        }
        judged?;
        let match_id = report.match_id.clone();
        let status = "recorded".into();
        Ok(MatchResultAck { match_id, status }.into())
    }

    /// Does what the operator says, durably, and says by name what was done.
    fn control(&self, request: &Request, order: &LeagueControl) -> Result<Message, Denial> {
        self.check_operator(request)?;
        let decide = |league: &League| Ok::<_, Denial>(league.control(order, Timestamp::now())?);
        let words = self.store.commit(decide)?;
        self.program.log().say(Level::Info, "control", &*words);
        let mut status = self.status();
        status.reason = Some(words);
        Ok(status.into())
    }

    fn start_league(&self, request: &Request) -> Result<Message, Denial> {
        self.check_operator(request)?;
        self.start(0, 0)?; // with those who are here
        Ok(self.status().into())
    }
}

/// What a person should hear of a refused registration or report: no program can tell its author.
fn words_for(packet: &Value, peer: IpAddr, refusal: &Refusal) -> Option<String> {
    let text = |value: &Value, key: &str| Some(cut(value[key].as_str()?, SHOWN));
    let message_type = text(packet, "message_type")?;
    let why = cut(&refusal.to_string(), 400);
    if message_type == MatchResultReport::NAME {
        let match_id = cut(&text(packet, "match_id").unwrap_or_default(), 20);
        return Some(format!(
            "refused a report of {match_id}, from {peer}: {why}"
        ));
    }
    if !message_type.ends_with("_REGISTER_REQUEST") {
        return None;
    }
    let meta = packet.get("player_meta").unwrap_or(&packet["referee_meta"]);
    let name = text(meta, "display_name").unwrap_or("somebody".into());
    let place = text(meta, "contact_endpoint").map_or(String::new(), |url| format!(" at {url}"));
    Some(format!(
        "refused to register {name}{place}, from {peer}: {why}"
    ))
}
