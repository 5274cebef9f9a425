//! The examination of a player by `league check`. Our players pass, and one with a fault is told
//! what it is.

use super::support::*;
use std::process::Command;

/// A player of the tool, and the id that it asks for.
const PLAYERS: [&str; 2] = ["random --player-id P02", "mcp:odd"];

#[test]
fn own_players_pass() {
    for player in PLAYERS {
        let test = TestLeague::new("system timeouts.move_timeout_sec=4");
        let mut check = test.manager("check");
        let options = format!("play {player} --manager {}", check.url());
        let player = test.start("player", &options);
        assert_eq!(check.wait().code(), Some(0), "{}", check.output());
        let output = check.output();
        check_contains(&output, "WOULD PLAY in our league");
        assert!(!output.contains("warn"), "{output}");
        player.line(" in league_2025_even_odd");
        let leagues = test.folder.join("data/leagues");
        assert!(!leagues.exists(), "it leaves no files of a league");
    }
}

#[test]
fn small_player_lacks_what_chapter_two_adds() {
    let test = TestLeague::new("");
    let mut check = test.manager("check");
    test.edit("agents", "league_manager.endpoint", json!(check.url()));
    let mut command = Command::new(executable("small_player"));
    command.args(["--port", &free_port().to_string()]);
    let _player = TestProcess::new(command.current_dir(&test.folder));
    assert_eq!(check.wait().code(), Some(0), "{}", check.output());
    let output = check.output();
    for lack in [
        "its tools are listed",
        "a call for an unknown match is refused",
    ] {
        let line = output.lines().find(|line| line.contains(lack));
        assert!(line.unwrap().starts_with("warn"), "{output}");
    }
}

#[test]
fn player_with_a_fault_is_told_it() {
    let test = TestLeague::new("system retry_policy.max_retries=1");
    let mut check = test.manager("check");
    let player = FakeAgent::new(|request| valid_reply("P01", "Even", request));
    register_player(&check.url(), "P01", &player.url);
    assert_eq!(check.wait().code(), Some(1));
    check.wait_for_error(
        "would NOT play in our league: it answered choose_parity wrongly: parity_choice: got \"Even\"",
    );
}
