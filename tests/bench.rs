//! How fast leagues are, and how much memory their manager takes: `make bench`. Ratios, since machines differ.

mod support;

use std::{fs, time::Instant};
use support::World;

/// Seconds per match, and peak memory of the manager in MB (0 where /proc does not tell).
fn league(players: usize, referees: usize) -> (f64, f64) {
    let world = World::new(&[]);
    let numbers = [players.to_string(), referees.to_string()];
    let arguments = ["local", "--fresh", "--players", &numbers[0], "--referees", &numbers[1], "--stay"];
    let league = world.start("league_manager", &arguments);
    league.line("Round 1 of");
    let started = Instant::now();
    league.line("Champion");
    let matches = players * (players - 1) / 2;
    let per_match = started.elapsed().as_secs_f64() / matches as f64;
    let status = fs::read_to_string(format!("/proc/{}/status", league.child.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    (per_match, peak.unwrap_or(0.0) / 1024.0)
}

#[test]
#[ignore = "takes a minute; `make bench` runs it"]
fn a_match_costs_about_the_same_in_a_larger_league() {
    println!("players  referees  ms/match  as with 4  manager MB  as with 4");
    let (time, memory) = league(4, 2);
    for (players, referees) in [(4, 2), (8, 2), (16, 4), (24, 4)] {
        let (t, m) = league(players, referees);
        let (ms, slower, larger) = (t * 1000.0, t / time, m / memory.max(0.001));
        println!("{players:>7}  {referees:>8}  {ms:>8.1}  {slower:>9.2}  {m:>10.1}  {larger:>9.2}");
    }
}
