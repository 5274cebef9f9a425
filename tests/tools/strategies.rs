//! The choices of each strategy, by its history.

use super::support::rows;
use crate::players::strategies::{self, PastMatch, Strategy, Turn};
use league::protocol::Parity;
use league::values::ByPlayer;

/// Returns a turn against an opponent, with a history like `P02:eo P03:-e`: the opponent of a match,
/// then our choice and its choice, `-` for none.
fn turn(opponent_id: &str, history: &str) -> Turn {
    let mut matches = Vec::new();
    for (n, text) in (1..).zip(history.split_whitespace()) {
        matches.push(past_match(n, text));
    }
    Turn {
        player_id: "P01".into(),
        opponent_id: opponent_id.into(),
        match_id: "R9M1".into(),
        round_id: 9,
        standings: None,
        history: matches.into(),
        seed: Some(7),
        ..Turn::sample()
    }
}

fn past_match(n: usize, text: &str) -> PastMatch {
    let mut past = Turn::sample().history[0].clone();
    past.match_id = format!("R{n}M1");
    past.opponent_id = text[..3].into();
    past.result.choices = ByPlayer::from_iter([
        ("P01".into(), parity(&text[4..5])),
        (text[..3].into(), parity(&text[5..])),
    ]);
    past
}

fn parity(letter: &str) -> Option<Parity> {
    match letter {
        "e" => Some(Parity::Even),
        "o" => Some(Parity::Odd),
        _ => None,
    }
}

/// A strategy, its history, its opponent, and its choice.
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
    contrary | P02:oe P03:oo P03:oo | P02 | odd      choices of P02 count more than those of others
    contrary | P02:oe P02:oe P03:oo | P04 | odd      a new opponent is predicted by the others
    contrary | P02:o- P03:eo | P02 | even      P02 has never chosen
    frequency | P02:ee P02:eo P02:ee | P02 | odd
    frequency | P02:ee P02:ee P02:ee P02:ee P02:ee P02:eo P02:eo P02:eo P02:eo | P02 | even      the newest weigh most
    pattern | P02:ee P02:eo P02:ee | P02 | even      after even came odd
    pattern | P02:ee P02:oo P02:ee P02:oe P02:ee P02:oo P02:ee | P02 | odd      the longest stretch counts
    pattern | P02:ee P02:ee P02:eo P02:ee | P02 | even      what followed the newest even counts
    pattern | P03:ee P03:ee P02:oo P02:oo | P02 | even      matches against others do not count";

/// A game, and the strategies for it.
const NAMES: &str = "
    even_odd | random even odd alternate contrary frequency pattern
    tic_tac_toe | random blocks perfect
    chess | random";

#[test]
fn strategies_choose_by_their_history() {
    for [name, history, opponent, expected] in rows(CHOICES) {
        let choose = strategies::find("even_odd", name).unwrap();
        let choice = choose(&turn(opponent, history));
        assert!(expected.starts_with(&choice), "{name} {history}: {choice}");
    }
    for [game, expected] in rows(NAMES) {
        assert_eq!(strategies::names(game).join(" "), expected);
    }
}

/// Changes a turn for the nth of many choices.
type Change = fn(&mut Turn, usize);

fn choices(strategy: Strategy, change: Change) -> Vec<String> {
    let mut choices = Vec::new();
    for n in 0..1_000 {
        let mut turn = turn("P02", "");
        change(&mut turn, n);
        choices.push(strategy(&turn));
    }
    choices
}

#[test]
fn random_choices_with_a_seed_are_balanced_and_repeat() {
    let changes: [(&str, Change); 3] = [
        ("match", |turn, n| turn.match_id = format!("R{n}M1")),
        ("player", |turn, n| turn.player_id = format!("P{n:02}")),
        ("seed", |turn, n| turn.seed = Some(n as u64)),
    ];
    for name in ["random", "contrary"] {
        let strategy = strategies::find("even_odd", name).unwrap();
        for (what, change) in changes {
            let choices = choices(strategy, change);
            assert_eq!(
                choices,
                self::choices(strategy, change),
                "{name}: by {what}"
            );
            let even = choices.iter().filter(|choice| *choice == "even").count();
            assert!(
                (430..=570).contains(&even),
                "{name}: {even} of 1000 are even, by {what}"
            );
        }
    }
}
