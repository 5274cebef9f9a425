//! The small referee: it registers, plays the matches that the manager gives it, and reports them.
//!
//! It plays all its matches at once, and a result that the manager does not acknowledge is lost. The
//! referee of chapter two, the league among strangers, keeps results on disk until they are
//! acknowledged, and takes the tokens of a match from the manager (`src/referee/tasks.rs`).

mod config;
mod net;

use league::games;
use league::games::Move;
use league::games::even_odd::{GAME, NUMBERS};
use league::protocol::{
    AgentKind, ChooseParityCall, GameError, GameInvitation, GameOver, GameResult,
    LeagueRegisterResponse, MatchResultReport, MatchState, ProtocolError, Record,
    RefereeRegisterRequest, RefereeRequest, RetryInfo, RoundAnnouncement, TurnContext,
};
use league::values::{Endpoint, Timestamp};
use net::{Agent, Destination};
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use std::{process, thread};

/// A match, and the two players in it: player A has seat 0, player B has seat 1.
struct Match {
    agent: Arc<Agent>,
    id: String,
    round_id: u32,
    conversation_id: String,
    seats: [Seat; 2],
}

struct Seat {
    player_id: String,
    url: String,
    /// Made for this match. The player sends it back; it is not checked here.
    token: String,
    /// The wins, losses and draws of the player so far, if the manager says them.
    standings: Option<Record>,
}

fn main() {
    if let Err(problem) = run() {
        eprintln!("{problem}");
        process::exit(1);
    }
}

/// The life of a referee.
fn run() -> Result<(), String> {
    // Register.
    let (mut agent, server, _) = net::start(AgentKind::Referee)?;
    let mut referee_meta = agent.meta("Agent");
    referee_meta.max_concurrent_matches = Some(10); // it plays all that it gets; 10 is the legal limit
    let manager = agent.manager("conv-registration");
    let response = agent.call_with_retries(&manager, &RefereeRegisterRequest { referee_meta });
    agent.join_league(response.map(LeagueRegisterResponse::from))?;

    // Answer each request in a thread of its own. Only the manager may call a referee.
    let agent = Arc::new(agent);
    let host = Arc::clone(&agent);
    let accepted = net::serve(Arc::clone(&agent), server, move |received| {
        net::check_token(&received.envelope, &host.token)?;
        Ok(None)
    });

    // Play each match in a thread of its own, until the league is over. An announcement may come
    // twice. The scope ends when all its threads have ended.
    //
    // If you let a few threads take the matches from a queue instead, beware: `while let Ok(m) =
    // queue.lock().unwrap().recv()` holds the lock while it plays `m`, so one match is played at a
    // time. `let m = queue.lock().unwrap().recv();` releases it at the end of its line. After the loop
    // drop the sender of the queue: else its threads wait for ever, and the referee does not end.
    let mut known = HashSet::new();
    thread::scope(|scope| {
        for message in accepted {
            match message {
                RefereeRequest::RoundAnnouncement(round) => {
                    for the_match in our_matches(&agent, &round) {
                        if known.insert(the_match.id.clone()) {
                            scope.spawn(move || the_match.finish(&the_match.play()));
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

impl Match {
    /// Plays the match. Every path ends with a result.
    fn play(&self) -> GameResult {
        let players = self.seats.each_ref().map(|seat| seat.player_id.clone());

        // Invite both at the same time. A player that does not join loses. `forfeit` makes the result
        // of a match in which a player has failed: the other one wins, or both lose.
        self.enter(MatchState::WaitingForPlayers);
        let failures = both(|seat| self.invite(seat).err());
        if failures != [None, None] {
            return GAME.forfeit(&players, &[], &failures);
        }

        // Ask both at the same time. A player that gives no legal choice loses: it has no move.
        self.enter(MatchState::CollectingChoices);
        let choices = both(|seat| self.collect_choice(seat));
        let moves: Vec<Move> = choices.iter().flatten().cloned().collect();
        if moves.len() < 2 {
            return GAME.forfeit(&players, &moves, &choices.map(Result::err));
        }

        // Draw the number, which decides.
        self.enter(MatchState::DrawingNumber);
        let number = self.agent.random(&self.id).u32(NUMBERS);
        GAME.judge(&players, &moves, Some(number))
    }

    /// Tells both players the result at the same time, and then the manager.
    fn finish(&self, result: &GameResult) {
        self.enter(MatchState::Finished);
        let over = GameOver {
            match_id: self.id.clone(),
            game_type: GAME.game_type.to_string(),
            game_result: result.clone(),
            reason: None,
        };
        both(|seat| {
            let player = self.player(seat);
            let _ = self.agent.call_with_retries(&player, &over);
        });

        let report = MatchResultReport {
            league_id: self.agent.league_id.clone(),
            round_id: self.round_id,
            match_id: self.id.clone(),
            game_type: GAME.game_type.to_string(),
            // The same result in another form: with the points of each player.
            result: games::match_result(result, &self.agent.league_file.scoring),
        };
        let manager = self.agent.manager(&self.conversation_id);
        if let Err(error) = self.agent.call_with_retries(&manager, &report) {
            println!("{} is not recorded: {error}", self.id);
        }
    }

    /// Writes the new state of the match into the log.
    fn enter(&self, state: MatchState) {
        let details = json!({"match_id": self.id, "state": state});
        self.agent.log("match_state", "", &details, &details);
    }

    /// Invites a player. An error says in words why it did not join.
    fn invite(&self, seat: usize) -> Result<(), String> {
        let invitation = GameInvitation {
            league_id: self.agent.league_id.clone(),
            round_id: self.round_id,
            match_id: self.id.clone(),
            game_type: GAME.game_type.to_string(),
            role_in_match: ["PLAYER_A", "PLAYER_B"][seat].to_string(),
            opponent_id: self.seats[1 - seat].player_id.clone(),
            player_id: Some(self.seats[seat].player_id.clone()),
        };
        let player = self.player(seat);
        match self.agent.call_with_retries(&player, &invitation) {
            Ok(ack) if ack.accept => Ok(()),
            Ok(_) => Err("declined the invitation".to_string()),
            Err(error) => {
                self.tell_error(seat, "GAME_JOIN_ACK", &error, None);
                Err(format!("did not join ({error})"))
            }
        }
    }

    /// Asks a player for its choice until it is legal, as often as the retry policy allows.
    fn collect_choice(&self, seat: usize) -> Result<Move, String> {
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
    fn ask_choice(&self, seat: usize) -> Result<Move, ProtocolError> {
        // Call the player.
        let timeouts = &self.agent.settings.timeouts;
        let question = ChooseParityCall {
            match_id: self.id.clone(),
            player_id: self.seats[seat].player_id.clone(),
            game_type: GAME.game_type.to_string(),
            deadline: Timestamp::now().plus(timeouts.limit_of(ChooseParityCall::NAME)),
            context: Some(TurnContext {
                opponent_id: Some(self.seats[1 - seat].player_id.clone()),
                round_id: Some(self.round_id),
                your_standings: self.seats[seat].standings,
            }),
        };
        let player = self.player(seat);
        let choice = self.agent.call(&player, &question)?.parity_choice;

        // Check its choice. An error is E004.
        let text = GAME.parse_move(&[], &choice)?.to_string();
        Ok(Move { seat, text })
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
        let player_id = self.seats[seat].player_id.clone();
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
        let player = self.player(seat);
        let _ = self.agent.call(&player, &message);
    }

    /// Returns where the player of a seat is called. All calls of a match are one conversation.
    fn player(&self, seat: usize) -> Destination {
        let player = &self.seats[seat];
        Destination {
            id: player.player_id.clone(),
            url: player.url.clone(),
            token: Some(player.token.clone()),
            conversation_id: self.conversation_id.clone(),
        }
    }
}

/// Returns the matches of a round that are ours: our address, in any spelling, is that of the referee.
fn our_matches(agent: &Arc<Agent>, round: &RoundAnnouncement) -> Vec<Match> {
    let mut matches = Vec::new();
    for entry in &round.matches {
        if !Endpoint::is_same_address(&entry.referee_endpoint, &agent.url) {
            continue;
        }
        let id = &entry.match_id;
        let seat = |player_id: &String, url: &Option<String>, standings| Seat {
            player_id: player_id.clone(),
            url: url.clone().unwrap_or_default(), // without one it cannot be reached, and loses
            token: net::new_token(id),
            standings,
        };
        let (a, b) = (&entry.player_A_id, &entry.player_B_id);
        matches.push(Match {
            agent: Arc::clone(agent),
            round_id: round.round_id,
            conversation_id: format!("conv-{}-{:08x}", id.to_lowercase(), fastrand::u32(..)),
            seats: [
                seat(a, &entry.player_A_endpoint, entry.player_A_standings),
                seat(b, &entry.player_B_endpoint, entry.player_B_standings),
            ],
            id: id.clone(),
        });
    }
    matches
}

/// Does the same for both seats at the same time.
fn both<T: Send>(work: impl Fn(usize) -> T + Sync) -> [T; 2] {
    thread::scope(|scope| {
        let a = scope.spawn(|| work(0));
        let b = scope.spawn(|| work(1));
        [a.join().unwrap(), b.join().unwrap()]
    })
}
