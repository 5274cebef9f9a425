//! The small referee: it registers, plays the matches that the manager gives it, and reports them.
//!
//! It plays all its matches at once, and a result that the manager does not acknowledge is lost. The
//! referee of chapter two, the league among strangers, keeps results on disk until they are
//! acknowledged (`src/referee/outbox.rs`), and takes the tokens of a match from the manager
//! (`src/referee/assignments.rs`).

mod net;

use league::games::{self, Move, even_odd};
use league::protocol::{
    AgentKind, AgentMeta, ChooseParityCall, ErrorCode, GAME, GameError, GameInvitation, GameOver,
    GameResult, IncomingMessage, LeagueRegisterResponse, MatchEntry, MatchResultReport, MatchState,
    Parity, ProtocolError, Record, RefereeRegisterRequest, RefereeRequest, Reply, RetryInfo,
    RoundAnnouncement, TurnContext,
};
use league::values::{self, Endpoint, Timestamp};
use net::{Agent, Destination};
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tiny_http::Server;

/// A match. Player A has seat 0, player B has seat 1.
struct Match {
    agent: Arc<Agent>,
    id: String,
    round_id: u32,
    conversation_id: String,
    players: [String; 2],
    urls: [String; 2],
    /// Made for this match, one for each player, which sends it back. It is not checked here.
    tokens: [String; 2],
    standings: [Option<Record>; 2],
}

fn main() {
    let started = net::start(AgentKind::Referee);
    let (agent, server, _) = started.unwrap_or_else(|problem| net::exit(2, &problem));
    run(agent, server).unwrap_or_else(|problem| net::exit(1, &problem));
}

/// The life of a referee.
fn run(mut agent: Agent, server: Server) -> Result<(), String> {
    // Register. Then answer each request in a thread of its own.
    let referee_meta = AgentMeta {
        display_name: format!("Agent {}", agent.id),
        version: "1.0.0".to_string(),
        game_types: vec![GAME.to_string()],
        contact_endpoint: agent.url.clone(),
        max_concurrent_matches: Some(10), // the greatest legal number; this referee has no limit
        ..AgentMeta::default()
    };
    let manager = agent.manager("conv-registration");
    let response = agent.call_with_retries(&manager, &RefereeRegisterRequest { referee_meta });
    agent.join_league(response.map(LeagueRegisterResponse::from))?;
    let agent = Arc::new(agent);
    let host = Arc::clone(&agent);
    let handler = move |received: &IncomingMessage<RefereeRequest>| handle(&host, received);
    let accepted = net::serve(Arc::clone(&agent), server, Arc::new(handler));

    // Play each match in a thread of its own, until the league is over. An announcement may come
    // twice; `handle` has refused faulty ones. The scope ends when all its matches have ended.
    let mut known = HashSet::new();
    thread::scope(|scope| {
        for message in accepted {
            match message {
                RefereeRequest::RoundAnnouncement(round) => {
                    for the_match in matches_of(&agent, &round).unwrap_or_default() {
                        if known.insert(the_match.id.clone()) {
                            scope.spawn(move || the_match.run());
                        }
                    }
                }
                RefereeRequest::LeagueCompleted(_) => break,
                _ => {}
            }
        }
    });
    Ok(())
}

/// Checks a message: all messages to a referee come from the manager, and its own matches must be
/// complete. The main thread plays them.
fn handle(
    agent: &Arc<Agent>,
    received: &IncomingMessage<RefereeRequest>,
) -> Result<Option<Reply>, ProtocolError> {
    agent.check_token(&received.envelope)?;
    if let RefereeRequest::RoundAnnouncement(round) = &received.message {
        matches_of(agent, round)?;
    }
    Ok(None)
}

/// Returns the matches of an announcement that are ours.
fn matches_of(agent: &Arc<Agent>, round: &RoundAnnouncement) -> Result<Vec<Match>, ProtocolError> {
    let mut matches = Vec::new();
    for entry in &round.matches {
        if Endpoint::is_same_address(&entry.referee_endpoint, &agent.url) {
            matches.push(Match::new(agent, round.round_id, entry)?);
        }
    }
    Ok(matches)
}

impl Match {
    /// Returns the match of an announcement.
    fn new(agent: &Arc<Agent>, round_id: u32, entry: &MatchEntry) -> Result<Match, ProtocolError> {
        let id = &entry.match_id;
        let (Some(url_a), Some(url_b)) = (&entry.player_A_endpoint, &entry.player_B_endpoint)
        else {
            let problem = "a match has no addresses of its players";
            return Err(ProtocolError::new(ErrorCode::MissingField, problem));
        };
        Ok(Match {
            agent: Arc::clone(agent),
            id: id.clone(),
            round_id,
            conversation_id: format!("conv-{}-{:08x}", id.to_lowercase(), fastrand::u32(..)),
            players: [entry.player_A_id.clone(), entry.player_B_id.clone()],
            urls: [url_a.clone(), url_b.clone()],
            tokens: [new_token(id), new_token(id)],
            standings: [entry.player_A_standings, entry.player_B_standings],
        })
    }

    /// Plays the match, tells both players the result, and reports it to the manager.
    fn run(&self) {
        let result = self.play();
        self.enter(MatchState::Finished);
        self.tell_players(&result);
        self.report(&result);
    }

    /// Plays a match. Every path ends with a result.
    fn play(&self) -> GameResult {
        // Invite both players at the same time. A player that does not join loses.
        self.enter(MatchState::WaitingForPlayers);
        let joined = thread::scope(|scope| {
            let a = scope.spawn(|| self.invite(0));
            let b = scope.spawn(|| self.invite(1));
            [a.join().unwrap(), b.join().unwrap()]
        });
        if joined != [Ok(()), Ok(())] {
            let failures = joined.map(|joined| joined.err());
            // The other player wins; if both failed, neither does.
            return even_odd::GAME.forfeit(&self.players, &[], &failures);
        }

        // Ask both players at the same time. A player that gives no legal choice loses.
        self.enter(MatchState::CollectingChoices);
        let choices = thread::scope(|scope| {
            let a = scope.spawn(|| self.collect_choice(0));
            let b = scope.spawn(|| self.collect_choice(1));
            [a.join().unwrap(), b.join().unwrap()]
        });
        let [Ok(choice_a), Ok(choice_b)] = choices else {
            let mut moves = Vec::new();
            for (seat, choice) in choices.iter().enumerate() {
                if let Ok(choice) = choice {
                    let text = choice.to_string();
                    moves.push(Move { seat, text });
                }
            }
            let failures = choices.map(|choice| choice.err());
            return even_odd::GAME.forfeit(&self.players, &moves, &failures);
        };

        // The number decides.
        self.enter(MatchState::DrawingNumber);
        let number = fastrand::u32(even_odd::NUMBERS);
        games::judge(&self.players, [choice_a, choice_b], number)
    }

    /// Writes the new state of the match into the log.
    fn enter(&self, state: MatchState) {
        let details = json!({"match_id": self.id, "state": state});
        self.agent.log("match_state", "", &details);
    }

    /// Invites a player. An error says in words why it did not join.
    fn invite(&self, seat: usize) -> Result<(), String> {
        let invitation = GameInvitation {
            league_id: self.agent.league_id.clone(),
            round_id: self.round_id,
            match_id: self.id.clone(),
            game_type: GAME.to_string(),
            role_in_match: ["PLAYER_A", "PLAYER_B"][seat].to_string(),
            opponent_id: self.players[1 - seat].clone(),
            player_id: Some(self.players[seat].clone()),
        };
        let player = self.player(seat, self.agent.settings.timeouts.game_join_ack_timeout_sec);
        let error = match self.agent.call_with_retries(&player, &invitation) {
            Ok(ack) if ack.accept => return Ok(()),
            Ok(_) => ProtocolError::new(ErrorCode::MissingField, "it did not accept"),
            Err(error) => error,
        };
        self.tell_error(seat, "GAME_JOIN_ACK", &error, None);
        Err(format!("did not join ({error})"))
    }

    /// Asks a player for its choice until it is legal, as often as the retry policy allows.
    fn collect_choice(&self, seat: usize) -> Result<Parity, String> {
        let policy = &self.agent.settings.retry_policy;
        let mut attempt = 1;
        loop {
            let error = match self.ask_choice(seat) {
                Ok(choice) => return Ok(choice),
                Err(error) => error,
            };

            // Tell the player. After a wrong answer it is asked again at once, after none it gets a
            // pause.
            let mut pause = Duration::ZERO;
            if net::is_retryable(&error) {
                pause = policy.pause_after(attempt);
            }
            let retry_info = RetryInfo {
                retry_count: attempt,
                max_retries: policy.max_retries,
                next_retry_at: (attempt < policy.max_retries).then(|| Timestamp::now().plus(pause)),
                time_remaining: None,
            };
            self.tell_error(seat, "CHOOSE_PARITY_RESPONSE", &error, Some(retry_info));
            if attempt >= policy.max_retries {
                return Err(format!("gave no valid choice ({error})"));
            }
            thread::sleep(pause);
            attempt += 1;
        }
    }

    /// Asks a player once for its choice.
    fn ask_choice(&self, seat: usize) -> Result<Parity, ProtocolError> {
        // Call the player.
        let timeout_sec = self.agent.settings.timeouts.move_timeout_sec;
        let question = ChooseParityCall {
            match_id: self.id.clone(),
            player_id: self.players[seat].clone(),
            game_type: GAME.to_string(),
            deadline: Timestamp::now().plus(Duration::from_secs_f64(timeout_sec)),
            context: Some(TurnContext {
                opponent_id: Some(self.players[1 - seat].clone()),
                round_id: Some(self.round_id),
                your_standings: self.standings[seat],
            }),
        };
        let player = self.player(seat, timeout_sec);
        let choice = self.agent.call(&player, &question)?.parity_choice;

        // Check its choice.
        Parity::deserialize(&choice).map_err(|_| {
            let problem = format!("got {choice}, must be even or odd");
            ProtocolError::field(ErrorCode::InvalidChoice, "parity_choice", problem)
        })
    }

    /// Sends GAME_ERROR: what went wrong, and what is asked of the player. The match waits until the
    /// player has received it or has failed, and goes on in both cases.
    fn tell_error(
        &self,
        seat: usize,
        action_required: &str,
        error: &ProtocolError,
        retry_info: Option<RetryInfo>,
    ) {
        let player_id = self.players[seat].clone();
        let message = GameError {
            match_id: self.id.clone(),
            error_code: error.code.clone(),
            error_description: error.code.name().to_string(),
            affected_player: player_id.clone(),
            action_required: action_required.to_string(),
            player_id: Some(player_id),
            retry_info,
            context: Some(error.context.clone()),
            consequence: Some("Technical loss if max retries exceeded".to_string()),
        };
        let player = self.player(seat, self.agent.settings.timeouts.game_over_timeout_sec);
        let _ = self.agent.call(&player, &message);
    }

    /// Sends GAME_OVER to both players at the same time.
    fn tell_players(&self, result: &GameResult) {
        let over = GameOver {
            match_id: self.id.clone(),
            game_type: GAME.to_string(),
            game_result: result.clone(),
            reason: None,
        };
        thread::scope(|scope| {
            for seat in [0, 1] {
                let timeout_sec = self.agent.settings.timeouts.game_over_timeout_sec;
                let player = self.player(seat, timeout_sec);
                let over = &over;
                scope.spawn(move || self.agent.call_with_retries(&player, over));
            }
        });
    }

    /// Sends MATCH_RESULT_REPORT to the manager, with our own token.
    fn report(&self, result: &GameResult) {
        let report = MatchResultReport {
            league_id: self.agent.league_id.clone(),
            round_id: self.round_id,
            match_id: self.id.clone(),
            game_type: GAME.to_string(),
            result: games::match_result(result, &self.agent.league_file.scoring),
        };
        let manager = self.agent.manager(&self.conversation_id);
        if let Err(error) = self.agent.call_with_retries(&manager, &report) {
            println!("{} is not recorded: {error}", self.id);
        }
    }

    /// Returns where the player of a seat is called. All calls of a match are one conversation.
    fn player(&self, seat: usize, timeout_sec: f64) -> Destination {
        Destination {
            url: self.urls[seat].clone(),
            token: Some(self.tokens[seat].clone()),
            conversation_id: self.conversation_id.clone(),
            timeout_sec,
        }
    }
}

/// Makes the token of a player for a match. This generator is fast and not meant for secrets:
/// chapter two takes its tokens from the operating system.
fn new_token(match_id: &str) -> String {
    values::token(match_id, &format!("{:032x}", fastrand::u128(..)))
}
