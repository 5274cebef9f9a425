//! The players at their wires: the same scripts for the player in Rust, the one in Python and, where it
//! promises the same, the small one; and how players and referees join their league. The decisions of
//! the player in Rust are tested without a wire in `invitations.rs`.

use super::support::fake::{self, converse, message_of_line};
use super::support::*;
use std::io::Write;
use std::thread;

const BIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bin");

/// The words for the registration of a player, and of a referee.
const PLAYER: Words = &[
    ("REGISTRATION", "LEAGUE_REGISTER_REQUEST"),
    ("META", "player_meta"),
];
const REFEREE: Words = &[
    ("REGISTRATION", "REFEREE_REGISTER_REQUEST"),
    ("META", "referee_meta"),
];

/// The configuration of a manager that is missed soon.
const OFTEN: &str = "system timeouts.ping_interval_sec=0.2; system retry_policy.base_delay_sec=2";

type Words = &'static [(&'static str, &'static str)];

/// Runs the scripts of some folders at once. `how` has the words that start the agent, usually, and if
/// it is impatient.
fn check(folders: &[&str], kind: Words, id: &str, how: [&str; 2]) {
    let name = match how[0] {
        "small" => "", // it has no such option
        _ => " --display-name Ada",
    };
    let named = how[0].to_string() + name;
    let template = format!("`{PYTHON} {BIN}/player.py`");
    let own = [
        ("AGENT", id),
        ("KIND", how[0]),
        ("IMPATIENT", how[1]),
        ("PLAYER", &named),
        ("TEMPLATE", &template),
        ("OFTEN", OFTEN),
    ];
    let words = [kind, &own].concat();
    thread::scope(|scope| {
        for folder in folders {
            scope.spawn(|| story::run_as(folder, &words));
        }
    });
}

#[test]
fn small_player_golden() {
    check(&["every_player"], PLAYER, "P01", ["small"; 2]);
}

#[test]
fn player_in_rust_golden() {
    let folders = ["every_player", "players", "agents", "rust_player"];
    check(&folders, PLAYER, "P01", [""; 2]);
}

#[test]
fn player_in_python_golden() {
    let folders = ["every_player", "players", "agents", "python_player"];
    if has_python() {
        check(&folders, PLAYER, "P01", ["python", "impatient"]);
    }
}

#[test]
fn referee_golden() {
    check(&["agents"], REFEREE, "REF01", [""; 2]);
}

#[test]
fn remote_player_names_its_own_address() {
    let Some(own) = own_address() else { return };
    let test = TestLeague::new("");
    // No agent calls the manager at this endpoint.
    let anywhere = format!("--host 0.0.0.0 --contact-endpoint http://{own}:1/mcp");
    let manager = test.manager(&anywhere);
    let remote = format!("http://{own}:{}", manager.port());
    let near = test.start("player", &format!("--manager {remote} --host 127.0.0.1"));
    near.line("listening on http://localhost:");
    let player = test.start("player", &format!("--manager {remote} --player-id P07"));
    player.line("is P07");
    let endpoint = format!("http://{own}:{}/mcp", player.port());
    player.line(&format!("others reach us at {endpoint}"));
    assert_eq!(test.data("agents/P07.json")["endpoint"], endpoint);
    converse(&endpoint, "true asks R1M1: E015"); // the player is reachable there

    if has_python() {
        let script = format!("{BIN}/player.py");
        let player = test.python(script, &remote, "--player-id P08");
        player.line("is P08");
        check_contains(&player.url(), &format!("http://{own}:"));
        converse(&player.url(), "true asks R1M1 player_id=P08: E015");
    }
}

#[test]
fn result_in_hand_at_the_end_is_saved() {
    let (test, manager) = (TestLeague::new(""), fake::manager());
    let mut player = test.start(
        "player",
        &format!("--manager {} --player-id P01", manager.url),
    );
    let url = player.url();
    converse(&url, "manager announces R1M1: ok\ntrue invites R1M1: joins");

    // One half of GAME_OVER comes before the end of the league, the other half after it.
    // (The library itself waits for the whole of a body of up to 1,024 bytes.)
    let mut params = message_of_line("true ends R1M1 P01");
    params["game_result"]["reason"] = json!("so it went ".repeat(100));
    let body =
        json!({"jsonrpc": "2.0", "method": "notify_match_result", "params": params, "id": 1});
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = connect(&url, time_limit()).unwrap();
    let (first, second) = body.split_at(20);
    stream.write_all((head + first).as_bytes()).unwrap();
    for _ in 0..50 {
        converse(&url, "manager tells: ok"); // meanwhile a worker takes the first half
    }
    converse(&url, "manager ends: ok");
    stream.write_all(second.as_bytes()).unwrap();
    player.wait_for_success();
    let history = test.data("players/P01/history.json");
    assert_eq!(history["matches"][0]["match_id"], "R1M1");
}
