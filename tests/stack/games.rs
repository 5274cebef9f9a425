//! The games: the players that are asked, the legal moves, the drawn number and the winner
//! (`tests/scripts/games`); and what any game may be.

use super::support::offline::{describe, moves_of, scoring, usual};
use super::support::{golden, json_of, list_of};
use league::games::{self, Game, MoveMessages, Win, even_odd, match_result, tic_tac_toe};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn players() -> [String; 2] {
    ["P01".into(), "P02".into()]
}

#[test]
fn registry_agrees_with_the_games() {
    let text = include_str!("../../config/games/games_registry.json");
    let registry: Value = serde_json::from_str(text).unwrap();
    let described = list_of(&registry["games"]);
    for game in games::GAMES {
        let mut expected = json!({
            "game_type": game.game_type,
            "display_name": game.display_name,
            "players": 2,
            "choices": (game.legal_moves)(&[]),
        });
        if let Some(range) = &game.number_range {
            expected["number_range"] = json!([range.start(), range.end()]);
        }
        assert!(described.contains(&expected), "no entry {expected}");
    }
    assert_eq!(described.len(), games::GAMES.len());
}

/// A game of two rounds. Its moves may be called as in Even/Odd: they stand in `moves`, in the order in
/// which they were made, and the manager accepts the report.
#[test]
fn game_of_two_rounds_may_have_moves_called_even() {
    let mut game = Game {
        game_type: "lots",
        number_range: None,
        legal_moves: |moves| match moves.len() {
            4 => vec![],
            _ => vec!["even", "odd"],
        },
        winner: |players, moves, _| Win {
            seat: Some(moves[0].seat),
            reason: format!("{} began with {}", players[0], moves[0].text),
        },
        messages: MoveMessages::Move,
        ..even_odd::GAME
    };
    let asked = ["", "e", "eo", "eoe", "eoeo"].map(|text| game.players_to_move(&moves_of(text)));
    assert_eq!(asked, [vec![0, 1], vec![1], vec![0, 1], vec![1], vec![]]);

    for simultaneous in [false, true] {
        game.simultaneous = simultaneous;
        let moves = moves_of("oeeo");
        let result = game.judge(&players(), &moves, None);
        assert_eq!(json!(result.choices), json!({"P01": null, "P02": null}));
        let details = match_result(&result, &usual()).details;
        let reported = games::moves_by_seat(&players(), &details.choices, &details.moves);
        assert_eq!(reported, Ok(moves.clone()));
        assert_eq!(game.replay(&players(), &moves, None), Ok(result));
        let late = [Some("came late".to_string()), None];
        let forfeited = game.forfeit(&players(), &moves[..2], &late);
        assert_eq!(forfeited.moves.unwrap().len(), 2);
    }
}

/// Runs `turn GAME MOVES`, `move GAME MOVES JSON`, `end GAME MOVES NUMBER` or `forfeit HOW`.
fn run_command(command: &str) -> String {
    let mut words = command.splitn(4, ' ').chain(["", ""]);
    let [verb, name, moves, last] = [(); 4].map(|()| words.next().unwrap());
    let moves = moves_of(moves);
    let strict = scoring([3, 1, 0, -1]); // a technical loss is worth less than another one
    let Some(game) = games::find(name) else {
        return "no such game".into();
    };
    let output = match verb {
        "turn" => {
            let legal = (game.legal_moves)(&moves);
            let asked = game.players_to_move(&moves);
            format!(
                "{}\nasks {asked:?}, legal {legal:?}",
                (game.position)(&moves)
            )
        }
        "move" => match game.parse_move(&moves, &json_of(last)) {
            Ok(legal) => legal.into(),
            Err(refusal) => format!("{refusal}; {}", refusal.context["valid_choices"]),
        },
        "end" => {
            let played = game.replay(&players(), &moves, last.parse().ok());
            played.map_or_else(|refusal| refusal, |result| describe(&result, &strict))
        }
        "forfeit" => {
            let failures = ["A", "B"].map(|seat| last.contains(seat).then(|| "came late".into()));
            describe(&game.forfeit(&players(), &moves, &failures), &strict)
        }
        other => panic!("{other}: no such command"),
    };
    output.replace(&format!("1 to {}", even_odd::NUMBERS.end()), "RANGE")
}

#[test]
fn games_golden() {
    golden::run_scripts("games", || run_command);
}

#[test]
fn draws_are_uniform_and_repeatable() {
    let id = |n: u64| format!("R{}M{}", n / 100 + 1, n % 100 + 1);
    let draw = |seed: u64, n: u64| even_odd::GAME.draw(Some(seed), &id(n)).unwrap();
    let rows: [(&str, &dyn Fn(u64) -> u32); 4] = [
        ("one seed, all matches", &|n| draw(7, n)),
        ("another seed", &|n| draw(2025, n)),
        ("all seeds, one match", &|n| draw(n, 0)),
        ("a small league each", &|n| draw(n / 6, n % 6)),
    ];
    for (row, draw) in rows {
        let draws: Vec<u32> = (0..10_000).map(draw).collect();
        assert!(draws.iter().all(|n| even_odd::NUMBERS.contains(n)), "{row}");
        assert_eq!(draws, (0..10_000).map(draw).collect::<Vec<_>>(), "{row}");
        // In 10,000 draws each number comes as often as expected, but for five standard deviations.
        let expected = 10_000.0 / f64::from(*even_odd::NUMBERS.end());
        for number in even_odd::NUMBERS {
            let count = draws.iter().filter(|drawn| **drawn == number).count() as f64;
            let is_even = (count - expected).abs() < 5.0 * expected.sqrt();
            assert!(is_even, "{row}: {number} came {count} times");
        }
    }
    let [one, other] = [7, 2025].map(|seed| (0..100).map(|n| draw(seed, n)).collect::<Vec<_>>());
    assert_ne!(one, other, "another seed, other numbers");
    let unseeded: BTreeSet<u32> = (0..1_000)
        .flat_map(|_| even_odd::GAME.draw(None, "R1M1"))
        .collect();
    let every_number = even_odd::NUMBERS.collect();
    assert_eq!(unseeded, every_number, "without a seed every number comes");
    assert_eq!(tic_tac_toe::GAME.draw(Some(7), "R1M1"), None);
}
