//! What the manager answers: one exhaustive `match` over the requests, below it what each arm does;
//! and the tools that are no messages.
//!
//! A handler has the league decide and the journal store the event (`Store::commit`), and answers.
//! No lock is held while an answer is sent.

use super::Manager;
use super::league::{Event, League, Member};
use super::registration::{Application, Rejection, TOO_SOON, registration_reply, with_address};
use crate::net::agent::{Agent, HandlerError, NoArguments, Request, Tool, Toolbox};
use crate::net::http::Response;
use crate::net::sync::secret;
use crate::program::session::REMOVED;
use crate::program::terminal::sanitize;
use crate::protocol::{
    AgentKind, AgentMeta, Envelope, ErrorCode, ManagerRequest, MatchResultAck, MatchResultReport,
    ProtocolError, Reply,
};
use crate::values::{MAX_QUOTED_CHARS, Moment, Timestamp, constant_time_eq, peer_text, truncate};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

/// Minimum time between two changes of a member, whose times are in seconds.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);

/// Instructions for a language model that calls the tools of a manager.
const INSTRUCTIONS: &str = "The manager of a round-robin league. get_standings shows the table and \
    create_schedule who meets whom. Neither needs arguments. start_league starts the league when \
    enough players and a referee have registered, and tells what is missing otherwise. The other \
    tools are for the agents that play: their arguments are a whole league message. A refusal is a \
    tool error that says what was wrong.";

impl Agent for Manager {
    type Requests = ManagerRequest;

    const KIND: AgentKind = AgentKind::Manager;

    fn handle(
        &self,
        request: &Request,
        message: ManagerRequest,
    ) -> Result<Option<Reply>, HandlerError> {
        let reply = match message {
            ManagerRequest::RefereeRegisterRequest(body) => {
                self.register(AgentKind::Referee, &body.referee_meta, request)?
            }
            ManagerRequest::LeagueRegisterRequest(body) => {
                self.register(AgentKind::Player, &body.player_meta, request)?
            }
            ManagerRequest::MatchResultReport(report) => self.report(request, &report)?.into(),
            ManagerRequest::LeagueQuery(query) => {
                let sender = self.authenticate(request)?;
                let answer = self
                    .store
                    .read(|league| league.answer_query(&query, &sender));
                answer?.into()
            }
            ManagerRequest::StartLeague(_) => self.start_league(request)?.into(),
            ManagerRequest::LeagueControl(order) => self.control(request, &order)?.into(),
        };
        Ok(Some(reply))
    }

    /// Shows a refused registration on the screen.
    fn on_refused(&self, packet: &Value, peer: IpAddr, refusal: &ProtocolError) {
        let message_type = packet["message_type"].as_str().unwrap_or_default();
        let meta = packet.get("player_meta").or(packet.get("referee_meta"));
        if meta.is_some() || message_type.ends_with("_REGISTER_REQUEST") {
            self.show_rejected(meta.unwrap_or(&Value::Null), peer, &refusal.to_string());
        }
    }

    /// Shows a request for a method or a path that does not exist: its author may look here.
    fn on_not_found(&self, text: &str) {
        let hint = "players register with register_player at /mcp";
        self.print_rate_limited(&format!("{text}, which does not exist; {hint}"));
    }

    fn toolbox(&self) -> Toolbox<'_> {
        let mut tools = vec![
            Tool::new(
                "create_schedule",
                "Who meets whom, by round; before the start, as it would be with the players so far. Changes nothing.",
                |_: NoArguments, _| Ok(self.store.read(|league| league.schedule(None))?),
            ),
            Tool::new(
                "get_standings",
                "The current table: rank, points, wins, draws and losses of every player.",
                |_: NoArguments, _| Ok(self.store.read(League::standings_data)),
            ),
        ];
        tools.extend(self.hooks.tools(self));

        Toolbox {
            instructions: INSTRUCTIONS,
            lists_messages: true,
            tools,
        }
    }

    fn page(&self, path: &str, query: &str, peer: IpAddr) -> Option<Response> {
        self.hooks.page(self, path, query, peer)
    }

    /// Players are logged at the rate of unknown agents: they need not ask often.
    fn is_known(&self, envelope: &Envelope) -> bool {
        let token = envelope.auth_token.as_deref().unwrap_or_default();
        !self.program.config.system.security.enable_auth_tokens
            || constant_time_eq(token, &self.operator_token)
            || self.store.read(|league| {
                let owner = league.token_owner(token);
                owner.is_some_and(|owner| owner.kind == AgentKind::Referee)
            })
    }

    /// Returns the fields of LEAGUE_STATUS, who the manager is, and the uptime in seconds.
    fn health(&self) -> Value {
        let mut health = json!(self.status());
        health["id"] = self.program.client.sender().into();
        health["kind"] = json!(AgentKind::Manager);
        health["uptime"] = self.program.started.elapsed().as_secs().into();
        health
    }
}

impl Manager {
    /// Accepts or rejects an agent.
    fn register(
        &self,
        kind: AgentKind,
        meta: &AgentMeta,
        request: &Request,
    ) -> Result<Reply, HandlerError> {
        let trusted = self.is_operator(request);
        let meta = self.judged_meta(meta, request, trusted);
        let is_relayed = self.hooks.is_relay(&meta.contact_endpoint);
        let secret = &secret(self.program.config.system.security.token_length);
        let decide = || {
            self.store.commit(|league| {
                Ok::<_, HandlerError>(self.contacts.with(|table| {
                    league.decide_registration(&Application {
                        kind,
                        meta: &meta,
                        request,
                        trusted,
                        is_relayed,
                        max_per_address: self.max_per_address,
                        table,
                        secret,
                        now: Timestamp::now(),
                    })
                }))
            })
        };

        // An agent may be restarted on another port within the second after its registration.
        let is_too_soon = |rejection: &Rejection| rejection.reason == TOO_SOON;
        let mut decision = decide()?;
        if decision.as_ref().is_err_and(is_too_soon) {
            thread::sleep(CHANGE_INTERVAL);
            decision = decide()?;
        }

        self.record_decision(&decision, &meta, request.peer);
        Ok(registration_reply(kind, decision, self.program.league_id()))
    }

    /// Tells the contacts and the screen whether an agent was accepted.
    fn record_decision(
        &self,
        decision: &Result<Member, Rejection>,
        meta: &AgentMeta,
        peer: IpAddr,
    ) {
        match decision {
            // Wake the round loop: the member gets everything again, perhaps without an event.
            Ok(member) => {
                (self.contacts).with(|table| table.record_registration(member, Moment::now()));
                self.print_arrival(member);
                self.store.notify_all();
            }
            // The agent waits for the next league, and the operator knows why.
            Err(rejection) if rejection.reason.starts_with(REMOVED) => {}
            Err(Rejection {
                code: Some(ErrorCode::LateRegistration),
                ..
            }) if self.store.read(League::is_over) => {}
            Err(rejection) => self.show_rejected(&json!(meta), peer, &rejection.reason),
        }
    }

    /// Prints who was not accepted, and why.
    fn show_rejected(&self, meta: &Value, peer: IpAddr, reason: &str) {
        let name = quoted_text(&meta["display_name"]);
        let endpoint = quoted_text(&meta["contact_endpoint"]);
        let peer = peer_text(peer);
        let text = format!("rejected {name} at {endpoint}, from {peer}: {reason}");
        self.print_rate_limited(&text);
    }

    /// Returns the description of an agent as it is judged: with the address from which it came,
    /// and as that of a member if it shows a token that must not be replaced.
    fn judged_meta(&self, meta: &AgentMeta, request: &Request, trusted: bool) -> AgentMeta {
        let mut meta = match trusted {
            true => meta.clone(),
            false => with_address(meta, request.peer),
        };
        let token = request.envelope.auth_token.as_deref();
        if token.is_some_and(|token| !token.is_empty()) && !self.hooks.replaces_tokens() {
            meta.must_be_known = Some(true);
        }
        meta
    }

    /// Prints what an unknown agent has caused, unless there are too many such lines.
    fn print_rate_limited(&self, text: &str) {
        if self.program.may_print(text) {
            self.terminal.print_line(&sanitize(text));
        }
    }

    /// Records a result before it is acknowledged. Accepted or refused, the report shows that its
    /// referee is alive.
    fn report(
        &self,
        request: &Request,
        report: &MatchResultReport,
    ) -> Result<MatchResultAck, HandlerError> {
        let sender = self.authenticate(request)?;

        let recorded = self.store.commit(|league| {
            let event = league.check_report(&sender, report, Timestamp::now())?;
            if let Some(Event::Recorded(new)) = &event
                && let Some(the_match) = league.find(&new.match_id)
            {
                let conversation = &request.envelope.conversation_id;
                (self.contacts).with(|table| table.check_loser(the_match, new, conversation))?;
            }
            Ok::<_, HandlerError>((event, ()))
        });
        self.contacts
            .with(|table| table.record_report(&sender.id, Moment::now()));
        recorded?;

        let match_id = report.match_id.clone();
        let status = "recorded".into();
        Ok(MatchResultAck { match_id, status })
    }

    /// Returns the member that sent a request.
    fn authenticate(&self, request: &Request) -> Result<Member, ProtocolError> {
        self.store.read(|league| {
            let member = league.authenticate(&request.envelope, Timestamp::now());
            member.cloned()
        })
    }
}

/// Returns a text of an agent as it can be printed.
fn quoted_text(value: &Value) -> String {
    truncate(value.as_str().unwrap_or("unknown"), MAX_QUOTED_CHARS)
}
