//! The games: who is asked, what is legal, what is drawn, who wins, and how everybody is told. One row per rule.

#[path = "support/paper.rs"]
mod paper;

use league::games::{self, Game, Move, Outcome, even_odd, forfeit, judge, moves, tic_tac_toe};
use league::protocol::{Code, Ending, Parity};
use paper::usual;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn players() -> [String; 2] {
    ["P01".into(), "P02".into()]
}

/// Moves written as one digit or letter each: `15` or `eo`.
fn made(text: &str) -> Vec<Move> {
    let word = |letter| match letter {
        "e" => "even",
        "o" => "odd",
        other => other,
    };
    let texts: Vec<&str> = text.split_terminator("").skip(1).map(word).collect();
    moves(&texts)
}

#[test]
fn every_game_says_whom_it_asks_and_what_is_legal() {
    let (even_odd, board) = (&even_odd::GAME, &tic_tac_toe::GAME);
    let rows: [(&Game, Vec<Move>, &[usize], &str); 9] = [
        (even_odd, made(""), &[0, 1], "even odd"),
        (even_odd, made("e"), &[1], "even odd"),
        (even_odd, made("eo"), &[], ""),
        (board, made(""), &[0], "1 2 3 4 5 6 7 8 9"),
        (board, made("5"), &[1], "1 2 3 4 6 7 8 9"),
        (board, made("14253"), &[], ""),      // a row
        (board, made("132649"), &[], ""),     // O has a column
        (board, made("12354687"), &[0], "9"), // the last field
        (board, made("123546879"), &[], ""),  // the board is full
    ];
    for (game, moves, asked, legal) in rows {
        let row = format!("{} after {moves:?}", game.game_type);
        assert_eq!(game.asked(&moves), asked, "{row}");
        assert_eq!((game.legal)(&moves).join(" "), legal, "{row}");
    }
    assert_eq!((board.position)(&made("159")), "X 2 3\n4 O 6\n7 8 X");
    for game in games::GAMES {
        assert_eq!(
            games::named(game.game_type).unwrap().game_type,
            game.game_type
        );
    }
    assert!(games::named("chess").is_none());
}

#[test]
fn only_a_legal_move_is_one_and_the_others_learn_what_is() {
    assert_eq!(even_odd::GAME.check(&[], &json!("odd")), Ok("odd"));
    assert_eq!(tic_tac_toe::GAME.check(&made("1"), &json!("9")), Ok("9"));
    let illegal = json!(["Even", "EVEN", "e", "maybe", 0, 1, false, true, null, "", " even", ["even"], {"even": 1}]);
    for came in illegal.as_array().unwrap() {
        let refusal = even_odd::GAME.check(&[], came).unwrap_err();
        let told = format!("parity_choice: got {came}, must be \"even\" or \"odd\"");
        assert_eq!((refusal.code, refusal.explain()), (Code::E004, told));
        assert_eq!(refusal.context["valid_choices"], json!(["even", "odd"]));
    }
    for came in [json!("1"), json!(2), json!("10"), json!("b2"), Value::Null] {
        let refusal = tic_tac_toe::GAME
            .check(&made("1425687"), &came)
            .unwrap_err();
        let told = format!("move: got {came}, must be \"3\" or \"9\"");
        assert_eq!((refusal.code, refusal.explain()), (Code::E004, told));
    }
}

#[test]
fn whose_choice_is_the_numbers_parity_wins() {
    use Parity::{Even, Odd};
    let rows = [
        (
            Even,
            Odd,
            8,
            Some(0),
            "P01 chose even, number was 8 (even)",
            [3, 0],
        ),
        (
            Even,
            Odd,
            7,
            Some(1),
            "P02 chose odd, number was 7 (odd)",
            [0, 3],
        ),
        (
            Odd,
            Even,
            1,
            Some(0),
            "P01 chose odd, number was 1 (odd)",
            [3, 0],
        ),
        (
            Odd,
            Even,
            10,
            Some(1),
            "P02 chose even, number was 10 (even)",
            [0, 3],
        ),
        (
            Odd,
            Odd,
            4,
            None,
            "Both chose odd, number was 4 (even) - both incorrect",
            [1, 1],
        ),
        (
            Even,
            Even,
            4,
            None,
            "Both chose even, number was 4 (even) - both correct",
            [1, 1],
        ),
    ];
    for (a, b, number, winner, reason, points) in rows {
        let outcome = judge(players(), [a, b], number);
        let ending = if winner.is_some() {
            Ending::Win
        } else {
            Ending::Draw
        };
        assert_eq!(
            (outcome.ending, outcome.winner, &*outcome.reason),
            (ending, winner, reason)
        );
        let parity = if number % 2 == 0 { Even } else { Odd };
        check_told(
            &outcome,
            json!([number, parity]),
            json!([a, b]),
            Value::Null,
            points,
        );
    }
}

#[test]
fn three_in_a_row_win_and_a_full_board_is_a_draw() {
    let full = "the board is full, and nobody has three in a row";
    let rows = [
        ("14253", Some(0), "P01 has three in a row: 1, 2, 3", [3, 0]),
        ("15243687", Some(0), "", [3, 0]),
        ("132649", Some(1), "P02 has three in a row: 3, 6, 9", [0, 3]),
        ("123546879", None, full, [1, 1]),
        ("31629", Some(0), "P01 has three in a row: 3, 6, 9", [3, 0]),
    ];
    for (text, winner, reason, points) in rows {
        let Ok(outcome) = tic_tac_toe::GAME.replay(players(), made(text), None) else {
            assert_eq!(reason, "", "{text} can be played");
            continue;
        };
        assert_eq!(
            (outcome.winner, &*outcome.reason),
            (winner, reason),
            "{text}"
        );
        let told: Vec<Value> = (outcome.moves.iter())
            .map(|it| json!({"player_id": players()[it.seat], "move": it.text}))
            .collect();
        check_told(
            &outcome,
            json!([null, null]),
            json!([null, null]),
            json!(told),
            points,
        );
    }
}

#[test]
fn whoever_fails_loses_technically() {
    let (late, no) = (Some("came late".to_string()), None);
    let rows = [
        (
            [late.clone(), no.clone()],
            Some(1),
            "P01 came late - P02 wins by default",
            [0, 3],
        ),
        (
            [no, late.clone()],
            Some(0),
            "P02 came late - P01 wins by default",
            [3, 0],
        ),
        (
            [late.clone(), late],
            None,
            "P01 came late; P02 came late - nobody wins",
            [0, 0],
        ),
    ];
    for (failures, winner, reason, points) in rows {
        let chosen = Move {
            seat: 1,
            text: "odd".into(),
        };
        let outcome = forfeit(players(), vec![chosen], failures);
        assert_eq!((outcome.winner, &*outcome.reason), (winner, reason));
        assert_eq!(outcome.ending, Ending::TechnicalLoss, "{reason}");
        check_told(
            &outcome,
            json!([null, null]),
            json!([null, "odd"]),
            Value::Null,
            points,
        );
    }
}

/// What players and manager are told of an outcome.
fn check_told(outcome: &Outcome, number: Value, choices: Value, moves: Value, points: [i32; 2]) {
    let winner = outcome.winner.map(|seat| &outcome.players[seat]);
    let choices = json!({"P01": choices[0], "P02": choices[1]});
    let mut told = json!({
        "status": outcome.ending, "winner_player_id": winner, "drawn_number": number[0], "number_parity": number[1],
        "choices": choices, "reason": outcome.reason,
    });
    let mut details = json!({
        "drawn_number": number[0], "choices": choices, "status": outcome.ending, "reason": outcome.reason,
    });
    if !moves.is_null() {
        told["moves"] = moves.clone();
        details["moves"] = moves;
    }
    let score = json!({"P01": points[0], "P02": points[1]});
    let report = json!({"winner": winner, "score": score, "details": details});
    assert_eq!(json!(outcome.for_players()), told);
    assert_eq!(json!(outcome.for_manager(&usual())), report);
}

#[test]
fn moves_that_cannot_have_been_made_are_refused() {
    let rows: [(&Game, &str, Option<u32>, &str); 10] = [
        (&even_odd::GAME, "eo", Some(4), ""),
        (&even_odd::GAME, "eo", Some(11), "got 11, must be 1 to 10"),
        (&even_odd::GAME, "eo", None, "got no number"),
        (&even_odd::GAME, "e", Some(4), "not over: P02"),
        (&even_odd::GAME, "eoe", Some(4), "not P01's turn"),
        (
            &even_odd::GAME,
            "ex",
            Some(4),
            "move 2: parity_choice: got \"x\"",
        ),
        (&tic_tac_toe::GAME, "14253", Some(4), "nothing is drawn"),
        (&tic_tac_toe::GAME, "1425", None, "not over: P01"),
        (&tic_tac_toe::GAME, "142536", None, "not P02's turn"),
        (&tic_tac_toe::GAME, "11", None, "move 2: move: got \"1\""),
    ];
    for (game, text, number, problem) in rows {
        let told = game.replay(players(), made(text), number);
        match told {
            Ok(outcome) => assert_eq!((problem, outcome.winner), ("", Some(0)), "{text}"),
            Err(why) => assert!(
                !problem.is_empty() && why.contains(problem),
                "{text}: {why}"
            ),
        }
    }
    let twice = vec![made("5")[0].clone(), made("9")[0].clone()];
    let told = tic_tac_toe::GAME.replay(players(), twice, None);
    assert!(told.unwrap_err().contains("not P01's turn"));
    let mut details = judge(players(), [Parity::Even, Parity::Odd], 8)
        .for_manager(&usual())
        .details;
    assert_eq!(
        games::reported(&players(), &details.choices, &details.moves).unwrap(),
        made("eo")
    );
    details.choices.insert("P99".into(), Some(Parity::Odd));
    assert!(
        games::reported(&players(), &details.choices, &details.moves)
            .unwrap_err()
            .contains("P99")
    );
}

/// What a perfect player makes of a position, for whoever moves: 1 a win, 0 a draw, -1 a loss.
fn worth(moves: &mut Vec<Move>) -> i32 {
    let game = &tic_tac_toe::GAME;
    let [seat] = game.asked(moves)[..] else {
        let outcome = game.judge(players(), moves.clone(), None);
        return if outcome.winner.is_some() { -1 } else { 0 };
    };
    let mut best = -1;
    for text in (game.legal)(moves) {
        moves.push(Move {
            seat,
            text: text.into(),
        });
        best = best.max(-worth(moves));
        moves.pop();
    }
    best
}

#[test]
fn perfect_play_of_tic_tac_toe_is_a_draw() {
    let rows = [
        ("1", 0),
        ("2", 0),
        ("5", 0),
        ("12", 1),
        ("1524", 1),
        ("13524", -1),
    ];
    for (text, expected) in rows {
        assert_eq!(worth(&mut made(text)), expected, "{text}");
    }
}

#[test]
fn choices_are_worth_what_the_draw_makes_of_them_on_average() {
    for (text, expected) in [("eo", 1.5), ("oe", 1.5), ("ee", 1.0), ("oo", 1.0)] {
        let worth = even_odd::GAME.expected(&made(text), &usual());
        assert_eq!(worth, Some([expected; 2]), "{text}");
    }
    assert_eq!(tic_tac_toe::GAME.expected(&made("14253"), &usual()), None);
}

#[test]
fn draws_are_uniform_and_follow_from_seed_and_match_alone() {
    let draw = |seed, id: &str| even_odd::GAME.draw(seed, id).unwrap();
    let matches: Vec<String> = (1..=100)
        .flat_map(|r| (1..=100).map(move |m| format!("R{r}M{m}")))
        .collect();
    let fixed = |seed: u64| matches.iter().map(move |id| draw(Some(seed), id));
    let rows: [(&str, Vec<u32>); 4] = [
        ("one seed, all matches", fixed(7).collect()),
        ("another seed", fixed(2025).collect()),
        (
            "all seeds, one match",
            (0..10_000).map(|seed| draw(Some(seed), "R1M1")).collect(),
        ),
        (
            "a small league each",
            (0..1_666).flat_map(|seed| fixed(seed).take(6)).collect(),
        ),
    ];
    for (row, draws) in &rows {
        let count = |n: u32| draws.iter().filter(|drawn| **drawn == n).count() as f64;
        let expected = draws.len() as f64 / 10.0;
        let chi_square: f64 = (1..=10)
            .map(|n| (count(n) - expected).powi(2) / expected)
            .sum();
        assert!(draws.iter().all(|n| (1..=10).contains(n)), "{row}");
        let bound = "is too much for nine degrees of freedom (p < 0.001)";
        assert!(chi_square < 27.9, "{row}: {chi_square} {bound}");
    }
    assert_eq!(
        fixed(7).collect::<Vec<_>>(),
        rows[0].1,
        "the same in every run"
    );
    assert_ne!(rows[0].1, rows[1].1, "another seed, other numbers");
    let unseeded: BTreeSet<u32> = (0..1_000).map(|_| draw(None, "R1M1")).collect();
    assert_eq!(
        unseeded,
        (1..=10).collect(),
        "without a seed every number comes"
    );
    assert_eq!(tic_tac_toe::GAME.draw(Some(7), "R1M1"), None);
}
