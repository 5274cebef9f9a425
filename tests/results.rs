//! What the manager takes as a result, what it answers, what it announces and to whom, and which referee gets which
//! match: a story, and the rules that hold in all of many leagues.

mod support;

use league::manager::league::League;
use league::protocol::{AgentMeta, Kind, MatchResultReport};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::paper::{
    self, caller, enter, happen, meta, play_round, referees, rules, seeded, started,
};

#[test]
fn the_story_of_results() {
    support::script::play("results.txt");
}

#[test]
fn long_texts_of_referees_are_cut() {
    let mut league = started(2, &[1]);
    paper::assign(&mut league, 1, &["REF01"]);
    let fresh = league.clone();
    let game = fresh.find("R1M1").unwrap();
    let mut told = paper::report(&fresh, game, seeded(7, game).for_manager(&rules().scoring));
    told.result.details.reason = Some("ü".repeat(9_000));
    let judge = |league: &League, it: &MatchResultReport| {
        let request = paper::request("referee:REF01", "conv-long");
        league.judge(&fresh.members["REF01"], &request, it, paper::at("11:00:00"))
    };
    let event = judge(&league, &told).unwrap();
    happen(&mut league, event);
    let kept = league.find("R1M1").unwrap().recorded.clone().unwrap();
    let expected = "ü".repeat(600) + "…";
    assert_eq!(kept.result.details.reason, Some(expected));
    assert_eq!(
        judge(&league, &told),
        Ok(None),
        "the same again is known again"
    );
    let long = "x".repeat(9_000);
    for field in ["match_id", "game_type", "result/winner", "result/score"] {
        let mut report = told.clone();
        match field {
            "match_id" => report.match_id = long.clone(),
            "game_type" => report.game_type = long.clone(),
            "result/winner" => report.result.winner = Some(long.clone()),
            _ => report.result.score = [(long.clone(), 1)].into(),
        }
        let refusal = judge(&fresh, &report).unwrap_err();
        assert!(refusal.explain().len() < 200, "{field}: {refusal}");
    }
}

#[test]
fn no_notice_is_longer_than_agents_read() {
    const MOST: usize = 256 << 10;
    let mut league = League::new(rules());
    let place = |n: usize| format!("http://localhost:{:04}/", 9000 + n) + &r#"\""#.repeat(89); // escaped in JSON
    for n in 1..=108 {
        let kind = [Kind::Player, Kind::Referee][usize::from(n > 100)];
        let longest = AgentMeta {
            display_name: "\u{1}".repeat(50), // six bytes each in JSON
            ..meta(kind, &place(n))
        };
        enter(&mut league, &longest, &caller(&format!("{kind}:new")));
    }
    let longest = league.members["P05"].endpoint.len();
    assert_eq!(
        (longest, league.members.len()),
        (200, 108),
        "what is legal at most"
    );
    let event = league.start(None, league.pairings()).unwrap();
    happen(&mut league, event);
    let token = |player: &str| format!("tok-{player}-{}", "f".repeat(256));
    let event = league.assign(1, &referees(&league)[..1], token);
    happen(&mut league, event);
    let size = |notice: Value| notice.to_string().len();
    let first = league.members.get("REF01");
    for reader in [None, first, league.members.get("REF02")] {
        assert!(
            size(json!(league.announcement(1, reader))) < MOST,
            "{reader:?}"
        );
    }
    assert!((40_000..MOST).contains(&size(json!(league.standings_update()))));
    assert!(size(json!(league.completed())) < MOST);
}

#[test]
fn matches_are_spread_over_the_referees_by_what_they_can_carry() {
    let one = [1, 2, 5].map(|capacity| vec![capacity]);
    let more = |rows: &[Vec<u32>]| -> Vec<Vec<u32>> {
        let longer = |row: &Vec<u32>| one.clone().map(|last| [&row[..], &last].concat());
        rows.iter().flat_map(longer).collect()
    };
    let two = more(&one);
    let rows = [&one[..], &two, &more(&two)].concat();
    for (players, row) in [2, 3, 4, 5, 7, 8]
        .iter()
        .flat_map(|n| rows.iter().map(move |row| (*n, row)))
    {
        let mut league = started(players, row);
        for round in 1..=league.rounds() {
            play_round(&mut league, round, |game| seeded(7, game));
            let mut load: BTreeMap<String, u32> =
                referees(&league).into_iter().map(|id| (id, 0)).collect();
            for game in league.round(round) {
                *load.get_mut(game.referee().unwrap()).unwrap() += 1;
            }
            let laden: Vec<(u32, u32)> = load.into_values().zip(row.iter().copied()).collect();
            let words = format!("{players} players, round {round}: (matches, capacity) {laden:?}");
            let fits = laden.iter().map(|(matches, _)| matches).sum::<u32>() <= row.iter().sum();
            let is_within = laden.iter().all(|(matches, capacity)| matches <= capacity);
            assert!(!fits || is_within, "above capacity: {words}");
            for (mine, my) in &laden {
                let better = |(its, other): &(u32, u32)| mine * other > (its + 1) * my;
                assert!(
                    !laden.iter().any(better),
                    "another could carry it better: {words}"
                );
            }
        }
        assert_eq!(
            league.open_round(),
            None,
            "{players} players and {row:?} play to the end"
        );
    }
}

#[test]
fn rounds_and_the_league_end_with_sums_that_fit() {
    let mut league = started(6, &[2]);
    for round in 1..=5 {
        play_round(&mut league, round, |game| seeded(7, game));
        let end = league.round_completed(round);
        let summary = end.summary;
        let sum = summary.wins + summary.draws + summary.technical_losses;
        assert_eq!(
            (sum, summary.total_matches, end.matches_completed),
            (3, 3, 3)
        );
        assert_eq!(end.next_round_id, (round < 5).then_some(round + 1));
        assert_eq!(league.standings_update().round_id, round);
    }
    let end = json!(league.completed());
    let table = json!(league.standings_update().standings);
    assert_eq!(
        (&end["total_rounds"], &end["total_matches"]),
        (&json!(5), &json!(15))
    );
    let first = &table[0];
    for (place, row) in end["final_standings"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        for (key, value) in row.as_object().unwrap() {
            assert_eq!(value, &table[place][key], "{key} of {row}");
        }
    }
    for (key, value) in end["champion"].as_object().unwrap() {
        assert_eq!(value, &first[key], "{key} of the champion");
    }
}
