//! Is one player better than another? The test is tried on players whose worth is known, and on a
//! real league.

use super::support::World;
use crate::comparison::{MAX_CYCLES, evidence, pairings};
use std::collections::BTreeSet;

/// A comparison on paper against seven rivals, of players that differ from a rival with these
/// chances: the verdict, and 0 where there is none.
fn compare(rng: &mut fastrand::Rng, new: f64, old: f64) -> i8 {
    let mut worth = |chance: f64| if rng.f64() < chance { 1.5 } else { 1.0 };
    let mut differences = Vec::new();
    for cycle in 1..=MAX_CYCLES as usize {
        for _ in 0..7 {
            differences.push(worth(new) - worth(old));
        }
        match evidence(&differences, cycle) {
            1.0.. => return 1,
            ..=-1.0 => return -1,
            _ => {}
        }
    }
    0
}

/// How many of 300 comparisons end with that verdict.
fn count(new: f64, old: f64, wanted: i8) -> usize {
    let mut rng = fastrand::Rng::with_seed(7);
    let all = (0..300).map(|_| compare(&mut rng, new, old));
    all.filter(|verdict| *verdict == wanted).count()
}

#[test]
fn a_coin_is_seldom_called_better_and_a_better_player_seldom_missed() {
    assert!(count(0.5, 0.5, 1) <= 21, "at most 7 of 100");
    assert!(count(0.5, 0.5, -1) >= 279);
    assert!(count(0.6, 0.5, 1) >= 270, "at least 90 of 100");
    assert!(count(0.5, 0.6, -1) >= 299);
}

#[test]
fn a_verdict_needs_some_cycles_and_a_difference_that_is_neither_leaves_it_open() {
    assert_eq!(evidence(&[0.5; 28], 4), 0.0, "too early to look");
    assert!(evidence(&[0.5; 35], 5) >= 1.0);
    assert!(evidence(&[0.0; 35], 5) <= -1.0);
    let halfway: Vec<f64> = (0..7000)
        .map(|n| if n % 20 == 0 { 0.5 } else { 0.0 })
        .collect();
    assert_eq!(
        evidence(&halfway, 1000),
        0.0,
        "0.025 is as near to 0.05 as to 0"
    );
}

#[test]
fn both_meet_each_rival_once_a_cycle_and_nobody_plays_twice_in_a_round() {
    let players: Vec<String> = (1..=9).map(|n| format!("P{n:02}")).collect();
    let rounds = pairings(&players);
    assert_eq!(rounds.len(), 7 * MAX_CYCLES as usize);
    let mut met = BTreeSet::new();
    for pairs in &rounds[..7] {
        let seats: BTreeSet<&String> = pairs.iter().flatten().collect();
        assert_eq!(seats.len(), 4, "{pairs:?}");
        met.extend(pairs.clone());
    }
    assert_eq!(met.len(), 14, "twice seven meetings, none twice");
}

#[test]
fn a_league_is_played_until_it_is_decided() {
    let world = World::new("");
    let (code, better) = world.word("local --new contrary --old even --port 0 --seed 7");
    let first = "contrary and even, each against the same 7 rivals, until it is decided";
    assert_eq!(code, Some(0), "{better}");
    assert!(better.contains(first), "{better}");
    assert!(
        better.contains("contrary is better than even: expected points"),
        "{better}"
    );
    assert!(
        better.contains("Such an answer is wrong in at most 5 of 100."),
        "{better}"
    );
}
