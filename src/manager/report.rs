//! What a person keeps of a league or looks at in a browser: the page, live or as a file with the data inside, and the
//! tables as CSV. The page is `page.html`, one file for all three: it shows `league.json`, see `view.rs`.

use crate::manager::csv::csv;
use crate::manager::league::{League, Match};
use crate::manager::standings::{HEADS, cells, ending};
use crate::net::http::Reply;
use crate::net::secret::secret;
use crate::protocol::Standing;
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
pub fn files(view: &impl Serialize, league: &League) -> io::Result<[(&'static str, String); 3]> {
    Ok([
        ("report.html", file(view)?),
        ("results.csv", results(league)),
        ("standings.csv", standings(league)),
    ])
}

/// A line per match.
fn results(league: &League) -> String {
    let name = |id: &str| {
        league
            .player(id)
            .map_or(String::new(), |player| player.display_name.clone())
    };
    let heads = "Match,Round,Player A,Name A,Player B,Name B,Ending,Winner,Number,Choice A,Choice B,Points A,Points B,\
                 Referee,Recorded at,Reason";
    let row = |game: &Match| {
        let ([a, b], recorded) = (&game.players, game.recorded.as_ref()?);
        let (result, details) = (&recorded.result, &recorded.result.details);
        let choice = |id: &String| {
            details
                .choices
                .get(id)
                .copied()
                .flatten()
                .map_or("", |choice| choice.word())
                .into()
        };
        let points = |id: &String| result.score.get(id).map_or(String::new(), i32::to_string);
        Some(vec![
            game.id.clone(),
            game.round.to_string(),
            a.clone(),
            name(a),
            b.clone(),
            name(b),
            ending(result).to_string(),
            result.winner.clone().unwrap_or_default(),
            details
                .drawn_number
                .map_or(String::new(), |number| number.to_string()),
            choice(a),
            choice(b),
            points(a),
            points(b),
            recorded.referee_id.clone(),
            recorded.at.to_string(),
            details.reason.clone().unwrap_or_default(),
        ])
    };
    csv(
        &heads.split(',').collect::<Vec<_>>(),
        league.matches.iter().filter_map(row),
    )
}

/// The table.
fn standings(league: &League) -> String {
    let technical = |id: &str| {
        league
            .player(id)
            .map_or(0, |player| league.stats(player).technical_losses)
    };
    let row = |row: &Standing| [&cells(row)[..], &[technical(&row.player_id).to_string()]].concat();
    csv(
        &[&HEADS[..], &["Technical losses"]].concat(),
        league.table().iter().map(row),
    )
}
