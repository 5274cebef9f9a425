//! What each strategy chooses, by what it has seen.

use crate::strategies::{self, Turn};
use league::protocol::Parity;
use std::collections::BTreeMap;

/// A history like `P02:eo P03:-e`: the opponent, then our choice and its, `-` for none.
fn turn(opponent_id: &str, history: &str) -> Turn {
    let made = |letter: &str| match letter {
        "e" => Some(Parity::Even),
        "o" => Some(Parity::Odd),
        _ => None,
    };
    let past = |(n, text): (usize, &str)| {
        let mut past = Turn::sample().history[0].clone();
        past.match_id = format!("R{n}M1");
        past.opponent_id = text[..3].into();
        past.result.choices = BTreeMap::from([
            ("P01".into(), made(&text[4..5])),
            (text[..3].into(), made(&text[5..])),
        ]);
        past
    };
    Turn {
        player_id: "P01".into(),
        opponent_id: opponent_id.into(),
        match_id: "R9M1".into(),
        round_id: 9,
        standings: None,
        history: (1..)
            .zip(history.split_whitespace())
            .map(past)
            .collect::<Vec<_>>()
            .into(),
        seed: Some(7),
        ..Turn::sample()
    }
}

/// A strategy, the history, the opponent, and the choice.
const CHOICES: &str = "
    even | | P02 | even
    even | P02:ee | P02 | even
    odd | | P02 | odd
    odd | P02:oo | P02 | odd
    alternate | | P02 | even
    alternate | P02:eo | P03 | odd
    alternate | P02:eo P03:oe | P04 | even
    alternate | P02:eo P03:-e | P04 | odd      nothing was chosen in between
    contrary | P02:ee | P02 | odd
    contrary | P02:eo | P02 | even
    contrary | P02:oe P02:oe P02:oo | P02 | odd
    contrary | P02:oe P03:oo P03:oo | P02 | odd      of P02 more is known than of all others
    contrary | P02:oe P02:oe P03:oo | P04 | odd      a newcomer is taken for one like all others
    contrary | P02:o- P03:eo | P02 | even      P02 has never chosen
    frequency | P02:ee P02:eo P02:ee | P02 | odd
    frequency | P02:ee P02:ee P02:ee P02:ee P02:ee P02:eo P02:eo P02:eo P02:eo | P02 | even      the newest weigh most
    pattern | P02:ee P02:eo P02:ee | P02 | even      after even came odd
    pattern | P02:ee P02:oo P02:ee P02:oe P02:ee P02:oo P02:ee | P02 | odd      the longest stretch counts
    pattern | P03:ee P03:ee P02:oo P02:oo | P02 | even      the matches of others say nothing";

#[test]
fn each_strategy_chooses_by_what_it_has_seen() {
    for row in CHOICES.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let choose = strategies::find("even_odd", cells[0]).unwrap();
        let chosen = choose(&turn(cells[2], cells[1]));
        assert!(cells[3].starts_with(&chosen), "{row}: {chosen}");
    }
    let rows = [
        (
            "even_odd",
            "random even odd alternate contrary frequency pattern",
        ),
        ("tic_tac_toe", "random blocks perfect"),
        ("chess", "random"),
    ];
    for (game, expected) in rows {
        assert_eq!(strategies::names(game).join(" "), expected);
    }
}

type Change = fn(&mut Turn, usize);

#[test]
fn with_a_seed_random_choices_are_the_same_in_every_run() {
    let changed = |change: Change| {
        (0..1_000).map(move |n| {
            let mut turn = turn("P02", "");
            change(&mut turn, n);
            turn
        })
    };
    let rows: [(&str, Change); 3] = [
        ("match", |turn, n| turn.match_id = format!("R{n}M1")),
        ("player", |turn, n| turn.player_id = format!("P{n:02}")),
        ("seed", |turn, n| turn.seed = Some(n as u64)),
    ];
    for (name, strategy) in [
        ("random", strategies::find("even_odd", "random").unwrap()),
        (
            "contrary",
            strategies::find("even_odd", "contrary").unwrap(),
        ),
    ] {
        for (what, change) in rows {
            let choices: Vec<String> = changed(change).map(|turn| strategy(&turn)).collect();
            let again: Vec<String> = changed(change).map(|turn| strategy(&turn)).collect();
            assert_eq!(choices, again, "{name}: by {what}");
            let even = choices.iter().filter(|choice| *choice == "even").count();
            assert!(
                (430..=570).contains(&even),
                "{name}: {even} of 1000 are even, by {what}"
            );
        }
    }
}
