//! The comparison of two players, with models of players, and in real leagues.

use crate::compare::comparison::{BLOCK_CYCLES, MAX_BLOCKS, blocks_before, evidence, pairings};
use std::collections::BTreeSet;

const RIVALS: usize = 7;

/// A model of a player: returns its mean points against one rival in a block.
type Model = fn(&mut fastrand::Rng) -> f64;

/// A player that differs from its rival with this chance, in each match.
fn points_with_chance(rng: &mut fastrand::Rng, chance: f64) -> f64 {
    let mut sum = 0.0;
    for _ in 0..BLOCK_CYCLES {
        sum += if rng.f64() < chance { 1.5 } else { 1.0 };
    }
    sum / BLOCK_CYCLES as f64
}

const COIN: Model = |rng| points_with_chance(rng, 0.5);
const BETTER: Model = |rng| points_with_chance(rng, 0.6);
/// A player that learns: it always differs from this rival in a block, or never.
const LOCKED_IN: Model = |rng| if rng.bool() { 1.5 } else { 1.0 };

/// Compares two players against seven rivals. Returns 1 if the new player is better, -1 if it is not,
/// and 0 if it is not decided.
fn compare(rng: &mut fastrand::Rng, new: Model, old: Model) -> i8 {
    let mut differences = Vec::new();
    for blocks in 1..=MAX_BLOCKS {
        for _ in 0..RIVALS {
            differences.push(new(rng) - old(rng));
        }
        match evidence(&differences, blocks) {
            1.0.. => return 1,
            ..=-1.0 => return -1,
            _ => {}
        }
    }
    0
}

#[test]
fn wrong_results_of_comparisons_are_rare() {
    // The models, the result, and the minimum and maximum number of them in 300 comparisons.
    for (new, old, expected, min, max) in [
        (COIN, COIN, 1, 0, 15),
        (COIN, COIN, -1, 285, 300),
        (LOCKED_IN, LOCKED_IN, 1, 0, 15),
        (BETTER, COIN, 1, 285, 300),
        (COIN, BETTER, -1, 299, 300),
    ] {
        let mut rng = fastrand::Rng::with_seed(7);
        let results = (0..300).map(|_| compare(&mut rng, new, old));
        let count = results.filter(|result| *result == expected).count();
        assert!((min..=max).contains(&count), "{expected}: {count}");
    }
}

#[test]
fn evidence_needs_blocks_and_a_clear_mean() {
    assert_eq!(evidence(&[0.5; 14], 2), 0.0, "too few blocks");
    assert!(evidence(&[0.5; 21], 3) >= 1.0);
    assert!(evidence(&[0.0; 21], 3) <= -1.0);
    let mut medium = [0.0; 7000];
    for difference in medium.iter_mut().step_by(20) {
        *difference = 0.5;
    }
    let message = "0.025 is as near to 0.05 as to 0";
    assert_eq!(evidence(&medium, 1000), 0.0, "{message}");
}

#[test]
fn pairings_have_each_rival_once_a_cycle_and_give_no_player_an_advantage() {
    let players: Vec<String> = (1..=9).map(|n| format!("P{n:02}")).collect();
    let rounds = pairings(&players, Some(7));
    assert_eq!(rounds, pairings(&players, Some(7)));
    assert_eq!(rounds.len(), RIVALS * MAX_BLOCKS * BLOCK_CYCLES);

    let (mut new_first, mut as_first_player) = (0, 0);
    for cycle in rounds.chunks(RIVALS) {
        let mut met = BTreeSet::new();
        let mut round_of_rival = [0, 0]; // the rounds in which the two meet P03
        for (round, pairs) in cycle.iter().enumerate() {
            let seats: BTreeSet<&String> = pairs.iter().flatten().collect();
            assert_eq!(seats.len(), 4, "{pairs:?}");
            met.extend(pairs.clone());
            for (place, pair) in pairs.iter().enumerate() {
                if pair.contains(&players[2]) {
                    round_of_rival[place] = round;
                }
            }
        }
        assert_eq!(met.len(), 2 * RIVALS, "two players met seven rivals once");
        new_first += usize::from(round_of_rival[0] < round_of_rival[1]);
        as_first_player += usize::from(cycle[0][0][0] == players[0]);
    }

    let cycles = MAX_BLOCKS * BLOCK_CYCLES;
    for count in [new_first, as_first_player] {
        assert!((cycles * 2 / 5..cycles * 3 / 5).contains(&count), "{count}");
    }
}

#[test]
fn blocks_are_over_after_whole_cycles() {
    let rounds = (RIVALS * BLOCK_CYCLES) as u32;
    for (round, blocks) in [
        (1, Some(0)),
        (2, None),
        (rounds, None),
        (rounds + 1, Some(1)),
    ] {
        assert_eq!(blocks_before(round, RIVALS + 2), blocks, "round {round}");
    }
}
