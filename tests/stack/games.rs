//! The games: the players that are asked, the legal moves, the drawn number and the winner. One row
//! per rule.

use super::support::offline::{scoring, usual};
use super::support::{list_of, rows};
use league::games::{
    self, Game, Move, MoveMessages, Win, alternating, even_odd, match_result, points, tic_tac_toe,
};
use league::protocol::{ErrorCode, GameResult};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

fn players() -> [String; 2] {
    ["P01".into(), "P02".into()]
}

/// Returns moves that are written as one digit or letter each: `15` or `eo`; `-` is no move.
fn made(text: &str) -> Vec<Move> {
    let word = |letter| match letter {
        "e" => "even",
        "o" => "odd",
        other => other,
    };
    let texts: Vec<&str> = text.split_terminator("").skip(1).map(word).collect();
    let mut made = alternating(&texts);
    made.retain(|played| played.text != "-");
    made
}

/// Returns a result as one line. A technical loss is worth less than another loss.
fn line(result: &GameResult) -> String {
    let winner = result.winner_player_id.as_deref().unwrap_or("nobody");
    let score = players().map(|id| points(result, &id, &scoring([3, 1, 0, -1])));
    let (status, reason) = (result.status, result.reason.as_deref().unwrap());
    format!("{status} {winner} {score:?} {reason}")
}

/// A game, the moves so far, the seats that are asked, and the legal moves. A game is over when a
/// row or a column is complete, or the board is full.
const TURNS: &str = "
even_odd | | 0 1 | even odd
even_odd | e | 1 | even odd
even_odd | eo | |
tic_tac_toe | | 0 | 1 2 3 4 5 6 7 8 9
tic_tac_toe | 5 | 1 | 1 2 3 4 6 7 8 9
tic_tac_toe | 14253 | |
tic_tac_toe | 132649 | |
tic_tac_toe | 12354687 | 0 | 9
tic_tac_toe | 123546879 | |";

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

/// A game other than Even/Odd may have a move called "even": its moves stand in `moves`, in the order
/// in which they were made, and the manager accepts the report.
#[test]
fn move_called_even_is_a_move_like_any_other() {
    let game = Game {
        game_type: "lots",
        simultaneous: false,
        number_range: None,
        legal_moves: |moves| match moves.len() {
            4 => vec![],
            _ => vec!["even", "pass"],
        },
        winner: |players, moves, _| Win {
            seat: Some(moves[0].seat),
            reason: format!("{} began with {}", players[0], moves[0].text),
        },
        messages: MoveMessages::Move,
        ..even_odd::GAME
    };
    let moves = alternating(&["pass", "even", "even", "pass"]);
    let result = game.judge(&players(), &moves, None);
    let no_choices = json!({"P01": null, "P02": null});
    assert_eq!(json!(result.choices), no_choices);

    let details = match_result(&result, &usual()).details;
    let reported = games::moves_by_seat(&players(), &details.choices, &details.moves).unwrap();
    assert_eq!(reported, moves);
    assert_eq!(game.replay(&players(), &reported, None), Ok(result));
    let late = [Some("came late".to_string()), None];
    let forfeited = game.forfeit(&players(), &moves[..2], &late);
    assert_eq!(forfeited.moves.unwrap().len(), 2);
}

#[test]
fn simultaneous_game_of_two_rounds_asks_both_players_twice() {
    let game = Game {
        legal_moves: |moves| match moves.len() {
            4 => vec![],
            _ => vec!["even", "odd"],
        },
        number_range: None,
        ..even_odd::GAME
    };
    let asked = ["", "e", "eo", "eoe", "eoeo"].map(|text| game.players_to_move(&made(text)));
    assert_eq!(asked, [vec![0, 1], vec![1], vec![0, 1], vec![1], vec![]]);
}

#[test]
fn games_name_players_to_move_and_legal_moves() {
    for [name, text, asked, legal] in rows(TURNS) {
        let (game, moves) = (games::find(name).unwrap(), made(text));
        let seats: Vec<usize> = asked.split_whitespace().flat_map(str::parse).collect();
        assert_eq!(game.players_to_move(&moves), seats, "{name} after {text}");
        let legal_moves = (game.legal_moves)(&moves).join(" ");
        assert_eq!(legal_moves, legal, "{name} after {text}");
    }
    let position = (tic_tac_toe::GAME.position)(&made("159"));
    assert_eq!(position, "X 2 3\n4 O 6\n7 8 X");
    assert!(games::find("chess").is_none());
}

#[test]
fn illegal_moves_are_refused_with_the_legal_ones() {
    let (even_odd, board) = (&even_odd::GAME, &tic_tac_toe::GAME);
    assert_eq!(even_odd.parse_move(&[], &json!("odd")), Ok("odd"));
    assert_eq!(board.parse_move(&made("1"), &json!("9")), Ok("9"));
    let words = json!(["Even", "EVEN", "e", "maybe", 0, 1, false, true, null, "", " even", ["even"], {"even": 1}]);
    let squares = json!(["1", 2, "10", "b2", null]);
    let rows = [
        (even_odd, "", words, ["even", "odd"]),
        (board, "1425687", squares, ["3", "9"]),
    ];
    for (game, before, illegal, [one, other]) in rows {
        for illegal in list_of(&illegal) {
            let refusal = game.parse_move(&made(before), illegal).unwrap_err();
            let field = game.messages.field();
            let expected = format!("{field}: got {illegal}, must be {one:?} or {other:?}");
            assert_eq!(refusal.detail(), expected);
            assert_eq!(refusal.code, ErrorCode::InvalidChoice);
            assert_eq!(refusal.context["valid_choices"], json!([one, other]));
        }
    }
}

/// Returns the numbers from which Even/Odd draws.
fn numbers() -> RangeInclusive<u32> {
    even_odd::GAME.number_range.clone().unwrap()
}

/// A game, its moves and the drawn number, and the result or the reason why it is impossible.
const ENDS: &str = r#"
even_odd | eo 8 | WIN P01 [3, 0] P01 chose even, number was 8 (even)
even_odd | eo 7 | WIN P02 [0, 3] P02 chose odd, number was 7 (odd)
even_odd | oe 1 | WIN P01 [3, 0] P01 chose odd, number was 1 (odd)
even_odd | oe 10 | WIN P02 [0, 3] P02 chose even, number was 10 (even)
even_odd | oo 4 | DRAW nobody [1, 1] Both chose odd, number was 4 (even) - both incorrect
even_odd | ee 4 | DRAW nobody [1, 1] Both chose even, number was 4 (even) - both correct
even_odd | eo 0 | drawn_number: got 0, must be RANGE
even_odd | eo 1000 | drawn_number: got 1000, must be RANGE
even_odd | eo | drawn_number: got no number, must be RANGE
even_odd | e 4 | the game is not over: P02 is to move
even_odd | eoe 4 | move 3: it is not P01's turn
even_odd | ex 4 | move 2: parity_choice: got "x", must be "even" or "odd"
tic_tac_toe | 14253 | WIN P01 [3, 0] P01 has three in a row: 1, 2, 3
tic_tac_toe | 132649 | WIN P02 [0, 3] P02 has three in a row: 3, 6, 9
tic_tac_toe | 41526 | WIN P01 [3, 0] P01 has three in a row: 4, 5, 6
tic_tac_toe | 71829 | WIN P01 [3, 0] P01 has three in a row: 7, 8, 9
tic_tac_toe | 12437 | WIN P01 [3, 0] P01 has three in a row: 1, 4, 7
tic_tac_toe | 21538 | WIN P01 [3, 0] P01 has three in a row: 2, 5, 8
tic_tac_toe | 12539 | WIN P01 [3, 0] P01 has three in a row: 1, 5, 9
tic_tac_toe | 31527 | WIN P01 [3, 0] P01 has three in a row: 3, 5, 7
tic_tac_toe | 31629 | WIN P01 [3, 0] P01 has three in a row: 3, 6, 9
tic_tac_toe | 123546879 | DRAW nobody [1, 1] the board is full, and no player has three in a row
tic_tac_toe | 14253 4 | drawn_number: got 4, must be none
tic_tac_toe | 1425 | the game is not over: P01 is to move
tic_tac_toe | 142536 | move 6: it is not P02's turn
tic_tac_toe | 5-9 | move 2: it is not P01's turn
tic_tac_toe | 12341 | move 5: move: got "1", must be "5" or "6" or "7" or "8" or "9""#;

#[test]
fn moves_and_number_decide_a_match() {
    for [name, played, expected] in rows(ENDS) {
        let (text, number) = played.split_once(' ').unwrap_or((played, ""));
        let game = games::find(name).unwrap();
        let replayed = game.replay(&players(), &made(text), number.parse().ok());
        let actual = replayed.map_or_else(|refusal| refusal, |result| line(&result));
        let range = format!("1 to {}", numbers().end());
        assert_eq!(actual, expected.replace("RANGE", &range), "{name} {played}");
    }
    for (fails, expected) in [
        (
            [true, false],
            "P02 [-1, 3] P01 came late - P02 wins by default",
        ),
        (
            [false, true],
            "P01 [3, -1] P02 came late - P01 wins by default",
        ),
        (
            [true, true],
            "nobody [-1, -1] P01 came late; P02 came late - nobody wins",
        ),
    ] {
        let failures = fails.map(|fails| fails.then(|| "came late".to_string()));
        let result = even_odd::GAME.forfeit(&players(), &made("-o"), &failures);
        assert_eq!(line(&result), format!("TECHNICAL_LOSS {expected}"));
    }
}

#[test]
fn draws_are_uniform_and_repeatable() {
    let draw = |seed, id: &str| even_odd::GAME.draw(seed, id).unwrap();
    let count_of_numbers = f64::from(*numbers().end());
    let ids = (1..=100).flat_map(|round| (1..=100).map(move |n| format!("R{round}M{n}")));
    let ids: Vec<String> = ids.collect();
    let of_seed = |seed: u64| ids.iter().map(move |id| draw(Some(seed), id));
    let all = |seed| of_seed(seed).collect::<Vec<u32>>();
    let seeds = (0..10_000).map(|seed| draw(Some(seed), "R1M1"));
    let small_leagues = (0..1_666).flat_map(|seed| of_seed(seed).take(6));
    for (row, draws) in [
        ("one seed, all matches", all(7)),
        ("another seed", all(2025)),
        ("all seeds, one match", seeds.collect()),
        ("a small league each", small_leagues.collect()),
    ] {
        assert!(draws.iter().all(|n| numbers().contains(n)), "{row}");
        let expected = draws.len() as f64 / count_of_numbers;
        let deviation = |n: u32| {
            let count = draws.iter().filter(|drawn| **drawn == n).count();
            (count as f64 - expected).powi(2) / expected
        };
        let chi_square: f64 = numbers().map(deviation).sum();
        // The bound is near the 0.999 quantile (Wilson and Hilferty).
        let freedom = count_of_numbers - 1.0;
        let spread = 2.0 / (9.0 * freedom);
        let bound = freedom * (1.0 - spread + 3.1 * spread.sqrt()).powi(3);
        assert!(chi_square < bound, "{row}: {chi_square} is over {bound}");
    }
    assert_eq!(all(7), all(7), "the same in every run");
    assert_ne!(all(7), all(2025), "another seed, other numbers");
    let unseeded: BTreeSet<u32> = (0..1_000).map(|_| draw(None, "R1M1")).collect();
    let every_number = numbers().collect();
    assert_eq!(unseeded, every_number, "without a seed every number comes");
    assert_eq!(tic_tac_toe::GAME.draw(Some(7), "R1M1"), None);
}
