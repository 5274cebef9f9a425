//! The rooms that only calculate: the schedule as laws that hold for every number of players;
//! standings and retries as rows of `tests/scripts/rules`.

use league::games::Scoring;
use league::manager::schedule::round_robin;
use league::net::call_error::CallError;
use league::program::config::{RetryPolicy, Seconds};
use league::protocol::{ErrorCode, ProtocolError};

use super::support::offline::{league_with, rules, scoring};
use super::support::{golden, offline_league};
use std::collections::{BTreeMap, BTreeSet};
use std::{cell::RefCell, time::Duration};

#[test]
fn schedule_has_every_pair_once_with_balanced_roles() {
    for (n, cycles) in (2..=12).flat_map(|n| (1..=3).map(move |cycles| (n, cycles))) {
        let row = format!("{n} players, {cycles} cycles");
        let players: Vec<String> = (1..=n).map(|n| format!("P{n:02}")).collect();
        let rounds = round_robin(&players, cycles as u32);
        // So many that each rests as often as all others.
        assert_eq!(rounds.len(), cycles * (n - (n + 1) % 2), "{row}: rounds");
        let mut met = BTreeMap::<_, Vec<bool>>::new();
        for round in &rounds {
            let busy: BTreeSet<&String> = round.iter().flatten().collect();
            assert_eq!(
                busy.len(),
                2 * round.len(),
                "{row}: nobody twice in {round:?}"
            );
            for [a, b] in round {
                met.entry((a.min(b), a.max(b))).or_default().push(a < b);
            }
        }
        assert_eq!(met.len(), n * (n - 1) / 2, "{row}: pairs");
        for (pair, lower_is_a) in &met {
            let turns = (0..cycles).map(|cycle| lower_is_a[0] == (cycle % 2 == 0));
            let turns: Vec<bool> = turns.collect();
            assert_eq!(
                *lower_is_a, turns,
                "{row}: {pair:?} meet once a cycle and change roles"
            );
        }
        for player in &players {
            let times = |seat: usize| {
                rounds
                    .iter()
                    .flatten()
                    .filter(|pair| pair[seat] == *player)
                    .count()
            };
            assert!(
                times(0).abs_diff(times(1)) <= 1,
                "{row}: {player} is A {} times",
                times(0)
            );
        }
    }
    for few in [vec![], vec!["P01".into()]] {
        assert!(round_robin(&few, 1).concat().is_empty());
    }
}

/// `3,1,0,0 wins,draws P01>P02 P03`: the table after these matches, in a league with these points
/// for a match won, drawn, lost and technically lost, and these tie-breaks.
fn table(row: &str) -> String {
    let [points, ties, script] = row.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{row}")
    };
    let points: Vec<i32> = points.split(',').flat_map(str::parse).collect();
    let ties = ties.split(',').filter(|word| *word != "-");
    let scoring = Scoring {
        tiebreakers: ties
            .map(|item| serde_json::from_value(item.into()).unwrap())
            .collect(),
        ..scoring(points.try_into().unwrap())
    };
    let mut rules = rules();
    rules.league.scoring = scoring;
    offline_league::table(&league_with(rules, script))
}

/// `3 exponential late gone`: what comes of so many attempts in all which fail so at first, and the
/// pauses between them in seconds.
fn retried(row: &str) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let policy = RetryPolicy {
        max_retries: words[0].parse().unwrap(),
        base_delay_sec: Seconds(Duration::from_secs(2)),
        backoff_strategy: serde_json::from_value(words[1].into()).unwrap(),
    };
    let failure = |word: &&str| match *word {
        "late" => CallError::Timeout(Duration::from_secs(30)),
        "gone" => CallError::Unreachable("refused".into()),
        _ => CallError::wrong(ProtocolError::new(ErrorCode::MissingField, "nonsense"), ""),
    };
    let (pauses, mut made) = (RefCell::new(Vec::new()), 0);
    let attempt = || {
        made += 1;
        words.get(made + 1).map(failure).map_or(Ok(()), Err)
    };
    let pause = |delay: Duration| pauses.borrow_mut().push(delay.as_secs());
    let done = policy.retry(pause, CallError::is_retryable, attempt);
    let end = done.map_or_else(|error| error.explain(), |()| "done".into());
    let longest = policy.max_total_time(Duration::from_secs(30)).as_secs();
    format!(
        "{made} attempts, pauses {:?}: {end}; at most {longest} s",
        pauses.into_inner()
    )
}

#[test]
fn rules_golden() {
    golden::run_scripts("rules", || {
        |command: &str| match command.split_once(' ').unwrap() {
            ("table", row) => table(row),
            (_, row) => retried(row),
        }
    });
}
