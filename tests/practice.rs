//! Practice: what many matches say about a strategy, and the leagues in which they are played.

mod support;

use league::extras::columns::width;
use league::extras::manager_screen::first_losses;
use league::extras::practice::seats;
use league::extras::statistics::{Measure, Sample, report};
use league::extras::strategies::{Past, Turn, named};
use league::extras::worth;
use league::games::{Move, even_odd, forfeit, judge};
use league::manager::board::Contact;
use league::manager::document::{LeagueView, MatchView, agent_view, match_view};
use league::manager::league::{League, Match, Rules};
use league::protocol::{Kind, Parity};
use league::wire::Wire;
use serde_json::json;
use std::{fs, path::Path, sync::Arc};
use support::paper::{scoring, usual};
use support::*;

const COIN: Measure = Measure {
    points: 1.25,
    name: "a coin",
};

/// What a coin gets in Even/Odd.
fn coin(win: i32, draw: i32, loss: i32) -> f64 {
    worth::coin(&even_odd::GAME, &scoring([win, draw, loss, loss])).unwrap()
}

#[test]
fn mean_standard_error_and_verdict_are_those_of_the_book() {
    // So many matches with so many points each: their mean, the square of its standard error, and the verdict.
    type Row = (&'static [(i32, usize)], f64, Option<f64>, &'static str);
    let rows: [Row; 9] = [
        (&[], 0.0, None, "too few"),
        (&[(3, 1)], 3.0, None, "too few"),
        (&[(0, 1), (3, 1)], 1.5, Some(4.5 / 2.0), "too few"),
        (
            &[(0, 1), (1, 2), (2, 1)],
            1.0,
            Some(2.0 / 3.0 / 4.0),
            "too few",
        ),
        (&[(1, 20)], 1.0, Some(0.0), "worse than a coin, and not"),
        (
            &[(0, 20), (3, 20)],
            1.5,
            Some(90.0 / 39.0 / 40.0),
            "like a coin",
        ),
        (
            &[(0, 60), (3, 90)],
            1.8,
            Some(324.0 / 149.0 / 150.0),
            "better than a coin, and not",
        ),
        (
            &[(0, 100), (3, 100)],
            1.5,
            Some(450.0 / 199.0 / 200.0),
            "better than a coin, perhaps",
        ),
        (
            &[(0, 100), (1, 100), (3, 40)],
            220.0 / 240.0,
            None,
            "worse than a coin, and not",
        ),
    ];
    for (parts, mean, square, verdict) in rows {
        let points = parts
            .iter()
            .flat_map(|(points, times)| vec![f64::from(*points); *times]);
        let sample = Sample::of(points);
        assert!((sample.mean - mean).abs() < 1e-12, "{sample:?}");
        if let Some(square) = square {
            let off = sample.error - f64::sqrt(square);
            assert!(off.abs() < 1e-12, "{sample:?}: {square}");
        }
        let came = sample.verdict(COIN);
        assert!(came.starts_with(verdict), "{sample:?}: {came}");
    }
    let coins = [(3, 1, 0), (5, 1, 0), (4, 2, -2)].map(|(w, d, l)| coin(w, d, l));
    assert_eq!(coins, [1.25, 1.75, 1.5]);
}

/// What a strategy gets on average against somebody who always chooses `constant`, once it has met it ten times: each of
/// the ten numbers counts once, so nothing is left to luck.
fn expected(strategy: &str, constant: Parity) -> f64 {
    let mut turn = Turn {
        seed: Some(1),
        ..Turn::sample()
    };
    let ids = ["P01".to_string(), "P02".to_string()];
    let play = |turn: &Turn, number| {
        let own = named("even_odd", strategy).unwrap()(turn);
        let own = Parity::read(&own.into()).unwrap();
        judge(ids.clone(), [own, constant], number)
    };
    turn.history = Arc::new(Vec::new());
    for n in 1..=10 {
        turn.match_id = format!("R{n}M1");
        let past = Past {
            match_id: turn.match_id.clone(),
            conversation_id: String::new(),
            opponent_id: "P02".into(),
            result: play(&turn, n).for_players(),
        };
        Arc::make_mut(&mut turn.history).push(past);
    }
    let points = (1..=10).map(|number| f64::from(play(&turn, number).score(&usual())[0]));
    Sample::of(points).mean
}

#[test]
fn against_constant_opponents_the_expectation_is_exact() {
    let rows = [
        ("even", 1.0, 1.5),
        ("odd", 1.5, 1.0),
        ("contrary", 1.5, 1.5),
        ("frequency", 1.5, 1.5),
        ("pattern", 1.5, 1.5),
    ];
    for (strategy, against_even, against_odd) in rows {
        let came = [Parity::Even, Parity::Odd].map(|it| expected(strategy, it));
        assert_eq!(came, [against_even, against_odd], "{strategy}");
    }
    let coins = (expected("even", Parity::Even) + expected("odd", Parity::Even)) / 2.0; // a coin is either, as often
    assert_eq!(coins, coin(3, 1, 0));
}

#[test]
fn the_report_tells_players_apart_by_what_they_play() {
    let mine = ["ada", "python3 bin/player.py", "./ada"];
    let seats = seats(&mine, &["random", "even"], 6);
    let told = seats.iter().map(|seat| {
        let name = seat.name.as_deref().unwrap();
        format!("{name}: {}", seat.command.join(" "))
    });
    let expected = [
        "ada: ada",
        "player.py: python3 bin/player.py",
        "ada 2: ./ada",
        "random: player --strategy random",
        "even: player --strategy even",
        "random 2: player --strategy random",
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

/// A league on paper of these players, in which every pair meets so often.
fn league(cycles: u32, players: &[String]) -> League {
    let mut league = League::new(Rules {
        cycles,
        ..paper::rules()
    });
    let referee = paper::meta(Kind::Referee, &paper::local(8001));
    paper::enter(&mut league, &referee, &paper::caller("referee:somebody"));
    for (n, name) in (1..).zip(players) {
        let mut player = paper::meta(Kind::Player, &paper::local(8100 + n));
        player.display_name = name.clone();
        paper::enter(&mut league, &player, &paper::caller("player:somebody"));
    }
    let started = league.start(None, league.pairings());
    paper::happen(&mut league, started);
    league
}

/// What the report of a practice is made of: the document of a league on paper.
fn document(league: &League) -> LeagueView {
    let members = [Kind::Referee, Kind::Player].map(|kind| league.members(kind));
    let agents = members.into_iter().flatten();
    let agents = agents.map(|member| agent_view(league, member, Contact::default()));
    let round = |round_id, games: &[Match]| {
        let matches: Vec<MatchView> = games.iter().map(match_view).collect();
        json!({"round_id": round_id, "matches": matches})
    };
    let heading = json!({
        "display_name": "", "game": "", "game_type": paper::GAME, "register_at": "",
        "scoring": league.rules.scoring, "local": true,
    });
    let view = json!({
        "schema_version": "", "league_id": "", "league": heading, "status": "running", "paused": false,
        "current_round": 1, "total_rounds": 1, "matches_completed": 1, "total_matches": 1,
        "agents": agents.collect::<Vec<_>>(), "standings": [], "rounds": league.by_round(round),
    });
    LeagueView::read(&view).unwrap()
}

#[test]
fn the_report_has_aligned_columns_whatever_the_names() {
    let mut two = league(3, &["ada".into(), "日本の\u{7}プレーヤー".into()]);
    let late = |id: &String| (id == "P02").then(|| "was silent".to_string());
    paper::play_round(&mut two, 1, |game| {
        let failures = game.players.each_ref().map(late);
        let seat = game.seat("P01").unwrap();
        let made = Move {
            seat,
            text: "even".into(),
        };
        forfeit(game.players.clone(), vec![made], failures)
    });
    paper::play_round(&mut two, 2, |game| {
        judge(game.players.clone(), [Parity::Odd; 2], 4)
    });
    let choice = |id: &String| [Parity::Even, Parity::Odd][usize::from(id == "P01")];
    paper::play_round(&mut two, 3, |game| {
        let choices = game.players.each_ref().map(choice);
        judge(game.players.clone(), choices, 4)
    });
    let expected = "
Id    Strategy           Matches  Points per match   Expected points  (1.25 is what a coin gets)
P01   ada                      3     1.333 ± 0.882     1.250 ± 0.250  too few matches to say
P02   日本の\u{fffd}プレーヤー        3     1.333 ± 0.882     1.250 ± 0.250  too few matches to say; 1 lost technically

Id    Strategy           Expected points per match against
                            P01   P02
P01   ada                     -  1.25
P02   日本の\u{fffd}プレーヤー    1.25     -";
    assert_eq!(report(&document(&two)).join("\n"), expected);

    // Whoever fails in every match has no expected points, however many matches there were.
    let mut failed = league(12, &["ada".into(), "bob".into()]);
    for round in 1..=failed.rounds() {
        paper::play_round(&mut failed, round, |game| {
            let failures = game.players.each_ref().map(late);
            forfeit(game.players.clone(), vec![], failures)
        });
    }
    let lines = report(&document(&failed)).join("\n");
    let row = "P02   bob            12     0.000 ± 0.000         -          no number was drawn in its matches; 12 lost technically\n";
    assert!(lines.contains(row), "{lines}");
    let first = [
        "\nThe first technical loss of each:",
        "  R1M1    ada won, bob lost technically: was silent (make trace MATCH=R1M1 LOGS=a/logs)",
    ];
    assert_eq!(first_losses(&failed, Path::new("a/logs")), first);
    assert!(first_losses(&league(1, &["ada".into(), "bob".into()]), Path::new("logs")).is_empty());

    let name = |n: u32| format!("{n} {}", "x".repeat(28));
    let names: Vec<String> = (1..=14).map(name).collect();
    let lines = report(&document(&league(1, &names))).join("\n");
    assert!(lines.lines().all(|line| width(line) <= 120), "{lines}");
    assert_eq!(
        lines.matches("Expected points per match against\n").count(),
        2
    ); // twelve opponents, and two
    let last = format!("P14   {}       -     -", names[13]);
    assert!(lines.ends_with(&last), "{lines}");
}

#[test]
fn practice_replaces_practice_and_nothing_else() {
    let world = World::new(&[]);
    let run = |arguments: &[&str]| {
        let arguments = [&["local"], arguments].concat();
        let mut league = world.start_unheard("league_manager", &arguments);
        let code = league.wait().code();
        (code, league.output())
    };
    let refused = |arguments: &[&str], words: &str| {
        let mut league = world.start_unheard("league_manager", arguments);
        league.complains(words);
        assert_ne!(league.wait().code(), Some(0), "{arguments:?}");
    };
    let practiced = || files(&world.folder.join("data/practice/matches")).len();
    let mine = format!("{},player", env!("CARGO_BIN_EXE_player"));
    let foreign = world.folder.join("data/practice/of_mine");
    fs::create_dir_all(&foreign).unwrap();
    refused(&["local", "--cycles", "1"], "not from a practice");
    assert!(foreign.exists());
    fs::remove_dir_all(foreign.parent().unwrap()).unwrap();

    assert_eq!(run(&["--players", "3"]).0, Some(0)); // a real league
    let real = fs::read(world.league_file("journal.jsonl")).unwrap();
    for (arguments, matches) in [(["--mine", &mine], 3), (["--cycles", "4"], 12)] {
        let (code, output) = run(&[&["--players", "3"], &arguments[..]].concat());
        let is_second = output.contains("the last practice is replaced");
        assert_eq!((code, is_second), (Some(0), matches == 12), "{output}");
        let is_told = output.contains("Expected points per match against");
        assert!(
            is_told && output.contains(&format!("{matches} matches")),
            "{output}"
        );
        assert_eq!(practiced(), matches);
    }
    assert!(fs::read(world.league_file("journal.jsonl")).unwrap() == real);
    let lock = world.folder.join("data/practice.lock");
    let lock = fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    refused(&["local", "--cycles", "1"], "another practice is running");
    assert_eq!(practiced(), 12);
    drop(lock);
    let rows = "
        --mine ada                               : is for a local league
        local --cycles 0                         : expected 1 to 1000
        local --cycles 1001                      : expected 1 to 1000
        local --players 3 --mine a,b --mine c,d  : expected at least the 4 of --mine
        local --mine no-such-program             : no-such-program";
    for row in rows.lines().skip(1) {
        let (arguments, why) = row.split_once(" : ").unwrap();
        refused(&arguments.split_whitespace().collect::<Vec<_>>(), why);
    }
    let (code, output) = run(&["--mine", "player,player,player,player"]);
    let is_larger = output.contains("practice: 5 players, 1 cycle, 10 matches");
    assert!(code == Some(0) && is_larger, "{code:?}: {output}");
}
