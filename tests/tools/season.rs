//! The figures that follow from the documents of leagues: expected points, equal ranks, the season,
//! and the exported files. No sockets; a league is written as a line of results.

use super::run_command;
use super::support::{TestLeague, check_contains, offline, rows};
use crate::compare::season::{add, rank_players, table};
use crate::show::derived::DerivedFields;
use crate::show::document::copy;
use crate::show::expected_points::expected_by_player;
use crate::show::render::write_files;
use crate::show::tables::{csv, results, standings};
use crate::show::view::LeagueView;
use league::json::decode;
use league::manager::league::League;
use league::manager::rounds::Waiting;
use league::manager::screen::{champions, grid};
use serde_json::json;
use std::collections::BTreeMap;
use std::{fs, path::Path};

/// Returns the document of a league with the results of a script: `P01>P02 P03=P04 | P01!P03 P02?P04`.
fn league(script: &str) -> LeagueView {
    document(&offline::told(script), false)
}

/// Writes a file of a league.
fn keep(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(name), text).unwrap();
}

#[test]
fn expected_points_are_what_the_choices_were_worth_and_forfeits_count_nothing() {
    let view = league("P01>P02 P03=P04 | P01!P03 P02=P04 | P01>P04 P02?P03");
    let expected = expected_by_player(&view);
    let rows = [("P01", 3.0), ("P02", 2.5), ("P03", 1.0), ("P04", 3.5)];
    for (id, worth) in rows {
        assert_eq!(expected[id], worth, "{id}");
    }
    let results = results(&view);
    let worth = results.lines().skip(1).map(|row| row.split(',').nth(14));
    let worth: Vec<&str> = worth.flatten().take(3).collect();
    assert_eq!(worth, ["1.5", "1.0", ""], "{results}");
    let table = standings(&view, &expected);
    check_contains(&table, "P01,P01,3,3,0,0,9,3.0,");
}

/// A league, its rounds parted by commas, and its groups of equal players. Those of the third league have
/// not met.
const EQUALS: &str = "
P01=P02 P03=P04 | P01 P02 P03 P04
P01>P02 P03>P04 | P01 P03, P02 P04
P01>P02 P03>P04, P01>P03 P02>P04 | P02 P03
P01>P02 P02>P03 P03>P01 | P01 P02 P03
P01>P02 P03>P04, P01>P03 P02>P04, P03>P02 P01?P04 |";

#[test]
fn players_with_equal_tiebreaks_share_a_rank() {
    for [script, groups] in rows(EQUALS) {
        let view = league(&script.replace(", ", " | "));
        let ids = view.standings.iter().map(|row| row.player_id.as_str());
        let mut equal = BTreeMap::<&String, Vec<&str>>::new();
        for (rank, id) in view.ranks.iter().zip(ids) {
            if rank.ends_with('=') {
                equal.entry(rank).or_default().push(id);
            }
        }
        let came: Vec<String> = equal.values().map(|group| group.join(" ")).collect();
        assert_eq!(came.join(", "), groups, "{script}");
    }
}

#[test]
fn season_is_ordered_by_points_per_match() {
    let small = league("P01>P02");
    let large = league("P05=P02 P04=P03 | P05=P04 P02=P03 | P05=P03 P02=P04 | P02=P05");
    let mut players = BTreeMap::new();
    [small, large]
        .iter()
        .for_each(|league| add(&mut players, league));
    let season = rank_players(players);
    let told = season.iter().map(|(name, sums)| {
        let [titles, leagues] = [sums.titles, sums.leagues];
        format!(
            "{name} {titles} of {leagues}, {} points, {}",
            sums.points, sums.expected
        )
    });
    let wanted = [
        "P01 1 of 1, 3 points, 1.5", // 3 points in one match are more than 4 in four
        "P03 0 of 1, 3 points, 3",
        "P04 0 of 1, 3 points, 3",
        "P05 1 of 1, 4 points, 4", // equal to P02 in everything: both have the title
        "P02 1 of 2, 4 points, 5.5",
    ];
    assert_eq!(told.collect::<Vec<_>>(), wanted);
}

#[test]
fn tables_fit_a_terminal_and_name_what_they_leave_out() {
    let name = "x".repeat(50);
    let league = offline::told(&format!("{name}=B C=D"));
    let shown = grid(&league.table(), &league.ranks(), 1);
    assert!(
        shown.ends_with("\n… and 3 more: standings.json has all"),
        "{shown}"
    );
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    let mut players = BTreeMap::new();
    add(&mut players, &document(&league, false));
    let season = table(&rank_players(players));
    assert!(
        season.lines().all(|line| line.chars().count() <= 80),
        "{season}"
    );
}

#[test]
fn season_leaves_out_local_leagues_unless_their_folder_is_named() {
    let test = TestLeague::new("");
    let keep = |folder: &str, script: &str, is_local: bool| {
        let document = document(&offline::told(script), is_local);
        let text = serde_json::to_string(&document).unwrap();
        let folder = test.folder.join("data").join(folder);
        keep(&folder, "league.json", &text);
    };
    let own = "leagues/league_2025_even_odd";
    keep(own, "P01>P02", true);
    keep(&format!("practice/{own}"), "P01>P02", true);
    let (code, output) = test.run_tool("season");
    let problem = "no league of league_2025_even_odd was played to its end";
    assert!(code == Some(1) && output.contains(problem), "{output}");
    keep(&format!("{own}~2026-11-21T080000Z"), "P02>P01", false);
    keep(&format!("{own}~2026-11-21T090000Z"), "P02?P01", false);
    let (_, output) = test.run_tool("season");
    check_contains(&output, "  2025-01-15    Champion: P02 (P02)\n");
    assert_eq!(output.matches("Champion").count(), 1, "{output}");
    let data = test.folder.join("data");
    let (_, output) = test.run_tool(&format!("season {}", data.display()));
    assert_eq!(output.matches("Champion").count(), 2, "{output}");
}

#[test]
fn unwritable_file_does_not_stop_the_others() {
    let test = TestLeague::new("");
    let (data, logs) = (test.folder.join("data"), test.folder.join("logs"));
    let view = league("P01>P02 P03=P04");
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

#[test]
fn csv_cells_are_quoted() {
    let rows = [
        ("a,b", "\"a,b\""),
        ("a;b", "\"a;b\""),
        ("say \"x\"", "\"say \"\"x\"\"\""),
        ("two\r\nlines\tand a tab", "two��lines�and a tab"),
        ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
        (" +1 2", "\"' +1 2\""),
        ("@SUM(1)", "\"'@SUM(1)\""),
        ("\t=1", "�=1"),
        ("-3", "-3"),
        ("＝1", "\"'＝1\""),
    ];
    for (cell, written) in rows {
        let came = csv("Name", [json!([cell])].into_iter());
        assert_eq!(came, format!("\u{feff}Name\r\n{written}\r\n"), "{cell:?}");
    }
}

#[test]
fn folders_without_a_finished_league_are_named_and_the_best_of_the_others_promoted() {
    let test = TestLeague::new("");
    let season = test.folder.join("season");
    let put = |group: &str, name: &str, text: &str| {
        let folder = season.join(group).join("leagues/league_2025_even_odd");
        keep(&folder, name, text);
    };
    let view = league("P01>P02 P03=P04 | P03>P01 P02=P04");
    put("001", "league.json", &serde_json::to_string(&view).unwrap());
    put("001", "entrants.txt", "P03\tthree\nP04\tfour\nP01\tone\n");
    put("003", "league.json", "{\"league");
    let paths = ["001", "003", "004"].map(|name| season.join(name).display().to_string());
    let run = |options: &str| {
        let arguments = format!("season {} {options}", paths.join(" "));
        run_command(&mut test.command("league", &arguments))
    };
    let (code, [shown, errors]) = run("");
    assert_eq!(code, Some(1), "{errors}");
    check_contains(&shown, "001  2025-01-15    Champion: P03 (P03)\n");
    for problem in [
        "this league is left out",
        "003: no league of ",
        "004: no league of ",
    ] {
        check_contains(&errors, problem);
    }

    // P04 is third in the table, but its two draws with equal choices are worth less than two
    // matches that others had.
    let (_, [promoted, errors]) = run("--promote 3");
    assert_eq!(promoted, "P01\tone\nP03\tthree\n");
    check_contains(&errors, "P02 is no name in ");
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
fn equal_players_share_a_rank_and_the_title_everywhere() {
    let league = offline::told("P01=P02 P03>P04 | P01>P04 P02>P03");
    let (table, ranks) = (league.table(), league.ranks());
    assert_eq!(ranks, ["1=", "1=", "3", "4"]);
    assert_eq!(
        champions(&table, &ranks),
        "Champion: P01 (P01) and P02 (P02)"
    );
    let shown = grid(&table, &ranks, 2);
    for row in ["\n  1=  P01  P01 ", "\n  1=  P02  P02 "] {
        check_contains(&shown, row);
    }

    // The files, and a season of this league alone, say the same.
    let view = document(&league, false);
    let file = standings(&view, &BTreeMap::new());
    for row in [
        "\n1=,P01,P01,2,1,1,0,4,",
        "\n1=,P02,P02,2,1,1,0,4,",
        "\n3,P03,",
    ] {
        check_contains(&file, row);
    }
    let mut players = BTreeMap::new();
    add(&mut players, &view);
    let season = self::table(&rank_players(players));
    for name in ["P01", "P02"] {
        check_contains(&season, &format!("  {name}           1       1  "));
    }
}
