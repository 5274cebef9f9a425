//! Practice: what many matches say about a strategy, and the leagues in which they are played.

mod support;

use league::game::{Scoring, judge, score};
use league::manager::practice::seats;
use league::manager::statistics::{Contestant, Sample, Score, coin, median_and_worst, report};
use league::player::strategies::{Past, Turn, named};
use league::protocol::Parity;
use std::{fs, sync::Arc};
use support::*;

fn scoring(win_points: i32, draw_points: i32, loss_points: i32) -> Scoring {
    Scoring { win_points, draw_points, loss_points, technical_loss_points: loss_points, tiebreakers: vec![] }
}

#[test]
fn mean_standard_error_and_verdict_are_those_of_the_book() {
    let times = |parts: &[(i32, usize)]| parts.iter().flat_map(|(it, n)| vec![*it; *n]).collect::<Vec<i32>>();
    let rows = [
        (times(&[]), 0.0, None, "too few"),
        (times(&[(3, 1)]), 3.0, None, "too few"),
        (times(&[(0, 1), (3, 1)]), 1.5, Some(1.5), "too few"),
        (times(&[(0, 1), (1, 2), (2, 1)]), 1.0, Some((2.0f64 / 3.0 / 4.0).sqrt()), "too few"),
        (times(&[(1, 20)]), 1.0, Some(0.0), "worse than a coin, and not"),
        (times(&[(0, 20), (3, 20)]), 1.5, Some((90.0f64 / 39.0 / 40.0).sqrt()), "like a coin"),
        (times(&[(0, 60), (3, 90)]), 1.8, Some((324.0f64 / 149.0 / 150.0).sqrt()), "better than a coin, and not"),
        (times(&[(0, 100), (3, 100)]), 1.5, Some((450.0f64 / 199.0 / 200.0).sqrt()), "better than a coin, perhaps"),
        (times(&[(0, 100), (1, 100), (3, 40)]), 220.0 / 240.0, None, "worse than a coin, and not"),
    ];
    for (points, mean, error, verdict) in rows {
        let sample = Sample::of(&points);
        assert_eq!(sample.count, points.len());
        assert!((sample.mean - mean).abs() < 1e-12, "{sample:?}");
        if let Some(error) = error {
            assert!((sample.error.unwrap() - error).abs() < 1e-12, "{sample:?}, expected {error}");
        }
        assert!(sample.verdict(1.25).starts_with(verdict), "{sample:?}: {}", sample.verdict(1.25));
    }
    assert_eq!([(3, 1, 0), (5, 1, 0), (4, 2, -2)].map(|(w, d, l)| coin(&scoring(w, d, l))), [1.25, 1.75, 1.5]);
    assert_eq!(
        [&[][..], &[7], &[9, 1], &[5, 1, 3]].map(median_and_worst),
        [None, Some((7, 7)), Some((1, 9)), Some((3, 5))]
    );
}

/// What a strategy gets on average against somebody who always chooses `constant`, once it has met it ten times: each of
/// the ten numbers counts once, so nothing is left to luck.
fn expected(strategy: &str, constant: Parity) -> f64 {
    let mut turn = Turn { seed: Some(1), ..Turn::sample() };
    let (ids, mut points) = (["P01".to_string(), "P02".to_string()], Vec::new());
    let play = |turn: &Turn, number| judge(ids.clone(), [named(strategy).unwrap()(turn), constant], number);
    turn.history = Arc::new(Vec::new());
    for n in 1..=10 {
        let (match_id, conversation_id, opponent_id) = (format!("R{n}M1"), String::new(), "P02".into());
        turn.match_id = match_id.clone();
        let result = play(&turn, n).for_players();
        Arc::make_mut(&mut turn.history).push(Past { match_id, conversation_id, opponent_id, result });
    }
    for number in 1..=10 {
        let outcome = play(&turn, number);
        points.push(score(outcome.ending(), outcome.winner, &scoring(3, 1, 0))[0]);
    }
    Sample::of(&points).mean
}

#[test]
fn against_constant_opponents_the_expectation_is_exact() {
    for (strategy, against_even, against_odd) in
        [("even", 1.0, 1.5), ("odd", 1.5, 1.0), ("contrary", 1.5, 1.5), ("frequency", 1.5, 1.5), ("pattern", 1.5, 1.5)]
    {
        assert_eq!(
            [Parity::Even, Parity::Odd].map(|it| expected(strategy, it)),
            [against_even, against_odd],
            "{strategy}"
        );
    }
    let coins = (expected("even", Parity::Even) + expected("odd", Parity::Even)) / 2.0; // a coin is either, as often
    assert_eq!(coins, coin(&scoring(3, 1, 0)));
}

#[test]
fn the_report_tells_players_apart_by_what_they_play() {
    let mine = [vec!["ada".to_string()], vec!["python3".into(), "bin/player.py".into()], vec!["./ada".into()]];
    let seats = seats(&mine, &["random", "even"], 6);
    let told = seats.iter().map(|seat| (seat.name.as_deref().unwrap(), seat.is_beside, seat.command.join(" ")));
    let rows = [("ada", true, "ada"), ("player.py", false, "python3 bin/player.py"), ("ada 2", false, "./ada")];
    let examples = [("random", true, "player --strategy random"), ("even", true, "player --strategy even")];
    let last = ("random 2", true, "player --strategy random");
    let expected =
        rows.into_iter().chain(examples).chain([last]).map(|(name, at, words)| (name, at, words.to_string()));
    assert_eq!(told.collect::<Vec<_>>(), expected.collect::<Vec<_>>());

    let contestant = |id: &str, strategy: &str, answers: &[u64]| Contestant {
        id: id.into(),
        strategy: strategy.into(),
        answers: answers.into(),
    };
    let contestants = [contestant("P01", "ada", &[2, 40, 3]), contestant("P02", "even", &[])];
    let of = |points, failed| Score { players: [0, 1], points, failed };
    let scores = [of([3, 0], [false, true]), of([1, 1], [false, false])];
    let lines = report(&contestants, &scores, &scoring(3, 1, 0)).join("\n");
    let expected = "
Id    Strategy  Matches  Points per match  (1.25 is what a coin gets)
P01   ada             2     2.000 ± 1.000  too few matches to say
P02   even            2     0.500 ± 0.500  too few matches to say

Id    Strategy  Points per match against
                   P01   P02
P01   ada            -  2.00
P02   even        0.50     -

Id    Strategy  Technical losses  Answers in ms: median  worst
P01   ada                      0                      3     40
P02   even                     1                      -      -";
    assert_eq!(lines, expected);
}

#[test]
fn practice_replaces_practice_and_nothing_else() {
    let world = World::new(&[]);
    let run = |arguments: &[&str]| {
        let mut league = world.start_unheard("league_manager", &[&["local", "--players", "3"], arguments].concat());
        let code = league.wait().code();
        (code, league.output(), league.stderr.lock().unwrap().clone())
    };
    let mine = format!("{},player", env!("CARGO_BIN_EXE_player"));
    let foreign = world.folder.join("data/practice/of_mine");
    fs::create_dir_all(&foreign).unwrap();
    let refused = run(&["--cycles", "1"]);
    assert_eq!((refused.0, refused.2.contains("not from a practice")), (Some(1), true), "{refused:?}");
    assert!(foreign.exists());
    fs::remove_dir_all(foreign.parent().unwrap()).unwrap();

    assert_eq!(run(&[]).0, Some(0)); // a real league
    let real = fs::read(world.folder.join("data/leagues/league_2025_even_odd/journal.jsonl")).unwrap();
    for (arguments, matches, replaced) in [(["--mine", &mine], 3, false), (["--cycles", "4"], 12, true)] {
        let (code, output, _) = run(&arguments);
        assert_eq!((code, output.contains("the last practice is replaced")), (Some(0), replaced), "{output}");
        assert!(output.contains(&format!("{matches} matches")) && output.contains("\nP01   "), "{output}");
        assert_eq!(files(&world.folder.join("data/practice/matches")).len(), matches);
    }
    assert_eq!(fs::read(world.folder.join("data/leagues/league_2025_even_odd/journal.jsonl")).unwrap(), real);
    for wrong in [&["--cycles", "0"][..], &["--cycles", "1001"], &["--mine", "a,b,c,d"], &["--mine", "no-such-program"]]
    {
        assert_ne!(run(wrong).0, Some(0), "{wrong:?}");
    }
}
