//! The small manager: it registers the agents, makes the schedule, announces each round, records the
//! results, and names the champion.
//!
//! It keeps everything in memory: when it ends, the league is lost, and its agents wait for ever. It
//! accepts what the referee of a match reports, and waits for each agent that it calls. The manager
//! of chapter two, the league among strangers (`src/manager/`), writes a journal before it answers
//! (`journal.rs` there), checks a report by playing its moves again (`results.rs`), replaces a lost
//! referee (`rounds.rs`), and lets a slow agent delay only itself (`contacts.rs`).

mod config;
mod net;
mod state;

use league::games;
use league::protocol::{
    AgentKind, AgentMeta, Call, Champion, Envelope, ErrorCode, FinalStanding, GameResult,
    IncomingMessage, LeagueCompleted, LeaguePhase, LeagueQuery, LeagueQueryResponse,
    LeagueRegisterResponse, LeagueStandingsUpdate, LeagueStatus, ManagerRequest, MatchResultAck,
    MatchResultReport, ProtocolError, RefereeRegisterResponse, RegistrationStatus, Reply,
    ResultStatus, RoundAnnouncement, RoundCompleted, RoundSummary, Standing,
};
use net::{Agent, Decision, Destination};
use serde_json::Value;
use state::{League, Match, Member};
use std::collections::{BTreeMap, HashSet};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use std::{process, thread};

/// Maximum time without an accepted message while matches are played. No match takes so long: most
/// take milliseconds, and one whose players are silent takes some minutes.
const MAX_SILENCE: Duration = Duration::from_secs(600);

struct Manager {
    agent: Arc<Agent>,
    /// With so many players, and a referee, the league starts by itself.
    wanted_players: usize,
    league: Mutex<League>,
}

fn main() {
    if let Err(problem) = run() {
        eprintln!("{problem}");
        process::exit(1);
    }
}

/// The life of a manager.
fn run() -> Result<(), String> {
    // Answer each request in a thread of its own.
    let (agent, server, options) = net::start(AgentKind::Manager)?;
    let agent = Arc::new(agent);
    let manager = Arc::new(Manager {
        agent: Arc::clone(&agent),
        wanted_players: options.players.unwrap_or(usize::MAX),
        league: Mutex::new(League::new(agent.league_file.clone())),
    });
    println!("{} at {}", agent.league_file.display_name, agent.url);
    let host = Arc::clone(&manager);
    let accepted = net::serve(agent, server, move |received| host.handle(received));

    // Wait for the start: the last registration, or START_LEAGUE. The lock is free again before each
    // `recv`.
    while manager.league().phase == LeaguePhase::Waiting {
        accepted.recv().map_err(|error| error.to_string())?;
    }

    // Play round after round, and name the champion. The log may have earlier leagues.
    manager
        .agent
        .log("league_begun", "", &Value::Null, &Value::Null);
    let total_rounds = manager.league().total_rounds();
    for round_id in 1..=total_rounds {
        println!("\nRound {round_id} of {total_rounds}");
        manager.league().current_round = round_id;
        manager.play_round(round_id, &accepted)?;
        manager.complete_round(round_id);
    }
    manager.complete_league();
    Ok(())
}

impl Manager {
    /// Locks the league. In the head of a `for`, `while let`, `if let` or `match`, and among the
    /// arguments of a call, the lock is held to the end of the whole statement: do not call this again
    /// inside, it would wait for itself for ever. Put what you need into a `let` of its own first.
    /// After a panic of a thread that holds the lock, `unwrap` panics in all others, too.
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
            self.tell(Some(kind), &announcement);
        }
    }

    /// Announces a round, and waits until each of its matches has a result. After each, all players
    /// get the table.
    fn play_round(&self, round_id: u32, accepted: &Receiver<ManagerRequest>) -> Result<(), String> {
        let mut open = HashSet::new();
        for the_match in self.league().matches_of(round_id) {
            open.insert(the_match.id.clone());
        }
        self.announce_round(round_id);
        while !open.is_empty() {
            let message = accepted
                .recv_timeout(MAX_SILENCE)
                .map_err(|_| format!("the league ends: no referee reports {open:?}"))?;
            let ManagerRequest::MatchResultReport(report) = message else {
                continue;
            };
            if open.remove(&report.match_id) {
                let table = LeagueStandingsUpdate {
                    league_id: self.agent.league_id.clone(),
                    round_id,
                    standings: self.league().standings(),
                };
                self.tell(Some(AgentKind::Player), &table);
            }
        }
        Ok(())
    }

    /// Prints the results of a round in the order of the schedule, and sends ROUND_COMPLETED to all
    /// agents.
    fn complete_round(&self, round_id: u32) {
        let league = self.league();
        let total_rounds = league.total_rounds();
        let mut summary = RoundSummary::default();
        for the_match in league.matches_of(round_id) {
            let Some(result) = &the_match.result else {
                continue;
            };
            println!("  {}", describe(&league, the_match, result));
            summary.total_matches += 1;
            match result.status {
                ResultStatus::Win => summary.wins += 1,
                ResultStatus::Draw => summary.draws += 1,
                ResultStatus::TechnicalLoss => summary.technical_losses += 1,
            }
        }
        drop(league);
        let completed = RoundCompleted {
            league_id: self.agent.league_id.clone(),
            round_id,
            matches_completed: summary.total_matches,
            summary,
            next_round_id: (round_id < total_rounds).then_some(round_id + 1),
        };
        self.tell(None, &completed);
    }

    /// Prints the table and the champion, and sends LEAGUE_COMPLETED to all agents: then they end.
    fn complete_league(&self) {
        let mut league = self.league();
        league.phase = LeaguePhase::Completed;
        let standings = league.standings();
        let (total_rounds, total_matches) = (league.total_rounds(), league.matches.len() as u32);
        drop(league);
        print_table(&standings);

        let final_standings = standings.iter().map(|row| FinalStanding {
            rank: row.rank,
            player_id: row.player_id.clone(),
            points: row.points,
            display_name: Some(row.display_name.clone()),
        });
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
            final_standings: final_standings.collect(),
        };
        self.tell(None, &completed);
    }

    /// Sends a notice to all agents, or to those of one kind, at the same time; and waits until each
    /// has it or has failed. The manager proves itself to an agent by that agent's own token.
    fn tell<N: Call + Sync>(&self, kind: Option<AgentKind>, notice: &N) {
        let name = notice.name().to_lowercase();
        let conversation_id = format!("conv-{name}-{:08x}", fastrand::u32(..));
        let mut members = self.league().members.clone();
        members.retain(|member| kind.is_none_or(|kind| member.kind == kind));
        thread::scope(|scope| {
            for member in members {
                let to = Destination {
                    id: member.id,
                    url: member.meta.contact_endpoint,
                    token: member.token,
                    conversation_id: conversation_id.clone(),
                };
                scope.spawn(move || {
                    let _ = self.agent.call_with_retries(&to, notice); // the log says it
                });
            }
        });
    }

    // ------------------------------------------------------------ Requests

    /// Returns the reply to a message.
    fn handle(&self, received: &IncomingMessage<ManagerRequest>) -> Decision {
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
            ManagerRequest::LeagueControl(_) => return Err(net::not_here("LEAGUE_CONTROL")),
        };
        Ok(Some(reply))
    }

    /// Returns the member that sent a message: `sender` says who it is, its token proves it.
    fn sender_of(&self, envelope: &Envelope) -> Result<Member, ProtocolError> {
        let sender = &envelope.sender;
        let league = self.league();
        let mut members = league.members.iter();
        let Some(member) = members.find(|member| member.name() == *sender) else {
            let code = if sender.starts_with("referee") {
                ErrorCode::RefereeNotRegistered
            } else {
                ErrorCode::PlayerNotRegistered
            };
            return Err(ProtocolError::field(code, "sender", "has not registered"));
        };
        net::check_token(envelope, &member.token)?;
        Ok(member.clone())
    }

    /// Registers an agent, or says why not. With the last player that is wanted the league starts.
    fn register(&self, kind: AgentKind, meta: &AgentMeta, sender: &str) -> Reply {
        let mut league = self.league();
        let is_late = league.phase != LeaguePhase::Waiting;
        let response = match league.register(kind, meta, sender) {
            Ok(member) => {
                println!("{} registers as {}", meta.display_name, member.id);
                LeagueRegisterResponse {
                    status: RegistrationStatus::Accepted,
                    player_id: Some(member.id),
                    auth_token: member.token,
                    league_id: Some(self.agent.league_id.clone()),
                    ..Default::default()
                }
            }
            Err(reason) => {
                println!("{} is rejected: {reason}", meta.display_name);
                LeagueRegisterResponse {
                    reason: Some(reason),
                    error_code: is_late.then_some(ErrorCode::LateRegistration),
                    ..Default::default()
                }
            }
        };

        // Start the league if this was the last agent that it waited for.
        let players = league.ids_of(AgentKind::Player).len();
        if players >= self.wanted_players
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
        let reason = league.start().err();
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
            return Err(ProtocolError::mismatch("match_id", problem));
        };
        // A report has the same facts as GAME_OVER in another form: compare that one.
        let result = games::game_result(&report.result);
        if the_match
            .result
            .as_ref()
            .is_some_and(|first| *first != result)
        {
            return Err(ProtocolError::mismatch("result", "another one is recorded"));
        }
        the_match.result = Some(result);
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

/// Returns a line about a match and its result.
fn describe(league: &League, the_match: &Match, result: &GameResult) -> String {
    let name = |id: &String| format!("{} {id}", league.name_of(id));
    let [a, b] = the_match.players.each_ref().map(name);
    let outcome = match &result.winner_player_id {
        Some(winner) => format!("{} wins", name(winner)),
        None if result.status == ResultStatus::Draw => "a draw".to_string(),
        None => "both lose".to_string(),
    };
    let reason = result.reason.as_deref().unwrap_or_default();
    format!("{:6}  {a} - {b}: {outcome} ({reason})", the_match.id)
}

/// Prints the table, the points of each name, and the champion or all that share the first rank.
fn print_table(standings: &[Standing]) {
    println!("\nRank  Id    Player            Played  Wins  Draws  Losses  Points");
    let mut champions = Vec::new();
    let mut totals = BTreeMap::new();
    for row in standings {
        let (id, name) = (&row.player_id, &row.display_name);
        println!(
            "{:4}  {id:4}  {name:16}  {:6}  {:4}  {:5}  {:6}  {:6}",
            row.rank, row.played, row.wins, row.draws, row.losses, row.points
        );
        if row.rank == 1 {
            champions.push(format!("{name} {id}"));
        }

        let (points, played) = totals.entry(name).or_insert((0, 0));
        *points += row.points;
        *played += row.played;
    }

    println!();
    for (name, (points, played)) in totals {
        println!("            all {name:12}  {played:6}{points:29}");
    }
    let names = champions.join(" and ");
    println!("\nChampion: {names} with {} points", standings[0].points);
}
