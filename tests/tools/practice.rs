//! Practice: the figures of a strategy over many matches, and the leagues in which they are played. Their
//! report is in scripts (`tests/scripts/season`).

use super::support::offline::{judge, scoring, usual};
use super::support::*;
use crate::compare::statistics::Sample;
use crate::players::strategies::{self, PastMatch, Turn};
use crate::running::check_names;
use crate::show::expected_points::{coin_points, pair_values};
use crate::show::screen::progress;
use crate::start::entrants;
use crate::start::local::name_players;
use league::games::points;
use league::json::decode;
use league::protocol::Parity;
use std::sync::Arc;

/// Returns the expected points of random choices in Even/Odd.
fn coin(win: i32, draw: i32, loss: i32) -> f64 {
    coin_points("even_odd", &scoring([win, draw, loss, loss])).unwrap()
}

#[test]
fn practice_golden() {
    story::run("practice");
}

/// Numbers of matches with the points of each, their mean, the square of its standard error, and the
/// grade.
const SAMPLES: &str = "
 | 0 | - | too few
1*3 | 3 | - | too few
1*0 1*3 | 1.5 | 4.5/2 | too few
1*0 2*1 1*2 | 1 | 2/3/4 | too few
20*1 | 1 | 0 | worse
20*0 20*3 | 1.5 | 90/39/40 | the same
60*0 90*3 | 1.8 | 324/149/150 | better
100*0 100*3 | 1.5 | 450/199/200 | better?
100*0 100*1 40*3 | 220/240 | - | worse";

#[test]
fn mean_standard_error_and_grade_are_correct() {
    for [parts, mean, square, grade] in rows(SAMPLES) {
        let number = |text: &str| text.parse::<f64>().unwrap();
        let points = parts.split_whitespace().flat_map(|part| {
            let (times, points) = part.split_once('*').unwrap();
            vec![number(points); times.parse().unwrap()]
        });
        let sample = Sample::of(points);
        let fraction = |text: &str| text.split('/').map(number).reduce(|one, by| one / by);
        let is_near = |came: f64, text| (came - fraction(text).unwrap()).abs() < 1e-12;
        assert!(is_near(sample.mean, mean), "{sample:?}");
        let is_exact = square == "-" || is_near(sample.error.powi(2), square);
        assert!(is_exact, "{sample:?}: {square}");
        assert_eq!(sample.grade(1.25), grade, "{sample:?}");
    }
    let coins = [(3, 1, 0), (5, 1, 0), (4, 2, -2)].map(|(w, d, l)| coin(w, d, l));
    assert_eq!(coins, [1.25, 1.75, 1.5]);
}

/// Returns the mean points of a strategy against an opponent that always chooses `constant`, after ten
/// matches against it. Each of the ten numbers counts once, so the mean is exact.
fn expected(strategy: &str, constant: Parity) -> f64 {
    let mut turn = Turn {
        seed: Some(1),
        ..Turn::sample()
    };
    let ids = ["P01".to_string(), "P02".to_string()];
    let play = |turn: &Turn, number| {
        let own = strategies::find("even_odd", strategy).unwrap()(turn);
        let own = decode::<Parity>(&own.into()).unwrap();
        judge(&ids, [own, constant], number)
    };
    turn.history = Arc::new(Vec::new());
    for n in 1..=10 {
        turn.match_id = format!("R{n}M1");
        let past = PastMatch {
            round_id: n,
            game_type: "even_odd".into(),
            match_id: turn.match_id.clone(),
            opponent_id: "P02".into(),
            result: play(&turn, n),
        };
        Arc::make_mut(&mut turn.history).push(past);
    }
    let points = (1..=10).map(|number| f64::from(points(&play(&turn, number), "P01", &usual())));
    Sample::of(points).mean
}

/// The mean points of strategies against even, and against odd.
const CONSTANT: &str = "
even | [1.0, 1.5]
odd | [1.5, 1.0]
contrary | [1.5, 1.5]
frequency | [1.5, 1.5]
pattern | [1.5, 1.5]";

#[test]
fn expectation_against_constant_opponents_is_exact() {
    for [strategy, against] in rows(CONSTANT) {
        let came = [Parity::Even, Parity::Odd].map(|choice| expected(strategy, choice));
        assert_eq!(format!("{came:?}"), against, "{strategy}");
    }
    let coins = (expected("even", Parity::Even) + expected("odd", Parity::Even)) / 2.0; // a coin is either, as often
    assert_eq!(coins, coin(3, 1, 0));
}

#[test]
fn report_of_a_practice_names_strategies() {
    let mine = ["ada", "python3 bin/player.py", "./ada"];
    let players = name_players(&mine, &["random", "even"], 6);
    let told = players
        .iter()
        .map(|player| format!("{}: {}", player.name, player.command));
    let expected = [
        "ada: ada",
        "player.py: python3 bin/player.py",
        "ada 2: ./ada",
        "random: random",
        "even: even",
        "random 2: random",
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn choices_are_worth_their_average_over_all_draws() {
    let worth = pair_values("even_odd", &usual());
    for (text, expected) in [
        ("even odd", 1.5),
        ("odd even", 1.5),
        ("even even", 1.0),
        ("odd odd", 1.0),
    ] {
        assert_eq!(worth[text], [expected; 2], "{text}");
    }
    assert!(pair_values("tic_tac_toe", &usual()).is_empty());
}

#[test]
fn progress_of_a_practice_names_the_cycle() {
    let mut league = offline::started(4, &[2]);
    league.config.league.scheduling.cycles = Some(3); // its three rounds count as a cycle each
    offline::play_round(&mut league, 1, offline::ends("wins"));
    assert_eq!(progress(&league).unwrap(), "cycle 2 of 3");
    for round in [2, 3] {
        offline::play_round(&mut league, round, offline::ends("wins"));
    }
    assert_eq!(progress(&league), None);
}

/// Commands, and the words into which they are split.
const COMMANDS: &str = r#"
python3 bin/eve.py | ["python3", "bin/eve.py"]
  py  bin\eve.py  | ["py", "bin\\eve.py"]
'C:\Program Files\eve.exe' --seed 7 | ["C:\\Program Files\\eve.exe", "--seed", "7"]
"/home/Ada L/o'brien.py" x | ["/home/Ada L/o'brien.py", "x"]
python3 o'brien's.py | ["python3", "o'brien's.py"]
'no end | ["no end"]
'' a | ["", "a"]"#;

#[test]
fn words_of_a_command_may_have_quotation_marks() {
    for [command, words] in rows(COMMANDS) {
        let came = format!("{:?}", entrants::words(command));
        assert_eq!(came, words, "{command}");
    }
    let list = entrants::commands("python3 'a, b.py' , o'brien,,c");
    assert_eq!(list, ["python3 'a, b.py'", "o'brien", "c"]);
    let entrant = entrants::Entrant::of("py 'my players/eve 2.py' -v");
    assert_eq!(entrant.name, "eve 2.py");
}

#[test]
fn league_on_an_ipv6_address_plays() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return; // this machine has none
    }
    let test = TestLeague::new("");
    let league = test.manager("local --host ::1 --players 2 --fresh");
    league.line("listening on http://[::1]:");
    league.line("Champion");
}

/// The entrants of a league in which ada and bob have registered, with commas between them; the
/// error.
const PLACES: &str = "
    ada, bob |
    ada, random | bob (P02) takes a place, but was not started here: end it, then type this again
    ada, http://192.0.2.1:8101/mcp |
    |";

#[test]
fn stray_player_takes_no_place_of_a_local_league() {
    let league = offline::told("ada=bob");
    for [names, expected] in rows(PLACES) {
        let commands: Vec<&str> = names.split(", ").filter(|name| !name.is_empty()).collect();
        let entrants = name_players(&commands, &[], commands.len());
        let problem =
            check_names(&league, &entrants).map_or_else(|exit| exit.message, |()| "".into());
        assert_eq!(problem, expected, "{names}");
    }
}
