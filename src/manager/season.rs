//! `league_manager season`: the leagues that were played to their end, the last one and those set aside, added up by
//! display name. Where several players of one league have the same name, they stay apart by their ids.

use crate::manager::csv::{line, table};
use crate::manager::journal::Journal;
use crate::manager::league::{League, Rules};
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::config::Config;
use crate::program::storage::{Access, replace};
use crate::program::terminal::{counted, pad, say, shown, width};
use crate::protocol::{Progress, Standing};
use std::{collections::BTreeMap, fs, path::Path};

/// What a player has done in all leagues; the rank is its place in the season.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Row {
    pub name: String,
    pub leagues: u32,
    pub titles: u32,
    pub played: u32,
    pub wins: u32,
    pub draws: u32,
    pub losses: u32,
    pub points: i32,
}

/// The rows, best first: by points, titles, wins, then by name; and whether names had to be told apart.
pub fn add_up(leagues: &[League]) -> (Vec<Row>, bool) {
    let (mut rows, mut shared) = (BTreeMap::<String, Row>::new(), false);
    for league in leagues {
        let table = league.table();
        for standing in table {
            let is_shared = table.iter().filter(|other| other.display_name == standing.display_name).count() > 1;
            shared |= is_shared;
            let Standing { player_id: id, display_name: name, .. } = standing;
            let name = if is_shared { format!("{name} ({id})") } else { name.clone() };
            let row = rows.entry(name.clone()).or_insert_with(|| Row { name, ..Row::default() });
            row.leagues += 1;
            row.titles += u32::from(standing.rank == 1);
            row.played += standing.played;
            row.wins += standing.wins;
            row.draws += standing.draws;
            row.losses += standing.losses;
            row.points += standing.points;
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.points, row.titles, row.wins)));
    (rows, shared)
}

/// Prints the table, and writes it as CSV beside the leagues. `rules`: those of today, by which points are counted.
pub fn run(args: &Args, rules: impl Fn(&Config) -> Rules) -> Result<(), Stop> {
    let config = program::load(args)?;
    let (id, folder) = (&config.league.league_id, Path::new(args.text("--data").unwrap_or("data")).join("leagues"));
    let (mut leagues, mut unfinished) = (Vec::new(), 0);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let journal = entry.path().join("journal.jsonl");
        let is_ours = name.strip_prefix(&**id).is_some_and(|rest| rest.is_empty() || rest.starts_with('~'));
        if is_ours && journal.exists() {
            let league = Journal::read(&journal, rules(&config))?;
            match league.progress() {
                Progress::Completed => leagues.push(league),
                _ => unfinished += u32::from(league.started),
            }
        }
    }
    if leagues.is_empty() {
        return Err(Stop::failed(format!("no league of {id} in {} was played to its end", folder.display())));
    }
    let (rows, shared) = add_up(&leagues);
    say(&format!("{}, {}\n", counted(leagues.len() as u32, "league"), shown(&config.league.display_name)));
    say(&grid(&rows));
    if shared {
        say("\nSeveral players of one league have the same name: they are kept apart by their ids.");
    }
    if unfinished > 0 {
        say(&format!("\nLeft out: {} not played to the end.", counted(unfinished, "league")));
    }
    let path = folder.join(format!("{id}.season.csv"));
    replace(&path, Access::Everybody, &csv(&rows))?;
    say(&format!("\nas CSV in {}", path.display()));
    Ok(())
}

const HEAD: [&str; 9] = ["Rank", "Player", "Leagues", "Titles", "Played", "Wins", "Draws", "Losses", "Points"];

fn numbers(row: &Row) -> [String; 7] {
    let counts = [row.leagues, row.titles, row.played, row.wins, row.draws, row.losses].map(|n| n.to_string());
    let [leagues, titles, played, wins, draws, losses] = counts;
    [leagues, titles, played, wins, draws, losses, row.points.to_string()]
}

fn grid(rows: &[Row]) -> String {
    let names: Vec<String> = rows.iter().map(|row| shown(&row.name)).collect();
    let most = names.iter().map(|name| width(name)).max().unwrap_or(0).max(HEAD[1].len());
    let cells = |values: &[&str]| {
        HEAD[2..].iter().zip(values).map(|(head, it)| format!("  {it:>0$}", head.len())).collect::<String>()
    };
    let mut text = format!("Rank  {}{}", pad(HEAD[1], most), cells(&HEAD[2..]));
    for (rank, (row, name)) in (1..).zip(rows.iter().zip(&names)) {
        let numbers = numbers(row);
        text += &format!("\n{rank:>4}  {}{}", pad(name, most), cells(&numbers.each_ref().map(|it| &**it)));
    }
    text
}

fn csv(rows: &[Row]) -> String {
    let row = |(rank, row): (usize, &Row)| {
        let (rank, numbers) = (rank.to_string(), numbers(row));
        let cells = [&*rank, &row.name].into_iter().chain(numbers.iter().map(|it| &**it));
        line(&cells.collect::<Vec<_>>())
    };
    table(&line(&HEAD.map(str::to_lowercase).each_ref().map(|it| &**it)), (1..).zip(rows).map(row))
}
