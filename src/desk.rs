//! A referee's desk: the matches it was given, those that wait to be played, and those that are played and wait
//! for the manager's answer. The last are also on disk: `data/referees/ID/R1M1.json`.

use crate::{
    endpoint::Endpoint,
    files::{self, Access},
    game::Outcome,
    object,
    protocol::*,
    referee::{Game, Seat},
    registration,
    threads::lock,
    voice,
    wire::Fault,
};
use std::{
    collections::{BTreeMap, VecDeque},
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A match that was given to us.
pub struct Order {
    /// Who plays, and in which match.
    pub game: Game,
    /// Every message of the match belongs to it; a new one for every replay.
    pub conversation_id: String,
    /// What proves us to the players, by seat.
    pub tokens: [String; 2],
    /// Where the players are; they may move while we play.
    pub endpoints: Mutex<[String; 2]>,
    /// How far it has come.
    pub state: Mutex<MatchState>,
    /// How it ended, once that is durable.
    pub result: OnceLock<GameResult>,
    /// It is somebody else's now.
    pub dropped: AtomicBool,
}

object! {
    /// A played match that the manager has not answered for.
    Finished { conversation_id: String, report: MatchResultReport, }
}

/// The desk, behind its lock.
#[derive(Default)]
pub struct Desk {
    inside: Mutex<Inside>,
    /// Rung when there is a match to play, or a result to report.
    bell: Condvar,
}

#[derive(Default)]
struct Inside {
    folder: PathBuf,
    queue: VecDeque<Arc<Order>>,
    orders: BTreeMap<String, Arc<Order>>,
    outbox: BTreeMap<String, Finished>,
    /// What the manager has acknowledged.
    acknowledged: BTreeMap<String, Finished>,
}

impl Desk {
    /// Finished matches wait in `folder` from now on. What is there already is reported now, unless it belongs to
    /// an older registration: then it is set aside, and every match with it.
    pub fn begin(&self, folder: &Path, fresh: bool) -> io::Result<()> {
        let mut inside = lock(&self.inside);
        if fresh {
            files::set_aside(folder)?;
            inside.orders.values().for_each(|order| order.dropped.store(true, Ordering::SeqCst));
            *inside = Inside::default();
        }
        fs::create_dir_all(folder)?;
        for path in fs::read_dir(folder)?.flatten().map(|entry| entry.path()) {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue; // half-written by a program that died
            }
            if let Some(finished) = files::read_json::<Finished>(&path) {
                inside.outbox.insert(finished.report.match_id.clone(), finished);
            }
        }
        inside.folder = folder.into();
        self.bell.notify_all();
        Ok(())
    }

    /// Takes the matches of an announcement that are ours, and lets go of those that are not any more (R6).
    pub fn assigned(&self, announcement: RoundAnnouncement, our_endpoint: &str) -> Result<(), Refusal> {
        let (mut taken, mut not_ours) = (Vec::new(), Vec::new());
        for (n, entry) in announcement.matches.into_iter().enumerate() {
            if Endpoint::same(&entry.referee_endpoint, our_endpoint) {
                let at = |fault: Fault| fault.under(&format!("matches[{n}]"));
                taken.push(order(announcement.round_id, &announcement.league_id, entry).map_err(at)?);
            } else {
                not_ours.push(entry.match_id);
            }
        }
        let mut inside = lock(&self.inside);
        not_ours.iter().for_each(|match_id| inside.let_go(match_id));
        taken.into_iter().for_each(|order| inside.take(order));
        self.bell.notify_all();
        Ok(())
    }

    /// The next match to play; waits until there is one.
    pub fn next_match(&self) -> Arc<Order> {
        loop {
            let mut inside = self.wait_while(|inside| inside.queue.is_empty());
            if let Some(order) = inside.queue.pop_front() {
                return order;
            }
        }
    }

    /// The next result to report; waits until there is one. The players hear of a result first.
    pub fn next_report(&self) -> Finished {
        loop {
            let inside = self.wait_while(|inside| inside.reportable().is_none());
            if let Some(finished) = inside.reportable() {
                return finished.clone();
            }
        }
    }

    fn wait_while(&self, wait: impl Fn(&Inside) -> bool) -> MutexGuard<'_, Inside> {
        self.bell.wait_while(lock(&self.inside), |inside| wait(inside)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an outcome durable before anybody hears of it; false if the match is not ours any more.
    pub fn keep(&self, order: &Order, outcome: &Outcome, report: MatchResultReport) -> io::Result<bool> {
        let mut inside = lock(&self.inside);
        if order.dropped.load(Ordering::SeqCst) {
            return Ok(false);
        }
        let finished = Finished { conversation_id: order.conversation_id.clone(), report };
        files::replace_json(&inside.file(&order.game.match_id), Access::Everybody, &finished)?;
        let _ = order.result.set(outcome.for_players());
        inside.outbox.insert(order.game.match_id.clone(), finished);
        Ok(true)
    }

    /// A match has been played, or could not be.
    pub fn played(&self, order: &Order, could_be: bool) {
        // Under the lock, or the reporter could miss it between its look and its wait.
        let mut inside = lock(&self.inside);
        if !could_be {
            inside.orders.remove(&order.game.match_id);
        }
        self.bell.notify_all();
    }

    /// The manager has answered for a result: it need not be kept any longer. Refused, the match is ours no more.
    pub fn settle(&self, finished: Finished, acknowledged: bool) {
        let (mut inside, match_id) = (lock(&self.inside), finished.report.match_id.clone());
        if inside.outbox.get(&match_id) == Some(&finished) {
            inside.forget(&match_id);
            if acknowledged {
                inside.acknowledged.insert(match_id, finished);
            } else {
                inside.orders.remove(&match_id);
            }
        }
    }

    /// The league is over: nothing need be kept any longer.
    pub fn settle_all(&self) {
        let mut inside = lock(&self.inside);
        let all: Vec<String> = inside.outbox.keys().cloned().collect();
        all.iter().for_each(|match_id| inside.forget(match_id));
    }

    /// The match of that id, if it is ours.
    pub fn find(&self, match_id: &str) -> Option<Arc<Order>> {
        lock(&self.inside).orders.get(match_id).cloned()
    }
}

impl Inside {
    fn file(&self, match_id: &str) -> PathBuf {
        self.folder.join(format!("{match_id}.json"))
    }

    /// A result whose match is over for the players too, or was played before we were restarted.
    fn reportable(&self) -> Option<&Finished> {
        let over = |order: &Arc<Order>| *lock(&order.state) == MatchState::Finished;
        self.outbox.values().find(|finished| self.orders.get(&finished.report.match_id).is_none_or(over))
    }

    /// The match is ours: queued, unless we have it already, in play or played.
    fn take(&mut self, order: Order) {
        let match_id = order.game.match_id.clone();
        if self.outbox.contains_key(&match_id) {
            return; // played, and being reported
        }
        if let Some(finished) = self.acknowledged.remove(&match_id) {
            self.outbox.insert(match_id, finished); // our report and this announcement have crossed: reported again
            return;
        }
        let same = |known: &&Arc<Order>| order.tokens[0].is_empty() || known.tokens == order.tokens;
        if let Some(known) = self.orders.get(&match_id).filter(same) {
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

    /// The result need not be kept any longer.
    fn forget(&mut self, match_id: &str) {
        if self.outbox.remove(match_id).is_some() {
            let _ = fs::remove_file(self.file(match_id)); // if it stays, its report is acknowledged once more
        }
    }
}

/// An order from an announcement; a referee cannot do without the players' endpoints.
fn order(round_id: u32, league_id: &str, entry: MatchEntry) -> Result<Order, Fault> {
    let missing = |field: &'static str| move || Fault::missing(field);
    let endpoints = [
        entry.player_A_endpoint.ok_or_else(missing("player_A_endpoint"))?,
        entry.player_B_endpoint.ok_or_else(missing("player_B_endpoint"))?,
    ];
    if !files::is_plain(&entry.match_id) {
        let names_a_file = Fault::new(&entry.match_id.into(), "letters and digits, as in R1M1");
        return Err(names_a_file.under("match_id"));
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
        state: Mutex::new(MatchState::WaitingForPlayers),
        result: OnceLock::new(),
        dropped: AtomicBool::new(false),
    })
}

impl Order {
    /// A manager that makes no match tokens leaves that to us.
    fn with_tokens(mut self) -> Order {
        if self.tokens[0].is_empty() {
            let ids = self.game.seats.each_ref().map(|seat| seat.player_id.clone());
            self.tokens = ids.map(|id| registration::token(&id, &files::secret(32)));
        }
        self
    }
}
