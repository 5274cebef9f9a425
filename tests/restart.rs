//! Programs die, are started twice, find their disk full, their card taken, their league over or a referee hung:
//! nothing is lost, nothing counts twice, nothing is left behind, and whoever cannot go on says why.

mod support;

use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Output},
};
use support::*;

const LEAGUE: &str = "leagues/league_2025_even_odd";

fn count(world: &World, event: &str) -> usize {
    world.events(event).len()
}

fn league_file(world: &World, name: &str) -> PathBuf {
    world.folder.join("data").join(LEAGUE).join(name)
}

/// Whoever it is, it dies and is started again each time that the journal has grown: a manager till the very end, an
/// agent till the last result.
#[test]
fn whoever_is_killed_again_and_again_nothing_is_lost_or_doubled() {
    let ids = ["REF01", "REF02", "P01", "P02", "P03", "P04"];
    let manager_alone = &["manager"][..];
    let mix = &["REF01", "manager", "P01", "REF02"][..];
    for victims in [
        manager_alone,
        &["REF01"],
        manager_alone,
        &["P01"],
        manager_alone,
        mix,
    ] {
        let world = World::new(&[]);
        let arguments = ["--players", "4", "--referees", "2"];
        let mut manager = world.manager(&arguments);
        let start = |manager: &Agent, id: &str, port: &str| match id.starts_with('R') {
            true => world.referee(manager, id, &["--port", port]),
            false => world.player(manager, id, &["--port", port]),
        };
        let mut agents = ids.map(|id| start(&manager, id, "0"));
        let is_over = || {
            count(&world, "Closed") == 1
                || victims != manager_alone && count(&world, "Recorded") == 6
        };
        let mut deaths = 0;
        for victim in victims.iter().cycle() {
            let seen = world.journal().len();
            wait_until("something happens", || {
                world.journal().len() > seen || is_over()
            });
            let found = ids.iter().position(|id| id == victim);
            let dying = found.map_or(&mut manager, |n| &mut agents[n]);
            if is_over() {
                break;
            }
            dying.kill();
            let port = dying.port();
            match found {
                Some(n) => agents[n] = start(&manager, victim, &port),
                None if is_over() => break, // it had just come to its end
                None => manager.restart(&world, &arguments),
            }
            deaths += 1;
        }
        let end = until("the manager ends", || manager.child.try_wait().unwrap());
        assert!(
            end.success() || end.code().is_none(),
            "{victims:?}: {:?}",
            manager.stderr
        );
        assert!(deaths > 2, "{victims:?} died only {deaths} times");
        world.check_played(4);
        if victims == manager_alone {
            assert!(
                agents.iter_mut().all(|agent| agent.wait().success()),
                "somebody was not told"
            );
            let settled = |lines: &Vec<Value>| {
                lines
                    .iter()
                    .filter(|line| !line["settled"].is_null())
                    .count()
            };
            let kept = files(&world.folder.join("data/referees"))
                .into_iter()
                .map(|path| json_lines(&path));
            assert!(
                kept.into_iter()
                    .all(|lines| settled(&lines) * 2 == lines.len()),
                "an outbox waits"
            );
        }
    }
}

/// Runs a program to its early end: what it says, which is one line.
fn refused(world: &World, program: &str, arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = world.command(program, arguments).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(
        (said.lines().count(), status.code()),
        (1, Some(1)),
        "{said}"
    );
    said
}

/// Every file below the data folder, and what is in it.
fn contents(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<_> = files(&world.folder.join("data"))
        .into_iter()
        .map(|it| (it.clone(), fs::read(it).unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn whoever_must_not_start_says_why_in_one_line_and_changes_nothing() {
    let (world, other) = (World::new(&[]), World::new(&[]));
    let (mut manager, second) = (world.manager(&[]), other.manager(&[]));
    let mut player = world.player(&manager, "P01", &[]);
    player.line("is P01 in");
    let path = league_file(&world, "journal.jsonl");
    let check = |program: &str, arguments: &[&str], words: &[&str]| {
        let before = contents(&world);
        let said = refused(&world, program, &[&["--port", "0"], arguments].concat());
        words
            .iter()
            .for_each(|words| assert!(said.contains(words), "no {words:?} in {said}"));
        assert!(contents(&world) == before, "{said}");
    };
    let (first, second) = (manager.url(), second.url());
    for arguments in [&[][..], &["--fresh"]] {
        check(
            "league_manager",
            arguments,
            &[
                "journal.jsonl: another league manager is running on it",
                "--data DIR",
            ],
        );
    }
    let as_p01 = |url: &str, words: &str| {
        check(
            "player",
            &["--player-id", "P01", "--manager", url],
            &["P01 in ", words, "--data DIR"],
        );
    };
    as_p01(&first, "another program is running as it");
    player.kill();
    as_p01(
        &second,
        "it plays in league_2025_even_odd of the manager at http://",
    );
    manager.kill();
    fs::write(
        &path,
        fs::read_to_string(&path).unwrap() + "{\"event\":\"Record\n",
    )
    .unwrap();
    check(
        "league_manager",
        &[],
        &["journal.jsonl: line 3 is damaged", "--fresh"],
    );
}

#[test]
fn of_two_local_leagues_in_one_folder_both_work_or_one_is_refused() {
    let ids = ["league_2025_even_odd", "thursday"];
    for _ in 0..3 {
        let world = World::new(&[]);
        let leagues = world.folder.join("config/leagues");
        fs::copy(
            leagues.join(format!("{}.json", ids[0])),
            leagues.join("thursday.json"),
        )
        .unwrap();
        world.edit("leagues/thursday.json", "/league_id", json!("thursday"));
        let mut both = ids.map(|id| {
            world.start_unheard(
                "league_manager",
                &["local", "--players", "6", "--league-id", id],
            )
        });
        let ends = both.each_mut().map(|league| league.wait().code());
        assert!(
            ends.contains(&Some(0)),
            "{:?} {:?}",
            both[0].stderr,
            both[1].stderr
        );
        for ((id, league), end) in ids.iter().zip(&both).zip(ends) {
            let (output, folder) = (league.output(), world.folder.join("data/leagues").join(id));
            if end == Some(0) {
                let row =
                    world.data(&format!("leagues/{id}/standings.json"))["standings"][0].clone();
                assert_eq!(row["played"], 5, "{row}");
                assert!(
                    output.contains(&format!(
                        "Champion: {} ",
                        row["display_name"].as_str().unwrap()
                    )),
                    "{output}"
                );
                let lines = json_lines(&folder.join("journal.jsonl"));
                assert_eq!(
                    lines
                        .iter()
                        .filter(|line| line["event"] == "Recorded")
                        .count(),
                    15
                );
                assert!(
                    lines
                        .iter()
                        .all(|line| line["result"]["details"]["status"] != "TECHNICAL_LOSS")
                );
            } else {
                let said = league.stderr.lock().unwrap().clone();
                assert!(
                    said.lines().count() == 1 && said.contains("--data"),
                    "{said}"
                );
                assert!(!folder.exists(), "{:?}", files(&folder));
            }
        }
    }
}

#[test]
fn a_local_league_resumed_at_another_port_ends_with_its_childrens_words() {
    let world = World::new(&[]);
    let mut league = world.start("league_manager", &["local", "--lead-sec", "60"]);
    wait_until("the league starts", || count(&world, "Started") == 1);
    wait_until("all have their cards", || cards(&world).len() == 6);
    league.kill();
    wait_until("all processes end", || processes(&world).is_empty());
    let mut again = world.start("league_manager", &["local", "--lead-sec", "60"]);
    assert_eq!(again.wait().code(), Some(1));
    for words in [
        "it plays in league_2025_even_odd of the manager at http://",
        "--data DIR",
        "could not start",
    ] {
        wait_until(words, || again.stderr.lock().unwrap().contains(words));
    }
    wait_until("all processes end", || processes(&world).is_empty());
}

/// The cards of the agents.
fn cards(world: &World) -> Vec<PathBuf> {
    let all = files(&world.folder.join("data/agents"));
    all.into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect()
}

#[test]
fn whoever_comes_back_after_the_end_is_told_or_says_whom_it_waits_for() {
    let world = World::new(&[]);
    let mut manager = world.manager(&["--players", "2", "--stay"]);
    let start = |manager: &Agent, id: &str| match id {
        "REF01" => world.referee(manager, id, &[]),
        _ => world.player(manager, id, &[]),
    };
    let ids = ["REF01", "P01", "P02"];
    let mut agents = ids.map(|id| start(&manager, id));
    manager.line("still serving");
    agents
        .iter_mut()
        .for_each(|agent| assert!(agent.wait().success()));
    for id in ids {
        let mut again = start(&manager, id);
        assert!(again.wait().success(), "{id}");
        let output = again.output();
        assert!(output.starts_with("listening on "), "{output}");
        let words = if id == "REF01" {
            "the league is over"
        } else {
            "Champion: "
        };
        assert!(
            output.lines().last().unwrap().starts_with(words),
            "{output}"
        );
    }
    manager.kill();
    let again = ids.map(|id| start(&manager, id));
    for agent in again {
        let words = format!("waiting for the league manager at {}", manager.url());
        wait_until(&words, || agent.stderr.lock().unwrap().contains(&words));
    }
}

#[test]
fn a_hung_referee_costs_one_time_limit_once() {
    let short = |key: &'static str| ("system.json", key, json!(0.5));
    let world = World::new(&[
        ("system.json", "/retry_policy/max_retries", json!(1)),
        short("/timeouts/game_join_ack_timeout_sec"),
        short("/timeouts/move_timeout_sec"),
        short("/timeouts/game_over_timeout_sec"),
        short("/timeouts/generic_response_timeout_sec"),
    ]);
    let mut manager = world.manager(&["--players", "4", "--referees", "2"]);
    let referees = ["REF01", "REF02"].map(|id| world.referee(&manager, id, &[]));
    wait_until("both have registered", || count(&world, "Registered") == 2);
    signal("-STOP", &referees[0]);
    let _players = ["P01", "P02", "P03", "P04"].map(|id| world.player(&manager, id, &[]));
    assert!(manager.wait().success());
    world.check_played(4);
    let output = manager.output();
    let late: Vec<&str> = output
        .lines()
        .filter(|line| line.contains("has not reported"))
        .collect();
    assert!(late.len() == 1 && late[0].contains("REF01"), "{output}");
    let by_honest = |line: &Value| line["event"] != "Recorded" || line["referee_id"] == "REF02";
    assert!(
        world.journal().iter().all(by_honest) && count(&world, "Assigned") == 4,
        "{:?}",
        world.journal()
    );
}

fn signal(name: &str, agent: &Agent) {
    assert!(
        Command::new("kill")
            .args([name, &agent.child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn what_a_full_disk_does_not_take_is_not_acknowledged() {
    let world = World::new(&[]);
    let arguments = ["--players", "2"];
    let path = league_file(&world, "journal.jsonl");
    let agents = [listener(), listener(), listener()];
    let register = |manager: &Agent| {
        let referee = register_referee(&manager.url(), "referee:REF01", &agents[0].url, 1);
        let players = [1, 2]
            .map(|n| register_player(&manager.url(), &format!("player:P0{n}"), &agents[n].url));
        [referee, players[0].clone(), players[1].clone()]
    };
    let broken = |answer: &Value| {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("the journal cannot be written"),
            "{answer}"
        );
    };
    let on_a_full_disk =
        |kib: usize| world.start_limited(&format!("ulimit -f {kib}"), "league_manager", &arguments);
    let manager = on_a_full_disk(1);
    let answers = register(&manager);
    broken(&answers[2]);
    let accepted = answers
        .iter()
        .filter(|answer| answer["status"] == "ACCEPTED")
        .count();
    assert_eq!(
        count(&world, "Registered"),
        accepted,
        "what was answered is what is kept"
    );
    assert!(fs::read_to_string(&path).unwrap().ends_with('\n'));
    drop(manager);

    let manager = world.manager(&arguments);
    let token = token_of(&register(&manager)[0]);
    wait_until("it is assigned", || count(&world, "Assigned") == 1);
    drop(manager);
    let before = fs::read(&path).unwrap();
    let report = report("referee:REF01", Some(&token), "R1M1", ["P01", "P02"]);
    let manager = on_a_full_disk(before.len() / 1024);
    broken(&send(&manager.url(), &report));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(world.table()[0]["played"], 0);
    drop(manager);

    let mut manager = world.manager(&arguments);
    assert_eq!(send(&manager.url(), &report)["status"], "recorded");
    assert!(manager.wait().success());
    world.check_played(2);
}

#[test]
fn the_words_start_and_status_say_how_it_is() {
    let world = World::new(&[]);
    let manager = world.manager(&[]);
    let url = manager.url();
    let agents = [listener(), listener(), listener()];
    let says = |command: &str, code: i32, words: &[&str]| {
        let (came, said) = world.word(&[command, "--manager", &url]);
        assert_eq!(came, Some(code), "{command}: {said}");
        words
            .iter()
            .for_each(|words| assert!(said.contains(words), "{command}: no {words:?} in {said}"));
    };
    let none = "0 of at least 2 players and 0 of at least 1 referee have registered";
    says("status", 0, &["status   waiting", "round    0 of 0", none]);
    says("start", 1, &["status   waiting", none]);
    register_player(&url, "player:P01", &agents[0].url);
    register_referee(&url, "referee:REF01", &agents[1].url, 1);
    says(
        "start",
        1,
        &["1 of at least 2 players and 1 of at least 1 referee have registered"],
    );
    register_player(&url, "player:P02", &agents[2].url);
    says("status", 0, &["status   waiting"]); // an early START_LEAGUE is not remembered
    assert_eq!(count(&world, "Started"), 0);
    says(
        "start",
        0,
        &[
            "status   running",
            "round    1 of 1",
            "matches  0 completed",
        ],
    );
    says("start", 0, &["status   running"]);
    says("status", 0, &["status   running"]);
    assert_eq!(count(&world, "Started"), 1);
    let warning = "scheduling.matches_per_round says 2, but 2 players make 1";
    wait_until("the warning", || {
        world.logs().iter().any(|line| line["message"] == warning)
    });
    drop(manager);
    says(
        "start",
        1,
        &["could not be reached (connection refused); start one, or name it with --manager URL"],
    );
    says(
        "status",
        1,
        &["could not be reached (connection refused); start one, or name it with --manager URL"],
    );
}

#[test]
fn whoever_registers_before_its_server_is_up_is_asked_again() {
    let world = World::new(&[]);
    let manager = world.manager(&["--players", "2"]);
    let slow = Peer::new(|_| Does::Close);
    register_player(&manager.url(), "player:P01", &slow.url);
    wait_until("it is asked again", || {
        slow.requests.lock().unwrap().len() >= 2
    });
}

#[test]
fn secrets_are_for_their_owner_alone() {
    let world = World::new(&[]);
    let mut league = world.start(
        "league_manager",
        &["local", "--players", "2", "--referees", "1", "--stay"],
    );
    league.line("still serving");
    let operator = fs::read_to_string(league_file(&world, "operator.token")).unwrap();
    let cards = cards(&world);
    assert_eq!(cards.len(), 3);
    for path in cards.iter().chain(&[
        league_file(&world, "operator.token"),
        league_file(&world, "journal.jsonl"),
    ]) {
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
    }
    league.kill();
    let shown = league.output() + &league.stderr.lock().unwrap();
    let logs = files(&world.folder.join("logs"))
        .into_iter()
        .map(|path| fs::read_to_string(path).unwrap());
    let everything = shown + &logs.collect::<String>();
    let ids =
        ["REF01", "P01", "P02"].map(|id| world.data(&format!("agents/{id}.json"))["token"].clone());
    for secret in ids
        .iter()
        .map(|token| token.as_str().unwrap())
        .chain([operator.trim()])
    {
        let (_, secret) = secret.rsplit_once('-').unwrap();
        assert!(
            secret.len() >= 32 && !everything.contains(secret),
            "a token is shown"
        );
    }
}

#[test]
fn however_the_launcher_ends_no_process_is_left() {
    let terminate: fn(&mut Agent) = |launcher| signal("-TERM", launcher); // -INT is ignored in some shells
    let ends = [
        ("kill -9", Agent::kill as fn(&mut Agent)),
        ("closed input", Agent::close_stdin),
        ("kill", terminate),
    ];
    for (end, act) in ends {
        let world = World::new(&[]);
        let mut launcher = world.start("league_manager", &["local", "--lead-sec", "60"]);
        wait_until("the league starts", || count(&world, "Started") == 1);
        assert_eq!(processes(&world).len(), 7, "{end}");
        act(&mut launcher);
        wait_until(&format!("all processes end after {end}"), || {
            processes(&world).is_empty()
        });
    }
}

/// The processes whose command line names the folder of this world.
fn processes(world: &World) -> Vec<String> {
    let folder = world.folder.to_string_lossy().into_owned() + "/";
    let all = fs::read_dir("/proc").unwrap().flatten();
    let commands = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let commands = commands.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    commands
        .filter(|command| command.contains(&folder))
        .collect()
}

#[test]
fn with_a_seed_two_runs_end_alike() {
    let run = || {
        let world = World::new(&[]);
        let mut league = world.start("league_manager", &["local", "--seed", "7", "--quiet"]);
        assert!(league.wait().success());
        let mut page = world.data(&format!("{LEAGUE}/standings.json"));
        page["last_updated"].take();
        page
    };
    assert_eq!(run(), run());
}
