//! What a browser sees at the manager's address: the page, `league.json`, what was said in a match,
//! and the files that a person keeps. Nothing here changes the league; all of it is made from the
//! league's document. A page asks again and again, so it says which version it has, and gets of the
//! rounds only those that have changed since.

use crate::figures::Figures;
use crate::view::LeagueView;
use crate::{report, trace};
use league::net::http::Response;
use league::net::sync::lock;
use league::protocol::LeaguePhase;
use league::values::Timestamp;
use serde_json::json;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long the manager stays at the end for those that are looking.
const LAST_LOOK: Duration = Duration::from_millis(1500);

/// The template of a player in Python, and the protocol as a page: what a student needs to join.
const TEMPLATE: &str = include_str!("../player.py");
const PROTOCOL: &str = include_str!("../../src/protocol.md");

/// What a reply with the page says beside what stands in the page: nobody may show it inside a page
/// of theirs, and where it leads to, nobody is told who led there.
const ALONE: &str =
    "Content-Security-Policy: frame-ancestors 'none'\r\nReferrer-Policy: no-referrer";

/// The pages of a running manager.
pub struct Site {
    /// Where the logs of this machine's agents are.
    logs: PathBuf,
    /// The figures of the newest document, and its version; none until somebody looks.
    counted: Mutex<Option<(Option<u64>, Arc<Figures>)>>,
}

impl Site {
    /// Pages that show what is told of the matches in the folder `logs`.
    pub fn new(logs: PathBuf) -> Site {
        Site {
            logs,
            counted: Mutex::default(),
        }
    }

    /// The page of a league at `path`, if there is one; `query` is what stands behind the question
    /// mark. `recorded` says whether a match has a result at this very moment, if there is such a
    /// match.
    pub fn page(
        &self,
        view: &LeagueView,
        recorded: impl Fn(&str) -> Option<bool>,
        path: &str,
        query: &str,
        peer: IpAddr,
    ) -> Option<Response> {
        let here = peer.is_loopback();
        let figures = self.figures(view);
        if let Some(match_id) = path.strip_prefix("/trace/") {
            let match_id = match_id.to_uppercase();
            let recorded = || recorded(&match_id);
            let page = trace::page(&self.logs, &view.league_id, &match_id, recorded);
            return Some(page);
        }
        Some(match path {
            "/" => reply(
                "html",
                ALONE,
                report::page(&since(view, &figures, None, here)),
            ),
            "/league.json" => {
                let version = query.strip_prefix("since=").and_then(|it| it.parse().ok());
                Response::new("200 OK", since(view, &figures, version, here))
            }
            "/player.py" => Response::text("200 OK", TEMPLATE),
            "/protocol" => Response::text("200 OK", PROTOCOL),
            _ => {
                let (name, kind) = (path.strip_prefix('/')?, path.rsplit('.').next()?);
                let file = report::file(name, view, &figures, &self.logs)?;
                reply(kind, "Content-Disposition: attachment", file)
            }
        })
    }

    /// At the end of the league: waits a moment, if anybody has looked, so that the page sees the
    /// end.
    pub fn linger(&self) {
        if lock(&self.counted).is_some() {
            thread::sleep(LAST_LOOK);
        }
    }

    /// The figures of a document, which are counted once.
    fn figures(&self, view: &LeagueView) -> Arc<Figures> {
        let mut counted = lock(&self.counted);
        match &*counted {
            Some((version, figures)) if *version == view.version => Arc::clone(figures),
            _ => {
                let figures = Arc::new(Figures::of(view));
                *counted = Some((view.version, Arc::clone(&figures)));
                figures
            }
        }
    }
}

/// The document for a page that has the version `since`: with the rounds that have changed, and all
/// of the rest. Before the start there is no schedule, only what it would be with those who are
/// here.
fn since(view: &LeagueView, figures: &Figures, since: Option<u64>, here: bool) -> String {
    let since = match view.status {
        LeaguePhase::Waiting => view.version,
        _ => since.filter(|_| since <= view.version),
    };
    let copy = view.copy(here, |round| round.changed > since);
    let now = json!({"now": Timestamp::now_with_millis()});
    report::data(copy, figures, now)
}

/// A text of that kind which no browser may keep or take for something else, with more headers.
fn reply(kind: &str, more: &str, text: String) -> Response {
    let kind = format!("Content-Type: text/{kind}; charset=utf-8\r\n");
    let safe = "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
    Response {
        headers: format!("{kind}{safe}{more}\r\n"),
        ..Response::new("200 OK", text)
    }
}
