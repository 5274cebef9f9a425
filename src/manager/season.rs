//! `league_manager season`: the leagues that were played to their end, the last one and those set aside, added up by
//! display name. Where several players of one league have the same name, they stay apart by their ids.

use crate::manager::csv::csv;
use crate::manager::journal::Journal;
use crate::manager::league::{League, Rules};
use crate::manager::standings::{cells, empty_row};
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::storage::{Access, replace};
use crate::program::terminal::{columns, counted, say, shown};
use crate::protocol::{Progress, Standing};
use std::{collections::BTreeMap, fs, path::Path};

/// What a player has done in all leagues; the rank is its place in the season.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Row {
    pub leagues: u32,
    pub titles: u32,
    pub sum: Standing,
}

/// The rows, best first: by points, titles, wins, then by name; and whether names had to be told apart.
pub fn add_up(leagues: &[League]) -> (Vec<Row>, bool) {
    let (mut rows, mut shared) = (BTreeMap::<String, Row>::new(), false);
    for league in leagues {
        let table = league.table();
        for standing in table {
            let is_shared = table
                .iter()
                .filter(|other| other.display_name == standing.display_name)
                .count()
                > 1;
            shared |= is_shared;
            let Standing {
                player_id: id,
                display_name: name,
                ..
            } = standing;
            let name = if is_shared {
                format!("{name} ({id})")
            } else {
                name.clone()
            };
            let new = Row {
                leagues: 0,
                titles: 0,
                sum: empty_row("", &name),
            };
            let Row {
                leagues,
                titles,
                sum,
            } = rows.entry(name).or_insert(new);
            *leagues += 1;
            *titles += u32::from(standing.rank == 1);
            sum.played += standing.played;
            sum.wins += standing.wins;
            sum.draws += standing.draws;
            sum.losses += standing.losses;
            sum.points += standing.points;
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.sum.points, row.titles, row.sum.wins)));
    (1..)
        .zip(&mut rows)
        .for_each(|(rank, row)| row.sum.rank = rank);
    (rows, shared)
}

/// Prints the table, and writes it as CSV beside the leagues. Points are those that each league gave; `rules`, those of
/// today, decide who was first among equals.
pub fn run(args: &Args, rules: impl Fn(&Config) -> Rules) -> Result<(), Stop> {
    let config = program::load(args)?;
    let (id, folder) = (
        &config.league.league_id,
        Path::new(args.text("--data").unwrap_or("data")).join("leagues"),
    );
    let (mut leagues, mut unfinished) = (Vec::new(), 0);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let journal = entry.path().join("journal.jsonl");
        let is_ours = name
            .strip_prefix(&**id)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('~'));
        if is_ours && journal.exists() {
            let league = Journal::read(&journal, rules(&config))?;
            match league.progress() {
                Progress::Completed => leagues.push(league),
                _ => unfinished += u32::from(league.started),
            }
        }
    }
    if leagues.is_empty() {
        return Err(Stop::failed(format!(
            "no league of {id} in {} was played to its end",
            folder.display()
        )));
    }
    let (rows, shared) = add_up(&leagues);
    say(&format!(
        "{}, {}\n",
        counted(leagues.len() as u32, "league"),
        shown(&config.league.display_name)
    ));
    say(&columns(&HEADS, 1, rows.iter().map(row_of)));
    if shared {
        say(
            "\nSeveral players of one league have the same name: they are kept apart by their ids.",
        );
    }
    if unfinished > 0 {
        say(&format!(
            "\nLeft out: {} not played to the end.",
            counted(unfinished, "league")
        ));
    }
    let path = folder.join(format!("{id}.season.csv"));
    replace(
        &path,
        Access::Everybody,
        &csv(&HEADS, rows.iter().map(row_of)),
    )?;
    say(&format!("\nas CSV in {}", path.display()));
    Ok(())
}

const HEADS: [&str; 9] = [
    "Rank", "Player", "Leagues", "Titles", "Played", "Wins", "Draws", "Losses", "Points",
];

fn row_of(row: &Row) -> Vec<String> {
    let [rank, _, name, numbers @ ..] = cells(&row.sum);
    [
        &[rank, name, row.leagues.to_string(), row.titles.to_string()],
        &numbers[..],
    ]
    .concat()
}
