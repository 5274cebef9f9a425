//! What a browser sees at the manager's address: the page, `league.json`, what was said in a match, and the files that a
//! person keeps. Nothing here changes the league; all of it is made from the league's document.
//!
//! A page asks again and again, so it says which version it has, and gets of the rounds only those that have changed
//! since. A version is a number that grows with every document.

use crate::extras::figures::Figures;
use crate::extras::pages::changes;
use crate::extras::{report, trace};
use crate::manager::view::{LeagueView, RoundView};
use crate::net::http::Reply;
use crate::net::retry::pause;
use crate::net::sync::lock;
use crate::protocol::Progress;
use serde_json::json;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the manager stays at the end for those that are looking.
const LAST_LOOK: Duration = Duration::from_millis(1500);

/// The template of a player in Python, and the protocol as a page: what a student needs to join.
const TEMPLATE: &str = include_str!("../../bin/player.py");
const PROTOCOL: &str = include_str!("../protocol.md");

/// A document with its version, and for each round the version in which it changed last.
struct Numbered {
    version: u64,
    view: Arc<LeagueView>,
    changed: Vec<u64>,
    figures: Figures,
}

/// The pages of a running manager.
pub struct Site {
    /// Where the logs of this machine's agents are.
    logs: PathBuf,
    /// None until somebody looks.
    newest: Mutex<Option<Arc<Numbered>>>,
}

impl Site {
    /// Pages that show what is told of the matches in the folder `logs`.
    pub fn new(logs: PathBuf) -> Site {
        Site {
            logs,
            newest: Mutex::default(),
        }
    }

    /// The page of a league at `path`, if there is one; `query` is what stands behind the question mark. `recorded` says
    /// whether a match has a result at this very moment, if there is such a match.
    pub fn page(
        &self,
        view: Arc<LeagueView>,
        recorded: impl Fn(&str) -> Option<bool>,
        path: &str,
        query: &str,
        peer: IpAddr,
    ) -> Option<Reply> {
        let here = peer.is_loopback();
        let newest = self.newest(view);
        let (view, figures) = (&newest.view, &newest.figures);
        if let Some(match_id) = path.strip_prefix("/trace/") {
            let match_id = match_id.to_uppercase();
            let is_recorded = || recorded(&match_id);
            let page = trace::page(&self.logs, &view.league_id, &match_id, is_recorded);
            return Some(page);
        }
        Some(match path {
            "/" => report::live(&newest.since(0, here)),
            "/league.json" => {
                let since = query.strip_prefix("since=").and_then(|it| it.parse().ok());
                Reply::new("200 OK", newest.since(since.unwrap_or(0), here))
            }
            "/player.py" => Reply::text("200 OK", TEMPLATE),
            "/protocol" => Reply::text("200 OK", PROTOCOL),
            _ => {
                let (name, kind) = (path.strip_prefix('/')?, path.rsplit('.').next()?);
                let file = report::file(name, view, figures, &self.logs)?;
                report::reply(kind, "Content-Disposition: attachment", file)
            }
        })
    }

    /// At the end of the league: waits a moment, if anybody has looked, so that the page sees the end.
    pub fn linger(&self) {
        if lock(&self.newest).is_some() {
            pause(LAST_LOOK);
        }
    }

    fn newest(&self, view: Arc<LeagueView>) -> Arc<Numbered> {
        let mut newest = lock(&self.newest);
        match &*newest {
            Some(known) if Arc::ptr_eq(&known.view, &view) => Arc::clone(known),
            known => {
                let next = Numbered::after(known.as_deref(), view);
                Arc::clone(newest.insert(Arc::new(next)))
            }
        }
    }
}

impl Numbered {
    /// Numbers a document that follows another. The first version is the clock's, so that those of a manager that was
    /// started again go on where it had stopped.
    fn after(before: Option<&Numbered>, view: Arc<LeagueView>) -> Numbered {
        let version = before.map_or_else(clock, |before| before.version + 1);
        let mut changed = before.map_or(Vec::new(), |before| before.changed.clone());
        changed.resize(view.rounds.len(), version);
        for place in changes(&view, before.map(|before| &*before.view)) {
            changed[place] = version;
        }
        Numbered {
            version,
            changed,
            figures: Figures::of(&view),
            view,
        }
    }

    /// The document for a page that has version `since`: with the rounds that have changed, and all of the rest. Before
    /// the start there is no schedule, only what it would be with those who are here.
    fn since(&self, since: u64, here: bool) -> String {
        let since = if since > self.version { 0 } else { since };
        let is_lobby = self.view.status == Progress::Waiting;
        let has_changed =
            |round: &RoundView| !is_lobby && self.changed[round.round_id as usize - 1] > since;
        let more = json!({"version": self.version, "now": clock()});
        report::data(self.view.copy(here, has_changed), &self.figures, more)
    }
}

/// Milliseconds since 1970.
fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
