//! Offline leagues: the golden scripts of `tests/scripts` about registrations, results and orders of
//! the operator, and laws that hold in many leagues.

use super::support::offline::{
    OfflineLeague, caller, enter, happen, meta, play_round, referees, rules, seeded, start, started,
};
use league::manager::league::League;
use league::protocol::{AgentKind, AgentMeta};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn league_golden() {
    for folder in ["registration", "results", "control"] {
        OfflineLeague::run_scripts(folder);
    }
}

#[test]
fn longest_notifications_fit_the_limit() {
    const MOST: usize = 256 << 10;
    let mut league = League::new(rules());
    for n in 1..=108 {
        let kind = [AgentKind::Player, AgentKind::Referee][usize::from(n > 100)];
        let escaped = r#"\""#.repeat(89); // two bytes each in JSON
        let endpoint = format!("http://localhost:{}/{escaped}", 9000 + n);
        let longest = AgentMeta {
            display_name: "\u{1}".repeat(50), // six bytes each in JSON
            ..meta(kind, &endpoint)
        };
        enter(&mut league, &longest, &caller(&format!("{kind}:new")));
    }
    let longest = league.members["P05"].meta.contact_endpoint.len();
    assert_eq!((longest, league.members.len()), (200, 108), "legal at most");
    assert_eq!(league.ids(AgentKind::Player)[99], "P100", "not by letter");
    let mut league = start(league);
    let token = |player: &str| format!("tok-{player}-{}", "f".repeat(256));
    let event = league.assign_open_matches(1, &referees(&league)[..1], &BTreeSet::new(), token);
    happen(&mut league, event);
    let length = |message: Value| message.to_string().len();
    for reader in [None, Some("REF01"), Some("REF02")] {
        let announced = length(json!(league.announcement(1, reader)));
        assert!(announced < MOST, "{reader:?}");
    }
    assert!((40_000..MOST).contains(&length(json!(league.standings_update()))));
    assert!(length(json!(league.league_completed())) < MOST);
}

#[test]
fn matches_are_assigned_by_capacity() {
    let leagues = [2, 3, 4, 5, 7, 8].into_iter();
    for (players, n) in leagues.flat_map(|players| (1..64).map(move |n| (players, n))) {
        // One to three referees with a capacity of one, two or five matches each.
        let capacities = [n % 4, n / 4 % 4, n / 16].map(|digit| [0, 1, 2, 5][digit]);
        let mut capacities = capacities.to_vec();
        capacities.retain(|capacity| *capacity > 0);
        let mut league = started(players, &capacities);
        for round in 1..=league.rounds() {
            play_round(&mut league, round, |game| seeded(7, game));
            let load = |id: String| {
                let round = league.matches_of_round(round).iter();
                round.filter(|game| game.referee() == Some(&id)).count() as u32
            };
            let loads: Vec<u32> = referees(&league).into_iter().map(load).collect();
            let row = format!("{players} players, {capacities:?}, round {round}: {loads:?}");
            let fits = loads.iter().sum::<u32>() <= capacities.iter().sum();
            for (load, capacity) in loads.iter().zip(&capacities) {
                assert!(!fits || load <= capacity, "above capacity: {row}");
                let mut others = loads.iter().zip(&capacities);
                let is_worst = others.any(|(other, its)| load * its > (other + 1) * capacity);
                assert!(!is_worst, "another referee has more room: {row}");
            }
        }
        assert_eq!(league.open_round(), None, "{players}, {capacities:?}");
    }
}
