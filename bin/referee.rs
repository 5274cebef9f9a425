//! A referee: registers, plays the matches that the manager's announcements give it, reports their results.
//!
//! A desk with the matches (`src/desk.rs`), a few workers, each playing one match at a time (`src/referee.rs`),
//! and one reporter, which repeats every result until the manager has answered for it.

use league::{
    agent::{self, Card, Me, Registrant},
    clock::Timestamp,
    desk::{Desk, Finished, Order},
    dispatch::{Agent, Denial, From},
    failure::{Failure, pause},
    game::{self, Outcome},
    log::Level,
    object,
    options::{Program, Stop},
    protocol::*,
    referee::{Game, Limits, Line, play},
    screen::{say, shown},
    threads::{lock, spawn},
    voice::{self, About, Peer, Voice},
    wire::Wire,
};
use serde_json::Value;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

const PROGRAM: Program = Program {
    name: "referee",
    about: "A referee of the AI Agent League: plays matches of Even/Odd between two players and reports them.",
    words: &[],
    options: &[
        ("--manager", "URL", "the league manager [as listed in agents_config.json]"),
        ("--display-name", "NAME", "shown on the manager's screen [as listed, or defaults/referee.json]"),
        ("--referee-id", "ID", "the id to ask for, and whose card to use [any]"),
        ("--max-concurrent-matches", "N", "matches at once, 1 to 10 [as listed, or defaults/referee.json]"),
        ("--seed", "N", "make the draws repeatable"),
    ],
};

fn main() -> ExitCode {
    PROGRAM.main(|options| agent::run(options, Kind::Referee, Referee::new))
}

struct Referee {
    me: Arc<Me>,
    desk: Desk,
    limits: Limits,
    seed: Option<u64>,
}

object! {
    /// What `get_match_state` shows: choices and result only after the draw.
    MatchView {
        match_id: String, round_id: u32, player_A_id: String, player_B_id: String, state: MatchState,
        ; nullable result: GameResult,
    }
}

impl Referee {
    fn new(me: Arc<Me>) -> Result<Arc<Referee>, Stop> {
        let (config, at_once, seed) = (me.config(), me.max_concurrent_matches()?, me.options().number("--seed")?);
        let limits = Limits {
            join: config.join_limit,
            choice: config.choice_limit,
            game_over: config.game_over_limit,
            retry: config.retry,
            own_faults: config.match_limit(),
        };
        let referee = Arc::new(Referee { me, desk: Desk::default(), limits, seed });
        for _ in 0..at_once {
            referee.start("match", Referee::play_matches)?;
        }
        referee.start("report", Referee::report_results)?;
        Ok(referee)
    }

    /// Has a thread of its own do a work that never ends.
    fn start(self: &Arc<Self>, name: &str, work: fn(&Referee)) -> Result<(), Stop> {
        let here = Arc::clone(self);
        if spawn(name, move || work(&here)) { Ok(()) } else { Err(Stop::failed("no thread to work with")) }
    }

    /// A worker: plays one match after the other, for ever.
    fn play_matches(&self) {
        loop {
            let order = self.desk.next_match();
            let line = HttpLine { referee: self, order: &order };
            let draw = || game::draw(self.seed, &order.game.match_id);
            let keep = |outcome: &Outcome| self.keep(&order, outcome);
            let played = catch_unwind(AssertUnwindSafe(|| play(&order.game, &line, &self.limits, draw, keep)));
            if let Ok(Some(outcome)) = &played {
                say(&format!("{}: {}", order.game.match_id, shown(&outcome.reason)));
            }
            let could_be = matches!(played, Ok(Some(_))) || order.dropped.load(Ordering::SeqCst);
            if !could_be {
                // Our own fault: nothing is reported, and the manager will give the match to somebody again.
                let words = format!("{} could not be played by our own fault", order.game.match_id);
                self.voice().log.orchestrator(Level::Error, "fault", words);
            }
            self.desk.played(&order, could_be);
        }
    }

    /// Makes an outcome durable, as soon as the disk takes it.
    fn keep(&self, order: &Order, outcome: &Outcome) -> bool {
        let Game { league_id, round_id, match_id, .. } = order.game.clone();
        let result = outcome.for_manager(&self.me.config().rules.scoring);
        let report = MatchResultReport { league_id, round_id, match_id, game_type: GAME.into(), result };
        let until = Instant::now() + self.limits.own_faults;
        loop {
            match self.desk.keep(order, outcome, report.clone()) {
                Ok(ours) => return ours,
                Err(_) if Instant::now() < until => pause(self.limits.retry.base_delay),
                Err(_) => return false,
            }
        }
    }

    /// The reporter: reports every result until the manager has answered for it.
    fn report_results(&self) {
        loop {
            let finished = self.desk.next_report();
            let Ok(card) = self.me.card() else { continue };
            match self.report(&finished, &card) {
                Err(_) => pause(self.limits.retry.base_delay),
                Ok(Message::LeagueError(error)) if ["E011", "E012", "E013"].contains(&&*error.error_code) => {
                    if let Err(stop) = self.me.register(self, Some(card), error.says_expired()) {
                        return self.me.finish(Err(stop)); // it wants us no more
                    }
                }
                // Acknowledged; or refused for good (E003, E015).
                Ok(reply) => self.desk.settle(finished, !matches!(reply, Message::LeagueError(_))),
            }
        }
    }

    fn report(&self, finished: &Finished, card: &Card) -> Result<Message, Failure> {
        let to = Peer::manager(&card.manager);
        let about = About {
            conversation_id: finished.conversation_id.clone(),
            auth_token: Some(card.token.clone()).filter(|token| !token.is_empty()),
            round_id: Some(finished.report.round_id),
            match_id: Some(finished.report.match_id.clone()),
        };
        let message = finished.report.clone().into();
        self.voice().ask(to, &message, &about, self.me.config().generic_limit).map(|(_, reply)| reply)
    }
}

/// The line of a match over HTTP.
struct HttpLine<'a> {
    referee: &'a Referee,
    order: &'a Arc<Order>,
}

/// Does something with the address of a seat and what a message to it is about. An answer has at most `max` bytes.
fn to_seat<T>(order: &Order, seat: usize, max: usize, act: impl FnOnce(Peer, &About) -> T) -> T {
    let endpoint = lock(&order.endpoints)[seat].clone();
    let about = About {
        conversation_id: order.conversation_id.clone(),
        auth_token: Some(order.tokens[seat].clone()),
        round_id: Some(order.game.round_id),
        match_id: Some(order.game.match_id.clone()),
    };
    act(Peer { name: &order.game.seats[seat].player_id, endpoint: &endpoint, max }, &about)
}

impl Line for HttpLine<'_> {
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, Failure> {
        to_seat(self.order, seat, self.referee.me.config().max_message_bytes, |to, about| match message {
            // Answered with a plain "ok": there is no message to return but its own.
            Message::GameOver(_) => self.referee.voice().notify(to, message, about, limit).map(|()| message.clone()),
            _ => self.referee.voice().ask(to, message, about, limit).map(|(_, reply)| reply),
        })
    }

    fn tell(&self, seat: usize, message: Message) {
        let (me, order, limit) = (Arc::clone(&self.referee.me), Arc::clone(self.order), self.referee.limits.game_over);
        spawn("game-error", move || {
            let _ = to_seat(&order, seat, me.config().max_message_bytes, |to, about| {
                me.voice().notify(to, &message, about, limit)
            });
        });
    }

    fn pause(&self, delay: Duration) {
        pause(delay);
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn clock(&self) -> Timestamp {
        Timestamp::now()
    }

    fn reached(&self, state: MatchState) -> bool {
        *lock(&self.order.state) = state;
        !self.order.dropped.load(Ordering::SeqCst)
    }
}

impl Agent for Referee {
    fn kind(&self) -> Kind {
        Kind::Referee
    }

    fn voice(&self) -> &Voice {
        self.me.voice()
    }

    fn handle(&self, from: &From, message: Message) -> Result<Option<Message>, Denial> {
        self.me.check_manager(from)?;
        match message {
            Message::RoundAnnouncement(announcement) => self.desk.assigned(announcement, self.me.endpoint())?,
            Message::LeagueCompleted(_) => {
                self.desk.settle_all();
                self.me.finish(Ok(()));
            }
            _ => {} // rounds and errors: for information
        }
        Ok(None)
    }

    fn tool(&self, tool: &str, arguments: &Value) -> Result<Value, Denial> {
        if tool == "start_match" {
            let start = StartMatch::read(arguments).map_err(Refusal::from)?;
            let card = self.me.card()?;
            self.me.check_token(&card, start.auth_token.as_deref(), true)?;
            if start.league_id != card.league_id {
                return Err(Refusal::field(Code::E003, "league_id", format!("expected {:?}", card.league_id)).into());
            }
            let (league_id, round_id) = (start.league_id, start.round_id);
            let announcement = RoundAnnouncement { league_id, round_id, matches: vec![start.r#match] };
            self.desk.assigned(announcement, self.me.endpoint())?;
            return Ok(voice::ok());
        }
        let match_id = GetMatchState::read(arguments).map_err(Refusal::from)?.match_id;
        let unknown = || Refusal::field(Code::E015, "match_id", format!("got {match_id:?}, which is not ours"));
        let order = self.desk.find(&match_id).ok_or_else(unknown)?;
        let (state, result) = (*lock(&order.state), order.result.get().cloned());
        let [a, b] = order.game.seats.each_ref().map(|seat| seat.player_id.clone());
        let round_id = order.game.round_id;
        Ok(serde_json::to_value(MatchView { match_id, round_id, player_A_id: a, player_B_id: b, state, result })?)
    }

    fn pinged(&self, token: &str) {
        self.me.pinged(token);
    }

    fn health(&self) -> Value {
        self.me.health()
    }
}

impl Registrant for Referee {
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        let folder = self.me.data().join("referees").join(&card.agent_id);
        self.desk.begin(&folder, fresh).map_err(|error| Stop::failed(format!("{}: {error}", folder.display())))
    }
}
