//! Practice: the figures of a strategy over many matches, and the leagues in which they are played.

use super::support::offline::{judge, scoring, usual};
use super::support::*;
use crate::compare::statistics::{Sample, completeness, report};
use crate::players::strategies::{self, PastMatch, Turn};
use crate::running::check_names;
use crate::show::expected_points::{coin_points, pair_values};
use crate::show::screen::{first_losses, progress};
use crate::start::entrants;
use crate::start::local::name_players;
use league::games::points;
use league::json::decode;
use league::manager::league::League;
use league::protocol::Parity;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Returns the expected points of random choices in Even/Odd.
fn coin(win: i32, draw: i32, loss: i32) -> f64 {
    coin_points("even_odd", &scoring([win, draw, loss, loss])).unwrap()
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

/// Returns the report of a practice in memory.
fn reported(league: &League) -> String {
    report(&super::season::document(league, true), &[])
}

#[test]
fn report_has_aligned_columns() {
    let two = "A!B | A=B | B>A".replace('A', "ada");
    let two = offline::told(&two.replace('B', "日本の\u{7}プレーヤー"));
    let expected = "
 Id  Player             Matches  Expected points
P01  ada                      3    1.250 ± 0.250  too few
P02  日本の\u{fffd}プレーヤー        3    0.833 ± 0.441  too few

compared with a coin, which gets 1.25
";
    check_contains(&reported(&two), expected);

    // A technical loss counts 0; to win by one shows nothing.
    let failed = offline::told(&["ada!bob"; 12].join(" | "));
    let lines = reported(&failed);
    check_contains(&lines, "P01  ada          12                -  too few");
    check_contains(&lines, "P02  bob          12    0.000 ± 0.000  worse");
    assert!(lines.lines().all(|line| line.chars().count() <= 80));
    let first = [
        "\nThe first technical loss of each:",
        "  R1M1    bob came late, so ada won\n    (make trace MATCH=R1M1 LOGS=a/logs)",
    ];
    assert_eq!(first_losses(&failed, Path::new("a/logs")), first);
    assert!(first_losses(&offline::told("ada?bob"), Path::new("logs")).is_empty());

    let mixed = offline::told("ada=bob | ada!bob | ada=bob | bob!ada");
    let view = super::season::document(&mixed, true);
    let expected = "2 of 4 matches were played to their end";
    assert_eq!(completeness(&view), expected);
}

#[test]
fn own_player_is_compared_by_its_rivals_and_not_with_them() {
    // The rivals choose differently in their own matches, which is worth 1.5 to both.
    let league = offline::told(&["ada=bob cy>dan", "ada>cy bob>dan", "ada=dan bob>cy"].join(" | "));
    let view = super::season::document(&league, true);
    let lines = report(&view, &["ada".into()]);
    let rows = lines.lines().skip(2).take(4);
    let rows: Vec<Vec<&str>> = rows
        .map(|row| row.split_whitespace().take(4).collect())
        .collect();
    let expected = [
        ["P01", "ada", "3", "1.167"],
        ["against", "bob", "1", "1.000"],
        ["against", "cy", "1", "1.500"],
        ["against", "dan", "1", "1.000"],
    ];
    assert_eq!(rows, expected, "{lines}");
}

/// Arguments that are refused, and the reason.
const REFUSED: &str = "
serve --mine ada | league serve --help lists all
local --cycles 0 | expected 1 to 400
local --cycles 401 | expected 1 to 400 (make: CYCLES=20)
local --players 3 --mine a,b --mine c,d | expected at least 4
local --mine no-such-program | no-such-program
local --mine `player --version` | before it registered, so the league does not begin
local --mine `sh -c kill${IFS}-9${IFS}$$` | before it registered, so the league does not begin";

#[test]
fn practice_replaces_only_the_last_practice() {
    let test = TestLeague::new("");
    let refused = |arguments: &str, words: &str| {
        let mut league = test.spawn("league_manager", arguments);
        league.wait_for_error(words);
        assert_ne!(league.wait().code(), Some(0), "{arguments}");
    };
    let practiced = || files(&test.folder.join("data/practice/matches")).len();
    let foreign = test.folder.join("data/practice/of_mine");
    fs::create_dir_all(&foreign).unwrap();
    refused("local --cycles 1", "not from a practice");
    assert!(foreign.exists());
    fs::remove_dir_all(foreign.parent().unwrap()).unwrap();

    // A real league, which is the same with the same seed.
    let champion = |output: String| output.split_once("\nChampion").unwrap().1[..30].to_string();
    let first = champion(test.local("--players 8 --seed 7"));
    assert_eq!(champion(test.local("--players 8 --seed 7")), first);
    let real = fs::read(test.league_file("journal.jsonl")).unwrap();
    let mine = format!("{},player", executable("player").display());
    for (option, value, matches) in [("--mine", &*mine, 3), ("--cycles", "4", 12)] {
        // As a deletion that fails half way leaves it.
        let _ = fs::remove_dir_all(test.folder.join("data/practice/agents"));
        let output = test.local(&format!("--players 3 {option} {value}"));
        let is_second = output.contains("the last practice is replaced");
        assert_eq!(is_second, matches == 12, "{output}");
        check_contains(&output, "a coin, which gets 1.25");
        assert_eq!(practiced(), matches);
    }
    assert!(fs::read(test.league_file("journal.jsonl")).unwrap() == real);
    let lock = test.folder.join("data/agents/practice.lock");
    let lock = fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    refused("local --cycles 1", "another program is running on it");
    assert_eq!(practiced(), 12);
    drop(lock);
    for [arguments, why] in rows(REFUSED) {
        if cfg!(windows) && arguments.contains("`sh ") {
            continue; // it is a program of Unix
        }
        refused(arguments, why);
    }
    test.local("--mine player,player,player,player");
    assert_eq!(practiced(), 10, "four players and a rival");
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
fn league_is_played_in_an_empty_folder() {
    let test = TestLeague::new("");
    let folder = test.folder.join("empty");
    fs::create_dir(&folder).unwrap();
    let run = |program: &str, arguments: &str| {
        let mut command = Command::new(executable(program));
        command.args(arguments.split(' ')).stdin(Stdio::null());
        let output = command.current_dir(&folder).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, output) = run("league_manager", "--port 0");
    check_contains(&output, "run this where the folder config is");
    assert_eq!(code, Some(2), "the plain programs bring no configuration");
    let (code, output) = run("league", "local --port 0 --players 2");
    check_contains(&output, "there was no folder config here");
    check_contains(&output, "Champion");
    assert_eq!(code, Some(0), "{output}");
}

/// Writes a player in Python that chooses by some lines.
fn python_player(test: &TestLeague, lines: &str) -> PathBuf {
    for file in ["player.py", "league_player.py"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bin").join(file);
        fs::copy(source, test.folder.join(file)).unwrap();
    }
    let path = test.folder.join("player.py");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("return random.choice(turn.legal_moves)", lines);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn own_player_prints_and_its_repeated_fault_is_printed_once() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    let path = python_player(
        &test,
        "print('against', turn.opponent_id)\n    return turn.thiers[-1]",
    );

    let mine = format!("`{PYTHON} {}`", path.display());
    let (code, output) = test.run_tool(&format!(
        "local --port 0 --cycles 4 --players 2 --mine {mine}"
    ));
    assert_eq!(code, Some(1), "{output}");
    assert_eq!(
        output.matches("player.py: against P02\n").count(),
        12,
        "{output}"
    );
    assert_eq!(
        output.matches("your choose fails in line").count(),
        1,
        "{output}"
    );
    check_contains(
        &output,
        "player.py (P01) has lost all its matches technically",
    );
    assert!(!output.contains("Technical loss if"), "{output}");
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
fn program_with_a_blank_in_its_path_plays() {
    let test = TestLeague::new("");
    let folder = test.folder.join("Ada L");
    fs::create_dir(&folder).unwrap();
    let name = executable("player");
    fs::copy(&name, folder.join(name.file_name().unwrap())).unwrap();
    let output = test.local(&format!(
        "--players 2 --mine `'{}'`",
        folder.join("player").display()
    ));
    check_contains(&output, "P01  player ");
}

#[test]
#[cfg(unix)] // Windows has no scripts with a first line
fn script_that_cannot_be_started_says_why() {
    use std::os::unix::fs::PermissionsExt;

    let test = TestLeague::new("");
    for (name, text, mode, why) in [
        (
            "eve.sh",
            "#!/bin/sh\r\nexit\r\n",
            0o755,
            "its first line names no program of this system, or ends as in Windows",
        ),
        ("eve.sh", "exit\n", 0o644, "chmod +x makes it a program"),
        ("ada.rs", "fn choose", 0o644, "no folder and no .rs in MINE"),
    ] {
        let path = test.folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let (code, output) = test.run_tool(&format!("local --port 0 --mine {}", path.display()));
        assert_eq!(code, Some(1), "{output}");
        check_contains(&output, why);
        check_contains(&output, &format!("{name}: "));
    }
}

/// The names of new players, and the answers of `league new`.
const NEW_PLAYERS: &str = r#"
ada | bin/ada.rs is a player of your own
ada | ada is there already; nothing was changed
eve.py | bin/eve.py is a player of your own
eve.py | eve.py is there already; nothing was changed
referee | referee is there already; nothing was changed
com7.py | got "com7.py", expected small letters
pattern | MINE=pattern is another player, which is here already; take a name like my_pattern
Ada | got "Ada", expected small letters
../x | got "../x", expected small letters
1a | got "1a", expected small letters
.py | got ".py", expected small letters
random.py | random.py would hide Python's own module random"#;

#[test]
fn new_player_is_a_copy_of_the_template() {
    let test = TestLeague::new("");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(executable("league"));
        let output = command.args(arguments).current_dir(&test.folder).output();
        let output = output.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, output) = run(&["new", "ada"]);
    assert_eq!(code, Some(2), "{output}");
    check_contains(&output, "Cargo.toml: ");

    let listed = "[package]\r\nname = \"x\"\r\n\r\n[[bin]]\r\nname = \"referee\"\r\n";
    let manifest = test.folder.join("Cargo.toml");
    fs::write(&manifest, listed).unwrap();
    for [name, answer] in rows(NEW_PLAYERS) {
        if name == "random.py" && !has_python() {
            continue;
        }
        let (code, output) = run(&["new", name]);
        let is_made = answer.contains("is a player");
        assert_eq!(code, Some(if is_made { 0 } else { 2 }), "{output}");
        check_contains(&output, answer);
    }

    let entry = "\n[[bin]]\nname = \"ada\"\npath = \"bin/ada.rs\"\n";
    assert_eq!(
        fs::read_to_string(manifest).unwrap(),
        listed.to_string() + entry
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (template, copy) in [("player.rs", "ada.rs"), ("player.py", "eve.py")] {
        let template = fs::read_to_string(root.join("bin").join(template)).unwrap();
        let copy = fs::read_to_string(test.folder.join("bin").join(copy)).unwrap();
        assert_eq!(copy, template);
    }
}

/// Returns the numbers that were drawn in a league, by match.
fn draws(test: &TestLeague) -> BTreeMap<String, u32> {
    let mut draws = BTreeMap::new();
    for event in test.journal() {
        if event["event"] == "Recorded" {
            let number = event["result"]["details"]["drawn_number"].as_u64().unwrap();
            draws.insert(text_of(&event["match_id"]).to_string(), number as u32);
        }
    }
    draws
}

#[test]
fn entrant_does_not_learn_the_draws_from_the_seed() {
    let test = TestLeague::new("");
    let known = |draws: &BTreeMap<String, u32>| {
        let game = &league::games::even_odd::GAME;
        let all = draws.iter();
        all.filter(|(id, number)| game.draw(Some(7), id) == Some(**number))
            .count()
    };

    // The strategies of the tool do not look: the same seed draws the same numbers anywhere.
    test.local("--players 5 --seed 7");
    let open = draws(&test);
    assert_eq!([open.len(), known(&open)], [10, 10]);

    // A file as Notepad writes it.
    let program = executable("player");
    let file = test.folder.join("class.txt");
    let mut lines = String::from('\u{feff}');
    for name in ["Ada", "Bob", "Eve", "Fay", "Gil"] {
        lines += &format!("{name}\t'{}'\n", program.display());
    }
    fs::write(&file, lines).unwrap();
    let play = || {
        test.local(&format!("--entrants {} --seed 7 --fresh", file.display()));
        draws(&test)
    };
    let hidden = play();
    assert!(hidden.len() == 10 && known(&hidden) < 10, "{hidden:?}");
    assert_eq!(play(), hidden, "on the same data it is repeatable");
    let members = test.journal().into_iter();
    let names: BTreeSet<String> = members
        .filter_map(|event| Some(event["meta"]["display_name"].as_str()?.to_string()))
        .collect();
    assert!(names.contains("Ada"), "{names:?}");
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

/// Changes of a player in Python, and what the terminal then says. A `choose` that waits for input
/// would lose by time.
const FIRST_MISTAKES: &str = r#"
return random | import sys; print("bar", end="\r"); print("at 2 s", file=sys.stderr); return random | player.py: bar\nplayer.py: bar\n
return random | import sys; print("at 2 s", file=sys.stderr); return random | player.py: at 2 s\nplayer.py: at 2 s\n
return random | return input("even or odd? ") #  | EOFError: EOF when reading a line; in a league it has no keyboard
return random | import os; r, w = os.pipe(); os.close(r); os.dup2(w, 1); print("lost"); return random | 2 of 2 matches were played to
return random | import os; os._exit(3); return random | player.py (P01) has ended in the middle of the league (exit
run(choose) | import functools; run(functools.lru_cache(choose)) | your choose fails: TypeError: unhashable type: 'Turn'
run(choose) | run(chose) | `run(chose)`: NameError: name 'chose' is not defined
run(choose) | pass | does its file end with run(choose)?"#;

#[test]
fn first_mistakes_are_explained() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    for [old, new, expected] in rows(FIRST_MISTAKES) {
        let path = python_player(&test, "return random.choice(turn.legal_moves)");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(
            &path,
            text.replace(&format!("    {old}"), &format!("    {new}")),
        )
        .unwrap();
        let mine = format!("`{PYTHON} {}`", path.display());
        let options = format!("local --port 0 --cycles 2 --players 2 --mine {mine}");
        let (_, output) = test.run_tool(&format!("{options} --move-timeout-sec 20"));
        // Lines of both outputs may come in between.
        let lines: Vec<&str> = expected.split_inclusive(r"\n").collect();
        let count = output.matches(&lines[0].replace(r"\n", "\n")).count();
        assert!(count >= lines.len(), "{}: {output}", lines[0]);
        assert!(!output.contains("E001"), "{output}");
    }
}

#[test]
fn program_that_never_registers_is_named() {
    let test = TestLeague::new("");
    let path = test.folder.join("silent.py");
    fs::write(&path, "import sys\nsys.stdin.read()\n").unwrap();
    if has_python() {
        let mine = format!("`{PYTHON} {}`", path.display());
        let league = test.spawn("league", &format!("local --mine {mine}"));
        league.wait_for_error("waiting for silent.py (P01) to register");
    }
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

#[test]
fn own_player_has_its_place_without_cycles_and_a_legend_for_doubtful_grades() {
    let test = TestLeague::new("");
    let (_, cycle) = test.run_tool("local --port 0 --players 3 --mine player,even");
    check_contains(&cycle, "player is ");
    check_contains(&cycle, "\neven is ");
    check_contains(&cycle, " of 3 with ");
    let (_, cycles) = test.run_tool("local --port 0 --players 3 --mine player --cycles 3");
    assert!(!cycles.contains(" of 3 with "), "{cycles}");

    // A player by hand ends with the league here, and does not say that it goes on.
    let options = "--move-timeout-sec 2.5 --players 2 --mine mcp:even";
    let (_, by_hand) = test.run_tool(&format!("local --port 0 {options}"));
    check_contains(&by_hand, "open this address in a browser");
    assert!(!by_hand.contains("still serving"), "{by_hand}");

    // Better than a coin, with a difference of two to three errors.
    let doubtful =
        offline::told(&[["ada>bob"; 23].join(" | "), ["ada=bob"; 9].join(" | ")].join(" | "));
    check_contains(&reported(&doubtful), "better?");
}
