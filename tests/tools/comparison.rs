//! The comparison of two players, with players whose strength is known, and in a real league.

use super::support::*;
use crate::practice::comparison::{MAX_CYCLES, evidence, pairings};
use std::collections::BTreeSet;

/// Returns 1.5 points with a chance, and else 1 point: what a choice is worth to a player that
/// differs from its rival with that chance.
fn random_points(rng: &mut fastrand::Rng, chance: f64) -> f64 {
    if rng.f64() < chance { 1.5 } else { 1.0 }
}

/// Compares two players against seven rivals, from which they differ with these chances. Returns 1 if
/// the new player is better, -1 if it is not, and 0 if it is not decided.
fn compare(rng: &mut fastrand::Rng, new: f64, old: f64) -> i8 {
    let mut differences = Vec::new();
    for cycle in 1..=MAX_CYCLES as usize {
        for _ in 0..7 {
            differences.push(random_points(rng, new) - random_points(rng, old));
        }
        match evidence(&differences, cycle) {
            1.0.. => return 1,
            ..=-1.0 => return -1,
            _ => {}
        }
    }
    0
}

/// Returns how many of 300 comparisons have that result.
fn count(new: f64, old: f64, expected: i8) -> usize {
    let mut rng = fastrand::Rng::with_seed(7);
    let results = (0..300).map(|_| compare(&mut rng, new, old));
    results.filter(|result| *result == expected).count()
}

#[test]
fn wrong_results_of_comparisons_are_rare() {
    assert!(count(0.5, 0.5, 1) <= 21, "at most 7 of 100");
    assert!(count(0.5, 0.5, -1) >= 279);
    assert!(count(0.6, 0.5, 1) >= 270, "at least 90 of 100");
    assert!(count(0.5, 0.6, -1) >= 299);
}

#[test]
fn early_and_medium_differences_are_undecided() {
    assert_eq!(evidence(&[0.5; 28], 4), 0.0, "too few cycles");
    assert!(evidence(&[0.5; 35], 5) >= 1.0);
    assert!(evidence(&[0.0; 35], 5) <= -1.0);
    let mut medium = [0.0; 7000];
    for difference in medium.iter_mut().step_by(20) {
        *difference = 0.5;
    }
    let message = "0.025 is as near to 0.05 as to 0";
    assert_eq!(evidence(&medium, 1000), 0.0, "{message}");
}

#[test]
fn pairings_have_each_rival_once_a_cycle_and_no_player_twice_a_round() {
    let players: Vec<String> = (1..=9).map(|n| format!("P{n:02}")).collect();
    let rounds = pairings(&players);
    assert_eq!(rounds.len(), 7 * MAX_CYCLES as usize);
    let mut met = BTreeSet::new();
    for pairs in &rounds[..7] {
        let seats: BTreeSet<&String> = pairs.iter().flatten().collect();
        assert_eq!(seats.len(), 4, "{pairs:?}");
        met.extend(pairs.clone());
    }
    assert_eq!(met.len(), 14, "two players met seven rivals once");
}

#[test]
fn comparison_league_ends_with_its_result() {
    let test = TestLeague::new("");
    let (code, output) = test.run_tool("local --new contrary --old even --port 0 --seed 7");
    assert_eq!(code, Some(0), "{output}");
    for text in [
        "contrary and even, each against the same 7 rivals, until it is decided",
        "contrary is better than even: expected points",
        "Such an answer is wrong in at most 5 of 100.",
    ] {
        assert!(output.contains(text), "{output}");
    }

    // The matches that were in play when it was decided have results.
    let folder = test
        .folder
        .join("data/practice/leagues/league_2025_even_odd");
    let mut open = BTreeSet::new();
    for line in json_lines(&folder.join("journal.jsonl")) {
        for assignment in line["assignments"].as_array().into_iter().flatten() {
            open.insert(assignment["match_id"].to_string());
        }
        open.remove(&line["match_id"].to_string());
    }
    assert!(open.is_empty(), "{open:?}");
}
