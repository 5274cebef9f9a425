//! What a person keeps of a league or looks at in a browser: the page, live or as a file with the data inside, and the
//! tables as CSV. The page is `page.html`, one file for all three: it shows `league.json`, see `view.rs`.

use crate::extras::csv;
use crate::manager::document::LeagueView;
use crate::net::http::Reply;
use crate::net::secret::secret;
use serde::Serialize;
use std::io;

const PAGE: &str = include_str!("page.html");

/// Nothing may be loaded from elsewhere, and only script and style with this nonce run.
fn policy(nonce: &str) -> String {
    let own = format!(
        "script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:"
    );
    format!("default-src 'none'; {own}; base-uri 'none'; form-action 'none'")
}

/// `GET /`: the page that follows the league, with a nonce of its own.
pub fn live() -> Reply {
    let nonce = secret(32);
    let policy = format!(
        "Content-Security-Policy: {}; frame-ancestors 'none'\r\n",
        policy(&nonce)
    );
    let safe = "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n";
    let headers = format!("Content-Type: text/html; charset=utf-8\r\n{policy}{safe}");
    Reply {
        status: "200 OK",
        headers,
        body: page(&nonce, "", "").into_bytes(),
    }
}

fn page(nonce: &str, policy: &str, data: &str) -> String {
    PAGE.replace("{{nonce}}", nonce)
        .replace("{{policy}}", policy)
        .replace("{{data}}", data) // the data last: it is others' words
}

/// The page as a file. `<` is written so that no name ends the script that the data stands in.
fn file(view: &impl Serialize) -> io::Result<String> {
    let (nonce, data) = (
        secret(32),
        serde_json::to_string(view)?.replace('<', "\\u003c"),
    );
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">",
        policy(&nonce)
    );
    Ok(page(&nonce, &policy, &data))
}

/// What is kept of a league: the names of the files and what stands in them.
pub fn files(view: &LeagueView) -> io::Result<[(&'static str, String); 4]> {
    let document = serde_json::to_string(view)?;
    let tables = [
        ("results.csv", csv::results(view)),
        ("standings.csv", csv::standings(view)),
    ];
    let [results, standings] = tables;
    Ok([
        ("report.html", file(view)?),
        ("league.json", document),
        results,
        standings,
    ])
}
