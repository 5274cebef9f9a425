//! `bin/player.py`, the player's template in Python: one short file, which plays, and bears what strangers send.

mod support;

use serde_json::json;
use std::{fs, process::Command};
use support::*;

#[test]
fn the_template_in_python_plays_and_survives_what_strangers_send() {
    if !Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|it| it.status.success())
    {
        return eprintln!("left out: there is no python3");
    }
    let world = World::new(&[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bin/player.py");
    let text = fs::read_to_string(script).unwrap();
    assert!(
        text.lines().count() <= 120 && text.lines().all(|line| line.chars().count() <= 120),
        "it is to be read"
    );
    let mut league = world.start(
        "league_manager",
        &[
            "local",
            "--players",
            "2",
            "--cycles",
            "8",
            "--mine",
            &format!("python3 {script}"),
        ],
    );
    assert!(league.wait().success());
    let output = league.output();
    let row: Vec<Vec<&str>> = output
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let begins = |with: &[&str]| row.iter().any(|words| words.starts_with(with));
    assert!(
        begins(&["P01", "player.py", "8"]) && begins(&["P01", "player.py", "0"]),
        "{output}"
    ); // no technical loss

    let manager = world.manager(&[]);
    let start = || {
        let mut command = Command::new("python3");
        command.args([
            script,
            "--manager",
            &manager.url(),
            "--port",
            "0",
            "--player-id",
            "P01",
            "--until-stdin-closes",
        ]);
        Agent::new(
            command
                .args(["--config", "config", "--data", "data"])
                .current_dir(&world.folder),
        )
    };
    let player = start();
    player.line("is P01");
    let card = world.data("agents/P01.json");
    let mut second = start();
    assert_eq!(second.wait().code(), Some(1));
    assert!(second.stderr.lock().unwrap().contains("--data"));
    let url = player.url();
    let posted = |body: &str| http("POST", &url, "", body.as_bytes());
    assert!(posted("{").1.contains("-32700") && posted("[]").1.contains("-32600"));
    assert_eq!(
        (
            posted(&" ".repeat(300_000)).0,
            posted(r#"{"jsonrpc":"2.0","method":"ping"}"#).0
        ),
        (413, 202)
    );
    assert_eq!(call(&url, "no_such", json!({}))["error"]["code"], -32601);
    assert_eq!(call(&url, "ping", json!({}))["result"], json!({}));
    let round = |token: Option<&str>| {
        let entry = json!({"match_id": "R1M1", "game_type": "even_odd", "player_A_id": "P01", "player_B_id": "P02",
            "referee_endpoint": "http://localhost:1/mcp", "match_token": "tok-p01-right"});
        let body = json!({"league_id": card["league_id"], "round_id": 1, "matches": [entry], "auth_token": token});
        send(&url, &message("ROUND_ANNOUNCEMENT", "league_manager", body))
    };
    assert_eq!(
        [round(None), round(Some("tok-p01-0"))].map(|it| it["error_code"].clone()),
        [json!("E011"), json!("E012")]
    );
    assert_eq!(round(card["token"].as_str()), json!({"status": "ok"}));
    let of_match = |message_type: &str, token: &str, mut body: serde_json::Value| {
        (body["match_id"], body["game_type"], body["auth_token"]) =
            (json!("R1M1"), json!("even_odd"), json!(token));
        body["conversation_id"] = json!("conv-r1m1");
        send(&url, &message(message_type, "referee:REF01", body))
    };
    let invitation = json!({"league_id": card["league_id"], "round_id": 1, "role_in_match": "PLAYER_A", "opponent_id": "P02"});
    let choose = json!({"player_id": "P01", "deadline": now()});
    assert_eq!(
        of_match(
            "GAME_INVITATION",
            "tok-p01-right",
            json!({"opponent_id": "P02"})
        )["error_code"],
        "E003"
    );
    assert_eq!(
        of_match("CHOOSE_PARITY_CALL", "tok-p01-right", choose.clone())["error_code"],
        "E015"
    );
    assert_eq!(
        of_match("GAME_INVITATION", "tok-p01-wrong", invitation.clone())["error_code"],
        "E012"
    );
    assert_eq!(
        of_match("GAME_INVITATION", "tok-p01-right", invitation)["accept"],
        true
    );
    assert_eq!(
        of_match("CHOOSE_PARITY_CALL", "tok-p01-wrong", choose.clone())["error_code"],
        "E012"
    );
    assert_eq!(
        of_match("CHOOSE_PARITY_CALL", "tok-p01-right", choose)["parity_choice"],
        "even"
    );
    let error = json!({"error_code": "E001", "error_description": "TIMEOUT_ERROR", "affected_player": "P01",
        "action_required": "CHOOSE_PARITY_RESPONSE", "context": {"problem": "was silent, with tok-p01-00000000"}});
    assert_eq!(
        of_match("GAME_ERROR", "tok-p01-right", error),
        json!({"status": "ok"})
    );
    let shown = "P01: R1M1: E001 was silent, with tok-p01-***";
    until(shown, || {
        player.stderr.lock().unwrap().contains(shown).then_some(())
    });

    drop(player);
    start().line("is P01"); // known again, by its card
    assert_eq!(world.data("agents/P01.json")["token"], card["token"]);
}
