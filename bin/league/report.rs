//! What is made of a league's document for a person: the page, live or as a report that is kept,
//! and the other files to keep. `page.html`, `page.css` and `page.js` are joined to one document,
//! with the league's data inside, so that the page is whole as soon as it is there. Nothing may be
//! loaded from elsewhere, and only script and style with the page's own nonce run.

use crate::figures::Figures;
use crate::view::LeagueView;
use crate::{csv, trace};
use league::net::sync::secret;
use league::protocol::ResultStatus;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// So many matches that were lost technically are told message by message in a report.
const TRACES: usize = 12;

/// A league as `league.json` has it: the document, what onlookers count from it, and more.
#[derive(Serialize)]
struct PageData<'a> {
    #[serde(flatten)]
    league: LeagueView,
    #[serde(flatten)]
    figures: &'a Figures,
    #[serde(flatten)]
    more: Value,
}

/// A league as JSON, with `more` beside it.
pub fn data(league: LeagueView, figures: &Figures, more: Value) -> String {
    let data = PageData {
        league,
        figures,
        more,
    };
    serde_json::to_string(&data).unwrap_or_default()
}

/// A file that a person keeps of a league, or downloads, if that is its name. The report quotes the
/// logs in `logs`.
pub fn file(name: &str, view: &LeagueView, figures: &Figures, logs: &Path) -> Option<String> {
    let kept = |more| data(view.copy(false, |_| true), figures, more);
    Some(match name {
        "report.html" => page(&kept(json!({"traces": traces(view, logs)}))),
        "league.json" => kept(json!({})),
        "results.csv" => csv::results(view),
        "standings.csv" => csv::standings(view, &figures.expected_points),
        _ => return None,
    })
}

/// Puts a page together, with a nonce of its own. In the data `<` is written so that no name ends
/// the script that they stand in; they come last, for they are others' words.
pub fn page(data: &str) -> String {
    PAGE.replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT)
        .replace("{{nonce}}", &secret(32))
        .replace("{{data}}", &data.replace('<', "\\u003c"))
}

/// What was said in the matches that were lost technically: for every reason that was given, in the
/// first such match.
fn traces(view: &LeagueView, logs: &Path) -> BTreeMap<String, String> {
    let mut reasons = BTreeSet::new();
    let lost = view
        .matches()
        .filter(|game| game.ending == Some(ResultStatus::TechnicalLoss))
        .filter(|game| reasons.insert(game.reason.clone()));
    let told = lost.take(TRACES).filter_map(|game| {
        let lines = trace::find_lines(logs, &view.league_id, &game.match_id).ok()?;
        Some((game.match_id.clone(), trace::diagram(&lines)?))
    });
    told.collect()
}
