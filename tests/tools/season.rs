//! The figures that follow from the documents of leagues: expected points, equal ranks, the season,
//! and the exported files (`tests/scripts/season`). A league is written as a line of results.

use super::support::story::Story;
use super::support::{TestLeague, golden, offline, rows};
use crate::compare::season::{add, rank_players, table};
use crate::compare::statistics::{completeness, report};
use crate::show::derived::DerivedFields;
use crate::show::document::copy;
use crate::show::expected_points::expected_by_player;
use crate::show::render::write_files;
use crate::show::screen::first_losses;
use crate::show::tables::{csv, results, standings};
use crate::show::view::LeagueView;
use league::json::decode;
use league::manager::league::League;
use league::manager::rounds::Waiting;
use league::manager::screen::{champions, grid};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn season_golden() {
    golden::run_scripts("season", || {
        let mut leagues = Vec::new();
        let mut story = Story::new("");
        move |line: &str| run(line, &mut leagues, &mut story)
    });
}

/// Runs a command, for the newest of the leagues that were told.
fn run(line: &str, leagues: &mut Vec<League>, story: &mut Story) -> String {
    let (command, words) = line.split_once(' ').unwrap_or((line, ""));
    if command == "league" {
        leagues.push(offline::told(&words.replace("LONG", &"x".repeat(50))));
        return String::new();
    }
    let Some(league) = leagues.last() else {
        return story.tell(line);
    };

    let view = document(league, words.ends_with("local"));
    match command {
        "ranks" => {
            let places = view.ranks.iter().zip(&view.standings);
            let places = places.map(|(rank, row)| format!("{rank} {}", row.player_id));
            return places.collect::<Vec<_>>().join(", ");
        }
        "shown" => {
            let (table, ranks) = (league.table(), league.ranks());
            return grid(&table, &ranks, 2) + "\n" + &champions(&table, &ranks);
        }
        "practice" => {
            let own: Vec<String> = words.split_whitespace().map(String::from).collect();
            let lost = first_losses(league, Path::new("logs"));
            let report = report(&view, &own) + "\n" + &completeness(&view);
            return report + "\n" + &lost.join("\n");
        }
        "results" => return results(&view),
        "standings" => return standings(&view, &expected_by_player(&view)),
        "season" => {
            let mut players = BTreeMap::new();
            for league in leagues.drain(..) {
                add(&mut players, &document(&league, false));
            }
            return table(&rank_players(players)).replace("\n\n", "\n");
        }
        "keep" => {
            let (folder, _) = words.split_once(' ').unwrap_or((words, ""));
            let folder = story.test.folder.join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("league.json"), json!(view).to_string()).unwrap();
        }
        _ => return story.tell(line),
    }
    String::new()
}

/// Returns the document of a league, under the id of the shipped league.
pub fn document(league: &League, is_local: bool) -> LeagueView {
    let heading = json!({
        "display_name": "League", "game": "Even/Odd", "game_type": league.config.league.game_type, "register_at": "",
        "scoring": league.config.league.scoring, "local": is_local,
    });
    let heading = decode(&heading).unwrap();
    LeagueView {
        league_id: "league_2025_even_odd".into(),
        ..copy(league, &Waiting::default(), heading, None)
    }
}

#[test]
fn unwritable_file_does_not_stop_the_others() {
    let test = TestLeague::new("");
    let (data, logs) = (test.folder.join("data"), test.folder.join("logs"));
    let view = document(&offline::told("P01>P02 P03=P04"), false);
    let write = || write_files(&data, &logs, &view, &DerivedFields::of(&view));
    let in_the_way = test.league_file("report.html");
    fs::create_dir_all(in_the_way.join("x")).unwrap();
    let failed = write().unwrap_err();
    let words = "1 of the files to keep cannot be written: ";
    assert!(failed.starts_with(words), "{failed}");
    for name in ["league.json", "results.csv", "standings.csv"] {
        assert!(test.league_file(name).is_file(), "{name}");
    }
    fs::remove_dir_all(&in_the_way).unwrap();
    let kept = write().unwrap();
    let words = "to keep: report.html, results.csv and standings.csv in ";
    assert!(kept.starts_with(words), "{kept}");
    assert!(in_the_way.is_file());
}

/// Cells, and how they are written.
const CELLS: &str = r#"
a,b | "a,b"
a;b | "a;b"
say "x" | "say ""x"""
two\r\nlines\tand a tab | two��lines�and a tab
=HYPERLINK(1) | "'=HYPERLINK(1)"
\u0020+1 2 | "' +1 2"
@SUM(1) | "'@SUM(1)"
\t=1 | �=1
-3 | -3
＝1 | "'＝1""#;

#[test]
fn csv_cells_are_quoted() {
    for [cell, written] in rows(CELLS) {
        let cell = cell.replace("\\r", "\r").replace("\\n", "\n");
        let cell = cell.replace("\\t", "\t").replace("\\u0020", " ");
        let came = csv("Name", [json!([cell])].into_iter());
        assert_eq!(came, format!("\u{feff}Name\r\n{written}\r\n"), "{cell:?}");
    }
}
