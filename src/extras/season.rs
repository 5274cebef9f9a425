//! `league_manager season`: the leagues that were played to their end, the last one and those set aside, added up by
//! display name. It reads the documents that each left behind (`league.json`). Where several players of one league have
//! the same name, they stay apart by their ids.
//!
//! Leagues differ in size, so the order is that of points per match. Local leagues and practice only count when asked for.

use crate::extras::columns::columns;
use crate::extras::csv::csv;
use crate::extras::figures::{equal_among, expected_by_player, matches};
use crate::manager::document::LeagueView;
use crate::program;
use crate::program::args::{Args, Stop};
use crate::program::storage::{Access, read_json, replace};
use crate::program::terminal::{counted, say, shown};
use crate::protocol::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const HEADS: [&str; 11] = [
    "Rank",
    "Player",
    "Leagues",
    "Titles",
    "Played",
    "Wins",
    "Draws",
    "Losses",
    "Points",
    "Per match",
    "Expected",
];

/// What stands behind the name of a champion, and what it means.
const CHAMPION: &str = " *";

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
    /// What its choices were worth before the draws; the points, where nothing is drawn.
    pub expected: f64,
}

impl Sums {
    /// The measure of the season: 0 for whoever has not played.
    pub fn points_per_match(&self) -> f64 {
        f64::from(self.points) / f64::from(self.played.max(1))
    }
}

/// Adds leagues up; the best first.
pub fn add_up(leagues: &[LeagueView]) -> Vec<(String, Sums)> {
    let mut players = BTreeMap::new();
    leagues.iter().for_each(|league| add(&mut players, league));
    ordered(players)
}

/// Adds a league to the sums of its players.
pub fn add(players: &mut BTreeMap<String, Sums>, league: &LeagueView) {
    let expected = expected_by_player(league);
    let champions = champions(league);
    for row in &league.standings {
        let sums = players.entry(name(league, &row.player_id)).or_default();
        sums.leagues += 1;
        sums.titles += u32::from(champions.contains(&row.player_id));
        sums.played += row.played;
        sums.wins += row.wins;
        sums.draws += row.draws;
        sums.losses += row.losses;
        sums.points += row.points;
        let drawn = expected.get(&row.player_id).copied();
        sums.expected += drawn.unwrap_or(f64::from(row.points));
    }
}

/// The players, the best first.
pub fn ordered(players: BTreeMap<String, Sums>) -> Vec<(String, Sums)> {
    let mut players: Vec<(String, Sums)> = players.into_iter().collect();
    players.sort_by(|(_, one), (_, other)| {
        let by_points = other.points_per_match().total_cmp(&one.points_per_match());
        by_points.then(other.titles.cmp(&one.titles))
    });
    players
}

/// The first of the table, and whoever is equal to the first in everything.
fn champions(league: &LeagueView) -> BTreeSet<String> {
    let most = league.standings.first().map(|row| row.points);
    let rows = league.standings.iter();
    let first = rows.filter(|row| Some(row.points) == most).cloned();
    let groups = equal_among(league, first.collect());
    groups.into_iter().take(1).flatten().collect()
}

/// The name of a player; with its id, where another of the same league has that name.
fn name(league: &LeagueView, id: &str) -> String {
    let row = league.standings.iter().find(|row| row.player_id == id);
    let name = row.map_or(id, |row| &row.display_name);
    if namesakes(league, name) > 1 {
        format!("{name} ({id})")
    } else {
        name.into()
    }
}

/// How many players of a league have that name.
fn namesakes(league: &LeagueView, name: &str) -> usize {
    let rows = league.standings.iter();
    rows.filter(|row| row.display_name == name).count()
}

/// Whether several players of a league have the same name.
pub fn has_namesakes(league: &LeagueView) -> bool {
    let mut rows = league.standings.iter();
    rows.any(|row| namesakes(league, &row.display_name) > 1)
}

/// Prints the leagues and the table, and writes the table as CSV beside the leagues.
pub fn run(args: &Args) -> Result<(), Stop> {
    let config = program::load(args)?;
    let id = &config.league.league_id;
    let data = Path::new(args.text("--data").unwrap_or("data"));
    let leagues = find(data, id, args.has("--all"));
    if leagues.is_empty() {
        let more = if args.has("--all") {
            ""
        } else {
            "; --all counts local leagues and practice too"
        };
        let words = format!(
            "no league of {id} in {} was played to its end{more}",
            data.join("leagues").display()
        );
        return Err(Stop::failed(words));
    }
    let players = add_up(&leagues);
    let count = counted(leagues.len() as u32, "league");
    say(&format!("{count}, {}", shown(&config.league.display_name)));
    leagues
        .iter()
        .for_each(|league| say(&shown(&title(league))));
    say_table(&players, leagues.iter().any(has_namesakes), say);
    let path = data.join("leagues").join(format!("{id}.season.csv"));
    let rows = (1..)
        .zip(&players)
        .map(|(rank, player)| cells(rank, player));
    let rows = rows.map(|row| row.into_iter().map(Into::into).collect());
    replace(&path, Access::Everybody, &csv(&HEADS.join(","), rows))?;
    say(&format!("as CSV in {}", path.display()));
    Ok(())
}

/// Tells the table, and what its words mean.
pub fn say_table(players: &[(String, Sums)], has_namesakes: bool, say: impl Fn(&str)) {
    let rows = (1..).zip(players).map(|(rank, player)| {
        let mut row = cells(rank, player);
        row[1] += if player.1.titles > 0 { CHAMPION } else { "" };
        row
    });
    say(&format!("\n{}\n", columns(&HEADS, 1, rows)));
    say(
        "In the order of points per match. Expected: what the choices were worth before the draws.",
    );
    say(&format!("{}  was champion", CHAMPION.trim()));
    if has_namesakes {
        say("Several players of one league have the same name: they are kept apart by their ids.");
    }
}

/// The documents of the leagues that were played to their end, the oldest first.
fn find(data: &Path, id: &str, all: bool) -> Vec<LeagueView> {
    let mut folders = vec![data.to_path_buf()];
    if all {
        folders.extend(["local", "practice"].map(|name| data.join(name)));
    }
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(id);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
    };
    let mut leagues = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder.join("leagues"))
            .into_iter()
            .flatten()
            .flatten();
        let paths = entries.map(|entry| entry.path()).filter(is_ours);
        leagues.extend(paths.filter_map(|path| read_json::<LeagueView>(&path.join("league.json"))));
    }
    leagues.retain(|league| league.status == Progress::Completed && (all || !league.league.local));
    leagues.sort_by_key(|league| matches(league).filter_map(|game| game.recorded_at).max());
    leagues
}

/// When a league was played, what it is called, and who was champion.
pub fn title(league: &LeagueView) -> String {
    let last = matches(league).filter_map(|game| game.recorded_at).max();
    let day = last.map(|at| at.to_string().chars().take(10).collect());
    let champions = champions(league);
    let names: Vec<String> = champions.iter().map(|id| name(league, id)).collect();
    let what = if names.len() > 1 {
        "champions"
    } else {
        "champion"
    };
    let end = format!("{what}: {}", names.join(", "));
    let parts = [day, league.league.name.clone(), Some(end)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("  {}", parts.join("  "))
}

fn cells(rank: u32, (name, sums): &(String, Sums)) -> Vec<String> {
    let counts = [
        sums.leagues,
        sums.titles,
        sums.played,
        sums.wins,
        sums.draws,
        sums.losses,
    ];
    let mut cells = vec![rank.to_string(), name.clone()];
    cells.extend(counts.map(|count| count.to_string()));
    cells.push(sums.points.to_string());
    cells.push(format!("{:.2}", sums.points_per_match()));
    cells.push(format!("{:.1}", sums.expected));
    cells
}
