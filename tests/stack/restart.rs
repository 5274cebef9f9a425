//! Programs die, are started twice, find their disk full, their card taken, their league over or a
//! referee hung: nothing is lost, nothing counts twice, nothing is left behind, and whoever cannot
//! go on says why.

use super::support::*;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, process::Command};

/// Whoever it is, it dies and is started again each time that the journal has grown: a manager till
/// the very end, an agent till the last result.
#[test]
fn killed_programs_lose_no_results() {
    let ids = ["REF01", "REF02", "P01", "P02", "P03", "P04", "P05", "P06"];
    let mixed = "REF01 manager P01 REF02";
    for victims in ["manager", "REF01", "manager", "P01", "manager", mixed] {
        let test = TestLeague::new("");
        let arguments = "--players 6 --referees 2";
        let mut manager = test.manager(arguments);
        let mut agents = ids.map(|id| test.agent(&manager, id, ""));
        let is_manager_alone = victims == "manager";
        let is_over = || {
            let is_played = test.count("Recorded") == 15;
            test.count("Closed") == 1 || is_played && !is_manager_alone
        };
        let mut deaths = 0;
        for victim in victims.split(' ').cycle() {
            let seen = test.journal().len();
            wait_until("something happens", || {
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
                        break; // it had just come to its end
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
            agents.iter_mut().for_each(TestProcess::wait_for_success); // everybody was told
        }
    }
}

#[test]
fn round_with_referees_has_no_second_lead_after_a_restart() {
    let test = TestLeague::new("");
    let arguments = "--players 2 --lead-sec 60";
    let mut manager = test.manager(arguments);
    let mut agents = ["REF01", "P01", "P02"].map(|id| test.agent(&manager, id, ""));
    wait_until("it is assigned", || test.count("Assigned") == 1);
    manager.kill();
    manager.restart(&test, arguments);
    manager.wait_for_success();
    agents.iter_mut().for_each(TestProcess::wait_for_success);
    test.check_played(2);
}

/// Every file below the data folder but those that only serve as locks, and what is in it.
fn contents(test: &TestLeague) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = files(&test.folder.join("data"));
    all.retain(|path| path.extension().is_none_or(|item| item != "lock"));
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
    wait_until("the player is in the table", || {
        let standings = test.data("leagues/league_2025_even_odd/standings.json");
        !list_of(&standings["standings"]).is_empty()
    });
    wait_until("all is written that a lobby has", || {
        test.league_file("manager.url").exists()
    });
    let path = test.league_file("journal.jsonl");
    let refused = |program: &str, arguments: &str, words: &str| {
        let before = contents(&test);
        let arguments = format!("{arguments} --port 0");
        let output = test.command(program, &arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (error.lines().count(), output.status.code()),
            (1, Some(1)),
            "{error}"
        );
        check_contains(&error, words);
        let cure = ["--data DIR", "--fresh"]
            .iter()
            .any(|cure| error.contains(cure));
        assert!(cure && contents(&test) == before, "{error}");
    };
    let running = "league_2025_even_odd: another program is running on it";
    refused("league_manager", "", running);
    refused("league_manager", "--fresh", running);
    let as_p01 = |manager: &TestProcess, words: &str| {
        let arguments = format!("--player-id P01 --manager {}", manager.url());
        refused("player", &arguments, words);
    };
    as_p01(&manager, "another program is running as it");
    player.kill();
    let foreign = "it plays in league_2025_even_odd of the manager at http://";
    as_p01(&second, foreign);
    manager.kill();
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole + "{\"event\":\"Record\n").unwrap();
    refused("league_manager", "", "journal.jsonl: line 3 is damaged");
}

#[test]
fn two_local_leagues_in_one_folder_do_not_disturb_each_other() {
    let ids = ["league_2025_even_odd", "thursday"];
    for _ in 0..3 {
        let test = TestLeague::new("");
        let leagues = test.folder.join("config/leagues");
        let file = leagues.join(format!("{}.json", ids[0]));
        fs::copy(file, leagues.join("thursday.json")).unwrap();
        test.edit("leagues/thursday.json", "league_id", json!("thursday"));
        let mut both = ids.map(|id| {
            let arguments = format!("local --players 6 --league-id {id}");
            test.spawn("league_manager", &arguments)
        });
        let mut played = 0;
        for (id, league) in ids.iter().zip(&mut both) {
            let is_well = league.wait().success();
            played += u32::from(is_well);
            let folder = test.folder.join("data/leagues").join(id);
            if !is_well {
                league.wait_for_error("--data");
                assert_eq!(league.errors().lines().count(), 1, "{}", league.errors());
                assert!(!folder.exists(), "{:?}", files(&folder));
                continue;
            }
            check_contains(&league.output(), "Champion: ");
            let mut lines = json_lines(&folder.join("journal.jsonl"));
            lines.retain(|line| line["result"]["details"]["drawn_number"].is_number());
            assert_eq!(lines.len(), 15, "all were played");
        }
        assert!(played > 0, "both are refused");
    }
}

#[test]
fn local_league_resumes_at_another_port() {
    for fresh in ["", "--fresh"] {
        let (test, mut league) = with_manager("local --lead-sec 60");
        test.starts();
        wait_until("all have their cards", || cards(&test).len() == 6);
        let port = league.port();
        league.kill(); // its children are still ending when it is started again
        let _taken = TcpListener::bind(format!("127.0.0.1:{port}"));
        let mut again = test.manager(&format!("local --lead-sec 0 {fresh}"));
        assert_ne!(again.port(), port);
        again.wait_for_success();
        test.check_played(4);
        wait_until("all processes end", || processes(&test).is_empty());
    }
}

/// The cards of the agents.
fn cards(test: &TestLeague) -> Vec<PathBuf> {
    let mut all = files(&test.folder.join("data/agents"));
    all.retain(|path| path.extension().is_some_and(|item| item == "json"));
    all
}

#[test]
fn agent_that_returns_after_the_end_is_told_the_end() {
    let (test, mut manager) = with_manager("serve --players 2 --stay");
    let ids = ["REF01", "P01", "P02"];
    let mut agents = ids.map(|id| test.agent(&manager, id, ""));
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
    for agent in ids.map(|id| test.agent(&manager, id, "")) {
        agent.wait_for_error(&format!(
            "waiting for the league manager at {}",
            manager.url()
        ));
    }
}

fn signal(name: &str, agent: &TestProcess) {
    let id = agent.child.id().to_string();
    let status = Command::new("kill").args([name, &id]).status();
    assert!(status.unwrap().success());
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
        let second = register_player(&url, "P02", &agents[2].url);
        [referee, first, second]
    };
    let broken = |answer: &Value| {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let why = text_of(&answer["error"]["message"]);
        assert!(why.contains("journal.jsonl cannot be written"), "{answer}");
    };
    let on_a_full_disk =
        |kib: usize| test.start_limited(&format!("ulimit -f {kib}"), "league_manager", arguments);
    let manager = on_a_full_disk(1);
    let answers = register(&manager);
    broken(&answers[2]);
    let accepted = answers.iter().filter(|item| item["status"] == "ACCEPTED");
    let kept = test.count("Registered");
    assert_eq!(kept, accepted.count(), "what was answered is what is kept");
    assert!(fs::read_to_string(&path).unwrap().ends_with('\n'));
    drop(manager);

    let manager = test.manager("");
    let token = token_of(&register(&manager)[0]);
    drop(manager);
    let mut manager = on_a_full_disk(fs::read(&path).unwrap().len() / 1024);
    manager.line("journal.jsonl cannot be written");
    let meta = json!({
        "display_name": "referee:REF01", "version": "1.0.0", "game_types": ["even_odd", "tic_tac_toe"],
        "contact_endpoint": agents[0].url, "max_concurrent_matches": 1,
    });
    let again = json!({"auth_token": token, "referee_meta": meta});
    let again = message("REFEREE_REGISTER_REQUEST", "referee:REF01", again);
    for _ in 0..5 {
        assert_eq!(send(&manager.url(), &again)["status"], "ACCEPTED"); // the manager tries again
    }
    assert!(pages::get(&manager.url(), "/health").2.contains("waiting"));
    assert_eq!(test.count("Started"), 0, "it starts when there is room");
    manager.kill();
    let output = manager.output();
    assert_eq!(output.matches("cannot be written").count(), 1, "{output}");

    let manager = test.manager(arguments);
    wait_until("it is assigned", || test.count("Assigned") == 1);
    drop(manager);
    let before = fs::read(&path).unwrap();
    let report = report("referee:REF01", Some(&token), "R1M1", ["P01", "P02"]);
    let manager = on_a_full_disk(before.len() / 1024);
    broken(&send(&manager.url(), &report));
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
    let refusal = json!({"message_type": "LEAGUE_ERROR", "error_code": "E015"});
    let referee = FakeAgent::new(move |request| {
        let is_round = request["params"]["message_type"] == "ROUND_ANNOUNCEMENT";
        match is_round && !accepts.load(Ordering::SeqCst) {
            true => FakeReply::Answer(refusal.clone()),
            false => FakeReply::Answer(json!({"status": "ok"})),
        }
    });
    let players = [idle_agent(), idle_agent()];
    let manager = test.manager("--players 2");
    let known = token_of(&register_referee(&manager.url(), "REF01", &referee.url, 1));
    register_player(&manager.url(), "P01", &players[0].url);
    let own = token_of(&register_player(&manager.url(), "P02", &players[1].url));
    manager.line("no referee is left");
    drop(manager);

    // The disk is full. The referee refuses its match once more.
    let path = test.league_file("journal.jsonl");
    let limit = format!("ulimit -f {}", fs::read(&path).unwrap().len() / 1024);
    let manager = test.start_limited(&limit, "league_manager", "--players 2");
    manager.line("no referee is left");
    is_willing.store(true, Ordering::SeqCst);
    let told = referee.received("ROUND_ANNOUNCEMENT").len();

    // Its registration with a change is not stored, so it is not told its match again.
    let mut body = json!({"referee_meta": application("new", &referee.url)["player_meta"]});
    body["referee_meta"]["max_concurrent_matches"] = json!(2);
    body["auth_token"] = json!(known);
    let body = message("REFEREE_REGISTER_REQUEST", "referee:REF01", body);
    let answer = send(&manager.url(), &body);
    assert_eq!(answer["error"]["code"], -32603, "{answer}");

    // A registration without a change is answered. The player is told its round again, twice.
    let mut body = application("player:P02", &players[1].url);
    body["auth_token"] = json!(own);
    let body = message("LEAGUE_REGISTER_REQUEST", "player:P02", body);
    for _ in 0..2 {
        let before = players[1].received("ROUND_ANNOUNCEMENT").len();
        assert_eq!(send(&manager.url(), &body)["status"], "ACCEPTED");
        wait_until("P02 is told its round again", || {
            players[1].received("ROUND_ANNOUNCEMENT").len() > before
        });
    }
    assert_eq!(referee.received("ROUND_ANNOUNCEMENT").len(), told);
    let health = pages::get(&manager.url(), "/health").2;
    assert!(health.contains("no referee is left"), "{health}");
}

#[test]
fn start_and_status_describe_the_league() {
    let (test, manager) = with_manager("serve");
    let url = manager.url();
    let agents = [idle_agent(), idle_agent(), idle_agent()];
    let says = |command: &str, code: i32, words: &str| {
        let (came, output) = test.run_tool(&format!("{command} --manager {url}"));
        assert_eq!(came, Some(code), "{command}: {output}");
        assert!(
            output.contains(words),
            "{command}: no {words:?} in {output}"
        );
    };
    let none = "0 of at least 2 players and 0 of at least 1 referee have registered";
    says("status", 0, none);
    says("start", 1, none);
    register_player(&url, "P01", &agents[0].url);
    register_referee(&url, "REF01", &agents[1].url, 1);
    let one = "1 of at least 2 players and 1 of at least 1 referee have registered";
    says("start", 1, one);
    register_player(&url, "P02", &agents[2].url);
    assert_eq!(
        test.count("Started"),
        0,
        "an early START_LEAGUE is not remembered"
    );
    says("start", 0, "the league is running");
    says("start", 0, "the league is running");
    assert_eq!(test.count("Started"), 1);
    says(
        "status",
        0,
        "round 1 of 1, 0 of 1 matches are over: running",
    );
    drop(manager);
    let nobody =
        "could not be reached (connection refused); start one, or name it with --manager URL";
    says("start", 1, nobody);
    says("status", 1, nobody);
}

#[test]
fn agent_registered_before_it_listens_is_called_again() {
    let (_world, manager) = with_manager("--players 2");
    let slow = FakeAgent::new(|_| FakeReply::Close);
    register_player(&manager.url(), "P01", &slow.url);
    wait_until("it is asked again", || {
        slow.requests.lock().unwrap().len() >= 2
    });
}

#[test]
fn files_with_secrets_are_readable_by_their_owner_only() {
    let test = TestLeague::new("");
    let mut league = test.start("league_manager", "local --players 2 --referees 1 --stay");
    league.line("still serving");
    let operator = fs::read_to_string(test.league_file("operator.token")).unwrap();
    let mut secret = cards(&test);
    assert_eq!(secret.len(), 3);
    secret.extend(["operator.token", "journal.jsonl"].map(|name| test.league_file(name)));
    for path in secret {
        check_mode(&path);
    }
    league.kill();
    let shown = league.output() + &league.errors() + &json!(test.logs()).to_string();
    let mut secrets = vec![json!(operator.trim())];
    for path in cards(&test) {
        let mut card: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        secrets.extend(["token", "registration_key"].map(|key| card[key].take()));
    }
    for secret in secrets.iter().filter_map(Value::as_str) {
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
    let ends = [
        ("kill -9", TestProcess::kill as fn(&mut TestProcess)),
        ("closed input", TestProcess::close_stdin),
        ("kill", terminate),
    ];
    for (end, act) in ends {
        let (test, mut launcher) = with_manager("local --lead-sec 60");
        test.starts();
        assert_eq!(processes(&test).len(), 7, "{end}");
        act(&mut launcher);
        wait_until(&format!("all processes end after {end}"), || {
            processes(&test).is_empty()
        });
    }
}

#[test]
fn referees_of_a_class_return_to_their_ports() {
    let test = TestLeague::new("");
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let port = free.unwrap().port().to_string();
    let class = format!("class --host 127.0.0.1 --port {port}");
    let mut manager = test.manager(&class);
    let all_answer = |manager: &TestProcess| {
        let (_, page) = manager.page("/league.json");
        page.matches(r#""reachable":true"#).count() == 4
    };
    wait_until("four referees answer", || all_answer(&manager));
    manager.kill();
    let again = test.manager(&class);
    wait_until("they answer again", || all_answer(&again));
    let seen = test.count("Registered");
    assert_eq!(seen, 4, "nobody had to say a new place");
}

/// The processes whose command line names the folder of this world, where the system lists them.
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
