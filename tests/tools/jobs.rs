//! A league as a job of a batch engine: entrants dealt into groups, a job for each, killed and
//! started again by a plain shell, added up, and the next stage.

use super::run_command;
use super::support::*;
use crate::start::entrants::{self, Entrant};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A script that plays a stage with two processes at a time. A finished group is not played again.
/// The group SLOW begins later. All stages draw with the same secret.
const STAGE: &str = r#"
ls season/groups | sed s/.txt// | xargs -P 2 -I {} sh -c '
    mkdir -p season/{} && echo the secret of the draws > season/{}/seed.secret
    "$LEAGUE" local --entrants season/groups/{}.txt --data season/{} --logs logs/{} --config ../config \
        --port 0 --referees 1 --lead-sec $(test {} = "$SLOW" && echo 3 || echo 0) --seed {} --quiet &
    echo $! > {}.pid; wait $!'
"#;

/// Returns a command that runs a script in a folder.
fn shell(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder);
    command.env("LEAGUE", executable("league"));
    command.stdin(Stdio::null());
    command
}

/// Runs a command, which must end with that code. Returns its standard output and standard error.
fn output(command: &mut Command, code: i32) -> [String; 2] {
    let (ended, texts) = run_command(command);
    assert_eq!(ended, Some(code), "{texts:?}");
    texts
}

fn entrants(count: usize) -> Vec<Entrant> {
    let entrant = |n: usize| Entrant {
        name: format!("Agent {n}"),
        command: "league play random".into(),
    };
    (1..=count).map(entrant).collect()
}

#[test]
#[cfg_attr(windows, ignore = "sh is a program of Unix")]
fn stage_with_a_killed_group_ends_the_same() {
    let test = TestLeague::new("");
    let played = ["whole", "killed"].map(|name| {
        let folder = test.folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("class.txt"), entrants::text(&entrants(24))).unwrap();
        let deal = "mkdir -p season/groups && awk 'BEGIN { srand(7) } { print rand() \"\\t\" $0 }' class.txt |
            sort | cut -f 2- | awk '{ print > sprintf(\"season/groups/%03d.txt\", NR % 6) }'";
        output(&mut shell(&folder, deal), 0);
        if name == "killed" {
            let mut stage = shell(&folder, STAGE);
            stage
                .env("SLOW", "003")
                .stdout(Stdio::null())
                .stderr(Stdio::null()); // the shell says "Killed"
            let mut stage = stage.spawn().unwrap();
            let league = folder.join("season/003/leagues/league_2025_even_odd");
            let count = || json_lines(&league.join("journal.jsonl")).len();
            until("a result of group 3", || {
                (count() > 1 + 5 + 1 + 1).then_some(()) // head, agents, start, and the first that follows
            });
            let kill = "kill -9 $(cat 003.pid)";
            output(&mut shell(&folder, kill), 0);
            assert!(
                !stage.wait().unwrap().success(),
                "xargs tells of a failed job"
            );
            let season = "$LEAGUE season season/0* --config ../config";
            let [_, left_out] = output(&mut shell(&folder, season), 1);
            check_contains(&left_out, "season/003: no league of ");
            assert_eq!(left_out.lines().count(), 1, "{left_out}");
        }
        let [said_by_jobs, _] = output(&mut shell(&folder, STAGE), 0);
        let over = said_by_jobs.matches("this league is over").count();
        assert_eq!(over, if name == "killed" { 5 } else { 0 }, "{said_by_jobs}");
        let season = "$LEAGUE season season/0* --config ../config";
        let [table, _] = output(&mut shell(&folder, season), 0);
        let [next, _] = output(&mut shell(&folder, &format!("{season} --promote 2")), 0);
        assert_eq!(next.lines().count(), 12, "{next}");
        fs::write(folder.join("final.txt"), &next).unwrap();
        let last = "mkdir -p final && cp season/001/seed.secret final/ && \
                    $LEAGUE local --entrants final.txt --data final --config ../config --port 0 \
                    --lead-sec 0 --seed 1 --quiet && $LEAGUE season final --config ../config";
        let [champion, _] = output(&mut shell(&folder, last), 0);
        let (_, champion) = champion.split_once("final  ").unwrap();
        (next, table, champion.to_string())
    });
    assert_eq!(played[0], played[1]);
}

/// Writes a file of entrants, and returns its path.
fn class(test: &TestLeague, text: &str) -> String {
    let file = test.folder.join("class.txt");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().into()
}

/// Entrants, with `;` between lines and `:` behind a name; a command, and its error.
const WRONG: &str = r#"
Ada:even;Bob:python3 bob.py;;Ada:odd;Bob:even | local --entrants CLASS | line 4: Ada enters in line 1 already
Ada:even;Bob | local --entrants CLASS | class.txt: line 2: got "Bob", expected a name of 1 to 50 characters, a tab
Ada:even | local --entrants CLASS --mine ada | only one of --entrants, --new, --mine says who plays
Ada:even | local --entrants CLASS --players 5 | --entrants needs no --players
Ada:even | local --new even --cycles 5 | --new needs no --cycles
Ada:even | local --entrants CLASS --port 0 | --players: got 1, expected 2 to 100
Ada:even | serve --entrants CLASS | unknown argument "--entrants"; league serve --help lists all"#;

#[test]
fn faulty_entrants_are_refused_with_their_line() {
    let test = TestLeague::new("");
    let run = |entrants: &str, arguments: &str| {
        let arguments = arguments.replace("CLASS", &class(&test, entrants));
        test.run_tool(&arguments)
    };
    for [entrants, arguments, words] in rows(WRONG) {
        let entrants = entrants.replace(';', "\n").replace(':', "\t");
        let (code, output) = run(&entrants, arguments);
        assert!(
            code == Some(2) && output.contains(words),
            "{arguments}: {output}"
        );
    }
}

#[test]
fn remote_entrant_registers_by_itself() {
    let test = TestLeague::new("");
    let entrants = "Ada\thttp://192.0.2.1:8101/mcp\nBob\teven\nEve\todd\n";
    let path = class(&test, entrants);
    let mut league = test.manager(&format!("local --entrants {path} --referees 1"));
    let elsewhere = TestLeague::new("");
    let own = format!("--manager {} --display-name Ada", league.url());
    let mut player = elsewhere.start("player", &own);
    league.wait_for_success();
    player.wait_for_success();
    let table = test.table();
    let names = table.iter().map(|row| text_of(&row["display_name"]));
    assert_eq!(names.collect::<BTreeSet<_>>(), ["Ada", "Bob", "Eve"].into());
}

#[test]
#[cfg_attr(windows, ignore = "sh is a program of Unix")]
fn interrupted_league_waits_for_its_own_players() {
    let test = TestLeague::new("");
    let [mark, slow] = ["interrupted", "slow.sh"].map(|name| test.folder.join(name));
    let player = executable("player").display().to_string();
    let wait = format!("[ -e {} ] && sleep 3", mark.display());
    fs::write(&slow, format!("{wait}\nexec {player} \"$@\"\n")).unwrap();
    let slow = slow.display();
    let entrants = format!("Ada\thttp://a/mcp\nBen\thttp://b/mcp\nBob\tsh {slow}\n");
    let path = class(&test, &entrants);
    let arguments = format!("local --entrants {path} --referees 1 --lead-sec 1");
    let elsewhere = TestLeague::new("");
    let others = |league: &TestProcess| ["P01", "P02"].map(|id| elsewhere.agent(league, id, ""));
    let mut league = test.manager(&arguments);
    let port = league.port();
    let players = others(&league);
    test.starts();
    league.kill();
    drop(players);
    fs::write(mark, "").unwrap();
    let mut league = test.manager(&format!("{arguments} --port {port}"));
    let _players = others(&league);
    league.wait_for_success();
    test.check_played(3);
    let results = format!("{:?}", test.events("Recorded"));
    assert!(!results.contains("TECHNICAL_LOSS"), "{results}");
}

#[test]
fn unfinished_league_of_other_entrants_is_refused() {
    let test = TestLeague::new("");
    let path = class(&test, &entrants::text(&entrants(3)));
    let arguments = format!("local --entrants {path} --lead-sec 1.5");
    let mut league = test.manager(&arguments);
    wait_until("it has a result", || test.count("Recorded") > 0);
    league.kill();
    class(&test, &entrants::text(&entrants(4)));
    for arguments in ["local", &arguments] {
        let (code, output) = test.run_tool(&format!("{arguments} --port 0"));
        let refused = output.contains("of other entrants lies in");
        assert!(code == Some(1) && refused, "{output}");
    }
    let arguments = format!("{arguments} --fresh --lead-sec 60");
    let mut league = test.manager(&arguments);
    league.line("is set aside");
    wait_until("another league starts", || {
        test.count("Started") == 1 && test.count("Registered") == 6
    });

    // A league without any result is no reason to refuse.
    league.kill();
    class(&test, &entrants::text(&entrants(3)));
    let _league = test.manager(&format!("local --entrants {path} --lead-sec 60"));
    wait_until("a league of three starts", || {
        test.count("Started") == 1 && test.count("Registered") == 5
    });
}
