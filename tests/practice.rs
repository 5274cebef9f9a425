//! Practice: what many matches say about a strategy, and the leagues in which they are played.

mod support;

use league::extras::columns::width;
use league::extras::practice::seats;
use league::extras::statistics::{Sample, coin, median_and_worst, report};
use league::extras::strategies::{Past, Turn, named};
use league::games::{Scoring, forfeit, judge, score};
use league::manager::league::{League, Rules};
use league::protocol::{Kind, Parity};
use std::{fs, sync::Arc};
use support::*;

fn scoring(win_points: i32, draw_points: i32, loss_points: i32) -> Scoring {
    Scoring {
        win_points,
        draw_points,
        loss_points,
        technical_loss_points: loss_points,
        tiebreakers: vec![],
    }
}

#[test]
fn mean_standard_error_and_verdict_are_those_of_the_book() {
    let times = |parts: &[(i32, usize)]| {
        parts
            .iter()
            .flat_map(|(it, n)| vec![*it; *n])
            .collect::<Vec<i32>>()
    };
    let rows = [
        (times(&[]), 0.0, None, "too few"),
        (times(&[(3, 1)]), 3.0, None, "too few"),
        (times(&[(0, 1), (3, 1)]), 1.5, Some(1.5), "too few"),
        (
            times(&[(0, 1), (1, 2), (2, 1)]),
            1.0,
            Some((2.0f64 / 3.0 / 4.0).sqrt()),
            "too few",
        ),
        (
            times(&[(1, 20)]),
            1.0,
            Some(0.0),
            "worse than a coin, and not",
        ),
        (
            times(&[(0, 20), (3, 20)]),
            1.5,
            Some((90.0f64 / 39.0 / 40.0).sqrt()),
            "like a coin",
        ),
        (
            times(&[(0, 60), (3, 90)]),
            1.8,
            Some((324.0f64 / 149.0 / 150.0).sqrt()),
            "better than a coin, and not",
        ),
        (
            times(&[(0, 100), (3, 100)]),
            1.5,
            Some((450.0f64 / 199.0 / 200.0).sqrt()),
            "better than a coin, perhaps",
        ),
        (
            times(&[(0, 100), (1, 100), (3, 40)]),
            220.0 / 240.0,
            None,
            "worse than a coin, and not",
        ),
    ];
    for (points, mean, error, verdict) in rows {
        let sample = Sample::of(&points);
        assert_eq!(sample.count, points.len());
        assert!((sample.mean - mean).abs() < 1e-12, "{sample:?}");
        if let Some(error) = error {
            assert!(
                (sample.error.unwrap() - error).abs() < 1e-12,
                "{sample:?}, expected {error}"
            );
        }
        assert!(
            sample.verdict(1.25).starts_with(verdict),
            "{sample:?}: {}",
            sample.verdict(1.25)
        );
    }
    assert_eq!(
        [(3, 1, 0), (5, 1, 0), (4, 2, -2)].map(|(w, d, l)| coin(&scoring(w, d, l))),
        [1.25, 1.75, 1.5]
    );
    assert_eq!(
        [&[][..], &[7], &[9, 1], &[5, 1, 3]].map(|numbers| median_and_worst(numbers.to_vec())),
        [None, Some((7, 7)), Some((1, 9)), Some((3, 5))]
    );
}

/// What a strategy gets on average against somebody who always chooses `constant`, once it has met it ten times: each of
/// the ten numbers counts once, so nothing is left to luck.
fn expected(strategy: &str, constant: Parity) -> f64 {
    let mut turn = Turn {
        seed: Some(1),
        ..Turn::sample()
    };
    let (ids, mut points) = (["P01".to_string(), "P02".to_string()], Vec::new());
    let play = |turn: &Turn, number| {
        judge(
            ids.clone(),
            [named(strategy).unwrap()(turn), constant],
            number,
        )
    };
    turn.history = Arc::new(Vec::new());
    for n in 1..=10 {
        let (match_id, conversation_id, opponent_id) =
            (format!("R{n}M1"), String::new(), "P02".into());
        turn.match_id = match_id.clone();
        let result = play(&turn, n).for_players();
        Arc::make_mut(&mut turn.history).push(Past {
            match_id,
            conversation_id,
            opponent_id,
            result,
        });
    }
    for number in 1..=10 {
        let outcome = play(&turn, number);
        points.push(score(outcome.ending(), outcome.winner, &scoring(3, 1, 0))[0]);
    }
    Sample::of(&points).mean
}

#[test]
fn against_constant_opponents_the_expectation_is_exact() {
    for (strategy, against_even, against_odd) in [
        ("even", 1.0, 1.5),
        ("odd", 1.5, 1.0),
        ("contrary", 1.5, 1.5),
        ("frequency", 1.5, 1.5),
        ("pattern", 1.5, 1.5),
    ] {
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
    let mine = [
        vec!["ada".to_string()],
        vec!["python3".into(), "bin/player.py".into()],
        vec!["./ada".into()],
    ];
    let seats = seats(&mine, &["random", "even"], 6);
    let told = seats.iter().map(|seat| {
        (
            seat.name.as_deref().unwrap(),
            seat.is_beside,
            seat.command.join(" "),
        )
    });
    let rows = [
        ("ada", true, "ada"),
        ("player.py", false, "python3 bin/player.py"),
        ("ada 2", false, "./ada"),
    ];
    let examples = [
        ("random", true, "player --strategy random"),
        ("even", true, "player --strategy even"),
    ];
    let last = ("random 2", true, "player --strategy random");
    let expected = rows
        .into_iter()
        .chain(examples)
        .chain([last])
        .map(|(name, at, words)| (name, at, words.to_string()));
    assert_eq!(told.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// A league on paper of these players, in which every pair meets so often.
fn league(cycles: u32, players: &[String]) -> League {
    let mut league = League::new(Rules {
        cycles,
        ..paper::rules()
    });
    paper::enter(
        &mut league,
        &paper::meta(Kind::Referee, &paper::local(8001)),
        &paper::caller("referee:somebody"),
    );
    for (n, name) in (1..).zip(players) {
        let mut player = paper::meta(Kind::Player, &paper::local(8100 + n));
        player.display_name = name.clone();
        paper::enter(&mut league, &player, &paper::caller("player:somebody"));
    }
    let started = league.start(None).unwrap();
    paper::happen(&mut league, started);
    league
}

#[test]
fn the_report_has_aligned_columns_whatever_the_names() {
    let mut two = league(3, &["ada".into(), "日本の\u{7}プレーヤー".into()]);
    let silent = |id: &String| (id == "P02").then(|| "was silent".to_string());
    let choice = |id: &String| (id == "P01").then_some(Parity::Even);
    paper::play_round(&mut two, 1, |game| {
        forfeit(
            game.players.clone(),
            game.players.each_ref().map(choice),
            game.players.each_ref().map(silent),
        )
    });
    paper::play_round(&mut two, 2, |game| {
        judge(game.players.clone(), [Parity::Odd; 2], 4)
    });
    let differ = |id: &String| {
        if id == "P01" {
            Parity::Odd
        } else {
            Parity::Even
        }
    };
    paper::play_round(&mut two, 3, |game| {
        judge(game.players.clone(), game.players.each_ref().map(differ), 4)
    });
    let answers = [("P01", 2), ("P01", 40), ("P02", 7), ("P01", 3)]
        .map(|(id, elapsed)| (id.to_string(), elapsed));
    let expected = "
Id    Strategy           Matches  Points per match  (1.25 is what a coin gets)
P01   ada                      3     1.333 ± 0.882  too few matches to say
P02   日本の\u{fffd}プレーヤー        3     1.333 ± 0.882  too few matches to say

Id    Strategy           Points per match against
                            P01   P02
P01   ada                     -  1.33
P02   日本の\u{fffd}プレーヤー    1.33     -

Id    Strategy           Technical losses  Answers in ms: median  worst
P01   ada                               0                      3     40
P02   日本の\u{fffd}プレーヤー                 1                      7      7";
    assert_eq!(report(&two, &answers).join("\n"), expected);

    let names: Vec<String> = (1..=14)
        .map(|n| format!("{n} {}", "x".repeat(28)))
        .collect();
    let lines = report(&league(1, &names), &[]).join("\n");
    assert!(lines.lines().all(|line| width(line) <= 120), "{lines}");
    assert_eq!(lines.matches("Points per match against\n").count(), 2); // twelve opponents, and two
    assert!(
        lines.contains(&format!("P14   {}       -     -\n", names[13])),
        "{lines}"
    );
}

#[test]
fn practice_replaces_practice_and_nothing_else() {
    let world = World::new(&[]);
    let run = |arguments: &[&str]| {
        let mut league = world.start_unheard(
            "league_manager",
            &[&["local", "--players", "3"], arguments].concat(),
        );
        let code = league.wait().code();
        (code, league.output())
    };
    let mine = format!("{},player", env!("CARGO_BIN_EXE_player"));
    let refused = |arguments: &[&str], words: &str| {
        let mut league = world.start_unheard("league_manager", arguments);
        until("it says why", || {
            league.stderr.lock().unwrap().contains(words).then_some(())
        });
        assert_ne!(league.wait().code(), Some(0), "{arguments:?}");
    };
    let foreign = world.folder.join("data/practice/of_mine");
    fs::create_dir_all(&foreign).unwrap();
    refused(&["local", "--cycles", "1"], "not from a practice");
    assert!(foreign.exists());
    fs::remove_dir_all(foreign.parent().unwrap()).unwrap();

    assert_eq!(run(&[]).0, Some(0)); // a real league
    let real = fs::read(
        world
            .folder
            .join("data/leagues/league_2025_even_odd/journal.jsonl"),
    )
    .unwrap();
    for (arguments, matches, replaced) in
        [(["--mine", &mine], 3, false), (["--cycles", "4"], 12, true)]
    {
        let (code, output) = run(&arguments);
        assert_eq!(
            (code, output.contains("the last practice is replaced")),
            (Some(0), replaced),
            "{output}"
        );
        let answers = output
            .split("median  worst\nP01 ")
            .nth(1)
            .and_then(|rows| rows.lines().next())
            .unwrap();
        assert!(
            answers.ends_with(|last: char| last.is_ascii_digit()),
            "{output}"
        );
        assert!(output.contains(&format!("{matches} matches")), "{output}");
        assert_eq!(
            files(&world.folder.join("data/practice/matches")).len(),
            matches
        );
    }
    assert_eq!(
        fs::read(
            world
                .folder
                .join("data/leagues/league_2025_even_odd/journal.jsonl")
        )
        .unwrap(),
        real
    );
    let lock = fs::File::options()
        .write(true)
        .open(world.folder.join("data/practice.lock"))
        .unwrap();
    lock.lock().unwrap();
    refused(&["local", "--cycles", "1"], "another practice is running");
    assert_eq!(files(&world.folder.join("data/practice/matches")).len(), 12);
    drop(lock);
    for (arguments, why) in [
        (&["--mine", "ada"][..], "are for a local league"),
        (&["local", "--cycles", "0"], "expected 1 to 1000"),
        (&["local", "--cycles", "1001"], "expected 1 to 1000"),
        (
            &["local", "--players", "3", "--mine", "a,b", "--mine", "c,d"],
            "expected at least the 4 of --mine",
        ),
        (&["local", "--mine", "no-such-program"], "no-such-program"),
    ] {
        refused(arguments, why);
    }
    let mut alone = world.start_unheard(
        "league_manager",
        &["local", "--mine", "player,player,player,player"],
    );
    let (code, output) = (alone.wait().code(), alone.output());
    assert!(
        code == Some(0) && output.contains("practice: 5 players, 1 cycle, 10 matches"),
        "{code:?}: {output}"
    );
}
