//! `league play mcp`: the choice is made by calls of `next_turn` and `make_choice`.

use super::support::*;
use crate::players::by_hand::{ByHand, MakeChoice};
use crate::players::strategies::{PastMatch, Turn};
use league::json::decode;
use league::player::PlayerHooks;
use league::program::terminal::Terminal;
use std::{
    collections::BTreeSet,
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Starts a league of two, in which P01's choices come by hand, and P02 always chooses even.
fn league(cycles: u32, move_timeout: u32, strategy: &str) -> (TestLeague, [TestProcess; 4]) {
    let test = TestLeague::new(&format!(
        "league scheduling.cycles={cycles}; system timeouts.move_timeout_sec={move_timeout}"
    ));
    let manager = test.serve("--players 2");
    let by_hand = test.agent(&manager, "P01", &format!("play {strategy}"));
    let other = test.agent(&manager, "P02", "play even");
    let referee = test.agent(&manager, "REF01", "");
    (test, [manager, referee, by_hand, other])
}

/// Calls a tool. Returns its result, or the error code with which it refuses.
fn tool(url: &str, name: &str, arguments: Value) -> Result<Value, String> {
    let mut result = call_tool(url, name, arguments);
    match result["isError"] == true {
        true => {
            let refusal: Value = json_of(text_of(&result["content"][0]["text"]));
            Err(text_of(&refusal["error_code"]).into())
        }
        false => Ok(result["structuredContent"].take()),
    }
}

/// Returns the choices of P01 in its matches.
fn choices(player: &TestProcess) -> Vec<Value> {
    let state = tool(&player.url(), "get_player_state", json!({})).unwrap();
    let matches = list_of(&state["matches"]).iter();
    let choices = matches.map(|past| past["result"]["choices"]["P01"].clone());
    choices.collect()
}

/// Returns a turn in a match with so many seconds left, after sixty matches.
fn turn(match_id: &str, seconds: u64) -> Turn {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let past = |n| PastMatch {
        round_id: 1,
        game_type: "even_odd".into(),
        match_id: format!("R{n}M1"),
        ..Turn::sample().history[0].clone()
    };
    Turn {
        match_id: match_id.into(),
        deadline,
        history: Arc::new((1..=60).map(past).collect()),
        ..Turn::sample()
    }
}

#[test]
fn most_urgent_turn_is_offered_first() {
    let (by_hand, late, soon) = (ByHand::default(), turn("R61M1", 250), turn("R62M1", 150));
    let choose_in = |match_id: &str, choice: &str, move_number: u32| {
        let made = json!({"match_id": match_id, "choice": choice, "move_number": move_number});
        by_hand.make_choice(&decode::<MakeChoice>(&made).unwrap())
    };
    let choose = |match_id: &str, choice: &str| choose_in(match_id, choice, 1);
    let offered = |match_id: &str| {
        until(&format!("{match_id} is offered"), || {
            Some(by_hand.next_turn()).filter(|turn| turn["match_id"] == match_id)
        })
    };
    thread::scope(|scope| {
        let late = scope.spawn(|| by_hand.ask(&late));
        offered("R61M1");
        let soon = scope.spawn(|| by_hand.ask(&soon));
        let offer = offered("R62M1");
        let seconds_left = offer["seconds_left"].as_u64().unwrap();
        assert!((90..=148).contains(&seconds_left), "{offer}");
        let history = list_of(&offer["history"]);
        assert_eq!(
            (history.len(), &history[49]["match_id"]),
            (50, &json!("R60M1"))
        );
        assert_eq!(offer["legal_moves"], json!(["even", "odd"]));
        assert_eq!(offer["move_number"], 1);
        assert!(choose_in("R62M1", "even", 99).is_err());
        let wrong = choose("R62M1", "Even").unwrap_err();
        assert_eq!(wrong.field_name(), Some("choice"));
        choose("R62M1", "even").unwrap();
        assert!(choose("R62M1", "odd").is_err()); // it is chosen
        offered("R61M1");
        choose("R61M1", "odd").unwrap();
        let [soon, late] = [soon, late].map(|thread| thread.join().unwrap().unwrap());
        assert_eq!([soon, late], ["even", "odd"]);
    });
    assert_eq!(by_hand.ask(&turn("R63M1", 2)), None); // at once: it is two seconds before the deadline
    by_hand.note("a\nnote");
    by_hand.print("the end", Terminal::default());
    by_hand.over();
    for _ in 0..2 {
        let over = by_hand.next_turn(); // told until the next choice
        let told = json!({"status": "over", "notes": ["a\u{fffd}note", "the end"]});
        assert_eq!(over, told);
    }
}

#[test]
fn league_is_played_through_the_tools() {
    let (test, [mut manager, _referee, player, _other]) = league(3, 120, "mcp:even");
    let url = player.url();
    let next = || {
        until("there is news", || {
            let turn = tool(&url, "next_turn", json!({})).unwrap();
            (turn["status"] != "wait").then_some(turn)
        })
    };
    let choose = |match_id: &str, choice: &str| {
        let made = json!({"match_id": match_id, "choice": choice});
        tool(&url, "make_choice", made)
    };
    for round in 1..=3 {
        let (match_id, turn) = (format!("R{round}M1"), next());
        let told = ["status", "match_id", "opponent_id"].map(|key| text_of(&turn[key]));
        assert_eq!(told, ["your_turn", &match_id, "P02"]);
        assert_eq!(list_of(&turn["table"]).len(), 2, "it has the names");
        let history = list_of(&turn["history"]);
        assert_eq!(history.len(), round - 1);
        for past in history {
            let won = past["result"]["winner_player_id"] == "P01";
            let outcome = ["you lost", "you won"][usize::from(won)];
            assert_eq!(past["outcome"], outcome, "{past}");
        }
        let left = turn["seconds_left"].as_u64().unwrap();
        assert!((60..=118).contains(&left), "{turn}");
        assert_eq!(choose(&match_id, "Odd"), Err("E004".into()));
        assert_eq!(choose("R9M9", "odd"), Err("E015".into()));
        let made = json!({"match_id": match_id, "choice": "odd", "comment": "it pays"});
        assert_eq!(tool(&url, "make_choice", made).unwrap()["choice"], "odd");
    }
    let end = next();
    assert_eq!(end["status"], "over", "{end}");
    let notes: Vec<&str> = list_of(&end["notes"]).iter().map(text_of).collect();
    let [result, champion] = notes[..] else {
        panic!("{end}")
    };
    assert!(result.starts_with("R3M1: "), "{end}");
    check_contains(result, "you (odd)"); // the winner stands first
    assert!(champion.starts_with("Champion: "), "{end}");
    manager.wait_for_success();
    assert_eq!(choices(&player), ["odd"; 3]); // it still answers: mcp implies --stay
    let trace = test.run_tool("trace R2M1").1;
    assert!(trace.contains("  P01 chose odd: it pays\n"), "{trace}");

    // A person plays on a page, which other pages cannot use.
    let (status, page) = http("GET", &url.replace("/mcp", "/"), "", b"");
    assert_eq!(status, 200);
    check_contains(&page, "make_choice");
    let call = br#"{"jsonrpc": "2.0", "id": 1, "method": "next_turn", "params": {}}"#;
    let foreign_page = http("POST", &url, "Origin: http://evil.example\r\n", call);
    assert_eq!(foreign_page.0, 403);
}

#[test]
fn fallback_plays_if_no_choice_comes() {
    let (_test, [mut manager, _referee, player, _other]) = league(1, 4, "mcp:odd");
    manager.wait_for_success();
    assert_eq!(choices(&player), ["odd"]);
    let end = tool(&player.url(), "next_turn", json!({})).unwrap();
    let words = "R1M1: no choice came in time; odd chose odd";
    assert_eq!([&end["status"], &end["notes"][0]], ["over", words]);
    player.wait_for_error(words);
}

#[test]
fn unannounced_match_is_not_offered() {
    // A manager that proves itself announces each match.
    let manager = FakeAgent::new(|request| fake::accepts(request, fake::TOKEN, false));
    let test = TestLeague::new("");
    let arguments = format!("play mcp:odd --manager {}", manager.url);
    let player = test.start("player", &arguments);
    player.line(" is P01");
    fake::converse(&player.url(), "strange invites R7M1: joins");
    let deadline = league::values::Timestamp::now().plus(Duration::from_secs(60));
    let call = fake::message_of_line(&format!("strange asks R7M1 deadline={deadline}"));
    let began = Instant::now();
    assert_eq!(send(&player.url(), &call)["parity_choice"], "odd"); // at once, by the fallback
    assert!(began.elapsed() < Duration::from_secs(50));
    assert!(!player.errors().contains("no choice came"));
}

/// The tools of a player that chooses by itself are checked in `mcp.rs`.
#[test]
fn tools_of_a_player_by_hand_are_listed() {
    let test = TestLeague::new("");
    let options = "play mcp --manager http://127.0.0.1:1/mcp";
    let player = test.start("player", options);
    let tools = ask(&player.url(), "tools/list", json!({}))["tools"].take();
    for tool in list_of(&tools) {
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        let mut arguments = arguments.values();
        assert!(
            arguments.all(|argument| argument["description"].is_string()),
            "{tool}"
        );
        let says = text_of(&tool["description"]);
        let rules = says.contains("the one who named its parity wins");
        assert!(rules || tool["name"] != "make_choice", "{says}");
    }
    let names = list_of(&tools).iter().map(|tool| text_of(&tool["name"]));
    let names: BTreeSet<&str> = names.collect();
    let expected = ["get_player_state", "make_choice", "next_turn"];
    assert!(names.into_iter().eq(expected), "{tools}");
    let mut refused = test.spawn("player", "play mcp:nobody");
    assert_eq!(refused.wait().code(), Some(2));
}

#[test]
fn unauthenticated_calls_are_refused_at_once() {
    let Some(own) = own_address() else {
        return;
    };
    let (test, manager) = with_manager("serve");
    // No agent reaches the player at this endpoint.
    let options = format!("play mcp --host 0.0.0.0 --contact-endpoint http://{own}:1/mcp");
    let player = test.agent(&manager, "P01", &options);
    player.line(" is P01");
    let from_afar = format!("http://{own}:{}/mcp", player.port());
    let card = test.data("agents/P01.json");
    let choice = json!({"match_id": "R1M1", "choice": "odd"});
    for (name, arguments, token, code) in [
        ("next_turn", json!({}), Value::Null, "E011"),
        ("next_turn", json!({}), json!("tok-p01-0"), "E012"),
        ("make_choice", choice.clone(), Value::Null, "E011"),
        ("make_choice", choice.clone(), json!("tok-p01-0"), "E012"),
        ("make_choice", choice, card["token"].clone(), "E015"), // the token is right, but no choice is asked for
    ] {
        let answer = tool(
            &from_afar,
            name,
            with_field(&arguments, "auth_token", token),
        );
        assert_eq!(answer, Err(code.into()), "{name}");
    }
}

#[test]
fn official_python_sdk_plays_a_league() {
    let python = std::env::var("MCP_PYTHON").unwrap_or(PYTHON.into()); // one that has the package mcp
    let has_it = Command::new(&python)
        .args(["-c", "from mcp import Client"])
        .output();
    if !has_it.is_ok_and(|has_it| has_it.status.success()) {
        return print_left_out(&format!(
            "the official SDK: {python} has no package mcp, 2.x"
        ));
    }
    let page = include_str!("../../src/guide/models.md");
    let (_, from) = page
        .split_once("```python\n# play.py")
        .expect("the page has it");
    let script = format!("# play.py{}", from.split_once("```").unwrap().0);
    let (_test, [mut manager, _referee, player, _other]) = league(3, 30, "mcp:odd");
    let script = script.replace("http://localhost:8101/mcp", &player.url());
    let ran = Command::new(&python)
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    manager.wait_for_success();
    assert_eq!(choices(&player), ["even", "odd", "odd"]); // as the script has it: first even, then against its last choice
}
