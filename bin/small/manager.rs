//! The small manager: it registers the agents, makes the schedule, announces each round, records the
//! results, and names the champion.
//!
//! It keeps everything in memory: a league ends with it, and its agents wait. It accepts what the
//! referee of a match reports, and waits for each agent that it calls. The manager of chapter two, the
//! league among strangers (`src/manager/`), writes a journal before it answers (`journal.rs` there),
//! checks a report by playing its moves again (`results.rs`), replaces a lost referee
//! (`schedule.rs`), and lets a slow agent delay only itself (`notifier.rs`).

mod net;
mod state;

use league::games;
use league::protocol::{
    AgentKind, AgentMeta, Call, Champion, Envelope, ErrorCode, FinalStanding, IncomingMessage,
    LeagueCompleted, LeaguePhase, LeagueQuery, LeagueQueryResponse, LeagueRegisterResponse,
    LeagueStandingsUpdate, LeagueStatus, ManagerRequest, MatchResultAck, MatchResultReport,
    ProtocolError, RefereeRegisterResponse, RegistrationStatus, Reply, ResultStatus,
    RoundAnnouncement, RoundCompleted, RoundSummary,
};
use net::{Agent, Destination, Options};
use state::{League, Member};
use std::collections::HashSet;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;
use tiny_http::Server;

/// Maximum time without an accepted message while matches are played. A match takes a few minutes.
const MAX_SILENCE: Duration = Duration::from_secs(600);

struct Manager {
    agent: Arc<Agent>,
    /// With so many players, and a referee, the league starts by itself.
    wanted_players: Option<usize>,
    league: Mutex<League>,
}

fn main() {
    let started = net::start(AgentKind::Manager);
    let (agent, server, options) = started.unwrap_or_else(|problem| net::exit(2, &problem));
    run(agent, server, options).unwrap_or_else(|problem| net::exit(1, &problem));
}

/// The life of a manager.
fn run(agent: Agent, server: Server, options: Options) -> Result<(), String> {
    // Answer each request in a thread of its own.
    let agent = Arc::new(agent);
    let manager = Arc::new(Manager {
        agent: Arc::clone(&agent),
        wanted_players: options.players,
        league: Mutex::new(League::new(&agent.league_file)),
    });
    println!("{} at {}", agent.league_file.display_name, agent.url);
    let host = Arc::clone(&manager);
    let handler = move |received: &IncomingMessage<ManagerRequest>| host.handle(received);
    let accepted = net::serve(agent, server, Arc::new(handler));

    // Wait for the start: the last registration, or START_LEAGUE. The lock is free again before each
    // `recv`.
    while manager.league().phase == LeaguePhase::Waiting {
        accepted.recv().map_err(|error| error.to_string())?;
    }

    // Play round after round, and name the champion.
    let total_rounds = manager.league().total_rounds();
    for round_id in 1..=total_rounds {
        println!("\nRound {round_id} of {total_rounds}");
        manager.league().current_round = round_id;
        manager.play_round(round_id, &accepted)?;
        manager.complete_round(round_id, total_rounds);
    }
    manager.complete_league(total_rounds);
    Ok(())
}

impl Manager {
    /// Locks the league. Do not call this in a `for` loop over the same league: it would wait for
    /// itself.
    fn league(&self) -> MutexGuard<'_, League> {
        self.league.lock().unwrap()
    }

    // ------------------------------------------------------------ Rounds

    /// Sends ROUND_ANNOUNCEMENT: to the players, then to the referees, which begin at once.
    fn announce_round(&self, round_id: u32) {
        for kind in [AgentKind::Player, AgentKind::Referee] {
            let announcement = RoundAnnouncement {
                league_id: self.agent.league_id.clone(),
                round_id,
                matches: self.league().announcement(round_id, kind),
                match_token: None,
            };
            let conversation_id = format!("conv-round-{round_id}-announce");
            self.tell(Some(kind), &conversation_id, &announcement);
        }
    }

    /// Announces a round, and waits until each of its matches has a result. After each, all players
    /// get the table.
    fn play_round(&self, round_id: u32, accepted: &Receiver<ManagerRequest>) -> Result<(), String> {
        let mut open = HashSet::new();
        for the_match in self.league().matches_of(round_id) {
            if the_match.result.is_none() {
                open.insert(the_match.id.clone());
            }
        }
        self.announce_round(round_id);
        while !open.is_empty() {
            let message = accepted
                .recv_timeout(MAX_SILENCE)
                .map_err(|_| format!("the league ends: no referee reports {open:?}"))?;
            if let ManagerRequest::MatchResultReport(report) = message
                && open.remove(&report.match_id)
            {
                println!("  {}", self.league().describe(&report));
                let table = LeagueStandingsUpdate {
                    league_id: self.agent.league_id.clone(),
                    round_id,
                    standings: self.league().standings(),
                };
                let conversation_id = format!("conv-{}-table", report.match_id.to_lowercase());
                self.tell(Some(AgentKind::Player), &conversation_id, &table);
            }
        }
        Ok(())
    }

    /// Sends ROUND_COMPLETED to all agents.
    fn complete_round(&self, round_id: u32, total_rounds: u32) {
        let mut summary = RoundSummary::default();
        for the_match in self.league().matches_of(round_id) {
            summary.total_matches += 1;
            match the_match.result.as_ref().map(|result| result.status) {
                Some(ResultStatus::Win) => summary.wins += 1,
                Some(ResultStatus::Draw) => summary.draws += 1,
                _ => summary.technical_losses += 1,
            }
        }
        let completed = RoundCompleted {
            league_id: self.agent.league_id.clone(),
            round_id,
            matches_completed: summary.total_matches,
            summary,
            next_round_id: (round_id < total_rounds).then_some(round_id + 1),
        };
        let conversation_id = format!("conv-round-{round_id}-complete");
        self.tell(None, &conversation_id, &completed);
    }

    /// Prints the table and the champion, and sends LEAGUE_COMPLETED to all agents: then they end.
    fn complete_league(&self, total_rounds: u32) {
        let mut league = self.league();
        league.phase = LeaguePhase::Completed;
        let standings = league.standings();
        let total_matches = league.matches.len() as u32;
        drop(league);
        state::print_table(&standings);

        let mut final_standings = Vec::new();
        for row in &standings {
            final_standings.push(FinalStanding {
                rank: row.rank,
                player_id: row.player_id.clone(),
                points: row.points,
                display_name: Some(row.display_name.clone()),
            });
        }
        let champion = &standings[0];
        let completed = LeagueCompleted {
            league_id: self.agent.league_id.clone(),
            total_rounds,
            total_matches,
            champion: Champion {
                player_id: champion.player_id.clone(),
                display_name: champion.display_name.clone(),
                points: champion.points,
            },
            final_standings,
        };
        self.tell(None, "conv-league-complete", &completed);
    }

    /// Sends a notice to all agents, or to those of one kind, at the same time; and waits until each
    /// has it or has failed. The manager proves itself to an agent by that agent's own token.
    fn tell<N: Call + Sync>(&self, kind: Option<AgentKind>, conversation_id: &str, notice: &N) {
        let mut members = self.league().members.clone();
        members.retain(|member| kind.is_none_or(|kind| member.kind == kind));
        thread::scope(|scope| {
            for member in members {
                let member = Destination {
                    url: member.meta.contact_endpoint,
                    token: Some(member.token),
                    conversation_id: conversation_id.to_string(),
                    timeout_sec: self.agent.settings.timeouts.generic_response_timeout_sec,
                };
                scope.spawn(move || self.agent.call_with_retries(&member, notice).is_ok());
            }
        });
    }

    // ------------------------------------------------------------ Requests

    /// Returns the reply to a message.
    fn handle(
        &self,
        received: &IncomingMessage<ManagerRequest>,
    ) -> Result<Option<Reply>, ProtocolError> {
        let envelope = &received.envelope;
        let reply = match &received.message {
            ManagerRequest::RefereeRegisterRequest(request) => {
                self.register(AgentKind::Referee, &request.referee_meta, &envelope.sender)
            }
            ManagerRequest::LeagueRegisterRequest(request) => {
                self.register(AgentKind::Player, &request.player_meta, &envelope.sender)
            }
            // This needs no token: we listen on 127.0.0.1, which only this machine can call.
            ManagerRequest::StartLeague(_) => self.start_league(),
            ManagerRequest::MatchResultReport(report) => {
                self.record(&self.sender_of(envelope)?, report)?
            }
            ManagerRequest::LeagueQuery(query) => self.query(&self.sender_of(envelope)?, query),
            ManagerRequest::LeagueControl(_) => {
                let (code, problem) = (ErrorCode::MissingField, "not for the small manager");
                return Err(ProtocolError::field(code, "message_type", problem));
            }
        };
        Ok(Some(reply))
    }

    /// Returns the member that sent a message: `sender` says who it is, its token proves it.
    fn sender_of(&self, envelope: &Envelope) -> Result<Member, ProtocolError> {
        let Some(token) = &envelope.auth_token else {
            return Err(ProtocolError::field(
                ErrorCode::TokenMissing,
                "auth_token",
                "missing",
            ));
        };
        let sender = &envelope.sender;
        let league = self.league();
        let mut members = league.members.iter();
        let code = match members.find(|member| *sender == member.name()) {
            Some(member) if member.token == *token => return Ok(member.clone()),
            Some(_) => ErrorCode::TokenInvalid,
            None if sender.starts_with("referee") => ErrorCode::RefereeNotRegistered,
            None => ErrorCode::PlayerNotRegistered,
        };
        let problem = format!("{sender} has not registered, or has another token");
        Err(ProtocolError::field(code, "sender", problem))
    }

    /// Registers an agent, or says why not. With the last player that is wanted the league starts.
    fn register(&self, kind: AgentKind, meta: &AgentMeta, sender: &str) -> Reply {
        let mut league = self.league();
        let is_late = league.phase != LeaguePhase::Waiting;
        let response = match league.register(kind, meta, sender) {
            Ok(member) => LeagueRegisterResponse {
                status: RegistrationStatus::Accepted,
                player_id: Some(member.id),
                auth_token: Some(member.token),
                league_id: Some(self.agent.league_id.clone()),
                ..Default::default()
            },
            Err(reason) => LeagueRegisterResponse {
                reason: Some(reason),
                error_code: is_late.then_some(ErrorCode::LateRegistration),
                ..Default::default()
            },
        };
        let answer = response.player_id.as_ref().or(response.reason.as_ref());
        println!("{} registers: {}", meta.display_name, answer.unwrap());

        // Start the league if this was the last agent that it waited for.
        let players = league.members_of(AgentKind::Player).len();
        if !is_late
            && self.wanted_players.is_some_and(|wanted| players >= wanted)
            && let Err(missing) = league.start()
        {
            println!("{missing}");
        }
        match kind {
            AgentKind::Referee => RefereeRegisterResponse::from(response).into(),
            _ => response.into(),
        }
    }

    /// Starts the league if it can start. Returns LEAGUE_STATUS.
    fn start_league(&self) -> Reply {
        let mut league = self.league();
        let mut reason = None;
        if league.phase == LeaguePhase::Waiting {
            reason = league.start().err();
        }
        let completed = league.matches.iter().filter(|m| m.result.is_some());
        Reply::LeagueStatus(LeagueStatus {
            league_id: self.agent.league_id.clone(),
            status: league.phase,
            current_round: league.current_round,
            total_rounds: league.total_rounds(),
            matches_completed: completed.count() as u32,
            reason,
        })
    }

    /// Records the result of a match. Only its referee may report it, and the first report counts.
    fn record(&self, sender: &Member, report: &MatchResultReport) -> Result<Reply, ProtocolError> {
        let mut league = self.league();
        let mut matches = league.matches.iter_mut();
        let the_match = matches.find(|m| m.id == report.match_id && m.referee_id == sender.id);
        let Some(the_match) = the_match else {
            let problem = format!("not a match of {}", sender.id);
            return Err(ProtocolError::field(
                ErrorCode::MatchMismatch,
                "match_id",
                problem,
            ));
        };
        // A report has the same facts as GAME_OVER in another form: compare that one.
        let result = games::game_result(&report.result);
        if *the_match.result.get_or_insert(result.clone()) != result {
            let problem = "another result is recorded";
            return Err(ProtocolError::field(
                ErrorCode::MatchMismatch,
                "result",
                problem,
            ));
        }
        Ok(Reply::MatchResultAck(MatchResultAck {
            match_id: report.match_id.clone(),
            status: "recorded".to_string(),
        }))
    }

    /// Answers a query: about its sender, if it names no player.
    fn query(&self, sender: &Member, query: &LeagueQuery) -> Reply {
        let query_type = query.query_type.as_str().unwrap_or_default();
        let params = query.query_params.clone().unwrap_or_default();
        let player_id = params["player_id"].as_str().unwrap_or(&sender.id);
        let answer = self.league().answer(query_type, player_id);
        LeagueQueryResponse::new(query_type.to_string(), answer).into()
    }
}
