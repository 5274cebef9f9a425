//! The pages at the manager's address: the page of the league, `league.json`, the traces of
//! matches, and the files that people download. All are made from the league's document, and none
//! changes the league. An open page asks every second with the version that it has, and gets only
//! the rounds that have changed since.

use crate::show::derived::DerivedFields;
use crate::show::view::LeagueView;
use crate::show::{render, trace};
use league::net::http::{OK, Response};
use league::net::sync::lock;
use league::protocol::LeaguePhase;
use league::values::Timestamp;
use serde_json::json;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Time for open pages to get the end of the league.
const FINAL_PAUSE: Duration = Duration::from_millis(1500);

/// The template of a player in Python and the protocol, for students who want to join.
pub const PLAYER_TEMPLATE: &str = include_str!("../../player.py");
/// The rest of the player in Python.
const PLAYER_REST: &str = include_str!("../../league_player.py");
const PROTOCOL: &str = include_str!("../../../src/protocol.md");

/// Headers of the page: no other page may show it in a frame, and links from it send no referrer.
const PAGE_HEADERS: &str =
    "Content-Security-Policy: frame-ancestors 'none'\r\nReferrer-Policy: no-referrer";

/// The pages of a running manager.
pub struct WebPages {
    /// The folder of the logs of this machine's agents.
    logs: PathBuf,
    /// The derived fields of the newest document; none before the first request.
    cache: Mutex<Option<Cache>>,
    /// The newest report and its version. It is locked while a report is made, which reads all
    /// logs.
    report: Mutex<Option<(Option<u64>, String)>>,
}

struct Cache {
    version: Option<u64>,
    derived: Arc<DerivedFields>,
}

impl WebPages {
    /// Returns pages with the traces of that folder of logs.
    pub fn new(logs: PathBuf) -> WebPages {
        WebPages {
            logs,
            cache: Mutex::default(),
            report: Mutex::default(),
        }
    }

    /// Returns the response for a path; none if there is no such page. `query` is the part of the
    /// URL after the question mark. `has_result` says if a match has a result now; none if there is
    /// no such match.
    pub fn respond(
        &self,
        view: &LeagueView,
        has_result: impl Fn(&str) -> Option<bool>,
        path: &str,
        query: &str,
        peer: IpAddr,
    ) -> Option<Response> {
        let derived = self.derived_fields(view);
        if let Some(match_id) = path.strip_prefix("/trace/") {
            let match_id = match_id.to_uppercase();
            let page = trace::page(&self.logs, &view.league_id, &match_id, || {
                has_result(&match_id)
            });
            return Some(page);
        }

        match path {
            "/" => {
                let data = live_json(view, &derived, None, peer);
                Some(text_response(
                    "html",
                    PAGE_HEADERS,
                    render::page(view, &data),
                ))
            }
            "/league.json" => {
                let version = query.strip_prefix("since=");
                let version = version.and_then(|version| version.parse().ok());
                let data = live_json(view, &derived, version, peer);
                Some(Response::new(OK, data))
            }
            "/player.py" => Some(Response::text(OK, PLAYER_TEMPLATE)),
            "/league_player.py" => Some(Response::text(OK, PLAYER_REST)),
            "/protocol" => Some(Response::text(OK, PROTOCOL)),
            "/report.html" => Some(self.report(view, &derived)),
            _ => {
                let name = path.strip_prefix('/')?;
                let (_, extension) = name.rsplit_once('.')?;
                let file = render::file(name, view, &derived, &self.logs)?;
                let headers = "Content-Disposition: attachment";
                Some(text_response(extension, headers, file))
            }
        }
    }

    /// Returns the report, which is made once for each version, and for one request at a time.
    fn report(&self, view: &LeagueView, derived: &DerivedFields) -> Response {
        let Ok(mut report) = self.report.try_lock() else {
            let busy = "the report is being made; ask again in a moment";
            return Response::text("503 Service Unavailable", busy);
        };
        let made = report
            .take()
            .filter(|(version, _)| *version == view.version);
        let (_, text) = report.insert(made.unwrap_or_else(|| {
            let text = render::file("report.html", view, derived, &self.logs);
            (view.version, text.unwrap_or_default())
        }));
        let headers = "Content-Disposition: attachment";
        text_response("html", headers, text.clone())
    }

    /// Waits a moment at the end of the league, if there were requests, so that open pages get the
    /// end.
    pub fn linger(&self) {
        if lock(&self.cache).is_some() {
            thread::sleep(FINAL_PAUSE);
        }
    }

    /// Returns the derived fields of a document, which are computed once for each version.
    fn derived_fields(&self, view: &LeagueView) -> Arc<DerivedFields> {
        let mut cache = lock(&self.cache);
        if let Some(cached) = &*cache
            && cached.version == view.version
        {
            return Arc::clone(&cached.derived);
        }

        let derived = Arc::new(DerivedFields::of(view));
        *cache = Some(Cache {
            version: view.version,
            derived: Arc::clone(&derived),
        });
        derived
    }
}

/// Returns the document for a page that has that version: all of it, except for rounds that have
/// not changed since. Before the start it has no rounds, since the schedule depends on the players.
fn live_json(
    view: &LeagueView,
    derived: &DerivedFields,
    version: Option<u64>,
    peer: IpAddr,
) -> String {
    let since = if view.status == LeaguePhase::Waiting {
        view.version
    } else {
        version.filter(|_| version <= view.version)
    };

    let copy = view.copy(peer.is_loopback(), |round| round.changed > since);
    let now = json!({"now": Timestamp::now_with_millis()});
    render::league_json(copy, derived, now)
}

/// Returns a response with a text of that type, which browsers neither keep nor take for another
/// type.
pub fn text_response(subtype: &str, headers: &str, text: String) -> Response {
    Response {
        headers: format!(
            "Content-Type: text/{subtype}; charset=utf-8\r\n\
             X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n{headers}\r\n"
        ),
        ..Response::new(OK, text)
    }
}
