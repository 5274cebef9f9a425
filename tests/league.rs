//! Whole leagues as real processes: what a student and a teacher see.

mod support;

use serde_json::Value;
use support::{World, files};

/// The rows add up, and the points are 3 for a win and 1 for a draw.
fn check_table(table: &[Value], players: usize) {
    assert_eq!(table.len(), players);
    for (rank, row) in (1..).zip(table) {
        let n = |key: &str| row[key].as_i64().unwrap();
        assert_eq!(n("rank"), rank);
        assert_eq!(n("played"), n("wins") + n("draws") + n("losses"), "{row}");
        assert_eq!(n("points"), 3 * n("wins") + n("draws"), "{row}");
    }
}

#[test]
fn a_local_league_is_played_to_its_champion() {
    let world = World::new(&[]);
    let mut league = world.start("league_manager", &["local", "--fresh"]);
    assert!(league.wait().success());
    let output = league.output();
    let table = world.table();
    check_table(&table, 4);
    let first = &table[0];
    let name = first["display_name"].as_str().unwrap();
    assert!(output.contains(&format!("Champion: {name} ({})", first["player_id"].as_str().unwrap())), "{output}");
    assert!(output.contains("Round 3 of 3"), "{output}");
    assert_eq!(files(&world.folder.join("data/matches")).len(), 6);
}
