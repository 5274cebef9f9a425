//! The small league (`bin/small`): it plays, alone and together with the programs of the stack and
//! with the player in Python; it refuses faulty and unauthenticated requests; and it shows no token.
//! Most of it are stories: `tests/scripts/small_league`.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::story::Story;
use support::*;

const PROJECT: &str = env!("CARGO_MANIFEST_DIR");

/// The words of the stories.
const WORDS: [&str; 4] = [
    concat!("let PROJECT ", env!("CARGO_MANIFEST_DIR")),
    "let MESSAGE protocol=league.v2 timestamp=2025-01-15T10:30:00Z conversation_id=conv-1 league_id=league_2025_even_odd message_type",
    r#"let JOINS register_player MESSAGE=LEAGUE_REGISTER_REQUEST player_meta={"display_name":"Fake","version":"1.0.0","game_types":["even_odd"]} /player_meta/contact_endpoint"#,
    "let SHORT system timeouts.move_timeout_sec=2; system timeouts.game_join_ack_timeout_sec=2",
];

#[test]
fn stories_golden() {
    golden::run_scripts_at_once("small_league", || {
        let (mut story, mut earlier) = (Story::new(""), Vec::new());
        for word in WORDS {
            story.tell(word);
        }
        move |line: &str| repeats::counted(&mut earlier, &story.tell(line))
    });
}

#[test]
fn sources_use_protocol_games_and_values_only() {
    for source in sources() {
        let text = fs::read_to_string(Path::new(PROJECT).join(&source)).unwrap();
        for path in text.split("league::").skip(1) {
            let allowed = ["protocol", "games", "values"];
            let is_allowed = allowed.iter().any(|module| path.starts_with(module));
            assert!(is_allowed, "{source}: league::{path:.20}");
        }
        assert!(text.lines().count() <= 400, "{source}");
    }
    let files = fs::read_dir(Path::new(PROJECT).join("bin/small")).unwrap();
    assert_eq!(files.count(), 6);
}

/// Returns the paths of the six files.
fn sources() -> [String; 6] {
    ["player", "referee", "manager", "state", "net", "config"]
        .map(|name| format!("bin/small/{name}.rs"))
}

/// Starts the tool in the folder of a test.
fn tool(test: &TestLeague, words: &str) -> TestProcess {
    let mut command = Command::new(executable("league"));
    command.args(words.split(' '));
    TestProcess::new(command.current_dir(&test.folder))
}

/// Returns a folder in which a small league of so many players may take ports.
fn with_ports(players: u16) -> TestLeague {
    let test = TestLeague::new("");
    let first = free_ports(players + 2);
    let manager = format!("http://localhost:{first}/mcp");
    test.edit("agents", "league_manager.endpoint", json!(manager));
    for (kind, port) in [("referee", first + 1), ("player", first + 2)] {
        let key = format!("network.default_{kind}_port_range");
        test.edit("system", &key, json!([port, port + 99]));
    }
    test
}

#[test]
fn same_seed_is_the_same_league() {
    let [one, other] = [(); 2].map(|()| {
        let test = with_ports(5);
        let mut league = tool(&test, "small --players 5 --seed 7");
        league.wait_for_success();
        tool(&test, "trace R1M1").line("MATCH_RESULT_ACK");
        let output = league.output();
        output[output.find("\nRound 1 of 5").unwrap()..].to_string()
    });
    assert_eq!(one, other);
    assert!(
        one.ends_with("\nThe league was played to its end."),
        "{one}"
    );
    for words in [" even P02 ", "\nRound 5 of 5\n", "\n            all Agent "] {
        check_contains(&one, words);
    }
}

#[test]
fn failed_program_ends_the_league_of_the_tool() {
    let test = with_ports(3);
    test.edit("league", "participants.max_players", json!(2));
    let mut league = tool(&test, "small --players 3");
    assert_eq!(league.wait().code(), Some(1));
    let errors = league.errors();
    check_contains(&errors, "rejected: Maximum players reached\n");
    check_contains(&errors, "the league was not played to its end: P0");
    let manager = league.line(" at http://");
    let url = manager
        .split(' ')
        .find(|word| word.starts_with("http"))
        .unwrap();
    let url = url.trim_end_matches(';');
    wait_until("the manager has ended", || {
        connect(url, TIME_LIMIT).is_err()
    });
}
