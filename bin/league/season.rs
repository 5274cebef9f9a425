//! `league_manager season`: the leagues that were played to their end, the last one and those set
//! aside, added up by display name. It reads the documents that each left behind (`league.json`).
//! Where several players of one league have the same name, they stay apart by their ids.
//!
//! Leagues differ in size, so the order is that of points per match. Local leagues and practice
//! only count when asked for.

use crate::columns::columns;
use crate::csv::csv;
use crate::figures::expected_by_player;
use crate::view::LeagueView;
use league::program;
use league::program::args::{Args, Exit};
use league::program::storage::{Access, read_json, replace};
use league::program::terminal::{plural, print_line, sanitize};
use league::protocol::{LeaguePhase, Standing};
use league::values::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const HEADS: &str = "Rank,Player,Leagues,Titles,Played,Wins,Draws,Losses,Points,Per match,Expected";

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

/// Adds a league to the sums of its players.
pub fn add(players: &mut BTreeMap<String, Sums>, league: &LeagueView) {
    let expected = expected_by_player(league);
    for row in &league.standings {
        let sums = players.entry(name(league, row)).or_default();
        sums.leagues += 1;
        sums.titles += u32::from(row.rank == 1);
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
        other.points_per_match().total_cmp(&one.points_per_match())
    });
    players
}

/// The name of a player; with its id, where another of the same league has that name.
fn name(league: &LeagueView, row: &Standing) -> String {
    let name = &row.display_name;
    let names = league.standings.iter().map(|row| &row.display_name);
    match names.filter(|other| *other == name).count() {
        1 => name.clone(),
        _ => format!("{name} ({})", row.player_id),
    }
}

/// Prints the leagues and the table, and writes the table as CSV beside the leagues.
pub fn run(args: &Args) -> Result<(), Exit> {
    let league = program::load_config(args)?.league;
    let (id, folder) = (
        &league.league_id,
        program::data_folder(args).join("leagues"),
    );
    let leagues = find(args, id);
    if leagues.is_empty() {
        let more = match args.has("--all") {
            true => "",
            false => "; --all counts local leagues and practice too",
        };
        let words = format!(
            "no league of {id} in {} was played to its end",
            folder.display()
        );
        return Err(Exit::failed(words + more));
    }
    let count = plural(leagues.len() as u32, "league");
    print_line(&format!("{count}, {}", sanitize(&league.display_name)));
    let mut players = BTreeMap::new();
    for league in &leagues {
        print_line(&sanitize(&title(league)));
        add(&mut players, league);
    }
    let players = ordered(players);
    say_table(&players, print_line);
    let path = folder.join(format!("{id}.season.csv"));
    replace(&path, Access::AllUsers, &csv(HEADS, rows(&players)))?;
    print_line(&format!("as CSV in {}", path.display()));
    Ok(())
}

/// Tells the table, and what its words mean.
pub fn say_table(players: &[(String, Sums)], say: impl Fn(&str)) {
    say(&format!("\n{}\n", columns(HEADS, 1, rows(players))));
    let order =
        "In the order of points per match. Expected: what the choices were worth before the draws.";
    say(order);
}

/// The documents of the leagues that were played to their end, the oldest first.
fn find(args: &Args, id: &str) -> Vec<LeagueView> {
    let all = args.has("--all");
    let data = program::data_folder(args);
    let folders = [data.join("leagues"), data.join("practice/leagues")];
    let entries = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    let documents = entries.filter_map(|entry| read_json(&entry.path().join("league.json")));
    let mut leagues: Vec<LeagueView> = documents.collect();
    leagues.retain(|league| {
        let is_meant = league.league_id == id && (all || !league.league.local);
        is_meant && league.status == LeaguePhase::Completed
    });
    leagues.sort_by_key(end);
    leagues
}

/// When the last match of a league was recorded.
fn end(league: &LeagueView) -> Option<Timestamp> {
    league.matches().filter_map(|game| game.recorded_at).max()
}

/// When a league was played, what it is called, and who was champion.
pub fn title(league: &LeagueView) -> String {
    let day = end(league).map(|at| format!("{:.10}", at.to_string()));
    let own = day.iter().chain(&league.league.name);
    let own: String = own.map(|it| format!("  {it}")).collect();
    let champion = league.standings.first().map(|row| name(league, row));
    format!("{own}  champion: {}", champion.unwrap_or_default())
}

/// The rows of the table.
fn rows(players: &[(String, Sums)]) -> impl Iterator<Item = Value> {
    (1..).zip(players).map(|(rank, (name, sums))| {
        json!([
            rank,
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
