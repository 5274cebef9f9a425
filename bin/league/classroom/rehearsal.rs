//! Rehearsals: while the lobby of a class is open, each player that registers plays a match that
//! counts for nothing. So it is known before the start who would lose technically, and why.
//!
//! The match is played by the referee's own code (`match_play.rs` of the stack), in the manager's
//! process, against an opponent that always answers well. The player is told of its faults, as in
//! any match, but of no result, so nothing of the match stays in its history.

use crate::classroom::relay::Relays;
use crate::show::document::Document;
use league::json::deserialize;
use league::manager::Manager;
use league::manager::league::Member;
use league::net::call_error::CallError;
use league::net::client::{MessageContext, Peer};
use league::net::sync::{lock, spawn};
use league::program::config::SystemFile;
use league::program::terminal::sanitize;
use league::protocol::{
    AgentKind, Call, GameError, GameOver, GameResult, MatchEntry, Message, ResultStatus,
};
use league::referee::match_play::{Aborted, MatchIo, play_match};
use league::referee::tasks::Assignment;
use league::values::Timestamp;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The id of the match, and that of the opponent.
const MATCH_ID: &str = "REHEARSAL";
const OPPONENT: &str = "P00";
/// The time that a player has to read the answer to its registration, which has its id. In a league
/// the lead time gives it more.
const REGISTRATION_TIME: Duration = Duration::from_millis(500);
/// Interval between two searches for new registrations.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// The verdict on a player that has played its rehearsal to the end.
pub const PLAYS: &str = "plays";
/// What is added to it if the player is called through a relay.
const THROUGH_RELAY: &str = ", through the relay";

/// Starts a thread that rehearses with every player that registers, until the league starts.
pub fn follow(manager: &Arc<Manager>, document: &Arc<Document>, relays: &Arc<Relays>) {
    let (manager, document) = (Arc::clone(manager), Arc::clone(document));
    let relays = Arc::clone(relays);
    spawn("rehearsals", move || {
        let mut rehearsed = BTreeSet::new();
        while !manager.store.wait(SEARCH_INTERVAL, |league| league.started) {
            let players = manager.store.read(|league| {
                let players = league.members(AgentKind::Player);
                players.into_iter().cloned().collect::<Vec<Member>>()
            });
            for Member {
                id, meta, token, ..
            } in players
            {
                let registration = manager.contacts.with(|table| table.registrations(&id));
                if registration == 0 || !document.rehearsals.begin(&id, registration) {
                    continue;
                }

                let (manager, document) = (Arc::clone(&manager), Arc::clone(&document));
                let is_first = rehearsed.insert(id.clone());
                let is_relayed = relays.has(&meta.contact_endpoint);
                spawn("rehearsal", move || {
                    let [verdict, mut public] =
                        rehearse(&manager, &id, &meta.contact_endpoint, token);
                    let name = sanitize(&meta.display_name);
                    let text = match &*verdict {
                        PLAYS => {
                            public += if is_relayed { THROUGH_RELAY } else { "" };
                            format!("{id} {name} {public}")
                        }
                        problem => format!("{id} {name} would lose: it {problem}"),
                    };
                    document.rehearsals.end(&id, public);
                    manager.store.notify_all(); // for the page
                    if is_first || manager.program.may_print(&text) {
                        manager.terminal.print_line(&text);
                    }
                });
            }
        }
    });
}

/// Plays a match with a player, and returns the verdict, and the same without anything that its
/// endpoint has sent: all may read that on the page. No announcement names the match, so the
/// player's own token proves that its invitation comes from the manager.
pub fn rehearse(manager: &Manager, player_id: &str, endpoint: &str, token: String) -> [String; 2] {
    let league = &manager.program.config.league;
    let entry = MatchEntry {
        match_id: MATCH_ID.into(),
        game_type: league.game_type.clone(),
        player_A_id: player_id.into(),
        player_B_id: OPPONENT.into(),
        referee_endpoint: manager.program.endpoint.clone(),
        referee_id: None,
        player_A_endpoint: Some(endpoint.into()),
        player_B_endpoint: Some(endpoint.into()), // nothing is sent to the opponent
        player_A_token: Some(token),
        player_B_token: None,
        player_A_standings: None,
        player_B_standings: None,
        match_token: None,
    };
    let Ok(assignment) = Assignment::new(&league.league_id, 1, entry) else {
        return [PLAYS, PLAYS].map(String::from); // the game is unknown, and the league refuses it
    };

    thread::sleep(REGISTRATION_TIME);
    let io = RehearsalIo {
        manager,
        assignment: &assignment,
        started: Instant::now(),
        public_error: Mutex::default(),
    };
    match play_match(&assignment, &io) {
        Ok(result) if result.status == ResultStatus::TechnicalLoss => {
            let reason = result.reason.unwrap_or_default();
            let reason = reason.split(" - ").next().unwrap_or_default();
            let problem = reason.trim_start_matches(player_id);
            let verdict = sanitize(problem.trim_start());
            let public = lock(&io.public_error).take();
            [verdict.clone(), public.unwrap_or(verdict)]
        }
        _ => [PLAYS, PLAYS].map(String::from),
    }
}

/// A match over HTTP with one player. The other one answers here.
struct RehearsalIo<'a> {
    manager: &'a Manager,
    assignment: &'a Assignment,
    started: Instant,
    /// The reason why the last call failed, without anything that the endpoint has sent.
    public_error: Mutex<Option<String>>,
}

impl RehearsalIo<'_> {
    /// Returns the player's address and the envelope of a message to it.
    fn recipient(&self, timeout: Duration) -> (Peer, MessageContext) {
        let peer = Peer {
            kind: AgentKind::Player,
            id: self.assignment.players[0].clone(),
            endpoint: self.assignment.endpoints[0].clone(),
            max_bytes: self.manager.program.config.max_message_bytes(),
            timeout,
        };
        let context = MessageContext {
            conversation_id: self.assignment.conversation_id.clone(),
            auth_token: Some(self.assignment.tokens[0].clone()),
            round_id: Some(self.assignment.round_id),
            match_id: Some(self.assignment.match_id.clone()),
        };
        (peer, context)
    }
}

impl MatchIo for RehearsalIo<'_> {
    fn config(&self) -> &SystemFile {
        &self.manager.program.config.system
    }

    fn seed(&self) -> Option<u64> {
        None
    }

    fn call<C: Call<Reply: Message>>(
        &self,
        seat: usize,
        question: &C,
        timeout: Duration,
    ) -> Result<C::Reply, CallError> {
        if seat == 1 {
            return opponent_reply(question);
        }
        let (peer, context) = self.recipient(timeout);
        let result = self.manager.program.client.call(&peer, question, &context);
        let error = result.as_ref().err();
        *lock(&self.public_error) = error.map(CallError::explain_in_public);
        result
    }

    fn send_error(&self, seat: usize, error: GameError) {
        if seat == 0 {
            let (peer, context) = self.recipient(self.manager.program.config.game_over_limit());
            let client = &self.manager.program.client;
            let _ = client.notify(&peer, &error, &context);
        }
    }

    /// Sends nothing: the match counts for nothing.
    fn send_result(&self, _: GameOver) {}

    fn in_parallel<T: Send>(
        &self,
        seats: &[usize],
        task: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>, Aborted> {
        Ok(seats.iter().map(|seat| task(*seat)).collect())
    }

    fn sleep(&self, delay: Duration) {
        thread::sleep(delay);
    }

    fn time_elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn clock(&self) -> Timestamp {
        Timestamp::now()
    }

    fn save(&self, _: &GameResult) -> Result<(), Aborted> {
        Ok(())
    }
}

/// Returns the opponent's reply: it joins, and plays the first legal move. It has the fields of all
/// replies; each reply takes its own.
fn opponent_reply<C: Call>(question: &C) -> Result<C::Reply, CallError> {
    let question = json!(question);
    let reply = json!({
        "match_id": MATCH_ID,
        "player_id": OPPONENT,
        "arrival_timestamp": Timestamp::now(),
        "accept": true,
        "parity_choice": "even",
        "move_number": question["move_number"],
        "move": question["legal_moves"][0],
    });
    deserialize(&reply).map_err(|error| CallError::wrong(error, reply))
}
