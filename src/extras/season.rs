//! `league_manager season`: the leagues that were played to their end, the last one and those set aside, added up by
//! display name. It reads the documents that each left behind (`league.json`). Where several players of one league have
//! the same name, they stay apart by their ids.

use crate::extras::csv::csv;
use crate::manager::document::LeagueView;
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::storage::{Access, read_json, replace};
use crate::program::terminal::{columns, counted, say, shown};
use crate::protocol::Progress;
use std::{cmp::Reverse, collections::BTreeMap, fs, path::Path};

const HEADS: [&str; 9] = [
    "Rank", "Player", "Leagues", "Titles", "Played", "Wins", "Draws", "Losses", "Points",
];

/// By name: leagues, titles, played, wins, draws, losses, points. And whether names had to be told apart.
pub fn add_up(leagues: &[LeagueView]) -> (Vec<(String, [i32; 7])>, bool) {
    let (mut rows, mut shared) = (BTreeMap::<String, [i32; 7]>::new(), false);
    for (league, row) in leagues
        .iter()
        .flat_map(|it| it.standings.iter().map(move |row| (it, row)))
    {
        let is_shared = league
            .standings
            .iter()
            .filter(|it| it.display_name == row.display_name)
            .count()
            > 1;
        shared |= is_shared;
        let name = &row.display_name;
        let sums = rows
            .entry(if is_shared {
                format!("{name} ({})", row.player_id)
            } else {
                name.clone()
            })
            .or_default();
        let [played, wins, draws, losses] =
            [row.played, row.wins, row.draws, row.losses].map(|n| n as i32);
        let gained = [
            1,
            i32::from(row.rank == 1),
            played,
            wins,
            draws,
            losses,
            row.points,
        ];
        sums.iter_mut()
            .zip(gained)
            .for_each(|(sum, more)| *sum += more);
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, [_, titles, _, wins, .., points])| Reverse((*points, *titles, *wins)));
    (rows, shared)
}

/// Prints the table, and writes it as CSV beside the leagues.
pub fn run(args: &Args) -> Result<(), Stop> {
    let config = program::load(args)?;
    let (id, folder) = (
        &config.league.league_id,
        Path::new(args.text("--data").unwrap_or("data")).join("leagues"),
    );
    let is_ours = |name: &str| {
        name.strip_prefix(&**id)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
    };
    let folders = fs::read_dir(&folder).into_iter().flatten().flatten();
    let ours = folders.filter(|it| is_ours(&it.file_name().to_string_lossy()));
    let leagues = ours.filter_map(|it| read_json(&it.path().join("league.json")));
    let leagues: Vec<LeagueView> = leagues
        .filter(|it: &LeagueView| it.status == Progress::Completed)
        .collect();
    if leagues.is_empty() {
        return Err(Stop::failed(format!(
            "no league of {id} in {} was played to its end",
            folder.display()
        )));
    }
    let (rows, shared) = add_up(&leagues);
    let cells = |(n, (name, sums)): (usize, &(String, [i32; 7]))| {
        [
            vec![(n + 1).to_string(), name.clone()],
            sums.map(|sum| sum.to_string()).into(),
        ]
        .concat()
    };
    say(&format!(
        "{}, {}\n",
        counted(leagues.len() as u32, "league"),
        shown(&config.league.display_name)
    ));
    say(&columns(&HEADS, 1, rows.iter().enumerate().map(cells)));
    if shared {
        say(
            "\nSeveral players of one league have the same name: they are kept apart by their ids.",
        );
    }
    let path = folder.join(format!("{id}.season.csv"));
    let rows = rows
        .iter()
        .enumerate()
        .map(cells)
        .map(|row| row.into_iter().map(Into::into).collect());
    replace(&path, Access::Everybody, &csv(&HEADS.join(","), rows))?;
    say(&format!("\nas CSV in {}", path.display()));
    Ok(())
}
