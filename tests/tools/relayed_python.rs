//! Players in Python that only call out: `player.py --relay`, and the players that
//! `src/protocol.md` prints, in Python and in a shell.

use super::control::start_class;
use super::python::{REST, SCRIPT, check_failure, count, write_with_choose};
use super::relay::connect_command;
use super::support::*;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const PAGE: &str = include_str!("../../src/protocol.md");
/// The sentence of a player that its manager does not call.
const UNCALLED: &str = "P01: nobody can call this machine: start again with --relay";

/// Starts a player with its id as its name, and with this more.
fn start(test: &TestLeague, manager: &str, id: &str, more: &str) -> TestProcess {
    test.python(SCRIPT, manager, &format!("--player-id {id} {more}"))
}

/// Writes the block of the page that begins with this fence and polls. Returns its path.
fn write_printed(test: &TestLeague, fence: &str, name: &str) -> String {
    let page = PAGE.replace('\r', "");
    let blocks = page.split("```").skip(1).step_by(2);
    let mut blocks = blocks.filter_map(|block| block.strip_prefix(fence));
    let block = blocks.find(|block| block.contains("relay_next")).unwrap();
    let path = test.folder.join(name);
    fs::write(&path, block).unwrap();
    path.to_str().unwrap().into()
}

/// Starts a printed player, as the page says.
fn start_printed(program: &str, path: &str, manager: &TestProcess, name: &str) -> TestProcess {
    let manager = manager.url().replace("/mcp", "");
    TestProcess::new(Command::new(program).args([path, &manager, name]))
}

/// Checks that a league has played this many matches, and that nobody has lost technically.
fn check_results(test: &TestLeague, matches: usize, players: usize) {
    assert_eq!(test.technical_losses(), (matches, 0));
    let registered = test.events("Registered");
    let ids = registered.iter().map(|line| text_of(&line["id"]));
    let ids: BTreeSet<&str> = ids.filter(|id| id.starts_with('P')).collect();
    assert_eq!(ids.len(), players, "{ids:?}");
}

#[test]
fn relayed_and_direct_python_players_play_all_matches() {
    if !has_python() {
        return;
    }
    let (test, mut manager) = with_manager("serve --players 4 --referees 1");
    let options = [
        ("P01", "--relay"),
        ("P02", "--relay"),
        ("P03", ""),
        ("P04", ""),
    ];
    let mut players = options.map(|(id, more)| start(&test, &manager.url(), id, more));
    let _referee = test.agent(&manager, "REF01", "");
    manager.wait_for_success();
    for (player, (id, _)) in players.iter_mut().zip(options) {
        player.wait_for_success();
        player.line(&format!("player is {id}"));
        player.line("R3M");
        player.line("You are ");
        assert_eq!(player.errors(), "");
    }
    test.check_played(4);
    check_results(&test, 6, 4);
}

#[test]
fn killed_players_and_a_killed_manager_lose_nothing() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("league scheduling.cycles=40; system retry_policy.base_delay_sec=1");
    let options = "serve --players 3 --referees 1";
    let mut manager = test.manager(options);
    let url = manager.url();
    let start = |id: &str, more: &str| start(&test, &url, id, more);
    let players = [("P01", "--relay"), ("P02", "--relay"), ("P03", "")];
    let mut players = players.map(|(id, more)| start(id, more));
    let mut referee = test.agent(&manager, "REF01", "");

    // Two players are killed, and started again, one of them for the first time with a relay.
    wait_until("matches are played", || test.count("Recorded") > 5);
    for (index, id) in [(0, "P01"), (2, "P03")] {
        let file = format!("agents/{id}.json");
        let before = test.data(&file);
        check_mode(&test.folder.join("data").join(&file));
        assert_eq!(text_of(&before["relay_token"]).len(), 32);
        players[index].kill();
        players[index] = start(id, "--relay");
        players[index].line(&format!("player is {id}"));
        let after = test.data(&file);
        for name in ["relay_token", "registration_key", "token", "agent_id"] {
            assert_eq!(after[name], before[name]);
        }
    }

    // The manager is killed, and started again: it has no relays.
    let played = test.count("Recorded");
    wait_until("matches are played", || test.count("Recorded") > played + 5);
    manager.restart(&test, options);
    manager.wait_for_success();
    referee.wait_for_success();
    players.iter_mut().for_each(TestProcess::wait_for_success);
    check_results(&test, 120, 3);
    let errors = players.map(|player| player.errors());
    assert!(!errors.concat().contains("nobody can call"), "{errors:?}");
}

#[test]
fn relayed_player_stays_for_the_next_league() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("league scheduling.round_announcement_lead_sec=0");
    let mut class = start_class(&test);
    let url = class.url();
    let player = |id: &str, more: &str| start(&test, &url, id, &format!("--stay {more}"));
    let connected = test.command(
        "player",
        "--player-id P03 --display-name player --port 0 --stay",
    );
    let connected = connect_command(&test, &url, &connected);
    let players = [player("P01", "--relay"), player("P02", ""), connected];
    for league in 1..=2 {
        wait_until("all have rehearsed", || {
            let output = class.output_so_far();
            let relayed = output.matches("P01 player plays, through the relay");
            let direct = output.matches("P02 player plays\n");
            let connected = output.matches("P03 player plays, through the relay");
            [relayed.count(), direct.count(), connected.count()] == [league; 3]
        });
        class.write(b"start\n");
        wait_until("the league is over", || {
            class.output_so_far().matches("Champion").count() == league
        });
        class.write(b"new-lobby\n");
    }
    for player in &players {
        assert!(!player.errors().contains("nobody"), "{}", player.errors());
    }
}

#[test]
fn relay_that_is_closed_before_the_registration_is_opened_again() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    let manager = FakeAgent::new(|request| {
        FakeReply::Answer(match request["method"].as_str() {
            Some("relay_call") => {
                let context = json!({"field": "relay_token", "problem": "there is no such relay"});
                let error = json!({"error_code": "E012", "context": context});
                message("LEAGUE_ERROR", "league_manager", error)
            }
            _ => json!({"contact_endpoint": "http://127.0.0.1:1/"}),
        })
    });
    let _player = start(&test, &manager.url, "P01", "--relay");
    wait_until("it opens and registers twice", || {
        manager.request_count() >= 4
    });
}

#[test]
fn manager_without_a_relay_is_named() {
    if !has_python() {
        return;
    }
    let (test, manager) = with_manager("");
    let player = start(&test, &manager.url(), "P01", "--relay");
    let sentence = format!(
        "the league manager at {} has no relay: ask your",
        manager.url()
    );
    check_failure(player, 1, &sentence);
}

#[test]
fn player_that_is_not_called_names_the_option() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("");
    for (file, name) in [(SCRIPT, "player.py"), (REST, "league_player.py")] {
        let text = fs::read_to_string(file).unwrap();
        let text = text.replace("MAX_SILENCE = 120 ", "MAX_SILENCE = 12 ");
        let text = text.replace("MAX_DELAY = 5 ", "MAX_DELAY = 10 ");
        let text = text.replace("CHECK_INTERVAL = 2 ", "CHECK_INTERVAL = 0.1 ");
        fs::write(test.folder.join(name), text).unwrap();
    }
    let script = test.folder.join("player.py");
    let start = |manager: &FakeAgent, data: &str| {
        let player = test.python(&script, &manager.url, &format!("--data {data}"));
        player.line("is P01");
        player
    };
    let other = FakeAgent::new(|request| fake::accepts(request, fake::TOKEN, false));
    let other = start(&other, "other"); // its manager does not prove itself, and need not call
    // The ping of the fourth manager overtakes its answer to the registration.
    let early = FakeAgent::new(|request| {
        let player = text_of(&request["params"]["player_meta"]["contact_endpoint"]).to_string();
        let ping = json!({"auth_token": fake::TOKEN});
        thread::spawn(move || call(&player, "ping", ping));
        thread::sleep(Duration::from_millis(500));
        fake::accepts(request, fake::TOKEN, true)
    });
    let early = start(&early, "early");
    let managers = [(); 3].map(|()| fake::manager());
    let uncalled = start(&managers[0], "uncalled");
    let called = start(&managers[1], "called");
    fake::converse(&called.url(), "manager announces R1M1: ok");
    let pinged = start(&managers[2], "pinged");
    let ping = json!({"auth_token": fake::TOKEN});
    assert_eq!(call(&pinged.url(), "ping", ping)["result"], json!({}));
    uncalled.wait_for_error(UNCALLED);

    // It says so once. All register again after two more seconds, and the others have said nothing.
    let registers_again = |manager: &FakeAgent| {
        wait_until("it registers again", || {
            manager.received("LEAGUE_REGISTER_REQUEST").len() > 1
        });
    };
    managers.iter().for_each(registers_again);
    assert_eq!(count(&uncalled, "nobody"), 1);
    for player in [called, pinged, early, other] {
        assert_eq!(player.errors(), "");
    }
}

/// Else the polling threads would send an answer that the manager refuses for ever.
#[test]
fn answer_that_is_too_long_is_cut() {
    if !has_python() {
        return;
    }
    for body in ["return 'x' * 20_000", "raise ValueError('x' * 20_000)"] {
        let test = TestLeague::new("");
        let mut manager = test.serve("--players 2 --referees 1");
        let script = write_with_choose(&test, body);
        let mut long = test.python(&script, &manager.url(), "--player-id P01 --relay");
        let _others = test.agents(&manager, "REF01 P02");
        manager.wait_for_success();
        long.wait_for_success();
        let result = &test.events("Recorded")[0]["result"];
        assert_eq!(result["winner"], "P02", "{result}");
        let reason = text_of(&result["details"]["reason"]);
        check_contains(reason, "xxx");
    }
}

#[test]
fn printed_python_player_plays_across_a_restart_of_the_manager() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("league scheduling.cycles=15; system retry_policy.base_delay_sec=1");
    let options = "serve --players 4 --referees 1";
    let mut manager = test.manager(options);
    let path = write_printed(&test, "python\n", "relayed.py");
    let mut printed = ["Ada", "Bob"].map(|name| start_printed(PYTHON, &path, &manager, name));
    wait_until("both register", || test.count("Registered") == 2);
    let _others = test.agents(&manager, "REF01 P03 P04");
    wait_until("matches are played", || test.count("Recorded") > 10);
    manager.restart(&test, options);
    manager.wait_for_success();
    for (player, name) in printed.iter_mut().zip(["Ada", "Bob"]) {
        player.wait_for_success();
        player.line(&format!("{name} is P0"));
    }
    check_results(&test, 90, 4);
}

#[test]
fn printed_shell_player_plays() {
    let is_installed = |name: &&str| {
        let mut command = Command::new(name);
        command
            .arg("--help")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok()
    };
    if let Some(name) = ["sh", "curl", "jq", "openssl"]
        .iter()
        .find(|name| !is_installed(name))
    {
        print_left_out(&format!("the player in a shell: {name} is not installed"));
        return;
    }
    let (test, mut manager) = with_manager("serve --players 3 --referees 1");
    let path = write_printed(&test, "sh\n", "relayed.sh");
    let printed = start_printed("sh", &path, &manager, "");
    printed.line("\"P01\"");
    let _others = test.agents(&manager, "REF01 P02 P03");
    manager.wait_for_success();
    test.check_played(3);
    check_results(&test, 3, 3);
    for line in test.events("Recorded") {
        let choice = &line["result"]["details"]["choices"]["P01"];
        assert!(choice.is_null() || choice == "odd", "{line}");
    }
}

#[test]
fn players_that_only_call_out_are_examined() {
    if !has_python() {
        return;
    }
    let test = TestLeague::new("system timeouts.game_join_ack_timeout_sec=2");
    let relayed = |url: &str| start(&test, url, "P01", "--relay");
    let path = write_printed(&test, "python\n", "relayed.py");
    let printed = |url: &str| {
        let manager = url.replace("/mcp", "");
        TestProcess::new(Command::new(PYTHON).args([&path, &manager, "Ada"]))
    };
    let players: [&dyn Fn(&str) -> TestProcess; 2] = [&relayed, &printed];
    for (player, name) in players.into_iter().zip(["relayed", "printed"]) {
        let mut check = test.manager("check");
        let _player = player(&check.url());
        assert!(check.wait().success(), "{name}: {}", check.output());
        check_contains(&check.output(), "WOULD PLAY in our league");
    }
}

#[test]
fn player_that_hangs_in_one_match_plays_the_others() {
    if !has_python() {
        return;
    }
    let edits = "system timeouts.move_timeout_sec=1; system retry_policy.base_delay_sec=0.1";
    let test = TestLeague::new(&format!("{edits}; league scheduling.cycles=4"));
    let mut manager = test.serve("--players 2 --referees 1 --lead-sec 0");
    let hangs = "import time; time.sleep(30 if turn.match_id == 'R1M1' else 0); return 'odd'";
    let script = write_with_choose(&test, hangs);
    let relayed = "--player-id P01 --relay --data relayed";
    let _player = test.python(&script, &manager.url(), relayed);
    let _agents = test.agents(&manager, "REF01 P02");
    manager.wait_for_success();
    assert_eq!(test.technical_losses(), (4, 1));
}
