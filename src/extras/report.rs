//! The page that shows a league, live or as a file that a person keeps. `page.html`, `page.css` and `page.js` are joined
//! to one document, with the league's data inside, so that the page is whole as soon as it is there.
//!
//! Nothing may be loaded from elsewhere, and only script and style with the page's own nonce run.

use crate::extras::figures::{Figures, matches};
use crate::extras::trace;
use crate::manager::document::LeagueView;
use crate::net::http::Reply;
use crate::net::secret::secret;
use crate::protocol::{Ending, Kind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// So many matches that were lost technically are told message by message in a report.
const TRACES: usize = 12;

/// A league as `league.json` has it: the document, and what onlookers count.
#[derive(Serialize)]
pub struct PageData<'a> {
    /// Grows with every document of a running manager; none in what is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The clock of a running manager, in milliseconds, by which a page counts down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<u64>,
    /// The document.
    #[serde(flatten)]
    pub league: LeagueView,
    /// What onlookers count.
    #[serde(flatten)]
    pub figures: &'a Figures,
    /// What was said in some matches, by their ids; only in a report.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub traces: BTreeMap<String, String>,
}

impl PageData<'_> {
    /// A whole league as it is kept.
    fn kept<'a>(view: &LeagueView, figures: &'a Figures) -> PageData<'a> {
        PageData {
            version: None,
            now: None,
            league: view.copy(false, |_| true),
            figures,
            traces: BTreeMap::new(),
        }
    }

    /// As JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// `GET /`: the page that follows the league, with a nonce of its own.
pub fn live(data: &str) -> Reply {
    let nonce = secret(32);
    let policy = policy(&nonce);
    let more = format!(
        "Content-Security-Policy: {policy}; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer"
    );
    reply("html", &more, page(&nonce, "", "live", data))
}

/// A text of that kind which no browser may keep or take for something else, with more headers.
pub fn reply(kind: &str, more: &str, text: String) -> Reply {
    let kind = format!("Content-Type: text/{kind}; charset=utf-8\r\n");
    let safe = "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
    Reply {
        headers: format!("{kind}{safe}{more}\r\n"),
        ..Reply::new("200 OK", text)
    }
}

/// The page as a file, with the data of a league and the traces of its technical losses.
pub fn saved(view: &LeagueView, figures: &Figures, logs: &Path) -> String {
    let shown = PageData {
        traces: traces(view, logs),
        ..PageData::kept(view, figures)
    };
    let nonce = secret(32);
    let policy = policy(&nonce);
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    page(&nonce, &policy, "saved", &shown.text())
}

/// `league.json` as a file.
pub fn document(view: &LeagueView, figures: &Figures) -> String {
    PageData::kept(view, figures).text()
}

fn policy(nonce: &str) -> String {
    let own = format!("script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'");
    format!(
        "default-src 'none'; {own}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// Puts a page together. In the data `<` is written so that no name ends the script that they stand in; they come last,
/// for they are others' words.
fn page(nonce: &str, policy: &str, mode: &str, data: &str) -> String {
    PAGE.replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT)
        .replace("{{nonce}}", nonce)
        .replace("{{policy}}", policy)
        .replace("{{mode}}", mode)
        .replace("{{data}}", &data.replace('<', "\\u003c"))
}

/// What was said in the matches that were lost technically: for every reason that was given, in the first such match.
fn traces(view: &LeagueView, logs: &Path) -> BTreeMap<String, String> {
    let manager = Kind::Manager.word();
    let mut reasons = BTreeSet::new();
    let lost = matches(view)
        .filter(|game| game.ending == Some(Ending::TechnicalLoss))
        .filter(|game| game.referee_id.as_deref() != Some(manager))
        .filter(|game| reasons.insert(game.reason.clone()));
    let told = lost.take(TRACES).filter_map(|game| {
        let lines = trace::about(logs, &view.league_id, &game.match_id).ok()?;
        Some((game.match_id.clone(), trace::diagram(&lines)?))
    });
    told.collect()
}
