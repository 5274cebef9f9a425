//! The exercises of the guide (`src/guide/exercises.md`): one test for each. They fail until somebody has solved them, so
//! `make test` leaves them out. One of them: `cargo test --test exercises memory`.

mod support;

use league::games::{self, TieBreak};
use league::wire::Wire;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use support::*;

/// The matches of a local league that was played to its end.
fn matches(world: &World, folder: &str) -> Vec<Value> {
    let document = world.data(&format!("{folder}leagues/league_2025_even_odd/league.json"));
    let rounds = document["rounds"].as_array().unwrap();
    let matches = rounds
        .iter()
        .flat_map(|it| it["matches"].as_array().unwrap());
    matches.cloned().collect()
}

/// The player that `MINE` names, or `ada`, differs from whoever can be predicted.
#[test]
fn memory() {
    let finished = env!("CARGO_BIN_EXE_player");
    let mine = env::var("MINE").unwrap_or("ada".into());
    let rivals = ["even", "odd", "alternate"];
    let rivals = rivals.map(|name| format!("{finished} --strategy {name}"));
    let all = format!("{mine},{}", rivals.join(","));
    let world = World::new(&[]);
    let arguments = ["local", "--players", "4", "--cycles", "40", "--mine", &all];
    let mut league = world.start("league_manager", &arguments);
    assert!(league.wait().success(), "{}", league.stderr.lock().unwrap());
    let mut differed = BTreeMap::from([("P02", 0), ("P03", 0), ("P04", 0)]);
    for game in matches(&world, "practice/") {
        let choices = &game["choices"];
        for (rival, count) in &mut differed {
            let [ours, theirs] = [&choices["P01"], &choices[*rival]];
            *count += u32::from(ours.is_string() && theirs.is_string() && ours != theirs);
        }
    }
    for (rival, count) in differed {
        assert!(
            count >= 32,
            "{mine} differed from {rival} in {count} of 40 matches"
        );
    }
}
