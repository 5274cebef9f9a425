//! The league on paper: the stories of `tests/scripts` of who is let in, which results are taken
//! and what is told of them, and what the operator may do; and laws that hold in all of many
//! leagues.

use super::support::offline::{
    caller, enter, happen, meta, play_round, referees, rules, seeded, started,
};
use super::support::offline_league;
use league::manager::league::League;
use league::protocol::{AgentKind, AgentMeta};
use serde_json::{Value, json};

#[test]
fn league_golden() {
    for folder in ["registration", "results", "control"] {
        offline_league::play(folder);
    }
}

#[test]
fn longest_notifications_fit_the_limit() {
    const MOST: usize = 256 << 10;
    let mut league = League::new(rules());
    let place = |n: usize| format!("http://localhost:{:04}/", 9000 + n) + &r#"\""#.repeat(89); // escaped in JSON
    for n in 1..=108 {
        let kind = [AgentKind::Player, AgentKind::Referee][usize::from(n > 100)];
        let longest = AgentMeta {
            display_name: "\u{1}".repeat(50), // six bytes each in JSON
            ..meta(kind, &place(n))
        };
        enter(&mut league, &longest, &caller(&format!("{kind}:new")));
    }
    let longest = league.members["P05"].meta.contact_endpoint.len();
    assert_eq!((longest, league.members.len()), (200, 108), "legal at most");
    assert_eq!(league.ids(AgentKind::Player)[99], "P100", "not by letter");
    let event = league.start_event(None, league.pairings());
    happen(&mut league, event);
    let token = |player: &str| format!("tok-{player}-{}", "f".repeat(256));
    let event = league.assign_open_matches(1, &referees(&league)[..1], token);
    happen(&mut league, event);
    let size = |notice: Value| notice.to_string().len();
    for reader in [None, Some("REF01"), Some("REF02")] {
        let announced = size(json!(league.announcement(1, reader)));
        assert!(announced < MOST, "{reader:?}");
    }
    assert!((40_000..MOST).contains(&size(json!(league.standings_update()))));
    assert!(size(json!(league.league_completed())) < MOST);
}

#[test]
fn matches_are_assigned_by_capacity() {
    for (players, n) in [2, 3, 4, 5, 7, 8]
        .iter()
        .flat_map(|players| (1..64).map(move |n| (*players, n)))
    {
        // One to three referees that carry one, two or five matches each.
        let carries = [n % 4, n / 4 % 4, n / 16].map(|item| [0, 1, 2, 5][item]);
        let carries: Vec<u32> = carries.into_iter().filter(|item| *item > 0).collect();
        let mut league = started(players, &carries);
        for round in 1..=league.rounds() {
            play_round(&mut league, round, |game| seeded(7, game));
            let load = |id: &String| {
                let round = league.matches_of_round(round).iter();
                round.filter(|game| game.referee() == Some(id)).count() as u32
            };
            let load = referees(&league).iter().map(load).collect::<Vec<_>>();
            let laden: Vec<(u32, u32)> =
                load.iter().copied().zip(carries.iter().copied()).collect();
            let words = format!("{players} players, round {round}: (matches, capacity) {laden:?}");
            let fits = load.iter().sum::<u32>() <= carries.iter().sum();
            let is_within = laden.iter().all(|(matches, capacity)| matches <= capacity);
            assert!(!fits || is_within, "above capacity: {words}");
            for (mine, my) in &laden {
                let better = |(its, other): &(u32, u32)| mine * other > (its + 1) * my;
                let is_best = !laden.iter().any(better);
                assert!(is_best, "another could carry it better: {words}");
            }
        }
        assert_eq!(
            league.open_round(),
            None,
            "{players} players and {carries:?}"
        );
    }
}
