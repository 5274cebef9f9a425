//! A referee: registers, plays the matches that the manager's announcements give it, reports their results.
//!
//! A queue and a map of matches under one lock; a few workers, each playing one match at a time; one reporter,
//! which keeps every finished match on disk until the manager has answered for it. How a match is played is in
//! `src/referee.rs`.

use league::{
    agent::{self, Card, Competitor, Me, lock},
    clock::Timestamp,
    endpoint::Endpoint,
    files::{self, Access},
    game::{self, Outcome},
    http, object,
    options::{Program, Stop},
    protocol::*,
    referee::{Game, Limits, Line, Seat, play},
    rpc::{Agent, Denial, From},
    voice::{self, About, Failure, Peer, Voice},
    wire::Wire,
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
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
    seed: Option<u64>,
    limits: Limits,
    desk: Mutex<Desk>,
    /// Rung when there is a match to play or a result to report.
    bell: Condvar,
}

#[derive(Default)]
struct Desk {
    /// Where finished matches wait.
    folder: PathBuf,
    queue: VecDeque<Arc<Order>>,
    /// Every match we were given, until it is given to somebody else.
    orders: BTreeMap<String, Arc<Order>>,
    /// Played, and not yet answered for by the manager.
    outbox: BTreeMap<String, Finished>,
}

/// A match that was given to us.
struct Order {
    game: Game,
    conversation_id: String,
    tokens: [String; 2],
    /// Where the players are; they may move while we play.
    endpoints: Mutex<[String; 2]>,
    progress: Mutex<(MatchState, Option<GameResult>)>,
    /// It is somebody else's now.
    dropped: AtomicBool,
}

object! {
    /// A finished match in the outbox: `data/referees/ID/R1M1.json`.
    Finished { conversation_id: String, report: MatchResultReport, }
    /// What `get_match_state` shows: choices and result only after the draw.
    MatchView {
        match_id: String, round_id: u32, player_A_id: String, player_B_id: String, state: MatchState,
        ; nullable result: GameResult,
    }
}

impl Referee {
    fn new(me: Arc<Me>) -> Result<Arc<Referee>, Stop> {
        let at_once = me.max_concurrent_matches();
        if !(1..=10).contains(&at_once) {
            return Err(Stop::usage(format!("--max-concurrent-matches: got {at_once}, expected 1 to 10")));
        }
        let config = &me.base.config;
        let limits = Limits {
            join: config.join_limit,
            choice: config.choice_limit,
            game_over: config.game_over_limit,
            retry: config.retry,
            own_faults: config.match_limit(),
        };
        let seed = me.base.options.number("--seed")?;
        let referee = Arc::new(Referee { me, seed, limits, desk: Mutex::default(), bell: Condvar::new() });
        let spawn = |name: &str, work: fn(&Referee)| {
            let here = Arc::clone(&referee);
            http::spawn(name, move || work(&here)).then_some(()).ok_or_else(|| Stop::failed("no thread to work with"))
        };
        (0..at_once).try_for_each(|_| spawn("match", Referee::play_matches))?;
        spawn("report", Referee::report_results)?;
        Ok(referee)
    }

    /// Takes the matches that are ours, and lets go of those that are not any more (R6).
    fn assigned(&self, announcement: RoundAnnouncement) -> Result<(), Refusal> {
        let ours = |entry: &MatchEntry| Endpoint::same(&entry.referee_endpoint, &self.me.base.endpoint);
        let round_id = announcement.round_id;
        let orders = announcement.matches.into_iter().enumerate().map(|(n, entry)| match ours(&entry) {
            true => order(round_id, &announcement.league_id, entry).map_err(|fault| (format!("matches[{n}]"), fault)),
            false => Err((String::new(), entry.match_id)),
        });
        let mut taken = Vec::new();
        let mut desk = lock(&self.desk);
        for order in orders {
            match order {
                Ok(order) => taken.push(order),
                Err((nobody, match_id)) if nobody.is_empty() => desk.let_go(&match_id),
                Err((path, field)) => {
                    return Err(Refusal::field(Code::E003, &format!("{path}.{field}"), "missing"));
                }
            }
        }
        taken.into_iter().for_each(|order| desk.take(order));
        self.bell.notify_all();
        Ok(())
    }

    /// A worker: plays one match after the other, for ever.
    fn play_matches(&self) {
        loop {
            let desk = self.bell.wait_while(lock(&self.desk), |desk| desk.queue.is_empty());
            let next = desk.unwrap_or_else(PoisonError::into_inner).queue.pop_front();
            let Some(order) = next else { continue };
            let line = HttpLine { referee: self, order: &order };
            let draw = || game::draw(self.seed, &order.game.match_id);
            let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                play(&order.game, &line, &self.limits, draw, |outcome| self.keep(&order, outcome))
            }));
            if !matches!(played, Ok(Some(_))) && !order.dropped.load(Ordering::SeqCst) {
                // Our own fault: nothing is reported, and the manager will give the match to somebody again.
                lock(&self.desk).orders.remove(&order.game.match_id);
                let words = format!("{} could not be played by our own fault", order.game.match_id);
                self.voice().log.orchestrator(league::log::Level::Error, "fault", words);
            }
            self.bell.notify_all();
        }
    }

    /// Makes an outcome durable before anybody hears of it; false if the match is not ours any more, or the disk
    /// does not take it.
    fn keep(&self, order: &Order, outcome: &Outcome) -> bool {
        let Game { league_id, round_id, match_id, .. } = order.game.clone();
        let result = outcome.for_manager(&self.me.base.config.rules.scoring);
        let report =
            MatchResultReport { league_id, round_id, match_id: match_id.clone(), game_type: GAME.into(), result };
        let finished = Finished { conversation_id: order.conversation_id.clone(), report };
        let until = Instant::now() + self.limits.own_faults;
        loop {
            let mut desk = lock(&self.desk);
            if order.dropped.load(Ordering::SeqCst) {
                return false;
            }
            let path = desk.folder.join(format!("{match_id}.json"));
            if files::replace_json(&path, Access::Everybody, &finished).is_ok() {
                desk.outbox.insert(match_id, finished);
                lock(&order.progress).1 = Some(outcome.for_players());
                return true;
            }
            drop(desk);
            if Instant::now() >= until {
                return false;
            }
            voice::pause(self.limits.retry.base_delay);
        }
    }

    /// The reporter: reports every finished match until the manager has answered for it.
    fn report_results(&self) {
        loop {
            let desk =
                self.bell.wait_while(lock(&self.desk), |desk| !desk.outbox.values().any(|it| desk.may_report(it)));
            let desk = desk.unwrap_or_else(PoisonError::into_inner);
            let next = desk.outbox.values().find(|it| desk.may_report(it)).cloned();
            drop(desk);
            let (Some(finished), Ok(card)) = (next, self.me.card()) else { continue };
            match self.report(&finished, &card) {
                Settled::Done => self.settle(&finished),
                Settled::Unknown => {
                    if let Err(Stop(_, why)) = self.me.register(self, Some(card)) {
                        self.voice().log.orchestrator(league::log::Level::Error, "not_re_attached", why);
                        voice::pause(self.limits.retry.base_delay);
                    }
                }
                Settled::NotYet => voice::pause(self.limits.retry.base_delay),
            }
        }
    }

    fn report(&self, finished: &Finished, card: &Card) -> Settled {
        let to = Peer { name: "league_manager", endpoint: &card.manager };
        let about = About {
            conversation_id: finished.conversation_id.clone(),
            auth_token: Some(card.token.clone()).filter(|token| !token.is_empty()),
            round_id: Some(finished.report.round_id),
            match_id: Some(finished.report.match_id.clone()),
        };
        let message = finished.report.clone().into();
        match self.voice().ask(to, &message, &about, self.me.base.config.generic_limit) {
            Ok((_, Message::LeagueError(error))) => match error.error_code.as_str() {
                "E011" | "E012" | "E013" => Settled::Unknown,
                _ => Settled::Done, // E003, E015: it will never be taken
            },
            Ok(_) => Settled::Done,
            Err(_) => Settled::NotYet,
        }
    }

    /// The manager has answered for a match: it need not be kept any longer.
    fn settle(&self, finished: &Finished) {
        let mut desk = lock(&self.desk);
        let match_id = &finished.report.match_id;
        if desk.outbox.get(match_id) == Some(finished) {
            desk.forget(match_id);
        }
    }
}

enum Settled {
    Done,
    Unknown,
    NotYet,
}

impl Desk {
    fn may_report(&self, finished: &Finished) -> bool {
        // The players hear of a result first, unless it is of an earlier life of this program.
        let order = self.orders.get(&finished.report.match_id);
        order.is_none_or(|order| lock(&order.progress).0 == MatchState::Finished)
    }

    /// The match is ours: queued, unless we have it already, in play or played.
    fn take(&mut self, order: Order) {
        let match_id = order.game.match_id.clone();
        if self.outbox.contains_key(&match_id) {
            return; // played: reported again, not played again
        }
        let known =
            self.orders.get(&match_id).filter(|known| known.tokens == order.tokens || order.tokens[0].is_empty());
        if let Some(known) = known.filter(|known| lock(&known.progress).0 != MatchState::Finished) {
            lock(&known.endpoints).clone_from(&lock(&order.endpoints));
            return;
        }
        self.let_go(&match_id);
        let order = Arc::new(order.with_tokens());
        self.orders.insert(match_id, Arc::clone(&order));
        self.queue.push_back(order);
    }

    /// The match is not ours, or not any more.
    fn let_go(&mut self, match_id: &str) {
        if let Some(order) = self.orders.remove(match_id) {
            order.dropped.store(true, Ordering::SeqCst);
            self.queue.retain(|queued| queued.game.match_id != match_id);
        }
        self.forget(match_id);
    }

    fn forget(&mut self, match_id: &str) {
        if self.outbox.remove(match_id).is_some() {
            let _ = fs::remove_file(self.folder.join(format!("{match_id}.json")));
        }
    }
}

/// An order from an announcement; an error names the field that it needs and has not.
fn order(round_id: u32, league_id: &str, entry: MatchEntry) -> Result<Order, String> {
    let missing = |field: &str| field.to_string();
    let endpoints = [
        entry.player_A_endpoint.ok_or_else(|| missing("player_A_endpoint"))?,
        entry.player_B_endpoint.ok_or_else(|| missing("player_B_endpoint"))?,
    ];
    if !entry.match_id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        return Err(missing("match_id")); // it names a file
    }
    let seats = [
        Seat { player_id: entry.player_A_id, role: Role::PlayerA, standings: entry.player_A_standings },
        Seat { player_id: entry.player_B_id, role: Role::PlayerB, standings: entry.player_B_standings },
    ];
    Ok(Order {
        conversation_id: voice::conversation(&entry.match_id.to_ascii_lowercase()),
        game: Game { league_id: league_id.into(), round_id, match_id: entry.match_id, seats },
        tokens: [entry.player_A_token.unwrap_or_default(), entry.player_B_token.unwrap_or_default()],
        endpoints: Mutex::new(endpoints),
        progress: Mutex::new((MatchState::WaitingForPlayers, None)),
        dropped: AtomicBool::new(false),
    })
}

impl Order {
    /// A manager that makes no match tokens leaves that to us.
    fn with_tokens(mut self) -> Order {
        if self.tokens[0].is_empty() {
            let ids = self.game.seats.each_ref().map(|seat| seat.player_id.clone());
            self.tokens = ids.map(|id| league::registration::token(&id, &files::secret(32)));
        }
        self
    }
}

/// The line of a match over HTTP.
struct HttpLine<'a> {
    referee: &'a Referee,
    order: &'a Arc<Order>,
}

impl HttpLine<'_> {
    fn about(order: &Order, seat: usize) -> About {
        About {
            conversation_id: order.conversation_id.clone(),
            auth_token: Some(order.tokens[seat].clone()),
            round_id: Some(order.game.round_id),
            match_id: Some(order.game.match_id.clone()),
        }
    }
}

impl Line for HttpLine<'_> {
    fn ask(&self, seat: usize, message: &Message, limit: Duration) -> Result<Message, Failure> {
        let endpoint = lock(&self.order.endpoints)[seat].clone();
        let to = Peer { name: &self.order.game.seats[seat].player_id, endpoint: &endpoint };
        let about = HttpLine::about(self.order, seat);
        let voice = self.referee.voice();
        if matches!(message, Message::GameOver(_)) {
            return voice.notify(to, message, &about, limit).map(|()| message.clone());
        }
        voice.ask(to, message, &about, limit).map(|(_, reply)| reply)
    }

    fn tell(&self, seat: usize, message: Message) {
        let (me, order) = (Arc::clone(&self.referee.me), Arc::clone(self.order));
        let limit = self.referee.limits.game_over;
        http::spawn("game-error", move || {
            let endpoint = lock(&order.endpoints)[seat].clone();
            let to = Peer { name: &order.game.seats[seat].player_id, endpoint: &endpoint };
            let _ = me.base.voice.notify(to, &message, &HttpLine::about(&order, seat), limit);
        });
    }

    fn pause(&self, delay: Duration) {
        voice::pause(delay);
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn clock(&self) -> Timestamp {
        Timestamp::now()
    }

    fn reached(&self, state: MatchState) -> bool {
        lock(&self.order.progress).0 = state;
        !self.order.dropped.load(Ordering::SeqCst)
    }
}

impl Agent for Referee {
    fn kind(&self) -> Kind {
        Kind::Referee
    }

    fn voice(&self) -> &Voice {
        &self.me.base.voice
    }

    fn handle(&self, from: &From, message: Message) -> Result<Option<Message>, Denial> {
        self.me.check_manager(from)?;
        match message {
            Message::RoundAnnouncement(announcement) => self.assigned(announcement)?,
            Message::LeagueCompleted(_) => {
                let mut desk = lock(&self.desk); // it settles everything
                let all: Vec<String> = desk.outbox.keys().cloned().collect();
                all.iter().for_each(|match_id| desk.forget(match_id));
                self.me.finish();
            }
            _ => {} // rounds and errors: for information
        }
        Ok(None)
    }

    fn tool(&self, tool: &str, arguments: &Value) -> Result<Value, Denial> {
        if tool == "start_match" {
            let start = StartMatch::read(arguments).map_err(Refusal::from)?;
            self.me.check_token(&self.me.card()?, start.auth_token.as_deref(), true)?;
            let (league_id, round_id) = (start.league_id, start.round_id);
            self.assigned(RoundAnnouncement { league_id, round_id, matches: vec![start.r#match] })?;
            return Ok(Packet::from_iter([("status".to_string(), Value::from("ok"))]).into());
        }
        let asked = GetMatchState::read(arguments).map_err(Refusal::from)?;
        let desk = lock(&self.desk);
        let unknown = || Refusal::field(Code::E015, "match_id", format!("got {:?}, which is not ours", asked.match_id));
        let order = desk.orders.get(&asked.match_id).ok_or_else(unknown)?;
        let (state, result) = lock(&order.progress).clone();
        let [a, b] = order.game.seats.each_ref().map(|seat| seat.player_id.clone());
        let (match_id, round_id) = (asked.match_id, order.game.round_id);
        let view = MatchView { match_id, round_id, player_A_id: a, player_B_id: b, state, result };
        Ok(serde_json::to_value(view).map_err(io::Error::from)?)
    }

    fn health(&self) -> Value {
        self.me.health()
    }
}

impl Competitor for Referee {
    /// We are registered: finished matches that nobody answered for are reported now, unless they belong to an
    /// older registration.
    fn begin(&self, card: &Card, fresh: bool) -> Result<(), Stop> {
        let folder = self.me.base.data.join("referees").join(&card.agent_id);
        let failed = |error: io::Error| Stop::failed(format!("{}: {error}", folder.display()));
        let mut desk = lock(&self.desk);
        if fresh {
            files::set_aside(&folder).map_err(failed)?;
            desk.orders.values().for_each(|order| order.dropped.store(true, Ordering::SeqCst));
            *desk = Desk::default();
        }
        fs::create_dir_all(&folder).map_err(failed)?;
        desk.outbox.extend(outbox(&folder).map_err(failed)?);
        desk.folder = folder;
        println!("{} is {}", self.me.display_name(), card.agent_id);
        self.bell.notify_all();
        Ok(())
    }
}

fn outbox(folder: &Path) -> io::Result<Vec<(String, Finished)>> {
    let files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let json = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: PathBuf| Finished::read(&files::read_json(&path).ok()?).ok();
    Ok(json.filter_map(read).map(|it| (it.report.match_id.clone(), it)).collect())
}
