//! Programs that are killed at any time, or started twice: no result is lost or counts twice, and no
//! process is left. The rest is in scripts: `tests/scripts/programs`.

use super::support::*;
use std::{fs, process::Command};

#[test]
fn programs_golden() {
    story::run("programs");
}

/// The programs of a row are killed and started again, one after the other, each time that the
/// journal has grown: the manager until the league is closed, an agent until the last result.
#[test]
fn killed_programs_lose_no_results() {
    let ids = ["REF01", "REF02", "P01", "P02", "P03", "P04", "P05", "P06"];
    let mixed = "REF01 manager P01 REF02";
    for victims in ["manager", "P01", mixed] {
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
fn two_local_leagues_in_one_folder_do_not_disturb_each_other() {
    let ids = ["league_2025_even_odd", "thursday"];
    for _ in 0..2 {
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
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux lists the processes in /proc"
)]
fn ended_local_league_leaves_no_process() {
    let terminate: fn(&mut TestProcess) = |launcher| {
        let id = launcher.child.id().to_string(); // -INT is ignored in some shells
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.unwrap().success());
    };
    for end in [TestProcess::kill, TestProcess::close_stdin, terminate] {
        let (test, mut launcher) = with_manager("local --lead-sec 60");
        test.starts();
        assert_eq!(processes(&test).len(), 7);
        end(&mut launcher);
        wait_until("all processes end", || processes(&test).is_empty());
    }
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
