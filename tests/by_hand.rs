//! `--strategy mcp`: the choice is left to whoever calls `next_turn` and `make_choice`.

mod support;

use league::extras::by_hand::{ByHand, MakeChoice, TurnState};
use league::extras::strategies::{Past, Turn};
use league::wire::Wire;
use serde_json::{Value, json};
use std::{
    process::Command,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use support::*;

/// A league of two, in which P01's choices come by hand, and P02 always chooses even.
fn league(cycles: u32, move_timeout: u32, strategy: &str) -> (World, [Agent; 4]) {
    let world = World::new(&[
        (
            "leagues/league_2025_even_odd.json",
            "/scheduling/cycles",
            json!(cycles),
        ),
        (
            "system.json",
            "/timeouts/move_timeout_sec",
            json!(move_timeout),
        ),
    ]);
    let manager = world.manager(&["--players", "2"]);
    let by_hand = world.player(&manager, "P01", &["--strategy", strategy]);
    let other = world.player(&manager, "P02", &["--strategy", "even"]);
    let referee = world.referee(&manager, "REF01", &[]);
    (world, [manager, referee, by_hand, other])
}

/// `tools/call`: what the tool answers, or the code of its refusal.
fn tool(url: &str, name: &str, arguments: Value) -> Result<Value, String> {
    let mut result = call(
        url,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )["result"]
        .take();
    let words = result["content"][0]["text"].as_str().unwrap_or_default();
    if result["isError"] == true {
        Err(words[..4].into())
    } else {
        Ok(result["structuredContent"].take())
    }
}

/// What P01 chose in each of its matches.
fn choices(player: &Agent) -> Vec<Value> {
    let state = tool(&player.url(), "get_player_state", json!({})).unwrap();
    state["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|past| past["result"]["choices"]["P01"].clone())
        .collect()
}

/// A turn in a match with so many seconds left, after sixty matches.
fn turn(match_id: &str, seconds: u64) -> Turn {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let past = |n| Past {
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
fn the_most_urgent_turn_is_offered_first_with_its_newest_history() {
    let (by_hand, late, soon) = (ByHand::default(), turn("R61M1", 25), turn("R62M1", 15));
    let choose = |match_id: &str, choice: &str| {
        let made = json!({"match_id": match_id, "choice": choice});
        by_hand.make_choice(&MakeChoice::read(&made).unwrap())
    };
    thread::scope(|scope| {
        let late = scope.spawn(|| by_hand.ask(&late));
        assert_eq!(by_hand.next_turn().match_id.as_deref(), Some("R61M1"));
        let soon = scope.spawn(|| by_hand.ask(&soon));
        let offer = until("both are asked", || {
            Some(by_hand.next_turn()).filter(|it| it.match_id.as_deref() == Some("R62M1"))
        });
        assert!(
            offer
                .seconds_left
                .is_some_and(|left| (9..=13).contains(&left)),
            "{offer:?}"
        );
        let history = offer.history.unwrap();
        assert_eq!((history.len(), &*history[49].match_id), (50, "R60M1"));
        let wrong = choose("R62M1", "Even").unwrap_err();
        assert_eq!(wrong.field_name(), Some("choice"));
        choose("R62M1", "even").unwrap();
        assert!(choose("R62M1", "odd").is_err()); // it is chosen
        assert_eq!(by_hand.next_turn().match_id.as_deref(), Some("R61M1"));
        assert_eq!(soon.join().unwrap(), Some("even".into()));
        choose("R61M1", "odd").unwrap();
        assert_eq!(late.join().unwrap(), Some("odd".into()));
    });
    assert_eq!(by_hand.ask(&turn("R63M1", 2)), None); // at once: it is two seconds before the deadline
    by_hand.note("a note");
    by_hand.end("the end");
    let (first, second) = (by_hand.next_turn(), by_hand.next_turn());
    assert_eq!(
        (first.status, first.notes.join(", ")),
        (TurnState::Over, "a note, the end".into())
    );
    assert_eq!((second.status, second.notes.len()), (TurnState::Over, 2)); // told until the next choice
}

#[test]
fn a_league_is_played_through_the_tools_to_its_end() {
    let (_world, [mut manager, _referee, player, _other]) = league(3, 30, "mcp:even");
    let url = player.url();
    for round in 1..=3 {
        let (match_id, turn) = (
            format!("R{round}M1"),
            tool(&url, "next_turn", json!({})).unwrap(),
        );
        assert_eq!(turn["status"], "your_turn", "{turn}");
        assert_eq!(
            (&turn["match_id"], &turn["opponent_id"]),
            (&json!(match_id), &json!("P02"))
        );
        let history = turn["history"].as_array().unwrap();
        assert_eq!(history.len(), round - 1);
        for past in history {
            let outcome = if past["result"]["winner_player_id"] == "P01" {
                "you won"
            } else {
                "you lost"
            };
            assert_eq!(past["outcome"], outcome, "{past}");
        }
        assert!(
            turn["seconds_left"]
                .as_u64()
                .is_some_and(|left| (20..=28).contains(&left)),
            "{turn}"
        );
        let choose = |match_id: &str, choice| {
            tool(
                &url,
                "make_choice",
                json!({"match_id": match_id, "choice": choice}),
            )
        };
        assert_eq!(choose(&match_id, "Odd"), Err("E004".into()));
        assert_eq!(choose("R9M9", "odd"), Err("E015".into()));
        assert_eq!(choose(&match_id, "odd").unwrap()["choice"], "odd");
    }
    let end = tool(&url, "next_turn", json!({})).unwrap();
    assert_eq!(end["status"], "over", "{end}");
    assert!(
        end["notes"][0].as_str().unwrap().starts_with("Champion: "),
        "{end}"
    );
    assert!(manager.wait().success());
    assert_eq!(choices(&player), ["odd"; 3]); // it still answers: mcp implies --stay
}

#[test]
fn where_nobody_chooses_the_fallback_plays_and_says_so() {
    let (_world, [mut manager, _referee, player, _other]) = league(1, 4, "mcp:odd");
    assert!(manager.wait().success());
    assert_eq!(choices(&player), ["odd"]);
    let end = tool(&player.url(), "next_turn", json!({})).unwrap();
    let words = "R1M1: nobody chose in time; odd chose odd";
    assert_eq!(
        (&end["status"], &end["notes"][0]),
        (&json!("over"), &json!(words))
    );
    assert!(player.stderr.lock().unwrap().contains(words));
}

#[test]
fn a_match_that_nobody_announced_is_not_offered() {
    let (world, manager) = (World::new(&[]), stand_in::manager());
    let player = world.start(
        "player",
        &["--manager", &manager.url, "--strategy", "mcp:odd"],
    );
    player.line(" is P01");
    let body = json!({
        "league_id": stand_in::LEAGUE, "round_id": 7, "match_id": "R7M1", "game_type": "even_odd", "player_id": "P01",
        "opponent_id": "P02", "role_in_match": "PLAYER_A", "conversation_id": "conv-7", "auth_token": "tok-7",
    });
    assert_eq!(
        send(
            &player.url(),
            &message("GAME_INVITATION", "referee:X", body.clone())
        )["accept"],
        true
    );
    let mut call = message("CHOOSE_PARITY_CALL", "referee:X", body);
    call["deadline"] = json!(
        league::wire::Timestamp::now()
            .plus(Duration::from_secs(60))
            .to_string()
    );
    let began = Instant::now();
    assert_eq!(send(&player.url(), &call)["parity_choice"], "odd"); // at once, by the fallback
    assert!(
        began.elapsed() < Duration::from_secs(10)
            && !player.stderr.lock().unwrap().contains("nobody chose")
    );
}

#[test]
fn the_tools_are_there_only_by_hand() {
    let world = World::new(&[]);
    for (strategy, there) in [("mcp", true), ("random", false)] {
        let player = world.start(
            "player",
            &[
                "--manager",
                "http://127.0.0.1:1/mcp",
                "--strategy",
                strategy,
            ],
        );
        let list = call(&player.url(), "tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let mut names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        names.sort();
        let by_hand = names == ["get_player_state", "make_choice", "next_turn"];
        let by_itself = names.contains(&"choose_parity") && !names.contains(&"next_turn");
        assert_eq!((by_hand, by_itself), (there, !there), "{names:?}");
        for tool in tools {
            let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
            for (name, argument) in arguments {
                let says = argument["description"].is_string();
                assert!(says, "{}: {name}", tool["name"]);
            }
            if tool["name"] == "make_choice" {
                let says = tool["description"].as_str().unwrap();
                assert!(says.contains("whoever named its parity wins"), "{says}");
            }
        }
        if !there {
            assert_eq!(
                call(&player.url(), "next_turn", json!({}))["error"]["code"],
                -32601
            );
        }
    }
    let refused = world
        .start_unheard("player", &["--strategy", "mcp:nobody"])
        .wait();
    assert_eq!(refused.code(), Some(2));
}

#[test]
fn strangers_are_refused_before_anything_waits() {
    let Some(own) = own_address() else {
        return;
    };
    let world = World::new(&[]);
    let manager = world.manager(&[]);
    let contact = format!("http://{own}:1/mcp"); // nobody needs to reach it there
    let hosts = [
        "--host",
        "0.0.0.0",
        "--contact-endpoint",
        &contact,
        "--strategy",
        "mcp",
    ];
    let player = world.player(&manager, "P01", &hosts);
    player.line(" is P01");
    let from_afar = format!("http://{own}:{}/mcp", player.port());
    let token = world.data("agents/P01.json")["token"].clone();
    let choice = json!({"match_id": "R1M1", "choice": "odd"});
    for (name, arguments) in [("next_turn", json!({})), ("make_choice", choice.clone())] {
        assert_eq!(
            tool(&from_afar, name, arguments.clone()),
            Err("E011".into()),
            "{name}"
        );
        let mut forged = arguments;
        forged["auth_token"] = json!("tok-p01-0");
        assert_eq!(tool(&from_afar, name, forged), Err("E012".into()), "{name}");
    }
    let choice = json!({"match_id": "R1M1", "choice": "odd", "auth_token": token});
    assert_eq!(tool(&from_afar, "make_choice", choice), Err("E015".into())); // let in; but nothing is asked
}

#[test]
fn the_official_python_sdk_plays_a_league() {
    let python = std::env::var("MCP_PYTHON").unwrap_or("python3".into()); // one that has the package mcp
    let has_it = Command::new(&python)
        .args(["-c", "from mcp import Client"])
        .output();
    if !has_it.is_ok_and(|has_it| has_it.status.success()) {
        return eprintln!("left out: {python} has no package mcp, 2.x");
    }
    let page = include_str!("../src/guide/models.md");
    let (_, from) = page
        .split_once("```python\n# play.py")
        .expect("the page has it");
    let script = format!("# play.py{}", from.split_once("```").unwrap().0);
    let (_world, [mut manager, _referee, player, _other]) = league(3, 30, "mcp:odd");
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
    assert!(manager.wait().success());
    assert_eq!(choices(&player), ["even", "odd", "odd"]); // as the script has it: first even, then against its last choice
}
