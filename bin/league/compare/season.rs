//! `league season`: the table over many leagues, added up by display name from the documents that
//! the leagues left behind. Leagues differ in size, so the order is that of points per match.
//!
//! An operand is a data folder; each finished league in it counts. Without operands the data folder
//! of the command line counts, except for local leagues. `--promote N` prints the entrants of the
//! next stage: the best of each folder by what their choices were worth before the draws.

use crate::files::finished_leagues;
use crate::show::expected_points::expected_by_player;
use crate::show::tables::columns;
use crate::show::view::LeagueView;
use crate::start::entrants;
use league::manager::screen::champions;
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::storage::league_folder;
use league::program::terminal::{print_error, print_line, sanitize};
use league::program::{data_folder, load_config};
use league::values::{Timestamp, truncate};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const USAGE: Usage = Usage {
    name: "league season [DIR…]",
    about: "add up the leagues played here, or in many data folders",
    options: &[
        "
  --promote N                 print the best N of each folder for the next stage",
        COMMON,
    ],
};

const HEADS: &str = "Rank,Player,Leagues,Titles,Played,Points,Per match,Expected";
/// Maximum length of a name on a terminal.
const MAX_NAME: usize = 18;

/// The sums of one player.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sums {
    pub leagues: u32,
    pub titles: u32,
    pub played: u32,
    pub points: i32,
    /// The value of its choices before the draws; the points in games that draw nothing.
    pub expected: f64,
}

impl Sums {
    /// Returns the measure of the season; 0 for a player without a match.
    pub fn points_per_match(&self) -> f64 {
        f64::from(self.points) / f64::from(self.played.max(1))
    }
}

/// Prints the season of these data folders, or the entrants of the next stage.
pub fn run(args: &Args, operands: &[String]) -> Result<(), Exit> {
    let id = load_config(args)?.league.league_id;
    let count = args.number("--promote", 1..=usize::MAX)?;
    let mut folders: Vec<PathBuf> = operands.iter().map(PathBuf::from).collect();
    if folders.is_empty() {
        folders.push(data_folder(args));
    }

    let mut players = BTreeMap::new();
    let mut left_out = 0;
    for folder in &folders {
        let mut leagues = finished_leagues(folder, &id);
        leagues.retain(|league| !operands.is_empty() || !league.league.local);
        leagues.sort_by_key(end);
        if leagues.is_empty() {
            left_out += 1;
            let folder = folder.display();
            print_error(&format!(
                "{folder}: no league of {id} was played to its end"
            ));
        }

        for league in &leagues {
            if let Some(count) = count {
                print_best(folder, league, count)?;
            } else {
                print_line(&sanitize(&format!("{}{}", folder.display(), title(league))));
            }
            add(&mut players, league);
        }
    }

    if count.is_none() && !players.is_empty() {
        print_line(&table(&rank_players(players)));
    }

    match left_out {
        0 => Ok(()),
        _ => Err(Exit::failure("")),
    }
}

/// Prints the players of a league whose choices were worth most, with the commands that started
/// them.
fn print_best(folder: &Path, league: &LeagueView, count: usize) -> Result<(), Exit> {
    let expected = expected_by_player(league);
    let mut rows: Vec<_> = league.standings.iter().collect();
    rows.sort_by(|one, other| {
        let [one, other] = [one, other].map(|row| expected.get(&row.player_id).copied());
        other
            .unwrap_or_default()
            .total_cmp(&one.unwrap_or_default())
    });

    let file = league_folder(folder, &league.league_id).join(entrants::FILE);
    let entrants = entrants::read(&file)?;
    for row in rows.into_iter().take(count) {
        let mut entrants = entrants.iter();
        match entrants.find(|entrant| entrant.name == row.display_name) {
            Some(entrant) => print_line(entrants::text(std::slice::from_ref(entrant)).trim_end()),
            None => print_error(&sanitize(&format!(
                "{} is no name in {}",
                row.display_name,
                file.display()
            ))),
        }
    }

    Ok(())
}

/// Adds a league to the sums of its players.
pub fn add(players: &mut BTreeMap<String, Sums>, league: &LeagueView) {
    let expected = expected_by_player(league);
    for (row, rank) in league.standings.iter().zip(&league.ranks) {
        let sums = players.entry(row.display_name.clone()).or_default();
        sums.leagues += 1;
        sums.titles += u32::from(*rank == league.ranks[0]);
        sums.played += row.played;
        sums.points += row.points;

        let expected = expected.get(&row.player_id).copied();
        sums.expected += expected.unwrap_or(f64::from(row.points));
    }
}

/// Returns the players, best first.
pub fn rank_players(players: BTreeMap<String, Sums>) -> Vec<(String, Sums)> {
    let mut players: Vec<(String, Sums)> = players.into_iter().collect();
    players.sort_by(|(_, one), (_, other)| {
        other.points_per_match().total_cmp(&one.points_per_match())
    });
    players
}

/// Returns the time of the last result of a league.
fn end(league: &LeagueView) -> Option<Timestamp> {
    let times = league
        .matches()
        .filter_map(|the_match| the_match.recorded_at);
    times.max()
}

/// Returns the day of a league, its name, and its champions.
fn title(league: &LeagueView) -> String {
    let day = end(league).map_or_else(String::new, |end| format!("  {:.10}", end.to_string()));
    let name = league.league.name.as_deref().unwrap_or_default();
    let champions = champions(&league.standings, &league.ranks);
    format!("{day}  {name}  {champions}")
}

/// Returns the table with an explanation, for a terminal.
pub fn table(players: &[(String, Sums)]) -> String {
    let rows = players.iter().map(|(name, sums)| {
        json!([
            rank(players, sums.points_per_match()),
            truncate(name, MAX_NAME),
            sums.leagues,
            sums.titles,
            sums.played,
            sums.points,
            format!("{:.2}", sums.points_per_match()),
            format!("{:.1}", sums.expected)
        ])
    });
    let table = columns(HEADS, 1, rows);
    format!("\n{table}\n\nExpected is what the choices were worth before the draws.")
}

/// Returns the rank of a player with that many points per match: `2`, or `2=` with an equal one.
fn rank(players: &[(String, Sums)], points: f64) -> String {
    let all = players.iter().map(|(_, sums)| sums.points_per_match());
    let better = all.clone().filter(|other| *other > points).count();
    let equal = all.filter(|other| *other == points).count();
    let sign = if equal > 1 { "=" } else { "" };
    format!("{}{sign}", better + 1)
}
