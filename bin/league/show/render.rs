//! Renders the document of a league: as JSON with the derived fields, as the HTML page (live, or as
//! a report that is kept), and as the other files that people keep or download.
//!
//! `page.html`, `page.css`, `parts.js` and `page.js` are joined to one HTML page, with the league's data
//! inside, so that it is complete as soon as it is loaded. It may load nothing from elsewhere, and
//! only script and style with the page's own nonce are run.

use crate::show::derived::DerivedFields;
use crate::show::view::LeagueView;
use crate::show::{tables, trace};
use league::net::sync::secret;
use league::program::storage::{self, Access};
use league::program::terminal::sanitize;
use league::protocol::ResultStatus;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = include_str!("page.html");
/// The style of all pages, and the parts of which they are made.
pub const STYLE: &str = include_str!("page.css");
pub const PARTS: &str = include_str!("parts.js");
const SCRIPT: &str = include_str!("page.js");

/// Maximum number of matches whose messages are in a report.
const MAX_TRACES: usize = 12;

/// A league as `league.json` has it: the document, its derived fields, and fields of one rendering.
#[derive(Serialize)]
struct LeagueData<'a> {
    #[serde(flatten)]
    league: LeagueView,
    #[serde(flatten)]
    derived: &'a DerivedFields,
    #[serde(flatten)]
    more: Value,
}

/// Returns a league as JSON, with the fields of `more`.
pub fn league_json(league: LeagueView, derived: &DerivedFields, more: Value) -> String {
    let data = LeagueData {
        league,
        derived,
        more,
    };
    serde_json::to_string(&data).unwrap_or_default()
}

/// Returns a file that people keep of a league or download; none for an unknown name. The report
/// has traces of the logs in the folder `logs`.
pub fn file(name: &str, view: &LeagueView, derived: &DerivedFields, logs: &Path) -> Option<String> {
    match name {
        "report.html" => {
            let traces = json!({"traces": traces(view, logs)});
            Some(page(view, &public_json(view, derived, traces)))
        }
        "league.json" => Some(public_json(view, derived, json!({}))),
        "results.csv" => Some(tables::results(view)),
        "standings.csv" => Some(tables::standings(view, &derived.expected_points)),
        _ => None,
    }
}

/// Writes the files that people keep of a league that is over, below the folder `data`; the report
/// has traces of the folder `logs`. If one cannot be written, the others are written nevertheless.
/// Returns a sentence that names the folder, or one with the first error.
pub fn write_files(
    data: &Path,
    logs: &Path,
    view: &LeagueView,
    derived: &DerivedFields,
) -> Result<String, String> {
    let folder = storage::league_folder(data, &view.league_id);
    let mut errors = Vec::new();
    for name in ["report.html", "league.json", "results.csv", "standings.csv"] {
        let text = file(name, view, derived, logs).unwrap_or_default();
        let written = storage::replace(&folder.join(name), Access::AllUsers, &text);
        errors.extend(written.err());
    }

    let count = errors.len();
    match errors.first() {
        Some(error) => Err(format!(
            "{count} of the files to keep cannot be written: {error}"
        )),
        None => Ok(format!(
            "to keep: report.html, results.csv and standings.csv in {}",
            folder.display()
        )),
    }
}

/// Returns the whole league as JSON, without the endpoints of its agents.
fn public_json(view: &LeagueView, derived: &DerivedFields, more: Value) -> String {
    league_json(view.copy(false, |_| true), derived, more)
}

/// Returns the HTML page, with a new nonce. In the data `<` is escaped, so that no name ends the
/// script element around them. The data are inserted last, since they contain texts of others.
pub fn page(view: &LeagueView, data: &str) -> String {
    PAGE.replace("{{style}}", STYLE)
        .replace("{{parts}}", PARTS)
        .replace("{{script}}", SCRIPT)
        .replace("{{nonce}}", &secret(32))
        .replace("{{table}}", &plain_table(view))
        .replace("{{data}}", &data.replace('<', "\\u003c"))
}

/// Returns the table as HTML, for a browser without JavaScript.
fn plain_table(view: &LeagueView) -> String {
    let mut table = "<table><tr><th>#</th><th>Player</th><th>Points</th></tr>\n".to_string();
    for (row, rank) in view.standings.iter().zip(&view.ranks) {
        let mut name = sanitize(&row.display_name);
        for (sign, entity) in [("&", "&amp;"), ("<", "&lt;"), ("{", "&#123;")] {
            name = name.replace(sign, entity);
        }
        let points = row.points;
        table += &format!("<tr><td>{rank}</td><td>{name}</td><td>{points}</td></tr>\n");
    }

    table + "</table>"
}

/// Returns the traces of matches that were lost technically: for each reason, of the first such
/// match.
fn traces(view: &LeagueView, logs: &Path) -> BTreeMap<String, String> {
    let mut reasons = BTreeSet::new();
    let mut traces = BTreeMap::new();
    for the_match in view.matches() {
        let is_lost = the_match.ending == Some(ResultStatus::TechnicalLoss);
        if !is_lost || reasons.len() == MAX_TRACES || !reasons.insert(&the_match.reason) {
            continue;
        }

        let match_id = &the_match.match_id;
        if let Ok(lines) = trace::find_lines(logs, &view.league_id, match_id)
            && let Some(diagram) = trace::diagram(&lines)
        {
            traces.insert(match_id.clone(), diagram);
        }
    }

    traces
}
