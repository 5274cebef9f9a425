//! What a browser sees at the manager's address: the page, `league.json`, what was said in a match, and the files that a
//! person keeps. Nothing here changes the league; all of it is made from the league's document.
//!
//! A page asks again and again, so it says which version it has, and gets of the rounds only those that have changed
//! since. A version is a number that grows with every document.

use crate::extras::figures::Figures;
use crate::extras::report::PageData;
use crate::extras::{csv, report, trace};
use crate::manager::document::{Document, LeagueView, RoundView};
use crate::net::http::Reply;
use crate::net::retry::pause;
use crate::net::sync::lock;
use crate::protocol::Progress;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Whoever has asked within this time is still looking.
const LOOKING: Duration = Duration::from_secs(3);
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
    newest: Mutex<Option<Arc<Numbered>>>,
    /// When a page asked last.
    asked: Mutex<Option<Instant>>,
}

impl Site {
    /// Pages that show what is told of the matches in the folder `logs`.
    pub fn new(logs: PathBuf) -> Site {
        Site {
            logs,
            newest: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// The page of a league at `path`, if there is one; `query` is what stands behind the question mark.
    pub fn page(
        &self,
        document: &Document,
        path: &str,
        query: &str,
        peer: IpAddr,
    ) -> Option<Reply> {
        let here = peer.is_loopback();
        let newest = self.newest(document);
        let (view, figures) = (&newest.view, &newest.figures);
        let reply = match path {
            "/" => report::live(&newest.since(0, here)),
            "/league.json" => {
                *lock(&self.asked) = Some(Instant::now());
                let since = query.strip_prefix("since=").and_then(|it| it.parse().ok());
                Reply::new("200 OK", newest.since(since.unwrap_or(0), here))
            }
            "/player.py" => Reply::text("200 OK", TEMPLATE),
            "/protocol" => Reply::text("200 OK", PROTOCOL),
            "/report.html" => download("html", report::saved(view, figures, &self.logs)),
            "/results.csv" => download("csv", csv::results(view)),
            "/standings.csv" => download("csv", csv::standings(view, &figures.expected_points)),
            _ => {
                let match_id = path.strip_prefix("/trace/")?.to_uppercase();
                let recorded = || document.is_recorded(&match_id);
                trace::page(&self.logs, &view.league_id, &match_id, recorded)
            }
        };
        Some(reply)
    }

    /// At the end of the league: waits a moment, if somebody is looking, so that the page sees the end.
    pub fn linger(&self) {
        let asked = *lock(&self.asked);
        if asked.is_some_and(|asked| asked.elapsed() < LOOKING) {
            pause(LAST_LOOK);
        }
    }

    fn newest(&self, document: &Document) -> Arc<Numbered> {
        let view = document.newest();
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
    /// Numbers a document that follows another. Versions are milliseconds of the clock, so that those of a manager
    /// that was started again go on where it had stopped.
    fn after(before: Option<&Numbered>, view: Arc<LeagueView>) -> Numbered {
        let clock = clock();
        let version = before.map_or(clock, |before| clock.max(before.version + 1));
        // Before the start there is no schedule, only what it would be with those who are here.
        let before = before.filter(|before| before.view.status != Progress::Waiting);
        let changed = |(place, round): (usize, &Arc<RoundView>)| {
            let before = before?;
            let known = before.view.rounds.get(place)?;
            Arc::ptr_eq(known, round).then_some(before.changed[place])
        };
        let rounds = view.rounds.iter().enumerate();
        let changed = rounds.map(|round| changed(round).unwrap_or(version));
        let changed = changed.collect();
        let figures = Figures::of(&view);
        Numbered {
            version,
            view,
            changed,
            figures,
        }
    }

    /// The document for a page that has version `since`: with the rounds that have changed, and all of the rest.
    fn since(&self, since: u64, here: bool) -> String {
        let since = if since > self.version { 0 } else { since };
        let has_changed = |round: &RoundView| {
            let place = round.round_id as usize - 1;
            let at = self.changed.get(place).copied().unwrap_or(self.version);
            at > since && self.view.status != Progress::Waiting
        };
        let shown = PageData {
            version: Some(self.version),
            now: Some(clock()),
            league: self.view.copy(here, has_changed),
            figures: &self.figures,
            traces: BTreeMap::new(),
        };
        shown.text()
    }
}

/// Milliseconds since 1970.
fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A file that the browser keeps under the last part of its address.
fn download(kind: &str, text: String) -> Reply {
    report::reply(kind, "Content-Disposition: attachment", text)
}
