//! The examination of a player by `league check`: scripts of what a person sees.

use super::support::golden::run_scripts;
use super::support::*;
use std::fs;
use std::process::Command;

/// Starts the player of a kind, which registers at this manager.
fn start_player(test: &TestLeague, kind: &str, manager: &str) -> Option<TestProcess> {
    let own = match kind {
        "random" => "play random",
        "by hand" => "play mcp:odd --until-stdin-closes",
        "member of another league" => "play random --player-id P01",
        "small" => {
            test.edit("agents", "league_manager.endpoint", json!(manager));
            let mut command = Command::new(executable("small_player"));
            command.args(["--port", &free_port().to_string()]);
            return Some(TestProcess::new(command.current_dir(&test.folder)));
        }
        fault => {
            start_fake(fault, manager);
            return None;
        }
    };
    Some(test.spawn("league", &format!("{own} --manager {manager}")))
}

/// Starts a fake player with a fault.
fn start_fake(fault: &str, manager: &str) {
    let kind = fault.to_string();
    let player = FakeAgent::with_paths(move |path, request| {
        let is_asked =
            request["params"]["match_id"] == "REHEARSAL" && is_parity_call(&request["params"]);
        match &*kind {
            _ if path == "/nowhere" => fake::status("404 Not Found", "<p>Nothing is here"),
            "error" if is_asked => FakeReply::Body(ERROR.into()),
            "slow" if is_asked => FakeReply::Silence,
            "hangs up" if request["method"] == "tools/list" => FakeReply::Close,
            "hangs up" if request["method"] == "notify_round" => FakeReply::Body(REFUSED.into()),
            "wrong case" => valid_reply("P01", "Even", request),
            _ if request["method"] == "tools/list" => FakeReply::Body(NO_TOOLS.into()),
            _ => valid_reply("P01", "even", request),
        }
    });
    let endpoint = match fault {
        "dead" => format!("http://127.0.0.1:{}/mcp", free_port()),
        "wrong path" => player.url.replace("/mcp", "/nowhere"),
        _ => player.url,
    };
    register_player(manager, "P01", &endpoint);
}

const ERROR: &str =
    r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "its choose fails"}}"#;
const REFUSED: &str = r#"{"jsonrpc": "2.0", "id": 1, "result": {"message_type": "LEAGUE_ERROR"}}"#;
const NO_TOOLS: &str = r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}"#;

/// Returns what people see of an examination.
fn examine(kind: &str) -> String {
    let edits = "system timeouts.move_timeout_sec=3; system retry_policy.base_delay_sec=0.1";
    let test = TestLeague::new(edits);
    let mut check = test.manager("check");
    let saved = test.folder.join("data/agents/P01.json");
    let member = json!({"agent_id": "P01", "registration_key": "0123456789abcdef", "league_id": "other",
        "manager": check.url(), "endpoint": "http://127.0.0.1:8101/mcp", "token": "tok-p01-0123",
        "proves_itself": true, "is_over": false});
    let is_member = kind == "member of another league";
    if is_member {
        fs::create_dir_all(saved.parent().unwrap()).unwrap();
        fs::write(&saved, member.to_string()).unwrap();
    }

    let player = start_player(&test, kind, &check.url());
    let mut end = String::new();
    if is_member {
        check.line("rejected "); // the examination goes on
    } else {
        end = format!("\nexit {}", check.wait().code().unwrap());
    }
    let mut seen = check.output_so_far() + &end;
    if let Some(mut player) = player {
        if kind == "by hand" {
            player.line("Champion: ");
            player.close_stdin(); // else it serves on
        }
        let end = player.wait().code().unwrap();
        seen += &format!("\nthe player (exit {end}):\n");
        seen += &(player.output() + "\n" + &player.errors());
    }
    if is_member {
        let kept: Value = json_of(&fs::read_to_string(saved).unwrap());
        seen += &format!("\nits token: {}", kept["token"]);
    }
    assert!(
        !test.folder.join("data/leagues").exists(),
        "it leaves no files of a league"
    );
    shown(&seen)
}

/// Returns the lines of an output without ports and answers of the player.
fn shown(output: &str) -> String {
    let mut lines = Vec::new();
    for line in output.lines().filter(|line| !line.is_empty()) {
        let (line, _) = line.split_once(", got {").unwrap_or((line, ""));
        let words = line
            .split(' ')
            .map(|word| match word.strip_prefix("http://") {
                Some(_) => "URL",
                None => word,
            });
        lines.push(words.collect::<Vec<&str>>().join(" "));
    }
    lines.join("\n")
}

#[test]
fn golden() {
    run_scripts("check", || {
        let mut earlier = Vec::new();
        move |kind: &str| repeats::counted(&mut earlier, &examine(kind))
    });
}
