//! Rules without processes: the schedule as laws that hold for every number of players; standings,
//! retries and the order of notifications as golden scripts of `tests/scripts/rules`.

use super::contacts::{progress, result};
use super::support::golden;
use super::support::offline::{self, league_with, rules, scoring};
use league::games::Scoring;
use league::manager::notifications::Progress;
use league::manager::schedule::round_robin;
use league::program::attempts::Attempts;
use league::program::config::{RetryPolicy, Seconds};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[test]
fn schedule_has_every_pair_once_with_balanced_roles() {
    for (n, cycles) in (2..=12).flat_map(|n| (1..=3).map(move |cycles| (n, cycles))) {
        let row = format!("{n} players, {cycles} cycles");
        let players: Vec<String> = (1..=n).map(|n| format!("P{n:02}")).collect();
        let rounds = round_robin(&players, cycles as u32);
        // With an odd number of players each one rests once in a cycle.
        assert_eq!(rounds.len(), cycles * (n - (n + 1) % 2), "{row}: rounds");
        let mut met = BTreeMap::<_, Vec<bool>>::new();
        for round in &rounds {
            let busy: BTreeSet<&String> = round.iter().flatten().collect();
            assert_eq!(busy.len(), 2 * round.len(), "{row}: twice in {round:?}");
            for [a, b] in round {
                met.entry((a.min(b), a.max(b))).or_default().push(a < b);
            }
        }
        assert_eq!(met.len(), n * (n - 1) / 2, "{row}: pairs");
        for (pair, lower_is_a) in &met {
            // A pair meets once in a cycle, and changes roles.
            assert_eq!(lower_is_a.len(), cycles, "{row}: {pair:?}");
            let alternates = lower_is_a.windows(2).all(|two| two[0] != two[1]);
            assert!(alternates, "{row}: {pair:?}");
        }
        for player in &players {
            let [as_a, as_b] = [0, 1].map(|seat| {
                let pairs = rounds.iter().flatten();
                pairs.filter(|pair| pair[seat] == *player).count()
            });
            assert!(as_a.abs_diff(as_b) <= 1, "{row}: {player}, {as_a}, {as_b}");
        }
    }
    for few in [vec![], vec!["P01".into()]] {
        assert!(round_robin(&few, 1).concat().is_empty());
    }
}

/// `3,1,0,0 wins,draws P01>P02 P03`: returns the table after these matches. The points are for a
/// match won, drawn, lost and technically lost; then come the tie-breaks.
fn table(row: &str) -> String {
    let [points, ties, script] = row.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{row}")
    };
    let points: Vec<i32> = points.split(',').flat_map(str::parse).collect();
    let ties = ties.split(',').filter(|word| *word != "-");
    let ties = ties.map(|word| serde_json::from_value(word.into()).unwrap());
    let mut rules = rules();
    rules.league.scoring = Scoring {
        tiebreakers: ties.collect(),
        ..scoring(points.try_into().unwrap())
    };
    offline::table(&league_with(rules, script))
}

/// Returns the players in the order of the table, with the usual points and these tie-breaks.
fn order(matches: &str, ties: &str) -> String {
    let table = table(&format!("3,1,0,0 {ties} {matches}"));
    let players = table.lines().map(|line| &line[2..6]);
    format!("{ties}{}\n", players.collect::<String>())
}

pub fn policy(max_retries: u32, strategy: &str) -> RetryPolicy {
    RetryPolicy {
        max_retries,
        base_delay_sec: Seconds(Duration::from_secs(2)),
        backoff_strategy: serde_json::from_value(strategy.into()).unwrap(),
    }
}

/// `3 exponential late gone`: at most three attempts, of which the first two fail so. Returns their
/// result, and the pauses between them in seconds.
fn retried(row: &str) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let policy = policy(words[0].parse().unwrap(), words[1]);
    let mut attempts = Attempts::new(policy);
    let (mut pauses, mut made) = (Vec::new(), 0);
    let end = loop {
        made += 1;
        let Err(error) = result(words.get(made + 1).unwrap_or(&"answer")) else {
            break "done".to_string();
        };
        match attempts.next_delay() {
            Some(delay) if error.is_retryable() => pauses.push(delay.as_secs()),
            _ => break error.explain(),
        }
    };
    let longest = policy.max_total_time(Duration::from_secs(30)).as_secs();
    format!("{made} attempts, pauses {pauses:?}: {end}; at most {longest} s")
}

/// Returns all notifications that an agent with this progress is sent, one after the other.
fn lacking(mut received: Progress, newest: Progress) -> String {
    let mut lines = String::new();
    while let Some((notification, next)) = received.next_notification(newest) {
        lines += &format!("{notification:?}\n");
        received = next;
    }
    lines
}

#[test]
fn rules_golden() {
    golden::run_scripts("rules", || {
        |command: &str| match command.split_once(' ').unwrap_or((command, "")) {
            ("table", row) => table(row),
            ("order", row) => {
                let (matches, ties) = row.split_once(": ").unwrap();
                ties.split(' ').map(|ties| order(matches, ties)).collect()
            }
            ("lacks", row) => {
                let (received, newest) = row.split_once(" of ").unwrap();
                lacking(progress(received), progress(newest))
            }
            ("again", newest) => {
                let newest = progress(newest);
                lacking(newest.before_last_round(), newest)
            }
            ("retry", row) => retried(row),
            _ => panic!("{command}: no such command"),
        }
    });
}
