//! `league season`: the table over many leagues, added up by display name from the documents that
//! the leagues left behind. Where several players of one league have the same name, they stay apart
//! by their ids. Leagues differ in size, so the order is that of points per match.
//!
//! Without operands it adds up the leagues of one data folder: the last one and those set aside;
//! local leagues and practice only count with `--all`. With folders it adds up a stage, which is
//! one league in each of many data folders, and prints the entrants of the next stage. A group
//! whose league is not over is named and left out. A folder of dealt groups among the operands says
//! which groups there must be, so that a group that has not begun is missed, too.

use crate::agents::entrants::{self, Entrant};
use crate::commands::groups;
use crate::files::{finished_league, finished_leagues};
use crate::page::expected_points::expected_by_player;
use crate::page::tables::{columns, csv};
use crate::page::view::LeagueView;
use league::manager::screen::champions;
use league::program::args::{Args, COMMON, Exit, Usage};
use league::program::storage::{Access, league_folder, replace};
use league::program::terminal::{plural, print_error, print_line, print_whole_line, sanitize};
use league::program::{data_folder, load_config};
use league::protocol::{AgentKind, Standing};
use league::values::{Timestamp, truncate};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub const USAGE: Usage = Usage {
    name: "league season [DIR…]",
    about: "add up the leagues played here, or in the folders of groups",
    options: &[
        "
  --all                       local leagues too; with folders: no gap allowed
  --status                    how far each group is
  --promote N                 print the best N of each group for the next stage
  --by MEASURE                how: by points or expected points [points]",
        COMMON,
    ],
};

const HEADS: &str = "Rank,Player,Leagues,Titles,Played,Wins,Draws,Losses,Points,Per match,Expected";
/// The columns of the table on a terminal.
const SHOWN_HEADS: &str = "Rank,Player,Leagues,Titles,Played,Points,Per match,Expected";
/// Maximum length of a name on a terminal.
const MAX_NAME: usize = 18;

/// The sums of one player.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Sums {
    pub leagues: u32,
    pub titles: u32,
    pub played: u32,
    pub wins: u32,
    pub draws: u32,
    pub losses: u32,
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

/// Prints the season of this data folder, or a stage.
pub fn run(args: &Args, operands: &[String]) -> Result<(), Exit> {
    if !operands.is_empty() || args.has("--status") || args.has("--promote") {
        return run_stage(args, &group_folders(operands));
    }

    let league = load_config(args)?.league;
    let (id, data) = (&league.league_id, data_folder(args));
    let folder = data.join("leagues");

    // Find the leagues.
    let mut leagues = finished_leagues(&data, id);
    leagues.retain(|league| args.has("--all") || !league.league.local);
    leagues.sort_by_key(end);
    if leagues.is_empty() {
        let hint = if args.has("--all") {
            ""
        } else {
            "; --all counts local leagues and practice too"
        };
        let folder = folder.display();
        return Err(Exit::failure(format!(
            "no league of {id} in {folder} was played to its end{hint}"
        )));
    }

    // Add them up.
    let count = plural(leagues.len() as u32, "league");
    print_line(&format!("{count}, {}", sanitize(&league.display_name)));
    let mut players = BTreeMap::new();
    for league in &leagues {
        print_line(&sanitize(&title(league)));
        add(&mut players, league);
    }

    let players = rank_players(players);
    print_line(&table(&players));

    let path = folder.join(format!("{id}.season.csv"));
    replace(&path, Access::AllUsers, &csv(HEADS, rows(&players)))?;
    print_line(&format!("as CSV in {}", path.display()));
    Ok(())
}

/// Prints the table over all groups that are over, and the entrants of the next stage if they are
/// wanted; or only how far each group is.
fn run_stage(args: &Args, folders: &BTreeSet<PathBuf>) -> Result<(), Exit> {
    let league_id = load_config(args)?.league.league_id;
    let promoted_count = args.number("--promote", 0..=usize::MAX)?;
    let by_expected = is_by_expected(args)?;
    if folders.is_empty() {
        let problem = "--status and --promote need the data folders of groups: season DIR…";
        return Err(Exit::usage(problem));
    }
    if args.has("--status") {
        let left_out = print_states(folders, &league_id);
        return check_complete(args, left_out, folders.len());
    }

    // Standard output is for the entrants, if they are wanted.
    let print = match promoted_count {
        Some(_) => print_error,
        None => print_line,
    };

    let mut players = BTreeMap::new();
    let mut next = Vec::new();
    let mut left_out = 0;
    for folder in folders {
        let place = folder.display();
        let count = promoted_count.unwrap_or(0);
        let group = finished_league(folder, &league_id).and_then(|view| {
            let best = best_entrants(folder, &view, count, by_expected)?;
            Ok((view, best))
        });
        match group {
            Ok((view, best)) => {
                print(&sanitize(&format!("  {place}{}", title(&view))));
                next.extend(best);
                add(&mut players, &view);
            }
            Err(problem) => {
                left_out += 1;
                print_error(&format!("{place} is left out: {problem}"));
            }
        }
    }

    for line in table(&rank_players(players)).lines() {
        print(line);
    }

    check_complete(args, left_out, folders.len())?;
    entrants::text(&next).lines().for_each(print_whole_line);
    Ok(())
}

/// Prints how far each group is; returns the number of those that are not over.
fn print_states(folders: &BTreeSet<PathBuf>, league_id: &str) -> usize {
    let mut left_out = 0;
    for folder in folders {
        let state = match finished_league(folder, league_id) {
            Ok(_) => "over".into(),
            Err(problem) => {
                left_out += 1;
                problem
            }
        };
        print_line(&sanitize(&format!("{}  {state}", folder.display())));
    }

    left_out
}

/// Refuses a stage from which groups are left out, if `--all` is given.
fn check_complete(args: &Args, left_out: usize, all: usize) -> Result<(), Exit> {
    if left_out > 0 && args.has("--all") {
        let problem = format!("{left_out} of {all} groups are not over, or cannot be read");
        return Err(Exit::failure(problem));
    }
    Ok(())
}

/// Returns true if the best players are chosen by expected points.
fn is_by_expected(args: &Args) -> Result<bool, Exit> {
    match args.text("--by") {
        None | Some("points") => Ok(false),
        Some("expected") => Ok(true),
        Some(other) => {
            let problem = format!("--by: got {other}, expected points or expected");
            Err(Exit::usage(problem))
        }
    }
}

/// Returns the data folders of the groups, each once. In a folder of dealt groups each file stands
/// for a data folder of that name next to it. Other files among the operands are passed over.
fn group_folders(operands: &[String]) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    for path in operands.iter().map(PathBuf::from) {
        if path.ends_with(groups::FOLDER) {
            for file in fs::read_dir(&path).into_iter().flatten().flatten() {
                let name = file.path().with_extension("");
                folders.extend(name.file_name().map(|name| path.with_file_name(name)));
            }
        } else if !path.is_file() {
            folders.insert(path);
        }
    }

    folders
}

/// Returns the best players of a group with the commands that started them. Players of the same
/// worth keep the order of the league's table. A player that has not the name of its entrant is
/// passed over.
fn best_entrants(
    folder: &Path,
    view: &LeagueView,
    count: usize,
    by_expected: bool,
) -> Result<Vec<Entrant>, String> {
    if count == 0 {
        return Ok(Vec::new());
    }

    let mut rows: Vec<&Standing> = view.standings.iter().collect();
    if by_expected {
        let expected = expected_by_player(view);
        let worth = |row: &Standing| expected.get(&row.player_id).copied().unwrap_or_default();
        rows.sort_by(|one, other| worth(other).total_cmp(&worth(one)));
    }

    let file = league_folder(folder, &view.league_id).join(entrants::FILE);
    let entrants = entrants::read(&file).map_err(|exit| exit.message)?;

    let mut best = Vec::new();
    for row in &rows {
        if best.len() == count {
            break;
        }

        // Two players may have one name: then only the id tells which of them was started by it.
        let name = &row.display_name;
        let is_named = |entrant: &Entrant| entrant.name == *name;
        let own = entrants.iter().position(is_named);
        let own = own.filter(|n| {
            let id = AgentKind::Player.format_id(*n as u32 + 1);
            let mut others = rows.iter().filter(|other| other.player_id != row.player_id);
            row.player_id == id || others.all(|other| other.display_name != *name)
        });
        match own {
            Some(n) => best.push(entrants[n].clone()),
            None => {
                let (id, file) = (&row.player_id, file.display());
                let problem = format!("{id} calls itself {name}, which is not its name in {file}");
                print_error(&sanitize(&format!("{problem}: it is passed over")));
            }
        }
    }

    Ok(best)
}

/// Adds a league to the sums of its players.
pub fn add(players: &mut BTreeMap<String, Sums>, league: &LeagueView) {
    let expected = expected_by_player(league);
    for (row, rank) in league.standings.iter().zip(&league.ranks) {
        let sums = players.entry(name(league, row)).or_default();
        sums.leagues += 1;
        sums.titles += u32::from(*rank == league.ranks[0]);
        sums.played += row.played;
        sums.wins += row.wins;
        sums.draws += row.draws;
        sums.losses += row.losses;
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

/// Returns the name of a player, with its id if another player of the league has that name.
fn name(league: &LeagueView, row: &Standing) -> String {
    let name = &row.display_name;
    let names = league.standings.iter().map(|row| &row.display_name);
    match names.filter(|other| *other == name).count() {
        1 => name.clone(),
        _ => format!("{name} ({})", row.player_id),
    }
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
    let mut title = String::new();
    if let Some(end) = end(league) {
        title += &format!("  {:.10}", end.to_string());
    }
    if let Some(name) = &league.league.name {
        title += &format!("  {name}");
    }
    let champions = champions(&league.standings, &league.ranks);

    format!("{title}  {champions}")
}

/// Returns the table with an explanation, for a terminal.
pub fn table(players: &[(String, Sums)]) -> String {
    let table = columns(SHOWN_HEADS, 1, rows(players).map(shown_cells));
    format!(
        "\n{table}\n\nIn the order of points per match. Expected is what the choices were \
         worth\nbefore the draws. The CSV file has wins, draws and losses too."
    )
}

/// Returns the cells of a row that fit a terminal of eighty columns.
fn shown_cells(mut row: Value) -> Value {
    if let Some(cells) = row.as_array_mut() {
        cells.drain(5..8); // wins, draws and losses
        cells[1] = truncate(cells[1].as_str().unwrap_or_default(), MAX_NAME).into();
    }
    row
}

/// Returns the rank of a player: those with as many points per match share the best, `1=`.
fn rank(players: &[(String, Sums)], own: &Sums) -> String {
    let points = |(_, sums): &(String, Sums)| sums.points_per_match();
    let own = own.points_per_match();
    let best = 1 + players.iter().filter(|other| points(other) > own).count();
    match players.iter().filter(|other| points(other) == own).count() {
        1 => best.to_string(),
        _ => format!("{best}="),
    }
}

/// Returns the rows of the table.
fn rows(players: &[(String, Sums)]) -> impl Iterator<Item = Value> {
    players.iter().map(|(name, sums)| {
        json!([
            rank(players, sums),
            name,
            sums.leagues,
            sums.titles,
            sums.played,
            sums.wins,
            sums.draws,
            sums.losses,
            sums.points,
            format!("{:.2}", sums.points_per_match()),
            format!("{:.1}", sums.expected)
        ])
    })
}
