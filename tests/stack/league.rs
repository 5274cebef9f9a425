//! Whole leagues of real processes: in scripts (`tests/scripts/league`), and of many sizes.

use super::support::*;
use league::program::terminal::LineLimit;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

#[test]
fn leagues_golden() {
    story::run("league");
}

/// Returns the maximum number of matches that a referee played at once, from the first invitation to
/// the end of each.
fn most_at_once(test: &TestLeague, id: &str) -> usize {
    let (mut playing, mut most) = (BTreeSet::new(), 0);
    for line in test.logged("message_sent") {
        if line["component"] != id {
            continue;
        }
        let match_id = line["match_id"].to_string();
        match line["message_type"].as_str() {
            Some("GAME_INVITATION") => drop(playing.insert(match_id)),
            Some("GAME_OVER") => drop(playing.remove(&match_id)),
            _ => {}
        }
        most = most.max(playing.len());
    }
    most
}

#[test]
fn local_leagues_of_many_sizes_are_played_to_the_end() {
    for (players, referees) in [(2, 1), (5, 3), (8, 1)] {
        let test = TestLeague::new("");
        let output = test.local(&format!("--players {players} --referees {referees}"));
        let rounds = players - 1 + players % 2;
        check_contains(&output, &format!("Round {rounds} of {rounds}"));
        test.check_played(players);
        let most = most_at_once(&test, "REF01");
        assert!((1..=2).contains(&most), "{most} matches at once");
    }
}

#[test]
fn twenty_lines_are_printed_in_two_minutes_and_none_twice() {
    let (mut limit, start) = (LineLimit::default(), Instant::now());
    let mut admit = |line: &str, seconds| limit.allow(line, start + Duration::from_secs(seconds));
    for n in 0..19 {
        assert!(admit(&format!("first {n}"), 100), "{n}");
    }
    assert!(!admit("first 0", 101));
    assert!(admit("one more", 102));
    assert!(!admit("another", 219), "two minutes have not passed");
    assert!(admit("first 0", 220));
    for n in 0..20 {
        assert_eq!(admit(&format!("second {n}"), 220), n < 18, "{n}");
    }
}
