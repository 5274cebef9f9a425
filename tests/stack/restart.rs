//! Programs that die, are started twice, find their disk full, their credentials in use, their league
//! over or a referee that hangs: no result is lost or counts twice, no process is left, and a program
//! that cannot go on says why.

use super::support::*;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, process::Command};

/// The programs of a row are killed and started again, one after the other, each time that the
/// journal has grown: the manager until the league is closed, an agent until the last result.
#[test]
fn killed_programs_lose_no_results() {
    let ids = ["REF01", "REF02", "P01", "P02", "P03", "P04", "P05", "P06"];
    let mixed = "REF01 manager P01 REF02";
    for victims in ["manager", "REF01", "manager", "P01", "manager", mixed] {
        let test = TestLeague::new("");
        let arguments = "--players 6 --referees 2";
        let mut manager = test.manager(arguments);
        let mut agents = test.agents(&manager, &ids.join(" "));
        let is_manager_alone = victims == "manager";
        let is_over = || {
            let is_played = test.count("Recorded") == 15;
            test.count("Closed") == 1 || is_played && !is_manager_alone
        };
        let mut deaths = 0;
        for victim in victims.split(' ').cycle() {
            let seen = test.journal().len();
            wait_until("the journal grows", || {
                test.journal().len() > seen || is_over()
            });
            if is_over() {
                break;
            }
            match ids.iter().position(|id| *id == victim) {
                Some(n) => {
                    agents[n].kill();
                    let port = format!("--port {}", agents[n].port());
                    agents[n] = test.agent(&manager, victim, &port);
                }
                None => {
                    manager.kill();
                    if test.count("Closed") == 1 {
                        break; // the league has just come to its end
                    }
                    manager.restart(&test, arguments);
                }
            }
            deaths += 1;
        }
        let end = manager.wait();
        let is_well = end.success() || end.code().is_none();
        assert!(is_well, "{victims}: {}", manager.errors());
        assert!(deaths > 2, "{victims} died only {deaths} times");
        test.check_played(6);
        if is_manager_alone {
            // The end was sent to all agents.
            agents.iter_mut().for_each(TestProcess::wait_for_success);
        }
    }
}

#[test]
fn round_with_referees_has_no_second_lead_after_a_restart() {
    let test = TestLeague::new("");
    let arguments = "--players 2 --lead-sec 60";
    let mut manager = test.manager(arguments);
    let mut agents = test.agents(&manager, "REF01 P01 P02");
    wait_until("the match is assigned", || test.count("Assigned") == 1);
    manager.restart(&test, arguments);
    wait_for_all(&mut manager, &mut agents);
    test.check_played(2);
}

/// Returns every file below the data folder, except locks, with its bytes.
fn contents(test: &TestLeague) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = files(&test.folder.join("data"));
    all.retain(|path| path.extension().is_none_or(|name| name != "lock"));
    all.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    all.into_iter().map(read).collect()
}

#[test]
fn refused_start_prints_one_line_and_changes_nothing() {
    let (test, other) = (TestLeague::new(""), TestLeague::new(""));
    let (mut manager, second) = (test.serve(""), other.serve(""));
    let mut player = test.agent(&manager, "P01", "");
    player.line("is P01 in");
    wait_until("the files of a lobby are written", || {
        let standings = test.data("leagues/league_2025_even_odd/standings.json");
        !list_of(&standings["standings"]).is_empty() && test.league_file("manager.url").exists()
    });
    let refused = |program: &str, arguments: &str, words: &str| {
        let before = contents(&test);
        let arguments = format!("{arguments} --port 0");
        let output = test.command(program, &arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        check_contains(&error, words);
        let names_cure = error.contains("--data DIR") || error.contains("--fresh");
        assert!(names_cure && contents(&test) == before, "{error}");
    };
    let running = "league_2025_even_odd: another program is running on it";
    refused("league_manager", "", running);
    refused("league_manager", "--fresh", running);
    let as_p01 = |manager: &TestProcess, words: &str| {
        let arguments = format!("--player-id P01 --manager {}", manager.url());
        refused("player", &arguments, words);
    };
    as_p01(&manager, "another program is running on it");
    player.kill();
    let foreign = " plays in league_2025_even_odd of the manager at http://";
    as_p01(&second, foreign);
    manager.kill();
    let path = test.league_file("journal.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole + "{\"event\":\"Record\n").unwrap();
    refused("league_manager", "", "journal.jsonl: line 3 is damaged");
}

#[test]
fn two_local_leagues_in_one_folder_do_not_disturb_each_other() {
    let ids = ["league_2025_even_odd", "thursday"];
    for _ in 0..3 {
        let test = TestLeague::new("");
        let second = test.config("leagues/thursday.json");
        fs::copy(test.config("leagues/"), second).unwrap();
        test.edit("leagues/thursday.json", "league_id", json!("thursday"));
        let both = ids.map(|id| {
            let arguments = format!("local --players 6 --league-id {id}");
            test.spawn("league_manager", &arguments)
        });
        let mut played = 0;
        for (id, mut league) in ids.iter().zip(both) {
            let folder = test.folder.join("data/leagues").join(id);
            if !league.wait().success() {
                league.wait_for_error("--data");
                assert_eq!(league.errors().lines().count(), 1, "{}", league.errors());
                assert!(!folder.exists(), "{:?}", files(&folder));
                continue;
            }
            played += 1;
            check_contains(&league.output(), "Champion");
            let mut lines = json_lines(&folder.join("journal.jsonl"));
            lines.retain(|line| line["result"]["details"]["drawn_number"].is_number());
            assert_eq!(lines.len(), 15, "all matches were played");
        }
        assert!(played > 0, "both are refused");
    }
}

#[test]
fn local_league_resumes_at_another_port() {
    for fresh in ["", "--fresh"] {
        let (test, mut league) = with_manager("local --lead-sec 60");
        test.starts();
        wait_until("all agents have credentials", || cards(&test).len() == 6);
        let port = league.port();
        league.kill(); // its children are still ending during the next start
        let _taken = TcpListener::bind(format!("127.0.0.1:{port}"));
        let mut again = test.manager(&format!("local --lead-sec 0 {fresh}"));
        assert_ne!(again.port(), port);
        again.wait_for_success();
        test.check_played(4);
        wait_until("all processes end", || processes(&test).is_empty());
    }
}

/// Returns the paths of the credentials of the agents.
fn cards(test: &TestLeague) -> Vec<PathBuf> {
    let mut all = files(&test.folder.join("data/agents"));
    all.retain(|path| path.extension().is_some_and(|name| name == "json"));
    all
}

#[test]
fn agent_that_returns_after_the_end_receives_the_end() {
    let (test, mut manager) = with_manager("serve --players 2 --stay");
    let ids = ["REF01", "P01", "P02"];
    let mut agents = test.agents(&manager, "REF01 P01 P02");
    manager.line("still serving");
    agents.iter_mut().for_each(TestProcess::wait_for_success);
    for id in ids {
        let mut again = test.agent(&manager, id, "");
        again.wait_for_success();
        let output = again.output();
        assert!(output.starts_with("listening on "), "{output}");
        let words = ["Champion: ", "the league is over"][usize::from(id == "REF01")];
        let last = output.lines().last().unwrap();
        assert!(last.starts_with(words), "{output}");
    }
    manager.kill();
    let waits = format!("waiting for the league manager at {}", manager.url());
    for agent in test.agents(&manager, "REF01 P01 P02") {
        agent.wait_for_error(&waits);
    }
}

/// Sends a signal to a program.
fn signal(name: &str, agent: &TestProcess) {
    let id = agent.child.id().to_string();
    let status = Command::new("kill").args([name, &id]).status();
    assert!(status.unwrap().success());
}

/// Starts a manager on a disk that is full: the journal cannot grow.
fn start_on_a_full_disk(test: &TestLeague) -> TestProcess {
    let length = fs::metadata(test.league_file("journal.jsonl"))
        .unwrap()
        .len();
    let limit = format!("ulimit -f {}", length / 1024);
    test.start_limited(&limit, "league_manager", "--players 2")
}

/// Checks that the reply is the failure to write the journal.
fn check_not_stored(reply: &Value) {
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
    let why = text_of(&reply["error"]["message"]);
    check_contains(why, "journal.jsonl cannot be written");
}

#[test]
#[cfg_attr(windows, ignore = "ulimit is a command of Unix")]
fn full_disk_acknowledges_nothing() {
    let test = TestLeague::new("");
    let arguments = "--players 2";
    let path = test.league_file("journal.jsonl");
    let agents = [idle_agent(), idle_agent(), idle_agent()];
    let register = |manager: &TestProcess| {
        let url = manager.url();
        let referee = register_referee(&url, "REF01", &agents[0].url, 1);
        let first = register_player(&url, "P01", &agents[1].url);
        [referee, first, register_player(&url, "P02", &agents[2].url)]
    };
    let manager = test.start_limited("ulimit -f 1", "league_manager", arguments);
    let mut replies = register(&manager).to_vec();
    check_not_stored(&replies[2]);
    replies.retain(|reply| reply["status"] == "ACCEPTED");
    assert_eq!(test.count("Registered"), replies.len());
    assert!(fs::read_to_string(&path).unwrap().ends_with('\n'));
    drop(manager);

    let manager = test.manager("");
    let token = token_of(&register(&manager)[0]);
    drop(manager);
    let mut manager = start_on_a_full_disk(&test);
    manager.line("journal.jsonl cannot be written");
    let again = referee_registration("REF01", &agents[0].url, 1, Some(&token));
    for _ in 0..5 {
        assert_eq!(send(&manager.url(), &again)["status"], "ACCEPTED"); // the manager tries again
    }
    check_contains(&manager.page("/health").1, "waiting");
    assert_eq!(test.count("Started"), 0);
    manager.kill();
    let output = manager.output();
    assert_eq!(output.matches("cannot be written").count(), 1, "{output}");

    let manager = test.manager(arguments);
    wait_until("the match is assigned", || test.count("Assigned") == 1);
    drop(manager);
    let before = fs::read(&path).unwrap();
    let report = report("referee:REF01", Some(&token), "R1M1", ["P01", "P02"]);
    let manager = start_on_a_full_disk(&test);
    check_not_stored(&send(&manager.url(), &report));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(test.table()[0]["played"], 0);
    drop(manager);

    let mut manager = test.manager(arguments);
    assert_eq!(send(&manager.url(), &report)["status"], "recorded");
    manager.wait_for_success();
    test.check_played(2);
}

#[test]
#[cfg_attr(windows, ignore = "ulimit is a command of Unix")]
fn registration_that_cannot_be_stored_changes_nothing() {
    let test = TestLeague::new("system retry_policy.base_delay_sec=0.1");
    let is_willing = Arc::new(AtomicBool::new(false));
    let accepts = Arc::clone(&is_willing);
    let referee = FakeAgent::new(move |request| {
        let is_round = request["params"]["message_type"] == "ROUND_ANNOUNCEMENT";
        match is_round && !accepts.load(Ordering::SeqCst) {
            true => {
                FakeReply::Answer(json!({"message_type": "LEAGUE_ERROR", "error_code": "E015"}))
            }
            false => acknowledgement(),
        }
    });
    let players = [idle_agent(), idle_agent()];
    let manager = test.manager("--players 2");
    let token = token_of(&register_referee(&manager.url(), "REF01", &referee.url, 1));
    register_player(&manager.url(), "P01", &players[0].url);
    let own = token_of(&register_player(&manager.url(), "P02", &players[1].url));
    manager.line("no referee is left");
    drop(manager);

    // The disk is full. The referee refuses its match once more.
    let manager = start_on_a_full_disk(&test);
    manager.line("no referee is left");
    is_willing.store(true, Ordering::SeqCst);
    let rounds = |agent: &FakeAgent| agent.received("ROUND_ANNOUNCEMENT").len();
    let announced = rounds(&referee);

    // Its registration with a change is not stored, so its match is not announced again.
    let changed = referee_registration("REF01", &referee.url, 2, Some(&token));
    check_not_stored(&send(&manager.url(), &changed));

    // A registration without a change is accepted. The player gets its round again, twice.
    let again = player_registration("P02", &players[1].url, Some(&own));
    for _ in 0..2 {
        let before = rounds(&players[1]);
        assert_eq!(send(&manager.url(), &again)["status"], "ACCEPTED");
        wait_until("P02 gets its round again", || rounds(&players[1]) > before);
    }
    assert_eq!(rounds(&referee), announced);
    check_contains(&manager.page("/health").1, "no referee is left");
}

#[test]
fn start_and_status_describe_the_league() {
    let (test, manager) = with_manager("serve");
    let url = manager.url();
    let agents = [idle_agent(), idle_agent(), idle_agent()];
    let check = |command: &str, expected: i32, words: &str| {
        let (code, output) = test.run_tool(&format!("{command} --manager {url}"));
        assert_eq!(code, Some(expected), "{command}: {output}");
        check_contains(&output, words);
    };
    let none = "0 of at least 2 players and 0 of at least 1 referee have registered";
    check("status", 0, none);
    register_player(&url, "P01", &agents[0].url);
    register_referee(&url, "REF01", &agents[1].url, 1);
    let one = "1 of at least 2 players and 1 of at least 1 referee have registered";
    check("start", 1, one);
    register_player(&url, "P02", &agents[2].url);
    assert_eq!(test.count("Started"), 0, "a refused start is not kept");
    check("start", 0, "the league is running");
    check("start", 0, "the league is running");
    assert_eq!(test.count("Started"), 1);
    let state = "round 1 of 1, 0 of 1 matches are over: running";
    check("status", 0, state);
    drop(manager);
    let cure = "could not be reached: connection refused; start one, or name it with --manager URL";
    check("start", 1, cure);
    check("status", 1, cure);
}

#[test]
fn files_with_secrets_are_readable_by_their_owner_only() {
    let test = TestLeague::new("");
    let mut league = test.manager("local --players 2 --referees 1 --stay");
    league.line("still serving");
    let operator = fs::read_to_string(test.league_file("operator.token")).unwrap();
    let cards = cards(&test);
    assert_eq!(cards.len(), 3);
    let others = ["operator.token", "journal.jsonl"].map(|name| test.league_file(name));
    cards
        .iter()
        .chain(&others)
        .for_each(|path| check_mode(path));
    league.kill();
    let shown = league.output() + &league.errors() + &json!(test.logs()).to_string();
    let mut secrets = vec![operator.trim().to_string()];
    for path in cards {
        let card: Value = json_of(&fs::read_to_string(path).unwrap());
        let secret = ["token", "registration_key"].map(|key| card[key].as_str().map(String::from));
        secrets.extend(secret.into_iter().flatten());
    }
    for secret in secrets {
        let secret = secret.rsplit('-').next().unwrap();
        let is_hidden = secret.len() >= 32 && !shown.contains(secret);
        assert!(is_hidden, "a secret is shown");
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux lists the processes in /proc"
)]
fn ended_local_league_leaves_no_process() {
    let terminate: fn(&mut TestProcess) = |launcher| signal("-TERM", launcher); // -INT is ignored in some shells
    for end in [TestProcess::kill, TestProcess::close_stdin, terminate] {
        let (test, mut launcher) = with_manager("local --lead-sec 60");
        test.starts();
        assert_eq!(processes(&test).len(), 7);
        end(&mut launcher);
        wait_until("all processes end", || processes(&test).is_empty());
    }
}

#[test]
fn referees_of_a_class_return_to_their_ports() {
    let test = TestLeague::new("");
    let class = format!("class --host 127.0.0.1 --port {}", free_port());
    let mut manager = test.manager(&class);
    let are_reachable = |manager: &TestProcess| {
        let (_, page) = manager.page("/league.json");
        page.matches(r#""reachable":true"#).count() == 4
    };
    wait_until("four referees are reachable", || are_reachable(&manager));
    manager.kill();
    let again = test.manager(&class);
    wait_until("they are reachable again", || are_reachable(&again));
    let registered = test.count("Registered");
    assert_eq!(registered, 4, "no referee had to register another endpoint");

    // The lobby is no unfinished league, and how to join stands above who is here.
    again.line("a lobby was found: it is open again");
    again.line("  help ");
    let output = manager.output();
    let first = output.find("is here").unwrap();
    assert!(output.find("typed here:").unwrap() < first, "{output}");
}

/// Returns the command lines that name the folder of this test, on systems that list them.
fn processes(test: &TestLeague) -> Vec<String> {
    let folder = test.folder.to_string_lossy().into_owned() + "/";
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let commands = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let commands = commands.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    commands
        .filter(|command| command.contains(&folder))
        .collect()
}

#[test]
fn manager_at_another_address_is_followed_by_its_agents() {
    let run = "--players 2 --lead-sec 0";
    let (test, mut manager) = with_manager(run);
    let ids = ["REF01", "P01"];
    let agents = ids.map(|id| test.agent(&manager, id, ""));
    agents[0].line("is REF01");
    agents[1].line("is P01");
    let tokens = || ids.map(|id| test.data(&format!("agents/{id}.json"))["token"].clone());
    let before = tokens();
    manager.kill();
    drop(agents);

    let old = manager.url();
    let mut manager = test.manager(run);
    assert_ne!(manager.url(), old);
    let mut agents = ids.map(|id| test.agent(&manager, id, ""));
    agents[0].line("is REF01");
    agents[1].line("is P01");
    assert_eq!(tokens(), before);
    let mut last = test.agent(&manager, "P02", "");
    manager.wait_for_success();
    agents.iter_mut().for_each(TestProcess::wait_for_success);
    last.wait_for_success();
    assert_eq!(test.technical_losses(), (1, 0));
}
